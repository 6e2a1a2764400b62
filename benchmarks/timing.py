"""Times several engines on one workload, side by side: A B C A B C ...

Each engine has a process of its own, so that nobody pays for another's garbage, and BLAS has one thread. A turn runs a
step a few times; the ratios of the turns of one round are what is compared.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TURN = 0.08  # seconds that a turn should take
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
LARGE = (32 << 20) - (1 << 16)  # bytes: the largest block for which glibc raises its thresholds


@dataclass
class Engine:
    name: str
    seconds: list[float] = field(default_factory=list)  # a step's, one number a round
    loss: float = 0.0  # after a few steps: do the engines compute the same?
    problem: str = ""  # why it cannot do this workload

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio_to(self, other: "Engine") -> float:
        """The median of the ratios, round by round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds))


def compare(workload: str, names: list[str], seconds: float, script: str, kept_memory: bool = False) -> list[Engine]:
    """Time a workload in each of the named engines.

    seconds      how long all of it may take
    script       the file that calls `serve`
    kept_memory  let glibc keep freed memory: see `serve`
    """
    engines, workers = [Engine(name) for name in names], []
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "KEPT_MEMORY": "1" if kept_memory else ""}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # settings for other programs that make NumPy slow
        environment.pop(name, None)
    for engine in engines:
        command = [sys.executable, script, "--serve", workload, engine.name]
        workers.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment, text=True)
        )  # fmt: skip
    steps = {}
    for engine, worker in zip(engines, workers):
        answer = _ask(worker, {"steps": 3})
        if answer is None:
            engine.problem = (worker.stderr.read().strip().splitlines() or ["it ended"])[-1]
            continue
        engine.loss = answer["loss"]
        steps[engine.name] = max(1, int(TURN / _ask(worker, {"steps": 2})["seconds"]))
    end = time.perf_counter() + seconds
    able = [(engine, worker) for engine, worker in zip(engines, workers) if not engine.problem]
    while able and (time.perf_counter() < end or len(able[0][0].seconds) < 5):
        for engine, worker in able:
            engine.seconds.append(_ask(worker, {"steps": steps[engine.name]})["seconds"])
    for worker in workers:
        worker.kill()
        worker.wait()
    return engines


def _ask(worker: subprocess.Popen, question: dict) -> dict | None:
    try:
        worker.stdin.write(json.dumps(question) + "\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())
    except (BrokenPipeError, ValueError):
        return None


def serve(make: Callable) -> None:
    """The worker's side: make a step, a function that returns the loss, and run it as often as it is asked to."""
    if os.environ.get("KEPT_MEMORY"):
        # glibc gives freed memory back to the system at once, and asks for it again at the next step, page by page.
        # It stops doing so for blocks up to the size of the largest that was ever freed.
        bytearray(LARGE)
    step = make()
    for line in sys.stdin:
        steps = json.loads(line)["steps"]
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        print(json.dumps({"seconds": (time.perf_counter() - start) / steps, "loss": float(loss)}), flush=True)
