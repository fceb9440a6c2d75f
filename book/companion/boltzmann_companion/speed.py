"""Measured speed: tables and figures from the records that `benchmarks` writes, for the terminal and for the page of the book.

A record holds the seconds of every repeat. This module computes medians and quartiles, ratios of medians, exponents of growth, and
whether the library reached the targets that it has set itself. It measures nothing.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from boltzmann_companion.plots import PALETTE
from boltzmann_companion.records import read_record
from boltzmann_companion.tables import Table, format_value, significant
from paperlib import storage

Record = Mapping[str, Any]
Row = Mapping[str, Any]
# The rows of one item of work, by who did it.
Work = Mapping[str, Row]

#: Name of the folder in `figures` that holds these records.
PROFILE = "bench"
LIBRARY, FLOAT_FLOOR, INTEGER_FLOOR = "paperlib", "float32 products", "integer products"
_LOOP = "plain torch"
PEER, LISTED_PEER, OTHER_PEER = "rbms", "rbms, states listed before", "scikit-learn"
COLUMNS = {
    key: {"label": label, "unit": unit, "tolerance": tolerance}
    for key, label, unit, tolerance in (
        ("task", "task", "", 0),
        ("visible", "visible units", "count", 0),
        ("hidden", "hidden units", "count", 0),
        ("chains", "chains or images of a minibatch", "count", 0),
        ("steps", "steps, updates or results", "count", 0),
        ("sweep", "what a growth curve runs over", "", 0),
        ("by", "computed by", "", 0),
        ("threads", "threads", "count", 0),
        ("seconds", "time of each repeat", "s", None),
        ("value", "result", "nats", None),
        ("std_error", "standard error of the result", "nats", None),
        ("peak_mib", "peak memory of the process, largest number of threads", "MiB", None),
        ("before_mib", "of which before the work began", "MiB", None),
        ("device_mib", "peak memory of the GPU", "MiB", None),
    )
}
_ORDER = (LIBRARY, _LOOP, PEER, LISTED_PEER, OTHER_PEER, FLOAT_FLOOR, INTEGER_FLOOR)
_COLORS = dict(zip((LIBRARY, _LOOP, PEER), PALETTE, strict=False)) | {FLOAT_FLOOR: "#767676"}
_HATCHES = {LIBRARY: "", _LOOP: "//", PEER: "..", FLOAT_FLOOR: "xx"}
#: The tasks whose rows are the parts of the library's AIS step and of its CD-1 update.
STEP, UPDATE = "AIS step", "CD-1 update"
_SWEPT = {"hidden units": "hidden", "chains": "chains", "K": "steps"}
_SHAPES = ((784, 20), (784, 500), (500, 2000))
# Two independent results that differ by more than this many standard errors do not differ by chance; float32 sums of hundreds of
# terms have an error of at most the second number, relative to the result.
_STANDARD_ERRORS, _FLOAT32 = 5, 2e-6
# The typical number of steps of an AIS estimate, over which its fixed costs are spread.
_TYPICAL_STEPS = 10_000


def machine_slug(machine: str) -> str:
    """A file name for a machine: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")


def load_records() -> list[Record]:
    """All committed records, sorted by name."""
    folder = storage.repository_root() / "figures" / PROFILE
    return [read_record(path) for path in sorted(folder.glob("*.json"))]


def thread_counts(record: Record) -> list[int]:
    """The numbers of threads with which a record was measured, ascending."""
    return sorted({row["threads"] for row in record["rows"] if not row["sweep"]})


def find(
    record: Record,
    threads: int,
    task: str,
    shape: tuple[int, int],
    by: str,
    chains: int | None = None,
) -> Row | None:
    """The row of one item of work, or None if it was not measured; with `chains` None, any number of chains will do."""
    for row in record["rows"]:
        about = (row["threads"], row["task"], (row["visible"], row["hidden"]), row["by"])
        if (
            about == (threads, task, shape, by)
            and not row["sweep"]
            and chains in (None, row["chains"])
        ):
            return row
    return None


def seconds_per_step(row: Row) -> float:
    """Seconds per step, as the median over the repeats."""
    return float(np.median(row["seconds"])) / row["steps"]


# ---- targets


@dataclass(frozen=True)
class Target:
    """A target for the library's speed or memory, and what was measured: NaN if something that it compares is missing."""

    claim: str
    value: float
    limit: float
    unit: str = "times"
    # The limit is the largest value that reaches the target, or else the smallest.
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """`reached`, `missed` or `not measured`."""
        if math.isnan(self.value):
            return "not measured"
        reached = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "reached" if reached else "missed"


def targets(record: Record, threads: int) -> Iterator[Target]:
    """All targets, in the order of the table."""

    def seconds(
        task: str, shape: tuple[int, int], by: str = LIBRARY, chains: int | None = None
    ) -> float:
        row = find(record, threads, task, shape, by, chains)
        return math.nan if row is None else seconds_per_step(row)

    usual, small, numbers = (784, 500), (784, 20), (100, 5_000)
    for task, chains, floor in product(("AIS", "RAISE"), numbers, (FLOAT_FLOOR, INTEGER_FLOOR)):
        ratio = seconds(task, usual, LIBRARY, chains) / seconds(task, usual, floor, chains)
        yield Target(f"{_name(task, usual, chains)}: time over that of the {floor}", ratio, 1.35)
    for chains in numbers:
        name = _name("AIS", usual, chains)
        ours, peer = (seconds("AIS", usual, by, chains) for by in (LIBRARY, PEER))
        yield Target(f"{name}: time of rbms over ours", peer / ours, 4, at_least=True)
        claim = f"{name}: the same for K = {_TYPICAL_STEPS:,} and our check against a bound"
        with_bound = _TYPICAL_STEPS * ours + seconds("bound", usual)
        yield Target(claim, _TYPICAL_STEPS * peer / with_bound, 4, at_least=True)
    for shape, chains in product(_SHAPES, numbers):
        raise_step, ais_step = (seconds(task, shape, chains=chains) for task in ("RAISE", "AIS"))
        claim = f"{_name('RAISE', shape, chains)}: step over one of AIS"
        yield Target(claim, raise_step / ais_step, 1.3)
    for chains in numbers:
        each = 1e9 * seconds("AIS", small, chains=chains) / (chains * sum(small))
        yield Target(f"{_name('AIS', small, chains)}: time for each unit drawn", each, 4, "ns")
    ours, floor, peer, other = (
        seconds("CD-1", usual, by) for by in (LIBRARY, FLOAT_FLOOR, PEER, OTHER_PEER)
    )
    name = "CD-1, 784 × 500"
    yield Target(f"{name}: time over that of the {FLOAT_FLOOR}", ours / floor, 1.4)
    yield Target(f"{name}: time of rbms over ours", peer / ours, 1, at_least=True)
    claim = f"{name}: time of scikit-learn (persistent chains) over ours"
    yield Target(claim, other / ours, 1, at_least=True)
    exact, name = (784, 25), "exact ln Z, 784 × 25"
    row = find(record, threads, "exact ln Z", exact, LIBRARY)
    memory = math.nan if row is None or row["peak_mib"] is None else row["peak_mib"]
    yield Target(f"{name}: time", seconds("exact ln Z", exact), 15, "s")
    yield Target(f"{name}: peak memory of the process", memory, 1024, "MiB")
    listed, ours = (seconds("exact ln Z", (784, 18), by) for by in (LISTED_PEER, LIBRARY))
    claim = "exact ln Z, 784 × 18: time of rbms, states listed before, over ours"
    yield Target(claim, listed / ours, 10, at_least=True)


# ---- tables


def target_table(record: Record) -> Table:
    """Every target with the measured value and the verdict for each number of threads."""
    counts = thread_counts(record)
    heading = ["target", "limit"]
    heading += [text for count in counts for text in (f"{_threads(count)}", "verdict")]
    rows = []
    for same in zip(*(targets(record, count) for count in counts), strict=True):
        first = same[0]
        limit = f"{'at least' if first.at_least else 'at most'} {first.limit:g} {first.unit}"
        measured = [text for each in same for text in (_digits(each.value), each.verdict)]
        rows.append([first.claim, limit, *measured])
    return Table(heading, rows)


def _by_participant(
    works: Sequence[Work], cell: Callable[[Work, str], str], library: str = LIBRARY
) -> Table:
    """A row for each item of work and a column for everybody who took part, that of the library with this heading."""
    taking_part = {name for work in works for name in work}
    names = [name for name in _ORDER if name in taking_part]
    heading = [{LIBRARY: library, LISTED_PEER: "rbms, listed"}.get(name, name) for name in names]
    rows = [[_label(work[LIBRARY]), *(cell(work, name) for name in names)] for work in works]
    return Table(["work", *heading], rows)


def ratio_table(record: Record, threads: int) -> Table:
    """How many times as long as the library all others take for the same work, as ratios of medians; floors are below one."""

    def cell(work: Work, name: str) -> str:
        if name not in work:
            return _digits(math.nan)
        ours = seconds_per_step(work[LIBRARY])
        return _digits(1 / ours if name == LIBRARY else seconds_per_step(work[name]) / ours)

    return _by_participant(_works(record, threads), cell, f"{LIBRARY}, per second")


def times_as_long(records: Sequence[Record], task: str, by: str) -> tuple[float, float] | None:
    """How many times as long as the library another takes for a task, as the smallest and the largest ratio of medians.

    The ratios are over all machines, numbers of threads, model sizes and numbers of chains. None if none was measured.
    """
    ratios = [
        seconds_per_step(work[by]) / seconds_per_step(work[LIBRARY])
        for record in records
        for threads in thread_counts(record)
        for work in _works(record, threads)
        if by in work and work[LIBRARY]["task"] == task
    ]
    return (min(ratios), max(ratios)) if ratios else None


def _in_words(records: Sequence[Record], task: str, by: str) -> str:
    """`times_as_long` as part of a sentence."""
    found = times_as_long(records, task, by)
    if found is None:
        return "a time that was not measured"
    ends = dict.fromkeys(map(_digits, found))
    return f"{' to '.join(ends)} times as long"


def summary(records: Sequence[Record]) -> str:
    """The records in a paragraph for processors, and one for GPUs if there are any."""
    paragraphs = []
    for device, where in (("cpu", "On a processor"), ("cuda", "On a GPU")):
        measured = [record for record in records if record["provenance"]["device"] == device]
        if measured:
            span = partial(_in_words, measured)
            paragraphs.append(
                f"{where}, {PEER} takes {span('AIS', PEER)} as this library for a step of AIS, and a careful loop in plain torch "
                f"{span('AIS', _LOOP)}.\n"
                f"For an exact $\\ln Z$, {PEER} takes {span('exact ln Z', PEER)}.\n"
                f"For an update of CD-1, {PEER} takes {span('CD-1', PEER)}, and the loop in plain torch {span('CD-1', _LOOP)}."
            )
    return (
        "\n\n".join(paragraphs) + "\n\nWhere a number is below one, the library is the slower one."
    )


def draw_summary(records: Sequence[Record]) -> Figure:
    """Milliseconds for a step of 100 chains or a CD-1 update with 784 x 500 units on one thread, in a panel for each machine."""
    tasks = ("AIS", "RAISE", "CD-1")
    figure, axes = plt.subplots(
        1, len(records), figsize=(7.0, 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    names = (LIBRARY, _LOOP, PEER, FLOAT_FLOOR)
    height = 0.8 / len(names)
    for record, panel in zip(records, axes[0], strict=True):
        threads = thread_counts(record)[0]
        for number, name in enumerate(names):
            found = [find(record, threads, task, _SHAPES[1], name, 100) for task in tasks]
            places = [place for place, row in enumerate(found) if row is not None]
            widths = [1e3 * seconds_per_step(row) for row in found if row is not None]
            panel.barh(
                [place + (number - 1.5) * height for place in places],
                widths,
                0.9 * height,
                label=name if name != FLOAT_FLOOR else f"{name} alone",
                color=_COLORS[name],
                hatch=_HATCHES[name],
                edgecolor="white",
            )
        panel.set_xlabel(f"ms, {_threads(threads)}")
        machine = textwrap.fill(record["provenance"]["machine"], 26)
        panel.set_title(machine, loc="left", fontsize=9)
        panel.grid(axis="y", visible=False)
    axes[0, 0].set_yticks(range(len(tasks)), tasks)
    axes[0, 0].invert_yaxis()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    plt.close(figure)
    return figure


def time_table(record: Record, threads: int) -> Table:
    """Milliseconds for a step, update or result: median over the repeats, quartiles in brackets."""

    def cell(work: Work, name: str) -> str:
        if name not in work:
            return _digits(math.nan)
        row = work[name]
        low, middle, high = 1e3 * np.quantile(row["seconds"], [0.25, 0.5, 0.75]) / row["steps"]
        return f"{_digits(middle)} ({_digits(low)} to {_digits(high)})"

    return _by_participant(_works(record, threads), cell)


def memory_table(record: Record) -> Table:
    """Peak MiB of a process that does nothing else, and in brackets the part of it that the work added."""

    def cell(work: Work, name: str) -> str:
        row = work.get(name)
        if row is None or row["peak_mib"] is None:
            return _digits(math.nan)
        on_device = "" if row["device_mib"] is None else f"; GPU {row['device_mib']:,.0f}"
        peak, added = round(row["peak_mib"]), round(row["peak_mib"] - row["before_mib"])
        return f"{format_value(peak)} ({format_value(added)}{on_device})"

    return _by_participant(_works(record, thread_counts(record)[-1]), cell)


def call_table(records: Sequence[Record]) -> Table:
    """The calls that were timed for each participant, with their tasks, from all records."""
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for task, named in record["provenance"]["calls"].items():
            for name, call in named.items():
                tasks.setdefault((name, call), {})[task] = None
    ordered = sorted(tasks, key=lambda key: (*_ORDER, key[0]).index(key[0]))
    return Table(
        ["by", "task", "what is timed"],
        [[name, ", ".join(tasks[name, call]), f"`{call}`"] for name, call in ordered],
    )


def part_tasks(record: Record) -> list[str]:
    """Those of the tasks `STEP` and `UPDATE` whose parts were measured; none on a GPU, which replays a step as a whole."""
    if record["provenance"]["device"] != "cpu":
        return []
    measured = {row["task"] for row in record["rows"]}
    return [task for task in (STEP, UPDATE) if task in measured]


def part_table(record: Record, threads: int, task: str = STEP) -> Table:
    """Microseconds of the parts of the library's AIS step with 100 chains, and in brackets their shares of the whole.

    For the task `UPDATE`, the parts are those of its CD-1 update. Each part is measured alone, in consecutive calls. The remainder
    is the time of the interpreter, and the time that the parts cost each other in the processor's caches; it may be negative.
    """
    parts: dict[str, dict[tuple[int, int], float]] = {}
    whole: dict[tuple[int, int], float] = {}
    of_task = {STEP: "AIS", UPDATE: "CD-1"}[task]
    for row in record["rows"]:
        shape = row["visible"], row["hidden"]
        step = find(record, threads, of_task, shape, LIBRARY, 100)
        if (row["threads"], row["task"]) == (threads, task) and step is not None:
            parts.setdefault(row["by"], {})[shape] = seconds_per_step(row)
            whole[shape] = seconds_per_step(step)
    shapes = list(whole)
    rest = {shape: whole[shape] - sum(part[shape] for part in parts.values()) for shape in shapes}
    rows = []
    total = "the whole " + task.rpartition(" ")[2]
    for name, taken in {**parts, "all else": rest, total: whole}.items():
        numbers = [
            (round(1e6 * taken[shape]), round(100 * taken[shape] / whole[shape]))
            for shape in shapes
        ]
        cells = [f"{format_value(time)} ({format_value(share)} %)" for time, share in numbers]
        rows.append([name, *cells])
    return Table(["part", *(f"{visible} × {hidden}" for visible, hidden in shapes)], rows)


def machine_table(records: Sequence[Record]) -> Table:
    """Where, when and with what each record was measured."""
    packages = ("torch", "numpy", "numba", "rbms", "scikit-learn")
    rows = []
    for record in records:
        made = record["provenance"]
        rows.append(
            [
                made["machine"],
                made["device"],
                ", ".join(map(str, thread_counts(record))),
                str(len(record["rows"][0]["seconds"])),
                ", ".join(f"{package} {made[package]}" for package in packages),
                _digits(made["seconds"] / 60),
                made["utc"][:16].replace("T", " "),
                f"`{(made['commit'] or '')[:8]}`",
            ]
        )
    heading = [
        "machine",
        "device",
        "threads",
        "repeats",
        "versions",
        "minutes",
        "made at",
        "commit",
    ]
    return Table(heading, rows)


def tables(record: Record) -> list[tuple[str, Table]]:
    """All of a record's tables with their titles, for the terminal."""
    shown = []
    for count in thread_counts(record):
        shown.append(
            (f"Time over that of {LIBRARY}, {_threads(count)}", ratio_table(record, count))
        )
        shown.append((f"Milliseconds, {_threads(count)}", time_table(record, count)))
        for task in part_tasks(record):
            title = f"Microseconds of the parts: {task}, {_threads(count)}"
            shown.append((title, part_table(record, count, task)))
    shown += [("Peak memory, MiB", memory_table(record)), ("Growth", growth_table(record))]
    return [*shown, ("Targets", target_table(record))]


# ---- the same answers


def disagreements(record: Record) -> list[str]:
    """The results that differ from the library's by more than chance and float32 allow, one line for each."""
    found = []
    for threads in thread_counts(record):
        for work in _works(record, threads):
            ours = work[LIBRARY]
            for name, row in work.items():
                if row["value"] is None or ours["value"] is None:
                    continue
                # a result without a standard error comes from as many steps and chains as ours
                errors = [
                    ours["std_error"],
                    ours["std_error"] if row["std_error"] is None else row["std_error"],
                ]
                allowed = _STANDARD_ERRORS * math.hypot(*errors) + _FLOAT32 * abs(ours["value"])
                if not abs(row["value"] - ours["value"]) <= allowed:
                    found.append(
                        f"{_label(ours)}: {name} {row['value']:.6g}, {LIBRARY} {ours['value']:.6g}, allowed {allowed:.2g}"
                    )
    return found


# ---- growth


@dataclass(frozen=True)
class _Growth:
    """Time against one size, with the others fixed.

    Attributes
    ----------
    sweep : str
        The size that varies.
    by : str
        Whose time it is.
    sizes, seconds : lists of numbers
        The curve: medians over the repeats.
    exponent : float
        Slope of the straight line fitted by least squares to the logarithms.
    intercept : float
        Logarithm of the line's seconds at size 1.
    """

    sweep: str
    by: str
    sizes: list[int]
    seconds: list[float]
    exponent: float
    intercept: float


def growth(record: Record) -> list[_Growth]:
    """All growth curves of a record."""
    curves: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in record["rows"]:
        if row["sweep"]:
            point = (row[_SWEPT[row["sweep"]]], float(np.median(row["seconds"])))
            curves.setdefault((row["sweep"], row["by"]), []).append(point)
    found = []
    for (sweep, by), points in curves.items():
        sizes, seconds = (list(values) for values in zip(*sorted(points), strict=True))
        exponent, intercept = np.polyfit(np.log(sizes), np.log(seconds), 1)
        found.append(_Growth(sweep, by, sizes, seconds, float(exponent), float(intercept)))
    return found


def growth_table(record: Record) -> Table:
    """The exponents of all growth curves."""
    rows = []
    for curve in growth(record):
        ends = [f"{curve.sizes[0]:,}", f"{curve.sizes[-1]:,}"]
        rows.append([curve.sweep, *ends, curve.by, f"{curve.exponent:.2f}"])
    return Table(["AIS time against", "from", "to", "by", "exponent"], rows)


def draw_growth(records: Sequence[Record]) -> Figure:
    """Medians and fitted lines on logarithmic axes, in a row of panels for each record and a panel for each size."""
    figure, axes = plt.subplots(
        len(records),
        len(_SWEPT),
        figsize=(8.2, 0.4 + 3.2 * len(records)),
        sharey="row",
        squeeze=False,
    )
    for record, panels in zip(records, axes, strict=True):
        curves = growth(record)
        for sweep, panel in zip(_SWEPT, panels, strict=True):
            marks = iter("osD^")
            for curve in (curve for curve in curves if curve.sweep == sweep):
                sizes = np.array(curve.sizes, dtype=float)
                fitted = np.exp(curve.intercept) * sizes**curve.exponent
                (line,) = panel.loglog(sizes, fitted, label=f"{curve.by}: {curve.exponent:.2f}")
                panel.loglog(sizes, curve.seconds, next(marks), color=line.get_color())
                panel.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=8)
            panel.minorticks_off()
            panel.set_xlabel(sweep)
            if panel.lines:
                panel.legend(title="exponent", fontsize=8)
        panels[0].set_ylabel("seconds")
        panels[0].set_title(record["provenance"]["machine"], loc="left", fontsize=9)
    plt.close(figure)
    return figure


# ---- helpers


def _works(record: Record, threads: int) -> list[Work]:
    """The rows by name of each item of work that the library did, without growth curves."""
    works: dict[tuple, dict[str, Row]] = {}
    for row in record["rows"]:
        if not row["sweep"] and row["threads"] == threads:
            key = tuple(row[name] for name in ("task", "visible", "hidden", "chains", "steps"))
            works.setdefault(key, {})[row["by"]] = row
    return [work for work in works.values() if LIBRARY in work]


def _name(task: str, shape: tuple[int, int], chains: int) -> str:
    of_what = f", {chains:,} chains" if chains and task in ("AIS", "RAISE") else ""
    return f"{task}, {shape[0]} × {shape[1]}{of_what}"


def _label(row: Row) -> str:
    return _name(row["task"], (row["visible"], row["hidden"]), row["chains"])


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _digits(value: float) -> str:
    """A number with three significant digits, or a dash for NaN."""
    return format_value(None) if math.isnan(value) else significant(value)
