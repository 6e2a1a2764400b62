"""Chapter 07: steps downhill."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from meintorch.arguments import as_number, as_numbers, shown, whole
from meintorch.modules import is_computed, tensors_in
from meintorch.tensor import Tensor

Settings = tuple[tuple[str, Callable[[Any, str], Any]], ...]


def at_least_zero(x: Any, name: str) -> float:
    """`x` as a plain float. Raises TypeError unless it is a number, ValueError unless it is finite and 0 or more."""
    x = as_number(x, name)
    if not 0.0 <= x < math.inf:
        raise ValueError(f"{name} is 0 or more, and finite, not {x}")
    return x


def fraction(x: Any, name: str) -> float:
    """`x` as a plain float. Raises TypeError unless it is a number, ValueError unless 0 <= x < 1."""
    x = as_number(x, name)
    if not 0.0 <= x < 1.0:
        raise ValueError(f"{name} is at least 0 and below 1, not {x}")
    return x


def two_fractions(x: Any, name: str) -> tuple[float, float]:
    """Two decays as a tuple. Raises TypeError or ValueError unless there are two, and each is a fraction."""
    if np.ndim(x) != 1 or len(x) != 2:
        raise (TypeError if np.ndim(x) == 0 else ValueError)(f"{name} are two numbers, not {shown(x)}")
    first, second = (as_number(one, f"each of the {name}") for one in x)
    if not (0.0 <= first < 1.0 and 0.0 <= second < 1.0):
        raise ValueError(f"each of the {name} is at least 0 and below 1, not {(first, second)}")
    return first, second


class Optimizer:
    """Moves parameters against their gradients. A subclass says how, in `update`.

    params  Tensors, each once: inputs that need a gradient, such as model.parameters()
    lr      the learning rate, 0 or more and finite; it may be changed between two steps, to any finite number
    steps   how many steps were taken, this one included while it is being taken
    Raises ValueError for no parameters, for one that was computed, is a constant or comes twice, and for a learning
    rate that cannot be; TypeError for what is no Tensor or no number.
    """

    settings: Settings = ()  # what else there is to set, and what is asked of it

    def __init__(self, params: Iterable[Tensor], lr: float):
        self.params = tensors_in(params, type(self).__name__)
        if not self.params:
            raise ValueError("an optimizer needs parameters, and there are none")
        for i, parameter in enumerate(self.params):
            if is_computed(parameter):
                raise ValueError(f"parameter {i} was computed: give what it was computed from, not {shown(parameter)}")
            if not parameter.requires_grad:
                raise ValueError(f"parameter {i} is a constant, to which no gradient comes: {shown(parameter)}")
            if any(parameter is other for other in self.params[:i]):
                raise ValueError(f"parameter {i} is there twice, and would take two steps: {shown(parameter)}")
        self.lr = at_least_zero(lr, "the learning rate")
        self.steps = 0
        self.state: list[dict[str, np.ndarray]] = [{} for _ in self.params]  # what is remembered of each parameter
        self.arrays: dict[tuple, np.ndarray] = {}  # to compute in: see `work`

    @property
    def lr(self) -> float:
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        lr = as_number(lr, "the learning rate")  # a plain float, not np.float64, leaves float32 as it is
        if not math.isfinite(lr):
            raise ValueError(f"the learning rate is a finite number, not {lr}")
        self._lr = lr

    def zero_grad(self) -> None:
        """Forget all gradients. Without this they add up from step to step."""
        for parameter in self.params:
            parameter.zero_grad()

    def step(self) -> None:
        """Move every parameter once."""
        self.steps += 1
        for parameter, state in zip(self.params, self.state):
            self.update(parameter, state)

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        """Move one parameter. `state` is its own, empty at first."""
        raise TypeError(f"{type(self).__name__} does not define update(parameter, state)")

    def work(self, parameter: Tensor) -> np.ndarray:
        """An array of the parameter's shape and dtype to compute in. What is in it is left over from other work.

        A new array in every step would be given back to the system and asked for again, page by page.
        """
        key = parameter.shape, parameter.dtype
        if key not in self.arrays:
            self.arrays[key] = np.empty_like(parameter.data)
        return self.arrays[key]

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that is needed to go on later as if nothing had happened."""
        state = {f"{i}.{name}": array.copy() for i, one in enumerate(self.state) for name, array in one.items()}
        settings = {name: getattr(self, name) for name, _ in self.settings}
        return {"optimizer": type(self).__name__, "lr": self.lr, "steps": self.steps, **settings, **state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict`: the learning rate and the other settings, such as betas, become those in it.

        Raises ValueError, and changes nothing, if it is that of another kind of optimizer or of other parameters;
        TypeError for what is no dict.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"a state is a dict, as state_dict() gives it, not {shown(state)}")
        missing = [name for name in ("optimizer", "lr", "steps") if name not in state]
        if missing:
            raise ValueError(f"this is not the state of an optimizer: {', '.join(missing)} is missing")
        if str(state["optimizer"]) != type(self).__name__:
            raise ValueError(f"this is the state of {state['optimizer']}, and the optimizer is {type(self).__name__}")
        try:  # [()] makes a number of the array that a file has made of it
            lr = at_least_zero(np.asarray(state["lr"])[()], "lr")
            steps = whole(np.asarray(state["steps"])[()], "steps", least=0)
            settings = {name: asked(state[name], name) for name, asked in self.settings if name in state}
        except (TypeError, ValueError) as problem:
            raise ValueError(f"this is not the state of an optimizer: {problem}") from None
        arrays: list[dict[str, np.ndarray]] = [{} for _ in self.params]
        for key, value in state.items():
            if key not in ("optimizer", "lr", "steps", *settings):
                index, _, name = str(key).partition(".")
                parameter = self.params[int(index)] if index.isdecimal() and int(index) < len(arrays) else None
                array = as_numbers(value)
                if parameter is None or array is None or array.shape != parameter.shape:
                    what = shown(value) if array is None else f"shape {array.shape}"
                    raise ValueError(f"this state does not fit the parameters: {key} has {what}")
                arrays[int(index)][name] = array.astype(parameter.dtype)
        if any(one.keys() != arrays[0].keys() for one in arrays):
            raise ValueError("this state does not fit the parameters: it has something for some of them only")
        self.lr, self.steps, self.state = lr, steps, arrays
        for name, value in settings.items():  # an older state may have none
            setattr(self, name, value)


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked for.

    With momentum a parameter keeps a velocity: v = momentum * v + gradient, and moves by lr * v (as in PyTorch).
    Polyak 1964, https://doi.org/10.1016/0041-5553(64)90137-5. Raises ValueError unless 0 <= momentum < 1.
    """

    settings: Settings = (("momentum", fraction),)

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float = 0.0):
        super().__init__(params, lr)
        self.momentum = fraction(momentum, "momentum")

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        if self.momentum == 0.0:
            self.move(parameter, parameter.grad)
        else:
            self.move(parameter, self.velocity(parameter, state))

    def move(self, parameter: Tensor, direction: np.ndarray) -> None:
        """Move by lr * direction, downhill. `direction` has the parameter's shape and stays as it is."""
        # TODO 07.1: against the direction, since a gradient points uphill.
        raise NotImplementedError("TODO 07.1")

    def velocity(self, parameter: Tensor, state: dict[str, np.ndarray]) -> np.ndarray:
        """The parameter's new velocity, which is also kept in state["velocity"]. The first one is the gradient."""
        # TODO 07.2: a part of the old velocity, plus the gradient.
        raise NotImplementedError("TODO 07.2")


class Adam(Optimizer):
    """Steps of about the same length for every number, whatever the size of its gradient.

    Kingma and Ba 2015, https://arxiv.org/abs/1412.6980. `betas` are the decays of the two running means, of the
    gradient and of its square; eps keeps the division from exploding. Raises ValueError unless there are two betas with
    0 <= beta < 1, and eps is 0 or more.
    """

    settings: Settings = (("betas", two_fractions), ("eps", at_least_zero))

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ):
        super().__init__(params, lr)
        self.betas, self.eps = two_fractions(betas, "betas"), at_least_zero(eps, "eps")

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        if not state:
            state["mean"] = np.zeros_like(parameter.data)
            state["square"] = np.zeros_like(parameter.data)
        mean, square = state["mean"], state["square"]
        # TODO 07.3: both running means, both corrected for their start at 0, and the step.
        raise NotImplementedError("TODO 07.3")


class AdamW(Adam):
    """Adam, and every parameter also shrinks a little in each step, by itself and not through the gradient.

    Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101. Raises ValueError for a weight decay below 0.
    """

    settings: Settings = (*Adam.settings, ("weight_decay", at_least_zero))

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, lr, betas, eps)
        self.weight_decay = at_least_zero(weight_decay, "weight_decay")

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        # TODO 07.4: first the decay, lr * weight_decay of the parameter itself; then Adam's step.
        raise NotImplementedError("TODO 07.4")


def clip_grad_norm(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients down together if their common length is above `max_norm`. Returns the length before.

    The length is that of all gradients as one long vector (Pascanu et al. 2013, https://arxiv.org/abs/1211.5063), in
    float64. If a gradient holds inf or nan, the length is inf or nan, and all gradients stay as they are.
    With max_norm inf nothing is scaled. Raises ValueError for a max_norm below 0 or nan, TypeError for what is no
    number, and for anything but Tensors.
    """
    params = tensors_in(params, "clip_grad_norm")
    max_norm = as_number(max_norm, "max_norm")
    if not max_norm >= 0.0:
        raise ValueError(f"max_norm is 0 or more, not {max_norm}")
    # TODO 07.5: one length for all of them, one factor for all of them, so that the direction stays.
    raise NotImplementedError("TODO 07.5")


def cosine_schedule(step: int, total_steps: int, peak: float, warmup_steps: int = 0, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a line to `peak`, then down along half a cosine to `floor`.

    Step 0 of a warm-up has peak / warmup_steps, step warmup_steps has peak, step total_steps and later ones floor.
    After Loshchilov and Hutter 2017, https://arxiv.org/abs/1608.03983
    Raises TypeError for a step that is no whole number, ValueError for one below 0, for no steps at all, for a warm-up
    of more steps than there are, and for a `peak` or `floor` below 0.
    """
    step, total_steps = whole(step, "step", least=0), whole(total_steps, "total_steps")
    warmup_steps = whole(warmup_steps, "warmup_steps", least=0)
    peak, floor = at_least_zero(peak, "peak"), at_least_zero(floor, "floor")
    if warmup_steps > total_steps:
        raise ValueError(f"a warm-up of {warmup_steps} steps is more than all {total_steps} steps")
    # TODO 07.6: how far along is it? The cosine goes from 1 to -1 while that goes from 0 to 1.
    raise NotImplementedError("TODO 07.6")


# Given.


def length(gradient: np.ndarray) -> float:
    """The root of the sum of the squares of all numbers in an array, in float64, also if the squares are too large."""
    gradient = gradient.astype(np.float64, copy=False)
    square = float(np.vdot(gradient, gradient))
    if 1e-200 < square < math.inf:
        return math.sqrt(square)
    largest = float(np.abs(gradient).max(initial=0.0))  # too large or too small to be squared: scale, and scale back
    return largest * length(gradient / largest) if 0.0 < largest < math.inf else largest
