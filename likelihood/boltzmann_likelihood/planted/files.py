"""One file with an RBM, its exact ln Z and draws, for testing other programs.

It is an `.npz` file, which numpy reads without this library. It holds `weights` [D, M],
`visible_bias` [D] and `hidden_bias` [M] (under the names that `RBM.save` uses, so that `RBM.load`
and `paperlib evaluate` accept the file), `log_z`, `draws` [n, D] as bytes, and `provenance` as
JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from boltzmann_likelihood.planted.planted_model import Planted
from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.files import read_named
from paperlib.models.rbm import RBM
from paperlib.validation import as_binary, as_tensor, require_finite, require_shape


class PlantedFile(NamedTuple):
    """The contents of a file with a planted model.

    Attributes
    ----------
    rbm : RBM
        The model.
    log_z : float
        Its exact ln Z in nats.
    draws : Tensor, shape [n, D], uint8
        Independent exact draws of the visible units.
    provenance : dict of str to str
        How the model was made.

    Examples
    --------
    >>> PlantedFile._fields
    ('rbm', 'log_z', 'draws', 'provenance')
    """

    rbm: RBM
    log_z: float
    draws: Tensor
    provenance: dict[str, str]


def write_planted(
    path: str | os.PathLike[str],
    model: Planted,
    num_draws: int = 1_000,
    generator: torch.Generator | int | None = None,
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a model, its ln Z and draws as one `.npz` file, whole or not at all.

    Parameters
    ----------
    path : path
        Ends in `.npz`.
    model : Planted
        What to write. The file is compressed, so the zeros of a block-diagonal model take hardly
        any space.
    num_draws : int
        Number of draws to include, at one byte per unit.
    generator : torch.Generator or int, optional
        Source of randomness for the draws; on the CPU.
    provenance : mapping of str to str, optional
        How the model was made.

    Raises
    ------
    InputError
        If the path has another ending, `model` is not a planted model, or `num_draws` is not a
        whole number.

    Examples
    --------
    >>> import tempfile
    >>> from boltzmann_likelihood import planted
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_planted(f"{folder}/ising.npz", planted.ising_2d(4, 0.3), num_draws=10)
    ...     rbm, log_z, draws, _ = read_planted(f"{folder}/ising.npz")
    >>> draws.shape
    torch.Size([10, 16])
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"path: expected a .npz file, got {path.name!r}")
    if not isinstance(model, Planted):
        raise InputError(f"model: expected a planted model, got {type(model).__name__}")
    draws = model.draws(num_draws, generator)
    arrays = {name: tensor.cpu().numpy() for name, tensor in model.rbm.tensors().items()}
    text = json.dumps(dict(provenance or {}), sort_keys=True)
    with storage.atomic_path(path) as temporary:
        np.savez_compressed(
            temporary,
            **arrays,  # pyright: ignore[reportArgumentType]
            log_z=np.float64(model.log_z),
            draws=draws.to(torch.uint8).numpy(),
            provenance=np.array(text),
        )


def read_planted(path: str | os.PathLike[str]) -> PlantedFile:
    """Read a file that `write_planted` wrote.

    Raises
    ------
    InputError
        If the file is missing or damaged, or does not hold a planted model.

    Examples
    --------
    >>> import tempfile
    >>> from boltzmann_likelihood.planted import ising_2d
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_planted(f"{folder}/ising.npz", ising_2d(3, 0.4), num_draws=2)
    ...     file = read_planted(f"{folder}/ising.npz")
    >>> file.draws.shape
    torch.Size([2, 9])
    """
    path = Path(path)
    arrays = read_named(path, [*RBM.tensor_names, "log_z", "draws", "provenance"])
    rbm = RBM(*(arrays[name] for name in RBM.tensor_names))
    log_z = as_tensor("log_z", arrays["log_z"])
    require_shape("log_z", log_z, [])
    require_finite("log_z", log_z)
    draws = as_binary("draws", arrays["draws"], rbm.num_visible)
    try:
        provenance = dict(json.loads(str(arrays["provenance"])))
    except ValueError as error:
        raise InputError(f"path: expected a JSON object as provenance in {path}") from error
    return PlantedFile(rbm, log_z.item(), draws, provenance)
