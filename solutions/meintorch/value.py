"""Chapter 01: a number that remembers where it came from.

Every operation on a `Value` makes a new `Value` that knows its inputs (`_children`) and how to hand a gradient on to
them (`_backward`). `backward()` walks that graph once, from the result to the inputs.
"""

import math
from numbers import Real
from typing import Any


def as_value(x: "Value | float") -> "Value":
    """Return `x` itself if it is a `Value`, else a new `Value` that holds the number `x`.

    Raises TypeError if `x` is neither a `Value` nor a real number.
    """
    return x if isinstance(x, Value) else Value(x)


def as_float(number: Real) -> float:
    """A real number as a Python float. Raises ValueError if it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        raise ValueError("a float ends at 1.8e308, and this number is larger") from None


def _leaf(upstream: float) -> None:
    """The backward rule of a value that nothing was computed from: there is nobody to hand the gradient on to."""


def _from_copy(data: float, grad: float) -> "Value":
    value = Value(data)
    value.grad = grad
    return value


class Value:
    """A real number in a graph of computations.

    data       the number, a Python float (an integer is converted)
    grad       d(result) / d(this value), once `result.backward()` has run; 0.0 before
    _children  the values this one was computed from
    _op        the operation that made it, "" for an input
    _backward  takes d(result) / d(this value) and adds to the children's `grad` what is theirs

    Raises TypeError if `data` is not a real number: strings, complex numbers and arrays are refused. Raises ValueError
    for an integer that is too large for a float.
    """

    # Thousands of these are made in a training step: slots make each smaller, and a step a fifth faster.
    __slots__ = ("data", "grad", "_children", "_op", "_backward", "__weakref__")
    __array_ufunc__ = None  # so that np.float64(2) * value asks Value.__rmul__ instead of making an array

    def __init__(self, data: float, _children: tuple["Value", ...] = (), _op: str = ""):
        if type(data) is not float:
            if not isinstance(data, Real):
                raise TypeError(f"Value holds one real number, not {data!r} of type {type(data).__name__}")
            data = as_float(data)
        self.data = data
        self.grad = 0.0
        self._children = _children
        self._op = _op
        self._backward = _leaf

    def __repr__(self) -> str:
        return f"Value({self.data})"

    def __float__(self) -> float:
        return self.data

    def __bool__(self) -> bool:
        return self.data != 0.0

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """How copy and pickle make another one, of an input. A computed one cannot be copied without its graph."""
        if self._children:
            raise TypeError(f"{self!r} was computed: copy Value(x.data), or copy the inputs and compute it again")
        return _from_copy, (self.data, self.grad)

    def __add__(self, other: "Value | float") -> "Value":
        other = as_value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward(upstream):
            # 01.1: a sum moves exactly as much as each of its terms.
            self.grad += upstream
            other.grad += upstream

        out._backward = _backward
        return out

    def __mul__(self, other: "Value | float") -> "Value":
        other = as_value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward(upstream):
            # 01.2: the product rule - the partner is the local factor.
            self.grad += other.data * upstream
            other.grad += self.data * upstream

        out._backward = _backward
        return out

    def __pow__(self, exponent: float) -> "Value":
        """Raise to a power that is a plain number, so that one rule is enough.

        Raises TypeError for any other exponent, and ValueError where the result is not a real number.
        """
        if not isinstance(exponent, Real):
            raise TypeError(f"Value ** exponent takes a plain number as exponent, not {exponent!r}")
        exponent = as_float(exponent)  # with a NumPy number there would be a nan, and no error
        result = self.data**exponent
        if isinstance(result, complex):
            raise ValueError(f"{self.data} ** {exponent} is not a real number")
        out = Value(result, (self,), "**")

        def _backward(upstream):
            # 01.3: the power rule, n * x ** (n - 1). x ** 0 is 1 everywhere, and 0 ** -1 would be an error.
            if exponent != 0.0:
                self.grad += exponent * self.data ** (exponent - 1.0) * upstream

        out._backward = _backward
        return out

    def __truediv__(self, other: "Value | float") -> "Value":
        """Given. Not self * other ** -1, which rounds twice: 49 / 49 would not be 1."""
        other = as_value(other)
        out = Value(self.data / other.data, (self, other), "/")

        def _backward(upstream):
            self.grad += upstream / other.data
            other.grad -= upstream * (self.data / other.data / other.data)

        out._backward = _backward
        return out

    def exp(self) -> "Value":
        """e ** self."""
        result = math.exp(self.data)
        out = Value(result, (self,), "exp")

        def _backward(upstream):
            # 01.4: exp is its own derivative.
            self.grad += result * upstream

        out._backward = _backward
        return out

    def tanh(self) -> "Value":
        """The hyperbolic tangent: an S-shaped curve from -1 to 1."""
        result = math.tanh(self.data)
        out = Value(result, (self,), "tanh")

        def _backward(upstream):
            # 01.4: the slope of tanh is 1 - tanh ** 2, and tanh is known already.
            self.grad += (1.0 - result * result) * upstream

        out._backward = _backward
        return out

    def relu(self) -> "Value":
        """self where it is positive, else 0."""
        out = Value(0.0 if self.data <= 0.0 else self.data, (self,), "relu")  # nan stays nan

        def _backward(upstream):
            # 01.5: slope 1 where the input passed, 0 where it was held back.
            if self.data > 0.0:
                self.grad += upstream

        out._backward = _backward
        return out

    def backward(self) -> None:
        """Add d(self) / d(v) to `v.grad` for every value `v` that self was computed from, and for self."""
        # 01.6: children before parents, seed, then backwards through that order.
        order, seen, stack = [], set(), [self]
        # A stack and no recursion, since a long sum is deeper than the 1,000 nested calls that Python allows. The mark
        # None on top of a value says that all its children are in `order` once it comes off.
        while stack:
            value = stack.pop()
            if value is None:
                order.append(stack.pop())
            elif value not in seen:
                seen.add(value)
                stack += (value, None, *value._children)
        self.grad += 1.0
        for value in reversed(order):
            value._backward(value.grad)

    # Derived from the operations above, so that their gradients come for free.

    def __neg__(self) -> "Value":
        return self * -1.0

    def __sub__(self, other: "Value | float") -> "Value":
        return self + -as_value(other)

    def __radd__(self, other: float) -> "Value":
        return self + other

    def __rmul__(self, other: float) -> "Value":
        return self * other

    def __rsub__(self, other: float) -> "Value":
        return as_value(other) - self

    def __rtruediv__(self, other: float) -> "Value":
        return as_value(other) / self
