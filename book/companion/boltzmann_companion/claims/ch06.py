"""What chapter 06 claims of its tables: models that nobody can enumerate, their ratios, mixtures, training and coverage."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Check, Claims, Row, Rows, of_stored
from boltzmann_companion.rows import by_model, published_numbers, where

_FITS = "the difference of the separate estimates fits the two directions"


def doubted(table: Rows) -> bool:
    """Whether the library warns of any of these estimates."""
    return any(row["warnings"] != "none" for row in table)


@of_stored("sm2008-table-1-full-size")
def order_on_mnist(table: Rows) -> Claims:
    """The order of the MNIST models."""
    test = {row["model"]: row["test"] for row in table}
    rises = test["CD1(500)"] < test["CD3(500)"] < test["CD25(500)"]
    yield "test log-probability rises from CD1(500) over CD3(500) to CD25(500)", rises


def more_runs(points: Rows, table: Rows) -> Claims:
    """Of this run's Figure 3, whose last rows have the most runs, beside the estimates of Table 1."""
    most = {model: own[-1]["log_z"] for model, own in by_model(points).items()}
    stays = all(abs(most[row["model"]] - row["log_z"]) < 0.5 for row in table)
    sure = not doubted(table) and all(point["warned"] == "no" for point in points)
    claim = "the table's estimates are half a nat or less away from those of most runs"
    yield Check(claim, stays, required=sure)


def two_directions(ratios: Rows, sure: bool) -> Claims:
    """Of this run's ratio, from either side and as a difference."""
    claim = f"{_FITS}, and both starts look as AIS says they should"
    yield Check(claim, _fits(*ratios) and all(map(_settled, ratios)), required=sure)


@of_stored("sm2008-ratios-full-size", required=False)
def two_directions_on_mnist(ratios: Rows) -> Claims:
    """The ratio of two MNIST models, and the states from which its estimates start."""
    yield _FITS, _fits(*ratios)
    for row in ratios:
        claim = f"{row['model']}: the start's chains look as AIS says they should"
        yield Check(claim, _settled(row), expected=row["model"] != "CD25(500)/CD3(500)")


@of_stored("sm2008-mixtures", "sm2008-table-1-full-size")
def best_rbm_above_mixtures(mixtures: Rows, table: Rows) -> Claims:
    """The best mixture beside the best RBM."""
    best, of_mixtures = (max(row["test"] for row in rows) for rows in (table, mixtures))
    claim = "the best RBM predicts the test images better than the best mixture"
    yield claim, best > of_mixtures


def binarized_anew(rows: Rows) -> Claims:
    """Of this run's images, as they were seen and binarised anew."""
    gone = all(row["fresh_gap"] < row["fixed_gap"] / 2 for row in rows)
    yield "binarised anew, most of the train-test gap of every model is gone", gone


def turned(looks: Rows) -> Claims:
    """Of this run's looks at training on digits."""
    at = {(row["model"], row["epoch"]): row["test"] for row in looks}
    better = all(at[model, 30] > at[model, 300] for model in ("CD1(50)", "CD3(50)"))
    yield "both models were better on the test images at epoch 30 than at epoch 300", better


@of_stored("sm2008-training-path-full-size")
def ends_above(looks: Rows) -> Claims:
    """Where the training of the MNIST models ends."""
    groups = by_model(looks)
    beyond = all(
        groups[model][-1]["test"] > published_numbers(model, "Avg. Test log-prob. / estimate")[0]
        for model in ("CD1(500)", "CD3(500)")
    )
    yield "CD1(500) and CD3(500) end above the published values", beyond


def coverage(rows: Rows) -> Claims:
    """Of this run's experiments of 10, 100 and 1,000 runs."""
    below = all(row["covered_interval"][1] < 0.9973 for row in where(rows, runs=10))
    yield "with 10 runs the intervals hold the truth less often than 99.7 %", below
    low, high = (sum(row[key] for row in rows) for key in ("too_low", "too_high"))
    yield "of the intervals that miss, at least nine in ten lie below the truth", low >= 9 * high


def _fits(forward: Row, backward: Row) -> bool:
    """Whether the difference of separate estimates meets the span of the two direct ones."""
    low = min(forward["interval_3_sigma"][0], -backward["interval_3_sigma"][1])
    high = max(forward["interval_3_sigma"][1], -backward["interval_3_sigma"][0])
    return forward["difference_interval"][0] <= high and low <= forward["difference_interval"][1]


def _settled(row: Row) -> bool:
    """Whether the start's chains look as AIS says they should."""
    return abs(row["start_chains"] - row["start_annealed"]) < 3 * row["start_error"]
