"""The checks that the milestone tests are made of.

A check that fails raises CheckFailed: its text is the evidence, its diagnosis the likely cause. A cause is named only
where a second probe has told it from its rivals; otherwise the evidence has to speak for itself.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from numbers import Real

import numpy as np


class CheckFailed(AssertionError):
    """A learner's result is not what it should be."""

    is_check = True  # the grader shows the text as it is, without a Python traceback

    def __init__(self, message: str, diagnosis: str | None = None):
        super().__init__(message)
        self.diagnosis = diagnosis


# A second look, taken only where a check has failed: it returns the cause in a sentence, or None if it cannot tell.
Probe = Callable[[], str | None]


def check_close(actual, expected, what: str, tolerance: float = 1e-9, probe: Probe | None = None) -> None:
    """Compare a number or an array with what it should be: first its shape and dtype, then its numbers.

    what   the name of the thing in the message: "x.grad", "the score"
    probe  asked for the cause if they differ
    """
    if actual is None:
        raise CheckFailed(f"{what} is None, expected {_show(expected)}", "Nothing comes back: is there a return?")
    if not isinstance(actual, Real | np.ndarray):
        message = f"{what} is {_show(actual)} of type {type(actual).__name__}, expected {_show(expected)}"
        plain = "array" if np.ndim(expected) else "number"
        raise CheckFailed(
            message, f"A plain {plain} belongs there: is a .data missing?" if hasattr(actual, "data") else None
        )
    actual_array, expected_array = np.asarray(actual), np.asarray(expected, dtype=np.asarray(actual).dtype)
    if actual_array.shape != expected_array.shape:
        message = f"{what} has shape {actual_array.shape}, expected {expected_array.shape}"
        raise CheckFailed(message, ask(probe) or explain_shape(actual_array.shape, expected_array.shape))
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray) and actual.dtype != expected.dtype:
        raise CheckFailed(f"{what} is {actual.dtype}, expected {expected.dtype}", "Numbers were promoted on the way.")
    different = ~np.isclose(actual_array, expected_array, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not different.any():
        return
    diagnosis = ask(probe) or explain_numbers(actual_array, expected_array, gradient="grad" in what)
    shown, wanted = _show(actual), _show(expected)
    if shown == wanted:
        wanted += f": they differ by up to {np.max(np.abs(actual_array - expected_array)):.2g}"
    raise CheckFailed(f"{what} is {shown}, expected {wanted}", diagnosis)


def check_grad(x, expected, of: str, at: str, name: str = "x", probe: Probe | None = None) -> None:
    """Check the gradient of a Value (a float) or of a Tensor (an array of its shape and dtype).

    of, at, name  how the message speaks of it: "y = x * x at x = 3: x.grad is 3.0, expected 6.0"
    """
    if hasattr(x, "shape"):
        expected = np.broadcast_to(np.asarray(expected, dtype=x.dtype), x.shape) if np.ndim(expected) == 0 else expected
        expected = np.array(expected, dtype=x.dtype)
    check_close(x.grad, expected, f"y = {of} at {at}:\n{name}.grad", probe=probe)


WRITTEN_INTO = "The rule has written into {} own array: another name for it is no copy. Compute a new array."


def check_rule(
    operation: Callable, inputs: dict, upstream, expected: Sequence, of: str, probe: Probe | None = None
) -> None:
    """Call a result's own backward rule with `upstream` and check what arrives at each of its inputs.

    operation  makes the result from the inputs
    inputs     Values or Tensors by name: {"a": a, "b": b}; they may have a gradient already
    """
    before = [np.array(x.grad) for x in inputs.values()]
    at = ", ".join(f"{name} = {_show(x.data)}" for name, x in inputs.items()) + f", upstream {_show(upstream)}"
    if any(gradient.any() for gradient in before):
        at += ", with gradients there already: " + ", ".join(
            f"{name}.grad = {_show(gradient)}" for name, gradient in zip(inputs, before)
        )

    given, untouched = np.array(upstream), dict(zip(inputs, _fresh(inputs)))
    look_again = first_that_tells(
        lambda: _asks_the_result(operation, inputs, upstream),
        lambda: _upstream_forgotten(operation, inputs, upstream),
        lambda: _overwritten(operation, inputs, upstream, expected, before),
        lambda: _left_out(operation, inputs, upstream),
        probe,
    )
    out = operation(*inputs.values())
    result = np.array(out.data)
    explained(lambda: out._backward(upstream), look_again)
    if not np.array_equal(given, upstream):
        message = f"y = {of} at {at}:\nthe rule has changed the upstream gradient itself: now it is {_show(upstream)}"
        raise CheckFailed(message, "That array belongs to others too. Compute a new one from it.")
    for (name, x), wanted in zip(inputs.items(), expected, strict=True):
        check_grad(x, wanted, of=of, at=at, name=name, probe=look_again)
        what = f"y = {of} at {at}:\nafter the rule has run, {name}.data"
        check_close(x.data, untouched[name].data, what, probe=lambda: WRITTEN_INTO.format("the input's"))
    what = f"y = {of} at {at}:\nafter the rule has run, y.data"
    check_close(np.asarray(out.data), result, what, probe=lambda: WRITTEN_INTO.format("the result's"))
    arrays = [given, *[x.grad for x in inputs.values() if isinstance(x.grad, np.ndarray)]]
    if any(np.shares_memory(one, other) for i, one in enumerate(arrays) for other in arrays[:i]) or any(
        np.shares_memory(upstream, one) for one in arrays[1:]
    ):
        message = f"y = {of} at {at}:\ntwo gradients share their memory: adding to one of them changes the other"
        raise CheckFailed(message, "Was an array put into a gradient and not added to it? += makes a new one.")
    # A rule is linear in what arrives: the same with a factor of -1/3, and without gradients to begin with.
    again = _fresh(untouched)
    operation(*again)._backward(upstream * (-1.0 / 3.0))
    at = at.partition(", with gradients there already")[0] + " times -1/3"
    for name, x, wanted, gradient in zip(inputs, again, expected, before):
        check_grad(x, (np.asarray(wanted) - gradient) * (-1.0 / 3.0), of=of, at=at, name=name, probe=probe)


def check_freed(operation: Callable, *inputs, of: str) -> None:
    """A result nobody refers to any more has to be gone at once: its rule must not refer to it."""
    out = operation(*inputs)
    out._backward(np.ones(out.shape) if hasattr(out, "shape") else 1.0)
    watch = weakref.ref(out)
    del out
    if watch() is not None:
        raise CheckFailed(
            f"y = {of}: y stays in memory though nothing refers to it any more, but its own rule",
            "Does the rule mention `out`? That makes a cycle. Use `upstream` and the inputs in its place.",
        )


def _fresh(inputs: dict) -> list:
    """The same inputs once more, without gradients."""
    return [type(x)(np.copy(x.data) if isinstance(x.data, np.ndarray) else x.data) for x in inputs.values()]


def _asks_the_result(operation: Callable, inputs: dict, upstream) -> str | None:
    """Does it make a difference to the rule what the gradient of the result is?"""
    asked, unasked = _fresh(inputs), _fresh(inputs)
    operation(*unasked)._backward(upstream)
    out = operation(*asked)
    out.grad = np.asarray(upstream) * 1.0
    out._backward(upstream)
    if all(np.array_equal(x.grad, y.grad) for x, y in zip(asked, unasked)):
        return None
    return "The rule reads out.grad. What arrives is handed to it: the argument `upstream` stands in its place."


def _upstream_forgotten(operation: Callable, inputs: dict, upstream) -> str | None:
    """With twice the upstream gradient everything has to double."""
    single, double = _fresh(inputs), _fresh(inputs)
    operation(*single)._backward(upstream)
    operation(*double)._backward(upstream * 2.0)
    same = [
        np.any(x.grad) and np.isfinite(x.grad).all() and np.allclose(x.grad, y.grad) for x, y in zip(single, double)
    ]
    if any(same):
        name = list(inputs)[same.index(True)]
        return f"Twice the upstream gradient makes no difference to {name}: `upstream` is not multiplied in."
    return None


def _left_out(operation: Callable, inputs: dict, upstream) -> str | None:
    """Does one input get its gradient, and the other nothing at all?"""
    again = _fresh(inputs)
    operation(*again)._backward(upstream)
    nothing = [name for name, x in zip(inputs, again) if not np.any(x.grad)]
    if len(nothing) == 1 and len(inputs) == 2:
        return f"Nothing at all arrives at {nothing[0]}, at the first call either: its line is missing."
    return None


def _overwritten(operation: Callable, inputs: dict, upstream, expected: Sequence, before: list) -> str | None:
    """Is everything right as long as there is no gradient to begin with?"""
    again = _fresh(inputs)
    operation(*again)._backward(upstream)
    if any(gradient.any() for gradient in before) and all(
        np.allclose(x.grad, np.asarray(wanted) - gradient) for x, wanted, gradient in zip(again, expected, before)
    ):
        return "Without a gradient there it is right, so what was there was overwritten: an = where += belongs?"
    return None


def used_twice(operation: Callable, a, b, upstream, wanted_a, wanted_b) -> Probe:
    """The second look at an operation on one and the same input, `x * x`, whose gradient came out too small.

    Was one contribution overwritten, or was it never made? With two different inputs nothing can be overwritten: if
    the rule is right there, an `=` stands where `+=` belongs. If not, it shows which side is missing.
    """

    def probe():
        operation(a, b)._backward(upstream)
        if np.allclose(a.grad, wanted_a) and np.allclose(b.grad, wanted_b):
            b.grad = b.grad * 3.0
            operation(a, b)._backward(upstream)  # on top of what is there now
            if np.allclose(a.grad, np.multiply(wanted_a, 2.0)) and np.allclose(b.grad, np.multiply(wanted_b, 4.0)):
                return (
                    "With two different inputs both gradients are right, and nothing is overwritten. Where both are "
                    "one and the same, only one of its two uses counts: it has a share for each."
                )
            return (
                "With two different inputs both gradients are right, so one contribution was overwritten by the other. "
                "Is there an = where += belongs?"
            )
        missing = [side for side, x in (("left", a), ("right", b)) if not np.any(x.grad)]
        if len(missing) == 1:
            return f"With two different inputs the {missing[0]} one gets no gradient at all: its line is missing."
        return None

    return probe


def which_formula(look: Callable, ways: dict) -> Probe:
    """The second look at a rule or a formula: does the learner's code do, on other numbers, what a known mistake does?

    look  runs the learner's code on those numbers
    ways  maps a mistake, in a sentence, to what it would give there; it is named if it is the only one that fits
    """

    def probe():
        found = np.asarray(look())
        fitting = [way for way, value in ways.items() if np.shape(value) == found.shape and np.allclose(found, value)]
        return fitting[0] if len(fitting) == 1 else None

    return probe


def ask(*probes: Probe | None) -> str | None:
    """The cause from the first probe that can tell. One runs learners' code: where that fails, it tells nothing."""
    for probe in filter(None, probes):
        try:
            cause = probe()
        except Exception:
            continue
        if cause:
            return cause
    return None


def first_that_tells(*probes: Probe | None) -> Probe:
    """Several probes as one, which asks them one after the other."""
    return lambda: ask(*probes)


def explained(call: Callable, *probes: Probe):
    """What call() gives. Where it ends in an error, that gets the cause which a probe can tell.

    A failed check has its cause already, and NotImplementedError means "to do".
    """
    try:
        return call()
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        error.diagnosis = ask(*probes) or getattr(error, "diagnosis", None)  # shown below the error
        raise


def check_walk(make: Callable) -> Probe:
    """The second look at a wrong gradient after backward(): is it the seed, the direction or the order of the walk?

    make  turns a number into a Value or a Tensor
    """

    def probe():
        x = make(3.0)
        y = x * make(2.0) * make(5.0)
        keep = {"keep_graph": True} if hasattr(y, "shape") else {}
        y.backward(**keep)
        if float(y.grad) == 0.0:
            return (
                "After y.backward(), y.grad itself is 0: the seed is missing. A result changes one to one with itself."
            )
        if float(x.grad) == 0.0 and not rule_is_called(x * make(2.0)):
            return "The rule of the result itself is never called: the walk begins there, and it is left out."
        if float(x.grad) == 0.0:
            return (
                "The seed is there, but nothing gets from y = x * 2 * 5 to x: is the order walked from its end? "
                "And do inputs stand before what was computed from them?"
            )
        if float(x.grad) == 2.0:
            return "In y = x * 2 * 5, x gets 2 and not 10: each rule has to be given what arrived at its own result."
        if float(x.grad) != 10.0:
            return None
        # A chain is right. Now `a`, which is used twice: dc/dx is 26, and 14 where `a` does not wait for `b`.
        for product in ("a * b", "b * a"):
            x = make(3.0)
            a = x * make(2.0)
            b = a + make(1.0)
            (a * b if product == "a * b" else b * a).backward()
            where = f"In c = {product} with b = a + 1, `a` hands its gradient on"
            if float(x.grad) > 26.0:
                return f"{where} more than once. Each has its turn once."
            if float(x.grad) < 26.0:
                return f"{where} before `b` has reported. Users come first."
        return None

    return probe


def rule_is_called(y) -> bool:
    """Does y.backward() call y's own rule?"""
    calls = []
    y._backward = calls.append
    y.backward()
    return bool(calls)


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


def random_program(tensors: Sequence, rng: np.random.Generator):
    """An expression of six operations, every tensor free to be used again."""
    known = list(tensors)
    for _ in range(6):
        a, b = known[rng.integers(len(known))], known[rng.integers(len(known))]
        known.append([a + b, a * b, a @ b][rng.integers(3)])
    return sum(known[1:], known[0])


def check_random_programs(make: Callable) -> None:
    """`check_gradient` for twenty random programs on three tensors."""
    for seed in range(20):
        arrays = [np.random.default_rng(100 * seed + i).uniform(-1.0, 1.0, (2, 2)) for i in range(3)]
        check_gradient(
            lambda *tensors, s=seed: random_program(tensors, np.random.default_rng(s)),
            *arrays,
            name=f"random program {seed}",
            make=make,
        )


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


def explain_numbers(actual: np.ndarray, expected: np.ndarray, gradient: bool = True) -> str | None:
    """One sentence on how the two differ, where they differ in a simple way."""
    if not np.isfinite(actual).all() and np.isfinite(expected).all():
        return f"There is {'a nan' if np.isnan(actual).any() else 'an inf'} where a finite number belongs."
    if gradient and not actual.any():
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
            return _factor(factor)
    return None


def _factor(factor: float) -> str | None:
    """A factor that means something in words. An odd one, 0.3333 or 1.917, would only be noise."""
    if math.isclose(factor, 0.5):
        return "It is half of what it should be."
    if 1.5 < factor < 1000.0 and math.isclose(factor, round(factor)):
        return f"It is {round(factor)} times what it should be."
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
