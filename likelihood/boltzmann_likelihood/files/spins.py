"""Models with units -1 and 1 as models with units 0 and 1, by an exact change of variables.

With s = 2 x - 1 for every unit that is a spin, the energy of the spins is that of binary units with
other weights and biases, plus a constant. Probabilities are unchanged; ln Z differs by the
constant.
"""

from __future__ import annotations

from paperlib.models.rbm import RBM
from paperlib.validation import ArrayLike


def binary_from_spins(
    weights: ArrayLike,
    visible_bias: ArrayLike,
    hidden_bias: ArrayLike,
    *,
    visible: bool = True,
    hidden: bool = True,
) -> tuple[RBM, float]:
    """The RBM with binary units that has the same probabilities as an RBM with spins.

    Parameters
    ----------
    weights : array or Tensor, shape [D, M]
        Weights of the model with spins, where E(v, h) = -v'W h - b'v - a'h.
    visible_bias, hidden_bias : array or Tensor, shapes [D], [M]
        Its b and a.
    visible, hidden : bool
        Which layers have units -1 and 1; the others have units 0 and 1 already.

    Returns
    -------
    rbm : RBM
        Unit i is 1 where the spin is 1, and 0 where it is -1.
    log_z_offset : float
        ln Z of the model with spins minus that of `rbm`, in nats.

    Raises
    ------
    InputError
        If a shape does not fit, or a number is not finite.

    Examples
    --------
    >>> rbm, log_z_offset = binary_from_spins([[0.5]], [0.0], [0.0])
    >>> rbm.weights.item(), rbm.visible_bias.item(), log_z_offset
    (2.0, -1.0, 0.5)
    """
    spin_model = RBM(weights, visible_bias, hidden_bias)
    couplings = spin_model.weights.double()
    b = spin_model.visible_bias.double()
    a = spin_model.hidden_bias.double()
    offset = 0.0
    # One layer after the other. With v = 2 x - 1,
    # v'W h + b'v = x'(2 W) h + (2 b)'x - (1'W) h - 1'b.
    if visible:
        offset -= b.sum().item()
        a = a - couplings.sum(0)
        couplings = 2 * couplings
        b = 2 * b
    if hidden:
        offset -= a.sum().item()
        b = b - couplings.sum(1)
        couplings = 2 * couplings
        a = 2 * a
    dtype = spin_model.dtype
    return RBM(couplings.to(dtype), b.to(dtype), a.to(dtype)), offset
