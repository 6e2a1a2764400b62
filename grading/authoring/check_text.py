"""What is asked of a chapter's text: its sections, the ladders under its tasks, its broken code.

Each rule is a function that gives what is wrong, as in check.py.
"""

import re
from collections.abc import Iterator

from grading.course import texts
from grading.course.chapters import TESTS, Chapter
from grading.course.errors import CourseError
from grading.course.files import read_source

SECTIONS = (
    "The idea",
    "The goal",
    "Zero magic",
    "The exercise",
    "Check it",
    "Break it",
    "In goal mode",
    "What PyTorch does",
    "Next",
)
RUNGS = ("Hint 1 - the direction", "Hint 2 - more concrete", "Hint 3 - almost there", "Solution")
TASKS = (4, 8)  # of a chapter
WORDS = (5, 160)  # of a hint, listings left out
CORPORA = TESTS / "course" / "corpora"

Problems = list[CourseError]


def sections(chapter: Chapter) -> Problems:
    """The text has its sections, each once and in their order, and a heading with the chapter's number."""
    text = read_source(chapter.text)
    problems = []
    if f"# {chapter.number} {chapter.title}" not in text.split("\n"):
        problems.append(
            in_text(chapter, f'The first heading is not "# {chapter.number} ..." with the title behind it.')
        )
    found = {title: line for line, title in _headings(text)}
    for title in SECTIONS:
        if title not in found:
            problems.append(in_text(chapter, f'The section "## {title}" is missing.'))
    problems += [
        in_text(chapter, f'There is no section "## {title}" in a chapter. It has: {", ".join(SECTIONS)}.', line)
        for line, title in _headings(text)
        if title not in SECTIONS
    ]
    order = [title for _, title in _headings(text) if title in SECTIONS]
    if len(order) > len(set(order)):
        twice = next(title for title in order if order.count(title) > 1)
        problems.append(in_text(chapter, f'The section "## {twice}" is there twice.', found[twice]))
    elif order != [title for title in SECTIONS if title in found]:
        wanted = [title for title in SECTIONS if title in found]
        first = next(title for title, other in zip(order, wanted) if title != other)
        message = f'"## {first}" stands in another place than in the other chapters: {", ".join(SECTIONS)}.'
        problems.append(in_text(chapter, message, found[first]))
    return problems


def ladders(chapter: Chapter) -> Problems:
    """Under each task stand what to write, three hints of a length to be read and a solution."""
    text = read_source(chapter.text)
    lines = {heading.task: heading.line for heading in texts.outline(text)[1]}
    problems = []
    for task in chapter.tasks:
        wrong = [f"{task.id}: {message}" for message in _wrong_in_section(text, task.id, len(task.parts))]
        problems += [in_text(chapter, message, lines[task.id]) for message in wrong]
    own = [task.id for task in chapter.tasks if not task.revisits]
    for match in re.finditer(r"^<details>.*?</details>", text, re.DOTALL | re.MULTILINE):
        first = text.count("\n", 0, match.start())
        for listing in texts.listings(match.group()):
            if listing.language == "python" and listing.runs:
                message = "A listing in a hint or a solution would run in a notebook: ```python .noeval"
                problems.append(in_text(chapter, message, first + listing.line))
    goal = re.search(r"^## In goal mode\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if goal and own and f"TODO {own[-1]}" not in goal.group(1):
        line = text.count("\n", 0, goal.start()) + 1
        problems.append(in_text(chapter, f'"In goal mode" does not tell of the last task, "TODO {own[-1]}".', line))
    return problems


def _wrong_in_section(text: str, task: str, places: int) -> Iterator[str]:
    """What is wrong with the section of a task that has so many places in the code."""
    if "**Write**" not in texts.task_section(text, task):
        yield "It is not said what to write, in a paragraph that begins with **Write**."
    rungs = texts.ladder(text, task)
    titles = [rung.title for rung in rungs]
    if titles != list(RUNGS):
        yield f"Its <details> are {', '.join(titles) or 'not there'}. They should be: {', '.join(RUNGS)}."
    for rung in rungs:
        count = len(texts.LISTING.sub("", rung.text).split())
        if rung.title.startswith("Hint") and not WORDS[0] <= count <= WORDS[1]:
            yield f"{rung.title} has {count} words, listings left out. It should have {WORDS[0]} to {WORDS[1]}."
    if titles[-1:] == ["Solution"]:
        count = len(texts.solution(text, task))
        if count != places:
            yield f"Its solution has {count} listings, and the task has {places} places in the reference: one for each."


def broken_code(chapter: Chapter) -> Problems:
    """ "Break it" has two broken bodies at least, each of a task, and for each what the grader says."""
    text = read_source(chapter.text)
    section = re.search(r"^## Break it\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if section is None:
        return []
    first = text.count("\n", 0, section.start(1))
    listings = texts.listings(section.group(1))
    bodies = [listing for listing in listings if listing.language == "python"]
    problems = []
    for listing in bodies:
        task = re.match(r"# (\d\d\.\d+)\n", listing.code)
        if task is None or task.group(1) not in [task.id for task in chapter.tasks]:
            message = f"The first line of broken code is the number of one of the chapter's tasks: # {chapter.number}.1"
            problems.append(in_text(chapter, message, first + listing.line))
    said = sum(listing.language == "text" for listing in listings)
    if len(bodies) < 2 or said != len(bodies):
        message = f'"Break it" has {len(bodies)} broken bodies and {said} listings with what the grader says of them.'
        problems.append(in_text(chapter, f"{message} There should be two or three of each.", first))
    return problems


def _headings(text: str) -> list[tuple[int, str]]:
    """Line and title of the sections, `## ` lines in listings left out."""
    blank = texts.LISTING.sub(lambda match: "\n" * match.group().count("\n"), text)
    return [(n, line[3:].strip()) for n, line in enumerate(blank.split("\n"), 1) if line.startswith("## ")]


def in_text(chapter: Chapter, message: str, line: int | None = None) -> CourseError:
    return CourseError(message, f"chapters/{chapter.slug}.md", line)
