"""`python grader.py explain`: after a chapter has passed, the reference with its reasons."""

import ast
import textwrap

from grading.course import texts
from grading.course.chapters import Chapter, Part, Task, reference
from grading.course.errors import CourseError
from grading.course.files import read_source
from grading.course.regions import find_definition
from grading.tutor import screen
from grading.verdict.results import Report


def show(report: Report) -> None:
    """Print for every task of a report why the reference is as it is, and at the end what PyTorch does."""
    shown: set[tuple[str, str]] = set()
    first: dict[tuple[Part, ...], Task] = {}
    for task_report in report.tasks:
        task = task_report.task
        screen.say()
        screen.say((f" {task.id} {task.title}", "bold"))
        above = first.setdefault(task.parts, task)
        if above is task:
            for part in task.parts:
                _show_part(part, shown)
        else:
            screen.say()
            screen.paragraph(f"In the same place as {above.id}, above.")
    if len(report.tasks) == len(report.chapter.tasks):
        screen.say()
        screen.say((" What PyTorch does", "bold"))
        screen.say()
        for block in _what_pytorch_does(report.chapter).split("\n\n"):
            screen.paragraph(" ".join(block.split()))
    screen.say()
    screen.say(f" Yours beside it: python grader.py diff {report.asked}")
    screen.say()


def _show_part(part: Part, shown: set[tuple[str, str]]) -> None:
    """Print the reason of a part and, unless it was shown already, the definition that it belongs to."""
    reason = part.region.comment.replace("\n", " ")
    screen.say()
    screen.paragraph(reason[:1].upper() + reason[1:])
    definition = part.region.qualname.removesuffix("._backward")
    if (part.file, definition) in shown:
        return
    shown.add((part.file, definition))
    screen.say()
    screen.say(f"   solutions/meintorch/{part.file}, line {part.region.line}")
    screen.say()
    for line in _source(part, definition):
        screen.say("      ", line)


def _what_pytorch_does(chapter: Chapter) -> str:
    """The text's own section. Where it has another heading, as in a translation, that is said and nothing breaks."""
    try:
        return texts.section(read_source(chapter.text), "What PyTorch does")
    except CourseError as error:
        return f"Not shown: {error.message} Read chapters/{chapter.slug}.md itself."


def _source(part: Part, definition: str) -> list[str]:
    source = reference()[part.file]
    node = find_definition(ast.parse(source), definition.split("."))
    lines = source.split("\n")[node.lineno - 1 : node.end_lineno] if node else []
    return textwrap.dedent("\n".join(lines)).split("\n")
