"""Chapter 03: sums, means and new shapes."""

import math
from collections.abc import Sequence

import numpy as np

from meintorch.tensor import Tensor, as_tensor, operation

Axis = int | Sequence[int] | None  # of a reduction: one axis, several, or all of them (None)


@operation
def sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Sum over axes. With keepdims they stay, with size 1. Raises IndexError for an axis that x does not have."""
    x, axis = as_tensor(x), axes_of(axis)
    out = Tensor(np.asarray(x.data.sum(axis=axis, keepdims=keepdims)), (x,), "sum")

    def _backward(upstream):
        # TODO 03.1: every number that went into a sum gets what arrives at that sum.
        raise NotImplementedError("TODO 03.1")

    out._backward = _backward
    return out


@operation
def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes. With keepdims they stay, with size 1. Raises IndexError for an axis that x does not have."""
    x, axis = as_tensor(x), axes_of(axis)
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
def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order: axis i of the result is axis axes[i] of x. Without `axes` they are turned around.

    Raises ValueError if `axes` does not name every axis of x once.
    """
    x = as_tensor(x)
    axes = tuple(range(x.ndim))[::-1] if axes is None else axes_of(axes)
    out = Tensor(np.transpose(x.data, axes), (x,), "transpose")
    axes = tuple(axis % x.ndim for axis in axes)  # counted from the front: the last is ndim - 1, not -1

    def _backward(upstream):
        # TODO 03.4: every axis goes back to the place that it came from.
        raise NotImplementedError("TODO 03.4")

    out._backward = _backward
    return out


def axes_of(axis: Axis) -> tuple[int, ...] | None:
    """One axis or several as a tuple; None stays None."""
    if axis is None:
        return None
    return tuple(axis) if isinstance(axis, Sequence) else (int(axis),)
