"""The page on attention maps in a real browser: a run brought over, a film, a GIF."""

import re
from io import BytesIO

from PIL import Image
from playwright.sync_api import Page, expect

from tests.e2e.tabs import heading, open_page, quiet

SMALL = (
    "marker_length=10&marker_width=8&marker_heads=2&marker_samples=250"
    "&marker_steps=63&marker_batch=16"
)
# Counts the frames in which the picture of the film is gone; while the next map is
# read, the browser goes on showing the one before.
WATCH = """() => {
    window.film = {shown: new Set(), gone: 0, frames: 0, sizes: new Set()};
    const look = () => {
        const picture = document.querySelector("img[alt^='One map']");
        window.film.frames += 1;
        if (picture && picture.clientHeight > 1) {
            window.film.shown.add(picture.currentSrc);
            window.film.sizes.add(`${picture.clientWidth} x ${picture.clientHeight}`);
        } else window.film.gone += 1;
        requestAnimationFrame(look);
    };
    look();
}"""
FILM = "() => [film.shown.size, film.gone, film.frames, film.sizes.size]"


def press(tab: Page, label: str) -> None:
    tab.get_by_role("button", name=label, exact=True).click()


def test_a_run_trained_on_the_marker_page_is_read_here_and_back_leads_to_it(
    server, tab: Page
):
    open_page(tab, server, "marker_task", SMALL)
    quiet(tab)
    press(tab, "Run")
    link = tab.get_by_role("link", name="Read its attention maps")
    expect(link).to_be_visible(timeout=60_000)
    link.click()
    expect(heading(tab)).to_have_text("Reading attention maps")
    expect(tab.get_by_text(re.compile("^Your run · 63 training steps"))).to_be_visible()
    expect(tab).to_have_url(re.compile("reading_source=yours"))
    tab.go_back()
    expect(heading(tab)).to_have_text("Marker task")
    expect(tab.get_by_text("Step 63 / 63")).to_be_visible()
    link.click()
    expect(heading(tab)).to_have_text("Reading attention maps")
    tab.reload()  # a new session of the same browser
    expect(tab.get_by_text(re.compile("^Your run · 63 training steps"))).to_be_visible()


def test_the_film_moves_without_a_blank_and_can_be_taken_home(
    server, tab: Page, tmp_path
):
    open_page(tab, server, "reading_maps", "reading_view=Maps&reading_speed=fast")
    quiet(tab)
    press(tab, "Play")
    picture = tab.get_by_alt_text(re.compile("^One map"))
    expect(picture).to_be_visible()
    tab.evaluate(WATCH)
    for _ in range(12):  # some of these fall where one map takes the place of another
        with Image.open(BytesIO(picture.screenshot())) as seen:
            assert len(seen.convert("RGB").getcolors(maxcolors=2**20)) > 100
        tab.wait_for_timeout(200)
    shown, gone, frames, sizes = tab.evaluate(FILM)
    assert shown >= 4
    assert frames > 30
    assert (gone, sizes) == (0, 1)
    press(tab, "Pause")
    expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()
    with tab.expect_download() as coming:
        press(tab, "Film as GIF")
    path = tmp_path / "film.gif"
    coming.value.save_as(path)
    with Image.open(path) as gif:
        assert gif.n_frames == 8
        assert gif.info["duration"] == 400
