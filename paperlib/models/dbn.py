"""The deep belief network (DBN): an RBM on top of directed layers (Hinton, Osindero & Teh 2006).

With hidden layers h^1 ... h^L, Salakhutdinov & Murray (2008), eq. 21 and the end of section 4.2:

    p(v, h^1, ..., h^L) = p(v | h^1) p(h^1 | h^2) ... p(h^{L-2} | h^{L-1}) p(h^{L-1}, h^L)

The last factor is the joint distribution of the top RBM, the others are that RBM's conditionals (eq. 6) from which each
layer was learned. The recognition distribution goes the other way,

    Q(h^1, ..., h^{L-1} | v) = Q(h^1 | v) Q(h^2 | h^1) ... Q(h^{L-1} | h^{L-2}),

each factor the RBM's own conditional (eq. 5). It is the true posterior only where the weights are tied.

Served chapter: 07-deep-belief-networks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from paperlib.models.files import read_arrays
from paperlib.models.rbm import RBM
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import bernoulli, bernoulli_log_prob, log_mean_exp, resolve_generator
from paperlib.validation import require_binary, require_count, require_shape, require_width

# Vectors times draws handled at once.
_BLOCK = 5_000


class DBN(TensorModel):
    """A deep belief network with binary units.

    Parameters
    ----------
    layers : sequence of RBM
        From the data upwards: `layers[0]` joins v and h^1, `layers[-1]` is the top RBM over h^{L-1} and h^L. The hidden
        units of each are the visible units of the next. One RBM alone is a DBN whose Q has nothing to guess.

    Raises
    ------
    ValueError
        If there is no layer, or neighbours differ in width, type or device.
    """

    layers: tuple[RBM, ...]

    def __init__(self, layers: Sequence[RBM]) -> None:
        self.layers = tuple(layers)
        if not self.layers:
            raise ValueError("layers: expected at least one RBM, got none")
        for number, (below, above) in enumerate(pairwise(self.layers), start=1):
            if above.num_visible != below.num_hidden:
                raise ValueError(
                    f"layers: expected {below.num_hidden} visible units in layer {number}, as many as layer "
                    f"{number - 1} has hidden ones, got {above.num_visible}"
                )
            if (above.dtype, above.device) != (below.dtype, below.device):
                raise ValueError(
                    f"layers: expected {below.dtype} on {below.device} in layer {number}, got {above.dtype} on "
                    f"{above.device}"
                )

    def __repr__(self) -> str:
        sizes = [self.num_visible, *(layer.num_hidden for layer in self.layers)]
        return f"DBN({'-'.join(map(str, sizes))}, {self.dtype}, {self.device})"

    @property
    def top(self) -> RBM:
        """The RBM over h^{L-1} and h^L, whose partition function is the DBN's."""
        return self.layers[-1]

    @property
    def directed(self) -> tuple[RBM, ...]:
        """The layers below the top, of which only the conditionals are used."""
        return self.layers[:-1]

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.layers[0].num_visible

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> DBN:
        """The same model on another device or in another floating-point type."""
        return DBN([layer.to(device, dtype) for layer in self.layers])

    def recognize(self, v: Tensor, generator: torch.Generator) -> list[Tensor]:
        """A draw of h^1, ..., h^{L-1} from Q(. | v); `v` [..., D] gives one tensor [..., M_l] per directed layer."""
        require_width("v", v, self.num_visible)
        hidden, below = [], v
        for layer in self.directed:
            below = bernoulli(layer.hidden_probs(below), generator)
            hidden.append(below)
        return hidden

    def log_recognition(self, v: Tensor, hidden: Sequence[Tensor]) -> Tensor:
        """ln Q(h^1, ..., h^{L-1} | v) in nats; shapes as in `log_joint_unnormalized`."""
        states = [v, *hidden]
        total = v.new_zeros(v.shape[:-1])
        for layer, (below, above) in zip(self.directed, pairwise(states), strict=True):
            total = total + bernoulli_log_prob(above, below @ layer.weights + layer.hidden_bias)
        return total

    def log_unnormalized(
        self, v: Tensor, num_samples: int = 500, generator: torch.Generator | None = None
    ) -> Tensor:
        """Estimate ln p*(v) = ln p(v) + ln Z by importance sampling from Q (RAISE paper, section 5.3).

        Parameters
        ----------
        v : Tensor, shape [N, D]
            Binary vectors of any type.
        num_samples : int
            Draws for each vector. The mean weight is unbiased for p*(v), its logarithm too low on average; its expectation
            for a single draw is the bound of `paperlib.estimators.dbn_lower_bound`.
        generator : torch.Generator, optional
            Source of randomness; a fresh one by default.

        Returns
        -------
        Tensor
            float64 [N], in nats.

        Raises
        ------
        ValueError
            If `v` is not binary, is empty or has another width, or `num_samples` is not a whole number of at least 1.
        """
        require_shape("v", v, [None, self.num_visible])
        require_binary("v", v)
        draws = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.device)
        # Filled, not collected: small results that stay between large ones that go keep the heap from being used again.
        estimates = torch.empty(len(v), dtype=torch.float64, device=self.device)
        size = max(1, _BLOCK // draws)
        for block, estimate in zip(v.split(size), estimates.split(size), strict=True):
            repeated = block.to(self.device, self.dtype).repeat_interleave(draws, 0)
            hidden = self.recognize(repeated, generator)
            log_weights = self.log_joint_unnormalized(repeated, hidden) - self.log_recognition(
                repeated, hidden
            )
            estimate.copy_(log_mean_exp(log_weights.double().view(-1, draws)))
        return estimates

    def log_joint_unnormalized(self, v: Tensor, hidden: Sequence[Tensor]) -> Tensor:
        """ln p*(v, h^1, ..., h^{L-1}) in nats, the top layer summed out; below eq. 21.

        Parameters
        ----------
        v : Tensor, shape [..., D]
            Visible vectors.
        hidden : sequence of Tensor, shapes [..., M_l]
            h^1, ..., h^{L-1}.
        """
        require_width("v", v, self.num_visible)
        if len(hidden) != len(self.directed):
            raise ValueError(
                f"hidden: expected {len(self.directed)} layers, as many as are directed, got {len(hidden)}"
            )
        states = [v, *hidden]
        total = self.top.log_unnormalized(states[-1])
        for layer, (below, above) in zip(self.directed, pairwise(states), strict=True):
            require_width("hidden", above, layer.num_hidden)
            total = total + bernoulli_log_prob(below, above @ layer.weights.T + layer.visible_bias)
        return total

    def generate(
        self, top_visible: Tensor, generator: torch.Generator, mean: bool = False
    ) -> Tensor:
        """Visible vectors below given states of h^{L-1}, layer by layer (eq. 6); [..., M_{L-1}] to [..., D].

        With `mean`, the lowest layer gives probabilities instead of draws, as one shows images.
        """
        require_width("top_visible", top_visible, self.top.num_visible)
        state = top_visible
        for number, layer in reversed(list(enumerate(self.directed))):
            state = layer.visible_probs(state)
            if number > 0 or not mean:
                state = bernoulli(state, generator)
        return state

    def sample(
        self, num_samples: int, gibbs_steps: int, generator: torch.Generator, mean: bool = False
    ) -> Tensor:
        """Approximate samples [num_samples, D]: Gibbs sampling in the top RBM from random states, then one pass down.

        Parameters
        ----------
        num_samples : int
            Independent chains.
        gibbs_steps : int
            Steps in the top RBM. Exact only in the limit.
        generator : torch.Generator
            Source of randomness.
        mean : bool
            As in `generate`; for a single RBM, too, probabilities of the visible units after the last step.

        Raises
        ------
        ValueError
            If a count is not a whole number of at least 1.
        """
        num_samples = require_count("num_samples", num_samples)
        steps = require_count("gibbs_steps", gibbs_steps)
        top = self.top
        state = bernoulli(top.weights.new_full((num_samples, top.num_visible), 0.5), generator)
        for _ in range(steps - 1):
            state = top.gibbs_step(state, generator)
        state = top.visible_probs(bernoulli(top.hidden_probs(state), generator))
        if self.directed or not mean:
            state = bernoulli(state, generator)
        return self.generate(state, generator, mean)

    def tensors(self) -> dict[str, Tensor]:
        """The parameters under the names `layers.0.weights` and so on, as a file stores them."""
        return {
            f"layers.{number}.{name}": tensor
            for number, layer in enumerate(self.layers)
            for name, tensor in layer.tensors().items()
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], dtype: torch.dtype | None = None) -> DBN:
        """Read a model that `save` wrote; `dtype` as in `RBM.load`.

        Raises
        ------
        ValueError
            If the file is missing, damaged, of another format, or its arrays do not make a DBN.
        """
        path = Path(path)
        arrays = dict(read_arrays(path))
        layers = []
        while f"layers.{len(layers)}.weights" in arrays:
            names = [f"layers.{len(layers)}.{name}" for name in RBM.tensor_names]
            missing = [name for name in names if name not in arrays]
            if missing:
                raise ValueError(f"path: expected {', '.join(missing)} in {path} too")
            try:
                layer = RBM(*(arrays.pop(name) for name in names))
            except ValueError as error:
                raise ValueError(
                    f"path: expected an RBM as layer {len(layers)} in {path}: {error}"
                ) from error
            layers.append(layer if dtype is None else layer.to(dtype=dtype))
        if arrays or not layers:
            raise ValueError(
                f"path: expected layers.0.weights, layers.0.visible_bias and so on in {path}, got "
                f"{', '.join(sorted(arrays)) or 'none'}"
            )
        try:
            return DBN(layers)
        except ValueError as error:
            raise ValueError(f"path: expected a DBN in {path}: {error}") from error
