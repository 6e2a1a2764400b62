"""Random programs: every gradient of both engines equals PyTorch's to 1e-6 in float64.

A program starts from a few tensors and applies operations drawn from a table to whatever there is by then, so that
results are used several times, broadcast, and fed to each other. An operation is one line of the table. A function that
has neither a line nor a reason in LEFT_OUT fails the test at the end.

Avoided, because there is no slope or no one right gradient:

- log, sqrt, broken powers, quotients and tensors as exponents get x * x + 0.5 in place of x
- hypot gets y - 1.2, so that not both sides are 0
- layer_norm gets eps = 0.1 and rows of two numbers at least: a row of equal numbers has no slope to compare

Kinks and ties do occur, since a part of the inputs is rounded: there the reference chooses as PyTorch does (relu and
abs have slope 0 at 0, clip has slope 1 at its bounds, and those that are equally large share as in amax). Not here, but
in test_oracle_functions.py: empty arrays.
"""

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import meintorch
from meintorch import losses, matmul, nodes
from meintorch.embedding import concatenate, embed, stack, where
from meintorch.tensor import Tensor, as_tensor
from meintorch.transformer import attention, merge_heads, split_heads
from tests.course.oracle.pytorch import torch

PROGRAMS = 800
STEPS = 8
LARGEST = 4.0  # results are scaled down to this, so that nothing grows without end
SHAPES = [(), (1,), (3,), (2, 3), (3, 1), (1, 4), (3, 3), (2, 1, 3), (2, 3, 2)]


@dataclass
class Pair:
    """The same tensor in the engine and in PyTorch."""

    ours: object
    theirs: object

    @property
    def shape(self) -> tuple:
        return tuple(self.theirs.shape)

    @property
    def ndim(self) -> int:
        return self.theirs.ndim

    def apply(self, ours: Callable, theirs: Callable, *arguments) -> "Pair":
        left = [one.ours if isinstance(one, Pair) else one for one in arguments]
        right = [one.theirs if isinstance(one, Pair) else one for one in arguments]
        return Pair(ours(self.ours, *left), theirs(self.theirs, *right))


@dataclass
class Program:
    engine: "Engine"
    seed: int
    rng: np.random.Generator = None
    known: list[Pair] = field(default_factory=list)
    leaves: list[Pair] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    steps: list[str] = field(default_factory=list)

    def new(self, shape: tuple, requires_grad: bool | None = None) -> Pair:
        """A new input, mostly one that needs a gradient, and now and then one of round numbers."""
        if requires_grad is None:
            requires_grad = self.rng.random() < 0.8
        array = np.asarray(self.rng.uniform(-2.0, 2.0, shape))
        if self.rng.random() < 0.25:
            array = np.round(2.0 * array) / 2.0
        leaf = Pair(self.engine.make(array, requires_grad), torch.tensor(array, requires_grad=requires_grad))
        self.known.append(leaf)
        if requires_grad:
            self.leaves.append(leaf)
        return leaf

    def find(self, fits: Callable, shapes: list[tuple]) -> Pair:
        """One of the tensors that there are whose shape fits, or a new one with one of the shapes."""
        found = [one for one in self.known if fits(one.shape)]
        if found and self.rng.random() < 0.7:
            return self.choose(found)
        return self.new(self.choose(shapes))

    def choose(self, among: list):
        return among[self.rng.integers(len(among))]

    def run(self) -> None:
        """Draw the steps, compare every result, and then all gradients."""
        self.rng = np.random.default_rng(self.seed)
        for i in range(3):
            self.new(self.choose(SHAPES), requires_grad=i == 0 or None)
        while len(self.steps) < STEPS:
            operation, x = self.choose(self.engine.table), self.choose(self.known)
            arguments = operation.arguments(self, x)
            if arguments is None:
                continue
            self.steps.append(operation.name)
            out = x.apply(operation.ours, operation.theirs, *arguments)
            self.used.update(id(one) for one in (x, *arguments))
            self.compare(self.engine.value(out.ours), out.theirs.detach(), f"the result of {operation.name}")
            top = float(out.theirs.detach().abs().max())
            if top > LARGEST:
                out = out.apply(lambda x, by=LARGEST / top: x * by, lambda x, by=LARGEST / top: x * by)
            self.known.append(out)
        self.finish()

    def finish(self) -> None:
        """The last result, and the sums of all that nobody has used, so that everything counts."""
        out = self.known[-1]
        for one in self.known[:-1]:
            if id(one) not in self.used:
                out = out.apply(lambda x, y: x + y.sum(), lambda x, y: x + y.sum(), one)
        gradient = np.asarray(self.rng.standard_normal(out.shape))
        self.engine.backward(out.ours, gradient)
        out.theirs.backward(torch.tensor(gradient))
        for i, leaf in enumerate(self.leaves):
            found = self.engine.grad(leaf.ours)
            wanted = torch.zeros(leaf.shape, dtype=torch.float64) if leaf.theirs.grad is None else leaf.theirs.grad
            self.compare(np.zeros(leaf.shape) if found is None else found, wanted, f"the gradient of input {i}")

    def compare(self, found, wanted, what: str) -> None:
        where = f"{what} in program {self.seed}: {', '.join(self.steps)}"
        assert isinstance(found, np.ndarray) and found.shape == tuple(wanted.shape), where
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-6, atol=1e-6, err_msg=where)


# What an operation takes beside x: a tuple of arguments, or None where it does not go with the shape of x.


def nothing(program: Program, x: Pair) -> tuple:
    return ()


def partner(program: Program, x: Pair) -> tuple:
    """A tensor that broadcasts with x."""

    def fits(shape: tuple) -> bool:
        try:
            return np.prod(np.broadcast_shapes(shape, x.shape)) <= 100
        except ValueError:
            return False

    smaller = [tuple(program.choose([1, size]) for size in x.shape[cut:]) for cut in range(x.ndim + 1)]
    return (program.find(fits, [*smaller, (2, *x.shape)] if x.ndim < 3 else smaller),)


def twin(program: Program, x: Pair) -> tuple:
    """A tensor of the same shape."""
    return (program.find(lambda shape: shape == x.shape, [x.shape]),)


def axis(program: Program, x: Pair) -> tuple | None:
    """One axis, counted from the front or from the end."""
    return (int(program.rng.integers(-x.ndim, x.ndim)),) if x.ndim else None


def reduction(program: Program, x: Pair) -> tuple:
    """An axis, several, or None, and keepdims."""
    several = tuple(range(program.rng.integers(1, x.ndim + 1))) if x.ndim else None
    choices = [None, several, *(axis(program, x) or ())]
    return program.choose(choices), bool(program.rng.integers(2))


def order(program: Program, x: Pair) -> tuple:
    return (tuple(int(one) for one in program.rng.permutation(x.ndim)),)


def shape(program: Program, x: Pair) -> tuple:
    size = int(np.prod(x.shape))
    return (program.choose([(size,), (1, size), (size, 1, 1), x.shape[::-1], (-1, *x.shape[-1:])]),)


def factor(program: Program, x: Pair) -> tuple | None:
    """The right side of a matrix product: a vector, a matrix, or a stack that broadcasts with the one of x."""
    if x.ndim == 0:
        return None
    k, stack = x.shape[-1], tuple(program.choose([1, size]) for size in x.shape[:-2])

    def fits(shape: tuple) -> bool:
        if not shape or shape[-min(len(shape), 2)] != k:
            return False
        return len(shape) <= 2 or x.ndim <= 2 or shape[:-2] == x.shape[:-2]

    return (program.find(fits, [(k,), (k, 2), (*stack, k, 3), (2, k, 2) if x.ndim <= 2 else (k, 1)]),)


def matrix(program: Program, x: Pair) -> tuple | None:
    """The right side of a product of two matrices."""
    if x.ndim != 2:
        return None
    k = x.shape[1]
    return (program.find(lambda shape: len(shape) == 2 and shape[0] == k, [(k, 1), (k, 2), (k, 3)]),)


def whole(program: Program, x: Pair) -> tuple:
    return (program.choose([3, 2.0, 1, 0]),)


def broken(program: Program, x: Pair) -> tuple:
    return (program.choose([0.5, -1, -1.5, 2.5]),)


def bounds(program: Program, x: Pair) -> tuple:
    return program.choose([(-0.5, 0.7), (None, 0.3), (-0.4, None)])


def labels(program: Program, x: Pair) -> tuple | None:
    """A class for each row, and how the losses become one. PyTorch has the classes in axis 1, so x is a matrix."""
    if x.ndim != 2:
        return None
    return program.rng.integers(0, x.shape[1], x.shape[0]), program.choose(["mean", "sum", "none"])


def signs(program: Program, x: Pair) -> tuple:
    return program.rng.choice([-1.0, 1.0], x.shape), program.choose(["mean", "sum", "none"])


def chances(program: Program, x: Pair) -> tuple:
    return program.rng.uniform(0.0, 1.0, x.shape), program.choose(["mean", "sum", "none"])


def places(program: Program, x: Pair) -> tuple:
    """An index: for each of some axes a number, a slice, or a list in which places may occur twice; or a mask."""
    if x.ndim == 0 or program.rng.random() < 0.1:
        return (program.choose([..., None]),)
    if program.rng.random() < 0.15:
        mask = program.rng.random(x.shape) < 0.6
        mask.flat[0] = True
        return (mask,)
    count = int(program.rng.integers(1, 4))
    parts = []
    for size in x.shape[: program.rng.integers(1, x.ndim + 1)]:
        some = program.rng.integers(-size, size, count)
        parts.append(program.choose([int(some[0]), slice(int(some[0]), None), slice(None), some, some]))
    return (tuple(parts),)


def neighbour(program: Program, x: Pair) -> tuple | None:
    """A tensor of the same shape, and an axis to put them together along."""
    return None if x.ndim == 0 or np.prod(x.shape) > 30 else (*twin(program, x), *axis(program, x))


def neighbour_on_top(program: Program, x: Pair) -> tuple | None:
    """A tensor of the same shape, and a place for a new axis."""
    if x.ndim > 2 or np.prod(x.shape) > 30:
        return None
    return *twin(program, x), int(program.rng.integers(-x.ndim - 1, x.ndim + 1))


def start(program: Program, x: Pair) -> tuple:
    return (int(program.rng.integers(-x.ndim, x.ndim)) if x.ndim else 0,)


def choice(program: Program, x: Pair) -> tuple:
    return *partner(program, x), program.rng.random(x.shape) < 0.5


def ids(program: Program, x: Pair) -> tuple | None:
    """Rows of a table, in any shape, some of them several times."""
    if x.ndim != 2:
        return None
    shape = program.choose([(), (2,), (4,), (2, 3), (2, 1, 2)])
    return (np.asarray(program.rng.integers(0, x.shape[0], shape)),)


def spread(program: Program, x: Pair) -> tuple | None:
    """An axis, several, or None, keepdims, and a correction that leaves something to divide by."""
    axis, keepdims = reduction(program, x)
    count = np.prod([x.shape[one] for one in dims(x, axis if axis is None or isinstance(axis, tuple) else (axis,))])
    return axis, keepdims, int(program.rng.integers(0, 2)) if count > 1 else 0


def of_a_row(program: Program, x: Pair) -> tuple | None:
    """A weight and a bias. A row of one number is always 0 afterwards, and has no slope."""
    if x.ndim == 0 or x.shape[-1] == 1:
        return None
    row = x.shape[-1:]
    return program.find(lambda shape: shape == row, [row]), program.find(lambda shape: shape == row, [row])


def keys_and_values(program: Program, x: Pair) -> tuple | None:
    """Two tensors of the shape of x: what a row may look at, and what it finds there."""
    return (*twin(program, x), *twin(program, x)) if x.ndim > 1 else None


def heads(program: Program, x: Pair) -> tuple | None:
    """A number of heads that can share the last axis."""
    return (program.choose([n for n in range(1, x.shape[-1] + 1) if x.shape[-1] % n == 0]),) if x.ndim else None


def target(program: Program, x: Pair) -> tuple:
    return *twin(program, x), program.choose(["mean", "sum", "none"])


# The same in PyTorch, where it has other names or no such function.


def positive(x):
    return x * x + 0.5


def dims(x, axis) -> tuple:
    return tuple(range(x.ndim)) if axis is None else axis


def torch_dot(x, y):
    return torch.tensordot(x, y, dims=([x.ndim - 1], [y.ndim - min(y.ndim, 2)])) if x.ndim and y.ndim else x * y


def torch_reduced(values, reduction: str):
    return values if reduction == "none" else getattr(values, reduction)()


def over_heads(x, heads: int):
    """Softmax over the heads, which are cut out of each row and put together again."""
    return merge_heads(split_heads(x.reshape(1, -1, x.shape[-1]), heads).softmax(1))


def torch_over_heads(x, heads: int):
    return x.reshape(1, -1, heads, x.shape[-1] // heads).softmax(2).reshape(1, -1, x.shape[-1])


F = torch.nn.functional


@dataclass(frozen=True)
class Operation:
    name: str
    arguments: Callable
    ours: Callable
    theirs: Callable


def both(name: str, arguments: Callable, function: Callable) -> Operation:
    """An operation that is written in the same way in both."""
    return Operation(name, arguments, function, function)


OPERATORS = [
    both("x + y", partner, lambda x, y: x + y),
    both("x - y", partner, lambda x, y: x - y),
    both("x * y", partner, lambda x, y: x * y),
    both("-x", nothing, lambda x: -x),
    both("x / 3", nothing, lambda x: x / 3),
    both("2 * x + 1", nothing, lambda x: 2 * x + 1),
    both("1 - x * 0.5", nothing, lambda x: 1 - x * 0.5),
    both("x * x", nothing, lambda x: x * x),
]

TENSOR_TABLE = [
    *OPERATORS,
    both("x / y", partner, lambda x, y: x / positive(y)),
    both("2 / x", nothing, lambda x: 2.0 / positive(x)),
    both("2 ** x", nothing, lambda x: 2.0**x),
    both("x @ y", factor, lambda x, y: x @ y),
    both("x @ x.T", nothing, lambda x: x @ x.T if x.ndim == 2 else x + 1.0),
    Operation("dot", factor, lambda x, y: matmul.dot(x, y), torch_dot),
    Operation("sum", reduction, lambda x, axis, keep: x.sum(axis, keep), lambda x, a, keep: x.sum(dims(x, a), keep)),
    Operation("mean", reduction, lambda x, axis, keep: x.mean(axis, keep), lambda x, a, keep: x.mean(dims(x, a), keep)),
    Operation("max", reduction, lambda x, axis, keep: x.max(axis, keep), lambda x, a, keep: x.amax(dims(x, a), keep)),
    Operation("min", reduction, lambda x, axis, keep: x.min(axis, keep), lambda x, a, keep: x.amin(dims(x, a), keep)),
    both("reshape", shape, lambda x, shape: x.reshape(shape)),
    Operation("transpose", order, lambda x, axes: x.transpose(axes), lambda x, axes: x.permute(axes)),
    both("exp", nothing, lambda x: x.exp()),
    both("log", nothing, lambda x: positive(x).log()),
    both("sqrt", nothing, lambda x: positive(x).sqrt()),
    both("tanh", nothing, lambda x: x.tanh()),
    both("sigmoid", nothing, lambda x: x.sigmoid()),
    both("relu", nothing, lambda x: x.relu()),
    both("abs", nothing, lambda x: x.abs()),
    both("clip", bounds, lambda x, low, high: x.clip(low, high)),
    both("power", whole, lambda x, exponent: x**exponent),
    both("power of a positive", broken, lambda x, exponent: positive(x) ** exponent),
    both("power of tensors", partner, lambda x, y: positive(x) ** y),
    both("softmax", axis, lambda x, axis: x.softmax(axis)),
    both("log_softmax", axis, lambda x, axis: x.log_softmax(axis)),
    both("index", places, lambda x, key: x[key]),
    Operation("concatenate", neighbour, lambda x, y, a: concatenate([x, y], a), lambda x, y, a: torch.cat([x, y], a)),
    Operation("stack", neighbour_on_top, lambda x, y, a: stack([x, y], a), lambda x, y, a: torch.stack([x, y], a)),
    both("flatten", start, lambda x, start: x.flatten(start)),
    Operation(
        "where", choice, lambda x, y, yes: where(yes, x, y), lambda x, y, yes: torch.where(torch.tensor(yes), x, y)
    ),
    Operation("embed", ids, embed, lambda x, ids: F.embedding(torch.tensor(ids), x)),
    Operation(
        "var",
        spread,
        lambda x, axis, keep, correction: x.var(axis, keep, correction),
        lambda x, axis, keep, correction: torch.var(x, dims(x, axis), correction=correction, keepdim=keep),
    ),
    Operation(
        "layer_norm",
        of_a_row,
        lambda x, w, b: x.layer_norm(w, b, 0.1),
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, 0.1),
    ),
    Operation("gelu", nothing, lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh")),
    Operation("attention", keys_and_values, attention, F.scaled_dot_product_attention),
    Operation("split_heads", heads, over_heads, torch_over_heads),
    Operation("mse_loss", target, losses.mse_loss, lambda x, y, r: F.mse_loss(x, y, reduction=r)),
    Operation(
        "hinge_loss", signs, losses.hinge_loss, lambda x, s, r: torch_reduced((1 - torch.tensor(s) * x).relu(), r)
    ),
    Operation("nll_loss", labels, losses.nll_loss, lambda x, y, r: F.nll_loss(x, torch.tensor(y), reduction=r)),
    Operation(
        "cross_entropy", labels, losses.cross_entropy, lambda x, y, r: F.cross_entropy(x, torch.tensor(y), reduction=r)
    ),
    Operation(
        "binary_cross_entropy_with_logits",
        chances,
        losses.binary_cross_entropy_with_logits,
        lambda x, t, r: F.binary_cross_entropy_with_logits(x, torch.tensor(t), reduction=r),
    ),
    Operation(
        "l2_penalty",
        partner,
        lambda x, y: losses.l2_penalty([x, y], 0.1),
        lambda x, y: 0.1 * ((x * x).sum() + (y * y).sum()),
    ),
]

NODES_TABLE = [
    *OPERATORS,
    both("x @ y", matrix, lambda x, y: x @ y),
    Operation("sum", reduction, nodes.sum, lambda x, axis, keep: x.sum(dims(x, axis), keep)),
    Operation("max", reduction, nodes.max, lambda x, axis, keep: x.amax(dims(x, axis), keep)),
    Operation("min", reduction, nodes.min, lambda x, axis, keep: x.amin(dims(x, axis), keep)),
    Operation("transpose", nothing, nodes.transpose, lambda x: x.permute(tuple(range(x.ndim))[::-1])),
    Operation("exp", nothing, nodes.exp, torch.exp),
    Operation("abs", nothing, nodes.abs, torch.abs),
    Operation("hypot", partner, lambda x, y: nodes.hypot(x, y - 1.2), lambda x, y: torch.hypot(x, y - 1.2)),
    Operation("x * (x > 0.5)", nothing, lambda x: x * (x > 0.5), lambda x: x * (x > 0.5)),
]

# Functions without a line, and why.
LEFT_OUT = {
    "as_tensor": "makes an input",
    "merge_heads": "undoes split_heads in its line",
    "matmul": "is x @ y",
    "matmul_vectors": "a part of x @ y",
    "matmul_stack": "a part of x @ y",
    "reduce": "a part of every loss",
    "detach": "ends the graph, see test_grad_mode.py",
    "retain_grad": "changes no number, see test_grad_mode.py",
    "add": "is x + y",
    "subtract": "is x - y",
    "multiply": "is x * y",
    "divide": "is x / y",
    "negate": "is -x",
    "numpy": "is x.data",
    "argmax": "has no gradient",
    "argmin": "has no gradient",
    "from_copy": "makes an input",
    "absolute": "is x.abs()",
    "unchanged": "is x",
    "finite_elsewhere": "a part of nll_loss",
}
NODES_LEFT_OUT = {
    "add": "is x + y",
    "mul": "is x * y",
    "div": "is x / y",
    "matmul": "is x @ y",
    "argmax": "has no gradient",
    "median": "has no gradient",
    "diag": "has no gradient here",
    "var": "has no gradient here",
}


@dataclass(frozen=True)
class Engine:
    """How programs use an engine."""

    name: str
    table: list[Operation]
    make: Callable  # of an array and requires_grad
    value: Callable
    grad: Callable
    backward: Callable  # of the result and an array of its shape


ENGINES = [
    Engine(
        "tensor",
        TENSOR_TABLE,
        make=lambda array, requires_grad: Tensor(array) if requires_grad else as_tensor(array),
        value=lambda x: x.data,
        grad=lambda x: np.asarray(x.grad),
        backward=lambda out, gradient: out.backward(gradient),
    ),
    Engine(
        "nodes",
        NODES_TABLE,
        make=nodes.Tensor,
        value=lambda x: x.value,
        grad=lambda x: None if x.grad is None else x.grad.value,
        backward=lambda out, gradient: out.backward(nodes.Tensor(gradient.T)),
    ),
]
by_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


@by_engine
def test_random_programs_have_the_gradients_of_pytorch(engine):
    drawn = Counter()
    for seed in range(PROGRAMS):
        program = Program(engine, seed)
        program.run()
        drawn.update(program.steps)
    assert min(drawn[operation.name] for operation in engine.table) >= 50, drawn


def test_every_operation_has_a_line():
    """Or a reason in LEFT_OUT. An operation is a method from outside of Tensor, or a function that returns a Tensor."""
    methods = {
        name
        for name, one in vars(Tensor).items()
        if inspect.isfunction(one) and one.__module__ != Tensor.__module__ and not name.startswith("__")
    }
    missing = (methods | functions_of(meintorch)) - {operation.name for operation in TENSOR_TABLE} - set(LEFT_OUT)
    assert not missing


def test_every_operation_of_the_nodes_has_a_line():
    functions = {name for name, one in vars(nodes).items() if vars(nodes.Tensor).get(name) is one}
    assert {"sum", "max", "argmax", "hypot"} <= functions
    assert not functions - {operation.name for operation in NODES_TABLE} - set(NODES_LEFT_OUT)


def functions_of(package) -> set[str]:
    """The public functions of a package that are said to return a Tensor."""
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    functions = [one for module in modules for one in vars(module).values() if inspect.isfunction(one)]
    return {
        one.__name__
        for one in functions
        if not one.__name__.startswith("_") and inspect.signature(one).return_annotation is Tensor
    }
