"""Numbers with a standard error, and the one rule by which errors are joined.

A standard error is itself an estimate. Its degrees of freedom say how well it is known, and
Student's t says how many standard errors an interval then has to either side. Every estimate
of this library, every average, bracket and comparison is such a number; sums and differences of
independent ones are again such numbers.

The error of a sum is the root of the sum of squares. Its degrees of freedom have no exact answer
where the parts' differ (the problem of Behrens and Fisher). Here they are

    dof = s min_i (dof_i / s_i),        s^2 = sum_i s_i^2,

so that an error has its own degrees of freedom where it is the only one, and more where it is a
small part of the whole. The order in which numbers are added does not matter.

The rule was chosen by counting how often intervals of 95 % hold sums of two and of three parts with
1, 2, 5, 20 and infinitely many degrees of freedom, whose true standard deviations differ by up to 9
times (`tests/test_uncertain.py`). They do in

===============================================  ==============  =================  ==============
rule                                             any dof         dof of at least 2  of at least 5
===============================================  ==============  =================  ==============
this one                                         93.5 to 99.6 %  95.0 to 98.7 %     95.0 to 97.0 %
Welch and Satterthwaite                          87.4 to 98.2 %  92.2 to 96.7 %     94.4 to 95.4 %
root of the sum of squared quantiles (Banerjee)  95.0 to 99.9 %  95.0 to 99.5 %     95.0 to 97.9 %
===============================================  ==============  =================  ==============

Welch's rule errs on the wrong side where one part with a single degree of freedom dominates: by
chance that part looks small, and then the rule forgets how badly it is known. Banerjee's never does
(that is a theorem), but its intervals are too wide, and its degrees of freedom depend on the level.
Where several parts have a single degree of freedom, the intervals of this rule are too wide rather
than too narrow, since the errors of all parts are seldom too small at once.

An error with fewer than four degrees of freedom is better known as a part of a sum than alone, so
much so that the interval of the sum can be the narrower one.

The rule is for a few numbers, each with an error of its own. The variance of one average over many
cases, such as RAISE's over a hundred images, is a single estimate with many degrees of freedom,
which Satterthwaite's rule counts (`paperlib.estimators.ReverseEstimate.average`).

Examples
--------
>>> Uncertain(3.0, 0.3, dof=9) - Uncertain(1.0, 0.4, dof=20)
Uncertain(value=2.0, std_error=0.5, dof=15.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from paperlib.numerics import student_quantile


@dataclass(frozen=True)
class Uncertain:
    """A number with its standard error.

    Attributes
    ----------
    value : float
        The number.
    std_error : float
        Its standard error, in the same unit; infinite where it is unknown, and 0 where the number
        is exact.
    dof : float
        The degrees of freedom of the standard error, infinite where that is known.

    Examples
    --------
    >>> print("{:.2f} to {:.2f}".format(*Uncertain(1.0, 0.1, dof=9).interval(0.95)))
    0.77 to 1.23
    """

    value: float
    std_error: float = 0.0
    dof: float = math.inf

    def __getitem__(self, index: int) -> float:
        """Value, standard error or degrees of freedom by number; this also unpacks all three."""
        return (self.value, self.std_error, self.dof)[index]

    def __add__(self, other: Uncertain) -> Uncertain:
        """The sum of two independent numbers."""
        return total((self, other))

    def __sub__(self, other: Uncertain) -> Uncertain:
        """The difference of two independent numbers."""
        return total((self, -other))

    def __neg__(self) -> Uncertain:
        return replace(self, value=-self.value)

    def shifted(self, by: float) -> Uncertain:
        """The number plus a constant, with the same error."""
        return replace(self, value=self.value + by)

    def scaled(self, factor: float) -> Uncertain:
        """The number times a constant."""
        return replace(self, value=factor * self.value, std_error=abs(factor) * self.std_error)

    def interval(
        self, level: float = 0.95, *, too_low: float = 0.0, too_high: float = 0.0
    ) -> tuple[float, float]:
        """An interval (low, high) from Student's t, meant to hold the true number at this level.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.
        too_low, too_high : float
            By how much the value may in addition be too low and too high, which widens the interval
            at one end each.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        quantile = student_quantile(level, self.dof)
        half = quantile * self.std_error if self.std_error else 0.0
        return self.value - half - too_high, self.value + half + too_low


def total(numbers: Iterable[Uncertain]) -> Uncertain:
    """The sum of independent numbers, with its error and degrees of freedom by this module's rule.

    Examples
    --------
    >>> total([Uncertain(1.0, 3.0, dof=4), Uncertain(2.0, 4.0), Uncertain(3.0)])
    Uncertain(value=6.0, std_error=5.0, dof=6.666666666666667)
    """
    parts = tuple(numbers)
    value = sum(part.value for part in parts)
    std_error = math.hypot(*(part.std_error for part in parts))
    if not 0 < std_error < math.inf:
        return Uncertain(value, std_error)
    # the quotient is exactly 1 where a part is the only one with an error
    dof = min(part.dof * (std_error / part.std_error) for part in parts if part.std_error > 0)
    return Uncertain(value, std_error, dof)
