"""What a chapter claims of its tables: a sentence and whether it holds, in a module for each chapter.

    @of_stored("sm2008-figure-3")
    def many_runs(curve: Rows) -> Iterator[Check]:
        many = [row for row in curve if row["runs"] == 10_000]
        closer = all(abs(row["log_z"] - row["exact_log_z"]) < 0.1 for row in many)
        yield Check("with 10,000 runs every estimate is within 0.1 nats of the truth", closer)

A chapter prints them with `chapter.checks(many_runs(chapter.stored("sm2008-figure-3").rows))`. Those of stored records are tested
without the chapter, on the committed records and on changed ones, which have to make them fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Rows: TypeAlias = Sequence[Mapping[str, Any]]


class Check(NamedTuple):
    """A claim as `Chapter.check` takes it: a sentence without its full stop, and whether it holds."""

    claim: str
    holds: object
    expected: bool = True
    required: bool = True


Checks: TypeAlias = Callable[..., Iterator[Check]]
#: The records of the papers' profile whose rows a function of checks takes, in the order of its arguments.
STORED: dict[Checks, tuple[str, ...]] = {}


def of_stored(*records: str) -> Callable[[Checks], Checks]:
    """Say that a function of checks is about these records at the papers' size."""

    def marked(checks: Checks) -> Checks:
        STORED[checks] = records
        return checks

    return marked
