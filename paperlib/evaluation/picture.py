"""An evaluation as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paperlib.errors import InputError
from paperlib.evaluation.result import Evaluation
from paperlib.evaluation.verdict import LEVEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Instead of a picture of an exact value.
NOTHING_TO_PLOT = "Nothing to plot against K: the value is exact."


def require_matplotlib() -> None:
    """Raise an InputError unless there is something to draw with."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise InputError(
            "plot: expected matplotlib to be installed (pip install matplotlib)"
        ) from error


def plot(evaluation: Evaluation) -> Figure:
    """The ladder's average and the bracket against K, and the log-weights of the last AIS run.

    Raises
    ------
    InputError
        If everything is exact, so that there is nothing to draw, or matplotlib is not installed.
    """
    if evaluation.exact is not None:
        raise InputError(
            "plot: expected an estimate, but this model's value is exact; there is nothing to draw"
        )
    require_matplotlib()
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    runs = evaluation.runs
    steps = [run.num_steps for run in runs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    upper = [run.bracket.upper for run in runs]
    lower = [run.bracket.lower for run in runs]
    ends = [run.bracket.upper_interval for run in runs]
    # An upper end of AIS's interval may be infinite, and then is not drawn.
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
    log_weights = runs[-1].ais.log_weights
    right.hist((log_weights - runs[-1].ais.log_z).tolist(), bins=30, color="#0072B2")
    right.axvline(0, color="black", linestyle="--")
    right.set(xlabel="ln w less ln of their mean, nats", ylabel="chains of AIS, largest K")
    word = "" if evaluation.judgement is None else f": {evaluation.judgement.word}"
    figure.suptitle(f"{evaluation.model}, {evaluation.num_images:,} test images{word}")
    return figure
