"""Models: each knows its unnormalised log-probability, its conditionals, and how to store itself.

Estimators never look inside a model; annealing paths ask it for the quantities that they
interpolate. `RBM`, `DBN` and `DBM` know ln p*(v) and need an estimate of ln Z. `BernoulliMixture`
is normalised, and is what they are compared with. `log_z_lower_bound` checks any estimate of ln Z
from below.
"""

from paperlib.models.bernoulli_mixture import BernoulliMixture as BernoulliMixture
from paperlib.models.bounds import log_z_lower_bound as log_z_lower_bound
from paperlib.models.dbm import DBM as DBM
from paperlib.models.dbm import MeanField as MeanField
from paperlib.models.dbn import DBN as DBN
from paperlib.models.rbm import RBM as RBM
