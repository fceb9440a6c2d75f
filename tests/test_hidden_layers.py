"""ln p*(v) of deep models where it is an estimate.

The path from the proposal to the posterior, and what is said of what is missing.
"""

import math
from dataclasses import replace

import pytest
import torch
from enumeration import all_states, assert_rates, random_dbm, random_rbm

from boltzmann_companion.studies.hunted_deep import KINDS, hunted_model
from boltzmann_companion.studies.study import _PARTS, DeepCase, holds_truth, study
from boltzmann_likelihood.evaluation import audit_evaluation, compare, evaluate
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.audit import AuditVerdict
from boltzmann_likelihood.evaluation.evaluation import _error_of_draws
from boltzmann_likelihood.evaluation.hidden_layers import _APART, HiddenLayers
from boltzmann_likelihood.evaluation.hidden_states import STATES, mixture_around, search_anywhere
from boltzmann_likelihood.evaluation.result import LogUnnormalized
from boltzmann_likelihood.evaluation.verdict import judge, shortfall
from paperlib.annealing import PosteriorPath, uniform_betas
from paperlib.annealing.walk import walk
from paperlib.errors import InputError
from paperlib.estimators import ais, exact_log_z
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator

SMALL = {
    "DBM": random_dbm(4, 3, 2, seed=0, scale=1.5),
    "DBN": DBN([random_rbm(4, 3, 11, 1.5), random_rbm(3, 2, 21, 1.5)]),
    "DBN of three layers": DBN(
        [random_rbm(4, 2, 30, 1.5), random_rbm(2, 2, 40, 1.5), random_rbm(2, 3, 50, 1.5)]
    ),
}
EACH = pytest.mark.parametrize("name", SMALL)
V = torch.tensor([1.0, 0, 1, 1])


def hidden_states(model):
    """All states of the layers that are drawn, one after the other, and where each layer lies."""
    widths = [2] if isinstance(model, DBM) else model.hidden_layers[:-1]
    return all_states(sum(widths)), list(widths)


def log_joint(model, h):
    """ln p*(v, h) by the definitions, without the proposal's code."""
    v = V.double().expand(len(h), -1)
    if isinstance(model, DBM):
        above = v @ model.weights_1 + h @ model.weights_2.T + model.hidden_bias_1
        return (
            v @ model.visible_bias
            + h @ model.hidden_bias_2
            + torch.logaddexp(above, above.new_zeros(())).sum(1)
        )
    layers = [v, *h.split(model.hidden_layers[:-1], 1)]
    total = layers[-1] @ model.top.visible_bias
    up = layers[-1] @ model.top.weights + model.top.hidden_bias
    total = total + torch.logaddexp(up, up.new_zeros(())).sum(1)
    for rbm, below, above in zip(model.directed, layers, layers[1:], strict=False):
        rates = torch.sigmoid(above @ rbm.weights.T + rbm.visible_bias)
        total = total + torch.where(below > 0, rates, 1 - rates).log().sum(1)
    return total


def log_q(model, h):
    v = V.double().expand(len(h), -1)
    if isinstance(model, DBM):
        rates = [torch.sigmoid(model.mean_field(V[None].double()).logits_2).expand(len(h), -1)]
        layers = [h]
    else:
        layers = list(h.split(model.hidden_layers[:-1], 1))
        rates = [
            torch.sigmoid(below @ rbm.weights + rbm.hidden_bias)
            for rbm, below in zip(model.directed, [v, *layers], strict=False)
        ]
    return sum(
        torch.where(on > 0, rate, 1 - rate).log().sum(1)
        for on, rate in zip(layers, rates, strict=True)
    )


def at(path, states, widths):
    return path.state_of(list(states.split(widths, 1)))


@EACH
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_a_transition_leaves_p_beta_invariant(name, beta):
    """Two transitions lead from exact draws of p_beta to such draws, and ln f_beta is right."""
    model = SMALL[name]
    count = 60_000
    states, widths = hidden_states(model)
    log_f = (1 - beta) * log_q(model, states) + beta * log_joint(model, states)
    p = log_f.softmax(0)
    path = PosteriorPath(model, V.expand(len(states), -1))
    remembered = path.log_f(at(path, states, widths), beta)
    torch.testing.assert_close(remembered, log_f, rtol=0, atol=1e-9)

    generator = seeded_generator(4)
    start = p.multinomial(count, replacement=True, generator=generator)
    path = PosteriorPath(model, V.expand(count, -1))
    state = at(path, states[start], widths)
    for _ in range(2):
        state = path.transition(state, beta, generator)
    digits = 2 ** torch.arange(sum(widths) - 1, -1, -1)
    ends = (path.units(state).long() @ digits).bincount(minlength=len(states)) / count
    assert_rates(ends, p, count, errors=4.5, slack=1 / count)
    assert (path.units(state) != states[start]).any(1).double().mean() > 0.1
    # what is remembered of the states is true of them
    fresh = path.state_of(state.hidden)
    torch.testing.assert_close(state.log_weight, fresh.log_weight, rtol=0, atol=1e-9)


def any_states(widths, generator):
    """States that need not explain anything, one of them twice."""
    states = (torch.rand(1, STATES, sum(widths), generator=generator) < 0.5).double()
    states[:, 1] = states[:, 0]
    return list(states.split(widths, 2))


@EACH
@pytest.mark.parametrize("around_states", [False, True])
def test_weights_have_the_mean_p_of_v_in_both_directions(name, around_states):
    """Forwards w, and backwards from the posterior 1 / w, by annealing in three steps.

    Chains start from the proposal alone or from around states as well.
    """
    model = SMALL[name]
    count = 20_000
    states, widths = hidden_states(model)
    log_p = log_joint(model, states)
    truth = log_p.logsumexp(0).item()
    forth = None
    back_from = None
    if around_states:
        generator = seeded_generator(3)
        around = any_states(widths, generator)
        forth = mixture_around(model, V[None].double(), around, count, generator)
        each = [layer.expand(count, -1, -1) for layer in around]
        back_from = mixture_around(model, V.double().expand(count, -1), each, 1, generator)
    path = PosteriorPath(model, V.expand(count, -1), forth)
    betas = uniform_betas(3)
    forward = (ais(path, betas, count, seeded_generator(1)).log_weights - truth).exp()
    assert abs(forward.mean() - 1) < 4 * forward.std() / math.sqrt(count)
    assert model.exact_log_unnormalized(V[None]).item() == pytest.approx(truth, abs=1e-9)

    generator = seeded_generator(2)
    drawn = states[log_p.softmax(0).multinomial(count, replacement=True, generator=generator)]
    if back_from is not None:
        back_from.choose(list(drawn.split(widths, 1)), generator)
    path = PosteriorPath(model, V.expand(count, -1), back_from)
    back = torch.zeros(count, dtype=torch.float64)
    state = at(path, drawn, widths)
    walk(path, path.reverse_steps, state, back, betas.tolist()[::-1], generator, int)
    backward = (back + truth).exp()
    assert abs(backward.mean() - 1) < 4 * backward.std() / math.sqrt(count)


def test_a_path_has_a_chain_for_each_vector():
    path = PosteriorPath(SMALL["DBN"], V.expand(3, -1))
    with pytest.raises(InputError, match="num_chains: expected 3, one for each test vector, got 4"):
        path.sample_start(4, seeded_generator(0))


# ---- what is said


def without_a_search(monkeypatch):
    monkeypatch.setattr(HiddenLayers, "_look", lambda *_: 0.0)


def layers_of(case, steps, seed=1):
    model, _, test, _ = case.known()
    log_p = model.log_unnormalized_of(test, 100, seeded_generator(seed))
    layers = HiddenLayers(model, test, log_p, None, seeded_generator(seed))
    exact = sum_of_parts(case, test)
    return layers.refine(steps, False), log_p, exact


def sum_of_parts(case, test):
    generator = seeded_generator(2008)
    total = 0.0
    for part, rows in zip(
        [case._part(generator) for _ in range(_PARTS)], test.split(7, 1), strict=True
    ):
        total = total + part.exact_log_unnormalized(rows)
    return total


def test_annealing_finds_what_draws_miss():
    """A hundred draws lack more than a nat.

    Annealing of half of the images brings all to the truth, on average.
    """
    case = DeepCase("DBN", (4, 7), 2.0, 2.0)
    estimate, drawn, exact = layers_of(case, 2_048)
    assert (exact - drawn).mean() > 1
    missing = (exact - estimate.values).mean().item()
    std_error = estimate.error.std_error
    assert -3 * std_error < missing < estimate.missing + 3 * std_error
    assert 0 < estimate.missing < 0.3
    assert (estimate.draws, estimate.steps) == (8, 2_048)


def test_draws_that_are_enough_stay_as_they_are():
    case = DeepCase("DBN", (4, 7), 0.5, 0.0)
    estimate, drawn, exact = layers_of(case, 4_096)
    assert torch.equal(estimate.values, drawn)
    assert (estimate.draws, estimate.steps) == (100, 0)
    assert abs((exact - drawn).mean().item()) < 0.02


def spread_out(units, log_odds, visible_log_odds=0.0):
    """A DBN of which all is known, and ln Z: none of its layers tells anything about another.

    Each unit of h1 is on with these log-odds, but recognition takes an even chance. So a draw that
    has `on` of them on has the weight p(v) exp(log_odds * on) (2 / (1 + exp(log_odds))) ** units.
    The logarithm of the weights is nearly normal, with a variance of units * log_odds ** 2 / 4.
    """
    below = RBM(
        torch.zeros(8, units).double(), torch.full((8,), visible_log_odds), torch.zeros(units)
    )
    top = RBM(torch.zeros(units, 2).double(), torch.full((units,), log_odds), torch.zeros(2))
    return DBN([below, top]), units * math.log1p(math.exp(log_odds)) + 2 * math.log(2)


def lost_by_draws(units, log_odds, draws):
    """By how much ln of a mean of so many weights of `spread_out` is too small, on average."""
    rates = torch.full((20_000, draws), 0.5).double()
    on = torch.binomial(torch.full_like(rates, units), rates, seeded_generator(9))
    log_mean = (log_odds * on).logsumexp(1) - math.log(draws)
    return units * math.log((1 + math.exp(log_odds)) / 2) - log_mean.mean().item()


def test_what_is_missing_is_no_more_than_is_said(monkeypatch):
    """As long as it is little, and though it is more than the last doubling of draws added."""
    monkeypatch.setattr("boltzmann_likelihood.evaluation.hidden_layers.POSTERIOR_IMAGES", 1_000)
    without_a_search(monkeypatch)
    model, log_z = spread_out(40, 0.7)
    rows = torch.zeros(1_000, 8)
    generator = seeded_generator(1)
    drawn = model.log_unnormalized_of(rows, 100, generator)
    estimate = HiddenLayers(model, rows, drawn, None, generator).estimate
    lost = lost_by_draws(40, 0.7, 100)
    truth = log_z - 8 * math.log(2)
    error = drawn.std().item() / math.sqrt(1_000)
    assert abs(truth - drawn.mean().item() - lost) < 4 * error
    assert estimate.rise < 0.1  # beyond that, the average is not trusted
    assert estimate.rise < lost < estimate.missing


def test_widely_spread_weights_are_no_missed_part_of_the_posterior(monkeypatch):
    """More draws would help, and nothing else is said: every state of h1 may be drawn."""
    without_a_search(monkeypatch)
    model, _ = spread_out(120, 0.8)
    rows = torch.zeros(100, 8)
    generator = seeded_generator(2)
    drawn = model.log_unnormalized_of(rows, 100, generator)
    layers = HiddenLayers(model, rows, drawn, None, generator)
    on = torch.rand(100, 120, generator=generator) < torch.sigmoid(torch.tensor(0.8))
    rows, hidden = model.completed(on.double(), seeded_generator(3))
    # beyond that, it would be asked of a mixture
    assert layers._between_ends(rows, hidden, None) < _APART
    assert ["still rises" in doubt.text for doubt in layers.doubts(on.double())] == [True]


def test_raise_with_few_draws_of_the_hidden_units_casts_no_doubt_on_ln_z():
    """It is too low by what importance sampling with four draws for each image loses."""
    model, log_z = spread_out(30, 1.2)
    images = (torch.rand(50, 8, generator=seeded_generator(5)) < 0.5).to(torch.uint8)
    evaluation = evaluate(model, images, steps=64, generator=seeded_generator(6), progress=False)
    tempering = evaluation.tempering
    assert abs(tempering.log_z - log_z) < 4 * tempering.std_error
    short = shortfall(evaluation.runs[-1], tempering)
    error = evaluation.runs[-1].bracket.lower.test_set_std_error
    # What ln p*(v) itself lacks makes this smaller, what annealing loses makes it larger.
    lost = lost_by_draws(30, 1.2, 4)
    missing = evaluation.unnormalized.missing
    assert lost - missing - 4 * error < short.nats < lost + short.explained + 4 * error
    # So nothing is said of it; for a model without this reason, it would be.
    for judgement, is_said in ((evaluation.judgement, False), (judge(evaluation), True)):
        text = " ".join([*judgement.warnings, *judgement.settled])
        assert ("nats below parallel tempering's average" in text) == is_said


def test_a_shorter_run_changes_no_number_of_the_longer_one(monkeypatch):
    """Neither draws nor annealing of the hidden units depend on what was run before."""
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 1_024)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 80_000)
    monkeypatch.setattr(HiddenLayers, "seconds_per_step", lambda layers: 0.0)
    model, _ = spread_out(30, 1.2)
    images = (torch.rand(50, 8, generator=seeded_generator(5)) < 0.5).to(torch.uint8)
    options = {"generator": 6, "progress": False}
    longer = evaluate(model, images, tolerance=1e-9, **options)
    assert (longer.effort.num_steps, longer.effort.tempering_steps) == (1_024, 80_000)
    alone = evaluate(model, images, steps=1_024, tempering_steps=80_000, **options)
    assert longer.unnormalized.steps > 0
    assert torch.equal(longer.log_unnormalized, alone.log_unnormalized)
    assert longer.average == alone.average


def test_only_an_exact_average_above_0_is_impossible():
    """With estimates of ln p*(v), the true ln Z may give such an average."""
    model, log_z = spread_out(30, 1.2, visible_log_odds=-20.0)
    images = torch.zeros(2, 8)  # all but certain
    evaluation = evaluate(model, images, steps=32, generator=seeded_generator(6), progress=False)
    assert evaluation.unnormalized.draws > 0
    values = torch.full((2,), log_z + 0.3).double()
    for draws, verdict in (
        (evaluation.unnormalized.draws, AuditVerdict.CONSISTENT),
        (0, AuditVerdict.IMPOSSIBLE),
    ):
        by_draws = LogUnnormalized(values, draws=draws)
        audited = audit_evaluation(model, images, replace(evaluation, unnormalized=by_draws), log_z)
        assert audited.verdict == verdict


def test_the_generator_is_left_alone():
    model, _, test, _ = DeepCase("DBM", (4, 7), 0.5, 0.0).known()
    generator = seeded_generator(3)
    before = generator.get_state()
    HiddenLayers(model, test, torch.zeros(len(test)).double(), None, generator).refine(64, False)
    assert torch.equal(generator.get_state(), before)


def confidently_wrong():
    """A DBN whose recognition says the opposite of the posterior, with certainty.

    All draws have one weight, and nothing rises.
    """
    width = 30
    weights = 8 * torch.eye(width, dtype=torch.float64)
    bias = torch.full((width,), -4.0, dtype=torch.float64)
    below = RBM(weights, bias, torch.full((width,), 40.0, dtype=torch.float64))
    top = RBM(torch.zeros(width, 2, dtype=torch.float64), torch.zeros(width), torch.zeros(2))
    # h1 is on for certain by recognition; its prior is uniform, so that the posterior follows v
    return DBN([below, top])


def test_the_states_are_found_that_recognition_denies():
    """Each pixel follows its unit, on with an even chance, and errs with the same small rate."""
    model = confidently_wrong()
    images = (torch.rand(50, 30, generator=seeded_generator(5)) < 0.5).to(torch.uint8)
    drawn = model.log_unnormalized_of(images, 100, seeded_generator(1))
    layers = HiddenLayers(model, images, drawn, None, seeded_generator(6))
    truth = exact_log_z(model) - 30 * math.log(2)
    assert drawn.mean() < truth - 20
    assert (layers.estimate.values - truth).abs().max() < 0.3
    # for images that the model draws, the proposal alone is known to miss the posterior
    h1 = (torch.rand(100, 30, generator=seeded_generator(7)) < 0.5).double()
    rows, hidden = model.completed(h1, seeded_generator(8))
    assert layers._between_ends(rows, hidden, None) > 20
    states = search_anywhere(model, rows, 4, 24, seeded_generator(9))
    assert layers._between_ends(rows, hidden, states) < _APART
    assert layers.doubts(h1) == ()


def test_what_no_search_finds_is_still_noticed_for_images_of_the_model(monkeypatch):
    without_a_search(monkeypatch)
    model = confidently_wrong()
    images = (torch.rand(50, 30, generator=seeded_generator(5)) < 0.5).to(torch.uint8)
    drawn = model.log_unnormalized_of(images, 100, seeded_generator(1))
    layers = HiddenLayers(model, images, drawn, None, seeded_generator(6))
    between_ends = layers._between_ends
    monkeypatch.setattr(layers, "_between_ends", lambda *of: between_ends(*of[:2], None))
    h1 = (torch.rand(100, 30, generator=seeded_generator(7)) < 0.5).double()
    (doubt,) = layers.doubts(h1)
    assert "the draws miss a part of the posterior" in doubt.text
    assert doubt.word == "not trusted"


# ---- images that lie off the model

OFF_THE_MODEL = pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind in KINDS for seed in (2, 4, 5)]
)


def hunted_layers(kind, seed, on_the_model=False):
    """ln p*(v) of a planted model: what is said of it, by draws alone, and exact."""
    hunted, test, _ = hunted_model(kind, on_the_model, seed)
    above = all_states(len(hunted.bias_above))
    exact = hunted.log_prob(test) + hunted.log_masses(above).logsumexp(0)
    drawn = hunted.model.log_unnormalized_of(test, 100, seeded_generator(1))
    layers = HiddenLayers(hunted.model, test, drawn, None, seeded_generator(2))
    return layers.refine(200, False), drawn, exact


@OFF_THE_MODEL
def test_states_that_are_never_drawn_are_found(kind, seed):
    """The images of a region lack up to 200 nats.

    No draw and no annealing from the proposal shows it.
    """
    estimate, drawn, exact = hunted_layers(kind, seed)
    assert (exact - drawn).max() > 5
    missing = (exact - estimate.values).mean().item()
    assert (
        -0.02 - 3 * estimate.error.std_error
        < missing
        < 0.02 + estimate.missing + 3 * estimate.error.std_error
    )
    assert estimate.missing < 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_changes_nothing_where_draws_suffice(kind):
    estimate, drawn, exact = hunted_layers(kind, 9, on_the_model=True)
    assert torch.equal(estimate.values, drawn)
    assert abs((exact - drawn).mean().item()) < 0.02
    assert estimate.gain == 0


def test_what_the_last_search_has_found_is_a_doubt(monkeypatch):
    """A short search alone finds much, and more may be left."""
    monkeypatch.setattr("boltzmann_likelihood.evaluation.hidden_layers._LOOKS", 0)
    hunted, test, _ = hunted_model("DBN", False, 3)
    drawn = hunted.model.log_unnormalized_of(test, 100, seeded_generator(1))
    layers = HiddenLayers(hunted.model, test, drawn, None, seeded_generator(2))
    units = torch.zeros(2, hunted.model.top.num_visible).double()
    assert any("last search for hidden states" in doubt.text for doubt in layers.doubts(units))
    assert layers.estimate.missing > layers.estimate.gain > 1


def test_images_that_are_explained_worst_are_always_looked_at():
    """Of a thousand images, the two of a region may not be among a hundred at random."""
    hunted, test, _ = hunted_model("DBN", False, 3)
    above = all_states(len(hunted.bias_above))
    exact = hunted.log_prob(test) + hunted.log_masses(above).logsumexp(0)
    drawn = hunted.model.log_unnormalized_of(test, 100, seeded_generator(1))
    off = (exact - drawn) > 5
    index = torch.cat([off.nonzero()[:2, 0], (~off).nonzero()[:, 0].repeat(7)[:998]])
    layers = HiddenLayers(hunted.model, test[index], drawn[index], None, seeded_generator(2))
    assert (exact[index] - layers.estimate.values).abs().max() < 1


def test_an_average_and_a_comparison_have_what_a_search_finds():
    hunted, test, train = hunted_model("DBN", False, 3)
    average = hunted.log_prob(test).mean().item()
    pixels = test.shape[1]
    rbm = RBM(torch.zeros(pixels, 1).double(), torch.zeros(pixels), torch.zeros(1))
    comparison = compare(
        hunted.model, rbm, test, train, steps=64, generator=seeded_generator(1), progress=False
    )
    first = comparison.first
    assert first.word == "trusted"
    slack = 2 * (first.average.interval[1] - first.average.mean)
    assert first.average.mean == pytest.approx(average, abs=slack)
    assert comparison.difference.mean == pytest.approx(average + pixels * math.log(2), abs=slack)


CASES = (
    DeepCase("DBN", (4, 7), 1.0, 0.5),
    DeepCase("DBN", (4, 7), 3.0, 3.0),
    DeepCase("DBN", (4, 5, 6), 2.0, 1.0),
    DeepCase("DBM", (4, 7), 1.0, 1.0, of_noise=True),
)


def test_no_deep_model_is_trusted_and_wrong():
    rows = study(CASES, [64], ["test images"], progress=False)
    assert [row["outcome"] for row in rows if row["outcome"] == "wrong, trusted"] == []
    assert {row["outcome"] for row in rows} >= {"right, trusted", "wrong, suspected"}
    assert all(holds_truth(row) for row in rows if row["outcome"] == "right, trusted")


def test_what_one_side_lacks_is_part_of_a_comparison():
    """A DBN against the RBM of its lower layer.

    The interval knows on which side ln p*(v) may be too low.
    """
    model, _, test, _ = DeepCase("DBN", (4, 7), 1.0, 0.5).known()
    rbm = model.layers[0]
    comparison = compare(model, rbm, test, steps=64, generator=seeded_generator(1), progress=False)
    low, high = comparison.difference.interval
    turned = compare(rbm, model, test, steps=64, generator=seeded_generator(1), progress=False)
    missing = comparison.first.unnormalized.missing
    assert missing > 0
    assert high - comparison.difference.mean - (comparison.difference.mean - low) == pytest.approx(
        missing
    )
    low, high = turned.difference.interval
    missing = turned.second.unnormalized.missing
    assert turned.difference.mean - low - (high - turned.difference.mean) == pytest.approx(missing)


@pytest.mark.parametrize("count", [2, 20])
def test_a_bound_from_few_draws_knows_its_own_error(count):
    """Few images get more draws each.

    Five draws of two images held in 85 of 100 within three errors.
    """
    model = SMALL["DBN of three layers"]
    rows = all_states(4)
    states, widths = hidden_states(model)
    hidden = list(states.split(widths, 1))
    exact = torch.zeros(len(rows)).double()
    for number, v in enumerate(rows):
        each = v.expand(len(states), -1)
        log_q = model.log_recognition(each, hidden)
        exact[number] = log_q.exp() @ (model.log_joint_unnormalized(each, hidden) - log_q)
    generator = seeded_generator(1)
    repeats = 400
    held = 0
    for _ in range(repeats):
        index = torch.randint(len(rows), (count,), generator=generator)
        draws = model.bound_draws(rows[index], generator)
        off = draws.mean().item() - exact[index].mean().item()
        held += abs(off) <= 3 * _error_of_draws(draws, None)
    # 99.7 % of normal ones, 98.8 % of these; less four standard errors
    assert held >= 0.966 * repeats
