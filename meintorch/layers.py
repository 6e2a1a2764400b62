"""Chapter 05: layers, the parts of a network that hold parameters."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from meintorch.activations import relu, sigmoid, tanh
from meintorch.shapes import reshape
from meintorch.tensor import Tensor, as_tensor


class Module:
    """Something with parameters that turns a tensor into another one: a layer, or a network of layers.

    A subclass sets its parameters (Tensors) and inner modules as attributes in `__init__`, alone or in lists and dicts,
    and defines `forward(x)`. Calling the module calls `forward`, and hands on whatever else it is given.
    """

    training = True  # set by train() and eval(): some layers do something else while they learn

    def __call__(self, x: Any, *others: Any, **named: Any) -> Tensor:
        return self.forward(as_tensor(x), *others, **named)

    def forward(self, x: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not define forward(x)")

    def named_parameters(self) -> dict[str, Tensor]:
        """Every parameter of this module and of those inside it, each once, by its path: "0.weight", "head.bias"."""
        found: dict[str, Tensor] = {}
        collect_parameters(self, "", found)
        return found

    def parameters(self) -> list[Tensor]:
        """Every parameter of this module and of those inside it, each once."""
        return list(self.named_parameters().values())

    def children(self) -> dict[str, "Module"]:
        """The modules directly inside this one, by name: in attributes, lists and dicts."""
        found: dict[str, Module] = {}
        waiting = list(vars(self).items())[::-1]
        while waiting:
            name, value = waiting.pop()
            if isinstance(value, Module):
                found[name] = value
            else:
                waiting.extend([(f"{name}.{key}", member) for key, member in members_of(value).items()][::-1])
        return found

    def train(self, mode: bool = True) -> "Module":
        """Tell this module and all inside it that they are learning (with False: `eval`). Returns the module."""
        return self._set_training(bool(mode))

    def eval(self) -> "Module":
        """Tell this module and all inside it that they are being used, not taught. Returns the module."""
        return self._set_training(False)

    def _set_training(self, training: bool) -> "Module":
        # TODO 05.6: here, and in every module inside.
        raise NotImplementedError("TODO 05.6")

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter's numbers, by name: what has to be saved to have the same network again."""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters().items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Set every parameter to the numbers of a `state_dict`.

        Raises ValueError, and changes nothing, if an entry is missing, is unexpected or has the wrong shape.
        """
        parameters = self.named_parameters()
        problems = [f"{name} is missing" for name in parameters if name not in state]
        problems += [f"{name} is not expected" for name in state if name not in parameters]
        problems += [
            f"{name} has shape {np.shape(state[name])}, expected {parameter.shape}"
            for name, parameter in parameters.items()
            if name in state and np.shape(state[name]) != parameter.shape
        ]
        if problems:
            raise ValueError("this state does not fit the module: " + "; ".join(problems))
        loaded = {name: np.array(state[name], dtype=parameter.dtype) for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            parameter.data = loaded[name]

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {child!r}" for name, child in self.children().items())
        return f"{type(self).__name__}({inside})"


def members_of(value: Any) -> dict[str, Any]:
    """What a module, a list, a tuple or a dict holds, by name. Nothing for anything else."""
    if isinstance(value, Module):
        return vars(value)
    if isinstance(value, dict):
        return {str(key): member for key, member in value.items()}
    if isinstance(value, list | tuple):
        return {str(index): member for index, member in enumerate(value)}
    return {}


def collect_parameters(value: Any, name: str, found: dict[str, Tensor]) -> None:
    """Add to `found` every parameter that `value` is or holds, under its path. No tensor is added twice."""
    # TODO 05.1: a tensor is a parameter if it wants a gradient; whatever holds others is searched.
    raise NotImplementedError("TODO 05.1")


class Linear(Module):
    """A weighted sum for each output, plus a bias: x @ weight + bias.

    weight  shape (n_inputs, n_outputs), random at the start
    bias    shape (n_outputs,), 0 at the start; None with bias=False
    dtype   float64 or float32; rng makes the start repeatable
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        bias: bool = True,
        dtype: Any = np.float64,
        rng: np.random.Generator | None = None,
    ):
        self.weight = Tensor(initial_weight(n_inputs, n_outputs, rng or np.random.default_rng()).astype(dtype))
        self.bias = Tensor(np.zeros(n_outputs, dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., n_inputs) to (..., n_outputs)."""
        # TODO 05.3: x @ weight, plus the bias if there is one.
        raise NotImplementedError("TODO 05.3")


def initial_weight(n_inputs: int, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
    """Random weights of shape (n_inputs, n_outputs), float64, that keep a signal's size through a layer with relu.

    Normally distributed with mean 0 and variance 2 / n_inputs: He et al. 2015, https://arxiv.org/abs/1502.01852
    """
    # TODO 05.2: standard normal numbers, scaled to the standard deviation sqrt(2 / n_inputs).
    raise NotImplementedError("TODO 05.2")


class Sequential(Module):
    """Modules in a row: each gets what the one before gives. They are its children "0", "1", ..."""

    def __init__(self, *modules: Module):
        for index, module in enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential takes modules, not {module!r} of type {type(module).__name__}")
            setattr(self, str(index), module)

    def __len__(self) -> int:
        return len(self.children())

    def forward(self, x: Tensor) -> Tensor:
        """Whatever the first module takes, to whatever the last one gives; x itself if there are none."""
        # TODO 05.4: through one child after the other.
        raise NotImplementedError("TODO 05.4")


class Dropout(Module):
    """While it learns, drop each number with probability p and scale the others up by 1 / (1 - p), so that the expected
    value stays. Otherwise x as it is. Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html

    Raises ValueError unless 0 <= p < 1.
    """

    def __init__(self, p: float = 0.5, rng: np.random.Generator | None = None):
        if not 0.0 <= p < 1.0:
            raise ValueError(f"the probability p of Dropout is at least 0 and below 1, not {p}")
        self.p = p
        self.rng = rng or np.random.default_rng()

    def forward(self, x: Tensor) -> Tensor:
        """Any shape and dtype, which stay. Every call draws anew."""
        # TODO 05.5: nothing in eval mode; else times a mask of zeros and of 1 / (1 - p).
        raise NotImplementedError("TODO 05.5")


class Flatten(Module):
    """All axes but the first as one: (n, ...) to (n, k)."""

    def forward(self, x: Tensor) -> Tensor:
        return reshape(x, (len(x), x.size // max(len(x), 1)))


def _as_module(name: str, function: Callable[[Tensor], Tensor]) -> type[Module]:
    """A function without parameters as a module, to stand in a Sequential."""
    return type(
        name, (Module,), {"forward": lambda self, x: function(x), "__doc__": f"{function.__name__} as a module."}
    )


ReLU = _as_module("ReLU", relu)
Tanh = _as_module("Tanh", tanh)
Sigmoid = _as_module("Sigmoid", sigmoid)
