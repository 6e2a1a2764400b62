"""The operators as functions and methods: `add(a, b)` and `a.add(b)` are a + b. There is nothing to fill in here."""

from typing import Any

from meintorch.matmul import pair
from meintorch.tensor import Tensor, as_tensor, operation

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
    """a / b"""
    a, b = pair(a, b)
    return a / b


@operation
def negate(x: Any) -> Tensor:
    """-x"""
    return -as_tensor(x)
