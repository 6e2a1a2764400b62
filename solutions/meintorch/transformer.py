"""Chapter 12: a network that reads a text from left to right, and writes on."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meintorch.activations import softmax, stable_log_softmax
from meintorch.arguments import as_number, generator, whole
from meintorch.embedding import Embedding, all_tensors, check_ids, concatenate, where
from meintorch.grad_mode import no_grad
from meintorch.layers import Dropout, Linear, Module, Sequential
from meintorch.modules import in_eval_mode
from meintorch.normalization import GELU, LayerNorm
from meintorch.shapes import reshape, transpose
from meintorch.tensor import Tensor


def attention(query: Tensor, key: Tensor, value: Any, mask: Any = None) -> Tensor:
    """For each query a mean of all values, weighted by how well their keys fit the query.

    query      shape (..., n, width): a row for each place that asks
    key        shape (..., m, width): a row for each place that may be looked at
    value      shape (..., m, v): what is to be found there
    mask       an array (n, m), or one that broadcasts with it, to be added to the scores: -inf forbids to look
    Returns shape (..., n, v): zeros for a query that may look at nothing. With np.eye(m) for the value it is the
    weights. Raises ValueError for other shapes and for nan in the mask, TypeError for a mask that cannot be added, as
    one of True and False. Vaswani et al. 2017, https://arxiv.org/abs/1706.03762
    """
    query, key, value = all_tensors([query, key, value])
    hidden = checked(query, key, value, mask)
    if hidden is not None and hidden.any():  # a softmax of nothing would be 0 / 0: such a query looks, and gets 0
        opened = where(hidden, 0.0, mask) if isinstance(mask, Tensor) else np.where(hidden, 0.0, mask)
        return where(hidden, 0.0, attention(query, key, value, opened))
    # 12.1: query times key, divided by the root of the width; plus the mask; softmax along each row; times value.
    last_two = (*range(key.ndim - 2), -1, -2)
    # The queries are scaled and not the scores, of which there are more.
    scores = (query * query.shape[-1] ** -0.5) @ transpose(key, last_two)
    if mask is not None:
        scores = scores + mask
    return softmax(scores, -1) @ value


def causal_mask(n: int, m: int) -> np.ndarray:
    """What the last n of m places may look at: 0 for themselves and those before them, -inf for those after.

    Returns shape (n, m), with a row for each place that asks, float64.
    """
    # 12.2: row i is place m - n + i; from there on to the right is what comes later.
    return np.triu(np.full((n, m), -np.inf), m - n + 1)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Cut each row into pieces, one for each head: (batch, length, width) to (batch, heads, length, width / heads)."""
    # 12.3: cut the last axis in two, then bring the heads before the places.
    batch, length, width = x.shape
    return transpose(reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def merge_heads(x: Tensor) -> Tensor:
    """The pieces of all heads beside each other again: (batch, heads, length, k) to (batch, length, heads * k)."""
    batch, heads, length, k = x.shape
    return reshape(transpose(x, (0, 2, 1, 3)), (batch, length, heads * k))


class Cache:
    """Keys and values of all places so far, so that a text that grows need not be computed anew from its beginning."""

    def __init__(self) -> None:
        self.key: Tensor | None = None  # shape (batch, heads, places so far, width of a head)
        self.value: Tensor | None = None

    def __len__(self) -> int:
        """How many places there are."""
        return 0 if self.key is None else self.key.shape[2]

    def add(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put those of new places, shape (batch, heads, new, k), behind the others. Returns keys and values of all.

        Raises ValueError if they do not go with each other, or with those that are there.
        """
        if not key.ndim == value.ndim == 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(f"a Cache takes keys and values (batch, heads, new, k), not {key.shape} and {value.shape}")
        for kept, new in ((self.key, key), (self.value, value)) if self.key is not None else ():
            if (*kept.shape[:2], kept.shape[3], kept.dtype) != (*new.shape[:2], new.shape[3], new.dtype):
                there = f"a Cache that holds shape {kept.shape} of {kept.dtype}"
                raise ValueError(f"{there} cannot go on with {new.shape} of {new.dtype}: they are of different models")
        # 12.8: the first ones are kept as they are, later ones are put behind them, along the axis of the places.
        if self.key is not None:
            key, value = concatenate([self.key, key], 2), concatenate([self.value, value], 2)
        self.key, self.value = key, value
        return key, value


class CausalSelfAttention(Module):
    """Every place looks at itself and at those before it, with several heads, each in its own way.

    Raises ValueError if the heads cannot share the width, and as Linear and Dropout do.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        dtype: Any = np.float64,
        rng: np.random.Generator | int | None = None,
    ):
        width, heads = whole(width, "the width"), whole(heads, "the number of heads", least=-sys.maxsize)
        if heads < 1 or width % heads:
            raise ValueError(f"{heads} heads cannot share a width of {width} evenly")
        rng = generator(rng)
        self.heads = heads
        self.query = Linear(width, width, dtype=dtype, rng=rng)
        self.key = Linear(width, width, dtype=dtype, rng=rng)
        self.value = Linear(width, width, dtype=dtype, rng=rng)
        self.out = Sequential(Linear(width, width, dtype=dtype, rng=rng), Dropout(dropout, rng))

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        """Shape (batch, length, width), which stays. With a cache the places in it come before those of x."""
        if x.ndim != 3:
            raise ValueError(f"CausalSelfAttention takes shape (batch, length, width), not {x.shape}")
        query, key, value = (split_heads(part(x), self.heads) for part in (self.query, self.key, self.value))
        if cache is not None:
            key, value = cache.add(key, value)
        # 12.4: attention in each head, with the mask; the heads merged, and through the last layer.
        mask = causal_mask(query.shape[2], key.shape[2])
        return self.out(merge_heads(attention(query, key, value, mask)))


class Block(Module):
    """Attention, which brings information from other places, then two layers that work on each place alone.

    Both are added to what was there, and both see it normalized ("pre-norm"): Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        dtype: Any = np.float64,
        rng: np.random.Generator | int | None = None,
    ):
        rng = generator(rng)
        self.norm1 = LayerNorm(width, dtype)
        self.attention = CausalSelfAttention(width, heads, dropout, dtype, rng)
        self.norm2 = LayerNorm(width, dtype)
        self.mlp = Sequential(
            Linear(width, 4 * width, dtype=dtype, rng=rng),
            GELU(),
            Linear(4 * width, width, dtype=dtype, rng=rng),
            Dropout(dropout, rng),
        )

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        """Shape (batch, length, width), which stays."""
        # 12.5: first x plus what attention makes of it; then that plus what the two layers make of it.
        x = x + self.attention(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x))


class Transformer(Module):
    """A language model: it reads a text of numbered characters and gives, at every place, scores for the next one.

    n        how many different characters there are
    length   how many places it can read at a time
    dropout  how much of what a block adds is dropped while it learns
    dtype    float64 or float32; rng, a seed or a generator, makes the start, and the dropout, repeatable
    Raises TypeError or ValueError for other sizes, dropouts, dtypes and seeds.
    The table of the characters is also the matrix of the last layer: Press and Wolf 2017,
    https://arxiv.org/abs/1608.05859
    """

    def __init__(
        self,
        n: int,
        length: int,
        width: int = 64,
        heads: int = 4,
        blocks: int = 2,
        dropout: float = 0.0,
        dtype: Any = np.float64,
        rng: np.random.Generator | int | None = None,
    ):
        sizes = {"n": n, "length": length, "width": width, "blocks": blocks}
        n, length, width, blocks = (whole(size, name, least=-sys.maxsize) for name, size in sizes.items())
        if min(n, length, width) < 1 or blocks < 0:
            given = ", ".join(f"{name}={size}" for name, size in sizes.items())
            raise ValueError(f"a Transformer cannot have {given}: all are at least 1, but for the blocks")
        rng = generator(rng)
        self.length, self.heads = length, heads
        self.embedding = Embedding(n, width, dtype, rng)
        self.positions = Embedding(length, width, dtype, rng)
        self.blocks = [Block(width, heads, dropout, dtype, rng) for _ in range(blocks)]
        self.norm = LayerNorm(width, dtype)
        for table in (self.embedding, self.positions):
            table.weight.data *= 0.02  # so that all characters are about equally likely at the start

    def forward(self, ids: Any, caches: Sequence[Cache] | None = None) -> Tensor:
        """Characters 0 to n - 1 in shape (batch, places) to scores in shape (batch, places, n).

        caches  one for each block, if this text goes on where another one ended: they know its keys and values
        Raises ValueError if there are more places than `length` or none, for caches that do not belong to these blocks
        and texts, and as `embed` does for other ids.
        """
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(f"a Transformer takes ids of shape (batch, length), length at least 1, not {ids.shape}")
        past = places_in(caches, self, len(ids))
        caches = caches or [None] * len(self.blocks)
        places = np.arange(past, past + ids.shape[1])
        if places[-1] >= self.length:
            raise ValueError(f"a text of {len(places) + past} characters: this model reads {self.length} at a time")
        # 12.6: a row for each character plus one for its place; all blocks; the norm; times the table once more.
        x = self.embedding(ids) + self.positions(places)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache)
        return self.norm(x) @ self.embedding.weight.T


def probabilities(scores: np.ndarray, temperature: float = 1.0, top_k: int | None = None) -> np.ndarray:
    """What comes next, and how likely is it? From scores of shape (n,) to probabilities of shape (n,), both float64.

    temperature  above 0: below 1 the likely becomes likelier, above 1 all come closer to each other
    top_k        only this many of the likeliest are left; the others get 0. None: all of them
    Raises TypeError or ValueError for a temperature or a top_k outside of that.
    """
    if not as_number(temperature, "the temperature") > 0.0:
        raise ValueError(f"the temperature is above 0, not {temperature}")
    if top_k is not None and whole(top_k, "top_k") > len(scores):
        raise ValueError(f"top_k is at most {len(scores)}, the number of scores, not {top_k}")
    # 12.7: divided by the temperature, all but the k best to -inf, and softmax.
    scores = scores / temperature
    if top_k is not None:
        scores[scores < np.sort(scores)[-top_k]] = -np.inf
    shares = np.exp(scores - scores.max())
    return shares / shares.sum()


# Given from here on.


def generate(
    model: Transformer,
    ids: np.ndarray | Sequence[int],
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    rng: np.random.Generator | int | None = None,
    cached: bool = True,
) -> Iterator[int]:
    """Write on: n more characters after `ids`, one by one as they come. With temperature 0 always the likeliest.

    When all places of the model are full, it forgets the first half of them. `cached=False` computes every character
    from all those before it, with the same result. Until it ends, the model is in eval mode.
    Raises ValueError for a temperature below 0, for a top_k below 1, for an n below 0, or if there is nothing to begin
    with, TypeError for what is no number, and as `embed` does for ids of characters that the model does not have: all
    of it when the first character is asked for.
    """
    ids = check_text(ids, model)
    if not len(ids):
        raise ValueError("generate needs at least one character to begin with")
    temperature = as_number(temperature, "the temperature")
    if top_k is not None:
        as_number(top_k, "top_k")
    if not temperature >= 0.0 or (top_k is not None and (top_k < 1 or top_k % 1)):
        raise ValueError(f"a temperature is at least 0 and top_k a whole number from 1, not {temperature} and {top_k}")
    n, rng = whole(n, "the number of characters to write", least=0), generator(rng)
    window = list(ids)[-model.length :]
    caches: list[Cache] = []
    with in_eval_mode(model):
        for _ in range(n):
            if len(window) > model.length:
                window, caches = window[-(model.length // 2 + 1) :], []
            if cached and not caches:
                caches = [Cache() for _ in model.blocks]
            new = window[len(caches[0]) if caches else 0 :]
            with no_grad():
                scores = model(np.array([new]), caches).data[0, -1].astype(np.float64)
            if temperature == 0.0:
                choice = int(scores.argmax())
            else:
                top = top_k if top_k is None else int(min(top_k, len(scores)))
                choice = int(rng.choice(len(scores), p=probabilities(scores, temperature, top)))
            window.append(choice)
            yield choice


def bits_per_character(model: Transformer, ids: np.ndarray) -> float:
    """How many bits of surprise each character of a text is to the model, on average: minus log2 of its probability.

    The text is read in pieces of the model's length that overlap by half, so that (but for the first piece) every
    character has at least half a piece before it. What does not fill half a piece at the end is left out.
    Raises ValueError for a text that does not fill the model once, and as `embed` does for other ids.
    """
    ids = check_text(ids, model)
    if len(ids) <= model.length:
        raise ValueError(f"this needs a text of {model.length + 1} characters at least, not {len(ids)}")
    half = max(model.length // 2, 1)
    pieces = np.lib.stride_tricks.sliding_window_view(ids, model.length + 1)[::half]
    total, count = 0.0, 0
    with in_eval_mode(model), no_grad():
        for i, piece in enumerate(pieces):
            logarithms = stable_log_softmax(model(piece[None, :-1]).data[0].astype(np.float64), -1)
            right = logarithms[np.arange(model.length), piece[1:]]
            right = right if i == 0 else right[model.length - half :]
            total, count = total - right.sum(), count + len(right)
    return float(total / count / np.log(2.0))


def checked(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> np.ndarray | None:
    """For which queries does the mask hide everything? True and False that broadcast with (n, 1), None without a mask.

    Raises as `attention` does.
    """
    shapes = f"{query.shape}, {key.shape} and {value.shape}"
    wanted = f"attention takes shapes (..., n, width), (..., m, width) and (..., m, v), m at least 1, not {shapes}"
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1] or key.shape[-2] == 0:
        raise ValueError(wanted)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(wanted)
    try:
        front = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except ValueError:
        raise ValueError(f"{wanted}: the axes in front do not broadcast") from None
    if mask is None:
        return None
    numbers = np.atleast_1d(mask.data if isinstance(mask, Tensor) else mask)
    if numbers.dtype.kind != "f":
        raise TypeError(
            f"a mask is added to the scores: floats, 0 where a query may look and -inf where it must not, not an array "
            f"of {numbers.dtype}. np.where(may_look, 0.0, -np.inf) makes one of True and False"
        )
    n, m = query.shape[-2], key.shape[-2]
    try:
        fits = np.broadcast_shapes(numbers.shape, (*front, n, m))[-2:] == (n, m)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a mask for {n} queries and {m} keys has shape {(n, m)}, or broadcasts, not {numbers.shape}")
    largest = numbers.max(axis=-1, keepdims=True)
    if np.isnan(largest).any():
        raise ValueError("there is nan in the mask, and a mask holds numbers to be added: 0, -inf (0 * -inf is nan)")
    return largest == -np.inf


def places_in(caches: Sequence[Cache] | None, model: Transformer, batch: int) -> int:
    """How many places there are in the caches: 0 without them. Raises ValueError if they cannot be those of a text."""
    if isinstance(caches, Cache):
        raise TypeError("caches are given in a list, one for each block, not a single Cache")
    if not caches:
        return 0
    if not all(hasattr(cache, "key") for cache in caches):
        raise TypeError("caches are given in a list of Cache objects, one for each block")
    blocks = len(model.blocks)
    places = {id(cache): len(cache) for cache in caches}
    if not len(places) == len(caches) == blocks:
        raise ValueError(f"each of the {blocks} blocks needs a cache of its own, and there are {len(places)}")
    if len(set(places.values())) > 1:
        raise ValueError(f"all caches hold the places of one text, and these hold {list(places.values())}")
    if caches[0].key is not None and len(caches[0].key) != batch:
        raise ValueError(f"the caches hold {len(caches[0].key)} texts, and {batch} are to go on")
    heads, width, dtype = model.heads, model.embedding.weight.shape[1], model.embedding.weight.dtype
    for cache in caches:
        if cache.key is not None and (cache.key.shape[1], cache.key.shape[3]) != (heads, width // heads):
            found = f"{cache.key.shape[1]} heads of width {cache.key.shape[3]}"
            raise ValueError(f"a cache of {found} is of another model: this one has {heads} of {width // heads}")
        if cache.key is not None and cache.key.dtype != dtype:
            raise ValueError(f"a cache of {cache.key.dtype} is of another model: this one is of {dtype}")
    return len(caches[0])


def check_text(ids: Any, model: Transformer) -> np.ndarray:
    """One text as an array of integers that the model knows."""
    if isinstance(ids, str):
        raise TypeError(f"a model takes integers, not {ids[:60]!r}: meintorch.encode(text, characters) makes them")
    ids = check_ids(ids, len(model.embedding.weight)) if np.size(ids) else np.zeros(0, int)
    if ids.ndim != 1:
        raise ValueError(f"this takes one text, ids of shape (places,), not {ids.shape}")
    return ids
