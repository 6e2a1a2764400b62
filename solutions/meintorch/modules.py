"""What is asked of all modules of a model together. There is nothing to fill in here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def modules_of(model: Any) -> list[Any]:
    """The model itself and all modules inside it, each once, also where one knows another that it is inside of."""
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
