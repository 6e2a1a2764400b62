"""What the grader reads out of a chapter's Markdown: its title, its tasks and their ladders of hints."""

import re
from dataclasses import dataclass

from grading.course.errors import CourseError

BACK_TO = re.compile(r"Back to (\d\d\.\d+): ")
TASK_HEADING = re.compile(r"^### (\d\d\.\d+) (.+)$", re.MULTILINE)
DETAILS = re.compile(r"<details>\s*<summary>(.*?)</summary>\n(.*?)</details>", re.DOTALL)
LISTING = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """The heading of a task's section."""

    task: str  # "02.2"
    title: str  # "Multiply"
    line: int
    revisits: str | None = None  # of the title "Back to 02.3: ...": "02.3"


@dataclass(frozen=True)
class Rung:
    """One step of a task's ladder."""

    title: str  # "Hint 1 - the direction", or "Solution"
    text: str  # Markdown


@dataclass(frozen=True)
class Listing:
    """A fenced block of a chapter."""

    language: str  # "python", "text"
    runs: bool  # False for ```python .noeval
    code: str
    line: int  # of the opening fence


def outline(text: str) -> tuple[str, list[Heading]]:
    """A chapter's name and the headings of its tasks. Raises CourseError where the name is missing."""
    match = re.search(r"^# \d\d (.+)$", text, re.MULTILINE)
    if match is None:
        raise CourseError('The text has no heading with the chapter\'s number and title, such as "# 02 Autograd".')
    headings = []
    for heading in TASK_HEADING.finditer(text):
        back, line = BACK_TO.match(heading[2]), text.count("\n", 0, heading.start()) + 1
        headings.append(Heading(heading[1], heading[2].strip(), line, back[1] if back else None))
    return match[1].strip(), headings


def task_section(text: str, task: str) -> str:
    """What stands between the task's heading and the next heading of the same or a higher level.

    Raises CourseError without such a heading.
    """
    section: list[str] = []
    fenced = False
    for line in text.split("\n"):
        heading = not fenced and re.match(r"#{1,3} ", line)
        if section and heading:
            break
        if section or (heading and line.startswith(f"### {task} ")):
            section.append(line)
        if line.startswith("```"):
            fenced = not fenced
    if not section:
        raise CourseError(f"The text has no section for task {task}.")
    return "\n".join(section)


def section(text: str, title: str) -> str:
    """What stands between the heading `## title` and the next of its level. Raises CourseError without it."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise CourseError(f'The text has no section "## {title}".')
    return match.group(1).strip()


def ladder(text: str, task: str) -> list[Rung]:
    """The task's hints in order, its solution last."""
    return [Rung(summary.strip(), body.strip()) for summary, body in DETAILS.findall(task_section(text, task))]


def solution(text: str, task: str) -> list[str]:
    """The code blocks of the task's solution: one for each place that the task has in the code, in order.

    Raises CourseError if the last step of the task's ladder is no solution.
    """
    rungs = ladder(text, task)
    if not rungs or rungs[-1].title != "Solution":
        raise CourseError(f"Task {task} has no <details> with the summary Solution at the end of its hints.")
    return [listing.code for listing in listings(rungs[-1].text) if listing.language == "python"]


def listings(text: str) -> list[Listing]:
    found = []
    for match in LISTING.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Listing(match.group(2), ".noeval" not in match.group(3), match.group(4), line))
    return found
