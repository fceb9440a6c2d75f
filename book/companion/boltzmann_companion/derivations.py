"""The numbers of `boltzmann_companion.derived`, from the records at the papers' size.

A number is its name in links, its unit, its value (or a list of values) and what it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any, TypeAlias

from scipy.special import chdtrc, fdtri

from boltzmann_companion.claims.checks import Row, Stored
from boltzmann_companion.claims.conclusions import Word, agree, mostly_low
from boltzmann_companion.rows import by_model
from boltzmann_companion.studies.bracket_tables import PAPERS_IMAGES, verdict_of
from boltzmann_companion.studies.open_brackets import bracket_reading
from boltzmann_companion.studies.same_recipe import PRINTED, lengths_of_row
from boltzmann_companion.studies.study import holds_truth, trusted_rows

Numbers: TypeAlias = Iterator[tuple[str, str, Any, str]]
DERIVATIONS: list[Callable[[Stored], Numbers]] = []


def derived(derive: Callable[[Stored], Numbers]) -> Callable[[Stored], Numbers]:
    """Let a function's numbers be rows of the table."""
    DERIVATIONS.append(derive)
    return derive


def printed_numbers(stored: Stored) -> dict[str, float]:
    """Values that the papers print, by id."""
    return {row["id"]: float(row["value"]) for row in stored.rows("published") if row["value"]}


def printed_interval(stored: Stored, name: str) -> list[float]:
    """The two ends of an interval that a paper prints, in rising order."""
    [row] = [row for row in stored.rows("published") if row["id"] == name]
    return ends([float(row["low"]), float(row["high"])])


def ends(values: list[float]) -> list[float]:
    """The smallest and the largest of some values."""
    return [min(values), max(values)]


# ---- the authors' model, images and coin flips


def fresh(stored: Stored) -> list[Row]:
    """The authors' model on images that were binarised anew."""
    return [row for row in stored.rows("exact-binarization") if row["model"] != "as in training"]


def both_averages(stored: Stored) -> list[float]:
    """The interval of ln Z that gives both published averages, -83.10 and -86.34."""
    row = stored.row("exact-binarization", model="as in training")
    over = [row["train"] + 83.10, row["test"] + 86.34]
    return [max(over) - 0.005, min(over) + 0.005]


def long_log_z(stored: Stored) -> float:
    """What the longest runs from the base rates say of ln Z of the authors' model."""
    longest = stored.row("raise-own-weights-by-k", start="base rates", steps=100_000)
    return stored.row("exact-binarization", model="as in training")["test"] - longest["ais"]


@derived
def coin_flips(stored: Stored) -> Numbers:
    """The gap between training and test images, with other binary images of the same grey ones."""
    trained = stored.row("exact-binarization", model="as in training")
    anew = fresh(stored)
    gaps = ends([row["gap"] for row in anew])
    missed = trained["train"] - 451.27 - fmean(row["train"] - 451.27 for row in anew)
    moved = trained["test"] - fmean(row["test"] for row in anew)
    yield "gaps-anew", "nats", gaps, "least and largest gap with the images binarised anew"
    yield "training-lost-anew", "nats", missed, "what fresh coin flips cost on training images"
    yield "test-lost-anew", "nats", moved, "what fresh coin flips cost on test images"


@derived
def authors_log_z(stored: Stored) -> Numbers:
    """Values of ln Z for the authors' CD25(500)."""
    both = both_averages(stored)
    long = long_log_z(stored)
    first = stored.row("sm2008-own-weights")["log_z"]
    repeats = [row["log_z"] for row in stored.rows("own-weights-repeats")]
    short = [both[0] - log_z for log_z in repeats]
    yield "both-averages", "nats", both, "ends of the ln Z that give both published averages"
    yield "printed-over-both", "nats", 451.28 - both[1], "451.28 less the upper of these ends"
    yield "long-log-z", "nats", long, "ln Z by AIS from the base rates, 100,000 steps"
    truth = stored.rows("evaluate-full-size", model="CD25(500) of the authors")[0]["truth"]
    average = stored.row("exact-binarization", model="as in training")["test"]
    yield "tempering-long-log-z", "nats", average - truth, "ln Z by long runs of tempering"
    yield "long-less-tempering", "nats", long - average + truth, "ln Z by AIS less that"
    yield "long-less-first", "nats", long - first, "that less our first estimate"
    yield "both-less-long", "nats", both[0] - long, "the lower end less ln Z of the long runs"
    yield "printed-less-first", "nats", 451.28 - first, "451.28 less our first estimate"
    yield "repeats", "count", len(repeats), "seeds of the first paper's effort"
    yield "repeats-below", "count", sum(each > 0 for each in short), "of them below both averages"
    yield "repeats-short", "nats", fmean(short), "by how much they are below, on average"


# ---- how long a model was trained


def mean_at(stored: Stored, model: str, epoch: int) -> float:
    """Mean over the seeds of the test average after so many epochs."""
    rows = stored.rows("sm2008-training-paths", model=model, epoch=epoch, distrusted="no")
    return fmean(row["test"] for row in rows)


def lengths(stored: Stored, model: str) -> list[int]:
    """The numbers of epochs from ten on after which a model was evaluated."""
    epochs = {row["epoch"] for row in stored.rows("sm2008-training-paths", model=model)}
    return sorted(epoch for epoch in epochs if epoch >= 10)


def spread_at(stored: Stored, model: str, epoch: int) -> float:
    """By how much the best seed is ahead of the worst."""
    rows = stored.rows("sm2008-training-paths", model=model, epoch=epoch, distrusted="no")
    return max(row["test"] for row in rows) - min(row["test"] for row in rows)


@derived
def training_length(stored: Stored) -> Numbers:
    """What epochs and seeds do to test averages, trained by the released recipe."""
    small = ("CD1(20)", "CD1(25)", "CD3(25)")
    wide = ("CD1(500)", "CD3(500)")
    gains = {m: mean_at(stored, m, 100) - mean_at(stored, m, 10) for m in small + wide}
    yield "CD1-500-gain", "nats", gains["CD1(500)"], "test average of CD1(500): 100 less 10 epochs"
    yield "CD3-500-gain", "nats", gains["CD3(500)"], "the same for CD3(500)"
    for name, model in (("CD1-500", "CD1(500)"), ("CD3-500", "CD3(500)")):
        dip = mean_at(stored, model, 5) - mean_at(stored, model, 10)
        yield f"{name}-dip", "nats", dip, f"test average of {model}: 5 less 10 epochs"
    gain = ends([gains[m] for m in small])
    yield "small-gain", "nats", gain, "least and largest with 20 or 25 units, 100 less 10 epochs"
    for epoch in (5, 15, 100):
        lead = mean_at(stored, "CD3(500)", epoch) - mean_at(stored, "CD1(500)", epoch)
        yield f"lead-{epoch}", "nats", lead, f"CD3(500) less CD1(500) after {epoch} epochs"
    for name, models in (("small", small), ("wide", wide)):
        seeds = ends([spread_at(stored, m, epoch) for m in models for epoch in lengths(stored, m)])
        what = f"least and largest distance of seeds at one length from 10 epochs on, {name} models"
        yield f"seeds-apart-{name}", "nats", seeds, what


@derived
def exact_path(stored: Stored) -> Numbers:
    """The exact test average along one training of two models, from 100 epochs on."""
    for model in ("CD1(25)", "CD3(25)"):
        rows = stored.rows("sm2008-training-path", model=model)
        low, high = ends([row["test"] for row in rows if row["epoch"] >= 100])
        name = model.replace("(", "-").strip(")")
        yield f"by-length-{name}", "nats", high - low, f"{model}: highest less lowest"


# ---- exact partition functions


@derived
def small_models(stored: Stored) -> Numbers:
    """AIS on the models that can be enumerated."""
    rows = stored.rows("sm2008-table-1")
    off = max(abs(row["log_z"] - row["exact_log_z"]) for row in rows)
    held = sum(
        row["interval_3_sigma"][0] <= row["exact_log_z"] <= row["interval_3_sigma"][1]
        for row in rows
    )
    better = stored.row("sm2008-table-1", model="CD1(20)")["test_exact"] + 164.52
    many = stored.rows("sm2008-figure-3", runs=10_000)
    yield "small-off", "nats", off, "largest error of ln Z with a hundred runs"
    yield "small-held", "count", held, "3-sigma intervals that hold the exact value"
    yield "CD1-20-over-published", "nats", better, "our CD1(20) over the published one"
    largest = max(abs(row["log_z"] - row["exact_log_z"]) for row in many)
    yield "small-off-10000", "nats", largest, "largest error of ln Z with 10,000 runs"
    exact = stored.rows("sm2008-ratios")[1]
    off = exact["log_ratio"] - exact["exact"]
    yield "ratio-off-exact", "nats", off, f"error of the ratio, start: {exact['start']}"


# ---- full-size RBMs


@derived
def full_size(stored: Stored) -> Numbers:
    """The bottom half of Table 1, and mixtures."""
    rows = {row["model"]: row for row in stored.rows("sm2008-table-1-full-size")}
    for model, row in rows.items():
        name = model.replace("(", "-").strip(")")
        below = row["log_z"] - row["lower_bound"]
        yield f"bound-below-{name}", "nats", below, f"{model}: ln Z less its bound"
    effective = ends([row["effective_sample_size"] for row in rows.values()])
    yield "effective-full-size", "count", effective, "least and most effective runs"
    tests = {model: row["test"] for model, row in rows.items()}
    three = tests["CD3(500)"] - tests["CD1(500)"]
    many = tests["CD25(500)"] - tests["CD3(500)"]
    yield "CD3-over-CD1", "nats", three, "CD3(500) less CD1(500), test average"
    yield "CD25-over-CD3", "nats", many, "CD25(500) less CD3(500), test average"
    apart = abs(sum(row["log_ratio"] for row in stored.rows("sm2008-ratios-full-size")))
    yield "directions-apart", "nats", apart, "the ratio in one direction, and in the other"
    blank = stored.rows("sm2008-training-paths", model="CD3(500)", epoch=50)
    most = sum(row["blank_share"] > 0.5 for row in blank)
    yield "CD3-500-blank", "count", most, "seeds of CD3(500) that are mostly blank, 50 epochs"
    yield "CD3-500-seeds", "count", len(blank), "of so many"


@derived
def mixtures(stored: Stored) -> Numbers:
    """What starts and smoothing do to mixtures."""
    tests = stored.column("sm2008-mixtures", "test")
    for number in (100, 500):
        gain = tests[f"MoB({number}), started at images"] - tests[f"MoB({number})"]
        yield f"images-help-{number}", "nats", gain, f"start at images, {number} components"
    seeds = [row["test"] for row in stored.rows("mixture-starts")]
    yield "mixture-seeds", "count", len(seeds), "seeds of ten components from noise"
    yield "mixture-seeds-apart", "nats", max(seeds) - min(seeds), "the best less the worst"
    rows = stored.rows("mixture-grid", model="MoB(100)")
    grid = {(row["start"], row["smoothing"]): row["test"] for row in rows}
    for smoothing, name in ((2.0, "larger"), (0.1, "smaller")):
        gain = grid["images", smoothing] - grid["noise", smoothing]
        yield f"images-help-{name}", "nats", gain, f"start at images, {name} smoothing"
    for start in ("noise", "images"):
        gain = grid[start, 0.1] - grid[start, 2.0]
        yield f"smoothing-helps-{start}", "nats", gain, f"less smoothing, start from {start}"
    used = {row["smoothing"]: row["used"] for row in rows if row["start"] == "noise"}
    yield "unused-larger", "count", 100 - used[2.0], "idle of 100 components, larger smoothing"
    yield "unused-smaller", "count", 100 - used[0.1], "the same with the smaller"
    last = stored.row("sm2008-mixtures", model="MoB(500), started at images")
    yield "MoB-500-over-fits", "nats", last["train"] - last["test"], "training less test images"
    ahead = stored.row("sm2008-own-weights")["test"] - max(tests.values())
    yield "CD25-over-mixtures", "nats", ahead, "the authors' CD25(500) over the best mixture"


@derived
def counted_intervals(stored: Stored) -> Numbers:
    """How often 3-sigma intervals of AIS hold the truth."""
    for runs in (10, 100):
        held = ends([row["covered"] for row in stored.rows("ais-coverage", runs=runs)])
        yield f"covered-{runs}", "fraction", held, f"least and largest share with {runs} runs"
    without = sum((1 - row["warned"]) * row["groups"] for row in stored.rows("ais-coverage"))
    yield "experiments-unwarned", "count", round(without), "experiments without a warning"


# ---- the start


@derived
def starts(stored: Stored) -> Numbers:
    """How much the start of AIS matters on the RBMs of the RAISE paper."""
    rows = stored.rows("raise-table-1")
    longest = stored.rows("raise-figure-3", start="uniform", steps=100_000)
    effective = {row["model"]: row["effective_sample_size"] for row in longest}
    apart = {row["model"]: abs(row["uniform_ais"] - row["base_rate_ais"]) for row in rows}
    alike = [model for model, nats in apart.items() if nats < 0.5]
    either = [model for model in alike if effective[model] >= 9]
    pcd = stored.row("raise-table-1", model="mnistPCD-20")
    off = pcd["uniform_ais"] - pcd["exact"]
    yield "uniform-off", "nats", off, "AIS from uniform pixels on mnistPCD-20 less its exact value"
    short = pcd["exact"] - pcd["uniform_raise"]
    yield "uniform-short", "nats", short, "RAISE from uniform pixels on mnistPCD-20 below exact"
    off = pcd["base_rate_ais"] - pcd["exact"]
    what = "AIS from the base rates on mnistPCD-20 less its exact value"
    yield "base-rates-off", "nats", off, what
    yield "rbms", "count", len(rows), "RBMs of the RAISE paper's Table 1"
    yield "starts-alike", "count", len(alike), "of them: AIS's starts within half a nat"
    yield "either-start", "count", len(either), "of these: nine effective chains or more"
    nats = apart["mnistCD1-500"]
    yield "starts-apart", "nats", nats, "AIS's two starts apart on mnistCD1-500"
    nats = max(apart[model] for model in alike)
    yield "starts-apart-at-most", "nats", nats, "AIS's starts apart where they are alike, at most"
    curve = figure_3(stored, "mnistPCD-20", "uniform")
    chains = ends([row["effective_sample_size"] for row in curve])
    yield "uniform-chains", "count", chains, "effective chains on mnistPCD-20, from uniform pixels"


# ---- intervals and trust


HELD_OUT = "evaluate-study-held-out"
DEEP = "evaluate-study-deep"


def is_trusted(row: Row) -> bool:
    """Whether `evaluate` trusted its value, right or wrong."""
    return row["outcome"].endswith(", trusted")


@derived
def evaluations(stored: Stored) -> Numbers:
    """What became of the evaluations of models with a known answer."""
    studies = {
        "study": stored.rows("evaluate-study"),
        "held-out": stored.rows(HELD_OUT),
        "deep": stored.rows(DEEP),
    }
    models = {(row["data"], row["model"]) for row in studies["held-out"]}
    share = 1 - 0.05 ** (1 / len(models))
    what = "95 % limit of the share of models that mislead, if none of these did"
    yield "held-out-models", "count", len(models), "models drawn at random"
    planted = sum("mode" in model for _, model in models)
    yield "held-out-planted", "count", planted, "of them with a planted mode"
    yield "misleading-at-most", "fraction", share, what
    for name, rows in studies.items():
        trusted = [row for row in rows if is_trusted(row)]
        wrong = [row for row in trusted if abs(row["value_error"]) >= 1]
        right = [row for row in rows if abs(row["value_error"]) <= 1]
        alarms = [row for row in rows if row["outcome"] == "right, suspected"]
        yield f"evaluated-{name}", "count", len(rows), "evaluations"
        yield f"trusted-{name}", "count", len(trusted), "of them trusted"
        yield f"trusted-wrong-{name}", "count", len(wrong), "trusted and off by a nat or more"
        yield f"right-{name}", "count", len(right), "within a nat of the truth"
        yield f"alarms-{name}", "count", len(alarms), "of the right ones, suspected"
        error = max(abs(row["value_error"]) for row in trusted)
        yield f"trusted-off-{name}", "nats", error, "largest error of a trusted value"


# ---- RAISE


@derived
def above_exact(stored: Stored) -> Numbers:
    """By how much RAISE from the base rates exceeds the exact value."""
    for row in stored.rows("raise-table-1"):
        if row["exact"] is not None:
            over = row["base_rate_raise"] - row["exact"]
            what = f"RAISE from the base rates less the exact value of {row['model']}"
            yield f"raise-over-exact-{row['model']}", "nats", over, what


@derived
def blank_pages(stored: Stored) -> Numbers:
    """What chains on mnistCD1-500 say of its modes."""
    row = stored.row("blank-page-flow")
    ais = stored.row("tempering-brackets", model=row["model"])["ais_log_z"]
    gap = stored.row("raise-gaps", model=row["model"], start="base rates")["gap"]
    share = math.exp(row["rest_log_z"] - row["blank_log_z"])
    below = row["blank_log_z"] - row["rest_log_z"]
    yield "blank-less-AIS", "nats", row["blank_log_z"] - ais, "ln Z of the blank pages less AIS's"
    yield "second-mode-share", "fraction", share, "the second mode's mass over the blank pages'"
    yield "second-mode-below", "nats", below, "ln Z of the blank pages less that of the second mode"
    yield "modes-needed", "times", math.expm1(gap), "mass of other modes, were RAISE right"
    none = row["none_arrive"] / row["images"]
    yield "no-chain-arrives", "fraction", none, "share of images from which no chain arrives"


# ---- deep belief networks


@derived
def second_layer(stored: Stored) -> Numbers:
    """What the second layer gains on CD25(500), with parallel tempering's ln Z."""
    above = stored.row("tempering-brackets", model="MNIST DBN")
    below = stored.row("tempering-brackets", model="mnistCD25-500")
    half = [(row["interval"][1] - row["interval"][0]) / 2 for row in (above, below)]
    gain = above["ladder"] - below["ladder"]
    yield "second-layer-gain", "nats", gain, "the MNIST DBN less mnistCD25-500"
    error = math.hypot(*half) / 1.96
    yield "second-layer-gain-std-error", "nats", error, "its standard error"
    printed = printed_numbers(stored)
    dbn = "raise2015/table-2/mnist-dbn/uniform"
    rbm = "raise2015/table-1/mnistcd25-500/base-rate"
    for name in ("RAISE", "AIS"):
        gain = printed[f"{dbn}-{name.lower()}"] - printed[f"{rbm}-{name.lower()}"]
        yield f"published-second-layer-{name}", "nats", gain, f"the same as printed, by {name}"


@derived
def published_differences(stored: Stored) -> Numbers:
    """What follows from the papers' numbers."""
    printed = printed_numbers(stored)
    train = printed["sm2008/table-1/cd25-500/train-estimate"]
    test = printed["sm2008/table-1/cd25-500/test-estimate"]
    yield "published-gap", "nats", train - test, "CD25(500) as printed: training less test images"
    missed = train - fmean(row["train"] - 451.27 for row in fresh(stored))
    what = "the printed training average less that of fresh binarisations, with ln Z = 451.27"
    yield "published-training-missed", "nats", missed, what
    tables = [f"raise2015/table-1/mnist{name}-20" for name in ("pcd", "cd1")]
    short = [printed[f"{table}/exact"] - printed[f"{table}/uniform-raise"] for table in tables]
    what = "printed RAISE from uniform pixels below exact, 20 units, least and largest"
    yield "published-uniform-short", "nats", ends(short), what


@derived
def dbns(stored: Stored) -> Numbers:
    """Bounds of deep belief networks and what they leave out."""
    last = stored.rows("dbn-greedy-bound", start="transposed")
    step = max(row["step"] for row in last)
    for row in last:
        if row["step"] == step:
            gain = row["bound"] - row["rbm"]
            what = f"gain of the second layer on the exact example, first layer by {row['model']}"
            yield f"greedy-{row['model']}", "nats", gain, what
    random = [
        row["gap"] for row in stored.rows("dbn-bound-gap") if "transposed" not in row["model"]
    ]
    yield "bound-leaves-out", "nats", ends(random), "what the bound leaves out after a random start"
    sides = stored.rows("dbn-annealed-layer")
    few = [row for row in sides if row["lower_effective"] < 3]
    yield "sides", "count", len(sides), "DBNs that were annealed from either side"
    yield "sides-few", "count", len(few), "of them with fewer than three runs from the lower side"
    shorter = stored.row("dbn-annealed-layer", model="DBN-CD3")["upper_log_z"]
    higher = shorter - stored.row("sm2008-table-2", model="Test DBN-CD3")["log_z"]
    yield "DBN-CD3-higher", "nats", higher, "ln Z of DBN-CD3 by shorter runs less that of Table 2"
    printed = printed_numbers(stored)
    for name, rbm in (("cd1", "cd1-500"), ("cd3", "cd3-500"), ("cd25", "cd25-500")):
        bound = printed[f"sm2008/table-2/test-dbn-{name}/bound"]
        gain = bound - printed[f"sm2008/table-1/{rbm}/test-estimate"]
        what = f"the printed bound of DBN-{name} less its RBM"
        yield f"published-gain-{name}", "nats", gain, what
        difference = printed[f"sm2008/table-2/train-dbn-{name}/bound"] - bound
        what = f"the printed bounds of DBN-{name}: training less test images"
        yield f"published-difference-{name}", "nats", difference, what


def verdict_counts(stored: Stored, start: str) -> Counter[str]:
    """How many brackets of the RBMs from a start have each verdict."""
    return Counter(verdict_of(row, start) for row in stored.rows("raise-table-1"))


def figure_3(stored: Stored, model: str, start: str) -> list[Row]:
    """A curve of Figure 3, by the number of steps."""
    return stored.rows("raise-figure-3", model=model, start=start)


@derived
def brackets(stored: Stored) -> Numbers:
    """How many brackets of the six RBMs are closed, and how far AIS and RAISE are apart."""
    rows = stored.rows("raise-table-1")
    for start in ("base_rate", "uniform"):
        counts = verdict_counts(stored, start)
        for verdict in ("closed", "open", "cannot tell"):
            name = f"{start.replace('_', '-')}-{verdict.replace(' ', '-')}"
            what = f"brackets from {start.replace('_', ' ')}: {verdict}"
            yield name, "count", counts[verdict], what
    within = sum(abs(row["base_rate_gap"]) <= 0.5 for row in rows)
    yield "within-half", "count", within, "gaps from the base rates within half a nat"
    gap = max(row["uniform_gap"] for row in rows)
    yield "widest-uniform-gap", "nats", gap, "the widest gap from uniform pixels"
    others = sorted(row["base_rate_raise"] - row["csl"] for row in rows)[1:]
    yield "CSL-short", "nats", ends(others), "CSL below RAISE from the base rates, on all but one"
    yield "CSL-short-models", "count", len(others), "models of that range"
    tens = sum(row["base_rate_ais"] - row["csl"] > 10 for row in rows)
    yield "CSL-tens", "count", tens, "models on which CSL is more than ten nats below AIS"
    peak = max(stored.rows("raise-figure-5"), key=lambda row: row["raise"] - row["exact"])
    yield "highest-RAISE", "nats", peak["raise"] - peak["exact"], "RAISE at its highest less exact"
    yield "highest-RAISE-steps", "count", peak["steps"], "the number of steps there"
    curve = figure_3(stored, "mnistCD1-500", "base rates")
    share = curve[-1]["effective_sample_size"] / 5_000
    yield "AIS-counts", "fraction", share, "effective share of its 5,000 chains"
    printed = printed_numbers(stored)
    table = "raise2015/table-1/mnistcd1-20"
    over = printed[f"{table}/base-rate-raise"] - printed[f"{table}/exact"]
    yield "published-RAISE-over-exact", "nats", over, "mnistCD1-20 as printed: RAISE less exact"


# ---- control variates


@derived
def control_variates(stored: Stored) -> Numbers:
    """What the control variate is worth."""
    rbms = list(stored.column("raise-table-1", "csl"))
    hundred = {row["model"]: row for row in stored.rows("control-variates", steps=100)}
    many = stored.column("control-variates", "reduction", steps=300)
    single = stored.column("control-variates", "reduction", steps=1)
    plain = ends([hundred[model]["plain_error"] for model in rbms])
    controlled = ends([hundred[model]["average_error"] for model in rbms])
    yield "plain-errors", "nats", plain, "standard errors of a hundred images, RBMs, 100 steps"
    yield "controlled-errors", "nats", controlled, "the same with the control variate"
    wide = ("mnistCD1-500", "mnistPCD-500", "mnistCD25-500")
    worth = ends([hundred[model]["equivalent"] for model in wide])
    yield "worth", "count", worth, "images that a hundred are worth, 500 hidden units"
    more = sum(many[model] > row["reduction"] for model, row in hundred.items())
    yield "control-models", "count", len(hundred), "models of the chapter on control variates"
    yield "gain-more", "count", more, "models that gain more with 300 steps than with 100"
    halved = sum(reduction > 2 for reduction in single.values())
    yield "halved-by-one-step", "count", halved, "models whose variance one step halves"
    table = stored.column("raise-table-1", "base_rate_raise_error")
    ratios = {model: hundred[model]["average_error"] / table[model] for model in rbms}
    small = ends([ratios[model] for model in ("mnistCD1-20", "mnistPCD-20")])
    three = ends([ratios[model] for model in ("mnistPCD-500", "mnistCD25-500", "omniPCD-1000")])
    yield "errors-smaller-20", "times", small, "errors of 100 steps over those of 100,000, 20 units"
    yield "errors-smaller", "times", three, "the same for three wide models"
    yield "errors-smaller-mnistCD1-500", "times", ratios["mnistCD1-500"], "the same, mnistCD1-500"
    few = stored.column("control-variate-few-steps", "reduction")
    falls = sum(factor > 1 for factor in few.values())
    yield "falls-with-few-steps", "count", falls, "models whose variance falls with ten steps"


@derived
def digits_of_images(stored: Stored) -> Numbers:
    """How much log-probabilities of MNIST's digits differ."""
    easier = stored.column("digit-classes", "first_images").values()
    apart = stored.column("digit-classes", "one_minus_eight").values()
    yield "first-images-easier", "nats", ends(list(easier)), "MNIST's first hundred less all images"
    yield "ones-over-eights", "nats", ends(list(apart)), "ones less eights"


# ---- deep Boltzmann machines


@derived
def dbms(stored: Stored) -> Numbers:
    """Idle units and brackets of the deep Boltzmann machines."""
    follow = stored.row("dbm-log-unnormalized", model="Omniglot DBM")["follow"]
    yield "idle-units", "count", round(1_000 * (1 - follow)), "of its 1,000 units"
    gaps = [row["base_rate_gap"] for row in stored.rows("raise-table-2") if "DBM" in row["model"]]
    yield "DBM-gaps", "nats", ends(gaps), "gaps of the DBMs from the base rates"
    bracket = stored.row("tempering-brackets", model="Omniglot DBN")
    for steps in (10_000, 100_000):
        place = {"model": "Omniglot DBN", "start": "uniform", "steps": steps}
        over = bracket["ladder"] - stored.row("raise-figure-7", **place)["ais"]
        yield f"DBN-over-{steps}", "nats", over, f"AIS's ln Z over tempering's, uniform, {steps:,}"
        what = f"the factor by which AIS overestimates Z there, with {steps:,} steps"
        yield f"DBN-factor-{steps}", "times", math.exp(over), what
    printed = printed_numbers(stored)
    table = "raise2015/table-2/omniglot-dbm"
    for start in ("uniform", "base-rate"):
        over = printed[f"{table}/{start}-raise"] - printed[f"{table}/uniform-ais"]
        what = f"the printed RAISE, {start}, less the lowest printed AIS"
        yield f"published-crossed-{start}", "nats", over, what


# ---- the report


def base_brackets(stored: Stored) -> Counter[str]:
    """The verdicts of the brackets from base rates, as the report counts them.

    CD25(500) has the authors' weights, and DBNs have no such row in the paper.
    """
    rows = [row for row in stored.rows("raise-table-1") if row["model"] != "mnistCD25-500"]
    rows += stored.rows("raise-own-weights")
    rows += [row for row in stored.rows("raise-table-2") if row["model"].endswith("DBM")]
    return Counter(verdict_of(row, "base_rate") for row in rows if row["steps"] == 100_000)


@derived
def report(stored: Stored) -> Numbers:
    """What the reproduction report counts."""
    count = base_brackets(stored)
    yield "report-brackets", "count", count.total(), "brackets from the base rates in the report"
    for verdict in ("closed", "open", "cannot tell"):
        name = f"report-{verdict.replace(' ', '-')}"
        yield name, "count", count[verdict], f"of them: {verdict}"
    few = stored.row("sm2008-figure-3", model="CD1(25)", runs=10)
    off = abs(few["log_z"] - few["exact_log_z"])
    yield "ten-runs-off", "nats", off, "error of ln Z of CD1(25) with ten runs"
    largest = max(row["runs"] for row in stored.rows("sm2008-figure-3"))
    many = stored.rows("sm2008-figure-3", runs=largest)
    off = max(abs(row["log_z"] - row["exact_log_z"]) for row in many)
    yield "many-runs-off", "nats", off, f"largest error of ln Z of a small model, {largest:,} runs"
    for epoch in (10, 50):
        rows = stored.rows("sm2008-training-paths", model="CD1(20)", epoch=epoch)
        masses = ends([row["largest_mass"] for row in rows])
        what = f"least and largest mass of a hidden state of CD1(20), {epoch} epochs"
        yield f"largest-mass-{epoch}", "fraction", masses, what
    scale = stored.column("likelihood-scale", "test")
    worth = scale["base rates"] - scale["uniform pixels"]
    yield "base-rates-worth", "nats", worth, "independent pixels less uniform pixels"
    worth = max(scale.values()) - scale["base rates"]
    yield "hidden-units-worth", "nats", worth, "the best model less independent pixels"


@derived
def same_weights(stored: Stored) -> Numbers:
    """What the estimates on the authors' weights say together."""
    rows = [row for row in stored.rows("reproduction-report") if row["estimate"] is not None]
    squares = [row["errors"] ** 2 for row in rows]
    yield "same-estimates", "count", len(rows), "independent estimates on the authors' weights"
    numbers = [row for row in stored.rows("reproduction-report") if row["word"] is not None]
    yield "same-numbers", "count", len(numbers), "published numbers that they answer"
    agreeing = sum(row["word"] == "agrees" for row in numbers)
    yield "same-agree", "count", agreeing, "of these numbers: agree"
    yield "same-largest", "standard errors", math.sqrt(max(squares)), "the largest difference"
    yield "same-squares", "", fmean(squares), "mean square of the differences in standard errors"
    chance = float(chdtrc(len(squares), sum(squares)))
    yield "same-chance", "fraction", chance, "how often chance alone gives so much or more"


@derived
def conclusion_cases(stored: Stored) -> Numbers:
    """How many conclusions have each word, and how many cases of one came out or did not."""
    words = Counter(row["word"] for row in stored.rows("conclusions"))
    yield "conclusions", "count", words.total(), "conclusions that are tried"
    for word in Word:
        name = f"conclusions-{str(word).replace(' ', '-')}"
        yield name, "count", words[word], f"of them: {word}"
    for conclusion, column in (
        ("errs-low", "came_out"),
        ("errs-low", "did_not"),
        ("errs-low", "unknown"),
        ("base-rates-better", "came_out"),
        ("base-rates-better", "did_not"),
        ("base-rates-better", "unknown"),
        ("ais-misleads", "came_out"),
        ("ais-misleads", "did_not"),
        ("control-variate", "came_out"),
    ):
        cases = stored.row("conclusions", conclusion=conclusion)[column]
        number = len(cases.split(", ")) if cases else 0
        words_of = column.replace("_", " ")
        name = f"{conclusion}-{words_of.replace(' ', '-')}"
        yield name, "count", number, f"cases of {conclusion}: {words_of}"


@derived
def agreements(stored: Stored) -> Numbers:
    """How often AIS and RAISE agree to within a nat, and how often one of them is wrong then."""
    rows = [
        row
        for name in ("evaluate-study", "evaluate-study-held-out", "evaluate-study-deep")
        for row in stored.rows(name)
        if agree(row)
    ]
    planted = [row for row in rows if "mode" in row["model"]]
    others = [row for row in rows if "mode" not in row["model"]]
    for name, chosen in (("", others), ("-planted", planted)):
        errors = [max(abs(row["ais_error"]), abs(row["raise_error"])) for row in chosen]
        kind = "with a planted mode" if name else "without a planted mode"
        yield f"agreed{name}", "count", len(errors), f"closed brackets of models {kind}"
        wrong = sum(error > 1 for error in errors)
        yield f"agreed-wrong{name}", "count", wrong, "of them: an end is off by more than a nat"
        yield f"agreed-worst{name}", "nats", max(errors), "largest error of an end among them"
    trained = [
        row
        for row in stored.rows("evaluate-study", model="CD-1, 16 units, rate 1", data="mnist")
        if row["start"] != "uniform"
    ]
    off = ends([row["ais_error"] for row in trained])
    gaps = ends([row["gap"] for row in trained])
    what = "a mode by training alone, from base rates"
    yield "trained-mode-off", "nats", off, f"{what}: least and largest error of AIS"
    yield "trained-mode-gap", "nats", gaps, f"{what}: least and largest gap"


# ---- why trust this code


@derived
def verdicts(stored: Stored) -> Numbers:
    """What the verdicts of `evaluate` were worth."""
    studies = {
        "study": stored.rows("evaluate-study"),
        "held-out": stored.rows(HELD_OUT),
        "deep": stored.rows(DEEP),
    }
    for name, rows in studies.items():
        held = sum(holds_truth(row) for row in rows if is_trusted(row))
        yield f"trusted-held-{name}", "count", held, "trusted values whose interval holds the truth"
    models = {(row["data"], row["model"]) for row in studies["study"]}
    yield "study-models", "count", len(models), "models of the study"
    wrong = {
        start: {
            (row["data"], row["model"]): abs(row["value_error"])
            for row in stored.rows("evaluate-study", start=start, steps=2_048)
            if "wrong" in row["outcome"]
        }
        for start in ("training images", "test images", "uniform")
    }
    others = [
        error
        for model, error in wrong["uniform"].items()
        if model not in wrong["training images"] and model not in wrong["test images"]
    ]
    yield "wrong-from-uniform", "count", len(others), "models wrong from uniform pixels only"
    yield "wrong-from-uniform-by", "nats", ends(others), "by how much"
    worst = max(abs(row["value_error"]) for row in studies["deep"])
    yield "deep-worst", "nats", worst, "largest error of a deep model"
    for steps in (128, 2_048):
        wrong = stored.rows(DEEP, steps=steps, outcome="wrong, suspected")
        what = f"deep averages that are off, {steps} steps"
        yield f"deep-wrong-{steps}", "count", len(wrong), what


@derived
def full_size_evaluations(stored: Stored) -> Numbers:
    """Evaluations of models of full size."""
    rows = stored.rows("evaluate-full-size")
    trusted = trusted_rows(rows)
    errors = [abs(row["value_error"]) for row in trusted]
    yield "full-evaluated", "count", len(rows), "evaluations of models of full size"
    yield "full-models", "count", len({row["model"] for row in rows}), "of so many models"
    yield "full-trusted", "count", len(trusted), "of the evaluations trusted"
    yield "full-worst", "nats", max(errors), "largest error of a trusted value"
    yield "full-off", "count", sum(error > 0.5 for error in errors), "off by more than half a nat"
    ais = max(abs(row["ais_error"]) for row in rows)
    yield "full-AIS-worst", "nats", ais, "largest error of AIS"
    held = sum(map(holds_truth, trusted))
    yield "full-held", "count", held, "trusted values whose interval holds"
    for minutes in (1, 4):
        timed = stored.rows("evaluate-full-size", minutes=minutes)
        yield f"full-evaluated-{minutes}", "count", len(timed), f"evaluations, {minutes} min"
        count = len(trusted_rows(timed))
        yield f"full-trusted-{minutes}", "count", count, f"of them trusted, {minutes} min"
    for model, name in (("Omniglot PCD(1000)", "Omniglot"), ("CD3(500)", "CD3-500")):
        timed = stored.rows("evaluate-full-size", model=model, minutes=4)
        count = len(trusted_rows(timed))
        yield f"full-{name}", "count", count, f"{model} trusted in four minutes"
    wide = trusted_rows(stored.rows("evaluate-full-size", model="CD3(500)"))
    off = fmean(row["value_error"] for row in wide)
    yield "full-CD3-500-off", "nats", off, "CD3(500): mean error of the trusted values"
    yield "full-CD3-500-known", "nats", wide[0]["truth_std_error"], "CD3(500): error of its truth"


# ---- the first paper's own images, weights and recipe


def lengths_that_fit(stored: Stored) -> dict[str, list[int]]:
    """The lengths at which all three numbers of a row of Table 1 are typical."""
    paths = by_model(stored.rows("sm2008-training-paths"))
    del paths["CD25(500)"]
    return {
        model: sorted(lengths_of_row(rows, model, PRINTED[model])) for model, rows in paths.items()
    }


@derived
def own_weights(stored: Stored) -> Numbers:
    """The authors' weights, and trainings by their recipe."""
    printed = printed_numbers(stored)
    longest = stored.row("raise-own-weights-by-k", start="base rates", steps=100_000)
    table = "raise2015/table-1/mnistcd25-500/base-rate"
    off = max(abs(longest[name] - printed[f"{table}-{name}"]) for name in ("ais", "raise"))
    yield "ends-off", "nats", off, "AIS and RAISE from their printed values, the larger distance"
    trained = stored.row("exact-binarization", model="as in training")
    for split in ("train", "test"):
        average = trained[split] - 451.28
        yield f"as-printed-{split}", "nats", average, f"{split} average with ln Z = 451.28"
    for model in ("mnistPCD-20", "mnistCD1-20"):
        table = f"raise2015/table-1/{model.lower()}"
        short = printed[f"{table}/exact"] - printed[f"{table}/csl"]
        what = f"printed CSL of {model}, short of exact"
        yield f"published-CSL-short-{model}", "nats", short, what
    for model, name in (("CD1(500)", "CD1-500"), ("CD3(500)", "CD3-500")):
        paper = printed[f"sm2008/table-1/{name.lower()}/test-estimate"]
        behind = paper - mean_at(stored, model, 10)
        yield f"behind-published-{name}", "nats", behind, f"{model} after ten epochs, below printed"
    rows = stored.rows("sm2008-training-paths", model="CD25(500)", epoch=250)
    far = max(max(abs(row["test"] + 86.34), abs(row["train"] + 83.10)) for row in rows)
    yield "CD25-500-seeds", "count", len(rows), "trainings of CD25(500) by its recipe"
    yield "CD25-500-off", "nats", far, "their averages from the printed ones, the largest distance"
    fits = lengths_that_fit(stored)
    yield "fits-CD1-20", "epochs", fits["CD1(20)"], "lengths at which the row of CD1(20) fits"
    first = [fits[model][0] for model in ("CD1(25)", "CD3(25)")]
    yield "fits-25", "epochs", first, "first lengths at which CD1(25) and CD3(25) fit"
    wide = fits["CD1(500)"] + fits["CD3(500)"]
    yield "fits-500", "epochs", wide, "lengths at which CD1(500) and CD3(500) fit"
    models = stored.rows("spacing-of-betas", schedule="of the 2008 paper")
    yield "spacing-models", "count", len(models), "models on which spacings are compared"


# ---- parallel tempering


BRACKETS = ("raise-table-1", "raise-table-2")


def ends_in_the_tables(stored: Stored) -> dict[str, Row]:
    """The rows of both tables of brackets, by model."""
    return {row["model"]: row for name in BRACKETS for row in stored.rows(name)}


def fates(stored: Stored, method: str) -> Counter[str]:
    """How many ends of AIS or of RAISE have each word of parallel tempering."""
    count = Counter[str]()
    for row in stored.rows("tempering-brackets"):
        reading = bracket_reading(row, ends_in_the_tables(stored)[row["model"]], PAPERS_IMAGES)
        parts = dict(part.split() for part in reading.split(", "))
        count[parts.get("both") or parts[method]] += 1
    return count


def error_ratio(stored: Stored, chain_steps: int) -> list[float]:
    """The 95 % interval of parallel tempering's error as a fraction of that of AIS."""
    budget = {"model": "CD25(500)", "chain_steps": chain_steps}
    tempering = stored.row("tempering-error", estimator="parallel tempering", **budget)
    ais = stored.row("tempering-error", estimator="AIS", **budget)
    ratio = (tempering["rmse"] / ais["rmse"]) ** 2
    dof = (tempering["repeats"], ais["repeats"])
    return [math.sqrt(ratio / fdtri(*dof, level)) for level in (0.975, 0.025)]


@derived
def tempering(stored: Stored) -> Numbers:
    """Parallel tempering beside AIS."""
    printed = printed_numbers(stored)
    for steps, sweeps in ((100_000, 1_000), (1_000_000, 10_000)):
        tempered = stored.row("tempering-error", estimator="parallel tempering", chain_steps=steps)
        rts = printed[f"carlson2016/figure-3/{sweeps}-sweeps/rts-rmse"]
        ratio = tempered["rmse"] / rts
        yield f"error-over-RTS-{steps}", "times", ratio, f"tempering's error over RTS's, {steps:,}"
        ratio = error_ratio(stored, steps)
        what = f"95 % interval of error over AIS's, {steps:,}"
        yield f"error-over-AIS-{steps}", "times", ratio, what
    ais = stored.row("tempering-error", estimator="AIS", chain_steps=100_000)
    held = round(ais["repeats"] * ais["coverage"])
    yield "AIS-held", "count", held, "AIS's intervals that hold, 100,000 chain-steps"
    ais_seconds = stored.column("tempering-seconds", "seconds", estimator="AIS")
    seconds = stored.column("tempering-seconds", "seconds", estimator="parallel tempering")
    longer = [value / ais_seconds[model] for model, value in seconds.items()]
    yield "step-takes", "times", ends(longer), "seconds of a chain-step over those of AIS"
    errors = stored.column("tempering-seconds", "rmse", estimator="RAISE").values()
    yield "RAISE-errors", "nats", ends(list(errors)), "RAISE's errors with a million chain-steps"
    ratios = stored.column("tempering-seconds", "ratio_interval", estimator="AIS").values()
    faster = sum(low > 1 for low, _ in ratios)
    yield "faster", "count", faster, "models on which tempering is faster than AIS"
    yield "timed-models", "count", len(ratios), "of so many"
    brackets_of = stored.rows("tempering-brackets")
    yield "tempering-brackets", "count", len(brackets_of), "brackets that tempering looked at"
    for method in ("AIS", "RAISE"):
        for fate, count in sorted(fates(stored, method).items()):
            yield f"{method}-{fate}", "count", count, f"ends of {method} that are {fate}"
    off = max(abs(row["ais_off"]) for row in brackets_of)
    yield "AIS-off-tempering", "nats", off, "AIS's ends from tempering's values, at most"
    row = stored.row("tempering-brackets", model="mnistCD1-20")
    yield "tempering-low", "nats", row["exact"] - row["ladder"], "tempering's average below exact"
    outside = row["interval"][0] - (row["log_z"] + row["ladder"] - row["exact"])
    yield "truth-outside", "nats", outside, "by how much the truth is outside its interval"


# ---- every estimator


@derived
def estimators(stored: Stored) -> Numbers:
    """Every estimator of ln Z with the same budgets."""
    study = stored.rows("estimator-study")
    bound = [
        row["median_error"]
        for row in study
        if row["estimator"] == "certified bound" and row["model"].endswith(("-20", "-25"))
    ]
    yield "bound-nearest", "nats", max(bound), "the certified bound on small models, at most"
    certified = stored.rows("estimator-study", estimator="certified bound", budget=100_000)
    within = sum(row["median_error"] <= 1 for row in certified)
    yield "bound-within-a-nat", "count", within, "models with the certified bound within a nat"
    models = {row["model"] for row in study}
    sampled = stored.rows("estimator-study", estimator="importance sampling")
    near = {row["model"] for row in sampled if row["median_error"] <= 1}
    for budget in (10_000, 100_000):
        rows = stored.rows("estimator-study", estimator="AIS", budget=budget)
        low = sum(mostly_low(row) == Word.CAME_OUT for row in rows)
        yield f"mostly-low-{budget}", "count", low, f"models on which AIS is mostly low, {budget:,}"
    least = min(row["below"] for row in rows)
    yield "fewest-below", "count", least, "runs of AIS below ln Z, on the model with the fewest"
    others = [row for row in rows if mostly_low(row) == Word.CANNOT_TELL]
    below = sum(row["below"] for row in others)
    runs = sum(row["repeats"] for row in others)
    yield "others-below", "count", below, "runs of AIS below ln Z where no model alone can tell"
    yield "others-runs", "count", runs, "of so many"
    above = ends([row["far_above"] for row in rows])
    what = "runs of AIS half a nat above, on the models with the fewest, most"
    yield "far-above", "count", above, what
    yield "study-of-estimators-models", "count", len(models), "models of the study"
    yield "importance-sampling-near", "count", len(near), "importance sampling is near on so many"
    yield from tempering_in_the_study(stored)
    hidden = [
        row["median_error"]
        for row in stored.rows("estimator-study", model="hidden-mode-784x501")
        if "start" not in row["estimator"]
    ]
    yield "hidden-mode-away", "nats", min(hidden), "the hidden mode, from the base rates, at least"
    without = stored.rows("deterministic-approximations")
    for name in ("tap", "bethe"):
        nearer = sum(abs(row[name]) < abs(row["mean_field"]) for row in without)
        yield f"{name}-nearer", "count", nearer, f"models on which {name} is nearer than mean field"
    far = sum(row["tree_reweighted"] > 300 for row in without)
    near_bound = len(without) - far
    yield "tree-reweighted-near", "count", near_bound, "models with the tree bound within 300 nats"


def tempering_in_the_study(stored: Stored) -> Numbers:
    """Parallel tempering beside AIS: with the same budget, and in the same time."""
    tempering = {"estimator": "parallel tempering", "budget": 100_000}
    ais_error = stored.column("estimator-study", "median_error", estimator="AIS", budget=100_000)
    error = stored.column("estimator-study", "median_error", **tempering)
    time = stored.column("estimator-study", "time", **tempering)
    seen = [model for model in ais_error if not model.startswith("hidden-mode")]
    nearer = sum(error[model] < ais_error[model] for model in seen)
    yield "seen-models", "count", len(seen), "models of the study without a hidden mode"
    yield "tempering-nearer", "count", nearer, "on so many tempering's median error is the smaller"
    # an error falls in proportion to one over the square root of the time
    faster = [m for m in seen if error[m] * math.sqrt(time[m]) < ais_error[m]]
    wide = [model for model in seen if "784x" in model or model.startswith("CD25")]
    what = "of these: tempering is nearer in the same time"
    faster_wide = sum(model in wide for model in faster)
    yield "wide-models", "count", len(wide), "of them with 500 hidden units or more"
    yield "tempering-nearer-wide", "count", faster_wide, what
    yield "small-known-models", "count", len(seen) - len(wide), "smaller ones"
    yield "tempering-nearer-small", "count", len(faster) - faster_wide, what
    yield "time-of-tempering", "times", ends([time[model] for model in seen]), "its time over AIS's"
    trained = [time[model] for model in seen if model.startswith("mnist-")]
    yield "time-of-tempering-trained", "times", ends(trained), "the same on small trained models"


# ---- differences of numbers that the papers print


@derived
def published_ratios(stored: Stored) -> Numbers:
    """The first paper's ratios of partition functions."""
    printed = printed_numbers(stored)
    table = "sm2008/table-1"
    ratio = "sm2008/section-5.1/cd1-20-over-cd1-25"
    better = printed[f"{table}/cd3-25/test-true"] - printed[f"{table}/cd1-25/test-true"]
    yield "published-CD3-over-CD1", "nats", better, "CD3(25) less CD1(25) as printed, exact"
    exact = printed[f"{table}/cd1-20/true-log-z"] - printed[f"{table}/cd1-25/true-log-z"]
    off = abs(printed[f"{ratio}/log-ratio"]) - exact
    yield "published-ratio-off", "nats", off, "the printed ratio of CD1(20) less its exact value"
    low, high = printed_interval(stored, f"{ratio}/interval-3-sigma")
    up = high - printed[f"{ratio}/log-ratio"]
    down = printed[f"{ratio}/log-ratio"] - low
    yield "published-arm-up", "nats", up, "its error bar, upwards"
    yield "published-arm-down", "nats", down, "its error bar, downwards"
    wide = "sm2008/section-5.1/cd25-500-over-cd3-500"
    apart = printed[f"{wide}/difference"] - printed[f"{wide}/log-ratio"]
    yield "published-ratios-apart", "nats", apart, "the printed difference less the direct estimate"


# ---- what the sentences on verdicts and orders rest on


@derived
def verdict_words(stored: Stored) -> Numbers:
    """What single brackets say, in a word."""
    one = stored.row("raise-table-1", model="mnistCD1-500")
    yield "verdict-mnistCD1-500", "", verdict_of(one, "base_rate"), "mnistCD1-500, base rates"
    deep = {row["model"]: row for row in stored.rows("raise-table-2")}
    for model, start in (
        ("MNIST DBM", "uniform"),
        ("MNIST DBM", "base_rate"),
        ("Omniglot DBM", "base_rate"),
        ("Omniglot DBN", "base_rate"),
    ):
        name = f"verdict-{model.replace(' ', '-')}-{start.replace('_', '-')}"
        yield name, "", verdict_of(deep[model], start), f"{model}, {start.replace('_', ' ')}"
    for model, steps in (
        ("omniPCD-1000", 100_000),
        ("mnistCD1-20", 1_000),
        ("mnistCD1-20", 10_000),
    ):
        row = stored.row("raise-figure-3", model=model, start="base rates", steps=steps)
        what = f"{model}, base rates, {steps:,} steps"
        yield f"verdict-{model}-{steps}", "", verdict_of(row), what


@derived
def orders(stored: Stored) -> Numbers:
    """Counts and distances that statements on an order or an agreement rest on."""
    rows = stored.rows("raise-table-1")
    closed = sum(verdict_of(row, "base_rate", tolerance=0.1) == "closed" for row in rows)
    yield "within-a-tenth", "count", closed, "RBMs with a gap within a tenth of a nat"
    deep = stored.rows("tempering-brackets")
    off = [row[end] for row in deep if "DBN" in row["model"] for end in ("ais_off", "raise_off")]
    yield "DBN-ends-off", "nats", max(map(abs, off)), "the DBNs' ends from tempering, at most"
    bound = stored.row("sm2008-table-2", model="Test DBN-CD25")["bound"]
    whole = bound + stored.row("dbn-bound-gap", model="DBN-CD25")["gap"]
    row = stored.row("raise-table-2", model="MNIST DBN")
    off = [abs(whole - row[f"{start}_ais"]) for start in ("uniform", "base_rate")]
    what = "chapter 7's log-probability from AIS's ends, at most"
    yield "bound-and-gap-off", "nats", max(off), what
    yield from training_orders(stored)
    missed = stored.rows("ais-coverage")
    too_low = sum(row["too_low"] for row in missed)
    yield "misses", "count", too_low, "experiments that missed, too low"
    warned = sum(row["missed_and_warned"] for row in missed)
    yield "misses-warned", "count", warned, "missed with a warning"
    interval = stored.row("sm2008-own-weights")["interval_3_sigma"]
    short = both_averages(stored)[0] - interval[1]
    yield "interval-short", "nats", short, "our first interval ends short of both averages"
    eight = stored.row("csl-kept-states", csl_states=8_000_000)
    below = eight["ais"] - eight["csl"]
    yield "CSL-below-AIS", "nats", below, "eight million states: CSL below AIS"
    sets = {row["model"]: row for row in stored.rows("one-minus-eight")}
    del sets["training images, anew"]
    far = min(max(row["lowest"] - 56.6, 56.6 - row["highest"]) for row in sets.values())
    yield "sets-off", "nats", far, "the other sets of images from 56.6, at least"
    choice = 10 * stored.row("one-minus-eight", model="test images, anew")["choice_error"]
    yield "choice-moves", "nats", choice, "error by the choice of a hundred images"
    better = [
        stored.row("tempering-error", estimator="parallel tempering", chain_steps=steps)["rmse"]
        < stored.row("tempering-error", estimator="AIS", chain_steps=steps)["rmse"]
        for steps in (10_000, 100_000, 1_000_000)
    ]
    yield "budgets-better", "count", sum(better), "budgets with the smaller error by tempering"
    slower = stored.column("tempering-seconds", "ratio_interval", estimator="SMC").values()
    yield "SMC-slower", "count", sum(low > 1 for low, _ in slower), "models on which SMC is slower"


def training_orders(stored: Stored) -> Numbers:
    """Lengths of training that fit the printed table, or pass its values."""
    fits = lengths_that_fit(stored)
    everywhere = set.intersection(*map(set, fits.values()))
    yield "fits-all", "count", len(everywhere), "lengths that fit all rows"
    yield "rows", "count", len(fits), "rows of Table 1 with a constant T"
    for epoch in (10, 50):
        count = sum(epoch in lengths for lengths in fits.values())
        yield f"rows-{epoch}", "count", count, f"rows that {epoch} epochs fit"
    wide = ("CD1(500)", "CD3(500)", "CD25(500)")
    worse = sum(mean_at(stored, model, 10) < mean_at(stored, model, 5) for model in wide)
    yield "worse-after-ten", "count", worse, "models of 500 units worse after ten epochs than five"
    of_seeds = stored.rows("sm2008-training-paths", model="CD1(500)")
    least = min(row["blank_share"] for row in of_seeds)
    yield "CD1-500-blank", "fraction", least, "least share of CD1(500)'s mass on blank pages"
    below = [row["epoch"] for row in of_seeds if row["test"] < -125.53]
    above = [row["epoch"] for row in of_seeds if row["test"] > -125.53]
    passes = [
        max(epoch for epoch in below if epoch not in above),
        min(epoch for epoch in above if epoch not in below),
    ]
    yield "CD1-500-passes", "epochs", passes, "no seed and each seed passes the printed value"
