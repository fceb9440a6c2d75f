"""An evaluation, and the likelihood along training, as pictures.

`plot` and `plot_training` return figures of matplotlib, and `save_picture` writes one. `LOOKS` says
how every picture of the book shows an estimator.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from boltzmann_likelihood.evaluation.averages import LEVEL
from boltzmann_likelihood.evaluation.report import round_trips
from boltzmann_likelihood.evaluation.result import Evaluation, ExactResult, Verdict
from boltzmann_likelihood.evaluation.training import TrainingLikelihood
from paperlib.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paperlib.estimators import PartitionEstimate, TemperingEstimate

_Drawn = TypeVar("_Drawn")

#: How every picture shows an estimator: the keywords of matplotlib's lines. Triangles point to
#: where the truth is on average: down from AIS, up from RAISE. All colours stand out on white, and
#: those of AIS and RAISE on black as well; any two differ for colour-blind eyes.
LOOKS: dict[str, dict[str, Any]] = {
    "AIS": {"color": "#C25400", "linestyle": "-", "marker": "v"},
    "RAISE": {"color": "#0072B2", "linestyle": "--", "marker": "^"},
    "parallel tempering": {"color": "#009E73", "linestyle": "-.", "marker": "D"},
    "SMC": {"color": "#CC79A7", "linestyle": ":", "marker": "s"},
    "importance sampling": {"color": "#555555", "linestyle": (0, (5, 1, 1, 1)), "marker": "o"},
    "certified bound": {"color": "#7A0070", "linestyle": (0, (1, 3)), "marker": "P"},
}
EXACT: dict[str, Any] = {"color": "black", "linestyle": "-"}
# What no single estimator has found is grey.
_PLAIN = "0.35"


def require_matplotlib() -> None:
    """Raise an InputError unless matplotlib is installed, and accepts its settings."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError as error:
        raise InputError(
            "plot: expected matplotlib to be installed (pip install matplotlib)"
        ) from error
    except ValueError as error:
        # It looks at MPLBACKEND while it is imported, also where nothing is shown.
        raise InputError(
            f"plot: expected MPLBACKEND to be a backend of matplotlib, or not set: {error}"
        ) from error


def save_picture(draw: Callable[[_Drawn], Figure], drawn: _Drawn, file: Path) -> None:
    """Write the picture that a function draws, in matplotlib's default style."""
    require_matplotlib()
    from matplotlib import style

    # The style of the user's settings may need LaTeX. Labels of the axes are made, in the style of
    # that moment, when the file is written.
    with style.context("default", after_reset=True):
        draw(drawn).savefig(file)


def plot(evaluation: Evaluation) -> Figure:
    """A picture of an evaluation.

    It shows the averages against K, the log-weights of the last AIS run, and how parallel tempering
    went. For an exact value, it shows instead how ln p(v) differs between the test images.

    Raises
    ------
    InputError
        If there were no test images.
    """
    require_matplotlib()
    if not evaluation.has_images:
        raise InputError("plot: expected an evaluation of test images, got one of ln Z alone")
    # Not of pyplot, which would look for a backend that shows it.
    from matplotlib.figure import Figure

    if evaluation.exact is not None:
        figure = Figure(figsize=(6, 3.8), layout="constrained")
        _draw_images(figure.subplots(), evaluation, evaluation.exact)
        word = "exact"
    else:
        rows = 1 if evaluation.tempering is None else 2
        figure = Figure(figsize=(9, 3.8 * rows), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False)
        _draw_estimates(axes[0, 0], evaluation)
        _draw_log_weights(axes[0, 1], evaluation.runs[-1].ais)
        if evaluation.tempering is not None:
            _draw_growing_parts(axes[1, 0], evaluation.tempering, evaluation.has_interval)
            _draw_swaps(axes[1, 1], evaluation.tempering)
        word = evaluation.word
    title = f"{evaluation.model}, {evaluation.num_images:,} test images"
    figure.suptitle(f"{title}: {word}")
    return figure


def _draw_images(axes: Axes, evaluation: Evaluation, exact: ExactResult) -> None:
    """The exact ln p(v) of all test images, their average, and the baselines."""
    log_p = (evaluation.log_unnormalized - exact.log_z).tolist()
    shares = None if evaluation.weights is None else evaluation.weights.tolist()
    axes.hist(log_p, bins=30, weights=shares, color="0.75")
    axes.axvline(exact.test, label="average", **EXACT)
    baselines = evaluation.baselines
    label = f"average under base rates of the {baselines.source}"
    axes.axvline(baselines.base_rates, color=_PLAIN, linestyle="--", label=label)
    axes.axvline(baselines.uniform, color=_PLAIN, linestyle=":", label="uniform model")
    axes.set(
        xlabel="ln p(v), nats",
        ylabel="test images" if shares is None else "weight of the test images",
    )
    axes.legend(fontsize="small")


def _draw_estimates(left: Axes, evaluation: Evaluation) -> None:
    """The averages according to AIS, RAISE and parallel tempering, against K."""
    from matplotlib.ticker import NullLocator

    runs = evaluation.runs
    steps = [run.num_steps for run in runs]
    upper = [run.bracket.upper for run in runs]
    lower = [run.bracket.lower for run in runs]
    below = []
    above = []
    for run in runs:
        low, high = run.bracket.upper_interval
        below.append(run.bracket.upper - low)
        # The upper end of AIS's interval may be infinite; it is then not drawn.
        above.append(high - run.bracket.upper if math.isfinite(high) else 0.0)
    means = [estimate.mean for estimate in lower]
    errors = [3 * estimate.test_set_std_error for estimate in lower]
    for name, side, shift, values, bars in (
        ("AIS", "high", 1 / 1.03, upper, [below, above]),
        ("RAISE", "low", 1.03, means, errors),
    ):
        places = [step * shift for step in steps]
        label = f"{name}, on average too {side} (3 standard errors)"
        left.errorbar(places, values, bars, label=label, capsize=3, **LOOKS[name])
    tempering = evaluation.tempering
    if tempering is not None:
        # The average of ln p*(v) is the same for every estimate of ln Z.
        mean_log_unnormalized = upper[-1] + runs[-1].ais.log_z
        look = {"color": LOOKS["parallel tempering"]["color"]}
        log_z_low, log_z_high = tempering.interval(LEVEL)
        low = mean_log_unnormalized - log_z_high
        high = mean_log_unnormalized - log_z_low
        if math.isfinite(low) and evaluation.has_interval:
            left.axhspan(low, high, alpha=0.3, label="parallel tempering, 95 % interval", **look)
        left.axhline(mean_log_unnormalized - tempering.log_z, label="parallel tempering", **look)
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
    right.hist((ais.log_weights - ais.log_z).tolist(), bins=30, color=LOOKS["AIS"]["color"])
    right.axvline(0, color="black", linestyle="--")
    right.set(xlabel="ln w less ln of their mean, nats", ylabel="chains of AIS, largest K")


def _draw_growing_parts(axes: Axes, tempering: TemperingEstimate, has_interval: bool) -> None:
    """ln Z from growing parts of the run, forward from its beginning and backward from its end.

    The two agree early in a run that has equilibrated.
    """
    count = len(tempering.batch_means)
    # ten parts can still be told apart
    counts = range(count, 0, -math.ceil(count / 10))
    # Without a round trip the error is unknown, and is not drawn.
    errors = None
    if math.isfinite(tempering.std_error):
        # As if batches were independent.
        errors = [tempering.std_error * math.sqrt(count / part) for part in counts]
    look = LOOKS["parallel tempering"]
    for label, means, shift, face in (
        ("forward, from the beginning", tempering.batch_means, -0.7, look["color"]),
        ("backward, from the end", tempering.batch_means.flip(0), 0.7, "white"),
    ):
        places = [100 * part / count + shift for part in counts]
        values = [means[:part].mean().item() for part in counts]
        style = look | {"capsize": 3, "markerfacecolor": face}
        axes.errorbar(places, values, errors, label=f"{label} (1 standard error)", **style)
    low, high = tempering.interval(LEVEL)
    if math.isfinite(low) and has_interval:
        axes.axhspan(low, high, color=look["color"], alpha=0.3, label="whole run, 95 % interval")
    axes.set(xlabel="part of the run of parallel tempering, %", ylabel="ln Z, nats")
    axes.margins(y=0.25)  # room for the legend
    axes.legend(fontsize="small")


def _draw_swaps(axes: Axes, tempering: TemperingEstimate) -> None:
    """The share of swaps that each link rejects; one with nearly all keeps its two sides apart."""
    links = len(tempering.rejection_rates)
    middles = [link + 0.5 for link in range(links)]
    color = LOOKS["parallel tempering"]["color"]
    axes.bar(middles, tempering.rejection_rates.tolist(), width=0.8, color=color)
    # Ten temperatures have room for their labels, and that of the target is one of them.
    labelled = range(links, -1, -math.ceil(links / 9))
    axes.set_xticks(labelled, [f"{tempering.betas[number].item():.2g}" for number in labelled])
    axes.set(
        ylim=(0, 1),
        xlabel=f"inverse temperature of the {links + 1} temperatures",
        ylabel="share of swaps rejected",
        title=f"{round_trips(tempering)} between the ends",
    )


def plot_training(training: TrainingLikelihood) -> Figure:
    """The average against training, with its interval for these images, and the best checkpoint."""
    require_matplotlib()
    from matplotlib.figure import Figure

    checkpoints = training.checkpoints
    places, label, logarithmic = _places([checkpoint.name for checkpoint in checkpoints])
    averages = [checkpoint.average for checkpoint in checkpoints]
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    lows = [_end_or_gap(average.interval[0]) for average in averages]
    highs = [_end_or_gap(average.interval[1]) for average in averages]
    band = {"alpha": 0.25, "label": "95 % interval, these images"}
    axes.fill_between(places, lows, highs, color=_PLAIN, **band)
    means = [average.mean for average in averages]
    look: dict[str, Any] = {"markersize": 4, "color": _PLAIN}
    axes.plot(places, means, marker="o", label="average ln p(v)", **look)
    doubtful = [
        number
        for number, checkpoint in enumerate(checkpoints)
        if checkpoint.evaluation.word == Verdict.NOT_TRUSTED
    ]
    if doubtful:
        look["markerfacecolor"] = "white"
        axes.plot(places, means, "o", markevery=doubtful, label=Verdict.NOT_TRUSTED, **look)
    best = f"best: {checkpoints[training.best].name}"
    axes.plot(places, means, "k*", markevery=[training.best], markersize=12, label=best)
    if logarithmic:
        axes.set_xscale("log")
    axes.set(xlabel=label, ylabel="average test log-probability, nats")
    axes.legend()
    return figure


def _end_or_gap(end: float) -> float:
    """An end of an interval; NaN, which leaves a gap, where it is not trusted and so infinite."""
    return end if math.isfinite(end) else math.nan


def _places(names: list[str]) -> tuple[list[float], str, bool]:
    """Positions of the checkpoints, the label of their axis, and whether it is logarithmic.

    They are the last numbers in the names, if each name has one and these increase.
    """
    numbers = [re.findall(r"\d+", name) for name in names]
    values = [float(parts[-1]) for parts in numbers if parts]
    increasing = all(low < high for low, high in itertools.pairwise(values))
    if len(values) < len(names) or not increasing:
        return [float(number) for number in range(1, len(names) + 1)], "checkpoint", False
    label = "update" if names[0].startswith("update_") else "number of the checkpoint"
    wide = values[0] > 0 and values[-1] > 30 * values[0]
    return values, label, wide
