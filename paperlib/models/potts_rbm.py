"""The RBM with categorical visible units, as in models of proteins and RNA, and binary hidden units.

Each of L sites is in one of q states (a Potts variable). With each site written as q bits of which one is on, v in {0, 1}^{L q},

    E(v, h) = - v' W h - b' v - a' h,        p(v, h) = exp(-E(v, h)) / Z

is the energy of a binary RBM, and everything conditional on v is the same as well. Only the sum over v differs: it has one
term for each state of a site, so that

    ln sum_v e^{-E(v, h)} = a' h + sum_i ln sum_s e^{b_is + (W h)_is}.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import draw_categories
from paperlib.kernels.draws import bernoulli
from paperlib.models.rbm import RBM, TwoLayerModel
from paperlib.models.unnormalized_model import Sites
from paperlib.validation import (
    ArrayLike,
    as_binary,
    as_categories,
    as_float_tensor,
    as_tensor,
    parameter,
)

# The lowest rate of which a logarithm is taken.
_SMALLEST = 1e-30


class PottsRBM(TwoLayerModel):
    """An RBM with categorical visible units and binary hidden units.

    Parameters
    ----------
    weights : array or Tensor, shape [L, q, M]
        Interaction of state s of site i with hidden unit j.
    visible_bias : array or Tensor, shape [L, q]
        Fields of the states, b.
    hidden_bias : array or Tensor, shape [M]
        The biases a of the hidden units.

    Raises
    ------
    InputError
        If a shape does not fit, there are fewer than two states, or a parameter is NaN or infinite.

    Notes
    -----
    Every method takes and returns visible units as D = L q bits, [..., D], with the bits of a site side by side. `one_hot` makes
    them from the numbers of states, and `sequences` converts them back. Types and devices are as in `RBM`.

    Examples
    --------
    >>> model = PottsRBM(torch.ones(2, 3, 1), torch.zeros(2, 3), [0.0])
    >>> model
    PottsRBM(2 sites of 3 states, 1 hidden, torch.float32, cpu)
    >>> model.log_unnormalized(model.one_hot([[0, 2]]))  # ln(1 + e^2)
    tensor([2.1269])
    """

    called = "a Potts RBM"
    rows_are: ClassVar[str] = "sequences"

    def __init__(self, weights: object, visible_bias: object, hidden_bias: object) -> None:
        self.weights = parameter("weights", weights, [None, None, None])
        sites, states, hidden = self.weights.shape
        if states < 2:
            raise InputError(f"weights: expected at least two states of a site, got {states}")
        self.visible_bias = parameter("visible_bias", visible_bias, [sites, states], self.weights)
        self.hidden_bias = parameter("hidden_bias", hidden_bias, [hidden], self.weights)
        self._flat = RBM(self.weights.flatten(0, 1), self.visible_bias.flatten(), self.hidden_bias)

    def __repr__(self) -> str:
        return (
            f"PottsRBM({self.num_sites} sites of {self.num_states} states, {self.num_hidden} hidden, "
            f"{self.dtype}, {self.device})"
        )

    @property
    def flat(self) -> RBM:
        """The RBM with binary units that has the same energy."""
        return self._flat

    @property
    def annealed(self) -> PottsRBM:
        """The model itself."""
        return self

    @property
    def num_sites(self) -> int:
        """Number of sites, L."""
        return self.weights.shape[0]

    @property
    def num_states(self) -> int:
        """Number of states of a site, q."""
        return self.weights.shape[1]

    @property
    def num_visible(self) -> int:
        """Number of visible bits, D = L q."""
        return self.num_sites * self.num_states

    @property
    def description(self) -> str:
        """The kind of the model and its sizes, in words."""
        return f"RBM with {self.num_sites:,} visible sites of {self.num_states} states and {self.num_hidden:,} hidden units"

    @property
    def sites(self) -> Sites:
        """The parameters, with energies counted from the first state of each site."""
        first, first_bias = self.weights[:, 0], self.visible_bias[:, 0]
        return Sites(
            self.weights[:, 1:] - first[:, None],
            self.visible_bias[:, 1:] - first_bias[:, None],
            self.hidden_bias + first.sum(0),
            first_bias.sum().item(),
        )

    @property
    def enumerated_units(self) -> int:
        """The hidden layer is enumerated, whatever its size."""
        return self.num_hidden

    def as_rows(self, name: str, values: object) -> Tensor:
        """Data as bits [N, L q], from state numbers [N, L] or from bits.

        Raises
        ------
        InputError
            If the data have another width, or are neither state numbers nor bits with exactly one on at each site.
        """
        rows = as_tensor(name, values)
        if rows.ndim == 2 and rows.shape[1] == self.num_sites:
            try:
                return self.one_hot(rows)
            except InputError as error:
                raise InputError(f"{name}: {str(error).partition(': ')[2]}") from error
        bits = as_binary(name, rows, self.num_visible)
        if bool((self._by_site(bits).sum(-1) != 1).any()):
            raise InputError(
                f"{name}: expected one bit on of each site's {self.num_states}, got another number"
            )
        return bits

    def by_site(self, rates: Tensor) -> Tensor:
        """Rates of the bits, [..., L q], as distributions over the states of each site, [..., L, q]."""
        sites = self._by_site(rates)
        return sites / sites.sum(-1, keepdim=True)

    def draw_visible(self, rates: Tensor, generator: torch.Generator) -> Tensor:
        """One state for each site, as bits, with these rates of the bits, [..., L q]."""
        rates = as_float_tensor("rates", rates)
        logits = rates.clamp(min=_SMALLEST).log()
        return draw_categories(logits, self.num_states, generator).to(rates.dtype)

    def one_hot(self, sequences: ArrayLike) -> Tensor:
        """The bits of sequences of states.

        Parameters
        ----------
        sequences : array or Tensor, shape [..., L]
            Whole numbers from 0 to q - 1.

        Returns
        -------
        Tensor, shape [..., L q]
            uint8.

        Raises
        ------
        InputError
            If the last dimension is not L, or a number is not a state.
        """
        states = as_categories("sequences", sequences, self.num_states)
        if states.ndim == 0 or states.shape[-1] != self.num_sites:
            raise InputError(
                f"sequences: expected {self.num_sites} sites in the last dimension, got {list(states.shape)}"
            )
        bits = torch.nn.functional.one_hot(states, self.num_states)
        return bits.flatten(-2).to(torch.uint8)

    def sequences(self, v: ArrayLike) -> Tensor:
        """The states of bits [..., L q], int64 [..., L]."""
        return self._by_site(self._visible(v)).argmax(-1)

    def visible_probs(self, h: ArrayLike) -> Tensor:
        """p(v_is = 1 | h), a distribution over the states of each site; `h` [..., M] gives [..., D]."""
        h = self._hidden(h)
        return self._by_site(self._visible_inputs(h)).softmax(-1).flatten(-2)

    def gibbs_step(self, v: ArrayLike, generator: torch.Generator) -> Tensor:
        """One step of block Gibbs sampling: h from p(h | v), then a new v from p(v | h); [..., D] to [..., D]."""
        h = bernoulli(self.hidden_probs(v), generator)
        return draw_categories(self._visible_inputs(h), self.num_states, generator).to(self.dtype)

    def _log_sums(self, visible_inputs: Tensor) -> Tensor:
        return self._by_site(visible_inputs).logsumexp(-1).sum(-1)

    def _by_site(self, bits: Tensor) -> Tensor:
        return bits.unflatten(-1, (self.num_sites, self.num_states))
