"""What JupyterLab shows of a chapter: its run open and with captions, what is stored folded and called so, and errors in short.

The page shows what was stored at the papers' size, and folds the small run. Whoever runs the
chapter wants to see what the run gives.
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
_OWN: dict[str, object] = {}
# These say in a sentence what is wrong, or are the reader's own doing: the lines of the library
# that lead to them add nothing.
_EXPLAINED = (InputError, FrozenInstanceError, AssertionError, NameError, KeyboardInterrupt)


def fold(cell: NotebookNode) -> None:
    """Fold a code cell in JupyterLab as its tags fold it on the page, but what the run gives is open, and what is only stored is folded.

    JupyterLab unfolds every output when its cell is run.

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
        folded -= {"outputs_hidden"}
        if only_stored(cell.source):
            folded |= {"outputs_hidden"}
    cell.metadata["jupyter"] = dict.fromkeys(sorted(folded), True)
    if not folded:
        del cell.metadata["jupyter"]


def only_stored(source: str) -> bool:
    """Whether a cell shows only results that lie in the clone, and none of the run.

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
    """Say above a stored table that the run does not change it, to whom `_show_caption` shows the caption."""
    if info.cell_meta and only_stored(info.raw_cell or ""):
        display(
            Markdown("*Stored with the book, at the papers' size. This run does not change it.*")
        )


def _show_caption(result: ExecutionResult) -> None:
    """Show the caption of the figure or table that a cell has made, with the name by which the text refers to it.

    The page takes it from the cell's metadata, which JupyterLab does not show, but sends with the
    code. No other client does. With settings of the reader's own it says so.
    """
    of_cell = (result.info and result.info.cell_meta) or {}
    made = of_cell.get("mystnb", {}).get("figure")
    if made and result.success:
        kind = "Table" if made["name"].startswith("tab-") else "Figure"
        source = (result.info and result.info.raw_cell) or ""
        whose = "" if only_stored(source) else _with_your_settings()
        display(Markdown(f"**{kind} {made['name']}.** {made['caption']}{whose}"))


def _with_your_settings() -> str:
    """A sentence that names the parameters that the reader has changed; nothing if there are none."""
    named = ", ".join(f"`{name} = {value!r}`" for name, value in _OWN.items())
    return f" **With your settings**, {named}." if named else ""


def _own_lines(shell: InteractiveShell, traceback: TracebackType) -> TracebackType | None:
    """The part of a traceback in the cells of the notebook."""
    rest = _own_lines(shell, traceback.tb_next) if traceback.tb_next else None
    if traceback.tb_frame.f_globals is not shell.user_ns:
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)


def explain_outputs(own: Mapping[str, object]) -> None:
    """From now on, say in JupyterLab what a table or figure is, and in every notebook, show an error that explains itself with no lines but the notebook's.

    Parameters
    ----------
    own : mapping of str to object
        The parameters that the reader has changed, which an error may come from: it names what the
        library was given.
    """
    shell = get_ipython()
    if shell is None:
        return
    yours = ", ".join(f"{name} = {value!r}" for name, value in own.items())
    _OWN.clear()
    _OWN.update(own)
    if own:
        told = "Below a cell that you have not run, what the book has is shown."
        display(Markdown(f"{_with_your_settings().strip()} {told}"))

    def show(
        shell: InteractiveShell,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        told = str(error)
        if kind is InputError and yours:
            told += f" (your parameters: {yours})"
        if kind is NameError:
            *_, (last, _) = walk_tb(traceback)
            if last.f_globals is not shell.user_ns:  # a fault of the library
                shell.showtraceback((kind, error, traceback), tb_offset=1)
                return
            told += "; run the cells above this one first, or look for a slip in the name"
        alone = kind(told).with_traceback(_own_lines(shell, traceback))
        shell.showtraceback((kind, alone, alone.__traceback__), tb_offset=0)
        # `%tb` shows all lines.
        sys.last_value = error
        sys.last_traceback = traceback

    shell.set_custom_exc(_EXPLAINED, show)
    for event, shown in (("pre_run_cell", _say_stored), ("post_run_cell", _show_caption)):
        with suppress(ValueError):  # it is not registered yet
            shell.events.unregister(event, shown)
        shell.events.register(event, shown)
