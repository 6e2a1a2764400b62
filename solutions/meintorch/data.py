"""Data sets to learn from. Given: there is nothing to fill in here."""

import re
from collections import Counter
from pathlib import Path

import numpy as np

from meintorch.arguments import as_number, generator, whole


def make_moons(n: int = 100, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved crescents, the classic small problem that no straight line solves.

    Returns points of shape (n, 2), float64, and their labels of shape (n,), integers: 1 for the first n // 2 rows (the
    upper crescent) and -1 for the rest. `noise` is the standard deviation of the jitter on each coordinate.
    The same arguments give the same data. After scikit-learn's `make_moons`.
    Raises TypeError or ValueError unless n is a whole number from 1, noise is 0 or more, and seed is one.
    """
    n, noise, rng = whole(n, "n"), as_number(noise, "noise"), generator(seed, "seed")
    if not 0.0 <= noise < np.inf:
        raise ValueError(f"noise is 0 or more, and finite, not {noise}")
    n_upper = n // 2
    upper = np.linspace(0.0, np.pi, n_upper)
    lower = np.linspace(0.0, np.pi, n - n_upper)
    points = np.concatenate(
        [
            np.column_stack([np.cos(upper), np.sin(upper)]),
            np.column_stack([1.0 - np.cos(lower), 0.5 - np.sin(lower)]),
        ]
    )
    labels = np.concatenate([np.ones(n_upper, dtype=int), -np.ones(n - n_upper, dtype=int)])
    return points + noise * rng.standard_normal(points.shape), labels


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 handwritten digits, 8 by 8 pixels each.

    Returns images of shape (1797, 64), float64, from 0 (paper) to 1 (ink), and labels of shape (1797,), integers.
    The test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak, UCI Machine Learning
    Repository, https://doi.org/10.24432/C50P49, licensed CC BY 4.0; taken over from scikit-learn's package.
    """
    with np.load(Path(__file__).with_name("digits.npz")) as saved:
        return saved["images"].reshape(-1, 64) / 16.0, saved["labels"].astype(np.int64)


def load_words(n: int = 400) -> tuple[np.ndarray, list[str]]:
    """A text of about 60,000 words that every Python brings along: its own language reference, as `help()` shows it.

    Returns the text as a row of numbers, and the n commonest words, the commonest first. A number says which of them
    stands there; all other words are left out. The text differs a little from version to version of Python.
    Raises TypeError or ValueError unless n is a whole number from 1.
    """
    n = whole(n, "n")
    text = re.findall("[a-z_]+", " ".join(manual()).lower())
    words = [word for word, _ in Counter(text).most_common(n)]
    number = {word: i for i, word in enumerate(words)}
    return np.array([number[word] for word in text if word in number]), words


def load_text(held_out: int = 10) -> tuple[np.ndarray, np.ndarray, str]:
    """The same manual, character by character: a text to learn from, and one to be tested with.

    Returns both texts as rows of numbers, and the characters in a string: number 0 is the first of them, and so on.
    Every paragraph is taken once, though some occur on several pages. Of ten, the last goes to the second text (or of
    as many as `held_out` says, 2 at least).
    """
    if whole(held_out, "held_out") < 2:
        raise ValueError(f"of {held_out} paragraphs one cannot be held out and others learned from: 2 at least")
    paragraphs = list(dict.fromkeys(re.split(r"\n\s*\n", "\n\n".join(manual()))))
    characters = "".join(sorted(set("\n".join(paragraphs))))
    number = {character: i for i, character in enumerate(characters)}
    other = paragraphs[held_out - 1 :: held_out]
    del paragraphs[held_out - 1 :: held_out]
    learn, test = (np.array([number[one] for one in "\n\n".join(text)]) for text in (paragraphs, other))
    return learn, test, characters


def manual() -> list[str]:
    """The pages of Python's own language reference, as `help()` shows them."""
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]
