"""Chapter 12's Transformer in PyTorch, with the same names for the same parameters."""

import math

import torch
from torch.nn import functional as F


def scores(p: dict[str, torch.Tensor], ids: torch.Tensor, heads: int, dropout: float = 0.0) -> torch.Tensor:
    """Ids of shape (batch, places) to scores of shape (batch, places, n).

    p        the parameters by name, as `named_parameters` of the Transformer has them
    dropout  how much of what a block adds is dropped: 0 unless it learns
    """
    batch, length = ids.shape
    width = p["norm.weight"].shape[0]

    def linear(x, name):
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def norm(x, name):
        return F.layer_norm(x, (width,), p[f"{name}.weight"], p[f"{name}.bias"], 1e-5)

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(1, 2)

    mask = torch.full((length, length), -math.inf, dtype=p["norm.weight"].dtype).triu(1)
    x = F.embedding(ids, p["embedding.weight"]) + p["positions.weight"][:length]
    for block in range(sum(name.endswith("norm1.weight") for name in p)):
        at = f"blocks.{block}"
        h = norm(x, f"{at}.norm1")
        query, key, value = (split(linear(h, f"{at}.attention.{name}")) for name in ("query", "key", "value"))
        weights = ((query * query.shape[-1] ** -0.5) @ key.transpose(2, 3) + mask).softmax(-1)
        h = linear((weights @ value).transpose(1, 2).reshape(batch, length, width), f"{at}.attention.out.0")
        x = x + F.dropout(h, dropout)
        h = linear(norm(x, f"{at}.norm2"), f"{at}.mlp.0")
        h = linear(F.gelu(h, approximate="tanh"), f"{at}.mlp.2")
        x = x + F.dropout(h, dropout)
    return norm(x, "norm") @ p["embedding.weight"].T
