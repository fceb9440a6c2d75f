"""AIS walked both ways: an estimate from below, an estimate from above, and Bennett's estimate between them.

Forward log-weights l come from AIS. Reverse log-weights r come from the same walk taken backwards, starting at draws from the target.
The distributions of the two are related: p_F(l) = e^{ln Z - l} p_R(l) (Crooks 1999). So

    E_F[e^l] = Z,      E_R[e^{-r}] = 1 / Z,

and by Jensen's inequality ln mean e^l is on average too small, and -ln mean e^{-r} too large (Grosse, Ghahramani & Adams 2015). Bennett's
ratio over both (`paperlib.estimators.tempering.bennett`) has the smallest error that these weights allow.

The estimate from above is valid only for draws from the target itself, such as those of `paperlib.estimators.parallel_tempering`. Data
are not such draws, nor are the ends of AIS's own chains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.annealing.walk import walk_moving_first
from paperlib.estimators.ais import ais
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import (
    Estimate,
    PartitionEstimate,
    require_finite_log_weights,
)
from paperlib.estimators.reverse_ais import require_steps_back
from paperlib.estimators.tempering.bennett import BennettEstimate, bennett
from paperlib.mcmc.series import batch_means
from paperlib.numerics import log_mean_exp, resolve_generator, student_quantile
from paperlib.renamed import renamed
from paperlib.threads import OnStep, step_bar
from paperlib.validation import (
    DOUBLE,
    ArrayLike,
    as_tensor,
    parameter,
    require_count,
    require_shape,
)


@renamed(num_blocks="num_batches")
@dataclass(frozen=True, repr=False)
class TwoSidedEstimate(Estimate):
    """Estimates of one ln Z from both sides.

    Attributes
    ----------
    forward : Tensor, shape [M]
        AIS's log-weights, float64, in nats.
    reverse : Tensor, shape [n]
        Log-weights of the walks back; the mean of e^{-r} is an unbiased estimate of 1 / Z for exact draws.
    num_batches : int or None
        Number of batches in time that the draws are cut into; None: the draws are independent.

    Examples
    --------
    >>> weights = torch.tensor([1.0, 1.5], dtype=torch.float64)
    >>> estimate = TwoSidedEstimate(weights, weights + 1)
    >>> estimate.lower < estimate.log_z < estimate.upper
    True
    """

    forward: Tensor
    reverse: Tensor
    num_batches: int | None = None

    @property
    def lower(self) -> float:
        """AIS's estimate, ln of the mean of e^l, on average too small."""
        return log_mean_exp(self.forward).item()

    @property
    def upper(self) -> float:
        """Minus ln of the mean of e^{-r}, on average too large, if the draws are from the target."""
        return -log_mean_exp(-self.reverse).item()

    @cached_property
    def bennett(self) -> BennettEstimate:
        """Bennett's estimate from both directions."""
        return bennett(self.forward, -self.reverse, num_batches=self.num_batches)

    @property
    def log_z(self) -> float:
        """Bennett's estimate of ln Z, in nats."""
        return self.bennett.log_ratio

    @property
    def std_error(self) -> float:
        """Standard error of `log_z`."""
        return self.bennett.std_error

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """From `lower` minus its error to `upper` plus its error at this level: wide where the walks are too short.

        An end is infinite where the weights behind it have an effective sample size below two.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        below, above = (
            self._side_error(logs, batches)
            for logs, batches in ((self.forward, None), (-self.reverse, self.num_batches))
        )
        freedom = math.inf if self.num_batches is None else self.num_batches - 1
        low = self.lower - student_quantile(level, math.inf) * below
        return low, self.upper + student_quantile(level, freedom) * above

    @staticmethod
    def _side_error(log_weights: Tensor, batches: int | None) -> float:
        if batches is None:
            return PartitionEstimate(log_weights, log_weights[:, None]).std_error
        weights = torch.exp(log_weights - log_weights.max())
        means = batch_means(weights, batches)
        return (means.std() / weights.mean()).item() / math.sqrt(batches)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to believe the estimate."""
        low, high = self.interval(0.997)
        crossed = (
            "The estimate from below exceeds the one from above by more than their errors allow: the draws are not the target's, or "
            "the walks forward missed what the draws know."
        )
        return (*self.bennett.warnings, *((crossed,) if low > high else ()))

    def _details(self) -> str:
        return f", {self.lower:.2f} from below, {self.upper:.2f} from above"


@renamed(num_blocks="num_batches")
def two_sided_ais(
    path: AnnealingPath[Any],
    betas: ArrayLike,
    draws: ArrayLike,
    num_chains: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
    *,
    forward: ArrayLike | None = None,
    num_batches: int | None = None,
) -> TwoSidedEstimate:
    """Estimate ln Z of the path's target, or ln(Z_1 / Z_0), from below and from above.

    Parameters
    ----------
    path : AnnealingPath
        A path that can be walked back (`reversible`) and can start at given units (`state_at`).
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1, for both directions.
    draws : array or Tensor, shape [n, D]
        Draws from the target, such as `parallel_tempering(path).samples`: the units that the path moves. One walk back starts at each.
    num_chains : int, optional
        Walks forward; None: as many as there are draws.
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than two seconds.
    forward : array or Tensor, shape [M], optional
        Log-weights of AIS along the same path with the same betas, in place of walks forward.
    num_batches : int, optional
        For dependent draws, in the order of time: the number of batches that they are cut into to estimate the error, as for `bennett`.
        None: the draws are independent.

    Returns
    -------
    TwoSidedEstimate
        With `log_z` from Bennett's estimate, `lower`, `upper`, and `interval(level)`.

    Raises
    ------
    InputError
        If an argument is not as described, the path cannot be walked back, or the log-weights overflow.

    Examples
    --------
    >>> import torch
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.estimators import exact_hidden_samples, exact_log_z
    >>> from paperlib.models import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 3.0]], [0.0, 0.0], [0.0, 0.0])
    >>> generator = torch.Generator().manual_seed(0)
    >>> draws, _ = exact_hidden_samples(rbm, 100, generator)
    >>> estimate = two_sided_ais(BaseRatePath(rbm), uniform_betas(10), draws, generator=generator)
    >>> abs(estimate.log_z - exact_log_z(rbm)) < 0.1
    True
    """
    require_steps_back(path)
    schedule = check_betas(betas).tolist()
    units = as_tensor("draws", draws)
    require_shape("draws", units, [None, None])
    generator = resolve_generator(generator, path.device)
    if num_batches is not None:
        require_count("num_batches", num_batches, 2)
    if forward is None:
        count = len(units) if num_chains is None else require_count("num_chains", num_chains)
        forward_weights = ais(path, schedule, count, generator, progress, check=False).log_weights
    else:
        forward_weights = parameter("forward", forward, [None], DOUBLE)
    steps = max(1, len(schedule) - 2)
    with step_bar(len(units) * steps, f"AIS back, {len(units)} chains", progress) as bar:

        def walk_block(chains: slice, generator: torch.Generator, on_step: OnStep) -> Tensor:
            return _run_chains_back(path, units[chains], schedule, generator, on_step)

        blocks = walk_in_blocks(walk_block, len(units), path, generator, bar.update)
    reverse = torch.cat(blocks)
    require_finite_log_weights(reverse)
    return TwoSidedEstimate(forward_weights.to(reverse.device), reverse, num_batches)


def _run_chains_back(
    path: AnnealingPath[Any],
    units: Tensor,
    schedule: list[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> Tensor:
    """Walk one block of chains back to the start, from draws from the target; returns their log-weights r, float64 [chains].

    The draws take the place of the states after AIS's last weight but before its last transition, on which no weight depends.
    """
    state = path.state_at(units)
    # As in `ais`, the first and the last distributions are exactly those of the models.
    log_weights = path.log_ratio(state, 1.0, schedule[-2])
    log_weights -= path.end_correction(state, 1)
    back = path.reverse_transition
    state = walk_moving_first(path, back, state, log_weights, schedule[-2::-1], generator, on_step)
    log_weights += path.end_correction(state, 0)
    return (path.log_z_start or 0.0) - log_weights
