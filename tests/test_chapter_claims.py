"""The claims that chapters print about a run: each answer, from rows that are made up."""

import math

import pytest

from boltzmann_companion.claims import ch04, ch05, ch06, ch08, ch10, ch14
from boltzmann_companion.claims.checks import in_full

INFINITE = math.inf


def answers(claims):
    return [str(in_full(each).answer) for each in claims]


def bracket(steps, gap, error=0.05, exact=-20.0, start="uniform", model="a", **more):
    """A point of a curve: AIS above RAISE by the gap, around -20."""
    ais_error = more.pop("ais_error", error)
    return {
        "model": model,
        "start": start,
        "steps": steps,
        "exact": exact,
        "raise": -20.0 - gap / 2,
        "raise_error": error,
        "ais": -20.0 + gap / 2,
        "ais_interval": [-20.0 + gap / 2 - 3 * ais_error, -20.0 + gap / 2 + 3 * ais_error],
        "gap": gap,
        "gap_error": math.hypot(error, ais_error),
        "gap_dof": 1000.0,
        **more,
    }


def both_starts(**last):
    """Brackets that begin open; the last of each start has these values."""
    return [
        bracket(steps, start=start, **values)
        for start in ("uniform", "base rates")
        for steps, values in ((10, {"gap": 6.0}), (300, last))
    ]


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        ({"gap": 0.0}, "yes"),
        # smaller than at first, but not closed
        ({"gap": 4.6}, "no"),
        ({"gap": 0.3}, "cannot be told"),
        ({"gap": 0.0, "error": INFINITE}, "cannot be told"),
        ({"gap": 0.0, "exact": -25.0}, "no"),
        ({"gap": 0.0, "exact": None}, "yes"),
    ],
    ids=str,
)
def test_a_bracket_is_closed_by_the_verdict_that_its_table_prints(last, answer):
    assert answers(ch08.brackets_close(both_starts(**last), 100, 0.3)) == [answer]


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (bracket(300, 0.0), "yes"),
        (bracket(300, 0.0, exact=-22.0), "no"),
        (bracket(300, 0.0, error=INFINITE), "cannot be told"),
        # the model is too large to be enumerated: nothing was compared
        (bracket(300, 0.0, exact=None), "cannot be told"),
    ],
    ids=str,
)
def test_an_exact_value_lies_in_a_bracket_if_that_can_be_told(row, answer):
    assert answers(ch10.brackets([row], 100)) == [answer]


@pytest.mark.parametrize(
    ("above_exact", "error", "answer"),
    [
        (3.0, 0.1, "yes"),
        (-3.0, 0.1, "no"),
        (3.0, 1.0, "cannot be told"),
        (3.0, INFINITE, "cannot be told"),
    ],
)
def test_raise_exceeds_the_exact_value_by_more_than_its_error(above_exact, error, answer):
    rows = [{"raise": -20 + above_exact, "exact": -20.0, "raise_error": error}]
    assert answers(ch08.bad_mode(rows)) == [answer]


@pytest.mark.parametrize(
    ("interval", "answer"),
    [
        ((1.0, 2.0), "yes"),
        ((1.6, 2.0), "no"),
        ((-INFINITE, 2.0), "cannot be told"),
        # wrong at its other end
        ((-INFINITE, 1.2), "no"),
    ],
)
def test_an_interval_without_an_end_does_not_show_that_it_holds_the_truth(interval, answer):
    rows = [{"interval_3_sigma": interval, "exact_log_z": 1.5, "warnings": "few runs"}]
    assert answers(ch05.intervals(rows)) == [answer]


def ratio(low, high, exact=-15.0):
    return {"interval_3_sigma": [low, high], "exact": exact}


@pytest.mark.parametrize(
    ("backward", "answer"),
    [((-15.2, -14.8), "yes"), ((-13.2, -12.8), "no"), ((-15.2, INFINITE), "cannot be told")],
)
def test_two_directions_bracket_the_truth_unless_one_is_infinite(backward, answer):
    exact = -15.0 if answer != "no" else -16.0
    rows = [ratio(0, 0), ratio(-15.1, -14.9, exact), ratio(*backward, exact)]
    assert answers(ch05.both_directions(rows)) == [answer]


def direct(low, high, difference=(170.9, 171.5)):
    return {"interval_3_sigma": [low, high], "difference_interval": list(difference)}


@pytest.mark.parametrize(
    ("forward", "warnings", "answer"),
    [
        (direct(170.0, 171.0), "none", "yes"),
        (direct(160.0, 161.0), "none", "no"),
        (direct(170.0, 171.0), "too few", "cannot be told"),
        (direct(-INFINITE, 171.0), "none", "cannot be told"),
        (direct(170.0, 171.0, (-INFINITE, 171.5)), "none", "cannot be told"),
    ],
    ids=str,
)
def test_a_difference_fits_two_directions_unless_an_estimate_is_doubted(forward, warnings, answer):
    backward = direct(-161.0, -160.0) if answer == "no" else direct(-171.0, -170.0)
    row = ch06.two_directions([forward, backward], [{"warnings": warnings}])
    assert answers(row) == [answer]


@pytest.mark.parametrize(
    ("held", "repetitions", "answer"),
    [
        (99.5, 200, "yes"),
        (50.0, 200, "no"),
        (100.0, 3, "cannot be told"),
        (97.0, 200, "cannot be told"),
    ],
)
def test_a_share_of_few_repetitions_says_little(held, repetitions, answer):
    assert answers(ch04.coverage([{"covered": held}], repetitions)) == [answer]


@pytest.mark.parametrize(
    ("ais_moves", "raise_moves", "answer"),
    [
        ((1.0, 0.1), (-1.0, 0.1), "yes"),
        ((-1.0, 0.1), (-1.0, 0.1), "no"),
        ((0.1, 0.1), (-1.0, 0.1), "cannot be told"),
    ],
    ids=str,
)
def test_the_direction_of_an_error_needs_more_than_noise(ais_moves, raise_moves, answer):
    rows = [{"mean": mean, "std_error": error} for mean, error in (ais_moves, raise_moves)]
    assert answers(ch14.direction(rows)) == [answer]
