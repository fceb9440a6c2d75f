"""Measure this library and its peers in one run: `python -m benchmarks.run`, or `make bench`.

Every number of threads gets a process of its own. The result is `figures/bench/<machine>.json`, a
record like those of the chapters, with all repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks.competitors import calls
from boltzmann_companion import speed
from boltzmann_likelihood.provenance import processor_name, repository_state
from paperlib import storage

ROOT = storage.repository_root()
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
COLUMNS = {
    key: {"label": label, "unit": unit, "tolerance": tolerance}
    for key, label, unit, tolerance in (
        ("task", "task", "", 0),
        ("visible", "visible units", "count", 0),
        ("hidden", "hidden units", "count", 0),
        ("chains", "chains or images of a minibatch", "count", 0),
        ("steps", "steps, updates or results", "count", 0),
        ("by", "computed by", "", 0),
        ("threads", "threads", "count", 0),
        ("busy", "busy loops beside it on each core", "count", 0),
        ("seconds", "time of each repeat", "s", None),
        ("value", "result", "nats", None),
        ("std_error", "standard error of the result", "nats", None),
    )
}


def rows_of(
    threads: int, device: str, which: str, repeats: int, busy: int = 0
) -> list[dict[str, Any]]:
    """The rows that a worker with so many threads measures, beside busy loops on each core."""
    loop = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(loop) for _ in range(busy * (os.cpu_count() or 1))]
    try:
        rows = _rows_of(threads, device, which, repeats)
    finally:
        for process in loops:
            process.kill()
    return [{**row, "threads": threads, "busy": busy} for row in rows]


def _rows_of(threads: int, device: str, which: str, repeats: int) -> list[dict[str, Any]]:
    """The same, without what the worker does not know."""
    command = [sys.executable, "-m", "benchmarks.worker", device, which, str(repeats)]
    limits = dict.fromkeys(_THREAD_VARIABLES, str(threads))
    print(f"{which} work, {threads} threads", file=sys.stderr)
    worker = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | limits,
        stdout=subprocess.PIPE,
        text=True,
        check=False,  # what it wrote to standard error says more than an exception
    )
    if worker.returncode != 0:
        sys.exit(f"benchmarks: the worker ended with exit code {worker.returncode}; see above")
    return [json.loads(line) for line in worker.stdout.splitlines()]


def provenance(device: str, threads: int, command: str) -> dict[str, Any]:
    """Where the numbers come from, without the time that they take."""
    # virtual machines hide which processor they have; its vector instructions decide how fast it is
    instructions = torch.backends.cpu.get_cpu_capability()
    machine = f"{processor_name()}, {os.cpu_count()} cores, {instructions}"
    if device != "cpu":
        machine = f"{torch.cuda.get_device_name(device)}; {machine}"
    commit, dirty = repository_state()
    packages = ("torch", "numpy", "numba", "rbms", "scikit-learn")
    return {
        "command": command,
        "machine": machine,
        "processor": processor_name(),
        "device": device,
        "threads": threads,
        "dtype": "float32",
        "seed": 1,
        "commit": commit,
        "dirty": dirty,
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        **{package: version(package).split("+")[0] for package in packages},
        "calls": calls(),
        "data": {},
        "models": {},
    }


def machine_slug(machine: str) -> str:
    """A file name for a machine: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[1, os.cpu_count() or 1],
        help="numbers of threads to measure with; by default 1 and all cores",
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--repeats", type=int, default=5, help="how often everything takes its turn"
    )
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it runs")
    parser.add_argument(
        "--output", type=Path, help="by default figures/bench/<machine>.json, _build/bench if quick"
    )
    options = parser.parse_args()
    if min(options.threads) < 1 or options.repeats < 1:
        parser.error("threads, repeats: expected whole numbers of at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("device: expected a GPU that torch can use, found none")
    threads = sorted(set(options.threads))
    command = (
        f"python -m benchmarks.run --threads {' '.join(map(str, threads))} "
        f"--device {options.device} --repeats {options.repeats}"
    )
    if options.quick:
        command += " --quick"
    # The state of the code that is measured, not that of the folder half an hour later.
    origin = provenance(options.device, threads[-1], command)
    started = time.perf_counter()
    which = "quick" if options.quick else "main"
    rows = []
    for count in threads:
        rows += rows_of(count, options.device, which, options.repeats)
        if which == "main" and options.device == "cpu":
            rows += rows_of(count, options.device, "steps", options.repeats)
            rows += rows_of(count, options.device, "busy", options.repeats, busy=1)
    record = {
        "name": machine_slug(origin["machine"]),
        "profile": speed.PROFILE,
        "columns": COLUMNS,
        "rows": [{key: row.get(key) for key in COLUMNS} for row in rows],
        "provenance": {**origin, "seconds": round(time.perf_counter() - started, 1)},
    }
    folder = ROOT / ("_build/bench" if options.quick else f"figures/{speed.PROFILE}")
    path = options.output or folder / f"{record['name']}.json"
    with storage.atomic_path(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    print(f"\nTimes as long as this library\n\n{speed.speed_table([record])}")
    for line in speed.disagreements(record):
        print(f"\nDIFFERENT ANSWERS: {line}")
    print(f"\nWritten to {path}, after {record['provenance']['seconds'] / 60:.1f} minutes.")


if __name__ == "__main__":
    main()
