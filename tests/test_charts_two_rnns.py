"""The diagram of two recurrent networks: what stands in it, and what leads where."""

import pytest

from core.charts.diagram import diagram_frame
from core.charts.two_rnns import Y_DOMAIN, two_rnns, x_domain

LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
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
    asks = [edge for edge in edges if edge.points[-1][1] == pytest.approx(high)]
    assert [edge.points[0][0] for edge in asks] == [1.0]
    assert [edge.points[0][0] for edge in into] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [edge.points[-1][0] for edge in out] == [2.0]
    shares = [node.label for node in nodes if "of the context is" in node.words]
    assert shares == ["<.01", ".20", ".50", ".30", "<.01"]


def test_the_weights_stand_in_the_middle_over_their_states():
    nodes, _ = drawn(step=2, weights=[0.001, 0.2, 1.0, 0.298, 0.0])
    shares = [node for node in nodes if "of the context is" in node.words]
    assert [node.x for node in shares] == [0.0, 1.0, 2.0, 3.0, 4.0]
    # Words begin at the left end of their node, which is as wide as they are.
    assert shares[0].width > shares[1].width > shares[2].width > 0
    assert shares[1].words == "20 % of the context is h₁"


@pytest.mark.parametrize("joins_letter", [False, True])
def test_with_attention_the_decoder_starts_from_the_last_encoder_state(joins_letter):
    _, plain = drawn()
    for source in (SOURCE, ["a"], list("abcdefghijklmnop")):
        answer = [*reversed(source), "end"]
        nodes, edges = two_rnns(
            source,
            answer,
            hidden_size=7,
            context_size=7,
            weights=[1 / len(source)] * len(source),
            joins_letter=joins_letter,
        )
        boxes = [n for n in nodes if n.kind in ("memory", "feed_forward", "attention")]
        (last,) = [n for n in boxes if n.label == f"h{len(source) - 1}".translate(LOW)]
        (first,) = [n for n in boxes if n.label == "s₀"]
        begins = (last.x + last.width / 2, last.y)
        starts = [e for e in edges if e.points[0] == begins]
        (line,) = starts
        x, y = line.points[-1]
        assert y == first.y - first.height / 2
        assert first.x - first.width / 2 < x < first.x
        _, right = x_domain(source, answer)
        assert max(x for x, _ in line.points) <= right
        (context,) = (n for n in boxes if n.kind == "attention")
        assert line.points[1][0] > context.x + context.width / 2
        assert line.points[2][1] > context.y + context.height / 2
    assert all(len(edge.points) == 2 for edge in plain)


@pytest.mark.parametrize(
    ("joins_letter", "step", "asker"),
    [(False, 0, None), (False, 1, 0), (False, 5, 4), (True, 0, 0), (True, 5, 5)],
)
def test_the_state_that_asks_leads_to_the_context(joins_letter, step, asker):
    nodes, edges = drawn(step=step, weights=[0.2] * 5, joins_letter=joins_letter)
    (context,) = (node for node in nodes if node.kind == "attention")
    high = context.y + context.height / 2
    asks = [edge for edge in edges if edge.points[-1][1] == pytest.approx(high)]
    assert [edge.points[0][0] for edge in asks] == ([] if asker is None else [asker])
    (out,) = (edge for edge in edges if edge.points[0][1] == pytest.approx(high))
    for edge in asks:
        assert abs(edge.points[-1][0] - out.points[0][0]) >= 0.4 - 1e-9


def test_what_joins_the_letter_passes_its_state_by():
    _, edges = drawn(step=2, weights=[0.2] * 5, joins_letter=True)
    nodes, entering = drawn(step=2, weights=[0.2] * 5)
    (changed,) = (e for e in set(edges) - set(entering) if len(e.points) == 4)
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
