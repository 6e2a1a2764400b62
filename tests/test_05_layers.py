"""The checks of chapter 05: python grader.py 05"""

import numpy as np
import pytest

from meintorch.layers import Dropout, Linear, Module, Sequential, Tanh, collect_parameters, initial_weight
from meintorch.tensor import Tensor, as_tensor
from tests._helpers import (
    SECOND_CALL,
    CheckFailed,
    ask,
    check_close,
    check_gradient,
    explained,
    first_that_tells,
    nothing_else_changes,
    which_formula,
)

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TARGET = np.array([[0.0], [1.0], [1.0], [0.0]])
MODES = ("eval", "eval", "train", "train", "eval")  # each of them twice: the same again changes nothing


class Box(Module):
    """Holds whatever it is given, by name."""

    def __init__(self, **held):
        for name, value in held.items():
            setattr(self, name, value)


class Times(Module):
    """A layer that can be checked by hand."""

    def __init__(self, number):
        self.number = number

    def forward(self, x):
        return x * self.number


class Plus(Times):
    def forward(self, x):
        return x + self.number


@pytest.mark.task("05.4")
def test_the_gradients_of_an_xor_network_match_central_differences():
    """Seventeen numbers in two layers. Nobody wrote down a derivative for them."""
    model = xor_network(seed=0)
    loss_of(model).backward()
    parameters = dict(model.named_parameters())
    if sum(parameter.size for parameter in parameters.values()) != 17:
        raise CheckFailed(f"the network has the parameters {named(parameters)}, expected 17 numbers in four tensors")
    for name, parameter in parameters.items():
        slopes = np.empty_like(parameter.data)
        for place in np.ndindex(parameter.shape):
            number = parameter.data[place]
            ends = []
            for step in (1e-6, -1e-6):
                parameter.data[place] = number + step
                ends.append(loss_of(model).data.sum())
            parameter.data[place] = number
            slopes[place] = (ends[0] - ends[1]) / 2e-6
        what = f"the gradient of {name} (against a central difference)"
        check_close(parameter.grad, slopes, what, tolerance=1e-5, probe=which_way)


@pytest.mark.task("05.4")
def test_a_saved_and_loaded_model_predicts_the_same():
    """Another start, other answers, until the saved numbers are in."""
    model, other = xor_network(seed=0), xor_network(seed=1)
    saved = model.state_dict()
    before = model(XOR).data
    if np.allclose(other(XOR).data, before):
        raise CheckFailed("two networks that start with different weights give the same answers", ask(which_way))
    other.load_state_dict(saved)
    check_close(other(XOR).data, before, "what the loaded network predicts", probe=which_way)


@pytest.mark.task("05.1")
def test_the_tensors_of_a_module_are_its_parameters():
    weight, bias = Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0])
    check_parameters(Box(weight=weight, bias=bias), {"weight": weight, "bias": bias})


@pytest.mark.task("05.1")
def test_the_parameters_of_the_modules_inside_are_found_by_their_path():
    a, b, c = Tensor([1.0]), Tensor([2.0]), Tensor([3.0])
    model = Box(weight=a, head=Box(weight=b, gate=Box(weight=c)))
    check_parameters(model, {"weight": a, "head.weight": b, "head.gate.weight": c})


@pytest.mark.task("05.1")
def test_lists_tuples_and_dicts_are_searched_too():
    a, b, c, d = (Tensor([number]) for number in (1.0, 2.0, 3.0, 4.0))
    model = Box(steps=[Box(weight=a), Box(weight=b)], heads={"left": c, "right": (Box(weight=d),)})
    names = {"steps.0.weight": a, "steps.1.weight": b, "heads.left": c, "heads.right.0.weight": d}
    check_parameters(model, names)


@pytest.mark.task("05.1")
def test_what_wants_no_gradient_is_no_parameter():
    weight = Tensor([1.0])
    model = Box(weight=weight, shift=as_tensor([2.0]), scales=[as_tensor(3.0)], bias=None, p=0.5, label="hidden")
    check_parameters(model, {"weight": weight})


@pytest.mark.task("05.1")
def test_a_tensor_in_two_places_is_listed_once():
    """Under either of its names. Two tensors that hold the same numbers are two all the same."""
    shared, same_numbers = Tensor([1.0]), Tensor([1.0])
    inner = Box(weight=shared)
    found = dict(Box(first=inner, second=inner, tied=shared, other=same_numbers).named_parameters())
    listed = [id(parameter) for parameter in found.values()]
    if sorted(listed) != sorted([id(shared), id(same_numbers)]):
        message = (
            "a module holds one tensor under first.weight, second.weight and tied, and another one under other.\n"
            f"Its parameters are {named(found)}, expected two: other, and one of the three names"
        )
        raise CheckFailed(message, which_part())


@pytest.mark.task("05.2")
def test_the_starting_weights_have_a_row_for_each_input():
    weight = initial_weight(3, 5, np.random.default_rng(0))
    check_array(weight, (3, 5), "initial_weight(3, 5, rng)")
    layer = Linear(3, 5, dtype=np.float32, rng=np.random.default_rng(0))
    check_close(layer.weight.data, weight.astype(np.float32), "the weight of Linear(3, 5) in float32", tolerance=1e-6)


@pytest.mark.task("05.2")
def test_the_starting_weights_spread_as_he_and_others_say():
    """200 inputs: a variance of 2 / 200, so a standard deviation of 0.1. Sixty thousand numbers come close to it."""
    check_spread(200, 300, seed=0)


@pytest.mark.task("05.2")
def test_the_starting_weights_lie_around_zero():
    weight = initial_weight(50, 400, np.random.default_rng(1))
    check_array(weight, (50, 400), "initial_weight(50, 400, rng)")
    mean, band = float(weight.mean()), 6.0 * np.sqrt(2.0 / 50 / weight.size)
    if abs(mean) > band:
        message = f"the mean of initial_weight(50, 400, rng) is {mean:.4f}, expected 0 to within {band:.4f}"
        raise CheckFailed(message, ask(which_spread))


@pytest.mark.task("05.2")
def test_no_two_units_start_alike():
    """Units that start alike get the same gradient, and stay alike for ever."""
    weight = initial_weight(6, 8, np.random.default_rng(2))
    check_array(weight, (6, 8), "initial_weight(6, 8, rng)")
    for what, lines in (("rows", weight), ("columns", weight.T)):
        if len(np.unique(lines, axis=0)) < len(lines):
            numbers = ", ".join(f"{number:.3g}" for number in lines[0])
            message = f"some {what} of initial_weight(6, 8, rng) are the same; the first is {numbers}"
            raise CheckFailed(message, ask(which_spread) or "Draw a number of its own for every place.")


@pytest.mark.task("05.2")
def test_the_starting_weights_come_from_the_rng_that_is_given():
    first, again = (initial_weight(4, 3, np.random.default_rng(7)) for _ in range(2))
    check_array(first, (4, 3), "initial_weight(4, 3, rng)")
    if not np.array_equal(first, again):
        message = "two calls with generators of the same seed give different weights"
        raise CheckFailed(message, "The numbers do not come from `rng`, so that a run cannot be repeated.")
    rng = np.random.default_rng(7)
    if np.array_equal(initial_weight(4, 3, rng), initial_weight(4, 3, rng)):
        message = "two calls with one and the same generator give the same weights"
        raise CheckFailed(
            message, ask(which_spread) or "Two layers would start alike. Is a generator made anew inside?"
        )


@pytest.mark.task("05.3")
def test_a_linear_layer_weighs_sums_and_adds_its_bias():
    """The input [1, 2]: 1 * 1 + 2 * 10 = 21, and 100 more; and so on."""
    layer = linear([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], [100.0, 200.0, 300.0])
    x, wanted = np.array([[1.0, 2.0], [0.0, 1.0]]), [[121.0, 242.0, 363.0], [110.0, 220.0, 330.0]]
    check_layer(layer, x, wanted, "the layer's output", which_linear)


@pytest.mark.task("05.3")
def test_each_output_has_a_bias_of_its_own():
    """A batch of three and three outputs: here every axis fits, and only one is right."""
    layer = linear(np.zeros((2, 3)), [1.0, -2.0, 3.0])
    what = "with all weights 0 and the bias [1, -2, 3], the output for a batch of three"
    check_layer(layer, np.ones((3, 2)), [[1.0, -2.0, 3.0]] * 3, what, which_linear)


@pytest.mark.task("05.3")
def test_a_layer_without_bias_is_the_product_alone_and_stays_without():
    layer = Linear(2, 2, bias=False)
    layer.weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
    x, what = np.array([[1.0, 10.0]]), "the output of a layer made with bias=False"
    explained(lambda: layer(x), which_linear, without_bias)
    if layer.bias is not None:
        message = f"after a call of a layer made with bias=False, its bias is {layer.bias!r:.60}, expected None"
        raise CheckFailed(message, "A bias made in forward is one all the same: a parameter, which learns.")
    check_layer(layer, x, [[31.0, 42.0]], what, which_linear)


@pytest.mark.task("05.3")
def test_weight_bias_and_input_get_their_gradients():
    """The weight collects x.T @ upstream, the bias the sum over the batch: 1 + 10."""
    x, layer = Tensor([[1.0, 2.0], [3.0, 4.0]]), linear([[5.0], [6.0]], [7.0])
    out = check_layer(layer, x, [[24.0], [46.0]], "the layer's output", which_linear)
    out.backward(np.array([[1.0], [10.0]]))
    wanted = {"weight": [[31.0], [42.0]], "bias": [11.0], "x": [[5.0, 6.0], [50.0, 60.0]]}
    for (name, gradient), tensor in zip(wanted.items(), (layer.weight, layer.bias, x)):
        check_close(tensor.grad, np.array(gradient), f"the gradient of the {name} (as {name}.grad)", probe=cut_off)


@pytest.mark.task("05.3")
def test_a_bias_of_zero_learns_too():
    """So it starts. Whether there is a bias is not a question of its numbers."""
    layer = linear([[5.0], [6.0]], [0.0])
    out = check_layer(layer, np.array([[1.0, 2.0], [3.0, 4.0]]), [[17.0], [39.0]], "the layer's output", which_linear)
    out.backward(np.array([[0.25], [0.5]]))
    left_out = None if layer.bias.grad.any() else "A bias of 0 is left out, so it never learns: is it None, or is it 0?"
    what = "a bias of 0, upstream [[0.25], [0.5]]:\nbias.grad"
    check_close(layer.bias.grad, np.array([0.75]), what, probe=first_that_tells(cut_off, lambda: left_out))


@pytest.mark.task("05.3")
def test_a_single_input_and_a_batch_of_sequences_go_through_as_they_are():
    """Whatever stands in front of the last axis stays."""
    layer, wanted = linear([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], [100.0, 200.0, 300.0]), [121.0, 242.0, 363.0]
    check_layer(layer, np.array([1.0, 2.0]), wanted, "the output for a single input", which_linear)
    x = Tensor([[[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]], [[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]])
    layer, wanted = linear([[5], [6]], [7]), [[[24.0], [13.0], [22.0]], [[17.0], [18.0], [7.0]]]
    out = check_layer(layer, x, wanted, "the output for shape (2, 3, 2)", which_linear)
    out.backward(np.array([[[1.0], [10.0], [0.0]], [[100.0], [1000.0], [10000.0]]]))
    what = "an input of shape (2, 3, 2): the gradient of the"
    check_close(layer.weight.grad, np.array([[1201.0], [1012.0]]), f"{what} weight", probe=cut_off)
    check_close(layer.bias.grad, np.array([11111.0]), f"{what} bias", probe=cut_off)


@pytest.mark.task("05.3")
def test_a_float32_layer_stays_float32():
    layer = Linear(2, 3, dtype=np.float32, rng=np.random.default_rng(0))
    x = np.ones((4, 2), np.float32)
    out = check_layer(layer, x, x @ layer.weight.data, "the output of a float32 layer", which_linear, tolerance=1e-6)
    out.backward(np.full((4, 3), 0.25, np.float32))
    for name, wanted in (("weight", np.ones((2, 3), np.float32)), ("bias", np.ones(3, np.float32))):
        check_close(getattr(layer, name).grad, wanted, f"the gradient of the {name} of a float32 layer", probe=cut_off)


@pytest.mark.task("05.4")
def test_each_module_gets_what_the_one_before_gives():
    """Twice 5 is 10, and 3 more is 13."""
    row = Sequential(Times(2.0), Plus(3.0))
    check_layer(row, np.array([5.0]), [13.0], "5 through a module that doubles, then one that adds 3,", which_way)


@pytest.mark.task("05.4")
def test_every_module_has_its_turn():
    model = Sequential(Plus(1.0), Times(2.0), Sequential(Plus(4.0), Times(8.0)), Plus(16.0))
    check_layer(model, np.array([0.0]), [64.0], "0 through plus 1, times 2, (plus 4, times 8) and plus 16", which_way)


@pytest.mark.task("05.4")
def test_twelve_modules_keep_their_order():
    """Times 10, and the next digit: the digits come out in the order of the modules."""
    model = Sequential(*[module for digit in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0) for module in (Times(10.0), Plus(digit))])
    ways = {15.0: 'By their names as text, "10" would come before "2".', 11.0: "It ends after the tenth module."}

    def beyond_ten():
        twelve = Sequential(*[Plus(1.0)] * 2, Times(2.0), *[Plus(1.0)] * 9)
        short = Sequential(Times(2.0), Plus(3.0))
        right = float(short(np.array([5.0])).data[0]) == 13.0
        return ways.get(float(twelve(np.array([0.0])).data[0])) if right else None

    what = "0 through times 10, plus 1, times 10, plus 2, ..."
    check_layer(model, np.array([0.0]), [123456.0], what, first_that_tells(which_way, beyond_ten))


@pytest.mark.task("05.4")
def test_what_is_no_module_is_passed_over():
    """eval() sets an attribute, `training`, beside the modules."""
    model = Sequential(Times(2.0), Plus(3.0))
    model.training = False
    try:
        out = model(np.array([5.0]))
    except TypeError as error:
        if float(Sequential(Times(2.0), Plus(3.0))(np.array([5.0])).data[0]) == 13.0:
            error.diagnosis = (
                "A row has other attributes too, as `training` after eval(). Which method gives its modules?"
            )
        raise
    check_out(out, [13.0], "after model.training = False, 5 through times 2 and plus 3", probe=which_way)


@pytest.mark.task("05.4")
def test_a_gradient_finds_its_way_back_through_the_row():
    x = Tensor([1.0, 2.0])
    row = Sequential(Times(2.0), Plus(3.0), Times(5.0))
    out = check_layer(row, x, [25.0, 35.0], "[1, 2] through times 2, plus 3 and times 5", which_way)
    explained(out.backward, lambda: "The result knows nothing of x: hand the Tensors on, and not their arrays.")
    check_close(x.grad, np.array([10.0, 10.0]), "x.grad after times 2, plus 3 and times 5")


@pytest.mark.task("05.5")
def test_what_is_kept_is_scaled_up_and_the_rest_is_zero():
    """p = 0.2: what is kept grows by 1 / 0.8 = 1.25."""
    out = Dropout(0.2, np.random.default_rng(0))(np.full((20, 50), 4.0))
    check_tensor(out, (20, 50), np.float64, "a thousand times 4 through Dropout(0.2)")
    numbers = np.unique(out.data.round(9)).tolist()
    if numbers != [0.0, 5.0]:
        shown = ", ".join(f"{number:.4g}" for number in numbers[:6]) + (", ..." if len(numbers) > 6 else "")
        message = f"a thousand times 4 through Dropout(0.2) gives the numbers {shown}, expected 0 and 4 * 1.25 = 5"
        raise CheckFailed(message, ask(which_dropout))


@pytest.mark.task("05.5")
def test_p_is_the_share_that_is_dropped():
    """Of a hundred thousand numbers a quarter, give or take a hundredth."""
    out = Dropout(0.25, np.random.default_rng(1))(np.ones(100_000))
    check_tensor(out, (100_000,), np.float64, "Dropout(0.25) of 100,000 numbers")
    share = float(np.mean(out.data == 0.0))
    if not 0.24 <= share <= 0.26:
        message = f"of 100,000 numbers through Dropout(0.25), {share:.1%} are zero, expected 24 % to 26 %"
        raise CheckFailed(message, ask(which_dropout))


@pytest.mark.task("05.5")
def test_in_eval_mode_everything_comes_through_as_it_is():
    layer = Dropout(0.5, np.random.default_rng(2))
    x = np.linspace(1.0, 2.0, 200)
    layer(x)
    layer.training = False
    for again in ("", ", called a second time,"):
        what = f"200 numbers through Dropout(0.5) with training = False{again}"
        check_out(layer(x), np.linspace(1.0, 2.0, 200), what, probe=which_eval)


@pytest.mark.task("05.5")
def test_every_call_and_every_place_has_luck_of_its_own():
    layer = Dropout(0.5, np.random.default_rng(3))
    first, second = layer(np.ones((40, 40))), layer(np.ones((40, 40)))
    for out in (first, second):
        check_tensor(out, (40, 40), np.float64, "Dropout(0.5) of shape (40, 40)")
    if np.array_equal(first.data, second.data):
        nothing_dropped = "Nothing is dropped at all." if first.data.all() else None
        message = "Dropout(0.5) drops the same of 1,600 numbers in two calls, one after the other"
        raise CheckFailed(message, nothing_dropped or "Every call draws a new mask, from where `self.rng` stands.")
    for what, mask in (("rows", first.data), ("columns", first.data.T)):
        if len(np.unique(mask, axis=0)) < 40:
            message = f"in a batch of shape (40, 40), Dropout(0.5) treats some {what} all alike"
            raise CheckFailed(message, "One mask is used several times: every number of x needs a draw of its own.")


@pytest.mark.task("05.5")
def test_the_same_seed_drops_the_same_numbers():
    first, again = (Dropout(0.5, np.random.default_rng(4))(np.ones(200)) for _ in range(2))
    for out in (first, again):
        check_tensor(out, (200,), np.float64, "Dropout(0.5) of 200 numbers")
    if not np.array_equal(first.data, again.data):
        message = "two layers with generators of the same seed drop different numbers"
        raise CheckFailed(message, "The numbers do not come from `self.rng`, so that a run cannot be repeated.")


@pytest.mark.task("05.5")
def test_the_gradient_goes_the_way_the_numbers_went():
    """What was dropped gets nothing; what was kept gets its upstream gradient, scaled up as it was."""
    x = Tensor(np.ones(200))
    out = Dropout(0.5, np.random.default_rng(5))(x)
    check_tensor(out, (200,), np.float64, "Dropout(0.5) of 200 numbers")
    upstream = np.arange(1.0, 201.0)
    out.backward(upstream)
    cut = "The result is not connected to x: multiply the tensor, not its array." if not x.grad.any() else None
    if np.array_equal(x.data, np.ones(200)) and x.grad[out.data == 0.0].all():
        cut = (
            "What was dropped gets a gradient all the same: the mask has to be multiplied to the tensor, not to .data."
        )
    check_close(x.grad, upstream * out.data, "200 ones through Dropout(0.5):\nx.grad", probe=lambda: cut)


@pytest.mark.task("05.5")
def test_dropout_keeps_float32_and_leaves_its_input_alone():
    given = np.ones((20, 10), np.float32)
    out = Dropout(0.5, np.random.default_rng(6))(given)
    check_tensor(out, (20, 10), np.float32, "Dropout(0.5) of a float32 array")
    message = "the numbers of x after Dropout(0.5)"
    check_close(
        given, np.ones((20, 10), np.float32), message, probe=lambda: "They belong to others too: x was changed."
    )


@pytest.mark.task("05.5")
def test_what_a_call_has_drawn_is_no_parameter():
    """A Tensor in an attribute would be one, and an optimizer would change it."""
    layer = Dropout(0.5, np.random.default_rng(8))
    layer(Tensor(np.ones(8)))
    kept = [name for name, value in vars(layer).items() if isinstance(value, Tensor) and value.requires_grad]
    check_close(layer.p, 0.5, "after a call of Dropout(0.5), layer.p")
    if kept:
        message = f"after a call of Dropout(0.5), layer.{kept[0]} is a Tensor that wants a gradient: a parameter"
        raise CheckFailed(message, "What a call needs is over with the call: a name without self. is enough.")


@pytest.mark.task("05.6")
def test_a_module_knows_whether_it_is_learning():
    module, other = Box(), Box()
    for mode in MODES:
        getattr(module, mode)()
        check_told({"the module": module}, mode)
        if mode == "eval" and not other.training:
            module.train()
            message = "after module.eval(), another module, which has nothing to do with it, is in eval mode too"
            raise CheckFailed(message, "The mode was set on the class. Each module has its own: self.training.")


@pytest.mark.task("05.6")
def test_the_modules_inside_are_told_too():
    model = Box(first=Box(), second=Box(inner=Box()))
    held = {"first": model.first, "second": model.second, "second.inner": model.second.inner}
    for mode in MODES:
        getattr(model, mode)()
        check_told({"the module": model, **held}, mode)
    model.second.inner.train()  # alone
    model.eval()
    check_told({"the module": model, **held}, "eval")


@pytest.mark.task("05.6")
def test_modules_in_lists_and_dicts_are_told_too():
    a, b, c = Box(), Box(), Box()
    model = Box(steps=[a, Box(inner=[b])], heads={"left": c})
    for mode in MODES:
        getattr(model, mode)()
        check_told({"the module": model, "steps.0": a, "steps.1.inner.0": b, "heads.left": c}, mode)


@pytest.mark.task("05.6")
def test_eval_changes_nothing_but_the_mode():
    """Parameters want their gradients all the same."""
    weight = Tensor([0.25])
    model = Box(weight=weight, inner=Box(p=0.5, label="hidden"), steps=[Box()])
    with nothing_else_changes("eval()", weight=weight):
        model.eval()
    with nothing_else_changes("a second eval()", model=model):
        model.eval()


@pytest.mark.task("05.6")
def test_train_and_eval_return_the_module():
    """So that one can write model = load().eval()."""
    module = Box(inner=Box())
    for mode in ("eval", "train"):
        returned = getattr(module, mode)()
        if returned is not module:
            what = "another module" if isinstance(returned, Module) else repr(returned)[:60]
            diagnosis = "Nothing comes back: is there a return?" if returned is None else None
            raise CheckFailed(f"module.{mode}() returns {what}, expected the module itself", diagnosis)


@pytest.mark.task("05.6")
def test_a_network_in_eval_mode_gives_the_same_answer_twice():
    """And while it learns, it does not: of 400 numbers other ones are dropped."""
    model = Sequential(Times(2.0), Sequential(Dropout(0.5, np.random.default_rng(0)), Plus(1.0)))
    x = np.linspace(1.0, 2.0, 400)
    model.eval()
    check_out(model(x), 2.0 * x + 1.0, "in eval mode, times 2, Dropout(0.5) and plus 1", probe=which_told)
    model.train()
    if np.array_equal(model(x).data, model(x).data):
        raise CheckFailed("after train(), Dropout(0.5) does the same to 400 numbers in two calls", ask(which_told))


# The harder suite: python grader.py 05 --goal


@pytest.mark.goal
@pytest.mark.task("05.1")
def test_goal_random_trees_give_every_parameter_its_path():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        parameters, modules = {}, {}
        check_parameters(random_tree(rng, "", 4, parameters, modules), parameters)


@pytest.mark.goal
@pytest.mark.task("05.2")
def test_goal_the_spread_follows_the_number_of_inputs():
    for seed, (n_inputs, n_outputs) in enumerate(((1, 40_000), (2, 20_000), (50, 800), (800, 50), (20_000, 2))):
        check_spread(n_inputs, n_outputs, seed)
    check_array(initial_weight(3, 0, np.random.default_rng(0)), (3, 0), "initial_weight(3, 0, rng)")


@pytest.mark.goal
@pytest.mark.task("05.2")
def test_goal_a_signal_keeps_its_size_through_ten_layers():
    """A single network of width 100 may halve or double it by luck. The average of 200 networks stays close to 1."""
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(200):
        signal = rng.standard_normal((1, 100))
        for _ in range(10):
            signal = np.maximum(signal @ initial_weight(100, 100, rng), 0.0)
        ends.append(float(np.mean(signal * signal)))
    if not 0.6 <= np.mean(ends) <= 1.7:
        message = f"after ten layers with relu the mean square is {np.mean(ends):.3g} on average, expected about 1"
        raise CheckFailed(message, ask(which_spread))


@pytest.mark.goal
@pytest.mark.task("05.3")
def test_goal_a_linear_layer_matches_central_differences():
    rng = np.random.default_rng(0)
    for shape in ((3,), (4, 3), (1, 3), (0, 3), (2, 5, 3), (2, 0, 3), (2, 1, 2, 3)):
        for n_outputs in (1, 2, 3):
            x, weight, bias = (rng.standard_normal(one) for one in (shape, (3, n_outputs), (n_outputs,)))
            check_gradient(through_linear, x, weight, bias, name="Linear: x, weight, bias", make=Tensor)
            check_gradient(through_linear, x, weight, name="Linear without bias: x, weight", make=Tensor)


@pytest.mark.goal
@pytest.mark.task("05.4")
def test_goal_an_empty_row_gives_its_input_back():
    check_out(Sequential()(np.array([1.0, 2.0])), [1.0, 2.0], "[1, 2] through Sequential()")


@pytest.mark.goal
@pytest.mark.task("05.4")
def test_goal_random_rows_do_what_their_modules_do():
    """Up to twenty modules, some of them used more than once."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        some = [
            Times(float(rng.uniform(-2.0, 2.0))) if i % 2 else Plus(float(rng.uniform(-2.0, 2.0))) for i in range(6)
        ]
        row = [some[i] for i in rng.integers(6, size=rng.integers(1, 21))]
        wanted = np.array([1.0, -1.0])
        for module in row:
            wanted = wanted + module.number if isinstance(module, Plus) else wanted * module.number
        check_out(Sequential(*row)(np.array([1.0, -1.0])), wanted, f"a row of {len(row)} modules", probe=which_way)


@pytest.mark.goal
@pytest.mark.task("05.5")
def test_goal_the_expected_value_stays():
    for seed, p in enumerate((0.1, 0.5, 0.9)):
        out = Dropout(p, np.random.default_rng(seed))(np.ones((500, 400)))
        check_tensor(out, (500, 400), np.float64, f"Dropout({p}) of 200,000 ones")
        band = 6.0 * np.sqrt(p / (1.0 - p) / out.size)
        mean = float(out.data.mean())
        if abs(mean - 1.0) > band:
            message = f"the mean of 200,000 ones through Dropout({p}) is {mean:.4f}, expected 1 to within {band:.4f}"
            raise CheckFailed(message, ask(which_dropout))


@pytest.mark.goal
@pytest.mark.task("05.5")
def test_goal_dropout_takes_every_shape_and_matches_central_differences():
    for shape in ((), (1,), (7,), (0, 3), (2, 1, 3), (4, 5)):
        x = np.asarray(np.random.default_rng(0).standard_normal(shape))
        check_gradient(lambda x: Dropout(0.4, np.random.default_rng(1))(x), x, name="Dropout(0.4)", make=Tensor)
        check_out(Dropout(0.0)(x), x, f"shape {shape} through Dropout(0)")


@pytest.mark.goal
@pytest.mark.task("05.6")
def test_goal_every_module_of_a_random_tree_is_told():
    for seed in range(30):
        modules = {}
        model = random_tree(np.random.default_rng(seed), "", 4, {}, modules)
        for mode in MODES:
            getattr(model, mode)()
            check_told({"the module": model, **modules}, mode)


# What the checks are made of.


def xor_network(seed: int) -> Sequential:
    rng = np.random.default_rng(seed)
    return Sequential(Linear(2, 4, rng=rng), Tanh(), Linear(4, 1, rng=rng))


def loss_of(model: Sequential) -> Tensor:
    """The squared error for each of the four points."""
    out = model(XOR)
    check_tensor(out, (4, 1), np.float64, "what a network of widths 2, 4, 1 makes of four points", probe=which_way)
    error = out - TARGET
    return error * error


def linear(weight, bias) -> Linear:
    """A layer with these numbers."""
    weight, bias = np.array(weight), np.array(bias)
    layer = Linear(*weight.shape)
    layer.weight, layer.bias = Tensor(weight), Tensor(bias)
    return layer


def through_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    layer = Linear(*weight.shape, bias=bias is not None)
    layer.weight, layer.bias = weight, bias
    return layer(x)


def random_tree(rng, path: str, depth: int, parameters: dict, modules: dict) -> Box:
    """A module that holds tensors, modules, lists and dicts; notes their paths in `parameters` and `modules`."""
    module = Box()

    def make(path: str, depth: int):
        kind = rng.integers(6 if depth else 2)
        if kind == 0:
            return parameters.setdefault(path, Tensor(rng.standard_normal(2)))
        if kind == 1:
            return as_tensor(rng.standard_normal(2))
        if kind == 2:
            members = [make(f"{path}.{i}", depth - 1) for i in range(rng.integers(3))]
            return members if rng.integers(2) else tuple(members)
        if kind == 3:
            return {key: make(f"{path}.{key}", depth - 1) for key in ("x", "y")}
        modules[path] = random_tree(rng, path, depth - 1, parameters, modules)
        return modules[path]

    for name in ("a", "b", "c"):
        setattr(module, name, make(f"{path}.{name}" if path else name, depth))
    return module


def named(parameters: dict) -> str:
    return ", ".join(parameters) or "none"


def check_array(array, shape: tuple, what: str) -> None:
    """Is it a float64 array of this shape, with finite numbers in it?"""
    if type(array) is not np.ndarray:
        diagnosis = "Nothing comes back: is there a return?" if array is None else "A NumPy array belongs there."
        raise CheckFailed(f"{what} is of type {type(array).__name__}, expected an array", diagnosis)
    if array.shape != shape:
        diagnosis = "Inputs come first, outputs second." if array.shape == shape[::-1] else None
        raise CheckFailed(f"{what} has shape {array.shape}, expected {shape}", diagnosis)
    if array.dtype != np.float64:
        raise CheckFailed(f"{what} is {array.dtype}, expected float64")
    if not np.isfinite(array).all():
        raise CheckFailed(f"{what} holds numbers that are not finite: {array.ravel()[:4]}")


def check_tensor(out, shape: tuple, dtype, what: str, probe=None) -> None:
    """Is it a tensor of this shape and dtype, with finite numbers in it?"""
    if not isinstance(out, Tensor):
        diagnosis = "Nothing comes back: is there a return?" if out is None else "A layer turns a Tensor into a Tensor."
        raise CheckFailed(f"{what} is of type {type(out).__name__}, expected a Tensor", diagnosis)
    if out.shape != shape:
        raise CheckFailed(f"{what} has shape {out.shape}, expected {shape}", ask(probe))
    if out.dtype != dtype:
        raise CheckFailed(f"{what} is {out.dtype}, expected {np.dtype(dtype)}", "Numbers were promoted on the way.")
    if not np.isfinite(out.data).all():
        raise CheckFailed(f"{what} holds numbers that are not finite: {out.data.ravel()[:4]}", ask(probe))


def check_out(out, wanted, what: str, probe=None, tolerance: float = 1e-9) -> None:
    """Compare what a layer gives with what it should."""
    wanted = np.asarray(wanted)
    check_tensor(out, wanted.shape, wanted.dtype, what, probe)
    check_close(out.data, wanted, what, tolerance, probe)


def check_layer(layer: Module, x, wanted, what: str, probe=None, tolerance: float = 1e-9) -> Tensor:
    """What a layer gives, twice; nothing may stay in it from the first time. Returns the first result."""
    with nothing_else_changes("layer(x)", layer=layer, x=x):
        out = explained(lambda: layer(x), probe)
        check_out(out, wanted, what, probe, tolerance)
    check_out(layer(x), wanted, f"{what}, called a second time,", lambda: SECOND_CALL, tolerance)
    return out


def check_parameters(module: Module, wanted: dict) -> None:
    """Every tensor under its name, and no other, twice. Their order is free."""
    with nothing_else_changes("named_parameters()", module=module):
        check_found(dict(module.named_parameters()), wanted, which_part)
    check_found(dict(module.named_parameters()), wanted, lambda: SECOND_CALL)


def check_found(found: dict, wanted: dict, probe) -> None:
    if set(found) == set(wanted) and all(found[name] is wanted[name] for name in wanted):
        return
    other = [name for name, one in found.items() if not isinstance(one, Tensor)]
    if other:
        message = f"of a module that holds {named(wanted)}:\n{other[0]} is listed as {type(found[other[0]]).__name__}"
        raise CheckFailed(message, "The tensor itself belongs into `found`, not its numbers.")
    if set(found) == set(wanted):
        message = f"of a module that holds {named(wanted)}:\nall names are there, but some lead to another tensor"
        raise CheckFailed(message, ask(probe))
    missing = [name for name in wanted if name not in found]
    surplus = [name for name in found if name not in wanted]
    message = f"of a module that holds {named(wanted)}:\n" + "\n".join(
        f"{what}: {named(dict.fromkeys(names))}"
        for what, names in (("not listed", missing), ("too many", surplus))
        if names
    )
    raise CheckFailed(message, ask(probe))


def check_spread(n_inputs: int, n_outputs: int, seed: int) -> None:
    """Is the mean square of the starting weights 2 / n_inputs, to within six standard errors?"""
    what = f"initial_weight({n_inputs}, {n_outputs}, rng)"
    weight = initial_weight(n_inputs, n_outputs, np.random.default_rng(seed))
    check_array(weight, (n_inputs, n_outputs), what)
    ratio = float(np.mean(weight**2)) * n_inputs / 2.0
    if abs(ratio - 1.0) > 6.0 * np.sqrt(2.0 / weight.size):
        message = (
            f"the standard deviation of {what} is {weight.std():.4g}, expected about {np.sqrt(2.0 / n_inputs):.4g}"
        )
        raise CheckFailed(message, ask(which_spread))


def check_told(modules: dict, mode: str) -> None:
    """Is `training` what it should be, in every one of the modules?"""
    wrong = [name for name, module in modules.items() if module.training is not (mode == "train")]
    if wrong:
        found = {repr(modules[name].training)[:40] for name in wrong}
        message = f"after {mode}(), training is {' or '.join(sorted(found))} in {', '.join(wrong[:4])}"
        raise CheckFailed(f"{message}, expected {mode == 'train'}", ask(which_told))


# The second look: taken only where a check has failed, at other modules and numbers, to tell its cause from the others.


def which_part() -> str | None:
    """The simplest thing to hold a tensor in, in which it is not found."""
    a, b = Tensor([5.0]), Tensor([6.0])
    known = {a: Tensor([7.0])}  # a dict that has the tensor for a name
    collect_parameters(Box(a=a, b=b), "", known)
    if "a" not in known and "b" in known:
        return "`in found` looks through the names. The tensors found so far are found.values()."
    if len(found := list(dict(Box(a=a).named_parameters()).values())) == 1 and found[0] is not a:
        return "What is found is a copy: the tensor itself belongs into `found`, since it is what learns."
    places = {
        "Not even a tensor that the module itself holds is found: is it put into `found`, the one that was given?": (
            Box(a=a),
            [a],
        ),
        "What a module inside holds is not found: how does the search go on there?": (Box(inner=Box(a=a)), [a]),
        "One module inside is searched, but not the one inside that.": (Box(inner=Box(inner=Box(a=a))), [a]),
        "A name is a whole path: two modules use the same name here, and one tensor takes the other's place.": (
            Box(first=Box(a=a), second=Box(a=b)),
            [a, b],
        ),
        "What is in a list is not found.": (Box(many=[a, Box(b=b)]), [a, b]),
        "What is in a dict is not found.": (Box(many={"a": a, "b": Box(b=b)}), [a, b]),
        "What is in a list inside a dict is not found.": (Box(many={"a": [a]}), [a]),
        "What is in a tuple is not found.": (Box(many=(a,)), [a]),
    }
    kinds = {
        "A constant is listed as well: nobody asks for its gradient.": (Box(a=a, b=as_tensor(6.0)), [a]),
        "A tensor that two names lead to is listed twice.": (Box(a=a, b=a), [a]),
        "Two tensors with the same numbers are taken for one.": (Box(a=a, b=(same := Tensor([5.0]))), [a, same]),
    }

    def first_wrong(cases):
        for cause, (module, wanted) in cases.items():
            found = dict(module.named_parameters()).values()
            if sorted(map(id, found)) != sorted(map(id, wanted)):
                return cause
        return None

    if cause := first_wrong(places):
        return cause
    names = list(dict(Box(inner=Box(a=a)).named_parameters()))
    if names != ["inner.a"]:
        return f"The tensors are right, but the a in a module called inner is named {names[0]!r}, not 'inner.a'."
    return first_wrong(kinds)


def which_spread() -> str | None:
    """Which known mistake spreads the weights of a layer with 300 inputs and 120 outputs like this?"""
    n, m = 300, 120
    weight = initial_weight(n, m, np.random.default_rng(11))
    if not weight.any() and initial_weight(1, 4, np.random.default_rng(11)).any():
        return "With one input it is right, with 300 all weights are 0: does // stand where / belongs?"
    if not weight.any():
        return "All weights are 0. Then all units of a layer do the same, and learn the same, for ever."
    if np.ptp(weight) == 0.0:
        return "All weights are the same number. Then all units of a layer do the same, and learn the same, for ever."
    if (weight > 0.0).all():
        return "Every weight is above 0. As many should be below, or all the sums come out large."
    ways = {
        "The numbers are not scaled at all: a sum of 300 of them comes out far too large.": 1.0,
        "The variance is 1 / n_inputs. That keeps a signal's size, but half of it is lost in the relu that follows.": 1
        / n,
        "The variance follows the number of outputs. A unit's sum has as many terms as there are inputs.": 2 / m,
        "The variance is 1 / n_outputs: a unit's sum has as many terms as there are inputs.": 1 / m,
        "The numbers are multiplied by the variance, and not by its square root.": (2 / n) ** 2,
        "The variance is 2 / (n_inputs + n_outputs), which is Glorot's: made for tanh, and too small for relu.": 2
        / (n + m),
        "The root is taken of 2 alone: it goes over the whole of 2 / n_inputs.": 2 / n**2,
        "The standard deviation is the inverse: the more inputs, the larger the weights.": n / 2,
        "The variance is a third of what it should be: numbers drawn between -1 and 1 have a variance of 1/3.": 2
        / n
        / 3,
        "The variance is 1 / (3 * n_inputs), as of an even draw between -1 / sqrt(n_inputs) and 1 / sqrt(n_inputs).": 1
        / n
        / 3,
        "The variance is a fixed one, whatever the number of inputs.": 0.01**2,
    }
    fitting = [way for way, variance in ways.items() if abs(weight.var() / variance - 1.0) < 0.05]
    return fitting[0] if len(fitting) == 1 else None


IN, WEIGHT, BIAS = (
    np.random.default_rng(seed).standard_normal(shape) for seed, shape in enumerate(((3, 3), (3, 3), 3))
)
which_linear = which_formula(
    lambda: linear(WEIGHT, BIAS)(IN).data,
    {
        "The bias is missing.": IN @ WEIGHT,
        "The bias goes along the wrong axis: it is one number for each output, not one for each row.": IN @ WEIGHT
        + BIAS[:, None],
        "The weight is transposed. Here its shape is (n_inputs, n_outputs): a row for each input.": IN @ WEIGHT.T
        + BIAS,
        "Input and weight are the other way round.": WEIGHT @ IN + BIAS,
        "Input and weight are multiplied element by element.": IN * WEIGHT + BIAS,
        "The bias is added before the product.": (IN + BIAS) @ WEIGHT,
        "The bias is subtracted.": IN @ WEIGHT - BIAS,
        "The bias is added twice.": IN @ WEIGHT + 2.0 * BIAS,
        "The biases are summed up: each output has one of its own.": IN @ WEIGHT + BIAS.sum(),
        "The average of the biases is added: each output has one of its own.": IN @ WEIGHT + BIAS.mean(),
        "There is a relu in it. Activations are modules of their own.": np.maximum(IN @ WEIGHT + BIAS, 0.0),
    },
)


def without_bias() -> str | None:
    try:
        Linear(2, 2, bias=False)(np.ones((1, 2)))
    except Exception:
        return "With bias=False the layer's bias is None: there is nothing to add."
    return None


def cut_off() -> str | None:
    """Which of the tensors that go in does the result know nothing of?"""
    x, layer = Tensor(IN), linear(WEIGHT, BIAS)
    layer(x).backward()
    lost = [name for name, one in (("x", x), ("weight", layer.weight), ("bias", layer.bias)) if not one.grad.any()]
    if lost:
        return f"Nothing gets back to {', '.join(lost)}: calculate with the tensors, not with their arrays."
    return None


which_way = which_formula(
    lambda: Sequential(Times(3.0), Plus(2.0), Times(10.0))(np.array([1.0])).data,
    {
        "The modules are called from the last to the first.": [36.0],
        "It ends after the first module.": [3.0],
        "Each module is given the x that came in, not what the one before it gave.": [10.0],
        "What the modules give is not used: x comes out as it came in.": [1.0],
        "The last module is left out.": [5.0],
        "The first module is left out.": [30.0],
        "Each module is called twice.": [1300.0],
        "What goes into a module is added to what it gives. A row hands on its result alone.": [110.0],
        "The results are summed. A row hands on, and only the last result comes out.": [58.0],
    },
)


def which_dropout() -> str | None:
    """How many of 40,000 ones does Dropout(0.3) drop, and what do the others become?"""
    p = 0.3
    out = Dropout(p, np.random.default_rng(12))(np.ones(40_000)).data
    share, kept = float(np.mean(out == 0.0)), out[out != 0.0]
    if share == 0.0 and np.allclose(out, 1.0):
        return "Nothing is dropped at all, though training is True. Is the condition the wrong way round?"
    if share > 0.0 and np.ptp(kept) > 1e-9:
        return None
    if abs(share - (1.0 - p)) < 0.02:
        return "It keeps with probability p, and drops the rest. p is the probability to drop."
    if abs(share - 0.5) < 0.02:
        return "Half of all numbers are dropped, whatever p says: where does self.p come in?"
    if abs(share - p) > 0.02:
        return None
    if np.allclose(kept, 1.0 / (1.0 - share), rtol=1e-9) and not np.isclose(share, p, rtol=1e-9):
        return "It divides by the share that happened to be kept this time: 1 - p is the share to be expected."
    ways = {
        "What is kept is not scaled up. Then the sums would be larger in use than they were while learning.": 1.0,
        "What is kept is divided by p. It is the share that is kept which has to be made up for.": 1.0 / p,
        "What is kept is multiplied by 1 - p: it shrinks where it should grow.": 1.0 - p,
        "What is kept is multiplied by p: it shrinks where it should grow.": p,
        "What is kept is multiplied by 1 + p: close for a small p, but it does not make up for what is dropped.": 1.0
        + p,
        "What is kept is scaled up twice.": 1.0 / (1.0 - p) ** 2,
    }
    fitting = [way for way, factor in ways.items() if np.allclose(kept, factor)]
    return fitting[0] if len(fitting) == 1 else None


def which_eval() -> str | None:
    layer = Dropout(0.3, np.random.default_rng(13))
    layer.training = False
    out = layer(np.ones(1_000)).data
    if (out == 0.0).any():
        return "It drops numbers in eval mode too: it has to ask `self.training` first."
    if np.allclose(out, 0.7):
        return "In eval mode it scales down. Scaling up while learning has made that unnecessary."
    if np.allclose(out, 1.0 / 0.7):
        return "In eval mode it scales up, though nothing is dropped there."
    return None


def which_told() -> str | None:
    """The simplest place for a module to be in, in which it is not told."""
    one = Box()
    for mode, other in (("eval", False), ("train", True)):
        getattr(one, mode)()
        first = one.training
        getattr(one, mode)()
        if bool(first) is other is not bool(one.training):
            return f"A second {mode}() in a row turns it around: set `training` to what is asked for, whatever it was."
        if one.training is not other and bool(one.training) is other:
            return "`training` is True or False: the module's attribute is set to that very thing."
    cases = {
        "Not even the module itself is told: is `self.training` set to what was asked for?": one,
        "A module inside is not told the same.": Box(inner=one),
        "Of two modules inside only the first is told: where does the loop end?": Box(first=Box(), second=one),
        "A module inside is told, but not the one inside that: who tells it?": Box(inner=Box(inner=one)),
        "A module in a list is not told. Which method gives the modules in lists as well?": Box(many=[one]),
        "A module in a dict is not told. Which method gives the modules in dicts as well?": Box(many={"one": one}),
    }
    for cause, module in cases.items():
        for mode in ("eval", "train"):
            one.training = mode == "eval"
            module.training = one.training
            getattr(module, mode)()
            if one.training != (mode == "train"):
                return cause
    module = Box(inner=one)
    module.eval()
    one.train()
    module.eval()
    if one.training and not module.training:
        return "A module that is in this mode already has to tell the others all the same: one of them may not be."
    for mode in ("eval", "train"):
        module = Box(inner=one)
        getattr(module, mode)()
        if bool(module.training) != (mode == "train"):
            return "The modules inside are told, but not the one that was asked."
    return None
