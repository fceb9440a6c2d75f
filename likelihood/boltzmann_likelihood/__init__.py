"""What is the test log-likelihood of a Boltzmann machine of one's own?

An answer with error bars, and with warnings where it may be wrong.

A tool on top of the library `paperlib`, in Python and as the command `paperlib`.

=================================  ============================================================
`evaluate`                         the average ln p of test images under one model
`compare`                          which of two models gives them the higher probability
`audit`                            whether a ln Z, or a log-probability, that somebody states
                                   can be true
`evaluate_training`                where along its training a model was best
`read_model`, `read_images`        models and images from files of almost any program
`boltzmann_likelihood.files`       everything that reads such files
`boltzmann_likelihood.evaluation`  the runs, the doubts and the verdict behind these functions
`boltzmann_likelihood.planted`     models of any size whose ln Z is known, to try an estimator on
=================================  ============================================================

All log-probabilities are in nats.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boltzmann_likelihood.evaluation import *  # noqa: F403
    from boltzmann_likelihood.files import *  # noqa: F403

_ROOMS = {
    "evaluation": (
        "Audit", "Bound", "CheckpointLikelihood", "Comparison", "Effort", "Evaluation",
        "ExactResult", "TrainingLikelihood", "audit", "audit_evaluation", "compare", "describe",
        "evaluate", "evaluate_training", "quote",
    ),
    "files": (
        "ForeignRBM", "Images", "binary_from_spins", "read_checkpoints", "read_images",
        "read_model", "read_weights",
    ),
}  # fmt: skip
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: the command shows its help without torch."""
    if name in _ROOM_OF:
        return getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOM_OF])
