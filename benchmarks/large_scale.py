"""What a unit of large-scale work costs.

Units are a step of a chain, ln p* of a vector, a shard's way through a cluster, and a checksum.
Processor time is that of one thread, so that other work on the machine hardly matters, and numbers
are medians of the repeats. Weights are random, since costs do not depend on them.

Usage: python benchmarks/large_scale.py [--repeats 3] [--large]
"""

import argparse
import pickle
import statistics
import tempfile
import time

import torch

from boltzmann_likelihood.cluster import ClusterExecutor
from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais_run
from paperlib.estimators.ais import run_chains
from paperlib.kernels import chains_per_shard
from paperlib.models import RBM
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator

CHAINS = chains_per_shard(torch.device("cpu"))


def cost(function, repeats, clock=time.process_time):
    function()
    seconds = []
    for _ in range(repeats):
        began = clock()
        function()
        seconds.append(clock() - began)
    return statistics.median(seconds)


def random_rbm(num_visible, num_hidden):
    weights = torch.randn(num_visible, num_hidden, generator=seeded_generator(0)).mul_(0.01)
    return RBM(weights, torch.zeros(num_visible), torch.zeros(num_hidden))


def measure(num_visible, num_hidden, steps, repeats):
    rbm = random_rbm(num_visible, num_hidden)
    path = BaseRatePath(rbm)
    betas = uniform_betas(steps).tolist()
    walk = cost(
        lambda: run_chains(path, betas, CHAINS, seeded_generator(1), lambda _: None),
        repeats,
    )
    v = (torch.rand(1_000, num_visible, generator=seeded_generator(2)) < 0.2).float()
    free_energy = cost(lambda: rbm.log_unnormalized(v), repeats)
    check = cost(lambda: tensors_checksum([rbm.weights]), 1)
    sent = len(pickle.dumps(path)) / 2**20
    print(
        f"{num_visible:,} x {num_hidden:,}: "
        f"{1e6 * walk / steps / CHAINS:,.1f} us for a step of a chain, "
        f"{1e3 * free_energy:,.1f} us for ln p* of a vector, path of {sent:,.0f} MiB, "
        f"{check:.3f} s for the weights' SHA-256"
    )


def overhead(repeats):
    """Wall time of a shard that hardly computes anything, here and through a cluster."""
    import distributed

    path = BaseRatePath(random_rbm(784, 500))
    betas = uniform_betas(1)
    shards = 200

    def run(executor):
        with tempfile.TemporaryDirectory() as folder:
            chains = shards * CHAINS
            kept(ais_run(path, betas, chains, 0), folder, False, executor)

    here = cost(lambda: run(None), repeats, time.perf_counter) / shards
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as local,
        ClusterExecutor(local.scheduler_address) as executor,
    ):
        there = cost(lambda: run(executor), repeats, time.perf_counter) / shards
    print(f"an empty shard: {1e3 * here:.1f} ms here, {1e3 * there:.1f} ms through a cluster")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--large", action="store_true", help="also 100,000 visible units (3 GiB of memory)"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    measure(784, 500, 200, arguments.repeats)
    measure(784, 1_000, 100, arguments.repeats)
    measure(10_000, 1_000, 10, arguments.repeats)
    if arguments.large:
        measure(100_000, 1_000, 2, 1)
    overhead(arguments.repeats)


if __name__ == "__main__":
    main()
