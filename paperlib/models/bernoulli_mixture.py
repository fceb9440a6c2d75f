"""The mixture of Bernoullis: one of C templates is picked, and every pixel is on with the template's own probability.

    p(v) = sum_c pi_c prod_i mu_ci^{v_i} (1 - mu_ci)^{1 - v_i}

Unlike an RBM it has no partition function to estimate: its log-probabilities are exact, which makes it the yardstick at the end
of section 5.1 of Salakhutdinov & Murray (2008). Parameters are kept as ln pi and as logits of mu, so that
probabilities near 0 or 1 survive storage in half precision.

Served chapter: 06-full-size-rbms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import bernoulli, softplus
from paperlib.validation import parameter, require_count, require_width


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
    ValueError
        If a shape does not fit or a number is NaN or infinite.
    """

    tensor_names = ("logits", "log_mixing_weights")
    called = "a mixture of Bernoullis"

    def __init__(self, logits: object, log_mixing_weights: object) -> None:
        self.logits = parameter("logits", logits, [None, None])
        weights = parameter(
            "log_mixing_weights", log_mixing_weights, [len(self.logits)], self.logits
        )
        self.log_mixing_weights = weights.log_softmax(0)

    def __repr__(self) -> str:
        return (
            f"BernoulliMixture({self.num_components} components, {self.num_visible} visible, {self.dtype}, "
            f"{self.device})"
        )

    @property
    def num_components(self) -> int:
        """Number of components, C."""
        return self.logits.shape[0]

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.logits.shape[1]

    def log_joint(self, v: Tensor) -> Tensor:
        """ln p(v, c) in nats; `v` [..., D] gives [..., C]."""
        require_width("v", v, self.num_visible)
        return v @ self.logits.T + (self.log_mixing_weights - softplus(self.logits).sum(-1))

    def log_prob(self, v: Tensor) -> Tensor:
        """ln p(v) in nats; `v` [..., D] gives [...]."""
        return self.log_joint(v).logsumexp(-1)

    def responsibilities(self, v: Tensor) -> Tensor:
        """p(c | v); `v` [..., D] gives [..., C]."""
        return self.log_joint(v).softmax(-1)

    def sample(self, num_samples: int, generator: torch.Generator) -> Tensor:
        """Independent exact draws, [num_samples, D]."""
        num_samples = require_count("num_samples", num_samples)
        component = torch.multinomial(
            self.log_mixing_weights.exp(), num_samples, replacement=True, generator=generator
        )
        return bernoulli(torch.sigmoid(self.logits[component]), generator)
