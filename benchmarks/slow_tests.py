"""How long the checks of every chapter take, and the slowest of them: `python benchmarks/slow_tests.py`

Each runs on the reference. The time of a chapter is that of its checks alone, without starting Python. The bar is five
seconds on two cores. (The course's own slowest tests: `python -m pytest tests/course --durations 5`.)
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from grading.course.chapters import REFERENCE, chapters
from grading.verdict.judge import grade

SHOWN = 5


def main() -> None:
    slowest = []
    print("| chapter | checks, seconds | with `--goal` |\n|---|---|---|")
    for chapter in chapters():
        goals = {check.name for check in chapter.checks if check.goal}
        report = grade(chapter, REFERENCE, goal=True, timeout=60.0)
        if not report.passed:
            raise SystemExit(f"chapter {chapter.number} does not pass on the reference")
        results = [result for task in report.tasks for result in task.results]
        plain = [result for result in results if result.name not in goals]
        times = [sum(result.duration for result in some) for some in (plain, results)]
        print(f"| {chapter.number} | {times[0]:.2f} | {times[1]:.2f} |", flush=True)
        slowest += [(result.duration, chapter.number, result.name) for result in plain]
    print("\n| chapter | the slowest checks | seconds |\n|---|---|---|")
    for duration, number, name in sorted(slowest, reverse=True)[:SHOWN]:
        print(f"| {number} | `{name}` | {duration:.2f} |")


if __name__ == "__main__":
    main()
