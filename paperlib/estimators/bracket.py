"""A bracket around an average log-probability: AIS from above, RAISE from below (RAISE paper, section 5).

AIS makes ln Z too small on average, and an average log-probability computed with it too large. RAISE makes it too small, if p_ann
does not fit the data better than the model does. Where the two agree both are right; where they do not, the distance says how
much is in doubt, and more intermediate distributions or a better start have to close it.

RAISE is run for a few test vectors only. Its average over all of them takes ln p*(v), which AIS's side computes anyway, as its
control variate. Served chapter: 08-raise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paperlib.estimators.control_variates import ControlVariateEstimate, control_variate_mean
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import ReverseEstimate
from paperlib.validation import as_float_tensor, require_finite, require_shape


@dataclass(frozen=True)
class Bracket:
    """What AIS and RAISE say of the average ln p(v) over the same test vectors, in nats.

    Attributes
    ----------
    upper : float
        Average ln p*(v) - ln Z-hat of AIS, on average too large.
    upper_interval : tuple of float
        Its ends three standard deviations of Z-hat away; the upper one may be infinite.
    lower : ControlVariateEstimate
        RAISE's average, on average too small if p_ann fits no better than the model.
    warnings : tuple of str
        Those of the AIS estimate.
    vector_gaps : Tensor, shape [n]
        ln p*(v) - ln Z-hat less RAISE's estimate for each vector that RAISE was run for, float64; `gap` is their mean.
    """

    upper: float
    upper_interval: tuple[float, float]
    lower: ControlVariateEstimate
    warnings: tuple[str, ...]
    vector_gaps: Tensor = field(repr=False)

    @property
    def gap(self) -> float:
        """AIS's average less RAISE's; below zero where the two have crossed."""
        return self.upper - self.lower.mean

    @property
    def median_gap(self) -> float:
        """Median over the vectors, far below `gap` if a few of them, to which annealing hardly finds the way, make up most of it."""
        return self.vector_gaps.median().item()

    @property
    def gap_std_error(self) -> float:
        """Standard error of the gap from the chains and from the choice of the vectors that RAISE was run for."""
        return math.hypot((self.upper - self.upper_interval[0]) / 3, self.lower.test_set_std_error)

    def verdict(self, tolerance: float = 1.0) -> str:
        """In a word what the bracket says: `closed`, `open` or `crossed`.

        closed: the two agree within `tolerance` nats, or within three standard errors of their difference. open: AIS is above by
        more. crossed: RAISE is above by more, because the annealing model fits these vectors better than the model itself, or because
        ln p*(v) is itself an estimate that errs low, as for a DBM or a DBN.
        """
        if abs(self.gap) <= max(tolerance, 3 * self.gap_std_error):
            return "closed"
        return "open" if self.gap > 0 else "crossed"


def bracket(
    log_unnormalized: object, chosen: Tensor, above: PartitionEstimate, below: ReverseEstimate
) -> Bracket:
    """The bracket that an AIS run and a RAISE run give together.

    Parameters
    ----------
    log_unnormalized : array or Tensor, shape [N]
        ln p*(v) of all test vectors, in nats: `rbm.log_unnormalized(test)`, or an estimate for a DBN or DBM.
    chosen : Tensor, shape [n]
        Which of the N vectors RAISE was run for, in its order; integers.
    above : PartitionEstimate
        AIS's estimate of ln Z.
    below : ReverseEstimate
        RAISE's estimates for the chosen vectors.

    Raises
    ------
    ValueError
        If a shape does not fit, an index lies outside the N vectors, or a value is not finite.
    """
    everything = as_float_tensor("log_unnormalized", log_unnormalized, torch.float64).cpu()
    require_shape("log_unnormalized", everything, [None])
    require_finite("log_unnormalized", everything)
    require_shape("chosen", chosen, [len(below.log_weights)])
    if not bool(((chosen >= 0) & (chosen < len(everything))).all()):
        raise ValueError(f"chosen: expected indices from 0 to {len(everything) - 1}, got others")
    average = everything.mean().item()
    low, high = above.interval(3)
    of_chosen, log_prob = everything[chosen.cpu()], below.log_prob.cpu()
    return Bracket(
        average - above.log_z,
        (average - high, average - low),
        control_variate_mean(log_prob, of_chosen, everything),
        above.warnings,
        of_chosen - above.log_z - log_prob,
    )
