"""An evaluation as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paperlib.errors import InputError
from paperlib.evaluation.result import Evaluation, ExactResult
from paperlib.evaluation.verdict import LEVEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paperlib.estimators import PartitionEstimate


def require_matplotlib() -> None:
    """Raise an InputError unless matplotlib is installed."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise InputError(
            "plot: expected matplotlib to be installed (pip install matplotlib)"
        ) from error


def plot(evaluation: Evaluation) -> Figure:
    """A picture of an estimate: the ladder's average and the bracket against K, and the log-weights of the last AIS run.

    For an exact value, the picture shows instead how ln p(v) differs between the test images.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib.pyplot as plt

    if evaluation.exact is not None:
        figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
        _draw_images(axes, evaluation, evaluation.exact)
        word = "exact"
    else:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
        _draw_estimates(left, evaluation)
        _draw_log_weights(right, evaluation.runs[-1].ais)
        word = evaluation.word
    title = f"{evaluation.model}, {evaluation.num_images:,} test {evaluation.items}"
    figure.suptitle(f"{title}: {word}" if word else title)
    return figure


def _draw_images(axes: Axes, evaluation: Evaluation, exact: ExactResult) -> None:
    """The exact ln p(v) of all test images, their average, and the baselines."""
    assert evaluation.log_unnormalized is not None
    log_p = (evaluation.log_unnormalized - exact.log_z).tolist()
    shares = None if evaluation.weights is None else evaluation.weights.tolist()
    axes.hist(log_p, bins=30, weights=shares, color="#0072B2")
    axes.axvline(exact.test, color="black", linestyle="--", label="average")
    found = evaluation.baselines
    if found is not None:
        of_rates = f"average under base rates of the {found.source}"
        axes.axvline(found.base_rates, color="#D55E00", label=of_rates)
        axes.axvline(found.uniform, color="#999999", label="uniform model")
    counted = (
        f"test {evaluation.items}" if shares is None else f"weight of the test {evaluation.items}"
    )
    axes.set(xlabel="ln p(v), nats", ylabel=counted)
    axes.legend(fontsize="small")


def _draw_estimates(left: Axes, evaluation: Evaluation) -> None:
    """The averages according to AIS, RAISE and the ladder, against K."""
    from matplotlib.ticker import NullLocator

    runs = evaluation.runs
    steps = [run.num_steps for run in runs]
    upper = [run.bracket.upper for run in runs]
    lower = [run.bracket.lower for run in runs]
    ends = [run.bracket.upper_interval for run in runs]
    # The upper end of AIS's interval may be infinite; it is then not drawn.
    reach = [
        [mean - low for mean, (low, _) in zip(upper, ends, strict=True)],
        [high - mean if math.isfinite(high) else 0.0 for mean, (_, high) in zip(upper, ends, strict=True)],
    ]  # fmt: skip
    left.errorbar(
        [step / 1.03 for step in steps],
        upper,
        reach,
        marker="o",
        linestyle="-",
        color="#0072B2",
        capsize=3,
        label="AIS, from above (3 standard errors)",
    )
    left.errorbar(
        [step * 1.03 for step in steps],
        [estimate.mean for estimate in lower],
        [3 * estimate.test_set_std_error for estimate in lower],
        marker="s",
        linestyle="--",
        color="#D55E00",
        capsize=3,
        label="RAISE, from below (3 standard errors)",
    )
    ladder, average = evaluation.ladder, evaluation.average
    if ladder is not None and average is not None:
        # The average of ln p*(v) is the same for every estimate of ln Z.
        of_images = upper[-1] + runs[-1].ais.log_z
        low, high = (of_images - end for end in reversed(ladder.interval(LEVEL)))
        if math.isfinite(low):
            left.axhspan(low, high, color="#009E73", alpha=0.3, label="ladder, 95 % interval")
        left.axhline(of_images - ladder.log_z, color="#009E73", label="ladder")
    left.set(
        xscale="log",
        xlabel="intermediate distributions K",
        ylabel="average test log-probability, nats",
    )
    left.set_xticks(steps, [f"{step:,}" for step in steps])
    left.xaxis.set_minor_locator(NullLocator())
    left.legend(fontsize="small")


def _draw_log_weights(right: Axes, ais: PartitionEstimate) -> None:
    """How far the log-weights of AIS's chains spread."""
    right.hist((ais.log_weights - ais.log_z).tolist(), bins=30, color="#0072B2")
    right.axvline(0, color="black", linestyle="--")
    right.set(xlabel="ln w less ln of their mean, nats", ylabel="chains of AIS, largest K")
