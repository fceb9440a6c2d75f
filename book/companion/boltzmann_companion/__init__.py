"""The book's machinery: how models are made, results kept and judged, and chapters run and drawn."""

# Environment variable with the options of `paperlib reproduce` that changed the running chapter's parameters.
SETTINGS = "PAPERLIB_SETTINGS"

# Environment variable with the device for the long runs of the paper profile, if not the CPU.
DEVICE = "PAPERLIB_DEVICE"
