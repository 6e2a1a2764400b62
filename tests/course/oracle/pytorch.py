"""PyTorch, where it is installed, and what compares the reference with it.

A test file that imports this is skipped without PyTorch, but not in CI, where nothing shall be skipped unseen.
"""

import os

import numpy as np
import pytest

from meintorch.tensor import Tensor

if os.environ.get("CI"):
    import torch
else:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle: python -m pip install -e '.[oracle]'")

SHAPES = [
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3), ()),
    ((1,), (4, 1, 2)),
    ((4, 1, 2), (3, 1)),
    ((0, 3), (3,)),
    ((0, 3), (1, 3)),
    ((2, 0), (2, 1)),
]


def arrays(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)) for shape in shapes]


def compare(function, *inputs, theirs=None, tolerance=1e-12):
    """Run a function on Tensors and on torch tensors, weighted by the same random gradient.

    theirs     PyTorch's function, where it has another name
    tolerance  of the result; gradients are compared to 1e-6
    """
    ours = [Tensor(array) for array in inputs]
    others = [torch.tensor(array.copy(), requires_grad=True) for array in inputs]  # it refuses negative strides
    out, wanted = function(*ours), (theirs or function)(*others)
    assert out.shape == tuple(wanted.shape)
    np.testing.assert_allclose(out.data, wanted.detach().numpy(), rtol=tolerance, atol=tolerance)
    (gradient,) = arrays(out.shape, seed=1)
    out.backward(gradient)
    wanted.backward(torch.tensor(gradient))
    for one, other in zip(ours, others):
        assert one.grad.shape == tuple(other.grad.shape)
        np.testing.assert_allclose(one.grad, other.grad.numpy(), rtol=1e-6, atol=1e-6)
