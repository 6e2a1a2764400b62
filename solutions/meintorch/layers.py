"""Chapter 05: layers, the parts of a network that hold parameters."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from textwrap import indent
from typing import Any

import numpy as np

from meintorch.activations import relu, sigmoid, tanh
from meintorch.arguments import as_number, as_numbers, float_dtype, generator, shown, whole
from meintorch.modules import is_computed
from meintorch.shapes import reshape
from meintorch.tensor import Tensor, as_tensor


class Module:
    """Something with parameters that turns a tensor into another one: a layer, or a network of layers.

    A subclass sets its parameters (Tensors) and inner modules as attributes in `__init__`, alone or in lists, tuples
    and dicts, and defines `forward(x)`. Calling the module calls `forward`, and hands on whatever else it is given.
    A parameter is made from numbers, Tensor(0.1 * numbers): what was computed, 0.1 * Tensor(numbers) or something that
    `forward` keeps in an attribute, is none. Whatever looks for parameters or modules
    raises ValueError for two things under one name, and for a module that holds another one that it is inside of.
    """

    training = True  # set by train() and eval(): some layers do something else while they learn

    def __call__(self, x: Any, *others: Any, **named: Any) -> Tensor:
        return self.forward(as_tensor(x), *others, **named)

    def forward(self, x: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not define forward(x)")

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Every parameter of this module and of those inside it, each once, with its path: ("0.weight", Tensor)."""
        found: dict[str, Tensor] = {}
        with loops_named(self):
            collect_parameters(self, "", found)
        return [(name, tensor) for name, tensor in found.items() if not is_computed(tensor)]

    def parameters(self) -> list[Tensor]:
        """Every parameter of this module and of those inside it, each once."""
        return [parameter for _, parameter in self.named_parameters()]

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def children(self) -> dict[str, "Module"]:
        """The modules directly inside this one, by name: in attributes, lists, tuples and dicts."""
        found: dict[str, Module] = {}
        collect_children(self, "", found)
        return found

    def train(self, mode: bool = True) -> "Module":
        """Tell this module and all inside it that they are learning (with False: `eval`). Returns the module."""
        with loops_named(self):
            return self._set_training(bool(mode))

    def eval(self) -> "Module":
        """Tell this module and all inside it that they are being used, not taught. Returns the module."""
        return self.train(False)

    def _set_training(self, training: bool) -> "Module":
        # 05.6: here, and in every module inside.
        self.training = training
        for child in self.children().values():
            child._set_training(training)
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter's numbers, by name: what has to be saved to have the same network again."""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Set every parameter to the numbers of a `state_dict`, in the parameter's dtype.

        Raises ValueError, and changes nothing, if an entry is missing, is unexpected, has the wrong shape or is no
        array of real numbers; TypeError for what is no dict.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"a state is a dict of arrays, as state_dict() gives it, not {shown(state)}")
        parameters = dict(self.named_parameters())
        problems = [f"{name} is missing" for name in parameters if name not in state]
        problems += [f"{name} is not expected" for name in state if name not in parameters]
        loaded = {}
        for name, parameter in parameters.items():
            if name in state:
                array = as_numbers(state[name])
                if array is None:
                    problems.append(f"{name} is no array of real numbers, but {shown(state[name])}")
                elif array.shape != parameter.shape:
                    problems.append(f"{name} has shape {array.shape}, expected {parameter.shape}")
                else:
                    loaded[name] = array.astype(parameter.dtype)
        if problems:
            raise ValueError("this state does not fit the module: " + "; ".join(problems))
        for name, parameter in parameters.items():
            parameter.data = loaded[name]

    def extra_repr(self) -> str:
        """What repr() tells of this module itself, such as its sizes, "2, 16": nothing, unless a subclass says so."""
        return ""

    def __repr__(self) -> str:
        with loops_named(self):
            inside = [f"{name}: {child!r}" for name, child in self.children().items()]
        parts = [part for part in (self.extra_repr(), *inside) if part]
        line = f"{type(self).__name__}({', '.join(parts)})"
        if len(line) <= 80 and "\n" not in line:
            return line
        return f"{type(self).__name__}(\n" + "".join(f"{indent(part, '  ')},\n" for part in parts) + ")"


def members_of(value: Any) -> dict[str, Any]:
    """What a module, a list, a tuple or a dict holds, by name. Nothing for anything else."""
    if isinstance(value, Module):
        return told_apart(vars(value))
    if isinstance(value, dict):
        members = {str(key): member for key, member in value.items()}
        if len(members) < len(value):
            names = [str(key) for key in value]
            raise two_things_called(next(name for name in names if names.count(name) > 1))
        return told_apart(members)
    if isinstance(value, list | tuple):
        return {str(index): member for index, member in enumerate(value)}
    return {}


def collect_parameters(value: Any, name: str, found: dict[str, Tensor]) -> None:
    """Add to `found` every parameter that `value` is or holds, under its path. No tensor is added twice."""
    # 05.1: a tensor is a parameter if it wants a gradient; whatever holds others is searched.
    if isinstance(value, Tensor):
        if value.requires_grad and not any(value is known for known in found.values()):
            found[name] = value
    else:
        for key, member in members_of(value).items():
            collect_parameters(member, f"{name}.{key}" if name else key, found)


class Linear(Module):
    """A weighted sum for each output, plus a bias: x @ weight + bias.

    weight  shape (n_inputs, n_outputs), random at the start
    bias    shape (n_outputs,), 0 at the start; None with bias=False
    dtype   float64 or float32. A float32 layer stays so only with float32 inputs: with a Tensor or an array of float64,
            which is what NumPy makes if it is not told otherwise, the result is float64
    rng     makes the start repeatable: a seed, or a generator to draw from
    Raises TypeError or ValueError for sizes that are no whole numbers from 1, and TypeError for another dtype or rng.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        bias: bool = True,
        dtype: Any = np.float64,
        rng: np.random.Generator | int | None = None,
    ):
        n_inputs, n_outputs = whole(n_inputs, "n_inputs of Linear"), whole(n_outputs, "n_outputs of Linear")
        dtype = float_dtype(dtype)
        self.weight = Tensor(initial_weight(n_inputs, n_outputs, generator(rng)).astype(dtype))
        self.bias = Tensor(np.zeros(n_outputs, dtype)) if bias else None

    def extra_repr(self) -> str:
        sizes = ", ".join(map(str, self.weight.shape))
        dtype = "" if self.weight.dtype == np.float64 else f", dtype={self.weight.dtype}"
        return sizes + ("" if self.bias is not None else ", bias=False") + dtype

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., n_inputs) to (..., n_outputs)."""
        # 05.3: x @ weight, plus the bias if there is one.
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


def initial_weight(n_inputs: int, n_outputs: int, rng: np.random.Generator) -> np.ndarray:
    """Random weights of shape (n_inputs, n_outputs), float64, that keep a signal's size through a layer with relu.

    Normally distributed with mean 0 and variance 2 / n_inputs: He et al. 2015, https://arxiv.org/abs/1502.01852
    """
    # 05.2: standard normal numbers, scaled to the standard deviation sqrt(2 / n_inputs).
    return rng.standard_normal((n_inputs, n_outputs)) * np.sqrt(2.0 / n_inputs)


class Sequential(Module):
    """Modules in a row: each gets what the one before gives. They are its children "0", "1", ...

    `row[0]` is the first and `row[-1]` the last of them, `row[1:]` a shorter row of the same modules. Raises TypeError
    for what is no module.
    """

    def __init__(self, *modules: Module):
        for index, module in enumerate(modules):
            if not isinstance(module, Module):
                raise TypeError(f"Sequential takes modules, not {shown(module)}")
            setattr(self, str(index), module)

    def __len__(self) -> int:
        return len(self.children())

    def __iter__(self) -> Iterator[Module]:
        return iter(self.children().values())

    def __getitem__(self, index: int | slice) -> Module:
        """The module at a place, or a Sequential of those in a slice. Raises IndexError where there is none."""
        modules = list(self)
        if isinstance(index, slice):
            return Sequential(*modules[index])
        try:
            return modules[index]
        except IndexError:
            raise IndexError(f"there are {len(modules)} modules in this Sequential, and none at {index}") from None
        except TypeError:
            raise TypeError(f"a place in a Sequential is a whole number or a slice, not {shown(index)}") from None

    def forward(self, x: Tensor) -> Tensor:
        """Whatever the first module takes, to whatever the last one gives; x itself if there are none."""
        # 05.4: through one child after the other.
        for child in self.children().values():
            x = child(x)
        return x


class Dropout(Module):
    """While it learns, drop each number with probability p and scale the others up by 1 / (1 - p), so that the expected
    value stays. Otherwise x as it is. Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html

    rng makes the draws repeatable: a seed, or a generator to draw from.
    Raises ValueError unless 0 <= p < 1, TypeError if p is no number or rng is something else.
    """

    def __init__(self, p: float = 0.5, rng: np.random.Generator | int | None = None):
        self.p = as_number(p, "the probability p of Dropout")
        if not 0.0 <= self.p < 1.0:
            raise ValueError(f"the probability p of Dropout is at least 0 and below 1, not {p}")
        self.rng = generator(rng)

    def extra_repr(self) -> str:
        return f"{self.p}"

    def forward(self, x: Tensor) -> Tensor:
        """Any shape and dtype, which stay. Every call draws anew."""
        # 05.5: nothing in eval mode; else times a mask of zeros and of 1 / (1 - p).
        if not self.training or self.p == 0.0:
            return x
        kept = self.rng.random(x.shape) >= self.p
        return x * (kept / (1.0 - self.p))


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


# Plumbing: what looks for the parts of a module.


def two_things_called(name: str) -> ValueError:
    return ValueError(f"a module holds two things under the name {name!r}: give one of them another name")


def told_apart(members: dict[str, Any]) -> dict[str, Any]:
    """The members as they are. Raises ValueError if one is called "a.b" and what is called "a" holds a "b" too."""
    if "." in "".join(members):
        for name in members:
            for other in members:
                if name.startswith(f"{other}.") and holds(members[other], name[len(other) + 1 :]):
                    raise two_things_called(name)
    return members


def holds(value: Any, path: str) -> bool:
    """Does the path lead to something inside of `value`?"""
    members = members_of(value)
    return path in members or any(
        path.startswith(f"{name}.") and holds(member, path[len(name) + 1 :]) for name, member in members.items()
    )


def collect_children(value: Any, name: str, found: dict[str, Module]) -> None:
    """Add to `found` the modules directly inside of `value`, under their paths."""
    for key, member in members_of(value).items():
        path = f"{name}.{key}" if name else key
        if isinstance(member, Module):
            found[path] = member
        elif isinstance(member, dict | list | tuple):
            collect_children(member, path, found)


@contextmanager
def loops_named(module: Module) -> Iterator[None]:
    """Where a search inside of a module goes round in circles, say where."""
    try:
        yield
    except RecursionError:
        loop = loop_in(module, "", [])
        if loop is None:
            raise
        around = loop.rpartition(".")[0] or "this module"
        raise ValueError(
            f"{loop} leads back to what {around} is inside of, and a search for parameters would never end: "
            "keep it in a function, for example (lambda: parent)"
        ) from None


def loop_in(value: Any, name: str, around: list[Any]) -> str | None:
    """The path at which something holds what it is inside of, None if there is none."""
    for key, member in members_of(value).items():
        path = f"{name}.{key}" if name else key
        if any(member is one for one in [*around, value]):
            return path
        if found := loop_in(member, path, [*around, value]):
            return found
    return None
