"""Memory: `python benchmarks/memory.py`

Of a training step of T the peak, above what stays from step to step; and of the forward passes of M and T without a
graph what a thousand of them leave behind.
"""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from decoder import t_by_hand, t_forward_meintorch, t_meintorch
from workloads import i_meintorch

PASSES = 1_000


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


def left_behind(make: Callable) -> int:
    """Bytes that are held after PASSES forward passes, and were not after the first few."""
    step = make()
    for _ in range(5):
        step()
    tracemalloc.start()
    for _ in range(PASSES):
        step()
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return left


def main() -> None:
    by_hand, ours = peak_of_a_step(t_by_hand), peak_of_a_step(t_meintorch)
    print("| engine | MB | times by hand |\n|---|---|---|")
    print(f"| by hand | {by_hand / 1e6:.1f} | 1.00 |")
    print(f"| meintorch | {ours / 1e6:.1f} | {ours / by_hand:.2f} |")
    print(f"\n| forward passes | kB left behind by {PASSES:,} |\n|---|---|")
    for name, make in (("M", partial(i_meintorch, "float32")), ("T", t_forward_meintorch)):
        print(f"| {name} | {left_behind(make) / 1e3:.1f} |")


if __name__ == "__main__":
    main()
