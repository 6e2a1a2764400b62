"""Chapter 09: when a graph is recorded, and what is kept of it.

Whether operations record, `mode.recording`, is kept in tensor.py, for each thread apart: the constructor of Tensor asks
for it. Here stands what switches it, and two functions for a tensor that is to be left out, or to be looked at.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from meintorch.tensor import Tensor, as_tensor, mode, operation


class _NeedsBrackets(type):
    """What no_grad is, without its brackets: nothing to enter."""

    def __enter__(cls) -> None:
        raise TypeError(f"a class is no context manager, an object is one: `with {cls.__name__}():`, with brackets")

    def __exit__(cls, *problem: object) -> None:
        pass


class GradMode(metaclass=_NeedsBrackets):
    """Sets for a while whether operations record a graph: in a `with` block or, as a decorator, in every call.

    Afterwards it is again as it was before, also where an exception ends the block. Other threads are not concerned. An
    object may be entered again before it is left. As a decorator it does without its brackets too.

    Raises TypeError for anything to decorate but a function: the body of a generator runs after the call.
    """

    recording = True  # what no_grad and enable_grad differ in

    def __new__(cls, function: Callable | None = None) -> Any:
        """`@no_grad` without brackets is `no_grad()(function)`."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        self.before: list[bool] = []  # what mode.recording was on entering, for each time that has not been left yet

    def __enter__(self) -> None:
        # TODO 09.1: remember how it was, then switch.
        raise NotImplementedError("TODO 09.1")

    def __exit__(self, *problem: object) -> None:
        # TODO 09.2: as it was before, whether the block came to its end or an exception ended it.
        raise NotImplementedError("TODO 09.2")

    def __call__(self, function: Callable) -> Callable:
        """A function that does what `function` does, in this mode."""
        check_function(function, type(self).__name__)

        # TODO 09.3: the switch belongs to the call; an object of its own for each, since calls may overlap.
        raise NotImplementedError("TODO 09.3")


class no_grad(GradMode):
    """No graph: `with no_grad():`, or `@no_grad()` above a function. Results need no gradient and hold no inputs.

    Tensors that are made from numbers, such as a layer's parameters, are not concerned.
    """

    recording = False


class enable_grad(GradMode):
    """A graph again, inside of `no_grad`: `with enable_grad():`, or `@enable_grad()` above a function."""

    recording = True


def check_function(function: Any, name: str) -> None:
    """Can it be decorated, so that what it does happens during the call?"""
    if inspect.isclass(function) or not callable(function):
        raise TypeError(f"@{name} goes above a function or a method, and {function!r} is none")
    lazy = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if any(is_lazy(function) for is_lazy in lazy):
        raise TypeError(
            f"@{name} switches during a call, and {function.__name__} only begins its work afterwards: put "
            f"`with {name}():` around the part of its body that it is meant for"
        )


def is_grad_enabled() -> bool:
    """Do operations record a graph now, in this thread?"""
    return mode.recording


@operation
def detach(x: Tensor) -> Tensor:
    """The numbers of x without their past: a constant, through which no gradient goes back. It shares x's memory."""
    x = as_tensor(x)
    # TODO 09.4: a new tensor around the same array.
    raise NotImplementedError("TODO 09.4")


@operation
def retain_grad(x: Tensor) -> Tensor:
    """Keep x.grad after backward(), though x is no input but was computed. Returns x.

    It holds what arrived in the last walk. Raises RuntimeError if x needs no gradient.
    """
    if not x.requires_grad:
        raise RuntimeError("retain_grad() has nothing to keep: no gradient arrives at a Tensor that needs none")
    # TODO 09.5: mark it, and hand it on.
    raise NotImplementedError("TODO 09.5")
