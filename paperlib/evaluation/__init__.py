"""What is the test log-probability of this RBM? An answer with error bars, and with reasons not to believe it."""

from paperlib.evaluation.audit import Audit, Bound, audit
from paperlib.evaluation.compare import Comparison, compare
from paperlib.evaluation.evaluation import AnnealingRun, Evaluation, ExactResult, evaluate
from paperlib.evaluation.inputs import read_images, read_model, read_rbm

__all__ = [
    "AnnealingRun",
    "Audit",
    "Bound",
    "Comparison",
    "Evaluation",
    "ExactResult",
    "audit",
    "compare",
    "evaluate",
    "read_images",
    "read_model",
    "read_rbm",
]
