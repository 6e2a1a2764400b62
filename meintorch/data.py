"""Data sets to learn from. Given: there is nothing to fill in here."""

import numpy as np


def make_moons(n: int = 100, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved crescents, the classic small problem that no straight line solves.

    Returns points of shape (n, 2), float64, and their labels of shape (n,), integers: 1 for the first n // 2 rows (the
    upper crescent) and -1 for the rest. `noise` is the standard deviation of the jitter on each coordinate.
    The same arguments give the same data. After scikit-learn's `make_moons`.
    """
    rng = np.random.default_rng(seed)
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
