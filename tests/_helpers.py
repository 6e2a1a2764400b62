"""The checks that the milestone tests are made of.

A check that fails raises CheckFailed: its text is the evidence, its diagnosis the likely cause. A cause is named only
where a second probe has told it from its rivals; otherwise the evidence has to speak for itself.
"""

import gc
import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np


class CheckFailed(AssertionError):
    """A learner's result is not what it should be.

    general  the diagnosis only says how the numbers differ: a cause that another check can name comes before it
    """

    is_check = True  # the grader shows the text as it is, without a Python traceback

    def __init__(self, message: str, diagnosis: str | None = None, general: bool = False):
        super().__init__(message)
        self.diagnosis, self.general = diagnosis, general


Function = Callable[..., Any]  # a learner's: what it gives, the checks find out
Inputs = dict[str, Any]  # Values or Tensors by name

# A second look, taken only where a check has failed: it returns the cause in a sentence, or None if it cannot tell.
Probe = Callable[[], str | None]


# What a result may be, to the letter: a subclass could show a check other numbers than it has.
NUMBERS = frozenset({float, int, *(np.dtype(code).type for code in np.typecodes["AllInteger"] + "fdg")})
TRUTHS = frozenset({bool, np.bool_})

# The same result on other numbers, and what it should be there.
Again = Callable[[], tuple[np.ndarray, np.ndarray]]


def check_close(
    actual: Any,
    expected: Any,
    what: str,
    tolerance: float = 1e-9,
    probe: Probe | None = None,
    again: Again | None = None,
) -> None:
    """Compare a number or an array with what it should be: first type, shape and dtype, then the numbers, as float64.

    what   the name of the thing in the message: "x.grad", "the score"
    probe  asked for the cause if they differ
    again  the same on other numbers: a general sentence ("half of what it should be") is said only if it holds there
    """
    actual = plain(actual, expected, what)
    expected_array = np.asarray(expected)
    shape, wanted_shape = np.shape(actual), expected_array.shape
    if shape != wanted_shape:
        message = f"{what} has shape {shape}, expected {wanted_shape}"
        raise CheckFailed(message, ask(probe) or explain_shape(np.asarray(actual), expected_array))
    dtype, wanted_dtype = np.asarray(actual).dtype, expected_array.dtype
    if type(actual) is np.ndarray and dtype != wanted_dtype and (type(expected) is np.ndarray or dtype.kind != "f"):
        message = f"{what} is {dtype}, expected {wanted_dtype}"
        raise CheckFailed(message, ask(probe) or explain_dtype(np.asarray(actual), expected_array))
    rounded = dtype if dtype == np.float32 else wanted_dtype  # 0.1 is another number in float32
    one, other = (as_wide(array) for array in (actual, expected_array.astype(rounded)))
    with np.errstate(all="ignore"):
        different = ~np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not different.any():
        return
    diagnosis, general = ask(probe), False
    if diagnosis is None:
        diagnosis, general = explain_numbers(one, other, gradient="grad" in what), True
        if diagnosis and not (again and ask(lambda: explain_numbers(*again(), gradient="grad" in what)) == diagnosis):
            diagnosis = None
    difference = how_they_differ(np.asarray(actual), expected_array, different)
    raise CheckFailed(f"{what}{difference}", diagnosis, general)


def plain(actual: Any, expected: Any, what: str) -> Any:
    """`actual`, if it is just a number or an array. Its type is compared, not asked: code can answer what it likes."""
    if actual is None:
        raise CheckFailed(f"{what} is None, expected {show(expected)}", "Nothing comes back: is there a return?")
    if type(actual).__name__ == "_NothingYet" and isinstance(actual, np.ndarray):  # zeros, as an empty gradient reads
        actual = np.ndarray.view(actual, np.ndarray)
    kind = type(actual)
    if kind is np.ndarray or kind in NUMBERS or (kind in TRUTHS and np.asarray(expected).dtype.kind == "b"):
        return actual
    message = f"{what} is {show(actual)} of type {kind.__name__}, expected {show(expected)}"
    if kind in TRUTHS:
        raise CheckFailed(message, "True and False are answers to a question. Here a number is wanted.")
    belongs = "array" if np.ndim(expected) else "number"
    raise CheckFailed(
        message, f"A plain {belongs} belongs there: is a .data missing?" if hasattr(actual, "data") else None
    )


def as_wide(numbers: Any) -> np.ndarray:
    """Numbers as float64, or wider if they are: no digit is lost by comparing them, as in an array of integers."""
    array = np.asarray(float(numbers) if type(numbers) is int else numbers)
    return array.astype(np.result_type(array.dtype, np.float64))


def how_they_differ(actual: np.ndarray, expected: np.ndarray, different: np.ndarray) -> str:
    """ " is 3.0, expected 6.0", or for many numbers the first one that is wrong: "[1, 2] is 3.0, expected 6.0"."""
    if actual.size <= AT_MOST:
        shown, wanted, place, more = show(actual), show(expected), "", ""
    else:
        first = tuple(int(i) for i in np.argwhere(different)[0])
        shown, wanted, place = show(actual[first]), show(expected[first]), str(list(first))
        count = int(different.sum())
        more = f" ({count} of {actual.size} numbers differ)" if count > 1 else " (all others are right)"
        actual, expected = actual[first], expected[first]
    if shown == wanted:
        wanted += f": they differ by up to {np.nanmax(np.abs(as_wide(actual) - as_wide(expected))):.2g}"
    return f"{place} is {shown}, expected {wanted}{more}"


def check_grad(
    x: Any, expected: Any, of: str, at: str, name: str = "x", probe: Probe | None = None, again: Again | None = None
) -> None:
    """Check the gradient of a Value (a float) or of a Tensor (an array of its shape and dtype).

    of, at, name  how the message speaks of it: "y = x * x at x = 3: x.grad is 3.0, expected 6.0"
    """
    if hasattr(x, "shape"):
        expected = np.broadcast_to(np.asarray(expected, dtype=x.dtype), x.shape) if np.ndim(expected) == 0 else expected
        expected = np.array(expected, dtype=x.dtype)
    check_close(x.grad, expected, f"y = {of} at {at}:\n{name}.grad", probe=probe, again=again)


OVERWRITTEN_LATER = "The second call has overwritten what the first one brought: an = where += belongs?"
WRITTEN_INTO = "The rule has written into {} own array: another name for it is no copy. Compute a new array."


def check_rule(
    operation: Function, inputs: Inputs, upstream: Any, expected: Sequence[Any], of: str, probe: Probe | None = None
) -> None:
    """Call a result's own backward rule with `upstream` and check what arrives at each of its inputs.

    operation  makes the result from the inputs
    inputs     Values or Tensors by name: {"a": a, "b": b}; they may have a gradient already
    """
    before = [np.array(x.grad) for x in inputs.values()]
    at = ", ".join(f"{name} = {show(x.data)}" for name, x in inputs.items()) + f", upstream {show(upstream)}"
    if any(gradient.any() for gradient in before):
        at += ", with gradients there already: " + ", ".join(
            f"{name}.grad = {show(gradient)}" for name, gradient in zip(inputs, before)
        )

    given, untouched = np.array(upstream), dict(zip(inputs, _fresh(inputs)))
    on_other_numbers = [_on_other_numbers(operation, inputs, upstream, i) for i in range(len(inputs))]
    look_again = first_that_tells(
        lambda: _asks_the_result(operation, inputs, upstream),
        lambda: _returned(operation, inputs, upstream),
        lambda: _upstream_forgotten(operation, inputs, upstream),
        lambda: _overwritten(operation, inputs, upstream, expected, before),
        lambda: _left_out(operation, inputs, upstream),
        probe,
        lambda: _upstream_added(operation, inputs, upstream),
    )
    out = operation(*inputs.values())
    result = np.array(out.data)
    explained(lambda: out._backward(upstream), look_again)
    if not np.array_equal(given, upstream):
        message = f"y = {of} at {at}:\nthe rule has changed the upstream gradient itself: now it is {show(upstream)}"
        raise CheckFailed(message, "That array belongs to others too. Compute a new one from it.")
    for (name, x), wanted, again in zip(inputs.items(), expected, on_other_numbers, strict=True):
        check_grad(x, wanted, of=of, at=at, name=name, probe=look_again, again=again)
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
    # A rule is linear in what arrives: the same with a factor of -1/3, and without gradients to begin with. Then again.
    others = _fresh(untouched)
    out = operation(*others)
    at = at.partition(", with gradients there already")[0] + " times -1/3"
    for calls in (1.0, 2.0):
        out._backward(upstream * (-1.0 / 3.0))
        for name, x, wanted, gradient in zip(inputs, others, expected, before):
            once = (np.asarray(wanted) - gradient) * (-1.0 / 3.0)
            left = None if calls == 1.0 else OVERWRITTEN_LATER if np.allclose(x.grad, once) else SECOND_CALL
            why = first_that_tells(probe, partial(_said, left))
            try:
                check_grad(x, once * calls, of=of, at=at, name=name, probe=why)
            except CheckFailed as failure:
                failure.general |= calls == 2.0  # where another check can show it on one call, that is easier to see
                raise
        at += ", the rule called a second time"


def check_freed(operation: Function, *inputs: Any, of: str) -> None:
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


def _fresh(inputs: Inputs) -> list[Any]:
    """The same inputs once more, without gradients."""
    return [type(x)(np.copy(x.data) if isinstance(x.data, np.ndarray) else x.data) for x in inputs.values()]


def _on_other_numbers(operation: Function, inputs: Inputs, upstream: Any, which: int) -> Again:
    """What arrives at one of the inputs where all numbers are others, and what should: a central difference."""

    def again() -> tuple[np.ndarray, np.ndarray]:
        arrays = [np.asarray(np.asarray(x.data, np.float64) * 0.75 + 0.3) for x in inputs.values()]
        make = type(next(iter(inputs.values())))
        weights = np.asarray(np.asarray(upstream, np.float64) * 0.5 + 0.7)
        as_input = (lambda array: float(array)) if isinstance(upstream, float) else (lambda array: array.copy())

        def result(place: Any = None, step: float = 0.0) -> tuple[list[Any], Any]:
            moved = [array.copy() for array in arrays]
            if place is not None:
                moved[which][place] += step
            given = [make(as_input(array)) for array in moved]
            return given, operation(*given)

        given, out = result()
        out._backward(as_input(weights))
        numeric = np.empty(arrays[which].shape)
        for place in np.ndindex(numeric.shape):
            ends = [np.sum(weights * np.asarray(result(place, step)[1].data)) for step in (1e-6, -1e-6)]
            numeric[place] = (ends[0] - ends[1]) / 2e-6
        return np.asarray(given[which].grad), numeric

    return again


def _asks_the_result(operation: Function, inputs: Inputs, upstream: Any) -> str | None:
    """Does it make a difference to the rule what the gradient of the result is?"""
    asked, unasked = _fresh(inputs), _fresh(inputs)
    operation(*unasked)._backward(upstream)
    out = operation(*asked)
    out.grad = np.asarray(upstream) * 1.0
    out._backward(upstream)
    if all(np.array_equal(x.grad, y.grad) for x, y in zip(asked, unasked)):
        return None
    return "The rule reads out.grad. What arrives is handed to it: the argument `upstream` stands in its place."


def _returned(operation: Function, inputs: Inputs, upstream: Any) -> str | None:
    """Does the rule return what it should add?"""
    again = _fresh(inputs)
    returned = operation(*again)._backward(upstream)
    if returned is None or any(np.any(x.grad) for x in again):
        return None
    return "The rule returns something, and nobody takes it: what an input gets is added to its .grad."


def _upstream_added(operation: Function, inputs: Inputs, upstream: Any) -> str | None:
    """Is more left than nothing if the upstream gradient itself is taken off, and always the same?"""
    single, double = _fresh(inputs), _fresh(inputs)
    operation(*single)._backward(upstream)
    operation(*double)._backward(upstream * 2.0)
    for name, x, y in zip(inputs, single, double):
        slope = x.grad - upstream
        if np.any(slope) and np.allclose(slope, y.grad - upstream * 2.0):
            return f"What {name} gets is a slope plus `upstream`: the two have to be multiplied."
    return None


def _upstream_forgotten(operation: Function, inputs: Inputs, upstream: Any) -> str | None:
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


def _left_out(operation: Function, inputs: Inputs, upstream: Any) -> str | None:
    """Does one input get its gradient, and the other nothing at all?"""
    again = _fresh(inputs)
    operation(*again)._backward(upstream)
    nothing = [name for name, x in zip(inputs, again) if not np.any(x.grad)]
    if len(nothing) == 1 and len(inputs) == 2:
        return f"Nothing at all arrives at {nothing[0]}, at the first call either: its line is missing."
    return None


def _overwritten(
    operation: Function, inputs: Inputs, upstream: Any, expected: Sequence[Any], before: list[Any]
) -> str | None:
    """Is everything right as long as there is no gradient to begin with?"""
    again = _fresh(inputs)
    operation(*again)._backward(upstream)
    if any(gradient.any() for gradient in before) and all(
        np.allclose(x.grad, np.asarray(wanted) - gradient) for x, wanted, gradient in zip(again, expected, before)
    ):
        return "Without a gradient there it is right, so what was there was overwritten: an = where += belongs?"
    return None


def used_twice(operation: Function, a: Any, b: Any, upstream: Any, wanted_a: Any, wanted_b: Any) -> Probe:
    """The second look at an operation on one and the same input, `x * x`, whose gradient came out too small.

    Was one contribution overwritten, or was it never made? With two different inputs nothing can be overwritten: if
    the rule is right there, an `=` stands where `+=` belongs. If not, it shows which side is missing.
    """

    def probe() -> str | None:
        operation(a, b)._backward(upstream)
        if np.allclose(a.grad, wanted_a) and np.allclose(b.grad, wanted_b):
            if _counts_both_uses(operation, a, upstream):
                return None
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


def _counts_both_uses(operation: Function, x: Any, upstream: Any) -> bool:
    """Is the gradient right where both inputs are one and the same? Moving all its numbers by a little shows it."""
    x = _fresh({"x": x})[0]
    operation(x, x)._backward(upstream)
    moved = [type(x)(x.data + step) for step in (1e-6, -1e-6)]
    ends = [np.sum(upstream * np.asarray(operation(one, one).data)) for one in moved]
    return bool(np.isclose(np.sum(x.grad), (ends[0] - ends[1]) / 2e-6, rtol=1e-5))


def which_formula(look: Function, ways: dict[str, Any]) -> Probe:
    """The second look at a rule or a formula: does the learner's code do, on other numbers, what a known mistake does?

    look  runs the learner's code on those numbers
    ways  maps a mistake, in a sentence, to what it would give there; it is named if it is the only one that fits
    """

    def probe() -> str | None:
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


def _said(cause: str | None) -> str | None:
    """A probe that knows its answer already."""
    return cause


def explained(call: Function, *probes: Probe) -> Any:
    """What call() gives. Where it ends in an error, that gets the cause which a probe can tell.

    A failed check has its cause already, and NotImplementedError means "to do".
    """
    try:
        return call()
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        vars(error)["diagnosis"] = ask(*probes) or getattr(error, "diagnosis", None)  # shown below the error
        raise


def check_walk(make: Function) -> Probe:
    """The second look at a wrong gradient after backward(): is it the seed, the direction or the order of the walk?

    make  turns a number into a Value or a Tensor
    """

    def probe() -> str | None:
        x = make(3.0)
        y = x * make(2.0) * make(5.0)
        keep = {"keep_graph": True} if hasattr(y, "shape") else {}
        y.backward(**keep)
        z = x * make(2.0)
        given = given_to_the_rule(z)
        if float(y.grad) == 0.0 and given and float(given[0]) == 1.0:
            return (
                "The seed is there when the rule of the result is called, and y.grad is 0 afterwards: what has arrived "
                "has to stay, for whoever looks at it."
            )
        if float(y.grad) == 0.0:
            return (
                "After y.backward(), y.grad itself is 0: the seed is missing. A result changes one to one with itself."
            )
        if float(x.grad) == 0.0 and not given:
            return "The rule of the result itself is never called: the walk begins there, and it is left out."
        if given and float(given[0]) == float(z.data) != float(z.grad):
            return "The rule of y = x * 2 is given y.data, and what has arrived at y is in y.grad."
        if float(x.grad) == 0.0:
            return (
                "The seed is there, but nothing gets from y = x * 2 * 5 to x: is the order walked from its end? "
                "And do inputs stand before what was computed from them?"
            )
        if float(x.grad) == 2.0:
            return "In y = x * 2 * 5, x gets 2 and not 10: each rule has to be given what arrived at its own result."
        if float(x.grad) != 10.0 and calls_of_backward(make(3.0) * make(2.0)) > 1:
            return (
                "It calls backward() of the children too, and each call adds a seed of its own: only the result gets "
                "one. Collect the order first, then call the rules."
            )
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


def given_to_the_rule(y: Any) -> list[Any]:
    """What y.backward() calls y's own rule with: once, if it is right."""
    calls: list[Any] = []
    y._backward = calls.append
    y.backward(**({"keep_graph": True} if hasattr(y, "shape") else {}))
    return calls


def calls_of_backward(y: Any) -> int:
    """How often backward() is called, of whatever value, until y.backward() is done."""
    kind, calls = type(y), 0
    before = kind.backward

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return before(self, *given, **named)

    kind.backward = counted
    try:
        y.backward()
    finally:
        kind.backward = before
    return calls


def check_gradient(function: Function, *arrays: np.ndarray, name: str, make: Function, seed: int = 0) -> None:
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


def check_binary_gradient(
    function: Function, a_shape: tuple[int, ...], b_shape: tuple[int, ...], name: str, make: Function
) -> None:
    """`check_gradient` for a function of two inputs, on random arrays of the given shapes."""
    rng = np.random.default_rng(len(a_shape) * 10 + len(b_shape))
    a, b = (np.asarray(rng.standard_normal(shape)) for shape in (a_shape, b_shape))
    check_gradient(function, a, b, name=name, make=make)


def random_program(tensors: Sequence[Any], rng: np.random.Generator) -> Any:
    """An expression of six operations, every tensor free to be used again."""
    known = list(tensors)
    for _ in range(6):
        a, b = known[rng.integers(len(known))], known[rng.integers(len(known))]
        known.append([a + b, a * b, a @ b][rng.integers(3)])
    return sum(known[1:], known[0])


def check_random_programs(make: Function) -> None:
    """`check_gradient` for twenty random programs on three tensors."""
    for seed in range(20):
        arrays = [np.random.default_rng(100 * seed + i).uniform(-1.0, 1.0, (2, 2)) for i in range(3)]
        check_gradient(
            lambda *tensors, s=seed: random_program(tensors, np.random.default_rng(s)),
            *arrays,
            name=f"random program {seed}",
            make=make,
        )


def check_derivative(function: Function, numbers: Sequence[float], name: str, make: Function) -> None:
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


# Checks of what goes with every task, whatever it computes.


@contextmanager
def nothing_else_changes(during: str, **things: Any) -> Iterator[None]:
    """While this lasts, all of these stay as they are: arrays, Tensors, modules, optimizers, random generators, lists.

    during  how the message speaks of it: "layer(x)"
    things  by the names that the message gives them. Of a module or an optimizer all attributes count, and of what they
            hold too: names, types and numbers. Gradients do not
    """
    before = {name: dict(_parts(thing, name)) for name, thing in things.items()}
    yield
    for name, thing in things.items():
        after = dict(_parts(thing, name))
        for part in [*[part for part in after if part not in before[name]], *before[name]]:
            was, now = before[name].get(part, "not there"), after.get(part, "not there")
            if was != now:
                was, now = (_part_in_words(state) for state in (was, now))
                raise CheckFailed(
                    f"after {during}, {part} is {now}, and was {was} before",
                    f"{during} may not change {name}: what it needs it computes, and leaves the rest as it is.",
                )


def _parts(thing: Any, name: str, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, object]]:
    """What a thing consists of, by name, in a form that can be compared: never the learner's own `==`."""
    if id(thing) in seen or isinstance(thing, type):
        return
    seen |= {id(thing)}
    if isinstance(thing, np.ndarray):
        yield name, ("array", thing.shape, thing.dtype.str, thing.tobytes())
    elif isinstance(thing, np.random.Generator):
        yield name, ("generator", repr(thing.bit_generator.state))
    elif isinstance(thing, dict):
        for key, member in thing.items():
            yield from _parts(member, f"{name}[{key!r}]", seen)
        yield name, ("dict", *map(repr, thing))
    elif isinstance(thing, list | tuple):
        for index, member in enumerate(thing):
            yield from _parts(member, f"{name}[{index}]", seen)
        yield name, (type(thing).__name__, len(thing))
    elif hasattr(thing, "data") and hasattr(thing, "_children"):  # a Tensor or a Value
        yield name, (type(thing).__name__, bool(getattr(thing, "requires_grad", True)), len(thing._children))
        yield from _parts(thing.data, f"{name}.data", seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, FunctionType | ModuleType):
        for key, member in vars(thing).items():
            yield from _parts(member, f"{name}.{key}", seen)
        yield name, (type(thing).__name__, *sorted(vars(thing)))
    else:
        yield name, (type(thing).__name__, repr(thing)[:200])


def _part_in_words(state: Any) -> str:
    if state == "not there":
        return "not there"
    kind, *rest = state
    if kind == "array":
        return show(np.frombuffer(rest[2], np.dtype(rest[1])).reshape(rest[0]))
    if kind == "generator":
        return "a random generator in another state"
    if kind in ("Tensor", "Value"):
        return f"a {kind}"
    return (
        rest[0] if kind in ("float", "int", "bool", "str", "NoneType") else f"a {kind} with {', '.join(map(str, rest))}"
    )


def check_twice(
    call: Function, expected: Any, what: str, probe: Probe | None = None, tolerance: float = 1e-9, **things: Any
) -> None:
    """`check_close` of what call() gives, twice: the second call has to give the same, and to change nothing either.

    things  what may not change: see `nothing_else_changes`
    """
    with nothing_else_changes(what, **things):
        check_close(call(), expected, what, tolerance, probe)
    again = f"{what}, called a second time,"
    with nothing_else_changes(f"a second {what}", **things):
        check_close(call(), expected, again, tolerance, lambda: SECOND_CALL)


SECOND_CALL = "The first call is right and the same call after it is not: something is left over from the first one."


def check_no_overflow(call: Function, at: str) -> None:
    """At these numbers call() gives what it should. Does nothing become inf on the way there?"""
    try:
        with np.errstate(over="raise"):
            call()
    except FloatingPointError as error:
        vars(error)["diagnosis"] = (
            f"At {at} something on the way is too large for a float and becomes inf. The result is right by luck, and "
            "NumPy warns. (np.where computes both of its sides.)"
        )
        raise


def axis_arguments(ndim: int, several: bool = True) -> list[Any]:
    """An axis in every form that NumPy takes: from the front, from the end, and several in any order.

    several  tuples of axes and None (all of them) too, as in a sum; without it only one axis, as in softmax
    """
    single = [*range(ndim), *range(-ndim, 0), *map(np.int64, range(ndim))]
    if not several:
        return single
    orders = [axes for count in range(1, ndim + 1) for axes in itertools.permutations(range(ndim), count)]
    orders.sort(key=lambda axes: list(axes) != sorted(axes))
    from_the_end = [tuple(axis - ndim for axis in axes) for axes in orders]
    from_both_ends = [tuple(axis - ndim * (i % 2) for i, axis in enumerate(axes)) for axes in orders]
    return [None, *single, *dict.fromkeys([*orders, *from_the_end, *from_both_ends])]


def check_every_axis(
    operation: Function, wanted: Function, array: np.ndarray, name: str, make: Function, several: bool = True
) -> None:
    """An operation along axes, with the axis in every form: its result, and what its rule hands on.

    operation  operation(x, axis) of a Tensor
    wanted     wanted(array, axis) of an array: what NumPy computes
    name       how the message speaks of it: "sum"

    The gradient has to be that of the same axes in order, counted from the front. Whether that is right, other checks
    say.
    """
    for axis in axis_arguments(array.ndim, several):
        what = f"{name}(x, axis={axis}) of shape {array.shape}"
        x, plain_x, form = make(array.copy()), make(array.copy()), partial(_form_of, axis)
        out = explained(lambda x=x, axis=axis: operation(x, axis), form)
        check_close(out.data, np.asarray(wanted(array, axis)), what, probe=form)
        simple: Any = None if axis is None else tuple(sorted(int(one) % array.ndim for one in np.atleast_1d(axis)))
        simple = simple[0] if simple and len(simple) == 1 else simple
        upstream = np.asarray(np.arange(1.0, out.size + 1.0).reshape(out.shape))
        explained(lambda out=out, upstream=upstream: out._backward(upstream), form)
        operation(plain_x, simple)._backward(upstream)
        what = f"{what}:\nx.grad"
        check_close(x.grad, np.array(plain_x.grad), what, probe=form)


def _form_of(axis: Any) -> str | None:
    """What is special about this form of an axis: with the plainest one the check has passed before."""
    axes = [int(one) for one in np.atleast_1d(axis)] if axis is not None else []
    if not axes or (len(axes) == 1 and axes[0] >= 0):
        return None
    if len(axes) == 1:
        return "An axis may be counted from the end: -1 is the last one. With axes from 0 on it is right."
    if all(one >= 0 for one in axes) and axes == sorted(axes):
        return "With one axis it is right. Several have to go together, since each that goes moves the later ones."
    if all(one >= 0 for one in axes):
        return "Several axes may come in any order: with (0, 1) it is right, with (1, 0) not."
    return "Several axes may be counted from the end, too, or some from each end: (-2, -1), (0, -1)."


def count_living(kind: type) -> int:
    """How many objects of this very type there are: a graph that is held on to shows here."""
    return sum(type(thing) is kind for thing in gc.get_objects())


# What the evidence says. Pure functions of what came out and what should have.


def explain_shape(actual: np.ndarray, expected: np.ndarray) -> str | None:
    """What has happened to the shape: said where the numbers show it, too."""
    if actual.dtype.kind not in "fiu":
        return None
    if actual.shape == expected.shape[::-1] and np.allclose(actual.T, expected):
        return "The shape is the right one turned around: is a transpose missing, or one too many?"
    added = actual.ndim - expected.ndim
    padded = (1,) * added + expected.shape
    if added >= 0 and all(a == b or b == 1 for a, b in zip(actual.shape, padded)):
        stretched = tuple(i for i, (a, b) in enumerate(zip(actual.shape, padded)) if a != b or i < added)
        if np.allclose(actual.sum(axis=stretched).reshape(expected.shape), expected):
            return "Along the axes that are too many, the sums are right: they have not been added up."
    lost = actual.shape == tuple(size for size in expected.shape if size != 1)
    if lost and np.allclose(actual.reshape(expected.shape), expected):
        return "An axis of size 1 was lost: a sum drops the axis that it sums over, unless keepdims=True."
    return None


def explain_dtype(actual: np.ndarray, expected: np.ndarray) -> str | None:
    """What has happened to the dtype, where the numbers are right but for that."""
    if actual.dtype.kind in "iub" and expected.dtype.kind == "f":
        if np.array_equal(actual, expected.astype(actual.dtype)):
            return "The numbers have become integers, which cuts off what stands behind the point."
        return None
    wider = actual.dtype.kind == expected.dtype.kind == "f" and actual.dtype.itemsize > expected.dtype.itemsize
    if wider and np.allclose(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
        return f"Numbers were promoted on the way: with {actual.dtype} a part of it is wider than what went in."
    return None


def explain_numbers(actual: np.ndarray, expected: np.ndarray, gradient: bool = True) -> str | None:
    """One sentence on how the two differ, where they differ in a simple way."""
    if actual.shape != expected.shape:
        return None
    if not np.isfinite(actual).all() and np.isfinite(expected).all():
        return f"There is {'a nan' if np.isnan(actual).any() else 'an inf'} where a finite number belongs."
    if gradient and not actual.any() and expected.any():
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
    if math.isclose(factor, 0.5, rel_tol=1e-5):  # a central difference is no more exact
        return "It is half of what it should be."
    if 1.5 < factor < 1000.0 and math.isclose(factor, round(factor), rel_tol=1e-5):
        return f"It is {round(factor)} times what it should be."
    return None


AT_MOST = 8  # numbers of an array in a message


def show(value: Any) -> str:
    """A number or an array, short enough for a line or two."""
    if type(value) is float or isinstance(value, np.floating):
        return _digits(float(value), 6 if type(value) is np.float32 else 10)
    if isinstance(value, np.ndarray):
        value = np.ndarray.view(value, np.ndarray)
        if value.dtype.kind not in "fiub":
            return f"an array of {value.dtype}"
        if value.ndim == 0:
            return show(value[()])
        if value.size > AT_MOST:
            first = ", ".join(_of_array(number) for number in value.ravel()[:AT_MOST])
            return f"[{first}, ...] of shape {value.shape}"
        return _nested(value)
    if isinstance(value, np.integer | np.bool_):
        return str(value)
    return repr(value)[:80]


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _of_array(array[()])
    return f"[{', '.join(_nested(row) for row in array)}]"


def _of_array(number: Any) -> str:
    return _digits(float(number), 6) if isinstance(number, np.floating) else str(number)


def _digits(number: float, digits: int) -> str:
    """Plain digits where they fit: 0.00002 and not 2e-05."""
    if not math.isfinite(number):
        return str(number)
    if number.is_integer() and abs(number) < 1e12:
        return f"{number:.1f}"
    if 1e-7 <= abs(number) < 1e12:
        return np.format_float_positional(number, digits, unique=False, fractional=False, trim="-")
    return f"{number:.{digits}g}"
