"""Chains between nearly blank pages and the rest, against the sums over all pages.

A small model has both as modes.
"""

import math
from types import SimpleNamespace

import pytest
import torch
from enumeration import all_states

from boltzmann_companion.studies.blank_pages import flow_row
from paperlib.models import RBM

FEWER_THAN = 2
STEPS = 12
CHAINS = 4_000
# hidden units that switch all six pixels on together, or none
TWO_MODES = RBM(torch.full((6, 3), 2.0).double(), torch.full((6,), -3.4), torch.full((3,), -5.5))
PAGES = all_states(6).double()


def exact():
    """p* of all pages, which are nearly blank, and where each is after STEPS steps: by matrices."""
    hidden = all_states(3).double()
    on_h = TWO_MODES.hidden_probs(PAGES)
    on_v = TWO_MODES.visible_probs(hidden)
    down = torch.where(hidden[:, None] > 0, on_h, 1 - on_h).prod(2).T
    up = torch.where(PAGES[None] > 0, on_v[:, None], 1 - on_v[:, None]).prod(2)
    moved = torch.linalg.matrix_power(down @ up, STEPS)
    return TWO_MODES.log_unnormalized(PAGES).double().exp(), PAGES.sum(1) < FEWER_THAN, moved


def test_the_flow_bounds_what_arrives_and_masses_are_those_of_the_sums():
    mass, blank, moved = exact()
    images = PAGES[[-1, -2]]
    entry = SimpleNamespace(name="two modes", model=TWO_MODES, v=images)
    row = flow_row(entry, torch.tensor([3.0, 5.0]), FEWER_THAN, CHAINS, CHAINS, STEPS, seed=1)

    arrives = moved[:, blank].sum(1)
    share = arrives[[-1, -2]].mean().item()
    assert 0.05 < share < 0.5
    assert row["arrived"] == pytest.approx(share, abs=4 * math.sqrt(0.25 / (2 * CHAINS)))
    assert (row["half_arrive"], row["none_arrive"], row["half_gap"]) == (0, 0, None)
    assert row["largest_gap"] == 5

    # what leaves bounds the mass of all pages from which half arrive
    mass_of_half = mass[~blank & (arrives >= 0.5)].sum() / mass[blank].sum()
    leaves = ((mass * (1 - arrives))[blank].sum() / mass[blank].sum()).item()
    assert 0 < mass_of_half <= 2 * leaves
    bound = row["mass_bound"] / 100
    assert 2 * leaves < bound < 2 * (leaves + 6 * math.sqrt(leaves / CHAINS))

    blank_log_z = mass[blank].sum().log().item()
    assert row["blank_error"] < 0.05
    assert row["blank_log_z"] == pytest.approx(blank_log_z, abs=4 * row["blank_error"])
    rest_log_z = mass[~blank].sum().log().item()
    assert row["rest_log_z"] == pytest.approx(rest_log_z, abs=4 * row["rest_error"])


def test_without_nearly_blank_pages_nothing_is_said_of_them():
    full = RBM(torch.zeros(6, 1), torch.full((6,), 9.0), torch.zeros(1))
    entry = SimpleNamespace(name="full", model=full, v=PAGES[-2:])
    row = flow_row(entry, torch.tensor([1.0, 2.0]), 2, 5, 5, 3, seed=1)
    assert (row["arrived"], row["none_arrive"], row["none_gap"]) == (0, 2, 1.5)
    assert row["mass_bound"] is row["blank_log_z"] is row["largest_gap"] is None
