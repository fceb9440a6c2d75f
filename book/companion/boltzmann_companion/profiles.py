"""Profiles: the two sizes at which the same chapters run.

`digits` is the default: 8 x 8 digits in float64 (so that results agree between processors); it
takes minutes and works offline. `paper` is the papers' size: MNIST and Omniglot in float32.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from boltzmann_companion import DEVICE
from boltzmann_companion.log_probability_store import log_unnormalized_run
from boltzmann_companion.recipes import Model, load_model
from boltzmann_likelihood import cluster
from boltzmann_likelihood.store import is_stored, kept
from paperlib.annealing import BaseRatePath, RBMPairPath
from paperlib.datasets import BinaryImages, binary_images, cache_folder
from paperlib.errors import InputError, never_changed
from paperlib.estimators import PartitionEstimate, ReverseEstimate, ais, raise_log_prob
from paperlib.estimators.shards import ais_run, raise_run
from paperlib.models import DBM, DBN
from paperlib.numerics import seeded_generator
from paperlib.resumable import Work

Result = TypeVar("Result")


@never_changed(
    "change what the chapter takes from it: images = dataclasses.replace(size.images(), test=...), "
    "or the entries of chapter 8"
)
@dataclass(frozen=True)
class Profile:
    """What a chapter needs to know about the size at which it runs.

    Attributes
    ----------
    name : str
        `digits` or `paper`.
    dataset : str
        Name of its data set.
    dtype : torch.dtype
        Type of its models.
    """

    name: str
    dataset: str
    dtype: torch.dtype

    @property
    def device(self) -> str:
        """The device of the chains of AIS and RAISE, which is the CPU.

        At the papers' size, `PAPERLIB_DEVICE` may name another.
        """
        return "cpu" if self.name == "digits" else os.environ.get(DEVICE) or "cpu"

    @property
    def folder(self) -> Path:
        """Where shards are kept at the papers' size."""
        return cache_folder() / "shards"

    def images(self) -> BinaryImages:
        """Its data set, binarised once and for all."""
        return binary_images(self.dataset)

    def model(self, model_id: str) -> Model:
        """One of its models, in its type."""
        return load_model(model_id, self.dtype)

    def ais(
        self,
        path: BaseRatePath | RBMPairPath,
        betas: Tensor,
        num_chains: int,
        seed: int,
        progress: bool | None = None,
    ) -> PartitionEstimate:
        """AIS; at the papers' size in shards, so that a run may be interrupted.

        Shards are stored in `data/cache/shards`. Missing ones are sent to the cluster that
        `PAPERLIB_CLUSTER` names, if it names one. The small runs are computed anew each time, since
        a stored result does not reflect later changes to the code.
        """
        if self.name == "digits":
            return ais(path, betas, num_chains, seeded_generator(seed, path.device), progress)
        return self._kept(partial(ais_run, path, betas, num_chains, seed), progress)

    def raise_log_prob(
        self,
        path: BaseRatePath,
        v: Tensor,
        betas: Tensor,
        num_chains: int,
        seed: int,
        progress: bool | None = None,
    ) -> ReverseEstimate:
        """RAISE, in shards in the same way."""
        if self.name == "digits":
            generator = seeded_generator(seed, path.device)
            return raise_log_prob(path, v, betas, num_chains, generator, progress)
        return self._kept(partial(raise_run, path, v, betas, num_chains, seed), progress)

    def log_unnormalized(self, model: DBM | DBN, v: Tensor, num_samples: int, seed: int) -> Tensor:
        """ln p*(v) of a deep model, float64 [N]; at the papers' size in shards as well."""
        if self.name == "digits":
            return model.log_unnormalized(v, num_samples, seeded_generator(seed, model.device))
        return self._kept(lambda device: log_unnormalized_run(model, v, num_samples, seed))

    def run(self, on: Callable[[str], Work[Result]]) -> Work[Result]:
        """The shards of a run on the profile's device, or on another where all of them are stored.

        The longest runs take minutes on a GPU and days on a processor, and are computed wherever a
        machine is at hand.

        Parameters
        ----------
        on : callable
            Returns the shards of the run on a device, which is named by a text.
        """
        runs = [on(device) for device in dict.fromkeys((self.device, "cpu", "cuda"))]
        return next((run for run in runs if is_stored(run, self.folder)), runs[0])

    def _kept(self, on: Callable[[str], Work[Result]], progress: bool | None = None) -> Result:
        return kept(self.run(on), self.folder, progress, cluster.from_environment())


PROFILES = {
    "digits": Profile("digits", "digits", torch.float64),
    "paper": Profile("paper", "mnist", torch.float32),
}


def get_profile(name: str) -> Profile:
    """The profile of this name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in PROFILES:
        raise InputError(f"profile: expected one of {', '.join(PROFILES)}, got {name!r}")
    return PROFILES[name]
