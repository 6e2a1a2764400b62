"""Every known mistake fails at its own task and is named; every right answer, in whatever style, passes.

The mistakes are in wrong/, the other styles in right/: grading/authoring/corpora.py says how they are written. What
each of them gets is in verdicts/, and graded anew where that is out of date.
"""

import re

import pytest

from grading.authoring import check
from grading.authoring.corpora import answers
from grading.course import chapters as course

NAMED_AT_LEAST = 0.90

WRONG = [answer for answer in answers() if answer.kind == "wrong"]
RIGHT = [answer for answer in answers() if answer.kind == "right"]


def place(entry) -> str:
    return f"tests/course/corpora/{entry.kind}/{course.find_chapter(entry.chapter).slug}.md, {entry}"


@pytest.mark.parametrize("entry", WRONG, ids=str)
def test_a_mistake_fails_at_its_own_task(entry, verdict_of):
    places = course.find_task(entry.task)[1].parts
    statuses = verdict_of(entry).statuses
    status = statuses.pop(entry.task, "passed")
    assert status == "failed", f"{place(entry)}: its task is {status}. A check is missing that this mistake fails."
    for other, status in statuses.items():
        if status == "todo":
            assert course.find_task(other)[1].parts == places, other  # it goes back to this very place later on
        else:
            assert status == f"blocked {entry.task}", f"{place(entry)}: {other} fails as well, and should be blocked."


@pytest.mark.parametrize("entry", [answer for answer in WRONG if answer.named], ids=str)
def test_a_mistake_is_named(entry, verdict_of):
    shown = verdict_of(entry).shown
    assert entry.named in shown, f"{place(entry)}: other words are shown than those behind `Named:`."


def test_nine_of_ten_mistakes_are_named():
    """Those that are not yet have an empty line `Named:`."""
    share = sum(bool(answer.named) for answer in WRONG) / len(WRONG)
    assert share >= NAMED_AT_LEAST, f"{share:.1%} of {len(WRONG)}"


@pytest.mark.parametrize("entry", RIGHT, ids=str)
def test_a_right_answer_passes_in_whatever_style(entry, verdict_of):
    verdict = verdict_of(entry)
    assert verdict.outcome == "passed", f"{place(entry)}: {verdict.outcome}, and it is right. {verdict.shown}"


@pytest.mark.parametrize("chapter", course.chapters(), ids=lambda chapter: chapter.number)
def test_there_are_enough_of_both(chapter):
    assert [problem.sentence for problem in check.corpora(chapter)] == []


def test_no_two_answers_of_a_task_have_the_same_name():
    for answers_of_a_kind in (WRONG, RIGHT):
        assert len({str(answer) for answer in answers_of_a_kind}) == len(answers_of_a_kind)


def test_where_a_mistake_was_seen_is_an_address():
    seen = [answer.seen for answer in WRONG if answer.seen]
    assert len(seen) >= 80
    for address in seen:
        assert re.fullmatch(r"https://[a-z0-9.-]+/\S+", address), address
