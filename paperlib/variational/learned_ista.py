"""ISTA for sparse coding, and LISTA, which learns its parameters (Gregor & LeCun 2010).

ISTA, the iterative shrinkage-thresholding algorithm, is gradient descent on the quadratic part of
the sparse coding energy, followed by a soft threshold:

    h <- soft(h - W'(W h - v + b) / L, lambda / (beta L)),       L the largest eigenvalue of W'W

With terms collected, h <- soft((v - b) B + h S, t) with B = W / L, S = I - W'W / L and t = lambda /
(beta L). Stopped after K steps, it is a network of K layers that all have the same weights. LISTA
learns B, S and one threshold per unit, so that these few layers come as close as possible to the
codes that many layers would give. Used in chapter: learned-inference.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_state_rows, as_states, require_count, require_shape
from paperlib.variational.recognition import ascend
from paperlib.variational.sparse_coding import LaplaceSparseCoding


@dataclass(frozen=True)
class ThresholdNetwork:
    """K soft-threshold layers with shared weights, starting from a code of zero.

    Attributes
    ----------
    bottom_up : Tensor, shape [D, M]
        The weights B.
    lateral : Tensor, shape [M, M]
        S; how the previous code enters the input of each unit.
    log_thresholds : Tensor, shape [M]
        ln t, so that learned thresholds stay positive.
    offset : Tensor, shape [D]
        b, subtracted from v.
    depth : int
        The number of steps, K.

    Examples
    --------
    >>> model = LaplaceSparseCoding([[1.0, 0.6], [0.0, 0.8]], [0.0, 0.0], rate=1.0, precision=4.0)
    >>> network = ista(model, depth=1)
    >>> network.depth, network.bottom_up.shape
    (1, torch.Size([2, 2]))
    """

    bottom_up: Tensor
    lateral: Tensor
    log_thresholds: Tensor
    offset: Tensor
    depth: int

    def __call__(self, v: ArrayLike) -> Tensor:
        """Codes, [N, M], of `v` [N, D]."""
        v = as_state_rows("v", v, self.offset, len(self.offset))
        drive = (v - self.offset) @ self.bottom_up
        threshold = self.log_thresholds.exp()
        codes = _soft(drive, threshold)
        for _ in range(self.depth - 1):
            codes = _soft(drive + codes @ self.lateral, threshold)
        return codes


@plain_torch()
def ista(model: LaplaceSparseCoding, depth: int) -> ThresholdNetwork:
    """ISTA stopped after `depth` steps from zero, as a network.

    The energy of its codes never rises with depth.

    Examples
    --------
    >>> model = LaplaceSparseCoding([[1.0, 0.6], [0.0, 0.8]], [0.0, 0.0], rate=1.0, precision=4.0)
    >>> ista(model, depth=200)([[1.0, 0.5]])
    tensor([[0.4688, 0.4688]], dtype=torch.float64)
    """
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


@plain_torch()
def learn_ista(
    start: ThresholdNetwork, v: ArrayLike, codes: ArrayLike, num_steps: int, learning_rate: float
) -> ThresholdNetwork:
    """LISTA: the network whose codes of `v` [N, D] are closest to `codes` [N, M].

    It is fitted by least squares, with Adam from `start` on.

    Examples
    --------
    >>> model = LaplaceSparseCoding([[1.0, 0.6], [0.0, 0.8]], [0.0, 0.0], rate=1.0, precision=4.0)
    >>> v = torch.eye(2).double()
    >>> codes = ista(model, depth=500)(v)
    >>> shallow = ista(model, depth=2)
    >>> learned = learn_ista(shallow, v, codes, num_steps=50, learning_rate=0.01)
    >>> bool((learned(v) - codes).norm() < (shallow(v) - codes).norm())
    True
    """
    v = as_states("v", v, start.offset, len(start.offset))
    codes = as_states("codes", codes, start.offset, len(start.lateral))
    require_shape("codes", codes, [len(v), len(start.lateral)])
    initial = (start.bottom_up, start.lateral, start.log_thresholds)
    leaves = [value.clone().requires_grad_() for value in initial]
    network = ThresholdNetwork(*leaves, offset=start.offset, depth=start.depth)
    ascend(leaves, lambda: -(network(v) - codes).square().sum(-1).mean(), num_steps, learning_rate)
    learned = [leaf.detach() for leaf in leaves]
    return ThresholdNetwork(*learned, offset=start.offset, depth=start.depth)


def _soft(values: Tensor, threshold: Tensor) -> Tensor:
    """sign(x) max(abs(x) - t, 0), with a threshold per unit that autograd can follow."""
    return values.sign() * (values.abs() - threshold).clamp(min=0)
