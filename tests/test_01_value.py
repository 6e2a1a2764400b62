"""The checks of chapter 01: python grader.py 01"""

import gc
import math
import sys

import numpy as np
import pytest

from meintorch.data import make_moons
from meintorch.mlp import MLP, Neuron, accuracy, hinge_loss, train
from meintorch.value import Value
from tests._helpers import (
    CheckFailed,
    check_close,
    check_derivative,
    check_freed,
    check_grad,
    check_rule,
    check_twice,
    check_walk,
    count_living,
    first_that_tells,
    nothing_else_changes,
    used_twice,
    which_formula,
)


@pytest.mark.task("01.6")
def test_tanh_of_a_times_b_plus_c_knows_all_its_derivatives():
    """Three operations, three small rules, and the chain rule for the whole comes out."""
    a, b, c = Value(2.0), Value(-3.0), Value(5.0)
    loss = (a * b + c).tanh()
    loss.backward()
    slope = 1.0 - math.tanh(-1.0) ** 2  # 0.41997
    check_grad(a, -3.0 * slope, of="tanh(a * b + c)", at="a = 2, b = -3, c = 5", name="a", probe=check_walk(Value))
    check_grad(b, 2.0 * slope, of="tanh(a * b + c)", at="a = 2, b = -3, c = 5", name="b")
    check_grad(c, slope, of="tanh(a * b + c)", at="a = 2, b = -3, c = 5", name="c")


@pytest.mark.task("01.1")
def test_both_terms_of_a_sum_get_what_arrives():
    a, b = Value(2.0), Value(5.0)
    check_rule(lambda a, b: a + b, {"a": a, "b": b}, 3.0, [3.0, 3.0], of="a + b", probe=which_term)


@pytest.mark.task("01.1")
def test_a_value_added_to_itself_gets_both_shares():
    x = Value(3.0)
    twice = used_twice(lambda a, b: a + b, Value(2.0), Value(5.0), 1.0, 1.0, 1.0)
    check_rule(lambda x: x + x, {"x": x}, 1.0, [2.0], of="x + x", probe=twice)


@pytest.mark.task("01.1")
def test_a_sum_adds_to_the_gradient_that_is_there():
    a, b = Value(2.0), Value(5.0)
    a.grad, b.grad = 10.0, 20.0
    check_rule(lambda a, b: a + b, {"a": a, "b": b}, 3.0, [13.0, 23.0], of="a + b")


@pytest.mark.task("01.1")
def test_the_rule_of_a_sum_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: a + b, Value(2.0), Value(5.0), of="a + b")


@pytest.mark.task("01.2")
def test_each_factor_gets_its_partner_times_what_arrives():
    a, b = Value(2.0), Value(5.0)
    check_rule(lambda a, b: a * b, {"a": a, "b": b}, 3.0, [15.0, 6.0], of="a * b", probe=which_factor)


@pytest.mark.task("01.2")
def test_a_value_times_itself_gets_both_shares():
    x = Value(3.0)
    twice = used_twice(lambda a, b: a * b, Value(2.0), Value(5.0), 1.0, 5.0, 2.0)
    check_rule(lambda x: x * x, {"x": x}, 1.0, [6.0], of="x * x", probe=twice)


@pytest.mark.task("01.2")
def test_a_product_adds_to_the_gradient_that_is_there():
    a, b = Value(2.0), Value(-5.0)
    a.grad, b.grad = 10.0, 20.0
    check_rule(lambda a, b: a * b, {"a": a, "b": b}, 1.0, [5.0, 22.0], of="a * b")


@pytest.mark.task("01.2")
def test_a_factor_of_zero_still_hears_of_its_partner():
    """The product is 0, but it moves by 5 when the 0 moves by 1."""
    a, b = Value(0.0), Value(5.0)
    product = a * b
    try:
        product._backward(3.0)
    except ZeroDivisionError as error:
        error.diagnosis = "A factor may be 0. The partner's number is there as it is: nothing has to be divided."
        raise
    check_grad(a, 15.0, of="a * b", at="a = 0, b = 5, upstream 3", name="a", probe=which_factor)
    check_grad(b, 0.0, of="a * b", at="a = 0, b = 5, upstream 3", name="b", probe=which_factor)


@pytest.mark.task("01.2")
def test_the_rule_of_a_product_does_not_hold_on_to_its_result():
    check_freed(lambda a, b: a * b, Value(2.0), Value(5.0), of="a * b")


@pytest.mark.task("01.3")
def test_the_cube_of_two_grows_twelve_times_as_fast_as_two():
    x = Value(2.0)
    check_rule(lambda x: x**3, {"x": x}, 1.0, [12.0], of="x ** 3", probe=which_power)


@pytest.mark.task("01.3")
def test_a_square_falls_on_the_left_of_zero():
    """At -3 the square is 9, and a step to the right makes it smaller: the slope is -6."""
    x = Value(-3.0)
    check_rule(lambda x: x**2, {"x": x}, 1.0, [-6.0], of="x ** 2", probe=which_power)


@pytest.mark.task("01.3")
def test_a_root_and_an_inverse_follow_the_same_rule():
    x = Value(4.0)
    check_rule(lambda x: x**0.5, {"x": x}, 2.0, [0.5], of="x ** 0.5", probe=which_power)
    x = Value(2.0)
    check_rule(lambda x: x**-1, {"x": x}, 2.0, [-0.5], of="x ** -1", probe=which_power)


@pytest.mark.task("01.3")
def test_at_zero_a_square_is_flat_and_x_to_the_power_of_one_is_not():
    """Also where the result is 0, and nothing can be divided by it."""
    for exponent, slope in ((2, 0.0), (1, 1.0), (1.5, 0.0)):
        of = f"x ** {exponent}"
        check_rule(lambda x, n=exponent: x**n, {"x": Value(0.0)}, 1.0, [slope], of=of, probe=which_power)


@pytest.mark.task("01.3")
def test_a_power_adds_to_the_gradient_that_is_there():
    x = Value(3.0)
    x.grad = 10.0
    check_rule(lambda x: x**2, {"x": x}, 1.0, [16.0], of="x ** 2")


@pytest.mark.task("01.3")
def test_the_rule_of_a_power_does_not_hold_on_to_its_result():
    check_freed(lambda x: x**3, Value(2.0), of="x ** 3")


@pytest.mark.task("01.4")
def test_exp_is_its_own_slope():
    x = Value(1.5)
    check_rule(lambda x: x.exp(), {"x": x}, 2.0, [2.0 * math.exp(1.5)], of="exp(x)", probe=which_exp)


@pytest.mark.task("01.4")
def test_the_slope_of_tanh_is_one_minus_its_own_square():
    x = Value(0.5)
    check_rule(lambda x: x.tanh(), {"x": x}, 2.0, [2.0 * (1.0 - math.tanh(0.5) ** 2)], of="tanh(x)", probe=which_tanh)


@pytest.mark.task("01.4")
def test_tanh_is_steepest_at_zero():
    x = Value(0.0)
    check_rule(lambda x: x.tanh(), {"x": x}, 2.0, [2.0], of="tanh(x)")


@pytest.mark.task("01.4")
def test_exp_and_tanh_add_to_the_gradient_that_is_there():
    x = Value(0.0)
    x.grad = 10.0
    check_rule(lambda x: x.exp(), {"x": x}, 1.0, [11.0], of="exp(x)")
    check_rule(lambda x: x.tanh(), {"x": x}, 1.0, [12.0], of="tanh(x)")


@pytest.mark.task("01.4")
def test_the_rules_of_exp_and_tanh_do_not_hold_on_to_their_results():
    check_freed(lambda x: x.exp(), Value(2.0), of="exp(x)")
    check_freed(lambda x: x.tanh(), Value(2.0), of="tanh(x)")


@pytest.mark.task("01.5")
def test_relu_lets_a_gradient_through_where_it_let_the_number_through():
    x = Value(2.0)
    check_rule(lambda x: x.relu(), {"x": x}, 3.0, [3.0], of="relu(x)", probe=which_side)


@pytest.mark.task("01.5")
def test_relu_holds_a_gradient_back_where_it_held_the_number_back():
    x = Value(-2.0)
    check_rule(lambda x: x.relu(), {"x": x}, 3.0, [0.0], of="relu(x)", probe=which_side)


@pytest.mark.task("01.5")
def test_relu_adds_to_the_gradient_that_is_there():
    for number, wanted in ((2.0, 13.0), (-2.0, 10.0)):
        x = Value(number)
        x.grad = 10.0
        check_rule(lambda x: x.relu(), {"x": x}, 3.0, [wanted], of="relu(x)")


@pytest.mark.task("01.5")
def test_the_rule_of_relu_does_not_hold_on_to_its_result():
    check_freed(lambda x: x.relu(), Value(2.0), of="relu(x)")


@pytest.mark.task("01.6")
def test_the_result_changes_one_to_one_with_itself():
    y = Value(2.0) * Value(5.0)
    y.backward()
    check_close(y.grad, 1.0, "y = a * b: after y.backward(), y.grad", probe=check_walk(Value))
    x = Value(2.0)
    x.backward()
    look = which_formula(lambda: x.grad, {"The walk needs its seed here too, though there is no way to go.": 0.0})
    check_close(x.grad, 1.0, "x, which nothing was computed from: after x.backward(), x.grad", probe=look)


@pytest.mark.task("01.6")
def test_a_value_waits_until_everyone_who_used_it_has_reported():
    """c = 2x * (2x + 1) = 4x^2 + 2x, so the slope at 3 is 8 * 3 + 2 = 26."""
    x = Value(3.0)
    a = x * 2.0
    b = a + 1.0
    c = a * b
    c.backward()
    check_grad(x, 26.0, of="a * (a + 1) with a = 2 * x", at="x = 3", probe=check_walk(Value))
    x = Value(3.0)
    a = x * 2.0
    b = a + 1.0
    c = b * a
    c.backward()
    check_grad(x, 26.0, of="(a + 1) * a with a = 2 * x", at="x = 3", probe=check_walk(Value))


@pytest.mark.task("01.6")
def test_no_value_is_visited_twice():
    """Doubling twelve times is a factor of 4096, though 4096 paths lead from the result to x."""
    x = Value(1.0)
    y = x
    for _ in range(12):
        y = y + y
    y.backward()
    check_grad(x, 4096.0, of="x doubled twelve times", at="x = 1", probe=check_walk(Value))


@pytest.mark.task("01.6")
def test_two_values_that_hold_the_same_number_are_two():
    """Both products are 6, and each has a factor of its own to hand on to."""
    x, z = Value(3.0), Value(2.0)
    (x * 2.0 + z * 3.0).backward()
    for name, value, slope in (("x", x, 2.0), ("z", z, 3.0)):
        check_grad(value, slope, of="2 * x + 3 * z", at="x = 3, z = 2", name=name, probe=same_number)


@pytest.mark.task("01.6")
def test_gradients_of_two_results_add_up():
    x = Value(2.0)
    (x * x).backward()
    check_grad(x, 4.0, of="x * x", at="x = 2")
    (x * x).backward()
    check_grad(x, 8.0, of="x * x for the second time, and nothing reset,", at="x = 2")


@pytest.mark.task("01.6")
def test_a_walk_changes_gradients_and_nothing_else():
    x = Value(3.0)
    a = x * 2.0
    y = a * a
    with nothing_else_changes("y.backward()", x=x, a=a, y=y):
        y.backward()


@pytest.mark.task("01.6")
def test_nothing_holds_on_to_a_graph_that_has_been_walked():
    """Cycles are allowed, which the garbage collector finds: a visit() that calls itself is one."""
    x = Value(3.0)
    gc.collect()
    before = count_living(Value)
    (x * x * x).backward()
    gc.collect()
    if count_living(Value) > before:
        raise CheckFailed(
            "y = x * x * x: y and x * x stay in memory after y.backward(), though nobody refers to them",
            "Is there a list or a dict outside of backward() that they were put into?",
        )


@pytest.mark.task("01.6")
def test_difference_and_quotient_come_for_free():
    """y = (a - b) / b = a / b - 1, so dy/da = 1/b and dy/db = -a / b^2."""
    a, b = Value(6.0), Value(2.0)
    ((a - b) / b).backward()
    check_grad(a, 0.5, of="(a - b) / b", at="a = 6, b = 2", name="a")
    check_grad(b, -1.5, of="(a - b) / b", at="a = 6, b = 2", name="b")


@pytest.mark.task("01.7")
def test_a_neuron_adds_up_its_weighted_inputs_and_its_bias():
    """2 * 3 + (-1) * 4 + 0.5 = 2.5"""
    score = neuron([2.0, -1.0], bias=0.5)([3.0, 4.0])
    check_score(
        score, 2.5, "a neuron with weights 2 and -1 and bias 0.5, given 3 and 4: its output", probe=which_neuron
    )


@pytest.mark.task("01.7")
def test_a_neuron_stays_silent_below_zero():
    """2 * 1 + (-1) * 4 + 0.5 = -1.5, and relu makes that 0"""
    score = neuron([2.0, -1.0], bias=0.5)([1.0, 4.0])
    check_score(
        score, 0.0, "a neuron with weights 2 and -1 and bias 0.5, given 1 and 4: its output", probe=which_neuron
    )


@pytest.mark.task("01.7")
def test_a_linear_neuron_may_go_below_zero():
    score = neuron([2.0, -1.0], bias=0.5, nonlinear=False)([1.0, 4.0])
    check_score(score, -1.5, "the same neuron with nonlinear=False, given 1 and 4: its output", probe=which_neuron)


@pytest.mark.task("01.7")
def test_a_neuron_answers_the_same_when_it_is_asked_again():
    one, inputs = neuron([2.0, -1.0], bias=0.5), [Value(3.0), Value(4.0)]
    check_twice(lambda: one(inputs).data, 2.5, "neuron(inputs)", which_neuron, neuron=one, inputs=inputs)


@pytest.mark.task("01.7")
def test_every_weight_of_a_neuron_gets_its_input_as_gradient():
    one = neuron([2.0, -1.0], bias=0.5)
    score = one([3.0, 4.0])
    score.backward()
    for i, x in enumerate([3.0, 4.0]):
        check_close(one.weights[i].grad, x, f"a neuron given 3 and 4: the gradient of weight {i + 1}", probe=cut_off)
    check_close(one.bias.grad, 1.0, "a neuron given 3 and 4: the gradient of the bias")


@pytest.mark.task("01.8")
def test_the_hinge_loss_is_zero_beyond_the_margin_and_grows_below_it():
    """1 - 2 is negative and counts 0; 1 - 0.5 = 0.5; 1 + 1 = 2: the mean is 2.5 / 3"""
    loss = hinge_loss([Value(2.0), Value(0.5), Value(-1.0)], [1, 1, 1])
    check_score(loss, 2.5 / 3, "hinge_loss of scores 2, 0.5 and -1, all with label 1,", probe=which_hinge)


@pytest.mark.task("01.8")
def test_a_label_of_minus_one_asks_for_a_negative_score():
    """1 - (-1) * 2 = 3 and 1 - (-1) * (-0.5) = 0.5: the mean is 1.75"""
    loss = hinge_loss([Value(2.0), Value(-0.5)], [-1, -1])
    check_score(loss, 1.75, "hinge_loss of scores 2 and -0.5, both with label -1,", probe=which_hinge)


@pytest.mark.task("01.8")
def test_the_l2_penalty_adds_the_squares_of_the_parameters():
    """The mean of 0.5 and 0 is 0.25; 0.1 * (3^2 + (-1)^2) = 1"""
    loss = hinge_loss([Value(0.5), Value(2.0)], [1, 1], parameters=[Value(3.0), Value(-1.0)], l2=0.1)
    what = "hinge_loss of scores 0.5 and 2, both with label 1, with parameters 3 and -1 and l2 = 0.1,"
    check_score(loss, 1.25, what, probe=which_penalty)
    loss = hinge_loss([Value(0.5), Value(2.0)], [1, 1], (Value(number) for number in (3.0, -1.0)), l2=0.1)
    look_again = first_that_tells(
        which_penalty, lambda: "From a list it is right. A generator can be gone through once."
    )
    check_score(loss, 1.25, f"{what} these from a generator,", probe=look_again)


@pytest.mark.task("01.8")
def test_the_loss_pulls_on_scores_inside_the_margin_and_on_every_parameter():
    near, far, parameter = Value(0.5), Value(2.0), Value(3.0)
    hinge_loss([near, far], [1, 1], parameters=[parameter], l2=0.1).backward()
    what = "hinge_loss of scores 0.5 and 2, both with label 1: the gradient of the score 0.5"
    check_close(near.grad, -0.5, what, probe=first_that_tells(which_hinge, not_in_the_graph))
    check_close(far.grad, 0.0, "hinge_loss of scores 0.5 and 2, both with label 1: the gradient of the score 2")
    check_close(parameter.grad, 0.6, "l2 = 0.1: the gradient of a parameter of 3", probe=not_in_the_graph)


@pytest.mark.task("01.8")
def test_the_loss_is_the_same_when_it_is_asked_for_again():
    scores, labels, parameters = [Value(0.5), Value(2.0)], [1, -1], [Value(3.0), Value(-1.0)]
    things = {"scores": scores, "labels": labels, "parameters": parameters}
    check_twice(lambda: hinge_loss(scores, labels, parameters, 0.1).data, 2.75, "hinge_loss(...)", **things)


@pytest.mark.task("01.8")
def test_a_hundred_moons_are_told_apart_by_a_network_of_three_hundred_numbers():
    """337 Values, and not one derivative written down for the network as a whole."""
    points, labels = make_moons(100, seed=0)
    model = MLP(2, [16, 16, 1], seed=3)
    history = train(model, points.tolist(), labels.tolist())
    share = accuracy(model, points.tolist(), labels.tolist())
    if not share >= 0.95:
        raise CheckFailed(
            f"after {len(history)} epochs {share:.0%} of the moons are on the right side, expected 95% or more\n"
            f"(the loss went from {history[0]:.3f} to {history[-1]:.3f})"
        )


# The harder suite: python grader.py 01 --goal


@pytest.mark.goal
@pytest.mark.task("01.1")
def test_goal_sums_match_central_differences():
    for a, b in pairs(1):
        check_derivative(lambda x, y: x + y + x, [a, b], "x + y + x", Value)


@pytest.mark.goal
@pytest.mark.task("01.2")
def test_goal_products_match_central_differences():
    for a, b in [*pairs(2), (0.0, 3.0), (-2.0, 0.0)]:
        check_derivative(lambda x, y: x * y * x, [a, b], "x * y * x", Value)


@pytest.mark.goal
@pytest.mark.task("01.3")
def test_goal_powers_match_central_differences():
    for exponent in (1, 2, 3, 5, -1, -2, 0.5, 1.5):
        for x, _ in pairs(3):
            check_derivative(lambda v, n=exponent: v**n, [abs(x) + 0.1], f"x ** {exponent}", Value)
    check_derivative(lambda v: v**2, [0.0], "x ** 2", Value)
    check_derivative(lambda v: v**3, [-1.5], "x ** 3", Value)


@pytest.mark.goal
@pytest.mark.task("01.4")
def test_goal_exp_and_tanh_match_central_differences():
    for x, y in pairs(4):
        check_derivative(lambda v, w: v.exp() * w.tanh() + v.tanh(), [x, y], "exp(x) * tanh(y) + tanh(x)", Value)


@pytest.mark.goal
@pytest.mark.task("01.4")
def test_goal_far_out_tanh_is_flat_and_exp_still_its_own_slope():
    for far in (-700.0, 700.0):
        check_rule(lambda x: x.tanh(), {"x": Value(far)}, 1.0, [0.0], of="tanh(x)")
        check_rule(lambda x: x.exp(), {"x": Value(far)}, math.exp(-far), [1.0], of="exp(x)")


@pytest.mark.goal
@pytest.mark.task("01.5")
def test_goal_relu_matches_central_differences_away_from_its_kink():
    for x, y in [*pairs(5), (1e-3, 2.0), (-1e-3, 2.0)]:
        check_derivative(lambda v, w: v.relu() * w + (v * w).relu(), [x, y], "relu(x) * y + relu(x * y)", Value)


@pytest.mark.goal
@pytest.mark.task("01.5")
def test_goal_relu_lets_everything_through_right_above_zero_and_nothing_below():
    """However small the number, and however large the gradient: neither another threshold nor a leak."""
    for tiny in (1e-300, 1e-9, 1e-4):
        check_rule(lambda x: x.relu(), {"x": Value(tiny)}, 1e300, [1e300], of="relu(x)")
        check_rule(lambda x: x.relu(), {"x": Value(-tiny)}, 1e300, [0.0], of="relu(x)")


@pytest.mark.goal
@pytest.mark.task("01.5")
def test_goal_the_slope_of_relu_at_zero_is_between_zero_and_one():
    """Textbooks differ there: 0, 1/2 and 1 are all in use."""
    x = Value(0.0)
    x.relu()._backward(1.0)
    if not 0.0 <= x.grad <= 1.0:
        raise CheckFailed(f"y = relu(x) at x = 0: x.grad is {x.grad}, expected a number from 0 to 1")


@pytest.mark.goal
@pytest.mark.task("01.6")
def test_goal_random_programs_match_central_differences():
    """Thirty random expressions of eight operations on three values, every value free to be used again."""
    for seed in range(30):
        check_derivative(
            lambda *values, s=seed: random_program(values, np.random.default_rng(s)),
            list(np.random.default_rng(100 + seed).uniform(-1.0, 1.0, 3)),
            f"random program {seed}",
            Value,
        )


@pytest.mark.goal
@pytest.mark.task("01.6")
def test_goal_a_long_chain_keeps_its_gradient(deep_recursion):
    x = Value(1.0)
    y = x
    for _ in range(2000):
        y = y + 1.0
    y.backward()
    check_grad(x, 1.0, of="x + 1 + 1 + ... (2000 times)", at="x = 1")


@pytest.mark.goal
@pytest.mark.task("01.7")
def test_goal_neurons_of_every_width_match_numpy():
    rng = np.random.default_rng(7)
    for width in (1, 2, 5, 100):
        for nonlinear in (True, False):
            weights, inputs, bias = rng.standard_normal(width), rng.standard_normal(width), float(rng.standard_normal())
            z = float(weights @ inputs) + bias
            score = neuron(weights.tolist(), bias, nonlinear)(inputs.tolist())
            check_score(score, max(z, 0.0) if nonlinear else z, f"a neuron with {width} random weights: its output")


@pytest.mark.goal
@pytest.mark.task("01.8")
def test_goal_the_hinge_loss_matches_numpy_and_central_differences():
    rng = np.random.default_rng(8)
    for size, count, l2 in ((1, 3, 0.01), (2, 0, 0.5), (7, 40, 0.01), (3, 5, 1e-7)):
        scores, labels = rng.standard_normal(size), [1 if one else -1 for one in rng.integers(0, 2, size)]
        parameters = rng.standard_normal(count)
        what = f"hinge_loss of {size} random scores with {count} parameters and l2 = {l2}"
        wanted = float(np.maximum(0.0, 1.0 - np.array(labels) * scores).mean() + l2 * (parameters**2).sum())
        check_score(hinge_loss([Value(s) for s in scores], labels, [Value(p) for p in parameters], l2), wanted, what)
        check_derivative(
            lambda *values, y=labels, n=size, l2=l2: hinge_loss(values[:n], y, values[n:], l2),
            [*scores.tolist(), *parameters.tolist()],
            what,
            Value,
        )


@pytest.fixture
def deep_recursion():
    """A walk that calls itself is right too: lend it the depth, and let the chain be longer than Python's 1,000."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(limit)


def neuron(weights: list[float], bias: float, nonlinear: bool = True) -> Neuron:
    """A neuron with weights and a bias that can be checked by hand."""
    one = Neuron(len(weights), nonlinear)
    one.weights = [Value(weight) for weight in weights]
    one.bias = Value(bias)
    return one


def check_score(score, expected: float, what: str, probe=None) -> None:
    if score is None:
        raise CheckFailed(f"{what} is None, expected a Value", "Nothing comes back: is there a return?")
    if not isinstance(score, Value):
        raise CheckFailed(f"{what} is {score!r} of type {type(score).__name__}, expected a Value")
    check_close(score.data, expected, what, probe=probe)


def pairs(seed: int) -> list[tuple[float, float]]:
    return [tuple(pair) for pair in np.random.default_rng(seed).uniform(-2.0, 2.0, (10, 2)).tolist()]


def random_program(values, rng):
    known = list(values)
    for _ in range(8):
        a, b = known[rng.integers(len(known))], known[rng.integers(len(known))]
        operation = rng.integers(6)
        known.append([a + b, a * b, a - b, (a * 0.5).tanh(), (a * 0.5).exp(), (a * a + 1.0) ** 0.5][operation])
    return sum(known[1:], known[0]).tanh()


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.

which_term = which_formula(
    lambda: arrived(lambda a, b: a + b, 4.0, 7.0),
    {
        "Each term has got its own number as slope: the slope of a sum is 1.": [4.0, 7.0],
        "Each term has got the other's number as slope, as in a product: the slope of a sum is 1.": [7.0, 4.0],
    },
)
OWN_NUMBER = "Each factor has got its own number: what belongs there is its partner's."
which_factor = first_that_tells(
    which_formula(
        lambda: arrived(lambda a, b: a * b, 4.0, 7.0),
        {
            OWN_NUMBER: [4.0, 7.0],
            "Both factors have got a sum: the rule of a product is the product with its partner.": [11.0, 11.0],
            "Both factors have got the product itself: what belongs there is the partner alone.": [28.0, 28.0],
        },
    ),
    lambda: a_gradient_as_number(),
)
which_power = first_that_tells(
    lambda: divided_by_x(),
    which_formula(
        lambda: [*arrived(lambda x: x**2, 0.3), *arrived(lambda x: x**0.5, 4.0), *arrived(lambda x: x**2, -3.0)],
        {
            "The slope was cut to a whole number: a gradient is a float.": [0.0, 0.0, -6.0],
            "The slope was rounded to a whole number: a gradient is a float.": [1.0, 0.0, -6.0],
            "The exponent was cut to a whole number. It may be 0.5, too.": [0.6, 0.5, -6.0],
            "On the left of zero the sign is lost: x goes into the slope as it is, without abs().": [0.6, 0.25, 6.0],
        },
    ),
    which_formula(
        lambda: arrived(lambda x: x**4, 3.0),
        {
            "The exponent in the slope has to be one lower: n * x ** (n - 1).": [4.0 * 3.0**4],
            "The factor n of n * x ** (n - 1) is missing.": [3.0**3],
            "This is n ** (x - 1): base and exponent have changed places.": [4.0**2],
            "The factor in front is n - 1: it is n, and only the exponent is one lower.": [3.0 * 3.0**3],
            "This is n * x ** n - 1: brackets are missing around the exponent n - 1.": [4.0 * 3.0**4 - 1.0],
            "This is n * (x ** n - 1): the brackets belong around the exponent n - 1.": [4.0 * (3.0**4 - 1.0)],
            "This is (n * x) ** (n - 1): the factor n stands outside of the power.": [12.0**3],
            "This is x ** (n + 1) / (n + 1), the way from a slope to its function: it is the other way round.": [
                243.0 / 5
            ],
        },
    ),
)
which_exp = which_formula(
    lambda: arrived(lambda x: x.exp(), 0.5),
    {
        "This is x * exp(x - 1), the rule for x ** n. Here x is the exponent: exp is its own slope.": [
            0.5 * math.exp(-0.5)
        ],
        "This is x * exp(x): the power rule does not hold here. exp is its own slope.": [0.5 * math.exp(0.5)],
        "This is the input: the slope of exp is its output, `result`.": [0.5],
        "The exp was taken twice: `result` is exp(x) already.": [math.exp(math.exp(0.5))],
    },
)
which_tanh = which_formula(
    lambda: arrived(lambda x: x.tanh(), 0.8, upstream=10.0),
    {
        "This is 1 - x ** 2. The rule is about the output: 1 - tanh(x) ** 2.": [10.0 * (1.0 - 0.8**2)],
        "The tanh was taken twice: `result` is tanh(x) already.": [10.0 * (1.0 - math.tanh(math.tanh(0.8)) ** 2)],
        "The square is missing: 1 - tanh(x) ** 2.": [10.0 * (1.0 - math.tanh(0.8))],
        "This is (1 - tanh(x)) ** 2: only tanh is squared, 1 - tanh(x) ** 2.": [10.0 * (1.0 - math.tanh(0.8)) ** 2],
        "This is tanh itself: its slope is 1 - tanh(x) ** 2.": [10.0 * math.tanh(0.8)],
        "Only the square is multiplied by `upstream`, and not the 1: brackets are missing around the slope.": [
            1.0 - 10.0 * math.tanh(0.8) ** 2
        ],
        "Only the 1 is multiplied by `upstream`, and not the square: brackets are missing around the slope.": [
            10.0 - math.tanh(0.8) ** 2
        ],
        "This is 1 + tanh(x) ** 2: the sign of the square is wrong.": [10.0 * (1.0 + math.tanh(0.8) ** 2)],
        "This is tanh(x) ** 2 - 1: the sign is wrong, 1 - tanh(x) ** 2.": [10.0 * (math.tanh(0.8) ** 2 - 1.0)],
        "This is tanh(x) * (1 - tanh(x)), the form of another function's slope: 1 - tanh(x) ** 2.": [
            10.0 * math.tanh(0.8) * (1.0 - math.tanh(0.8))
        ],
        "This is 2 * tanh(x), the slope of a square: 1 - tanh(x) ** 2.": [20.0 * math.tanh(0.8)],
    },
)
which_side = which_formula(
    lambda: [
        *arrived(lambda x: x.relu(), 3.0),
        *arrived(lambda x: x.relu(), -3.0),
        *arrived(lambda x: x.relu(), 3.0, upstream=-1.0),
    ],
    {
        "It lets through what it should hold back, and the other way round.": [0.0, 1.0, 0.0],
        "It lets everything through: negative inputs have slope 0.": [1.0, 1.0, -1.0],
        "It holds everything back: positive inputs have slope 1.": [0.0, 0.0, 0.0],
        "This is the input: the slope of relu is 1 or 0.": [3.0, 0.0, -3.0],
        "It looks at the sign of what arrives: what counts is the sign of the input.": [1.0, 1.0, 0.0],
        "Below zero it comes back with its sign turned: there relu is flat, and nothing goes on.": [1.0, -1.0, -1.0],
        "Below zero a hundredth comes through: relu is flat there, and nothing goes on.": [1.0, 0.01, -1.0],
    },
)
which_neuron = first_that_tells(
    which_formula(
        lambda: [neuron([4.0, -1.0], bias)([2.0, 4.0]).data for bias in (10.0, -30.0)],
        {
            "Every term has gone through relu: it is for the whole sum, once.": [18.0, -22.0],
            "Weight and input are added: each input is multiplied by its weight.": [19.0, 0.0],
            "It is divided by the number of inputs: the sum is not a mean.": [7.0, 0.0],
            "The sum of the weights is multiplied by that of the inputs: each weight goes with its own.": [28.0, 0.0],
        },
    ),
    which_formula(
        lambda: [
            neuron([3.0, 1.0], 10.0)([2.0, 4.0]).data,
            neuron([3.0, 1.0], -30.0)([2.0, 4.0]).data,
            neuron([3.0, 1.0], -30.0, nonlinear=False)([2.0, 4.0]).data,
        ],
        {
            "The bias is missing.": [10.0, 10.0, 10.0],
            "The bias is subtracted and not added.": [0.0, 40.0, 40.0],
            "The bias is added once for each input: once is enough.": [30.0, 0.0, -50.0],
            "Only the last input counts: the sum starts anew with each of them.": [14.0, 0.0, -26.0],
            "Only the last input counts, without the bias: each turn of the loop replaces the sum.": [4.0, 4.0, 4.0],
            "This is tanh: a neuron here ends in relu.": [math.tanh(20.0), math.tanh(-20.0), -20.0],
            "Only the first input counts: does the return stand inside the loop?": [16.0, 0.0, -24.0],
            "Always through relu: with nonlinear=False the sum is the answer.": [20.0, 0.0, 0.0],
            "Never through relu: it belongs there unless nonlinear is False.": [20.0, -20.0, -20.0],
            "The relu is there where it should not be, and the other way round.": [20.0, -20.0, 0.0],
        },
    ),
)
HINGE = ([3.0, 0.5, -2.0, 0.2], [1, 1, -1, -1])  # its terms 1 - y * s are -2, 0.5, -1 and 1.2
PAIR = ([3.0, -4.0], [1, 1])  # and here -2 and 5
which_hinge = which_formula(
    lambda: [hinge_loss([Value(score) for score in scores], labels).data for scores, labels in (HINGE, PAIR)],
    {
        "The sum is right, but it has to be divided by the number of examples: the mean was forgotten.": [1.7, 5.0],
        "This is relu(1 + y * s): the sign in front of y * s is wrong.": [(4.0 + 1.5 + 3.0 + 0.8) / 4, 4.0 / 2],
        "This is relu(-y * s): the margin of 1 is missing.": [0.2 / 4, 4.0 / 2],
        "This is 1 - y * s without the relu: what is negative has to count 0.": [(-2.0 + 0.5 - 1.0 + 1.2) / 4, 1.5],
        "This is relu((1 - y) * s): the 1 stands for itself, and y belongs to s.": [0.4 / 4, 0.0],
        "The label is not used: this is relu(1 - s).": [(0.5 + 3.0 + 0.8) / 4, 5.0 / 2],
        "The relu is around the whole: each example goes through a relu of its own, before the sum.": [0.0, 1.5],
        "This is 1 - relu(y * s): the 1 belongs inside of the relu.": [(-2.0 + 0.5 - 1.0 + 1.0) / 4, -1.0 / 2],
        "This is 1 - y * relu(s): all of 1 - y * s belongs inside of the relu.": [(-2.0 + 0.5 + 1.0 + 1.2) / 4, -0.5],
        "The terms are squared: only the parameters are.": [(0.25 + 1.44) / 4, 25.0 / 2],
    },
)
which_penalty = which_formula(
    lambda: hinge_loss([Value(5.0)] * 4, [1] * 4, [Value(2.0), Value(-5.0), Value(0.0)], l2=0.3).data,
    {
        "The penalty is missing.": 0.0,
        "The penalty is not multiplied by l2.": 29.0,
        "The penalty is divided by the number of examples: only the mean of the hinge losses is.": 8.7 / 4,
        "The penalty is divided by the number of parameters: it is a sum, not a mean.": 8.7 / 3,
        "The penalty is halved: it is l2 times the sum of the squares.": 8.7 / 2,
        "The penalty is subtracted and not added.": -8.7,
        "The parameters are not squared.": -0.9,
        "The sum is squared: each parameter is squared by itself, and then they are summed.": 0.3 * 9.0,
        "l2 is squared too: it stands in front of the sum of the squares.": 0.09 * 29.0,
        "These are the sizes of the parameters, without their signs: here they are squared.": 0.3 * 7.0,
    },
)


def arrived(operation, *numbers: float, upstream: float = 1.0) -> list[float]:
    """What arrives at the inputs of an operation."""
    values = [Value(number) for number in numbers]
    operation(*values)._backward(upstream)
    return [value.grad for value in values]


def divided_by_x():
    """Is it right everywhere but at 0?"""
    if not np.allclose(arrived(lambda x: x**3, 2.0), [12.0]):
        return None
    try:
        arrived(lambda x: x**2, 0.0)
    except ZeroDivisionError:
        return "x may be 0, and nothing has to be divided by it: x ** (n - 1) is computed from x."
    return None


def a_gradient_as_number():
    """Are gradients that were there before handed on in place of numbers?"""
    a, b = Value(4.0), Value(7.0)
    product = a * b
    a.grad, b.grad = 1000.0, 200.0
    product._backward(1.0)
    plain = arrived(lambda a, b: a * b, 4.0, 7.0)
    if not np.allclose(plain, [7.0, 4.0]) and not np.allclose([a.grad - 1000.0, b.grad - 200.0], plain):
        return "What is multiplied in is a .grad: the local slope is the partner's number, .data."
    return None


def not_in_the_graph():
    """The loss is right, and nothing arrives at what it was computed from."""
    score, parameter = Value(0.25), Value(3.0)
    loss = hinge_loss([score], [1], [parameter], l2=0.1)
    loss.backward()
    lost = [name for name, value in (("score", score), ("parameter", parameter)) if value.grad == 0.0]
    if math.isclose(loss.data, 1.65) and lost:
        return f"The loss is right, but no way leads back from it to the {lost[0]}: is there a .data too many?"
    return None


def same_number():
    """Other factors, so that no two products are the same number."""
    x, z = Value(3.0), Value(7.0)
    (x * 2.0 + z * 3.0).backward()
    if (x.grad, z.grad) == (2.0, 3.0):
        return "Two Values that hold the same number are taken for one: `seen` is for the Values, not for their .data."
    return None


def cut_off():
    """The output is right and the engine works, but nothing arrives at the weights."""
    one = neuron([2.0, -1.0], bias=0.5)
    score = one([3.0, 4.0])
    score.backward()
    weight = Value(2.0)
    (weight * 3.0).backward()
    if score.data == 2.5 and weight.grad == 3.0 and one.weights[0].grad == 0.0:
        return "The output is right, but no way leads back from it to the weight: is there a .data too many?"
    return None
