"""Checks of the numbers in a training recipe, which each recipe makes when it is created."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paperlib.errors import InputError
from paperlib.validation import require_count

# What is expected of a number, in words and as a test.
_KINDS = {
    "positive": ("a positive number", lambda number: 0 < number < math.inf),
    "not_negative": ("a number of at least 0", lambda number: 0 <= number < math.inf),
    "momenta": ("a number in [0, 1)", lambda number: 0 <= number < 1),
}


def check_recipe(
    recipe: object, counts: Sequence[str], from_zero: Sequence[str] = (), **others: Sequence[str]
) -> None:
    """Raise unless the numbers of a recipe are in range.

    Parameters
    ----------
    recipe : object
        The recipe, of which fields are named below.
    counts, from_zero : sequence of str
        Fields that are whole numbers of at least 1, or of at least 0.
    **others : sequence of str
        Fields that are positive, `not_negative` or `momenta`.
    """
    for name in from_zero:
        require_count(name, getattr(recipe, name), 0)
    for name in counts:
        require_count(name, getattr(recipe, name), 1)
    for kind, names in others.items():
        expected, fits = _KINDS[kind]
        for name in names:
            number = getattr(recipe, name)
            if not fits(number):
                raise InputError(f"{name}: expected {expected}, got {number}")
