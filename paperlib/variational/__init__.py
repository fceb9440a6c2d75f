"""Variational inference: posteriors, and ln Z, by maximising a lower bound.

The bound holds for every distribution q of a family, and the best one approximates the posterior.

- `evidence_lower_bound` is the bound itself, for models that can be enumerated.
- `mean_field` maximises it for each vector on its own, over independent units. `map_codes` does so
  over single points.
- `Network` and `ascend` learn a function that gives q for every vector, `learn_ista` one that gives
  the point.
- `learn_sparse_coding`, `learn_dictionary` and `wake_sleep` learn the model as well.
- `mean_field_log_z` and `tap_log_z` apply the idea to ln Z of an RBM.

The models are in the modules `sparse_coding`, `sigmoid_belief_net` and `vae`. If unsure:
`mean_field`, and an estimator of `paperlib.estimators` for ln Z, since these approximations are
inaccurate for trained models.
"""

from paperlib.variational.elbo import evidence_lower_bound as evidence_lower_bound
from paperlib.variational.elbo import factorial_log_probs as factorial_log_probs
from paperlib.variational.elbo import kl_divergence as kl_divergence
from paperlib.variational.em import learn_sparse_coding as learn_sparse_coding
from paperlib.variational.learned_ista import ThresholdNetwork as ThresholdNetwork
from paperlib.variational.learned_ista import ista as ista
from paperlib.variational.learned_ista import learn_ista as learn_ista
from paperlib.variational.log_z import LogZApproximation as LogZApproximation
from paperlib.variational.log_z import mean_field_log_z as mean_field_log_z
from paperlib.variational.log_z import tap_log_z as tap_log_z
from paperlib.variational.map_inference import learn_dictionary as learn_dictionary
from paperlib.variational.map_inference import map_codes as map_codes
from paperlib.variational.mean_field import MeanFieldTrace as MeanFieldTrace
from paperlib.variational.mean_field import block_mean_field as block_mean_field
from paperlib.variational.mean_field import largest_stable_step as largest_stable_step
from paperlib.variational.mean_field import mean_field as mean_field
from paperlib.variational.recognition import Network as Network
from paperlib.variational.recognition import ascend as ascend
from paperlib.variational.wake_sleep import RecognitionWeights as RecognitionWeights
from paperlib.variational.wake_sleep import sleep_step as sleep_step
from paperlib.variational.wake_sleep import wake_sleep as wake_sleep
from paperlib.variational.wake_sleep import wake_step as wake_step
