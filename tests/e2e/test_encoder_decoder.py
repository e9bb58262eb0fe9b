"""The encoder-decoder page in a real browser: a run paused, left and found again."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.tabs import open_page, quiet

SMALL = "s2s_view=Train&s2s_task=numbers&s2s_width=16&s2s_layers=1&s2s_batch=16"
PLACES = {  # what is clicked -> where it is, in shares of the picture
    "memory": (0.155, 0.711),
    "self-attention": (0.155, 0.373),
    "feed-forward": (0.155, 0.538),
    "the last +": (0.155, 0.592),
    "source tokens": (0.155, 0.152),
    "last LayerNorm of the encoder": (0.155, 0.65),
    "last LayerNorm of the decoder": (0.637, 0.811),
    "first LayerNorm of the decoder": (0.637, 0.313),
}
STEPS = re.compile(r"^Step [\d,]+ / ")


def button(tab: Page, label: str):
    return tab.get_by_role("button", name=label, exact=True)


def steps_done(tab: Page) -> int:
    line = tab.get_by_text(STEPS).first.inner_text()
    return int(re.match(r"Step ([\d,]+)", line).group(1).replace(",", ""))


def test_a_run_pauses_and_is_found_again_after_leaving(server, fresh_tab: Page):
    tab = fresh_tab
    open_page(tab, server, "encoder_decoder", f"{SMALL}&s2s_steps=5000")
    quiet(tab)
    button(tab, "Run").click()
    expect(tab.get_by_text(re.compile(r"^Step 0 / "))).to_have_count(0, timeout=60_000)
    button(tab, "Pause").click()
    expect(button(tab, "Run")).to_be_visible(timeout=20_000)
    tab.wait_for_timeout(700)  # the step under way
    before = steps_done(tab)
    assert before > 0
    tab.get_by_role("tab", name="Decode").click()
    expect(tab.get_by_text(re.compile(r"^Step 1 of "))).not_to_have_count(0)
    quiet(tab)
    tab.get_by_role("tab", name="Train").click()
    expect(tab.get_by_text(STEPS).first).to_be_visible(timeout=20_000)
    quiet(tab)
    assert steps_done(tab) == before
    expect(tab.get_by_text("the sidebar has others")).to_have_count(0)


def test_a_click_on_a_part_of_the_diagram_opens_it(server, tab: Page):
    open_page(tab, server, "encoder_decoder", "s2s_task=reverse")
    quiet(tab)
    stack = tab.locator("[data-testid=stVegaLiteChart]").first
    drawn = stack.locator("svg.marks")
    drawn.evaluate("it => { it.dataset.same = 'yes'; }")

    def click(label: str, said: str) -> None:
        box = drawn.bounding_box()
        across, down = PLACES[label]
        drawn.click(position={"x": across * box["width"], "y": down * box["height"]})
        expect(menu).to_have_value(said, timeout=20_000)
        quiet(tab)

    menu = tab.get_by_role("combobox", name="Part of the stack")
    click("memory", "Memory")
    expect(tab).to_have_url(re.compile("s2s_part=Memory"))
    click("self-attention", "Encoder: self-attention")
    click("feed-forward", "Encoder: feed-forward")
    click("last LayerNorm of the encoder", "Memory")
    click("source tokens", "Source: tokens")
    click(
        "first LayerNorm of the decoder", "Decoder: LayerNorm of masked self-attention"
    )
    click("the last +", "Encoder: after the layer")
    expect(
        tab.get_by_text("After encoder layer 2: 9 source tokens")
    ).to_be_in_viewport()
    button(tab, "Part before").click()
    expect(menu).to_have_value("Encoder: feed-forward", timeout=20_000)
    quiet(tab)
    click("last LayerNorm of the decoder", "Decoder: last LayerNorm")
    click("self-attention", "Encoder: self-attention")  # the same part again
    expect(tab).to_have_url(re.compile("s2s_part=Encoder%3A[+]self-attention"))
    assert drawn.get_attribute("data-same") == "yes"  # the picture stayed


def test_every_token_of_the_vocabulary_is_named_under_its_column(server, tab: Page):
    open_page(tab, server, "encoder_decoder", "s2s_task=reverse&s2s_part=Softmax")
    quiet(tab)
    part = tab.locator("[data-testid=stVegaLiteChart]").nth(1)
    expect(part.locator(".role-axis-label text").first).to_be_attached(timeout=20_000)
    shown = part.locator(".role-axis-label text").evaluate_all(
        "all => all.filter(it => it.getAttribute('opacity') !== '0')"
        ".map(it => it.textContent)"
    )
    letters = [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    start = shown.index("<pad>")
    assert shown[start : start + 29] == ["<pad>", "<s>", "</s>", *letters]


def test_hostile_text_stays_text(server, tab: Page):
    open_page(tab, server, "encoder_decoder", "s2s_task=reverse")
    quiet(tab)
    box = tab.get_by_label("Source", exact=True)
    box.fill("<b>**a**</b>")
    box.press("Enter")
    alert = tab.get_by_test_id("stAlert")
    expect(alert).to_contain_text("must be one of", timeout=20_000)
    assert alert.locator("b, strong").count() == 0
    box.fill("banana")
    box.press("Enter")
    expect(alert).to_have_count(0, timeout=20_000)
    expect(tab.locator("[data-testid=stVegaLiteChart]")).to_have_count(2)
