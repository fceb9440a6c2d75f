"""Records of the papers' size, made again: the cheapest whole, the others in part, with their smallest settings.

They need MNIST, and are skipped without it (`PAPERLIB_DATA`). Nothing is taken from the stored shards: the cache is empty.
"""

import pytest
from made_again import made_again, moved
from notebooks import ROOT

from boltzmann_companion.records import read_record
from paperlib.datasets.images import data_folders

WHOLE = [
    "dbn-greedy-bound",
    "raise-course",
    "raise-expectations",
    "tempering-link",
    "tempering-link-errors",
    "trust-enumeration",
]
ONE_STEP = {"max_k": 10, "max_k_small": 10, "csl": [100, 1]}
PARTS = {
    "raise-figure-3": ONE_STEP,
    "raise-table-1": ONE_STEP,
    "raise-table-2": {"max_k": 10},
    "sm2008-table-1-full-size": {"rbms": ["mnist-cd1-500"]},
}

pytestmark = pytest.mark.skipif(
    not any(folder.is_dir() for folder in data_folders("mnist")), reason="needs MNIST"
)


@pytest.mark.parametrize(
    ("name", "settings"), [(name, {}) for name in WHOLE] + list(PARTS.items()), ids=str
)
def test_record_comes_out_again(name, settings, tmp_path):
    record = read_record(ROOT / "figures" / "paper" / f"{name}.json")
    environment = {"PAPERLIB_CACHE": str(tmp_path / "cache")}
    lines, compared = moved(record, made_again(record, tmp_path, settings, environment))
    assert compared > 0
    assert lines == []
