"""The reference of chapter 13 agrees with PyTorch and with closed forms, and refuses what does not fit."""

import itertools

import numpy as np
import pytest

from meintorch.control import (
    ExtendedKalmanFilter,
    KalmanFilter,
    LevenbergMarquardt,
    RecursiveLeastSquares,
    damped_step,
    devectorize_parameters,
    jacobian,
    vectorize_parameters,
)
from meintorch.layers import Linear, Sequential, Sigmoid, Tanh
from meintorch.tensor import Tensor
from tests.course.oracle.pytorch import torch

MOVES, SEES_PLACE = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])


def network(*sizes, dtype=np.float64):
    rng = np.random.default_rng(sum(sizes))
    layers = [Linear(a, b, dtype=dtype, rng=rng) for a, b in itertools.pairwise(sizes)]
    return Sequential(*[part for layer in layers for part in (layer, Tanh())][:-1])


def the_same_in_pytorch(model):
    layers = []
    for child in model.children().values():
        if isinstance(child, Tanh):
            layers.append(torch.nn.Tanh())
        else:
            layer = torch.nn.Linear(*child.weight.shape, dtype=torch.float64)
            with torch.no_grad():
                layer.weight.copy_(torch.tensor(child.weight.data.T.copy()))
                layer.bias.copy_(torch.tensor(child.bias.data))
            layers.append(layer)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (3, 4, 2), (1, 5, 5, 1)])
def test_the_jacobian_is_pytorchs(sizes):
    """Its Linear holds the weight the other way round, so that the columns of a weight have to be exchanged."""
    model = network(*sizes)
    x = np.random.default_rng(0).standard_normal((4, sizes[0]))
    twin = the_same_in_pytorch(model)
    parameters = dict(twin.named_parameters())
    table = torch.func.jacrev(lambda p: torch.func.functional_call(twin, p, torch.tensor(x)))(parameters)
    columns = []
    for part in table.values():
        part = part.transpose(-1, -2) if part.ndim == 4 else part
        columns.append(part.reshape(4 * sizes[-1], -1).detach().numpy())
    np.testing.assert_allclose(jacobian(model, x), np.concatenate(columns, axis=1), atol=1e-12)


def test_the_vector_is_in_the_order_of_pytorchs_own_but_for_the_turned_weights():
    model = network(1, 3, 1)  # whose weights are rows and columns, the same either way
    theirs = torch.nn.utils.parameters_to_vector(the_same_in_pytorch(model).parameters()).detach().numpy()
    np.testing.assert_array_equal(vectorize_parameters(model), theirs)


def test_there_and_back_is_exact():
    model = network(2, 4, 3)
    before = vectorize_parameters(model)
    devectorize_parameters(model, np.ones(before.size))
    np.testing.assert_array_equal(vectorize_parameters(model), before + 1.0)


def test_a_linear_model_is_fitted_in_one_step_as_numpy_does_it():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 3)), rng.standard_normal((30, 1))
    model = Linear(3, 1)
    loss = LevenbergMarquardt(model, damping=1e-12).step(x, y)
    wanted, residues = np.linalg.lstsq(np.concatenate([x, np.ones((30, 1))], axis=1), y, rcond=None)[:2]
    np.testing.assert_allclose(vectorize_parameters(model), wanted[:, 0], atol=1e-10)
    assert loss == pytest.approx(residues[0] / 30)


def test_a_step_that_is_undone_leaves_every_bit_as_it_was():
    model = network(1, 6, 1)
    x = np.linspace(-1.0, 1.0, 9).reshape(-1, 1)
    method = LevenbergMarquardt(model)
    undone = 0
    for _ in range(60):
        before, damping = vectorize_parameters(model), method.damping
        method.step(x, np.sin(3.0 * x))
        if method.damping > damping:
            undone += 1
            np.testing.assert_array_equal(vectorize_parameters(model), before)
    assert undone > 3


def test_the_damping_stays_between_its_bounds_however_long_nothing_helps():
    model = Linear(1, 1)
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [6.0]])
    method = LevenbergMarquardt(model)
    for _ in range(400):
        method.step(x, y)
    assert method.damping <= 1e13
    np.testing.assert_allclose(vectorize_parameters(model), [2.5, 0.5])
    assert method.step(x, 2.0 * y) > 0.5  # new targets: hardly a move yet, but every step that helps takes a tenth
    for _ in range(30):
        loss = method.step(x, 2.0 * y)
    assert loss == pytest.approx(2.0)


def test_parameters_that_do_the_same_are_no_trouble():
    """Two layers without a bend between them: J^T J alone has no inverse."""
    model = Sequential(Linear(1, 3), Linear(3, 1))
    x = np.linspace(-1.0, 1.0, 10).reshape(-1, 1)
    method = LevenbergMarquardt(model)
    for _ in range(50):
        loss = method.step(x, 3.0 * x + 1.0)
    assert loss < 1e-12


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_the_covariance_of_recursive_least_squares_is_symmetric_to_the_last_bit(forgetting):
    rng = np.random.default_rng(0)
    learner = RecursiveLeastSquares(5, forgetting)
    for _ in range(5000):
        learner.update(rng.standard_normal(5), rng.standard_normal())
    np.testing.assert_array_equal(learner.covariance, learner.covariance.T)
    assert np.linalg.eigvalsh(learner.covariance)[0] > 0.0


def test_recursive_least_squares_is_a_kalman_filter_of_something_that_stays():
    rng = np.random.default_rng(0)
    learner, tracker = RecursiveLeastSquares(3, covariance=7.0), KalmanFilter(np.zeros(3), 7.0)
    for _ in range(50):
        x, y = rng.standard_normal(3), rng.standard_normal()
        learner.update(x, y)
        tracker.predict(1.0, 0.0)
        tracker.update([y], [x], 1.0)
    np.testing.assert_allclose(learner.weights, tracker.state, atol=1e-12)
    np.testing.assert_allclose(learner.covariance, tracker.covariance, atol=1e-12)


def test_after_a_while_the_covariance_solves_riccatis_equation():
    tracker = KalmanFilter([0.0, 0.0], 10.0)
    for _ in range(500):
        tracker.update([0.0], SEES_PLACE, 0.5)
        tracker.predict(MOVES, 0.1)
    p = tracker.covariance
    spread = SEES_PLACE @ p @ SEES_PLACE.T + 0.5
    after = MOVES @ (p - p @ SEES_PLACE.T @ np.linalg.solve(spread, SEES_PLACE @ p)) @ MOVES.T + 0.1 * np.eye(2)
    np.testing.assert_allclose(after, p, atol=1e-12)


def test_a_filter_of_a_line_is_recursive_least_squares():
    rng = np.random.default_rng(1)
    model = Linear(2, 1)
    model.weight.data = np.zeros((2, 1))
    learner, method = RecursiveLeastSquares(3, covariance=4.0), ExtendedKalmanFilter(model, 4.0, noise=1.0)
    for _ in range(40):
        x, y = rng.standard_normal(2), rng.standard_normal()
        learner.update([*x, 1.0], y)
        method.step(x[None], [[y]])
    np.testing.assert_allclose(vectorize_parameters(model), learner.weights, atol=1e-10)


def test_what_was_given_stays_the_callers():
    state, covariance = np.array([1.0, 2.0]), np.eye(2)
    tracker = KalmanFilter(state, covariance)
    tracker.predict(MOVES, 0.1)
    tracker.update([1.0], SEES_PLACE, 0.1)
    np.testing.assert_array_equal(state, [1.0, 2.0])
    np.testing.assert_array_equal(covariance, np.eye(2))
    x = np.array([1.0, 2.0])
    learner = RecursiveLeastSquares(2)
    learner.update(x, 3.0)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_a_number_stands_for_that_number_times_the_identity():
    one, other = KalmanFilter([1.0, 2.0], 3.0), KalmanFilter([1.0, 2.0], 3.0 * np.eye(2))
    one.predict(1.0, 0.5)
    other.predict(np.eye(2), 0.5 * np.eye(2))
    one.update([1.0, 1.0], np.eye(2), 0.25)
    other.update([1.0, 1.0], np.eye(2), 0.25 * np.eye(2))
    np.testing.assert_array_equal(one.state, other.state)
    np.testing.assert_array_equal(one.covariance, other.covariance)


def test_float32_models_stay_float32_in_every_method():
    model = network(1, 4, 1, dtype=np.float32)
    x = np.float32([[0.5], [-0.5]])
    LevenbergMarquardt(model).step(x, x)
    ExtendedKalmanFilter(model).step(x, x)
    assert jacobian(model, x).dtype == np.float32
    assert {parameter.data.dtype for parameter in model.parameters()} == {np.dtype(np.float32)}


def line():
    return Linear(1, 1)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: vectorize_parameters(Sigmoid()), ValueError, r"Sigmoid\(\) has no parameters"),
        (lambda: jacobian(Sequential(), Tensor([1.0])), ValueError, "has no parameters"),
        (lambda: devectorize_parameters(line(), [1.0]), ValueError, r"the change should have shape \(2,\), not \(1,\)"),
        (lambda: devectorize_parameters(line(), 1.0), ValueError, r"shape \(2,\), not \(\)"),
        (lambda: devectorize_parameters(line(), [[1.0], [2.0]]), ValueError, r"not \(2, 1\)"),
        (lambda: damped_step(np.ones((3, 2)), np.ones((3, 1)), 1.0), ValueError, r"errors .*\(3,\), not \(3, 1\)"),
        (lambda: damped_step(np.ones((3, 2)), np.ones(3), 0.0), np.linalg.LinAlgError, "Singular"),
        (lambda: LevenbergMarquardt(line(), 0.0), ValueError, "above 0, not 0.0"),
        (lambda: LevenbergMarquardt(line(), float("nan")), ValueError, "above 0, not nan"),
        (lambda: LevenbergMarquardt(line()).step([[1.0]], [1.0]), ValueError, r"the target .*\(1, 1\), not \(1,\)"),
        (lambda: RecursiveLeastSquares(2, 1.1), ValueError, "at most 1, not 1.1"),
        (lambda: RecursiveLeastSquares(2, 0.0), ValueError, "above 0 and at most 1, not 0.0"),
        (lambda: RecursiveLeastSquares(2, covariance=0.0), ValueError, "above 0, not 0.0"),
        (lambda: RecursiveLeastSquares(2).update([1.0], 1.0), ValueError, r"x should have shape \(2,\), not \(1,\)"),
        (lambda: RecursiveLeastSquares(1).update([1.0], [1.0]), ValueError, r"y should have shape \(\), not \(1,\)"),
        (lambda: KalmanFilter([[1.0]], 1.0), ValueError, r"state should have shape \(1,\), not \(1, 1\)"),
        (lambda: KalmanFilter([1.0, 2.0], [1.0, 1.0]), ValueError, r"covariance .*\(2, 2\), not \(2,\)"),
        (lambda: KalmanFilter([1.0, 2.0], 1.0).predict(np.eye(3), 0.0), ValueError, r"transition .*not \(3, 3\)"),
        (lambda: KalmanFilter([1.0, 2.0], 1.0).predict(1.0, [1.0]), ValueError, r"noise .*not \(1,\)"),
        (lambda: KalmanFilter([1.0], 1.0).update([1.0], [1.0], 1.0), ValueError, r"observation .*\(1, 1\), not \(1,\)"),
        (lambda: KalmanFilter([1.0], 1.0).update([1.0], 1.0, 1.0), ValueError, r"observation .*not \(\)"),
        (lambda: KalmanFilter([1.0], 1.0).update([1.0], [[1.0]], [1.0]), ValueError, r"noise .*\(1, 1\), not \(1,\)"),
        (lambda: KalmanFilter([1.0], 1.0).update([[1.0]], [[1.0]], 1.0), ValueError, r"measured .*not \(1, 1\)"),
        (lambda: KalmanFilter([1.0], 1.0).update([1.0, 2.0], [[1.0]], 1.0), ValueError, r"measured .*not \(2,\)"),
        (lambda: KalmanFilter([1.0], 1.0).update(1.0, [[1.0]], 1.0), ValueError, r"measured .*\(1,\), not \(\)"),
        (lambda: KalmanFilter([1.0], 1.0).correct(np.ones(2), np.eye(1), 1.0), ValueError, r"innovation .*not \(2,\)"),
        (lambda: ExtendedKalmanFilter(Sigmoid()), ValueError, "has no parameters"),
        (lambda: ExtendedKalmanFilter(line(), noise=0.0), ValueError, "the noise is above 0, not 0.0"),
        (lambda: ExtendedKalmanFilter(line(), drift=-1.0), ValueError, "-1.0"),
        (lambda: ExtendedKalmanFilter(line()).step([[1.0]], 1.0), ValueError, r"the target .*\(1, 1\), not \(\)"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_a_change_that_does_not_fit_changes_nothing():
    model = line()
    before = vectorize_parameters(model)
    with pytest.raises(ValueError):
        devectorize_parameters(model, np.ones(3))
    np.testing.assert_array_equal(vectorize_parameters(model), before)
