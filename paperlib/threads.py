"""Independent tasks and walks of many steps, side by side on the processor's cores.

`run_in_threads` is for tasks of which only the end is of interest, `walk_side_by_side` for walks
that report every step, and `step_bar` is the progress bar of both.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

import torch
from tqdm import tqdm

Result = TypeVar("Result")
# Called after each step with the number of chains that took it, or with a number of steps.
OnStep: TypeAlias = Callable[[int], object]


@contextmanager
def one_thread() -> Iterator[None]:
    """A context with a single torch thread.

    The last digits of float32 sums depend on how many threads share them.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def run_in_threads(
    tasks: Sequence[Callable[[], Result]],
    on_result: Callable[[], object] = lambda: None,
    stop: Callable[[], object] = lambda: None,
) -> list[Result]:
    """The results of all tasks, in order; as many run at a time as torch has threads.

    Each task is the work of one thread, so its last digits are the same for any number of threads
    (`torch.set_num_threads`). Threads pay off where the tasks spend their time in large tensor
    operations, outside the interpreter. `on_result` is called when a task is done, and `stop` when
    one of several has failed, before the exception is raised.
    """
    threads = torch.get_num_threads()
    if min(threads, len(tasks)) == 1:  # to start a thread takes longer than a small task
        results = []
        with one_thread():
            for task in tasks:
                results.append(task())
                on_result()
        return results
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            futures = [pool.submit(task) for task in tasks]
            for future in as_completed(futures):
                future.result()
                on_result()
            return [future.result() for future in futures]
        except BaseException:
            stop()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            # The workers' setting would otherwise become the default of all later threads.
            torch.set_num_threads(threads)


def in_open_notebook() -> bool:
    """Whether the running cell is one that a person runs in Jupyter.

    JupyterLab lets a cell ask its reader for input; papermill and nbval, which store or compare
    what a cell prints, do not.
    """
    if "IPython" not in sys.modules:
        return False
    kernel = getattr(sys.modules["IPython"].get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))


def step_bar(
    total: int, description: str, progress: bool | None, unit: str = "step", initial: int = 0
) -> tqdm:
    """A progress bar for a run of more than two seconds.

    If `progress` is None, there is one only in a terminal or in an open notebook. There it goes
    away once it is full, so that it is not saved with the outputs.
    """
    notebook = in_open_notebook()
    # None lets tqdm find out whether standard error is a terminal
    by_default = False if notebook else None
    return tqdm(
        total=total,
        initial=initial,
        desc=description,
        unit=unit,
        unit_scale=total >= 1_000,
        delay=2,
        # JupyterLab shows what goes to standard error in red
        file=sys.stdout if notebook else None,
        leave=not notebook,
        disable=by_default if progress is None else not progress,
    )


class _StoppedError(Exception):
    """Another walk has failed, or the user has pressed Ctrl-C."""


def walk_side_by_side(walks: Sequence[Callable[[OnStep], Result]], on_step: OnStep) -> list[Result]:
    """`run_in_threads` for tasks of many steps, which are reported to `on_step`.

    Only one thread calls it at a time. An exception in one walk, or Ctrl-C, ends the others at
    their next step.
    """
    stop = threading.Event()
    lock = threading.Lock()
    failures: list[BaseException] = []

    def on_step_of_any(count: int) -> None:
        with lock:
            if failures or stop.is_set():
                raise _StoppedError
            try:
                on_step(count)
            except BaseException as failure:
                failures.append(failure)
                raise

    try:
        return run_in_threads([partial(walk, on_step_of_any) for walk in walks], stop=stop.set)
    except _StoppedError:  # a walk that was stopped may end before the one that failed
        raise failures[0] from None
