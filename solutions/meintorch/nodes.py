"""Chapter 10: the same engine written the other way, with a node for every operation.

In chapter 02 an operation left a closure behind. Here it leaves a node, an object such as `AddBackward`, which keeps
the operation's inputs and has a method `backward`.

Gradients are carried transposed: that of an array of shape (2, 3) travels in shape (3, 2). Whatever is called
`gradient` in this file has that layout; only `Tensor.grad` has the shape of its tensor. The functions sum, max, min and
abs hide Python's, in this file alone: of an array take `np.sum`, `np.max`, ...
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from meintorch.arguments import axes
from meintorch.tensor import as_float_array

Axis = int | Sequence[int] | None  # of a reduction: one axis, several, or all of them (None)


class Tensor:
    """A NumPy array that knows which node made it.

    value          the numbers: float32 stays float32, everything else becomes float64
    requires_grad  does anybody ask for its gradient? False for a constant
    grad           the gradient, a Tensor of the same shape and dtype; None until a backward() has come by
    _grad_fn       the node of the operation that made it; None for an input and for what needs no gradient

    Raises TypeError or ValueError if `value` is not an array of real numbers.
    """

    __array_ufunc__ = None  # so that array * tensor asks Tensor.__rmul__ instead of multiplying element by element

    def __init__(self, value: Any, requires_grad: bool = False):
        self.value = as_float_array(value)
        self.requires_grad = requires_grad
        self.grad: Tensor | None = None
        self._grad_fn: Backward | None = None

    def __repr__(self) -> str:
        text = np.array2string(self.value, precision=4, separator=", ", prefix="Tensor(")
        if self._grad_fn is not None:
            return f"Tensor({text}, grad_fn=<{type(self._grad_fn).__name__}>)"
        return f"Tensor({text}, requires_grad=True)" if self.requires_grad else f"Tensor({text})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("NumPy's functions take arrays, and this is a Tensor: its numbers are in .value")

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        if function in (np.shape, np.ndim, np.size):
            return function._implementation(*args, **kwargs)
        raise TypeError(f"np.{function.__name__} takes arrays, and this is a Tensor: its numbers are in .value")

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def T(self) -> "Tensor":
        return transpose(self)

    def backward(self, gradient: Any = None) -> None:
        """Add d(self) / d(t) to `t.grad` for self and every tensor t that it was computed from and that needs one.

        gradient  what arrives at self, transposed: a Tensor or an array of shape self.shape[::-1]. Without one, self
                  has to be a single number, and 1 arrives.

        Raises ValueError if self needs no gradient, or if there is no gradient of the right shape to start with.
        """
        gradient = first_gradient(self, gradient)
        # 10.5: users first. What has arrived at a tensor is kept, turned back, and goes on through its node.
        arrived = {self: gradient.value}
        for tensor in users_first(self):
            if tensor not in arrived:
                continue
            total, node = arrived.pop(tensor), tensor._grad_fn
            tensor.grad = Tensor(total.T + (0.0 if tensor.grad is None else tensor.grad.value))
            if node is not None:
                for x, share in zip(node.input, node(Tensor(total))):
                    if share is not None and x.requires_grad:
                        arrived[x] = arrived.get(x, 0.0) + share.value


class Backward:
    """A node: one operation that was carried out, and the inputs that it had.

    Each operation has a subclass with a method `backward(gradient)`. It takes the gradient of the result and returns a
    list with the gradient of each input, or None for an input that needs none. All are Tensors, and transposed.
    """

    def __init__(self, *inputs: Tensor):
        self.input = list(inputs)

    def __call__(self, gradient: Tensor) -> list[Tensor | None]:
        """What `backward` returns, in the inputs' dtypes. Raises TypeError or ValueError if it does not fit them."""
        name, shares = type(self).__name__, self.backward(gradient)
        if not isinstance(shares, list | tuple) or len(shares) != len(self.input):
            raise TypeError(
                f"{name}.backward has to return a list as long as self.input ({len(self.input)}), not {shares!r}"
            )
        return [share if share is None else fitting(share, x, name) for x, share in zip(self.input, shares)]


def recorded(value: np.ndarray, node: Backward) -> Tensor:
    """The result of an operation. It needs a gradient, and keeps the node, if an input of the node needs one."""
    # 10.1: where nobody asks for a gradient, nothing is remembered.
    out = Tensor(value, requires_grad=any(x.requires_grad for x in node.input))
    if out.requires_grad:
        out._grad_fn = node
    return out


def unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a transposed gradient over what broadcasting has added to an input of that shape. Returns shape[::-1]."""
    turned = shape[::-1]
    if gradient.shape == turned:
        return gradient
    # 10.6: NumPy lines up axes from the right, so here, where all is turned, the added ones stand at the end.
    added = range(len(turned), gradient.ndim)
    stretched = [axis for axis, size in enumerate(turned) if size == 1]
    return gradient.sum(axis=(*stretched, *added)).reshape(turned)  # reshape brings back the axes of size 1


Function = TypeVar("Function", bound=Callable)


def operation(function: Function) -> Function:
    """Make a function of a Tensor a method too: `exp(x)` and `x.exp()`."""
    setattr(Tensor, function.__name__, function)
    return function


# The operations: for each a node, and the function that leaves it behind.


class AddBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        x, y = self.input
        # 10.2: both terms of a sum get what arrives.
        return [
            Tensor(unbroadcast(gradient.value, x.shape)) if x.requires_grad else None,
            Tensor(unbroadcast(gradient.value, y.shape)) if y.requires_grad else None,
        ]


@operation
def add(x: Any, y: Any) -> Tensor:
    """x + y, element by element; they broadcast. One of them may be a number or an array."""
    x, y = as_tensor(x, like=y), as_tensor(y, like=x)
    return recorded(x.value + y.value, AddBackward(x, y))


class MulBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        x, y = self.input
        # 10.3: the factor is the partner. Only turned back does the gradient meet it as the operands met.
        upstream = gradient.value.T
        return [
            Tensor(unbroadcast((upstream * y.value).T, x.shape)) if x.requires_grad else None,
            Tensor(unbroadcast((upstream * x.value).T, y.shape)) if y.requires_grad else None,
        ]


@operation
def mul(x: Any, y: Any) -> Tensor:
    """x * y, element by element; they broadcast. One of them may be a number or an array."""
    x, y = as_tensor(x, like=y), as_tensor(y, like=x)
    return recorded(x.value * y.value, MulBackward(x, y))


class MatMulBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        a, b = self.input
        # 10.4: shapes (k, m) @ (m, n) and (m, n) @ (n, k): in this layout nothing has to be turned.
        return [
            Tensor(b.value @ gradient.value) if a.requires_grad else None,
            Tensor(gradient.value @ a.value) if b.requires_grad else None,
        ]


@operation
def matmul(a: Any, b: Any) -> Tensor:
    """The product of two matrices: shapes (n, k) @ (k, m) give (n, m). Raises ValueError for other shapes."""
    a, b = as_tensor(a, like=b), as_tensor(b, like=a)
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"@ takes two matrices, shapes (n, k) and (k, m), not {a.shape} and {b.shape}")
    return recorded(a.value @ b.value, MatMulBackward(a, b))


class SumBackward(Backward):
    def __init__(self, x: Tensor, axis: tuple[int, ...], keepdims: bool):
        super().__init__(x)
        self.axis, self.keepdims = axis, keepdims

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        (x,) = self.input
        # 10.7: every number gets what arrives at its sum. Axis i of x is axis ndim - 1 - i of what is turned.
        arrives = gradient.value
        if not self.keepdims:
            arrives = np.expand_dims(arrives, [x.value.ndim - 1 - axis for axis in self.axis])
        return [Tensor(np.broadcast_to(arrives, x.shape[::-1]))]


@operation
def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Sum over axes. With keepdims they stay, with size 1. Raises ValueError for an axis that x does not have."""
    x = as_tensor(x)
    axis = axes_of(axis, x)
    return recorded(np.sum(x.value, axis=axis, keepdims=keepdims), SumBackward(x, axis, keepdims))


class HypotBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        x, y = self.input
        # 10.8: the slope is a short side divided by the long one.
        upstream, long = gradient.value.T, np.hypot(x.value, y.value)
        return [
            Tensor(unbroadcast((upstream * (x.value / long)).T, x.shape)) if x.requires_grad else None,
            Tensor(unbroadcast((upstream * (y.value / long)).T, y.shape)) if y.requires_grad else None,
        ]


@operation
def hypot(x: Any, y: Any) -> Tensor:
    """sqrt(x * x + y * y), the long side of a right-angled triangle with short sides x and y, element by element.

    They broadcast. One of them may be a number or an array. Where both are 0 there is no slope: it is nan.
    """
    # 10.8: both as Tensors; then the long side, recorded.
    x, y = as_tensor(x, like=y), as_tensor(y, like=x)
    return recorded(np.hypot(x.value, y.value), HypotBackward(x, y))


# Given from here on, and built in the same way.


class TransposeBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        return [Tensor(gradient.value.T)]


@operation
def transpose(x: Any) -> Tensor:
    """x with its axes in reverse order."""
    x = as_tensor(x)
    return recorded(x.value.T, TransposeBackward(x))


class DivBackward(Backward):
    def __init__(self, x: Tensor, divisor: np.ndarray):
        super().__init__(x)
        self.divisor = divisor

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        (x,) = self.input
        return [Tensor(unbroadcast((gradient.value.T / self.divisor).T, x.shape))]


@operation
def div(x: Any, y: Any) -> Tensor:
    """x / y, element by element; they broadcast. y is a number or an array: by a Tensor there is no node yet."""
    x = as_tensor(x)
    if isinstance(y, Tensor):
        raise TypeError("division by a Tensor has no node: divide by a number or an array (its numbers are in .value)")
    divisor = as_tensor(y, like=x).value
    return recorded(x.value / divisor, DivBackward(x, divisor))


class ExpBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        (x,) = self.input
        return [Tensor((gradient.value.T * np.exp(x.value)).T)]


@operation
def exp(x: Any) -> Tensor:
    """e ** x, element by element."""
    x = as_tensor(x)
    return recorded(np.exp(x.value), ExpBackward(x))


class AbsBackward(Backward):
    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        (x,) = self.input
        return [Tensor((gradient.value.T * np.sign(x.value)).T)]


@operation
def abs(x: Any) -> Tensor:
    """The absolute value, element by element. Its slope at 0 is taken as 0."""
    x = as_tensor(x)
    return recorded(np.abs(x.value), AbsBackward(x))


class MaxBackward(Backward):
    def __init__(self, x: Tensor, axis: tuple[int, ...]):
        super().__init__(x)
        self.axis = axis

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        (x,) = self.input
        largest = np.max(x.value, axis=self.axis, keepdims=True)
        winners = x.value == largest  # several that are equally large share
        part = gradient.value.T.reshape(largest.shape) / winners.sum(axis=self.axis, keepdims=True)
        return [Tensor((winners * part).T)]


@operation
def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest number along axes. Raises ValueError for an axis that x does not have, or that is empty."""
    x = as_tensor(x)
    axis = axes_of(axis, x)
    return recorded(np.max(x.value, axis=axis, keepdims=keepdims), MaxBackward(x, axis))


@operation
def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest number along axes, as `max` has the largest."""
    return -max(-as_tensor(x), axis, keepdims)


Tensor.__add__ = Tensor.__radd__ = add
Tensor.__mul__ = Tensor.__rmul__ = mul
Tensor.__matmul__, Tensor.__rmatmul__ = matmul, lambda b, a: matmul(a, b)
Tensor.__neg__ = lambda x: mul(x, -1.0)
Tensor.__sub__, Tensor.__rsub__ = lambda x, y: add(x, -as_tensor(y, like=x)), lambda y, x: add(-y, x)
Tensor.__truediv__ = div


# Without a node: these results need no gradient, and none goes back through them. What is chosen or compared moves in
# jumps. diag and var do have slopes, but nobody has written their nodes.


def without_node(function: Callable) -> Callable[..., Tensor]:
    """A function of NumPy for a Tensor, with the same further arguments."""

    def constant(x: Any, *arguments: Any, **options: Any) -> Tensor:
        return Tensor(function(as_tensor(x).value, *arguments, **options))

    constant.__name__ = function.__name__
    return operation(constant)


def comparison(holds: Callable) -> Callable[..., Tensor]:
    """An operator that gives 1 where two numbers compare so, and 0 elsewhere."""
    return lambda x, y: Tensor(holds(x.value, as_tensor(y, like=x).value).astype(x.value.dtype))


argmax, median, diag, var = map(without_node, (np.argmax, np.median, np.diag, np.var))
Tensor.__gt__, Tensor.__ge__ = comparison(np.greater), comparison(np.greater_equal)
Tensor.__lt__, Tensor.__le__ = comparison(np.less), comparison(np.less_equal)


# Plumbing: operands, the start and the order of backward(), and whether a gradient fits.


def as_tensor(x: Any, like: Any = None) -> Tensor:
    """x itself if it is a Tensor, else a constant that holds it, in the dtype of `like` if that is a Tensor."""
    if isinstance(x, Tensor):
        return x
    array = as_float_array(x)
    return Tensor(array.astype(like.value.dtype) if isinstance(like, Tensor) else array)


def axes_of(axis: Axis, x: Tensor) -> tuple[int, ...]:
    """All the axes that are meant, counted from 0. Raises ValueError for one that x does not have."""
    return axes(axis, x.shape)


def first_gradient(result: Tensor, gradient: Any) -> Tensor:
    """The gradient that backward() of a result starts with. Raises as `Tensor.backward` does."""
    if not result.requires_grad:
        raise ValueError("backward() of a Tensor that needs no gradient: nothing it was made of has requires_grad=True")
    if gradient is None and result.value.size != 1:
        raise ValueError(f"backward() starts at one number, not at shape {result.shape}: sum it, or give a gradient")
    gradient = Tensor(np.ones(result.shape)) if gradient is None else as_tensor(gradient)
    return fitting(gradient, result, "backward()")


def fitting(gradient: Tensor, x: Tensor, whose: str) -> Tensor:
    """The gradient in the dtype of x. Raises TypeError or ValueError if it is no Tensor of shape x.shape[::-1]."""
    if not isinstance(gradient, Tensor):
        raise TypeError(f"{whose}: a gradient has to be a Tensor, and this is of type {type(gradient).__name__}")
    if gradient.shape != x.shape[::-1]:
        problem = f"{whose}: a gradient of shape {gradient.shape} does not fit a Tensor of shape {x.shape}"
        raise ValueError(f"{problem}: carried transposed, it has shape {x.shape[::-1]}")
    return Tensor(gradient.value.astype(x.value.dtype, copy=False))


def users_first(result: Tensor) -> list[Tensor]:
    """Every tensor that a result was computed from and that needs a gradient, after all that were computed from it."""
    order, seen, stack = [], set(), [result]
    while stack:
        tensor = stack.pop()
        if tensor is None:  # the mark on top of a tensor whose inputs are all in `order`
            order.append(stack.pop())
        elif tensor not in seen:
            seen.add(tensor)
            inputs = tensor._grad_fn.input if tensor._grad_fn is not None else []
            stack += (tensor, None, *[x for x in inputs if x.requires_grad])
    return order[::-1]
