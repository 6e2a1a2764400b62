"""A text as numbers, in batches, and what a model looks at in it: meintorch/text.py."""

from itertools import islice

import numpy as np
import pytest

from meintorch import Transformer, attention_weights, batches, decode, encode, generate


def small(**sizes) -> Transformer:
    return Transformer(**{"n": 3, "length": 6, "width": 4, "heads": 2, "blocks": 2, "dropout": 0.5, "rng": 0, **sizes})


def test_a_text_goes_to_numbers_and_back():
    ids = encode("banana", "abn")
    assert ids.tolist() == [1, 0, 2, 0, 2, 0]
    assert decode(ids, "abn") == "banana"


def test_an_empty_text_has_no_numbers():
    assert encode("", "ab").shape == (0,)
    assert decode([], "ab") == ""


def test_what_a_model_writes_is_decoded_as_it_comes():
    written = decode(generate(small(), encode("ab", "abn"), 5, rng=0), "abn")
    assert len(written) == 5 and set(written) <= set("abn")


def test_the_answers_are_the_text_moved_by_one_place():
    taken = list(islice(batches(np.arange(200), 64, 8), 40))
    assert len(taken) == 40  # more than a round through the text has
    for inputs, following in taken:
        assert inputs.shape[1] == 64
        np.testing.assert_array_equal(following, inputs + 1)


def test_every_piece_comes_once_in_a_round():
    first, second = (sorted(int(row[0]) for x, _ in part for row in x) for part in rounds(7, 2, 3))
    assert first == second == [0, 1, 2, 3, 4]


def rounds(places, length, size):
    stream = batches(np.arange(places), length, size)
    return [list(islice(stream, 2)) for _ in range(2)]  # of five pieces: three, and two


def test_the_same_seed_gives_the_same_batches():
    for one, other in zip(islice(batches(np.arange(50), 4, 3, seed=7), 30), batches(np.arange(50), 4, 3, seed=7)):
        np.testing.assert_array_equal(one, other)


def test_the_weights_of_every_place_add_up_and_none_looks_ahead():
    found = attention_weights(small(), [[0, 1, 2, 1]])
    assert [weights.shape for weights in found] == [(1, 2, 4, 4)] * 2
    for weights in found:
        np.testing.assert_allclose(weights.sum(-1), 1.0)
        assert (np.triu(weights, 1) == 0.0).all()


def test_the_weights_of_the_first_block_are_softmax_of_queries_times_keys():
    model, ids = small(heads=1, blocks=1), np.array([[2, 0]])
    part = model.blocks[0].attention
    seen = model.blocks[0].norm1(model.embedding(ids) + model.positions([0, 1]))
    scores = (part.query(seen).data[0] @ part.key(seen).data[0].T / 2.0)[1]  # of the last place; the width is 4
    np.testing.assert_allclose(attention_weights(model, ids)[0][0, 0, 1], np.exp(scores) / np.exp(scores).sum())


def test_looking_at_the_weights_leaves_every_part_in_its_mode():
    model = small()
    model.blocks[1].eval()
    attention_weights(model, [[0, 1]])
    assert model.blocks[0].mlp.training and not model.blocks[1].mlp.training


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: encode("abc", "ab"), ValueError, "no number for 'c'"),
        (lambda: encode("a", "aa"), ValueError, "stands twice"),
        (lambda: encode(3, "ab"), TypeError, "a text, not 3"),
        (lambda: decode([0, 2], "ab"), IndexError, "2 is none of them"),
        (lambda: decode([-1], "ab"), ValueError, "at least 0, not -1"),
        (lambda: decode([0.5], "ab"), TypeError, "whole number, not 0.5"),
        (lambda: decode("a", "ab"), TypeError, "not 'a'"),
        (lambda: batches(np.arange(4), 4, 2), ValueError, "5 characters at least, not 4"),
        (lambda: batches(np.arange(4.0), 2, 2), TypeError, "as integers"),
        (lambda: batches(np.zeros((4, 4), int), 2, 2), TypeError, "one text"),
        (lambda: batches(np.arange(9), 2.0, 2), TypeError, "whole number, not 2.0"),
        (lambda: batches(np.arange(9), 0, 2), ValueError, "at least 1, not 0"),
        (lambda: attention_weights(small(), [0, 1]), ValueError, r"not \(2,\)"),
        (lambda: attention_weights(small(), [[0] * 7]), ValueError, r"length 1 to 6, not \(1, 7\)"),
        (lambda: attention_weights(small(), [[9]]), IndexError, "not 9"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, named):
    with pytest.raises(error, match=named):
        call()
