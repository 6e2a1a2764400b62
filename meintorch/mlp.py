"""Chapter 01: a small neural network made of nothing but Values."""

import random
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from meintorch.value import Value, as_value


class Neuron:
    """A weighted sum of `n_inputs` numbers plus a bias, through a relu if `nonlinear`.

    The weights start at random between -1 and 1, the bias at 0. Raises TypeError or ValueError unless n_inputs is an
    integer of 1 or more.
    """

    def __init__(self, n_inputs: int, nonlinear: bool = True, rng: random.Random | None = None):
        check_count(n_inputs, "the number of inputs")
        rng = rng or random.Random()
        self.weights = [Value(rng.uniform(-1.0, 1.0)) for _ in range(n_inputs)]
        self.bias = Value(0.0)
        self.nonlinear = nonlinear

    def __call__(self, inputs: Sequence[Value | float]) -> Value:
        """`inputs` holds n_inputs numbers or Values. Raises ValueError if it holds more or fewer."""
        if len(inputs) != len(self.weights):
            raise ValueError(f"this neuron takes {len(self.weights)} inputs, not {len(inputs)}")
        # TODO 01.7: z = w_1 * x_1 + ... + w_n * x_n + b, then the relu.
        raise NotImplementedError("TODO 01.7")

    def parameters(self) -> list[Value]:
        return [*self.weights, self.bias]


class Layer:
    """`n_outputs` neurons that all look at the same `n_inputs` numbers. Raises as Neuron does, for both."""

    def __init__(self, n_inputs: int, n_outputs: int, nonlinear: bool = True, rng: random.Random | None = None):
        check_count(n_outputs, "the number of neurons")
        self.neurons = [Neuron(n_inputs, nonlinear, rng) for _ in range(n_outputs)]

    def __call__(self, inputs: Sequence[Value | float]) -> list[Value]:
        return [neuron(inputs) for neuron in self.neurons]

    def parameters(self) -> list[Value]:
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]


class MLP:
    """A multi-layer perceptron: `MLP(2, [16, 16, 1])` takes 2 numbers through layers of 16, 16 and 1 neurons.

    Every layer but the last ends in a relu. `seed` makes the starting weights repeatable. Raises TypeError or
    ValueError unless the widths are a list of integers of 1 or more, and n_inputs is such an integer.
    """

    def __init__(self, n_inputs: int, widths: Sequence[int], seed: int | None = None):
        if not isinstance(widths, Iterable) or isinstance(widths, str):
            raise TypeError(f"the widths are a list with a number for each layer, such as [16, 16, 1], not {widths!r}")
        widths = list(widths)
        if not widths:
            raise ValueError("the widths are a list with a number for each layer, and this one is empty")
        rng = random.Random(seed)
        sizes = [n_inputs, *widths]
        self.layers = [
            Layer(sizes[i], sizes[i + 1], nonlinear=i < len(widths) - 1, rng=rng) for i in range(len(widths))
        ]

    def __call__(self, inputs: Sequence[Value | float]) -> Any:
        """One Value if the last layer has one neuron, else a list of them."""
        values = [as_value(x) for x in inputs]
        for layer in self.layers:
            values = layer(values)
        return values[0] if len(values) == 1 else values

    def parameters(self) -> list[Value]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]


def hinge_loss(
    scores: Sequence[Value], labels: Sequence[int], parameters: Iterable[Value] = (), l2: float = 0.0
) -> Value:
    """The mean of relu(1 - label * score) over a batch, plus l2 times the sum of the squared parameters.

    `scores` holds one Value for each example, `labels` a 1 or a -1 for each. Also called the max-margin loss.
    Raises ValueError if the two differ in length, are empty, or if a label is neither 1 nor -1.
    """
    if len(scores) != len(labels) or len(scores) == 0:
        raise ValueError(f"hinge_loss needs a label for each score, not {len(scores)} scores and {len(labels)} labels")
    for label in labels:
        if label not in (1, -1):
            raise ValueError(f"a label is 1 or -1, not {label!r}")
    # TODO 01.8: the mean of relu(1 - y * s), plus l2 times the sum of p * p.
    raise NotImplementedError("TODO 01.8")


def train(
    model: MLP,
    points: Sequence[Sequence[float]],
    labels: Sequence[int],
    epochs: int = 8,
    batch_size: int = 5,
    learning_rate: float = 0.3,
    l2: float = 1e-4,
    seed: int = 0,
) -> list[float]:
    """Move the parameters of `model` downhill on the hinge loss, a small batch at a time. Given; chapter 08 teaches it.

    In every epoch each example is used once, in an order that depends on `seed`. The learning rate falls towards 0.
    Returns the mean loss of every epoch.
    """
    rng = random.Random(seed)
    order = list(range(len(points)))
    parameters = model.parameters()
    history = []
    for epoch in range(epochs):
        rng.shuffle(order)
        losses = []
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            scores = [model(points[i]) for i in batch]
            loss = hinge_loss(scores, [labels[i] for i in batch], parameters, l2)
            for parameter in parameters:
                parameter.grad = 0.0
            loss.backward()
            for parameter in parameters:
                parameter.data -= learning_rate * (1.0 - epoch / epochs) * parameter.grad
            losses.append(loss.data)
        history.append(sum(losses) / len(losses))
    return history


def check_count(number: int, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise TypeError(f"{name} is an integer, not {number!r}")
    if number < 1:
        raise ValueError(f"{name} is 1 or more, not {number}")


def accuracy(model: MLP, points: Sequence[Sequence[float]], labels: Sequence[int]) -> float:
    """The share of examples whose score has the sign of their label, between 0 and 1. Given."""
    right = sum((model(point).data > 0.0) == (label > 0) for point, label in zip(points, labels))
    return float(right) / len(labels)
