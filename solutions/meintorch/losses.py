"""Chapter 06: how wrong is it? One number to make smaller."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from meintorch.activations import relu, stable_log_softmax
from meintorch.shapes import mean, sum
from meintorch.tensor import Tensor, as_tensor

# Every loss takes reduction="mean" (over the examples), "sum", or "none" for the losses one by one.


def mse_loss(prediction: Tensor, target: Any, reduction: str = "mean") -> Tensor:
    """The squared error (prediction - target) ** 2. `target` is an array or Tensor of the same shape.

    Raises ValueError if the shapes differ: broadcasting would compare every prediction with every target.
    """
    target = as_tensor(target, like=prediction)
    check_same_shape(prediction, target, "mse_loss", "target")
    # 06.1: the difference times itself; the reduction is given.
    difference = prediction - target
    return reduce(difference * difference, reduction)


def hinge_loss(scores: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The max-margin loss relu(1 - label * score). `labels` holds a 1 or a -1 for each score, in the same shape.

    Raises ValueError if the shapes differ or a label is neither 1 nor -1.
    """
    labels = as_tensor(labels, like=scores)
    check_same_shape(scores, labels, "hinge_loss", "labels")
    if not np.isin(labels.data, (-1.0, 1.0)).all():
        raise ValueError(f"the labels of hinge_loss are 1 and -1, not {np.setdiff1d(labels.data, (-1.0, 1.0))[0]}")
    # 06.2: zero beyond the margin of 1, growing below it.
    return reduce(relu(1.0 - labels * scores), reduction)


def nll_loss(log_probabilities: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The negative log-likelihood: minus the log-probability of the right class. With log_softmax: cross-entropy.

    log_probabilities  shape (..., classes)
    labels             integers of shape (...), from 0 to classes - 1
    Raises TypeError for labels that are not integers, ValueError for a wrong shape or a class that there is not.
    """
    labels = check_labels(labels, log_probabilities)
    hot = one_hot(labels, log_probabilities.shape[-1])  # a 1 at the right class, 0 elsewhere
    # 06.3: one number of each row is picked: multiply with the one-hot row, and sum it up.
    return reduce(-sum(log_probabilities * hot, axis=-1), reduction)


def cross_entropy(logits: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The cross-entropy of softmax(logits) with the right classes, in a single node: nll_loss(log_softmax(logits)).

    logits  shape (..., classes): any numbers, the larger the likelier
    labels  integers of shape (...), from 0 to classes - 1
    Raises TypeError for labels that are not integers, ValueError for a wrong shape or a class that there is not.
    """
    labels = check_labels(labels, logits)
    log_probabilities = stable_log_softmax(logits.data, -1)
    right = labels[..., None]  # where in each row the right class is, for np.take_along_axis and np.put_along_axis
    out = Tensor(-np.take_along_axis(log_probabilities, right, -1)[..., 0], (logits,), "cross_entropy")

    def _backward(upstream):
        # 06.4: softmax minus one-hot, in each row times what arrives at its loss.
        gradient = np.exp(log_probabilities)
        np.put_along_axis(gradient, right, np.take_along_axis(gradient, right, -1) - 1.0, -1)
        logits.grad += gradient * upstream[..., None]

    out._backward = _backward
    return reduce(out, reduction)


def binary_cross_entropy_with_logits(logits: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """The cross-entropy of sigmoid(logits) with probabilities, -(t * log(s) + (1 - t) * log(1 - s)), for any logit.

    `targets` holds the probability of a yes, from 0 to 1 (mostly 0 or 1), in the shape of the logits.
    Raises ValueError if the shapes differ or a target is not between 0 and 1.
    """
    t = as_tensor(targets, like=logits)
    check_same_shape(logits, t, "binary_cross_entropy_with_logits", "targets")
    if not ((t >= 0.0) & (t <= 1.0)).all():  # comparisons of a Tensor give arrays
        raise ValueError("the targets of binary_cross_entropy_with_logits are probabilities from 0 to 1")
    losses, slope = stable_binary_cross_entropy(logits.data, t.data)
    out = Tensor(losses, (logits,), "binary_cross_entropy")

    def _backward(upstream):
        logits.grad += slope * upstream

    out._backward = _backward
    return reduce(out, reduction)


def stable_binary_cross_entropy(z: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each logit z with target t, and its slope, on plain arrays, for logits of any size."""
    # 06.5: log(1 + exp(-|z|)) never overflows; the slope is sigmoid(z) - t.
    losses = np.maximum(z, 0.0) - z * t + np.log1p(np.exp(-np.abs(z)))
    return losses, 0.5 * np.tanh(0.5 * z) + 0.5 - t


# Given.


def l2_penalty(parameters: Iterable[Tensor], strength: float) -> Tensor:
    """`strength` times the sum of the squares of all parameters, to be added to a loss."""
    total = as_tensor(0.0)
    for parameter in parameters:
        total = sum(parameter * parameter) + total
    return total * strength


def reduce(losses: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of all losses, or the losses themselves for "none"."""
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """Rows of zeros with a 1 at the label: labels of shape (...) give (..., classes), float64."""
    return (labels[..., None] == np.arange(classes)).astype(np.float64)


def check_labels(labels: Any, scores: Tensor) -> np.ndarray:
    """Return class labels as an array of integers that fits scores of shape (..., classes)."""
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"class labels are integers, not {labels.dtype}")
    if labels.shape != scores.shape[:-1]:
        raise ValueError(f"scores of shape {scores.shape} need labels of shape {scores.shape[:-1]}, not {labels.shape}")
    outside = labels[(labels < 0) | (labels >= scores.shape[-1])]
    if outside.size:
        raise ValueError(
            f"with {scores.shape[-1]} classes a label is from 0 to {scores.shape[-1] - 1}, not {outside[0]}"
        )
    return labels


def check_same_shape(scores: Any, others: Any, name: str, what: str) -> None:
    if scores.shape != others.shape:
        raise ValueError(f"{name} needs {what} of shape {scores.shape}, not {others.shape}")
