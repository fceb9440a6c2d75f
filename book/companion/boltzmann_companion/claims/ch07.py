"""What chapter 7 claims of the bound of a deep belief network, of greedy learning, and of Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.studies.dbn_bounds import Courses
from paperlib.estimators.dbn_bound import DBNBoundEstimate


def greedy(courses: Courses, own: Mapping[str, float], narrow: Mapping[str, float]) -> Claims:
    """A second layer on each RBM, with the RBM's own average, and what a second layer with a single unit gains, in nats."""
    transposed = {name: [low for low, _ in courses[name, "transposed"]] for name in own}
    rises = all(a < b for bounds in transposed.values() for a, b in pairwise(bounds))
    yield "from the transposed start the bound never falls", rises
    gains = {name: bounds[-1] - own[name] for name, bounds in transposed.items()}
    claim = "a second layer gains at least ten times as much on the spoilt RBM"
    yield claim, gains["CD-1"] > 10 * gains["likelihood"]
    claim = "a single second unit ends below the good RBM, and above the spoilt one"
    yield claim, narrow["likelihood"] < 0 < narrow["CD-1"]


def fall(courses: Sequence[Sequence[tuple[float, float]]]) -> Claims:
    """The learning of third layers, that in which ln p(v) falls furthest first."""
    changes = [course[-1][1] - course[0][1] for course in courses]
    rises = all(a < b for (a, _), (b, _) in pairwise(courses[0]))
    claim = "the bound rises at every step, and ln p(v) ends lower than it began"
    yield claim, rises and changes[0] < 0
    fallen = sum(change < 0 for change in changes)
    yield "in some of the trials, but not in all", 0 < fallen < len(changes)


def sampled(expected: float, by_hand: float, by_library: DBNBoundEstimate) -> Claims:
    """Two estimates of a bound beside its exact average in nats."""
    error = by_library.monte_carlo_std_error
    agree = all(abs(bound - expected) < 4 * error for bound in (by_hand, by_library.bound))
    claim = "these lines and dbn_lower_bound: within 4 standard errors of the exact bound"
    yield claim, agree and error < 0.01


def table(rows: Rows) -> Claims:
    """Table 2: its errors."""
    small = all(row["monte_carlo_error"] < row["error_bound"] / 2 for row in rows)
    yield "the draws make up less than half of every error", small


def near_rbm(rows: Rows) -> Claims:
    """What a second layer gains on the test digits."""
    near = all(abs(row["gain"]) < 1 for row in rows if row["model"].startswith("Test"))
    yield "on the test digits every bound is within a nat of the RBM's log-probability", near


@of_stored("dbn-annealed-layer", required=False)
def stored_sides(rows: Rows) -> Claims:
    """Which layer to anneal at the paper's size."""
    less = [row["model"] for row in rows if row["upper_effective"] <= row["lower_effective"]]
    claim = "annealing the upper layer makes more of the runs count for every model but DBN-CD3"
    yield claim, less == ["DBN-CD3"]


def sides(rows: Rows) -> Claims:
    """ln Z by annealing either layer."""
    intervals = [(row["lower_interval"], row["upper_interval"]) for row in rows]
    agree = all(low <= upper and lower <= high for (low, high), (lower, upper) in intervals)
    warned = any("yes" in (row["lower_warned"], row["upper_warned"]) for row in rows)
    yield Check("the two sides agree for every model", agree, required=not warned)


def draws(rows: Rows) -> Claims:
    """How the bound scatters with the number of draws."""
    # from 20 sets the scatter itself is uncertain by 16 %: 1.6 is more than three standard errors
    ratios = [row["scatter"] / row["predicted"] for row in rows if row["draws"] <= 5]
    yield "the scatter follows 1 / sqrt(NM)", all(1 / 1.6 < ratio < 1.6 for ratio in ratios)


def gap(rows: Rows, on_digits: bool) -> Claims:
    """What the bound leaves out, for three DBNs after a random start and one after the transposed start."""
    *from_random, from_transposed = (row["gap"] for row in rows)
    least = min(from_random)
    claim = "after a random start the bound leaves out at least a tenth of a nat, after the transposed one less"
    yield claim, least > 0.1 and from_transposed < least
    if on_digits:
        cd1, cd3, cd25, _ = (row["gain"] for row in rows)
        claim = "by importance sampling DBN-CD1 and DBN-CD3 are better than their RBMs; DBN-CD25 gains less"
        yield claim, min(cd1, cd3) > max(0, cd25)


def third_layer(rows: Rows) -> Claims:
    """Trained third layers, from the random and the transposed start, on the test and the training digits."""
    _, _, *test, _, _, random, transposed = (row["bound"] for row in rows)
    behind = test[0] < test[1] and random < transposed
    yield "the random start of a third layer ends below the careful transposed one", behind
