"""The milestone tests are right: the reference passes them, stubs do not, and every task answers for itself."""

import pytest

from grading.authoring import check
from grading.course.chapters import REFERENCE, chapters, find_task
from tests.course.conftest import grade

EVERY_TASK = [task.id for chapter in chapters() for task in chapter.tasks]


@pytest.mark.proof
@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_the_reference_passes_every_check_and_the_harder_suite(chapter):
    report = grade(chapter, REFERENCE, goal=True)
    assert report.passed, [r for one in report.tasks for r in one.results if r.status != "passed"]
    assert report.score == report.max_score == len(chapter.checks)


@pytest.mark.proof
@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_stubs_fail_every_check_for_the_reason_to_do(chapter, package):
    report = grade(chapter, package("stubs"), goal=True)
    results = [result for one in report.tasks for result in one.results]
    assert {result.status for result in results} == {"todo"}, [r for r in results if r.status != "todo"]
    assert {one.status for one in report.tasks} == {"todo"}
    assert report.score == 0


@pytest.mark.proof
@pytest.mark.parametrize("task", EVERY_TASK)
def test_a_chapter_solved_but_for_one_task_says_which(task, package):
    chapter, asked = find_task(task)
    folder = package("reference", {task: "stub"})
    report = grade(chapter, folder)
    for one in report.tasks:
        if one.task.parts == asked.parts:  # it, and others that go back to the same place
            assert one.status == "todo"
            assert {result.status for result in one.results} == {"todo"}
        else:
            assert one.status in ("passed", "blocked"), (one.task.id, one.results)
            assert one.status == "passed" or one.needs == (asked.revisits or task)


@pytest.mark.proof
@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_every_task_can_be_checked_before_the_later_ones_exist(chapter, package):
    """Local rules first: of a chapter's tasks the first ones pass alone, in the order of the text."""
    folder = package("reference", {task.id: "stub" for task in chapter.tasks[2:]})
    assert [one.status for one in grade(chapter, folder).tasks[:2]] == ["passed", "passed"]


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_chapters_keep_to_their_measure(chapter):
    assert [problem.sentence for problem in check.measure(chapter)] == []


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_the_first_check_of_a_chapter_is_its_milestone_and_every_task_has_checks(chapter):
    assert [problem.sentence for problem in check.tests(chapter)] == []
