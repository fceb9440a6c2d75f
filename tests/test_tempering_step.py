"""Steps of annealing and of parallel tempering at once, and side by side in threads.

The same bits as the three calls of a path, one after the other.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial

import pytest
import torch
from enumeration import random_rbm
from interruptions import interrupt_call

from paperlib.annealing import BaseRatePath
from paperlib.errors import InputError
from paperlib.estimators import parallel_tempering
from paperlib.estimators.tempering import run as runs
from paperlib.estimators.tempering.replicas import Replicas
from paperlib.kernels import Ladder, products, sampler
from paperlib.models.files import read_metadata, read_safetensors, write_safetensors
from paperlib.numerics import seeded_generator

SIZES = [(64, 20), (100, 200), (784, 100), (784, 500), (131, 129), (61, 127), (7, 3), (1, 1)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
WIDE = (131, 129)


class ByVerbs(BaseRatePath):
    """Takes its steps by a transition and two log-ratios."""

    def transition(self, state, beta, generator):
        return super().transition(state, beta, generator)


def path_of(size, kind=BaseRatePath, dtype=torch.float32):
    visible, hidden = size
    rbm = random_rbm(visible, hidden, 3, scale=2 / max(size) ** 0.5, dtype=dtype)
    return kind(rbm, torch.linspace(-1.5, 0.5, visible, dtype=dtype))


@pytest.fixture
def side_by_side(monkeypatch):
    """The numbers of parts into which replicas are divided, however few these are."""
    monkeypatch.setattr("paperlib.kernels.blocks._FEWEST_CHAINS", 1)
    counts = []
    divide = Replicas.divide

    def note(replicas, parts):
        divided = divide(replicas, parts)
        counts.append(len(divided))
        return divided

    monkeypatch.setattr(Replicas, "divide", note)
    return counts


def assert_equal(one, two):
    for field in fields(one):
        values = getattr(one, field.name), getattr(two, field.name)
        if isinstance(values[0], torch.Tensor):
            assert torch.equal(*values), field.name
        else:
            assert values[0] == values[1] or values[0] != values[0], field.name


@EACH_SIZE
@pytest.mark.parametrize("fast_integers", [True, False])
@pytest.mark.parametrize(("replicas", "temperatures"), [(1, 2), (3, 5), (4, 8)])
def test_a_step_at_once_is_the_step_by_three_calls(
    size, fast_integers, replicas, temperatures, monkeypatch
):
    if not fast_integers:
        monkeypatch.setattr("paperlib.kernels.products._FAST_INTEGERS", False)
    betas = torch.linspace(0, 1, temperatures, dtype=torch.float64) ** 1.5
    steps = []
    for kind, prepared in ((BaseRatePath, 0), (BaseRatePath, 10**9), (ByVerbs, 0)):
        # the products by torch, or by adding rows
        monkeypatch.setattr(products, "_PREPARED", prepared)
        path = path_of(size, kind)
        generator = seeded_generator(1)
        assert path.steps_at_once == (kind is BaseRatePath)
        state = path.sample_start(replicas * temperatures, generator)
        walk = Replicas(path, betas, replicas, state)
        results = []
        for _ in range(6):
            ratios = walk.step(generator)
            state = walk.state
            results += [ratios, walk.chain_at.clone(), state.v, state.hidden_input]
            results += [state.bias_difference, generator.get_state()]
        # two temperatures lie too far apart in the largest models
        assert (
            temperatures == 2
            or (walk.chain_at != torch.arange(walk.num_chains).view(replicas, -1)).any()
        )
        steps.append(results)
    for all_three in zip(*steps, strict=True):
        assert torch.equal(all_three[0], all_three[2])
        assert torch.equal(all_three[1], all_three[2])


@EACH_SIZE
@pytest.mark.parametrize("prepared", [0, 10**9])
def test_several_steps_are_those_that_would_be_taken_one_by_one(size, prepared, monkeypatch):
    monkeypatch.setattr(products, "_PREPARED", prepared)
    betas = torch.linspace(0, 1, 5, dtype=torch.float64)
    path = path_of(size)
    walks = []
    results = []
    for counts in ([6], [1, 5], 6 * [1]):
        generator = seeded_generator(1)
        walk = Replicas(path, betas, 2, path.sample_start(10, generator))
        ratios, ends = zip(*(walk.steps(generator, count) for count in counts), strict=True)
        walks.append((walk.state.v, walk.state.hidden_input, walk.state.bias_difference))
        results.append((torch.cat(ratios), torch.cat(ends), walk.chain_at, generator.get_state()))
    assert results[0][0].shape == (6, 2, 2, 5)
    assert torch.equal(results[0][1][-1], walk.ends())
    for other in (1, 2):
        for one, two in zip(walks[0] + results[0], walks[other] + results[other], strict=True):
            assert torch.equal(one, two)


@EACH_SIZE
@pytest.mark.parametrize("steps", ["forward_steps", "reverse_steps"])
def test_steps_of_annealing_at_once_are_the_calls_to_the_bit(size, steps, monkeypatch):
    """All of them together, and some at a time."""
    betas = [0.0, 0.1, 0.3, 0.8, 0.9, 1.0]
    if steps == "reverse_steps":
        betas.reverse()
    results = []
    for kind, prepared, counts in (
        (ByVerbs, 0, [5]),
        (BaseRatePath, 0, [5]),
        (BaseRatePath, 10**9, [5]),
        (BaseRatePath, 0, [2, 1, 2]),
    ):
        # the products by torch, or by adding rows
        monkeypatch.setattr(products, "_PREPARED", prepared)
        path = path_of(size, kind)
        generator = seeded_generator(1)
        assert path.steps_at_once == (kind is BaseRatePath)
        state = path.sample_start(37, generator)
        before = state.v.clone(), state.hidden_input.clone(), state.bias_difference.clone()
        first_state = state
        log_weights = torch.linspace(-1, 1, 37, dtype=torch.float64)
        begin = 0
        for count in counts:
            some = betas[begin : begin + count + 1]
            state = getattr(path, steps)(state, log_weights, some, generator)
            begin += count
        # states are values
        assert torch.equal(first_state.v, before[0])
        assert torch.equal(first_state.hidden_input, before[1])
        assert torch.equal(first_state.bias_difference, before[2])
        results.append(
            [log_weights, state.v, state.hidden_input, state.bias_difference, generator.get_state()]
        )
    assert results[0][0].diff().abs().max() > 0.1
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


@pytest.mark.parametrize("size", [(784, 100), WIDE, (7, 3)], ids="{0[0]}x{0[1]}".format)
def test_parts_of_the_replicas_take_the_steps_of_the_whole(size):
    path = path_of(size)
    generator = seeded_generator(1)
    betas = torch.linspace(0, 1, 5, dtype=torch.float64)
    whole = Replicas(path, betas, 7, path.sample_start(35, generator))
    for _ in range(3):
        parts = whole.divide(3)
        assert [part.num_replicas for part in parts] == [3, 2, 2]
        copies = [generator.clone_state() for _ in parts]
        expected = []
        results = []
        for _ in range(4):
            expected.append((whole.step(generator), whole.ends()))
            steps = [part.step(copy) for part, copy in zip(parts, copies, strict=True)]
            results.append((torch.cat(steps, 1), torch.cat([part.ends() for part in parts])))
        for one, two in zip(expected, results, strict=True):
            assert torch.equal(one[0], two[0])
            assert torch.equal(one[1], two[1])
        chain_at = whole.chain_at
        state = whole.state
        whole.join(parts)
        assert torch.equal(whole.chain_at, chain_at)
        assert torch.equal(whole.state.v, state.v)
        assert torch.equal(whole.state.hidden_input, state.hidden_input)


@EACH_SIZE
def test_runs_come_to_the_same_bits_in_any_number_of_threads(size, threads, side_by_side):
    path = path_of(size)
    run = partial(parallel_tempering, chain_steps=3_000, num_replicas=5, check=False)
    expected = run(path_of(size, ByVerbs), generator=seeded_generator(2))
    for count in (1, 2, 4):
        threads(count)
        generator = seeded_generator(2)
        assert_equal(run(path, generator=generator), expected)
        assert torch.get_num_threads() == count
    assert set(side_by_side) == {2, 4}


@pytest.mark.parametrize("size", [(5, 4), WIDE], ids=["narrow", "wide"])
def test_runs_in_float64_go_by_the_three_calls_in_any_number_of_threads(
    size, threads, side_by_side
):
    """With the same draws.

    Products of float64 sum in another order on some processors (AMD), so that sums agree to
    rounding.
    """
    path = path_of(size, dtype=torch.float64)
    assert not path.steps_at_once
    results = []
    for count in (1, 2, 4):
        threads(count)
        results.append(parallel_tempering(path, 2_000, seeded_generator(2), check=False))
        assert torch.equal(results[-1].samples, results[0].samples)
        assert results[-1].round_trips == results[0].round_trips
        for name, value in vars(results[0]).items():
            if isinstance(value, torch.Tensor | float):
                torch.testing.assert_close(
                    getattr(results[-1], name), value, rtol=1e-11, atol=1e-11, msg=name
                )
    assert not side_by_side


# of 116: in the first pilot round, in the main round, and near its end
@pytest.mark.parametrize("call", [2, 70, 110])
@pytest.mark.parametrize("kind", [BaseRatePath, ByVerbs])
def test_an_interrupted_run_goes_on_in_another_number_of_threads(
    call, kind, threads, side_by_side, tmp_path, monkeypatch
):
    run = partial(parallel_tempering, chain_steps=4_000, num_replicas=3, check=False)
    whole = run(path_of(WIDE), generator=seeded_generator(3))
    file = tmp_path / "run.safetensors"
    threads(2)
    with monkeypatch.context() as patch:
        interrupt_call(patch, Ladder, "draws", call)
        with pytest.raises(KeyboardInterrupt):
            run(path_of(WIDE), generator=seeded_generator(3), checkpoint=file)
    assert torch.get_num_threads() == 2
    assert file.is_file() == (call > 2)
    for count in (4, 1):  # goes on; then is found finished
        threads(count)
        assert_equal(
            run(path_of(WIDE, kind), generator=seeded_generator(3), checkpoint=file), whole
        )


@pytest.mark.parametrize("chain", [0, 10**6])
def test_a_checkpoint_with_other_chains_is_refused(chain, tmp_path):
    """The compiled step would write where such a chain is not."""
    file = tmp_path / "run.safetensors"
    run = partial(parallel_tempering, path_of((7, 3)), 1_000)
    run(seeded_generator(3), checkpoint=file)
    tensors = read_safetensors(file)
    metadata = read_metadata(file)
    tensors["chain_at"][0, :2] = chain
    file.unlink()
    write_safetensors(file, tensors, metadata)
    with pytest.raises(InputError, match=r"^checkpoint: expected every chain once"):
        run(seeded_generator(3), checkpoint=file)


def test_a_failure_in_one_thread_ends_the_others(threads, side_by_side):
    threads(2)
    path = path_of(WIDE)
    counts = []
    run = runs.TemperingRun(path, runs.Plan(10**6, None, 4, 10), seeded_generator(1))
    while not run.in_main_round:
        run.advance(lambda _: None)

    def tell(chains):
        counts.append(chains)
        if len(counts) == 7:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run.advance(tell)
    assert side_by_side == [2]
    assert len(counts) == 7
    assert torch.get_num_threads() == 2


def test_a_path_with_a_verb_of_its_own_is_walked_by_it(monkeypatch):
    class Frozen(BaseRatePath):
        def transition(self, state, beta, generator):
            return state

    class Flat(BaseRatePath):
        def log_ratio(self, state, beta_from, beta_to):
            return torch.zeros(len(state.v), dtype=torch.float64)

    betas = torch.tensor([0.0, 0.5, 1.0])
    walks = []
    for kind in (BaseRatePath, Frozen, Flat):
        path = path_of((7, 3), kind)
        generator = seeded_generator(1)
        walk = Replicas(path, betas, 4, path.sample_start(12, generator))
        before = walk.state.v.clone()
        ratios = walk.step(generator)
        walks.append((torch.equal(before, walk.state.v), bool(ratios.any())))
    assert walks == [(False, True), (True, True), (False, False)]


def test_without_its_compiled_functions_a_step_goes_by_the_three_calls(monkeypatch):
    monkeypatch.setattr(sampler, "compiled", lambda name: None)
    path = path_of((7, 3))
    assert not path.steps_at_once
    estimate = parallel_tempering(path, 1_000, seeded_generator(1), check=False)
    monkeypatch.undo()
    assert path.steps_at_once
    assert_equal(parallel_tempering(path, 1_000, seeded_generator(1), check=False), estimate)


def test_states_of_other_chains_are_refused():
    path = path_of((7, 3))
    generator = seeded_generator(1)
    betas = torch.tensor([0.0, 0.5, 1.0])
    walk = Replicas(path, betas, 2, path.sample_start(5, generator))
    with pytest.raises(InputError, match=r"expected inputs of shape \[6, 3\], got \[5, 3\]"):
        walk.step(generator)


def test_threads_may_go_on_from_one_state():
    """What a state remembers of its products is not shared between them."""
    path = BaseRatePath(random_rbm(200, 150, 1, scale=0.1, dtype=torch.float32))
    assert path.steps_at_once
    state = path.sample_start(100, seeded_generator(1))

    def walk(seed):
        log_weights = torch.zeros(100, dtype=torch.float64)
        generator = seeded_generator(seed)
        last = path.forward_steps(state, log_weights, [0.0, 0.3, 0.6], generator)
        return path.transition(last, 0.7, generator).v, log_weights

    expected = [walk(seed) for seed in range(40)]
    with ThreadPoolExecutor(3) as pool:
        for results in zip(pool.map(walk, range(40)), expected, strict=True):
            assert all(map(torch.equal, *results))


def test_states_of_another_type_are_refused():
    """Compiled functions would be compiled anew for it, and go on in it."""
    path = path_of((7, 3))
    generator = seeded_generator(1)
    state = path.sample_start(6, generator)
    state = replace(state, hidden_input=state.hidden_input.double())
    walk = Replicas(path, torch.tensor([0.0, 0.5, 1.0]), 2, state)
    with pytest.raises(InputError, match=r"expected inputs in torch.float32, got torch.float64"):
        walk.step(generator)
