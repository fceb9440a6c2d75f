"""Whether the first paper's models are what its released recipe gives: the printed numbers of a row of Table 1 beside those of several seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from boltzmann_companion.claims.checks import Rows, inside
from boltzmann_companion.published import find, load_published
from boltzmann_companion.rows import by_model, where
from boltzmann_companion.seeds import FEWEST_SEEDS, prediction_interval
from boltzmann_companion.studies.training_paths import distrusted

#: What Table 1 prints of a model, in the records' words.
QUANTITIES = ("log_z", "test", "train")

_COLUMNS = {
    "log_z": ("True ln Z", "ln Z-hat"),
    "test": ("Avg. Test log-prob. / true", "Avg. Test log-prob. / estimate"),
    "train": ("Avg. Train log-prob. / true", "Avg. Train log-prob. / estimate"),
}
_OF_POINTS = (*QUANTITIES, "log_z_error", "largest_mass", "effective_runs", "blank_share")

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


def path_rows(paths: Iterable[Row], judged_at: Mapping[str, int]) -> list[dict[str, Any]]:
    """Rows of `sm2008-training-paths`, one for each length of each path.

    Parameters
    ----------
    paths : iterable of mappings
        With a `label`, a `seed` and `points`, which are from `boltzmann_companion.studies.training_paths.look_at`.
    judged_at : mapping of str to int
        For each label the number of epochs after which it is judged.
    """
    return [
        {
            "model": path["label"],
            "seed": path["seed"],
            "epoch": point["epoch"],
            "judged": _yes_or_no(point["epoch"] == judged_at[path["label"]]),
            "distrusted": _yes_or_no(distrusted(point)),
            **{key: point[key] for key in _OF_POINTS},
        }
        for path in paths
        for point in path["points"]
    ]


def verdict_rows(
    rows: Rows, printed: Mapping[str, Mapping[str, float]], judged_at: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Rows of `sm2008-same-recipe`, one for each model: which printed numbers are typical of the seeds.

    A number is typical if it lies in the 95 % prediction interval of the seeds. With fewer than five seeds nothing is said.

    Parameters
    ----------
    rows : sequence of mappings
        From `path_rows`.
    printed : mapping of str to mapping
        The three numbers of each model.
    judged_at : mapping of str to int
        As for `path_rows`.
    """
    for label, own in by_model(rows).items():
        intervals, values = _intervals_at(own, judged_at[label]), printed[label]
        row = {"model": label, "seeds": len({entry["seed"] for entry in own})}
        row["judged_at"] = judged_at[label]
        for key in QUANTITIES:
            low_high = None if intervals is None else intervals[key]
            row[f"{key}_printed"] = values[key]
            row[f"{key}_interval"] = None if low_high is None else list(low_high)
            typical = None if low_high is None else _yes_or_no(inside(low_high, values[key]))
            row[f"{key}_typical"] = typical
        lengths = sorted({entry["epoch"] for entry in own})
        fitting = [str(length) for length in lengths if _fits(_intervals_at(own, length), values)]
        yield row | {"fits_at": ", ".join(fitting) or "none"}


def _intervals_at(rows: Rows, epoch: int) -> dict[str, Interval] | None:
    """The prediction interval of each quantity at a length; None with too few seeds."""
    at = where(rows, epoch=epoch, distrusted="no")
    if len(at) < FEWEST_SEEDS:
        return None
    return {key: prediction_interval([row[key] for row in at]) for key in QUANTITIES}


def _fits(intervals: Mapping[str, Interval] | None, values: Mapping[str, float]) -> bool:
    """Whether every printed number is typical."""
    return intervals is not None and all(inside(intervals[key], values[key]) for key in QUANTITIES)


def _yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"
