"""Labels of logarithmic axes, and the drawing of a Markov chain as a graph: what is drawn, and what is refused."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.patches import Circle, FancyArrowPatch

from boltzmann_companion.plots import draw_chain, label_logarithmic
from paperlib.errors import InputError

CHAIN = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.996, 0.004, 0.0]])


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.mark.parametrize(
    ("between", "labels"),
    [
        (True, ["0.05", "0.1", "0.2", "0.5", "1", "2"]),
        (False, ["0.1", "1"]),
    ],
)
def test_logarithmic_axes_have_plain_numbers(axes, between, labels):
    axes.loglog([0.04, 3.0], [400_000, 1_200_000])
    label_logarithmic(axes.xaxis, axes.yaxis, between=between)
    axes.set(xlim=(0.04, 3.0), ylim=(400_000, 1_200_000))
    axes.figure.canvas.draw()
    shown = [
        label.get_text()
        for label in axes.xaxis.get_majorticklabels()
        if 0.04 <= label.get_position()[0] <= 3.0
    ]
    assert shown == labels
    assert "1,000,000" in [label.get_text() for label in axes.yaxis.get_majorticklabels()]
    assert len(axes.xaxis.get_minorticklocs()) == 0


def kinds(axes):
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
    return arrows, [c for c in circles if not c.get_fill()], [c for c in circles if c.get_fill()]


def test_an_arrow_for_every_move_and_a_loop_for_every_chance_to_stay(axes):
    draw_chain(axes, CHAIN, labels=["a", "b", "c"])
    arrows, loops, states = kinds(axes)
    # 0.004 is below a hundredth of the largest
    assert (len(arrows), len(loops), len(states)) == (3, 2, 3)
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c"]


def test_larger_rates_have_wider_arrows_whatever_their_unit(axes):
    draw_chain(axes, 1000 * CHAIN)
    widths = [arrow.get_linewidth() for arrow in kinds(axes)[0]]  # 0.1, 0.5, 0.996
    assert widths == sorted(widths)
    assert widths[0] < widths[2] / 2


def test_states_stand_where_they_are_put(axes):
    places = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    draw_chain(axes, CHAIN, places, shades=torch.tensor([0.0, 0.5, 1.0]))
    states = kinds(axes)[2]
    assert [state.center for state in states] == [(0, 0), (1, 0), (0, 2)]
    assert [state.get_facecolor()[0] for state in states] == [1.0, 0.5, 0.0]


def test_a_single_state_is_a_loop(axes):
    draw_chain(axes, torch.ones(1, 1))
    assert [len(kind) for kind in kinds(axes)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rates", {"rates": CHAIN[:2]}),
        ("rates", {"rates": -CHAIN}),
        ("rates", {"rates": CHAIN * math.nan}),
        ("places", {"places": torch.zeros(2, 2)}),
        ("labels", {"labels": ["a"]}),
        ("shades", {"shades": torch.zeros(2)}),
    ],
)
def test_what_does_not_fit_is_refused(axes, name, arguments):
    with pytest.raises(InputError, match=f"^{name}: expected"):
        draw_chain(axes, **{"rates": CHAIN, **arguments})
    assert not axes.patches
