"""Approximations of ln Z without sampling: exact where they must be.

On their side where they are bounds, and of the right order elsewhere.
"""

import itertools
import math

import pytest
import torch
from enumeration import all_states, joint_log_table, log_z, normal, random_rbm

from boltzmann_companion.studies.pair_free_energy import (
    _PairModel,
    bethe_log_z,
    tree_reweighted_log_z,
)
from paperlib.estimators import exact_log_z
from paperlib.mcmc import loopy_belief_propagation
from paperlib.models import RBM, log_z_lower_bound
from paperlib.models.bounds import mean_field_optima, search_points
from paperlib.variational import mean_field_log_z, tap_log_z

METHODS = {
    "mean field": mean_field_log_z,
    "TAP": tap_log_z,
    "Bethe": bethe_log_z,
    "tree-reweighted": tree_reweighted_log_z,
}
EACH = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def marginals(rbm):
    """Exact means of both layers, and p(v_i = 1, h_j = 1)."""
    probs = joint_log_table(rbm).flatten().softmax(0).view(2**rbm.num_visible, -1)
    v = all_states(rbm.num_visible)
    h = all_states(rbm.num_hidden)
    return probs.sum(1) @ v, probs.sum(0) @ h, v.T @ probs @ h


def star(units, seed, scale=2.0):
    """One visible unit and many hidden ones."""
    return RBM(
        scale * normal(1, units, seed=seed), normal(1, seed=seed + 1), normal(units, seed=seed + 2)
    )


def chain(seed, scale=2.0):
    """v1 - h1 - v2 - h2 - v3 - h3, and v4 without any edge: a tree, with zeros elsewhere."""
    weights = torch.zeros(4, 3).double()
    edges = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]
    for (i, j), weight in zip(edges, scale * normal(5, seed=seed), strict=True):
        weights[i, j] = weight
    return RBM(weights, normal(4, seed=seed + 1), normal(3, seed=seed + 2))


# ---- exact


@EACH
def test_without_weights_all_are_exact(method):
    rbm = RBM(torch.zeros(5, 4), normal(5, seed=0), normal(4, seed=1))
    estimate = method(rbm)
    # the tree-reweighted bound stops within 0.01
    tolerance = 0.01 if estimate.kind == "upper bound" else 1e-9
    assert estimate.value == pytest.approx(log_z(rbm), abs=tolerance)
    assert estimate.converged
    assert estimate.visible_means == pytest.approx(torch.sigmoid(rbm.visible_bias), abs=1e-3)
    assert estimate.hidden_means == pytest.approx(torch.sigmoid(rbm.hidden_bias), abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tree", [star, chain], ids=["star", "chain"])
def test_bethe_is_exact_on_trees(tree, seed):
    rbm = tree(5, seed) if tree is star else tree(seed)
    estimate = bethe_log_z(rbm)
    assert estimate.converged
    # messages stop within 1e-6, and at a stationary point this moves the value by its square only
    assert estimate.value == pytest.approx(log_z(rbm), abs=1e-9)
    visible, hidden, _ = marginals(rbm)
    assert estimate.visible_means == pytest.approx(visible, abs=1e-5)
    assert estimate.hidden_means == pytest.approx(hidden, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_reweighted_bound_is_exact_on_a_star(seed):
    for rbm in (star(6, seed), star(6, seed).transposed()):
        estimate = tree_reweighted_log_z(rbm, tolerance=1e-7)
        assert estimate.converged
        assert log_z(rbm) - 1e-9 <= estimate.value <= log_z(rbm) + 1e-6


def test_bethe_is_the_loopy_belief_propagation_of_any_graph():
    rbm = random_rbm(6, 5, seed=3, scale=0.7)
    estimate = bethe_log_z(rbm, tolerance=1e-10)
    couplings = torch.zeros(11, 11).double()
    couplings[:6, 6:] = rbm.weights
    biases = torch.cat([rbm.visible_bias, rbm.hidden_bias])
    other = loopy_belief_propagation(couplings + couplings.T, biases)
    assert estimate.converged
    assert other.converged
    means = torch.cat([estimate.visible_means, estimate.hidden_means])
    assert means == pytest.approx(torch.sigmoid(other.logits), abs=1e-8)


# ---- bounds


MODELS = [
    (visible, hidden, scale, seed)
    for visible, hidden in ((1, 1), (2, 2), (6, 5), (4, 9))
    for scale in (0.1, 1.0, 4.0, 15.0)
    for seed in range(3)
]


@pytest.mark.parametrize(("visible", "hidden", "scale", "seed"), MODELS)
def test_bounds_are_on_their_side(visible, hidden, scale, seed):
    rbm = random_rbm(visible, hidden, seed, scale)
    truth = log_z(rbm)
    rounding = 1e-12 * abs(truth)
    below = mean_field_log_z(rbm)
    above = tree_reweighted_log_z(rbm)
    assert (below.kind, above.kind) == ("lower bound", "upper bound")
    assert below.value <= truth + rounding
    assert above.value >= truth - rounding
    # loose bounds would pass as well: with weak weights these are also near
    if scale == 0.1:
        assert above.value - below.value < 0.1


@pytest.mark.parametrize("scale", [1.0, 6.0])
def test_the_upper_bound_holds_at_any_iterate(scale):
    for seed in range(4):
        rbm = random_rbm(6, 5, seed, scale)
        for iterations in (1, 2, 3, 5, 8):
            estimate = tree_reweighted_log_z(rbm, max_iterations=iterations)
            assert estimate.value >= log_z(rbm)
            assert estimate.iterations <= iterations


def test_the_tangent_bounds_from_any_means():
    """F + gap at random means is above ln Z, also far from the maximum.

    It is also above the converged bound less its tolerance.
    """
    rbm = random_rbm(6, 5, seed=8, scale=1.5)
    rho = 10 / 30
    best = tree_reweighted_log_z(rbm, tolerance=1e-8)
    pairs = _PairModel(rbm, rho)
    for seed in range(30):
        logits = 3 * normal(6, seed=seed), 3 * normal(5, seed=seed + 100)
        here = pairs.at(*logits)
        assert here.value <= best.value + 1e-9
        assert here.value + here.gap >= best.value - 1e-7


def test_the_tree_reweighted_bound_is_the_best_average_over_spanning_trees():
    """From its definition: a 2 x 2 graph is a ring, and each of its four trees lacks one edge.

    All parameters of all trees are optimised.
    """
    rbm = random_rbm(2, 2, seed=4, scale=0.8)
    inside = 1 - torch.eye(4, dtype=torch.float64)  # of tree and edge
    biases = torch.cat([rbm.visible_bias, rbm.hidden_bias])
    free_weights = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    free_biases = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    v, h = all_states(4).split(2, 1)
    pairs = (v[:, :, None] * h[:, None, :]).flatten(1)

    def average():
        # The trees' parameters have the model's own as their mean.
        weights = inside * (free_weights - (inside * free_weights).sum(0) / 3)
        weights = weights + inside * rbm.weights.flatten() * 4 / 3
        shifts = free_biases - free_biases.mean(0)
        return torch.logsumexp(pairs @ weights.T + all_states(4) @ (biases + shifts).T, 0).mean()

    optimizer = torch.optim.LBFGS(
        [free_weights, free_biases], max_iter=500, tolerance_grad=1e-10, tolerance_change=1e-15
    )

    def closure():
        optimizer.zero_grad()
        loss = average()
        loss.backward()
        return loss

    first = average().item()
    optimizer.step(closure)
    estimate = tree_reweighted_log_z(rbm, tolerance=1e-8)
    assert log_z(rbm) + 0.01 < estimate.value < first - 0.01
    assert estimate.value == pytest.approx(average().item(), abs=1e-6)


def test_mean_field_agrees_with_the_bound_that_estimates_are_checked_with():
    rbm = random_rbm(7, 5, seed=2, scale=1.5)
    estimate = mean_field_log_z(rbm)
    assert estimate.value <= log_z_lower_bound(rbm, torch.zeros(1, 7)) + 1e-12
    means, bounds, at_rest, updates = mean_field_optima(rbm, search_points(rbm))
    best = bounds.argmax()
    assert estimate.value == bounds[best].item()
    assert estimate.iterations == updates
    assert bool(at_rest.all())
    assert torch.equal(estimate.hidden_means, means[best])


# ---- order of the error


def test_orders_of_the_expansions_in_small_weights():
    """The biases stay and the weights shrink: halving divides the error by 2^order."""
    orders = {"mean field": 2, "TAP": 3, "Bethe": 4, "tree-reweighted": 2}
    weights = normal(6, 5, seed=1)
    visible = normal(6, seed=2)
    hidden = normal(5, seed=3)
    for name, order in orders.items():
        options = {"tolerance": 1e-7} if name == "tree-reweighted" else {}
        errors = []
        for scale in (0.1, 0.05):
            rbm = RBM(scale * weights, visible, hidden)
            estimate = METHODS[name](rbm, **options)
            assert estimate.converged
            errors.append(abs(estimate.value - log_z(rbm)))
        assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3), name


@pytest.mark.parametrize("seed", range(5))
def test_order_of_the_values(seed):
    """Mean field <= Bethe <= tree-reweighted: the same function with more and more entropy."""
    rbm = random_rbm(6, 5, seed, scale=0.5)
    low = mean_field_log_z(rbm).value
    middle = bethe_log_z(rbm).value
    high = tree_reweighted_log_z(rbm).value
    assert low < middle < high
    # with weights of this size the corrections are worth having
    truth = log_z(rbm)
    for method in (tap_log_z, bethe_log_z):
        assert abs(method(rbm).value - truth) < 0.1 * (truth - low)


# ---- the free energy of pairs


@pytest.mark.parametrize("rho", [1.0, 0.3])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_pair_free_energy_is_the_maximum_over_pair_distributions(rho, scale):
    """Against a fine grid over the free number of each pair; derivatives against differences."""
    rbm = random_rbm(3, 2, seed=5, scale=scale)
    logits = normal(3, seed=6), normal(2, seed=7)
    means = [torch.sigmoid(x) for x in logits]
    expected = means[0] @ rbm.visible_bias + means[1] @ rbm.hidden_bias
    entropy = [torch.special.entr(m) + torch.special.entr(1 - m) for m in means]
    expected = expected + entropy[0].sum() + entropy[1].sum()
    for i, j in itertools.product(range(3), range(2)):
        x = means[0][i]
        y = means[1][j]
        low = max(0.0, (x + y - 1).item())
        high = min(x, y).item()
        both = low + (high - low) * torch.linspace(0, 1, 200_001, dtype=torch.float64)
        cells = torch.stack([both, x - both, y - both, 1 - x - y + both]).clamp(min=0)
        information = entropy[0][i] + entropy[1][j] - torch.special.entr(cells).sum(0)
        expected = expected + (rbm.weights[i, j] * both - rho * information).max()
    pairs = _PairModel(rbm, rho)
    here = pairs.at(*logits)
    assert here.value == pytest.approx(expected.item(), abs=1e-6)
    step = 1e-5

    def shifted(layer, unit, by):
        moved = [x.clone() for x in logits]
        mean = means[layer][unit] + by
        moved[layer][unit] = torch.logit(mean)
        return pairs.at(*moved)

    for layer, (gradient, curvature) in enumerate(
        zip(here.gradients, here.curvatures, strict=True)
    ):
        for unit in range(len(gradient)):
            up = shifted(layer, unit, step)
            down = shifted(layer, unit, -step)
            slope = (up.value - down.value) / (2 * step)
            assert slope == pytest.approx(gradient[unit].item(), abs=1e-5)
            bend = (up.gradients[layer] - down.gradients[layer])[unit] / (2 * step)
            assert -bend.item() == pytest.approx(curvature[unit].item(), rel=1e-5)
            if layer == 0:
                cross = (up.gradients[1] - down.gradients[1]) / (2 * step)
                assert cross == pytest.approx(here.cross[unit], rel=1e-5, abs=1e-7)


# ---- strong weights, other types, other arguments


@EACH
@pytest.mark.parametrize("scale", [30.0, 300.0, 1e6])
def test_strong_weights_give_numbers(method, scale):
    # mean field comes to rest by itself
    options = {} if method is mean_field_log_z else {"max_iterations": 50}
    for seed in range(2):
        estimate = method(random_rbm(6, 5, seed, scale), **options)
        if estimate.kind == "upper bound":
            assert estimate.value >= log_z(random_rbm(6, 5, seed, scale))
        assert math.isfinite(estimate.value)
        for means in (estimate.visible_means, estimate.hidden_means):
            assert bool(((means >= 0) & (means <= 1)).all())
    # and if all weights are alike
    alike = RBM(torch.full((4, 3), scale), torch.full((4,), -scale), torch.zeros(3))
    assert math.isfinite(method(alike, **options).value)


def test_no_fixed_point_is_reported():
    rbm = random_rbm(6, 5, seed=0, scale=3.0)
    for estimate in (
        tap_log_z(rbm, max_iterations=2),
        bethe_log_z(rbm, max_iterations=2),
        tree_reweighted_log_z(rbm, max_iterations=1, tolerance=1e-9),
    ):
        assert not estimate.converged
        assert estimate.iterations <= 2
        assert math.isfinite(estimate.value)


@EACH
def test_exchanging_the_layers_or_the_meaning_of_a_unit_changes_nothing(method):
    rbm = random_rbm(5, 4, seed=9, scale=0.7)
    value = method(rbm).value
    tolerance = 0.02 if method is tree_reweighted_log_z else 1e-6
    assert method(rbm.transposed()).value == pytest.approx(value, abs=tolerance)
    # v_2 -> 1 - v_2
    weights = rbm.weights.clone()
    visible = rbm.visible_bias.clone()
    weights[2] *= -1
    visible[2] *= -1
    flipped = RBM(weights, visible, rbm.hidden_bias + rbm.weights[2])
    assert log_z(flipped) + rbm.visible_bias[2].item() == pytest.approx(log_z(rbm), abs=1e-10)
    assert method(flipped).value + rbm.visible_bias[2].item() == pytest.approx(value, abs=tolerance)


@EACH
def test_single_precision_computes_in_double(method):
    rbm = random_rbm(5, 4, seed=9, dtype=torch.float32)
    assert method(rbm).value == method(rbm.to(dtype=torch.float64)).value
    assert method(rbm).hidden_means.dtype == torch.float64


def test_more_than_one_start_finds_the_larger_mode():
    """Two modes, of which mean field from near the smaller one finds the smaller."""
    weights = torch.full((8, 6), 2.0)
    rbm = RBM(weights, torch.full((8,), -6.2), torch.full((6,), -8.0)).to(dtype=torch.float64)
    small = torch.zeros(1, 6)
    large = torch.ones(1, 6)
    optima = [mean_field_optima(rbm, start.double())[1].item() for start in (small, large)]
    assert abs(optima[0] - optima[1]) > 1
    assert mean_field_log_z(rbm).value == pytest.approx(max(optima), abs=1e-6)
    for method in (tap_log_z, bethe_log_z):
        assert max(optima) - 0.1 < method(rbm).value <= exact_log_z(rbm) + 0.1
