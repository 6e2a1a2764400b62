"""The checks of chapter 06: python grader.py 06"""

import numpy as np
import pytest

from meintorch.activations import log_softmax
from meintorch.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_loss,
    mse_loss,
    nll_loss,
    stable_binary_cross_entropy,
)
from meintorch.tensor import Tensor
from tests._helpers import (
    CheckFailed,
    check_binary_gradient,
    check_close,
    check_freed,
    check_grad,
    check_gradient,
    check_no_overflow,
    check_rule,
    check_twice,
    explained,
    first_that_tells,
    nothing_else_changes,
    which_formula,
)


@pytest.mark.task("06.3")
def test_the_gradient_of_cross_entropy_is_softmax_minus_one_hot():
    """Nobody wrote that down. It falls out of log_softmax, a product with the one-hot rows and a mean."""
    logits = Tensor(np.log([[1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]))
    softmax = np.array([[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    one_hot = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    loss = number_by_number(lambda: nll_loss(log_softmax(logits), [0, 2]))
    check_loss(loss, (np.log(4.0) + np.log(2.0)) / 2.0, "nll_loss(log_softmax(logits), [0, 2])", probe=which_pick)
    loss.backward()
    check_grad(
        logits,
        (softmax - one_hot) / 2.0,
        of="nll_loss(log_softmax(logits), [0, 2])",
        at="the softmax of the logits being [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]",
        name="logits",
        probe=which_pick,
    )


@pytest.mark.task("06.1")
def test_every_error_is_squared():
    prediction, target = Tensor([3.0, 5.0, 0.0, 1.0]), [1.0, 5.0, 3.0, 0.0]
    loss = explained(lambda: mse_loss(prediction, target, "none"), which_square, no_power)
    wanted = np.array([4.0, 0.0, 9.0, 1.0])
    check_loss(loss, wanted, 'mse_loss([3, 5, 0, 1], [1, 5, 3, 0], "none")', probe=which_square)


@pytest.mark.task("06.1")
def test_the_mean_goes_over_all_the_squares():
    """4, 0, 9 and 1: their sum is 14, their mean 3.5, in whatever shape they come."""
    prediction, target = Tensor([[3.0, 5.0], [0.0, 1.0]]), [[1.0, 5.0], [3.0, 0.0]]
    what = "mse_loss([[3, 5], [0, 1]], [[1, 5], [3, 0]]"
    check_loss(mse_loss(prediction, target), 3.5, f"{what})", probe=which_square)
    check_loss(mse_loss(prediction, target, "sum"), 14.0, f'{what}, "sum")', probe=which_square)


@pytest.mark.task("06.1")
def test_a_prediction_is_pulled_towards_its_target():
    """The slope of the square is twice the error, and the mean of four divides it by 4."""
    prediction = Tensor([3.0, 5.0, 0.0, 1.0])
    explained(mse_loss(prediction, [1.0, 5.0, 3.0, 0.0]).backward, which_square)
    wanted = np.array([1.0, 0.0, -1.5, 0.5])
    of, at = "mse_loss(prediction, [1, 5, 3, 0])", "prediction = [3, 5, 0, 1]"
    check_grad(prediction, wanted, of=of, at=at, name="prediction", probe=which_square)


@pytest.mark.task("06.1")
def test_squared_errors_stay_in_float32_and_change_nothing():
    check_float32(mse_loss, [3.25, 5.0], [1.0, 5.0], 2.53125, [2.25, 0.0], which_square)


@pytest.mark.task("06.2")
def test_a_score_beyond_the_margin_on_its_side_costs_nothing():
    """Label 1 wants a score of at least 1, label -1 one of at most -1."""
    loss = number_by_number(lambda: hinge_loss(Tensor([3.0, 1.5, -2.0, -1.25]), [1, 1, -1, -1], "none"))
    check_loss(loss, np.zeros(4), 'hinge_loss([3, 1.5, -2, -1.25], [1, 1, -1, -1], "none")', probe=which_margin)


@pytest.mark.task("06.2")
def test_before_the_margin_it_costs_what_is_missing():
    """Also on the right side: 0.25 for label 1 is right, but by less than 1."""
    loss = hinge_loss(Tensor([0.25, -0.25, -2.0, 2.0]), [1, -1, 1, -1], "none")
    wanted = np.array([0.75, 0.75, 3.0, 3.0])
    check_loss(loss, wanted, 'hinge_loss([0.25, -0.25, -2, 2], [1, -1, 1, -1], "none")', probe=which_margin)


@pytest.mark.task("06.2")
def test_the_hinge_loss_is_the_mean_over_the_scores():
    scores, labels = Tensor([[0.25, -2.0], [3.0, 2.0]]), [[1, 1], [1, -1]]
    what = "hinge_loss([[0.25, -2], [3, 2]], [[1, 1], [1, -1]]"
    check_loss(hinge_loss(scores, labels), 1.6875, f"{what})", probe=which_margin)
    check_loss(hinge_loss(scores, labels, "sum"), 6.75, f'{what}, "sum")', probe=which_margin)


@pytest.mark.task("06.2")
def test_only_scores_before_the_margin_are_pushed():
    """Towards their label, and all equally hard: 1/4 each in a mean of four."""
    scores = Tensor([3.0, 0.5, -2.0, 2.0])
    explained(hinge_loss(scores, [1, 1, -1, -1]).backward, which_margin)
    of, at = "hinge_loss(scores, [1, 1, -1, -1])", "scores = [3, 0.5, -2, 2]"
    wanted = np.array([0.0, -0.25, 0.0, 0.25])
    check_grad(scores, wanted, of=of, at=at, name="scores", probe=which_margin)


@pytest.mark.task("06.2")
def test_the_hinge_loss_stays_in_float32_and_changes_nothing():
    check_float32(hinge_loss, [0.5, 3.0], [1, 1], 0.25, [-0.5, 0.0], which_margin)


@pytest.mark.task("06.3")
def test_the_loss_is_minus_the_log_probability_of_the_right_class():
    """Class 1 of the first row and class 2 of the second."""
    loss = nll_loss(Tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]]), [1, 2], "none")
    what = 'nll_loss([[-1, -2, -3], [-4, -5, -6]], [1, 2], "none")'
    check_loss(loss, np.array([2.0, 6.0]), what, probe=which_pick)


@pytest.mark.task("06.3")
def test_the_mean_goes_over_the_rows_and_not_over_the_classes():
    rows = Tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    what = "nll_loss([[-1, -2, -3], [-4, -5, -6]], [1, 2]"
    check_loss(nll_loss(rows, [1, 2]), 4.0, f"{what})", probe=which_pick)
    check_loss(nll_loss(rows, [1, 2], "sum"), 8.0, f'{what}, "sum")', probe=which_pick)


@pytest.mark.task("06.3")
def test_only_what_was_picked_gets_a_gradient():
    rows = Tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    explained(nll_loss(rows, [1, 2]).backward, which_pick)
    of, at = "nll_loss(x, [1, 2])", "x = [[-1, -2, -3], [-4, -5, -6]]"
    check_grad(rows, np.array([[0.0, -0.5, 0.0], [0.0, 0.0, -0.5]]), of=of, at=at, probe=which_pick)


@pytest.mark.task("06.3")
def test_the_classes_are_the_last_axis_however_many_stand_in_front():
    """Two sentences of two words each; and one row alone."""
    table = np.array([[[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]], [[-7.0, -8.0, -9.0], [-10.0, -11.0, -12.0]]])
    loss = explained(lambda: nll_loss(Tensor(table), [[0, 1], [2, 0]], "none"), which_pick, only_a_table)
    wanted = np.array([[1.0, 5.0], [9.0, 10.0]])
    what = 'nll_loss of shape (2, 2, 3), with labels [[0, 1], [2, 0]] and "none",'
    check_loss(loss, wanted, what, probe=first_that_tells(which_pick, second_axis, only_a_table))
    loss = explained(lambda: nll_loss(Tensor(table[0, 0]), 2), which_pick, only_a_table)
    check_loss(loss, 3.0, "nll_loss([-1, -2, -3], 2)", first_that_tells(which_pick, only_a_table))


@pytest.mark.task("06.3")
def test_picking_stays_in_float32_and_changes_nothing():
    rows, wanted = [[-1.25, -2.0, -3.0], [-3.0, -4.0, -5.0]], [[-0.5, 0.0, 0.0], [0.0, -0.5, 0.0]]
    check_float32(nll_loss, rows, [0, 1], 2.625, wanted, which_pick)


@pytest.mark.task("06.4")
def test_each_row_gets_softmax_minus_one_hot_times_what_arrives_at_it():
    logits = Tensor(np.log([[1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]))
    wanted = np.array([[-7.5, 5.0, 2.5], [25.0, 25.0, -50.0]])
    check_rule(
        lambda logits: cross_entropy(logits, [0, 2], "none"),
        {"logits": logits},
        np.array([10.0, 100.0]),
        [wanted],
        of='cross_entropy(logits, [0, 2], "none")',
        probe=which_difference,
    )


@pytest.mark.task("06.4")
def test_as_many_rows_as_classes_do_not_hide_a_row_taken_for_a_column():
    logits = Tensor(np.log([[1.0, 1.0], [1.0, 3.0]]))
    check_rule(
        lambda logits: cross_entropy(logits, [0, 0], "none"),
        {"logits": logits},
        np.array([10.0, 100.0]),
        [[[-5.0, 5.0], [-75.0, 75.0]]],
        of='cross_entropy(logits, [0, 0], "none")',
        probe=which_difference,
    )


@pytest.mark.task("06.4")
def test_the_fused_rule_agrees_with_the_composed_loss():
    """Both ways to the same loss; "mean", and "sum" with a factor on top."""
    array = np.random.default_rng(6).standard_normal((4, 3))
    labels = [2, 0, 1, 1]
    for factor, reduction in ((1.0, "mean"), (10.0, "sum")):
        fused, composed = Tensor(array), Tensor(array)
        (cross_entropy(fused, labels, reduction) * factor).backward()
        (nll_loss(log_softmax(composed), labels, reduction) * factor).backward()
        what = f'{factor:g} * cross_entropy(logits, {labels}, "{reduction}")'
        what += ":\nlogits.grad, compared with that of nll_loss(log_softmax(logits), ...),"
        check_close(fused.grad, composed.grad, what, probe=which_difference)


@pytest.mark.task("06.4")
def test_the_fused_rule_adds_to_the_gradient_that_is_there():
    logits = Tensor(np.log([[1.0, 3.0]]))
    logits.grad = np.array([[10.0, 20.0]])
    check_rule(
        lambda logits: cross_entropy(logits, [1], "none"),
        {"logits": logits},
        np.array([4.0]),
        [[[11.0, 19.0]]],
        of='cross_entropy(logits, [1], "none")',
        probe=which_difference,
    )


@pytest.mark.task("06.4")
def test_the_fused_rule_gives_the_same_when_it_runs_twice_and_leaves_the_labels_alone():
    logits, labels = Tensor(np.log([[1.0, 3.0]])), np.array([1])
    loss = cross_entropy(logits, labels, "none")
    with nothing_else_changes("the rule", labels=labels, logits=logits):
        for run in (1.0, 2.0):
            loss._backward(np.array([0.5]))
            what = f'cross_entropy(log([[1, 3]]), [1], "none"), its rule called {run:g} times with upstream [0.5]'
            wanted = run * np.array([[0.125, -0.125]])
            check_close(logits.grad, wanted, f"{what}:\nlogits.grad", probe=which_difference)


@pytest.mark.task("06.4")
def test_one_row_alone_and_rows_in_two_axes_have_gradients_too():
    one = Tensor(np.log([1.0, 3.0]))
    explained(cross_entropy(one, 0).backward, only_two_axes)
    check_grad(one, np.array([-0.75, 0.75]), of="cross_entropy(x, 0)", at="x = log([1, 3])", probe=which_difference)
    x = Tensor(np.log([[[1.0, 1.0], [1.0, 3.0]], [[3.0, 1.0], [1.0, 1.0]]]))
    upstream, of = np.array([[1.0, 10.0], [100.0, 1000.0]]), 'cross_entropy(x, [[0, 0], [1, 1]], "none")'
    explained(lambda: cross_entropy(x, [[0, 0], [1, 1]], "none")._backward(upstream), only_two_axes)
    wanted = np.array([[[-0.5, 0.5], [-7.5, 7.5]], [[75.0, -75.0], [500.0, -500.0]]])
    at = "x of shape (2, 2, 2), upstream [[1, 10], [100, 1000]]"
    check_grad(x, wanted, of=of, at=at, probe=first_that_tells(which_difference, only_two_axes))


@pytest.mark.task("06.4")
def test_the_fused_rule_stays_in_float32_and_finite_at_ten_thousand():
    for dtype in (np.float32, np.float64):
        logits = Tensor(np.array([[1e4, -1e4], [1e4, -1e4]], dtype))
        cross_entropy(logits, [0, 1]).backward()
        wanted = np.array([[0.0, 0.0], [0.5, -0.5]], dtype)
        what = f"cross_entropy([[1e4, -1e4], [1e4, -1e4]], [0, 1]) in {logits.dtype}:\nlogits.grad"
        check_close(logits.grad, wanted, what, probe=which_difference)


@pytest.mark.task("06.4")
def test_the_fused_rule_does_not_hold_on_to_its_result():
    check_freed(lambda x: cross_entropy(x, [0], "none"), Tensor([[1.0, 2.0]]), of='cross_entropy(x, [0], "none")')


@pytest.mark.task("06.5")
def test_the_loss_is_minus_the_log_of_what_the_target_was_given():
    """The sigmoid of log(3) is 3/4, that of log(1/3) is 1/4; a no was given the rest."""
    losses, _ = both(np.log([3.0, 3.0, 1 / 3, 1 / 3]), np.array([1.0, 0.0, 1.0, 0.0]))
    wanted = -np.log([0.75, 0.25, 0.25, 0.75])
    check_close(losses, wanted, "z = log([3, 3, 1/3, 1/3]), t = [1, 0, 1, 0]:\nthe array of losses", probe=which_binary)


@pytest.mark.task("06.5")
def test_the_slope_is_the_sigmoid_minus_the_target():
    _, slope = both(np.log([3.0, 3.0, 1 / 3, 1 / 3]), np.array([1.0, 0.0, 1.0, 0.0]))
    what = "z = log([3, 3, 1/3, 1/3]), t = [1, 0, 1, 0]:\nthe array of slopes"
    check_close(slope, np.array([-0.25, 0.75, -0.75, 0.25]), what, probe=which_binary)


@pytest.mark.task("06.5")
def test_a_target_between_no_and_yes_counts_for_both():
    losses, slope = both(np.log([3.0, 3.0]), np.array([0.25, 0.75]))
    yes, no = -np.log(0.75), -np.log(0.25)
    wanted = np.array([0.25 * yes + 0.75 * no, 0.75 * yes + 0.25 * no])
    check_close(losses, wanted, "z = log([3, 3]), t = [0.25, 0.75]:\nthe array of losses", probe=which_binary)
    check_close(
        slope, np.array([0.5, 0.0]), "z = log([3, 3]), t = [0.25, 0.75]:\nthe array of slopes", probe=which_binary
    )


@pytest.mark.task("06.5")
def test_logits_of_ten_thousand_give_numbers_and_no_inf():
    """A sure and right answer costs nothing, a sure and wrong one what its logit is off."""
    for dtype in (np.float32, np.float64):
        z, t = np.array([1e4, 1e4, -1e4, -1e4], dtype), np.array([1.0, 0.0, 1.0, 0.0], dtype)
        losses, slope = both(z, t)
        what = f"z = [1e4, 1e4, -1e4, -1e4], t = [1, 0, 1, 0] in {np.dtype(dtype)}:\n"
        check_close(losses, np.array([0.0, 1e4, 1e4, 0.0], dtype), f"{what}the array of losses", probe=which_binary)
        check_close(slope, np.array([0.0, 1.0, -1.0, 0.0], dtype), f"{what}the array of slopes", probe=which_binary)
        check_no_overflow(lambda z=z, t=t: both(z, t), "z = [10000, 10000, -10000, -10000]")


@pytest.mark.task("06.5")
def test_the_mean_of_binary_losses_divides_the_slopes_by_their_number():
    logits = Tensor(np.log([[3.0, 3.0], [1.0, 1.0]]))
    loss = binary_cross_entropy_with_logits(logits, [[1, 0], [1, 0]])
    what = "binary_cross_entropy_with_logits(log([[3, 3], [1, 1]]), [[1, 0], [1, 0]])"
    check_loss(loss, -np.log([0.75, 0.25, 0.5, 0.5]).mean(), what, probe=which_binary)
    loss.backward()
    wanted = np.array([[-0.0625, 0.1875], [-0.125, 0.125]])
    check_close(logits.grad, wanted, f"{what}:\nlogits.grad", probe=which_binary)


@pytest.mark.task("06.5")
def test_logits_and_targets_are_left_as_they_were():
    z, t, yes = np.log([3.0, 1.0 / 3.0]), np.array([0.25, 0.5]), np.array([0.75, 0.25])
    what = "stable_binary_cross_entropy(log([3, 1/3]), [0.25, 0.5])"
    losses = -t * np.log(yes) - (1.0 - t) * np.log(1.0 - yes)
    check_twice(lambda: both(z, t)[0], losses, f"{what}[0]", which_binary, z=z, t=t)
    check_twice(lambda: both(z, t)[1], yes - t, f"{what}[1]", which_binary, z=z, t=t)


# The harder suite: python grader.py 06 --goal

REDUCTIONS = ("mean", "sum", "none")
NUMBERS = ((), (1,), (4,), (2, 3), (2, 1, 3))
ROWS = ((3,), (1,), (4, 3), (2, 1), (3, 3), (2, 3, 4), (1, 1, 2))  # the classes are the last axis


@pytest.mark.goal
@pytest.mark.task("06.1")
def test_goal_squared_errors_match_central_differences():
    for reduction in REDUCTIONS:
        for shape in NUMBERS:
            name = f'mse_loss(a, b, "{reduction}")'
            check_binary_gradient(lambda a, b, r=reduction: mse_loss(a, b, r), shape, shape, name=name, make=Tensor)
    nothing = mse_loss(Tensor(np.zeros((0, 3))), np.zeros((0, 3)), "sum")
    check_loss(nothing, 0.0, 'mse_loss of two empty arrays of shape (0, 3), "sum"')


@pytest.mark.goal
@pytest.mark.task("06.2")
def test_goal_hinge_losses_match_central_differences():
    rng = np.random.default_rng(62)
    for reduction in REDUCTIONS:
        for shape in (*NUMBERS, (0, 3)) if reduction != "mean" else NUMBERS:
            scores = np.asarray(2.0 * rng.standard_normal(shape))
            labels = np.where(np.asarray(rng.standard_normal(shape)) > 0.0, 1, -1)
            name = f'hinge_loss(scores, labels, "{reduction}")'
            check_gradient(lambda x, y=labels, r=reduction: hinge_loss(x, y, r), scores, name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("06.2")
def test_goal_just_at_the_margin_any_slope_between_the_two_is_right():
    scores = Tensor([1.0, -1.0])
    hinge_loss(scores, [1, -1], "sum").backward()
    downhill = np.clip(scores.grad * [-1.0, 1.0], 0.0, 1.0) * [-1.0, 1.0]
    check_close(scores.grad, downhill, 'hinge_loss([1, -1], [1, -1], "sum"):\nscores.grad')


@pytest.mark.goal
@pytest.mark.task("06.3")
def test_goal_composed_cross_entropies_match_central_differences():
    for reduction in REDUCTIONS:
        for shape in ROWS:
            logits, labels = random_rows(shape)
            name = f'nll_loss(log_softmax(x), labels, "{reduction}")'
            check_gradient(
                lambda x, y=labels, r=reduction: nll_loss(log_softmax(x), y, r), logits, name=name, make=Tensor
            )


@pytest.mark.goal
@pytest.mark.task("06.3")
def test_goal_what_is_picked_need_not_be_normalised():
    """Whatever the numbers are: picking is a product and a sum, and the gradient minus the one-hot rows."""
    for shape in (*ROWS, (0, 3)):
        table, labels = random_rows(shape)
        x = Tensor(table)
        loss = nll_loss(x, labels, "sum")
        hot = labels[..., None] == np.arange(shape[-1])
        check_loss(loss, -table[hot].sum(), f'nll_loss of shape {shape}, "sum"')
        loss.backward()
        check_close(x.grad, np.where(hot, -1.0, 0.0), f'nll_loss of shape {shape}, "sum":\nx.grad')


@pytest.mark.goal
@pytest.mark.task("06.4")
def test_goal_fused_cross_entropies_match_central_differences():
    for reduction in REDUCTIONS:
        for shape in (*ROWS, (0, 3)) if reduction != "mean" else ROWS:
            logits, labels = random_rows(shape)
            name = f'cross_entropy(x, labels, "{reduction}")'
            check_gradient(lambda x, y=labels, r=reduction: cross_entropy(x, y, r), logits, name=name, make=Tensor)


@pytest.mark.goal
@pytest.mark.task("06.4")
def test_goal_the_fused_rule_agrees_on_large_tables_and_large_logits():
    rng = np.random.default_rng(64)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-5)):
        array = (rng.standard_normal((50, 100)) * 30.0).astype(dtype)
        labels, upstream = rng.integers(0, 100, 50), rng.standard_normal(50).astype(dtype)
        logits = Tensor(array)
        loss = cross_entropy(logits, labels, "none")
        loss._backward(upstream)
        loss._backward(upstream)
        powers = np.exp(array - array.max(-1, keepdims=True))
        wanted = (powers / powers.sum(-1, keepdims=True) - np.eye(100, dtype=dtype)[labels]) * upstream[:, None] * 2
        what = f"cross_entropy of shape (50, 100) in {logits.dtype}, its rule called twice:\nlogits.grad"
        check_close(logits.grad, wanted.astype(dtype), what, tolerance=tolerance)


@pytest.mark.goal
@pytest.mark.task("06.5")
def test_goal_binary_cross_entropies_match_central_differences():
    rng = np.random.default_rng(65)
    for reduction in REDUCTIONS:
        for shape in (*NUMBERS, (0, 3)) if reduction != "mean" else NUMBERS:
            logits, targets = np.asarray(3.0 * rng.standard_normal(shape)), np.asarray(rng.random(shape))
            name = f'binary_cross_entropy_with_logits(z, t, "{reduction}")'
            check_gradient(
                lambda z, t=targets, r=reduction: binary_cross_entropy_with_logits(z, t, r),
                logits,
                name=name,
                make=Tensor,
            )


@pytest.mark.goal
@pytest.mark.task("06.5")
def test_goal_binary_losses_are_right_from_minus_to_plus_a_thousand():
    z = np.linspace(-1000.0, 1000.0, 401)
    for target in (0.0, 0.3, 1.0):
        losses, slope = both(z, np.full(401, target))
        what = f"401 logits z from -1000 to 1000, all targets {target:g}:\n"
        check_close(losses, np.logaddexp(0.0, z) - z * target, f"{what}the array of losses")
        check_close(slope, 1.0 / (1.0 + np.exp(np.minimum(-z, 700.0))) - target, f"{what}the array of slopes")


def random_rows(shape):
    """A table of random numbers of a shape whose last axis is the classes, and a random label for each row."""
    rng = np.random.default_rng(sum(shape) * 10 + len(shape))
    return rng.standard_normal(shape), np.asarray(rng.integers(0, shape[-1], shape[:-1]))


def check_loss(loss, expected, what, probe=None):
    """Check the numbers of a loss, which has to be a Tensor: the gradient goes back through it."""
    if isinstance(loss, np.ndarray | np.floating | float):
        kind = type(loss).__name__
        raise CheckFailed(
            f"{what} is of type {kind}, expected a Tensor", "The graph ends here: compute with Tensors, not with .data."
        )
    expected = np.asarray(expected, dtype=None if isinstance(expected, np.float32) else np.float64)
    check_close(loss.data if isinstance(loss, Tensor) else loss, expected, what, probe=probe)


def check_float32(loss, array, others, wanted, wanted_gradient, probe):
    """In float32, and twice: a loss and its gradient. What goes in stays as it is."""
    x, others, what = Tensor(np.float32(array)), np.array(others), f"{loss.__name__} of float32 numbers"
    first, second = loss.__code__.co_varnames[:2]  # "scores", "labels"

    def once():
        out = loss(x, others)
        check_loss(out, np.float32(wanted), what, probe)
        return out.data

    check_twice(once, np.array(wanted, np.float32), what, probe, **{first: x, second: others})
    explained(loss(x, others).backward, probe)
    check_close(x.grad, np.float32(wanted_gradient), f"{what}:\n{first}.grad", probe=probe)


def number_by_number(call):
    """What call() gives. Is an array compared as a whole in it?"""
    try:
        return call()
    except ValueError as error:
        if "ambiguous" in str(error):
            error.diagnosis = (
                "Python's own max compares two things as a whole: here every number is to be compared for itself."
            )
        raise


def only_two_axes():
    """Is the rule right for a table, and only for a table?"""
    if np.allclose(from_the_rule(LOGS, RIGHT, np.ones(2)), np.exp(log_of_softmax(LOGS)) - HOT):
        return "For a table it is right. The labels may have another number of axes, none at all included."
    return None


def only_a_table():
    """Does picking work for a table, and only for a table?"""
    if np.allclose(nll_loss(Tensor(LOGS), RIGHT, "none").data, -PICKED):
        return "For a table it is right. The labels may have another number of axes, none at all included."
    return None


def no_power():
    try:
        mse_loss(Tensor([1.0]), [0.0])
    except TypeError as error:
        if " ^" in str(error):
            return "In Python ^ is no power, it compares bits: a square is ** 2, or a product with itself."
    return None


def relu(array):
    return np.maximum(array, 0.0)


def log_of_softmax(array):
    return array - np.log(np.exp(array).sum(axis=-1, keepdims=True))


def pick(array):
    """The numbers that the labels of the second look at 06.3 pick."""
    return array[[0, 1], RIGHT]


def both(z, t):
    """The losses and the slopes of task 06.5."""
    result = number_by_number(lambda: stable_binary_cross_entropy(z, t))
    if not isinstance(result, tuple | list) or len(result) != 2:
        what = "nothing" if result is None else f"one {type(result).__name__}"
        raise CheckFailed(
            f"stable_binary_cross_entropy returns {what}, expected two arrays",
            "The losses and the slopes are asked for, in this order: return losses, slope",
        )
    return result


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def which_reduction(loss, each, counts):
    """Does a loss ignore its reduction, or divide by the wrong count?

    loss    takes a reduction and runs the learner's code on the numbers of the second look
    each    the losses there one by one
    counts  by what a mean might be divided by mistake
    """

    def probe():
        found = {reduction: np.asarray(loss(reduction).data) for reduction in REDUCTIONS}
        if all(one.shape == each.shape and np.allclose(one, each) for one in found.values()):
            return "The losses come back one by one, whatever `reduction` says: that is what reduce() is for."
        totals = {"mean": each.mean(), "sum": each.sum()}
        for way, total in totals.items():
            if all(one.shape == () and np.isclose(one, total) for one in found.values()):
                return f"It is the {way}, whatever `reduction` says: that is what reduce() is for."
        if all(one.shape == () and np.isclose(one, found["mean"]) for one in found.values()):
            return "It is one and the same number, whatever `reduction` says: that is what reduce() is for."
        if found["mean"].shape == () and np.isclose(found["mean"], totals["sum"]):
            return "The losses are summed before the mean is taken: nothing is divided by their number."
        fitting = [
            name
            for name, count in counts.items()
            if found["mean"].shape == () and np.isclose(found["mean"], totals["sum"] / count)
        ]
        if len(fitting) == 1:
            return f"The sum is divided by {fitting[0]}: a mean is divided by how many losses there are."
        return None

    return probe


def cut_off(loss, array, name):
    """Does the graph lead from the loss back to what it was computed from?"""

    def probe():
        x = Tensor(array.copy())
        waiting, seen = [loss(x)], set()
        if not np.array_equal(x.data, array):
            return f"The numbers of {name} are changed in place: they belong to others too."
        while waiting:
            node = waiting.pop()
            if node is x:
                return None
            if id(node) not in seen:
                seen.add(id(node))
                waiting.extend(node._children)
        return f"No way leads back from the loss to {name}: compute with the Tensors, not with their .data."

    return probe


PREDICTION = np.array([[7.0, 2.0], [5.0, 1.0], [0.5, 6.0]])
TARGET = np.array([[4.0, 10.0], [3.0, 1.5], [2.0, 5.0]])
ERROR = PREDICTION - TARGET
which_square = first_that_tells(
    which_formula(
        lambda: mse_loss(Tensor(PREDICTION), TARGET, "none").data,
        {
            "The errors come back as they are: squared, too high and too low count alike.": ERROR,
            "The errors come back as they are, with the sign turned: they are not squared.": -ERROR,
            "That is the size of the error and not its square.": np.abs(ERROR),
            "That is half the square, as some textbooks have it. The mean squared error has no 1/2.": ERROR**2 / 2,
            "The errors are doubled and not squared.": 2.0 * ERROR,
            "That is the difference of the squares, not the square of the difference.": PREDICTION**2 - TARGET**2,
            "Prediction and target are added: an error is their difference.": (PREDICTION + TARGET) ** 2,
            "Prediction and target are multiplied: an error is their difference.": PREDICTION * TARGET,
            "It is divided by the number of rows, whatever `reduction` says: reduce() divides where it has to.": ERROR
            ** 2
            / 3,
            "It is divided by how many there are, whatever `reduction` says: reduce() divides where it has to.": ERROR
            ** 2
            / 6,
            "The squares of a row are summed before the reduction: there is one loss for each number.": (ERROR**2).sum(
                axis=-1
            ),
            "The mean of each row is taken before the reduction: there is one loss for each number.": (ERROR**2).mean(
                axis=-1
            ),
            "That is the cube of the error: a square is a product of two.": ERROR**3,
            "The prediction is squared, and the target makes no difference.": PREDICTION**2,
        },
    ),
    which_reduction(lambda way: mse_loss(Tensor(PREDICTION), TARGET, way), ERROR**2, {"the number of rows": 3}),
    cut_off(lambda x: mse_loss(x, TARGET), PREDICTION, "the prediction"),
    which_formula(
        lambda: [mse_loss(Tensor([1.0, -3.0]), [0.0, 0.0], way).item() for way in ("mean", "sum")],
        {"It reduces first and squares then, so that errors of both signs cancel: square each of them.": [1.0, 4.0]},
    ),
    which_formula(
        lambda: mse_loss(Tensor([3.0, 5.0, 0.0]), [1.0, 4.0, 2.0], "none").data,
        {"There is one number where three belong: @ multiplies and sums, * only multiplies.": np.array(9.0)},
    ),
)

SCORES = np.array([[0.5, -3.0], [4.0, 0.25], [2.0, -0.75]])
SIDES = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
ON_ITS_SIDE = SIDES * SCORES
which_margin = first_that_tells(
    which_formula(
        lambda: hinge_loss(Tensor(SCORES), SIDES, "none").data,
        {
            "The margin is missing: a score on its side by less than 1 still has something to pay.": relu(-ON_ITS_SIDE),
            "The sign is wrong: it gets dearer the further a score is on its right side.": relu(1.0 + ON_ITS_SIDE),
            "The difference is the other way round: right scores pay, and wrong ones do not.": relu(ON_ITS_SIDE - 1.0),
            "The labels make no difference: a score of 2 is good for label 1 and bad for label -1.": relu(1.0 - SCORES),
            "Scores far beyond the margin earn something: the loss goes below 0.": 1.0 - ON_ITS_SIDE,
            "The hinge loss grows straight with what is missing: this is its square.": relu(1.0 - ON_ITS_SIDE) ** 2,
            "Here relu comes first and the margin after it: it is the other way round.": 1.0 - relu(ON_ITS_SIDE),
            "Label minus score is an error, as in 06.1: here only the side counts, label times score.": relu(
                SIDES - SCORES
            ),
            "The labels are 1 and -1 already: 2 * labels - 1 makes those of 0 and 1.": relu(
                1.0 - (2.0 * SIDES - 1.0) * SCORES
            ),
            "That is half of it, and the hinge loss has no 1/2.": relu(1.0 - ON_ITS_SIDE) / 2.0,
            "The scores are multiplied in outside of relu: are brackets missing?": relu(1.0 - SIDES) * SCORES,
            "The margin is 2 and not 1.": relu(2.0 - ON_ITS_SIDE),
            "Only the size of a score counts here, and not whether it is on its side.": relu(1.0 - np.abs(SCORES)),
            "Label and score are taken away one after the other: it is their product that tells the side.": relu(
                1.0 - SIDES - SCORES
            ),
            "The margin is half of what it should be.": relu(0.5 - ON_ITS_SIDE),
            "It is the size of 1 - label * score: a score beyond the margin has nothing to pay.": np.abs(
                1.0 - ON_ITS_SIDE
            ),
        },
    ),
    which_reduction(
        lambda way: hinge_loss(Tensor(SCORES), SIDES, way), relu(1.0 - ON_ITS_SIDE), {"the number of rows": 3}
    ),
    cut_off(lambda x: hinge_loss(x, SIDES), SCORES, "the scores"),
    which_formula(
        lambda: [hinge_loss(Tensor([3.0, -2.0]), [1, 1], way).item() for way in ("mean", "sum")],
        {"It reduces first and takes relu then, so that good scores pay for bad ones: relu each of them.": [0.5, 1.0]},
    ),
    which_formula(
        lambda: hinge_loss(Tensor([0.5, -3.0, 0.25]), [1.0, 1.0, -1.0], "none").data,
        {"There is one number where three belong: @ multiplies and sums, * only multiplies.": np.array(3.75)},
    ),
)

LOGS, RIGHT = np.array([[-1.0, -2.0, -4.0], [-0.5, -3.0, -2.5]]), np.array([2, 0])
HOT = np.eye(3)[RIGHT]
PICKED = (LOGS * HOT).sum(axis=-1)


def log_of_log():
    """Are numbers below 0 nan, where 0.5 has a loss?"""
    with np.errstate(all="ignore"):
        below, above = (nll_loss(Tensor([one, one]), 0, "none").data for one in (-0.5, 0.5))
    if np.isnan(below) and np.isclose(above, -np.log(0.5)):
        return "What arrives are logarithms already, all below 0: there is no logarithm of those."
    return None


ROWS_MEET = "@ multiplies every row with the one-hot rows of all: * stays within the row."
which_pick = first_that_tells(
    which_formula(
        lambda: nll_loss(Tensor(LOGS), RIGHT, "none").data,
        {
            "The minus sign is missing: a log-probability is negative, and a loss is to be made small.": PICKED,
            "That is the probability, and not its logarithm.": np.exp(PICKED),
            "That is minus the probability, and not minus its logarithm.": -np.exp(PICKED),
            "The labels count from 0: this picks the class after the right one.": -LOGS[[0, 1], [0, 1]],
            "The labels count from 0: this picks the class before the right one.": -LOGS[[0, 1], [1, 2]],
            "All classes come back: the one-hot row picks one of them.": -LOGS,
            "The one-hot row leaves zeros for the other classes: the sum over the classes is missing.": -LOGS * HOT,
            "All classes are summed: the one-hot row is missing.": -LOGS.sum(axis=-1),
            "The one-hot row is added: only a product picks.": -(LOGS + HOT).sum(axis=-1),
            "Everything but the right class is picked.": -(LOGS * (1.0 - HOT)).sum(axis=-1),
            "The largest of each row is picked, whatever the label says.": -LOGS.max(axis=-1),
            "The sum over the classes keeps their axis: there is one loss for each row.": -PICKED[:, None],
            "The sum runs over the rows: the classes are the last axis.": -(LOGS * HOT).sum(axis=0),
            "The sum is divided by the number of classes: only one of them was picked.": -PICKED / 3.0,
            "It is divided by the number of rows, whatever `reduction` says: reduce() divides where it has to.": -PICKED
            / 2.0,
            "It sums over the rows too, so that nothing is left to divide by their number: the classes are axis -1.": (
                -PICKED.sum()
            ),
            "The sign is wrong, and the rows are summed too: the classes are the last axis.": PICKED.sum(),
            "@ multiplies every row with the one-hot rows of all: * stays within the row.": -(LOGS @ HOT.T).sum(
                axis=-1
            ),
            "The largest number of the product is one of the zeros: a sum picks what is left.": -(LOGS * HOT).max(
                axis=-1
            ),
            "The numbers of the labels are multiplied in: it is the one-hot row that picks.": -(
                LOGS * RIGHT[:, None]
            ).sum(axis=-1),
            "It is 1 too much: minus the log-probability is the whole loss.": 1.0 - PICKED,
            "That is a sum over yes-or-no questions: here only the right class has a term.": -(
                LOGS * HOT + (1.0 - LOGS) * (1.0 - HOT)
            ).sum(axis=-1),
            "What arrives are log-probabilities already: this takes log_softmax once more.": -pick(
                log_of_softmax(LOGS)
            ),
            "Softmax twice: this takes log_softmax of probabilities.": -pick(log_of_softmax(np.exp(LOGS))),
        },
    ),
    which_reduction(
        lambda way: nll_loss(Tensor(LOGS), RIGHT, way), -PICKED, {"the number of classes": 3, "all the numbers": 6}
    ),
    log_of_log,
    cut_off(lambda x: nll_loss(x, RIGHT), LOGS, "the log-probabilities"),
    which_formula(
        lambda: nll_loss(Tensor(LOGS), np.array([1, 0]), "none").data,
        {
            "The labels pick whole rows: they are to pick one number in each row.": -LOGS[[1, 0]],
            ROWS_MEET: -LOGS[:, [1, 0]],
        },
    ),
)


second_axis = which_formula(
    lambda: nll_loss(Tensor(np.arange(12.0).reshape(2, 2, 3)), np.zeros((2, 2), int), "none").data,
    {
        "The sum runs over axis 1: the classes are the last axis, and that is axis 1 only in a table.": [
            [-3, 0, 0],
            [-15, 0, 0],
        ]
    },
)


def from_the_rule(logits, labels, upstream):
    """What arrives at the logits of the fused node."""
    x = Tensor(logits)
    cross_entropy(x, labels, "none")._backward(upstream)
    return x.grad


def runs_twice():
    """Is a second call of one and the same rule different from the first?"""
    x = Tensor(LOGS)
    loss = cross_entropy(x, RIGHT, "none")
    loss._backward(np.ones(2))
    first = x.grad.copy()
    x.zero_grad()
    loss._backward(np.ones(2))
    if not np.allclose(first, x.grad) and np.allclose(first, np.exp(log_of_softmax(LOGS)) - HOT):
        return "The first call is right, the second is not: the rule has changed an array that it needs again."
    return None


def too_large():
    """Right for small logits, and not for large ones?"""
    wanted = np.exp(log_of_softmax(LOGS)) - HOT
    large = from_the_rule(np.array([[1e4, -1e4]]), [0], np.ones(1))
    if np.allclose(from_the_rule(LOGS, RIGHT, np.ones(2)), wanted) and not np.isfinite(large).all():
        return "For small logits it is right; exp(1e4) is inf. The log-probabilities are there, and never above 0."
    return None


SQUARE, CLASSES = np.random.default_rng(6).standard_normal((3, 3)), np.array([2, 0, 0])
TARGETS = np.eye(3)[CLASSES]
LOG_P = log_of_softmax(SQUARE)
P = np.exp(LOG_P)
UP = np.array([[2.0], [-3.0], [5.0]])
which_difference = first_that_tells(
    which_formula(
        lambda: from_the_rule(LOGS, RIGHT, np.ones(2)),
        {
            "It is divided by the number of rows here: what arrives from the mean is divided already.": (
                np.exp(log_of_softmax(LOGS)) - HOT
            )
            / 2.0,
            "It is divided by the number of classes.": (np.exp(log_of_softmax(LOGS)) - HOT) / 3.0,
        },
    ),
    which_formula(
        lambda: from_the_rule(SQUARE, CLASSES, UP[:, 0].copy()),
        {
            "It is one-hot minus softmax: the other way round it would be right.": (TARGETS - P) * UP,
            "The one-hot row is added: at the right class it has to be taken away.": (P + TARGETS) * UP,
            "That is softmax alone: nothing is taken away at the right class.": P * UP,
            "Only the right class gets something: the others have to give way.": -TARGETS * UP,
            "That is the slope with regard to the probability, -1 / p: the logits come before softmax.": -TARGETS
            / P
            * UP,
            "That is the loss and not its slope.": -LOG_P * TARGETS * UP,
            "That is the loss with its sign turned, and not its slope.": LOG_P * TARGETS * UP,
            "p * (1 - p) is the slope of a single probability, not of the loss.": P * (1.0 - P) * UP,
            "The right class gets -1, whatever its share: from the share 1 is taken away.": np.where(TARGETS, -1.0, P)
            * UP,
            "From every class 1 is taken away: only from the right one.": (P - 1.0) * UP,
            "The labels themselves are taken away: they are numbers of classes, not amounts.": (P - CLASSES[:, None])
            * UP,
            "That is exp of the logits, which is not divided by its sum: in softmax each row adds up to 1.": (
                np.exp(SQUARE) - TARGETS
            )
            * UP,
            "The softmax is taken over the whole table: each row has its own.": (
                np.exp(SQUARE) / np.exp(SQUARE).sum() - TARGETS
            )
            * UP,
            "The softmax runs over the rows: the classes are the last axis.": (
                np.exp(SQUARE) / np.exp(SQUARE).sum(axis=0) - TARGETS
            )
            * UP,
            "`upstream` belongs to the whole difference, and has one number for each row, not for each column.": P
            - TARGETS * UP.T,
            "These are log-probabilities minus one-hot: softmax is their exp.": (LOG_P - TARGETS) * UP,
            "The logits themselves stand where their softmax belongs.": (SQUARE - TARGETS) * UP,
            "Softmax twice: this takes the softmax of probabilities.": (np.exp(log_of_softmax(P)) - TARGETS) * UP,
            "Softmax's own rule is applied on top: softmax minus one-hot is for the logits already.": P
            * (P - TARGETS - ((P - TARGETS) * P).sum(-1, keepdims=True))
            * UP,
            "In each row something is taken away at the labels of all the rows: each row has one label.": (
                P - TARGETS.max(axis=0)
            )
            * UP,
            "The labels choose rows: they have to choose one class in each row.": (P - TARGETS.max(axis=0)[:, None])
            * UP,
            "The labels count from 0: this takes away at the class after the right one.": (P - np.roll(TARGETS, 1, 1))
            * UP,
            "The labels count from 0: this takes away at the class before the right one.": (P - np.roll(TARGETS, -1, 1))
            * UP,
            "`upstream` has one number for each row, and here it is multiplied to the columns.": (P - TARGETS) * UP.T,
            "All rows get the same: each gets what arrives at its own loss.": (P - TARGETS) * UP.mean(),
            "All rows get the sum of what arrives: each gets what arrives at its own loss.": (P - TARGETS) * UP.sum(),
            "`upstream` is multiplied to softmax alone: it belongs to the whole difference.": P * UP - TARGETS,
            "`upstream` is multiplied to the one-hot row alone: it belongs to the whole difference.": P - TARGETS * UP,
        },
    ),
    runs_twice,
    too_large,
)

Z, T = np.array([2.0, -1.0, 0.5]), np.array([1.0, 0.0, 0.25])
YES = 1.0 / (1.0 + np.exp(-Z))
RIGHT_LOSSES = np.logaddexp(0.0, Z) - Z * T


def overflows():
    """Right for small logits, and not for large ones?"""
    losses, slope = stable_binary_cross_entropy(Z, T)
    if not np.allclose(losses, RIGHT_LOSSES) or not np.allclose(slope, YES - T):
        return None
    large = np.array([1e4, 1e4, -1e4, -1e4])
    losses, slope = stable_binary_cross_entropy(large, np.array([1.0, 0.0, 1.0, 0.0]))
    for what, found in (("loss", losses), ("slope", slope)):
        if not np.isfinite(found).all():
            z = large[~np.isfinite(found)][0]
            kind = "nan" if np.isnan(found).any() else "inf"
            return (
                f"For small logits it is right; at {z:g} the {what} is {kind}. Which power in it has become inf, or 0?"
            )
    if np.abs(losses).max() < 9999.0:
        return "For small logits it is right; a wrong logit of 1e4 has to cost 1e4. A clip or a tiny number in log?"
    return None


which_binary = first_that_tells(
    which_formula(
        lambda: stable_binary_cross_entropy(-Z, T)[0],
        {"There is |z| * t where z * t belongs.": np.logaddexp(0.0, -Z) - np.abs(Z) * T},
    ),
    which_formula(
        lambda: stable_binary_cross_entropy(Z, T)[0],
        {
            "The targets are swapped: this is the loss for 1 - t.": np.logaddexp(0.0, Z) - Z * (1.0 - T),
            "The sign is wrong: a loss is to be made small.": -RIGHT_LOSSES,
            "Only the yes is counted: a no needs its own part.": -T * np.log(YES),
            "The part max(z, 0) is missing.": RIGHT_LOSSES - np.maximum(Z, 0.0),
            "The part z * t is missing.": np.logaddexp(0.0, Z),
            "z * t is added: it has to be taken away.": np.logaddexp(0.0, Z) + Z * T,
            "There is min(z, 0) where max(z, 0) belongs.": RIGHT_LOSSES - np.maximum(Z, 0.0) + np.minimum(Z, 0.0),
            "The target is made a whole number: one in between counts for both.": np.logaddexp(0.0, Z)
            - Z * np.round(T),
            "The logarithm is missing: that is exp(-|z|) itself.": np.maximum(Z, 0.0) - Z * T + np.exp(-np.abs(Z)),
            "There is exp(|z|) where exp(-|z|) belongs.": np.maximum(Z, 0.0) - Z * T + np.log1p(np.exp(np.abs(Z))),
            "In log(1 + exp(...)) stands z in place of -|z|: then max(z, 0) is counted twice.": np.maximum(Z, 0.0)
            + RIGHT_LOSSES,
            "Negative logits are dearer by |z|: is there |z| where max(z, 0) belongs, or -z where -|z| does?": (
                RIGHT_LOSSES - np.maximum(Z, 0.0) + np.abs(Z)
            ),
            "The largest of all the logits stands where each has its own max(z, 0): np.maximum goes one by one.": (
                RIGHT_LOSSES - np.maximum(Z, 0.0) + Z.max()
            ),
            "The largest of the targets stands where max(z, 0) belongs, which is about each logit.": RIGHT_LOSSES
            - np.maximum(Z, 0.0)
            + T.max(),
            "In log(1 + exp(...)) the 1 is missing.": np.maximum(Z, 0.0) - Z * T - np.abs(Z),
            "np.log1p adds the 1 itself: here it is added twice.": np.maximum(Z, 0.0)
            - Z * T
            + np.log(2.0 + np.exp(-np.abs(Z))),
            "The last part is in bits: the natural logarithm is np.log.": np.maximum(Z, 0.0)
            - Z * T
            + np.log2(1.0 + np.exp(-np.abs(Z))),
            "That is the squared error of the logit.": (Z - T) ** 2,
            "There is z where max(z, 0) belongs.": RIGHT_LOSSES - np.maximum(Z, 0.0) + Z,
            "That is the squared error of the probability.": (YES - T) ** 2,
            "It is the mean: one loss for each logit is asked for, the reduction comes later.": RIGHT_LOSSES.mean(),
            "It is the sum: one loss for each logit is asked for, the reduction comes later.": RIGHT_LOSSES.sum(),
            "The two are in the wrong order: first the losses, then the slopes.": YES - T,
            "This is in bits: the natural logarithm is np.log.": RIGHT_LOSSES / np.log(2.0),
        },
    ),
    which_formula(
        lambda: stable_binary_cross_entropy(Z, T)[1],
        {
            "It is t minus sigmoid: the other way round it would be right.": T - YES,
            "That is the sigmoid alone: the target is missing.": YES,
            "The sigmoid's own slope is multiplied in: sigmoid minus target is for the logit already.": (YES - T)
            * YES
            * (1.0 - YES),
            "That is a step, 0 or 1: the sigmoid goes from one to the other little by little.": (Z > 0.0) - T,
            "The logit is multiplied in: sigmoid minus target is the whole slope.": (YES - T) * Z,
            "tanh is not halved: 0.5 * tanh(0.5 * z) + 0.5 goes from 0 to 1.": np.tanh(0.5 * Z) + 0.5 - T,
            "That is the slope of the sigmoid, not of the loss.": YES * (1.0 - YES),
            "The targets are swapped: this is the slope for 1 - t.": YES - (1.0 - T),
            "The sign in the sigmoid is wrong: that is the probability of a no.": 1.0 - YES - T,
            "The logit stands where its sigmoid belongs.": Z - T,
            "The target is added: it has to be taken away.": YES + T,
            "The slopes are divided by their number: the reduction comes later.": (YES - T) / 3.0,
            "tanh goes from -1 to 1: halved it needs 0.5 on top, to go from 0 to 1.": 0.5 * np.tanh(0.5 * Z) - T,
            "That is the sigmoid of |z|: a negative logit is a no.": 1.0 / (1.0 + np.exp(-np.abs(Z))) - T,
            "There is tanh where the sigmoid belongs: it goes from -1 to 1.": np.tanh(Z) - T,
            "In the sigmoid made from tanh, z has to be halved: 0.5 * tanh(0.5 * z) + 0.5.": 0.5 * np.tanh(Z) + 0.5 - T,
        },
    ),
    overflows,
)
