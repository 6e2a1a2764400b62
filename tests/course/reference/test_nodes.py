"""The engine of chapter 10: its conventions, what it refuses, and that it hides nothing of Python's by accident."""

import ast
import builtins
import gc
import weakref

import numpy as np
import pytest

import meintorch
from grading.course import chapters as course
from grading.course.files import read_source
from meintorch import nodes, tensor
from meintorch.nodes import Tensor
from tests.course.oracle.pytorch import torch

SOURCE = read_source(course.REFERENCE / "nodes.py")


def needs_gradient(value) -> Tensor:
    return Tensor(value, requires_grad=True)


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]

# Every operation with a node, on inputs of different shapes wherever they may differ.
OPERATIONS = {
    "AddBackward": lambda x, row, w: x + row,
    "MulBackward": lambda x, row, w: row * x,
    "MatMulBackward": lambda x, row, w: x @ w,
    "SumBackward": lambda x, row, w: nodes.sum(x, 0),
    "HypotBackward": lambda x, row, w: nodes.hypot(x, row),
    "TransposeBackward": lambda x, row, w: x.T,
    "DivBackward": lambda x, row, w: x / [[2.0], [4.0]],
    "ExpBackward": lambda x, row, w: nodes.exp(x),
    "AbsBackward": lambda x, row, w: nodes.abs(x),
    "MaxBackward": lambda x, row, w: nodes.max(x, 1),
}
by_operation = pytest.mark.parametrize("name", OPERATIONS)


def result_of(name, needs=(True, True, True)):
    values = X, [1.0, -2.0, 3.0], np.ones((3, 4))
    return OPERATIONS[name](*[Tensor(value, one) for value, one in zip(values, needs)])


def test_every_node_is_looked_at_here():
    classes = {name for name, one in vars(nodes).items() if isinstance(one, type) and issubclass(one, nodes.Backward)}
    assert classes - {"Backward"} == set(OPERATIONS)


@by_operation
def test_a_node_has_the_name_of_its_operation_and_stores_its_input(name):
    out = result_of(name)
    assert type(out._grad_fn).__name__ == name
    assert f"grad_fn=<{name}>" in repr(out)
    assert isinstance(out._grad_fn.input, list)
    assert all(isinstance(x, Tensor) for x in out._grad_fn.input)


@by_operation
def test_gradients_are_taken_and_returned_transposed(name):
    out = result_of(name)
    gradient = Tensor(np.random.default_rng(0).standard_normal(out.shape[::-1]))
    before = gradient.value.copy()
    shares = out._grad_fn.backward(gradient)
    assert isinstance(shares, list)
    assert [share.shape for share in shares] == [x.shape[::-1] for x in out._grad_fn.input]
    np.testing.assert_array_equal(gradient.value, before)


@by_operation
def test_a_leaf_has_a_gradient_of_its_own_shape(name):
    out = result_of(name)
    out.backward(np.ones(out.shape[::-1]))
    for x in out._grad_fn.input:
        assert isinstance(x.grad, Tensor)
        assert x.grad.value.shape == x.value.shape
        assert not x.grad.requires_grad
    np.testing.assert_array_equal(out.grad.value, np.ones(out.shape))


@pytest.mark.parametrize("name", ["AddBackward", "MulBackward", "MatMulBackward", "HypotBackward"])
def test_an_input_that_needs_no_gradient_gets_none(name):
    for needs in ((True, False, False), (False, True, True)):
        node = result_of(name, needs)._grad_fn
        shares = node.backward(Tensor(np.ones(result_of(name).shape[::-1])))
        assert [share is not None for share in shares] == [x.requires_grad for x in node.input]


@by_operation
def test_constants_leave_no_node_behind(name):
    out = result_of(name, (False, False, False))
    assert not out.requires_grad
    assert out._grad_fn is None
    assert out.grad is None


@pytest.mark.parametrize(
    "function",
    [
        nodes.argmax,
        nodes.median,
        nodes.diag,
        nodes.var,
        lambda x: nodes.median(x, axis=0),
        lambda x: nodes.var(x, 1),
        lambda x: x > 1.0,
        lambda x: x >= x,
        lambda x: x < 3.0,
        lambda x: x <= np.ones(3),
    ],
)
def test_operations_without_a_derivative_give_constants(function):
    out = function(needs_gradient(X))
    assert isinstance(out, Tensor)
    assert out.requires_grad is False
    assert out._grad_fn is None


def test_the_names_of_pythons_builtins_are_functions_of_tensors_here_and_nowhere_else():
    for name in ("sum", "max", "min", "abs"):
        assert getattr(nodes, name) is not getattr(builtins, name)
        assert getattr(nodes, name).__module__ == "meintorch.nodes"
        assert not hasattr(meintorch, name)
    x = needs_gradient([[-1.0, 4.0], [3.0, -2.0]])
    assert [nodes.sum(x).value, nodes.max(x).value, nodes.min(x).value] == [4.0, 4.0, -2.0]
    np.testing.assert_array_equal(nodes.abs(x).value, [[1.0, 4.0], [3.0, 2.0]])
    np.testing.assert_array_equal(nodes.min(x, 1, keepdims=True).value, [[-1.0], [-2.0]])


def test_inside_the_file_a_builtin_of_that_name_is_never_meant():
    """Whatever calls sum, max, min or abs by its bare name there hands it a Tensor: only `min` does, and calls max."""
    called = {
        node.func.id for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Call) and hasattr(node.func, "id")
    }
    assert called & {"sum", "max", "min", "abs"} == {"max"}


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda x: Tensor("abc"), TypeError, "'abc' of type str"),
        (lambda x: Tensor(None), TypeError, "None"),
        (lambda x: Tensor([[1.0], [1.0, 2.0]]), ValueError, "differ in length"),
        (lambda x: Tensor(x), TypeError, r"its numbers are in \.value"),
        (lambda x: nodes.exp("abc"), TypeError, "'abc' of type str"),
        (lambda x: x + "abc", TypeError, "'abc' of type str"),
        (lambda x: "abc" * x, TypeError, "'abc' of type str"),
        (lambda x: nodes.hypot(x, "abc"), TypeError, "'abc' of type str"),
        (lambda x: x * tensor.Tensor(1.0), TypeError, r"its numbers are in \.data"),
        (lambda x: tensor.Tensor(1.0) * x, TypeError, r"its numbers are in \.value"),
        (lambda x: np.exp(x), TypeError, "ufunc"),
        (lambda x: x / x, TypeError, r"its numbers are in \.value"),
        (lambda x: x + np.ones(4), ValueError, r"\(2,3\) \(4,\)"),
        (lambda x: x @ x, ValueError, r"not \(2, 3\) and \(2, 3\)"),
        (lambda x: x @ np.ones(3), ValueError, r"not \(2, 3\) and \(3,\)"),
        (lambda x: nodes.sum(x, 2), ValueError, "axis 2 is out of bounds"),
        (lambda x: nodes.max(x, -3), ValueError, "axis -3 is out of bounds"),
        (lambda x: nodes.max(Tensor([])), ValueError, "zero-size"),
        (lambda x: x.backward(), ValueError, r"one number, not at shape \(2, 3\)"),
        (lambda x: (x * 2.0).backward(np.ones((2, 3))), ValueError, r"\(2, 3\).*carried transposed.*\(3, 2\)"),
        (lambda x: x.backward("abc"), TypeError, "'abc' of type str"),
        (lambda x: Tensor(1.0).backward(), ValueError, "needs no gradient"),
        (lambda x: nodes.argmax(x).backward(), ValueError, "needs no gradient"),
        (lambda x: nodes.var(x).backward(), ValueError, "needs no gradient"),
        (lambda x: bool(x > 1.0), ValueError, "ambiguous"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, named):
    with pytest.raises(error, match=named):
        call(needs_gradient(X))


@pytest.mark.parametrize(
    ("returns", "error", "named"),
    [
        (None, TypeError, r"OddBackward.backward has to return a list as long as self.input \(1\), not None"),
        ([], TypeError, "as long as self.input"),
        ([Tensor(1.0), Tensor(1.0)], TypeError, "as long as self.input"),
        ([np.ones((3, 2))], TypeError, "OddBackward: a gradient has to be a Tensor, and this is of type ndarray"),
        ([Tensor(X)], ValueError, r"OddBackward: .* \(2, 3\) .*carried transposed, it has shape \(3, 2\)"),
    ],
)
def test_a_node_that_returns_what_does_not_fit_is_named(returns, error, named):
    class OddBackward(nodes.Backward):
        def backward(self, gradient):
            return returns

    out = nodes.recorded(np.array(1.0), OddBackward(needs_gradient(X)))
    with pytest.raises(error, match=named):
        out.backward()


@by_operation
def test_float32_stays_float32(name):
    x, row, w = (needs_gradient(np.float32(one)) for one in (X, [1.0, -2.0, 3.0], np.ones((3, 4))))
    out = OPERATIONS[name](x, row, w) * 2.0 + np.ones(1)
    assert out.value.dtype == np.float32
    nodes.sum(out * out).backward()
    assert {one.grad.value.dtype for one in (x, row, w) if one.grad is not None} == {np.dtype(np.float32)}
    assert (x > 1.0).value.dtype == np.float32


def test_where_dtypes_meet_a_gradient_has_that_of_its_tensor():
    x, y = needs_gradient(np.float32([1.0, 2.0])), needs_gradient([3.0, 4.0])
    nodes.sum(x * y).backward()
    assert (x.grad.value.dtype, y.grad.value.dtype) == (np.float32, np.float64)


def test_no_two_tensors_share_a_gradient():
    x, y, gradient = needs_gradient([1.0, 2.0]), needs_gradient([3.0, 4.0]), np.array([1.0, 1.0])
    out = x + y
    out.backward(gradient)
    kept = [gradient, out.grad.value, x.grad.value, y.grad.value]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(kept) for b in kept[:i])
    x.grad.value += 5.0
    np.testing.assert_array_equal(y.grad.value, [1.0, 1.0])


def test_a_graph_is_gone_at_once_when_nobody_refers_to_it():
    x = needs_gradient(X)
    gc.disable()
    try:
        out = nodes.sum(nodes.exp(x) * x)
        inside = weakref.ref(out._grad_fn.input[0])
        out.backward()
        del out
        assert inside() is None
    finally:
        gc.enable()


def test_a_long_graph_is_walked_and_freed():
    x = needs_gradient(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.value == 1.0
    del y


def test_operators_work_on_either_side():
    x = needs_gradient([1.0, 2.0])
    for out, wanted in (
        (2 * x, [2.0, 4.0]),
        (np.array([3.0, 4.0]) * x, [3.0, 8.0]),
        (np.float64(1.0) - x, [0.0, -1.0]),
        (x - 1, [0.0, 1.0]),
        (-x, [-1.0, -2.0]),
        (x / 4, [0.25, 0.5]),
        (1 + x, [2.0, 3.0]),
        (np.ones((1, 1)) @ Tensor([[1.0, 2.0]], True), [[1.0, 2.0]]),
    ):
        assert isinstance(out, Tensor)
        assert out.requires_grad
        np.testing.assert_array_equal(out.value, wanted)


def test_functions_are_methods_too():
    x = needs_gradient(X)
    np.testing.assert_array_equal(x.exp().sum(0).value, nodes.sum(nodes.exp(x), 0).value)
    np.testing.assert_array_equal(x.transpose().value, x.T.value)
    assert x.argmax(axis=1).shape == (2,)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_equally_large_numbers_share_as_in_pytorch(axis):
    table = np.random.default_rng(0).integers(0, 2, (3, 4)).astype(float)
    ours, theirs = needs_gradient(table), torch.tensor(table, requires_grad=True)
    nodes.sum(nodes.max(ours, axis) * 2.0 - nodes.min(ours, axis)).backward()
    dims = (0, 1) if axis is None else axis
    (theirs.amax(dims) * 2.0 - theirs.amin(dims)).sum().backward()
    np.testing.assert_allclose(ours.grad.value, theirs.grad.numpy(), atol=1e-12)


def test_hypot_has_no_slope_where_both_sides_are_zero():
    x = needs_gradient([0.0, 3.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        nodes.sum(nodes.hypot(x, np.array([0.0, 4.0]))).backward()
    np.testing.assert_allclose(x.grad.value, [np.nan, 0.6])
