"""ln Z of an RBM from distributions of pairs of units: the Bethe approximation, and an upper bound.

Both keep the mean of each unit and the joint distribution of each pair of connected units. With
mutual informations I_ij of the pairs,

    F = b' m_v + a' m_h + sum_ij W_ij p(v_i = 1, h_j = 1)
        + sum of entropies of single units - rho sum_ij I_ij.

rho = 1 gives the Bethe free energy (Yedidia, Freeman & Weiss 2005), and rho = (D + M - 1) / (D M)
the tree-reweighted one (Wainwright, Jaakkola & Willsky 2005). For given means, the best joint
distribution of a pair is known in closed form (Welling & Teh 2001): its odds ratio is exp(W_ij /
rho). This leaves a function of D + M numbers.

*Bethe.* F is stationary where the messages of loopy belief propagation on the bipartite graph no
longer change, and its value there approximates ln Z. A message says by how much one unit raises the
logit of another. With the logit of v_i in the absence of h_j, l_{i -> j} = b_i + sum of the
messages to v_i from all other hidden units,

    m_{i -> j} = softplus(l_{i -> j} + W_ij) - softplus(l_{i -> j}),

and likewise from hidden to visible units. It is exact on a tree, and has an error of either sign
elsewhere. The terms of the first three orders in the weights are right on every bipartite graph.

*Tree-reweighted.* ln Z is convex in the parameters. Choose a distribution over spanning trees of
the graph, and write the parameters as an average of parameters that each live on one tree: the
average of the trees' ln Z is then an upper bound. The best such bound equals the largest value of F
over all means and pair distributions that agree with each other, where rho is the probability that
an edge is in the tree. The graph of an RBM is complete and bipartite. With uniformly random
spanning trees, every edge has by symmetry the same rho, since a tree has D + M - 1 of the D M
edges. F is then concave, so that its maximum lies below the tangent at any point:

    ln Z <= max F <= F(m) + sum_i max(g_i (1 - m_i), -g_i m_i),        g the gradient at m.

The right side is an upper bound at **every** m, converged or not, and is the value returned. The
last sum is the gap; it goes to zero as F is maximised.

Used in chapter: which-estimator-tells-the-truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import bernoulli_entropy, softplus
from paperlib.validation import require_count
from paperlib.variational.log_z import (
    LogZApproximation,
    as_double,
    best_fixed_point,
    hidden_starts,
    require_tolerance,
)

# Share of the old messages in the new ones.
_DAMPING = 0.5
_LARGEST_LOGIT = 300.0
# Factor by which the temperature of the entropies falls, and the most steps before it does. It
# falls earlier if the gap is below the temperature.
_COOLING = 0.5
_STEPS_PER_TEMPERATURE = 8
# Largest log-odds of a pair, in nats, at the first temperature.
_FIRST_LOG_ODDS = 5.0
# Largest change of a logit in a step, and the most halvings of a step that are tried.
_LONGEST_STEP = 4.0
_MAX_HALVINGS = 12
# Relative rounding error of F.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class _PairFreeEnergy:
    """F at some means, in nats, and its first and second derivatives there.

    In pairs of tensors, the first has D numbers and the second M.
    """

    logits: tuple[Tensor, Tensor]  # of the means
    value: float
    gradients: tuple[Tensor, Tensor]  # by the means
    curvatures: tuple[Tensor, Tensor]  # minus the second derivative by each mean
    # by a visible and a hidden mean, [D, M]; derivatives by two means of one layer are zero
    cross: Tensor

    @property
    def gap(self) -> float:
        """How much the tangent rises from here to the highest corner of the box of all means."""
        gap = 0.0
        for gradient, logits in zip(self.gradients, self.logits, strict=True):
            up = gradient * torch.sigmoid(-logits)
            down = -gradient * torch.sigmoid(logits)
            gap += torch.maximum(up, down).sum().item()
        return gap

    def step(self) -> tuple[Tensor, Tensor]:
        """By how much the means go to the maximum of the quadratic approximation of F.

        The larger layer is eliminated, since the second derivatives of F by two different units of
        a layer are zero.
        """
        visible_gradient, hidden_gradient = self.gradients
        visible_curvature, hidden_curvature = self.curvatures
        if len(hidden_gradient) <= len(visible_gradient):
            return _newton(
                visible_gradient, hidden_gradient, visible_curvature, hidden_curvature, self.cross
            )
        hidden_step, visible_step = _newton(
            hidden_gradient, visible_gradient, hidden_curvature, visible_curvature, self.cross.T
        )
        return visible_step, hidden_step


def _newton(
    large_gradient: Tensor,
    small_gradient: Tensor,
    large_curvature: Tensor,
    small_curvature: Tensor,
    cross: Tensor,
) -> tuple[Tensor, Tensor]:
    """The steps of a larger layer, which is eliminated, and of a smaller one."""
    scaled = cross / large_curvature[:, None]
    matrix = small_curvature.diag() - cross.T @ scaled
    small_step = torch.linalg.solve(matrix, small_gradient + scaled.T @ large_gradient)
    return (large_gradient + cross @ small_step) / large_curvature, small_step


class _PairModel:
    """An RBM in float64 as pairs of units, the mutual information of each counted `rho` times.

    Pairs with negative weight are written with the hidden unit replaced by its negation, so that
    all weights are positive and all odds ratios at least 1. Cells of a pair's table are computed by
    formulas without cancellation. Those that may be as small as exp(-abs(W) / rho) are kept as
    logarithms: with rho = 0.003, no floating-point number can hold them.
    """

    def __init__(self, model: RBM, rho: float) -> None:
        self._rho = rho
        self._negative = model.weights < 0
        self._log_odds = model.weights.abs() / rho
        self._visible_bias = model.visible_bias + model.weights.clamp(max=0).sum(1)
        self._hidden_bias = model.hidden_bias
        self._degrees = model.num_hidden, model.num_visible

    def at(
        self, visible_logits: Tensor, hidden_logits: Tensor, temperature: float = 1.0
    ) -> _PairFreeEnergy:
        """F at means with these logits, [D] and [M].

        All entropies and informations are multiplied by `temperature`.
        """
        # Products of two means must not be zero. Beyond these logits, means in float64 cannot be
        # told from 0 and 1.
        visible_logits = visible_logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
        hidden_logits = hidden_logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
        rho = temperature * self._rho
        log_odds = self._log_odds / temperature
        x = torch.sigmoid(visible_logits)[:, None]
        x_off = torch.sigmoid(-visible_logits)[:, None]
        y_on = torch.sigmoid(hidden_logits)
        y_off = torch.sigmoid(-hidden_logits)
        y = torch.where(self._negative, y_off, y_on)
        y_not = torch.where(self._negative, y_on, y_off)

        # Cells of the table of each pair: both on, only x on, only y on, both off.
        rarity = torch.exp(-log_odds)
        excess = -torch.expm1(-log_odds)
        difference = x - y
        root = torch.sqrt(
            (excess * difference).square()
            + rarity * (rarity + 2 * excess * (x * y_not + x_off * y))
        )
        both = 2 * x * y / (rarity + excess * (x + y) + root)
        neither = 2 * x_off * y_not / (rarity + excess * (x_off + y_not) + root)
        log_neither = torch.log(neither)
        # x alone minus y alone is `difference`; their product is both * neither / odds ratio.
        log_product = torch.log(both) + log_neither - log_odds
        scale = torch.exp(log_product / 2)
        size = difference.abs()
        # if the difference is zero and the product below the smallest number, the two are equal
        log_larger = torch.where(
            scale > 1e-150 * size,
            log_product / 2 + torch.asinh(size / (2 * scale.clamp(min=1e-300))),
            torch.log(size.clamp(min=1e-300)),
        )
        log_larger = torch.where((size == 0) & (scale == 0), log_product / 2, log_larger)
        log_smaller = log_product - log_larger
        x_larger = difference > 0
        log_x_alone = torch.where(x_larger, log_larger, log_smaller)
        log_y_alone = torch.where(x_larger, log_smaller, log_larger)

        visible_entropy = _entropies(visible_logits)
        hidden_entropy = _entropies(hidden_logits)
        degree_v, degree_h = self._degrees
        # With the odds ratio inserted, the weight and the information of a pair combine to this.
        pairs = x * log_x_alone + y * log_y_alone + (x_off - y) * log_neither
        value = (
            self._visible_bias @ x[:, 0]
            + self._hidden_bias @ y_on
            + temperature * (visible_entropy.sum() + hidden_entropy.sum())
            - rho
            * (pairs.sum() + degree_v * visible_entropy.sum() + degree_h * hidden_entropy.sum())
        )
        visible_gradient = self._visible_bias + rho * (log_neither - log_x_alone).sum(1)
        visible_gradient = visible_gradient - (temperature - rho * degree_v) * visible_logits
        towards = rho * (log_neither - log_y_alone)
        hidden_gradient = self._hidden_bias + torch.where(self._negative, -towards, towards).sum(0)
        hidden_gradient = hidden_gradient - (temperature - rho * degree_h) * hidden_logits

        # Variances of each unit of a pair given the other, which determine the curvature of the
        # free energy.
        x_alone = log_x_alone.exp()
        y_alone = log_y_alone.exp()
        x_spread = (x_alone * neither / y_not + both * y_alone / y).clamp(min=1e-300)
        y_spread = (y_alone * neither / x_off + both * x_alone / x).clamp(min=1e-300)
        covariance = both * neither * excess
        cross = rho * covariance / (y * y_not * x_spread)
        spread_v = (x * x_off)[:, 0]
        spread_h = y_on * y_off
        return _PairFreeEnergy(
            (visible_logits, hidden_logits),
            value.item(),
            (visible_gradient, hidden_gradient),
            (
                (temperature - rho * degree_v) / spread_v + rho * (1 / x_spread).sum(1),
                (temperature - rho * degree_h) / spread_h + rho * (1 / y_spread).sum(0),
            ),
            torch.where(self._negative, -cross, cross),
        )


def bethe_log_z(
    rbm: RBM, *, max_iterations: int = 300, tolerance: float = 1e-6
) -> LogZApproximation:
    """ln Z by loopy belief propagation, at the best of the fixed points found.

    Parameters
    ----------
    rbm, max_iterations
        As in `tap_log_z`. The first messages are made from its starts, and an iteration updates all
        messages.
    tolerance : float
        Converged when no message would change by more than this in one update without damping, in
        nats.

    Returns
    -------
    LogZApproximation
        Chosen as in `tap_log_z`. The value is that of the Bethe free energy at the means of the
        units, with the best pair distributions for these means, so it is a value of that free
        energy even without convergence. The search takes memory for about ten arrays [N, D, M].

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or another argument is out of range.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> star = RBM([[1.0, -1.0, 2.0]], [0.5], [0.2, 0.0, -1.0])  # one visible unit: a tree
    >>> print(f"{bethe_log_z(star).value:.6f}, exact {exact_log_z(star):.6f}")
    3.744888, exact 3.744888
    """
    model = as_double(rbm)
    weights = model.weights
    pairs = _PairModel(model, rho=1.0)

    def logits_of_visible(to_visible: Tensor) -> Tensor:
        return model.visible_bias + to_visible.sum(2)

    def logits_of_hidden(to_hidden: Tensor) -> Tensor:
        return model.hidden_bias + to_hidden.sum(1)

    def messages(without_receiver: Tensor) -> Tensor:
        return softplus(without_receiver + weights) - softplus(without_receiver)

    def update_to_hidden(_: Tensor, to_visible: Tensor) -> Tensor:
        return messages(logits_of_visible(to_visible)[:, :, None] - to_visible)

    def update_to_visible(_: Tensor, to_hidden: Tensor) -> Tensor:
        return messages(logits_of_hidden(to_hidden)[:, None] - to_hidden)

    def evaluate(to_hidden: Tensor, to_visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        visible = logits_of_visible(to_visible)
        hidden = logits_of_hidden(to_hidden)
        values = [pairs.at(v, h).value for v, h in zip(visible, hidden, strict=True)]
        return weights.new_tensor(values), torch.sigmoid(visible), torch.sigmoid(hidden)

    # Messages to visible units as if the hidden ones had these means regardless of the visible
    # ones.
    means = hidden_starts(model).clamp(1e-12, 1 - 1e-12)
    to_visible = messages(torch.logit(means)[:, None].expand(-1, *weights.shape))
    to_hidden = update_to_hidden(to_visible, to_visible)
    return best_fixed_point(
        to_hidden,
        to_visible,
        update_to_hidden,
        update_to_visible,
        evaluate,
        _DAMPING,
        max_iterations,
        tolerance,
    )


def tree_reweighted_log_z(
    rbm: RBM, *, max_iterations: int = 100, tolerance: float = 0.01
) -> LogZApproximation:
    """A proven upper bound on ln Z: the tree-reweighted free energy.

    Its spanning trees are uniformly random.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    max_iterations : int
        Maximum number of Newton steps.
    tolerance : float
        Converged when the bound is known to be at most this far above the best of its kind, in
        nats.

    Returns
    -------
    LogZApproximation
        An "upper bound", which holds even if `converged` is False.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or another argument is out of range.

    Notes
    -----
    The bound is exact if one layer has a single unit, since the graph is then its own only spanning
    tree. With many units in both layers the bound is loose. No choice of edge probabilities would
    mend that: F is at least the sum of biases and weights at any pair distributions that agree in
    their means, since entropies on trees are not negative, and with all means one half, these
    distributions can suit every weight at once, positive or negative. On RBMs of 784 x 20 units
    that were trained on MNIST, the bound is hundreds of nats above ln Z; with 500 hidden units,
    about ten thousand. It needs memory for about 30 arrays [D, M].

    F is maximised over the means by Newton's method, first with enlarged entropies, which are then
    lowered to their true size; message passing would have to be damped heavily.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> bound = tree_reweighted_log_z(rbm)
    >>> bound.kind, bound.converged
    ('upper bound', True)
    >>> print(f"{exact_log_z(rbm):.3f} <= {bound.value:.3f}")
    5.132 <= 5.183
    """
    model = as_double(rbm)
    limit = require_count("max_iterations", max_iterations)
    require_tolerance(tolerance)
    visible = model.num_visible
    hidden = model.num_hidden
    rho = (visible + hidden - 1) / (visible * hidden)
    pairs = _PairModel(model, rho)
    temperature = max(1.0, model.weights.abs().max().item() / rho / _FIRST_LOG_ODDS)
    biases = model.visible_bias / temperature, model.hidden_bias / temperature
    point = pairs.at(*biases, temperature)
    best_point = point
    bound = torch.inf
    converged = False
    iterations = 0
    steps_at_temperature = 0
    while True:
        gap = point.gap
        # Entropies are not negative, so the bound is also valid when they are enlarged.
        if point.value + gap < bound:
            bound = point.value + gap
            best_point = point
        converged = temperature == 1 and gap <= tolerance
        if converged or iterations == limit:
            break
        following = None
        if temperature == 1 or (
            gap > temperature and steps_at_temperature < _STEPS_PER_TEMPERATURE
        ):
            following = _newton_step(pairs, point, temperature)
            iterations += 1
            steps_at_temperature += 1
        if following is not None:
            point = following
        elif temperature == 1:  # floating-point numbers allow no further gain
            break
        else:
            temperature = max(1.0, _COOLING * temperature)
            steps_at_temperature = 0
            point = pairs.at(*point.logits, temperature)
    means = map(torch.sigmoid, best_point.logits)
    return LogZApproximation(bound, "upper bound", converged, iterations, *means)


def _newton_step(
    pairs: _PairModel, point: _PairFreeEnergy, temperature: float
) -> _PairFreeEnergy | None:
    """A point with a larger F or a smaller gap; None if there is none in Newton's direction."""
    # Means stay inside (0, 1) if the step is taken in their logits.
    steps = [
        move / (torch.sigmoid(logit) * torch.sigmoid(-logit)).clamp(min=1e-300)
        for move, logit in zip(point.step(), point.logits, strict=True)
    ]
    longest = max(step.abs().max().item() for step in steps)
    size = min(1.0, _LONGEST_STEP / longest) if longest > 0 else 0.0
    if size <= 0:
        return None
    visible_logits, hidden_logits = point.logits
    visible_step, hidden_step = steps
    for _ in range(_MAX_HALVINGS):
        trial = pairs.at(
            visible_logits + size * visible_step, hidden_logits + size * hidden_step, temperature
        )
        gain = trial.value - point.value
        # Where F is so flat that rounding decides, the gap says which point is better.
        flat = abs(gain) <= _ROUNDING * abs(point.value)
        better = trial.gap < point.gap if flat else gain > 0
        if better:
            return trial
        size /= 2
    return None


def _entropies(logits: Tensor) -> Tensor:
    """The entropy of each unit, in nats."""
    return bernoulli_entropy(logits[:, None])
