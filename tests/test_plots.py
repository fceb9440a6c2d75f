"""The code of colours, dashes and markers; labels of log axes; drawing a Markov chain."""

from __future__ import annotations

import itertools
import math
import re
from urllib.parse import unquote

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.patches import Circle, FancyArrowPatch

from boltzmann_companion.figures.brackets import draw_models
from boltzmann_companion.plots import draw_chain, label_logarithmic, look_of, use_style
from boltzmann_companion.studies.budgeted_estimators import ESTIMATORS
from boltzmann_likelihood.evaluation.picture import LOOKS
from paperlib.errors import InputError
from paperlib.storage import companion_folder
from tests.players import KINDS

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


def test_the_style_of_the_book_does_not_depend_on_that_of_the_user():
    with mpl.rc_context({"text.usetex": True, "lines.linewidth": 7}):
        use_style()
        assert not mpl.rcParams["text.usetex"]
        assert mpl.rcParams["lines.linewidth"] == mpl.rcParamsDefault["lines.linewidth"]
        assert mpl.rcParams["image.cmap"] == "gray_r"


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


# ---- the code of colours, dashes and markers

#: Linear RGB as seen without each of the three cones, after Machado, Oliveira and Fernandes
#: (2009), severity 1.
EYES = {
    "normal": np.eye(3),
    "no red": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "no green": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9690]],
    "no blue": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
#: From linear RGB to XYZ, white being (1, 1, 1) in the former.
XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def rgb(color):
    return np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def linear(values):
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    dark, light = sorted(float(XYZ[1] @ linear(values)) for values in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(color, eyes):
    """CIELAB, in which a distance of 2 is just seen."""
    xyz = XYZ @ np.clip(EYES[eyes] @ linear(rgb(color)), 0, 1) / XYZ.sum(1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def on_a_dark_page(values):
    """What the style sheet makes of the drawing of a player: `invert(0.9) hue-rotate(180deg)`."""
    grey = np.array([0.213, 0.715, 0.072])
    rotated = 2 * np.outer(np.ones(3), grey) - np.eye(3)
    return np.clip(rotated @ (0.9 - 0.8 * values), 0, 1)


@pytest.mark.parametrize("eyes", EYES)
def test_colours_of_estimators_differ_for_all_eyes(eyes):
    colors = ["#000000", *(look["color"] for look in LOOKS.values())]
    for one, other in itertools.combinations(colors, 2):
        assert np.linalg.norm(lab(one, eyes) - lab(other, eyes)) > 15, (one, other)


def test_colours_stand_out_from_white_and_on_dark_pages():
    white = np.ones(3)
    for name, look in LOOKS.items():
        color = rgb(look["color"])
        assert contrast(color, white) >= 3, name
        assert contrast(on_a_dark_page(color), on_a_dark_page(white)) >= 3, name
    for name in ("AIS", "RAISE"):
        color = rgb(LOOKS[name]["color"])
        assert contrast(color, white) >= 4.5  # of text
        assert contrast(color, rgb("#14181E")) >= 3  # the logo on a dark page


def test_estimators_differ_without_colours():
    for key in ("linestyle", "marker"):
        assert len({look[key] for look in LOOKS.values()}) == len(LOOKS)
    assert {name.partition(",")[0] for name in ESTIMATORS} <= set(LOOKS)
    assert look_of("AIS", hollow=True) != look_of("AIS")


def test_logo_and_players_have_the_colours_of_the_figures():
    allowed = {LOOKS[name]["color"] for name in ("AIS", "RAISE")}
    for name in ("idea", "logo", "favicon"):
        text = (companion_folder() / "book" / "_static" / f"{name}.svg").read_text()
        vivid = {c for c in re.findall("#[0-9A-Fa-f]{6}", text) if len({*rgb(c)}) > 1}
        assert vivid == allowed, name
        [dashed] = re.findall(r'stroke="(#\w{6})"[^>]*stroke-dasharray', text)
        assert dashed == LOOKS["RAISE"]["color"], name
    for kind, names in {
        "brackets": ["AIS", "RAISE"],
        "ladders": ["parallel tempering"],
        "particles": ["AIS"],
    }.items():
        # The opening picture stands in an address, where # is written as %23.
        card = unquote(KINDS[kind]()._repr_html_())
        assert all(f'"{LOOKS[name]["color"]}"' in card for name in names), kind


def test_a_bracket_has_the_looks_of_its_estimators():
    row = {"model": "m", "ais": -1.0, "raise": -2.0, "raise_error": 0.1, "exact": -1.5}
    rows = [
        row | {"start": start, "steps": steps, "ais_interval": [-1.1, top]}
        for start in ("uniform", "base rates")
        for steps, top in ((10, math.inf), (100, -0.9))
    ]
    figure = plt.figure()
    draw_models(figure, rows, 10)
    [axes] = [panel for panel in figure.axes if panel.lines]
    shown = {str(line.get_label()): line for line in axes.lines}
    for name, start in itertools.product(("AIS", "RAISE"), ("uniform", "base rates")):
        line = shown[f"{name}, {start}"]
        look = look_of(name, hollow=start == "uniform")
        assert (line.get_color(), line.get_marker()) == (look["color"], look["marker"])
        assert (line.get_markerfacecolor() == "white") is (start == "uniform")
    # an arrow for each interval of AIS without an upper end
    assert len(axes.texts) == 2
    plt.close(figure)
