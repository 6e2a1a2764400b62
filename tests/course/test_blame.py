"""A mistake in an earlier task is found where it is, and not blamed on the task that it breaks."""

import pytest

from grading import course, launch
from grading.files import read_source
from grading.launch import Result, Run
from grading.report import grade

NO_KEEPDIMS = "while gradient.ndim > len(shape):\n    gradient = gradient.sum(axis=0)\nreturn gradient\n"
SAME_SHAPE = "x.grad += upstream\n"
ONE_FACTOR = "self.grad += unbroadcast(other.data * upstream, self.shape)\n"
TWICE = "x.grad += 2.0 * np.ones_like(x.data)\n"


def statuses(report) -> dict:
    return {one.task.id: (one.status, one.needs) for one in report.tasks}


def test_a_mistake_of_an_earlier_chapter_is_named_with_its_place(package):
    folder = package("reference", {"02.5": NO_KEEPDIMS})
    report = grade(course.find_chapter("03"), folder)
    found = statuses(report)
    assert found.pop("03.5") == ("blocked", "02.5")
    assert set(found.values()) == {("passed", None)}
    broken = next(one for one in report.tasks if one.task.id == "03.5").first_failure
    assert broken.location["file"] == "meintorch/tensor.py"
    assert report.next == "python grader.py 02.5"


def test_a_task_asked_for_alone_is_not_blamed_for_an_earlier_one_of_its_chapter(package):
    folder = package("reference", {"03.3": SAME_SHAPE})
    chapter, task = course.find_task("03.7")
    assert statuses(grade(chapter, folder, task)) == {"03.7": ("blocked", "03.3")}


def test_a_task_that_is_wrong_itself_is_blamed_whatever_is_wrong_before_it(package):
    folder = package("reference", {"02.5": NO_KEEPDIMS, "03.3": SAME_SHAPE})
    found = statuses(grade(course.find_chapter("03"), folder))
    assert found["03.3"] == ("failed", None)
    assert found["03.5"] == ("blocked", "02.5")


def test_a_changed_given_line_of_an_earlier_chapter_is_placed_in_that_chapter(package):
    folder = package("reference")
    path = folder / "tensor.py"
    given = "out = Tensor(self.data * other.data"
    path.write_text(path.read_text(encoding="utf-8").replace(given, f"{given} * 2.0"), encoding="utf-8")
    chapter, task = course.find_task("03.2")
    assert statuses(grade(chapter, folder, task)) == {"03.2": ("blocked", "02")}


def test_a_task_that_an_earlier_chapter_has_not_done_yet_is_waited_for(package):
    folder = package("reference", {"02.3": "stub"})
    found = statuses(grade(course.find_chapter("03"), folder))
    assert found["03.7"] == ("blocked", "02.3")
    assert found["03.1"] == ("passed", None)


def test_the_engine_that_the_nodes_are_compared_with_is_blamed_where_it_is_the_wrong_one(package):
    """A mistake in the closures leaves every task of chapter 10 but the last alone."""
    for task, body in (("02.2", ONE_FACTOR), ("02.5", NO_KEEPDIMS), ("03.1", TWICE)):
        found = statuses(grade(course.find_chapter("10"), package("reference", {task: body})))
        assert found.pop("10.8") == ("blocked", task)
        assert set(found.values()) == {("passed", None)}


@pytest.mark.parametrize("quick", [0, 1])
def test_of_two_earlier_mistakes_the_later_is_blamed_whichever_test_fails_the_quicker(package, monkeypatch, quick):
    """One test of a task needs 02.1, another 02.2. To say so without knowing such a task, the tests are not run."""
    folder = package("reference", {"02.1": "self.grad += 1.0\n", "02.2": "self.grad += 2.0\n"})
    chapter, task = course.find_task("03.2")
    spoiled_by = dict(
        zip(
            [check.name for check in chapter.checks if check.task == task.id],
            ("self.grad += 1.0\n", "self.grad += 2.0\n"),
        )
    )

    def run(stage, chapter, checks, *_):
        source = read_source(stage / "meintorch" / "tensor.py")
        found = {check.name: Result(check.name, "passed") for check in checks}
        for i, (name, mistake) in enumerate(spoiled_by.items()):
            if name in found and mistake in source:
                found[name] = Result(name, "failed", duration=0.1 if i == quick else 0.2)
        return Run(found)

    monkeypatch.setattr(launch, "run", run)
    assert statuses(grade(chapter, folder, task)) == {"03.2": ("blocked", "02.2")}
