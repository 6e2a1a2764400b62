"""The edges of floating point: exact quotients, slopes at 0 and infinity, and nan, some of it beside PyTorch."""

import itertools
import math
import warnings

import numpy as np
import pytest

from meintorch.tensor import Tensor
from meintorch.value import Value
from tests.course.oracle.pytorch import torch

NUMBERS = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, math.inf, math.nan]
DTYPES = [np.float64, np.float32]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        yield


def side_by_side(function, *numbers, dtype=np.float64):
    """The result and the gradients of our function, and of PyTorch's."""
    ours = [Tensor(dtype([number])) for number in numbers]
    theirs = [torch.tensor(dtype([number]), requires_grad=True) for number in numbers]
    out, wanted = function(*ours), function(*theirs)
    out.backward()
    wanted.backward(torch.ones_like(wanted))
    found = [out.data[0], *(x.grad[0] for x in ours)]
    return found, [float(wanted[0].detach()), *(float(x.grad[0]) for x in theirs)]


@pytest.mark.parametrize("make", [Value, lambda x: Tensor([x]), lambda x: Tensor(np.float32([x]))])
@pytest.mark.parametrize("number", [49.0, 3.0, 10.0, 0.1])
def test_a_number_divided_by_itself_is_exactly_1(make, number):
    for quotient in (make(number) / number, make(number) / make(number), number / make(number)):
        assert float(quotient) == 1.0


def test_quotients_are_rounded_once():
    assert (Tensor([1e-310]) / 1e-310).item() == 1.0
    assert (Tensor([1e-310]) / Tensor([1e-310])).item() == 1.0
    numbers = np.arange(1.0, 200.0)
    np.testing.assert_array_equal((Tensor(numbers) / numbers).data, 1.0)
    np.testing.assert_array_equal((1.0 / Tensor(numbers)).data, 1.0 / numbers)
    assert Tensor(np.full(49, 49.0)).mean().item() == 49.0
    x = Tensor([1.0])
    (x / 49.0).backward([49.0])
    assert x.grad[0] == 1.0


def test_the_gradients_of_a_quotient_are_summed_down_to_both_shapes():
    a, b = Tensor(np.full((2, 1), 6.0)), Tensor([1.0, 2.0, 3.0])
    (a / b).backward()
    np.testing.assert_allclose(a.grad, [[11.0 / 6.0], [11.0 / 6.0]])
    np.testing.assert_allclose(b.grad, [-12.0, -3.0, -12.0 / 9.0])
    a, b = Value(6.0), Value(2.0)
    (a / b).backward()
    assert (a.grad, b.grad) == (0.5, -1.5)
    x = Value(3.0)
    (x / x).backward()
    assert x.grad == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_and_quotients_have_pytorchs_slopes_at_every_corner(dtype):
    for x, y in itertools.product(NUMBERS, NUMBERS):
        for function in (lambda x, y: x**y, lambda x, y: x / y):
            found, wanted = side_by_side(function, x, y, dtype=dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"at {x}, {y}")
        for function, at in ((lambda x, y=y: x**y, x), (lambda y, x=x: x**y, y)):
            found, wanted = side_by_side(function, at, dtype=dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"at {x}, {y}")


def test_the_exponents_slope_at_0_to_a_negative_power_is_minus_infinity():
    x, exponent = Tensor([0.0, 0.0, 0.0]), Tensor([-1.0, 0.0, 2.0])
    (x**exponent).backward()
    np.testing.assert_array_equal(exponent.grad, [-math.inf, 0.0, 0.0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "sqrt"])
def test_functions_have_pytorchs_slopes_at_every_corner(name, dtype):
    for x in [*NUMBERS, -math.inf, -40.0, 40.0, -80.0, 800.0]:
        found, wanted = side_by_side(lambda x: getattr(x, name)(), x, dtype=dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"at {x}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_small_share_of_sigmoid_keeps_its_digits(dtype):
    x = Tensor(dtype([-40.0]))
    small = x.sigmoid()
    np.testing.assert_allclose(small.data, math.exp(-40.0), rtol=1e-6)
    loss = -small.log()
    loss.backward()
    np.testing.assert_allclose([loss.item(), x.grad[0]], [40.0, -1.0], rtol=1e-6)
    assert small.dtype == dtype


def test_sigmoid_is_quiet_however_far_out():
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        x = Tensor([-800.0, 800.0, -1e300, math.inf, -math.inf])
        out = x.sigmoid()
        out.backward()
    np.testing.assert_array_equal(out.data, [0.0, 1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(x.grad, 0.0)


@pytest.mark.parametrize("row", [[1.0, math.nan, 3.0], [math.nan, math.nan], [math.inf, math.inf], [-math.inf, 1.0]])
def test_reductions_let_nan_and_infinity_through_as_pytorch_does(row):
    for name in ("max", "min", "sum", "mean"):
        ours, theirs = Tensor(row), torch.tensor(row, dtype=torch.float64, requires_grad=True)
        out = getattr(ours, name)()
        wanted = getattr(theirs, {"max": "amax", "min": "amin"}.get(name, name))()
        out.backward()
        wanted.backward()
        np.testing.assert_array_equal(out.data, wanted.detach().numpy())
        np.testing.assert_array_equal(ours.grad, theirs.grad.numpy())
    assert Tensor(row).argmax() == int(torch.tensor(row).argmax())
    assert Tensor(row).argmin() == int(torch.tensor(row).argmin())


def test_nan_is_not_hidden_by_relu_and_clip():
    for make in (Value, lambda x: Tensor([x])):
        assert math.isnan(float(make(math.nan).relu()))
    assert math.isnan(Tensor([math.nan]).clip(0.0, 1.0).item())


def test_the_zeroth_power_of_a_value_has_no_slope():
    for at in (0.0, 3.0, -2.0):
        x = Value(at)
        out = x**0
        out.backward()
        assert (out.data, x.grad) == (1.0, 0.0)
