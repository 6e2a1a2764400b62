"""Chapter 11: numbers brought to one size, and a smooth step."""

import math
from typing import Any

import numpy as np

from meintorch.arguments import as_number, axes, float_dtype, whole
from meintorch.layers import Module
from meintorch.shapes import Axis
from meintorch.tensor import Tensor, as_tensor, operation


@operation
def var(x: Tensor, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """The variance along axes: the mean squared distance from the mean. With keepdims the axes stay, with size 1.

    It is divided by how many numbers there are, less `correction`; with correction=1 it is the variance of a sample.
    Raises IndexError for an axis that x does not have, TypeError for one that is no whole number, and ValueError for an
    axis that is named twice and where there are too few numbers.
    """
    x = as_tensor(x)
    axis = axes(axis, x.shape)
    n = math.prod(x.shape[one] for one in axis) - as_number(correction, "the correction")
    if not n > 0:
        raise ValueError(f"the variance needs more than {correction} numbers: shape {x.shape}, axis {axis}")
    # From the largest number first, which is exact where numbers are close: equal ones of any size have variance 0.
    below = x.data - x.data.max(axis=axis, keepdims=True)
    distance = below - below.mean(axis=axis, keepdims=True)
    variance = (distance * distance).sum(axis=axis, keepdims=True) / n
    out = Tensor(variance if keepdims else np.squeeze(variance, axis), (x,), "var")

    def _backward(upstream):
        upstream = upstream.reshape(variance.shape)
        # 11.5: twice the distance, by n. That the mean moves too makes no difference: the distances add up to 0.
        x.grad += 2.0 / n * distance * upstream

    out._backward = _backward
    return out


def normalize(z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Bring each row of z, shape (rows, width), to mean 0 and variance 1. On plain arrays, whose dtype stays.

    Returns the new rows, and 1 / deviation of each old one, shape (rows, 1). eps is added to the variance, so that a
    row of equal numbers becomes zeros and not 0 / 0.
    """
    # 11.6: the distance from the mean of its row, divided by the deviation.
    distance = z - row_means(z)  # as a matrix product, which for short rows is several times faster than z.mean
    scale = 1.0 / np.sqrt(row_means(distance * distance) + eps)
    distance *= scale
    return distance, scale


@operation
def layer_norm(x: Tensor, weight: Any, bias: Any, eps: float = 1e-5) -> Tensor:
    """Bring each row along the last axis to mean 0 and variance 1; then times weight, plus bias: in a single node.

    x             shape (..., width)
    weight, bias  shape (width,)
    eps           0 or more
    Raises ValueError for other shapes and another eps. Ba, Kiros and Hinton 2016, https://arxiv.org/abs/1607.06450
    """
    x = as_tensor(x)
    weight, bias = as_tensor(weight, like=x), as_tensor(bias, like=x)
    width = x.shape[-1] if x.ndim else 0
    if width == 0 or not weight.shape == bias.shape == (width,):
        raise ValueError(
            f"layer_norm takes shapes (..., width), (width,) and (width,), not {x.shape}, {weight.shape}, {bias.shape}"
        )
    eps = as_number(eps, "eps")  # a plain one: a NumPy number would turn float32 into float64
    if not 0.0 <= eps < math.inf:
        raise ValueError(f"eps is 0 or more, not {eps}")
    rows = x.data.reshape(-1, width)
    # From the first number of each row, which is exact where numbers are close: equal ones of any size become zeros.
    normal, scale = normalize(rows - rows[:, :1], eps)
    result = normal * weight.data
    result += bias.data
    out = Tensor(result.reshape(x.shape), (x, weight, bias), "layer_norm")

    def _backward(upstream):
        upstream = upstream.reshape(normal.shape)
        # 11.7: bias and weight collect from all rows; x gets the rest, without mean and share of normal.
        if bias.requires_grad:
            bias.grad += column_sums(upstream)
        if weight.requires_grad:
            weight.grad += column_sums(upstream * normal)
        if x.requires_grad:
            to_x = np.empty(x.shape, x.dtype)  # of x's own shape, so that it becomes the gradient without a copy
            rows = np.multiply(upstream, weight.data, out=to_x.reshape(normal.shape))
            share = row_means(rows * normal)
            rows -= row_means(rows)
            rows -= normal * share
            rows *= scale
            x.grad += to_x

    out._backward = _backward
    return out


SQRT_2_BY_PI = math.sqrt(2.0 / math.pi)
CUBIC = 0.044715


@operation
def gelu(x: Tensor) -> Tensor:
    """x times a smooth step from 0 to 1, element by element: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x ** 3))).

    Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415, the approximation with tanh
    """
    x = as_tensor(x)
    z = x.data
    # In place, since a new array in every line takes several times as long; and products, since z ** 3 is slow.
    bend = np.multiply(z, z, out=np.empty_like(z))
    bend *= CUBIC
    bend += 1.0
    bend *= z
    bend *= SQRT_2_BY_PI
    np.tanh(bend, out=bend)
    result = bend + 1.0
    result *= z
    result *= 0.5
    out = Tensor(result, (x,), "gelu")

    def _backward(upstream):
        # 11.8: product rule for x times the step; in the step the chain rule, through tanh and what is inside.
        slope = z * z
        slope *= 3.0 * CUBIC * SQRT_2_BY_PI
        slope += SQRT_2_BY_PI
        slope *= z
        slope *= 1.0 - bend * bend
        slope += bend
        slope += 1.0
        slope *= 0.5
        slope *= upstream
        x.grad += slope

    out._backward = _backward
    return out


# Given from here on.


class LayerNorm(Module):
    """`layer_norm` with a weight and a bias of its own, both of shape (width,): ones and zeros at the start.

    Raises TypeError or ValueError for other widths and dtypes than whole numbers from 1, float64 and float32.
    """

    def __init__(self, width: int, dtype: Any = np.float64):
        width, dtype = whole(width, "the width"), float_dtype(dtype)
        self.weight = Tensor(np.ones(width, dtype))
        self.bias = Tensor(np.zeros(width, dtype))

    def extra_repr(self) -> str:
        return f"{len(self.bias)}"

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., width), which stays."""
        return layer_norm(x, self.weight, self.bias)


class GELU(Module):
    """`gelu` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x)


def row_means(z: np.ndarray) -> np.ndarray:
    """The mean of each row, shape (rows, 1). The same as z.mean(axis=1, keepdims=True), as a matrix product."""
    return z @ np.full((z.shape[1], 1), 1.0 / z.shape[1], z.dtype)


def column_sums(z: np.ndarray) -> np.ndarray:
    """The sum of each column, shape (width,). The same as z.sum(axis=0), as a matrix product."""
    return np.ones(len(z), z.dtype) @ z
