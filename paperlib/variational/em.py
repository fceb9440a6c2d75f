"""EM for binary sparse coding, with the exact posterior or with mean field.

See sections 19.2 and 19.4.4 of Goodfellow, Bengio & Courville (2016). Both steps climb the same
bound, the sum of L(v, theta, q) over the training vectors (eq. 19.8; Neal & Hinton's view of EM):

- E-step: q is the posterior, by enumeration, or the best factorial q, by `mean_field`. The M-step
  needs only its means E[h] and second moments E[h h'].
- M-step: the maximum over b, W and beta for this q, in closed form: the logits of the average
  means, the least-squares weights and the inverses of the residual variances.

With the exact posterior the bound touches ln p(v) after every E-step, and EM climbs the likelihood.
With mean field it climbs the bound, which also rises when the model makes its posterior easier to
approximate. Used in chapter: inference-as-optimisation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.numerics import all_states
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_float_tensor, require_count, require_shape
from paperlib.variational.mean_field import mean_field
from paperlib.variational.sparse_coding import BinarySparseCoding

# Keeps the logit of a unit finite if it is never or always on.
_MIN_MEAN = 1e-6


@plain_torch()
def learn_sparse_coding(
    start: BinarySparseCoding, v: ArrayLike, num_rounds: int, factorial: bool
) -> tuple[BinarySparseCoding, list[float]]:
    """Learn a model by alternating E-steps and M-steps.

    Parameters
    ----------
    start : BinarySparseCoding
        The initial model.
    v : array or Tensor, shape [N, D]
        Visible vectors.
    num_rounds : int
        Number of rounds.
    factorial : bool
        Whether q is the mean-field approximation, started from the previous round's means, instead
        of the exact posterior.

    Returns
    -------
    BinarySparseCoding
        The model after the last M-step.
    list of float
        The bound per vector after every E-step, in nats; with the exact posterior, this is the
        log-likelihood. It never falls.

    Examples
    --------
    >>> from paperlib.numerics import seeded_generator
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> v, _ = model.sample(100, seeded_generator(0))
    >>> learned, bounds = learn_sparse_coding(model, v, num_rounds=5, factorial=True)
    >>> bounds[-1] >= bounds[0]
    True
    """
    v = as_float_tensor("v", v, start.weights.dtype)
    require_shape("v", v, [None, None])
    model = start
    bounds = []
    means = None
    for _ in range(require_count("num_rounds", num_rounds)):
        if factorial:
            trace = mean_field(model, v, means, max_sweeps=50, tolerance=1e-6)
            bounds.append(trace.lower_bound.mean().item())
            means, second_moments = _factorial_moments(trace.means)
        else:
            bounds.append(model.log_prob(v).mean().item())
            means, second_moments = _exact_moments(model, v)
        model = _maximize_parameters(v, means, second_moments)
    return model, bounds


def _exact_moments(model: BinarySparseCoding, v: Tensor) -> tuple[Tensor, Tensor]:
    """E[h] of the exact posteriors of `v` [N, D], [N, M], and the sum of their E[h h'], [M, M]."""
    posterior = model.log_joint_table(v).softmax(-1)
    states = all_states(model.num_hidden).to(posterior)
    return posterior @ states, states.T @ (posterior.sum(0)[:, None] * states)


def _factorial_moments(means: Tensor) -> tuple[Tensor, Tensor]:
    """The same moments of factorial distributions with these means, [N, M]."""
    variances = (means * (1 - means)).sum(0)
    return means, means.T @ means + variances.diag()


def _maximize_parameters(v: Tensor, means: Tensor, second_moments: Tensor) -> BinarySparseCoding:
    """The M-step: the model with the largest bound for `v` [N, D] and a q with these moments."""
    # The pseudo-inverse gives a unit that is never on weights of zero.
    weights = v.T @ means @ torch.linalg.pinv(second_moments, hermitian=True)
    squares = v.square().sum(0) - (weights * (v.T @ means)).sum(1)
    rates = means.mean(0).clamp(_MIN_MEAN, 1 - _MIN_MEAN)
    return BinarySparseCoding(weights, torch.logit(rates), len(v) / squares)
