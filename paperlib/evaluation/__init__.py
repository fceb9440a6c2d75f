"""What is the test log-probability of this model? An answer with error bars, and with warnings where it may be wrong."""

from paperlib.evaluation.annealing_runs import AnnealingRun as AnnealingRun
from paperlib.evaluation.audit import Audit as Audit
from paperlib.evaluation.audit import Bound as Bound
from paperlib.evaluation.audit import audit as audit
from paperlib.evaluation.audit import audit_evaluation as audit_evaluation
from paperlib.evaluation.checkpoint_files import read_checkpoints as read_checkpoints
from paperlib.evaluation.compare import Comparison as Comparison
from paperlib.evaluation.compare import compare as compare
from paperlib.evaluation.evaluation import evaluate as evaluate
from paperlib.evaluation.inputs import read_images as read_images
from paperlib.evaluation.inputs import read_model as read_model
from paperlib.evaluation.inputs import read_sequences as read_sequences
from paperlib.evaluation.inputs import read_weights as read_weights
from paperlib.evaluation.report import quote as quote
from paperlib.evaluation.result import Effort as Effort
from paperlib.evaluation.result import Evaluation as Evaluation
from paperlib.evaluation.result import ExactResult as ExactResult
from paperlib.evaluation.training import CheckpointLikelihood as CheckpointLikelihood
from paperlib.evaluation.training import TrainingLikelihood as TrainingLikelihood
from paperlib.evaluation.training import evaluate_training as evaluate_training
