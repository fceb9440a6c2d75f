"""Plain torch loops: the algorithms as one would write them down with care, and nothing else.

AIS and RAISE compute v W once for a weight and the next transition. Neither knows anything of
integer products, compiled loops or blocks of chains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import softplus

from benchmarks.work import CD_STEPS, LEARNING_RATE, Answer, Work
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    uniform = torch.rand(probabilities.shape, device=probabilities.device, generator=generator)
    return (uniform < probabilities).float()


def log_ratio(hidden_input: Tensor, beta_from: float, beta_to: float) -> Tensor:
    """The start has the model's own visible biases, so that only the hidden units count."""
    return (softplus(beta_to * hidden_input) - softplus(beta_from * hidden_input)).sum(1)


def transition(
    rbm: RBM, hidden_input: Tensor, beta: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The next v of every chain and its v W + a."""
    h = draw(torch.sigmoid(beta * hidden_input), generator)
    v = draw(torch.sigmoid(torch.addmm(rbm.visible_bias, h, rbm.weights.T, alpha=beta)), generator)
    return v, torch.addmm(rbm.hidden_bias, v, rbm.weights)


def log_mean_weight(log_weights: Tensor) -> tuple[Tensor, float]:
    """For each row the logarithm of the mean weight, and the standard error of their average."""
    largest = log_weights.amax(1, keepdim=True)
    weights = torch.exp(log_weights - largest)
    mean = weights.mean(1)
    variance = weights.var(1) / weights.shape[1]
    std_error = (variance / mean.square()).sum().sqrt().item() / len(weights)
    return largest[:, 0] + mean.log(), std_error


def log_z_start(rbm: RBM) -> float:
    return softplus(rbm.visible_bias.double()).sum().item() + rbm.num_hidden * math.log(2)


def prepare_ais(work: Work, device: str) -> Callable[[], Answer]:
    """for beta: log_weights += ...; h, v = Gibbs step at beta."""
    rbm = work.model(device)
    betas = torch.linspace(0, 1, work.steps + 1, dtype=torch.float64).tolist()

    def run() -> Answer:
        generator = seeded_generator(1, device)
        v = draw(torch.sigmoid(rbm.visible_bias).expand(work.chains, -1), generator)
        hidden_input = torch.addmm(rbm.hidden_bias, v, rbm.weights)
        log_weights = torch.zeros(work.chains, device=device)
        for beta_from, beta_to in pairwise(betas):
            log_weights += log_ratio(hidden_input, beta_from, beta_to)
            v, hidden_input = transition(rbm, hidden_input, beta_to, generator)
        log_mean, std_error = log_mean_weight(log_weights[None])
        return Answer(log_z_start(rbm) + log_mean.item(), std_error)

    return run


def prepare_products(work: Work, device: str) -> Callable[[], Answer]:
    """for beta: v @ W; h @ W.T; in float32, and nothing else."""
    rbm = work.model(device)
    v = work.images(device)
    h = (v @ rbm.weights > 0).float()

    def run() -> Answer:
        for _ in range(work.steps):
            v @ rbm.weights
            h @ rbm.weights.T
        return Answer(None, None)

    return run


def prepare_raise(work: Work, device: str) -> Callable[[], Answer]:
    """for beta from 1 to 0: h, v = Gibbs step at beta; log_weights += ..."""
    rbm = work.model(device)
    images = work.images(device)
    betas = torch.linspace(1, 0, work.steps + 1, dtype=torch.float64).tolist()
    chains = work.chains // work.vectors

    def run() -> Answer:
        generator = seeded_generator(1, device)
        v = images.repeat_interleave(chains, 0)
        hidden_input = torch.addmm(rbm.hidden_bias, v, rbm.weights)
        log_weights = v @ rbm.visible_bias + softplus(hidden_input).sum(1) - log_z_start(rbm)
        for beta_from, beta_to in pairwise(betas):
            v, hidden_input = transition(rbm, hidden_input, beta_from, generator)
            log_weights += log_ratio(hidden_input, beta_from, beta_to)
        log_probs, std_error = log_mean_weight(log_weights.view(-1, chains))
        return Answer(log_probs.mean().item(), std_error)

    return run


def prepare_exact(work: Work, device: str) -> Callable[[], Answer]:
    """for a block of h: (h @ W.T + b) softplus, sum; float64."""
    rbm = work.model(device).to(dtype=torch.float64)
    shifts = torch.arange(work.hidden, device=device)

    def run() -> Answer:
        parts = []
        for index in torch.arange(2**work.hidden, device=device).split(4_096):
            h = ((index[:, None] >> shifts) & 1).double()
            visible_input = torch.addmm(rbm.visible_bias, h, rbm.weights.T)
            log_masses = h @ rbm.hidden_bias + softplus(visible_input).sum(1)
            # as numbers: small tensors among the large ones would keep the allocator from using its
            # memory again
            parts.append(log_masses.logsumexp(0).item())
        return Answer(torch.tensor(parts, dtype=torch.float64).logsumexp(0).item(), 0.0)

    return run


def prepare_training(work: Work, device: str) -> Callable[[], RBM]:
    """for a minibatch: h, v = Gibbs steps; W += rate (v' h of the data - v' h of the chains)."""
    images = work.images(device)
    initial = work.initial(device)
    step = LEARNING_RATE / work.chains

    def run() -> RBM:
        generator = seeded_generator(1, device)
        weights = initial.weights.clone()
        visible_bias = initial.visible_bias.clone()
        hidden_bias = initial.hidden_bias.clone()
        chains = images[: work.chains]
        for _ in range(work.epochs):
            order = torch.randperm(len(images), device=device, generator=generator)
            for batch in images[order].split(work.chains):
                data_hidden = torch.sigmoid(torch.addmm(hidden_bias, batch, weights))
                hidden = data_hidden
                if work.task == "PCD":
                    hidden = torch.sigmoid(torch.addmm(hidden_bias, chains, weights))
                for _ in range(CD_STEPS[work.task]):
                    h = draw(hidden, generator)
                    chains = draw(torch.sigmoid(torch.addmm(visible_bias, h, weights.T)), generator)
                    hidden = torch.sigmoid(torch.addmm(hidden_bias, chains, weights))
                weights.addmm_(batch.T, data_hidden, alpha=step).addmm_(
                    chains.T, hidden, alpha=-step
                )
                visible_bias.add_(batch.sum(0) - chains.sum(0), alpha=step)
                hidden_bias.add_(data_hidden.sum(0) - hidden.sum(0), alpha=step)
        return RBM(weights, visible_bias, hidden_bias)

    return run
