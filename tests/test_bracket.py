"""AIS above, RAISE below: the truth between them, and a word for where they part."""

import itertools
import json
import math
from collections import Counter

import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import draws

from boltzmann_companion.studies.bracket_tables import ends_and_gap, from_start, verdict_of
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, bracket, raise_log_prob
from paperlib.estimators.bracket import LARGEST_ERROR, BracketVerdict, bracket_verdict
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import ReverseEstimate
from paperlib.numerics import seeded_generator
from paperlib.uncertain import Uncertain

CANNOT_TELL = BracketVerdict.CANNOT_TELL

RBM = random_rbm(6, 4, 3, scale=2)
# Draws from the model itself: of other vectors a smoother distribution, such as p_ann of a short
# path, may well think more.
V = draws(RBM, 64, seed=99)


def estimates(steps, chains, seed, vectors=20):
    path = BaseRatePath(RBM)
    betas = uniform_betas(steps)
    chosen = torch.randperm(len(V), generator=seeded_generator(seed))[:vectors]
    above = ais(path, betas, chains, seeded_generator(seed + 1))
    below = raise_log_prob(path, V[chosen], betas, chains // vectors, seeded_generator(seed + 2))
    return chosen, above, below


def test_many_steps_close_the_bracket_on_the_truth():
    truth = RBM.log_unnormalized(V).mean().item() - log_z(RBM)
    chosen, above, below = estimates(1_000, 2_000, 0)
    result = bracket(RBM.log_unnormalized(V), chosen, above, below)
    assert result.verdict(0.1) == "closed"
    low, high = result.upper_interval
    assert low <= truth <= high
    # 20 of 64 vectors: the error of their choice and of the chains
    assert abs(result.lower.mean - truth) < 4 * result.lower.test_set_std_error + 0.05
    assert abs(result.gap) < 4 * result.gap_std_error + 0.05


def test_gap_is_the_mean_over_vectors_and_the_median_tells_few_from_all():
    x = torch.arange(20.0, dtype=torch.float64)
    above = PartitionEstimate(torch.zeros(2, dtype=torch.float64), torch.zeros(2, 1))
    short = torch.tensor([0.2] * 8 + [30.0, 40.0], dtype=torch.float64)
    chosen = torch.arange(19, 9, -1)
    result = bracket(x, chosen, above, ReverseEstimate((x[chosen] - short)[:, None]))
    torch.testing.assert_close(result.vector_gaps, short, rtol=0, atol=1e-12)
    assert result.gap == pytest.approx(short.mean().item(), abs=1e-12)
    assert result.median_gap == pytest.approx(0.2, abs=1e-12)


def test_few_steps_leave_it_open_around_the_truth():
    truth = RBM.log_unnormalized(V).mean().item() - log_z(RBM)
    chosen, above, below = estimates(1, 64 * 30, 10, vectors=64)
    result = bracket(RBM.log_unnormalized(V), chosen, above, below)
    assert result.verdict(0.1) == "open"
    assert result.lower.mean < truth


def noisy(gap, std_error, log_weights=(0.0,) * 20):
    """A bracket with this gap, for which RAISE was run for five of ten vectors with this error."""
    x = torch.arange(10.0, dtype=torch.float64)
    chosen = torch.arange(5)
    log_weights = torch.tensor(log_weights, dtype=torch.float64)
    above = PartitionEstimate(log_weights, torch.zeros(len(log_weights), 1))
    # standard deviation 1; that of the mean of five of ten is sqrt(1 / 5 (1 - 5 / 10))
    noise = torch.tensor([-1.0, -1.0, 0.0, 1.0, 1.0]) * std_error * 10**0.5
    below = ReverseEstimate((x[chosen] - above.log_z - gap + noise)[:, None].expand(-1, 2))
    return bracket(x, chosen, above, below)


@pytest.mark.parametrize(
    ("gap", "std_error", "word"),
    [
        (0.5, 0.0, "closed"),
        (-0.5, 0.0, "closed"),
        (1.5, 0.0, "open"),
        (-1.5, 0.0, "crossed"),
        # five vectors leave four degrees of freedom, and 6.62 standard errors to either side
        (2.0, 0.150, "open"),
        (2.0, 0.152, CANNOT_TELL),
        (-2.0, 0.150, "crossed"),
        (0.0, 0.150, "closed"),
        (0.0, 0.152, CANNOT_TELL),
    ],
)
def test_noise_is_no_agreement(gap, std_error, word):
    result = noisy(gap, std_error)
    assert result.upper == 4.5
    assert result.lower.mean == pytest.approx(4.5 - gap, abs=1e-6)
    assert result.gap == pytest.approx(gap, abs=1e-6)
    assert result.gap_std_error == pytest.approx(std_error, rel=1e-6, abs=1e-9)
    assert result.lower.test_set_std_error == pytest.approx(std_error, rel=1e-6, abs=1e-9)
    assert result.verdict() == word


@pytest.mark.parametrize("gap", [0.0, 40.0, -40.0])
def test_few_effective_chains_say_nothing(gap):
    """Eight of 100 chains hold nearly all the weight: a finite error, far smaller than the gap."""
    result = noisy(gap, 0.0, [20.0] * 8 + [0.0] * 92)
    assert result.upper_std_error < 0.4
    assert result.verdict() == CANNOT_TELL
    assert noisy(gap, 0.0, [20.0] * 50 + [0.0] * 50).verdict() != CANNOT_TELL


def test_error_of_the_gap_has_no_upper_limit():
    """One chain of 100 holds nearly all of the weight: nothing is known of the error."""
    result = noisy(5.0, 0.0, [20.0] + [0.0] * 99)
    assert result.gap_std_error == result.upper_std_error == math.inf
    assert result.upper_slack == 0
    assert result.gap == pytest.approx(5.0)
    assert result.verdict() == CANNOT_TELL
    # the mean of 0 to 9 less 20 - ln 100, and 5 nats below
    lower = "-15.89 +- 0.00 nats"
    assert repr(result) == f"Bracket(upper -10.89 nats, error unknown; lower {lower})"


def test_error_of_the_gap_by_hand():
    """Weights 1, 1, 1, 5: mean 2, its standard deviation 1, so that ln Z has an error of 1/2."""
    x = torch.arange(5.0, dtype=torch.float64)
    chosen = torch.tensor([4, 1, 2])
    shifts = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    above = PartitionEstimate(torch.tensor([1.0, 1, 1, 5]).double().log(), torch.zeros(4, 1))
    result = bracket(x, chosen, above, ReverseEstimate((x[chosen] - shifts)[:, None].expand(-1, 2)))
    assert above.std_error == pytest.approx(0.5, abs=1e-12)
    assert result.upper_std_error == pytest.approx(0.5, abs=1e-12)
    # three of these errors in the weights' mean: from 2 to 5
    assert result.upper_slack == pytest.approx(math.log(5 / 2), abs=1e-12)
    # differences 1, 2, 3 without noise have variance 1; 3 of 5 vectors leave (1 / 3) (1 - 3 / 5)
    assert result.gap_std_error == pytest.approx(math.sqrt(0.25 + 2 / 15), abs=1e-12)


# ---- the rule, from the gap and its error alone


@pytest.mark.parametrize(
    ("gap", "std_error", "word"),
    [
        (0.0, 0.0, "closed"),
        (1.0, 0.0, "closed"),
        (-1.0, 0.0, "closed"),
        (1.1, 0.0, "open"),
        (-1.1, 0.0, "crossed"),
        (0.4, 0.19, "closed"),
        (-0.4, 0.19, "closed"),
        (0.4, 0.21, CANNOT_TELL),
        (-0.4, 0.21, CANNOT_TELL),
        (1.7, 0.23, "open"),
        (1.7, 0.24, CANNOT_TELL),
        (-1.7, 0.23, "crossed"),
        (-1.7, 0.24, CANNOT_TELL),
        (1.53, 0.41, CANNOT_TELL),
        (1.89, 1.02, CANNOT_TELL),  # once counted as closed, and both ends were wrong
        (40.0, math.inf, CANNOT_TELL),
        (40.0, math.nan, CANNOT_TELL),
        (math.inf, 0.1, CANNOT_TELL),
        (math.nan, 0.1, CANNOT_TELL),
    ],
)
def test_the_interval_of_the_gap_decides(gap, std_error, word):
    assert bracket_verdict(Uncertain(gap, std_error)) == word
    # a nat is only the unit
    assert bracket_verdict(Uncertain(gap / 10, std_error / 10), tolerance=0.1) == word


def test_noise_can_only_silence_a_verdict():
    """More noise turns an answer into `cannot tell`, and into no other word.

    More noise is a larger error, fewer degrees of freedom or a larger error of AIS. An error
    that is added does the same, unless the other one has fewer than four degrees of freedom: it is
    then better known.
    """
    gaps = [-40.0, -1.08, -0.41, -0.1, 0.0, 0.15, 0.99, 1.53, 3.87, 40.0]
    errors = [0.0, 0.01, 0.1, 0.3, 0.5, 1.0, 5.0, 100.0, math.inf]
    ais_errors = [0.0, 0.1, LARGEST_ERROR, LARGEST_ERROR + 0.001, 1.0, math.inf]
    verdicts = set()
    for gap, tolerance, joined in itertools.product(gaps, (0.1, 0.3, 1.0), (False, True)):
        if joined:
            added = errors
            freedoms = [math.inf, 99.0, 29.0, 9.0, 4.0, 0.0]
        else:
            added = [0.0]
            freedoms = [math.inf, 99.0, 29.0, 9.0, 3.0, 1.0, 0.0]
        grids = (errors, added, freedoms, ais_errors)
        words = {}
        for place in itertools.product(*(range(len(grid)) for grid in grids)):
            first, second, freedom, above = (grid[n] for grid, n in zip(grids, place, strict=True))
            difference = Uncertain(gap, first, freedom) + Uncertain(0.0, second, 50)
            words[place] = bracket_verdict(difference, above, tolerance)
            assert words[place] == CANNOT_TELL or math.isfinite(first + second)
        for place, word in words.items():
            for axis in range(len(grids)):
                noisier = tuple(n + (axis == number) for number, n in enumerate(place))
                assert words.get(noisier, word) in (word, CANNOT_TELL)
        verdicts |= set(words.values())
    assert verdicts == {"closed", "open", "crossed", CANNOT_TELL}


def test_few_degrees_of_freedom_widen_the_interval():
    """At 99.73 % Student's t has 3.85 standard errors a side for 11 degrees of freedom.

    For infinitely many it has 3.
    """
    for freedom, quantile in ((math.inf, 3.0), (11.0, 3.8497)):
        for off, word in ((-0.001, "closed"), (0.001, CANNOT_TELL)):
            error = (1 + off) / quantile
            assert bracket_verdict(Uncertain(0.0, error, freedom)) == word


# ---- what a record says of a bracket


def random_bracket(seed):
    """With few or many images and chains, some with most of the weight, and gaps up to two nats."""
    generator = seeded_generator(seed)

    def one_of(*numbers):
        return numbers[int(torch.randint(len(numbers), (), generator=generator))]

    vectors = one_of(3, 6, 12)
    chains = one_of(10, 20, 200)
    spread = one_of(0.1, 0.6, 1.5)
    x = torch.arange(12.0, dtype=torch.float64)
    draws = torch.randn(chains, generator=generator, dtype=torch.float64)
    above = PartitionEstimate(spread * draws, torch.zeros(chains, 1))
    gap = 4 * torch.rand((), generator=generator).item() - 2
    noise = torch.randn(vectors, one_of(2, 10), generator=generator, dtype=torch.float64)
    log_weights = x[:vectors, None] - above.log_z - gap + one_of(0.01, 0.1, 0.5) * noise
    return bracket(x, torch.arange(vectors), above, ReverseEstimate(log_weights))


def test_a_record_says_of_a_bracket_what_the_bracket_says():
    words = Counter()
    for seed in range(300):
        result = random_bracket(seed)
        row = json.loads(json.dumps(ends_and_gap(result)))
        for tolerance in (0.1, 1.0):
            assert verdict_of(row, tolerance=tolerance) == result.verdict(tolerance)
            columns = from_start("base rates", row)
            assert verdict_of(columns, "base_rate", tolerance=tolerance) == result.verdict(
                tolerance
            )
        words[result.verdict()] += 1
    assert set(words) == set(BracketVerdict)


def test_a_record_without_degrees_of_freedom_takes_them_from_its_numbers():
    """Of 100 images and so many chains that the error of AIS stands for them."""
    row = {"gap": 0.6, "raise_error": 0.12, "gap_error": math.hypot(0.12, 0.05)}
    difference = Uncertain(0.6, 0.12, 99) + Uncertain(0.0, 0.05, 399)
    for tolerance in (0.1, 0.95, 0.97, 1.0, 1.1):
        assert verdict_of(row, tolerance=tolerance) == bracket_verdict(difference, 0.05, tolerance)
    assert verdict_of(row, images=4) == CANNOT_TELL
    assert verdict_of(row | {"gap_dof": 3}) == CANNOT_TELL
    assert verdict_of(row) == "closed"
