"""Parallel tempering against enumeration, its swaps one by one, its error and warnings.

And what survives an interruption.
"""

import itertools
import math

import pytest
import torch
from enumeration import (
    all_states,
    assert_rates,
    frequencies,
    log_z,
    random_rbm,
)
from walks import THREE_WALKS, base_rates

from paperlib.annealing import AnnealingPath, BaseRatePath
from paperlib.estimators import parallel_tempering
from paperlib.estimators.resampling import systematic
from paperlib.estimators.tempering import warnings as doubts
from paperlib.estimators.tempering.replicas import Record, Replicas
from paperlib.estimators.tempering.run import Plan, TemperingRun
from paperlib.estimators.tempering.temperatures import (
    link_barriers,
    link_shares,
    place_temperatures,
    temperatures_for,
)
from paperlib.estimators.tempering.tempering import _joined_estimate, finish
from paperlib.mcmc.series import equilibration, mean_error
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


@THREE_WALKS
def test_estimate_on_every_backend(make, backend):
    walk = make(backend)
    path = walk.path
    truth = walk.truth
    # The pretended GPU is slow in every operation, and runs pilots for one problem alone.
    budget = 1_300 if backend.on_gpu else 3_000
    betas = [0, 0.4, 1] if backend.on_gpu and make is not base_rates else None
    estimate = parallel_tempering(path, budget, backend.generator(1), betas=betas, num_replicas=20)
    assert 0 < estimate.std_error < 0.3
    # 45 cases: beyond 4.5 standard errors with probability 3e-4 in all, and the seeds are fixed
    assert abs(estimate.log_z - truth) < 4.5 * estimate.std_error
    assert 0.75 * budget < estimate.chain_steps <= budget
    assert estimate.betas[0] == 0
    assert estimate.betas[-1] == 1
    assert (estimate.betas.diff() > 0).all()
    assert len(estimate.rejection_rates) == len(estimate.betas) - 1
    assert estimate.batch_means.mean().item() == pytest.approx(estimate.log_z, abs=0.05)
    assert len(estimate.log_z_at_betas) == len(estimate.betas)
    assert estimate.log_z_at_betas[0] == (path.log_z_start or 0)
    assert estimate.log_z_at_betas[-1] == estimate.log_z
    assert estimate.samples.shape[1] == walk.states.shape[1]


@THREE_WALKS
def test_every_temperature_has_its_distribution(make, backend):
    """Replicas are independent, so that frequencies over them have binomial errors."""
    walk = make(backend)
    path = walk.path
    count = 2_000
    generator = backend.generator(0)
    betas = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    replicas = Replicas(path, betas, count, path.sample_start(3 * count, generator))
    for _ in range(12):
        replicas.step(generator)
    for number, beta in enumerate(betas.tolist()):
        units = path.units(path.select(replicas.state, replicas.chain_at[:, number])).cpu()
        p = walk.log_f(beta).softmax(0)
        # 45 temperatures of 16 or 32 states: beyond 4.5 standard errors with probability 1e-2, and
        # the seeds are fixed; at small probabilities one draw too many is more than that
        assert_rates(frequencies(units), p, count, errors=4.5, slack=1 / count)


class Frozen(AnnealingPath[torch.Tensor]):
    """Numbers that never move; ln f_beta(x) = beta^2 x. What happens is swaps alone."""

    log_z_start = 0.0

    def sample_start(self, num_chains, generator):
        return torch.zeros(num_chains, dtype=torch.float64)

    def log_f(self, state, beta):
        return beta**2 * state

    def transition(self, state, beta, generator):
        return state


def test_swaps_are_accepted_as_often_as_they_should_be():
    """Two states 0 and 1 at two temperatures.

    From x = 1 below y = 0 always, from y = 1 above x = 0 with probability e^{-3/4}. Were ln f
    linear in beta, or the lower temperature at 0, swaps by ln f_1 alone would be accepted as often.
    """
    count = 4_000
    betas = torch.tensor([0.5, 1.0], dtype=torch.float64)
    for below, above, expected in ((1.0, 0.0, 1.0), (0.0, 1.0, math.exp(-0.75)), (0.0, 0.0, 1.0)):
        state = torch.tensor([below, above], dtype=torch.float64).repeat(count)
        replicas = Replicas(Frozen(), betas, count, state)
        replicas.step(seeded_generator(1))
        swapped = (replicas.chain_at[:, 0] % 2 == 1).double().mean().item()
        assert abs(swapped - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize("num_temperatures", [2, 3, 4, 7])
def test_every_temperature_keeps_one_chain_of_each_replica_and_all_pairs_take_turns(
    num_temperatures,
):
    betas = torch.linspace(0, 1, num_temperatures, dtype=torch.float64)
    replicas = Replicas(Frozen(), betas, 3, torch.zeros(3 * num_temperatures, dtype=torch.float64))
    generator = seeded_generator(0)
    for step in range(1, 5):
        replicas.step(generator)
        chains = torch.arange(3 * num_temperatures).view(3, -1)
        assert torch.equal(replicas.chain_at.sort(1).values, chains)
        assert torch.equal(
            replicas.temperature_of()[replicas.chain_at],
            torch.arange(num_temperatures).expand(3, -1),
        )
        if step == 1:
            # All are accepted: chains at even temperatures went up by two, others down, and those
            # at the ends turned.
            first = replicas.chain_at[0].tolist()
    expected = {2: [1, 0], 3: [1, 2, 0], 4: [1, 3, 0, 2], 7: [1, 3, 0, 5, 2, 6, 4]}
    assert first == expected[num_temperatures]


def test_recorded_ratios_are_those_of_neighbouring_temperatures():
    path = base_rates().path
    betas = torch.tensor([0.0, 0.3, 0.6, 1.0], dtype=torch.float64)
    generator = seeded_generator(2)
    replicas = Replicas(path, betas, 2, path.sample_start(8, generator))
    before = replicas.chain_at.clone()
    ratios = replicas.step(generator)
    record = Record(betas, ratios[None], replicas.ends()[None])
    lower, upper = record.links()
    # Even links were measured before any swap.
    for replica in range(2):
        for link in (0, 2):
            for side, chain in ((lower, before[replica, link]), (upper, before[replica, link + 1])):
                state = path.select(replicas.state, chain[None])
                expected = path.log_ratio(state, float(betas[link]), float(betas[link + 1]))
                assert side[0, replica, link].item() == pytest.approx(expected.item(), abs=1e-12)
    expected = 1 - (lower - upper).clamp(max=0).exp()[0].mean(0)
    assert torch.allclose(record.rejection_rates(), expected)


def test_round_trips_are_counted():
    start = torch.tensor([[0], [1], [2], [0], [1]])
    target = torch.tensor([[1], [0], [1], [2], [0]])
    # chain 0: start, target, start at the fourth step; chain 1: start after the target only; then
    # target; start: one more
    ends = torch.stack([start, target], 2)

    def trips(ends):
        return Record(torch.empty(0), torch.empty(0), ends).round_trips()

    assert trips(ends) == 2
    # two replicas count apart
    assert trips(ends.expand(-1, 2, -1)) == 4
    assert trips(ends[:1]) == 0


def test_two_modes_that_a_chain_alone_would_not_leave():
    """In one mode the first half of the units is on, in the other the second.

    A chain at beta = 1 crosses once in thousands of steps.
    """
    side = torch.ones(12, dtype=torch.float64)
    side[6:] = -1
    # the odds of the first mode are about e
    rbm = RBM(4 * side[:, None], -2 * side, [1.0])
    truth = log_z(rbm)
    estimate = parallel_tempering(BaseRatePath(rbm), 20_000, seeded_generator(0), num_replicas=20)
    assert estimate.std_error < 0.1
    assert abs(estimate.log_z - truth) < 4.5 * estimate.std_error
    assert estimate.warnings == ()
    # the odds of the modes, from draws that are not independent
    first = (estimate.samples[:, :6].mean(1) > 0.5).double().mean().item()
    states = all_states(12)
    p = rbm.log_unnormalized(states).softmax(0)
    assert first == pytest.approx(p[states[:, :6].mean(1) > 0.5].sum().item(), abs=0.1)


def test_intervals_cover_as_often_as_they_say():
    """Tiny budgets; 95 % of 30 runs are 28.5, with a standard deviation of 1.2.

    200 runs, made once, covered 192 times.
    """
    rbm = random_rbm(6, 5, seed=3)
    truth = log_z(rbm)
    path = BaseRatePath(rbm)
    covered = 0
    for seed in range(30):
        estimate = parallel_tempering(
            path, 1_500, seeded_generator(seed), num_replicas=20, check=False
        )
        low, high = estimate.interval()
        covered += low <= truth <= high
    assert covered >= 25


@pytest.mark.parametrize("portions", [[6_000], [2_000] * 3], ids=len)
def test_a_finished_run_can_be_made_longer(portions, backend):
    """It goes on where it stood: records stay, and all steps together give the enumerated ln Z."""
    walk = base_rates(backend)
    path = walk.path
    exact = walk.truth
    if backend.on_gpu:
        portions = [portion // 10 for portion in portions]
    generator = backend.generator(4)
    betas = torch.tensor([0, 0.4, 1]).double()
    plan = Plan(1_000 if backend.on_gpu else 3_000, betas, 5, 200)
    run = TemperingRun(path, plan, generator)
    while not run.finished:
        run.advance(lambda _: None)
    before = run.record().log_ratios.clone()
    spent = run.spent
    for portion in portions:
        run.extend(portion)
        assert not run.finished
        while not run.finished:
            run.advance(lambda _: None)
    chains = run.replicas.num_chains
    assert spent + sum(portions) - len(portions) * chains < run.spent <= spent + sum(portions)
    after = run.record().log_ratios
    assert torch.equal(after[: len(before)], before)
    assert len(after) - len(before) == (run.spent - spent) // chains
    assert after[len(before) :].abs().sum(dim=(1, 2, 3)).min() > 0
    estimate = finish(run, lambda _: None, check=False)
    assert 0 < estimate.std_error < 0.3
    # 18 cases, and the seeds are fixed
    assert abs(estimate.log_z - exact) < 4 * estimate.std_error


def test_temperatures_go_where_swaps_are_rejected():
    betas = torch.linspace(0, 1, 5, dtype=torch.float64)
    placed = place_temperatures(betas, torch.tensor([0.1, 0.1, 0.1, 0.7]), 11)
    assert len(placed) == 11
    assert placed[0] == 0
    assert placed[-1] == 1
    assert (placed.diff() > 0).all()
    assert (placed > 0.75).sum() == 7
    # without any barrier they are even
    assert torch.allclose(place_temperatures(betas, torch.zeros(4), 5), betas, atol=1e-3)
    assert temperatures_for(torch.zeros(4)) == 3


def test_barrier_of_a_link_is_the_sum_of_the_rates_of_its_parts():
    """A link with normal log-ratios x, of mean -s^2 and variance 2 s^2.

    Swaps are accepted with the mean of min(1, e^x).
    """
    x = torch.linspace(-80, 80, 400_001, dtype=torch.float64)
    rates = []
    for s in (0.1, 1.0, 4.0):
        density = torch.exp(-((x + s**2) ** 2) / (4 * s**2)) / math.sqrt(4 * math.pi * s**2)
        rates.append(1 - torch.trapezoid(density * x.clamp(max=0).exp(), x))
    small, middle, large = link_barriers(torch.stack(rates)).tolist()
    assert small == pytest.approx(rates[0].item(), rel=1e-3)
    assert middle == pytest.approx(10 * small, rel=1e-6)
    assert large == pytest.approx(40 * small, rel=1e-6)
    assert math.isfinite(link_barriers(torch.ones(1)).item())


def test_a_link_whose_swaps_are_all_rejected_is_divided():
    """Although its chains forget at once and all others are slow.

    Its rate says nothing of how far apart its temperatures are.
    """
    betas = torch.linspace(0, 1, 11, dtype=torch.float64)
    memory = torch.tensor([1.0] + 9 * [25.0], dtype=torch.float64)
    for rate, fewest in ((0.99, 1), (0.9999, 2)):
        barriers = link_barriers(torch.tensor([rate] + 9 * [0.3]))
        placed = place_temperatures(
            betas, link_shares(barriers, memory), temperatures_for(barriers)
        )
        assert ((placed > 0) & (placed < 0.1)).sum() >= fewest


class Clock(Frozen):
    """The state of a chain is the number of transitions that it has made; all betas are alike."""

    def log_f(self, state, beta):
        return torch.zeros_like(state)

    def transition(self, state, beta, generator):
        return state + 1


@pytest.mark.parametrize(("replicas", "times"), [(1, 1), (8, 8), (80, 35)])
def test_replicas_begin_with_the_chains_of_different_times(replicas, times):
    """Replicas that begin with chains of one time share an error that their differences hide."""
    run = TemperingRun(Clock(), Plan(4_000, None, replicas, 100), seeded_generator(0))
    while not run.in_main_round:
        steps_before = run.spent
        num_chains = run.replicas.num_chains
        run.advance(lambda _: None)
    last_round = (run.spent - steps_before) / num_chains
    began = run.replicas.state[run.replicas.chain_at]
    assert began.shape[0] == replicas
    assert (began == began[:, :1]).all()
    assert len(began[:, 0].unique()) == times
    assert began[0, 0] == began.max()
    assert began.max() - began.min() == pytest.approx(last_round * (1 - 1 / times), abs=3)


def test_pilots_make_rejections_alike():
    path = BaseRatePath(random_rbm(20, 10, seed=3, scale=0.8))
    estimate = parallel_tempering(path, 20_000, seeded_generator(1), num_replicas=20, check=False)
    rates = estimate.rejection_rates
    assert estimate.barrier > 1
    assert rates.max() < 1.5 * rates.min()


def test_error_of_a_series_with_memory():
    """An autoregressive process: the variance of its mean is white noise's over (1 - a)^2."""
    errors = []
    for seed in range(20):
        noise = torch.randn(2_000, 3, dtype=torch.float64, generator=seeded_generator(seed))
        series = torch.zeros_like(noise)
        a = 0.9
        for step in range(1, len(noise)):
            series[step] = a * series[step - 1] + noise[step]
        errors.append(mean_error(series)[0])
    right = 1 / (1 - 0.9) / math.sqrt(noise.numel())
    assert 0.9 * right < sum(errors) / len(errors) < 1.5 * right
    assert mean_error(torch.zeros(3, 2).double()) == (math.inf, 1.0)


def test_error_of_a_mean_over_batches_that_are_alike():
    """Chains hardly longer than their memory: the longest batches are still alike.

    Without regard to that, the error is a quarter too small.
    """
    generator = seeded_generator(1)
    steps = []
    correlation = 0.9
    values = torch.randn(1_000, 2, generator=generator, dtype=torch.float64)
    for _ in range(100):
        fresh = torch.randn(1_000, 2, generator=generator, dtype=torch.float64)
        values = correlation * values + math.sqrt(1 - correlation**2) * fresh
        steps.append(values)
    series = torch.stack(steps, 1)
    stated = torch.tensor([mean_error(one)[0] for one in series])
    # a scatter of 1,000 is known to 2 %
    ratio = stated.square().mean().sqrt().item() / series.mean((1, 2)).std().item()
    assert 0.95 < ratio < 1.25


class Ends:
    """A record of one link whose ends are the same: only the corrections make noise."""

    def __init__(self, steps, replicas):
        self.zeros = torch.zeros(steps, replicas, 1, dtype=torch.float64)

    def links(self, first):
        return self.zeros[first:], self.zeros[first:]


@pytest.mark.parametrize("every", [1, 5, 20])
def test_noise_of_the_corrections_is_part_of_the_error(every):
    """Corrections are taken at some steps only, and their mean is as uncertain as their number."""
    steps = list(range(0, 400, every))
    replicas = 4
    spread = 0.3
    generator = seeded_generator(2)
    stated = []
    totals = []
    for _ in range(400):
        noise = torch.randn(len(steps), 2, replicas, generator=generator, dtype=torch.float64)
        log_ratios, series = _joined_estimate(Ends(400, replicas), steps, spread * noise, 0)
        stated.append(series.mean(1).std().item() / math.sqrt(400))
        totals.append(log_ratios[-1].item())
    ratio = torch.tensor(stated).square().mean().sqrt() / torch.tensor(totals).std()
    # a scatter of 400 is known to 3.5 %
    assert ratio.item() == pytest.approx(1, abs=0.15)


def test_share_of_steps_with_a_chain_from_the_start():
    start = torch.tensor([[0, 3], [0, 4], [1, 4], [2, 3]])
    target = torch.tensor([[2, 5], [1, 3], [0, 3], [1, 4]])
    ends = torch.stack([start, target], 2)
    record = Record(torch.zeros(2), torch.zeros(4, 2, 2, 2), ends)
    # chains 0 and 1 were at the start at steps 0 and 2; chains 3 and 4 at steps 0 and 1
    assert record.share_from_start() == 5 / 8
    assert record.share_from_start(first=2) == 1
    assert Record(record.betas, record.log_ratios[:1], ends[:1]).share_from_start() == 0


def test_error_of_a_run_whose_chains_at_the_target_have_not_been_at_the_start(monkeypatch):
    path = BaseRatePath(random_rbm(4, 3, seed=21))
    errors = []
    for share in (1.0, 0.25, 0.0):
        monkeypatch.setattr(Record, "share_from_start", lambda self, first, share=share: share)
        estimate = parallel_tempering(path, 2_000, seeded_generator(1), check=False)
        errors.append(estimate.std_error)
    assert errors == [errors[0], 2 * errors[0], math.inf]
    assert "too few steps to tell an error" in estimate.warnings[0]
    assert estimate.interval(0.95) == (-math.inf, math.inf)


def test_burn_in_is_left_out():
    series = torch.randn(1_000, dtype=torch.float64, generator=seeded_generator(0))
    assert equilibration(series) <= 250
    series[:200] += 5
    assert equilibration(series) == 200
    assert equilibration(torch.zeros(1)) == 0


def doubts_of(ends, log_ratios, series, std_error=0.01, freedom=50.0, chain_steps=3_000):
    betas = torch.linspace(0, 1, log_ratios.shape[3], dtype=torch.float64)
    record = Record(betas, log_ratios, ends)
    rates = record.rejection_rates()
    trips = record.round_trips()
    return doubts.find_tempering_warnings(
        record, rates, trips, series, std_error, freedom, chain_steps
    )


def test_warnings():
    steps = 100
    replicas = 4
    coming_and_going = torch.arange(steps) % 2
    ends = torch.stack([coming_and_going, 1 - coming_and_going], 1)
    ends = ends[:, None].expand(-1, replicas, -1).int()
    ratios = torch.zeros(steps, 2, replicas, 3, dtype=torch.float64)
    series = torch.zeros(steps, replicas, dtype=torch.float64)
    assert doubts_of(ends, ratios, series) == ()

    (short,) = doubts_of(ends, ratios, series, chain_steps=1_000)
    assert "With 1,000 chain-steps, narrow intervals often miss ln Z" in short
    (few,) = doubts_of(ends[:3], ratios, series)
    assert "made 4 round trips" in few
    far = ratios.clone()
    far[:, 1] = -9
    (rejected,) = doubts_of(ends, far, series)
    assert "between beta = 0.500 and 1.000 were rejected (100%)" in rejected
    stuck = ends.clone()
    stuck[40:, 0] = torch.tensor([0, 1], dtype=torch.int32)
    (stays,) = doubts_of(stuck, ratios, series)
    assert "One chain stayed at the target for 60 of 100 steps" in stays
    apart = series + torch.tensor([-0.1, 0.1, 0.1, -0.1])
    (disagree,) = doubts_of(ends, ratios, apart)
    assert "Replicas disagree" in disagree
    drifting = series.clone()
    drifting[:50] = -0.05
    drifting[50:] = 0.05
    (drifted,) = doubts_of(ends, ratios, drifting)
    assert "have not equilibrated" in drifted
    assert doubts_of(ends, ratios, drifting, std_error=0.05) == ()
    (large,) = doubts_of(ends, ratios, series, std_error=0.6)
    assert "error is large, 0.6 nats" in large
    (unknown,) = doubts_of(ends, ratios, series, std_error=math.inf)
    assert "too few steps to tell" in unknown
    for sentence in (few, rejected, stays, disagree, drifted, large, unknown):
        assert "Use more chain_steps" in sentence


def test_a_proven_bound_is_compared_with(monkeypatch):
    walk = base_rates()
    path = walk.path
    truth = walk.truth
    monkeypatch.setattr(BaseRatePath, "log_z_lower_bound", lambda self, units: truth + 5)
    estimate = parallel_tempering(path, 1_500, seeded_generator(0), num_replicas=10)
    assert estimate.lower_bound == truth + 5
    assert any("too low by at least" in warning for warning in estimate.warnings)
    assert parallel_tempering(path, 1_500, seeded_generator(0), check=False).lower_bound is None


def test_a_model_that_is_its_start_is_exact():
    rbm = RBM(torch.zeros(3, 2).double(), torch.zeros(3).double(), torch.zeros(2).double())
    estimate = parallel_tempering(BaseRatePath(rbm), 1_000, seeded_generator(0), num_replicas=10)
    assert estimate.log_z == pytest.approx(5 * math.log(2), abs=1e-9)
    assert estimate.std_error == pytest.approx(0, abs=1e-9)
    assert repr(estimate).startswith("TemperingEstimate(log_z = 3.47 +- 0.00 nats")


def test_log_z_at_every_temperature_is_that_of_enumeration():
    walk = base_rates()
    path = walk.path
    truth = walk.truth
    betas = [0, 0.3, 0.7, 1]
    estimate = parallel_tempering(path, 60_000, seeded_generator(2), betas=betas)
    assert estimate.betas.tolist() == betas
    exact = [walk.log_f(beta).logsumexp(0).item() for beta in betas]
    assert exact[-1] == pytest.approx(truth)
    assert estimate.log_z_at_betas.tolist() == pytest.approx(exact, abs=5 * estimate.std_error)
    # so that each temperature is told from its neighbours
    steps = [abs(high - low) for low, high in itertools.pairwise(exact)]
    assert min(steps) > 10 * estimate.std_error


@pytest.mark.parametrize(
    ("chain_steps", "num_temperatures", "replicas"),
    [(10_000, 24, 2), (100_000, 23, 4), (100_000, 5, 18), (1_000_000, 25, 4), (10**8, 25, 4)],
)
def test_replicas_grow_with_the_budget_until_there_are_a_hundred_chains(
    chain_steps, num_temperatures, replicas
):
    assert Plan(chain_steps, None, None, 1_000).replicas_for(num_temperatures) == replicas
    assert Plan(chain_steps, None, 7, 1_000).replicas_for(num_temperatures) == 7


def test_systematic_resampling_takes_each_chain_as_often_as_its_share_demands():
    shares = torch.tensor([0.45, 0.3, 0.2, 0.05, 0.0], dtype=torch.float64)
    index = systematic(shares.log().repeat(2_000, 1), seeded_generator(7))
    counts = torch.stack([(index == chain).sum(1) for chain in range(5)], 1).double()
    expected = 5 * shares
    assert ((counts >= expected.floor()) & (counts <= expected.ceil())).all()
    # a count is one of two neighbouring numbers: its standard deviation is at most a half
    assert ((counts.mean(0) - expected).abs() < 4 * 0.5 / math.sqrt(2_000)).all()


def test_every_population_is_resampled_by_its_own_weights():
    log_weights = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, -50.0, -50.0, -50.0]]).double()
    index = systematic(log_weights, seeded_generator(8))
    assert index.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]


def test_a_short_run_shows_no_bar(capsys):
    parallel_tempering(BaseRatePath(random_rbm(5, 4, 1)), 1_000, 1, progress=True, check=False)
    assert capsys.readouterr() == ("", "")
