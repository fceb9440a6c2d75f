"""Records of the papers' size, made again by the first cells of their chapters, whole or in part.

The cheapest records are made whole. Of each expensive one a part is made: one model, or the
smallest number of steps. Its rows stand in the committed record with the same settings, and must
agree with it as `paperlib check` asks. The cache is empty, so that nothing is taken from shards.

The chapters need MNIST, and are skipped without it (`PAPERLIB_DATA`).
"""

import nbformat
import pytest
from notebooks import BOOK, ROOT, parameters_of, read

from boltzmann_companion.build.check import _not_stopped_by_claims
from boltzmann_companion.build.runner import execute_copy
from boltzmann_companion.records import moved_numbers, read_record
from paperlib.datasets.images import data_folders

#: The last record that is made, and the parameters and settings that differ from the book's.
PARTS = {
    "05-exact-partition-functions": ("sm2008-table-1", {}),
    "06-full-size-rbms": ("sm2008-ais-course", {}),
    "07-deep-belief-networks": ("dbn-greedy-bound", {}),
    "08-raise": ("raise-figure-3", {"max_k": 10, "csl": [100, 1]}),
    "09-control-variates": ("control-variate-variance", {}),
    "14-why-trust-this-code": ("trust-mutants", {}),
    "15-own-images-weights-and-seeds": ("exact-binarization", {}),
    "16-tempering-and-bennetts-ratio": ("tempering-hidden-modes", {}),
}

pytestmark = pytest.mark.skipif(
    not any(folder.is_dir() for folder in data_folders("mnist")), reason="needs MNIST"
)


@pytest.mark.parametrize("chapter", PARTS)
def test_records_come_out_again(chapter, tmp_path):
    last, changed = PARTS[chapter]
    source = BOOK / f"{chapter}.ipynb"
    parameters = {name: changed[name] for name in changed if name in parameters_of(source)}
    settings = {name: changed[name] for name in changed if name not in parameters}
    copy = tmp_path / source.name
    nbformat.write(first_cells(read(source), last, settings), copy)
    figures = tmp_path / "figures"
    execute_copy(
        copy,
        tmp_path / "executed.ipynb",
        {"profile": "paper", **parameters},
        tmp_path / "executed.ipynb",
        {"PAPERLIB_FIGURES": str(figures), "PAPERLIB_CACHE": str(tmp_path / "cache")},
    )
    made = [read_record(path) for path in sorted(figures.glob("**/*.json"))]
    assert last in [record["name"] for record in made]
    for record in made:
        committed = read_record(ROOT / "figures" / "paper" / f"{record['name']}.json")
        assert moved_numbers(with_settings_of(record, committed), record) == []


def first_cells(notebook, last, settings):
    """A chapter up to the cell that makes a record, with other settings."""
    part = nbformat.v4.new_notebook(metadata=notebook.metadata)
    for cell in _not_stopped_by_claims(notebook).cells:
        part.cells.append(cell)
        if "open_chapter(" in cell.source:
            cell.source += f"\nchapter.settings.update({settings!r})"
        if f'"{last}"' in cell.source and "chapter.record(" in cell.source:
            return part
    raise AssertionError(f"no cell makes {last}")


def with_settings_of(record, committed):
    """The committed record with only those rows that have the settings of a row of the other."""
    keys = [key for key, column in committed["columns"].items() if column["tolerance"] == 0]
    settings = [[row.get(key) for key in keys] for row in record["rows"]]
    rows = [row for row in committed["rows"] if [row.get(key) for key in keys] in settings]
    return committed | {"rows": rows}
