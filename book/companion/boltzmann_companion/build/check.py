"""`paperlib check`: run chapters on digits, and say in words which of their claims and numbers moved.

The run writes to `_build/check` only. It goes on after a claim that fails, so that every one is reported.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path

import nbformat

from boltzmann_companion.build.runner import execute_copy
from boltzmann_companion.claims.checks import OWN_SETTINGS
from boltzmann_companion.records import moved_records
from paperlib import storage
from paperlib.errors import ReproductionError

# A cell whose printed lines are the same in every run, or which prints claims.
_COMPARED = {"checks", "nbval-check-output"}


def check_chapter(chapter: Path) -> tuple[list[str], list[str]]:
    """Run a copy of a chapter; returns what moved, and the records that cannot be compared on this processor.

    Parameters
    ----------
    chapter : Path
        From `boltzmann_companion.build.runner.chapters`.
    """
    root = storage.repository_root()
    folder = root / "_build" / "check"
    figures, copy, executed = folder / "figures", folder / chapter.name, folder / "executed.ipynb"
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
    r"""The claims and other checked lines of a chapter that a new run prints differently.

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
    >>> new = nbformat.v4.new_notebook(cells=[printing("it holds: no (with your settings)\nerror: 2\n")])
    >>> moved_lines(old, new)
    ['it holds: yes -> no', 'error: 0.1 -> error: 2']
    """
    pairs = zip(_printed(stored), _printed(run), strict=True)
    return [line for before, after in pairs for line in _moved(before, after)]


def _printed(notebook: nbformat.NotebookNode) -> Iterator[Sequence[str]]:
    for cell in notebook.cells:
        # the records are compared here, whatever the chapter says of them
        if cell.source != "chapter.compare()" and _COMPARED & set(cell.metadata.get("tags", [])):
            text = "".join(output.get("text", "") for output in cell.outputs)
            yield text.replace(OWN_SETTINGS, "").splitlines()


def _moved(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            for old, new in zip_longest(before[a:b], after[c:d], fillvalue="(nothing)"):
                words, _, answer = new.rpartition(": ")
                is_claim = (
                    answer.partition(",")[0] in ("yes", "no") and old.rpartition(": ")[0] == words
                )
                yield f"{old} -> {answer}" if is_claim else f"{old} -> {new}"
