"""The mixture of Bernoullis: one of C templates is picked, and every pixel is on with the template's own probability.

    p(v) = sum_c pi_c prod_i mu_ci^{v_i} (1 - mu_ci)^{1 - v_i}

Unlike an RBM it has no partition function to estimate: its log-probabilities are exact, which makes it the yardstick at the end
of section 5.1 of Salakhutdinov & Murray (2008). Parameters are kept as ln pi and as logits of mu, so that
probabilities near 0 or 1 survive storage in half precision.

Served chapter: 06-full-size-rbms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from paperlib.models.files import read_tensors, tensors_checksum, write_safetensors
from paperlib.numerics import bernoulli, softplus
from paperlib.validation import (
    as_float_tensor,
    require_count,
    require_finite,
    require_shape,
    require_width,
)

_TENSOR_NAMES = ("logits", "log_mixing_weights")


class BernoulliMixture:
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

    def __init__(self, logits: object, log_mixing_weights: object) -> None:
        self.logits = as_float_tensor("logits", logits)
        require_shape("logits", self.logits, [None, None])
        weights = as_float_tensor("log_mixing_weights", log_mixing_weights, self.logits.dtype)
        require_shape("log_mixing_weights", weights, [len(self.logits)])
        for name, tensor in (("logits", self.logits), ("log_mixing_weights", weights)):
            require_finite(name, tensor)
        self.log_mixing_weights = weights.to(self.logits.device).log_softmax(0)

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

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the parameters."""
        return self.logits.dtype

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return self.logits.device

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> BernoulliMixture:
        """The same model on another device or in another floating-point type."""
        return BernoulliMixture(
            *(getattr(self, name).to(device=device, dtype=dtype) for name in _TENSOR_NAMES)
        )

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

    def checksum(self) -> str:
        """SHA-256 over shapes, type and values of the parameters, independent of the file format."""
        return tensors_checksum(getattr(self, name) for name in _TENSOR_NAMES)

    def save(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str] | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Write the parameters as `.safetensors`; see `RBM.save`.

        Raises
        ------
        ValueError
            For another suffix, or a parameter that overflows `dtype`.
        """
        tensors = {name: getattr(self, name) for name in _TENSOR_NAMES}
        write_safetensors(Path(path), tensors, metadata, dtype)

    @staticmethod
    def load(path: str | os.PathLike[str], dtype: torch.dtype | None = None) -> BernoulliMixture:
        """Read a model that `save` wrote; `dtype` as in `RBM.load`.

        Raises
        ------
        ValueError
            If the file is missing, damaged, of another format, or its arrays do not make a mixture.
        """
        path = Path(path)
        arrays = read_tensors(path, _TENSOR_NAMES)
        try:
            model = BernoulliMixture(*(arrays[name] for name in _TENSOR_NAMES))
        except ValueError as error:
            raise ValueError(
                f"path: expected a mixture of Bernoullis in {path}: {error}"
            ) from error
        return model if dtype is None else model.to(dtype=dtype)
