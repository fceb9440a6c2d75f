"""Gibbs sampling on binary vectors: some units are drawn anew, given all others.

For a block B of units the new state x' agrees with x outside of B, and

    T(x' | x) = p(x') / sum of p(x'') over all x'' that agree with x outside of B.

That leaves p invariant whatever B is, as Metropolis-Hastings would if it proposed x' in this way:
every proposal would be accepted (CS281 lecture 22, section 22.2.2). Single units, layers of an RBM
and everything at once are special cases. States are numbered as `paperlib.numerics.all_states`
lists them. For sampling from RBMs of any size there is `RBM.gibbs_step`.

Used in chapter: markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch

from paperlib.errors import InputError
from paperlib.mcmc.markov_chain import MarkovChain
from paperlib.numerics import all_states
from paperlib.validation import ArrayLike, as_double


def gibbs_update(log_target: ArrayLike, block: Sequence[int]) -> MarkovChain:
    """The chain that draws the units of one block anew, with its full transition matrix.

    Parameters
    ----------
    log_target : array or Tensor, shape [2^n]
        Logarithm of the target up to a constant, in nats, for every state of n binary units.
    block : sequence of int
        Which units, from 0 to n - 1.

    Raises
    ------
    InputError
        If the number of states is not a power of two, `log_target` is not finite, or `block` names
        a unit that does not exist.

    Examples
    --------
    >>> chain = gibbs_update([0.0, 0.0, 0.0, 1.0], block=[0])
    >>> chain.transition
    tensor([[0.5000, 0.0000, 0.5000, 0.0000],
            [0.0000, 0.2689, 0.0000, 0.7311],
            [0.5000, 0.0000, 0.5000, 0.0000],
            [0.0000, 0.2689, 0.0000, 0.7311]], dtype=torch.float64)
    """
    log_target = as_double("log_target", log_target, [None])
    num_units = len(log_target).bit_length() - 1
    if len(log_target) != 2**num_units:
        raise InputError(f"log_target: expected a power of two values, got {len(log_target)}")
    if not all(0 <= unit < num_units for unit in block):
        raise InputError(f"block: expected units from 0 to {num_units - 1}, got {list(block)}")
    others = [unit for unit in range(num_units) if unit not in block]
    fixed = all_states(num_units)[:, others]
    agree = (fixed[:, None] == fixed).all(-1)
    log_rows = torch.where(agree, log_target, -torch.inf)
    return MarkovChain(log_rows.softmax(1))


def gibbs_sweep(log_target: ArrayLike, blocks: Sequence[Sequence[int]]) -> MarkovChain:
    """The chain whose step updates one block after the other, as `gibbs_update` does.

    Examples
    --------
    >>> sweep = gibbs_sweep([0.0, 0.0, 0.0, 1.0], blocks=[[0], [1]])
    >>> sweep.stationary
    tensor([0.1749, 0.1749, 0.1749, 0.4754], dtype=torch.float64)
    """
    return reduce(MarkovChain.then, (gibbs_update(log_target, block) for block in blocks))
