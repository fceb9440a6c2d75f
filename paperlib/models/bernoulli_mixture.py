"""The mixture of Bernoullis, a model of binary vectors whose log-probabilities are exact.

One of C templates is picked, and every pixel is on with the probability that the template gives it:

    p(v) = sum_c pi_c prod_i mu_ci^{v_i} (1 - mu_ci)^{1 - v_i}

Unlike an RBM it has no partition function to estimate, which makes it the yardstick at the end of
section 5.1 of Salakhutdinov & Murray (2008). Parameters are kept as ln pi and as logits of mu, so
that probabilities near 0 or 1 survive storage in half precision.

Used in chapter: full-size-rbms.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import resolve_generator, softplus
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_bits, parameter, require_count


class BernoulliMixture(TensorModel):
    """A mixture of products of Bernoulli distributions.

    Parameters
    ----------
    logits : array or Tensor, shape [C, D]
        ln(mu / (1 - mu)) of pixel i under component c; its type and device become the model's.
    log_mixing_weights : array or Tensor, shape [C]
        ln pi_c up to a common constant.

    Raises
    ------
    InputError
        If a shape does not fit or a number is NaN or infinite.

    Examples
    --------
    >>> mixture = BernoulliMixture([[2.0, -2.0], [-2.0, 2.0]], [0.0, 0.0])
    >>> mixture
    BernoulliMixture(2 components, 2 visible, torch.float64, cpu)
    >>> mixture.log_prob([[1, 0], [1, 1]])
    tensor([-0.9289, -2.2539], dtype=torch.float64)
    >>> mixture.responsibilities([1, 0])
    tensor([0.9820, 0.0180], dtype=torch.float64)
    """

    tensor_names = ("logits", "log_mixing_weights")
    called = "a mixture of Bernoullis"

    def __init__(self, logits: object, log_mixing_weights: object) -> None:
        self.logits = parameter("logits", logits, [None, None])
        weights = parameter(
            "log_mixing_weights", log_mixing_weights, [len(self.logits)], self.logits
        )
        self.log_mixing_weights = _normalized(weights)

    def __repr__(self) -> str:
        sizes = f"{self.num_components} components, {self.num_visible} visible"
        return f"BernoulliMixture({sizes}, {self.dtype}, {self.device})"

    @property
    def num_components(self) -> int:
        """Number of components, C."""
        return self.logits.shape[0]

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.logits.shape[1]

    def log_joint(self, v: ArrayLike) -> Tensor:
        """ln p(v, c) in nats; binary `v` [..., D] gives [..., C]."""
        return self._log_joint(as_bits("v", v, self.logits, self.num_visible))

    @plain_torch()
    def _log_joint(self, v: Tensor) -> Tensor:
        return v @ self.logits.T + (self.log_mixing_weights - softplus(self.logits).sum(-1))

    def log_prob(self, v: ArrayLike) -> Tensor:
        """ln p(v) in nats; binary `v` [..., D] gives [...]."""
        return self.log_joint(v).logsumexp(-1)

    def responsibilities(self, v: ArrayLike) -> Tensor:
        """p(c | v); binary `v` [..., D] gives [..., C]."""
        return self.log_joint(v).softmax(-1)

    def sample(self, num_samples: int, generator: torch.Generator | int) -> Tensor:
        """Independent exact draws, [num_samples, D]."""
        num_samples = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.device)
        component = torch.multinomial(
            self.log_mixing_weights.exp(), num_samples, replacement=True, generator=generator
        )
        return bernoulli(torch.sigmoid(self.logits[component]), generator)


def _normalized(log_weights: Tensor) -> Tensor:
    """Logarithms of weights that sum to one, [C].

    Weights that already sum to one, up to rounding, are kept to the last bit: normalising them
    again would change a model, and with it the checksum, every time it is loaded.
    """
    # `log_softmax` leaves a sum that is off by up to 4 units in the last place for 500 components,
    # and by up to 9 for 5,000.
    rounding = torch.finfo(log_weights.dtype).eps * (8 + 2 * math.log(len(log_weights)))
    if abs(log_weights.double().logsumexp(0).item()) <= rounding:
        return log_weights
    return log_weights.log_softmax(0)
