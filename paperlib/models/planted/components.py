"""RBMs that fall apart into small pieces: ln Z is the sum over the pieces, each of which is enumerated.

Units that are not joined by a chain of non-zero weights are independent. Hence Z = prod_c Z_c over the connected components c of the graph
whose edges are the non-zero weights, and each Z_c is a sum over the states of the component's smaller layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models.planted.planted_model import Draws, Planted, draw_indices
from paperlib.models.rbm import RBM, as_rbm
from paperlib.numerics import bits, softplus

# With 784 units in the larger layer, enumeration then takes half a minute.
_MOST_UNITS = 20
# Numbers held at once while states are enumerated: 32 MiB.
_BLOCK_NUMBERS = 2**22


def from_components(rbm: RBM) -> Planted:
    """A planted model from an RBM that falls apart into pieces that can be enumerated.

    Parameters
    ----------
    rbm : RBM
        The model. Each connected component of its non-zero weights must have at most 20 units in its smaller layer. An RBM with at most
        20 hidden units is a special case.

    Returns
    -------
    Planted
        Holds the same model, not a copy.

    Raises
    ------
    InputError
        If a component is larger.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> rbm = RBM([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> print(f"{from_components(rbm).log_z:.6f} = {exact_log_z(rbm):.6f}")
    4.313659 = 4.313659
    """
    components = Components(require_rbm(rbm))
    return Planted(rbm, components.log_z, Draws(components.draw))


def require_rbm(rbm: object) -> RBM:
    """`rbm`; raise unless it is an RBM on the CPU."""
    rbm = as_rbm("rbm", rbm)
    if rbm.device.type != "cpu":
        raise InputError(f"rbm: expected a model on the CPU, got one on {rbm.device}")
    return rbm


@dataclass(frozen=True)
class _Component:
    """One connected component, with weights and biases in float64; `smaller` is the layer that is enumerated."""

    visible: Tensor  # indices of its visible units
    weights: Tensor  # [smaller, larger]
    smaller_bias: Tensor
    larger_bias: Tensor
    smaller_is_visible: bool

    @cached_property
    def log_masses(self) -> Tensor:
        """ln of the sum over the larger layer, for every state of the smaller one: [2^smaller]."""
        units, others = self.weights.shape
        numbers = torch.arange(2**units)
        return torch.cat(
            [
                states @ self.smaller_bias
                + softplus(states @ self.weights + self.larger_bias).sum(-1)
                for part in numbers.split(max(1, _BLOCK_NUMBERS // max(1, others)))
                for states in [bits(part, units).double()]
            ]
        )

    def draw_visible(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """[num_draws, visible units of the component], float64."""
        drawn = draw_indices(self.log_masses, num_draws, generator)
        states = bits(drawn, len(self.weights)).double()
        if self.smaller_is_visible:
            return states
        return bernoulli(torch.sigmoid(states @ self.weights + self.larger_bias), generator)


@dataclass(frozen=True)
class Components:
    """An RBM split into its connected components, with `shift` [D] added to its visible biases in float64."""

    rbm: RBM
    shift: Tensor | None = None

    @cached_property
    def _components(self) -> list[_Component]:
        model = self.rbm.to(dtype=torch.float64)
        visible_bias = model.visible_bias
        if self.shift is not None:
            visible_bias = visible_bias + self.shift
        found = []
        for visible, hidden in _component_units(model.weights):
            weights = model.weights[visible][:, hidden]
            here, there = visible_bias[visible], model.hidden_bias[hidden]
            if min(len(visible), len(hidden)) > _MOST_UNITS:
                raise InputError(
                    f"rbm: expected components with at most {_MOST_UNITS} units in their smaller layer, "
                    f"got one of {len(visible)} visible and {len(hidden)} hidden units"
                )
            found.append(
                _Component(visible, weights, here, there, smaller_is_visible=True)
                if len(visible) < len(hidden)
                else _Component(visible, weights.T, there, here, smaller_is_visible=False)
            )
        return found

    @cached_property
    def log_z(self) -> float:
        """ln Z in nats."""
        return sum(torch.logsumexp(part.log_masses, 0).item() for part in self._components)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Each component on its own."""
        drawn = torch.empty(num_draws, self.rbm.num_visible, dtype=self.rbm.dtype)
        for part in self._components:
            drawn[:, part.visible] = part.draw_visible(num_draws, generator).to(drawn.dtype)
        return drawn


def _component_units(weights: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The indices of the visible and of the hidden units of each connected component of the non-zero `weights` [D, M]."""
    num_visible, num_hidden = weights.shape
    rows, columns = torch.nonzero(weights, as_tuple=True)
    size = num_visible + num_hidden
    edges = (rows.numpy(), columns.numpy() + num_visible)
    graph = coo_array(([True] * len(rows), edges), shape=(size, size))
    count, labels = connected_components(graph, directed=False)
    labels = torch.from_numpy(labels).long()
    members = torch.argsort(labels, stable=True).split(labels.bincount(minlength=count).tolist())
    return [
        (units[units < num_visible], units[units >= num_visible] - num_visible) for units in members
    ]
