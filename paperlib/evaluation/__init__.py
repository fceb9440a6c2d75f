"""What is the test log-probability of this RBM? An answer with error bars, and with reasons not to believe it."""

from paperlib.evaluation.along_training import (
    CheckpointLikelihood,
    TrainingLikelihood,
    evaluate_training,
)
from paperlib.evaluation.audit import Audit, Bound, audit
from paperlib.evaluation.checkpoint_files import read_checkpoints
from paperlib.evaluation.compare import Comparison, compare
from paperlib.evaluation.evaluation import AnnealingRun, Evaluation, ExactResult, evaluate
from paperlib.evaluation.inputs import read_images, read_model, read_rbm

__all__ = [
    "AnnealingRun",
    "Audit",
    "Bound",
    "CheckpointLikelihood",
    "Comparison",
    "Evaluation",
    "ExactResult",
    "TrainingLikelihood",
    "audit",
    "compare",
    "evaluate",
    "evaluate_training",
    "read_checkpoints",
    "read_images",
    "read_model",
    "read_rbm",
]
