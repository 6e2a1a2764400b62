"""The course as it lies in the repository: chapters, tasks and checks, found by the names of the files."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from grading import texts
from grading.files import read_source
from grading.regions import Region, find_regions

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
PACKAGE = ROOT / "meintorch"
REFERENCE = ROOT / "solutions" / "meintorch"
TESTS = ROOT / "tests"


class GraderError(Exception):
    """The grader itself could not do its work. The text says what to do about it."""


@dataclass(frozen=True)
class Part:
    """A region of a task and the file of the package it lies in."""

    file: str  # "tensor.py"
    region: Region


@dataclass(frozen=True)
class Task:
    id: str  # "02.2"
    title: str  # "Multiply"
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Check:
    """A test of a chapter."""

    name: str
    task: str
    goal: bool  # only with --goal


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
        unknown = {check.task for check in checks} - {task.id for task in self.tasks}
        if unknown:
            raise ValueError(f"{self.tests.name} has tests of unknown tasks: {sorted(unknown)}")
        return checks

    @property
    def text(self) -> Path:
        return CHAPTERS / f"{self.slug}.md"

    @property
    def tests(self) -> Path:
        return TESTS / f"test_{self.slug}.py"

    @property
    def files(self) -> list[str]:
        """The files of the package that hold the chapter's tasks."""
        return list(dict.fromkeys(part.file for task in self.tasks for part in task.parts))


@lru_cache(maxsize=1)
def chapters() -> tuple[Chapter, ...]:
    """Every chapter, in order. Raises ValueError where text, tests and reference do not fit each other."""
    parts: dict[str, list[Part]] = {}
    for path in sorted(REFERENCE.rglob("*.py")):
        for region in find_regions(read_source(path)):
            parts.setdefault(region.task, []).append(Part(path.relative_to(REFERENCE).as_posix(), region))
    found = []
    for path in sorted(CHAPTERS.glob("[0-9][0-9]_*.md")):
        text = read_source(path)
        number = path.stem[:2]
        titles = texts.task_titles(text)
        if list(titles) != sorted((task for task in parts if task.startswith(number)), key=_order):
            raise ValueError(f"{path.name} has the tasks {list(titles)}, the reference has others")
        tasks = tuple(Task(task, name, tuple(parts[task])) for task, name in titles.items())
        found.append(Chapter(number, path.stem, texts.title(text), tasks))
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


def _order(task: str) -> tuple[int, ...]:
    return tuple(int(part) for part in task.split("."))


def _checks(path: Path) -> list[Check]:
    """The tests of a file, read and not run: what has to be reported is known before any learner's code runs."""
    checks = []
    for node in ast.parse(read_source(path)).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = [ast.unparse(decorator) for decorator in node.decorator_list]
            tasks = [re.fullmatch(r"pytest\.mark\.task\('(\d\d\.\d+)'\)", mark) for mark in marks]
            task = next((match.group(1) for match in tasks if match), None)
            if task is None:
                raise ValueError(f"{path.name}: {node.name} belongs to no task")
            checks.append(Check(node.name, task, goal="pytest.mark.goal" in marks))
    return checks
