"""Exact ln Z of a 784 x 25 RBM, beside plain enumeration, in one run on one machine.

Plain enumeration is timed on as many states as take a few seconds, and its cost is given for each state and visible unit:
all 2^25 states would take it minutes.

Usage: python benchmarks/exact_log_z.py [--model data/models/mnist-cd1-25.safetensors] [--repeats 3]
"""

import argparse
import resource
import statistics
import time

import torch

from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.storage import repository_root

PLAIN_STATES = 2**16


def timed(function, repeats):
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def plain_part(rbm, block=4096):
    """A part of the plain sum: matrix product, softplus and sum for each block of hidden states."""
    shifts = torch.arange(rbm.num_hidden)
    for index in torch.arange(PLAIN_STATES).split(block):
        rbm.log_unnormalized_hidden(((index[:, None] >> shifts) & 1).double()).logsumexp(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", default=repository_root() / "data" / "models" / "mnist-cd1-25.safetensors"
    )
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rbm = RBM.load(arguments.model, dtype=torch.float64)
    states = 2**rbm.num_hidden
    plain = timed(lambda: plain_part(rbm), arguments.repeats) / (PLAIN_STATES * rbm.num_visible)
    halves_seconds = timed(lambda: exact_log_z(rbm, progress=False), arguments.repeats)
    halves = halves_seconds / (states * rbm.num_visible)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{rbm}, {torch.get_num_threads()} threads, medians of {arguments.repeats}")
    print(f"plain enumeration: {1e9 * plain:6.2f} ns per state and visible unit")
    print(
        f"in halves:         {1e9 * halves:6.2f} ns, {halves_seconds:.1f} s for all 2^{rbm.num_hidden} states"
    )
    print(f"ratio:             {plain / halves:6.1f}")
    print(f"peak memory of the whole process, torch included: {memory:.2f} GiB")


if __name__ == "__main__":
    main()
