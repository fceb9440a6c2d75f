"""From models to the papers' tables and figures: profiles, recipes, published numbers, records, and the runner."""


class ReproductionError(Exception):
    """A chapter's cell failed or the book could not be built; the message says which and why."""


# A variable with the options of `paperlib reproduce` that changed the running chapter's parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# A variable with the device on which the long runs of the paper profile walk, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"
