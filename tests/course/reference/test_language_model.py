"""The training of benchmarks/language_model.py, in small: its batches, the model that counts, and a few steps."""

import importlib
import math

import numpy as np
import pytest

from grading.course import chapters as course
from meintorch import Adam, Transformer, bits_per_character, cross_entropy, train_step
from meintorch.data import load_text


@pytest.fixture(scope="module")
def language_model():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(course.ROOT / "benchmarks")
        yield importlib.import_module("language_model")


def test_a_model_that_counts_has_the_bits_that_can_be_computed_by_hand(language_model):
    """Learned from "aab", asked for "ab", with two characters.

    Looking back at nothing: a has (2 + 2 * 1/2) / (3 + 2) = 3/5, b has 2/5. Looking back at one, b after a: each of
    the two has followed once, so (1 + 2 * 2/5) / (2 + 2) = 9/20.
    """
    learn, asked = np.array([0, 0, 1]), np.array([0, 1])
    wanted = -math.log2(3 / 5) - math.log2(2 / 5)
    assert language_model.counted_bits(learn, asked, 0, 2) == pytest.approx(wanted / 2)
    wanted = -math.log2(3 / 5) - math.log2(9 / 20)
    assert language_model.counted_bits(learn, asked, 1, 2) == pytest.approx(wanted / 2)


def test_a_small_model_soon_writes_the_manual_with_fewer_bits_than_its_letters_take(language_model):
    learn, held_out, characters = load_text()
    model = Transformer(len(characters), 32, 32, 4, 1, dtype=np.float32, rng=np.random.default_rng(0))
    optimizer = Adam(model.parameters(), lr=5e-3)
    starts = np.random.default_rng(1).integers(0, len(learn) - 33, (250, 16))
    for start in starts:
        batch = np.stack([learn[place : place + 33] for place in start])
        train_step(model, cross_entropy, optimizer, batch[:, :-1], batch[:, 1:])
    letters = language_model.counted_bits(learn, held_out[:4000], 0, len(characters))
    assert bits_per_character(model, held_out[:4000]) < 0.8 * letters


def test_its_result_is_clearly_better_than_counting_and_pytorch_hardly_better_than_it():
    """The table in benchmarks/README.md, made by `python benchmarks/language_model.py --solution --torch`."""
    table = (course.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    bits = {
        row.split("|")[1].split()[0]: float(row.split("|")[-2])
        for row in table.splitlines()
        if row.startswith(("| counts", "| meintorch, trained", "| PyTorch, trained"))
    }
    assert bits["meintorch,"] < 0.95 * bits["counts"]
    assert bits["PyTorch,"] > 0.99 * bits["meintorch,"]
