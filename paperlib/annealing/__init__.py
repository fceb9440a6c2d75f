"""Annealing paths: from a distribution that can be sampled to a model, one beta at a time, and schedules of beta.

If unsure: `base_rate_path(model, train)` with `salakhutdinov_murray_betas()`. The uniform start
(`visible_bias=None`) needs no data and is the classic way to get a wrong answer.
"""

from paperlib.annealing.deep_paths import DBMPath, DBNPath, PosteriorPath
from paperlib.annealing.path import AnnealingPath
from paperlib.annealing.potts_path import PottsPath
from paperlib.annealing.rbm_paths import BaseRatePath, RBMPairPath
from paperlib.annealing.schedules import check_betas, salakhutdinov_murray_betas, uniform_betas
from paperlib.annealing.starts import base_rate_path, mean_field_bias, path_to, start_bias
from paperlib.surroundings import undisturbed_in

__all__ = [
    "AnnealingPath",
    "BaseRatePath",
    "DBMPath",
    "DBNPath",
    "PosteriorPath",
    "PottsPath",
    "RBMPairPath",
    "base_rate_path",
    "check_betas",
    "mean_field_bias",
    "path_to",
    "salakhutdinov_murray_betas",
    "start_bias",
    "uniform_betas",
]

undisturbed_in(__name__, gradients=False)
