"""Metropolis-Hastings, which makes any proposal leave a given distribution invariant.

The algorithm is that of CS281 lecture 22, section 22.2.2. From x a move to x* is proposed with
probability q(x* | x) and accepted with probability

    A(x* | x) = min(1, p(x*) q(x | x*) / (p(x) q(x* | x)));

otherwise the chain stays where it is, and x counts once more. Since p enters only as a ratio, its
normalising constant need not be known. With finitely many states the whole transition matrix can be
written down, by `metropolis_hastings_chain`; otherwise `metropolis_samples` runs chains.

Used in chapter: markov-chains-and-gibbs-sampling.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.mcmc.markov_chain import MarkovChain
from paperlib.numerics import resolve_generator
from paperlib.validation import ArrayLike, as_double, as_tensor, require_count, require_shape


def acceptance_matrix(log_target: ArrayLike, proposal: MarkovChain) -> Tensor:
    """A(x* | x) in row x and column x*.

    Parameters
    ----------
    log_target : array or Tensor, shape [S]
        Logarithm of the target up to a constant, in nats.
    proposal : MarkovChain
        q(x* | x) as its transition matrix.

    Returns
    -------
    Tensor
        float64 [S, S]; 1 where nothing is proposed in either direction, where the value does not
        matter.

    Raises
    ------
    InputError
        If the shapes do not fit, or `log_target` is not finite.

    Examples
    --------
    >>> acceptance_matrix([0.0, 1.0], MarkovChain([[0.5, 0.5], [0.5, 0.5]]))
    tensor([[1.0000, 1.0000],
            [0.3679, 1.0000]], dtype=torch.float64)
    """
    log_target = as_double("log_target", log_target, [proposal.num_states])
    # ln of the proposed traffic p(x) q(x* | x). The ratio in the rule is the traffic from x* to x
    # over that from x to x*.
    traffic = log_target[:, None] + proposal.transition.log()
    log_ratio = (traffic.T - traffic).nan_to_num(nan=0.0)
    return log_ratio.clamp(max=0).exp()


def metropolis_hastings_chain(log_target: ArrayLike, proposal: MarkovChain) -> MarkovChain:
    """The Metropolis-Hastings chain with this target and proposal, with its full transition matrix.

    Arguments and errors are those of `acceptance_matrix`.

    Examples
    --------
    >>> chain = metropolis_hastings_chain([0.0, 1.0], MarkovChain([[0.5, 0.5], [0.5, 0.5]]))
    >>> chain.stationary
    tensor([0.2689, 0.7311], dtype=torch.float64)
    """
    moves = (proposal.transition * acceptance_matrix(log_target, proposal)).fill_diagonal_(0)
    return MarkovChain(moves + torch.diag(1 - moves.sum(1)))


def metropolis_samples(
    log_target: Callable[[Tensor], Tensor],
    propose: Callable[[Tensor, torch.Generator], Tensor],
    starts: ArrayLike,
    num_steps: int,
    generator: torch.Generator | int | None = None,
) -> tuple[Tensor, float]:
    """Run Metropolis chains with a symmetric proposal, q(x* | x) = q(x | x*), side by side.

    Parameters
    ----------
    log_target : callable
        Maps states [N, D] to the logarithms of the target up to a constant, [N].
    propose : callable
        Maps states [N, D] and a generator to proposed states [N, D].
    starts : array or Tensor, shape [N, D]
        Where the N chains start, numbers of any type.
    num_steps : int
        Number of steps of each chain.
    generator : torch.Generator or int, optional
        Source of randomness, or a seed; a fresh one by default.

    Returns
    -------
    states : Tensor, shape [num_steps, N, D]
        The states that the chains visit, without the starts.
    acceptance_rate : float
        Share of the proposals that were accepted.

    Raises
    ------
    InputError
        If `log_target` has another shape or is NaN somewhere; minus infinity is the logarithm of
        zero.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> def propose(x, generator):
    ...     return x + torch.randn(x.shape, dtype=x.dtype, generator=generator)
    >>> states, rate = metropolis_samples(
    ...     lambda x: -x.square().sum(1) / 2, propose, torch.zeros(100, 1).double(), 50, generator
    ... )
    >>> states.shape, 0.6 < rate < 0.8
    (torch.Size([50, 100, 1]), True)
    """
    starts = as_tensor("starts", starts)
    require_shape("starts", starts, [None, None])
    generator = resolve_generator(generator, starts.device)
    states = starts
    log_density = _log_density(log_target, starts)
    path = []
    accepted = 0.0
    # states may be counts or bits, types in which there are no uniform draws from [0, 1]
    dtype = starts.dtype if starts.is_floating_point() else torch.float64
    for _ in range(require_count("num_steps", num_steps)):
        proposed = propose(states, generator)
        proposed_density = _log_density(log_target, proposed)
        uniform = torch.rand(len(starts), dtype=dtype, device=starts.device, generator=generator)
        accept = uniform.log() < proposed_density - log_density
        states = torch.where(accept[:, None], proposed, states)
        log_density = torch.where(accept, proposed_density, log_density)
        path.append(states)
        accepted += accept.double().mean().item()
    return torch.stack(path), accepted / num_steps


def _log_density(log_target: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
    """The logarithm of the target at these states, [N]; raise where the user's function is NaN."""
    values = log_target(states)
    require_shape("log_target", values, [len(states)])
    wrong = values.isnan()
    if bool(wrong.any()):
        example = states[wrong][0].tolist()
        raise InputError(
            "log_target: expected numbers or minus infinity, "
            f"got NaN at {int(wrong.sum())} of {len(states)} states, for example at {example}"
        )
    return values
