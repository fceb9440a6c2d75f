"""`python -m paperlib` is the `paperlib` command."""

from paperlib.cli import main

main()
