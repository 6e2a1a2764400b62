"""The checks of chapter 10: python grader.py 10"""

import numpy as np
import pytest

from meintorch import activations, nodes, shapes, tensor
from meintorch.nodes import AddBackward, Backward, HypotBackward, MatMulBackward, MulBackward, SumBackward, Tensor
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    explained,
    first_that_tells,
    nothing_else_changes,
    show,
    which_formula,
)


@pytest.fixture(autouse=True)
def lend_unbroadcast(request, monkeypatch):
    """10.2 and 10.3 are checked with an unbroadcast that works, so that they can be right before 10.6."""
    if request.node.get_closest_marker("task").args[0] in ("10.2", "10.3"):
        monkeypatch.setattr(nodes, "unbroadcast", summed_to)


@pytest.mark.task("10.8")
def test_both_engines_give_the_same_gradients_on_the_same_random_programs():
    """Forty programs of ten steps each, drawn at random: closures here, nodes there."""
    for seed in range(40):
        steps, arrays = random_steps(seed), inputs(seed)
        ours = {name: needs_gradient(array) for name, array in arrays.items()}
        theirs = {name: tensor.Tensor(array) for name, array in arrays.items()}
        out, wanted = run(steps, ours, NODES), run(steps, theirs, CLOSURES)
        what = f"random program {seed}, {written_out(steps)}:\n"
        check_close(out.value, wanted.data, f"{what}the result with nodes", tolerance=1e-8, probe=which_side)
        out.backward()
        wanted.backward()
        for name in arrays:
            found = np.zeros(arrays[name].shape) if ours[name].grad is None else ours[name].grad.value
            judge = who_is_right(steps, arrays, name, found, np.asarray(theirs[name].grad))
            look = first_that_tells(left_behind, which_side, which_quotient, judge)
            what_is = f"{what}with nodes {name}.grad"
            check_close(found, np.asarray(theirs[name].grad), what_is, tolerance=1e-8, probe=look)


# 10.1 The result


@pytest.mark.task("10.1")
def test_a_result_keeps_its_node_if_an_input_needs_a_gradient():
    for needs in ((True, True), (True, False), (False, True)):
        node = Backward(*[Tensor([1.0, 2.0], one) for one in needs])
        out = recorded(np.array([3.0, 4.0]), node)
        what = f"the result of a node whose inputs have requires_grad {needs[0]} and {needs[1]}"
        check_result(out, [3.0, 4.0], node, what)


@pytest.mark.task("10.1")
def test_a_result_of_constants_is_a_constant_and_keeps_nothing():
    """A node would hold on to its inputs, for nobody."""
    out = recorded(np.array(3.0), Backward(Tensor(1.0), Tensor(2.0)))
    check_result(out, 3.0, None, "the result of a node whose inputs have requires_grad False and False")


@pytest.mark.task("10.1")
def test_a_node_of_one_input_or_of_three_is_kept_as_well():
    for needs in ((True,), (False,), (False, False, True), (False, False, False)):
        node = Backward(*[Tensor(1.0, one) for one in needs])
        out = recorded(np.array(2.0), node)
        what = f"the result of a node whose inputs have requires_grad {', '.join(map(str, needs))}"
        check_result(out, 2.0, node if any(needs) else None, what)


@pytest.mark.task("10.1")
def test_an_operation_leaves_its_node_behind():
    x, y = needs_gradient([1.0, 2.0]), Tensor([10.0, 20.0])
    check_recorded(x * y, [10.0, 40.0], MulBackward, (x, y), "x * y at x = [1, 2], y = [10, 20]")


@pytest.mark.task("10.1")
def test_what_has_no_slope_has_no_node():
    """argmax, median, diag, var and comparisons: nothing goes back through them."""
    x = needs_gradient([[1.0, 5.0], [7.0, 3.0]]) * 2.0
    for name, out, wanted in (
        ("argmax(x, 1)", nodes.argmax(x, 1), [1.0, 0.0]),
        ("median(x)", nodes.median(x), 8.0),
        ("diag(x)", nodes.diag(x), [2.0, 6.0]),
        ("var(x, 1)", nodes.var(x, 1), [16.0, 16.0]),
        ("x > 6", x > 6.0, [[0.0, 1.0], [1.0, 0.0]]),
    ):
        check_result(out, wanted, None, f"{name} at x = [[2, 10], [14, 6]]")


# 10.2 Add


@pytest.mark.task("10.2")
def test_the_node_of_a_sum_returns_what_arrives_once_for_each_term():
    x, y = needs_gradient([1.0, 2.0]), needs_gradient([3.0, 4.0])
    check_node(AddBackward(x, y), [10.0, 20.0], [[10.0, 20.0], [10.0, 20.0]], probe=which_add)


@pytest.mark.task("10.2")
def test_the_node_of_a_sum_leaves_a_matrix_turned_as_it_is():
    x, y = needs_gradient(np.zeros((2, 3))), needs_gradient(np.ones((2, 3)))
    arrives = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    check_node(AddBackward(x, y), arrives, [arrives, arrives], probe=which_add)
    square = [[1.0, 2.0], [3.0, 4.0]]
    x, y = needs_gradient(np.zeros((2, 2))), needs_gradient(np.ones((2, 2)))
    check_node(AddBackward(x, y), square, [square, square], probe=which_add)


@pytest.mark.task("10.2")
def test_the_node_of_a_sum_calls_unbroadcast_for_each_term():
    x, y = needs_gradient(np.zeros((2, 2))), needs_gradient([3.0, 4.0])
    arrives = [[1.0, 10.0], [2.0, 20.0]]
    check_node(AddBackward(x, y), arrives, [arrives, [11.0, 22.0]], probe=which_add)
    check_node(AddBackward(y, x), arrives, [[11.0, 22.0], arrives], probe=which_add)


@pytest.mark.task("10.2")
def test_the_node_of_a_sum_may_return_none_for_a_constant():
    x = needs_gradient([1.0, 2.0])
    check_node(AddBackward(x, Tensor([3.0, 4.0])), [10.0, 20.0], [[10.0, 20.0], [10.0, 20.0]], probe=which_add)
    check_node(AddBackward(Tensor([3.0, 4.0]), x), [10.0, 20.0], [[10.0, 20.0], [10.0, 20.0]], probe=which_add)


# 10.3 Multiply


@pytest.mark.task("10.3")
def test_the_node_of_a_product_returns_the_partner_times_what_arrives():
    x, y = needs_gradient([2.0, 3.0]), needs_gradient([5.0, 7.0])
    check_node(MulBackward(x, y), [10.0, 100.0], [[50.0, 700.0], [20.0, 300.0]], probe=which_mul)


@pytest.mark.task("10.3")
def test_a_product_of_matrices_meets_its_gradient_turned():
    x, y = needs_gradient([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), needs_gradient([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    arrives = [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]
    wanted = [[[1.0, 0.0], [0.0, 60.0], [200.0, 200.0]], [[1.0, 8.0], [20.0, 100.0], [300.0, 1200.0]]]
    check_node(MulBackward(x, y), arrives, wanted, probe=which_mul)


@pytest.mark.task("10.3")
def test_a_square_product_does_not_hide_a_missing_turn():
    x, y = needs_gradient([[1.0, 2.0], [3.0, 4.0]]), needs_gradient([[5.0, 6.0], [7.0, 8.0]])
    arrives = [[1.0, 10.0], [100.0, 1000.0]]
    wanted = [[[5.0, 70.0], [600.0, 8000.0]], [[1.0, 30.0], [200.0, 4000.0]]]
    check_node(MulBackward(x, y), arrives, wanted, probe=which_mul)


@pytest.mark.task("10.3")
def test_a_vector_meets_every_row_of_a_matrix_on_the_way_back_too():
    """Its numbers belong to the columns. Turned as well, it would be laid along the rows."""
    x, y = needs_gradient([[1.0, 2.0], [3.0, 4.0]]), needs_gradient([5.0, 7.0])
    arrives = [[1.0, 10.0], [100.0, 1000.0]]
    wanted = [[[5.0, 50.0], [700.0, 7000.0]], [31.0, 4200.0]]
    check_node(MulBackward(x, y), arrives, wanted, probe=which_mul)
    check_node(MulBackward(y, x), arrives, wanted[::-1], probe=which_mul)
    x, y = needs_gradient(np.ones((2, 3))), needs_gradient([5.0, 7.0, 9.0])
    arrives = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]
    wanted = [[[5.0, 50.0], [14.0, 140.0], [27.0, 270.0]], [11.0, 22.0, 33.0]]
    check_node(MulBackward(x, y), arrives, wanted, probe=which_mul)


@pytest.mark.task("10.3")
def test_the_node_of_a_product_keeps_float32_and_may_return_none_for_a_constant():
    x, y = needs_gradient(np.float32([2.0, 3.0])), Tensor(np.float32([5.0, 7.0]))
    check_node(MulBackward(x, y), np.float32([10.0, 100.0]), [[50.0, 700.0], [20.0, 300.0]], probe=which_mul)


# 10.4 The matrix product


@pytest.mark.task("10.4")
def test_the_node_of_a_matrix_product_needs_no_transpose():
    a, b = needs_gradient([[2.0, 3.0]]), needs_gradient([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    arrives = [[1.0], [10.0], [100.0]]
    wanted = [[[321.0], [654.0]], [[2.0, 3.0], [20.0, 30.0], [200.0, 300.0]]]
    check_node(MatMulBackward(a, b), arrives, wanted, names="ab", probe=which_matmul)


@pytest.mark.task("10.4")
def test_square_matrices_do_not_hide_a_transpose_too_many():
    a, b = needs_gradient([[1.0, 2.0], [3.0, 4.0]]), needs_gradient([[5.0, 6.0], [7.0, 8.0]])
    arrives = [[1.0, 0.0], [0.0, 10.0]]
    wanted = [[[5.0, 60.0], [7.0, 80.0]], [[1.0, 2.0], [30.0, 40.0]]]
    check_node(MatMulBackward(a, b), arrives, wanted, names="ab", probe=which_matmul)


@pytest.mark.task("10.4")
def test_the_node_of_a_matrix_product_keeps_float32_and_may_return_none_for_a_constant():
    a, b = Tensor(np.float32([[2.0, 3.0]])), needs_gradient(np.float32([[1.0], [4.0]]))
    wanted = [[[10.0], [40.0]], [[20.0, 30.0]]]
    check_node(MatMulBackward(a, b), np.float32([[10.0]]), wanted, names="ab", probe=which_matmul)
    a, b = needs_gradient(a.value), Tensor(b.value)
    check_node(MatMulBackward(a, b), np.float32([[10.0]]), wanted, names="ab", probe=which_matmul)


# 10.5 Backward. The nodes are this file's own, so that the walk is checked and nothing else.


@pytest.mark.task("10.5")
def test_what_arrives_from_several_users_adds_up():
    """p = x * x and y = p + x at x = 3: 3 + 3 + 1."""
    x = needs_gradient(3.0)
    p = made(9.0, (x, x), slopes=(3.0, 3.0))
    y = made(12.0, (p, x), slopes=(1.0, 1.0))
    walk(y)
    check_gradient_of(x, 7.0, "p = x * x, y = p + x at x = 3")


@pytest.mark.task("10.5")
def test_a_node_is_asked_when_everything_has_arrived():
    """a = 2x, b = a + 1, c = a * b at x = 3: the slope is 8 * 3 + 2."""
    x = needs_gradient(3.0)
    a = made(6.0, (x,), slopes=(2.0,))
    b = made(7.0, (a,), slopes=(1.0,))
    c = made(42.0, (a, b), slopes=(7.0, 6.0))
    walk(c)
    check_gradient_of(x, 26.0, "a = 2 * x, b = a + 1, c = a * b at x = 3")


@pytest.mark.task("10.5")
def test_every_node_is_asked_once():
    """Doubled twelve times: 4096 paths lead to x, by way of twelve nodes."""
    x = needs_gradient(1.0)
    y, results = x, []
    for i in range(12):
        y = made(2.0 ** (i + 1), (y, y), slopes=(1.0, 1.0))
        results.append(y)
    walk(y)
    check_gradient_of(x, 4096.0, "x doubled twelve times at x = 1")
    asked = [len(one._grad_fn.arrived) for one in results]
    if asked != [1] * 12:
        message = f"x doubled twelve times: the twelve nodes are asked {', '.join(map(str, asked[::-1]))} times"
        raise CheckFailed(message, "Once each is enough: go through users_first(self), and add up before you ask.")


@pytest.mark.task("10.5")
def test_the_gradient_of_a_matrix_arrives_turned_and_is_kept_in_its_own_shape():
    x = needs_gradient([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = made(1.0, (x,), slopes=([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]],))
    walk(y)
    check_gradient_of(x, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "y = sum(x * x) / 2 at x of shape (2, 3)")
    square = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    walk(made(1.0, (square,), slopes=([[1.0, 3.0], [2.0, 4.0]],)))
    check_gradient_of(square, [[1.0, 2.0], [3.0, 4.0]], "y = sum(x * x) / 2 at x of shape (2, 2)")


@pytest.mark.task("10.5")
def test_every_tensor_keeps_what_has_arrived_at_it():
    """p = 2 * x and y = p / 4: the end itself gets 1, what was computed on the way 1/4, and the input 1/2."""
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    y = made(1.5, (p,), slopes=(0.25,))
    for times in (1.0, 2.0):
        walk(y)
        for one, wanted, name in ((x, 0.5, "x"), (p, 0.25, "p"), (y, 1.0, "y")):
            check_gradient_of(one, times * wanted, f"p = 2 * x, y = p / 4, after {int(times)} y.backward()", name)


@pytest.mark.task("10.5")
def test_none_and_constants_are_passed_over():
    x, constant = needs_gradient(3.0), Tensor(5.0)
    walk(made(15.0, (constant, x), slopes=(None, 5.0)))
    check_gradient_of(x, 5.0, "y = 5 * x, whose node returns None for the 5")
    x = needs_gradient(3.0)
    walk(made(15.0, (x, constant), slopes=(5.0, 3.0)))
    check_gradient_of(x, 5.0, "y = x * 5, whose node returns a gradient for the 5 too")
    if constant.grad is not None:
        message = f"y = x * 5: the constant 5 has got a gradient, {constant.grad!r}"
        raise CheckFailed(message, "Its requires_grad is False: nobody asks for it, so what comes for it is dropped.")
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    walk(made(9.0, (p, x), slopes=(None, 1.0)))
    check_gradient_of(x, 1.0, "y = x + a result p whose gradient is None")


@pytest.mark.task("10.5")
def test_a_second_backward_adds_to_the_gradient_that_is_there():
    x = needs_gradient([1.0, 2.0])
    for _ in range(2):
        walk(made(5.0, (x,), slopes=([2.0, 4.0],)))
    check_gradient_of(x, [4.0, 8.0], "y = sum(x * x) at x = [1, 2], the second backward()")


@pytest.mark.task("10.5")
def test_the_same_graph_can_be_walked_again():
    """What arrived during the first walk has no part in the second."""
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    y = made(30.0, (p,), slopes=(5.0,))
    walk(y)
    walk(y)
    check_gradient_of(x, 20.0, "p = 2 * x, y = 5 * p, the second y.backward()")


@pytest.mark.task("10.5")
def test_a_gradient_that_is_given_takes_the_place_of_the_one():
    """It is given as it is carried, transposed."""
    x = needs_gradient(np.zeros((2, 3)))
    y = made(np.zeros((2, 3)), (x,), slopes=(2.0,))
    gradient = Tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
    given = "y = 2 * x, y.backward([[1, 4], [2, 5], [3, 6]])"
    own = "+= on an array changes it for everyone who holds it: a kept gradient has to be an array of its own."
    for times in (1.0, 2.0):
        walk(y, gradient)
        what = f"{given}, {int(times)} times:\nthe gradient that was given"
        check_close(gradient.value, np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]), what, probe=lambda: own)
        check_gradient_of(x, times * np.array([[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]), f"{given}, {int(times)} times")


@pytest.mark.task("10.5")
def test_a_share_that_two_inputs_get_is_not_changed_for_one_of_them():
    """The node of a sum may return the same array twice. What else arrives at x is not y's."""
    x, y = needs_gradient([1.0, 1.0]), needs_gradient([1.0, 1.0])
    total = made([2.0, 2.0], (x, y), slopes=SHARED)
    other = made([6.0, 6.0], (x, y), slopes=(5.0, 1.0))
    walk(made(16.0, (total, other), slopes=([1.0, 1.0], [1.0, 1.0])))
    of = "out = sum((x + y) + (5 * x + y)) with the same array returned for x and y"
    check_gradient_of(x, [6.0, 6.0], of)
    check_gradient_of(y, [2.0, 2.0], of, "y")


@pytest.mark.task("10.5")
def test_gradients_keep_float32_and_need_no_gradient_themselves():
    x = needs_gradient(np.float32([1.0, 2.0]))
    walk(made(np.float32(3.0), (x,), slopes=(np.float32([2.0, 4.0]),)))
    check_gradient_of(x, np.float32([2.0, 4.0]), "y = sum(x * x) of float32 numbers")
    if x.grad.requires_grad:
        raise CheckFailed("x.grad.requires_grad is True", "A gradient is a result to look at, and a constant.")


# 10.6 Unbroadcast


@pytest.mark.task("10.6")
def test_axes_that_were_added_in_front_are_summed_at_the_end():
    """A bias of three numbers beside two rows: transposed, its numbers belong to the three rows."""
    gradient = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    check_unbroadcast(gradient, (3,), [11.0, 22.0, 33.0])


@pytest.mark.task("10.6")
def test_a_square_gradient_does_not_hide_the_wrong_end():
    check_unbroadcast(np.array([[1.0, 10.0], [2.0, 20.0]]), (2,), [11.0, 22.0])


@pytest.mark.task("10.6")
def test_stretched_axes_are_summed_in_their_turned_place_and_stay():
    gradient = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    check_unbroadcast(gradient, (2, 1), [[6.0, 60.0]])
    check_unbroadcast(gradient, (1, 3), [[11.0], [22.0], [33.0]])


@pytest.mark.task("10.6")
def test_a_single_number_collects_a_whole_gradient():
    gradient = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    check_unbroadcast(gradient, (), 66.0)
    check_unbroadcast(gradient, (1,), [66.0])


@pytest.mark.task("10.6")
def test_unbroadcast_keeps_float32():
    check_unbroadcast(np.float32([[0.25, 10.0], [0.5, 20.0]]), (2,), [10.25, 20.5])
    check_unbroadcast(np.float32([[0.25, 10.0], [0.5, 20.0]]), (2, 1), [[0.75, 30.0]])


@pytest.mark.task("10.6")
def test_axes_that_were_added_and_stretched_are_summed_together():
    gradient = np.arange(12.0).reshape(2, 3, 2)
    check_unbroadcast(gradient, (3, 1), [[0 + 1 + 6 + 7, 2 + 3 + 8 + 9, 4 + 5 + 10 + 11]])
    check_unbroadcast(gradient, (2, 1, 2), np.arange(12.0).reshape(2, 3, 2).sum(axis=1, keepdims=True))


@pytest.mark.task("10.6")
def test_a_bias_gets_a_gradient_of_its_own_shape():
    x, bias = Tensor(np.zeros((2, 3))), needs_gradient([1.0, 2.0, 3.0])
    arrives = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]
    check_node(AddBackward(x, bias), arrives, [arrives, [11.0, 22.0, 33.0]], probe=which_end)


# 10.7 Sum


@pytest.mark.task("10.7")
def test_every_number_gets_what_arrives_at_its_sum():
    """Rows 0 and 1 of the table are columns 0 and 1 of what is carried."""
    x = needs_gradient([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    check_node(SumBackward(x, (1,), False), [1.0, 10.0], [[[1.0, 10.0]] * 3], probe=which_spread)
    wanted = [[1.0, 1.0], [10.0, 10.0], [100.0, 100.0]]
    check_node(SumBackward(x, (0,), False), [1.0, 10.0, 100.0], [wanted], probe=which_spread)


@pytest.mark.task("10.7")
def test_a_square_table_does_not_hide_the_wrong_axis():
    x = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    check_node(SumBackward(x, (0,), False), [1.0, 10.0], [[[1.0, 1.0], [10.0, 10.0]]], probe=which_spread)
    check_node(SumBackward(x, (1,), False), [1.0, 10.0], [[[1.0, 10.0], [1.0, 10.0]]], probe=which_spread)


@pytest.mark.task("10.7")
def test_axes_that_were_kept_are_there_already():
    x = needs_gradient([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    check_node(SumBackward(x, (1,), True), [[1.0, 10.0]], [[[1.0, 10.0]] * 3], probe=which_spread)
    check_node(SumBackward(x, (0, 1), True), [[5.0]], [[[5.0, 5.0]] * 3], probe=which_spread)


@pytest.mark.task("10.7")
def test_a_sum_over_everything_or_over_several_axes_comes_back_at_once():
    x = needs_gradient(np.arange(12.0).reshape(2, 3, 2))
    check_node(SumBackward(x, (0, 1, 2), False), 5.0, [np.full((2, 3, 2), 5.0)], probe=which_spread)
    wanted = np.broadcast_to(np.array([[1.0], [10.0], [100.0]]), (2, 3, 2))
    check_node(SumBackward(x, (0, 2), False), [1.0, 10.0, 100.0], [wanted], probe=which_spread)
    wanted = np.broadcast_to(np.array([1.0, 10.0]), (2, 3, 2))
    check_node(SumBackward(x, (1, 2), False), [1.0, 10.0], [wanted], probe=which_spread)


@pytest.mark.task("10.7")
def test_the_node_of_a_sum_over_axes_keeps_float32():
    x = needs_gradient(np.float32([[1.0, 2.0], [3.0, 4.0]]))
    check_node(SumBackward(x, (0, 1), False), np.float32(5.0), [np.full((2, 2), 5.0)], probe=which_spread)


# 10.8 An operation of your own


@pytest.mark.task("10.8")
def test_hypot_gives_the_long_side_and_leaves_its_node_behind():
    x, y = needs_gradient([3.0, 5.0]), needs_gradient([4.0, 12.0])
    check_recorded(hypot_of(x, y), [5.0, 13.0], HypotBackward, (x, y), "hypot([3, 5], [4, 12])", probe=which_side)
    check_result(hypot_of(Tensor(3.0), Tensor(4.0)), 5.0, None, "hypot of the constants 3 and 4")


@pytest.mark.task("10.8")
def test_hypot_takes_numbers_and_broadcasts():
    x = needs_gradient([[3.0, 6.0]])
    for a, b, wanted, what in (
        (x, 8.0, [[73**0.5, 10.0]], "hypot([[3, 6]], 8)"),
        (8.0, x, [[73**0.5, 10.0]], "hypot(8, [[3, 6]])"),
        (x, np.array([[4.0], [8.0]]), [[5.0, 52**0.5], [73**0.5, 10.0]], "hypot([[3, 6]], [[4], [8]])"),
    ):
        out = hypot_of(a, b)
        check_result(out, wanted, out._grad_fn, what, probe=which_side)
    told = "A number takes the dtype of the Tensor beside it: as_tensor(x, like=y)."
    single, what = needs_gradient(np.float32([3.0])), "hypot of a float32 Tensor and 4"
    for out in (hypot_of(single, 4.0), hypot_of(4.0, single)):
        check_close(out.value, np.float32([5.0]), what, tolerance=1e-6, probe=lambda: told)


@pytest.mark.task("10.8")
def test_the_backward_of_hypot_shares_by_the_quotients_of_the_sides():
    x, y = needs_gradient([3.0, 5.0]), needs_gradient([4.0, 12.0])
    check_node(HypotBackward(x, y), [10.0, 26.0], [[6.0, 10.0], [8.0, 24.0]], probe=which_quotient)


@pytest.mark.task("10.8")
def test_the_backward_of_hypot_turns_and_undoes_broadcasting():
    x, y = needs_gradient([[3.0, 6.0], [3.0, 6.0], [3.0, 6.0]]), needs_gradient([4.0, 8.0])
    arrives = [[5.0, 10.0, 15.0], [10.0, 20.0, 30.0]]
    wanted = [[[3.0, 6.0, 9.0], [6.0, 12.0, 18.0]], [24.0, 48.0]]
    check_node(HypotBackward(x, y), arrives, wanted, probe=which_quotient)
    x, y = needs_gradient([[3.0, 0.0], [5.0, 8.0]]), needs_gradient([[4.0, 2.0], [12.0, 6.0]])
    arrives = [[5.0, 13.0], [1.0, 10.0]]
    wanted = [[[3.0, 5.0], [0.0, 8.0]], [[4.0, 12.0], [1.0, 6.0]]]
    check_node(HypotBackward(x, y), arrives, wanted, probe=which_quotient)


@pytest.mark.task("10.8")
def test_hypot_works_from_end_to_end():
    x, y = needs_gradient([[3.0], [8.0]]), needs_gradient([4.0, 6.0])
    nodes.sum(x.hypot(y) * np.array([[5.0, 0.0], [0.0, 10.0]])).backward()
    check_gradient_of(x, [[3.0], [8.0]], "y = hypot(x, y) weighted at x = [[3], [8]], y = [4, 6]")
    check_gradient_of(y, [4.0, 6.0], "y = hypot(x, y) weighted at x = [[3], [8]], y = [4, 6]", "y")


# The harder suite: python grader.py 10 --goal

PAIRS = [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ()), ((1,), (4, 1, 2))]
PAIRS += [
    ((4, 1, 2), (3, 1)),
    ((2, 2, 2), (2,)),
    ((2, 2), (2, 2, 2)),
    ((3, 1), (3, 3)),
    ((0, 3), (3,)),
    ((2, 0), (2, 1)),
]


@pytest.mark.goal
@pytest.mark.task("10.1")
def test_goal_a_graph_of_constants_is_no_graph():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    out = nodes.sum((x @ x + x * 2.0).exp() * nodes.abs(x), 1)
    check_result(out, (np.exp(x.value @ x.value + 2 * x.value) * x.value).sum(1), None, "an expression of constants")


@pytest.mark.goal
@pytest.mark.task("10.2")
def test_goal_sums_match_central_differences_however_they_broadcast():
    for a, b in PAIRS:
        check_central(lambda x, y: x + y + x, a, b, of="x + y + x")


@pytest.mark.goal
@pytest.mark.task("10.3")
def test_goal_products_match_central_differences_however_they_broadcast():
    for a, b in PAIRS:
        check_central(lambda x, y: x * y * x, a, b, of="x * y * x")


@pytest.mark.goal
@pytest.mark.task("10.4")
def test_goal_matrix_products_match_central_differences():
    for n, k, m in ((1, 1, 1), (2, 3, 4), (4, 3, 2), (3, 3, 3), (1, 5, 2), (2, 0, 3)):
        check_central(lambda a, b: a @ b, (n, k), (k, m), of="a @ b")
    check_central(lambda a, b: (a @ b) * (a @ b) - b @ a.T.T, (3, 3), (3, 3), of="(a @ b) * (a @ b) - b @ a")


@pytest.mark.goal
@pytest.mark.task("10.5")
def test_goal_a_chain_of_ten_thousand_nodes_keeps_its_gradient():
    x = needs_gradient(1.0)
    y = x
    for _ in range(10_000):
        y = made(1.0, (y,), slopes=(1.0,))
    y.backward()
    check_gradient_of(x, 1.0, "a chain of 10,000 nodes")


@pytest.mark.goal
@pytest.mark.task("10.5")
def test_goal_a_graph_whose_paths_nobody_can_count_is_walked_at_once():
    """Two hundred doublings: more paths than there are atoms."""
    x = needs_gradient(1.0)
    y = x
    for _ in range(200):
        y = made(1.0, (y, y), slopes=(0.5, 0.5))
    y.backward()
    check_gradient_of(x, 1.0, "x used twice, halved, two hundred times")


@pytest.mark.goal
@pytest.mark.task("10.6")
def test_goal_unbroadcast_matches_a_count_of_where_every_number_came_from():
    for small, other in PAIRS:
        shape = np.broadcast_shapes(small, other)
        gradient = np.asarray(np.random.default_rng(0).standard_normal(shape[::-1]))
        for one in (small, other):
            check_unbroadcast(gradient, one, summed_to(gradient, one))
    check_unbroadcast(np.ones((3, 4), np.float32), (1, 3), np.full((3, 1), 4.0, np.float32))


@pytest.mark.goal
@pytest.mark.task("10.7")
def test_goal_sums_over_every_axis_match_central_differences():
    for shape in ((), (1,), (4,), (2, 3), (2, 1, 3), (2, 2, 2), (0, 3)):
        single = range(-len(shape), len(shape))
        for axis in (None, (), *single, (0, -1) if len(shape) > 1 else None, tuple(range(len(shape)))):
            for keepdims in (False, True):
                check_central(
                    lambda x, axis=axis, keepdims=keepdims: nodes.sum(x, axis, keepdims) * 2.0,
                    shape,
                    of=f"sum(x, {axis}, {keepdims})",
                )


@pytest.mark.goal
@pytest.mark.task("10.8")
def test_goal_hypot_matches_central_differences_however_it_broadcasts():
    for a, b in PAIRS:
        check_central(lambda x, y: nodes.hypot(x, y + 3.0), a, b, of="hypot(x, y + 3)")
    x, y = needs_gradient([-3.0, -5.0]), needs_gradient([4.0, 0.0])
    check_node(HypotBackward(x, y), [10.0, 10.0], [[-6.0, -10.0], [8.0, 0.0]], probe=which_quotient)


@pytest.mark.goal
@pytest.mark.task("10.8")
def test_goal_a_whole_network_matches_central_differences():
    def network(x, w, b, v):
        hidden = (x @ w + b).exp()
        score = nodes.hypot(hidden, b) * nodes.abs(v) - nodes.max(hidden, 1, True)
        return (score @ v.T).T * nodes.sum(hidden * hidden, 0, True) @ nodes.min(x, 1, True)

    check_central(network, (2, 3), (3, 2), (2,), (1, 2), of="a network", scale=0.5)


# The checks of this chapter.


def needs_gradient(value) -> Tensor:
    return Tensor(value, requires_grad=True)


class Known(Backward):
    """A node that hands on what arrives times a number, or times an array that is turned already. It keeps a list."""

    def __init__(self, inputs, slopes):
        super().__init__(*inputs)
        self.slopes, self.arrived = slopes, []

    def backward(self, gradient):
        self.arrived.append(gradient.value)
        if self.slopes is SHARED:
            return [gradient for _ in self.input]
        return [None if slope is None else Tensor(gradient.value * slope) for slope in self.slopes]


SHARED = "the same array for every input"


def made(value, inputs, slopes) -> Tensor:
    """A result with a node whose slopes are known. No operation of the chapter is needed for it."""
    out = needs_gradient(value)
    out._grad_fn = Known(inputs, slopes)
    return out


def check_result(out, value, node, what, probe=None):
    """The result of an operation: its numbers, and the node that it keeps, or None for a constant."""
    if out is None:
        raise CheckFailed(f"{what} is None", "Nothing comes back: is there a return?")
    if not isinstance(out, Tensor):
        raise CheckFailed(f"{what} is of type {type(out).__name__}, expected a Tensor of nodes.py")
    check_close(out.value, np.asarray(value, out.value.dtype), f"{what}: its value", probe=probe)
    if bool(out.requires_grad) != (node is not None):
        message = f"{what}: requires_grad is {out.requires_grad}, expected {node is not None}"
        raise CheckFailed(message, ask(which_needs))
    if node is None and out._grad_fn is not None:
        message = f"{what}: it keeps a node, {type(out._grad_fn).__name__}, though no gradient is needed"
        raise CheckFailed(message, "A node is kept only where an input needs a gradient. Nobody would ask this one.")
    if node is not None and out._grad_fn is not node:
        message = f"{what}: _grad_fn is {out._grad_fn}, expected the node"
        told = "It needs a gradient, and has no node to ask for it: is out._grad_fn = node missing?"
        if out._grad_fn is not None:
            told = "The node itself is kept, not its class." * (out._grad_fn is type(node)) or None
        raise CheckFailed(message, told)


def check_recorded(out, value, kind, wanted, what, probe=None):
    """A result that needs a gradient: its numbers, and the node of its operation with its inputs."""
    check_result(out, value, getattr(out, "_grad_fn", None), what, probe)
    node = out._grad_fn
    if node is None:
        message = f"{what}: requires_grad is {out.requires_grad}, and there is no node"
        raise CheckFailed(message, "x and y need gradients: is the result recorded?")
    if type(node) is not kind or len(node.input) != len(wanted) or any(a is not b for a, b in zip(node.input, wanted)):
        found = f"a {type(node).__name__} with the inputs {', '.join(show(x.value) for x in node.input)}"
        told = f"Each operation leaves a node of its own kind behind: {kind.__name__}(x, y)."
        if type(node) is kind:
            turned = len(node.input) == 2 and node.input[::-1] == list(wanted)
            told = "x and y have changed places: a node keeps its inputs in the operation's order." * turned or None
        raise CheckFailed(f"{what}: its node is {found}, expected a {kind.__name__} with x and y", told)


HIDDEN = (
    "sum, max, min and abs are this file's own, for Tensors, and hide Python's: of arrays take np.sum, ..., else any()."
)


def recorded(value, node):
    try:
        with nothing_else_changes("recorded(value, node)", node=node, value=value):
            return nodes.recorded(value, node)
    except IndexError as error:
        if len(node.input) == 1:
            error.diagnosis = "A node may have one input, or three: ask all that are in the list node.input."
        raise
    except (TypeError, RecursionError) as error:
        if isinstance(error, RecursionError) or "generator" in str(error) or "'Tensor'" in str(error):
            error.diagnosis = HIDDEN
        raise


def hypot_of(x, y):
    try:
        return nodes.hypot(x, y)
    except (AttributeError, TypeError) as error:
        if str(error).startswith("type object"):
            error.diagnosis = "A class is no node yet: HypotBackward(x, y) makes one, which keeps its inputs."
        elif "'Tensor'" in str(error) and ("**" in str(error) or "loop of ufunc" in str(error)):
            error.diagnosis = (
                "A Tensor of this file has no power and no root. Compute with the arrays in .value, as the other "
                "operations do: the way back is the node's."
            )
        elif "has no attribute" in str(error):
            error.diagnosis = (
                "An operand may be a plain number or an array, which has no .value: as_tensor makes a Tensor of it."
            )
        raise


def check_node(node, arrives, wanted, names="xy", probe=None):
    """Ask a node and check what it returns for each input. Everything is transposed."""
    kind = type(node).__name__
    arrives, single = np.asarray(arrives), node.input[0].value.dtype
    at = ", ".join(f"{name} = {show(x.value)}" for name, x in zip(names, node.input))
    what = f"{kind}.backward at {at}, gradient {show(arrives)}:\n"
    look = first_that_tells(lambda: handed_on(node, arrives), probe)
    before = [x.value.copy() for x in node.input]
    shares = ask_node(node, arrives.copy(), what, look)
    for name, x, share, expected in zip(names, node.input, shares, wanted):
        if share is None and not x.requires_grad:
            continue
        if share is None:
            raise CheckFailed(f"{what}{name} needs a gradient and gets None", "None is for inputs that need none.")
        wanted_array = np.asarray(expected, single)
        if share.shape != x.shape[::-1] and share.shape == x.shape:
            message = f"{what}what {name} gets has shape {share.shape}, expected {x.shape[::-1]}"
            raise CheckFailed(message, ask(look) or "It has the shape of the input. Carried transposed, it is turned.")
        tolerance = 1e-9 if single == np.float64 else 1e-6
        check_close(share.value, wanted_array, f"{what}what {name} gets", tolerance=tolerance, probe=look)
    for name, x, old in zip(names, node.input, before):
        check_close(x.value, old, f"{what}after that, the value of {name}")
        if x.grad is not None:
            raise CheckFailed(f"{what}{name}.grad has been written to", "A node returns. The walk adds up and keeps.")
    for share, expected in zip(ask_node(node, arrives * arrives.dtype.type(-0.5), what, look), wanted):
        if share is not None:
            half = np.asarray(-0.5 * np.asarray(expected), single)
            check_close(share.value, half, f"{what}with -0.5 times that gradient, an input gets", tolerance=1e-6)


def ask_node(node, arrives, what, look) -> list:
    """What a node returns, as long as it is a list of Tensors."""
    gradient = Tensor(arrives)
    given = gradient.value.copy()
    shares = explained(lambda: node.backward(gradient), look)
    if not np.array_equal(given, gradient.value):
        message = f"{what}the node has changed the gradient itself: now it is {show(gradient.value)}"
        raise CheckFailed(message, "That array belongs to others too. Compute a new one from it.")
    if shares is None:
        wrote = any(x.grad is not None for x in node.input)
        told = "It writes into grad, as the rules of chapter 02 did. A node returns a list, and the walk adds up."
        raise CheckFailed(f"{what}it returns None", told if wrote else "Nothing comes back: is there a return?")
    if not isinstance(shares, list | tuple):
        told = "A node returns a list, with square brackets around the gradients, also where there is only one."
        raise CheckFailed(f"{what}it returns {kind_of(shares)}, expected a list", told)
    if len(shares) != len(node.input):
        message = f"{what}it returns a list of {len(shares)}, expected {len(node.input)}"
        raise CheckFailed(message, "There is one gradient for each input, in the order of self.input.")
    for share in shares:
        if share is not None and not isinstance(share, Tensor):
            told = "A gradient travels as a Tensor: wrap the array, Tensor(...)."
            raise CheckFailed(f"{what}the list holds {kind_of(share)}, expected Tensors", told)
    return shares


def handed_on(node, arrives):
    """With twice the gradient everything has to double."""
    once, twice = node.backward(Tensor(arrives)), node.backward(Tensor(2.0 * arrives))
    for one, two in zip(once, twice):
        if one is not None and np.any(one.value) and np.allclose(one.value, two.value):
            return "Twice the gradient makes no difference: what arrives is not multiplied in."
    return None


def walk(out, *gradient):
    """backward(), and that gradients are all that it changes."""
    before = [(x, set(vars(x)), x._grad_fn, x.value, x.value.copy()) for x in nodes.users_first(out)]
    explained(lambda: out.backward(*gradient), which_walk)
    for x, names, node, value, numbers in before:
        if x._grad_fn is not node:
            message = "after backward(), a tensor's _grad_fn is another one than before"
            raise CheckFailed(message, "The graph stays: the next backward() goes the same way.")
        if x.value is not value or not np.array_equal(value, numbers):
            message = f"after backward(), the value of a tensor is {show(x.value)}, and was {show(numbers)} before"
            raise CheckFailed(message, "backward() leaves the numbers as they are: only `grad` is new.")
        if set(vars(x)) != names:
            message = f"after backward(), a tensor has more than before: {', '.join(set(vars(x)) - names)}"
            raise CheckFailed(message, "What is only needed on the way belongs into a local name: here it would stay.")


def check_gradient_of(x, wanted, of, name="x"):
    """What a backward() has left in an input."""
    what = f"{of}:\n{name}.grad"
    wanted = np.asarray(wanted, x.value.dtype)
    if x.grad is None:
        raise CheckFailed(f"{what} is None, expected {show(wanted)}", ask(which_walk) or "Nothing has been kept there.")
    if not isinstance(x.grad, Tensor):
        raise CheckFailed(
            f"{what} is {kind_of(x.grad)}, expected a Tensor", "Wrap the array that is kept: Tensor(...)."
        )
    check_close(x.grad.value, wanted, f"{what}.value", probe=which_walk)


def check_unbroadcast(gradient, shape, wanted):
    given = gradient.copy()
    what = f"unbroadcast of a gradient of shape {gradient.shape} to an input of shape {shape}"
    try:
        found = explained(lambda: nodes.unbroadcast(gradient, shape), which_end)
    except AttributeError as error:
        if str(error).startswith("'Tensor' object has no attribute"):
            error.diagnosis = HIDDEN
        raise
    if isinstance(found, np.ndarray | np.floating):
        found = np.asarray(found)
    check_close(found, np.asarray(wanted, gradient.dtype), what, probe=which_end)
    check_close(gradient, given, f"{what}: afterwards the gradient it was given")


def check_central(function, *of_shapes, of, scale=1.0):
    """Every gradient against a central difference (step 1e-6, tolerance 1e-5), weighted with random numbers."""
    rng = np.random.default_rng(sum(map(len, of_shapes)))
    arrays = [np.asarray(scale * rng.standard_normal(shape)) for shape in of_shapes]
    tensors = [needs_gradient(array.copy()) for array in arrays]
    out = function(*tensors)
    weights = np.asarray(rng.standard_normal(out.shape))
    out.backward(Tensor(weights.T))
    for i, (x, array) in enumerate(zip(tensors, arrays)):
        numeric = np.empty_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [other.copy() for other in arrays]
                moved[i][place] += step
                ends.append(np.sum(weights * function(*map(Tensor, moved)).value))
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        shown = ", ".join(map(str, of_shapes))
        what = f"{of} of shapes {shown}:\nthe gradient of input {i + 1} (against a central difference)"
        check_close(x.grad.value, numeric, what, tolerance=1e-5)
        check_close(x.value, array, f"{of} of shapes {shown}:\nafter backward(), the value of input {i + 1}")


# Random programs, for both engines and for plain arrays.

NODES = {"sum": nodes.sum, "exp": nodes.exp, "hypot": nodes.hypot}
CLOSURES = {
    "sum": shapes.sum,
    "exp": activations.exp,
    "hypot": lambda x, y: activations.sqrt(x * x + y * y),  # chapters 02 to 04 have no hypot
}
ARRAYS = {"sum": lambda x, axis=None, keepdims=False: x.sum(axis=axis, keepdims=keepdims), "exp": np.exp}
ARRAYS["hypot"] = np.hypot


def inputs(seed) -> dict:
    rng = np.random.default_rng(seed)
    shapes = {"a": (2, 3), "b": (3, 2), "c": (3,), "d": (2, 1)}
    return {name: rng.uniform(0.2, 1.2, shape) * rng.choice([-1.0, 1.0], shape) for name, shape in shapes.items()}


def random_steps(seed) -> list:
    """Ten steps: the name of an operation, and the names of what it is applied to."""
    rng = np.random.default_rng(1000 + seed)
    shapes = {name: array.shape for name, array in inputs(seed).items()}
    steps = []
    while len(steps) < 10:
        kind, names = ["+", "*", "@", "sum", "exp", "hypot"][rng.integers(6)], list(shapes)
        x, y = names[rng.integers(len(names))], names[rng.integers(len(names))]
        if kind == "@":
            if len(shapes[x]) != 2 or len(shapes[y]) != 2 or shapes[x][1] != shapes[y][0]:
                continue
            shape, step = (shapes[x][0], shapes[y][1]), (kind, x, y)
        elif kind == "exp":
            shape, step = shapes[x], (kind, x)
        elif kind == "sum":
            if not shapes[x]:
                continue
            axis, keep = int(rng.integers(len(shapes[x]))), bool(rng.integers(2))
            shape, step = np.sum(np.zeros(shapes[x]), axis=axis, keepdims=keep).shape, (kind, x, axis, keep)
        else:
            try:
                shape, step = np.broadcast_shapes(shapes[x], shapes[y]), (kind, x, y)
            except ValueError:
                continue
        name = f"t{len(steps)}"
        shapes[name] = shape
        steps.append((name, *step))
    return steps


def run(steps, tensors, functions):
    """The sum of all results, each scaled so that none grows without end."""
    known, total = dict(tensors), None
    for name, kind, first, *rest in steps:
        x = known[first]
        if kind == "exp":
            out = functions["exp"](x * 0.2)
        elif kind == "sum":
            out = functions["sum"](x, *rest) * 0.5
        elif kind == "hypot":
            out = functions["hypot"](x, known[rest[0]] + 3.0) * 0.5
        else:
            y = known[rest[0]]
            out = x + y * 0.5 if kind == "+" else (x * y if kind == "*" else x @ y) * 0.5
        known[name] = out
        total = functions["sum"](out) if total is None else total + functions["sum"](out)
    return total


def written_out(steps) -> str:
    return "; ".join(
        f"{name} = {x} {kind} {rest[0]}" if kind in "+*@" else f"{name} = {kind}({', '.join(map(str, (x, *rest)))})"
        for name, kind, x, *rest in steps
    )


def who_is_right(steps, arrays, name, found, wanted):
    """Where the two engines differ, a central difference on plain arrays tells which of them is wrong."""

    def probe():
        numeric = np.empty_like(arrays[name])
        for place in np.ndindex(numeric.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = {key: array.copy() for key, array in arrays.items()}
                moved[name][place] += step
                ends.append(run(steps, moved, ARRAYS))
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        right = [np.allclose(one, numeric, rtol=1e-4, atol=1e-5) for one in (found, wanted)]
        if right == [False, True]:
            return "A central difference agrees with the closures of chapters 02 to 04: it is the nodes that are wrong."
        if right == [True, False]:
            return "A central difference agrees with the nodes: it is the closures of chapters 02 to 04 that are wrong."
        return None

    return probe


def summed_to(gradient, shape):
    """Send every number of a transposed gradient to the element of `shape` that it came from, and turn the result."""
    if not isinstance(shape, tuple):
        message = f"unbroadcast was called with {kind_of(shape)} in place of a shape such as (2, 3)"
        raise CheckFailed(message, "It takes an array, and the shape of the input that it is for: x.shape.")
    size = int(np.prod(shape))
    source = np.broadcast_to(np.arange(size).reshape(shape), gradient.shape[::-1])
    weights = gradient.T.ravel()
    return np.bincount(source.ravel(), weights=weights, minlength=size).reshape(shape).astype(gradient.dtype).T


def kind_of(thing):
    return f"an array of shape {thing.shape}" if isinstance(thing, np.ndarray) else f"a {type(thing).__name__}"


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def share_of(node, arrives, i=0):
    """What a node returns for one of its inputs."""
    return node.backward(Tensor(arrives))[i].value


def which_needs():
    found = []
    for needs in ((False, False), (False, True), (True, False), (True, True)):
        node = Backward(*[Tensor(1.0, one) for one in needs])
        found.append(bool(nodes.recorded(np.array(1.0), node).requires_grad))
    return {
        (False, False, False, True): "All inputs have to need a gradient here. One that does is enough.",
        (False, False, True, True): "Only the first input is asked whether it needs a gradient. One of them is enough.",
        (False, True, False, True): "Only the last input is asked whether it needs a gradient. One of them is enough.",
        (True, True, True, True): "Every result needs a gradient, one of constants too: the inputs have to be asked.",
        (False, False, False, False): "No result ever needs a gradient: requires_grad is False unless it is set.",
    }.get(tuple(found))


ONE, TWO = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[7.0, 11.0], [13.0, 17.0]])
V, UP = np.array([3.0, 5.0]), np.array([[1.0, 10.0], [100.0, 1000.0]])
NOT_UNDONE = "It still has the shape of the result: unbroadcast(..., shape) is missing."
TOO_EARLY = "unbroadcast takes a transposed gradient: turn the product first, and then send it there."
LAID_WRONG = (
    "A vector's numbers belong to the columns, and here they meet rows: turn what arrives, multiply in the layout of "
    "the result, and turn the product."
)


def pair_of(kind, x, y):
    return kind(needs_gradient(x), needs_gradient(y))


which_add = first_that_tells(
    which_formula(
        lambda: share_of(pair_of(AddBackward, ONE, TWO), UP),
        {
            "It has been turned. A gradient comes transposed and stays so.": UP.T,
            "The slope of a sum is 1: nothing is multiplied here.": UP * TWO.T,
            "The slope of a sum is 1. Here it is 2.": 2.0 * UP,
            "The slope of a sum is 1, for both terms. x gets the opposite.": -UP,
        },
    ),
    which_formula(
        lambda: share_of(pair_of(AddBackward, ONE, TWO), UP, 1),
        {"The slope of a sum is 1, for both terms. y gets the opposite.": -UP},
    ),
    lambda: exchanged(),
    which_formula(lambda: share_of(pair_of(AddBackward, ONE, V), UP, 1), {NOT_UNDONE: UP}),
    lambda: turned_for_nothing(),
)


def exchanged():
    found = pair_of(AddBackward, ONE, V).backward(Tensor(UP))
    if [one.shape for one in found] == [(2,), (2, 2)]:
        return "The two are exchanged: the first gradient is that of x, and has x's shape, turned."
    return None


def turned_for_nothing():
    found = []
    for shape in ((2, 2), (2, 3)):
        x = needs_gradient(np.zeros(shape))
        try:
            found.append(share_of(AddBackward(x, x), np.ones(shape[::-1])).shape == shape[::-1])
        except Exception:
            found.append(False)
    if found == [True, False]:
        return "unbroadcast is asked for a shape that was turned already: it takes x.shape as it is, and turns it."
    return None


which_mul = first_that_tells(
    which_formula(
        lambda: share_of(pair_of(MulBackward, ONE, TWO), UP),
        {
            "Each factor has got its own numbers: what belongs there is its partner's.": UP * ONE.T,
            "What arrives is transposed, and its partner is not. Bring both into one layout.": UP * TWO,
            "It was turned for the product, and not turned again after it.": UP.T * TWO,
            "What arrives is not turned before the product with the partner's numbers.": UP.T * TWO.T,
            "It is handed on as it is: the partner's numbers are missing.": UP,
            "@ is the product of matrices. Here number meets number, with *.": (UP.T @ TWO).T,
            "The result itself is multiplied in: the factor is the partner alone.": UP * ONE.T * TWO.T,
        },
    ),
    lambda: shapes_exchanged(MulBackward),
    which_formula(lambda: share_of(pair_of(MulBackward, ONE, V), UP), {LAID_WRONG: UP * V}),
    which_formula(
        lambda: share_of(pair_of(MulBackward, ONE, V), UP, 1),
        {
            NOT_UNDONE: (UP.T * ONE).T,
            TOO_EARLY: (UP.T * ONE).sum(axis=1),
            "What arrives is summed before the product. First the product, with all that arrives, and then the sum.": (
                UP.sum(axis=1) * ONE
            ).T,
        },
    ),
)


def shapes_exchanged(kind):
    """Does a matrix get what has a vector's shape, and the vector what has the matrix's?"""
    found = [share_of(pair_of(kind, ONE, V), UP, i).shape for i in (0, 1)]
    if found == [(2,), (2, 2)]:
        return "The shapes are exchanged: what x gets is brought to x.shape, whatever the partner's shape is."
    return None


which_matmul = first_that_tells(
    which_formula(
        lambda: share_of(pair_of(MatMulBackward, ONE, TWO), UP),
        {
            "a gets gradient @ b.T, the rule of 02.4, which is for a gradient that is not turned.": UP @ TWO.T,
            "a gets the right numbers, turned back. A gradient is returned as it is carried, transposed.": (TWO @ UP).T,
            "a gets gradient @ b: the two are the other way round.": UP @ TWO,
            "a gets b.T @ gradient: a transpose too many.": TWO.T @ UP,
            "a gets what belongs to b.": UP @ ONE,
            "a gets an elementwise product: the rule of @ is made of matrix products.": UP * TWO,
        },
    ),
    which_formula(
        lambda: share_of(pair_of(MatMulBackward, ONE, TWO), UP, 1),
        {
            "b gets a.T @ gradient, the rule of 02.4, which is for a gradient that is not turned.": ONE.T @ UP,
            "b gets the right numbers, turned back. A gradient is returned as it is carried, transposed.": (UP @ ONE).T,
            "b gets a @ gradient: the two are the other way round.": ONE @ UP,
            "b gets gradient @ a.T: a transpose too many.": UP @ ONE.T,
            "b gets what belongs to a.": TWO @ UP,
            "b gets an elementwise product: the rule of @ is made of matrix products.": UP * ONE,
        },
    ),
    which_formula(
        lambda: share_of(pair_of(MatMulBackward, ONE, TWO), UP),
        {"What arrives is turned back, and has to stay as it is: look at the shapes.": TWO @ UP.T},
    ),
)


def hands_on_what_arrived():
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    made(30.0, (p,), slopes=(5.0,)).backward()
    if x.grad is None:
        return "Nothing gets from y = 5 * p, p = 2 * x to x: what a node returns has to arrive at its inputs."
    if float(x.grad.value) == 2.0:
        return "In y = 5 * p with p = 2 * x, x gets 2 and not 10: a node is given what arrived at its own result."
    return None


def adds_up():
    x = needs_gradient(3.0)
    made(9.0, (x, x), slopes=(3.0, 3.0)).backward()
    if float(x.grad.value) == 3.0:
        return "In x * x one of two shares was overwritten by the other: what arrives at a tensor adds up."
    return None


def goes_on():
    """An input in the middle of the list, or one that nothing arrives at: do those behind it have their turn?"""
    x, y = needs_gradient(3.0), needs_gradient(4.0)
    made(7.0, (x, y), slopes=(1.0, 1.0)).backward()
    if (x.grad is None) != (y.grad is None):
        return "The walk ends at the first input: those behind it in the list have their turn too. Go on, no break."
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    made(9.0, (p, x), slopes=(None, 1.0)).backward()
    if x.grad is None:
        return "The walk ends where nothing has arrived: only that tensor is skipped. Go on with `continue`, no break."
    return None


def from_the_end():
    asked = []
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    y = made(30.0, (p,), slopes=(5.0,))
    p._grad_fn.backward = lambda gradient: asked.append("p") or [None]
    y._grad_fn.backward = lambda gradient: asked.append("y") or [gradient]
    y.backward()
    if asked == ["y"]:
        return "The list is gone through from its end: users_first has self in front already."
    return None


def handed_on_turned():
    x = needs_gradient(np.zeros((2, 3)))
    node = made(np.zeros((2, 3)), (x,), slopes=(1.0,))
    try:
        node.backward(Tensor(np.ones((3, 2))))
    except ValueError:
        return "A node is given what arrived, transposed as it came: only what is kept in grad is turned."
    return None


def waits():
    x = needs_gradient(3.0)
    a = made(6.0, (x,), slopes=(2.0,))
    made(42.0, (a, made(7.0, (a,), slopes=(1.0,))), slopes=(7.0, 6.0)).backward()
    if float(x.grad.value) < 26.0:
        return "In c = a * b with b = a + 1, `a` hands on what it has before `b` has reported. Users come first."
    if float(x.grad.value) > 26.0:
        return "In c = a * b with b = a + 1, `a` hands its gradient on more than once. Each tensor has its turn once."
    return None


def keeps_what_was_there():
    x = needs_gradient(3.0)
    for _ in range(2):
        made(6.0, (x,), slopes=(2.0,)).backward()
    if float(x.grad.value) == 2.0:
        return "The gradient that was there before is overwritten: a second backward() adds to it."
    return None


def starts_anew():
    x = needs_gradient(3.0)
    y = made(30.0, (made(6.0, (x,), slopes=(2.0,)),), slopes=(5.0,))
    y.backward()
    y.backward()
    if float(x.grad.value) > 20.0:
        return "In a second walk what the first one left in `grad` is handed on again. What arrives is kept apart."
    return None


def turns_back():
    x = needs_gradient(np.zeros((2, 3)))
    made(0.0, (x,), slopes=(np.ones((3, 2)),)).backward()
    if x.grad.value.shape == (3, 2):
        return "It is kept as it was carried. A tensor's grad has the tensor's own shape: turn it back."
    return None


def leaves_shares_alone():
    x, y = needs_gradient([1.0]), needs_gradient([1.0])
    made(8.0, (made([2.0], (x, y), SHARED), made([6.0], (x, y), (5.0, 1.0))), slopes=([1.0], [1.0])).backward()
    if y.grad is not None and float(y.grad.value[0]) != 2.0:
        return "A share that two inputs got was changed for one of them: += on an array changes it for everyone."
    return None


def passes_over_none():
    x, constant = needs_gradient(3.0), Tensor(5.0)
    made(15.0, (constant, x), slopes=(1.0, 5.0)).backward()
    try:
        made(15.0, (constant, x), slopes=(None, 5.0)).backward()
    except Exception:
        return "A node may return None for an input that needs no gradient: pass it over."
    return None


def begins_and_ends():
    """An input alone, then one below a result: the places where there is nothing yet."""
    x = needs_gradient(3.0)
    try:
        x.backward()
    except KeyError:
        return "`arrived` has no entry for self: it starts with what is given, {self: gradient.value}."
    except (AttributeError, TypeError) as error:
        told = str(error)
        if "NoneType" in told and ("input" in told or "backward" in told or "callable" in told):
            return "An input has no node, its _grad_fn is None: there the walk ends, and nobody is asked."
        if "NoneType" in told and x.grad is None:
            return "x.grad is None until something has arrived: add to it only where something is there already."
    try:
        made(6.0, (needs_gradient(3.0),), slopes=(2.0,)).backward()
    except KeyError:
        return "`arrived` has no entry yet for what nothing has arrived at: arrived.get(x, 0.0) is 0 there."
    try:
        p = made(6.0, (x,), slopes=(2.0,))
        made(9.0, (p, x), slopes=(None, 1.0)).backward()
    except KeyError:
        return "It may be that nothing arrives at a tensor in the list, as after None: skip it, it has no entry."
    return None


def keeps_on_the_way():
    x = needs_gradient(3.0)
    p = made(6.0, (x,), slopes=(2.0,))
    y = made(1.5, (p,), slopes=(0.25,))
    y.backward()
    kept = [one.grad is not None for one in (x, p, y)]
    return {
        (True, False, False): "Only inputs keep what has arrived. Here every tensor does, those with a node too.",
        (True, False, True): "What is computed on the way keeps nothing. Every tensor does, those with a node too.",
        (True, True, False): "The tensor that backward() starts at keeps nothing. What has arrived there is kept too.",
        (False, True, True): "Inputs keep nothing: what arrives is kept before the node is asked for, and not after.",
    }.get(tuple(kept))


which_walk = first_that_tells(
    begins_and_ends,
    passes_over_none,
    from_the_end,
    hands_on_what_arrived,
    goes_on,
    adds_up,
    waits,
    turns_back,
    starts_anew,
    keeps_what_was_there,
    leaves_shares_alone,
    handed_on_turned,
    keeps_on_the_way,
)

T = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
which_end = first_that_tells(
    which_formula(
        lambda: nodes.unbroadcast(UP, (2,)),
        {
            "It sums axes in front, as 02.5 does. In a transposed gradient the added ones stand at the end.": UP.sum(0),
            "The axis that broadcasting added is not summed.": UP,
            "The axis at the end is summed, but kept: it has to go.": UP.sum(axis=1, keepdims=True),
            "It takes the mean: a number that is used several times collects the sum.": UP.mean(axis=1),
            "It takes one of the copies: all of them have to be summed.": UP[:, 0],
            "All of it is summed: only what broadcasting has added or stretched is.": np.full(2, UP.sum()),
            "It takes the largest of the copies: all of them have to be summed.": UP.max(axis=1),
        },
    ),
    which_formula(
        lambda: nodes.unbroadcast(T, (2, 1)),
        {
            "The axis that was stretched is summed, and lost: keepdims=True keeps it.": T.sum(axis=0),
            "The axis that was stretched from size 1 is not summed.": T,
            "Size 1 is looked for in `shape`, and the axis is taken from what is turned: use `turned`.": T.sum(
                axis=1, keepdims=True
            ),
            "It takes the mean: a number that is used several times collects the sum.": T.mean(axis=0, keepdims=True),
            "The numbers are right, in the input's own shape: it is returned turned.": T.sum(axis=0)[:, None],
            "reshape cuts the line of numbers anew, so that numbers of different places are summed: sum along axes.": (
                T.reshape(1, 2, 3).sum(axis=-1)
            ),
        },
    ),
    lambda: found_in_shape(),
    lambda: by_number_of_axes(),
)


def by_number_of_axes():
    """For which inputs is it right? Each is a gradient's shape, turned, and the input's."""

    def right(big, small):
        gradient = np.arange(1.0, np.prod(big) + 1.0).reshape(big[::-1]) ** 2
        try:
            found = np.asarray(nodes.unbroadcast(gradient, small))
        except Exception:
            return False
        return found.shape == small[::-1] and np.allclose(found, summed_to(gradient, small))

    in_front, behind, added = right((2, 3), (1, 3)), right((2, 3), (2, 1)), right((2, 3), (3,))
    if in_front and added and not behind:
        return "Only axes at the end are summed. One that was stretched may stand in front of others: (2, 1) is (1, 2)."
    if in_front and behind and not added:
        return "With as many axes as the input has it is right. `turned` has no place for those that were added."
    if in_front and behind and added and not all(right((2, 3), small) for small in ((), (1,))):
        return "One added axis is summed, and two are not: there may be any number of them."
    if in_front and behind and added and not right((4, 2, 3), (2, 1)):
        return "With two axes it is right, with three it is not: there may be any number of them."
    return None


def found_in_shape():
    """Are axes of size 1 found where shape and turned shape say the same, and only there?"""
    if not np.allclose(nodes.unbroadcast(UP, (1, 1)), UP.sum()):
        return None
    try:
        nodes.unbroadcast(T, (2, 1))
    except Exception:
        return "Size 1 is looked for in `shape`, and the axis is taken from what is turned: use `turned`."
    return None


def axis_in_place():
    table = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    down, along = np.array([[1.0, 1.0], [10.0, 10.0]]), np.array([[1.0, 10.0], [1.0, 10.0]])
    first = share_of(SumBackward(table, (0,), False), np.array([1.0, 10.0]))
    second = share_of(SumBackward(table, (1,), False), np.array([1.0, 10.0]))
    if np.allclose(first, along) and np.allclose(second, down):
        return (
            "The axis comes back in the place that it has in x. Counted in what is turned, axis i is "
            "x.value.ndim - 1 - i."
        )
    if np.allclose(first, along) and np.allclose(second, along):
        if not comes_in_its_place():
            return "The two cases are exchanged: the axis has to come back where keepdims is False."
        return "The axis that was summed away does not come back, so NumPy makes one up in front, whichever it was."
    if np.allclose(first, 0.5 * down):
        return "It is divided, as in a mean. In a sum every number counts in full."
    return None


def comes_in_its_place():
    """With keepdims=True nothing has to come back."""
    try:
        found = share_of(SumBackward(needs_gradient(np.zeros((2, 2))), (1,), True), np.array([[1.0, 10.0]]))
        return np.allclose(found, [[1.0, 10.0], [1.0, 10.0]]) and found.shape == (2, 2)
    except Exception:
        return False


def not_stretched():
    """Is an axis back, and of size 1 still?"""
    if share_of(SumBackward(needs_gradient(np.zeros((2, 3))), (1,), False), np.array([1.0, 10.0])).shape == (1, 2):
        return "The axis is back, with size 1. Every number gets its own copy: stretch it to x.shape[::-1]."
    return None


def one_too_far():
    """Axis 1 of a table lands where axis 0 belongs, and axis 0 beyond the end."""
    table = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    if not np.allclose(share_of(SumBackward(table, (1,), False), np.array([1.0, 10.0])), [[1.0, 1.0], [10.0, 10.0]]):
        return None
    try:
        share_of(SumBackward(table, (0,), False), np.array([1.0, 10.0]))
    except Exception:
        return "The axis comes back one place too far on: axes count from 0, so axis i is x.value.ndim - 1 - i."
    return None


def several_axes():
    cube = needs_gradient(np.zeros((2, 3, 2)))
    share_of(SumBackward(cube, (1,), False), np.ones((2, 2)))
    try:
        share_of(SumBackward(cube, (0, 2), False), np.ones(3))
    except Exception:
        return "With one axis it is right. self.axis may name several: all of them come back."
    return None


def summed_again():
    table = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    if np.allclose(share_of(SumBackward(table, (1,), False), np.array([1.0, 10.0])), 11.0):
        return "What arrives is summed again. Each number gets what arrives at its own sum."
    return None


def kept_axes():
    table = needs_gradient([[1.0, 2.0], [3.0, 4.0]])
    share_of(SumBackward(table, (1,), False), np.array([1.0, 10.0]))
    try:
        found = share_of(SumBackward(table, (1,), True), np.array([[1.0, 10.0]]))
    except Exception:
        found = np.zeros(1)
    if found.shape != (2, 2) and not np.allclose(found, [[1.0, 10.0]]):
        return "With keepdims=True the axis is still in what arrives, and needs no second one."
    return None


IN_OWN_SHAPE = "It is brought to x.shape. Carried transposed, it has the shape x.shape[::-1]."
which_spread = first_that_tells(
    which_formula(
        lambda: share_of(SumBackward(needs_gradient([[1.0], [2.0]]), (0, 1), False), np.array(5.0)),
        {IN_OWN_SHAPE: [[5.0], [5.0]]},
    ),
    which_formula(
        lambda: share_of(SumBackward(needs_gradient([[2.0], [3.0]]), (0, 1), False), np.array(5.0)),
        {"The numbers of x are multiplied in. The slope of a sum is 1.": [[10.0, 15.0]]},
    ),
    not_stretched,
    axis_in_place,
    one_too_far,
    summed_again,
    kept_axes,
    several_axes,
)
which_side = which_formula(
    lambda: nodes.hypot(needs_gradient(3.0), needs_gradient(4.0)).value,
    {
        "The root is missing.": 25.0,
        "The sides are added. Their squares belong in the sum.": 7.0,
        "The squares are missing: the root is taken of the sum of the sides.": 7.0**0.5,
        "A minus stands where a plus belongs.": np.nan,
    },
)


def left_behind():
    x, y = needs_gradient(3.0), needs_gradient(4.0)
    node = nodes.hypot(x, y)._grad_fn
    if node is None:
        return "hypot leaves no node behind: is the result recorded?"
    if type(node) is not HypotBackward:
        return f"hypot leaves a {type(node).__name__} behind, expected a HypotBackward with x and y."
    return None


H = np.hypot(ONE, TWO)
which_quotient = first_that_tells(
    which_formula(
        lambda: share_of(pair_of(HypotBackward, 3.0, 4.0), np.array(10.0)),
        {
            "Each side has got the other one's quotient.": 8.0,
            "It is multiplied by the short side, and not divided by the long one.": 30.0,
            "It is divided by the square of the long side: the root takes one of them away.": 1.2,
            "It is twice too much: the 2 of the square and the 1/2 of the root cancel.": 12.0,
            "It is half of it: the 2 of the square and the 1/2 of the root cancel.": 3.0,
            "It is handed on as it is: the slope is missing.": 10.0,
            "It is divided by the long side, and not multiplied by the short one.": 2.0,
            "It is multiplied by the long side, and not divided.": 150.0,
        },
    ),
    which_formula(
        lambda: share_of(pair_of(HypotBackward, ONE, TWO), UP),
        {
            "What arrives is transposed, and the sides are not. Bring all into one layout.": UP * ONE / H,
            "It was turned for the product, and not turned again after it.": UP.T * ONE / H,
        },
    ),
    lambda: shapes_exchanged(HypotBackward),
    which_formula(
        lambda: share_of(pair_of(HypotBackward, ONE, V), UP, 1),
        {
            NOT_UNDONE: (UP.T * V / np.hypot(ONE, V)).T,
            TOO_EARLY: (UP.T * V / np.hypot(ONE, V)).sum(axis=1),
            LAID_WRONG: (UP * V / np.hypot(ONE, V).T).sum(axis=1),
        },
    ),
)
