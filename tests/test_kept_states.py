"""CSL by the number of kept states, its error, and ones less eights.

Against enumeration and by hand.
"""

import math
from dataclasses import replace

import pytest
import torch
from enumeration import all_states, log_z, random_rbm
from test_store import archived

from boltzmann_companion.chapter import read_settings
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.studies.bracket_rows import Entry, csl_average, csl_with_error
from boltzmann_companion.studies.kept_states import (
    Kept,
    chain_rows,
    csl_by_states,
    digit_rows,
    exact_rows,
    running_csl,
    start_rows,
    states_run,
)
from paperlib.datasets import binarize, binary_images, load_authors_rbm, load_mnist_2008
from paperlib.errors import InputError
from paperlib.estimators import csl_estimate
from paperlib.numerics import log_mean_exp, seeded_generator

RBM = random_rbm(6, 4, 0)
V = all_states(6).double()
DIGITS = get_profile("digits")


def log_prob_given(v, h):
    """ln p(v | h) for each pair, from the probabilities of the pixels."""
    p = RBM.visible_probs(h)
    return (v[:, None] * p + (1 - v[:, None]) * (1 - p)).prod(-1).log()


def entry_of(num_images=64, count=20, seed=0):
    images = binary_images("digits")
    order = torch.randperm(num_images, generator=seeded_generator(seed))
    return Entry(0, "tiny", RBM, replace(images, train=V, test=V[:num_images]), order[:count])


def test_the_running_mean_takes_every_state_or_one_in_so_many():
    batches = [all_states(4).double()[n : n + 3] for n in range(7)]
    means = running_csl(RBM, V, batches, [1, 3, 7], [1, 3])
    assert means.keys() == {"1 1", "1 3", "3 1", "3 3", "7 1"}
    for key, chosen in (("3 1", batches[:3]), ("7 1", batches), ("3 3", batches[::3])):
        direct = log_mean_exp(log_prob_given(V, torch.cat(chosen)))
        torch.testing.assert_close(means[key], direct, rtol=0, atol=1e-12)
    assert torch.equal(means["1 1"], means["1 3"])


def test_where_chains_start_matters_until_they_converge():
    entry = entry_of()
    # without burn-in: the first states are those given the start, and the rest follow
    first = start_rows(entry, parts=40, chains=50, burn_in=0, counts=[1, 200], seed=3)
    assert [(row["start"], row["csl_states"]) for row in first] == [
        (start, states)
        for start in ("training images", "random pixels", "the blank page")
        for states in (2_000, 400_000)
    ]
    exact = (RBM.log_unnormalized(V) - log_z(RBM)).mean().item()
    given_blank = log_mean_exp_of_start(torch.zeros(1, 6).double())
    [blank] = [row for row in first if row["start"] == "the blank page"][:1]
    assert abs(blank["csl"] - given_blank) < 5 * blank["csl_error"]
    for row in first:
        if row["csl_states"] > 2_000:
            assert abs(row["csl"] - exact) < 5 * row["csl_error"] < 0.2
    # no image has fewer pixels on than the blank page, of which each part has one
    assert all(row["blank_share"] == 0 for row in first)


def log_mean_exp_of_start(v):
    """The mean over all images of ln E[p(v | h)], with h drawn given the start."""
    hidden = all_states(4).double()
    on = RBM.hidden_probs(v)[0]
    shares = torch.where(hidden > 0, on, 1 - on).prod(1)
    probs = log_prob_given(V, hidden).exp()
    return (probs @ shares).log().mean().item()


@pytest.mark.parametrize("burn_in", [None, 50])
def test_many_states_find_the_truth_and_few_err_low(burn_in):
    exact = RBM.log_unnormalized(V) - log_z(RBM)

    def off(parts, size, batches):
        """How far the mean over all parts is from the exact average, in standard errors."""
        plan = Kept(parts, size, [batches], burn_in=burn_in)
        [estimate] = csl_by_states(DIGITS, RBM, V, plan, 1).values()
        values = estimate.log_means.mean(0) - exact.mean()
        return values.mean() * math.sqrt(parts) / values.std()

    assert off(8, 100, 400).abs() < 4
    assert off(200, 3, 1) < -4


def test_chains_start_at_uniform_pixels_and_burn_in():
    """The first kept states are those of chains after so many steps, as in `csl_estimate`.

    With the same draws.
    """
    [first] = Kept(parts=1, size=5, counts=[1], burn_in=0).batches(RBM, seeded_generator(3))
    second = [*Kept(parts=1, size=5, counts=[2], burn_in=0).batches(RBM, seeded_generator(3))][1]
    [later] = Kept(parts=1, size=5, counts=[1], burn_in=1).batches(RBM, seeded_generator(3))
    assert torch.equal(later, second)
    one_step = csl_estimate(RBM, V, 5, 1, seeded_generator(3), False)
    torch.testing.assert_close(one_step.log_means, log_prob_given(V, first), rtol=0, atol=1e-12)


def test_rows_have_the_average_over_all_images_and_its_error():
    entry = entry_of()
    plan = Kept(parts=4, size=10, counts=[1, 2, 20], strides=[1, 10], burn_in=5)
    rows = chain_rows(DIGITS, entry, plan, -3.0, 7)
    estimates = csl_by_states(DIGITS, RBM, entry.v, plan, 7)
    assert [row["csl_states"] for row in rows] == [40, 80, 800]
    assert [row["thinned"] is None for row in rows] == [False, False, True]
    rest = estimates["20 1"].log_prob - entry.log_p[entry.cases]
    assert rows[2]["csl"] == pytest.approx((rest.mean() + entry.log_p.mean()).item())
    choice = rest.std().item() * math.sqrt((1 - 20 / 64) / 20)
    chains = estimates["20 1"].monte_carlo_std_error
    assert rows[2]["csl_error"] == pytest.approx(math.hypot(choice, chains))
    assert rows[1]["thinned"] == csl_with_error(entry, estimates["2 10"])["csl"] != rows[1]["csl"]


def test_the_error_of_csl_holds_what_other_images_and_chains_give():
    """Without the part of the chains, which all images share, the intervals hold too seldom."""
    everything = torch.stack(
        [csl_estimate(RBM, V, 10, 5, seeded_generator(s), False).log_prob for s in range(400)]
    )
    truth = everything.mean().item()
    held = 0
    held_by_choice = 0
    for seed in range(300):
        entry = entry_of(count=48, seed=seed)
        row = csl_average(DIGITS, entry, (10, 5), None, 10_000 + seed)
        estimate = csl_estimate(RBM, entry.v, 10, 5, seeded_generator(10_200 + seed), False)
        choice = math.sqrt(row["csl_error"] ** 2 - estimate.monte_carlo_std_error**2)
        held += abs(row["csl"] - truth) < 1.96 * row["csl_error"]
        held_by_choice += abs(row["csl"] - truth) < 1.96 * choice
    assert 0.9 < held / 300 < 0.99
    assert held_by_choice / 300 < 0.8


def test_exact_draws_fall_short_of_the_enumerated_value():
    """A model of the book: the exact value from all hidden states, and the average by hand.

    From the same draws.
    """
    model = DIGITS.model("digits-pcd-16")
    draws = Kept(parts=3, size=50, counts=[1, 20])
    few, many = exact_rows(DIGITS, {"digits-pcd-16": model}, 40, draws, 5)
    assert few["model"] == "digitsPCD-16"
    assert (few["csl_states"], many["csl_states"]) == (50, 1_000)
    v = DIGITS.images().test[:40].double()
    log_masses = model.log_unnormalized_hidden(all_states(16).double())
    exact = (model.log_unnormalized(v) - log_masses.logsumexp(0)).mean()
    values = csl_by_states(DIGITS, model, v.byte(), draws, 5)["20 1"].log_means.mean(0)
    assert many["short"] == pytest.approx((exact - values.mean()).item(), abs=1e-9)
    assert many["spread"] == pytest.approx(values.std().item())
    assert few["short"] > many["short"] > -4 * many["spread"]


def test_ones_less_eights_as_given_and_anew():
    model = DIGITS.model("digits-pcd-16")
    images = DIGITS.images()
    rows = {row["model"]: row for row in digit_rows(model, images, 3, 11)}

    def by_hand(v, labels):
        log_p = model.log_unnormalized(v.double())
        return (log_p[labels == 1].mean() - log_p[labels == 8].mean()).item()

    test_row = rows["test images, as given"]
    assert test_row["one_minus_eight"] == pytest.approx(
        by_hand(images.test, images.grey.test_labels)
    )
    assert test_row["one_minus_eight_error"] is None
    labels = images.grey.train_labels
    drawn = [by_hand(binarize(images.grey.train, 11 + 20 * draw), labels) for draw in range(3)]
    anew = rows["training images, anew"]
    assert anew["one_minus_eight"] == pytest.approx(sum(drawn) / 3)
    assert (anew["lowest"], anew["highest"]) == pytest.approx((min(drawn), max(drawn)))
    assert anew["one_minus_eight_error"] == pytest.approx(
        torch.tensor(drawn).std().item(), rel=1e-4
    )


def test_the_stored_shards_have_their_names():
    size = get_profile("paper")
    settings = read_settings("15-own-images-weights-and-seeds", "paper")
    try:
        images = size.images()
        authors_images = load_mnist_2008()
        rbm = load_authors_rbm()
    except InputError as error:
        pytest.skip(str(error))
    order = torch.randperm(10_000, generator=seeded_generator(2_008 + 5))
    v = authors_images.test[order[: settings["csl_images"]]]
    runs = [states_run(rbm, v, Kept(**settings["csl_chains"]), 2_308)]
    for model_id in settings["exact_models"]:
        v = images.test[: settings["exact_images"]]
        runs.append(states_run(size.model(model_id), v, Kept(**settings["exact_draws"]), 2_408))
    names = {f"shards/{part.name}.safetensors" for run in runs for part in run.parts}
    assert names == archived("chapter-15-csl")
