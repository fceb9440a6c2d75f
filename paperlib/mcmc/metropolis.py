"""Metropolis-Hastings: any proposal made to keep a given distribution (CS281 lecture 22, section 22.2.2).

From x a move to x* is proposed with probability q(x* | x) and accepted with probability

    A(x* | x) = min(1, p(x*) q(x | x*) / (p(x) q(x* | x)));

otherwise the chain stays where it is, and x counts once more. Since p enters by a ratio only, its normalising constant need not be
known. On finitely many states the whole transition matrix can be written down, `metropolis_hastings_chain`; elsewhere `metropolis_samples`
runs chains.

Served chapter: 02-markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paperlib.mcmc.markov_chain import MarkovChain
from paperlib.numerics import resolve_generator
from paperlib.validation import require_count, require_finite, require_shape


def acceptance_matrix(log_target: Tensor, proposal: MarkovChain) -> Tensor:
    """A(x* | x) in row x and column x*.

    Parameters
    ----------
    log_target : Tensor, shape [S]
        Logarithm of the target up to a constant, in nats.
    proposal : MarkovChain
        q(x* | x) as its transition matrix.

    Returns
    -------
    Tensor
        float64 [S, S]; 1 where nothing is proposed in either direction, since nothing depends on it.

    Raises
    ------
    ValueError
        If the shapes do not fit, or `log_target` is not finite.
    """
    require_shape("log_target", log_target, [proposal.num_states])
    require_finite("log_target", log_target)
    # ln of the traffic p(x) q(x* | x) that is proposed; what comes back over what goes there is the ratio of the rule.
    traffic = log_target.double()[:, None] + proposal.transition.log()
    log_ratio = (traffic.T - traffic).nan_to_num(nan=0.0)
    return log_ratio.clamp(max=0).exp()


def metropolis_hastings_chain(log_target: Tensor, proposal: MarkovChain) -> MarkovChain:
    """The Metropolis-Hastings chain with this target and proposal, in full; arguments as for `acceptance_matrix`."""
    moves = (proposal.transition * acceptance_matrix(log_target, proposal)).fill_diagonal_(0)
    return MarkovChain(moves + torch.diag(1 - moves.sum(1)))


def metropolis_samples(
    log_target: Callable[[Tensor], Tensor],
    propose: Callable[[Tensor, torch.Generator], Tensor],
    starts: Tensor,
    num_steps: int,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, float]:
    """Run Metropolis chains with a symmetric proposal, q(x* | x) = q(x | x*), side by side.

    Parameters
    ----------
    log_target : callable
        Takes states [N, D] to the logarithms of the target up to a constant, [N].
    propose : callable
        Takes states [N, D] and a generator to proposed states [N, D].
    starts : Tensor, shape [N, D]
        Where the N chains start.
    num_steps : int
        Steps of each.
    generator : torch.Generator, optional
        Source of randomness; a fresh one by default.

    Returns
    -------
    states : Tensor, shape [num_steps, N, D]
        What the chains visit, the starts left out.
    acceptance_rate : float
        Share of the proposals that were accepted.
    """
    require_shape("starts", starts, [None, None])
    generator = resolve_generator(generator, starts.device)
    states, log_density = starts, log_target(starts)
    visited, accepted = [], 0.0
    for _ in range(require_count("num_steps", num_steps)):
        proposed = propose(states, generator)
        proposed_density = log_target(proposed)
        uniform = torch.rand(len(starts), dtype=starts.dtype, generator=generator)
        accept = uniform.log() < proposed_density - log_density
        states = torch.where(accept[:, None], proposed, states)
        log_density = torch.where(accept, proposed_density, log_density)
        visited.append(states)
        accepted += accept.double().mean().item()
    return torch.stack(visited), accepted / num_steps
