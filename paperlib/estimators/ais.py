"""Annealed importance sampling (AIS), Neal (2001), as in Salakhutdinov & Murray (2008), section 3.1.

A chain starts at an exact draw of f_0. At every step its weight takes the factor f_{beta_k}(x) / f_{beta_{k-1}}(x), and
then the state moves by a transition that leaves p_{beta_k} invariant. The mean weight estimates Z_1 / Z_0 without bias
for any number of steps; its logarithm is too small on average (Jensen), and a log-probability computed with it is too
large.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from tqdm import tqdm

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.estimators.bounds import log_z_lower_bound
from paperlib.estimators.estimate import PartitionEstimate, find_warnings
from paperlib.numerics import resolve_generator
from paperlib.validation import require_count

# Chains that walk together: enough to keep matrix products efficient, few enough for their states to stay in cache.
_BLOCK_CHAINS = 500


def ais(
    path: AnnealingPath,
    betas: object,
    num_chains: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> PartitionEstimate:
    """Estimate ln Z of the path's target, or ln(Z_B / Z_A) along a path between two models.

    Parameters
    ----------
    path : AnnealingPath
        For example `BaseRatePath(rbm, base_rate_bias(train))`.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1.
    num_chains : int
        Independent runs M; the error falls as 1 / sqrt(M K).
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal and it takes more than two seconds.

    Returns
    -------
    PartitionEstimate
        With M log-weights, the chains' final states and `warnings`, which should be read.

    Raises
    ------
    ValueError
        If the schedule does not run from 0 to 1, there is less than one chain, or the log-weights overflow.

    Notes
    -----
    Chains run in blocks of 500: memory beyond the result is that of 500 chains' states.
    """
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    generator = resolve_generator(generator, path.device)
    blocks = [min(_BLOCK_CHAINS, num_chains - done) for done in range(0, num_chains, _BLOCK_CHAINS)]
    log_weights, final_visible = [], []
    with tqdm(
        total=len(blocks) * (len(schedule) - 1),
        desc=f"AIS, {num_chains} chains",
        unit="step",
        delay=2,
        disable=None if progress is None else not progress,
    ) as bar:
        for size in blocks:
            state = path.sample_start(size, generator)
            block_weights = torch.full(
                (size,), path.log_z_start, dtype=torch.float64, device=path.device
            )
            for beta_from, beta_to in pairwise(schedule):
                block_weights += path.log_ratio(state, beta_from, beta_to)
                state = path.transition(state, beta_to, generator)
                bar.update()
            log_weights.append(block_weights)
            final_visible.append(path.visible(state))
    weights, visible = torch.cat(log_weights), torch.cat(final_visible)
    if not bool(torch.isfinite(weights).all()):
        raise ValueError(
            "path: expected finite log-weights, got NaN or infinite ones; the model's parameters are too large for "
            "its floating-point type"
        )
    bound = None if path.target is None else log_z_lower_bound(path.target, visible)
    estimate = PartitionEstimate(weights, visible, bound)
    return PartitionEstimate(
        weights, visible, bound, find_warnings(estimate, uniform_start=path.uniform_start)
    )
