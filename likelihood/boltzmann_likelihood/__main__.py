"""`python -m boltzmann_likelihood` is the `paperlib` command."""

from boltzmann_likelihood.cli import main

main()
