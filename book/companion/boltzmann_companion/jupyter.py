"""What JupyterLab shows of a chapter.

The page of a chapter shows what was stored at the papers' size, and folds the small run. Whoever
runs the chapter wants to see what the run gives: its results are open and have captions, stored
results are folded and called so, and errors are short.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import FrozenInstanceError
from traceback import walk_tb
from types import TracebackType
from typing import TYPE_CHECKING

from IPython import get_ipython
from IPython.display import Markdown, display

from paperlib.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from IPython.core.interactiveshell import (
        ExecutionInfo,
        ExecutionResult,
        InteractiveShell,
    )
    from nbformat import NotebookNode

# Which tags the page folds or leaves out, by what JupyterLab calls the same.
_FOLDED = {
    "source_hidden": {"hide-input", "remove-input", "hide-cell", "remove-cell"},
    "outputs_hidden": {"hide-output", "remove-output", "hide-cell", "remove-cell"},
}

# Cells that print what a result says.
_CLAIMS = {"checks", "nbval-check-output"}
# The parameters that the reader of the open chapter has changed.
_OWN_PARAMETERS: dict[str, object] = {}
# These say in a sentence what is wrong, or are the reader's own doing: the lines of the library
# that lead to them add nothing.
_EXPLAINED = (InputError, FrozenInstanceError, AssertionError, NameError, KeyboardInterrupt)


def fold(cell: NotebookNode) -> None:
    """Fold a code cell in JupyterLab as its tags fold it on the page.

    But results of the run are open, and those that are only stored are folded. JupyterLab unfolds
    every output when its cell is run.

    Parameters
    ----------
    cell : NotebookNode
        The cell, which is changed.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_code_cell("1", metadata={"tags": ["hide-input"]})
    >>> fold(cell)
    >>> cell.metadata["jupyter"]
    {'source_hidden': True}
    """
    tags = set(cell.metadata.get("tags", []))
    folded = {key for key, folding in _FOLDED.items() if folding & tags}
    if tags & _CLAIMS or "figure" in cell.metadata.get("mystnb", {}):
        folded.discard("outputs_hidden")
        if only_stored(cell.source):
            folded.add("outputs_hidden")
    cell.metadata.pop("jupyter", None)
    if folded:
        cell.metadata["jupyter"] = dict.fromkeys(sorted(folded), True)


def only_stored(source: str) -> bool:
    """Whether a cell shows only results that came with the book, and none of the run.

    Parameters
    ----------
    source : str
        Its code.

    Examples
    --------
    >>> only_stored('chapter.stored("errors")'), only_stored('chapter.joint_table(table)')
    (True, False)
    """
    stored = re.search(r"chapter\.stored\(|comparison_table\(", source)
    return bool(stored) and not re.search(r"chapter\.(record|joint_table)\(", source)


def _say_stored(info: ExecutionInfo) -> None:
    """Say above a stored table that the run does not change it, if the client sends metadata."""
    if info.cell_meta and only_stored(info.raw_cell or ""):
        display(
            Markdown("*Stored with the book, at the papers' size. This run does not change it.*")
        )


def _show_caption(result: ExecutionResult) -> None:
    """Show the caption of the figure or table that a cell has made, with its name in the text.

    The page takes it from the cell's metadata, which JupyterLab does not show, but sends with the
    code. No other client does. With settings of the reader's own it says so.
    """
    metadata = (result.info and result.info.cell_meta) or {}
    figure = metadata.get("mystnb", {}).get("figure")
    if figure and result.success:
        kind = "Table" if figure["name"].startswith("tab-") else "Figure"
        source = (result.info and result.info.raw_cell) or ""
        whose = "" if only_stored(source) else _with_your_settings()
        display(Markdown(f"**{kind} {figure['name']}.** {figure['caption']}{whose}"))


def _with_your_settings() -> str:
    """A sentence that names the parameters that the reader has changed, if any."""
    changes = ", ".join(f"`{name} = {value!r}`" for name, value in _OWN_PARAMETERS.items())
    return f" **With your settings**, {changes}." if changes else ""


def _lines_of_cells(shell: InteractiveShell, traceback: TracebackType) -> TracebackType | None:
    """The part of a traceback in the cells of the notebook."""
    rest = _lines_of_cells(shell, traceback.tb_next) if traceback.tb_next else None
    if traceback.tb_frame.f_globals is not shell.user_ns:
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def explain_outputs(own_parameters: Mapping[str, object]) -> None:
    """From now on, show captions in JupyterLab, and short errors in every notebook.

    An error that explains itself is shown with no lines but the notebook's.

    Parameters
    ----------
    own_parameters : mapping of str to object
        The parameters that the reader has changed. An error of the library's input names them,
        since one of them may have caused it.
    """
    shell = get_ipython()
    if shell is None:
        return
    yours = ", ".join(f"{name} = {value!r}" for name, value in own_parameters.items())
    _OWN_PARAMETERS.clear()
    _OWN_PARAMETERS.update(own_parameters)
    if own_parameters:
        advice = "Below a cell that you have not run, what the book has is shown."
        display(Markdown(f"{_with_your_settings().strip()} {advice}"))

    def show(
        shell: InteractiveShell,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        message = str(error)
        if kind is InputError and yours:
            message += f" (your parameters: {yours})"
        if kind is NameError:
            *_, (last, _) = walk_tb(traceback)
            if last.f_globals is not shell.user_ns:  # a fault of the library
                shell.showtraceback((kind, error, traceback), tb_offset=1)
                return
            message += "; run the cells above this one first, or look for a slip in the name"
        short = kind(message).with_traceback(_lines_of_cells(shell, traceback))
        shell.showtraceback((kind, short, short.__traceback__), tb_offset=0)
        # `%tb` shows all lines.
        sys.last_value = error
        sys.last_traceback = traceback

    shell.set_custom_exc(_EXPLAINED, show)
    for event, shown in (("pre_run_cell", _say_stored), ("post_run_cell", _show_caption)):
        with suppress(ValueError):  # it is not registered yet
            shell.events.unregister(event, shown)
        shell.events.register(event, shown)
