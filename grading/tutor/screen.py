"""What a learner sees. 80 columns; plain text where the terminal has no colours."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grading.course.chapters import Chapter, Task
from grading.runner.outcomes import printable
from grading.verdict.results import Report, TaskReport
from grading.verdict.sentences import sentence_of

if TYPE_CHECKING:  # rich takes a while to import, and a pipe does without it
    from rich.console import Console

WIDTH = max(40, min(78, shutil.get_terminal_size((80, 24)).columns - 2))
LABELS = {
    "passed": ("passed", "green"),
    "failed": ("failed", "bold red"),
    "todo": ("to do", "yellow"),
    "blocked": ("blocked", "cyan"),
    "error": ("error", "bold red"),
}

Piece = str | tuple[str, str]  # text, or text and its style
Row = tuple[Chapter, int, int, str]  # of the map: see grading.tutor.progress


_console: "Console | None" = None  # where colours go: made when it is first needed


def draw_on(console: "Console | None") -> None:
    """Print to this Console from now on."""
    global _console
    _console = console


def colourful() -> bool:
    """May this output have colours? Not where NO_COLOR is set, and not into a file or a pipe."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def clear() -> None:
    """Begin a new screen, where it is one."""
    if _console is not None:
        _console.clear()


def say(*pieces: Piece) -> None:
    """Print a line. Nothing in it steers the terminal: it may come from somebody's code."""
    shown = [(printable(piece), "") if isinstance(piece, str) else (printable(piece[0]), piece[1]) for piece in pieces]
    if _console is None and colourful():
        from rich.console import Console

        draw_on(Console(highlight=False))
    if _console is None:
        print("".join(text for text, _ in shown).rstrip())
    else:
        from rich.text import Text

        _console.print(Text.assemble(*shown), soft_wrap=True)


def paragraph(text: str, indent: int = 3, style: str = "") -> None:
    """Print text in lines of the screen's width; its own line breaks are kept. No array is broken that fits on one."""
    for line in text.split("\n"):
        own = len(line) - len(line.lstrip())
        margin = " " * (indent + own)
        width = WIDTH - len(margin)
        wrapped = textwrap.wrap(_unbroken(line.strip(), width), width, break_long_words=False, break_on_hyphens=False)
        for part in wrapped or [""]:
            say(margin, (part.replace(UNBROKEN, " "), style))


UNBROKEN = "\0"  # stands for a space at which no line ends


def _unbroken(line: str, width: int) -> str:
    """A line in which no space inside of [ ] can end a line, as far as what the brackets hold fits on one."""
    line, starts = line.replace(UNBROKEN, " "), []
    for place, character in enumerate(line):
        if character == "[":
            starts.append(place)
        elif character == "]" and starts:
            start = starts.pop()
            if place + 1 - start < width:
                line = line[:start] + line[start : place + 1].replace(" ", UNBROKEN) + line[place + 1 :]
    return line


def show_report(report: Report) -> None:
    """Print a chapter's report: a line a task, the first failure, and what comes next."""
    names = dict.fromkeys(name for task in report.chapter.tasks for name in task.files)
    files = ", ".join(f"meintorch/{name}" for name in names)
    heading = f" {report.chapter.number}  {report.chapter.title}"
    say()
    say((heading, "bold"), files.rjust(WIDTH - len(heading)))
    say()
    if report.not_gradable:
        show_not_gradable(report)
        return
    for task_report in report.tasks:
        label, style = LABELS[task_report.status]
        task = task_report.task
        say("  ", (label.ljust(10), style), task.id.ljust(7), task.title.ljust(39), _count(task_report))
    stopped = _show_what_stops(report)
    say()
    _show_next(report, stopped)
    say()
    say(f" {report.score} of {report.max_score} checks".ljust(22), bar(report.score, report.max_score))
    say()
    show_notes(report)


def _show_what_stops(report: Report) -> bool:
    """Print the first failure or, where there is none, what is to do. Returns whether it was a failure."""
    failed = next((task for task in report.tasks if task.first_failure and task.status in ("failed", "error")), None)
    upstream = next((task for task in report.tasks if task.needs and task.first_failure and _tells(report, task)), None)
    if failed:
        show_failure(failed)
    elif upstream:
        show_failure(upstream, cause=False)
        say()
        paragraph(
            f"With the reference in place of your {upstream.needs}, this passes: the cause is {upstream.needs}, "
            "and not what you have written here."
        )
    elif report.passed:
        show_output(next((result.output for result in report.results.values() if result.output.strip()), ""))
    elif to_do := report.first_to_do():
        task, place = to_do
        leftover = [result.diagnosis for result in report.results.values() if result.status == "todo"]
        say()
        paragraph(f"To do next: {task.id} {task.title}", indent=1)
        for text in list(filter(None, leftover))[:1]:
            paragraph(text)
        paragraph(str(place))
    elif _asked_alone(report):  # blocked by a TODO
        stopped = next(result for result in report.tasks[0].results if result.status == "todo")
        say()
        paragraph(f"{report.tasks[0].task.id} {stopped.message}. {stopped.diagnosis or ''}", indent=1)
    return bool(failed or upstream)


def _show_next(report: Report, stopped: bool) -> None:
    if report.passed and _asked_alone(report):
        say(" ", (f"{report.tasks[0].task.id} is done.", "green"), f" Next: {report.next}")
    elif report.passed:
        done = f"Chapter {report.chapter.number} is done."
        say(" ", (done, "green"), f" See how the reference does it: {report.next}")
    elif stopped or not report.first_to_do():
        say(f" Next: {report.next}")
    else:
        again = report.chapter.number if len(report.tasks) > 1 else report.tasks[0].task.id
        say(f" Read chapters/{report.chapter.slug}.md, write it, then: python grader.py {again}")
        say(f" A hint: {report.next}")


def show_failure(task_report: TaskReport, cause: bool = True) -> None:
    """Print a task's first failure: the evidence, the place in the learner's file and, if asked, the likely cause."""
    result, task = task_report.first_failure, task_report.task
    if result is None:
        return
    say()
    paragraph(f"{task.id} {task.title}: {sentence_of(result.name)}", indent=1, style="bold")
    if result.place:
        paragraph(str(result.place))
        if result.place.quote and not result.is_check:
            say()
            paragraph(result.place.quote, indent=6)
    say()
    paragraph(result.message)
    if result.diagnosis and cause:
        say()
        paragraph(result.diagnosis)
    show_output(result.output)


def show_output(output: str) -> None:
    """Print what the learner's code printed, if anything."""
    if output.strip():
        say()
        paragraph("Your code printed:")
        paragraph("\n".join(output.rstrip().split("\n")[:20]), indent=6)


def show_not_gradable(report: Report) -> None:
    """Print why no check could be run."""
    problem = report.not_gradable
    if problem is None:
        return
    say("  ", ("not gradable", "bold red"), f"   {problem.place}")
    say()
    if problem.place.source:
        for text in problem.place.source.split("\n"):
            say("      ", text[: WIDTH - 6])
        say()
    paragraph(problem.reason)
    say()
    paragraph("No check was run.")
    say()
    say(f" Then: {report.next}")
    say()
    show_notes(report)


def show_notes(report: Report) -> None:
    for note in report.notes:
        paragraph(f"Note: {note}", indent=1)
    if report.notes:
        say()


def show_map(rows: Sequence[Row], here: Chapter | None) -> None:
    """Print the map: every chapter with the checks that pass, all there are, and the place that stops them, or ""."""
    passed, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    say()
    count = f"{passed} of {total} checks"
    say((" meintorch", "bold"), count.rjust(WIDTH - 10))
    say()
    for chapter, done, all_of_them, problem in rows:
        mark = ("    you are here", "bold") if chapter is here else ""
        mark = (f"    see {problem}", "bold red") if problem else mark
        score = f"{done} of {all_of_them}".rjust(11)
        say(f"  {chapter.number}  {chapter.title[:18].ljust(18)}  {bar(done, all_of_them)}", score, mark)
    say()
    if here:
        say(f" Next: read chapters/{here.slug}.md, then: python grader.py {here.number}")
    else:
        say(" Everything is done.")
    say()


def show_hint(task: Task, title: str, text: str, number: int, count: int) -> None:
    """Print one rung of a task's ladder, its Markdown as plain text."""
    say()
    say((f" {task.id} {task.title}", "bold"))
    say((f" {title}", "bold"))
    say()
    for block in re.split(r"(^```.*?^```$)", text.strip(), flags=re.DOTALL | re.MULTILINE):
        if not block:  # it begins or ends with code
            continue
        if block.startswith("```"):
            for line in block.split("\n")[1:-1]:
                say("      ", line)
        else:
            for part in re.split(r"\n(?=\n|[-*] )", block):  # the lines of a paragraph belong together
                paragraph(" ".join(part.split()))
    say()
    if number == count - 1:
        say(f" {number} of {count}. The next one is the solution: python grader.py hint {task.id}")
    elif number < count:
        say(f" {number} of {count}. The next one: python grader.py hint {task.id}")
    else:
        say(f" {number} of {count}. That was the last one. Check it: python grader.py {task.id}")
    say()


def bar(done: int, total: int) -> str:
    """Twenty characters, filled only as far as there is something to show for it."""
    filled = 20 * done // total if total else 0
    return "#" * filled + "." * (20 - filled)


def _count(task_report: TaskReport) -> str:
    if task_report.status == "passed":
        return f"{len(task_report.results)} checks" if len(task_report.results) != 1 else "1 check"
    if task_report.status == "blocked":
        return f"needs {task_report.needs}"
    if task_report.status == "todo":
        return ""
    return f"{task_report.passed} of {len(task_report.results)} checks"


def _tells(report: Report, blocked: TaskReport) -> bool:
    """Is the failure of a blocked task worth showing? Not where its cause stands above it on the same screen."""
    earlier = blocked.needs is not None and blocked.needs[:2] < blocked.task.id[:2]
    return earlier or _asked_alone(report)


def _asked_alone(report: Report) -> bool:
    return len(report.tasks) < len(report.chapter.tasks)
