"""The players in a browser, each in a page of its own.

The page's clock stands still unless a test moves it.
"""

import pytest
import torch
from players import (
    CHAINS,
    KINDS,
    NASTY,
    SHAPE,
    TARGET,
    data_of,
    some_chains,
    some_frames,
    some_tempering,
    some_traces,
)

from boltzmann_companion.players.frames import frame_player
from paperlib.mcmc import total_variation

EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
# Longer than any moment is shown, shorter than two.
MOMENT = 600


@pytest.fixture
def tab(new_tab):
    opened = new_tab(400)
    opened.clock.install(time=0)
    # Otherwise the clock would run on, and a player could move between two calls.
    opened.clock.pause_at(1_000)
    yield opened
    assert opened.problems == []


def open_page(tab, *players, scripts=True):
    """The players in one page, each in a box of its own."""
    body = "".join(f"<section>{shown._repr_html_()}</section>" for shown in players)
    if not scripts:
        body = body.replace("<script>", '<script type="text/plain">')
    tab.set_content(f'<!doctype html><html lang="en"><body>{body}</body></html>')
    return [tab.locator("section").nth(number) for number in range(len(players))]


def caption(box):
    return box.locator("p").inner_text()


# ---- what holds for all of them


@EACH_KIND
def test_nothing_moves_before_play_which_runs_once_to_the_end(tab, make):
    box, other = open_page(tab, make(3), make(3))
    other.locator(".time").press("End")
    opening = caption(box)
    end = caption(other)
    tab.clock.run_for(5_000)
    assert caption(box) == opening
    button = box.get_by_role("button")
    announced = box.locator("p")
    assert announced.get_attribute("aria-live") == "polite"
    button.press("Enter")
    assert button.inner_text() == "Pause"
    assert announced.get_attribute("aria-live") == "off"
    begin = caption(box)
    assert begin not in (opening, end)
    tab.clock.run_for(MOMENT)
    second = caption(box)
    assert second not in (begin, end)
    button.press("Enter")
    assert button.inner_text() == "Play"
    tab.clock.run_for(5_000)
    assert caption(box) == second
    button.press("Enter")
    tab.clock.run_for(5_000)
    assert caption(box) == end
    assert button.inner_text() == "Play"
    assert announced.get_attribute("aria-live") == "polite"


@EACH_KIND
def test_keys_move_one_player_only_and_end_the_play(tab, make):
    here, there, twin = open_page(tab, make(), make(5), make())
    slider = here.locator(".time")
    slider.press("End")
    ends = [caption(box) for box in (here, there, twin)]
    slider.press("ArrowLeft")
    before_last = caption(here)
    assert before_last != ends[0]
    slider.press("Home")
    first = caption(here)
    assert first not in (before_last, ends[0])
    here.get_by_role("button").press("Enter")
    tab.clock.run_for(MOMENT)
    second = caption(here)
    assert second != first
    slider.press("ArrowRight")
    assert here.get_by_role("button").inner_text() == "Play"
    third = caption(here)
    tab.clock.run_for(5_000)
    assert caption(here) == third
    slider.press("End")
    assert caption(here) == ends[0]
    assert [caption(box) for box in (there, twin)] == ends[1:]


@EACH_KIND
def test_script_draws_what_stood_there_without_it(tab, make):
    (box,) = open_page(tab, make(), scripts=False)
    for still in box.locator("img.still").all():
        assert still.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        box_of_still = still.bounding_box()
        assert box_of_still["width"] > 240
        assert box_of_still["height"] > 150
    box.locator("img.still").evaluate_all(
        """all => all.forEach(image => {
            image.outerHTML = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
        })"""
    )

    def drawn():
        return {
            "caption": caption(box),
            "names": box.locator("[role=img], img").evaluate_all(
                "all => all.map(image => image.getAttribute('aria-label') ?? image.alt)"
            ),
            "values": box.locator("input").evaluate_all(
                "all => all.map(input => input.ariaValueText)"
            ),
            "bars": box.locator("path").evaluate_all(
                "all => all.map(path => path.getAttribute('d'))"
            ),
            "pictures": box.locator("img").evaluate_all("all => all.map(image => image.src)"),
            "places": box.locator("rect, circle").evaluate_all(
                """all => all.map(shape => ["y", "height", "cx", "cy"]
                    .map(name => Number(shape.getAttribute(name))))"""
            ),
            "line": box.locator("polyline").evaluate_all(
                "all => all.map(line => line.getAttribute('points').split(/[ ,]/).map(Number))"
            ),
        }

    alone = drawn()
    assert box.get_by_role("button").count() == 0  # nothing to press that would do nothing
    assert box.get_by_role("slider").count() == 0
    (box,) = open_page(tab, make())
    opening = drawn()["values"]
    box.locator(".time").press("ArrowLeft")
    assert drawn() != alone
    box.locator(".time").press("ArrowRight")
    started = drawn()
    assert started["values"] == opening
    for exact in ("caption", "names", "bars", "pictures"):
        assert started[exact] == alone[exact]
    for rounded in ("places", "line"):  # to a tenth
        close(torch.tensor(started[rounded]), torch.tensor(alone[rounded]), atol=0.0501)


@EACH_KIND
def test_fits_a_narrow_page_and_is_named_for_screen_readers(tab, make):
    (box,) = open_page(tab, make())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    assert box.get_by_role("group", name=NASTY, exact=True).count() == 1
    for control in (*box.get_by_role("slider").all(), *box.get_by_role("combobox").all()):
        assert control.evaluate("input => input.ariaLabel || input.labels[0].innerText")


SAID = {
    "frames": ("beta </script> = 0.0", "beta </script> = 1.2"),
    "chains": ("lazy, started in 0, step 0", "lazy, started in 0, step 12"),
    "traces": ("step <0.5>, update 0", "step <0.5>, update 12"),
    "ladders": ("step 0, chain 1", "step 12, chain 1"),
    "particles": ("beta </script> = 0.000", "beta </script> = 1.000"),
    "brackets": ("K = 1", "K = 4,096"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sliders_say_in_words_where_they_are(tab, kind):
    (box,) = open_page(tab, KINDS[kind]())
    slider = box.locator(".time")
    for key, words in zip(("Home", "End"), SAID[kind], strict=True):
        slider.press(key)
        assert slider.get_attribute("aria-valuetext") == words
    if kind == "traces":
        run = box.locator(".choice")
        assert run.get_attribute("aria-valuetext") == "step <0.5>"
        run.press("ArrowRight")
        assert run.get_attribute("aria-valuetext") == "step </script>"


# ---- what each of them draws


def close(actual, expected, atol):
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol, check_dtype=False)


def test_frames_are_shown_one_by_one(tab):
    shown = some_frames(4)
    (box,) = open_page(tab, shown)
    box.locator(".time").press("Home")
    data = data_of(shown)
    for words, source in zip(data["captions"], data["sources"], strict=True):
        assert caption(box) == words
        assert box.locator("img").get_attribute("src") == f"data:image/png;base64,{source}"
        assert box.locator("img").get_attribute("alt") == f"{NASTY}: {words}"
        box.locator(".time").press("ArrowRight")


def test_wide_frames_shrink(tab):
    wide = frame_player([torch.zeros(16, 64)] * 2, ["a", "b"], "Sixteen images", SHAPE, columns=16)
    open_page(tab, wide)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400


def test_chains_are_followed_as_the_library_does(tab):
    (box,) = open_page(tab, some_chains())
    chain, start = box.get_by_role("combobox").all()
    chain.select_option("turning & </script>")
    start.select_option("3")
    box.locator(".time").press("Home")
    named = "turning & </script>, started in 3, step "
    assert caption(box) == f"{named}0: distance from the target 0.8000"
    for _ in range(7):
        box.locator(".time").press("ArrowRight")
    matrices = CHAINS["turning & </script>"]
    expected = matrices.distributions(torch.eye(5, dtype=torch.float64)[3], 7)[7]
    heights = box.locator(".bars rect").evaluate_all(
        "all => all.map(bar => Number(bar.getAttribute('height')))"
    )
    close(torch.tensor(heights) / 180, expected, atol=1e-6)
    distance = total_variation(expected, TARGET).item()
    assert caption(box) == f"{named}7: distance from the target {distance:.4f}"


def test_traces_of_every_run_are_shown(tab):
    shown = some_traces()
    (box,) = open_page(tab, shown)
    (_, run) = data_of(shown)["runs"]
    box.locator(".choice").press("ArrowRight")
    box.locator(".time").press("Home")
    for update in range(13):
        fell = ": it fell" if update == 4 else ""
        bound = f"{run['bounds'][update]:.2f}".replace("-", "−")
        assert caption(box) == f"step </script>, update {update}: bound {bound} nats{fell}"
        heights = box.locator("rect").evaluate_all(
            "all => all.map(bar => Number(bar.getAttribute('height')))"
        )
        close(torch.tensor(heights) / 150, torch.tensor(run["means"][update]), atol=1e-6)
        box.locator(".time").press("ArrowRight")


def test_tempering_follows_the_chain_that_is_chosen(tab):
    (box,) = open_page(tab, some_tempering())
    box.get_by_role("combobox").select_option(label="3")
    box.locator(".time").press("Home")
    # chain 2 of 0, 1, 2 begins on the last temperature and turns around: 2, 0, 1, 2, 0, ...
    for step, (beta, trips) in enumerate(
        [("1.00", 0), ("0.00", 0), ("0.25", 0), ("1.00", 0), ("0.00", 1)]
    ):
        words = f"step {step}, chain 3: beta = {beta}, round trips so far: {trips}"
        assert caption(box) == words
        assert box.get_by_role("img").get_attribute("aria-label") == f"{NASTY}: {words}"
        followed = box.locator("polyline").get_attribute("points").split(" ")
        assert len(followed) == step + 1
        x, y = (
            box.locator("circle").nth(2).evaluate("c => [c.cx.baseVal.value, c.cy.baseVal.value]")
        )
        close(
            torch.tensor([x, y]),
            torch.tensor([float(p) for p in followed[-1].split(",")]),
            atol=0.01,
        )
        box.locator(".time").press("ArrowRight")
