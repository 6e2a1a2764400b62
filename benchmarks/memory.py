"""The memory of a training step of T: the peak during a step, above what stays from step to step.

python benchmarks/memory.py
"""

import tracemalloc
from collections.abc import Callable

import workloads  # noqa: F401  puts the reference on the path
from decoder import t_by_hand, t_meintorch


def peak_of_a_step(make: Callable) -> int:
    """Bytes, as NumPy and Python report them."""
    tracemalloc.start()
    step = make()
    for _ in range(2):
        step()  # what is made once only is not counted
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def main() -> None:
    by_hand, ours = peak_of_a_step(t_by_hand), peak_of_a_step(t_meintorch)
    print("| engine | MB | times by hand |\n|---|---|---|")
    print(f"| by hand | {by_hand / 1e6:.1f} | 1.00 |")
    print(f"| meintorch | {ours / 1e6:.1f} | {ours / by_hand:.2f} |")


if __name__ == "__main__":
    main()
