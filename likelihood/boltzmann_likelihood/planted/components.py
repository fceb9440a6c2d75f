"""RBMs that fall apart into small pieces, alone and with a mode that does not show in the data.

Units that are not joined by a chain of non-zero weights are independent. Hence Z = prod_c Z_c over
the connected components c of the graph whose edges are the non-zero weights, and each Z_c is a sum
over the states of the component's smaller layer, which is enumerated. Small RBMs side by side are
the easiest models of any size with an exact ln Z.

*A mode of known odds:* new hidden units, on together or off together, pull the visible units
towards a random pattern. Summed over the number k of them that are on,

    Z = sum_k (n choose k) e^{k c} Z_k,

where Z_k is that of the model without them, with its visible biases shifted by k times a new unit's
weights. The bias c of the new units is chosen to give the requested odds of all on against all off.
An estimate that never meets the mode is too low by ln(1 + odds), and nothing in the data shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from boltzmann_likelihood.planted.planted_model import (
    Draws,
    Planted,
    draw_indices,
    require_number,
    require_type,
)
from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models.rbm import RBM, as_rbm
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import bits, resolve_generator, softplus
from paperlib.torch_settings import plain_torch
from paperlib.validation import require_count

_Model = TypeVar("_Model", bound=TensorModel)

# With 784 units in the larger layer, enumeration then takes half a minute.
_MOST_UNITS = 20
# Numbers held at once while states are enumerated: 32 MiB.
_BLOCK_NUMBERS = 2**22


@plain_torch()
def from_components(rbm: RBM) -> Planted:
    """A planted model from an RBM that falls apart into pieces that can be enumerated.

    Parameters
    ----------
    rbm : RBM
        The model. Each connected component of its non-zero weights must have at most 20 units in
        its smaller layer. An RBM with at most 20 hidden units is a special case.

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
    components = _Components(_require_rbm(rbm))
    return Planted(rbm, components.log_z, Draws(components.draw))


@plain_torch()
def block_diagonal(
    num_visible: int = 784,
    num_hidden: int = 500,
    num_blocks: int = 50,
    weight_std: float = 1.0,
    bias_std: float = 0.5,
    generator: torch.Generator | int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Planted:
    """Many small random RBMs joined into one, with its units shuffled; ln Z is the sum of theirs.

    Parameters
    ----------
    num_visible, num_hidden : int
        Numbers of units of the whole model, D and M, divided evenly among the blocks.
    num_blocks : int
        At most the number of units of either layer, and enough that the smaller layer of each block
        can be enumerated (at most 20 units).
    weight_std : float
        Standard deviation of the weights within the blocks.
    bias_std : float
        Standard deviation of the biases around the values at which a unit is on half of the time
        when the units of the other layer are.
    generator : torch.Generator or int, optional
        Source of randomness for the model; on the CPU.
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Raises
    ------
    InputError
        If a number does not fit, or the blocks are too large.

    Examples
    --------
    >>> from paperlib.numerics import seeded_generator
    >>> model = block_diagonal(generator=seeded_generator(0))
    >>> model.rbm
    RBM(784 visible, 500 hidden, torch.float64, cpu)
    >>> model.draws(2, seeded_generator(1)).shape
    torch.Size([2, 784])
    """
    num_visible = require_count("num_visible", num_visible)
    num_hidden = require_count("num_hidden", num_hidden)
    num_blocks = require_count("num_blocks", num_blocks)
    weight_std = require_number("weight_std", weight_std, 0.0)
    bias_std = require_number("bias_std", bias_std, 0.0)
    dtype = require_type(dtype)
    generator = resolve_generator(generator)
    if num_blocks > min(num_visible, num_hidden):
        raise InputError(
            f"num_blocks: expected at most {min(num_visible, num_hidden)}, one for each unit of "
            f"the smaller layer, got {num_blocks}"
        )

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    parts = []
    for block in range(num_blocks):
        visible = (block + 1) * num_visible // num_blocks - block * num_visible // num_blocks
        hidden = (block + 1) * num_hidden // num_blocks - block * num_hidden // num_blocks
        weights = weight_std * normal(visible, hidden)
        visible_bias = bias_std * normal(visible) - weights.sum(1) / 2
        hidden_bias = bias_std * normal(hidden) - weights.sum(0) / 2
        parts.append(RBM(weights, visible_bias, hidden_bias))
    joined = side_by_side(parts).to(dtype=dtype)
    rows = torch.randperm(num_visible, generator=generator)
    columns = torch.randperm(num_hidden, generator=generator)
    rbm = RBM(
        joined.weights[rows][:, columns].contiguous(),
        joined.visible_bias[rows],
        joined.hidden_bias[columns],
    )
    return from_components(rbm)


@plain_torch()
def hidden_mode(
    rbm: RBM,
    log_odds: float = 3.0,
    units: int = 1,
    fraction: float = 1.0,
    strength: float = 6.0,
    generator: torch.Generator | int | None = None,
) -> Planted:
    """An RBM with a second mode at a random pattern, which no draw from the model comes near.

    Parameters
    ----------
    rbm : RBM
        The model without the mode, of the kind that `from_components` takes: the `rbm` of a
        `block_diagonal`, or a trained one with at most 20 hidden units. Its own draws,
        `from_components(rbm).draws`, are data that do not show the mode.
    log_odds : float
        ln of the odds that the new units are all on rather than all off.
    units : int
        Number of hidden units that hold the mode: several are harder to switch on one by one.
    fraction : float
        Fraction of the visible units that the mode fixes, from 0 to 1; these are the first ones.
        The others are as free as without the mode.
    strength : float
        How far all new units together shift a visible bias. A pixel of the mode that was on half of
        the time follows the mode with probability sigmoid(strength).
    generator : torch.Generator or int, optional
        Source of randomness for the pattern; on the CPU.

    Returns
    -------
    Planted
        A model of the type of `rbm` with `units` additional hidden units, which are the last ones.
        If the new bias is rounded to float32, the odds are off accordingly, and `log_z` is that of
        the rounded model.

    Raises
    ------
    InputError
        If a number does not fit, or a component of `rbm` cannot be enumerated.

    Examples
    --------
    >>> from boltzmann_likelihood import planted
    >>> from paperlib.numerics import seeded_generator
    >>> base = planted.block_diagonal(100, 60, 10, generator=seeded_generator(0))
    >>> model = hidden_mode(base.rbm, log_odds=3.0, generator=seeded_generator(1))
    >>> print(f"{model.log_z - base.log_z:.6f} = {math.log1p(math.exp(3)):.6f}")
    3.048587 = 3.048587
    """
    rbm = _require_rbm(rbm)
    log_odds = require_number("log_odds", log_odds)
    units = require_count("units", units)
    fraction = require_number("fraction", fraction, 0.0, 1.0)
    strength = require_number("strength", strength, 0.0)
    towards = random_pattern(rbm, fraction, strength, resolve_generator(generator))
    column = mode_weights(rbm, towards, units).double()
    shifted = [_Components(rbm, on * column) for on in range(units + 1)]
    model, log_terms = plant_mode(
        rbm, towards, log_odds, units, [components.log_z for components in shifted]
    )
    log_z = torch.logsumexp(log_terms, 0).item()
    return Planted(model, log_z, Draws(partial(_draw_with_mode, log_terms, shifted)))


def side_by_side(parts: Sequence[_Model]) -> _Model:
    """Independent models of one kind as one; its ln Z is the sum of theirs.

    Its units are in the order of the parts.
    """
    joined = {}
    for name, first in parts[0].tensors().items():
        tensors = [part.tensors()[name] for part in parts]
        joined[name] = torch.block_diag(*tensors) if first.ndim == 2 else torch.cat(tensors)
    return type(parts[0]).from_tensors(joined)


def random_pattern(
    rbm: RBM, fraction: float, strength: float, generator: torch.Generator
) -> Tensor:
    """Plus or minus `strength` at random for the first `fraction` of the visible units: [D].

    The other units have 0. In the model's type.
    """
    half = torch.full((rbm.num_visible,), 0.5, dtype=rbm.dtype)
    towards = strength * (2 * bernoulli(half, generator) - 1)
    towards[round(fraction * rbm.num_visible) :] = 0
    return towards


def mode_weights(rbm: RBM, towards: Tensor, units: int) -> Tensor:
    """Weights of each of the `units` new hidden units: [D], rounded to the model's type.

    Together, these units shift the visible biases by `towards`.
    """
    return (towards / units).to(rbm.dtype)


def plant_mode(
    rbm: RBM, towards: Tensor, log_odds: float, units: int, shifted_log_z: list[float]
) -> tuple[RBM, Tensor]:
    """The model with a mode, and ln of what each number of new units that are on adds to its Z.

    `shifted_log_z` has ln Z of the original model with biases shifted as by 0, 1, ... new units.
    """
    column = mode_weights(rbm, towards, units)
    bias = torch.tensor((log_odds + shifted_log_z[0] - shifted_log_z[-1]) / units, dtype=rbm.dtype)
    with_mode = RBM(
        torch.cat([rbm.weights, column[:, None].expand(-1, units)], 1),
        rbm.visible_bias,
        torch.cat([rbm.hidden_bias, bias.expand(units)]),
    )
    log_terms = [
        math.lgamma(units + 1)
        - math.lgamma(on + 1)
        - math.lgamma(units - on + 1)
        + on * bias.item()
        + shifted_log_z[on]
        for on in range(units + 1)
    ]
    return with_mode, torch.tensor(log_terms, dtype=torch.float64)


def _draw_with_mode(
    log_terms: Tensor, shifted: list[_Components], num_draws: int, generator: torch.Generator
) -> Tensor:
    """Draw how many new units are on, then from the model with biases shifted by as many."""
    on = draw_indices(log_terms, num_draws, generator)
    rbm = shifted[0].rbm
    drawn = torch.empty(num_draws, rbm.num_visible, dtype=rbm.dtype)
    for count, components in enumerate(shifted):
        rows = torch.nonzero(on == count).flatten()
        if len(rows):
            drawn[rows] = components.draw(len(rows), generator)
    return drawn


def _require_rbm(rbm: object) -> RBM:
    """`rbm`; raise unless it is an RBM on the CPU."""
    rbm = as_rbm("rbm", rbm)
    if rbm.device.type != "cpu":
        raise InputError(f"rbm: expected a model on the CPU, got one on {rbm.device}")
    return rbm


@dataclass(frozen=True)
class _Component:
    """One connected component in float64; its smaller layer is enumerated."""

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
        log_masses = []
        for block in numbers.split(max(1, _BLOCK_NUMBERS // max(1, others))):
            states = bits(block, units).double()
            inputs = states @ self.weights + self.larger_bias
            log_masses.append(states @ self.smaller_bias + softplus(inputs).sum(-1))
        return torch.cat(log_masses)

    def draw_visible(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """[num_draws, visible units of the component], float64."""
        drawn = draw_indices(self.log_masses, num_draws, generator)
        states = bits(drawn, len(self.weights)).double()
        if self.smaller_is_visible:
            return states
        return bernoulli(torch.sigmoid(states @ self.weights + self.larger_bias), generator)


@dataclass(frozen=True)
class _Components:
    """The connected components of an RBM; `shift` [D] is added to its visible biases."""

    rbm: RBM
    shift: Tensor | None = None

    @cached_property
    def _components(self) -> list[_Component]:
        model = self.rbm.to(dtype=torch.float64)
        visible_bias = model.visible_bias
        if self.shift is not None:
            visible_bias = visible_bias + self.shift
        components = []
        for visible, hidden in _component_units(model.weights):
            weights = model.weights[visible][:, hidden]
            b = visible_bias[visible]
            a = model.hidden_bias[hidden]
            if min(len(visible), len(hidden)) > _MOST_UNITS:
                raise InputError(
                    f"rbm: expected components with at most {_MOST_UNITS} units in their smaller "
                    f"layer, got one of {len(visible)} visible and {len(hidden)} hidden units"
                )
            if len(visible) < len(hidden):
                component = _Component(visible, weights, b, a, smaller_is_visible=True)
            else:
                component = _Component(visible, weights.T, a, b, smaller_is_visible=False)
            components.append(component)
        return components

    @cached_property
    def log_z(self) -> float:
        """ln Z in nats."""
        return sum(torch.logsumexp(part.log_masses, 0).item() for part in self._components)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """Visible vectors, [num_draws, D], each component by itself."""
        drawn = torch.empty(num_draws, self.rbm.num_visible, dtype=self.rbm.dtype)
        for part in self._components:
            drawn[:, part.visible] = part.draw_visible(num_draws, generator).to(drawn.dtype)
        return drawn


def _component_units(weights: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Indices of the visible and hidden units of each connected component of `weights` [D, M]."""
    num_visible, num_hidden = weights.shape
    rows, columns = torch.nonzero(weights, as_tuple=True)
    size = num_visible + num_hidden
    edges = (rows.numpy(), columns.numpy() + num_visible)
    graph = coo_array(([True] * len(rows), edges), shape=(size, size))
    count, labels = connected_components(graph, directed=False)
    labels = torch.from_numpy(labels).long()
    sizes = labels.bincount(minlength=count).tolist()
    return [
        (units[units < num_visible], units[units >= num_visible] - num_visible)
        for units in torch.argsort(labels, stable=True).split(sizes)
    ]
