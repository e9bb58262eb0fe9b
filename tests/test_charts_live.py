"""The live curves of a task with a shipped run, and the schedules beside them."""

import json
import re

import pytest

from core.charts import cached_spec, live_curves, palette, schedule
from core.charts.records import live_frame
from core.charts.schedule import other_lines, schedule_frame

vl_convert = pytest.importorskip("vl_convert")
NAMED = (("current", "this run"), ("part", "its tokens"), ("shipped", "shipped run"))
OWN = {"ends": (0.0, 3.0), "level": (2.5, "all alike"), "named": NAMED}
NOW = {"now": [(1, 2.8), (50, 1.0)]}
KEPT = {"a": [(1, 2.0), (40, 1.5)], "b": [(1, 2.2), (40, 1.7)]}
OTHERS = {
    "shipped": {"shipped run": [(1, 2.9), (90, 0.1)]},
    "part": {"tokens": [(1, 0.5), (50, 0.9)]},
}


def draw(chart, frame, **options) -> str:
    rows = json.loads(frame.to_json(orient="records"))
    spec = cached_spec(chart, frame, **options)
    return vl_convert.vegalite_to_svg(
        json.dumps(spec | {"width": 300, "data": {"values": rows}})
    )


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def lines(svg: str) -> set[tuple[str, str]]:
    """Return colour and dash of each curve that is seen; a solid one has 1,0."""
    paths = re.findall(r'<path[^>]*roledescription="line mark"[^>]*>', svg)
    found = set()
    for path in (path for path in paths if re.search(r' d="M[^"]*L', path)):
        (colour,) = re.findall(r'stroke="([^"]+)"', path)
        dash = re.findall(r'dasharray="([^"]+)"', path)
        found.add((colour, dash[0] if dash else "1,0"))
    return found


@pytest.mark.parametrize("kind", ["loss", "accuracy"])
def test_the_names_above_are_there_whatever_the_frame_holds(kind):
    for frame in (live_frame({"now": []}), live_frame(NOW, kept=KEPT, others=OTHERS)):
        shown = words(draw(live_curves, frame, kind=kind, **OWN))
        for _, name in NAMED:
            assert shown.count(name) == 1


def test_the_shipped_run_keeps_its_look_when_others_are_kept():
    colours = palette(False)
    shipped = (colours.kept, "1,0")
    for kept in ({}, KEPT):
        frame = live_frame(NOW, kept=kept, others=OTHERS)
        seen = lines(draw(live_curves, frame, **OWN))
        assert shipped in seen
        assert (colours.right, "1,0") in seen
        assert (colours.right, "2,2") in seen
        assert len(seen) == 3 + len(kept)


def test_a_kept_run_has_one_dash_whether_it_was_tested_or_not():
    def dash_of_b(kept):
        seen = lines(draw(live_curves, live_frame(NOW, kept=kept), **OWN))
        return {look for look in seen if look[0] == palette(False).kept}

    both, b_alone = dash_of_b(KEPT), dash_of_b({"a": [], "b": KEPT["b"]})
    assert len(both) == 2
    assert len(b_alone) == 1
    first = dash_of_b({"b": KEPT["b"]})
    assert b_alone == both - first


def test_names_of_kept_runs_stand_where_no_curve_of_the_task_goes():
    frame = live_frame(NOW, kept=KEPT)
    loss = words(draw(live_curves, frame, **OWN))
    right = words(draw(live_curves, frame, kind="accuracy", **OWN))
    assert set(KEPT) <= set(loss)
    assert not set(KEPT) & set(right)


@pytest.mark.parametrize("options", [{}, OWN])
def test_words_are_drawn_after_the_line_of_the_step_looked_at(options):
    spec = live_curves(live_frame(NOW, chosen=50), **options).to_dict()
    chosen = [
        place
        for place, layer in enumerate(spec["layer"])
        if "=== 'chosen'" in json.dumps(layer.get("transform", ""))
    ]
    texts = [
        place
        for place, layer in enumerate(spec["layer"])
        if layer["mark"].get("text") in ("all alike", "always p = 1/2: ln 2 = 0.693")
    ]
    assert chosen
    assert texts
    assert max(chosen) < min(texts)


def test_the_y_axis_says_what_is_counted():
    shown = draw(live_curves, live_frame(NOW), kind="accuracy", y_title="right (%)")
    assert "right (%)" in words(shown)
    assert "test accuracy (%)" not in words(shown)


def test_the_grey_schedules_are_named_by_the_dashes_they_have():
    rates = {name: [(1, 0.1), (9, 0.1 * rank)] for rank, name in enumerate("xyz")}
    said = other_lines(tuple(rates), "y")
    assert said == "Grey: dotted, x; dash-dotted, z."
    frame = schedule_frame(rates, "y")
    svg = draw(schedule, frame, series=tuple(rates), max_steps=9)
    grey, blue = palette(False).kept, palette(False).right
    assert lines(svg) == {(grey, "2,2"), (grey, "8,3,2,3"), (blue, "1,0")}
    assert {"used", "others"} <= set(words(svg))
