"""ISTA for sparse coding, and the network that is ISTA with learned parameters (Gregor & LeCun 2010).

ISTA is gradient descent on the quadratic part of the sparse coding energy, followed by a soft threshold:

    h <- soft(h - W'(W h - v + b) / L, lambda / (beta L)),       L the largest eigenvalue of W'W

Collected, h <- soft((v - b) B + h S, t) with B = W / L, S = I - W'W / L and t = lambda / (beta L). Cut after K steps it is a network of K
layers, all with the same weights. LISTA learns B, S and one threshold per unit, so that these few layers come as close as
possible to the codes that many would give. Served chapter: 12-learned-inference.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.models.sparse_coding import LaplaceSparseCoding
from paperlib.validation import require_count, require_shape
from paperlib.variational.recognition import ascend


@dataclass(frozen=True)
class ThresholdNetwork:
    """K soft-threshold layers with shared weights, started at a code of zero.

    Attributes
    ----------
    bottom_up : Tensor, shape [D, M]
        B.
    lateral : Tensor, shape [M, M]
        S; what a unit hears from the others' last values.
    log_thresholds : Tensor, shape [M]
        ln t, so that learned thresholds stay positive.
    offset : Tensor, shape [D]
        b, subtracted from v.
    depth : int
        K.
    """

    bottom_up: Tensor
    lateral: Tensor
    log_thresholds: Tensor
    offset: Tensor
    depth: int

    def __call__(self, v: Tensor) -> Tensor:
        """Codes, [N, M], of `v` [N, D]."""
        require_shape("v", v, [None, len(self.offset)])
        drive = (v - self.offset) @ self.bottom_up
        threshold = self.log_thresholds.exp()
        codes = _soft(drive, threshold)
        for _ in range(self.depth - 1):
            codes = _soft(drive + codes @ self.lateral, threshold)
        return codes


def ista(model: LaplaceSparseCoding, depth: int) -> ThresholdNetwork:
    """ISTA cut after `depth` steps from zero, as a network. Its codes' energy never rises with the depth."""
    gram = model.weights.T @ model.weights
    curvature = torch.linalg.eigvalsh(gram)[-1]
    threshold = model.rate / (model.precision * curvature)
    return ThresholdNetwork(
        model.weights / curvature,
        torch.eye(model.num_hidden).to(gram) - gram / curvature,
        threshold.log().expand(model.num_hidden).clone(),
        model.visible_bias,
        require_count("depth", depth),
    )


def learn_ista(
    start: ThresholdNetwork, v: Tensor, codes: Tensor, num_steps: int, learning_rate: float
) -> ThresholdNetwork:
    """LISTA: least squares between the network's codes of `v` [N, D] and the given ones [N, M], from `start` on."""
    require_shape("codes", codes, [len(v), len(start.lateral)])
    leaves = [
        value.clone().requires_grad_()
        for value in (start.bottom_up, start.lateral, start.log_thresholds)
    ]
    network = ThresholdNetwork(*leaves, start.offset, start.depth)
    ascend(
        leaves,
        lambda: -(network(v) - codes).square().sum(-1).mean(),
        num_steps,
        learning_rate,
    )
    return ThresholdNetwork(*(leaf.detach() for leaf in leaves), start.offset, start.depth)


def _soft(values: Tensor, threshold: Tensor) -> Tensor:
    """sign(x) max(abs(x) - t, 0), with a threshold per unit that autograd can follow."""
    return values.sign() * (values.abs() - threshold).clamp(min=0)
