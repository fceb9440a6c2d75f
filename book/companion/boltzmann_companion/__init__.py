"""The book's machinery: how models are made, results kept and judged, and chapters run and drawn."""

from __future__ import annotations

# Environment variable with the options of `paperlib reproduce` that changed the running chapter's parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# Environment variable with the device for the long runs of the paper profile, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"

# What may be said of a parameter's value, by the type of the chapter's own.
_KINDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list of numbers",
    type(None): "numbers or None",
}


def kind_wanted(given: object, value: object) -> str | None:
    """What a chapter's parameter must be instead of `value`, in words; None if `value` is of the kind of the one that the book gives.

    Examples
    --------
    >>> kind_wanted(100, "ten"), kind_wanted(0.5, 2), kind_wanted(None, [10, 30])
    ('a whole number', None, None)
    """
    kind = type(given)
    fits = not isinstance(value, str) if given is None else isinstance(value, kind)
    return None if fits or (kind is float and isinstance(value, int)) else _KINDS[kind]
