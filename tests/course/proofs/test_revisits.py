"""Tasks that go back to an earlier chapter's: to do while the earlier form is there, and at home in its place."""

import json
import re

import pytest

from grading.authoring.corpora import answers, put_answer
from grading.course import chapters as course
from grading.course import texts
from grading.course.errors import CourseError
from grading.course.files import read_source
from grading.runner import stage
from tests.course.conftest import follow_the_texts, grade

CHAPTER = course.find_chapter("09")
REVISITS = {task.id: task.revisits for task in CHAPTER.tasks if task.revisits}
RIGHT = [answer for answer in answers() if answer.kind == "right" and answer.task in REVISITS.values()]


def follow_the_text(package, last: str) -> None:
    """Fill in the texts' own solutions, up to a task."""
    follow_the_texts(package, last[:2])
    chapter, _ = course.find_task(last)
    for task in chapter.tasks:
        if task.id <= last:
            put_answer(package, task.id, texts.solution(read_source(chapter.text), task.id))


def statuses(report) -> dict:
    return {one.task.id: (one.status, one.needs) for one in report.tasks}


def test_a_task_that_goes_back_has_the_places_of_the_earlier_one():
    assert REVISITS == {"09.6": "02.4", "09.7": "02.3", "09.8": "02.3"}
    for task, earlier in REVISITS.items():
        assert course.find_task(task)[1].parts == course.find_task(earlier)[1].parts
    assert CHAPTER.files == ["grad_mode.py"]


def test_it_is_to_do_as_long_as_the_earlier_form_is_there(package):
    folder = package("stubs")
    follow_the_text(folder, "09.5")
    report = grade(CHAPTER, folder)
    for one in report.tasks:
        assert one.status == ("todo" if one.task.revisits else "passed"), one.task.id
        for result in one.results:
            assert result.status == one.status
            assert (
                not one.task.revisits or f"the code of {one.task.revisits} still has its earlier form" in result.message
            )
    assert report.next == "python grader.py hint 09.6"


@pytest.mark.parametrize("goal", [False, True])
def test_the_final_form_and_the_earlier_one_both_pass_in_the_earlier_chapter(goal, package):
    final = package("stubs")
    follow_the_text(final, "02.5")
    assert grade(course.find_chapter("02"), final, goal=goal).passed
    for task in REVISITS:
        put_answer(final, task, texts.solution(read_source(CHAPTER.text), task))
    assert grade(course.find_chapter("02"), final, goal=goal).passed


@pytest.mark.proof("09")
@pytest.mark.parametrize("answer", RIGHT, ids=str)
def test_whatever_was_right_in_the_earlier_chapter_does_not_show_as_failed(answer, package):
    for found in grade(CHAPTER, package("reference", {answer.task: list(answer.bodies)})).tasks:
        allowed = {"todo"} if found.task.revisits == answer.task else {"passed"}
        if found.task.id == "09.7":
            allowed |= {"passed"}  # some had no recursion to begin with
        assert found.status in allowed, found.task.id


def test_the_file_of_the_earlier_task_is_the_learners_own_when_the_earlier_chapter_is_checked(package, tmp_path):
    folder = package("reference")
    (tmp_path / "stage").mkdir()
    assert isinstance(stage.build(tmp_path / "stage", folder, course.find_chapter("02")), stage.Stage)
    assert read_source(tmp_path / "stage" / "meintorch" / "tensor.py") == read_source(folder / "tensor.py")
    assert "TODO 09.1" in read_source(tmp_path / "stage" / "meintorch" / "grad_mode.py")


def test_a_mistake_in_the_new_form_is_its_own_and_not_the_earlier_tasks(package):
    without_seed = course.find_task("09.7")[1].parts[0].region.body.replace("self.grad += gradient\n", "")
    found = statuses(grade(CHAPTER, package("reference", {"09.7": without_seed})))
    assert found["09.7"] == ("failed", None)
    assert found["09.8"] == ("blocked", "09.7")
    assert found["09.5"] == ("blocked", "09.7")


def test_a_mistake_in_another_earlier_task_is_found_there(package):
    doubled = "self.grad += unbroadcast(2.0 * upstream, self.shape)\nother.grad += unbroadcast(upstream, other.shape)\n"
    found = statuses(grade(CHAPTER, package("reference", {"02.1": doubled})))
    assert found["09.7"] == ("blocked", "02.1")
    assert found["09.8"] == ("blocked", "02.1")


def test_one_that_is_asked_for_alone_is_blamed_alone(package):
    walk = (
        course.find_task("09.8")[1]
        .parts[0]
        .region.body.replace("_after_its_turn(keep_graph)", "_after_its_turn(False)")
    )
    chapter, task = course.find_task("09.8")
    assert statuses(grade(chapter, package("reference", {"09.8": walk}), task)) == {"09.8": ("failed", None)}


def test_the_commands_know_it(grader, checkout):
    follow_the_text(checkout / "meintorch", "09.5")
    shown = " ".join(grader("09").stdout.split())
    assert "to do 09.6 Back to 02.4: no work for constants" in shown
    assert re.search(r"To do next: 09.6 Back to 02.4: no work for constants meintorch/tensor.py, line \d+", shown)
    document = json.loads(grader("09.7", "--json").stdout)
    assert [(task["id"], task["status"]) for task in document["tasks"]] == [("09.7", "todo")]
    assert document["next"] == "python grader.py hint 09.7"
    assert "Hint 1" in grader("hint", "09.7").stdout
    follow_the_text(checkout / "meintorch", "09.7")
    assert "Tensor.backward" in grader("diff", "09.7").stdout
    assert "passed 09.7" in " ".join(grader("09.7").stdout.split())


def test_reset_brings_back_the_stub_of_the_earlier_task_and_of_a_chapter_only_its_own_files(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    follow_the_text(checkout / "meintorch", "09.8")
    before = read_source(path)
    assert grader("reset", "09").returncode == 0
    assert read_source(path) == before
    done = grader("reset", "09.8")
    assert 'raise NotImplementedError("TODO 02.3")' in read_source(path)
    kept = re.search(r"kept in (\S+)", done.stdout).group(1)
    assert read_source(checkout / kept) == before


def test_checks_that_do_not_fit_the_text_are_refused(tmp_path, monkeypatch):
    source = read_source(CHAPTER.tests)
    monkeypatch.setattr(course, "TESTS", tmp_path)
    for old, new in (('"09.7", revisits="02.3"', '"09.7"'), ('"09.1"', '"09.1", revisits="02.3"')):
        (tmp_path / CHAPTER.tests.name).write_text(source.replace(old, new), encoding="utf-8")
        chapter = course.Chapter(CHAPTER.number, CHAPTER.slug, CHAPTER.title, CHAPTER.tasks)
        with pytest.raises(CourseError, match=f"belongs to task {old[1:5]}.*, which chapter 09 does not have"):
            chapter.checks  # noqa: B018
