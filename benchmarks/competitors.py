"""Who computes what: `COMPETITORS[task][name]` makes, from an item of work and a device, the function whose calls are timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import floors, library, parts, peers, reference
from benchmarks.work import Work
from boltzmann_companion import speed

Prepare = Callable[[Work, str], Callable[[], Any] | None]

_ANNEALING_FLOORS: dict[str, Prepare] = {
    "float32 products": floors.prepare_annealing,
    "integer products": floors.prepare_integer_annealing,
}
_TRAINING: dict[str, Prepare] = {
    "paperlib": library.prepare_training,
    "plain torch": reference.prepare_training,
    "rbms": peers.prepare_rbms_training,
    "float32 products": floors.prepare_training,
}

COMPETITORS: dict[str, dict[str, Prepare]] = {
    "AIS": {
        "paperlib": library.prepare_ais,
        "plain torch": reference.prepare_ais,
        "rbms": peers.prepare_rbms_ais,
        **_ANNEALING_FLOORS,
    },
    "RAISE": {
        "paperlib": library.prepare_raise,
        "plain torch": reference.prepare_raise,
        **_ANNEALING_FLOORS,
    },
    # not competitors, but what the library's step consists of
    speed.STEP: {
        "draws of h": parts.prepare_hidden_draws,
        "products with h": parts.prepare_visible_products,
        "draws of v": parts.prepare_visible_draws,
        "products with v": parts.prepare_hidden_products,
        "weights": parts.prepare_weights,
    },
    speed.UPDATE: {
        "products": floors.prepare_training,
        "random numbers": parts.prepare_update_draws,
        "logistic functions": parts.prepare_update_logistics,
        "new weights": parts.prepare_update_weights,
    },
    "bound": {"paperlib": library.prepare_bound},
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
    """What each competitor calls for each task: the first line of its function's docstring."""
    return {
        task: {name: prepare.__doc__.splitlines()[0].rstrip(".") for name, prepare in named.items()}
        for task, named in COMPETITORS.items()
    }


def runs(work: Work, device: str, only: str | None = None) -> dict[str, Callable[[], Any]]:
    """A function for each competitor, or for one, that can do this work on this device, and should."""
    prepared = {}
    for name, prepare in COMPETITORS[work.task].items():
        if only not in (None, name):
            continue
        # Plain enumeration of more states would take minutes, growth curves of everybody too.
        if work.task == "exact ln Z" and name == "plain torch" and work.hidden > 18:
            continue
        if work.sweep and name not in ("paperlib", "rbms"):
            continue
        run = prepare(work, device)
        if run is not None:
            prepared[name] = run
    return prepared
