"""What chapter 06 claims of its tables: models that nobody can enumerate, their ratios, mixtures, training and coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import by_model, published_numbers, where

_FITS = "the difference of the separate estimates fits the two directions"


def doubted(table: Rows) -> bool:
    """Whether the library warns of any of these estimates."""
    return any(row["warnings"] != "none" for row in table)


def bounds_and_order(table: Rows) -> Claims:
    """Of this run's Table 1: the proven bounds, and the order of the models."""
    for row in table:
        claim = f"{row['model']}: the interval reaches above the proven bound on ln Z"
        bounded = row["lower_bound"] <= row["interval_3_sigma"][1]
        yield Check(claim, bounded, required=row["warnings"] == "none")
    rises = all(before["test"] < after["test"] for before, after in pairwise(table))
    claim = "more steps of contrastive divergence, better test log-probability"
    yield Check(claim, rises, required=not doubted(table))


@of_stored("sm2008-table-1-full-size")
def order_on_mnist(table: Rows) -> Claims:
    """The order of the MNIST models."""
    test = _tests(table)
    rises = test["CD1(500)"] < test["CD3(500)"] < test["CD25(500)"]
    yield "test log-probability rises from CD1(500) over CD3(500) to CD25(500)", rises


def steps_between(table: Rows) -> Iterator[str]:
    """What more steps are worth on MNIST, a line for each of the two differences."""
    test = _tests(table)
    for more, less, published in (("CD3(500)", "CD1(500)", 20), ("CD25(500)", "CD3(500)", 19)):
        yield f"{more} less {less}: {test[more] - test[less]:.0f} nats (published {published})"


@of_stored("sm2008-table-1-full-size", required=False)
def best_on_mnist(table: Rows) -> Claims:
    """How good the best MNIST model is."""
    yield "CD25(500) at least -88 nats (published -86.34)", _tests(table)["CD25(500)"] >= -88


def more_runs(points: Rows, table: Rows) -> Claims:
    """Of this run's Figure 3, whose last rows have the most runs, beside the estimates of Table 1."""
    estimates = {row["model"]: row for row in table}
    for model, own in by_model(points).items():
        width = [point["interval_3_sigma"][1] - point["log_z"] for point in own]
        shrinks = width[-1] < width[0] or len(own) == 1
        warned = any(point["warned"] == "yes" for point in own)
        sure = not warned and estimates[model]["warnings"] == "none"
        yield Check(f"{model}: more runs, shorter upper error bar", shrinks, required=sure)
        moved = abs(own[-1]["log_z"] - estimates[model]["log_z"])
        claim = f"{model}: the table's estimate is half a nat or less away"
        yield Check(claim, moved < 0.5, required=sure)


def two_directions(ratios: Rows, sure: bool) -> Claims:
    """Of this run's ratio, from either side and as a difference."""
    forward, backward = ratios
    yield Check(_FITS, _fits(forward, backward), required=sure)
    apart = abs(forward["log_ratio"] + backward["log_ratio"])
    yield Check("the two directions differ by less than a nat", apart < 1, required=sure)
    claim = "the start's chains look as AIS says they should, within three standard errors"
    yield Check(claim, all(_settled(row) for row in ratios), required=sure)


@of_stored("sm2008-ratios-full-size", required=False)
def two_directions_on_mnist(ratios: Rows) -> Claims:
    """The ratio of two MNIST models, and the states from which its estimates start."""
    forward, backward = ratios
    yield _FITS, _fits(forward, backward)
    for row in ratios:
        yield f"{row['model']}: the start's chains look as AIS says they should", _settled(row)


def mixtures(rows: Rows, table: Rows) -> Claims:
    """Of this run's mixtures, three from noise and the same three from images, beside the RBMs of Table 1."""
    from_noise, from_images = rows[:3], rows[3:]
    gaps = [row["train"] - row["test"] for row in from_images]
    claim = "started at images: the more components, the further training lies above test"
    yield claim, gaps[0] < gaps[1] < gaps[2]
    pairs = zip(from_noise[1:], from_images[1:], strict=True)
    better = all(images["test"] > noise["test"] for noise, images in pairs)
    claim = (
        "with more than ten components, the start at images ends with better test log-probabilities"
    )
    yield Check(claim, better, required=False)
    ahead = max(row["test"] for row in table) > max(row["test"] for row in rows)
    yield "the best RBM predicts the test images better than the best mixture", ahead


def mixtures_beside_published(mixtures: Rows) -> Iterator[str]:
    """A line for each mixture on MNIST: how far either start ends from the published value."""
    test = _tests(mixtures)
    for components in (10, 100, 500):
        name = f"MoB({components})"
        value = published_numbers(name, "average test log-probability")[0]
        from_noise, from_images = test[name] - value, test[f"{name}, started at images"] - value
        yield (
            f"{name}, published {value}: from noise (fitted) {from_noise:+.1f} nats, "
            f"from images {from_images:+.1f}"
        )


@of_stored("sm2008-mixtures", "sm2008-table-1-full-size", required=False)
def mixtures_below_rbms(mixtures: Rows, table: Rows) -> Claims:
    """The best mixture on MNIST beside the RBMs."""
    best = _tests(mixtures)["MoB(500), started at images"]
    for row in table:
        yield f"the best mixture lies below {row['model']}", best < row["test"]


def binarized_anew(rows: Rows) -> Claims:
    """Of this run's images, as they were seen and binarised anew."""
    for row in rows:
        claim = "training images are more probable as they were seen than anew"
        yield f"{row['model']}: {claim}", row["fixed_train"] > row["fresh_train"]
        claim = "most of the train-test gap is gone when binarised anew"
        yield f"{row['model']}: {claim}", row["fresh_gap"] < row["fixed_gap"] / 2


def gaps(rows: Rows) -> Iterator[str]:
    """A line for each MNIST model: its gap between training and test images, as seen and anew."""
    for row in rows:
        yield (
            f"{row['model']}: train-test gap {row['fixed_gap']:.1f} nats as binarised "
            f"for training, {row['fresh_gap']:.1f} binarised anew"
        )


@of_stored("binarization")
def smaller_gaps(rows: Rows) -> Claims:
    """The gaps of the MNIST models."""
    smaller = all(row["fresh_gap"] < row["fixed_gap"] for row in rows)
    yield "binarised anew, every gap is smaller", smaller


def training(looks: Rows, table: Rows, on_digits: bool) -> Claims:
    """Of this run's looks at training, beside the intervals of Table 1."""
    estimates = {row["model"]: row for row in table}
    for model, own in by_model(looks).items():
        reach = max(row["test"] for row in own) - min(row["test"] for row in own)
        low, high = estimates[model]["interval_3_sigma"]
        claim = "the length of training moves the test value by more than AIS's interval"
        sure = estimates[model]["warnings"] == "none"
        yield Check(f"{model}: {claim}", reach > high - low, required=sure)
        first, last = (row["train"] - row["test"] for row in (own[0], own[-1]))
        claim = "the train-test gap is larger at the end than at the first look"
        yield f"{model}: {claim}", last > first
    if on_digits:
        at = {(row["model"], row["epoch"]): row["test"] for row in looks}
        turned = all(at[model, 30] > at[model, 300] for model in ("CD1(50)", "CD3(50)"))
        yield "both models were better on the test images at epoch 30 than at epoch 300", turned


def passed(looks: Rows) -> Iterator[str]:
    """A line for each MNIST model: when its training passes the published value."""
    for model, own in by_model(looks).items():
        value = _published_test(model)
        epoch = next((row["epoch"] for row in own if row["test"] >= value), None)
        reached = f"passed by epoch {epoch}" if epoch else "not reached"
        yield (
            f"{model}: published {value}: {reached}; at our last look, epoch "
            f"{own[-1]['epoch']}: {own[-1]['test']:.0f}"
        )


@of_stored("sm2008-training-path-full-size")
def ends_above(looks: Rows) -> Claims:
    """Where the training of the MNIST models ends."""
    groups = by_model(looks)
    beyond = all(
        groups[model][-1]["test"] > _published_test(model) for model in ("CD1(500)", "CD3(500)")
    )
    yield "CD1(500) and CD3(500) end above the published values", beyond


def three_steps_less_one(looks: Rows) -> Iterator[str]:
    """What three steps are worth on MNIST, at the first, the middle and the last epoch that both models have."""
    one, three = (
        {row["epoch"]: row["test"] for row in by_model(looks)[model]}
        for model in ("CD1(500)", "CD3(500)")
    )
    both = sorted(set(one) & set(three))
    for epoch in dict.fromkeys((both[0], both[len(both) // 2], both[-1])):
        gain = three[epoch] - one[epoch]
        yield f"CD3(500) less CD1(500), both after {epoch} epochs: {gain:.0f} nats"


def coverage(rows: Rows) -> Claims:
    """Of this run's experiments of 10, 100 and 1,000 runs."""
    few, many = where(rows, runs=10), where(rows, runs=1_000)
    below = all(row["covered_interval"][1] < 0.9973 for row in few)
    yield "with 10 runs the intervals hold the truth less often than 99.7 %", below
    pairs = zip(few, many, strict=True)
    better = all(large["covered"] >= small["covered"] for small, large in pairs)
    yield "with 1,000 runs no less often than with 10", better
    low, high = (sum(row[key] for row in rows) for key in ("too_low", "too_high"))
    yield "of the intervals that miss, at least nine in ten lie below the truth", low >= 9 * high


def _tests(rows: Rows) -> dict[str, float]:
    """The average test log-probability of each model."""
    return {row["model"]: row["test"] for row in rows}


def _published_test(model: str) -> float:
    """The paper's average test log-probability by AIS."""
    return published_numbers(model, "Avg. Test log-prob. / estimate")[0]


def _fits(forward: Mapping[str, Any], backward: Mapping[str, Any]) -> bool:
    """Whether the difference of separate estimates meets the span of the two direct ones."""
    low = min(forward["interval_3_sigma"][0], -backward["interval_3_sigma"][1])
    high = max(forward["interval_3_sigma"][1], -backward["interval_3_sigma"][0])
    return forward["difference_interval"][0] <= high and low <= forward["difference_interval"][1]


def _settled(row: Mapping[str, Any]) -> bool:
    """Whether the start's chains look as AIS says they should."""
    return abs(row["start_chains"] - row["start_annealed"]) < 3 * row["start_error"]
