"""What the pages say of results at the papers' size: the words, and what the records must then show.

`PROSE` is a table of claims. `test_prose` finds their words on the pages; if they are gone, the table has to follow the page.
`test_claims` holds them against the records; if these say otherwise, the page has to follow the records. What several pages say of the same
quantity, in whatever words, is in `statements`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from statistics import fmean, stdev

from scipy.special import fdtri

from boltzmann_companion.claims import ch06, ch07, ch10
from boltzmann_companion.claims.checks import AS_SAID, STORED, Checks, Claim, Row, Stored, inside
from boltzmann_companion.claims.claims import CLAIMS, Finding
from boltzmann_companion.rows import by_model
from boltzmann_companion.studies.bracket_tables import PAPERS_IMAGES, effective_chains, verdict_of
from boltzmann_companion.studies.open_brackets import bracket_reading
from boltzmann_companion.studies.same_recipe import PRINTED, by_seed, interval_at, lengths_of_row
from boltzmann_companion.studies.study import holds_truth, trusted_rows

BY_ID = {claim.id: claim for claim in CLAIMS}
# How a line ends that a cell prints.
ANSWERS = (": yes", f": no{AS_SAID}")


def said(places: Mapping[str, str | list[str]], judge: Callable[[Stored], bool]) -> Claim:
    """A claim by the words that say it on each page: its prose, or a line that a cell prints."""
    each = {page: [words] if isinstance(words, str) else words for page, words in places.items()}
    return Claim(judge, said=tuple((page, words) for page in each for words in each[page]))


def printed(page: str, checks: Checks, *words: str) -> Claim:
    """A claim that holds if those of stored records, which a chapter prints, come out as in those of these words that have an answer."""
    [claim] = [claim for claim in STORED if claim.judge is checks]

    def judge(stored: Stored) -> bool:
        answers = {each.line() for each in claim.found(stored)}
        return answers.issuperset(line for line in words if line.endswith(ANSWERS))

    return said({page: list(words)}, judge)


def near(value: float, said: float, within: float) -> bool:
    return abs(value - said) <= within


# ---- what takes more than a line to look up


def base_gap(stored: Stored, model: str) -> Row:
    return stored.row("raise-gaps", model=model, start="base rates")


def figure_3(stored: Stored, model: str, start: str) -> list[Row]:
    return stored.rows("raise-figure-3", model=model, start=start)


def coverage(stored: Stored, runs: int) -> list[Row]:
    return stored.rows("ais-coverage", runs=runs)


def spans(values: list[float], low: float, high: float, within: float = 0.005) -> bool:
    """Whether the values reach from `low` to `high`, as rounded in the prose."""
    return near(min(values), low, within) and near(max(values), high, within)


def gains(stored: Stored) -> dict[str, float]:
    return stored.column("sm2008-table-2", "gain")


def mixture_tests(
    stored: Stored, components: int, column: str = "test"
) -> dict[tuple[str, float], float]:
    """A column of `mixture-grid` by start and smoothing."""
    rows = stored.rows("mixture-grid", model=f"MoB({components})")
    return {(row["start"], row["smoothing"]): row[column] for row in rows}


def spread_of_seeds(stored: Stored) -> float:
    """From the worst to the best seed of ten components from noise."""
    tests = [row["test"] for row in stored.rows("mixture-starts")]
    return max(tests) - min(tests)


def rounded(row: Row, *columns: str) -> list[int]:
    """To whole nats, as a table of the prose has them."""
    return [round(row[column]) for column in columns]


def greedy_gains(stored: Stored) -> dict[str, float]:
    """What the second layer of the exact example gains from the transposed start."""
    last = stored.rows("dbn-greedy-bound", start="transposed")
    step = max(row["step"] for row in last)
    return {row["model"]: row["bound"] - row["rbm"] for row in last if row["step"] == step}


def dbn_and_rbm_published(stored: Stored) -> list[tuple[float, float]]:
    """What the RAISE paper prints for its MNIST DBN and for mnistCD25-500, by RAISE and by AIS."""
    printed = stored.column("reproduction-report", "published")
    dbn, rbm = "raise2015/table-2/mnist-dbn/uniform", "raise2015/table-1/mnistcd25-500/base-rate"
    return [(printed[f"{dbn}-{end}"], printed[f"{rbm}-{end}"]) for end in ("raise", "ais")]


def higher_log_z(stored: Stored) -> float:
    """By how much ln Z of DBN-CD3 is higher in the shorter runs than in Table 2's."""
    shorter = stored.row("dbn-annealed-layer", model="DBN-CD3")["upper_log_z"]
    return shorter - stored.row("sm2008-table-2", model="Test DBN-CD3")["log_z"]


def error_ratios(stored: Stored, models: list[str]) -> list[float]:
    """RAISE's error with 100 steps over that of Table 1."""
    few = stored.column("control-variates", "average_error", steps=100)
    many = stored.column("raise-table-1", "base_rate_raise_error")
    return [few[model] / many[model] for model in models]


def few_steps(stored: Stored, model: str) -> Row:
    """What the control variate does with a hundred steps."""
    return stored.row("control-variates", model=model, steps=100)


BOTH_LAYERS = "base rates of v and h2"


def behind(stored: Stored, model: str, start: str) -> float:
    """By how much ln Z of a DBM from this start ends below that from the base rates of both layers, with 10,000 steps."""
    log_z = {r["start"]: r["log_z"] for r in stored.rows("dbm-starts", model=model, steps=10_000)}
    return log_z[BOTH_LAYERS] - log_z[start]


def gap_from(stored: Stored, model: str, start: str) -> tuple[float, float]:
    """The gap of a DBM's bracket from this start with 10,000 steps, and its error."""
    row = stored.row("dbm-starts", model=model, start=start, steps=10_000)
    return row["gap"], row["gap_error"]


def between_starts(stored: Stored, model: str) -> float:
    """By how many standard errors the gap from the base rates of the pixels exceeds that from those of both layers."""
    pixels, both = (gap_from(stored, model, start) for start in ("base rates of v", BOTH_LAYERS))
    return (pixels[0] - both[0]) / math.hypot(pixels[1], both[1])


def mean_at(stored: Stored, model: str, epoch: int) -> float:
    """Mean over the seeds of the test average after so many epochs."""
    found = stored.rows("sm2008-training-paths", model=model, epoch=epoch, distrusted="no")
    return sum(row["test"] for row in found) / len(found)


def spread_at(stored: Stored, model: str, epoch: int) -> float:
    """By how much the best seed is ahead of the worst."""
    found = stored.rows("sm2008-training-paths", model=model, epoch=epoch, distrusted="no")
    return max(row["test"] for row in found) - min(row["test"] for row in found)


def lengths_that_fit(stored: Stored) -> dict[str, set[int]]:
    """Of the rows of Table 1 with a constant T: the lengths at which all three numbers are typical."""
    paths = by_model(stored.rows("sm2008-training-paths"))
    del paths["CD25(500)"]
    return {model: lengths_of_row(own, model, PRINTED[model]) for model, own in paths.items()}


def of_cd25(stored: Stored) -> list[Row]:
    """Our trainings of CD25(500), at the length that the recipe implies."""
    return stored.rows("sm2008-training-paths", model="CD25(500)", epoch=250)


def intervals_held(stored: Stored, estimator: str, budget: int) -> tuple[int, int, int, int]:
    """On models without a hidden mode: how many 95 % intervals held, of how many; the same without a warning."""
    row = stored.row(
        "estimator-coverage", models="no hidden mode", estimator=estimator, budget=budget
    )
    held, unwarned = row["held_95"] * row["runs"], row["unwarned_95"] * row["unwarned"]
    return round(held / 100), row["runs"], round(unwarned / 100), row["unwarned"]


def silently_wrong(stored: Stored, models: str, *estimators: str) -> tuple[int, int]:
    """How many runs with any budget were wrong and trusted, of how many."""
    rows = [
        row
        for row in stored.rows("estimator-trust", models=models)
        if row["estimator"] in estimators
    ]
    return sum(row["wrong, trusted"] for row in rows), sum(row["runs"] for row in rows)


def joint_errors(stored: Stored, in_same_time: bool) -> dict[str, float]:
    """The geometric mean of every estimator's errors with 100,000 chain-steps, or with as many as it makes in the time of AIS."""
    logs: dict[str, list[float]] = {}
    for row in stored.rows("estimator-study", budget=100_000):
        if row["model"] != "hidden-mode-784x501" and row["estimator"] != "certified bound":
            error = row["median_error"] * (math.sqrt(row["time"]) if in_same_time else 1)
            logs.setdefault(row["estimator"], []).append(math.log(error))
    return {name: math.exp(sum(own) / len(own)) for name, own in logs.items()}


def warned_share(stored: Stored, budget: int) -> dict[str, float]:
    """By estimator, the share of its runs that have a warning."""
    rows = stored.rows("estimator-trust", budget=budget)
    total: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    for row in rows:
        total[row["estimator"]] += row["runs"]
        warned[row["estimator"]] += row["right, suspected"] + row["wrong, suspected"]
    return {name: warned[name] / total[name] for name in total}


def at_equal_cost(stored: Stored, estimator: str, chain_steps: int) -> Row:
    """The errors of an estimator on the authors' CD25(500)."""
    return stored.row(
        "tempering-error", model="CD25(500)", estimator=estimator, chain_steps=chain_steps
    )


def error_ratio(stored: Stored, chain_steps: int) -> list[float]:
    """The 95 % interval of parallel tempering's error as a fraction of that of AIS on CD25(500)."""
    tempering, ais = (
        at_equal_cost(stored, name, chain_steps) for name in ("parallel tempering", "AIS")
    )
    ratio, free = (tempering["rmse"] / ais["rmse"]) ** 2, (tempering["repeats"], ais["repeats"])
    return [math.sqrt(ratio / fdtri(*free, level)) for level in (0.975, 0.025)]


def of_seconds(stored: Stored, estimator: str, column: str) -> Row:
    """A column of `tempering-seconds` for an estimator, by model."""
    return {
        row["model"]: row[column] for row in stored.rows("tempering-seconds", estimator=estimator)
    }


def found_by(stored: Stored, claim_id: str) -> Finding:
    """The finding for one of the papers' claims."""
    [claim] = [claim for claim in CLAIMS if claim.id == claim_id]
    return claim.found(stored)


def said_of(stored: Stored, start: str) -> dict[str, int]:
    """What the brackets of the RBMs from a start say, and how often."""
    return Counter(verdict_of(row, start) for row in stored.rows("raise-table-1"))


def base_brackets(stored: Stored) -> dict[str, int]:
    """What the brackets from base rates say that chapter 13 counts.

    CD25(500) has the authors' weights, and DBNs have no such row in the paper.
    """
    rows = [r for r in stored.rows("raise-table-1") if r["model"] != "mnistCD25-500"]
    rows += stored.rows("raise-own-weights")
    rows += [r for r in stored.rows("raise-table-2") if r["model"].endswith("DBM")]
    return Counter(verdict_of(row, "base_rate") for row in rows if row["steps"] == 100_000)


def gain_by_tempering(stored: Stored) -> tuple[float, float]:
    """What the second layer gains on CD25(500) in log-probability, with parallel tempering's ln Z, and its 95 % error."""
    above, below = (
        stored.row("tempering-brackets", model=m) for m in ("MNIST DBN", "mnistCD25-500")
    )
    half = [(row["interval"][1] - row["interval"][0]) / 2 for row in (above, below)]
    return above["ladder"] - below["ladder"], math.hypot(*half)


def ends_found(stored: Stored, method: str) -> dict[str, str]:
    """What parallel tempering says of AIS's or RAISE's end of each bracket."""
    ends = {}
    for row in stored.rows("tempering-brackets"):
        said = bracket_reading(row, ends_in_the_tables()[row["model"]], PAPERS_IMAGES)
        fates = dict(part.split() for part in said.split(", "))
        ends[row["model"]] = fates.get("both") or fates[method]
    return ends


@cache
def ends_in_the_tables() -> dict[str, Row]:
    """The rows of both tables of brackets, as they are committed, by model."""
    given = Stored()
    return {
        row["model"]: row for name in ("raise-table-1", "raise-table-2") for row in given.rows(name)
    }


def spaced(stored: Stored, model: str, column: str = "variance") -> list[float]:
    """A column of the record about the spacing of the betas: with that of the 2008 paper, and with even spacing."""
    schedules = ("of the 2008 paper", "evenly spaced")
    rows = [stored.row("spacing-of-betas", model=model, schedule=name) for name in schedules]
    return [row[column] for row in rows]


def above_tempering(stored: Stored, steps: int) -> float:
    """By how much AIS from uniform pixels puts ln Z of the Omniglot DBN above parallel tempering."""
    place = {"model": "Omniglot DBN", "start": "uniform", "steps": steps}
    uniform = stored.row("raise-figure-7", **place)["ais"]
    return stored.row("tempering-brackets", model="Omniglot DBN")["ladder"] - uniform


def fresh(stored: Stored) -> list[Row]:
    """The authors' model on images that were binarised anew."""
    return [row for row in stored.rows("exact-binarization") if row["model"] != "as in training"]


def by_images(stored: Stored) -> dict[str, Row]:
    """Ones less eights under the authors' weights, by set of images."""
    return {row["model"]: row for row in stored.rows("one-minus-eight")}


def averages_meet(row: Row) -> tuple[float, float]:
    """The interval of ln Z that gives both published averages, -83.10 and -86.34, to the last digit; its ends are in the wrong order if none does."""
    over = [row["train"] + 83.10, row["test"] + 86.34]
    return max(over) - 0.005, min(over) + 0.005


def both_averages(stored: Stored) -> tuple[float, float]:
    """This interval for the images of the training."""
    return averages_meet(stored.row("exact-binarization", model="as in training"))


def longest_own(stored: Stored, start: str = "base rates") -> Row:
    """The authors' weights at the paper's K."""
    return stored.row("raise-own-weights-by-k", start=start, steps=100_000)


def trusted(stored: Stored, study: str = "evaluate-study") -> list[Row]:
    """The evaluations of a study of `evaluate` that were trusted, right or wrong."""
    return [r for r in stored.rows(study) if r["outcome"].endswith(", trusted")]


HELD_OUT = "evaluate-study-held-out"
DEEP = "evaluate-study-deep"
FULL_SIZE = "evaluate-full-size"


def trusted_and_right(stored: Stored) -> bool:
    """Whether of 540 evaluations in both studies, 264 of models drawn at random, 338 were trusted, all of them right."""
    found = trusted(stored) + trusted(stored, HELD_OUT)
    return (
        len(stored.rows("evaluate-study")) == 276
        and len(stored.rows(HELD_OUT)) == 264
        and len(found) == 338
        and all(abs(row["value_error"]) < 1 for row in found)
    )


def right(stored: Stored, *studies: str) -> list[Row]:
    """The evaluations of some studies of `evaluate` that are within a nat of the truth."""
    return [r for study in studies for r in stored.rows(study) if abs(r["value_error"]) <= 1]


def silently_missed(stored: Stored, start: str) -> bool:
    """Whether the interval of the ratio from this start misses the truth without a warning."""
    row = stored.row("sm2008-ratios", start=start)
    low, high = row["interval_3_sigma"]
    return not low <= row["exact"] <= high and row["warnings"] == "none"


# fmt: off
PROSE = [
    # 05: exact partition functions
    said({"05": "number of epochs alone moves them by some eight nats"},
     lambda s: all(
         near(max(v) - min(v), 8.4, 0.5)
         for m in ("CD1(25)", "CD3(25)")
         for v in [[r["test"] for r in s.rows("sm2008-training-path", model=m) if r["epoch"] >= 100]])),
    said({"05": "better by some thirteen nats"},
     lambda s: near(s.row("sm2008-table-1", model="CD1(20)")["test_exact"] + 164.52, 13.5, 0.5)),
    said({"05": "their $\\ln Z$ differ by more than a hundred nats"},
     lambda s: s.row("sm2008-ratios", start="exact draws")["exact"] < -100),
    said({"05": ["there a single run carries the whole estimate",
                 "the other way round, the library warns: yes"]},
     lambda s: (r := s.row("sm2008-ratios", start="exact draws of the other model, sign turned"))["effective_sample_size"] < 2 and r["warnings"] != "none"),
    said({"05": ["come within 0.2 nats of it, and every 3-sigma interval holds it",
                 "all three intervals hold the exact value"]},
     lambda s: all(near(r["log_z"], r["exact_log_z"], 0.2) and r["interval_3_sigma"][0] <= r["exact_log_z"] <= r["interval_3_sigma"][1]
                   for r in s.rows("sm2008-table-1"))),
    said({"05": ["Ten thousand runs come within 0.02 nats; ten runs of CD1(20) miss by four, with a warning",
                 "its estimate is four nats too low, with a warning",
                 "with 10,000 runs every estimate is within 0.1 nats of the truth: yes"]},
     lambda s: all(near(r["log_z"], r["exact_log_z"], 0.02) for r in s.rows("sm2008-figure-3", runs=10_000))
     and near((r := s.row("sm2008-figure-3", model="CD1(20)", runs=10))["exact_log_z"] - r["log_z"], 4, 0.1) and r["warned"] == "yes"),
    said({"05": ["The runs are worth 48, 41 and 10",
                 "But the hundred runs of CD1(20) are worth only ten, and the library says so"]},
     lambda s: [round(r["effective_sample_size"]) for r in s.rows("sm2008-table-1")] == [48, 41, 10]
     and s.row("sm2008-table-1", model="CD1(20)")["warnings"] != "none"),
    said({"05": ["On MNIST ours is more than three nats too low, even from exact draws",
                 "It makes no difference that the start was exact",
                 "from exact draws of CD1(25), more than 3 nats too low: yes",
                 "from CD1(25) neither interval holds the truth, and nothing warns: yes"]},
     lambda s: silently_missed(s, "exact draws") and (r := s.row("sm2008-ratios", start="exact draws"))["log_ratio"] < r["exact"] - 3),
    said({"05": "CD1(25) and CD3(25) are met at many lengths from 15 epochs on, and CD1(20) after 30 and from 70 on"},
     lambda s: all(min((fits := lengths_that_fit(s))[m]) == 15 and len(fits[m]) >= 4 for m in ("CD1(25)", "CD3(25)"))
     and min(fits["CD1(20)"] - {30}) == 70 and 30 in fits["CD1(20)"]),
    # 06: full-size RBMs
    said({"06": "CD1(500) passes its value between 40 and 50 epochs"},
     lambda s: s.row("sm2008-training-path-full-size", model="CD1(500)", epoch=40)["test"] < -125.53
     < s.row("sm2008-training-path-full-size", model="CD1(500)", epoch=50)["test"]),
    said({"06": "every seed of CD1(500) has practically all of its probability there, and after 50 epochs nine of ten seeds of CD3(500) "
                "have most of it there",
          "15": "Every training of CD1(500), at every length, puts practically all of its probability on nearly blank pages"},
     lambda s: all(0.95 < r["blank_share"] <= 1.01 for r in s.rows("sm2008-training-paths", model="CD1(500)"))
     and sum(r["blank_share"] > 0.5 for r in s.rows("sm2008-training-paths", model="CD3(500)", epoch=50)) == 9),
    printed("06", ch06.two_directions_on_mnist, "they do not look as AIS says they should",
            "CD25(500)/CD3(500): the start's chains look as AIS says they should: no, as the text says"),
    said({"06": "with ten runs they hold the truth in 29 to 58 % of the experiments, with a hundred in 64 to 81 %",
          "what-we-learned": "it holds the truth in 29 to 58 % of the experiments. With a hundred runs, the paper's number, it is 64 to "
                             "81 %"},
     lambda s: spans([r["covered"] for r in coverage(s, 10)], 0.29, 0.58, 0.006) and spans([r["covered"] for r in coverage(s, 100)], 0.64, 0.81)),
    said({"06": "On MNIST the library warned about every one of them, but with ten runs it warned about nearly all experiments",
          "what-we-learned": "All misses are on the same side, and the library warned of every one of them"},
     lambda s: all(r["missed_and_warned"] == r["too_low"] and r["too_high"] == 0 for r in s.rows("ais-coverage"))
     and all(0.99 <= r["warned"] <= 1 for r in coverage(s, 10))),
    said({"06": "by 3.7 nats from the worst to the best of nine"},
     lambda s: near(spread_of_seeds(s), 3.7, 0.1) and len(s.rows("mixture-starts")) == 9),
    said({"06": "mixtures with 100 and 500 components are better by 7 and 12 nats"},
     lambda s: near((t := s.column("sm2008-mixtures", "test"))["MoB(100), started at images"] - t["MoB(100)"], 7, 0.5)
     and near(t["MoB(500), started at images"] - t["MoB(500)"], 12, 0.5)),
    said({"06": "With ten components neither matters more than the seed"},
     lambda s: max(v := list(mixture_tests(s, 10).values())) - min(v) < spread_of_seeds(s)),
    said({"06": ["the start at images alone brings about six nats with the larger smoothing, and about three with the smaller one",
                 "Less smoothing alone brings more than three nats from noise, and half a nat from images"],
          "what-we-learned": "the start at images alone brings three or six nats, and less smoothing alone a half or more than three, depending on the other"},
     lambda s: near((t := mixture_tests(s, 100))["images", 2.0] - t["noise", 2.0], 6, 0.3) and near(t["images", 0.1] - t["noise", 0.1], 3, 0.3)
     and 3 < t["noise", 0.1] - t["noise", 2.0] < 4 and near(t["images", 0.1] - t["images", 2.0], 0.5, 0.1)),
    said({"06": "44 of the hundred explain no training image with the larger smoothing, and 21 with the smaller"},
     lambda s: 50 < (u := mixture_tests(s, 100, "used"))["noise", 2.0] < 60 and near(u["noise", 0.1], 80, 3)
     and u["images", 2.0] == u["images", 0.1] == 100),
    said({"06": "Training less test is below a nat with a hundred components, however they are trained, and slightly negative with ten; with "
                "500 that were started at images it is four nats"},
     lambda s: all(-0.5 < r["train"] - r["test"] < 0 for r in s.rows("mixture-grid", model="MoB(10)"))
     and all(0 < r["train"] - r["test"] < 1 for r in s.rows("mixture-grid", model="MoB(100)"))
     and near((r := s.row("sm2008-mixtures", model="MoB(500), started at images"))["train"] - r["test"], 4, 0.5)),
    said({"06": ["a mixture with 500 components that was started well matches the published CD1(500), at $-125.53$ nats",
                 "reaches $-125.37$ nats with 500 components"],
          "what-we-learned": "reaches −125.37 nats on test images, exactly"},
     lambda s: near(test := s.column("sm2008-mixtures", "test")["MoB(500), started at images"], -125.37, 0.005) and near(test, -125.53, 0.5)),
    said({"06": "while fresh binarisations miss the training value by 2.6 nats",
          "errata": "Fresh binarisations miss the training value by more than two nats"},
     lambda s: all(near(-83.1 - (r["train"] - 451.27), 2.6, 0.1) for r in fresh(s))),
    said({"06": "reach $-121.56$, $-100.80$ and $-86.25$ nats by AIS"},
     lambda s: all(near(s.column("sm2008-table-1-full-size", "test")[m], said, 0.005)
                   for m, said in (("CD1(500)", -121.56), ("CD3(500)", -100.8), ("CD25(500)", -86.25)))),
    said({"06": "it takes CD1(500) from $-191$ nats after 10 epochs to $-105$ after 300"},
     lambda s: all(near(s.row("sm2008-training-path-full-size", model="CD1(500)", epoch=epoch)["test"], said, 0.5)
                   for epoch, said in ((10, -191), (300, -105)))),
    said({"06": "so the bound lies nats below the estimates: by two, five and thirteen on MNIST"},
     lambda s: [round(r["log_z"] - r["lower_bound"]) for r in s.rows("sm2008-table-1-full-size")] == [2, 5, 13]),
    said({"06": "The two directions are 0.8 nats apart, and the difference of the separate estimates fits both"},
     lambda s: near(sum(s.column("sm2008-ratios-full-size", "log_ratio").values()), -0.8, 0.05)
     and all(r["difference_interval"][0] < r["interval_3_sigma"][1] and r["interval_3_sigma"][0] < r["difference_interval"][1]
             for r in s.rows("sm2008-ratios-full-size"))),
    said({"06": "All 60 experiments without a warning hold the truth"},
     lambda s: round(sum((1 - r["warned"]) * r["groups"] for r in s.rows("ais-coverage"))) == 60
     and all(r["missed_and_warned"] == r["too_low"] + r["too_high"] for r in s.rows("ais-coverage"))),
    said({"06": "are worth 43 to 63, without a warning"},
     lambda s: spans([r["effective_sample_size"] for r in s.rows("sm2008-table-1-full-size")], 43, 63, 0.5)
     and all(r["warnings"] == "none" for r in s.rows("sm2008-table-1-full-size"))),
    # 07: deep belief networks
    said({"07": ["a second layer on MNIST makes up for 18 nats of what CD-1 left undone, and adds nothing to an RBM that was trained "
                 "well, as in the paper",
                 "Ours are smaller: 18 nats on CD1(500), where the paper has at least 25",
                 "on CD25(500) nothing, as in the paper"],
          "what-we-learned": "By this bound ours gains 18 nats on CD1(500), where the paper has at least 25, and nothing on CD25(500), as"
                             " in the paper",
          "13": "A second layer on CD1(500) gains less than the paper's"},
     lambda s: near(gains(s)["Test DBN-CD1"], 18, 0.5) and near(gains(s)["Test DBN-CD25"], 0, 1)),
    said({"07": ["the estimate of $\\ln Z$ rests on seven effective runs",
                 "500 runs are worth seven",
                 "its bound in Table 2 is no estimate of a gain"],
          "what-we-learned": "For CD3(500) the estimate rests on seven of 500 runs"},
     lambda s: near(s.row("sm2008-table-2", model="Test DBN-CD3")["effective_sample_size"], 7, 0.5)),
    said({"07": ["the log-probability of DBN-CD25 is two nats above its RBM's, 1.95 ± 0.32 by parallel tempering",
                 "DBN-CD25 (there the MNIST DBN) gains 1.95 nats on all test images, with a 95 % error of 0.32"],
          "13": "On CD25(500) it gains nothing by the bound, as in the paper, and two nats in log-probability",
          "what-we-learned": "In log-probability our DBN on CD25(500) gains 1.8 nats by importance sampling, and 1.95 with a 95 % error "
                             "of 0.32 by parallel tempering"},
     lambda s: near((found := gain_by_tempering(s))[0], 1.95, 0.005) and near(found[1], 0.32, 0.005) and gains(s)["Test DBN-CD25"] < 0
     and near(s.column("dbn-bound-gap", "gain")["DBN-CD25"], 1.8, 0.05)),
    said({"07": ["log-probabilities of a DBN of the same sizes: $-84.67$ by RAISE and $-84.49$ by AIS, where their mnistCD25-500 has "
                 "$-86.39$ and $-86.35$. A gain of 1.7 to 1.9 nats was thus published in 2015",
                 "The RAISE paper's numbers, too, put a DBN of these sizes nearly two nats above mnistCD25-500"],
          "what-we-learned": "is 1.7 nats above its CD25(500) by RAISE, and 1.9 by AIS"},
     lambda s: (ends := dbn_and_rbm_published(s)) == [(-84.67, -86.39), (-84.49, -86.35)] and spans([dbn - rbm for dbn, rbm in ends], 1.7, 1.9, 0.05)),
    said({"07": ["| DBN-CD1 | −122 | −103 | 18 | 24.9 | 23 |", "| DBN-CD3 | −101 | −99 | no estimate | 7.2 | no estimate |",
                 "| DBN-CD25 | −86 | −87 | −0.7 | 0.1 | 1.8 |"]},
     lambda s: [rounded(s.row("sm2008-table-2", model=f"Test DBN-{m}"), "rbm", "bound") for m in ("CD1", "CD3", "CD25")]
     == [[-122, -103], [-101, -99], [-86, -87]] and near(gains(s)["Test DBN-CD1"], 18, 0.5) and near(gains(s)["Test DBN-CD25"], -0.7, 0.05)
     and near(s.column("dbn-bound-gap", "gain")["DBN-CD1"], 23, 0.5) and near(s.column("dbn-bound-gap", "gain")["DBN-CD25"], 1.8, 0.05)),
    said({"07": "in log-probability it gains 23 and two"},
     lambda s: near(s.column("dbn-bound-gap", "gain")["DBN-CD1"], 23, 0.5) and near(gain_by_tempering(s)[0], 2, 0.1)),
    said({"07": ["less than three hundredths of a nat. The one that CD-1 spoilt draws hidden states that the data never call up, and a "
                 "second layer gains two thirds of a nat",
                 "The exact example gains 0.03 nats on a good first layer and 0.67 on a spoilt one"]},
     lambda s: near((g := greedy_gains(s))["likelihood"], 0.03, 0.0051) and 0 < g["likelihood"] < 0.03 and near(g["CD-1"], 0.67, 0.005)),
    said({"07": "For three of the four models a few of the runs from the side of $\\mathbf h^1$ carry all the weight, and $\\ln \\hat Z$ is "
                "nats lower"},
     lambda s: sum(r["lower_effective"] < 3 and r["lower_log_z"] < r["upper_log_z"] - 2 for r in s.rows("dbn-annealed-layer")) == 3),
    said({"07": ["After a random start the bound leaves out between 2.5 and 4.6 nats, and after the transposed start 0.4",
                 "The bound leaves out 2.5 to 4.6 nats after a random start"]},
     lambda s: spans([(g := s.column("dbn-bound-gap", "gap"))[m] for m in ("DBN-CD1", "DBN-CD3", "DBN-CD25")], 2.5, 4.6, 0.05)
     and near(g["DBN-CD25, W2 from W1 transposed"], 0.4, 0.05)),
    said({"07": "Already with five draws the scatter is far below the standard error that comes from the choice of images"},
     lambda s: all(r["scatter"] < r["between_images"] / 4 for r in s.rows("dbn-monte-carlo", draws=5))),
    said({"07": "found a $\\ln Z$ that is higher by two and a half nats than the longer runs of {numref}`tab-07-table-2`. With it the "
                "bound of DBN-CD3 would lie below its RBM"},
     lambda s: near(higher_log_z(s), 2.5, 0.1) and gains(s)["Test DBN-CD3"] < higher_log_z(s)),
    said({"07": "The RBMs' values are those of ["},
     lambda s: all(near(s.row("sm2008-table-2", model=f"Test DBN-{m.split('(')[0]}")["rbm"], v, 0.005)
                   for m, v in s.column("sm2008-table-1-full-size", "test").items())
     and near(s.row("sm2008-table-2", model="Test DBN-CD1")["rbm"], -121.56, 0.005)),
    said({"07": "By importance sampling all four DBNs lie above their RBMs on these images, DBN-CD25 by nearly two nats"},
     lambda s: min((g := s.column("dbn-bound-gap", "gain")).values()) > 0 and near(g["DBN-CD25"], 1.8, 0.1)),
    said({"07": "For the trained one, which had a single epoch, AIS itself says that its estimate of $\\ln Z$, and with it the bound, is "
                "not to be trusted"},
     lambda s: all(r["warnings"] != "none" and math.isinf(r["ais_error"][0])
                   for r in s.rows("dbn-three-layers") if "three layers, W3" in r["model"])),
    # 08: RAISE
    said({"08": ["with the paper's 100,000 steps, AIS and RAISE meet within half a nat for four of six RBMs on MNIST and Omniglot "
                 "({numref}`fig-08-key`). Of the other two, one bracket stays open by four nats, and in one RAISE lies above AIS by 1.1",
                 "From the base rates four of six brackets on MNIST and Omniglot are closed",
                 "From the base rates four of the six brackets are closed, and that of mnistCD1-500 is open. For mnistCD1-20 RAISE lies above AIS "
                 "by 1.1 nats, with an error of 0.13, so that one cannot tell"]},
     lambda s: len(g := s.column("raise-table-1", "base_rate_gap")) == 6 and sum(abs(gap) <= 0.5 for gap in g.values()) == 4
     and said_of(s, "base_rate") == {"closed": 4, "open": 1, "cannot tell": 1} and near(g["mnistCD1-500"], 4, 0.2)
     and verdict_of(r := s.row("raise-table-1", model="mnistCD1-20"), "base_rate") == "cannot tell" and near(r["base_rate_gap"], -1.1, 0.05)
     and near(r["base_rate_gap_error"], 0.13, 0.005) and {r["steps"] for r in s.rows("raise-table-1")} == {100_000}),
    said({"08": "From the uniform start two are closed and one is open. Of the other three nothing can be said: two rest on fewer than nine "
                "effective chains of AIS, and the gap of the third is too near to a nat"},
     lambda s: said_of(s, "uniform") == {"closed": 2, "open": 1, "cannot tell": 3}
     and sum(effective_chains(r["uniform_ais_error"]) < 9 for r in s.rows("raise-table-1")) == 2),
    said({"08": "the bracket may cross, as for our mnistCD1-20 with 1,000 and 10,000 steps"},
     lambda s: [r["steps"] for r in figure_3(s, "mnistCD1-20", "base rates") if verdict_of(r) == "crossed"] == [1_000, 10_000]),
    said({"08": "From uniform pixels they are as much as 42 nats apart"},
     lambda s: near(max(s.column("raise-table-1", "uniform_gap").values()), 42, 0.5)),
    said({"08": "CSL is 10 to 73 nats below RAISE from the base rates for five models. For mnistPCD-20 it meets the exact value within its error of 0.2 nats"},
     lambda s: spans([r["base_rate_raise"] - r["csl"] for r in s.rows("raise-table-1") if r["model"] != "mnistPCD-20"], 10, 73, 0.5)
     and near((r := s.row("raise-table-1", model="mnistPCD-20"))["csl"], r["exact"], r["csl_error"]) and near(r["csl_error"], 0.2, 0.05)),
    said({"08": "at the paper's $K$ the uniform start leaves 11 nats between the two, and the base rates leave 4. "
                "Its AIS curve levels off, too: it ends six nats above that of the base rates"},
     lambda s: near((r := s.row("raise-table-1", model="mnistCD1-500"))["uniform_gap"], 11, 0.5) and near(r["base_rate_gap"], 4, 0.5)
     and near(r["uniform_ais"] - r["base_rate_ais"], 6, 0.1) and near((c := figure_3(s, "mnistCD1-500", "uniform"))[-1]["ais"], c[-2]["ais"], 0.5)),
    said({"08": ["RAISE is highest at $K = 100$, 5.7 nats above the exact value, and still 1.1 nats above it at $K = 100{,}000$",
                 "the exception of the paper's Figure 5 is seen in our model, too: yes"]},
     lambda s: near((peak := max(s.rows("raise-figure-5"), key=lambda r: r["raise"] - r["exact"]))["raise"] - peak["exact"], 5.7, 0.05)
     and peak["steps"] == 100 and near((r := s.row("raise-figure-5", steps=100_000))["raise"] - r["exact"], 1.1, 0.05)),
    said({"08": "With 10,000 steps from the base rates the brackets of omniPCD-1000 and mnistCD1-500 are open; ten times the steps close the first, "
                "and hardly move the second"},
     lambda s: [[verdict_of(r) for r in figure_3(s, m, "base rates")[-2:]] for m in ("omniPCD-1000", "mnistCD1-500")] == [["open", "closed"], ["open", "open"]]
     and [r["steps"] for r in figure_3(s, "mnistCD1-500", "base rates")[-2:]] == [10_000, 100_000]
     and near((r := figure_3(s, "mnistCD1-500", "base rates"))[-1]["gap"], r[-2]["gap"], r[-1]["gap_error"])),
    said({"08": "In mnistCD1-500 half of the images are within a nat, and the largest tenth of the gaps makes up most of the mean"},
     lambda s: (r := base_gap(s, "mnistCD1-500"))["median"] < 1 and r["worst_tenth"] / 10 > r["gap"] / 2),
    said({"08": "This model puts practically all of its probability on pages with hardly a pixel on"},
     lambda s: 0.99 < s.row("raise-table-1", model="mnistCD1-500")["blank_share"] <= 1),
    said({"08": "moves by less than a hundredth of a nat, and 99 in 100 of its runs count"},
     lambda s: abs((r := figure_3(s, "mnistCD1-500", "base rates"))[-1]["ais"] - r[-2]["ais"]) < 0.01
     and near(r[-1]["effective_sample_size"] / 5_000, 0.99, 0.005)),
    said({"08": "Every image is short by about as much, and one to three of the 5,000 AIS chains make up the whole estimate",
          "what-we-learned": "one to three of the uniform start's chains make up the whole estimate"},
     lambda s: near((r := s.row("raise-gaps", model="mnistPCD-20", start="uniform"))["median"], r["gap"], 0.5) and near(r["gap"], 42, 0.5)
     and all(1 <= r["effective_sample_size"] < 3 for r in figure_3(s, "mnistPCD-20", "uniform"))),
    # 09: control variates
    said({"09": "their hundred images are worth about a thousand"},
     lambda s: all(900 < s.column("control-variates", "equivalent", steps=100)[m] < 1_500
                   for m in ("mnistCD1-500", "mnistPCD-500", "mnistCD25-500"))),
    said({"09": "with ten steps the MNIST DBN's average is worse with the control variate than without"},
     lambda s: (r := s.row("control-variate-few-steps", model="MNIST DBN"))["alpha"] + 3 * r["alpha_error"] < 0.5
     and 0 < s.row("control-variates", model="MNIST DBN", steps=10)["reduction"] < 1),
    said({"09": "our standard errors are five times smaller than those in {numref}`tab-09-models` for the two models with 20 hidden units, and 12 to 29 "
                "times for three of the others"},
     lambda s: spans(error_ratios(s, ["mnistCD1-20", "mnistPCD-20"]), 5, 5, 0.5)
     and spans(error_ratios(s, ["mnistPCD-500", "mnistCD25-500", "omniPCD-1000"]), 12, 29, 0.5)),
    said({"09": "For mnistCD1-500 they are no smaller"},
     lambda s: near(error_ratios(s, ["mnistCD1-500"])[0], 1, 0.05)),
    said({"09": "MNIST's first hundred test images are easier than the rest, for every model"},
     lambda s: all(1 < easier < 4 for easier in s.column("digit-classes", "first_images").values())),
    said({"09": "leaves a standard error of 2.5 to 4.3 nats in the average by RAISE. The control variate brings it down to between 0.3 "
                "and 1.3 nats"},
     lambda s: spans([few_steps(s, m)["plain_error"] for m in s.column("raise-table-1", "csl")], 2.5, 4.35, 0.05)
     and spans([few_steps(s, m)["average_error"] for m in s.column("raise-table-1", "csl")], 0.3, 1.3, 0.05)),
    said({"09": "Its gain is larger for all ten models with 300 steps than with 100"},
     lambda s: len(many := s.column("control-variates", "reduction", steps=300)) == 10
     and all(many[m] > few_steps(s, m)["reduction"] > 0 for m in many)),
    said({"09": "agrees for eight of its ten models: even a single step"},
     lambda s: sorted(r > 2 for r in s.column("control-variates", "reduction", steps=1).values()) == [False] * 2 + [True] * 8),
    said({"09": ["the printed variance is $-6.21$ nats² where the simulation finds 8.79",
                 "the printed variance is negative at alpha = 1: yes"]},
     lambda s: near((r := s.row("control-variate-variance", alpha=1.0))["printed"], -6.21, 0.005) and near(r["simulated"], 8.79, 0.005)),
    said({"09": "For mnistCD1-20 it is positive and six nats long"},
     lambda s: near(s.row("control-variate-coverage", model="mnistCD1-20", estimate="α = 1")["raise_error"], 6, 0.1)),
    said({"09": "holds the exact value of mnistPCD-20 nearly as often as it should, merely because it is wide; the interval with the "
                "control variate holds it in one case of six"},
     lambda s: near((c := {r["estimate"]: r["coverage_truth"] for r in s.rows("control-variate-coverage", model="mnistPCD-20")})["plain average"], 0.95, 0.02)
     and near(c["α = 1"], 1 / 6, 0.02)),
    said({"09": "each of them reduces the variance by a factor of 10.6"},
     lambda s: spans([r["reduction"] for r in s.rows("control-variate-choices", model="MNIST DBM")], 10.6, 10.65, 0.02)),
    said({"09": "On MNIST the digit explains about half of the variance"},
     lambda s: spans(list(s.column("digit-classes", "explained").values()), 0.49, 0.61, 0.01)),
    said({"09": "the smooth one is better still: 0.79 against 0.64 nats"},
     lambda s: near((d := {r["design"]: r for r in s.rows("control-variate-sampling")})["stratified by ln p*(v), ten groups"]["plain"], 0.79, 0.005)
     and near(d["at random"]["controlled"], 0.64, 0.005)),
    said({"09": "choosing by group lowers the error by another quarter"},
     lambda s: all(near(r["controlled"] / s.row("control-variate-sampling", design="at random")["controlled"], 0.75, 0.03)
                   for r in s.rows("control-variate-sampling") if r["design"] != "at random")),
    # 10: deep Boltzmann machines
    said({"10": ["about one in seven for MNIST, and one in thirty for Omniglot",
                 "three per cent of the units in its top layer follow the image",
                 "some 970 idle units on top",
                 "The MNIST DBM, with 14 % of its top layer in use"]},
     lambda s: near(1 / (f := s.column("dbm-log-unnormalized", "follow"))["MNIST DBM"], 7, 0.5) and near(f["MNIST DBM"], 0.14, 0.005)
     and near(1 / f["Omniglot DBM"], 34, 4) and near(f["Omniglot DBM"], 0.03, 0.005) and near(1_000 * (1 - f["Omniglot DBM"]), 970, 5)),
    said({"10": ["From the base rates of both layers a hundred thousand steps close the brackets of both DBMs, and leave less than a tenth of a "
                 "nat", "From the uniform start the bracket of the MNIST DBM closes as well"]},
     lambda s: all(verdict_of(r, "base_rate") == "closed" and abs(r["base_rate_gap"]) < 0.1 and r["steps"] == 100_000
                   for m in ("MNIST DBM", "Omniglot DBM") for r in s.rows("raise-table-2", model=m))
     and verdict_of(s.row("raise-table-2", model="MNIST DBM"), "uniform") == "closed"),
    said({"10": "That of the Omniglot DBM has a gap of 1.5 nats, but AIS rests on six effective chains there, too few for a verdict. From the "
                "base rates 10,000 steps leave less than that"},
     lambda s: near((r := s.row("raise-table-2", model="Omniglot DBM"))["uniform_gap"], 1.5, 0.05) and near(r["uniform_effective"], 6, 0.5)
     and verdict_of(r, "uniform") == "cannot tell" and r["steps"] == 100_000
     and all(0 < gap_from(s, "Omniglot DBM", start)[0] < r["uniform_gap"] for start in ("base rates of v", BOTH_LAYERS))),
    said({"10": "From the base rates a hundred thousand steps close the bracket of the Omniglot DBN. That of the MNIST DBN, with a gap of 0.7 nats and "
                "an error of 0.14, may or may not be closed"},
     lambda s: [verdict_of(s.row("raise-table-2", model=m), "base_rate") for m in ("MNIST DBN", "Omniglot DBN")] == ["cannot tell", "closed"]
     and near((r := s.row("raise-table-2", model="MNIST DBN"))["base_rate_gap"], 0.7, 0.05) and near(r["base_rate_gap_error"], 0.14, 0.005)),
    said({"10": "for the MNIST DBN the two starts leave the same gap"},
     lambda s: (r := s.row("raise-table-2", model="MNIST DBN"))["uniform_gap"] > 0 and abs(r["uniform_gap"] - r["base_rate_gap"])
     < 3 * math.hypot(r["uniform_gap_error"], r["base_rate_gap_error"])),
    said({"10": "At the paper's $K$ AIS from the uniform start rests on two effective chains, so that its bracket says nothing"},
     lambda s: near((r := s.row("raise-table-2", model="Omniglot DBN"))["uniform_effective"], 2, 0.5) and r["steps"] == 100_000
     and verdict_of(r, "uniform") == "cannot tell"),
    said({"10": "At the paper's $K$ both ends of the brackets from the base rates are within a nat of it"},
     lambda s: all(abs(s.row("tempering-brackets", model=m)[end]) < 1 for m in ("MNIST DBN", "Omniglot DBN") for end in ("ais_off", "raise_off"))),
    said({"10": "Parallel tempering puts the average at $-103.9$ nats"},
     lambda s: near(s.row("tempering-brackets", model="Omniglot DBN")["ladder"], -103.9, 0.05)),
    said({"10": "with 10,000 steps by a factor of twelve. By Markov's inequality so large an overestimate has a probability of at most one in twelve",
          "16": ["AIS from uniform pixels has a $\\ln \\hat Z$ that is one nat higher, from two effective chains",
                 "If parallel tempering is right, so large an overestimate has a probability of at most one in 2.8"]},
     lambda s: near(over := above_tempering(s, 100_000), 1, 0.05) and near(math.exp(over), 2.8, 0.05)
     and near(math.exp(above_tempering(s, 10_000)), 12, 0.5)
     and near(s.row("raise-table-2", model="Omniglot DBN")["uniform_effective"], 2, 0.5)),
    said({"10": "the log-probability comes out within a nat of AIS's end, from either start"},
     lambda s: all(near(s.row("sm2008-table-2", model="Test DBN-CD25")["bound"] + s.row("dbn-bound-gap", model="DBN-CD25")["gap"],
                        s.row("raise-table-2", model="MNIST DBN")[f"{start}_ais"], 1) for start in ("uniform", "base_rate"))),
    said({"10": "between $-105.4$ and $-105.3$ nats according to {numref}`tab-10-table-2`, a nat below the bracket from $-104.4$ to "
                "$-104.2$ nats"},
     lambda s: near((r := s.row("raise-table-2", model="Omniglot DBM"))["base_rate_raise"], -105.4, 0.05) and near(r["base_rate_ais"], -105.3, 0.05)
     and near((b := s.row("raise-table-1", model="omniPCD-1000"))["base_rate_raise"], -104.4, 0.05) and near(b["base_rate_ais"], -104.2, 0.05)),
    said({"10": "The wide models have no exact value, and their bounds lose half a nat as well"},
     lambda s: all(near(d, 0.55, 0.1) for d in s.column("dbm-log-unnormalized", "difference").values())),
    said({"10": "On the wide models they differ by no more than a hundredth of a nat"},
     lambda s: all(abs(r["difference"]) < 0.01 and r["importance"] > 600 for r in s.rows("dbm-heating"))),
    said({"10": "the uniform start leaves $\\ln \\hat Z$ more than four nats too low; the MNIST DBM hardly minds its start"},
     lambda s: behind(s, "Omniglot DBM", "uniform") > 4
     and all(near(behind(s, "MNIST DBM", start), 0.1, 0.1) for start in ("uniform", "base rates of v"))),
    said({"10": "differ from those of both layers by about two standard errors, one in each direction"},
     lambda s: near(between_starts(s, "MNIST DBM"), 2, 0.5) and near(between_starts(s, "Omniglot DBM"), -2, 0.5)),
    said({"10": "the two estimates of the MNIST DBM are eleven nats apart, and most of that is what RAISE falls short"},
     lambda s: near((few := s.row("raise-figure-7", model="MNIST DBM", start="base rates", steps=100))["gap"], 11, 0.1)
     and s.row("raise-table-2", model="MNIST DBM")["base_rate_raise"] - few["raise"] > 0.8 * few["gap"]),
    # 13: the report
    said({"13": ["Ten runs are enough for one of three small models, not enough for another, and of the third it cannot be told",
                 "A ratio from one direction misses by nearly four nats without a warning"]},
     lambda s: [r["model"] for r in s.rows("sm2008-figure-3", runs=10) if r["warned"] == "no" and near(r["log_z"], r["exact_log_z"], 1)] == ["CD1(25)"]
     and near((r := s.rows("sm2008-ratios")[0])["log_ratio"] - r["exact"], -3.7, 0.1) and r["warnings"] == "none"),
    said({"13": "At the paper's $K$ six of eight brackets from the base rates are closed, one is open, and of one it cannot be told"},
     lambda s: base_brackets(s) == {"closed": 6, "open": 1, "cannot tell": 1}),
    said({"13": "But RAISE exceeds the exact value of both models of 20 hidden units, of which the paper names one, and of no gap of the six"
                " RBMs can it be said that it is within a tenth of a nat"},
     lambda s: all(r["base_rate_raise"] - 3 * r["base_rate_raise_error"] > r["exact"] for r in s.rows("raise-table-1") if r["exact"] is not None)
     and len(s.rows("raise-table-1")) == 6 and all(verdict_of(r, "base_rate", tolerance=0.1) != "closed" for r in s.rows("raise-table-1"))),
    said({"08": "Parallel tempering agrees with AIS, here and for omniPCD-1000"},
     lambda s: all(abs(s.row("tempering-brackets", model=m)["ais_off"]) < 0.1 and ends_found(s, "AIS")[m] == "right"
                                             for m in ("mnistCD1-500", "omniPCD-1000"))),
    said({"13": "our seeds range from 63 to 100 % after ten epochs, and from 9 to 93 % after 50"},
     lambda s: all(spans(list(by_seed(s.rows("sm2008-training-paths"), "CD1(20)", epoch, "largest_mass").values()), low, high)
                   for epoch, low, high in ((10, 0.63, 1.0), (50, 0.09, 0.93)))),
    said({"13": "If every state is kept, it falls short by more than ten nats for four of six models"},
     lambda s: [r["base_rate_ais"] - r["csl"] > 10 for r in s.rows("raise-table-1")].count(True) == 4 and len(s.rows("raise-table-1")) == 6),
    said({"13": ["The distance of CD3(500) from CD1(500) falls from 30 nats after 30 epochs to 14 after 100, and passes the paper's 20 at about 50",
                 "The gap between training and test images rounds to the paper's 3 nats from 30 epochs on"]},
     lambda s: all(found_by(s, claim).ours == "holds after 30 to 100 epochs; partly after 10 to 25 epochs" for claim in ("cd3-over-cd1", "rbm-train-test"))
     and all(near(mean_at(s, "CD3(500)", e) - mean_at(s, "CD1(500)", e), nats, 0.5) for e, nats in ((30, 30), (100, 14)))
     and near(mean_at(s, "CD3(500)", 50) - mean_at(s, "CD1(500)", 50), 20, 2)),
    said({"13": "The authors' CD25(500) is ahead of both at every length, but our trainings by its recipe are behind CD3(500) after ten epochs of each"},
     lambda s: mean_at(s, "CD25(500)", 10) < mean_at(s, "CD3(500)", 10)
     and all(found_by(s, f"cd25-over-{m}").outcome == "partly" and "does not hold" not in found_by(s, f"cd25-over-{m}").ours for m in ("cd1", "cd3"))),
    said({"15": "that of the test average of CD3(25) after ten epochs holds the value of CD1(25), too",
          "05": "after ten epochs that of CD3(25)'s test average also holds the value of CD1(25)"},
     lambda s: (interval := interval_at(s.rows("sm2008-training-paths"), "CD3(25)", 10, "test")) is not None and inside(interval, -151.57)),
    said({"13": "depend on the length of training by tens of nats and on the seed by several"},
     lambda s: (means := [mean_at(s, "CD1(500)", epoch) for epoch in (10, 100)])[1] - means[0] > 20
     and all(2 < spread_at(s, m, 50) < 20 for m in ("CD1(20)", "CD1(25)", "CD3(25)", "CD1(500)", "CD3(500)"))),
    said({"13": "The published gap between training and test images of CD25(500) is mostly memory of one set of coin flips"},
     lambda s: max(r["gap"] for r in fresh(s)) < s.row("exact-binarization", model="as in training")["gap"] / 2),
    said({"13": "can be met at some length of training, but no length fits all of them"},
     lambda s: all(fitting.values()) and not set.intersection(*fitting.values()) if (fitting := lengths_that_fit(s)) else False),
    said({"14": ["Among the 190 trusted ones the largest error is 0.44 nats, and parallel tempering's 95 % interval holds the truth in 186",
                 "trusted 190, of which none was wrong, and suspected 22 right ones"]},
     lambda s: len(trusted(s)) == 190 and near(max(abs(r["value_error"]) for r in trusted(s)), 0.44, 0.005)
     and sum(map(holds_truth, trusted(s))) == 186 and len(s.rows("evaluate-study", outcome="right, suspected")) == 22),
    said({"14": "*Right, suspected* are the 22 false alarms. In 10 of them parallel tempering knows $\\ln Z$ too roughly, in 6 it missed a mode "
                "that adds next to nothing, in 4 a mode could not be excluded, and in 2 RAISE is too low for nearly all images"},
     lambda s: len(alarms := s.rows("evaluate-study", outcome="right, suspected")) == 22
     and sum(any("The ladder knows" in text for text in r["findings"]) for r in alarms) == 10
     and sum(not any("The ladder knows" in text for text in r["findings"])
             and any("three quarters of the images" in text for text in r["findings"]) for r in alarms) == 2
     and sum(any("others beside it" in text for text in r["findings"]) for r in alarms) == 6
     and sum(all("could raise" in text for text in r["findings"]) for r in alarms) == 4
     and max(abs(r["value_error"]) for r in alarms) < 1),
    said({"14": ["Among the 148 trusted ones the largest error is 0.56 nats, and parallel tempering's 95 % interval holds the truth in 142",
                 "In 264 of models that were drawn at random it trusted 148, of which none was wrong, and suspected 26 right ones"]},
     lambda s: len(s.rows(HELD_OUT)) == 264 and len(rows := trusted(s, HELD_OUT)) == 148 and near(max(abs(r["value_error"]) for r in rows), 0.56, 0.005)
     and sum(map(holds_truth, rows)) == 142 and len(s.rows(HELD_OUT, outcome="right, suspected")) == 26),
    said({"14": "Of the 174 right estimates 26 were suspected, 13 of them because parallel tempering knows $\\ln Z$ too roughly"},
     lambda s: len(found := right(s, HELD_OUT)) == 174
     and len(alarms := [r for r in found if r["outcome"] == "right, suspected"]) == 26
     and sum(any("The ladder knows" in text for text in r["findings"]) for r in alarms) == 13),
    said({"14": ["Of the 40 evaluations 20 are trusted. Among these the largest error is 0.30 nats, and the interval holds the truth in 19",
                 "With 128 steps 11 averages are off by more than a nat, the worst by 20 nats, and all of them are suspected",
                 "With 2,048 steps three still are, all of them DBMs with large weights",
                 "Of 40 evaluations of deep models it trusted 20, of which none was wrong"]},
     lambda s: len(rows := s.rows(DEEP)) == 40 and len(found := trusted(s, DEEP)) == 20 and near(max(abs(r["value_error"]) for r in found), 0.3, 0.005)
     and sum(map(holds_truth, found)) == 19 and near(max(abs(r["value_error"]) for r in rows), 20, 0.5)
     and [len(s.rows(DEEP, steps=k, outcome="wrong, suspected")) for k in (128, 2_048)] == [11, 3]
     and all(r["model"].startswith("DBM") for r in s.rows(DEEP, steps=2_048, outcome="wrong, suspected"))),
    said({"14": "the stored study of all 46 models, 276 evaluations"},
     lambda s: len(rows := s.rows("evaluate-study")) == 276 and len({(r["data"], r["model"]) for r in rows}) == 46
     and min(r["steps"] for r in rows) == 128),
    said({"14": ["One trusted value is off by more than half a nat: 0.57 nats, of lan-owo-200 with one minute. AIS is off by up to 5.3 nats",
                 "Of all trusted values here the interval holds in 136 of 146",
                 "Of 180 evaluations of nine models of full size it trusted 146, of which one was off by 0.57 nats and none by more"]},
     lambda s: len(rows := s.rows(FULL_SIZE)) == 180 and len({r["model"] for r in rows}) == 9 and len(found := trusted_rows(rows)) == 146
     and [(r["model"], r["minutes"], round(abs(r["value_error"]), 2)) for r in found if abs(r["value_error"]) > 0.5] == [("lan-owo-200", 1, 0.57)]
     and near(max(abs(r["ais_error"]) for r in rows), 5.3, 0.05) and sum(map(holds_truth, found)) == 136),
    said({"14": ["With one minute 64 of the 90 evaluations are trusted, and with four minutes 82 of 90",
                 "The Omniglot model is always left open with one minute, and trusted in eight of ten evaluations with four"]},
     lambda s: [(len(trusted_rows(rows)), len(rows)) for m in (1, 4) if (rows := s.rows(FULL_SIZE, minutes=m))] == [(64, 90), (82, 90)]
     and len(omniglot := s.rows(FULL_SIZE, model="Omniglot PCD(1000)")) == 20 and [r["minutes"] for r in trusted_rows(omniglot)] == [4] * 8),
    said({"14": ["CD3(500) is never trusted with one minute, and four times with four. Its short runs agree to a few hundredths of a nat, and state an error of that size. "
                 "The long runs that also met the digits say 0.1 nats more",
                 "none of the intervals of its four trusted values holds what the long runs say",
                 "the mean of these five is known to 0.06 nats"]},
     lambda s: len(found := trusted_rows(rows := s.rows(FULL_SIZE, model="CD3(500)"))) == 4 and len(rows) == 20
     and all(r["minutes"] == 4 for r in found)
     and all(near(r["value_error"], 0.1, 0.02) for r in found) and not any(map(holds_truth, found))
     and all(near(r["truth_std_error"], 0.06, 0.005) for r in rows)),
    # 15: own images, weights and seeds
    said({"15": "With fresh coin flips the training images lose 2.6 nats on average, and the test images lose nothing"},
     lambda s: all(near(s.row("exact-binarization", model="as in training")[split] - fmean(r[split] for r in fresh(s)), lost, 0.05)
                   for split, lost in (("train", 2.6), ("test", 0)))),
    said({"15": ["451.28, lies a hundredth of a nat above that interval: with it, the averages would be printed as −83.11 and −86.35",
                 "the intervals meet for the authors' images: yes"]},
     lambda s: near(451.28 - both_averages(s)[1], 0.01, 0.003) and both_averages(s)[0] <= both_averages(s)[1]
     and f"{(r := s.row('exact-binarization', model='as in training'))['train'] - 451.28:.2f} {r['test'] - 451.28:.2f}" == "-83.11 -86.35"),
    said({"15": ["Our first estimate of $\\ln Z$ is a quarter of a nat below the published one, and its 3-sigma interval ends just short",
                 "its 3-sigma interval ends just short of the $\\ln Z$ that gives both averages",
                 "our 3-sigma interval holds the ln Z that gives both: no, as the text says"],
          "13": "our estimate of it differs from theirs by a quarter of a nat, within the errors of the two"},
     lambda s: near((r := s.row("sm2008-own-weights"))["log_z"], 451.28 - 0.25, 0.05) and 451.28 - r["log_z"] < 3 * math.sqrt(2) * r["log_z_error"]
     and near(r["log_z_error"], 0.09, 0.005)
     and near(r["interval_3_sigma"][1], both_averages(s)[0], 0.02) and r["interval_3_sigma"][1] < both_averages(s)[0]),
    said({"15": "Of the ten seeds nine lie below the $\\ln Z$ that gives both averages, and nine of their ten intervals hold it"},
     lambda s: len(rows := s.rows("own-weights-repeats")) == 10 and sum(r["log_z"] < both_averages(s)[0] for r in rows) == 9
     and sum(abs(math.expm1(both_averages(s)[0] - r["log_z"])) < 3 * r["log_z_error"] for r in rows) == 9),
    said({"15": ["AIS gives $-86.33$ nats and RAISE $-86.45$, each to a tenth of a nat what the paper prints ($-86.35$ and $-86.39$)",
                 "AIS and RAISE meet from the base rates, each within a tenth of a nat of its published value"],
          "what-we-learned": "Both ends of that bracket lie within a tenth of a nat of the printed ones"},
     lambda s: near((r := longest_own(s))["ais"], -86.33, 0.005) and near(r["raise"], -86.45, 0.005)
     and near(r["ais"], -86.35, 0.1) and near(r["raise"], -86.39, 0.1)),
    said({"15": "These longer runs put $\\ln Z$ at 451.254, to 0.009: two tenths above our first estimate, and a hundredth below the values "
                "that give both averages",
          "what-we-learned": "finds 451.254, with a standard error of 0.009"},
     lambda s: near(long_log_z := s.row("exact-binarization", model="as in training")["test"] - (r := longest_own(s))["ais"], 451.254, 0.0005)
     and near(r["ais_error"], 0.009, 0.0005) and near(long_log_z - s.row("sm2008-own-weights")["log_z"], 0.2, 0.05)
     and near(both_averages(s)[0] - long_log_z, 0.013, 0.002)),
    said({"15": ["AIS gives $-86.11$ nats, from 17 effective chains, and RAISE $-88.05$; the paper prints $-86.42$ and $-88.51$, and its gap "
                 "of 2.1 nats is 1.9 here",
                 "From uniform pixels they are still two nats apart at K = 100,000"],
          "what-we-learned": "from the uniform start the gap is 1.9 nats, printed as 2.1"},
     lambda s: near((r := longest_own(s, "uniform"))["ais"], -86.11, 0.005) and near(r["raise"], -88.05, 0.005)
     and near(r["effective_runs"], 17, 0.5) and near(r["gap"], 1.94, 0.01)),
    said({"15": "The RAISE paper prints $-145.26$ nats for this model, and {numref}`tab-15-paper-bracket` has $-110.2$",
          "errata": "where Table 1 has $-145.26$, and $-110$ with 500 million"},
     lambda s: near((r := s.row("raise-own-weights"))["csl"], -110.2, 0.05) and r["csl_states"] == 500 * 10**6),
    said({"15": ["Within the errors the printed value is met with about a million states",
                 "With more kept states CSL is higher, and with millions of them it is still tens of nats below AIS",
                 "States that lie a hundred steps apart are worth more than neighbours"],
          "errata": "With the released weights it is $-147$ nats with a million kept states, to 3 nats, where Table 1 has $-145.26$"},
     lambda s: near((r := s.row("csl-kept-states", csl_states=1_000_000))["csl"], -147, 0.5) and near(r["csl_error"], 3, 0.5)
     and abs(r["csl"] + 145.26) < r["csl_error"]
     and (values := [r["csl"] for r in s.rows("csl-kept-states")]) == sorted(values) and values[-1] < s.rows("csl-kept-states")[-1]["ais"] - 20
     and all(r["thinned"] > r["csl"] for r in s.rows("csl-kept-states")[1:] if r["thinned"] is not None)),
    said({"15": ["The paper's own mnistPCD-20 falls short of its exact value by 2.02 nats, and ours by as much with some thousand draws",
                 "Its mnistCD1-20 falls short by 21 nats, and ours by more than that even with 200,000"]},
     lambda s: near(-150.11 + 152.13, 2.02, 1e-9) and near(-164.50 + 185.74, 21, 0.5)
     and s.row("csl-exact-draws", model="mnistPCD-20", csl_states=1_000)["short"] > 2.02
     > s.row("csl-exact-draws", model="mnistPCD-20", csl_states=10_000)["short"]
     and s.row("csl-exact-draws", model="mnistCD1-20", csl_states=200_000)["short"] > 21.24),
    said({"15": ["Only the training images with fresh coin flips give the printed number",
                 "The other three sets are off by more than a nat with every binarisation",
                 "Of a hundred chosen images the choice alone would move such a number by several nats"],
          "errata": ["the training images of the 2008 paper give 54.2 nats and its test images 58.2", "Only the last set reaches the printed number",
                     "Test images that are binarised anew give 57.8 to 58.8, and training images that are binarised anew 56.4 to 56.6"]},
     lambda s: [name for name, r in by_images(s).items() if r["lowest"] - 0.05 <= 56.6 <= r["highest"] + 0.05] == ["training images, anew"]
     and all(min(abs(r[end] - 56.6) for end in ("lowest", "highest")) > 1 for name, r in by_images(s).items() if name != "training images, anew")
     and all(near(by_images(s)[f"{name} images, {how}"][end], value, 0.05)
             for name, how, end, value in (("training", "as given", "lowest", 54.2), ("test", "as given", "lowest", 58.2), ("test", "anew", "lowest", 57.8),
                                           ("test", "anew", "highest", 58.8), ("training", "anew", "lowest", 56.4), ("training", "anew", "highest", 56.6)))
     # a hundred images have some ten of either digit, and the test set about a thousand
     and 3 < 10 * by_images(s)["test images, anew"]["choice_error"] < 10),
    said({"errata": "fresh coin flips move CD25(500)'s test average by as much, some hundredths of a nat"},
     lambda s: 0.02 < stdev(r["test"] for r in fresh(s)) < 0.05),
    said({"15": "After ten epochs no row has all three of its numbers inside"},
     lambda s: all(10 not in lengths for lengths in lengths_that_fit(s).values())),
    said({"15": "Their $\\ln Z$ is 464.4 and 435.3, one above the printed 451.28 and one below"},
     lambda s: all(near(r["log_z"], value, 0.05) for r, value in zip(of_cd25(s), (464.4, 435.3), strict=True))),
    said({"15": ["Two seeds that were trained for so long come within 0.3 nats of both published averages",
                 "They come within 0.3 nats of both published averages"]},
     lambda s: all(r["distrusted"] == "no" and abs(r["test"] + 86.34) < 0.3 and abs(r["train"] + 83.10) < 0.3 for r in of_cd25(s))),
    said({"15": "CD1(500) and CD3(500) are then some sixty and forty nats worse than the published models, with every seed, and after 70 "
                "epochs they are better"},
     lambda s: mean_at(s, "CD1(500)", 70) > -125.53 and mean_at(s, "CD3(500)", 70) > -105.5 and near(-125.53 - mean_at(s, "CD1(500)", 10), 60, 5) and near(-105.5 - mean_at(s, "CD3(500)", 10), 42, 5)
     and spread_at(s, "CD1(500)", 10) < 15),
    said({"15": "At other lengths each row can be met: CD1(500) and CD3(500) after 50 epochs"},
     lambda s: (fits := lengths_that_fit(s))["CD1(500)"] == {50} == fits["CD3(500)"] and all(fits.values())),
    said({"15": "after 50 epochs all but CD1(20) are met, and after no other length are both rows of 500 hidden units"},
     lambda s: [row for row, lengths in lengths_that_fit(s).items() if 50 not in lengths] == ["CD1(20)"]),
    said({"15": "The paper's schedule has most of its steps beyond 0.9, and logarithms of weights that vary most"},
     lambda s: (r := s.row("own-weights-schedules", schedule="of the 2008 paper"))["above"] > 0.5
     and r["variance"] == max(each["variance"] for each in s.rows("own-weights-schedules"))),
    # 16: parallel tempering
    said({"16": "From the uniform start AIS rests on fewer than ten effective chains for mnistPCD-20, mnistCD25-500 and the two deep Omniglot models"},
     lambda s: {r["model"] for name in ("raise-table-1", "raise-table-2") for r in s.rows(name) if effective_chains(r["uniform_ais_error"]) < 10}
     == {"mnistPCD-20", "mnistCD25-500", "Omniglot DBM", "Omniglot DBN"}),
    said({"16": "100,000 chain-steps leave parallel tempering an error of 0.34 nats, and AIS one of 0.87"},
     lambda s: all(near(at_equal_cost(s, e, 100_000)["rmse"], rmse, 0.005) for e, rmse in (("parallel tempering", 0.34), ("AIS", 0.87)))),
    said({"16": "Parallel tempering has the smaller error with every budget"},
     lambda s: all(at_equal_cost(s, "parallel tempering", k)["rmse"] < at_equal_cost(s, "AIS", k)["rmse"] for k in (10_000, 100_000, 1_000_000))),
    said({"16": "Its intervals hold the truth as often as they say. Those of AIS do not with 100,000 chain-steps, where 39 of 100 hold it"},
     lambda s: all((at_equal_cost(s, e, k)["repeats"], round(at_equal_cost(s, e, k)["repeats"] * at_equal_cost(s, e, k)["coverage"])) == (n, held)
                   for e, k, n, held in (("parallel tempering", 100_000, 100, 99), ("AIS", 100_000, 100, 39), ("parallel tempering", 1_000_000, 20, 19), ("AIS", 1_000_000, 20, 18)))),
    said({"16": "every run of parallel tempering has a warning, and on average it is too low by 0.8 nats"},
     lambda s: near((r := at_equal_cost(s, "parallel tempering", 10_000))["coverage"], 1, 1e-9) and r["repeats"] == 50 and r["warned"] == 50
     and near(r["mean_error"], -0.8, 0.05)),
    said({"16": "Parallel tempering has four fifths of the error of RTS with 100,000 chain-steps. With a million it has a quarter more"},
     lambda s: near(at_equal_cost(s, "parallel tempering", 100_000)["rmse"] / 0.43, 0.8, 0.04) and near(at_equal_cost(s, "parallel tempering", 1_000_000)["rmse"] / 0.10, 1.25, 0.05)),
    said({"16": "A chain-step of parallel tempering takes 0.9 to 1.0 times as long as one of AIS"},
     lambda s: (times := [seconds / of_seconds(s, "AIS", "seconds")[model] for model, seconds in of_seconds(s, "parallel tempering", "seconds").items()])
     and (round(min(times), 1), round(max(times), 1), len(times)) == (0.9, 1.0, 4)),
    said({"16": "By the $F$ distribution it is 0.32 to 0.47 of that of AIS with 100,000 chain-steps, and 0.34 to 0.84 with a million, from fewer runs"},
     lambda s: [round(end, 2) for steps in (100_000, 1_000_000) for end in error_ratio(s, steps)] == [0.32, 0.47, 0.34, 0.84]),
    said({"16": ["On CD25(500) and mnistPCD-500 AIS takes five to six times as long as parallel tempering until its error is a tenth of a nat, and the interval "
                 "does not hold 1. On the other two models it holds 1",
                 "On two of four models of 784 × 500 units it is faster than AIS; on the other two, ten runs cannot tell"]},
     lambda s: (ends := of_seconds(s, "AIS", "ratio_interval")) and [model for model, (low, high) in ends.items() if not low < 1 < high]
     == ["CD25(500)", "mnistPCD-500"] and len(ends) == 4
     and all(4.5 < of_seconds(s, "AIS", "ratio")[model] < 6.5 for model in ("CD25(500)", "mnistPCD-500"))),
    said({"16": "SMC takes longer than parallel tempering on all but mnistCD1-500, where they cannot be told apart"},
     lambda s: [model for model, (low, high) in of_seconds(s, "SMC", "ratio_interval").items() if low < 1 < high] == ["mnistCD1-500"]
     and all(ratio > 1 for ratio in of_seconds(s, "SMC", "ratio").values())),
    said({"16": "The error of RAISE is nearly all bias, 1.1 to 5.8 nats with these steps"},
     lambda s: (errors := of_seconds(s, "RAISE", "rmse")) and (round(min(errors.values()), 1), round(max(errors.values()), 1)) == (1.1, 5.8)
     and all(bias > 0.99 * errors[model] for model, bias in of_seconds(s, "RAISE", "mean_error").items())),
    said({"16": ["No run of parallel tempering has a warning, and in all ten brackets AIS is within a nat of it",
                 "On the ten models of the RAISE paper it agrees with AIS to a nat"]},
     lambda s: len(rows := s.rows("tempering-brackets")) == 10 and all(r["warnings"] == "none" and r["round_trips"] > 100 for r in rows)
     and Counter(ends_found(s, "AIS").values()) == {"right": 10} and all(abs(r["ais_off"]) < 1 for r in rows)),
    said({"16": "RAISE's end is right in this sense for seven of the ten and wrong for one; for the other two the errors are too large to tell"},
     lambda s: Counter(ends_found(s, "RAISE").values()) == {"right": 7, "wrong": 1, "undecided": 2}),
    said({"16": "Where a mode lies off the path, they agree to a tenth of a nat and both err by three"},
     lambda s: near((r := s.row("tempering-hidden-modes", mode="strong, in all pixels"))["error"], -3, 0.05) and near(r["ais_error"], -3, 0.15)
     and near(r["error"] - r["ais_error"], 0.1, 0.005)),
    said({"16": ["Half of the chains from images end on nearly blank pages, with as many pixels on as chains that began there",
                 "all images in $A$ together hold less than a hundredth of what the blank pages hold",
                 "is AIS's $\\hat Z$ to a hundredth of a nat"]},
     lambda s: near((r := s.row("blank-page-flow"))["arrived"], 0.5, 0.05) and near(r["pixels_arrived"], r["pixels_on"], 0.2) and r["mass_bound"] < 1
     and near(r["blank_log_z"], s.row("tempering-brackets", model=r["model"])["ais_log_z"], 0.01)),
    said({"16": ["From a quarter of the images no chain arrives, and all that are short by more than five nats are among them",
                 "on pages with about twice as many pixels on as a digit has"]},
     lambda s: near((r := s.row("blank-page-flow"))["none_arrive"] / r["images"], 0.25, 0.03) and 4 < r["largest_gap"] < 5 < 10 < r["none_gap"]
     and near(r["rest_pixels"] / s.row("sm2008-figure-2", model="training images")["pixels_on"], 2, 0.3)),
    said({"16": ["five nats below that of the blank pages, less than a hundredth of it. So this mode changes $\\ln Z$ by less than a "
                 "hundredth of a nat"],
          "08": "a second mode, which holds less than a hundredth of what the blank pages hold"},
     lambda s: near((r := s.row("blank-page-flow"))["blank_log_z"] - r["rest_log_z"], 5, 0.1) and r["rest_error"] < 0.2 and r["rest_effective"] > 50),
    said({"16": "$\\ln Z$ would be four nats higher, and such modes would hold some fifty times as much"},
     lambda s: near(gap := base_gap(s, "mnistCD1-500")["gap"], 4, 0.2) and near(math.expm1(gap), 50, 5)),
    said({"16": "For mnistCD1-500, whose bracket was still open by four nats, parallel tempering sides with AIS"},
     lambda s: (ends_found(s, "AIS")["mnistCD1-500"], ends_found(s, "RAISE")["mnistCD1-500"]) == ("right", "wrong")
     and near(s.row("tempering-brackets", model="mnistCD1-500")["raise_off"], -4, 0.1)),
    said({"16": "For mnistCD1-20 RAISE is 1.2 nats too high"},
     lambda s: near(s.row("tempering-brackets", model="mnistCD1-20")["raise_off"], 1.2, 0.05)),
    said({"16": "That is more than a nat, but not by more than the errors, so that this end is undecided"},
     lambda s: ends_found(s, "RAISE")["mnistCD1-20"] == "undecided"),
    said({"16": "For mnistCD1-20 parallel tempering's average is 0.14 nats too low, and the truth lies just outside the interval, by less than a hundredth of a nat"},
     lambda s: near((r := s.row("tempering-brackets", model="mnistCD1-20"))["exact"] - r["ladder"], 0.14, 0.005)
     and 0 < r["interval"][0] - (r["log_z"] + r["ladder"] - r["exact"]) < 0.01),
    # 17: every estimator
    said({"17": "With $10^4$ they hold less often than they say; of those without a warning, 327 of 349 hold"},
     lambda s: intervals_held(s, "parallel tempering", 10_000)[2:] == (327, 349)
     and s.row("estimator-coverage", models="no hidden mode", estimator="parallel tempering", budget=10_000)["held_95_interval"][1] < 95),
    said({"17": "AIS's intervals hold in 691 of 900 runs with $10^5$, and those from mean field's start in fewer than half"},
     lambda s: intervals_held(s, "AIS", 100_000)[:2] == (691, 900)
     and (held := intervals_held(s, "AIS, mean-field start", 100_000))[0] < held[1] / 2 and held[1] == 900),
    said({"17": "In 2,000 runs on the ten models without a hidden mode, no number of parallel tempering was wrong by a nat without a "
                "warning. AIS had 74 such numbers, and SMC 35"},
     lambda s: [silently_wrong(s, "no hidden mode", e) for e in ("parallel tempering", "AIS", "SMC")]
     == [(0, 2000), (74, 2000), (35, 2000)]),
    said({"17": "AIS from mean field's start is the worst, with 267"},
     lambda s: silently_wrong(s, "no hidden mode", "AIS, mean-field start") == (267, 2000)
     and all(silently_wrong(s, "no hidden mode", r["estimator"])[0] < 267 or "start" in r["estimator"] for r in s.rows("estimator-trust"))),
    said({"17": ["is wrong in every run, and in 377 of 800 runs without a warning",
                 "Where a mode is hidden, every estimator that starts at the base rates is wrong in every run, and almost half of these runs "
                 "have no warning"]},
     lambda s: silently_wrong(s, "hidden mode", *(names := ("importance sampling", "AIS", "SMC", "parallel tempering"))) == (377, 800)
     and all(r["right, trusted"] == r["right, suspected"] == 0 for r in s.rows("estimator-trust", models="hidden mode") if r["estimator"] in names)),
    said({"17": "With $10^5$ chain-steps mean field's start is the nearest of all on the hidden mode, and nine nats off on two trained models "
                "where the base rates are a quarter of a nat off"},
     lambda s: min((found := s.rows("estimator-study", model="hidden-mode-784x501", budget=100_000)), key=lambda r: r["median_error"])["estimator"]
     == "AIS, mean-field start" and len(found) == 6
     and all(near(s.row("estimator-study", model=m, budget=100_000, estimator="AIS, mean-field start")["median_error"], 9, 0.5)
             and near(s.row("estimator-study", model=m, budget=100_000, estimator="AIS")["median_error"], 0.25, 0.05) for m in ("mnist-cd1-25", "mnist-cd3-25"))),
    said({"17": "At the level of 95 % the certified bound was never above the truth. On the four models with 20 or 25 hidden units it is "
                "the nearest of all, within 0.03 nats at the median"},
     lambda s: all(near(r["held_95"], 100, 1e-9) for r in s.rows("estimator-coverage", estimator="certified bound"))
     and all(r["median_error"] < 0.03 and r["median_error"] == min(o["median_error"] for o in s.rows("estimator-study", model=r["model"], budget=r["budget"]))
             for r in s.rows("estimator-study", estimator="certified bound") if r["model"].endswith(("-20", "-25")))),
    said({"17": "Importance sampling is off by more than a nat on all but one of the eleven models, whatever its budget. "
     "On the hidden mode ten times the work brings nothing: what starts at the base rates stays two nats away, or more"},
     lambda s: len(found := s.rows("estimator-study", estimator="importance sampling")) == 22 and len({r["model"] for r in found}) == 11
     and len({r["model"] for r in found if r["median_error"] <= 1}) == 1
     and all(r["median_error"] > 1.98 for r in s.rows("estimator-study", model="hidden-mode-784x501") if "start" not in r["estimator"])),
    said({"17": "the latter from hundreds of nats away on all models but one. Of the eleven models TAP is nearer than mean field on nine, and Bethe's approximation on ten"},
     lambda s: len(found := s.rows("deterministic-approximations")) == 11 and sum(r["tree_reweighted"] > 300 for r in found) == 10 and min(r["tree_reweighted"] for r in found) > 0
     and [sum(abs(r[key]) < abs(r["mean_field"]) for r in found) for key in ("tap", "bethe")] == [9, 10]),
    said({"17": "With $10^5$ chain-steps parallel tempering has the smallest error, and AIS has it in the same time"},
     lambda s: min((errors := joint_errors(s, in_same_time=False)), key=errors.get) == "parallel tempering" and near(min(errors.values()), 0.122, 0.0005)
     and min((errors := joint_errors(s, in_same_time=True)), key=errors.get) == "AIS"),
    said({"17": "With $10^4$ every estimator warns in more than half of its runs, so that no row counts warnings; with $10^5$ importance "
                "sampling still does, and is left out"},
     lambda s: min(warned_share(s, 10_000).values()) > 0.5 < warned_share(s, 100_000)["importance sampling"]
     and not any("trusted" in r["purpose"] for r in s.rows("estimator-purposes", budget=10_000))
     and not any("importance" in r["estimators"] for r in s.rows("estimator-purposes", budget=100_000) if "trusted" in r["purpose"])),
    # errata and the front page
    said({"intro": "Between 10 and 100 epochs CD1(500) gains 75 nats, as a mean over seeds",
          "what-we-learned": "gains 75 nats on test images between 10 and 100 epochs, as a mean over seeds"},
     lambda s: near(mean_at(s, "CD1(500)", 100) - mean_at(s, "CD1(500)", 10), 75, 0.5)),
    said({"what-we-learned": "At one length, seeds differ by five to twelve nats"},
     lambda s: spans([spread_at(s, m, e) for m in ("CD1(20)", "CD1(25)", "CD3(25)", "CD1(500)", "CD3(500)") for e in (10, 20, 50, 100)], 5, 12, 0.5)),
    said({"what-we-learned": ["CD3(500) leads CD1(500) by 38 nats after 10 epochs, by 21 after 50 and by 14 after 100",
                              "with both of its seeds CD25(500) is behind CD3(500) up to 20 epochs, and ahead from 40 on"]},
     lambda s: all(near(mean_at(s, "CD3(500)", e) - mean_at(s, "CD1(500)", e), lead, 0.5) for e, lead in ((10, 38), (50, 21), (100, 14)))
     and all((of_25 > by_seed(s.rows("sm2008-training-paths"), "CD3(500)", e, "test")[seed]) == (e >= 40)
             for e in (5, 10, 15, 20, 40, 50, 70, 100) for seed, of_25 in by_seed(s.rows("sm2008-training-paths"), "CD25(500)", e, "test").items()
             if seed in by_seed(s.rows("sm2008-training-paths"), "CD3(500)", e, "test"))),
    said({"what-we-learned": "after ten all models of 500 units are worse than after five"},
     lambda s: all(mean_at(s, m, 10) < mean_at(s, m, 5) for m in ("CD1(500)", "CD3(500)", "CD25(500)"))),
    said({"what-we-learned": ["Three models of ours, trained on other flips, show the same",
                              "new flips hardly change the average of the test images; it is that of the training images that falls"]},
     lambda s: len(ours := s.rows("binarization")) == 3 and all(r["fixed_gap"] > 4 * r["fresh_gap"] > 0 for r in ours)
     and all(near(r["test"], (own := s.row("exact-binarization", model="as in training"))["test"], 0.1) and own["train"] - r["train"] > 2.5
             for r in fresh(s))),
    said({"what-we-learned": ["and was by 18 with 10,000", "ten times the steps with as many chains did not help"]},
     lambda s: near((few := figure_3(s, "mnistPCD-20", "uniform")[-2])["ais"] - few["exact"], 18, 0.5) and few["steps"] == 10_000
     and (r := figure_3(s, "mnistPCD-20", "uniform")[-1])["ais"] - r["exact"] > few["ais"] - few["exact"]),
    said({"what-we-learned": ["the two starts are six nats apart, and 61 chains count",
                              "On the other four RBMs of the RAISE paper's table the two starts are at most 0.09 apart, though on mnistCD25-500 only four chains count"],
          "intro": "On three of six models either start will do",
          "README": "On three of six models either start will do"},
     lambda s: len(apart := {r["model"]: abs(r["uniform_ais"] - r["base_rate_ais"]) for r in s.rows("raise-table-1")}) == 6
     and near(apart.pop("mnistCD1-500"), 6, 0.5) and apart.pop("mnistPCD-20") > 20 and near(max(apart.values()), 0.09, 0.005)
     and near(figure_3(s, "mnistCD1-500", "uniform")[-1]["effective_sample_size"], 60, 1)
     and [m for m in apart if figure_3(s, m, "uniform")[-1]["effective_sample_size"] < 9] == ["mnistCD25-500"]
     and near(figure_3(s, "mnistCD25-500", "uniform")[-1]["effective_sample_size"], 4, 0.5)),
    said({"what-we-learned": ["those of both hold it in none of 100 runs, and 76 runs of parallel tempering gave no warning",
                              "Five of the nine are planted models, too"],
          "intro": "both hold it in none of 100 runs, and 76 runs of parallel tempering gave no warning",
          "README": "both hold it in none of 100 runs, and 76 runs of parallel tempering gave no warning"},
     lambda s: all((r := s.row("estimator-coverage", models="hidden mode", budget=100_000, estimator=e))["held_95"] == 0 and r["runs"] == 100
                   for e in ("AIS", "parallel tempering")) and r["unwarned"] == 76
     and sum(r["kind"] == "planted" for r in s.rows("estimator-study-models")) == 5),
    said({"what-we-learned": "nine of ten seeds lie below, by a tenth of a nat on average"},
     lambda s: len(below := [both_averages(s)[0] - r["log_z"] for r in s.rows("own-weights-repeats")]) == 10
     and sum(each > 0 for each in below) == 9 and near(fmean(below), 0.1, 0.05)),
    said({"what-we-learned": "comes out as 56.4 to 56.6 on training images that are binarised anew, the only one of four sets that reaches it"},
     lambda s: near((anew := (found := by_images(s)).pop("training images, anew"))["lowest"], 56.4, 0.05) and near(anew["highest"], 56.6, 0.05)
     and len(found) == 3 and all(not r["lowest"] - 1 < 56.6 < r["highest"] + 1 for r in found.values())),
    said({"what-we-learned": "RAISE exceeds the exact value of mnistCD1-20 by 1.1 nats and that of mnistPCD-20 by 0.4, with standard errors "
                             "of 0.13 and 0.06",
          "08": "by 1.1 and by 0.4 nats at the paper's $K$"},
     lambda s: all(near((r := s.row("raise-table-1", model=m))["base_rate_raise"] - r["exact"], over, 0.05) and r["steps"] == 100_000
                   and near(r["base_rate_raise_error"], error, 0.005) for m, over, error in (("mnistCD1-20", 1.1, 0.13), ("mnistPCD-20", 0.4, 0.06)))),
    said({"what-we-learned": ["half of those that start at test images end on nearly blank pages. The mass of these pages is AIS's $\\hat Z$ to less than a hundredth of a nat",
                              "belong to another mode, which holds less than a hundredth of that mass",
                              "with some fifty times the mass of all that was found"]},
     lambda s: near((r := s.row("blank-page-flow"))["arrived"], 0.5, 0.05)
     and near(r["blank_log_z"], s.row("tempering-brackets", model="mnistCD1-500")["ais_log_z"], 0.01)
     and r["rest_log_z"] + 3 * r["rest_error"] < r["blank_log_z"] - math.log(100) and r["largest_gap"] < r["none_gap"]
     and near(math.expm1(s.row("raise-table-1", model="mnistCD1-500")["base_rate_gap"]), 50, 5)),
    said({"what-we-learned": "gives −199 nats if each chain keeps one state, −147 with a million states, −131 with eight million and, from "
                             "10,000 chains, −110 with 500 million, where AIS from the base rates gives −86.3"},
     lambda s: all(near(s.row("csl-kept-states", csl_states=kept)["csl"], csl, 0.5) for kept, csl in ((5_000, -199), (1_000_000, -147), (8_000_000, -131)))
     and near((r := s.row("raise-own-weights"))["csl"], -110, 0.5) and r["csl_states"] == 500_000_000 and near(r["base_rate_ais"], -86.3, 0.05)),
    said({"what-we-learned": "of mnistCD1-20 by 55 nats with 5,000 draws and by 36 with 200,000, of mnistPCD-20 by 2.1 and by 0.2"},
     lambda s: all(near(s.row("csl-exact-draws", model=m, csl_states=kept)["short"], short, digit) for m, kept, short, digit in (
         ("mnistCD1-20", 5_000, 55, 0.5), ("mnistCD1-20", 200_000, 36, 0.5), ("mnistPCD-20", 5_000, 2.1, 0.05), ("mnistPCD-20", 200_000, 0.2, 0.05)))),
    said({"what-we-learned": "CD25(500) is 39 nats ahead of any of our mixtures"},
     lambda s: near(s.row("sm2008-own-weights")["test"] - max(s.column("sm2008-mixtures", "test").values()), 39, 0.5)),
    said({"what-we-learned": "the worst tenth of the images is short by 28 nats on average, and the mean gap is 3.9 nats, where 10,000 steps leave 4.0"},
     lambda s: near((r := base_gap(s, "mnistCD1-500"))["worst_tenth"], 28, 0.5) and near(r["gap"], 3.9, 0.05)
     and near((few := figure_3(s, "mnistCD1-500", "base rates")[-2])["gap"], 4.0, 0.05) and few["steps"] == 10_000),
    said({"what-we-learned": "add up to 4.78 with four steps, to 1.16 with forty, and to 1.01 with four hundred. They should add up to "
                             "one, as they do"},
     lambda s: (rows := s.rows("raise-heating-index")) and all(near(rows[-1][f"total_{k}"], t, 0.005) for k, t in ((4, 4.78), (40, 1.16), (400, 1.01)))
     and all(near(rows[0][f"total_{k}"], 1, 1e-9) for k in (4, 40, 400))),
    said({"intro": ["Of 540 evaluations with a known answer, 264 of them of models drawn at random, it trusted 338, and none of these was"
                    " wrong by a nat; it suspected 48 of the 386 that were right",
                    "Of 540 evaluations with a known answer, 264 of them of models drawn at random, `paperlib evaluate` trusted 338, and "
                    "none of these was wrong by a nat"],
          "what-we-learned": ["Of 540 evaluations with a known answer, 264 of them of models drawn at random, `paperlib evaluate` trusted"
                              " 338, and none of these was wrong by a nat",
                              "It distrusted 48 of the 386 that were right"]},
     lambda s: trusted_and_right(s) and len(found := right(s, "evaluate-study", HELD_OUT)) == 386
     and (suspected := sum(r["outcome"] == "right, suspected" for r in found)) == 48 and near(len(found) / suspected, 8, 0.5)),
    # 13: the report
    said({"13": "are worth 319 nats"},
     lambda s: near(s.row("likelihood-scale", model="base rates")["test"] - s.row("likelihood-scale", model="uniform pixels")["test"], 319, 0.5)),
    said({"13": "All that hidden units add is 138 nats more"},
     lambda s: near(max(r["test"] for r in s.rows("likelihood-scale")) - s.row("likelihood-scale", model="base rates")["test"], 138, 0.5)),
    # errata
    said({"15": "With all of its steps the paper's spacing and even spacing are alike on the authors' model, and on none of the four is its variance smaller by more than the errors. On CD1(25) even spacing has",
          "errata": "with all 14,500 steps the variance of $\\ln w$ is 0.84 on the authors' CD25(500), and 0.85 with as many steps that are evenly spaced; the standard"
                    " errors are 0.06 and 0.07. On our CD1(25) it is 0.77 against 0.42. On two more models the difference is within three standard errors, and on none is the printed spacing better"},
     lambda s: [round(v, 2) for m in ("CD25(500)", "CD1(25)") for v in spaced(s, m)] == [0.84, 0.85, 0.77, 0.42]
     and [round(v, 2) for v in spaced(s, "CD25(500)", "variance_error")] == [0.06, 0.07]
     and Counter(case.outcome for case in BY_ID["spacing-of-betas"].finding(s.record).cases.values()) == {"no estimate": 3, "does not hold": 1}
     and BY_ID["spacing-of-betas"].finding(s.record).cases["CD1(25)", ""].outcome == "does not hold"),
    said({"errata": "With a tenth of the steps it is worse: 6.9 against 1.8 on CD25(500)"},
     lambda s: [round(s.row("own-weights-schedules", schedule=k)["variance"], 1) for k in ("of the 2008 paper", "evenly spaced")] == [6.9, 1.8]),
    said({"errata": "With ten distributions and a thousand images the variance of nine of our ten models falls, by factors of 3 to 79. That of the MNIST DBN rises by half:"
                    " its slope is 0.36, with a standard error of 0.02"},
     lambda s: [m for m, f in s.column("control-variate-few-steps", "reduction", steps=10, images=1_000).items() if f < 1] == ["MNIST DBN"]
     and spans([f for m, f in s.column("control-variate-few-steps", "reduction").items() if m != "MNIST DBN"], 3, 79, 0.5)
     and near(1 / (r := s.row("control-variate-few-steps", model="MNIST DBN"))["reduction"], 1.5, 0.05) and near(r["alpha"], 0.36, 0.005) and near(r["alpha_error"], 0.02, 0.005)),
    # what else a chapter prints and the prose leans on
    said({"05": "miss the hidden states of CD1(20) that hold most of its $Z$"},
     lambda s: silently_missed(s, "one long Gibbs chain")),
    printed("06", ch06.best_rbm_above_mixtures, "the best RBM predicts the test images better than the best mixture: yes"),
    printed("07", ch07.stored_sides, "DBN-CD3 is the exception",
            "annealing the upper layer makes more of the runs count for every model but DBN-CD3: yes"),
    printed("10", ch10.stored_curves,
            "at the paper's size RAISE exceeds its model's lowest AIS estimate from enough chains at no K, up to the errors: yes"),
    said({"15": "they meet for no fresh binarisation: yes"},
     lambda s: all(low > high for low, high in map(averages_meet, fresh(s)))),
]
# fmt: on
