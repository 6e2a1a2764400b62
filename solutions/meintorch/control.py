"""Chapter 13: least squares. What a network can learn from engineers who steer rockets.

Gradient descent asks one question, which way is down. The methods of this chapter ask for the slope of every single
output towards every single parameter, and move all parameters at once, by solving a system of linear equations.
"""

from typing import Any

import numpy as np

from meintorch.arguments import as_number, shown, whole
from meintorch.layers import Module
from meintorch.tensor import Tensor, as_float_array, as_tensor


def vectorize_parameters(model: Module) -> np.ndarray:
    """All parameters as one long vector, a copy: shape (n_params,), their dtype.

    They come in the order of `model.parameters()`, each row by row. Raises ValueError if there are none.
    """
    parameters = parameters_of(model)
    # 13.1: each parameter flat, one after the other.
    return np.concatenate([parameter.data.ravel() for parameter in parameters])


def devectorize_parameters(model: Module, change: Any) -> None:
    """Add a vector of shape (n_params,) to the parameters, each its own piece, in the order of vectorize_parameters.

    The parameters keep their dtype. Raises ValueError, and changes nothing, if the length does not fit, and TypeError
    for what is no array of numbers.
    """
    parameters = parameters_of(model)
    if isinstance(change, Tensor):
        raise TypeError("the change is an array, not a Tensor: its numbers are in .data")
    try:
        change = np.asarray(change, np.result_type(*[parameter.dtype for parameter in parameters]))
    except (TypeError, ValueError):
        raise TypeError(f"the change is an array of numbers, not {shown(change)}") from None
    check_shape(change, (sum(parameter.size for parameter in parameters),), "the change")
    # 13.1: the next piece of the vector, in the parameter's shape; it is added.
    start = 0
    for parameter in parameters:
        piece = change[start : start + parameter.size]
        parameter.data += piece.reshape(parameter.shape)
        start += parameter.size


def jacobian(model: Module, x: Any) -> np.ndarray:
    """The slope of every output of model(x) towards every parameter: shape (batch * out_dim, n_params), their dtype.

    A row for each output, in the order of model(x).data.ravel(); a column for each parameter, in the order of
    vectorize_parameters. The parameters' gradients are used for it: what they held is lost. If the model has a
    Dropout, it has to be in eval mode. Raises ValueError if there are no parameters.
    """
    parameters = parameters_of(model)
    # 13.2: backward() from one output alone is a row. Each row needs a fresh graph.
    shape = model(x).shape
    rows = []
    for place in np.ndindex(shape):
        one = np.zeros(shape)
        one[place] = 1.0
        for parameter in parameters:
            parameter.zero_grad()
        model(x).backward(one)
        rows.append(np.concatenate([parameter.grad.ravel() for parameter in parameters]))
    return np.array(rows)


def damped_step(slopes: np.ndarray, errors: np.ndarray, damping: float) -> np.ndarray:
    """The change d, of shape (n_params,), that makes |errors + slopes @ d|^2 + damping * |d|^2 smallest.

    slopes   the Jacobian of the errors, shape (n, n_params)
    errors   prediction - target, shape (n,)
    damping  0 or more: 0 is the step of Gauss and Newton, much is a short step against the gradient
    Levenberg 1944, https://doi.org/10.1090/qam/10666. Raises ValueError if the shapes do not fit or the damping is
    negative, and numpy.linalg.LinAlgError if many changes are equally good: that happens with a damping of 0, or of so
    little that rounding swallows it beside large slopes.
    """
    slopes, errors = np.asarray(slopes), np.asarray(errors)
    if slopes.ndim != 2:
        raise ValueError(f"slopes should have shape (n, n_params), not {slopes.shape}")
    check_shape(errors, (len(slopes),), "errors")
    if not as_number(damping, "the damping") >= 0.0:
        raise ValueError(f"the damping is 0 or more, not {damping}")
    # 13.3: solve (J^T J + damping * I) d = -J^T errors.
    return np.linalg.solve(slopes.T @ slopes + damping * np.eye(slopes.shape[1]), -slopes.T @ errors)


class LevenbergMarquardt:
    """Fits model(x) to targets with damped steps, and finds the right damping as it goes.

    damping  the damping of the next step, above 0
    Marquardt 1963, https://doi.org/10.1137/0111030; Nocedal and Wright 2006, Numerical Optimization, section 10.3.
    Raises ValueError for a damping of 0 or below, or a model without parameters.
    """

    def __init__(self, model: Module, damping: float = 0.01):
        if not 0.0 < as_number(damping, "the damping") < np.inf:
            raise ValueError(f"the damping is above 0, not {damping}")
        parameters_of(model)
        self.model = model
        self.damping = float(damping)

    def step(self, x: Any, target: Any) -> float:
        """Try one step on all of x. Returns the mean squared error afterwards: the old one, if the step was undone.

        A step that makes it smaller is kept, and the next is damped a tenth as much. Any other is undone, and the next
        is damped ten times as much. Where rounding has swallowed the damping, so that the equations have no one
        solution, it is made ten times as much and tried again at once.
        Raises ValueError, and changes nothing, if the target has another shape than model(x) or one of them is not
        finite.
        """
        errors = errors_of(self.model, x, target)
        finite(errors, "model(x) - target")
        before = self.model.state_dict()
        while True:
            self.damping = min(max(self.damping, 1e-12), 1e12)  # far from what rounding makes of it
            try:
                return self.attempt(x, target, errors)
            except np.linalg.LinAlgError:
                self.model.load_state_dict(before)
                if self.damping == 1e12:
                    return float(np.mean(errors**2))
                self.damping *= 10.0

    def attempt(self, x: Any, target: Any, errors: np.ndarray) -> float:
        """What `step` does, for a damping that rounding does not swallow. `errors` are those of before the step."""
        # 13.4: try it, and look.
        before, loss = self.model.state_dict(), np.mean(errors**2)
        devectorize_parameters(self.model, damped_step(jacobian(self.model, x), errors, self.damping))
        new_loss = np.mean(errors_of(self.model, x, target) ** 2)
        if new_loss < loss:
            self.damping /= 10.0
            return float(new_loss)
        self.model.load_state_dict(before)
        self.damping *= 10.0
        return float(loss)


class RecursiveLeastSquares:
    """Least squares for y = x @ weights, one example at a time. No example is kept.

    weights     shape (n_inputs,), 0 at the start
    covariance  how uncertain the weights are, shape (n_inputs, n_inputs); at the start the given matrix, or the given
                number times I
    forgetting  1 counts all examples alike; below 1 each counts that much less with every one that follows
    Plackett 1950, https://doi.org/10.1093/biomet/37.1-2.149. What no example speaks of for long is forgotten until the
    covariance would know no bounds ("wind-up": Astrom and Wittenmark 1995, Adaptive Control, chapter 11). So no
    direction becomes more than `LIMIT` times as uncertain as the most uncertain one was at the start.
    Raises ValueError unless 0 < forgetting <= 1 and the covariance is above 0, TypeError for what is no number.
    """

    LIMIT = 100.0

    def __init__(self, n_inputs: int, forgetting: float = 1.0, covariance: Any = 1000.0):
        n_inputs = whole(n_inputs, "n_inputs")
        if not 0.0 < as_number(forgetting, "forgetting") <= 1.0:
            raise ValueError(f"forgetting is above 0 and at most 1, not {forgetting}")
        self.weights = np.zeros(n_inputs)
        self.covariance = as_covariance(covariance, n_inputs, "the covariance at the start", above_zero=True).copy()
        self.forgetting = float(forgetting)
        self.largest = self.LIMIT * self.covariance.diagonal().max()

    def update(self, x: Any, y: Any) -> None:
        """Learn from one example: inputs x of shape (n_inputs,), and the number y. Raises ValueError for others."""
        x, y = finite(x, "x"), finite(y, "y")
        check_shape(x, self.weights.shape, "x")
        check_shape(y, (), "y")
        if self.covariance.diagonal().max() > self.largest:
            variances, directions = np.linalg.eigh(self.covariance)
            root = directions * np.sqrt(variances.clip(0.0, self.largest))
            self.covariance = root @ root.T  # the same in all other directions, and symmetric
        # 13.5: the weights by the error, less uncertainty, then forget.
        spread = self.covariance @ x
        total = self.forgetting + x @ spread
        self.weights = self.weights + spread * ((y - x @ self.weights) / total)
        # np.outer(spread / total, spread) is not symmetric to the last bit, and forgetting makes ever more of that.
        self.covariance = (self.covariance - np.outer(spread, spread) / total) / self.forgetting


class KalmanFilter:
    """An estimate of something that moves, from a model of how it moves and from noisy measurements.

    state       the estimate, shape (n,)
    covariance  how uncertain it is, shape (n, n), symmetric; a number stands for that number times I
    Kalman 1960, https://doi.org/10.1115/1.3662552. Raises ValueError if the shapes do not fit, for numbers that are not
    finite, and for what cannot be a covariance: not symmetric, or negative in some direction.
    """

    def __init__(self, state: Any, covariance: Any):
        self.state = finite(state, "state").copy()
        check_shape(self.state, (self.state.size,), "state")
        self.covariance = as_covariance(covariance, self.state.size, "covariance").copy()

    def predict(self, transition: Any, noise: Any) -> None:
        """Let time pass: the state becomes transition @ state, give or take `noise`, a covariance. Both (n, n).

        A number stands for that number times I. Raises ValueError, and changes nothing, as the constructor does.
        """
        transition = as_matrix(transition, self.covariance.shape, "transition")
        noise = as_covariance(noise, self.state.size, "noise")
        # 13.6: the state moves; its uncertainty is carried along from both sides, and grows.
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T + noise

    def update(self, measured: Any, observation: Any, noise: Any) -> None:
        """Take in a measurement of observation @ state, give or take `noise`, a covariance.

        measured shape (m,), observation (m, n), noise (m, m) or a number that stands for that number times I.
        Raises ValueError, and changes nothing, as the constructor does.
        """
        observation = finite(observation, "observation")
        check_shape(observation, (observation.shape[0] if observation.ndim else 1, self.state.size), "observation")
        measured = finite(measured, "measured")
        check_shape(measured, (len(observation),), "measured")
        self.correct(measured - observation @ self.state, observation, noise)

    def correct(self, innovation: np.ndarray, observation: np.ndarray, noise: Any) -> None:
        """Correct the state by an innovation, measured minus expected, of shape (m,).

        The covariance is updated in the form of Joseph (Bucy and Joseph 1968, Filtering for Stochastic Processes with
        Applications to Guidance): a sum of two positive terms, which rounding does not easily make negative.
        """
        innovation, observation = finite(innovation, "the innovation"), finite(observation, "observation")
        rows = observation.shape[0] if observation.ndim else 1
        check_shape(innovation, (rows,), "the innovation")
        check_shape(observation, (rows, self.state.size), "observation")
        noise = as_covariance(noise, len(observation), "noise")
        # 13.7: the gain is P H^T S^-1; what is left of the uncertainty, in Joseph's form.
        spread = observation @ self.covariance
        gain = np.linalg.solve(spread @ observation.T + noise, spread).T
        keep = np.eye(self.state.size) - gain @ observation
        self.state = self.state + gain @ innovation
        self.covariance = keep @ self.covariance @ keep.T + gain @ noise @ gain.T


class ExtendedKalmanFilter:
    """Trains a model on a stream of examples, each seen once: its parameters are the state of a Kalman filter.

    covariance  how uncertain each parameter is at the start: a number, or a matrix for all of them
    noise       the variance of the targets around the model: a number, or a matrix for all outputs of a step
    drift       the variance that each parameter gains per step, so that it goes on learning: a number or a matrix
    Singhal and Wu 1989, Training multilayer perceptrons with the extended Kalman algorithm,
    https://proceedings.neurips.cc/paper/1988/hash/38b3eff8baf56627478ec76a704e9b52-Abstract.html. Raises ValueError
    unless covariance and noise are above 0 and drift is 0 or more.
    """

    def __init__(self, model: Module, covariance: float = 10.0, noise: float = 0.01, drift: float = 0.0):
        start = vectorize_parameters(model)
        as_covariance(covariance, start.size, "the covariance", above_zero=True)
        as_covariance(noise, len(np.atleast_1d(noise)), "the noise", above_zero=True)
        as_covariance(drift, start.size, "the drift")
        self.model, self.noise, self.drift = model, noise, drift
        self.filter = KalmanFilter(start, covariance)

    def step(self, x: Any, target: Any) -> None:
        """Learn from a few examples, or from one.

        Raises ValueError, and changes nothing, if the target has another shape than model(x), or one is not finite.
        """
        finite(errors_of(self.model, x, target), "model(x) - target")
        self.filter.state = vectorize_parameters(self.model)  # somebody else may have changed them
        # 13.8: the network in place of observation @ state, its slopes in place of the observation.
        innovation = -errors_of(self.model, x, target)
        self.filter.predict(1.0, self.drift)
        self.filter.correct(innovation, jacobian(self.model, x), self.noise)
        devectorize_parameters(self.model, self.filter.state - vectorize_parameters(self.model))


# Given.


def parameters_of(model: Module) -> list[Tensor]:
    """The parameters of a model. Raises ValueError if there are none, TypeError for what is no Module."""
    if not isinstance(model, Module):
        raise TypeError(f"the model is a Module, not {shown(model)}")
    parameters = model.parameters()
    if not parameters:
        raise ValueError(f"{model!r} has no parameters")
    return parameters


def errors_of(model: Module, x: Any, target: Any) -> np.ndarray:
    """prediction - target as a flat array. Raises ValueError if their shapes differ."""
    prediction = model(x)
    target = as_tensor(target, like=prediction).data
    check_shape(target, prediction.shape, "the target")
    return (prediction.data - target).ravel()


def as_matrix(x: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """`x` as an array of the given shape; a number stands for that number times I. Raises ValueError for others."""
    x = finite(x, name)
    if x.ndim == 0:
        return x * np.eye(*shape)
    check_shape(x, shape, name)
    return x


def as_covariance(x: Any, n: int, name: str, above_zero: bool = False) -> np.ndarray:
    """As `as_matrix`, of shape (n, n). Raises ValueError unless it is symmetric and nowhere negative (or not 0)."""
    matrix = as_matrix(x, (n, n), name)
    if np.ndim(x) == 0:
        least = float(x)
    else:
        largest = np.abs(matrix).max(initial=0.0)
        if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-6 * largest):
            raise ValueError(f"{name} should be symmetric, as every covariance is")
        least = np.linalg.eigvalsh(matrix).min(initial=np.inf)
        if not above_zero and least > -1e-6 * largest:
            least = abs(least)  # what rounding has left of a 0
    if least < 0.0 or (above_zero and least == 0.0):
        kind = "above 0" if above_zero else "0 or more"
        what = x if np.ndim(x) == 0 else f"{least:g} in one direction, as an eigenvalue of it tells"
        raise ValueError(f"{name} is {kind}, not {what}")
    return matrix


def finite(x: Any, name: str) -> np.ndarray:
    """`x` as an array of float64. Raises TypeError for anything but real numbers, and ValueError for nan and inf."""
    if isinstance(x, Tensor):
        raise TypeError(f"{name} is a number or an array, not a Tensor: its numbers are in .data")
    array = as_float_array(x).astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} should be finite, and there is nan or inf in it")
    return array


def check_shape(array: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} should have shape {shape}, not {array.shape}")
