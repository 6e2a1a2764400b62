"""`python grader.py diff`: a learner's answer beside the reference's, task by task."""

import ast
import shutil
from itertools import zip_longest

from grading.course.chapters import Part, Task
from grading.course.package import Package
from grading.course.regions import body_source, dump
from grading.tutor import screen
from grading.verdict.results import Report


def show(report: Report, spoil: bool = False) -> None:
    """Print what passed beside the reference, and, if it is to be spoiled, the rest too."""
    hidden: list[str] = []
    shown: dict[tuple[Part, ...], Task] = {}
    for task_report in report.tasks:
        task = task_report.task
        if task_report.status != "passed" and not spoil:
            hidden.append(task.id)
            continue
        above = shown.setdefault(task.parts, task)
        if above is task:
            show_task(task, report.package)
        else:
            screen.say()
            screen.say((f" {task.id} {task.title}", "bold"), f"   the same place as {above.id}, above")
    screen.say()
    if hidden:
        screen.paragraph(f"Not shown, because not passed yet: {', '.join(hidden)}")
        screen.say(f" To see them all the same: python grader.py diff {report.asked} --spoil")
        screen.say()


def show_task(task: Task, package: Package) -> None:
    """Print every part of a task: two columns where the terminal is wide enough, one above the other elsewhere."""
    for part in task.parts:
        theirs, block = part.region.body, package.block(part)
        screen.say()
        screen.say((f" {task.id} {task.title}", "bold"), f"   {part.region.qualname}")
        screen.say()
        if block is None:
            screen.paragraph(f"This was not found in your {part.file}, or the given lines around it were changed.")
            _column("the reference", theirs)
            continue
        yours = body_source(package.sources[part.file], block)
        if _are_the_same(yours, theirs):
            _column("yours, the same as the reference", yours)
        else:
            _beside(f"yours, line {block.line}", yours, f"the reference, line {part.region.line}", theirs)


def _are_the_same(yours: str, theirs: str) -> bool:
    """But for comments and white space."""
    try:
        return dump(ast.parse(yours)) == dump(ast.parse(theirs))
    except SyntaxError:  # a text of several lines is in it, and keeps the rest from being moved to the left
        return False


def _beside(left_title: str, left: str, right_title: str, right: str) -> None:
    width = max(len(line) for line in [left_title, *left.split("\n")])
    right_width = max(len(line) for line in [right_title, *right.split("\n")])
    if 3 + width + 3 + right_width > shutil.get_terminal_size((80, 24)).columns:
        _column(left_title, left)
        screen.say()
        _column(right_title, right)
        return
    screen.say("   ", (left_title.ljust(width + 3), "bold"), (right_title, "bold"))
    for yours, theirs in zip_longest(left.rstrip("\n").split("\n"), right.rstrip("\n").split("\n"), fillvalue=""):
        screen.say("   ", yours.ljust(width + 3), theirs)


def _column(title: str, text: str) -> None:
    screen.say("   ", (title, "bold"))
    for line in text.rstrip("\n").split("\n"):
        screen.say("   ", line)
