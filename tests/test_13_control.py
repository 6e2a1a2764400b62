"""The checks of chapter 13: python grader.py 13"""

import itertools

import numpy as np
import pytest

from meintorch import control
from meintorch.activations import log, tanh
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
from meintorch.layers import Linear, Module, Sequential, Tanh
from meintorch.losses import mse_loss
from meintorch.optim import Adam
from meintorch.tensor import Tensor
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    explained,
    first_that_tells,
    nothing_else_changes,
    show,
    which_formula,
)


@pytest.mark.task("13.4")
def test_a_small_network_learns_a_sine_in_thirty_steps_where_adam_needs_thousands():
    """31 parameters, 40 places between -1 and 1, one wave."""
    x = np.linspace(-1.0, 1.0, 40).reshape(-1, 1)
    y = np.sin(np.pi * x)
    model = network(seed=2)
    method = LevenbergMarquardt(model)
    for _ in range(30):
        tried(method, x, y)
    loss = squared_error(model, x, y)
    if not loss < 1e-5:
        message = f"after thirty steps on a sine the mean squared error is {loss:.2g}, expected below 0.00001"
        raise CheckFailed(message, which_step())
    model = network(seed=2)
    adam = Adam(model.parameters(), lr=0.01)
    for _ in range(1000):
        adam.zero_grad()
        mse_loss(model(x), y).backward()
        adam.step()
    slow = squared_error(model, x, y)
    if not slow > 10.0 * loss:
        raise CheckFailed(f"after 1000 steps Adam has {slow:.2g}, as little as {loss:.2g} after thirty of these")


# 13.1 One long vector


@pytest.mark.task("13.1")
def test_vectorize_parameters_puts_one_after_the_other():
    what = "vectorize_parameters of a Linear with weight [[1, 2, 3], [4, 5, 6]] and bias [7, 8, 9]"
    check_array(vectorized(counting(2, 3)), np.arange(1.0, 10.0), what, which_vector)


@pytest.mark.task("13.1")
def test_vectorize_parameters_takes_those_of_all_layers():
    model = Sequential(counting(1, 2), Tanh(), counting(2, 1))
    what = "vectorize_parameters of Linear(1, 2), Tanh and Linear(2, 1), each with its parameters counted from 1"
    check_array(vectorized(model), np.array([1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0]), what, which_vector)


@pytest.mark.task("13.1")
def test_vectorize_parameters_makes_a_copy():
    """With one single parameter it would be easy to hand out its own array."""
    model = counting(2, 1, bias=False)
    vector = vectorized(model)
    what = "vectorize_parameters of a Linear with weight [[1], [2]] and no bias"
    check_array(vector, np.array([1.0, 2.0]), what, which_vector)
    vector += 10.0
    own = "The vector shares its memory with the parameter: what is done to one happens to the other. Make a copy."
    check_close(model.weight.data, np.array([[1.0], [2.0]]), "after += 10 on the vector, the weight", probe=lambda: own)


@pytest.mark.task("13.1")
def test_vectorize_parameters_keeps_float32():
    model = Linear(2, 1, dtype=np.float32)
    vector = vectorized(model)
    check_array(vector, np.concatenate([p.data.ravel() for p in model.parameters()]), "the vector of a float32 model")


@pytest.mark.task("13.1")
def test_devectorize_parameters_adds_a_vector():
    model = line(2.0, 5.0)
    changed(model, np.array([10.0, 100.0]))
    what = "weight [[2]] and bias [5], after devectorize_parameters with [10, 100]:"
    check_parameter(model.weight, [[12.0]], f"{what} the weight", which_change)
    check_parameter(model.bias, [105.0], f"{what} the bias", which_change)


@pytest.mark.task("13.1")
def test_devectorize_parameters_gives_a_matrix_its_piece_row_by_row():
    model = counting(2, 3)
    changed(model, np.arange(10.0, 100.0, 10.0))
    what = "weight [[1, 2, 3], [4, 5, 6]] and bias [7, 8, 9], after devectorize_parameters with [10, 20, ..., 90]:"
    check_parameter(model.weight, [[11.0, 22.0, 33.0], [44.0, 55.0, 66.0]], f"{what} the weight", which_change)
    check_parameter(model.bias, [77.0, 88.0, 99.0], f"{what} the bias", which_change)


@pytest.mark.task("13.1")
def test_devectorize_parameters_gives_every_layer_its_own_piece():
    model = Sequential(line(0.0, 0.0), line(0.0, 0.0))
    changed(model, np.array([1.0, 2.0, 3.0, 4.0]))
    for name, parameter, wanted in zip(
        ("first weight", "first bias", "second weight", "second bias"),
        model.parameters(),
        ([[1.0]], [2.0], [[3.0]], [4.0]),
    ):
        what = f"two layers of zeros, after devectorize_parameters with [1, 2, 3, 4]: the {name}"
        check_parameter(parameter, wanted, what, which_change)


@pytest.mark.task("13.1")
def test_devectorize_parameters_leaves_the_vector_as_it_is_and_apart():
    model, change = line(0.0, 0.0), np.array([1.0, 2.0])
    changed(model, change)
    change += 10.0
    own = (
        "The parameter is a piece of the vector itself: what is done to one happens to the other. A sum is a new array."
    )
    check_close(model.weight.data, np.array([[1.0]]), "after += 10 on that vector, the weight", probe=lambda: own)


@pytest.mark.task("13.1")
def test_devectorize_parameters_keeps_float32():
    model = Linear(1, 1, dtype=np.float32)
    model.weight.data = np.float32([[2.0]])
    changed(model, np.array([1.0, 2.0]))
    check_close(model.weight.data, np.float32([[3.0]]), "a float32 weight [[2]] after a change by 1")
    check_close(model.bias.data, np.float32([2.0]), "a float32 bias [0] after a change by 2")


# 13.2 The Jacobian


@pytest.mark.task("13.2")
def test_the_slopes_of_a_line_are_x_and_one():
    what = "the jacobian of y = x * weight + bias at x = [[2], [3]]"
    check_array(slopes_of(line(2.0, 5.0), [[2.0], [3.0]]), np.array([[2.0, 1.0], [3.0, 1.0]]), what, which_jacobian)


@pytest.mark.task("13.2")
def test_every_output_of_every_example_has_a_row():
    """Weight 00 leads from input 0 to output 0, weight 01 from input 0 to output 1."""
    wanted = np.array(
        [
            [1.0, 0.0, 2.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 0.0, 2.0, 0.0, 1.0],
            [3.0, 0.0, 4.0, 0.0, 1.0, 0.0],
            [0.0, 3.0, 0.0, 4.0, 0.0, 1.0],
        ]
    )
    what = "the jacobian of Linear(2, 2) at x = [[1, 2], [3, 4]]"
    check_array(slopes_of(counting(2, 2), [[1.0, 2.0], [3.0, 4.0]]), wanted, what, which_jacobian)


@pytest.mark.task("13.2")
def test_the_rows_are_counted_by_the_outputs_and_not_by_the_inputs():
    what = "the jacobian of Linear(3, 1) at x = [[1, 2, 3]]"
    wanted = np.array([[1.0, 2.0, 3.0, 1.0]])
    check_array(slopes_of(counting(3, 1), [[1.0, 2.0, 3.0]]), wanted, what, which_jacobian)


@pytest.mark.task("13.2")
def test_the_slope_of_a_bent_model_depends_on_its_parameter():
    """tanh(w * x) has the slope x * (1 - tanh(w * x) ** 2)."""
    x = np.array([[1.0], [2.0], [-1.0]])
    what = "the jacobian of tanh(w * x) at w = 0.5 and x = [[1], [2], [-1]]"
    check_array(slopes_of(Bent(0.5), x), x * (1.0 - np.tanh(0.5 * x) ** 2), what, which_jacobian)


@pytest.mark.task("13.2")
def test_gradients_that_are_there_already_have_no_part_in_it():
    model = line(2.0, 5.0)
    for parameter in model.parameters():
        parameter.grad = np.full(parameter.shape, 100.0)
    what = "the jacobian of a line whose parameters have gradients of 100 already, at x = [[2], [3]]"
    look = first_that_tells(which_jacobian, leftovers)
    check_array(slopes_of(model, [[2.0], [3.0]]), np.array([[2.0, 1.0], [3.0, 1.0]]), what, look)


@pytest.mark.task("13.2")
def test_the_slopes_of_a_float32_model_are_float32():
    model = Linear(1, 1, dtype=np.float32)
    found = slopes_of(model, np.float32([[2.0], [3.0]]))
    what = "the jacobian of a float32 line at x = [[2], [3]]"
    check_array(found, np.float32([[2.0, 1.0], [3.0, 1.0]]), what, which_jacobian)


# 13.3 The damped step

POINTS = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])  # the slopes of a line at x = 0, 1 and 2


@pytest.mark.task("13.3")
def test_an_undamped_step_leads_to_the_best_line_at_once():
    """Through (0, 1), (1, 2) and (2, 6), from weight and bias 0: all the errors are minus y."""
    change = stepped(POINTS, np.array([-1.0, -2.0, -6.0]), 0.0)
    check_array(change, np.array([2.5, 0.5]), "the undamped step towards (0, 1), (1, 2), (2, 6)", which_damped)


@pytest.mark.task("13.3")
def test_the_damping_is_added_to_the_diagonal():
    """1 + 1 and 4 + 1 below, 3 and 10 above."""
    change = stepped(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([-3.0, -5.0]), 1.0)
    what = "damped_step with slopes [[1, 0], [0, 2]], errors [-3, -5] and damping 1"
    check_array(change, np.array([1.5, 2.0]), what, which_damped)


@pytest.mark.task("13.3")
def test_damping_does_not_couple_parameters_that_have_nothing_to_do_with_each_other():
    """With 6 on the diagonal alone, 3 / (1 + 5) and 0 / (4 + 5)."""
    change = stepped(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([-3.0, 0.0]), 5.0)
    what = "damped_step with slopes [[1, 0], [0, 2]], errors [-3, 0] and damping 5"
    check_array(change, np.array([0.5, 0.0]), what, which_damped)


@pytest.mark.task("13.3")
def test_much_damping_makes_a_short_step_straight_downhill():
    """The gradient J^T errors is [-14, -9], and it is divided by a million."""
    change = stepped(POINTS, np.array([-1.0, -2.0, -6.0]), 1e6)
    what = "a million times damped_step with a damping of a million towards (0, 1), (1, 2), (2, 6)"
    check_array(1e6 * np.asarray(change), np.array([14.0, 9.0]), what, which_damped, tolerance=1e-4)


@pytest.mark.task("13.3")
def test_damping_chooses_where_there_are_more_parameters_than_errors():
    """a + b should grow by 4. Both do their part: (1 + 2) a + b = 4."""
    change = stepped(np.array([[1.0, 1.0]]), np.array([-4.0]), 2.0)
    what = "damped_step with slopes [[1, 1]], errors [-4] and damping 2"
    check_array(change, np.array([1.0, 1.0]), what, which_damped)


# 13.4 Try and look


@pytest.mark.task("13.4")
def test_a_step_that_helps_is_kept_and_the_next_is_damped_less():
    """y = 2x from weight 0 with damping 5: the change is 10 / (5 + 5), and the errors fall from 10 to 2.5."""
    weight, damping, loss = good_step()
    what = "y = x * weight towards (1, 2), (2, 4) from weight 0 with damping 5, after a step:"
    check_close(weight, 1.0, f"{what} the weight", probe=which_step)
    check_close(damping, 0.5, f"{what} the damping", probe=which_step)
    check_close(loss, 2.5, f"{what} what it returns, the mean squared error afterwards,", probe=which_step)


@pytest.mark.task("13.4")
def test_a_step_that_hurts_is_undone_and_the_next_is_damped_more():
    """On tanh(w) towards 0 from w = 2 the slope is almost flat, so that the step goes far beyond."""
    weight, damping, loss = bad_step()
    what = "tanh(w) towards 0 from w = 2 with damping 0.0001, after a step that leads to w = -11:"
    check_close(weight, 2.0, f"{what} w", probe=which_step)
    check_close(damping, 0.001, f"{what} the damping", probe=which_step)
    check_close(loss, np.tanh(2.0) ** 2, f"{what} what it returns, the mean squared error,", probe=which_step)


@pytest.mark.task("13.4")
def test_a_step_is_undone_to_the_last_bit():
    """31 random parameters. What is added and subtracted again leaves rounding behind."""
    x = np.linspace(-1.0, 1.0, 40).reshape(-1, 1)
    for seed in range(3):
        model = network(seed)
        before = [parameter.data.copy() for parameter in model.parameters()]
        method = LevenbergMarquardt(model, damping=1e-12)
        tried(method, x, np.sin(np.pi * x))
        after = [parameter.data for parameter in model.parameters()]
        pairs = list(
            zip(np.concatenate([one.ravel() for one in before]), np.concatenate([one.ravel() for one in after]))
        )
        moved = [(one, other) for one, other in pairs if one != other]
        if moved:
            one, other = moved[0]
            message = f"network {seed}, after a step that hurts: {len(moved)} of 31 parameters are not what they were. "
            raise CheckFailed(f"{message}The first is off by {abs(other - one):.2g}", which_step() or INEXACT)


@pytest.mark.task("13.4")
def test_a_step_that_makes_no_difference_is_none_that_helps():
    """y = w * x at x = 0 has no slope: the step is 0, and the error what it was. Trust in it does not grow."""
    method = LevenbergMarquardt(Flat(2.0), damping=0.5)
    loss = tried(method, np.array([[0.0]]), np.array([[3.0]]))
    what = "y = w * x at x = 0 towards 3, where no w makes a difference, after a step with damping 0.5:"
    told = "A step that leaves the error as it is counts as one that helps. It helps where the error is smaller: <."
    look = first_that_tells(lambda: told if np.isclose(method.damping, 0.05) else None, which_step)
    check_close(method.damping, 5.0, f"{what} the damping", probe=look)
    check_close(loss, 9.0, f"{what} what it returns, the mean squared error,", probe=which_step)


@pytest.mark.task("13.4")
def test_after_a_few_tries_the_damping_is_right():
    model = Bent(2.0)
    method = LevenbergMarquardt(model, damping=1e-4)
    losses = [tried(method, np.array([[1.0]]), np.array([[0.0]])) for _ in range(12)]
    if not never_rises(losses):
        shown = ", ".join(f"{loss:.4g}" for loss in losses)
        message = f"tanh(w) towards 0: the mean squared errors that the steps return are {shown}, and they rise"
        raise CheckFailed(message, which_step())
    what = "tanh(w) towards 0 from w = 2, after twelve steps: w"
    check_close(model.w.data, np.array([0.0]), what, tolerance=1e-3, probe=which_step)


@pytest.mark.task("13.4")
def test_at_the_lowest_point_nothing_moves_any_more():
    model = line(2.5, 0.5)
    method = LevenbergMarquardt(model)
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [6.0]])
    for _ in range(5):
        loss = tried(method, x, y)
    what = "the best line through (0, 1), (1, 2), (2, 6), after five more steps:"
    check_close(float(loss), 0.5, f"{what} the mean squared error", probe=which_step)
    check_parameter(model.weight, [[2.5]], f"{what} the weight", which_step)
    check_parameter(model.bias, [0.5], f"{what} the bias", which_step)


# 13.5 Recursive least squares


@pytest.mark.task("13.5")
def test_the_first_two_examples_by_hand():
    learner = RecursiveLeastSquares(2, covariance=1.0)
    for x, y, weights, covariance in (
        ([0.0, 1.0], 1.0, [0.0, 0.5], [[1.0, 0.0], [0.0, 0.5]]),
        ([1.0, 1.0], 2.0, [0.6, 0.8], [[0.6, -0.2], [-0.2, 0.4]]),
    ):
        learn(learner, np.array(x), y)
        what = f"covariance I at the start, examples [0, 1] -> 1 and [1, 1] -> 2, after {x} -> {y}:"
        check_array(learner.weights, np.array(weights), f"{what} self.weights", which_recursion)
        check_array(learner.covariance, np.array(covariance), f"{what} the covariance", which_recursion)


@pytest.mark.task("13.5")
def test_recursive_least_squares_ends_where_the_closed_form_does():
    """500 examples one by one, none of them kept: the same weights to ten digits as from all at once."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 4))
    y = x @ [1.0, -2.0, 3.0, 0.5] + 0.1 * rng.standard_normal(500)
    learner = RecursiveLeastSquares(4)
    for one, answer in zip(x, y):
        learn(learner, one, answer)
    what = "500 examples of four inputs, one after the other: self.weights, against the closed form,"
    check_array(learner.weights, closed_form(x, y)[0], what, which_recursion, tolerance=1e-10)
    what = "500 examples of four inputs, one after the other: the covariance"
    check_array(learner.covariance, closed_form(x, y)[1], what, which_recursion, tolerance=1e-10)


@pytest.mark.task("13.5")
def test_however_many_examples_come_nothing_grows():
    learner = RecursiveLeastSquares(2)
    check_does_not_grow(learner, lambda: learn(learner, np.array([0.5, 1.0]), 2.0), "RecursiveLeastSquares")


@pytest.mark.task("13.5")
def test_forgetting_makes_a_new_example_count_more_and_keeps_the_uncertainty_up():
    """1 / (0.5 + 1) is two thirds, and what is left of the covariance is divided by 0.5."""
    learner = RecursiveLeastSquares(2, forgetting=0.5, covariance=1.0)
    learn(learner, np.array([0.0, 1.0]), 3.0)
    what = "covariance I at the start, forgetting 0.5, after [0, 1] -> 3:"
    check_array(learner.weights, np.array([0.0, 2.0]), f"{what} self.weights", which_recursion)
    check_array(learner.covariance, np.array([[2.0, 0.0], [0.0, 2.0 / 3.0]]), f"{what} the covariance", which_recursion)


@pytest.mark.task("13.5")
def test_what_changes_is_followed_if_the_past_is_forgotten():
    """For 300 examples the weights are 1 and 2, and then -3 and 4."""
    x = np.random.default_rng(1).standard_normal((600, 2))
    y = np.concatenate([x[:300] @ [1.0, 2.0], x[300:] @ [-3.0, 4.0]])
    learner = RecursiveLeastSquares(2, forgetting=0.9)
    for one, answer in zip(x, y):
        learn(learner, one, answer)
    what = "weights of 1, 2 that become -3, 4 half way, forgetting 0.9: self.weights at the end"
    check_array(learner.weights, np.array([-3.0, 4.0]), what, which_recursion, tolerance=1e-6)


@pytest.mark.task("13.5")
def test_two_thousand_examples_with_forgetting_do_no_harm_to_the_covariance():
    """What rounding does to it is divided by 0.9 every time: 2000 times that is a number of 92 digits."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2000, 4)), rng.standard_normal(2000)
    learner = RecursiveLeastSquares(4, forgetting=0.9)
    for one, answer in zip(x, y):
        learn(learner, one, answer)
    what = "2000 examples with forgetting 0.9: self.weights, against the closed form,"
    look = first_that_tells(which_recursion, lambda: lopsided(learner.covariance))
    with np.errstate(all="ignore"):
        check_array(learner.weights, closed_form(x, y, 0.9)[0], what, look, tolerance=1e-10)


# 13.6 and 13.7 The Kalman filter


@pytest.mark.task("13.6")
def test_time_carries_the_state_along_and_makes_it_less_certain():
    """One step at a speed of 1. The place is as uncertain as it was, and by the speed's uncertainty more."""
    tracker = KalmanFilter([0.0, 1.0], 1.0)
    predicted(tracker, MOVES, 0.0)
    what = "state [0, 1] with covariance I, after predict([[1, 1], [0, 1]], 0):"
    check_array(tracker.state, np.array([1.0, 1.0]), f"{what} the state", which_prediction)
    check_array(tracker.covariance, np.array([[2.0, 1.0], [1.0, 1.0]]), f"{what} the covariance", which_prediction)


@pytest.mark.task("13.6")
def test_the_noise_of_the_movement_is_added():
    tracker = KalmanFilter([3.0], 2.0)
    predicted(tracker, [[0.5]], [[0.25]])
    what = "state [3] with covariance 2, after predict([[0.5]], [[0.25]]):"
    check_array(tracker.state, np.array([1.5]), f"{what} the state", which_prediction)
    check_array(tracker.covariance, np.array([[0.75]]), f"{what} the covariance", which_prediction)


@pytest.mark.task("13.6")
def test_two_steps_of_time_are_carried_along_one_after_the_other():
    """After [[2, 1], [1, 1]] and a quarter more of each variance, the place gets 2.25 + 1 + 1 + 1.25."""
    tracker = KalmanFilter([0.0, 1.0], 1.0)
    for _ in range(2):
        predicted(tracker, MOVES, 0.25)
    what = "state [0, 1] with covariance I, after predict([[1, 1], [0, 1]], 0.25) twice:"
    check_array(tracker.state, np.array([2.0, 1.0]), f"{what} the state", which_prediction)
    check_array(tracker.covariance, np.array([[5.75, 2.25], [2.25, 1.5]]), f"{what} the covariance", which_prediction)


@pytest.mark.task("13.7")
def test_a_measured_place_corrects_the_speed_as_well():
    """2 of uncertainty against 2 of noise: half of the innovation of 3 goes to the place, a quarter to the speed."""
    tracker = KalmanFilter([1.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    corrected(tracker, [4.0], SEES_PLACE, 2.0)
    what = "state [1, 1] with covariance [[2, 1], [1, 1]], after a place of 4 with noise 2:"
    check_array(tracker.state, np.array([2.5, 1.75]), f"{what} the state", which_correction)
    check_array(tracker.covariance, np.array([[1.0, 0.5], [0.5, 0.75]]), f"{what} the covariance", which_correction)


@pytest.mark.task("13.7")
def test_a_covariance_stays_symmetric_and_positive_for_ten_thousand_steps():
    """A place and a speed, unknown at the start, and measured to a thousandth: the plain form fails after hundreds."""
    tracker = KalmanFilter([0.0, 0.0], 1e6)
    for step in range(10_000):
        tracker.predict(MOVES, 0.0)
        tracker.update([0.001 * step], SEES_PLACE, 1e-6)
        if step % 10 == 0 or step < 100:
            check_covariance(tracker.covariance, f"place and speed, measured to a thousandth: after {step + 1} steps")


@pytest.mark.task("13.7")
def test_two_measurements_at_once_count_as_one_after_the_other():
    both = KalmanFilter([1.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    corrected(both, [4.0, 5.0], [[1.0, 0.0], [1.0, 2.0]], [[2.0, 0.0], [0.0, 4.0]])
    # By hand, the second after the first: 5 is expected to be 6, and 6 of uncertainty stand against 4 of noise.
    what = "state [1, 1], covariance [[2, 1], [1, 1]], after [[1, 0], [1, 2]] @ state is 4 and 5, noise 2 and 4:"
    check_array(both.state, np.array([2.3, 1.55]), f"{what} the state", which_correction)
    check_array(both.covariance, np.array([[0.6, 0.1], [0.1, 0.35]]), f"{what} the covariance", which_correction)


@pytest.mark.task("13.7")
def test_of_something_that_stays_the_estimate_is_the_mean():
    tracker = KalmanFilter([0.0], 1e9)
    measured = [4.0, 6.0, 5.0, 9.0]
    for one in measured:
        predicted(tracker, [[1.0]], 0.0)
        corrected(tracker, [one], [[1.0]], 1.0)
    what = "measurements 4, 6, 5, 9 of something that stays: the"
    check_array(tracker.state, np.array([6.0]), f"{what} state", which_correction, tolerance=1e-6)
    check_array(tracker.covariance, np.array([[0.25]]), f"{what} covariance", which_correction, tolerance=1e-6)


@pytest.mark.task("13.7")
def test_a_very_precise_measurement_does_not_make_it_certain_beyond_reason():
    """A noise of 1e-10 against an uncertainty of a million. Their sum is a million: the noise is rounded away."""
    tracker = KalmanFilter([0.0, 0.0], [[2e6, 1e6], [1e6, 1e6]])
    corrected(tracker, [1.0], SEES_PLACE, 1e-10)
    what = "covariance [[2e6, 1e6], [1e6, 1e6]], after a place with noise 1e-10:"
    check_covariance(tracker.covariance, what)
    check_close(float(tracker.covariance[0, 0]) * 1e10, 1.0, f"{what} the place's variance, times 1e10,", 1e-6, joseph)


# 13.8 Training with a Kalman filter


@pytest.mark.task("13.8")
def test_a_first_example_moves_a_line_by_its_gain():
    """3 is expected to be 0. The slopes are 2 and 1, so S = 4 + 1 + 1, and the gain is [2, 1] / 6."""
    model = line(0.0, 0.0)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=1.0)
    taught(method, [[2.0]], [[3.0]])
    what = "a line of zeros, covariance 1 and noise 1, after 2 -> 3:"
    check_parameter(model.weight, [[1.0]], f"{what} the weight", which_training)
    check_parameter(model.bias, [0.5], f"{what} the bias", which_training)


@pytest.mark.task("13.8")
def test_on_a_line_it_is_least_squares():
    """From weight 3 and bias -1, whose uncertainty of 4 keeps them a little where they are."""
    model = line(3.0, -1.0)
    method = ExtendedKalmanFilter(model, covariance=4.0, noise=1.0)
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 2.0, 6.0, 7.0])
    for one, answer in zip(x, y):
        taught(method, [[one]], [[answer]])
    slopes = np.stack([x, np.ones(4)], axis=1)
    start = np.array([3.0, -1.0])
    wanted = start + np.linalg.solve(slopes.T @ slopes + np.eye(2) / 4.0, slopes.T @ (y - slopes @ start))
    what = "a line from weight 3 and bias -1, covariance 4 and noise 1, after four examples:"
    check_parameter(model.weight, [[wanted[0]]], f"{what} the weight", which_training)
    check_parameter(model.bias, [wanted[1]], f"{what} the bias", which_training)


@pytest.mark.task("13.8")
def test_what_is_expected_is_what_the_network_says():
    """tanh(2w) at w = 0.5 is 0.76. Its slope times w would be 0.42."""
    model = Bent(0.5)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=0.5)
    slope = 2.0 * (1.0 - np.tanh(1.0) ** 2)
    taught(method, [[2.0]], [[0.0]])
    wanted = 0.5 - slope / (slope * slope + 0.5) * np.tanh(1.0)
    what = "tanh(w * x) with w = 0.5, covariance 1 and noise 0.5, after 2 -> 0: w"
    check_parameter(model.w, [wanted], what, which_training)


@pytest.mark.task("13.8")
def test_drift_makes_the_parameters_less_certain_before_they_learn():
    """1 + 0.5 of uncertainty against 1 of noise: 1.5 / 2.5 is left of it, and of the innovation taken over."""
    model = Flat(0.0)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=1.0, drift=0.5)
    taught(method, [[1.0]], [[5.0]])
    what = "y = w * x from w = 0, covariance 1, noise 1 and drift 0.5, after 1 -> 5:"
    check_parameter(model.w, [3.0], f"{what} w", which_training)
    check_array(method.filter.covariance, np.array([[0.6]]), f"{what} the covariance", which_training)


@pytest.mark.task("13.8")
def test_time_passes_once_for_all_that_comes_at_once():
    """1 + 0.5 of uncertainty, and two measurements of it with noise 1: 1 / (1 / 1.5 + 2) = 0.375 is left."""
    model = Flat(0.0)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=1.0, drift=0.5)
    taught(method, [[1.0], [1.0]], [[5.0], [3.0]])
    what = "y = w * x from w = 0, covariance 1, noise 1 and drift 0.5, after 1 -> 5 and 1 -> 3 at once:"
    look = first_that_tells(which_training, which_batch)
    check_array(method.filter.covariance, np.array([[0.375]]), f"{what} the covariance", look)
    check_parameter(model.w, [3.0], f"{what} w", look)


@pytest.mark.task("13.8")
def test_however_many_steps_it_learns_nothing_grows():
    method = ExtendedKalmanFilter(Flat(0.0), covariance=1.0, noise=1.0)
    for thing, name in ((method, "ExtendedKalmanFilter"), (method.filter, "its filter")):
        check_does_not_grow(thing, lambda: taught(method, [[0.5]], [[3.0]]), name)


@pytest.mark.task("13.8")
def test_several_examples_may_come_at_once():
    model = Flat(0.0)
    taught(ExtendedKalmanFilter(model, covariance=1.0, noise=1.0), [[1.0], [2.0]], [[6.0], [3.0]])
    what = "y = w * x from w = 0, covariance 1 and noise 1, after 1 -> 6 and 2 -> 3 at once: w"
    check_parameter(model.w, [12.0 / 6.0], what, first_that_tells(which_training, which_batch))


@pytest.mark.task("13.8")
def test_a_network_learns_a_sine_from_a_stream_that_it_sees_once():
    model = network(seed=1)
    method = ExtendedKalmanFilter(model)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = rng.uniform(-1.0, 1.0, (1, 1))
        taught(method, x, np.sin(np.pi * x) + 0.1 * rng.standard_normal((1, 1)))
    x = np.linspace(-1.0, 1.0, 50).reshape(-1, 1)
    loss = squared_error(model, x, np.sin(np.pi * x))
    if not loss < 0.02:
        message = f"after 300 noisy examples of a sine, each seen once, the mean squared error is {loss:.3g}"
        raise CheckFailed(f"{message}, expected below 0.02", which_training())


# The harder suite: python grader.py 13 --goal

SIZES = [(1, 1), (2, 3), (3, 2, 1), (1, 4, 4, 2), (2, 1, 3)]


def deep(sizes, seed=0, dtype=np.float64) -> Module:
    """Linear layers with tanh between them and random parameters."""
    layers = []
    for n_inputs, n_outputs in itertools.pairwise(sizes):
        layers += [Linear(n_inputs, n_outputs, dtype=dtype), Tanh()]
    model = Sequential(*layers[:-1])
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.data = rng.standard_normal(parameter.shape).astype(dtype)
    return model


@pytest.mark.goal
@pytest.mark.task("13.1")
def test_goal_vectorize_parameters_holds_those_of_many_networks():
    for sizes in SIZES:
        for dtype in (np.float64, np.float32):
            model = deep(sizes, dtype=dtype)
            wanted = np.array([number for p in model.parameters() for number in p.data.flat], dtype)
            check_array(vectorized(model), wanted, f"the vector of a {np.dtype(dtype)} network of sizes {sizes}")


@pytest.mark.goal
@pytest.mark.task("13.1")
def test_goal_devectorize_parameters_with_a_change_and_its_opposite_leaves_them():
    for sizes in SIZES:
        model = deep(sizes)
        before = [parameter.data.copy() for parameter in model.parameters()]
        change = np.arange(1.0, sum(parameter.size for parameter in model.parameters()) + 1.0)
        changed(model, change)
        start = 0
        for parameter, old in zip(model.parameters(), before):
            moved = old + np.reshape([change[start + i] for i in range(old.size)], old.shape)
            check_parameter(parameter, moved, f"a network of sizes {sizes} after a change by 1, 2, 3, ...")
            start += old.size
        changed(model, -change)
        for parameter, old in zip(model.parameters(), before):
            check_parameter(parameter, old, f"a network of sizes {sizes} after a change and its opposite")


@pytest.mark.goal
@pytest.mark.task("13.2")
def test_goal_jacobians_match_central_differences():
    for seed, sizes in enumerate(SIZES):
        for batch in (1, 3):
            model = deep(sizes, seed)
            x = np.random.default_rng(seed + 10).standard_normal((batch, sizes[0]))
            columns = []
            for parameter in model.parameters():
                for place in np.ndindex(parameter.shape):
                    ends = []
                    for step in (1e-6, -1e-6):
                        parameter.data[place] += step
                        ends.append(model(x).data.ravel().copy())
                        parameter.data[place] -= step
                    columns.append((ends[0] - ends[1]) / 2e-6)
            what = f"a network of sizes {sizes}, {batch} examples: the jacobian (against central differences)"
            check_array(slopes_of(model, x), np.stack(columns, axis=1), what, tolerance=1e-5)


@pytest.mark.goal
@pytest.mark.task("13.3")
def test_goal_damped_steps_are_the_least_squares_with_damping_as_further_rows():
    """sqrt(damping) * d = 0, as one more equation for each parameter."""
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (5, 3), (3, 5), (40, 7)):
        for damping in (1e-3, 1.0, 1e3):
            slopes, errors = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
            more = np.concatenate([slopes, np.sqrt(damping) * np.eye(columns)])
            wanted = np.linalg.lstsq(more, np.concatenate([-errors, np.zeros(columns)]), rcond=None)[0]
            what = f"slopes of shape {(rows, columns)}, damping {damping}: the damped step"
            check_array(stepped(slopes, errors, damping), wanted, what, which_damped, tolerance=1e-8)


@pytest.mark.goal
@pytest.mark.task("13.4")
def test_goal_many_networks_learn_a_sine_and_no_step_ever_hurts():
    x = np.linspace(-1.0, 1.0, 40).reshape(-1, 1)
    y = np.sin(np.pi * x)
    for seed in range(6):
        model = network(seed)
        method = LevenbergMarquardt(model)
        losses = [squared_error(model, x, y)]
        for step in range(40):
            losses.append(tried(method, x, y))
            what = f"network {seed}, step {step + 1}: what it returns, against the mean squared error,"
            check_close(losses[-1], squared_error(model, x, y), what, probe=which_step)
        if not never_rises(losses) or not losses[-1] < 1e-5:
            message = f"network {seed} has a mean squared error of {losses[-1]:.2g} after 40 steps, the most ever was "
            raise CheckFailed(f"{message}{max(losses):.2g}", which_step())


class Logarithm(Module):
    """log(w * x), with a single parameter. Below 0 there is none."""

    def __init__(self, w: float):
        self.w = Tensor([w])

    def forward(self, x):
        return log(x * self.w)


@pytest.mark.goal
@pytest.mark.task("13.4")
def test_goal_a_step_to_where_there_is_no_error_at_all_is_undone():
    """On log(w) towards 0 from w = 5 the step leads to -3, where the logarithm is nan. That is not smaller."""
    model = Logarithm(5.0)
    method = LevenbergMarquardt(model, damping=1e-4)
    with np.errstate(all="ignore"):
        tried(method, np.array([[1.0]]), np.array([[0.0]]))
    what = "log(w) towards 0 from w = 5 with damping 0.0001, after a step that leads to w = -3 and to nan:"
    told = "An error of nan is not smaller, and it is not larger either: ask whether the new one is smaller, with <."
    look = first_that_tells(which_step, lambda: told)
    check_parameter(model.w, [5.0], f"{what} w", look)
    check_close(method.damping, 1e-3, f"{what} the damping", probe=look)


@pytest.mark.goal
@pytest.mark.task("13.1")
def test_goal_parameters_that_lie_in_memory_by_columns_get_their_pieces_too():
    model = Linear(2, 3)
    model.weight.data = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).T
    model.bias.data = np.array([7.0, 0.0, 8.0, 0.0, 9.0])[::2]
    what = "weight [[1, 2, 3], [4, 5, 6]] and bias [7, 8, 9], views of other arrays:"
    check_array(vectorized(model), np.arange(1.0, 10.0), f"{what} the vector", which_vector)
    changed(model, np.arange(10.0, 100.0, 10.0))
    check_parameter(model.weight, [[11.0, 22.0, 33.0], [44.0, 55.0, 66.0]], f"{what} the weight", which_change)
    check_parameter(model.bias, [77.0, 88.0, 99.0], f"{what} the bias", which_change)


@pytest.mark.goal
@pytest.mark.task("13.4")
def test_goal_a_float32_model_is_fitted_as_well():
    model = Linear(1, 1, dtype=np.float32)
    method = LevenbergMarquardt(model, damping=1e-6)
    x, y = np.float32([[0.0], [1.0], [2.0]]), np.float32([[1.0], [2.0], [6.0]])
    for _ in range(5):
        method.step(x, y)
    check_close(model.weight.data, np.float32([[2.5]]), "a float32 line after five steps: the weight", tolerance=1e-4)
    check_close(model.bias.data, np.float32([0.5]), "a float32 line after five steps: the bias", tolerance=1e-4)


@pytest.mark.goal
@pytest.mark.task("13.5")
def test_goal_recursive_least_squares_is_the_closed_form_after_every_example():
    for n in (1, 3, 6):
        for forgetting in (1.0, 0.99, 0.8):
            rng = np.random.default_rng(n)
            x, y = rng.standard_normal((60, n)), rng.standard_normal(60)
            learner = RecursiveLeastSquares(n, forgetting, covariance=10.0)
            for i in range(60):
                learn(learner, x[i], y[i])
                weights, covariance = closed_form(x[: i + 1], y[: i + 1], forgetting, 10.0)
                what = f"{n} inputs, forgetting {forgetting}, after example {i + 1}:"
                check_array(learner.weights, weights, f"{what} self.weights", which_recursion, tolerance=1e-10)
                check_array(learner.covariance, covariance, f"{what} self.covariance", which_recursion, tolerance=1e-9)


@pytest.mark.goal
@pytest.mark.task("13.6")
def test_goal_random_movements_spread_a_cloud_of_points_as_the_covariance_says():
    """Points at state + root @ z, for every z with a single 1: what becomes of the root, becomes of the covariance."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5):
        root, noise_root = rng.standard_normal((n, n)), rng.standard_normal((n, n))
        state = rng.standard_normal(n)
        tracker = KalmanFilter(state, root @ root.T)
        for step in range(5):
            transition = rng.standard_normal((n, n))
            predicted(tracker, transition, noise_root @ noise_root.T)
            state, root = transition @ state, np.concatenate([transition @ root, noise_root], axis=1)
            what = f"{n} numbers, after movement {step + 1}: the"
            check_array(tracker.state, state, f"{what} state", which_prediction, tolerance=1e-8)
            check_array(tracker.covariance, root @ root.T, f"{what} covariance", which_prediction, tolerance=1e-8)


@pytest.mark.goal
@pytest.mark.task("13.7")
def test_goal_a_filter_with_a_state_that_stays_is_weighted_least_squares():
    """Measurements of several numbers at once, each with its own noise, against the closed form."""
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (2, 1), (3, 2), (2, 4)):
        start = rng.standard_normal(n)
        tracker = KalmanFilter(start, 5.0)
        information, weighted = np.eye(n) / 5.0, start / 5.0
        for _ in range(30):
            observation, measured = rng.standard_normal((m, n)), rng.standard_normal(m)
            root = rng.standard_normal((m, m))
            noise = root @ root.T + np.eye(m)
            corrected(tracker, measured, observation, noise)
            information = information + observation.T @ np.linalg.solve(noise, observation)
            weighted = weighted + observation.T @ np.linalg.solve(noise, measured)
        what = f"{n} numbers, 30 measurements of {m} at once: the"
        state = np.linalg.solve(information, weighted)
        check_array(tracker.state, state, f"{what} state", which_correction, tolerance=1e-9)
        inverse = np.linalg.inv(information)
        check_array(tracker.covariance, inverse, f"{what} covariance", which_correction, tolerance=1e-9)


@pytest.mark.goal
@pytest.mark.task("13.7")
def test_goal_random_movements_stay_symmetric_and_positive():
    rng = np.random.default_rng(1)
    for n in (1, 2, 4):
        transition = 0.5 * rng.standard_normal((n, n))
        tracker = KalmanFilter(np.zeros(n), 1e4)
        for _ in range(200):
            predicted(tracker, transition, 1e-3)
            corrected(tracker, rng.standard_normal(1), rng.standard_normal((1, n)), 1e-6)
            check_covariance(tracker.covariance, f"{n} numbers that move, measured to a thousandth")


@pytest.mark.goal
@pytest.mark.task("13.8")
def test_goal_steps_on_networks_are_those_of_the_textbook():
    for seed, sizes in enumerate(SIZES):
        model, twin = deep(sizes, seed), deep(sizes, seed)
        method = ExtendedKalmanFilter(model, covariance=2.0, noise=0.3, drift=0.01)
        rng = np.random.default_rng(seed)
        covariance = 2.0 * np.eye(sum(parameter.size for parameter in twin.parameters()))
        for step in range(10):
            x, y = rng.standard_normal((2, sizes[0])), rng.standard_normal((2, sizes[-1]))
            slopes = jacobian(twin, x)
            covariance = covariance + 0.01 * np.eye(len(covariance))
            spread = slopes @ covariance @ slopes.T + 0.3 * np.eye(len(slopes))
            gain = covariance @ slopes.T @ np.linalg.inv(spread)
            move(twin, gain @ (y - twin(x).data).ravel())
            covariance = covariance - gain @ spread @ gain.T
            taught(method, x, y)
            for ours, theirs in zip(model.parameters(), twin.parameters()):
                what = f"a network of sizes {sizes}, after step {step + 1}: a parameter"
                check_parameter(ours, theirs.data, what, which_training, tolerance=1e-6)


@pytest.mark.goal
@pytest.mark.task("13.8")
def test_goal_a_network_that_was_changed_meanwhile_is_trained_from_where_it_is():
    model = Flat(0.0)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=1.0)
    model.w.data = np.array([4.0])
    taught(method, [[1.0]], [[5.0]])
    what = "y = w * x, set to w = 4 by hand, covariance 1 and noise 1, after 1 -> 5: w"
    check_parameter(model.w, [4.5], what, which_training)


# The checks of this chapter.

MOVES = np.array([[1.0, 1.0], [0.0, 1.0]])  # a step of time: the place grows by the speed
SEES_PLACE = np.array([[1.0, 0.0]])


class Bent(Module):
    """tanh(w * x), with a single parameter."""

    def __init__(self, w: float):
        self.w = Tensor([w])

    def forward(self, x):
        return tanh(x * self.w)


class Flat(Module):
    """w * x, with a single parameter."""

    def __init__(self, w: float):
        self.w = Tensor([w])

    def forward(self, x):
        return x * self.w


def line(weight: float, bias: float) -> Linear:
    model = Linear(1, 1)
    model.weight.data, model.bias.data = np.array([[weight]]), np.array([bias])
    return model


def counting(n_inputs: int, n_outputs: int, bias: bool = True) -> Linear:
    """A Linear whose parameters are 1, 2, 3, ..."""
    model = Linear(n_inputs, n_outputs, bias=bias)
    size = n_inputs * n_outputs
    model.weight.data = np.arange(1.0, size + 1.0).reshape(n_inputs, n_outputs)
    if bias:
        model.bias.data = np.arange(size + 1.0, size + n_outputs + 1.0)
    return model


def network(seed: int) -> Module:
    """1 -> 10 -> 1 with tanh between, and all its parameters random, the biases too."""
    model, rng = Sequential(Linear(1, 10), Tanh(), Linear(10, 1)), np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.data = rng.standard_normal(parameter.shape)
    return model


def move(model: Module, change: np.ndarray) -> None:
    """What devectorize_parameters does, by these tests' own hand."""
    start = 0
    for parameter in model.parameters():
        parameter.data = parameter.data + change[start : start + parameter.size].reshape(parameter.shape)
        start += parameter.size


def squared_error(model: Module, x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.mean((model(x).data - y) ** 2))


def never_rises(losses) -> bool:
    """But for what is rounded where a step is taken back."""
    return all(after <= before * (1.0 + 1e-6) + 1e-12 for before, after in itertools.pairwise(losses))


def closed_form(x, y, forgetting=1.0, covariance=1000.0) -> tuple[np.ndarray, np.ndarray]:
    """The weights from all examples at once, and their covariance. The start counts too, until it is forgotten."""
    counts = forgetting ** np.arange(len(x) - 1.0, -1.0, -1.0)
    matrix = (x * counts[:, None]).T @ x + forgetting ** len(x) / covariance * np.eye(x.shape[1])
    return np.linalg.solve(matrix, x.T @ (counts * y)), np.linalg.inv(matrix)


def vectorized(model):
    with nothing_else_changes("vectorize_parameters(model)", model=model):
        return explained(lambda: vectorize_parameters(model), which_vector)


def changed(model, change):
    names = set(vars(model))
    with nothing_else_changes("devectorize_parameters(model, change)", change=change):
        explained(lambda: devectorize_parameters(model, change), which_change)
    check_names(model, names, "devectorize_parameters(model, change)")


def slopes_of(model, x):
    x = np.asarray(x)
    try:
        with nothing_else_changes("jacobian(model, x)", model=model, x=x):
            return explained(lambda: jacobian(model, x), which_jacobian)
    except CheckFailed as error:  # moved there and back again for a difference, a parameter is not quite what it was
        error.diagnosis = ask(never_walked) or error.diagnosis
        raise


def stepped(slopes, errors, damping):
    slopes, errors = slopes.copy(), errors.copy()
    with nothing_else_changes("damped_step(slopes, errors, damping)", slopes=slopes, errors=errors):
        return explained(lambda: damped_step(slopes, errors, damping), which_damped)


def check_names(thing, names, during):
    """What a model has for its own may change in number and size alone, and not in name."""
    if set(vars(thing)) != names:
        more = ", ".join(sorted(set(vars(thing)) ^ names))
        raise CheckFailed(f"after {during} there is more or less in it than before: {more}")


def check_does_not_grow(thing, step, what):
    """After ten more examples it holds no more numbers than after three."""
    for _ in range(3):
        step()
    sizes = []
    for _ in range(2):
        several = list | tuple | dict | set
        sizes.append(
            {name: len(one) if isinstance(one, several) else np.size(one) for name, one in vars(thing).items()}
        )
        for _ in range(10):
            step()
    grown = [name for name in sizes[1] if sizes[1][name] != sizes[0].get(name)]
    if grown:
        message = f"{what}: with ten more examples self.{grown[0]} has grown from {sizes[0].get(grown[0])} to "
        told = "No example is kept: all that has to be known of them is in numbers that stay as many."
        raise CheckFailed(f"{message}{sizes[1][grown[0]]}", told)


def tried(method, x, y):
    """What LevenbergMarquardt.step returns. It is one try: whoever goes on until one helps may go on for ever."""
    moves, real = [], control.errors_of

    def watched(*arguments):
        moves.append(arguments)
        if len(moves) > 5:
            raise CheckFailed(
                "a single call of LevenbergMarquardt.step goes on and on: it asks for the errors a sixth time",
                "It makes one try, and returns also if that was a bad one: the next call is the next try. No loop.",
            )
        return real(*arguments)

    control.errors_of = watched
    try:
        with nothing_else_changes("step(x, target)", x=x, target=y):
            return method.step(x, y)
    finally:
        control.errors_of = real


def learn(learner, x, y):
    with np.errstate(all="ignore"), nothing_else_changes("update(x, y)", x=x, forgetting=learner.forgetting):
        explained(lambda: learner.update(x, y), which_recursion)


def predicted(tracker, transition, noise):
    transition, noise = np.array(transition), np.array(noise)
    with nothing_else_changes("predict(transition, noise)", transition=transition, noise=noise):
        explained(lambda: tracker.predict(transition, noise), which_prediction)


def corrected(tracker, measured, observation, noise):
    given = {"measured": np.array(measured), "observation": np.array(observation), "noise": np.array(noise)}
    with nothing_else_changes("update(measured, observation, noise)", **given):
        explained(lambda: tracker.update(*given.values()), which_correction)


def taught(method, x, y):
    x, y = np.asarray(x), np.asarray(y)
    with nothing_else_changes("step(x, target)", x=x, target=y, noise=method.noise, drift=method.drift):
        explained(lambda: method.step(x, y), which_training)


def check_array(actual, expected, what, probe=None, tolerance=1e-9):
    """`check_close` for what has to be an array."""
    if actual is None:
        message = f"{what} is None, expected an array of shape {expected.shape}"
        raise CheckFailed(message, "Nothing comes back: is there a return?")
    if not isinstance(actual, np.ndarray):
        told = "A Tensor has become of it: calculate with .data." if isinstance(actual, Tensor) else None
        if isinstance(actual, list | tuple):
            told = "An array belongs there: np.concatenate joins arrays to a long one, np.array makes a table of rows."
        kind = type(actual).__name__
        raise CheckFailed(f"{what} is of type {kind}, expected an array of shape {expected.shape}", told)
    if tolerance < 1e-8 and expected.dtype == np.float32:
        tolerance = 1e-6
    check_close(actual, expected, what, tolerance, probe)


def check_parameter(parameter, expected, what, probe=None, tolerance=1e-9):
    """A parameter's numbers, which have to be in an array still."""
    if isinstance(parameter.data, Tensor):
        raise CheckFailed(
            f"{what}: its data is now a Tensor, expected an array",
            "A Tensor has become of it: calculate with parameter.data, and not with the parameter itself.",
        )
    check_array(parameter.data, np.asarray(expected, parameter.data.dtype), what, probe, tolerance)


def check_covariance(covariance, what):
    """Is it symmetric, and positive in every direction? All in units of the uncertainties themselves."""
    if not np.isfinite(covariance).all():
        raise CheckFailed(f"{what} the covariance is {show(covariance)}", ask(which_correction, joseph))
    variances = np.diag(covariance)
    if not (variances > 0.0).all():
        message = f"{what} the variances are {show(variances)}, expected numbers above 0"
        raise CheckFailed(message, ask(which_correction, joseph))
    units = np.sqrt(np.outer(variances, variances))
    uneven = float(np.max(np.abs(covariance - covariance.T) / units))
    if uneven > 1e-6:
        i, j = np.unravel_index(np.argmax(np.abs(covariance - covariance.T) / units), covariance.shape)
        pair = f"[{i}, {j}] is {show(float(covariance[i, j]))}, and [{j}, {i}] is {show(float(covariance[j, i]))}"
        message = f"{what} the covariance is not symmetric any more: {pair}"
        raise CheckFailed(message, ask(which_correction, which_prediction, joseph))
    lowest = float(np.linalg.eigvalsh(0.5 * (covariance + covariance.T) / units)[0])
    if not lowest > 0.0:
        message = f"{what} the covariance {show(covariance)} has a direction with a variance of 0 or less"
        raise CheckFailed(message, ask(which_correction, which_prediction, joseph))


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def vector_by_hand():
    model = Sequential(counting(2, 2), counting(2, 1))
    for number, parameter in enumerate(model.parameters(), 1):
        parameter.grad = np.full(parameter.shape, 10.0 * number)
    return vectorize_parameters(model)


which_vector = first_that_tells(
    which_formula(
        vector_by_hand,
        {
            "A matrix goes in column by column: row by row is the order of ravel().": [1, 3, 2, 4, 5, 6, 1, 2, 3],
            "Only the weights are there: the biases are parameters as well.": [1, 2, 3, 4, 1, 2],
            "Only the biases are there: the weights are parameters as well.": [5, 6, 3],
            "There is only the first parameter.": [1, 2, 3, 4],
            "There is only the last parameter: all of them have to be collected.": [3],
            "The parameters come in another order than that of model.parameters().": [3, 1, 2, 5, 6, 1, 2, 3, 4],
            "These are the gradients: the parameters' numbers are in .data.": [10, 10, 10, 10, 20, 20, 30, 30, 40],
            "The numbers are sorted: each has to stay at its place.": [1, 1, 2, 2, 3, 3, 4, 5, 6],
            "These are the sizes of the parameters, and not their numbers.": [4, 2, 2, 1],
        },
    ),
    lambda: (
        "np.array puts the parameters below each other, as they are: np.concatenate joins what ravel() makes of each."
        if np.ndim(vectorize_parameters(counting(2, 1, bias=False))) == 3
        else None
    ),
    lambda: (
        "They are still two-dimensional: ravel() makes one row of numbers of a parameter of any shape."
        if np.ndim(vectorize_parameters(Sequential(counting(1, 1, bias=False), counting(1, 1, bias=False)))) == 2
        else None
    ),
)


def change_by_hand():
    model = Sequential(counting(2, 2), counting(2, 2))
    devectorize_parameters(model, np.arange(10.0, 130.0, 10.0))
    return np.concatenate([np.ravel(parameter.data) for parameter in model.parameters()])


COUNTED = np.array([1, 2, 3, 4, 5, 6] * 2)
PIECES = np.arange(10, 130, 10)
which_change = which_formula(
    change_by_hand,
    {
        "The vector takes the parameters' place: it has to be added to what is there.": PIECES,
        "The vector is subtracted: it has to be added.": COUNTED - PIECES,
        "Nothing has moved: the sum has to get into parameter.data.": COUNTED,
        "Every parameter gets the beginning of the vector: each has its own piece, after those before it.": COUNTED
        + [10, 20, 30, 40, 10, 20, 10, 20, 30, 40, 10, 20],
        "A matrix gets its piece column by column: row by row is the order of reshape.": COUNTED
        + [10, 30, 20, 40, 50, 60, 70, 90, 80, 100, 110, 120],
        "The pieces go to the parameters from the last to the first: the order is that of model.parameters().": COUNTED
        + [90, 100, 110, 120, 70, 80, 30, 40, 50, 60, 10, 20],
        "Only the first parameter has moved.": COUNTED + [10, 20, 30, 40, 0, 0, 0, 0, 0, 0, 0, 0],
        "The pieces overlap: the next one starts where this one ends, at start + parameter.size.": COUNTED
        + [10, 20, 30, 40, 30, 40, 50, 60, 70, 80, 70, 80],
        "The pieces overlap: the next one starts parameter.size further on, and not 1.": COUNTED
        + [10, 20, 30, 40, 20, 30, 30, 40, 50, 60, 40, 50],
        "The start is set to the length of a piece. It moves on by it: start += parameter.size.": COUNTED
        + [10, 20, 30, 40, 50, 60, 30, 40, 50, 60, 50, 60],
    },
)


def asked_to_cut():
    """Where is np.split asked to cut? With parameters of 4, 2 and 4, 2 numbers at 4, 6 and 10."""
    asked, split = [], np.split

    def watched(array, places, axis=0):
        asked.append(places)
        return split(array, places, axis)

    np.split = watched
    try:
        ask(change_by_hand)
    finally:
        np.split = split
    if not asked:
        return None
    if isinstance(asked[0], int | np.integer):
        return "np.split with a number makes pieces of one length, and the parameters have different ones."
    if np.asarray(asked[0]).tolist()[:2] == [4, 2]:
        return "np.split takes the places where it cuts, and not lengths: places add up, as in np.cumsum."
    return None


def ends_at_its_length():
    """Is the first piece right, and each later one cut short?"""
    first, both = Linear(1, 1, bias=False), line(0.0, 0.0)
    first.weight.data = np.array([[0.0]])
    devectorize_parameters(first, np.array([1.0]))
    try:
        devectorize_parameters(both, np.array([1.0, 2.0]))
    except ValueError as error:
        if "array of size 0" in str(error):
            return "The second piece is empty: it goes from start to start + parameter.size, and not to parameter.size."
    return None


which_change = first_that_tells(
    which_change,
    asked_to_cut,
    ends_at_its_length,
    lambda: (
        "A piece is a row of numbers, and a parameter may be a table: reshape(parameter.shape)."
        if row_works() and not table_works()
        else None
    ),
)


def row_works() -> bool:
    model = Linear(1, 1)
    devectorize_parameters(model, np.array([1.0, 2.0]))
    return True


def table_works() -> bool:
    try:
        devectorize_parameters(Linear(2, 3), np.arange(9.0))
    except ValueError as error:
        return "broadcast" not in str(error)
    return True


def jacobian_by_hand():
    return jacobian(counting(1, 2), np.array([[3.0], [5.0]]))


RIGHT_ROWS = np.array([[3, 0, 1, 0], [0, 3, 0, 1], [5, 0, 1, 0], [0, 5, 0, 1]])
which_jacobian = first_that_tells(
    which_formula(
        jacobian_by_hand,
        {
            "All outputs are taken together, in one row: each needs a backward() of its own.": [[8, 8, 2, 2]],
            "All outputs are taken together: each needs a row, from a backward() of its own.": [8, 8, 2, 2],
            "All outputs together are in every row: the gradient to start with has a 1 for one of them.": [[8, 8, 2, 2]]
            * 4,
            "There is a row for each example: each of its outputs needs one of its own.": [[3, 3, 1, 1], [5, 5, 1, 1]],
            "There is a row for each output of the first example: the others need theirs as well.": RIGHT_ROWS[:2],
            "It lies on its side: a row is an output, a column is a parameter.": RIGHT_ROWS.T,
            "The rows of one output after the other: they come example by example, as in model(x).data.ravel().": (
                RIGHT_ROWS[[0, 2, 1, 3]]
            ),
            "These are the parameters themselves: the slopes are in their .grad.": [[1, 2, 3, 4]] * 4,
            "The slopes have the wrong sign.": -RIGHT_ROWS,
            "All rows are the last one: each has to be copied before the next is computed.": RIGHT_ROWS[[3, 3, 3, 3]],
            "The columns of the biases are missing.": RIGHT_ROWS[:, :2],
            "The pieces of a row are a list still: np.concatenate joins them to one row.": RIGHT_ROWS.reshape(4, 2, 2),
            "Everything is 0: is the row read before backward() has run, or after zero_grad()?": np.zeros((4, 4)),
            "The table is one long vector: np.array(rows) makes a table of a list of rows.": RIGHT_ROWS.ravel(),
        },
    ),
    lambda: added_up(),
    lambda: (
        "A gradient has the shape of its parameter, which may be a table: ravel() makes one row of numbers of it."
        if np.ndim(jacobian(counting(1, 1, bias=False), np.array([[3.0]]))) == 3
        else None
    ),
    which_formula(
        lambda: jacobian(counting(2, 2, bias=False), np.array([[3.0, 5.0]])),
        {"A matrix goes in column by column: row by row is the order of ravel().": [[3, 5, 0, 0], [0, 0, 3, 5]]},
    ),
    lambda: walked_again(),
    lambda: never_walked(),
    lambda: started_in_another_shape(),
)


def started_in_another_shape():
    """Is backward() given something of another shape than the output's?"""
    given, backward = [], Tensor.backward

    def watched(self, gradient=None, *others, **more):
        given.append((np.shape(gradient), self.shape))
        return backward(self, gradient, *others, **more)

    Tensor.backward = watched
    try:
        jacobian(counting(3, 1), np.array([[1.0, 2.0, 3.0]]))
        jacobian(counting(1, 2), np.array([[3.0], [5.0]]))
    except ValueError:
        pass
    finally:
        Tensor.backward = backward
    if given and given[-1][0] == (1, 3):
        return "The gradient to start with has the shape of x: it belongs to the output, model(x).shape."
    if given and given[-1][0] != given[-1][1]:
        return "The gradient to start with has to have the shape of model(x): zeros, and a single 1."
    return None


def never_walked():
    calls, backward = [], Tensor.backward
    Tensor.backward = lambda self, *arguments, **more: calls.append(1) or backward(self, *arguments, **more)
    try:
        jacobian_by_hand()
    finally:
        Tensor.backward = backward
    return None if calls else "backward() is never called: differences are nearly right, and it is right."


def added_up():
    """Each row has those before it in it. Do they add up in the gradients, or in what backward() is started with?"""
    if not np.allclose(jacobian_by_hand(), np.cumsum(RIGHT_ROWS, axis=0)):
        return None
    starts, backward = [], Tensor.backward

    def watched(self, gradient=None, *others, **more):
        starts.append(np.count_nonzero(gradient))
        return backward(self, gradient, *others, **more)

    Tensor.backward = watched
    try:
        jacobian_by_hand()
    finally:
        Tensor.backward = backward
    if max(starts) > 1:
        return "The 1 of the output before is still there: each row starts with zeros and a single 1."
    return "Each row has those before it in it: gradients add up until zero_grad(), which every row needs."


def walked_again():
    """One single row works, and two do not?"""
    one = jacobian(line(1.0, 1.0), np.array([[3.0]]))
    try:
        jacobian(line(1.0, 1.0), np.array([[3.0], [4.0]]))
    except RuntimeError:
        if np.allclose(one, [[3.0, 1.0]]):
            return "The same graph is walked twice: for each row call model(x) anew, and backward() on that."
    return None


def leftovers():
    if np.allclose(jacobian(line(2.0, 5.0), np.array([[2.0], [3.0]])), [[2.0, 1.0], [3.0, 1.0]]):
        return "Without gradients there it is right: what was there is in the first row. zero_grad() comes before it."
    return None


SLOPES, ERRORS = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]]), np.array([1.0, -2.0, 4.0])
SQUARE, DOWN = SLOPES.T @ SLOPES, -SLOPES.T @ ERRORS
which_damped = first_that_tells(
    which_formula(
        lambda: damped_step(SLOPES, ERRORS, 2.5),
        {
            "It climbs: the right-hand side is minus J^T errors.": -np.linalg.solve(SQUARE + 2.5 * np.eye(2), DOWN),
            "There is no damping in it.": np.linalg.solve(SQUARE, DOWN),
            "The damping is added to every number of J^T J: it belongs on the diagonal only, times np.eye.": (
                np.linalg.solve(SQUARE + 2.5, DOWN)
            ),
            "The damping is subtracted.": np.linalg.solve(SQUARE - 2.5 * np.eye(2), DOWN),
            "The damping is squared.": np.linalg.solve(SQUARE + 6.25 * np.eye(2), DOWN),
            "The diagonal is scaled by damping, which is Marquardt's way. Here the damping itself is added.": (
                np.linalg.solve(SQUARE + 2.5 * np.diag(np.diag(SQUARE)), DOWN)
            ),
            "The identity is added without the damping.": np.linalg.solve(SQUARE + np.eye(2), DOWN),
            "J^T J is damped and nothing is solved: this is their product with the gradient.": (
                SQUARE + 2.5 * np.eye(2)
            )
            @ DOWN,
            "It is a step of gradient descent: where is J^T J?": DOWN / 2.5,
            "It is the gradient alone: where is J^T J?": DOWN,
            "The step is only half as long as it should be.": 0.5 * np.linalg.solve(SQUARE + 2.5 * np.eye(2), DOWN),
            "The step is twice as long as it should be.": 2.0 * np.linalg.solve(SQUARE + 2.5 * np.eye(2), DOWN),
            "J^T J is multiplied by the damping: it is added.": np.linalg.solve(2.5 * SQUARE, DOWN),
            "The damping is added as its root: it is added as it is.": np.linalg.solve(
                SQUARE + np.sqrt(2.5) * np.eye(2), DOWN
            ),
            "The damping is added to the step: it belongs on the diagonal of what is solved.": (
                np.linalg.solve(SQUARE, DOWN) + 2.5
            ),
            "The inverse is multiplied number by number: the product of matrices is @.": np.linalg.inv(
                SQUARE + 2.5 * np.eye(2)
            )
            * DOWN,
            "J^T J and J^T errors are divided by the number of errors. Here they are sums.": np.linalg.solve(
                SQUARE / 3.0 + 2.5 * np.eye(2), DOWN / 3.0
            ),
            "It is divided number by number: np.linalg.solve(A, b) is the vector with A @ d = b.": DOWN
            / (SQUARE + 2.5 * np.eye(2)),
        },
    ),
    lambda: (
        "np.linalg.solve takes the matrix first, and then the right-hand side."
        if solved_the_other_way_round()
        else None
    ),
    lambda: (
        "With damping it is right. slopes @ slopes.T has a row and a column for each error, and without damping it "
        "cannot be solved where there are more errors than parameters: slopes.T @ slopes."
        if right_but_undamped()
        else None
    ),
    lambda: (
        "What is solved has a row and a column for each parameter, and its identity too: slopes.T @ slopes, and "
        "np.eye(slopes.shape[1])."
        if square_works() and not tall_works()
        else None
    ),
)


def right_but_undamped() -> bool:
    if not np.allclose(damped_step(SLOPES, ERRORS, 2.5), np.linalg.solve(SQUARE + 2.5 * np.eye(2), DOWN)):
        return False
    try:
        return not np.allclose(damped_step(SLOPES, ERRORS, 0.0), np.linalg.solve(SQUARE, DOWN))
    except np.linalg.LinAlgError:
        return True


def solved_the_other_way_round() -> bool:
    asked, real = [], np.linalg.solve
    np.linalg.solve = lambda a, b: asked.append(np.ndim(a)) or real(a, b)
    try:
        damped_step(SLOPES, ERRORS, 2.5)
    except np.linalg.LinAlgError:
        return asked == [1]
    finally:
        np.linalg.solve = real
    return False


def square_works() -> bool:
    damped_step(np.eye(2), np.array([1.0, 1.0]), 1.0)
    return True


def tall_works() -> bool:
    try:
        damped_step(SLOPES, ERRORS, 1.0)
    except ValueError:
        return False
    return True


def good_step():
    """(weight, damping, what is returned) of a step that helps. The change is 1."""
    model = Linear(1, 1, bias=False)
    model.weight.data = np.array([[0.0]])
    method = LevenbergMarquardt(model, damping=5.0)
    loss = tried(method, np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))
    return float(model.weight.data[0, 0]), method.damping, loss


def bad_step():
    """The same for a step that hurts."""
    model = Bent(2.0)
    method = LevenbergMarquardt(model, damping=1e-4)
    loss = tried(method, np.array([[1.0]]), np.array([[0.0]]))
    return float(model.w.data[0]), method.damping, loss


INEXACT = (
    "Taken back by a sum it is nearly what it was, and no more: rounding stays. Set the numbers themselves again, from "
    "a copy: state_dict() and load_state_dict()."
)


def which_step() -> str | None:
    """Two steps, one that helps and one that hurts: what became of the parameter and of the damping?"""
    try:
        (weight, damping, loss), (bent, more, old) = good_step(), bad_step()
    except Exception:
        return None
    close = np.isclose
    led_to = bent_step()
    if len(changes_asked(bad_step)) > 2:
        return "It goes on until a step helps. A call makes one try: the next call is the next try. No loop is needed."
    if close(weight, 0.0):
        if close(loss, -3.0) or close(loss, -1.5):
            return "The errors themselves are compared, and may be below 0: the mean of their squares counts."
        if close(bent, led_to):
            return "Good and bad are exchanged: a step is kept where it makes the error smaller."
        if close(first_change(), -1.0):
            return "The step goes uphill, and so it is undone: damped_step gives the change itself, to be added."
        if len(changes_asked(good_step)) == 1 and close(first_change(), 1.0):
            return (
                "A step that helps is made, and undone. Is the error of afterwards computed anew, with errors_of, once "
                "the step is made? `errors` holds those from before."
            )
        return "A step that helps is undone, or never made: the parameters are where they were."
    if close(weight, -1.0):
        return "The step goes uphill: damped_step gives the change itself, to be added."
    if close(weight, 2.0):
        return "The change is made twice."
    if close(weight, 10.0 / 5.5) or close(weight, 10.0 / 55.0):
        return "The damping is changed before the step is made: it is that of this step, and then that of the next."
    if close(bent, 4.0 + led_to - 2.0) or close(bent, led_to + 2.0):
        return "devectorize_parameters adds, and cannot set: the old numbers were added to the new ones."
    if close(bent, led_to - 2.0):
        return "The old numbers are subtracted from the new ones: load_state_dict sets them again."
    if len(changes_asked(bad_step)) > 1 and not close(bent, 2.0) and close(bent, led_to):
        return (
            "The step is taken back by another change than the one that was made: computed anew, it is that of the new "
            "place. Remember the numbers from before, with state_dict()."
        )
    if close(bent, led_to):
        if close(more, 1e-3):
            return (
                "The damping knows that the step was bad, but the parameters stay where it led: it has to be undone, "
                "with a copy of the numbers from before."
            )
        return "A step that makes the error larger is kept."
    if close(damping, 50.0) and close(more, 1e-5):
        return "The damping goes the wrong way: less of it after a step that helps, more after one that hurts."
    if close(damping, 5.0) and close(more, 1e-4):
        return "The damping never changes."
    if close(damping, 50.0):
        return "The damping grows after a step that helps: that one deserves less."
    if close(damping, 5.0):
        return "The damping stays as it is after a step that helps: a tenth of it is enough for the next."
    if close(more, 1e-4):
        return "The damping stays as it is after a step that hurts: the same step would be tried for ever."
    if close(more, 1e-5):
        return "The damping falls after a step that hurts: it needs more, ten times as much."
    if not close(damping, 0.5) or not close(more, 1e-3):
        return "The damping changes by another factor: a tenth after a good step, ten times after a bad one."
    if loss is None or old is None:
        return "Nothing comes back: is there a return for both cases?"
    if close(loss, 10.0):
        return "It returns the error from before the step: after a step that helps it is a smaller one."
    if close(loss, 2.25):
        return "It returns the square of the mean. It is the mean of the squares: first squared, and then the mean."
    if close(loss, 1.5):
        return "It returns the mean of the absolute errors: that of their squares is asked for."
    if close(loss, 5.0):
        return "It returns the sum of the squares: the mean is asked for."
    if close(loss, 2.5) and not close(old, np.tanh(2.0) ** 2):
        return "It returns the error of the step that was undone: what counts is where the parameters are now."
    return None


def first_change() -> float:
    """What devectorize_parameters is asked for first, in the step that helps."""
    return next(iter(changes_asked(good_step)), 0.0)


def changes_asked(step) -> list[float]:
    """What devectorize_parameters is asked for in a step."""
    asked, real = [], control.devectorize_parameters

    def watched(model, change):
        asked.append(float(np.ravel(change)[0]))
        real(model, change)

    control.devectorize_parameters = watched
    try:
        step()
    finally:
        control.devectorize_parameters = real
    return asked


def bent_step() -> float:
    """Where the step that hurts leads."""
    slope, error = 1.0 - np.tanh(2.0) ** 2, np.tanh(2.0)
    return 2.0 - slope * error / (slope * slope + 1e-4)


def recursion_by_hand(rule):
    """Three examples by a rule (x, y, weights, covariance, forgetting) -> weights, covariance."""
    weights, covariance = np.zeros(2), 2.0 * np.eye(2)
    for x, y in EXAMPLES:
        weights, covariance = rule(x, y, weights, covariance, 0.5)
    return np.concatenate([weights, covariance.ravel()])


EXAMPLES = [(np.array([1.0, 2.0]), 3.0), (np.array([-1.0, 1.0]), 1.0), (np.array([2.0, 0.5]), -1.0)]


def recursion(total=None, gain=None, error=None, rest=None, first=False, both=False):
    """Recursive least squares, with any of its lines exchanged.

    first  the covariance before the weights
    both   an exchanged gain goes into the covariance too, and not only into the weights
    """

    def rule(x, y, w, p, forgetting):
        t = (total or (lambda x, p, f: f + x @ p @ x))(x, p, forgetting)
        k = (gain or (lambda x, p, t: p @ x / t))(x, p, t)
        new = (rest or (lambda x, p, k, f: (p - np.outer(k, x @ p)) / f))(x, p, k if both else p @ x / t, forgetting)
        if first:
            k = new @ x / (forgetting + x @ new @ x)
        return w + k * (error or (lambda x, y, w: y - x @ w))(x, y, w), new

    return rule


def learned():
    learner = RecursiveLeastSquares(2, forgetting=0.5, covariance=2.0)
    for x, y in EXAMPLES:
        learner.update(x, y)
    return np.concatenate([learner.weights, np.asarray(learner.covariance).ravel()])


RECURSIONS = {
    "The covariance stays as it is: every example makes the weights more certain.": recursion(
        rest=lambda x, p, k, f: p
    ),
    "The covariance is not divided by the forgetting.": recursion(rest=lambda x, p, k, f: p - np.outer(k, x @ p)),
    "The covariance is multiplied by the forgetting: to forget is to become less certain, so it is divided.": recursion(
        rest=lambda x, p, k, f: (p - np.outer(k, x @ p)) * f
    ),
    "The forgetting has no part in the total: there stands a 1.": recursion(total=lambda x, p, f: 1.0 + x @ p @ x),
    "The forgetting has no part in it: it stands in the total, and divides the covariance.": recursion(
        total=lambda x, p, f: 1.0 + x @ p @ x, rest=lambda x, p, k, f: p - np.outer(k, x @ p)
    ),
    "The forgetting is missing in the total.": recursion(total=lambda x, p, f: x @ p @ x),
    "What is added to the forgetting is x @ covariance @ x, and not x @ x.": recursion(total=lambda x, p, f: f + x @ x),
    "The error has the wrong sign: it is y minus what was expected.": recursion(error=lambda x, y, w: x @ w - y),
    "The weights move towards y itself: what they move by is the error, y minus what was expected.": recursion(
        error=lambda x, y, w: y
    ),
    "The gain is not divided by the total.": recursion(gain=lambda x, p, t: p @ x),
    "The gain is x divided by the total: the covariance says how far each weight goes.": recursion(
        gain=lambda x, p, t: x / t
    ),
    "The gain, in both places, is not divided by the total.": recursion(gain=lambda x, p, t: p @ x, both=True),
    "The gain, in both places, is x divided by the total: the covariance says how far each weight goes.": recursion(
        gain=lambda x, p, t: x / t, both=True
    ),
    "The covariance grows with what was learned: it has to shrink.": recursion(
        rest=lambda x, p, k, f: (p + np.outer(k, x @ p)) / f
    ),
    "The covariance loses gain times gain: it is gain times the spread.": recursion(
        rest=lambda x, p, k, f: (p - np.outer(k, k)) / f
    ),
    "The covariance loses the outer product of the spread, not divided by the total.": recursion(
        rest=lambda x, p, k, f: (p - np.outer(p @ x, p @ x)) / f
    ),
    "The weights move by the covariance of afterwards: the gain comes from the one before.": recursion(first=True),
    "The weights stay at 0.": recursion(error=lambda x, y, w: 0.0),
    "What was expected is x @ self.weights, and not the weights themselves.": recursion(error=lambda x, y, w: y - w),
    "What is added to the forgetting is x @ s, and not s @ s.": recursion(total=lambda x, p, f: f + p @ x @ (p @ x)),
    "The total is forgetting + x @ s: with a 1 there, s has to be divided by the forgetting, and only once.": recursion(
        total=lambda x, p, f: 1.0 + x @ p @ x / f
    ),
    "Of vectors s @ s.T and gain @ x are single numbers: np.outer makes a matrix of two vectors.": recursion(
        rest=lambda x, p, k, f: (p - k @ (p @ x)) / f
    ),
    "Of vectors gain @ x is a single number, and I minus that no matrix that keeps: np.outer(gain, x).": recursion(
        rest=lambda x, p, k, f: (np.eye(2) - k @ x) @ p / f
    ),
    "s * s is a vector, which is then subtracted from every row: np.outer(s, s) is the matrix.": recursion(
        rest=lambda x, p, k, f: (p - k * (p @ x)) / f
    ),
    "Brackets are missing: the covariance of before is divided by the forgetting too.": recursion(
        rest=lambda x, p, k, f: p - np.outer(k, x @ p) / f
    ),
    "Brackets are missing around the total: / comes before +.": recursion(gain=lambda x, p, t: p @ x / 0.5 + x @ p @ x),
    "Brackets are missing around the total, forgetting + x @ s: / and * come before +.": lambda x, y, w, p, f: (
        w + p @ x / f + x @ p @ x * (y - x @ w),
        recursion()(x, y, w, p, f)[1],
    ),
    "Brackets are missing around y - x @ self.weights: the gain multiplies all of it.": lambda x, y, w, p, f: (
        w + p @ x / (f + x @ p @ x) * y - x @ w,
        recursion()(x, y, w, p, f)[1],
    ),
    "The outer product is of s with x: it is of s with itself.": recursion(
        rest=lambda x, p, k, f: (p - np.outer(k, x)) / f
    ),
    "The weights of before are divided by the total too: it divides the change alone.": lambda x, y, w, p, f: (
        (w + p @ x * (y - x @ w)) / (f + x @ p @ x),
        recursion()(x, y, w, p, f)[1],
    ),
    "The weights move by the new covariance, and by the old total: the gain comes from the one before.": (
        lambda x, y, w, p, f: (
            w + recursion()(x, y, w, p, f)[1] @ x / (f + x @ p @ x) * (y - x @ w),
            recursion()(x, y, w, p, f)[1],
        )
    ),
    "The weights of before are lost: the change is added to them.": lambda x, y, w, p, f: (
        recursion()(x, y, w, p, f)[0] - w,
        recursion()(x, y, w, p, f)[1],
    ),
}
with np.errstate(all="ignore"):
    which_recursion = first_that_tells(
        which_formula(learned, {way: recursion_by_hand(rule) for way, rule in RECURSIONS.items()}),
        lambda: lopsided(after_many()),
    )


def after_many() -> np.ndarray:
    """The covariance after 400 examples with forgetting 0.9."""
    learner = RecursiveLeastSquares(4, forgetting=0.9)
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        for _ in range(400):
            learner.update(rng.standard_normal(4), 1.0)
    return learner.covariance


def lopsided(covariance) -> str | None:
    """Is the formula right on three examples, and has rounding broken the symmetry after many?"""
    right = recursion_by_hand(recursion())
    uneven = not np.isfinite(covariance).all() or np.max(np.abs(covariance - covariance.T)) > 1e-6 * np.max(covariance)
    if uneven and np.allclose(learned(), right):
        return (
            "A few examples come out right, but the covariance is not symmetric to the last bit, and forgetting makes "
            "ever more of that. np.outer(spread, spread) / total is."
        )
    return None


TURN, FIRST, MORE = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[3.0, 1.0], [1.0, 2.0]]), np.diag([0.5, 0.25])
BEGIN = np.array([1.0, 4.0])


def prediction_by_hand():
    tracker = KalmanFilter(BEGIN, FIRST)
    tracker.predict(TURN, MORE)
    return np.concatenate([np.ravel(tracker.state), np.asarray(tracker.covariance).ravel()])


def prediction(state=None, covariance=None):
    state = TURN @ BEGIN if state is None else state
    covariance = TURN @ FIRST @ TURN.T + MORE if covariance is None else covariance
    return np.concatenate([state.ravel(), covariance.ravel()])


which_prediction = which_formula(
    prediction_by_hand,
    {
        "The transposed transition stands on the wrong side: it is F P F^T.": prediction(
            covariance=TURN.T @ FIRST @ TURN + MORE
        ),
        "The transition stands on both sides as it is: on the right it is transposed.": prediction(
            covariance=TURN @ FIRST @ TURN + MORE
        ),
        "The transition acts from one side only: a covariance is carried along from both.": prediction(
            covariance=TURN @ FIRST + MORE
        ),
        "The noise is missing: a movement that is not quite known makes the state less certain.": prediction(
            covariance=TURN @ FIRST @ TURN.T
        ),
        "The noise is subtracted: it makes the state less certain.": prediction(
            covariance=TURN @ FIRST @ TURN.T - MORE
        ),
        "The noise is carried along by the transition: it is added afterwards.": prediction(
            covariance=TURN @ (FIRST + MORE) @ TURN.T
        ),
        "The covariance is not carried along: noise is all that comes to it.": prediction(covariance=FIRST + MORE),
        "The covariance has become the noise alone.": prediction(covariance=MORE),
        "The covariance stays as it is.": prediction(covariance=FIRST),
        "The state stays where it is: the transition moves it.": prediction(state=BEGIN),
        "The state moves by the transposed transition.": prediction(state=TURN.T @ BEGIN),
        "The transition is added to the state as a change: it leads to the new state itself.": prediction(
            state=BEGIN + TURN @ BEGIN
        ),
        "Nothing happens: the results have to get into self.state and self.covariance.": prediction(BEGIN, FIRST),
        "The noise is a covariance already: no root and no square of it is added.": prediction(
            covariance=TURN @ FIRST @ TURN.T + MORE @ MORE
        ),
        "On the right stands the inverse of the transition: it is transposed.": prediction(
            covariance=TURN @ FIRST @ np.linalg.inv(TURN) + MORE
        ),
        "* multiplies number by number: the product of matrices is @.": prediction(
            TURN * BEGIN, TURN * FIRST * TURN.T + MORE
        ),
        "The noise makes the state less certain, and does not move it: it is added to the covariance alone.": (
            prediction(TURN @ BEGIN + MORE)
        ),
        "The noise makes the state less certain, and does not move it. It is added to the covariance alone.": (
            prediction(TURN @ BEGIN + MORE, TURN @ FIRST @ TURN.T)
        ),
        "The noise moves the state. It makes it less certain, and is added to the covariance alone.": (
            prediction(TURN @ BEGIN + np.diag(MORE))
        ),
        "The noise moves the state. It makes it less certain, and belongs into the covariance alone.": (
            prediction(TURN @ BEGIN + np.diag(MORE), TURN @ FIRST @ TURN.T)
        ),
        "The noise is multiplied in: it is added.": prediction(covariance=TURN @ FIRST @ TURN.T * MORE),
        "The noise is a covariance already: no root of it is taken.": prediction(
            covariance=TURN @ FIRST @ TURN.T + np.sqrt(MORE)
        ),
        "Only the variances are left: what links two numbers stands beside the diagonal.": prediction(
            covariance=np.diag(np.diag(TURN @ FIRST @ TURN.T + MORE))
        ),
    },
)

LOOK, BLUR, SEEN = np.array([[1.0, 0.5], [2.0, -1.0]]), np.array([[1.0, 0.25], [0.25, 2.0]]), np.array([5.0, 1.0])


def correction_by_hand():
    tracker = KalmanFilter(BEGIN, FIRST)
    tracker.update(SEEN, LOOK, BLUR)
    return np.concatenate([tracker.state, np.asarray(tracker.covariance).ravel()])


def correction(gain=None, sign=1.0, covariance=None, state=None):
    """What comes out, with the gain or the covariance exchanged. `covariance` gets the gain and what is kept."""
    spread = LOOK @ FIRST @ LOOK.T + BLUR
    gain = FIRST @ LOOK.T @ np.linalg.inv(spread) if gain is None else gain
    keep = np.eye(2) - gain @ LOOK
    after = keep @ FIRST @ keep.T + gain @ BLUR @ gain.T if covariance is None else covariance(gain, keep)
    state = BEGIN + sign * gain @ (SEEN - LOOK @ BEGIN) if state is None else state
    return np.concatenate([state, after.ravel()])


def plain(gain, keep):
    return keep @ FIRST


EXPECTED_SPREAD = LOOK @ FIRST @ LOOK.T
which_correction = which_formula(
    correction_by_hand,
    {
        "The state moves away from what was measured: the innovation is added.": correction(sign=-1.0),
        "The state stays as it is: gain @ innovation is added to it.": correction(sign=0.0),
        "The state is the correction alone: it is added to what was there.": correction(state=correction()[:2] - BEGIN),
        "The covariance stays as it is: a measurement makes the state more certain.": correction(
            covariance=lambda gain, keep: FIRST
        ),
        "The noise has no part in the covariance: gain @ noise @ gain^T is missing.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep.T
        ),
        "To the covariance the noise is added as it is: it comes in through the gain, from both sides.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep.T + BLUR
        ),
        "The transposed matrices stand on the wrong side: it is keep @ P @ keep^T.": correction(
            covariance=lambda gain, keep: keep.T @ FIRST @ keep + gain.T @ BLUR @ gain
        ),
        "The second `keep` is not transposed.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep + gain @ BLUR @ gain.T
        ),
        "The gain @ noise @ gain^T is subtracted: noise adds to the uncertainty.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep.T - gain @ BLUR @ gain.T
        ),
        "The plain form and the noise are mixed: with keep on one side only, no noise is added.": correction(
            covariance=lambda gain, keep: keep @ FIRST + gain @ BLUR @ gain.T
        ),
        "The noise is missing in the gain: it is added to H P H^T before the division.": correction(
            gain=FIRST @ LOOK.T @ np.linalg.inv(EXPECTED_SPREAD)
        ),
        "The gain is turned around: a row for each number of the state, a column for each measurement.": correction(
            gain=(FIRST @ LOOK.T @ np.linalg.inv(EXPECTED_SPREAD + BLUR)).T
        ),
        "The gain is not divided by H P H^T + noise.": correction(gain=FIRST @ LOOK.T),
        "The noise is a covariance already: no root of it is taken.": correction(
            gain=FIRST @ LOOK.T @ np.linalg.inv(EXPECTED_SPREAD + np.sqrt(BLUR))
        ),
        "The noise is added twice.": correction(gain=FIRST @ LOOK.T @ np.linalg.inv(EXPECTED_SPREAD + 2.0 * BLUR)),
        "The state is corrected by the new covariance: it is corrected by the gain.": correction(
            state=BEGIN + correction()[2:].reshape(2, 2) @ LOOK.T @ (SEEN - LOOK @ BEGIN)
        ),
        "The gain leaves the covariance out: what is uncertain moves more.": correction(
            gain=LOOK.T @ np.linalg.inv(EXPECTED_SPREAD + BLUR)
        ),
        "The gain divides by the noise alone: the uncertainty of what is expected counts as well.": correction(
            gain=FIRST @ LOOK.T @ np.linalg.inv(BLUR)
        ),
        "The covariance is that of a larger uncertainty: `keep` is I minus gain @ H.": correction(
            covariance=lambda gain, keep: (
                (np.eye(2) + gain @ LOOK) @ FIRST @ (np.eye(2) + gain @ LOOK).T + gain @ BLUR @ gain.T
            )
        ),
        "Nothing happens: the results have to get into self.state and self.covariance.": correction(
            state=BEGIN, covariance=lambda gain, keep: FIRST
        ),
        "It is divided number by number: to divide by a matrix is to solve, or to multiply by its inverse with @.": (
            correction(gain=FIRST @ LOOK.T / (EXPECTED_SPREAD + BLUR))
        ),
        "The inverse is multiplied number by number: the product of matrices is @.": correction(
            gain=FIRST @ LOOK.T * np.linalg.inv(EXPECTED_SPREAD + BLUR)
        ),
        "The observation is nowhere transposed: it is P H^T, and H P H^T.": correction(
            gain=FIRST @ LOOK @ np.linalg.inv(LOOK @ FIRST @ LOOK + BLUR)
        ),
        "`keep` is I minus gain @ observation, in this order.": correction(
            covariance=lambda gain, keep: (
                (np.eye(2) - LOOK @ gain) @ FIRST @ (np.eye(2) - LOOK @ gain).T + gain @ BLUR @ gain.T
            )
        ),
        "`keep` is made with a plain 1, which stands for ones everywhere: np.eye(self.state.size) is the identity.": (
            correction(
                covariance=lambda gain, keep: (1.0 - gain @ LOOK) @ FIRST @ (1.0 - gain @ LOOK).T + gain @ BLUR @ gain.T
            )
        ),
        "The noise is missing between the gains: it is gain @ noise @ gain^T.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep.T + gain @ gain.T
        ),
        "On the right `keep` and the gain are transposed, and here they are not.": correction(
            covariance=lambda gain, keep: keep @ FIRST @ keep + gain @ BLUR @ gain
        ),
        "The state is corrected with a second gain, from the new covariance: there is one gain, from the old one.": (
            correction(
                state=BEGIN
                + (lambda after: after @ LOOK.T @ np.linalg.inv(LOOK @ after @ LOOK.T + BLUR))(
                    correction()[2:].reshape(2, 2)
                )
                @ (SEEN - LOOK @ BEGIN)
            )
        ),
        "The innovation is a difference already: what was expected is subtracted a second time.": correction(
            state=correction()[:2] - FIRST @ LOOK.T @ np.linalg.inv(EXPECTED_SPREAD + BLUR) @ LOOK @ BEGIN
        ),
    },
)
which_correction = first_that_tells(which_correction, lambda: of_one_number(), lambda: gain_times_innovation())


def of_one_number() -> str | None:
    """One measurement of a state of two numbers: here the two sizes differ."""
    tracker = KalmanFilter([1.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    tracker.update([4.0], SEES_PLACE, 2.0)
    gain = np.array([[0.5], [0.25]])
    keep = 1.0 - gain @ SEES_PLACE
    if np.allclose(tracker.covariance, keep @ [[2.0, 1.0], [1.0, 1.0]] @ keep.T + 2.0 * gain @ gain.T):
        return "`keep` has a row and a column for each number of the state: np.eye(self.state.size)."
    return None


def gain_times_innovation() -> str | None:
    tracker = KalmanFilter([1.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    tracker.update([4.0], SEES_PLACE, 2.0)
    return "gain * innovation is a table: the change is gain @ innovation." if np.ndim(tracker.state) == 2 else None


def joseph() -> str | None:
    """Is the formula right on ordinary numbers, so that only rounding can be to blame?"""
    tracker = KalmanFilter([1.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
    tracker.update([4.0], SEES_PLACE, 2.0)
    of_one = np.allclose(tracker.covariance, [[1.0, 0.5], [0.5, 0.75]])
    if of_one and np.allclose(correction_by_hand(), correction()) and np.allclose(prediction_by_hand(), prediction()):
        return (
            "On ordinary numbers it is right, so it is rounding: a difference such as (I - K H) P is not quite "
            "symmetric, and its variances may come out as 0 or below. Joseph's form is a sum of two positive terms."
        )
    return None


def training_by_hand(examples=(([[1.0]], [[2.0]]), ([[3.0]], [[-1.0]]))):
    model = Bent(0.5)
    method = ExtendedKalmanFilter(model, covariance=2.0, noise=0.5, drift=0.25)
    for x, y in examples:
        method.step(np.array(x), np.array(y))
    return np.array([np.ravel(model.w.data)[0], method.filter.state[0], method.filter.covariance[0, 0]])


def trained(innovation=None, drift=0.25, noise=0.5, slope=None, goes=lambda w, change: w + change, late=0.0):
    """The same with one line exchanged. `late`: the drift that is added after the correction."""
    w, p = 0.5, 2.0
    for x, y in ((1.0, 2.0), (3.0, -1.0)):
        bend = (slope or (lambda x, w: x * (1.0 - np.tanh(w * x) ** 2)))(x, w)
        error = (innovation or (lambda x, y, w, bend: y - np.tanh(w * x)))(x, y, w, bend)
        p = p + drift
        gain = p * bend / (bend * p * bend + noise)
        state = w + gain * error
        w = goes(w, gain * error)
        p = (1.0 - gain * bend) ** 2 * p + gain * gain * noise + late
    return np.array([w, state, p])


which_training = first_that_tells(
    lambda: how_it_predicts(),
    lambda: how_it_is_put_back(),
    which_formula(
        training_by_hand,
        {
            "The innovation has the wrong sign: it is the target minus what the network says.": trained(
                lambda x, y, w, bend: np.tanh(w * x) - y
            ),
            "What is expected is slopes @ parameters, as if the network were a line: ask the network itself.": trained(
                lambda x, y, w, bend: y - bend * w
            ),
            "The target takes the innovation's place: what the network says already has to be subtracted.": trained(
                lambda x, y, w, bend: y
            ),
            "The drift has no effect: predict(1.0, self.drift) comes before the correction.": trained(drift=0.0),
            "The drift comes after the correction: time passes first.": trained(drift=0.0, late=0.25),
            "The noise is 1 whatever was asked for: it is self.noise.": trained(noise=1.0),
            "Noise and drift are exchanged.": trained(drift=0.5, noise=0.25),
            "self.noise is a variance already: no root of it is taken.": trained(noise=0.5**0.5),
            "The drift stands in the noise's place.": trained(noise=0.25),
            "The filter's whole state is added to the parameters: devectorize_parameters takes the change.": trained(
                goes=lambda w, change: w + w + change
            ),
            "The change is subtracted: it leads from the parameters to the filter's state.": trained(
                goes=lambda w, change: w - change
            ),
            "The parameters stay where they are: the filter's state has to get back into the model.": trained(
                goes=lambda w, change: w
            ),
            "update takes what was measured, correct the innovation: the expected was subtracted twice.": trained(
                lambda x, y, w, bend: y - np.tanh(w * x) - bend * w
            ),
        },
    ),
)


def which_batch() -> str | None:
    """Three examples at once, of a line through 0, with drift: what is left of the uncertainty, and where does w go?"""

    def look():
        model = Flat(1.0)
        method = ExtendedKalmanFilter(model, covariance=1.0, noise=0.5, drift=0.25)
        method.step(x[:, None], y[:, None])
        return [float(model.w.data[0]), float(np.ravel(method.filter.covariance)[0])]

    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 4.0])

    def batch(drift=0.25, late=0.0, noise=0.5, errors=y - x, x=x):
        covariance = 1.0 + drift
        for one in x:
            covariance = 1.0 / (1.0 / covariance + one * one / noise) + late
        return [1.0 + covariance * np.sum(x * errors) / noise, covariance]

    def one_by_one():
        w, covariance = 1.0, 1.0
        for one, answer in zip(x, y):
            covariance += 0.25
            gain = covariance * one / (one * one * covariance + 0.5)
            w, covariance = w + gain * (answer - w * one), (1.0 - gain * one) * covariance
        return [w, covariance]

    once = "Time passes once in a step, however many examples come: one predict, and one correct with all of them."
    ways = {
        once: batch(drift=0.75),
        f"{once} Not one for each.": one_by_one(),
        "Only the first of the examples counts.": batch(errors=(y - x)[:1], x=x[:1]),
        "All examples get the mean of the innovations. Each has its own.": batch(errors=np.full(3, np.mean(y - x))),
        "The noise is divided among the examples. Each has all of it.": batch(noise=0.5 / 3.0),
        "The noise is added up over the examples. Each has its own.": batch(noise=1.5),
    }
    return which_formula(look, ways)()


def how_it_predicts() -> str | None:
    """Are transition and noise in their places?"""
    asked, real = [], KalmanFilter.predict
    KalmanFilter.predict = lambda self, *arguments: asked.append(arguments) or real(self, *arguments)
    try:
        training_by_hand()
    finally:
        KalmanFilter.predict = real
    if asked and np.ndim(asked[0][0]) == 0 and asked[0][0] == 0.0:
        return "A transition of 0.0 forgets the parameters. They stay what they are: 1.0."
    if asked and asked[0] == (0.25, 1.0):
        return "The arguments of predict are exchanged: the transition, 1.0, comes first, and then the drift."
    return None


def how_it_is_put_back() -> str | None:
    """Is the filter's new state overwritten before it has got into the model?"""
    corrected_to, real = [], KalmanFilter.correct

    def watched(self, *arguments):
        real(self, *arguments)
        corrected_to.append(float(self.state[0]))

    KalmanFilter.correct = watched
    model = Flat(0.5)
    method = ExtendedKalmanFilter(model, covariance=1.0, noise=1.0)
    try:
        method.step(np.array([[1.0]]), np.array([[2.0]]))
    finally:
        KalmanFilter.correct = real
    if corrected_to and corrected_to[0] != float(method.filter.state[0]):
        return "The state that the filter was corrected to is lost: it belongs into the model, and not the other way."
    return None
