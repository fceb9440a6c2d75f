"""Results in words, for machines, and as one line to quote.

Each kind of result has two functions here. `describe_evaluation`, `describe_audit`,
`describe_comparison` and `describe_training` give lines for a terminal; `as_dict`,
`audit_verdict`, `comparison_as_dict` and `training_as_dict` give what `--json` writes. `describe`
is the first of these for any result, below a line that says where the model is from; `print` shows
it. `quote` is the last line of an evaluation.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict
from typing import Any

from boltzmann_likelihood.evaluation.annealing_runs import (
    AIS_CHAINS,
    CHAINS_PER_VECTOR,
)
from boltzmann_likelihood.evaluation.audit import Audit
from boltzmann_likelihood.evaluation.averages import LEVEL, ImageAverage
from boltzmann_likelihood.evaluation.compare import Comparison
from boltzmann_likelihood.evaluation.hidden_layers import POSTERIOR_IMAGES
from boltzmann_likelihood.evaluation.printed import report_on, some_names
from boltzmann_likelihood.evaluation.result import AnnealingRun, Effort, Evaluation, Verdict
from boltzmann_likelihood.evaluation.training import TrainingLikelihood
from boltzmann_likelihood.evaluation.verdict import rounded_up
from boltzmann_likelihood.provenance import code_version, repository_state
from boltzmann_likelihood.sources import Inputs
from paperlib import __version__
from paperlib.estimators import Bracket, TemperingEstimate

# Most warnings that the text names; --json has all.
_MOST_WARNINGS = 3
_COLUMNS = 80
_NO_IMAGES = (
    "No images were given: draws of the model stand in for them here and below, and modes that "
    "only images would show were not looked for."
)
# Fields of the JSON's `estimates` that are about images.
_IMAGE_FIELDS = ("ais", "ais_interval_3_sigma", "raise", "raise_interval_95")


def _verdict(evaluation: Evaluation) -> str:
    """The verdict in a sentence."""
    if evaluation.worse_than_baseline and not evaluation.warnings:
        return f"open: {evaluation.remarks[0].removesuffix('.')}"
    if not evaluation.trustworthy:
        return f"do not rely on this number yet ({evaluation.word})"
    if evaluation.tempering is None:
        return "trusted: every state of the smaller layer was enumerated, nothing is estimated"
    return (
        f"trusted: parallel tempering made {round_trips(evaluation.tempering)} without a warning, "
        "and neither AIS nor RAISE contradicts it"
    )


def round_trips(tempering: TemperingEstimate) -> str:
    """How many round trips parallel tempering made, in words."""
    count = tempering.round_trips
    return f"{count:,} round trip{'s' if count != 1 else ''}"


def describe(result: Evaluation | Audit | Comparison | TrainingLikelihood) -> str:
    """The result in words, as `print` shows it, with what was read from files.

    Parameters
    ----------
    result : Evaluation, Audit, Comparison or TrainingLikelihood
        From `evaluate`, `audit`, `compare` or `evaluate_training`.

    Returns
    -------
    str
        Lines for a terminal. The JSON of the command has all that is left out.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), [0, 2, -2], torch.zeros(2))
    >>> for line in describe(evaluate(rbm, [[0, 1, 0], [1, 1, 0]])).splitlines()[:3]:
    ...     print(line)
    RBM with 3 visible and 2 hidden units, 2 test images; all numbers in nats.
    ln Z = 4.333, exact.
    Average test log-probability: -0.947 (standard error over images 0.000).
    """
    return str(result)


def origin_of(title: str, inputs: Inputs, *notes: str) -> str:
    """Where a model is from, and what was changed on the way or not used; further notes follow."""
    notes = (*inputs.notes, *notes)
    parenthesis = f" ({'; '.join(notes)})" if notes else ""
    return f"{title}: {inputs.origin}{parenthesis}"


def _with_origin(title: str, evaluation: Evaluation, report: str) -> str:
    """A report below the line that says where the model is from, if that is known."""
    inputs = evaluation.inputs
    if inputs.origin:
        return f"{origin_of(title, inputs, *inputs.image_notes)}\n{report}"
    return "\n".join([*inputs.image_notes, report])


@report_on.register
def _(evaluation: Evaluation) -> str:
    return _with_origin("Model", evaluation, describe_evaluation(evaluation))


@report_on.register
def _(audit: Audit) -> str:
    return _with_origin("Model", audit.evaluation, describe_audit(audit))


@report_on.register
def _(comparison: Comparison) -> str:
    report = describe_comparison(comparison)
    if comparison.second.inputs.origin:
        report = f"{origin_of('Second model', comparison.second.inputs)}\n{report}"
    return _with_origin("Model", comparison.first, report)


@report_on.register
def _(training: TrainingLikelihood) -> str:
    first = training.checkpoints[0].evaluation
    return _with_origin("First model", first, describe_training(training))


def describe_evaluation(evaluation: Evaluation) -> str:
    """An evaluation in words: at most 15 lines if it is trusted, and 20 otherwise."""
    lines = _with_images(evaluation) if evaluation.has_images else _without_images(evaluation)
    lines.append(f"Verdict: {_verdict(evaluation)}.")
    remarks = evaluation.remarks
    warnings = evaluation.warnings
    if evaluation.worse_than_baseline:
        # The first remark says so: `Evaluation.remarks` begins with it. It is the verdict itself,
        # or what to look at first.
        if warnings:
            warnings = (remarks[0], *warnings)
        remarks = remarks[1:]
    lines += [f"  - {warning}" for warning in warnings[:_MOST_WARNINGS]]
    if len(warnings) > _MOST_WARNINGS:
        more = len(warnings) - _MOST_WARNINGS
        lines.append(f"  - and {more} more: --json FILE writes all of them.")
    if evaluation.advice:
        lines.append(f"  {evaluation.advice}")
    if evaluation.effort is not None and evaluation.effort.tolerance is not None:
        tolerance = evaluation.effort.tolerance
        lines.append(
            f"Stopped early: the interval is no wider than {tolerance:g} nats (--tolerance)."
        )
    lines += [f"Remark: {remark}" for remark in remarks]
    lines.append(_wrapped(quote(evaluation)))
    return "\n".join(lines)


def _with_images(evaluation: Evaluation) -> list[str]:
    """What is known of ln Z and of the average over test images."""
    images = f"{evaluation.num_images:,} test images{_total_weight(evaluation)}"
    if evaluation.known_images:
        images += f", {evaluation.known_images:,} of them training images"
    if evaluation.known_images == evaluation.num_images:
        images += " (this is a training average)"
    lines = [f"{evaluation.model}, {images}; all numbers in nats."]
    if evaluation.exact is not None:
        exact = evaluation.exact
        error = f"standard error over images {exact.test_std_error:.3f}"
        lines += [
            f"ln Z = {exact.log_z:.3f}, exact.",
            f"Average test log-probability: {exact.test:.3f} ({error}).",
        ]
        if evaluation.average.doubt:
            lines.append(f"  for other images of the kind: {_other_images(evaluation.average)}")
    else:
        lines += [_log_z(evaluation), *_average(evaluation)]
    return [*lines, _baselines(evaluation)]


def _without_images(evaluation: Evaluation) -> list[str]:
    """What is known of ln Z alone."""
    lines = [f"{evaluation.model}, no test images; all numbers in nats."]
    if evaluation.exact is not None:
        lines.append(f"ln Z = {evaluation.exact.log_z:.3f}, exact.")
    else:
        best = evaluation.runs[-1]
        by_raise = best.ais.log_z + best.bracket.gap
        ends = (
            f"AIS, on average too low, {best.ais.log_z:.2f}, and RAISE, on average too high from "
            f"draws of the model, {by_raise:.2f}."
        )
        lines += [_log_z(evaluation), f"  checked against {ends}", _NO_IMAGES]
    offset = evaluation.inputs.log_z_offset
    if offset:
        in_file = evaluation.known_log_z.value + offset
        lines.append(f"The model in the file, with units -1 and 1, has ln Z = {in_file:.3f}.")
    return lines


def _wrapped(line: str) -> str:
    """A line to quote in lines of at most 80 columns, the value in the first."""
    value, parenthesis, rest = line.partition(" (")
    if not parenthesis:
        return line
    lines = textwrap.wrap(f"({rest}", _COLUMNS, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([value, *lines])


def _total_weight(evaluation: Evaluation) -> str:
    """The words after the number of images where these do not count alike."""
    if evaluation.weights is None:
        return ""
    return f" of total weight {evaluation.weights.sum().item():,.1f}"


def _baselines(evaluation: Evaluation) -> str:
    """The line with the baselines."""
    baselines = evaluation.baselines
    return (
        f"For scale: uniform model {baselines.uniform:.2f}, independent pixels with the base rates "
        f"of the {baselines.source} {baselines.base_rates:.2f}."
    )


def _log_z(evaluation: Evaluation) -> str:
    """The line with the estimate of ln Z."""
    log_z = evaluation.known_log_z.value
    tempering = evaluation.tempering
    if tempering is None:
        return f"ln Z = {log_z:.2f} by AIS, at least {evaluation.least_log_z:.2f} (99.9 %)."
    interval = _interval(evaluation, evaluation.log_z_interval(LEVEL))
    if not evaluation.has_interval:
        interval += f"; at least {evaluation.least_log_z:.2f} (99.9 %)"
    return (
        f"ln Z = {log_z:.2f} by parallel tempering, {interval} ({round_trips(tempering)} at "
        f"{len(tempering.betas)} temperatures)."
    )


def _average(evaluation: Evaluation) -> list[str]:
    """The lines with the estimate of the average, and with what it is checked against."""
    average = evaluation.average
    method = "AIS" if evaluation.tempering is None else "parallel tempering"
    estimate = f"{average.mean:.2f}, {_average_interval(evaluation)}"
    error = f"standard error over images {average.image_std_error:.2f}"
    others = f"for other images of the kind: {_other_images(average, '95 % interval ')}"
    bracket = evaluation.runs[-1].bracket
    lower = bracket.lower
    by_raise = (
        f"RAISE, on average too low, {lower.mean:.2f} (standard error "
        f"{lower.test_set_std_error:.2f}: Monte Carlo {lower.monte_carlo_std_error:.2f}, "
        f"choice of images {lower.choice_std_error:.2f})"
    )
    by_ais = (
        f"AIS, on average too high, {bracket.upper:.2f} (three standard deviations: "
        f"{between(bracket.upper_interval)}){_crossing(bracket)}"
    )
    lines = [
        f"Average test log-probability, by {method}: {estimate}",
        f"  {others} ({error})" if evaluation.has_interval else f"  {error}",
        f"  checked against {by_raise}, and {by_ais}",
    ]
    if evaluation.variational_bound is not None:
        bound = f"{evaluation.variational_bound:.2f}"
        # The bound of some models is itself an average over draws.
        if evaluation.variational_bound_error > 0:
            bound += f" (standard error {evaluation.variational_bound_error:.2f})"
        lines.append(
            f"  ln p*(v) is an estimate {_draws(evaluation)}, and errs low, here by up to "
            f"{evaluation.unnormalized.missing:.2f}; variational lower bound {bound}"
        )
    return lines


def _draws(evaluation: Evaluation) -> str:
    """How ln p*(v) of a deep model was estimated."""
    draws = evaluation.unnormalized.draws
    steps = evaluation.unnormalized.steps
    if not steps:
        return f"from {draws} draws for each image"
    images = min(POSTERIOR_IMAGES, evaluation.num_images)
    return f"from {draws} chains of {steps:,} steps for each of {images} images"


def _interval(evaluation: Evaluation, interval: tuple[float, float]) -> str:
    """An interval of 95 % in words, with its condition where a doubt is open."""
    if not evaluation.has_interval:
        return "without an interval, since it is not trusted"
    condition = " if nothing is missing" if evaluation.judgement.word == Verdict.OPEN else ""
    return f"95 % interval{condition} {between(interval)}"


def _average_interval(evaluation: Evaluation) -> str:
    """The interval of the average over these images, or how large it can be at most."""
    interval = _interval(evaluation, evaluation.average.interval)
    most = evaluation.largest_average
    if evaluation.has_interval or not math.isfinite(most):
        return interval
    return f"{interval}; at most {most:.2f} (99.9 %)"


def between(interval: tuple[float, float]) -> str:
    """An interval in words, with two decimals."""
    return " to ".join(f"{end:.2f}" for end in interval)


def _other_images(average: ImageAverage, title: str = "") -> str:
    """The interval for all images of the kind, after this title, or why there is none."""
    if average.doubt:
        return f"nothing can be said, since {average.doubt}"
    return title + between(average.sample_interval)


def _crossing(bracket: Bracket) -> str:
    """Why AIS lies below RAISE, where chance alone would not explain it."""
    if bracket.gap >= -2 * bracket.gap_std_error:
        return ""
    gap = rounded_up(bracket.gap)
    return f"; AIS lies {gap} below RAISE: they err to these sides on average only"


def as_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The result for machines, as numbers, text and lists; infinite numbers become None."""
    result: dict[str, Any] = {
        "num_visible": evaluation.num_visible,
        "num_hidden": evaluation.num_hidden,
        "num_images": evaluation.num_images,
        "unit": "nats",
        "trustworthy": evaluation.trustworthy,
        "verdict": _verdict(evaluation),
        "findings": list(evaluation.warnings),
        "advice": evaluation.advice,
        "start": evaluation.start,
        "interrupted": evaluation.interrupted,
        "model": evaluation.model,
        "remarks": list(evaluation.remarks),
        "test_images_in_training": evaluation.known_images,
        "version": __version__,
        "commit": repository_state()[0],
        "seed": evaluation.seed,
        "dtype": str(evaluation.dtype).removeprefix("torch."),
        "settings": _settings(evaluation),
        "quote": quote(evaluation),
    }
    if evaluation.weights is not None:
        result["total_weight"] = evaluation.weights.sum().item()
    baselines = evaluation.baselines
    result["baselines"] = {
        "uniform": baselines.uniform,
        "base_rates": baselines.base_rates,
        "base_rates_of": baselines.source,
    }
    if evaluation.exact is not None:
        result["exact"] = asdict(evaluation.exact)
    result["estimates"] = [_annealing_fields(run, evaluation.has_images) for run in evaluation.runs]
    result["verdict_word"] = evaluation.word
    result["source"] = evaluation.source
    result["settled"] = list(evaluation.judgement.settled)
    result["average"] = _average_fields("test", evaluation.average)
    if evaluation.tempering is not None:
        interval = evaluation.log_z_interval(LEVEL)
        result["ladder"] = _tempering_fields(evaluation.tempering, interval)
    return finite(result)


def _annealing_fields(run: AnnealingRun, has_images: bool) -> dict[str, Any]:
    """What AIS and RAISE gave with one K."""
    bracket = run.bracket
    fields: dict[str, Any] = {
        "num_steps": run.num_steps,
        "log_z": run.ais.log_z,
        "ais_chains": len(run.ais.log_weights),
        "effective_sample_size": run.ais.effective_sample_size,
        "log_z_lower_bound": run.ais.lower_bound,
        "ais": bracket.upper,
        "ais_std_error": bracket.upper_std_error,
        "ais_interval_3_sigma": bracket.upper_interval,
        "raise": bracket.lower.mean,
        "raise_std_error": bracket.lower.test_set_std_error,
        "raise_monte_carlo_std_error": bracket.lower.monte_carlo_std_error,
        "raise_choice_std_error": bracket.lower.choice_std_error,
        "raise_interval_95": bracket.lower.interval(LEVEL),
        "gap": bracket.gap,
        "seconds": run.seconds,
    }
    if not has_images:
        fields |= dict.fromkeys(_IMAGE_FIELDS)
    return fields


def _tempering_fields(
    tempering: TemperingEstimate, interval: tuple[float, float]
) -> dict[str, Any]:
    """What parallel tempering gave, with the interval of ln Z that is reported."""
    return {
        "log_z": tempering.log_z,
        "log_z_std_error": tempering.std_error,
        "log_z_interval_95": interval,
        "round_trips": tempering.round_trips,
        "rungs": len(tempering.betas),
        "betas": tempering.betas.tolist(),
        "log_z_at_betas": tempering.log_z_at_betas.tolist(),
        "rejection_rates": tempering.rejection_rates.tolist(),
        "replicas": tempering.num_replicas,
        "chain_steps": tempering.chain_steps,
        "log_z_lower_bound": tempering.lower_bound,
        "warnings": list(tempering.warnings),
    }


def _average_fields(name: str, average: ImageAverage) -> dict[str, Any]:
    """An average over the images under this name, with its error and its intervals."""
    return {
        name: average.mean,
        "std_error_over_images": average.image_std_error,
        "interval_95": average.interval,
        "interval_95_other_images": average.sample_interval,
        "doubt_about_other_images": average.doubt or None,
    }


def _settings(evaluation: Evaluation) -> dict[str, Any]:
    """The settings with which the estimates were made."""
    effort = evaluation.effort
    if effort is None:
        return {"method": "exact, by enumeration"}
    return {
        "method": "parallel tempering, checked by AIS and RAISE",
        "start": evaluation.start,
        "num_steps": effort.num_steps,
        "ladder_steps": effort.tempering_steps,
        "steps_chosen_by": _steps_chosen_by(effort),
        "minutes": effort.minutes,
        "ais_chains": AIS_CHAINS,
        "raise_vectors": len(evaluation.runs[-1].chosen),
        "raise_chains_per_vector": CHAINS_PER_VECTOR,
        "posterior_draws": evaluation.unnormalized.draws,
        "posterior_steps": evaluation.unnormalized.steps,
        "posterior_missing": evaluation.unnormalized.missing,
        "variational_bound": evaluation.variational_bound,
    }


def _steps_chosen_by(effort: Effort) -> str:
    if effort.minutes is None:
        return "the user"
    return "the time" if effort.tolerance is None else "the tolerance"


def finite(value: Any) -> Any:
    """A value for JSON, which has no infinite numbers: these become None, also within a value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def quote(evaluation: Evaluation) -> str:
    """The number to quote, with all that somebody needs to make it again.

    This is the value, its interval and method, K and chain-steps, start, binarisation, seed,
    version and commit.

    Parameters
    ----------
    evaluation : Evaluation
        From `evaluate`.

    Returns
    -------
    str
        One line. If the verdict is not *trusted*, there is no number to quote, and the line says
        so.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), [0, 2, -2], torch.zeros(2))
    >>> line = quote(evaluate(rbm, [[0, 1, 0], [1, 1, 0]]))
    >>> line.partition("; images")[0]
    'To quote: -0.95 nats (exact, by enumeration; standard error over 2 images 0.00'
    """
    average = evaluation.average
    if not evaluation.trustworthy:
        return f"To quote: no number yet, since the verdict is '{evaluation.word}'."
    if not evaluation.has_images:
        return _quote_log_z(evaluation)
    kind = "training images" if evaluation.known_images == evaluation.num_images else "images"
    images = f"{evaluation.num_images:,} {kind}{_total_weight(evaluation)}"
    over_images = f"standard error over {images} {average.image_std_error:.2f}"
    value = f"{average.mean:.2f} nats"
    binarization = evaluation.inputs.binarization
    if evaluation.exact is not None:
        parts = ["exact, by enumeration", over_images, binarization, code_version()]
    else:
        value += f", 95 % interval {between(average.interval)}"
        start, seed = _start_and_seed(evaluation)
        parts = [*_methods(evaluation), over_images, start, binarization, seed, code_version()]
    return f"To quote: {value} ({'; '.join(parts)})"


def _start_and_seed(evaluation: Evaluation) -> tuple[str, str]:
    """Where chains started, and the seed."""
    seed = "seed unknown" if evaluation.seed is None else f"seed {evaluation.seed}"
    return f"start at the {evaluation.start}", seed


def _quote_log_z(evaluation: Evaluation) -> str:
    """The line to quote where there are no images: ln Z of the model as the file has it."""
    offset = evaluation.inputs.log_z_offset
    value = f"ln Z = {evaluation.known_log_z.value + offset:.2f} nats"
    if evaluation.exact is not None:
        parts = ["exact, by enumeration"]
    else:
        low, high = evaluation.log_z_interval(LEVEL)
        value += f", 95 % interval {between((low + offset, high + offset))}"
        parts = [*_methods(evaluation), *_start_and_seed(evaluation)]
    if offset:
        parts.append("units -1 and 1")
    parts.append(code_version())
    return f"To quote: {value} ({'; '.join(parts)})"


def _methods(evaluation: Evaluation) -> list[str]:
    """The method that gave the number, and the estimates beside it."""
    best = evaluation.runs[-1]
    tempering = evaluation.tempering
    assert tempering is not None  # without it nothing is trusted
    ends = f"AIS {best.bracket.upper:.2f}, RAISE {best.bracket.lower.mean:.2f}"
    images = "images"
    if not evaluation.has_images:
        by_ais = best.ais.log_z + evaluation.inputs.log_z_offset
        ends = f"AIS {by_ais:.2f}, RAISE {by_ais + best.bracket.gap:.2f}"
        images = "draws of the model"
    temperatures = f"{len(tempering.betas)} temperatures"
    chains = (
        f"{AIS_CHAINS} chains of AIS, {CHAINS_PER_VECTOR} of RAISE for each of "
        f"{len(best.chosen)} {images}"
    )
    methods = [
        f"parallel tempering, {temperatures}, {tempering.chain_steps:,} chain-steps",
        f"{ends}, K = {best.num_steps:,}, {chains}",
    ]
    if evaluation.unnormalized.draws:
        methods.append(f"ln p*(v) by importance sampling {_draws(evaluation)}, errs low")
    return methods


def describe_audit(audit: Audit) -> str:
    """An audit in words, for a terminal."""
    has_images = audit.evaluation.has_images
    average = f", an average test log-probability of {audit.claimed_log_prob:.2f}"
    lines = [
        f"Claimed: ln Z = {audit.claimed_log_z:.2f} nats{average if has_images else ''}.",
        "Proven:",
    ]
    for bound in audit.bounds:
        ends = [
            f"{word} {end:.2f}"
            for word, end in (("at least", bound.low), ("at most", bound.high))
            if math.isfinite(end)
        ]
        lines.append(f"  {' and '.join(ends) or 'nothing'}, by {bound.name.rstrip(',')}")
    if audit.evaluation.exact is None:
        lines.append(f"Estimated: {between(audit.interval)}.")
    if has_images:
        lines.append(_baselines(audit.evaluation))
    elif audit.evaluation.exact is None:
        lines.append(_NO_IMAGES)
    lines += ["", f"Verdict: {audit.verdict}. {audit.reason}"]
    lines += [f"  - {warning}" for warning in audit.evaluation.warnings]
    return "\n".join(lines)


def audit_verdict(audit: Audit) -> dict[str, Any]:
    """An audit without its evaluation, for machines; infinite numbers become None."""
    verdict = {
        "unit": "nats",
        "claimed_log_z": audit.claimed_log_z,
        "claimed_log_prob": audit.claimed_log_prob,
        "log_z_offset": audit.log_z_offset,
        "verdict": audit.verdict,
        "reason": audit.reason,
        "bounds": [
            {"by": bound.name.rstrip(","), "low": bound.low, "high": bound.high}
            for bound in audit.bounds
        ],
        "interval": audit.interval,
    }
    return finite(verdict)


def describe_stored(audit: Audit) -> str:
    """The ln Z that an archive stores beside the one computed here, with the audit's verdict."""
    log_z = audit.evaluation.known_log_z.value + audit.log_z_offset
    low, high = audit.interval
    where = "inside" if low <= audit.claimed_log_z <= high else "outside"
    # no negative zero
    difference = round(audit.claimed_log_z - log_z, 2) + 0.0
    if audit.evaluation.exact is not None:
        statement = f"the exact one is {log_z:.2f}. It is off by {difference:+.2f}."
    else:
        # The estimate may be what is off.
        statement = (
            f"the one estimated here {log_z:.2f}, {where} the interval {between(audit.interval)}. "
            f"The difference is {difference:+.2f}."
        )
    return (
        f"ln Z that the file stores: {audit.claimed_log_z:.2f}; {statement} "
        f"Verdict on it: {audit.verdict}. {audit.reason}"
    )


def describe_comparison(comparison: Comparison) -> str:
    """A comparison in words, for a terminal."""
    difference = comparison.difference
    models = {"the first": comparison.first, "the second": comparison.second}
    if comparison.same:
        models = {"both": comparison.first}
    lines = []
    for name, evaluation in models.items():
        title = f"{name.removeprefix('the ')}:"
        average = evaluation.average
        lines.append(
            f"{title:<8} {average.mean:9.2f}   {_average_interval(evaluation)}; "
            f"standard error over images {average.image_std_error:.2f}"
        )
    lines.append(_baselines(comparison.first))
    if not comparison.same:
        lines += [
            f"difference of the average test log-probabilities: {difference.mean:.2f} nats",
            f"  standard error over images, paired: {difference.image_std_error:.2f}",
        ]
        if comparison.first.has_interval and comparison.second.has_interval:
            lines.append(
                f"  95 % interval for these images {between(difference.interval)}; for other "
                f"images of the kind {_other_images(difference)}"
            )
        else:
            lines.append("  without an interval, since a number is not trusted")
    if comparison.wins is not None:
        share = f"{100 * comparison.wins:.0f} %"
        lines.append(f"  the first model gives the higher probability to {share} of the images")
    lines += ["", f"Verdict: {comparison.verdict}."]
    for name, evaluation in models.items():
        lines += [f"  - {name.removeprefix('the ')}: {warning}" for warning in evaluation.warnings]
    for name, evaluation in models.items():
        lines += [f"Remark on {name}: {remark}" for remark in evaluation.remarks]
    return "\n".join(lines)


def comparison_as_dict(comparison: Comparison) -> dict[str, Any]:
    """A comparison for machines; infinite numbers become None."""
    result = {
        "unit": "nats",
        "verdict": comparison.verdict,
        "seed": comparison.seed,
        **_average_fields("difference", comparison.difference),
        "share_of_images_won_by_first": comparison.wins,
        "first": as_dict(comparison.first),
        "second": as_dict(comparison.second),
    }
    return finite(result)


def describe_training(training: TrainingLikelihood) -> str:
    """The likelihood along training in words, for a terminal."""
    # The ln Z that the file itself has for some checkpoints.
    stored_log_z = training.stored_log_z
    best = training.checkpoints[training.best].evaluation
    width = max(10, *(len(each.name) for each in training.checkpoints))
    count = len(training.checkpoints)
    title = f"Average test log-probability of {count} checkpoints"
    header = (
        f"  {'checkpoint':<{width}} {'ln Z':>10} {'average':>9}   {'interval':<20}  "
        f"{'behind the best':<24}  {'verdict':<17}"
    )
    if stored_log_z:
        header += "  the file's own ln Z"
    lines = [
        *training.left_out,
        f"{title}; all numbers in nats, intervals 95 %.",
        "",
        header,
    ]
    for number, each in enumerate(training.checkpoints):
        evaluation = each.evaluation
        log_z = evaluation.known_log_z.value
        average = evaluation.average
        behind = each.behind_best
        interval = between(average.interval) if evaluation.has_interval else "none"
        gap = f"{behind.mean:.2f}"
        if evaluation.has_interval and best.has_interval:
            gap += f" ({between(behind.interval)})"
        if number == training.best:
            gap = "best"
        line = (
            f"  {each.name:<{width}} {log_z:>10.2f} {average.mean:>9.2f}   {interval:<20}  "
            f"{gap:<24}  {evaluation.word:<17}"
        )
        if each.name in stored_log_z:
            line += f"  {stored_log_z[each.name]:.2f}"
        lines.append(line.rstrip())
    lines += ["", _baselines(best)]
    doubt = "" if best.trustworthy else f"do not rely on it yet ({best.word}): "
    lines.append(f"Verdict: {doubt}{training.verdict}.")
    lines += [f"  - {warning}" for warning in best.warnings]
    if best.advice:
        lines.append(f"  {best.advice}")
    if training.as_good:
        lines.append(f"These images do not tell from the best: {some_names(training.as_good)}.")
    if training.unknown:
        lines.append(
            f"Not trusted, and perhaps better than the best: {some_names(training.unknown)}."
        )
    lines += [f"Remark on the best: {remark}" for remark in best.remarks]
    lines.append(
        "The best was chosen by these images: report the average of other images, such as "
        "`paperlib evaluate` gives it."
    )
    return "\n".join(lines)


def training_as_dict(training: TrainingLikelihood) -> dict[str, Any]:
    """The likelihood along training for machines, with a row for each checkpoint.

    Infinite numbers become None.
    """
    rows = []
    for number, each in enumerate(training.checkpoints):
        evaluation = each.evaluation
        behind = each.behind_best
        average = evaluation.average
        effort = evaluation.effort
        low, high = evaluation.log_z_interval(LEVEL)
        rows.append(
            {
                "checkpoint": each.name,
                "verdict_word": evaluation.word,
                "dtype": str(evaluation.dtype).removeprefix("torch."),
                "log_z": evaluation.known_log_z.value,
                "log_z_low": low,
                "log_z_high": high,
                "average": average.mean,
                "low": average.interval[0],
                "high": average.interval[1],
                "other_images_low": average.sample_interval[0],
                "other_images_high": average.sample_interval[1],
                "behind_best": behind.mean,
                "behind_best_low": behind.interval[0],
                "behind_best_high": behind.interval[1],
                "behind_best_other_images_low": behind.sample_interval[0],
                "behind_best_other_images_high": behind.sample_interval[1],
                "told_from_best": "best" if number == training.best else each.told_from_best,
                "num_steps": effort and effort.num_steps,
                "ladder_steps": effort and effort.tempering_steps,
                "claimed_log_z": training.stored_log_z.get(each.name),
            }
        )
    result = {
        "unit": "nats",
        "trustworthy": training.trustworthy,
        "interrupted": training.interrupted,
        "verdict": training.verdict,
        "verdict_word": training.checkpoints[training.best].evaluation.word,
        "best": training.checkpoints[training.best].name,
        "not_told_from_best": list(training.as_good),
        "not_trusted_and_perhaps_better": list(training.unknown),
        "findings": [
            f"{each.name}: {text}"
            for each in training.checkpoints
            for text in each.evaluation.warnings
        ],
        "checkpoints": rows,
        "left_out": list(training.left_out),
        "seed": training.seed,
    }
    return finite(result)
