"""The workloads, each written for every engine: a function that returns a step, which returns its loss.

T  a training step of a small decoder: see decoder.py
M  a training step of a network of widths 784, 256, 128, 10 with ReLU, cross-entropy and SGD, batch of 64
B  one operation on 4x4 arrays, forward and backward
D  a chain of a million additions, forward and backward
S  a training step over single numbers: MLP(2, [16, 16, 1]) on 100 moons with hinge loss and L2
I  the forward pass of M and of T, without a graph
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from decoder import t_by_hand, t_forward_by_hand, t_forward_meintorch, t_forward_torch, t_meintorch, t_torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "solutions"))

BATCH, WIDTHS, RATE = 64, (784, 256, 128, 10), 0.01
LONG = 1_000_000
SMALL = 100  # operations in a step of B

Step = Callable[[], float]


def numbers(dtype: str) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The inputs, the labels and the parameters, W and b in turn, that all engines of M begin with."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((BATCH, WIDTHS[0])).astype(dtype), rng.integers(0, WIDTHS[-1], BATCH)
    parameters = []
    for i, o in pairwise(WIDTHS):
        parameters += [(rng.standard_normal((i, o)) * (2 / i) ** 0.5).astype(dtype), np.zeros(o, dtype)]
    return x, labels, parameters


# M, a training step


def m_by_hand(dtype: str) -> Step:
    """What NumPy can do at best: nothing is computed twice, and in place where that is possible."""
    x, labels, (w1, b1, w2, b2, w3, b3) = numbers(dtype)
    rows = np.arange(BATCH)

    def step():
        h1 = x @ w1
        h1 += b1
        np.maximum(h1, 0, out=h1)
        h2 = h1 @ w2
        h2 += b2
        np.maximum(h2, 0, out=h2)
        p = h2 @ w3
        p += b3
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[rows, labels]).mean()
        p[rows, labels] -= 1
        p /= BATCH
        gradients = [h2.T @ p, p.sum(axis=0)]
        g2 = p @ w3.T
        g2 *= h2 > 0
        gradients += [h1.T @ g2, g2.sum(axis=0)]
        g1 = g2 @ w2.T
        g1 *= h1 > 0
        gradients += [x.T @ g1, g1.sum(axis=0)]
        for parameter, gradient in zip((w3, b3, w2, b2, w1, b1), gradients):
            gradient *= RATE
            parameter -= gradient
        return loss

    return step


def m_meintorch(dtype: str) -> Step:
    from meintorch import SGD, ReLU, Sequential, cross_entropy, train_step

    x, labels, parameters = numbers(dtype)
    model = Sequential(*_layers(parameters, ReLU))
    optimizer = SGD(model.parameters(), lr=RATE)
    return lambda: train_step(model, cross_entropy, optimizer, x, labels)


def _layers(parameters: list[np.ndarray], activation: type) -> list:
    """meintorch's layers that hold the given numbers."""
    from meintorch import Linear, Tensor

    layers = []
    for w, b in zip(parameters[::2], parameters[1::2]):
        layer = Linear(*w.shape, rng=np.random.default_rng(0))
        layer.weight, layer.bias = Tensor(w.copy()), Tensor(b.copy())
        layers += [layer, activation()]
    return layers[:-1]


def m_torch(dtype: str) -> Step:
    import torch

    torch.set_num_threads(1)
    x, labels, parameters = numbers(dtype)
    x, labels = torch.from_numpy(x), torch.from_numpy(labels)
    parameters = [torch.from_numpy(one).requires_grad_() for one in parameters]
    optimizer = torch.optim.SGD(parameters, lr=RATE)

    def step():
        h = x
        for w, b in zip(parameters[0:4:2], parameters[1:4:2]):
            h = (h @ w + b).relu()
        loss = torch.nn.functional.cross_entropy(h @ parameters[4] + parameters[5], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def m_autograd(dtype: str) -> Step:
    import autograd.numpy as anp
    from autograd import value_and_grad

    x, labels, parameters = numbers(dtype)
    rows = np.arange(BATCH)

    def loss_of(parameters):
        h = x
        for w, b in zip(parameters[0:4:2], parameters[1:4:2]):
            h = anp.maximum(h @ w + b, 0)
        z = h @ parameters[4] + parameters[5]
        z = z - anp.max(z, axis=1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(z), axis=1)) - z[rows, labels])

    gradient_of = value_and_grad(loss_of)

    def step():
        loss, gradients = gradient_of(parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter -= RATE * gradient
        return loss

    return step


# I, the forward pass of M


def i_by_hand(dtype: str) -> Step:
    x, _, (w1, b1, w2, b2, w3, b3) = numbers(dtype)

    def step():
        h = x @ w1
        h += b1
        np.maximum(h, 0, out=h)
        h = h @ w2
        h += b2
        np.maximum(h, 0, out=h)
        h = h @ w3
        h += b3
        return h[0, 0]

    return step


def i_meintorch(dtype: str) -> Step:
    from meintorch import ReLU, Sequential, no_grad

    x, _, parameters = numbers(dtype)
    model = Sequential(*_layers(parameters, ReLU))

    def step():
        with no_grad():
            return model(x).data[0, 0]

    return step


def i_torch(dtype: str) -> Step:
    import torch

    torch.set_num_threads(1)
    x, _, parameters = numbers(dtype)
    x, parameters = torch.from_numpy(x), [torch.from_numpy(one) for one in parameters]

    def step():
        with torch.no_grad():
            h = x
            for w, b in zip(parameters[0:4:2], parameters[1:4:2]):
                h = (h @ w + b).relu()
            return (h @ parameters[4] + parameters[5])[0, 0].item()

    return step


# B, one small operation


def b_meintorch(operation: str) -> Step:
    from meintorch import Tensor

    a, b = Tensor(np.eye(4) + 1.0), Tensor(np.eye(4) - 2.0)
    function = OPERATIONS[operation]

    def step():
        for _ in range(SMALL):
            out = function(a, b)
            out.backward()
        return out.data.sum()

    return step


def b_torch(operation: str) -> Step:
    import torch

    torch.set_num_threads(1)
    a, b = (torch.from_numpy(one).requires_grad_() for one in (np.eye(4) + 1.0, np.eye(4) - 2.0))
    ones, function = torch.ones(4, 4, dtype=torch.float64), OPERATIONS[operation]

    def step():
        for _ in range(SMALL):
            out = function(a, b)
            out.backward(ones)
        return out.sum().item()

    return step


def b_autograd(operation: str) -> Step:
    import autograd.numpy as anp
    from autograd import grad

    a, b = np.eye(4) + 1.0, np.eye(4) - 2.0
    function = OPERATIONS[operation]
    gradient_of = grad(lambda both: anp.sum(function(both[0], both[1])))

    def step():
        for _ in range(SMALL):
            gradient_of([a, b])
        return function(a, b).sum()

    return step


OPERATIONS = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "matmul": lambda a, b: a @ b,
}

# D, a deep graph


def d_meintorch() -> Step:
    from meintorch import Tensor

    def step():
        x = Tensor(1.0)
        y = x
        for _ in range(LONG):
            y = y + x
        y.backward()
        return x.grad.item()

    return step


def d_torch() -> Step:
    import torch

    torch.set_num_threads(1)

    def step():
        x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(LONG):
            y = y + x
        y.backward()
        return x.grad.item()

    return step


# S, single numbers


def _scalar_step(model, loss_of: Callable, value: type) -> Step:
    from meintorch import make_moons

    points, labels = make_moons(100)
    signs = labels.tolist()
    rows = [[value(number) for number in row] for row in points.tolist()]

    def step():
        loss = loss_of([model(row) for row in rows], signs, model.parameters())
        for parameter in model.parameters():
            parameter.grad = 0.0
        loss.backward()
        for parameter in model.parameters():
            parameter.data -= 0.01 * parameter.grad
        return loss.data

    return step


def s_meintorch() -> Step:
    from meintorch.mlp import MLP, hinge_loss
    from meintorch.value import Value

    model = MLP(2, [16, 16, 1])
    _same_start(model)
    return _scalar_step(model, lambda scores, signs, parameters: hinge_loss(scores, signs, parameters, 1e-4), Value)


def s_micrograd() -> Step:
    from micrograd.engine import Value
    from micrograd.nn import MLP

    model = MLP(2, [16, 16, 1])
    _same_start(model)

    def loss_of(scores, signs, parameters):
        losses = [(1 + -sign * score).relu() for sign, score in zip(signs, scores)]
        return sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in parameters)

    return _scalar_step(model, loss_of, Value)


def _same_start(model) -> None:
    """Weights that do not depend on the engine: a parameter's place in the list decides."""
    draw = np.random.default_rng(0).uniform(-1.0, 1.0, len(model.parameters()))
    for parameter, number in zip(model.parameters(), draw.tolist()):
        parameter.data = number


WORKLOADS: dict[str, dict[str, Callable[[], Step]]] = {
    f"M {dtype}": {
        name: partial(make, dtype)
        for name, make in {
            "by hand": m_by_hand,
            "meintorch": m_meintorch,
            "torch": m_torch,
            "autograd": m_autograd,
        }.items()
    }
    for dtype in ("float32", "float64")
}
WORKLOADS["T"] = {"by hand": t_by_hand, "meintorch": t_meintorch, "torch": t_torch}
WORKLOADS |= {
    f"I of M {dtype}": {
        name: partial(make, dtype)
        for name, make in {"by hand": i_by_hand, "meintorch": i_meintorch, "torch": i_torch}.items()
    }
    for dtype in ("float32", "float64")
}
WORKLOADS["I of T"] = {"by hand": t_forward_by_hand, "meintorch": t_forward_meintorch, "torch": t_forward_torch}
WORKLOADS |= {
    f"B {operation}": {
        name: partial(make, operation)
        for name, make in {"torch": b_torch, "meintorch": b_meintorch, "autograd": b_autograd}.items()
    }
    for operation in OPERATIONS
}
WORKLOADS |= {
    "D": {"torch": d_torch, "meintorch": d_meintorch},
    "S": {"micrograd": s_micrograd, "meintorch": s_meintorch},
}
