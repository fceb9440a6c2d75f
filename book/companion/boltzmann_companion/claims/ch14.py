"""What chapter 14 claims of errors, intervals, broken libraries and models drawn at random."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows, above, every, of_stored
from boltzmann_companion.studies.study import WRONG, trusted_rows


def direction(rows: Rows) -> Claims:
    """Of `trust-direction`: the means of many estimates by AIS and by RAISE."""
    ais, reverse_ais = rows
    high = above(ais["mean"], 0, ais["std_error"], errors=4)
    low = above(-reverse_ais["mean"], 0, reverse_ais["std_error"], errors=4)
    claim = "AIS errs high on average, and RAISE low, by more than four standard errors"
    yield claim, every([high, low])


def coverage(rows: Rows) -> Claims:
    """Of `trust-coverage`: many and few steps and chains, and a mode that no chain meets."""
    mode = rows[-1]
    never = mode["covered"] == 0 and mode["silent"] == 0
    yield "a mode that no chain meets: it never covers, and every such miss is warned about", never


def broken(rows: Rows) -> Claims:
    """Of `trust-mutants`: the library as it is, and broken ones."""
    caught = every(row["caught"] != "none" for row in rows[1:])
    yield "every broken one is caught", caught


@of_stored("evaluate-study-held-out")
def trusted_of_drawn(rows: Rows) -> Claims:
    """Of evaluations of models that were drawn at random, and whose answer is known."""
    right = every(abs(row["value_error"]) <= WRONG for row in trusted_rows(rows))
    yield "every trusted estimate is within a nat of the truth", right
