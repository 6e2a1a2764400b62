"""The checks of chapter 12: python grader.py 12"""

import zlib

import numpy as np
import pytest

from meintorch import transformer
from meintorch.losses import cross_entropy
from meintorch.optim import Adam
from meintorch.tensor import Tensor
from meintorch.training import train_step
from meintorch.transformer import (
    Block,
    Cache,
    CausalSelfAttention,
    Transformer,
    attention,
    causal_mask,
    generate,
    merge_heads,
    probabilities,
    split_heads,
)
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    check_gradient,
    check_twice,
    explained,
    first_that_tells,
    nothing_else_changes,
    which_formula,
)

SENTENCE = "to be, or not to be, that is the question"


@pytest.mark.task("12.8")
def test_a_model_of_one_block_learns_a_sentence_by_heart_and_writes_it():
    """From its first letter on, always the likeliest next one. It takes sixty steps and a tenth of a second."""
    characters, ids = numbered(SENTENCE)
    model = Transformer(len(characters), length=48, width=32, heads=4, blocks=1, rng=np.random.default_rng(0))
    optimizer = Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        loss = train_step(model, cross_entropy, optimizer, ids[None, :-1], ids[None, 1:])
    if not loss < 0.1:
        raise CheckFailed(f"after 60 steps on one sentence the loss is {loss:.3f}, expected less than 0.1")
    rest = explained(lambda: list(generate(model, ids[:1], len(ids) - 1, temperature=0.0)), which_cache)
    written = "".join(characters[i] for i in [ids[0], *rest])
    if written != SENTENCE:
        raise CheckFailed(
            f'the sentence is learned, the loss is {loss:.3f}. From its first letter on the model writes\n"{written}", '
            f'expected\n"{SENTENCE}"',
            ask(which_cache),
        )


# 12.1 Attention

QUERY = [[2.0, 0.0, 0.0, 0.0]]
KEYS = [[0.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0], [np.log(2.0), 0.0, 0.0, 0.0]]
VALUES = [[10.0], [20.0], [30.0]]


@pytest.mark.task("12.1")
def test_a_query_gets_a_mean_of_the_values_weighted_by_how_well_the_keys_fit():
    """The scores are 0, 0 and log 2, the weights 1/4, 1/4 and 1/2."""
    check_attention(QUERY, KEYS, VALUES, None, [[22.5]], "query [[2, 0, 0, 0]]")


@pytest.mark.task("12.1")
def test_where_the_mask_says_minus_infinity_nobody_looks():
    """The third value has no weight left, and the other two have one half each."""
    mask = np.array([[0.0, 0.0, -np.inf]])
    check_attention(QUERY, KEYS, VALUES, mask, [[15.0]], "query [[2, 0, 0, 0]] and mask [[0, 0, -inf]]")


@pytest.mark.task("12.1")
def test_a_mask_may_also_push_a_little():
    """log 3 is added to a score of 0, and log 2 to one of log 2: the weights are 3, 1 and 4 parts of eight."""
    mask = np.log([[3.0, 1.0, 2.0]])
    check_attention(QUERY, KEYS, VALUES, mask, [[21.25]], "query [[2, 0, 0, 0]] and mask [[log 3, 0, log 2]]")


@pytest.mark.task("12.1")
def test_every_query_of_every_matrix_in_a_stack_asks_for_itself():
    query, key, value = (numbers(*shape) for shape in ((2, 3, 2, 7), (2, 3, 5, 7), (2, 3, 5, 6)))
    mask = np.triu(np.full((2, 5), -np.inf), 4)
    check_attention(query, key, value, mask, by_hand(query, key, value, mask), "a stack of 2 times 3 matrices")


@pytest.mark.task("12.1")
def test_query_key_and_value_all_get_their_gradients():
    mask = np.triu(np.full((3, 3), -np.inf), 1)
    arrays = [numbers(2, 3, 2), numbers(2, 3, 2) + 0.5, numbers(2, 3, 4)]
    check_reached(lambda *them: attention(*them, mask), dict(zip(("query", "key", "value"), arrays)), "attention")
    check_gradient(lambda *them: attention(*them, mask), *arrays, name="attention of query, key and value", make=Tensor)


@pytest.mark.task("12.1")
def test_attention_keeps_float32():
    arrays = [numbers(1, 2, 4).astype(np.float32) for _ in range(3)]
    out = attention(*[Tensor(array) for array in arrays], np.triu(np.full((2, 2), -np.inf), 1))
    if out.dtype != np.float32:
        raise CheckFailed(f"attention of float32 tensors is {out.dtype}", "Numbers were promoted on the way.")


# 12.2 The mask


@pytest.mark.task("12.2")
def test_every_place_may_look_at_itself_and_at_what_came_before():
    inf = np.inf
    check_mask(3, 3, [[0.0, -inf, -inf], [0.0, 0.0, -inf], [0.0, 0.0, 0.0]])
    check_mask(1, 1, [[0.0]])


@pytest.mark.task("12.2")
def test_with_fewer_rows_they_are_the_last_places():
    inf = np.inf
    check_mask(2, 4, [[0.0, 0.0, 0.0, -inf], [0.0, 0.0, 0.0, 0.0]])
    check_mask(1, 3, [[0.0, 0.0, 0.0]])
    check_mask(3, 5, [[0.0, 0.0, 0.0, -inf, -inf], [0.0, 0.0, 0.0, 0.0, -inf], [0.0, 0.0, 0.0, 0.0, 0.0]])


@pytest.mark.task("12.2")
def test_a_mask_is_an_array_of_its_own():
    """Whoever writes into one must not change the next."""
    causal_mask(2, 2)[...] = 7.0
    own = "The same array is handed out a second time. Each call makes one of its own."
    check_mask(2, 2, [[0.0, -np.inf], [0.0, 0.0]], lambda: own)


# 12.3 Heads


@pytest.mark.task("12.3")
def test_each_head_gets_its_piece_of_every_row():
    check_split(1, 2, 4, 2, [[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]])


@pytest.mark.task("12.3")
def test_a_single_head_gets_whole_rows_and_as_many_as_the_width_get_a_number_each():
    check_split(1, 2, 3, 1, [[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]])
    check_split(1, 2, 3, 3, [[[[1.0], [4.0]], [[2.0], [5.0]], [[3.0], [6.0]]]])


@pytest.mark.task("12.3")
def test_texts_of_a_batch_are_not_mixed():
    first = np.arange(1.0, 13.0).reshape(3, 4)[:, [[0, 1], [2, 3]]].transpose(1, 0, 2)
    check_split(2, 3, 4, 2, np.stack([first, first + 12.0]))


@pytest.mark.task("12.3")
def test_merging_the_heads_brings_the_rows_back():
    x = Tensor(numbers(2, 3, 6))
    check_close(merge_heads(split(x, 3)).data, x.data, "merge_heads(split_heads(x, 3)) of shape (2, 3, 6)")


@pytest.mark.task("12.3")
def test_splitting_passes_gradients_on():
    check_reached(lambda x: split_heads(x, 2), {"x": numbers(2, 3, 4)}, "split_heads")
    check_gradient(lambda x: split_heads(x, 2), numbers(2, 3, 4), name="split_heads(x, 2)", make=Tensor)


# 12.4 Self-attention


@pytest.mark.task("12.4")
def test_place_1_gets_a_quarter_of_place_0_and_three_quarters_of_itself():
    """The layers leave x as it is, but for the queries: at place 1 the scores are 0 and log 3."""
    layer = CausalSelfAttention(2, 1)
    for name, parameter in dict(layer.named_parameters()).items():
        parameter.data[...] = np.eye(2) if name.endswith("weight") else 0.0
    layer.query.weight.data *= np.sqrt(2.0) * np.log(3.0)
    look = look_at_layer(self_attention(4, 2), numbers(2, 3, 4), None)
    found = explained(lambda: result(layer(Tensor([[[1.0, 0.0], [0.0, 1.0]]])), "CausalSelfAttention"), look)
    what = "x with the rows [1, 0] and [0, 1], one head, the queries times the root of 2 and log 3:\nthe result"
    check_close(found, np.array([[[1.0, 0.0], [0.25, 0.75]]]), what, probe=look)


@pytest.mark.task("12.4")
def test_every_head_attends_and_their_results_are_mixed():
    layer, x = self_attention(4, 2), numbers(2, 3, 4)
    check_layer(layer, x, None, "CausalSelfAttention(4, heads=2) of an x of shape (2, 3, 4)")


@pytest.mark.task("12.4")
def test_one_head_is_the_same_with_whole_rows():
    layer, x = self_attention(3, 1), numbers(1, 4, 3)
    check_layer(layer, x, None, "CausalSelfAttention(3, heads=1) of an x of shape (1, 4, 3)")


@pytest.mark.task("12.4")
def test_what_comes_later_does_not_change_what_came_before():
    layer, x = self_attention(4, 2), numbers(1, 5, 4)
    changed = x.copy()
    changed[0, 3:] += 10.0
    before, after = layer(x).data[0, :3], layer(changed).data[0, :3]
    if not np.allclose(before, after):
        raise CheckFailed(
            "places 3 and 4 of x have changed, and with them the result at places 0 to 2, which come before",
            "Is the mask passed on to attention?",
        )


@pytest.mark.task("12.4")
def test_with_a_cache_there_are_more_keys_than_queries():
    """A stand-in for the cache puts the keys and values of two earlier places before those of x."""
    layer, x = self_attention(4, 2), numbers(1, 3, 4)
    earlier = numbers(1, 2, 2, 2), numbers(1, 2, 2, 2) - 1.0
    check_layer(layer, x, earlier, "CausalSelfAttention(4, heads=2) of three places, with two more in the cache")


@pytest.mark.task("12.4")
def test_all_weights_of_self_attention_get_gradients():
    layer = self_attention(4, 2)
    layer(numbers(1, 3, 4)).backward(numbers(1, 3, 4) + 1.0)
    # A bias of the keys moves all scores of a row alike, which softmax does not notice: its gradient is 0.
    named = dict(layer.named_parameters())
    still = [name for name, one in named.items() if name != "key.bias" and not one.grad.any()]
    if still:
        raise CheckFailed(
            f"after backward() nothing has arrived at {', '.join(still)}",
            "What is computed from .data has no past: compute with the Tensors themselves." * named_before_out(still)
            or None,
        )


def named_before_out(names):
    """Does nothing arrive at whatever comes before the last layer?"""
    return {"query.weight", "key.weight", "value.weight"} <= set(names)


# 12.5 The block


@pytest.mark.task("12.5")
def test_x_goes_past_both_branches_as_it_is():
    """Attention gives 0 and the two layers give their last bias, whatever the norms do."""
    block = Block(2, 1)
    for name, parameter in dict(block.named_parameters()).items():
        parameter.data[...] = [10.0, 20.0] if name == "mlp.2.bias" else 0.0
    look = first_that_tells(probe_of_block(numbers(1, 3, 4)), which_takes_a_cache)
    found = explained(lambda: result(block(Tensor([[[1.0, 5.0]]])), "Block"), look)
    what = "x with the row [1, 5], attention that gives 0, two layers that give [10, 20]:\nthe result"
    check_close(found, np.array([[[11.0, 25.0]]]), what, probe=look)


@pytest.mark.task("12.5")
def test_a_block_adds_what_attention_makes_of_x_and_then_what_two_layers_make_of_that():
    check_block(numbers(2, 3, 4), None, "Block(4, heads=2) of an x of shape (2, 3, 4)")


@pytest.mark.task("12.5")
def test_a_block_hands_the_cache_on():
    block, cache = stand_in_block(), Earlier(np.zeros((1, 2, 1, 2)), np.zeros((1, 2, 1, 2)))
    block(numbers(1, 3, 4), cache)
    if len(block.attention.caches) != 1:
        message = f"the attention of the block was called {len(block.attention.caches)} times, expected once"
        raise CheckFailed(message, "With every call keys get into the cache. Call it once, and keep what it gives.")
    if block.attention.caches != [cache]:
        raise CheckFailed(
            "the attention of the block was called without the cache that the block was given",
            "attention takes it as its second argument.",
        )


@pytest.mark.task("12.5")
def test_an_empty_cache_is_handed_on_as_well():
    """It is the first time: what is to be kept has not come yet."""
    block, cache = stand_in_block(), Cache()
    block(numbers(1, 3, 4), cache)
    if cache not in block.attention.caches:
        raise CheckFailed(
            "the attention of the block was called without the cache that the block was given, which is empty yet",
            "A cache without places counts as False, as an empty list does. Hand on what you were given.",
        )


@pytest.mark.task("12.5")
def test_gradients_go_through_both_branches_and_past_them():
    block = Block(4, 2, rng=np.random.default_rng(0))
    try:
        check_gradient(lambda x: block(x), numbers(1, 3, 4), name="Block(4, heads=2)", make=Tensor)
    except CheckFailed as error:
        error.diagnosis = which_past() or error.diagnosis
        raise


# 12.6 The model


@pytest.mark.task("12.6")
def test_characters_and_places_are_added_then_the_blocks_the_norm_and_the_table_again():
    check_model(small_model(2), [[3, 1, 4], [1, 5, 0]], "a Transformer of two blocks, for two texts of 3 characters")


@pytest.mark.task("12.6")
def test_without_any_block_the_scores_are_products_of_the_table_with_itself():
    """One character, width 2: its row plus that of place 0 is [3, 1], which is normalized to [1, -1]."""
    model = Transformer(3, length=4, width=2, heads=1, blocks=0)
    model.embedding.weight.data[...] = [[2.0, 1.0], [5.0, 2.0], [0.0, 4.0]]
    model.positions.weight.data[0] = [1.0, 0.0]
    look = look_at_model(model, [[0]])
    found = explained(lambda: result(model(np.array([[0]])), "Transformer"), look)
    what = "rows [2, 1], [5, 2] and [0, 4], place 0 [1, 0], no block:\nwhat comes back for character 0"
    check_close(np.round(found, 3), [[[1.0, 3.0, -4.0]]], what, probe=look)


@pytest.mark.task("12.6")
def test_no_place_sees_what_comes_after_it():
    """Shown by gradients: the scores at a place depend on the places up to it, and on no later one."""
    model, ids = small_model(2), [3, 1, 4, 1, 5]
    look = look_at_model(model, [ids])
    seen = np.zeros((5, 5), bool)
    for place in range(5):
        model.positions.weight.zero_grad()
        scores = explained(lambda: model(np.array([ids])), look)
        if result(scores, "Transformer").shape != (1, 5, 6):
            what = "the scores of one text of 5 places and 6 characters have shape"
            raise CheckFailed(f"{what} {scores.shape}, expected (1, 5, 6)", look())
        pick = np.zeros(scores.shape)
        pick[0, place] = np.random.default_rng(place).standard_normal(6)
        scores.backward(pick)
        seen[place] = np.abs(model.positions.weight.grad[:5]).max(axis=1) > 1e-12
    later, earlier = np.triu(seen, 1), np.tril(np.ones((5, 5), bool)) & ~seen
    if later.any():
        place, other = (int(one[0]) for one in np.nonzero(later))
        raise CheckFailed(
            f"the scores at place {place} have a slope in the row of place {other}, which comes later: "
            "the model sees what it is to predict",
            look(),
        )
    if earlier.any():
        place, other = (int(one[0]) for one in np.nonzero(earlier))
        raise CheckFailed(
            f"the scores at place {place} have no slope in the row of place {other}, which they may see", look()
        )


@pytest.mark.task("12.6")
def test_the_table_learns_from_both_its_ends():
    """A character that is not in the text gets a gradient all the same: from the scores."""
    model = small_model(1)
    model(np.array([[3, 1]])).backward(numbers(1, 2, 6) + 1.0)
    rows = np.abs(model.embedding.weight.grad).max(axis=1)
    if not (rows > 0.0).all():
        raise CheckFailed(
            f"after a text of characters 3 and 1 the rows {np.nonzero(rows == 0.0)[0].tolist()} of the table have no "
            "gradient, though each of them has a score",
            "The scores are products with the table itself, not with a copy or with its .data.",
        )
    model.embedding.weight.zero_grad()
    only_one = np.zeros((1, 2, 6))
    only_one[:, :, 0] = [1.0, 2.0]
    model(np.array([[3, 1]])).backward(only_one)
    rows = np.abs(model.embedding.weight.grad).max(axis=1) > 0.0
    if rows.tolist() != [True, True, False, True, False, False]:
        raise CheckFailed(
            "after a text of characters 3 and 1, when only the score of character 0 counts, the rows "
            f"{np.nonzero(rows)[0].tolist()} of the table have a gradient, expected those of 0, 1 and 3",
            "The way in goes through self.embedding(ids), not through rows taken from .data."
            if not (rows[1] or rows[3])
            else None,
        )


@pytest.mark.task("12.6")
def test_every_block_gets_its_own_cache():
    model = small_model(2)
    blocks = [Recorder(), Recorder()]
    model.blocks = blocks
    look = probe_of_model(small_model(2), [[3, 1, 4], [1, 5, 0]])
    caches = [Earlier(np.zeros((1, 2, 0, 2)), np.zeros((1, 2, 0, 2))) for _ in blocks]
    given = list(caches)
    model(np.array([[3, 1]]), given)
    if len(given) != 2 or any(one is not other for one, other in zip(given, caches)):
        message = (
            f"after model(ids, caches) the list `caches` holds {len(given)} of the 2 caches that it was given with"
        )
        raise CheckFailed(message, "The list belongs to the one who calls: the next call needs it as it is.")
    for i, (block, cache) in enumerate(zip(blocks, caches)):
        if block.caches != [cache]:
            raise CheckFailed(
                f"block {i} was called {len(block.caches)} times, expected once, with caches[{i}]"
                if len(block.caches) != 1
                else f"block {i} was called with {kind_of_cache(block.caches[0], caches)}, expected caches[{i}]",
                ask(look) or "Each block takes its own cache as second argument, an empty one too.",
            )
    model(np.array([[3, 1]]))
    if any(block.caches[1:] != [None] for block in blocks):
        raise CheckFailed("without caches, every block is to be called once with None, or with no cache at all")


@pytest.mark.task("12.6")
def test_with_a_cache_the_places_are_counted_on():
    """Two places are in the cache, so these are places 2 and 3."""
    model, caches = small_model(0), [Earlier(np.zeros((1, 2, 2, 2)), np.zeros((1, 2, 2, 2)))]
    model.blocks = [Recorder()]
    found = model(np.array([[3, 1]]), caches).data

    def which_places():
        if np.allclose(found, model_by_hand(model, [[3, 1]])):
            return "The places begin at 0 again: `places` is given, and goes on after those in the caches."
        return None

    wanted = model_by_hand(model, [[3, 1]], past=2)
    what = "characters 3 and 1, two places in the cache, a block that changes nothing:\nwhat comes back"
    check_close(found, wanted, what, probe=first_that_tells(which_places, which_way_in))


# 12.7 Probabilities


@pytest.mark.task("12.7")
def test_scores_become_probabilities():
    check_probabilities([0.0, np.log(2.0), 0.0], 1.0, None, [0.25, 0.5, 0.25], "[0, log 2, 0]")


@pytest.mark.task("12.7")
def test_a_low_temperature_makes_the_likely_likelier_and_a_high_one_evens_out():
    """Half the temperature squares the ratios: 1, 4 and 1 parts of six. Twice of it takes their roots."""
    check_probabilities([0.0, np.log(2.0), 0.0], 0.5, None, [1 / 6, 4 / 6, 1 / 6], "[0, log 2, 0]")
    check_probabilities([0.0, np.log(4.0), 0.0], 2.0, None, [0.25, 0.5, 0.25], "[0, log 4, 0]")


@pytest.mark.task("12.7")
def test_only_the_k_likeliest_are_left():
    scores, shown = [np.log(3.0), 0.0, np.log(2.0), np.log(6.0)], "[log 3, 0, log 2, log 6]"
    check_probabilities(scores, 1.0, 2, [1 / 3, 0.0, 0.0, 2 / 3], shown)
    check_probabilities(scores, 1.0, 1, [0.0, 0.0, 0.0, 1.0], shown)
    check_probabilities(scores, 1.0, 4, [3 / 12, 1 / 12, 2 / 12, 6 / 12], shown)


@pytest.mark.task("12.7")
def test_temperature_and_top_k_work_together():
    scores, shown = [np.log(3.0), 0.0, np.log(2.0), np.log(6.0)], "[log 3, 0, log 2, log 6]"
    check_probabilities(scores, 0.5, 2, [9 / 45, 0.0, 0.0, 36 / 45], shown)


@pytest.mark.task("12.7")
def test_large_scores_and_low_temperatures_do_not_overflow():
    check_probabilities([1000.0, 1000.0, -1000.0], 0.01, None, [0.5, 0.5, 0.0], "[1000, 1000, -1000]")


@pytest.mark.task("12.7")
def test_the_scores_themselves_stay_as_they_are():
    scores = np.array([3.0, 1.0, 2.0])
    probabilities(scores, 2.0, 1)
    check_close(
        scores, np.array([3.0, 1.0, 2.0]), "after probabilities(scores, 2.0, top_k=1), scores", probe=lambda: WRITTEN
    )


# 12.8 The cache


@pytest.mark.task("12.8")
def test_the_first_keys_and_values_are_kept_and_given_back():
    key, value = Tensor(numbers(1, 2, 3, 4)), Tensor(numbers(1, 2, 3, 4) + 1.0)
    cache = Cache()
    check_added(cache, key, value, key.data, value.data, "a new cache, add(key, value) with three places")


@pytest.mark.task("12.8")
def test_later_ones_are_put_behind_along_the_places():
    """By hand: two heads of width 1. One place is there, one is added."""
    cache = Cache()
    cache.add(Tensor([[[[1.0]], [[2.0]]]]), Tensor([[[[10.0]], [[20.0]]]]))
    key, value = Tensor([[[[3.0]], [[4.0]]]]), Tensor([[[[30.0]], [[40.0]]]])
    what = "a cache with one place, add(key, value) with one more"
    check_added(
        cache,
        key,
        value,
        np.array([[[[1.0], [3.0]], [[2.0], [4.0]]]]),
        np.array([[[[10.0], [30.0]], [[20.0], [40.0]]]]),
        what,
    )


@pytest.mark.task("12.8")
def test_a_cache_goes_on_growing():
    cache, parts = Cache(), [numbers(2, 1, n, 3) for n in (2, 1, 3)]
    for i, part in enumerate(parts):
        so_far = np.concatenate(parts[: i + 1], 2)
        what = f"add() for the {('first', 'second', 'third')[i]} time, with 2, 1 and 3 places"
        check_added(cache, Tensor(part), Tensor(-part), so_far, -so_far, what)


@pytest.mark.task("12.8")
def test_gradients_go_back_to_what_was_put_into_the_cache_before():
    """Of keys and of values: the first places, those of the second call, and the last one."""

    def of(which):
        def later(*places):
            cache = Cache()
            for one in places:
                both = cache.add(one, one * 3.0)
            return both[which]

        return later

    arrays = numbers(1, 2, 2, 3), numbers(1, 2, 1, 3) + 1.0, numbers(1, 2, 1, 3) - 1.0
    for which, name in (
        (0, "of what add(key, value) returns the first"),
        (1, "of what add(key, value) returns the second"),
    ):
        names = ("what was added first", "what was added then", "what was added last")
        check_reached(of(which), dict(zip(names, arrays)), name)
        check_gradient(of(which), *arrays, name=name, make=Tensor)


@pytest.mark.task("12.8")
def test_a_cache_keeps_float32_and_changes_nothing_that_it_is_given():
    cache, parts = Cache(), [Tensor(numbers(1, 2, n, 2).astype(np.float32)) for n in (2, 1)]
    for i, part in enumerate(parts):
        with nothing_else_changes("add(key, value)", key=part, value=part, earlier=parts[:i]):
            both = explained(lambda part=part: cache.add(part, part), which_cache)
    for name, found in zip(("keys", "values"), both):
        wanted = np.concatenate([part.data for part in parts], 2)
        check_close(result(found, "add"), wanted, f"a cache of float32 places: what comes back as {name}")


@pytest.mark.task("12.8")
def test_two_caches_know_nothing_of_each_other():
    one, other = Cache(), Cache()
    for cache, array in ((one, numbers(1, 2, 2, 2)), (other, numbers(1, 2, 3, 2))):
        check_added(cache, Tensor(array), Tensor(-array), array, -array, "a second cache, add(key, value) with others")


@pytest.mark.task("12.8")
def test_a_text_in_pieces_gives_the_same_scores_as_in_one():
    model, ids = small_model(2), np.array([[3, 1, 4, 1, 5]])
    whole, caches = model(ids).data, [Cache(), Cache()]
    pieces = [model(ids[:, start:end], caches).data for start, end in ((0, 2), (2, 3), (3, 5))]
    check_close(np.concatenate(pieces, 1), whole, "five characters, read as 2, 1 and 2 with a cache:\nthe scores")


@pytest.mark.task("12.8")
def test_generating_with_a_cache_gives_the_same_text():
    model = small_model(2)
    model.embedding.weight.data *= 50.0
    for start in range(6):
        ways = [
            list(generate(model, [start], 20, 0.8, 3, np.random.default_rng(start), cached=cached))
            for cached in (False, True)
        ]
        if ways[0] != ways[1]:
            raise CheckFailed(f"after {start} comes {ways[0]} without a cache, and {ways[1]} with one")


# What the checks above are made of.


def numbers(*shape):
    return np.random.default_rng(sum(shape) + 10 * len(shape)).uniform(-1.0, 1.0, shape)


def numbered(text):
    characters = "".join(sorted(set(text)))
    return characters, np.array([characters.index(one) for one in text])


def filled(module, scale=1.0):
    """The module, with numbers in every parameter that depend on its name and shape alone."""
    for name, parameter in dict(module.named_parameters()).items():
        parameter.data = scale * np.random.default_rng(zlib.crc32(name.encode())).uniform(-1.0, 1.0, parameter.shape)
    return module


def small_model(blocks):
    return filled(Transformer(6, 8, 4, 2, blocks, rng=np.random.default_rng(0)))


def softmax_by_hand(scores, axis=-1):
    shares = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return shares / shares.sum(axis=axis, keepdims=True)


def by_hand(query, key, value, mask=None, scale=0.5, axis=-1):
    """Attention in plain NumPy. scale  the power of the width by which the scores are divided"""
    scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** scale
    return softmax_by_hand(scores + (0.0 if mask is None else mask), axis) @ value


def check_attention(query, key, value, mask, wanted, what):
    look = first_that_tells(of_numpy(lambda: attention(*given, mask)), which_mask, which_attention, which_axes)
    given = [Tensor(one) for one in (query, key, value)]
    untouched = dict(zip(("query", "key", "value", "mask"), (*given, mask)))

    def call():
        with nothing_else_changes("attention(query, key, value, mask)", **untouched):
            return result(explained(lambda: attention(*given, mask), look), "attention")

    check_twice(call, np.asarray(wanted), f"attention with {what}:\nthe result", probe=look)


def of_numpy(call):
    """Was one of NumPy's functions given a Tensor? The numbers alone would go on without a gradient."""

    def probe():
        try:
            call()
        except TypeError as error:
            if "NumPy's functions take arrays" in str(error):
                return (
                    "Through NumPy's functions no gradient goes back, and through .data none either. Tensors have "
                    "functions of their own: reshape and transpose, softmax, concatenate, stack, and slices."
                )
        return None

    return probe


def result(out, name):
    """The numbers of a Tensor. Anything else is no result of a function of Tensors."""
    if not isinstance(out, Tensor):
        raise CheckFailed(
            f"{name} has returned {type(out).__name__}, expected a Tensor",
            "Nothing comes back: is there a return?"
            if out is None
            else "Operations on Tensors give a Tensor, through which gradients go back.",
        )
    return out.data


def check_reached(function, arrays, name):
    """Does anything arrive at every input? If not, no number needs to be shown."""
    inputs = {one: Tensor(array) for one, array in arrays.items()}
    out = function(*inputs.values())
    result(out, name)
    out.backward(numbers(*out.shape))
    still = [one for one, x in inputs.items() if not x.grad.any()]
    if still:
        raise CheckFailed(
            f"{name} gives the right numbers, and after backward() nothing has arrived at {' and '.join(still)}",
            "What is computed from .data has no past: compute with the Tensors themselves.",
        )


def which_attention():
    """On other numbers, without a mask: does it what a known mistake does?"""
    query, key, value = numbers(5, 3), numbers(5, 3) * 2.0 + 1.0, numbers(5, 3) - 2.0
    scores = query @ key.T / 3**0.5
    ways = {
        "The scores are not scaled: each is divided by the root of the width.": by_hand(query, key, value, scale=0.0),
        "The scores are divided by the width, not by its root.": by_hand(query, key, value, scale=1.0),
        "The scores are multiplied by the root of the width, and not divided.": by_hand(query, key, value, scale=-0.5),
        "Softmax goes along the wrong axis: each query shares itself out among the keys, axis -1.": by_hand(
            query, key, value, axis=-2
        ),
        "Keys and queries have changed places.": by_hand(key, query, value),
        "The weights are taken of the keys, and not of the values.": by_hand(query, key, key),
        "Softmax is missing: the scores are no weights yet.": scores @ value,
        "That is the weights. They are for a mean of the values.": softmax_by_hand(scores),
        "The weights are divided by the root. It belongs to the scores, before softmax.": softmax_by_hand(query @ key.T)
        / 3**0.5
        @ value,
        "Softmax is taken twice.": softmax_by_hand(softmax_by_hand(scores)) @ value,
        "The result is divided by the root once more. It belongs to the scores alone.": by_hand(query, key, value)
        / 3**0.5,
        "What was meant for a power has become a division: ** goes before /, and 1 / 2 needs brackets there.": by_hand(
            query / 2.0, key, value, scale=1.0
        ),
        "The scores are divided by half the width, and not by its root.": by_hand(query * 2.0, key, value, scale=1.0),
        "The scores are divided by 2 at every width. 2 is the root of 4 alone.": by_hand(
            query / 2.0, key, value, scale=0.0
        ),
    }
    found = which_formula(lambda: attention(Tensor(query), Tensor(key), Tensor(value)).data, ways)()
    return found or which_root()


def which_root():
    """Six texts, four heads, two queries, seven keys of width 3, values of width 5: of what was the root taken?"""
    query, key, value = numbers(6, 4, 2, 3), numbers(6, 4, 7, 3) * 2.0 + 1.0, numbers(6, 4, 7, 5) - 2.0
    sizes = {
        "the number of keys": 7,
        "the number of queries": 2,
        "the width of the values": 5,
        "the number of heads": 4,
        "the number of texts": 6,
    }
    ways = {
        f"The scores are divided by the root of {name}, and not of the width of a query.": by_hand(
            query * (3 / size) ** 0.5, key, value
        )
        for name, size in sizes.items()
    }
    ways["Softmax goes along axis 1. That of the keys is the last one, -1."] = by_hand(query, key, value, axis=1)
    return which_formula(lambda: attention(Tensor(query), Tensor(key), Tensor(value)).data, ways)()


def which_axes():
    """With how many axes does it go wrong?"""

    def goes(*front):
        x = Tensor(numbers(*front, 3, 4))
        try:
            return attention(x, x, x, np.zeros((3, 3))).shape == x.shape
        except Exception:
            return False

    works = [front for front in ((), (2,), (2, 2)) if goes(*front)]
    if len(works) == 1:
        return (
            f"It works if the key has {len(works[0]) + 2} axes, and otherwise not: its last two are to be turned "
            "around, however many stand in front of them."
        )
    square = [numbers(3, 3), numbers(3, 3) + 1.0, numbers(3, 3) - 1.0]
    query, key, value = square
    shares = softmax_by_hand(query @ key.T / 3**0.5)
    ways = {
        "The keys are not turned around: a row of the scores holds products with all the keys.": by_hand(
            query, key.T, value
        ),
        "query * key multiplies number by number. A score is the sum of such a row: that is what @ does.": (
            softmax_by_hand(query * key / 3**0.5) @ value
        ),
        "The weights are multiplied with the values number by number. A mean is their sum: that is what @ does.": (
            shares * value
        ),
        "The weights stand in front of the values: a row of them is for all rows of the values.": value @ shares,
    }
    return which_formula(lambda: attention(*[Tensor(one) for one in square], np.zeros((3, 3))).data, ways)()


def which_mask():
    """Without a mask all is well: what happens to it?"""
    query, key, value = numbers(3, 3), numbers(3, 3) * 2.0 + 1.0, numbers(3, 3) - 2.0
    mask = np.log([[2.0, 3.0, 1.0], [1.0, 1.0, 4.0], [5.0, 1.0, 1.0]])
    free, goes = by_hand(query, key, value), []
    for one in (None, mask):
        try:
            goes.append(attention(Tensor(query), Tensor(key), Tensor(value), one) is not None)
        except (TypeError, ValueError, AttributeError):
            goes.append(False)
    if goes == [False, True]:
        return "It works with a mask and not without: None is no mask, and nothing is added then."
    if goes == [True, False]:
        return "It works without a mask and not with one. Is it None or not? `if mask is not None:` asks just that."
    if not np.allclose(attention(Tensor(query), Tensor(key), Tensor(value)).data, free):
        return None
    scores = query @ key.T / 3**0.5
    ways = {
        "The mask is not used.": free,
        "The mask is added after softmax. It belongs to the scores.": (softmax_by_hand(scores) + mask) @ value,
        "The mask is multiplied, and not added.": softmax_by_hand(scores * mask) @ value,
        "The mask is subtracted, and not added.": by_hand(query, key, value, -mask),
        "The weights are changed after softmax, and do not add up to 1 any more. The mask belongs to the scores.": (
            softmax_by_hand(scores) * np.exp(mask) @ value
        ),
        "With a mask softmax is missing.": (scores + mask) @ value,
        "Only the zeros of the mask are looked at: its numbers are added as they are.": by_hand(
            query, key, value, np.where(mask == 0.0, 0.0, -np.inf)
        ),
        "Where the mask is not 0 its number takes the score's place. It is added to it.": (
            softmax_by_hand(np.where(mask == 0.0, scores, mask)) @ value
        ),
        "The mask is added before the scores are scaled.": by_hand(query, key, value, mask / 3**0.5),
        "The mask is turned around: it has a row for each query, as the scores do.": by_hand(query, key, value, mask.T),
    }
    return which_formula(lambda: attention(Tensor(query), Tensor(key), Tensor(value), mask).data, ways)()


def check_mask(n, m, wanted, probe=None):
    found, wanted = explained(lambda: causal_mask(n, m), which_shape), np.array(wanted)
    what = f"causal_mask({n}, {m})"
    if isinstance(found, np.ndarray) and found.dtype == bool:
        raise CheckFailed(
            f"{what} holds True and False, expected 0 and -inf", "It is added to the scores: 0 where one may look."
        )
    if isinstance(found, list):
        raise CheckFailed(f"{what} is a list", "The mask is a NumPy array, to be added to the scores.")
    if isinstance(found, np.ndarray) and found.shape == wanted.shape and found.dtype.kind == "f":
        found = np.where(found <= -1e9, -np.inf, found).astype(wanted.dtype)  # as good as -inf
    check_close(found, wanted, what, probe=first_that_tells(probe, which_triangle))


def which_triangle():
    if np.asarray(causal_mask(3, 3)).dtype.kind == "i":
        return "Integers know no infinity. The mask is an array of floats."
    square, wide = (np.asarray(causal_mask(*sizes), dtype=float) for sizes in ((3, 3), (2, 4)))
    if np.isnan(square).any():
        return "0 times -inf is nan. Do not multiply: np.full makes an array of -inf, and np.triu puts zeros into it."
    if wide.shape == (4, 2):
        return "Rows and columns have changed places: a row for each of the n places that ask, and m columns."
    if wide.shape in ((2, 2), (4, 4)):
        return "The mask need not be square: a row for each of the n places that ask, and m columns."
    if square.shape == (3,):
        return "That is one row. There is one for each of the n places that ask."
    if square.shape != (3, 3) or wide.shape != (2, 4):
        return None
    closed = square < -1.0
    if (square > 1.0).any():
        return "There is a plus infinity: it would draw all the weight. What must not be seen gets minus infinity."
    if (square < -20.0).any() and np.isfinite(square).all():
        return f"{square.min():.4g} only makes it unlikely to look there: -inf forbids it."
    if np.array_equal(closed, np.tril(np.ones((3, 3), bool), 1)):
        return (
            "np.tril keeps what lies to the left, and that is what came before. np.triu keeps what lies to the right."
        )
    if not closed.any():
        return "Nothing is closed: places that come later get -inf."
    if np.array_equal(closed, np.tril(np.ones((3, 3), bool), -1)):
        return "Row 0 sees everything and row 2 only itself: what comes before is closed, and not what comes after."
    if np.array_equal(closed, np.triu(np.ones((3, 3), bool))):
        if (square[~closed] != 0.0).any():
            return f"{square[~closed][0]:.4g} was added to the whole mask, and not to the number of the diagonal."
        return "A place does not see itself: on the diagonal there is -inf, and 0 belongs there."
    if np.array_equal(closed, np.tril(np.ones((3, 3), bool))):
        return "What is open and what is closed have changed places."
    if np.array_equal(closed, np.triu(np.ones((3, 3), bool), 2)):
        return "Each place sees the next one too: what is closed begins one further to the left."
    if np.array_equal(closed, np.eye(3, k=1, dtype=bool)):
        return "Only the next place is closed. All that come after it are, too."
    if not np.array_equal(closed, np.triu(np.ones((3, 3), bool), 1)):
        return None
    if (square[~closed] != 0.0).any():
        return f"Where one may look it holds {square[~closed][0]:.4g}, which is added to the scores. 0 changes nothing."
    if np.array_equal(wide < -1.0, np.triu(np.ones((2, 4), bool), 1)):
        return "With 2 rows of 4 the first row is place 2, and not place 0: the rows are the last places."
    if np.array_equal(wide < -1.0, np.triu(np.ones((2, 4), bool), -1)):
        return "With fewer rows the triangle has moved to the left, by n - m. It belongs m - n further to the right."
    return None


def which_shape():
    try:
        causal_mask(3, 3)
    except TypeError as error:
        if "data type" in str(error):
            return "A shape is one argument, with brackets of its own: np.full((n, m), -np.inf)."
    return None


def split(x, heads):
    with nothing_else_changes("split_heads(x, heads)", x=x):
        out = split_heads(x, heads)
    result(out, "split_heads")
    return out


def check_split(batch, length, width, heads, wanted):
    x = Tensor(np.arange(1.0, batch * length * width + 1.0).reshape(batch, length, width))
    what = f"split_heads of the numbers 1 to {x.size} in shape {x.shape}, with {heads} heads"
    call = lambda: explained(lambda: split(x, heads).data, which_cut, which_call)  # noqa: E731
    check_twice(call, np.asarray(wanted), what, probe=which_cut)


def which_call():
    numpy = ask(of_numpy(lambda: split_heads(Tensor(numbers(1, 2, 4)), 2)))
    if numpy:
        return numpy
    try:
        split_heads(Tensor(numbers(1, 2, 4)), 2)
    except TypeError as error:
        if "float" in str(error):
            return "4 / 2 is 2.0, and a shape consists of whole numbers: // divides without a rest."
        if "transpose" in str(error) and "positional argument" in str(error):
            return "The order of the axes is one argument, with brackets of its own."
    except ValueError as error:
        if "cannot reshape" in str(error):
            return "reshape keeps all numbers, and makes none: a piece of one head has width // heads of them."
        if "axes don't match" in str(error):
            return "transpose takes every axis of the array, in the new order: also those that stay where they are."
    return None


def which_cut():
    x = np.arange(48.0).reshape(2, 4, 6)
    ways = {
        "The numbers were only put into the new shape: places and heads are mixed. First the width is cut in two axes, "
        "then the axes change places.": x.reshape(2, 3, 4, 2),
        "The width was cut the other way around: head 0 has numbers that lie apart in a row, and not the first.": (
            x.reshape(2, 4, 2, 3).transpose(0, 3, 1, 2)
        ),
        "The width is cut, but the heads still come after the places.": x.reshape(2, 4, 3, 2),
        "Within the heads, places and numbers have changed places.": x.reshape(2, 4, 3, 2).transpose(0, 2, 3, 1),
        "The heads have come before the texts of the batch.": x.reshape(2, 4, 3, 2).transpose(2, 0, 1, 3),
        "The pieces have as many numbers as there are heads: it is the number of pieces.": (
            x.reshape(2, 4, 2, 3).transpose(0, 2, 1, 3)
        ),
        "All axes are turned around. Only heads and places change places.": x.reshape(2, 4, 3, 2).T,
        "The last two axes have changed places. It is heads and places that do.": (
            x.reshape(2, 4, 3, 2).transpose(0, 1, 3, 2)
        ),
        "Places and numbers have changed places before the cut. First the width is cut in two axes.": (
            x.transpose(0, 2, 1).reshape(2, 3, 4, 2)
        ),
        "Heads and texts are one axis. They stay two.": x.reshape(2, 4, 3, 2).transpose(0, 2, 1, 3).reshape(6, 4, 2),
        "batch and length have changed places: x.shape is (batch, length, width).": (
            x.reshape(4, 2, 3, 2).transpose(0, 2, 1, 3)
        ),
        "The heads stand in reverse: head 0 gets the first numbers of a row.": (
            x.reshape(2, 4, 3, 2).transpose(0, 2, 1, 3)[:, ::-1]
        ),
        "The numbers were put into heads before places: the places come first in x, and the heads are in its width.": (
            x.reshape(2, 3, 4, 2).transpose(0, 2, 1, 3)
        ),
        "Only one head comes back: all of them belong into the result.": (
            x.reshape(2, 4, 3, 2).transpose(0, 2, 1, 3)[:, :1]
        ),
    }
    return which_formula(lambda: split_heads(Tensor(x), 3).data, ways)()


def through(layer, x):
    return x @ layer.weight.data + layer.bias.data


def out(layer, x):
    return layer.out(Tensor(x)).data


def parts(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def together(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


class Earlier:
    """A stand-in for a Cache with some places in it."""

    def __init__(self, key, value):
        self.key, self.value, self.calls = key, value, 0

    def __len__(self):
        return self.key.shape[2]

    def add(self, key, value):
        self.key, self.value = (
            np.concatenate([old, new.data], 2) for old, new in ((self.key, key), (self.value, value))
        )
        self.calls += 1
        return Tensor(self.key), Tensor(self.value)


def self_attention(width, heads):
    return filled(CausalSelfAttention(width, heads, rng=np.random.default_rng(0)), 2.0)


def attended(layer, x, earlier=None, masked=True, heads=None, wrong=lambda mixed: together(mixed)):
    """What self-attention gives, in plain NumPy; before the last layer."""
    heads = heads or layer.heads
    query, key, value = (parts(through(part, x), heads) for part in (layer.query, layer.key, layer.value))
    if earlier:
        key, value = np.concatenate([earlier[0], key], 2), np.concatenate([earlier[1], value], 2)
    n, m = query.shape[2], key.shape[2]
    return wrong(by_hand(query, key, value, np.triu(np.full((n, m), -np.inf), m - n + 1) if masked else None))


def check_layer(layer, x, earlier, what):
    """earlier  keys and values of two places before those of x, or None"""
    look, wanted = look_at_layer(layer, x, earlier), out(layer, attended(layer, x, earlier))
    call = lambda: explained(lambda: result(attend(layer, x, earlier), "CausalSelfAttention"), look)  # noqa: E731
    told = "It is right in training and not in eval mode: what the mask forbids is forbidden in both."
    check_module(call, wanted, f"{what}:\nthe result", look, lambda: told, during="layer(x)", layer=layer, x=x)


def check_module(call, wanted, what, look, in_eval_mode=None, *, during, x, **module):
    """What a module gives, twice in training and once in eval mode, where nothing may change: no dropout draws there.

    in_eval_mode  the cause if it is right in training alone
    module        by the name that messages give it
    """
    (one,) = module.values()
    one.eval()
    try:
        with nothing_else_changes(during, x=x, **module):
            found = call()
    finally:
        one.train()
    check_twice(call, wanted, what, probe=look, x=x)
    before, _, behind = what.rpartition(":")
    check_close(found, wanted, f"{before}, in eval mode:{behind}", probe=in_eval_mode)


def attend(layer, x, earlier):
    return layer(x, Earlier(*earlier) if earlier else None)


def look_at_layer(layer, x, earlier):
    def look():
        wanted = out(layer, attended(layer, x, earlier))
        unmasked = (
            "With a cache the mask is not used" if earlier and masked_without(layer, x) else "The mask is not used"
        )
        ways = {
            f"{unmasked}: every place sees all the others.": out(layer, attended(layer, x, earlier, masked=False)),
            "The last layer, self.out, is missing.": attended(layer, x, earlier),
            "The heads were put into the shape of x without changing places: merge_heads is given.": out(
                layer, attended(layer, x, earlier, wrong=lambda found: found.reshape(x.shape))
            ),
            "x was added. That is what the block does, in 12.5.": wanted + x,
            "The last layer is to work on what the heads have found, and not on x.": out(layer, x),
        }
        return which_formula(lambda: attend(layer, x, earlier).data, ways)()

    return first_that_tells(look, lambda: which_arguments(layer, x, earlier))


def masked_without(layer, x):
    """Is it right where there is no cache?"""
    return np.allclose(layer(x).data, out(layer, attended(layer, x)))


def which_arguments(layer, x, earlier):
    """Watch what is given to causal_mask, attention and merge_heads."""
    given, ended, cache = {}, set(), Earlier(*earlier) if earlier else None

    def watched(name, function):
        def call(*arguments, **named):
            given[name] = (*arguments, *named.values())
            found = function(*arguments, **named)
            ended.add(name)
            return found

        return call

    before = {name: getattr(transformer, name) for name in ("causal_mask", "attention", "merge_heads")}
    try:
        for name, function in before.items():
            setattr(transformer, name, watched(name, function))
        layer(x, cache)
    except Exception:
        pass  # what was given before it failed is what counts
    finally:
        for name, function in before.items():
            setattr(transformer, name, function)
    query, key, value = (parts(through(part, x), layer.heads) for part in (layer.query, layer.key, layer.value))
    if earlier:
        key, value = np.concatenate([earlier[0], key], 2), np.concatenate([earlier[1], value], 2)
    sizes = query.shape[2], key.shape[2]
    if any(not isinstance(size, int | np.integer) for size in given.get("causal_mask", ())):
        return "causal_mask takes two numbers, of rows and of columns: they are in the shapes of query and key."
    if earlier and cache.calls > 1:
        return "The new keys and values came into the cache twice: the lines above have put them there."
    if "attention" not in given:
        return "attention is never called."
    if "causal_mask" in given and given["causal_mask"] != sizes:
        asked = ", ".join(map(str, given["causal_mask"]))
        return (
            f"causal_mask was asked for ({asked}), expected {sizes}: there are {sizes[0]} queries and {sizes[1]} keys, "
            "and the places are axis 2 of both."
        )
    for name, wanted, found in zip(("query", "key", "value"), (query, key, value), given["attention"]):
        if found is getattr(layer, name):
            return f"self.{name} is the layer. What it makes of x is `{name}`, in the lines above."
        if wanted.shape != found.shape or not np.allclose(wanted, found.data):
            return f"What attention gets as {name} is not `{name}` of the lines above. Its order is query, key, value."
    if callable(given["attention"][-1]):
        return "attention gets the function causal_mask itself as mask. It has to be called, with two numbers."
    if len(given["attention"]) == 3 and "causal_mask" in given:
        return "attention does not get the mask: it is its fourth argument."
    if "attention" not in ended:
        return None
    if "merge_heads" not in given:
        return "The heads stand apart: merge_heads puts their pieces beside each other, and self.out comes after it."
    if given["merge_heads"][0].shape != query.shape[:3] + value.shape[3:]:
        return "merge_heads takes what attention gives, and self.out comes after it."
    return None


class Recorder:
    """A stand-in for a layer or a block that gives back its input, and remembers the caches it was given."""

    def __init__(self):
        self.caches = []

    def __call__(self, x, cache=None):
        self.caches.append(cache)
        return x

    forward = __call__


def kind_of_cache(given, caches):
    if given is None:
        return "no cache"
    if given is caches:
        return "the list of all caches"
    return f"caches[{caches.index(given)}]" if given in caches else f"a {type(given).__name__}"


def stand_in_block():
    block = Block(4, 2, rng=np.random.default_rng(0))
    block.attention = Recorder()
    return block


def silent_block():
    """A block whose two branches give 0."""
    block = Block(4, 2, rng=np.random.default_rng(0))
    for layer in (block.attention.out.children()["0"], block.mlp.children()["2"]):
        layer.weight.data[...] = 0.0
    return block


def which_past():
    """If both branches give 0, the gradient goes through as it is, or what goes past them has no past."""
    x = Tensor(numbers(1, 3, 4))
    silent_block()(x).backward()
    return (
        None if x.grad.any() else "What goes past the branches brings no gradient back: is there a .data in the sums?"
    )


def normal(x, norm):
    distance = x - x.mean(-1, keepdims=True)
    scaled = distance / np.sqrt((distance * distance).mean(-1, keepdims=True) + 1e-5)
    return scaled * norm.weight.data + norm.bias.data


def random_block():
    return filled(Block(4, 2, rng=np.random.default_rng(0)))


def branches(block):
    """Both branches of a block on plain arrays: the learner's layers, each for itself."""
    return (lambda z: block.attention(Tensor(z)).data), (lambda z: block.mlp(Tensor(z)).data)


def check_block(x, cache, what):
    block = random_block()
    block.train()
    attend, think = branches(block)
    y = x + attend(normal(x, block.norm1))
    wanted = y + think(normal(y, block.norm2))
    look, given = first_that_tells(probe_of_block(x), which_takes_a_cache), Tensor(x)
    call = lambda: explained(lambda: result(block(given, cache), "Block"), look)  # noqa: E731
    check_module(call, wanted, f"{what}:\nthe result", look, during="block(x)", block=block, x=given)


def which_takes_a_cache():
    try:
        random_block()(Tensor(numbers(1, 2, 4)))
    except TypeError as error:
        if "positional argument" in str(error) and "Sequential" in str(error):
            return "Only attention takes the cache: the two layers work on each place alone."
        if "positional argument" in str(error) and "LayerNorm" in str(error):
            return "Only attention takes the cache. The norm's bracket closes before it."
    return None


def probe_of_block(x):
    def look():
        block = random_block()
        attend, think = branches(block)
        norm1, norm2 = (lambda z: normal(z, block.norm1)), (lambda z: normal(z, block.norm2))
        y = x + attend(norm1(x))
        ways = {
            "The second branch is missing: what the two layers make of it.": y,
            "The first branch is missing: what attention makes of x.": x + think(norm2(x)),
            "What goes past the branches is missing: both are added to what was there.": think(norm2(attend(norm1(x)))),
            "What goes past the second branch is missing: it is added to what was there.": think(norm2(y)),
            "What goes past the first branch is missing: it is added to x.": attend(norm1(x))
            + think(norm2(attend(norm1(x)))),
            "norm1 is missing: attention sees x normalized.": (x + attend(x)) + think(norm2(x + attend(x))),
            "norm2 is missing: the two layers see their input normalized.": y + think(y),
            "Both norms are missing: each branch sees its input normalized.": (x + attend(x)) + think(x + attend(x)),
            "Each norm stands after the sum. It belongs before its branch.": norm2(
                norm1(x + attend(x)) + think(norm1(x + attend(x)))
            ),
            "The norms come after the branches. They belong before them.": (x + norm1(attend(x)))
            + norm2(think(x + norm1(attend(x)))),
            "The second branch works on x. It is to work on what the first one has left.": y + think(norm2(x)),
            "The second branch is added to x, and the first is lost.": x + think(norm2(y)),
            "What goes past is normalized too: only the branch sees it normalized.": (norm1(x) + attend(norm1(x)))
            + think(norm2(norm1(x) + attend(norm1(x)))),
            "What goes past is normalized too. Only the branches see it normalized.": norm2(norm1(x) + attend(norm1(x)))
            + think(norm2(norm1(x) + attend(norm1(x)))),
            "norm1 stands before both branches: the second one is norm2's.": y + think(norm1(y)),
            "The two layers come first. Attention is the first branch.": (x + think(norm2(x)))
            + attend(norm1(x + think(norm2(x)))),
            "The second branch is self.mlp, and not attention once more.": y + attend(norm2(y)),
            "x is added twice: what the first branch has left holds it already.": x + y + think(norm2(y)),
            "norm1 and norm2 have changed places.": (x + attend(norm2(x))) + think(norm1(x + attend(norm2(x)))),
            "norm2 stands before both branches: the first one is norm1's.": (x + attend(norm2(x)))
            + think(norm2(x + attend(norm2(x)))),
            "norm2 stands after the second sum. It belongs before its branch.": norm2(y + think(y)),
            "norm1 stands after the first sum. It belongs before its branch.": norm1(x + attend(x))
            + think(norm2(norm1(x + attend(x)))),
            "Both branches work on norm1(x). The second one begins with what the first has left.": y + think(norm1(x)),
            "What the branches make is subtracted, and not added.": (x - attend(norm1(x)))
            - think(norm2(x - attend(norm1(x)))),
            "What the branches make is multiplied with x, and not added to it.": x
            * attend(norm1(x))
            * think(norm2(x * attend(norm1(x)))),
        }
        return which_formula(lambda: block(x).data, ways)()

    return look


def through_blocks(model, x):
    for block in model.blocks:
        x = block(Tensor(x)).data
    return x


def which_end():
    """Models as wide as they have characters, or places: what goes wrong with shapes elsewhere has a result here."""
    model, ids = filled(Transformer(4, 4, 4, 2, 0)), np.array([[3, 1, 0, 2]])
    numbered = normal(model.embedding.weight.data[ids] + np.arange(4), model.norm) @ model.embedding.weight.data.T
    if np.allclose(model(ids).data, numbered):
        return "`places` are only the numbers of the places: self.positions(places) has the rows."
    model, ids = filled(Transformer(4, 4, 4, 2, 1)), np.array([[0, 1, 1, 0]])
    table, places = model.embedding.weight.data, model.positions.weight.data
    x = through_blocks(model, table[ids] + places)
    ways = {
        "The table has to be turned around: a score is a product with one of its rows.": normal(x, model.norm) @ table,
        "The norm comes before the product with the table.": normal(x @ table.T, model.norm),
        "The scores are products with the rows of all characters, and not only with those in the text.": (
            normal(x, model.norm) @ table[ids].swapaxes(1, 2)
        ),
        "The scores are products with the table of the characters, and not with that of the places.": (
            normal(x, model.norm) @ places.T
        ),
        "These are the scores of the last place alone. Every place guesses what comes next.": (
            normal(x, model.norm) @ table.T
        )[:, -1],
    }
    return which_formula(lambda: model(ids).data, ways)()


def which_way_in():
    """What is looked up in which of the two tables?"""
    model, ids = filled(Transformer(7, 7, 4, 2, 1)), np.array([[0, 2, 1]])
    table, rows = model.embedding.weight.data, model.positions.weight.data
    ways = {
        "`places` is added to the numbers of the characters. It is the rows of both that are added.": (
            table[ids + np.arange(3)]
        ),
        "self.positions takes `places` as they are: the first place is 0.": table[ids] + rows[1:4],
    }
    ways = {way: normal(through_blocks(model, x), model.norm) @ table.T for way, x in ways.items()}
    return which_formula(lambda: model(ids).data, ways)()


def which_error_of_model():
    """Does it stop with an error where a text is shorter than the model, or where scores are asked for?"""
    model = small_model(1)
    try:
        model(np.array([[0, 1, 2]]))
    except TypeError as error:
        if "takes integers" in str(error):
            return "Only ids go into self.embedding. The way out is a product with its table, self.embedding.weight."
    except ValueError:
        full = np.array([[3, 1, 4, 1, 5, 0, 2, 2]])
        if np.allclose(model(full).data, model_by_hand(model, full)):
            return "It works for a text that fills the model: added are the rows of `places`, and not the whole table."
    return None


def model_by_hand(model, ids, past=0, places=True, norm=True):
    x = model.embedding.weight.data[np.array(ids)]
    if places:
        x = x + model.positions.weight.data[past : past + x.shape[1]]
    x = through_blocks(model, x)
    x = normal(x, model.norm) if norm else x
    return x @ model.embedding.weight.data.T


def check_model(model, ids, what):
    look = look_at_model(model, ids)
    ids = np.array(ids)
    call = lambda: explained(lambda: result(model(ids), "Transformer"), look)  # noqa: E731
    wanted = model_by_hand(model, ids)
    check_module(call, wanted, f"{what}:\nwhat comes back", look, during="model(ids)", model=model, x=ids)


def look_at_model(model, ids):
    return first_that_tells(probe_of_model(model, ids), which_way_in, which_end, which_error_of_model, which_caches)


def which_caches():
    """Watch what two blocks are given as their caches."""
    model, blocks = small_model(2), [Recorder(), Recorder()]
    model.blocks = blocks
    try:
        model(np.array([[3, 1]]))
    except ValueError as error:
        return "zip(self.blocks, caches) gives a block and its cache at a time." * ("unpack" in str(error))
    except TypeError as error:
        if "Embedding" in str(error):
            return "self.embedding is a module. The table in it is self.embedding.weight."
    if any(cache in blocks for block in blocks for cache in block.caches):
        return "A block was given another block as its cache: zip(self.blocks, caches) gives a block and its cache."
    return None


def probe_of_model(model, ids):
    def look():
        table, rows = model.embedding.weight.data, model.embedding.weight.data[np.array(ids)]
        places = model.positions.weight.data[: rows.shape[1]]
        width = table.shape[1]
        ways = {
            "The places are missing: a row of self.positions is added to each character's.": model_by_hand(
                model, ids, places=False
            ),
            "The last norm is missing.": model_by_hand(model, ids, norm=False),
            "self.positions was asked for the rows of the ids. Its rows are those of `places`.": normal(
                through_blocks(model, rows + model.positions.weight.data[np.array(ids)]), model.norm
            )
            @ table.T,
            "The places are multiplied, and not added.": normal(through_blocks(model, rows * places), model.norm)
            @ table.T,
            "These are no scores yet: the product with the table, turned around, is missing.": normal(
                through_blocks(model, rows + places), model.norm
            ),
            "Softmax is part of the loss. The scores come out as they are.": softmax_by_hand(model_by_hand(model, ids)),
            "The blocks are not used.": normal(rows + places, model.norm) @ table.T,
            "The rows of the table are scaled on the way in. They are added as they are.": normal(
                through_blocks(model, rows * width**0.5 + places), model.norm
            )
            @ table.T,
            "The scores are scaled. That belongs to attention, in 12.1.": model_by_hand(model, ids) / width**0.5,
        }
        if len(model.blocks) > 1:
            first, second = (lambda z, block=block: block(Tensor(z)).data for block in model.blocks)
            x = rows + places
            norm = lambda z: normal(z, model.norm)  # noqa: E731
            after = {
                "Only one of the blocks is used.": norm(first(x)),
                "Each block works on the embedding. It is to work on what the block before has left.": norm(second(x)),
                "Every time it is the first block that is called.": norm(first(first(x))),
                "The last norm is the model's own, self.norm, and not that of a block.": normal(
                    second(first(x)), model.blocks[-1].norm2
                ),
                "The blocks are called from the last to the first.": norm(first(second(x))),
                "The norm comes after the last block, and not after each.": norm(second(norm(first(x)))),
                "The norm comes after the blocks, and not before them.": second(first(norm(x))),
                "x is added to what a block gives. The block has done so itself.": norm(
                    x + first(x) + second(x + first(x))
                ),
            }
            ways.update({way: z @ table.T for way, z in after.items()})
        if not len(model.blocks):
            ways.pop("The blocks are not used.")
        return which_formula(lambda: model(np.array(ids)).data, ways)()

    return look


def check_probabilities(scores, temperature, top_k, wanted, shown):
    scores = np.array(scores)

    def call():
        with np.errstate(all="ignore"):
            return explained(lambda: probabilities(scores, temperature, top_k), which_k)

    found = call()
    what = f"probabilities({shown}, temperature={temperature}" + (f", top_k={top_k})" if top_k else ")")
    if isinstance(found, Tensor | list):
        raise CheckFailed(f"{what} is a {type(found).__name__}", "Scores and probabilities are NumPy arrays.")
    scores = np.array(scores)
    check_twice(call, np.array(wanted), what, probe=first_that_tells(which_temperature, which_k))


def by_temperature(scores, temperature):
    return softmax_by_hand(np.asarray(scores) / temperature)


def which_temperature():
    scores = np.array([0.5, 2.0, 1.0, -1.0])
    plain, wanted = probabilities(scores.copy(), 1.0), softmax_by_hand(scores)
    if np.shape(plain) == ():
        return "That is a single number. To draw one is up to `generate`: the probabilities of all are asked for."
    ways = {
        "These are no probabilities yet: softmax is missing.": scores,
        "These do not add up to 1: they have to be divided by their sum.": np.exp(scores),
        "These do not add up to 1. They have to be divided by their sum.": np.exp(scores - 2.0),
        "They are divided by their number, and not by their sum.": np.exp(scores - 2.0) / 4.0,
        "These are the logarithms of the probabilities: exp is missing.": np.log(wanted),
        "Softmax is taken twice.": softmax_by_hand(wanted),
        "// divides without a rest: the temperature divides with /.": softmax_by_hand(scores // 1.0),
    }
    named = which_formula(lambda: plain, ways)()
    if named or not np.allclose(plain, wanted):
        return named
    with np.errstate(all="ignore"):
        if not np.isfinite(probabilities(np.array([5000.0, 0.0, 0.0]), 1.0)).all():
            return "exp overflows: subtract the largest first, as in chapter 04."
        if not np.isfinite(probabilities(np.array([5000.0, 0.0, 0.0]), 0.5)).all():
            return "The largest is subtracted before the division. exp overflows unless it is the largest after it."
    ways = {
        "The temperature is not used: at 2 the probabilities are those of 1.": wanted,
        "The scores are multiplied by the temperature, and not divided.": softmax_by_hand(scores * 2.0),
        "The scores are divided by the temperature twice.": by_temperature(scores, 4.0),
        "The probabilities are divided by the temperature. Divide the scores, before softmax.": wanted / 2.0,
        "The probabilities are taken to a power, and do not add up to 1 any more.": wanted**0.5,
        "// divides without a rest: the temperature divides with /.": softmax_by_hand(scores // 2.0),
    }
    return which_formula(lambda: probabilities(scores.copy(), 2.0), ways)()


def which_k():
    """The 3 best of eight are those from 1 on."""
    scores = np.array([0.5, 2.25, 1.5, -1.0, 1.0, -0.25, 0.75, 0.0])
    whole = softmax_by_hand(scores)
    try:
        probabilities(scores.copy(), 1.0, None)
    except TypeError:
        return "It works with top_k and not without: None is no number, and all are left then."

    def left(at_least):
        return softmax_by_hand(np.where(scores >= at_least, scores, -np.inf))

    ways = {
        "top_k is not used: all of them are left.": whole,
        "What is left does not add up to 1: leave out the scores before softmax.": np.where(scores >= 1.0, whole, 0.0),
        "The least likely are left, and the likeliest left out.": softmax_by_hand(
            np.where(scores <= 0.0, scores, -np.inf)
        ),
        "One too many is left: exactly k of them.": left(0.75),
        "One too few is left: exactly k of them.": left(1.5),
        "Only the likeliest is left, whatever k is.": left(2.25),
        "The first k are left, and not the k likeliest.": softmax_by_hand(np.where(np.arange(8) < 3, scores, -np.inf)),
        "What is left out has got the score 0, and that is a score like any other: -inf is none.": softmax_by_hand(
            np.where(scores >= 1.0, scores, 0.0)
        ),
    }
    with np.errstate(all="ignore"):
        one, found = (probabilities(scores.copy(), 1.0, k) for k in (1, 3))
    if np.shape(one) == scores.shape and np.allclose(one, left(-0.5)):
        return "With top_k=1 a single one is left out. It is the number of those that are left."
    if np.shape(found) == (3,):
        return "Only the k likeliest come back: the others stay, with probability 0, so that each keeps its number."
    if np.shape(found) == (8,) and (np.diff(found) >= 0.0).all() and not found[:5].any():
        return "The probabilities come sorted: each belongs to the place of its score."
    named = which_formula(lambda: found, ways)()
    if named or not np.allclose(found, left(1.0)):
        return named
    warm, cold = (probabilities(scores.copy(), temperature, 3) for temperature in (2.0, 0.5))
    if np.allclose(warm, found):
        return "With top_k the temperature is not used."
    if (warm > 0.0).sum() != 3 or (cold > 0.0).sum() != 3:
        return "The k-th best score is taken before the temperature, and compared with the scores after it."
    return None


WRITTEN = "The scores belong to others too: compute new arrays."


def check_added(cache, key, value, wanted_key, wanted_value, what):
    both = explained(lambda: cache.add(key, value), which_cache)
    if not (isinstance(both, tuple | list) and len(both) == 2):
        raise CheckFailed(
            f"{what} has returned {type(both).__name__}, expected a pair: all keys and all values",
            "Nothing comes back: is there a return?" if both is None else None,
        )
    for name, found, kept, wanted in (
        ("keys", both[0], cache.key, wanted_key),
        ("values", both[1], cache.value, wanted_value),
    ):
        check_close(result(found, "add"), wanted, f"{what}:\nwhat comes back as {name}", probe=which_cache)
        if kept is None:
            raise CheckFailed(f"{what}:\nself.{name[:-1]} is None afterwards, expected the {name}", NOT_KEPT)
        if not isinstance(kept, Tensor):
            message = f"{what}:\nself.{name[:-1]} is of type {type(kept).__name__}, expected a Tensor"
            raise CheckFailed(message, "What is kept as an array has no past: keep the Tensors themselves.")
        check_close(kept.data, wanted, f"{what}:\nself.{name[:-1]}", probe=which_is_kept)


NOT_KEPT = "Not kept: the next call finds self.key and self.value as this one leaves them."


def which_is_kept():
    cache, key, value = Cache(), numbers(1, 2, 2, 2), numbers(1, 2, 2, 2) + 5.0
    cache.add(Tensor(key), Tensor(value))
    if np.array_equal(cache.key.data, value) and np.array_equal(cache.value.data, key):
        return "What is kept has changed places: self.key holds the values."
    return NOT_KEPT


CACHE_HAS = set(vars(Cache))


def which_cache():
    if set(vars(Cache)) != CACHE_HAS:
        shared = ", ".join(sorted(set(vars(Cache)) - CACHE_HAS))
        return f"What is kept belongs to all caches: Cache.{shared}. What one cache knows is kept in its own self."
    cache, first, second = Cache(), numbers(1, 2, 2, 2), numbers(1, 2, 2, 2) + 5.0
    try:
        both = cache.add(Tensor(first), Tensor(first + 10.0))
    except Exception:
        return "In the first call there is nothing before the new ones: self.key and self.value are None."
    if cache.key is None:
        return "Nothing is kept in self.key and self.value, where the next call looks for it."
    returned = both[0] if isinstance(both, tuple | list) and both else cache.key
    if 4 in (cache.key.shape[2], returned.shape[2]):
        return "In the first call the new ones are put behind themselves: they are all there is, and are kept alone."
    try:
        both = cache.add(Tensor(second), Tensor(second + 10.0))
    except TypeError as error:
        if "NumPy's functions" in str(error):
            return "NumPy's concatenate takes arrays. Chapter 11's is imported: it is called by its name alone."
        if "concatenate" in str(error) and "positional argument" in str(error):
            return "concatenate takes a list of Tensors: concatenate([old, new], axis)."
        raise
    if both is None:
        return "Nothing comes back: is there a return?"
    if not (isinstance(both, tuple | list) and len(both) == 2):
        return "add returns a pair: all keys and all values."
    key, value = (np.asarray(one.data) for one in both)
    ways = (
        *(
            (
                f"They are put together along axis {axis}, {name}. The places are axis 2.",
                tuple(np.concatenate([first + add, second + add], axis) for add in (0.0, 10.0)),
            )
            for axis, name in ((0, "the texts"), (1, "the heads"), (3, "the numbers of a row"))
        ),
        (
            "The old keys are put in front of the new ones, and the old values are not.",
            (np.concatenate([first, second], 2), second + 10.0),
        ),
        ("Only the new ones come back: those from before are missing.", (second, second + 10.0)),
        ("Only those from before come back: the new ones are missing.", (first, first + 10.0)),
        (
            "The new ones stand before the old ones: a text grows at its end.",
            tuple(np.concatenate([second + add, first + add], 2) for add in (0.0, 10.0)),
        ),
        (
            "The old and the new ones are added up. They are put one behind the other.",
            (first + second, first + second + 20.0),
        ),
        (
            "The keys come back twice, and the values not at all.",
            tuple(np.concatenate([first, second], 2) for _ in range(2)),
        ),
        (
            "Keys and values have changed places.",
            tuple(np.concatenate([first + add, second + add], 2) for add in (10.0, 0.0)),
        ),
        (
            "The values have been put behind the keys.",
            (np.concatenate([first, second], 2), np.concatenate([first, second + 10.0], 2)),
        ),
    )
    for way, wanted in ways:
        if all(found.shape == one.shape and np.allclose(found, one) for found, one in zip((key, value), wanted)):
            return way
    for one in (first, second, first):
        last = cache.add(Tensor(one), Tensor(one))[0]
    if last.shape[2] != 10:
        return "What comes back is not all kept: with every call there have to be more places."
    return None


# The harder suite: python grader.py 12 --goal


@pytest.mark.goal
@pytest.mark.task("12.1")
def test_goal_attention_matches_central_differences_with_every_mask():
    masks = {"no mask": None, "a causal mask": np.triu(np.full((3, 4), -np.inf), 2), "a mask of numbers": numbers(3, 4)}
    for name, mask in masks.items():
        for stack in ((), (2,), (2, 1)):
            arrays = [numbers(*stack, 3, 2), numbers(*stack, 4, 2) - 0.5, numbers(*stack, 4, 5)]
            what = f"attention with {name}"
            check_gradient(lambda *them, mask=mask: attention(*them, mask), *arrays, name=what, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("12.1")
def test_goal_attention_is_what_numpy_computes_for_many_shapes():
    for n, m, width, v in ((1, 1, 1, 1), (1, 7, 3, 2), (6, 6, 5, 5), (4, 9, 2, 3), (3, 2, 8, 1)):
        query, key, value = numbers(2, n, width) * 3.0, numbers(2, m, width) * 3.0 + 0.5, numbers(2, m, v)
        for mask in (None, np.triu(np.full((n, m), -np.inf), max(m - n, 0) + 1)):
            wanted = by_hand(query, key, value, mask)
            check_attention(query, key, value, mask, wanted, f"{n} queries, {m} keys of width {width}, values of {v}")
    for size in (1e3, 1e5):
        query, key = np.array([[size, 0.0]]), np.array([[size, 0.0], [0.0, 0.0]])
        check_attention(query, key, [[1.0], [2.0]], None, [[1.0]], f"queries and keys of size {size:g}")


@pytest.mark.goal
@pytest.mark.task("12.2")
def test_goal_masks_of_every_size():
    for m in range(1, 9):
        for n in range(1, m + 1):
            wanted = [[0.0 if place <= m - n + row else -np.inf for place in range(m)] for row in range(n)]
            check_mask(n, m, wanted)


@pytest.mark.goal
@pytest.mark.task("12.3")
def test_goal_heads_of_every_number_and_shape():
    for batch, length, width, heads in ((1, 1, 1, 1), (3, 1, 6, 2), (1, 5, 6, 3), (2, 4, 12, 4), (2, 3, 5, 5)):
        x = np.arange(1.0, batch * length * width + 1.0).reshape(batch, length, width)
        check_split(batch, length, width, heads, parts(x, heads))
        name = f"split_heads(x, {heads})"
        check_gradient(lambda x, heads=heads: split_heads(x, heads), x / x.size, name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("12.4")
def test_goal_self_attention_matches_central_differences():
    for width, heads, shape in ((4, 2, (2, 3, 4)), (3, 3, (1, 5, 3)), (6, 1, (1, 1, 6))):
        layer = self_attention(width, heads)
        name = f"CausalSelfAttention({width}, heads={heads})"
        check_gradient(lambda x, layer=layer: layer(x), numbers(*shape), name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("12.5")
def test_goal_a_block_matches_central_differences_and_keeps_float32():
    block = random_block()
    check_gradient(lambda x: block(x), numbers(2, 3, 4), name="Block(4, heads=2)", make=Tensor)
    out = Block(4, 2, dtype=np.float32)(numbers(1, 2, 4).astype(np.float32))
    if out.dtype != np.float32:
        raise CheckFailed(f"a float32 Block gives {out.dtype}", "Numbers were promoted on the way.")


@pytest.mark.goal
@pytest.mark.task("12.6")
def test_goal_every_weight_of_a_model_has_the_slope_of_a_central_difference():
    model, ids, labels = small_model(1), np.array([[3, 1, 4], [1, 5, 3]]), np.array([[1, 4, 1], [5, 3, 0]])
    cross_entropy(model(ids), labels).backward()
    for name, parameter in dict(model.named_parameters()).items():
        numeric = np.empty_like(parameter.data)
        for place in np.ndindex(parameter.shape):
            before, ends = parameter.data[place], []
            for step in (1e-6, -1e-6):
                parameter.data[place] = before + step
                ends.append(cross_entropy(model(ids), labels).item())
            parameter.data[place] = before
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        what = f"the loss of a small Transformer:\n{name}.grad (against a central difference)"
        check_close(np.asarray(parameter.grad), numeric, what, tolerance=1e-5)


@pytest.mark.goal
@pytest.mark.task("12.6")
def test_goal_models_of_every_depth_and_length():
    for blocks in (0, 1, 3):
        model = small_model(blocks)
        for ids in ([[0]], [[5, 4, 3, 2, 1, 0, 1, 2]], [[1, 1], [2, 2], [3, 3]]):
            check_model(model, ids, f"a Transformer of {blocks} blocks, for {len(ids)} texts of {len(ids[0])}")


@pytest.mark.goal
@pytest.mark.task("12.7")
def test_goal_probabilities_for_many_scores():
    for n in (1, 2, 7, 50):
        scores = np.random.default_rng(n).standard_normal(n) * 5.0
        order = np.argsort(-scores)
        for temperature in (0.05, 0.7, 1.0, 3.0, 100.0):
            for k in {1, min(2, n), n, None}:
                left = np.full(n, -np.inf)
                left[order[:k]] = scores[order[:k]]
                what = f"{n} random scores"
                check_probabilities(scores, temperature, k, by_temperature(left, temperature), what)


@pytest.mark.goal
@pytest.mark.task("12.8")
def test_goal_a_text_cut_anywhere_gives_the_same_scores():
    model, ids = small_model(3), np.array([[3, 1, 4, 1, 5, 0, 2, 2], [0, 0, 5, 4, 3, 2, 1, 1]])
    whole = model(ids).data
    for first in range(1, 8):
        for second in range(first, 8):
            caches = [Cache() for _ in model.blocks]
            cuts = [(0, first), (first, second), (second, 8)]
            pieces = [model(ids[:, start:end], caches).data for start, end in cuts if end > start]
            what = f"eight characters, cut at {first} and {second}, read with a cache:\nthe scores"
            check_close(np.concatenate(pieces, 1), whole, what)
