"""Results on disk: `figures/<profile>/<name>.json` with provenance, and pictures beside them.

A record's columns give the unit of each number and how far two runs may differ in it. Saving a
result that agrees with the record on disk within those tolerances leaves the files unchanged, so
that version control shows a change exactly when a number has changed.

Its provenance says what made it:

============================  ====================================================================
`command`, `chapter`, `seed`  how to make it again
`commit`, `dirty`             the code, and whether anything in `checked` differed from the commit
`checked`                     what that covers; older records lack it and checked the library only
`utc`                         when it was written
`seconds`                     from the start of the *chapter* until then, including its earlier
                              cells but not shards that were on disk already
`shards`                      what computed the shards of AIS and RAISE that the chapter used until
                              then (`boltzmann_likelihood.store.summarize_shards`)
`processor`, `torch`, ...     the machine and the versions
                              (`boltzmann_likelihood.provenance.made_by`)
`device`, `threads`, `dtype`  where and how chains walked
`draws`                       the version of the draws (`paperlib.kernels.version`)
`data`, `models`              SHA-256 of what went in
`settings`                    parameters and settings of the chapter, at its size
`own`                         those of them that a reader has changed, if any
`again`                       when, by which commit and on what it was last made again with the same
                              result, if it was
============================  ====================================================================

`history` says what this establishes, and what remains unknown.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import torch

from boltzmann_companion import SETTINGS
from boltzmann_companion.columns import Column
from boltzmann_companion.recipes import RECIPES, Model
from boltzmann_companion.record_files import as_json, read_record
from boltzmann_likelihood.provenance import CHECKED, made_by
from boltzmann_likelihood.store import shards_used, summarize_shards
from paperlib import storage
from paperlib.datasets import binary_images
from paperlib.errors import InputError
from paperlib.kernels.version import DRAWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from boltzmann_companion.profiles import Profile

Value = float | int | str | None | list[Any]
# So many numbers of a record are listed one by one; where one moves, often all do.
_MOST_LINES = 6
# The longest name that a folder gets from the settings of its records.
_LONGEST_NAME = 60


def results_folder(profile: str, own_settings: Mapping[str, Any] | None = None) -> Path:
    """Where a profile's results go: `$PAPERLIB_FIGURES/<profile>`, or else a local folder.

    Each set of settings of a reader's own has a folder of its own in it.

    `paperlib reproduce` sets that variable to the `figures` of the checkout. A notebook that runs
    in any other way cannot change these: it writes to `figures/<profile>` in the current folder or,
    inside a checkout, to `_build/figures/<profile>` of that checkout.

    Parameters
    ----------
    profile : str
        Name of the profile.
    own_settings : mapping, optional
        The parameters and settings that a reader has changed.

    Examples
    --------
    >>> results_folder("digits", {"seed": 7, "repetitions": 300}).parts[-3:]
    ('digits', 'own', 'repetitions=300,seed=7')
    """
    folder = _results_root() / profile
    return folder / "own" / _name_of_settings(own_settings) if own_settings else folder


def _results_root() -> Path:
    """The folder of all profiles."""
    chosen = os.environ.get("PAPERLIB_FIGURES")
    if chosen:
        return Path(chosen)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if storage.is_checkout(folder):
            return folder / "_build" / "figures"
    return here / "figures"


def _name_of_settings(own_settings: Mapping[str, Any]) -> str:
    """The name of the folder for these settings, whatever their order."""
    text = ",".join(f"{name}={value}" for name, value in sorted(own_settings.items()))
    name = re.sub(r"[^\w=.,-]+", "_", text)
    exact = name == text and len(name) <= _LONGEST_NAME
    return name if exact else f"{name[:_LONGEST_NAME]}-{storage.sha256(text.encode())[:8]}"


@dataclass(frozen=True)
class OwnSettings:
    """What a reader has changed in a chapter; it is true if that is anything.

    Attributes
    ----------
    parameters, settings : mapping of str to object
        Parameters of the chapter's first cell, and settings that no parameter has.

    Examples
    --------
    >>> own_settings = OwnSettings({"seed": 7}, {"runs": [10]})
    >>> own_settings.values
    {'seed': 7, 'runs': [10]}
    >>> print(own_settings.options)
    --set seed=7  # with settings["runs"] = [10]
    """

    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def values(self) -> dict[str, Any]:
        """All of them, by name."""
        return {**self.parameters, **self.settings}

    @property
    def options(self) -> str:
        """What follows the command that makes a record again.

        These are the command's options, and a remark on what no option can set.
        """
        parts = [
            f"--set {shlex.quote(f'{name}={value!r}')}" for name, value in self.parameters.items()
        ]
        if self.settings:
            changed = [f'settings["{name}"] = {value!r}' for name, value in self.settings.items()]
            parts.append(f" # with {', '.join(changed)}")
        return " ".join(parts)


class Run:
    """One execution of a chapter, from its start on, that writes results with their provenance.

    Parameters
    ----------
    chapter : str
        Name of the notebook without its suffix.
    profile : Profile
        The size at which it runs.
    seed : int
        The seed from which all of its draws derive.
    """

    def __init__(self, chapter: str, profile: Profile, seed: int) -> None:
        self._chapter = chapter
        self._profile = profile
        self._seed = seed
        self._started = time.perf_counter()
        # The state of the code that was imported, not that of the folder hours later.
        self._made_by = made_by()
        self._shards_before = len(shards_used())

    def save(
        self,
        name: str,
        columns: Mapping[str, Column],
        rows: Sequence[Mapping[str, Any]],
        *,
        models: Mapping[str, Model] | None = None,
        datasets: Iterable[str] = (),
        figure: Figure | None = None,
        processor_bound: bool = False,
        settings: Mapping[str, Any] | None = None,
        own_settings: OwnSettings | None = None,
    ) -> dict[str, Any]:
        """Write a record, and its picture as SVG and PNG, unless it says nothing new.

        A record on disk is kept if it agrees with this one and was made from the same inputs, or if
        the two cannot be compared. A record of uncommitted code that agrees is replaced by one of
        committed code. With `PAPERLIB_REFRESH=1` one that is kept says when it was made again.

        Parameters
        ----------
        name : str
            For example `sm2008-table-1`.
        columns : mapping of str to Column
            Every key that occurs in a row.
        rows : sequence of mappings
            Numbers, text, None, or pairs of numbers for intervals.
        models : mapping of str to model, optional
            The models that the numbers belong to; their checksums are kept.
        datasets : iterable of str
            Further data sets that they belong to, besides the profile's and the models'.
        figure : matplotlib Figure, optional
            The picture.
        processor_bound : bool
            Whether the numbers follow thousands of updates of a model. Processors of different
            makers or with different vector instructions round sums differently in the last digits;
            the updates amplify these differences and end at different models.
        settings : mapping, optional
            Parameters and settings of the chapter, by name.
        own_settings : OwnSettings, optional
            Those that the reader has changed. The record then goes to a folder of its own.

        Returns
        -------
        dict
            The record as computed now, whether or not it was written.

        Raises
        ------
        InputError
            If a row has a key that is not a column, or a value that a record cannot hold.

        Examples
        --------
        >>> import tempfile
        >>> from unittest import mock
        >>> from boltzmann_companion.profiles import get_profile
        >>> columns = {"steps": Column("$K$", "count"), "log_z": Column("ln Z", "nats", 1e-6)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with mock.patch.dict(os.environ, {"PAPERLIB_FIGURES": folder}):
        ...         run = Run("05-exact-partition-functions", get_profile("digits"), 2008)
        ...         record = run.save("table", columns, [{"steps": 10, "log_z": 1.5}])
        >>> record["rows"], record["provenance"]["shards"]["count"]
        ([{'steps': 10, 'log_z': 1.5}], 0)
        """
        record = {
            "name": name,
            "profile": self._profile.name,
            "columns": {
                key: {"label": c.label, "unit": c.unit, "tolerance": c.tolerance}
                for key, c in columns.items()
            },
            "rows": [_plain_row(row, columns) for row in rows],
            "processor_bound": processor_bound,
            "provenance": self._provenance(models or {}, datasets, settings or {}, own_settings),
        }
        folder = results_folder(self._profile.name, record["provenance"].get("own"))
        path = folder / f"{name}.json"
        pictures = [] if figure is None else [folder / f"{name}.svg", folder / f"{name}.png"]
        old = read_record(path) if path.is_file() else None
        is_refresh = os.environ.get("PAPERLIB_REFRESH") == "1"
        has_pictures = all(picture.is_file() for picture in pictures)
        if old and has_pictures and not _says_something_new(old, record, is_refresh):
            if is_refresh:
                old["provenance"]["again"] = {
                    key: record["provenance"][key]
                    for key in ("utc", "commit", "processor", "instructions")
                }
                storage.write_json(path, as_json(old))
            return record
        for picture in pictures:
            assert figure is not None
            with storage.atomic_path(picture) as temporary:
                # A fixed date keeps two pictures of the same numbers identical.
                figure.savefig(
                    temporary,
                    metadata={"Date": None} if picture.suffix == ".svg" else None,
                    dpi=150,
                )
        storage.write_json(path, as_json(record))
        return record

    def _provenance(
        self,
        models: Mapping[str, Model],
        others: Iterable[str],
        settings: Mapping[str, Any],
        own_settings: OwnSettings | None,
    ) -> dict[str, Any]:
        # Most chapters look at one data set only; RAISE's tables have models of two.
        datasets = {RECIPES[key].dataset for key in models if key in RECIPES}
        datasets |= {self._profile.dataset, *others}
        command = f"paperlib reproduce --profile {self._profile.name} --only {self._chapter}"
        if self._profile.device != "cpu":
            command += f" --device {self._profile.device}"
        options = own_settings.options if own_settings else os.environ.get(SETTINGS, "")
        provenance: dict[str, Any] = {
            "command": f"{command} {options}".rstrip(),
            "chapter": self._chapter,
            "seed": self._seed,
            **self._made_by,
            "checked": list(CHECKED),
            "utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._started, 1),
            "shards": summarize_shards(shards_used()[self._shards_before :]),
            "device": self._profile.device,
            "threads": torch.get_num_threads(),
            "dtype": str(self._profile.dtype).removeprefix("torch."),
            "draws": DRAWS,
            "data": {name: binary_images(name).grey.checksum for name in sorted(datasets)},
            "models": {key: model.checksum() for key, model in models.items()},
            "settings": dict(settings),
        }
        if own_settings:
            provenance["own"] = json.loads(json.dumps(own_settings.values))
        return provenance


def other_inputs(record: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[str]:
    """What a record was made from, other than these inputs, in words.

    Parameters
    ----------
    record : mapping
        The record.
    inputs : mapping
        Some of `draws`, `settings`, `models` and `data`, as provenance has them.

    Examples
    --------
    >>> record = {"provenance": {"draws": "0.1.0", "settings": {"runs": [10, 30], "seed": 1}}}
    >>> other_inputs(record, {"draws": "0.2.0", "settings": {"runs": [10], "seed": 1}})
    ["draws '0.1.0', not '0.2.0'", 'runs = [10, 30], not [10]']
    """
    made = record["provenance"]
    lines = []
    if "draws" in inputs and made.get("draws") != inputs["draws"]:
        lines.append(f"draws {made.get('draws')!r}, not {inputs['draws']!r}")
    if "settings" in inputs and "settings" not in made:
        lines.append("settings that it does not name")
    # A setting that a chapter has gained or lost since says nothing of a record.
    before = made.get("settings", {})
    now = inputs.get("settings", {})
    lines += [
        f"{name} = {before[name]!r}, not {now[name]!r}"
        for name in sorted(before.keys() & now.keys())
        if before[name] != now[name]
    ]
    for kind in ("models", "data"):
        for name, checksum in inputs.get(kind, {}).items():
            if made.get(kind, {}).get(name) != checksum:
                lines.append(f"another {name} (its checksum)")
    return lines


def _says_something_new(old: Mapping[str, Any], new: Mapping[str, Any], is_refresh: bool) -> bool:
    """Whether a record replaces the one on disk."""
    if not comparable(old, new):
        return is_refresh
    if differences(old, new) or other_inputs(old, new["provenance"]):
        return True
    # the same numbers, now of committed code
    return bool(old["provenance"].get("dirty")) and new["provenance"]["dirty"] is False


def load_result(name: str, profile: str) -> dict[str, Any] | None:
    """The committed record of this name, or None if there is none.

    Examples
    --------
    >>> load_result("sm2008-table-1", "paper")["name"]
    'sm2008-table-1'
    >>> load_result("no-such-record", "paper") is None
    True
    """
    path = storage.companion_folder() / "figures" / profile / f"{name}.json"
    return read_record(path) if path.is_file() else None


def source_line(record: Mapping[str, Any]) -> str:
    """Where a record is and the command that makes it again, as Markdown.

    It is shown below the record's tables and pictures. If the run had settings of a reader's own,
    the line says so. If another processor would give other numbers, the line of a small run names
    the processor.

    Examples
    --------
    >>> provenance = {"command": "paperlib models"}
    >>> source_line({"profile": "digits", "name": "t", "provenance": provenance})
    '<small>[figures/digits/t.json](../figures/digits/t.json) · `paperlib models`</small>'
    """
    command = record["provenance"]["command"]
    own_settings = record["provenance"].get("own")
    if own_settings:
        file = results_folder(record["profile"], own_settings) / f"{record['name']}.json"
        address = Path(os.path.relpath(file)).as_posix()
        values = ", ".join(f"`{name} = {value!r}`" for name, value in own_settings.items())
        link = f"[{address.lstrip('./')}]({quote(address)})"
        return f"<small>**With your settings**, {values}: {link} · `{command}`</small>"
    path = f"figures/{record['profile']}/{record['name']}.json"
    where = ""
    if record.get("processor_bound") and record["profile"] == "digits":
        where = f" · computed on {_processor_kind(record)}; on another kind other numbers come out"
    return f"<small>[{path}](../{path}) · `{command}`{where}</small>"


@dataclass(frozen=True)
class History:
    """What a record establishes about the code that made it.

    Each attribute is "committed", "uncommitted" or "unknown".

    Attributes
    ----------
    library : str
        The code of `paperlib`, with the versions of `constraints.txt` and the published numbers.
    chapter : str
        The notebook, and the stored models.
    shards : str
        The code that computed the shards that the chapter used; "none" if it used none.
    """

    library: str
    chapter: str
    shards: str


def history(record: Mapping[str, Any]) -> History:
    """What a record establishes about the code that made it.

    Older records checked only the library, and say nothing about shards that were on disk already,
    so that part of their history is unknown.

    Examples
    --------
    >>> history({"provenance": {"commit": "1f0c", "dirty": False}})
    History(library='committed', chapter='unknown', shards='unknown')
    """
    provenance = record["provenance"]
    state = _state(provenance.get("commit"), provenance.get("dirty"))
    chapter = state if "book" in provenance.get("checked", ()) else "unknown"
    return History(state, chapter, _shards_state(provenance.get("shards")))


def _state(commit: str | None, dirty: bool | None) -> str:
    if commit is None or dirty is None:
        return "unknown"
    return "uncommitted" if dirty else "committed"


def _shards_state(shards: Mapping[str, Any] | None) -> str:
    if shards is None:
        return "unknown"
    if shards["count"] == 0:
        return "none"
    if shards["uncommitted"]:
        return "uncommitted"
    return "unknown" if shards["unknown"] else "committed"


def _processor_kind(record: Mapping[str, Any]) -> str:
    """The processor that made a record, and its vector instructions.

    Examples
    --------
    >>> _processor_kind({"provenance": {"processor": "AMD EPYC", "instructions": "AVX512"}})
    'AMD EPYC, AVX512'
    """
    provenance = record["provenance"]
    # the oldest records do not name the instructions
    return ", ".join(provenance[key] for key in ("processor", "instructions") if key in provenance)


def comparable(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Whether two records must agree.

    They always must, except that processor-bound records must agree only if the same kind of
    processor made them.

    Examples
    --------
    >>> here = {"processor": "AMD EPYC", "instructions": "AVX512"}
    >>> elsewhere = {"processor": "AMD EPYC", "instructions": "AVX2"}
    >>> trained = {"processor_bound": True, "provenance": here}
    >>> comparable(trained, {"provenance": elsewhere})
    False
    """
    if not expected.get("processor_bound"):
        return True
    return _processor_kind(expected) == _processor_kind(actual)


def moved_records(chapter: str, committed: Path, fresh: Path) -> tuple[list[str], list[str]]:
    """What moved in the records of a chapter, and which records cannot be compared here, in words.

    Parameters
    ----------
    chapter : str
        Its name.
    committed, fresh : Path
        Folders of records, of the book and of a new run.

    Examples
    --------
    >>> import tempfile
    >>> committed = storage.companion_folder() / "figures" / "paper"
    >>> moved_records("05-exact-partition-functions", committed, committed)
    ([], [])
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     moved_records("05-exact-partition-functions", committed, Path(empty))[0][0]
    'sm2008-figure-3: was not written'
    """
    before = _records_of(chapter, committed)
    after = _records_of(chapter, fresh)
    moved = []
    left_out = []
    for name in sorted(before | after):
        if name not in after:
            moved.append(f"{name}: was not written")
        elif name not in before:
            moved.append(f"{name}: is not among the committed records")
        elif comparable(before[name], after[name]):
            moved += moved_numbers(before[name], after[name])
        else:
            processor = _processor_kind(before[name])
            left_out.append(f"{name}: not compared, since it follows long training on {processor}")
    return moved, left_out


def moved_numbers(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    """Lines of `differences` with the name of the record: the first ones, and how many more.

    Records in float32, or that follow long training, need not agree if they were made by processors
    of two kinds. They are compared within three standard errors, and only where these are stated.
    """
    name = expected["name"]
    exact = comparable(expected, actual) and expected["provenance"].get("dtype") != "float32"
    within_errors = not exact and _processor_kind(expected) != _processor_kind(actual)
    lines = [f"{name}, {line}" for line in differences(expected, actual, within_errors)]
    more = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"{name}: {more} more numbers"] if more > 0 else [])


def compared_values(record: Mapping[str, Any]) -> int:
    """How many values of a record must be the same in two runs, or the same but for a tolerance."""
    compared = [key for key, column in record["columns"].items() if column["tolerance"] is not None]
    return sum(key in row for row in record["rows"] for key in compared)


def std_error(row: Mapping[str, Any], column: str) -> Any:
    """The Monte Carlo standard error of a value in a row: None, a number, or the text `inf`.

    It is a column of the row. For bounds, for which the 2008 paper prints three standard errors, it
    is a third of that column. For values whose error is that of AIS's ln Z, it is the standard
    error of ln Z, or half the width of its one-sigma interval. Files have infinity as text.

    Examples
    --------
    >>> std_error({"bound": -84.0, "error_bound": 0.3}, "bound")
    0.09999999999999999
    """
    if f"{column}_error" in row:
        return row[f"{column}_error"]
    if column == "bound" and "error_bound" in row:
        return row["error_bound"] / 3
    if column in ("log_z", "test", "train"):
        if "log_z_error" in row:
            return row["log_z_error"]
        if "interval_1_sigma" in row:
            low, high = row["interval_1_sigma"]
            # an end that is not a number is infinite, which records store as text
            return (high - low) / 2 if isinstance(low, float) and isinstance(high, float) else None
    return None


def _records_of(chapter: str, folder: Path) -> dict[str, dict[str, Any]]:
    records = map(read_record, sorted(folder.glob("*.json")))
    return {r["name"]: r for r in records if r["provenance"]["chapter"] == chapter}


def differences(
    expected: Mapping[str, Any], actual: Mapping[str, Any], within_errors: bool = False
) -> list[str]:
    r"""Where two records differ by more than the tolerances of `expected`, a line for each place.

    With `within_errors`, a difference counts if it is more than three standard errors of the
    expected value; values without one are not compared.

    Examples
    --------
    >>> columns = {"model": {"label": "model", "tolerance": 0.0},
    ...            "log_z": {"label": r"$\ln \hat Z$", "tolerance": 0.1}}
    >>> old = {"columns": columns, "rows": [{"model": "CD1(16)", "log_z": 1.0}]}
    >>> differences(old, {"columns": columns, "rows": [{"model": "CD1(16)", "log_z": 1.05}]})
    []
    >>> differences(old, {"columns": columns, "rows": [{"model": "CD1(16)", "log_z": 1.2}]})
    ['CD1(16), ln Z: 1.000 -> 1.200 (within 0.1)']
    """
    if expected["columns"] != actual["columns"]:
        return [_other_columns(expected["columns"], actual["columns"])]
    if len(expected["rows"]) != len(actual["rows"]):
        return [f"{len(expected['rows'])} rows expected, {len(actual['rows'])} found"]
    names = _row_names(expected)
    lines = []
    for name, old, new in zip(names, expected["rows"], actual["rows"], strict=True):
        for key, column in expected["columns"].items():
            tolerance = column["tolerance"]
            if within_errors and tolerance is not None:
                error = std_error(old, key)
                stated = isinstance(error, float) and math.isfinite(error)
                tolerance = max(tolerance, 3 * error) if stated else None
            if tolerance is None or _agree(old.get(key), new.get(key), tolerance):
                continue
            values = " -> ".join(_with_digits(old.get(key), new.get(key)))
            within = f"within {tolerance:g}".replace("e-0", "e-") if tolerance else ""
            details = "; ".join(filter(None, [within, _how_far(key, old, new)]))
            line = f"{name}, {_in_words(column['label'])}: {values}"
            lines.append(f"{line} ({details})" if details else line)
    return lines


def _other_columns(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> str:
    """In which columns two records differ, in words."""
    missing = [f"without {key}" for key in expected if key not in actual]
    new = [f"with {key}" for key in actual if key not in expected]
    shared = [key for key in expected if key in actual]
    other = [f"another {key}" for key in shared if expected[key] != actual[key]]
    return f"columns differ: {', '.join(missing + new + other)}"


def _how_far(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """By how many standard errors a value has moved, or how many times as large its error is."""
    before = old.get(key)
    after = new.get(key)
    if isinstance(before, list) and isinstance(after, list):
        return _times_as_wide(before, after)
    if not (isinstance(before, float) and isinstance(after, float)):
        return ""
    if not math.isfinite(after - before):
        return ""
    if key.endswith(("error", "sigma")):
        return f"{after / before:.2f} times as large" if before > 0 else ""
    error = std_error(old, key)
    known = isinstance(error, float) and math.isfinite(error) and error > 0
    return f"{abs(after - before) / error:.1f} standard errors" if known else ""


def _times_as_wide(before: list[Any], after: list[Any]) -> str:
    """How an interval has changed; nothing for other lists, or where an end is infinite."""
    if len(before) != 2 or len(after) != 2:
        return ""
    if not all(isinstance(end, float) for end in before + after):
        return ""
    width = before[1] - before[0]
    new_width = after[1] - after[0]
    known = width > 0 and math.isfinite(width) and math.isfinite(new_width)
    return f"{new_width / width:.2f} times as wide" if known else ""


def _row_names(record: Mapping[str, Any]) -> list[str]:
    """A name for each row: the first settings that tell the rows apart, or else its number."""
    rows = record["rows"]
    names: list[tuple[str, ...]] = [() for _ in rows]
    for key, column in record["columns"].items():
        if column["tolerance"] == 0 and all(_names_a_row(row.get(key)) for row in rows):
            label = _in_words(column["label"])
            values = [row[key] for row in rows]
            words = [_in_words(v) if isinstance(v, str) else f"{label} = {v:g}" for v in values]
            longer = [(*name, word) for name, word in zip(names, words, strict=True)]
            if len(set(longer)) > len(set(names)) or len(rows) == 1:
                names = longer
        if len(set(names)) == len(rows) and all(names):
            return [", ".join(name) for name in names]
    return [f"row {index}" for index in range(len(rows))]


def _names_a_row(value: Value) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) < 80)


def _in_words(label: str) -> str:
    """A column's label as text, such as `ln Z` for an estimate of it."""
    text = re.sub(r"\\(hat|mathbf|mathrm|mathbb|text)\b *", "", label)
    for sign, letters in (("pm", "±"), ("[lr]vert", "|"), ("mid", "|"), ("Vert", "||")):
        text = re.sub(rf"\\{sign}\b", letters, text)
    return re.sub(r"[$\\{}]", "", text)


def _with_digits(old: Value, new: Value) -> tuple[str, str]:
    """Two values with the digits that show their difference."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [_with_digits(a, b) for a, b in zip(old, new, strict=True)]
        before = ", ".join(text for text, _ in pairs)
        after = ", ".join(text for _, text in pairs)
        return f"({before})", f"({after})"
    if isinstance(old, float) and isinstance(new, float) and math.isfinite(old - new):
        decimals = max(0, 2 - math.floor(math.log10(abs(old - new)))) if old != new else 4
        return f"{old:.{decimals}f}", f"{new:.{decimals}f}"
    return str(old), str(new)


def _plain_row(row: Mapping[str, Any], columns: Mapping[str, Column]) -> dict[str, Value]:
    unknown = set(row) - set(columns)
    if unknown:
        raise InputError(
            f"rows: expected the keys {', '.join(columns)}, got {', '.join(sorted(unknown))} too"
        )
    return {key: _plain(row[key]) for key in columns if key in row}


def _plain(value: Any) -> Value:
    """A value in a form that JSON can hold."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int | float):
        if math.isnan(value):
            raise InputError(
                "rows: expected numbers, got nan; a spread, such as a standard deviation, takes "
                "two values or more"
            )
        return value
    raise InputError(
        f"rows: expected numbers, text, None or lists of these, got {type(value).__name__}"
    )


def _agree(old: Value, new: Value, tolerance: float) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(
            _agree(a, b, tolerance) for a, b in zip(old, new, strict=True)
        )
    if isinstance(old, int | float) and isinstance(new, int | float):
        return old == new or abs(old - new) <= tolerance
    return old == new
