"""The version of the draws.

Stored shards carry it in their names. It changes when, and only when, the random numbers of an annealing run or what is done
with them changes on purpose. `tests/test_golden_draws.py` holds numbers for each kernel and backend, and fails if they move while
this string stays.
"""

DRAWS = "0.2.0"
