"""The optimizers of the reference walk as PyTorch's do, go on exactly from a saved state, and refuse what is wrong."""

import numpy as np
import pytest

from meintorch.layers import Linear
from meintorch.losses import l2_penalty
from meintorch.optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm, cosine_schedule
from meintorch.tensor import Tensor, as_tensor
from tests.course.oracle.pytorch import torch

SHAPES = [(), (1,), (3, 4), (0, 2), (2, 1, 3)]
PAIRS = [
    (lambda p: SGD(p, lr=0.05), lambda p: torch.optim.SGD(p, lr=0.05)),
    (lambda p: SGD(p, lr=0.05, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    (lambda p: Adam(p, lr=0.02), lambda p: torch.optim.Adam(p, lr=0.02)),
    (
        lambda p: Adam(p, lr=0.02, betas=(0.5, 0.8), eps=1e-3),
        lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.5, 0.8), eps=1e-3),
    ),
    (lambda p: AdamW(p, lr=0.02), lambda p: torch.optim.AdamW(p, lr=0.02)),
    (lambda p: AdamW(p, lr=0.02, weight_decay=0.4), lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.4)),
]
NAMES = ["SGD", "momentum", "Adam", "Adam with other betas", "AdamW", "AdamW with much decay"]
OPTIMIZERS = pytest.mark.parametrize("optimizer_of", [ours for ours, _ in PAIRS], ids=NAMES)


def random_arrays(seed, scale=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [np.asarray(scale * rng.standard_normal(shape), dtype) for shape in SHAPES]


def walk(optimizer, steps, dtype=np.float64):
    for step in steps:
        for parameter, gradient in zip(optimizer.params, random_arrays(1 + step, 10.0 ** (step % 5 - 2), dtype)):
            parameter.grad = gradient
        optimizer.step()


@pytest.mark.parametrize(("optimizer_of", "oracle_of"), PAIRS, ids=NAMES)
@pytest.mark.parametrize("max_norm", [None, 2.0])
def test_fifty_steps_end_where_pytorch_ends(optimizer_of, oracle_of, max_norm):
    ours = [Tensor(array.copy()) for array in random_arrays(0)]
    theirs = [torch.tensor(array.copy(), requires_grad=True) for array in random_arrays(0)]
    optimizer, oracle = optimizer_of(ours), oracle_of(theirs)
    for step in range(50):
        for one, other, gradient in zip(ours, theirs, random_arrays(1 + step, 10.0 ** (step % 5 - 2))):
            one.grad, other.grad = gradient, torch.tensor(gradient)
        if max_norm is not None:
            wanted = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
            assert clip_grad_norm(ours, max_norm) == pytest.approx(wanted.item(), rel=1e-12)
            for one, other in zip(ours, theirs):
                np.testing.assert_allclose(one.grad, other.grad.numpy(), rtol=1e-6, atol=1e-6)
        optimizer.step()
        oracle.step()
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one.data, other.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_a_cosine_without_warm_up_is_pytorchs():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.05)
    for step in range(21):
        assert cosine_schedule(step, 20, 0.3, floor=0.05) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()


@OPTIMIZERS
def test_a_saved_state_goes_on_exactly(optimizer_of):
    whole = optimizer_of([Tensor(array) for array in random_arrays(0)])
    walk(whole, range(20))
    first = optimizer_of([Tensor(array) for array in random_arrays(0)])
    walk(first, range(10))
    saved = first.state_dict()
    second = optimizer_of([Tensor(parameter.data.copy()) for parameter in first.params])
    walk(first, range(10, 15))  # the saved state is a copy, which this does not change
    second.load_state_dict(saved)
    walk(second, range(10, 20))
    assert (second.steps, second.lr) == (20, whole.lr)
    for one, other in zip(second.params, whole.params):
        np.testing.assert_array_equal(one.data, other.data)


def test_a_loaded_state_is_a_copy_and_brings_its_learning_rate():
    first = SGD([Tensor([1.0])], lr=0.1, momentum=0.9)
    first.params[0].grad = np.array([1.0])
    first.step()
    saved = first.state_dict()
    second = SGD([Tensor([1.0])], lr=0.5, momentum=0.9)
    second.load_state_dict(saved)
    second.params[0].grad = np.array([1.0])
    second.step()
    assert second.lr == 0.1
    assert saved["0.velocity"].tolist() == [1.0]


@OPTIMIZERS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_stay_in_place_and_keep_their_dtype(optimizer_of, dtype):
    parameters = [Tensor(array) for array in random_arrays(0, dtype=dtype)]
    arrays = [parameter.data for parameter in parameters]
    optimizer = optimizer_of(parameters)
    optimizer.lr = np.float64(0.01)  # as a schedule made of NumPy numbers would set it
    walk(optimizer, range(3), dtype)
    for parameter, array in zip(parameters, arrays):
        assert parameter.data is array
        assert parameter.data.dtype == dtype
    assert {array.dtype for state in optimizer.state for array in state.values()} <= {np.dtype(dtype)}


@OPTIMIZERS
def test_a_step_leaves_the_gradients_alone(optimizer_of):
    optimizer = optimizer_of([Tensor(array) for array in random_arrays(0)])
    walk(optimizer, range(3))
    for parameter, gradient in zip(optimizer.params, random_arrays(3, 1.0)):
        np.testing.assert_array_equal(parameter.grad, gradient)
        assert not any(np.shares_memory(parameter.grad, array) for array in optimizer.state[0].values())


@OPTIMIZERS
def test_a_parameter_that_no_gradient_has_reached_is_no_trouble(optimizer_of):
    optimizer = optimizer_of([Tensor([1.0, 2.0]), Tensor(3.0)])
    for _ in range(2):
        optimizer.step()
    for parameter in optimizer.params:
        assert type(parameter.data) is np.ndarray
        assert np.isfinite(parameter.data).all()


def test_clipping_leaves_out_what_no_gradient_has_reached():
    a, b = Tensor([0.0, 0.0]), Tensor([0.0])
    a.grad = np.array([3.0, 4.0])
    assert clip_grad_norm((parameter for parameter in (a, b)), np.float64(1.0)) == 5.0
    np.testing.assert_allclose(a.grad, [0.6, 0.8])
    np.testing.assert_array_equal(b.grad, [0.0])


def test_clipping_keeps_float32_with_a_limit_that_is_a_numpy_number():
    a, b = Tensor(np.float32([0.0])), Tensor([0.0])
    a.grad, b.grad = np.float32([3.0]), np.array([4.0])
    assert clip_grad_norm([a, b], np.float64(1.0)) == 5.0
    assert (a.grad.dtype, b.grad.dtype) == (np.float32, np.float64)


def test_zero_grad_forgets_the_gradients_of_all_parameters():
    optimizer = SGD([Tensor([1.0]), Tensor([[2.0]])], lr=0.1)

    for parameter in optimizer.params:
        parameter.grad = np.ones(parameter.shape)
    optimizer.zero_grad()
    assert [parameter.grad.tolist() for parameter in optimizer.params] == [[0.0], [[0.0]]]


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda p: SGD([], lr=0.1), ValueError, "there are none"),
        (lambda p: SGD(iter([]), lr=0.1), ValueError, "there are none"),
        (lambda p: SGD([p], lr=-0.1), ValueError, "not -0.1"),
        (lambda p: SGD([p], lr=float("nan")), ValueError, "not nan"),
        (lambda p: SGD([p], lr=float("inf")), ValueError, "not inf"),
        (lambda p: SGD([p], "0.1"), TypeError, "the learning rate is a number, not '0.1' of type str"),
        (lambda p: SGD([p], None), TypeError, "not None"),
        (lambda p: SGD([p], True), TypeError, "of type bool"),
        (lambda p: SGD([p], Tensor(0.1)), TypeError, "of type Tensor"),
        (lambda p: SGD([p, p], 0.1), ValueError, "parameter 1 is there twice"),
        (lambda p: SGD([p * 2.0], 0.1), ValueError, r"parameter 0 was computed: .* Tensor\(\[2., 4.\]\)"),
        (lambda p: SGD([as_tensor([1.0])], 0.1), ValueError, "parameter 0 is a constant"),
        (lambda p: SGD([p], 0.1, "0.9"), TypeError, "momentum is a number"),
        (lambda p: SGD([p], 0.1, float("nan")), ValueError, "not nan"),
        (lambda p: Adam([p], betas=0.9), TypeError, "betas are two numbers, not 0.9"),
        (lambda p: Adam([p], betas=(0.9, 0.99, 0.999)), ValueError, "betas are two numbers"),
        (lambda p: Adam([p], betas=(0.9,)), ValueError, "betas are two numbers"),
        (lambda p: Adam([p], betas=(0.9, "0.99")), TypeError, "each of the betas is a number"),
        (lambda p: Adam([p], betas=(0.9, float("nan"))), ValueError, "nan"),
        (lambda p: Adam([p], eps=-1.0), ValueError, "eps is 0 or more, and finite, not -1.0"),
        (lambda p: Adam([p], eps=float("nan")), ValueError, "not nan"),
        (lambda p: Adam([p], eps="small"), TypeError, "eps is a number"),
        (lambda p: AdamW([p], weight_decay=float("nan")), ValueError, "not nan"),
        (lambda p: SGD([p.data], lr=0.1), TypeError, "of type ndarray"),
        (lambda p: SGD([p, 3.0], lr=0.1), TypeError, "not 3.0 of type float"),
        (lambda p: SGD([p], lr=0.1, momentum=1.0), ValueError, "below 1, not 1.0"),
        (lambda p: SGD([p], lr=0.1, momentum=-0.5), ValueError, "not -0.5"),
        (lambda p: Adam([p], betas=(0.9, 1.0)), ValueError, r"not \(0.9, 1.0\)"),
        (lambda p: AdamW([p], weight_decay=-0.1), ValueError, "not -0.1"),
        (lambda p: Optimizer([p], lr=0.1).step(), TypeError, "Optimizer does not define update"),
        (lambda p: SGD([p], lr=0.1).load_state_dict({"lr": 0.1, "steps": 1}), ValueError, "optimizer is missing"),
        (
            lambda p: SGD([p], lr=0.1).load_state_dict(
                {"optimizer": "SGD", "lr": 0.1, "steps": 1, "0.velocity": np.zeros(3)}
            ),
            ValueError,
            r"0.velocity has shape \(3,\)",
        ),
        (
            lambda p: SGD([p], lr=0.1).load_state_dict(
                {"optimizer": "SGD", "lr": 0.1, "steps": 1, "1.velocity": np.zeros(2)}
            ),
            ValueError,
            "1.velocity",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_named(call, error, named):
    with pytest.raises(error, match=named):
        call(Tensor([1.0, 2.0]))


MODEL = Linear(2, 1, rng=0)


@pytest.mark.parametrize(
    "take",
    [lambda params: Adam(params), lambda params: clip_grad_norm(params, 1.0), lambda params: l2_penalty(params, 0.1)],
    ids=["Adam", "clip_grad_norm", "l2_penalty"],
)
@pytest.mark.parametrize(
    ("params", "told"),
    [
        (MODEL, r"not a Linear: give model.parameters\(\)"),
        (MODEL.weight, r"a single one: write \[tensor\]"),
        (MODEL.named_parameters(), r"model.parameters\(\), not .*tuple"),
        (dict(MODEL.named_parameters()), r"model.parameters\(\), not .*dict"),
        (MODEL.state_dict(), r"model.parameters\(\), not .*dict"),
        ([[MODEL.weight]], "of type list"),
        (None, "not None of type NoneType"),
        ("weight", "not 'weight' of type str"),
        (3, "not 3 of type int"),
    ],
)
def test_what_are_no_parameters_is_refused_with_what_to_give(take, params, told):
    with pytest.raises(TypeError, match=told):
        take(params)


def test_parameters_may_come_one_by_one():
    assert len(Adam(parameter for parameter in MODEL.parameters()).params) == 2
    assert clip_grad_norm((parameter for parameter in MODEL.parameters()), 1.0) == 0.0
    assert clip_grad_norm([], 1.0) == 0.0
    assert l2_penalty([], 0.1).item() == 0.0


@pytest.mark.parametrize(
    ("gradient", "dtype", "norm", "clipped"),
    [
        ([3e20, 4e20], np.float32, 5e20, [0.6, 0.8]),
        ([3e-30, 4e-30], np.float32, 5e-30, [3e-30, 4e-30]),
        ([3e200, 4e200], np.float64, 5e200, [0.6, 0.8]),
        ([3e-200, 4e-200], np.float64, 5e-200, [3e-200, 4e-200]),
        ([3.0, np.inf], np.float64, np.inf, [3.0, np.inf]),
        ([3.0, np.nan], np.float64, np.nan, [3.0, np.nan]),
        ([], np.float64, 0.0, []),
    ],
)
def test_clipping_takes_gradients_of_any_size_and_zeroes_none(gradient, dtype, norm, clipped):
    parameter = Tensor(np.zeros(len(gradient), dtype))
    parameter.grad = np.array(gradient, dtype)
    assert clip_grad_norm([parameter], 1.0) == pytest.approx(norm, rel=1e-6, nan_ok=True)
    assert parameter.grad.dtype == dtype
    np.testing.assert_allclose(parameter.grad, clipped, rtol=1e-6)


def test_clipping_several_parameters_of_enormous_gradients_keeps_the_direction():
    a, b = Tensor([0.0]), Tensor([0.0])
    a.grad, b.grad = np.array([3e200]), np.array([4e200])
    assert clip_grad_norm([a, b], 10.0) == pytest.approx(5e200)
    assert (a.grad[0], b.grad[0]) == (pytest.approx(6.0), pytest.approx(8.0))


@pytest.mark.parametrize(
    ("limit", "error"), [(-1.0, ValueError), (float("nan"), ValueError), ("1", TypeError), (None, TypeError)]
)
def test_a_limit_that_cannot_be_is_refused_and_changes_nothing(limit, error):
    parameter = Tensor([1.0])
    parameter.grad = np.array([5.0])
    with pytest.raises(error, match="max_norm"):
        clip_grad_norm([parameter], limit)
    assert parameter.grad.tolist() == [5.0]


def test_no_limit_is_inf():
    parameter = Tensor([1.0])
    parameter.grad = np.array([5.0])
    assert clip_grad_norm([parameter], np.inf) == 5.0
    assert parameter.grad.tolist() == [5.0]


@pytest.mark.parametrize(("lr", "error"), [("0.1", TypeError), (None, TypeError), (np.nan, ValueError)])
def test_a_learning_rate_that_is_none_is_refused_between_two_steps_too(lr, error):
    optimizer = SGD([Tensor([1.0])], lr=0.1)
    with pytest.raises(error, match="learning rate"):
        optimizer.lr = lr
    assert optimizer.lr == 0.1


@pytest.mark.parametrize(
    ("first", "second", "settings"),
    [
        (lambda p: SGD(p, 0.1, momentum=0.5), lambda p: SGD(p, 0.2), {"lr": 0.1, "momentum": 0.5}),
        (lambda p: Adam(p, 0.1, (0.5, 0.6), 1e-3), Adam, {"lr": 0.1, "betas": (0.5, 0.6), "eps": 1e-3}),
        (lambda p: AdamW(p, 0.1, (0.5, 0.6), 1e-3, 0.3), AdamW, {"betas": (0.5, 0.6), "weight_decay": 0.3}),
    ],
)
def test_a_state_brings_all_settings(first, second, settings):
    one, other = first([Tensor([1.0])]), second([Tensor([1.0])])
    other.load_state_dict({name: np.asarray(value) for name, value in one.state_dict().items()})  # as from a file
    assert {name: getattr(other, name) for name in settings} == settings
    for optimizer in (one, other):
        optimizer.params[0].grad = np.array([2.0])
        optimizer.step()
        optimizer.step()
    assert one.params[0].data.tolist() == other.params[0].data.tolist()


def test_a_state_without_settings_leaves_them_as_they_are():
    """So they were saved before optimizers knew of them."""
    optimizer = AdamW([Tensor([1.0])], betas=(0.5, 0.6), weight_decay=0.3)
    optimizer.load_state_dict({"optimizer": "AdamW", "lr": 0.1, "steps": 3, "0.mean": [1.0], "0.square": [1.0]})
    assert (optimizer.lr, optimizer.steps, optimizer.betas, optimizer.weight_decay) == (0.1, 3, (0.5, 0.6), 0.3)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"betas": 0.9}, ValueError, "betas are two numbers"),
        ({"betas": (0.9, 1.5)}, ValueError, "betas"),
        ({"eps": -1.0}, ValueError, "eps"),
        ({"lr": "fast"}, ValueError, "lr is a number"),
        ({"lr": np.nan}, ValueError, "lr"),
        ({"steps": -1}, ValueError, "steps is at least 0"),
        ({"steps": 1.5}, ValueError, "steps is a whole number"),
        ({"0.mean": ["a", "b"]}, ValueError, "0.mean has"),
        ({"0.mean": np.full(2, None)}, ValueError, "0.mean has"),
        ({"0.mean": Tensor([1.0, 2.0])}, ValueError, "0.mean has"),
        ({0: 1.0}, ValueError, "does not fit the parameters"),
        (None, TypeError, "a state is a dict"),
    ],
)
def test_a_state_that_is_wrong_changes_nothing(change, error, told):
    optimizer = Adam([Tensor([1.0, 2.0])])
    optimizer.params[0].grad = np.array([1.0, 1.0])
    optimizer.step()
    before = optimizer.state_dict()
    with pytest.raises(error, match=told):
        optimizer.load_state_dict(change if change is None else {**before, "lr": 7.0, **change})
    assert str(optimizer.state_dict()) == str(before)


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ((-1, 10, 1.0), ValueError, "step is at least 0, not -1"),
        ((1.5, 10, 1.0), TypeError, "step is a whole number, not 1.5"),
        ((0, 0, 1.0), ValueError, "total_steps is at least 1"),
        ((0, 3, 1.0, 4), ValueError, "a warm-up of 4 steps is more than all 3 steps"),
        ((0, 3, 1.0, -1), ValueError, "warmup_steps is at least 0"),
        ((0, 3, -1.0), ValueError, "peak is 0 or more"),
        ((0, 3, np.nan), ValueError, "peak"),
        ((0, 3, "1"), TypeError, "peak is a number"),
        ((0, 3, 1.0, 0, -0.5), ValueError, "floor is 0 or more"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(arguments, error, told):
    with pytest.raises(error, match=told):
        cosine_schedule(*arguments)
