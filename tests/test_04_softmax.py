"""The checks of chapter 04: python grader.py 04"""

import tracemalloc

import numpy as np
import pytest

from meintorch import activations
from meintorch.activations import exp, log, log_softmax, relu, softmax, stable_log_softmax, stable_softmax, tanh
from meintorch.activations import max as largest_of
from meintorch.tensor import Tensor
from tests._helpers import (
    CheckFailed,
    ask,
    axis_arguments,
    check_close,
    check_every_axis,
    check_freed,
    check_grad,
    check_gradient,
    check_no_overflow,
    check_rule,
    check_twice,
    explained,
    first_that_tells,
    show,
    which_formula,
)


@pytest.fixture(autouse=True)
def lend_softmax(request, monkeypatch):
    """04.7, the way back, is checked with a way forward that works, so that it can be right without 04.6."""
    if request.node.get_closest_marker("task").args[0] == "04.7":
        monkeypatch.setattr(activations, "stable_softmax", shares)


@pytest.mark.task("04.7")
def test_softmax_gets_the_product_with_its_jacobian_and_never_forms_the_jacobian():
    """For a row of 100,000 numbers the Jacobian would fill 80 gigabytes. The rule needs a few rows."""
    s, g = np.array([0.25, 0.25, 0.5]), np.array([4.0, 8.0, 2.0])
    jacobian = np.diag(s) - np.outer(s, s)
    check_rule(softmax, {"x": Tensor(np.log(4 * s))}, g, [jacobian @ g], of="softmax(x)", probe=which_product)
    check_no_jacobian(softmax, of="softmax(x)")
    x, first = Tensor(np.zeros(100_000)), np.zeros(100_000)
    first[0] = 100_000.0
    softmax(x)._backward(first)
    wanted = np.full(100_000, -0.00001)
    wanted[0] = 0.99999
    at = "x = 100,000 zeros, upstream [100000, 0, 0, ...]"
    check_grad(x, wanted, of="softmax(x)", at=at, probe=which_product)


@pytest.mark.task("04.1")
def test_exp_multiplies_what_arrives_by_itself():
    """exp of 0, log 2 and log 10 is 1, 2 and 10."""
    x = Tensor(np.log([1.0, 2.0, 10.0]))
    check_rule(exp, {"x": x}, np.array([3.0, 5.0, 0.5]), [[3.0, 10.0, 5.0]], of="exp(x)", probe=which_exp)


@pytest.mark.task("04.1")
def test_exp_adds_to_the_gradient_that_is_there():
    x = Tensor(np.log([2.0, 10.0]))
    x.grad = np.array([100.0, 200.0])
    check_rule(exp, {"x": x}, np.array([1.0, 1.0]), [[102.0, 210.0]], of="exp(x)", probe=which_exp)


@pytest.mark.task("04.1")
def test_exp_keeps_float32():
    check_float32(exp, np.log([1.0, 2.0]), [3.0, 5.0], [3.0, 10.0], of="exp(x)", probe=which_exp)


@pytest.mark.task("04.1")
def test_the_rule_of_exp_does_not_hold_on_to_its_result():
    check_freed(exp, Tensor([1.0, 2.0]), of="exp(x)")


@pytest.mark.task("04.2")
def test_log_divides_what_arrives_by_its_input():
    x = Tensor([2.0, 4.0, 0.5])
    check_rule(log, {"x": x}, np.array([1.0, 10.0, 3.0]), [[0.5, 2.5, 6.0]], of="log(x)", probe=which_log)


@pytest.mark.task("04.2")
def test_log_adds_to_the_gradient_that_is_there():
    x = Tensor([2.0, 4.0])
    x.grad = np.array([100.0, 200.0])
    check_rule(log, {"x": x}, np.array([1.0, 1.0]), [[100.5, 200.25]], of="log(x)", probe=which_log)


@pytest.mark.task("04.2")
def test_log_keeps_float32():
    check_float32(log, [2.0, 0.5], [1.0, 3.0], [0.5, 6.0], of="log(x)", probe=which_log)


@pytest.mark.task("04.2")
def test_the_rule_of_log_does_not_hold_on_to_its_result():
    check_freed(log, Tensor([1.0, 2.0]), of="log(x)")


@pytest.mark.task("04.3")
def test_tanh_has_its_slope_from_its_result():
    """tanh of 0, log 2 and log 3 is 0, 0.6 and 0.8: slopes 1, 0.64 and 0.36."""
    x = Tensor(np.log([1.0, 2.0, 3.0]))
    check_rule(tanh, {"x": x}, np.array([1.0, 10.0, 100.0]), [[1.0, 6.4, 36.0]], of="tanh(x)", probe=which_tanh)


@pytest.mark.task("04.3")
def test_tanh_is_flat_far_out():
    x = Tensor([-1000.0, 0.0, 1000.0])
    check_rule(tanh, {"x": x}, np.array([1.0, 1.0, 1.0]), [[0.0, 1.0, 0.0]], of="tanh(x)", probe=which_tanh)


@pytest.mark.task("04.3")
def test_tanh_adds_to_the_gradient_that_is_there():
    x = Tensor(np.log([2.0, 3.0]))
    x.grad = np.array([100.0, 200.0])
    check_rule(tanh, {"x": x}, np.array([1.0, 1.0]), [[100.64, 200.36]], of="tanh(x)", probe=which_tanh)


@pytest.mark.task("04.3")
def test_tanh_keeps_float32():
    check_float32(tanh, np.log([1.0, 2.0]), [1.0, 10.0], [1.0, 6.4], of="tanh(x)", probe=which_tanh)


@pytest.mark.task("04.3")
def test_the_rule_of_tanh_does_not_hold_on_to_its_result():
    check_freed(tanh, Tensor([1.0, 2.0]), of="tanh(x)")


@pytest.mark.task("04.4")
def test_relu_lets_the_gradient_pass_where_the_number_passed():
    x = Tensor([-2.0, 3.0, 0.5, -1.0])
    upstream = np.array([1.0, -10.0, 100.0, -1000.0])
    check_rule(relu, {"x": x}, upstream, [[0.0, -10.0, 100.0, 0.0]], of="relu(x)", probe=which_relu)


@pytest.mark.task("04.4")
def test_relu_adds_to_the_gradient_that_is_there():
    x = Tensor([-2.0, 3.0])
    x.grad = np.array([100.0, 200.0])
    check_rule(relu, {"x": x}, np.array([1.0, 1.0]), [[100.0, 201.0]], of="relu(x)", probe=which_relu)


@pytest.mark.task("04.4")
def test_relu_has_a_slope_from_zero_to_one_at_its_kink():
    x = Tensor([0.0, 2.0])
    relu(x)._backward(np.array([10.0, 10.0]))
    check_close(np.array(x.grad.shape), np.array([2]), "the shape of x.grad after relu at x = [0, 2]")
    if not 0.0 <= float(x.grad[0]) <= 10.0:
        message = f"y = relu(x) at x = 0, upstream 10: x.grad is {float(x.grad[0])}, expected anything from 0 to 10"
        raise CheckFailed(message, which_relu())


@pytest.mark.task("04.4")
def test_relu_keeps_float32():
    check_float32(relu, [-2.0, 3.0], [5.0, 10.0], [0.0, 10.0], of="relu(x)", probe=which_relu)


@pytest.mark.task("04.4")
def test_the_rule_of_relu_does_not_hold_on_to_its_result():
    check_freed(relu, Tensor([1.0, -2.0]), of="relu(x)")


@pytest.mark.task("04.5")
def test_the_largest_number_of_a_row_gets_all_that_arrives():
    x = Tensor([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]])
    wanted = [[0.0, 10.0, 0.0], [100.0, 0.0, 0.0]]
    check_rule(lambda x: largest_of(x, 1), {"x": x}, np.array([10.0, 100.0]), [wanted], of="max(x, 1)", probe=which_max)


@pytest.mark.task("04.5")
def test_max_works_along_every_axis_with_and_without_keepdims():
    numbers = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]])
    columns = [[0.0, 10.0, 0.0], [1.0, 0.0, 100.0]]
    for axis in (0, -2):
        for keepdims in (False, True):
            upstream = np.array([[1.0, 10.0, 100.0]] if keepdims else [1.0, 10.0, 100.0])
            check_rule(
                lambda x, axis=axis, keepdims=keepdims: largest_of(x, axis, keepdims),
                {"x": Tensor(numbers)},
                upstream,
                [columns],
                of=f"max(x, {axis}, {keepdims})",
                probe=which_max,
            )


@pytest.mark.task("04.5")
def test_max_over_everything_or_over_several_axes_has_one_winner():
    numbers = np.array([[[1.0, 5.0], [2.0, 0.0]], [[7.0, 3.0], [4.0, 6.0]]])
    wanted = [[[0.0, 0.0], [0.0, 0.0]], [[10.0, 0.0], [0.0, 0.0]]]
    check_rule(largest_of, {"x": Tensor(numbers)}, np.array(10.0), [wanted], of="max(x)", probe=which_max)
    wanted = [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 10.0]]]
    check_rule(
        lambda x: largest_of(x, (0, 2)),
        {"x": Tensor(numbers)},
        np.array([1.0, 10.0]),
        [wanted],
        of="max(x, (0, 2))",
        probe=which_max,
    )


@pytest.mark.task("04.5")
def test_numbers_that_are_equally_large_get_no_more_than_arrived():
    """Half each, or all of it to one of them: both are right, as long as the sum is what arrived."""
    check_tie(np.array([3.0, 1.0, 3.0]), np.array(6.0), None)
    check_tie(np.array([[2.0, 2.0], [1.0, 5.0]]), np.array([0.5, 0.75]), 1)


@pytest.mark.task("04.5")
def test_a_number_that_is_only_nearly_the_largest_gets_nothing():
    """The step from 1 to the next larger float is 0.0000000000000002."""
    x, upstream = Tensor([[1.0, np.nextafter(1.0, 2.0)], [-0.000000001, 0.0]]), np.array([0.5, 4.0])
    largest_of(x, 1)._backward(upstream)
    at = "x = [[1, the next larger float], [-0.000000001, 0]], upstream [0.5, 4]"
    wanted = np.array([[0.0, 0.5], [0.0, 4.0]])
    check_grad(x, wanted, of="max(x, 1)", at=at, probe=first_that_tells(which_max, nearly))


@pytest.mark.task("04.5")
def test_max_takes_its_axes_in_every_form_that_numpy_takes():
    """From the front, from the end, and several in any order: (2, 0), (-1, 0)."""
    table = np.array([[[1.0, 5.0], [2.0, 0.0]], [[7.0, 3.0], [4.0, 6.0]]])
    for keepdims in (False, True):
        check_every_axis(
            lambda x, axis, keepdims=keepdims: largest_of(x, axis, keepdims),
            lambda z, axis, keepdims=keepdims: np.max(z, axis, keepdims=keepdims),
            table,
            "max",
            Tensor,
        )


@pytest.mark.task("04.5")
def test_max_adds_to_the_gradient_that_is_there():
    x = Tensor([1.0, 5.0])
    x.grad = np.array([100.0, 200.0])
    check_rule(largest_of, {"x": x}, np.array(3.0), [[100.0, 203.0]], of="max(x)", probe=which_max)


@pytest.mark.task("04.5")
def test_max_keeps_float32():
    check_float32(largest_of, [1.0, 5.0], 3.0, [0.0, 3.0], of="max(x)", probe=which_max)


@pytest.mark.task("04.5")
def test_the_rule_of_max_does_not_hold_on_to_its_result():
    check_freed(lambda x: largest_of(x, 0), Tensor([1.0, 2.0]), of="max(x, 0)")


@pytest.mark.task("04.6")
def test_softmax_turns_numbers_into_shares():
    """exp of the numbers is 1, 2 and 5, together 8."""
    z = np.log([1.0, 2.0, 5.0])
    check_array(stable_softmax, z, -1, np.array([0.125, 0.25, 0.625]), of="stable_softmax", probe=which_softmax)


@pytest.mark.task("04.6")
def test_softmax_gives_each_row_or_column_its_own_shares():
    """Along each axis of arrays with one to three axes."""
    for z, axis, wanted in laid_out(np.log([[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]), COLUMNS):
        check_array(stable_softmax, z, axis, wanted, of="stable_softmax", probe=which_softmax)


@pytest.mark.task("04.6")
def test_softmax_is_stable_for_large_numbers_in_both_dtypes():
    for dtype in (np.float64, np.float32):
        z, wanted = np.array([1e4, -1e4, 0.0], dtype), np.array([1.0, 0.0, 0.0], dtype)
        check_array(stable_softmax, z, -1, wanted, of="stable_softmax", probe=which_softmax)
        check_array(stable_softmax, z[1:2], -1, wanted[:1], of="stable_softmax", probe=which_softmax)
    z, wanted = np.array([-1e4, -1e4]), np.array([0.5, 0.5])
    check_array(stable_softmax, z, -1, wanted, of="stable_softmax", probe=which_softmax)
    check_no_overflow(lambda: stable_softmax(np.array([1e4, -1e4, 0.0]), -1), "[10000, -10000, 0]")


@pytest.mark.task("04.6")
def test_softmax_depends_on_differences_only():
    near, far = stable_softmax(np.array([0.0, 2.0, 1.0]), -1), stable_softmax(np.array([1e4, 1e4 + 2.0, 1e4 + 1]), -1)
    what = "stable_softmax of [10000, 10002, 10001], which is that of [0, 2, 1]"
    check_close(far, near, what, probe=which_softmax)
    check_close(far, np.exp([-2.0, 0.0, -1.0]) / np.exp([-2.0, 0.0, -1.0]).sum(), what, probe=which_softmax)


@pytest.mark.task("04.6")
def test_softmax_of_rows_that_lie_far_apart_is_right_in_each_row():
    z = np.array([[1e4, 1e4], [-1e4, -1e4]])
    check_array(stable_softmax, z, 1, np.full((2, 2), 0.5), of="stable_softmax", probe=which_softmax)


@pytest.mark.task("04.7")
def test_softmax_hands_back_along_every_axis():
    for z, axis, wanted in laid_out(np.log([[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]), [[0.0, -1.0], [1.0, 1.0], [-1, 0]]):
        upstream = laid_out_like(z, axis, ARRIVES)
        check_rule(
            lambda x, axis=axis: softmax(x, axis),
            {"x": Tensor(z)},
            upstream,
            [wanted],
            of=f"softmax(x, {axis})",
            probe=which_product,
        )


@pytest.mark.task("04.7")
def test_softmax_takes_its_axis_from_either_end():
    check_every_axis(softmax, shares, np.log([[[1.0, 2.0, 5.0]], [[1.0, 1.0, 2.0]]]), "softmax", Tensor, several=False)


@pytest.mark.task("04.7")
def test_the_gradient_of_softmax_is_stable_for_large_numbers_in_both_dtypes():
    for dtype in (np.float64, np.float32):
        x = Tensor(np.array([1e4, 1e4, -1e4], dtype))
        upstream, wanted = np.array([1.0, 3.0, 5.0], dtype), np.array([-0.5, 0.5, 0.0], dtype)
        softmax(x)._backward(upstream)
        what = f"softmax(x) at x = [1e4, 1e4, -1e4] in {np.dtype(dtype)}, upstream [1, 3, 5]: x.grad"
        check_close(x.grad, wanted, what, tolerance=1e-6, probe=which_product)


@pytest.mark.task("04.7")
def test_softmax_adds_to_the_gradient_that_is_there():
    x = Tensor(np.log([1.0, 1.0, 2.0]))
    x.grad = np.array([10.0, 20.0, 30.0])
    wanted = [[10.0, 21.0, 29.0]]
    check_rule(softmax, {"x": x}, np.array([4.0, 8.0, 2.0]), wanted, of="softmax(x)", probe=which_product)


@pytest.mark.task("04.7")
def test_the_rule_of_softmax_does_not_hold_on_to_its_result():
    check_freed(softmax, Tensor([1.0, 2.0]), of="softmax(x)")


@pytest.mark.task("04.8")
def test_stable_log_softmax_takes_the_logarithm_of_the_shares():
    z = np.log([1.0, 2.0, 5.0])
    wanted = np.log([0.125, 0.25, 0.625])
    check_array(stable_log_softmax, z, -1, wanted, of="stable_log_softmax", probe=which_logarithm)


@pytest.mark.task("04.8")
def test_stable_log_softmax_works_along_every_axis():
    for z, axis, wanted in laid_out(np.log([[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]), np.log(COLUMNS)):
        check_array(stable_log_softmax, z, axis, wanted, of="stable_log_softmax", probe=which_logarithm)


@pytest.mark.task("04.8")
def test_stable_log_softmax_is_finite_where_a_share_is_too_small_for_a_float():
    for dtype in (np.float64, np.float32):
        z, wanted = np.array([1e4, -1e4, 0.0], dtype), np.array([0.0, -2e4, -1e4], dtype)
        check_array(stable_log_softmax, z, -1, wanted, of="stable_log_softmax", probe=which_logarithm)
    z, wanted = np.array([[1e4, 1e4], [-1e4, -1e4]]), np.log(np.full((2, 2), 0.5))
    check_array(stable_log_softmax, z, 1, wanted, of="stable_log_softmax", probe=which_logarithm)
    check_no_overflow(lambda: stable_log_softmax(np.array([1e4, -1e4, 0.0]), -1), "[10000, -10000, 0]")


@pytest.mark.task("04.8")
def test_the_rule_of_log_softmax_takes_the_sum_off_by_shares():
    x, upstream = Tensor(np.log([1.0, 1.0, 2.0])), np.array([4.0, 8.0, 2.0])
    wanted = [[0.5, 4.5, -5.0]]
    check_rule(log_softmax, {"x": x}, upstream, wanted, of="log_softmax(x)", probe=which_log_product)


@pytest.mark.task("04.8")
def test_the_rule_of_log_softmax_works_along_every_axis():
    wanted_columns = [[0.5, -5.0], [4.5, 4.5], [-5.0, 0.5]]
    for z, axis, wanted in laid_out(np.log([[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]), wanted_columns):
        check_rule(
            lambda x, axis=axis: log_softmax(x, axis),
            {"x": Tensor(z)},
            laid_out_like(z, axis, ARRIVES),
            [wanted],
            of=f"log_softmax(x, {axis})",
            probe=which_log_product,
        )


@pytest.mark.task("04.8")
def test_log_softmax_takes_its_axis_from_either_end():
    table = np.log([[[1.0, 2.0, 5.0]], [[1.0, 1.0, 2.0]]])
    check_every_axis(log_softmax, lambda z, axis: np.log(shares(z, axis)), table, "log_softmax", Tensor, several=False)


@pytest.mark.task("04.8")
def test_the_gradient_of_log_softmax_is_stable_in_both_dtypes():
    for dtype in (np.float64, np.float32):
        x = Tensor(np.array([1e4, -1e4], dtype))
        log_softmax(x)._backward(np.array([3.0, 5.0], dtype))
        what = f"log_softmax(x) at x = [1e4, -1e4] in {np.dtype(dtype)}, upstream [3, 5]: x.grad"
        check_close(x.grad, np.array([-5.0, 5.0], dtype), what, tolerance=1e-6, probe=which_log_product)


@pytest.mark.task("04.8")
def test_the_rule_of_log_softmax_adds_to_the_gradient_that_is_there():
    x = Tensor(np.log([1.0, 1.0, 2.0]))
    x.grad = np.array([10.0, 20.0, 30.0])
    upstream, wanted = np.array([4.0, 8.0, 2.0]), [[10.5, 24.5, 25.0]]
    check_rule(log_softmax, {"x": x}, upstream, wanted, of="log_softmax(x)", probe=which_log_product)


@pytest.mark.task("04.8")
def test_the_rule_of_log_softmax_does_not_hold_on_to_its_result():
    check_freed(log_softmax, Tensor([1.0, 2.0]), of="log_softmax(x)")


# The harder suite: python grader.py 04 --goal

SHAPES = [(), (1,), (4,), (2, 3), (2, 1, 3), (0, 3), (3, 0)]


def numbers(shape, low=-2.0, high=2.0):
    return np.asarray(np.random.default_rng(sum(shape) + len(shape)).uniform(low, high, shape))


def check_everywhere(function, name, low=-2.0, high=2.0):
    """Against central differences on many shapes, and on an array that does not lie in one piece."""
    for shape in SHAPES:
        check_gradient(function, numbers(shape, low, high), name=name, make=Tensor)
    check_gradient(function, numbers((4, 6), low, high)[::2, ::-3], name=f"{name}, every third column", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("04.1")
def test_goal_exp_matches_central_differences():
    check_everywhere(exp, "exp")
    check_rule(exp, {"x": Tensor([-1000.0, 0.0])}, np.array([1.0, 1.0]), [[0.0, 1.0]], of="exp(x)", probe=which_exp)


@pytest.mark.goal
@pytest.mark.task("04.2")
def test_goal_log_matches_central_differences():
    check_everywhere(log, "log", 0.5, 3.0)
    x = Tensor([1e-200, 1e200])
    check_rule(log, {"x": x}, np.array([1e-200, 1e200]), [[1.0, 1.0]], of="log(x)", probe=which_log)


@pytest.mark.goal
@pytest.mark.task("04.3")
def test_goal_tanh_matches_central_differences():
    check_everywhere(tanh, "tanh")


@pytest.mark.goal
@pytest.mark.task("04.4")
def test_goal_relu_matches_central_differences():
    """The numbers are random, so none lies within a step of the kink at 0."""
    check_everywhere(relu, "relu")
    tiny = Tensor([1e-300, -1e-300])
    check_rule(relu, {"x": tiny}, np.array([1.0, 1.0]), [[1.0, 0.0]], of="relu(x)", probe=which_relu)


@pytest.mark.goal
@pytest.mark.task("04.5")
def test_goal_max_matches_central_differences_along_every_axis():
    for shape in ((1,), (4,), (2, 3), (2, 1, 3), (3, 4, 2)):
        for axis in (None, (), *range(-len(shape), len(shape)), tuple(range(len(shape))), (0, -1)[: len(shape)]):
            for keepdims in (False, True):
                check_gradient(
                    lambda x, axis=axis, keepdims=keepdims: largest_of(x, axis, keepdims),
                    numbers(shape),
                    name=f"max over axis {axis}, keepdims {keepdims},",
                    make=Tensor,
                )
    check_gradient(largest_of, numbers(()), name="max", make=Tensor)
    check_gradient(lambda x: largest_of(x, 1), numbers((0, 3)), name="max over axis 1", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("04.5")
def test_goal_ties_in_every_place_hand_on_exactly_what_arrived():
    table = np.random.default_rng(0).integers(0, 2, (3, 4, 2)).astype(float)
    for axis in (None, 0, 1, 2, (0, 2), (1, 2)):
        check_tie(table, np.ones_like(np.max(table, axis)) * 3.0, axis)


@pytest.mark.goal
@pytest.mark.task("04.6")
def test_goal_softmax_is_right_on_many_shapes_and_sizes_of_number():
    for shape in ((1,), (5,), (2, 3), (3, 1, 2), (2, 3, 4), (0, 3)):
        for axis in axis_arguments(len(shape), several=False):
            if shape[axis] == 0:
                continue  # there is nothing to share out
            for scale in (1.0, 30.0, 1e4, 1e30):
                z = numbers(shape) * scale
                out = np.asarray(stable_softmax(z, axis))
                check_close(out, shares(z, axis), f"stable_softmax of numbers up to {2 * scale:g}, axis {axis},")
                out = np.asarray(stable_softmax(z.astype(np.float32), axis))
                wanted = shares(z.astype(np.float32), axis)
                check_close(out, wanted, "stable_softmax of float32 numbers", tolerance=1e-3)


@pytest.mark.goal
@pytest.mark.task("04.6")
def test_goal_a_number_that_is_minus_infinity_has_no_share():
    """That is how a later chapter forbids a choice."""
    out = stable_softmax(np.array([0.0, -np.inf, 0.0]), -1)
    check_close(out, np.array([0.5, 0.0, 0.5]), "stable_softmax of [0, -inf, 0]")


@pytest.mark.goal
@pytest.mark.task("04.7")
def test_goal_softmax_matches_central_differences_along_every_axis():
    for shape in ((1,), (4,), (2, 3), (3, 1, 2), (2, 3, 4), (0, 3)):
        for axis in range(-len(shape), len(shape)):
            if shape[axis]:
                name = f"softmax along axis {axis}"
                check_gradient(lambda x, axis=axis: softmax(x, axis), numbers(shape), name=name, make=Tensor)
    check_gradient(softmax, numbers((4, 6))[::2, ::-3], name="softmax, every third column", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("04.7")
def test_goal_softmax_gradient_in_float32_is_that_in_float64():
    z, g = numbers((3, 5)), numbers((3, 5), -1.0, 1.0)
    single, double = Tensor(z.astype(np.float32)), Tensor(z)
    softmax(double, 0)._backward(g)
    softmax(single, 0)._backward(g.astype(np.float32))
    what = "softmax(x, 0) of float32 numbers of shape (3, 5): x.grad"
    check_close(single.grad, double.grad.astype(np.float32), what, tolerance=1e-5, probe=which_product)
    x = Tensor([0.0, -np.inf, 0.0])
    softmax(x)._backward(np.array([1.0, 5.0, 3.0]))
    check_close(x.grad, np.array([-0.5, 0.0, 0.5]), "softmax at x = [0, -inf, 0], upstream [1, 5, 3]: x.grad")


@pytest.mark.goal
@pytest.mark.task("04.8")
def test_goal_log_softmax_matches_central_differences_along_every_axis():
    for shape in ((1,), (4,), (2, 3), (3, 1, 2), (2, 3, 4), (0, 3)):
        for axis in range(-len(shape), len(shape)):
            if shape[axis]:
                name = f"log_softmax along axis {axis}"
                check_gradient(lambda x, axis=axis: log_softmax(x, axis), numbers(shape), name=name, make=Tensor)
    check_gradient(log_softmax, numbers((4, 6))[::2, ::-3], name="log_softmax, every third column", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("04.8")
def test_goal_stable_log_softmax_is_the_logarithm_of_softmax_wherever_that_is_finite():
    for axis in (0, 1, -1):
        z = numbers((3, 4)) * 10.0
        check_close(stable_log_softmax(z, axis), np.log(shares(z, axis)), f"stable_log_softmax along axis {axis}")
    z = numbers((3, 4)).astype(np.float32)
    what = "stable_log_softmax of float32 numbers"
    check_close(stable_log_softmax(z, 0), np.log(shares(z, 0)), what, tolerance=1e-5)
    x = Tensor([0.0, -np.inf, 0.0])
    log_softmax(x)._backward(np.array([1.0, 0.0, 3.0]))
    check_close(x.grad, np.array([-1.0, 0.0, 1.0]), "log_softmax at x = [0, -inf, 0], upstream [1, 0, 3]: x.grad")


# Numbers to lay out along any axis: two columns of shares, and what arrives at them.

COLUMNS = np.array([[0.25, 0.5], [0.25, 0.25], [0.5, 0.25]])
ARRIVES = np.array([[4.0, 2.0], [8.0, 8.0], [2.0, 4.0]])


def laid_out(columns, wanted):
    """The same two columns of three numbers as arrays of one to three axes, with the axis that they run along."""
    columns, wanted = np.array(columns), np.array(wanted, dtype=float)
    yield columns[:, 0], 0, wanted[:, 0]
    yield columns.T.copy(), -1, wanted.T.copy()
    yield columns, 0, wanted
    yield columns.reshape(1, 3, 2), 1, wanted.reshape(1, 3, 2)
    yield columns.reshape(3, 1, 2), -3, wanted.reshape(3, 1, 2)


def laid_out_like(z, axis, columns):
    """Two columns of three numbers in the layout of `z`."""
    layouts = [(one, wanted) for _, one, wanted in laid_out(columns, columns)]
    return next(array for one, array in layouts if array.shape == z.shape and one == axis)


def check_array(function, z, axis, wanted, of, probe):
    """Check a function on plain arrays: shape and dtype, numbers, twice, and that its input is left alone."""
    tolerance = 1e-9 if z.dtype == np.float64 else 1e-6
    what = f"{of}(z, {axis}) at z = {show(z)}"
    check_twice(lambda: explained(lambda: function(z, axis), probe), wanted, what, probe, tolerance, z=z)


def check_float32(function, data, upstream, wanted, of, probe):
    x = Tensor(np.float32(data))
    function(x)._backward(np.asarray(upstream, np.float32))
    check_close(x.grad, np.float32(wanted), f"{of} of a float32 tensor: x.grad", tolerance=1e-6, probe=probe)


def check_tie(data, upstream, axis):
    """Of several largest numbers each may get any part of what arrives, as long as the parts make up the whole."""
    x = Tensor(data)
    largest_of(x, axis)._backward(upstream)
    of = f"max(x{'' if axis is None else f', {axis}'}) at x of shape {data.shape} with equal numbers in it"
    if x.grad.shape != data.shape or x.grad.dtype != data.dtype:
        raise CheckFailed(f"y = {of}: x.grad has shape {x.grad.shape} and is {x.grad.dtype}")
    losers = data != np.max(data, axis=axis, keepdims=True)
    if np.any(x.grad[losers] != 0.0):
        raise CheckFailed(f"y = {of}: something has arrived at a number that is not the largest", ask(which_max))
    total = x.grad.sum(axis=axis)
    what = f"y = {of}, upstream {np.asarray(upstream).tolist()}:\nwhat arrives at the largest, in all,"
    check_close(np.asarray(total), np.asarray(upstream), what, probe=which_tie)
    if np.any(x.grad < -1e-12):
        raise CheckFailed(f"y = {of}, upstream {np.asarray(upstream).tolist()}: part of x.grad is negative")


def check_no_jacobian(function, of):
    """The rule may use a few arrays of the size of its input, and no table of that size squared."""
    x, upstream = Tensor(np.zeros(2_000)), np.ones(2_000)
    out = function(x)
    tracemalloc.start()
    try:
        out._backward(upstream)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > 2_000 * 2_000:
        message = f"y = {of} at x of 2,000 numbers: the rule takes {peak / 1e6:.0f} MB, where a row is 0.016 MB"
        raise CheckFailed(message, "It forms the whole Jacobian, a row and a column for every number. Nobody needs it.")


def shares(z, axis):
    """Softmax in another way: every number's distance to the logarithm of the sum."""
    wide = z.astype(np.float64)
    return np.exp(wide - np.logaddexp.reduce(wide, axis=axis, keepdims=True)).astype(z.dtype)


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def arrived(function, data, upstream):
    """What arrives at the only input of a function."""
    x = Tensor(np.array(data))
    function(x)._backward(np.array(upstream))
    return x.grad


def read_only():
    """Was a part of x.grad written to, before anything had arrived?"""
    for function in (exp, log, tanh, relu, largest_of, softmax):
        try:
            arrived(function, [1.0, 2.0], [1.0, 1.0] if function is not largest_of else 1.0)
        except ValueError as error:
            if "read-only" in str(error):
                return (
                    "x.grad cannot be written to in places: add a whole array to it, x.grad += ..., with 0 elsewhere."
                )
        except NotImplementedError:
            continue
    return None


LOST = "An axis is lost: what was taken along it no longer stands beside its own row. keepdims=True keeps it."
AS_IT_IS = "What arrives is handed on as it is: the slope is missing."
OF_THE_RESULT = "The function is taken a second time: `result` is its result already."

OF_NUMPY = ("exp", "log", "tanh", "max", "min", "abs", "sqrt", "clip")


def own_function(look):
    """Does a task call a function of its own file, which makes a Tensor, where NumPy's belongs?

    look  runs the learner's code
    """

    def probe():
        called, originals = [], {name: getattr(activations, name) for name in OF_NUMPY}
        for name in OF_NUMPY:
            setattr(activations, name, lambda *args, name=name, **named: called.append(name))
        try:
            look()
        except Exception:
            pass  # where None cannot be calculated with
        finally:
            vars(activations).update(originals)
        if not called:
            return None
        return (
            f"`{called[0]}` is the function of this file here, which makes a Tensor. Of an array take np.{called[0]}."
        )

    return probe


# What arrives is 10, so that a slope, divided by it again, is told from 1, and from 1 / what arrives.
E, L, T = np.exp(2.0), np.log(4.0), np.tanh(0.5)
which_exp = first_that_tells(
    own_function(lambda: arrived(exp, [2.0], [1.0])),
    which_formula(
        lambda: arrived(exp, [2.0], [10.0]) / 10.0,
        {
            "The slope is taken to be the number that went in. exp is steeper than that.": [2.0],
            OF_THE_RESULT: [np.exp(E)],
            "That is the rule for x ** n. Here it is the exponent that moves.": [2.0 * np.exp(1.0)],
            "It divides by exp(x): the steeper the curve, the more has to be handed on.": [1.0 / E],
            "It divides by `upstream`: what arrives is multiplied by the slope.": [E / 100.0],
            "It is exp of what arrives: the slope is exp of what went in, which is `result`.": [np.exp(10.0) / 10.0],
            AS_IT_IS: [1.0],
        },
    ),
)


def too_flat_near_zero():
    slopes = arrived(log, [4.0, 1e-12], [1.0, 1.0])
    if np.isclose(slopes[0], 0.25) and slopes[1] < 1e11:
        return (
            "At 4 it is right, and at 1e-12 the slope is far too small: was something added to x? The slope is 1 / x."
        )
    return None


which_log = first_that_tells(
    own_function(lambda: arrived(log, [4.0], [1.0])),
    too_flat_near_zero,
    which_formula(
        lambda: arrived(log, [4.0], [10.0]) / 10.0,
        {
            "It multiplies by x. Is log steep or flat where x is large?": [4.0],
            "It divides by log(x). The slope depends on the number that went in.": [1.0 / L],
            "The slope is taken to be log(x). Only exp is its own slope.": [L],
            "That is the slope of 1 / x, not of log(x).": [-1.0 / 16.0],
            "It divides by x twice.": [1.0 / 16.0],
            "exp undoes log, but its slope is not that of log.": [np.exp(4.0)],
            "It divides by `upstream` too: upstream is a factor, and only x stands below the line.": [1.0 / 400.0],
            "That is 1 / upstream. The slope is 1 / x: what arrives is divided by the number that went in.": [0.01],
            "// cuts off what stands behind the point: / divides.": [0.2],
            "That is the slope of the logarithm to the base 10: np.log has the base e.": [0.25 / np.log(10.0)],
            "It is turned over: what arrives stands above the line, and x below.": [0.04],
            AS_IT_IS: [1.0],
        },
    ),
)
which_tanh = first_that_tells(
    own_function(lambda: arrived(tanh, [0.5], [1.0])),
    which_formula(
        lambda: arrived(tanh, [0.5], [10.0]) / 10.0,
        {
            "The slope is made from the number that went in. It is made from what came out.": [1.0 - 0.5**2],
            OF_THE_RESULT: [1.0 - np.tanh(T) ** 2],
            "The square is missing: this is 1 - tanh.": [1.0 - T],
            "That is the slope of sigmoid.": [T * (1.0 - T)],
            "That is only the square: what is left of 1 when it is taken away?": [T * T],
            "A plus stands where a minus belongs: tanh gets flatter, not steeper, far out.": [1.0 + T * T],
            "The difference is the other way round: tanh rises, so its slope is above 0.": [T * T - 1.0],
            "Only the square is multiplied by `upstream`, not all of the slope: are brackets missing?": [
                0.1 - T * T,
            ],
            "It is the square of the difference. The square is that of the result alone.": [(1.0 - T) ** 2],
            "It is 1 - 2 * tanh: a square is a product of the result with itself.": [1.0 - 2.0 * T],
            "The square of cosh is missing: the slope is 1 / cosh ** 2, or 1 - tanh ** 2.": [1.0 / np.cosh(0.5)],
            "`upstream` is squared with the result: it is a factor, for the whole slope.": [0.1 - 10.0 * T * T],
            "It is tanh itself: its slope is 1 minus the square of that.": [T],
            AS_IT_IS: [1.0],
        },
    ),
)


def one_question():
    try:
        arrived(relu, [1.0, 2.0], [1.0, 1.0])
    except ValueError as error:
        if "ambiguous" in str(error):
            return "An if asks a whole array one question. A comparison in a product asks every number its own."
    return None


which_relu = first_that_tells(
    read_only,
    own_function(lambda: arrived(relu, [2.0], [1.0])),
    which_formula(
        lambda: arrived(relu, [-2.0, -2.0, 3.0, 3.0], [1.0, -1.0, 10.0, -10.0]),
        {
            "It is the wrong way round: the gradient passes where the number was held back.": [1.0, -1.0, 0.0, 0.0],
            "It looks at the sign of what arrives. What counts is the sign of x.": [1.0, 0.0, 10.0, 0.0],
            "It holds back what arrives where that is negative. Only the sign of x counts.": [0.0, 0.0, 10.0, 0.0],
            "It multiplies by the number that passed. Where it passed, the slope is 1.": [0.0, 0.0, 30.0, -30.0],
            "Everything passes, also where x is negative.": [1.0, -1.0, 10.0, -10.0],
            "Where x is negative, the slope is taken to be -1: that is the absolute value.": [-1.0, 1.0, 10.0, -10.0],
            "It multiplies by x, and lets everything pass.": [-2.0, 2.0, 30.0, -30.0],
            "What was held back gets a hundredth: that is the leaky relu. Here the slope is 0.": [0.01, -0.01, 10, -10],
        },
    ),
    which_formula(
        lambda: arrived(relu, [0.5, 3.0], [10.0, 10.0]),
        {"3 passes, and 0.5 does not: what lies above 0 has passed, not above 1.": [0.0, 10.0]},
    ),
    one_question,
)


def nearly():
    if np.array_equal(arrived(lambda x: largest_of(x, 0), [[1.0, 2.0], [1.0 + 1e-12, 1.0]], [1.0, 1.0])[:, 1], [1, 0]):
        return "1 and 1.0000000000000002 are taken for equally large. The largest is a number of x, to the last digit."
    return None


def only_one_axis():
    """Right along one axis, and an error or other numbers along all of them?"""
    if not np.allclose(arrived(lambda x: largest_of(x, 1), M, MG[:, 0]), MG * WINS):
        return None
    try:
        right = np.allclose(arrived(largest_of, M, 1.0), M == 7.0)
    except Exception:
        right = False
    return None if right else "Along one axis it is right. `axis` is a tuple of axes, or None for all of them."


M, MG = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]]), np.array([[10.0], [100.0]])
WINS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
EVERY = "Every number gets what arrives, as in a sum. Only the largest decides."
which_max = first_that_tells(
    read_only,
    own_function(lambda: arrived(largest_of, [1.0, 2.0], 1.0)),
    which_formula(
        lambda: arrived(lambda x: largest_of(x, 1), M, MG[:, 0]),
        {
            EVERY: np.broadcast_to(MG, M.shape),
            "The smallest number gets it.": MG * [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
            "Only the largest number of all gets something. Each row has a largest number of its own.": MG
            * [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
            "It multiplies by the largest number. Where a number has won, the slope is 1.": MG * WINS * M,
            "It counts the winners of all rows together. Each row has its own.": MG * WINS / 2.0,
            "It divides by the length of the row. Those that did not win have no part in it.": MG * WINS / 3.0,
            "The others get something too.": MG * (1.0 - WINS),
            "All that arrives goes to the largest number of all. Each row has its own.": [[0.0, 0, 0], [110.0, 0, 0]],
            "It is multiplied by the length of the row: winners are counted by their sum, not by their mean.": MG
            * WINS
            * 3.0,
            "Every number gets an equal part, as in a mean. Only the largest decides.": MG / 3.0 + 0.0 * M,
        },
    ),
    which_formula(
        lambda: arrived(lambda x: largest_of(x, 0), M, [1.0, 10.0, 100.0]),
        {"It takes the largest along another axis than the one that was asked for.": [[0.0, 10, 0.0], [1.0, 0, 0]]},
    ),
    which_formula(
        lambda: arrived(lambda x: largest_of(x, 1), [[2.0, 2.0], [1.0, 5.0]], [6.0, 8.0]),
        {LOST: [[3.0, 6.0], [0.0, 8.0]]},
    ),
    only_one_axis,
)


def which_tie():
    if np.allclose(arrived(largest_of, [3.0, 3.0, 3.0, 1.0], 12.0), [12.0, 12.0, 12.0, 0.0]):
        return "Three equally large numbers get all of it each, three times what arrived: they have to share."
    return which_max()


def shifted(z, shift):
    return np.exp(z - shift)


def overflow():
    """Small numbers are right. At large ones, which of three things goes wrong?"""
    if not np.allclose(stable_softmax(np.array([0.0, 0.0]), -1), 0.5):
        return None
    with np.errstate(all="ignore"):
        if not np.isfinite(stable_softmax(np.array([1e4, 1e4]), -1)).all():
            return (
                "Small numbers are right. At 1e4 exp gives inf, and inf / inf is nan: make the numbers smaller first."
            )
        if not np.isfinite(stable_softmax(np.array([1e4, -1e4]), -1)).all():
            return "What is subtracted is not the largest number: exp still overflows at [1e4, -1e4]."
        if not np.isfinite(stable_softmax(np.array([-1e4, -1e4]), -1)).all():
            return "At [-1e4, -1e4] every exp is 0, and 0 / 0 is nan: what is subtracted is not the largest number."
        apart = np.array([[1e4, 1e4], [-1e4, -1e4]])
        if not np.isfinite(stable_softmax(apart, 1)).all():
            return "The largest number of all is subtracted from every row. Each row needs its own."
        if np.allclose(stable_softmax(np.array([1e4, 1e4 - 2.0]), -1), 0.5):
            return "Large numbers are cut off, so they are all alike: the differences between them are lost."
    return None


def nearly_one():
    shares_found, wanted = stable_softmax(Z, 1), S
    if shares_found.shape != S.shape or not 1e-12 < np.abs(shares_found - wanted).max() < 1e-3:
        return None
    if (shares_found < wanted).all():
        return "All shares are a little too small: was something added below the line? The sum there is never below 1."
    return "The shares are nearly right: are they rounded?"


Z = np.log([[1.0, 2.0, 5.0], [4.0, 1.0, 1.0]])
SQUARE = np.log([[1.0, 3.0], [4.0, 1.0]])
P, Q = np.exp(Z), np.exp(SQUARE)
ROWS = {"axis": 1, "keepdims": True}
S, S2 = P / P.sum(**ROWS), Q / Q.sum(**ROWS)
# The same without keepdims, on a square, where nothing else complains: in the sum, in the largest number, in both.
RIGHT, SLANTED = np.exp(SQUARE - SQUARE.max(**ROWS)), np.exp(SQUARE - SQUARE.max(axis=1))
LOST_SHARES = [
    RIGHT / RIGHT.sum(axis=1),
    SLANTED / SLANTED.sum(**ROWS),
    SLANTED / SLANTED.sum(axis=1),
    Q / Q.sum(axis=1),
]
ALWAYS_LAST = "It always works along the last axis, whatever `axis` says."
ALWAYS_FIRST = "It always works along the first axis, whatever `axis` says."
OVER_ALL = "It sums over the whole array. Along `axis`, each row has a sum of its own."
which_softmax = first_that_tells(
    own_function(lambda: stable_softmax(Z, 1)),
    which_formula(
        lambda: stable_softmax(Z, 1),
        {
            "The result does not add up to 1: it is exp, and nothing is divided by the sum.": P,
            "The result does not add up to 1: nothing is divided by the sum.": P / P.max(**ROWS),
            "Its sum is 1, but exp is missing.": (Z - Z.max(**ROWS)) / (Z - Z.max(**ROWS)).sum(**ROWS),
            "Its sum is 1, but there is no exp in it.": Z / Z.sum(**ROWS),
            OVER_ALL: P / P.sum(),
            "It sums over the whole array, each row after a shift of its own.": P
            / P.max(**ROWS)
            / np.sum(P / P.max(**ROWS)),
            ALWAYS_FIRST: P / P.sum(axis=0),
            "It is the logarithm of the shares, not the shares.": np.log(P / P.sum(**ROWS)),
            "The sign in exp is turned: the smallest number gets the largest share.": (1 / P) / (1 / P).sum(**ROWS),
            "It divides by the largest power, and not by the sum.": P / P.max(),
            "It takes softmax of the shares once more.": np.exp(S) / np.exp(S).sum(**ROWS),
            "These are powers of 2: the base is e, np.exp.": 2**Z / (2**Z).sum(**ROWS),
        },
    ),
    which_formula(lambda: stable_softmax(Z, 0), {ALWAYS_LAST: P / P.sum(**ROWS)}),
    *[which_formula(lambda: stable_softmax(SQUARE, 1), {LOST: way}) for way in LOST_SHARES],
    overflow,
    nearly_one,
)

G, G2 = np.array([[1.0, 10.0, 3.0], [7.0, 2.0, -5.0]]), np.array([[1.0, 10.0], [7.0, 2.0]])
which_product = first_that_tells(
    own_function(lambda: arrived(softmax, [1.0, 2.0], [1.0, 2.0])),
    which_formula(
        lambda: arrived(lambda x: softmax(x, 1), Z, G),
        {
            "Only s times what arrives. A number also moves the other shares: that part is missing.": S * G,
            "That is the diagonal alone. A number also moves the other shares: that part is missing.": S * (1 - S) * G,
            "Only the first part is multiplied by the shares, not what is taken off it: are brackets missing?": S * G
            - (G * S).sum(**ROWS),
            "The average is taken off, but what is left is not multiplied by the shares.": G - (G * S).sum(**ROWS),
            "The sum counts every g alike. Each has to be weighted by its share.": S * (G - G.sum(**ROWS)),
            "It takes off the plain mean. Each g has to be weighted by its share.": S * (G - G.mean(**ROWS)),
            "A mean of g * s stands where its sum belongs: the shares are the weights already.": S
            * (G - (G * S).mean(**ROWS)),
            OVER_ALL: S * (G - (G * S).sum()),
            "What is taken off is a sum times the share: it is the sum of `upstream * s`.": S * (G - S * G.sum(**ROWS)),
            "That is the rule of log-softmax.": G - S * G.sum(**ROWS),
            "A plus stands where a minus belongs.": S * (G + (G * S).sum(**ROWS)),
            "The shares are multiplied in twice.": S * S * (G - (G * S).sum(**ROWS)),
            "It sums along the first axis, whatever `axis` says.": S * (G - (G * S).sum(axis=0)),
            "It takes softmax of `s`. But `s` is the result already.": (lambda s: s * (G - (G * s).sum(**ROWS)))(
                np.exp(S) / np.exp(S).sum(**ROWS)
            ),
        },
    ),
    which_formula(
        lambda: arrived(lambda x: softmax(x, 0), Z, G),
        {ALWAYS_LAST: (P / P.sum(axis=0)) * (G - (G * (P / P.sum(axis=0))).sum(**ROWS))},
    ),
    which_formula(
        lambda: arrived(lambda x: softmax(x, 0), Z, G),
        {"It takes the shares along the last axis: `s` has them along `axis`.": S * (G - (G * S).sum(axis=0))},
    ),
    which_formula(lambda: arrived(lambda x: softmax(x, 1), SQUARE, G2), {LOST: S2 * (G2 - (G2 * S2).sum(axis=1))}),
)


def underflow():
    """Small numbers are right. What goes wrong at large ones?"""
    if not np.allclose(stable_log_softmax(np.array([0.0, 0.0]), -1), np.log(0.5)):
        return None
    with np.errstate(all="ignore"):
        if not np.isfinite(stable_log_softmax(np.array([1e4, 1e4]), -1)).all():
            return "Small numbers are right. At 1e4 exp gives inf: the shift of softmax is needed here too."
        apart = stable_log_softmax(np.array([1e4, -1e4]), -1)
        if np.isneginf(apart[1]):
            return "At [1e4, -1e4] a share is too small for a float and becomes 0, and log(0) is -inf."
        if not np.isfinite(apart).all():
            return "What is subtracted is not the largest number: exp still overflows at [1e4, -1e4]."
        if apart[1] > -1e3:
            return "Tiny shares are held away from 0, so at [1e4, -1e4] the result is cut off."
        if not np.isfinite(stable_log_softmax(np.array([-1e4, -1e4]), -1)).all():
            return "At [-1e4, -1e4] every exp is 0: what is subtracted is not the largest number."
        if not np.isfinite(stable_log_softmax(np.array([[1e4, 1e4], [-1e4, -1e4]]), 1)).all():
            return "The largest number of all is subtracted from every row. Each row needs its own."
    return None


TOP = Z.max(**ROWS)
SUM_OUTSIDE = "log undoes exp, number by number, before anything is summed: the sum stands inside of the logarithm."
which_logarithm = first_that_tells(
    own_function(lambda: stable_log_softmax(Z, 1)),
    which_formula(
        lambda: stable_log_softmax(Z, 1),
        {
            "It is softmax: the logarithm is missing.": S,
            "The shift is in the sum only. What is taken from the numbers there has to be taken from z too.": Z
            - np.log(shifted(Z, TOP).sum(**ROWS)),
            "The shift is not in the sum: what is taken from z has to be taken from the numbers there too.": Z
            - TOP
            - np.log(P.sum(**ROWS)),
            "The logarithm of the sum is missing.": Z - TOP,
            "The sum itself is taken off, where its logarithm belongs.": Z - TOP - shifted(Z, TOP).sum(**ROWS),
            "The sum is made without exp.": Z - np.log(np.abs(Z.sum(**ROWS))),
            "It divides by the logarithm of the sum. The logarithm of a quotient is a difference.": (Z - TOP)
            / np.log(shifted(Z, TOP).sum(**ROWS)),
            "A plus stands where a minus belongs: the logarithm of a quotient is a difference.": Z
            - TOP
            + np.log(shifted(Z, TOP).sum(**ROWS)),
            "The mean stands where the sum belongs.": Z - np.log(P.mean(**ROWS)),
            "That is a logarithm to the base 2: np.log has the base e.": Z - TOP - np.log2(shifted(Z, TOP).sum(**ROWS)),
            "np.log1p adds a 1: the sum has all that it needs.": Z - TOP - np.log1p(shifted(Z, TOP).sum(**ROWS)),
            OVER_ALL: Z - np.log(P.sum()),
            "It sums over the whole array, after a shift by row.": Z - TOP - np.log(shifted(Z, TOP).sum()),
            ALWAYS_FIRST: Z - np.log(P.sum(axis=0)),
        },
    ),
    which_formula(lambda: stable_log_softmax(Z, 0), {ALWAYS_LAST: Z - np.log(P.sum(**ROWS))}),
    *[
        which_formula(lambda: stable_log_softmax(Z, 1), {SUM_OUTSIDE: way})
        for way in (Z - Z.sum(**ROWS), Z - TOP - (Z - TOP).sum(**ROWS), Z - TOP - (Z - TOP).sum(), Z - Z.sum())
    ],
    *[which_formula(lambda: stable_log_softmax(SQUARE, 1), {LOST: np.log(way)}) for way in LOST_SHARES],
    underflow,
)
LOG_S = np.log(S)
which_log_product = first_that_tells(
    own_function(lambda: arrived(log_softmax, [1.0, 2.0], [1.0, 2.0])),
    which_formula(
        lambda: arrived(lambda x: log_softmax(x, 1), Z, G),
        {
            "That is the rule of softmax. The logarithm has changed the slopes.": S * (G - (G * S).sum(**ROWS)),
            "What arrives is weighted by the shares before it is summed. The plain sum belongs here.": G
            - S * (G * S).sum(**ROWS),
            "`result` is the logarithm of the shares. The shares themselves belong there.": G - LOG_S * G.sum(**ROWS),
            "The sum is taken off as it is. Each number takes off its share of it.": G - G.sum(**ROWS),
            "Each number takes off its share of its own g. It is its share of all that arrives.": G - S * G,
            "A mean stands where the sum belongs.": G - S * G.mean(**ROWS),
            "The shares are taken off, but not as often as something has arrived.": G - S,
            "A plus stands where a minus belongs.": G + S * G.sum(**ROWS),
            OVER_ALL: G - S * G.sum(),
            "It sums along the first axis, whatever `axis` says.": G - S * G.sum(axis=0),
            "It takes off the weighted average: here each number takes off its share of the plain sum.": G
            - (G * S).sum(**ROWS),
            "exp undoes the logarithm as it is: with a minus it gives 1 / share.": G - G.sum(**ROWS) / S,
            AS_IT_IS: G,
            "That is the slope of log alone, 1 / s.": G / S,
        },
    ),
    which_formula(
        lambda: arrived(lambda x: log_softmax(x, 0), Z, G), {ALWAYS_LAST: G - P / P.sum(axis=0) * G.sum(**ROWS)}
    ),
    which_formula(lambda: arrived(lambda x: log_softmax(x, 1), SQUARE, G2), {LOST: G2 - S2 * G2.sum(axis=1)}),
)
