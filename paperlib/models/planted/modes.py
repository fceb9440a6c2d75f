"""A second mode of known odds, which does not show in the data.

New hidden units, on together or off together, pull the visible units towards a random pattern. Summed over the number k of them that
are on,

    Z = sum_k (n choose k) e^{k c} Z_k,

where Z_k is that of the model without them, with its visible biases shifted by k times a new unit's weights. The bias c of the new
units is chosen to give the requested odds of all on against all off. An estimate that never meets the mode is too low by
ln(1 + odds), and nothing in the data shows it.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.models.planted.components import Components, require_rbm
from paperlib.models.planted.planted_model import Draws, Planted, draw_indices, require_number
from paperlib.models.rbm import RBM
from paperlib.numerics import resolve_generator
from paperlib.validation import require_count


def hidden_mode(
    rbm: RBM,
    log_odds: float = 3.0,
    units: int = 1,
    fraction: float = 1.0,
    strength: float = 6.0,
    generator: torch.Generator | None = None,
) -> Planted:
    """An RBM with a second mode, at a random pattern of pixels that no draw from the original model comes near.

    Parameters
    ----------
    rbm : RBM
        The model without the mode, of the kind that `from_components` takes: the `rbm` of a `block_diagonal`, or a trained one with at
        most 20 hidden units. Its own draws, `from_components(rbm).draws`, are data that do not show the mode.
    log_odds : float
        ln of the odds that the new units are all on rather than all off.
    units : int
        Number of hidden units that hold the mode: several are harder to switch on one by one.
    fraction : float
        Fraction of the visible units that the mode fixes, from 0 to 1; these are the first ones. The others are as free as without the
        mode.
    strength : float
        How far all new units together shift a visible bias. A pixel of the mode that was on half of the time follows the mode with
        probability sigmoid(strength).
    generator : torch.Generator, optional
        Source of randomness for the pattern; on the CPU.

    Returns
    -------
    Planted
        A model of the type of `rbm` with `units` additional hidden units, which are the last ones. If the new bias is rounded to
        float32, the odds are off accordingly, and `log_z` is that of the rounded model.

    Raises
    ------
    InputError
        If a number does not fit, or a component of `rbm` cannot be enumerated.

    Examples
    --------
    >>> from paperlib.models import planted
    >>> from paperlib.numerics import seeded_generator
    >>> base = planted.block_diagonal(100, 60, 10, generator=seeded_generator(0))
    >>> model = hidden_mode(base.rbm, log_odds=3.0, generator=seeded_generator(1))
    >>> print(f"{model.log_z - base.log_z:.6f} = {math.log1p(math.exp(3)):.6f}")
    3.048587 = 3.048587
    """
    rbm = require_rbm(rbm)
    log_odds = require_number("log_odds", log_odds)
    units = require_count("units", units)
    fraction = require_number("fraction", fraction, 0.0, 1.0)
    strength = require_number("strength", strength, 0.0)
    towards = random_pattern(rbm, fraction, strength, resolve_generator(generator))
    column = mode_weights(rbm, towards, units).double()
    shifted = [Components(rbm, on * column) for on in range(units + 1)]
    model, log_terms = plant_mode(
        rbm, towards, log_odds, units, [components.log_z for components in shifted]
    )
    log_z = torch.logsumexp(log_terms, 0).item()
    return Planted(model, log_z, Draws(partial(_draw, log_terms, shifted)))


def random_pattern(
    rbm: RBM, fraction: float, strength: float, generator: torch.Generator
) -> Tensor:
    """Plus or minus `strength` at random for the first `fraction` of the visible units and 0 for the others: [D], in the model's type."""
    half = torch.full((rbm.num_visible,), 0.5, dtype=rbm.dtype)
    towards = strength * (2 * bernoulli(half, generator) - 1)
    towards[round(fraction * rbm.num_visible) :] = 0
    return towards


def mode_weights(rbm: RBM, towards: Tensor, units: int) -> Tensor:
    """Weights of each of the `units` new units, which together shift the visible biases by `towards`: [D], rounded to the model's type."""
    return (towards / units).to(rbm.dtype)


def plant_mode(
    rbm: RBM, towards: Tensor, log_odds: float, units: int, shifted_log_z: list[float]
) -> tuple[RBM, Tensor]:
    """The model with a mode, and ln of what each number of new units adds to its Z; `shifted_log_z` has ln Z with 0, 1, ... of them on."""
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


def _draw(
    log_terms: Tensor, shifted: list[Components], num_draws: int, generator: torch.Generator
) -> Tensor:
    """Draw how many of the new units are on, then draw from the model with its biases shifted by that many."""
    on = draw_indices(log_terms, num_draws, generator)
    rbm = shifted[0].rbm
    drawn = torch.empty(num_draws, rbm.num_visible, dtype=rbm.dtype)
    for count, components in enumerate(shifted):
        rows = torch.nonzero(on == count).flatten()
        if len(rows):
            drawn[rows] = components.draw(len(rows), generator)
    return drawn
