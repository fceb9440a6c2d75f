"""Computations whose results are kept: model recipes, profiles, published numbers, records with provenance, training, the study."""

# Environment variable with the options of `paperlib reproduce` that changed the running chapter's parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# Environment variable with the device for the long runs of the paper profile, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"
