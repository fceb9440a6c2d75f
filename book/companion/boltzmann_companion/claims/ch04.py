"""What chapter 04 claims of what it has just computed: importance sampling, the moments and errors of AIS, and missed modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows, inside, largest_gap
from boltzmann_companion.rows import where
from boltzmann_companion.studies.against_truth import separate
from paperlib.annealing import BaseRatePath
from paperlib.annealing.rbm_paths import VisibleState
from paperlib.estimators import PartitionEstimate
from paperlib.models import RBM
from paperlib.numerics import all_states, softplus


def formula_met(rows: Rows) -> Iterator[str]:
    """A line for each number of independent units: whether the draws show the variance that the formula says."""
    for row in rows:
        off_by = row["measured"] - row["predicted"]
        near = "near" if off_by > -1 else "far below"
        found = "equal to within 25 %" if abs(off_by) < 0.1 else near
        yield (f"{row['units']:3d} units, measured relative variance against the formula: {found}")


def formula(rows: Rows) -> Claims:
    """Of independent units, from few to many."""
    misses = [row["measured"] - row["predicted"] for row in rows]
    yield "the formula holds up to 10 units", all(abs(miss) < 0.1 for miss in misses[:3])
    yield "with the most units the draws show hardly any of it", misses[-1] < -5


def patches(rows: Rows, num_samples: int) -> Claims:
    """Of RBMs on growing patches, from the uniform start."""
    first, *_, last = where(rows, model="RBM, uniform start")
    held = inside(first["interval_3_sigma"], first["exact_log_z"])
    yield "smallest patch: truth inside the 3-sigma interval", held
    wrong = abs(last["log_z"] - last["exact_log_z"]) > 1
    large_off = wrong and last["effective_sample_size"] < num_samples / 1_000
    yield "whole image: off by over a nat, under 0.1 % of the draws effective", large_off
    many_more = first["effective_sample_size"] > 100 * last["effective_sample_size"]
    yield "effective draws fall by more than a factor of 100", many_more


def path_of_rbm(
    rbm: RBM, start_bias: Tensor, log_f: Callable[[float, Tensor], Tensor], beta: float = 0.4
) -> Claims:
    """Of the product form of ln f_beta of all visible states, for a small RBM and biases [D] of a start."""
    v, h = all_states(rbm.num_visible), all_states(rbm.num_hidden)
    energies = rbm.energy(v[:, None], h[None])
    start_term = (1 - beta) * (v @ start_bias)
    form = log_f(beta, start_bias)
    summed = start_term + torch.logsumexp(-beta * energies, 1)
    yield "product form equals the sum over h of exp(-beta E)", largest_gap(form, summed) < 1e-12
    as_printed = start_term + torch.logsumexp(+beta * energies, 1)
    yield "the printed sign, exp(+beta E), gives something else", largest_gap(form, as_printed) > 1
    path = BaseRatePath(rbm, start_bias)
    assert path.log_z_start is not None
    library = path.log_ratio(path.state_at(v), 0.0, beta)
    at_start, at_end = log_f(0.0, start_bias), log_f(1.0, start_bias)
    yield "paperlib's log_ratio agrees", largest_gap(library, form - at_start) < 1e-12
    yield "so does its ln Z_0", abs(path.log_z_start - at_start.logsumexp(0).item()) < 1e-12
    yield "at beta = 1 the path ends at p*", largest_gap(at_end, rbm.log_unnormalized(v)) < 1e-12
    geometric = start_term + beta * rbm.log_unnormalized(v)
    off = largest_gap(form.log_softmax(0), geometric.log_softmax(0)) > 0.1
    yield "in between it is not the geometric path over v", off


def same_runs(log_weights: Tensor, final_states: Tensor, estimate: PartitionEstimate) -> Claims:
    """Of AIS by hand and by the library, from the same random numbers."""
    close = largest_gap(log_weights, estimate.log_weights) < 1e-9
    same = close and torch.equal(final_states, estimate.final_states)
    yield "the loop above and paperlib's ais give the same weights and final states", same


def one_step(path: BaseRatePath, start: VisibleState, jump: PartitionEstimate) -> Claims:
    """Of importance sampling, and of one step of AIS from the same states."""
    assert path.log_z_start is not None
    weights = path.log_z_start + path.log_ratio(start, 0.0, 1.0)
    same = largest_gap(jump.log_weights, weights) < 1e-9
    yield "simple importance sampling is AIS with K = 1", same


def exact(means: Mapping[int, float], relative_variance: Mapping[int, float]) -> Iterator[str]:
    """A line for each number of steps: the exact E[w] / Z and relative variance."""
    for num_steps, variance in relative_variance.items():
        yield (
            f"K = {num_steps:3d}: E[w] / Z - 1 = {means[num_steps] - 1: .1e},  "
            f"Var(w) / Z^2 = {variance:8.4f}"
        )


def sampled_moments(
    means: Mapping[int, float], relative_variance: Mapping[int, float], ratios: Mapping[int, Tensor]
) -> Claims:
    """Exact E[w] / Z and relative variance by the number of steps, beside drawn weights w / Z."""
    for num_steps, ratio in ratios.items():
        variance = relative_variance[num_steps]
        yield f"K = {num_steps}: the exact E[w] is Z to 1e-12", abs(means[num_steps] - 1) < 1e-12
        fits = abs(ratio.mean().item() - 1) < 4 * math.sqrt(variance / len(ratio))
        yield f"K = {num_steps}: sampled mean within 4 standard errors", fits
        fits = abs(ratio.var().item() / variance - 1) < 0.15
        yield f"K = {num_steps}: sampled variance within 15 %", fits
    falls = all(before > after for before, after in pairwise(relative_variance.values()))
    yield "the exact variance falls with every increase of K", falls


def biased(errors: Mapping[int, Tensor], exact_bias: float) -> Claims:
    """Of many errors of ln Z from 1 and from 20 runs; the bias from one run is known."""
    single, twenty = errors[1], errors[20]
    agrees = abs(single.mean().item() - exact_bias) < 4 * _standard_error(single)
    yield "the simulated bias agrees within 4 standard errors", agrees
    too_low = twenty.mean().item() < -4 * _standard_error(twenty)
    yield "with M = 20 runs ln Z is significantly underestimated", too_low
    total = torch.exp(-twenty)  # sum over all v of p*(v) / Z-hat
    above_one = total.mean().item() - 1 > 4 * _standard_error(total)
    yield "estimated probabilities of all images add up to more than one on average", above_one
    below_markov = all(
        (error > b).double().mean().item() < math.exp(-b)
        for error, b in product(errors.values(), (0.1, 0.5, 1.0, 2.0))
    )
    yield "exceedances stay below Markov's bound", below_markov


def coverage(rows: Rows) -> Claims:
    """Of repeated estimates, from the fewest steps and runs to the most."""
    yield "1 step, 20 runs: the 3-sigma interval holds in less than 90 %", rows[0]["covered"] < 90
    yield "50 steps, 100 runs: it holds in at least 97 %", rows[-1]["covered"] >= 97
    low, high = (sum(row[key] for row in rows) for key in ("too_low", "too_high"))
    yield "of all misses, more than five in six lie below the truth", low > 5 * high


def on_the_way(
    relative: Mapping[str, Tensor], speed: Mapping[str, Tensor], on_digits: bool
) -> Claims:
    """Of log-weights [L, M] of either start at L values of beta, less the exact ln Z there, and of the spread of all steps."""
    for start, along in relative.items():
        intervals = [estimate.interval(4) for estimate in separate(along[1:])]
        inside = all(low <= 0 <= high for low, high in intervals)
        claim = f"{start} start: every intermediate ln Z inside its 4-sigma interval"
        # on MNIST the uniform start is far too poor for this
        yield Check(claim, inside, required=on_digits or start != "uniform")
    cheaper = speed["base-rate"].square().mean() < speed["uniform"].square().mean()
    yield "the base-rate path is the shorter one", cheaper


def schedules(rows: Rows) -> Claims:
    """Of starts and schedules at the same work, on the small digits."""
    starts, kinds, positions = ("uniform", "base-rate"), ("equal steps", "2008"), range(4)

    def cell(start: str, schedule: str, position: int) -> Mapping[str, Any]:
        return where(rows, start=start, schedule=schedule)[position]

    better = all(
        cell("base-rate", kind, i)["error"] < cell("uniform", kind, i)["error"]
        for kind, i in product(kinds, positions)
    )
    yield "base rates beat the uniform start in every row", better
    better = all(
        cell(start, "equal steps", i)["error"] < cell(start, "2008", i)["error"]
        for start, i in product(starts, positions)
    )
    yield "equal steps beat the 2008 schedule on this model in every row", better
    hasty = cell("uniform", "2008", 0)
    overconfident = hasty["error"] > 3 * hasty["sigma"]
    yield "hastiest setting: error more than 3 times the reported sigma", overconfident
    scaled = [cell("base-rate", "equal steps", i)["scaled_variance"] for i in positions]
    level = max(scaled) - min(scaled) < math.log10(2)
    yield "equal steps from base rates: K Var(w) within a factor of 2 for all K", level


def noise(states: Mapping[str, Mapping[str, Tensor]], rates: Tensor) -> Claims:
    """Of states [M, D] after 3 and after 5 epochs, given the base rates [D] of the training images."""
    early, late = (_noise_share(kinds["exact draws"], rates) for kinds in states.values())
    yield "3 epochs: more than 95 % of the exact draws are noise", early > 0.95
    yield "5 epochs: less than 1 % of them are", late < 0.01
    *_, kinds = states.values()
    stuck = _noise_share(kinds["AIS, uniform start"], rates)
    yield "5 epochs: all runs from the uniform start end in noise", stuck == 1
    sound = _noise_share(kinds["AIS, base-rate start"], rates)
    yield "5 epochs: no run from the base-rate start does", sound == 0


def missed(rows: Rows, on_digits: bool) -> Claims:
    """Of each model from the uniform and from the base-rate start, two rows after each other."""
    all_sound = repaired = True
    for uniform, base_rate in zip(rows[::2], rows[1::2], strict=True):
        name, truth = uniform["model"], uniform["exact_log_z"]
        covers = inside(uniform["interval_3_sigma"], truth)
        base_rate_covers = inside(base_rate["interval_3_sigma"], truth)
        proven, met = uniform["proven"] == "yes", name == "3 epochs"
        claim = f"{name}, uniform start: truth in the 3-sigma interval"
        yield Check(claim, covers, expected=met, required=on_digits)
        claim = f"{name}, uniform start: proven too low"
        yield Check(claim, proven, expected=not met, required=on_digits)
        claim = f"{name}, base-rate start: truth in the 3-sigma interval"
        yield Check(claim, base_rate_covers, required=False)
        below = truth + 1e-6 * abs(truth)
        sound = all(row["lower_bound"] <= below for row in (uniform, base_rate))
        all_sound &= sound and (not proven or not covers)
        repaired &= base_rate_covers or abs(base_rate["log_z"] - truth) < 2
    yield "no bound lies above the truth, and none refutes an interval that holds it", all_sound
    yield Check("from base rates, within 2 nats or the interval", repaired, required=on_digits)


def wrong_but_effective(rows: Rows) -> str:
    """A line that names the models of `_silent`."""
    return f"wrong although more than 80 of 100 runs look effective: {', '.join(_silent(rows))}"


def silent(rows: Rows, on_digits: bool) -> Claims:
    """Which models are wrong without a sign of it in the weights."""
    named = _silent(rows) == ["narrow mode", "5 epochs"]
    yield Check("these are the narrow mode and 5 epochs", named, required=on_digits)


def _silent(rows: Rows) -> list[str]:
    """The models whose estimate is proven too low, although more than 80 of 100 runs look effective."""
    wrong = where(rows, proven="yes")
    return [row["model"] for row in wrong if row["effective_sample_size"] > 80]


def _standard_error(values: Tensor) -> float:
    """Of a mean of independent values [N]."""
    return values.std().item() / math.sqrt(len(values))


def _noise_share(states: Tensor, rates: Tensor) -> float:
    """The share of states [M, D] that fair coins explain better than base rates [D]."""
    log_base_rate = states.double() @ rates - softplus(rates).sum()
    return (log_base_rate < -states.shape[1] * math.log(2)).double().mean().item()
