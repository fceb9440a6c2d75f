"""Blocks of chains: the same results on any number of cores; nothing runs on after a failure."""

import threading
import time
from functools import partial

import pytest
import torch
from enumeration import random_rbm
from walks import path_of

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.annealing import walk as threading_of_walks
from paperlib.estimators import ais, exact_log_z, raise_log_prob
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.kernels import chains_per_block
from paperlib.numerics import seeded_generator
from paperlib.threads import run_in_threads

# Few: each step divides the chains and joins them again.
BETAS = uniform_betas(6)
WIDE = BaseRatePath(random_rbm(130, 2, 1))
# Seconds after which a thread gives up waiting for another: only a defect takes so long.
PATIENCE = 600


@pytest.mark.parametrize("chains", [100, 76, 99])
@pytest.mark.parametrize("kind", ["base rates", "pair", "DBM"])
def test_parts_of_a_block_walk_side_by_side_to_the_same_bits(threads, monkeypatch, chains, kind):
    monkeypatch.setattr("paperlib.kernels.blocks._FEWEST_CHAINS", 10)
    path = path_of(kind, 150, 140, torch.float32)
    v = torch.ones(chains // 9, 150)
    results = []
    side_by_side = []
    together = threading_of_walks.walk_side_by_side

    def note(walks, on_step):
        side_by_side.append(len(walks))
        return together(walks, on_step)

    monkeypatch.setattr(threading_of_walks, "walk_side_by_side", note)
    for count in (1, 2, 3):
        threads(count)
        counts = []
        generator = seeded_generator(1)
        forward = ais(path, BETAS, chains, generator, on_step=counts.append)
        assert sum(counts) == 6 * chains
        results.append([forward.log_weights, forward.final_states, generator.get_state()])
        if kind != "pair":
            results[-1].append(raise_log_prob(path, v, BETAS, 9, seeded_generator(2)).log_weights)
        assert torch.get_num_threads() == count
    if chains % 4 == 0 and kind != "pair":
        assert set(side_by_side) == {2, 3}
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert torch.equal(one, two)


def test_a_failure_in_a_part_of_a_block_ends_the_others(threads, monkeypatch):
    monkeypatch.setattr("paperlib.kernels.blocks._FEWEST_CHAINS", 10)
    threads(2)
    counts = []

    def tell(chains):
        counts.append(chains)
        if len(counts) == 7:
            raise ZeroDivisionError

    path = path_of("base rates", 150, 140, torch.float32)
    with pytest.raises(ZeroDivisionError):
        ais(path, uniform_betas(10_000), 40, seeded_generator(1), on_step=tell)
    assert len(counts) == 7
    assert torch.get_num_threads() == 2


def test_an_exact_value_does_not_depend_on_the_number_of_threads(threads):
    rbm = random_rbm(30, 18, 1, scale=0.3)  # two blocks of rows
    threads(1)
    log_z = exact_log_z(rbm)
    threads(2)
    assert exact_log_z(rbm) == log_z
    assert torch.get_num_threads() == 2


def test_tasks_keep_their_order_and_a_failure_stops_the_others(threads):
    threads(2)
    first_may_end = threading.Event()
    done = []
    stopped = []

    def first():
        assert first_may_end.wait(PATIENCE)
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
        run_in_threads([lambda: released.wait(PATIENCE), fail], stop=stop)
    assert stopped == [1]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("count", "tasks"), [(1, 3), (3, 1)], ids=["one thread", "one task"])
def test_where_one_thread_is_enough_none_is_started(threads, count, tasks):
    threads(count)
    done = []

    def task(number):
        return number, threading.current_thread(), torch.get_num_threads()

    results = run_in_threads([partial(task, n) for n in range(tasks)], lambda: done.append(1))
    assert results == [(number, threading.current_thread(), 1) for number in range(tasks)]
    assert len(done) == tasks
    assert torch.get_num_threads() == count


def test_blocks_walk_side_by_side_and_differ(threads):
    threads(3)
    together = threading.Barrier(3, timeout=PATIENCE)

    def walk(chains, generator, on_step):
        together.wait()  # breaks unless three blocks are under way
        on_step(chains.stop - chains.start)
        assert torch.get_num_threads() == 1
        return chains, torch.rand((), generator=generator).item()

    steps = []
    results = walk_in_blocks(walk, 250, WIDE, seeded_generator(0), steps.append)
    assert [chains for chains, _ in results] == [slice(0, 100), slice(100, 200), slice(200, 250)]
    assert len({number for _, number in results}) == 3
    assert sorted(steps) == [50, 100, 100]


def test_a_gpu_walks_the_papers_chains_together():
    assert chains_per_block(784, torch.device("cuda")) >= 5_000


@pytest.mark.parametrize("failure", [ValueError("overflow"), KeyboardInterrupt()])
def test_a_failure_ends_the_other_blocks(threads, failure):
    threads(2)
    reached = []

    def walk(chains, generator, on_step):
        for step in range(10**6):
            if chains.start == 0 and step == 50:
                raise failure
            reached.append(chains.start)
            on_step(1)
            time.sleep(0.001)  # 1,000 s in all: the other thread fails before, on any machine

    with pytest.raises(type(failure)):
        walk_in_blocks(walk, 1_000, WIDE, seeded_generator(0), lambda _: None)
    assert len(reached) < 10**6
    assert torch.get_num_threads() == 2
