"""The checks of chapter 02: python grader.py 02"""

import gc

import numpy as np
import pytest

from meintorch import tensor
from meintorch.tensor import Tensor, as_tensor, unbroadcast
from tests._helpers import (
    CheckFailed,
    check_binary_gradient,
    check_close,
    check_freed,
    check_grad,
    check_random_programs,
    check_rule,
    check_twice,
    check_walk,
    count_living,
    explained,
    first_that_tells,
    nothing_else_changes,
    used_twice,
    which_formula,
)


@pytest.fixture(autouse=True)
def lend_unbroadcast(request, monkeypatch):
    """The tasks before 02.5 are checked with an unbroadcast that works, so that they can be right without it."""
    if request.node.get_closest_marker("task").args[0] != "02.5":
        monkeypatch.setattr(tensor, "unbroadcast", summed_to)


@pytest.mark.task("02.3")
def test_derivative_of_x_squared_plus_x_is_seven_at_three():
    """Nobody wrote down 2x + 1. It falls out of the bookkeeping."""
    x = Tensor(3.0)
    y = x * x + x
    y.backward()
    check_grad(x, 7.0, of="x * x + x", at="x = 3", probe=check_walk(Tensor))


@pytest.mark.task("02.1")
def test_both_terms_of_a_sum_get_what_arrives():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    check_rule(lambda a, b: a + b, {"a": a, "b": b}, np.array([10.0, 20.0]), [[10.0, 20.0], [10.0, 20.0]], of="a + b")


@pytest.mark.task("02.1")
def test_a_tensor_added_to_itself_gets_both_shares():
    x = Tensor([1.0, 2.0])
    ones = np.ones(2)
    twice = used_twice(lambda a, b: a + b, Tensor([2.0, 2.0]), Tensor([5.0, 5.0]), ones, 1.0, 1.0)
    check_rule(lambda x: x + x, {"x": x}, ones, [[2.0, 2.0]], of="x + x", probe=twice)


@pytest.mark.task("02.1")
def test_a_sum_adds_to_the_gradient_that_is_there():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    a.grad, b.grad = np.array([10.0, 10.0]), np.array([20.0, 20.0])
    wanted = [[13.0, 14.0], [23.0, 24.0]]
    check_rule(lambda a, b: a + b, {"a": a, "b": b}, np.array([3.0, 4.0]), wanted, of="a + b")


@pytest.mark.task("02.1")
def test_a_sum_hands_each_side_a_gradient_of_its_own_shape():
    """Also where the shapes differ: that is what unbroadcast is called for."""
    a, b = Tensor(np.ones((2, 2))), Tensor([3.0, 4.0])
    upstream = np.array([[1.0, 2.0], [10.0, 20.0]])
    check_rule(
        lambda a, b: a + b, {"a": a, "b": b}, upstream, [upstream, [11.0, 22.0]], of="a + b", probe=no_unbroadcast
    )
    wanted = [2 * upstream, [22.0, 44.0]]
    check_rule(lambda a, b: b + a, {"a": a, "b": b}, upstream, wanted, of="b + a", probe=no_unbroadcast)


@pytest.mark.task("02.1")
def test_a_sum_keeps_float32():
    a, b = Tensor(np.float32([2.0, 3.0])), Tensor(np.float32([5.0, 7.0]))
    (a + b)._backward(np.float32([0.25, 1.0]))
    check_close(a.grad, np.float32([0.25, 1.0]), "a + b of two float32 tensors, upstream [0.25, 1]: a.grad")
    check_close(b.grad, np.float32([0.25, 1.0]), "a + b of two float32 tensors, upstream [0.25, 1]: b.grad")


@pytest.mark.task("02.1")
def test_the_rule_of_a_sum_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: a + b, Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), of="a + b")


@pytest.mark.task("02.2")
def test_each_factor_gets_its_partner_times_what_arrives():
    a, b = Tensor([2.0, 3.0]), Tensor([5.0, 7.0])
    wanted = [[50.0, 700.0], [20.0, 300.0]]
    check_rule(lambda a, b: a * b, {"a": a, "b": b}, np.array([10.0, 100.0]), wanted, of="a * b", probe=which_factor)


@pytest.mark.task("02.2")
def test_a_tensor_times_itself_gets_both_shares():
    x = Tensor([3.0, 4.0])
    ones = np.ones(2)
    twice = used_twice(lambda a, b: a * b, Tensor([2.0, 2.0]), Tensor([5.0, 5.0]), ones, 5.0, 2.0)
    check_rule(lambda x: x * x, {"x": x}, ones, [[6.0, 8.0]], of="x * x", probe=twice)


@pytest.mark.task("02.2")
def test_a_product_adds_to_the_gradient_that_is_there():
    a, b = Tensor([2.0]), Tensor([5.0])
    a.grad, b.grad = np.array([10.0]), np.array([20.0])
    check_rule(lambda a, b: a * b, {"a": a, "b": b}, np.array([1.0]), [[15.0], [22.0]], of="a * b")


@pytest.mark.task("02.2")
def test_a_product_hands_each_side_a_gradient_of_its_own_shape():
    """Also where the shapes differ: that is what unbroadcast is called for."""
    a, b = Tensor([[1.0, 2.0], [5.0, 6.0]]), Tensor([3.0, 4.0])
    upstream = np.array([[1.0, 2.0], [10.0, 20.0]])
    wanted = [np.array([[3.0, 8.0], [30.0, 80.0]]), np.array([51.0, 124.0])]
    check_rule(lambda a, b: a * b, {"a": a, "b": b}, upstream, wanted, of="a * b", probe=no_unbroadcast)
    twice = [2 * one for one in wanted]
    check_rule(lambda a, b: b * a, {"a": a, "b": b}, upstream, twice, of="b * a", probe=no_unbroadcast)


@pytest.mark.task("02.2")
def test_a_constant_on_either_side_leaves_the_other_its_gradient():
    x, constant = Tensor([2.0, 3.0]), as_tensor([5.0, 7.0])
    (x * constant)._backward(np.array([1.0, 10.0]))
    check_grad(x, np.array([5.0, 70.0]), of="x * constant", at="x = [2, 3], constant = [5, 7], upstream [1, 10]")
    (constant * x)._backward(np.array([1.0, 10.0]))
    check_grad(x, np.array([10.0, 140.0]), of="constant * x after that", at="x = [2, 3], constant = [5, 7]")


@pytest.mark.task("02.2")
def test_float32_stays_float32():
    a, b = Tensor(np.float32([2.0, 3.0])), Tensor(np.float32([5.0, 7.0]))
    out = a * b
    out._backward(np.float32([1.0, 1.0]))
    check_close(out.data, np.float32([10.0, 21.0]), "a * b of two float32 tensors")
    check_close(a.grad, np.float32([5.0, 7.0]), "a * b of two float32 tensors: a.grad")


@pytest.mark.task("02.2")
def test_the_rule_of_a_product_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: a * b, Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), of="a * b")


@pytest.mark.task("02.3")
def test_gradients_accumulate_instead_of_overwriting():
    x = Tensor(2.0)
    y = x + x
    y.backward()
    check_grad(x, 2.0, of="x + x", at="x = 2", probe=check_walk(Tensor))


@pytest.mark.task("02.3")
def test_a_tensor_waits_until_everyone_who_used_it_has_reported():
    """c = 2x * (2x + 1) = 4x^2 + 2x, so the slope at 3 is 8 * 3 + 2 = 26."""
    x = Tensor(3.0)
    a = x * 2.0
    b = a + 1.0
    c = a * b
    c.backward()
    check_grad(x, 26.0, of="a * (a + 1) with a = 2 * x", at="x = 3", probe=check_walk(Tensor))
    x = Tensor(3.0)
    a = x * 2.0
    b = a + 1.0
    c = b * a
    c.backward()
    check_grad(x, 26.0, of="(a + 1) * a with a = 2 * x", at="x = 3", probe=check_walk(Tensor))


@pytest.mark.task("02.3")
def test_no_tensor_is_visited_twice():
    """Doubling twelve times is a factor of 4096, though 4096 paths lead from the result to x."""
    x = Tensor(1.0)
    y = x
    for _ in range(12):
        y = y + y
    y.backward()
    check_grad(x, 4096.0, of="x doubled twelve times", at="x = 1", probe=check_walk(Tensor))


@pytest.mark.task("02.3")
def test_an_array_is_seeded_with_ones():
    x = Tensor([1.0, 2.0, 3.0])
    (x * x).backward()
    check_grad(x, np.array([2.0, 4.0, 6.0]), of="x * x", at="x = [1, 2, 3]")


@pytest.mark.task("02.3")
def test_a_gradient_that_is_given_takes_the_place_of_the_ones():
    x = Tensor([1.0, 2.0, 3.0])
    gradient = np.array([1.0, 10.0, 100.0])
    with nothing_else_changes("y.backward(gradient)", gradient=gradient):
        (x * x).backward(gradient)
    of = "x * x, with y.backward([1, 10, 100]),"
    check_grad(x, np.array([2.0, 40.0, 600.0]), of=of, at="x = [1, 2, 3]", probe=seeded_with_ones)


@pytest.mark.task("02.3")
def test_zero_grad_cleans_up_and_nothing_else_does():
    x = Tensor(3.0)
    (x * x).backward()
    (x * x).backward()
    check_grad(x, 12.0, of="x * x for the second time, and nothing reset,", at="x = 3")
    x.zero_grad()
    (x * x).backward()
    check_grad(x, 6.0, of="x * x after x.zero_grad()", at="x = 3")


@pytest.mark.task("02.3")
def test_a_graph_that_is_kept_can_be_looked_at():
    x = Tensor(3.0)
    a = x * 2.0
    y = a * a
    with nothing_else_changes("y.backward(keep_graph=True)", x=x.data, a=a.data, y=y.data):
        y.backward(keep_graph=True)
    check_grad(a, 12.0, of="a * a, with y.backward(keep_graph=True),", at="a = 6", name="a", probe=check_walk(Tensor))
    if a not in y._children or x not in a._children:
        message = "y = a * a with a = 2 * x: after y.backward(keep_graph=True), the graph is gone"
        raise CheckFailed(message, "Keep the graph where keep_graph is True, or always.")


@pytest.mark.task("02.3")
def test_a_result_changes_one_to_one_with_itself():
    """Also where nothing was computed: the seed arrives at the tensor that backward() was called on."""
    x = Tensor([1.0, 2.0])
    x.backward()
    look = which_formula(
        lambda: x.grad, {"The walk needs its seed here too, though there is no way to go.": [0.0, 0.0]}
    )
    check_close(x.grad, np.ones(2), "x, which nothing was computed from: after x.backward(), x.grad", probe=look)


@pytest.mark.task("02.3")
def test_the_seed_adds_to_the_gradient_that_is_there():
    """Gradients of several results add up, also where an input is one of the results itself."""
    x = Tensor([1.0, 2.0])
    (x * x).backward()
    x.backward(np.array([10.0, 20.0]))
    look = which_formula(lambda: x.grad, {SEED_ASSIGNED: [10.0, 20.0]})
    what = "x = [1, 2], after (x * x).backward() and x.backward([10, 20]):\nx.grad"
    check_close(x.grad, np.array([12.0, 24.0]), what, probe=look)


@pytest.mark.task("02.3")
def test_nothing_holds_on_to_a_graph_that_has_been_walked():
    """Cycles are allowed, which the garbage collector finds: a visit() that calls itself is one."""
    x = Tensor(3.0)
    gc.collect()
    before = count_living(Tensor)
    (x * x * x).backward()
    gc.collect()
    if count_living(Tensor) > before:
        raise CheckFailed(
            "y = x * x * x: y and x * x stay in memory after y.backward(), though nobody refers to them",
            "Is there a list or a dict outside of backward() that they were put into?",
        )


@pytest.mark.task("02.3")
def test_difference_and_negation_come_for_free():
    a, b = Tensor(6.0), Tensor(2.0)
    (1.0 - (a - b) / 4.0 + -b).backward()
    check_grad(a, -0.25, of="1 - (a - b) / 4 + -b", at="a = 6, b = 2", name="a")
    check_grad(b, -0.75, of="1 - (a - b) / 4 + -b", at="a = 6, b = 2", name="b")


@pytest.mark.task("02.4")
def test_matmul_gradients_have_the_shape_of_their_inputs():
    """Only the number of the column goes into each product, so b gets the column sums of a: 1 + 3 and 2 + 4."""
    a = Tensor([[1.0, 2.0], [3.0, 4.0]])
    b = Tensor([[5.0], [6.0]])
    wanted = [[[5.0, 6.0], [5.0, 6.0]], [[4.0], [6.0]]]
    check_rule(
        lambda a, b: a @ b, {"a": a, "b": b}, np.array([[1.0], [1.0]]), wanted, of="a @ b", probe=which_transpose
    )


@pytest.mark.task("02.4")
def test_square_matrices_do_not_hide_a_missing_transpose():
    a = Tensor([[1.0, 2.0], [3.0, 4.0]])
    b = Tensor([[5.0, 6.0], [7.0, 8.0]])
    wanted = [[[5.0, 7.0], [60.0, 80.0]], [[1.0, 30.0], [2.0, 40.0]]]
    check_rule(
        lambda a, b: a @ b,
        {"a": a, "b": b},
        np.array([[1.0, 0.0], [0.0, 10.0]]),
        wanted,
        of="a @ b",
        probe=which_transpose,
    )


@pytest.mark.task("02.4")
def test_a_matrix_times_itself_gets_both_shares():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    wanted = [[7.0, 11.0], [9.0, 13.0]]
    a, b, ones = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[5.0, 6.0], [7.0, 8.0]]), np.ones((2, 2))
    twice = used_twice(lambda a, b: a @ b, a, b, ones, ones @ b.data.T, a.data.T @ ones)
    check_rule(lambda x: x @ x, {"x": x}, ones, [wanted], of="x @ x", probe=twice)


@pytest.mark.task("02.4")
def test_a_matrix_product_adds_to_the_gradient_that_is_there():
    a, b = Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])
    a.grad, b.grad = np.array([[10.0, 10.0]]), np.array([[20.0], [20.0]])
    wanted = [[[16.0, 18.0]], [[22.0], [24.0]]]
    check_rule(lambda a, b: a @ b, {"a": a, "b": b}, np.array([[2.0]]), wanted, of="a @ b")


@pytest.mark.task("02.4")
def test_a_constant_on_either_side_of_a_matrix_leaves_it_its_gradient():
    x, constant = Tensor([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    (x @ constant)._backward(np.array([[1.0]]))
    check_grad(x, np.array([[3.0, 4.0]]), of="x @ constant", at="x = [[1, 2]], constant = [[3], [4]], upstream [[1]]")
    (constant @ x)._backward(np.array([[1.0, 10.0], [0.0, 0.0]]))
    check_grad(x, np.array([[6.0, 34.0]]), of="constant @ x after that", at="upstream [[1, 10], [0, 0]]")


@pytest.mark.task("02.4")
def test_matmul_keeps_float32():
    a, b = Tensor(np.float32([[1.0, 2.0]])), Tensor(np.float32([[3.0], [4.0]]))
    (a @ b)._backward(np.float32([[2.0]]))
    check_close(a.grad, np.float32([[6.0, 8.0]]), "a @ b of two float32 tensors: a.grad")
    check_close(b.grad, np.float32([[2.0], [4.0]]), "a @ b of two float32 tensors: b.grad")


@pytest.mark.task("02.4")
def test_the_rule_of_a_matrix_product_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: a @ b, Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), of="a @ b")


@pytest.mark.task("02.5")
def test_a_bias_learns_from_every_row_of_the_batch():
    """Three rows of gradients arrive at one bias: it collects all three."""
    x = Tensor(np.zeros((3, 2)))
    bias = Tensor([10.0, 20.0])
    out = x + bias
    out._backward(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    check_grad(
        bias,
        np.array([9.0, 12.0]),
        of="x + bias",
        at="x of shape (3, 2), bias of shape (2,)",
        name="bias",
        probe=which_sum,
    )


@pytest.mark.task("02.5")
def test_axes_that_were_added_in_front_are_summed_away():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    check_summed(gradient, (2,), np.array([9.0, 12.0]))


@pytest.mark.task("02.5")
def test_axes_that_were_stretched_are_summed_and_stay():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = np.array([[3.0], [7.0], [11.0]])
    check_summed(gradient, (3, 1), wanted)
    check_summed(gradient, (1, 2), np.array([[9.0, 12.0]]))


@pytest.mark.task("02.5")
def test_a_single_number_collects_everything():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    check_summed(gradient, (), np.array(21.0))
    check_summed(gradient, (1,), np.array([21.0]))


@pytest.mark.task("02.5")
def test_added_and_stretched_axes_together():
    gradient = np.arange(12.0).reshape(2, 3, 2)
    wanted = np.array([[0 + 1 + 6 + 7.0], [2 + 3 + 8 + 9.0], [4 + 5 + 10 + 11.0]])
    check_summed(gradient, (3, 1), wanted)


@pytest.mark.task("02.5")
def test_several_stretched_axes_are_all_summed():
    gradient = np.arange(12.0).reshape(3, 2, 2)
    for axes, shape in (((0, 1), (1, 1, 2)), ((0, 2), (1, 2, 1)), ((0, 1, 2), (1, 1, 1))):
        wanted = gradient.sum(axis=axes, keepdims=True)
        check_summed(gradient, shape, wanted)


@pytest.mark.task("02.5")
def test_a_row_times_a_column_makes_a_table_and_both_get_their_shape_back():
    row, column = Tensor([[1.0, 2.0, 3.0]]), Tensor([[10.0], [20.0]])
    (row * column).backward()
    check_grad(
        row,
        np.array([[30.0, 30.0, 30.0]]),
        of="row * column",
        at="shapes (1, 3) and (2, 1)",
        name="row",
        probe=which_sum,
    )
    check_grad(
        column,
        np.array([[6.0], [6.0]]),
        of="row * column",
        at="shapes (1, 3) and (2, 1)",
        name="column",
        probe=which_sum,
    )


# The harder suite: python grader.py 02 --goal


@pytest.mark.goal
@pytest.mark.task("02.1")
def test_goal_sums_match_central_differences():
    for shape in ((), (1,), (4,), (2, 3), (2, 1, 3), (0, 3)):
        check_binary_gradient(lambda a, b: a + b + a, shape, shape, name="a + b + a", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("02.2")
def test_goal_products_match_central_differences():
    for shape in ((), (1,), (4,), (2, 3), (2, 1, 3), (0, 3)):
        check_binary_gradient(lambda a, b: a * b * a, shape, shape, name="a * b * a", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("02.3")
def test_goal_random_programs_match_central_differences():
    """Twenty random expressions of six operations on three tensors, every tensor free to be used again."""
    check_random_programs(make=Tensor)


@pytest.mark.goal
@pytest.mark.task("02.3")
def test_goal_a_long_chain_keeps_its_gradient():
    x = Tensor(1.0)
    y = x
    for _ in range(300):
        y = y + 1.0
    y.backward()
    check_grad(x, 1.0, of="x + 1 + 1 + ... (300 times)", at="x = 1")


@pytest.mark.goal
@pytest.mark.task("02.3")
def test_goal_a_gradient_that_is_assigned_is_a_copy_after_a_walk_too():
    x, gradient = Tensor([1.0, 2.0]), np.array([5.0, 5.0])
    (x * x).backward()
    x.grad = gradient
    gradient += 1.0
    check_close(x.grad, np.array([5.0, 5.0]), "after x.grad = g with g = [5, 5], and g += 1: x.grad")


@pytest.mark.goal
@pytest.mark.task("02.4")
def test_goal_matrix_products_match_central_differences():
    for n, k, m in ((1, 1, 1), (2, 3, 4), (4, 3, 2), (3, 3, 3), (1, 5, 2), (2, 0, 3)):
        check_binary_gradient(lambda a, b: a @ b, (n, k), (k, m), name="a @ b", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("02.5")
def test_goal_every_way_to_broadcast_matches_central_differences():
    shapes = [((3,), (2, 3)), ((2, 3), (3,)), ((2, 1), (2, 3)), ((1, 3), (2, 1)), ((), (2, 3)), ((1,), (4,))]
    shapes += [((2, 1, 3), (4, 1)), ((1, 1), (3,)), ((4, 1, 2), (3, 2)), ((1, 3), (0, 3)), ((2, 3, 1), (1, 1, 4))]
    for a, b in shapes:
        check_binary_gradient(lambda a, b: a + b, a, b, name="a + b", make=Tensor)
        check_binary_gradient(lambda a, b: a * b, a, b, name="a * b", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("02.5")
def test_goal_unbroadcast_keeps_float32_and_leaves_its_input_alone():
    gradient = np.ones((4, 3), np.float32)
    check_close(unbroadcast(gradient, (1, 3)), np.full((1, 3), 4.0, np.float32), "unbroadcast of a float32 array")
    check_close(gradient, np.ones((4, 3), np.float32), "after unbroadcast, the gradient it was given")


def check_summed(gradient, shape, wanted) -> None:
    def call():
        found = explained(lambda: unbroadcast(gradient, shape), which_sum)
        return found if shape else np.asarray(found)

    what = f"unbroadcast of shape {gradient.shape} to {shape}"
    check_twice(call, wanted, what, which_sum, gradient=gradient)


def summed_to(gradient, shape):
    """Send every number of a gradient to the element of `shape` that it came from."""
    if isinstance(gradient, Tensor):
        message = "unbroadcast was given a Tensor, expected an array"
        raise CheckFailed(message, "In a rule all numbers are plain arrays: is a .data missing?")
    if np.broadcast_shapes(gradient.shape, shape) != gradient.shape:
        raise ValueError(
            f"unbroadcast to shape {shape} was given a gradient of shape {gradient.shape}, which is no stretch of it"
        )
    size = int(np.prod(shape))
    source = np.broadcast_to(np.arange(size).reshape(shape), gradient.shape)
    return np.bincount(source.ravel(), weights=gradient.ravel(), minlength=size).reshape(shape).astype(gradient.dtype)


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def arrived(operation, upstream, *arrays) -> list:
    """What arrives at the inputs of an operation, one after the other."""
    tensors = [Tensor(array) for array in arrays]
    operation(*tensors)._backward(np.asarray(upstream))
    return [x.grad for x in tensors]


UPSTREAM = np.array([[1.0, 20.0], [300.0, 7.0]])
SIX, SEVEN = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[4.0, 0.0], [1.0, 2.0]])
which_factor = first_that_tells(
    which_formula(
        lambda: arrived(lambda a, b: a * b, [1.0], [4.0], [7.0]),
        {
            "Each factor has got its own number: what belongs there is its partner's.": [[4.0], [7.0]],
            "Both factors have got a sum: the rule of a product is the product with its partner.": [[11.0], [11.0]],
        },
    ),
    which_formula(
        lambda: arrived(lambda a, b: a * b, [[1.0, 1.0], [0.0, 2.0]], SIX, SEVEN)[0],
        {
            "That is a matrix product, @ or np.dot: the rule of * is made of * alone.": [[1.0, 1.0], [0.0, 2.0]]
            @ SEVEN,
        },
    ),
)


def no_unbroadcast():
    """With equal shapes there is nothing to undo: if the rule is right then, undoing is what is missing."""
    a, b = Tensor([2.0, 3.0]), Tensor([5.0, 7.0])
    for operation, wanted in ((lambda: a + b, [1.0, 1.0]), (lambda: a * b, [5.0, 7.0])):
        a.zero_grad()
        operation()._backward(np.ones(2))
        if not np.allclose(a.grad, wanted):
            return None
    asked = [asked_of_unbroadcast(operation) for operation in (lambda a, b: a + b, lambda a, b: a * b)]
    for calls in asked:
        shapes = [shape for _, shape in calls]
        if shapes and shapes[0] == (2, 2):
            return (
                "With equal shapes the rule is right. Where they differ, unbroadcast is given a shape that is not the "
                "input's own: self.shape for self.grad, other.shape for other.grad."
            )
        if len(shapes) == 2 and shapes[0] == shapes[1]:
            return (
                "With equal shapes the rule is right. Where they differ, each needs its own shape in unbroadcast(...)."
            )
        if len(shapes) == 2 and calls[1][0].shape != (2, 2):
            return (
                "The second call of unbroadcast gets what the first one has summed already: is `upstream` overwritten?"
            )
    if calls and np.array_equal(calls[0][0], UPSTREAM):
        return "In the rule of * it is summed too early: first the product with the partner, then unbroadcast."
    if calls and np.array_equal(calls[0][0], SIX):
        return "In the rule of * only the partner goes through unbroadcast: first the product, then unbroadcast."
    if all(len(calls) == 2 for calls in asked):
        return None
    return "With equal shapes the rule is right. Where they differ, unbroadcast(..., shape) is missing on one side."


def asked_of_unbroadcast(operation) -> list[tuple[np.ndarray, tuple]]:
    """With which arrays and shapes does a rule call unbroadcast, where the left input is the smaller one?"""
    calls, before = [], tensor.unbroadcast
    tensor.unbroadcast = lambda gradient, shape: calls.append((gradient, shape)) or before(gradient, shape)
    try:
        operation(Tensor([3.0, 4.0]), Tensor(SIX))._backward(UPSTREAM.copy())
    except Exception:
        pass  # what has been asked until then is what counts
    finally:
        tensor.unbroadcast = before
    return calls


SEED_ASSIGNED = (
    "What x had from x * x is gone: the seed was assigned. It is added with +=, as all that arrives, until zero_grad()."
)


def seeded_with_ones():
    x = Tensor([5.0, 5.0])
    (x + x).backward(np.array([10.0, 100.0]))
    if np.allclose(x.grad, 2.0):
        return "The walk starts with ones, though a gradient was given: `gradient` is the seed."
    return None


LEFT, UP, RIGHT = (np.random.default_rng(seed).standard_normal((2, 2)) for seed in range(3))
TO_A, TO_B = UP @ RIGHT.T, LEFT.T @ UP
which_transpose = first_that_tells(
    # Matrices of three different sizes fit in one way only. On square ones all of them fit: which one is it?
    which_formula(
        lambda: arrived(lambda a, b: a @ b, UP, LEFT, RIGHT)[0],
        {
            "a gets upstream @ b: a transpose is missing.": UP @ RIGHT,
            "a gets b.T @ upstream: the two are the other way round.": RIGHT.T @ UP,
            "a gets b @ upstream: a transpose is missing, and the two are the other way round.": RIGHT @ UP,
            "a gets upstream.T @ b: it is b that is transposed, not upstream.": UP.T @ RIGHT,
            "a gets what belongs to b.": TO_B,
            "a gets an elementwise product: the rule of @ is made of matrix products.": UP * RIGHT,
            "a gets an elementwise product with b.T, *: the rule of @ is made of matrix products.": UP * RIGHT.T,
        },
    ),
    which_formula(
        lambda: arrived(lambda a, b: a @ b, UP, LEFT, RIGHT)[1],
        {
            "b gets a @ upstream: a transpose is missing.": LEFT @ UP,
            "b gets upstream @ a.T: the two are the other way round.": UP @ LEFT.T,
            "b gets upstream @ a: a transpose is missing, and the two are the other way round.": UP @ LEFT,
            "b gets a @ upstream.T: it is a that is transposed, not upstream.": LEFT @ UP.T,
            "b gets upstream.T @ a, which is the right product transposed.": UP.T @ LEFT,
            "b gets what belongs to a.": TO_A,
            "b gets an elementwise product: the rule of @ is made of matrix products.": UP * LEFT,
            "b gets an elementwise product with a.T, *: the rule of @ is made of matrix products.": LEFT.T * UP,
        },
    ),
)

G = np.array([[[1.0, 20.0], [300.0, 4000.0]], [[5.0, 60.0], [700.0, 8000.0]], [[9.0, 10.0], [110.0, 12.0]]])
which_sum = first_that_tells(
    which_formula(
        lambda: unbroadcast(G, (2, 1)),
        {
            "It takes the mean: a number that is used several times collects the sum.": G.mean(axis=(0, 2)).reshape(
                2, 1
            ),
            "It takes the first of the copies: all of them have to be summed.": G[0, :, :1],
            "It takes the largest of the copies: all of them have to be summed.": G.max(axis=(0, 2)).reshape(2, 1),
            "An axis in front is summed, but one that was stretched from size 1 is not.": G.sum(axis=0),
            "It sums over everything, and spreads the result.": np.full((2, 1), G.sum()),
            "Over an axis that was stretched it takes the mean: its number collects the sum.": G.sum(0).mean(1)[
                :, None
            ],
            "The axes are counted as in `shape`, though the gradient has one more in front of them: add how many.": (
                G.sum(axis=(0, 1))[:, None]
            ),
            "The stretched axes are looked for before those in front are gone, so others are summed: in front first.": (
                G.sum(axis=(0, 1))[None]
            ),
        },
    ),
    which_formula(
        lambda: unbroadcast(G, (1, 2, 2)),
        {
            "The axis that was stretched from size 1 is summed, and lost: keepdims=True keeps it.": G.sum(axis=0),
            "The axis that was stretched from size 1 is not summed.": G,
        },
    ),
    which_formula(
        lambda: unbroadcast(G, (2, 2)),
        {
            "The axis that broadcasting added in front is not summed.": G,
            "It sums the axes at the end: broadcasting adds axes in front.": G.sum(axis=2),
            "The axis in front is summed, but kept: it has to go.": G.sum(axis=0, keepdims=True),
            "It sums as many axes as `shape` has. In front there are gradient.ndim - len(shape) of them.": G.sum(
                (0, 1)
            ),
        },
    ),
    which_formula(
        lambda: unbroadcast(G[0], (2, 1)),
        {"It sums over axis 0, and here it is axis 1 that was stretched from size 1.": G[0].sum(0)[:, None]},
    ),
    which_formula(
        lambda: unbroadcast(G, (1, 2, 1)),
        {"Only the first of the stretched axes is summed: is there a return inside the loop?": G.sum(0, keepdims=True)},
    ),
    which_formula(
        lambda: unbroadcast(G, (1, 1, 2)),
        {
            "Without keepdims the later axes move up, and the next sum takes the wrong one.": G.sum(axis=(0, 2))[
                None, None
            ],
        },
    ),
    which_formula(
        lambda: unbroadcast(np.arange(16.0).reshape(2, 2, 2, 2), (2, 2)),
        {
            "The axes in front are counted up while they disappear: once axis 0 is gone, the next is axis 0 again.": (
                np.arange(16.0).reshape(2, 2, 2, 2).sum(axis=(0, 2))
            ),
        },
    ),
)
