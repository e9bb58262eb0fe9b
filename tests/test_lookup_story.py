"""What is drawn and said of a lookup, from its numbers."""

import pytest
import torch

from core.arithmetic import Cell, shown_number
from core.charts.heatmap import MATRIX_KINDS
from core.charts.tidy import matrix_frame
from core.lookup import (
    STAGES,
    VECTORS,
    Edit,
    hard_lookup,
    influence_of_keys,
    look_up,
    movement,
    temperature_sweep,
)
from core.lookup_panels import (
    edit_panels,
    hard_panels,
    influence_panels,
    shape_text,
    stage_panels,
)
from core.lookup_story import (
    MOVED,
    edit_sentence,
    hard_sentence,
    index_sentence,
    influence_sentence,
    moved_sentence,
    stage_formula,
    stage_sentence,
    stage_words,
    sums_sentence,
    sweep_sentence,
    value_sentence,
    what_moves,
)

WORDS = ["the", "dog", "left", "the", "street"]
READERS = ["it", "was", "it"]
CELL = Cell(query=2, key=4, dimension=1)


def cross(**options):
    return look_up(WORDS, queries=READERS, d_model=7, d_k=2, seed=0, **options)


def framed(panel):
    return [tuple(place) for place in panel.marked.nonzero().tolist()]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("vector", VECTORS)
def test_every_panel_is_a_matrix_with_a_label_for_each_row_and_column(stage, vector):
    for panel in stage_panels(cross(), stage, CELL, vector):
        assert panel.matrix.shape == (len(panel.rows), len(panel.columns))
        assert panel.marked.shape == panel.matrix.shape
        assert shape_text(panel.matrix) in panel.title
        frame = matrix_frame(
            panel.matrix, kind=panel.kind, row_labels=panel.rows,
            column_labels=panel.columns, marked=panel.marked,
        )  # fmt: skip
        assert len(frame) == panel.matrix.numel()
        assert int(frame["marked"].sum()) == len(framed(panel))


def test_maps_have_queries_down_and_keys_across_and_say_that_they_are_one_head():
    seen = cross()
    maps = [
        panel
        for stage in STAGES
        for panel in stage_panels(seen, stage, CELL, "q")
        if panel.kind in ("score", "weight")
    ]
    assert len(maps) == 7
    for panel in maps:
        assert panel.rows == ["it·0", "was", "it·2"]
        assert panel.columns == ["the·0", "dog", "left", "the·3", "street"]
        assert panel.title.endswith("one head")
        assert MATRIX_KINDS[panel.kind].row_title == "query (reads)"
        assert MATRIX_KINDS[panel.kind].column_title == "key (is read)"


def test_the_picked_cell_and_what_it_is_made_of_are_framed():
    seen = cross()
    x, w, v = stage_panels(seen, "project", CELL, "v")
    assert framed(x) == [(4, m) for m in range(7)]
    assert framed(w) == [(m, 1) for m in range(7)]
    assert framed(v) == [(4, 1)]
    q, k, scores = stage_panels(seen, "score", CELL, "q")
    assert framed(q) == [(2, 0), (2, 1)]
    assert framed(k) == [(4, 0), (4, 1)]
    assert framed(scores) == [(2, 4)]
    scaled, weights = stage_panels(seen, "softmax", CELL, "q")
    assert framed(scaled) == [(2, j) for j in range(5)]
    assert framed(weights) == [(2, 4)]
    weights, values, weighted = stage_panels(seen, "weigh", CELL, "q")
    assert [*map(framed, (weights, values, weighted))] == [[(2, 4)], [(4, 1)], [(4, 1)]]
    weights, weighted, output = stage_panels(seen, "sum", CELL, "q")
    assert framed(weights) == [(2, j) for j in range(5)]
    assert framed(weighted) == [(j, 1) for j in range(5)]
    assert framed(output) == [(2, 1)]


def test_each_stage_draws_the_tensors_of_the_lookup():
    seen, cell = cross(), Cell(query=1, key=4, dimension=1)
    drawn = {
        stage: [panel.matrix for panel in stage_panels(seen, stage, cell, "k")]
        for stage in STAGES
    }
    expected = {
        "project": [seen.x_key, seen.w_k, seen.k],
        "score": [seen.q, seen.k, seen.scores],
        "scale": [seen.scores, seen.scaled],
        "softmax": [seen.scaled, seen.attn_weights],
        "weigh": [seen.attn_weights, seen.v, seen.weighted[1]],
        "sum": [seen.attn_weights, seen.weighted[1], seen.output],
    }
    for stage in STAGES:
        pairs = zip(drawn[stage], expected[stage], strict=True)
        assert all(torch.equal(one, other) for one, other in pairs), stage


def test_query_key_and_value_have_the_colour_of_their_role():
    seen = cross()
    roles = {
        vector: stage_panels(seen, "project", CELL, vector)[2].role
        for vector in VECTORS
    }
    assert roles == {"q": "query", "k": "key", "v": "value"}
    assert [panel.role for panel in stage_panels(seen, "score", CELL, "q")] == [
        "query", "key", "",
    ]  # fmt: skip


def test_the_edited_number_is_framed_beside_what_it_moved():
    edit = Edit("k", 3, 1, -2.0)
    before, after = cross(), cross(edit=edit)
    moved = movement(before, after)
    vectors, weights, outputs = edit_panels(after, moved, edit)
    assert framed(vectors) == [(3, 1)]
    assert vectors.matrix[3, 1] == -2
    assert torch.equal(weights.matrix, moved.weights)
    assert torch.equal(outputs.matrix, moved.outputs)


def test_the_hard_lookup_stands_above_the_soft_one():
    seen = cross()
    hard = hard_lookup(seen.scores)
    scores, weights, returned = hard_panels(seen, hard, 1)
    assert torch.equal(scores.matrix, seen.scores[1:2])
    assert list(scores.rows) == ["was"]
    assert list(weights.rows) == list(returned.rows) == ["hard", "soft"]
    assert torch.equal(weights.matrix[1], seen.attn_weights[1])
    assert weights.matrix[0].max() == 1
    (best,) = hard.best[1]
    assert torch.equal(returned.matrix[0], seen.v[best])
    assert torch.equal(returned.matrix[1], seen.output[1])


def test_the_formula_of_a_stage_carries_its_shapes():
    seen = cross()
    assert r"(3, 2) = \, (3, 7) \, (7, 2)" in stage_formula(seen, "project", "q")
    assert r"(5, 2) = \, (5, 7) \, (7, 2)" in stage_formula(seen, "project", "v")
    assert r"(3, 5) = \, (3, 2) \, (2, 5)" in stage_formula(seen, "score", "q")
    assert "(3, 5, 2)" in stage_formula(seen, "weigh", "q")
    assert r"(3, 2) = \, (3, 5) \, (5, 2)" in stage_formula(seen, "sum", "q")


def test_rows_sum_to_1_and_the_sums_of_the_columns_are_told():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.7, 0.1, 0.2]])
    assert sums_sentence(weights) == (
        "every row sums to 1 over the keys; columns need not, here from 0.35 to 1.2"
    )
    assert sums_sentence(torch.full((2, 4), 0.25)).endswith("here all 0.5")


def test_equal_words_are_said_to_be_equal_and_no_others():
    seen = cross()
    told = stage_sentence(seen, "project", CELL, "k")
    assert '"the·0" and "the·3" are one word' in told
    assert "turns its 7 numbers into 2, its key" in told
    alone = look_up(["a", "b"], d_model=7, d_k=2, seed=0)
    assert "one word" not in stage_sentence(alone, "project", Cell(0, 0, 0), "q")


def test_scores_scaling_and_shares_are_told_with_their_numbers():
    seen = cross()
    low, high = float(seen.scores.min()), float(seen.scores.max())
    told = {stage: stage_sentence(seen, stage, CELL, "q") for stage in STAGES}
    shown = [shown_number(end) for end in (low, high)]
    assert told["score"].startswith(
        f"scores from {shown[0]} to {shown[1]}, before scal"
    )
    row, key = divmod(int(seen.scores.argmax()), 5)
    pair = f'query "{READERS[row]}" and key "{seen.key_labels[key]}"'
    assert told["score"].endswith(f"the highest is of {pair}")
    assert "mask" not in " ".join(told.values())
    largest = [f"{float(x.abs().max()):.3f}" for x in (seen.scores, seen.scaled)]
    assert told["scale"] == (
        f"divided by √2, the largest size of a score falls from {largest[0]} to "
        f"{largest[1]}"
    )
    share = float(seen.attn_weights[2].max())
    assert f'query "it·2" gives {100 * share:.0f} %' in told["weigh"]


def test_the_sentence_of_the_sum_holds_the_output():
    seen = cross()
    told = stage_sentence(seen, "sum", CELL, "q")
    numbers = ", ".join(shown_number(x) for x in seen.output[2].tolist())
    assert f'the output of "it·2" is ({numbers})' in told


@pytest.mark.parametrize(
    ("which", "found"),
    [("q", ("one", "one")), ("k", ("every", "every")), ("v", ("none", "every"))],
)
def test_what_an_edit_moves_is_told_by_what_it_moved(which, found):
    edit = Edit(which, 1, 0, 3.0)
    before = cross()
    moved = movement(before, cross(edit=edit))
    assert what_moves(moved) == found
    assert found in MOVED
    old = float(getattr(before, which)[1, 0])
    told = edit_sentence(before, edit, moved)
    assert f"from {shown_number(old)} to 3" in told
    counts = {"one": "1", "every": "3", "none": "0"}
    weights, outputs = (counts[reach] for reach in found)
    assert f"{weights} of 3 rows of weights" in told
    assert f"{outputs} of 3 outputs" in told
    assert ('moves, that of "was" (2 exactly 0)' in told) == (which == "q")
    assert ("all exactly 0" in told) == (which == "v")
    assert moved_sentence(moved) == (
        f"{weights} of 3 rows of weights and {outputs} of 3 outputs moved"
    )


def test_some_rows_that_move_are_neither_one_nor_every():
    before = cross()
    moved = movement(before, cross(edit=Edit("k", 1, 0, 3.0)))
    rows = torch.tensor([0.0, 1.0, 2.0])
    partly = moved._replace(weight_rows=rows, output_rows=rows)
    assert what_moves(partly) == ("some", "some")


def test_a_value_reaches_an_output_by_its_weight():
    edit = Edit("v", 4, 0, 2.0)
    before = cross()
    told = value_sentence(before, edit, movement(before, cross(edit=edit)))
    reader = int(before.attn_weights[:, 4].argmax())
    share = float(before.attn_weights[reader, 4])
    change = 2.0 - float(before.v[4, 0])
    assert before.query_labels[reader] in told
    numbers = [shown_number(x) for x in (share, change, share * change)]
    assert f"{numbers[0]} · {numbers[1]} = {numbers[2]}" in told
    falls = Edit("v", 4, 0, -2.0)
    told = value_sentence(before, falls, movement(before, cross(edit=falls)))
    assert "· (−" in told


def test_a_hard_lookup_is_told_with_its_ties():
    tied = look_up(["wet", "wet", "street"], queries=["it"], d_model=4, d_k=3, seed=5)
    hard = hard_lookup(tied.scores)
    assert hard.best == [(0, 1)]
    told = hard_sentence(tied, hard, 0)
    assert 'finds a tie of "wet·0" and "wet·1" and returns the mean' in told
    assert "the soft one gives each" in told
    single = hard_sentence(cross(), hard_lookup(cross().scores), 0)
    assert "alone; at temperature 1 the soft one gives it" in single


@pytest.mark.parametrize("temperature", [0.5, 1.0, 7.0])
def test_a_hard_lookup_is_told_with_the_share_and_distance_of_the_soft_one(temperature):
    seen = cross(temperature=temperature)
    hard = hard_lookup(seen.scores)
    for query in range(3):
        (best,) = hard.best[query]
        apart = seen.attn_weights[query] @ seen.v - seen.v[best]
        length = sum(x**2 for x in apart.tolist()) ** 0.5
        share = float(seen.attn_weights[query, best])
        told = hard_sentence(seen, hard, query)
        assert f"gives it {100 * share:.0f} %" in told
        assert told.endswith(f"its output lies {shown_number(length)} away")


def test_a_tie_of_many_is_counted():
    seen = look_up(["wet"] * 9, queries=["it"], d_model=4, d_k=3, seed=5)
    hard = hard_lookup(seen.scores)
    assert "finds a tie of 9 keys and returns the mean" in hard_sentence(seen, hard, 0)
    assert sweep_sentence(temperature_sweep(seen, 0), 9).startswith(
        "from temperature 0.01 to 100 the largest weight stays at 11 %"
    )
    cell = Cell(0, 0, 0)
    assert stage_sentence(seen, "weigh", cell, "q") == (
        'query "it" gives the same 11 % to each of 9 keys: '
        "the same share of every value"
    )
    assert stage_sentence(seen, "score", cell, "q").startswith("all 9 scores are ")


def test_of_one_key_nothing_is_told_that_needs_two():
    seen = look_up(["wet"], queries=["it"], d_model=4, d_k=1, seed=5)
    cell = Cell(0, 0, 0)
    told = {stage: stage_sentence(seen, stage, cell, "q") for stage in STAGES}
    assert told["score"].startswith("the score is ")
    assert "stays at" in told["scale"]
    assert told["weigh"] == (
        'query "it" gives all its weight to "wet", the only key: all of its value'
    )
    assert "necessity" not in told["sum"]
    swept = sweep_sentence(temperature_sweep(seen, 0), 1)
    assert swept.endswith("stays at 100 %: there is one key")


def test_each_stage_says_what_its_names_mean_and_which_tokens_its_indices():
    seen = cross()
    words = [stage_words(seen, stage) for stage in STAGES]
    assert len(set(words)) == 6
    assert "one (5, 2) matrix for each query" in words[4]
    told = {stage: index_sentence(seen, stage, CELL, "k") for stage in STAGES}
    both = 'indices count from 0: query "it·2" is 2 and key "street" is 4'
    assert told["score"] == told["softmax"] == told["weigh"] == both
    assert told["project"] == 'indices count from 0: token "street" is 4'
    assert told["sum"] == 'indices count from 0: query "it·2" is 2'


def test_an_edit_to_the_same_number_says_so():
    before = cross()
    same = Edit("k", 1, 0, float(before.k[1, 0]))
    told = edit_sentence(before, same, movement(before, cross(edit=same)))
    assert "the same number: 0 of 3 rows of weights move" in told


def test_of_many_queries_only_the_picked_row_is_drawn():
    words = [f"w{number}" for number in range(12)]
    seen = look_up(words, d_model=3, d_k=2, seed=0)
    cell = Cell(query=7, key=4, dimension=1)
    _, weights = stage_panels(seen, "softmax", cell, "q")
    assert torch.equal(weights.matrix, seen.attn_weights[7:8])
    assert list(weights.rows) == ["w7"]
    assert weights.title == 'Weights (12, 12), one head: "w7"'
    assert framed(weights) == [(0, 4)]
    q, k, _ = stage_panels(seen, "score", cell, "q")
    assert (len(q.rows), len(k.rows)) == (1, 12)
    _, v, weighted = stage_panels(seen, "weigh", cell, "q")
    assert (len(v.rows), len(weighted.rows)) == (12, 12)


def test_both_ends_of_the_temperature_are_told():
    told = sweep_sentence(temperature_sweep(cross(), 0), 5)
    assert told.startswith("from temperature 0.01 to 100 the largest weight falls")
    assert "an even share of 5 keys is 20 %" in told


def test_unknown_names_are_refused():
    for refuse in (stage_formula, lambda *a: stage_sentence(a[0], a[1], CELL, a[2])):
        with pytest.raises(ValueError, match="stage must be one of"):
            refuse(cross(), "guess", "q")
    with pytest.raises(ValueError, match="vector must be one of"):
        stage_panels(cross(), "project", CELL, "x")


SENTENCE = [*WORDS, "as", "it", "was", "wet"]


def test_weight_and_influence_are_told_apart_where_they_disagree():
    seen = look_up(SENTENCE, d_model=4, d_k=3, seed=2)
    weights, moves = seen.attn_weights[6], influence_of_keys(seen, 6)
    heavy, missed = int(weights.argmax()), int(moves.argmax())
    assert (seen.key_labels[heavy], seen.key_labels[missed]) == ("dog", "wet")
    assert weights[heavy] > 2 * weights[missed]
    assert moves[missed] > 1.5 * moves[heavy]
    assert influence_sentence(seen, 6) == (
        f'query "it" gives its largest weight, {100 * weights[heavy]:.0f} %, to "dog", '
        f'yet hiding "wet" ({100 * weights[missed]:.0f} %) moves the output further, '
        f"by {shown_number(float(moves[missed]))} against "
        f"{shown_number(float(moves[heavy]))}: weight is not influence"
    )


def test_where_they_agree_the_sentence_claims_no_difference():
    seen = look_up(SENTENCE, d_model=4, d_k=3, seed=0)
    moves = influence_of_keys(seen, 6)
    assert int(moves.argmax()) == int(seen.attn_weights[6].argmax())
    assert influence_sentence(seen, 6).endswith(
        '%, to "street"; hiding that key moves the output most, by '
        f"{shown_number(float(moves.max()))}"
    )


def test_the_largest_of_both_is_framed():
    seen = look_up(SENTENCE, d_model=4, d_k=3, seed=2)
    weights, moves = influence_panels(seen, 6)
    assert torch.equal(moves.matrix[0], influence_of_keys(seen, 6))
    framed = [
        panel.marked[0].nonzero().flatten().tolist() for panel in (weights, moves)
    ]
    assert framed == [[1], [8]]
    for panel in (weights, moves):
        frame = matrix_frame(
            panel.matrix,
            kind=panel.kind,
            row_labels=panel.rows,
            column_labels=panel.columns,
        )
        assert MATRIX_KINDS[panel.kind].value in frame.columns
