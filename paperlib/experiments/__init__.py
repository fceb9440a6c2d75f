"""What is computed and kept: recipes of models, profiles, published numbers, records with provenance, training, the study."""

# A variable with the options of `paperlib reproduce` that changed the running chapter's parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# A variable with the device on which the long runs of the paper profile walk, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"
