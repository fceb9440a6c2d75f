"""A log of what computed the shards that this process used: commits, processors and seconds, where known.

A record of results includes a summary of it, so that shards found on disk do not pass for the run's own work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any, NamedTuple


class ShardUse(NamedTuple):
    """A shard that this process used. None: its file does not say.

    Attributes
    ----------
    name : str
        Name of its file, without the suffix.
    found : bool
        Whether it was found; otherwise it was computed for this process.
    commit : str or None
        Commit of the code that computed it.
    dirty : bool or None
        Whether that code differed from the commit.
    processor : str or None
        The processor that computed it, with its vector instructions; or the name of a GPU.
    seconds : float or None
        How long the computation took.
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
        Name of its file, without the suffix.
    found : bool
        Whether it was found.
    made_by : mapping, optional
        What its file says about how it was computed. None: nothing.
    """
    # Each string is kept only once, however many shards there are.
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
    """A short summary of what computed these shards.

    Parameters
    ----------
    uses : iterable of ShardUse
        A shard that was used more than once counts once, as at its first use.

    Returns
    -------
    dict
        `count`: number of shards. `found`: how many of them were found. `unknown`: how many come
        from unknown code, because their files do not say or there was no git. `uncommitted`: how
        many come from code that differed from its commit. `seconds`: total time of the shards that
        state it; None if none does. `commits` and `processors`: those of the shards that state them.

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
