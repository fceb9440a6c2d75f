"""The errors that the library raises on purpose. Any other exception is a fault of the library itself."""


class InputError(ValueError):
    """An argument, a file or a setting that cannot be used.

    The message names it and says what was expected and what came instead: `num_chains: expected a whole number of at least 1,
    got 0`. The command line shows the message alone; any other `ValueError` keeps its traceback, because it is a bug.
    """


class ReproductionError(Exception):
    """A chapter's cell failed or the book could not be built; the message says which and why."""
