"""Measured speed: tables from the records that `benchmarks` writes, for the terminal and the book.

A record holds the seconds of every repeat. This module computes ratios of medians, and whether all
participants have the same answers. It measures nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from boltzmann_companion.record_files import read_record
from boltzmann_companion.rows import where
from boltzmann_companion.tables import Table, significant
from paperlib import storage

Record = Mapping[str, Any]
Row = Mapping[str, Any]

#: Name of the folder in `figures` that holds these records.
PROFILE = "bench"
LIBRARY = "paperlib"
# What a step of AIS costs at least that neither rounds weights nor remembers sums.
FLOOR = "two float32 products"
# A step of `ais` is timed without its check against a bound, which is an item of its own.
CHECK = "bound"
# Two independent results that differ by more than this many standard errors do not differ by
# chance; float32 sums of hundreds of terms have an error of at most the second number, relative to
# the result.
_STANDARD_ERRORS = 5
_FLOAT32 = 2e-6


def load_records() -> list[Record]:
    """All committed records, sorted by name."""
    folder = storage.repository_root() / "figures" / PROFILE
    return [read_record(path) for path in sorted(folder.glob("*.json"))]


def seconds_per_step(row: Row) -> float:
    """Seconds per step, as the median over the repeats."""
    return median(row["seconds"]) / row["steps"]


@dataclass(frozen=True)
class Comparison:
    """The same work, on one machine and with as many threads, by the library and by another."""

    ours: Row
    other: Row

    @property
    def work(self) -> str:
        """The task, with the number of chains that walk at the same time."""
        task = self.ours["task"]
        has_chains = task in ("AIS", "RAISE")
        return f"{task}, {self.ours['chains']:,} chains" if has_chains else task

    @property
    def times_as_long(self) -> float:
        """How many times as long as the library the other takes."""
        return seconds_per_step(self.other) / seconds_per_step(self.ours)

    @property
    def agrees(self) -> bool | None:
        """Whether the results differ by no more than chance and float32 allow; None without any."""
        ours = self.ours["value"]
        other = self.other["value"]
        if ours is None or other is None:
            return None
        # a result without a standard error comes from as many steps and chains as ours
        error = self.ours["std_error"]
        errors = [error, error if self.other["std_error"] is None else self.other["std_error"]]
        return abs(other - ours) <= _STANDARD_ERRORS * math.hypot(*errors) + _FLOAT32 * abs(ours)

    def __str__(self) -> str:
        size = f"{self.ours['visible']} × {self.ours['hidden']}"
        theirs = f"{self.other['by']} {self.other['value']}"
        return f"{self.work}, {size}: {theirs}, {LIBRARY} {self.ours['value']}"


def _idle_rows(record: Record) -> list[Row]:
    """The rows that were measured on an idle machine, as all of older records were."""
    return [row for row in record["rows"] if not row.get("busy")]


def comparisons(record: Record) -> Iterator[Comparison]:
    """What the library and another both did, in the order of the record."""
    same = ("task", "visible", "hidden", "chains", "steps", "threads")
    rows = _idle_rows(record)
    ours = {tuple(row[key] for key in same): row for row in rows if row["by"] == LIBRARY}
    for row in rows:
        if row["by"] != LIBRARY:
            yield Comparison(ours[tuple(row[key] for key in same)], row)


def disagreements(record: Record) -> list[str]:
    """A line for each result that differs from the library's by more than chance and float32."""
    return [str(comparison) for comparison in comparisons(record) if comparison.agrees is False]


# ---- tables


def speed_table(records: Sequence[Record]) -> Table:
    """How many times as long as the library others take, and whether the answers agree.

    There is a row for each task and participant, and a column for each machine. Each number is a
    ratio of medians; where they differ between model sizes and numbers of threads, the smallest and
    the largest are shown. A number below one means that the library is the slower one.
    """
    table: dict[tuple[str, str], dict[str, list[Comparison]]] = {}
    machines = [record["provenance"]["machine"] for record in records]
    for record, machine in zip(records, machines, strict=True):
        for comparison in comparisons(record):
            cells = table.setdefault((comparison.work, comparison.other["by"]), {})
            cells.setdefault(machine, []).append(comparison)
    rows = []
    for (work, by), cells in table.items():
        ratios = [
            _span([comparison.times_as_long for comparison in cells.get(machine, ())])
            for machine in machines
        ]
        answers = {comparison.agrees for cell in cells.values() for comparison in cell} - {None}
        same = "–"
        if answers:
            same = "yes" if all(answers) else "no"
        rows.append([work, by, *ratios, same])
    return Table(["task", "by", *machines, "same answer"], rows, _cost_of_check(records))


def step_table(records: Sequence[Record]) -> Table:
    """What a step of one chain costs, and what all cores gain over one thread.

    The gain is measured on an idle machine, and beside a busy loop on each core. All ratios are of
    medians. Of the records that have such rows, the table is of the last one.
    """
    record = max(
        (record for record in records if len(_idle_rows(record)) < len(record["rows"])),
        key=lambda record: record["provenance"]["utc"],
    )
    all_rows = record["rows"]
    many = max(row["threads"] for row in all_rows)
    table = []
    ais: dict[str, float] = {}
    for row in where(all_rows, by=LIBRARY, threads=1, busy=1):
        work = {key: row[key] for key in ("task", "visible", "hidden", "chains", "steps")}
        size = f"{row['visible']} × {row['hidden']}"

        def seconds(threads: int, busy: int, by: str = LIBRARY, work: Row = work) -> float:
            (timed,) = where(all_rows, **work, by=by, threads=threads, busy=busy)
            return median(timed["seconds"])

        step = seconds(1, 0) / row["steps"] / max(1, row["chains"])
        if row["task"] == "AIS":
            name = f"AIS, {row['chains']:,} chains"
            ais.setdefault(size, step)
            over = [seconds(threads, 0) / seconds(threads, 0, FLOOR) for threads in (1, many)]
            ratios = [*map(significant, over), "–"]
        else:
            name = "parallel tempering"
            ratios = ["–", "–", significant(step / ais[size])]
        gains = [significant(seconds(1, busy) / seconds(many, busy)) for busy in (0, 1)]
        table.append([size, name, significant(1e6 * step), *ratios, *gains])
    heading = [
        "units",
        "by",
        "a step of one chain (µs)",
        "over two products, 1 thread",
        f"{many} threads",
        "over AIS, 100 chains",
        f"gain of {many} threads",
        "on a busy machine",
    ]
    return Table(
        heading,
        table,
        f"{record['provenance']['machine']}. The first ratios are to the "
        "two float32 products of a step, by torch.",
    )


def _cost_of_check(records: Sequence[Record]) -> str:
    """A sentence on what `ais` takes beside its steps."""
    steps = []
    for record in records:
        rows = where(_idle_rows(record), by=LIBRARY)
        for check in where(rows, task=CHECK):
            size = {key: check[key] for key in ("visible", "hidden", "chains", "threads")}
            steps += [
                seconds_per_step(check) / seconds_per_step(row)
                for row in where(rows, task="AIS", **size)
            ]
    return (
        f"The check of `ais` against a bound takes as long as {_span(steps)} steps of 100 chains, "
        "once for each call."
    )


def _span(numbers: Sequence[float]) -> str:
    """The smallest and the largest number with three significant digits, or a dash for none."""
    if not numbers:
        return "–"
    low = significant(min(numbers))
    high = significant(max(numbers))
    return low if low == high else f"{low} to {high}"


def call_table(records: Sequence[Record]) -> Table:
    """The calls that were timed for each participant, with their tasks, from all records."""
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for task, named in record["provenance"]["calls"].items():
            for name, call in named.items():
                tasks.setdefault((name, call), {})[task] = None
    order = list(dict.fromkeys(name for name, _ in tasks))
    ordered = sorted(tasks, key=lambda key: order.index(key[0]))
    return Table(
        ["by", "task", "what is timed"],
        [[name, ", ".join(tasks[name, call]), f"`{call}`"] for name, call in ordered],
    )


def machine_table(records: Sequence[Record]) -> Table:
    """Where, when and with what each record was measured."""
    packages = ("torch", "numpy", "numba", "rbms", "scikit-learn")
    rows = []
    for record in records:
        made = record["provenance"]
        threads = sorted({row["threads"] for row in record["rows"]})
        rows.append(
            [
                made["machine"],
                made["device"],
                ", ".join(map(str, threads)),
                str(len(record["rows"][0]["seconds"])),
                ", ".join(f"{package} {made[package]}" for package in packages),
                made["utc"][:16].replace("T", " "),
                f"`{(made['commit'] or '')[:8]}`",
            ]
        )
    heading = ["machine", "device", "threads", "repeats", "versions", "made at", "commit"]
    return Table(heading, rows)
