"""T: a training step of chapter 12's Transformer, and the scores that it gives, without a graph.

16 texts of 64 characters, 65 different ones, width 64, 4 heads, 2 blocks, GELU, Adam, float32. Every engine begins with
the same weights and sees the same batch.
"""

from collections.abc import Callable

import numpy as np

BATCH, LENGTH, WIDTH, HEADS, BLOCKS, VOCABULARY = 16, 64, 64, 4, 2, 65
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
HEAD = WIDTH // HEADS
ROWS = BATCH * LENGTH
ADDED = 1e-5  # to a variance, before its root is taken
C, K = 0.7978845608, 0.044715  # of GELU: sqrt(2 / pi), and the weight of the cube
MASK = np.triu(np.full((LENGTH, LENGTH), -np.inf, np.float32), 1)  # nobody looks ahead
ONES = np.ones((LENGTH, 1), np.float32)

Step = Callable[[], float]


def numbers() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The characters, those that follow them, and the weights by name."""
    rng = np.random.default_rng(0)
    ids, following = (rng.integers(0, VOCABULARY, (BATCH, LENGTH)) for _ in range(2))

    def matrix(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)

    def pair(name: str, first: np.ndarray) -> dict[str, np.ndarray]:
        return {f"{name}.weight": first, f"{name}.bias": np.zeros(first.shape[-1], np.float32)}

    ones = np.ones(WIDTH, np.float32)
    weights = {"embedding.weight": matrix(VOCABULARY, WIDTH), "positions.weight": matrix(LENGTH, WIDTH)}
    weights |= pair("norm", ones.copy())
    for block in range(BLOCKS):
        at = f"blocks.{block}"
        weights |= pair(f"{at}.norm1", ones.copy()) | pair(f"{at}.norm2", ones.copy())
        for name in ("query", "key", "value", "out.0"):
            weights |= pair(f"{at}.attention.{name}", matrix(WIDTH, WIDTH))
        weights |= pair(f"{at}.mlp.0", matrix(WIDTH, 4 * WIDTH)) | pair(f"{at}.mlp.2", matrix(4 * WIDTH, WIDTH))
    return ids, following, weights


def t_meintorch() -> Step:
    from meintorch import Adam, Transformer, cross_entropy, train_step

    ids, following, weights = numbers()
    model = Transformer(VOCABULARY, LENGTH, WIDTH, HEADS, BLOCKS, dtype=np.float32)
    model.load_state_dict(weights)
    optimizer = Adam(model.parameters(), lr=RATE, betas=(BETA1, BETA2), eps=EPSILON)
    return lambda: train_step(model, cross_entropy, optimizer, ids, following)


def t_forward_meintorch() -> Step:
    from meintorch import Transformer, no_grad

    ids, _, weights = numbers()
    model = Transformer(VOCABULARY, LENGTH, WIDTH, HEADS, BLOCKS, dtype=np.float32)
    model.load_state_dict(weights)
    model.eval()

    def step():
        with no_grad():
            return model(ids).data[0, 0, 0]

    return step


def t_torch() -> Step:
    import torch
    from torch_transformer import scores

    torch.set_num_threads(1)
    ids, following, weights = numbers()
    ids, following = torch.from_numpy(ids), torch.from_numpy(following).flatten()
    p = {name: torch.from_numpy(array).requires_grad_() for name, array in weights.items()}
    optimizer = torch.optim.Adam(p.values(), lr=RATE, betas=(BETA1, BETA2), eps=EPSILON)

    def step():
        loss = torch.nn.functional.cross_entropy(scores(p, ids, HEADS).flatten(0, 1), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def t_forward_torch() -> Step:
    import torch
    from torch_transformer import scores

    torch.set_num_threads(1)
    ids, _, weights = numbers()
    ids, p = torch.from_numpy(ids), {name: torch.from_numpy(array) for name, array in weights.items()}

    def step():
        with torch.no_grad():
            return scores(p, ids, HEADS)[0, 0, 0].item()

    return step


# By hand: what NumPy can do at best.


def t_by_hand() -> Step:
    ids, following, p = numbers()
    flat, rows = following.ravel(), np.arange(ROWS)
    chosen = (np.arange(VOCABULARY)[:, None] == ids.ravel()).astype(np.float32)  # the scatter of embed, as a matrix
    mean = {name: np.zeros_like(array) for name, array in p.items()}
    square = {name: np.zeros_like(array) for name, array in p.items()}
    steps = 0

    def linear_back(x, upstream, name, gradients):
        gradients[f"{name}.weight"], gradients[f"{name}.bias"] = x.T @ upstream, _column_sums(upstream)
        return upstream @ p[f"{name}.weight"].T

    def step():
        nonlocal steps
        saved, gradients = [], {}
        logits = _scores(p, ids, saved)
        last, normal, scale = saved.pop()
        logits -= logits.max(-1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits @ np.ones((VOCABULARY, 1), np.float32)
        loss = -np.log(logits[rows, flat]).mean()

        logits[rows, flat] -= 1
        logits /= ROWS
        gradients["embedding.weight"] = logits.T @ last
        up = _norm_back(logits @ p["embedding.weight"], p, "norm", normal, scale, gradients)
        for block in reversed(range(BLOCKS)):
            at = f"blocks.{block}"
            h, normal1, scale1, query, key, value, s, mixed, h2, normal2, scale2, wide, curved, t = saved[block]
            back = _gelu_back(linear_back(curved, up, f"{at}.mlp.2", gradients), wide, t)
            back = linear_back(h2, back, f"{at}.mlp.0", gradients)
            up = up + _norm_back(back, p, f"{at}.norm2", normal2, scale2, gradients)
            to_mixed = _heads(linear_back(mixed, up, f"{at}.attention.out.0", gradients))
            to_value = _together(s.swapaxes(-1, -2) @ to_mixed)
            to_scores = to_mixed @ value.swapaxes(-1, -2)
            to_scores -= _dots(to_scores, s)
            to_scores *= s
            to_query = _together(to_scores @ key)
            to_query *= HEAD**-0.5
            to_key = _together(to_scores.swapaxes(-1, -2) @ query)
            back = linear_back(h, to_query, f"{at}.attention.query", gradients)
            back += linear_back(h, to_key, f"{at}.attention.key", gradients)
            back += linear_back(h, to_value, f"{at}.attention.value", gradients)
            up = up + _norm_back(back, p, f"{at}.norm1", normal1, scale1, gradients)
        gradients["embedding.weight"] += chosen @ up
        gradients["positions.weight"] = up.reshape(BATCH, LENGTH, WIDTH).sum(0)

        steps += 1
        for name, parameter in p.items():
            g, m, v = gradients[name], mean[name], square[name]
            m *= BETA1
            m += (1 - BETA1) * g
            v *= BETA2
            g *= g
            g *= 1 - BETA2
            v += g
            np.divide(v, 1 - BETA2**steps, out=g)
            np.sqrt(g, out=g)
            g += EPSILON
            np.divide(m, g, out=g)
            g *= RATE / (1 - BETA1**steps)
            parameter -= g
        return loss

    return step


def t_forward_by_hand() -> Step:
    ids, _, p = numbers()
    return lambda: _scores(p, ids)[0, 0]


def _scores(p: dict[str, np.ndarray], ids: np.ndarray, saved: list | None = None) -> np.ndarray:
    """The scores of the characters that may follow, shape (ROWS, VOCABULARY).

    saved  takes what the way back needs: a tuple a block, and one for the norm behind them
    """

    def linear(x, name):
        out = x @ p[f"{name}.weight"]
        out += p[f"{name}.bias"]
        return out

    x = (p["embedding.weight"][ids] + p["positions.weight"]).reshape(ROWS, WIDTH)
    for block in range(BLOCKS):
        at = f"blocks.{block}"
        h, normal1, scale1 = _norm(x, p, f"{at}.norm1")
        query, key, value = (linear(h, f"{at}.attention.{name}") for name in ("query", "key", "value"))
        query *= HEAD**-0.5
        query, key, value = _heads(query), _heads(key), _heads(value)
        s = query @ key.swapaxes(-1, -2)
        s += MASK
        s -= s.max(-1, keepdims=True)
        np.exp(s, out=s)
        s /= s @ ONES
        mixed = _together(s @ value)
        x = x + linear(mixed, f"{at}.attention.out.0")
        h2, normal2, scale2 = _norm(x, p, f"{at}.norm2")
        wide = linear(h2, f"{at}.mlp.0")
        curved, t = _gelu(wide)
        x = x + linear(curved, f"{at}.mlp.2")
        if saved is not None:
            saved.append((h, normal1, scale1, query, key, value, s, mixed, h2, normal2, scale2, wide, curved, t))
    last, normal, scale = _norm(x, p, "norm")
    if saved is not None:
        saved.append((last, normal, scale))
    return last @ p["embedding.weight"].T


def _heads(x: np.ndarray) -> np.ndarray:
    return x.reshape(BATCH, LENGTH, HEADS, HEAD).transpose(0, 2, 1, 3)


def _together(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 2, 1, 3).reshape(ROWS, WIDTH)


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.vecdot(a, b)[..., None]


def _column_sums(x: np.ndarray) -> np.ndarray:
    return np.ones(len(x), x.dtype) @ x


def _norm(x, p, name):
    share = np.full((WIDTH, 1), 1 / WIDTH, x.dtype)
    normal = x - x @ share
    scale = 1 / np.sqrt(_dots(normal, normal) / WIDTH + ADDED)
    normal *= scale
    out = normal * p[f"{name}.weight"]
    out += p[f"{name}.bias"]
    return out, normal, scale


def _norm_back(upstream, p, name, normal, scale, gradients):
    gradients[f"{name}.weight"], gradients[f"{name}.bias"] = _column_sums(upstream * normal), _column_sums(upstream)
    share = np.full((WIDTH, 1), 1 / WIDTH, upstream.dtype)
    h = upstream * p[f"{name}.weight"]
    out = h - h @ share
    out -= normal * (_dots(h, normal) / WIDTH)
    out *= scale
    return out


def _gelu(x):
    t = x * x
    t *= K
    t += 1
    t *= x
    t *= C
    np.tanh(t, out=t)
    out = t + 1
    out *= x
    out *= 0.5
    return out, t


def _gelu_back(upstream, x, t):
    slope = x * x
    slope *= 3 * K * C
    slope += C
    rest = t * t
    np.subtract(1, rest, out=rest)
    slope *= rest
    slope *= x
    slope += t
    slope += 1
    slope *= 0.5
    slope *= upstream
    return slope
