"""Chapter 03: the matrix product in all its cases."""

import math
from typing import Any

import numpy as np

from meintorch.shapes import reshape, transpose
from meintorch.tensor import Tensor, as_tensor, operation, unbroadcast


@operation
def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product a @ b, as NumPy has it.

    (n, k) @ (k, m)              -> (n, m)
    (..., n, k) @ (..., k, m)    -> (..., n, m): stacks of matrices, whose leading axes broadcast
    (k,) @ (..., k, m)           -> (..., m): a vector on the left is a row
    (..., n, k) @ (k,)           -> (..., n): a vector on the right is a column
    (k,) @ (k,)                  -> (): two vectors give a number

    Raises ValueError if a or b is a single number, or if the inner sizes differ.
    """
    a, b = pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"@ takes arrays with at least one axis, not shapes {a.shape} and {b.shape}: * is for numbers")
    if a.shape[-1] != b.shape[-min(b.ndim, 2)]:
        raise ValueError(f"@ takes shapes (..., n, k) and (..., k, m), not {a.shape} and {b.shape}: k differs")
    if a.ndim == 1 or b.ndim == 1:
        return matmul_vectors(a, b)
    if a.ndim > 2 and b.ndim == 2:
        return matmul_stack(a, b)
    out = Tensor(a.data @ b.data, (a, b), "@")

    def _backward(upstream):
        # 03.5: chapter 02's two products for every pair of matrices, and broadcasting undone.
        if a.requires_grad:
            a.grad += unbroadcast(upstream @ np.swapaxes(b.data, -1, -2), a.shape)
        if b.requires_grad:
            b.grad += unbroadcast(np.swapaxes(a.data, -1, -2) @ upstream, b.shape)

    out._backward = _backward
    return out


def matmul_vectors(a: Tensor, b: Tensor) -> Tensor:
    """a @ b where at least one of them is a vector."""
    # 03.6: a vector on the left becomes a row, one on the right a column; in the result that axis goes again.
    left = reshape(a, (1, a.size)) if a.ndim == 1 else a
    right = reshape(b, (b.size, 1)) if b.ndim == 1 else b
    out = matmul(left, right)
    rows = out.shape[:-2] if a.ndim == 1 else out.shape[:-1]
    columns = () if b.ndim == 1 else out.shape[-1:]
    return reshape(out, rows + columns)


def matmul_stack(a: Tensor, b: Tensor) -> Tensor:
    """a @ b where a is a stack of matrices, shape (..., n, k), and b is one matrix (k, m)."""
    # 03.7: all the rows of the stack below each other: a single product, and a single one for b on the way back.
    rows = math.prod(a.shape[:-1])
    return reshape(matmul(reshape(a, (rows, a.shape[-1])), b), (*a.shape[:-1], b.shape[-1]))


@operation
def dot(a: Any, b: Any) -> Tensor:
    """NumPy's dot: the last axis of a meets the last but one of b, and all other axes stay, a's before b's.

    (k,), (k,) -> ();  (n, k), (k, m) -> (n, m);  (i, n, k), (j, k, m) -> (i, n, j, m);  a number multiplies.

    Raises ValueError if the sizes of the axes that meet differ.
    """
    a, b = pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    # 03.8: as long as b is no stack it is the matrix product; a stack is laid out as one wide matrix first.
    if b.ndim <= 2:
        return matmul(a, b)
    inner = b.ndim - 2
    others = [axis for axis in range(b.ndim) if axis != inner]
    sizes = tuple(b.shape[axis] for axis in others)
    wide = reshape(transpose(b, (inner, *others)), (b.shape[inner], math.prod(sizes)))
    return reshape(matmul(a, wide), a.shape[:-1] + sizes)


def pair(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Two operands of which at least one is a Tensor, both as Tensors; a constant takes the other one's dtype."""
    if isinstance(a, Tensor):
        return a, as_tensor(b, like=a)
    b = as_tensor(b)
    return as_tensor(a, like=b), b
