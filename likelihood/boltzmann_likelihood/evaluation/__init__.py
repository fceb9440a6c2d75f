"""What is the test log-probability of this model?

An answer with error bars, and with warnings where it may be wrong.
"""

from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRun as AnnealingRun
from boltzmann_likelihood.evaluation.audit import Audit as Audit
from boltzmann_likelihood.evaluation.audit import Bound as Bound
from boltzmann_likelihood.evaluation.audit import audit as audit
from boltzmann_likelihood.evaluation.audit import audit_evaluation as audit_evaluation
from boltzmann_likelihood.evaluation.compare import Comparison as Comparison
from boltzmann_likelihood.evaluation.compare import compare as compare
from boltzmann_likelihood.evaluation.evaluation import evaluate as evaluate
from boltzmann_likelihood.evaluation.report import describe as describe
from boltzmann_likelihood.evaluation.report import quote as quote
from boltzmann_likelihood.evaluation.result import Effort as Effort
from boltzmann_likelihood.evaluation.result import Evaluation as Evaluation
from boltzmann_likelihood.evaluation.result import ExactResult as ExactResult
from boltzmann_likelihood.evaluation.training import CheckpointLikelihood as CheckpointLikelihood
from boltzmann_likelihood.evaluation.training import TrainingLikelihood as TrainingLikelihood
from boltzmann_likelihood.evaluation.training import evaluate_training as evaluate_training
