"""Measures times and prints them as JSON lines.

`run` starts it as a process, with the number of threads in its environment:

    python -m benchmarks.worker DEVICE main|quick|steps|busy REPEATS

For every item of work all competitors come one after the other, and when all items are done they
take the next turn. A slow minute of the machine hits all who do the same work, and of each of them
only one turn.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import product
from typing import Any

import torch

from benchmarks.competitors import runs
from benchmarks.work import Answer, Work, main_work, quick_work, step_work
from boltzmann_companion import speed

WORK = {"main": main_work, "quick": quick_work, "steps": step_work, "busy": step_work}
# Who takes part; without names, everybody. On a busy machine torch's threads would wait for each
# other for minutes.
ONLY = {
    "main": (),
    "quick": (),
    "steps": (speed.LIBRARY, speed.FLOOR),
    "busy": (speed.LIBRARY,),
}


def timed(run: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Seconds of one call, and what it returned."""
    started = time.perf_counter()
    answer = run()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - started, answer


def take_time(works: Iterable[Work], only: tuple[str, ...], device: str, repeats: int) -> None:
    works = list(works)
    seconds: dict[tuple[Work, str], list[float]] = {}
    answers: dict[tuple[Work, str], Any] = {}
    for turn, work in product(range(1, repeats + 1), works):
        for run in runs(work.small(), device, only).values():
            # twice: torch's own compiler looks at the first call and optimises at the second
            for _ in range(2):
                run()
        for name, run in runs(work, device, only).items():
            elapsed, answers[work, name] = timed(run, device)
            seconds.setdefault((work, name), []).append(round(elapsed, 6))
            say(work, f"{name}, turn {turn} of {repeats}")
    for (work, name), times in seconds.items():
        answer = answers[work, name]
        if not isinstance(answer, Answer):  # of training it is a model
            answer = Answer(None, None)
        row = {**asdict(work), "by": name, "seconds": times, **answer._asdict()}
        print(json.dumps(row), flush=True)


def say(work: Work, what: str) -> None:
    print(f"{work.task}, {work.visible} x {work.hidden}: {what}", file=sys.stderr, flush=True)


def main() -> None:
    device, which, repeats = sys.argv[1:]
    take_time(WORK[which](), ONLY[which], device, int(repeats))


if __name__ == "__main__":
    main()
