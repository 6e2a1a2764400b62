"""Calls that cannot be meant: each gets an error that names what was given and says what to do instead."""

import datetime
import math
from fractions import Fraction

import numpy as np
import pytest

import meintorch
from meintorch.grad_mode import enable_grad, no_grad
from meintorch.mlp import MLP, Layer, Neuron
from meintorch.shapes import axes_of
from meintorch.tensor import Tensor
from meintorch.value import Value

TABLE = np.arange(6.0).reshape(2, 3)


def x() -> Tensor:
    return Tensor(TABLE)


def assign(target, key, value):
    target[key] = value


def unpack(first, second):
    return first, second


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        # What a Tensor is made of.
        (lambda: Tensor(10**400), ValueError, "1.8e308"),
        (lambda: Tensor([1, 10**400]), ValueError, "1.8e308"),
        (lambda: Tensor([1.5, 10**400]), ValueError, "1.8e308"),
        (lambda: Tensor([Tensor(1.0), Tensor(2.0)]), TypeError, r"stack\(\)"),
        (lambda: Tensor([[Tensor([1.0])], [Tensor([2.0])]]), TypeError, r"stack\(\)"),
        (lambda: Tensor(np.ma.array([1.0, 2.0], mask=[True, False])), TypeError, "masked array: fill it"),
        (lambda: Tensor(np.array([1, None], object)), TypeError, "array of object"),
        (lambda: Tensor([Value(1.0)]), TypeError, r"Value\(1.0\)"),
        (lambda: Tensor(datetime.date(2020, 1, 1)), TypeError, "of type date"),
        (lambda: Tensor(np.array(["2020"], "datetime64[Y]")), TypeError, "datetime64"),
        (lambda: Tensor({1.0}), TypeError, "of type set"),
        (lambda: Tensor(2, 3), TypeError, "one array, and after it .* not 3 of type int"),
        (lambda: Tensor([1.0], [2.0]), TypeError, "one array, and after it .* of type list"),
        (lambda: x() + None, TypeError, "None of type NoneType"),
        (lambda: x() / "a", TypeError, "'a' of type str"),
        (lambda: "a" / x(), TypeError, "'a' of type str"),
        (lambda: x() @ 3, ValueError, r"shapes \(2, 3\) and \(\)"),
        # Its numbers, its gradient.
        (lambda: setattr(x(), "data", Tensor(TABLE)), TypeError, "calculate with the array in it"),
        (lambda: setattr(x(), "data", None), TypeError, "None of type NoneType"),
        (lambda: setattr(x(), "grad", "a"), ValueError, r"cannot have shape \(\)"),
        (lambda: setattr(x(), "grad", [["a"] * 3] * 2), TypeError, "of type list"),
        (lambda: setattr(Tensor(1.0), "grad", 1j), TypeError, "1j of type complex"),
        (lambda: x().backward(x()), TypeError, "not a Tensor"),
        (lambda: x().item(), ValueError, r"shape \(2, 3\)"),
        (lambda: assign(x(), 0, 1.0), TypeError, r"write to x.data\[...\]"),
        # What it is not: a list, one number, something for NumPy's functions.
        (lambda: list(x()), TypeError, r"x\[i\] is a row"),
        (lambda: unpack(*x()), TypeError, "not iterable"),
        (lambda: sum(x()), TypeError, r"x.sum\(\)"),
        (lambda: bool(x()), ValueError, r"shape \(2, 3\) is ambiguous"),
        (lambda: bool(Tensor([])), ValueError, r"shape \(0,\) is ambiguous"),
        (lambda: float(x()), TypeError, r"float\(\) takes one number, and this Tensor has shape \(2, 3\)"),
        (lambda: int(Tensor([])), TypeError, r"int\(\) takes one number"),
        (lambda: f"{x():.3f}", TypeError, r"'.3f' takes one number"),
        (lambda: np.sum(x()), TypeError, r"numpy.sum takes arrays, and this is a Tensor: meintorch's own is x.sum\(\)"),
        (lambda: np.mean(x(), axis=0), TypeError, r"x.mean\(\)"),
        (lambda: np.max(x()), TypeError, r"x.max\(\)"),
        (lambda: np.argmax(x()), TypeError, r"x.argmax\(\)"),
        (lambda: np.concatenate([x(), x()]), TypeError, r"concatenate\(...\)"),
        (lambda: np.linalg.norm(x()), TypeError, "numpy.linalg.norm takes arrays"),
        (lambda: np.dot(TABLE, x()), TypeError, r"x.dot\(\)"),
        (lambda: (x() == x()).mean(), TypeError, "a.data == b.data"),
        (lambda: (x() != x()).sum(), TypeError, "a.data == b.data"),
        (lambda: np.mean(TABLE == x()), TypeError, "a.data == b.data"),  # noqa: SIM300
        (lambda: np.mean(x() == TABLE), TypeError, "a.data == b.data"),
        # Axes and shapes.
        (lambda: x().sum(axis=1.7), TypeError, "1.7"),
        (lambda: x().sum(True), TypeError, "True"),
        (lambda: x().sum(np.array([0.0])), TypeError, "not 0.0 of type float"),
        (lambda: x().mean("0"), TypeError, "'0'"),
        (lambda: x().max(Tensor(0.0)), TypeError, "Tensor"),
        (lambda: x().sum((0, None)), TypeError, "None"),
        (lambda: x().sum(2), IndexError, r"axis 2 is out of bounds for shape \(2, 3\)"),
        (lambda: x().mean(axis=7), IndexError, r"axis 7 is out of bounds for shape \(2, 3\)"),
        (lambda: x().mean(axis=-3), IndexError, "axis -3"),
        (lambda: x().min(axis=2), IndexError, "axis 2"),
        (lambda: Tensor(1.0).mean(0), IndexError, r"axis 0 is out of bounds for shape \(\)"),
        (lambda: x().sum((0, 0)), ValueError, r"\(0, 0\) names an axis of shape \(2, 3\) twice"),
        (lambda: x().mean((0, -2)), ValueError, "twice"),
        (lambda: x().max((1, -1)), ValueError, "twice"),
        (lambda: x().transpose(0), ValueError, r"shape \(2, 3\) is given all 2 axes"),
        (lambda: x().transpose(0, 0), ValueError, "twice"),
        (lambda: x().transpose(0, 2), IndexError, "axis 2"),
        (lambda: x().transpose(1.0, 0.0), TypeError, "1.0"),
        (lambda: x().reshape(4), ValueError, "size 6"),
        (lambda: x().softmax((0, 1)), TypeError, r"one axis, an integer, not \(0, 1\)"),
        (lambda: x().softmax(None), TypeError, "one axis"),
        (lambda: x().log_softmax((0, 1)), TypeError, "one axis"),
        (lambda: x().log_softmax(1.0), TypeError, "not 1.0"),
        (lambda: x().softmax(2), IndexError, "axis 2"),
        (lambda: x().argmax(1.7), TypeError, "1.7"),
        (lambda: x().argmax((0, 1)), TypeError, r"argmax goes along one axis"),
        (lambda: x().argmin(2), IndexError, "axis 2"),
        (lambda: Tensor([]).argmax(), ValueError, "empty"),
        # Functions of every number.
        (lambda: x().clip(3, 1), ValueError, "low <= high, not 3.0 and 1.0"),
        (lambda: x().clip(math.nan), ValueError, "nan"),
        (lambda: x().clip(0, math.nan), ValueError, "nan"),
        (lambda: x().clip("0"), TypeError, "'0' of type str"),
        (lambda: x().clip(Tensor(0.0)), TypeError, "of type Tensor"),
        (lambda: x().clip(None, np.ones(3)), TypeError, "of type ndarray"),
        (lambda: x() ** "2", TypeError, "'2'"),
        (lambda: meintorch.exp("a"), TypeError, "'a'"),
        # Values, and the network made of them.
        (lambda: Value(10**400), ValueError, "1.8e308"),
        (lambda: Value(Fraction(10**400)), ValueError, "1.8e308"),
        (lambda: Value(2.0) ** 10**400, ValueError, "1.8e308"),
        (lambda: Value(-8.0) ** np.float64(1 / 3), ValueError, r"-8.0 \*\* 0.333"),
        (lambda: Value(0.0) ** -1, ZeroDivisionError, "power"),
        (lambda: Value(1.0) / 0.0, ZeroDivisionError, "division"),
        (lambda: MLP(2, 3), TypeError, r"\[16, 16, 1\], not 3"),
        (lambda: MLP(2, "3"), TypeError, "not '3'"),
        (lambda: MLP(2, []), ValueError, "empty"),
        (lambda: MLP(2, [3, 0]), ValueError, "number of neurons is 1 or more, not 0"),
        (lambda: MLP(2, [3, 2.0]), TypeError, "number of neurons is an integer, not 2.0"),
        (lambda: MLP(0, [1]), ValueError, "number of inputs is 1 or more, not 0"),
        (lambda: Layer(2, 0), ValueError, "not 0"),
        (lambda: Layer(-1, 2), ValueError, "not -1"),
        (lambda: Neuron(2.0), TypeError, "not 2.0"),
        # Modes.
        (lambda: no_grad(1), TypeError, "@no_grad goes above a function or a method, and 1 is none"),
        (lambda: no_grad()(MLP), TypeError, "MLP"),
        (lambda: enable_grad(range), TypeError, "range"),
    ],
)
def test_a_call_that_cannot_be_meant_says_so(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_a_mode_needs_its_brackets_in_a_with_block():
    with pytest.raises(TypeError, match=r"`with no_grad\(\):`"), no_grad:
        raise AssertionError("the block does not run")


def test_what_begins_its_work_after_the_call_is_not_decorated():
    def numbers():
        yield 1

    async def later():
        return 1

    for lazy in (numbers, later):
        with pytest.raises(TypeError, match=rf"{lazy.__name__} only begins its work afterwards: put `with no_grad"):
            no_grad()(lazy)


def test_a_mode_decorates_without_brackets_too():
    @no_grad
    def predict(x):
        """What comes out."""
        return x * 2.0

    @enable_grad
    def train(x):
        return x * 2.0

    assert (predict.__name__, predict.__doc__) == ("predict", "What comes out.")
    assert not predict(x()).requires_grad
    with no_grad():
        assert train(x()).requires_grad


@pytest.mark.parametrize("axis", [(0, 1), [0, 1], (-2, 1), (1, 0), np.array([1, 0]), range(2), [np.int64(1), 0], None])
def test_axes_come_in_every_form_that_a_sequence_has(axis):
    for name, whole in (("sum", 15.0), ("mean", 2.5), ("max", 5.0), ("min", 0.0)):
        inputs = x()
        out = getattr(inputs, name)(axis, keepdims=True)
        assert out.shape == (1, 1) and out.item() == whole
        out.backward()
        assert inputs.grad.sum() == pytest.approx(6.0 if name == "sum" else 1.0)


@pytest.mark.parametrize("axis", [1, -1, np.int64(1), np.array(1), np.array([1]), [1], (-1,)])
def test_a_single_axis_comes_as_an_integer_of_any_kind(axis):
    np.testing.assert_array_equal(x().sum(axis).data, [3.0, 12.0])
    np.testing.assert_array_equal(x().max(axis).data, [2.0, 5.0])


def test_axes_keep_their_order_and_are_counted_from_the_front():
    assert axes_of([-1, 0], (2, 3)) == (1, 0)
    assert axes_of(np.int64(1), (2, 3)) == (1,)
    assert axes_of((), (2, 3)) == ()
    assert axes_of(None, (2,)) is None


@pytest.mark.parametrize("axes", [((0, 2, 1),), (0, 2, 1), (0, -1, 1), ([0, 2, 1],), (np.array([0, 2, 1]),)])
def test_the_axes_of_a_transpose_come_loose_or_together(axes):
    inputs = Tensor(np.arange(6.0).reshape(1, 2, 3))
    out = inputs.transpose(*axes)
    assert out.shape == (1, 3, 2)
    upstream = np.arange(6.0).reshape(1, 3, 2)
    out.backward(upstream)
    np.testing.assert_array_equal(inputs.grad, upstream.swapaxes(1, 2))
    assert Tensor([1.0, 2.0]).transpose(0).shape == (2,)
    assert inputs.transpose(axes=(2, 1, 0)).shape == (3, 2, 1)


def test_integers_beyond_numpys_are_numbers_all_the_same():
    assert Tensor(2**70).item() == 2.0**70
    np.testing.assert_array_equal(Tensor([2**70, 1, Fraction(1, 2)]).data, [2.0**70, 1.0, 0.5])
    assert (x() * 2**70).data[0, 1] == 2.0**70
    assert Value(2**70).data == 2.0**70


def test_one_number_can_be_taken_out_formatted_and_asked_for_its_truth():
    one = Tensor([[2.5]])
    assert (float(one), int(one), f"{one:.3f}", f"{one:>6.1f}") == (2.5, 2, "2.500", "   2.5")
    assert f"{one}" == str(one) == "Tensor([[2.5]])"
    assert [bool(Tensor(number)) for number in (0.0, [0.0], [2.0], math.nan)] == [False, False, True, True]
    value = Value(2.5)
    assert (float(value), f"{value:.3f}", f"{value}") == (2.5, "2.500", "Value(2.5)")
    assert [bool(Value(number)) for number in (0.0, -1.0)] == [False, True]


def test_numpy_gives_the_array_itself_and_argmax_numpys_integers():
    inputs = Tensor([[1.0, 5.0, 2.0], [7.0, 3.0, 7.0]])
    assert inputs.numpy() is inputs.data
    assert inputs.argmax() == 3 and isinstance(inputs.argmax(), np.integer)
    np.testing.assert_array_equal(inputs.argmax(1), [1, 0])
    np.testing.assert_array_equal(inputs.argmax(axis=-1, keepdims=True), [[1], [0]])
    np.testing.assert_array_equal(inputs.argmin(0), [0, 1, 0])
    assert inputs.argmax(1).dtype.kind == "i"


def test_equality_of_tensors_is_identity():
    a, b = x(), x()
    assert [bool(answer) for answer in (a == a, a == b, a != b, a != a)] == [True, False, True, False]
    assert a in [b, a] and b not in [a] and [a, b].index(b) == 1
    assert {a: 1, b: 2}[b] == 2 and len({a, b, a}) == 2
    assert repr(a == b) == "False"
    assert not hasattr(a == b, "__len__")


def test_shapes_can_be_asked_for_by_numpys_functions():
    assert (np.shape(x()), np.ndim(x()), np.size(x())) == ((2, 3), 2, 6)


def test_powers_take_arrays_and_signs_and_pythons_own_abs_are_there():
    np.testing.assert_array_equal((Tensor([2.0, 3.0]) ** np.array([2.0, 1.0])).data, [4.0, 3.0])
    base = Tensor([2.0, 3.0])
    abs(+base * -1.0).backward()
    np.testing.assert_array_equal(base.grad, [1.0, 1.0])


def test_a_search_in_a_tensor_says_what_to_write():
    with pytest.raises(TypeError, match=r"\(x.data == 2.0\).any\(\)"):
        assert 2.0 in Tensor([1.0, 2.0])
