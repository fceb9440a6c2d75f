"""Variational inference: a posterior found by maximising a lower bound on the evidence over a family of distributions."""

from paperlib.surroundings import undisturbed_in
from paperlib.variational.elbo import evidence_lower_bound, factorial_log_probs, kl_divergence
from paperlib.variational.em import learn_sparse_coding
from paperlib.variational.learned_ista import ThresholdNetwork, ista, learn_ista
from paperlib.variational.log_z.pairs import bethe_log_z, tree_reweighted_log_z
from paperlib.variational.log_z.units import LogZApproximation, mean_field_log_z, tap_log_z
from paperlib.variational.map_inference import learn_dictionary, map_codes
from paperlib.variational.mean_field import (
    MeanFieldTrace,
    block_mean_field,
    largest_stable_step,
    mean_field,
)
from paperlib.variational.recognition import Network, ascend
from paperlib.variational.wake_sleep import RecognitionWeights, sleep_step, wake_sleep, wake_step

__all__ = [
    "LogZApproximation",
    "MeanFieldTrace",
    "Network",
    "RecognitionWeights",
    "ThresholdNetwork",
    "ascend",
    "bethe_log_z",
    "block_mean_field",
    "evidence_lower_bound",
    "factorial_log_probs",
    "ista",
    "kl_divergence",
    "largest_stable_step",
    "learn_dictionary",
    "learn_ista",
    "learn_sparse_coding",
    "map_codes",
    "mean_field",
    "mean_field_log_z",
    "sleep_step",
    "tap_log_z",
    "tree_reweighted_log_z",
    "wake_sleep",
    "wake_step",
]

undisturbed_in(__name__)
