"""The tree-reweighted upper bound on ln Z of an RBM (Wainwright, Jaakkola & Willsky 2005).

ln Z is convex in the parameters. Choose a distribution over spanning trees of the graph, and write the parameters as an average of
parameters that each live on one tree: the average of the trees' ln Z is then an upper bound. The best such bound equals the largest value of

    F(m) = b' m_v + a' m_h + sum_ij W_ij p_ij + sum of entropies - rho sum_ij I_ij

over all means and pair distributions that agree with each other, where rho is the probability that an edge is in the tree. The graph of
an RBM is complete and bipartite. With uniformly random spanning trees, every edge has by symmetry the same rho = (D + M - 1) / (D M), since a
tree has D + M - 1 of the D M edges.

F is concave, so that its maximum lies below the tangent at any point:

    ln Z <= max F <= F(m) + sum_i max(g_i (1 - m_i), -g_i m_i),        g the gradient at m.

The right side is an upper bound at **every** m, converged or not, and is the value returned. The last sum is the gap; it goes to zero as F
is maximised.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.validation import require_count
from paperlib.variational.log_z.log_z_approximation import (
    LogZApproximation,
    as_double,
    require_tolerance,
)
from paperlib.variational.log_z.pair_free_energy import PairFreeEnergy, PairModel, inner

# Factor by which the temperature of the entropies falls, and the most steps before it does. It falls earlier if the gap is below the temperature.
_COOLING, _STEPS_PER_TEMPERATURE = 0.5, 8
# Largest log-odds of a pair, in nats, at the first temperature.
_FIRST_LOG_ODDS = 5.0
# Largest change of a logit in a step, and the most halvings of a step that are tried.
_LONGEST_STEP, _MAX_HALVINGS = 4.0, 12
# Relative rounding error of F.
_ROUNDING = 1e-13


def tree_reweighted_log_z(
    rbm: RBM, *, max_iterations: int = 100, tolerance: float = 0.01
) -> LogZApproximation:
    """A proven upper bound on ln Z: the tree-reweighted free energy, with uniformly random spanning trees.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    max_iterations : int
        Maximum number of Newton steps.
    tolerance : float
        Converged when the bound is known to be at most this far above the best of its kind, in nats.

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
    The bound is exact if one layer has a single unit, since the graph is then its own only spanning tree. With many units in both layers the
    bound is loose. No choice of edge probabilities would mend that: F is at least the sum of biases and weights at any pair distributions that
    agree in their means, since entropies on trees are not negative, and with all means one half, these distributions can suit every weight
    at once, positive or negative. On RBMs of 784 x 20 units that were trained on MNIST, the bound is hundreds of nats above ln Z; with 500
    hidden units, about ten thousand. It needs memory for about 30 arrays [D, M].

    F is maximised over the means by Newton's method, first with enlarged entropies, which are then lowered to their true size; message passing
    would have to be damped heavily.

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
    visible, hidden = model.num_visible, model.num_hidden
    rho = (visible + hidden - 1) / (visible * hidden)
    pairs = PairModel(model, rho)
    temperature = max(1.0, model.weights.abs().max().item() / rho / _FIRST_LOG_ODDS)
    logits = inner(model.visible_bias / temperature), inner(model.hidden_bias / temperature)
    best, found, converged = torch.inf, logits, False
    iterations = steps_here = 0
    while True:
        here = pairs.at(*logits, temperature)
        gap = _gap(here, *logits)
        # Entropies are not negative, so the bound is also valid when they are enlarged.
        if here.value + gap < best:
            best, found = here.value + gap, logits
        converged = temperature == 1 and gap <= tolerance
        if converged or iterations == limit:
            break
        moved = None
        if temperature == 1 or (gap > temperature and steps_here < _STEPS_PER_TEMPERATURE):
            moved = _newton_step(pairs, here, logits, temperature)
            iterations, steps_here = iterations + 1, steps_here + 1
        if moved is not None:
            logits = moved
        elif temperature == 1:  # floating-point numbers allow no further gain
            break
        else:
            temperature, steps_here = max(1.0, _COOLING * temperature), 0
    return LogZApproximation(
        best, "upper bound", converged, iterations, torch.sigmoid(found[0]), torch.sigmoid(found[1])
    )


def _gap(here: PairFreeEnergy, visible_logits: Tensor, hidden_logits: Tensor) -> float:
    """How much the tangent rises from here to the highest corner of the box of all means."""
    gap = 0.0
    for gradient, logits in (
        (here.visible_gradient, visible_logits),
        (here.hidden_gradient, hidden_logits),
    ):
        up, down = gradient * torch.sigmoid(-logits), -gradient * torch.sigmoid(logits)
        gap += torch.maximum(up, down).sum().item()
    return gap


def _newton_step(
    pairs: PairModel, here: PairFreeEnergy, logits: tuple[Tensor, Tensor], temperature: float
) -> tuple[Tensor, Tensor] | None:
    """Logits with a larger F, or with a smaller gap; None if no step in this direction leads there."""
    towards = _newton_direction(here)
    # Means stay inside (0, 1) if the step is taken in their logits.
    steps = [
        move / (torch.sigmoid(logit) * torch.sigmoid(-logit)).clamp(min=1e-300)
        for move, logit in zip(towards, logits, strict=True)
    ]
    longest = max(step.abs().max().item() for step in steps)
    size = min(1.0, _LONGEST_STEP / longest) if longest > 0 else 0.0
    for _ in range(_MAX_HALVINGS if size > 0 else 0):
        tried = inner(logits[0] + size * steps[0]), inner(logits[1] + size * steps[1])
        there = pairs.at(*tried, temperature)
        gain = there.value - here.value
        # Where F is so flat that rounding decides, the gap says which point is better.
        flat = abs(gain) <= _ROUNDING * abs(here.value)
        if (gain > 0 and not flat) or (flat and _gap(there, *tried) < _gap(here, *logits)):
            return tried
        size /= 2
    return None


def _newton_direction(here: PairFreeEnergy) -> tuple[Tensor, Tensor]:
    """The step from here to the maximum of the quadratic approximation of F; [D] and [M].

    One layer is eliminated, since the second derivatives of F by two different units of a layer are zero.
    """
    large = here.visible_gradient, here.visible_curvature
    small = here.hidden_gradient, here.hidden_curvature
    cross = here.cross
    turned = len(small[0]) > len(large[0])
    if turned:
        large, small, cross = small, large, cross.T
    scaled = cross / large[1][:, None]
    matrix = small[1].diag() - cross.T @ scaled
    move_small = torch.linalg.solve(matrix, small[0] + scaled.T @ large[0])
    move_large = (large[0] + cross @ move_small) / large[1]
    return (move_small, move_large) if turned else (move_large, move_small)
