"""How long a check takes beside bare pytest: `python benchmarks/check_speed.py`

Both run chapter 02 on the reference, in turn, each as a process of its own. Bare pytest has its plugins off.
Prints the medians, and the median of the ratios of neighbouring runs.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TURNS = 15
ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def seconds(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "solutions" / "meintorch", folder / "meintorch")
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("course", "__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        bare = [sys.executable, "-m", "pytest", "-q", "tests/test_02_autograd.py"], folder
        grader = [sys.executable, "grader.py", "02", "--solution"], ROOT
        for one in (bare, grader):
            seconds(*one)  # the first run reads from the disk
        pairs = [(seconds(*bare), seconds(*grader)) for _ in range(TURNS)]
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    theirs, ours = (statistics.median(times) for times in zip(*pairs))
    print("| command | median seconds | times bare pytest |\n|---|---|---|")
    print(f"| `python -m pytest -q`, plugins off | {theirs:.3f} | 1.00 |")
    print(f"| `python grader.py 02 --solution` | {ours:.3f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
