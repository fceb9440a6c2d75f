"""Takes time or memory, in a process that `run` starts with the number of threads in its environment; prints JSON lines.

    python -m benchmarks.worker time|memory DEVICE main|growth|quick REPEATS

Time: for every item of work all competitors come one after the other, and when all items are done they take the next turn. A slow
minute of the machine hits all who do the same work, and of each of them only one turn.

Memory: every competitor runs once in a child of its own, forked before peers are imported and anything is compiled. Its peak is that
of the whole process, torch and the compiler included; what the process had before it began with the work is given beside it.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import product
from multiprocessing.connection import Connection
from typing import Any

import torch

from benchmarks.competitors import COMPETITORS, runs
from benchmarks.work import Answer, Work, growth_work, main_work, quick_work

WORK = {"main": main_work, "growth": growth_work, "quick": quick_work}


def timed(run: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Seconds of one call, and what it returned."""
    started = time.perf_counter()
    answer = run()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started, answer


def take_time(works: Iterable[Work], device: str, repeats: int) -> None:
    works = list(works)
    seconds: dict[tuple[Work, str], list[float]] = {}
    answers: dict[tuple[Work, str], Any] = {}
    for turn, work in product(range(1, repeats + 1), works):
        for run in runs(work.small(), device).values():
            # twice: torch's own compiler looks at the first call and optimises at the second
            for _ in range(2):
                run()
        for name, run in runs(work, device).items():
            elapsed, answers[work, name] = timed(run, device)
            seconds.setdefault((work, name), []).append(round(elapsed, 6))
            say(work, f"{name}, turn {turn} of {repeats}")
    for (work, name), taken in seconds.items():
        found = answers[work, name]
        answer = found if isinstance(found, Answer) else Answer(None, None)
        tell(work, name, seconds=taken, **answer._asdict())


def take_memory(works: Iterable[Work], device: str) -> None:
    forking = multiprocessing.get_context("fork")
    for work in works:
        for name in COMPETITORS[work.task]:
            receiver, sender = forking.Pipe(duplex=False)
            child = forking.Process(
                target=_report_memory, args=(work.short(), name, device, sender)
            )
            child.start()
            sender.close()
            try:
                measured = receiver.recv()
            except EOFError:  # it ended without a word
                child.join()
                sys.exit(f"{name} failed at {work} with exit code {child.exitcode}")
            child.join()
            if measured is not None:
                tell(work, name, **measured)
                say(work, f"{name}, memory")


def _report_memory(work: Work, name: str, device: str, sender: Connection) -> None:
    run = runs(work, device, only=name).get(name)
    if run is None:
        sender.send(None)
        return
    before = _peak_mib()
    run()
    measured = {"peak_mib": _peak_mib(), "before_mib": before, "device_mib": None}
    if device != "cpu":
        measured["device_mib"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    sender.send(measured)


def _peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)


def tell(work: Work, name: str, **measured: Any) -> None:
    print(json.dumps({**asdict(work), "by": name, **measured}), flush=True)


def say(work: Work, what: str) -> None:
    print(f"{work.task}, {work.visible} x {work.hidden}: {what}", file=sys.stderr, flush=True)


def main() -> None:
    what, device, which, repeats = sys.argv[1:]
    if what == "time":
        take_time(WORK[which](), device, int(repeats))
    else:
        take_memory((work for work in WORK[which]() if not work.sweep), device)


if __name__ == "__main__":
    main()
