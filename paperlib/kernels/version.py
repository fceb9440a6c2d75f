"""The version of the draws.

Stored shards carry it in their names. It changes if, and only if, the random numbers of an
annealing run or their use are changed on purpose. `tests/test_golden_draws.py` holds numbers for
each kernel and backend, and fails if they change while this string stays the same.
"""

DRAWS = "0.2.0"
