"""The restricted Boltzmann machine (RBM): a bipartite undirected model of binary vectors.

With visible units `v` in {0, 1}^D and hidden units `h` in {0, 1}^M, Salakhutdinov & Murray (2008), eq. 1-6:

    E(v, h) = - v' W h - b' v - a' h,        p(v, h) = exp(-E(v, h)) / Z

The layers are conditionally independent given each other, so that one layer can be summed out in closed form
and a Gibbs step updates a whole layer at once. The RAISE paper calls the visible biases `a` and the hidden
ones `b`; the names in this code, `visible_bias` and `hidden_bias`, avoid the confusion.

Served chapter: 01-restricted-boltzmann-machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.models.files import as_stored, read_tensors
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import bernoulli, softplus
from paperlib.validation import as_float_tensor, parameter, require_width

# The names under which the first paper's authors published MATLAB models.
_MATLAB_NAMES = ("vishid", "visbiases", "hidbiases")


class RBM(TensorModel):
    """A restricted Boltzmann machine with binary units.

    Parameters
    ----------
    weights : array or Tensor, shape [D, M]
        Interaction of visible unit i with hidden unit j.
    visible_bias : array or Tensor, shape [D]
        The paper's `b`.
    hidden_bias : array or Tensor, shape [M]
        The paper's `a`.

    Raises
    ------
    ValueError
        If a shape does not fit or a parameter is NaN or infinite.

    Notes
    -----
    Parameters keep the device and the floating-point type of `weights` (integers become float64, half precision
    becomes float32); every method returns tensors of the same kind. The tensors are shared with the caller, not
    copied, when they already have that type.
    """

    tensor_names = ("weights", "visible_bias", "hidden_bias")
    called = "an RBM"

    def __init__(self, weights: object, visible_bias: object, hidden_bias: object) -> None:
        self.weights = parameter("weights", weights, [None, None])
        num_visible, num_hidden = self.weights.shape
        self.visible_bias = parameter("visible_bias", visible_bias, [num_visible], self.weights)
        self.hidden_bias = parameter("hidden_bias", hidden_bias, [num_hidden], self.weights)

    def __repr__(self) -> str:
        return f"RBM({self.num_visible} visible, {self.num_hidden} hidden, {self.dtype}, {self.device})"

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.weights.shape[0]

    @property
    def num_hidden(self) -> int:
        """Number of hidden units, M."""
        return self.weights.shape[1]

    def transposed(self) -> RBM:
        """The same joint distribution with the two layers' roles exchanged."""
        return RBM(self.weights.T.contiguous(), self.hidden_bias, self.visible_bias)

    def energy(self, v: Tensor, h: Tensor) -> Tensor:
        """E(v, h) in nats, eq. 1; `v` [..., D] and `h` [..., M] broadcast over their leading dimensions."""
        return -((v @ self.weights) * h).sum(-1) - v @ self.visible_bias - h @ self.hidden_bias

    def log_unnormalized(self, v: Tensor) -> Tensor:
        """ln p*(v) = ln sum_h exp(-E(v, h)) in nats; `v` [..., D] gives [...] (eq. 2, numerator).

        Memory is that of two tensors [..., M]: give it many vectors in parts (`v.split(5_000)`).
        """
        require_width("v", v, self.num_visible)
        return v @ self.visible_bias + softplus(v @ self.weights + self.hidden_bias).sum(-1)

    def log_unnormalized_hidden(self, h: Tensor) -> Tensor:
        """ln sum_v exp(-E(v, h)) in nats; `h` [..., M] gives [...]."""
        require_width("h", h, self.num_hidden)
        return h @ self.hidden_bias + softplus(h @ self.weights.T + self.visible_bias).sum(-1)

    def hidden_probs(self, v: Tensor) -> Tensor:
        """p(h_j = 1 | v), eq. 5; `v` [..., D] gives [..., M]."""
        require_width("v", v, self.num_visible)
        return torch.sigmoid(v @ self.weights + self.hidden_bias)

    def visible_probs(self, h: Tensor) -> Tensor:
        """p(v_i = 1 | h), eq. 6; `h` [..., M] gives [..., D]."""
        require_width("h", h, self.num_hidden)
        return torch.sigmoid(h @ self.weights.T + self.visible_bias)

    def gibbs_step(self, v: Tensor, generator: torch.Generator) -> Tensor:
        """One step of block Gibbs sampling: h from p(h | v), then a new v from p(v | h); [..., D] to [..., D]."""
        h = bernoulli(self.hidden_probs(v), generator)
        return bernoulli(self.visible_probs(h), generator)

    def save(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str] | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Write the parameters; the suffix chooses the format.

        Parameters
        ----------
        path : path
            `.safetensors`, `.npz` (weights, visible_bias, hidden_bias) or `.mat` (vishid, visbiases, hidbiases).
        metadata : mapping of str to str, optional
            Kept in the file; `.safetensors` only.
        dtype : torch.dtype, optional
            Storage type, for example torch.float16 to halve the size. What is loaded later is the rounded model.

        Raises
        ------
        ValueError
            For another suffix, metadata in a format without room for it, or a parameter that overflows `dtype`.
        """
        path = Path(path)
        if path.suffix == ".safetensors":
            super().save(path, metadata, dtype)
            return
        if metadata:
            raise ValueError(
                f"metadata: expected none for a {path.suffix} file, got {len(metadata)} entries"
            )
        tensors = as_stored(self.tensors(), dtype)
        if path.suffix == ".npz":
            with storage.atomic_path(path) as temporary:
                np.savez(temporary, **{name: tensor.numpy() for name, tensor in tensors.items()})
        elif path.suffix == ".mat":
            from scipy.io import savemat

            arrays = {
                matlab: tensors[name].numpy()
                for name, matlab in zip(self.tensor_names, _MATLAB_NAMES, strict=True)
            }
            with storage.atomic_path(path) as temporary:
                savemat(temporary, arrays, oned_as="row")
        else:
            raise ValueError(f"path: expected a .safetensors, .npz or .mat file, got {path.name!r}")

    @classmethod
    def _read(cls, path: Path) -> list[object]:
        if path.suffix != ".mat":
            return super()._read(path)
        weights, *biases = (
            as_float_tensor(name, array)
            for name, array in read_tensors(path, _MATLAB_NAMES).items()
        )
        # MATLAB has no vectors: biases come as one row or one column.
        return [weights, *(bias.flatten() if 1 in bias.shape else bias for bias in biases)]
