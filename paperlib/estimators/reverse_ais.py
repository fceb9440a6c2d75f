"""Reverse AIS (RAISE), Burda, Grosse & Salakhutdinov (2015): a stochastic lower bound on log-probabilities.

AIS walked forward is a generative model: draw x_0 from f_0, move by T_1, ..., T_K, and look at the visible units at the end.
Call its distribution p_ann (eq. 11). It is not the target, but tends to it as K grows, and unlike the target it has an unbiased
estimator: start at the test vector, walk back through the reversed transitions, and weigh (eq. 12)

    w = f_K(v) / Z_0 * prod_{k = K-1 ... 0} f_k(x_k) / f_{k+1}(x_k),      x_K = v,   x_k drawn from T~_{k+1}( . | x_{k+1}).

E[w] = p_ann(v), so that ln w is too small on average, where AIS makes a log-probability too large. The two together are a
bracket. It is one around ln p_ann and the target's ln p(v) only as far as the two agree: where p_ann fits the data better
than the target does, RAISE can exceed the truth.

The kernel that leaves p_{k+1} invariant comes first: Algorithm 2 prints T~_k, which eq. 12 contradicts.

How to get from v to a state at the end of the path is the path's business, so that this one function is the paper's Algorithm 2,
its Algorithm 3 and its section 3.3: on paths for RBMs the hidden units are summed out and v is the state; a `DBMPath` first heats
up h2 with v held fixed; a `DBNPath` draws the directed layers from the recognition distribution.

Served chapter: 08-raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.annealing import ReversiblePath, check_betas
from paperlib.annealing.path import State
from paperlib.annealing.walk import walk
from paperlib.estimators.blocks import count_blocks, step_bar, walk_in_blocks
from paperlib.estimators.estimate import require_finite_log_weights
from paperlib.numerics import Beta, log_mean_exp, resolve_generator
from paperlib.validation import require_binary, require_count, require_shape


@dataclass(frozen=True)
class ReverseEstimate:
    """RAISE estimates of ln p_ann(v) for a batch of test vectors.

    Attributes
    ----------
    log_weights : Tensor, shape [N, M]
        ln w of M chains for each of N vectors, float64, in nats; the mean of w is an unbiased estimate of p_ann(v).
    """

    log_weights: Tensor

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
        """Standard error of the average, for other vectors and other chains; infinite for a single vector.

        Mostly the spread between vectors, which a control variate removes.
        """
        count = len(self.log_weights)
        return self.log_prob.std().item() / math.sqrt(count) if count > 1 else math.inf

    @property
    def monte_carlo_std_error(self) -> float:
        """Standard error of the average on these very vectors, from the chains alone; infinite for a single chain.

        Too small where the weights vary much: a few chains cannot show the weights that they have not met.
        """
        vectors, chains = self.log_weights.shape
        if chains < 2:
            return math.inf
        weights = torch.exp(self.log_weights - self.log_weights.amax(1, keepdim=True))
        relative_variance = weights.var(1) / weights.mean(1).square() / chains
        return math.sqrt(relative_variance.sum().item()) / vectors


def raise_log_prob(
    path: ReversiblePath,
    v: Tensor,
    betas: object,
    num_chains: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> ReverseEstimate:
    """Estimate ln p(v) from below by annealing backwards from each test vector.

    Parameters
    ----------
    path : ReversiblePath
        For example `BaseRatePath(rbm, base_rate_bias(train))`: one whose start has a known partition function.
    v : Tensor, shape [N, D]
        Binary test vectors of any type.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1; use those of the AIS run beside it.
    num_chains : int
        Chains M for each vector.
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal and it takes more than two seconds.

    Returns
    -------
    ReverseEstimate
        Log-weights of every chain, and what follows from them.

    Raises
    ------
    ValueError
        If `v` is not binary, is empty or has another width; the schedule does not run from 0 to 1; there is less than one
        chain; the path has no reverse transition or an unknown partition function at its start; or the log-weights overflow.

    Notes
    -----
    Chains run in blocks: on a CPU of at most 500, side by side in torch's number of threads, on a GPU of 20,000. Memory beyond the
    result is that of the states of the blocks in flight, whatever N and K are. The result does not depend on the number of threads.
    """
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    require_reversible(path)
    require_shape("v", v, [None, path.num_visible])
    require_binary("v", v)
    generator = resolve_generator(generator, path.device)
    total = (
        count_blocks(len(v) * num_chains, path.num_visible, path.device)
        * (len(schedule) - 1)
        * path.reverse_passes
    )
    with step_bar(total, f"RAISE, {len(v)} vectors", progress) as bar:
        log_weights = run_all_reverse_chains(path, v, schedule, num_chains, generator, bar.update)
    return summarize_reverse(log_weights)


def run_all_reverse_chains(
    path: ReversiblePath,
    v: Tensor,
    schedule: Sequence[float],
    num_chains: int,
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> Tensor:
    """`run_reverse_chains` with `num_chains` for each `v` [N, D], in blocks: log-weights [N, num_chains]."""

    def walk(chains: slice, generator: torch.Generator, on_step: Callable[[], object]) -> Tensor:
        vectors = torch.arange(chains.start, chains.stop, device=v.device) // num_chains
        return run_reverse_chains(path, v[vectors], schedule, generator, on_step)

    blocks = walk_in_blocks(walk, len(v) * num_chains, path.num_visible, generator, on_step)
    return torch.cat(blocks).view(len(v), num_chains)


def require_reversible(path: object) -> None:
    """Raise unless RAISE can walk this path."""
    missing = [name for name in ("begin_reverse", "reverse_transition") if not hasattr(path, name)]
    if missing:
        raise ValueError(
            f"path: expected one that can be walked back from a test vector, got {type(path).__name__} without "
            f"{', '.join(missing)}"
        )
    if path.target is None:
        raise ValueError(
            "path: expected one whose start has a known partition function, such as BaseRatePath, got "
            f"{type(path).__name__} between two models"
        )


def run_reverse_chains(
    path: ReversiblePath,
    v: Tensor,
    schedule: Sequence[float],
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> Tensor:
    """Walk one block of chains back, one from each row of `v`; their log-weights, float64 [chains]."""
    state, log_weights = path.begin_reverse(v, schedule, generator, on_step)

    def step(state: State, log_weights: Tensor, beta_from: Beta, beta_to: Beta) -> State:
        state = path.reverse_transition(state, beta_from, generator)
        log_weights += path.log_ratio(state, beta_from, beta_to)
        return state

    walk(step, state, log_weights, schedule[::-1], generator, on_step)
    return log_weights


def summarize_reverse(log_weights: Tensor) -> ReverseEstimate:
    """The estimate that finished chains give, [N, M].

    Raises
    ------
    ValueError
        If the log-weights overflowed.
    """
    require_finite_log_weights(log_weights)
    return ReverseEstimate(log_weights)
