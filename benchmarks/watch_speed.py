"""How long it takes from a save to the result under --watch: `python benchmarks/watch_speed.py`

Chapter 02 on a copy of the reference. Every save changes tensor.py; the clock stops at the last line of the result.
"""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVES = 40
PAUSE = 0.3  # seconds between two saves


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        package = Path(name) / "meintorch"
        shutil.copytree(ROOT / "solutions" / "meintorch", package)
        path = package / "tensor.py"
        source = path.read_text(encoding="utf-8")
        watch = [sys.executable, "grader.py", "02", "--watch", "--package", str(package)]
        with subprocess.Popen(watch, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8") as grader:

            def result() -> float:
                while not re.search(r"(\d+) of \1 checks", grader.stdout.readline()):
                    pass
                return time.perf_counter()

            result()
            seconds = []
            for save in range(SAVES):
                time.sleep(PAUSE)
                path.write_text(source + "\n" * (save % 2), encoding="utf-8")
                start = time.perf_counter()
                seconds.append(result() - start)
            grader.kill()
    print("| from save to result, chapter 02 | seconds |\n|---|---|")
    print(f"| median of {SAVES} | {statistics.median(seconds):.3f} |")
    print(f"| fastest and slowest | {min(seconds):.3f} and {max(seconds):.3f} |")


if __name__ == "__main__":
    main()
