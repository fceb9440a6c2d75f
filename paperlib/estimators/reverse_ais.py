"""Reverse AIS (RAISE): a stochastic lower bound on log-probabilities.

The estimator is that of Burda, Grosse & Salakhutdinov (2015), whose equations are cited. Walked
forward, AIS is a generative model: draw x_0 from f_0, move by T_1, ..., T_K, and look at the
visible units at the end. Call its distribution p_ann (eq. 11). It is not the target, but tends to
it as K grows, and unlike the target it has an unbiased estimator: start at the test vector, x_K =
v, walk back through the reversed transitions, x_k drawn from T~_{k+1}( . | x_{k+1}), and compute
the weight (eq. 12)

    w = f_K(v) / Z_0 * prod_{k = K-1 ... 0} f_k(x_k) / f_{k+1}(x_k).

E[w] = p_ann(v), so ln w is too small on average, whereas AIS makes a log-probability too large.
Together they form a bracket. It encloses the target's ln p(v) only to the extent that p_ann and the
target agree: where p_ann fits the data better than the target does, RAISE can exceed the truth.

The kernel that leaves p_{k+1} invariant comes first: Algorithm 2 prints T~_k, which contradicts eq.
12.

Each path defines how to get from v to a state at its end, so this one function covers the paper's
Algorithm 2, Algorithm 3 and section 3.3: on paths for RBMs the hidden units are summed out and v is
the state; a `DBMPath` first heats up h2 with v held fixed; a `DBNPath` draws the directed layers
from the recognition distribution.

Used in chapter: raise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.annealing.path import State
from paperlib.annealing.walk import require_one_for_each_chain, require_ratios, walk
from paperlib.estimators.ais import require_path
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import Estimate, require_finite_log_weights
from paperlib.numerics import (
    effective_sample_size,
    leave_one_out,
    log_mean_exp,
    resolve_generator,
    weighted_mean,
)
from paperlib.threads import OnStep, step_bar
from paperlib.torch_settings import plain_torch
from paperlib.uncertain import Uncertain
from paperlib.validation import ArrayLike, as_binary, require_count


@dataclass(frozen=True, repr=False)
class ReverseEstimate(Estimate):
    """RAISE estimates of ln p_ann(v) for a batch of test vectors.

    Attributes
    ----------
    log_weights : Tensor, shape [N, M]
        ln w of M chains for each of N vectors, float64, in nats; the mean of w is an unbiased
        estimate of p_ann(v).

    Examples
    --------
    >>> import torch
    >>> weights = torch.tensor([[0.2, 0.4], [0.1, 0.1]], dtype=torch.float64)
    >>> estimate = ReverseEstimate(weights.log())
    >>> estimate.log_prob.exp()
    tensor([0.3000, 0.1000], dtype=torch.float64)
    """

    _number = "mean"
    log_weights: Tensor

    def _details(self) -> str:
        vectors, chains = self.log_weights.shape
        return f", {vectors} vectors, {chains} chains each"

    @property
    def log_prob(self) -> Tensor:
        """ln of the mean weight for each vector, float64 [N], on average below ln p_ann(v)."""
        return log_mean_exp(self.log_weights)

    @property
    def mean(self) -> float:
        """Average over the vectors."""
        return self.log_prob.mean().item()

    @property
    def std_error(self) -> float:
        """Standard error of the average, for other vectors and other chains.

        It mostly reflects the spread between vectors, which a control variate removes. Infinite for
        a single vector.
        """
        count = len(self.log_weights)
        return self.log_prob.std().item() / math.sqrt(count) if count > 1 else math.inf

    @property
    def monte_carlo_std_error(self) -> float:
        """Standard error of the average on these particular vectors, from the chains alone.

        Infinite for a single chain.
        """
        return self.average().std_error

    def average(self, weights: Tensor | None = None) -> Uncertain:
        """The average over these particular vectors, with its error from the chains alone.

        Vectors may have weights, [N]. The jackknife over the chains of a vector gives the variance
        of its estimate. The fewer of its chains count, the fewer degrees of freedom that has. The
        variance of the average is a sum over all vectors, and its degrees of freedom are those of
        Satterthwaite (1946).
        """
        chains = self.log_weights.shape[1]
        log_weights = self.log_weights.cpu()
        mean = weighted_mean(self.log_prob.cpu(), weights).item()
        if chains < 2:
            return Uncertain(mean, math.inf, 0.0)
        shares = torch.ones_like(self.log_prob.cpu()) if weights is None else weights
        errors = leave_one_out(log_weights).norm(dim=1) * shares / shares.sum()
        dof = effective_sample_size(log_weights) * (chains - 1) / chains
        std_error = math.hypot(*errors.tolist())
        if std_error == 0:
            return Uncertain(mean)
        inverse_dof = ((errors / std_error) ** 4 / dof).sum().item()
        return Uncertain(mean, std_error, 1 / inverse_dof)


@plain_torch(gradients=False)
def raise_log_prob(
    path: AnnealingPath[Any],
    v: ArrayLike,
    betas: ArrayLike,
    num_chains: int,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    *,
    on_step: OnStep | None = None,
) -> ReverseEstimate:
    """Estimate ln p(v) from below by annealing backwards from each test vector.

    Parameters
    ----------
    path : AnnealingPath
        For example `BaseRatePath(rbm, base_rate_bias(train))`, with `base_rate_bias` from
        `paperlib.datasets`. The partition function of its start must be known, and it must be
        possible to walk it back from a test vector.
    v : array or Tensor, shape [N, D]
        Binary test vectors of any type.
    betas : sequence of K + 1 numbers, or int
        0 = beta_0 < ... < beta_K = 1; use those of the accompanying AIS run. A number K stands for
        `uniform_betas(K)`, K equal steps.
    num_chains : int
        Chains M for each vector.
    generator : torch.Generator or int, optional
        On the path's device, or a seed; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than
        two seconds.
    on_step : callable, optional
        Called with the number of chains that have taken a step (N M K `path.reverse_passes` in
        total), in place of the progress bar.

    Returns
    -------
    ReverseEstimate
        Log-weights of every chain, and the estimates that follow from them.

    Raises
    ------
    InputError
        If `v` is not binary, is empty or has another width; the schedule does not run from 0 to 1;
        `num_chains` is less than 1; the path cannot be walked back or has an unknown partition
        function at its start; or the log-weights overflow.

    Notes
    -----
    Chains run in blocks of `path.chains_per_block`. For models with wide layers on a CPU, the
    blocks run in parallel, in as many threads as torch uses. Memory holds the result, twice while
    its parts are joined, and the states of the blocks in progress. The result does not depend on
    the number of threads.

    In float32 on a CPU chains walk in the model with weights rounded to 16 bits of the largest one,
    and the result is about that model: lower on average, which can only be seen where one weight is
    some thousand times as large as those that matter. In float64 nothing is rounded.

    Examples
    --------
    >>> import torch
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))  # all 2^3 vectors alike
    >>> estimate = raise_log_prob(BaseRatePath(rbm), [[0, 1, 1]], 10, num_chains=5)
    >>> round(estimate.mean / torch.tensor(2.0).log().item(), 6)
    -3.0
    """
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    require_path(path).require_way_back()
    vectors = as_binary("v", v, path.num_visible)
    generator = resolve_generator(generator, path.device)
    total = len(vectors) * num_chains
    title = f"RAISE, {len(vectors)} vectors"
    steps = (len(schedule) - 1) * path.reverse_passes
    with step_bar(total * steps, title, False if on_step else progress) as bar:
        report = bar.update if on_step is None else on_step

        def walk_block(chains: slice, generator: torch.Generator, on_step: OnStep) -> Tensor:
            index = torch.arange(chains.start, chains.stop, device=vectors.device) // num_chains
            return run_reverse_chains(path, vectors[index], schedule, generator, on_step)

        blocks = walk_in_blocks(walk_block, total, path, generator, report)
    return summarize_reverse(torch.cat(blocks).view(len(vectors), num_chains))


def run_reverse_chains(
    path: AnnealingPath[State],
    v: Tensor,
    schedule: Sequence[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> Tensor:
    """The log-weights, float64 [chains], of one block of chains back, one from each row of `v`."""
    state, log_weights = path.begin_reverse(v, schedule, generator, on_step)
    require_one_for_each_chain(path, "begin_reverse", log_weights, len(v))
    require_ratios(path, state, len(v), *schedule[:-3:-1])
    walk(path, path.reverse_steps, state, log_weights, schedule[::-1], generator, on_step)
    return log_weights


def summarize_reverse(log_weights: Tensor) -> ReverseEstimate:
    """The estimate from the log-weights, [N, M], of finished chains."""
    require_finite_log_weights(log_weights)
    return ReverseEstimate(log_weights)
