"""Estimators: partition functions and log-probabilities, with the diagnostics that tell when not to believe them.

If unsure: `exact_log_z` when the smaller layer has at most 25 units, otherwise `ais` along a `BaseRatePath` that starts
at the training set's base rates.
"""

from paperlib.estimators.ais import ais
from paperlib.estimators.bounds import log_z_lower_bound
from paperlib.estimators.dbn_bound import DBNBoundEstimate, dbn_lower_bound
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.exact import exact_hidden_samples, exact_log_z
from paperlib.estimators.importance import importance_sampling
from paperlib.estimators.shards import ais_in_shards

__all__ = [
    "DBNBoundEstimate",
    "PartitionEstimate",
    "ais",
    "ais_in_shards",
    "dbn_lower_bound",
    "exact_hidden_samples",
    "exact_log_z",
    "importance_sampling",
    "log_z_lower_bound",
]
