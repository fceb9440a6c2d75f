"""Support for a running chapter: its size, its checks, and its records.

A chapter calls this once, in its set-up cell, right after the cell with its parameters:

    chapter = open_chapter("05-exact-partition-functions", globals())

The book's parameters are those of the committed notebook, so that the chapter knows whether its
reader has changed one. Its claims are about the book's parameters: with these, a claim that fails
is a defect and stops the run; with others, it is a finding and is only reported.
"""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import matplotlib.pyplot as plt
import torch
import yaml
from IPython.display import Markdown, display

from boltzmann_companion import kind_wanted
from boltzmann_companion.claims.checks import OWN_SETTINGS, Answer, Check, in_full
from boltzmann_companion.columns import record_columns
from boltzmann_companion.jupyter import explain_outputs
from boltzmann_companion.limits import limit_of, require_within
from boltzmann_companion.plots import use_style
from boltzmann_companion.profiles import PROFILES, Profile, get_profile
from boltzmann_companion.records import (
    OwnSettings,
    Run,
    compared_values,
    load_result,
    moved_numbers,
    source_line,
)
from boltzmann_companion.tables import Record, Table
from boltzmann_likelihood.provenance import git
from paperlib import storage
from paperlib.errors import InputError
from paperlib.threads import step_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")

#: What a chapter or a check says before the numbers that moved.
AFTER_A_MOVE = (
    "moved, by a mistake or on purpose (then `make refresh`, and a line in CHANGELOG.md):"
)
_OTHER_PROCESSORS = "depends on the processor: on another kind it is compared within its errors"
_LETS_GO_ON = "After a change of the code, `chapter.as_given = False` lets the run go on."


class Chapter:
    """A running chapter, made by `open_chapter`.

    Attributes
    ----------
    name : str
        Name of its notebook, without the suffix.
    size : Profile
        The size at which it runs.
    as_given : bool
        Whether claims must hold: true if all parameters are the book's. Set it to False after
        changing the code. Where a setting has been changed, claims need not hold either.
    """

    def __init__(
        self,
        name: str,
        size: Profile,
        parameters: Mapping[str, Any],
        own_parameters: Mapping[str, Any],
        is_committed: bool,
    ) -> None:
        self.size = size
        self.as_given = not own_parameters
        self.name = name
        self._parameters = parameters
        self._own_parameters = own_parameters
        self._is_committed = is_committed
        self._run = Run(name, size, parameters["seed"])
        self._records: dict[str, dict[str, Any]] = {}

    @cached_property
    def settings(self) -> Settings:
        """What differs between the sizes, from `settings/` beside this module."""
        return read_settings(self.name, self.size.name)

    def at_size(self, value: Any) -> Any:
        """A parameter at this chapter's size; one without a value for each profile as it is.

        Examples
        --------
        >>> profile, seed = "digits", 2008
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> chapter.at_size({"digits": 0.1, "paper": 1.0}), chapter.at_size(0.5)
        (0.1, 0.5)
        """
        return value_in(value, self.size.name)

    def progress(self, items: Iterable[Item], description: str) -> Iterator[Item]:
        """Go through items, with a progress bar.

        The bar is shown if the notebook is open and the items take more than two seconds.

        Parameters
        ----------
        items : iterable
            What to go through.
        description : str
            What the bar counts.

        Examples
        --------
        >>> profile, seed = "digits", 2008
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> list(chapter.progress(["CD1(20)", "CD1(25)"], "models"))
        ['CD1(20)', 'CD1(25)']
        """
        items = list(items)
        with step_bar(len(items), description, None, "item") as bar:
            for item in items:
                yield item
                bar.update()

    def record(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        figure: Figure | None = None,
        **options: Any,
    ) -> Record:
        """Write a record and its picture, and show the picture unless it has been shown already.

        The output with the picture carries the record's name in its metadata, so that the page can
        say where the picture is from. A `plt.show()` that follows has nothing left to show.

        Parameters
        ----------
        name : str
            Name of the record.
        rows : sequence of mappings
            Its rows; `boltzmann_companion.columns` says how their keys are headed and compared.
        figure, **options
            As for `Run.save`.

        Returns
        -------
        Record
            It shows itself as a table.

        Raises
        ------
        InputError
            If a row has a value that a record cannot hold.
        """
        columns = record_columns(name, self.size.name, rows)
        settings = settings_in_force(self._parameters, self.settings, self.size.name)
        own_settings = OwnSettings(self._own_parameters, self.settings.changed)
        record = self._run.save(
            name,
            columns,
            rows,
            figure=figure,
            settings=settings,
            own_settings=own_settings,
            **options,
        )
        self._records[name] = record
        # A notebook closes a figure once it has shown it.
        if figure is not None and plt.fignum_exists(figure.number):
            display(figure, metadata={"paperlib": {"record": name}})
            plt.close(figure)
            if own_settings:
                display(Markdown(source_line(record)))
        return Record(record)

    def check(self, claim: str, holds: object) -> None:
        """Print a claim and whether it holds.

        Parameters
        ----------
        claim : str
            A sentence without its full stop.
        holds : truth value, optional
            Anything that is true or false, for example a tensor with one element; None if it cannot
            be told.

        Raises
        ------
        AssertionError
            If it does not hold or cannot be told, although all parameters and settings are the
            book's, and these are committed.

        Examples
        --------
        >>> profile, seed = "digits", 2008
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> chapter.check("the seed is that of the book", seed == 2008)
        the seed is that of the book: yes
        >>> seed = 1
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> chapter.check("the seed is that of the book", seed == 2008)
        the seed is that of the book: no (with your settings)
        """
        self.checks([Check(claim, holds)])

    def checks(self, claims: Iterable[Check | tuple[str, object]]) -> None:
        """Print each of these claims, as `check` does; see `boltzmann_companion.claims.checks`.

        With a reader's own parameters, a claim may be about rows that are not there. Then a line
        says that it cannot be told.

        Raises
        ------
        AssertionError
            As `check`.
        """
        remaining = iter(claims)
        while True:
            try:
                each = next(remaining)
            except StopIteration:
                return
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                if self._is_binding:
                    raise AssertionError(
                        "a claim of the chapter cannot be told here "
                        f"({type(error).__name__}: {error}). {_LETS_GO_ON}"
                    ) from error
                print(f"the claims that follow here: {Answer.CANNOT_BE_TOLD}{OWN_SETTINGS}")
                return
            check = in_full(each)
            print(check.line(own_settings=not self._is_book_run))
            if check.answer != Answer.YES and self._is_binding:
                raise AssertionError(
                    f"{check.claim}: something else came out than the chapter says. {_LETS_GO_ON}"
                )

    @property
    def _is_book_run(self) -> bool:
        """Whether this seems to be the run that the text is about."""
        return self.as_given and self.settings.as_given

    @property
    def _is_binding(self) -> bool:
        """Whether it is known to be that run: an uncommitted notebook may have been changed."""
        return self._is_book_run and self._is_committed

    def compare(self) -> None:
        """Print which numbers of this run's records are not the book's, and by how many errors.

        A chapter's last cell does so. Its output in the committed notebook is that of the book's
        numbers, so that nbval notices any other. Each number is compared within the tolerance of
        its column, which holds on every processor and is far below any error.

        Examples
        --------
        >>> profile, seed = "digits", 2008
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> chapter.compare()
        0 records with 0 values, all as in the book
        """
        if not self._is_book_run:
            print("with your settings, numbers are not compared with the book's")
            return
        moved = []
        for name, record in self._records.items():
            committed = load_result(name, self.size.name)
            if committed is None:
                moved.append(f"{name}: is not among the records of the book")
                continue
            moved += moved_numbers(committed, record)
            if record["processor_bound"]:
                print(f"{name} {_OTHER_PROCESSORS}")
        if moved:
            print(AFTER_A_MOVE, *moved, sep="\n")
        else:
            values = sum(map(compared_values, self._records.values()))
            print(f"{len(self._records)} records with {values:,} values, all as in the book")

    def stored(self, name: str) -> Record:
        """The committed record at the papers' size.

        If there is none yet, it shows a sentence that says so, which is also the error of looking
        up its rows.
        """
        return Record(load_result(name, "paper") or {"name": name, "profile": "paper"})

    def joint_table(self, record: Record, which: str | None = None, **values: Any) -> Table:
        """The rows of this run, and below them those of the committed record at the papers' size.

        The latter are missing in a run at the papers' size, and for a record that was never made at
        that size.

        Parameters
        ----------
        record : Record
            From `record`, possibly with only some of its rows.
        which : str, optional
            Which of its tables, as for `Record.view`.
        **values
            Only stored rows with these values are shown, for example `steps=100`.

        Examples
        --------
        >>> profile, seed = "digits", 2008
        >>> chapter = open_chapter("13-reproduction-report", globals())
        >>> column = {"label": "model", "unit": ""}
        >>> mine = {"name": "dbm-control-variate", "profile": "digits",
        ...         "columns": {"model": column}, "rows": [{"model": "mine"}],
        ...         "provenance": {"command": "mine.py"}}
        >>> [row[0] for row in chapter.joint_table(Record(mine), model="MNIST DBM").rows]
        ['mine', 'MNIST DBM']
        """
        stored = self.stored(record["name"])
        if record["profile"] == "paper" or "rows" not in stored:
            return record.view(which)
        stored_rows = stored.only(**values)["rows"]
        table = record.only([*record["rows"], *stored_rows]).view(which)
        return replace(table, source=f"{table.source}\n\n{source_line(stored)}")


class Settings(dict[str, Any]):
    """What a chapter does at its size, as a table that also has the values at the other size.

    Attributes
    ----------
    both : mapping of str to mapping of str to object
        Value of each setting in each profile.
    """

    def __init__(self, name: str, profile: str, both: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(
            {key: values[profile] for key, values in both.items() if profile in values}
        )
        self.both = both
        self._source = f"boltzmann_companion/settings/{name}.yaml"
        # a list may be changed in place
        self._original = deepcopy(dict(self))

    @property
    def as_given(self) -> bool:
        """Whether nothing has been changed since."""
        return self == self._original

    @property
    def changed(self) -> dict[str, Any]:
        """Those that have been changed, as they are now."""
        return {
            name: value
            for name, value in self.items()
            if name not in self._original or value != self._original[name]
        }

    def _repr_markdown_(self) -> str:
        rows = [
            [f"`{key}`", *(f"`{values[name]!r}`" if name in values else "–" for name in PROFILES)]
            for key, values in self.both.items()
        ]
        change = f'`settings["{next(iter(self))}"] = ...`' if self else "an assignment"
        source = f"From `{self._source}`; {change} in this cell changes one."
        return repr(Table(["setting", *PROFILES], rows, source))


def read_settings(name: str, profile: str) -> Settings:
    """The settings of a chapter in a profile; none if it has no file.

    Examples
    --------
    >>> read_settings("05-exact-partition-functions", "digits")["runs"]
    [10, 30, 100, 300, 1000]
    """
    path = Path(__file__).parent / "settings" / f"{name}.yaml"
    both = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return Settings(name, profile, both)


def settings_in_force(
    parameters: Mapping[str, Any], settings: Mapping[str, Any], profile: str
) -> dict[str, Any]:
    """Parameters and settings of a profile together, as a record's file has them.

    Examples
    --------
    >>> settings_in_force({"seed": 1, "max_k": {"digits": 300, "paper": 10_000}}, {}, "paper")
    {'seed': 1, 'max_k': 10000}
    """
    at_size = {name: value_in(value, profile) for name, value in parameters.items()}
    return json.loads(json.dumps({**settings, **at_size}))


def value_in(value: Any, profile: str) -> Any:
    """A parameter in a profile; one without a value for each profile as it is."""
    return value[profile] if isinstance(value, Mapping) else value


def book_parameters(name: str) -> tuple[dict[str, Any], bool]:
    """The parameters of a chapter as the book has them, and whether these are committed.

    They stand in the cell of the notebook that is tagged `parameters`. The notebook is that of a
    checkout, or else one in the current folder; without a notebook there are no parameters. A
    reader who runs a chapter changes that cell, and Jupyter saves it, so that the values are those
    of the last commit, if there is one.

    Parameters
    ----------
    name : str
        Name of the notebook, without its suffix.

    Examples
    --------
    >>> book_parameters("13-reproduction-report")[0]
    {'profile': 'digits', 'seed': 2008}
    >>> book_parameters("no-such-chapter")
    ({}, False)
    """
    paths = [Path.cwd() / f"{name}.ipynb"]
    with suppress(InputError):
        paths.insert(0, storage.repository_root() / "book" / f"{name}.ipynb")
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        return {}, False
    parameters = _parameters_in(path.read_text(encoding="utf-8"))
    text = _committed_text(path)
    committed = {} if text is None else _parameters_in(text)
    # one that is not committed yet stands only in the notebook
    return {key: committed.get(key, value) for key, value in parameters.items()}, text is not None


def _committed_text(path: Path) -> str | None:
    """A file as it is in the last commit; None if it is not in it, or git cannot tell."""
    try:
        return git(path.parent, "show", f"HEAD:./{path.name}")
    except (OSError, subprocess.CalledProcessError):
        return None


def _parameters_in(notebook: str) -> dict[str, Any]:
    cells = json.loads(notebook)["cells"]
    sources = [c["source"] for c in cells if "parameters" in c["metadata"].get("tags", [])]
    statements = [part for source in sources for part in ast.parse("".join(source)).body]
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in statements
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def open_chapter(name: str, parameters: Mapping[str, Any]) -> Chapter:
    """Open a chapter: the first call of each notebook.

    It starts the clock of the chapter's records, sets the look of its figures, and compares its
    parameters with the book's. On digits it also leaves torch one thread: on tensors this small,
    threads that wait for each other beside other busy processes make a chapter many times slower.

    Parameters
    ----------
    name : str
        Name of the notebook, without its suffix.
    parameters : mapping
        The parameters as they are now, including `profile` and `seed`: `globals()` of the notebook.

    Raises
    ------
    InputError
        If a parameter is missing, not of the kind of the book's or one that the chapter cannot go
        on with, if there is no such profile, or if its images are missing.
    """
    explain_outputs({})
    use_style()
    defaults, is_committed = book_parameters(name)
    # every chapter needs these two, also one that the book does not have
    defaults = {"profile": "digits", "seed": parameters.get("seed", 0)} | defaults
    _require_parameter(parameters, "profile", "digits", "digits")
    size = get_profile(parameters["profile"])
    _require_parameter(parameters, "seed", defaults["seed"], defaults["seed"])
    for key, default in defaults.items():
        _require_parameter(parameters, key, default, value_in(default, size.name))
    # claims hold in both profiles, so that the profile is not compared
    del defaults["profile"]
    in_force = {key: parameters[key] for key in defaults}
    own_parameters = {}
    for key, default in defaults.items():
        value = value_in(parameters[key], size.name)
        if value != value_in(default, size.name):
            own_parameters[key] = value
    chapter = Chapter(name, size, in_force, own_parameters, is_committed)
    explain_outputs(own_parameters)
    if size.name == "digits":
        torch.set_num_threads(1)
    # Every record names them, so that a chapter without them would stop later.
    try:
        size.images()
    except InputError as error:
        message = str(error).removesuffix(".")
        raise InputError(f'{message}; without these images, write profile = "digits"') from error
    for key, value in own_parameters.items():
        require_within(key, value, limit_of(name, key), size, chapter.settings)
    return chapter


def _require_parameter(
    parameters: Mapping[str, Any], name: str, default: object, default_here: object
) -> None:
    """Raise unless a parameter may replace the book's, which is `default_here` at this size."""
    if name not in parameters:
        raise InputError(f"{name}: expected a parameter, got none; run the cell of the parameters")
    value = parameters[name]
    if value is None and default is None:
        return
    wanted = kind_wanted(default, value)
    # All numbers among the parameters count or scale something, except for the seed.
    if not wanted and name not in ("profile", "seed"):
        numbers = _numbers_in(value)
        if not all(isinstance(number, int | float) and number > 0 for number in numbers):
            alone = len(numbers) == 1 and not isinstance(value, list)
            wanted = "a number above 0" if alone else "numbers above 0"
    if wanted:
        raise InputError(f"{name}: expected {wanted}, got {value!r}; the book has {default_here!r}")


def _numbers_in(value: Any) -> list[Any]:
    """The numbers of a parameter: of a list, or of the values for each profile."""
    parts = value.values() if isinstance(value, Mapping) else value
    if isinstance(parts, int | float | str):
        return [parts]
    return [number for part in parts for number in _numbers_in(part)]
