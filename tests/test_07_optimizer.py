"""The checks of chapter 07: python grader.py 07"""

import math

import numpy as np
import pytest

from meintorch.optim import SGD, Adam, AdamW, clip_grad_norm, cosine_schedule
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

CURVATURES = np.array([1.0, 100.0])
SHAPES = [(), (1,), (4,), (2, 3), (2, 1, 3), (0, 3)]


def make(numbers, gradient, dtype=np.float64) -> Tensor:
    """A parameter with a gradient, as backward() would leave it."""
    parameter = Tensor(np.array(numbers, dtype))
    parameter.grad = np.array(gradient, dtype)
    return parameter


A_TENSOR = "parameter.data has become a Tensor: calculate with the array in it, not with the Tensor around it."


def check_moved(parameter: Tensor, expected, what: str, tolerance: float = 1e-9, probe=None, dtype=np.float64) -> None:
    """Compare a parameter's numbers with what they should be. They have to be an array still."""
    if isinstance(parameter.data, Tensor):
        raise CheckFailed(f"{what}: its data is now a Tensor, expected a NumPy array", A_TENSOR)
    expected = np.asarray(expected, dtype)
    if not np.isfinite(parameter.data).all():
        message = f"{what} is {show(parameter.data)}, expected {show(expected)}"
        raise CheckFailed(message, ask(probe) or "A finite number has become nan or inf.")
    check_close(parameter.data, expected, what, tolerance, probe)


def step_of(optimizer, *probes) -> None:
    """optimizer.step(), which moves the parameters and may keep arrays in `state`. Nothing else may change."""
    before, given = settings_of(optimizer), [np.array(parameter.grad) for parameter in optimizer.params]
    try:
        explained(optimizer.step, *probes)
    except TypeError as error:
        if "not a Tensor" in str(error) or any(isinstance(one.data, Tensor) for one in optimizer.params):
            error.diagnosis = A_TENSOR
        raise
    for gradient, parameter in zip(given, optimizer.params):
        same_kind = parameter.dtype == gradient.dtype  # else another check says so, and the gradient has gone
        if same_kind and not np.array_equal(gradient, parameter.grad):
            message = f"after a step, the gradient {show(gradient)} of a parameter is {show(parameter.grad)}"
            cause = "The gradient is only there to be read: compute a new array from it."
            raise CheckFailed(message, ask(*probes) or cause)
    for name, was in before.items():
        now = settings_of(optimizer)[name]
        if now != (was + 1 if name == "steps" else was):
            cause = "step() counts the steps already." if name == "steps" else "A step only reads the settings."
            message = f"after a step, the optimizer's {name} is {now}, and was {was} before"
            raise CheckFailed(message, ask(*probes) or cause)
    for parameter, state in zip(optimizer.params, optimizer.state):
        for name, kept in state.items():
            if not isinstance(kept, np.ndarray | np.generic) or kept.shape != parameter.data.shape:
                message = f"after a step, state[{name!r}] is {show(kept)}, the parameter's shape {parameter.shape}"
                cause = "What is in `state` is saved with the optimizer: only arrays of the parameter's shape can be."
                counts = isinstance(kept, int) and kept == optimizer.steps
                raise CheckFailed(message, ask(*probes) or cause + " The number of the step is self.steps." * counts)


def settings_of(optimizer) -> dict:
    names = ("steps", "lr", "momentum", "betas", "eps", "weight_decay")
    return {name: getattr(optimizer, name) for name in names if hasattr(optimizer, name)}


def check_goes_on(optimizer_of, probe=None) -> None:
    """Two steps, saved, loaded into a new optimizer, and two more: as if nothing had happened?"""
    gradients = [[0.5, -1.0], [2.0, 0.25], [-1.0, 0.0], [0.5, 0.75]]
    whole, first = make([1.0, 2.0], gradients[0]), make([1.0, 2.0], gradients[0])
    optimizer, saved = optimizer_of(whole), optimizer_of(first)
    for i, gradient in enumerate(gradients):
        whole.grad = np.array(gradient)
        step_of(optimizer, probe)
        if i == 2:
            state, first = saved.state_dict(), Tensor(np.array(first.data))
            saved = optimizer_of(first)
            saved.load_state_dict(state)
        first.grad = np.array(gradient)
        step_of(saved, probe)
    what = "two steps, saved, loaded into a new optimizer, and two more: the parameter"
    lost = "What the next step needs was not saved: it has to be kept in `state`, which is saved with the optimizer."
    check_moved(first, whole.data, what, 1e-12, first_that_tells(probe, lambda: lost))


def shrinking(optimizer, position: Tensor) -> float:
    """The factor by which a step shortens the distance to the valley's lowest point, over steps 101 to 200."""
    distances = []
    for _ in range(200):
        position.grad = CURVATURES * position.data  # the slopes of (x * x + 100 * y * y) / 2
        step_of(optimizer, which_velocity if optimizer.momentum else which_move)
        distances.append(float(np.linalg.norm(position.data)))
    return (distances[199] / distances[99]) ** (1 / 100)


@pytest.mark.task("07.2")
def test_a_heavy_ball_crosses_the_valley_at_the_rate_theory_promises():
    """Curvatures 1 and 100, so k = 100: (k - 1) / (k + 1) for plain descent, with roots of k for momentum."""
    k = 100.0
    root = math.sqrt(k)
    best = (root - 1.0) / (root + 1.0)
    ball, plain = Tensor([1.0, 1.0]), Tensor([1.0, 1.0])
    rate = shrinking(SGD([ball], lr=(2.0 / (1.0 + root)) ** 2, momentum=best**2), ball)
    if not 0.81 < rate < 0.84:
        message = f"with momentum a step leaves {rate:.4f} of the distance, expected about {best:.4f}"
        raise CheckFailed(message, which_velocity())
    rate = shrinking(SGD([plain], lr=2.0 / (1.0 + k)), plain)
    if not 0.978 < rate < 0.982:
        message = f"without momentum a step leaves {rate:.4f} of the distance, expected about {99 / 101:.4f}"
        raise CheckFailed(message, which_move())


@pytest.mark.task("07.1")
def test_a_parameter_moves_against_its_gradient():
    parameter = make([1.0, 2.0], [2.5, -5.0])
    step_of(SGD([parameter], lr=0.1), which_move)
    what = "a parameter at [1, 2] with gradient [2.5, -5], after a step with lr = 0.1,"
    check_moved(parameter, [0.75, 2.5], what, probe=which_move)


@pytest.mark.task("07.1")
def test_a_step_goes_where_it_is_told_and_leaves_the_direction_alone():
    """The direction is not always the gradient: with momentum it is the velocity."""
    parameter, direction = make([1.0, 2.0], [5.0, 5.0]), np.array([10.0, -20.0])
    SGD([parameter], lr=0.1).move(parameter, direction)
    what = "a parameter at [1, 2], moved in the direction [10, -20] with lr = 0.1 (its gradient is [5, 5]),"
    check_moved(parameter, [0.0, 4.0], what, probe=which_move)
    if not np.array_equal(direction, [10.0, -20.0]):
        message = f"the direction [10, -20] has been changed by the step: now it is {direction.tolist()}"
        raise CheckFailed(message, "That array is the gradient or the velocity, and still needed. Compute a new one.")


@pytest.mark.task("07.1")
def test_a_rate_of_two_over_the_curvature_jumps_from_side_to_side():
    """x squared times 2 has curvature 4. With lr = 2 / 4 a step from 1 leads to -1, and the next one back."""
    x = Tensor(1.0)
    optimizer = SGD([x], lr=0.5)
    for place in (-1.0, 1.0):
        x.grad = 4.0 * x.data
        step_of(optimizer, which_move)
        check_moved(x, place, f"2 * x * x from x = {-place} with lr = 0.5: x", probe=which_move)


@pytest.mark.task("07.1")
def test_every_parameter_moves_by_its_own_gradient_and_keeps_its_shape():
    row, number = make([[1.0, 2.0]], [[1.0, 1.0]]), make(5.0, 2.0)
    step_of(SGD([row, number], lr=1.0), which_move)
    check_moved(row, [[0.0, 1.0]], "a parameter [[1, 2]] with gradient [[1, 1]] after a step with lr = 1")
    check_moved(number, 3.0, "a parameter 5 with gradient 2 after a step with lr = 1")


@pytest.mark.task("07.1")
def test_a_step_keeps_float32():
    parameter = make([1.0, 2.0], [10.0, -20.0], np.float32)
    step_of(SGD([parameter], lr=0.1), which_move)
    check_moved(parameter, [0.0, 4.0], "a float32 parameter after a step", 1e-6, which_move, np.float32)


@pytest.mark.task("07.2")
def test_the_first_velocity_is_the_gradient():
    parameter = make([1.0, 1.0], [4.0, -2.0])
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    velocity = explained(lambda: optimizer.velocity(parameter, {}), no_first_velocity)
    what = "the first velocity with gradient [4, -2] and momentum 0.5"
    check_close(velocity, np.array([4.0, -2.0]), what, probe=which_velocity)


@pytest.mark.task("07.2")
def test_a_velocity_keeps_a_part_of_the_one_before():
    """4, then half of 4 plus 4, then half of 6 plus 4, then half of 7 plus 4. With -1 it is minus a quarter of that."""
    parameter, state = make([1.0, 1.0], [4.0, -1.0]), {}
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    for i, wanted in enumerate((4.0, 6.0, 7.0, 7.5), 1):
        velocity = optimizer.velocity(parameter, state)
        what = f"velocity {i} with gradient [4, -1] every time and momentum 0.5"
        check_close(velocity, np.array([wanted, -wanted / 4.0]), what, probe=which_velocity)
    if "velocity" not in state:
        message = f'after four steps state["velocity"] is not there: state holds {sorted(state)}'
        raise CheckFailed(message, "What is to be saved with the optimizer has to be kept in `state`.")
    check_close(state["velocity"], np.array([7.5, -1.875]), 'after four steps state["velocity"]', probe=which_velocity)


@pytest.mark.task("07.2")
def test_every_parameter_has_a_velocity_of_its_own():
    first, second = make([0.0], [1.0]), make([0.0, 0.0], [100.0, 100.0])
    optimizer = SGD([first, second], lr=0.1, momentum=0.5)
    states = {}, {}
    look = first_that_tells(shared_velocity, which_velocity)
    for a, b in ((1.0, 100.0), (1.5, 150.0)):
        what = "of two parameters with gradients [1] and [100, 100], the velocity of the"
        for name, parameter, state, wanted in (("first", first, states[0], [a]), ("second", second, states[1], [b, b])):
            velocity = explained(lambda p=parameter, s=state: optimizer.velocity(p, s), look)
            check_close(velocity, np.array(wanted), f"{what} {name}", probe=look)


@pytest.mark.task("07.2")
def test_a_velocity_is_an_array_apart_from_the_gradient():
    """Between the two steps nothing is reset: the gradient of 1 grows to 3, and the velocity of 1 must not."""
    parameter, state = make([0.0], [1.0]), {}
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    optimizer.velocity(parameter, state)
    check_close(parameter.grad, np.array([1.0]), "after the first velocity, the gradient of 1", probe=changed_gradient)
    parameter.grad += np.array([2.0])
    velocity = optimizer.velocity(parameter, state)
    what = "gradient [1], then [3] without zero_grad(), momentum 0.5: the second velocity"
    check_close(velocity, np.array([3.5]), what, probe=first_that_tells(same_array, which_velocity))
    check_close(parameter.grad, np.array([3.0]), "after it, the gradient of 3", probe=changed_gradient)


@pytest.mark.task("07.2")
def test_two_steps_with_momentum():
    """Velocities 4 and 6, so 1 - 0.1 * 4 = 0.6 and 0.6 - 0.1 * 6 = 0."""
    parameter = make([1.0], [4.0])
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    for i, wanted in enumerate((0.6, 0.0), 1):
        step_of(optimizer, which_velocity)
        what = f"a parameter from 1 with gradient 4, lr = 0.1 and momentum 0.5, after step {i},"
        check_moved(parameter, [wanted], what, probe=which_velocity)


@pytest.mark.task("07.2")
def test_a_velocity_keeps_float32():
    parameter, state = make([1.0], [4.0], np.float32), {}
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    for wanted in (4.0, 6.0):
        velocity = optimizer.velocity(parameter, state)
        check_close(np.asarray(velocity), np.float32([wanted]), "the velocity of a float32 parameter")


@pytest.mark.task("07.2")
def test_momentum_goes_on_from_a_saved_state_as_if_nothing_had_happened():
    check_goes_on(lambda parameter: SGD([parameter], lr=0.1, momentum=0.5), which_velocity)


@pytest.mark.task("07.3")
def test_the_first_step_moves_every_number_by_lr_whatever_its_gradient():
    parameter = make([1.0, 1.0, 1.0, 1.0], [5.0, -5.0, 1000.0, -0.01])
    step_of(Adam([parameter], lr=0.1), which_adam)
    what = "four numbers at 1 with gradients 5, -5, 1000 and -0.01, after the first step with lr = 0.1,"
    check_moved(parameter, [0.9, 1.1, 0.9, 1.1], what, tolerance=1e-5, probe=which_adam)


@pytest.mark.task("07.3")
def test_the_second_step_remembers_the_first():
    """Corrected means: 4 and 16, then 0.2 * 4 and 4 / 9 * 16. So the steps are 4 / 4 and 0.8 / (8 / 3)."""
    parameter = make([2.0], [4.0])
    optimizer = Adam([parameter], lr=1.0, betas=(0.25, 0.8))
    for i, (gradient, wanted) in enumerate(((4.0, 1.0), (0.0, 0.7)), 1):
        parameter.grad = np.array([gradient])
        step_of(optimizer, which_adam)
        what = f"a number from 2 with gradients 4 and 0, lr = 1 and betas (0.25, 0.8), after step {i},"
        check_moved(parameter, [wanted], what, tolerance=1e-6, probe=which_adam)


@pytest.mark.task("07.3")
def test_every_parameter_has_running_means_of_its_own():
    """A gradient that never changes gives steps of lr for ever, if nobody else's comes in between."""
    small, large = make([0.0], [1.0]), make([0.0, 0.0], [100.0, -100.0])
    optimizer = Adam([small, large], lr=0.1)
    look = first_that_tells(which_adam, shared_means)
    for _ in range(3):
        step_of(optimizer, look)
    what = "gradients [1] and [100, -100] three times, lr = 0.1: the"
    check_moved(small, [-0.3], f"{what} first parameter", tolerance=1e-6, probe=look)
    check_moved(large, [-0.3, 0.3], f"{what} second parameter", tolerance=1e-6, probe=look)


@pytest.mark.task("07.3")
def test_a_gradient_of_zero_moves_nothing():
    parameter = make([1.0, 1.0], [0.0, 2.0])
    step_of(Adam([parameter], lr=0.1), which_adam)
    what = "two numbers at 1 with gradients 0 and 2, after a step of Adam with lr = 0.1,"
    if not np.isfinite(np.asarray(parameter.data)).all():
        message = f"{what} are {show(parameter.data)}, expected [1.0, 0.9]"
        cause = "0 / 0 is nan: what is added to the root so that it never divides by 0?"
        raise CheckFailed(message, ask(which_adam) or cause)
    check_moved(parameter, [1.0, 0.9], what, tolerance=1e-6, probe=which_adam)


@pytest.mark.task("07.3")
def test_eps_is_added_to_the_root_and_not_to_the_square():
    """1e-8 is small beside the root, 1e-4, but not beside the square, 1e-8. It is large beside a gradient of 1e-9."""
    parameter = make([1.0], [1e-4])
    step_of(Adam([parameter], lr=1.0), which_adam)
    what = "a number at 1 with gradient 0.0001, after a step of Adam with lr = 1,"
    check_moved(parameter, [0.0], what, tolerance=0.01, probe=which_adam)
    parameter = make([0.0], [1e-9])
    step_of(Adam([parameter], lr=1.0), which_adam)
    if not -0.5 < parameter.data[0] < 0.0:
        message = f"a number at 0 with gradient 0.000000001, after a step with lr = 1, is {show(parameter.data[0])}"
        raise CheckFailed(f"{message}, expected a little below 0", which_adam())


@pytest.mark.task("07.3")
def test_adam_keeps_float32():
    parameter = make([1.0, 1.0], [4.0, -4.0], np.float32)
    optimizer = Adam([parameter], lr=0.1)
    for wanted in ([0.9, 1.1], [0.8, 1.2]):
        step_of(optimizer, which_adam)
        check_moved(parameter, wanted, "a float32 parameter after a step of Adam", 1e-5, which_adam, np.float32)


@pytest.mark.task("07.3")
def test_adam_goes_on_from_a_saved_state_as_if_nothing_had_happened():
    check_goes_on(lambda parameter: Adam([parameter], lr=0.1), which_adam)


@pytest.mark.task("07.4")
def test_without_a_gradient_a_parameter_shrinks_by_lr_times_decay():
    """0.1 * 0.5 is a twentieth: 10 loses 0.5, and -20 loses 1."""
    parameter = make([10.0, -20.0], [0.0, 0.0])
    step_of(AdamW([parameter], lr=0.1, weight_decay=0.5), calls_itself, which_decay)
    what = "a parameter at [10, -20] without gradient, lr = 0.1 and weight_decay = 0.5, after a step"
    check_moved(parameter, [9.5, -19.0], what, probe=which_decay)


@pytest.mark.task("07.4")
def test_the_decay_does_not_go_through_the_gradient():
    """10 loses a twentieth, 0.5, and then Adam's first step takes 0.1."""
    parameter = make([10.0], [3.0])
    step_of(AdamW([parameter], lr=0.1, weight_decay=0.5), which_decay)
    what = "a parameter at 10 with gradient 3, lr = 0.1 and weight_decay = 0.5, after a step"
    check_moved(parameter, [9.4], what, tolerance=1e-6, probe=which_decay)


@pytest.mark.task("07.4")
def test_decay_and_step_go_on_together():
    """The second time 9.4 loses a twentieth, 0.47, and again 0.1."""
    parameter = make([10.0], [3.0])
    optimizer = AdamW([parameter], lr=0.1, weight_decay=0.5)
    step_of(optimizer, which_decay)
    step_of(optimizer, which_decay)
    what = "a parameter from 10 with gradient 3, lr = 0.1 and weight_decay = 0.5, after two steps"
    check_moved(parameter, [8.83], what, tolerance=1e-6, probe=which_decay)


@pytest.mark.task("07.4")
def test_without_decay_it_is_adam():
    ours, adam = make([10.0], [1.0]), make([10.0], [1.0])
    optimizers = AdamW([ours], lr=0.1, weight_decay=0.0), Adam([adam], lr=0.1)
    for gradient in (3.0, -1.0, 2.0):
        ours.grad, adam.grad = np.array([gradient]), np.array([gradient])
        for optimizer in optimizers:
            step_of(optimizer, which_decay)
    what = "a parameter from 10 with weight_decay = 0, after three steps"
    check_moved(ours, adam.data, what, probe=which_decay)


@pytest.mark.task("07.4")
def test_adamw_keeps_float32():
    parameter = make([10.0, -20.0], [0.0, 0.0], np.float32)
    step_of(AdamW([parameter], lr=0.1, weight_decay=0.5), which_decay)
    check_moved(parameter, [9.5, -19.0], "a float32 parameter after a step of AdamW", 1e-6, which_decay, np.float32)


@pytest.mark.task("07.4")
def test_adamw_goes_on_from_a_saved_state_as_if_nothing_had_happened():
    check_goes_on(lambda parameter: AdamW([parameter], lr=0.1, weight_decay=0.5), which_decay)


# Some divide by the length plus 1e-6, as PyTorch does. That is right as well, so the tolerance is 1e-6.


def clip(parameters: list, max_norm: float, *probes) -> float:
    """clip_grad_norm, which changes gradients and nothing else."""
    with nothing_else_changes("clip_grad_norm", params=parameters):
        return explained(lambda: clip_grad_norm(parameters, max_norm), *probes)


@pytest.mark.task("07.5")
def test_gradients_that_are_too_long_are_scaled_down_together():
    """The length of (3, 4) is 5, in two parameters as in one."""
    a, b = make([12.0], [3.0]), make([5.0], [4.0])
    clip([a, b], 1.0, which_clip)
    of = "gradients [3] and [4] with max_norm = 1: then the"
    check_close(a.grad, np.array([0.6]), f"{of} first grad", tolerance=1e-6, probe=which_clip)
    check_close(b.grad, np.array([0.8]), f"{of} second grad", tolerance=1e-6, probe=which_clip)


@pytest.mark.task("07.5")
def test_the_length_before_is_returned():
    for max_norm in (1.0, 10.0):
        norm = clip([make([12.0], [1.5]), make([5.0], [2.0])], max_norm, which_clip)
        what = f"gradients [1.5] and [2] with max_norm = {max_norm:.0f}: what clip_grad_norm returns"
        check_close(norm, 2.5, what, tolerance=1e-6, probe=which_norm)


@pytest.mark.task("07.5")
def test_the_direction_stays_whatever_the_shapes():
    """9 + 16 + 144 is 169, so the length is 13, and half of it is 6.5. At the third, no gradient has arrived."""
    a, b = make(np.ones((2, 2)), [[3.0, 0.0], [0.0, -4.0]]), make(1.0, 12.0)
    c = Tensor([1.0, 2.0])
    clip([a, b, c], 6.5, which_clip)
    of = "gradients [[3, 0], [0, -4]], 12 and none with max_norm = 6.5: then the"
    wanted = np.array([[1.5, 0.0], [0.0, -2.0]])
    check_close(a.grad, wanted, f"{of} first grad", tolerance=1e-6, probe=which_clip)
    check_close(b.grad, np.array(6.0), f"{of} second grad", tolerance=1e-6, probe=which_clip)
    check_close(c.grad, np.zeros(2), f"{of} third grad", tolerance=1e-6, probe=which_clip)


@pytest.mark.task("07.5")
def test_gradients_that_are_short_enough_stay_as_they_are():
    """Clipping a second time finds nothing to do, and returns the length that they were given."""
    a, b = make([12.0], [3.0]), make([5.0], [4.0])
    look = which_clip
    for max_norm, norm, wanted in ((10.0, 5.0, (3.0, 4.0)), (2.5, 5.0, (1.5, 2.0)), (2.5, 2.5, (1.5, 2.0))):
        found = clip([a, b], max_norm, look)
        of = f"gradients [3] and [4], clipped to 10, to 2.5 and to 2.5 again: with max_norm = {max_norm}"
        check_close(a.grad, np.array([wanted[0]]), f"{of} the first grad", tolerance=1e-6, probe=look)
        check_close(b.grad, np.array([wanted[1]]), f"{of} the second grad", tolerance=1e-6, probe=look)
        check_close(found, norm, f"{of} what clip_grad_norm returns", tolerance=1e-6, probe=which_norm)


@pytest.mark.task("07.5")
def test_gradients_of_zero_stay_zero():
    a = make([1.0, 1.0], [0.0, 0.0])
    norm = clip([a], 1.0, divides_by_zero)
    check_close(norm, 0.0, "gradients [0, 0]: what clip_grad_norm returns", probe=divides_by_zero)
    check_close(a.grad, np.zeros(2), "gradients [0, 0] with max_norm = 1: then grad", probe=divides_by_zero)


@pytest.mark.task("07.5")
def test_clipping_keeps_float32():
    a = make([0.0, 0.0], [3.0, 4.0], np.float32)
    clip([a], 1.0, which_clip)
    check_close(a.grad, np.float32([0.6, 0.8]), "a float32 gradient [3, 4] with max_norm = 1", tolerance=1e-6)


@pytest.mark.task("07.6")
def test_the_cosine_starts_at_the_peak_and_is_at_half_of_it_half_way():
    """A quarter of the way the cosine is 0.7071, so the rate is (1 + 0.7071) / 2 of the peak."""
    for step, wanted in ((0, 1.0), (25, 0.5 + math.sqrt(0.125)), (50, 0.5), (75, 0.5 - math.sqrt(0.125)), (100, 0.0)):
        what = f"cosine_schedule({step}, total_steps=100, peak=1.0)"
        rate = explained(lambda step=step: cosine_schedule(step, 100, 1.0), which_warm_up)
        check_close(rate, wanted, what, tolerance=1e-6, probe=which_cosine)


@pytest.mark.task("07.6")
def test_a_warm_up_climbs_in_a_line_and_its_last_step_has_the_peak():
    for step, wanted in ((0, 0.5), (1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0)):
        what = f"cosine_schedule({step}, total_steps=12, peak=2.0, warmup_steps=4)"
        probe = first_that_tells(which_warm_up, which_cosine)
        check_close(cosine_schedule(step, 12, 2.0, 4), wanted, what, tolerance=1e-6, probe=probe)


@pytest.mark.task("07.6")
def test_the_cosine_takes_the_steps_that_the_warm_up_leaves():
    """Of 12 steps the warm-up takes 4. Half of the other 8 have gone at step 8."""
    for step, wanted in ((4, 1.0), (8, 0.5), (12, 0.0)):
        what = f"cosine_schedule({step}, total_steps=12, peak=1.0, warmup_steps=4)"
        check_close(cosine_schedule(step, 12, 1.0, 4), wanted, what, tolerance=1e-6, probe=which_cosine)


@pytest.mark.task("07.6")
def test_the_lowest_rate_is_the_floor():
    for step, wanted in ((0, 1.0), (5, 0.6), (10, 0.2)):
        what = f"cosine_schedule({step}, total_steps=10, peak=1.0, floor=0.2)"
        probe = first_that_tells(which_floor, which_cosine)
        check_close(cosine_schedule(step, 10, 1.0, floor=0.2), wanted, what, tolerance=1e-6, probe=probe)
    for step, wanted in ((0, 0.5), (1, 1.0), (2, 1.0), (4, 0.6)):  # the warm-up has nothing to do with it
        what = f"cosine_schedule({step}, total_steps=6, peak=1.0, warmup_steps=2, floor=0.2)"
        probe = first_that_tells(warm_up_from_the_floor, which_warm_up, which_cosine, which_floor)
        check_close(cosine_schedule(step, 6, 1.0, 2, 0.2), wanted, what, tolerance=1e-6, probe=probe)


@pytest.mark.task("07.6")
def test_after_the_last_step_it_stays_at_the_floor():
    for step in (10, 11, 15, 20):
        what = f"cosine_schedule({step}, total_steps=10, peak=1.0, floor=0.1)"
        probe = first_that_tells(which_end, which_floor)
        check_close(cosine_schedule(step, 10, 1.0, floor=0.1), 0.1, what, tolerance=1e-6, probe=probe)
    for step, allowed in ((3, (1.0,)), (4, (0.1, 1.0)), (5, (0.1,))):  # step 4 ends the warm-up, and everything
        what = f"cosine_schedule({step}, total_steps=4, peak=1.0, warmup_steps=4, floor=0.1)"
        rate = explained(lambda step=step: cosine_schedule(step, 4, 1.0, 4, 0.1), lambda: NOTHING_BETWEEN)
        if not any(np.isclose(rate, one) for one in allowed):
            check_close(rate, allowed[0], what, tolerance=1e-6)


# The harder suite: python grader.py 07 --goal


def random_steps(shape, seed, dtype=np.float64):
    """A random start and thirty random gradients of very different sizes."""
    rng = np.random.default_rng(seed)
    start = np.asarray(rng.standard_normal(shape), dtype)
    sizes = 10.0 ** rng.uniform(-3.0, 3.0, 30)
    return start, [np.asarray(size * rng.standard_normal(shape), dtype) for size in sizes]


def walk(optimizer, parameter, gradients):
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()


@pytest.mark.goal
@pytest.mark.task("07.1")
def test_goal_a_small_step_lowers_any_function_by_lr_times_the_squared_gradient():
    """Against a central difference: half of what lies between a step forwards and a step backwards."""
    for seed, shape in enumerate(SHAPES):
        start = np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape))
        ends = []
        for lr in (1e-6, -1e-6):
            x = Tensor(start.copy())
            optimizer = SGD([x], lr=0.0)
            optimizer.lr = lr
            x.grad = 3.0 * x.data**2
            optimizer.step()
            ends.append(float(np.sum(np.asarray(x.data) ** 3)))
        fallen, wanted = (ends[1] - ends[0]) / 2e-6, float(np.sum((3.0 * start**2) ** 2))
        what = f"x * x * x of shape {shape}: how fast it falls along a step, per lr (central difference)"
        check_close(fallen, wanted, what, tolerance=1e-5, probe=which_move)


@pytest.mark.goal
@pytest.mark.task("07.1")
def test_goal_thirty_steps_on_every_shape_are_the_sum_of_thirty_gradients():
    for seed, shape in enumerate(SHAPES):
        for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3)):
            start, gradients = random_steps(shape, seed, dtype)
            parameter = Tensor(start.copy())
            walk(SGD([parameter], lr=0.01), parameter, gradients)
            wanted = start - 0.01 * np.sum(np.array(gradients, np.float64), axis=0)
            what = f"shape {shape}, {np.dtype(dtype)}: after thirty steps"
            check_moved(parameter, wanted, what, tolerance, which_move, dtype)


@pytest.mark.goal
@pytest.mark.task("07.2")
def test_goal_a_velocity_is_the_weighted_sum_of_all_gradients_so_far():
    for seed, shape in enumerate(SHAPES):
        start, gradients = random_steps(shape, seed)
        parameter, state = Tensor(start.copy()), {}
        optimizer = SGD([parameter], lr=0.01, momentum=0.9)
        for i, gradient in enumerate(gradients):
            parameter.grad = gradient
            velocity = optimizer.velocity(parameter, state)
            wanted = np.asarray(sum(0.9 ** (i - j) * gradients[j] for j in range(i + 1)))
            check_close(np.asarray(velocity), wanted, f"shape {shape}: velocity {i + 1}", probe=which_velocity)


@pytest.mark.goal
@pytest.mark.task("07.3")
def test_goal_thirty_steps_of_adam_on_every_shape():
    for seed, shape in enumerate(SHAPES):
        for dtype, tolerance in ((np.float64, 1e-6), (np.float32, 1e-4)):
            start, gradients = random_steps(shape, seed, dtype)
            parameter = Tensor(start.copy())
            walk(Adam([parameter], lr=0.02, betas=(0.8, 0.95)), parameter, gradients)
            wanted = followed(start, gradients, adam_rule(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-8))[-1]
            what = f"shape {shape}, {np.dtype(dtype)}: after thirty steps of Adam"
            check_moved(parameter, wanted, what, tolerance, which_adam, dtype)


@pytest.mark.goal
@pytest.mark.task("07.3")
def test_goal_gradients_of_every_size_make_the_same_first_step():
    gradients = np.array([1e-3, 1.0, 1e10, 1e100, -1e100])
    parameter = make(np.zeros(5), gradients)
    Adam([parameter], lr=0.1).step()
    what = "gradients from 1e-3 to 1e100, after the first step of Adam with lr = 0.1: the numbers, from 0,"
    check_moved(parameter, -0.1 * np.sign(gradients), what, tolerance=1e-4, probe=which_adam)


@pytest.mark.goal
@pytest.mark.task("07.4")
def test_goal_thirty_steps_of_adamw_on_every_shape():
    for seed, shape in enumerate(SHAPES):
        start, gradients = random_steps(shape, seed)
        parameter = Tensor(start.copy())
        walk(AdamW([parameter], lr=0.02, betas=(0.8, 0.95), weight_decay=0.3), parameter, gradients)
        rule = adam_rule(lr=0.02, beta1=0.8, beta2=0.95, eps=1e-8)
        wanted = followed(start, gradients, rule, keeps=1.0 - 0.02 * 0.3)[-1]
        check_moved(parameter, wanted, f"shape {shape}: after thirty steps of AdamW", 1e-6, which_decay)


@pytest.mark.goal
@pytest.mark.task("07.5")
def test_goal_random_gradients_of_every_shape_are_clipped_to_the_length_asked_for():
    rng = np.random.default_rng(0)
    for max_norm in (0.01, 1.0, 3.0, 100.0):
        gradients = [np.asarray(rng.standard_normal(shape)) for shape in SHAPES]
        parameters = [make(np.zeros(shape), gradient) for shape, gradient in zip(SHAPES, gradients)]
        length = math.sqrt(sum(float(np.sum(gradient**2)) for gradient in gradients))
        norm = clip_grad_norm(iter(parameters), max_norm)
        check_close(norm, length, "random gradients: what clip_grad_norm returns", tolerance=1e-6, probe=which_norm)
        for parameter, gradient in zip(parameters, gradients):
            wanted = np.asarray(gradient * min(1.0, max_norm / length))
            what = f"random gradients with max_norm = {max_norm}: then the grad of shape {gradient.shape}"
            check_close(parameter.grad, wanted, what, tolerance=1e-5, probe=which_clip)


@pytest.mark.goal
@pytest.mark.task("07.6")
def test_goal_every_step_of_many_schedules():
    for total, warm_up in ((1, 0), (2, 1), (10, 0), (10, 3), (50, 49), (1000, 100)):
        for step in range(total + 3):
            if step < warm_up:
                wanted = 0.3 * (step + 1) / warm_up
            else:
                along = min(1.0, (step - warm_up) / (total - warm_up))
                wanted = 0.3 * math.cos(math.pi / 2.0 * along) ** 2  # the same curve, written in another way
            what = f"cosine_schedule({step}, {total}, 0.3, {warm_up})"
            check_close(cosine_schedule(step, total, 0.3, warm_up), wanted, what, tolerance=1e-9)


@pytest.mark.goal
@pytest.mark.task("07.6")
def test_goal_a_warm_up_as_long_as_the_training_does_not_divide_by_zero():
    for step, wanted in ((0, 0.25), (3, 1.0), (5, 0.0), (9, 0.0)):
        what = f"cosine_schedule({step}, total_steps=4, peak=1.0, warmup_steps=4)"
        check_close(cosine_schedule(step, 4, 1.0, 4), wanted, what)


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def moved_by_hand():
    parameter = make([10.0, 20.0], [8.0, 6.0])
    SGD([parameter], lr=0.5).move(parameter, np.array([3.0, 4.0]))
    return parameter.data


which_move = which_formula(
    moved_by_hand,
    {
        "It climbs: a gradient points uphill, and the way down is against it.": [11.5, 22.0],
        "The learning rate is not multiplied in.": [7.0, 16.0],
        "It divides by the learning rate.": [4.0, 12.0],
        "It follows the parameter's gradient and not the `direction` that it was given.": [6.0, 17.0],
        "Nothing has moved: the result has to get into parameter.data.": [10.0, 20.0],
        "The numbers are replaced by the step: it has to start where the parameter is.": [-1.5, -2.0],
        "Every number moves by lr, however steep it is: the direction itself is to be followed, not its sign.": [
            9.5,
            19.5,
        ],
        "All numbers move by the same: each has its own share of the direction.": [8.25, 18.25],
        "The step has the length lr whatever the direction's length: a steep slope has to make a longer one.": [
            9.7,
            19.6,
        ],
    },
)


def velocities(*gradients, momentum=0.75):
    parameter, state = make(gradients[0], gradients[0]), {}
    optimizer = SGD([parameter], lr=0.125, momentum=momentum)
    found = []
    for gradient in gradients:
        parameter.grad = np.array(gradient)
        found.append(np.array(optimizer.velocity(parameter, state)))
    return found


DAMPENED = (
    "The gradient comes in with a factor of 1 - momentum: that is a running mean, and a velocity takes all of it."
)
which_velocity = which_formula(
    lambda: velocities([8.0, 16.0], [4.0, -8.0]),
    {
        "The first velocity counts the gradient twice: before the first step there is no old one, and it is 0.": [
            [14.0, 28.0],
            [14.5, 13.0],
        ],
        DAMPENED: [[2.0, 4.0], [2.5, 1.0]],
        f"From the second step on: {DAMPENED[0].lower()}{DAMPENED[1:]}": [[8.0, 16.0], [7.0, 10.0]],
        "The gradient is multiplied by momentum too, which belongs to the old velocity alone.": [
            [6.0, 12.0],
            [7.5, 3.0],
        ],
        "The momentum stands at the gradient: it belongs to the old velocity.": [[6.0, 12.0], [9.0, 6.0]],
        "The old velocity has no part in the new one: is it kept, and where?": [[8.0, 16.0], [4.0, -8.0]],
        "The old velocity is added whole: without a part that is lost it never slows down.": [
            [8.0, 16.0],
            [12.0, 8.0],
        ],
        "From the second step on the new gradient is missing.": [[8.0, 16.0], [6.0, 12.0]],
        "It returns the velocity from before this gradient: the new one is asked for.": [[8.0, 16.0], [14.0, 28.0]],
        "One number of the old velocity serves for all: each has its own.": [[8.0, 16.0], [13.0, 1.0]],
        "It looks ahead, as Nesterov's momentum does: the velocity itself is asked for.": [[14.0, 28.0], [11.5, -5.0]],
        "The learning rate is in the velocity already, and the step multiplies by it once more.": [
            [1.0, 2.0],
            [1.25, 0.5],
        ],
        "The gradient is subtracted: the velocity points uphill as the gradient does, and the step turns around.": [
            [-8.0, -16.0],
            [-10.0, -4.0],
        ],
    },
)


def no_first_velocity():
    parameter = make([0.0], [1.0])
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    if np.allclose(optimizer.velocity(parameter, {"velocity": np.zeros(1)}), 1.0):
        return "Once there is a velocity it works. Before the first step there is none: `state` is empty."
    return None


def shared_velocity():
    """A first velocity is the gradient, whatever another parameter has done before."""
    first, second = make([0.0], [1.0]), make([0.0], [100.0])
    optimizer = SGD([first, second], lr=0.1, momentum=0.5)
    optimizer.velocity(first, {})
    if np.allclose(optimizer.velocity(second, {}), 100.5):
        return "The second parameter inherits from the first: each has to keep its velocity apart, in its own `state`."
    return None


def same_array():
    """Do two steps with fresh gradients come out right, so that only a change in place disturbs them?"""
    parameter, state = make([0.0], [1.0]), {}
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    velocity = optimizer.velocity(parameter, state)
    if np.shares_memory(velocity, parameter.grad) or np.shares_memory(state["velocity"], parameter.grad):
        return "The velocity is the gradient's own array: when that changes later, so does the velocity. Take a copy."
    return None


def changed_gradient():
    parameter, state = make([0.0], [1.0]), {}
    optimizer = SGD([parameter], lr=0.1, momentum=0.5)
    for _ in range(2):
        optimizer.velocity(parameter, state)
    if not np.allclose(parameter.grad, 1.0):
        return "The rule changes the gradient itself. It is only there to be read."
    return None


B1, B2 = 0.25, 0.875


def adam_rule(
    lr=0.25, beta1=B1, beta2=B2, eps=0.5, new_mean=None, new_square=None, mean_now=None, square_now=None, step=None
):
    """A step of Adam as a function of (number of the step, gradient, mean, square), with any of its lines exchanged."""
    new_mean = new_mean or (lambda g, m: beta1 * m + (1.0 - beta1) * g)
    new_square = new_square or (lambda g, s, m: beta2 * s + (1.0 - beta2) * g * g)
    mean_now = mean_now or (lambda t, m: m / (1.0 - beta1**t))
    square_now = square_now or (lambda t, s: s / (1.0 - beta2**t))
    step = step or (lambda m, s: m / (np.sqrt(s) + eps))

    def rule(t, gradient, mean, square):
        mean = new_mean(gradient, mean)
        square = new_square(gradient, square, mean)
        return mean, square, lr * step(mean_now(t, mean), square_now(t, square))

    return rule


def followed(start, gradients, rule, keeps=1.0):
    """Every place that a rule leads to. In each step a parameter first keeps only a part of itself."""
    x, mean, square = np.array(start, np.float64), 0.0, 0.0
    places = []
    for t, gradient in enumerate(gradients, 1):
        mean, square, step = rule(t, np.asarray(gradient, np.float64), mean, square)
        x = x * keeps - step
        places.append(x)
    return places


def adam_by_hand(gradients):
    parameter = make([1.0, 1.0], [0.0, 0.0])
    optimizer = Adam([parameter], lr=0.25, betas=(B1, B2), eps=0.5)
    places = []
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()
        places.append(np.array(parameter.data))
    return places


def with_kept_corrections():
    """The corrected means go back into the state."""

    def rule(t, gradient, mean, square):
        mean = (B1 * mean + (1.0 - B1) * gradient) / (1.0 - B1**t)
        square = (B2 * square + (1.0 - B2) * gradient**2) / (1.0 - B2**t)
        return mean, square, 0.25 * mean / (np.sqrt(square) + 0.5)

    return rule


def with_old(which: str):
    """The step is made of means (m, s or both) from before this step's gradient."""

    def rule(t, gradient, mean, square):
        new_mean, new_square = B1 * mean + (1.0 - B1) * gradient, B2 * square + (1.0 - B2) * gradient**2
        m, s = (mean if "m" in which else new_mean), (square if "s" in which else new_square)
        step = 0.25 * (m / (1.0 - B1**t)) / (np.sqrt(s / (1.0 - B2**t)) + 0.5)
        return new_mean, new_square, step

    return rule


def raw(t, value):
    return value


UNCORRECTED = "not corrected for its start at 0"
ADAM_MISTAKES = {
    "Neither of the means is corrected: both start at 0, and at first they are too small.": adam_rule(
        mean_now=raw, square_now=raw
    ),
    f"The mean of the gradients is {UNCORRECTED}.": adam_rule(mean_now=raw),
    f"The mean of the squares is {UNCORRECTED}.": adam_rule(square_now=raw),
    "The corrections count a step too many: self.steps is 1 in the first step.": adam_rule(
        mean_now=lambda t, m: m / (1.0 - B1 ** (t + 1)), square_now=lambda t, s: s / (1.0 - B2 ** (t + 1))
    ),
    "The corrections are the same in every step: with time they have to fade.": adam_rule(
        mean_now=lambda t, m: m / (1.0 - B1), square_now=lambda t, s: s / (1.0 - B2)
    ),
    "The corrections multiply: a mean that is too small has to be divided.": adam_rule(
        mean_now=lambda t, m: m * (1.0 - B1**t), square_now=lambda t, s: s * (1.0 - B2**t)
    ),
    "The corrected means are kept, and corrected again in the next step. What is kept are the plain ones.": (
        with_kept_corrections()
    ),
    "eps is inside the root: there it is not small beside the square of a small gradient.": adam_rule(
        step=lambda m, s: m / np.sqrt(s + 0.5)
    ),
    "eps is added to the parameter: it belongs to the root, in brackets below the line.": adam_rule(
        step=lambda m, s: m / np.sqrt(s) - 2.0
    ),
    "The mean of the squares is corrected with the first beta: each mean has its own.": adam_rule(
        square_now=lambda t, s: s / (1.0 - B1**t)
    ),
    "The mean of the gradients is corrected with the second beta: each mean has its own.": adam_rule(
        mean_now=lambda t, m: m / (1.0 - B2**t)
    ),
    "The root is missing: the step has to be free of the gradient's unit.": adam_rule(step=lambda m, s: m / (s + 0.5)),
    "The two betas are exchanged: the first is for the mean of the gradient.": adam_rule(beta1=B2, beta2=B1),
    "The running means are not kept: every step begins with zeros. Where does the next step read them?": adam_rule(
        new_mean=lambda g, m: (1.0 - B1) * g, new_square=lambda g, s, m: (1.0 - B2) * g * g
    ),
    "The mean of the gradients is not kept for the next step.": adam_rule(new_mean=lambda g, m: (1.0 - B1) * g),
    "The mean of the squares is not kept for the next step.": adam_rule(new_square=lambda g, s, m: (1.0 - B2) * g * g),
    "The second mean is of the gradient: it has to be of its square.": adam_rule(
        new_square=lambda g, s, m: B2 * s + (1.0 - B2) * g
    ),
    "The second mean takes the first mean's square: it has to take the gradient's.": adam_rule(
        new_square=lambda g, s, m: B2 * s + (1.0 - B2) * m * m
    ),
    "The new gradient comes in whole: in a running mean the two shares make 1.": adam_rule(
        new_mean=lambda g, m: B1 * m + g, new_square=lambda g, s, m: B2 * s + g * g
    ),
    "The shares of a running mean are exchanged: beta is the share of what was there.": adam_rule(
        new_mean=lambda g, m: (1.0 - B1) * m + B1 * g, new_square=lambda g, s, m: (1.0 - B2) * s + B2 * g * g
    ),
    "The shares of both running means are exchanged: beta is the share of what was there.": adam_rule(
        beta1=1.0 - B1, beta2=1.0 - B2
    ),
    "The step goes along the gradient itself: what belongs above the line is its running mean.": adam_rule(
        new_mean=lambda g, m: g, mean_now=raw
    ),
    "The step takes both means as they were before this gradient: it needs the new ones.": with_old("ms"),
    "The step takes the mean of the gradients as it was before this one: it needs the new one.": with_old("m"),
    "The step takes the mean of the squares as it was before this gradient: it needs the new one.": with_old("s"),
    "It climbs: the step goes against the mean.": adam_rule(lr=-0.25),
    "The learning rate is not multiplied in.": adam_rule(lr=1.0),
    "Nothing has moved: the result has to get into parameter.data.": adam_rule(lr=0.0),
}


def adam_look(*gradients):
    """A second look at some steps of Adam."""
    gradients = [np.array(gradient) for gradient in gradients]
    with np.errstate(invalid="ignore"):
        ways = {way: followed([1.0, 1.0], gradients, rule) for way, rule in ADAM_MISTAKES.items()}
    return which_formula(lambda: adam_by_hand(gradients), ways)


def counted_from_zero():
    """What comes out in step 3, with means of 0 before it, if it is corrected as step 2?"""
    parameter = make([1.0], [4.0])
    optimizer = Adam([parameter], lr=0.25, betas=(B1, B2), eps=0.5)
    optimizer.steps = 2
    optimizer.step()
    _, _, wanted = adam_rule()(2, 4.0, 0.0, 0.0)
    if np.allclose(parameter.data, 1.0 - wanted):
        return "The corrections count a step too few: self.steps is 1 in the first step, not 0."
    return None


def times_t():
    """Step 2 from means of 0, with betas so small that 1 - beta * 2 is above 0."""
    parameter = make([1.0], [4.0])
    optimizer = Adam([parameter], lr=0.25, betas=(0.25, 0.375), eps=0.5)
    optimizer.steps = 1
    optimizer.step()
    mean, square = 0.75 * 4.0 / (1.0 - 0.25 * 2), 0.625 * 16.0 / (1.0 - 0.375 * 2)
    if np.allclose(parameter.data, 1.0 - 0.25 * mean / (math.sqrt(square) + 0.5)):
        return "beta is multiplied by self.steps: what belongs there is its power, beta**self.steps."
    return None


which_adam = first_that_tells(
    adam_look([4.0, 1.0], [1.0, -3.0], [-2.0, 0.5]),
    adam_look([4.0, 1.0], [1.0, 3.0], [2.0, 0.5]),  # where the others have become nan
    counted_from_zero,
    times_t,
)


def shared_means():
    """The same two parameters, each with an optimizer of its own: right there, and not here?"""
    places = []
    for together in (True, False):
        small, large = make([0.0], [1.0]), make([0.0], [100.0])
        optimizers = [Adam([small, large], lr=0.1)] if together else [Adam([small], lr=0.1), Adam([large], lr=0.1)]
        for _ in range(3):
            for optimizer in optimizers:
                optimizer.step()
        places.append([float(np.asarray(small.data)[0]), float(np.asarray(large.data)[0])])
    if np.allclose(places[1], -0.3, atol=1e-5) and not np.allclose(places[0], -0.3, atol=1e-5):
        return "Alone every parameter moves as it should, and together not: each has to keep its means in its `state`."
    return None


def calls_itself():
    """A class that inherits from AdamW would notice."""

    class Watching(AdamW):
        calls = 0

        def update(self, parameter, state):
            self.calls += 1
            if self.calls == 1:
                super().update(parameter, state)

    optimizer = Watching([make([1.0], [1.0])])
    optimizer.step()
    if optimizer.calls > 1:
        return "self.update is this very function, which calls itself without end. Adam's is super().update(...)."
    return None


def decayed_by_hand():
    parameter = make([8.0, -20.0], [2.0, 2.0])
    AdamW([parameter], lr=0.1, weight_decay=0.5).step()
    return parameter.data


STEP = -0.1  # Adam's first one
DECAYED = np.array([7.6, -19.0])
which_decay = which_formula(
    decayed_by_hand,
    {
        "The decay goes through the gradient, and Adam evens it out: it has to act on the parameter itself.": [
            7.9,
            -19.9,
        ],
        "There is no decay: all that moves is Adam's step.": [7.9, -20.1],
        "Nothing has moved: the result has to get into parameter.data. `parameter` itself is only a name: given "
        "something new, it stands for another Tensor.": [8.0, -20.0],
        "The parameter grows: decay makes it smaller.": [8.3, -21.1],
        "The decay is without the learning rate, so far too strong.": [3.9, -10.1],
        "The decay is the learning rate alone, without weight_decay.": [7.1, -18.1],
        "The decay comes after Adam's step, and so it takes from the step as well. It comes first.": [7.505, -19.095],
        "There is only the decay: Adam's step is missing.": DECAYED,
        "Adam's step is taken twice.": DECAYED + STEP * (1.0 + 1.9 / math.sqrt(1.999)),
        "Every number loses the same: what it loses is a share of itself.": [7.85, -20.15],
        "Every number loses the same amount, however large it is: what it loses is a share of itself.": [7.85, -20.05],
        "What is left of the parameter is the share that it should lose.": [0.3, -1.1],
        "It loses a share of its square: the share is of the parameter itself.": [4.7, -40.1],
    },
)

LONG = np.array([3.0, 0.0, 1.0]), np.array([1.5])  # of length 3.5 together


def clipped_by_hand():
    parameters = [make(gradient + 1.0, gradient) for gradient in LONG]
    clip_grad_norm(parameters, 1.75)
    return np.concatenate([np.asarray(parameter.grad) for parameter in parameters])


LONG_ONE = np.concatenate(LONG)
which_clip = first_that_tells(
    lambda: scaled_up(),
    which_formula(
        clipped_by_hand,
        {
            "Each parameter is clipped by itself: all of them have one length together.": [
                *(LONG[0] * 1.75 / math.sqrt(10.0)),
                1.5,
            ],
            "Each parameter is scaled to max_norm by itself: all of them have one length together.": [
                *(LONG[0] * 1.75 / math.sqrt(10.0)),
                1.75,
            ],
            "Large numbers are cut off and small ones stay, which changes the direction.": np.clip(
                LONG_ONE, -1.75, 1.75
            ),
            "It divides by the squared length: a root is missing.": LONG_ONE * 1.75 / 12.25,
            "It takes the sum of the numbers for the length: that is the root of the sum of squares.": LONG_ONE
            * (1.75 / 5.5),
            "It adds up the lengths of the parameters: squares add up, lengths do not.": LONG_ONE
            * (1.75 / (1.5 + math.sqrt(10.0))),
            "They have length 1 now, and not max_norm.": LONG_ONE / 3.5,
            "It takes the largest number for the length.": LONG_ONE * 1.75 / 3.0,
            "It multiplies by max_norm: the length has to be divided by as well.": LONG_ONE * 1.75,
            "It multiplies by the length and divides by max_norm: it is the other way round.": LONG_ONE * 2.0,
            "It scales inside of the loop that adds up: the length is not known before its end.": [
                *(LONG[0] * 1.75 / math.sqrt(10.0)),
                0.75,
            ],
            "Only the first parameter's gradient is scaled: is the return inside of the loop?": [*(LONG[0] / 2.0), 1.5],
            "It squares the sums of the gradients: square the numbers first, and add up then.": LONG_ONE
            * (1.75 / math.sqrt(18.25)),
            "It adds up means: all numbers of a gradient count, so their sum is needed.": LONG_ONE
            * (1.75 / math.sqrt(10.0 / 3.0 + 2.25)),
            "It takes the length of the parameters: that of their gradients is asked for.": LONG_ONE
            * (1.75 / math.sqrt(27.25)),
            "The gradients are what they were: the result has to get into parameter.grad.": LONG_ONE,
            "The gradients have got what belongs to the parameters: scale parameter.grad.": (LONG_ONE + 1.0) / 2.0,
        },
    ),
)


which_norm = which_formula(
    lambda: clip_grad_norm([make(gradient + 1.0, gradient) for gradient in LONG], 1.75),
    {
        "It returns the length after clipping: a training run watches the one before.": 1.75,
        "It returns the square of the length: a root is missing.": 12.25,
        "It returns the factor.": 0.5,
        "It returns the sum of the numbers: the length is the root of the sum of squares.": 5.5,
        "It adds up the lengths of the parameters: squares add up, lengths do not.": 1.5 + math.sqrt(10.0),
        "It returns the length of the parameters: that of their gradients is asked for.": math.sqrt(27.25),
        "It returns a whole number: a length has digits behind the point.": 3.0,
    },
)


def scaled_up():
    a, b = make([0.0, 0.0], [6.0, 8.0]), make([0.0, 0.0], [6.0, 8.0])
    clip_grad_norm([a], 40.0)
    clip_grad_norm([b], 1.0)
    if not np.allclose(a.grad, [6.0, 8.0]) and np.allclose(b.grad, [6.0, 8.0]):
        return "It is turned around: gradients that are long enough stay, and short ones are scaled."
    if np.allclose(a.grad, [24.0, 32.0]):
        return "Short gradients are stretched to max_norm: it is a limit, and they are below it."
    return None


def divides_by_zero():
    """Other short gradients are fine?"""
    a = make([0.0, 0.0], [0.0, 0.5])
    clip_grad_norm([a], 1.0)
    if np.allclose(a.grad, [0.0, 0.5]):
        return "With a length of 0 it divides by 0."
    return None


WHOLE = "A rate becomes a whole number, which cuts off what stands behind the point."
which_warm_up = which_formula(
    lambda: [cosine_schedule(step, 16, 3.0, 4) for step in (0, 1, 3, 4)],
    {
        "The warm-up takes one step too many: step warmup_steps is the first of the cosine.": [0.75, 1.5, 3.0, 3.75],
        "The warm-up starts at 0: a whole step that moves nothing.": [0.0, 0.75, 2.25, 3.0],
        "The warm-up ends below the peak: it has warmup_steps steps, and the last one is at the peak.": [
            0.6,
            1.2,
            2.4,
            3.0,
        ],
        "There is no warm-up: it starts at the peak.": [3.0, 3.0, 3.0, 3.0],
        "The warm-up goes up to 1, and not to the peak.": [0.25, 0.5, 1.0, 3.0],
        "The warm-up is spread over all the steps.": [0.1875, 0.375, 0.75, 3.0],
        "step + 1 needs brackets: * and / come before +.": [0.25, 3.25, 9.25, 3.0],
        WHOLE: [0.0, 1.0, 3.0, 3.0],
    },
)


def cosine_at(progress):
    return [3.0 * 0.5 * (1.0 + math.cos(math.pi * one)) for one in progress]


which_cosine = first_that_tells(
    which_formula(
        lambda: [cosine_schedule(step, 16, 3.0) for step in (2, 5, 12)],
        {
            "The cosine is one step ahead: step 0 is at its start.": cosine_at([3 / 16, 6 / 16, 13 / 16]),
            "The cosine is one step behind.": cosine_at([1 / 16, 4 / 16, 11 / 16]),
            "The cosine is at its end one step too early: it is step total_steps.": cosine_at(
                [2 / 15, 5 / 15, 12 / 15]
            ),
            "The cosine is at its end one step too late: it is step total_steps.": cosine_at([2 / 17, 5 / 17, 12 / 17]),
            "It is twice as high: 1 + cos goes from 2 down to 0.": [
                2.0 * one for one in cosine_at([2 / 16, 5 / 16, 0.75])
            ],
            "The cosine goes on below 0: what is needed goes from 1 to 0.": [
                3.0 * math.cos(math.pi * one) for one in (2 / 16, 5 / 16, 0.75)
            ],
            "The angle has to go up to pi: here it goes up to 1.": [
                1.5 * (1.0 + math.cos(one)) for one in (2 / 16, 5 / 16, 0.75)
            ],
            "It is a quarter of the cosine: half of it goes from the top to the bottom.": [
                3.0 * math.cos(math.pi / 2.0 * one) for one in (2 / 16, 5 / 16, 0.75)
            ],
            "It is a whole cosine, down and up again: the angle goes to pi.": cosine_at([4 / 16, 10 / 16, 1.5]),
            "It climbs where it should fall.": cosine_at([14 / 16, 11 / 16, 0.25]),
            "It stays at the peak until the end: progress is a number between 0 and 1, and // leaves 0 of it.": [3.0]
            * 3,
            "It goes down in a line: where is the cosine?": [3.0 * (1.0 - one) for one in (2 / 16, 5 / 16, 0.75)],
            WHOLE: [2.0, 2.0, 0.0],
            "progress is a whole number here: a difference that is divided needs brackets.": cosine_at([2, 5, 12]),
            "cos takes an angle in radians: half a turn is pi, not 180.": [
                1.5 * (1.0 + math.cos(180.0 * one)) for one in (2 / 16, 5 / 16, 0.75)
            ],
            "It is a sine: the cosine begins at the top.": [
                1.5 * (1.0 + math.sin(math.pi * one)) for one in (2 / 16, 5 / 16, 0.75)
            ],
            "It goes down from 1, and not from the peak.": [one / 3.0 for one in cosine_at([2 / 16, 5 / 16, 0.75])],
        },
    ),
    which_formula(
        lambda: [cosine_schedule(step, 12, 3.0, 4) for step in (6, 9)],
        {
            "The steps of the warm-up count as progress: the cosine begins after them.": cosine_at([6 / 12, 9 / 12]),
            "It divides by all the steps: the cosine has those that the warm-up leaves.": cosine_at([2 / 12, 5 / 12]),
            "It divides by the steps that the warm-up leaves, but begins at step 0.": cosine_at([6 / 8, 9 / 8]),
        },
    ),
)

FALLING = cosine_at([0.25, 15 / 16])
DOWN_TO_ONE = [1.0 + one * 2.0 / 3.0 for one in FALLING]
which_floor = which_formula(
    lambda: [cosine_schedule(step, 16, 3.0, floor=1.0) for step in (4, 15, 16, 20)],
    {
        "The floor has no effect.": [*FALLING, 0.0, 0.0],
        "The floor is added on top of the peak: between the two the cosine has only peak - floor.": [
            *(1.0 + one for one in FALLING),
            1.0,
            1.0,
        ],
        "The cosine is cut off at the floor: it has to come down to it.": [*np.maximum(1.0, FALLING), 1.0, 1.0],
        "The cosine goes down to 0, and only from total_steps on it is at the floor: it has to come down to it.": [
            *FALLING,
            1.0,
            1.0,
        ],
        "From total_steps on it is 0: there it stays at the floor.": [*DOWN_TO_ONE, 0.0, 0.0],
        "From total_steps on it is at the peak: there it stays at the floor.": [*DOWN_TO_ONE, 3.0, 3.0],
        "After total_steps it is 0: it stays at the floor.": [*DOWN_TO_ONE, 1.0, 0.0],
        WHOLE: [2.0, 1.0, 1.0, 1.0],
    },
)

warm_up_from_the_floor = which_formula(
    lambda: [cosine_schedule(step, 16, 3.0, 4, 1.0) for step in (0, 1, 3)],
    {
        "The warm-up starts at the floor: it is peak * (step + 1) / warmup_steps, whatever the floor is.": [
            1.5,
            2.0,
            3.0,
        ],
        "The floor is added to the warm-up: it is peak * (step + 1) / warmup_steps, whatever the floor is.": [
            1.75,
            2.5,
            4.0,
        ],
        "The warm-up is cut off at the floor: it is peak * (step + 1) / warmup_steps, whatever the floor is.": [
            1.0,
            1.5,
            3.0,
        ],
    },
)

NOTHING_BETWEEN = (
    "Where the warm-up takes all the steps, nothing lies between the two, and nothing may be divided by 0."
)
which_end = which_formula(
    lambda: [cosine_schedule(step, 16, 3.0) for step in (16, 20, 24, 32)],
    {
        "After total_steps the cosine rises again.": cosine_at([1.0, 1.25, 1.5, 2.0]),
        "After total_steps it is at the peak.": [0.0, 3.0, 3.0, 3.0],
    },
)
