"""What chapter 01 claims of what it has just computed: of a tiny RBM by enumeration, and of trained ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, largest_gap
from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.numerics import all_states, softplus


def summed_out(rbm: RBM) -> Claims:
    """Of a small RBM, whose energy is written out term by term for all of its states."""
    all_v, all_h = all_states(rbm.num_visible), all_states(rbm.num_hidden)
    energy = rbm.energy(all_v[:, None], all_h[None])
    by_hand = torch.zeros_like(energy)
    for k, v in enumerate(all_v):
        for n, h in enumerate(all_h):
            for i in range(rbm.num_visible):
                by_hand[k, n] -= rbm.visible_bias[i] * v[i]
                for j in range(rbm.num_hidden):
                    by_hand[k, n] -= rbm.weights[i, j] * v[i] * h[j]
            for j in range(rbm.num_hidden):
                by_hand[k, n] -= rbm.hidden_bias[j] * h[j]
    yield "the energy in code is that of the definition", largest_gap(energy, by_hand) < 1e-12
    same = largest_gap(rbm.log_unnormalized(all_v), torch.logsumexp(-by_hand, 1)) < 1e-12
    yield "softplus form of ln p*(v) = sum over all hidden states", same
    same = largest_gap(rbm.log_unnormalized_hidden(all_h), torch.logsumexp(-by_hand, 0)) < 1e-12
    yield "softplus form of ln p*(h) = sum over all images", same


def conditionals(p_joint: Tensor, factorised_h: Tensor, factorised_v: Tensor) -> Claims:
    """Of the joint distribution [2^D, 2^M], and p(h | v) [2^D, 2^M] and p(v | h) [2^M, 2^D] by the logistic formulas."""
    p_v, p_h = p_joint.sum(1), p_joint.sum(0)
    yield "p(v, h) sums to one", abs(p_joint.sum() - 1) < 1e-12
    same = largest_gap(p_joint / p_v[:, None], factorised_h) < 1e-12
    yield "p(h | v) is the product of logistic probabilities", same
    yield "p(v | h) likewise", largest_gap(p_joint.T / p_h[:, None], factorised_v) < 1e-12
    yield "without h, the pixels are far from independent", _distance_from_independent(p_v) > 0.1
    yield "without v, so are the hidden units", _distance_from_independent(p_h) > 0.1


def two_readings(rbm: RBM, p_joint: Tensor, factorised_v: Tensor) -> Claims:
    """Of a tiny RBM, its joint distribution [2^D, 2^M], and p(v | h) [2^M, 2^D]."""
    all_v, p_v, p_h = all_states(rbm.num_visible), p_joint.sum(1), p_joint.sum(0)
    factors = 1 + torch.exp(all_v @ rbm.weights + rbm.hidden_bias)
    product = torch.exp(all_v @ rbm.visible_bias) * factors.prod(1)
    same = largest_gap(product / product.sum(), p_v) < 1e-12
    yield "product of experts, divided by Z, equals p(v)", same
    same = largest_gap(p_h @ factorised_v, p_v) < 1e-12
    yield "mixture over the hidden states equals p(v)", same


def detailed_balance(transition: Tensor, p_v: Tensor) -> Claims:
    """Of the transition matrix [S, S] of the images, and their probabilities [S]."""
    traffic = p_v[:, None] * transition
    yield "each row of T sums to one", largest_gap(transition.sum(1), 1) < 1e-12
    yield "T leaves p(v) invariant", largest_gap(p_v @ transition, p_v) < 1e-12
    yield "detailed balance holds for all pairs of images", largest_gap(traffic, traffic.T) < 1e-12
    yield "T itself is not symmetric", largest_gap(transition, transition.T) > 0.1


def pace(symmetric: Tensor, eigenvalues: Tensor) -> Claims:
    """Of the rescaled transition matrix [S, S], and its eigenvalues [S] from the smallest to the largest."""
    same = largest_gap(symmetric, symmetric.T) < 1e-12
    yield "rescaled by the square root of p(v), T is symmetric", same
    yield "no eigenvalue of T is negative", eigenvalues[0] > -1e-12
    yield "the second largest is well below one", eigenvalues[-2] < 0.9


def convergence(rows: Rows, p_v: Tensor, frequency: Tensor, rate: float, num_chains: int) -> Claims:
    """Of distances by the number of steps, and of the last frequencies [S] of the images."""
    late = [row["exact"] for row in rows[15:]]
    rates = [after / before for before, after in pairwise(late)]
    close = max(abs(found - rate) for found in rates) < 0.01
    yield "late steps shrink the exact distance by the eigenvalue", close
    standard_error = torch.sqrt(p_v * (1 - p_v) / num_chains)
    near = ((frequency - p_v).abs() / standard_error).max() < 4
    yield "all frequencies within 4 standard errors of p(v)", near


def scores(values: Mapping[str, Tensor], memorised: float) -> Claims:
    """Of ln p*(v) for the images of each kind, and of how much better the fixed binarisation fares than a fresh one."""
    digits, noise = values["test digits"], values["uniform noise"]
    yield "every test digit beats every image of uniform noise", digits.min() > noise.max()
    yield "every test digit beats its own negative", (digits > values["inverted test digits"]).all()
    among = digits.min() < values["a blank page"].item() < digits.max()
    yield "the blank page scores among the test digits", among
    yield "the fixed training binarisation beats a fresh one", memorised > 0


def across_models(
    rows: Rows, without_weights: RBM, gap: Tensor, unnormalised_gap: Tensor
) -> Claims:
    """Of trained models, and after them base rates and the uniform distribution; gaps [N] of the first two on the images."""
    *trained, base_rates, uniform = rows
    biases = without_weights.visible_bias.double()
    closed_form = without_weights.num_hidden * math.log(2) + softplus(biases).sum().item()
    same = math.isclose(closed_form, base_rates["log_z"], rel_tol=1e-6)
    yield "without weights, closed form and enumeration agree", same
    yield "by ln p*, the first model loses to the second", unnormalised_gap.mean() < 0
    yield "by ln p, the first model wins", gap.mean() > 0
    worst = min(row["log_probability"] for row in trained)
    ordered = worst > base_rates["log_probability"] > uniform["log_probability"]
    yield "trained models beat base rates, base rates beat uniform", ordered


def disguises(
    scores: Mapping[str, Tensor],
    log_zs: Mapping[str, float],
    hidden_bias: Tensor,
    between_models: float,
) -> Claims:
    """Of ln p*(v) [N] and ln Z of a model: as trained, with the smallest and largest ln Z, and with a dead unit of bias 100."""
    log_p = torch.stack([scores[name] - log_zs[name] for name in scores])
    same = largest_gap(log_p, log_p[0]) < 1e-9
    yield "ln p(v) of every test image is the same under all four", same
    original, smallest, largest, dead = log_zs.values()
    lowered = abs(original - hidden_bias.clamp(min=0).sum().item() - smallest) < 1e-9
    raised = abs(original - hidden_bias.clamp(max=0).sum().item() - largest) < 1e-9
    yield "flipping moves ln Z by minus the flipped biases", lowered and raised
    yield "a dead unit moves it by softplus of its bias", abs(dead - original - 100) < 1e-9
    wider = largest - smallest > abs(between_models)
    yield "disguises differ more in ln Z than the two models", wider


def shortcuts(log_z: float, from_training_set: float, from_random_images: float) -> Claims:
    """Of ln Z, exact and by two shortcuts."""
    yield "the training images are short by more than 5 nats", log_z - from_training_set > 5
    yield "random images are short by more than 1 nat", log_z - from_random_images > 1


def gradient(
    rbm: RBM, derived: Sequence[Tensor], automatic: Sequence[Tensor], model_term: Tensor
) -> Claims:
    """Of the gradient for the weights and both biases, by the formula and not; and of the slope of ln Z."""
    names = ("weights", "visible_bias", "hidden_bias")
    for name, ours, theirs in zip(names, derived, automatic, strict=True):
        same = largest_gap(ours, theirs) < 1e-12
        yield f"{name}: formula and automatic differentiation agree", same

    def nudged(i: int, j: int, step: float) -> float:
        weights = rbm.weights.clone()
        weights[i, j] += step
        return exact_log_z(RBM(weights, rbm.visible_bias, rbm.hidden_bias))

    slopes = torch.tensor(
        [
            [(nudged(i, j, 1e-4) - nudged(i, j, -1e-4)) / 2e-4 for j in range(rbm.num_hidden)]
            for i in range(rbm.num_visible)
        ],
        dtype=torch.float64,
    )
    yield "the model term is the slope of ln Z", largest_gap(slopes, model_term) < 1e-7


def summary(models: Rows, disguises: Rows, terms: Rows, on_digits: bool) -> Claims:
    """Of the numbers in the summary; those of the models are said for the small digits."""
    if on_digits:
        said = [34.4, 37.1, -23.3, -23.5, 36.0, 158]
        found = [row["log_unnormalized"] for row in models[:2]]
        found += [row["log_probability"] for row in models[:2]]
        found += [end(row["log_z"] for row in disguises) for end in (min, max)]
        as_said = all(f"{a:.3g}" == f"{b:.3g}" for a, b in zip(found, said, strict=True))
        yield "the numbers of the summary are those of the records", as_said
    yield "2^500 is about 10^151", round(terms[-1]["reduced"]) == 151


def _distance_from_independent(probs: Tensor) -> float:
    """How far a distribution [2^n] of n binary units is from independent units with the same means, in total variation."""
    states = all_states(len(probs).bit_length() - 1)
    means = probs @ states
    independent = torch.where(states == 1, means, 1 - means).prod(1)
    return ((probs - independent).abs().sum() / 2).item()
