"""The parts of the reference's layers that are given: names, states, shapes, and what they refuse."""

import io
import pickle
import random

import numpy as np
import pytest

from meintorch.layers import Dropout, Flatten, Linear, Module, ReLU, Sequential, Sigmoid, Tanh
from meintorch.tensor import Tensor, as_tensor


class Holder(Module):
    def __init__(self, **held):
        vars(self).update(held)


def network(seed: int = 0, dtype=np.float64) -> Sequential:
    rng = np.random.default_rng(seed)
    return Sequential(Linear(2, 3, dtype=dtype, rng=rng), ReLU(), Linear(3, 1, bias=False, dtype=dtype, rng=rng))


def test_parameters_are_named_by_their_path_in_the_order_of_the_attributes():
    assert [name for name, _ in network().named_parameters()] == ["0.weight", "0.bias", "2.weight"]
    model = Holder(body=network(), heads={"left": Linear(1, 1), 7: [Linear(1, 1, bias=False)]})
    names = ["body.0.weight", "body.0.bias", "body.2.weight", "heads.left.weight", "heads.left.bias"]
    assert list(dict(model.named_parameters())) == [*names, "heads.7.0.weight"]
    assert all(a is b for a, (_, b) in zip(model.parameters(), model.named_parameters(), strict=True))


def test_children_are_found_in_lists_tuples_and_dicts_in_order():
    a, b, c, d = (Tanh() for _ in range(4))
    model = Holder(first=a, many=[b, ({"x": c},)], label="text", weight=Tensor([1.0]), last=d)
    assert model.children() == {"first": a, "many.0": b, "many.1.0.x": c, "last": d}
    assert Tanh().children() == {}
    assert list(Sequential(*[Tanh() for _ in range(12)]).children()) == [str(i) for i in range(12)]


def test_a_parameter_shared_by_two_modules_is_listed_saved_and_loaded_once():
    model = Holder(first=Linear(3, 3, bias=False), second=Linear(3, 3, bias=False))
    model.second.weight = model.first.weight
    assert list(dict(model.named_parameters())) == list(model.state_dict()) == ["first.weight"]
    model.load_state_dict({"first.weight": np.ones((3, 3))})
    assert model.second.weight.data.tolist() == np.ones((3, 3)).tolist()
    layer = Linear(2, 2)
    assert len(Sequential(layer, ReLU(), layer).parameters()) == 2


def test_a_module_shows_what_is_inside():
    assert repr(network()) == "Sequential(0: Linear(2, 3), 1: ReLU(), 2: Linear(3, 1, bias=False))"
    assert repr(Holder(many=[Tanh()])) == "Holder(many.0: Tanh())"
    assert repr(Dropout(0.25)) == "Dropout(0.25)"
    assert repr(Linear(1, 2, dtype=np.float32)) == "Linear(1, 2, dtype=float32)"


def test_what_is_too_long_for_a_line_is_shown_on_several():
    model = Sequential(network(), Holder(one=network(), two=Tanh()))
    assert repr(model) == (
        "Sequential(\n"
        "  0: Sequential(0: Linear(2, 3), 1: ReLU(), 2: Linear(3, 1, bias=False)),\n"
        "  1: Holder(\n"
        "    one: Sequential(0: Linear(2, 3), 1: ReLU(), 2: Linear(3, 1, bias=False)),\n"
        "    two: Tanh(),\n"
        "  ),\n"
        ")"
    )


def test_a_module_of_ones_own_says_more_of_itself():
    class Scale(Module):
        def extra_repr(self) -> str:
            return "by 2"

    assert repr(Sequential(Scale())) == "Sequential(0: Scale(by 2))"


def test_a_sequential_has_a_length_places_slices_and_an_order():
    model = network()
    first, second, third = model
    assert (len(model), len(Sequential())) == (3, 0)
    assert (model[0], model[-1], model[np.int64(1)]) == (first, third, second)
    assert isinstance(model[1:], Sequential)
    assert list(model[1:]) == [second, third]
    assert list(model[::-1]) == [third, second, first]
    assert len(model[5:]) == 0


def test_zero_grad_of_a_module_forgets_the_gradients_of_all_inside():
    model = Holder(rows=[network()], own=Tensor([1.0]))
    for parameter in model.parameters():
        parameter.grad = np.ones(parameter.shape)
    model.zero_grad()
    assert not any(parameter.grad.any() for parameter in model.parameters())


class Keeping(Module):
    """Its forward keeps what it has computed."""

    def __init__(self):
        self.layer = Linear(2, 2)

    def forward(self, x):
        self.out = self.layer(x)
        self.steps = [self.out * 2.0]
        return self.steps[0]


def test_what_forward_has_computed_is_no_parameter():
    model = Keeping()
    out = model(np.ones((1, 2)))
    assert list(model.state_dict()) == ["layer.weight", "layer.bias"]
    out.backward()  # afterwards what was computed has no inputs any more
    assert list(model.state_dict()) == ["layer.weight", "layer.bias"]
    Keeping().load_state_dict(model.state_dict())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Holder(d={1: Tensor([1.0]), "1": Tensor([2.0])}), "'1'"),
        (Holder(d={1: Tanh(), "1": Tanh()}), "'1'"),
        (Holder(a={"b": Tensor([1.0])}, **{"a.b": Tensor([2.0])}), "'a.b'"),
        (Holder(a={"b": Tanh()}, **{"a.b": Tanh()}), "'a.b'"),
        (Holder(one=[{"a.0.b": Tensor([1.0]), "a": [{"b": Tensor([2.0])}]}]), "'a.0.b'"),
    ],
)
def test_two_things_under_one_name_are_refused(model, name):
    for search in (model.parameters, model.state_dict, model.children, model.train, model.__repr__):
        with pytest.raises(ValueError, match=f"two things under the name {name}"):
            search()


def test_names_with_dots_are_no_trouble_where_they_are_the_only_ones():
    model = Holder(d={"layer": Linear(1, 1, bias=False), "layer.two": Linear(1, 1, bias=False)})
    assert [name for name, _ in model.named_parameters()] == ["d.layer.weight", "d.layer.two.weight"]


def test_a_module_that_holds_what_it_is_inside_of_is_named():
    inner = Holder()
    model = Holder(child=inner)
    inner.parent = model
    for search in (model.parameters, model.state_dict, model.train, model.eval, model.__repr__, model.zero_grad):
        with pytest.raises(
            ValueError, match=r"(child\.parent|parent\.child) leads back to what (child|parent) is inside of"
        ):
            search()
    around = []
    around.append(around)
    with pytest.raises(ValueError, match=r"things.0 leads back"):
        Holder(things=around).parameters()


def test_a_seed_is_a_seed():
    assert np.array_equal(Linear(2, 2, rng=0).weight.data, Linear(2, 2, rng=0).weight.data)
    assert np.array_equal(Linear(2, 2, rng=0).weight.data, Linear(2, 2, rng=np.random.default_rng(0)).weight.data)
    assert np.array_equal(Dropout(rng=0)(np.ones(64)).data, Dropout(rng=0)(np.ones(64)).data)


def test_a_state_is_a_copy():
    model = network()
    state = model.state_dict()
    before = model([[1.0, 2.0]]).data
    for array in state.values():
        array += 1.0
    assert np.array_equal(model([[1.0, 2.0]]).data, before)
    model.load_state_dict(state)
    state["0.bias"] += 1.0
    assert dict(model.named_parameters())["0.bias"].data.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda state: state.pop("0.bias"), "0.bias is missing"),
        (lambda state: state.update({"2.bias": np.zeros(1)}), "2.bias is not expected"),
        (lambda state: state.update({"0.bias": np.zeros(4)}), r"0.bias has shape \(4,\), expected \(3,\)"),
        (lambda state: state.update({"0.weight": np.zeros((3, 2))}), r"0.weight has shape \(3, 2\), expected \(2, 3\)"),
        (lambda state: state.update({"2.weight": np.zeros(3)}), r"2.weight has shape \(3,\), expected \(3, 1\)"),
        (lambda state: state.update({"0.bias": 0.0}), r"0.bias has shape \(\), expected \(3,\)"),
        (lambda state: state.update({"2.weight": [["a"], ["b"], ["c"]]}), "2.weight is no array of real numbers"),
        (lambda state: state.update({"2.weight": [["1"], ["2"], ["3"]]}), "2.weight is no array of real numbers"),
        (lambda state: state.update({"2.weight": np.full((3, 1), 1j)}), "2.weight is no array of real numbers"),
        (lambda state: state.update({"2.weight": np.full((3, 1), None)}), "2.weight is no array of real numbers"),
        (lambda state: state.update({"2.weight": [[1.0], [2.0, 3.0]]}), "2.weight is no array of real numbers"),
        (lambda state: state.update({"2.weight": Tensor(np.ones((3, 1)))}), "2.weight is no array .* of type Tensor"),
        (lambda state: [state.pop("0.bias"), state.update(extra=1.0)], "0.bias is missing; extra is not expected"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, told):
    model = network()
    before = model.state_dict()
    state = {name: array + 1.0 for name, array in before.items()}
    change(state)
    with pytest.raises(ValueError, match=told):
        model.load_state_dict(state)
    for name, array in model.state_dict().items():
        assert np.array_equal(array, before[name]), name


def test_a_state_survives_numpys_files_and_keeps_the_tensors():
    model, other = network(0), network(1)
    file = io.BytesIO()
    np.savez(file, **model.state_dict())
    file.seek(0)
    parameters = other.parameters()
    other.load_state_dict(np.load(file))
    assert all(a is b for a, b in zip(parameters, other.parameters(), strict=True))
    assert np.array_equal(model([[1.0, 2.0]]).data, other([[1.0, 2.0]]).data)


def test_a_loaded_state_takes_the_dtype_of_the_module():
    single = network(0, np.float32)
    single.load_state_dict(network(1).state_dict())
    assert {parameter.dtype for parameter in single.parameters()} == {np.dtype(np.float32)}


def test_a_float32_network_computes_in_float32_and_so_do_its_gradients():
    model = Sequential(network(0, np.float32), Dropout(0.5, np.random.default_rng(0)), Sigmoid(), Flatten())
    out = model(np.ones((4, 2), np.float32))
    out.backward()
    assert out.dtype == np.float32
    assert {parameter.grad.dtype for parameter in model.parameters()} == {np.dtype(np.float32)}


def test_a_linear_layer_starts_with_its_bias_at_zero_and_repeats_itself_from_a_seed():
    layer, again = (Linear(2, 3, rng=np.random.default_rng(0)) for _ in range(2))
    assert layer.bias.data.tolist() == [0.0, 0.0, 0.0]
    assert np.array_equal(layer.weight.data, again.weight.data)
    assert Linear(2, 3, bias=False).bias is None
    assert not np.array_equal(Linear(2, 3).weight.data, Linear(2, 3).weight.data)


@pytest.mark.parametrize(
    ("shape", "flat"), [((2, 3, 4), (2, 12)), ((2, 3), (2, 3)), ((5,), (5, 1)), ((0, 3, 4), (0, 0)), ((2, 0), (2, 0))]
)
def test_flatten_keeps_the_first_axis(shape, flat):
    x = Tensor(np.arange(float(np.prod(shape))).reshape(shape))
    out = Flatten()(x)
    assert out.shape == flat
    assert np.array_equal(out.data.ravel(), x.data.ravel())
    out.backward(2.0 * np.ones(flat))
    assert np.array_equal(x.grad, 2.0 * np.ones(shape))


@pytest.mark.parametrize(
    ("module", "function"),
    [(ReLU, lambda x: np.maximum(x, 0.0)), (Tanh, np.tanh), (Sigmoid, lambda x: 1.0 / (1.0 + np.exp(-x)))],
)
def test_activations_are_modules_without_parameters(module, function):
    x = np.array([[-2.0, 0.5], [1.0, 3.0]])
    assert np.allclose(module()(x).data, function(x), rtol=1e-12)
    assert module().parameters() == []
    assert isinstance(module(), Module)
    assert repr(module()) == f"{module.__name__}()"
    assert isinstance(pickle.loads(pickle.dumps(module())), module)


def test_constants_are_no_parameters_and_are_not_saved():
    model = Holder(weight=Tensor([1.0]), shift=as_tensor([2.0]))
    assert list(model.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: Holder()([1.0]), TypeError, r"Holder does not define forward\(x\)"),
        (lambda: Sequential(Tanh(), np.tanh), TypeError, "Sequential takes modules, not <ufunc 'tanh'>"),
        (lambda: network()[3], IndexError, "3 modules in this Sequential, and none at 3"),
        (lambda: network()[-4], IndexError, "none at -4"),
        (lambda: network()["0"], TypeError, "a whole number or a slice, not '0' of type str"),
        (lambda: network()[1.0], TypeError, "not 1.0 of type float"),
        (lambda: Linear(2, 2, dtype=int), TypeError, "float64 or np.float32, not <class 'int'>"),
        (lambda: Linear(2, 2, dtype="float16"), TypeError, "not 'float16'"),
        (lambda: Linear(2, 2, dtype="numbers"), TypeError, "not 'numbers'"),
        (lambda: Linear(0, 3), ValueError, "n_inputs of Linear is at least 1, not 0"),
        (lambda: Linear(3, -1), ValueError, "n_outputs of Linear is at least 1, not -1"),
        (lambda: Linear(2.0, 3), TypeError, "n_inputs of Linear is a whole number, not 2.0 of type float"),
        (lambda: Linear(True, 3), TypeError, "not True of type bool"),
        (lambda: Linear(2, "3"), TypeError, "not '3' of type str"),
        (lambda: Linear(2, 2, rng="0"), TypeError, "a seed .* or a np.random.Generator, not '0'"),
        (lambda: Linear(2, 2, rng=random.Random(0)), TypeError, "of type Random"),
        (lambda: Linear(2, 2, rng=True), TypeError, "of type bool"),
        (lambda: Linear(2, 2, rng=-1), ValueError, "not -1"),
        (lambda: Dropout(0.5, rng=1.5), TypeError, "not 1.5 of type float"),
        (lambda: Dropout("0.5"), TypeError, "p of Dropout is a number, not '0.5' of type str"),
        (lambda: Dropout(None), TypeError, "not None"),
        (lambda: network().load_state_dict(None), TypeError, "a state is a dict of arrays"),
        (lambda: network().load_state_dict(network()), TypeError, "of type Sequential"),
        (lambda: Sequential([Tanh()]), TypeError, "of type list"),
        (lambda: Dropout(1.0), ValueError, "below 1, not 1.0"),
        (lambda: Dropout(-0.1), ValueError, "at least 0"),
        (lambda: Dropout(float("nan")), ValueError, "not nan"),
        (lambda: Linear(2, 3)(np.ones((4, 3))), ValueError, r"\(4, 3\) and \(2, 3\)"),
        (lambda: Flatten()(1.0), TypeError, "no length"),
        (lambda: network()("text"), TypeError, "'text'"),
    ],
)
def test_what_cannot_be_is_refused(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_train_and_eval_reach_every_module_and_return_the_outermost():
    inner, deep = Dropout(0.5), Dropout(0.5)
    model = Holder(many=[inner, Sequential(Tanh(), Holder(one={"x": deep}))])
    assert model.eval() is model
    assert not (model.training or inner.training or deep.training)
    assert model.train() is model
    assert model.training and inner.training and deep.training
    assert Module.training is True
