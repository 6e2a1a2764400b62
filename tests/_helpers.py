"""The checks that the milestone tests are made of.

A check that fails raises CheckFailed: its text is the evidence, its diagnosis the likely cause. A cause is named only
where a second probe has told it from its rivals; otherwise the evidence has to speak for itself.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np


class CheckFailed(AssertionError):
    """A learner's result is not what it should be."""

    is_check = True  # the grader shows the text as it is, without a Python traceback

    def __init__(self, message: str, diagnosis: str | None = None):
        super().__init__(message)
        self.diagnosis = diagnosis


Probe = Callable[[np.ndarray, np.ndarray], str | None]


def check_close(actual, expected, what: str, tolerance: float = 1e-9, probe: Probe | None = None) -> None:
    """Compare a number or an array with what it should be: first its shape and dtype, then its numbers.

    what   the name of the thing in the message: "x.grad", "the score"
    probe  called with both arrays if the numbers differ; returns the cause in a sentence, or None
    """
    if not isinstance(actual, float | np.ndarray | np.floating):
        message = f"{what} is {_show(actual)} of type {type(actual).__name__}, expected {_show(expected)}"
        raise CheckFailed(
            message, "A plain number belongs there: is a .data missing?" if hasattr(actual, "data") else None
        )
    actual_array, expected_array = np.asarray(actual), np.asarray(expected, dtype=np.asarray(actual).dtype)
    if actual_array.shape != expected_array.shape:
        message = f"{what} has shape {actual_array.shape}, expected {expected_array.shape}"
        raise CheckFailed(message, explain_shape(actual_array.shape, expected_array.shape))
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray) and actual.dtype != expected.dtype:
        raise CheckFailed(f"{what} is {actual.dtype}, expected {expected.dtype}", "Numbers were promoted on the way.")
    different = ~np.isclose(actual_array, expected_array, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not different.any():
        return
    diagnosis = _ask(probe, actual_array, expected_array) or explain_numbers(actual_array, expected_array)
    raise CheckFailed(f"{what} is {_show(actual)}, expected {_show(expected)}", diagnosis)


def check_grad(x, expected, of: str, at: str, name: str = "x", probe: Probe | None = None) -> None:
    """Check the gradient of a Value (a float) or of a Tensor (an array of its shape and dtype).

    of, at, name  how the message speaks of it: "y = x * x at x = 3: x.grad is 3.0, expected 6.0"
    """
    if hasattr(x, "shape"):
        expected = np.broadcast_to(np.asarray(expected, dtype=x.dtype), x.shape) if np.ndim(expected) == 0 else expected
        expected = np.array(expected, dtype=x.dtype)
    check_close(x.grad, expected, f"y = {of} at {at}:\n{name}.grad", probe=probe)


def check_rule(out, upstream, inputs: dict, expected: Sequence, of: str, probe: Probe | None = None) -> None:
    """Call a result's own backward rule with `upstream` and check what arrives at each of its inputs.

    inputs  the inputs by name: {"a": a, "b": b}
    """
    values = ", ".join(f"{name} = {_show(x.data)}" for name, x in inputs.items())
    try:
        out._backward(upstream)
    except NotImplementedError:
        raise
    except Exception as error:
        error.diagnosis = _ask(probe, None, None)  # the grader shows it below the error
        raise
    at = f"{values}, upstream {_show(upstream)}"
    for (name, x), wanted in zip(inputs.items(), expected, strict=True):
        check_grad(x, wanted, of=of, at=at, name=name, probe=probe)


def used_twice(rule: Callable, a, b, wanted_a: float, wanted_b: float, one) -> Probe:
    """The second probe for an operation `rule(x, x)` whose gradient came out too small.

    Was one contribution overwritten, or was it never made? With two different inputs nothing can be overwritten: if
    the rule is right there, an `=` stands where `+=` belongs. If not, it shows which side is missing.
    """

    def probe(actual, expected):
        rule(a, b)._backward(one)
        got = [float(np.max(a.grad)), float(np.max(b.grad))]
        if np.allclose(got, [wanted_a, wanted_b]):
            return (
                "With two different inputs both gradients are right, so one contribution was overwritten by the other. "
                "Is there an = where += belongs?"
            )
        missing = [side for side, value in zip(("left", "right"), got) if value == 0.0]
        if len(missing) == 1:
            return f"With two different inputs the {missing[0]} one gets no gradient at all: its line is missing."
        return None

    return probe


def check_gradient(function: Callable, *arrays: np.ndarray, name: str, make: Callable, seed: int = 0) -> None:
    """Compare the gradient of every input of `function` with a central difference (step 1e-6, tolerance 1e-5).

    function  takes a tensor for each array and returns a tensor
    make      turns an array into a tensor: the learner's Tensor

    The result is weighted with random numbers, so that no two of its elements count the same.
    """
    inputs = [make(array.copy()) for array in arrays]
    out = function(*inputs)
    weights = np.asarray(np.random.default_rng(seed).standard_normal(out.shape))
    out.backward(weights)
    shapes = ", ".join(str(array.shape) for array in arrays)
    for index, (x, array) in enumerate(zip(inputs, arrays, strict=True)):
        check_close(x.data, array, f"{name} of shapes {shapes}:\nafter backward(), the data of input {index + 1}")
        numeric = np.empty_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [other.copy() for other in arrays]
                moved[index][place] += step
                ends.append(np.sum(weights * function(*[make(other) for other in moved]).data))
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        what = f"{name} of shapes {shapes}:\nthe gradient of input {index + 1} (against a central difference)"
        check_close(x.grad, numeric, what, tolerance=1e-5)


def check_binary_gradient(function: Callable, a_shape: tuple, b_shape: tuple, name: str, make: Callable) -> None:
    """`check_gradient` for a function of two inputs, on random arrays of the given shapes."""
    rng = np.random.default_rng(len(a_shape) * 10 + len(b_shape))
    a, b = (np.asarray(rng.standard_normal(shape)) for shape in (a_shape, b_shape))
    check_gradient(function, a, b, name=name, make=make)


def check_derivative(function: Callable, numbers: Sequence[float], name: str, make: Callable) -> None:
    """Compare the gradients of a function of Values with central differences (step 1e-6, tolerance 1e-5)."""
    values = [make(number) for number in numbers]
    function(*values).backward()
    for index, value in enumerate(values):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [number + step * (i == index) for i, number in enumerate(numbers)]
            ends.append(function(*[make(number) for number in moved]).data)
        numeric = (ends[0] - ends[1]) / 2e-6
        what = f"{name} at {', '.join(f'{number:.4g}' for number in numbers)}:\nthe gradient of input {index + 1}"
        check_close(value.grad, numeric, f"{what} (against a central difference)", tolerance=1e-5)


# What the evidence says. Pure functions of what came out and what should have.


def explain_shape(actual: tuple, expected: tuple) -> str | None:
    if actual == expected[::-1]:
        return "The shape is the right one turned around: is a transpose missing, or one too many?"
    padded = (1,) * (len(actual) - len(expected)) + expected
    if len(padded) == len(actual) and all(a == b or b == 1 for a, b in zip(actual, padded)):
        return "It still has the shape that broadcasting stretched it to."
    if actual == tuple(size for size in expected if size != 1):
        return "An axis of size 1 was lost: a sum drops the axis that it sums over, unless keepdims=True."
    return None


def explain_numbers(actual: np.ndarray, expected: np.ndarray) -> str | None:
    """One sentence on how the two differ, where they differ in a simple way."""
    if not np.isfinite(actual).all() and np.isfinite(expected).all():
        return f"There is {'a nan' if np.isnan(actual).any() else 'an inf'} where a finite number belongs."
    if not actual.any():
        return "Nothing has arrived: it is still zero."
    if np.allclose(actual, -expected):
        return "The size is right and the sign is wrong."
    if expected.ndim == 2 and actual.shape == expected.T.shape and np.allclose(actual, expected.T):
        return "These are the right numbers, transposed."
    nonzero = expected != 0.0
    if nonzero.any() and not actual[~nonzero].any():
        factors = actual[nonzero] / expected[nonzero]
        factor = float(factors.flat[0])
        if np.allclose(factors, factor) and math.isfinite(factor) and expected.size > 0:
            return f"It is {_factor(factor)} what it should be."
    return None


def _factor(factor: float) -> str:
    if math.isclose(factor, 0.5):
        return "half of"
    if math.isclose(factor, round(factor)):
        return f"{round(factor)} times"
    return f"{factor:.4g} times"


def _ask(probe: Probe | None, actual: np.ndarray, expected: np.ndarray) -> str | None:
    """A probe runs learners' code, which may fail in its own way: then there is no second evidence."""
    if probe is None:
        return None
    try:
        return probe(actual, expected)
    except Exception:
        return None


def _show(value) -> str:
    """A number or an array, short enough for a line or two."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.10g}" if not float(value).is_integer() or abs(value) > 1e6 else f"{float(value):.1f}"
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _show(float(value))
        text = np.array2string(value, precision=6, separator=", ", threshold=24, edgeitems=2, max_line_width=10_000)
        return " ".join(text.split())
    return repr(value)[:80]
