"""`evaluate`, `audit` and `compare` of RBMs, DBMs and DBNs, against enumeration."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from enumeration import random_dbm, random_rbm
from evaluations import recorded, run

from boltzmann_likelihood.evaluation import audit, audit_evaluation, compare, evaluate
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.audit import AuditVerdict
from boltzmann_likelihood.evaluation.evaluation import affordable, find_start, target_of
from boltzmann_likelihood.evaluation.report import as_dict, describe
from paperlib.annealing import start_bias
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import all_states, bernoulli_log_prob, seeded_generator

VISIBLE = 5
LOWER = 4
UPPER = 3
EVERY_V = all_states(VISIBLE)


def definition(model):
    """ln p*(v) of every v and ln Z, from the energies and conditionals themselves."""
    if isinstance(model, DBM):
        table = -model.energy(EVERY_V[:, None, None], all_states(LOWER)[:, None], all_states(UPPER))
        log_p = table.flatten(1).logsumexp(1)
        return log_p, log_p.logsumexp(0).item()
    # p*(x) of the top, then p*(below) = sum over above of p(below | above) p*(above)
    layers = [model] if isinstance(model, RBM) else model.layers
    states = all_states(layers[-1].num_visible)
    table = -layers[-1].energy(states[:, None], all_states(layers[-1].num_hidden))
    log_p = table.logsumexp(1)
    log_z = log_p.logsumexp(0).item()
    for layer in reversed(layers[:-1]):
        below = all_states(layer.num_visible)
        log_visible = bernoulli_log_prob(
            below[:, None], states @ layer.weights.T + layer.visible_bias
        )
        log_p = (log_visible + log_p).logsumexp(1)
        states = below
    return log_p, log_z


LAYERS = [
    random_rbm(*widths, seed, 0.7)
    for seed, widths in enumerate([(VISIBLE, LOWER), (LOWER, UPPER), (UPPER, 3)])
]
MODELS = {
    "RBM": random_rbm(VISIBLE, LOWER, 6, 0.7),
    "DBM": random_dbm(VISIBLE, LOWER, UPPER, 1, 0.7),
    "DBN": DBN(LAYERS[:2]),
    "DBN of three layers": DBN(LAYERS),
    "DBN of one layer": DBN(LAYERS[:1]),
}
# Those whose ln p*(v) is an estimate where nothing is enumerated.
DEEP = ("DBM", "DBN", "DBN of three layers")
EACH_MODEL = pytest.mark.parametrize("name", MODELS)
TRUTH = {name: definition(model) for name, model in MODELS.items()}


def case(name, count=60, seed=5):
    """Rows drawn from the model itself, and the true average."""
    log_p, log_z = TRUTH[name]
    index = torch.multinomial(log_p.softmax(0), count, True, generator=seeded_generator(seed))
    return EVERY_V[index], (log_p[index] - log_z).mean().item()


@cache
def estimate(name):
    """Of these rows, once for all tests; they see to it that nothing is enumerated."""
    rows, _ = case(name)
    return evaluate(MODELS[name], rows, steps=160, generator=seeded_generator(4), progress=False)


# ---- exact


@pytest.mark.parametrize("name", [name for name in MODELS if name != "RBM"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_enumeration_of_deep_models(name, scale):
    model = MODELS[name]
    tensors = {key: tensor * scale for key, tensor in model.tensors().items()}
    scaled = type(model).from_tensors(tensors)
    log_p = scaled.exact_log_unnormalized(EVERY_V)
    torch.testing.assert_close(log_p, definition(scaled)[0], rtol=1e-12, atol=1e-9)


def test_enumeration_where_the_halves_pull_apart():
    """Each half's largest term has its units on, and the sum has them off: all factors vanish."""
    below = RBM(torch.full((2, 4), 600.0).double(), torch.zeros(2), torch.zeros(4))
    top = RBM(torch.zeros(4, 2).double(), torch.full((4,), -5_000.0), torch.zeros(2))
    log_p = DBN([below, top]).exact_log_unnormalized(all_states(2))
    # h^1 = 0 alone counts: p(v | 0) is uniform over 4 states, and the top has ln 4
    torch.testing.assert_close(log_p, torch.zeros(4).double(), rtol=0, atol=1e-9)


def test_what_is_too_large_to_enumerate():
    assert MODELS["DBM"].is_exact(10_000)
    wide = DBN([random_rbm(4, 30, 0), random_rbm(30, 2, 1)])
    assert not wide.is_exact(2)
    twenty = DBM(*(torch.zeros(s) for s in ((4, 20), (20, 20), 4, 20, 20)))
    assert twenty.is_exact(359)
    assert not twenty.is_exact(10_000)


# ---- estimated


@pytest.mark.usefixtures("_estimated")
@EACH_MODEL
def test_estimates_hold_the_truth(name):
    """ln Z inside an interval that fails once in 3,000 times.

    What importance sampling loses with 100 draws is a few hundredths here.
    """
    (_, truth) = case(name)
    evaluation = estimate(name)
    low, high = evaluation.log_z_interval(0.9997)
    assert low - 1e-5 < TRUTH[name][1] < high + 1e-5
    deep = name in DEEP
    room = evaluation.known_log_z.std_error * 4 + 1e-5
    assert (
        truth - room - (0.15 if deep else 0)
        < evaluation.average.mean
        < truth + room + (0.05 if deep else 0)
    )
    assert evaluation.trustworthy, evaluation.warnings
    text = describe(evaluation)
    assert ("errs low" in text) == deep
    assert (evaluation.variational_bound is None) == (not deep)
    if evaluation.variational_bound is not None:
        # the bound of a DBN is itself an average over draws
        assert evaluation.variational_bound < truth + room + 0.05
        assert f"variational lower bound {evaluation.variational_bound:.2f}" in text
    best = evaluation.runs[-1].bracket
    assert best.lower.mean < truth + 4 * best.lower.test_set_std_error + 0.1
    json.dumps(as_dict(evaluation), allow_nan=False)


@pytest.mark.usefixtures("_estimated")
def test_bound_of_mean_field_is_below_every_estimate():
    model = MODELS["DBM"]
    (rows, truth) = case("DBM")
    evaluation = estimate("DBM")
    bound = model.log_unnormalized_bound(rows).mean().item() - evaluation.known_log_z.value
    assert evaluation.variational_bound == pytest.approx(bound, abs=1e-9)
    assert evaluation.variational_bound < truth


@EACH_MODEL
def test_the_start_has_the_rates_of_the_units(name):
    """Of the units that are annealed, of which pixels are a part in a DBM and no part in a DBN."""
    model = MODELS[name]
    (rows, _) = case(name, 400)
    bias = start_bias(model, rows, seeded_generator(0))
    width = {"DBM": VISIBLE + UPPER, "DBN": LOWER, "DBN of three layers": UPPER}
    assert len(bias) == width.get(name, model.num_visible)
    if name == "DBM":
        means = rows.double().mean(0)
        pixels = torch.sigmoid(bias[:VISIBLE])
        torch.testing.assert_close(pixels, (means + 0.05) / 1.1, rtol=0, atol=0.01)


# ---- audit and compare


@pytest.mark.usefixtures("_estimated")
@EACH_MODEL
def test_audit_of_estimates(name):
    """No bound may lie above the truth, that of the images' mass included.

    A DBM's bound is proven by mean field, and a DBN has none.
    """
    truth = TRUTH[name][1]
    rows = case(name)[0]
    evaluation = estimate(name)
    outcomes = [audit_evaluation(MODELS[name], rows, evaluation, truth + off) for off in (0, 5, -5)]
    assert outcomes[0].verdict == AuditVerdict.CONSISTENT, outcomes[0].reason
    assert AuditVerdict.CONSISTENT not in [outcome.verdict for outcome in outcomes[1:]]
    for bound in outcomes[0].bounds:
        assert bound.low <= truth + 1e-5
    names = [bound.name for bound in outcomes[0].bounds]
    assert ("the mass of the test images" in names) == (name not in DEEP[1:])


@pytest.mark.usefixtures("_estimated")
@pytest.mark.parametrize("name", ["DBM", "DBN"])
def test_a_log_probability_of_a_deep_model_is_not_proven(name):
    with pytest.raises(InputError, match="claimed_log_prob: expected claimed_log_z for DB"):
        audit(MODELS[name], case(name)[0], claimed_log_prob=-3.0)


def test_deep_models_compare():
    """All exact: a DBM against a DBN on the same images."""
    rows, _ = case("DBM")
    index = (rows @ (2.0 ** torch.arange(VISIBLE - 1, -1, -1, dtype=torch.float64))).long()
    expected = [(TRUTH[name][0][index] - TRUTH[name][1]).mean().item() for name in ("DBM", "DBN")]
    comparison = compare(MODELS["DBM"], MODELS["DBN"], rows)
    assert comparison.difference.mean == pytest.approx(expected[0] - expected[1], abs=1e-9)


# ---- files and the command


@EACH_MODEL
def test_command(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    model = MODELS[name]
    (rows, truth) = case(name)
    model.save("m.safetensors")
    np.save("t.npy", rows.numpy())
    output, stored = recorded("evaluate m.safetensors --data t.npy --train t.npy")
    assert stored["exact"]["log_z"] == pytest.approx(TRUTH[name][1], abs=1e-9)
    assert stored["exact"]["test"] == pytest.approx(truth, abs=1e-9)
    assert model.description in output
    assert "Verdict: trusted" in output
    assert f"To quote: {truth:.2f} nats" in output
    run(f"audit m.safetensors --data t.npy --claimed-log-prob {truth}")


def test_the_time_that_the_start_takes_is_not_spent_again(monkeypatch):
    """ln p*(v) of a deep model may take a good part of the minutes."""
    clock = iter([100.0, 140.0])
    budgets = []
    monkeypatch.setattr(
        "boltzmann_likelihood.evaluation.evaluation.time.perf_counter", lambda: next(clock)
    )
    monkeypatch.setattr(
        AnnealingRuns, "affordable_tempering_steps", lambda _, seconds: budgets.append(seconds)
    )
    monkeypatch.setattr(
        AnnealingRuns, "affordable_steps", lambda _, seconds: budgets.append(seconds)
    )
    start = find_start(target_of(MODELS["DBM"], case("DBM")[0]), seeded_generator(1))
    affordable(start, 1.0)
    # a third of what is left, and the rest but for the runs from modes
    assert budgets == pytest.approx([20 / 3, 20 - 5 / 4 * 20 / 3])


@pytest.mark.parametrize("hidden", [60, 400])
@pytest.mark.parametrize("seed", [0, 1])
def test_bound_of_a_dbn_has_an_error_and_is_not_above_the_estimate(hidden, seed):
    """The first layer's weights are 0: the bound is tight, and its draws scatter around it."""
    below = RBM(torch.zeros(12, hidden), torch.linspace(-1, 1, 12), torch.full((hidden,), -2.0))
    top = RBM(torch.zeros(hidden, 30), torch.full((hidden,), -2.0), torch.zeros(30))
    generator = seeded_generator(seed)
    rows = torch.randint(0, 2, (20, 12), generator=generator)
    evaluation = evaluate(
        DBN([below, top]), rows, generator=generator, steps=32, tempering_steps=5_000, exact=False
    )
    assert evaluation.variational_bound <= evaluation.average.mean
    assert evaluation.variational_bound_error > 0
    assert f"standard error {evaluation.variational_bound_error:.2f})" in describe(evaluation)
