"""An evaluation in words, for machines, and as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from paperlib.errors import InputError
from paperlib.evaluation.audit import Audit
from paperlib.evaluation.compare import Comparison
from paperlib.evaluation.evaluation import Evaluation
from paperlib.evaluation.verdict import LEVEL, TRUSTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def verdict(evaluation: Evaluation) -> str:
    """The verdict in a sentence."""
    if evaluation.exact is not None:
        return "trustworthy: every state of the smaller layer was enumerated, nothing is estimated"
    judgement = evaluation.judgement
    if not evaluation.trustworthy:
        word = f" ({judgement.word})" if judgement is not None else ""
        return f"do not rely on this number yet{word}"
    if evaluation.ladder is not None and judgement is not None and judgement.source == "ladder":
        return (
            f"trustworthy: the ladder made {evaluation.ladder.round_trips:,} round trips without a warning, and neither AIS nor "
            "RAISE contradicts it"
        )
    gap = abs(evaluation.runs[-1].bracket.gap)
    return f"trustworthy: AIS from above and RAISE from below agree within {gap:.1f} nats"


def describe(evaluation: Evaluation) -> str:
    """What came out, in words, for a terminal."""
    lines = [
        f"RBM with {evaluation.num_visible:,} visible and {evaluation.num_hidden:,} hidden units, "
        f"{evaluation.num_images:,} test images; all numbers in nats."
    ]
    if evaluation.exact is not None:
        exact = evaluation.exact
        lines += [
            f"ln Z = {exact.log_z:.4f}, exact.",
            f"Average test log-probability: {exact.test:.3f} (standard error over images {exact.test_std_error:.3f}).",
        ]
    else:
        lines += [f"Annealing starts at the {evaluation.start}.", "", *_table(evaluation), ""]
        lines += [*_log_z(evaluation), *_average(evaluation)]
    lines += ["", f"Verdict: {verdict(evaluation)}."]
    lines += [f"  - {finding}" for finding in evaluation.findings]
    if evaluation.judgement is not None and evaluation.judgement.settled:
        settled = evaluation.judgement.settled
        other = "the ladder" if evaluation.judgement.source == "ladder" else "AIS and RAISE"
        lines += [f"Doubts that {other} settled:", *(f"  - {text}" for text in settled)]
    return "\n".join(lines)


def _log_z(evaluation: Evaluation) -> list[str]:
    best, ladder = evaluation.runs[-1], evaluation.ladder
    by_ais = f"ln Z = {best.ais.log_z:.2f} by AIS."
    if ladder is None:
        return [by_ais]
    low, high = ladder.interval(LEVEL)
    return [
        f"ln Z = {ladder.log_z:.2f} by the ladder, 95 % interval {low:.2f} to {high:.2f} ({ladder.round_trips:,} round trips on "
        f"{len(ladder.betas)} rungs).",
        by_ais,
    ]


def _average(evaluation: Evaluation) -> list[str]:
    best, average = evaluation.runs[-1], evaluation.average
    low, high = best.bracket.upper_interval
    lower = best.bracket.lower
    lines = ["Average test log-probability:"]
    if average is not None and evaluation.judgement is not None:
        by = "the ladder" if evaluation.judgement.source == "ladder" else "AIS"
        ends = " to ".join(f"{end:.2f}" for end in average.interval)
        of_kind = " to ".join(f"{end:.2f}" for end in average.sample_interval)
        lines += [
            f"  Reported, by {by}".ljust(30)
            + f"{average.mean:9.2f}   95 % interval {ends}; for other images of the kind {of_kind}"
        ]
    return [
        *lines,
        f"  AIS, on average too high:   {best.bracket.upper:9.2f}   three standard deviations: {low:.2f} to {high:.2f}",
        f"  RAISE, on average too low:  {lower.mean:9.2f}   standard error {lower.test_set_std_error:.2f}, with control variate",
    ]


def _table(evaluation: Evaluation) -> list[str]:
    heading = f"{'K':>9} {'AIS':>9} {'RAISE':>9} {'gap':>6} {'effective chains':>17} {'seconds':>8}"
    return [heading] + [
        f"{run.num_steps:>9,} {run.bracket.upper:>9.2f} {run.bracket.lower.mean:>9.2f} "
        f"{run.bracket.gap:>6.2f} "
        f"{f'{run.ais.effective_sample_size:.0f} of {len(run.ais.log_weights)}':>17} {run.seconds:>8.1f}"
        for run in evaluation.runs
    ]


def as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """What came out, for machines: numbers, text and lists; infinite numbers become None."""
    result: dict[str, Any] = {
        "num_visible": evaluation.num_visible,
        "num_hidden": evaluation.num_hidden,
        "num_images": evaluation.num_images,
        "unit": "nats",
        "trustworthy": evaluation.trustworthy,
        "verdict": verdict(evaluation),
        "findings": list(evaluation.findings),
        "start": evaluation.start,
        "interrupted": evaluation.interrupted,
    }
    if evaluation.exact is not None:
        exact = evaluation.exact
        result["exact"] = {
            "log_z": exact.log_z,
            "test": exact.test,
            "test_std_error": exact.test_std_error,
        }
    result["estimates"] = [
        {
            "num_steps": run.num_steps,
            "log_z": run.ais.log_z,
            "ais_chains": len(run.ais.log_weights),
            "effective_sample_size": run.ais.effective_sample_size,
            "log_z_lower_bound": run.ais.lower_bound,
            "ais": run.bracket.upper,
            "ais_std_error": _finite(run.bracket.upper_std_error),
            "ais_interval_3_sigma": [_finite(end) for end in run.bracket.upper_interval],
            "raise": run.bracket.lower.mean,
            "raise_std_error": run.bracket.lower.test_set_std_error,
            "gap": run.bracket.gap,
            "seconds": run.seconds,
        }
        for run in evaluation.runs
    ]
    ladder, average, judgement = evaluation.ladder, evaluation.average, evaluation.judgement
    result["verdict_word"] = TRUSTED if judgement is None else judgement.word
    result["source"] = "exact" if judgement is None else judgement.source
    result["settled"] = [] if judgement is None else list(judgement.settled)
    if average is not None:
        result["average"] = {
            "test": average.mean,
            "interval_95": [_finite(end) for end in average.interval],
            "interval_95_other_images": [_finite(end) for end in average.sample_interval],
        }
    if ladder is not None:
        result["ladder"] = {
            "log_z": ladder.log_z,
            "log_z_std_error": _finite(ladder.std_error),
            "log_z_interval_95": [_finite(end) for end in ladder.interval(LEVEL)],
            "round_trips": ladder.round_trips,
            "rungs": len(ladder.betas),
            "replicas": ladder.num_replicas,
            "chain_steps": ladder.chain_steps,
            "log_z_lower_bound": ladder.lower_bound,
            "warnings": list(ladder.warnings),
        }
    return result


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def describe_audit(found: Audit) -> str:
    """An audit in words, for a terminal."""
    lines = [f"Claimed: ln Z = {found.claimed_log_z:.2f} nats.", "Proven:"]
    for bound in found.bounds:
        ends = [
            f"{word} {end:.2f}"
            for word, end in (("at least", bound.low), ("at most", bound.high))
            if math.isfinite(end)
        ]
        lines.append(f"  {' and '.join(ends) or 'nothing'}, by {bound.name.rstrip(',')}")
    low, high = found.interval
    lines += [
        f"Estimated: {low:.2f} to {high:.2f}.",
        "",
        f"Verdict: {found.verdict}. {found.reason}",
    ]
    lines += [f"  - {finding}" for finding in found.evaluation.findings]
    return "\n".join(lines)


def audit_as_dict(found: Audit) -> dict[str, Any]:
    """An audit for machines; infinite numbers become None."""
    return {
        "unit": "nats",
        "claimed_log_z": found.claimed_log_z,
        "claimed_log_prob": found.mean_log_unnormalized - found.claimed_log_z,
        "verdict": found.verdict,
        "reason": found.reason,
        "bounds": [
            {"by": bound.name.rstrip(","), "low": _finite(bound.low), "high": _finite(bound.high)}
            for bound in found.bounds
        ],
        "interval": [_finite(end) for end in found.interval],
        "evaluation": as_dict(found.evaluation),
    }


def describe_comparison(found: Comparison) -> str:
    """A comparison in words, for a terminal."""
    difference = found.difference
    lines = []
    for name, evaluation in (("first", found.first), ("second", found.second)):
        if evaluation.average is not None:
            low, high = evaluation.average.interval
            lines.append(
                f"{name + ':':<8} {evaluation.average.mean:9.2f}   95 % interval {low:.2f} to {high:.2f}"
            )
    of_these, of_kind = (
        " to ".join(f"{end:.2f}" for end in interval)
        for interval in (difference.interval, difference.sample_interval)
    )
    lines += [
        f"difference of the average test log-probabilities: {difference.mean:.2f} nats",
        f"  95 % interval for these images {of_these}; for other images of the kind {of_kind}",
        f"  the first model gives the higher probability to {100 * found.wins:.0f} % of the images",
        "",
        f"Verdict: {found.verdict}.",
    ]
    for name, evaluation in (("first", found.first), ("second", found.second)):
        lines += [f"  - {name}: {finding}" for finding in evaluation.findings]
    return "\n".join(lines)


def comparison_as_dict(found: Comparison) -> dict[str, Any]:
    """A comparison for machines; infinite numbers become None."""
    return {
        "unit": "nats",
        "verdict": found.verdict,
        "difference": found.difference.mean,
        "interval_95": [_finite(end) for end in found.difference.interval],
        "interval_95_other_images": [_finite(end) for end in found.difference.sample_interval],
        "share_of_images_won_by_first": found.wins,
        "first": as_dict(found.first),
        "second": as_dict(found.second),
    }


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
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise InputError(
            "plot: expected matplotlib to be installed (pip install matplotlib)"
        ) from error
    steps = [run.num_steps for run in evaluation.runs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    upper = [run.bracket.upper for run in evaluation.runs]
    lower = [run.bracket.lower for run in evaluation.runs]
    left.plot(steps, upper, marker="o", linestyle="-", color="#0072B2", label="AIS, from above")
    left.errorbar(
        steps,
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
        of_images = upper[-1] + evaluation.runs[-1].ais.log_z
        low, high = (of_images - end for end in reversed(ladder.interval(LEVEL)))
        if math.isfinite(low):
            left.axhspan(low, high, color="#009E73", alpha=0.3, label="ladder, 95 % interval")
        left.axhline(of_images - ladder.log_z, color="#009E73", label="ladder")
    left.set(
        xscale="log",
        xlabel="intermediate distributions K",
        ylabel="average test log-probability, nats",
    )
    left.legend()
    log_weights = evaluation.runs[-1].ais.log_weights
    right.hist((log_weights - evaluation.runs[-1].ais.log_z).tolist(), bins=30, color="#0072B2")
    right.axvline(0, color="black", linestyle="--")
    right.set(xlabel="ln w less ln of their mean, nats", ylabel="chains")
    return figure
