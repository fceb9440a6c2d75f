"""What is the test log-probability of this model? An answer with error bars, and with warnings where it may be wrong."""

from paperlib.evaluation.annealing_runs import AnnealingRun
from paperlib.evaluation.audit import Audit, Bound, audit, audit_evaluation
from paperlib.evaluation.checkpoint_files import read_checkpoints
from paperlib.evaluation.compare import Comparison, compare
from paperlib.evaluation.evaluation import evaluate
from paperlib.evaluation.inputs import (
    read_images,
    read_model,
    read_sequences,
    read_weights,
)
from paperlib.evaluation.report import quote
from paperlib.evaluation.result import Effort, Evaluation, ExactResult
from paperlib.evaluation.training import (
    CheckpointLikelihood,
    TrainingLikelihood,
    evaluate_training,
)
from paperlib.surroundings import undisturbed_in

__all__ = [
    "AnnealingRun",
    "Audit",
    "Bound",
    "CheckpointLikelihood",
    "Comparison",
    "Effort",
    "Evaluation",
    "ExactResult",
    "TrainingLikelihood",
    "audit",
    "audit_evaluation",
    "compare",
    "evaluate",
    "evaluate_training",
    "quote",
    "read_checkpoints",
    "read_images",
    "read_model",
    "read_sequences",
    "read_weights",
]

undisturbed_in(__name__, gradients=False)
