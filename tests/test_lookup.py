"""Attention as a lookup: every stage, an edit and what it moves, hard beside soft."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from core.attention import scaled_dot_product_attention
from core.lookup import (
    TEMPERATURES,
    VECTORS,
    Edit,
    hard_lookup,
    influence_of_keys,
    look_up,
    movement,
    telling_edits,
    temperature_sweep,
)
from core.tokens import token_embeddings

WORDS = ["the", "dog", "left", "the", "street", "as", "it", "was", "wet"]
READERS = ["what", "was", "wet"]
SIZES = [(2, 1), (3, 5), (7, 2), (8, 8)]


def cross(d_model=5, d_k=3, seed=1, **options):
    return look_up(
        WORDS, queries=READERS, d_model=d_model, d_k=d_k, seed=seed, **options
    )


@pytest.mark.parametrize(("d_model", "d_k"), SIZES)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 7.0])
def test_the_stages_are_the_attention_of_core_and_of_torch(d_model, d_k, temperature):
    seen = cross(d_model, d_k, temperature=temperature)
    scale = 1 / (math.sqrt(d_k) * temperature)
    ours = scaled_dot_product_attention(seen.q, seen.k, seen.v, scale=scale)
    torchs = F.scaled_dot_product_attention(seen.q, seen.k, seen.v, scale=scale)
    assert_close(seen.output, ours.output, rtol=0, atol=0)
    assert_close(seen.output, torchs)


@pytest.mark.parametrize(("d_model", "d_k"), SIZES)
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_each_stage_follows_from_the_one_before(d_model, d_k, temperature):
    seen = cross(d_model, d_k, temperature=temperature)
    assert_close(seen.q, seen.x_query @ seen.w_q)
    assert_close(seen.k, seen.x_key @ seen.w_k)
    assert_close(seen.v, seen.x_key @ seen.w_v)
    assert_close(seen.scores, torch.einsum("td,sd->ts", seen.q, seen.k))
    assert_close(seen.scaled, seen.scores / math.sqrt(d_k) / temperature)
    exponentials = seen.scaled.exp()
    assert_close(seen.attn_weights, exponentials / exponentials.sum(1, keepdim=True))
    assert_close(seen.weighted, torch.einsum("ts,sd->tsd", seen.attn_weights, seen.v))
    assert_close(seen.output, seen.weighted.sum(dim=1))


def test_every_stage_has_its_shape_and_double_precision():
    seen = cross(5, 2)
    shapes = {
        "x_query": (3, 5), "x_key": (9, 5), "w_q": (5, 2), "w_k": (5, 2),
        "w_v": (5, 2), "q": (3, 2), "k": (9, 2), "v": (9, 2), "scores": (3, 9),
        "scaled": (3, 9), "attn_weights": (3, 9), "weighted": (3, 9, 2),
        "output": (3, 2),
    }  # fmt: skip
    for name, shape in shapes.items():
        matrix = getattr(seen, name)
        assert tuple(matrix.shape) == shape, name
        assert matrix.dtype == torch.float64, name
    assert seen.query_labels == READERS
    assert seen.key_labels[:4] == ["the·0", "dog", "left", "the·3"]


def test_without_a_second_sentence_the_words_read_themselves():
    own = look_up(WORDS, d_model=5, d_k=3, seed=1)
    both = look_up(WORDS, queries=WORDS, d_model=5, d_k=3, seed=1)
    assert_close(own.output, both.output)
    assert own.query_labels == own.key_labels == both.query_labels


def test_the_numbers_to_follow_by_hand_have_one_decimal_and_their_products_two():
    seen = cross(7, 5)
    for name in ("x_query", "x_key", "w_q", "w_k", "w_v"):
        cells = getattr(seen, name).flatten().tolist()
        assert cells == [float(f"{cell:.1f}") for cell in cells], name
        assert all(math.copysign(1, cell) > 0 for cell in cells if cell == 0), name
    for name in VECTORS:
        cells = getattr(seen, name).flatten().tolist()
        assert cells == [float(f"{cell:.2f}") for cell in cells], name


def test_a_word_has_the_vector_it_has_everywhere():
    seen = cross(5, 3, seed=4)
    drawn = token_embeddings(["wet"], 5, 4).double()
    assert (seen.x_query[2] - drawn[0]).abs().max() <= 0.05 + 1e-9
    assert torch.equal(seen.x_query[2], seen.x_key[8])
    assert torch.equal(seen.x_key[0], seen.x_key[3])


def test_one_query_over_two_keys_gives_one_row_of_two_weights_that_sum_to_1():
    seen = look_up(["dog", "street"], queries=["it"], d_model=3, d_k=3, seed=0)
    assert tuple(seen.x_query.shape) == (1, 3)
    assert tuple(seen.x_key.shape) == (2, 3)
    assert tuple(seen.attn_weights.shape) == (1, 2)
    assert_close(seen.attn_weights.sum(dim=1), torch.ones(1).double())
    assert (seen.attn_weights.sum(dim=0) - 1).abs().min() > 0.05  # columns do not


def test_a_single_key_takes_all_the_weight():
    seen = look_up(["dog"], queries=READERS, d_model=2, d_k=2, seed=0)
    assert torch.equal(seen.attn_weights, torch.ones(3, 1).double())
    assert_close(seen.output, seen.v.expand(3, 2))


def test_the_same_seed_gives_the_same_lookup_and_leaves_the_global_generator():
    state = torch.get_rng_state()
    first, again, other = (cross(seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.output, again.output)
    assert not torch.equal(first.w_q, other.w_q)
    assert not torch.equal(first.x_key, other.x_key)


@pytest.mark.parametrize("seed", range(5))
def test_a_new_number_in_a_query_moves_its_row_alone(seed):
    before = cross(seed=seed)
    moved = movement(before, cross(seed=seed, edit=Edit("q", 1, 2, 3.0)))
    assert moved.weight_rows[[0, 2]].tolist() == [0.0, 0.0]
    assert moved.output_rows[[0, 2]].tolist() == [0.0, 0.0]
    assert moved.weight_rows[1] > 0
    assert moved.output_rows[1] > 0


@pytest.mark.parametrize("seed", range(5))
def test_a_new_number_in_a_key_moves_one_column_of_scores_and_every_row(seed):
    before = cross(seed=seed)
    after = cross(seed=seed, edit=Edit("k", 4, 0, 2.5))
    change = after.scores - before.scores
    assert torch.equal(change[:, :4], torch.zeros(3, 4).double())
    assert torch.equal(change[:, 5:], torch.zeros(3, 4).double())
    noticing = before.q[:, 0] != 0  # a query with a 0 there does not notice
    assert noticing.any()
    assert torch.equal(movement(before, after).weight_rows > 0, noticing)


@pytest.mark.parametrize("seed", range(5))
def test_a_new_number_in_a_value_moves_no_weight_and_every_output_by_its_share(seed):
    before = cross(seed=seed)
    moved = movement(before, cross(seed=seed, edit=Edit("v", 4, 1, -2.5)))
    assert torch.equal(moved.weights, torch.zeros(3, 9).double())
    expected = torch.zeros(3, 3).double()
    expected[:, 1] = before.attn_weights[:, 4] * (-2.5 - before.v[4, 1])
    assert_close(moved.outputs, expected)
    assert (moved.output_rows > 0).all()
    assert torch.equal(moved.outputs[:, [0, 2]], torch.zeros(3, 2).double())


def test_how_far_a_row_moved_is_the_length_of_its_change():
    before = cross(seed=2)
    after = cross(seed=2, edit=Edit("k", 4, 0, 2.5))
    moved = movement(before, after)
    for row in range(3):
        for rows, changes in (
            (moved.weight_rows, (after.attn_weights - before.attn_weights)[row]),
            (moved.output_rows, (after.output - before.output)[row]),
        ):
            length = math.sqrt(sum(change**2 for change in changes.tolist()))
            assert float(rows[row]) == pytest.approx(length, rel=1e-12)
            assert length > float(changes.abs().max())


def test_an_edit_that_changes_nothing_moves_nothing():
    before = cross()
    same = Edit("k", 2, 1, float(before.k[2, 1]))
    moved = movement(before, cross(edit=same))
    assert not moved.weights.any()
    assert not moved.outputs.any()


def test_an_edit_reaches_one_of_two_equal_words_alone():
    before = look_up(WORDS, d_model=5, d_k=3, seed=1)
    after = look_up(WORDS, d_model=5, d_k=3, seed=1, edit=Edit("v", 0, 0, 9.0))
    assert after.v[0, 0] == 9
    assert torch.equal(after.v[1:], before.v[1:])
    assert torch.equal(after.k, before.k)


@pytest.mark.parametrize("which", VECTORS)
def test_a_telling_edit_adds_1_where_every_query_notices(which):
    for seed in range(20):
        seen = look_up(WORDS, d_model=4, d_k=3, seed=seed)
        edit = telling_edits(seen, which)[0]
        vectors = getattr(seen, which)
        assert edit.which == which
        assert edit.token == 8
        assert len(set(telling_edits(seen, which))) == vectors.numel()
        assert edit.value == float(vectors[8, edit.dimension]) + 1
        zeros = (seen.q == 0).sum(dim=0)
        assert zeros[edit.dimension] == zeros.min()


def test_a_hard_lookup_puts_all_weight_on_the_best_key():
    scores = torch.tensor([[1.0, 3.0, 2.0], [5.0, -1.0, 0.0]]).double()
    hard = hard_lookup(scores)
    assert hard.best == [(1,), (0,)]
    assert hard.weights.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_a_tie_is_named_and_shared():
    hard = hard_lookup(torch.tensor([[2.0, 1.0, 2.0], [0.0, 0.0, 0.0]]).double())
    assert hard.best == [(0, 2), (0, 1, 2)]
    assert_close(hard.weights[0], torch.tensor([0.5, 0, 0.5]).double())
    assert_close(hard.weights[1], torch.full((3,), 1 / 3).double())
    rounded = torch.tensor(
        [[0.1 + 0.2, 0.3]], dtype=torch.float64
    )  # apart by rounding alone
    assert hard_lookup(rounded).best == [(0, 1)]


@pytest.mark.parametrize("seed", range(6))
def test_a_cold_lookup_is_the_hard_one_and_a_hot_one_the_mean(seed):
    seen = look_up(["wet", "wet", "street", "dog"], d_model=5, d_k=3, seed=seed)
    hard = hard_lookup(1e5 * seen.scores).weights
    for query in range(4):
        swept = temperature_sweep(seen, query, [0.01, 100.0])
        ends = swept.distance.tolist()
        margin = seen.scores[query].unique().diff().min()
        if margin > 0.5:
            assert ends[0] < 1e-6
            assert_close(swept.largest_weight[0], hard[query].max())
        mean = seen.v.mean(dim=0)
        hot = (mean - hard[query] @ seen.v).norm()
        assert abs(ends[1] - float(hot)) < 0.1
        assert abs(float(swept.largest_weight[1]) - 0.25) < 0.02


def test_a_sweep_holds_what_a_lookup_at_that_temperature_gives():
    seen, query = cross(), 1
    swept = temperature_sweep(seen, query)
    assert swept.temperatures.tolist() == list(TEMPERATURES)
    hard = hard_lookup(seen.scores).weights[query] @ seen.v
    for place, temperature in enumerate(TEMPERATURES):
        soft = cross(temperature=temperature)
        assert_close(swept.largest_weight[place], soft.attn_weights[query].max())
        assert_close(swept.distance[place], (soft.output[query] - hard).norm())


def test_the_largest_weight_falls_as_the_temperature_rises():
    for query in range(3):
        swept = temperature_sweep(cross(seed=2), query)
        assert (swept.largest_weight.diff() <= 1e-12).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tokens": []}, r"len\(tokens\) \(0\) must be between 1 and 16"),
        ({"tokens": ["a"] * 17}, r"len\(tokens\) \(17\) must be between 1 and 16"),
        ({"queries": []}, r"len\(queries\) \(0\) must be between 1 and 16"),
        ({"d_model": 0}, r"d_model \(0\) must be between 1 and 64"),
        ({"d_k": 65}, r"d_k \(65\) must be between 1 and 64"),
        ({"seed": -1}, r"seed \(-1\) must be between 0"),
        ({"temperature": 0.0}, r"temperature \(0\) must be between 0.01 and 100"),
        ({"temperature": math.nan}, "temperature must be finite"),
        ({"edit": Edit("x", 0, 0, 0.0)}, "which must be one of 'q', 'k', 'v'"),
        ({"edit": Edit("q", 2, 0, 0.0)}, r"token \(2\) must be between 0 and 1"),
        ({"edit": Edit("k", 0, 3, 0.0)}, r"dimension \(3\) must be between 0 and 2"),
        ({"edit": Edit("v", 0, 0, math.inf)}, "value must be finite"),
    ],
)
def test_what_cannot_be_looked_up_is_refused_with_a_sentence(change, sentence):
    given = {"tokens": ["a", "b"], "d_model": 4, "d_k": 3, "seed": 0} | change
    with pytest.raises(ValueError, match=sentence):
        look_up(given.pop("tokens"), **given)


def test_lookups_of_different_shapes_are_not_compared():
    with pytest.raises(ValueError, match=r"must have the same \(T, S, d_v\)"):
        movement(cross(d_k=3), cross(d_k=2))


def test_a_hard_lookup_needs_a_key_and_a_sweep_an_existing_query():
    with pytest.raises(ValueError, match=r"scores \(3, 0\) must have shape"):
        hard_lookup(torch.empty(3, 0))
    with pytest.raises(ValueError, match=r"query \(3\) must be between 0 and 2"):
        temperature_sweep(cross(), 3)
    with pytest.raises(ValueError, match=r"which must be one of"):
        telling_edits(cross(), "x")


@pytest.mark.parametrize("temperature", [0.5, 1.0, 7.0])
def test_hiding_a_key_moves_the_output_as_worked_by_hand(temperature):
    seen = cross(temperature=temperature)
    for query in range(len(READERS)):
        weights, output = seen.attn_weights[query], seen.output[query]
        # The others share 1 in the old proportions: (o - a v) / (1 - a).
        rest = (output - weights[:, None] * seen.v) / (1 - weights)[:, None]
        expected = (rest - output).norm(dim=1)
        assert_close(influence_of_keys(seen, query), expected, rtol=1e-9, atol=1e-12)


def test_the_only_key_is_missed_altogether_and_an_equal_one_not_at_all():
    one = look_up(["dog"], d_model=5, d_k=3, seed=1)
    assert_close(influence_of_keys(one, 0), one.output[0].norm()[None])
    twins = look_up(["dog", "dog"], d_model=5, d_k=3, seed=1)
    assert_close(influence_of_keys(twins, 1), torch.zeros(2).double())


def test_an_edited_value_counts_in_its_influence():
    plain = look_up(WORDS, d_model=5, d_k=3, seed=1)
    far = look_up(WORDS, d_model=5, d_k=3, seed=1, edit=Edit("v", 4, 0, 100.0))
    assert int(influence_of_keys(far, 2).argmax()) == 4
    assert influence_of_keys(far, 2)[4] > 10 * influence_of_keys(plain, 2)[4]


def test_the_influence_of_no_query_is_refused():
    with pytest.raises(ValueError, match=r"query \(3\) must be between 0 and 2"):
        influence_of_keys(cross(), 3)
