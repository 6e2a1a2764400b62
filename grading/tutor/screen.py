"""What a learner sees. 80 columns; plain text where the terminal has no colours."""

import os
import re
import shutil
import sys
import textwrap
from functools import lru_cache

from grading.course.chapters import REFERENCE, Chapter, Task, chapters
from grading.course.files import read_source
from grading.runner.launch import printable
from grading.verdict.judge import Report, TaskReport

WIDTH = max(40, min(78, shutil.get_terminal_size((80, 24)).columns - 2))
LABELS = {
    "passed": ("passed", "green"),
    "failed": ("failed", "bold red"),
    "todo": ("to do", "yellow"),
    "blocked": ("blocked", "cyan"),
    "error": ("error", "bold red"),
}

Piece = str | tuple[str, str]  # text, or text and its style


_console = None  # where colours go: rich's Console, made when it is first needed


def draw_on(console) -> None:
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
    pieces = [printable(piece) if isinstance(piece, str) else (printable(piece[0]), piece[1]) for piece in pieces]
    if _console is None and colourful():
        from rich.console import Console

        draw_on(Console(highlight=False))
    if _console is None:
        print("".join(piece if isinstance(piece, str) else piece[0] for piece in pieces).rstrip())
    else:
        from rich.text import Text

        _console.print(Text.assemble(*pieces), soft_wrap=True)


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


def show_report(report: Report, place: dict | None) -> None:
    """Print a chapter's report. `place` is where the next unwritten task stands, if there is one to write."""
    names = dict.fromkeys(part.file for task in report.chapter.tasks for part in task.parts)
    files = ", ".join(f"meintorch/{name}" for name in names)
    heading = f" {report.chapter.number}  {report.chapter.title}"
    say()
    say((heading, "bold"), files.rjust(WIDTH - len(heading)))
    say()
    if report.not_gradable:
        show_not_gradable(report)
        return
    for one in report.tasks:
        label, style = LABELS[one.status]
        say("  ", (label.ljust(10), style), one.task.id.ljust(7), one.task.title.ljust(39), _count(one))
    failed = next((one for one in report.tasks if one.first_failure and one.status in ("failed", "error")), None)
    upstream = next(
        (
            one
            for one in report.tasks
            if one.needs and one.first_failure and (_waits_for_earlier_chapter(one) or _asked_alone(report))
        ),
        None,
    )
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
        show_output(next((r.output for one in report.tasks for r in one.results if r.output.strip()), ""))
    elif place:
        leftover = [result.diagnosis for one in report.tasks for result in one.results if result.status == "todo"]
        say()
        paragraph(f"To do next: {place['task'].id} {place['task'].title}", indent=1)
        for text in list(filter(None, leftover))[:1]:
            paragraph(text)
        paragraph(f"{place['file']}, line {place['line']}")
    elif _asked_alone(report):  # blocked by a TODO
        stopped = next(result for result in report.tasks[0].results if result.status == "todo")
        say()
        paragraph(f"{report.tasks[0].task.id} {stopped.message}. {stopped.diagnosis or ''}", indent=1)
    say()
    if report.passed and _asked_alone(report):
        say(" ", (f"{report.tasks[0].task.id} is done.", "green"), f" Next: {report.next}")
    elif report.passed:
        done = f"Chapter {report.chapter.number} is done."
        say(" ", (done, "green"), f" See how the reference does it: {report.next}")
    elif failed or upstream or not place:
        say(f" Next: {report.next}")
    else:
        again = report.chapter.number if len(report.tasks) > 1 else report.tasks[0].task.id
        say(f" Read chapters/{report.chapter.slug}.md, write it, then: python grader.py {again}")
        say(f" A hint: {report.next}")
    say()
    say(f" {report.score} of {report.max_score} checks".ljust(22), bar(report.score, report.max_score))
    say()
    show_notes(report)


def show_failure(one: TaskReport, cause: bool = True) -> None:
    """Print a task's first failure: the evidence, the place in the learner's file and, if asked, the likely cause."""
    result = one.first_failure
    say()
    paragraph(f"{one.task.id} {one.task.title}: {sentence_of(result.name)}", indent=1, style="bold")
    if result.location:
        paragraph(f"{result.location['file']}, line {result.location['line']}")
        if result.location.get("source") and not result.is_check:
            say()
            paragraph(result.location["source"], indent=6)
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
    problem = report.not_gradable
    line = f", line {problem.line}" if problem.line else ""
    say("  ", ("not gradable", "bold red"), f"   {problem.file}{line}")
    say()
    if problem.source:
        for text in problem.source.split("\n"):
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


def show_map(rows: list[tuple[Chapter, int, int, str]], here: Chapter | None) -> None:
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


def sentence_of(name: str) -> str:
    """A test's name as a sentence: "test_no_grad_stops_the_recording" -> "no_grad stops the recording"."""
    text = f"_{name.removeprefix('test_').removeprefix('goal_')}_"
    for one in code_names():
        text = text.replace(f"_{one}_", f"_{one.replace('_', chr(0))}_")
    return text.strip("_").replace("_", " ").replace(chr(0), "_")


@lru_cache(maxsize=1)
def code_names() -> list[str]:
    """Names with an underscore that stand for a piece of code in a test's name, the longest first."""
    found = {"zero_grad", *re.findall(r"[a-z]\w*_\w+", read_source(REFERENCE / "__init__.py"))}
    regions = [part.region for chapter in chapters() for task in chapter.tasks for part in task.parts]
    found.update(one for region in regions for one in region.qualname.split(".") if "_" in one.strip("_"))
    return sorted(found, key=len, reverse=True)


def _count(one: TaskReport) -> str:
    if one.status == "passed":
        return f"{len(one.results)} checks" if len(one.results) != 1 else "1 check"
    if one.status == "blocked":
        return f"needs {one.needs}"
    if one.status == "todo":
        return ""
    return f"{one.passed} of {len(one.results)} checks"


def _waits_for_earlier_chapter(one: TaskReport) -> bool:
    return one.needs is not None and one.needs[:2] < one.task.id[:2]


def _asked_alone(report: Report) -> bool:
    return len(report.tasks) < len(report.chapter.tasks)
