"""What holds for every shape: hypothesis looks for one where the reference and PyTorch, or a difference, disagree.

The tables in test_oracle*.py hold the cases that are known to matter. Here nobody has chosen.
"""

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meintorch import activations
from meintorch.embedding import concatenate
from meintorch.losses import cross_entropy
from meintorch.tensor import Tensor, unbroadcast
from tests._helpers import check_gradient
from tests.course.oracle.pytorch import compare, torch

settings.register_profile("course", max_examples=150, deadline=None, derandomize="CI" in os.environ, database=None)
settings.load_profile("course")

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=3)
pairs = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3)
products = hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, min_side=0, max_side=3)
seeds = st.integers(0, 2**32 - 1)


def numbers(shape, seed):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


@st.composite
def shape_and_axes(draw):
    """A shape, and some of its axes: none named (all of them), one, or several, counted from either end."""
    shape = draw(shapes)
    chosen = draw(st.sets(st.sampled_from(range(len(shape))), min_size=1)) if shape else ()
    axes = tuple(axis - len(shape) if draw(st.booleans()) else axis for axis in sorted(chosen))
    return shape, draw(st.sampled_from([None, axes[0] if len(axes) == 1 else axes])) if axes else None


@given(pairs, seeds)
def test_every_way_to_broadcast_agrees(pair, seed):
    a, b = (numbers(shape, seed + i) for i, shape in enumerate(pair.input_shapes))
    compare(lambda a, b: a * b + a - b / (a * a + 1.0), a, b)
    compare(lambda a, b: (a * a + 0.5) ** b, a, b)


@given(pairs, seeds)
def test_unbroadcast_is_the_transpose_of_broadcasting(pair, seed):
    """For every stretch B: the product of B(x) with y is that of x with unbroadcast(y)."""
    shape = pair.input_shapes[0]
    x, y = numbers(shape, seed), numbers(pair.result_shape, seed + 1)
    back = unbroadcast(y, shape)
    assert back.shape == shape
    np.testing.assert_allclose(np.sum(np.broadcast_to(x, y.shape) * y), np.sum(x * back), atol=1e-9)


@given(products, seeds)
def test_every_matrix_product_agrees(pair, seed):
    compare(lambda a, b: a @ b, *(numbers(shape, seed + i) for i, shape in enumerate(pair.input_shapes)))


@given(shape_and_axes(), st.booleans(), seeds, st.sampled_from(["sum", "mean", "max", "min"]))
def test_reductions_over_any_axes_agree(choice, keepdims, seed, name):
    shape, axis = choice

    def function(x):
        if isinstance(x, activations.Tensor):
            return getattr(x, name)(axis, keepdims)
        dims = tuple(range(x.ndim)) if axis is None else axis
        reduce = getattr(torch, {"max": "amax", "min": "amin"}.get(name, name))
        return reduce(x, dim=dims, keepdim=keepdims) if x.ndim else x * 1.0

    compare(function, numbers(shape, seed))


@given(st.data(), shapes, seeds)
def test_axes_in_any_order_and_any_new_shape_agree(data, shape, seed):
    axes = data.draw(st.permutations(range(len(shape))))
    new = tuple(shape[axis] for axis in data.draw(st.permutations(range(len(shape)))))
    x = numbers(shape, seed)
    compare(lambda x: (x.transpose(axes) if isinstance(x, Tensor) else x.permute(axes)) * 1.0, x)
    compare(lambda x: x.reshape(new) * 1.0, x)


@given(st.data(), shapes.filter(bool), seeds, st.sampled_from([1e-3, 1.0, 1e3]))
def test_shares_and_their_logarithms_agree_along_any_axis(data, shape, seed, scale):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name in ("softmax", "log_softmax"):
        compare(lambda x, name=name: getattr(x, name)(axis), numbers(shape, seed) * scale)


@given(shapes.filter(bool), seeds, st.sampled_from(["mean", "sum", "none"]))
def test_cross_entropy_of_any_stack_of_rows_agrees(shape, seed, reduction):
    labels = np.random.default_rng(seed).integers(0, shape[-1], shape[:-1])

    def function(x):
        if isinstance(x, Tensor):
            return cross_entropy(x, labels, reduction)
        losses = -torch.log_softmax(x, -1).gather(-1, torch.tensor(labels)[..., None])[..., 0]
        return losses if reduction == "none" else getattr(losses, reduction)()

    compare(function, numbers(shape, seed))


@given(st.data(), shapes.filter(bool), seeds)
def test_whatever_is_picked_by_an_index_agrees(data, shape, seed):
    basic = hnp.basic_indices(shape, allow_newaxis=True, max_dims=6)
    arrays = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=4))
    key = data.draw(st.one_of(basic, arrays, hnp.arrays(bool, shape)))
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, slice) and (part.step or 1) < 0 for part in parts):  # PyTorch takes no step back
        compare(lambda x: x[key] * 1.0, numbers(shape, seed))


@given(shape_and_axes(), st.booleans(), seeds)
def test_variance_over_any_axes_agrees(choice, keepdims, seed):
    shape, axis = choice

    def function(x):
        if isinstance(x, Tensor):
            return x.var(axis, keepdims)
        dims = tuple(range(x.ndim)) if axis is None else axis
        return torch.var(x, dim=dims, correction=0, keepdim=keepdims) if x.ndim else x * 0.0

    compare(function, numbers(shape, seed))


@given(st.data(), shapes.filter(bool), st.lists(st.integers(0, 3), min_size=1, max_size=4), seeds)
def test_tensors_of_any_length_put_together_agree(data, shape, lengths, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    place = axis % len(shape)
    arrays = [numbers((*shape[:place], size, *shape[place + 1 :]), seed + i) for i, size in enumerate(lengths)]
    compare(lambda *them: concatenate(them, axis) if isinstance(them[0], Tensor) else torch.cat(them, axis), *arrays)


@given(shapes.filter(lambda shape: shape and shape[-1] > 1), seeds, st.sampled_from([1e-5, 1.0]))
def test_layer_norm_of_any_stack_of_rows_agrees(shape, seed, eps):
    def function(x, weight, bias):
        if isinstance(x, Tensor):
            return x.layer_norm(weight, bias, eps)
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps)

    compare(function, numbers(shape, seed) * 3.0, *(numbers(shape[-1:], seed + i) for i in (1, 2)))


@settings(max_examples=30)
@given(shapes.filter(bool), seeds)
def test_gradients_of_a_mixture_are_central_differences(shape, seed):
    def mixture(x, y):
        return (x * y).softmax(-1) * (x + y).tanh() + (x.exp() * y).mean(0) - (y * y + 1.0).log().sum(-1, True)

    x, y = numbers(shape, seed), numbers(shape, seed + 1)
    check_gradient(mixture, x, y, name="a mixture", make=Tensor)
