"""Annealing paths: from a distribution that can be sampled to a model, one beta at a time, and schedules of beta.

If unsure: `base_rate_path(model, train)` with `salakhutdinov_murray_betas()`. The uniform start
(`visible_bias=None`) needs no data and is the classic way to get a wrong answer.
"""

from paperlib.annealing.deep_paths import DBMPath as DBMPath
from paperlib.annealing.deep_paths import DBNPath as DBNPath
from paperlib.annealing.deep_paths import PosteriorPath as PosteriorPath
from paperlib.annealing.path import AnnealingPath as AnnealingPath
from paperlib.annealing.rbm_paths import BaseRatePath as BaseRatePath
from paperlib.annealing.rbm_paths import RBMPairPath as RBMPairPath
from paperlib.annealing.schedules import check_betas as check_betas
from paperlib.annealing.schedules import salakhutdinov_murray_betas as salakhutdinov_murray_betas
from paperlib.annealing.schedules import uniform_betas as uniform_betas
from paperlib.annealing.starts import base_rate_path as base_rate_path
from paperlib.annealing.starts import mean_field_bias as mean_field_bias
from paperlib.annealing.starts import path_to as path_to
from paperlib.annealing.starts import require_own_path as require_own_path
from paperlib.annealing.starts import start_bias as start_bias
