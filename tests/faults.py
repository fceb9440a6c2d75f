"""Processes that end as by kill -9, at a moment set by their own work.

A busy machine changes nothing. `kill -9` from outside races with the work: a process that is slow
to be killed may have finished. So the process sets itself a timer of its own processor time when so
many files have taken their names. The timer's signal ends it without a word, wherever it is then;
nothing in Python gets to know.

A process is a fork of one that has imported the library and done nothing else, since to import
torch takes longer than the work.
"""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import torch
from enumeration import random_rbm

from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais_run, raise_run
from paperlib.numerics import seeded_generator

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["boltzmann_likelihood.cli", "boltzmann_companion.training", "pytest", "nbformat"]
)
#: Folder, number of files and seconds, separated by `os.pathsep`.
MOMENT = "TEST_FAULTS_MOMENT"
#: Whom to kill instead of the process itself.
VICTIM = "TEST_FAULTS_VICTIM"


def arm():
    """Count the files that are renamed in the folder of `MOMENT`, and set the timer at the last.

    Without `MOMENT`, do nothing.
    """
    if not os.environ.get(MOMENT):
        return
    folder, files, seconds = os.environ[MOMENT].split(os.pathsep)
    original = os.replace
    seen = []

    def replace(source, target, **options):
        original(source, target, **options)
        if Path(target).parent == Path(folder):
            seen.append(target)
            if len(seen) == int(files):
                signal.signal(
                    signal.SIGPROF, kill_victim if VICTIM in os.environ else signal.SIG_DFL
                )
                signal.setitimer(signal.ITIMER_PROF, float(seconds))

    os.replace = replace


def kill_victim(*_):
    """Kill the other process, and get no further than this."""
    os.kill(int(os.environ[VICTIM]), signal.SIGKILL)
    while True:
        time.sleep(0.1)


def anneal(name, folder):
    """Thirty shards."""
    path = BaseRatePath(random_rbm(40, 30, 0))
    betas = uniform_betas(400)
    if name == "AIS":
        return kept(ais_run(path, betas, 3_000, 1), folder, False)
    v = (torch.rand(30, 40, generator=seeded_generator(2)) < 0.3).to(torch.uint8)
    return kept(raise_run(path, v, betas, 100, 1), folder, False)
