"""Copies: of an input all of it, of what was computed nothing, since its graph belongs to the inputs that there are."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from grading.course import chapters as course
from meintorch.layers import Linear, Module, Sequential
from meintorch.tensor import Tensor, as_tensor
from meintorch.value import Value

WAYS = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.mark.parametrize("way", WAYS)
def test_an_input_is_copied_with_a_gradient_of_its_own(way):
    x = Tensor(np.float32([1.0, 2.0]))
    (x * 3.0).backward()
    x.retains_grad = True
    other = way(x)
    other.grad += np.float32([1.0, 1.0])
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    np.testing.assert_array_equal(other.grad, [4.0, 4.0])
    assert (other.dtype, other.requires_grad, other.retains_grad) == (np.float32, True, True)
    assert np.shares_memory(x.data, other.data) == (way is copy.copy)
    (other * other).backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])


@pytest.mark.parametrize("way", WAYS)
def test_a_constant_stays_one(way):
    constant = way(as_tensor([1.0]))
    assert not constant.requires_grad and not way(as_tensor([2.0]) * 3.0).requires_grad
    assert not way((Tensor([1.0]) * 2.0).detach()).requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_what_was_computed_is_not_copied(way):
    a = Tensor([1.0, 2.0])
    for computed in (a * 3.0, walked(a * 3.0)):
        with pytest.raises(TypeError, match=r"'\*', shape \(2,\)\) cannot be copied.*x.detach\(\)"):
            way(computed)
    with pytest.raises(TypeError, match=r"Value\(6.0\) was computed"):
        way(Value(2.0) * 3.0)


def walked(x):
    x.backward()
    return x


@pytest.mark.parametrize("way", WAYS)
def test_a_value_is_copied_with_its_gradient(way):
    x = Value(2.0)
    x.grad = 3.0
    other = way(x)
    assert (other.data, other.grad, other._children) == (2.0, 3.0, ())
    (other * other).backward()
    assert (x.grad, other.grad) == (3.0, 7.0)


def test_a_copied_model_has_weights_of_its_own_and_what_was_shared_stays_shared():
    model = Sequential(Linear(2, 2), Linear(2, 2))
    first, second = (getattr(model, name) for name in "01")
    second.weight = first.weight
    other = copy.deepcopy(model)
    assert getattr(other, "0").weight is getattr(other, "1").weight
    assert getattr(other, "0").weight is not first.weight
    getattr(other, "0").weight.data += 1.0
    assert not np.array_equal(getattr(other, "0").weight.data, first.weight.data)
    assert isinstance(other, Module) and len(other.parameters()) == len(model.parameters())


# Copies that the engine spares itself, because it counts who holds a gradient.

SHARED = """
import sys
import numpy as np
{patch}
from meintorch import tensor
from meintorch.tensor import Tensor
a, b, seed = Tensor(np.ones((2, 3))), Tensor(np.ones((2, 3))), np.ones(6)
inner = (a + b).retain_grad()
out = inner.reshape(6) + a.reshape(6)
out.backward(seed, keep_graph=True)
gradients = [a.grad, b.grad, inner.grad, out.grad, seed]
shared = any(np.shares_memory(x, y) for i, x in enumerate(gradients) for y in gradients[:i])
print(tensor._ALONE, shared, a.grad.tolist() == [[2.0] * 3] * 2, b.grad.tolist() == [[1.0] * 3] * 2)
"""


@pytest.mark.parametrize(
    ("patch", "trusted"),
    [
        ("", True),
        ("sys.getrefcount = lambda thing: 1", False),
        ("sys.getrefcount = lambda thing: 4294967295", False),
        ("sys.getrefcount = lambda thing, real=sys.getrefcount: 2 * real(thing)", False),
        ("del sys.getrefcount", False),
    ],
    ids=["as it is", "always 1", "immortal", "double", "no such function"],
)
def test_gradients_are_never_shared_however_python_counts(patch, trusted):
    run = subprocess.run(
        [sys.executable, "-c", SHARED.format(patch=patch)],
        capture_output=True,
        text=True,
        cwd=course.REFERENCE.parent,
    )
    assert run.returncode == 0, run.stderr
    alone, *rest = run.stdout.split()
    assert rest == ["False", "True", "True"]
    assert (int(alone) > 0) == trusted
