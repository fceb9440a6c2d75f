"""What chapter 11 claims of its small models, whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.rows import grouped, where
from boltzmann_companion.studies.small_inference import (
    laplace_bound,
    recurrent_network,
    two_peaks_entropy,
)
from paperlib.numerics import all_states, bernoulli_log_prob, seeded_generator
from paperlib.variational import (
    MeanFieldTrace,
    block_mean_field,
    evidence_lower_bound,
    factorial_log_probs,
    kl_divergence,
    map_codes,
    mean_field,
)
from paperlib.variational.sparse_coding import BinarySparseCoding, LaplaceSparseCoding


def three_graphs(seed: int) -> Claims:
    """How far the posterior of each kind of graph is from the product of its marginals; random weights."""
    draws = seeded_generator(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=draws)

    def dependence(log_joint: Tensor, states: Tensor) -> float:
        log_posterior = log_joint.log_softmax(-1)
        marginals = factorial_log_probs(log_posterior.exp() @ states, states)
        return kl_divergence(log_posterior, marginals).item()

    v, three, five = torch.tensor([1.0, 0.0, 1.0]).double(), all_states(3), all_states(5)
    weights, upper_weights, bias = random(3, 3), random(3, 2), random(3)
    of_rbm = three @ (weights.T @ v + bias)
    of_semi = of_rbm + torch.einsum("si,ij,sj->s", three, random(3, 3).triu(1), three)
    lower, upper = five[:, :3], five[:, 3:]
    between = torch.einsum("si,ij,sj->s", lower, upper_weights, upper)
    of_dbm = lower @ (weights.T @ v + bias) + between
    of_directed = three @ bias + bernoulli_log_prob(v, three @ weights.T)
    yield "RBM: given v the hidden units are independent", dependence(of_rbm, three) < 1e-12
    yield "semi-restricted: they are not", dependence(of_semi, three) > 1e-3
    yield "deep: they are not", dependence(of_dbm, five) > 1e-3
    yield "directed: they are not", dependence(of_directed, three) > 1e-3


def three_forms(rows: Rows, log_posterior: Tensor) -> Claims:
    """Of `inference-elbo-forms`; `log_posterior` [N, S] of every state."""
    forms = ("from_joint", "from_prior")
    spread = max(abs(row["from_gap"] - row[form]) for row in rows for form in forms)
    yield "three forms, one number", spread < 1e-10
    yield "no q is above the evidence", all(row["gap"] >= 0 for row in rows)
    touching = [abs(row["gap"]) < 1e-10 for row in rows]
    yield "only the posterior touches it", touching == [False] * 4 + [True]
    of_best_state = abs(rows[2]["gap"] + log_posterior.amax(-1).mean())
    yield "a certain q has the gap -ln p(best state | v)", of_best_state < 1e-10


def half_steps_of_em(rows: Rows, objectives: Sequence[float]) -> Claims:
    """Of `inference-em-half-steps`, and the objectives of the library's EM from the same start."""
    after_e, after_m = rows[0::2], rows[1::2]
    rises = all(later["bound"] > row["bound"] - 1e-12 for row, later in pairwise(rows))
    yield "no half-step lowers the bound", rises
    closed = all(abs(row["bound"] - row["likelihood"]) < 1e-10 for row in after_e)
    yield "every E-step closes the gap", closed
    yield "every M-step opens it", all(row["likelihood"] - row["bound"] > 1e-4 for row in after_m)
    same = all(
        abs(row["bound"] - objective) < 1e-9
        for row, objective in zip(after_e, objectives[1:], strict=True)
    )
    yield "after E-steps the bound is the objective of the library's EM", same


def around_a_point(
    rows: Rows, v: float, model: LaplaceSparseCoding, map_point: float, highest: float
) -> Claims:
    """Of `inference-dirac`; `highest` is where the posterior is highest on a grid."""
    yield "coordinate descent finds the highest point of the grid", abs(highest - map_point) < 1e-4
    best, evidence = max(row["bound"] for row in rows), rows[0]["evidence"]
    yield "all bounds are below the evidence", best < evidence
    yield "the best width is within 0.15 nats", evidence - best < 0.15
    narrow = [laplace_bound(model, v, map_point, 10.0**-k) for k in (5, 6, 8, 9, 11, 12)]
    falls = [narrow[i] - narrow[i + 1] for i in (0, 2, 4)]
    lost = all(abs(fall - math.log(10)) < 1e-3 for fall in falls)
    yield "a tenth of the width costs ln 10 nats, without end", lost


def sparse_codes(
    dictionary: LaplaceSparseCoding, patches: Tensor, codes: Tensor, energies: Sequence[float]
) -> Claims:
    """A learned dictionary, its codes [N, M] of patches [N, D], and the energies on the way."""
    codes = map_codes(dictionary, patches, codes)  # to full precision
    rate, precision, weights = dictionary.rate, dictionary.precision, dictionary.weights
    centred = patches - dictionary.visible_bias
    pull, active = precision * (centred - codes @ weights.T) @ weights, codes != 0
    falls = all(later < energy + 1e-10 for energy, later in pairwise(energies))
    yield "no half-round raises the energy", falls
    zeros = (~active).double().mean().item()
    yield "more than half of the codes are exactly zero", zeros > 0.5
    least_squares = centred @ torch.linalg.pinv(weights).T
    yield "of the shortest codes without a prior, none is", (least_squares != 0).all()
    balanced = (pull[active] - rate * codes[active].sign()).abs().max() < 1e-5
    held = (pull[~active].abs() <= rate + 1e-5).all()
    yield "the codes satisfy the conditions of the convex minimum", balanced and held
    longer = LaplaceSparseCoding(10 * weights, dictionary.visible_bias, rate, precision)
    energy = dictionary.energy(patches, codes).mean()
    cheaper = longer.energy(patches, codes / 10).mean() < energy
    yield "without the constraint, longer columns and smaller codes are cheaper", cheaper


def two_directions(rows: Rows) -> Claims:
    """Of `inference-kl-direction`: three starts for each separation, left, in the valley and right."""
    seek, cover = grouped(rows, "divergence").values()
    left, valley, right = where(seek, separation=5.0)
    one_each = abs(left["mean"] + 2.5) < 0.05 and abs(right["mean"] - 2.5) < 0.05
    yield "KL(q || p): from left and right, one mode each", one_each
    own_width = all(abs(row["width"] - 0.7) < 0.05 for row in (left, right))
    yield "and its width, not that of the whole", own_width
    cost = (left["value"] + math.log(0.6), right["value"] + math.log(0.4))
    claim = "the cost is the weight that is left out, -ln 0.6 and -ln 0.4"
    yield claim, all(abs(off) < 0.01 for off in cost)
    mean, width = -0.2 * 2.5, math.sqrt(0.7**2 + 0.24 * 25)  # of the target
    matched = all(
        abs(row["mean"] - mean) < 1e-4 and abs(row["width"] - width) < 1e-4
        for row in where(cover, separation=5.0)
    )
    yield "KL(p || q): mean and width of the target, from every start", matched
    worse = valley["value"] > max(left["value"], right["value"])
    yield "KL(q || p): what lies between the modes is worse than either", worse
    means = [row["mean"] for row in where(seek, separation=1.6)]
    claim = "modes close together: KL(q || p) has one minimum, not two"
    yield claim, max(means) - min(means) < 1e-4


def fixed_point_equations(
    model: BinarySparseCoding, v: Tensor, means: Tensor, by_hand: Tensor
) -> Claims:
    """The formulas of mean field at arbitrary means [N, M], and one sweep from there as the chapter writes it."""
    by_library = mean_field(model, v, means, max_sweeps=1).means
    yield "these lines are the library's sweep", (by_hand - by_library).abs().max() < 1e-10
    log_q = factorial_log_probs(means, all_states(model.num_hidden))
    enumerated = evidence_lower_bound(model.log_joint_table(v), log_q)
    same = (model.lower_bound(v, means) - enumerated).abs().max() < 1e-10
    yield "eq. 19.36 is the sum over all states", same
    own, inhibition = recurrent_network(model, v)
    recurrent = torch.sigmoid(own - means @ inhibition)
    block = block_mean_field(model, v, 1.0, means, max_updates=1).iterates[1]
    claim = "all units at once: one step of a recurrent network with the weights -C"
    yield claim, (recurrent - block).abs().max() < 1e-12
    derivative = model.conditional_logits(v, means) - torch.logit(means)  # eq. 19.43
    same = (_slope_of_bound(model, v, means) - derivative).abs().max() < 1e-9
    yield "eq. 19.43 is what autograd finds", same


def end_of_ascent(
    model: BinarySparseCoding, v: Tensor, trace: MeanFieldTrace, log_evidence: Tensor
) -> Claims:
    """Where mean field ends, against ln p(v) [N]."""
    slope = _slope_of_bound(model, v, trace.means) * trace.means * (1 - trace.means)
    yield "at the end the gradient is zero", trace.converged.all() and slope.abs().max() < 1e-6
    below = (trace.bounds <= log_evidence + 1e-10).all()
    yield "every state and every vector: bound <= ln p(v)", below


def _slope_of_bound(model: BinarySparseCoding, v: Tensor, means: Tensor) -> Tensor:
    """The bound's derivative with respect to each mean, [N, M]."""
    leaf = means.clone().requires_grad_()
    return torch.autograd.grad(model.lower_bound(v, leaf).sum(), leaf)[0]


def local_maxima(trace: MeanFieldTrace, gap: Tensor, best_gap: Tensor) -> Claims:
    """Gaps [N] from the prior's means, and from the best of many starts."""
    yield "no sweep lowers any bound", (trace.bounds.diff(dim=0) > -1e-10).all()
    yield "some vectors have more than one local maximum", (gap - best_gap > 0.01).any()
    yield "the best start still leaves a gap", best_gap.mean().item() > 0.01


def pairs(rows: Rows, trace: MeanFieldTrace, pair_bound: Tensor, log_evidence: Tensor) -> Claims:
    """Of `inference-structured`: mean field over units, and the bounds [N] over pairs of them."""
    yield "pairs improve the bound of every vector", (pair_bound >= trace.lower_bound - 1e-9).all()
    yield "it stays a bound", (pair_bound <= log_evidence + 1e-10).all()
    of_units, of_pairs = (row["gap"] for row in rows)
    yield "pairs lose less on average, by more than a tenth of the gap", of_pairs < 0.9 * of_units
    yield "but they leave a gap", of_pairs > 0.01


def explaining_away(rows: Rows, both_at_3: float) -> Claims:
    """Of `inference-explaining-away`, and the probability that both units are on at J = 3."""
    by_coupling = {row["coupling"]: row for row in rows}
    halves = all(abs(row["marginal"] - 0.5) < 1e-12 for row in rows)
    yield "exact means are one half at every coupling", halves
    switched = all(row["given_on"] < 0.5 < row["given_off"] for row in rows)
    yield "one unit on switches the other off", switched
    apart = {j: row["field_1"] - row["field_2"] for j, row in by_coupling.items()}
    yield "below J = 4 mean field shares", abs(apart[2.0]) < 1e-4
    yield "above it chooses", apart[8.0] > 0.9
    yield "choosing one of two costs ln 2", abs(by_coupling[16.0]["gap"] - math.log(2)) < 0.01
    correlation = 4 * both_at_3 - 1
    yield "the correlation is -tanh(J / 4)", abs(correlation + math.tanh(3 / 4)) < 1e-12


def stable_steps(distances: Mapping[float, Tensor]) -> Claims:
    """Distances from the fixed points [N, T] after a kick, for steps of 0.95 and 1.05 of the predicted one."""
    below, above = distances[0.95], distances[1.05]
    yield "in the crowd some vectors need damping", len(below) > 0
    yield "5 % below the predicted step all errors shrink", (below[:, -1] < 0.1 * below[:, 0]).all()
    yield "5 % above it all errors grow", (above[:, -1] > 10 * above[:, 0]).all()


def damped_updates(rows: Rows, cycling: Tensor, stable: Tensor, ascent_gap: float) -> Claims:
    """Of `inference-damping`; which vectors [N] cycle without damping, their largest stable steps, and coordinate ascent's gap."""
    undamped, gentle = rows[0], rows[-2]
    yield "undamped, some vectors of the first model never converge", cycling.any()
    claim = "most of these have a fixed point at which no damping would be needed"
    yield claim, (stable[cycling] > 1).double().mean().item() > 0.5
    yield "undamped, bounds fall", undamped["fell"] > 0
    yield "with a step of 0.2 no bound ever fell", gentle["fell"] == 0
    claim = "and the average gap is no larger than that of coordinate ascent, to a tenth"
    yield claim, gentle["gap"] < 1.1 * ascent_gap


def in_the_player(runs: Mapping[str, tuple[Tensor, Tensor]]) -> Claims:
    """The means [T, M] and bounds [T] of damped updates."""
    means, abrupt = runs["step 1"]
    _, gentle = runs["step 0.2"]
    jumps = (means[-1] - means[-2]).abs().max().item()
    yield "in the player: without damping the means still jump after 40 updates", jumps > 0.1
    yield "with a step of 0.2 the bound rises all the way", (gentle.diff() > -1e-9).all()
    yield "and ends higher", gentle[-1] > abrupt[-2:].max()


def entropy(
    found: Tensor,
    axis: Tensor,
    constraints: Tensor,
    targets: Tensor,
    multipliers: Tensor,
    generator: torch.Generator,
) -> Claims:
    """A density on an axis [X] that Newton's method found, with its constraints [3, X], and random changes of it."""
    width = (axis[1] - axis[0]).item()
    bell = (-(axis**2) / 2).exp() / math.sqrt(2 * math.pi)
    yield "the constraints hold", (constraints @ found - targets).abs().max() < 1e-10
    yield "the result is the Gaussian", (found - bell).abs().max() < 1e-5
    predicted = [1 - math.log(math.sqrt(2 * math.pi)), 0.0, -0.5]
    off = multipliers - torch.tensor(predicted, dtype=torch.float64)
    yield "the multipliers are those of the text", off.abs().max() < 1e-4
    # changes in proportion to the density, with what would break a constraint taken out
    scaled = constraints * found
    noise = torch.randn(200, len(axis), dtype=torch.float64, generator=generator)
    noise -= torch.linalg.solve(scaled @ constraints.T, scaled @ noise.T).T @ constraints
    feasible = found * (1 + 0.1 * noise)
    feasible = feasible[(feasible > 0).all(1)]
    kept = bool((feasible @ constraints.T - targets).abs().max() < 1e-10)

    def entropy_of(p: Tensor) -> float:
        return -(width * torch.xlogy(p, p)).sum().item()

    lower = all(entropy_of(p) < entropy_of(found) for p in feasible)
    claim = "it is a maximum: every feasible change lowers the entropy"
    yield claim, len(feasible) > 100 and kept and lower
    halving = two_peaks_entropy(2e-3) - two_peaks_entropy(1e-3)
    claim = "two peaks: half the width costs ln 2, so there is no minimum"
    yield claim, abs(halving - math.log(2)) < 1e-6


def gaussian(rows: Rows, after_one: Tensor, spacing: float, w: Tensor, seen: float) -> Claims:
    """Of `inference-gaussian`, and q(h_1) [X] after a single update, from a box."""
    curvature = after_one.log().diff(n=2) / spacing**2
    visible = after_one[1:-1] > 1e-200
    parabola = (curvature[visible] + 1 + w[0] ** 2).abs().max() < 1e-6
    yield "after one update ln q is a parabola, to rounding", parabola
    *means, first, second, logs = rows
    yield "the means are exact", all(abs(row["mean_field"] - row["exact"]) < 1e-6 for row in means)
    off = (first["mean_field"] - 1 / 5, second["mean_field"] - 1 / 3.25)
    yield "the variances are 1 / (1 + w_i^2)", all(abs(each) < 1e-8 for each in off)
    yield "and too small", all(row["mean_field"] < row["exact"] for row in (first, second))
    precision = torch.eye(2).double() + torch.outer(w, w)
    gap = 0.5 * (precision.diagonal().prod() / torch.linalg.det(precision)).log().item()
    lost = logs["exact"] - logs["mean_field"]
    yield "the gap is the formula's", abs(lost - gap) < 1e-8
    variance = 1 + w.square().sum().item()
    known = -0.5 * (math.log(2 * math.pi * variance) + seen**2 / variance)
    yield "the evidence is the one known in closed form", abs(logs["exact"] - known) < 1e-8


def learned_with(
    at_truth: Mapping[str, Any], exact_em: Mapping[str, Any], field_em: Mapping[str, Any]
) -> Claims:
    """Three rows of `inference-poor-q` with one amount of noise."""
    yield "  at the truth mean field loses more than half a nat", at_truth["gap"] > 0.5
    yield "  after learning with mean field, less than 0.03", field_em["gap"] < 0.03
    claim = "  the bound prefers what was learned to the truth by more than half a nat"
    yield claim, field_em["bound"] - at_truth["bound"] > 0.5
    claim = "  yet its likelihood is worse than exact EM's by 0.1 nats or more"
    yield claim, exact_em["log_prob"] - field_em["log_prob"] > 0.1


def assumption_made_true(
    broad: BinarySparseCoding, binary: BinarySparseCoding, course: Rows
) -> Claims:
    """What mean-field EM learned with noise 0.25 and 0.2, and its rounds from the truth, `inference-poor-q-path`."""
    noise = broad.precision.item() ** -0.5
    yield "noise 0.25: bumps have become noise, more than double", noise > 2 * 0.25
    found = binary.weights[0].abs().sort().values.tolist()
    near = all(abs(a - b) < 0.15 for a, b in zip(found, (0, 1, 2), strict=False))
    yield "noise 0.2: weights of about 0, 1 and 2", len(found) == 3 and near
    first, last = course[0], course[-1]
    claim = "from the truth: the bound rises by more than a tenth of a nat"
    yield claim, last["bound"] - first["bound"] > 0.1
    yield "while the likelihood sinks", last["likelihood"] - first["likelihood"] < -0.01
