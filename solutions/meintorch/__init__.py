"""meintorch: a small PyTorch, written by you."""

from meintorch.mlp import MLP, Layer, Neuron
from meintorch.tensor import Tensor, as_tensor, unbroadcast
from meintorch.value import Value

__all__ = ["MLP", "Layer", "Neuron", "Tensor", "Value", "as_tensor", "unbroadcast"]
