"""`paperlib check`: which records are out of date, and what moves when a chapter is run.

A record is up to date if it was made from what its command would use today. A run of a chapter is
on digits, and writes to `_build/check` only. It goes on after a claim that fails, so that each one
is reported.
"""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
import torch

from boltzmann_companion.build.runner import execute_copy
from boltzmann_companion.chapter import book_parameters, read_settings, settings_in_force
from boltzmann_companion.claims.checks import OWN_SETTINGS, read_line
from boltzmann_companion.model_store import model_path
from boltzmann_companion.recipes import RECIPES, load_model
from boltzmann_companion.record_files import read_record
from boltzmann_companion.records import moved_records, other_inputs
from paperlib import storage
from paperlib.datasets import binary_images
from paperlib.datasets.images import data_folders
from paperlib.errors import InputError, ReproductionError
from paperlib.kernels.version import DRAWS

# A cell whose printed lines are the same in every run, or which prints claims.
_COMPARED = {"checks", "nbval-check-output"}


def outdated(record: Mapping[str, Any]) -> list[str]:
    """What a record was made from that its command would not use today, in words.

    Data sets that are not on this machine are not compared.

    Parameters
    ----------
    record : mapping
        From `boltzmann_companion.record_files.read_record`, written by a chapter.

    Examples
    --------
    >>> from boltzmann_companion.record_files import read_record
    >>> table = storage.companion_folder() / "figures" / "paper" / "control-variates.json"
    >>> record = read_record(table)
    >>> del record["provenance"]["draws"]
    >>> outdated(record)[0]
    "draws None, not '0.2.0'"
    """
    made = record["provenance"]
    chapter = made["chapter"]
    profile = record["profile"]
    parameters, _ = book_parameters(chapter)
    del parameters["profile"]
    settings = settings_in_force(parameters, read_settings(chapter, profile), profile)
    now = {
        "draws": DRAWS,
        "settings": settings,
        "models": {
            name: _model_checksum(name, checksum)
            for name, checksum in made["models"].items()
            if name in RECIPES and model_path(name).is_file()
        },
        "data": {
            name: _data_checksum(name, checksum)
            for name, checksum in made["data"].items()
            if name == "digits" or any(folder.is_dir() for folder in data_folders(name))
        },
    }
    return other_inputs(record, now)


def check_records(root: Path, chapters: Container[str]) -> tuple[int, list[str]]:
    """How many records these chapters have made, and what to do about those that are out of date.

    Parameters
    ----------
    root : Path
        The repository.
    chapters : container of str
        Their names.
    """
    records = map(read_record, sorted((root / "figures").glob("*/*.json")))
    made = [record for record in records if record["provenance"].get("chapter") in chapters]
    old = []
    for record in made:
        reasons = outdated(record)
        if reasons:
            old.append(
                f"{record['profile']}/{record['name']}: made from {'; '.join(reasons)}\n"
                f"  make it again: {record['provenance']['command']}"
            )
    return len(made), old


@cache
def _model_checksum(name: str, expected: str) -> str:
    """The checksum of a stored model, which is the expected one if it is that in either type."""
    checksums = [load_model(name, dtype).checksum() for dtype in (torch.float32, torch.float64)]
    return expected if expected in checksums else checksums[0]


@cache
def _data_checksum(name: str, expected: str) -> str:
    """The checksum of a data set, or the expected one where its files are not there."""
    try:
        return binary_images(name).grey.checksum
    except InputError:
        return expected


def check_chapter(chapter: Path) -> tuple[list[str], list[str]]:
    """Run a copy of a chapter; returns what moved, and which records cannot be compared here.

    Parameters
    ----------
    chapter : Path
        From `boltzmann_companion.build.runner.chapters`.
    """
    root = storage.repository_root()
    folder = root / "_build" / "check"
    figures = folder / "figures"
    copy = folder / chapter.name
    executed = folder / "executed.ipynb"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stored = nbformat.read(chapter, as_version=4)
    nbformat.write(_not_stopped_by_claims(stored), copy)
    moved = []
    try:
        execute_copy(
            copy, executed, {"profile": "digits"}, executed, {"PAPERLIB_FIGURES": str(figures)}
        )
        moved += moved_lines(stored, nbformat.read(executed, as_version=4))
    except ReproductionError as error:
        moved.append(f"the run stopped: {error}")
    numbers, left_out = moved_records(chapter.stem, root / "figures" / "digits", figures / "digits")
    return moved + numbers, left_out


def _not_stopped_by_claims(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and "open_chapter(" in cell.source:
            cell.source += "\nchapter.as_given = False"
    return notebook


def moved_lines(stored: nbformat.NotebookNode, run: nbformat.NotebookNode) -> list[str]:
    r"""The claims, tables and other checked lines of a chapter that a new run shows differently.

    Parameters
    ----------
    stored, run : NotebookNode
        The committed chapter, and one with the same code cells that was run.

    Examples
    --------
    >>> def printing(text):
    ...     output = nbformat.v4.new_output("stream", text=text)
    ...     return nbformat.v4.new_code_cell(outputs=[output], metadata={"tags": ["checks"]})
    >>> old = nbformat.v4.new_notebook(cells=[printing("it holds: yes\nerror: 0.1\n")])
    >>> text = "it holds: no (with your settings)\nerror: 2\n"
    >>> moved_lines(old, nbformat.v4.new_notebook(cells=[printing(text)]))
    ['it holds: yes -> no', 'error: 0.1 -> error: 2']
    >>> def showing(table):
    ...     output = nbformat.v4.new_output("display_data", data={"text/markdown": table})
    ...     tags = {"tags": ["nbval-check-output"]}
    ...     return nbformat.v4.new_code_cell(outputs=[output], metadata=tags)
    >>> old = nbformat.v4.new_notebook(cells=[showing("| AIS | 271.31 |")])
    >>> moved_lines(old, nbformat.v4.new_notebook(cells=[showing("| AIS | 271.13 |")]))
    ['| AIS | 271.31 | -> | AIS | 271.13 |']
    """
    pairs = zip(_printed(stored), _printed(run), strict=True)
    return [line for before, after in pairs for line in _moved(before, after)]


def _printed(notebook: nbformat.NotebookNode) -> Iterator[Sequence[str]]:
    for cell in notebook.cells:
        # the records are compared here, whatever the chapter says of them
        if cell.source != "chapter.compare()" and _COMPARED & set(cell.metadata.get("tags", [])):
            text = "".join(map(_text_of, cell.outputs))
            yield text.replace(OWN_SETTINGS, "").splitlines()


def _text_of(output: nbformat.NotebookNode) -> str:
    """What an output prints, or the table that it shows."""
    return output.get("text", "") or output.get("data", {}).get("text/markdown", "")


def _moved(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for old, new in zip_longest(before[a:b], after[c:d], fillvalue="(nothing)"):
            old_claim = read_line(old)
            new_claim = read_line(new)
            if old_claim and new_claim and old_claim[0] == new_claim[0]:
                yield f"{old} -> {new_claim[1]}"
            else:
                yield f"{old} -> {new}"
