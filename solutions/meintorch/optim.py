"""Chapter 07: steps downhill."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from meintorch.tensor import Tensor


class Optimizer:
    """Moves parameters against their gradients. A subclass says how, in `update`.

    lr     the learning rate; it may be changed between two steps
    steps  how many steps were taken, this one included while it is being taken
    Raises ValueError for no parameters or a learning rate below 0, TypeError for what is no Tensor.
    """

    def __init__(self, params: Iterable[Tensor], lr: float):
        self.params = list(params)
        for parameter in self.params:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"an optimizer moves Tensors, not {parameter!r} of type {type(parameter).__name__}")
        if not self.params:
            raise ValueError("an optimizer needs parameters, and there are none")
        if not lr >= 0.0:
            raise ValueError(f"the learning rate is 0 or more, not {lr}")
        self.lr = float(lr)  # a plain float, not np.float64, leaves float32 as it is
        self.steps = 0
        self.state: list[dict[str, np.ndarray]] = [{} for _ in self.params]  # what is remembered of each parameter
        self.arrays: dict[tuple, np.ndarray] = {}  # to compute in: see `work`

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
        return {"optimizer": type(self).__name__, "lr": self.lr, "steps": self.steps, **state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`.

        Raises ValueError, and changes nothing, if it is that of another kind of optimizer or of other parameters.
        """
        missing = [name for name in ("optimizer", "lr", "steps") if name not in state]
        if missing:
            raise ValueError(f"this is not the state of an optimizer: {', '.join(missing)} is missing")
        if str(state["optimizer"]) != type(self).__name__:
            raise ValueError(f"this is the state of {state['optimizer']}, and the optimizer is {type(self).__name__}")
        arrays: list[dict[str, np.ndarray]] = [{} for _ in self.params]
        for key, array in state.items():
            if key not in ("optimizer", "lr", "steps"):
                index, _, name = key.partition(".")
                parameter = self.params[int(index)] if index.isdecimal() and int(index) < len(arrays) else None
                if parameter is None or np.shape(array) != parameter.shape:
                    raise ValueError(f"this state does not fit the parameters: {key} has shape {np.shape(array)}")
                arrays[int(index)][name] = np.array(array, dtype=parameter.dtype)
        if any(one.keys() != arrays[0].keys() for one in arrays):
            raise ValueError("this state does not fit the parameters: it has something for some of them only")
        self.lr, self.steps, self.state = float(state["lr"]), int(state["steps"]), arrays


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked for.

    With momentum a parameter keeps a velocity: v = momentum * v + gradient, and moves by lr * v (as in PyTorch).
    Polyak 1964, https://doi.org/10.1016/0041-5553(64)90137-5. Raises ValueError unless 0 <= momentum < 1.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float = 0.0):
        super().__init__(params, lr)
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum is at least 0 and below 1, not {momentum}")
        self.momentum = momentum

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        if self.momentum == 0.0:
            self.move(parameter, parameter.grad)
        else:
            self.move(parameter, self.velocity(parameter, state))

    def move(self, parameter: Tensor, direction: np.ndarray) -> None:
        """Move by lr * direction, downhill. `direction` has the parameter's shape and stays as it is."""
        # 07.1: against the direction, since a gradient points uphill.
        parameter.data -= np.multiply(direction, self.lr, out=self.work(parameter))

    def velocity(self, parameter: Tensor, state: dict[str, np.ndarray]) -> np.ndarray:
        """The parameter's new velocity, which is also kept in state["velocity"]. The first one is the gradient."""
        # 07.2: a part of the old velocity, plus the gradient.
        if "velocity" not in state:
            state["velocity"] = np.array(parameter.grad)
        else:
            state["velocity"] *= self.momentum  # in place: no new array in every step
            state["velocity"] += parameter.grad
        return state["velocity"]


class Adam(Optimizer):
    """Steps of about the same length for every number, whatever the size of its gradient.

    Kingma and Ba 2015, https://arxiv.org/abs/1412.6980. `betas` are the decays of the two running means, of the
    gradient and of its square; eps keeps the division from exploding. Raises ValueError unless 0 <= beta < 1.
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ):
        super().__init__(params, lr)
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"each of the betas is at least 0 and below 1, not {betas}")
        self.betas, self.eps = betas, eps

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        if not state:
            state["mean"] = np.zeros_like(parameter.data)
            state["square"] = np.zeros_like(parameter.data)
        mean, square = state["mean"], state["square"]
        # 07.3: both running means, both corrected for their start at 0, and the step.
        gradient, (beta1, beta2) = parameter.grad, self.betas
        # All of it happens in one array, `work`: new ones in every line would take about a third longer.
        work = self.work(parameter)
        mean *= beta1
        mean += np.multiply(gradient, 1.0 - beta1, out=work)
        square *= beta2
        np.multiply(gradient, gradient, out=work)
        work *= 1.0 - beta2
        square += work
        np.divide(square, 1.0 - beta2**self.steps, out=work)
        np.sqrt(work, out=work)
        work += self.eps
        np.divide(mean, work, out=work)
        work *= self.lr / (1.0 - beta1**self.steps)
        parameter.data -= work


class AdamW(Adam):
    """Adam, and every parameter also shrinks a little in each step, by itself and not through the gradient.

    Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101. Raises ValueError for a weight decay below 0.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, lr, betas, eps)
        if not weight_decay >= 0.0:
            raise ValueError(f"the weight decay is 0 or more, not {weight_decay}")
        self.weight_decay = weight_decay

    def update(self, parameter: Tensor, state: dict[str, np.ndarray]) -> None:
        # 07.4: first the decay, lr * weight_decay of the parameter itself; then Adam's step.
        parameter.data *= 1.0 - self.lr * self.weight_decay
        super().update(parameter, state)


def clip_grad_norm(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients down together if their common length is above `max_norm`. Returns the length before.

    The length is that of all gradients as one long vector (Pascanu et al. 2013, https://arxiv.org/abs/1211.5063).
    """
    params = list(params)
    # 07.5: one length for all of them, one factor for all of them, so that the direction stays.
    norm = math.sqrt(sum(float(np.vdot(parameter.grad, parameter.grad)) for parameter in params))
    if norm > max_norm:
        for parameter in params:  # not `*=`, which a gradient that nothing has arrived at would refuse
            parameter.grad = parameter.grad * (float(max_norm) / norm)
    return norm


def cosine_schedule(step: int, total_steps: int, peak: float, warmup_steps: int = 0, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a line to `peak`, then down along half a cosine to `floor`.

    Step 0 of a warm-up has peak / warmup_steps, step warmup_steps has peak, step total_steps and later ones floor.
    After Loshchilov and Hutter 2017, https://arxiv.org/abs/1608.03983
    """
    # 07.6: how far along is it? The cosine goes from 1 to -1 while that goes from 0 to 1.
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if step >= total_steps:
        return floor
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return floor + (peak - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
