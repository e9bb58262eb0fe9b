"""The diagram of two recurrent networks: what stands in it, and what leads where."""

import pytest

from core.charts.diagram import diagram_frame
from core.charts.two_rnns import Y_DOMAIN, two_rnns, x_domain

SOURCE, ANSWER = list("abcde"), ["e", "d", "c", "b", "a", "end"]


def drawn(**options):
    return two_rnns(SOURCE, ANSWER, hidden_size=7, context_size=3, **options)


def test_every_letter_and_every_state_has_a_box_on_the_plane():
    nodes, _ = drawn()
    kinds = [node.kind for node in nodes]
    assert [kinds.count(k) for k in ("tokens", "memory", "feed_forward", "output")] == [
        5, 5, 6, 6,
    ]  # fmt: skip
    left, right = x_domain(SOURCE, ANSWER)
    low, high = Y_DOMAIN
    for node in nodes:
        assert left <= node.x - node.width / 2
        assert node.x + node.width / 2 <= right
        assert low <= node.y - node.height / 2
        assert node.y + node.height / 2 <= high


def test_without_attention_one_line_leads_from_the_last_state_to_the_first():
    nodes, edges = drawn()
    (context,) = (node for node in nodes if node.kind == "attention")
    assert context.label == "context: 3 numbers"
    low, high = context.y - context.height / 2, context.y + context.height / 2
    into = [edge for edge in edges if edge.points[-1][1] == pytest.approx(low)]
    out = [edge for edge in edges if edge.points[0][1] == pytest.approx(high)]
    assert [edge.points[0][0] for edge in into] == [4.0]
    assert [edge.points[-1][0] for edge in out] == [0.0]


def test_with_attention_every_state_leads_in_with_its_weight_beside_it():
    weights = [0.001, 0.2, 0.5, 0.298, 0.001]
    nodes, edges = drawn(step=2, weights=weights)
    (context,) = (node for node in nodes if node.kind == "attention")
    assert context.label == "context of step 2: 3 numbers"
    low, high = context.y - context.height / 2, context.y + context.height / 2
    into = [edge for edge in edges if edge.points[-1][1] == pytest.approx(low)]
    out = [edge for edge in edges if edge.points[0][1] == pytest.approx(high)]
    assert [edge.points[0][0] for edge in into] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [edge.points[-1][0] for edge in out] == [2.0]
    shares = [node.label for node in nodes if "of the context is" in node.words]
    assert shares == ["<.01", ".20", ".50", ".30", "<.01"]


def test_what_joins_the_letter_passes_its_state_by():
    _, edges = drawn(step=2, weights=[0.2] * 5, joins_letter=True)
    nodes, entering = drawn(step=2, weights=[0.2] * 5)
    (changed,) = set(edges) - set(entering)
    states = [node for node in nodes if node.kind == "feed_forward"]
    (letter,) = (node for node in nodes if node.kind == "output" and node.x == 2.0)
    assert changed.points[-1] == (letter.x + letter.width / 2, letter.y)
    (x, low), (same, high) = changed.points[1:3]
    assert x == same
    assert low < states[0].y - states[0].height / 2 < high
    assert all(abs(x - state.x) > state.width / 2 for state in states)


def test_wrong_letters_alone_are_framed():
    nodes, _ = drawn(wrong=[1, 4, 6])  # the answer has no step 6
    frames = [node.x for node in nodes if node.kind == "mark"]
    assert frames == [1.0, 4.0]
    assert len(diagram_frame(*drawn(wrong=[1]))) == len(diagram_frame(*drawn())) + 1
