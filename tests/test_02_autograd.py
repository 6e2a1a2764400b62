"""The checks of chapter 02: python grader.py 02"""

import numpy as np
import pytest

from meintorch.tensor import Tensor, unbroadcast
from tests._helpers import check_binary_gradient, check_close, check_grad, check_gradient, check_rule, used_twice


@pytest.mark.task("02.3")
def test_derivative_of_x_squared_plus_x_is_seven_at_three():
    """Nobody wrote down 2x + 1. It falls out of the bookkeeping."""
    x = Tensor(3.0)
    y = x * x + x
    y.backward()
    check_grad(x, 7.0, of="x * x + x", at="x = 3")


@pytest.mark.task("02.1")
def test_both_terms_of_a_sum_get_what_arrives():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    check_rule(a + b, np.array([10.0, 20.0]), {"a": a, "b": b}, [[10.0, 20.0], [10.0, 20.0]], of="a + b")


@pytest.mark.task("02.1")
def test_a_tensor_added_to_itself_gets_both_shares():
    x = Tensor([1.0, 2.0])
    ones = np.ones(2)
    twice = used_twice(lambda a, b: a + b, Tensor([2.0, 2.0]), Tensor([5.0, 5.0]), 1.0, 1.0, one=ones)
    check_rule(x + x, ones, {"x": x}, [[2.0, 2.0]], of="x + x", probe=twice)


@pytest.mark.task("02.1")
def test_a_sum_adds_to_the_gradient_that_is_there():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    a.grad, b.grad = np.array([10.0, 10.0]), np.array([20.0, 20.0])
    wanted = [[13.0, 14.0], [23.0, 24.0]]
    check_rule(a + b, np.array([3.0, 4.0]), {"a": a, "b": b}, wanted, of="a + b, with gradients 10 and 20 there,")


@pytest.mark.task("02.1")
def test_a_sum_leaves_what_arrives_unchanged():
    a, b, upstream = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), np.array([10.0, 20.0])
    out = a + b
    out._backward(upstream)
    out._backward(upstream)
    check_close(upstream, np.array([10.0, 20.0]), "after two calls of the rule of a + b: the upstream gradient")


@pytest.mark.task("02.2")
def test_each_factor_gets_its_partner_times_what_arrives():
    a, b = Tensor([2.0, 3.0]), Tensor([5.0, 7.0])
    wanted = [[50.0, 700.0], [20.0, 300.0]]
    check_rule(a * b, np.array([10.0, 100.0]), {"a": a, "b": b}, wanted, of="a * b", probe=swapped_factors)


@pytest.mark.task("02.2")
def test_a_tensor_times_itself_gets_both_shares():
    x = Tensor([3.0, 4.0])
    ones = np.ones(2)
    twice = used_twice(lambda a, b: a * b, Tensor([2.0, 2.0]), Tensor([5.0, 5.0]), 5.0, 2.0, one=ones)
    check_rule(x * x, ones, {"x": x}, [[6.0, 8.0]], of="x * x", probe=twice)


@pytest.mark.task("02.2")
def test_a_product_adds_to_the_gradient_that_is_there():
    a, b = Tensor([2.0]), Tensor([5.0])
    a.grad, b.grad = np.array([10.0]), np.array([20.0])
    check_rule(a * b, np.array([1.0]), {"a": a, "b": b}, [[15.0], [22.0]], of="a * b, with gradients 10 and 20 there,")


@pytest.mark.task("02.2")
def test_float32_stays_float32():
    a, b = Tensor(np.float32([2.0, 3.0])), Tensor(np.float32([5.0, 7.0]))
    out = a * b
    out._backward(np.float32([1.0, 1.0]))
    check_close(out.data, np.float32([10.0, 21.0]), "a * b of two float32 tensors")
    check_close(a.grad, np.float32([5.0, 7.0]), "a * b of two float32 tensors: a.grad")


@pytest.mark.task("02.3")
def test_gradients_accumulate_instead_of_overwriting():
    x = Tensor(2.0)
    y = x + x
    y.backward()
    check_grad(x, 2.0, of="x + x", at="x = 2")


@pytest.mark.task("02.3")
def test_a_tensor_waits_until_everyone_who_used_it_has_reported():
    """c = 2x * (2x + 1) = 4x^2 + 2x, so the slope at 3 is 8 * 3 + 2 = 26."""
    x = Tensor(3.0)
    a = x * 2.0
    b = a + 1.0
    c = a * b
    c.backward()
    check_grad(x, 26.0, of="a * (a + 1) with a = 2 * x", at="x = 3", probe=order_of_the_walk)


@pytest.mark.task("02.3")
def test_no_tensor_is_visited_twice():
    """Doubling twelve times is a factor of 4096, though 4096 paths lead from the result to x."""
    x = Tensor(1.0)
    y = x
    for _ in range(12):
        y = y + y
    y.backward()
    check_grad(x, 4096.0, of="x doubled twelve times", at="x = 1")


@pytest.mark.task("02.3")
def test_an_array_is_seeded_with_ones():
    x = Tensor([1.0, 2.0, 3.0])
    (x * x).backward()
    check_grad(x, np.array([2.0, 4.0, 6.0]), of="x * x", at="x = [1, 2, 3]")


@pytest.mark.task("02.3")
def test_a_gradient_that_is_given_takes_the_place_of_the_ones():
    x = Tensor([1.0, 2.0, 3.0])
    (x * x).backward(np.array([1.0, 10.0, 100.0]))
    of = "x * x, with y.backward([1, 10, 100]),"
    check_grad(x, np.array([2.0, 40.0, 600.0]), of=of, at="x = [1, 2, 3]")


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
    check_rule(a @ b, np.array([[1.0], [1.0]]), {"a": a, "b": b}, wanted, of="a @ b", probe=which_transpose)


@pytest.mark.task("02.4")
def test_square_matrices_do_not_hide_a_missing_transpose():
    a = Tensor([[1.0, 2.0], [3.0, 4.0]])
    b = Tensor([[5.0, 6.0], [7.0, 8.0]])
    wanted = [[[5.0, 7.0], [60.0, 80.0]], [[1.0, 30.0], [2.0, 40.0]]]
    check_rule(a @ b, np.array([[1.0, 0.0], [0.0, 10.0]]), {"a": a, "b": b}, wanted, of="a @ b", probe=which_transpose)


@pytest.mark.task("02.4")
def test_a_matrix_times_itself_gets_both_shares():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    wanted = [[7.0, 11.0], [9.0, 13.0]]
    check_rule(x @ x, np.ones((2, 2)), {"x": x}, [wanted], of="x @ x", probe=overwritten_in_matmul)


@pytest.mark.task("02.4")
def test_matmul_keeps_float32():
    a, b = Tensor(np.float32([[1.0, 2.0]])), Tensor(np.float32([[3.0], [4.0]]))
    (a @ b)._backward(np.float32([[2.0]]))
    check_close(a.grad, np.float32([[6.0, 8.0]]), "a @ b of two float32 tensors: a.grad")
    check_close(b.grad, np.float32([[2.0], [4.0]]), "a @ b of two float32 tensors: b.grad")


@pytest.mark.task("02.5")
def test_a_bias_learns_from_every_row_of_the_batch():
    """Three rows of gradients arrive at one bias: it collects all three."""
    x = Tensor(np.zeros((3, 2)))
    bias = Tensor([10.0, 20.0])
    out = x + bias
    out._backward(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    check_grad(bias, np.array([9.0, 12.0]), of="x + bias", at="x of shape (3, 2), bias of shape (2,)", name="bias")


@pytest.mark.task("02.5")
def test_axes_that_were_added_in_front_are_summed_away():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    check_close(unbroadcast(gradient, (2,)), np.array([9.0, 12.0]), "unbroadcast of shape (3, 2) to (2,)")


@pytest.mark.task("02.5")
def test_axes_that_were_stretched_are_summed_and_stay():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = np.array([[3.0], [7.0], [11.0]])
    check_close(unbroadcast(gradient, (3, 1)), wanted, "unbroadcast of shape (3, 2) to (3, 1)")
    check_close(unbroadcast(gradient, (1, 2)), np.array([[9.0, 12.0]]), "unbroadcast of shape (3, 2) to (1, 2)")


@pytest.mark.task("02.5")
def test_a_single_number_collects_everything():
    gradient = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    check_close(np.asarray(unbroadcast(gradient, ())), np.array(21.0), "unbroadcast of shape (3, 2) to ()")
    check_close(unbroadcast(gradient, (1,)), np.array([21.0]), "unbroadcast of shape (3, 2) to (1,)")


@pytest.mark.task("02.5")
def test_added_and_stretched_axes_together():
    gradient = np.arange(12.0).reshape(2, 3, 2)
    wanted = np.array([[0 + 1 + 6 + 7.0], [2 + 3 + 8 + 9.0], [4 + 5 + 10 + 11.0]])
    check_close(unbroadcast(gradient, (3, 1)), wanted, "unbroadcast of shape (2, 3, 2) to (3, 1)")


@pytest.mark.task("02.5")
def test_a_row_times_a_column_makes_a_table_and_both_get_their_shape_back():
    row, column = Tensor([[1.0, 2.0, 3.0]]), Tensor([[10.0], [20.0]])
    (row * column).backward()
    check_grad(row, np.array([[30.0, 30.0, 30.0]]), of="row * column", at="shapes (1, 3) and (2, 1)", name="row")
    check_grad(column, np.array([[6.0], [6.0]]), of="row * column", at="shapes (1, 3) and (2, 1)", name="column")


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
    for seed in range(20):
        arrays = [np.random.default_rng(100 * seed + i).uniform(-1.0, 1.0, (2, 2)) for i in range(3)]
        check_gradient(
            lambda *tensors, s=seed: random_program(tensors, np.random.default_rng(s)),
            *arrays,
            name=f"random program {seed}",
            make=Tensor,
        )


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


def random_program(tensors, rng):
    known = list(tensors)
    for _ in range(6):
        a, b = known[rng.integers(len(known))], known[rng.integers(len(known))]
        known.append([a + b, a * b, a @ b][rng.integers(3)])
    return sum(known[1:], known[0])


# Second probes: called only when a check has failed, to tell its cause from the others.


def swapped_factors(actual, expected):
    a, b = Tensor([2.0]), Tensor([5.0])
    (a * b)._backward(np.array([1.0]))
    if (float(a.grad[0]), float(b.grad[0])) == (2.0, 5.0):
        return "Each factor has got its own number: what belongs there is its partner's."
    return None


def order_of_the_walk(actual, expected):
    """On a graph without sharing any order from the result to the inputs is right: only the order can be wrong then."""
    x = Tensor(3.0)
    (x * 2.0 + 1.0).backward()
    if float(x.grad) == 2.0 and actual != 0.0:
        return (
            "Where no tensor is used twice the result is right. Here `a` is used twice: it has to come after "
            "both of its users, and only once."
        )
    return None


def which_transpose(actual, expected):
    """Matrices of three different sizes fit in one way only: try the others on square ones, where all of them fit."""
    a, b, upstream = (np.random.default_rng(i).standard_normal((2, 2)) for i in range(3))
    left, right = Tensor(a), Tensor(b)
    (left @ right)._backward(upstream)
    ways = {"upstream @ b": upstream @ b, "b @ upstream": b @ upstream, "b.T @ upstream": b.T @ upstream}
    for way, value in ways.items():
        if np.allclose(left.grad, value):
            return f"a gets {way}, but what arrives has to meet b's columns: upstream @ b.T."
    ways = {"a @ upstream": a @ upstream, "upstream @ a": upstream @ a, "upstream @ a.T": upstream @ a.T}
    for way, value in ways.items():
        if np.allclose(right.grad, value):
            return f"b gets {way}, but a's columns have to meet what arrives: a.T @ upstream."
    return None


def overwritten_in_matmul(actual, expected):
    a, b = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[5.0, 6.0], [7.0, 8.0]])
    ones = np.ones((2, 2))
    (a @ b)._backward(ones)
    if np.allclose(a.grad, ones @ b.data.T) and np.allclose(b.grad, a.data.T @ ones):
        return (
            "With two different matrices both gradients are right, so one contribution was overwritten by the other. "
            "Is there an = where += belongs?"
        )
    return None
