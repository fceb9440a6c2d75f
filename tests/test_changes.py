"""What a re-runner changes, in the notebooks themselves: it runs, or a sentence at the cell of the mistake says what to write."""

import tempfile

import pytest
from jupyter_client.manager import KernelManager
from notebooks import BOOK
from suggested import cells_to_run, changes

from boltzmann_companion import SETTINGS

# Seconds for the kernel to start, and for a cell. Only a defect takes so long.
PATIENCE = 1_200
# Lines of a traceback that has the notebook's own lines only.
SHORT = 20


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Executes code in one kernel for all tests of this file, and returns the kernel's reply. There is no data but that in the clone."""
    empty = tmp_path_factory.mktemp("empty")
    with tempfile.TemporaryDirectory(dir="/tmp") as sockets, pytest.MonkeyPatch.context() as patch:
        for variable in ("PAPERLIB_FIGURES", "PAPERLIB_DATA", "PAPERLIB_CACHE"):
            patch.setenv(variable, str(empty))
        for variable in ("https_proxy", "HTTPS_PROXY"):
            patch.setenv(variable, "http://127.0.0.1:9")  # where nobody answers
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.delenv(SETTINGS, raising=False)
        manager = KernelManager(transport="ipc", connection_file=f"{sockets}/kernel.json")
        manager.start_kernel(cwd=str(BOOK))
        client = manager.blocking_client()
        client.start_channels()

        def execute(code):
            reply = client.execute_interactive(
                code, timeout=PATIENCE, allow_stdin=False, output_hook=lambda message: None
            )
            return reply["content"]

        try:
            client.wait_for_ready(timeout=PATIENCE)
            yield execute
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.name)
def test_change_runs_or_says_what_to_write(change, kernel):
    kernel("%reset -f")
    *before, last = cells_to_run(change)
    for cell in before:
        assert kernel(cell)["status"] == "ok", cell
    reply = kernel(last)
    assert (reply["status"] == "error") == bool(change.error), reply
    if change.error:
        assert change.error in reply["evalue"]
        assert len("\n".join(reply["traceback"]).splitlines()) <= SHORT
