"""Columns are declared once: `columns.yaml` says of every committed record what the record says of itself, and nothing more."""

import ast
import json
import re
from dataclasses import asdict
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
DECLARED = yaml.safe_load(columns.DECLARATIONS.read_text())
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "book").glob("*.ipynb"))}
SETTINGS = sorted((columns.DECLARATIONS.parent / "settings").glob("*.yaml"))


def code(path):
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_columns_of_a_committed_record_are_those_declared(path):
    record = json.loads(path.read_text())
    found = record_columns(record["name"], record["profile"], record["rows"])
    # as text, which tells 0 from 0.0 and sees the order
    said = json.dumps({key: asdict(column) for key, column in found.items()})
    assert said == json.dumps(record["columns"])


def test_all_that_is_declared_is_used():
    committed = {json.loads(path.read_text())["name"] for path in RECORDS}
    assert set(DECLARED["records"]) == committed
    lists = [record["columns"] for record in DECLARED["records"].values()]
    assert set().union(*lists) == set(DECLARED["columns"])
    assert not [keys for keys in lists if len(set(keys)) < len(keys)]


@pytest.mark.parametrize("name", DECLARED["records"])
def test_views_name_columns_of_their_record(name):
    declared = DECLARED["records"][name]
    shown = declared.get("shown")
    for which in shown if isinstance(shown, dict) else [None]:
        assert set(view(name, which).headings or {}) <= set(declared["columns"])


def test_record_of_a_reader_has_the_columns_that_all_records_share():
    found = record_columns("my-own", "digits", [{"warnings": "none", "gap": 1.0}])
    assert list(found.items()) == [
        ("warnings", Column("warnings")),
        ("gap", Column("gap", "nats", 1e-6)),
    ]


def test_tolerance_of_a_training_is_wider_at_the_papers_size():
    rows = [{"best": 1.0}]
    tolerances = [
        record_columns("contrastive-divergence-training", profile, rows)["best"].tolerance
        for profile in ("digits", "paper")
    ]
    assert tolerances == [1e-6, 1.0]


def test_stored_records_that_chapters_show_are_there():
    asked = {
        name
        for path in NOTEBOOKS.values()
        for name in re.findall(r'\.stored\(\s*"([^"]+)"', code(path))
    }
    assert len(asked) > 30
    assert not [name for name in asked if load_result(name, "paper") is None]


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
