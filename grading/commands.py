"""What each command of `python grader.py` does, on what was typed. What it needs is imported where it is needed."""

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from grading.course.chapters import Chapter, Task

PASSED, NOT_YET, WRONG_USAGE, BROKEN = 0, 1, 2, 3


class UsageError(Exception):
    """What was asked for does not exist. The text says what does."""


def wrong(message: str) -> NoReturn:
    raise UsageError(f"{message}\n\nFor the list of commands: python grader.py --help")


def need_libraries() -> None:
    missing = [name for name in ("numpy", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} cannot be imported by {sys.executable}.\n"
            "Have you made an environment for the course, and is it not active? source .venv/bin/activate\n"
            "(Windows: .venv\\Scripts\\activate). Otherwise, in the course's folder: python -m pip install -e ."
        )


def _find(name: str) -> "tuple[Chapter, Task | None]":
    """The chapter, and the task or None, that a name speaks of."""
    from grading.course.chapters import find

    try:
        return find(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def package(options: argparse.Namespace) -> Path:
    from grading.course.chapters import PACKAGE, REFERENCE

    return options.package or (REFERENCE if options.solution else PACKAGE)


def check(options: argparse.Namespace) -> int:
    """`python grader.py 02`, `02.2` and `all`."""
    from grading.course.chapters import chapters
    from grading.runner.warm import start_after_the_first
    from grading.tutor import screen
    from grading.verdict import formats
    from grading.verdict.judge import grade
    from grading.verdict.results import SCHEMA

    every = options.name == "all"
    reports = []
    for chapter, task in [(chapter, None) for chapter in chapters()] if every else [_find(options.name)]:
        report = grade(chapter, package(options), task, bool(options.goal), options.timeout, start_after_the_first)
        reports.append(report)
        if not options.json and not options.format:
            screen.show_report(report)
    passed = all(report.passed for report in reports)
    documents = [report.as_json() for report in reports]
    if options.json:
        whole = {"schema": SCHEMA, "passed": passed, "chapters": documents}
        print(json.dumps(whole if every else documents[0], indent=2))
    if options.format == "gradescope":
        print(json.dumps(formats.gradescope(reports), indent=2))
    elif options.format == "exercism":
        print(json.dumps(formats.exercism(reports[0]), indent=2))
    if options.junitxml:
        options.junitxml.write_text(formats.junit(reports), encoding="utf-8")  # a pipe or /dev/stdout will do too
    return PASSED if passed else NOT_YET


def watch(options: argparse.Namespace) -> int:
    from grading.course.chapters import chapters
    from grading.runner import warm
    from grading.tutor import progress, watch

    if options.command == "check":
        chapter, task = _find(options.name)
    else:
        print(" Looking where you are ...", flush=True)
        chapter, task = progress.here(progress.rows(warm.start_after_the_first)) or chapters()[-1], None
        warm.let_go()
    report = watch.watch(chapter, task, package(options), bool(options.goal), options.timeout, bool(options.poll))
    return PASSED if report and report.passed else NOT_YET


def map(options: argparse.Namespace) -> int:
    from grading.runner.warm import start_after_the_first
    from grading.tutor import progress, screen

    rows = progress.rows(start_after_the_first)
    here = progress.here(rows)
    screen.show_map(rows, here)
    return PASSED if here is None else NOT_YET


def hint(options: argparse.Namespace) -> int:
    from grading.tutor import hint

    if options.words:
        chapter, task = _find(options.name)
    else:
        chapter, task = _first_open_task()
    if task is None:
        wrong(f"hint needs a task, one of {', '.join(task.id for task in chapter.tasks)}")
    try:
        hint.show(chapter, task, options.words[1] if len(options.words) == 2 else None)
    except LookupError as error:
        wrong(error.args[0])
    return PASSED


def _first_open_task() -> "tuple[Chapter, Task]":
    """The chapter that the learner is at, and the task in it that comes next."""
    need_libraries()
    from grading.runner.warm import start_after_the_first
    from grading.tutor import progress
    from grading.verdict.judge import grade

    chapter = progress.here(progress.rows(start_after_the_first))
    if chapter is None:
        wrong("Everything is done. A hint for a task all the same: python grader.py hint 02.2")
    left = grade(chapter, start=start_after_the_first).open_tasks
    return chapter, left[0] if left else chapter.tasks[0]


def diff(options: argparse.Namespace) -> int:
    from grading.tutor import compare, screen
    from grading.verdict.judge import grade

    chapter, task = _find(options.name)
    report = grade(chapter, package(options), task, timeout=options.timeout)
    if report.not_gradable:
        screen.show_report(report)
    else:
        compare.show(report, bool(options.spoil))
    return PASSED if report.passed else NOT_YET


def explain(options: argparse.Namespace) -> int:
    from grading.tutor import explain, screen
    from grading.verdict.judge import grade

    chapter, task = _find(options.name)
    report = grade(chapter, task=task, timeout=options.timeout)
    if report.passed:
        explain.show(report)
    elif report.not_gradable:
        screen.show_report(report)
    else:
        left = ", ".join(task_report.task.id for task_report in report.tasks if task_report.status != "passed")
        screen.say()
        screen.paragraph(f"The explanation comes after your own answers have passed. Not yet: {left}", indent=1)
        screen.say(f" Next: {report.next}")
        screen.say()
    return PASSED if report.passed else NOT_YET


def catch_up(options: argparse.Namespace) -> int:
    from grading.course.chapters import chapters
    from grading.runner.warm import start_after_the_first
    from grading.tutor.catch_up import catch_up_and_show

    chapter = _find_chapter(options.name)
    if chapter is chapters()[0]:
        wrong(f"Nothing comes before chapter {chapter.number}")
    return PASSED if catch_up_and_show(chapter, start_after_the_first) else NOT_YET


def _find_chapter(name: str) -> "Chapter":
    """The chapter of that number, for commands that take no task."""
    from grading.course.chapters import find_chapter

    try:
        return find_chapter(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def reset(options: argparse.Namespace) -> int:
    from grading.tutor.reset import reset_and_show

    try:
        return PASSED if reset_and_show(options.name) else NOT_YET
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def notebook(options: argparse.Namespace) -> int:
    # Where this is installed jsonschema imports it, for nbformat, and it makes a grammar of web addresses first. That
    # takes a second, and no notebook of ours is checked for addresses.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: it cannot be imported
    from grading.course.chapters import chapters

    wanted = chapters() if options.name == "all" else [_find_chapter(options.name)]
    try:
        from grading.notebook.notebook import write_and_show
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is missing. In the course's folder: python -m pip install -e .") from None
    write_and_show(wanted)
    return PASSED


def doctor(options: argparse.Namespace) -> int:
    from grading.tutor import doctor

    return PASSED if doctor.show() else NOT_YET


def stubs(options: argparse.Namespace) -> int:
    from grading.authoring import write_stubs

    return write_stubs.main(bool(options.check))


def new(options: argparse.Namespace) -> int:
    from grading.authoring import new

    try:
        return new.main(*options.words)
    except new.Refused as error:
        wrong(f"{error}\nNothing was written.")


def course_check(options: argparse.Namespace) -> int:
    from grading.authoring import check

    try:
        return check.main(options.words[0] if options.words else None)
    except LookupError as error:
        wrong(error.args[0])


def verify(options: argparse.Namespace) -> int:
    from grading.authoring.verify import verify

    return PASSED if verify() else NOT_YET
