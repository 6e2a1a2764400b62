"""Chapter 03: sums, means and new shapes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meintorch import arguments
from meintorch.tensor import Tensor, as_tensor, operation

Axis = int | Sequence[int] | None  # of a reduction: one axis, several, or all of them (None)


@operation
def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Sum over axes. With keepdims they stay, with size 1. Raises as `axes_of` does."""
    x = as_tensor(x)
    axis = axes_of(axis, x.shape)
    out = Tensor(np.asarray(x.data.sum(axis=axis, keepdims=keepdims)), (x,), "sum")

    def _backward(upstream):
        # TODO 03.1: every number that went into a sum gets what arrives at that sum.
        raise NotImplementedError("TODO 03.1")

    out._backward = _backward
    return out


@operation
def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes. With keepdims they stay, with size 1. Raises as `axes_of` does."""
    x = as_tensor(x)
    axis = axes_of(axis, x.shape)
    count = x.size if axis is None else math.prod(x.shape[one] for one in axis)
    # TODO 03.2: the sum, divided by how many numbers go into it.
    raise NotImplementedError("TODO 03.2")


@operation
def reshape(x: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """The same numbers in another shape: `reshape(x, 2, 3)` or `reshape(x, (2, 3))`. One size may be -1: the rest.

    Raises ValueError if the numbers do not fill the shape.
    """
    x = as_tensor(x)
    out = Tensor(x.data.reshape(*shape), (x,), "reshape")

    def _backward(upstream):
        # TODO 03.3: no number has changed, so the gradient only goes back to the old shape.
        raise NotImplementedError("TODO 03.3")

    out._backward = _backward
    return out


@operation
def transpose(x: Tensor, axes: Axis = None, *others: int) -> Tensor:
    """The axes in another order: axis i of the result is axis axes[i] of x. Without `axes` they are turned around.

    `transpose(x, (0, 2, 1))` or `transpose(x, 0, 2, 1)`. Raises ValueError if not every axis of x is named once.
    """
    x = as_tensor(x)
    axes = axes_of((axes, *others) if others else axes, x.shape)
    if axes is None:
        axes = tuple(range(x.ndim))[::-1]
    if len(axes) != x.ndim:
        raise ValueError(
            f"transpose of shape {x.shape} is given all {x.ndim} axes in their new order, also those that stay where "
            f"they are, and not {axes}"
        )
    out = Tensor(np.transpose(x.data, axes), (x,), "transpose")

    def _backward(upstream):
        # TODO 03.4: every axis goes back to the place that it came from.
        raise NotImplementedError("TODO 03.4")

    out._backward = _backward
    return out


def axes_of(axis: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """One axis or several of an array of that shape as a tuple, counted from 0; None stays None.

    Raises as `arguments.axes` does: TypeError for what is no integer, IndexError for an axis that there is not, and
    ValueError for one that is named twice.
    """
    return None if axis is None else arguments.axes(axis, shape)
