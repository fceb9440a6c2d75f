"""Finite Markov chains, Metropolis-Hastings, Gibbs updates, diagnostics and belief propagation."""

import itertools
import math

import pytest
import torch
from enumeration import all_states, assert_rates, bernoulli_table, joint_log_table, normal
from players import ring

from paperlib.mcmc import (
    MarkovChain,
    acceptance_matrix,
    autocorrelation,
    autocorrelation_time,
    gibbs_sweep,
    gibbs_update,
    loopy_belief_propagation,
    metropolis_hastings_chain,
    metropolis_samples,
    total_variation,
)
from paperlib.numerics import seeded_generator


def random_chain(states, seed):
    return MarkovChain(normal(states, states, seed=seed).softmax(1))


def close(actual, expected, atol=1e-12):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol, check_dtype=False)


# ---- what a transition matrix says


def pattern_chain(pattern):
    """Equal probabilities along the edges of a 0/1 matrix."""
    pattern = torch.tensor(pattern, dtype=torch.float64)
    return MarkovChain(pattern / pattern.sum(1, keepdim=True))


def all_patterns(states):
    """Every graph on a few states in which each has a way out."""
    rows = [row for row in itertools.product((0, 1), repeat=states) if any(row)]
    return [list(pattern) for pattern in itertools.product(rows, repeat=states)]


@pytest.mark.parametrize("states", [1, 2, 3])
def test_properties_of_every_small_graph_equal_their_definitions(states):
    for pattern in all_patterns(states):
        check_properties(pattern_chain(pattern), states)


def check_properties(chain, states, long=40):
    powers = [torch.linalg.matrix_power(chain.transition, n) for n in range(1, long + 1)]
    reached = sum(power > 0 for power in powers) > 0
    assert chain.is_irreducible == bool(reached.all())
    periods = [
        math.gcd(*(n for n, power in enumerate(powers, 1) if power[x, x] > 0))
        for x in range(states)
    ]
    assert chain.periods.tolist() == periods
    # Every step of a class that can be left leaves it sooner or later: on 3 states within 3 steps
    # with at least (1/3)^3.
    returns = first_return_probs(chain, 600).sum(0)
    assert chain.recurrent.tolist() == [bool(total > 1 - 1e-6) for total in returns]
    together = reached & reached.T | torch.eye(states, dtype=torch.bool)
    assert torch.equal(chain.classes[:, None] == chain.classes, together)
    assert chain.is_recurrent == bool(chain.recurrent.all())
    assert chain.is_ergodic == (chain.is_recurrent and set(periods) == {1})
    stationary_distributions = (chain.eigenvalues - 1).abs().lt(1e-6).sum().item()
    if stationary_distributions == 1:
        close(chain.stationary @ chain.transition, chain.stationary)
        assert math.isclose(chain.stationary.sum().item(), 1)
    else:
        with pytest.raises(ValueError, match=f"got {stationary_distributions} classes"):
            _ = chain.stationary


def test_periods_of_rings():
    assert set(ring(6).periods.tolist()) == {2}
    assert set(ring(5).periods.tolist()) == {1}
    assert set(ring(6, forward=1.0).periods.tolist()) == {6}
    assert ring(6, stay=0.1).is_aperiodic


def first_return_probs(chain, steps):
    """Probability that the first return takes exactly n steps, [steps, S]; row 0 is for n = 1."""
    # Row x: the distribution of chains that began in x and have not been back yet.
    away = chain.transition
    returned = []
    for _ in range(steps):
        returned.append(away.diagonal())
        away = away.clone().fill_diagonal_(0) @ chain.transition
    return torch.stack(returned)


def test_mean_return_time_is_the_inverse_of_the_stationary_probability():
    chain = random_chain(5, seed=1)
    returns = first_return_probs(chain, 2_000)
    times = torch.arange(1, 2_001, dtype=torch.float64) @ returns
    close(returns.sum(0), torch.ones(5))
    close(times, 1 / chain.stationary, atol=1e-9)


def test_rate_of_two_states_and_of_a_ring():
    a = 0.3
    b = 0.25
    assert math.isclose(MarkovChain([[1 - a, a], [b, 1 - b]]).convergence_rate, 1 - a - b)
    # eigenvalues of a ring: stay + (1 - stay) cos(2 pi k / S)
    expected = 0.2 + 0.8 * math.cos(2 * math.pi / 7)
    assert math.isclose(ring(7, stay=0.2).convergence_rate, expected)
    assert MarkovChain([[1.0]]).convergence_rate == 0


def test_distributions_and_distances():
    chain = random_chain(4, seed=3)
    start = torch.tensor([0.0, 1.0, 0.0, 0.0])
    rows = chain.distributions(start, 3)
    for t, row in enumerate(rows):
        close(row, torch.linalg.matrix_power(chain.transition, t)[1])
    # the largest difference over all events, by trying all of them
    events = all_states(4)
    largest = (events @ (rows[1] - chain.stationary)).abs().max()
    close(total_variation(rows[1], chain.stationary), largest)


def test_flow_is_symmetric_for_a_reversible_chain_only():
    turning = ring(5, forward=0.9)
    close(turning.stationary, torch.full((5,), 0.2, dtype=torch.float64))
    flow = turning.flow(turning.stationary)
    assert (flow - flow.T).abs().max() > 0.1
    close(flow, turning.transition / 5)


def test_then_applies_this_chain_first():
    to_one = MarkovChain([[0.0, 1.0], [0.0, 1.0]])
    swap = MarkovChain([[0.0, 1.0], [1.0, 0.0]])
    close(to_one.then(swap).transition, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_variance_of_a_mean_equals_the_sum_over_all_paths():
    chain = random_chain(3, seed=4)
    values = normal(3, seed=5)
    count = 4
    mean = 0.0
    square = 0.0
    for path in itertools.product(range(3), repeat=count):
        probability = chain.stationary[path[0]]
        for x, following in itertools.pairwise(path):
            probability = probability * chain.transition[x, following]
        average = values[list(path)].mean()
        mean = mean + probability * average
        square = square + probability * average**2
    assert math.isclose(chain.variance_of_mean(values, count), square - mean**2, rel_tol=1e-12)
    assert math.isclose(
        chain.variance_of_mean(values, 1), chain.autocovariance(values, 0).item(), rel_tol=1e-12
    )


def test_sampled_steps_have_the_transition_probabilities():
    chain = random_chain(5, seed=6)
    count = 100_000
    path = chain.sample(torch.full((count,), 2), 2, seeded_generator(0))
    assert path.shape == (3, count)
    assert path[0].unique().tolist() == [2]
    expected = chain.distributions(torch.eye(5, dtype=torch.float64)[2], 2)
    for t in (1, 2):
        # ten comparisons fail together in fewer than 1 of 10,000 suites of seeds
        rates = torch.bincount(path[t], minlength=5) / count
        assert_rates(rates, expected[t], count, errors=4.5)


def test_sampling_never_takes_a_step_of_probability_zero():
    path = ring(6, forward=1.0).sample(torch.arange(6), 30, seeded_generator(1))
    assert torch.equal(path, (torch.arange(6) + torch.arange(31)[:, None]) % 6)


# ---- Metropolis-Hastings and Gibbs


@pytest.mark.parametrize("seed", [0, 1])
def test_metropolis_hastings_keeps_its_target_in_detailed_balance(seed):
    log_target = 3 * normal(6, seed=seed)
    proposal = random_chain(6, seed=seed + 10)
    chain = metropolis_hastings_chain(log_target, proposal)
    flow = chain.flow(log_target.softmax(0))
    close(flow, flow.T)
    close(chain.stationary, log_target.softmax(0))
    # entry by entry, from the rule as it is printed
    p = log_target.softmax(0)
    q = proposal.transition
    for x, following in itertools.permutations(range(6), 2):
        rule = min(1, (p[following] * q[following, x] / (p[x] * q[x, following])).item())
        assert math.isclose(
            chain.transition[x, following].item(), q[x, following].item() * rule, rel_tol=1e-12
        )


def test_the_targets_constant_does_not_matter():
    log_target = normal(5, seed=0)
    proposal = random_chain(5, seed=1)
    close(acceptance_matrix(log_target + 1_000, proposal), acceptance_matrix(log_target, proposal))


def test_proposals_without_a_way_back_are_never_accepted():
    one_way = MarkovChain([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    chain = metropolis_hastings_chain(torch.zeros(3), one_way)
    close(chain.transition, torch.eye(3))


def test_metropolis_samples_follow_the_exact_chain():
    log_target = normal(5, seed=3)
    count = 100_000
    chain = metropolis_hastings_chain(log_target, ring(5))

    def propose(states, generator):
        return (states + 2 * torch.randint(2, states.shape, generator=generator) - 1) % 5

    starts = torch.zeros(count, 1, dtype=torch.float64)
    states, rate = metropolis_samples(
        lambda x: log_target[x[:, 0].long()], propose, starts, 3, seeded_generator(2)
    )
    assert states.shape == (3, count, 1)
    expected = chain.distributions(torch.eye(5, dtype=torch.float64)[0], 3)[1:]
    for row, states_now in zip(expected, states, strict=True):
        # fifteen comparisons
        rates = torch.bincount(states_now[:, 0].long(), minlength=5) / count
        assert_rates(rates, row, count, errors=4.5)
    accepts = (ring(5).transition * acceptance_matrix(log_target, ring(5))).sum(1)
    before = chain.distributions(torch.eye(5, dtype=torch.float64)[0], 2)
    # each step's acceptance is a coin: standard error of the mean of 3 * count of them, 4.5 times
    assert abs(rate - (before @ accepts).mean().item()) < 4.5 * 0.5 / math.sqrt(3 * count)


@pytest.mark.parametrize("block", [[0], [2], [0, 3], [1, 2, 3], [0, 1, 2, 3], []])
def test_gibbs_update_is_the_conditional_distribution(block):
    log_target = normal(16, seed=4)
    p = log_target.softmax(0)
    states = all_states(4)
    chain = gibbs_update(log_target, block)
    for x, following in itertools.product(range(16), repeat=2):
        outside = [unit for unit in range(4) if unit not in block]
        alike = (states[:, outside] == states[x, outside]).all(1)
        expected = p[following] / p[alike].sum() if alike[following] else 0.0
        assert math.isclose(chain.transition[x, following], expected, abs_tol=1e-15)
    flow = chain.flow(p)
    close(flow, flow.T)
    # as a Metropolis-Hastings proposal it would always be accepted
    accepted = acceptance_matrix(log_target, chain)[chain.transition > 0]
    close(accepted, torch.ones_like(accepted))


def test_layer_by_layer_sweep_of_an_rbm_is_its_block_gibbs_chain(tiny_rbm):
    table = joint_log_table(tiny_rbm)  # [2^5, 2^4]
    hidden = range(5, 9)
    visible = range(5)
    chain = gibbs_sweep(table.flatten(), [hidden, visible])
    close(chain.stationary, table.flatten().softmax(0))
    v = all_states(5)
    h = all_states(4)
    given_v = bernoulli_table(tiny_rbm.hidden_probs(v), h)
    given_h = bernoulli_table(tiny_rbm.visible_probs(h), v)
    # (v, h) -> (v', h'): h' given v, then v' given h'
    expected = torch.einsum("vk,kw->vwk", given_v, given_h)
    expected = expected[:, None].expand(-1, 16, -1, -1).reshape(512, 512)
    close(chain.transition, expected)
    # units of a layer are independent given the other: one by one or all at once is the same chain
    close(
        chain.transition,
        gibbs_sweep(table.flatten(), [[i] for i in (*hidden, *visible)]).transition,
    )


# ---- diagnostics


def two_state_values(correlation, chains, steps, seed):
    """+1 and -1 with autocorrelations `correlation` ** k, in equilibrium."""
    stay = (1 + correlation) / 2
    chain = MarkovChain([[stay, 1 - stay], [1 - stay, stay]])
    starts = torch.randint(2, (chains,), generator=seeded_generator(seed))
    return 2.0 * chain.sample(starts, steps - 1, seeded_generator(seed + 1)).T - 1


def test_autocorrelation_equals_its_definition():
    values = normal(3, 50, seed=7)
    centred = values - values.mean()
    expected = [(centred[:, : 50 - k] * centred[:, k:]).sum() for k in range(50)]
    close(autocorrelation(values), torch.stack(expected) / expected[0])


@pytest.mark.parametrize("correlation", [0.9, 0.5, 0.0, -0.5])
def test_autocorrelation_time_of_a_known_chain(correlation):
    values = two_state_values(correlation, chains=20, steps=20_000, seed=8)
    expected = (1 + correlation) / (1 - correlation)
    # relative standard error about sqrt(4 * window / samples), window about 10 tau: below 4 % for
    # tau = 19; three of these
    assert math.isclose(autocorrelation_time(values), expected, rel_tol=0.12)


def test_chains_that_disagree_are_worth_little():
    stuck = torch.stack([torch.zeros(1_000), torch.ones(1_000)]) + 0.01 * normal(2, 1_000, seed=0)
    assert stuck.numel() / autocorrelation_time(stuck) < 5


# ---- belief propagation


def exact_marginals(couplings, biases):
    states = all_states(len(biases))
    log_p = states @ biases + torch.einsum("ni,ij,nj->n", states, couplings, states) / 2
    return log_p.softmax(0) @ states


def symmetric(pattern, seed):
    couplings = 2 * normal(*pattern.shape, seed=seed) * pattern
    return couplings.triu(1) + couplings.triu(1).T


def tree(units, seed):
    pattern = torch.zeros(units, units, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    for unit in range(1, units):
        pattern[torch.randint(unit, (), generator=generator), unit] = 1
    return symmetric(pattern, seed)


@pytest.mark.parametrize("seed", range(5))
def test_belief_propagation_is_exact_on_trees(seed):
    couplings = tree(8, seed)
    biases = normal(8, seed=seed + 20)
    result = loopy_belief_propagation(couplings, biases, tolerance=1e-13)
    assert result.converged
    assert (
        result.rounds <= 9
    )  # the longest way through eight units, and one round that changes nothing
    close(result.logits.sigmoid(), exact_marginals(couplings, biases))


def test_belief_propagation_on_loops_is_close_for_weak_couplings_but_not_exact():
    couplings = symmetric(torch.ones(6, 6, dtype=torch.float64), 1) / 8
    biases = normal(6, seed=2)
    result = loopy_belief_propagation(couplings, biases)
    error = (result.logits.sigmoid() - exact_marginals(couplings, biases)).abs().max()
    assert result.converged
    assert 1e-6 < error < 1e-2


def test_belief_propagation_says_when_it_has_not_converged():
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    couplings = torch.zeros(4, 4)
    couplings[:2, 2:] = 20 * signs
    couplings += couplings.T.clone()
    result = loopy_belief_propagation(couplings, 0.3 - couplings.sum(0) / 2, max_rounds=200)
    assert not result.converged
    assert (result.rounds, result.residual > 1e-3) == (200, True)
