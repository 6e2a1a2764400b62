"""Are the tests good enough? Every machine-made mistake has to be caught: `python -m grading.authoring.audit 04`.

Without a number it takes all chapters; `--write` puts their figures into tests/course/proofs/mutants.md. Survivors are
either killed by a better test or, where a mutant is as right as the reference, listed in
tests/course/proofs/equivalent.md with the reason. Exit status 1 where a mutant survives that is not listed, or where
one is listed that is caught or gone.
"""

import argparse
import queue
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grading.authoring.mutants import Mutant, mutants_of
from grading.course.chapters import REFERENCE, TESTS, Chapter, Check, chapters, find_chapter, reference
from grading.course.compose import fill
from grading.course.errors import GraderError
from grading.course.files import read_source
from grading.runner import launch, warm
from grading.runner.gradable import NotGradable
from grading.runner.stage import Stage, build, temporary_folder

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
    stages: queue.Queue[Stage] = queue.Queue()
    with temporary_folder() as folder:
        for number in range(WORKERS):
            stages.put(_reference_on(folder / str(number), chapter))

        def verdict(mutant: Mutant) -> Verdict:
            stage = stages.get()
            try:
                return Verdict(mutant, _caught_by(stage, chapter, mutant))
            finally:
                stages.put(stage)

        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(verdict, mutants))


def _reference_on(folder: Path, chapter: Chapter) -> Stage:
    made = build(folder, REFERENCE, chapter)
    if isinstance(made, NotGradable):
        raise GraderError(f"the reference cannot be graded: {made.reason}")
    return made


def _caught_by(stage: Stage, chapter: Chapter, mutant: Mutant) -> str:
    file = mutant.part.file
    mutated = {file: fill(reference()[file], mutant.part.region, mutant.body)}
    stage.lay_out(stage.package.with_sources({**_sources(chapter), **mutated}))
    plain = [check for check in chapter.checks if not check.goal]
    if not _passes(stage, [check for check in plain if check.task == mutant.task]):
        return TASK
    if not _passes(stage, [check for check in plain if check.task != mutant.task]):
        return CHAPTER
    if not _passes_later(mutant, mutated, goal=False):
        return LATER
    if not _passes(stage, [check for check in chapter.checks if check.goal]):
        return GOAL
    return SURVIVED if _passes_later(mutant, mutated, goal=True) else GOAL


def _sources(chapter: Chapter) -> dict[str, str]:
    """The files that a mutant of a chapter may have changed, as the reference has them."""
    files = {part.file for task in chapter.tasks for part in task.parts}
    return {name: reference()[name] for name in files}


def _passes_later(mutant: Mutant, mutated: dict[str, str], goal: bool) -> bool:
    """Where a later chapter goes back to the task, its reference is that chapter's as well."""
    for later in chapters():
        checks = [check for check in later.checks if check.revisits == mutant.task and check.goal == goal]
        if checks:
            with temporary_folder() as folder:
                stage = _reference_on(folder, later)
                stage.lay_out(stage.package.with_sources(mutated))
                if not _passes(stage, checks):
                    return False
    return True


def _passes(stage: Stage, checks: list[Check]) -> bool:
    if not checks:
        return True
    outcomes = launch.run(stage, checks, TIMEOUT, warm.start).outcomes  # no run waits for NumPy: there are thousands
    return all(check.name in outcomes and outcomes[check.name].status == "passed" for check in checks)


def equivalents() -> set[tuple[str, str, str]]:
    """Task, lines and new lines of every mutant that is listed as being as right as the reference."""
    listed = set()
    for section in re.split(r"^## ", read_source(EQUIVALENT), flags=re.MULTILINE)[1:]:
        task = section.split()[0]
        for block in re.findall(r"^```diff\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
            old, new = (
                "\n".join(line[2:] for line in block.splitlines() if line.startswith(sign)) for sign in ("-", "+")
            )
            listed.add((task, old, new))
    return listed


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
        return [verdict for verdict in self.verdicts if key(verdict.mutant) in self.listed]

    @property
    def real(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if key(verdict.mutant) not in self.listed]

    @property
    def survivors(self) -> list[Mutant]:
        return [verdict.mutant for verdict in self.real if verdict.caught_by == SURVIVED]

    @property
    def stale(self) -> list[Mutant]:
        """Listed as equivalent, and caught."""
        return [verdict.mutant for verdict in self.equivalent if verdict.caught_by != SURVIVED]

    @property
    def counts(self) -> Counts:
        plain = sum(verdict.caught_by in MILESTONES for verdict in self.real)
        caught = sum(verdict.caught_by != SURVIVED for verdict in self.real)
        return len(self.verdicts), len(self.equivalent), plain, caught

    def row(self) -> str:
        return row_of(self.name, self.counts)


def row_of(name: str, counts: Counts) -> str:
    mutants, equivalent, plain, caught = counts
    share = [f"{100 * count / max(mutants - equivalent, 1):.1f} %" for count in (plain, caught)]
    return f"| {name} | {mutants} | {equivalent} | {share[0]} | {share[1]} |"


def read_figures() -> dict[str, Counts]:
    """The rows of the table as it stands, by chapter; the counts come back from the shares."""
    rows = {}
    text = read_source(FIGURES) if FIGURES.is_file() else ""
    for name, *cells in re.findall(r"^\| (\d\d) \| (\d+) \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE):
        mutants, equivalent = int(cells[0]), int(cells[1])
        plain, caught = (round(float(share) / 100 * (mutants - equivalent)) for share in cells[2:])
        rows[name] = (mutants, equivalent, plain, caught)
    return rows


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
    listed = frozenset(equivalents())
    done, complaints = [], []
    for chapter in wanted:
        mutants = [mutant for task in chapter.tasks for mutant in mutants_of(task)]
        figures = Figures(chapter.number, tuple(audit(chapter, mutants)), listed)
        done.append(figures)
        print(figures.row(), flush=True)
        complaints += [f"not caught: {mutant}" for mutant in figures.survivors]
        complaints += [f"listed as equivalent, but caught: {mutant}" for mutant in figures.stale]
        complaints += [
            f"only --goal catches: {verdict.mutant}"
            for verdict in figures.real
            if verdict.caught_by == GOAL and not options.write
        ]
    total = Figures("all", tuple(verdict for figures in done for verdict in figures.verdicts), listed)
    numbers, made = {chapter.number for chapter in wanted}, {key(verdict.mutant) for verdict in total.verdicts}
    gone = {mutant for mutant in listed if mutant[0][:2] in numbers} - made
    complaints += [f"listed as equivalent, but there is no such mutant: {mutant}" for mutant in sorted(gone)]
    print(total.row())
    print("\n".join(complaints))
    if options.write:
        write_figures(done)
    return int(bool(total.survivors or total.stale or gone))


INTRODUCTION = """# How many machine-made mistakes are caught

Made by `python -m grading.authoring.audit --write`. A mutant is the reference with one thing changed inside of a task:
an operator, a constant, an axis, a condition, a line left out and so on (`grading/authoring/mutants.py`). Equivalent
are those that are as right as the reference, each listed with its reason in `equivalent.md`; the shares are of all
others.

"""


if __name__ == "__main__":
    sys.exit(main())
