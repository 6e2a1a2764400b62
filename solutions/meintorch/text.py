"""A text as numbers and back, in batches to learn from, and what a model looks at in it. Nothing to fill in here."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from meintorch.arguments import shown, whole
from meintorch.grad_mode import no_grad
from meintorch.modules import in_eval_mode
from meintorch.training import DataLoader
from meintorch.transformer import Transformer, attention, causal_mask, split_heads


def encode(text: str, characters: Sequence[str]) -> np.ndarray:
    """The number of each character, its place in `characters`: shape (len(text),).

    Raises ValueError for a character that is not among them, and if one of them stands there twice.
    """
    if not isinstance(text, str):
        raise TypeError(f"encode takes a text, not {shown(text)}")
    number = {one: place for place, one in enumerate(characters)}
    if len(number) < len(characters):
        raise ValueError("each character has one number, and among these characters one stands twice")
    unknown = "".join(dict.fromkeys(one for one in text if one not in number))
    if unknown:
        raise ValueError(f"there is no number for {unknown!r}: it is not among the {len(characters)} characters")
    return np.array([number[one] for one in text], int)


def decode(ids: Iterable[int], characters: Sequence[str]) -> str:
    """The text whose characters have these numbers. Undoes `encode`, and takes what `generate` gives.

    Raises TypeError for what is no whole number, ValueError for one below 0, IndexError for one that is too large.
    """
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise TypeError(f"decode takes whole numbers, as encode makes them, not {shown(ids)}")
    places = [whole(one, "the number of a character", least=0) for one in ids]
    if places and max(places) >= len(characters):
        raise IndexError(f"{len(characters)} characters have the numbers below that, and {max(places)} is none of them")
    return "".join(characters[place] for place in places)


def batches(ids: np.ndarray, length: int, batch_size: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pieces of a text from anywhere, and as answers the same pieces one place further on. It never ends.

    ids  the text as numbers, shape (places,), more of them than `length`
    Yields pairs of arrays of shape (batch_size, length); every piece comes once before one comes again (the last batch
    of such a round may be smaller). The same seed gives the same batches. Raises TypeError or ValueError for others.
    """
    ids, length = np.asarray(ids), whole(length, "the length of a piece")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"batches are made of one text as integers, shape (places,), not {shown(ids)}")
    if len(ids) <= length:
        raise ValueError(f"pieces of {length} and their answers need {length + 1} characters at least, not {len(ids)}")
    pieces = np.lib.stride_tricks.sliding_window_view(ids, length + 1)  # a view: nothing is copied
    return chain.from_iterable(repeat(DataLoader(pieces[:, :-1], pieces[:, 1:], batch_size, seed=seed)))


def attention_weights(model: Transformer, ids: Any) -> list[np.ndarray]:
    """How much every place of a text looks at every other one: for each block an array (batch, heads, length, length).

    ids  shape (batch, length), as the model takes them
    Row i has the weights of place i, whose sum is 1. Dropout is off. Raises ValueError for other shapes.
    """
    ids = np.asarray(ids)
    if ids.ndim != 2 or not 1 <= ids.shape[1] <= model.length:
        raise ValueError(f"this takes ids of shape (batch, length), length 1 to {model.length}, not {ids.shape}")
    places, found = np.arange(ids.shape[1]), []
    with in_eval_mode(model), no_grad():
        x = model.embedding(ids) + model.positions(places)
        for block in model.blocks:
            part, seen = block.attention, block.norm1(x)
            query, key = split_heads(part.query(seen), part.heads), split_heads(part.key(seen), part.heads)
            # Where the values are a 1 for each place and 0 elsewhere, their weighted mean is the weights.
            found.append(attention(query, key, np.eye(len(places)), causal_mask(len(places), len(places))).data)
            x = block(x)
    return found
