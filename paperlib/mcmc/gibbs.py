"""Gibbs sampling on binary vectors: draw some units anew from their conditional distribution given all others.

For a block B of units the new state x' agrees with x outside of B, and

    T(x' | x) = p(x') / sum of p(x'') over all x'' that agree with x outside of B.

That leaves p invariant whatever B is, as Metropolis-Hastings would if it proposed x' in this way: every proposal would be accepted
(CS281 lecture 22, section 22.2.2). Single units, layers of an RBM and everything at once are special cases. States are numbered
as `paperlib.numerics.all_states` lists them. For sampling from RBMs of any size there is `RBM.gibbs_step`.

Served chapter: 02-markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from paperlib.mcmc.markov_chain import MarkovChain
from paperlib.numerics import all_states
from paperlib.validation import require_finite, require_shape


def gibbs_update(log_target: Tensor, block: Sequence[int]) -> MarkovChain:
    """The chain that draws the units of one block anew, in full.

    Parameters
    ----------
    log_target : Tensor, shape [2^n]
        Logarithm of the target up to a constant, in nats, for every state of n binary units.
    block : sequence of int
        Which units, from 0 to n - 1.

    Raises
    ------
    ValueError
        If the number of states is not a power of two, `log_target` is not finite, or there is no such unit.
    """
    require_shape("log_target", log_target, [None])
    require_finite("log_target", log_target)
    num_units = len(log_target).bit_length() - 1
    if len(log_target) != 2**num_units:
        raise ValueError(f"log_target: expected a power of two values, got {len(log_target)}")
    if not all(0 <= unit < num_units for unit in block):
        raise ValueError(f"block: expected units from 0 to {num_units - 1}, got {list(block)}")
    outside = [unit for unit in range(num_units) if unit not in block]
    rest = all_states(num_units)[:, outside]
    agree = (rest[:, None] == rest).all(-1)
    log_rows = torch.where(agree, log_target.double(), -torch.inf)
    return MarkovChain(log_rows.softmax(1))


def gibbs_sweep(log_target: Tensor, blocks: Sequence[Sequence[int]]) -> MarkovChain:
    """The chain whose step updates one block after the other, in the given order; see `gibbs_update`."""
    return reduce(MarkovChain.then, (gibbs_update(log_target, block) for block in blocks))
