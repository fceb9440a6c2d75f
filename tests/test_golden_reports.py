"""What the commands print and write for fixed inputs is what it was: every name, type, text and number.

Exact numbers are computed in float64, and processors differ in their last digits only. Estimates walk in float32, where the draws are the
same on every processor and the log-weights differ by some rounding (`tests/test_golden_draws.py`).
"""

import math

import golden_reports as reports
import pytest

STORED = {command: reports.golden(command) for command in reports.CASES}
# Of numbers, relative to those beyond 1 in size.
EXACT, ESTIMATED = 1e-6, 1e-4


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        reports.write_inputs()
    return folder


def differences(found, stored, tolerance, place=""):
    """Where two values of JSON differ, in words; the order of names does not count."""
    if type(found) is not type(stored):
        return [f"{place}: {type(found).__name__} {found!r}, stored {stored!r}"]
    if isinstance(stored, dict):
        said = [f"{place}.{name}: missing" for name in stored.keys() - found.keys()]
        said += [f"{place}.{name}: new" for name in found.keys() - stored.keys()]
        shared = stored.keys() & found.keys()
        pairs = [(f"{place}.{name}", found[name], stored[name]) for name in shared]
    elif isinstance(stored, list) and len(stored) == len(found):
        said = []
        pairs = [(f"{place}[{n}]", *pair) for n, pair in enumerate(zip(found, stored, strict=True))]
    elif isinstance(stored, float):
        same = math.isclose(found, stored, rel_tol=tolerance, abs_tol=tolerance)
        return [] if same else [f"{place}: {found}, stored {stored}"]
    else:
        return [] if found == stored else [f"{place}: {found!r}, stored {stored!r}"]
    for where, one, other in pairs:
        said += differences(one, other, tolerance, where)
    return said


def test_every_case_is_stored_once():
    assert {command: set(cases) for command, cases in STORED.items()} == {
        command: set(cases) for command, cases in reports.CASES.items()
    }


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command, cases in reports.CASES.items() for name in cases],
)
def test_report(inputs, monkeypatch, command, name):
    monkeypatch.chdir(inputs)
    found = reports.report(reports.CASES[command][name])
    tolerance = ESTIMATED if name in reports.ESTIMATED[command] else EXACT
    wrong = differences(found, STORED[command][name], tolerance)
    assert wrong == [], "if it was to change, tests/golden_reports.py says how to record it anew"
