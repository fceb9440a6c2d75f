"""What the commands print and write is what it was: every name, type, text and number."""

import math

import golden_reports as reports
import pytest

STORED = {command: reports.golden(command) for command in reports.CASES}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        reports.write_inputs()
    return folder


def differences(report, stored, tolerance, place=""):
    """Where two values of JSON differ, in words; the order of names does not count."""
    if type(report) is not type(stored):
        return [f"{place}: {report!r}, stored {stored!r}"]
    if isinstance(stored, float):
        same = math.isclose(report, stored, rel_tol=tolerance, abs_tol=tolerance)
        return [] if same else [f"{place}: {report}, stored {stored}"]
    if isinstance(stored, list):
        lines = [] if len(report) == len(stored) else [f"{place}: another length"]
        pairs = zip(report, stored, strict=False)
        parts = [(f"{place}[{number}]", *pair) for number, pair in enumerate(pairs)]
    elif isinstance(stored, dict):
        lines = [f"{place}.{name}: missing" for name in stored if name not in report]
        lines += [f"{place}.{name}: new" for name in report if name not in stored]
        shared = [name for name in stored if name in report]
        parts = [(f"{place}.{name}", report[name], stored[name]) for name in shared]
    else:
        return [] if report == stored else [f"{place}: {report!r}, stored {stored!r}"]
    for where, part, stored_part in parts:
        lines += differences(part, stored_part, tolerance, where)
    return lines


def test_every_case_is_stored():
    stored = {command: set(cases) for command, cases in STORED.items()}
    assert stored == {command: set(cases) for command, cases in reports.CASES.items()}


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command, cases in reports.CASES.items() for name in cases],
)
def test_report(inputs, monkeypatch, command, name):
    monkeypatch.chdir(inputs)
    case = reports.CASES[command][name]
    lines = differences(reports.report(case.line), STORED[command][name], case.tolerance)
    assert lines == [], "if it was to change, tests/golden_reports.py says how to record it anew"


# ---- the comparison itself


def changes(value):
    """Copies of a value of JSON that differ from it in one place, for every place and kind."""
    if isinstance(value, dict):
        yield value | {"another": 0}
        for name, part in value.items():
            yield {other: value[other] for other in value if other != name}
            yield from (value | {name: change} for change in changes(part))
    elif isinstance(value, list):
        yield [*value, 0]
        for number, part in enumerate(value):
            yield from ([*value[:number], change, *value[number + 1 :]] for change in changes(part))
    elif isinstance(value, float):
        yield value + 2e-9 * max(1, abs(value))
        yield str(value)
        yield None
    elif isinstance(value, bool):
        yield not value
        yield int(value)
    elif isinstance(value, int):
        yield value + 1
        yield float(value)
    else:
        yield f"{value}."


@pytest.mark.parametrize("command", reports.CASES)
def test_a_change_anywhere_is_noticed(command):
    report = next(iter(STORED[command].values()))
    assert differences(report, report, 1e-9) == []
    changed = list(changes(report))
    assert len(changed) > 100
    assert [other for other in changed if not differences(other, report, 1e-9)] == []
