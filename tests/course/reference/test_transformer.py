"""The reference of chapter 12: what it refuses, its given parts, and the same model in PyTorch."""

import importlib

import numpy as np
import pytest

import meintorch
from grading.course import chapters as course
from meintorch import Adam, Transformer, bits_per_character, cross_entropy, generate, no_grad, train_step
from meintorch.data import load_text
from meintorch.tensor import Tensor
from meintorch.transformer import Block, Cache, CausalSelfAttention, attention, causal_mask, probabilities
from tests.course.oracle.pytorch import torch


@pytest.fixture
def in_torch(monkeypatch):
    """The same model in PyTorch, of the benchmarks."""
    monkeypatch.syspath_prepend(course.ROOT / "benchmarks")
    return importlib.import_module("torch_transformer")


def small(dtype=np.float64, **sizes) -> Transformer:
    sizes = {"n": 11, "length": 12, "width": 8, "heads": 2, "blocks": 2, **sizes}
    return Transformer(**sizes, dtype=dtype, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: small(heads=3), ValueError, "3 heads cannot share a width of 8"),
        (lambda: small(heads=0), ValueError, "0 heads"),
        (lambda: small(dropout=1.0), ValueError, "below 1, not 1.0"),
        (lambda: small()(np.zeros((1, 13), int)), ValueError, "13 characters: this model reads 12"),
        (lambda: small(length=0), ValueError, "length=0, width=8, blocks=2"),
        (lambda: small(blocks=-1), ValueError, "blocks=-1"),
        (lambda: CausalSelfAttention(4, 2)(np.zeros((3, 4))), ValueError, r"not \(3, 4\)"),
        (lambda: small()([1, 2]), ValueError, r"not \(2,\)"),
        (lambda: small()(np.zeros((1, 0), int)), ValueError, r"not \(1, 0\)"),
        (lambda: small()(np.array([[11]])), IndexError, "from 0 to 10, not 11"),
        (lambda: small()(np.array([[0.5]])), TypeError, "takes integers"),
        (lambda: list(generate(small(), [], 3)), ValueError, "at least one character"),
        (lambda: list(generate(small(), [1], 3, temperature=-1.0)), ValueError, "not -1.0 and None"),
        (lambda: list(generate(small(), [1], 3, temperature=np.nan)), ValueError, "not nan and None"),
        (lambda: list(generate(small(), [1], 3, top_k=0)), ValueError, "not 1.0 and 0"),
        (lambda: list(generate(small(), [1], 3, top_k=1.5)), ValueError, "not 1.0 and 1.5"),
        (lambda: list(generate(small(), [0.5], 3)), TypeError, r"takes integers, not \[0.5\]"),
        (lambda: list(generate(small(), "ab", 3)), TypeError, "takes integers, not 'ab'"),
        (lambda: list(generate(small(), [[1, 2]], 3)), ValueError, r"not \(1, 2\)"),
        (lambda: bits_per_character(small(), np.zeros(12, int)), ValueError, "13 characters at least, not 12"),
        (lambda: bits_per_character(small(), np.zeros((13, 2), int)), ValueError, r"not \(13, 2\)"),
        (lambda: bits_per_character(small(), np.zeros(13)), TypeError, "takes integers"),
        (lambda: bits_per_character(small(), np.r_[np.zeros(12, int), -1]), IndexError, "from 0 to 10, not -1"),
        (lambda: load_text(1), ValueError, "of 1 paragraphs"),
    ],
)
def test_bad_input_is_refused_with_what_was_given(call, error, named):
    with pytest.raises(error, match=named):
        call()


def read_with(*caches, texts=1):
    small()(np.ones((texts, 1), int), caches[0] if isinstance(caches[0], Cache) and len(caches) == 1 else list(caches))


def filled_cache(places=2):
    cache = Cache()
    cache.add(Tensor(np.zeros((1, 2, places, 4))), Tensor(np.zeros((1, 2, places, 4))))
    return cache


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: read_with(Cache()), TypeError, "not a single Cache"),
        (lambda: read_with(Cache(), Cache(), Cache()), ValueError, "each of the 2 blocks .* there are 3"),
        (lambda: read_with(*[Cache()] * 2), ValueError, "each of the 2 blocks .* there are 1"),
        (lambda: read_with(filled_cache(), filled_cache(3)), ValueError, r"these hold \[2, 3\]"),
        (lambda: read_with(filled_cache(), filled_cache(), texts=3), ValueError, "hold 1 texts, and 3 are to go on"),
    ],
)
def test_caches_that_do_not_belong_to_the_blocks_and_texts_are_refused(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_after_an_error_the_model_learns_on():
    model = small(dropout=0.5)
    model.blocks[1].forward = lambda x, cache=None: 1 / 0
    for use in (lambda: bits_per_character(model, np.zeros(13, int)), lambda: list(generate(model, [1], 2))):
        with pytest.raises(ZeroDivisionError):
            use()
        assert model.training and model.blocks[0].mlp.training


def test_the_same_losses_as_pytorch_over_fifty_steps(in_torch):
    """From the same weights, on the same batches, with Adam, in float32 as well as in float64."""
    F = torch.nn.functional
    learn, _, characters = load_text()
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 2e-4)):
        model = Transformer(len(characters), 32, 32, 4, 2, dtype=dtype, rng=np.random.default_rng(0))
        p = {name: torch.from_numpy(array).requires_grad_() for name, array in model.state_dict().items()}
        optimizer, theirs = Adam(model.parameters(), lr=3e-3), torch.optim.Adam(p.values(), lr=3e-3)
        rng, losses = np.random.default_rng(1), []
        for _ in range(50):
            batch = np.stack([learn[start : start + 33] for start in rng.integers(0, len(learn) - 33, 4)])
            ids, following = batch[:, :-1], batch[:, 1:]
            ours = train_step(model, cross_entropy, optimizer, ids, following)
            loss = F.cross_entropy(
                in_torch.scores(p, torch.from_numpy(ids), heads=4).flatten(0, 1), torch.from_numpy(following).flatten()
            )
            theirs.zero_grad()
            loss.backward()
            theirs.step()
            losses.append((ours, loss.item()))
        ours, wanted = np.array(losses).T
        np.testing.assert_allclose(ours, wanted, rtol=tolerance)
        assert ours[-1] < 0.8 * ours[0]


def test_every_gradient_of_the_model_is_pytorchs(in_torch):
    model = small()
    ids, following = np.random.default_rng(0).integers(0, 11, (2, 3, 12))
    p = {name: torch.from_numpy(array).requires_grad_() for name, array in model.state_dict().items()}
    cross_entropy(model(ids), following).backward()
    found = in_torch.scores(p, torch.from_numpy(ids), heads=2)
    torch.nn.functional.cross_entropy(found.flatten(0, 1), torch.from_numpy(following).flatten()).backward()
    for name, parameter in dict(model.named_parameters()).items():
        np.testing.assert_allclose(parameter.grad, p[name].grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def test_attention_is_pytorchs():
    rng = np.random.default_rng(0)
    for causal in (False, True):
        query, key, value = (rng.standard_normal((2, 3, 7, 4)) for _ in range(3))
        tensors = [Tensor(one) for one in (query, key, value)]
        theirs = [torch.from_numpy(one.copy()).requires_grad_() for one in (query, key, value)]
        out = attention(*tensors, causal_mask(7, 7) if causal else None)
        wanted = torch.nn.functional.scaled_dot_product_attention(*theirs, is_causal=causal)
        upstream = rng.standard_normal(out.shape)
        out.backward(upstream)
        wanted.backward(torch.from_numpy(upstream))
        np.testing.assert_allclose(out.data, wanted.detach().numpy(), rtol=1e-10)
        for ours, other in zip(tensors, theirs):
            np.testing.assert_allclose(ours.grad, other.grad.numpy(), rtol=1e-8, atol=1e-12)


def test_float32_stays_float32_and_dropout_is_only_for_learning():
    model = small(np.float32, dropout=0.5)
    ids = np.array([[1, 2, 3]])
    assert {parameter.dtype for parameter in model.parameters()} == {np.dtype(np.float32)}
    scores = model(ids)
    assert scores.dtype == np.float32
    assert not np.array_equal(scores.data, model(ids).data)
    model.eval()
    np.testing.assert_array_equal(model(ids).data, model(ids).data)


def test_one_table_serves_both_ends():
    names = list(dict(small(blocks=1).named_parameters()))
    assert names[:2] == ["embedding.weight", "positions.weight"]
    assert not any("head" in name for name in names)
    assert len(names) == 2 + 16 + 2


def test_a_model_at_its_start_finds_all_characters_about_equally_likely():
    bits = bits_per_character(small(width=64, heads=4), np.random.default_rng(0).integers(0, 11, 200))
    assert abs(bits - np.log2(11)) < 0.05


def test_bits_are_those_of_the_probabilities():
    """Twelve places, pieces that overlap by half: the first piece counts whole, of the others the second half."""
    model, ids = small(), np.random.default_rng(0).integers(0, 11, 25)
    bits = []
    for place in range(1, 25):
        start = 0 if place <= 12 else 6 * ((place - 7) // 6)
        shares = probabilities(model(ids[None, start:place]).data[0, -1])
        bits.append(-np.log2(shares[ids[place]]))
    assert bits_per_character(model, ids) == pytest.approx(np.mean(bits))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_text_that_outgrows_the_model_goes_on_and_the_cache_changes_nothing(temperature):
    model = small()
    model.embedding.weight.data *= 50.0
    ways = [
        list(generate(model, [1, 2, 3], 40, temperature, rng=np.random.default_rng(0), cached=cached))
        for cached in (False, True)
    ]
    assert ways[0] == ways[1] and len(ways[0]) == 40
    assert len(list(generate(model, range(11), 5, rng=np.random.default_rng(0)))) == 5
    assert len(list(generate(small(length=1), [1], 3))) == 3


def test_a_beginning_longer_than_the_model_counts_with_its_end():
    model, ids = small(), np.random.default_rng(0).integers(0, 11, 30)
    whole, end = (list(generate(model, one, 3, temperature=0.0)) for one in (ids, ids[-12:]))
    assert whole == end


def test_generating_leaves_the_model_as_it_was():
    model = small(dropout=0.5)
    before = model.state_dict()
    writing = generate(model, [1], 5)
    next(writing)
    assert not model.training
    writing.close()
    assert model.training and model.blocks[0].mlp.training
    model.eval()
    list(generate(model, [1], 2))
    assert not model.training
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_generating_records_no_graph():
    model, seen = small(), []
    forward = model.forward
    model.forward = lambda *given: seen.append(forward(*given)) or seen[-1]
    list(generate(model, [1], 3))
    assert len(seen) == 3 and not any(scores.requires_grad for scores in seen)


def test_a_character_is_drawn_as_often_as_it_is_likely():
    model = small(blocks=0)
    model.embedding.weight.data *= 30.0
    with no_grad():
        wanted = probabilities(model(np.array([[3]])).data[0, -1], 1.3, 4)
    rng = np.random.default_rng(0)
    drawn = [next(generate(model, [3], 1, 1.3, 4, rng)) for _ in range(2000)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=11) / 2000, wanted, atol=0.04)


def test_with_a_cache_each_character_is_computed_once():
    """By counting the places that go through the first block."""
    model, places = small(length=64), []
    block = model.blocks[0]
    forward = block.forward
    block.forward = lambda x, cache=None: places.append(x.shape[1]) or forward(x, cache)
    list(generate(model, [1, 2, 3], 30))
    assert places == [3] + [1] * 29
    places.clear()
    list(generate(model, [1, 2, 3], 30, cached=False))
    assert places == list(range(3, 33))


def test_a_cache_counts_its_places():
    cache = Cache()
    assert len(cache) == 0
    cache.add(Tensor(np.zeros((1, 2, 3, 4))), Tensor(np.zeros((1, 2, 3, 4))))
    assert len(cache) == 3


def test_a_graph_of_the_model_dies_by_reference_count():
    import gc
    import weakref

    gc.disable()
    try:
        model = small()
        loss = cross_entropy(model(np.array([[1, 2, 3]])), np.array([[2, 3, 4]]))
        watch = weakref.ref(loss)
        del loss
        assert watch() is None
    finally:
        gc.enable()


def test_the_text_is_cut_into_two_that_have_no_paragraph_in_common():
    learn, held_out, characters = load_text()
    texts = ["".join(characters[i] for i in ids) for ids in (learn, held_out)]
    parts = [set(text.split("\n\n")) for text in texts]
    assert not {one for one in parts[0] & parts[1] if one.strip()}
    assert 0.05 < len(held_out) / len(learn) < 0.2
    assert list(characters) == sorted(set(characters))
    assert set(learn) | set(held_out) == set(range(len(characters)))


def test_its_names_can_be_imported_from_the_package():
    for name in ("Transformer", "attention", "bits_per_character", "causal_mask", "generate"):
        assert hasattr(meintorch, name)
    assert Block(4, 2)(np.zeros((1, 2, 4))).shape == (1, 2, 4)
    assert CausalSelfAttention(4, 2)(np.zeros((1, 2, 4))).shape == (1, 2, 4)
