"""Whether the first paper's models are what its released recipe gives: the printed numbers of a row of Table 1 beside those of several seeds.

How long the models were trained is not stated. A number is therefore held against the seeds at
every length that a reader would accept.
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
# The columns of a table, in their order.
_OF_POINTS = (
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
    found = {}
    for key, names in _COLUMNS.items():
        value = next(values[name] for name in names if name in values)
        assert value is not None
        found[key] = value
    return found


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
    averages, by_k = (
        load_result(name, "paper") for name in ("exact-binarization", "raise-own-weights-by-k")
    )
    if averages is None or by_k is None:
        raise InputError("figures: expected the records of chapter 15, found none")
    [of_images] = where(averages["rows"], model="as in training")
    from_base_rates = where(by_k["rows"], start="base rates")
    longest = max(from_base_rates, key=lambda row: row["steps"])
    return of_images["test"] - longest["ais"], longest["ais_error"]


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
            **{key: point[key] for key in _OF_POINTS},
        }
        for path in paths
        for point in path["points"]
    ]


def judged_lengths(rows: Rows, *models: str) -> list[int]:
    """The lengths by which a number is judged, in epochs: those at which all of these models were looked at.

    Parameters
    ----------
    rows : sequence of mappings
        From `path_rows`.
    models : str
        Names of models in the rows.
    """
    seen = [{row["epoch"] for row in where(rows, model=model)} for model in models]
    return sorted(e for e in set.intersection(*seen) if JUDGED_FROM <= e <= JUDGED_TO)


def by_seed(rows: Rows, model: str, epoch: int, column: str) -> dict[int, float]:
    """A model's values at one length by seed, of the seeds whose ln Z is trusted."""
    trusted = where(rows, model=model, epoch=epoch, distrusted="no")
    return {row["seed"]: float(row[column]) for row in trusted if row[column] is not None}


def interval_at(rows: Rows, model: str, epoch: int, column: str) -> Interval | None:
    """The 95 % prediction interval of the seeds at one length; None with too few seeds that are trusted."""
    values = list(by_seed(rows, model, epoch, column).values())
    return prediction_interval(values) if len(values) >= FEWEST_SEEDS else None


def length_rows(
    rows: Rows, printed: Mapping[str, Mapping[str, float]]
) -> Iterator[dict[str, str | int | None]]:
    """For each model the lengths at which each of its printed numbers, and all of them, lie inside the prediction intervals of its seeds.

    With fewer than five seeds nothing is said.

    Parameters
    ----------
    rows : sequence of mappings
        From `path_rows`.
    printed : mapping of str to mapping
        The three numbers of each model.
    """
    for label, own in by_model(rows).items():
        lengths = judged_lengths(own, label)
        seeds = {row["seed"] for row in own}
        row = {"model": label, "seeds": len(seeds), "lengths": in_words(lengths, lengths)}
        held = {key: _holding(own, label, key, printed[label][key]) for key in QUANTITIES}
        held["all"] = lengths_of_row(own, label, printed[label])
        for key, at in held.items():
            row[key] = in_words(at, lengths) if len(seeds) >= FEWEST_SEEDS else None
        yield row


def length_table(record: Row, printed: Mapping[str, Mapping[str, float]]) -> Table:
    """The rows of `length_rows` for a record of `path_rows`."""
    headings = {
        "model": "model",
        "seeds": "seeds",
        "lengths": "looked at after (epochs)",
        "log_z": "$\\ln Z$ inside after",
    }
    headings |= {
        "test": "test inside after",
        "train": "training inside after",
        "all": "all three after",
    }
    rows = length_rows(record["rows"], printed)
    cells = [[format_value(row[key]) for key in headings] for row in rows]
    return Table(list(headings.values()), cells, source_line(record))


def lengths_of_row(rows: Rows, label: str, printed: Mapping[str, float]) -> set[int]:
    """The judged lengths at which all printed numbers of a model lie inside the prediction intervals of its seeds."""
    return set.intersection(*(_holding(rows, label, key, printed[key]) for key in QUANTITIES))


def _holding(rows: Rows, model: str, column: str, value: float) -> set[int]:
    found = {e: interval_at(rows, model, e, column) for e in judged_lengths(rows, model)}
    return {e for e, low_high in found.items() if low_high is not None and inside(low_high, value)}


def in_words(chosen: Collection[int], looked_at: Sequence[int]) -> str:
    """Some of the lengths that were looked at; three neighbours and more are joined.

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
    joined = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run) for run in runs]
    return ", ".join(part for run in joined for part in run) or "none"
