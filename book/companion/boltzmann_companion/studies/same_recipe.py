"""Whether the first paper's models are what its released recipe gives.

The printed numbers of a row of Table 1 are compared with those of several seeds. The paper does not
state how long its models were trained, so a number is compared with the seeds at every length that
a reader would accept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from boltzmann_companion.claims.checks import Rows, inside
from boltzmann_companion.published import find, load_published
from boltzmann_companion.records import load_result, source_line
from boltzmann_companion.rows import by_model, where
from boltzmann_companion.seeds import FEWEST_SEEDS, prediction_interval
from boltzmann_companion.studies.training_paths import JUDGED_FROM, JUDGED_TO, ROWS, distrusted
from boltzmann_companion.tables import Table, format_value
from paperlib.errors import InputError

#: What Table 1 prints of a model, in the records' words.
QUANTITIES = ("log_z", "test", "train")

_COLUMNS = {
    "log_z": ("True ln Z", "ln Z-hat"),
    "test": ("Avg. Test log-prob. / true", "Avg. Test log-prob. / estimate"),
    "train": ("Avg. Train log-prob. / true", "Avg. Train log-prob. / estimate"),
}
# What a row has from a point of a path, in this order.
_POINT_COLUMNS = (
    "log_z",
    "log_z_error",
    "test",
    "train",
    "largest_mass",
    "effective_runs",
    "blank_share",
)

Row = Mapping[str, Any]
Interval = tuple[float, float]


def printed_numbers(label: str) -> dict[str, float]:
    """The three numbers of a row of Table 1, exact ones where the paper has them.

    Examples
    --------
    >>> printed_numbers("CD25(500)")
    {'log_z': 451.28, 'test': -86.34, 'train': -83.1}
    """
    entries = find(load_published(), paper="sm2008", where="Table 1", row=label)
    values = {entry.column: entry.value for entry in entries}
    numbers = {}
    for key, (exact, estimate) in _COLUMNS.items():
        value = values[exact] if exact in values else values[estimate]
        assert value is not None
        numbers[key] = value
    return numbers


def longest_log_z() -> tuple[float, float]:
    """ln Z of CD25(500) with its authors' weights, and its standard error, in nats.

    It is what AIS says from the base rates with 5,000 chains of 100,000 steps, from the records of
    chapter 15. No number of a paper is in it.

    Examples
    --------
    >>> log_z, error = longest_log_z()
    >>> f"{log_z:.3f} +- {error:.3f}"
    '451.254 +- 0.009'
    """
    averages = load_result("exact-binarization", "paper")
    brackets = load_result("raise-own-weights-by-k", "paper")
    if averages is None or brackets is None:
        raise InputError("figures: expected the records of chapter 15, found none")
    [training_images] = where(averages["rows"], model="as in training")
    from_base_rates = where(brackets["rows"], start="base rates")
    longest = max(from_base_rates, key=lambda row: row["steps"])
    return training_images["test"] - longest["ais"], longest["ais_error"]


#: The numbers of every row that has a recipe.
PRINTED = {row.label: printed_numbers(row.label) for row in ROWS.values()}


def path_rows(paths: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of `sm2008-training-paths`, one for each length of each path.

    Parameters
    ----------
    paths : iterable of mappings
        With a `label`, a `seed` and `points`, which are from
        `boltzmann_companion.studies.training_paths.look_at`.
    """
    return [
        {
            "model": path["label"],
            "seed": path["seed"],
            "epoch": point["epoch"],
            "distrusted": "yes" if distrusted(point) else "no",
            **{key: point[key] for key in _POINT_COLUMNS},
        }
        for path in paths
        for point in path["points"]
    ]


def judged_lengths(rows: Rows, *models: str) -> list[int]:
    """The lengths in epochs by which a number is judged.

    They are those at which all of these models were looked at.

    Parameters
    ----------
    rows : sequence of mappings
        From `path_rows`.
    models : str
        Names of models in the rows.
    """
    epochs = [{row["epoch"] for row in where(rows, model=model)} for model in models]
    shared = set.intersection(*epochs)
    return sorted(epoch for epoch in shared if JUDGED_FROM <= epoch <= JUDGED_TO)


def by_seed(rows: Rows, model: str, epoch: int, column: str) -> dict[int, float]:
    """A model's values at one length by seed, of the seeds whose ln Z is trusted."""
    trusted = where(rows, model=model, epoch=epoch, distrusted="no")
    return {row["seed"]: float(row[column]) for row in trusted if row[column] is not None}


def interval_at(rows: Rows, model: str, epoch: int, column: str) -> Interval | None:
    """The 95 % prediction interval of the seeds at one length; None with too few trusted seeds."""
    values = list(by_seed(rows, model, epoch, column).values())
    return prediction_interval(values) if len(values) >= FEWEST_SEEDS else None


def length_rows(
    rows: Rows, printed: Mapping[str, Mapping[str, float]]
) -> Iterator[dict[str, str | int | None]]:
    """For each model, the lengths at which its printed numbers lie inside the seeds' intervals.

    The intervals are prediction intervals. There are lengths for each number, and those at which
    all of them lie inside; none with fewer than five seeds.

    Parameters
    ----------
    rows : sequence of mappings
        From `path_rows`.
    printed : mapping of str to mapping
        The three numbers of each model.
    """
    for label, points in by_model(rows).items():
        lengths = judged_lengths(points, label)
        seeds = {point["seed"] for point in points}
        row = {"model": label, "seeds": len(seeds), "lengths": in_words(lengths, lengths)}
        holding = {key: _holding(points, label, key, printed[label][key]) for key in QUANTITIES}
        holding["all"] = lengths_of_row(points, label, printed[label])
        for key, lengths_inside in holding.items():
            row[key] = in_words(lengths_inside, lengths) if len(seeds) >= FEWEST_SEEDS else None
        yield row


def length_table(record: Row, printed: Mapping[str, Mapping[str, float]]) -> Table:
    """The rows of `length_rows` for a record of `path_rows`."""
    headings = {
        "model": "model",
        "seeds": "seeds",
        "lengths": "looked at after (epochs)",
        "log_z": "$\\ln Z$ inside after",
        "test": "test inside after",
        "train": "training inside after",
        "all": "all three after",
    }
    rows = length_rows(record["rows"], printed)
    cells = [[format_value(row[key]) for key in headings] for row in rows]
    return Table(list(headings.values()), cells, source_line(record))


def lengths_of_row(rows: Rows, label: str, printed: Mapping[str, float]) -> set[int]:
    """The judged lengths at which all printed numbers of a model lie inside the intervals."""
    return set.intersection(*(_holding(rows, label, key, printed[key]) for key in QUANTITIES))


def _holding(rows: Rows, model: str, column: str, value: float) -> set[int]:
    """The judged lengths at which a value lies inside the seeds' interval."""
    lengths = set()
    for epoch in judged_lengths(rows, model):
        interval = interval_at(rows, model, epoch, column)
        if interval is not None and inside(interval, value):
            lengths.add(epoch)
    return lengths


def in_words(chosen: Collection[int], looked_at: Sequence[int]) -> str:
    """Some of the lengths that were looked at, of which three neighbours and more are joined.

    Examples
    --------
    >>> in_words({10, 30, 40, 50}, [10, 20, 30, 40, 50])
    '10, 30 to 50'
    >>> in_words([], [10, 20])
    'none'
    """
    runs: list[list[int]] = []
    for place, length in enumerate(looked_at):
        if length not in chosen:
            continue
        if runs and runs[-1][-1] == looked_at[place - 1]:
            runs[-1].append(length)
        else:
            runs.append([length])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return ", ".join(parts) or "none"
