"""The book's machinery: it trains models, stores and judges results, runs and draws chapters."""

from __future__ import annotations

# Environment variable with the options of `paperlib reproduce` that changed the running chapter's
# parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# Environment variable with the device for the long runs of the paper profile, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"

# What a parameter has to be, by the type of its default.
_KINDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list of numbers",
    type(None): "numbers or None",
}


def kind_wanted(default: object, value: object) -> str | None:
    """What a chapter's parameter must be instead of `value`, in words; None if `value` will do.

    It has to be of the kind of the book's `default`. If that is a value for each profile, `value`
    may be a single one, or again one for each.

    Examples
    --------
    >>> kind_wanted(100, "ten"), kind_wanted(0.5, 2), kind_wanted(None, [10, 30])
    ('a whole number', None, None)
    >>> both = {"digits": 100, "paper": 10_000}
    >>> kind_wanted(both, 300), kind_wanted(both, "many"), kind_wanted(both, {"digits": 30})
    (None, 'a whole number', "a value for each of ['digits', 'paper']")
    """
    if isinstance(default, dict):
        values = value if isinstance(value, dict) else dict.fromkeys(default, value)
        if values.keys() != default.keys():
            return f"a value for each of {sorted(default)}"
        wanted = [kind_wanted(default[name], values[name]) for name in default]
        return next(filter(None, wanted), None)
    kind = type(default)
    if kind is float:
        fits = isinstance(value, int | float)
    elif default is None:
        fits = not isinstance(value, str)
    else:
        fits = isinstance(value, kind)
    return None if fits else _KINDS[kind]
