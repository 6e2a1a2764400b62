"""Every known mistake fails at its own task and is named; every right answer, in whatever style, passes.

The mistakes are in wrong/, the other styles in right/, a Markdown file for each chapter: a heading with the task and a
name, for a mistake a line with words of the diagnosis that it must get, and the body of the task. "Only with --goal."
stands where the milestone tests let a mistake pass, and "Seen:" before the address of a public page where it was made.
"""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

from grading.authoring import check
from grading.course import chapters as course
from grading.course import texts
from grading.course.files import read_source
from grading.verdict.judge import grade
from tests.course.conftest import answer

HERE = Path(__file__).parent
NAMED_AT_LEAST = 0.90


@dataclass(frozen=True)
class Answer:
    task: str
    name: str
    named: str  # of a mistake: words of its diagnosis; empty where none is known yet
    bodies: tuple[str, ...]
    goal: bool  # of a mistake: the milestone tests let it pass, --goal does not
    seen: str  # of a mistake: a public page where somebody made it; empty where it is an observation of our own

    def __str__(self) -> str:
        return f"{self.task} {self.name}"


def answers(folder: str) -> list[Answer]:
    found = []
    for path in sorted((HERE / folder).glob("*.md")):
        for section in re.split(r"^## ", read_source(path), flags=re.MULTILINE)[1:]:
            task, _, name = section.partition("\n")[0].partition(" ")
            named, seen = (re.search(rf"^{word}:(.*)$", section, re.MULTILINE) for word in ("Named", "Seen"))
            bodies = tuple(listing.code for listing in texts.listings(section))
            goal = re.search(r"^Only with --goal\.$", section, re.MULTILINE) is not None
            named, seen = (line.group(1).strip() if line else "" for line in (named, seen))
            found.append(Answer(task, name, named, bodies, goal, seen))
    return found


WRONG, RIGHT = answers("wrong"), answers("right")


@pytest.fixture(scope="module")
def report_of(tmp_path_factory, request):
    """A function that returns an answer's report. All that are asked for are graded beforehand, two at a time.

    A right answer is checked with its whole chapter and --goal, a mistake with its own task, and every eighth mistake
    with its whole chapter: does it fail nowhere else?
    """
    wanted = {item.callspec.params["one"] for item in request.session.items if "report_of" in item.fixturenames}
    wanted = sorted(wanted, key=str)

    def report(one: Answer):
        package = tmp_path_factory.mktemp("package") / "meintorch"
        shutil.copytree(course.REFERENCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        answer(package, one.task, list(one.bodies))
        chapter, task = course.find_task(one.task)
        whole = one in RIGHT or crc32(str(one).encode()) % 8 == 0  # by name: a new one changes nothing for the others
        return grade(chapter, package, None if whole else task, goal=one in RIGHT or one.goal, timeout=60.0)

    tmp_path_factory.getbasetemp()  # made here, and not by two threads at once
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(wanted, pool.map(report, wanted))).__getitem__


def what_is_shown(report, task: str) -> str:
    """The text of a task's first failure, as the learner sees it."""
    shown = next(one for one in report.tasks if one.task.id == task).first_failure
    return " ".join(f"{shown.message} {shown.diagnosis or ''}".split()) if shown else ""


@pytest.mark.parametrize("one", WRONG, ids=str)
def test_a_mistake_fails_at_its_own_task(one, report_of):
    places = course.find_task(one.task)[1].parts
    for other in report_of(one).tasks:
        if other.task.id == one.task:
            assert other.status == "failed"
        elif other.task.parts == places and other.status == "todo":
            pass  # it goes back to this very place later on
        else:
            assert (other.status, other.needs) in (("passed", None), ("blocked", one.task)), (other.task.id, other)


@pytest.mark.parametrize("one", [one for one in WRONG if one.named], ids=str)
def test_a_mistake_is_named(one, report_of):
    assert one.named in what_is_shown(report_of(one), one.task)


def test_nine_of_ten_mistakes_are_named():
    """Those that are not yet have an empty line `Named:`."""
    share = sum(bool(one.named) for one in WRONG) / len(WRONG)
    assert share >= NAMED_AT_LEAST, f"{share:.1%} of {len(WRONG)}"


@pytest.mark.parametrize("one", RIGHT, ids=str)
def test_a_right_answer_passes_in_whatever_style(one, report_of):
    report = report_of(one)
    assert report.passed, [result for task in report.tasks for result in task.results if result.status != "passed"]


@pytest.mark.parametrize("chapter", course.chapters(), ids=lambda chapter: chapter.number)
def test_there_are_enough_of_both(chapter):
    assert [problem.sentence for problem in check.corpora(chapter)] == []


def test_where_a_mistake_was_seen_is_an_address():
    seen = [one.seen for one in WRONG if one.seen]
    assert len(seen) >= 80
    for address in seen:
        assert re.fullmatch(r"https://[a-z0-9.-]+/\S+", address), address
