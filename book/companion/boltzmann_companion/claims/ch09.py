"""What chapter 9 claims: of variances, biases and coverage of control variates, and of digits."""

from __future__ import annotations

from collections.abc import Collection

from boltzmann_companion.claims.checks import Check, Claims, Row, Rows, of_stored
from boltzmann_companion.rows import by_model, grouped, where

# A simulated variance has a relative standard error of sqrt(2 / 20,000) = 1 %, a little more where the values are skewed.
_SAME = 0.06


def _off(row: Row, formula: str) -> bool:
    """Whether a formula of the variance is not what a simulation finds."""
    return abs(row[formula] / row["simulated"] - 1) > _SAME


def formulas(rows: Rows) -> Claims:
    """Of `control-variate-variance`: with the last term over N, and as it is printed."""
    right = not any(_off(row, "right") for row in rows)
    yield "the variance is that with the last term over N, at every alpha", right
    wrong = all(_off(row, "printed") == (row["alpha"] > 0) for row in rows)
    yield "the printed formula is off at every alpha above zero, and at no other", wrong


def bias_of_alpha(kappa: float, rows: Rows) -> Claims:
    """Of an estimated alpha with another model's ln p*: kappa, and the rows of `bias_of_estimated_alpha`."""
    in_line = all(
        abs(row["images"] * row["bias"] + kappa)
        < 0.2 * abs(kappa) + 3 * row["images"] * row["error"]
        for row in rows
        if row["images"] >= 20
    )
    claim = (
        "another model's ln p*: a bias of kappa / n from n = 20 on, within a fifth and the noise"
    )
    yield claim, in_line


@of_stored("control-variate-variance")
def variance_at_one(rows: Rows) -> Claims:
    """At alpha = 1, which the paper takes."""
    [at_one] = where(rows, alpha=1)
    claim = "the formula with N agrees with the simulation at alpha = 1"
    yield claim, not _off(at_one, "right")
    yield "the printed variance is negative at alpha = 1", at_one["printed"] < 0


def coverage(rows: Rows) -> Claims:
    """Of `control-variate-coverage`: for each model a plain average, alpha = 1 and an estimated alpha, over 2,000 batches."""
    held = all(0.9 < row["coverage_raise"] < 0.98 for row in rows)
    yield "the 95 % intervals hold the average over all images in 90 to 98 % of cases", held
    plain, fixed, _ = grouped(rows, "estimate").values()
    pairs = zip(plain, fixed, strict=True)
    worse = all(short["coverage_truth"] < long["coverage_truth"] for long, short in pairs)
    yield "the short intervals hold the exact value less often than the long ones", worse


def reductions(rows: Rows, shown: int, required: Collection[str]) -> Claims:
    """Of `control-variates`, for the number of steps that the tables show; the names of models for which it must hold."""
    models = {name: own for name, own in by_model(rows).items() if name in required}
    shown_rows = [row for own in models.values() for row in where(own, steps=shown)]
    halved = all(row["average_error"] < row["plain_error"] / 2 for row in shown_rows)
    rises = all(own[-1]["reduction"] > own[0]["reduction"] for own in models.values())
    claim = "less than half the standard error, and less still with more steps"
    yield f"{len(models)} models: {claim}", halved and rises


@of_stored("control-variates", required=False)
def more_steps(rows: Rows) -> Claims:
    """Whether the reduction grows with the number of steps; the rows of a model are in the order of steps."""
    more = all(own[-1]["reduction"] > own[0]["reduction"] for own in by_model(rows).values())
    yield "more steps, more reduction, for all of them", more


def choices(rows: Rows, shown: str, dbms: Collection[str], required: bool) -> Claims:
    """Of `control-variate-choices`: for one RBM, and for the DBMs with these names."""
    own, *others = (row["reduction"] for row in where(rows, model=shown))
    yield "no other number does as well as the model's own", max(others) < own
    for name in dbms:
        bound, *drawn = (row["reduction"] for row in where(rows, model=name))
        claim = f"{name}: the mean-field bound alone does half as well as the best"
        yield Check(claim, bound > max(bound, *drawn) / 2, required=required)


def classes(rows: Rows) -> Claims:
    """Of `digit-classes`."""
    digits = [[row[f"digit_{d}"] for d in range(10)] for row in rows]
    ones = all(averages[1] == max(averages) and averages[8] < 0 for averages in digits)
    claim = "for every model the ones are the most probable digits, and the eights below average"
    yield claim, ones


def sampling(rows: Rows, simulated: float) -> Claims:
    """Of `control-variate-sampling`, and the standard deviation of 2,000 batches that are stratified by digit."""
    random, by_digit, by_x = rows
    # 2,000 batches know a standard deviation to 1 / sqrt(4,000) = 1.6 %
    claim = "2,000 stratified batches scatter as the formula says, within 7 %"
    yield claim, abs(simulated / by_digit["plain"] - 1) < 0.07
    claim = (
        "choosing by digit helps, by ln p*(v) more, and the control variate on random images most"
    )
    ordered = random["controlled"] < by_x["plain"] < by_digit["plain"] < random["plain"]
    yield claim, ordered
