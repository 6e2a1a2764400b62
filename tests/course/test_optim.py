"""The optimizers of the reference walk as PyTorch's do, go on exactly from a saved state, and refuse what is wrong."""

import os

import numpy as np
import pytest

from meintorch.optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm, cosine_schedule
from meintorch.tensor import Tensor

if os.environ.get("CI"):
    import torch
else:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle: python -m pip install -e '.[oracle]'")

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
