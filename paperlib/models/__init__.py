"""Models: each knows its unnormalised log-probability, its conditionals, and how to store itself.

Estimators never look inside a model; annealing paths ask it for the quantities that they interpolate.
"""

from paperlib.models.bernoulli_mixture import BernoulliMixture
from paperlib.models.bounds import log_z_lower_bound
from paperlib.models.dbm import DBM, MeanField
from paperlib.models.dbn import DBN
from paperlib.models.potts_rbm import PottsRBM
from paperlib.models.rbm import RBM
from paperlib.surroundings import undisturbed_in

__all__ = ["DBM", "DBN", "RBM", "BernoulliMixture", "MeanField", "PottsRBM", "log_z_lower_bound"]

undisturbed_in(__name__)
