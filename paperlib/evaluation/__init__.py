"""What is the test log-probability of this RBM? An answer with error bars, and with reasons not to believe it."""

from paperlib.evaluation.evaluation import Evaluation, ExactResult, Rung, evaluate
from paperlib.evaluation.inputs import read_images, read_rbm

__all__ = ["Evaluation", "ExactResult", "Rung", "evaluate", "read_images", "read_rbm"]
