"""Checks of the numbers in a training recipe."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paperlib.errors import InputError
from paperlib.validation import require_count

# What is said of a number that does not fit, and whether it does.
_KINDS = {
    "positive": ("a positive number", lambda number: 0 < number < math.inf),
    "not_negative": ("a number of at least 0", lambda number: 0 <= number < math.inf),
    "momenta": ("a number in [0, 1)", lambda number: 0 <= number < 1),
}


def check_recipe(
    recipe: object, counts: Sequence[str], from_zero: Sequence[str] = (), **others: Sequence[str]
) -> None:
    """Raise unless these fields of a recipe are whole numbers, from 1 or from 0 on, and others numbers of the kind that their keyword says."""
    for minimum, names in enumerate((from_zero, counts)):
        for name in names:
            require_count(name, getattr(recipe, name), minimum)
    for kind, names in others.items():
        expected, fits = _KINDS[kind]
        for name in names:
            number = getattr(recipe, name)
            if not fits(number):
                raise InputError(f"{name}: expected {expected}, got {number}")
