"""Columns are declared once: the files say of a record what the record says, and no more."""

import ast
import json
import re
from collections import Counter
from dataclasses import asdict
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml

from boltzmann_companion import columns
from boltzmann_companion.columns import Column, record_columns, view
from boltzmann_companion.records import load_result

ROOT = Path(__file__).parents[1]
RECORDS = sorted(
    p for folder in ("digits", "paper") for p in (ROOT / "figures" / folder).glob("*.json")
)
SHARED = yaml.safe_load(columns.SHARED.read_text())
CHAPTERS = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted(columns.HEADINGS.glob("*.yaml"))
}
DECLARED = {name: record for chapter in CHAPTERS.values() for name, record in chapter.items()}
# Columns that no record stores: they are found when it is read.
FOUND_WHEN_READ = {"verdict", "uniform_verdict", "base_rate_verdict", "reading"}
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "book").glob("*.ipynb"))}
SETTINGS = sorted((columns.SHARED.parent / "settings").glob("*.yaml"))


def code(path):
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_columns_of_a_committed_record_are_those_declared(path):
    record = json.loads(path.read_text())
    columns = record_columns(record["name"], record["profile"], record["rows"])
    # as text, which tells 0 from 0.0 and sees the order
    text = json.dumps({key: asdict(column) for key, column in columns.items()})
    assert text == json.dumps(record["columns"])


@cache
def committed_columns():
    """The columns of each committed record, of both profiles, and the chapter that made it."""
    keys = {}
    chapters = {}
    for path in RECORDS:
        record = json.loads(path.read_text())
        keys.setdefault(record["name"], set()).update(record["columns"])
        chapters[record["name"]] = record["provenance"]["chapter"]
    return keys, chapters


def test_all_that_is_declared_is_used():
    keys, chapters = committed_columns()
    assert sum(map(len, CHAPTERS.values())) == len(DECLARED)  # none in two files
    for chapter, records in CHAPTERS.items():
        for name, declared in records.items():
            assert chapters.get(name) == chapter, name
            assert declared.keys() <= {"columns", "shown", "digits"}
            assert not declared.get("columns", {}).keys() - keys[name] - FOUND_WHEN_READ, name
    shared_by = Counter(key for columns in keys.values() for key in columns if key in SHARED)
    assert not [key for key in SHARED if shared_by[key] < 2]


@pytest.mark.parametrize("name", DECLARED)
def test_declarations_say_only_what_differs(name):
    for key, fields in DECLARED[name].get("columns", {}).items():
        shared = SHARED.get(key, {})
        assert fields
        for field in fields:
            without = {one: value for one, value in fields.items() if one != field}
            # as text, which tells 0 from 0.0
            assert any(
                repr(columns._column(key, shared | without, profile))
                != repr(columns._column(key, shared | fields, profile))
                for profile in ("digits", "paper")
            ), (key, field)


@pytest.mark.parametrize("name", DECLARED)
def test_views_name_columns_of_their_record(name):
    keys, _ = committed_columns()
    shown = DECLARED[name].get("shown")
    for which in shown if isinstance(shown, dict) else [None]:
        assert set(view(name, which).headings or {}) <= keys[name] | FOUND_WHEN_READ


def test_record_of_a_reader_has_the_columns_that_records_share_and_others_by_name():
    columns = record_columns("my-own", "digits", [{"warnings": "none"}, {"gap": 1.0, "my_own": 2}])
    assert list(columns.items()) == [
        ("warnings", Column("warnings")),
        ("gap", Column("gap", "nats", 1e-6)),
        ("my_own", Column("my own", "", 0.0)),
    ]


def test_tolerance_of_a_training_is_wider_at_the_papers_size():
    rows = [{"best": 1.0}]
    tolerances = [
        record_columns("contrastive-divergence-training", profile, rows)["best"].tolerance
        for profile in ("digits", "paper")
    ]
    assert tolerances == [1e-6, 1.0]


def test_stored_records_that_chapters_show_are_there():
    names = {
        name
        for path in NOTEBOOKS.values()
        for name in re.findall(r'\.stored\(\s*"([^"]+)"', code(path))
    }
    assert len(names) > 30
    assert not [name for name in names if load_result(name, "paper") is None]


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_settings_are_read_by_their_chapter(path):
    read = {
        node.slice.value
        for node in ast.walk(ast.parse(code(NOTEBOOKS[path.stem])))
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "settings"
        if isinstance(node.slice, ast.Constant)
    }
    settings = yaml.safe_load(path.read_text())
    # names chosen by a condition are not constants: chapter 8's largest K
    assert settings.keys() - read <= {"max_k", "max_k_small"}
    assert read <= settings.keys()
    assert all(values.keys() <= {"digits", "paper"} for values in settings.values())
