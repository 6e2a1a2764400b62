"""What every Tensor can do besides: division, conversions, copies, and errors that say what to write instead.

The operators are functions and methods as well: `add(a, b)` and `a.add(b)` are a + b. There is nothing to fill in here.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

import meintorch
from meintorch import activations
from meintorch.matmul import pair
from meintorch.tensor import Tensor, _leaf, as_tensor, operation, unbroadcast

# a and b are Tensors, arrays or numbers. They broadcast, and a constant takes the other one's dtype.


@operation
def add(a: Any, b: Any) -> Tensor:
    """a + b"""
    a, b = pair(a, b)
    return a + b


@operation
def subtract(a: Any, b: Any) -> Tensor:
    """a - b"""
    a, b = pair(a, b)
    return a - b


@operation
def multiply(a: Any, b: Any) -> Tensor:
    """a * b"""
    a, b = pair(a, b)
    return a * b


@operation
def divide(a: Any, b: Any) -> Tensor:
    """a / b. As a node of its own, since a * (1 / b) rounds twice: 49 / 49 would not be 1."""
    a, b = pair(a, b)
    out = Tensor(a.data / b.data, (a, b), "/")

    def _backward(upstream):
        if a.requires_grad:
            a.grad += unbroadcast(upstream / b.data, a.shape)
        if b.requires_grad:
            b.grad += unbroadcast(-upstream * (a.data / b.data / b.data), b.shape)

    out._backward = _backward
    return out


@operation
def negate(x: Any) -> Tensor:
    """-x"""
    return -as_tensor(x)


def method(name: str) -> Callable:
    """Make a function of a Tensor a method of another name, such as `__float__`, which Python calls for float(x)."""

    def attach(function: Callable) -> Callable:
        setattr(Tensor, name, function)
        return function

    return attach


method("__truediv__")(divide)


@method("__abs__")
def absolute(x: Tensor) -> Tensor:
    return activations.abs(x)


@method("__pos__")
def unchanged(x: Tensor) -> Tensor:
    return x


# What has no gradient: plain numbers and arrays come out.


@operation
def numpy(x: Tensor) -> np.ndarray:
    """The array itself, as `x.data` is. It is not copied, and needs no detach() first."""
    return x.data


@operation
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
    """Where the largest number is, along an axis: NumPy integers. Of several the first; without an axis, in x.ravel().

    Raises TypeError for an axis that is no integer, IndexError for one that x does not have, ValueError for no numbers.
    """
    return np.argmax(x.data, one_axis_or_none(axis, "argmax"), keepdims=keepdims)


@operation
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
    """Where the smallest number is. The same as `argmax` otherwise."""
    return np.argmin(x.data, one_axis_or_none(axis, "argmin"), keepdims=keepdims)


def one_axis_or_none(axis: Any, name: str) -> int | None:
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, Integral)):
        raise TypeError(f"{name} goes along one axis, an integer, or None for all numbers, not {axis!r}")
    return None if axis is None else int(axis)


@method("__float__")
def to_float(x: Tensor) -> float:
    return float(the_number(x, "float()"))


@method("__int__")
def to_int(x: Tensor) -> int:
    return int(the_number(x, "int()"))


@method("__bool__")
def to_bool(x: Tensor) -> bool:
    """The truth of one number. Raises ValueError for more or none, as NumPy does."""
    if x.size != 1:
        raise ValueError(
            f"the truth value of a Tensor of shape {x.shape} is ambiguous: (x.data > 0).any() or .all() asks for the "
            "numbers, and `x is not None` whether there is a Tensor"
        )
    return bool(x.item())


@method("__format__")
def to_text(x: Tensor, spec: str) -> str:
    """`f"{loss:.3f}"` for one number. Raises TypeError if there are more, or none."""
    return format(the_number(x, f"the format {spec!r}"), spec) if spec else str(x)


def the_number(x: Tensor, what: str) -> float:
    if x.size != 1:
        raise TypeError(f"{what} takes one number, and this Tensor has shape {x.shape}: its numbers are in .data")
    return x.item()


# Copies, by copy.copy, copy.deepcopy and pickle.


@method("__reduce_ex__")
def to_copy(x: Tensor, protocol: int) -> tuple:
    """How to make a copy of an input, or of a constant: its numbers, a gradient of its own, its two flags.

    Raises TypeError for what was computed: the rules of its graph would go on adding to the inputs of the original.
    """
    if x._rule is not _leaf:
        raise TypeError(
            f"a Tensor that was computed (here by {x._op!r}, shape {x.shape}) cannot be copied, since it hangs on a "
            "graph: copy x.detach(), or copy the inputs and compute it again"
        )
    return from_copy, (x.data, None if x._grad is None else x.grad, x.requires_grad, x.retains_grad)


def from_copy(data: np.ndarray, gradient: np.ndarray | None, requires_grad: bool, retains_grad: bool) -> Tensor:
    x = Tensor(data)
    x.requires_grad, x.retains_grad = requires_grad, retains_grad
    if gradient is not None:
        x.grad = gradient
    return x


# What a Tensor is not.


@method("__array_function__")
def refuse_function(x: Tensor, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
    """NumPy calls this for np.sum(x), np.concatenate([x, y]) and the like."""
    if function in (np.shape, np.ndim, np.size):
        return function._implementation(*args, **kwargs)
    name = function.__name__
    instead = ""
    if hasattr(Tensor, name):
        instead = f"meintorch's own is x.{name}(), and "
    elif hasattr(meintorch, name):
        instead = f"meintorch's own is called by its name alone, {name}(...), and "
    numpys = f"{function.__module__}.{name}"
    raise TypeError(f"{numpys} takes arrays, and this is a Tensor: {instead}its numbers are in .data")


@method("__iter__")
def refuse_iteration(x: Tensor) -> None:
    # An optimizer given one Tensor in place of a list must not take its rows for parameters.
    raise TypeError(
        "a Tensor is not iterable: x[i] is a row, x.data are the numbers. Python's own sum, max and min go through a "
        "list. A Tensor has methods for that: x.sum(), x.max(), x.min()"
    )


@method("__contains__")
def refuse_search(x: Tensor, number: Any) -> None:
    raise TypeError(f"`in` does not search a Tensor: (x.data == {number!r}).any()")


@method("__setitem__")
def refuse_assignment(x: Tensor, key: Any, value: Any) -> None:
    raise TypeError("a Tensor takes no assignment to its places, for which there is no gradient: write to x.data[...]")


class Sameness:
    """What `x == y` gives: whether they are one and the same Tensor, as `y in tensors` wants to know, and no array."""

    __slots__ = ("same",)

    def __init__(self, same: bool):
        self.same = same

    def __bool__(self) -> bool:
        return self.same

    def __repr__(self) -> str:
        return repr(self.same)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python, or NumPy, asks what kind of thing this is
            raise AttributeError(name)
        raise TypeError("== asks whether two names stand for the same Tensor; numbers are compared by a.data == b.data")


@method("__eq__")
def is_same(x: Tensor, other: Any) -> Sameness:
    return Sameness(x is other)


@method("__ne__")
def is_another(x: Tensor, other: Any) -> Sameness:
    return Sameness(x is not other)
