"""Estimators of ln Z, right and with mistakes of public programs."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import softplus

from boltzmann_companion.recipes import load_model
from boltzmann_likelihood.evaluation import audit
from paperlib.datasets import binary_images
from paperlib.estimators import (
    PartitionEstimate,
    bennett,
    exact_hidden_samples,
    exact_log_z,
)
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Zeros and ones with these probabilities of a one."""
    uniform = torch.rand(
        probabilities.shape, dtype=torch.float64, generator=generator
    )
    return (uniform < probabilities).double()


def gibbs_step(
    rbm: RBM, v: Tensor, beta: Tensor, generator: torch.Generator
) -> Tensor:
    """A step that leaves the joint distribution e^(-beta E) invariant."""
    inputs = v @ rbm.weights + rbm.hidden_bias
    h = draw(torch.sigmoid(beta * inputs), generator)
    inputs = h @ rbm.weights.T + rbm.visible_bias
    return draw(torch.sigmoid(beta * inputs), generator)


def log_f(rbm: RBM, v: Tensor, beta: Tensor, bias_scale: Tensor) -> Tensor:
    """ln of the sum of e^(-beta E) over h; `bias_scale` has to be beta."""
    inputs = beta[..., None] * (v @ rbm.weights)
    inputs = inputs + bias_scale[..., None] * rbm.hidden_bias
    return beta * (v @ rbm.visible_bias) + softplus(inputs).sum(-1)


def ais(
    rbm: RBM, mistake: str = "", num_chains: int = 500
) -> PartitionEstimate:
    """Annealed importance sampling from uniform units, in 1,000 steps."""
    generator = seeded_generator(0)
    v = draw(0.5 * torch.ones(num_chains, rbm.num_visible), generator)
    log_weights = torch.full((num_chains,), uniform_log_z(rbm)).double()
    sign = -1 if mistake == "sign reversed" else 1
    for low, high in pairwise(torch.linspace(0, 1, 1001).double()):
        scales = low, high
        if mistake == "hidden biases not scaled":
            scales = torch.ones(2).double()
        after = log_f(rbm, v, high, scales[1])
        log_weights += sign * (after - log_f(rbm, v, low, scales[0]))
        v = gibbs_step(rbm, v, high, generator)
    return PartitionEstimate(log_weights, v)


def tempering(rbm: RBM, mistake: str = "", num_replicas: int = 100) -> float:
    """ln Z by Bennett's ratios between 17 temperatures, from 400 steps."""
    generator = seeded_generator(0)
    betas = torch.linspace(0, 1, 17).double()
    start = torch.ones(num_replicas, len(betas), rbm.num_visible)
    v = draw(0.5 * start, generator)
    ratios = []

    def log_ratio(v: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return log_f(rbm, v, high, high) - log_f(rbm, v, low, low)

    for step in range(800):
        v = gibbs_step(rbm, v, betas[:, None], generator)
        for k, (low, high) in enumerate(pairwise(betas)):
            x = v[:, k]
            y = v[:, k + 1]
            log_accept = log_ratio(x, low, high) - log_ratio(y, low, high)
            if mistake == "swaps by the free energy at 1":
                # these are minus the free energies, and ln f at beta is not
                # beta times ln f at 1
                one = betas[-1]
                difference = log_f(rbm, x, one, one) - log_f(rbm, y, one, one)
                log_accept = (high - low) * difference
            accepted = draw(log_accept.exp().clamp(max=1), generator)[:, None]
            # both before v changes, of which x and y are views
            new_x = x.lerp(y, accepted)
            new_y = y.lerp(x, accepted)
            v[:, k] = new_x
            v[:, k + 1] = new_y
        if step >= 400:
            up = log_ratio(v[:, :-1], betas[:-1], betas[1:])
            ratios.append([up, -log_ratio(v[:, 1:], betas[:-1], betas[1:])])
    sides = [torch.cat(side).T for side in zip(*ratios, strict=True)]
    links = [bennett(*link) for link in zip(*sides, strict=True)]
    return uniform_log_z(rbm) + sum(link.log_ratio for link in links)


def uniform_log_z(rbm: RBM) -> float:
    """ln Z at beta = 0, where all states are equally probable."""
    return (rbm.num_visible + rbm.num_hidden) * math.log(2)


def two_modes(width: int = 16) -> RBM:
    """Nearly all pixels on or nearly all off, each half of the time."""
    weights = torch.full((width, width), 0.5, dtype=torch.float64)
    bias = torch.full((width,), math.log(2) - width / 2, dtype=torch.float64)
    return RBM(weights, bias, torch.zeros(width, dtype=torch.float64))


def main() -> None:
    """Print what each would print, and what audit says of it."""
    digits = load_model("digits-pcd-16", torch.float64)
    assert isinstance(digits, RBM)
    images = binary_images("digits").test
    print(f"digits, exact: ln Z = {exact_log_z(digits):.2f}")
    for mistake in ("", "hidden biases not scaled", "sign reversed"):
        estimate = ais(digits, mistake)
        print(
            f"- AIS {mistake or 'as it should be'}: "
            f"ln Z = {estimate.log_z:.2f}, "
            f"{estimate.effective_sample_size:.0f} of 500 chains effective\n"
            f"  {audit_line(digits, images, estimate.log_z)}"
        )
    modes = two_modes()
    v = exact_hidden_samples(modes, 100, seeded_generator(0))[0]
    print(f"two modes, exact: ln Z = {exact_log_z(modes):.2f}")
    for mistake in ("", "swaps by the free energy at 1"):
        log_z = tempering(modes, mistake)
        print(
            f"- tempering {mistake or 'as it should be'}: ln Z = {log_z:.2f}\n"
            f"  {audit_line(modes, v, log_z)}"
        )


def audit_line(rbm: RBM, images: Tensor, log_z: float) -> str:
    """What `paperlib audit` would print of this claim."""
    result = audit(rbm, images, claimed_log_z=log_z)
    return f"audit: {result.verdict}. {result.reason}"


if __name__ == "__main__":
    main()
