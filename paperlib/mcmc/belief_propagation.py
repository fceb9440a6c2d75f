"""Loopy belief propagation for pairwise models of binary units.

    ln p*(x) = sum_i b_i x_i + sum_{i<j} J_ij x_i x_j

A message from i to j says by how much i alone would raise the logit of x_j. With the logit of x_i
in the absence of j, l_{i -> j} = b_i + sum over k other than j of m_{k -> i}, summing x_i out gives

    m_{i -> j} = softplus(l_{i -> j} + J_ij) - softplus(l_{i -> j}),

and the marginal of x_i has the logit b_i + sum_k m_{k -> i}. On a tree this is exact after as many
rounds as its longest path has edges. On a graph with loops a unit's own message comes back to it
and is counted as new evidence; the fixed point, if one is reached, is an approximation without any
bound (CS281 lecture 22, section 22.1, lists it beside mean field and Gibbs sampling).

Used in chapter: markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import softplus
from paperlib.validation import as_double, require_count


@dataclass(frozen=True)
class BeliefPropagation:
    """What `loopy_belief_propagation` returns.

    Attributes
    ----------
    logits : Tensor, shape [n]
        Logits of the approximate marginal probabilities that units are on.
    residual : float
        Largest change of a message in the last round.
    rounds : int
        Number of rounds.
    converged : bool
        Whether the residual is within the tolerance.

    Examples
    --------
    >>> beliefs = loopy_belief_propagation([[0.0, 2.0], [2.0, 0.0]], [0.0, -1.0])
    >>> beliefs.rounds, beliefs.residual < 1e-9
    (2, True)
    """

    logits: Tensor
    residual: float
    rounds: int
    converged: bool


def loopy_belief_propagation(
    couplings: object, biases: object, max_rounds: int = 500, tolerance: float = 1e-9
) -> BeliefPropagation:
    """Marginals by passing messages along all edges at once until they no longer change.

    Parameters
    ----------
    couplings : array or Tensor, shape [n, n]
        J, symmetric with a zero diagonal; a zero means that there is no edge.
    biases : array or Tensor, shape [n]
        The biases b.
    max_rounds : int
        Largest number of rounds.
    tolerance : float
        Converged when no message changes by more than this, in nats.

    Raises
    ------
    InputError
        If a shape does not fit, a number is not finite, or `couplings` is not symmetric with a zero
        diagonal.

    Examples
    --------
    >>> beliefs = loopy_belief_propagation([[0.0, 2.0], [2.0, 0.0]], [0.0, -1.0])
    >>> beliefs.converged, torch.sigmoid(beliefs.logits)
    (True, tensor([0.7311, 0.6068], dtype=torch.float64))
    """
    biases = as_double("biases", biases, [None])
    couplings = as_double("couplings", couplings, [len(biases), len(biases)])
    if not torch.equal(couplings, couplings.T) or bool(couplings.diagonal().any()):
        raise InputError("couplings: expected a symmetric matrix with a zero diagonal, got another")
    limit = require_count("max_rounds", max_rounds)
    messages = torch.zeros_like(couplings)  # m_{i -> j} in row i and column j; zero without an edge
    rounds = 0
    residual = torch.inf
    while residual > tolerance and rounds < limit:
        rounds += 1
        without_receiver = (biases + messages.sum(0))[:, None] - messages.T
        updated = softplus(without_receiver + couplings) - softplus(without_receiver)
        residual = (updated - messages).abs().max().item()
        messages = updated
    return BeliefPropagation(biases + messages.sum(0), residual, rounds, residual <= tolerance)
