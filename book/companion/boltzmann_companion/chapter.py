"""Support for a running chapter: its size, its checks, and its records.

A chapter calls this once, in its set-up cell, right after the cell with its parameters:

    chapter = open_chapter("05-exact-partition-functions", globals(), seed=2008, num_chains=100)

The keywords repeat the parameters as the book gives them, so that the chapter knows whether its
reader has changed one. Its claims are about the given parameters: with these, a claim that fails is
a defect and stops the run; with others, it is a finding and is only reported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from boltzmann_companion.profiles import Profile, get_profile
from boltzmann_companion.records import Column, Run, load_result, results_folder
from boltzmann_companion.tables import Table, record_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Chapter:
    """A running chapter, made by `open_chapter`.

    Attributes
    ----------
    size : Profile
        The size at which it runs.
    as_given : bool
        Whether claims must hold: true if all parameters are the given ones. Set it to False after
        changing the code.
    """

    def __init__(self, name: str, size: Profile, seed: int, as_given: bool) -> None:
        self.size = size
        self.as_given = as_given
        self._run = Run(name, size, seed)

    def save(
        self,
        name: str,
        columns: Mapping[str, Column],
        rows: Sequence[Mapping[str, Any]],
        *,
        figure: Figure | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Write a record and its picture, and show the picture unless it has been shown already.

        Parameters, return value and errors are those of `Run.save`. The output with the picture carries
        the record's name in its metadata, so that the page can say where the picture is from. A
        `plt.show()` that follows has nothing left to show.
        """
        record = self._run.save(name, columns, rows, figure=figure, **options)
        # A notebook closes a figure once it has shown it.
        if figure is not None and plt.fignum_exists(figure.number):
            display(figure, metadata={"paperlib": {"record": name}})
            plt.close(figure)
        return record

    def check(
        self, claim: str, holds: object, *, expected: bool = True, required: bool = True
    ) -> None:
        """Print a claim and whether it holds.

        Parameters
        ----------
        claim : str
            A sentence without its full stop.
        holds : truth value
            Anything that is true or false, for example a tensor with one element.
        expected : bool
            The expected answer; False for a claim that the chapter refutes.
        required : bool
            False for a claim that is only reported, for example at the papers' size.

        Raises
        ------
        AssertionError
            If the answer is not the expected one, although the claim is required and all parameters
            are the given ones.

        Examples
        --------
        >>> profile, seed, chains = "digits", 1, 100
        >>> given = {"seed": 1, "chains": 100}
        >>> chapter = open_chapter("05-exact-partition-functions", globals(), **given)
        >>> chapter.check("a hundred chains suffice", chains >= 100)
        a hundred chains suffice: yes
        >>> chains = 3
        >>> chapter = open_chapter("05-exact-partition-functions", globals(), **given)
        >>> chapter.check("a hundred chains suffice", chains >= 100)
        a hundred chains suffice: no (with your settings)
        """
        wrong = required and bool(holds) != expected
        print(f"{claim}: {self._word(holds, wrong)}")
        self._stop_if(wrong, claim)

    def answer(self, holds: object, *, expected: bool = True, required: bool = True) -> str:
        """`yes` or `no`, for a line that states several claims at once; otherwise as `check`."""
        wrong = required and bool(holds) != expected
        self._stop_if(wrong, "a claim of this chapter")
        return self._word(holds, wrong)

    def _word(self, holds: object, wrong: bool) -> str:
        settings = " (with your settings)" if wrong and not self.as_given else ""
        return f"{'yes' if holds else 'no'}{settings}"

    def _stop_if(self, wrong: bool, claim: str) -> None:
        if wrong and self.as_given:
            raise AssertionError(
                f"{claim}: something else came out than the chapter says. After a change of the "
                "code, `chapter.as_given = False` lets the run go on."
            )

    def stored_table(
        self,
        name: str,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        digits: int | None = None,
        transpose: bool = False,
        **values: Any,
    ) -> Table | Markdown:
        """The committed record at the papers' size as a table, or a sentence if there is none yet.

        Parameters
        ----------
        name : str
            Name of the record.
        columns : sequence of str, or mapping of str to str, optional
            Which columns, in which order, as for `record_table`; by default all that are filled in at least
            one of the rows.
        digits, transpose
            As for `record_table`.
        **values
            Only rows with these values are shown, for example `steps=100`.
        """
        record = load_result(name, "paper")
        if record is None:
            return Markdown(
                f"The record `{name}` has not been computed at the paper's size yet; "
                "`make paper` makes it."
            )
        rows = _rows_with(record, values)
        if columns is None:
            columns = [
                key for key in record["columns"] if any(row.get(key) is not None for row in rows)
            ]
        return record_table(record | {"rows": rows}, columns, digits, transpose)

    def joint_table(
        self,
        record: Mapping[str, Any],
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        digits: int | None = None,
        **values: Any,
    ) -> Table:
        """The rows of this run, and below them those of the committed record at the papers' size.

        The latter are missing in a run at the papers' size, and for a record that was never made at that size.

        Parameters
        ----------
        record : mapping
            A record from `save`, possibly with only some of its rows.
        columns : sequence of str, or mapping of str to str, optional
            Which columns, in which order, as for `record_table`; by default all of `record`.
        digits : int, optional
            Significant digits, as for `record_table`.
        **values
            Only stored rows with these values are shown, for example `steps=100`.

        Examples
        --------
        >>> profile, seed = "digits", 1
        >>> chapter = open_chapter("05-exact-partition-functions", globals(), seed=1)
        >>> column = {"label": "model", "unit": ""}
        >>> own = {"name": "dbm-heating", "profile": "digits", "columns": {"model": column},
        ...        "rows": [{"model": "mine"}], "provenance": {"command": "mine.py"}}
        >>> [row[0] for row in chapter.joint_table(own, model="MNIST DBM").rows]
        ['mine', 'MNIST DBM']
        """
        table = record_table(record, columns, digits)
        stored = None if record["profile"] == "paper" else load_result(record["name"], "paper")
        if stored is None:
            return table
        rows = _rows_with(stored, values)
        below = record_table(stored | {"columns": record["columns"], "rows": rows}, columns, digits)
        return Table(table.heading, [*table.rows, *below.rows], f"{table.source}\n\n{below.source}")


def _rows_with(record: Mapping[str, Any], values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in record["rows"] if values.items() <= row.items()]


def open_chapter(name: str, parameters: Mapping[str, Any], **given: Any) -> Chapter:
    """Open a chapter: start the clock of its records, and compare its parameters with the given ones.

    Parameters
    ----------
    name : str
        Name of the notebook, without its suffix.
    parameters : mapping
        The parameters as they are now, including `profile`: `globals()` of the notebook.
    **given
        The parameters as the book gives them, except `profile`, since claims hold in both profiles.

    Raises
    ------
    InputError
        If there is no such profile.
    """
    size = get_profile(parameters["profile"])
    as_given = all(parameters[key] == value for key, value in given.items())
    if "PAPERLIB_FIGURES" not in os.environ:
        print(f"Results go to {results_folder(size.name)}.", file=sys.stderr)
    return Chapter(name, size, parameters["seed"], as_given)
