"""meintorch: a small PyTorch, written by you.

The names of chapters 02 and later are here as well: `from meintorch import Tensor, softmax, Linear`. (sum, max, min and
abs are not, so that Python's are never hidden by accident: `x.sum()`, or `from meintorch import shapes`. The name
`meintorch.matmul` is the module; the function is `a @ b`.)
"""

from meintorch.value import Value
from meintorch.mlp import MLP, Layer, Neuron
from meintorch.tensor import Tensor, as_tensor, unbroadcast
from meintorch.shapes import mean, reshape, transpose
from meintorch.matmul import dot
from meintorch.activations import clip, exp, log, log_softmax, power, relu, sigmoid, softmax, sqrt, tanh
from meintorch.layers import Dropout, Flatten, Linear, Module, ReLU, Sequential, Sigmoid, Tanh
from meintorch.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_loss,
    l2_penalty,
    mse_loss,
    nll_loss,
)
from meintorch.optim import SGD, Adam, AdamW, Optimizer, clip_grad_norm, cosine_schedule
from meintorch.data import load_digits, make_moons
from meintorch.training import (
    DataLoader,
    accuracy,
    evaluate,
    fit,
    load_checkpoint,
    save_checkpoint,
    train_step,
)
from meintorch.grad_mode import detach, enable_grad, is_grad_enabled, no_grad, retain_grad
from meintorch import nodes
from meintorch.embedding import Embedding, concatenate, flatten, stack, where
from meintorch.normalization import GELU, LayerNorm, gelu, layer_norm, var
from meintorch.transformer import Transformer, attention, bits_per_character, causal_mask, generate
from meintorch.text import attention_weights, batches, decode, encode
from meintorch.operators import add, divide, multiply, negate, subtract
from meintorch.control import (
    ExtendedKalmanFilter,
    KalmanFilter,
    LevenbergMarquardt,
    RecursiveLeastSquares,
    damped_step,
    devectorize_parameters,
    jacobian,
    vectorize_parameters,
)
