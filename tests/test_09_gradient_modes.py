"""The checks of chapter 09: python grader.py 09"""

import gc
import sys
import threading
import time
import tracemalloc
import weakref
from contextlib import suppress

import numpy as np
import pytest

from meintorch import activations, matmul, shapes
from meintorch.grad_mode import detach, enable_grad, no_grad, retain_grad
from meintorch.tensor import Tensor, as_tensor, mode
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    check_grad,
    check_gradient,
    check_random_programs,
    check_walk,
    explained,
    first_that_tells,
    nothing_else_changes,
    random_program,
)

LIMIT = sys.getrecursionlimit()


@pytest.fixture(autouse=True)
def recording():
    """Every check begins, and ends, with the mode that Python starts with."""
    type(mode).recording = mode.recording = True
    yield
    type(mode).recording = mode.recording = True
    tracemalloc.stop()


@pytest.fixture(autouse=True)
def earlier_form(request):
    """A task that goes back to an earlier one is to do as long as the code there has the form it had so far."""
    task = request.node.get_closest_marker("task").args[0]
    has_earlier_form = {"09.6": works_for_constants, "09.7": recurses, "09.8": lets_nothing_go}.get(task)
    if has_earlier_form and has_earlier_form():
        raise NotImplementedError(f"TODO {task}")


@pytest.mark.task("09.7", revisits="02.3")
def test_a_chain_of_a_hundred_thousand_operations_finds_its_way_back():
    """A thousand nested calls is where Python stops. A loop has no such end."""
    for depth in (250, 1_000):  # the shorter one first: where each look-up takes long, it says enough
        short, long = seconds_of_a_walk(depth), seconds_of_a_walk(4 * depth)
        if long > 8.0 * short and long > 0.05:
            message = f"a chain of {4 * depth:,} operations takes {long / short:.0f} times as long as one of {depth:,}"
            raise CheckFailed(
                f"{message}, expected about 4",
                "For every tensor, all those before it are gone through once more: `in` does that with a list, where "
                "a set finds a tensor at once, and so does a copy of a list.",
            )
    x, step = Tensor(1.0), Tensor(2.0)
    y = x
    for _ in range(100_000):
        y = y + step
    y.backward()
    if sys.getrecursionlimit() != LIMIT:
        sys.setrecursionlimit(LIMIT)
        message = f"backward() has set Python's limit of nested calls, which was {LIMIT}"
        raise CheckFailed(message, "Other code relies on it. A stack of your own and a `while` loop need no limit.")
    at = "x = 1, step = 2, 100,000 steps"
    check_grad(x, 1.0, of="x + step + step + ...", at=at, probe=which_walk)
    check_grad(step, 100_000.0, of="x + step + step + ...", at=at, name="step", probe=which_walk)


@pytest.mark.task("09.1")
def test_no_grad_stops_the_recording():
    """The number is the same. What is gone is the way back."""
    x = Tensor([2.0, 3.0])
    no_grad().__enter__()
    y = x * x
    mode.recording = True
    check_close(y.data, np.array([4.0, 9.0]), "x * x at x = [2, 3], after no_grad().__enter__()")
    check_unrecorded(y, "after no_grad().__enter__(), y = x * x", which_switch)


@pytest.mark.task("09.1")
def test_enable_grad_inside_of_no_grad_records_again():
    check_modes(entered(no_grad, enable_grad), [False, True], "after entering no_grad, then enable_grad", which_switch)


@pytest.mark.task("09.1")
def test_no_grad_inside_of_no_grad_stays_off():
    check_modes(entered(no_grad, no_grad), [False, False], "after entering no_grad, then no_grad", which_switch)
    check_modes(entered(enable_grad), [True], "after entering enable_grad", which_switch)


@pytest.mark.task("09.1")
def test_what_was_before_is_remembered():
    off, on = no_grad(), enable_grad()
    off.__enter__()
    on.__enter__()
    mode.recording = True
    check_remembered(off, [True], "after no_grad was entered while recording")
    check_remembered(on, [False], "after enable_grad was entered inside of no_grad")


@pytest.mark.task("09.1")
def test_an_object_that_is_entered_twice_remembers_both_times():
    off = no_grad()
    off.__enter__()
    off.__enter__()
    mode.recording = True
    check_remembered(off, [True, False], "after one no_grad() was entered while recording, and once more")


@pytest.mark.task("09.1")
def test_another_thread_goes_on_recording():
    no_grad().__enter__()
    here = mode.recording
    there = in_a_thread(lambda: mode.recording)
    mode.recording = True
    check_modes([here, there], [False, True], "no_grad was entered here; here, and in another thread", which_switch)


@pytest.mark.task("09.2")
def test_memory_stays_flat_over_a_thousand_forward_passes():
    """A state that is carried on holds every pass before it, if there is a graph. Without one it is 128 bytes."""
    w = Tensor(0.1 * np.eye(16))

    def passes(number, state):
        for _ in range(number):
            state = (state @ w + 1.0).relu()
        return state

    with no_grad():
        state = passes(10, as_tensor(np.ones((1, 16))))
        tracemalloc.start()
        state = passes(1_000, state)
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    check_close(state.data, np.full((1, 16), 10.0 / 9.0), "the state after 1,010 passes of s = relu(s @ w + 1)")
    if grown > 50_000:
        raise CheckFailed(
            f"1,000 forward passes under no_grad leave {grown / 1000:,.0f} kB behind, expected next to nothing",
            ask(which_exit),
        )
    check_modes([mode.recording], [True], "after the block", which_exit)


@pytest.mark.task("09.2")
def test_after_the_block_the_graph_is_recorded_again():
    x = Tensor([2.0])
    with no_grad():
        inside = x * x
    after = x * x
    check_unrecorded(inside, "inside of the block, y = x * x", which_exit)
    if not after.requires_grad or not after._children:
        raise CheckFailed("after the block, y = x * x still has no graph", ask(which_exit))


@pytest.mark.task("09.2")
def test_nested_blocks_come_back_one_by_one():
    for modes, wanted in (
        ((no_grad, enable_grad, no_grad), [False, True, False, True, False, True]),
        ((no_grad, no_grad), [False, False, False, True]),
        ((enable_grad, enable_grad), [True, True, True, True]),
    ):
        names = ", ".join(one.__name__ for one in modes)
        check_modes(nested(*[one() for one in modes]), wanted, f"into the blocks {names} and out again", which_exit)


@pytest.mark.task("09.2")
def test_an_exception_switches_back_too_and_goes_on():
    caught = after = None
    try:
        with no_grad():
            raise KeyError("a slip in the block")
    except KeyError as error:
        caught = error
    after = mode.recording
    if caught is None:
        raise CheckFailed(
            "an exception was raised inside of the block, and nothing of it is to be seen outside",
            "__exit__ returned something true. That tells Python that the exception is dealt with: return nothing.",
        )
    if not after:
        raise CheckFailed("an exception has ended the block, and the graph is still not recorded", ask(which_exit))


@pytest.mark.task("09.2")
def test_one_object_may_be_entered_again_before_it_is_left():
    off = no_grad()
    wanted = [False, False, False, True]
    found = explained(lambda: nested(off, off), which_exit)
    check_modes(found, wanted, "into a block of off = no_grad(), again into one, and out", which_exit)


@pytest.mark.task("09.3")
def test_a_decorated_function_runs_in_the_mode_each_time_it_is_called():
    seen = []

    @no_grad()
    def look():
        seen.append(mode.recording)

    check_decorated(look, seen)
    at_rest = mode.recording
    look()
    between = mode.recording
    look()
    what = "a function decorated with @no_grad(): before, in, after the first call, in the second, and after it"
    found = [at_rest, *seen[:1], between, *seen[1:], mode.recording]
    check_modes(found, [True, False, True, False, True], what, which_call)


@pytest.mark.task("09.3")
def test_enable_grad_is_a_decorator_too():
    seen = []

    @enable_grad()
    def look():
        seen.append(mode.recording)

    check_decorated(look, seen)
    mode.recording = False
    look()
    after = mode.recording
    mode.recording = True
    check_modes([*seen, after], [True, False], "while off: in a call of @enable_grad(), and after it", which_call)


@pytest.mark.task("09.3")
def test_a_decorated_function_that_fails_switches_back_too():
    what = "after a call of a function, decorated with @no_grad(), that ends in an exception"
    check_modes([mode_after_a_slip()], [True], what, which_call)


@pytest.mark.task("09.3")
def test_arguments_go_in_and_the_result_comes_out():
    @no_grad()
    def weighed(x, weight, bias=0.0):
        return x * weight + bias

    check_decorated(weighed, [])
    x = Tensor([3.0])
    try:
        y = weighed(x, 2.0, bias=5.0)
    except TypeError as error:
        error.diagnosis = ask(which_call) or (
            "Any arguments have to go in: *args and **kwargs, in the inner function's head and in the call."
        )
        raise
    if y is None:
        raise CheckFailed("a decorated function returns None", "Nothing comes back: is there a return before the call?")
    check_close(y.data, np.array([11.0]), "x * weight + bias at x = 3, weight = 2, bias = 5, decorated with @no_grad()")
    check_unrecorded(y, "the result of a function decorated with @no_grad()", which_call)


@pytest.mark.task("09.3")
def test_a_decorated_function_keeps_its_name():
    @no_grad()
    def predict(x):
        """The class with the highest score."""

    check_decorated(predict, [])
    for part, wanted in (("__name__", "predict"), ("__doc__", "The class with the highest score.")):
        found = getattr(predict, part, None)
        if found != wanted:
            why = "functools.wraps(function) above the inner function hands name and docstring on."
            raise CheckFailed(
                f"a function predict, decorated: its {part} is {repr(found)[:60]}, expected {wanted!r}", why
            )


@pytest.mark.task("09.3")
def test_two_threads_may_be_in_the_same_function():
    """One of them is in a no_grad block of its own. Each comes back to where it was."""
    what = "two threads call the same function, one with recording off and one with it on; afterwards"
    check_modes(overlapping_calls(), [False, True], what, which_call)


@pytest.mark.task("09.4")
def test_a_detached_tensor_has_the_numbers_and_nothing_of_the_past():
    x = Tensor([2.0, 3.0])
    y = x * x
    z = detached(y)
    check_close(z.data, np.array([4.0, 9.0]), "(x * x).detach() at x = [2, 3]")
    check_unrecorded(z, "(x * x).detach()", which_detached)


@pytest.mark.task("09.4")
def test_no_gradient_goes_through_a_detached_tensor():
    """Of x * x one factor counts as a plain number, so the slope at 3 is 3 and not 6."""
    x = Tensor([3.0])
    y = x * detached(x)
    y._backward(np.array([1.0]))
    check_grad(x, np.array([3.0]), of="x * x.detach()", at="x = [3]", probe=which_detached)


@pytest.mark.task("09.4")
def test_detaching_leaves_the_tensor_itself_as_it_is():
    x = Tensor([2.0])
    y = x * x
    y.grad, y.retains_grad = np.array([5.0]), True
    z = detached(y)
    check_close(y.grad, np.array([5.0]), "y.grad is 5, and after y.detach()")
    new = "A detached tensor is a new one: no gradient has arrived at it."
    check_close(z.grad, np.array([0.0]), "y.grad is 5: y.detach().grad", probe=lambda: None if z is y else new)
    if z is y or not y.requires_grad or not y._children or not y.retains_grad:
        what = "is y itself" if z is y else "has cut y itself off from its past"
        raise CheckFailed(f"y = x * x: y.detach() {what}", "Others still compute with y. Make a new tensor.")


@pytest.mark.task("09.4")
def test_a_detached_tensor_shares_its_memory():
    x = Tensor(np.float32([2.0, 3.0]))
    z = detached(x)
    check_close(z.data, np.float32([2.0, 3.0]), "x.detach() at x = [2, 3] in float32")
    if not np.shares_memory(z.data, x.data):
        raise CheckFailed("x.detach().data is another array than x.data", "Nothing has to be copied: share x.data.")


@pytest.mark.task("09.4")
def test_the_past_of_a_detached_tensor_may_go():
    x = Tensor([2.0])
    y = x * x
    watch = weakref.ref(y)
    z = detached(y)
    del y
    if watch() is not None:
        raise CheckFailed(
            "z = y.detach(), and y stays in memory though only z is kept",
            "Something in z leads back to y. A new tensor needs y's array and nothing else.",
        )
    check_close(z.data, np.array([4.0]), "(x * x).detach() at x = [2]")


@pytest.mark.task("09.5")
def test_retain_grad_marks_a_tensor_and_hands_it_on():
    hidden = Tensor([1.0]) * 3.0
    retained = retain_grad(hidden)
    if retained is not hidden:
        what = "another tensor" if isinstance(retained, Tensor) else f"something of type {type(retained).__name__}"
        why = "Nothing comes back: is there a return?" if retained is None else "It returns the tensor it was given."
        raise CheckFailed(f"retain_grad(hidden) gives {what}, expected hidden itself", why)
    if hidden.retains_grad is not True:
        raise CheckFailed(
            f"after retain_grad(hidden), hidden.retains_grad is {hidden.retains_grad!r}, expected True",
            "hidden.retains_grad is what backward() will look at." if hidden.retains_grad is False else None,
        )


@pytest.mark.task("09.5")
def test_the_gradient_of_a_retained_tensor_is_there_to_look_at():
    """hidden goes into the result with the factor 2."""
    x = Tensor([1.0])
    hidden = (x * 3.0).retain_grad()
    if hidden is None:
        raise CheckFailed("hidden = (x * 3).retain_grad() is None, expected the tensor x * 3", "Is there a return?")
    (hidden * 2.0).backward()
    check_grad(x, np.array([6.0]), of="hidden * 2 with hidden = (x * 3).retain_grad()", at="x = [1]")
    check_grad(hidden, np.array([2.0]), of="hidden * 2", at="hidden = (x * 3).retain_grad()", name="hidden")


@pytest.mark.task("09.5")
def test_retain_grad_changes_nothing_else():
    x = Tensor([2.0])
    hidden = x * x
    before = (hidden.requires_grad, hidden._children, hidden._backward)
    retain_grad(retain_grad(hidden))
    if hidden.retains_grad is not True:
        message = f"after retain_grad(hidden) twice, hidden.retains_grad is {hidden.retains_grad!r}, expected True"
        cause = "Once more makes no difference: set it to True, whatever it was."
        raise CheckFailed(message, cause if hidden.retains_grad is False else None)
    if (hidden.requires_grad, hidden._children, hidden._backward) != before:
        raise CheckFailed("retain_grad(x * x) has changed the way back from x * x", "Only the mark is to be set.")
    check_close(hidden.data, np.array([4.0]), "after retain_grad, the data of x * x at x = [2]")
    check_close(hidden.grad, np.array([0.0]), "after retain_grad, and before any backward(), the grad of x * x")


@pytest.mark.task("09.6", revisits="02.4")
def test_a_constant_gets_no_gradient_and_its_partner_does():
    upstream = np.array([[1.0], [10.0]])
    for constant in "ab":
        a, b = table(constant == "a"), column(constant == "b")
        (a @ b)._backward(upstream)
        wanted_a, wanted_b = [[5.0, 6.0], [50.0, 60.0]], [[31.0], [42.0]]
        at = f"a of shape (2, 2), b of shape (2, 1), {constant} a constant"
        check_grad(a, np.array(wanted_a) * (constant == "b"), of="a @ b", at=at, name="a", probe=which_condition)
        check_grad(b, np.array(wanted_b) * (constant == "a"), of="a @ b", at=at, name="b", probe=which_condition)


@pytest.mark.task("09.6", revisits="02.4")
def test_the_first_layer_makes_two_products_and_not_three():
    """One forward, one for the weights. Nobody wants to know how the images should change."""
    for constant in "ab":
        a, b = table(constant == "a"), column(constant == "b")
        products = []
        a.data, b.data = counting(a.data, products), counting(b.data, products)
        (a @ b)._backward(np.array([[1.0], [10.0]]))
        if len(products) > 2:
            raise CheckFailed(
                f"a @ b, {constant} a constant: it takes {len(products)} matrix products in all, expected 2",
                "The product for the constant is computed and thrown away. The condition belongs in front of it.",
            )


@pytest.mark.task("09.6", revisits="02.4")
def test_two_tensors_that_need_a_gradient_both_get_it():
    a, b, upstream = table(False), column(False), np.array([[1.0], [10.0]])
    y = a @ b
    for times in (1.0, 2.0):  # what arrives a second time is added
        with nothing_else_changes("the rule", a=a, b=b, y=y, upstream=upstream):
            y._backward(upstream)
        at = f"a of shape (2, 2), b of shape (2, 1), upstream [[1], [10]], rule called {times:.0f} times"
        wanted_a, wanted_b = np.array([[5.0, 6.0], [50.0, 60.0]]), np.array([[31.0], [42.0]])
        for name, x, wanted in (("a", a, wanted_a), ("b", b, wanted_b)):
            once = times == 2.0 and np.array_equal(x.grad, wanted)
            look = first_that_tells((lambda: OVERWRITTEN) if once else None, which_condition)
            check_grad(x, times * wanted, of="a @ b", at=at, name=name, probe=look)


@pytest.mark.task("09.7", revisits="02.3")
def test_in_a_deep_graph_everyone_still_waits_for_those_who_used_it():
    """y = a * (a + 1) with a = 2 * x, at the end of a chain: the slope at 3 is 8 * 3 + 2 = 26."""
    zero = as_tensor(0.0)
    for of, end in {"a * (a + 1)": lambda a: a * (a + 1.0), "(a + 1) * a": lambda a: (a + 1.0) * a}.items():
        x = y = Tensor(3.0)
        for _ in range(3_000):
            y = y + zero
        end(y * 2.0).backward()
        check_grad(x, 26.0, of=f"{of} with a = 2 * x", at="x = 3, 3,000 steps deep", probe=which_walk)


@pytest.mark.task("09.7", revisits="02.3")
def test_in_a_deep_graph_no_tensor_has_its_turn_twice():
    """Each step adds two halves. From the result 2 ** 2000 paths lead to x, and every tensor is visited once."""
    half = as_tensor(0.5)
    x = y = Tensor(1.0)
    for _ in range(2_000):
        a = y * half
        y = a + a
    y.backward()
    check_grad(x, 1.0, of="a + a with a = y / 2, 2,000 times", at="x = 1", probe=which_walk)


@pytest.mark.task("09.7", revisits="02.3")
def test_in_a_deep_graph_the_seed_is_still_what_was_given_and_is_added():
    one = as_tensor(1.0)
    x = y = Tensor(1.0)
    for _ in range(2_000):
        y = y + one
    y.backward(5.0)
    look = first_that_tells(which_seed, which_walk)
    check_grad(x, 5.0, of="x + 1 + 1 + ...", at="x = 1, 2,000 steps, y.backward(5.0)", probe=look)
    x.backward(2.0)
    check_grad(x, 7.0, of="x", at="x.grad = 5, after x.backward(2.0)", probe=look)
    x, seed = Tensor([1.0, 1.0]), np.array([2.0, 3.0])
    with nothing_else_changes("backward(seed)", seed=seed):
        x.backward(seed)
        x.backward(seed)
        x.grad += np.array([1.0, 1.0])
    at = "x = [1, 1], after x.backward([2, 3]) twice, and x.grad += [1, 1]"
    check_grad(x, np.array([5.0, 7.0]), of="x", at=at, probe=look)


@pytest.mark.task("09.8", revisits="02.3")
def test_the_leaf_of_three_graphs_reads_four_eight_and_four():
    """Every x * x is a graph of its own, and it goes. The gradient of the leaf stays, until zero_grad()."""
    x = Tensor([2.0])
    found = []
    for step in range(3):
        if step == 2:
            x.zero_grad()
        walk(x * x)
        found.append(float(x.grad[0]))
    if found != [4.0, 8.0, 4.0]:
        what = f"x * x at x = 2, three times: x.grad reads {found}, expected [4.0, 8.0, 4.0]"
        raise CheckFailed(what, ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_only_leaves_keep_their_gradients():
    x = Tensor([3.0])
    y = x * x
    z = y + y
    walk(z)
    check_grad(x, np.array([12.0]), of="x * x, z = y + y", at="x = [3], after z.backward()", probe=which_release)
    for name, inner in (("y", y), ("z", z)):
        if inner.grad.any():
            raise CheckFailed(
                f"y = x * x, z = y + y at x = 3: after z.backward(), {name}.grad is still {inner.grad}, expected [0.]",
                ask(which_release),
            )


@pytest.mark.task("09.8", revisits="02.3")
def test_the_tensors_inside_hold_on_to_nothing_any_more():
    x = Tensor([3.0])
    y = x * x
    z = y * y
    watch = weakref.ref(y)
    del y
    walk(z)
    if z._children:
        raise CheckFailed("y = x * x, z = y * y: after z.backward(), z still has its children", ask(which_release))
    if watch() is not None:
        raise CheckFailed("y = x * x, z = y * y: after z.backward(), z still keeps y in memory", ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_a_retained_tensor_keeps_its_gradient_and_lets_go_of_the_rest():
    x = Tensor([1.0])
    hidden = x * 3.0
    other = hidden * 2.0
    hidden.retains_grad = True
    walk(other * 5.0)
    check_grad(x, np.array([30.0]), of="hidden * 2 * 5 with hidden = x * 3", at="x = [1]", probe=which_release)
    at = "x = [1], hidden.retains_grad True"
    check_grad(hidden, np.array([10.0]), of="hidden * 2 * 5", at=at, name="hidden", probe=which_release)
    if hidden.retains_grad is not True:
        cause = "The mark is there for whoever looks at the gradient: it stays."
        raise CheckFailed("after backward(), hidden.retains_grad is False, and was True before", cause)
    if other.grad.any() or hidden._children:
        what = "(hidden * 2).grad is still there" if other.grad.any() else "hidden still has its children"
        raise CheckFailed(f"y = hidden * 2 * 5 at {at}: {what}", ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_a_retained_tensor_in_a_kept_graph_hands_on_each_walk_once():
    """x.grad grows by 6 with each walk, whether the tensor inside is retained or the result or both."""
    for marked in ("hidden", "z", "hidden and z"):
        x = Tensor([1.0])
        hidden = x * 3.0
        z = hidden * 2.0
        hidden.retains_grad, z.retains_grad = "hidden" in marked, "z" in marked
        found = []
        for keep in (True, True, False):
            walk(z, keep_graph=keep)
            found.append(float(x.grad[0]))
        what = f"z = hidden * 2 with hidden = x * 3, {marked} retained, walked three times and kept twice:"
        if found != [6.0, 12.0, 18.0]:
            raise CheckFailed(f"{what} x.grad reads {found}, expected [6.0, 12.0, 18.0]", ask(which_release))
        for name, one, wanted in (("hidden", hidden, 2.0), ("z", z, 1.0)):
            if one.retains_grad:
                check_close(one.grad, np.array([wanted]), f"{what}\n{name}.grad of the last walk", probe=which_release)


@pytest.mark.task("09.8", revisits="02.3")
def test_two_results_may_share_a_part_that_is_kept():
    """a = x * x is in both: 3 * a brings 3 * 2 * x, and 5 * a then 5 * 2 * x on top, at x = 1."""
    x = Tensor([1.0])
    a = x * x
    found = []
    for result, keep in ((a * 3.0, True), (a * 5.0, False)):
        walk(result, keep_graph=keep)
        found.append(float(x.grad[0]))
    if found != [6.0, 16.0]:
        what = f"a = x * x, 3 * a walked and kept, then 5 * a: x.grad reads {found}, expected [6.0, 16.0]"
        raise CheckFailed(what, ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_a_second_walk_through_a_kept_graph_adds_exactly_once_more():
    x = Tensor([3.0])
    y = x * x
    z = y * 2.0
    found = []
    for keep in (True, True, False):
        walk(z, keep_graph=keep)
        found.append(float(x.grad[0]))
    if found != [12.0, 24.0, 36.0]:
        what = f"z = 2 * x * x at x = 3, walked three times, kept twice: x.grad reads {found}"
        raise CheckFailed(f"{what}, expected [12.0, 24.0, 36.0]", ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_a_graph_that_is_kept_is_there_to_look_at():
    x = Tensor([3.0])
    y = x * x
    z = y * 2.0
    walk(z, keep_graph=True)
    check_grad(y, np.array([2.0]), of="y * 2, kept,", at="y = x * x, x = [3]", name="y", probe=which_release)
    if not z._children or not y._children:
        raise CheckFailed("after z.backward(keep_graph=True), the graph is gone", ask(which_release))


@pytest.mark.task("09.8", revisits="02.3")
def test_a_second_walk_through_a_graph_that_is_gone_says_so():
    x = Tensor([3.0])
    z = x * x
    walk(z)
    said = None
    try:
        explained(z.backward, which_release)
    except RuntimeError as error:
        said = str(error)
    if said is None or "keep_graph" not in said:
        raise CheckFailed(
            f"z = x * x, z.backward() twice: the second walk {'says: ' + said if said else 'raises nothing'}",
            ask(which_release) or "The given rule _let_go says it: put it in the place of the tensor's own rule.",
        )


@pytest.mark.task("09.8", revisits="02.3")
def test_the_graph_goes_while_it_is_walked_and_not_afterwards():
    """When the turn comes to the last of fifty, the others are gone, and their arrays serve the next step."""
    x = y = Tensor([1.0])
    watch, alive = [], []
    for _ in range(50):
        y = y * 1.0
        watch.append(weakref.ref(y))
    first, rule = watch[0](), watch[0]()._backward

    def count_and_hand_on(upstream):
        alive.append(sum(one() is not None for one in watch[1:-1]))  # the result itself is held from outside
        rule(upstream)

    first._backward = count_and_hand_on
    del first
    walk(y)
    check_grad(x, np.array([1.0]), of="x * 1 * 1 * ... (50 times)", at="x = [1]", probe=which_release)
    if alive[0] > 3:
        raise CheckFailed(
            f"in a chain of 50 tensors, when backward() comes to the first, {alive[0]} of the 48 inside are in memory",
            ask(which_release)
            or "Something still holds all of them: the list of the order, if it is only gone through and not emptied, "
            "or the set of those that were seen.",
        )


# The harder suite: python grader.py 09 --goal

TESTED = {
    "x + y": lambda x, y: x + y,
    "x - 2 * y / 3": lambda x, y: x - 2.0 * y / 3.0,
    "x ** y": lambda x, y: x**y,
    "x @ y": lambda x, y: matmul.matmul(x, y.T),
    "x @ y, stacks": lambda x, y: matmul.matmul(x.reshape(1, 2, 3), y.reshape(1, 3, 2)),
    "sum": lambda x, y: shapes.sum(x, 0),
    "mean": lambda x, y: shapes.mean(x, 1),
    "exp": lambda x, y: activations.exp(x),
    "log": lambda x, y: activations.log(x),
    "tanh": lambda x, y: activations.tanh(x),
    "relu": lambda x, y: activations.relu(x),
    "max": lambda x, y: activations.max(x, 1),
    "min": lambda x, y: activations.min(x, 1),
    "sigmoid": lambda x, y: activations.sigmoid(x),
    "sqrt": lambda x, y: activations.sqrt(x),
    "clip": lambda x, y: activations.clip(x, 0.5, 1.5),
    "abs": lambda x, y: activations.abs(x),
}


@pytest.mark.goal
@pytest.mark.task("09.1")
def test_goal_no_operation_of_the_package_records_anything():
    rng = np.random.default_rng(0)
    for name, operation in TESTED.items():
        x, y = (Tensor(rng.uniform(0.5, 1.5, (2, 3))) for _ in range(2))
        recorded = operation(x, y)
        no_grad().__enter__()
        bare = operation(x, y)
        mode.recording = True
        check_close(bare.data, recorded.data, f"{name} under no_grad")
        check_unrecorded(bare, f"{name} under no_grad", which_switch)


@pytest.mark.goal
@pytest.mark.task("09.2")
def test_goal_any_nesting_of_blocks_and_exceptions_comes_back():
    rng = np.random.default_rng(1)
    for _ in range(200):
        one, other = no_grad(), enable_grad()
        blocks = [(one, other, no_grad(), enable_grad())[i] for i in rng.integers(4, size=rng.integers(1, 8))]
        fails_at = int(rng.integers(0, 2 * len(blocks)))
        expected = [True]
        for block in blocks:
            expected.append(block in (other,) or isinstance(block, enable_grad))
        found = nested(*blocks, fails_at=fails_at)
        wanted = expected[1:] + expected[-2::-1]
        names = ", ".join(type(block).__name__ for block in blocks)
        check_modes(found, wanted, f"into {names} and out again, an exception in block {fails_at}", which_exit)


@pytest.mark.goal
@pytest.mark.task("09.2")
def test_goal_memory_stays_flat_in_every_thread():
    w = Tensor(0.1 * np.eye(16))

    def passes():
        with no_grad():
            state = as_tensor(np.ones((1, 16)))
            for _ in range(500):
                state = (state @ w + 1.0).relu()
        return mode.recording, bool(state._children)

    found = [in_a_thread(passes) for _ in range(4)]
    if found != [(True, False)] * 4:
        raise CheckFailed(f"(recording afterwards, graph inside) in four threads is {found}, expected (True, False)")


@pytest.mark.goal
@pytest.mark.task("09.3")
def test_goal_decorated_functions_call_each_other_and_themselves():
    seen = []

    @no_grad()
    def down(n):
        seen.append(mode.recording)
        if n:
            up(n - 1)
        seen.append(mode.recording)

    @enable_grad()
    def up(n):
        seen.append(mode.recording)
        if n:
            down(n - 1)
        seen.append(mode.recording)

    down(5)
    check_modes(seen, [False, True] * 3 + [True, False] * 3, "down(5), which calls up(4), and so on", which_call)
    check_modes([mode.recording], [True], "afterwards", which_call)


@pytest.mark.goal
@pytest.mark.task("09.3")
def test_goal_methods_and_functions_that_fail_can_be_decorated():
    class Model:
        scale = 3.0

        @no_grad()
        def __call__(self, x, *, fails=False):
            if fails:
                raise ValueError("as it was asked to")
            return x * self.scale

    model = Model()
    y = model(Tensor([2.0]))
    check_close(y.data, np.array([6.0]), "a decorated method, 3 * x at x = 2")
    check_unrecorded(y, "the result of a method decorated with @no_grad()", which_call)
    with pytest.raises(ValueError, match="as it was asked to"):
        model(Tensor([2.0]), fails=True)
    check_modes([mode.recording], [True], "after an exception in a decorated method", which_call)


@pytest.mark.goal
@pytest.mark.task("09.4")
def test_goal_a_detached_factor_counts_as_a_number():
    """Of f(x) * g(x).detach() only the slope of f is left."""
    rng = np.random.default_rng(4)
    for shape in ((), (3,), (2, 3), (2, 1, 3), (0, 2)):
        for dtype in (np.float64, np.float32):
            array = np.asarray(rng.uniform(0.5, 1.5, shape)).astype(dtype)
            x = Tensor(array)
            y = (x * x) * detached(x * x * x)
            y._children[0]._backward(detached(x * x * x).data)
            what = f"(x * x) * (x * x * x).detach(), shape {shape}, {np.dtype(dtype)}: x.grad"
            check_close(x.grad, np.asarray(2.0 * array**4, dtype), what, tolerance=1e-5)
    check_close(as_tensor([1.0, 2.0]).detach().data, np.array([1.0, 2.0]), "detach() of a constant")


@pytest.mark.goal
@pytest.mark.task("09.5")
def test_goal_retained_gradients_are_those_of_the_rest_of_the_program():
    """Retained in the middle, a tensor has the gradient that it has as an input of what comes after it."""
    rng = np.random.default_rng(5)
    for shape in ((), (3,), (2, 3)):
        array = np.asarray(rng.uniform(0.5, 1.5, shape))
        hidden = (Tensor(array) * 3.0).retain_grad()
        (hidden * hidden * hidden + hidden).backward()
        wanted = 3.0 * (3.0 * array) ** 2 + 1.0
        check_grad(hidden, wanted, of="h ** 3 + h with h = (x * 3).retain_grad()", at=f"shape {shape}", name="h")
    for nothing in (as_tensor([1.0]), as_tensor([1.0]) * 2.0):
        with pytest.raises(RuntimeError, match="nothing to keep"):
            retain_grad(nothing)


@pytest.mark.goal
@pytest.mark.task("09.6", revisits="02.4")
def test_goal_products_with_constants_match_central_differences():
    rng = np.random.default_rng(6)
    for n, k, m in ((1, 1, 1), (2, 3, 4), (4, 3, 2), (3, 3, 3), (1, 5, 2), (2, 0, 3)):
        left, right = rng.standard_normal((n, k)), rng.standard_normal((k, m))
        constants = as_tensor(left), as_tensor(right)
        check_gradient(lambda b, a=constants[0]: a @ b, right, name="constant @ b", make=Tensor)
        check_gradient(lambda a, b=constants[1]: a @ b, left, name="a @ constant", make=Tensor)
        for name, constant in zip("ab", constants):
            if constant.grad.any():
                raise CheckFailed(f"a @ b with {name} a constant: {name}.grad is {constant.grad}", ask(which_condition))


@pytest.mark.goal
@pytest.mark.task("09.7", revisits="02.3")
def test_goal_random_programs_match_central_differences():
    check_random_programs(make=Tensor)


@pytest.mark.goal
@pytest.mark.task("09.7", revisits="02.3")
def test_goal_the_work_grows_with_the_graph_and_not_faster():
    """100,000 tensors in which each is used by two others: looking one up in a list would take hours."""
    half = as_tensor(0.5)
    x = Tensor(1.0)
    a, b = x * half, x * half
    for _ in range(25_000):
        a, b = (a + b) * half, b
        b = (b + a) * half
    (a + b).backward()
    check_grad(x, 1.0, of="a + b, 50,000 steps of averaging from x / 2", at="x = 1", probe=which_walk)


@pytest.mark.goal
@pytest.mark.task("09.8", revisits="02.3")
def test_goal_walking_twice_is_twice_the_gradient_in_random_programs():
    for seed in range(20):
        tensors = [Tensor(np.random.default_rng(100 * seed + i).uniform(-1.0, 1.0, (2, 2))) for i in range(3)]
        out = random_program(tensors, np.random.default_rng(seed))
        out.backward(keep_graph=True)
        once = [x.grad.copy() for x in tensors]
        out.backward()
        for x, gradient in zip(tensors, once):
            check_grad(x, 2.0 * gradient, of=f"random program {seed}", at="two walks", probe=which_release)
        if out._children or out.grad.any():
            raise CheckFailed(f"random program {seed}: after the second walk the result still has its past")


@pytest.mark.goal
@pytest.mark.task("09.8", revisits="02.3")
def test_goal_a_backward_pass_needs_no_more_memory_than_is_there_already():
    """400 operations with results of 80 kB. On the way back gradients of that size come and go, and results go."""
    x = Tensor(np.ones(10_000))
    first = y = x * 1.0
    rule, half_way = first._backward, []

    def measure_and_hand_on(upstream):
        half_way.append(tracemalloc.get_traced_memory()[0])
        rule(upstream)

    first._backward = measure_and_hand_on
    del first
    tracemalloc.start()
    for _ in range(200):
        y = y.exp().log()
    forward = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    y.backward()
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    check_grad(x, 1.0, of="log(exp(...)), 200 times,", at="x = 10,000 ones")
    for when, size, limit in (
        ("there are at most", peak, 1.1 * forward),
        ("when the first operation has its turn, there are still", half_way[0], 0.1 * forward),
        ("in the end there are", left, 0.1 * forward),
    ):
        if size > limit:
            raise CheckFailed(
                f"backward() through a graph of {forward / 1e6:.0f} MB: {when} {size / 1e6:.0f} MB, expected no more "
                f"than {limit / 1e6:.0f} MB",
                ask(which_release),
            )


# What the checks are made of.


def entered(*modes) -> list:
    """What mode.recording reads after each of these is entered, one inside the other."""
    mode.recording, found = True, []
    for one in modes:
        one().__enter__()
        found.append(mode.recording)
    mode.recording = True
    return found


def nested(*blocks, fails_at: int | None = None) -> list:
    """What mode.recording reads inside of each block, on the way in, and after each, on the way out."""
    mode.recording, found = True, []

    def into(depth):
        if depth == len(blocks):
            return
        try:
            with blocks[depth]:
                found.append(mode.recording)
                into(depth + 1)
                if depth == fails_at:
                    raise KeyError("a slip")
        except KeyError:
            pass
        found.append(mode.recording)

    into(0)
    mode.recording = True
    return found


def overlapping_calls() -> list:
    """Two threads are in the same function: a enters and leaves first. What mode.recording reads afterwards in each.

    Thread a has switched recording off for itself beforehand.
    """
    a_is_in, b_is_in, a_is_out = threading.Event(), threading.Event(), threading.Event()

    @no_grad()
    def wait(say, for_what):
        say.set()
        for_what.wait(5.0)

    check_decorated(wait, [])
    after = {}

    def a():
        mode.recording = False
        wait(a_is_in, b_is_in)
        after["a"] = mode.recording
        a_is_out.set()

    def b():
        a_is_in.wait(5.0)
        wait(b_is_in, a_is_out)
        after["b"] = mode.recording

    in_a_thread(a, b)
    return [after.get("a"), after.get("b")]


def mode_after_a_slip() -> bool:
    """What mode.recording reads after a decorated function was called that ends in an exception."""

    @no_grad()
    def fails():
        raise KeyError("a slip in the function")

    check_decorated(fails, [])
    with suppress(KeyError):
        fails()
    after, mode.recording = mode.recording, True
    return after


def in_a_thread(*functions):
    """Run functions at the same time, each in a thread of its own. Returns the first one's result, or raises."""
    results, errors = {}, []

    def run(function):
        try:
            results[function] = function()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5.0)
    for error in errors:
        raise error
    return results.get(functions[0])


def counting(array: np.ndarray, products: list) -> np.ndarray:
    """The same array, which notes every matrix product that it takes part in."""

    class Counting(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            if ufunc is np.matmul:
                products.append(ufunc)
            return getattr(ufunc, method)(*[np.asarray(one).view(np.ndarray) for one in inputs], **options)

    return array.view(Counting)


def walk(result: Tensor, **options) -> None:
    """result.backward() through a graph that is whole."""
    try:
        result.backward(**options)
    except RuntimeError as error:
        early = "The graph is whole, and a tensor in it has let go before its rule has run: first the rule."
        error.diagnosis = ask(which_release) or early
        raise


def table(constant):
    return (as_tensor if constant else Tensor)([[1.0, 2.0], [3.0, 4.0]])


def column(constant):
    return (as_tensor if constant else Tensor)([[5.0], [6.0]])


def detached(x):
    """detach(x), which has to be a Tensor."""
    z = detach(x)
    if not isinstance(z, Tensor):
        why = "Nothing comes back: is there a return?" if z is None else "A Tensor belongs there, around the array."
        raise CheckFailed(f"x.detach() gives something of type {type(z).__name__}, expected a Tensor", why)
    return z


def check_modes(found: list, wanted: list, what: str, probe) -> None:
    """Compare readings of mode.recording."""
    if found != wanted or not all(isinstance(one, bool) for one in found):
        odd = next((type(one).__name__ for one in found if not isinstance(one, bool)), None)
        why = f"mode.recording is True or False, and here it has become a {odd}." if odd else ask(probe)
        raise CheckFailed(f"{what}: mode.recording reads {found}, expected {wanted}", why)


def check_unrecorded(y: Tensor, what: str, probe) -> None:
    """Does y stand alone, without children, rule or wish for a gradient?"""
    if y._children:
        raise CheckFailed(f"{what} has children: a graph was recorded", ask(probe))
    if y.requires_grad:
        raise CheckFailed(f"{what} has requires_grad True, expected False", ask(probe))


def check_remembered(one, wanted: list, what: str) -> None:
    if one.before != wanted:
        if not one.before:
            why = "Nothing was remembered, and leaving the block will need it: append mode.recording to self.before."
        elif len(wanted) > 1 and one.before == wanted[::-1]:
            why = (
                "The newest stands in front. Append: pop() takes from the end, and what was entered last is left first."
            )
        elif len(wanted) > 1 and one.before == wanted[:-1]:
            why = "Only where the mode changes is it remembered. Each time is left again as well: always append."
        elif one.before == [not value for value in wanted]:
            why = "It was remembered after the switch. What counts is how it was before."
        elif not all(isinstance(value, bool) for value in one.before):
            why = "What is remembered is mode.recording, True or False."
        elif len(one.before) > len(wanted):
            why = "More is on the list than was entered: append once each time, to self.before, the object's own list."
        elif one.before == wanted[-1:]:
            why = "The earlier time is forgotten: append to the list, so that the last one entered is the first left."
        else:
            why = None
        raise CheckFailed(f"{what}, its list `before` is {one.before}, expected {wanted}", why)


def check_decorated(function, seen: list) -> None:
    """Is what a decorator made a function, and has nothing been called yet?"""
    if seen:
        why = "The function is called where it is decorated. Define an inner one that calls it, and return that."
        raise CheckFailed("a function ran while it was decorated, and was not called yet", why)
    if not callable(function):
        why = "Nothing comes back: __call__ has to return the inner function." if function is None else None
        raise CheckFailed(f"a decorated function is {function!r}, expected a function", why)


def seconds_of_a_walk(depth: int) -> float:
    """How long a walk through a chain takes, the shortest of three. Each step has an input of its own."""
    taken = []
    for _ in range(3):
        y = Tensor(1.0)
        for _ in range(depth):
            y = y + Tensor(2.0)
        gc.disable()
        start = time.process_time()
        try:
            y.backward()
        finally:
            taken.append(time.process_time() - start)
            gc.enable()
    return min(taken)


# Has an earlier task still the form that it had in its own chapter?


def works_for_constants() -> bool:
    """Does each side of @ get its gradient though the other, or itself, is a constant?"""
    for constant in (0, 1):
        pair = [table(constant == 0), column(constant == 1)]
        if not completes(lambda p=pair: (p[0] @ p[1])._backward(np.array([[1.0], [10.0]]))):
            return False
        if not (pair[0].grad.any() and pair[1].grad.any()):
            return False
    return True


def recurses() -> bool:
    one = as_tensor(1.0)
    y = Tensor(1.0)
    for _ in range(3_000):
        y = y + one
    try:
        y.backward()
    except RecursionError:
        return True
    except NotImplementedError:
        raise
    except Exception:
        return False
    return False


def lets_nothing_go() -> bool:
    """Is everything there after a walk, as if the graph had been kept?"""
    x = Tensor([3.0])
    y = x * x
    z = y * 2.0
    inner = [(one, one._children, one._backward) for one in (y, z)]
    if not completes(z.backward) or not completes(lambda: z.backward(keep_graph=True)):
        return False
    return all(one.grad.any() and one._children == children and one._backward == rule for one, children, rule in inner)


def completes(call) -> bool:
    """Does a call come to its end? A TODO in it is raised, any other failure is the checks' business."""
    try:
        call()
    except NotImplementedError:
        raise
    except Exception:
        return False
    return True


# The second look: taken only where a check has failed, to tell its cause from the others.


def which_switch():
    mode.recording = True
    no_grad().__enter__()
    off, in_class = mode.recording, type(mode).recording
    type(mode).recording = mode.recording = True
    if not in_class:
        return "It was switched for all threads at once: set mode.recording, and let its class alone."
    if off:
        return "mode.recording is still True after it: that is what has to become self.recording."
    if entered(no_grad, no_grad) == [False, True]:
        return "It turns the mode into its opposite. The new value is self.recording, whatever the old one was."
    if entered(no_grad, enable_grad) == [False, False]:
        return "enable_grad switches off as well. The new value is self.recording, which the two of them differ in."
    return None


def which_exit():
    if nested(no_grad())[-1] is False:
        return "After a block everything stays off: __exit__ has to put back what was before."
    off = no_grad()
    try:
        again = nested(off, off)
    except IndexError:
        return "The list is empty before every block is left: each time takes one off it, with pop(), and no more."
    same, mixed = nested(no_grad(), no_grad()), nested(no_grad(), enable_grad())
    if same == [False, False, True, True] and mixed == [False, True, True, True]:
        return "It is switched to True whatever it was. In a nested block it was off: put back what was before."
    if same == [False, False, True, True] and mixed == [False, True, False, True]:
        return "It is turned into the opposite of the block's own mode. Put back what was before."
    if same != [False, False, False, True] or mixed != [False, True, False, True]:
        return None
    if again == [False, False, True, False]:
        return (
            "What was remembered first is put back first. The block that was entered last is left first: pop() takes "
            "the last one off the list."
        )
    if again[-1] is False:
        return "What was remembered stays on the list, and is found there again later: pop() takes it off."
    if nested(no_grad(), fails_at=0)[-1] is False:
        return "Only a block that comes to its end is put back, and not one that an exception ends."
    return None


def which_call():
    seen = []

    @no_grad()
    def look():
        seen.append(mode.recording)

    while_decorating = mode.recording
    try:
        look()
        count = len(seen)
        look()
        if count > 1:
            return (
                "Each call runs the function more than once: call it in the `with` block, and return its result there."
            )
        if len(seen) == count:
            return "Only the first call runs the function: each has to."
    except (TypeError, AttributeError) as error:
        if "context manager" in str(error) or "__enter__" in str(error):
            return "A class is not an object yet: type(self)(), with brackets, makes one to enter."
    mode.recording = False
    enable_grad()(lambda: seen.append(mode.recording))()
    after, mode.recording = mode.recording, True
    if not while_decorating:
        return "The mode is switched where the function is decorated, and stays so. It belongs in the inner function."
    if seen[0]:
        mode.recording = False
        look()
        switched_on, mode.recording = seen[-1], True
        if switched_on:
            return (
                "Every call records, also with @no_grad(): the block to enter is one of the object's own kind, "
                "type(self)()."
            )
        return "In the call nothing is switched: the `with` has to be inside of the inner function, around the call."
    if not seen[-1]:
        return "enable_grad switches off as well: the block to enter is one of its own kind, type(self)()."
    if after:
        return "After a call recording is on whatever it was: put back what was before, as a `with` block does."
    if mode_after_a_slip() is False:
        return "After a call that ends in an exception everything stays off: a `with` block puts it back then too."
    if overlapping_calls() != [False, True]:
        return "All calls share one object, also where they overlap: each needs one of its own, type(self)()."
    return None


def which_detached():
    x = Tensor([2.0])
    z = detach(x)
    if z is x:
        return "It returns x itself: detach makes a new tensor."
    if z._children:
        return "x is still among its children. A new tensor needs x's array and nothing else."
    if z.requires_grad:
        return "It still wants a gradient. as_tensor makes a constant."
    return None


OVERWRITTEN = "Of two calls only one counts: the gradient that was there is overwritten. += adds to it."


def which_condition():
    found = []
    for constant in (None, 0, 1):
        pair = [table(constant == 0), column(constant == 1)]
        (pair[0] @ pair[1])._backward(np.array([[1.0], [10.0]]))
        found.append(tuple(bool(one.grad.any()) for one in pair))
    both, left, right = found
    if both in ((True, False), (False, True)):
        return (
            "If both need a gradient, only one of them gets it: the second condition is an `if` of its own, no `elif`."
        )
    if both == (False, False):
        if (left, right) == ((True, False), (False, True)):
            return "The conditions are turned around: who has requires_grad gets a gradient."
        return "Two inputs that need a gradient get none: requires_grad says who needs one, whatever else there is."
    if both == (True, True):
        if (left, right) == ((True, False), (False, True)):
            return "The two conditions are exchanged: each side's gradient depends on its own requires_grad."
        if (left, right) == ((False, False), (False, False)):
            return "With one constant nobody gets anything: each side has a condition of its own."
        if (left, right) == ((False, False), (False, True)) or (left, right) == ((False, False), (True, False)):
            return "With a constant on the left the right one gets nothing: each side has a condition of its own."
        if (left, right) == ((False, False), (True, True)):
            return "Both conditions ask self: the one for other's gradient has to ask other."
        if (left, right) == ((True, True), (False, False)):
            return "Both conditions ask other: the one for self's gradient has to ask self."
        if left[0] or right[1]:
            side = "left" if left[0] else "right"
            return f"The {side} one gets its gradient though it is a constant: its condition is missing."
    return None


def one_sided():
    """Do both inputs of an operation, each of them computed itself, hand on what they get?"""
    x, y = Tensor(1.0), Tensor(1.0)
    ((x * 2.0) * (y * 2.0)).backward(keep_graph=True)
    if bool(x.grad.any()) != bool(y.grad.any()):
        return "Of an operation's two inputs only one is visited: all the children have to be put on the stack."
    return None


def which_seed():
    x = Tensor(1.0)
    (x * 2.0).backward(3.0)
    arrived = float(x.grad)
    x.backward(5.0)
    if arrived == 2.0:
        return "The seed is the gradient that was given, self.grad += gradient, and not ones."
    if arrived == 9.0:
        return "Every tensor gets the seed: it belongs to the result alone."
    if arrived == 6.0 and float(x.grad) == 5.0:
        return "What is there already stays: self.grad += gradient, also where self is an input."
    return None


def waits_in_vain():
    """a is met first as an argument of the last product, and has to wait for a + 1 all the same."""
    x = Tensor(3.0)
    a = x * 2.0
    (a * (a + 1.0)).backward()
    y = Tensor(3.0)
    b = y * 2.0
    ((b + 1.0) * b).backward()
    if sorted([float(x.grad), float(y.grad)])[0] < 26.0 and 26.0 in (float(x.grad), float(y.grad)):
        return (
            "It depends on the side on which a tensor stands, so a later user is overlooked. Either `seen` is filled "
            "when a tensor is put on the stack, and not when it comes off, or the order is that of coming off, parents "
            "first."
        )
    return None


def let_go_of():
    """What is there after a walk, with and without keep_graph?"""
    x = Tensor([3.0])
    y = x * x
    z = y * 2.0
    rule = z._backward
    z.backward(keep_graph=True)
    if not z._children or z._backward != rule:
        other = Tensor([3.0]) * 2.0
        other.backward()
        if other._children:
            return "It is turned around: with keep_graph=True the graph goes, and without it, it stays."
        return "The graph goes although keep_graph is True."
    once = float(x.grad[0])
    if once != 12.0:
        return None  # the walk itself is wrong
    if tangled() > 26.0:
        return None  # check_walk says more of it
    z.backward(keep_graph=True)
    if float(x.grad[0]) == once:
        return "Before a walk the leaves lose their gradient too: only tensors that have children start from nothing."
    if float(x.grad[0]) > 2.0 * once:
        return (
            "In the second walk the tensors inside still have the gradient of the first, and hand it on once more: "
            "before a walk it has to go."
        )
    z.backward()
    if early := gone_too_early():
        return early
    if z.grad.any() or y.grad.any():
        return "The gradients of the tensors inside stay: zero_grad() on each, after its rule has run."
    if z._children:
        return "The children stay: each tensor inside needs _children = () after its rule has run."
    if z._backward == rule:
        return "The rule stays, and with it everything that it uses: put the given _let_go in its place."
    try:
        z.backward()
    except RuntimeError:
        pass
    except TypeError:
        return "What takes the place of the tensor's own rule cannot be called. The given _let_go raises an error."
    else:
        return "The rule that takes the place of the tensor's own says nothing. The given _let_go raises an error."
    hidden = Tensor([1.0]) * 3.0
    hidden.retains_grad = True
    (hidden * 2.0).backward()
    if not hidden.grad.any():
        return "A tensor with retains_grad has to keep its gradient."
    if hidden._children:
        return "A retained tensor keeps its gradient, and nothing else: its children and its rule go as well."
    x = Tensor([1.0])
    hidden = x * 3.0
    hidden.retains_grad = True
    z = hidden * 2.0
    z.backward(keep_graph=True)
    z.backward(keep_graph=True)
    if float(x.grad[0]) == 18.0:
        return (
            "In the second walk a retained tensor still has the gradient of the first, and hands it on once more: "
            "retained or not, it has to go before a walk."
        )
    return None


def gone_too_early():
    """What does the rule in the middle get to see, and what is left at the input?"""
    kept = Tensor([3.0]) * 2.0
    kept.backward(keep_graph=True)
    if not kept.grad.any():
        return None  # there is no seed
    x = Tensor([3.0])
    y = x * x
    z = y * 2.0
    arrived = []
    y._backward = lambda upstream, rule=y._backward: (arrived.append(upstream.any()), rule(upstream))
    z.backward()
    if arrived == [False]:
        return "A tensor's gradient is gone before its rule has run: first the rule, then let go."
    if arrived == [True] and not x.grad.any():
        return "Nothing is left at the leaf: only tensors that have children let go of their gradient."
    return None


def tangled() -> float:
    """The slope of a * (a + 1) with a = 2 * x at 3, which is 26."""
    x = Tensor(3.0)
    a = x * 2.0
    (a * (a + 1.0)).backward()
    return float(x.grad)


def called_at_once():
    """Without keep_graph: has the first rule run, and an error come right after it?"""
    x = Tensor([3.0])
    try:
        (x * 2.0).backward()
    except RuntimeError:
        if x.grad.any():
            return "_let_go is called, and raises its error at once: put it in the rule's place, without brackets."
    return None


def walked_from_the_front():
    """An input's turn comes first, and the result's last?"""
    turns = []
    x = Tensor(1.0)
    y = x * 2.0
    z = y * 2.0
    for name, one in (("y", y), ("z", z)):
        one._backward = lambda upstream, name=name, rule=one._backward: (turns.append(name), rule(upstream))
    z.backward()
    if len(set(turns)) < len(turns):
        return "A tensor has its turn more than once: each stands in the order once, when its children are in it."
    if turns == ["y", "z"]:
        return (
            "The walk begins with the inputs, and not with the result: is the order walked from its end? (pop() takes "
            "from there.) And do inputs stand before what was computed from them?"
        )
    return None


which_release = first_that_tells(called_at_once, walked_from_the_front, let_go_of)
which_walk = first_that_tells(
    one_sided, waits_in_vain, called_at_once, walked_from_the_front, gone_too_early, check_walk(Tensor)
)
