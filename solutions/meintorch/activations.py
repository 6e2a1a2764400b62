"""Chapter 04: functions that act on every number, and softmax, which acts on all of them at once.

Every function is a method too: `x.softmax(-1)`. The result has the dtype of x and, where nothing else is said, its
shape. In this file max, min and abs are the functions defined here, not Python's: of an array take `z.max()`.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np

from meintorch.matmul import pair
from meintorch.shapes import Axis, axes_of
from meintorch.tensor import Tensor, as_tensor, operation, unbroadcast


@operation
def exp(x: Tensor) -> Tensor:
    """e ** x, element by element."""
    x = as_tensor(x)
    result = np.exp(x.data)
    out = Tensor(result, (x,), "exp")

    def _backward(upstream):
        # 04.1: exp is its own slope.
        x.grad += result * upstream

    out._backward = _backward
    return out


@operation
def log(x: Tensor) -> Tensor:
    """The natural logarithm, element by element: -inf at 0, and nan below."""
    x = as_tensor(x)
    out = Tensor(np.log(x.data), (x,), "log")

    def _backward(upstream):
        # 04.2: the slope of log is 1 / x.
        x.grad += upstream / x.data

    out._backward = _backward
    return out


@operation
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent, element by element: an S from -1 to 1."""
    x = as_tensor(x)
    result = np.tanh(x.data)
    out = Tensor(result, (x,), "tanh")

    def _backward(upstream):
        # 04.3: the slope of tanh is 1 - tanh ** 2.
        x.grad += (1.0 - result * result) * upstream

    out._backward = _backward
    return out


@operation
def relu(x: Tensor) -> Tensor:
    """x where it is positive, else 0."""
    x = as_tensor(x)
    out = Tensor(np.maximum(x.data, 0.0), (x,), "relu")

    def _backward(upstream):
        # 04.4: slope 1 where the number passed, 0 where it was held back.
        x.grad += upstream * (x.data > 0.0)

    out._backward = _backward
    return out


@operation
def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest number along axes. With keepdims they stay, with size 1. Several that are largest share the gradient.

    Raises as `axes_of` does, and ValueError where there is no number to choose from.
    """
    x = as_tensor(x)
    axis = axes_of(axis, x.shape)
    largest = np.max(x.data, axis=axis, keepdims=True)  # this shape broadcasts against x
    out = Tensor(largest if keepdims else np.squeeze(largest, axis), (x,), "max")

    def _backward(upstream):
        upstream = upstream.reshape(largest.shape)
        # 04.5: all of it goes to the largest number; where several are equally large, they share it.
        winners = (x.data == largest).astype(x.dtype)
        x.grad += winners / winners.sum(axis=axis, keepdims=True) * upstream

    out._backward = _backward
    return out


def stable_softmax(z: np.ndarray, axis: int) -> np.ndarray:
    """exp(z) / sum(exp(z)) along an axis, on plain arrays, for numbers of any size: shape and dtype stay.

    Raises ValueError for an axis that z does not have, and where there is no number to share among.
    """
    # 04.6: subtracting the largest number changes nothing in the quotient, and keeps exp from overflowing.
    powers = np.asarray(z - z.max(axis=axis, keepdims=True))  # of a single number NumPy makes no array
    np.exp(powers, out=powers)  # in place, as below: a new array takes longer than the arithmetic
    powers /= sums_along(powers, axis)
    return powers


@operation
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Turn the numbers along an axis into shares: none negative, their sum 1.

    Raises TypeError unless it is one axis, and else as `stable_softmax` does.
    """
    x, axis = as_tensor(x), one_axis(axis)
    s = stable_softmax(x.data, axis)
    out = Tensor(s, (x,), "softmax")

    def _backward(upstream):
        # 04.7: what arrives, times the Jacobian, which is never formed; its entries are made of `s`.
        to_x = upstream - dots_along(upstream, s, axis)
        to_x *= s
        x.grad += to_x

    out._backward = _backward
    return out


def stable_log_softmax(z: np.ndarray, axis: int) -> np.ndarray:
    """The logarithm of softmax along an axis, on plain arrays, also where softmax itself is too small for a float.

    Raises as `stable_softmax` does.
    """
    # 04.8: the logarithm of a quotient is a difference; the shift is that of softmax.
    shifted = z - z.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@operation
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax along an axis, in one step, so that a tiny share does not become log(0).

    Raises as `softmax` does.
    """
    x, axis = as_tensor(x), one_axis(axis)
    result = stable_log_softmax(x.data, axis)
    out = Tensor(result, (x,), "log_softmax")

    def _backward(upstream):
        # 04.8: every number moves the sum inside the logarithm; the shares are exp of `result`.
        x.grad += upstream - np.exp(result) * upstream.sum(axis=axis, keepdims=True)

    out._backward = _backward
    return out


# Given from here on, and built in the same way.


def one_axis(axis: Any) -> int:
    """The axis, if it is one. Shares along several would need a reshape first."""
    if isinstance(axis, bool) or not isinstance(axis, Integral):
        raise TypeError(f"shares run along one axis, an integer, not {axis!r}: for several, reshape them into one")
    return int(axis)


def sums_along(z: np.ndarray, axis: int) -> np.ndarray:
    """The sums along an axis, which stays with size 1. Along the last one a product with ones is much faster."""
    if z.ndim and axis in (-1, z.ndim - 1):
        return z @ np.ones((z.shape[-1], 1), z.dtype)
    return z.sum(axis=axis, keepdims=True)


def dots_along(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    """(a * b).sum(axis, keepdims=True) in one go, for arrays of the same shape."""
    return np.expand_dims(np.vecdot(a, b, axis=axis), axis) if a.ndim else a * b


@operation
def power(x: Tensor, exponent: Any) -> Tensor:
    """x ** exponent, element by element; the exponent is a number, an array or a tensor, and x may be a number then.

    Arrays broadcast. With a negative base the slope for the exponent is nan. Raises TypeError for other exponents.
    """
    if isinstance(exponent, Tensor | np.ndarray | list):
        x, exponent = pair(x, exponent)
    else:
        x = as_tensor(x)
    if isinstance(exponent, Tensor):
        return _power_of_tensors(x, exponent)
    if not isinstance(exponent, Real):
        raise TypeError(f"the exponent is a number or a Tensor, not {exponent!r} of type {type(exponent).__name__}")
    exponent = float(exponent)  # a NumPy number would turn float32 into float64
    out = Tensor(x.data**exponent, (x,), "**")

    def _backward(upstream):
        if exponent != 0.0:  # a constant result has no slope, and 0 * 0 ** -1 would be nan
            x.grad += exponent * x.data ** (exponent - 1.0) * upstream

    out._backward = _backward
    return out


def _power_of_tensors(x: Tensor, exponent: Tensor) -> Tensor:
    result = x.data**exponent.data
    out = Tensor(result, (x, exponent), "**")

    def _backward(upstream):
        if x.requires_grad:
            # Where the exponent is 0 the result is constant: 0 * 0 ** -1 would be nan.
            steep = np.where(exponent.data == 0.0, 1.0, exponent.data) - 1.0
            x.grad += unbroadcast((exponent.data * x.data ** steep.astype(x.dtype)) * upstream, x.shape)
        if exponent.requires_grad:
            # 0 ** e is 0 for every positive e: no slope there, though log(0) has none to offer. (Below 0 it is -inf.)
            flat = (x.data == 0.0) & (exponent.data >= 0.0)
            exponent.grad += unbroadcast(result * np.log(np.where(flat, 1.0, x.data)) * upstream, exponent.shape)

    out._backward = _backward
    return out


@operation
def sqrt(x: Tensor) -> Tensor:
    """The square root, element by element: nan below 0, and an infinite slope at 0."""
    x = as_tensor(x)
    result = np.sqrt(x.data)
    out = Tensor(result, (x,), "sqrt")

    def _backward(upstream):
        x.grad += 0.5 / result * upstream

    out._backward = _backward
    return out


@operation
def abs(x: Tensor) -> Tensor:
    """The absolute value, element by element. Its slope at 0 is taken as 0."""
    x = as_tensor(x)
    out = Tensor(np.abs(x.data), (x,), "abs")

    def _backward(upstream):
        x.grad += np.sign(x.data) * upstream

    out._backward = _backward
    return out


@operation
def clip(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """x, but not below `low` and not above `high`. Its slope is 1 between them, both ends included, and 0 outside.

    Without a bound there is none on that side. Raises TypeError for one that is no number, ValueError for nan and if
    low is above high.
    """
    x = as_tensor(x)
    for bound in (low, high):
        if bound is not None and not isinstance(bound, Real):
            raise TypeError(f"a bound of clip is a number or None, not {bound!r} of type {type(bound).__name__}")
    low, high = (None if bound is None else float(bound) for bound in (low, high))  # as in power: float32 stays
    lowest, highest = (-np.inf if low is None else low), (np.inf if high is None else high)
    if not lowest <= highest:  # nan is neither
        raise ValueError(f"clip needs low <= high, not {low} and {high}")
    result = np.clip(x.data, low, high)
    out = Tensor(result, (x,), "clip")

    def _backward(upstream):
        x.grad += upstream * (x.data == result)

    out._backward = _backward
    return out


@operation
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), element by element: an S from 0 to 1."""
    x = as_tensor(x)
    small = np.exp(-np.abs(x.data))  # at most 1: it does not overflow, and below 0 the result keeps its digits
    result = np.where(x.data < 0.0, small, 1.0) / (1.0 + small)
    out = Tensor(result, (x,), "sigmoid")

    def _backward(upstream):
        x.grad += result * (1.0 - result) * upstream

    out._backward = _backward
    return out


@operation
def min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest number along axes, as `max` has the largest."""
    return -max(-as_tensor(x), axis, keepdims)
