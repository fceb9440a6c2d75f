"""What this book claims of its tables, in a module for each chapter.

A group of claims is a function of the rows of records:

    @of_stored("sm2008-ratios")
    def one_direction(ratios: Rows) -> Claims:
        claim = "from exact draws the estimate is more than 3 nats too low"
        yield claim, ratios[1]["log_ratio"] - ratios[1]["exact"] < -3

A chapter claims what could have come out otherwise, if its text rests on it, by the rule of the
table beside it. The answer is *yes*, *no*, or, where an error is missing, infinite or too large,
*cannot be told*, which is None here; `every` and `above` follow this rule. The chapter prints the
claims with `chapter.checks(one_direction(chapter.stored("sm2008-ratios").rows))`. What is claimed
of stored records is a `Claim`. One test holds all of these against the committed records, and makes
each of them fail on changed ones.

A claim is printed as one line, which `Check.line` writes and `read_line` reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial, wraps
from typing import Any, NamedTuple, TypeAlias

from torch import Tensor

from boltzmann_companion.records import load_result

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
Records: TypeAlias = Callable[[str], Mapping[str, Any] | None]

#: What follows an answer about a run with settings that are not the book's.
OWN_SETTINGS = " (with your settings)"


class Answer(StrEnum):
    """What becomes of a claim.

    Examples
    --------
    >>> print(*Answer, sep=", ")
    yes, no, cannot be told
    """

    YES = "yes"
    NO = "no"
    CANNOT_BE_TOLD = "cannot be told"


class Check(NamedTuple):
    """A claim of a chapter.

    Attributes
    ----------
    claim : str
        A sentence without its full stop.
    holds : truth value, optional
        For example a tensor with one element; None if it cannot be told.
    of_stored : bool
        Whether it is about records of the book, which no setting of a reader changes.
    """

    claim: str
    holds: object
    of_stored: bool = False

    @property
    def answer(self) -> Answer:
        """Whether it holds."""
        if self.holds is None:
            return Answer.CANNOT_BE_TOLD
        return Answer.YES if self.holds else Answer.NO

    def line(self, own_settings: bool = False) -> str:
        """The claim and its answer, with a remark if it is about a run with own settings.

        Examples
        --------
        >>> Check("all runs agree", True).line()
        'all runs agree: yes'
        >>> Check("all runs agree", None).line(own_settings=True)
        'all runs agree: cannot be told (with your settings)'
        """
        whose = OWN_SETTINGS if own_settings and not self.of_stored else ""
        return f"{self.claim}: {self.answer}{whose}"


def read_line(line: str) -> tuple[str, Answer] | None:
    """The claim and the answer that a line prints; None if it prints no claim.

    Examples
    --------
    >>> claim, answer = read_line("the start is right: no (with your settings)")
    >>> claim, str(answer)
    ('the start is right', 'no')
    >>> read_line("runs: 100") is None
    True
    """
    claim, _, end = line.removesuffix(OWN_SETTINGS).rpartition(": ")
    for answer in Answer:
        if end == answer:
            return claim, answer
    return None


def answers_of(outputs: Iterable[Mapping[str, Any]]) -> Counter[str]:
    r"""How many of the claims that a cell has printed have each answer.

    Examples
    --------
    >>> text = "all runs agree: yes\nthe start is right: no (with your settings)\nruns: 100\n"
    >>> answers_of([{"output_type": "stream", "text": text}])
    Counter({'yes': 1, 'no': 1})
    """
    texts = (output.get("text", "") for output in outputs)
    claims = (read_line(line) for text in texts for line in text.splitlines())
    return Counter(str(claim[1]) for claim in claims if claim)


#: Claims, each as a `Check` or as a pair of its words and whether it holds.
Claims: TypeAlias = Iterator[Check | tuple[str, object]]


def in_full(claim: Check | tuple[str, object]) -> Check:
    """One of `Claims` as a `Check`."""
    return claim if isinstance(claim, Check) else Check(*claim)


def every(parts: Iterable[bool | None]) -> bool | None:
    """Whether all parts of a claim hold.

    False if one does not; otherwise None if one of them cannot be told, or if there are none.

    Examples
    --------
    >>> every([True, None]), every([False, None]), every([True, True]), every([])
    (None, False, True, None)
    """
    parts = list(parts)
    if False in parts:
        return False
    return None if None in parts or not parts else True


def above(value: float, limit: float, error: float | None, *, errors: float = 3) -> bool | None:
    """Whether a value is above a limit by so many of its standard errors; None if it is too close.

    Examples
    --------
    >>> above(1.0, 0.0, 0.1), above(-1.0, 0.0, 0.1), above(1.0, 0.0, 0.5)
    (True, False, None)
    >>> above(1.0, 0.0, float("inf")), above(1.0, 0.0, None)
    (None, None)
    """
    if error is None or not math.isfinite(error) or not math.isfinite(value):
        return None
    if abs(value - limit) <= errors * error:
        return None
    return value > limit


def interval_above(interval: Sequence[float], limit: float) -> bool | None:
    """Whether an interval lies above a limit; None if the limit is in the interval.

    Examples
    --------
    >>> [interval_above((0.5, 1.0), limit) for limit in (0.4, 1.2, 0.7)]
    [True, False, None]
    """
    return None if inside(interval, limit) else interval[0] > limit


def inside(interval: Sequence[float], value: float) -> bool:
    """Whether an interval holds a value."""
    low, high = interval
    return low <= value <= high


def largest_gap(a: Tensor, b: Tensor) -> float:
    """The largest absolute difference, for claims that two computations agree."""
    return (a - b).abs().max().item()


class Stored:
    """Looks up rows of records.

    Parameters
    ----------
    record : callable, optional
        Returns the record with a given name, or None. Without it, the committed ones at the papers'
        size, each of which is read once.

    Examples
    --------
    >>> stored = Stored()
    >>> round(stored.row("sm2008-table-1", model="CD1(25)")["exact_log_z"])
    271
    >>> list(stored.column("sm2008-table-1", "warnings"))
    ['CD1(25)', 'CD3(25)', 'CD1(20)']
    """

    def __init__(self, record: Records | None = None) -> None:
        self.record = record or cache(partial(load_result, profile="paper"))

    def rows(self, name: str, **where: Any) -> list[Row]:
        """The rows of a record in which all columns of `where` are as given."""
        record = self.record(name)
        assert record is not None, f"figures/paper/{name}.json has not been computed"
        rows = [row for row in record["rows"] if all(row[key] == where[key] for key in where)]
        assert rows, f"{name} has no row with {where}"
        return rows

    def row(self, name: str, **where: Any) -> Row:
        """The only one of these rows."""
        [row] = self.rows(name, **where)
        return row

    def column(self, name: str, column: str, **where: Any) -> dict[str, Any]:
        """One column of these rows, by model."""
        return {row["model"]: row[column] for row in self.rows(name, **where)}


@dataclass(frozen=True)
class Claim:
    """Claims about records at the papers' size.

    Attributes
    ----------
    judge : callable
        Takes the rows of each of `records`, or a `Stored` if none are named. Returns the checks of
        a chapter.
    records : tuple of str
        Names of the records whose rows decide.
    """

    judge: Callable[..., Any]
    records: tuple[str, ...] = ()

    def checks(self, stored: Stored) -> Any:
        """What `judge` says of these records."""
        if not self.records:
            return self.judge(stored)
        return self.judge(*map(stored.rows, self.records))


Checks: TypeAlias = Callable[..., Iterator[Check]]
#: The claims that chapters print of stored records, in the order in which modules are imported.
STORED: list[Claim] = []


def of_stored(*records: str) -> Callable[[Callable[..., Claims]], Checks]:
    """Mark a function of claims as one about these records at the papers' size."""

    def marked(claims: Callable[..., Claims]) -> Checks:
        @wraps(claims)
        def checks(*rows: Rows) -> Iterator[Check]:
            for each in claims(*rows):
                yield in_full(each)._replace(of_stored=True)

        STORED.append(Claim(checks, records))
        return checks

    return marked
