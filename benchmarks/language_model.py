"""Trains chapter 12's Transformer on Python's manual for about five minutes, and lets it write as it learns.

python benchmarks/language_model.py              your own package
python benchmarks/language_model.py --solution   the reference
python benchmarks/language_model.py --torch      afterwards the same model in PyTorch, with the same batches

At the end it prints, as a Markdown table, how many bits each character of the held-out text costs the model, and how
many it costs a model that only counts. The trained model is saved in language_model.npz.
"""

import argparse
import math
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import islice
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # these matrices are too small to be shared among cores

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "solutions" if "--solution" in sys.argv else REPOSITORY))

from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: E402
from timing import LARGE  # noqa: E402

import meintorch  # noqa: E402
from meintorch.data import load_text  # noqa: E402

LENGTH, WIDTH, HEADS, BLOCKS, DROPOUT = 64, 96, 4, 3, 0.1
BATCH, STEPS, WARM_UP, PEAK, FLOOR = 8, 8_500, 100, 3e-3, 3e-5
BETAS, DECAY = (0.9, 0.99), 0.1
ORDER = 5  # how many characters the counting model looks back
SAMPLES = 8  # how often it writes something while it learns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solution", action="store_true", help="train the reference")
    parser.add_argument("--torch", action="store_true", help="train the same model in PyTorch as well")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"{STEPS} unless said otherwise")
    arguments = parser.parse_args()
    bytearray(LARGE)  # from now on glibc keeps the memory that a step frees for the next one: see timing.serve
    learn, held_out, characters = load_text()
    model = meintorch.Transformer(
        len(characters), LENGTH, WIDTH, HEADS, BLOCKS, DROPOUT, dtype=np.float32, rng=np.random.default_rng(0)
    )
    start = model.state_dict()
    n = sum(parameter.size for parameter in model.parameters())
    print(f"{len(learn):,} characters to learn from, {len(held_out):,} held out; a model of {n:,} numbers")

    optimizer = meintorch.AdamW(model.parameters(), lr=PEAK, betas=BETAS, weight_decay=DECAY)

    def step(inputs, following):
        return meintorch.train_step(model, meintorch.cross_entropy, optimizer, inputs, following)

    ours = run(learn, arguments.steps, step, optimizer, lambda: sample(model, characters))
    bits = meintorch.bits_per_character(model, held_out)
    meintorch.save_checkpoint(REPOSITORY / "language_model.npz", model, bits=bits, steps=arguments.steps)
    rows = [
        (f"counts of {ORDER} characters, with back-off", None, counted_bits(learn, held_out, ORDER, len(characters))),
        ("meintorch, trained", ours, bits),
    ]
    if arguments.torch:
        rows.append(("PyTorch, trained", *torch_run(start, learn, held_out, arguments.steps)))
    print("\n| model | steps | minutes | bits a character |\n|---|---|---|---|")
    for name, seconds, bits in rows:
        took = " | " if seconds is None else f"{arguments.steps:,} | {seconds / 60:.1f}"
        print(f"| {name} | {took} | {bits:.3f} |")


def run(ids: np.ndarray, steps: int, step: Callable, optimizer, look: Callable[[], str] | None = None) -> float:
    """Take all steps, with a progress bar and now and then what `look` has to show. Returns the seconds of the steps.

    step       takes inputs and answers, learns from them and returns the loss
    optimizer  has a learning rate `lr`, which is set before every step
    """
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[bits]}"), TimeRemainingColumn()
    seconds, losses = 0.0, []
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("training", total=steps, bits="")
        for taken, (inputs, answers) in enumerate(islice(meintorch.batches(ids, LENGTH, BATCH), steps), start=1):
            optimizer.lr = meintorch.cosine_schedule(taken - 1, steps, PEAK, WARM_UP, FLOOR)
            begin = time.perf_counter()
            losses.append(step(inputs, answers))
            seconds += time.perf_counter() - begin
            recent = losses[-100:]
            progress.update(bar, advance=1, bits=f"{sum(recent) / len(recent) / math.log(2):.2f} bits")
            if look and (taken % max(steps // SAMPLES, 1) == 0):
                console.print(f"\nafter {taken:,} steps, {seconds:.0f} s:", style="bold")
                console.print(look(), markup=False, highlight=False)
    return seconds


def sample(model: meintorch.Transformer, characters: str, beginning: str = "The ", n: int = 160) -> str:
    ids = meintorch.encode(beginning, characters)
    written = meintorch.generate(model, ids, n, temperature=0.7, top_k=10, rng=0)
    return beginning + meintorch.decode(written, characters)


def counted_bits(learn: np.ndarray, held_out: np.ndarray, order: int, n: int) -> float:
    """The bits a character costs a model that counts what has followed the last characters, up to `order` of them.

    It mixes all orders: the more different characters have followed, the more weight has the next shorter one. Witten
    and Bell 1991, https://doi.org/10.1109/18.87000 (method C, interpolated)
    """
    counts = [defaultdict(Counter) for _ in range(order + 1)]
    learn, held_out = learn.tolist(), held_out.tolist()
    for place, one in enumerate(learn):
        for back in range(min(order, place) + 1):
            counts[back][tuple(learn[place - back : place])][one] += 1
    bits = 0.0
    for place, one in enumerate(held_out):
        probability = 1.0 / n
        for back in range(min(order, place) + 1):
            followed = counts[back].get(tuple(held_out[place - back : place]))
            if followed is None:
                break
            probability = (followed[one] + len(followed) * probability) / (followed.total() + len(followed))
        bits -= math.log2(probability)
    return bits / len(held_out)


def torch_run(start: dict[str, np.ndarray], learn: np.ndarray, held_out: np.ndarray, steps: int) -> tuple[float, float]:
    """The same model from the same weights, on the same batches, in PyTorch. Returns its seconds and bits."""
    import torch
    from torch.nn import functional as F
    from torch_transformer import scores

    torch.manual_seed(0)
    p = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in start.items()}
    adam = torch.optim.AdamW(p.values(), lr=PEAK, betas=BETAS, weight_decay=DECAY)

    class Rate:
        lr = PEAK

    def step(inputs, answers):
        for group in adam.param_groups:
            group["lr"] = Rate.lr
        found = scores(p, torch.from_numpy(inputs), HEADS, DROPOUT)
        loss = F.cross_entropy(found.flatten(0, 1), torch.from_numpy(answers).flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.item()

    seconds = run(learn, steps, step, Rate)
    model = meintorch.Transformer(start["embedding.weight"].shape[0], LENGTH, WIDTH, HEADS, BLOCKS, dtype=np.float32)
    model.load_state_dict({name: parameter.detach().numpy() for name, parameter in p.items()})
    return seconds, meintorch.bits_per_character(model, held_out)


if __name__ == "__main__":
    try:
        main()
    except NotImplementedError as todo:
        sys.exit(f"{todo} is still to do in meintorch/. With --solution the reference is trained instead.")
