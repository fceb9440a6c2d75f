"""What computed the shards that this process used: commits, processors, seconds; or nobody knows.

A record sums them up, so that it does not pass off what it found on disk as its own work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any, NamedTuple


class ShardUse(NamedTuple):
    """A shard that this process used. None: its file does not say it.

    Attributes
    ----------
    name : str
        Of its file, without the suffix.
    found : bool
        Whether it was found; otherwise it was computed for this process.
    commit : str or None
        Of the code that computed it.
    dirty : bool or None
        Whether that code differed from the commit.
    processor : str or None
        That computed it, with its vector instructions; or the name of a GPU.
    seconds : float or None
        That it took.
    """

    name: str
    found: bool
    commit: str | None
    dirty: bool | None
    processor: str | None
    seconds: float | None


_used: list[ShardUse] = []


def note(name: str, found: bool, made_by: Mapping[str, Any] | None) -> None:
    """Remember that this process used a shard.

    Parameters
    ----------
    name : str
        Of its file, without the suffix.
    found : bool
        Whether it was found.
    made_by : mapping, optional
        What its file says of its making. None: nothing.
    """
    # Strings are kept once, whatever the number of shards.
    if made_by is None:
        _used.append(ShardUse(name, found, None, None, None, None))
        return
    commit, processor = made_by["commit"], made_by["device"]
    if processor == "cpu":
        processor = f"{made_by['processor']}, {made_by['instructions']}"
    if commit is not None:
        commit = intern(commit)
    use = ShardUse(name, found, commit, made_by["dirty"], intern(processor), made_by["seconds"])
    _used.append(use)


def shards_used() -> list[ShardUse]:
    """Every shard that AIS and RAISE in shards used in this process so far, in order.

    Examples
    --------
    >>> isinstance(shards_used(), list)
    True
    """
    return list(_used)


def summarize_shards(uses: Iterable[ShardUse]) -> dict[str, Any]:
    """What computed these shards, in a few numbers.

    Parameters
    ----------
    uses : iterable of ShardUse
        A shard that was used more than once counts once, as it came first.

    Returns
    -------
    dict
        `count`: of shards. `found`: how many of them were found. `unknown`: how many come from code
        that nobody knows, because their files do not say it or there was no git. `uncommitted`: how
        many come from code that differed from its commit. `seconds`: that those took
        which say it; None if none does. `commits` and `processors`: of those that say it.

    Examples
    --------
    >>> old = ShardUse("a", True, None, None, None, None)
    >>> new = ShardUse("b", False, "1f0c", False, "EPYC, AVX2", 3.0)
    >>> summary = summarize_shards([old, new, new])
    >>> summary["count"], summary["found"], summary["unknown"], summary["seconds"]
    (2, 1, 1, 3.0)
    """
    first: dict[str, ShardUse] = {}
    for use in uses:
        first.setdefault(use.name, use)
    shards = first.values()
    seconds = [use.seconds for use in shards if use.seconds is not None]
    return {
        "count": len(shards),
        "found": sum(use.found for use in shards),
        "unknown": sum(use.commit is None for use in shards),
        "uncommitted": sum(bool(use.dirty) for use in shards),
        "seconds": round(sum(seconds), 1) if seconds else None,
        "commits": sorted({use.commit for use in shards if use.commit is not None}),
        "processors": sorted({use.processor for use in shards if use.processor is not None}),
    }
