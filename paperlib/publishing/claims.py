"""The conclusions of the two papers, each judged from the stored records.

A claim is an inequality or an ordering. Its threshold is the paper's own, with an allowance of three Monte Carlo standard errors.
Where the paper went to a larger K than we did and a gap is still open, the claim is *open at our K*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paperlib.experiments.recipes import RECIPES, model_path
from paperlib.experiments.seeds import FEWEST_SEEDS, prediction_interval
from paperlib.learning import ContrastiveDivergence
from paperlib.models.files import read_metadata
from paperlib.publishing.tables import format_value

#: The possible outcomes of a claim, the best first.
OUTCOMES = ("holds", "partly", "open at our K", "does not hold", "no estimate", "not run")

Row = Mapping[str, Any]
Records = Callable[[str], Mapping[str, Any] | None]

#: Annealing steps of AIS and RAISE in both tables of the second paper.
PAPERS_K = 100_000
#: Chains of AIS in these tables. CSL is given as many Gibbs steps as all of these chains together.
PAPERS_CHAINS = 5_000
_RBMS, _DEEP = "raise-table-1", "raise-table-2"
_PATHS = "sm2008-training-paths"


@dataclass(frozen=True)
class Finding:
    """How a claim was judged.

    Attributes
    ----------
    outcome : str
        One of `OUTCOMES`.
    ours : str
        Our numbers.
    why : str
        The reason that we found, if the claim does not simply hold.
    """

    outcome: str
    ours: str
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A conclusion of a paper.

    Attributes
    ----------
    id : str
        Name of the claim in `data/published.yaml`.
    paper : str
        `sm2008` or `raise2015`.
    where : str
        Section, table or figure.
    statement : str
        The conclusion in our words.
    chapter : str
        The name of the notebook that discusses it.
    records : tuple of str
        Names of the records that decide.
    judge : callable
        Takes the rows of each of these records and returns a `Finding`.
    """

    id: str
    paper: str
    where: str
    statement: str
    chapter: str
    records: tuple[str, ...]
    judge: Callable[..., Finding]

    def finding(self, stored: Records) -> Finding:
        """The finding from the records; `not run` if one of them does not exist.

        Parameters
        ----------
        stored : callable
            Returns the record with a given name, or None.
        """
        records = [stored(name) for name in self.records]
        missing = [name for name, record in zip(self.records, records, strict=True) if not record]
        if missing:
            return Finding("not run", "–", f"{', '.join(missing)} has not been computed")
        return self.judge(*(record["rows"] for record in records if record))


def findings(stored: Records) -> dict[str, Finding]:
    """The finding for every claim, by its id."""
    return {claim.id: claim.finding(stored) for claim in CLAIMS}


def _named(rows: Iterable[Row]) -> dict[str, Row]:
    return {row["model"]: row for row in rows}


def _listed(values: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {format_value(value)}" for name, value in values.items())


def _holds(condition: bool, ours: str, why: str = "") -> Finding:
    return Finding("holds", ours) if condition else Finding("does not hold", ours, why)


def _share(held: Sequence[bool], ours: str, why: str) -> Finding:
    """The finding for a claim about several cases."""
    if all(held):
        return Finding("holds", ours)
    return Finding("partly" if any(held) else "does not hold", ours, why)


# ---- intervals and ratios of the first paper


def _inside(interval: Sequence[float], value: float) -> bool:
    low, high = (float(end) for end in interval)
    return low <= value <= high


def _intervals_hold_truth(rows: Sequence[Row]) -> Finding:
    held = {row["model"]: _inside(row["interval_3_sigma"], row["exact_log_z"]) for row in rows}
    ours = f"{sum(held.values())} of {len(held)} intervals of 100 runs hold the exact value"
    missed = ", ".join(name for name, inside in held.items() if not inside)
    return _share(list(held.values()), ours, f"missed for {missed}")


def _ten_runs(rows: Sequence[Row]) -> Finding:
    off = {r["model"]: r["log_z"] - r["exact_log_z"] for r in rows if r["runs"] == 10}
    warned = {r["model"] for r in rows if r["runs"] == 10 and r["warned"] == "yes"}
    near = [abs(error) <= 1 and name not in warned for name, error in off.items()]
    why = (
        f"the library distrusts ten runs of {', '.join(sorted(warned))}"
        if warned
        else "off by more than a nat"
    )
    return _share(near, f"ln Z off by: {_listed(off)}", why)


def _ratio_truth(rows: Sequence[Row]) -> Finding:
    row = rows[0]
    ours = f"ln r {format_value(row['log_ratio'])}, exact {format_value(row['exact'])}"
    why = (
        "the chain from which the runs start, and most of their weights, miss a mode of our models"
    )
    return _holds(_inside(row["interval_3_sigma"], row["exact"]), ours, why)


def _ratio_agrees(rows: Sequence[Row]) -> Finding:
    row = rows[0]
    apart = row["log_ratio"] - row["difference"]
    low, high = (float(end) for end in row["interval_3_sigma"])
    other_low, other_high = (float(end) for end in row["difference_interval"])
    width = math.hypot((high - low) / 2, (other_high - other_low) / 2)
    ours = f"direct less difference {format_value(apart)}, three standard deviations {format_value(width)}"
    return _holds(abs(apart) <= width, ours)


# ---- what the first paper says of its models


def _at_judged_length(rows: Iterable[Row], model: str, column: str) -> dict[int, float]:
    """A model's values by seed, at the training length that was fixed beforehand, where AIS is trusted."""
    return {
        row["seed"]: float(row[column])
        for row in rows
        if row["model"] == model
        and row["judged"] == "yes"
        and row["distrusted"] == "no"
        and row[column] is not None
    }


def _difference(
    better: Mapping[int, float], worse: Mapping[int, float], published: float
) -> Finding:
    """The finding for the difference of two rows of Table 1, taken seed by seed."""
    seeds = sorted(better.keys() & worse.keys())
    if len(seeds) < FEWEST_SEEDS:
        return Finding("no estimate", "–", f"{len(seeds)} seeds of both; {FEWEST_SEEDS} are needed")
    gains = [better[seed] - worse[seed] for seed in seeds]
    low, high = prediction_interval(gains)
    ours = f"{format_value(min(gains))} to {format_value(max(gains))} nats over {len(seeds)} seeds"
    if low <= published <= high:
        return Finding("holds", ours)
    if min(gains) > 0:
        return Finding(
            "partly",
            ours,
            "the order holds for every seed, the size depends on the length of training",
        )
    return Finding("does not hold", ours, "the order depends on seed and length of training")


def _cd3_over_cd1(rows: Sequence[Row]) -> Finding:
    better, worse = (_at_judged_length(rows, name, "test") for name in ("CD3(500)", "CD1(500)"))
    return _difference(better, worse, 20)


def _cd25_over(model: str, published: float) -> Callable[..., Finding]:
    def judge(rows: Sequence[Row], own: Sequence[Row]) -> Finding:
        worse = _at_judged_length(rows, model, "test")
        return _difference({seed: float(own[0]["test"]) for seed in worse}, worse, published)

    return judge


def _mixtures_below_rbm(rows: Sequence[Row], own: Sequence[Row]) -> Finding:
    test = {row["model"]: row["test"] for row in rows}
    # Mixtures whose start and smoothing were chosen without any published number.
    unfitted = {name: value for name, value in test.items() if name.endswith("started at images")}
    rbm = own[0]["test"]
    ours = f"{_listed(unfitted)}; CD25(500) {format_value(rbm)}"
    return _holds(bool(unfitted) and max(unfitted.values()) < rbm, ours)


def _one_hidden_state(rows: Sequence[Row]) -> Finding:
    masses = list(_at_judged_length(rows, "CD1(20)", "largest_mass").values())
    if len(masses) < FEWEST_SEEDS:
        return Finding("no estimate", "–", f"{len(masses)} seeds; {FEWEST_SEEDS} are needed")
    low, high = prediction_interval(masses)
    ours = f"{format_value(min(masses))} to {format_value(max(masses))} over {len(masses)} seeds"
    return _holds(low <= 0.93 <= high, ours, "the mass depends on seed and length of training")


def _second_layer_parameters() -> Finding:
    ratio = 500 * 2_000 / (784 * 500)
    return _holds(ratio > 2, f"{format_value(ratio)} times as many weights")


def _dbn_training_time() -> Finding:
    """The minutes for an epoch of the second layer against those of the first, as the files of the stored models state them."""
    ratios = {}
    for below, above in (("mnist-cd1-500", "mnist-dbn-cd1"), ("mnist-cd3-500", "mnist-dbn-cd3")):
        minutes = []
        for model_id in (below, above):
            training, path = RECIPES[model_id].training, model_path(model_id)
            metadata = read_metadata(path) if path.is_file() else {}
            if "minutes" not in metadata or not isinstance(training, ContrastiveDivergence):
                return Finding("not run", "–", f"the time of {model_id} is not known")
            minutes.append(float(metadata["minutes"]) / training.epochs)
        ratios[RECIPES[above].label] = 1 + minutes[1] / minutes[0]
    # "Roughly three times longer" means a ratio that rounds to three.
    near = [round(ratio) == 3 for ratio in ratios.values()]
    return _share(
        near,
        f"both layers against the first, with as many epochs each: {_listed(ratios)} times",
        "ours takes longer",
    )


# ---- deep belief nets of the first paper


def _gain(model: str, published: float, why: str) -> Callable[..., Finding]:
    def judge(rows: Sequence[Row]) -> Finding:
        row = _named(rows)[f"Test {model}"]
        ours = f"{format_value(row['gain'])} nats"
        low = float(row["ais_error"][0])
        if math.isinf(low) or row["warnings"] != "none":
            runs = format_value(row["effective_sample_size"])
            return Finding(
                "no estimate",
                ours,
                f"AIS on the second layer is worth {runs} effective runs, so that the bound may be too high. {why}",
            )
        error = math.hypot(row["error_bound"], low)
        if row["gain"] + error >= published:
            return Finding("holds", ours)
        return Finding("partly" if row["gain"] > 0 else "does not hold", ours, why)

    return judge


def _no_gain(rows: Sequence[Row]) -> Finding:
    row = _named(rows)["Test DBN-CD25"]
    error = math.hypot(row["error_bound"], float(row["ais_error"][0]))
    ours = f"bound {format_value(row['bound'])}, RBM {format_value(row['rbm'])}"
    return _holds(row["gain"] <= error, ours, "ours gains more than the error")


def _total_error(rows: Sequence[Row]) -> Finding:
    widths = {
        row["model"]: row["error_bound"] + max(abs(float(end)) for end in row["ais_error"])
        for row in rows
    }
    finite = {name: width for name, width in widths.items() if math.isfinite(width)}
    distrusted = ", ".join(sorted(widths.keys() - finite.keys()))
    ours = f"up to {format_value(max(finite.values()))} nats" if finite else "–"
    held = [width <= 2 for width in widths.values()]
    return _share(
        held, ours, f"AIS's error has no finite end for {distrusted}" if distrusted else "larger"
    )


def _train_test(*printed: int) -> Callable[..., Finding]:
    """Whether gaps round to the number that the paper states, or to those that its own tables round to."""

    def judge(rows: Sequence[Row], *own: Sequence[Row]) -> Finding:
        gaps = {}
        if own:
            gaps["CD25(500), the authors' weights"] = own[0][0]["train"] - own[0][0]["test"]
            for model in ("CD1(500)", "CD3(500)"):
                test, train = (
                    _at_judged_length(rows, model, column) for column in ("test", "train")
                )
                if test:
                    gaps[model] = sum(train[seed] - test[seed] for seed in test) / len(test)
        else:
            bounds = {row["model"]: row["bound"] for row in rows}
            for model in ("DBN-CD1", "DBN-CD3", "DBN-CD25"):
                gaps[model] = bounds[f"Train {model}"] - bounds[f"Test {model}"]
        near = [round(gap) in printed for gap in gaps.values()]
        return _share(near, _listed(gaps), "the gap grows with the length of training")

    return judge


# ---- brackets of the second paper


def _gap_cases(rows: Iterable[Row], start: str, models: Callable[[str], bool]) -> list[Row]:
    cases = []
    for row in rows:
        if models(row["model"]):
            effective = row.get(f"{start}_effective")
            cases.append(
                {
                    "model": row["model"],
                    "steps": row.get("steps", row.get(f"{start}_steps")),
                    "gap": row[f"{start}_gap"],
                    "error": row[f"{start}_gap_error"],
                    "effective": effective,
                }
            )
    return cases


def _within(
    cases: Sequence[Row], limit: float, longer: Iterable[Row] = (), *, exceptions: int = 0
) -> Finding:
    """Whether all gaps but `exceptions` are at most `limit`, within three standard errors; `longer` has some at the paper's K."""
    gaps = "; ".join(
        f"{case['model']} {format_value(case['gap'])} (K = {case['steps']:,})" for case in cases
    )
    wide = [case for case in cases if abs(case["gap"]) > limit + 3 * case["error"]]
    if len(wide) <= exceptions:
        # As for a bracket, it proves nothing if two noisy numbers are near each other.
        noisy = [case["model"] for case in cases if case["error"] > limit / 2]
        if noisy:
            why = f"the error of the gap is more than half of that for {', '.join(noisy)}"
            return Finding("no estimate", gaps, why)
        return Finding("holds", gaps)
    at_papers_k = {row["model"]: row["gap"] for row in longer if row["steps"] == PAPERS_K}
    lasting = [
        case["model"]
        for case in wide
        if case["steps"] == PAPERS_K or case["gap"] < 0 or at_papers_k.get(case["model"], 0) > limit
    ]
    names = ", ".join(case["model"] for case in wide)
    told = "; ".join(
        f"{name} {format_value(gap)} at the paper's K on a few images"
        for name, gap in at_papers_k.items()
        if any(case["model"] == name for case in wide)
    )
    if not lasting:
        why = f"still open at a smaller K than the paper's: {names}"
        return Finding("open at our K", gaps, f"{why}; {told}" if told else why)
    outcome = "partly" if len(wide) < len(cases) else "does not hold"
    return Finding(outcome, gaps, f"not for {names}; {told}" if told else f"not for {names}")


def _gaps(
    start: str, limit: float, *left_out: str, models: Callable[[str], bool] = lambda _: True
) -> Callable[..., Finding]:
    def judge(rows: Sequence[Row], *longer: Sequence[Row]) -> Finding:
        cases = _gap_cases(rows, start, lambda name: name not in left_out and models(name))
        return _within(cases, limit, *longer)

    return judge


def _many_small_gaps(rows: Sequence[Row]) -> Finding:
    cases = _gap_cases(rows, "base_rate", lambda _: True)
    small = [case["model"] for case in cases if abs(case["gap"]) <= 0.1]
    ours = f"{len(small)} of {len(cases)}: {', '.join(small) or 'none'}"
    if 2 * len(small) > len(cases):
        return Finding("holds", ours)
    finding = _within(cases, 0.1)
    unless_some = "does not hold" if finding.outcome == "partly" else finding.outcome
    outcome = "partly" if small else unless_some
    return Finding(outcome, ours, finding.why)


def _conservative(rows: Iterable[Row], starts: Iterable[str]) -> list[str]:
    """Models for which RAISE exceeds the lowest AIS estimate by more than three standard errors."""
    exceptions = []
    for row in rows:
        lowest = min(row[f"{start}_ais"] for start in starts)
        for start in starts:
            if row[f"{start}_raise"] - 3 * row[f"{start}_raise_error"] > lowest:
                exceptions.append(row["model"])
                break
    return exceptions


def _one_exception(rows: Sequence[Row]) -> Finding:
    found = _conservative(rows, ["base_rate"])
    ours = f"exceptions: {', '.join(found) or 'none'}"
    why = "our models were trained anew; for these the annealing model fits the images better"
    return _holds(len(found) <= 1, ours, why)


def _all_conservative(rbms: Sequence[Row], deep: Sequence[Row]) -> Finding:
    found = _conservative([*rbms, *deep], ["uniform", "base_rate"])
    return _holds(
        len(found) <= 2,
        f"exceptions: {', '.join(found) or 'none'}",
        "more exceptions than the paper names",
    )


def _all_accurate(rbms: Sequence[Row], deep: Sequence[Row], longer: Sequence[Row]) -> Finding:
    cases = []
    for row in (*rbms, *deep):
        best = max(("uniform", "base_rate"), key=lambda start: row[f"{start}_raise"])
        lowest = min(row["uniform_ais"], row["base_rate_ais"])
        cases.append(
            {
                "model": row["model"],
                "steps": row.get("steps", row.get(f"{best}_steps")),
                "gap": lowest - row[f"{best}_raise"],
                "error": row[f"{best}_gap_error"],
            }
        )
    return _within(cases, 1, longer, exceptions=1)


def _bracket_holds_truth(rows: Sequence[Row]) -> Finding:
    held, ours = [], []
    for row in rows:
        if row["exact"] is not None:
            low = row["base_rate_raise"] - 3 * row["base_rate_raise_error"]
            high = row["base_rate_ais"] + 3 * row["base_rate_ais_error"]
            held.append(low <= row["exact"] <= high)
            ours.append(
                f"{row['model']}: {format_value(row['base_rate_raise'])} to {format_value(row['base_rate_ais'])}, exact {format_value(row['exact'])}"
            )
    return _share(
        held, "; ".join(ours), "RAISE exceeds the exact value, as in the paper's Figure 5"
    )


def _uniform_start_misleads(rows: Sequence[Row]) -> Finding:
    row = _named(rows)["mnistCD1-500"]
    ours = f"uniform gap {format_value(row['uniform_gap'])}, base rates {format_value(row['base_rate_gap'])} (K = {row['steps']:,})"
    smaller = row["uniform_gap"] - 3 * row["uniform_gap_error"] > abs(row["base_rate_gap"])
    if row["uniform_gap"] - 3 * row["uniform_gap_error"] > 10 and smaller:
        return Finding("holds", ours)
    return Finding(
        "partly" if smaller else "does not hold",
        ours,
        "our model's gap is smaller than the paper's",
    )


def _base_rates_better(rows: Sequence[Row]) -> Finding:
    held = {
        row["model"]: abs(row["base_rate_gap"])
        <= abs(row["uniform_gap"])
        + 3 * math.hypot(row["uniform_gap_error"], row["base_rate_gap_error"])
        for row in rows
    }
    missed = ", ".join(name for name, better in held.items() if not better)
    return _share(
        list(held.values()), f"{sum(held.values())} of {len(held)} models", f"not for {missed}"
    )


def _csl_far_below(rows: Sequence[Row]) -> Finding:
    short = {row["model"]: row["base_rate_ais"] - row["csl"] for row in rows}
    tens = [value > 10 for value in short.values()]
    ours = (
        f"short by: {_listed(short)}; {rows[0]['csl_states']:,} hidden states each, the paper's "
        f"{PAPERS_CHAINS * PAPERS_K:,}"
    )
    if 2 * sum(tens) > len(tens):
        return Finding("holds", ours)
    return Finding("partly", ours, "with fewer hidden states than the paper's")


def _omniglot_overestimate(rows: Sequence[Row]) -> Finding:
    row = _named(rows)["Omniglot DBM"]
    lowest = min(row["uniform_ais"], row["base_rate_ais"])
    over = max(row["uniform_raise"], row["base_rate_raise"]) - lowest
    return _holds(
        over >= 6,
        f"{format_value(over)} nats",
        "our DBM was trained anew on other images, and RAISE stays below AIS",
    )


def _is_dbn(name: str) -> bool:
    return name.endswith("DBN")


_OWN = "sm2008-own-weights"
_SMALL = "05-exact-partition-functions"
_FULL, _BELIEF, _RAISE, _DBM = (
    "06-full-size-rbms",
    "07-deep-belief-networks",
    "08-raise",
    "10-deep-boltzmann-machines",
)
_SEEDS = "15-own-images-weights-and-seeds"
_BASE = "our CD1(500) and CD3(500), on which these layers stand, are fitted"

#: Every conclusion of both papers, in the order of the papers.
CLAIMS = (
    Claim(
        "intervals-hold-truth",
        "sm2008",
        "Table 1",
        "The 3-sigma interval of 100 AIS runs holds the exact ln Z of each small RBM.",
        _SMALL,
        ("sm2008-table-1",),
        _intervals_hold_truth,
    ),
    Claim(
        "ten-runs",
        "sm2008",
        "Section 5.1",
        "Ten runs give good estimates of ln Z for the small RBMs.",
        _SMALL,
        ("sm2008-figure-3",),
        _ten_runs,
    ),
    Claim(
        "ratio-truth",
        "sm2008",
        "Section 5.1",
        "AIS between two RBMs of different size gives their exact ratio, within its interval.",
        _SMALL,
        ("sm2008-ratios",),
        _ratio_truth,
    ),
    Claim(
        "ratio-agrees",
        "sm2008",
        "Section 5.1",
        "For CD25(500) and CD3(500), the direct ratio agrees with the difference of two ln Z within three standard deviations.",
        _FULL,
        ("sm2008-ratios-full-size",),
        _ratio_agrees,
    ),
    Claim(
        "cd3-over-cd1",
        "sm2008",
        "Section 5.1",
        "CD3(500) is better than CD1(500) by 20 nats.",
        _SEEDS,
        (_PATHS,),
        _cd3_over_cd1,
    ),
    Claim(
        "cd25-over-cd1",
        "sm2008",
        "Section 5.1",
        "CD25(500) is better than CD1(500) by 39 nats.",
        _SEEDS,
        (_PATHS, _OWN),
        _cd25_over("CD1(500)", 39),
    ),
    Claim(
        "cd25-over-cd3",
        "sm2008",
        "Section 5.1",
        "CD25(500) is better than CD3(500) by 19 nats.",
        _SEEDS,
        (_PATHS, _OWN),
        _cd25_over("CD3(500)", 19),
    ),
    Claim(
        "mixtures-below-rbm",
        "sm2008",
        "Section 5.1",
        "Mixtures of up to 500 Bernoullis are far worse than the best RBM.",
        _FULL,
        ("sm2008-mixtures", _OWN),
        _mixtures_below_rbm,
    ),
    Claim(
        "dbn-training-time",
        "sm2008",
        "Section 5.2",
        "Training a DBN takes roughly three times as long as its RBM.",
        _BELIEF,
        (),
        _dbn_training_time,
    ),
    Claim(
        "second-layer-parameters",
        "sm2008",
        "Section 5.2",
        "The second layer adds over twice as many weights as the first has.",
        _BELIEF,
        (),
        _second_layer_parameters,
    ),
    Claim(
        "dbn-cd1-gain",
        "sm2008",
        "Section 5.2",
        "A second layer on CD1(500) gains at least 25 nats.",
        _BELIEF,
        ("sm2008-table-2",),
        _gain("DBN-CD1", 25, _BASE),
    ),
    Claim(
        "dbn-cd3-gain",
        "sm2008",
        "Section 5.2",
        "A second layer on CD3(500) gains at least 7 nats.",
        _BELIEF,
        ("sm2008-table-2",),
        _gain("DBN-CD3", 7, _BASE),
    ),
    Claim(
        "dbn-cd25-no-gain",
        "sm2008",
        "Section 5.2",
        "A second layer on CD25(500) does not gain more than the error.",
        _BELIEF,
        ("sm2008-table-2",),
        _no_gain,
    ),
    Claim(
        "total-error",
        "sm2008",
        "Table 2",
        "The total error of the bound is about 2 nats.",
        _BELIEF,
        ("sm2008-table-2",),
        _total_error,
    ),
    Claim(
        "rbm-train-test",
        "sm2008",
        "Section 5.2",
        "Training images are about 3 nats more probable than test images under the RBMs of 500 units.",
        _SEEDS,
        (_PATHS, _OWN),
        _train_test(3),
    ),
    Claim(
        "dbn-train-test",
        "sm2008",
        "Section 5.2",
        "Their bounds are about 4 nats higher under the DBNs.",
        _BELIEF,
        ("sm2008-table-2",),
        _train_test(3, 4),
    ),
    Claim(
        "bracket-holds-truth",
        "raise2015",
        "Table 1",
        "AIS and RAISE from base rates bracket the exact value of the small RBMs.",
        _RAISE,
        (_RBMS,),
        _bracket_holds_truth,
    ),
    Claim(
        "base-rates-within-1",
        "raise2015",
        "Section 5.1",
        "From base rates AIS and RAISE agree within a nat for every RBM.",
        _RAISE,
        (_RBMS, "raise-longer"),
        _gaps("base_rate", 1),
    ),
    Claim(
        "base-rates-many",
        "raise2015",
        "Section 5.1",
        "In many cases they agree within 0.1 nats.",
        _RAISE,
        (_RBMS,),
        _many_small_gaps,
    ),
    Claim(
        "base-rates-others",
        "raise2015",
        "Section 5.1",
        "They agree within 0.1 nats for every RBM but mnistCD1-20.",
        _RAISE,
        (_RBMS, "raise-longer"),
        _gaps("base_rate", 0.1, "mnistCD1-20"),
    ),
    Claim(
        "base-rates-exceptions",
        "raise2015",
        "Section 5.1",
        "RAISE from base rates is conservative for every RBM but one.",
        _RAISE,
        (_RBMS,),
        _one_exception,
    ),
    Claim(
        "base-rates-better",
        "raise2015",
        "Section 5.1",
        "Base rates agree at least as well as the uniform start.",
        _RAISE,
        (_RBMS,),
        _base_rates_better,
    ),
    Claim(
        "uniform-start-misleads",
        "raise2015",
        "Section 5.1",
        "From the uniform start AIS can be tens of nats too high, where base rates agree: mnistCD1-500.",
        _RAISE,
        (_RBMS,),
        _uniform_start_misleads,
    ),
    Claim(
        "uniform-start-agrees",
        "raise2015",
        "Table 1",
        "From the uniform start, too, AIS and RAISE agree within about two nats for the other RBMs.",
        _RAISE,
        (_RBMS,),
        _gaps("uniform", 2.09, "mnistCD1-500"),
    ),
    Claim(
        "csl-far-below",
        "raise2015",
        "Section 5.1",
        "CSL falls short by tens of nats in almost all cases.",
        _RAISE,
        (_RBMS,),
        _csl_far_below,
    ),
    Claim(
        "one-hidden-state",
        "raise2015",
        "Section 5.1",
        "A single hidden state holds 93 % of mnistCD1-20's probability.",
        _SEEDS,
        (_PATHS,),
        _one_hidden_state,
    ),
    Claim(
        "mnist-dbm-agrees",
        "raise2015",
        "Table 2",
        "AIS and RAISE agree within a nat for the MNIST DBM.",
        _DBM,
        (_DEEP,),
        _gaps("base_rate", 1, models=lambda name: name == "MNIST DBM"),
    ),
    Claim(
        "omniglot-dbm-overestimate",
        "raise2015",
        "Section 5.2",
        "RAISE overestimates the Omniglot DBM by at least 6 nats.",
        _DBM,
        (_DEEP,),
        _omniglot_overestimate,
    ),
    Claim(
        "dbn-gaps",
        "raise2015",
        "Section 5.3",
        "AIS and RAISE agree within a nat for both DBNs.",
        _DBM,
        (_DEEP,),
        _gaps("uniform", 1, models=_is_dbn),
    ),
    Claim(
        "all-conservative",
        "raise2015",
        "Section 5.4",
        "RAISE is conservative for all models but two.",
        _DBM,
        (_RBMS, _DEEP),
        _all_conservative,
    ),
    Claim(
        "all-accurate",
        "raise2015",
        "Section 5.4",
        "RAISE is within a nat of the lowest AIS estimate for all models but one.",
        _DBM,
        (_RBMS, _DEEP, "raise-longer"),
        _all_accurate,
    ),
)
