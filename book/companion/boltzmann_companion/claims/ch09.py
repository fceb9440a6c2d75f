"""What chapter 9 claims: of variances, biases and coverage of control variates, and of digits."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import by_model, where

# A simulated variance has a relative standard error of sqrt(2 / 20,000) = 1 %, a little more where the values are skewed.
_SAME = 0.06


def right_formula(rows: Rows) -> Claims:
    """Of `control-variate-variance`."""
    right = all(abs(row["simulated"] / row["right"] - 1) < _SAME for row in rows)
    yield "the variance is that with the last term over N, at every alpha", right


def _off(rows: Rows) -> list[float]:
    """Every alpha at which the printed formula is off."""
    return [row["alpha"] for row in rows if abs(row["printed"] / row["simulated"] - 1) > _SAME]


def off_in_words(rows: Rows) -> str:
    """At which of the round values of alpha the printed formula is off."""
    off = " ".join(f"{alpha:g}" for alpha in _off(rows) if alpha in (0.0, 0.5, 1.0, 1.5))
    return f"the printed formula is off at alpha = {off}"


def printed_formula(rows: Rows) -> Claims:
    """Of `control-variate-variance`, whose rows are in the order of alpha."""
    above_zero = [row["alpha"] for row in rows if row["alpha"] > 0]
    yield "it is off at every alpha above zero, and at no other", _off(rows) == above_zero
    yield "the printed variance is negative at alpha = 1.5", rows[-1]["printed"] < 0


def bias_of_alpha(biases: Mapping[str, tuple[float, Rows]]) -> Claims:
    """kappa and the rows of `bias_of_estimated_alpha`, by whose ln p* is the control variate."""
    kappa, rows = biases["another model's"]
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
    for name, (_, own) in biases.items():
        small = abs(own[-1]["bias"]) < own[-1]["spread"] / 5
        claim = "with 100 images less than a fifth of the standard deviation"
        yield f"{name} ln p*: {claim}", small


@of_stored("control-variate-variance")
def variance_at_one(rows: Rows) -> Claims:
    """At alpha = 1, which the paper takes."""
    at_one, *_ = where(rows, alpha=1)
    claim = "the formula with N agrees with the simulation at alpha = 1"
    yield claim, abs(at_one["simulated"] / at_one["right"] - 1) < _SAME
    yield "the printed variance is negative at alpha = 1", at_one["printed"] < 0


def coverage(rows: Rows) -> Claims:
    """Of `control-variate-coverage`: for each model a plain average, alpha = 1 and an estimated alpha, over 2,000 batches."""
    unbiased = all(
        abs(row["shift"]) < 4 * row["spread"] / math.sqrt(2_000)
        for row in rows
        if row["estimate"] != "α estimated"
    )
    yield "a fixed alpha leaves the mean where it was, within 4 standard errors", unbiased
    honest = all(abs(row["std_error"] / row["spread"] - 1) < 0.1 for row in rows)
    yield "stated and actual standard deviations agree within a tenth", honest
    held = all(0.9 < row["coverage_raise"] < 0.98 for row in rows)
    yield "the 95 % intervals hold the average over all images in 90 to 98 % of cases", held
    worse = all(
        row["coverage_truth"] < plain["coverage_truth"]
        for plain, row in zip(rows[::3], rows[1::3], strict=True)
    )
    yield "the short intervals hold the exact value less often than the long ones", worse


def reductions(rows: Rows, shown: int, required: Collection[str]) -> Claims:
    """Of `control-variates`, for the number of steps that the tables show; the names of models for which it must hold."""
    for name, of_model in by_model(rows).items():
        own = {row["steps"]: row for row in of_model}
        halved = own[shown]["average_error"] < own[shown]["plain_error"] / 2
        rises = own[max(own)]["reduction"] > own[min(own)]["reduction"]
        claim = "less than half the standard error, and less still with more steps"
        yield Check(f"{name}: {claim}", halved and rises, required=name in required)


def helped(rows: Rows) -> str:
    """For how many models of `control-variates` the control variate halves the error."""
    most = max(row["steps"] for row in rows)
    last = [row for row in rows if row["steps"] == most]
    number = sum(row["reduction"] > 4 for row in last)
    return (
        f"with {most} steps the control variate at least halves the error of {number} "
        f"of {len(last)} models"
    )


@of_stored("control-variates", required=False)
def more_steps(rows: Rows) -> Claims:
    """Whether the reduction grows with the number of steps; the rows of a model are in the order of steps."""
    models = by_model(rows).values()
    more = all(own[-1]["reduction"] > own[0]["reduction"] for own in models)
    yield "more steps, more reduction, for all of them", more


def choices(rows: Rows, shown: str, dbms: Collection[str], required: bool) -> Claims:
    """Of `control-variate-choices`: for one RBM, and for the DBMs with these names."""
    of: dict[str, dict[str, float]] = {}
    for row in rows:
        of.setdefault(row["model"], {})[row["control"]] = row["reduction"]
    others = {name: value for name, value in of[shown].items() if name != "its own ln p*(v)"}
    best = max(others.values()) < of[shown]["its own ln p*(v)"]
    yield "no other number does as well as the model's own", best
    ink_is_worst = others["number of pixels on"] == min(others.values())
    yield "the ink alone is the worst of them", ink_is_worst
    for name in dbms:
        enough = of[name]["mean-field bound"] > max(of[name].values()) / 2
        claim = "the mean-field bound alone does half as well as the best"
        yield Check(f"{name}: {claim}", enough, required=required)


def classes(rows: Rows) -> Claims:
    """Of `digit-classes`."""
    for row in rows:
        averages = [row[f"digit_{d}"] for d in range(10)]
        best = max(range(10), key=averages.__getitem__)
        claim = "the ones are the most probable digits, the eights below average"
        yield f"{row['model']}: {claim}", best == 1 and averages[8] < 0


@of_stored("digit-classes")
def ones_and_eights(rows: Rows) -> Claims:
    """The published number of the paper's section 4."""
    above = {row["model"]: row["one_minus_eight"] for row in rows}
    claim = "the ones lie above the eights by the published 56.6 nats, within ten"
    yield claim, abs(above["mnistCD25-500"] - 56.6) < 10
    yield "and by more than 40 nats in every other model", min(above.values()) > 40


def easy_first_images(rows: Rows) -> str:
    """For how many models of `digit-classes` the first images of the file are too easy."""
    easier = sum(row["first_images"] > 1 for row in rows)
    return (
        f"the first images of the file are more than a nat too easy for {easier} of "
        f"{len(rows)} models"
    )


def sampling(rows: Rows, simulated: float) -> Claims:
    """Of `control-variate-sampling`, and the standard deviation of 2,000 batches that are stratified by digit."""
    random, by_digit, by_x = rows
    # 2,000 batches know a standard deviation to 1 / sqrt(4,000) = 1.6 %
    claim = "2,000 stratified batches scatter as the formula says, within 7 %"
    yield claim, abs(simulated / by_digit["plain"] - 1) < 0.07
    yield "choosing by digit helps", by_digit["plain"] < random["plain"]
    yield "choosing by ln p*(v) helps more", by_x["plain"] < by_digit["plain"]
    yield "the control variate on random images beats both", random["controlled"] < by_x["plain"]
    gained = 1 - by_digit["controlled"] / random["controlled"]
    yield "on top of the control variate, choosing by digit gains less than a third", gained < 1 / 3
