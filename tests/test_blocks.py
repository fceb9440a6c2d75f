"""Blocks of chains: the same results on any number of cores, and nothing runs on after a failure."""

import threading

import pytest
import torch
from enumeration import random_rbm

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, raise_log_prob
from paperlib.estimators.blocks import count_blocks, walk_in_blocks
from paperlib.numerics import draw_bits, seeded_generator

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
