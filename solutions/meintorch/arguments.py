"""What is asked of arguments, in one place for all modules. There is nothing to fill in here."""

import operator
import sys
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np


def shown(x: Any) -> str:
    """A wrong argument as a message names it: what it is if that is short, and its type."""
    text, kind = " ".join(repr(x).split()), type(x).__name__
    if len(text) <= 60:
        return f"{text} of type {kind}"
    return f"a {kind} of shape {x.shape}" if hasattr(x, "shape") else f"something of type {kind}"


def whole(n: Any, name: str, least: int = 1) -> int:
    """`n` as an int.

    Raises TypeError unless it is a whole number (True is none, nor is 2.0), ValueError if it is below `least`.
    """
    try:
        found = operator.index(n)
    except TypeError:
        found = None
    if found is None or isinstance(n, bool | np.bool_ | np.ndarray):
        raise TypeError(f"{name} is a whole number, not {shown(n)}")
    if found < least:
        raise ValueError(f"{name} is at least {least}, not {found}")
    return found


def as_number(x: Any, name: str) -> float:
    """`x` as a plain float, which leaves float32 as it is.

    Raises TypeError for what is no real number, as "0.1", and ValueError for an integer that no float can hold.
    """
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    if not isinstance(x, Real) or isinstance(x, bool | np.bool_):
        raise TypeError(f"{name} is a number, not {shown(x)}")
    try:
        return float(x)
    except OverflowError:
        raise ValueError(f"{name} is a float, and they end at 1.8e308: {shown(x)} is larger") from None


def as_numbers(value: Any) -> np.ndarray | None:
    """An array of real numbers; None for what is none."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in "fiub" else None


def axes(axis: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """All the axes that are meant, counted from 0: one, several, or with None all that an array of that shape has.

    Raises TypeError unless they are whole numbers, np.exceptions.AxisError (an IndexError and a ValueError) for one
    that there is not, and ValueError if one is named twice.
    """
    if axis is None:
        return tuple(range(len(shape)))
    given = axis.tolist() if isinstance(axis, np.ndarray) else axis
    several = given if isinstance(given, Iterable) else (given,)
    found = tuple(whole(one, "an axis", least=-sys.maxsize) for one in several)
    for one in found:
        if not -len(shape) <= one < len(shape):
            raise np.exceptions.AxisError(f"axis {one} is out of bounds for shape {shape}")
    found = tuple(one % len(shape) for one in found)
    if len(set(found)) < len(found):
        raise ValueError(f"axis {axis} names an axis of shape {shape} twice")
    return found


def float_dtype(dtype: Any) -> np.dtype:
    """`dtype` as NumPy's; None stands for float64. Raises TypeError unless it is float64 or float32, as Tensors are."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.float64, np.float32):
        raise TypeError(f"a dtype is np.float64 or np.float32, not {dtype!r}")
    return found


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """A generator of random numbers: `rng` itself if it is one, else one made of the seed `rng`; new luck for None.

    Takes what np.random.default_rng takes. Raises TypeError for anything else, ValueError for a seed below 0.
    """
    if not isinstance(rng, str | bytes | bool | np.bool_):
        try:
            return np.random.default_rng(rng)
        except ValueError:
            raise ValueError(f"{name} is a seed from 0 or a np.random.Generator, not {shown(rng)}") from None
        except TypeError:
            pass
    raise TypeError(f"{name} is a seed (a whole number) or a np.random.Generator, not {shown(rng)}")
