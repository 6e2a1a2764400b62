"""Chapter 08: the training loop."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meintorch.arguments import as_numbers, generator, shown, whole
from meintorch.layers import Module
from meintorch.modules import in_eval_mode
from meintorch.optim import Optimizer
from meintorch.tensor import Tensor

Loss = Callable[[Tensor, np.ndarray], Tensor]  # from a model's output and the right answers to one number


class DataLoader:
    """Examples in batches: iterating gives pairs (inputs, answers) of arrays, the last batch may be shorter.

    With shuffle every round has a new order; the same seed gives the same orders again.
    Inputs and answers are arrays, or what NumPy makes arrays of, of shapes (n, ...) with n at least 1; both keep their
    dtype. Raises ValueError if they differ in number, if there are none, or for a batch size below 1; TypeError for
    Tensors, and for a batch size or a seed that is no whole number.
    """

    def __init__(self, inputs: np.ndarray, answers: np.ndarray, batch_size: int, shuffle: bool = True, seed: int = 0):
        self.inputs, self.answers = examples(inputs, "inputs"), examples(answers, "answers")
        if len(self.inputs) != len(self.answers):
            raise ValueError(f"{len(self.inputs)} inputs and {len(self.answers)} answers: there must be one for each")
        if len(self.inputs) == 0:
            raise ValueError("there are no examples to make batches of")
        self.batch_size, self.shuffle = whole(batch_size, "batch_size"), shuffle
        self.rng = generator(seed, "seed")

    def __len__(self) -> int:
        """The number of batches in a round."""
        return -(-len(self.inputs) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        # TODO 08.1: one order for both, cut into batches; the last one is what is left.
        raise NotImplementedError("TODO 08.1")


def train_step(model: Module, loss: Loss, optimizer: Optimizer, inputs: np.ndarray, answers: np.ndarray) -> float:
    """Learn from one batch: every parameter moves once. Returns the batch's loss before the step, a plain number.

    Raises TypeError or ValueError, and moves nothing, if the loss is no Tensor with one number.
    """
    loss = one_number(loss)
    # TODO 08.2: loss, gradients, step. Nothing from an earlier batch may count, and a plain float goes out.
    raise NotImplementedError("TODO 08.2")


def accuracy(scores: Tensor | np.ndarray, labels: np.ndarray) -> float:
    """The share of right answers, from 0 to 1.

    scores (..., classes)  the answer is the class with the highest score; labels are integers of shape (...). In a
                           language model these are (batch, places, n) and (batch, places)
    scores (n,) or (n, 1)  the answer is the sign; labels are 1 and -1, or 1 and 0, in either of the two shapes
    Raises ValueError for other shapes, for one-hot labels, for labels that there are not and where there is nothing to
    count; TypeError for class labels that are no integers.
    """
    scores, labels = scores_and_labels(scores, labels)  # of several axes of examples it has made one
    # TODO 08.3: compare each answer with its label; the mean of True and False is the share of True.
    raise NotImplementedError("TODO 08.3")


def evaluate(model: Module, loss: Loss, loader: Iterable[tuple[Any, Any]]) -> tuple[float, float | None]:
    """The mean loss and the accuracy over all examples of a loader. The model learns nothing from them.

    It is put into eval mode meanwhile, and afterwards each part of it into the mode it was in, whatever happens.
    For a regression, whose answers are numbers to come close to (`is_regression`), the accuracy is None.
    Raises ValueError if there are no examples, as `accuracy` does for labels that do not fit, and as `train_step` does.
    """
    loss = one_number(loss)
    # TODO 08.4: eval mode meanwhile; every example counts the same, also in a short last batch.
    raise NotImplementedError("TODO 08.4")


def fit(
    model: Module,
    loss: Loss,
    optimizer: Optimizer,
    loader: Iterable[tuple[Any, Any]],
    epochs: int,
    held_out: Iterable[tuple[Any, Any]] | None = None,
    patience: int | None = None,
    progress: bool = False,
) -> list[dict[str, float | None]]:
    """Train for some epochs, each a round through the loader. Returns a line for every epoch.

    A line has "epoch" (from 1), "loss" (the mean over the epoch's batches) and, with `held_out`, "held_out_loss" and
    "held_out_accuracy" (None for a regression). With `patience`, training ends early when held_out_loss has not fallen
    below its best for that many epochs; early or not, the parameters of the best epoch are put back. A loss that is nan
    is no new best. `progress` shows a bar.
    A loader is a DataLoader, or anything else that gives pairs (inputs, answers) anew in every epoch.
    Raises ValueError for a patience below 1, or without held_out, for epochs below 0, and for a loader that gives
    nothing; TypeError for epochs or a patience that are no whole numbers, and for a generator, which gives its batches
    only once.
    """
    epochs = whole(epochs, "epochs", least=0)
    for batches in (loader, held_out):
        check_loader(batches, epochs)
    if patience is not None and held_out is None:
        raise ValueError("patience needs held_out: without other examples there is no telling when to stop")
    if patience is not None:
        patience = whole(patience, "patience")
    history: list[dict[str, float | None]] = []
    best = Best(model)
    # TODO 08.5: in every epoch all batches, then a look at the held-out examples; with patience, the best epoch wins.
    raise NotImplementedError("TODO 08.5")


# Given from here on.


def examples(values: Any, name: str) -> np.ndarray:
    """`values` as an array with an axis of examples."""
    if isinstance(values, Tensor):
        raise TypeError(f"the {name} of a DataLoader are an array, not a Tensor: give its .data")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"the {name} of a DataLoader are one array, not rows of differing shapes") from None
    if array.ndim == 0:
        raise TypeError(f"the {name} of a DataLoader are an array with a row for each example, not {shown(values)}")
    return array


def one_number(loss: Loss) -> Loss:
    """The loss function, which now says so if what it returns cannot be the loss of a batch."""
    if not callable(loss):
        raise TypeError(f"a loss is a function of a model's output and the right answers, not {shown(loss)}")

    def checked(scores: Tensor, answers: np.ndarray) -> Tensor:
        value = loss(scores, answers)
        if not isinstance(value, Tensor):
            raise TypeError(f"a loss returns a Tensor, so that there is a gradient, not {shown(value)}")
        if value.size != 1:
            raise ValueError(f'the loss of a batch is one number (reduction="mean"), not one of shape {value.shape}')
        return value

    return checked


def check_loader(loader: Any, epochs: int) -> None:
    """Raises TypeError for what cannot give its batches in every epoch, ValueError for what gives none."""
    if isinstance(loader, Iterator) and epochs > 1:
        raise TypeError(f"a loader gives its batches in each of {epochs} epochs, and {shown(loader)} gives them once")
    if loader is not None and not isinstance(loader, Iterable):
        raise TypeError(f"a loader is a DataLoader, or a list of pairs (inputs, answers), not {shown(loader)}")
    if isinstance(loader, list | tuple) and not loader:
        raise ValueError("the loader is empty: it gives no batches")


def as_arrays(scores: Any, labels: Any) -> list[np.ndarray]:
    """Both as arrays of numbers. Raises TypeError if they are none."""
    arrays = []
    for name, value in (("scores", scores), ("labels", labels)):
        array = as_numbers(value.data if isinstance(value, Tensor) else value)
        if array is None:
            raise TypeError(f"{name} are an array of real numbers, not {shown(value)}")
        arrays.append(array)
    return arrays


def is_column(scores: np.ndarray) -> bool:
    """One score for each example, shape (n,) or (n, 1)?"""
    return scores.ndim == 1 or (scores.ndim == 2 and scores.shape[1] == 1)


def are_two_classes(labels: np.ndarray) -> bool:
    """Are all of them 1 and -1, or all of them 1 and 0?"""
    return bool(np.isin(labels, (1, -1)).all() or np.isin(labels, (1, 0)).all())


def are_one_hot(labels: np.ndarray) -> bool:
    """Has each row a single 1, and 0 elsewhere?"""
    return bool(np.isin(labels, (1, 0)).all() and (labels.sum(axis=-1) == 1).all())


def share_of_right(scores: Tensor, answers: np.ndarray) -> float:
    """The accuracy, or nan for a regression, which has none."""
    return np.nan if is_regression(scores, answers) else accuracy(scores, answers)


def means_of(losses: float, right: float, count: float) -> tuple[float, float | None]:
    """Two sums over `count` examples as means; None in place of nan. Raises ValueError if there are no examples."""
    if count == 0:
        raise ValueError("there are no examples to evaluate the model with: a generator, for instance, gives them once")
    return losses / count, None if np.isnan(right) else right / count


def is_regression(scores: Any, answers: Any) -> bool:
    """Are the answers numbers to come close to, rather than labels?

    They are if they have the scores' very shape, and are neither the labels of two classes (scores of shape (n,) or
    (n, 1), all answers 1 and -1, or all 1 and 0) nor one-hot rows.
    """
    scores, answers = as_arrays(scores, answers)
    if answers.shape != scores.shape or answers.size == 0:
        return False
    return not (are_two_classes(answers) if is_column(scores) else are_one_hot(answers))


def scores_and_labels(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels as arrays that `accuracy` can compare: (n, classes) with (n,), or a column of scores as it is.

    Raises as `accuracy` does.
    """
    scores, labels = as_arrays(scores, labels)
    if scores.ndim == 0 or scores.size == 0:
        raise ValueError(f"there are no answers to count in scores of shape {scores.shape}")
    if is_column(scores):
        if labels.shape not in ((len(scores),), (len(scores), 1)):
            raise ValueError(f"{len(scores)} scores need as many labels, and these have shape {labels.shape}")
        if not are_two_classes(labels):
            odd = [*labels[~np.isin(labels, (1, 0, -1))], "0, another -1"][0]
            raise ValueError(f"with one score each the labels are 1 and -1, or 1 and 0, and one of these is {odd}")
        return scores, labels
    if labels.shape != scores.shape[:-1] or scores.shape[-1] < 2:
        hint = ": for one-hot rows give labels.argmax(-1)" if labels.shape == scores.shape else ""
        raise ValueError(
            f"scores have shape (..., classes) and labels (...), or both (n,) or (n, 1): "
            f"not {scores.shape} and {labels.shape}{hint}"
        )
    if labels.dtype.kind not in "iu":
        raise TypeError(f"class labels are integers, not {labels.dtype}")
    classes = scores.shape[-1]
    outside = labels[(labels < 0) | (labels >= classes)]
    if outside.size:
        raise ValueError(f"with {classes} classes a label is from 0 to {classes - 1}, not {outside[0]}")
    return scores.reshape(-1, classes), labels.reshape(-1)


def mean_of(losses: list[float]) -> float:
    """The mean of an epoch's losses. Raises ValueError if there were no batches."""
    if not losses:
        raise ValueError("the loader gave no batches in this epoch: a generator, for instance, gives them only once")
    return sum(losses) / len(losses)


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
    Raises TypeError, and writes nothing, for a note that JSON cannot hold.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    for name, note in notes.items():
        try:
            json.dumps(note)
        except (TypeError, ValueError, RecursionError):
            raise TypeError(
                f"the note {name!r} is nothing that JSON can hold (numbers, text, lists and dicts of them), "
                f"but {shown(note)}"
            ) from None
    arrays: dict[str, Any] = {f"model/{name}": array for name, array in model.state_dict().items()}
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

    Raises FileNotFoundError if there is no such file, and ValueError, which names it, if it is no checkpoint, is
    damaged, or does not fit the model or the optimizer. Then neither of them has changed.
    """
    parts, notes = read_checkpoint(path)
    states = {
        kind: {key.removeprefix(kind): array for key, array in parts.items() if key.startswith(kind)}
        for kind in ("model/", "optimizer/")
    }
    if optimizer is not None and not states["optimizer/"]:
        raise ValueError(f"{path} was saved without an optimizer")
    before = model.state_dict()
    try:
        model.load_state_dict(states["model/"])
        if optimizer is not None:
            optimizer.load_state_dict(states["optimizer/"])
    except ValueError as problem:
        model.load_state_dict(before)
        raise ValueError(f"{path}: {problem}") from None
    return notes


def read_checkpoint(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays in a checkpoint, by name, and the notes."""
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder, not a checkpoint")
    try:
        with np.load(path, allow_pickle=False) as saved:
            parts = {key: saved[key] for key in saved.files}
        return parts, json.loads(str(parts.pop("notes")))
    except OSError:  # it is not there, or not to be read
        raise
    except Exception as problem:  # a damaged file fails in many ways, deep inside of zipfile or NumPy
        raise ValueError(f"{path} is not a checkpoint: save_checkpoint did not write it, or it is damaged") from problem
