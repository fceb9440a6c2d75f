"""Speed beside what it is compared with: `python -m benchmarks.run`, or `make bench`.

`work` says what is computed, `library`, `peers`, `reference` and `floors` compute it, `worker` takes the time and the memory in
processes of its own, and `run` collects both in `figures/bench/<machine>.json`. What follows from the numbers, ratios, targets and
growth, is computed by `boltzmann_companion.speed`, for the terminal as for the book.
"""
