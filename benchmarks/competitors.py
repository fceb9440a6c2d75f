"""Who computes what.

`COMPETITORS[task][name]` makes the function whose calls are timed, from an item of work and a
device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import library, peers, reference
from benchmarks.work import Work
from boltzmann_companion import speed

Prepare = Callable[[Work, str], Callable[[], Any] | None]

_TRAINING: dict[str, Prepare] = {
    "paperlib": library.prepare_training,
    "plain torch": reference.prepare_training,
    "rbms": peers.prepare_rbms_training,
}

COMPETITORS: dict[str, dict[str, Prepare]] = {
    "AIS": {
        "paperlib": library.prepare_ais,
        "plain torch": reference.prepare_ais,
        "rbms": peers.prepare_rbms_ais,
        speed.FLOOR: reference.prepare_products,
    },
    "RAISE": {
        "paperlib": library.prepare_raise,
        "plain torch": reference.prepare_raise,
    },
    "tempering": {"paperlib": library.prepare_tempering},
    speed.CHECK: {"paperlib": library.prepare_bound},
    "exact ln Z": {
        "paperlib": library.prepare_exact,
        "plain torch": reference.prepare_exact,
        "rbms": peers.prepare_rbms_exact,
        "rbms, states listed before": peers.prepare_rbms_exact_sum,
    },
    "CD-1": {**_TRAINING, "scikit-learn": peers.prepare_sklearn_training},
    "CD-25": _TRAINING,
    "PCD": {**_TRAINING, "scikit-learn": peers.prepare_sklearn_training},
}


def calls() -> dict[str, dict[str, str]]:
    """What each competitor calls for each task: the docstring of its function, in one line."""
    texts = {}
    for task, competitors in COMPETITORS.items():
        texts[task] = {}
        for name, prepare in competitors.items():
            assert prepare.__doc__ is not None
            texts[task][name] = " ".join(prepare.__doc__.split()).rstrip(".")
    return texts


def runs(work: Work, device: str, only: tuple[str, ...] = ()) -> dict[str, Callable[[], Any]]:
    """A function for each competitor, of `only` some, that can do this work on this device."""
    prepared = {}
    for name, prepare in COMPETITORS[work.task].items():
        if only and name not in only:
            continue
        run = prepare(work, device)
        if run is not None:
            prepared[name] = run
    return prepared
