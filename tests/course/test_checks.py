"""The checks and their diagnoses, one by one. What they say of real mistakes is tested in test_answers.py."""

import operator

import numpy as np
import pytest

from grading.phrasebook import explain_error
from meintorch.tensor import Tensor
from meintorch.value import Value
from tests._helpers import (
    CheckFailed,
    ask,
    check_binary_gradient,
    check_close,
    check_derivative,
    check_freed,
    check_grad,
    check_gradient,
    check_rule,
    explain_numbers,
    explain_shape,
    explained,
    which_formula,
)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        ((3, 2), (2, 3), "turned around"),
        ((4, 3), (3,), "broadcasting stretched it to"),
        ((4, 3), (4, 1), "broadcasting stretched it to"),
        ((4,), (4, 1), "axis of size 1 was lost"),
    ],
)
def test_a_wrong_shape_is_explained(actual, expected, words):
    assert words in explain_shape(actual, expected)


def test_a_shape_that_tells_nothing_is_not_explained():
    assert explain_shape((5,), (3, 2)) is None


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        ([np.nan, 1.0], [2.0, 1.0], "a nan"),
        ([np.inf, 1.0], [2.0, 1.0], "an inf"),
        ([0.0, 0.0], [2.0, 1.0], "still zero"),
        ([-2.0, -1.0], [2.0, 1.0], "sign is wrong"),
        ([1.0, 0.5], [2.0, 1.0], "half of"),
        ([6.0, 3.0], [2.0, 1.0], "3 times"),
        ([[1.0, 3.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], "transposed"),
    ],
)
def test_numbers_that_differ_in_a_simple_way_are_explained(actual, expected, words):
    assert words in explain_numbers(np.array(actual), np.array(expected))


@pytest.mark.parametrize(("actual", "expected"), [([2.0, 5.0], [2.0, 1.0]), ([1.4, 0.7], [2.0, 1.0])])
def test_numbers_that_tell_nothing_are_not_explained(actual, expected):
    assert explain_numbers(np.array(actual), np.array(expected)) is None


def test_zero_is_no_missing_gradient_where_no_gradient_is_meant():
    assert explain_numbers(np.array(0.0), np.array(1.0), gradient=False) is None


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (3.0, 6.0, "it is 3.0, expected 6.0"),
        (np.array([1.0]), np.array([1.0, 1.0]), "has shape (1,), expected (2,)"),
        (np.float32([1.0]), np.array([1.0]), "is float32, expected float64"),
        (None, 1.0, "is None"),
        (Value(3.0), 3.0, "of type Value"),
        ("3", 3.0, "of type str"),
        (np.array([np.nan]), np.array([1.0]), "[nan]"),
    ],
)
def test_a_difference_is_a_failure_that_shows_both(actual, expected, words):
    with pytest.raises(CheckFailed) as failure:
        check_close(actual, expected, "it")
    assert words in str(failure.value)


def test_a_learners_own_equality_is_not_asked():
    class Agreeable(np.ndarray):
        def __eq__(self, other):
            return np.ones(self.shape, bool)

    with pytest.raises(CheckFailed):
        check_close(np.array([1.0]).view(Agreeable), np.array([2.0]), "it")


def test_a_gradient_of_the_right_numbers_and_the_wrong_shape_fails():
    x = Tensor([[1.0, 2.0]])
    x._grad = np.array([1.0, 2.0])
    with pytest.raises(CheckFailed, match="has shape"):
        check_grad(x, np.array([[1.0, 2.0]]), of="x", at="x")


def test_central_differences_find_a_wrong_gradient_of_a_tensor():
    def crooked(x):
        out = x * x
        out._backward = lambda upstream: setattr(x, "grad", 1.9 * x.data * upstream)
        return out

    check_gradient(lambda x: x * x, np.array([1.0, 2.0]), name="x * x", make=Tensor)
    check_binary_gradient(lambda a, b: a * b, (2, 1), (3,), name="a * b", make=Tensor)
    with pytest.raises(CheckFailed, match="central difference"):
        check_gradient(crooked, np.array([1.0, 2.0]), name="x * x", make=Tensor)


def test_central_differences_find_a_wrong_derivative_of_a_value():
    def crooked(x):
        out = x * x
        out._backward = lambda upstream: setattr(x, "grad", 1.9 * x.data * upstream)
        return out

    check_derivative(lambda x: x * x, [3.0], "x * x", Value)
    with pytest.raises(CheckFailed, match="central difference"):
        check_derivative(crooked, [3.0], "x * x", Value)


def test_an_input_that_was_changed_is_found():
    def greedy(x):
        out = x * 1.0
        x.data += 1.0
        return out

    with pytest.raises(CheckFailed, match="the data of input 1"):
        check_gradient(greedy, np.array([1.0, 2.0]), name="greedy", make=Tensor)


def test_an_upstream_gradient_that_was_changed_is_found():
    def greedy(x):
        out = x + 0.0

        def _backward(upstream):
            x.grad += upstream
            upstream *= 2.0

        out._backward = _backward
        return out

    with pytest.raises(CheckFailed, match="changed the upstream gradient"):
        check_rule(greedy, {"x": Tensor([1.0])}, np.array([1.0]), [[1.0]], of="greedy(x)")


def test_a_rule_that_holds_its_result_is_found():
    def holding(x):
        out = x * 2.0
        out._backward = lambda upstream: out
        return out

    check_freed(lambda x: x * 2.0, Tensor([1.0]), of="x * 2")
    with pytest.raises(CheckFailed, match="stays in memory"):
        check_freed(holding, Tensor([1.0]), of="x * 2")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (lambda: np.maximum(0.0, Tensor([1.0])), "NumPy's functions take arrays"),
        (lambda: np.sum(Tensor([1.0]), axis=-1), "NumPy's functions take arrays"),
        (lambda: np.square(Tensor([1.0])), "NumPy's functions take arrays"),
        (lambda: None.shape, "lack its return"),
        (lambda: list(None), "reverse() and sort()"),
        (lambda: sum(Tensor([1.0]) * 2.0), "x.sum()"),
        (lambda: [name() for name in {"weight": 1}], ".values()"),
        (lambda: (3,)[1], "no shape[1]"),
        (lambda: Tensor([1.0]).ravel(), "its array is in .data"),
        (lambda: np.ones(2).value, "wrap it: Tensor(...)"),
        (lambda: Tensor([1.0], requires_grad=False), "as_tensor(...) makes a constant"),
        (lambda: np.ones(2) + np.add.at(np.zeros(2), [0], 1.0), "works in place"),
        (lambda: operator.iadd(np.ones(2), np.add.at(np.zeros(2), [0], 1.0)), "works in place"),
        (lambda: np.zeros(2, 3), "a pair of brackets of its own"),
        (lambda: np.bincount([0, 1], weights=np.ones((2, 2))), "one column at a time"),
    ],
)
def test_some_of_pythons_own_errors_are_explained(code, words):
    with pytest.raises((TypeError, AttributeError, IndexError, ValueError)) as failure:
        code()
    assert words in explain_error(failure.type.__name__, str(failure.value))


def test_a_mistake_is_named_only_if_it_is_the_only_one_that_fits():
    assert which_formula(lambda: 3.0, {"three": 3.0, "four": 4.0})() == "three"
    assert which_formula(lambda: 3.0, {"three": 3.0, "also three": 3.0})() is None
    assert which_formula(lambda: [3.0, 3.0], {"three": 3.0})() is None


def test_a_probe_that_fails_tells_nothing_and_the_next_one_is_asked():
    assert ask(lambda: 1 / 0, None, lambda: None, lambda: "this", lambda: "that") == "this"
    assert ask(lambda: 1 / 0) is None


def test_an_error_gets_the_cause_that_a_probe_can_tell_and_keeps_the_one_it_has_if_none_can():
    with pytest.raises(ZeroDivisionError) as failure:
        explained(lambda: 1 / 0, lambda: [][0], lambda: "this", lambda: "that")
    assert failure.value.diagnosis == "this"

    def fails():
        explained(lambda: 1 / 0, lambda: "from within")

    with pytest.raises(ZeroDivisionError) as failure:
        explained(fails, lambda: [][0])
    assert failure.value.diagnosis == "from within"


@pytest.mark.parametrize("error", [NotImplementedError("TODO 01.1"), CheckFailed("x is 1, expected 2", "It is half.")])
def test_what_is_to_do_and_a_failed_check_are_not_looked_at_again(error):
    def raises():
        raise error

    before, looked = dict(vars(error)), []
    with pytest.raises(type(error)) as failure:
        explained(raises, lambda: looked.append(1) or "a cause")
    assert failure.value is error
    assert (vars(error), looked) == (before, [])


def test_what_ends_well_is_not_looked_at_again():
    looked = []
    assert explained(lambda: 3.0, lambda: looked.append(1)) == 3.0
    assert not looked
