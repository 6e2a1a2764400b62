"""Numbers worked out by hand, from the slope of x + x to the training of a network on the moons.

Each engine has to give them. Where a subject has a file of its own, only its numbers are here: test_grad_mode.py,
test_nodes.py, test_control.py, and test_random_programs.py for PyTorch's gradients.
"""

import math

import numpy as np
import pytest

import meintorch
from meintorch import embedding, losses, nodes, normalization, optim
from meintorch.grad_mode import enable_grad, no_grad
from meintorch.layers import Linear, ReLU, Sequential
from meintorch.mlp import MLP, hinge_loss
from meintorch.tensor import Tensor, as_tensor, unbroadcast
from meintorch.value import Value
from tests.course.oracle.pytorch import arrays, compare, torch

# Tensors and their gradients.


def test_gradients_of_three_walks_read_four_eight_and_four():
    x = Tensor([2.0])
    (x * x).backward()
    np.testing.assert_array_equal(x.grad, [4.0])
    (x * x).backward()
    np.testing.assert_array_equal(x.grad, [8.0])
    x.zero_grad()
    (x * x).backward()
    np.testing.assert_array_equal(x.grad, [4.0])


def test_a_retained_gradient_reads_two():
    x = Tensor([2.0])
    hidden = (x * 3).retain_grad()
    (hidden * 2).backward()
    np.testing.assert_array_equal(hidden.grad, [2.0])
    np.testing.assert_array_equal(x.grad, [6.0])


def test_tensors_inside_keep_no_gradient():
    x = Tensor([2.0])
    hidden = x * 3
    (hidden * 2).backward()
    np.testing.assert_array_equal(hidden.grad, [0.0])


def test_x_plus_x_has_slope_two():
    x = Tensor(5.0)
    (x + x).backward()
    assert float(x.grad) == 2.0


def test_a_product_hands_each_factor_the_other_one():
    a, b = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([10.0, 20.0])
    (a * b)._backward(np.ones((2, 2)))
    np.testing.assert_array_equal(a.grad, [[10.0, 20.0], [10.0, 20.0]])
    np.testing.assert_array_equal(b.grad, [4.0, 6.0])


def test_a_bias_of_three_numbers_collects_thirty_two_rows():
    activation, bias = Tensor(np.zeros((32, 3))), Tensor(np.zeros(3))
    (activation + bias).backward()
    np.testing.assert_array_equal(bias.grad, [32.0, 32.0, 32.0])


def test_predictions_without_gradients_have_no_graph():
    model, features = Sequential(Linear(3, 4), ReLU(), Linear(4, 1)), np.ones((2, 3))
    with no_grad():
        predictions = model(features)
        with enable_grad():
            recorded = model(features)
    assert (predictions._children, predictions.requires_grad) == ((), False)
    assert recorded.requires_grad
    assert recorded._children
    assert model(features).requires_grad
    np.testing.assert_array_equal(predictions.data, recorded.data)


def test_constants_alone_make_no_graph():
    out = as_tensor([1.0]) * as_tensor([2.0])
    assert (out._children, out.requires_grad) == ((), False)


# One Value per number, a network of them, and the same with arrays.


def test_tanh_of_a_times_b_plus_c():
    a, b, c = Value(0.5), Value(-2.0), Value(1.5)
    out = (a * b + c).tanh()
    out.backward()
    slope = 1.0 - math.tanh(0.5) ** 2
    assert out.data == pytest.approx(math.tanh(0.5))
    assert [a.grad, b.grad, c.grad] == pytest.approx([-2.0 * slope, 0.5 * slope, slope])


def test_difference_and_negation_are_made_of_sum_and_product():
    a, b = Value(3.0), Value(2.0)
    assert (a - b)._op == "+"
    assert (-b)._op == "*"


def test_a_mean_hinge_loss_with_its_penalty():
    """relu(1 - 2) and relu(1 + 0.5): 0 and 1.5, so 0.75, and 0.1 * (9 + 1) on top."""
    loss = hinge_loss([Value(2.0), Value(0.5)], [1, -1], [Value(3.0), Value(-1.0)], l2=0.1)
    assert loss.data == pytest.approx(1.75)


def network_of_tensors(values: MLP) -> Sequential:
    """The same network with arrays, from the same weights."""
    widths = [len(values.layers[0].neurons[0].weights), *(len(layer.neurons) for layer in values.layers)]
    linears = [Linear(widths[i], widths[i + 1]) for i in range(len(values.layers))]
    for linear, layer in zip(linears, values.layers):
        linear.weight.data[...] = np.array([[weight.data for weight in one.weights] for one in layer.neurons]).T
        linear.bias.data[...] = [one.bias.data for one in layer.neurons]
    return Sequential(*[part for linear in linears for part in (linear, ReLU())][:-1])


def loss_of_tensors(model, points, labels):
    scores = model(points).reshape(len(points))
    return losses.hinge_loss(scores, labels) + losses.l2_penalty(model.parameters(), 1e-4), scores.data


def falling(step: int) -> float:
    return 1.0 - 0.009 * step


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_a_network_on_the_moons_goes_from_a_guess_to_all_of_them_in_sixty_steps(seed):
    """Loss and share right before steps 0, 20 and 60: as good as a guess or worse, then 96 %, then all; as bands."""
    points, labels = meintorch.make_moons(100, seed=0)
    model = network_of_tensors(MLP(2, [16, 16, 1], seed=seed))
    optimizer, table = optim.SGD(model.parameters(), lr=1.0), {}
    for step in range(61):
        loss, scores = loss_of_tensors(model, points, labels)
        table[step] = loss.item(), np.mean((scores > 0.0) == (labels > 0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.lr = falling(step)
        optimizer.step()
    assert table[0][0] > 0.7
    assert table[0][1] <= 0.65
    assert table[20][0] < 0.2
    assert table[20][1] >= 0.9
    assert table[60][0] < 0.03
    assert table[60][1] >= 0.99


def test_values_and_tensors_take_the_same_steps():
    """So what one of the two engines learns in how many steps the other one does too."""
    points, labels = (one[::10] for one in meintorch.make_moons(100, seed=0))
    values = MLP(2, [16, 16, 1], seed=1)
    model = network_of_tensors(values)
    for step in range(5):
        parameters = values.parameters()
        loss = hinge_loss([values(point) for point in points.tolist()], labels.tolist(), parameters, 1e-4)
        wanted, _ = loss_of_tensors(model, points, labels)
        assert loss.data == pytest.approx(wanted.item(), rel=1e-9)
        for one in parameters:
            one.grad = 0.0
        for one in model.parameters():
            one.zero_grad()
        loss.backward()
        wanted.backward()
        for one in parameters + model.parameters():
            one.data -= falling(step) * one.grad


def test_a_vector_that_was_stretched_over_rows_collects_them():
    a, b = Tensor(np.ones((3, 4))), Tensor(np.ones(4))
    upstream = np.arange(12.0).reshape(3, 4)
    (a + b)._backward(upstream)
    np.testing.assert_array_equal(b.grad, [12.0, 15.0, 18.0, 21.0])
    np.testing.assert_array_equal(unbroadcast(upstream, (3, 1)), [[6.0], [22.0], [38.0]])


def test_a_stack_of_matrices_meets_one_weight_matrix():
    compare(lambda x, w: x @ w, *arrays((5, 2, 3), (3, 4)))


def test_the_rule_of_softmax_is_its_jacobian():
    (scores,), (upstream,) = arrays((4,)), arrays((4,), seed=1)
    x = Tensor(scores)
    s = x.softmax()
    s._backward(upstream)
    table = s.data[:, None] * (np.eye(4) - s.data)
    np.testing.assert_allclose(x.grad, upstream @ table, atol=1e-15)


def test_softmax_of_large_scores_is_that_of_shifted_ones():
    scores = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(Tensor(scores + 1000.0).softmax().data, Tensor(scores).softmax().data)


def test_a_lookup_layer_norm_the_logarithm_and_cross_entropy_of_a_few_numbers():
    table = Tensor(np.zeros((3, 2)))
    embedding.embed(table, [1, 1, 2]).backward()
    np.testing.assert_array_equal(table.grad, [[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]])
    row = normalization.layer_norm(Tensor([1.0, 3.0]), Tensor([1.0, 1.0]), Tensor([0.0, 0.0]), eps=0.0)
    np.testing.assert_allclose(row.data, [-1.0, 1.0])
    x = Tensor(2.0)
    x.log().backward()
    assert float(x.grad) == 0.5
    assert losses.cross_entropy(Tensor([[0.0, 0.0]]), [1]).item() == pytest.approx(math.log(2.0))


# What a Tensor is and has.


def test_the_derivative_of_x_squared_plus_x_is_seven_at_three():
    x = Tensor(3.0)
    y = x * x + x
    y.backward()
    np.testing.assert_allclose(x.grad, 7.0)


def test_gradients_of_a_matrix_product_have_the_shapes_of_its_inputs():
    a, b = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[5.0], [6.0]])
    (a @ b).backward()
    assert a.grad.shape == a.shape
    assert b.grad.shape == b.shape
    np.testing.assert_allclose(b.grad, [[4.0], [6.0]])
    np.testing.assert_allclose(a.grad, [[5.0, 6.0], [5.0, 6.0]])


def test_zero_grad_makes_zero():
    x = Tensor(3.0)
    (x * x).backward()
    assert float(x.grad) == 6.0
    x.zero_grad()
    np.testing.assert_allclose(x.grad, 0.0)


def test_a_new_tensor_has_float64_data_no_children_and_a_gradient_of_zeros():
    x = Tensor([[1, 2, 3]])
    assert x.data.dtype == np.float64
    assert (x._children, x._op) == ((), "")
    np.testing.assert_array_equal(x.grad, np.zeros((1, 3)))
    y = x * 2.0
    assert y._children[0] is x
    assert [one._op for one in (x + x, y, x @ x.T)] == ["+", "*", "@"]
    assert x._backward(np.ones((1, 3))) is None


def test_negation_difference_and_numbers_on_the_left_come_for_free():
    x = Tensor([1.0, 2.0])
    for out, slope in ((-x, -1.0), (x - 3.0, 1.0), (3.0 + x, 1.0), (3.0 * x, 3.0), (x - x * 2.0, -1.0)):
        x.zero_grad()
        out.backward()
        np.testing.assert_array_equal(x.grad, [slope, slope])


# The engine with nodes, modules, optimizers and parameters as a vector.


def test_a_tensor_of_the_nodes_starts_without_gradient_and_node():
    x = nodes.Tensor([1.0, 2.0], requires_grad=True)
    assert isinstance(x.value, np.ndarray)
    assert (x.requires_grad, x.grad, x._grad_fn) == (True, None, None)
    assert nodes.Tensor(1.0).requires_grad is False


def test_a_new_operation_takes_a_node_and_a_function_and_nothing_else():
    """The square root: its slope meets the gradient turned back, and the product goes on turned."""

    class SqrtBackward(nodes.Backward):
        def backward(self, gradient):
            (x,) = self.input
            return [nodes.Tensor((gradient.value.T * (0.5 / np.sqrt(x.value))).T)]

    def sqrt(x):
        return nodes.recorded(np.sqrt(x.value), SqrtBackward(x))

    (array,) = arrays((3, 4))
    x, theirs = nodes.Tensor(array**2 + 0.1, requires_grad=True), torch.tensor(array**2 + 0.1, requires_grad=True)
    root = sqrt(x)
    assert root._grad_fn.input == [x]
    assert root._grad_fn.backward(nodes.Tensor(np.ones((4, 3))))[0].shape == (4, 3)
    nodes.sum(root * root * root).backward()
    (torch.sqrt(theirs) ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.value, theirs.grad.numpy(), rtol=1e-12)
    assert sqrt(nodes.Tensor(array**2))._grad_fn is None


def test_a_result_that_is_no_single_number_needs_a_gradient_to_start_with():
    x = nodes.Tensor(np.ones((2, 3)), requires_grad=True)
    with pytest.raises(ValueError, match="one number"):
        (x * 2.0).backward()
    (x * 2.0).backward(nodes.Tensor(np.arange(6.0).reshape(3, 2)))
    np.testing.assert_array_equal(x.grad.value, [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]])


@pytest.mark.parametrize("name", ["argmax", "median", "diag", "var"])
def test_what_has_no_derivative_there_needs_no_gradient(name):
    out = getattr(nodes, name)(nodes.Tensor(np.ones((2, 2)), requires_grad=True))
    assert (out.requires_grad, out._grad_fn) == (False, None)


def test_modules_find_the_modules_and_parameters_in_their_attributes():
    model = Sequential(Linear(2, 3), ReLU(), Linear(3, 1))
    assert list(model.children()) == ["0", "1", "2"]
    assert [one.shape for one in model.parameters()] == [(2, 3), (3,), (3, 1), (1,)]


def test_an_optimizer_of_ones_own_takes_a_step_and_nothing_else():
    class Halving(optim.Optimizer):
        def step(self):
            for parameter in self.params:
                parameter.data -= self.lr * parameter.grad

    x = Tensor([1.0, 2.0])
    optimizer = Halving([x], lr=0.5)
    (x * 4.0).backward()
    optimizer.step()
    np.testing.assert_array_equal(x.data, [-1.0, 0.0])
    optimizer.zero_grad()
    np.testing.assert_array_equal(x.grad, [0.0, 0.0])
    for one in (optim.SGD, optim.Adam, optim.AdamW):
        assert one.zero_grad is optim.Optimizer.zero_grad


def test_a_jacobian_has_a_row_for_each_output_and_a_column_for_each_parameter():
    model = Sequential(Linear(2, 3), ReLU(), Linear(3, 2))
    assert meintorch.jacobian(model, np.ones((5, 2))).shape == (5 * 2, 17)


def test_a_vector_of_parameters_is_added_and_does_not_replace():
    model = Linear(2, 1)
    before = meintorch.vectorize_parameters(model)
    meintorch.devectorize_parameters(model, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(meintorch.vectorize_parameters(model), before + [1.0, 2.0, 3.0])
