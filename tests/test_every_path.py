"""What holds for every annealing path on every backend, against enumeration.

Densities, transitions, and AIS and RAISE along it.
"""

import itertools
import math
import pickle

import pytest
import torch
from enumeration import assert_rates
from every_draw import EveryDraw
from walks import BETAS, EVERY_WALK, EVERY_WALK_BACK, FLOAT64, base_rates

from paperlib.annealing import uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais, raise_log_prob

UNEVEN = [0.0, 0.4, 1.0]


# What is sampled shows that the generators' own numbers do what every draw together has been shown
# to do: the tests of every draw are exact, on each backend. More chains would show the same with a
# smaller error, and take most of this file's time.


def one_each(betas, walk, repeats=1):
    """These inverse temperatures in turn, one for each state."""
    each = list(itertools.islice(itertools.cycle(betas), len(walk.states)))
    each = torch.tensor(each, dtype=torch.float64)
    return each.repeat_interleave(repeats).to(walk.path.device)


# ---- the path


@EVERY_WALK
def test_densities_are_the_enumerated_ones_of_the_models_that_are_walked(make, backend):
    """At one beta, between any two, and in a batch with every state at every pair of them."""
    walk = make(backend)
    path = walk.path
    state = walk.state()
    close = {"rtol": 0, "atol": walk.tolerance}
    log_f = {beta: walk.log_f(beta) for beta in BETAS}
    pairs = list(itertools.product(BETAS, repeat=2))
    ratios = [log_f[high] - log_f[low] for low, high in pairs]
    for beta, expected in log_f.items():
        torch.testing.assert_close(path.log_f(state, beta).cpu(), expected, **close)
    for (low, high), expected in zip(pairs, ratios, strict=True):
        torch.testing.assert_close(path.log_ratio(state, low, high).cpu(), expected, **close)
    state = path.state_at(walk.states.repeat(len(pairs), 1).to(path.device))
    low, high = (
        torch.tensor(betas, dtype=torch.float64).repeat_interleave(len(walk.states)).to(path.device)
        for betas in zip(*pairs, strict=True)
    )
    expected = torch.cat([log_f[beta] for beta, _ in pairs])
    torch.testing.assert_close(path.log_f(state, low).cpu(), expected, **close)
    torch.testing.assert_close(path.log_ratio(state, low, high).cpu(), torch.cat(ratios), **close)


@EVERY_WALK
def test_ends_are_corrected_to_the_start_and_to_the_model_itself(make, backend):
    walk = make(backend)
    path = walk.path
    close = {"rtol": 0, "atol": walk.tolerance}
    totals = []
    for end, log_p in ((0, walk.log_start), (1, walk.log_target.log_softmax(0))):
        log_f = walk.log_f(float(end))
        corrected = log_f + torch.as_tensor(path.end_correction(walk.state(), end)).cpu()
        torch.testing.assert_close(corrected.log_softmax(0), log_p, **close)
        # what is called coarse must be visibly so, wherever weights are rounded
        visible = bool((log_f.log_softmax(0) - log_p).abs().max() > 0.05)
        assert visible == (backend.coarse and end in walk.rounded)
        totals.append(corrected.logsumexp(0).item())
    if path.log_z_start is not None:
        assert totals[0] == pytest.approx(path.log_z_start, abs=walk.tolerance)
    # a factor of 2 for each hidden unit without weights, of which there may be more at one end: the
    # slip of section 3.2
    log_z = totals[1] - totals[0] + (path.log_z_start or 0.0)
    assert log_z == pytest.approx(walk.truth, abs=walk.tolerance)
    if hasattr(path, "log_start"):
        log_start = path.log_start(walk.states.to(path.device)).cpu()
        torch.testing.assert_close(log_start, walk.log_start, **close)


@EVERY_WALK
@pytest.mark.parametrize("beta", BETAS)
def test_enumerated_kernel_leaves_p_beta_invariant_and_balances_in_detail(make, beta):
    """So that what follows is compared with what it should be."""
    walk = make()
    kernel = walk.kernel(beta)
    p = walk.log_f(beta).softmax(0)
    torch.testing.assert_close(kernel.sum(1), torch.ones_like(p), rtol=0, atol=1e-12)
    torch.testing.assert_close(p @ kernel, p, rtol=0, atol=1e-12)
    flow = p[:, None] * kernel
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-12)
    assert walk.path.reversible


@EVERY_WALK
@pytest.mark.parametrize("betas", [[0.0], [0.3], [1.0], BETAS], ids=["0", "0.3", "1", "each"])
def test_every_draw_of_a_transition_makes_up_the_enumerated_kernel(
    make, betas, backend, monkeypatch
):
    walk = make(backend)
    size = len(walk.states)
    outcomes = 2**walk.step_bits
    kernels = [walk.kernel(beta) for beta in betas]
    expected = torch.stack([kernels[n % len(betas)][n] for n in range(size)])
    beta = betas[0] if len(betas) == 1 else one_each(betas, walk, outcomes)
    state = walk.state(outcomes)
    for _ in range(2):
        draws = EveryDraw(walk.step_bits, copies=size)
        draws.replace_draws(monkeypatch)
        moved = walk.path.transition(state, beta, backend.generator(0))
        numbers = walk.numbers(walk.path.units(moved)).view(size, -1)
        rates = torch.zeros_like(expected).scatter_add_(1, numbers, draws.log_probs.exp())
        torch.testing.assert_close(rates, expected, rtol=0, atol=backend.tolerance)
        # what is remembered of the new units is true of them
        fresh = walk.path.state_at(walk.path.units(moved))
        for later in BETAS:
            log_f = walk.path.log_f(moved, later)
            truth = walk.path.log_f(fresh, later)
            torch.testing.assert_close(log_f, truth, rtol=0, atol=walk.tolerance)
        # once more, with the memory of what has been multiplied
        if hasattr(moved, "memory"):
            state = walk.path.state_at(
                walk.states.repeat_interleave(outcomes, 0).to(walk.path.device), moved
            )


@EVERY_WALK
@pytest.mark.parametrize("betas", [[0.7], [0.2, 0.9]], ids=["one beta", "two betas"])
def test_sampled_transitions_follow_the_enumerated_kernel(make, betas, backend):
    walk = make(backend)
    count = 4_000
    # in turn, so that chains of a temperature do not stand together
    each = torch.tensor(betas, dtype=torch.float64).repeat(count * len(walk.states))
    beta = betas[0] if len(betas) == 1 else each.to(walk.path.device)
    state = walk.state(count * len(betas))
    moved = walk.path.reverse_transition(state, beta, backend.generator(5))
    numbers = walk.numbers(walk.path.units(moved)).view(len(walk.states), count, -1)
    for part, beta in enumerate(betas):
        kernel = walk.kernel(beta)
        rates = torch.zeros_like(kernel)
        rates.scatter_add_(1, numbers[..., part], torch.full(numbers.shape[:2], 1 / count).double())
        # 256 comparisons, and 1/count where the normal approximation is poor: one failure in 5,000,
        # and the seeds are fixed
        assert_rates(rates, kernel, count, errors=5, slack=1 / count)


@EVERY_WALK
def test_draws_of_the_start_follow_its_distribution(make, backend):
    walk = make(backend)
    count = 20_000
    rates = walk.frequencies(walk.path.units(walk.path.sample_start(count, backend.generator(3))))
    # 16 comparisons in each of some hundred cases: beyond 5 standard errors with probability 1e-3
    # in all, and the seed is fixed
    assert_rates(rates, walk.log_start.exp(), count, errors=5, slack=1 / count)


@EVERY_WALK
def test_chosen_and_joined_chains_go_on_as_they_would_have(make, backend):
    walk = make(backend)
    path = walk.path
    betas = one_each(BETAS, walk)
    state = path.transition(walk.state(), betas, backend.generator(1))
    index = torch.tensor([3, 3, 0]).to(path.device)
    joined = path.concatenate([state, path.select(state, index)])
    order = torch.cat([torch.arange(len(walk.states)), torch.tensor([3, 3, 0])]).to(path.device)
    assert torch.equal(path.units(joined), path.units(state)[order])
    fresh = path.state_at(path.units(joined))
    one = path.transition(joined, betas[order], backend.generator(2))
    other = path.transition(fresh, betas[order], backend.generator(2))
    assert torch.equal(path.units(one), path.units(other))
    log_f = path.log_f(joined, betas[order])
    expected = path.log_f(state, betas)[order]
    torch.testing.assert_close(log_f, expected, rtol=0, atol=walk.tolerance)


@EVERY_WALK
def test_parts_of_a_state_draw_what_they_would_have_together(make, backend):
    """A path whose draws depend on more than a chain's place has no parts."""
    path = make(backend).path
    state = path.sample_start(400, backend.generator(1))
    parts = path.divide(state, 2)
    if parts:
        whole = path.transition(state, 0.5, backend.generator(2))
        moved = [(i, path.transition(part, 0.5, backend.generator(2))) for i, part in parts]
        assert torch.equal(path.units(path.join(moved)), path.units(whole))


@EVERY_WALK_BACK
def test_a_path_travels(make, backend):
    if backend.on_gpu:
        pytest.skip("nothing of it can be pickled")
    path = make(backend).path
    for again in (pickle.loads(pickle.dumps(path)), path.to("cpu")):
        assert again is not path
        assert type(again) is type(path)
        assert again.checksum() == path.checksum()
        assert again.log_z_start == path.log_z_start
        assert again.uniform_start == path.uniform_start is False
        drawn = [ais(each, UNEVEN, 50, backend.generator(1)) for each in (path, again)]
        assert torch.equal(drawn[0].log_weights, drawn[1].log_weights)
    assert path.checksum() != make(backend, 3, 2).path.checksum()


@EVERY_WALK
def test_what_is_no_state_and_no_beta_is_refused(make):
    path = make().path
    state = make().state()
    plain = base_rates().state()
    # of a path of the same kind with fewer units, and of another kind with as many
    others = [make(FLOAT64, 3, 2).state(), plain if type(plain) is not type(state) else "warm"]
    width = path.units(state).shape[1]
    for call, message in (
        (lambda: path.state_at(torch.full((2, width), 0.5)), "v: expected only 0 and 1"),
        (lambda: path.state_at(torch.full((2, width), math.nan)), "v: expected only 0 and 1"),
        (lambda: path.state_at(torch.zeros(2, width + 1)), r"v: expected shape \[any, \d"),
        (lambda: path.state_at(torch.zeros(width)), r"v: expected shape \[any, \d"),
        (lambda: path.state_at(torch.zeros(0, width)), r"v: expected shape \[any, \d"),
        (
            lambda: path.transition("warm", 0.5, FLOAT64.generator(0)),
            "state: expected a .*, got str",
        ),
        (
            lambda: path.log_f(state, torch.zeros(2)),
            r"beta: expected a number, or one for each of 16 chains",
        ),
        (
            lambda: path.log_f(state, torch.zeros(16, 1)),
            r"beta: expected a number, or one for each of 16 chains",
        ),
        (lambda: path.log_f(state, "warm"), "beta: expected a number or a tensor, got str"),
        (lambda: path.log_ratio(state, 0.1, torch.zeros(2)), "beta: expected a number, or one"),
        (
            lambda: path.transition(state, torch.zeros(2), FLOAT64.generator(0)),
            "beta: expected a number, or one",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call()
    for other in others:
        with pytest.raises(
            InputError, match=r"state: expected (a .*State of this path|. units with)"
        ):
            path.log_f(other, 0.5)
        with pytest.raises(InputError, match="state: expected"):
            path.transition(other, 0.5, FLOAT64.generator(0))


# ---- AIS


@EVERY_WALK
def test_every_draw_of_ais_makes_up_the_models_own_partition_function(make, backend, monkeypatch):
    """Two steps, all that can be drawn in them: E[w] of the code as it stands, exactly."""
    walk = make(backend, 3, 2)
    draws = EveryDraw(walk.start_bits + 2 * walk.step_bits)
    draws.replace_draws(monkeypatch)
    estimate = ais(walk.path, UNEVEN, draws.outcomes, backend.generator(0), check=False)
    log_weights = estimate.log_weights.cpu()
    log_mean = torch.logsumexp(log_weights + draws.log_probs[0], 0).item()
    assert log_mean == pytest.approx(walk.truth, abs=walk.tolerance)
    # the weights do differ
    assert log_weights.std() > 0.1


def check_ais(walk, num_steps, backend):
    """Mean and spread of the weights, and the final states, by products of transition matrices."""
    betas = uniform_betas(num_steps).tolist()
    count = 8_000
    mean, square, cube, fourth = walk.weights(betas)
    log_mean = mean.log().item() + (walk.path.log_z_start or 0.0)
    assert log_mean == pytest.approx(walk.truth, abs=walk.tolerance)  # unbiased for every K
    estimate = ais(walk.path, betas, count, backend.generator(num_steps), check=False)
    ratio = (estimate.log_weights.cpu() - walk.truth).exp()
    variance = square / mean**2 - 1
    # some hundred cases: beyond 4 standard errors with probability 8e-3 in all, and the seeds are
    # fixed
    assert abs(ratio.mean() - 1) < 4 * (variance / count).sqrt()
    central = fourth / mean**4 - 4 * cube / mean**3 + 6 * square / mean**2 - 3
    error = (central / variance**2 - 1).sqrt().item() / 2 / math.sqrt(count)
    assert estimate.relative_std == pytest.approx((variance / count).sqrt().item(), rel=5 * error)
    p = walk.log_start.exp()
    for beta in betas[1:]:
        p = p @ walk.kernel(beta)
    assert_rates(walk.frequencies(estimate.final_states), p, count, errors=5, slack=1 / count)


@EVERY_WALK
@pytest.mark.parametrize("num_steps", [1, 2, 20])
def test_weights_of_ais_have_the_enumerated_mean_and_spread(make, num_steps):
    check_ais(make(), num_steps, FLOAT64)


@EVERY_WALK
def test_weights_of_ais_have_them_on_every_backend(make, backend):
    check_ais(make(backend), 5, backend)


# ---- RAISE


@EVERY_WALK_BACK
def test_every_draw_of_raise_makes_up_the_annealing_model(make, backend, monkeypatch):
    """Over all that can be drawn in two steps, E[w] of the code is p_ann, a distribution, exactly.

    It is that of what the path really walks. The models themselves do not come in.
    """
    walk = make(backend, 3, 2)
    bits = walk.begin_bits(2) + 2 * walk.step_bits
    draws = EveryDraw(bits, copies=len(walk.vectors))
    draws.replace_draws(monkeypatch)
    v = walk.vectors
    estimate = raise_log_prob(walk.path, v, UNEVEN, draws.outcomes, backend.generator(0))
    log_weights = estimate.log_weights.cpu()
    means = torch.logsumexp(log_weights + draws.log_probs, 1).exp()
    torch.testing.assert_close(means, walk.annealing_model(UNEVEN), rtol=2 * walk.tolerance, atol=0)
    assert means.sum().item() == pytest.approx(1, abs=walk.tolerance)
    assert (log_weights.std(1) > 0.05).all()


def check_raise(walk, num_steps, chains, backend, seed):
    betas = uniform_betas(num_steps).tolist()
    v = walk.vectors
    estimate = raise_log_prob(walk.path, v, betas, chains, backend.generator(seed))
    log_weights = estimate.log_weights.cpu()
    truth = walk.annealing_model(betas)
    weights = log_weights.exp()
    error = weights.std(1) / math.sqrt(chains)
    # 8 or 16 vectors in each of some hundred cases: beyond 4 standard errors with probability 0.09
    # in all, and the seeds are fixed
    assert ((weights.mean(1) - truth).abs() < 4 * error).all()
    assert abs(weights.mean(1).sum() - 1) < 4 * error.square().sum().sqrt()
    # on average the logarithm errs low
    assert (log_weights.mean(1) < truth.log()).all()


@EVERY_WALK_BACK
@pytest.mark.parametrize("num_steps", [1, 2, 20])
def test_mean_weight_of_raise_is_the_probability_under_the_annealing_model(make, num_steps):
    check_raise(make(), num_steps, 4_000, FLOAT64, num_steps)


@EVERY_WALK_BACK
def test_mean_weight_of_raise_is_that_probability_on_every_backend(make, backend):
    check_raise(make(backend), 6, 2_000, backend, 7)


def test_blocks_may_begin_and_end_within_the_chains_of_a_vector(monkeypatch):
    monkeypatch.setattr("paperlib.kernels.blocks._NARROW_CHAINS", 37)
    check_raise(base_rates(), 5, 1_000, FLOAT64, 2)
