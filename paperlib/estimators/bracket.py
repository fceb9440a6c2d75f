"""A bracket around an average log-probability: AIS from above, RAISE from below.

The idea is that of the RAISE paper, section 5. AIS makes ln Z too small on average, and
therefore an average log-probability too large. RAISE makes the latter too small, unless p_ann fits
the data better than the model does. Where the two agree, both are right. Where they do not, their
distance says how much is in doubt, and closing it takes more intermediate distributions or a better
start.

RAISE is run for only a few test vectors. Its average over all of them uses ln p*(v), which the AIS
side computes anyway, as a control variate. Used in chapter: raise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.control_variates import ControlVariateEstimate, control_variate_mean
from paperlib.estimators.estimate import PartitionEstimate, format_estimate, summary
from paperlib.estimators.reverse_ais import ReverseEstimate
from paperlib.numerics import weighted_mean
from paperlib.uncertain import Uncertain
from paperlib.validation import DOUBLE, ArrayLike, as_tensor, parameter, require_shape

#: With a larger standard error, three standard deviations of Z-hat exceed Z-hat itself: AIS's
#: chains are worth fewer than nine.
LARGEST_ERROR = 1 / 3
# The level at which a normal distribution has three standard deviations to either side.
_LEVEL = math.erf(3 / math.sqrt(2))


class BracketVerdict(StrEnum):
    """What can be said of a bracket: see `bracket_verdict`.

    Examples
    --------
    >>> print(*BracketVerdict, sep=", ")
    closed, open, crossed, cannot tell
    """

    CLOSED = "closed"
    OPEN = "open"
    CROSSED = "crossed"
    CANNOT_TELL = "cannot tell"


def bracket_verdict(
    gap: Uncertain, ais_std_error: float = 0.0, tolerance: float = 1.0
) -> BracketVerdict:
    """What the gap of a bracket says: `closed`, `open`, `crossed` or `cannot tell`.

    The gap is AIS's average less RAISE's, with its sign. The verdict is that of the interval of
    the gap, and not of the gap. The interval has three standard errors to either side, or more
    where the error has few degrees of freedom: by Student's t, at the same level of 99.73 %.

    - `closed`: the whole interval is within `tolerance` of zero. The two ends agree.
    - `open`: the whole interval is above `tolerance`.
    - `crossed`: the whole interval is below `-tolerance`. Either the annealing model fits these
      vectors better than the model itself, or ln p*(v) is itself an estimate that errs low, as for
      a DBM or a DBN.
    - `cannot tell`: one of the two limits is inside the interval; the gap or its error is missing
      or not finite; or AIS's own error is above `LARGEST_ERROR`: so few effective chains know
      neither their own error nor what longer annealing would find.

    So a larger error or fewer degrees of freedom can only turn another verdict into `cannot tell`.

    Parameters
    ----------
    gap : Uncertain
        AIS's average less RAISE's, in nats; NaN if it is missing, and with an error that is NaN or
        infinite if that is missing.
    ais_std_error : float
        AIS's part of the error.
    tolerance : float
        How far the two ends may be apart, in nats; by default the nat within which the RAISE paper
        says that they agree.

    Examples
    --------
    >>> print(*(bracket_verdict(Uncertain(gap, 0.2)) for gap in (0.3, 1.7, -1.7, 1.3)), sep=", ")
    closed, open, crossed, cannot tell
    """
    if not (math.isfinite(gap.value) and ais_std_error <= LARGEST_ERROR):
        return BracketVerdict.CANNOT_TELL
    # An error that is not finite leaves no comparison true.
    low, high = gap.interval(_LEVEL)
    if low > tolerance:
        return BracketVerdict.OPEN
    if high < -tolerance:
        return BracketVerdict.CROSSED
    if -tolerance <= low and high <= tolerance:
        return BracketVerdict.CLOSED
    return BracketVerdict.CANNOT_TELL


@dataclass(frozen=True)
class Bracket:
    """What AIS and RAISE say about the average ln p(v) over the same test vectors, in nats.

    Attributes
    ----------
    upper : float
        Average ln p*(v) - ln Z-hat from AIS; too large on average.
    upper_interval : tuple of float
        Interval for `upper`, three standard deviations of Z-hat in each direction; its upper end
        may be infinite.
    upper_std_error : float
        Standard error of `upper`, the same as that of ln Z-hat; infinite where AIS's chains are
        worth fewer than two.
    effective_chains : float
        How many chains AIS's estimate is worth, its effective sample size.
    lower : ControlVariateEstimate
        RAISE's average; too small on average if p_ann fits no better than the model.
    warnings : tuple of str
        Those of the AIS estimate.
    vector_gaps : Tensor, shape [n]
        ln p*(v) - ln Z-hat minus RAISE's estimate for each vector that RAISE was run for, float64;
        `gap` is their weighted mean.
    vector_weights : Tensor, shape [n], or None
        Weights of these vectors; None if all count equally.

    Examples
    --------
    >>> from paperlib.estimators import PartitionEstimate
    >>> above = PartitionEstimate(torch.zeros(40).double(), torch.zeros(40, 1))
    >>> below = ReverseEstimate(torch.tensor([[-1.0, -1.0], [-2.0, -2.0]]).double())
    >>> both = bracket([-0.5, -1.5, -1.0], [0, 1], above, below)
    >>> both
    Bracket(upper -1.00 +- 0.00 nats; lower -1.50 +- 0.00 nats)
    >>> print(both.gap, both.verdict(tolerance=0.1))
    0.5 open
    """

    upper: float
    upper_interval: tuple[float, float]
    upper_std_error: float
    effective_chains: float
    lower: ControlVariateEstimate
    warnings: tuple[str, ...]
    vector_gaps: Tensor = field(repr=False)
    vector_weights: Tensor | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        upper = format_estimate(self.upper, self.upper_std_error)
        lower = format_estimate(self.lower.mean, self.lower.test_set_std_error)
        return summary(f"Bracket(upper {upper}; lower {lower})", self.warnings)

    @property
    def gap(self) -> float:
        """AIS's average minus RAISE's; negative where the two have crossed."""
        return self.uncertain_gap.value

    @property
    def median_gap(self) -> float:
        """Median over the vectors; far below `gap` if a few vectors make up most of that.

        Those are vectors that annealing hardly ever reaches.
        """
        return self.vector_gaps.median().item()

    @property
    def gap_std_error(self) -> float:
        """Standard error of the gap, from the chains and from the choice of RAISE's vectors.

        Infinite where AIS's standard error is.
        """
        return self.uncertain_gap.std_error

    @property
    def upper_slack(self) -> float:
        """How much too high `upper` may be by chance, which is how far its interval reaches down.

        Zero where the error is not known, since an unknown error excuses nothing.
        """
        if not math.isfinite(self.upper_std_error):
            return 0.0
        return self.upper - self.upper_interval[0]

    @property
    def uncertain_gap(self) -> Uncertain:
        """`gap` with its standard error and the degrees of freedom of that."""
        upper = Uncertain(self.upper, self.upper_std_error, self.effective_chains - 1)
        return upper - self.lower.uncertain

    def verdict(self, tolerance: float = 1.0) -> BracketVerdict:
        """What the gap says, by `bracket_verdict`: `closed`, `open`, `crossed` or `cannot tell`."""
        return bracket_verdict(self.uncertain_gap, self.upper_std_error, tolerance)


def bracket(
    log_unnormalized: ArrayLike,
    chosen: ArrayLike,
    above: PartitionEstimate,
    below: ReverseEstimate,
    weights: ArrayLike | None = None,
) -> Bracket:
    """The bracket that an AIS run and a RAISE run give together.

    Parameters
    ----------
    log_unnormalized : array or Tensor, shape [N]
        ln p*(v) of all test vectors, in nats: `rbm.log_unnormalized(test)`, or an estimate for a
        DBN or DBM.
    chosen : array or Tensor, shape [n]
        Which of the N vectors RAISE was run for, in its order; integers.
    above : PartitionEstimate
        AIS's estimate of ln Z.
    below : ReverseEstimate
        RAISE's estimates for the chosen vectors.
    weights : array or Tensor, shape [N], optional
        Weights of the vectors, all above zero; by default all count equally.

    Raises
    ------
    InputError
        If a shape does not fit, an index lies outside the N vectors, or a value is not finite.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.estimators import ais, raise_log_prob
    >>> from paperlib.models import RBM
    >>> from paperlib.numerics import seeded_generator
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> path = BaseRatePath(rbm)
    >>> v = torch.eye(3)
    >>> betas = uniform_betas(200)
    >>> above = ais(path, betas, 100, seeded_generator(0))
    >>> below = raise_log_prob(path, v[:2], betas, 50, seeded_generator(1))
    >>> print(bracket(rbm.log_unnormalized(v), [0, 1], above, below).verdict())
    closed
    """
    log_unnormalized = parameter("log_unnormalized", log_unnormalized, [None], DOUBLE)
    count = len(log_unnormalized)
    chosen = as_tensor("chosen", chosen).cpu()
    require_shape("chosen", chosen, [len(below.log_weights)])
    if chosen.is_floating_point() or chosen.dtype == torch.bool:
        raise InputError(f"chosen: expected whole numbers, got {chosen.dtype}")
    if not bool(((chosen >= 0) & (chosen < count)).all()):
        raise InputError(f"chosen: expected indices from 0 to {count - 1}, got others")
    index = chosen.long()
    all_weights = None
    chosen_weights = None
    if weights is not None:
        all_weights = parameter("weights", weights, [count], DOUBLE)
        chosen_weights = all_weights[index]
    average = weighted_mean(log_unnormalized, all_weights).item()
    low, high = above.std_interval(3)
    chosen_values = log_unnormalized[index]
    lower = control_variate_mean(
        below,
        chosen_values,
        log_unnormalized,
        batch_weights=chosen_weights,
        all_weights=all_weights,
    )
    return Bracket(
        upper=average - above.log_z,
        upper_interval=(average - high, average - low),
        upper_std_error=above.std_error,
        effective_chains=above.effective_sample_size,
        lower=lower,
        warnings=above.warnings,
        vector_gaps=chosen_values - above.log_z - below.log_prob.cpu(),
        vector_weights=chosen_weights,
    )
