"""Parts of the small experiments of chapter 11: bounds in three forms, fits by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.tables import significant
from paperlib.models import BernoulliMixture
from paperlib.numerics import all_states, seeded_generator
from paperlib.variational import evidence_lower_bound, kl_divergence, mean_field
from paperlib.variational.sparse_coding import BinarySparseCoding


def three_forms(log_joint: Tensor, log_prior: Tensor, log_q: Tensor) -> dict[str, Tensor]:
    """The evidence lower bound in three forms, and its gap, as means over N visible vectors.

    The arguments are ln p(v, h), ln p(h) and ln q(h) of S hidden states, all [N, S].
    """
    gap = kl_divergence(log_q, log_joint.log_softmax(-1))
    explained = (log_q.exp() * (log_joint - log_prior)).sum(-1)
    return {
        "from_gap": (log_joint.logsumexp(-1) - gap).mean(),
        "from_joint": evidence_lower_bound(log_joint, log_q).mean(),
        "from_prior": (explained - kl_divergence(log_q, log_prior)).mean(),
        "gap": gap.mean(),
    }


def bound_and_likelihood(
    mixture: BernoulliMixture, images: Tensor, q: Tensor, smoothing: float
) -> dict[str, float]:
    """Bound and log-likelihood per image of `images` [N, D] with responsibilities `q` [N, C].

    Each includes ln p(theta), up to a constant. The prior is half an imagined pixel on and half
    off, and one image per component.
    """
    log_sigmoid = torch.nn.functional.logsigmoid
    pixels = log_sigmoid(mixture.logits) + log_sigmoid(-mixture.logits)
    prior = smoothing * (pixels.sum() / 2 + mixture.log_mixing_weights.sum()).item() / len(images)
    bound = evidence_lower_bound(mixture.log_joint(images), q.log()).mean().item()
    return {"bound": bound + prior, "likelihood": mixture.log_prob(images).mean().item() + prior}


def log_normal(line: Tensor, mean: Tensor | float, log_width: Tensor) -> Tensor:
    """The logarithm of a Gaussian's density at each point of a line."""
    standard = (line - mean) / log_width.exp()
    return -0.5 * standard**2 - log_width - 0.5 * math.log(2 * math.pi)


def two_modes(line: Tensor, separation: float) -> Tensor:
    """ln of 0.6 N(-separation / 2, 0.7^2) + 0.4 N(separation / 2, 0.7^2) at points of a line."""
    log_width = torch.tensor(0.7).double().log()
    low = log_normal(line, -separation / 2, log_width) + math.log(0.6)
    high = log_normal(line, separation / 2, log_width) + math.log(0.4)
    return torch.logaddexp(low, high)


def _closest_gaussian(
    line: Tensor, cost: Callable[[Tensor], Tensor], start: float
) -> dict[str, float]:
    """The Gaussian whose log-density has the least cost, by L-BFGS from a mean and the width 1."""
    parameters = torch.tensor([start, 0.0], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS(
        [parameters], max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
    )

    def objective() -> Tensor:
        search.zero_grad()
        value = cost(log_normal(line, *parameters))
        value.backward()
        return value

    search.step(objective)
    mean, log_width = parameters.tolist()
    return {"mean": mean, "width": math.exp(log_width), "value": objective().item()}


def fitted_gaussians(
    line: Tensor, separation: float, starts: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Rows of `inference-kl-direction`: the Gaussians closest to two modes on a line.

    Closest in both directions of the divergence, and from all starts.
    """
    log_p = two_modes(line, separation)
    spacing = (line[1] - line[0]).item()

    def divergence(log_a: Tensor, log_b: Tensor) -> Tensor:
        return spacing * (log_a.exp() * (log_a - log_b)).sum()

    costs: dict[str, Callable[[Tensor], Tensor]] = {
        "$D_{\\mathrm{KL}}(q \\Vert p)$": lambda log_q: divergence(log_q, log_p),
        "$D_{\\mathrm{KL}}(p \\Vert q)$": lambda log_q: divergence(log_p, log_q),
    }
    for name, cost in costs.items():
        for start in starts:
            row = {"separation": separation, "divergence": name, "start": start}
            yield row | _closest_gaussian(line, cost, start)


def best_of_starts(
    model: BinarySparseCoding, v: Tensor, starts: int, generator: torch.Generator
) -> Tensor:
    """The best bound [N] that mean field finds from random means."""
    bounds = []
    for _ in range(starts):
        means = torch.rand(len(v), model.num_hidden, dtype=torch.float64, generator=generator)
        bounds.append(mean_field(model, v, means, tolerance=1e-6).lower_bound)
    return torch.stack(bounds).amax(0)


def twin_row(coupling: float, pair: BinarySparseCoding, v: Tensor) -> dict[str, float]:
    """Exact posterior and mean field of two units that are twins, for a visible vector [1, 1].

    Mean field starts where one of them is ahead.
    """
    none, second, first, both = pair.log_joint_table(v)[0].softmax(0).tolist()
    field = mean_field(pair, v, torch.tensor([[0.6, 0.4]]).double(), max_sweeps=2_000)
    return {
        "coupling": coupling,
        "marginal": first + both,
        "given_on": both / (first + both),
        "given_off": second / (none + second),
        "field_1": field.means[0, 0].item(),
        "field_2": field.means[0, 1].item(),
        "gap": (pair.log_prob(v) - field.lower_bound).item(),
    }


def random_counters(units: int, noise: float, seed: int) -> Iterator[BinarySparseCoding]:
    """Ten models of one visible variable with random columns from 0 to 3.

    Their noise is 1 and `noise` in turn.
    """
    for number in range(10):
        generator = seeded_generator(seed + number)
        weights = 3 * torch.rand(1, units, dtype=torch.float64, generator=generator)
        precision = noise**-2 if number % 2 else 1.0
        yield BinarySparseCoding(weights, torch.zeros(units), [precision])


def learned_row(
    noise: float, name: str, model: BinarySparseCoding, numbers: Tensor
) -> dict[str, Any]:
    """A row of `inference-poor-q`: a learned model on the numbers [N, 1].

    Its bound is the best that mean field finds from all corners.
    """
    log_prob = model.log_prob(numbers).mean().item()
    fields = [
        mean_field(model, numbers, corner.expand(len(numbers), -1), tolerance=1e-6)
        for corner in 0.05 + 0.9 * all_states(model.num_hidden)
    ]
    bound = torch.stack([field.lower_bound for field in fields]).amax(0).mean().item()
    return {
        "noise": noise,
        "model": name,
        "log_prob": log_prob,
        "bound": bound,
        "gap": log_prob - bound,
        "weights": " ".join(map(significant, model.weights[0].sort().values.tolist())),
        "learned_noise": model.precision.item() ** -0.5,
    }
