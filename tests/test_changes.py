"""What a re-runner changes, in the notebooks themselves.

It runs, or a sentence at the cell of the mistake says what to write.
"""

import tempfile

import pytest
from jupyter_client.manager import KernelManager
from notebooks import BOOK
from suggested import cells_to_run, changes

from boltzmann_companion import SETTINGS

# Seconds for the kernel to start, and for a cell. Only a defect takes so long.
PATIENCE = 1_200
# Lines of a traceback through at most two cells of the notebook, and nothing else.
SHORT = 30


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Executes code in one kernel for all tests of this file; returns the error shown, or None.

    There is no data but that of the clone.
    """
    empty = tmp_path_factory.mktemp("empty")
    with tempfile.TemporaryDirectory(dir="/tmp") as sockets, pytest.MonkeyPatch.context() as patch:
        for variable in ("PAPERLIB_FIGURES", "PAPERLIB_DATA", "PAPERLIB_CACHE"):
            patch.setenv(variable, str(empty))
        patch.delenv("NO_PROXY", raising=False)
        patch.delenv("no_proxy", raising=False)
        for variable in ("https_proxy", "HTTPS_PROXY"):
            patch.setenv(variable, "http://127.0.0.1:9")  # where nobody answers
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.delenv(SETTINGS, raising=False)
        manager = KernelManager(transport="ipc", connection_file=f"{sockets}/kernel.json")
        manager.start_kernel(cwd=str(BOOK))
        client = manager.blocking_client()
        client.start_channels()

        def execute(code):
            shown = []
            client.execute_interactive(
                code, timeout=PATIENCE, allow_stdin=False, output_hook=shown.append
            )
            errors = [message["content"] for message in shown if message["msg_type"] == "error"]
            return errors[0] if errors else None

        try:
            client.wait_for_ready(timeout=PATIENCE)
            # %reset would look through all that a chapter imports for garbage, every time
            execute("import gc, boltzmann_companion.chapter, matplotlib.pyplot; gc.freeze()")
            yield execute
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.name)
def test_change_runs_or_says_what_to_write(change, kernel):
    kernel("%reset -f")
    *before, last = cells_to_run(change)
    for cell in before:
        error = kernel(cell)
        assert error is None, (error["evalue"], cell)
    error = kernel(last)
    if not change.error:
        assert error is None, error["evalue"]
    else:
        assert change.error in error["evalue"]
        assert len("\n".join(error["traceback"]).splitlines()) <= SHORT
