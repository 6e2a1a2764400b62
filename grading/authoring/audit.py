"""Are the tests good enough? Every machine-made mistake has to be caught: `python -m grading.authoring.audit 04`.

Without a number it takes all chapters; `--write` puts their figures into tests/course/proofs/mutants.md. Survivors are
either killed by a better test or, where a mutant is as right as the reference, listed in
tests/course/proofs/equivalent.md with the reason. Exit status 1 where a mutant survives that is not listed, or where
one is listed that is caught or gone.
"""

import argparse
import queue
import re
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grading.authoring.mutants import Mutant, mutants_of
from grading.course import regions
from grading.course.chapters import REFERENCE, TESTS, Chapter, Check, GraderError, chapters, find_chapter
from grading.course.files import read_source
from grading.runner import launch, stage, warm
from grading.verdict.judge import temporary_folder

EQUIVALENT = TESTS / "course" / "proofs" / "equivalent.md"
FIGURES = TESTS / "course" / "proofs" / "mutants.md"
TIMEOUT = 15.0  # seconds a test may take: a mutant that hangs is caught
WORKERS = 2

TASK, CHAPTER, LATER, GOAL, SURVIVED = "its task", "its chapter", "a chapter that goes back to it", "--goal", "nothing"
MILESTONES = (TASK, CHAPTER, LATER)

Counts = tuple[int, int, int, int]  # mutants, equivalent ones, caught by the milestone tests, with --goal


@dataclass(frozen=True)
class Verdict:
    """What has caught a mutant: the tests of its task, its chapter, a later one, the harder suites; or nothing."""

    mutant: Mutant
    caught_by: str


def audit(chapter: Chapter, mutants: Sequence[Mutant]) -> list[Verdict]:
    """Grade mutants of a chapter, two at a time."""
    stages: queue.Queue[Path] = queue.Queue()
    with temporary_folder() as folder:
        for number in range(WORKERS):
            place = folder / str(number)
            place.mkdir()
            problem = stage.build(place, REFERENCE, chapter)
            if problem is not None:
                raise GraderError(f"the reference cannot be graded: {problem.reason}")
            stages.put(place)

        def verdict(mutant: Mutant) -> Verdict:
            place = stages.get()
            try:
                return Verdict(mutant, _caught_by(place, chapter, mutant))
            finally:
                shutil.copyfile(REFERENCE / mutant.part.file, place / "meintorch" / mutant.part.file)
                stages.put(place)

        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(verdict, mutants))


def _caught_by(place: Path, chapter: Chapter, mutant: Mutant) -> str:
    source = regions.fill(read_source(REFERENCE / mutant.part.file), mutant.part.region, mutant.body)
    (place / "meintorch" / mutant.part.file).write_text(source, encoding="utf-8")
    plain = [check for check in chapter.checks if not check.goal]
    if not _passes(place, chapter, [check for check in plain if check.task == mutant.task]):
        return TASK
    if not _passes(place, chapter, [check for check in plain if check.task != mutant.task]):
        return CHAPTER
    if not _passes_later(mutant, source, goal=False):
        return LATER
    if not _passes(place, chapter, [check for check in chapter.checks if check.goal]):
        return GOAL
    return SURVIVED if _passes_later(mutant, source, goal=True) else GOAL


def _passes_later(mutant: Mutant, source: str, goal: bool) -> bool:
    """Where a later chapter goes back to the task, its reference is that chapter's as well."""
    for later in chapters():
        checks = [check for check in later.checks if check.revisits == mutant.task and check.goal == goal]
        if checks:
            with temporary_folder() as folder:
                stage.build(folder, REFERENCE, later)
                (folder / "meintorch" / mutant.part.file).write_text(source, encoding="utf-8")
                if not _passes(folder, later, checks):
                    return False
    return True


def _passes(place: Path, chapter: Chapter, checks: list[Check]) -> bool:
    def give_up(incident: launch.Result, results: dict[str, launch.Result]) -> list[launch.Result]:
        return [incident, *[launch.Result(check.name, "error") for check in checks]]

    run = launch.run(place, chapter, checks, TIMEOUT, give_up)
    return run.import_problem is None and all(result.status == "passed" for result in run.results.values())


def equivalents() -> set[tuple[str, str, str]]:
    """Task, lines and new lines of every mutant that is listed as being as right as the reference."""
    found = set()
    for section in re.split(r"^## ", read_source(EQUIVALENT), flags=re.MULTILINE)[1:]:
        task = section.split()[0]
        for block in re.findall(r"^```diff\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
            old, new = (
                "\n".join(line[2:] for line in block.splitlines() if line.startswith(sign)) for sign in ("-", "+")
            )
            found.add((task, old, new))
    return found


def key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.task, mutant.old, mutant.new


@dataclass(frozen=True)
class Figures:
    """What came out for a chapter, or for all of them."""

    name: str
    verdicts: tuple[Verdict, ...]
    listed: frozenset[tuple[str, str, str]]

    @property
    def equivalent(self) -> list[Verdict]:
        return [one for one in self.verdicts if key(one.mutant) in self.listed]

    @property
    def real(self) -> list[Verdict]:
        return [one for one in self.verdicts if key(one.mutant) not in self.listed]

    @property
    def survivors(self) -> list[Mutant]:
        return [one.mutant for one in self.real if one.caught_by == SURVIVED]

    @property
    def stale(self) -> list[Mutant]:
        """Listed as equivalent, and caught."""
        return [one.mutant for one in self.equivalent if one.caught_by != SURVIVED]

    @property
    def counts(self) -> Counts:
        plain = sum(one.caught_by in MILESTONES for one in self.real)
        caught = sum(one.caught_by != SURVIVED for one in self.real)
        return len(self.verdicts), len(self.equivalent), plain, caught

    def row(self) -> str:
        return row_of(self.name, self.counts)


def row_of(name: str, counts: Counts) -> str:
    mutants, equivalent, plain, caught = counts
    share = [f"{100 * count / max(mutants - equivalent, 1):.1f} %" for count in (plain, caught)]
    return f"| {name} | {mutants} | {equivalent} | {share[0]} | {share[1]} |"


def read_figures() -> dict[str, Counts]:
    """The rows of the table as it stands, by chapter; the counts come back from the shares."""
    found = {}
    text = read_source(FIGURES) if FIGURES.is_file() else ""
    for name, *cells in re.findall(r"^\| (\d\d) \| (\d+) \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE):
        mutants, equivalent = int(cells[0]), int(cells[1])
        plain, caught = (round(float(share) / 100 * (mutants - equivalent)) for share in cells[2:])
        found[name] = (mutants, equivalent, plain, caught)
    return found


def write_figures(found: Sequence[Figures]) -> None:
    """Put the figures of some chapters into the table. The rows of the others stay, those of no chapter go."""
    counts = {**read_figures(), **{figures.name: figures.counts for figures in found}}
    counts = {chapter.number: counts[chapter.number] for chapter in chapters() if chapter.number in counts}
    mutants, equivalent, plain, caught = (sum(row[place] for row in counts.values()) for place in range(4))
    counts["all"] = (mutants, equivalent, plain, caught)
    rows = "\n".join(row_of(name, row) for name, row in counts.items())
    FIGURES.write_text(INTRODUCTION + f"{HEADING}\n{rows}\n", encoding="utf-8")


HEADING = """| chapter | mutants | equivalent | caught by the milestone tests | with --goal |
|---|---|---|---|---|"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading.authoring.audit", description=__doc__)
    parser.add_argument("chapter", nargs="*")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {FIGURES.name}")
    options = parser.parse_args(arguments)
    wanted = [find_chapter(name) for name in options.chapter] or list(chapters())
    launch.start_with(warm.start)  # thousands of runs: none of them waits for NumPy
    listed = frozenset(equivalents())
    found, complaints = [], []
    for chapter in wanted:
        mutants = [mutant for task in chapter.tasks for mutant in mutants_of(task)]
        figures = Figures(chapter.number, tuple(audit(chapter, mutants)), listed)
        found.append(figures)
        print(figures.row(), flush=True)
        complaints += [f"not caught: {mutant}" for mutant in figures.survivors]
        complaints += [f"listed as equivalent, but caught: {mutant}" for mutant in figures.stale]
        complaints += [
            f"only --goal catches: {one.mutant}" for one in figures.real if one.caught_by == GOAL and not options.write
        ]
    total = Figures("all", tuple(one for figures in found for one in figures.verdicts), listed)
    gone = {one for one in listed if one[0][:2] in {c.number for c in wanted}} - {key(v.mutant) for v in total.verdicts}
    complaints += [f"listed as equivalent, but there is no such mutant: {one}" for one in sorted(gone)]
    print(total.row())
    print("\n".join(complaints))
    if options.write:
        write_figures(found)
    return int(bool(total.survivors or total.stale or gone))


INTRODUCTION = """# How many machine-made mistakes are caught

Made by `python -m grading.authoring.audit --write`. A mutant is the reference with one thing changed inside of a task:
an operator, a constant, an axis, a condition, a line left out and so on (`grading/authoring/mutants.py`). Equivalent
are those that are as right as the reference, each listed with its reason in `equivalent.md`; the shares are of all
others.

"""


if __name__ == "__main__":
    sys.exit(main())
