"""Numbers that were replaced between the way forward and the way back are found, and nothing else is complained of."""

import numpy as np
import pytest

from meintorch.embedding import concatenate, where
from meintorch.grad_mode import no_grad
from meintorch.layers import Linear, ReLU, Sequential
from meintorch.losses import cross_entropy
from meintorch.optim import SGD, Adam
from meintorch.tensor import Tensor, as_tensor
from meintorch.training import train_step

A, B = np.array([[0.5, 1.5], [2.0, 0.7]]), np.array([[1.2, 0.4], [0.9, 1.1]])


def bind(x):
    x.data = x.data + 1.0


def change(x):
    x.data -= 0.25


def step(x):
    x.grad = np.ones_like(x.data)
    SGD([x], 0.1).step()


READ_THE_INPUT = {
    "w * w": lambda w, c: w * w,
    "w * other": lambda w, c: w * Tensor(B),
    "other @ w": lambda w, c: Tensor(B) @ w,
    "stack @ w": lambda w, c: Tensor(np.ones((3, 2, 2))) @ w,
    "w @ w": lambda w, c: w @ w,
    "other / w": lambda w, c: Tensor(B) / w,
    "c / w": lambda w, c: c / w,
    "w / other": lambda w, c: w / Tensor(B),
    "log": lambda w, c: w.log(),
    "relu": lambda w, c: w.relu(),
    "abs": lambda w, c: w.abs(),
    "clip": lambda w, c: w.clip(1.0),
    "max": lambda w, c: w.max(1),
    "w ** 3": lambda w, c: w**3,
    "w ** other": lambda w, c: w ** Tensor(B),
    "2 ** w": lambda w, c: 2.0**w,
}
DO_NOT = {
    "w + w": lambda w, c: w + w,
    "w - other": lambda w, c: w - Tensor(B),
    "-w": lambda w, c: -w,
    "w * 2": lambda w, c: w * 2.0,
    "w * c": lambda w, c: w * c,
    "w / 2": lambda w, c: w / 2.0,
    "c @ w": lambda w, c: c @ w,
    "sum": lambda w, c: w.sum(0),
    "mean": lambda w, c: w.mean(),
    "reshape": lambda w, c: w.reshape(4),
    "T": lambda w, c: w.T,
    "[]": lambda w, c: w[0],
    "concatenate": lambda w, c: concatenate([w, w]),
    "where": lambda w, c: where(B > 1.0, w, 0.0),
    "exp": lambda w, c: w.exp(),
    "tanh": lambda w, c: w.tanh(),
    "sigmoid": lambda w, c: w.sigmoid(),
    "sqrt": lambda w, c: w.sqrt(),
    "softmax": lambda w, c: w.softmax(),
    "log_softmax": lambda w, c: w.log_softmax(),
    "cross_entropy": lambda w, c: cross_entropy(w, [0, 1]),
}


@pytest.mark.parametrize("replace", [bind, change, step])
@pytest.mark.parametrize("function", READ_THE_INPUT.values(), ids=READ_THE_INPUT)
def test_an_input_that_a_rule_reads_and_that_was_replaced_is_named(function, replace):
    w = Tensor(A.copy())
    out = function(w, as_tensor(B))
    replace(w)
    with pytest.raises(RuntimeError, match=r"Tensor of shape \(2, 2\).*Compute the result again, or step after"):
        out.backward()


@pytest.mark.parametrize("replace", [bind, change, step])
@pytest.mark.parametrize("function", DO_NOT.values(), ids=DO_NOT)
def test_an_input_that_a_rule_does_not_read_may_be_replaced(function, replace):
    wanted = Tensor(A.copy())
    function(wanted, as_tensor(B)).backward()
    w = Tensor(A.copy())
    out = function(w, as_tensor(B))
    replace(w)
    w.zero_grad()
    out.backward()
    np.testing.assert_array_equal(w.grad, wanted.grad)


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "softmax", "log_softmax", "max", "clip"])
def test_a_result_that_its_own_rule_reads_and_that_was_changed_is_named(name):
    out = getattr(Tensor(A), name)()
    change(out)
    with pytest.raises(RuntimeError, match=rf"the result of '{name}'"):
        out.backward()


def test_a_result_that_nobody_reads_may_be_replaced():
    for function in (lambda w: w + 1.0, lambda w: w * w, lambda w: w.log(), lambda w: w**3):
        w = Tensor(A)
        out = function(w)
        bind(out)
        out.backward()
        assert w.grad.any()


def test_a_constant_that_a_gradient_needs_is_watched_too():
    w, constant = Tensor(A), as_tensor(B.copy())
    out = w * constant
    change(constant)
    with pytest.raises(RuntimeError, match="given new numbers"):
        out.backward()


def test_a_step_between_two_backward_passes_is_found():
    """w * w and w * w * w share w: after a step the second one has lost its numbers."""
    w = Tensor([3.0])
    a, b = w * w, w * w * w
    a.backward()
    SGD([w], 0.1).step()
    with pytest.raises(RuntimeError, match=r"Tensor of shape \(1,\) that '\*' was computed from"):
        b.backward()


def test_a_graph_that_was_kept_is_walked_again_until_something_is_replaced():
    w = Tensor([3.0])
    out = w * w
    out.backward(keep_graph=True)
    Tensor([1.0]).data += 1.0  # some other one
    out.backward(keep_graph=True)
    np.testing.assert_array_equal(w.grad, [12.0])
    w.data = [5.0]
    with pytest.raises(RuntimeError, match="given new numbers"):
        out.backward(keep_graph=True)
    again = w * w
    again.backward()
    np.testing.assert_array_equal(w.grad, [22.0])


def test_a_rule_that_is_called_by_hand_is_watched_as_well():
    w = Tensor([3.0])
    out = w * w
    change(w)
    with pytest.raises(RuntimeError, match="given new numbers"):
        out._backward(np.ones(1))


def test_an_operation_that_nobody_knows_is_taken_to_read_its_inputs():
    w = Tensor([3.0])
    out = Tensor(w.data**3, (w,), "cube")
    out._backward = lambda upstream: setattr(w, "grad", w.grad + 3.0 * w.data**2 * upstream)
    out.backward(keep_graph=True)
    np.testing.assert_array_equal(w.grad, [27.0])
    change(w)
    with pytest.raises(RuntimeError, match="'cube'"):
        out.backward()


def test_what_was_walked_already_says_that_and_not_that_it_was_replaced():
    w = Tensor([3.0])
    out = (w * w).exp()
    out.backward()
    change(out)
    change(w)
    with pytest.raises(RuntimeError, match="already been through this graph"):
        out.backward()


def test_training_steps_are_not_disturbed():
    rng = np.random.default_rng(0)
    model = Sequential(Linear(3, 4, rng=rng), ReLU(), Linear(4, 2, rng=rng))
    for optimizer in (SGD(model.parameters(), 0.1, momentum=0.9), Adam(model.parameters())):
        for _ in range(3):
            train_step(model, cross_entropy, optimizer, rng.standard_normal((5, 3)), rng.integers(0, 2, 5))
    model.load_state_dict(model.state_dict())
    with no_grad():
        model.parameters()[0].data *= 0.5
    cross_entropy(model(np.ones((1, 3))), [0]).backward()


def test_what_is_given_as_data_is_checked_as_in_the_constructor():
    x = Tensor(np.float32([1.0, 2.0]))
    given = np.array([3.0, 4.0])
    x.data = given
    assert x.data is given
    x.data = [1, 2]
    assert x.dtype == np.float64
    x.data = 5
    assert x.shape == () and type(x.data) is np.ndarray
    y = x * x
    with pytest.raises(TypeError, match="'a'"):
        x.data = "a"
    y.backward()  # nothing was replaced
    assert x.grad == 10.0


def test_a_gradient_of_another_shape_or_dtype_goes_with_the_numbers_that_it_belonged_to():
    x = Tensor([1.0, 2.0])
    x.grad = np.ones(2)
    x.data = np.array([3.0, 4.0])
    np.testing.assert_array_equal(x.grad, [1.0, 1.0])
    x.data = np.float32([3.0, 4.0])
    assert x.grad.dtype == np.float32 and not x.grad.any()
    x.grad = np.ones(2, np.float32)
    x.data = np.ones(3)
    assert x.grad.shape == (3,)


@pytest.mark.parametrize("operation", [lambda x: x.sum(), lambda x: x + 1.0, lambda x: x.reshape(1, 3)])
@pytest.mark.parametrize("new", [np.zeros(5), np.zeros(3, np.float32)])
def test_another_shape_or_dtype_is_found_even_where_no_numbers_are_needed(operation, new):
    x = Tensor([1.0, 2.0, 3.0])
    y = operation(x)
    x.data = new
    with pytest.raises(RuntimeError, match="new numbers"):
        y.backward()
