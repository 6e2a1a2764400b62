"""Every function of chapters 03 and 04 equals PyTorch's in value and gradient, to 1e-6 in float64.

Left out, because there is no one right gradient or the two libraries differ in what they take:

- kinks: relu, abs and clip where a number lies exactly on one (random numbers do not); sqrt at 0
- ties in max and min, where any split of the gradient is right
- a negative base with a tensor as exponent (nan in both), and 0 ** exponent
- max, min, softmax and log_softmax along an axis of size 0: an error here, as in NumPy
- dot of two stacks, which PyTorch does not have: compared with tensordot
"""

import numpy as np
import pytest

from meintorch import activations, matmul
from tests.course.oracle.pytorch import SHAPES as PAIRS
from tests.course.oracle.pytorch import arrays, compare, torch

SHAPES = [(), (1,), (4,), (2, 3), (2, 1, 3), (1, 1), (0,), (0, 3), (3, 0), (2, 0, 3), (2, 3, 4), (2, 1, 3, 2)]
FULL = [shape for shape in SHAPES if 0 not in shape]


def positive(array):
    return np.abs(array) + 0.2


def spread(array):
    """The same shape in layouts that are not one piece of memory: every other row, turned around, by columns."""
    if array.ndim == 0:
        return [array]
    return [array, np.repeat(array, 2, axis=0)[::2], array[..., ::-1], array.T.copy().T]


def axes_for(shape):
    """Every way to name axes: None, each one from both ends, none of them, the first and last, all."""
    single = list(range(-len(shape), len(shape)))
    several = [(0, -1)] if len(shape) > 1 else []
    return [None, (), *single, *several, tuple(range(len(shape)))]


def dims(x, axis):
    return tuple(range(x.ndim)) if axis is None else axis


def cases(shapes):
    return [(shape, axis, keepdims) for shape in shapes for axis in axes_for(shape) for keepdims in (False, True)]


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "relu", "sqrt", "abs", "sigmoid"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_of_one_number_agree(name, shape):
    (array,) = arrays(shape)
    for one in spread(positive(array) if name in ("log", "sqrt") else array):
        compare(lambda x: getattr(x, name)(), one)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_clip_agrees(shape):
    for one in spread(*arrays(shape)):
        for low, high in ((-0.5, 0.5), (None, 0.3), (-0.2, None)):
            compare(lambda x, low=low, high=high: x.clip(low, high), one)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("exponent", [3, 2.0, 1, 0, -1, 0.5, -1.5])
def test_powers_with_a_number_agree(shape, exponent):
    (array,) = arrays(shape)
    for one in spread(array if exponent == int(exponent) else positive(array)):
        compare(lambda x: x**exponent, one)
    compare(lambda x: 2.0**x, array)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_powers_and_quotients_of_tensors_agree_on_every_way_to_broadcast(a, b):
    base, other = arrays(a, b)
    compare(lambda x, y: x**y, positive(base), other)
    compare(lambda x, y: x / y, base, positive(other))
    compare(lambda x, y: x / y, base.T.copy().T, -positive(other))
    compare(lambda x: 2.0 / x + 1.0 / (x * x), positive(base))


@pytest.mark.parametrize(("shape", "axis", "keepdims"), cases(SHAPES))
def test_sums_and_means_agree(shape, axis, keepdims):
    for one in spread(*arrays(shape)):
        # PyTorch takes an empty tuple of axes for all of them, NumPy for none.
        if axis == ():
            compare(lambda x: x.sum(axis, keepdims) if isinstance(x, activations.Tensor) else x * 1.0, one)
        else:
            compare(summed("sum", axis, keepdims), one)
            if one.size:
                compare(summed("mean", axis, keepdims), one)


def summed(name, axis, keepdims):
    def function(x):
        if isinstance(x, activations.Tensor):
            return getattr(x, name)(axis, keepdims)
        return getattr(x, name)(dim=dims(x, axis), keepdim=keepdims) if x.ndim else x * 1.0

    return function


@pytest.mark.parametrize(("shape", "axis", "keepdims"), cases(FULL))
@pytest.mark.parametrize("name", ["max", "min"])
def test_largest_and_smallest_agree(name, shape, axis, keepdims):
    def function(x):
        if isinstance(x, activations.Tensor):
            return getattr(x, name)(axis, keepdims)
        if not x.ndim or axis == ():
            return x * 1.0
        return getattr(torch, f"a{name}")(x, dim=dims(x, axis), keepdim=keepdims)

    for one in spread(*arrays(shape)):
        if one.size == np.unique(one).size:
            compare(function, one)


def test_largest_and_smallest_of_an_empty_batch_agree():
    (array,) = arrays((0, 3))
    compare(lambda x: x.max(1) if isinstance(x, activations.Tensor) else torch.amax(x, 1), array)
    compare(lambda x: x.min(1, True) if isinstance(x, activations.Tensor) else torch.amin(x, 1, keepdim=True), array)


def test_equally_large_numbers_share_as_in_amax():
    table = np.random.default_rng(0).integers(0, 2, (3, 4)).astype(float)
    for axis in (0, 1):
        compare(lambda x, axis=axis: x.max(axis) if isinstance(x, activations.Tensor) else torch.amax(x, axis), table)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [*FULL, (0, 3), (2, 0, 3)], ids=str)
def test_softmax_and_its_logarithm_agree_along_every_axis(name, shape):
    for axis in range(-len(shape), len(shape)) if shape else (-1,):
        if shape and shape[axis] == 0:
            continue
        for one in spread(*arrays(shape)):
            for scale in (1.0, 50.0, 1e4):
                compare(lambda x, axis=axis: getattr(x, name)(axis), one * scale)


def test_softmax_and_its_logarithm_agree_where_a_score_is_minus_infinity():
    scores = np.array([[0.0, -np.inf, 1.0], [-np.inf, 2.0, -np.inf]])
    compare(lambda x: x.softmax(-1), scores)
    (array,) = arrays((2, 2))
    compare(lambda x: (x * 1e4).log_softmax(0).exp() * x, array)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_new_shapes_agree(shape):
    size = int(np.prod(shape))
    for one in spread(*arrays(shape)):
        compare(lambda x: x.reshape(size), one)
        compare(lambda x: x.reshape((1, size, 1)), one)
        if size:
            compare(lambda x: x.reshape(-1, 1), one)
        order = tuple(range(one.ndim))
        for axes in {order, order[::-1], order[1:] + order[:1], order[-1:] + order[:-1]}:
            turned = tuple(axis - one.ndim for axis in axes)
            for named in (axes, turned):
                compare(
                    lambda x, named=named: (
                        x.transpose(named) if isinstance(x, activations.Tensor) else x.permute(named)
                    ),
                    one,
                )
        compare(lambda x: x.T if isinstance(x, activations.Tensor) else x.permute(tuple(range(x.ndim))[::-1]), one)


PRODUCTS = [
    ((3,), (3,)),
    ((0,), (0,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((4, 5, 2, 3), (3, 2)),
    ((3,), (4, 1, 3, 2)),
    ((2, 0, 3), (3, 4)),
    ((0, 2, 3), (3, 4)),
    ((0, 2, 3), (0, 3, 4)),
    ((5, 2, 0), (5, 0, 3)),
    ((1, 1, 1), (1, 1)),
]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_matrix_products_of_every_kind_agree(a, b):
    one, other = arrays(a, b)
    compare(lambda x, y: x @ y, one, other)
    compare(lambda x, y: x @ y, one[..., ::-1], other)
    if one.ndim >= 2 and other.ndim >= 2:
        across, down = one.swapaxes(-1, -2).copy(), other.swapaxes(-1, -2).copy()
        compare(lambda x, y: x @ y, across.swapaxes(-1, -2), down.swapaxes(-1, -2))
    compare(lambda x, y: (x @ y) * (x @ y), one, other)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((2, 5, 3), (3,)),
        ((2, 5, 3), (3, 4)),
        ((3,), (4, 3, 2)),
        ((2, 3), (4, 3, 2)),
        ((2, 5, 3), (4, 3, 6)),
        ((1, 1, 3), (2, 1, 3, 1)),
        ((0, 3), (4, 3, 2)),
        ((2, 0), (4, 0, 2)),
    ],
)
def test_dot_agrees_with_tensordot(a, b):
    one, other = arrays(a, b)

    def function(x, y):
        if isinstance(x, activations.Tensor):
            return matmul.dot(x, y)
        return torch.tensordot(x, y, dims=([x.ndim - 1], [y.ndim - min(y.ndim, 2)]))

    compare(function, one, other)
    compare(function, one[..., ::-1], other)


def test_dot_with_a_number_agrees():
    number, array = arrays((), (2, 3))
    compare(lambda x, y: x.dot(y) if isinstance(x, activations.Tensor) else x * y, number, array)
    compare(lambda x, y: x.dot(y) if isinstance(x, activations.Tensor) else x * y, array, number)


def test_a_small_network_of_everything_agrees():
    """The functions together, each fed with the result of another."""
    x, w, v = arrays((5, 4, 3), (3, 6), (6,))

    def network(x, w, v):
        hidden = (x @ w).tanh() + (x @ w).relu() * 0.5
        attention = hidden.softmax(-1) * (hidden * v).log_softmax(1) + (hidden * hidden + 1.0).sqrt().log()
        return (attention @ v).exp() / (hidden.sum(-1) ** 2 + 1.0)

    compare(network, x, w, v)
