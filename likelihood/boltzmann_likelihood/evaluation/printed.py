"""Results print themselves: as a report in words, and in one line inside of something else."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import singledispatch


@singledispatch
def report_on(result: object) -> str:
    """The report on a result in words, for a terminal.

    `boltzmann_likelihood.evaluation.report` has one for each kind of result.
    """
    raise NotImplementedError(type(result))


def some_names(names: Sequence[str]) -> str:
    """Names in words, at most eight."""
    return ", ".join(names if len(names) <= 8 else (*names[:8], "..."))


class Printed:
    """A result that `print` and Jupyter show as its report, and whose `repr` is one line."""

    def __str__(self) -> str:
        return report_on(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'

    @property
    def summary(self) -> str:
        """The result in a few words."""
        raise NotImplementedError
