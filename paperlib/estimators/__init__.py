"""Estimators of partition functions and log-probabilities, with reasons not to believe them.

If unsure: `exact_log_z` when the smaller layer has at most 25 units. Otherwise `ais` along a
`BaseRatePath` that starts at the training set's base rates, whose log-probabilities are too high on
average, together with `parallel_tempering` along the same path, which can return to a mode that it
has missed.

An estimator that walks a path is called as `ais(path, betas, num_chains, generator)`. What it
returns has the estimate in nats, its `std_error`, an `interval(level)`, and `warnings`, which
should be read.

======================  =====================================================================
`ais`, `importance`     ln Z from chains that walk from the start of a path to its target
`reverse_ais`           RAISE: ln p(v) from chains that walk back
`tempering`             parallel tempering: ln Z from chains at all temperatures
`exact`                 ln Z by enumeration
`certified`             bounds on ln Z that hold with a stated probability
`control_variates`      an average over all test vectors from a few of them
`bracket`               AIS from above and RAISE from below
`dbn_bound`             the variational bound of a DBN
`csl`                   the average of p(v | h) over states of Gibbs chains
`estimate`              what the results of all of these have in common
`shards`                AIS, RAISE and CSL in parts, for runs that may be interrupted
======================  =====================================================================
"""

from paperlib.estimators.ais import ais as ais
from paperlib.estimators.bracket import Bracket as Bracket
from paperlib.estimators.bracket import BracketVerdict as BracketVerdict
from paperlib.estimators.bracket import bracket as bracket
from paperlib.estimators.bracket import bracket_verdict as bracket_verdict
from paperlib.estimators.certified import certified_lower_bound as certified_lower_bound
from paperlib.estimators.certified import upper_bound_from_reached as upper_bound_from_reached
from paperlib.estimators.control_variates import ControlVariateEstimate as ControlVariateEstimate
from paperlib.estimators.control_variates import control_variate_mean as control_variate_mean
from paperlib.estimators.csl import CSLEstimate as CSLEstimate
from paperlib.estimators.csl import csl_estimate as csl_estimate
from paperlib.estimators.csl import csl_log_prob as csl_log_prob
from paperlib.estimators.csl import csl_run as csl_run
from paperlib.estimators.dbn_bound import DBNBoundEstimate as DBNBoundEstimate
from paperlib.estimators.dbn_bound import dbn_lower_bound as dbn_lower_bound
from paperlib.estimators.estimate import PartitionEstimate as PartitionEstimate
from paperlib.estimators.exact import exact_hidden_samples as exact_hidden_samples
from paperlib.estimators.exact import exact_log_z as exact_log_z
from paperlib.estimators.importance import importance_sampling as importance_sampling
from paperlib.estimators.reverse_ais import ReverseEstimate as ReverseEstimate
from paperlib.estimators.reverse_ais import raise_log_prob as raise_log_prob
from paperlib.estimators.shards import ais_run as ais_run
from paperlib.estimators.shards import raise_run as raise_run
from paperlib.estimators.tempering.bennett import BennettEstimate as BennettEstimate
from paperlib.estimators.tempering.bennett import bennett as bennett
from paperlib.estimators.tempering.tempering import TemperingEstimate as TemperingEstimate
from paperlib.estimators.tempering.tempering import parallel_tempering as parallel_tempering
