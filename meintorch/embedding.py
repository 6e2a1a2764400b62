"""Chapter 11: numbers taken out of a tensor, tensors put together, and a table with a row for each word."""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from meintorch.arguments import float_dtype, generator, shown, whole
from meintorch.layers import Module
from meintorch.matmul import pair
from meintorch.shapes import reshape
from meintorch.tensor import Tensor, as_tensor, operation, unbroadcast


def index(x: Tensor, key: Any) -> Tensor:
    """x[key], where NumPy's rules apply: integers, slices, None, ..., arrays of integers or of True and False.

    Lists, ranges and tuples inside of the key are arrays too, and so are Tensors of whole numbers. A number that is
    picked several times collects all their gradients. Raises IndexError for a place that x does not have, and for what
    cannot be an index; TypeError for a Tensor whose numbers are not whole.
    """
    x = as_tensor(x)
    key = tuple(map(as_place, key)) if isinstance(key, tuple) else as_place(key)
    with_arrays = any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,)))
    try:
        out = Tensor(x.data[key], (x,), "[]")
    except IndexError as problem:
        raise IndexError(f"{problem}: this Tensor has shape {x.shape}") from None

    def _backward(upstream):
        # TODO 11.1: zeros, and what arrives at the places that were picked; at one that was picked twice it adds up.
        raise NotImplementedError("TODO 11.1")

    out._backward = _backward
    return out


def concatenate(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis: shapes (2, 3) and (4, 3) give (6, 3).

    Arrays are taken as constants in the dtype of the first Tensor. Raises ValueError if there are none, or if they
    differ in another axis, and for an axis that they do not have; TypeError for one that is no whole number.
    """
    tensors = all_tensors(tensors)
    check_axis(axis, "concatenate")
    try:
        joined = np.concatenate([tensor.data for tensor in tensors], axis)
    except ValueError as problem:
        shapes = ", ".join(str(tensor.shape) for tensor in tensors)
        raise ValueError(f"{problem}: these tensors have shapes {shapes}") from None
    out = Tensor(joined, tuple(tensors), "concatenate")

    def _backward(upstream):
        # TODO 11.2: cut what arrives where the tensors meet, and give each its piece.
        raise NotImplementedError("TODO 11.2")

    out._backward = _backward
    return out


def scatter_add(ids: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """A table with n rows: row i is the sum of all rows[k] for which ids[k] is i. On plain arrays, whose dtype stays.

    ids   integers from 0 to n - 1, shape (k,)
    rows  shape (k, width)
    """
    # TODO 11.3: a table of zeros, and all rows added to it, so that those of one id add up.
    raise NotImplementedError("TODO 11.3")


def embed(weight: Tensor, ids: Any) -> Tensor:
    """The rows of a table that are asked for: shapes (n, width) and (...) give (..., width).

    ids  integers from 0 to n - 1, in any shape
    Raises TypeError for ids that are no integers, IndexError for a row that there is not.
    """
    ids = check_ids(ids, len(weight))
    out = Tensor(weight.data[ids], (weight,), "embed")

    def _backward(upstream):
        # TODO 11.4: all ids in one line, all rows below each other; scatter_add adds up what is of one id.
        raise NotImplementedError("TODO 11.4")

    out._backward = _backward
    return out


# Given from here on.


class Embedding(Module):
    """A row of numbers for each of n words (or letters, or whatever can be counted). All of them are learned.

    weight  shape (n, width), standard normal numbers at the start
    dtype   float64 or float32; rng, a seed or a generator, makes the start repeatable
    Raises TypeError or ValueError for other sizes, dtypes and seeds.
    """

    def __init__(self, n: int, width: int, dtype: Any = np.float64, rng: np.random.Generator | int | None = None):
        shape = whole(n, "the number of rows"), whole(width, "the width")
        self.weight = Tensor(generator(rng).standard_normal(shape).astype(float_dtype(dtype)))

    def extra_repr(self) -> str:
        return ", ".join(map(str, self.weight.shape))

    def __call__(self, ids: Any) -> Tensor:
        return self.forward(ids)  # integers, and no Tensor is made of them

    def forward(self, ids: Any) -> Tensor:
        """Integers from 0 to n - 1 in any shape (...) to the rows that they name, (..., width). Raises as `embed`."""
        return embed(self.weight, ids)


def check_ids(ids: Any, n: int) -> np.ndarray:
    """Return ids as an array of integers from 0 to n - 1, or say why they are not.

    A Tensor of whole numbers is taken too: inside other modules the ids arrive as one.
    """
    ids = whole_numbers(ids, "an Embedding takes integers")
    if ids.size and not (ids.min() >= 0 and ids.max() < n):
        wrong = ids[(ids < 0) | (ids >= n)][0]
        raise IndexError(f"an Embedding with {n} rows takes integers from 0 to {n - 1}, not {wrong}")
    return ids


def whole_numbers(ids: Any, rule: str) -> np.ndarray:
    """Integers, or a Tensor of whole numbers, as an array of integers. Raises TypeError with the rule for others."""
    try:
        numbers = ids.data if isinstance(ids, Tensor) else np.asarray(ids)
    except ValueError:
        raise ValueError(f"{rule}, and the rows of {shown(ids)} differ in length") from None
    if isinstance(ids, Tensor) or numbers.dtype.kind in "iu":
        with np.errstate(invalid="ignore"):  # of nan, which becomes a number that it is not equal to
            found = numbers.astype(np.intp, copy=False)
        if np.array_equal(found, numbers):
            return found
    raise TypeError(f"{rule}, not {shown(ids)}")


def as_place(part: Any) -> Any:
    """One part of an index as NumPy takes it. A sequence becomes an array, a copy: later changes must not reach it."""
    if part is None or part is ... or isinstance(part, slice | int | np.integer | np.bool_):
        return part
    if isinstance(part, Tensor):
        return np.array(whole_numbers(part, "a Tensor as an index holds whole numbers (a comparison gives an array)"))
    places = np.array(part)
    if places.ndim == 0:
        return places[()]  # a single thing, which NumPy judges
    return places if places.size or isinstance(part, np.ndarray) else places.astype(np.intp)  # of [] NumPy makes floats


def check_axis(axis: Any, name: str) -> None:
    """Raises TypeError for an axis that is no whole number."""
    whole(axis, f"the axis of {name}", least=-sys.maxsize)


def stack(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis: two of shape (3,) give (2, 3), and with axis=1 (3, 2).

    Raises ValueError if there are none, if their shapes differ, and for an axis that the result does not have;
    TypeError for an axis that is no whole number.
    """
    tensors = all_tensors(tensors)
    shape = tensors[0].shape
    if any(tensor.shape != shape for tensor in tensors):
        raise ValueError(f"stack takes tensors of one shape, not {', '.join(str(one.shape) for one in tensors)}")
    check_axis(axis, "stack")
    if not -len(shape) - 1 <= axis <= len(shape):
        raise ValueError(f"stack along axis {axis}: the result has only {len(shape) + 1} axes")
    place = axis % (len(shape) + 1)
    return concatenate([reshape(one, (*shape[:place], 1, *shape[place:])) for one in tensors], place)


@operation
def flatten(x: Tensor, start: int = 0) -> Tensor:
    """All axes from `start` on as one: with start=1 shape (2, 3, 4) becomes (2, 12). A single number becomes (1,).

    Raises ValueError for an axis that x does not have, TypeError for one that is no whole number.
    """
    x = as_tensor(x)
    check_axis(start, "flatten")
    if not -x.ndim <= start < max(x.ndim, 1):
        raise ValueError(f"flatten from axis {start}: a Tensor of shape {x.shape} has no such axis")
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:])))


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """The numbers of a where the condition is true, and those of b elsewhere. All three broadcast.

    condition  an array of True and False, such as x > 0
    a, b       Tensors, arrays or numbers, at least one of them a Tensor
    Raises TypeError for another condition, ValueError for shapes that do not broadcast.
    """
    found = None if isinstance(condition, Tensor) else np.array(condition)  # a copy: the other may change meanwhile
    if found is None or found.dtype != bool:
        given = "a Tensor" if found is None else shown(condition)
        raise TypeError(f"the condition is an array of True and False, not {given}: is a comparison missing?")
    condition = found
    a, b = pair(a, b)
    try:
        chosen = np.where(condition, a.data, b.data)
    except ValueError:
        shapes = f"{condition.shape}, {a.shape} and {b.shape}"
        raise ValueError(f"where takes shapes that broadcast with each other, not {shapes}") from None
    out = Tensor(chosen, (a, b), "where")

    def _backward(upstream):
        if a.requires_grad:
            a.grad += unbroadcast(np.where(condition, upstream, 0.0), a.shape)
        if b.requires_grad:
            b.grad += unbroadcast(np.where(condition, 0.0, upstream), b.shape)

    out._backward = _backward
    return out


def all_tensors(tensors: Sequence[Any]) -> list[Tensor]:
    """The list as Tensors, where arrays become constants in the dtype of the first Tensor."""
    if isinstance(tensors, Tensor):
        raise TypeError("expected a list of tensors, not one Tensor")
    if not isinstance(tensors, Iterable):
        raise TypeError(f"expected a list of tensors, not {shown(tensors)}")
    tensors = list(tensors)
    first = next((one for one in tensors if isinstance(one, Tensor)), None)
    if not tensors:
        raise ValueError("expected at least one tensor, and there are none")
    return [as_tensor(one, like=first) for one in tensors]
