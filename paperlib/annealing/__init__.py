"""Annealing paths, which lead from a distribution that can be sampled to a model, and schedules.

A path is a family of densities f_beta, with beta from 0 to 1 (Neal 2001; Salakhutdinov & Murray
2008, section 3.1), and a schedule says at which betas an estimator stops on its way. Every
estimator takes the two together: `ais(path, betas, num_chains)`.

If unsure: `base_rate_path(model, train)` with `salakhutdinov_murray_betas()`. The uniform start
(`visible_bias=None`) needs no data and is the classic way to get a wrong answer.

=================  ===================================================================
`path`             the interface: three methods, and defaults for all others
`rbm_paths`        from independent pixels to an RBM, and from one RBM to another
`deep_paths`       to a DBM or a DBN, and to the posterior of their hidden units
`starts`           from a model to its path, and to the start that suits it best
`schedules`        uniform betas, and those of the 2008 paper
`walk`             the walk through a schedule, in threads or as a recorded step
=================  ===================================================================
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
