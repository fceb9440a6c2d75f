"""What is the test log-probability of this model? An answer with error bars, and with reasons not to believe it."""

from paperlib.evaluation.annealing_runs import AnnealingRun
from paperlib.evaluation.audit import Audit, Bound, audit, audit_evaluation
from paperlib.evaluation.compare import Comparison, compare
from paperlib.evaluation.evaluation import evaluate
from paperlib.evaluation.inputs import (
    read_images,
    read_model,
    read_rbm,
    read_sequences,
    read_weights,
)
from paperlib.evaluation.quote import quote
from paperlib.evaluation.result import Effort, Evaluation, ExactResult

__all__ = [
    "AnnealingRun",
    "Audit",
    "Bound",
    "Comparison",
    "Effort",
    "Evaluation",
    "ExactResult",
    "audit",
    "audit_evaluation",
    "compare",
    "evaluate",
    "quote",
    "read_images",
    "read_model",
    "read_rbm",
    "read_sequences",
    "read_weights",
]
