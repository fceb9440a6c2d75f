"""The restricted Boltzmann machine (RBM): a bipartite undirected model of binary vectors.

With visible units `v` in {0, 1}^D and hidden units `h` in {0, 1}^M, Salakhutdinov & Murray (2008),
eq. 1-6:

    E(v, h) = - v' W h - b' v - a' h,        p(v, h) = exp(-E(v, h)) / Z

Given one layer, the units of the other are independent. One layer can therefore be summed out in
closed form, which gives ln p*(v) (`log_unnormalized`), and a Gibbs step updates a whole layer at
once. Only Z, which normalises them, needs an estimator or an enumeration of the smaller layer:
`paperlib.estimators` has both.

States are the last dimension of every argument, and any leading dimensions are a batch. The RAISE
paper calls the visible biases `a` and the hidden biases `b`; the names in this code, `visible_bias`
and `hidden_bias`, avoid the confusion.

Used in chapter: restricted-boltzmann-machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.memory import is_large, product, small_parts
from paperlib.models.files import Entry, as_stored, read_named
from paperlib.models.two_layers import TwoLayers
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator, softplus
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_bits, as_float_tensor, as_means, parameter

# Names of the arrays in the MATLAB models that the first paper's authors published.
_MATLAB_NAMES = ("vishid", "visbiases", "hidbiases")
# Inputs of visible units that are computed at once when hidden units are flipped: 2 MiB in float64.
_FLIPPED_INPUTS = 2**18
# Hidden units are flipped in multiples of this number, since torch adds up that many sums together.
_COLUMNS = 32
# Floating-point types that each file format can hold.
_NUMPY_FILE_TYPES = {
    ".npz": (torch.float16, torch.float32, torch.float64),
    ".mat": (torch.float32, torch.float64),
}


class RBM(TwoLayers, UnnormalizedModel):
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
    InputError
        If a shape does not fit or a parameter is NaN or infinite.

    Notes
    -----
    Parameters keep the device and the floating-point type of `weights` (integers become float64,
    half precision becomes float32); every method returns tensors of the same kind. The parameters
    are copies, so that a model stays what it was while its source is trained on; gradients flow
    through. Every method takes states as numbers of any type: bytes from `binarize`, booleans,
    numpy arrays, lists. Their values are 0 and 1, or an `InputError` says which are not.
    `hidden_probs` and `visible_probs` also take means, from 0 to 1.

    Examples
    --------
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> rbm
    RBM(3 visible, 2 hidden, torch.float64, cpu)
    >>> rbm.log_unnormalized([[1, 0, 1], [0, 0, 0]])
    tensor([1.1564, 1.4913], dtype=torch.float64)
    >>> rbm.hidden_probs([1, 0, 1])
    tensor([0.7685, 0.5000], dtype=torch.float64)
    """

    tensor_names = ("weights", "visible_bias", "hidden_bias")
    called = "an RBM"
    visible_bias: Tensor
    hidden_bias: Tensor

    def __init__(self, weights: object, visible_bias: object, hidden_bias: object) -> None:
        self.weights = parameter("weights", weights, [None, None])
        num_visible, num_hidden = self.weights.shape
        try:
            self.visible_bias = parameter("visible_bias", visible_bias, [num_visible], self.weights)
        except InputError as error:
            if getattr(visible_bias, "shape", None) != (num_hidden,):
                raise
            raise InputError(
                f"{error}; are the weights transposed? They are [visible, hidden]"
            ) from error
        self.hidden_bias = parameter("hidden_bias", hidden_bias, [num_hidden], self.weights)

    def __repr__(self) -> str:
        sizes = f"{self.num_visible} visible, {self.num_hidden} hidden"
        return f"RBM({sizes}, {self.dtype}, {self.device})"

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """Number of hidden units, as of a model with one hidden layer."""
        return (self.num_hidden,)

    @property
    def annealed(self) -> RBM:
        """The model itself."""
        return self

    @plain_torch()
    def energy(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """E(v, h) in nats, eq. 1.

        Binary `v` [..., D] and `h` [..., M] broadcast over their leading dimensions.
        """
        v = self._visible(v)
        h = self._hidden(h)
        return -((v @ self.weights) * h).sum(-1) - v @ self.visible_bias - h @ self.hidden_bias

    def log_unnormalized(self, v: ArrayLike) -> Tensor:
        """ln p*(v) = ln sum_h exp(-E(v, h)) in nats, the numerator of eq. 2.

        Binary `v` [..., D] gives [...]. It needs memory for two tensors [..., M], so pass many
        vectors in parts (`v.split(5_000)`).
        """
        return self._log_unnormalized(self._visible(v))

    @plain_torch()
    def _log_unnormalized(self, v: Tensor) -> Tensor:
        hidden_input = product(v, self.weights).add_(self.hidden_bias)
        return v @ self.visible_bias + softplus(hidden_input).sum(-1)

    def hidden_probs(self, v: ArrayLike) -> Tensor:
        """p(h_j = 1 | v), eq. 5; `v` [..., D], binary or means from 0 to 1, gives [..., M].

        For means, it is the logistic function of the mean input, as in mean field.
        """
        return self._hidden_probs(as_means("v", v, self.visible_bias, self.num_visible))

    @plain_torch()
    def _hidden_probs(self, v: Tensor) -> Tensor:
        return product(v, self.weights).add_(self.hidden_bias).sigmoid_()

    def log_unnormalized_hidden(self, h: ArrayLike) -> Tensor:
        """ln sum_v exp(-E(v, h)) in nats; binary `h` [..., M] gives [...]."""
        return self._log_unnormalized_hidden(self._hidden(h))

    @plain_torch()
    def _log_unnormalized_hidden(self, h: Tensor) -> Tensor:
        inputs = self._visible_inputs(h)
        if inputs.ndim == 2:
            log_sums = torch.cat([softplus(part).sum(-1) for part in small_parts(inputs)])
        else:
            log_sums = softplus(inputs).sum(-1)
        return h @ self.hidden_bias + log_sums

    @plain_torch()
    def log_unnormalized_flips(self, h: ArrayLike) -> Tensor:
        """`log_unnormalized_hidden` of the M states that differ from `h` in one unit, in nats.

        Binary `h` [..., M] gives [..., M]. A flip changes the inputs of the visible units by one
        column of the weights, so that no product is needed for each state.
        """
        h = self._hidden(h)
        flips = 1 - 2 * h
        log_sums = self._flipped_sums(
            self._visible_inputs(h).reshape(-1, self.num_visible),
            flips.reshape(-1, self.num_hidden),
        )
        log_sums = log_sums.reshape(flips.shape)
        return (h @ self.hidden_bias)[..., None] + flips * self.hidden_bias + log_sums

    def _flipped_sums(self, inputs: Tensor, flips: Tensor) -> Tensor:
        """Sums of softplus of the inputs [n, D] after each of the flips [n, M], of 1 or -1."""
        columns = max(_COLUMNS, _FLIPPED_INPUTS // self.num_visible // _COLUMNS * _COLUMNS)
        rows = max(1, _FLIPPED_INPUTS // (min(columns, self.num_hidden) * self.num_visible))
        # A single last unit joins the slice before it, since its sum alone would be rounded
        # in another way.
        firsts = range(0, max(1, self.num_hidden - 1), columns)
        slices = [slice(first, first + columns) for first in firsts[:-1]]
        slices.append(slice(firsts[-1], None))
        # Written in place: small results between large blocks that come and go would leave holes.
        sums = torch.empty_like(flips)
        blocks = zip(sums.split(rows), inputs.split(rows), flips.split(rows), strict=True)
        for block_sums, block_inputs, block_flips in blocks:
            for units in slices:
                # units last, as in the weights, whose rows are then read from one end to the other
                changes = block_flips[:, None, units] * self.weights[:, units].to(inputs.dtype)
                flipped = changes.add_(block_inputs[..., None])
                block_sums[:, units] = softplus(flipped).sum(1)
        return sums

    def transposed(self) -> RBM:
        """The same joint distribution with the roles of the two layers exchanged."""
        return RBM(self.weights.T.contiguous(), self.hidden_bias, self.visible_bias)

    def visible_probs(self, h: ArrayLike) -> Tensor:
        """p(v_i = 1 | h), eq. 6; `h` [..., M], binary or means from 0 to 1, gives [..., D]."""
        return self._visible_probs(as_means("h", h, self.hidden_bias, self.num_hidden))

    def _visible_probs(self, h: Tensor) -> Tensor:
        return self._visible_inputs(h).sigmoid_()

    def gibbs_step(self, v: ArrayLike, generator: torch.Generator | int) -> Tensor:
        """One step of block Gibbs sampling: h from p(h | v), then a new v from p(v | h).

        Binary `v` [..., D] gives [..., D]. A seed begins anew at each call, so give a chain a
        generator.
        """
        generator = resolve_generator(generator, self.device)
        return self._gibbs_step(self._visible(v), generator)

    def _gibbs_step(self, v: Tensor, generator: torch.Generator) -> Tensor:
        """`gibbs_step` for the states of a chain, without checking their values."""
        h = bernoulli(self._hidden_probs(v), generator)
        return bernoulli(self._visible_probs(h), generator)

    def _visible(self, v: object) -> Tensor:
        return as_bits("v", v, self.visible_bias, self.num_visible)

    def _hidden(self, h: object) -> Tensor:
        return as_bits("h", h, self.hidden_bias, self.num_hidden)

    @plain_torch()
    def _visible_inputs(self, h: Tensor) -> Tensor:
        """b + W h, [..., D]."""
        return product(h, self.weights.T).add_(self.visible_bias)

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
            `.safetensors`, `.npz` (weights, visible_bias, hidden_bias) or `.mat` (vishid,
            visbiases, hidbiases).
        metadata : mapping of str to str, optional
            Stored in the file; `.safetensors` only.
        dtype : torch.dtype, optional
            Storage type, for example torch.float16 to halve the size. Loading then gives the
            rounded model.

        Raises
        ------
        InputError
            If the suffix is another, the format has no room for metadata or cannot hold `dtype`, or
            a parameter overflows `dtype`.
        """
        path = Path(path)
        if path.suffix == ".safetensors":
            super().save(path, metadata, dtype)
            return
        if metadata:
            raise InputError(
                f"metadata: expected none for a {path.suffix} file, got {len(metadata)} entries"
            )
        types = _NUMPY_FILE_TYPES.get(path.suffix)
        if types is None:
            raise InputError(f"path: expected a .safetensors, .npz or .mat file, got {path.name!r}")
        if dtype not in (None, *types):
            raise InputError(
                f"dtype: expected one of {', '.join(map(str, types))} in a {path.suffix} file, "
                f"got {dtype}"
            )
        tensors = as_stored(self.tensors(), dtype)
        names = self.tensor_names if path.suffix == ".npz" else _MATLAB_NAMES
        arrays: dict[str, Any] = {
            name: tensor.numpy() for name, tensor in zip(names, tensors.values(), strict=True)
        }
        with storage.atomic_path(path) as temporary:
            if path.suffix == ".npz":
                np.savez(temporary, **arrays)
            else:
                from scipy.io import savemat

                savemat(temporary, arrays, oned_as="row")

    @classmethod
    def _read(cls, path: Path) -> Mapping[str, Entry]:
        if path.suffix.lower() != ".mat":
            return super()._read(path)
        arrays = read_named(path, _MATLAB_NAMES)
        try:
            weights, *biases = (as_float_tensor(name, array) for name, array in arrays.items())
        except InputError as error:
            raise InputError(f"path: expected {cls.called} in {path}: {error}") from error
        # MATLAB has no vectors: biases come as one row or one column.
        biases = [bias.flatten() if 1 in bias.shape else bias for bias in biases]
        return dict(zip(cls.tensor_names, [weights, *biases], strict=True))


def in_double(rbm: RBM) -> RBM:
    """`rbm` in float64, for computations that change nothing.

    An RBM that is in float64 already is returned itself. The weights of a large one stay in their
    type, and products copy a few at a time.
    """
    if rbm.dtype == torch.float64:
        return rbm
    if type(rbm) is not RBM:
        return rbm.to(dtype=torch.float64)
    # Its constructor would give all parameters the type of the weights, and copy them once more.
    double = RBM.__new__(RBM)
    weights = rbm.weights.detach()
    double.weights = weights if is_large(weights) else weights.double()
    double.visible_bias = rbm.visible_bias.detach().double()
    double.hidden_bias = rbm.hidden_bias.detach().double()
    return double


def as_rbm(name: str, model: object) -> RBM:
    """`model`; raise unless it is an RBM."""
    if not isinstance(model, RBM):
        raise InputError(f"{name}: expected an RBM, got {type(model).__name__}")
    return model
