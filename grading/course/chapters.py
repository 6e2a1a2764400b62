"""The course as it lies in the repository: chapters, tasks and checks, found by the names of the files."""

import ast
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from grading.course import texts
from grading.course.errors import CourseError, GraderError, reading
from grading.course.files import read_source
from grading.course.regions import Region, find_regions

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
PACKAGE = ROOT / "meintorch"
REFERENCE = ROOT / "solutions" / "meintorch"
TESTS = ROOT / "tests"
HOW_MARKED = "a comment `# {}: ...` heads the lines that answer it, in a function of solutions/meintorch/."
MARK = re.compile(r"pytest\.mark\.task\('(\d\d\.\d+)'(?:, revisits='(\d\d\.\d+)')?\)")


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


@dataclass(frozen=True)
class Check:
    """A test of a chapter."""

    name: str
    task: str
    goal: bool  # only with --goal
    revisits: str | None = None  # as its task says
    line: int = 0  # of its `def`


@dataclass(frozen=True)
class Chapter:
    number: str  # "02"
    slug: str  # "02_autograd"
    title: str
    tasks: tuple[Task, ...]

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The tests of the chapter. Raises GraderError if the file is gone, CourseError if it does not fit."""
        if not self.tests.is_file():
            name = f"tests/{self.tests.name}"
            raise GraderError(f"{name} is missing, so nothing can be checked. To have it again: git checkout {name}")
        checks, problems = read_checks(self)
        if problems:
            raise problems[0]
        return checks

    @property
    def text(self) -> Path:
        return CHAPTERS / f"{self.slug}.md"

    @property
    def tests(self) -> Path:
        return TESTS / f"test_{self.slug}.py"

    @property
    def files(self) -> list[str]:
        """The files of the package that hold the chapter's own tasks."""
        return list(dict.fromkeys(part.file for task in self.tasks if not task.revisits for part in task.parts))


@lru_cache(maxsize=1)
def chapters() -> tuple[Chapter, ...]:
    """Every chapter, in order. Raises CourseError where texts and reference do not fit each other."""
    read, problems = survey()
    if problems:
        raise problems[0]
    return read


def survey() -> tuple[tuple[Chapter, ...], list[CourseError]]:
    """The chapters as far as texts and reference fit each other, and everything that does not."""
    parts, problems = _reference_parts()
    read = []
    for path in sorted(CHAPTERS.glob("[0-9][0-9]_*.md")):
        name = f"chapters/{path.name}"
        try:
            with reading(name):
                chapter, misfits = _chapter(path, parts)
        except CourseError as error:
            problems.append(error)
            continue
        read.append(chapter)
        problems += [CourseError(error.message, error.file or name, error.line) for error in misfits]
    if not read and not problems:
        problems.append(CourseError("There is no chapter here: texts are called 01_value.md and so on.", "chapters"))
    return tuple(read), problems


def _reference_parts() -> tuple[dict[str, list[Part]], list[CourseError]]:
    """The places of every task in the reference, and the files in which they cannot be found."""
    parts: dict[str, list[Part]] = {}
    problems = []
    for path in sorted(REFERENCE.rglob("*.py")):
        file = path.relative_to(REFERENCE).as_posix()
        try:
            with reading(f"solutions/meintorch/{file}"):
                for region in find_regions(read_source(path)):
                    parts.setdefault(region.task, []).append(Part(file, region))
        except CourseError as error:
            problems.append(error)
    return parts, problems


def _chapter(path: Path, parts: dict[str, list[Part]]) -> tuple[Chapter, list[CourseError]]:
    """A chapter with the tasks that its text and the reference share, and what only one of the two has."""
    text, number = read_source(path), path.stem[:2]
    problems: list[CourseError] = []
    tasks: list[Task] = []
    title = texts.title(text)
    headings = texts.task_headings(text)
    for heading in headings:
        revisits = texts.revisited(heading.title)
        if heading.task[:2] != number:
            problems.append(CourseError(f"Task {heading.task} belongs to another chapter.", line=heading.line))
        elif any(task.id == heading.task for task in tasks):
            problems.append(CourseError(f"Task {heading.task} has a section already, above.", line=heading.line))
        elif (revisits or heading.task) not in parts:
            missing = f"The reference has no task {revisits or heading.task}"
            problems.append(CourseError(f"{missing}: {HOW_MARKED.format(revisits or heading.task)}", line=heading.line))
        else:
            places = tuple(parts[revisits or heading.task])
            tasks.append(Task(heading.task, heading.title, places, revisits))
    own = [task.id for task in tasks if not task.revisits]
    if own != sorted(own, key=order):
        problems.append(CourseError(f"The tasks do not stand in the order of their numbers: {', '.join(own)}."))
    for task in sorted((task for task in parts if task[:2] == number and task not in own), key=order):
        file, line = f"solutions/meintorch/{parts[task][0].file}", parts[task][0].region.line
        message = f'Task {task} has no section in chapters/{path.name}: a heading such as "### {task} Its title".'
        problems.append(CourseError(message, file, line))
    return Chapter(number, path.stem, title, tuple(tasks)), problems


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


def order(task: str) -> tuple[int, ...]:
    """Sorts tasks as they come in the course."""
    return tuple(int(part) for part in task.split("."))


def read_checks(chapter: Chapter) -> tuple[tuple[Check, ...], list[CourseError]]:
    """The tests of a chapter, and those that belong to none of its tasks; tasks without a test too.

    They are read and not run: what has to be reported is known before any learner's code runs.
    """
    file = f"tests/{chapter.tests.name}"
    with reading(file):
        tree = ast.parse(read_source(chapter.tests))
    known = {(task.id, task.revisits) for task in chapter.tasks}
    checks, problems = [], []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        marks = [ast.unparse(decorator) for decorator in node.decorator_list]
        mark = next(filter(None, map(MARK.fullmatch, marks)), None)
        if mark is None:
            message = f'{node.name} belongs to no task: write @pytest.mark.task("{chapter.number}.1") above it.'
            problems.append(CourseError(message, file, node.lineno))
        elif (mark[1], mark[2]) not in known:
            name = mark[1] + (f" (back to {mark[2]})" if mark[2] else "")
            message = f"{node.name} belongs to task {name}, which chapter {chapter.number} does not have."
            problems.append(CourseError(message, file, node.lineno))
        else:
            goal = "pytest.mark.goal" in marks
            checks.append(Check(node.name, mark[1], goal=goal, revisits=mark[2], line=node.lineno))
    for task in chapter.tasks:
        if not any(check.task == task.id and not check.goal for check in checks):
            back = f', revisits="{task.revisits}"' if task.revisits else ""
            message = f'Task {task.id} has no check: a test with @pytest.mark.task("{task.id}"{back}) above it.'
            problems.append(CourseError(message, file))
    return tuple(checks), problems
