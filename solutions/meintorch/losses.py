"""Chapter 06: how wrong is it? One number to make smaller."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from meintorch.activations import relu, stable_log_softmax
from meintorch.arguments import as_number
from meintorch.modules import tensors_in
from meintorch.shapes import mean, sum
from meintorch.tensor import Tensor, as_tensor

# Every loss takes reduction="mean" (of all the losses that there are), "sum", or "none" for the losses one by one.


def mse_loss(prediction: Tensor, target: Any, reduction: str = "mean") -> Tensor:
    """The squared error (prediction - target) ** 2. `target` is an array or Tensor of the same shape.

    The result has the dtype of the prediction: shape () for "mean" and "sum", the shape of the prediction for "none".
    Raises ValueError if the shapes differ (broadcasting would compare every prediction with every target) or the
    reduction is none of the three.
    """
    prediction = as_tensor(prediction)
    target = as_tensor(target, like=prediction)
    check_same_shape(prediction, target, "mse_loss", "target")
    # 06.1: each error is squared; reduce() is given.
    difference = prediction - target
    return reduce(difference * difference, reduction)


def hinge_loss(scores: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The max-margin loss relu(1 - label * score). `labels` holds a 1 or a -1 for each score, in the same shape.

    The result has the dtype of the scores: shape () for "mean" and "sum", the shape of the scores for "none".
    Raises ValueError if the shapes differ, a label is neither 1 nor -1, or the reduction is none of the three.
    """
    scores = as_tensor(scores)
    labels = as_tensor(labels, like=scores)
    check_same_shape(scores, labels, "hinge_loss", "labels")
    if not np.isin(labels.data, (-1.0, 1.0)).all():
        other = np.setdiff1d(labels.data, (-1.0, 1.0))[0]
        hint = ": for labels 1 and 0 give 2 * labels - 1" if other == 0.0 else ""
        raise ValueError(f"the labels of hinge_loss are 1 and -1, not {other}{hint}")
    # 06.2: nothing to pay on the right side beyond a margin of 1, more and more before it; reduce() is given.
    return reduce(relu(1.0 - labels * scores), reduction)


def nll_loss(log_probabilities: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The negative log-likelihood: minus the log-probability of the right class. With log_softmax: cross-entropy.

    log_probabilities  shape (..., classes)
    labels             integers of shape (...), from 0 to classes - 1
    The result has the dtype of the log-probabilities: shape () for "mean" and "sum", (...) for "none".
    Raises TypeError for labels that are not integers, ValueError for a wrong shape, for a class that there is not, or
    if the reduction is none of the three.
    """
    log_probabilities = as_tensor(log_probabilities)
    labels = check_labels(labels, log_probabilities)
    hot = one_hot(labels, log_probabilities)  # in each row a 1 at the right class, 0 elsewhere
    log_probabilities = finite_elsewhere(log_probabilities, hot)  # a class without any chance has -inf: 0 * -inf is nan
    # 06.3: pick one number out of each row, with a product and a sum; then its sign, and reduce().
    return reduce(-sum(log_probabilities * hot, axis=-1), reduction)


def cross_entropy(logits: Tensor, labels: Any, reduction: str = "mean") -> Tensor:
    """The cross-entropy of softmax(logits) with the right classes, in a single node: nll_loss(log_softmax(logits)).

    logits  shape (..., classes): any numbers, the larger the likelier
    labels  integers of shape (...), from 0 to classes - 1
    The result has the dtype of the logits: shape () for "mean" and "sum", (...) for "none".
    Raises TypeError for labels that are not integers, ValueError for a wrong shape, for a class that there is not, or
    if the reduction is none of the three.
    """
    logits = as_tensor(logits)
    labels = check_labels(labels, logits)
    log_probabilities = stable_log_softmax(logits.data, -1)
    right = *np.indices(labels.shape, sparse=True), labels  # where the right class of each row is
    out = Tensor(-log_probabilities[right], (logits,), "cross_entropy")

    def _backward(upstream):
        # 06.4: softmax minus one-hot, each row times what arrives at its loss.
        to_logits = np.exp(log_probabilities)
        to_logits[right] -= 1.0  # the ones alone, without all the zeros
        to_logits *= upstream[..., None]
        logits.grad += to_logits

    out._backward = _backward
    return reduce(out, reduction)


def binary_cross_entropy_with_logits(logits: Tensor, targets: Any, reduction: str = "mean") -> Tensor:
    """The cross-entropy of sigmoid(logits) with probabilities, -(t * log(s) + (1 - t) * log(1 - s)), for any logit.

    `targets` holds the probability t of a yes, from 0 to 1 (mostly 0 or 1), in the shape of the logits. No gradient
    goes to it. The result has the dtype of the logits: shape () for "mean" and "sum", theirs for "none".
    Raises ValueError if the shapes differ, a target is not between 0 and 1, or the reduction is none of the three.
    """
    logits = as_tensor(logits)
    t = as_tensor(targets, like=logits).data
    check_same_shape(logits, t, "binary_cross_entropy_with_logits", "targets")
    outside = t[~((t >= 0.0) & (t <= 1.0))]  # nan is outside too
    if outside.size:
        raise ValueError(
            f"the targets of binary_cross_entropy_with_logits are probabilities from 0 to 1, not {outside[0]}"
        )
    largest = np.finfo(logits.dtype).max  # in place of inf: inf - inf would be nan, where the answer is right
    losses, slope = stable_binary_cross_entropy(np.clip(logits.data, -largest, largest), t)
    out = Tensor(losses, (logits,), "binary_cross_entropy")

    def _backward(upstream):
        logits.grad += slope * upstream

    out._backward = _backward
    return reduce(out, reduction)


def stable_binary_cross_entropy(z: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each logit z with target t, and its slope, on plain arrays of one shape, for logits of any size."""
    # 06.5: with -|z| no power overflows; the slope is sigmoid(z) - t. Return both.
    losses = np.maximum(z, 0.0) - z * t + np.log1p(np.exp(-np.abs(z)))
    return losses, 0.5 * np.tanh(0.5 * z) + 0.5 - t


# Given.


def l2_penalty(parameters: Iterable[Tensor], strength: float) -> Tensor:
    """`strength` times the sum of the squares of all parameters, to be added to a loss: shape (), their dtype.

    Without parameters it is a constant 0. Raises ValueError for a strength below 0, TypeError for what is no number,
    and for anything but Tensors.
    """
    strength = as_number(strength, "the strength of l2_penalty")
    if not 0.0 <= strength < np.inf:
        raise ValueError(f"the strength of l2_penalty is 0 or more, and finite, not {strength}")
    total: Any = 0.0  # a plain number, which leaves float32 as it is
    for parameter in tensors_in(parameters, "l2_penalty"):
        total = total + sum(parameter * parameter)
    return as_tensor(total * strength)


def reduce(losses: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of all losses, or the losses themselves for "none". Raises ValueError for anything else.

    The mean of no losses at all is nan, as in PyTorch.
    """
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


def one_hot(labels: np.ndarray, like: Tensor) -> np.ndarray:
    """In each row a 1 at the label and 0 elsewhere: an array of the shape (..., classes) and dtype of `like`."""
    return (labels[..., None] == np.arange(like.shape[-1])).astype(like.dtype)


def finite_elsewhere(x: Tensor, hot: np.ndarray) -> Tensor:
    """`x` with the largest or smallest finite number in place of inf or -inf, but where `hot` is 1."""
    if not np.isinf(x.data).any():
        return x
    largest = np.finfo(x.dtype).max
    out = Tensor(np.where(hot == 1.0, x.data, np.clip(x.data, -largest, largest)), (x,), "finite_elsewhere")

    def _backward(upstream):
        x.grad += upstream

    out._backward = _backward
    return out


def check_labels(labels: Any, scores: Tensor) -> np.ndarray:
    """Return class labels as an array of integers that fits scores of shape (..., classes), or say why they do not."""
    if isinstance(labels, Tensor):
        raise TypeError("class labels are an array of integers, not a Tensor, whose numbers are floats")
    try:
        labels = np.asarray(labels)
    except ValueError:
        raise ValueError("class labels are one array of integers, not lists of differing lengths") from None
    if labels.size == 0:
        labels = labels.astype(int)  # an empty list, of which NumPy makes floats
    if labels.dtype.kind not in "iu":
        raise TypeError(f"class labels are integers, not {labels.dtype}")
    if scores.ndim == 0:
        raise ValueError("the scores need an axis with a score for each class, not shape ()")
    if labels.shape != scores.shape[:-1]:
        hint = ": for one-hot rows give labels.argmax(-1)" if labels.shape == scores.shape else ""
        raise ValueError(
            f"scores of shape {scores.shape} need labels of shape {scores.shape[:-1]}, not {labels.shape}{hint}"
        )
    classes = scores.shape[-1]
    outside = labels[(labels < 0) | (labels >= classes)]
    if outside.size:
        raise ValueError(f"with {classes} classes a label is from 0 to {classes - 1}, not {outside[0]}")
    return labels


def check_same_shape(scores: Any, others: Any, name: str, what: str) -> None:
    if scores.shape != others.shape:
        raise ValueError(f"{name} needs {what} of shape {scores.shape}, not {others.shape}")
