"""Mixtures of Bernoullis from every start with every smoothing.

The grid shows what the start changes and what the smoothing changes, each alone. Each training is
kept in a small file, and computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from boltzmann_companion.rows import averages
from boltzmann_likelihood.store import remembered
from paperlib.datasets import BinaryImages
from paperlib.kernels import DRAWS
from paperlib.learning import MixtureEM, train_mixture

#: Where EM starts.
STARTS = ("images", "noise")
#: Its smoothing: that of the mixtures of chapter 6 that start at images, and of those from noise.
SMOOTHINGS = (0.1, 2.0)
# The smaller of the two limits of EM's steps in chapter 6.
_MAX_STEPS = 60
# A component is used if it explains at least this many training images.
_FEWEST_IMAGES = 1.0


def grid_rows(
    images: BinaryImages, seeds: Mapping[int, int], dtype: torch.dtype, folder: Path | None
) -> Iterator[dict[str, Any]]:
    """Rows of `mixture-grid`: means over the seeds 0, 1, ... of one start with one smoothing.

    Parameters
    ----------
    images : BinaryImages
        Training and test images.
    seeds : mapping of int to int
        For each number of components, how many trainings there are in each row.
    dtype : torch.dtype
        Of the computation.
    folder : Path or None
        Where trainings are kept. None: nowhere.
    """
    for components, start, smoothing in product(seeds, STARTS, SMOOTHINGS):
        recipe = MixtureEM(components, smoothing, _MAX_STEPS, start=start)
        trainings = []
        for seed in range(seeds[components]):
            identity = ["mixture", images.grey.checksum, asdict(recipe), seed, str(dtype), DRAWS]
            train = partial(_trained, images, recipe, seed, dtype)
            trainings.append(remembered(folder, identity, train))
        test = [training["test"] for training in trainings]
        row = {"model": f"MoB({components})", "start": start, "smoothing": smoothing}
        for key in ("test", "train", "used"):
            row[key] = fmean(training[key] for training in trainings)
        yield row | {"seeds": len(trainings), "lowest": min(test), "highest": max(test)}


def _trained(
    images: BinaryImages, recipe: MixtureEM, seed: int, dtype: torch.dtype
) -> dict[str, Any]:
    mixture, objectives = train_mixture(images.train, recipe, seed, dtype=dtype, progress=False)
    # EM adds the smoothing to the number of images of each component.
    total = len(images.train) + recipe.smoothing * recipe.num_components
    explained = mixture.log_mixing_weights.double().exp() * total - recipe.smoothing
    used = int((explained >= _FEWEST_IMAGES).sum())
    row = averages(mixture.log_prob, images, dtype)
    return {**row, "used": used, "steps": len(objectives)}
