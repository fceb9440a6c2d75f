"""RBMs written by `torch.save`, read by PyTorch's restricted reader, which makes only tensors and containers and runs no code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.foreign.foreign_rbm import ForeignRBM
from paperlib.models.rbm import RBM

# Names in common use, without the part up to the last dot.
_WEIGHTS = ("weights", "weight", "weight_matrix", "W", "w")
_VISIBLE = ("visible_bias", "vbias", "v_bias", "bias_v", "visible_biases", "bv", "b_v")
_HIDDEN = ("hidden_bias", "hbias", "h_bias", "bias_h", "hidden_biases", "bh", "b_h")
# Keys under which a training program may store a state dict along with other things.
_CONTAINERS = ("state_dict", "model_state_dict", "model")
_REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_REAL += (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Maximum numbers of names and of letters in a message.
_FEW, _LONGEST = 20, 200
_HOW = "save it with torch.save({'weights': W, 'visible_bias': b, 'hidden_bias': a}, path)"


def read_state_dict(path: str | os.PathLike[str]) -> ForeignRBM:
    """An RBM from named tensors, as `torch.save(model.state_dict(), path)` writes them.

    Parameters
    ----------
    path : path
        `.pt` or `.pth`. The tensors may be called `weights`, `weight`, `weight_matrix` or `W`; `visible_bias`, `vbias`, `v_bias` or
        `bv`; `hidden_bias`, `hbias`, `h_bias` or `bh`, with any prefix that ends in a dot. Weights may be [D, M] or [M, D]; the biases
        tell which.

    Returns
    -------
    ForeignRBM
        Its notes say whether the weights were transposed. Square weights are taken as [visible, hidden].

    Raises
    ------
    InputError
        If the file is missing or damaged, holds more than tensors and containers, or holds no tensors that make an RBM.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tensors = {"W": torch.zeros(2, 3), "v_bias": torch.zeros(3), "h_bias": torch.zeros(2)}
    ...     torch.save(tensors, f"{folder}/model.pt")
    ...     found = read_state_dict(f"{folder}/model.pt")
    >>> found.rbm, found.notes
    (RBM(3 visible, 2 hidden, torch.float32, cpu), ('weights: [hidden, visible] in the file, transposed',))
    """
    path = Path(path)
    if not storage.is_file(path):
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        storage.require_modest_zip(path)
    except InputError as error:
        raise InputError(f"path: {error}") from error
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader raises many kinds of exceptions
        raise InputError(
            f"path: expected an undamaged file of named tensors at {path}, and no pickled objects beside them; {_HOW}"
        ) from error
    tensors = _named_tensors(stored)
    weights, visible_bias, hidden_bias = (
        _one(tensors, names, path) for names in (_WEIGHTS, _VISIBLE, _HIDDEN)
    )
    visible_bias, hidden_bias = visible_bias.flatten(), hidden_bias.flatten()
    turned = (len(hidden_bias), len(visible_bias))
    notes: tuple[str, ...] = ()
    if weights.shape == turned and turned[0] != turned[1]:
        weights = weights.T.contiguous()
        notes = ("weights: [hidden, visible] in the file, transposed",)
    elif weights.shape == turned:
        notes = ("weights: square, taken as [visible, hidden]",)
    try:
        rbm = RBM(weights, visible_bias, hidden_bias)
    except InputError as error:
        raise InputError(f"path: expected an RBM in {path}: {error}") from error
    return ForeignRBM(rbm, f"named tensors in {path.name}", notes=notes)


def _named_tensors(stored: object) -> dict[str, Tensor]:
    """The tensors of a state dict, which may be stored along with other things."""
    # The depth is limited, since a dictionary may contain itself.
    for _ in _CONTAINERS:
        if isinstance(stored, Mapping):
            inner = [stored[name] for name in _CONTAINERS if isinstance(stored.get(name), Mapping)]
            stored = inner[0] if inner else stored
    if not isinstance(stored, Mapping):
        return {}
    return {str(name): value for name, value in stored.items() if isinstance(value, Tensor)}


def _one(tensors: Mapping[str, Tensor], names: tuple[str, ...], path: Path) -> Tensor:
    found = [value for name, value in tensors.items() if name.rpartition(".")[2] in names]
    if len(found) != 1:
        there = sorted(tensors)
        named = ", ".join(there[:_FEW]) + (", ..." if len(there) > _FEW else "")
        # A name in a file may contain any characters.
        shown = "".join(letter if letter.isprintable() else "?" for letter in named)[:_LONGEST]
        raise InputError(
            f"path: expected one tensor called {names[0]} (or {', '.join(names[1:])}) in {path}, got {shown or 'no tensors'}; {_HOW}"
        )
    tensor = found[0].detach()
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.dtype not in _REAL:
        raise InputError(
            f"path: expected a dense tensor of real numbers as {names[0]} in {path}, got {tensor.dtype}, {tensor.layout}, {tensor.device}"
        )
    # A tensor may be larger than its stored data, if one number stands for all.
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise InputError(
            f"path: expected all numbers of {names[0]} in {path}, got {tensor.untyped_storage().nbytes()} bytes for shape {list(tensor.shape)}"
        )
    return tensor
