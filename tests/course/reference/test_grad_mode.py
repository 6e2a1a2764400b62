"""Gradient modes of the reference: what is recorded, what is kept, what is refused; and the same beside PyTorch."""

import contextlib
import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

from meintorch import losses, matmul
from meintorch.grad_mode import GradMode, detach, enable_grad, is_grad_enabled, no_grad, retain_grad
from meintorch.layers import Linear, ReLU, Sequential
from meintorch.losses import cross_entropy
from meintorch.optim import SGD
from meintorch.tensor import Tensor, as_tensor, mode
from meintorch.training import DataLoader, evaluate, train_step

A, B = np.array([[0.5, 1.5], [2.0, 0.7]]), np.array([[1.2, 0.4], [0.9, 1.1]])
METHODS = "sum mean transpose exp log tanh relu max min sigmoid sqrt abs clip softmax log_softmax"
OPERATIONS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "negate": lambda x, y: -x,
    "**": lambda x, y: x**y,
    "** 2": lambda x, y: x**2,
    "@": lambda x, y: x @ y,
    "@ of vectors": lambda x, y: x.reshape(4) @ y.reshape(4),
    "dot": lambda x, y: matmul.dot(x.reshape(4), y.reshape(4)),
    "T": lambda x, y: x.T,
    **{name: lambda x, y, name=name: getattr(x, name)() for name in METHODS.split()},
    "mse_loss": lambda x, y: losses.mse_loss(x, y),
    "cross_entropy": lambda x, y: losses.cross_entropy(x, np.array([0, 1])),
    "hinge_loss": lambda x, y: losses.hinge_loss(x, np.array([[1, -1], [1, 1]])),
    "l2_penalty": lambda x, y: losses.l2_penalty([x, y], 0.1),
}


@pytest.fixture(autouse=True)
def at_rest():
    assert mode.recording
    yield
    assert mode.recording


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_no_operation_holds_on_to_anything_where_nothing_is_recorded(operation):
    expected = operation(Tensor(A), Tensor(B))
    assert expected.requires_grad
    with no_grad():
        x, y = Tensor(A), Tensor(B)
        out = operation(x, y)
    constant = operation(as_tensor(A), as_tensor(B))
    for one in (out, constant):
        np.testing.assert_array_equal(one.data, expected.data)
        assert not one.requires_grad
        assert one._children == ()
        with pytest.raises(RuntimeError, match="no graph to walk"):
            one.backward()
    watch = weakref.ref(x)
    x = None
    assert watch() is None  # no closure holds it


def test_a_constant_among_the_inputs_does_not_end_the_graph():
    x = Tensor([2.0])
    y = (as_tensor([3.0]) * as_tensor([5.0])) * x
    y.backward()
    np.testing.assert_array_equal(x.grad, [15.0])


def test_tensors_that_are_made_from_numbers_want_a_gradient_whatever_the_mode_is():
    with no_grad():
        layer = Linear(3, 2)
    assert len(layer.parameters()) == 2
    assert layer(np.ones((1, 3))).requires_grad


def test_blocks_nest_and_come_back_after_exceptions():
    assert is_grad_enabled()
    with no_grad():
        assert not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled()
            with contextlib.suppress(KeyError), no_grad():
                assert not is_grad_enabled()
                raise KeyError
            assert is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_a_block_inside_of_no_grad_is_differentiated_by_itself():
    x = Tensor([3.0])
    with no_grad():
        outside = x * x
        with enable_grad():
            y = outside * x
    y.backward()
    np.testing.assert_array_equal(x.grad, [9.0])


def test_every_thread_has_its_own_mode():
    seen = {}
    inside, checked = threading.Event(), threading.Event()

    def other():
        inside.wait(5)
        seen["other"] = is_grad_enabled()
        checked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with no_grad():
        inside.set()
        assert checked.wait(5)
    thread.join()
    assert seen == {"other": True}


def test_a_decorated_function_is_the_same_function_in_another_mode():
    @no_grad()
    def predict(x, *, twice=False):
        """What comes out."""
        assert not is_grad_enabled()
        return x * (2.0 if twice else 1.0)

    assert (predict.__name__, predict.__doc__) == ("predict", "What comes out.")
    assert not predict(Tensor([1.0]), twice=True).requires_grad
    assert isinstance(no_grad(), GradMode)


def test_evaluate_can_be_run_without_a_graph():
    rng = np.random.default_rng(0)
    model = Sequential(Linear(3, 4, rng=rng), ReLU(), Linear(4, 2, rng=rng))
    loader = DataLoader(rng.standard_normal((10, 3)), rng.integers(0, 2, 10), 4, shuffle=False)
    recorded = []

    def watched(scores, answers):
        recorded.append(scores.requires_grad)
        return cross_entropy(scores, answers)

    assert evaluate(model, watched, loader) == no_grad()(evaluate)(model, watched, loader)
    assert recorded == [True] * 3 + [False] * 3


def test_memory_stays_flat_over_a_thousand_forward_passes():
    model = Sequential(Linear(16, 16), ReLU(), Linear(16, 16))

    def grown(block) -> int:
        state = as_tensor(np.ones((4, 16)))
        with block:
            model(state)
            tracemalloc.start()
            for _ in range(1_000):
                state = model(state) * 0.01
            size = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        return size

    assert grown(no_grad()) < 20_000
    assert grown(enable_grad()) > 2_000_000


def test_a_detached_tensor_is_a_constant_that_shares_its_memory():
    x = Tensor(np.float32([2.0, 3.0]))
    y = x * x
    z = y.detach()
    assert np.shares_memory(z.data, y.data)
    assert (z.requires_grad, z._children, z.dtype) == (False, (), np.float32)
    assert y.requires_grad and y._children
    (y * z).backward(np.float32([1.0, 1.0]))
    np.testing.assert_array_equal(x.grad, np.float32([16.0, 54.0]))
    assert not z.grad.any()
    assert detach(as_tensor(1.0)).item() == 1.0


def test_only_leaves_and_retained_tensors_keep_their_gradient():
    x = Tensor([1.0])
    hidden = (x * 3.0).retain_grad()
    other = hidden * 2.0
    other.backward()
    np.testing.assert_array_equal(hidden.grad, [2.0])
    np.testing.assert_array_equal(x.grad, [6.0])
    np.testing.assert_array_equal(other.grad, [0.0])
    assert hidden._children == ()
    root = (x * 2.0).retain_grad()
    root.backward()
    np.testing.assert_array_equal(root.grad, [1.0])
    assert retain_grad(x) is x  # a leaf keeps its gradient anyway
    (x * 2.0).backward()
    np.testing.assert_array_equal(x.grad, [10.0])


def test_a_retained_tensor_holds_what_the_last_walk_brought():
    x = Tensor([1.0])
    hidden = retain_grad(x * 3.0)
    y = hidden * 2.0
    for _ in range(3):
        y.backward(keep_graph=True)
        np.testing.assert_array_equal(hidden.grad, [2.0])
    np.testing.assert_array_equal(x.grad, [18.0])


@pytest.mark.parametrize("make", [lambda: as_tensor([1.0]), lambda: as_tensor([1.0]) * 2.0])
def test_retaining_what_never_arrives_is_refused(make):
    with pytest.raises(RuntimeError, match="nothing to keep"):
        make().retain_grad()


@pytest.mark.parametrize("length", [2_000, 100_000])
@pytest.mark.parametrize("how", ["walked", "kept", "dropped"])
def test_a_long_chain_is_walked_and_goes_without_recursion(length, how):
    x, step = Tensor(1.0), Tensor(2.0)
    y = x
    for _ in range(length):
        y = y + step
    if how != "dropped":
        y.backward(keep_graph=how == "kept")
        assert (float(x.grad), float(step.grad)) == (1.0, length)
    del y
    gc.collect()


def test_a_constant_layer_input_costs_no_gradient_work():
    model = Linear(3, 2)
    images = as_tensor(np.ones((4, 3)))
    model(images).backward()
    assert images._grad is None
    train_step(model, lambda scores, answers: scores.sum(), SGD(model.parameters(), 0.1), np.ones((4, 3)), np.ones(4))


def test_a_backward_pass_gives_its_memory_back_as_it_goes():
    x = Tensor(np.ones(10_000))
    first = y = x * 1.0
    at_the_first = []
    rule = first._backward
    first._backward = lambda upstream: (at_the_first.append(tracemalloc.get_traced_memory()[0]), rule(upstream))
    del first
    tracemalloc.start()
    for _ in range(100):
        y = y.exp().log()
    forward = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    y.backward()
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.05 * forward
    assert at_the_first[0] < 0.05 * forward
    assert now < 0.05 * forward
    np.testing.assert_allclose(x.grad, 1.0)


# Beside PyTorch.


def test_modes_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = Tensor([2.0]), torch.tensor([2.0], requires_grad=True)
    found = []
    for x, off, on in ((ours, no_grad, enable_grad), (theirs, torch.no_grad, torch.enable_grad)):
        with off():
            a = x * x
            with on():
                b = x * a
            c = on()(lambda x=x: x * x)()
        d = off()(lambda x=x: x * x)()
        found.append([one.requires_grad for one in (a, b, c, d, a * a, b.detach(), a * x)])
    assert found[0] == found[1]


def test_gradients_of_leaves_and_retained_tensors_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    array = rng.standard_normal((3, 4))
    found = []
    for x in (Tensor(array), torch.tensor(array, requires_grad=True)):
        hidden = x * 3.0
        hidden.retain_grad()
        out = (hidden * hidden.detach() + hidden.exp() * x.detach()).sum()
        out.backward()
        found.append([np.asarray(x.grad), np.asarray(hidden.grad)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs)


def test_two_walks_are_refused_and_allowed_as_in_pytorch():
    torch = pytest.importorskip("torch")
    ours, theirs = Tensor([3.0]), torch.tensor([3.0], requires_grad=True)
    for x, keep in ((ours, {"keep_graph": True}), (theirs, {"retain_graph": True})):
        y = x * x
        y.backward(**keep)
        y.backward()
        with pytest.raises(RuntimeError):
            y.backward()
        with pytest.raises(RuntimeError):
            x.detach().backward()
    np.testing.assert_array_equal(ours.grad, theirs.grad.numpy())
