"""True, nearly true and false claims about ln Z, and pairs of models of known difference."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import all_states, log_z, random_rbm
from evaluations import draws, log_z_of_spins, recorded, run
from writers import as_rbms

from boltzmann_companion.studies.study import CASES, study_images
from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation import audit, audit_evaluation, compare, evaluate
from boltzmann_likelihood.evaluation.audit import (
    EXIT_CODES,
    AuditVerdict,
)
from boltzmann_likelihood.evaluation.evaluation import AnnealingRuns
from boltzmann_likelihood.evaluation.report import describe_comparison
from boltzmann_likelihood.evaluation.result import AnnealingRun, Doubt, Judgement, Verdict
from paperlib.errors import InputError
from paperlib.estimators import (
    PartitionEstimate,
    ReverseEstimate,
    bracket,
    exact_log_z,
    upper_bound_from_reached,
)
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

SMALL = random_rbm(8, 5, seed=2)
STATES = all_states(8)
LOG_P = SMALL.log_unnormalized(STATES) - exact_log_z(SMALL)


@pytest.fixture(autouse=True)
def _counted_work(monkeypatch):
    """So much work, however busy the machine is."""
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 480)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 20_000)


def audited(rbm, test, **claim):
    return audit(rbm, test, generator=seeded_generator(1), progress=False, **claim)


# ---- what enumeration decides


@pytest.mark.parametrize(
    ("off", "verdict"),
    [
        (0, AuditVerdict.CONSISTENT),
        (0.09, AuditVerdict.CONSISTENT),
        (-0.09, AuditVerdict.CONSISTENT),
        (0.2, AuditVerdict.IMPOSSIBLE),
        (-5, AuditVerdict.IMPOSSIBLE),
    ],
)
def test_enumeration(off, verdict):
    checked = audited(SMALL, draws(SMALL, 20, 1), claimed_log_z=log_z(SMALL) + off)
    assert checked.verdict == verdict
    assert checked.interval == pytest.approx((log_z(SMALL),) * 2, abs=1e-9)


def test_a_log_probability_is_a_log_z():
    test = draws(SMALL, 20, 1)
    truth = (SMALL.log_unnormalized(test) - log_z(SMALL)).mean().item()
    right = audited(SMALL, test, claimed_log_prob=truth)
    assert right.verdict == AuditVerdict.CONSISTENT
    assert right.claimed_log_z == pytest.approx(log_z(SMALL), abs=1e-9)
    assert audited(SMALL, test, claimed_log_prob=truth + 5).verdict == AuditVerdict.IMPOSSIBLE


@pytest.mark.parametrize("claim", [0.3, 24.0])
def test_an_average_above_0_is_impossible_before_all_else(claim):
    checked = audited(SMALL, draws(SMALL, 20, 1), claimed_log_prob=claim)
    assert checked.verdict == AuditVerdict.IMPOSSIBLE
    assert checked.reason.startswith(
        f"An average log-probability of {claim:.2f} is impossible: ln p(v)"
    )


TRUTH = log_z(SMALL)


@pytest.mark.parametrize("off", [math.log(20_000), 5 * math.log(2)])
def test_the_reason_is_what_is_known_and_no_guess(off):
    """An arbitrary claim fits one of eighteen round numbers by chance."""
    checked = audited(SMALL, draws(SMALL, 20, 1), claimed_log_z=TRUTH + off)
    assert (
        checked.reason == f"ln Z = {TRUTH + off:.2f} is above {TRUTH:.2f}, what enumeration proves."
    )


@pytest.mark.usefixtures("_estimated")
def test_what_is_not_supported_gives_the_estimate_and_says_why_the_interval_is_wide():
    test = draws(SMALL, 50, 1)
    wrong = audited(SMALL, test, claimed_log_z=TRUTH + 4)
    assert wrong.verdict == AuditVerdict.NOT_SUPPORTED
    assert wrong.reason.endswith(f"The estimate is {wrong.evaluation.known_log_z.value:.2f}.")
    assert "wider than that of evaluate: 99.7 %, and half a nat on either side" in wrong.reason
    # below what is proven, or even below ln p*(v) of the images
    low = audit_evaluation(SMALL, test, wrong.evaluation, TRUTH - 5)
    assert low.verdict == AuditVerdict.IMPOSSIBLE
    assert "below" in low.reason or "ln p(v) is at most 0" in low.reason


@pytest.mark.parametrize("bias", [1e308, 1.7e308])
def test_a_model_that_overflows_is_an_error_and_never_consistent(bias):
    rbm = RBM(SMALL.weights, torch.full((8,), bias, dtype=torch.float64), SMALL.hidden_bias)
    with pytest.raises(InputError, match=r"^model: expected weights and biases of which"):
        audited(rbm, STATES[-20:], claimed_log_z=5.0)


# ---- what estimates decide


def planted_model(model, of=None):
    """A model, its ln Z, no training images, and draws, by default its own."""
    return model.rbm, model.log_z, None, (of or model).draws(200, seeded_generator(6))


def with_mode(log_odds, drawn, fraction=1.0):
    """A mode far from the others in this part of the pixels, and draws that show it or not."""
    blocks = planted.block_diagonal(60, 40, 5, generator=seeded_generator(3))
    model = planted.hidden_mode(
        blocks.rbm, log_odds, fraction=fraction, generator=seeded_generator(5)
    )
    return planted_model(model, None if drawn else blocks)


def study_case(name):
    [case] = [case for case in CASES if (case.data, case.name) == ("digits", name)]
    return *case.make(), *study_images(case.data)


# Each gives an RBM, its ln Z, training images or None, and test images.
MODELS = {
    "25 blocks": lambda: planted_model(
        planted.block_diagonal(60, 40, 5, generator=seeded_generator(3))
    ),
    "rank one": lambda: planted_model(planted.low_rank(60, 40, generator=seeded_generator(3))),
    "Ising 5 x 5": lambda: planted_model(planted.ising_2d(5)),
    "mode with odds e^2, drawn": lambda: with_mode(2.0, drawn=True),
    "mode with odds e^2, not drawn": lambda: with_mode(2.0, drawn=False),
    # the proven bounds know next to nothing of so wide a mode: a run that starts there does
    "wide mode with odds e^2, not drawn": lambda: with_mode(2.0, drawn=False, fraction=0.5),
    "mode with odds e^8, not drawn": lambda: with_mode(8.0, drawn=False),
    "digits, mode of 4 units, odds e^30": lambda: study_case("mode of 4 units, odds e^30"),
    "digits, weights times 10": lambda: study_case("weights times 10"),
}


@pytest.mark.parametrize("name", MODELS)
def test_three_claims(name):
    """Estimates of little work never call the truth wrong, and always call 5 nats off wrong.

    Also where a mode is far from all images.
    """
    rbm, truth, train, test = MODELS[name]()
    effort = {"steps": 480, "tempering_steps": 20_000, "exact": False, "progress": False}
    evaluation = evaluate(rbm, test, train, generator=seeded_generator(24), **effort)
    for off in (0, 5, -5):
        claim = audit_evaluation(rbm, test, evaluation, truth + off)
        assert (claim.verdict == AuditVerdict.CONSISTENT) == (off == 0), claim


@pytest.mark.usefixtures("_estimated")
@pytest.mark.parametrize(
    ("factor", "num_images", "verdict"),
    [
        (10, 2, AuditVerdict.CONSISTENT),
        (6, 3, AuditVerdict.CONSISTENT),
        (100, 2, AuditVerdict.NOT_SUPPORTED),
        (100, 20, AuditVerdict.NOT_SUPPORTED),
    ],
)
def test_raise_excludes_the_truth_in_three_of_a_thousand_sets_at_most(factor, num_images, verdict):
    """RAISE is exact, and gives each image `factor` times the probability that the model gives it.

    Images that annealing prefers so much have at most a probability of 1 / `factor` in all. So a
    test set of them alone is drawn with probability `factor` ** -`num_images` at most, and if that
    is below 0.003, RAISE may say that the truth is too large. All other estimates are too low.
    """
    images = STATES[LOG_P.argsort()[: 2 * num_images : 2]]
    log_p = SMALL.log_unnormalized(images)
    low = TRUTH - 5
    numbers = torch.arange(num_images)
    above = PartitionEstimate(torch.full((200,), low).double(), torch.zeros(200, 8))
    log_r = log_p - TRUTH + math.log(factor)
    assert log_r.logsumexp(0) < 0
    below = ReverseEstimate(log_r[:, None].expand(-1, 2))
    run = AnnealingRun(
        480, above, bracket(log_p, numbers, above, below), seconds=1.0, chosen=numbers
    )
    estimated = audited(SMALL, images, claimed_log_z=TRUTH).evaluation
    wrong = replace(
        estimated,
        runs=(run,),
        tempering=replace(estimated.tempering, log_z=low, lower_bound=None),
        judgement=Judgement(Verdict.NOT_TRUSTED, (Doubt(Verdict.NOT_TRUSTED, "Few round trips."),)),
    )
    assert (factor**-num_images > 0.003) == (verdict == AuditVerdict.CONSISTENT)
    assert audit_evaluation(SMALL, images, wrong, TRUTH).verdict == verdict


@pytest.mark.usefixtures("_estimated")
def test_mass_of_distinct_images():
    """Images that occur twice count once: the sum over all states is Z, and no more."""
    checked = audited(SMALL, torch.cat([STATES, STATES]), claimed_log_z=log_z(SMALL))
    [mass] = [bound for bound in checked.bounds if bound.name == "the mass of the test images"]
    assert mass.low == pytest.approx(log_z(SMALL), abs=1e-9)
    assert checked.verdict == AuditVerdict.CONSISTENT


@pytest.mark.parametrize("hidden", [0, 30])
def test_bound_from_the_images_that_annealing_reaches(hidden):
    """For draws of the model and exact p_ann, it fails in at most one run of ten.

    A few images cost it little.
    """
    log_p = SMALL.log_unnormalized(STATES)
    # a p_ann that leaves half of the states out, and a model with little mass there
    reached = torch.arange(len(STATES)) % 2 == 0
    log_p = torch.where(reached, log_p, log_p - 3)
    truth = log_p.logsumexp(0).item()
    annealed = torch.where(reached, log_p, torch.tensor(-math.inf).double()).log_softmax(0)
    generator = seeded_generator(3)
    fails = 0
    bounds = []
    for _ in range(200):
        chosen = torch.multinomial(log_p.softmax(0), 100, True, generator=generator)
        ratios = log_p[chosen] - annealed[chosen].clamp(min=-60)
        ratios[:hidden] += 50
        bounds.append(upper_bound_from_reached(ratios, 0.1))
        fails += bounds[-1] < truth
    assert fails < 20 + 3 * math.sqrt(18)
    assert sum(bounds) / 200 < truth + (1.0 if hidden else 0.4)
    assert upper_bound_from_reached(torch.zeros(1).double(), 0.1) == math.inf  # too few


# ---- two models


def test_difference_of_two_models():
    """All of it is known: the mean over the images, its error, and who is better."""
    other = random_rbm(8, 5, seed=9)
    test = draws(SMALL, 400, 5)
    comparison = compare(SMALL, other, test)
    ratio = SMALL.log_unnormalized(test) - other.log_unnormalized(test)
    ratio = ratio - log_z(SMALL) + log_z(other)
    mean = ratio.mean().item()
    error = ratio.std().item() / 20
    assert comparison.difference.mean == pytest.approx(mean, abs=1e-9)
    low, high = comparison.difference.sample_interval
    assert high - low == pytest.approx(2 * 1.966 * error, rel=1e-3)  # Student, 399 degrees
    assert comparison.wins == (ratio > 0).double().mean().item()
    assert comparison.verdict == "first better"
    turned = compare(other, SMALL, test)
    assert turned.difference.mean == pytest.approx(-mean, abs=1e-9)
    assert turned.verdict == "second better"


@pytest.mark.usefixtures("_estimated")
def test_error_of_both_log_z_counts():
    generator = seeded_generator(3)
    test = draws(SMALL, 100, 6)
    almost = RBM(SMALL.weights, SMALL.visible_bias + 1e-9, SMALL.hidden_bias)
    comparison = compare(SMALL, almost, test, generator=generator, progress=False)
    errors = [
        evaluation.known_log_z.std_error for evaluation in (comparison.first, comparison.second)
    ]
    low, high = comparison.difference.interval
    # both differ by their errors only: at 95 %, with at least a few degrees of freedom
    assert 1.9 * math.hypot(*errors) < (high - low) / 2 < 13 * math.hypot(*errors)
    assert low < 0 < high
    assert (comparison.verdict, comparison.wins) == ("no difference shown", None)


@pytest.mark.usefixtures("_estimated")
def test_one_model_is_evaluated_once():
    """The same numbers in another type are the same model.

    No difference is estimated that is known to be zero.
    """
    comparison = compare(
        SMALL.to(dtype=torch.float32),
        SMALL.to(dtype=torch.float32).to(dtype=torch.float64),
        draws(SMALL, 50, 6),
    )
    assert comparison.first is comparison.second
    assert (comparison.difference.mean, comparison.difference.interval) == (0, (0, 0))
    assert (comparison.verdict, comparison.wins) == ("the models are the same", None)
    lines = describe_comparison(comparison).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["both:", "For", "", "Verdict:"]
    assert lines[-1] == "Verdict: the models are the same."


@pytest.mark.parametrize("same", [False, True])
def test_what_a_warning_takes_back_is_not_said(same):
    comparison = compare(SMALL, SMALL if same else random_rbm(8, 5, seed=9), draws(SMALL, 400, 5))
    assert (comparison.wins is None) == same
    doubt = Doubt(Verdict.NOT_TRUSTED, "A mode may be missing.")
    doubted = replace(comparison.first, judgement=Judgement(Verdict.NOT_TRUSTED, (doubt,)))
    comparison = replace(comparison, first=doubted)
    assert comparison.wins is None
    text = describe_comparison(comparison)
    assert "higher probability" not in text
    assert f"\n  - {'both' if same else 'first'}: A mode may be missing." in text


def test_few_images_speak_for_themselves_only():
    """Two images, both much more probable under the first model: nothing is known of others."""
    other = random_rbm(8, 5, seed=9)
    better = (LOG_P - other.log_unnormalized(STATES) + exact_log_z(other)).topk(200).indices
    comparison = compare(SMALL, other, STATES[better[[0, 150]]])
    assert comparison.verdict == "first better on these images"


# ---- the commands


@pytest.fixture
def folder(folder):
    SMALL.save("m.npz")
    np.save("t.npy", draws(SMALL, 100, 1).to(torch.uint8).numpy())
    return folder


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("off", "verdict"), [(0, AuditVerdict.CONSISTENT), (5, AuditVerdict.IMPOSSIBLE)]
)
def test_audit_command(off, verdict):
    claim = log_z(SMALL) + off
    line = f"audit m.npz --data t.npy --claimed-log-z {claim}"
    output, stored = recorded(line, EXIT_CODES[verdict])
    assert f"Verdict: {verdict}. ln Z = {claim:.2f}" in output
    assert stored["verdict"] == verdict
    assert stored["bounds"][0]["low"] == pytest.approx(log_z(SMALL), abs=1e-9)
    assert stored["claimed_log_z"] == pytest.approx(claim)


def test_audit_of_what_an_archive_says(folder):
    """Of spins: the archive's ln Z is that of its own model, and its images are -1 and 1."""
    truth = log_z_of_spins(SMALL)
    archive = as_rbms(SMALL.tensors().values(), "IIRBM", log_z=truth)
    (folder / "RBM.h5").write_bytes(archive)
    np.save("spins.npy", (2 * STATES[::3] - 1).numpy())
    run("audit RBM.h5 --data spins.npy")
    wrong = f"audit RBM.h5 --data spins.npy --claimed-log-z {truth - 5}"
    run(wrong, EXIT_CODES[AuditVerdict.IMPOSSIBLE])


@pytest.mark.usefixtures("folder")
def test_compare_command():
    output, stored = recorded("compare m.npz other.npz --data t.npy")
    assert "Verdict: first better on these images." in output
    assert "for other images of the kind nothing can be said" in output
    assert "Model: m.npz\nSecond model: other.npz\n" in output
    assert stored["verdict"] == "first better on these images"
    assert stored["interval_95_other_images"] == [None, None]
    low, high = stored["interval_95"]
    assert 0 < low < stored["difference"] < high
