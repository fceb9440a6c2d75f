"""The numbers of a fresh run against the committed ones, within each column's tolerance.

`make test` runs the notebooks with `PAPERLIB_FIGURES=_build/fresh` first, so that their results
land there.
"""

import json
from pathlib import Path

import pytest

from boltzmann_companion.build.runner import chapters
from boltzmann_companion.record_files import read_record
from boltzmann_companion.records import moved_records

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "figures" / "digits"
FRESH = ROOT / "_build" / "fresh" / "digits"
CHAPTERS = [path.stem for path in chapters()]


def test_there_are_records_to_compare():
    assert len(list(COMMITTED.glob("*.json"))) >= 4


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_fresh_run_agrees_with_the_committed_records(chapter):
    moved, left_out = moved_records(chapter, COMMITTED, FRESH)
    if moved:
        lines = ["`make test` executes the notebooks first", *moved]
        pytest.fail("\n".join(lines), pytrace=False)
    if left_out:
        pytest.skip("\n".join(left_out))


@pytest.mark.parametrize("folder", [COMMITTED, FRESH], ids=["committed", "fresh"])
def test_every_record_belongs_to_a_chapter(folder):
    """Those of a chapter that is gone would be compared with nothing."""
    made_by = {read_record(path)["provenance"]["chapter"] for path in folder.glob("*.json")}
    assert made_by <= set(CHAPTERS)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "figures").glob("*/*.json")), ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_every_committed_record_has_provenance_and_states_its_tolerances(path):
    record = read_record(path)
    provenance = record["provenance"]
    for key in ("seed", "commit", "utc", "processor", "dtype", "torch", "numpy", "data", "command"):
        assert provenance[key] not in (None, ""), key
    assert provenance["dirty"] is False, "made by code that is not committed"
    assert {"label", "unit", "tolerance"} <= set.intersection(
        *(set(column) for column in record["columns"].values())
    )
    json.dumps(record["rows"])
