"""An evaluation in words and for machines."""

from __future__ import annotations

import math
import re
from typing import Any

from paperlib import __version__
from paperlib.evaluation.annealing_runs import AIS_CHAINS, CHAINS_PER_VECTOR, RAISE_VECTORS
from paperlib.evaluation.audit import Audit
from paperlib.evaluation.compare import Comparison
from paperlib.evaluation.quote import quote
from paperlib.evaluation.reasons import rounded_up
from paperlib.evaluation.result import Evaluation
from paperlib.evaluation.verdict import LEVEL, TRUSTED


def verdict(evaluation: Evaluation) -> str:
    """The verdict in a sentence."""
    if evaluation.exact is not None:
        return "trusted: every state of the smaller layer was enumerated, nothing is estimated"
    judgement = evaluation.judgement
    if not evaluation.trustworthy:
        word = f" ({judgement.word})" if judgement is not None else ""
        return f"do not rely on this number yet{word}"
    if evaluation.ladder is not None and judgement is not None and judgement.source == "ladder":
        return (
            f"trusted: the ladder made {evaluation.ladder.round_trips:,} round trips without a warning, and neither AIS nor "
            "RAISE contradicts it"
        )
    gap = rounded_up(evaluation.runs[-1].bracket.gap)
    return f"trusted: AIS from above and RAISE from below agree within {gap} nats"


def describe(evaluation: Evaluation, binarization: str = "images binary as given") -> str:
    """The result in words, for a terminal.

    Parameters
    ----------
    evaluation : Evaluation
        From `evaluate`.
    binarization : str
        How the images became binary, for the line to quote.
    """
    model = evaluation.model or (
        f"RBM with {evaluation.num_visible:,} visible and {evaluation.num_hidden:,} hidden units"
    )
    counted = ""
    if evaluation.weights is not None:
        counted = f" of total weight {evaluation.weights.sum().item():,.1f}"
    lines = [f"{model}, {evaluation.num_images:,} test images{counted}; all numbers in nats."]
    if evaluation.exact is not None:
        exact = evaluation.exact
        lines += [
            f"ln Z = {exact.log_z:.4f}, exact.",
            f"Average test log-probability: {exact.test:.3f} (standard error over images {exact.test_std_error:.3f}).",
        ]
    else:
        lines += [f"Annealing starts at the {evaluation.start}.", "", *_table(evaluation), ""]
        lines += [*_log_z(evaluation), *_average(evaluation)]
    lines += _baselines(evaluation)
    lines += ["", f"Verdict: {verdict(evaluation)}."]
    lines += [f"  - {finding}" for finding in evaluation.findings]
    lines += [f"Remark: {remark}" for remark in evaluation.remarks]
    if evaluation.judgement is not None and evaluation.judgement.settled:
        settled = evaluation.judgement.settled
        other = "the ladder" if evaluation.judgement.source == "ladder" else "AIS and RAISE"
        lines += [f"Doubts that {other} settled:", *(f"  - {text}" for text in settled)]
    return _of_items("\n".join([*lines, quote(evaluation, binarization)]), evaluation)


def _of_items(text: str, evaluation: Evaluation) -> str:
    """A text about images, in the words for the test vectors of this model."""
    if evaluation.items == "images":
        return text
    return re.sub(r"\bimages\b", evaluation.items, text).replace("each image", "each sequence")


def _baselines(evaluation: Evaluation) -> list[str]:
    found = evaluation.baselines
    if found is None:
        return []
    return [
        f"For scale: uniform model {found.uniform:.2f}, independent pixels with the base rates of the {found.source} "
        f"{found.base_rates:.2f}."
    ]


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
    lines = ["Average test log-probability:", *_estimated_posterior(evaluation)]
    if average is not None and evaluation.judgement is not None:
        by = "the ladder" if evaluation.judgement.source == "ladder" else "AIS"
        ends = " to ".join(f"{end:.2f}" for end in average.interval)
        of_kind = " to ".join(f"{end:.2f}" for end in average.sample_interval)
        lines += [
            f"  Reported, by {by}".ljust(30)
            + f"{average.mean:9.2f}   95 % interval {ends}; for other images of the kind {of_kind}",
            "  Standard error over images:".ljust(30)
            + f"{average.image_std_error:9.2f}   of the images as a sample; the other errors are those of Monte Carlo",
        ]
    return [
        *lines,
        f"  AIS, on average too high:   {best.bracket.upper:9.2f}   three standard deviations: {low:.2f} to {high:.2f}",
        f"  RAISE, on average too low:  {lower.mean:9.2f}   Monte Carlo standard error {lower.test_set_std_error:.2f}, with control variate",
        *_crossing(best.bracket.gap),
    ]


def _crossing(gap: float) -> list[str]:
    """A line that tells a newcomer why the estimate that is on average too high can lie below the one that is too low."""
    if not -1 <= gap <= -0.005:
        return []
    return [
        f"  (AIS lies {rounded_up(gap)} below RAISE. They err to these sides on average only, and a crossing of less than a nat is "
        "no contradiction.)"
    ]


def _estimated_posterior(evaluation: Evaluation) -> list[str]:
    """Lines that say what the numbers of a deep model mean."""
    if not evaluation.posterior_draws:
        return []
    lines = [
        f"  ln p*(v) of each image is itself an estimate, from {evaluation.posterior_draws} draws of its hidden units, and errs low:",
        "  the number reported and that of AIS are lower bounds on average, as far as ln Z is right. RAISE needs no ln p*(v).",
    ]
    if evaluation.variational_bound is not None:
        lines.append(
            f"  Variational lower bound:    {evaluation.variational_bound:9.2f}   with the reported ln Z"
        )
    return lines


def _table(evaluation: Evaluation) -> list[str]:
    heading = f"{'K':>9} {'AIS':>9} {'RAISE':>9} {'gap':>6} {'effective chains':>17} {'seconds':>8}"
    return [heading] + [
        f"{run.num_steps:>9,} {run.bracket.upper:>9.2f} {run.bracket.lower.mean:>9.2f} "
        f"{run.bracket.gap:>6.2f} "
        f"{f'{run.ais.effective_sample_size:.0f} of {len(run.ais.log_weights)}':>17} {run.seconds:>8.1f}"
        for run in evaluation.runs
    ]


def as_dict(evaluation: Evaluation, binarization: str = "images binary as given") -> dict[str, Any]:
    """The result for machines, as numbers, text and lists; infinite numbers become None."""
    result: dict[str, Any] = {
        "num_visible": evaluation.num_visible,
        "num_hidden": evaluation.num_hidden,
        "num_images": evaluation.num_images,
        "unit": "nats",
        "trustworthy": evaluation.trustworthy,
        "verdict": verdict(evaluation),
        "findings": [_of_items(text, evaluation) for text in evaluation.findings],
        "start": evaluation.start,
        "interrupted": evaluation.interrupted,
        "model": evaluation.model,
        "remarks": [_of_items(text, evaluation) for text in evaluation.remarks],
        "version": __version__,
        "seed": evaluation.seed,
        "settings": _settings(evaluation),
        "quote": _of_items(quote(evaluation, binarization), evaluation),
    }
    if evaluation.weights is not None:
        result["total_weight"] = evaluation.weights.sum().item()
    if evaluation.baselines is not None:
        found = evaluation.baselines
        result["baselines"] = {
            "uniform": found.uniform,
            "base_rates": found.base_rates,
            "base_rates_of": found.source,
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
            "std_error_over_images": average.image_std_error,
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


def _settings(evaluation: Evaluation) -> dict[str, Any]:
    """The settings with which the estimates were made."""
    effort = evaluation.effort
    if effort is None:
        return {"method": "exact, by enumeration"}
    return {
        "method": "parallel tempering, checked by AIS and RAISE",
        "start": evaluation.start,
        "num_steps": effort.num_steps,
        "ladder_steps": effort.ladder_steps,
        "steps_chosen_by": "the user" if effort.minutes is None else "the time",
        "minutes": effort.minutes,
        "ais_chains": AIS_CHAINS,
        "raise_vectors": min(RAISE_VECTORS, evaluation.num_images),
        "raise_chains_per_vector": CHAINS_PER_VECTOR,
        "posterior_draws": evaluation.posterior_draws,
        "variational_bound": evaluation.variational_bound,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def describe_audit(found: Audit) -> str:
    """An audit in words, for a terminal."""
    lines = [
        f"Claimed: ln Z = {found.claimed_log_z:.2f} nats, an average test log-probability of {found.claimed_log_prob:.2f}.",
        "Proven:",
    ]
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
    return {**audit_verdict(found), "evaluation": as_dict(found.evaluation)}


def audit_verdict(found: Audit) -> dict[str, Any]:
    """An audit without its evaluation, for machines."""
    return {
        "unit": "nats",
        "claimed_log_z": found.claimed_log_z,
        "claimed_log_prob": found.claimed_log_prob,
        "log_z_offset": found.log_z_offset,
        "verdict": found.verdict,
        "reason": found.reason,
        "bounds": [
            {"by": bound.name.rstrip(","), "low": _finite(bound.low), "high": _finite(bound.high)}
            for bound in found.bounds
        ],
        "interval": [_finite(end) for end in found.interval],
    }


def describe_stored(found: Audit) -> str:
    """The ln Z that an archive stores, beside the library's value, with the verdict of the audit."""
    log_z = found.evaluation.known_log_z[0] + found.log_z_offset
    low, high = found.interval
    where = "inside" if low <= found.claimed_log_z <= high else "outside"
    if found.evaluation.exact is not None:
        beside = f"the exact one is {log_z:.2f}"
    else:
        beside = f"the one estimated here {log_z:.2f}, {where} the interval {low:.2f} to {high:.2f}"
    # no negative zero
    off = round(found.claimed_log_z - log_z, 2) + 0.0
    return (
        f"ln Z that the file stores: {found.claimed_log_z:.2f}; {beside}. It is off by {off:+.2f}. Verdict on it: {found.verdict}. "
        f"{found.reason}"
    )


def describe_comparison(found: Comparison) -> str:
    """A comparison in words, for a terminal."""
    difference = found.difference
    lines = []
    for name, evaluation in (("first", found.first), ("second", found.second)):
        if evaluation.average is not None:
            low, high = evaluation.average.interval
            lines.append(
                f"{name + ':':<8} {evaluation.average.mean:9.2f}   95 % interval {low:.2f} to {high:.2f}; "
                f"standard error over images {evaluation.average.image_std_error:.2f}"
            )
    of_these, of_kind = (
        " to ".join(f"{end:.2f}" for end in interval)
        for interval in (difference.interval, difference.sample_interval)
    )
    lines += _baselines(found.first)
    lines += [
        f"difference of the average test log-probabilities: {difference.mean:.2f} nats",
        f"  standard error over images, paired: {difference.image_std_error:.2f}",
        f"  95 % interval for these images {of_these}; for other images of the kind {of_kind}",
        f"  the first model gives the higher probability to {100 * found.wins:.0f} % of the images",
        "",
        f"Verdict: {found.verdict}.",
    ]
    for name, evaluation in (("first", found.first), ("second", found.second)):
        lines += [f"  - {name}: {finding}" for finding in evaluation.findings]
        lines += [f"Remark on the {name}: {remark}" for remark in evaluation.remarks]
    return "\n".join(lines)


def comparison_as_dict(found: Comparison) -> dict[str, Any]:
    """A comparison for machines; infinite numbers become None."""
    return {
        "unit": "nats",
        "verdict": found.verdict,
        "seed": found.seed,
        "difference": found.difference.mean,
        "std_error_over_images": found.difference.image_std_error,
        "interval_95": [_finite(end) for end in found.difference.interval],
        "interval_95_other_images": [_finite(end) for end in found.difference.sample_interval],
        "share_of_images_won_by_first": found.wins,
        "first": as_dict(found.first),
        "second": as_dict(found.second),
    }
