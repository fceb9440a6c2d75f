"""What an estimator returns: an estimate in nats, its error, and reasons not to believe it.

`Estimate` displays a result, `StudentEstimate` gives it an interval, and `PartitionEstimate` is
that of AIS: ln Z from the log-weights of its chains.
"""

from __future__ import annotations

import math
import textwrap
import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.certified import certified_lower_bound
from paperlib.numerics import effective_sample_size, log_mean_exp
from paperlib.uncertain import Uncertain

# The columns that a notebook or a terminal shows.
_WIDTH = 88
# Those after the third appear only in `.warnings`.
_MOST_WARNINGS = 3
MORE_STEPS = "use more betas, or more chains"
UNIFORM_START = (
    "The chains start at uniformly random pixels. Such estimates can be wrong by tens of nats "
    "while their error bars are small; pass base_rate_bias(train) to BaseRatePath."
)


class Estimate:
    """What the results of estimators share: how their number, error and warnings are displayed.

    Examples
    --------
    >>> @dataclass(frozen=True, repr=False)
    ... class FromTwoRuns(Estimate):
    ...     log_z: float
    ...     std_error: float
    ...     warnings: tuple[str, ...] = ()
    ...
    ...     def _details(self) -> str:
    ...         return ", 2 runs"
    >>> FromTwoRuns(1.5, 0.2, ("Run more of them.",))
    FromTwoRuns(log_z = 1.50 +- 0.20 nats, 2 runs)
      warning: Run more of them.
    """

    # The attribute that has the number, whose name is displayed with it.
    _number: ClassVar[str] = "log_z"
    # Some results have these as fields, others compute them.
    std_error: Any
    warnings: Any = ()

    def _details(self) -> str:
        """What is displayed directly after the number."""
        return ""

    def __repr__(self) -> str:
        value = format_estimate(getattr(self, self._number), self.std_error)
        first_line = f"{type(self).__name__}({self._number} = {value}{self._details()})"
        return summary(first_line, self.warnings)


class StudentEstimate(Estimate):
    """An estimate with an interval from Student's t.

    Its error has `degrees_of_freedom`, infinite if the error is known.
    """

    degrees_of_freedom: Any

    @property
    def uncertain(self) -> Uncertain:
        """The number with its error, for sums and differences with independent ones."""
        return Uncertain(getattr(self, self._number), self.std_error, self.degrees_of_freedom)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval (low, high) in nats, meant to hold the true value with this probability.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        return self.uncertain.interval(level)


@dataclass(frozen=True, repr=False)
class PartitionEstimate(StudentEstimate):
    """An estimate of ln Z, or of ln(Z_B / Z_A) for a path between two models.

    Attributes
    ----------
    log_weights : Tensor, shape [M]
        ln w of each chain, float64, in nats; the mean of w is an unbiased estimate of Z (or of the
        ratio). It already includes the path's `log_z_start`.
    final_states : Tensor, shape [M, n]
        The units that the path moves, at the end of each chain: approximate samples from the
        target. They are the visible units of an RBM, v and h2 side by side for a DBM, and h^{L-1}
        for a DBN.
    lower_bound : float or None
        A proven lower bound on the same ln Z, where one is known: an estimate below it is wrong.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which proves nothing.

    Examples
    --------
    >>> log_weights = torch.tensor([1.0, 2.0, 1.5, 1.2], dtype=torch.float64)
    >>> estimate = PartitionEstimate(log_weights, torch.zeros(4, 3))
    >>> estimate
    PartitionEstimate(log_z = 1.50 +- 0.23 nats, 3.4 of 4 chains effective)
    >>> print(", ".join(f"{end:.2f}" for end in estimate.std_interval(1)))
    1.24, 1.71
    >>> print(", ".join(f"{end:.2f}" for end in estimate.interval(0.95)))
    0.66, 2.34
    """

    log_weights: Tensor
    final_states: Tensor
    lower_bound: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def log_z(self) -> float:
        """Logarithm of the mean weight, on average too small by Jensen's inequality.

        Eq. 11 of Salakhutdinov & Murray (2008).
        """
        return log_mean_exp(self.log_weights).item()

    @property
    def relative_std(self) -> float:
        """Estimated standard deviation of the mean weight, divided by the mean (eq. 12).

        Infinite for one chain.
        """
        count = len(self.log_weights)
        if count < 2:
            return math.inf
        weights = torch.exp(self.log_weights - self.log_weights.max())
        return (weights.std() / weights.mean()).item() / math.sqrt(count)

    @property
    def std_error(self) -> float:
        """Standard error of `log_z` in nats, equal to `relative_std` by the delta method.

        Infinite where the effective sample size is below two. One weight then makes up most of
        the mean, and the observed spread of the weights says nothing about their true spread.
        """
        # two equal weights count as two, up to rounding
        enough = self.effective_sample_size > 2 * (1 - 1e-9)
        return self.relative_std if enough else math.inf

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2, between 1 (one weight dominates) and M (all are equal)."""
        return effective_sample_size(self.log_weights).item()

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of the standard error, the effective sample size less one."""
        return self.effective_sample_size - 1

    def interval(self, level: float = 0.95, *, num_std: float | None = None) -> tuple[float, float]:
        """An interval (low, high) in nats, meant to hold the true value with this probability.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.
        num_std : float, optional
            Deprecated: what `std_interval` takes.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        if num_std is not None:
            python_warnings.warn(
                "interval(num_std=...) is now called std_interval(...); "
                "interval takes a probability",
                DeprecationWarning,
                stacklevel=2,
            )
            return self.std_interval(num_std)
        if isinstance(level, int | float) and level >= 1:
            raise InputError(
                f"level: expected a probability between 0 and 1, got {level!r}; "
                f"std_interval({level!r}) has the error bars of so many standard deviations"
            )
        return super().interval(level)

    def std_interval(self, num_std: float = 3.0) -> tuple[float, float]:
        """ln(Z -+ num_std * sigma) in nats, the paper's error bars.

        The lower end is minus infinity when `num_std` standard deviations exceed the mean (the 2008
        paper prints 0.0000 there).
        """
        spread = num_std * self.relative_std
        low = self.log_z + math.log1p(-spread) if spread < 1 else -math.inf
        return low, self.log_z + math.log1p(spread)

    def certified_bound(self, level: float = 0.99) -> float:
        """A lower bound on ln Z that holds with probability `level`.

        It is the larger of the bound from the weights and the proven one. It assumes nothing about
        the chains or the steps except that the weights are independent and unbiased; see
        `certified_lower_bound`.
        """
        bound = certified_lower_bound(self.log_weights, level)
        # Both hold together with this probability, since only the first can fail.
        return bound if self.lower_bound is None else max(bound, self.lower_bound)

    def _details(self) -> str:
        return f", {self.effective_sample_size:.1f} of {len(self.log_weights)} chains effective"


def format_estimate(value: float, std_error: float) -> str:
    """A number in nats with its standard error, as in `12.34 +- 0.05 nats`."""
    if not math.isfinite(std_error):
        return f"{value:.2f} nats, error unknown"
    # two digits of the error, but no more than four and no fewer than two after the point
    digits = 2 if std_error == 0 else min(4, max(2, 1 - math.floor(math.log10(std_error))))
    return f"{value:.{digits}f} +- {std_error:.{digits}f} nats"


def summary(first_line: str, warnings: Sequence[str]) -> str:
    """The text of an estimate: its first line, and one of 88 columns for each of three warnings."""
    notes = [f"warning: {warning}" for warning in warnings[:_MOST_WARNINGS]]
    if len(warnings) > len(notes):
        notes.append(f"and {len(warnings) - len(notes)} more in .warnings")
    lines = [textwrap.shorten(note, _WIDTH - 2, placeholder=" ...") for note in notes]
    return "\n".join([first_line, *(f"  {line}" for line in lines)])


def find_warnings(
    estimate: PartitionEstimate, uniform_start: bool, advice: str = MORE_STEPS
) -> tuple[str, ...]:
    """Reasons not to believe an estimate, each with what was seen and what to do."""
    warnings = []
    count = len(estimate.log_weights)
    low, high = estimate.std_interval(3)
    warnings += below_bound(estimate.log_z, high, estimate.lower_bound)
    if count < 2:
        warnings.append("One chain gives no error estimate; run at least 100.")
    elif low == -math.inf:
        warnings.append(
            f"The weights vary too much: {count} chains are worth "
            f"{estimate.effective_sample_size:.1f}, and three standard deviations of their mean "
            f"exceed it. ln Z is probably too low; {advice}."
        )
    else:
        log_needed = _log_runs_needed(estimate.log_weights)
        if log_needed > math.log(count):
            needed = math.exp(min(log_needed, 99))
            warnings.append(
                f"The log-weights spread so widely that about {needed:.0g} chains "
                f"would be needed to meet the weights that make up Z; there are {count}. ln Z is "
                f"probably too low; {advice}."
            )
    if uniform_start:
        warnings.append(UNIFORM_START)
    return tuple(warnings)


def below_bound(log_z: float, high: float, bound: float | None, more_advice: str = "") -> list[str]:
    """A warning if the interval of an estimate, up to `high`, lies below a proven lower bound."""
    if bound is None or bound <= high:
        return []
    missing = bound - log_z
    nats = f"{missing:.1f}" if missing > 0.1 else f"{missing:.1g}"
    warning = (
        f"The estimate is too low by at least {nats} nats: ln Z is proven to be at least "
        f"{bound:.2f}. The chains missed a mode that holds most of Z; "
        f"start them at the training set's base rates{more_advice}."
    )
    return [warning]


def _log_runs_needed(log_weights: Tensor) -> float:
    """ln of the number of runs that importance sampling needs.

    That number is exp(KL), for the divergence of the target from the proposal. For log-normal
    weights it is exp(s^2 / 2) with s the standard deviation of ln w (Chatterjee & Diaconis 2018).
    Only the spread of the upper half is used, since chains that went astray, with tiny weights, do
    no harm.
    """
    median = log_weights.median()
    return (log_weights[log_weights >= median] - median).square().mean().item() / 2


def require_finite_log_weights(log_weights: Tensor) -> None:
    """Raise an InputError if a log-weight of AIS or RAISE overflowed."""
    if not bool(torch.isfinite(log_weights).all()):
        raise InputError(
            "path: expected finite log-weights, got NaN or infinite ones; "
            "the model's parameters are too large for its floating-point type"
        )
