"""Every suggestion under "What to try" runs to its end: `make try`, half an hour on two cores."""

import os

import nbformat
import papermill
import pytest
from suggested import BOOK, changed, suggestions


@pytest.mark.parametrize("suggestion", suggestions(), ids=lambda suggestion: suggestion.name)
def test_suggestion_runs_to_the_end(suggestion, tmp_path, monkeypatch):
    if suggestion.parameters.get("profile") == "paper" and "PAPERLIB_DATA" not in os.environ:
        pytest.skip("needs MNIST: set PAPERLIB_DATA")
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    nbformat.write(changed(suggestion), tmp_path / "chapter.ipynb")
    papermill.execute_notebook(
        str(tmp_path / "chapter.ipynb"),
        str(tmp_path / "executed.ipynb"),
        parameters=suggestion.parameters,
        cwd=str(BOOK),
        kernel_name="python3",
        progress_bar=False,
    )
