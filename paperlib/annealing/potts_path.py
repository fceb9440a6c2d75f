"""A path from independent sites to an RBM with categorical visible units.

    f_beta(v) = exp((1 - beta) b_A' v + beta b' v) prod_j (1 + e^{beta u_j}),        u = W' v + a

is the base-rate path of `paperlib.annealing.rbm_paths`, over bits of which exactly one is on at each site.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from paperlib import storage
from paperlib.annealing.rbm_paths import RBMInterpolation, VisibleState, bias_at_start
from paperlib.errors import InputError
from paperlib.kernels import BipartiteSampler, CategoricalSampler, draw_categories
from paperlib.models import PottsRBM
from paperlib.validation import ArrayLike, as_binary, as_states


class PottsPath(RBMInterpolation):
    """A path from independent sites to a `PottsRBM`; AIS along it estimates ln Z.

    Parameters
    ----------
    model : PottsRBM
        The target.
    visible_bias : array or Tensor, shape [L, q], optional
        Biases of the start, such as the logarithms of the frequencies of states at each site in the training set
        (`paperlib.datasets.site_frequency_bias`). None: zero, the uniform start.

    Raises
    ------
    InputError
        If `visible_bias` has the wrong shape or holds NaN or infinite values.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z, parallel_tempering
    >>> model = PottsRBM([[[0.5], [-1.0], [2.0]], [[1.0], [0.0], [-2.0]]], torch.zeros(2, 3), [0.2])
    >>> estimate = parallel_tempering(PottsPath(model), 4_000, torch.Generator().manual_seed(0))
    >>> low, high = estimate.interval(0.99)
    >>> low < exact_log_z(model) < high
    True
    """

    # Not tried on a GPU.
    replayable: ClassVar[bool] = False

    def __init__(self, model: PottsRBM, visible_bias: object | None = None) -> None:
        self._model, flat = model, model.flat
        bias = bias_at_start("visible_bias", visible_bias, model.visible_bias).flatten()
        super().__init__(flat.weights[:, :0], bias, flat.hidden_bias[:0], flat)
        self._target = model
        by_site = self._by_site(bias.double())
        self.uniform_start = bool((by_site == by_site[:, :1]).all())
        log_sites = by_site.logsumexp(-1).sum().item()
        self.log_z_start = log_sites + model.num_hidden * math.log(2)

    def _make_sampler(self, groups: Sequence[slice]) -> BipartiteSampler:
        return CategoricalSampler(self._weights, self._hidden_bias, groups, self._model.num_states)

    def _arguments(self) -> tuple[Any, ...]:
        return self._model, self._by_site(self._visible_bias_a)

    def _by_site(self, bits: Tensor) -> Tensor:
        return bits.unflatten(-1, (self._model.num_sites, self._model.num_states))

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on."""
        return storage.sha256(f"{self._model.num_states} states {super().checksum()}".encode())

    def state_at(self, v: ArrayLike, last: VisibleState | None = None) -> VisibleState:
        """The state of chains with the given visible bits [chains, D]; see `RBMInterpolation`.

        Raises
        ------
        InputError
            If `v` has the wrong shape, is empty, is not binary, or a site does not have exactly one bit on.
        """
        units = as_binary("v", v, self.num_visible)
        if bool((self._by_site(units).sum(-1) != 1).any()):
            raise InputError(
                f"v: expected one bit on of each site's {self._model.num_states}, got another number; "
                "PottsRBM.one_hot makes them from numbers of states"
            )
        return super().state_at(units, last)

    def log_start(self, v: ArrayLike) -> Tensor:
        """ln p(v) under the independent sites of the start, float64 [N], for bits `v` [N, L q]."""
        bias = self._visible_bias_a.double()
        log_sites = self._by_site(bias).logsumexp(-1).sum()
        return as_states("v", v, bias, self.num_visible) @ bias - log_sites

    def sample_start(self, num_chains: int, generator: torch.Generator) -> VisibleState:
        """Independent draws of all sites."""
        logits = self._visible_bias_a.expand(num_chains, -1)
        return self._state(draw_categories(logits, self._model.num_states, generator))
