"""The player of frames: its pictures, its text, and how it behaves in a browser."""

import base64
import io
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import sync_playwright

from paperlib.reproduction.player import frame_player

SHAPE = (8, 8)


def frames_of(count, images=5):
    """Frames that all differ: in frame k pixel k of every image is black."""
    return [torch.eye(64, dtype=torch.float64)[k].repeat(images, 1) for k in range(count)]


def player(count=3, description="Five images"):
    captions = [f"beta = {k / 10}" for k in range(count)]
    return frame_player(frames_of(count), captions, description, SHAPE, columns=3)


def grey_values(picture):
    image = Image.open(io.BytesIO(picture))
    assert image.mode == "L"
    return torch.from_numpy(np.array(image)).long()


def test_pictures_are_the_images_in_a_grid():
    frame = torch.rand(5, 64, generator=torch.Generator().manual_seed(1))
    (picture,) = frame_player([frame], ["one"], "Noise", SHAPE, columns=3).pictures
    grey = grey_values(picture)
    assert grey.shape == (
        2 * 65 + 1,
        3 * 65 + 1,
    )  # 8 screen pixels for a pixel, a line around every image
    expected = (255 * (1 - frame)).round().view(5, 8, 8)
    for index in range(5):
        top, left = index // 3 * 65 + 1, index % 3 * 65 + 1
        tile = grey[top : top + 64, left : left + 64]
        assert torch.equal(tile[::8, ::8], expected[index].long())
        assert torch.equal(tile, tile[::8, ::8].repeat_interleave(8, 0).repeat_interleave(8, 1))
    assert grey[::65].unique().tolist() == [204]
    assert grey[66:130, 131:195].unique().tolist() == [255]  # there is no sixth image


def test_every_frame_is_in_the_page_once_in_order_and_nothing_is_asked_of_another_host():
    shown = player(4)
    text = shown._repr_html_()
    (sources,) = re.findall(r"const sources = (\[.*?\]), captions", text)
    decoded = [base64.b64decode(source) for source in re.findall(r'"([^"]+)"', sources)]
    assert decoded == list(shown.pictures)
    assert len({bytes(picture) for picture in decoded}) == 4
    assert not re.search(r'https?:|url\(|@import|fetch|(src|href)="(?!data:)', text)


def test_same_frames_give_the_same_text_and_others_another_key():
    assert player()._repr_html_() == player()._repr_html_()

    def key(shown):
        return re.search(r'data-frames="(\w+)"', shown._repr_html_()).group(1)

    assert len({key(player()), key(player(4)), key(player(description="Others"))}) == 3


def test_text_of_the_player_without_a_browser():
    assert repr(player()) == "Five images (3 frames, from beta = 0.0 to beta = 0.2)"


def test_captions_cannot_break_out_of_the_page():
    nasty = '</script><b title="x">&'
    text = frame_player(frames_of(1), [nasty], nasty, SHAPE)._repr_html_()
    assert text.count("</script>") == 1
    assert "<b " not in text


@pytest.mark.parametrize(
    ("frames", "captions", "message"),
    [
        ([], [], "captions: expected one for each of at least one frame"),
        (frames_of(2), ["one"], "captions: .* got 1 for 2 frames"),
        ([torch.zeros(2, 63)], ["one"], r"frames: expected shape \[2, 64\]"),
        ([torch.zeros(2, 64), torch.zeros(3, 64)], ["one", "two"], r"frames: expected shape"),
        ([torch.full((1, 64), 1.5)], ["one"], r"frames: expected values in \[0, 1\]"),
        ([torch.full((1, 64), float("nan"))], ["one"], r"frames: expected values in \[0, 1\]"),
    ],
)
def test_bad_input_is_refused(frames, captions, message):
    with pytest.raises(ValueError, match=message):
        frame_player(frames, captions, "Nothing", SHAPE)


# ---- in a browser


@pytest.fixture
def tab():
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if not executable:
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 900})
        page.set_default_timeout(5_000)
        page.problems = []
        page.on("console", lambda m: m.type == "error" and page.problems.append(m.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda r: r.url[:5] in ("data:", "about") or page.problems.append(r.url))
        yield page
        assert page.problems == []
        browser.close()


def open_page(tab, *players):
    """The players in one page, each in a box of its own."""
    body = "".join(f"<section>{shown._repr_html_()}</section>" for shown in players)
    tab.set_content(f'<!doctype html><html lang="en"><body>{body}</body></html>')
    return [tab.locator("section").nth(number) for number in range(len(players))]


def state(box):
    return box.locator("p").inner_text(), box.locator("img").get_attribute("src")


def source(shown, frame):
    return "data:image/png;base64," + base64.b64encode(shown.pictures[frame]).decode()


def test_keys_step_through_the_frames_of_one_player_only(tab):
    first, second = player(3), player(4, "Others")
    here, there, twin = open_page(tab, first, second, first)
    assert state(here) == ("beta = 0.2", source(first, 2))
    here.locator("input").focus()
    tab.keyboard.press("ArrowLeft")
    assert state(here) == ("beta = 0.1", source(first, 1))
    tab.keyboard.press("Home")
    assert state(here) == ("beta = 0.0", source(first, 0))
    assert here.locator("img").get_attribute("alt") == "Five images: beta = 0.0"
    assert state(there) == ("beta = 0.3", source(second, 3))
    assert state(twin) == ("beta = 0.2", source(first, 2))


def test_nothing_moves_before_play_which_runs_once_to_the_end(tab):
    tab.clock.install()
    shown = player(3)
    (box,) = open_page(tab, shown)
    tab.clock.run_for(5_000)
    assert state(box) == ("beta = 0.2", source(shown, 2))
    button, caption = box.get_by_role("button"), box.locator("p")
    button.press("Enter")
    assert button.inner_text() == "Pause"
    assert caption.get_attribute("aria-live") == "off"
    assert caption.inner_text() == "beta = 0.0"
    tab.clock.run_for(450)
    assert caption.inner_text() == "beta = 0.1"
    button.press("Enter")
    tab.clock.run_for(5_000)
    assert caption.inner_text() == "beta = 0.1"
    button.press("Enter")
    tab.clock.run_for(5_000)
    assert caption.inner_text() == "beta = 0.2"
    assert button.inner_text() == "Play"
    assert caption.get_attribute("aria-live") == "polite"


def test_fits_a_narrow_page_and_is_named_for_screen_readers(tab):
    wide = frame_player([torch.zeros(16, 64)] * 2, ["a", "b"], "Sixteen images", SHAPE, columns=16)
    (box,) = open_page(tab, wide)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    assert box.get_by_role("group", name="Sixteen images").count() == 1
    assert box.get_by_role("slider", name="Frame of: Sixteen images").count() == 1
    assert box.locator("img").get_attribute("alt") == "Sixteen images: b"


def test_without_scripts_the_last_frame_stands_alone(tab):
    shown = player(2)
    tab.set_content(shown._repr_html_().replace("<script>", '<script type="text/plain">'))
    assert tab.locator("img").get_attribute("src") == source(shown, 1)
    assert not tab.get_by_role("button").is_visible()
