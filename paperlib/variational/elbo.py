"""The evidence lower bound (ELBO) of a latent variable with finitely many states, exactly.

It has three forms::

    L(v, theta, q) = ln p(v) - KL(q || p(h | v))                                      eq. 19.1
                   = E_q[ln p(v, h)] + H(q)                                           eq. 19.7
                   = E_q[ln p(v | h)] - KL(q || p(h))

Equations are numbered as in Goodfellow, Bengio & Courville (2016). The second form needs neither
ln p(v) nor the posterior and holds for every q, so it can be maximised where neither is known. If
both are known, as for enumerated models, the three forms check each other.

Distributions are given by the logarithms of their probabilities over the last dimension; minus
infinity is a probability of zero. Used in chapter: inference-as-optimisation.
"""

from __future__ import annotations

import torch
from torch import Tensor


def evidence_lower_bound(log_joint: Tensor, log_q: Tensor) -> Tensor:
    """E_q[ln p(v, h)] + H(q) in nats, equation 19.7.

    Parameters
    ----------
    log_joint : Tensor, shape [..., S]
        ln p(v, h) for each of the S states of h.
    log_q : Tensor, shape [..., S]
        ln q(h | v), normalised; leading dimensions broadcast.

    Examples
    --------
    >>> log_joint = torch.tensor([0.2, 0.1]).log()
    >>> posterior = log_joint.log_softmax(0)
    >>> evidence_lower_bound(log_joint, posterior), log_joint.logsumexp(0)
    (tensor(-1.2040), tensor(-1.2040))
    """
    return -_expected_log_ratio(log_q, log_joint)


def kl_divergence(log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(q || p) in nats; both [..., S] and normalised. Infinite where q has mass and p has none.

    Examples
    --------
    >>> half = torch.tensor([0.5, 0.5]).log()
    >>> kl_divergence(half, half), kl_divergence(torch.tensor([1.0, 0.0]).log(), half)
    (tensor(0.), tensor(0.6931))
    """
    return _expected_log_ratio(log_q, log_p)


def factorial_log_probs(means: Tensor, states: Tensor) -> Tensor:
    """ln q(h) of independent binary units; `means` [..., M] and `states` [S, M] give [..., S].

    Examples
    --------
    >>> states = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    >>> factorial_log_probs(torch.tensor([0.5, 0.5]), states).exp()
    tensor([0.2500, 0.2500])
    """
    means = means[..., None, :]
    return (torch.xlogy(states, means) + torch.xlogy(1 - states, 1 - means)).sum(-1)


def _expected_log_ratio(log_q: Tensor, log_p: Tensor) -> Tensor:
    """E_q[ln q - ln p]; states without mass under q contribute nothing."""
    q = log_q.exp()
    return torch.where(q > 0, q * (log_q - log_p), 0).sum(-1)
