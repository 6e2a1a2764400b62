"""Chapter 08: the training loop."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meintorch.layers import Module
from meintorch.optim import Optimizer
from meintorch.tensor import Tensor

Loss = Callable[[Tensor, np.ndarray], Tensor]  # from a model's output and the right answers to one number


class DataLoader:
    """Examples in batches: iterating gives pairs (inputs, answers) of arrays, the last batch may be shorter.

    With shuffle every round has a new order; the same seed gives the same orders again.
    Inputs and answers have shapes (n, ...) with n at least 1; both keep their dtype.
    Raises ValueError if inputs and answers differ in number, if there are none, or for a batch size below 1.
    """

    def __init__(self, inputs: np.ndarray, answers: np.ndarray, batch_size: int, shuffle: bool = True, seed: int = 0):
        self.inputs, self.answers = np.asarray(inputs), np.asarray(answers)
        if len(self.inputs) != len(self.answers):
            raise ValueError(f"{len(self.inputs)} inputs and {len(self.answers)} answers: there must be one for each")
        if len(self.inputs) == 0:
            raise ValueError("there are no examples to make batches of")
        if batch_size < 1:
            raise ValueError(f"a batch holds at least one example, not {batch_size}")
        self.batch_size, self.shuffle = batch_size, shuffle
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """The number of batches in a round."""
        return -(-len(self.inputs) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        # TODO 08.1: one order for both, cut into batches; the last one is what is left.
        raise NotImplementedError("TODO 08.1")


def train_step(model: Module, loss: Loss, optimizer: Optimizer, inputs: np.ndarray, answers: np.ndarray) -> float:
    """Learn from one batch: every parameter moves once. Returns the batch's loss before the step, a plain number."""
    # TODO 08.2: loss, gradients, step. Nothing from an earlier batch may count, and a plain float goes out.
    raise NotImplementedError("TODO 08.2")


def accuracy(scores: Tensor | np.ndarray, labels: np.ndarray) -> float:
    """The share of right answers, from 0 to 1.

    With scores of shape (n, classes) the answer is the class with the highest score; with shape (n,) or (n, 1) it is
    the sign, and the labels are 1 and -1. Raises ValueError if the numbers of scores and labels differ.
    """
    scores = scores.data if isinstance(scores, Tensor) else np.asarray(scores)
    labels = np.asarray(labels)
    if len(scores) != len(labels):
        raise ValueError(f"{len(scores)} scores and {len(labels)} labels: there must be one for each")
    # TODO 08.3: compare each answer with its label; the mean of True and False is the share of True.
    raise NotImplementedError("TODO 08.3")


def evaluate(model: Module, loss: Loss, loader: DataLoader) -> tuple[float, float]:
    """The mean loss and the accuracy over all examples of a loader. The model learns nothing from them.

    It is put into eval mode meanwhile, and afterwards into the mode it was in.
    """
    was_training = model.training
    # TODO 08.4: eval mode meanwhile; every example counts the same, also in a short last batch.
    raise NotImplementedError("TODO 08.4")


def fit(
    model: Module,
    loss: Loss,
    optimizer: Optimizer,
    loader: DataLoader,
    epochs: int,
    held_out: DataLoader | None = None,
    patience: int | None = None,
    progress: bool = False,
) -> list[dict[str, float]]:
    """Train for some epochs, each a round through the loader. Returns a line for every epoch.

    A line has "epoch" (from 1), "loss" (the mean over the epoch's batches) and, with `held_out`, "held_out_loss" and
    "held_out_accuracy". With `patience`, training ends early when held_out_loss has not fallen below its best for that
    many epochs; early or not, the parameters of the best epoch are put back. `progress` shows a bar.
    Raises ValueError for a patience below 1, or without held_out.
    """
    if patience is not None and held_out is None:
        raise ValueError("patience needs held_out: without other examples there is no telling when to stop")
    if patience is not None and patience < 1:
        raise ValueError(f"patience is at least 1 epoch, not {patience}")
    history: list[dict[str, float]] = []
    best = Best(model)
    # TODO 08.5: in every epoch all batches, then a look at the held-out examples; with patience, the best epoch wins.
    raise NotImplementedError("TODO 08.5")


# Given from here on.


class Best:
    """The parameters of a model at its lowest loss so far."""

    def __init__(self, model: Module):
        self.model, self.loss, self.state, self.epochs = model, np.inf, model.state_dict(), 0

    def epochs_since(self, loss: float) -> int:
        """Take note of an epoch's loss. Returns how many epochs ago the lowest one was: 0 if it is this one."""
        self.epochs += 1
        if loss < self.loss:
            self.loss, self.state, self.epochs = loss, self.model.state_dict(), 0
        return self.epochs

    def put_back(self) -> None:
        self.model.load_state_dict(self.state)


def epochs_of(epochs: int, progress: bool) -> Iterator[int]:
    """1, 2, ..., epochs, with a progress bar if wanted."""
    if not progress:
        yield from range(1, epochs + 1)
        return
    from rich.progress import track

    yield from track(range(1, epochs + 1), description="training")


def save_checkpoint(path: str | os.PathLike, model: Module, optimizer: Optimizer | None = None, **notes: Any) -> None:
    """Save parameters, the optimizer's state and notes (anything that JSON can hold) to a file.

    The file is written beside its place and then moved there: whenever the process is killed, either the old
    checkpoint or the new one is whole. (The unfinished one may then be left over, as ".name.number".)
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    arrays = {f"model/{name}": array for name, array in model.state_dict().items()}
    if optimizer is not None:
        arrays |= {f"optimizer/{name}": np.asarray(array) for name, array in optimizer.state_dict().items()}
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, notes=json.dumps(notes), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def load_checkpoint(path: str | os.PathLike, model: Module, optimizer: Optimizer | None = None) -> dict[str, Any]:
    """Load what `save_checkpoint` has saved into a model and an optimizer. Returns the notes.

    Raises ValueError, and changes neither of them, if the checkpoint does not fit the model or the optimizer.
    """
    with np.load(path, allow_pickle=False) as saved:
        parts = {key: saved[key] for key in saved.files}
    if "notes" not in parts:
        raise ValueError(f"{path} is not a checkpoint: save_checkpoint did not write it")
    states = {
        kind: {key.removeprefix(kind): array for key, array in parts.items() if key.startswith(kind)}
        for kind in ("model/", "optimizer/")
    }
    if optimizer is not None and not states["optimizer/"]:
        raise ValueError(f"{path} was saved without an optimizer")
    before = model.state_dict()
    model.load_state_dict(states["model/"])
    if optimizer is not None:
        try:
            optimizer.load_state_dict(states["optimizer/"])
        except ValueError:
            model.load_state_dict(before)
            raise
    return json.loads(str(parts["notes"]))
