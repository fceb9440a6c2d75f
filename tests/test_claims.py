"""What is claimed of the papers' records: each claim holds of the committed ones and fails on others, and each rule by hand."""

import importlib
import itertools
import math
import pkgutil

import pytest

from boltzmann_companion import claims
from boltzmann_companion.claims import claims as rules
from boltzmann_companion.claims.checks import STORED, Stored
from boltzmann_companion.claims.claims import CLAIMS, OUTCOMES, SUBJECTS, Finding, findings
from boltzmann_companion.claims.report import (
    PAPERS,
    bracket_table,
    claim_findings,
    claim_table,
    conclusion_table,
    outcome_counts,
    report_rows,
)

for module in pkgutil.iter_modules(claims.__path__, f"{claims.__name__}."):
    importlib.import_module(module.name)


def name_of(claim):
    return f"{claim.judge.__module__.split('.')[-1]}.{claim.judge.__name__}"


BY_ID = {claim.id: claim for claim in CLAIMS}
# The claims that no record can decide, since the paper leaves out what they depend on.
UNDECIDED = [BY_ID[name] for name in ("dbn-training-time", "csl-far-below", "ones-less-eights")]
# The committed records.
GIVEN = Stored()
EVERY = [*STORED, *CLAIMS]
# What a number of a record is changed to.
CHANGES = (lambda v: -v, lambda v: 3 * v + 7, lambda v: 0 * v, lambda v: v + 50, lambda v: v / 9)
# What a claim may meet in records that no run could have made.
UNDEFINED = (ArithmeticError, AssertionError, LookupError, StopIteration, TypeError, ValueError)


def answers(claim, stored):
    """Each sentence, with the outcome of a conclusion or with whether it holds."""
    found = claim.found(stored)
    if isinstance(found, Finding):
        return [(claim.statement, found.outcome)]
    return [(each.claim, bool(each.holds)) for each in found]


def read_by(claim):
    """The names of the records that a claim reads."""
    names = []
    answers(claim, Stored(lambda name: names.append(name) or GIVEN.record(name)))
    return list(dict.fromkeys(names))


def others(names):
    """The records with other numbers: all of them, those of a column, or a single one; or rows with what another model has."""
    rows = {name: GIVEN.record(name)["rows"] for name in names}
    columns = dict.fromkeys(key for own in rows.values() for row in own for key in row)
    most = max(map(len, rows.values()))
    one_cell = itertools.product(columns, range(most))
    places = itertools.chain([(None, None)], ((key, None) for key in columns), one_cell)
    for (column, row), change in itertools.product(places, CHANGES):
        yield {
            name: [
                {
                    key: changed(value, change)
                    if column in (None, key) and row in (None, number)
                    else value
                    for key, value in found.items()
                }
                for number, found in enumerate(own)
            ]
            for name, own in rows.items()
        }
    for shift in range(1, most):
        yield {
            name: [
                own[(number + shift) % len(own)] | {"model": found.get("model")}
                for number, found in enumerate(own)
            ]
            for name, own in rows.items()
        }


def changed(value, change):
    if isinstance(value, list):
        return [changed(part, change) for part in value]
    if isinstance(value, str) and value.replace(", ", "").isdecimal():
        return ", ".join(str(changed(int(part), change)) for part in value.split(", "))
    if not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return round(change(value)) if math.isfinite(change(value)) else value
    return change(value)


@pytest.mark.parametrize("claim", EVERY, ids=name_of)
def test_claims_hold(claim):
    found = claim.found(GIVEN)
    if isinstance(found, Finding):
        # chapter 13 counts what became of them
        assert found.outcome != "not run"
    else:
        checks = list(found)
        assert checks
        assert [each.claim for each in checks if each.answer != "yes"] == []


@pytest.mark.parametrize("claim", [claim for claim in EVERY if claim not in UNDECIDED], ids=name_of)
def test_claims_fail_on_other_records(claim):
    """Each of its sentences, which is known by its place, since its words may hold a number."""
    given = answers(claim, GIVEN)
    never = set(range(len(given)))
    for rows in others(read_by(claim)):
        try:
            found = answers(claim, Stored(lambda name, rows=rows: {"rows": rows[name]}))
        except UNDEFINED:
            continue
        if len(found) == len(given):
            never = {n for n in never if found[n][1] == given[n][1]}
        if not never:
            break
    assert [given[n][0] for n in sorted(never)] == []


def test_every_claim_is_found_once_and_says_where_it_is_discussed():
    found = claim_findings()
    assert list(found) == [claim.id for claim in CLAIMS]
    assert len(found) == len(CLAIMS) >= 21
    assert sum(outcome_counts(found).values()) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.paper in PAPERS
        assert claim.statement.endswith(".")
        finding = found[claim.id]
        assert finding.outcome in OUTCOMES
        assert claim.about in SUBJECTS
        # what does not simply hold has its reason beside it
        assert finding.why or finding.outcome == "holds"
    assert len(claim_table(found).rows) == len(CLAIMS)


def test_the_conclusion_counts_every_claim_once():
    found = claim_findings()
    rows = conclusion_table(found).rows
    assert [row[0] for row in rows] == list(SUBJECTS)
    assert sum(int(row[1]) for row in rows) == len(CLAIMS)
    for _, number, *kinds in rows:
        assert int(number) == sum(map(int, kinds))
    assert sum(int(row[2]) for row in rows) == outcome_counts(found)["holds"]


def test_brackets_are_counted_by_start():
    """Typed from the records."""
    rows = {(start, steps): rest for start, steps, *rest in bracket_table(report_rows()).rows}
    assert rows["base rate", "100,000"] == ["8", "6", "mnistCD1-500 3.87", "–", "mnistCD1-20 −1.08"]
    assert rows["uniform", "100,000"][:4] == ["10", "4", "mnistCD1-500 10.53", "–"]
    assert rows["uniform", "100,000"][4].count(", ") == 4
    assert len(rows) == 2


def test_without_records_nothing_is_claimed():
    found = findings(lambda name: None)
    for claim in CLAIMS:
        if claim.records:
            assert found[claim.id].outcome == "not run"


# ---- the papers' conclusions: each rule by hand, with records that make it hold and records that do not


def small(exact, log_z, width=0.3, runs=100, warned="no", model="A"):
    """A row of AIS on a small model."""
    interval = [log_z - width, log_z + width]
    return {
        "model": model,
        "exact_log_z": exact,
        "log_z": log_z,
        "interval_3_sigma": interval,
        "runs": runs,
        "warned": warned,
    }


def small_ratio(exact):
    return [{"log_ratio": -24.2, "interval_3_sigma": [-24.5, -23.9], "exact": exact}]


def large_ratio(direct):
    """From one direction, beside the difference of two separate estimates."""
    interval = [direct - 0.3, direct + 0.3]
    separate = {"difference": 171.2, "difference_interval": [170.9, 171.5]}
    return [{"log_ratio": direct, "interval_3_sigma": interval, **separate}]


def path(model, tests, masses=0.5, distrusted="no", gap=2.7, epoch=50):
    """Some seeds of a row after one length of training, and one look at a length by which nothing is judged."""
    masses = masses if isinstance(masses, list) else [masses] * len(tests)
    points = [
        {
            "model": model,
            "seed": seed,
            "epoch": epoch,
            "distrusted": distrusted,
            "test": test,
            "train": test + gap,
            "largest_mass": mass,
        }
        for seed, (test, mass) in enumerate(zip(tests, masses, strict=True))
    ]
    return [*points, {**points[0], "epoch": 5, "test": 0.0, "largest_mass": 0.0}]


def spread(model, test, width=1.0, epoch=50):
    """Five seeds around an average, the best of them last or, with a negative width, first."""
    places = (-1.0, -0.5, 0.0, 0.5, 1.0)
    return path(model, [test + width * place for place in places], epoch=epoch)


def gains(gain, width=1.0, epoch=50):
    """CD1(500), and CD3(500) that is better by so much."""
    better = spread("CD3(500)", -125.0 + gain, -1.0, epoch)
    return spread("CD1(500)", -125.0, width, epoch) + better


def five(test_of_cd1, seeds_of_cd3=5, **more):
    """Five seeds of CD1(500), all alike, and so many of CD3(500)."""
    rows = path(
        "CD1(500)", [test_of_cd1] * 5, gap=more.get("gap", 2.7), epoch=more.get("epoch", 50)
    )
    return rows + path("CD3(500)", [-105.0] * seeds_of_cd3, **more)


def one_state(*masses, epoch=50):
    return path("CD1(20)", [-150.0] * len(masses), [*masses], epoch=epoch)


def mixtures(at_images):
    """A fitted mixture, which has no say, and one that was started at images."""
    return [
        {"model": "MoB(10)", "test": -50.0},
        {"model": "MoB(10), started at images", "test": at_images},
    ]


CD1 = spread("CD1(500)", -125.0)
OWN = [{"model": "CD25(500)", "test": -86.34, "train": -83.10}]


def bound(model, value=0.0, gain=0.0, ais=(-0.4, 0.3), warnings="none"):
    return {
        "model": model,
        "bound": value,
        "rbm": value - gain,
        "gain": gain,
        "error_bound": 0.3,
        "ais_error": list(ais),
        "warnings": warnings,
        "effective_sample_size": 7.0,
        "monte_carlo_error": 0.1,
    }


def cd1_gain(gain, *of_ais):
    """The records about a second layer on CD1(500): by the bound, and by importance sampling."""
    rows = [bound("Test DBN-CD1", -100.0, gain, *of_ais)]
    return rows, [{"model": "DBN-CD1", "gain": 23.0}]


def cd25_gain(gain, above, below=-86.2, width=0.2):
    """Those about a second layer on CD25(500): gain of the bound, and averages by parallel tempering."""
    tempering = [
        {"model": name, "ladder": value, "interval": [-value - width, -value + width]}
        for name, value in (("MNIST DBN", above), ("mnistCD25-500", below))
    ]
    rows = [bound("Test DBN-CD25", -86.2, gain), bound("Train DBN-CD25", -83.0, 0.6)]
    return rows, [{"model": "DBN-CD25", "gain": 1.8}], tempering


TRAIN_AND_TEST = [
    bound(f"{split} {name}", value)
    for name in ("DBN-CD1", "DBN-CD3", "DBN-CD25")
    for split, value in (("Test", -100.0), ("Train", -96.7))
]


def runs_of(model, *log_z, warned="no"):
    """Estimates of ln Z by ever more runs."""
    return [{"model": model, "log_z": value, "warned": warned} for value in log_z]


def spacing(theirs, evenly, model="A", error=0.5):
    variances = {"of the 2008 paper": theirs, "evenly spaced": evenly}
    row = {"model": model, "variance_error": error}
    return [row | {"schedule": s, "variance": v} for s, v in variances.items()]


def overfit(gap):
    """A mixture with 100 components, and one with 500 that no draws are shown of."""
    names = {"MoB(100), started at images": gap, "MoB(500), started at images": 9.0}
    return [{"model": name, "test": -140.0, "train": gap - 140.0} for name, gap in names.items()]


def misses(model, low, high):
    return {"model": model, "too_low": low, "too_high": high}


def deterministic(restless="none", **errors):
    of = {"mean_field": -5.0, "tap": 3.0, "bethe": -2.0, "tree_reweighted": 900.0} | errors
    planted = dict.fromkeys(of, 0.0) | {"model": "low-rank-100x80", "restless": "none"}
    return [of | {"model": "mnist-cd1-20", "restless": restless}, planted]


def slopes(*alphas, error=0.05):
    """Slopes of RAISE's values on ln p*, with ten distributions; with three nothing is asked."""
    row = {"model": "a", "steps": 3, "alpha": 0.1, "alpha_error": 0.01, "reduction": 0.5}
    found = [row | {"model": f"{n}", "steps": 10, "alpha": a} for n, a in enumerate(alphas)]
    return [row, *(each | {"alpha_error": error} for each in found)]


def curve(model, *points):
    """RAISE and AIS from the base rates with so many distributions."""
    return [
        {"model": model, "start": "base rates", "steps": steps, "raise": below, "ais": above}
        | {"raise_error": 0.1}
        for steps, below, above in points
    ]


def changes(of_ais, of_raise):
    return [{"model": "MNIST DBM", "ais_change": of_ais, "raise_change": of_raise}]


def bracket(model, gap=0.0, uniform=0.0, error=0.1, exact=None, csl=-150.0, few=()):
    """Gaps from both starts, with an error of RAISE; AIS from the starts in `few` is worth four chains."""
    ais = -100.0
    of_ais = {start: 0.5 if start in few else 0.01 for start in ("uniform", "base_rate")}
    return {
        "model": model,
        "steps": 100_000,
        "exact": exact,
        "csl": csl,
        "csl_states": 10**6,
        "csl_error": error,
        "base_rate_ais": ais,
        "base_rate_ais_error": of_ais["base_rate"],
        "base_rate_raise": ais - gap,
        "base_rate_raise_error": error,
        "base_rate_gap": gap,
        "base_rate_gap_error": math.hypot(error, of_ais["base_rate"]),
        "uniform_ais": ais,
        "uniform_ais_error": of_ais["uniform"],
        "uniform_raise": ais - uniform,
        "uniform_raise_error": error,
        "uniform_gap": uniform,
        "uniform_gap_error": math.hypot(error, of_ais["uniform"]),
    }


A, B = bracket("a"), bracket("b", 0.1)
NEAR, FAR = bracket("a", 0.05, error=0.01), bracket("b", 0.2, error=0.01)
UNKNOWN = bracket("c", 0.1, error=0.05)
NOISY = bracket("a", 0.1, error=0.6)
OVER, NAMED = bracket("b", -1.0), bracket("mnistCD1-20", -1.0)
OTHERS = [bracket("mnistCD1-20", 5.0), bracket("b", 0.05, error=0.01)]
UNIFORM = [bracket("mnistCD1-500", uniform=44.0), bracket("b", uniform=1.7)]
NAMED_DBM = bracket("Omniglot DBM", 9.0, uniform=9.0)
DEEP = [bracket("MNIST DBM", 0.5, uniform=0.6), bracket("MNIST DBN", 9.0, uniform=0.5)]

# A claim, what becomes of it, and the rows of its records.
RULES = [
    ("intervals-hold-truth", "holds", [small(1.0, 1.2), small(1.0, 0.8, model="B")]),
    ("intervals-hold-truth", "partly", [small(1.0, 1.2), small(1.0, 1.4, model="B")]),
    ("intervals-hold-truth", "does not hold", [small(1.0, 1.4)]),
    ("ten-runs", "holds", [small(1.0, 1.9, runs=10), small(1.0, 9.0)]),
    ("ten-runs", "does not hold", [small(1.0, 2.1, runs=10)]),
    ("ten-runs", "no estimate", [small(1.0, 1.1, runs=10, warned="yes")]),
    # a hit earns nothing where the library warns; a miss of what is known exactly is one all the same
    ("intervals-hold-truth", "no estimate", [small(1.0, 1.2, warned="yes")]),
    ("intervals-hold-truth", "does not hold", [small(1.0, 1.4, warned="yes")]),
    ("ten-runs", "does not hold", [small(1.0, 9.0, runs=10, warned="yes")]),
    ("many-runs", "holds", [small(1.0, 1.09), small(1.0, 9.0, runs=10)]),
    ("many-runs", "does not hold", [small(1.0, 1.2), small(1.0, 1.0, runs=10)]),
    ("many-runs", "no estimate", [small(1.0, 1.0, warned="yes")]),
    ("settles-with-runs", "holds", runs_of("A", 1.0, 1.9)),
    ("settles-with-runs", "partly", runs_of("A", 1.0, 1.9) + runs_of("B", 1.0, 2.1)),
    ("settles-with-runs", "does not hold", runs_of("A", 1.0, 2.1, 1.5)),
    ("settles-with-runs", "no estimate", runs_of("A", 1.0) + runs_of("A", 9.0, warned="yes")),
    ("bound-error-by-log-z", "holds", [bound("a")]),
    # below the error of Table 2, above that of the draws
    ("bound-error-by-log-z", "partly", [bound("a", ais=(-0.2, 0.15))]),
    ("bound-error-by-log-z", "does not hold", [bound("a", ais=(-0.05, 0.04))]),
    ("bound-error-by-log-z", "no estimate", [bound("a", ais=(-9.0, 0.5), warnings="too few")]),
    ("spacing-of-betas", "holds", spacing(1.8, 6.9)),
    ("spacing-of-betas", "does not hold", spacing(6.9, 1.8)),
    ("spacing-of-betas", "partly", spacing(1.8, 6.9) + spacing(6.9, 1.8, "B")),
    ("spacing-of-betas", "no estimate", spacing(1.8, 6.9) + spacing(1.8, 3.6, "B")),
    ("mixture-overfits", "holds", overfit(4.1)),
    ("mixture-overfits", "does not hold", overfit(3.9)),
    ("ais-mostly-low", "holds", [misses("A", 3, 1), misses("A", 1, 2)]),
    ("ais-mostly-low", "does not hold", [misses("A", 1, 1)]),
    ("deterministic-inaccurate", "holds", deterministic()),
    ("deterministic-inaccurate", "partly", deterministic(bethe=0.4)),
    ("deterministic-inaccurate", "no estimate", deterministic("TAP, Bethe", tap=0.4, bethe=0.2)),
    ("control-variate", "holds", slopes(0.7, 1.4)),
    ("control-variate", "partly", slopes(0.7, 0.3)),
    ("control-variate", "no estimate", slopes(0.7, 0.4)),
    ("control-variate", "does not hold", slopes(0.3)),
    ("ratio-truth", "holds", small_ratio(-24.0)),
    ("ratio-truth", "does not hold", small_ratio(-23.0)),
    ("ratio-agrees", "holds", large_ratio(171.0)),
    ("ratio-agrees", "does not hold", large_ratio(169.0)),
    # five seeds that are trusted, and a gain that is more than their differences
    ("cd3-over-cd1", "holds", gains(20)),
    ("cd3-over-cd1", "partly", gains(35)),
    ("cd3-over-cd1", "does not hold", gains(0.5)),
    ("cd3-over-cd1", "says nothing", gains(20, width=20.0)),
    ("cd3-over-cd1", "no estimate", five(-125.0, seeds_of_cd3=4)),
    ("cd3-over-cd1", "no estimate", five(-125.0, distrusted="yes")),
    # after one length of training but not after another, whichever comes first; after one of them there is no estimate
    ("cd3-over-cd1", "partly", gains(35, epoch=10) + gains(20)),
    ("cd3-over-cd1", "partly", gains(20, epoch=10) + gains(0.5)),
    ("cd3-over-cd1", "partly", gains(35, epoch=10) + gains(0.5)),
    ("cd3-over-cd1", "holds", gains(20, epoch=10) + five(-125.0, distrusted="yes")),
    ("cd3-over-cd1", "says nothing", gains(0.5, epoch=10) + gains(20, width=20.0)),
    ("cd25-over-cd1", "holds", CD1, [{"test": -86.0}]),
    ("cd25-over-cd1", "partly", CD1, [{"test": -71.0}]),
    ("cd25-over-cd1", "partly", CD1, [{"test": -105.5}]),
    ("mixtures-below-rbm", "holds", mixtures(-120.0), OWN),
    ("mixtures-below-rbm", "does not hold", mixtures(-80.0), OWN),
    ("rbm-train-test", "holds", five(-120.0), OWN),
    ("rbm-train-test", "partly", five(-120.0, gap=1.0), OWN),
    ("rbm-train-test", "partly", five(-120.0, gap=1.0, epoch=10) + five(-120.0), OWN),
    ("one-hidden-state", "holds", one_state(0.91, 0.93, 0.92, 0.94, 0.93)),
    ("one-hidden-state", "does not hold", one_state(0.1, 0.12, 0.1, 0.15, 0.1)),
    (
        "one-hidden-state",
        "partly",
        one_state(0.1, 0.12, 0.1, 0.15, 0.1, epoch=10) + one_state(0.91, 0.93, 0.92, 0.94, 0.93),
    ),
    # an interval that ends above 1 excludes no larger share
    ("one-hidden-state", "says nothing", one_state(0.7, 0.85, 0.9, 0.95, 0.9)),
    ("one-hidden-state", "no estimate", one_state(0.5, 0.5, 0.5, 0.5)),
    # at least 25 nats, within the error of 0.5
    ("dbn-cd1-gain", "holds", *cd1_gain(24.6)),
    ("dbn-cd1-gain", "partly", *cd1_gain(24.4)),
    ("dbn-cd1-gain", "does not hold", *cd1_gain(-1.0)),
    ("dbn-cd1-gain", "no estimate", *cd1_gain(30.0, (-math.inf, 0.3))),
    ("dbn-cd1-gain", "no estimate", *cd1_gain(30.0, (-0.4, 0.3), "too few")),
    # a second layer may gain what its bound does not show, here with an error of 0.28
    ("dbn-cd25-no-gain", "holds", *cd25_gain(0.4, above=-86.1)),
    ("dbn-cd25-no-gain", "holds", *cd25_gain(0.4, above=-86.0)),
    ("dbn-cd25-no-gain", "partly", *cd25_gain(0.4, above=-85.8)),
    ("dbn-cd25-no-gain", "does not hold", *cd25_gain(0.6, above=-86.1)),
    ("total-error", "holds", [bound("a"), bound("b", ais=(-1.6, 0.1))]),
    ("total-error", "partly", [bound("a"), bound("b", ais=(-1.8, 0.1))]),
    ("total-error", "does not hold", [bound("a", ais=(-math.inf, 0.1))]),
    ("dbn-train-test", "holds", TRAIN_AND_TEST),
    ("dbn-train-test", "partly", [*TRAIN_AND_TEST, bound("Train DBN-CD1", -99.0)]),
    # with an error of 0.1 the interval of a gap ends 0.31 away from it
    ("base-rates-within-1", "holds", [bracket("a", 0.68), B]),
    ("base-rates-within-1", "no estimate", [bracket("a", 1.2), B]),
    ("base-rates-within-1", "partly", [bracket("a", 1.4), B]),
    ("base-rates-within-1", "partly", [bracket("a", -1.4), B]),
    ("base-rates-others", "holds", OTHERS),
    ("base-rates-others", "partly", [*OTHERS, bracket("c", 0.5)]),
    ("base-rates-others", "no estimate", [*OTHERS, UNKNOWN]),
    ("uniform-start-agrees", "holds", UNIFORM),
    ("uniform-start-agrees", "partly", [*UNIFORM, bracket("c", uniform=5.0)]),
    ("mnist-dbm-agrees", "holds", DEEP),
    ("mnist-dbm-agrees", "partly", [bracket("MNIST DBM", 0.5, uniform=9.0)]),
    ("dbn-gaps", "holds", DEEP),
    # noise is no agreement; what is seen to be wide is wide, whatever is not known of another
    ("base-rates-within-1", "no estimate", [NOISY, B]),
    ("all-accurate", "no estimate", [NOISY, bracket("Omniglot DBM", 2.0)], []),
    ("base-rates-within-1", "does not hold", [NOISY, bracket("b", 9.0)]),
    # many small gaps
    ("base-rates-many", "holds", [NEAR, NEAR | {"model": "c"}, FAR]),
    ("base-rates-many", "partly", [NEAR, FAR, FAR]),
    ("base-rates-many", "does not hold", [FAR, bracket("c", 0.2, error=0.01)]),
    ("base-rates-many", "no estimate", [NEAR, UNKNOWN, FAR]),
    ("base-rates-many", "does not hold", [UNKNOWN, FAR]),
    # exceptions are compared by name; within the errors a model is none
    ("base-rates-exceptions", "holds", [A, NAMED]),
    ("base-rates-exceptions", "holds", [bracket("a", -0.1)] * 3),
    ("base-rates-exceptions", "no estimate", [bracket("a", -9.0, few=["base_rate"])]),
    ("base-rates-exceptions", "no estimate", [bracket("a", -9.0, error=4.0)]),
    ("base-rates-exceptions", "does not hold", [OVER, bracket("a", -9.0, few=["base_rate"])]),
    ("base-rates-exceptions", "does not hold", [A, OVER]),
    ("all-conservative", "holds", [A, NAMED], [bracket("Omniglot DBM", -6.0)]),
    # few chains of AIS from one start do not speak against RAISE
    (
        "all-conservative",
        "holds",
        [A],
        [bracket("b", 0.1, few=["uniform"]) | {"uniform_ais": -105}],
    ),
    # two exceptions are not the paper's two
    ("all-conservative", "does not hold", [NAMED, OVER], [A]),
    # all but the named one, each from its better start
    ("all-accurate", "holds", [A], [NAMED_DBM]),
    ("all-accurate", "holds", [bracket("a", 2.0, uniform=0.1)] * 3, []),
    ("all-accurate", "no estimate", [bracket("a", few=["uniform", "base_rate"])], []),
    ("all-accurate", "partly", [A, bracket("b", 2.0, uniform=2.0)], [NAMED_DBM]),
    ("bracket-holds-truth", "holds", [bracket("a", 0.2, exact=-100.1), B]),
    ("bracket-holds-truth", "does not hold", [bracket("a", 0.2, exact=-101.0)]),
    ("bracket-holds-truth", "does not hold", [bracket("a", 0.2, exact=-99.0)]),
    ("bracket-holds-truth", "no estimate", [bracket("a", 0.2, error=1.0, exact=-100.1)]),
    ("bracket-holds-truth", "no estimate", [bracket("a", 0.2, exact=-100.1, few=["base_rate"])]),
    ("base-rates-better", "holds", [bracket("a", 0.5, uniform=2.0)]),
    ("base-rates-better", "holds", [bracket("a", -0.5, uniform=2.0)]),
    ("base-rates-better", "does not hold", [bracket("a", 2.0, uniform=0.5)]),
    ("base-rates-better", "does not hold", [bracket("a", -2.0, uniform=0.5)]),
    ("base-rates-better", "no estimate", [bracket("a", 0.5, uniform=0.6)]),
    ("base-rates-better", "no estimate", [bracket("a", 0.5, uniform=44.0, few=["uniform"])]),
    ("uniform-start-misleads", "holds", [bracket("mnistCD1-500", 0.7, uniform=44.0)]),
    ("uniform-start-misleads", "partly", [bracket("mnistCD1-500", 0.7, uniform=5.0)]),
    ("uniform-start-misleads", "does not hold", [bracket("mnistCD1-500", 0.7, uniform=0.1)]),
    # how many states were kept is not given, so that no shortfall decides
    ("csl-far-below", "says nothing", [A, B, bracket("c", csl=-101.0)]),
    ("csl-far-below", "says nothing", [A, bracket("b", csl=-101.0)]),
    ("few-steps-of-dbm", "holds", DEEP, curve("MNIST DBM", (10, -120.0, -80.0), (100, -90, -100))),
    ("few-steps-of-dbm", "does not hold", DEEP, curve("MNIST DBM", (10, -99.0, -80.0))),
    ("few-steps-of-dbm", "does not hold", DEEP, curve("MNIST DBM", (10, -120.0, -99.5))),
    ("dbns-conservative", "holds", DEEP, curve("MNIST DBN", (10, -120.0, 0), (100, -100.1, 0))),
    ("dbns-conservative", "partly", DEEP, curve("MNIST DBN", (10, -120.0, 0), (100, -99.0, 0))),
    ("bound-or-sampling", "holds", changes(0.5, -0.04)),
    ("bound-or-sampling", "does not hold", changes(0.5, -0.6)),
    ("omniglot-dbm-overestimate", "holds", [bracket("Omniglot DBM", -6.4)]),
    ("omniglot-dbm-overestimate", "no estimate", [bracket("Omniglot DBM", -6.1)]),
    ("omniglot-dbm-overestimate", "does not hold", [bracket("Omniglot DBM", 0.4)]),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule[0]}: {rule[1]}")
def test_rules_by_hand(rule):
    claim, outcome, *records = rule
    assert BY_ID[claim].judge(*records).outcome == outcome


def test_exceptions_are_named():
    assert "and not b" in BY_ID["all-conservative"].judge([NAMED, OVER], [A]).why


def test_our_mixture_of_a_hundred_components_hardly_overfits():
    """Both of them, with whatever start and smoothing; the errata say so."""
    both = [row for row in GIVEN.rows("sm2008-mixtures") if row["model"].startswith("MoB(100)")]
    assert len(both) == 2
    assert all(row["train"] - row["test"] < 1 for row in both)


def test_a_row_of_a_table_shows_a_bound_and_is_judged_by_it():
    found = BY_ID["dbn-cd25-no-gain"].judge(*cd25_gain(0.4, above=-85.0))
    assert found.of("Test DBN-CD25", "bound").outcome == "holds"
    assert found.of("Train DBN-CD25", "bound").outcome == "does not hold"


def test_a_claim_about_several_models_is_asked_of_each_of_them_alone():
    found = BY_ID["base-rates-within-1"].judge([bracket("a", 0.2), bracket("b", 3.0)])
    outcomes = [found.of(name, "base_rate_gap").outcome for name in "ab"]
    assert outcomes == ["holds", "does not hold"]
    assert found.of("a", "uniform_gap") is found  # of the other start it says nothing
    assert found.outcome == "partly"


@pytest.mark.parametrize(
    ("enough", "number", "outcomes"),
    [
        (rules._all, 3, ["does not hold", "partly", "partly", "holds"]),
        (rules._many, 6, ["does not hold"] + ["partly"] * 3 + ["holds"] * 3),
    ],
)
def test_how_many_are_all_and_many(enough, number, outcomes):
    """Cases without an estimate: the claim has one if the others settle it."""
    for held, outcome in enumerate(outcomes):
        cases = {
            (f"{n}", ""): Finding("holds" if n < held else "does not hold", "")
            for n in range(number)
        }
        assert rules._of_several(cases, "", enough=enough).outcome == outcome
        unknown = {
            key: Finding("no estimate", "") if case.outcome != "holds" else case
            for key, case in cases.items()
        }
        found = rules._of_several(unknown, "", enough=enough).outcome
        assert found == ("holds" if outcome == "holds" else "no estimate")


def test_a_claim_about_trained_models_says_after_which_lengths_it_holds():
    """On the committed records: CD3(500) leads CD1(500) by 20 nats from 30 epochs on, and at ten by 34 to 41."""
    lead, gap = (BY_ID[name].found(GIVEN) for name in ("cd3-over-cd1", "rbm-train-test"))
    assert lead.ours == "holds after 30 to 100 epochs; partly after 10 to 25 epochs"
    assert "after 10: 34.17 to 40.63 nats" in lead.details
    assert gap.ours == lead.ours  # by chance the same lengths


def test_the_authors_long_training_is_no_recipe_against_a_short_one():
    """CD25(500) of their weights is ahead by every length; trained for as long, our two seeds are behind CD3(500) after ten epochs."""
    found = BY_ID["cd25-over-cd3"].found(GIVEN)
    assert found.outcome == "partly"
    assert "models and not recipes" in found.why
    assert "by seed, after 10: −31.12, −33.22" in found.details


def test_times_are_not_judged():
    found = BY_ID["dbn-training-time"].found(GIVEN)
    assert found.outcome == "says nothing"
    assert "the paper does not state" in found.why
