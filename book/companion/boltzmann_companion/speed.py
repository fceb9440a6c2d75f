"""Measured speed: tables and figures from the records that `benchmarks` writes, for the terminal and for the page of the book.

A record holds the seconds of every repeat. This module computes medians and quartiles, ratios of medians, exponents of growth, and
whether the library reached the targets that it has set itself. It measures nothing.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
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
# Shorter, for the headings of tables.
_SHORT = {LISTED_PEER: "rbms, listed"}
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
    """A target for the library's speed or memory.

    Attributes
    ----------
    claim : str
        The target in words, without the limit.
    limit : float
        Largest value allowed, or the smallest if `at_least`.
    unit : str
        `times`, `s`, `MiB` or `ns`.
    value : callable
        Takes a record and a number of threads, and returns the measured value, or None if something is missing.
    at_least : bool
        Whether values above the limit reach the target, rather than values below.
    """

    claim: str
    limit: float
    unit: str
    value: Callable[[Record, int], float | None]
    at_least: bool = False

    def verdict(self, value: float | None) -> str:
        """`reached`, `missed` or `not measured`."""
        if value is None:
            return "not measured"
        return (
            "reached"
            if (value >= self.limit if self.at_least else value <= self.limit)
            else "missed"
        )


Item = tuple[str, tuple[int, int], str, int | None]


def _ratio(numerator: Item, denominator: Item) -> Callable[[Record, int], float | None]:
    """The ratio of the time per step of one item to that of another; an item is (task, shape, by, chains)."""

    def value(record: Record, threads: int) -> float | None:
        above, below = (find(record, threads, *item) for item in (numerator, denominator))
        if above is None or below is None:
            return None
        return seconds_per_step(above) / seconds_per_step(below)

    return value


def _ratio_with_bound(shape: tuple[int, int], chains: int) -> Callable[[Record, int], float | None]:
    """The ratio of the peer's time for an estimate of typical length to the library's, which includes its check against a bound."""

    def value(record: Record, threads: int) -> float | None:
        ours, peer = (find(record, threads, "AIS", shape, by, chains) for by in (LIBRARY, PEER))
        bound = find(record, threads, "bound", shape, LIBRARY)
        if ours is None or peer is None or bound is None:
            return None
        walk = _TYPICAL_STEPS * seconds_per_step(ours)
        return _TYPICAL_STEPS * seconds_per_step(peer) / (walk + seconds_per_step(bound))

    return value


def _nanoseconds_per_unit(
    shape: tuple[int, int], chains: int
) -> Callable[[Record, int], float | None]:
    """Time of an AIS step per unit that it draws."""

    def value(record: Record, threads: int) -> float | None:
        row = find(record, threads, "AIS", shape, LIBRARY, chains)
        return None if row is None else 1e9 * seconds_per_step(row) / (chains * sum(shape))

    return value


def _exact_seconds(record: Record, threads: int) -> float | None:
    row = find(record, threads, "exact ln Z", (784, 25), LIBRARY)
    return None if row is None else seconds_per_step(row)


def _exact_memory(record: Record, threads: int) -> float | None:
    row = find(record, threads, "exact ln Z", (784, 25), LIBRARY)
    return None if row is None else row["peak_mib"]


def targets() -> list[Target]:
    """All targets, in the order of the table."""
    chosen = []
    shape = (784, 500)
    for task, chains, floor in product(
        ("AIS", "RAISE"), (100, 5_000), (FLOAT_FLOOR, INTEGER_FLOOR)
    ):
        compared = _ratio((task, shape, LIBRARY, chains), (task, shape, floor, chains))
        chosen.append(
            Target(
                f"{_name(task, shape, chains)}: time over that of the {floor}",
                1.35,
                "times",
                compared,
            )
        )
    for chains in (100, 5_000):
        name = _name("AIS", shape, chains)
        compared = _ratio(("AIS", shape, PEER, chains), ("AIS", shape, LIBRARY, chains))
        chosen.append(Target(f"{name}: time of rbms over ours", 4, "times", compared, True))
        with_bound = _ratio_with_bound(shape, chains)
        claim = f"{name}: the same for K = {_TYPICAL_STEPS:,} and our check against a bound"
        chosen.append(Target(claim, 4, "times", with_bound, True))
    for shape, chains in product(_SHAPES, (100, 5_000)):
        compared = _ratio(("RAISE", shape, LIBRARY, chains), ("AIS", shape, LIBRARY, chains))
        chosen.append(
            Target(f"{_name('RAISE', shape, chains)}: step over one of AIS", 1.3, "times", compared)
        )
    for chains in (100, 5_000):
        claim = f"{_name('AIS', (784, 20), chains)}: time for each unit drawn"
        chosen.append(Target(claim, 4, "ns", _nanoseconds_per_unit((784, 20), chains)))
    ours: Item = ("CD-1", (784, 500), LIBRARY, None)
    name = "CD-1, 784 × 500"
    for by, claim, limit in (
        (FLOAT_FLOOR, f"time over that of the {FLOAT_FLOOR}", 1.4),
        (PEER, "time of rbms over ours", 1),
        (OTHER_PEER, "time of scikit-learn (persistent chains) over ours", 1),
    ):
        other: Item = ("CD-1", (784, 500), by, None)
        compared = _ratio(ours, other) if by == FLOAT_FLOOR else _ratio(other, ours)
        chosen.append(Target(f"{name}: {claim}", limit, "times", compared, by != FLOAT_FLOOR))
    small = (784, 18)
    compared = _ratio(
        ("exact ln Z", small, LISTED_PEER, None), ("exact ln Z", small, LIBRARY, None)
    )
    return [
        *chosen,
        Target("exact ln Z, 784 × 25: time", 15, "s", _exact_seconds),
        Target("exact ln Z, 784 × 25: peak memory of the process", 1024, "MiB", _exact_memory),
        Target(
            "exact ln Z, 784 × 18: time of rbms, states listed before, over ours",
            10,
            "times",
            compared,
            True,
        ),
    ]


# ---- tables


def target_table(record: Record) -> Table:
    """Every target with the measured value and the verdict for each number of threads."""
    counts = thread_counts(record)
    heading = ["target", "limit"]
    heading += [text for count in counts for text in (f"{_threads(count)}", "verdict")]
    rows = []
    for target in targets():
        side = "at least" if target.at_least else "at most"
        cells = [target.claim, f"{side} {target.limit:g} {target.unit}"]
        for count in counts:
            value = target.value(record, count)
            cells += [_digits(value), target.verdict(value)]
        rows.append(cells)
    return Table(heading, rows)


def ratio_table(record: Record, threads: int) -> Table:
    """How many times as long as the library all others take for the same work, as ratios of medians; floors are below one."""
    works = _works(record, threads)
    others = [name for name in _names(works) if name != LIBRARY]
    rows = []
    for rows_of_work in works:
        ours = seconds_per_step(rows_of_work[LIBRARY])
        cells = [_label(rows_of_work[LIBRARY]), _digits(1 / ours)]
        for name in others:
            row = rows_of_work.get(name)
            cells.append(_digits(None if row is None else seconds_per_step(row) / ours))
        rows.append(cells)
    return Table(["work", f"{LIBRARY}, per second", *_headings(others)], rows)


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


def _headings(names: Sequence[str]) -> list[str]:
    return [_SHORT.get(name, name) for name in names]


def time_table(record: Record, threads: int) -> Table:
    """Milliseconds for a step, update or result: median over the repeats, quartiles in brackets."""
    works = _works(record, threads)

    def cell(row: Row | None) -> str:
        if row is None:
            return format_value(None)
        low, middle, high = 1e3 * np.quantile(row["seconds"], [0.25, 0.5, 0.75]) / row["steps"]
        return f"{_digits(middle)} ({_digits(low)} to {_digits(high)})"

    names = _names(works)
    rows = [[_label(work[LIBRARY]), *(cell(work.get(name)) for name in names)] for work in works]
    return Table(["work", *_headings(names)], rows)


def memory_table(record: Record) -> Table:
    """Peak MiB of a process that does nothing else, and in brackets the part of it that the work added."""
    works = _works(record, thread_counts(record)[-1])
    names = _names(works)

    def cell(row: Row | None) -> str:
        if row is None or row["peak_mib"] is None:
            return format_value(None)
        on_device = "" if row["device_mib"] is None else f"; GPU {row['device_mib']:,.0f}"
        peak, added = round(row["peak_mib"]), round(row["peak_mib"] - row["before_mib"])
        return f"{format_value(peak)} ({format_value(added)}{on_device})"

    rows = [[_label(work[LIBRARY]), *(cell(work.get(name)) for name in names)] for work in works]
    return Table(["work", *_headings(names)], rows)


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
    rows = []
    for record in records:
        made = record["provenance"]
        packages = ("torch", "numpy", "numba", "rbms", "scikit-learn")
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
class Growth:
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


def growth(record: Record) -> list[Growth]:
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
        found.append(Growth(sweep, by, sizes, seconds, float(exponent), float(intercept)))
    return found


def growth_table(record: Record) -> Table:
    """The exponents of all growth curves."""
    return Table(
        ["AIS time against", "from", "to", "by", "exponent"],
        [
            [
                curve.sweep,
                f"{curve.sizes[0]:,}",
                f"{curve.sizes[-1]:,}",
                curve.by,
                f"{curve.exponent:.2f}",
            ]
            for curve in growth(record)
        ],
    )


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


def _works(record: Record, threads: int) -> list[dict[str, Row]]:
    """The rows by name of each item of work that the library did, without growth curves."""
    works: dict[tuple, dict[str, Row]] = {}
    for row in record["rows"]:
        if not row["sweep"] and row["threads"] == threads:
            key = tuple(row[name] for name in ("task", "visible", "hidden", "chains", "steps"))
            works.setdefault(key, {})[row["by"]] = row
    return [work for work in works.values() if LIBRARY in work]


def _names(works: Sequence[Mapping[str, Row]]) -> list[str]:
    """All participants, in the order of the tables."""
    taking_part = {name for work in works for name in work}
    return [name for name in _ORDER if name in taking_part]


def _name(task: str, shape: tuple[int, int], chains: int) -> str:
    of_what = f", {chains:,} chains" if chains and task in ("AIS", "RAISE") else ""
    return f"{task}, {shape[0]} × {shape[1]}{of_what}"


def _label(row: Row) -> str:
    return _name(row["task"], (row["visible"], row["hidden"]), row["chains"])


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _digits(value: float | None) -> str:
    """A number with three significant digits, or a dash."""
    return format_value(None) if value is None else significant(value)
