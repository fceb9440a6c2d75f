"""Brackets of deep models: which models chapter 10 has, their exact values where they are small, and the rows of its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import load_model, model_path, recipe
from boltzmann_companion.rows import words
from boltzmann_companion.studies.bracket_tables import (
    STARTS,
    BracketTable,
    ends_and_gap,
    from_start,
    point_of,
    start_path,
    steps_for,
)
from paperlib.annealing import BaseRatePath
from paperlib.datasets import BinaryImages, binary_images
from paperlib.errors import never_changed
from paperlib.estimators import PartitionEstimate, exact_log_z
from paperlib.estimators.bracket import Bracket
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import all_states, bernoulli_log_prob, log_mean_exp

# AIS and its bracket for each model, start and number of distributions, in increasing order.
Runs: TypeAlias = Mapping[tuple[str, str, int], tuple[PartitionEstimate, Bracket]]


@never_changed("write models[name] = dataclasses.replace(models[name], test=...)")
@dataclass(frozen=True, eq=False)
class DeepModel:
    """A model of Table 2 with its images; its place in the table chooses its random numbers, whether or not all models exist."""

    name: str
    id: str
    number: int
    model: DBM | DBN
    images: BinaryImages
    test: Tensor

    def path(self, start: str, seed: int) -> BaseRatePath:
        """The path to the model from one of `STARTS`."""
        return _path(self, start, seed)

    def chosen(self, table: BracketTable, seed: int) -> Tensor:
        """Indices of the test images for which RAISE is run, int64 [n]."""
        return table.chosen(self.number, len(self.test), seed)

    def steps(self, size: Profile, table: BracketTable, largest: int, seed: int) -> list[int]:
        """Every K for which the brackets are computed or stored, as `steps_for` has it."""
        paths = {start: self.path(start, seed) for start in STARTS}
        v = self.test[self.chosen(table, seed)]
        return steps_for(size, table, largest, paths, v, self.number, seed)


@cache
def _path(of: DeepModel, start: str, seed: int) -> BaseRatePath:
    """As base rates of hidden units take a pass over the training images, a path is made once."""
    return start_path(of.model, of.images.train, start, of.number, seed)


def deep_models(
    size: Profile, table: BracketTable, num_images: int | None = None
) -> dict[str, DeepModel]:
    """The models of a table that have been trained, with the first `num_images` test images; the others are named."""
    found = {}
    for number, (name, model_id) in enumerate(table.models.items()):
        if size.name != "digits" and not model_path(model_id).is_file():
            print(f"{name} is left out: `{model_id}` has not been trained yet.")
            continue
        model, images = size.model(model_id), binary_images(recipe(model_id).dataset)
        assert isinstance(model, DBM | DBN)
        test = images.test[:num_images]
        found[name] = DeepModel(name, model_id, number, model, images, test)
    return found


def exact_log_unnormalized(model: DBM | DBN, v: Tensor) -> tuple[Tensor, float]:
    """The exact ln p*(v) [N] of images [N, D], and ln Z, by enumeration of a small h1, which is cut in two halves."""
    return model.exact_log_unnormalized(v), exact_log_z(model)


def unrolled_probs(dbn: DBN, betas: Sequence[float] | Tensor) -> Tensor:
    """p_ann(v) of an unrolled DBN from a uniform start, for all 2^D images, as a product of matrices."""
    first, top = dbn.layers
    v, h1, g = (all_states(n) for n in (first.num_visible, top.num_visible, top.num_hidden))
    probs = torch.full((len(h1),), 1 / len(h1), dtype=torch.float64)
    for beta in list(betas)[1:]:
        to_g = beta * (h1 @ top.weights + top.hidden_bias)[:, None]
        to_h1 = beta * (g @ top.weights.T + top.visible_bias)[:, None]
        kernel = bernoulli_log_prob(g[None], to_g).exp() @ bernoulli_log_prob(h1[None], to_h1).exp()
        probs = probs @ kernel
    to_v = (h1 @ first.weights.T + first.visible_bias)[:, None]
    return probs @ bernoulli_log_prob(v[None], to_v).exp()


def enumerable_dbn(number: int, num_images: int | None, seed: int) -> DeepModel:
    """A DBN with 16 and 32 hidden units, whose lower layer is a stored RBM, and the digits as images."""
    images, lower = binary_images("digits"), load_model("digits-pcd-16", torch.float64)
    assert isinstance(lower, RBM)
    learning = ContrastiveDivergence(32, epochs=40, batch_size=50)
    options: dict[str, Any] = {"dtype": torch.float64, "progress": False}
    upper, _ = train_rbm(images.train, learning, seed, layers_below=[lower], **options)
    name, dbn = "DBN(16)", DBN([lower, upper])
    return DeepModel(name, name, number, dbn, images, images.test[:num_images])


def mean_field_row(of: DeepModel, log_f: Tensor, exact: float | None) -> dict[str, Any]:
    """The mean-field bound of a DBM beside ln p*(v) by importance sampling [N] of its test images."""
    assert isinstance(of.model, DBM)
    field = of.model.mean_field(of.test.to(of.model.weights_1.dtype))
    bound = of.model.log_unnormalized_bound(of.test, field)
    follow = torch.sigmoid(field.logits_2).std(0) > 0.1
    return {
        "model": of.name,
        "images": len(of.test),
        "bound": bound.mean().item(),
        "importance": log_f.mean().item(),
        "difference": (log_f - bound).mean().item(),
        "follow": follow.double().mean().item(),
        "exact": exact,
        "warnings": words(field.warnings),
    }


def heating_row(
    of: DeepModel,
    betas: Sequence[float],
    log_w: Tensor,
    log_z_start: float,
    log_f: Tensor,
    exact: float | None,
) -> dict[str, Any]:
    """The log-weights of the heating [N, chains] beside ln p*(v) by importance sampling [N]."""
    heating = log_mean_exp(log_w) + log_z_start
    difference = heating - log_f
    return {
        "model": of.name,
        "steps": len(betas) - 1,
        "importance": log_f.mean().item(),
        "heating": heating.mean().item(),
        "difference": difference.mean().item(),
        "error": difference.std().item() / math.sqrt(len(log_f)),
        "exact": exact,
        "spread": log_w.std(1).mean().item(),
    }


def start_row(
    of: DeepModel,
    start: str,
    steps: int,
    above: PartitionEstimate,
    found: Bracket,
    exact: float | None,
) -> dict[str, Any]:
    """An estimate of ln Z and its bracket, beside the exact ln Z."""
    return {
        "model": of.name,
        "start": start,
        "steps": steps,
        "log_z": above.log_z,
        "spread": above.log_weights.std().item(),
        "effective": above.effective_sample_size,
        "exact": exact,
        **point_of(found),
    }


def bracket_points(runs: Runs, exact: Mapping[str, float]) -> list[dict[str, Any]]:
    """Figure 7: a row for each run, beside the exact values by model."""
    return [
        {
            "model": name,
            "start": start,
            "steps": steps,
            **point_of(found),
            "ais_interval": found.upper_interval,
            "bracket": found.verdict(),
            "exact": exact.get(name),
        }
        for (name, start, steps), (_, found) in runs.items()
    ]


def table_row(of: DeepModel, runs: Runs, exact: Mapping[str, float]) -> dict[str, Any]:
    """Table 2: the run with the most distributions from each start, which are as many."""
    row: dict[str, Any] = {
        "model": of.name,
        "exact": exact.get(of.name),
        "images": of.images.grey.name,
    }
    brackets: dict[str, dict[int, Bracket]] = {}
    effective = {}
    for (name, start, steps), (above, found) in runs.items():
        if name == of.name:
            brackets.setdefault(start, {})[steps] = found
            effective[start] = above.effective_sample_size
    for start, own in brackets.items():
        steps, last = list(own.items())[-1]
        row["steps"] = steps
        columns = ends_and_gap(last) | {
            "ais_interval": last.upper_interval,
            "effective": effective[start],
            "warnings": words(last.warnings),
            "verdict": in_words(start, brackets),
        }
        row |= from_start(start, columns)
    return row


def in_words(start: str, brackets: Mapping[str, Mapping[int, Bracket]]) -> str:
    """What the last of the brackets from a start says, by start and K; where it is open or crossed, what may be to blame."""
    counts, (*earlier, last) = list(brackets[start]), brackets[start].values()
    word = last.verdict()
    if word in ("closed", "too noisy to tell"):
        return word
    if word == "crossed":
        return (
            "crossed: the annealing model fits better than the model, or ln p*(v) "
            "is estimated too low"
        )
    others = [list(own.values())[-1] for own in brackets.values()]
    too_high = last.upper - min(other.upper for other in others)
    too_low = max(other.lower.mean for other in others) - last.lower.mean
    causes = []
    if too_high > 1:
        causes.append(f"AIS from this start is too high, by {too_high:.1f} nats or more")
    if too_low > 1:
        causes.append(f"RAISE is {too_low:.1f} nats lower than from the other start")
    if not causes and earlier:
        gap, steps = earlier[-1].gap, counts[-2]
        causes.append(f"too few distributions; the gap was {gap:.1f} nats with {steps:,}")
    return "open: " + "; ".join(causes or ["too few distributions"])
