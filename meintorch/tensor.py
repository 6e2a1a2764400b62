"""Chapter 02: an array that remembers where it came from.

A `Tensor` is chapter 01's `Value` with a NumPy array in place of the number. Two things are new: the matrix product,
and broadcasting, which has to be undone on the way back (`unbroadcast`).
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from numbers import Real
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np


def as_tensor(x: Any, like: "Tensor | None" = None) -> "Tensor":
    """Return `x` itself if it is a Tensor, else a constant that holds the number or array `x`, in the dtype of `like`.

    A constant needs no gradient (`requires_grad` is False). A Tensor keeps its dtype, whatever `like` has: float32 and
    float64 Tensors together give float64, as in NumPy. Raises as `as_float_array` does.
    """
    if isinstance(x, Tensor):
        return x
    array = as_float_array(x)
    constant = Tensor(array if like is None else array.astype(like.data.dtype, copy=False))
    constant.requires_grad = False
    return constant


def unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a gradient down to `shape`, the shape that broadcasting stretched to `gradient.shape`.

    Where NumPy used one number several times on the way forward, that number collects all their gradients.
    """
    if gradient.shape == shape:
        return gradient
    # TODO 02.5: sum over the axes that broadcasting put in front, and over those that it stretched from size 1.
    raise NotImplementedError("TODO 02.5")


class Tensor:
    """A NumPy array in a graph of computations.

    data           the numbers: float32 stays float32, everything else becomes float64; not copied if it is one of them.
                   Given new ones (`x.data = ...`, `x.data -= ...`), a result that was computed from the old ones
                   refuses to walk back where it needs them. Writing into the array, `x.data[0] = ...`, is not noticed
    grad           d(result) / d(data) once `result.backward()` has run, zeros before; its shape and dtype are data's
    requires_grad  False for a constant, whose gradient nobody asks for, and for what is computed from constants alone
    retains_grad   keep `grad` after backward() even if this is no input: chapter 09's `retain_grad` sets it
    _children      the tensors this one was computed from; () for an input, and where no gradient is wanted
    _op            the operation that made it, "" for an input
    _backward      takes d(result) / d(this tensor) and adds to the children's `grad` what is theirs

    Raises TypeError or ValueError if `data` is not an array of real numbers: see `as_float_array`.
    """

    # Slots, because a small tensor costs as much as the arithmetic on it.
    __slots__ = (
        *("_data", "requires_grad", "retains_grad", "_grad", "_lent", "_children", "_op", "_rule"),
        # What `replacements` was when the rule was set, when the data was given anew, and when in another shape.
        *("_made", "_changed", "_reshaped"),
        "__weakref__",
    )
    __truediv__: Callable[..., "Tensor"]  # attached by operators.py
    __array_ufunc__ = None  # so that array * tensor asks Tensor.__rmul__ instead of multiplying element by element

    def __init__(self, data: Any, _children: tuple["Tensor", ...] = (), _op: str = ""):
        if type(data) is not np.ndarray or data.dtype.char not in "fd" or not data.dtype.isnative:
            data = as_float_array(data)
        self._data = data
        self.requires_grad = not _children
        self.retains_grad = False
        self._grad: Any = None  # an array, once something has arrived
        self._lent = False
        self._children: tuple[Tensor, ...] = ()
        self._op = _op
        self._rule: Callable[[np.ndarray], None] = _leaf
        self._made = self._changed = self._reshaped = 0
        try:
            for child in _children:  # the graph grows where one of them needs a gradient, and the mode is on
                if child.requires_grad and mode.recording:
                    self.requires_grad, self._children = True, _children
                    break
        except (TypeError, AttributeError):
            raise TypeError(
                "Tensor takes one array, and after it what an operation was given, a tuple of Tensors: "
                f"not {_short(_children)} of type {type(_children).__name__}"
            ) from None

    def __repr__(self) -> str:
        text = np.array2string(self.data, precision=4, separator=", ", prefix="Tensor(")
        return f"Tensor({text})" if self.dtype == np.float64 else f"Tensor({text}, dtype={self.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("NumPy's functions take arrays, and this is a Tensor: its numbers are in .data")

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a Tensor of shape () is a single number and has no length")
        return len(self.data)

    def _set_data(self, data: Any) -> None:
        global replacements
        if isinstance(data, Tensor):
            raise TypeError("data is an array. A Tensor has become of it here: calculate with the array in it, .data")
        kind = self._data.shape, self._data.dtype
        if data is not self._data:  # else it is `-=`, which has changed the array itself
            array = as_float_array(data)
            if (array.shape, array.dtype) != kind:
                self._grad = None
            # An array of a kind of its own, such as one that counts, stays what it is.
            self._data = data if isinstance(data, np.ndarray) and data.dtype is array.dtype else array
        replacements += 1
        self._changed = replacements
        if (self._data.shape, self._data.dtype) != kind:
            self._reshaped = replacements

    # attrgetter, since a function in Python takes twice as long. (To mypy a property is no array.)
    data: np.ndarray = property(attrgetter("_data"), _set_data)  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> int:
        return self._data.size

    @property
    def dtype(self) -> np.dtype:
        return self._data.dtype

    def item(self) -> float:
        """The number in a tensor that holds exactly one. Raises ValueError if it holds more, or none."""
        if self.size != 1:
            raise ValueError(f"item() takes a tensor with one number, not one of shape {self.shape}")
        return self.data.item()

    @property
    def grad(self) -> np.ndarray:
        if self._grad is None:
            return _nothing_yet(self._data.shape, self._data.dtype)
        if self._lent:
            self._own_grad()
        return self._grad

    @grad.setter
    def grad(self, gradient: np.ndarray) -> None:
        if gradient is self._grad:  # `+=` has added in place
            return
        data = self._data
        if type(gradient) is not np.ndarray or gradient.shape != data.shape or gradient.dtype != data.dtype:
            gradient = self._as_gradient(gradient)
        # A copy, since no two tensors may share a gradient. During a walk it waits until somebody looks: mostly nobody
        # else holds the array any more by then, and large ones are never copied.
        self._lent = mode.walking and (gradient.base is None or _is_all_of_its_base(gradient))
        self._grad = gradient if self._lent else gradient.copy()

    def _as_gradient(self, gradient: Any) -> np.ndarray:
        if isinstance(gradient, Tensor) or gradient is None:
            hint = "zero_grad() makes it zeros again" if gradient is None else "is a .data missing?"
            raise TypeError(f"a gradient is an array, not a {type(gradient).__name__}: {hint}")
        if np.shape(gradient) != self.shape:
            raise ValueError(f"the gradient of a Tensor of shape {self.shape} cannot have shape {np.shape(gradient)}")
        if getattr(gradient, "dtype", self.dtype) != self.dtype:
            raise TypeError(f"the gradient of a {self.dtype} Tensor cannot be {gradient.dtype}")
        return np.array(as_float_array(gradient), dtype=self.dtype)

    def _own_grad(self) -> None:
        """Copy a gradient that came without a copy, unless this tensor alone holds it."""
        if _holders_of_grad(self) > _ALONE or (self._grad.base is not None and _holders_of_base(self) > _BASE_ALONE):
            self._grad = self._grad.copy()
        self._lent = False

    def _after_its_turn(self, keep_graph: bool) -> None:
        """Let go of what nobody needs any more once the rule of a tensor has run."""
        if self._children and not keep_graph:
            # Whatever only the graph held is freed here, during the walk, and its memory serves the next step.
            self._children, self._rule = (), _let_go
            if not self.retains_grad:
                self._grad = None
        if self._lent and self._grad is not None:
            self._own_grad()

    @property
    def _backward(self) -> Callable[[np.ndarray], None]:
        if self._made != replacements and self._children:
            _check_that_nothing_was_replaced(self)
        return self._rule

    @_backward.setter
    def _backward(self, rule: Callable[[np.ndarray], None]) -> None:
        if self.requires_grad:  # else nobody will call the rule, and it would only hold on to the operation's inputs
            self._rule = rule
            self._made = replacements

    def zero_grad(self) -> None:
        """Forget the gradient, so that `grad` reads as zeros again."""
        self._grad = None

    def __add__(self, other: Any) -> "Tensor":
        other = as_tensor(other, like=self)
        out = Tensor(self.data + other.data, (self, other), "+")

        def _backward(upstream):
            # TODO 02.1: a sum moves exactly as much as each of its terms.
            raise NotImplementedError("TODO 02.1")

        out._backward = _backward
        return out

    def __mul__(self, other: Any) -> "Tensor":
        other = as_tensor(other, like=self)
        out = Tensor(self.data * other.data, (self, other), "*")

        def _backward(upstream):
            # TODO 02.2: product rule - the partner is the local factor.
            raise NotImplementedError("TODO 02.2")

        out._backward = _backward
        return out

    def __matmul__(self, other: Any) -> "Tensor":
        """The product of two matrices: shapes (n, k) @ (k, m) give (n, m). Other shapes are chapter 03's."""
        other = as_tensor(other, like=self)
        if self.ndim != 2 or other.ndim != 2:
            from meintorch.matmul import matmul

            return matmul(self, other)
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"@ takes shapes (n, k) and (k, m), not {self.shape} and {other.shape}: k differs")
        out = Tensor(self.data @ other.data, (self, other), "@")

        def _backward(upstream):
            # TODO 02.4: two matrix products, each with one transpose.
            raise NotImplementedError("TODO 02.4")

        out._backward = _backward
        return out

    def backward(self, gradient: Any = None, keep_graph: bool = False) -> None:
        """Add d(self) / d(t) to `t.grad` for every tensor `t` that self was computed from, and for self.

        gradient    what arrives at self: an array of self's shape. Ones if it is not given, so that for a single
                    number the result is its derivative, and for an array that of the sum of its elements.
        keep_graph  keep the graph, and the gradients of the tensors inside it, to look at. Otherwise both are let go
                    of during the walk: only inputs, and tensors with `retains_grad`, still have a gradient afterwards

        Raises ValueError if the shape of `gradient` is not self's, and RuntimeError if self needs no gradient, if an
        earlier walk has let go of the graph, or if a tensor whose numbers are needed has got new ones since.
        """
        if not self.requires_grad:
            raise RuntimeError(
                "backward() has no graph to walk: this Tensor is a constant, was computed from constants alone, or "
                "while no_grad() was on. Compute it from a Tensor with requires_grad, and with the mode on"
            )
        if gradient is None:
            gradient = np.ones_like(self.data)
        gradient = as_float_array(gradient).astype(self.dtype, copy=False)
        if gradient.shape != self.shape:
            raise ValueError(f"backward() of a Tensor of shape {self.shape} got a gradient of shape {gradient.shape}")
        # TODO 02.3: children before parents, seed, then backwards through that order.
        raise NotImplementedError("TODO 02.3")

    # Derived from the operations above, so that their gradients come for free. Division is in operators.py.

    def __neg__(self) -> "Tensor":
        return self * -1.0

    def __sub__(self, other: Any) -> "Tensor":
        return self + -as_tensor(other, like=self)

    def __pow__(self, exponent: Any) -> "Tensor":
        from meintorch.activations import power

        return power(self, exponent)

    def __radd__(self, other: Any) -> "Tensor":
        return self + other

    def __rmul__(self, other: Any) -> "Tensor":
        return self * other

    def __rsub__(self, other: Any) -> "Tensor":
        return as_tensor(other, like=self) - self

    def __rmatmul__(self, other: Any) -> "Tensor":
        return as_tensor(other, like=self) @ self

    def __rtruediv__(self, other: Any) -> "Tensor":
        return as_tensor(other, like=self) / self

    def __rpow__(self, base: Any) -> "Tensor":
        return as_tensor(base, like=self) ** self

    @property
    def T(self) -> "Tensor":
        from meintorch.shapes import transpose

        return transpose(self)

    def __getitem__(self, key: Any) -> "Tensor":
        from meintorch.embedding import index

        return index(self, key)

    # Comparisons have no slope: they give NumPy arrays of True and False.

    def __gt__(self, other: Any) -> np.ndarray:
        return self.data > as_tensor(other, like=self).data

    def __ge__(self, other: Any) -> np.ndarray:
        return self.data >= as_tensor(other, like=self).data

    def __lt__(self, other: Any) -> np.ndarray:
        return self.data < as_tensor(other, like=self).data

    def __le__(self, other: Any) -> np.ndarray:
        return self.data <= as_tensor(other, like=self).data


# Plumbing: what makes the class above safe and fast. There is nothing to fill in below.


class _Mode(threading.local):
    """What goes on in this thread: every thread has its own.

    recording  do operations record a graph? Chapter 09 switches it
    walking    is backward() on its way through a graph?
    """

    recording = True
    walking = False


mode = _Mode()


@contextmanager
def walking() -> Iterator[None]:
    """While this lasts, gradients that arrive are copied later or not at all: see the setter of `grad`."""
    mode.walking = True
    try:
        yield
    finally:
        mode.walking = False


def as_float_array(data: Any) -> np.ndarray:
    """Return `data` as a NumPy array of float32 if it is one already, else of float64. Such an array is not copied.

    Integers and booleans are converted. Raises TypeError if `data` holds anything but real numbers (text, complex
    numbers, other objects) or has holes (a masked array), and ValueError if it is a nested list whose rows differ in
    length, or if an integer is too large for a float.
    """
    if isinstance(data, Tensor):
        raise TypeError("expected numbers or an array, not a Tensor: its numbers are in .data")
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError("a Tensor has a number in every place, and this is a masked array: fill it, x.filled(0.0)")
    try:
        array = np.asarray(data)
        if array.dtype.kind == "O" and all(isinstance(one, Real) for one in array.flat):
            array = array.astype(np.float64)  # 2 ** 70, say, is a real number, but none of NumPy's integers
    except ValueError:
        raise ValueError(f"the rows of {_short(data)} differ in length, so they do not make an array") from None
    except OverflowError:
        raise ValueError("a Tensor holds floats, and they end at 1.8e308: an integer here is larger") from None
    except TypeError as error:
        if isinstance(data, list | tuple) and "this is a Tensor" in str(error):
            raise TypeError("a list of Tensors makes no Tensor: stack() and concatenate() put them together") from None
        raise
    if array.dtype.kind not in "fiub":
        raise TypeError(f"a Tensor holds real numbers, not {_short(data)} of type {_kind(data, array)}")
    return array.astype(np.float32 if array.dtype.char == "f" else np.float64, copy=False)


def _short(data: Any) -> str:
    text = " ".join(repr(data).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _kind(data: Any, array: np.ndarray) -> str:
    return f"array of {array.dtype}" if isinstance(data, np.ndarray) else type(data).__name__


Function = TypeVar("Function", bound=Callable)


def operation(function: Function) -> Function:
    """Make a function of a Tensor a method too: `softmax(x, -1)` and `x.softmax(-1)`."""
    setattr(Tensor, function.__name__, function)
    return function


class _NothingYet(np.ndarray):
    """What `grad` reads as until something arrives: zeros that cannot be written to, and that `+=` replaces.

    Most tensors get exactly one gradient. Keeping that one saves making zeros and adding to them.
    """

    def __iadd__(self, gradient: Any) -> Any:
        if isinstance(gradient, np.floating):  # what NumPy makes of arithmetic on arrays of shape ()
            gradient = np.asarray(gradient)
        fits = type(gradient) is np.ndarray and gradient.shape == self.shape and gradient.dtype == self.dtype
        if fits and not self.flags.writeable:
            return gradient  # the setter of Tensor.grad keeps a copy
        return np.add(self, gradient, dtype=self.dtype, casting="same_kind")

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **settings: Any) -> Any:
        if method == "at" and not inputs[0].flags.writeable:  # NumPy would write to it all the same
            raise ValueError("a gradient that nothing has arrived at is read-only: add a whole array to it")
        if out:
            settings["out"] = tuple(map(_plain, out))
        return getattr(ufunc, method)(*map(_plain, inputs), **settings)  # the result is an ordinary array again

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, _NothingYet) else array


@lru_cache(maxsize=1024)
def _nothing_yet(shape: tuple[int, ...], dtype: np.dtype) -> _NothingYet:
    return np.broadcast_to(np.zeros((), dtype), shape).view(_NothingYet)


def _leaf(upstream: np.ndarray) -> None:
    """The backward rule of a tensor that nothing was computed from: there is nobody to hand the gradient on to."""


def _let_go(upstream: np.ndarray) -> None:
    raise RuntimeError(
        "backward() has already been through this graph and let go of it. "
        "Compute the result again, or keep the graph with backward(keep_graph=True)"
    )


# How often any tensor was given new numbers: where that has not changed, there is nothing to look for. (A notebook runs
# a file that was edited again. The tensors that there are stay, so the count goes on.)
replacements: int = globals().get("replacements", 0)
# Rules that need no numbers of the inputs: shapes are enough, or the operation itself has computed what they need.
_NOT_THE_INPUTS = {"+", "sum", "reshape", "transpose", "[]", "concatenate", "embed", "where"} | {
    *("exp", "tanh", "sigmoid", "sqrt", "softmax", "log_softmax", "var", "cross_entropy", "binary_cross_entropy")
}
_THE_RESULT = {"exp", "tanh", "sigmoid", "sqrt", "softmax", "log_softmax", "max", "clip"}  # rules that hold on to it


def _check_that_nothing_was_replaced(tensor: Tensor) -> None:
    """Raise RuntimeError if the rule of a tensor would read numbers that are not those of the way forward any more."""
    op, children = tensor._op, tensor._children
    for place, child in enumerate(children):
        if child._reshaped > tensor._made or (child._changed > tensor._made and _reads_input(op, children, place)):
            raise RuntimeError(_replaced(f"a Tensor of shape {child.shape} that {op!r} was computed from", op))
    if tensor._changed > tensor._made and (op in _THE_RESULT or (op == "**" and len(children) == 2)):
        raise RuntimeError(_replaced(f"the result of {op!r}, a Tensor of shape {tensor.shape},", op))


def _reads_input(op: str, children: tuple[Tensor, ...], place: int) -> bool:
    """Does the rule of an operation read the numbers of one of its inputs? If nothing is known about it: yes."""
    if op in ("*", "@") or (op == "/" and place == 0):  # a factor is read for the gradients of the others alone
        return any(other.requires_grad for i, other in enumerate(children) if i != place)
    return op not in _NOT_THE_INPUTS


def _replaced(what: str, op: str) -> str:
    return (
        f"{what} was given new numbers afterwards (.data = ..., .data -= ..., or an optimizer's step), and the way "
        f"back through {op!r} needs the old ones. Compute the result again, or step after the last backward()"
    )


def _sum_in_front(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over all axes in front of those of `shape`: ones times all the rows, in a single matrix product."""
    rows = array.reshape(math.prod(array.shape[: array.ndim - len(shape)]), math.prod(shape))
    return (np.ones(len(rows), rows.dtype) @ rows).reshape(shape)


def _is_all_of_its_base(array: np.ndarray) -> bool:
    """Is it another array in a new shape, as `reshape` gives it, which it could take the place of?"""
    base, flags = array.base, array.flags
    return type(base) is np.ndarray and base.size == array.size and flags.c_contiguous and flags.writeable


_count_of = getattr(sys, "getrefcount", lambda thing: 0)  # not every Python counts


def _holders_of_grad(tensor: Tensor) -> int:
    return _count_of(tensor._grad)


def _holders_of_base(tensor: Tensor) -> int:
    return _count_of(tensor._grad.base)


_probe = Tensor(0.0)
_probe._grad = np.zeros(1).reshape(())
_ALONE = _holders_of_grad(_probe)  # what Python counts where only the tensor holds the array,
_BASE_ALONE = _holders_of_base(_probe)  # and where only that array holds what it is another shape of
_others = (_probe._grad, _probe._grad.base)
if (_holders_of_grad(_probe), _holders_of_base(_probe)) != (_ALONE + 1, _BASE_ALONE + 1):
    # One more holds each, and the counts do not say so. How Python counts may change with any version, and then every
    # gradient is copied: a count is always above this one.
    _ALONE = _BASE_ALONE = -1
del _others
