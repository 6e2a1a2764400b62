"""The reference of chapter 11: what it refuses, what it keeps apart, the given parts, and PyTorch beside all of it."""

import pickle

import numpy as np
import pytest

from meintorch import operators
from meintorch.data import load_words
from meintorch.embedding import Embedding, concatenate, embed, flatten, index, scatter_add, stack, where
from meintorch.layers import Linear, Module, Sequential
from meintorch.normalization import GELU, LayerNorm, column_sums, gelu, layer_norm, normalize, row_means, var
from meintorch.optim import SGD
from meintorch.tensor import Tensor, as_tensor
from tests.course.oracle.pytorch import arrays, compare, torch
from tests.course.oracle.test_oracle_functions import SHAPES, cases, dims, spread

F = torch.nn.functional


def made(*shape) -> Tensor:
    return Tensor(np.arange(float(np.prod(shape))).reshape(shape))


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: made(3)[3], IndexError, "index 3 is out of bounds"),
        (lambda: made(3)[0.5], IndexError, "only integers"),
        (lambda: made(3)[np.array([0.0])], IndexError, "integer"),
        (lambda: made(3)[Tensor([0.5])], TypeError, r"holds whole numbers .*, not Tensor\(\[0.5\]\)"),
        (lambda: made(3, 3)[0, Tensor(np.nan)], TypeError, "holds whole numbers"),
        (lambda: made(3)[np.array([True, False])], IndexError, "boolean"),
        (lambda: made()[0], IndexError, "too many indices"),
        (lambda: concatenate([]), ValueError, "there are none"),
        (lambda: concatenate(made(2, 3)), TypeError, "a list of tensors, not one Tensor"),
        (lambda: stack(made(2, 3)), TypeError, "a list of tensors, not one Tensor"),
        (lambda: concatenate([made(2, 3), made(2, 2)]), ValueError, "must match exactly"),
        (lambda: concatenate([made(2), made(2)], 1), ValueError, "axis 1 is out of bounds"),
        (lambda: concatenate([made(), made()]), ValueError, "zero-dimensional"),
        (lambda: concatenate([made(2), "ab"]), TypeError, "'ab'"),
        (lambda: stack([]), ValueError, "there are none"),
        (lambda: stack([made(2), made(3)]), ValueError, r"one shape, not \(2,\), \(3,\)"),
        (lambda: stack([made(2), made(2)], 2), ValueError, "axis 2: the result has only 2 axes"),
        (lambda: stack([made(2), made(2)], -3), ValueError, "axis -3"),
        (lambda: flatten(made(2, 3), 2), ValueError, r"axis 2: a Tensor of shape \(2, 3\)"),
        (lambda: flatten(made(2, 3), -3), ValueError, "axis -3"),
        (lambda: flatten(made(), 1), ValueError, "axis 1"),
        (lambda: where(made(2), made(2), 0.0), TypeError, "is a comparison missing"),
        (lambda: where([True, False], made(2), "a"), TypeError, "'a'"),
        (lambda: where(np.ones(3, bool), made(2), 0.0), ValueError, "broadcast"),
        (lambda: Embedding(3, 2)([0, 3]), IndexError, "3 rows takes integers from 0 to 2, not 3"),
        (lambda: Embedding(3, 2)([[0], [-1]]), IndexError, "not -1"),
        (lambda: Embedding(3, 2)(Tensor([0.0, 5.0])), IndexError, "not 5"),
        (lambda: Embedding(3, 2)([0.5]), TypeError, r"integers, not \[0.5\]"),
        (lambda: Embedding(3, 2)(np.array([1.0])), TypeError, "integers, not array"),
        (lambda: Embedding(3, 2)([True]), TypeError, "integers, not"),
        (lambda: Embedding(3, 2)("a"), TypeError, "integers, not 'a'"),
        (lambda: Embedding(3, 2)(Tensor([0.5])), TypeError, r"integers, not Tensor\(\[0.5\]\)"),
        (lambda: Embedding(3, 2)(Tensor([np.nan])), TypeError, "integers, not"),
        (lambda: embed(made(3, 2), [3]), IndexError, "from 0 to 2, not 3"),
        (lambda: var(made(2, 3), 2), IndexError, r"axis 2 is out of bounds for shape \(2, 3\)"),
        (lambda: var(made(0, 3), 0), ValueError, "more than 0"),
        (lambda: var(made(1, 3), 0, correction=1), ValueError, r"more than 1 numbers: shape \(1, 3\)"),
        (lambda: layer_norm(made(2, 3), np.ones(2), np.zeros(2)), ValueError, r"\(2, 3\), \(2,\), \(2,\)"),
        (lambda: layer_norm(made(2, 3), np.ones(3), np.zeros((1, 3))), ValueError, r"\(3,\), \(1, 3\)"),
        (lambda: layer_norm(made(), np.ones(()), np.zeros(())), ValueError, r"not \(\), \(\), \(\)"),
        (lambda: layer_norm(made(2, 0), np.ones(0), np.zeros(0)), ValueError, r"\(2, 0\)"),
        (lambda: LayerNorm(3)(made(2, 4)), ValueError, r"\(2, 4\), \(3,\)"),
        (lambda: gelu("a"), TypeError, "'a'"),
        (lambda: list(made(2)), TypeError, "not iterable"),
        (lambda: SGD(made(2, 2), 0.1), TypeError, "a single one"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, named):
    with pytest.raises(error, match=named), np.errstate(invalid="ignore"):
        call()


def test_an_index_is_looked_up_as_numpy_does():
    array = np.arange(24.0).reshape(2, 3, 4)
    keys = [
        0,
        -1,
        (0, 1, 2),
        slice(1, None),
        (..., 1),
        None,
        (slice(None), None, [0, 2]),
        [[0, 1], [1, 1]],
        array > 7.0,
    ]
    for key in keys:
        np.testing.assert_array_equal(Tensor(array)[key].data, array[key])
        np.testing.assert_array_equal(index(Tensor(array), key).data, array[key])
    assert array.tolist() == np.arange(24.0).reshape(2, 3, 4).tolist()


KEYS = {
    (5,): [1, -2, slice(1, 4), slice(0, 5, 2), [1, 1, 4], np.array([[0, 4], [4, 4]]), None, ..., np.zeros(0, int)],
    (3, 4): [
        (2, -1),
        (slice(None), 2),
        (..., [0, 0, 3]),
        ([2, 2, 0], [1, 1, 1]),
        (np.array([[0], [2]]), np.array([1, 1, 3])),
        (slice(1, 3), [0, 0]),
        (None, [1, 1]),
        np.arange(12).reshape(3, 4) % 3 == 0,
        (np.array([True, False, True]), slice(None, 2)),
        np.zeros((3, 4), bool),
    ],
    (2, 3, 2): [(1, ..., 0), ([0, 1, 1], slice(None), [1, 1, 1]), (slice(None), [2, 0, 2]), ([0, 0], [1, 1], [0, 0])],
    (): [..., None],
    (0, 3): [slice(None), (slice(None), [1, 1])],
}


@pytest.mark.parametrize(("shape", "key"), [(shape, key) for shape, keys in KEYS.items() for key in keys], ids=str)
def test_every_kind_of_index_agrees(shape, key):
    for one in spread(*arrays(shape)):
        compare(lambda x: x[key], one)
        compare(lambda x: x[key].sum() * x[key] + x.sum(), one)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(2,), (3,), (1,)], 0),
        ([(2, 3), (4, 3)], 0),
        ([(2, 3), (4, 3)], -2),
        ([(2, 1), (2, 3)], 1),
        ([(2, 1, 3), (2, 4, 3), (2, 2, 3)], -2),
        ([(2, 0), (2, 3)], 1),
        ([(0, 3), (2, 3)], 0),
        ([(2, 3)], 1),
    ],
)
def test_concatenate_agrees(shapes, axis):
    def function(*tensors):
        return concatenate(tensors, axis) if isinstance(tensors[0], Tensor) else torch.cat(tensors, axis)

    compare(function, *arrays(*shapes))
    compare(function, *[array[::-1] for array in arrays(*shapes)])


def test_a_tensor_may_be_concatenated_with_itself():
    compare(lambda x: (concatenate if isinstance(x, Tensor) else torch.cat)([x, x * x, x]), *arrays((2, 3)))


@pytest.mark.parametrize(
    ("shape", "axis"), [((), 0), ((), -1), ((3,), 0), ((3,), 1), ((2, 3), -2), ((2, 3), 2), ((2, 0), -3)]
)
def test_stack_agrees(shape, axis):
    compare(
        lambda *all: (stack if isinstance(all[0], Tensor) else torch.stack)(all, axis), *arrays(shape, shape, shape)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_flatten_agrees_from_every_axis(shape):
    for start in range(-len(shape), max(len(shape), 1)):
        compare(lambda x, start=start: x.flatten(start), *arrays(shape))
    compare(lambda x: x.flatten(), *arrays(shape))


@pytest.mark.parametrize(
    ("a", "b"), [((2, 3), (2, 3)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((), ()), ((0, 3), (3,))]
)
def test_where_agrees_on_every_way_to_broadcast(a, b):
    one, other = arrays(a, b)
    for condition in (
        np.broadcast_to(one > other, np.broadcast_shapes(a, b)),
        np.array([[True], [False]]),
        np.array(True),
    ):
        if 0 in a and condition.shape == (2, 1):
            continue
        mask = torch.tensor(np.array(condition))
        compare(
            lambda x, y, c=condition, m=mask: where(c, x, y) if isinstance(x, Tensor) else torch.where(m, x, y),
            one,
            other,
        )


def test_where_hands_nothing_to_the_side_that_was_not_taken():
    x = Tensor([0.0, 4.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        out = where(x > 1.0, x, 7.0)
        out._backward(np.array([np.inf, 2.0]))
    np.testing.assert_array_equal(out.data, [7.0, 4.0])
    np.testing.assert_array_equal(x.grad, [0.0, 2.0])
    assert where([False, True], 1.0, x).data.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("shape", "axis", "keepdims"), cases([(1,), (4,), (2, 3), (2, 1, 3), (2, 3, 4)]))
def test_variance_agrees(shape, axis, keepdims):
    if axis == ():
        return  # NumPy: none of the axes. PyTorch: all of them
    count = np.prod([shape[one] for one in dims(np.empty(shape), (axis,) if isinstance(axis, int) else axis)])
    for correction in (0, 1, 0.5):
        if count <= correction:
            continue

        def function(x, correction=correction):
            if isinstance(x, Tensor):
                return x.var(axis, keepdims, correction)
            return torch.var(x, dim=dims(x, axis), keepdim=keepdims, correction=correction)

        for one in spread(*arrays(shape)):
            compare(function, one)


def test_the_variance_of_a_single_number_is_zero():
    x = Tensor(5.0)
    out = x.var()
    out.backward()
    assert (out.item(), out.shape, x.grad.item()) == (0.0, (), 0.0)
    np.testing.assert_array_equal(made(2, 3).var(()).data, np.zeros((2, 3)))


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (2, 3, 4), (0, 3), (2, 1, 3, 2)], ids=str)
@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_layer_norm_agrees(shape, eps):
    x, weight, bias = arrays(shape, shape[-1:], shape[-1:])

    def function(x, weight, bias):
        if isinstance(x, Tensor):
            return x.layer_norm(weight, bias, eps)
        return F.layer_norm(x, weight.shape, weight, bias, eps)

    for one in spread(x):
        compare(function, one, weight, bias)


def test_layer_norm_hands_nothing_to_constants():
    x, weight, bias = Tensor([[1.0, 3.0]]), as_tensor([1.0, 1.0]), as_tensor([0.0, 0.0])
    layer_norm(x, weight, bias).backward()
    assert not weight.grad.any() and not bias.grad.any()
    x, weight = as_tensor([[1.0, 3.0]]), Tensor([1.0, 1.0])
    layer_norm(x, weight, bias, 0.0).backward(np.array([[2.0, 5.0]]))
    assert not x.grad.any()
    np.testing.assert_array_equal(weight.grad, [-2.0, 5.0])


def test_the_fused_rule_is_that_of_layer_norm_written_out():
    x, weight, bias = (Tensor(array) for array in arrays((3, 4), (4,), (4,)))
    upstream = np.random.default_rng(1).standard_normal((3, 4))
    found = []
    for written_out in (False, True):
        for one in (x, weight, bias):
            one.zero_grad()
        if written_out:
            out = (x - x.mean(-1, True)) / (x.var(-1, True) + 1e-5).sqrt() * weight + bias
        else:
            out = layer_norm(x, weight, bias)
        out.backward(upstream)
        found.append([out.data, x.grad.copy(), weight.grad.copy(), bias.grad.copy()])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_rows_far_from_zero_or_of_equal_numbers_are_normalized_all_the_same():
    rows, scale = normalize(np.array([[1e8 - 1, 1e8 + 1], [5.0, 5.0]]), 1e-5)
    np.testing.assert_allclose(rows, [[-1.0, 1.0], [0.0, 0.0]], atol=1e-5)
    np.testing.assert_allclose(scale, [[1.0], [1e5**0.5]], rtol=1e-5)
    x = Tensor([[5.0, 5.0, 5.0]])
    layer_norm(x, np.ones(3), np.zeros(3)).backward(np.array([[1.0, 2.0, 3.0]]))
    assert np.isfinite(x.grad).all()


def test_means_and_sums_as_matrix_products_are_those_of_numpy():
    for shape in ((1, 1), (3, 4), (0, 3), (5, 1)):
        z = np.random.default_rng(0).standard_normal(shape)
        np.testing.assert_allclose(row_means(z), z.mean(axis=1, keepdims=True), atol=1e-12)
        np.testing.assert_allclose(column_sums(z), z.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gelu_agrees(shape):
    for one in spread(*arrays(shape)):
        for scale in (1.0, 5.0, 100.0):
            compare(lambda x: x.gelu() if isinstance(x, Tensor) else F.gelu(x, approximate="tanh"), one * scale)


@pytest.mark.parametrize("ids", [2, [0, 2, 2], [[1, 1], [0, 3]], np.zeros((2, 0), int), np.uint8([3, 3]), []], ids=str)
def test_an_embedding_agrees(ids):
    (table,) = arrays((4, 3))
    numbers = torch.tensor(np.asarray(ids, dtype=np.int64))
    compare(lambda w: embed(w, np.asarray(ids, dtype=int)) if isinstance(w, Tensor) else F.embedding(numbers, w), table)


def test_small_integers_do_not_overflow_in_the_line_of_places():
    words = Embedding(201, 3)
    words(np.array([200, 200, 1], np.uint8)).backward()
    np.testing.assert_array_equal(words.weight.grad.sum(axis=1)[[0, 1, 200]], [0.0, 3.0, 6.0])


def test_scatter_add_is_the_transpose_of_a_lookup():
    rng = np.random.default_rng(0)
    for k, n, width in ((1, 1, 1), (7, 3, 2), (0, 4, 3), (5, 5, 0), (300, 20, 5)):
        ids, rows = rng.integers(0, n, k), rng.standard_normal((k, width))
        for dtype in (np.float32, np.float64):
            found = scatter_add(ids, rows.astype(dtype), n)
            assert (found.dtype, found.shape) == (dtype, (n, width))
            np.testing.assert_allclose(found, (np.arange(n)[:, None] == ids) @ rows, atol=1e-5)


def test_an_embedding_starts_with_standard_normal_numbers_and_repeats_itself_from_a_seed():
    first, again = (Embedding(1000, 8, rng=np.random.default_rng(0)) for _ in range(2))
    assert np.array_equal(first.weight.data, again.weight.data)
    assert abs(first.weight.data.mean()) < 0.05
    assert abs(first.weight.data.std() - 1.0) < 0.05
    assert not np.array_equal(Embedding(3, 2).weight.data, Embedding(3, 2).weight.data)
    assert list(dict(first.named_parameters())) == ["weight"]


def test_an_embedding_works_as_the_first_module_of_others():
    model = Sequential(Embedding(5, 3), LayerNorm(3), GELU(), Linear(3, 2))
    out = model(np.array([[0, 4, 4], [1, 2, 3]]))
    assert out.shape == (2, 3, 2)
    out.backward()
    names = ["0.weight", "1.weight", "1.bias", "3.weight", "3.bias"]
    assert list(dict(model.named_parameters())) == names
    assert all(parameter.grad.any() for parameter in model.parameters()[2:])

    class Model(Module):
        def __init__(self):
            self.words = Embedding(5, 3)

        def forward(self, ids):
            return self.words(ids)

    assert Model()([[0, 4]]).shape == (1, 2, 3)


def test_the_new_modules_survive_pickling_and_have_their_start():
    norm = LayerNorm(3)
    assert (norm.weight.data.tolist(), norm.bias.data.tolist()) == ([1.0] * 3, [0.0] * 3)
    for module, shown in ((norm, "LayerNorm(3)"), (GELU(), "GELU()"), (Embedding(3, 2), "Embedding(3, 2)")):
        assert isinstance(pickle.loads(pickle.dumps(type(module))), type)
        assert repr(module) == shown
    assert GELU().parameters() == []
    np.testing.assert_array_equal(GELU()(Tensor([1.0])).data, gelu(Tensor([1.0])).data)


FLOAT32 = {
    "x[1, 0]": lambda x: x[1, 0],
    "x[[0, 0]]": lambda x: x[[0, 0]],
    "x[x > 1]": lambda x: x[x > 1.0],
    "concatenate": lambda x: concatenate([np.ones((1, 4)), x]),
    "stack": lambda x: stack([x, np.ones((3, 4))], -1),
    "flatten": lambda x: x.flatten(1),
    "where": lambda x: where(x > 1.0, x, np.float64(2.0)),
    "where, twice": lambda x: where(True, np.zeros(4), x),
    "var": lambda x: x.var(0, correction=np.float64(1.0)),
    "var of all": lambda x: x.var(),
    "layer_norm": lambda x: x.layer_norm(np.ones(4), np.zeros(4), np.float64(1e-5)),
    "LayerNorm": lambda x: LayerNorm(4, np.float32)(x),
    "gelu": lambda x: x.gelu(),
    "gelu of a number": lambda x: x[0, 0].gelu(),
    "embed": lambda x: embed(x, [[0, 2]]),
    "operators": lambda x: x.add(1.0).multiply(np.float64(2.0)).subtract(np.ones(4)).divide(3).negate(),
}


@pytest.mark.parametrize("name", FLOAT32)
def test_float32_stays_float32(name):
    x = Tensor(np.float32(np.random.default_rng(0).standard_normal((3, 4))))
    for _ in range(2):  # without a gradient, and with one
        out = FLOAT32[name](x)
        assert out.dtype == np.float32
        out.backward()
        assert (x.grad.dtype, x.grad.shape) == (np.float32, (3, 4))


def test_where_dtypes_meet_a_gradient_has_that_of_its_tensor():
    x, weight = Tensor(np.float32([[1.0, 2.0]])), Tensor([3.0, 4.0])
    for _ in range(2):
        (layer_norm(x, weight, np.zeros(2)) + concatenate([x, Tensor([[1.0, 2.0]])])).backward()
        assert (x.grad.dtype, weight.grad.dtype) == (np.float32, np.float64)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_the_operators_are_functions_and_methods(shape):
    a, b = arrays(shape, (3,) if shape else ())
    for name in ("add", "subtract", "multiply", "divide"):
        function = getattr(operators, name)
        compare(lambda x, y, f=function, n=name: f(x, y) if isinstance(x, Tensor) else getattr(torch, n)(x, y), a, b)
        assert np.array_equal(getattr(Tensor(a), name)(b).data, function(a, b).data)
        assert isinstance(function(2.0, Tensor(a)), Tensor)
    compare(lambda x: operators.negate(x) if isinstance(x, Tensor) else -x, a)
    assert np.array_equal(Tensor(a).negate().data, -a)


def test_the_words_are_those_of_pythons_own_manual():
    ids, words = load_words(50)
    assert len(words) == len(set(words)) == 50
    assert words[0] == "the"
    assert ids.dtype.kind == "i" and ids.min() == 0 and ids.max() == 49
    counts = np.bincount(ids)
    assert np.all(counts[:-1] >= counts[1:])
    assert all(word.replace("_", "").isalpha() or set(word) == {"_"} for word in words)
    assert load_words()[0].tolist() == load_words(400)[0].tolist()
