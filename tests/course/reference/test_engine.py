"""The reference engine: what it refuses, what it converts, what it keeps apart."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import meintorch
from grading.course import chapters as course
from meintorch.data import make_moons
from meintorch.mlp import MLP, Neuron, hinge_loss
from meintorch.tensor import Tensor, as_tensor, unbroadcast
from meintorch.value import Value


def test_these_tests_look_at_the_reference():
    assert meintorch.__file__ == str(course.REFERENCE / "__init__.py")


def walked() -> Tensor:
    x = Tensor([1.0])
    (x * 2.0).backward()
    return x


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: Value("3"), TypeError, "'3' of type str"),
        (lambda: Value(1j), TypeError, "1j of type complex"),
        (lambda: Value(None), TypeError, "None"),
        (lambda: Value([1.0]), TypeError, r"\[1.0\] of type list"),
        (lambda: Value(np.array([1.0, 2.0])), TypeError, "ndarray"),
        (lambda: Value(2.0) ** Value(3.0), TypeError, r"Value\(3.0\)"),
        (lambda: Value(2.0) ** "3", TypeError, "'3'"),
        (lambda: Value(-2.0) ** 0.5, ValueError, r"-2.0 \*\* 0.5"),
        (lambda: Value(2.0) + "3", TypeError, "'3'"),
        (lambda: "3" * Value(2.0), TypeError, "'3'"),
        (lambda: Value(2.0) - [1], TypeError, r"\[1\]"),
        (lambda: Neuron(2)([1.0]), ValueError, "takes 2 inputs, not 1"),
        (lambda: hinge_loss([Value(1.0)], []), ValueError, "1 scores and 0 labels"),
        (lambda: hinge_loss([], []), ValueError, "0 scores"),
        (lambda: hinge_loss([Value(1.0)], [0]), ValueError, "not 0"),
        (lambda: Tensor("abc"), TypeError, "'abc' of type str"),
        (lambda: Tensor([[1, 2], [3]]), ValueError, r"\[\[1, 2\], \[3\]\]"),
        (lambda: Tensor(1j), TypeError, "1j of type complex"),
        (lambda: Tensor(np.array([1j])), TypeError, "array of complex128"),
        (lambda: Tensor(None), TypeError, "None"),
        (lambda: Tensor(Tensor(1.0)), TypeError, "not a Tensor"),
        (lambda: Tensor([1.0]) + "a", TypeError, "'a'"),
        (lambda: Tensor([1.0]) * [None], TypeError, r"\[None\]"),
        (lambda: Tensor([1.0, 2.0]).backward([1.0]), ValueError, r"shape \(2,\) got a gradient of shape \(1,\)"),
        (lambda: Tensor([1.0]).backward("a"), TypeError, "'a'"),
        (lambda: Tensor([1.0, 2.0]).item(), ValueError, r"shape \(2,\)"),
        (lambda: len(Tensor(1.0)), TypeError, "no length"),
        (lambda: Tensor(np.ones((2, 3))) @ Tensor(np.ones((2, 3))), ValueError, r"\(2, 3\) and \(2, 3\)"),
        (lambda: Tensor(np.ones(3)) @ Tensor(np.ones((2, 3))), ValueError, r"\(3,\) and \(2, 3\)"),
        (lambda: Tensor(np.ones(3)) @ Tensor(2.0), ValueError, r"\(3,\) and \(\)"),
        (lambda: Tensor([1.0]) ** "2", TypeError, "'2'"),
        (lambda: setattr(Tensor([1.0, 2.0]), "grad", np.ones(3)), ValueError, r"\(2,\) cannot have shape \(3,\)"),
        (lambda: setattr(Tensor([1.0]), "grad", np.ones(1, np.float32)), TypeError, "float64 Tensor cannot be float32"),
        (lambda: setattr(Tensor([1.0]), "grad", Tensor([1.0])), TypeError, "is a .data missing"),
        (lambda: setattr(walked(), "grad", None), TypeError, r"not a NoneType: zero_grad\(\)"),
        (lambda: np.exp(Tensor([1.0])), TypeError, "ufunc"),
        (lambda: np.dot(np.ones(2), Tensor([1.0, 2.0])), TypeError, "this is a Tensor"),
        (lambda: np.array([Tensor([1.0])]), TypeError, "this is a Tensor"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_numbers_of_every_kind_become_floats():
    for number in (2, True, np.int64(2), np.float32(2.0), np.float64(2.0)):
        assert type(Value(number).data) is float
    for data in (2, True, [1, 2], np.arange(3), np.float16([1.0]), np.uint8([1])):
        assert Tensor(data).dtype == np.float64
    assert Tensor(np.float32([1.0])).dtype == np.float32
    assert Tensor(np.float32(1.0)).dtype == np.float32
    assert type(Tensor(np.float64(1.0)).data) is np.ndarray


@pytest.mark.parametrize("make", [lambda: Tensor(np.float32([1.0, 2.0])), lambda: Tensor(np.float32(3.0))])
def test_float32_is_never_promoted(make):
    others = [2, 2.0, np.float64(2.0), np.array(2.0), np.ones(1), [1.0], True]
    for other in others:
        for operation in (
            lambda x, y: x + y,
            lambda x, y: y + x,
            lambda x, y: x - y,
            lambda x, y: y - x,
            lambda x, y: x * y,
            lambda x, y: y * x,
            lambda x, y: x / y,
        ):
            x = make()
            out = operation(x, other)
            assert isinstance(out, Tensor)
            assert out.dtype == np.float32
            out.backward()
            assert x.grad.dtype == np.float32
            assert x.grad.shape == x.shape


def test_reflected_operators_give_values_and_tensors():
    for two in (2, 2.0, np.float64(2.0), np.int64(2)):
        assert isinstance(two * Value(3.0), Value)
        assert (two - Value(3.0)).data == -1.0
        assert (two / Value(4.0)).data == 0.5
        assert isinstance(two * Tensor([3.0]), Tensor)
    product = np.array([1.0, 2.0]) * Tensor([3.0, 4.0])
    assert isinstance(product, Tensor)
    np.testing.assert_array_equal(product.data, [3.0, 8.0])
    assert (np.ones((1, 2)) @ Tensor([[1.0], [2.0]])).shape == (1, 1)


def test_a_gradient_reads_as_zeros_until_something_arrives():
    x = Tensor([[1.0, 2.0]])
    np.testing.assert_array_equal(x.grad, [[0.0, 0.0]])
    assert repr(x.grad) == "array([[0., 0.]])"
    with pytest.raises(ValueError, match="read-only"):
        x.grad[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        np.add.at(x.grad, (0, 0), 1.0)
    with pytest.raises(ValueError, match="read-only"):
        np.add(x.grad, 1.0, out=x.grad)
    np.testing.assert_array_equal(Tensor([[5.0, 6.0]]).grad, [[0.0, 0.0]])
    x.grad += 1.0
    x.grad += np.array([[1.0, 2.0]])
    np.testing.assert_array_equal(x.grad, [[2.0, 3.0]])
    np.testing.assert_array_equal(Tensor([[1.0, 2.0]]).grad, [[0.0, 0.0]])


def test_what_is_computed_from_a_gradient_that_is_not_there_is_an_ordinary_array():
    x = Tensor([1.0, 2.0])
    moved = x.data - 0.1 * x.grad
    assert type(moved) is np.ndarray
    moved += np.array([1.0, 1.0])
    np.testing.assert_array_equal(moved, [2.0, 3.0])
    own = x.grad.copy()
    own[0] = 5.0
    own += np.array([1.0, 1.0])
    np.testing.assert_array_equal(own, [6.0, 1.0])
    x.grad *= 3.0
    x.grad -= np.array([1.0, 2.0])
    x.grad /= 2.0
    np.testing.assert_array_equal(x.grad, [-0.5, -1.0])
    assert type(np.sum(Tensor([1.0, 2.0]).grad)) is np.float64


def test_no_two_tensors_share_a_gradient():
    upstream = np.array([1.0, 2.0])
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    (a + b)._backward(upstream)
    a.grad += 10.0
    np.testing.assert_array_equal(b.grad, [1.0, 2.0])
    np.testing.assert_array_equal(upstream, [1.0, 2.0])
    given = np.ones(2)
    a.grad = given
    a.grad += 1.0
    np.testing.assert_array_equal(given, [1.0, 1.0])


def test_a_gradient_of_another_dtype_that_is_added_is_cast():
    x = Tensor(np.float32([1.0, 2.0]))
    for _ in range(2):
        x.grad += np.array([1.0, 2.0])
    assert x.grad.dtype == np.float32


def test_constants_get_no_gradient_work():
    x, constant = Tensor([1.0, 2.0]), as_tensor([3.0, 4.0])
    (x * constant).backward()
    assert constant._grad is None
    np.testing.assert_array_equal(x.grad, [3.0, 4.0])
    assert as_tensor(x) is x
    assert as_tensor(1.0, like=Tensor(np.float32(1.0))).dtype == np.float32


@pytest.mark.parametrize("make", [lambda: Value(3.0), lambda: Tensor(np.ones(3))])
def test_a_graph_dies_by_reference_counting(make):
    gc.collect()
    gc.disable()
    try:
        x = make()
        middle = x * x
        result = middle + x
        watch = weakref.ref(middle)
        del middle
        result.backward()
        del result
        assert watch() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [Value, Tensor])
def test_a_chain_of_ten_thousand_needs_no_recursion(make):
    x = make(1.0)
    y = x
    for _ in range(10_000):
        y = y + 1.0
    y.backward()
    assert float(x.grad) == 1.0


def test_the_graph_is_let_go_of_unless_it_is_kept():
    x = Tensor(3.0)
    y = x * x
    z = y + 1.0
    z.backward(keep_graph=True)
    assert float(y.grad) == 1.0
    z = y + 1.0
    z.backward()
    assert z._children == ()
    with pytest.raises(RuntimeError, match="keep_graph=True"):
        z.backward()


def test_a_second_walk_through_a_kept_graph_adds_exactly_once_more():
    x = Tensor(3.0)
    y = x * x
    z = y + 1.0
    z.backward(keep_graph=True)
    z.backward(keep_graph=True)
    assert float(x.grad) == 12.0
    x.zero_grad()
    (y * 2.0).backward(keep_graph=True)
    (y * 5.0).backward()
    assert float(x.grad) == 42.0


def test_a_foreign_byte_order_is_converted():
    x = Tensor(np.array([1.0, 2.0], ">f4"))
    assert x.dtype == np.float32
    assert x.dtype.isnative
    (x * x).backward()
    np.testing.assert_array_equal(x.grad, np.float32([2.0, 4.0]))


def test_backward_works_on_empty_arrays_and_with_a_list():
    x = Tensor(np.ones((0, 3)))
    (x * x).backward()
    assert x.grad.shape == (0, 3)
    y = Tensor([1.0, 2.0])
    (y * y).backward([1, 10])
    np.testing.assert_array_equal(y.grad, [2.0, 40.0])


def test_unbroadcast_returns_its_input_where_the_shapes_agree():
    gradient = np.ones((2, 3))
    assert unbroadcast(gradient, (2, 3)) is gradient


def test_reprs_are_short():
    assert repr(Value(2.0)) == "Value(2.0)"
    assert repr(Tensor([[1.0, 2.5], [3.0, 4.0]])) == "Tensor([[1. , 2.5],\n        [3. , 4. ]])"
    assert repr(Tensor(np.float32(1.0))) == "Tensor(1., dtype=float32)"


def test_a_tensor_tells_its_shape():
    x = Tensor(np.ones((4, 3)))
    assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((4, 3), 2, 12, 4, np.float64)
    assert Tensor([[5.0]]).item() == 5.0


def test_a_network_of_values_has_337_parameters_and_starts_the_same_from_a_seed():
    one, other = MLP(2, [16, 16, 1], seed=1), MLP(2, [16, 16, 1], seed=1)
    assert len(one.parameters()) == 337
    assert [p.data for p in one.parameters()] == [p.data for p in other.parameters()]
    assert len(MLP(2, [3, 2])([1.0, 2.0])) == 2
    assert isinstance(MLP(2, [3, 1])([1.0, 2.0]), Value)


def test_the_moons_are_two_crescents_of_equal_size():
    points, labels = make_moons(101, noise=0.0)
    assert points.shape == (101, 2)
    assert (labels == 1).sum() == 50
    upper = points[labels == 1]
    np.testing.assert_allclose((upper**2).sum(axis=1), 1.0)
    np.testing.assert_array_equal(make_moons(10, seed=3)[0], make_moons(10, seed=3)[0])


def shares_nothing(*arrays) -> bool:
    return not any(np.shares_memory(one, other) for i, one in enumerate(arrays) for other in arrays[:i])


@pytest.mark.parametrize("keep_graph", [False, True])
def test_no_two_tensors_share_a_gradient_after_a_walk(keep_graph):
    """A sum hands the same array to both of its terms, and a walk copies only where that is needed."""
    a, b, seed = Tensor(np.ones((3, 3))), Tensor(np.ones((3, 3))), np.ones((3, 3))
    inner = a + b
    out = inner + a
    out.backward(seed, keep_graph=keep_graph)
    gradients = [a.grad, b.grad, seed, *([inner.grad, out.grad] if keep_graph else [])]
    assert shares_nothing(*gradients)
    a.grad *= 5.0
    np.testing.assert_array_equal(b.grad, np.ones((3, 3)))
    np.testing.assert_array_equal(a.grad, 10.0 * np.ones((3, 3)))


def test_a_retained_gradient_is_not_its_inputs():
    a = Tensor(np.ones(3))
    inner = a + 1.0
    inner.retains_grad = True
    (inner + 0.0).backward()
    assert shares_nothing(a.grad, inner.grad)


def test_a_rule_that_is_called_by_hand_leaves_the_upstream_array_alone():
    a, upstream = Tensor(np.ones(3)), np.ones(3)
    (a + 1.0)._backward(upstream)
    upstream[0] = 7.0
    np.testing.assert_array_equal(a.grad, np.ones(3))


def test_a_large_gradient_that_is_a_tensors_own_is_not_copied():
    x, w = Tensor(np.ones((1, 1000))), Tensor(np.ones((1000, 1000)))
    loss = x @ w
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert w.grad.nbytes < peak < 1.5 * w.grad.nbytes


def test_a_walk_that_ends_in_an_exception_leaves_no_trace():
    a = Tensor([1.0])
    out = a + 1.0

    def broken(upstream):
        raise ZeroDivisionError

    out._backward = broken
    with pytest.raises(ZeroDivisionError):
        out.backward()
    upstream = np.ones(1)
    (a + 1.0)._backward(upstream)
    assert shares_nothing(a.grad, upstream)


@pytest.mark.parametrize("keep_graph", [False, True])
def test_no_two_tensors_share_a_gradient_after_a_walk_through_new_shapes(keep_graph):
    """reshape hands on the array that arrived, in another shape, and transpose a view of it."""
    a, b, seed = Tensor(np.ones((2, 3))), Tensor(np.ones((3, 2))), np.ones(6)
    flat, turned = a.reshape(6), b.transpose().reshape(6)
    flat.retains_grad = True
    (flat + turned).backward(seed, keep_graph=keep_graph)
    gradients = [a.grad, b.grad, flat.grad, seed, *([turned.grad] if keep_graph else [])]
    assert shares_nothing(*gradients)
    flat.grad *= 5.0
    np.testing.assert_array_equal(a.grad, np.ones((2, 3)))
    a.grad *= 7.0
    np.testing.assert_array_equal(b.grad, np.ones((3, 2)))


def test_two_new_shapes_of_one_tensor_add_up():
    x = Tensor(np.ones((2, 3)))
    y = x * 1.0
    (y.reshape(6).reshape(3, 2).reshape(6) + y.reshape(6) * 10.0).backward(np.arange(6.0))
    np.testing.assert_array_equal(x.grad, 11.0 * np.arange(6.0).reshape(2, 3))


def test_a_large_gradient_is_not_copied_for_a_new_shape():
    x = Tensor(np.ones((1000, 1000)))
    loss = x.reshape(1_000_000).reshape(1000, 1000).sum()
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert x.grad.nbytes < peak < 1.5 * x.grad.nbytes


def test_a_retained_result_keeps_a_gradient_of_its_own():
    x = Tensor(np.ones((2, 3)))
    out = x.reshape(6)
    out.retains_grad = True
    out.backward()
    assert shares_nothing(x.grad, out.grad)


def test_a_gradient_lies_in_one_piece_and_can_be_written_to():
    one, table = Tensor([3.0]), Tensor(np.ones((2, 3)))
    one.sum().backward()
    (table.T * np.arange(6.0).reshape(3, 2)).transpose().sum().backward()
    for gradient in (one.grad, table.grad):
        assert gradient.flags.writeable and gradient.flags.c_contiguous
