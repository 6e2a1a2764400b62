"""What is asked of a model, of its parts and of its parameters. There is nothing to fill in here."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from meintorch.arguments import shown
from meintorch.tensor import Tensor


def modules_of(model: Any) -> list[Any]:
    """The model itself and all modules inside it, each once. Raises TypeError for what is no Module."""
    if not callable(getattr(model, "children", None)):
        raise TypeError(f"a model is a Module, not {shown(model)}")
    found, waiting = {}, [model]
    while waiting:
        module = waiting.pop()
        if id(module) not in found:
            found[id(module)] = module
            waiting += [*module.children().values()][::-1]
    return list(found.values())


@contextmanager
def in_eval_mode(model: Any) -> Iterator[None]:
    """`with in_eval_mode(model):` puts a model into eval mode meanwhile, and then each of its parts back as it was.

    Also where an exception ends the block.
    """
    before = [(module, module.training) for module in modules_of(model)]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def is_computed(x: Any) -> bool:
    """Is it a Tensor that was computed from others, and not made from numbers? So it is also once its graph is gone."""
    return isinstance(x, Tensor) and bool(x._children or x._op)


def tensors_in(params: Iterable[Tensor], name: str) -> list[Tensor]:
    """The Tensors that `name` is given, as a list. Raises TypeError for anything but Tensors in a row."""
    if isinstance(params, Tensor):
        raise TypeError(f"{name} takes a list of Tensors, and this is a single one: write [tensor]")
    if callable(getattr(params, "parameters", None)):
        raise TypeError(f"{name} takes parameters, not a {type(params).__name__}: give model.parameters()")
    if isinstance(params, Mapping | str | bytes) or not isinstance(params, Iterable):
        raise TypeError(f"{name} takes a list of Tensors, such as model.parameters(), not {shown(params)}")
    params = list(params)
    for parameter in params:
        if not isinstance(parameter, Tensor):
            raise TypeError(f"{name} takes Tensors, such as model.parameters(), not {shown(parameter)}")
    return params
