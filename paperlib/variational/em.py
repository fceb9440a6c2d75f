"""Expectation maximisation for binary sparse coding, with the exact posterior or with mean field (sections 19.2 and 19.4.4).

Both steps climb the same bound, the sum of L(v, theta, q) over the training vectors (eq. 19.8; Neal & Hinton's view of EM):

- E-step: q is the posterior, found by enumeration, or the best factorial q, found by `mean_field`. What the M-step
  needs of it are the means E[h] and the second moments E[h h'] only.
- M-step: the maximum over b, W and beta for this q, in closed form: the logits of the average means, the least-squares weights and
  the variances that they leave.

With the exact posterior the bound touches ln p(v) after every E-step, and EM climbs the likelihood. With mean field it climbs the bound,
which also rises when the model makes its posterior easier to approximate. Served chapter: 11-inference-as-optimisation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.models.sparse_coding import BinarySparseCoding
from paperlib.numerics import all_states
from paperlib.validation import require_count, require_shape
from paperlib.variational.mean_field import mean_field

# Keeps the logit of a unit that is never, or always, on from being infinite.
_MIN_MEAN = 1e-6


def exact_moments(model: BinarySparseCoding, v: Tensor) -> tuple[Tensor, Tensor]:
    """E[h] for each vector, [N, M], and E[h h'] summed over them, [M, M], under the exact posterior; `v` is [N, D]."""
    posterior = model.log_joint_table(v).softmax(-1)
    states = all_states(model.num_hidden).to(posterior)
    return posterior @ states, states.T @ (posterior.sum(0)[:, None] * states)


def factorial_moments(means: Tensor) -> tuple[Tensor, Tensor]:
    """The same under a factorial q with these means, [N, M]."""
    variances = (means * (1 - means)).sum(0)
    return means, means.T @ means + variances.diag()


def maximize_parameters(v: Tensor, means: Tensor, second_moments: Tensor) -> BinarySparseCoding:
    """The M-step: the model with the largest bound for the q of these moments.

    Parameters
    ----------
    v : Tensor, shape [N, D]
        Visible vectors.
    means : Tensor, shape [N, M]
        E[h] for each of them.
    second_moments : Tensor, shape [M, M]
        E[h h'] summed over them.
    """
    require_shape("v", v, [None, None])
    require_shape("means", means, [len(v), None])
    # The pseudo-inverse gives a unit that is never on weights of zero.
    weights = v.T @ means @ torch.linalg.pinv(second_moments, hermitian=True)
    squares = v.square().sum(0) - (weights * (v.T @ means)).sum(1)
    rates = means.mean(0).clamp(_MIN_MEAN, 1 - _MIN_MEAN)
    return BinarySparseCoding(weights, torch.logit(rates), len(v) / squares)


def learn_sparse_coding(
    start: BinarySparseCoding, v: Tensor, num_rounds: int, factorial: bool
) -> tuple[BinarySparseCoding, list[float]]:
    """Rounds of E-step and M-step.

    Parameters
    ----------
    start : BinarySparseCoding
        Where to begin.
    v : Tensor, shape [N, D]
        Visible vectors.
    num_rounds : int
        Rounds.
    factorial : bool
        Whether q is the mean-field approximation, begun at the last round's means, or the exact posterior.

    Returns
    -------
    BinarySparseCoding
        The model after the last M-step.
    list of float
        The bound per vector after every E-step, in nats: with the exact posterior, the log-likelihood. It never falls.
    """
    model, bounds, means = start, [], None
    for _ in range(require_count("num_rounds", num_rounds)):
        if factorial:
            trace = mean_field(model, v, means, max_sweeps=50, tolerance=1e-6)
            bounds.append(trace.lower_bound.mean().item())
            means, second_moments = factorial_moments(trace.means)
        else:
            bounds.append(model.log_prob(v).mean().item())
            means, second_moments = exact_moments(model, v)
        model = maximize_parameters(v, means, second_moments)
    return model, bounds
