"""What is the test log-probability of this model?

An answer with error bars, and with warnings where it may be wrong. Its modules, in the order in
which they are best read:

- `evaluation` goes from a model and images to an `Evaluation`, step by step, and `result` is what
  comes out.
- `verdict` is the rule by which a number is trusted.
- `annealing_runs` makes the runs, and `modes` finds what they may have missed. `hidden_layers` and
  `hidden_states` estimate ln p*(v) of deep models.
- `averages` and `baselines` are about the images; `precision` and `memory` about what is decided
  before a run.
- `audit`, `compare` and `training` answer other questions in the same way.
- `report` and `picture` show all of these, and `printed` lets `print` do so. `interruption` says
  what Ctrl-C ended.
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
