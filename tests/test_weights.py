"""Weighted test sets: whole weights are repeated rows, in every number."""

import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from enumeration import all_states, log_z, random_rbm
from evaluations import SMALL, recorded

from boltzmann_likelihood.evaluation import audit, compare, evaluate
from boltzmann_likelihood.evaluation.averages import as_weights
from boltzmann_likelihood.evaluation.baselines import baselines_of
from boltzmann_likelihood.files import read_weights
from paperlib.datasets import base_rate_bias
from paperlib.errors import InputError
from paperlib.estimators import PartitionEstimate, ReverseEstimate, bracket
from paperlib.numerics import seeded_generator

OTHER = random_rbm(8, 5, 2)
GENERATOR = seeded_generator(3)
ROWS = all_states(8)[torch.randint(0, 256, (30,), generator=GENERATOR)]
WEIGHTS = torch.randint(0, 5, (30,), generator=GENERATOR).double()
REPEATED = ROWS.repeat_interleave(WEIGHTS.long(), 0)


def assert_same_baselines(first, second):
    assert first.uniform == second.uniform
    assert first.base_rates == pytest.approx(second.base_rates, rel=1e-12)
    assert first.source == second.source


def assert_same_average(first, second):
    """Up to rounding, in every number and in what is said of other images."""
    for name, value in asdict(second).items():
        exact = value is None or isinstance(value, str)
        expected = value if exact else pytest.approx(value, rel=1e-9)
        assert getattr(first, name) == expected, name


def test_whole_weights_are_repeated_rows():
    weighted = evaluate(SMALL, ROWS, weights=WEIGHTS)
    repeated = evaluate(SMALL, REPEATED)
    assert weighted.exact.test == pytest.approx(repeated.exact.test, abs=1e-12)
    assert weighted.exact.test_std_error == pytest.approx(repeated.exact.test_std_error, rel=1e-9)
    assert_same_average(weighted.average, repeated.average)
    assert_same_baselines(weighted.baselines, repeated.baselines)
    torch.testing.assert_close(base_rate_bias(ROWS, weights=WEIGHTS), base_rate_bias(REPEATED))
    assert weighted.weights.sum() == len(REPEATED)


def test_audit_and_compare_weigh_too():
    claim = (SMALL.log_unnormalized(REPEATED) - log_z(SMALL)).mean().item()
    checked = audit(SMALL, ROWS, weights=WEIGHTS, claimed_log_prob=claim)
    assert checked.claimed_log_z == pytest.approx(log_z(SMALL), abs=1e-9)
    weighted = compare(SMALL, OTHER, ROWS, weights=WEIGHTS)
    repeated = compare(SMALL, OTHER, REPEATED)
    assert weighted.wins == pytest.approx(repeated.wins, abs=1e-12)
    assert_same_average(weighted.difference, repeated.difference)


def test_bracket_with_every_row_chosen():
    """RAISE's average is then the weighted mean of its values.

    Without noise, as of two equal chains, it has no error; one chain cannot tell.
    """
    log_p = SMALL.log_unnormalized(ROWS)
    weighted = WEIGHTS > 0
    log_p = log_p[weighted]
    weights = WEIGHTS[weighted]
    above = PartitionEstimate(
        torch.full((50,), log_z(SMALL), dtype=torch.float64), torch.zeros(50, 8)
    )
    values = torch.randn(len(log_p), generator=seeded_generator(4)).double()
    chains = values[:, None].expand(-1, 2)
    every_row = range(len(log_p))
    ends = bracket(log_p, every_row, above, ReverseEstimate(chains), weights)
    one_chain = ReverseEstimate(values[:, None])
    ends_of_one_chain = bracket(log_p, every_row, above, one_chain, weights)
    assert ends.upper == pytest.approx(np.average(log_p, weights=weights) - log_z(SMALL), abs=1e-9)
    assert ends.lower.mean == pytest.approx(np.average(values, weights=weights), abs=1e-9)
    assert ends.lower.test_set_std_error == ends_of_one_chain.lower.choice_std_error == 0
    rest = values - log_p
    off = weights / weights.sum() * (rest - np.average(rest, weights=weights))
    spread = math.sqrt(off.square().sum() * len(off) / (len(off) - 1))
    assert ends_of_one_chain.lower.test_set_std_error == pytest.approx(spread, rel=1e-9)
    assert (
        ends_of_one_chain.lower.monte_carlo_std_error == ends_of_one_chain.lower.test_set_std_error
    )


@pytest.mark.usefixtures("_estimated")
def test_an_estimate_with_weights_holds_the_truth():
    evaluation = evaluate(
        SMALL, ROWS, weights=WEIGHTS, steps=160, generator=seeded_generator(2), progress=False
    )
    truth = np.average(SMALL.log_unnormalized(ROWS) - log_z(SMALL), weights=WEIGHTS)
    assert evaluation.num_images == int((WEIGHTS > 0).sum())
    low, high = evaluation.runs[-1].bracket.upper_interval
    assert low <= truth <= high
    assert abs(evaluation.average.mean - truth) < 5 * evaluation.known_log_z.std_error
    assert abs(evaluation.runs[-1].bracket.lower.mean - truth) < 0.2  # 4 chains for each row
    assert not evaluation.warnings


REFUSED = {
    "too few": (np.ones(29), "weights: expected 30 numbers, one for each test row, got shape"),
    "negative": (-np.ones(30), "weights: expected numbers of at least 0, got -1"),
    "nan": (np.full(30, np.nan), "weights: expected finite numbers"),
    "infinite": (np.full(30, np.inf), "weights: expected finite numbers"),
    "shares": (np.full(30, 1 / 30), "weights: expected a sum of at least 2"),
    "a row and a half": (np.full(30, 0.05), "weights: expected a sum of at least 2"),
    "zeros": (np.zeros(30), "weights: expected a sum of at least 2"),
    "table": (np.ones((30, 2)), "weights: expected 30 numbers"),
    "words": (np.array(["a"] * 30), "weights: expected"),
    "one row": (np.eye(30)[0] * 5, "test: expected at least two images, got 1"),
}


@pytest.mark.parametrize(("weights", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("line", ["evaluate", "audit --claimed-log-z 9", "compare m.npz"])
def test_refused(folder, refusal, weights, message, line):
    with pytest.raises(InputError, match=message.partition(", got shape")[0]):
        evaluate(SMALL, ROWS, weights=weights)
    save(weights)
    sentence, _ = refusal(f"{line} m.npz --data rows.npy --weights w.npy")
    # the argument `test` is the option `data`
    assert message.replace("test: ", "data: ") in sentence
    assert sentence.count("\n") == 1


def save(weights):
    np.save("rows.npy", ROWS.numpy())
    np.save("w.npy", weights)


def test_forms_of_files(tmp_path):
    """A row, a column, commas."""
    expected = as_weights("weights", WEIGHTS, 30)
    np.save(tmp_path / "row.npy", WEIGHTS.numpy())
    np.save(tmp_path / "column.npy", WEIGHTS.numpy()[:, None])
    np.savetxt(tmp_path / "column.csv", WEIGHTS.numpy())
    np.savetxt(tmp_path / "row.csv", WEIGHTS.numpy()[None], delimiter=",")
    for name in ("row.npy", "column.npy", "column.csv", "row.csv"):
        assert torch.equal(read_weights(tmp_path / name, 30), expected)


def test_command(folder):
    save(WEIGHTS.numpy())
    output, stored = recorded("evaluate m.npz --data rows.npy --weights w.npy")
    truth = (SMALL.log_unnormalized(REPEATED) - log_z(SMALL)).mean().item()
    assert stored["exact"]["test"] == pytest.approx(truth, abs=1e-9)
    assert stored["total_weight"] == len(REPEATED)
    assert stored["run"]["files"]["weights"]["sha256"]
    assert f"of total weight {len(REPEATED):.1f}" in output


def test_baselines_of_weighted_rows():
    for train in (None, REPEATED):
        weighted = baselines_of(ROWS, train, WEIGHTS)
        repeated = baselines_of(REPEATED, train)
        assert_same_baselines(weighted, repeated)


@pytest.mark.parametrize(
    ("width", "different", "copies"),
    [
        (60, 5, 2),
        (60, 20, 2),
        (60, 5, 50),
        (60, 20, 50),
        # where two different images might agree by chance, but not so many
        (20, 20, 50),
        (20, 5, 100),
        (24, 20, 50),
        (30, 3, 200),
        (50, 2, 400),
    ],
)
def test_copies_are_one_case(width, different, copies):
    """The interval for other images is that of the different images; the average stays."""
    generator = seeded_generator(different)
    model = random_rbm(width, 4, 1)
    images = torch.randint(0, 2, (different, width), generator=generator)
    once = evaluate(model, images).average
    evaluation = evaluate(model, images.repeat(copies, 1))
    assert evaluation.average.mean == pytest.approx(once.mean)
    assert evaluation.average.image_std_error == pytest.approx(once.image_std_error)
    assert evaluation.average.highest == pytest.approx(once.highest)
    assert evaluation.average.doubt == once.doubt
    assert f"{different} are different" in " ".join(evaluation.remarks)


@pytest.mark.parametrize("width", [2, 784])
def test_one_image_says_nothing_about_others(width):
    evaluation = evaluate(random_rbm(width, 4, 1), torch.ones(400, width))
    assert evaluation.cases.tolist() == [0] * 400
    assert evaluation.average.doubt.startswith("one image is too few")


@pytest.mark.parametrize("heavy", [1.0, 4.0])
def test_copies_and_weights(heavy):
    """A weight on all rows counts the independent images that each different one stands for."""
    model = random_rbm(60, 4, 1)
    images = torch.randint(0, 2, (6, 60), generator=seeded_generator(1))
    weights = torch.full((6,), heavy)
    once = evaluate(model, images, weights=weights).average
    twice = evaluate(model, images.repeat(2, 1), weights=weights.repeat(2)).average
    assert twice.highest == pytest.approx(once.highest)


def test_draws_that_agree_by_chance_are_independent():
    """With 4 pixels, rows agree without being copies."""
    model = random_rbm(4, 3, 1)
    rows = torch.randint(0, 2, (1_000, 4), generator=seeded_generator(1))
    evaluation = evaluate(model, rows)
    assert evaluation.cases is None
    spread = evaluation.log_unnormalized.std().item() / math.sqrt(1_000)
    assert evaluation.average.image_std_error == pytest.approx(spread)
