"""The checks of chapter 11: python grader.py 11"""

import math
import tracemalloc

import numpy as np
import pytest

from meintorch import embedding
from meintorch.data import load_words
from meintorch.embedding import Embedding, concatenate, embed, index, scatter_add, stack, where
from meintorch.losses import mse_loss
from meintorch.normalization import gelu, layer_norm, normalize, var
from meintorch.optim import Adam
from meintorch.tensor import Tensor
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    check_freed,
    check_gradient,
    check_rule,
    check_twice,
    explained,
    first_that_tells,
    nothing_else_changes,
    which_formula,
)

RELATED = (
    ("true", "false"),
    ("two", "three"),
    ("left", "right"),
    ("keys", "values"),
    ("key", "value"),
    ("positional", "keyword"),
    ("local", "global"),
    ("instance", "class"),
    ("except", "finally"),
    ("break", "continue"),
)


@pytest.mark.task("11.4")
def test_words_that_stand_together_in_a_text_end_up_close_together():
    """Nobody has said what they mean. With random vectors, about 1 of 20 partners would be among the nearest 20."""
    words, vectors = learned_words()
    near = sum(partner in nearest(words, vectors, word) for word, partner in RELATED)
    if near < 8:
        raise CheckFailed(
            f"of ten pairs such as true and false, {near} have come close to each other, expected 8 at least: after "
            "300 steps the second word is to be among the 20 nearest of the first, of 400",
            ask(which_rows),
        )


@pytest.mark.task("11.1")
def test_a_place_that_was_picked_twice_gets_both():
    check_picked([10.0, 20.0, 30.0], [0, 2, 0], [1.0, 10.0, 100.0], [101.0, 0.0, 10.0])


@pytest.mark.task("11.1")
def test_rows_of_a_table_collect_what_arrives_at_each_of_their_copies():
    table = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    upstream = [[[1.0, 2.0], [10.0, 20.0]], [[100.0, 200.0], [1000.0, 2000.0]]]
    wanted = [[0.0, 0.0], [1.0, 2.0], [1110.0, 2220.0]]
    check_picked(table, np.array([[1, 2], [2, 2]]), upstream, wanted)


@pytest.mark.task("11.1")
def test_numbers_and_slices_bring_the_gradient_back_to_their_places():
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    check_picked(table, (1, 2), 7.0, [[0.0, 0.0, 0.0], [0.0, 0.0, 7.0]])
    check_picked(table, -1, [1.0, 2.0, 3.0], [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    check_picked(table, (slice(None), slice(1, None)), [[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]])
    check_picked(table, (..., slice(None, None, -2)), [[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.0, 1.0], [4.0, 0.0, 3.0]])


@pytest.mark.task("11.1")
def test_a_mask_brings_the_gradient_back_to_where_it_was_true():
    table = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]])
    check_picked(table, table > 3.0, [1.0, 10.0, 100.0], [[0.0, 1.0, 0.0], [10.0, 0.0, 100.0]])


@pytest.mark.task("11.1")
def test_two_lists_of_places_pick_pairs():
    """Places (0, 2), (1, 0) and (0, 2) once more."""
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    key = (np.array([0, 1, 0]), np.array([2, 0, 2]))
    check_picked(table, key, [1.0, 10.0, 100.0], [[0.0, 0.0, 101.0], [10.0, 0.0, 0.0]])


@pytest.mark.task("11.1")
def test_indexing_adds_to_the_gradient_that_is_there():
    x = Tensor([10.0, 20.0])
    x.grad = np.array([1000.0, 2000.0])
    rule = {"of": "x[[1, 1]]", "probe": which_place}
    check_rule(lambda x: x[[1, 1]], {"x": x}, np.array([1.0, 10.0]), [[1000.0, 2011.0]], **rule)


@pytest.mark.task("11.1")
def test_indexing_keeps_float32():
    x = Tensor(np.float32([10.0, 20.0]))
    x[np.array([1, 1])]._backward(np.float32([1.0, 10.0]))
    check_close(x.grad, np.float32([0.0, 11.0]), "x[[1, 1]] of a float32 tensor: x.grad", probe=which_place)


@pytest.mark.task("11.1")
def test_the_rule_of_indexing_does_not_hold_on_to_its_result():
    check_freed(lambda x: x[[0, 1]], Tensor([1.0, 2.0]), of="x[[0, 1]]")


@pytest.mark.task("11.2")
def test_each_tensor_gets_its_own_piece():
    check_pieces([(2,), (3,)], 0, [1.0, 10.0, 100.0, 1000.0, 10000.0], [[1.0, 10.0], [100.0, 1000.0, 10000.0]])


@pytest.mark.task("11.2")
def test_columns_are_cut_between_columns():
    upstream = [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]
    wanted = [[[1.0], [2.0]], [[10.0, 100.0], [20.0, 200.0]]]
    for axis in (1, -1):
        check_pieces([(2, 1), (2, 2)], axis, upstream, wanted)


@pytest.mark.task("11.2")
def test_three_tensors_are_cut_in_two_places():
    upstream = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    check_pieces([(2, 1), (1, 1), (3, 1)], 0, upstream, [[[1.0], [2.0]], [[3.0]], [[4.0], [5.0], [6.0]]])


@pytest.mark.task("11.2")
def test_a_tensor_that_occurs_twice_gets_both_pieces():
    x, upstream = Tensor([5.0, 6.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    rule = {"of": "concatenate([x, x])", "probe": which_twice}
    check_rule(lambda x: concatenate([x, x]), {"x": x}, upstream, [[101.0, 1010.0]], **rule)


@pytest.mark.task("11.2")
def test_arrays_among_the_tensors_are_constants():
    x, upstream = Tensor(np.float32([5.0])), np.float32([1.0, 10.0, 100.0])
    out = concatenate([[1.0], x, np.array([2.0])])
    out._backward(upstream)
    what = "concatenate([[1.0], x, array]) with x in float32, upstream [1, 10, 100]:\n"
    check_close(out.data, np.float32([1.0, 5.0, 2.0]), f"{what}the result")
    check_close(x.grad, np.float32([10.0]), f"{what}x.grad", probe=which_piece)


@pytest.mark.task("11.2")
def test_concatenating_adds_to_the_gradients_that_are_there():
    a, b = Tensor([1.0]), Tensor([2.0])
    a.grad, b.grad = np.array([100.0]), np.array([200.0])
    rule = {"of": "concatenate([a, b])", "probe": which_piece}
    check_rule(lambda *both: concatenate(both), {"a": a, "b": b}, np.array([1.0, 10.0]), [[101.0], [210.0]], **rule)


@pytest.mark.task("11.2")
def test_the_rule_of_concatenate_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: concatenate([a, b]), Tensor([1.0]), Tensor([2.0]), of="concatenate([a, b])")


@pytest.mark.task("11.3")
def test_rows_with_the_same_number_add_up():
    check_scattered(
        [1, 0, 1], [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], 3, [[10.0, 20.0], [101.0, 202.0], [0.0, 0.0]]
    )


@pytest.mark.task("11.3")
def test_the_table_has_all_its_rows_though_the_last_are_not_asked_for():
    check_scattered([0, 0, 0], [[1.0], [2.0], [4.0]], 4, [[7.0], [0.0], [0.0], [0.0]])
    check_scattered([], np.zeros((0, 2)), 2, [[0.0, 0.0], [0.0, 0.0]])


@pytest.mark.task("11.3")
def test_every_order_of_the_rows_gives_the_same_table():
    ids, rows = np.array([3, 1, 1, 0, 3, 3]), np.array([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]])
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 5, 0, 4, 3, 1]):
        check_scattered(ids[order], rows[order], 5, [[8.0], [6.0], [0.0], [49.0], [0.0]])


@pytest.mark.task("11.3")
def test_scatter_add_keeps_float32():
    found = scattered(np.array([1, 1]), np.float32([[1.0, 2.0], [10.0, 20.0]]), 2)
    check_close(found, np.float32([[0.0, 0.0], [11.0, 22.0]]), "scatter_add of float32 rows", probe=which_sum)


@pytest.mark.task("11.3")
def test_a_large_table_takes_no_more_memory_than_itself_and_the_rows():
    """4,000 rows of 4 numbers, of which 1,000 are asked for."""
    ids, rows = np.arange(0, 4_000, 4), np.ones((1_000, 4))
    scattered(ids[:1], rows[:1], 2)
    tracemalloc.start()
    try:
        scattered(ids, rows, 4_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > 4_000_000:
        raise CheckFailed(
            f"scatter_add of 1,000 rows into a table of 4,000, each of 4 numbers, takes {peak / 1e6:.0f} MB. "
            "The table itself has 0.13 MB",
            "Is there a 0 or a 1 for every pair of an id and a row of the table? For large tables that is too much.",
        )


@pytest.mark.task("11.4")
def test_a_row_collects_the_gradients_of_all_its_words():
    wanted = [[10.0, 20.0], [0.0, 0.0], [101.0, 202.0], [0.0, 0.0]]
    check_embedded([2, 0, 2], [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], wanted)


@pytest.mark.task("11.4")
def test_words_in_two_axes_are_laid_out_in_one_line():
    upstream = [[[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], [[3.0, 4.0], [30.0, 40.0], [300.0, 400.0]]]
    wanted = [[310.0, 420.0], [33.0, 44.0], [101.0, 202.0], [0.0, 0.0]]
    check_embedded([[2, 0, 2], [1, 1, 0]], upstream, wanted)


@pytest.mark.task("11.4")
def test_a_single_word_or_none_is_no_exception():
    check_embedded(3, [1.0, 2.0], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    check_embedded(np.zeros((0, 3), int), np.zeros((0, 3, 2)), np.zeros((4, 2)))


@pytest.mark.task("11.4")
def test_an_embedding_adds_to_the_gradient_that_is_there():
    weight = Tensor(np.zeros((2, 1)))
    weight.grad = np.array([[100.0], [200.0]])
    rule = {"of": "embed(weight, [1, 1])", "probe": which_rows}
    operation, upstream = lambda weight: embed(weight, np.array([1, 1])), np.array([[1.0], [10.0]])
    check_rule(operation, {"weight": weight}, upstream, [[[100.0], [211.0]]], **rule)


@pytest.mark.task("11.4")
def test_an_embedding_in_float32_has_a_gradient_in_float32():
    words = Embedding(3, 2, dtype=np.float32, rng=np.random.default_rng(0))
    out = words([[1, 1]])
    out._backward(np.float32([[[1.0, 2.0], [10.0, 20.0]]]))
    what = "Embedding(3, 2, dtype=float32) at [[1, 1]]: weight.grad"
    check_close(words.weight.grad, np.float32([[0.0, 0.0], [11.0, 22.0], [0.0, 0.0]]), what, probe=which_rows)


@pytest.mark.task("11.4")
def test_the_rule_of_an_embedding_does_not_hold_on_to_its_result():
    check_freed(lambda weight: embed(weight, np.array([0, 1])), Tensor(np.ones((3, 2))), of="embed(weight, [0, 1])")


@pytest.mark.task("11.5")
def test_the_variance_grows_with_twice_the_distance_from_the_mean():
    """1, 2 and 6 have the mean 3: the distances are -2, -1 and 3."""
    check_variance([1.0, 2.0, 6.0], 3.0, [-4.0, -2.0, 6.0])


@pytest.mark.task("11.5")
def test_each_row_or_column_has_its_own_variance():
    table = [[1.0, 2.0, 6.0], [3.0, 8.0, 4.0]]
    rows, columns = [[-4.0, -2.0, 6.0], [-8.0, 12.0, -4.0]], [[-1.0, -30.0, 100.0], [1.0, 30.0, -100.0]]
    for axis, upstream, wanted in ((1, [3.0, 6.0], rows), (0, [1.0, 10.0, 100.0], columns)):
        for keepdims in (False, True):
            arrives = np.expand_dims(upstream, axis) if keepdims else np.array(upstream)
            check_variance(table, arrives, wanted, axis=axis, keepdims=keepdims)


@pytest.mark.task("11.5")
def test_a_correction_changes_what_is_divided_by():
    check_variance([1.0, 2.0, 6.0], 3.0, [-6.0, -3.0, 9.0], correction=1)


@pytest.mark.task("11.5")
def test_equal_numbers_are_at_the_bottom_of_the_variance():
    check_variance([[4.0, 4.0], [4.0, 4.0]], 8.0, [[0.0, 0.0], [0.0, 0.0]])


@pytest.mark.task("11.5")
def test_the_variance_adds_to_the_gradient_that_is_there():
    x = Tensor([1.0, 3.0])
    x.grad = np.array([100.0, 200.0])
    check_rule(var, {"x": x}, np.array(5.0), [[95.0, 205.0]], of="var(x)", probe=which_variance)


@pytest.mark.task("11.5")
def test_the_variance_keeps_float32():
    x = Tensor(np.float32([1.0, 3.0]))
    var(x)._backward(np.array(5.0, np.float32))
    check_close(x.grad, np.float32([-5.0, 5.0]), "var(x) of a float32 tensor: x.grad", probe=which_variance)


@pytest.mark.task("11.5")
def test_the_rule_of_the_variance_does_not_hold_on_to_its_result():
    check_freed(var, Tensor([1.0, 2.0]), of="var(x)")


@pytest.mark.task("11.6")
def test_each_row_gets_mean_zero_and_variance_one():
    """The distances from the mean are 3 in the first row and 2 in the second."""
    z = np.array([[0.0, 0.0, 6.0, 6.0], [1.0, 5.0, 1.0, 5.0]])
    check_normalized(z, 0.0, [[-1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0]], [[1.0 / 3.0], [0.5]])


@pytest.mark.task("11.6")
def test_the_mean_need_not_be_in_the_middle():
    """The mean is 1 and not 0, the distances are -1 three times and 3, the variance 3; eps 1 makes 4."""
    check_normalized(np.array([[0.0, 0.0, 0.0, 4.0]]), 1.0, [[-0.5, -0.5, -0.5, 1.5]], [[0.5]])


@pytest.mark.task("11.6")
def test_eps_is_added_to_the_variance():
    """Variance 1 and eps 3 make 4, and the root of it is 2."""
    check_normalized(np.array([[7.0, 9.0]]), 3.0, [[-0.5, 0.5]], [[0.5]])


@pytest.mark.task("11.6")
def test_a_row_of_equal_numbers_becomes_zeros():
    check_normalized(np.array([[5.0, 5.0, 5.0]]), 0.01, [[0.0, 0.0, 0.0]], [[10.0]])


@pytest.mark.task("11.6")
def test_a_row_far_from_zero_is_as_good_as_one_near_it():
    check_normalized(np.array([[1e8 - 1.0, 1e8 + 1.0], [-1.0, 1.0]]), 0.0, [[-1.0, 1.0], [-1.0, 1.0]], [[1.0], [1.0]])


@pytest.mark.task("11.6")
def test_normalize_keeps_float32():
    z = np.float32([[0.0, 4.0], [3.0, 3.5]])
    check_normalized(z, 0.0, np.float32([[-1.0, 1.0], [-1.0, 1.0]]), np.float32([[0.5], [4.0]]))


@pytest.mark.task("11.7")
def test_x_loses_its_mean_and_its_share_of_the_normal_row():
    """normal is [-1, -1, 1, 1] and scale 1/2: worked out in the text."""
    upstream = np.array([[4.0, 0.0, 0.0, 0.0]])
    wanted = [[[1.0, -1.0, 0.0, 0.0]], [-4.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]]
    check_layer_norm(np.array([[1.0, 1.0, 5.0, 5.0]]), np.ones(4), upstream, wanted)


@pytest.mark.task("11.7")
def test_weight_and_bias_collect_from_every_row():
    x = np.array([[1.0, 1.0, 5.0, 5.0], [2.0, 0.0, 2.0, 0.0]])
    upstream = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]])
    to_x = [[-0.25, 0.25, -0.25, 0.25], [-10.0, -10.0, 10.0, 10.0]]
    check_layer_norm(x, np.ones(4), upstream, [to_x, [9.0, -22.0, 33.0, -36.0], [11.0, 22.0, 33.0, 44.0]])


@pytest.mark.task("11.7")
def test_the_weight_stands_between_what_arrives_and_x():
    weight, upstream = np.array([2.0, 1.0, 1.0, 1.0]), np.array([[2.0, 0.0, 0.0, 0.0]])
    wanted = [[[1.0, -1.0, 0.0, 0.0]], [-2.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]
    check_layer_norm(np.array([[1.0, 1.0, 5.0, 5.0]]), weight, upstream, wanted)


@pytest.mark.task("11.7")
def test_a_row_of_four_different_numbers_has_four_different_slopes():
    """Variance 5 and eps 4 make a deviation of 3, so normal is [-1, -1/3, 1/3, 1]."""
    upstream, slope = np.array([[9.0, 9.0, 0.0, 0.0]]), 3.5 / 3.0
    wanted = [[[0.5, slope, -slope, -0.5]], [-9.0, -3.0, 0.0, 0.0], [9.0, 9.0, 0.0, 0.0]]
    check_layer_norm(np.array([[0.0, 2.0, 4.0, 6.0]]), np.ones(4), upstream, wanted, eps=4.0)


@pytest.mark.task("11.7")
def test_stacks_of_rows_are_rows():
    x = np.array([[[1.0, 1.0, 5.0, 5.0]], [[2.0, 0.0, 2.0, 0.0]]])
    upstream = np.array([[[1.0, 2.0, 3.0, 4.0]], [[10.0, 20.0, 30.0, 40.0]]])
    to_x = [[[-0.25, 0.25, -0.25, 0.25]], [[-10.0, -10.0, 10.0, 10.0]]]
    check_layer_norm(x, np.ones(4), upstream, [to_x, [9.0, -22.0, 33.0, -36.0], [11.0, 22.0, 33.0, 44.0]])
    vector = np.array([1.0, 1.0, 5.0, 5.0])
    check_layer_norm(
        vector, np.ones(4), np.array([4.0, 0.0, 0.0, 0.0]), [[1.0, -1.0, 0.0, 0.0], [-4, 0, 0, 0], [4, 0, 0, 0]]
    )


@pytest.mark.task("11.7")
def test_layer_norm_adds_to_the_gradients_that_are_there():
    inputs = {"x": Tensor([1.0, 1.0, 5.0, 5.0]), "weight": Tensor(np.ones(4)), "bias": Tensor(np.zeros(4))}
    for x in inputs.values():
        x.grad = np.full(4, 100.0)
    wanted = [[101.0, 99.0, 100.0, 100.0], [96.0, 100.0, 100.0, 100.0], [104.0, 100.0, 100.0, 100.0]]
    rule = {"of": "layer_norm(x, weight, bias)", "probe": which_norm}
    check_rule(lambda *three: layer_norm(*three, eps=0.0), inputs, np.array([4.0, 0.0, 0.0, 0.0]), wanted, **rule)


@pytest.mark.task("11.7")
def test_layer_norm_keeps_float32():
    arrays = np.float32([[1.0, 1.0, 5.0, 5.0]]), np.ones(4, np.float32), np.zeros(4, np.float32)
    inputs = [Tensor(array) for array in arrays]
    layer_norm(*inputs, eps=0.0)._backward(np.float32([[4.0, 0.0, 0.0, 0.0]]))
    wanted = [[1.0, -1.0, 0.0, 0.0]], [-4.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]
    for name, x, grad in zip(("x", "weight", "bias"), inputs, wanted):
        what = f"layer_norm of float32 tensors: {name}.grad"
        check_close(x.grad, np.float32(grad), what, tolerance=1e-6, probe=which_norm)


@pytest.mark.task("11.7")
def test_the_rule_of_layer_norm_does_not_hold_on_to_its_result():
    check_freed(
        layer_norm, Tensor([[1.0, 2.0]]), Tensor([1.0, 1.0]), Tensor([0.0, 0.0]), of="layer_norm(x, weight, bias)"
    )


@pytest.mark.task("11.8")
def test_gelu_has_the_slope_that_the_text_measures():
    x = Tensor([-1.0, 1.0, 2.0])
    wanted = [[-0.0829640838457826, 10.829640838457826, 108.60992566236183]]
    check_rule(gelu, {"x": x}, np.array([1.0, 10.0, 100.0]), wanted, of="gelu(x)", probe=which_gelu)


@pytest.mark.task("11.8")
def test_gelu_is_a_line_far_out_and_half_a_line_at_zero():
    x = Tensor([-20.0, 0.0, 20.0])
    check_rule(gelu, {"x": x}, np.array([1.0, 10.0, 100.0]), [[0.0, 5.0, 100.0]], of="gelu(x)", probe=which_gelu)


@pytest.mark.task("11.8")
def test_gelu_adds_to_the_gradient_that_is_there():
    x = Tensor([0.0, 20.0])
    x.grad = np.array([100.0, 200.0])
    check_rule(gelu, {"x": x}, np.array([2.0, 2.0]), [[101.0, 202.0]], of="gelu(x)", probe=which_gelu)


@pytest.mark.task("11.8")
def test_gelu_keeps_float32():
    x = Tensor(np.float32([0.0, 1.0]))
    gelu(x)._backward(np.float32([2.0, 1.0]))
    what = "gelu of a float32 tensor: x.grad"
    check_close(x.grad, np.float32([1.0, 1.0829641]), what, tolerance=1e-6, probe=which_gelu)


@pytest.mark.task("11.8")
def test_the_rule_of_gelu_does_not_hold_on_to_its_result():
    check_freed(gelu, Tensor([1.0, 2.0]), of="gelu(x)")


# The harder suite: python grader.py 11 --goal


def numbers(shape, low=-2.0, high=2.0):
    return np.asarray(np.random.default_rng(sum(shape) + len(shape)).uniform(low, high, shape))


KEYS = {
    (5,): [
        0,
        -1,
        slice(1, 4),
        slice(None, None, -2),
        [1, 1, 4],
        np.array([[0, 4], [4, 4]]),
        None,
        ...,
        [],
        slice(3, 3),
    ],
    (3, 4): [
        1,
        (2, -1),
        (slice(None), 2),
        (..., [0, 0, 3]),
        ([2, 2, 0], [1, 1, 1]),
        (np.array([[0], [2]]), np.array([1, 1, 3])),
        (slice(1, 3), [0, 0]),
        (None, [1, 1]),
        (slice(None), None, [2, 2]),
        np.arange(12).reshape(3, 4) % 3 == 0,
        (np.array([True, False, True]), slice(None, 2)),
        np.zeros((3, 4), bool),
    ],
    (2, 3, 2): [(1, ..., 0), ([0, 1, 1], slice(None), [1, 1, 1]), (slice(None), [2, 0, 2]), ([0, 0], [1, 1], [0, 0])],
    (): [(), None, ...],
    (0, 3): [slice(None), (slice(None), [1, 1])],
}


@pytest.mark.goal
@pytest.mark.task("11.1")
def test_goal_every_kind_of_index_matches_central_differences():
    for shape, keys in KEYS.items():
        for key in keys:
            check_gradient(lambda x, key=key: x[key], numbers(shape), name=f"x[{shown(key)}]", make=Tensor)
    check_gradient(
        lambda x: x[[1, 1, 0]], numbers((4, 6))[::2, ::-3], name="x[[1, 1, 0]], every third column", make=Tensor
    )


@pytest.mark.goal
@pytest.mark.task("11.1")
def test_goal_several_indices_of_one_tensor_add_up():
    check_gradient(
        lambda x: x[0] * x[-1] + x[[1, 1, 2], [0, 0, 1]].sum() * x[:, 1].mean() - x[x.data > 0.0].sum() * x[1, 1:2],
        numbers((3, 3)),
        name="a mixture of x[0], x[[1, 1, 2], [0, 0, 1]], x[:, 1] and x[x > 0]",
        make=Tensor,
    )


@pytest.mark.goal
@pytest.mark.task("11.2")
def test_goal_concatenate_and_stack_match_central_differences_along_every_axis():
    for shapes, axis in (
        ([(3,), (1,), (0,), (2,)], 0),
        ([(2, 3), (1, 3)], 0),
        ([(2, 3), (1, 3)], -2),
        ([(2, 1), (2, 3), (2, 2)], 1),
        ([(2, 1, 2), (2, 3, 2)], -2),
        ([(2, 0), (2, 3)], 1),
        ([(4, 2)], 1),
    ):
        arrays = [numbers(shape) for shape in shapes]
        check_gradient(
            lambda *them, axis=axis: concatenate(them, axis),
            *arrays,
            name=f"concatenate along axis {axis}",
            make=Tensor,
        )
    for axis in (0, 1, 2, -1, -3):
        arrays = [numbers((2, 3)), numbers((2, 3), -1.0, 1.0)]
        check_gradient(
            lambda *them, axis=axis: stack(them, axis), *arrays, name=f"stack along axis {axis}", make=Tensor
        )
    check_gradient(
        lambda x: concatenate([x, x * x, x]), numbers((2, 2)), name="concatenate([x, x * x, x])", make=Tensor
    )


@pytest.mark.goal
@pytest.mark.task("11.3")
def test_goal_scatter_add_is_a_product_with_zeros_and_ones():
    rng = np.random.default_rng(0)
    for k, n, width in ((1, 1, 1), (7, 3, 2), (3, 7, 1), (40, 5, 6), (5, 5, 0), (0, 4, 3), (200, 50, 17)):
        ids, rows = rng.integers(0, n, k), rng.standard_normal((k, width))
        wanted = (np.arange(n)[:, None] == ids).astype(float) @ rows
        what = f"scatter_add of {k} rows of {width} numbers into a table of {n} rows"
        check_close(scattered(ids, rows, n), wanted, what, probe=which_sum)
        check_close(scattered(ids, np.asfortranarray(rows), n), wanted, f"{what}, laid out by columns", probe=which_sum)
    ids, rows = np.zeros(10_000, int), np.full((10_000, 2), 0.1)
    check_close(scattered(ids, rows, 2), np.array([[1000.0] * 2, [0.0] * 2]), "scatter_add of 10,000 rows with id 0")


@pytest.mark.goal
@pytest.mark.task("11.4")
def test_goal_embedding_matches_central_differences():
    for ids in (
        np.array(1),
        np.array([3, 3, 0]),
        np.array([[0, 1, 1], [3, 1, 0]]),
        np.zeros((2, 2, 1), int),
        np.zeros(0, int),
    ):
        check_gradient(lambda w, ids=ids: embed(w, ids), numbers((4, 3)), name=f"embed at {shown(ids)}", make=Tensor)
    check_gradient(
        lambda w: embed(w, np.array([0, 1])) * embed(w, np.array([1, 1])) + w[0],
        numbers((2, 3)),
        name="a table used three times",
        make=Tensor,
    )
    small = np.array([2, 200, 2], np.uint8)
    check_gradient(lambda w: embed(w, small), numbers((201, 2)), name="embed at [2, 200, 2] in uint8", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("11.5")
def test_goal_variance_matches_central_differences_along_every_axis():
    for shape in ((1,), (4,), (2, 3), (3, 1, 2), (2, 3, 4)):
        for axis in (None, *range(-len(shape), len(shape)), tuple(range(len(shape))), (0, -1)[: len(shape)]):
            for keepdims in (False, True):
                check_gradient(
                    lambda x, axis=axis, keepdims=keepdims: var(x, axis, keepdims),
                    numbers(shape),
                    name=f"var over axis {axis}, keepdims {keepdims},",
                    make=Tensor,
                )
    check_gradient(
        lambda x: var(x, 1, correction=1), numbers((2, 3)), name="var over axis 1, correction 1,", make=Tensor
    )
    check_gradient(lambda x: var(x, 1), numbers((0, 3)), name="var over axis 1", make=Tensor)
    check_gradient(var, numbers((4, 6))[::2, ::-3], name="var, every third column", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("11.6")
def test_goal_normalize_is_right_on_many_shapes_and_sizes_of_number():
    for shape in ((1, 2), (3, 5), (0, 3), (4, 1), (2, 64)):
        for size, at in ((1.0, 0.0), (1e-3, 0.0), (1e6, 0.0), (1.0, 1e5)):
            z = numbers(shape) * size + at
            for eps in (1e-5, 0.5):
                distance = z - z.mean(axis=1, keepdims=True)
                scale = 1.0 / np.sqrt((distance**2).mean(axis=1, keepdims=True) + eps)
                found = normalized(z, eps)
                what = f"normalize of numbers of shape {shape}, about {at:g}, eps {eps}:\n"
                check_close(found[0], distance * scale, f"{what}the rows", tolerance=1e-7, probe=which_scale)
                check_close(found[1], scale, f"{what}1 / deviation", tolerance=1e-7, probe=which_scale)
    z = np.asfortranarray(numbers((3, 4)))
    check_close(normalized(z, 0.0)[0], normalized(z.copy(order="C"), 0.0)[0], "normalize of rows laid out by columns")


@pytest.mark.goal
@pytest.mark.task("11.7")
def test_goal_layer_norm_matches_central_differences():
    for shape in ((1,), (5,), (2, 3), (0, 3), (2, 1, 4), (2, 3, 2, 5)):
        for eps in (1e-5, 1.0):
            width = shape[-1:]
            check_gradient(
                lambda x, w, b, eps=eps: layer_norm(x, w, b, eps),
                numbers(shape),
                numbers(width, 0.5, 2.0),
                numbers(width),
                name=f"layer_norm, eps {eps},",
                make=Tensor,
            )
    x = numbers((4, 6))[::2, ::-3]
    check_gradient(layer_norm, x, numbers((2,)), numbers((2,)), name="layer_norm, every third column", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("11.7")
def test_goal_two_layer_norms_behind_each_other_match_central_differences():
    def twice(x, w, b):
        return layer_norm(x + layer_norm(x, w, b).gelu(), w, b) * where(x.data > 0.0, x, 0.5)

    check_gradient(twice, numbers((3, 4)), numbers((4,), 0.5, 2.0), numbers((4,)), name="layer_norm twice", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("11.8")
def test_goal_gelu_matches_central_differences():
    for shape in ((), (1,), (4,), (2, 3), (2, 1, 3), (0, 3)):
        check_gradient(gelu, numbers(shape, -4.0, 4.0), name="gelu", make=Tensor)
    check_gradient(gelu, numbers((4, 6))[::2, ::-3], name="gelu, every third column", make=Tensor)
    x = Tensor([-1000.0, 1000.0])
    check_rule(gelu, {"x": x}, np.array([1.0, 1.0]), [[0.0, 1.0]], of="gelu(x)", probe=which_gelu)


# What the checks above are made of.


def learned_words():
    """The 400 commonest words of a text, and a vector of 16 numbers for each: as in the text, under Check it."""
    ids, words = load_words(400)
    counts = np.zeros((400, 400))
    for distance in range(1, 5):
        np.add.at(counts, (ids[:-distance], ids[distance:]), 1.0)
    counts += counts.T
    first, second = np.nonzero(counts)
    times, each = counts[first, second], counts.sum(axis=1)
    surprise = np.log(times * counts.sum() / (each[first] * each[second]))
    rng = np.random.default_rng(0)
    table = Embedding(400, 16, rng=rng)
    table.weight.data *= 0.1
    optimizer = Adam([table.weight], lr=0.05)
    for _ in range(300):
        pick = rng.choice(len(times), 2048, p=times / times.sum())
        loss = mse_loss((table(first[pick]) * table(second[pick])).sum(-1), surprise[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return words, table.weight.data


def nearest(words, vectors, word):
    """The 20 words whose vectors have the smallest angles to that of `word`."""
    if word not in words:
        return []
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-directions @ directions[words.index(word)])
    return [words[i] for i in order[1:21]]


def shown(key):
    if isinstance(key, tuple):
        return ", ".join(map(shown, key)) or "()"
    if isinstance(key, slice):
        parts = ["" if part is None else str(part) for part in (key.start, key.stop)]
        return ":".join(parts) + ("" if key.step is None else f":{key.step}")
    return "..." if key is ... else " ".join(str(np.asarray(key).tolist() if key is not None else key).split())


def check_picked(data, key, upstream, wanted):
    rule = {"of": f"x[{shown(key)}]", "probe": which_place}
    check_rule(lambda x: x[key], {"x": Tensor(data)}, np.array(upstream), [wanted], **rule)


def check_pieces(shapes, axis, upstream, wanted):
    names = "abc"[: len(shapes)]
    inputs = {name: Tensor(np.zeros(shape)) for name, shape in zip(names, shapes)}
    of = f"concatenate([{', '.join(names)}], {axis})"
    check_rule(lambda *them: concatenate(them, axis), inputs, np.array(upstream), wanted, of=of, probe=which_piece)


def scattered(ids, rows, n):
    """scatter_add, and that it leaves its inputs alone. What fails in it is looked at again."""
    with nothing_else_changes("scatter_add(ids, rows, n)", ids=ids, rows=rows):
        return explained(lambda: scatter_add(ids, rows, n), which_sum)


def check_scattered(ids, rows, n, wanted):
    ids, rows = np.array(ids, dtype=int), np.array(rows)
    what = f"scatter_add(ids, rows, {n}) at ids = {shown(ids)}, rows = {shown(rows)}:\nthe table"
    check_twice(lambda: scattered(ids, rows, n), np.array(wanted), what, probe=which_sum)


def check_embedded(ids, upstream, wanted):
    weight, ids = Tensor(np.arange(8.0).reshape(4, 2)), np.array(ids)
    rule = {"of": f"embed(weight, {shown(ids)})", "probe": which_rows}
    check_rule(lambda weight: embed(weight, ids), {"weight": weight}, np.array(upstream), [wanted], **rule)


def check_variance(data, upstream, wanted, **options):
    of = f"var({', '.join(['x', *(f'{name}={value}' for name, value in options.items())])})"
    operation = lambda x: var(x, **options)  # noqa: E731
    check_rule(operation, {"x": Tensor(data)}, np.array(upstream), [wanted], of=of, probe=which_variance)


def normalized(z, eps):
    """Both results of normalize, and that it leaves z alone."""
    with nothing_else_changes("normalize(z, eps)", z=z):
        found = explained(lambda: normalize(z, eps), which_scale)
    if not isinstance(found, tuple | list) or len(found) != 2:
        several = isinstance(found, tuple | list)
        got = "None" if found is None else len(found) if several else f"one {type(found).__name__}"
        raise CheckFailed(
            f"normalize returns {got}, expected two arrays",
            "Nothing comes back: is there a return?"
            if found is None
            else "The rule of layer_norm needs both: the new rows, and 1 / deviation of each.",
        )
    return found


def check_normalized(z, eps, rows, scale):
    what = f"normalize(z, {eps}) at z = {shown(z)}:\n"
    tolerance = 1e-9 if z.dtype == np.float64 else 1e-6
    for i, part, wanted in ((0, "the rows", rows), (1, "1 / deviation", scale)):
        call = lambda i=i: normalized(z, eps)[i]  # noqa: E731
        check_twice(call, np.array(wanted), f"{what}{part}", which_scale, tolerance)


def check_layer_norm(x, weight, upstream, wanted, eps=0.0):
    inputs = {"x": Tensor(x), "weight": Tensor(weight), "bias": Tensor(np.zeros(len(weight)))}
    rule = {"of": f"layer_norm(x, weight, bias, eps={eps:g})", "probe": which_norm}
    check_rule(lambda *three: layer_norm(*three, eps=eps), inputs, upstream, wanted, **rule)


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def arrived(function, upstream, *data):
    """What arrives at each input of a function."""
    inputs = [Tensor(np.array(one)) for one in data]
    function(*inputs)._backward(np.array(upstream))
    return [x.grad for x in inputs]


def right(look, wanted):
    """Does the learner's code give this there? If it fails, it does not."""
    try:
        return all(np.shape(a) == np.shape(b) and np.allclose(a, b) for a, b in zip(look(), wanted, strict=True))
    except Exception:
        return False


def read_only(look):
    """Was a part of a gradient written to, before anything had arrived?"""

    def probe():
        try:
            look()
        except ValueError as error:
            if "read-only" in str(error):
                return (
                    "A gradient that nothing has arrived at cannot be written to in places: fill an array of zeros, "
                    "and add that as a whole."
                )
        return None

    return probe


LAST = (
    "At a place that occurs twice only the last of what arrives is left. += with an index sets it once; np.add.at adds."
)
FIRST = "At a place that occurs twice only the first of what arrives is left: all of it has to add up."
AVERAGE = "It takes the mean of what arrives at one place. It adds up."


def picked(key):
    return lambda: arrived(lambda x: index(x, key), [1.0, 10.0, 100.0], [7.0, 8.0, 9.0])[0]


which_place = first_that_tells(
    read_only(picked([0, 2, 0])),
    which_formula(
        picked([0, 2, 0]),
        {
            LAST: [100.0, 0.0, 10.0],
            FIRST: [1.0, 0.0, 10.0],
            AVERAGE: [50.5, 0.0, 10.0],
            "It is handed on in the order in which it arrives. It belongs to the places that were picked.": [
                1,
                10,
                100,
            ],
            "That picks from what arrives, as the way forward picked from x. It has to be brought back.": [
                1.0,
                100,
                1.0,
            ],
            "It is multiplied by the numbers of x. A number that is picked has slope 1.": [707.0, 0.0, 90.0],
            "It is what comes from the other end: the places that were not picked.": [0.0, 101.0, 0.0],
        },
    ),
    lambda: zeros_of_what_arrives(),
    lambda: arrays_alone(),
)


def arrays_alone():
    """With places in a list it is right: and with a number or a slice?"""
    if not right(lambda: [picked([0, 2, 0])()], [[101.0, 0.0, 10.0]]):
        return None
    by_slice = arrived(lambda x: index(x, slice(1, 3)), [1.0, 10.0], [7.0, 8.0, 9.0])[0]
    if not by_slice.any():
        return "With a list of places it is right. With a number or a slice nothing arrives: they pick places as well."
    return None


def zeros_of_what_arrives():
    """Right only where as many places are picked as there are?"""

    all_right = right(lambda: [picked([0, 1, 2])()], [[1.0, 10.0, 100.0]])
    try:
        arrived(lambda x: index(x, [0, 2]), [1.0, 10.0], [7.0, 8.0, 9.0])
    except IndexError:
        if all_right:
            return "It is right only if as many places are picked as x has: the zeros have x's shape, that of x.data."
    return None


def pieces(sizes, upstream, axis=0):
    shapes = [(size,) if axis == 0 else (1, size) for size in sizes]
    shaped = np.array(upstream) if axis == 0 else np.array([upstream])
    return lambda: arrived(lambda *them: concatenate(them, axis), shaped, *[np.zeros(shape) for shape in shapes])


FOUR, SIX = [1.0, 10.0, 100.0, 1000.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
EQUAL, CROSSED = [[1.0, 10.0], [100.0, 1000.0]], [[100.0, 1000.0], [1.0, 10.0]]
UNEQUAL, THREE = [[1.0], [10.0, 100.0, 1000.0]], [[1.0], [2.0, 3.0], [4.0, 5.0, 6.0]]


def ended_by_a_constant():
    x = Tensor([0.0])
    concatenate([np.zeros(1), x])._backward(np.array([1.0, 10.0]))
    if not x.grad.any() and right(pieces([1, 1], [1.0, 10.0]), [[1.0], [10.0]]):
        return "A constant ends the loop, and those behind it get nothing: leave out its own piece alone."
    return None


def where_it_cuts():
    two, unequal = pieces([2, 2], FOUR), pieces([1, 3], FOUR)
    if right(two, CROSSED):
        return "The pieces go to the wrong tensors: the first piece belongs to the first of them."
    if right(two, [EQUAL[0], EQUAL[0]]):
        return "Every tensor gets the first piece: the cut has to move on with each of them."
    if right(pieces([1, 2], FOUR[:3]), [[1.0], [10.0, 10.0]]):
        return "The lengths are taken as places. Places count from the start: np.cumsum adds the lengths up."
    if not right(two, EQUAL):
        return None
    if not right(unequal, UNEQUAL):
        return asked_to_cut() or (
            "With two tensors of one length it is right: the cuts are at equal distances, not where the tensors meet."
        )
    if not right(pieces([1, 2, 3], SIX), THREE):
        return (
            "With two tensors it is right, with three it is not: places to cut count from the start, so sizes add up."
        )
    tables = [[[1.0], [2.0]], [[10.0, 100.0], [20.0, 200.0]]]
    if not right(
        lambda: arrived(lambda *them: concatenate(them, 1), np.concatenate(tables, 1), *map(np.zeros_like, tables)),
        tables,
    ):
        return "Along axis 0 it is right, along axis 1 it is not: does `axis` take part in it, twice?"
    if not right(pieces([3, 1], FOUR, axis=1), [[[1.0, 10.0, 100.0]], [[1000.0]]]):
        return "Along axis 0 it is right, along axis 1 it is not: does `axis` take part in it, twice?"
    if not right(pieces([3, 1], FOUR, axis=-1), [[[1.0, 10.0, 100.0]], [[1000.0]]]):
        return "Along axis 1 it is right, along axis -1, which is the same one here, it is not."
    return None


def asked_to_cut():
    """Where is np.split asked to cut? With lengths 1 and 3 there is one place, 1."""
    asked, split = [], np.split

    def watched(array, places, axis=0):
        asked.append(places)
        return split(array, places, axis)

    np.split = watched
    try:
        ask(pieces([1, 3], FOUR))
    finally:
        np.split = split
    if not asked:
        return None
    if isinstance(asked[0], int):
        return "With a number np.split cuts at equal distances. It takes places too: those where the tensors meet."
    places = np.asarray(asked[0]).tolist()
    if places[:1] != [1]:
        return f"np.split is asked to cut at {places}. With lengths 1 and 3 the tensors meet at [1]."
    return None


which_piece = first_that_tells(read_only(pieces([2, 2], FOUR)), where_it_cuts, ended_by_a_constant, asked_to_cut)


def which_twice():
    if right(pieces([2, 2], FOUR), EQUAL):
        found = arrived(lambda x: concatenate([x, x]), FOUR, [0.0, 0.0])[0]
        if np.allclose(found, EQUAL[1]):
            return "With two different tensors it is right: here one piece was overwritten by the other. += adds."
    return which_piece()


IDS, ROWS = np.array([1, 0, 1]), np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
NOTHING = [0.0, 0.0]
LARGEST = "At a place that occurs twice only the largest of what arrives is left. It adds up."
which_sum = which_formula(
    lambda: scatter_add(IDS.copy(), ROWS.copy(), 4),
    {
        "The table begins with ones. It begins with zeros.": [[11.0, 21.0], [102.0, 203.0], [1.0, 1.0], [1.0, 1.0]],
        "All numbers of a row are summed into one. Each column has a sum of its own: axis=0.": [
            [30.0, 30.0],
            [303.0, 303.0],
            NOTHING,
            NOTHING,
        ],
        "Row k of the table gets rows[ids[k]]. It is the other way round: rows[k] belongs to row ids[k].": [
            *ROWS[IDS].tolist(),
            NOTHING,
        ],
        LAST: [[10.0, 20.0], [100.0, 200.0], NOTHING, NOTHING],
        FIRST: [[10.0, 20.0], [1.0, 2.0], NOTHING, NOTHING],
        AVERAGE: [[10.0, 20.0], [50.5, 101.0], NOTHING, NOTHING],
        "It counts how often an id occurs. The rows themselves have to be summed.": [
            [1.0, 1.0],
            [2.0, 2.0],
            NOTHING,
            NOTHING,
        ],
        "The table ends with the largest id that occurs. It has n rows.": [[10.0, 20.0], [101.0, 202.0]],
        "The table has a row for each id. It has n rows.": [[10.0, 20.0], [101.0, 202.0], NOTHING],
        "The ids were sorted and the rows were not: both have to be brought into the same order.": [
            [1.0, 2.0],
            [110.0, 220.0],
            NOTHING,
            NOTHING,
        ],
        "That picks rows, as the way forward does. It has to bring them back.": ROWS[IDS],
        "Row i is taken for each id i: to the row of id number k belongs rows[k].": [
            [1.0, 2.0],
            [20.0, 40.0],
            NOTHING,
            NOTHING,
        ],
        "In one long line a row begins at id times width: is the factor missing?": [
            [10.0, 121.0],
            [202.0, 0.0],
            NOTHING,
            NOTHING,
        ],
        "In one long line a row begins at id times width, not at id times n.": [
            [10.0, 20.0],
            NOTHING,
            [101.0, 202.0],
            NOTHING,
        ],
        "All numbers of a row end up in its first place: each column has a place of its own.": [
            [30.0, 0.0],
            [303.0, 0.0],
            NOTHING,
            NOTHING,
        ],
        "The rows are in the order in which the ids first occur, not at the places that the ids name.": [
            [101.0, 202.0],
            [10.0, 20.0],
            NOTHING,
            NOTHING,
        ],
    },
)

which_sum = first_that_tells(
    which_formula(
        lambda: scatter_add(np.array([0, 0]), np.array([[1.0, 200.0], [100.0, 2.0]]), 1), {LARGEST: [[100.0, 200.0]]}
    ),
    which_sum,
    lambda: integers_of_nothing(),
)


def integers_of_nothing():
    """Without any ids np.bincount counts, whatever its weights are."""
    some = scatter_add(np.array([1]), np.array([[0.25]]), 2)
    none = scatter_add(np.zeros(0, int), np.zeros((0, 1)), 2)
    if np.asarray(none).dtype.kind == "i" and np.allclose(some, [[0.0], [0.25]]):
        return "With ids it is right. Without any np.bincount gives integers, whatever the weights are: use rows.dtype."
    return None


AT = np.array([[2, 0, 1], [2, 1, 2]])
COMES = np.array([[[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]], [[13.0, 17.0], [19.0, 23.0], [29.0, 31.0]]])


def summed_by_id(ids, rows, n=4):
    table = np.zeros((n, 2))
    np.add.at(table, ids, rows)
    return table


def rows_of(ids, upstream, n=4):
    return lambda: arrived(lambda weight: embed(weight, np.array(ids)), upstream, np.zeros((n, 2)))


def where_rows_go():
    line, last = ([2, 0, 2], ROWS), ([3, 0, 3], ROWS)
    if not right(rows_of(*line), [summed_by_id(*line)]):
        if right(rows_of(*last), [summed_by_id(*last)]):
            return "It is right only if the last row of the table is asked for: n is the number of rows of `weight`."
        if right(rows_of([2, 0, 2, 1], [*ROWS, NOTHING]), [summed_by_id(np.array([2, 0, 2]), ROWS)]):
            return "It is right only if there are as many ids as rows: n is the number of rows of `weight`."
        return None
    if not right(rows_of(AT, COMES), [summed_by_id(AT, COMES)]):
        return (
            "With ids in a line it is right. If they have two axes, ids and rows have to be laid out in a line first."
        )
    return None


def only_numbers():
    """What is scatter_add given?"""
    asked, real = [], embedding.scatter_add

    def watched(ids, rows, n):
        asked.append((ids, rows, n))
        return real(ids, rows, n)

    embedding.scatter_add = watched
    try:
        ask(rows_of([2, 0, 2], ROWS))
    finally:
        embedding.scatter_add = real
    if not asked:
        return None
    ids, rows, n = asked[0]
    if np.asarray(ids).dtype.kind == "f" or np.asarray(rows).dtype.kind == "i":
        return "What scatter_add is given has changed places: the ids come first, and then the rows."
    if n == 2:
        return "scatter_add is asked for as many rows as `weight` has columns: n is the number of its rows."
    if np.ndim(rows) == 1:
        return "What arrives has become one line of numbers. A row of it has to stay a row: reshape(-1, width)."
    return None


which_rows = first_that_tells(
    only_numbers,
    read_only(rows_of([2, 0, 2], ROWS)),
    which_formula(
        lambda: rows_of([2, 0, 2], ROWS)()[0],
        {
            LAST: [[10.0, 20.0], NOTHING, [100.0, 200.0], NOTHING],
            FIRST: [[10.0, 20.0], NOTHING, [1.0, 2.0], NOTHING],
            AVERAGE: [[10.0, 20.0], NOTHING, [50.5, 101.0], NOTHING],
            "What arrives is torn apart: a row of it has to stay a row. The new shape is (..., width).": summed_by_id(
                np.array([2, 0, 2]), ROWS.reshape(2, -1).T
            ),
        },
    ),
    which_formula(
        lambda: rows_of(AT, COMES)()[0],
        {
            "What arrives is torn apart: a row of it has to stay a row. The new shape is (..., width).": summed_by_id(
                AT.reshape(-1), COMES.reshape(2, -1).T
            ),
            "The ids are laid out by columns, what arrives by rows: they no longer belong to each other.": summed_by_id(
                AT.T.reshape(-1), COMES.reshape(-1, 2)
            ),
            "Only the first of the ids' rows takes part.": summed_by_id(AT[0], COMES[0]),
            "Only the last of the ids' rows takes part.": summed_by_id(AT[1], COMES[1]),
        },
    ),
    where_rows_go,
)

ROWWISE = {"axis": 1, "keepdims": True}
X = np.array([[1.0, 2.0, 6.0, 4.0], [3.0, 8.0, -4.0, 7.0], [5.0, 0.0, -3.0, 1.0]])
D, G = X - X.mean(**ROWWISE), np.array([[3.0], [60.0], [5.0]])


def correction_forgotten():
    found = [arrived(lambda x, one=one: var(x, 1, correction=one), G[:, 0], X)[0] for one in (0, 1)]
    if all(np.allclose(one, 2.0 / 4.0 * D * G) for one in found):
        return "Without a correction it is right. With one there is less to divide by: n has it in it already."
    if np.allclose(found[0], 2.0 / 4.0 * D * G) and np.allclose(found[1], 2.0 / 2.0 * D * G):
        return "Without a correction it is right. With one it is taken off twice: n has it in it already."
    return None


which_variance = first_that_tells(
    which_formula(
        lambda: arrived(lambda x: var(x, 1), G[:, 0], X)[0],
        {
            "The 2 is missing: a square grows by twice its side.": D * G / 4.0,
            "It is not divided by n: the variance is a mean of squares.": 2.0 * D * G,
            "The 2 and the n are missing.": D * G,
            "It is made from the numbers themselves. What counts is their distance from the mean.": 2.0 / 4.0 * X * G,
            "It is divided by how many numbers there are in all. n counts those of one row.": 2.0 / 12.0 * D * G,
            "The distance is squared. The slope of a square has no square in it any more.": 2.0 / 4.0 * D * D * G,
            "It is divided by n - 1. A correction is in n already.": 2.0 / 3.0 * D * G,
            "It counts the way through the mean as a loss. The distances add up to 0, so nothing goes that way.": 2.0
            / 4.0
            * (1.0 - 1.0 / 4.0)
            * D
            * G,
            "It is divided by n twice.": 2.0 / 16.0 * D * G,
            "The variance is taken off, and not the mean: `distance` is there already.": (
                2.0 / 4.0 * (X - (D * D).mean(**ROWWISE)) * G
            ),
            "The sign of the distance is lost: what lies below the mean moves the other way.": 2.0 / 4.0 * abs(D) * G,
            "The mean is that of all rows together. `distance` has each row's own.": 2.0 / 4.0 * (X - X.mean()) * G,
            "It is the slope of the deviation, the root of the variance. There is no root here.": D
            / (4.0 * np.sqrt((D * D).mean(**ROWWISE)))
            * G,
        },
    ),
    correction_forgotten,
)

DEVIATION = np.sqrt((D * D).mean(**ROWWISE))
M, C = X - np.median(X, **ROWWISE), X - X.mean(axis=0)
OVER_ALL = "It takes all rows together. Each row has a mean and a deviation of its own."
OVER_COLUMNS = "It works along the columns. A row, axis 1, is what belongs together."


def column_scale(z):
    return (z - z.mean(axis=0)) / z.std(axis=0)


def normal_of(z, eps=0.0):
    return lambda: normalize(z.copy(), eps)[0]


def scale_of(z, eps=0.0):
    return lambda: normalize(z.copy(), eps)[1]


def axis_lost():
    """Does a square come out with a row's mean or deviation laid across the columns?"""
    square = np.array([[1.0, 3.0], [10.0, 50.0]])
    means, spread = square.mean(axis=1), square - square.mean(axis=1, keepdims=True)
    scale = 1.0 / np.sqrt((spread * spread).mean(axis=1))
    lost = (
        "mean(axis=1) has no axis for the columns any more, so that it meets them in place of the rows: keepdims=True."
    )
    with np.errstate(all="ignore"):
        found = normalize(square, 0.0)[0]
        across = square - means
        own = 1.0 / np.sqrt((across * across).mean(axis=1))
        wrong = [spread * scale, across * scale, across * own, across * own[:, None], across * scale[:, None]]
    return lost if any(np.shape(found) == (2, 2) and np.allclose(found, one) for one in wrong) else None


def not_squared():
    """The distances of a row add up to 0, so that their mean divides by 0."""
    with np.errstate(all="ignore"):
        found, _ = normalize(np.array([[1.0, 3.0], [10.0, 50.0]]), 0.0)
        eased, _ = normalize(np.array([[1.0, 3.0]]), 4.0)
    if not np.isfinite(found).any() and np.allclose(eased, [[-0.5, 0.5]]):
        return "The distances of a row add up to 0, and so does their mean: square them first."
    return None


def far_from_zero():
    far = np.array([[1e8 - 1.0, 1e8 + 1.0]])
    near = right(lambda: normalize(far - 1e8, 0.0), [[[-1.0, 1.0]], [[1.0]]])
    with np.errstate(all="ignore"):
        if near and not right(lambda: normalize(far, 0.0), [[[-1.0, 1.0]], [[1.0]]]):
            return (
                "Near 0 it is right, at 1e8 it is not: the mean of squares less the square of the mean is a difference "
                "of two huge numbers. Subtract the mean first."
            )
    return None


which_scale = first_that_tells(
    which_formula(
        normal_of(X),
        {
            "The mean is not taken off.": X / DEVIATION,
            "The mean is taken off, and nothing is divided.": D,
            "It is divided by the variance. The root is missing.": D / DEVIATION**2,
            "It is multiplied by the deviation, and not divided.": D * DEVIATION,
            "It divides by n - 1: that is the deviation of a sample. Layer norm takes the plain mean.": D
            / (DEVIATION * np.sqrt(4.0 / 3.0)),
            "The mean of the numbers' squares is taken, and not that of the distances'.": D
            / np.sqrt((X * X).mean(**ROWWISE)),
            "The sum of the squares is taken, and not their mean.": D / (DEVIATION * 2.0),
            "It divides by the mean of the distances without their sign, and not by the deviation.": D
            / np.abs(D).mean(**ROWWISE),
            OVER_ALL: (X - X.mean()) / X.std(),
            "The deviation is that of all rows together. Each row has its own.": D / np.sqrt((D * D).mean()),
            OVER_COLUMNS: column_scale(X),
            "The two results are exchanged: the rows come first.": 1.0 / DEVIATION,
            "The median is taken off, the number in the middle. It is the mean.": M / np.sqrt((M * M).mean(**ROWWISE)),
            "The median is taken off, the number in the middle. It is the mean: see `distance`.": M / DEVIATION,
            "The mean is that of each column. A row, axis 1, is what belongs together.": (
                C / np.sqrt((C * C).mean(**ROWWISE))
            ),
        },
    ),
    which_formula(
        normal_of(np.array([[7.0, 9.0]]), 3.0),
        {
            "eps is missing.": [[-1.0, 1.0]],
            "eps stands outside of the root. It is added to the variance, inside.": [[-0.25, 0.25]],
            "eps is added a second time.": [[-1.0 / np.sqrt(7.0), 1.0 / np.sqrt(7.0)]],
            "eps is added to 1 / deviation. It is added to the variance, inside of the root.": [[-4.0, 4.0]],
        },
    ),
    which_formula(
        scale_of(X),
        {
            "The rows are right. The second result is the deviation, and should be 1 divided by it.": DEVIATION,
            "The rows are right. The second result is the variance, and should be 1 / deviation.": DEVIATION**2,
            "The rows are right. The second result is 1 / variance, and should be 1 / deviation.": DEVIATION**-2,
            "The rows are right. The second result has lost an axis: keepdims=True keeps it.": 1.0 / DEVIATION[:, 0],
            "The rows are right. The second result is the mean, and should be 1 / deviation.": X.mean(**ROWWISE),
        },
    ),
    axis_lost,
    not_squared,
    which_formula(
        scale_of(np.array([[7.0, 9.0]]), 3.0),
        {"The rows are right. In the second result eps is added a second time.": [[1.0 / 5.0]]},
    ),
    far_from_zero,
)

W, UP = (
    np.array([2.0, 3.0, -1.0, 0.5]),
    np.array([[1.0, 10.0, 3.0, -4.0], [7.0, 2.0, -5.0, 6.0], [-2.0, 8.0, 9.0, 11.0]]),
)
N, SCALE = D / DEVIATION, 1.0 / DEVIATION


def norm_of(which):
    return lambda: arrived(lambda *three: layer_norm(*three, eps=0.0), UP, X, W, np.zeros(4))[which]


def to_x(h, mean=True, share=True, scale=SCALE):
    """The formula with a part left out."""
    return scale * (h - h.mean(**ROWWISE) * mean - N * (h * N).mean(**ROWWISE) * share)


def no_row_at_all():
    names = [name for name, which in (("x", 0), ("weight", 1), ("bias", 2)) if not np.any(norm_of(which)())]
    return f"Nothing at all arrives at {names[0]}: its line is missing." if len(names) == 1 else None


def shape_forgotten():
    def of(shape):
        three = X.reshape(shape), W, np.zeros(4)
        return lambda: arrived(lambda *them: layer_norm(*them, eps=0.0), UP.reshape(shape), *three)[:1]

    if right(of((3, 4)), [to_x(H)]) and not right(of((3, 1, 4)), [to_x(H).reshape(3, 1, 4)]):
        return "With a matrix it is right, with a stack of rows it is not: `reshape(x.shape)` at the end."
    return None


MEANS = "Sums stand where means belong: each of the two is divided by the width."
H = UP * W
which_norm = first_that_tells(
    no_row_at_all,
    which_formula(
        norm_of(2),
        {
            "bias gets the mean of what arrives at its column. It is used in every row, so it gets the sum.": UP.mean(
                axis=0
            ),
            "bias gets sums of rows. It has a number for each column.": UP.sum(axis=1),
            "bias gets the sum of everything.": np.full(4, UP.sum()),
            "bias gets what arrives times `normal`. It is only added, so its slope is 1.": (UP * N).sum(axis=0),
            "bias gets what arrives times the weight. It is added after that, so its slope is 1.": (UP * W).sum(axis=0),
        },
    ),
    which_formula(
        norm_of(1),
        {
            "weight gets the sum of what arrives. Its partner in the product, `normal`, is missing.": UP.sum(axis=0),
            "weight is multiplied with x. Its partner in the product is `normal`.": (UP * X).sum(axis=0),
            "weight gets a mean. It is used in every row, so it gets the sum.": (UP * N).mean(axis=0),
            "weight gets itself as a factor. Its partner in the product is `normal`.": (UP * W).sum(axis=0),
            "weight gets `normal` times what arrives times the weight. Only its partner belongs there.": (H * N).sum(
                axis=0
            ),
            "weight gets a factor of `scale`. It comes after that: its partner in the product is `normal`.": (
                (UP * N * SCALE).sum(axis=0)
            ),
        },
    ),
    which_formula(
        norm_of(0),
        {
            "The weight is missing: it stands between what arrives and `normal`.": to_x(UP),
            "The mean is not taken off: x also moves the mean of its row.": to_x(H, mean=False),
            "The share of `normal` is not taken off: x also moves the deviation of its row.": to_x(H, share=False),
            "Only the scale is left: x also moves the mean and the deviation of its row.": to_x(H, False, False),
            "The scale is missing.": to_x(H, scale=1.0),
            "It is multiplied by the deviation, and not by 1 / deviation.": to_x(H, scale=DEVIATION),
            MEANS: SCALE * (H - H.sum(**ROWWISE) - N * (H * N).sum(**ROWWISE)),
            "The mean of h * normal is taken off as it is. It has to be multiplied by `normal`.": SCALE
            * (H - H.mean(**ROWWISE) - (H * N).mean(**ROWWISE)),
            "A plus stands where a minus belongs, before the share of `normal`.": SCALE
            * (H - H.mean(**ROWWISE) + N * (H * N).mean(**ROWWISE)),
            "The share is made with the mean of h, and not with that of h * normal.": SCALE
            * (H - H.mean(**ROWWISE) - N * H.mean(**ROWWISE)),
            "The means go over all rows together. Each row has its own.": SCALE * (H - H.mean() - N * (H * N).mean()),
            "The means go along the columns. A row, axis 1, is what belongs together.": SCALE
            * (H - H.mean(axis=0) - N * (H * N).mean(axis=0)),
            "The weight is multiplied in at the end. It belongs to what arrives, before the means.": to_x(UP) * W,
            "The mean is that of `upstream`. It is that of h, what arrives times the weight.": (
                SCALE * (H - UP.mean(**ROWWISE) - N * (H * N).mean(**ROWWISE))
            ),
            "The share is made with `upstream`. It is made with h, what arrives times the weight.": (
                SCALE * (H - H.mean(**ROWWISE) - N * (UP * N).mean(**ROWWISE))
            ),
            "Both means are those of `upstream`. They are those of h, what arrives times the weight.": (
                SCALE * (H - UP.mean(**ROWWISE) - N * (UP * N).mean(**ROWWISE))
            ),
            "A plus stands where a minus belongs, before the mean.": (
                SCALE * (H + H.mean(**ROWWISE) - N * (H * N).mean(**ROWWISE))
            ),
            "The share is made with x. It is made with `normal`.": (
                SCALE * (H - H.mean(**ROWWISE) - N * (H * X).mean(**ROWWISE))
            ),
            "The scale is multiplied in twice.": to_x(H, scale=SCALE * SCALE),
            "The scale belongs to all three parts: are brackets missing?": SCALE * H
            - H.mean(**ROWWISE)
            - N * (H * N).mean(**ROWWISE),
        },
    ),
    lambda: not_summed(),
    lambda: along_the_row(),
    shape_forgotten,
)


def not_summed():
    try:
        norm_of(0)()
    except ValueError as error:
        if "of shape (4,) cannot have shape (3, 4)" in str(error):
            return "weight and bias are used in every row, so what arrives at the rows is summed: column_sums, axis 0."
    return None


def along_the_row():
    """On a square table an axis that is lost, or is the wrong one, makes no error."""
    x, up, w = X[:, :3], UP[:, :3], W[:3]
    far = x - x.mean(**ROWWISE)
    deviation = np.sqrt((far * far).mean(**ROWWISE))
    n, h = far / deviation, up * w
    to_all, to_weight, to_bias = arrived(lambda *three: layer_norm(*three, eps=0.0), up, x, w, np.zeros(3))
    if np.allclose(to_bias, up.sum(axis=1)) or np.allclose(to_weight, (up * n).sum(axis=1)):
        return "weight and bias have a number for each column: the sum goes over the rows, axis 0."
    mean, share = h.mean(**ROWWISE), (h * n).mean(**ROWWISE)
    for a, b in ((mean[:, 0], share[:, 0]), (mean[:, 0], share), (mean, share[:, 0])):
        if np.allclose(to_all, (h - a - n * b) / deviation):
            return "A mean along axis 1 has no axis for the columns any more, and meets them: keepdims=True keeps it."
    return None


Z = np.array([-1.5, 0.5, 2.0])
ROOT = np.sqrt(2.0 / np.pi)
T = np.tanh(ROOT * (Z + 0.044715 * Z**3))
STEP, BELL, INNER = 0.5 * (1.0 + T), 1.0 - T * T, ROOT * (1.0 + 3.0 * 0.044715 * Z**2)
EXACT = np.array([0.5 * (1.0 + math.erf(one / math.sqrt(2.0))) for one in Z])
DENSITY = np.exp(-0.5 * Z * Z) / np.sqrt(2.0 * np.pi)
SEVEN = 7.0
which_gelu = which_formula(
    lambda: arrived(gelu, np.full(3, SEVEN), Z)[0],
    {
        "Only the step is left. x is in the product twice: the step moves with it too.": SEVEN * STEP,
        "Only the step's own slope is left. By the product rule the step itself is a part of it.": SEVEN
        * 0.5
        * Z
        * BELL
        * INNER,
        "The chain rule stops at the tanh: the slope of what is inside of it is missing.": SEVEN
        * (STEP + 0.5 * Z * BELL),
        "Inside, the 3 is missing: the slope of x ** 3 is 3 x ** 2.": SEVEN
        * (STEP + 0.5 * Z * BELL * ROOT * (1.0 + 0.044715 * Z**2)),
        "Inside, the slope of the cube is missing.": SEVEN * (STEP + 0.5 * Z * BELL * ROOT),
        "Inside, the factor sqrt(2 / pi) is missing.": SEVEN * (STEP + 0.5 * Z * BELL * INNER / ROOT),
        "The slope of tanh is 1 - tanh ** 2: the square is missing.": SEVEN * (STEP + 0.5 * Z * (1.0 - T) * INNER),
        "The second part lacks its 0.5.": SEVEN * (STEP + Z * BELL * INNER),
        "The second part lacks its x.": SEVEN * (STEP + 0.5 * BELL * INNER),
        "That is the slope of the exact GELU. The way forward has the formula with tanh.": SEVEN
        * (EXACT + Z * DENSITY),
        "That is the slope of relu.": SEVEN * (Z > 0.0),
        "The slope of tanh is 1 - tanh ** 2: a plus stands there.": SEVEN * (STEP + 0.5 * Z * (1.0 + T * T) * INNER),
        "Inside stands a cube: the slope of x ** 3 is 3 x ** 2.": SEVEN
        * (STEP + 0.5 * Z * BELL * ROOT * (1.0 + 3.0 * 0.044715 * Z**3)),
        "The first part lacks its 0.5.": SEVEN * (1.0 + T + 0.5 * Z * BELL * INNER),
        "Only the second part is multiplied by `upstream`: are brackets missing?": STEP
        + SEVEN * 0.5 * Z * BELL * INNER,
        "Only the first part is multiplied by `upstream`: are brackets missing?": SEVEN * STEP + 0.5 * Z * BELL * INNER,
        "The slope of tanh is 1 - tanh ** 2: here the difference is squared, and not tanh.": (
            SEVEN * (STEP + 0.5 * Z * (1.0 - T) ** 2 * INNER)
        ),
        "The step goes from 0 to 1: its 1 is missing, in 0.5 (1 + tanh).": (SEVEN * (0.5 * T + 0.5 * Z * BELL * INNER)),
        "A minus stands between the two parts. By the product rule they are added.": (
            SEVEN * (STEP - 0.5 * Z * BELL * INNER)
        ),
        "The first part is the step alone, without x.": SEVEN * (Z * STEP + 0.5 * Z * BELL * INNER),
        "Inside, the slope of x ** 3 is 3 x ** 2: a 2 stands for the 3.": (
            SEVEN * (STEP + 0.5 * Z * BELL * ROOT * (1.0 + 2.0 * 0.044715 * Z**2))
        ),
        "tanh is taken a second time: `bend` is its result already.": SEVEN
        * (0.5 * (1.0 + np.tanh(T)) + 0.5 * Z * (1.0 - np.tanh(T) ** 2) * INNER),
    },
)
