"""The checks of chapter 03: python grader.py 03"""

import tracemalloc
from itertools import permutations

import numpy as np
import pytest

from meintorch import matmul as module_of_products
from meintorch import shapes
from meintorch.matmul import dot
from meintorch.shapes import mean, reshape, transpose
from meintorch.shapes import sum as sum_of
from meintorch.tensor import Tensor
from tests._helpers import (
    CheckFailed,
    check_binary_gradient,
    check_close,
    check_every_axis,
    check_freed,
    check_grad,
    check_gradient,
    check_rule,
    explained,
    first_that_tells,
    nothing_else_changes,
    used_twice,
    which_formula,
)


@pytest.mark.task("03.7")
def test_a_batch_of_sequences_learns_what_the_loop_learns():
    """Two sequences of three steps with two features each, and one matrix for all of them. Nobody wrote a loop."""
    x = np.array([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]])
    w, bias = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0])
    upstream = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]]])

    whole = {"x": Tensor(x), "w": Tensor(w), "bias": Tensor(bias)}
    out = run(lambda x, w, bias: x @ w + bias, whole, probe=which_rows)
    items, w_of_the_loop, bias_of_the_loop = [Tensor(item) for item in x], Tensor(w), Tensor(bias)
    results = [item @ w_of_the_loop + bias_of_the_loop for item in items]
    for result, arrives in zip(results, upstream):
        result.backward(arrives)

    of = "y = x @ w + bias, x of shape (2, 3, 2), against a loop over x:\n"
    look = first_that_tells(lambda: leads_back(lambda x, w: x @ w, {"x": x, "w": w}), which_rows)
    check_close(out.data, np.stack([result.data for result in results]), f"{of}y", probe=look)
    out.backward(upstream)
    check_close(whole["w"].grad, w_of_the_loop.grad, f"{of}w.grad", probe=look)
    check_close(whole["bias"].grad, bias_of_the_loop.grad, f"{of}bias.grad", probe=look)
    check_close(whole["x"].grad, np.stack([item.grad for item in items]), f"{of}x.grad", probe=look)


# 03.1 Sum


@pytest.mark.task("03.1")
def test_every_number_in_a_sum_gets_what_arrives_at_it():
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    wanted = np.full((2, 3), 5.0)
    check_rule(lambda x: sum_of(x), {"x": x}, np.array(5.0), [wanted], of="sum(x)", probe=which_spread)


@pytest.mark.task("03.1")
def test_each_number_gets_what_arrives_at_its_own_sum():
    table = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    for axis, upstream, wanted in (
        (0, [1.0, 10.0, 100.0], [[1.0, 10.0, 100.0], [1.0, 10.0, 100.0]]),
        (1, [1.0, 10.0], [[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]]),
        (-1, [1.0, 10.0], [[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]]),
    ):
        of = f"sum(x, axis={axis})"
        x = {"x": Tensor(table)}
        check_rule(lambda x, a=axis: sum_of(x, a), x, np.array(upstream), [wanted], of=of, probe=which_spread)


@pytest.mark.task("03.1")
def test_a_square_table_does_not_hide_a_missing_axis():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    wanted = [[1.0, 1.0], [10.0, 10.0]]
    check_rule(
        lambda x: sum_of(x, 1), {"x": x}, np.array([1.0, 10.0]), [wanted], of="sum(x, axis=1)", probe=which_spread
    )


@pytest.mark.task("03.1")
def test_an_axis_that_was_kept_needs_no_second_one():
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    wanted = [[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]]
    of = "sum(x, axis=1, keepdims=True)"
    check_rule(lambda x: sum_of(x, 1, True), {"x": x}, np.array([[1.0], [10.0]]), [wanted], of=of, probe=which_spread)


@pytest.mark.task("03.1")
def test_several_axes_come_back_at_once():
    x = Tensor(np.arange(8.0).reshape(2, 2, 2))
    wanted = [[[1.0, 1.0], [10.0, 10.0]], [[1.0, 1.0], [10.0, 10.0]]]
    of = "sum(x, axis=(0, 2))"
    check_rule(lambda x: sum_of(x, (0, 2)), {"x": x}, np.array([1.0, 10.0]), [wanted], of=of, probe=which_spread)


@pytest.mark.task("03.1")
def test_a_sum_over_axes_adds_to_the_gradient_that_is_there():
    x = Tensor([1.0, 2.0])
    x.grad = np.array([10.0, 20.0])
    check_rule(lambda x: sum_of(x), {"x": x}, np.array(3.0), [[13.0, 23.0]], of="sum(x)", probe=which_spread)
    check_freed(lambda x: sum_of(x), x, of="sum(x)")


@pytest.mark.task("03.1")
def test_a_sum_takes_axes_in_every_form():
    """Counted from the end, several in any order: (1, 0), (-2, -1), (2, 0)."""
    x = np.arange(6.0).reshape(1, 2, 3)
    check_every_axis(lambda x, axis: sum_of(x, axis), lambda x, axis: x.sum(axis=axis), x, "sum", Tensor)


# 03.2 Mean


@pytest.mark.task("03.2")
def test_a_mean_is_divided_by_how_many_numbers_go_into_it():
    x = np.array([[1.0, 2.0, 6.0], [4.0, 8.0, 30.0]])
    for axis, value, upstream, gradient in (
        (1, [3.0, 14.0], [3.0, 30.0], [[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]]),
        (0, [2.5, 5.0, 18.0], [2.0, 4.0, 6.0], [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]),
    ):
        of = f"mean(x, axis={axis})"
        check_through(lambda x, a=axis: mean(x, a), {"x": x}, value, upstream, [gradient], of, probe=which_mean)


@pytest.mark.task("03.2")
def test_the_mean_of_everything_is_one_number():
    x = np.array([[1.0, 2.0], [3.0, 6.0]])
    check_through(mean, {"x": x}, 3.0, 8.0, [[[2.0, 2.0], [2.0, 2.0]]], "mean(x)", probe=which_mean)


@pytest.mark.task("03.2")
def test_a_mean_keeps_its_axes_if_asked():
    x = np.array([[1.0, 3.0], [5.0, 9.0]])
    check_through(
        lambda x: mean(x, 1, True),
        {"x": x},
        [[2.0], [7.0]],
        [[2.0], [20.0]],
        [[[1.0, 1.0], [10.0, 10.0]]],
        "mean(x, axis=1, keepdims=True)",
        probe=which_mean,
    )


@pytest.mark.task("03.2")
def test_a_mean_over_several_axes_counts_all_their_numbers():
    x = np.arange(12.0).reshape(2, 3, 2)
    gradient = np.broadcast_to(np.array([[1.0], [2.0], [3.0]]), (2, 3, 2))
    of = "mean(x, axis=(0, 2))"
    value = [(0 + 1 + 6 + 7) / 4, (2 + 3 + 8 + 9) / 4, (4 + 5 + 10 + 11) / 4]
    check_through(lambda x: mean(x, (0, 2)), {"x": x}, value, [4.0, 8.0, 12.0], [gradient], of, probe=which_mean)


@pytest.mark.task("03.2")
def test_a_mean_keeps_float32():
    x = np.float32([1.0, 2.0, 6.0])
    third = np.float32(1.0) / np.float32(3.0)
    check_through(mean, {"x": x}, 3.0, 1.0, [[third, third, third]], "mean(x) of float32", 1e-6, probe=which_mean)


@pytest.mark.task("03.2")
def test_a_mean_takes_axes_in_every_form():
    x = np.arange(6.0).reshape(1, 2, 3)
    check_every_axis(lambda x, axis: mean(x, axis), lambda x, axis: x.mean(axis=axis), x, "mean", Tensor)


# 03.3 Reshape


@pytest.mark.task("03.3")
def test_the_gradient_goes_back_to_the_old_shape_in_the_same_order():
    """A transpose would have the right shape too, and the numbers in other places."""
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    upstream = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    check_rule(lambda x: reshape(x, 3, 2), {"x": x}, upstream, [wanted], of="reshape(x, 3, 2)", probe=which_order)


@pytest.mark.task("03.3")
def test_axes_of_size_one_come_and_go():
    for old, new in (((2,), (1, 2)), ((2, 1), (2,)), ((1, 2), (2, 1)), ((1,), ())):
        x = Tensor(np.ones(old))
        upstream = np.arange(1.0, 1.0 + x.size).reshape(new)
        of = f"reshape(x, {new}) of shape {old}"
        wanted = np.arange(1.0, 1.0 + x.size).reshape(old)
        check_rule(lambda x, new=new: reshape(x, new), {"x": x}, upstream, [wanted], of=of, probe=which_order)


@pytest.mark.task("03.3")
def test_a_reshape_adds_to_the_gradient_that_is_there():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    x.grad = np.array([[10.0, 20.0], [30.0, 40.0]])
    wanted = [[11.0, 22.0], [33.0, 44.0]]
    upstream = np.array([1.0, 2.0, 3.0, 4.0])
    check_rule(lambda x: reshape(x, 4), {"x": x}, upstream, [wanted], of="reshape(x, 4)", probe=which_order)
    check_freed(lambda x: reshape(x, 4), x, of="reshape(x, 4)")


@pytest.mark.task("03.3")
def test_a_size_of_minus_one_is_whatever_is_left():
    x = Tensor(np.ones((2, 2, 3)))
    upstream = np.arange(12.0).reshape(2, 6)
    wanted = np.arange(12.0).reshape(2, 2, 3)
    check_rule(lambda x: reshape(x, 2, -1), {"x": x}, upstream, [wanted], of="reshape(x, 2, -1)", probe=which_order)


# 03.4 Transpose


@pytest.mark.task("03.4")
def test_a_turned_table_is_turned_back():
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    upstream = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
    check_rule(lambda x: x.T, {"x": x}, upstream, [wanted], of="x.T", probe=which_turn)


@pytest.mark.task("03.4")
def test_three_axes_in_a_circle_go_back_the_other_way():
    """Axis 0 went to the end. So on the way back the last axis comes to the front."""
    x = Tensor(np.zeros((1, 2, 3)))
    upstream = np.array([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
    wanted = [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]
    of = "transpose(x, (1, 2, 0))"
    check_rule(lambda x: transpose(x, (1, 2, 0)), {"x": x}, upstream, [wanted], of=of, probe=which_turn)


@pytest.mark.task("03.4")
def test_a_cube_does_not_hide_a_wrong_order():
    x = Tensor(np.zeros((2, 2, 2)))
    upstream = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    wanted = [[[1.0, 3.0], [5.0, 7.0]], [[2.0, 4.0], [6.0, 8.0]]]
    of = "transpose(x, (1, 2, 0))"
    check_rule(lambda x: transpose(x, (1, 2, 0)), {"x": x}, upstream, [wanted], of=of, probe=which_turn)


@pytest.mark.task("03.4")
def test_axes_may_be_counted_from_the_end():
    x = Tensor(np.zeros((1, 2, 3)))
    upstream = np.arange(6.0).reshape(3, 1, 2)
    wanted = [[[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]]
    of = "transpose(x, (-1, 0, 1))"
    check_rule(lambda x: transpose(x, (-1, 0, 1)), {"x": x}, upstream, [wanted], of=of, probe=which_turn)


@pytest.mark.task("03.4")
def test_a_transpose_adds_to_the_gradient_that_is_there():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    x.grad = np.array([[10.0, 20.0], [30.0, 40.0]])
    upstream = np.array([[1.0, 2.0], [3.0, 4.0]])
    check_rule(lambda x: x.T, {"x": x}, upstream, [[[11.0, 23.0], [32.0, 44.0]]], of="x.T", probe=which_turn)
    check_freed(lambda x: transpose(x), x, of="transpose(x)")


# 03.5 Stacks of matrices


@pytest.mark.task("03.5")
def test_each_pair_of_matrices_is_a_product_of_its_own():
    a, b = Tensor([[[1.0, 2.0]], [[3.0, 4.0]]]), Tensor([[[5.0], [6.0]], [[7.0], [8.0]]])
    upstream = np.array([[[1.0]], [[10.0]]])
    wanted = [[[[5.0, 6.0]], [[70.0, 80.0]]], [[[1.0], [2.0]], [[30.0], [40.0]]]]
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, upstream, wanted, of="a @ b", probe=which_product)


@pytest.mark.task("03.5")
def test_square_matrices_do_not_hide_a_wrong_transpose():
    a = Tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    b = Tensor([[[5.0, 6.0], [7.0, 8.0]], [[1.0, 2.0], [0.0, 1.0]]])
    upstream = np.array([[[1.0, 0.0], [0.0, 10.0]], [[1.0, 0.0], [0.0, 1.0]]])
    wanted = [
        [[[5.0, 7.0], [60.0, 80.0]], [[1.0, 0.0], [2.0, 1.0]]],
        [[[1.0, 30.0], [2.0, 40.0]], [[1.0, 0.0], [0.0, 1.0]]],
    ]
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, upstream, wanted, of="a @ b", probe=which_product)


@pytest.mark.task("03.5")
def test_a_matrix_that_meets_several_collects_from_all_of_them():
    """And adds that to the gradient that is there."""
    a, b = Tensor([[[1.0, 2.0]], [[3.0, 4.0]]]), Tensor([[[5.0], [6.0]]])
    a.grad, b.grad = np.full((2, 1, 2), 100.0), np.full((1, 2, 1), 200.0)
    upstream = np.array([[[1.0]], [[10.0]]])
    wanted = [[[[105.0, 106.0]], [[150.0, 160.0]]], [[[231.0], [242.0]]]]
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, upstream, wanted, of="a @ b", probe=which_product)


@pytest.mark.task("03.5")
def test_a_matrix_that_meets_a_stack_gets_its_own_shape_back():
    a, b = Tensor([[1.0, 2.0]]), Tensor([[[5.0], [6.0]], [[7.0], [8.0]]])
    upstream = np.array([[[1.0]], [[10.0]]])
    wanted = [[[75.0, 86.0]], [[[1.0], [2.0]], [[10.0], [20.0]]]]
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, upstream, wanted, of="a @ b", probe=which_product)


@pytest.mark.task("03.5")
def test_a_stack_times_itself_gets_both_shares():
    x = Tensor([[[1.0, 2.0], [3.0, 4.0]]])
    a, b, ones = Tensor([[[1.0, 2.0], [3.0, 4.0]]]), Tensor([[[5.0, 6.0], [7.0, 8.0]]]), np.ones((1, 2, 2))
    twice = used_twice(lambda a, b: a @ b, a, b, ones, [[[11.0, 15.0], [11.0, 15.0]]], [[[4.0, 4.0], [6.0, 6.0]]])
    look = first_that_tells(twice, which_product)
    check_rule(lambda x: x @ x, {"x": x}, ones, [[[[7.0, 11.0], [9.0, 13.0]]]], of="x @ x", probe=look)


@pytest.mark.task("03.5")
def test_a_constant_on_either_side_of_a_stack_leaves_it_its_gradient():
    x, constant = Tensor([[[1.0, 2.0]]]), np.array([[[3.0], [4.0]]])
    (x @ constant)._backward(np.array([[[1.0]]]))
    check_grad(x, np.array([[[3.0, 4.0]]]), of="x @ constant", at="x = [[[1, 2]]], constant = [[[3], [4]]]")
    (constant @ x)._backward(np.array([[[1.0, 10.0], [0.0, 0.0]]]))
    check_grad(x, np.array([[[6.0, 34.0]]]), of="constant @ x after that", at="upstream [[[1, 10], [0, 0]]]")


@pytest.mark.task("03.5")
def test_stacks_keep_float32_and_let_go_of_their_result():
    a, b = Tensor(np.float32([[[1.0, 2.0]]])), Tensor(np.float32([[[3.0], [4.0]]]))
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, np.float32([[[2.0]]]), [[[[6.0, 8.0]]], [[[2.0], [4.0]]]], "a @ b")
    check_freed(lambda a, b: a @ b, Tensor([[[1.0, 2.0]]]), Tensor([[[3.0], [4.0]]]), of="a @ b")


# 03.6 Vectors


@pytest.mark.task("03.6")
def test_two_vectors_give_a_number():
    arrays = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 5.0])}
    check_through(MATMUL, arrays, 13.0, 10.0, [[30.0, 50.0], [10.0, 20.0]], "a @ b", probe=which_vector)


@pytest.mark.task("03.6")
def test_a_vector_on_the_left_is_a_row():
    arrays = {"a": np.array([1.0, 2.0]), "b": np.array([[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])}
    gradients = [[543.0, 876.0], [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]]
    check_through(MATMUL, arrays, [15.0, 18.0, 21.0], [1.0, 10.0, 100.0], gradients, "a @ b", probe=which_vector)


@pytest.mark.task("03.6")
def test_a_vector_on_the_right_is_a_column():
    arrays = {"a": np.array([[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]), "b": np.array([1.0, 0.0, 2.0])}
    gradients = [[[1.0, 0.0, 2.0], [10.0, 0.0, 20.0]], [63.0, 74.0, 85.0]]
    check_through(MATMUL, arrays, [13.0, 22.0], [1.0, 10.0], gradients, "a @ b", probe=which_vector)


@pytest.mark.task("03.6")
def test_an_axis_of_size_one_that_was_there_before_stays():
    arrays = {"a": np.array([1.0, 2.0]), "b": np.array([[3.0], [5.0]])}
    check_through(MATMUL, arrays, [13.0], [10.0], [[30.0, 50.0], [[10.0], [20.0]]], "a @ b", probe=which_vector)
    arrays = {"a": np.array([[3.0, 5.0]]), "b": np.array([1.0, 2.0])}
    check_through(MATMUL, arrays, [13.0], [10.0], [[[10.0, 20.0]], [30.0, 50.0]], "a @ b", probe=which_vector)


@pytest.mark.task("03.6")
def test_a_vector_meets_every_matrix_of_a_stack():
    arrays = {"a": np.array([1.0, 2.0]), "b": np.array([[[3.0], [5.0]], [[7.0], [8.0]]])}
    gradients = [[73.0, 85.0], [[[1.0], [2.0]], [[10.0], [20.0]]]]
    check_through(MATMUL, arrays, [[13.0], [23.0]], [[1.0], [10.0]], gradients, "a @ b", probe=which_vector)


@pytest.mark.task("03.6")
def test_a_vector_times_itself_gets_both_shares():
    x = np.float32([3.0, 4.0])
    check_through(lambda x: x @ x, {"x": x}, 25.0, 1.0, [[6.0, 8.0]], "x @ x in float32", probe=which_vector)


# 03.7 A stack and one matrix


@pytest.mark.task("03.7")
def test_every_row_of_the_stack_meets_the_matrix():
    arrays = {"a": np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]), "b": np.array([[1.0], [10.0]])}
    upstream = [[[1.0], [2.0]], [[3.0], [4.0]]]
    gradients = [
        [[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]],
        [[1 + 6 + 15 + 28.0], [2 + 8 + 18 + 32.0]],
    ]
    value = [[[21.0], [43.0]], [[65.0], [87.0]]]
    check_through(MATMUL, arrays, value, upstream, gradients, "a @ b", probe=which_rows)


@pytest.mark.task("03.7")
def test_a_stack_may_have_any_number_of_axes():
    arrays = {
        "a": np.array([[[[1.0, 2.0]], [[3.0, 4.0]]], [[[5.0, 6.0]], [[7.0, 8.0]]]]),
        "b": np.array([[1.0], [10.0]]),
    }
    upstream = [[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]
    gradients = [[[[[1.0, 10.0]], [[2.0, 20.0]]], [[[3.0, 30.0]], [[4.0, 40.0]]]], [[50.0], [60.0]]]
    value = [[[[21.0]], [[43.0]]], [[[65.0]], [[87.0]]]]
    check_through(MATMUL, arrays, value, upstream, gradients, "a @ b", probe=which_rows)


@pytest.mark.task("03.7")
def test_a_stack_may_meet_one_vector():
    arrays = {"a": np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]), "b": np.array([1.0, 10.0])}
    gradients = [[[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]], [50.0, 60.0]]
    value = [[21.0, 43.0], [65.0, 87.0]]
    check_through(MATMUL, arrays, value, [[1.0, 2.0], [3.0, 4.0]], gradients, "a @ b", probe=which_rows)


@pytest.mark.task("03.7")
def test_one_product_needs_no_matrix_of_shares_for_each_matrix_of_the_stack():
    """The matrix has 1,024 numbers and the stack 64 rows: a share of the matrix for each would be 65,536 numbers."""
    out = Tensor(np.ones((64, 1, 32))) @ Tensor(np.ones((32, 32)))
    tracemalloc.start()
    try:
        out.backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > 300_000:
        raise CheckFailed(
            "y = a @ b, a of shape (64, 1, 32), b of shape (32, 32), where all numbers are right:\n"
            f"y.backward() takes {peak:,} bytes, expected less than 300,000",
            "For each matrix of the stack a whole matrix of shares is made, and then they are summed. With all rows of "
            "the stack below each other in one matrix it is one product, which sums by itself.",
        )


@pytest.mark.task("03.7")
def test_a_stack_and_a_matrix_keep_float32():
    arrays = {"a": np.float32([[[1.0, 2.0], [3.0, 4.0]]]), "b": np.float32([[1.0], [10.0]])}
    gradients = [[[[1.0, 10.0], [2.0, 20.0]]], [[7.0], [10.0]]]
    value = [[[21.0], [43.0]]]
    check_through(MATMUL, arrays, value, [[[1.0], [2.0]]], gradients, "a @ b in float32", probe=which_rows)


# 03.8 Dot


@pytest.mark.task("03.8")
def test_dot_is_the_matrix_product_as_long_as_the_right_side_is_no_stack():
    arrays = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 5.0])}
    check_through(dot, arrays, 13.0, 10.0, [[30.0, 50.0], [10.0, 20.0]], "dot(a, b)", probe=which_dot)
    arrays = {"a": np.array([[1.0, 2.0]]), "b": np.array([[3.0, 4.0], [5.0, 6.0]])}
    gradients = [[[43.0, 65.0]], [[1.0, 10.0], [2.0, 20.0]]]
    check_through(dot, arrays, [[13.0, 16.0]], [[1.0, 10.0]], gradients, "dot(a, b)", probe=which_dot)


@pytest.mark.task("03.8")
def test_in_dot_every_row_meets_every_matrix_of_a_stack():
    """Shapes (2, 2) and (3, 2, 1) give (2, 3, 1)."""
    arrays = {"a": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": np.array([[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [1.0]]])}
    value = [[[1.0], [2.0], [3.0]], [[3.0], [4.0], [7.0]]]
    upstream = [[[1.0], [10.0], [100.0]], [[0.0], [0.0], [1.0]]]
    gradients = [[[101.0, 110.0], [1.0, 1.0]], [[[1.0], [2.0]], [[10.0], [20.0]], [[103.0], [204.0]]]]
    check_through(dot, arrays, value, upstream, gradients, "dot(a, b)", probe=which_dot)


@pytest.mark.task("03.8")
def test_dot_of_two_stacks_has_the_axes_of_both():
    """Shapes (2, 1, 2) and (2, 2, 2) give (2, 1, 2, 2), where @ gives (2, 1, 2)."""
    arrays = {"a": np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), "b": np.arange(8.0).reshape(2, 2, 2)}
    value = [[[[4.0, 7.0], [16.0, 19.0]]], [[[8.0, 15.0], [36.0, 43.0]]]]
    upstream = [[[[1.0, 0.0], [0.0, 0.0]]], [[[0.0, 10.0], [0.0, 100.0]]]]
    gradients = [[[[0.0, 2.0]], [[510.0, 730.0]]], [[[1.0, 30.0], [2.0, 40.0]], [[0.0, 300.0], [0.0, 400.0]]]]
    check_through(dot, arrays, value, upstream, gradients, "dot(a, b)", probe=which_dot)


@pytest.mark.task("03.8")
def test_in_dot_the_right_side_may_have_four_axes():
    """Shapes (2,) and (3, 1, 2, 1) give (3, 1, 1)."""
    arrays = {"a": np.array([1.0, 10.0]), "b": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape(3, 1, 2, 1)}
    gradients = [[1 + 6 + 20.0, 2 + 8 + 24.0], np.array([1.0, 10.0, 2.0, 20.0, 4.0, 40.0]).reshape(3, 1, 2, 1)]
    upstream = [[[1.0]], [[2.0]], [[4.0]]]
    value = [[[21.0]], [[43.0]], [[65.0]]]
    look_again = first_that_tells(which_dot, four_axes)
    check_through(dot, arrays, value, upstream, gradients, "dot(a, b)", probe=look_again)


@pytest.mark.task("03.8")
def test_dot_of_a_vector_and_a_stack_keeps_float32():
    arrays = {"a": np.float32([1.0, 2.0]), "b": np.float32([[[1.0, 3.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]]])}
    value = [[1.0, 5.0], [2.0, 3.0]]
    gradients = [[1031.0, 1110.0], [[[1.0, 10.0], [2.0, 20.0]], [[100.0, 1000.0], [200.0, 2000.0]]]]
    check_through(dot, arrays, value, [[1.0, 10.0], [100.0, 1000.0]], gradients, "dot(a, b)", probe=which_dot)


# The harder suite: python grader.py 03 --goal


@pytest.mark.goal
@pytest.mark.task("03.1")
def test_goal_sums_over_every_choice_of_axes_match_central_differences():
    for shape, axis in CHOICES:
        for keepdims in (False, True):
            name = f"sum(x, axis={axis}, keepdims={keepdims})"
            check_gradient(lambda x, a=axis, k=keepdims: sum_of(x, a, k), numbers(shape), name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.1")
def test_goal_a_sum_keeps_float32_and_shares_nothing():
    x = Tensor(np.float32([[1.0, 2.0], [3.0, 4.0]]))
    sum_of(x, 0)._backward(np.float32([1.0, 2.0]))
    sum_of(x, 0)._backward(np.float32([1.0, 2.0]))
    check_close(x.grad, np.float32([[2.0, 4.0], [2.0, 4.0]]), "two sums of a float32 tensor: x.grad")
    x.grad += np.float32([[1.0, 0.0], [0.0, 0.0]])
    check_close(x.grad, np.float32([[3.0, 4.0], [2.0, 4.0]]), "one more on the first number: x.grad")


@pytest.mark.goal
@pytest.mark.task("03.2")
def test_goal_means_over_every_choice_of_axes_match_central_differences():
    for shape, axis in CHOICES:
        for keepdims in (False, True):
            name = f"mean(x, axis={axis}, keepdims={keepdims})"
            x = numbers(shape)
            if x.size:
                found = mean(Tensor(x), axis, keepdims).data
                check_close(found, np.asarray(np.mean(x, axis=axis, keepdims=keepdims)), f"{name} of shape {shape}")
            check_gradient(lambda x, a=axis, k=keepdims: mean(x, a, k), x, name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.3")
def test_goal_reshapes_match_central_differences():
    for old, new in (
        ((2, 3), (6,)),
        ((6,), (3, 2)),
        ((2, 3, 4), (4, -1)),
        ((2, 1, 3), (3, 1, 2, 1)),
        ((), (1, 1)),
        ((1, 1), ()),
        ((0, 3), (3, 0, 2)),
    ):
        name = f"reshape(x, {new})"
        check_gradient(lambda x, new=new: reshape(x, new), numbers(old), name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.3")
def test_goal_a_reshape_takes_an_upstream_that_lies_in_memory_the_other_way():
    x = Tensor(np.zeros((2, 3), np.float32).T)
    reshape(x, 6)._backward(np.float32([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0], [4.0, 9.0], [5.0, 9.0], [6.0, 9.0]])[:, 0])
    check_close(
        x.grad, np.float32([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "reshape(x, 6) of a view of shape (3, 2): x.grad"
    )


@pytest.mark.goal
@pytest.mark.task("03.4")
def test_goal_every_order_of_axes_matches_central_differences():
    for shape in ((), (3,), (2, 3), (2, 1, 3), (2, 2, 2), (0, 2, 3), (2, 1, 3, 2)):
        orders = list(permutations(range(len(shape))))
        from_the_end = [tuple(axis - len(shape) * (i % 2) for i, axis in enumerate(order)) for order in orders]
        for axes in [None, *dict.fromkeys([*orders, *from_the_end])]:
            name = f"transpose(x, {axes})"
            check_gradient(lambda x, axes=axes: transpose(x, axes), numbers(shape), name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.4")
def test_goal_axes_counted_from_the_end_and_float32():
    x = Tensor(np.zeros((2, 3, 4), np.float32))
    upstream = np.arange(24.0, dtype=np.float32).reshape(4, 2, 3)
    transpose(x, [-1, -3, -2])._backward(upstream)
    check_close(x.grad, np.ascontiguousarray(upstream.transpose(1, 2, 0)), "transpose(x, [-1, -3, -2]): x.grad")


@pytest.mark.goal
@pytest.mark.task("03.5")
def test_goal_stacks_match_central_differences():
    for a, b in (
        ((2, 2, 3), (2, 3, 4)),
        ((3, 3, 3), (3, 3, 3)),
        ((2, 3), (2, 3, 2)),
        ((1, 2, 3), (4, 3, 2)),
        ((2, 1, 2, 3), (3, 3, 1)),
        ((2, 1, 1, 2), (1, 3, 2, 2)),
        ((0, 2, 3), (0, 3, 2)),
        ((2, 2, 0), (2, 0, 3)),
    ):
        check_binary_gradient(MATMUL, a, b, name="a @ b", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.6")
def test_goal_vectors_match_central_differences():
    for a, b in (
        ((3,), (3,)),
        ((1,), (1,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((1,), (1, 1)),
        ((3,), (2, 3, 2)),
        ((3,), (2, 1, 3, 2)),
        ((0,), (0,)),
        ((0,), (0, 2)),
        ((2, 0), (0,)),
    ):
        check_values(MATMUL, np.matmul, a, b, name="a @ b")
        check_binary_gradient(MATMUL, a, b, name="a @ b", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.6")
def test_goal_a_matrix_of_constants_meets_a_vector():
    """A plain array on one side is a constant in the other side's dtype."""
    x = Tensor(np.float32([1.0, 2.0]))
    out = np.array([[3.0, 4.0]]) @ x
    check_close(out.data, np.float32([11.0]), "array @ x in float32")
    out.backward()
    check_close(x.grad, np.float32([3.0, 4.0]), "array @ x in float32: x.grad")


@pytest.mark.goal
@pytest.mark.task("03.7")
def test_goal_a_stack_and_one_matrix_match_central_differences():
    for a, b in (
        ((2, 2, 3), (3, 4)),
        ((3, 3, 3), (3, 3)),
        ((2, 1, 2, 3), (3, 1)),
        ((1, 1, 1, 1, 1), (1, 1)),
        ((0, 2, 3), (3, 2)),
        ((2, 0, 3), (3, 2)),
        ((2, 2, 3), (3, 0)),
        ((2, 2, 3), (3,)),
        ((2, 1, 2, 3), (3,)),
    ):
        check_values(MATMUL, np.matmul, a, b, name="a @ b")
        check_binary_gradient(MATMUL, a, b, name="a @ b", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("03.8")
def test_goal_dot_matches_numpy_and_central_differences():
    for a, b in (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 2, 3), (3,)),
        ((3,), (2, 3, 2)),
        ((2, 3), (2, 3, 2)),
        ((2, 2, 3), (2, 3, 2)),
        ((2, 3), (2, 1, 3, 2)),
        ((1, 2, 2), (1, 1, 2, 1)),
        ((0, 3), (2, 3, 2)),
        ((), (2, 2)),
    ):
        check_values(dot, np.dot, a, b, name="dot(a, b)")
        check_binary_gradient(dot, a, b, name="dot(a, b)", make=Tensor)


CHOICES = [((), None), ((3,), None), ((3,), 0), ((2, 3), 1), ((2, 3), -2), ((2, 3), (0, 1)), ((2, 1, 3), (0, 2))]
CHOICES += [((2, 3, 2), (-1, 0)), ((2, 3, 2), (1, 2)), ((2, 3, 2), None), ((2, 1, 3), 1), ((0, 3), 1), ((2, 0), 0)]


def MATMUL(a, b):
    return a @ b


def numbers(shape):
    return np.asarray(np.random.default_rng(len(shape)).standard_normal(shape))


def check_values(operation, numpys, a_shape, b_shape, name):
    rng = np.random.default_rng(3)
    a, b = np.asarray(rng.standard_normal(a_shape)), np.asarray(rng.standard_normal(b_shape))
    out = operation(Tensor(a), Tensor(b))
    check_close(out.data, np.asarray(numpys(a, b)), f"{name} of shapes {a_shape} and {b_shape}")


def check_through(operation, arrays, value, upstream, gradients, of, tolerance=1e-9, probe=None):
    """Check a result that may be made of several operations: its numbers first, then what arrives after backward()."""
    dtype = next(iter(arrays.values())).dtype
    inputs = {name: Tensor(array.copy()) for name, array in arrays.items()}
    look = first_that_tells(lambda: leads_back(operation, arrays), lambda: has_a_rule(operation, arrays), probe)
    with nothing_else_changes(of, **inputs):
        out = run(operation, inputs, probe=look)
    at = ", ".join(f"{name} = {array.tolist()}" for name, array in arrays.items())
    if not isinstance(out, Tensor):
        kind = "None" if out is None else f"of type {type(out).__name__}"
        why = "Nothing comes back: is there a return?" if out is None else "Only a Tensor has a way back."
        raise CheckFailed(f"y = {of} at {at}:\ny is {kind}, expected a Tensor", why)
    check_close(out.data, np.array(value, dtype), f"y = {of} at {at}:\ny", tolerance, probe=look)
    upstream = np.array(upstream, dtype)
    explained(lambda: out.backward(upstream), look)
    for (name, x), gradient in zip(inputs.items(), gradients, strict=True):
        what = f"y = {of} at {at}, upstream {upstream.tolist()}:\n{name}.grad"
        check_close(x.grad, np.array(gradient, dtype), what, tolerance, probe=look)
        check_close(x.data, arrays[name], f"y = {of} at {at}:\nafter backward(), {name}.data")


def run(operation, inputs, probe):
    """The operation on the inputs. An error takes its diagnosis along."""
    try:
        return explained(lambda: operation(*inputs.values()), probe)
    except RecursionError as error:
        error.diagnosis = "It comes back to itself without end: what it calls, asked for the same, calls it again."
        raise


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def leads_back(operation, arrays):
    """Is there a way from the result back to every input?"""
    inputs = {name: Tensor(array.copy()) for name, array in arrays.items()}
    seen, waiting = set(), [operation(*inputs.values())]
    while waiting:
        tensor = waiting.pop()
        if tensor not in seen:
            seen.add(tensor)
            waiting.extend(tensor._children)
    lost = [name for name, x in inputs.items() if x not in seen]
    if lost:
        return f"No way leads from the result back to {' and '.join(lost)}: only the numbers in .data went into it."
    return None


def has_a_rule(operation, arrays):
    """Does every tensor on the way back have a rule, and not the one of an input?"""
    no_rule, seen, waiting = Tensor(0.0)._backward, set(), [operation(*[Tensor(array) for array in arrays.values()])]
    while waiting:
        tensor = waiting.pop()
        if tensor not in seen:
            seen.add(tensor)
            waiting.extend(tensor._children)
            if tensor._children and tensor._backward is no_rule:
                return "A result knows its inputs, but has no rule to hand anything on to them: `_backward` is not set."
    return None


def made_for_tensors(operation, module, name, *arrays):
    """Does the rule call the module's own function, which takes a Tensor, with an array?"""
    out = operation(*[Tensor(array) for array in arrays])
    calls, before = [], getattr(module, name)
    setattr(module, name, lambda *given, **named: calls.append(given) or before(*given, **named))
    try:
        out._backward(np.ones(out.shape))
    except Exception:
        pass  # whether it was called is what counts
    finally:
        setattr(module, name, before)
    if not calls:
        return None
    return f"The rule calls this module's {name}(...), which is for Tensors. What arrives is an array: np.{name}."


def numpys_own(operation, module, *names):
    """Is a function of NumPy's called with a Tensor?"""
    calls = []
    for name in names:
        before = getattr(np, name)
        setattr(np, name, lambda *given, before=before, **named: calls.append(given) or before(*given, **named))
        try:
            operation()
        except Exception:
            pass  # with what it was called is what counts
        finally:
            setattr(np, name, before)
        if any(isinstance(given[0], Tensor) for given in calls if given):
            return f"np.{name} takes an array, and this is a Tensor. This module's own {module} has a way back."
    return None


def arrived(operation, upstream, *arrays) -> list:
    """What arrives at the inputs of an operation, one after the other."""
    tensors = [Tensor(array) for array in arrays]
    operation(*tensors).backward(np.asarray(upstream))
    return [x.grad for x in tensors]


def value_of(operation, *arrays) -> np.ndarray:
    return operation(*[Tensor(array) for array in arrays]).data


def fits(wanted, look) -> bool:
    """Is it right there? An error is not."""
    try:
        found = look()
    except Exception:
        return False
    found = found if isinstance(found, list) else [found]
    return all(np.shape(one) == np.shape(other) and np.allclose(one, other) for one, other in zip(found, wanted))


def which_kind_of_sum():
    """One axis, several, kept ones, all of them: which of these is right, and which is not?"""
    x = np.zeros((2, 3))
    row, full = np.array([[3.0] * 3, [40.0] * 3]), np.full((2, 3), 7.0)
    one = fits([row], lambda: arrived(lambda x: sum_of(x, 1), [3.0, 40.0], x))
    kept = fits([row], lambda: arrived(lambda x: sum_of(x, 1, True), [[3.0], [40.0]], x))
    everything = fits([full], lambda: arrived(lambda x: sum_of(x), 7.0, x))
    cube = np.broadcast_to([[3.0], [40.0]], (2, 2, 2))
    two = fits([cube], lambda: arrived(lambda x: sum_of(x, (0, 2)), [3.0, 40.0], np.zeros((2, 2, 2))))
    if one and not kept:
        return "Without keepdims it is right. With keepdims=True the axis is still in what arrives, with size 1."
    if one and kept and not everything:
        return "With an axis it is right. In a sum over everything `axis` is None, and there it is not."
    if kept and not one:
        return "With keepdims=True it is right. Without, the axis that was summed away is missing in what arrives."
    if one and kept and everything and not two:
        return "With one axis it is right. With two, axis=(0, 2), it is not."
    return None


X, SPREAD = np.array([[2.0, 5.0], [7.0, 11.0]]), np.array([[3.0, 3.0], [40.0, 40.0]])
which_spread = first_that_tells(
    which_formula(
        lambda: arrived(lambda x: sum_of(x, 1), [3.0, 40.0], X)[0],
        {
            "On a square table, where any shape fits, what arrives at the sum of a row is laid down a column.": (
                SPREAD.T
            ),
            "It is divided by how many there are: that is the mean. In a sum each number counts in full.": SPREAD / 2,
            "It is multiplied by how many there are: each number went into the sum once.": SPREAD * 2,
            "Each number gets the total of all that arrives, and not what arrives at its own sum.": np.full(
                (2, 2), 43.0
            ),
            "It is multiplied by the numbers of x: the slope of a sum is 1.": SPREAD * X,
            "What arrives gets to the first number of each sum only.": SPREAD * [1.0, 0.0],
            "Each number gets the mean of all that arrives, and not what arrives at its own sum.": np.full(
                (2, 2), 21.5
            ),
        },
    ),
    lambda: made_for_tensors(lambda x: sum_of(x, 1), shapes, "sum", X),
    which_kind_of_sum,
)

TABLE = np.array([[1.0, 2.0, 6.0], [4.0, 8.0, 30.0]])
which_mean = first_that_tells(
    which_formula(
        lambda: value_of(lambda x: mean(x, 1), TABLE),
        {
            "It is the sum: it is not divided.": [9.0, 42.0],
            "It is divided by the size of all of x. Into each mean goes only one row.": [1.5, 7.0],
            "It is divided by the length of axis 0, whatever `axis` says.": [4.5, 21.0],
            "It is divided twice.": [1.0, 14.0 / 3.0],
            "It is multiplied by the count: the sum is divided by it.": [27.0, 126.0],
            "The sum goes over everything: `axis` is not handed on.": 17.0,
            "The mean goes over everything: `axis` is not handed on.": 8.5,
        },
    ),
    which_formula(
        lambda: value_of(lambda x: mean(x, 1, True), TABLE),
        {"The axis is lost: `keepdims` is not handed on.": [3.0, 14.0]},
    ),
    lambda: numpys_own(lambda: mean(Tensor(TABLE), 1), "sum(x, axis, keepdims)", "sum", "mean"),
)


def not_reshaped():
    """Where the shape stays the same, there is nothing to bring back."""
    x, upstream = np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
    same = fits([upstream], lambda: arrived(lambda x: reshape(x, 2, 2), upstream, x))
    other = fits([upstream], lambda: arrived(lambda x: reshape(x, 4), upstream.ravel(), x))
    row = fits([upstream.ravel()], lambda: arrived(lambda x: reshape(x, 2, 2), upstream, np.zeros(4)))
    if row and not same and not other:
        return "Where x is one row of numbers it is right. Everywhere else the gradient keeps the shape of a row."
    if same and not other:
        return "Where the shape stays the same it is right. Where it changes, the gradient keeps the new shape."
    return None


NEW = np.array([[1.0, 20.0], [300.0, 4.0], [50.0, 600.0]])
which_order = first_that_tells(
    which_formula(
        lambda: arrived(lambda x: reshape(x, 3, 2), NEW, np.zeros((2, 3)))[0],
        {
            "The shape is right, but the gradient was transposed: the numbers are in other places.": NEW.T,
            "The numbers were read and filled in column by column: forward they go row by row.": NEW.reshape(
                2, 3, order="F"
            ),
            "The numbers come back from the last to the first: their order stays as it is.": NEW.ravel()[::-1].reshape(
                2, 3
            ),
        },
    ),
    lambda: made_for_tensors(lambda x: reshape(x, 4), shapes, "reshape", np.zeros((2, 2))),
    not_reshaped,
)

CUBE, BOX = np.arange(8.0).reshape(2, 2, 2), np.arange(24.0).reshape(3, 4, 2)
which_turn = first_that_tells(
    lambda: made_for_tensors(lambda x: transpose(x, (1, 2, 0)), shapes, "transpose", CUBE),
    which_formula(
        lambda: arrived(lambda x: transpose(x, (1, 2, 0)), BOX, np.zeros((2, 3, 4)))[0],
        {"The shape is right, but a reshape leaves the numbers in their old order.": BOX.reshape(2, 3, 4)},
    ),
    which_formula(
        lambda: arrived(lambda x: transpose(x, (1, 2, 0)), CUBE, np.zeros((2, 2, 2)))[0],
        {
            "With the axes (1, 2, 0) the gradient comes back as it arrived: nothing turns it.": CUBE,
            "With (1, 2, 0) the gradient is turned by (1, 2, 0) again. Twice that is not back at the start.": (
                CUBE.transpose(1, 2, 0)
            ),
            "The order of the axes is reversed, whatever `axes` says.": CUBE.T,
            "With the axes (1, 2, 0) it uses (0, 2, 1): read backwards is not undone.": CUBE.transpose(0, 2, 1),
        },
    ),
)


def turned(stack):
    return np.swapaxes(stack, -1, -2)


LEFT, UP, RIGHT = (np.random.default_rng(seed).standard_normal((2, 2, 2)) for seed in range(3))
TO_A, TO_B = UP @ turned(RIGHT), turned(LEFT) @ UP


def not_collected():
    """With stacks of the same length there is nothing to undo."""
    equal = fits([TO_A, TO_B], lambda: arrived(MATMUL, UP, LEFT, RIGHT))
    one_left = fits([TO_A.sum(axis=0)[None], turned(LEFT[:1]) @ UP], lambda: arrived(MATMUL, UP, LEFT[:1], RIGHT))
    one_right = fits([UP @ turned(RIGHT[:1]), TO_B.sum(axis=0)[None]], lambda: arrived(MATMUL, UP, LEFT, RIGHT[:1]))
    if equal and not (one_left and one_right):
        return (
            "With stacks of the same length both gradients are right. Where one matrix meets several, its gradient is "
            "not the sum of its shares: broadcasting is not undone."
        )
    return None


def summed_too_early():
    """What is handed to unbroadcast: a product, or what the product is made of?"""
    calls, before = [], module_of_products.unbroadcast
    module_of_products.unbroadcast = lambda gradient, shape: calls.append(gradient) or before(gradient, shape)
    try:
        arrived(MATMUL, UP, LEFT, RIGHT)
    finally:
        module_of_products.unbroadcast = before
    parts = [UP, LEFT, RIGHT, turned(LEFT), turned(RIGHT)]
    if any(np.array_equal(one, part) for one in calls for part in parts):
        return "unbroadcast gets one of the two factors. First the product, and unbroadcast around all of it."
    return None


def other_shape():
    """Same number of matrices, but not square ones: nothing has to be summed, and a and b differ in shape."""
    a, b, up = (np.random.default_rng(5).standard_normal(shape) for shape in ((2, 3, 2), (2, 2, 4), (2, 3, 4)))
    equal = fits([TO_A, TO_B], lambda: arrived(MATMUL, UP, LEFT, RIGHT))
    if equal and not fits([up @ turned(b), turned(a) @ up], lambda: arrived(MATMUL, up, a, b)):
        return (
            "Where a and b have the same shape both gradients are right. Where they differ they are not, though "
            "nothing has to be summed: was unbroadcast given the shape of the other one?"
        )
    return None


def fixed_axes():
    """With stacks of three axes it is right. With one of four, or with two and three, axes 1 and 2 are other ones."""
    if fits([TO_A, TO_B], lambda: arrived(MATMUL, UP, LEFT, RIGHT)) and not fits(
        [TO_A[None], TO_B[None]], lambda: arrived(MATMUL, UP[None], LEFT[None], RIGHT[None])
    ):
        return "With three axes it is right, with four it is not: a matrix lies in the last two axes, -1 and -2."
    return None


SUMMED = "Every matrix of {} gets the {} over the whole stack: each has a gradient of its own."
which_product = first_that_tells(
    which_formula(
        lambda: arrived(MATMUL, UP, LEFT, RIGHT)[0],
        {
            "a gets upstream @ b: a transpose is missing.": UP @ RIGHT,
            "a gets the two factors the other way round.": turned(RIGHT) @ UP,
            "a gets b @ upstream: a transpose is missing, and the two are the other way round.": RIGHT @ UP,
            "For a, all the axes of b are turned around. A matrix of a stack has only the last two.": UP @ RIGHT.T,
            "For a, the first two axes of b are exchanged. A matrix lies in the last two.": UP
            @ np.swapaxes(RIGHT, 0, 1),
            "a gets what belongs to b.": TO_B,
            "a gets an elementwise product: the rule of @ is made of matrix products.": UP * RIGHT,
            SUMMED.format("a", "sum"): np.broadcast_to(TO_A.sum(0), TO_A.shape),
            SUMMED.format("a", "mean"): np.broadcast_to(TO_A.mean(0), TO_A.shape),
        },
    ),
    which_formula(
        lambda: arrived(MATMUL, UP, LEFT, RIGHT)[1],
        {
            "b gets a @ upstream: a transpose is missing.": LEFT @ UP,
            "b gets the two factors the other way round.": UP @ turned(LEFT),
            "b gets upstream @ a: a transpose is missing, and the two are the other way round.": UP @ LEFT,
            "For b, all the axes of a are turned around. A matrix of a stack has only the last two.": LEFT.T @ UP,
            "For b, the first two axes of a are exchanged. A matrix lies in the last two.": np.swapaxes(LEFT, 0, 1)
            @ UP,
            "b gets what belongs to a.": TO_A,
            "b gets an elementwise product: the rule of @ is made of matrix products.": UP * LEFT,
            "b gets the right products, each of them transposed.": turned(TO_B),
            SUMMED.format("b", "sum"): np.broadcast_to(TO_B.sum(0), TO_B.shape),
            SUMMED.format("b", "mean"): np.broadcast_to(TO_B.mean(0), TO_B.shape),
        },
    ),
    summed_too_early,
    fixed_axes,
    other_shape,
    not_collected,
)


def row_or_column():
    """(1, 1) is a row and a column. A longer vector is one of them only."""
    for side, short, long in (
        ("left", (np.ones(1), np.ones((1, 3))), (np.ones(2), np.ones((2, 3)))),
        ("right", (np.ones((3, 1)), np.ones(1)), (np.ones((3, 2)), np.ones(2))),
    ):
        if fits([short[0] @ short[1]], lambda s=short: value_of(MATMUL, *s)) and not fits(
            [long[0] @ long[1]], lambda s=long: value_of(MATMUL, *s)
        ):
            return (
                f"A vector on the {side} is right as long as it has one number, where a row is a column too, and a "
                "longer one is not. Were row and column exchanged?"
            )
    return None


def wrong_end():
    """A vector and one matrix: the row's axis is the first. With a stack it is the last but one."""
    if fits([V @ MATRIX], lambda: value_of(MATMUL, V, MATRIX)) and not fits(
        [V @ LEFT], lambda: value_of(MATMUL, V, LEFT)
    ):
        return "With one matrix it is right, with a stack it is not: the row's axis is the last but one, not the first."
    return None


V, MATRIX = np.array([1.0, 2.0]), np.array([[3.0, 4.0], [50.0, 600.0]])
which_vector = first_that_tells(
    which_formula(
        lambda: value_of(MATMUL, V, MATRIX),
        {
            "The axis that made a row of the vector is still in the result.": (V @ MATRIX)[None],
            "The vector on the left is taken for one on the right: each row of b is multiplied with it.": MATRIX @ V,
            "Everything is summed into one number.": (MATRIX.T * V).sum(),
            "It multiplies element by element, and nothing is summed.": MATRIX * V,
        },
    ),
    which_formula(
        lambda: value_of(MATMUL, MATRIX, V),
        {
            "The axis that made a column of the vector is still in the result.": (MATRIX @ V)[:, None],
            "The vector on the right is taken for one on the left: each column of a is multiplied with it.": V @ MATRIX,
            "Everything is summed into one number.": (MATRIX * V).sum(),
        },
    ),
    which_formula(
        lambda: value_of(MATMUL, V, V),
        {
            "Two vectors give one number, and here its axes are still there.": np.full((1, 1), 5.0),
            "Two vectors give one number, and here an axis of it is still there.": np.full((1,), 5.0),
            "Each number of a meets each of b: row and column were exchanged. The left vector is a row, (1, k).": (
                np.outer(V, V)
            ),
            "It multiplies element by element, and nothing is summed.": V * V,
        },
    ),
    which_formula(
        lambda: value_of(MATMUL, V, MATRIX[:, :1]),
        {"Every axis of size 1 is dropped. One of them was there before, and has to stay.": (V @ MATRIX)[0]},
    ),
    row_or_column,
    wrong_end,
)


def which_stack():
    """One row or several, square or not, three axes or four: where does it stop being right?"""

    def right(a_shape, m):
        a = np.random.default_rng(0).standard_normal(a_shape)
        b = np.random.default_rng(1).standard_normal((a_shape[-1], m))
        return fits([a @ b], lambda: value_of(MATMUL, a, b))

    if right((2, 3, 2), 2) and not right((2, 3, 2), 4):
        return (
            "With a square matrix it is right, with another one not: at the end of the result's shape stands m, not k."
        )
    if right((3, 1, 2), 4) and not right((3, 2, 2), 4):
        return "With one row in each matrix of the stack it is right, with two it is not: rows are counted wrongly."
    if right((3, 2, 2), 4) and not right((2, 3, 2, 2), 4):
        return "With three axes it is right, with four it is not: a stack may have any number of axes in front."
    return None


STACK, ONE = np.random.default_rng(5).standard_normal((2, 3, 2)), np.random.default_rng(6).standard_normal((2, 2))
which_rows = first_that_tells(
    which_formula(
        lambda: value_of(MATMUL, STACK, ONE),
        {
            "The numbers are right, but the rows still lie below each other: the stack's shape is lost.": (
                STACK.reshape(6, 2) @ ONE
            ),
            "The rows are right, but come back in another order.": (STACK.reshape(6, 2) @ ONE)
            .reshape(3, 2, 2)
            .swapaxes(0, 1),
            "The matrix is transposed: the last axis of a meets the last of b.": STACK @ ONE.T,
            "The columns of the stack were laid out as rows: the numbers of a row have to stay together.": (
                STACK.reshape(2, 6).T @ ONE
            ).reshape(2, 3, 2),
        },
    ),
    which_stack,
)

TALL = np.random.default_rng(7).standard_normal((3, 2, 4))  # with two inner numbers, and a first axis of three
WIDE = ONE @ TALL.swapaxes(0, 1).reshape(2, 12)
which_dot = first_that_tells(
    which_formula(
        lambda: value_of(dot, ONE, MATRIX),
        {"Where b is a matrix it is transposed, and nothing has to be turned: matmul(a, b).": ONE @ MATRIX.T},
    ),
    which_formula(
        lambda: value_of(dot, ONE, TALL),
        {
            "A reshape alone lays b out, and it leaves the numbers in their old order. The inner axis has to come "
            "first before: that is a transpose.": (ONE @ TALL.reshape(2, 12)).reshape(2, 3, 4),
            "The inner axis of b was brought to the end. It has to come to the front: (k, ...).": (
                ONE @ TALL.swapaxes(1, 2).reshape(2, 12)
            ).reshape(2, 3, 4),
            "The result is taken apart with the sizes of b first: the axes of a come first.": WIDE.reshape(3, 4, 2),
        },
    ),
    which_formula(
        lambda: value_of(dot, LEFT, RIGHT),
        {
            "With two stacks it is what @ gives: pair by pair. Here every row of a meets every matrix of b.": LEFT
            @ RIGHT,
            "The last axis of a meets the last axis of b, and not the last but one.": np.tensordot(
                LEFT, RIGHT, (-1, -1)
            ),
            "The last axis of a meets the first axis of b, and not the last but one.": np.tensordot(
                LEFT, RIGHT, (-1, 0)
            ),
            "The numbers are right, but two axes of b have come out exchanged.": np.dot(LEFT, RIGHT).swapaxes(-1, -2),
            "The numbers are right, but the axes of b come before those of a.": np.moveaxis(
                np.dot(LEFT, RIGHT), (2, 3), (0, 1)
            ),
            "The numbers are right, but b's axes are still merged into one.": np.dot(LEFT, RIGHT).reshape(2, 2, 4),
            "The numbers are right, but a's axes and b's are still merged.": np.dot(LEFT, RIGHT).reshape(4, 4),
        },
    ),
)


def four_axes():
    """With three axes it is right: what about a fourth?"""
    if fits([np.dot(ONE, TALL)], lambda: value_of(dot, ONE, TALL)):
        return "With three axes in b it is right, with four it is not: the order has to fit any number of axes."
    return None
