"""Brackets of deep models: the models of chapter 10, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Mapping
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

# AIS and its bracket for each model, start and number of distributions, in increasing order.
Runs: TypeAlias = Mapping[tuple[str, str, int], tuple[PartitionEstimate, Bracket]]


@never_changed("write models[name] = dataclasses.replace(models[name], test=...)")
@dataclass(frozen=True, eq=False)
class DeepModel:
    """A model of Table 2 with its images."""

    name: str
    id: str
    # Its place in the table, which chooses its random numbers whether or not all models exist.
    number: int
    model: DBM | DBN
    images: BinaryImages
    test: Tensor  # the test images that the chapter takes, [N, D]

    def path(self, start: str, seed: int) -> BaseRatePath:
        """The path to the model from one of `STARTS`."""
        return _path(self, start, seed)

    def chosen(self, table: BracketTable, seed: int) -> Tensor:
        """Indices of the test images for which RAISE is run, int64 [n]."""
        return table.chosen(self.number, len(self.test), seed)

    def steps(self, size: Profile, table: BracketTable, largest: int, seed: int) -> list[int]:
        """Every K for which the brackets are computed or stored; see `steps_for`."""
        paths = {start: self.path(start, seed) for start in STARTS}
        v = self.test[self.chosen(table, seed)]
        return steps_for(size, table, largest, paths, v, self.number, seed)


@cache
def _path(deep: DeepModel, start: str, seed: int) -> BaseRatePath:
    """As base rates of hidden units take a pass over the training images, a path is made once."""
    return start_path(deep.model, deep.images.train, start, deep.number, seed)


def deep_models(
    size: Profile, table: BracketTable, num_images: int | None = None
) -> dict[str, DeepModel]:
    """The models of a table that have been trained, with the first `num_images` test images.

    The names of the others are printed.
    """
    models = {}
    for number, (name, model_id) in enumerate(table.models.items()):
        if size.name != "digits" and not model_path(model_id).is_file():
            print(f"{name} is left out: `{model_id}` has not been trained yet.")
            continue
        model = size.model(model_id)
        images = binary_images(recipe(model_id).dataset)
        assert isinstance(model, DBM | DBN)
        test = images.test[:num_images]
        models[name] = DeepModel(name, model_id, number, model, images, test)
    return models


def exact_log_unnormalized(model: DBM | DBN, v: Tensor) -> tuple[Tensor, float]:
    """The exact ln p*(v) [N] of images [N, D], and ln Z, by enumeration of a small h1."""
    return model.exact_log_unnormalized(v), exact_log_z(model)


def enumerable_dbn(number: int, num_images: int | None, seed: int) -> DeepModel:
    """A DBN of digits with 16 and 32 hidden units, whose lower layer is a stored RBM."""
    images = binary_images("digits")
    lower = load_model("digits-pcd-16", torch.float64)
    assert isinstance(lower, RBM)
    learning = ContrastiveDivergence(32, epochs=40, batch_size=50)
    options: dict[str, Any] = {"dtype": torch.float64, "progress": False}
    upper, _ = train_rbm(images.train, learning, seed, layers_below=[lower], **options)
    name = "DBN(16)"
    dbn = DBN([lower, upper])
    return DeepModel(name, name, number, dbn, images, images.test[:num_images])


def mean_field_row(deep: DeepModel, log_f: Tensor, exact: float | None) -> dict[str, Any]:
    """A DBM's mean-field bound beside ln p*(v) by importance sampling [N], of its test images."""
    assert isinstance(deep.model, DBM)
    field = deep.model.mean_field(deep.test.to(deep.model.weights_1.dtype))
    bound = deep.model.log_unnormalized_bound(deep.test, field)
    # whether a unit of h2 differs between images
    follow = torch.sigmoid(field.logits_2).std(0) > 0.1
    return {
        "model": deep.name,
        "images": len(deep.test),
        "bound": bound.mean().item(),
        "importance": log_f.mean().item(),
        "difference": (log_f - bound).mean().item(),
        "follow": follow.double().mean().item(),
        "exact": exact,
        "warnings": words(field.warnings),
    }


def change_row(deep: DeepModel, log_f: Tensor, cases: Tensor) -> dict[str, Any]:
    """What ln p*(v) by importance sampling [N] changes in place of the mean-field bound.

    For AIS, and for RAISE, which is run for the images with the numbers `cases`.
    """
    assert isinstance(deep.model, DBM)
    change = log_f - deep.model.variational_bound(deep.test)
    return {
        "model": deep.name,
        "images": len(cases),
        "ais_change": change.mean().item(),
        "raise_change": (change.mean() - change[cases].mean()).item(),
    }


def bracket_points(runs: Runs, exact: Mapping[str, float]) -> list[dict[str, Any]]:
    """Figure 7: a row for each run, beside the exact values by model."""
    return [
        {
            "model": name,
            "start": start,
            "steps": steps,
            **point_of(bracket),
            "ais_interval": bracket.upper_interval,
            "exact": exact.get(name),
        }
        for (name, start, steps), (_, bracket) in runs.items()
    ]


def table_row(deep: DeepModel, runs: Runs, exact: Mapping[str, float]) -> dict[str, Any]:
    """Table 2: the run with the most distributions from each start; both starts have as many."""
    row: dict[str, Any] = {
        "model": deep.name,
        "exact": exact.get(deep.name),
        "images": deep.images.grey.name,
    }
    # The last run from a start has the most distributions, so its columns remain.
    for (name, start, steps), (above, bracket) in runs.items():
        if name != deep.name:
            continue
        row["steps"] = steps
        columns = ends_and_gap(bracket) | {
            "ais_interval": bracket.upper_interval,
            "effective": above.effective_sample_size,
            "warnings": words(bracket.warnings),
        }
        row |= from_start(start, columns)
    return row
