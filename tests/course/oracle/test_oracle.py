"""Every gradient of the reference equals PyTorch's to 1e-6 in float64.

Left out: points where a function has no derivative (relu at 0), where both conventions are right.
"""

import numpy as np
import pytest

from meintorch.value import Value
from tests.course.oracle.pytorch import SHAPES, arrays, compare, torch


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a - b,
        lambda a, b: 2.0 * a * b + a / 3.0 - (1.0 - b) * a,
        lambda a, b: -a * a * b + b,
    ],
    ids=["a + b", "a * b", "a - b", "mixed", "reused"],
)
def test_elementwise_operations_agree_on_every_way_to_broadcast(function, a, b):
    compare(function, *arrays(a, b))


@pytest.mark.parametrize(("n", "k", "m"), [(1, 1, 1), (2, 3, 4), (4, 1, 2), (3, 3, 3), (2, 0, 3), (0, 2, 3)])
def test_matrix_products_agree(n, k, m):
    compare(lambda a, b: a @ b, *arrays((n, k), (k, m)))
    compare(lambda a, b: (a @ b) * (a @ b) - a @ b, *arrays((n, k), (k, m)))


def test_arrays_that_do_not_lie_in_one_piece_agree():
    a, b = arrays((6, 4), (4, 6))
    compare(lambda x, y: x @ y, a[::2], b[:, ::3])
    compare(lambda x, y: x * y, a.T, b)
    compare(lambda x, y: x @ y, a[:, ::-1], b)


def test_random_programs_agree():
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def program(*inputs, seed=seed):
            choose, known = np.random.default_rng(seed), list(inputs)
            for _ in range(12):
                a, b = known[choose.integers(len(known))], known[choose.integers(len(known))]
                known.append([a + b, a * b * 0.5, a - b, a @ b * 0.3, -a, a / 2.0][choose.integers(6)])
            return sum(known[1:], known[0])

        compare(program, *[rng.uniform(-1.0, 1.0, (3, 3)) for _ in range(3)])


def test_scalar_programs_agree():
    for seed in range(500):
        rng = np.random.default_rng(seed)
        numbers = rng.uniform(0.2, 1.5, 4)
        ours = [Value(number) for number in numbers]
        theirs = [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in numbers]

        def program(inputs, seed=seed):
            choose, known = np.random.default_rng(seed), list(inputs)
            for _ in range(12):
                a, b = known[choose.integers(len(known))], known[choose.integers(len(known))]
                made = [
                    a + b,
                    a * b,
                    a - b,
                    a / (b * b + 1.0),
                    a.tanh(),
                    (a * 0.3).exp(),
                    (a * a + 0.1) ** 0.5,
                    a.relu(),
                ]
                known.append(made[choose.integers(8)] * 0.7)
            return sum(known[1:], known[0])

        out, wanted = program(ours), program(theirs)
        out.backward()
        wanted.backward()
        assert out.data == pytest.approx(wanted.item(), rel=1e-9)
        for one, other in zip(ours, theirs):
            assert one.grad == pytest.approx(other.grad.item(), rel=1e-6, abs=1e-6)
