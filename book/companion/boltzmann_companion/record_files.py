"""The files of records: JSON, in which infinities are text.

This module needs neither torch nor numpy, so that numbers in prose are compared with their cells in
a second.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paperlib.errors import InputError

# JSON has no infinity; a lower end of minus infinity is a valid result here.
_INFINITIES = {math.inf: "inf", -math.inf: "-inf"}
_FROM_TEXT = {text: number for number, text in _INFINITIES.items()}


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A record from its file.

    Raises
    ------
    InputError
        If the file is missing or is not a record.

    Examples
    --------
    >>> from paperlib import storage
    >>> folder = storage.companion_folder() / "figures" / "paper"
    >>> read_record(folder / "sm2008-table-1.json")["provenance"]["chapter"]
    '05-exact-partition-functions'
    """
    record = read_json(path)
    missing = {"name", "profile", "columns", "rows", "provenance"} - set(record)
    if missing:
        raise InputError(
            f"path: expected a record in {path}, it lacks {', '.join(sorted(missing))}"
        )
    return record


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file of a record, or of a table like one, holds.

    Raises
    ------
    InputError
        If the file is missing or is not JSON.
    """
    try:
        return _decoded(json.loads(Path(path).read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(f"path: expected a record at {path}, found none") from error
    except json.JSONDecodeError as error:
        raise InputError(f"path: expected a record in {path}, it is not JSON: {error}") from error


def as_json(value: Any) -> Any:
    """A value of a record as its file has it.

    Examples
    --------
    >>> as_json({"interval": [-math.inf, 1.5]})
    {'interval': ['-inf', 1.5]}
    """
    return _changed(value, lambda one: _INFINITIES.get(one, one) if isinstance(one, float) else one)


def _decoded(value: Any) -> Any:
    return _changed(value, lambda one: _FROM_TEXT.get(one, one) if isinstance(one, str) else one)


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value of JSON with every number and text in it changed."""
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in value.items()}
    return [_changed(item, change) for item in value] if isinstance(value, list) else change(value)
