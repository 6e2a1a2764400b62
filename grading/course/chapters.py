"""The course as it lies in the repository: chapters, tasks and checks, found by the names of the files."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from grading.course import texts
from grading.course.files import read_source, read_sources
from grading.course.regions import Region, find_regions

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
PACKAGE = ROOT / "meintorch"
REFERENCE = ROOT / "solutions" / "meintorch"
TESTS = ROOT / "tests"
MARK = re.compile(r"pytest\.mark\.task\('(\d\d\.\d+)'(?:, revisits='(\d\d\.\d+)')?\)")


class GraderError(Exception):
    """The grader itself could not do its work. The text says what to do about it."""


@dataclass(frozen=True)
class Part:
    """A region of a task and the file of the package it lies in."""

    file: str  # "tensor.py"
    region: Region


@dataclass(frozen=True)
class Task:
    """A task of a chapter. One that goes back to an earlier chapter's task has that one's places, and no stub."""

    id: str  # "02.2"
    title: str  # "Multiply"
    parts: tuple[Part, ...]
    revisits: str | None = None  # of a task with the title "Back to 02.3: ...": "02.3"

    @property
    def files(self) -> list[str]:
        """The files of the package that it is answered in."""
        return list(dict.fromkeys(part.file for part in self.parts))


@dataclass(frozen=True)
class Check:
    """A test of a chapter."""

    name: str
    task: str
    goal: bool  # only with --goal
    revisits: str | None = None  # as its task says


@dataclass(frozen=True)
class Chapter:
    number: str  # "02"
    slug: str  # "02_autograd"
    title: str
    tasks: tuple[Task, ...]

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The tests of the chapter. Raises GraderError if the file is gone, ValueError if a task is unknown."""
        if not self.tests.is_file():
            name = f"tests/{self.tests.name}"
            raise GraderError(f"{name} is missing, so nothing can be checked. To have it again: git checkout {name}")
        checks = tuple(_checks(self.tests))
        unknown = {(check.task, check.revisits) for check in checks} - {(task.id, task.revisits) for task in self.tasks}
        if unknown:
            names = sorted(task + (f" (back to {revisits})" if revisits else "") for task, revisits in unknown)
            raise ValueError(f"{self.tests.name} has tests of unknown tasks: {names}")
        return checks

    @property
    def text(self) -> Path:
        return CHAPTERS / f"{self.slug}.md"

    @property
    def tests(self) -> Path:
        return TESTS / f"test_{self.slug}.py"

    @cached_property
    def files(self) -> list[str]:
        """The files of the package that hold the chapter's own tasks."""
        return list(dict.fromkeys(part.file for task in self.tasks if not task.revisits for part in task.parts))


@lru_cache(maxsize=1)
def reference() -> Mapping[str, str]:
    """The sources of the reference by their path within the package, "tensor.py"."""
    return read_sources(REFERENCE)


@lru_cache(maxsize=1)
def chapters() -> tuple[Chapter, ...]:
    """Every chapter, in order. Raises ValueError where text, tests and reference do not fit each other."""
    parts: dict[str, list[Part]] = {}
    for file, source in reference().items():
        for region in find_regions(source):
            parts.setdefault(region.task, []).append(Part(file, region))
    found = []
    for file, text in read_sources(CHAPTERS, "[0-9][0-9]_*.md").items():
        outline = texts.outline(text)
        number, revisits = file[:2], outline.revisits
        own = [task for task in outline.tasks if task not in revisits]
        if own != sorted((task for task in parts if task.startswith(number)), key=order):
            raise ValueError(f"{file} has the tasks {own}, the reference has others")
        if unknown := set(revisits.values()) - set(parts):
            raise ValueError(f"{file} goes back to tasks that the reference does not have: {sorted(unknown)}")
        tasks = tuple(
            Task(task, title, tuple(parts[revisits.get(task, task)]), revisits.get(task))
            for task, title in outline.tasks.items()
        )
        found.append(Chapter(number, file.removesuffix(".md"), outline.title, tasks))
    return tuple(found)


def find_chapter(number: str) -> Chapter:
    """Return chapter "02" (or "2"). Raises LookupError with the list of those there are."""
    for chapter in chapters():
        if chapter.number == number.zfill(2):
            return chapter
    raise LookupError(f"There is no chapter {number}. There are: {', '.join(c.number for c in chapters())}.")


def find_task(name: str) -> tuple[Chapter, Task]:
    """Return task "02.2". Raises LookupError with the list of those there are."""
    number, _, _ = name.partition(".")
    chapter = find_chapter(number)
    for task in chapter.tasks:
        if task.id == f"{chapter.number}.{name.partition('.')[2]}":
            return chapter, task
    ids = ", ".join(task.id for task in chapter.tasks)
    raise LookupError(f"There is no task {name}. Chapter {chapter.number} has: {ids}.")


def find(name: str) -> tuple[Chapter, Task | None]:
    """Return what "02" or "02.2" speaks of: a chapter, and the task if it is one. Raises LookupError."""
    return find_task(name) if "." in name else (find_chapter(name), None)


def order(task: str) -> tuple[int, ...]:
    """Sorts tasks as they come in the course."""
    return tuple(int(part) for part in task.split("."))


def _checks(path: Path) -> list[Check]:
    """The tests of a file, read and not run: what has to be reported is known before any learner's code runs."""
    checks = []
    for node in ast.parse(read_source(path)).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [ast.unparse(decorator) for decorator in node.decorator_list]
            task = next(filter(None, map(MARK.fullmatch, marks)), None)
            if task is None:
                raise ValueError(f"{path.name}: {node.name} belongs to no task")
            checks.append(Check(node.name, task[1], goal="pytest.mark.goal" in marks, revisits=task[2]))
    return checks
