"""Independent tasks side by side on the processor's cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import torch

Result = TypeVar("Result")


def run_in_threads(
    tasks: Sequence[Callable[[], Result]],
    on_result: Callable[[], object] = lambda: None,
    stop: Callable[[], object] = lambda: None,
) -> list[Result]:
    """The results of all tasks, in their order; as many run at a time as torch has threads (`torch.set_num_threads`), each with one thread.

    That a task is the work of one thread makes its last digits the same for any number of them. Threads pay where the tasks spend their
    time in large tensor operations, outside the interpreter.

    Parameters
    ----------
    tasks : sequence of callables without arguments
        What is to be done.
    on_result : callable, optional
        Called, by this thread, for every task that is done.
    stop : callable, optional
        Called at the first exception in a task, or at Ctrl-C, before the tasks in progress are waited for: it may end them.
    """
    threads = torch.get_num_threads()
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
            # What a worker sets would otherwise become the default of all threads to come.
            torch.set_num_threads(threads)
