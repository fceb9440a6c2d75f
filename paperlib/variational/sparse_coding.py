"""Sparse coding: a visible vector is a sum of a few columns of a dictionary, plus Gaussian noise.

Two directed models share eq. 19.15 of Goodfellow, Bengio & Courville (2016) and differ in the prior
of the code h. Binary sparse coding is eq. 19.19 and 19.20,

    p(h_i = 1) = s(b_i),  h in {0, 1}^M,            p(v | h) = N(v; W h, diag(1 / beta)),

and sparse coding with a Laplace prior eq. 19.14 and 19.15,

    p(h_i) = (lambda / 2) exp(-lambda abs(h_i)),    p(v | h) = N(v; W h + b, I / beta).

Drawing from either is easy, and so is computing p(v, h). The posterior p(h | v) is not: all units
of h are parents of the same visible units, so that observing v couples every pair of them by -W_i'
beta W_j ("explaining away"). The binary model with few hidden units can be enumerated, which makes
it the place to test every approximation of a posterior against the truth.

Note that b is the bias of the *hidden* units in the binary model and of the *visible* units in the
Laplace model, as in the book.

Used in chapter: inference-as-optimisation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models.two_layers import TwoLayers
from paperlib.numerics import all_states, bernoulli_log_prob, resolve_generator, softplus
from paperlib.validation import ArrayLike, as_states, parameter, require_count, require_enumerable

# 2^16 states of 16 units, for a block of visible vectors, still take only a moment.
_MAX_ENUMERATED_UNITS = 16


class BinarySparseCoding(TwoLayers):
    """Binary sparse coding (Henniges et al. 2010): each column of W is present in v or absent.

    Parameters
    ----------
    weights : array or Tensor, shape [D, M]
        W; its type and device become the model's.
    hidden_bias : array or Tensor, shape [M]
        b, the logits of the prior.
    precision : array or Tensor, shape [D]
        The diagonal of beta, positive.

    Raises
    ------
    InputError
        If a shape does not fit, a number is NaN or infinite, or a precision is not positive.

    Examples
    --------
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> model
    BinarySparseCoding(2 visible, 2 hidden)
    >>> model.log_joint_table([1.0, 0.0]).softmax(-1)
    tensor([0.1041, 0.0632, 0.7695, 0.0632], dtype=torch.float64)
    """

    def __init__(self, weights: object, hidden_bias: object, precision: object) -> None:
        self.weights = parameter("weights", weights, [None, None])
        num_visible, num_hidden = self.weights.shape
        self.hidden_bias = parameter("hidden_bias", hidden_bias, [num_hidden], self.weights)
        self.precision = parameter("precision", precision, [num_visible], self.weights)
        _require_positive("precision", self.precision.min().item())

    @property
    def couplings(self) -> Tensor:
        """W' beta W, [M, M].

        Off-diagonal entries say how strongly two units inhibit each other once v is known.
        """
        return self.weights.T @ (self.precision[:, None] * self.weights)

    def log_joint(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """ln p(v, h) in nats; leading dimensions of `v` [..., D] and `h` [..., M] broadcast."""
        h = self._hidden(h)
        return bernoulli_log_prob(h, self.hidden_bias) + self.log_likelihood(v, h)

    def log_likelihood(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """ln p(v | h), the logarithm of a density, eq. 19.20; shapes as in `log_joint`."""
        v = self._visible(v)
        h = self._hidden(h)
        squares = (v - h @ self.weights.T).square() @ self.precision
        return 0.5 * (torch.log(self.precision / (2 * math.pi)).sum() - squares)

    def log_joint_table(self, v: ArrayLike) -> Tensor:
        """ln p(v, h) for every h in the order of `all_states`; `v` [..., D] gives [..., 2^M].

        Its logsumexp over the last dimension is ln p(v), and its softmax is the exact posterior.

        Raises
        ------
        InputError
            If there are more than 16 hidden units.
        """
        require_enumerable(self.num_hidden, _MAX_ENUMERATED_UNITS)
        states = all_states(self.num_hidden).to(self.weights)
        v = self._visible(v)
        return self.log_joint(v[..., None, :], states)

    def log_prob(self, v: ArrayLike) -> Tensor:
        """ln p(v) in nats, exactly, by enumeration; `v` [..., D] gives [...]."""
        return self.log_joint_table(v).logsumexp(-1)

    def lower_bound(self, v: ArrayLike, means: ArrayLike) -> Tensor:
        """The evidence lower bound of a factorial q with these means, eq. 19.36, in nats.

        `v` [..., D] and `means` [..., M] give [...]. The last term of eq. 19.36 is the expected
        square of v - W h: the square of its mean, v - W m, plus the variances W_ij^2 m_j (1 - m_j).
        Means of exactly 0 or 1 are allowed; their entropy is zero.
        """
        means = as_states("means", means, self.weights, self.num_hidden)
        entropy = (torch.special.entr(means) + torch.special.entr(1 - means)).sum(-1)
        prior = means @ self.hidden_bias - softplus(self.hidden_bias).sum()
        spread = (means * (1 - means)) @ self.couplings.diagonal()
        return prior + entropy + self.log_likelihood(v, means) - 0.5 * spread

    def conditional_logits(self, v: ArrayLike, others: ArrayLike) -> Tensor:
        """The argument of the sigmoid in eq. 19.44 for every unit, given the others; [..., M].

        `others` [..., M] are the values of all units, and `v` is [..., D]. With binary values, it
        is the logit of p(h_i = 1) given v and all other units, which Gibbs sampling needs; with
        means, it is the logit of the mean-field fixed point. Entry i does not depend on entry i of
        `others`.
        """
        v = self._visible(v)
        others = as_states("others", others, self.weights, self.num_hidden)
        couplings = self.couplings
        diagonal = couplings.diagonal()
        bottom_up = v @ (self.precision[:, None] * self.weights)
        inhibition = others @ couplings
        return self.hidden_bias + bottom_up - 0.5 * diagonal - inhibition + others * diagonal

    def sample(self, num_samples: int, generator: torch.Generator | int) -> tuple[Tensor, Tensor]:
        """Independent draws of v, [num_samples, D], and the h of each, [num_samples, M]."""
        count = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.weights.device)
        h = bernoulli(torch.sigmoid(self.hidden_bias).expand(count, -1), generator)
        noise = torch.randn(
            count,
            self.num_visible,
            dtype=self.weights.dtype,
            device=self.weights.device,
            generator=generator,
        )
        return h @ self.weights.T + noise / self.precision.sqrt(), h


class LaplaceSparseCoding(TwoLayers):
    """Sparse coding with a Laplace prior, equations 19.14 and 19.15.

    Parameters
    ----------
    weights : array or Tensor, shape [D, M]
        W, the dictionary; its type and device become the model's.
    visible_bias : array or Tensor, shape [D]
        The biases b.
    rate : float
        lambda, positive: the larger it is, the sparser the codes of
        `paperlib.variational.map_codes`.
    precision : float
        beta, positive: one over the variance of the noise.

    Raises
    ------
    InputError
        If a shape does not fit, a number is NaN or infinite, or the rate or the precision is not
        positive.

    Examples
    --------
    >>> model = LaplaceSparseCoding([[1.0, 0.6], [0.0, 0.8]], [0.0, 0.0], rate=1.0, precision=4.0)
    >>> model.energy([1.0, 0.0], [1.0, 0.0])
    tensor(1., dtype=torch.float64)
    """

    def __init__(
        self, weights: object, visible_bias: object, rate: float, precision: float
    ) -> None:
        self.weights = parameter("weights", weights, [None, None])
        self.visible_bias = parameter(
            "visible_bias", visible_bias, [len(self.weights)], self.weights
        )
        _require_positive("rate", rate)
        _require_positive("precision", precision)
        self.rate = rate
        self.precision = precision

    def energy(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """lambda sum_i abs(h_i) + (beta / 2) norm(v - W h - b)^2 in nats.

        The leading dimensions of `v` [..., D] and `h` [..., M] broadcast. Summed over a data set
        this is eq. 19.16, in which lambda = 1, beta = 2 and b = 0.
        """
        v = self._visible(v)
        h = self._hidden(h)
        residual = v - h @ self.weights.T - self.visible_bias
        return self.rate * h.abs().sum(-1) + 0.5 * self.precision * residual.square().sum(-1)

    def log_joint(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """ln p(v, h), the logarithm of a density.

        It is minus the energy, plus the constant that makes the density integrate to 1.
        """
        return (
            self.num_hidden * math.log(self.rate / 2)
            + 0.5 * self.num_visible * math.log(self.precision / (2 * math.pi))
            - self.energy(v, h)
        )


def _require_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name}: expected a positive number, got {value}")
