"""What is asked of arguments, in one place for all modules. There is nothing to fill in here."""

import operator
from numbers import Real
from typing import Any

import numpy as np


def whole(n: Any, name: str, least: int = 1) -> int:
    """`n` as an int. Raises TypeError unless it is a whole number (True is none, nor is 2.0), ValueError below `least`."""
    try:
        number = operator.index(n)
    except TypeError:
        number = None
    if number is None or isinstance(n, bool | np.bool_ | np.ndarray):
        raise TypeError(f"{name} is a whole number, not {n!r} of type {type(n).__name__}")
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")
    return number


def number(x: Any, name: str) -> float:
    """`x` as a plain float, which leaves float32 as it is. Raises TypeError for what is no real number, as "0.1"."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    if not isinstance(x, Real) or isinstance(x, bool | np.bool_):
        raise TypeError(f"{name} is a number, not {x!r} of type {type(x).__name__}")
    return float(x)


def float_dtype(dtype: Any) -> np.dtype:
    """`dtype` as NumPy's. Raises TypeError unless it is float64 or float32: a Tensor holds nothing else."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise TypeError(f"a dtype is np.float64 or np.float32, not {dtype!r}")
    return found


def generator(rng: Any) -> np.random.Generator:
    """A generator of random numbers: `rng` itself if it is one, else one made of the seed `rng`; new luck for None.

    What np.random.default_rng takes, other than text. Raises TypeError for anything else, ValueError for a seed below 0.
    """
    if not isinstance(rng, str | bytes | bool | np.bool_):
        try:
            return np.random.default_rng(rng)
        except ValueError:
            raise ValueError(f"a seed is a whole number from 0, not {rng!r}") from None
        except TypeError:
            pass
    raise TypeError(f"rng is a seed or a np.random.Generator, not {rng!r} of type {type(rng).__name__}")
