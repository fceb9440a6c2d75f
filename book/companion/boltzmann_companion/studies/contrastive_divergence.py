"""Contrastive divergence beside exact values, for the experiments of chapter 3.

It has likelihoods along training, the bias of CD-T on images, and the work of a field along a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators import exact_hidden_samples, exact_log_z
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM
from paperlib.numerics import all_states, bits

Row = dict[str, Any]


def angle_between(x: Tensor, y: Tensor) -> float:
    """Angle between two vectors [P] in degrees, accurate also when it is tiny."""
    x = x / x.norm()
    y = y / y.norm()
    return math.degrees(2 * math.atan2((x - y).norm(), (x + y).norm()))


def bias_row(gradient: Tensor, expected_update: Tensor, lambda_2: float) -> Row:
    """How far an expected update [P] is from the gradient [P].

    `lambda_2`, the second eigenvalue, says how fast the chain forgets its start.
    """
    bias = (expected_update - gradient).norm() / gradient.norm()
    return {
        "lambda_2": lambda_2,
        "relaxation": -1 / math.log(lambda_2),
        "bias": 100 * bias.item(),
        "angle": angle_between(expected_update, gradient),
    }


def asymmetry(jacobian: Tensor) -> float:
    """Norm of the antisymmetric part of a matrix [P, P] over that of the symmetric part."""
    return ((jacobian - jacobian.T).norm() / (jacobian + jacobian.T).norm()).item()


def work_along_circle(
    field: Callable[[Tensor], Tensor],
    centre: Tensor,
    plane: Tensor,
    radius: float,
    points: int,
) -> Tensor:
    """Work [points] of a field up to each of equally spaced points of a circle.

    The circle is in the plane of two orthonormal directions [2, P].
    """
    x, y = plane
    angles = 2 * math.pi * torch.arange(points, dtype=torch.float64) / points
    steps = [
        field(centre + radius * (t.cos() * x + t.sin() * y)) @ (t.cos() * y - t.sin() * x)
        for t in angles
    ]
    return torch.stack(steps).cumsum(0) * radius * 2 * math.pi / points


def reconstruction_error(rbm: RBM, v: Tensor) -> float:
    """Expected squared difference between images [N, D] and p(v = 1 | h), with h from p(h | v)."""
    all_h = all_states(rbm.num_hidden)
    h_given_data = ((v @ rbm.weights + rbm.hidden_bias) @ all_h.T).softmax(1)
    squared = ((v[:, None, :] - rbm.visible_probs(all_h)) ** 2).mean(-1)
    return (h_given_data * squared).sum(-1).mean().item()


def course(models: Sequence[RBM], images: Tensor) -> dict[str, Tensor]:
    """Log-likelihood of images [N, D], reconstruction error and norm of the weights, each [U].

    The likelihood is exact. `models` are U models along training.
    """
    likelihoods = [
        rbm.log_unnormalized(images).mean() - exact_log_z(rbm, progress=False) for rbm in models
    ]
    return {
        "log_likelihood": torch.stack(likelihoods),
        "error": torch.tensor([reconstruction_error(rbm, images) for rbm in models]),
        "norm": torch.stack([rbm.weights.norm() for rbm in models]),
    }


class Course(NamedTuple):
    """A training run, looked at E times."""

    epochs: Tensor  # of the looks, [E]
    log_likelihood: Tensor  # exact average log-probability at each look, [E]
    errors: Tensor  # reconstruction error of every epoch
    models: dict[int, RBM]  # those to keep, by their epoch

    @property
    def smoothed_errors(self) -> Tensor:
        """The reconstruction error [E], averaged over the epochs from one look to the next."""
        return self.errors.view(len(self.epochs), -1).mean(1)


def watched_training(
    train: Tensor,
    recipe: ContrastiveDivergence,
    seed: int,
    held_out: Tensor,
    *,
    every: int,
    keep: Collection[int] = (),
) -> Course:
    """Train, with a look at the exact log-probability of images [N, D] after `every` epochs.

    The type of these images, `held_out`, is that of the training. The models after the epochs in
    `keep` are returned as well.
    """
    if recipe.epochs < 2 * every:
        raise InputError(
            f"epochs: expected at least {2 * every}, for two looks or more, got {recipe.epochs}"
        )
    epochs = []
    values = []
    models: dict[int, RBM] = {}

    def look(epoch: int, rbm: RBM) -> None:
        if epoch % every == 0:
            epochs.append(epoch)
            average = rbm.log_unnormalized(held_out).double().mean().item()
            values.append(average - exact_log_z(rbm, progress=False))
        if epoch in keep:
            models[epoch] = rbm

    _, errors = train_rbm(train, recipe, seed, dtype=held_out.dtype, on_epoch=look)
    return Course(torch.tensor(epochs), torch.tensor(values), torch.tensor(errors), models)


def late_summary(values: Tensor) -> dict[str, float]:
    """The best and the last of values [E] along training; mean and spread of the last third."""
    tail = values[-max(2, len(values) // 3) :]
    return {
        "best": values.max().item(),
        "final": values[-1].item(),
        "late_mean": tail.mean().item(),
        "late_std": tail.std().item(),
    }


def _training_rows(data: str, training: str, runs: Mapping[str, Sequence[Tensor]]) -> list[Row]:
    """A row for each method: the averages of `late_summary` over its runs [E]."""
    rows = []
    for method, curves in runs.items():
        summaries = [late_summary(values) for values in curves]
        means = {key: sum(row[key] for row in summaries) / len(curves) for key in summaries[0]}
        rows.append({"data": data, "method": method, "training": training, **means})
    return rows


def rows_of_all(
    expected: Mapping[str, Tensor],
    sampled: Mapping[str, Course],
    constant: Mapping[str, Course],
    falling: Mapping[str, Sequence[Course]],
    *,
    dataset: str,
    seed: int,
) -> list[Row]:
    """Rows of the runs on bars and stripes, noise-free and sampled, and on digits, at two rates."""
    [restarts] = {len(runs) for runs in falling.values()}
    digits = f"{dataset}, test"
    first_seed = f"seed {seed}"
    all_seeds = f"mean of {restarts} seeds" if restarts > 1 else first_seed
    constant_rate = f"constant, {first_seed}"
    noise_free = {name: [values] for name, values in expected.items()}
    repeated = {name: [run.log_likelihood for run in runs] for name, runs in falling.items()}
    return [
        *_training_rows("bars", "expected", noise_free),
        *_training_rows("bars", constant_rate, _single(sampled)),
        *_training_rows(digits, constant_rate, _single(constant)),
        *_training_rows(digits, f"falling, {all_seeds}", repeated),
    ]


def _single(runs: Mapping[str, Course]) -> dict[str, list[Tensor]]:
    return {name: [run.log_likelihood] for name, run in runs.items()}


class Bias(NamedTuple):
    """CD-T's bias after each number of steps."""

    norms: list[float]
    angles: list[float]  # in degrees
    noise_floor: float  # the norm that unbiased chains of this number seem to have


def measured_bias(
    rbm: RBM, train: Tensor, steps: Sequence[int], repeats: int, generator: torch.Generator
) -> Bias:
    """The bias of CD-T at a model with few hidden units.

    It is measured on chains that start at images [N, D], `repeats` at each.
    """
    negative_phase = _model_statistics(rbm)
    gradient = _sample_statistics(rbm, train) - negative_phase
    norms = []
    angles = []
    v = train.repeat(repeats, 1)
    for step in range(1, max(steps) + 1):
        v = rbm.gibbs_step(v, generator)
        if step in steps:
            update = gradient + negative_phase - _sample_statistics(rbm, v)
            norms.append((update - gradient).norm().item())
            angles.append(angle_between(update, gradient))
    unbiased, _ = exact_hidden_samples(rbm, len(v), generator)
    floor = (_sample_statistics(rbm, unbiased) - negative_phase).norm().item()
    return Bias(norms, angles, floor)


def _model_statistics(rbm: RBM) -> Tensor:
    """E[v h'], E[v], E[h] under the model as one vector, by enumerating the hidden layer."""
    log_z = exact_log_z(rbm, progress=False)
    total = torch.zeros(())
    for block in torch.arange(2**rbm.num_hidden).split(4096):
        h = bits(block, rbm.num_hidden).to(rbm.dtype)
        weight = (rbm.log_unnormalized_hidden(h).double() - log_z).exp().to(rbm.dtype)
        v = rbm.visible_probs(h)
        parts = [(v.T @ (weight[:, None] * h)).flatten(), weight @ v, weight @ h]
        total = total + torch.cat(parts).double()
    return total


def _sample_statistics(rbm: RBM, v: Tensor) -> Tensor:
    """The same, averaged over visible vectors [N, D]."""
    h = rbm.hidden_probs(v)
    return torch.cat([(v.T @ h).flatten(), v.sum(0), h.sum(0)]).double() / len(v)
