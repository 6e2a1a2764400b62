"""A mistake in an earlier task is found where it is, and not blamed on the task that it breaks.

A later chapter's task is to blame for nothing: whoever needs it has to do without.
"""

import json

import jsonschema
import pytest

from grading.course import chapters as course
from grading.course.files import read_source
from grading.runner import launch
from grading.runner.outcomes import Outcome, Run
from grading.tutor import screen
from grading.verdict import formats, later
from tests.course.conftest import grade

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
    assert broken.place.file == "meintorch/tensor.py"
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
    chapter, task = course.find_task("06.1")
    assert statuses(grade(chapter, folder, task)) == {"06.1": ("blocked", "02")}


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

    def run(stage, checks, *_):
        source = stage.package.sources["tensor.py"]
        found = {check.name: Outcome(check.name, "passed") for check in checks}
        for i, (name, mistake) in enumerate(spoiled_by.items()):
            if name in found and mistake in source:
                found[name] = Outcome(name, "failed", duration=0.1 if i == quick else 0.2)
        return Run(found)

    monkeypatch.setattr(launch, "run", run)
    assert statuses(grade(chapter, folder, task)) == {"03.2": ("blocked", "02.2")}


# An answer that needs a later chapter, with a piece of the line where it does, and words of what to use in its place.
NEEDS_LATER = {
    "a row that is picked from a product": (
        "03.6",
        "if a.ndim == 1 and b.ndim == 1:\n    return reshape(matmul(a[None, :], b[:, None]), ())\n"
        "if a.ndim == 1:\n    return matmul(reshape(a, (1, a.size)), b)[..., 0, :]\n"
        "return reshape(matmul(a, reshape(b, (b.size, 1))), a.shape[:-1])\n",
        ("a[None, :]", "[..., 0, :]"),
        ("11.1 Indexing", "Indexing a Tensor comes in chapter 11; here: reshape"),
    ),
    "the right class picked by its place": (
        "06.3",
        "picked = log_probabilities[(*np.indices(labels.shape), labels)]\nreturn reduce(-picked, reduction)\n",
        ("picked = log_probabilities[",),
        ("11.1 Indexing", "a product with zeros and ones and a sum"),
    ),
    "a bias that is turned into a row": (
        "05.3",
        "out = x @ self.weight\nreturn out if self.bias is None else out + self.bias[None]\n",
        ("self.bias[None]",),
        ("11.1 Indexing", "here: reshape"),
    ),
    "the products of a stack put together": (
        "03.7",
        "from meintorch.embedding import stack\nrows = reshape(a, (math.prod(a.shape[:-2]), *a.shape[-2:]))\n"
        "sums = stack([matmul(reshape(x, a.shape[-2:]), b) for x in [rows] * len(rows)])\n"
        "return reshape(sums, (*a.shape[:-1], b.shape[-1]))\n",
        ("stack([matmul(",),
        ("11.2 Concatenate", "Putting Tensors together (concatenate, stack) comes in chapter 11; here: reshape"),
    ),
    "a step without a graph": (
        "07.1",
        "from meintorch.grad_mode import no_grad\nwith no_grad():\n    parameter.data -= self.lr * direction\n",
        ("with no_grad():",),
        ("09.1 The switch", "no_grad comes in chapter 09; here: p.data in a step"),
    ),
    "a constant made by detach": (
        "07.1",
        "parameter.data = (parameter.detach() - self.lr * direction).data\n",
        ("parameter.detach()",),
        ("09.4 Detach", "detach comes in chapter 09; here: as_tensor(x.data)"),
    ),
    "a rule that computes with Tensors": (
        "02.4",
        "self.grad += (upstream @ other.T).data\nother.grad += (Tensor(self.data.T) @ upstream.sum(0)).data\n",
        ("upstream @ other.T", "upstream.sum(0)"),
        ("03.6 Vectors", "@ of Tensors that are vectors comes in chapter 03; here: @ of two matrices"),
    ),
    "a mean with a variance in it": (
        "06.1",
        "from meintorch.normalization import gelu\nreturn reduce(gelu(prediction - target), reduction)\n",
        ("gelu(prediction",),
        ("11.8 GELU", "here: relu or tanh"),
    ),
}


@pytest.mark.parametrize("name", NEEDS_LATER)
def test_code_that_needs_a_later_chapter_has_failed_with_its_line_and_what_to_use_instead(package, capsys, name):
    task_id, body, lines, words = NEEDS_LATER[name]
    folder = package("reference", {task_id: body})
    chapter, task = course.find_task(task_id)
    report = grade(chapter, folder, task)
    assert statuses(report) == {task_id: ("failed", None)}
    assert report.next == f"python grader.py hint {task_id}"
    shown = report.tasks[0].first_failure
    for word in words:
        assert word in f"{shown.message} {shown.diagnosis}"
    line = read_source(folder / task.parts[0].file).split("\n")[shown.place.line - 1]
    assert any(piece in line for piece in lines), line
    screen.show_report(report)
    assert words[1] in " ".join(capsys.readouterr().out.split())


def test_what_needs_a_later_chapter_is_a_failure_in_every_form_and_in_the_whole_chapter(package):
    task_id, body, _, words = NEEDS_LATER["a row that is picked from a product"]
    report = grade(course.find_chapter("03"), package("reference", {task_id: body}))
    found = statuses(report)
    assert found.pop("03.6") == ("failed", None)
    assert set(found.values()) <= {("passed", None), ("blocked", "03.6")}
    assert report.next == "python grader.py hint 03.6"
    document = report.as_json()
    jsonschema.validate(document, json.loads(read_source(course.ROOT / "grading" / "report_v1.schema.json")))
    tests = next(one for one in document["tasks"] if one["id"] == "03.6")["tests"]
    failed = [test for test in tests if test["status"] != "passed"]
    assert {test["status"] for test in failed} == {"failed"}
    assert all(words[1] in test["diagnosis"] for test in failed)
    assert formats.junit([report]).count(words[1]) >= len(failed)
    assert formats.gradescope([report])["score"] == report.score
    of_task = [one["status"] for one in formats.exercism(report)["tests"] if one["task_id"] == 6]
    assert of_task.count("fail") == len(failed) == len(of_task) - of_task.count("pass")


def test_where_an_earlier_chapters_answer_needs_a_later_one_that_answer_is_named(package):
    task_id, body, *_ = NEEDS_LATER["a row that is picked from a product"]
    chapter, task = course.find_task("03.8")
    assert statuses(grade(chapter, package("reference", {task_id: body}), task)) == {"03.8": ("blocked", "03.6")}


def test_a_task_that_there_is_not_is_not_waited_for(package):
    chapter, task = course.find_task("03.2")
    report = grade(chapter, package("reference", {"03.2": 'x = 1\nraise NotImplementedError("TODO 99.1")\n'}), task)
    assert statuses(report) == {"03.2": ("todo", None)}  # the line stands in its own place


def test_of_its_own_chapter_a_task_may_need_a_later_one_but_next_stays_where_the_learner_is(package, capsys):
    body = "from meintorch.matmul import dot\nones = np.ones(x.size)\nreturn dot(reshape(x, (x.size,)), ones) / count\n"
    chapter, task = course.find_task("03.2")
    report = grade(chapter, package("reference", {"03.2": body, "03.6": "stub"}), task)
    assert statuses(report) == {"03.2": ("blocked", "03.6")}
    assert report.next == "python grader.py hint 03.2"
    screen.show_report(report)
    assert "03.6 comes after 03.2. Write it first, or do without it here." in " ".join(capsys.readouterr().out.split())


def test_what_comes_later_is_said_of_tasks_that_there_are():
    known = {task.id for chapter in course.chapters() for task in chapter.tasks if not task.revisits}
    assert later.INSTEAD.keys() <= known
