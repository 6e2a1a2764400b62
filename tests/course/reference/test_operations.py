"""Every operation as a function, a method and an operator: they do the same, and their gradients are right."""

import builtins

import numpy as np
import pytest

import meintorch
from meintorch import activations, embedding, normalization, operators, shapes
from meintorch.matmul import dot, matmul
from meintorch.tensor import Tensor
from tests._helpers import check_gradient
from tests.course.oracle.pytorch import arrays, compare, torch

# For each: the function, what it takes (the first the tensor that the method belongs to), and PyTorch's.

MATRIX, POSITIVE, ROW, COLUMN = ((2, 3), False), ((2, 3), True), ((3,), False), ((3, 2), False)
OPERATIONS = {
    "add": (operators.add, [MATRIX, ROW], torch.add),
    "subtract": (operators.subtract, [MATRIX, ROW], torch.subtract),
    "multiply": (operators.multiply, [MATRIX, ROW], torch.multiply),
    "divide": (operators.divide, [MATRIX, POSITIVE], torch.divide),
    "negate": (operators.negate, [MATRIX], torch.negative),
    "power": (lambda x: activations.power(x, 3), [MATRIX], lambda x: x**3),
    "power of two tensors": (activations.power, [POSITIVE, ROW], torch.pow),
    "exp": (activations.exp, [MATRIX], torch.exp),
    "log": (activations.log, [POSITIVE], torch.log),
    "sqrt": (activations.sqrt, [POSITIVE], torch.sqrt),
    "abs": (activations.abs, [MATRIX], torch.abs),
    "clip": (lambda x: activations.clip(x, -0.5, 0.5), [MATRIX], lambda x: torch.clip(x, -0.5, 0.5)),
    "matmul": (matmul, [MATRIX, COLUMN], torch.matmul),
    "matmul of two vectors": (matmul, [ROW, ROW], torch.matmul),
    "matmul, vector left": (matmul, [ROW, COLUMN], torch.matmul),
    "matmul, vector right": (matmul, [MATRIX, ROW], torch.matmul),
    "dot": (dot, [ROW, ROW], torch.dot),
    "sum": (lambda x: shapes.sum(x, 0), [MATRIX], lambda x: x.sum(0)),
    "mean": (lambda x: shapes.mean(x, 1, True), [MATRIX], lambda x: x.mean(1, True)),
    "max": (lambda x: activations.max(x, 0), [MATRIX], lambda x: x.amax(0)),
    "min": (lambda x: activations.min(x, 1), [MATRIX], lambda x: x.amin(1)),
    "var": (lambda x: normalization.var(x, 0), [MATRIX], lambda x: x.var(0, correction=0)),
    "reshape": (lambda x: shapes.reshape(x, (3, 2)), [MATRIX], lambda x: x.reshape(3, 2)),
    "transpose": (shapes.transpose, [MATRIX], lambda x: x.T),
    "flatten": (lambda x: embedding.flatten(x, 0), [MATRIX], torch.flatten),
    "concatenate": (lambda *xs: embedding.concatenate(xs, 1), [MATRIX, POSITIVE], lambda *xs: torch.cat(xs, 1)),
    "stack": (lambda *xs: embedding.stack(xs, 1), [MATRIX, POSITIVE], lambda *xs: torch.stack(xs, 1)),
    "index": (lambda x: embedding.index(x, ([0, 0, 1], 2)), [MATRIX], lambda x: x[[0, 0, 1], 2]),
    "relu": (activations.relu, [MATRIX], torch.relu),
    "sigmoid": (activations.sigmoid, [MATRIX], torch.sigmoid),
    "tanh": (activations.tanh, [MATRIX], torch.tanh),
    "softmax": (lambda x: activations.softmax(x, 0), [MATRIX], lambda x: x.softmax(0)),
    "log_softmax": (lambda x: activations.log_softmax(x, -1), [MATRIX], lambda x: x.log_softmax(-1)),
}


def inputs_of(name):
    """Numbers away from every kink."""
    _, wanted, _ = OPERATIONS[name]
    found = arrays(*[shape for shape, _ in wanted], seed=7)
    return [np.abs(one) + 0.3 if positive else one for one, (_, positive) in zip(found, wanted)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_the_gradient_of_a_central_difference(name):
    check_gradient(OPERATIONS[name][0], *inputs_of(name), name=name, make=Tensor)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_has_the_gradient_of_pytorch(name):
    function, _, theirs = OPERATIONS[name]
    compare(lambda *xs: (function if isinstance(xs[0], Tensor) else theirs)(*xs), *inputs_of(name))


# The methods, written as a learner would; concatenate and stack take several tensors and are functions alone.
METHODS = {
    "add": lambda x, y: x.add(y),
    "subtract": lambda x, y: x.subtract(y),
    "multiply": lambda x, y: x.multiply(y),
    "divide": lambda x, y: x.divide(y),
    "negate": lambda x: x.negate(),
    "power": lambda x: x.power(3),
    "power of two tensors": lambda x, y: x.power(y),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sqrt": lambda x: x.sqrt(),
    "abs": lambda x: x.abs(),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "matmul": lambda x, y: x.matmul(y),
    "matmul of two vectors": lambda x, y: x.matmul(y),
    "matmul, vector left": lambda x, y: x.matmul(y),
    "matmul, vector right": lambda x, y: x.matmul(y),
    "dot": lambda x, y: x.dot(y),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1, True),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(1),
    "var": lambda x: x.var(0),
    "reshape": lambda x: x.reshape(3, 2),
    "transpose": lambda x: x.transpose(),
    "flatten": lambda x: x.flatten(0),
    "index": lambda x: x[[0, 0, 1], 2],
    "relu": lambda x: x.relu(),
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
}
OPERATORS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "negate": lambda x: -x,
    "power": lambda x: x**3,
    "power of two tensors": lambda x, y: x**y,
    "matmul": lambda x, y: x @ y,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_function_method_and_operator_of_an_operation_do_the_same(name):
    assert (name in METHODS) == (name not in ("concatenate", "stack"))
    found = []
    for form in (OPERATIONS[name][0], METHODS.get(name), OPERATORS.get(name)):
        if form is not None:
            inputs = [Tensor(one) for one in inputs_of(name)]
            out = form(*inputs)
            out.backward(arrays(out.shape, seed=1)[0])
            found.append([out.data, *(x.grad for x in inputs)])
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_no_operation_hides_one_of_pythons_in_the_package():
    assert not {"sum", "max", "min", "abs"} & {name for name in vars(meintorch) if hasattr(builtins, name)}
