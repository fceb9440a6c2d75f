"""The text of the players; tests/browser/test_players.py sees how they behave in a browser."""

import base64
import html
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from players import (
    KINDS,
    NASTY,
    SHAPE,
    data_of,
    some_bracket,
    some_frames,
    some_particles,
    some_tempering,
    some_visits,
    stills_of,
)

from boltzmann_companion.players.frames import frame_player

EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


# ---- what holds for all of them


@EACH_KIND
def test_same_contents_give_the_same_text_and_others_another_key(make):
    assert make()._repr_html_() == make()._repr_html_()

    def key(shown):
        (in_page,) = set(re.findall(r'(?:data-player=|startPlayers\()"(\w+)"', shown._repr_html_()))
        return in_page

    assert len({key(make()), key(make(5)), key(make(description="Others"))}) == 3


@EACH_KIND
def test_nothing_is_asked_of_another_host(make):
    elsewhere = r'https?:|url\(|@import|fetch|(src|href)="(?!data:)|<link'
    assert not re.search(elsewhere, make()._repr_html_())


@EACH_KIND
def test_words_cannot_break_out_of_the_page(make):
    text = make()._repr_html_()
    assert text.count("</script>") == text.count("<script") in (3, 4)
    assert "<b " not in text
    assert "<2>" not in text
    assert "<0.5>" not in text


@EACH_KIND
def test_text_without_a_browser(make):
    ends = {
        "frames": "(13 frames, from beta </script> = 0.0 to beta </script> = 1.2)",
        "chains": "(lazy, turning & </script>; 12 steps)",
        "traces": "(2 runs, 12 updates)",
        "ladders": "(3 chains, 12 steps)",
        "particles": "(walk <2>, stand; 2 particles, 13 moments)",
        "brackets": "(K from 1 to 4096)",
    }
    assert repr(make()) in [f"{NASTY} {end}" for end in ends.values()]


@EACH_KIND
def test_before_a_run_a_notebook_says_in_words_what_a_player_holds(make):
    """As JupyterLab shows an output that it does not trust.

    It drops these elements, and of all others it keeps the words.
    """
    text = re.sub(r"<(style|script)\b.*?</\1>", "", make()._repr_html_(), flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", "", text)).split("\n")
    first, *caption = filter(None, words)
    assert first == f"{make()!r}. Run this cell to see it."
    # an image of the opening moment, its caption, and nothing to press
    assert len(caption) == 1
    assert "<img" in text
    assert not re.search("<(svg|button|input|select)", text)


@EACH_KIND
def test_pictures_before_a_run_are_whole(make):
    for drawing in stills_of(make()):
        root = ElementTree.fromstring(drawing)
        assert root.get("aria-label")
        assert root.get("viewBox")


# ---- frames


def grey_values(picture):
    image = Image.open(io.BytesIO(picture))
    assert image.mode == "L"
    return torch.from_numpy(np.array(image)).long()


def test_pictures_are_the_images_in_a_grid():
    frame = torch.rand(5, 64, generator=torch.Generator().manual_seed(1))
    (picture,) = data_of(frame_player([frame], ["one"], "Noise", SHAPE, columns=3))["sources"]
    grey = grey_values(base64.b64decode(picture))
    # 8 screen pixels for a pixel, and a line around every image
    assert grey.shape == (2 * 65 + 1, 3 * 65 + 1)
    expected = (255 * (1 - frame)).round().view(5, 8, 8)
    for index in range(5):
        top = index // 3 * 65 + 1
        left = index % 3 * 65 + 1
        tile = grey[top : top + 64, left : left + 64]
        assert torch.equal(tile[::8, ::8], expected[index].long())
        assert torch.equal(tile, tile[::8, ::8].repeat_interleave(8, 0).repeat_interleave(8, 1))
    assert grey[::65].unique().tolist() == [204]
    assert grey[66:130, 131:195].unique().tolist() == [255]  # there is no sixth image


def test_every_frame_is_in_the_page_in_order():
    data = data_of(some_frames(4))
    first_rows = [
        grey_values(base64.b64decode(source))[1:65:8, 1:65:8] for source in data["sources"]
    ]
    # in frame k pixel k is black
    assert [row.flatten().argmin().item() for row in first_rows] == [0, 1, 2, 3]
    assert data["captions"] == [f"beta </script> = {k / 10}" for k in range(4)]


# ---- parallel tempering


def test_page_holds_parallel_tempering():
    shown = some_tempering(7)
    data = data_of(shown)
    assert data["rungs"] == some_visits(7)
    assert data["betas"] == [0.0, 0.25, 1.0]
    # Counted by hand: chain 0 is at 0 1 2 0 1 2 0 1, chain 1 at 1 2 0 1 2 0 1 2, chain 2 at 2 0 1 2
    # 0 1 2 0.
    trips = [[0, 0, 0]] * 3 + [[1, 0, 0]] + [[1, 0, 1]] + [[1, 1, 1]] + [[2, 1, 1]] + [[2, 1, 2]]
    assert data["trips"] == trips
    assert stills_of(shown)[0].count("<circle") == 3


# ---- particles


def test_page_holds_the_particles():
    run = data_of(some_particles(4))["runs"][0]
    assert run["betas"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert run["places"] == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    # relative to the larger of the two
    assert run["weights"][0] == [1.0, 1.0]
    assert run["weights"][4] == [1.0, pytest.approx(np.exp(-0.4), abs=1e-4)]


# ---- brackets


def test_page_holds_the_bracket():
    data = data_of(some_bracket(2))
    assert data["captions"][1] == "K = 2: AIS −4.50, RAISE −6.00, gap 1.50 nats; exactly −5.00"
    above, below = data["places"]
    # on both sides of their K
    assert [x for x, _ in above] == [61.0, 259.0, 457.0]
    assert [x for x, _ in below] == [67.0, 265.0, 463.0]
    # the highest value at the top, the lowest at the bottom, the gap in proportion
    assert [y for _, y in above] == [48.0, 84.7, 103.0]
    assert [y for _, y in below] == [268.0, 194.7, 158.0]
    # from the lower end to the upper one, which is at the top where it is infinite
    assert data["errors"][0] == ["M61.0 121.3V48.0", "M259.0 121.3V48.0", "M457.0 121.3V84.7"]
    assert data["errors"][1][0] == "M67.0 268.0V268.0"
