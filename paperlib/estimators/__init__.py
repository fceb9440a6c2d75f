"""Estimators of partition functions and log-probabilities, with diagnostics that tell when not to believe them.

If unsure: `exact_log_z` when the smaller layer has at most 25 units. Otherwise `ais` along a `BaseRatePath` that starts at the training
set's base rates, whose log-probabilities are too high on average, together with `parallel_tempering` along the same path, which can
return to a mode that it has missed.
"""

from paperlib.estimators.ais import ais
from paperlib.estimators.bracket import Bracket, bracket, bracket_verdict
from paperlib.estimators.certified import (
    certified_lower_bound,
    upper_bound_from_reached,
)
from paperlib.estimators.control_variates import ControlVariateEstimate, control_variate_mean
from paperlib.estimators.csl import CSLEstimate, csl_estimate, csl_log_prob, csl_run
from paperlib.estimators.dbn_bound import DBNBoundEstimate, dbn_lower_bound
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.exact import exact_hidden_samples, exact_log_z
from paperlib.estimators.importance import importance_sampling
from paperlib.estimators.reverse_ais import ReverseEstimate, raise_log_prob
from paperlib.estimators.shards import ais_run, raise_run
from paperlib.estimators.smc.smc import SMCEstimate, smc
from paperlib.estimators.tempering.bennett import BennettEstimate, bennett
from paperlib.estimators.tempering.tempering import TemperingEstimate, parallel_tempering
from paperlib.surroundings import undisturbed_in

__all__ = [
    "BennettEstimate",
    "Bracket",
    "CSLEstimate",
    "ControlVariateEstimate",
    "DBNBoundEstimate",
    "PartitionEstimate",
    "ReverseEstimate",
    "SMCEstimate",
    "TemperingEstimate",
    "ais",
    "ais_run",
    "bennett",
    "bracket",
    "bracket_verdict",
    "certified_lower_bound",
    "control_variate_mean",
    "csl_estimate",
    "csl_log_prob",
    "csl_run",
    "dbn_lower_bound",
    "exact_hidden_samples",
    "exact_log_z",
    "importance_sampling",
    "parallel_tempering",
    "raise_log_prob",
    "raise_run",
    "smc",
    "upper_bound_from_reached",
]


undisturbed_in(__name__, gradients=False)
