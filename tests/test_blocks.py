"""Blocks of chains: the same results on any number of cores, and nothing runs on after a failure."""

import threading

import pytest
import torch
from enumeration import random_rbm

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, exact_hidden_samples, exact_log_z, raise_log_prob
from paperlib.estimators.blocks import count_blocks, walk_in_blocks
from paperlib.numerics import draw_bits, seeded_generator
from paperlib.threads import run_in_threads

BETAS = uniform_betas(20)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_do_not_depend_on_the_number_of_threads(threads, dtype):
    rbm = random_rbm(150, 140, 1, scale=0.3, dtype=dtype)
    path = BaseRatePath(rbm)
    v = draw_bits(torch.full((7, 150), 0.5), seeded_generator(0))
    results = []
    for count in (1, 2, 5):
        threads(count)
        forward = ais(path, BETAS, 430, seeded_generator(1))
        backward = raise_log_prob(path, v, BETAS, 61, seeded_generator(2))
        results.append((forward.log_weights, forward.final_visible, backward.log_weights))
        assert torch.get_num_threads() == count
    assert results[0][0].shape == (430,)
    assert results[0][2].shape == (7, 61)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


def test_exact_values_do_not_depend_on_the_number_of_threads(threads):
    rbm = random_rbm(30, 18, 1, scale=0.3, dtype=torch.float64)  # two blocks of rows
    results = []
    for count in (1, 2):
        threads(count)
        results.append((exact_log_z(rbm), *exact_hidden_samples(rbm, 50, seeded_generator(0))))
        assert torch.get_num_threads() == count
    (log_z, v, h), (log_z_of_two, v_of_two, h_of_two) = results
    assert log_z == log_z_of_two
    assert torch.equal(v, v_of_two)
    assert torch.equal(h, h_of_two)


def test_tasks_keep_their_order_and_a_failure_stops_the_others(threads):
    threads(2)
    first_may_end, done, stopped = threading.Event(), [], []

    def first():
        assert first_may_end.wait(20)
        return "first"

    def second():
        first_may_end.set()
        return "second"

    assert run_in_threads([first, second], lambda: done.append(1)) == ["first", "second"]
    assert len(done) == 2

    released = threading.Event()

    def fail():
        raise ZeroDivisionError

    def stop():
        stopped.append(1)
        released.set()

    with pytest.raises(ZeroDivisionError):
        run_in_threads([lambda: released.wait(20), fail], stop=stop)
    assert stopped == [1]
    assert torch.get_num_threads() == 2


def test_blocks_walk_side_by_side_and_differ(threads):
    threads(3)
    together = threading.Barrier(3, timeout=20)

    def walk(chains, generator, on_step):
        together.wait()  # breaks unless three blocks are under way
        on_step()
        assert torch.get_num_threads() == 1
        return chains, torch.rand((), generator=generator).item()

    steps = []
    results = walk_in_blocks(walk, 250, 784, seeded_generator(0), lambda: steps.append(1))
    assert [chains for chains, _ in results] == [slice(0, 100), slice(100, 200), slice(200, 250)]
    assert (
        len({number for _, number in results})
        == len(steps)
        == count_blocks(250, 784, torch.device("cpu"))
        == 3
    )


def test_a_gpu_walks_the_papers_chains_together():
    assert count_blocks(5_000, 784, torch.device("cuda")) == 1


@pytest.mark.parametrize("failure", [ValueError("overflow"), KeyboardInterrupt()])
def test_a_failure_ends_the_other_blocks(threads, failure):
    threads(2)
    reached = []

    def walk(chains, generator, on_step):
        for step in range(10**6):
            if chains.start == 0 and step == 50:
                raise failure
            reached.append(chains.start)
            on_step()

    with pytest.raises(type(failure)):
        walk_in_blocks(walk, 1_000, 784, seeded_generator(0), lambda: None)
    assert len(reached) < 10**6
    assert torch.get_num_threads() == 2
