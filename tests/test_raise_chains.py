"""RAISE by the number of chains: the chosen images and what groups of chains say.

Their error is that of their scatter.
"""

import math

import pytest
import torch

from boltzmann_companion.profiles import get_profile
from boltzmann_companion.studies import raise_chains
from boltzmann_companion.studies.blank_pages import longest_bracket
from boltzmann_companion.studies.raise_chains import _row, raise_chain_rows

DIGITS = get_profile("digits")


@pytest.fixture(scope="module")
def rows():
    return raise_chain_rows(DIGITS, "digits-cd1-16", {10: [1, 20]}, share=0.1, seed=2008)


def test_the_first_row_is_the_run_that_chose_the_images(rows):
    entry, above, below = longest_bracket(DIGITS, "digits-cd1-16", 2008)
    gaps = entry.log_p[entry.cases] - above.log_z - below.log_prob
    chosen, *anew = rows
    assert chosen["gap"] == pytest.approx(gaps.sort(descending=True).values[:3].mean().item())
    assert (chosen["chosen_by"], chosen["images"]) == ("yes", 3)
    assert chosen["gap_error"] is None
    assert (chosen["steps"], chosen["raise_chains"]) == (1_000, below.log_weights.shape[1])
    assert [(row["chosen_by"], row["steps"], row["raise_chains"]) for row in anew] == [
        ("no", 10, 1),
        ("no", 10, 20),
    ]


def test_more_chains_leave_a_smaller_gap_from_the_same_draws(rows):
    _, one, many = rows
    # Jensen's inequality, for each image and group
    assert many["gap"] < one["gap"]
    assert one["effective_runs"] == pytest.approx(1)
    assert 1 < many["effective_runs"] < 20


def test_groups_are_disjoint_and_their_error_is_that_of_their_scatter():
    log_weights = torch.tensor([[0.0, 1.0, 2.0, 3.0, 9.0], [0.0, 0.0, 0.0, 0.0, 9.0]]).double()
    row = _row(torch.zeros(2).double(), log_weights, 2)
    low = math.log((math.exp(0) + math.exp(1)) / 2)
    high = math.log((math.exp(2) + math.exp(3)) / 2)
    # the fifth chain is in no group of two
    assert row["gap"] == pytest.approx(-(low + high) / 4)
    assert row["gap_error"] == pytest.approx((high - low) / math.sqrt(2) / math.sqrt(2) / 2)
    alone = _row(torch.zeros(2).double(), log_weights, 5)
    jackknife = raise_chains.leave_one_out(log_weights).square().sum(1)
    assert alone["gap_error"] == pytest.approx(jackknife.sum().sqrt().item() / 2)
