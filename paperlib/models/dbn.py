"""The deep belief network (DBN): an RBM on top of directed layers (Hinton, Osindero & Teh 2006).

With hidden layers h^1 ... h^L, Salakhutdinov & Murray (2008), eq. 21 and the end of section 4.2:

    p(v, h^1, ..., h^L) = p(v | h^1) p(h^1 | h^2) ... p(h^{L-2} | h^{L-1}) p(h^{L-1}, h^L)

The last factor is the joint distribution of the top RBM. Each of the others is a conditional (eq.
6) of the RBM from which that layer was learned. The recognition distribution goes the other way,

    Q(h^1, ..., h^{L-1} | v) = Q(h^1 | v) Q(h^2 | h^1) ... Q(h^{L-1} | h^{L-2}),

where each factor is the upward conditional of that layer's RBM (eq. 5). It is the true posterior
only if the weights are tied.

ln Z is that of the top RBM. ln p*(v) is estimated by importance sampling from Q
(`log_unnormalized`), bounded from below (`variational_bound`, eq. 22 to 24), or enumerated where
the layers below the top are small (`exact_log_unnormalized`). If unsure: the estimate with its 500
draws. Like the bound it is too low on average, but by less.

Used in chapter: deep-belief-networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models.enumeration import can_enumerate, sum_over_states
from paperlib.models.files import Entry, read_arrays
from paperlib.models.posterior_sampling import Proposal, log_mean_weights
from paperlib.models.rbm import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import (
    all_states,
    bernoulli_entropy,
    bernoulli_log_prob,
    resolve_generator,
    softplus,
)
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary, as_bits, require_count

# For the variational bound: rows times draws handled at once,
_BLOCK = 5_000
# draws of the hidden units for each row,
_BOUND_DRAWS = 5
# and the fewest draws of all rows together that still tell their own error.
_FEWEST_IN_ALL = 200


class DBN(UnnormalizedModel):
    """A deep belief network with binary units.

    Parameters
    ----------
    layers : sequence of RBM
        From the data upwards: `layers[0]` joins v and h^1, `layers[-1]` is the top RBM over h^{L-1}
        and h^L. The hidden units of each are the visible units of the next. A single RBM is a DBN
        whose Q has no layers to draw.

    Raises
    ------
    InputError
        If there is no layer, or neighbours differ in width, type or device.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> below = RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0])
    >>> dbn = DBN([below, below.transposed()])
    >>> dbn
    DBN(2-2-2, torch.float64, cpu)
    >>> round(dbn.log_joint_unnormalized([1, 0], hidden=[[0, 1]]).item(), 4)
    -1.0
    """

    called = "a DBN"
    layers: tuple[RBM, ...]
    bound_is_proven: ClassVar[bool] = False
    draws_once_for_raise: ClassVar[bool] = True

    def __init__(self, layers: Sequence[RBM]) -> None:
        self.layers = tuple(layers)
        if not self.layers:
            raise InputError("layers: expected at least one RBM, got none")
        for number, (below, above) in enumerate(pairwise(self.layers), start=1):
            if above.num_visible != below.num_hidden:
                raise InputError(
                    f"layers: expected {below.num_hidden} visible units in layer {number}, as many "
                    f"as layer {number - 1} has hidden ones, got {above.num_visible}"
                )
            if (above.dtype, above.device) != (below.dtype, below.device):
                raise InputError(
                    f"layers: expected {below.dtype} on {below.device} in layer {number}, "
                    f"got {above.dtype} on {above.device}"
                )

    @property
    def top(self) -> RBM:
        """The RBM over h^{L-1} and h^L, whose partition function is the DBN's."""
        return self.layers[-1]

    @property
    def directed(self) -> tuple[RBM, ...]:
        """The layers below the top; only their conditionals are used."""
        return self.layers[:-1]

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.layers[0].num_visible

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """Number of units of h^1, ..., h^L."""
        return tuple(layer.num_hidden for layer in self.layers)

    @property
    def annealed(self) -> RBM:
        """`top`, which has the same ln Z."""
        return self.top

    def proposal(self, rows: Tensor) -> Proposal:
        """The recognition distribution of binary rows [N, D]."""
        return _Recognition(self, rows.to(self.device, self.dtype))

    def annealed_units(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """h^{L-1}, as Q draws it for binary rows [N, D]."""
        rows = rows.to(self.device, self.dtype)
        hidden = self.recognize(rows, generator)
        return hidden[-1] if hidden else rows

    def completed(self, units: Tensor, generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        """Visible vectors with their hidden layers, from h^{L-1} [N, M_{L-1}], layer by layer."""
        states = [units]
        for layer in reversed(self.directed):
            states.insert(0, bernoulli(layer.visible_probs(states[0]), generator))
        return states[0], states[1:]

    def recognize(self, v: ArrayLike, generator: torch.Generator | int) -> list[Tensor]:
        """A draw of h^1, ..., h^{L-1} from Q(. | v).

        Binary `v` [..., D] gives one tensor [..., M_l] for each directed layer.
        """
        generator = resolve_generator(generator, self.device)
        return _Recognition(self, self._visible(v)).draw(generator)

    def log_recognition(self, v: ArrayLike, hidden: Sequence[ArrayLike]) -> Tensor:
        """ln Q(h^1, ..., h^{L-1} | v) in nats; shapes and errors as in `log_joint_unnormalized`."""
        v, *hidden = self._states(v, hidden)
        return sum(_Recognition(self, v).log_layers(hidden), v.new_zeros(v.shape[:-1]))

    def log_unnormalized(
        self, v: ArrayLike, num_samples: int = 500, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """Estimate ln p*(v) = ln p(v) + ln Z by importance sampling from Q.

        The method is that of section 5.3 of the RAISE paper.

        Parameters
        ----------
        v : array or Tensor, shape [N, D]
            Binary vectors of any type.
        num_samples : int
            Draws for each vector. The mean weight is unbiased for p*(v), but its logarithm is too
            low on average; with a single draw, the logarithm's expectation is the bound of
            `paperlib.estimators.dbn_lower_bound`.
        generator : torch.Generator or int, optional
            Source of randomness; a fresh one by default.

        Returns
        -------
        Tensor
            float64 [N], in nats.

        Raises
        ------
        InputError
            If `v` is not binary, is empty or has the wrong width, or `num_samples` is not a whole
            number of at least 1.
        """
        v = as_binary("v", v, self.num_visible)
        draws = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.device)

        def proposal(part: slice) -> Proposal:
            return self.proposal(v[part].repeat_interleave(draws, 0))

        return log_mean_weights(len(v), draws, proposal, generator, self.device)

    _log_unnormalized_block = log_unnormalized

    def is_exact(self, num_rows: int) -> bool:
        """Whether all layers but the top one can be enumerated in seconds for this many rows."""
        return can_enumerate(num_rows, self.hidden_layers[:-1])

    @plain_torch()
    def exact_log_unnormalized(self, rows: Tensor) -> Tensor:
        """ln p*(v) of rows [N, D] by enumeration of all layers but the top one.

        The result is float64 [N] on the CPU, in nats. From the top down, p*(h^l) = sum over h^{l+1}
        of p(h^l | h^{l+1}) p*(h^{l+1}).
        """
        model = self.to("cpu", torch.float64)
        if not model.directed:
            return model.top.log_unnormalized_of(rows)
        states = all_states(model.top.num_visible)
        log_p = model.top.log_unnormalized(states)
        for number, layer in reversed(list(enumerate(model.directed))):
            below = rows if number == 0 else all_states(layer.num_visible)
            masses = log_p - softplus(states @ layer.weights.T + layer.visible_bias).sum(1)
            log_p = sum_over_states(below, states, masses, layer.weights, layer.visible_bias)
            states = below
        return log_p

    @torch.no_grad()
    @plain_torch()
    def bound_terms(
        self, v: Tensor, num_samples: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The terms of the variational bound on ln p*(v) of binary `v` [N, D], eq. 22 to 24.

        Returns
        -------
        log_joint : Tensor, shape [N, num_samples]
            ln p*(v, h) of draws of h from Q, float64, in nats. The entropies of all layers but h^1,
            which depend on the draw, are included.
        entropy : Tensor, shape [N]
            The entropy of Q(h^1 | v), float64, in nats.
        """
        # Results are written into tensors allocated in advance. Small results, each allocated
        # between large temporary tensors, would fragment the memory of the large ones.
        log_joints = torch.empty(len(v), num_samples, dtype=torch.float64, device=self.device)
        entropies = torch.zeros(len(v), dtype=torch.float64, device=self.device)
        size = max(1, _BLOCK // num_samples)
        parts = zip(v.split(size), log_joints.split(size), entropies.split(size), strict=True)
        for block, log_joint, first_entropy in parts:
            cases = block.to(self.device, self.dtype)
            below = cases.repeat_interleave(num_samples, 0)
            states = []
            entropy = []
            for layer in self.directed:
                logits = below @ layer.weights + layer.hidden_bias
                entropy.append(bernoulli_entropy(logits).double())
                below = bernoulli(torch.sigmoid(logits), generator)
                states.append(below)
            values = self._log_joint_unnormalized(
                [cases.repeat_interleave(num_samples, 0), *states]
            )
            # The first entropy is the same for all draws of a row; the others differ between draws,
            # and enter each.
            log_joint.copy_((values.double() + sum(entropy[1:])).view(-1, num_samples))
            if entropy:
                first_entropy.copy_(entropy[0][::num_samples])
        return log_joints, entropies

    def variational_bound(
        self, rows: Tensor, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """The variational bound on ln p*(v) of rows [N, D], from a few draws for each.

        The result is float64 [N] on the CPU, in nats.
        """
        return self.bound_draws(rows, generator).mean(1)

    def bound_draws(self, rows: Tensor, generator: torch.Generator | int | None = None) -> Tensor:
        """Single draws of the variational bound on ln p*(v) of rows [N, D].

        The result is float64 [N, draws] on the CPU, in nats.
        """
        generator = resolve_generator(generator, self.device)
        draws = max(_BOUND_DRAWS, _FEWEST_IN_ALL // len(rows))
        log_joint, entropy = self.bound_terms(rows, draws, generator)
        return (log_joint + entropy[:, None]).cpu()

    def log_joint_unnormalized(self, v: ArrayLike, hidden: Sequence[ArrayLike]) -> Tensor:
        """ln p*(v, h^1, ..., h^{L-1}) in nats, with the top layer summed out (below eq. 21).

        Parameters
        ----------
        v : array or Tensor, shape [..., D]
            Binary visible vectors.
        hidden : sequence of arrays or Tensors, shapes [..., M_l]
            h^1, ..., h^{L-1}, binary as well.

        Raises
        ------
        InputError
            If `hidden` has the wrong number of layers, a layer has the wrong width, or a value is
            neither 0 nor 1.
        """
        return self._log_joint_unnormalized(self._states(v, hidden))

    def _log_joint_unnormalized(self, states: Sequence[Tensor]) -> Tensor:
        """The same for v, h^1, ..., h^{L-1} of the model's type, without checking their values."""
        return self.top._log_unnormalized(states[-1]) + self._log_directed(states)

    def log_directed(self, v: object, hidden: Sequence[object]) -> Tensor:
        """ln p(v | h^1) + ln p(h^1 | h^2) + ... in nats, over all directed layers; [...].

        This is the directed layers' part of `log_joint_unnormalized`, with the same arguments and
        errors.
        """
        return self._log_directed(self._states(v, hidden))

    @plain_torch()
    def _log_directed(self, states: Sequence[Tensor]) -> Tensor:
        total = states[0].new_zeros(states[0].shape[:-1])
        for layer, (below, above) in zip(self.directed, pairwise(states), strict=True):
            total = total + bernoulli_log_prob(below, above @ layer.weights.T + layer.visible_bias)
        return total

    def generate(
        self, top_visible: ArrayLike, generator: torch.Generator | int, mean: bool = False
    ) -> Tensor:
        """Visible vectors drawn layer by layer (eq. 6) from binary states of h^{L-1}.

        `top_visible` [..., M_{L-1}] gives [..., D]. With `mean`, the lowest layer gives
        probabilities instead of draws, as is usual for showing images.
        """
        state = as_bits("top_visible", top_visible, self.top.weights, self.top.num_visible)
        return self._generate(state, resolve_generator(generator, self.device), mean)

    def _generate(self, state: Tensor, generator: torch.Generator, mean: bool) -> Tensor:
        for number, layer in reversed(list(enumerate(self.directed))):
            state = layer._visible_probs(state)
            if number > 0 or not mean:
                state = bernoulli(state, generator)
        return state

    def sample(
        self,
        num_samples: int,
        gibbs_steps: int,
        generator: torch.Generator | int,
        mean: bool = False,
    ) -> Tensor:
        """Approximate samples, [num_samples, D].

        They come from Gibbs sampling in the top RBM, which starts at random states, and one pass
        down through the directed layers.

        Parameters
        ----------
        num_samples : int
            Number of independent chains.
        gibbs_steps : int
            Number of steps in the top RBM. Samples are exact only in the limit.
        generator : torch.Generator or int
            Source of randomness.
        mean : bool
            As in `generate`; for a single RBM, too, it gives probabilities of the visible units
            after the last step.

        Raises
        ------
        InputError
            If a count is not a whole number of at least 1.
        """
        num_samples = require_count("num_samples", num_samples)
        steps = require_count("gibbs_steps", gibbs_steps)
        generator = resolve_generator(generator, self.device)
        top = self.top
        state = bernoulli(top.weights.new_full((num_samples, top.num_visible), 0.5), generator)
        for _ in range(steps - 1):
            state = top._gibbs_step(state, generator)
        state = top.visible_probs(bernoulli(top.hidden_probs(state), generator))
        if self.directed or not mean:
            state = bernoulli(state, generator)
        return self._generate(state, generator, mean)

    def tensors(self) -> dict[str, Tensor]:
        """The parameters under the names `layers.0.weights` and so on, as a file stores them."""
        return {
            f"layers.{number}.{name}": tensor
            for number, layer in enumerate(self.layers)
            for name, tensor in layer.tensors().items()
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, object]) -> Self:
        """The DBN with these parameters, named as in `tensors`.

        Raises
        ------
        InputError
            If a parameter is missing, is not expected, or does not fit the others.
        """
        rest = dict(tensors)
        layers = []
        while rest:
            names = [f"layers.{len(layers)}.{name}" for name in RBM.tensor_names]
            missing = [name for name in names if name not in rest]
            if missing:
                raise InputError(f"expected {', '.join(missing)}, got {', '.join(sorted(tensors))}")
            try:
                layers.append(RBM(*(rest.pop(name) for name in names)))
            except InputError as error:
                raise InputError(f"expected an RBM as layer {len(layers)}: {error}") from error
        return cls(layers)

    @classmethod
    def _read(cls, path: Path) -> Mapping[str, Entry]:
        return read_arrays(path)

    def _visible(self, v: object) -> Tensor:
        return as_bits("v", v, self.layers[0].weights, self.num_visible)

    def _states(self, v: object, hidden: Sequence[object]) -> list[Tensor]:
        """v, h^1, ..., h^{L-1}."""
        if len(hidden) != len(self.directed):
            raise InputError(
                f"hidden: expected {len(self.directed)} layers, as many as are directed, "
                f"got {len(hidden)}"
            )
        above = [
            as_bits("hidden", states, layer.weights, layer.num_hidden)
            for layer, states in zip(self.directed, hidden, strict=True)
        ]
        return [self._visible(v), *above]


class _Recognition(Proposal):
    """Q of a DBN for rows [N, D] of its type."""

    def __init__(self, dbn: DBN, rows: Tensor) -> None:
        self.num_layers = len(dbn.directed)
        self._dbn = dbn
        self._rows = rows
        # The logits of the first layer depend on the rows alone, so they are computed once.
        self._first = self._upwards(0, rows) if dbn.directed else rows[..., :0]

    @plain_torch()
    def _upwards(self, layer: int, below: Tensor) -> Tensor:
        rbm = self._dbn.directed[layer]
        return below @ rbm.weights + rbm.hidden_bias

    def logits(self, layer: int, hidden: Sequence[Tensor]) -> Tensor:
        return self._first if layer == 0 else self._upwards(layer, hidden[layer - 1])

    def log_joint(self, hidden: Sequence[Tensor]) -> Tensor:
        return self._dbn._log_joint_unnormalized([self._rows, *hidden])
