"""`python grader.py doctor`: is this machine set up?"""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from grading.course import chapters as course
from grading.course.errors import GraderError
from grading.runner.gradable import problem_in
from grading.tutor import memory, screen
from grading.verdict.judge import grade

LIBRARIES = {"numpy": 2, "pytest": 9, "rich": 0}
INSTALL = "In the course's folder: python -m pip install -e ."


def show() -> bool:
    """Print what was found. Returns whether everything is as it should be."""
    screen.say()
    healthy = True
    for name, problem, detail in examine():
        healthy = healthy and not problem
        screen.say("  ", ("problem" if problem else "good", "bold red" if problem else "green"), f"   {name}: {detail}")
        if problem:
            screen.paragraph(problem, indent=12)
    screen.say()
    return healthy


def examine() -> Iterator[tuple[str, str, str]]:
    """Yield (what was looked at, the problem or "", what was found), one line at a time."""
    yield "Python", "", f"{sys.version.split()[0]} at {sys.executable}"
    complete = True
    for name, least in LIBRARIES.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            complete = False
            yield name, INSTALL, "not installed"
            continue
        old = int(installed.partition(".")[0]) < least
        complete = complete and not old
        yield name, f"Version {least} or newer is needed. {INSTALL}" if old else "", installed
    yield _package()
    folder = memory.folder()
    inside = folder.parent == course.ROOT
    yield "the grader's memory", "", f"{folder.name}/" + ("" if inside else " (the course's folder is read-only)")
    if complete:
        yield _trial()
    encoding = sys.stdout.encoding or "unknown"
    size = "a terminal" if sys.stdout.isatty() else "not a terminal: no colours"
    yield "the screen", "", f"{encoding}, {size}" + (", NO_COLOR is set" if os.environ.get("NO_COLOR") else "")


def _package() -> tuple[str, str, str]:
    """Is every file of the learner's package there, and can Python read it?"""
    for chapter in course.chapters():
        for name in chapter.files:
            path = course.PACKAGE / name
            fix = f"To have its stub again: python grader.py reset {chapter.number} (what is there is kept)."
            if not path.is_file():
                return "your package", fix, f"missing: {name}"
            problem = problem_in(path, name)
            if problem:
                return "your package", f"{problem.reason} {fix}", str(problem.place)
    return "your package", "", "every file is there and can be read"


def _trial() -> tuple[str, str, str]:
    """One task of the first chapter, on the reference: does a check run from end to end?"""
    chapter = course.chapters()[0]
    try:
        report = grade(chapter, course.REFERENCE, chapter.tasks[0])
    except GraderError as error:
        return "a trial check", "Running a check did not work on this machine.", str(error)
    if not report.passed:
        return "a trial check", "The reference does not pass: has a file of the course been edited?", "failed"
    return "a trial check", "", "runs, and the reference passes"
