"""The reference's losses: what they refuse, what they agree with PyTorch in, and how they take extreme numbers."""

import numpy as np
import pytest

from meintorch.activations import log_softmax
from meintorch.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_loss,
    l2_penalty,
    mse_loss,
    nll_loss,
    one_hot,
)
from meintorch.tensor import Tensor
from tests.course.oracle.pytorch import compare, torch

REDUCTIONS = ["mean", "sum", "none"]
NUMBERS = [(), (1,), (5,), (3, 4), (2, 1, 3), (0, 3)]
ROWS = [(3,), (1,), (5, 3), (3, 3), (2, 1), (2, 3, 4), (1, 1, 2), (0, 3)]  # the classes are the last axis
TABLE = np.arange(6.0).reshape(2, 3)

by_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: mse_loss(Tensor(np.ones(3)), np.ones((3, 1))), ValueError, r"mse_loss .*\(3,\), not \(3, 1\)"),
        (lambda: mse_loss(Tensor(np.ones(3)), 1.0), ValueError, r"target of shape \(3,\), not \(\)"),
        (lambda: hinge_loss(Tensor(np.ones(3)), [1, -1]), ValueError, r"labels of shape \(3,\), not \(2,\)"),
        (lambda: hinge_loss(Tensor(np.ones(3)), [1, 0, -1]), ValueError, "1 and -1, not 0.0"),
        (lambda: hinge_loss(Tensor(np.ones(2)), [True, False]), ValueError, r"for labels 1 and 0 give 2 \* labels - 1"),
        (lambda: l2_penalty([Tensor([1.0])], -0.1), ValueError, "strength of l2_penalty is 0 or more, .* not -0.1"),
        (lambda: l2_penalty([Tensor([1.0])], np.nan), ValueError, "not nan"),
        (lambda: l2_penalty([Tensor([1.0])], "0.1"), TypeError, "strength of l2_penalty is a number"),
        (lambda: hinge_loss(Tensor(np.ones(2)), [1, 2]), ValueError, "1 and -1, not 2.0"),
        (lambda: hinge_loss(Tensor(np.ones(2)), [1, np.nan]), ValueError, "1 and -1, not nan"),
        (
            lambda: binary_cross_entropy_with_logits(Tensor(np.ones((2, 1))), [0, 1]),
            ValueError,
            r"targets of shape \(2, 1\), not \(2,\)",
        ),
        (lambda: binary_cross_entropy_with_logits(Tensor(np.ones(2)), [0, -1]), ValueError, "0 to 1, not -1.0"),
        (lambda: binary_cross_entropy_with_logits(Tensor(np.ones(2)), [1.5, 0]), ValueError, "0 to 1, not 1.5"),
        (lambda: binary_cross_entropy_with_logits(Tensor(np.ones(2)), [0, np.nan]), ValueError, "0 to 1, not nan"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(call, error, named):
    with pytest.raises(error, match=named):
        call()


@pytest.mark.parametrize("loss", [nll_loss, cross_entropy])
@pytest.mark.parametrize(
    ("scores", "labels", "error", "named"),
    [
        (TABLE, [0, 3], ValueError, "3 classes a label is from 0 to 2, not 3"),
        (TABLE, [0, -1], ValueError, "from 0 to 2, not -1"),
        (TABLE, [0.0, 1.0], TypeError, "integers, not float64"),
        (TABLE, [True, False], TypeError, "integers, not bool"),
        (TABLE, ["a", "b"], TypeError, "integers, not <U1"),
        (TABLE, Tensor([0, 1]), TypeError, "not a Tensor"),
        (TABLE, [0, 1, 2], ValueError, r"scores of shape \(2, 3\) need labels of shape \(2,\), not \(3,\)"),
        (TABLE, [[0], [1]], ValueError, r"labels of shape \(2,\), not \(2, 1\)"),
        (TABLE, [[0, 0, 1], [1, 0, 0]], ValueError, r"not \(2, 3\): for one-hot rows give labels.argmax\(-1\)"),
        (TABLE, [], ValueError, r"labels of shape \(2,\), not \(0,\)"),
        (TABLE, [[0], [1, 2]], ValueError, "not lists of differing lengths"),
        (TABLE, None, TypeError, "integers, not object"),
        (TABLE, 0, ValueError, r"labels of shape \(2,\), not \(\)"),
        (np.array(1.0), 0, ValueError, r"axis with a score for each class, not shape \(\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused_and_named(loss, scores, labels, error, named):
    with pytest.raises(error, match=named):
        loss(Tensor(scores), labels)


@pytest.mark.parametrize(
    "loss",
    [
        lambda reduction: mse_loss(Tensor([1.0]), [1.0], reduction),
        lambda reduction: hinge_loss(Tensor([1.0]), [1], reduction),
        lambda reduction: nll_loss(Tensor([[1.0]]), [0], reduction),
        lambda reduction: cross_entropy(Tensor([[1.0]]), [0], reduction),
        lambda reduction: binary_cross_entropy_with_logits(Tensor([1.0]), [1], reduction),
    ],
    ids=["mse", "hinge", "nll", "cross_entropy", "binary"],
)
def test_an_unknown_reduction_is_refused_and_named(loss):
    with pytest.raises(ValueError, match="'avg'"):
        loss("avg")
    with pytest.raises(ValueError, match="None"):
        loss(None)


def agree(ours, theirs, *arrays):
    compare(ours, *arrays, theirs=theirs, tolerance=1e-9)


def sizes(shapes, reduction):
    """The mean of nothing is nan, there as here: left out."""
    return [shape for shape in shapes if 0 not in shape or reduction != "mean"]


@by_reduction
def test_squared_errors_agree(reduction):
    rng = np.random.default_rng(61)
    for shape in sizes(NUMBERS, reduction):
        agree(
            lambda a, b: mse_loss(a, b, reduction),
            lambda a, b: torch.nn.functional.mse_loss(a, b, reduction=reduction),
            *(np.asarray(rng.standard_normal(shape)) for _ in range(2)),
        )


@by_reduction
def test_hinge_losses_agree(reduction):
    """PyTorch has none for scores and labels: it is put together from relu there."""
    rng = np.random.default_rng(62)
    total = {"mean": torch.mean, "sum": torch.sum, "none": lambda losses: losses}[reduction]
    for shape in sizes(NUMBERS, reduction):
        labels = np.where(np.asarray(rng.random(shape)) < 0.5, -1.0, 1.0)
        agree(
            lambda x, y=labels: hinge_loss(x, y, reduction),
            lambda x, y=labels: total(torch.relu(1.0 - torch.tensor(y) * x)),
            np.asarray(2.0 * rng.standard_normal(shape)),
        )


@by_reduction
def test_cross_entropies_agree_composed_and_fused(reduction):
    rng = np.random.default_rng(63)

    def theirs(x, labels):
        """PyTorch wants the classes on the second axis."""
        flat = torch.nn.functional.cross_entropy(
            x.reshape(-1, x.shape[-1]), torch.tensor(labels.ravel()), reduction=reduction
        )
        return flat.reshape(labels.shape) if reduction == "none" else flat

    for shape in sizes(ROWS, reduction):
        labels, logits = np.asarray(rng.integers(0, shape[-1], shape[:-1])), 3.0 * rng.standard_normal(shape)
        for ours in (cross_entropy, lambda x, y, r: nll_loss(log_softmax(x), y, r)):
            agree(lambda x, y=labels, f=ours: f(x, y, reduction), lambda x, y=labels: theirs(x, y), np.asarray(logits))


@by_reduction
def test_picked_losses_agree(reduction):
    rng = np.random.default_rng(64)
    for n, classes in ((1, 1), (4, 3), (3, 3), (6, 2)):
        labels = rng.integers(0, classes, n)
        agree(
            lambda x, y=labels: nll_loss(x, y, reduction),
            lambda x, y=labels: torch.nn.functional.nll_loss(x, torch.tensor(y), reduction=reduction),
            rng.standard_normal((n, classes)),
        )


@by_reduction
def test_binary_cross_entropies_agree(reduction):
    rng = np.random.default_rng(65)
    for shape in sizes(NUMBERS, reduction):
        for targets in (rng.random(shape), np.asarray(rng.random(shape)) < 0.5):
            targets = np.asarray(targets, dtype=np.float64)
            agree(
                lambda z, t=targets: binary_cross_entropy_with_logits(z, t, reduction),
                lambda z, t=targets: torch.nn.functional.binary_cross_entropy_with_logits(
                    z, torch.tensor(t), reduction=reduction
                ),
                np.asarray(3.0 * rng.standard_normal(shape)),
            )


def test_arrays_that_do_not_lie_in_one_piece_agree():
    big = np.random.default_rng(66).standard_normal((6, 8))
    for view in (big[::2, ::2], big.T, big[:, ::-1]):
        whole = np.ascontiguousarray(view)
        labels = np.arange(len(view)) % view.shape[1]
        one, other = Tensor(view), Tensor(whole)
        cross_entropy(one, labels).backward()
        cross_entropy(other, labels).backward()
        np.testing.assert_array_equal(one.grad, other.grad)


@by_reduction
def test_float32_stays_float32(reduction):
    """Whatever the labels and targets are."""
    for make in (np.float32, np.float64, np.int64, list):
        ones = [1, 1] if make is list else np.ones(2, make)
        for loss in (mse_loss, hinge_loss, binary_cross_entropy_with_logits):
            x = Tensor(np.float32([0.5, -2.0]))
            out = loss(x, ones, reduction)
            out.backward()
            assert (out.dtype, x.grad.dtype) == (np.float32, np.float32)
    for loss in (nll_loss, cross_entropy):
        for labels in ([1, 0], np.array([1, 0], np.uint8)):
            x = Tensor(np.float32([[0.5, -2.0], [1.0, 0.0]]))
            out = loss(x, labels, reduction)
            out.backward()
            assert (out.dtype, x.grad.dtype) == (np.float32, np.float32)
    assert one_hot(np.array([1]), Tensor(np.float32([[0.0, 0.0]]))).dtype == np.float32


@by_dtype
def test_logits_of_ten_thousand_are_numbers_like_any_other(dtype):
    with np.errstate(all="raise", under="ignore"):
        for loss in (cross_entropy, lambda x, y, r: nll_loss(log_softmax(x), y, r)):
            x = Tensor(np.array([[1e4, -1e4, 0.0]] * 3, dtype))
            out = loss(x, [0, 1, 2], "none")
            out.backward()
            np.testing.assert_array_equal(out.data, [0.0, 2e4, 1e4])
            np.testing.assert_array_equal(x.grad, [[0, 0, 0], [1, -1, 0], [1, 0, -1]])
        z = Tensor(np.array([1e4, 1e4, -1e4, -1e4], dtype))
        out = binary_cross_entropy_with_logits(z, [1, 0, 1, 0], "none")
        out.backward()
        np.testing.assert_array_equal(out.data, [0.0, 1e4, 1e4, 0.0])
        np.testing.assert_array_equal(z.grad, [0.0, 1.0, -1.0, 0.0])


@by_dtype
def test_the_penalty_is_the_sum_of_all_squares_in_the_parameters_own_dtype(dtype):
    a, b = Tensor(np.array([3.0, 4.0], dtype)), Tensor(np.array([[1.0], [2.0]], dtype))
    penalty = l2_penalty(iter([a, b]), 0.5)
    penalty.backward()
    assert (penalty.shape, penalty.dtype, penalty.item()) == ((), dtype, 15.0)
    np.testing.assert_array_equal(a.grad, a.data)
    np.testing.assert_array_equal(b.grad, b.data)
    assert l2_penalty([], 0.5).item() == 0.0


def test_losses_take_plain_arrays_too():
    """Then they are only a number to look at."""
    assert mse_loss(np.array([1.0, 3.0]), [1, 1]).item() == 2.0
    assert hinge_loss([0.5, 3.0], [1, 1]).item() == 0.25
    assert cross_entropy(np.zeros((2, 4)), [0, 3]).item() == pytest.approx(np.log(4.0))
    assert binary_cross_entropy_with_logits([0.0], [1]).item() == pytest.approx(np.log(2.0))


def through_log_softmax(logits, labels):
    return nll_loss(log_softmax(logits), labels)


@pytest.mark.parametrize("loss", [cross_entropy, through_log_softmax])
@pytest.mark.parametrize(
    ("logits", "label", "wanted"),
    [
        ([-np.inf, 1.0, 2.0], 1, 1.3132616875182228),
        ([-np.inf, 1.0, 2.0], 0, np.inf),
        ([-np.inf, -np.inf, 2.0], 2, 0.0),
        ([1e4, -1e4, 0.0], 1, 2e4),
        ([1e308, -1e308, 0.0], 0, 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_class_without_any_chance_costs_what_pytorch_says(loss, logits, label, wanted):
    ours, theirs = Tensor([logits]), torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    value, oracle = loss(ours, [label]), torch.nn.functional.cross_entropy(theirs, torch.tensor([label]))
    assert value.item() == pytest.approx(wanted) == oracle.item()
    value.backward()
    oracle.backward()
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), atol=1e-12)


def test_only_the_right_class_of_log_probabilities_gets_a_gradient_beside_infinities():
    x = Tensor([[-np.inf, -1.0, -2.0], [-3.0, -np.inf, -1.0]])
    nll_loss(x, [1, 0], "sum").backward()
    assert x.grad.tolist() == [[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0]]


@pytest.mark.parametrize(("logit", "target"), [(np.inf, 1.0), (-np.inf, 0.0)])
def test_a_yes_or_no_that_is_quite_sure_and_right_costs_nothing(logit, target):
    """PyTorch has nan there."""
    x = Tensor([logit])
    loss = binary_cross_entropy_with_logits(x, [target])
    loss.backward()
    assert (loss.item(), x.grad.tolist()) == (0.0, [0.0])


@by_dtype
def test_a_yes_or_no_that_is_quite_sure_and_wrong_costs_more_than_anything_finite_else(dtype):
    for logit, target in ((np.inf, 0.0), (-np.inf, 1.0)):
        assert binary_cross_entropy_with_logits(Tensor(np.array([logit], dtype)), [target]).item() > 1e38


@pytest.mark.parametrize("logit", [-1e308, -800.0, 800.0, 1e308])
@pytest.mark.parametrize("target", [0.0, 0.5, 1.0])
def test_huge_logits_cost_what_pytorch_says(logit, target):
    ours, theirs = Tensor([logit]), torch.tensor([logit], dtype=torch.float64, requires_grad=True)
    value = binary_cross_entropy_with_logits(ours, [target])
    oracle = torch.nn.functional.binary_cross_entropy_with_logits(theirs, torch.tensor([target], dtype=torch.float64))
    value.backward()
    oracle.backward()
    assert value.item() == oracle.item()
    assert ours.grad.tolist() == theirs.grad.tolist()


def test_a_penalty_does_not_promote_float32():
    assert l2_penalty([Tensor(np.ones(2, np.float32))], np.float64(0.5)).dtype == np.float32


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_mean_of_no_losses_is_nan_as_in_pytorch():
    assert np.isnan(cross_entropy(Tensor(np.ones((0, 3))), []).item())
    assert cross_entropy(Tensor(np.ones((0, 3))), [], "sum").item() == 0.0
