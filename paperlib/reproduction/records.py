"""Results on disk: `figures/<profile>/<name>.json` with provenance, and pictures beside them.

A record's columns say in which unit a number is and how far two runs may differ in it. Saving a result that agrees with
the record on disk within those tolerances leaves the files alone, so that version control shows a change exactly when a
number has moved.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from paperlib import storage
from paperlib.reproduction import SETTINGS
from paperlib.reproduction.recipes import RECIPES, Model, binary_images

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paperlib.reproduction.profiles import Profile

Value = float | int | str | None | list[float]


@dataclass(frozen=True)
class Column:
    """What a record says of one of its columns.

    Attributes
    ----------
    label : str
        Heading, in Markdown.
    unit : str
        `nats`, `minutes`, `count`, ... ; empty for names.
    tolerance : float or None
        Largest absolute difference between two runs of the same code with the same seed; None: not compared.
    """

    label: str
    unit: str = ""
    tolerance: float | None = 0.0


def results_folder(profile: str) -> Path:
    """Where a profile's results go: `$PAPERLIB_FIGURES/<profile>`, by default `figures/<profile>` of the checkout.

    A chapter that runs elsewhere, beside an installed library, writes `figures/<profile>` in its own folder.
    """
    chosen = os.environ.get("PAPERLIB_FIGURES")
    if chosen:
        return Path(chosen) / profile
    try:
        return storage.repository_root() / "figures" / profile
    except ValueError:
        return Path("figures") / profile


class Run:
    """One execution of a chapter: starts the clock, and writes results with their provenance.

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
        self._commit, self._dirty = repository_state()

    def save(
        self,
        name: str,
        columns: Mapping[str, Column],
        rows: Sequence[Mapping[str, Any]],
        *,
        models: Mapping[str, Model] | None = None,
        figure: Figure | None = None,
        processor_bound: bool = False,
    ) -> dict[str, Any]:
        """Write a record, and its picture as SVG and PNG, unless the one on disk agrees with it, or cannot be compared with it.

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
        figure : matplotlib Figure, optional
            The picture.
        processor_bound : bool
            Whether the numbers follow thousands of updates of a model. These amplify the last digits, in which processors of other
            makers or with other vector instructions add up differently, and end at other models.

        Returns
        -------
        dict
            The record as computed now, whether or not it was written.

        Raises
        ------
        ValueError
            If a row has a key that is not a column, or a value that a record cannot hold.
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
            "provenance": self._provenance(models or {}),
        }
        folder = results_folder(self._profile.name)
        path = folder / f"{name}.json"
        pictures = [] if figure is None else [folder / f"{name}.svg", folder / f"{name}.png"]
        unchanged = (
            os.environ.get("PAPERLIB_REFRESH") != "1"
            and path.is_file()
            and all(picture.is_file() for picture in pictures)
            and not (comparable(old := read_record(path), record) and differences(old, record))
        )
        if not unchanged:
            for picture in pictures:
                with storage.atomic_path(picture) as temporary:
                    # A fixed date keeps two pictures of the same numbers identical.
                    figure.savefig(
                        temporary,
                        metadata={"Date": None} if picture.suffix == ".svg" else None,
                        dpi=150,
                    )
            with storage.atomic_path(path) as temporary:
                temporary.write_text(json.dumps(_encode(record), indent=1, allow_nan=False) + "\n")
        return record

    def _provenance(self, models: Mapping[str, Model]) -> dict[str, Any]:
        # Most chapters look at one data set only; RAISE's tables have models of two.
        datasets = {RECIPES[key].dataset for key in models if key in RECIPES}
        datasets.add(self._profile.dataset)
        command = f"paperlib reproduce --profile {self._profile.name} --only {self._chapter}"
        if self._profile.device != "cpu":
            command += f" --device {self._profile.device}"
        return {
            "command": f"{command} {os.environ.get(SETTINGS, '')}".rstrip(),
            "chapter": self._chapter,
            "seed": self._seed,
            "commit": self._commit,
            "dirty": self._dirty,
            "utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._started, 1),
            "device": self._profile.device,
            "processor": processor_name(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "dtype": str(self._profile.dtype).removeprefix("torch."),
            "torch": torch.__version__.split("+")[0],
            "numpy": np.__version__,
            "data": {name: binary_images(name).grey.checksum for name in sorted(datasets)},
            "models": {key: model.checksum() for key, model in models.items()},
        }


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A record from its file.

    Raises
    ------
    ValueError
        If the file is missing or is not a record.
    """
    try:
        record = _decode(json.loads(Path(path).read_text()))
    except FileNotFoundError as error:
        raise ValueError(f"path: expected a record at {path}, found none") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"path: expected a record in {path}, it is not JSON: {error}") from error
    missing = {"name", "profile", "columns", "rows", "provenance"} - set(record)
    if missing:
        raise ValueError(
            f"path: expected a record in {path}, it lacks {', '.join(sorted(missing))}"
        )
    return record


def load_result(name: str, profile: str) -> dict[str, Any] | None:
    """The committed record of this name, or None if there is none."""
    path = storage.companion_folder() / "figures" / profile / f"{name}.json"
    return read_record(path) if path.is_file() else None


def source_line(record: Mapping[str, Any]) -> str:
    """Where a record is and the command that makes it again: the line of Markdown below its tables and pictures."""
    path = f"figures/{record['profile']}/{record['name']}.json"
    return f"<small>[{path}](../{path}) · `{record['provenance']['command']}`</small>"


def processor_kind(record: Mapping[str, Any]) -> str:
    """The processor that made a record, and its vector instructions."""
    provenance = record["provenance"]
    return f"{provenance['processor']}, {provenance['instructions']}"


def comparable(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Whether two records must agree: always, or for processor-bound ones if the same kind of processor made them."""
    return not expected.get("processor_bound") or processor_kind(expected) == processor_kind(actual)


def differences(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[str]:
    """Where two records differ by more than the tolerances of `expected`; one line for each place."""
    if expected["columns"] != actual["columns"]:
        return ["columns differ"]
    if len(expected["rows"]) != len(actual["rows"]):
        return [f"{len(expected['rows'])} rows expected, {len(actual['rows'])} found"]
    found = []
    for index, (old, new) in enumerate(zip(expected["rows"], actual["rows"], strict=True)):
        for key, column in expected["columns"].items():
            if column["tolerance"] is not None and not _agree(
                old.get(key), new.get(key), column["tolerance"]
            ):
                found.append(
                    f"row {index}, {key}: expected {old.get(key)} within {column['tolerance']}, found {new.get(key)}"
                )
    return found


def repository_state(*also: str) -> tuple[str | None, bool | None]:
    """Commit of the checkout, and whether its code differs from it; (None, None) without a checkout or version control.

    The code is the library's, and what else in the checkout is named.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=storage.repository_root(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        # Results and stored outputs are what a run writes: they do not make its code dirty.
        changes = git(
            "status",
            "--porcelain",
            "--",
            "paperlib",
            "constraints.txt",
            "data/published.yaml",
            *also,
        )
        return git("rev-parse", "HEAD"), bool(changes)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None, None


def processor_name() -> str:
    """The processor's name as the operating system gives it."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    import platform

    return platform.processor() or platform.machine()


def _plain_row(row: Mapping[str, Any], columns: Mapping[str, Column]) -> dict[str, Value]:
    unknown = set(row) - set(columns)
    if unknown:
        raise ValueError(
            f"rows: expected the keys {', '.join(columns)}, got {', '.join(sorted(unknown))} too"
        )
    return {key: _plain(row[key]) for key in columns if key in row}


def _plain(value: Any) -> Value:
    """A value as JSON knows it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, int | float):
        return value
    raise ValueError(
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


# JSON has no infinity; a lower end of minus infinity is an honest result here.
_INFINITIES = {math.inf: "inf", -math.inf: "-inf"}


def _encode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return _INFINITIES.get(value, value) if isinstance(value, float) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decode(item) for item in value]
    return (
        {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value
    )
