"""Chapters 10 to 13: rare calls that gave wrong numbers in silence or an error that named nothing, and the right value.

Most were reported of other libraries: HIPS/autograd#39, pytorch#5410, transformers#41443, BayesicFitting#26, padasip#5.
"""

import numpy as np
import pytest

from meintorch import (
    Embedding,
    ExtendedKalmanFilter,
    KalmanFilter,
    LayerNorm,
    LevenbergMarquardt,
    Linear,
    RecursiveLeastSquares,
    Sequential,
    Tensor,
    Transformer,
    attention,
    bits_per_character,
    concatenate,
    damped_step,
    devectorize_parameters,
    flatten,
    gelu,
    generate,
    layer_norm,
    nodes,
    plots,
    stack,
    vectorize_parameters,
    where,
)
from meintorch.draw import draw
from meintorch.transformer import Cache, CausalSelfAttention, probabilities
from tests.course.oracle.pytorch import torch

nan, inf = np.nan, np.inf


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array([0, 0])


def picked(key, shape=(3, 2)):
    """How often each number of an array of that shape is picked: what ones bring back."""
    x = Tensor(np.zeros(shape))
    x[key].backward()
    return x.grad.tolist()


TWICE_ROW_0 = [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "key",
    [
        [0, 0],
        np.array([0, 0]),
        ArrayLike(),
        Tensor([0.0, 0.0]),
        memoryview(b"\x00\x00"),
        ((0, 0), slice(None)),
        ([0, 0], slice(None)),
        (ArrayLike(), slice(None)),
        (Tensor([0.0, 0.0]), slice(None)),
        ((0, 0), ...),
        ((0, 0), None, slice(None)),
        (((0, 0),),),
        (np.array([0, 0], np.int8), slice(0, 2)),
    ],
)
def test_a_place_that_is_picked_twice_gets_both_in_whatever_sequence_it_is_named(key):
    assert picked(key) == TWICE_ROW_0


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (range(2), [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]),
        ((range(2), (1, 1)), [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]),
        (([0, 0], (1, 1)), [[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]]),
        ([True, False, True], [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]),
        ((slice(None), [True, False]), [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
        ((np.int64(1), [0, 0]), [[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]),
        (Tensor(1.0), [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
        (np.array(1), [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
        ([], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        ((), [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]),
        (None, [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_every_kind_of_index_brings_the_gradient_to_its_places(key, wanted):
    assert picked(key) == wanted


def test_an_index_that_is_changed_after_the_forward_pass_does_not_move_the_gradient():
    x, places = Tensor([1.0, 2.0, 3.0]), np.array([0, 0])
    y = x[places]
    places[:] = 2
    y.backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_a_condition_that_is_changed_after_the_forward_pass_does_not_move_the_gradient():
    x, condition = Tensor([1.0, 2.0]), np.array([True, False])
    y = where(condition, x, 0.0)
    condition[:] = [False, True]
    y.backward()
    assert x.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [0.1, 1e6, 1234567.0, -16777217.0, 1e15 + 0.3])
def test_a_row_of_equal_numbers_becomes_zeros_whatever_their_size(number, dtype):
    row = np.full((2, 97), number, dtype)
    for eps in (1e-5, 1e-12):
        assert not layer_norm(Tensor(row), np.ones(97), np.zeros(97), eps).data.any()
    assert Tensor(row).var(1).data.tolist() == [0.0, 0.0]


def test_small_differences_far_from_zero_are_seen_as_in_float64():
    rng = np.random.default_rng(0)
    row = np.float32(1e6 + rng.integers(-8, 9, (3, 64)))  # exact in float32
    exact = layer_norm(Tensor(np.float64(row)), np.ones(64), np.zeros(64)).data
    np.testing.assert_allclose(layer_norm(Tensor(row), np.ones(64), np.zeros(64)).data, exact, atol=2e-6)
    np.testing.assert_allclose(Tensor(row).var(1).data, np.float64(row).var(1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_far_out_is_pytorchs_nan_and_infinities_too(dtype):
    array = np.array([-inf, inf, 1e30, -1e30, 1e38, -1e5, -10.0, 10.0, nan], dtype)
    ours, theirs = Tensor(array), torch.tensor(array, requires_grad=True)
    with np.errstate(all="ignore"):
        y = gelu(ours)
        y.backward()
    wanted = torch.nn.functional.gelu(theirs, approximate="tanh")
    wanted.backward(torch.ones_like(wanted))
    np.testing.assert_allclose(y.data, wanted.detach().numpy(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), rtol=1e-5, atol=1e-9)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def small(**sizes):
    sizes = {"n": 11, "length": 12, "width": 8, "heads": 2, "blocks": 2, **sizes}
    return Transformer(**sizes, rng=np.random.default_rng(0))


@pytest.mark.parametrize("as_mask", [np.asarray, Tensor], ids=["array", "Tensor"])
def test_a_query_whose_mask_hides_everything_gets_zeros_as_in_pytorch(as_mask):
    mask = np.zeros((2, 3, 4))
    mask[0, 1], mask[1, 2, :3] = -inf, -inf
    arrays = numbers(2, 3, 5), numbers(2, 4, 5, seed=1), numbers(2, 4, 6, seed=2)
    ours, theirs = [Tensor(one) for one in arrays], [torch.tensor(one, requires_grad=True) for one in arrays]
    out = attention(*ours, as_mask(mask))
    out.backward(numbers(2, 3, 6, seed=3))
    wanted = torch.nn.functional.scaled_dot_product_attention(*theirs, attn_mask=torch.tensor(mask))
    wanted.backward(torch.tensor(numbers(2, 3, 6, seed=3)))
    assert not out.data[0, 1].any() and not ours[0].grad[0, 1].any()
    np.testing.assert_allclose(out.data, wanted.detach().numpy(), atol=1e-12)
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one.grad, other.grad.numpy(), atol=1e-12)


def test_a_mask_that_hides_everything_from_everyone_keeps_float32():
    q = Tensor(np.float32(numbers(3, 4)))
    out = attention(q, q, q, np.full((3, 3), -inf))
    assert out.dtype == np.float32 and not out.data.any()


def test_a_tensor_as_a_mask_learns():
    q, mask = Tensor(numbers(3, 4)), Tensor(np.zeros((3, 3)))
    attention(q, q, q, mask).backward(numbers(3, 4, seed=1))
    assert mask.grad.any()


def test_with_the_identity_for_the_value_attention_gives_its_weights():
    q, k = Tensor(numbers(2, 4)), Tensor(numbers(3, 4, seed=1))
    np.testing.assert_allclose(attention(q, k, np.eye(3)).data.sum(axis=1), 1.0)


def caches(model, batch=1):
    made = [Cache() for _ in model.blocks]
    model(np.zeros((batch, 2), int), made)
    return made


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (lambda: small(heads=4), "4 heads of width 2 is of another model: this one has 2 of 4"),
        (lambda: small(width=16), "2 heads of width 8"),
        (lambda: small(dtype=np.float32), "float32 is of another model: this one is of float64"),
    ],
)
def test_caches_of_another_model_are_refused_and_stay_as_they_were(other, named):
    made = caches(other())
    with pytest.raises(ValueError, match=named):
        small()(np.array([[1]]), made)
    assert [len(cache) for cache in made] == [2, 2]


def test_reading_or_writing_leaves_each_part_of_a_model_in_its_own_mode():
    model = small(dropout=0.5)
    model.blocks[0].eval()
    list(generate(model, [1], 2))
    bits_per_character(model, np.zeros(13, int))
    with pytest.raises(IndexError):
        list(generate(model, [99], 2))
    assert model.training and not model.blocks[0].mlp.training and model.blocks[1].mlp.training


def test_a_seed_is_a_seed():
    for make in (lambda: Embedding(3, 2, rng=0), lambda: CausalSelfAttention(4, 2, rng=0), lambda: small_of_seed(0)):
        np.testing.assert_array_equal(vectorize_parameters(make()), vectorize_parameters(make()))
    layer = CausalSelfAttention(4, 2, rng=0)
    assert (layer.query.weight.data != layer.key.weight.data).all()  # one generator for all parts
    assert list(generate(small(), [1], 5, rng=0)) == list(generate(small(), [1], 5, rng=0))


def small_of_seed(seed):
    return Transformer(5, 4, 4, 2, 1, rng=seed)


def test_levenberg_marquardt_raises_the_damping_where_rounding_swallows_it():
    """Two hidden units that do the same, and inputs of about 1,000: J^T J has entries of 1e7, and no inverse."""
    model = Sequential(Linear(1, 2), Linear(2, 1))
    for parameter in model.parameters():
        parameter.data = np.full(parameter.shape, 0.5)
    x = np.linspace(900.0, 1100.0, 8).reshape(-1, 1)
    method = LevenbergMarquardt(model, damping=1e-12)
    losses = [method.step(x, 3.0 * x + 1.0) for _ in range(20)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.01


def test_no_damping_at_all_helping_a_step_is_undone_to_the_last_bit():
    model = Linear(1, 1)
    model.weight.data = np.array([[1e-3]])
    before, method = vectorize_parameters(model), LevenbergMarquardt(model)

    def singular(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    method.attempt = singular
    assert method.step([[1.0]], [[2.0]]) == pytest.approx((2.0 - 1e-3) ** 2)
    np.testing.assert_array_equal(vectorize_parameters(model), before)


@pytest.mark.parametrize("method", [LevenbergMarquardt, ExtendedKalmanFilter])
@pytest.mark.parametrize(
    ("x", "target"), [([[nan]], [[1.0]]), ([[1.0]], [[inf]]), ([[1.0]], [1.0]), ([[1.0]], [[1.0], [2.0]])]
)
def test_examples_that_cannot_be_learned_from_change_nothing(method, x, target):
    model = Linear(1, 1)
    learner, before = method(model), vectorize_parameters(model)
    kept = learner.filter.covariance.copy() if method is ExtendedKalmanFilter else learner.damping
    with pytest.raises(ValueError, match=r"finite|the target should have shape \(1, 1\)"):
        learner.step(x, target)
    np.testing.assert_array_equal(vectorize_parameters(model), before)
    now = learner.filter.covariance if method is ExtendedKalmanFilter else learner.damping
    np.testing.assert_array_equal(now, kept)


@pytest.mark.parametrize(("often", "then"), [([1.0, 0.0], [0.0, 1.0]), ([1.0, 1.0], [1.0, -1.0])])
def test_forgetting_has_bounds_in_directions_that_nothing_is_said_about(often, then):
    """y = x @ (2, -1). Without a bound the covariance across grows by 1/0.9 with every example, until it is nan."""
    learner, weights = RecursiveLeastSquares(2, forgetting=0.9), np.array([2.0, -1.0])
    for _ in range(8000):
        learner.update(often, np.dot(often, weights))
    assert np.abs(learner.covariance).max() < 1e6
    learner.update(then, np.dot(then, weights))
    np.testing.assert_allclose(learner.weights, weights, atol=1e-3)


def test_what_is_spoken_of_is_still_forgotten_when_something_else_winds_up():
    """After the change the old 2,000 examples count for nothing: 0.9 ** 100 is 3e-5."""
    learner = RecursiveLeastSquares(2, forgetting=0.9)
    for y in [2.0] * 2000 + [5.0] * 100:
        learner.update([1.0, 1.0], y)
    assert learner.weights.sum() == pytest.approx(5.0, abs=1e-3)


def test_recursive_least_squares_takes_a_matrix_as_a_kalman_filter_does():
    start = np.array([[2.0, 0.5], [0.5, 1.0]])
    learner, tracker = RecursiveLeastSquares(2, covariance=start), KalmanFilter([0.0, 0.0], start)
    learner.update([1.0, 2.0], 3.0)
    tracker.update([3.0], [[1.0, 2.0]], 1.0)
    np.testing.assert_allclose(learner.weights, tracker.state, atol=1e-12)
    np.testing.assert_array_equal(start, [[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(("x", "y"), [([nan, 1.0], 1.0), ([1.0, inf], 1.0), ([1.0, 1.0], nan)])
def test_an_example_with_nan_leaves_the_estimate_as_it_was(x, y):
    learner = RecursiveLeastSquares(2)
    learner.update([1.0, 2.0], 3.0)
    weights, covariance = learner.weights.copy(), learner.covariance.copy()
    with pytest.raises(ValueError, match="finite"):
        learner.update(x, y)
    np.testing.assert_array_equal(learner.weights, weights)
    np.testing.assert_array_equal(learner.covariance, covariance)


def test_the_nodes_divide_and_do_not_multiply_by_a_reciprocal():
    assert (nodes.Tensor([49.0]) / 49.0).value.tolist() == [1.0]
    assert (nodes.Tensor([1e-310]) / 1e-310).value.tolist() == [1.0]
    x = nodes.Tensor([1.0, 2.0], requires_grad=True)
    (x / [[2.0, 4.0], [8.0, 8.0]]).backward(np.ones((2, 2)))
    assert x.grad.value.tolist() == [0.625, 0.375]


def test_the_slope_of_hypot_does_not_overflow_near_zero():
    x = nodes.Tensor([3e-310], requires_grad=True)
    nodes.hypot(x, [4e-310]).backward()
    assert x.grad.value == pytest.approx(0.6)


x, vector = Tensor(np.ones((3, 2))), Tensor([1.0, 2.0])
q, node = Tensor(np.ones((3, 4))), nodes.Tensor(np.ones((2, 2)), requires_grad=True)


def line():
    return Linear(1, 1)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        # 11: indices, and tensors put together
        (lambda: x[5], IndexError, r"index 5 .* this Tensor has shape \(3, 2\)"),
        (lambda: x[[0, 7]], IndexError, r"index 7 .*\(3, 2\)"),
        (lambda: x[1.5], IndexError, r"only integers.*\(3, 2\)"),
        (lambda: x["a"], IndexError, "only integers"),
        (lambda: x[Tensor([0.5])], TypeError, r"whole numbers .*Tensor\(\[0.5\]\)"),
        (lambda: concatenate([x, x], None), TypeError, "axis of concatenate is a whole number, not None"),
        (lambda: concatenate([x, x], [0]), TypeError, r"not \[0\]"),
        (lambda: concatenate([x, x], (0, 1)), TypeError, r"not \(0, 1\)"),
        (lambda: concatenate([x, x], 0.0), TypeError, "not 0.0"),
        (lambda: concatenate([x, x], True), TypeError, "not True"),
        (lambda: concatenate([x, vector]), ValueError, r"shapes \(3, 2\), \(2,\)"),
        (lambda: concatenate(3), TypeError, "a list of tensors, not 3"),
        (lambda: stack([x, x], None), TypeError, "axis of stack is a whole number, not None"),
        (lambda: stack([x, x], 1.0), TypeError, "not 1.0"),
        (lambda: flatten(x, 1.0), TypeError, "not 1.0"),
        (lambda: flatten(x, True), TypeError, "not True"),
        (lambda: where([1, 0], vector, 0.0), TypeError, r"True and False, not \[1, 0\] of type list"),
        (lambda: where(vector.data, vector, 0.0), TypeError, "is a comparison missing"),
        (lambda: where("a", vector, 0.0), TypeError, "'a'"),
        # 11: variance, layer norm and their modules
        (lambda: x.var(7), IndexError, r"axis 7 .* shape \(3, 2\)"),
        (lambda: x.var(1.7), TypeError, "whole number, not 1.7"),
        (lambda: x.var((0, 0)), ValueError, "names an axis of shape .* twice"),
        (lambda: x.var(correction="1"), TypeError, "correction is a number, not '1'"),
        (lambda: x.var(correction=nan), ValueError, "more than nan"),
        (lambda: layer_norm(x, np.ones(2), np.zeros(2), -1e-5), ValueError, "eps is 0 or more, not -1e-05"),
        (lambda: layer_norm(x, np.ones(2), np.zeros(2), nan), ValueError, "not nan"),
        (lambda: layer_norm(x, np.ones(2), np.zeros(2), "a"), TypeError, "eps is a number, not 'a'"),
        (lambda: LayerNorm(0), ValueError, "width is at least 1, not 0"),
        (lambda: LayerNorm(2, dtype=int), TypeError, "float64 or np.float32, not <class 'int'>"),
        (lambda: Embedding(0, 3), ValueError, "number of rows is at least 1, not 0"),
        (lambda: Embedding(2.0, 3), TypeError, "whole number, not 2.0"),
        (lambda: Embedding(2, 3, dtype=int), TypeError, "float64 or np.float32"),
        (lambda: Embedding(2, 3, rng="a"), TypeError, "seed .*not 'a'"),
        (lambda: Embedding(2, 3)([[0], [0, 1]]), ValueError, "differ in length"),
        # 12: attention, caches and texts
        (lambda: attention(q, q, q, np.tril(np.ones((3, 3), bool))), TypeError, r"np.where\(may_look, 0.0, -np.inf\)"),
        (lambda: attention(q, q, q, np.ones((3, 3), int)), TypeError, "array of int"),
        (lambda: attention(q, q, q, np.zeros((2, 3))), ValueError, r"shape \(3, 3\).*not \(2, 3\)"),
        (lambda: attention(q[:1], q, q, np.zeros((3, 3))), ValueError, r"shape \(1, 3\).*not \(3, 3\)"),
        (lambda: attention(q, q, q, np.full((3, 3), nan)), ValueError, "nan in the mask"),
        (lambda: attention(q, x, q), ValueError, r"not \(3, 4\), \(3, 2\) and \(3, 4\)"),
        (lambda: attention(q, q, q[:2]), ValueError, r"\(3, 4\) and \(2, 4\)"),
        (lambda: attention(vector, q, q), ValueError, r"not \(2,\)"),
        (lambda: Cache().add(vector, vector), ValueError, r"not \(2,\) and \(2,\)"),
        (lambda: caches(small())[0].add(*2 * [Tensor(np.ones((1, 2, 1, 3)))]), ValueError, r"\(1, 2, 1, 3\)"),
        (lambda: small()(np.array([[1]]), caches(small(), batch=2)), ValueError, "hold 2 texts"),
        (lambda: small()(np.array([[1]]), [None, None]), TypeError, "list of Cache objects"),
        (lambda: small(n=2.0), TypeError, "n is a whole number, not 2.0"),
        (lambda: small(heads=2.0), TypeError, "heads is a whole number, not 2.0"),
        (lambda: small(dtype=int), TypeError, "float64 or np.float32"),
        (lambda: small_of_seed("a"), TypeError, "seed .*not 'a'"),
        (lambda: list(generate(small(), [1], -1)), ValueError, "at least 0, not -1"),
        (lambda: list(generate(small(), [1], 2.0)), TypeError, "whole number, not 2.0"),
        (lambda: list(generate(small(), [1], 2, "hot")), TypeError, "temperature is a number, not 'hot'"),
        (lambda: list(generate(small(), [1], 2, top_k="a")), TypeError, "top_k is a number, not 'a'"),
        (lambda: list(generate(small(), "ab", 2)), TypeError, r"'ab': meintorch.encode\(text, characters\)"),
        (lambda: list(generate(small(), 5, 2)), ValueError, r"one text.*not \(\)"),
        (lambda: bits_per_character(small(), "ab"), TypeError, "encode"),
        (lambda: probabilities(np.ones(3), 0.0), ValueError, "above 0, not 0.0"),
        (lambda: probabilities(np.ones(3), 1.0, 4), ValueError, "at most 3"),
        (lambda: probabilities(np.ones(3), 1.0, 1.5), TypeError, "whole number, not 1.5"),
        # 13: least squares
        (lambda: LevenbergMarquardt(3), TypeError, "the model is a Module, not 3"),
        (lambda: LevenbergMarquardt(line(), "a"), TypeError, "damping is a number, not 'a'"),
        (lambda: LevenbergMarquardt(line(), inf), ValueError, "above 0, not inf"),
        (lambda: damped_step(np.ones((2, 2)), np.ones(2), -1.0), ValueError, "0 or more, not -1.0"),
        (lambda: damped_step(np.ones((2, 2)), np.ones(2), nan), ValueError, "not nan"),
        (lambda: damped_step(np.ones(2), np.ones(2), 1.0), ValueError, r"\(n, n_params\), not \(2,\)"),
        (lambda: damped_step([[1.0, 2.0]], [1.0, 2.0], 1.0), ValueError, r"errors .*\(1,\), not \(2,\)"),
        (lambda: devectorize_parameters(line(), "ab"), TypeError, "the change .*'ab'"),
        (lambda: RecursiveLeastSquares(0), ValueError, "n_inputs is at least 1, not 0"),
        (lambda: RecursiveLeastSquares(2.0), TypeError, "n_inputs is a whole number, not 2.0"),
        (lambda: RecursiveLeastSquares(2, covariance=-1.0), ValueError, "above 0, not -1.0"),
        (lambda: RecursiveLeastSquares(2, covariance=[[1, 2], [0, 1]]), ValueError, "symmetric"),
        (lambda: RecursiveLeastSquares(2, covariance=np.diag([1.0, 0.0])), ValueError, "above 0, not 0 in one direct"),
        (lambda: RecursiveLeastSquares(2, covariance=nan), ValueError, "finite"),
        (lambda: RecursiveLeastSquares(1).update(Tensor([1.0]), 1.0), TypeError, "not a Tensor"),
        (lambda: KalmanFilter([1.0], -1.0), ValueError, "covariance is 0 or more, not -1.0"),
        (lambda: KalmanFilter([1.0, 2.0], [[1.0, 2.0], [0.0, 1.0]]), ValueError, "covariance should be symmetric"),
        (lambda: KalmanFilter([1.0, 2.0], [[1.0, 2.0], [2.0, 1.0]]), ValueError, "0 or more, not -1 in one direction"),
        (lambda: KalmanFilter([1.0], nan), ValueError, "covariance should be finite"),
        (lambda: KalmanFilter([nan], 1.0), ValueError, "state should be finite"),
        (lambda: KalmanFilter([1.0], 1.0).predict(1.0, -1.0), ValueError, "noise is 0 or more, not -1.0"),
        (lambda: KalmanFilter([1.0], 1.0).predict(nan, 1.0), ValueError, "transition should be finite"),
        (lambda: KalmanFilter([1.0], 1.0).update([nan], [[1.0]], 1.0), ValueError, "measured should be finite"),
        (lambda: KalmanFilter([1.0], 1.0).update([1.0], [[1.0]], -1.0), ValueError, "noise is 0 or more, not -1.0"),
        (lambda: ExtendedKalmanFilter(3), TypeError, "a Module, not 3"),
        (lambda: ExtendedKalmanFilter(line(), nan), ValueError, "covariance should be finite"),
        (lambda: ExtendedKalmanFilter(line(), noise=-1.0), ValueError, "noise is above 0, not -1.0"),
        (lambda: ExtendedKalmanFilter(line(), drift=nan), ValueError, "drift should be finite"),
        (lambda: ExtendedKalmanFilter(line(), np.eye(3)), ValueError, r"\(2, 2\), not \(3, 3\)"),
        # 10, and pictures
        (lambda: node.sum(1.7), TypeError, "whole number, not 1.7"),
        (lambda: node.max((0, 0)), ValueError, "names an axis of shape .* twice"),
        (lambda: np.sum(node), TypeError, r"np.sum takes arrays, .* in \.value"),
        (lambda: node / node, TypeError, "division by a Tensor has no node"),
        (lambda: draw(np.ones((300, 300))), TypeError, r"not a ndarray of shape \(300, 300\)"),
        (lambda: draw(x, limit=1.5), TypeError, "limit is a whole number, not 1.5"),
        (lambda: plots.grid([1, 2]), ValueError, r"points: an array of shape \(n, 2\).*not \[1, 2\]"),
    ],
)
def test_a_bad_call_says_what_was_wrong(call, error, named):
    with pytest.raises(error, match=named):
        call()


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: plots.boundary({}, [[0, 1]], [1]), TypeError, "stages: a dict"),
        (lambda: plots.boundary({"a": np.ones(4)}, [[0, 1], [1, 0]], [1]), ValueError, "2 points and 1 labels"),
        (lambda: plots.boundary({"a": np.ones(17)}, [[0, 1]], [1]), ValueError, "17 scores at 'a'"),
        (lambda: plots.curves([]), ValueError, "at least one epoch"),
        (lambda: plots.curves(3), TypeError, "not 3"),
        (lambda: plots.digits(np.zeros((2, 64)), [1], [1, 2]), ValueError, "2 images, 1 labels and 2 answers"),
        (lambda: plots.digits(np.zeros((2, 63)), [1, 1], [1, 2]), ValueError, r"not \(2, 63\)"),
        (lambda: plots.jacobian(np.zeros(3)), ValueError, r"not \(3,\)"),
        (lambda: plots.jacobian(x), TypeError, "the table: an array of numbers"),
        (lambda: plots.valley({}, (1, 1)), TypeError, "paths: a dict"),
        (lambda: plots.valley({"a": [[1, 2]]}, (1,)), ValueError, r"two curvatures, not \(1,\)"),
    ],
)
def test_a_picture_says_what_was_wrong(call, error, named):
    pytest.importorskip("matplotlib")
    with pytest.raises(error, match=named):
        call()


def test_a_history_of_regression_has_no_accuracy_and_is_drawn_all_the_same():
    pytest.importorskip("matplotlib")
    history = [{"epoch": n, "loss": 1.0 / n, "held_out_loss": 2.0 / n, "held_out_accuracy": None} for n in (1, 2)]
    assert plots.curves(history).figure is not None
