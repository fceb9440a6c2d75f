"""The book's machinery: how models are made, results kept and judged, and chapters run and drawn."""

from __future__ import annotations

# Environment variable with the options of `paperlib reproduce` that changed the running chapter's
# parameters.
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

    Where the book gives one for each profile, it may be a single one, or again one for each.

    Examples
    --------
    >>> kind_wanted(100, "ten"), kind_wanted(0.5, 2), kind_wanted(None, [10, 30])
    ('a whole number', None, None)
    >>> both = {"digits": 100, "paper": 10_000}
    >>> kind_wanted(both, 300), kind_wanted(both, "many"), kind_wanted(both, {"digits": 30})
    (None, 'a whole number', "a value for each of ['digits', 'paper']")
    """
    if isinstance(given, dict):
        values = value if isinstance(value, dict) else dict.fromkeys(given, value)
        if values.keys() != given.keys():
            return f"a value for each of {sorted(given)}"
        wanted = [kind_wanted(given[name], values[name]) for name in given]
        return next(filter(None, wanted), None)
    kind = type(given)
    fits = not isinstance(value, str) if given is None else isinstance(value, kind)
    return None if fits or (kind is float and isinstance(value, int)) else _KINDS[kind]
