"""What this book claims of its tables: a function of the rows of records, in a module for each chapter.

    @of_stored("sm2008-figure-3")
    def many_runs(curve: Rows) -> Claims:
        many = [row for row in curve if row["runs"] == 10_000]
        closer = all(abs(row["log_z"] - row["exact_log_z"]) < 0.1 for row in many)
        yield "with 10,000 runs every estimate is within 0.1 nats of the truth", closer

One that may fail, or must, is a `Check`. A chapter prints them with `chapter.checks(many_runs(chapter.stored("sm2008-figure-3").rows))`. What is said of stored records is a
`Claim`. One test holds all of them against the committed records, and sees each of them fail on changed ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, wraps
from typing import Any, NamedTuple, TypeAlias

from torch import Tensor

from boltzmann_companion.records import load_result

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
Records: TypeAlias = Callable[[str], Mapping[str, Any] | None]


#: What follows a *no* that the text says, and an answer that it does not say; the latter with a reader's own settings.
AS_SAID, NOT_AS_SAID, OWN_SETTINGS = (
    ", as the text says",
    ", not as the text says",
    " (with your settings)",
)


class Check(NamedTuple):
    """A claim as `Chapter.check` takes it: a sentence without its full stop, and whether it holds."""

    claim: str
    holds: object
    expected: bool = True
    required: bool = True

    @property
    def as_said(self) -> bool:
        """Whether the answer is the one that the text gives."""
        return bool(self.holds) == self.expected

    def line(self, otherwise: str = NOT_AS_SAID) -> str:
        """The claim and its answer; `otherwise` follows an answer that the text does not give.

        Examples
        --------
        >>> Check("all runs agree", True).line()
        'all runs agree: yes'
        >>> Check("the start is right", False, expected=False).line()
        'the start is right: no, as the text says'
        >>> Check("all runs agree", False).line()
        'all runs agree: no, not as the text says'
        """
        answer = "yes" if self.holds else "no"
        said = ("" if self.holds else AS_SAID) if self.as_said else otherwise
        return f"{self.claim}: {answer}{said}"


# How a line of `Check.line` may end.
_ANSWERS = {
    "yes",
    f"no{AS_SAID}",
    *(f"{answer}{why}" for answer in ("yes", "no") for why in (NOT_AS_SAID, OWN_SETTINGS)),
}


def answers(printed: str) -> Counter[str]:
    r"""How many of the claims that a chapter has printed have each answer.

    Examples
    --------
    >>> answers("all runs agree: yes\nthe start is right: no, as the text says\nruns: 100\n")
    Counter({'yes': 1, 'no, as the text says': 1})
    """
    ends = (line.rpartition(": ")[2] for line in printed.splitlines())
    return Counter(end for end in ends if end in _ANSWERS)


#: Claims, each as a `Check` or as a pair of its words and whether it holds.
Claims: TypeAlias = Iterator[Check | tuple[str, object]]


def in_full(claim: Check | tuple[str, object]) -> Check:
    """One of `Claims` as a `Check`."""
    return claim if isinstance(claim, Check) else Check(*claim)


def inside(interval: Sequence[float], value: float) -> bool:
    """Whether an interval holds a value."""
    low, high = interval
    return low <= value <= high


def largest_gap(a: Tensor, b: Tensor | float) -> float:
    """The largest absolute difference, for claims that two computations agree."""
    return (a - b).abs().max().item()


class Stored:
    """Looks up rows of records.

    Parameters
    ----------
    record : callable, optional
        Returns the record with a given name, or None. Without it, the committed ones at the papers' size, each of which is read once.

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
        found = self.record(name)
        assert found is not None, f"figures/paper/{name}.json has not been computed"
        chosen = [row for row in found["rows"] if all(row[key] == where[key] for key in where)]
        assert chosen, f"{name} has no row with {where}"
        return chosen

    def row(self, name: str, **where: Any) -> Row:
        """The only one of these rows."""
        [row] = self.rows(name, **where)
        return row

    def column(self, name: str, column: str, **where: Any) -> dict[str, Any]:
        """One column of these rows, by model."""
        return {row["model"]: row[column] for row in self.rows(name, **where)}


@dataclass(frozen=True)
class Claim:
    """Something that is said of records at the papers' size.

    Attributes
    ----------
    judge : callable
        Takes the rows of each of `records`, or a `Stored` if none are named. Returns the checks of a chapter.
    records : tuple of str
        Names of the records that decide.
    """

    judge: Callable[..., Any]
    records: tuple[str, ...] = ()

    def found(self, stored: Stored) -> Any:
        """What `judge` finds in these records."""
        return self.judge(*(map(stored.rows, self.records) if self.records else [stored]))


Checks: TypeAlias = Callable[..., Iterator[Check]]
#: The claims that chapters print of stored records, in the order in which their modules are imported.
STORED: list[Claim] = []


def of_stored(*records: str, required: bool = True) -> Callable[[Callable[..., Claims]], Checks]:
    """Say that a function of claims is about these records at the papers' size, and whether they are all required."""

    def marked(claims: Callable[..., Claims]) -> Checks:
        @wraps(claims)
        def checks(*rows: Rows) -> Iterator[Check]:
            for each in claims(*rows):
                check = in_full(each)
                yield check if required else check._replace(required=False)

        STORED.append(Claim(checks, records))
        return checks

    return marked
