"""`python grader.py diff`: a learner's answer beside the reference's, task by task."""

import ast
import shutil
from itertools import zip_longest
from pathlib import Path

from grading.course.chapters import REFERENCE, Task
from grading.course.files import read_source
from grading.course.regions import body_source, dump, locate
from grading.tutor import screen
from grading.verdict.judge import Report


def show(report: Report, package: Path, spoil: bool = False) -> None:
    """Print what passed beside the reference, and, if it is to be spoiled, the rest too."""
    hidden, shown = [], {}
    for one in report.tasks:
        if one.status == "passed" or spoil:
            above = shown.setdefault(one.task.parts, one.task)
            if above is one.task:
                show_task(one.task, package)
            else:
                screen.say()
                screen.say((f" {one.task.id} {one.task.title}", "bold"), f"   the same place as {above.id}, above")
        else:
            hidden.append(one.task.id)
    screen.say()
    if hidden:
        screen.paragraph(f"Not shown, because not passed yet: {', '.join(hidden)}")
        screen.say(f" To see them all the same: python grader.py diff {report.asked} --spoil")
        screen.say()


def show_task(task: Task, package: Path) -> None:
    """Print every part of a task: two columns where the terminal is wide enough, one above the other elsewhere."""
    for part in task.parts:
        reference = read_source(REFERENCE / part.file)
        theirs = body_source(reference, locate(reference, part.region))
        source = read_source(package / part.file)
        place = locate(source, part.region)
        screen.say()
        screen.say((f" {task.id} {task.title}", "bold"), f"   {part.region.qualname}")
        screen.say()
        if place is None:
            screen.paragraph(f"This was not found in your {part.file}, or the given lines around it were changed.")
            _column("the reference", theirs)
            continue
        yours = body_source(source, place)
        if dump(ast.parse(yours)) == dump(ast.parse(theirs)):
            _column("yours, the same as the reference", yours)
        else:
            _beside(f"yours, line {place.line}", yours, f"the reference, line {part.region.line}", theirs)


def _beside(left_title: str, left: str, right_title: str, right: str) -> None:
    width = max(len(line) for line in [left_title, *left.split("\n")])
    right_width = max(len(line) for line in [right_title, *right.split("\n")])
    if 3 + width + 3 + right_width > shutil.get_terminal_size((80, 24)).columns:
        _column(left_title, left)
        screen.say()
        _column(right_title, right)
        return
    screen.say("   ", (left_title.ljust(width + 3), "bold"), (right_title, "bold"))
    for one, other in zip_longest(left.rstrip("\n").split("\n"), right.rstrip("\n").split("\n"), fillvalue=""):
        screen.say("   ", one.ljust(width + 3), other)


def _column(title: str, text: str) -> None:
    screen.say("   ", (title, "bold"))
    for line in text.rstrip("\n").split("\n"):
        screen.say("   ", line)
