"""What the parameters of the chapters may be, where not every number above 0 will do.

`open_chapter` refuses everything else, so that a chapter does not stop in its middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from boltzmann_companion.profiles import Profile
from paperlib.errors import InputError

#: A number, or one that depends on the profile and on the settings of a chapter.
Bound: TypeAlias = float | Callable[[Profile, Mapping[str, Any]], float]


class Limit(NamedTuple):
    """The least and the most that a parameter may be.

    Attributes
    ----------
    least, most : float or callable
        A function of the profile and of the chapter's settings where they depend on these.
    because : str
        What the refusal says of them.
    """

    least: Bound = 0
    most: Bound = math.inf
    because: str = ""


def _test_images(size: Profile, settings: Mapping[str, Any]) -> int:
    return len(size.images().test)


def _all_test_images_but_one(size: Profile, settings: Mapping[str, Any]) -> int:
    return len(size.images().test) - 1


_SPREAD = "since the spread of the repeats is shown"
_RUNS = "since the spread of the runs is shown"
#: Of a parameter that means the same wherever a chapter has it.
EVERYWHERE = {
    "schedule_fraction": Limit(most=1, because="the whole schedule"),
    "test_images": Limit(most=_test_images, because="all that there are"),
}
#: By chapter.
LIMITS = {
    "04-importance-sampling-and-ais": {"repetitions": Limit(least=2, because=_SPREAD)},
    "05-exact-partition-functions": {"num_chains": Limit(least=2, because=_RUNS)},
    "06-full-size-rbms": {
        "num_chains": Limit(least=2, because=_RUNS),
        "max_runs": Limit(
            least=lambda size, settings: min(settings["runs"]),
            because="the smallest number of runs in the figure",
        ),
    },
    "09-control-variates": {
        "num_images": Limit(
            least=10,
            most=_all_test_images_but_one,
            because="so that there is a choice among all test images",
        ),
    },
    "10-deep-boltzmann-machines": {
        "max_k": Limit(
            least=lambda size, settings: settings["shown_from"],
            because="the smallest number of distributions in Figure 7",
        ),
    },
    "16-tempering-and-bennetts-ratio": {
        "repeats": Limit(least=2, because=_SPREAD),
        "max_chain_steps": Limit(
            least=lambda size, settings: min(settings["budgets"]),
            because="the smallest of the budgets",
        ),
    },
}


def _bound(bound: Bound, size: Profile, settings: Mapping[str, Any]) -> float:
    """The number that a bound is in a profile."""
    return bound(size, settings) if callable(bound) else bound


def limit_of(chapter: str, name: str) -> Limit:
    """What a parameter of a chapter may be.

    Parameters
    ----------
    chapter : str
        Name of its notebook, without the suffix.
    name : str
        Name of the parameter.

    Examples
    --------
    >>> limit_of("06-full-size-rbms", "schedule_fraction").most
    1
    >>> limit_of("06-full-size-rbms", "seed").most
    inf
    """
    return LIMITS.get(chapter, {}).get(name) or EVERYWHERE.get(name) or Limit()


def require_within(
    name: str, value: Any, limit: Limit, size: Profile, settings: Mapping[str, Any]
) -> None:
    """Raise unless a parameter is within its limit.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : number or None
        None stands for the value that a profile has itself, and is within every limit.
    limit : Limit
        From `limit_of`.
    size : Profile
        The profile in which the chapter runs.
    settings : mapping
        The chapter's settings in it.

    Raises
    ------
    InputError
        If it is not.

    Examples
    --------
    >>> from boltzmann_companion.profiles import get_profile
    >>> require_within("repeats", 1, Limit(least=2), get_profile("digits"), {})
    Traceback (most recent call last):
    paperlib.errors.InputError: repeats: expected at least 2, got 1
    """
    if not isinstance(value, int | float):
        return
    least = _bound(limit.least, size, settings)
    most = _bound(limit.most, size, settings)
    if least <= value <= most:
        return
    if limit.least == 0:
        expected = f"at most {most}"
    elif most == math.inf:
        expected = f"at least {least}"
    else:
        expected = f"from {least} to {most}"
    reason = f", {limit.because}" if limit.because else ""
    raise InputError(f"{name}: expected {expected}{reason}, got {value!r}")
