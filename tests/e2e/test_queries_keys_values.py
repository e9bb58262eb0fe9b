"""The lookup page in a real browser: its LaTeX renders, its numbers fit their cells."""

import pytest
from playwright.sync_api import Page, expect

from pages._ui import lookup_view
from tests.e2e.tabs import open_page, quiet

LONG = "+".join(["antidisestablishment", "$x$", "%5Cfrac", "%25%7B%7D"] * 4)

# How many formulas are wider than the place they stand in.
_BEYOND = """all => all.filter(one => {
    const place = one.closest("[data-testid=stElementContainer]");
    const width = one.querySelector(".katex-html").getBoundingClientRect().width;
    return width > place.getBoundingClientRect().width;
}).length"""


def open_stage(tab: Page, server, stage: str, query: str = "") -> None:
    shown = lookup_view.STAGES[stage].replace(" ", "+")
    open_page(tab, server, "queries_keys_values", f"qkv_stage={shown}&{query}")
    quiet(tab)


def assert_formulas_stand(tab: Page) -> None:
    formulas = tab.get_by_test_id("stMain").locator(".katex")
    expect(formulas).to_have_count(3)  # of the head, the stage and the cell
    expect(tab.locator(".katex-error")).to_have_count(0)
    assert tab.locator(".katex-display").evaluate_all(_BEYOND) == 0


@pytest.mark.parametrize("query", ["", f"qkv_text={LONG}&qkv_d_model=8&qkv_d_k=8"])
def test_the_latex_of_every_stage_renders_and_is_not_cut(server, tab, query):
    first, *others = lookup_view.STAGES
    open_stage(tab, server, first, query)
    assert_formulas_stand(tab)
    for stage in others:
        tab.get_by_role("button", name="Next").click()
        chosen = tab.get_by_role("radio", name=lookup_view.STAGES[stage])
        expect(chosen).to_be_checked()
        quiet(tab)
        assert_formulas_stand(tab)


@pytest.mark.parametrize(
    "query",
    ["", "qkv_text=dog+street&qkv_source=other+words&qkv_reader=it", "qkv_d_k=1"],
)
def test_no_title_is_cut(server, tab, query):
    for stage in ("score", "scale", "weigh"):
        open_stage(tab, server, stage, query)
        titles = tab.locator("svg .role-title-text text")
        expect(titles).to_have_count(2 if stage == "scale" else 3)
        shown = titles.all_text_contents()
        assert not [title for title in shown if title.endswith("…")]


def test_next_goes_to_the_following_stage_and_the_address_says_so(server, tab):
    open_stage(tab, server, "score")
    tab.get_by_role("button", name="Next").click()
    tab.wait_for_url("**qkv_stage=3+Scale**")
    quiet(tab)
    tab.reload()
    quiet(tab)
    expect(tab.get_by_text("÷ √d_k", exact=False).first).to_be_visible()


def test_a_picked_key_frames_another_cell_and_changes_its_arithmetic(server, tab):
    open_stage(tab, server, "softmax")
    main = tab.get_by_test_id("stMain")
    expect(main.get_by_text('Query "it" gives key "street"').first).to_be_visible()
    tab.get_by_role("combobox", name="Key (is read)").click()
    tab.get_by_role("option", name="dog").click()
    expect(main.get_by_text('Query "it" gives key "dog"').first).to_be_visible()
