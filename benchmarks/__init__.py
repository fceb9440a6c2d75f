"""Speed beside what it is compared with: `python -m benchmarks.run`, or `make bench`.

`work` says what is computed, `library`, `peers` and `reference` compute it, `worker` takes the time
in processes of its own, and `run` collects it in `figures/bench/<machine>.json`. The table that
follows from it is made by `boltzmann_companion.speed`, for the terminal as for the book.
"""
