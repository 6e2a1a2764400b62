"""The commands of grader.py, run as a learner runs them, in a copy of the course."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as xml

import jsonschema
import pytest

from grading import cli
from grading.authoring.corpora import put_answer
from grading.course import chapters as course
from grading.course.files import read_source
from grading.runner import stage, warm
from grading.tutor import memory, progress, screen
from grading.verdict import formats
from grading.verdict.results import Result, TaskReport
from grading.verdict.sentences import sentence_of
from tests.course.conftest import copy_the_course, grade, run_the_grader

SCHEMA = json.loads((course.ROOT / "grading" / "report_v1.schema.json").read_text(encoding="utf-8"))
OVERWRITING = "self.grad = unbroadcast(other.data * upstream, self.shape)\nother.grad = self.data * upstream\n"


OWN_STYLE = "a = unbroadcast(upstream, self.shape)\nself.grad += a\nother.grad += unbroadcast(upstream, other.shape)\n"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A course as it comes, in which some commands have been given: "shown", by the command, and "files", one by one.

    Tests leave it as it is.
    """

    def files() -> set[Path]:
        return {path for path in folder.rglob("*") if ".grader" not in path.parts and "__pycache__" not in path.parts}

    folder = copy_the_course(tmp_path_factory.mktemp("fresh") / "course")
    before = files()
    commands = ("", "01", "02", "hint 01.6", "--help", "doctor", "02 --solution")
    shown = {command: run_the_grader(folder, *command.split()) for command in commands}
    return SimpleNamespace(shown=shown, before=before, after=files())


def lines_of(text: str) -> list[str]:
    """The lines of an output with their spaces collapsed."""
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


def test_the_first_check_says_what_is_to_do(fresh):
    done = fresh.shown["01"]
    assert done.returncode == 1
    assert done.stderr == ""
    assert "Traceback" not in done.stdout
    for task in course.find_chapter("01").tasks:
        assert f"to do {task.id} {task.title}" in lines_of(done.stdout)
    assert "python grader.py hint 01.1" in done.stdout
    assert re.search(r"meintorch/value.py, line \d+", done.stdout)


def test_a_finished_chapter_is_passed(grader, checkout):
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    done = grader("02")
    assert done.returncode == 0
    assert any(re.fullmatch(r"passed 02.2 Multiply \d+ checks", line) for line in lines_of(done.stdout))
    assert re.search(r"(\d+) of \1 checks", done.stdout)


def test_the_reference_passes_with_solution_and_nothing_of_the_learners_is_needed(grader, checkout):
    shutil.rmtree(checkout / "meintorch")
    assert grader("02", "--solution").returncode == 0


def test_a_failure_shows_evidence_place_cause_and_next_step(grader, checkout):
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    put_answer(checkout / "meintorch", "02.2", OVERWRITING)
    shown = grader("02").stdout
    place = read_source(checkout / "meintorch" / "tensor.py").split("\n").index(" " * 12 + OVERWRITING.split("\n")[0])
    assert "02.2 Multiply: a tensor times itself gets both shares" in shown
    assert f"meintorch/tensor.py, line {place + 1}" in shown
    assert "x.grad is [3.0, 4.0], expected [6.0, 8.0]" in shown
    assert "Is there an = where += belongs?" in " ".join(shown.split())
    assert "Next: python grader.py hint 02.2" in shown


def test_a_task_that_fails_because_of_an_earlier_one_is_blocked_and_not_blamed(grader, checkout):
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    put_answer(checkout / "meintorch", "02.2", OVERWRITING)
    report = json.loads(grader("02", "--json").stdout)
    statuses = {task["id"]: (task["status"], task["needs"]) for task in report["tasks"]}
    assert statuses["02.2"] == ("failed", None)
    assert statuses["02.3"] == ("blocked", "02.2")


def test_a_raise_left_below_the_answer_is_pointed_out(grader, checkout):
    put_answer(checkout / "meintorch", "02.1", 'self.grad += upstream\nraise NotImplementedError("TODO 02.1")\n')
    shown = grader("02.1").stdout
    assert "to do 02.1 Add" in lines_of(shown)
    assert "so is the stub's own `raise` line" in " ".join(shown.split())


def test_one_task_is_checked_alone(grader):
    done = grader("02.2", "--json")
    assert [task["id"] for task in json.loads(done.stdout)["tasks"]] == ["02.2"]
    assert done.returncode == 1


@pytest.mark.parametrize("words", [["01"], ["02", "--goal"], ["02.1", "--solution"]])
def test_json_is_one_document_of_the_published_form(grader, words):
    done = grader(*words, "--json")
    assert done.stderr == ""
    jsonschema.validate(json.loads(done.stdout), SCHEMA)


def test_json_of_all_holds_every_chapter(grader):
    document = json.loads(grader("all", "--json").stdout)
    assert document["schema"] == "meintorch/report/v1"
    assert document["passed"] is False
    assert [one["chapter"] for one in document["chapters"]] == [chapter.number for chapter in course.chapters()]
    for one in document["chapters"]:
        jsonschema.validate(one, SCHEMA)


def test_json_of_a_file_that_cannot_be_read_says_why(grader, checkout):
    (checkout / "meintorch" / "tensor.py").write_text("def f(:\n", encoding="utf-8")
    document = json.loads(grader("02", "--json").stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["not_gradable"]["location"] == {"file": "meintorch/tensor.py", "line": 1}
    assert document["score"] == 0


def test_a_slip_in_a_later_chapter_breaks_nothing_in_an_earlier_one(grader, checkout):
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    (checkout / "meintorch" / "shapes.py").write_text("def f(:\n", encoding="utf-8")
    assert grader("03").returncode == 1
    assert grader("02").returncode == 0


def test_the_map_counts_and_shows_where_you_are(fresh, grader, checkout):
    shown = fresh.shown[""].stdout
    total = sum(not check.goal for chapter in course.chapters() for check in chapter.checks)
    assert f"0 of {total} checks" in shown
    assert re.search(r"01 Value \.{20} 0 of \d+ you are here", " ".join(shown.split()))
    put_answer(checkout / "meintorch", "01.1", "reference")
    first = grader().stdout
    done = sum(check.task == "01.1" and not check.goal for check in course.find_chapter("01").checks)
    assert re.search(rf"01 Value #+\.+ {done} of \d+ you are here", " ".join(first.split()))
    assert grader().stdout == first


def test_what_a_chapter_came_to_is_remembered_until_something_changes_that_it_depends_on(package, monkeypatch):
    folder = package("stubs")
    monkeypatch.setattr(progress, "PACKAGE", folder)
    chapters = course.chapters()
    before = {chapter.number: progress.digest_of(chapter) for chapter in chapters}
    put_answer(folder, "06.1", "reference")
    after = {chapter.number: progress.digest_of(chapter) for chapter in chapters}
    assert [number for number in before if after[number] != before[number]] == [one.number for one in chapters[5:]]


@pytest.mark.skipif(not warm.available(), reason="there is no fork")
def test_the_first_run_starts_alone_and_those_after_it_are_forks_where_there_can_be(package, monkeypatch):
    started = []

    def start(config):
        started.append(warm.start_after_the_first(config))
        return started[-1]

    def refuse():
        raise OSError("Too many open files")

    monkeypatch.setattr(warm, "_of_thread", threading.local())
    folder = package("reference")
    for _ in range(3):
        assert grade(course.find_chapter("02"), folder, start=start).passed
    waiting = warm._of_thread.warm.process
    warm.let_go()
    assert waiting.returncode is not None
    monkeypatch.setattr(warm, "Warm", refuse)
    assert grade(course.find_chapter("02"), folder, start=start).passed
    alone = [isinstance(one, subprocess.Popen) for one in started]
    assert alone == [True, False, False, True]


def test_package_checks_another_folder(grader, package):
    done = grader("02.1", "--package", package("reference"))
    assert done.returncode == 0


def test_hints_come_one_after_the_other(grader):
    shown = [grader("hint", "02.2").stdout for _ in range(5)]
    assert ["Hint 1" in shown[0], "Hint 2" in shown[1], "Hint 3" in shown[2]] == [True] * 3
    assert "Solution" in shown[3] and "self.grad" in shown[3]
    assert shown[4] == shown[3]
    assert "Hint 1" in grader("hint", "02.1").stdout
    assert "Hint 2" in grader("hint", "02.2", "2").stdout
    assert "Hint 3" in grader("hint", "02.2").stdout
    grader("reset", "02.2")
    assert "Hint 1" in grader("hint", "02.2").stdout


def test_diff_shows_what_passed_and_hides_the_rest_until_spoiled(grader, checkout):
    put_answer(checkout / "meintorch", "02.1", OWN_STYLE)
    hidden = grader("diff", "02")
    assert "a = unbroadcast(upstream, self.shape)" in hidden.stdout
    assert "if self.requires_grad:" in hidden.stdout
    assert "02.2 Multiply" not in hidden.stdout
    assert "--spoil" in hidden.stdout
    assert hidden.returncode == 1
    assert "self.grad += unbroadcast(other.data * upstream" in grader("diff", "02", "--spoil").stdout


def test_diff_stands_side_by_side_on_a_wide_screen(grader, checkout):
    put_answer(checkout / "meintorch", "02.1", OWN_STYLE)
    wide = grader("diff", "02.1", env={**os.environ, "COLUMNS": "160"}).stdout
    assert re.search(r"a = unbroadcast\(upstream, self.shape\) +if self.requires_grad:", wide)


def test_diff_of_a_package_for_instructors(grader, package):
    done = grader("diff", "02", "--package", package("reference"))
    assert done.stdout.count("the same as the reference") == 5
    assert done.returncode == 0


def test_a_place_that_two_tasks_go_back_to_is_shown_once(grader, checkout, package):
    done = grader("diff", "09", "--package", package("reference")).stdout
    assert done.count("while stack:") == 1
    assert "09.8 Back to 02.3: let go   the same place as 09.7, above" in done
    shutil.copytree(course.REFERENCE, checkout / "meintorch", dirs_exist_ok=True)
    done = grader("explain", "09").stdout
    assert done.count("while stack:") == 1
    assert "In the same place as 09.7, above." in done
    assert "\n      def backward(self" in done


def test_names_of_functions_keep_their_underscores():
    assert sentence_of("test_no_grad_stops_the_recording") == "no_grad stops the recording"
    assert sentence_of("test_goal_stable_log_softmax_is_finite") == "stable_log_softmax is finite"
    assert sentence_of("test_each_factor_gets_its_partner") == "each factor gets its partner"


def test_no_line_ends_inside_of_an_array_that_fits_on_one(capsys):
    array = "[" + ", ".join(["0.125"] * 8) + "]"
    screen.paragraph(f"softmax(z, -1) of one row: the result is {array}, expected {array}")
    assert [line.strip() for line in capsys.readouterr().out.split("\n")] == [
        "softmax(z, -1) of one row: the result is",
        f"{array}, expected",
        array,
        "",
    ]
    rows = [f"[{', '.join(['0.125'] * 6)}]"] * 4
    screen.paragraph(f"x.grad is [{', '.join(rows)}]")
    shown = capsys.readouterr().out.rstrip().split("\n")
    assert len(shown) == 4
    assert all(line.count("[0.125") == line.count("0.125]") == 1 for line in shown)
    screen.paragraph("a ] stands alone, and so [ does this: " + "word " * 30)
    assert max(map(len, capsys.readouterr().out.split("\n"))) <= screen.WIDTH


def test_a_failure_is_placed_where_its_check_looks(grader, package):
    body = "for parameter in parameters:\n    parameter.data = change[: parameter.size].reshape(parameter.shape)\n"
    folder = package("reference", {"13.1": ["reference", body]})
    done = json.loads(grader("13.1", "--package", folder, "--json").stdout)
    failed = next(
        one for one in done["tasks"][0]["tests"] if one["name"] == "test_devectorize_parameters_adds_a_vector"
    )
    line = failed["location"]["line"]  # of the task's comment
    assert "parameter.data = change[" in "\n".join(read_source(folder / "control.py").split("\n")[line : line + 3])


def test_a_failure_is_shown_at_a_simpler_check_than_the_milestone():
    milestone = Result("test_milestone", "failed", diagnosis="a cause")
    simple = Result("test_simple", "failed", diagnosis="a cause")
    assert TaskReport(None, "failed", [milestone, simple], milestone="test_milestone").first_failure is simple
    simple.diagnosis = None
    assert TaskReport(None, "failed", [milestone, simple], milestone="test_milestone").first_failure is milestone


def test_reset_brings_the_stub_back_and_keeps_what_was_there(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    stub = read_source(path)
    put_answer(checkout / "meintorch", "02.2", "mine = 1  # three hours of work\n")
    before = read_source(path)
    done = grader("reset", "02.2")
    assert done.returncode == 0
    assert read_source(path) == stub
    kept = re.search(r"kept in (\S+)", done.stdout).group(1)
    assert (checkout / kept).read_text(encoding="utf-8") == before
    assert "nothing to do" in grader("reset", "02.2").stdout


def test_reset_of_one_task_leaves_the_others_and_the_helpers_alone(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    put_answer(checkout / "meintorch", "02.1", "self.grad += upstream\n")
    put_answer(checkout / "meintorch", "02.2", "return helper(self, other, upstream)\n")
    text = read_source(path).replace("# TODO 02.3", "# my own words") + "\n\ndef helper(a, b, c):\n    pass\n"
    path.write_text(text, encoding="utf-8")
    assert grader("reset", "02.2").returncode == 0
    after = read_source(path)
    assert "self.grad += upstream\n" in after
    assert "def helper(a, b, c):" in after
    assert "# my own words" in after
    assert "return helper" not in after


def test_reset_does_not_touch_a_file_that_cannot_be_read_but_offers_the_whole_one(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    stub = read_source(path)
    path.write_text("def f(:\n", encoding="utf-8")
    done = grader("reset", "02.2")
    assert done.returncode == 1
    assert "python grader.py reset 02" in done.stdout
    assert path.read_text(encoding="utf-8") == "def f(:\n"
    done = grader("reset", "02")
    assert done.returncode == 0
    assert read_source(path) == stub
    kept = re.search(r"kept in (\S+)", done.stdout).group(1)
    assert (checkout / kept).read_text(encoding="utf-8") == "def f(:\n"


def test_reset_in_a_file_indented_with_tabs_leaves_a_file_that_python_reads(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    text = re.sub(r"^( +)", lambda m: "\t" * (len(m[1]) // 4) + " " * (len(m[1]) % 4), read_source(path), flags=re.M)
    path.write_text(text, encoding="utf-8")
    put_answer(checkout / "meintorch", "02.2", "self.grad = upstream\n")
    assert "failed 02.2 Multiply" in " ".join(grader("02").stdout.split())
    assert grader("reset", "02.2").returncode == 0
    compile(read_source(path), "tensor.py", "exec")
    assert "to do 02.2 Multiply" in " ".join(grader("02").stdout.split())


def test_reset_brings_a_deleted_file_back_and_keeps_windows_line_endings(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    path.unlink()
    assert "python grader.py reset 02.1" in grader("02").stdout
    assert grader("reset", "02").returncode == 0
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").replace(b"# TODO 02.2", b"# mine"))
    assert grader("reset", "02.2").returncode == 0
    data = path.read_bytes()
    assert b"# TODO 02.2" in data
    assert data.count(b"\n") == data.count(b"\r\n")


def test_reset_all_brings_every_stub_back(grader, checkout):
    for task in ("01.1", "02.2"):
        put_answer(checkout / "meintorch", task, "reference")
    before = {name: read_source(checkout / "meintorch" / name) for name in ("value.py", "tensor.py")}
    done = grader("reset", "all")
    assert done.returncode == 0
    assert grader("stubs", "--check").returncode == 0
    kept = re.findall(r"is kept in (\S+)", done.stdout)
    assert sorted(read_source(checkout / name) for name in kept) == sorted(before.values())


def test_of_a_task_with_two_places_a_wrong_answer_shows_though_the_other_is_to_do(grader, checkout):
    path = checkout / "meintorch" / "value.py"
    stub = """            raise NotImplementedError("TODO 01.4")"""
    path.write_text(read_source(path).replace(stub, "            self.grad += result + upstream", 1), encoding="utf-8")
    for words in (["01"], ["01.4"]):
        shown = grader(*words).stdout
        assert "failed 01.4 exp and tanh" in " ".join(shown.split())
        assert "self.grad is" in shown or "x.grad is" in shown
        assert "None" not in shown


def test_a_hint_without_a_task_is_for_the_one_you_are_at(grader, checkout):
    leave_only(checkout, "01", "02")
    put_answer(checkout / "meintorch", "01.1", "reference")
    assert "01.2 Multiply" in grader("hint").stdout


def test_catch_up_leaves_what_a_later_chapter_improves_in_its_earlier_form(grader, checkout):
    leave_only(checkout, "02", "09")
    assert grader("catch-up", "09").returncode == 0
    report = json.loads(grader("09", "--json").stdout)
    assert {task["status"] for task in report["tasks"]} == {"todo"}
    assert grader("02").returncode == 0


def leave_only(checkout: Path, *numbers: str) -> None:
    """Take the other chapters out of a course, where what they are about does not matter. It saves their runs."""
    for path in (checkout / "chapters").glob("*.md"):
        if path.name[:2] not in numbers:
            path.unlink()


def test_reset_of_a_task_that_goes_back_says_which_stub_is_there_again(grader, checkout):
    put_answer(checkout / "meintorch", "02.3", "reference")
    shown = grader("reset", "09.8").stdout
    assert "meintorch/tensor.py: 02.3 is a stub again." in shown
    assert "09.8 goes back to 02.3" in shown


def test_explain_comes_after_the_answers(grader, checkout):
    done = grader("explain", "02")
    assert done.returncode == 1
    assert "Not yet: 02.1" in done.stdout
    assert "product rule" not in done.stdout
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    done = grader("explain", "02")
    assert done.returncode == 0
    assert "Product rule - the partner is the local factor." in done.stdout
    assert "out = Tensor(self.data * other.data, (self, other)" in done.stdout
    assert "AddBackward0" in done.stdout
    assert "AddBackward0" not in grader("explain", "02.2").stdout


def test_catch_up_keeps_what_passes_and_fills_in_the_rest(grader, checkout):
    leave_only(checkout, "02", "03", "04")
    package = checkout / "meintorch"
    put_answer(package, "02.1", OWN_STYLE)
    put_answer(package, "02.2", "self.grad += upstream\nother.grad += upstream\n")
    before = read_source(package / "tensor.py")
    done = grader("catch-up", "04")
    assert done.returncode == 0, done.stdout
    assert "a = unbroadcast(upstream, self.shape)" in read_source(package / "tensor.py")
    assert "02.2" in done.stdout
    assert "02.1," not in done.stdout
    kept = re.findall(r"is kept in (\S*tensor\S*)", done.stdout)
    assert [read_source(checkout / name) for name in kept] == [before]
    found = json.loads(grader("all", "--json").stdout)["chapters"]
    assert [(one["chapter"], one["passed"]) for one in found] == [("02", True), ("03", True), ("04", False)]
    assert "04_softmax" in done.stdout
    assert "nothing to do" in grader("catch-up", "04").stdout


def test_catch_up_takes_a_file_whole_that_cannot_be_read_or_is_not_the_courses_any_more(grader, checkout):
    package = checkout / "meintorch"
    (package / "value.py").write_text("half a thought (", encoding="utf-8")
    mlp = read_source(package / "mlp.py").replace("def accuracy(", "def share(")
    (package / "mlp.py").write_text(mlp, encoding="utf-8")
    done = grader("catch-up", "02")
    assert done.returncode == 0
    assert "the whole file" in done.stdout
    assert grader("01").returncode == 0
    kept = re.findall(r"is kept in (\S+)", done.stdout)
    assert {read_source(checkout / name) for name in kept} == {"half a thought (", mlp}


def test_junit_xml_holds_every_check_and_what_is_to_do_is_no_pass(grader, checkout, tmp_path):
    put_answer(checkout / "meintorch", "02.1", "reference")
    file = tmp_path / "result.xml"
    assert grader("02", "--junitxml", file).returncode == 1
    suite = xml.parse(file).getroot()[0]
    assert int(suite.get("tests")) == len(suite) == sum(not check.goal for check in course.find_chapter("02").checks)
    passed = [case for case in suite if len(case) == 0]
    assert {case.get("classname") for case in passed} == {"02.1"}
    assert int(suite.get("failures")) + int(suite.get("errors")) == len(suite) - len(passed)


def test_gradescope_gets_a_point_for_every_check(grader, checkout):
    put_answer(checkout / "meintorch", "02.1", "reference")
    put_answer(checkout / "meintorch", "02.2", OVERWRITING)
    document = json.loads(grader("02", "--format", "gradescope").stdout)
    assert document["score"] == sum(test["score"] for test in document["tests"])
    wrong = next(test for test in document["tests"] if "times itself" in test["name"])
    assert (wrong["score"], wrong["max_score"], wrong["status"]) == (0, 1, "failed")
    assert "expected [6.0, 8.0]" in wrong["output"]


def test_exercism_gets_status_message_and_the_tests_own_code(grader, checkout):
    put_answer(checkout / "meintorch", "02.1", "reference")
    document = json.loads(grader("02.1", "--format", "exercism").stdout)
    assert (document["version"], document["status"], document["message"]) == (3, "pass", None)
    assert {test["task_id"] for test in document["tests"]} == {1}
    assert all(test["test_code"].startswith("def test_") for test in document["tests"])
    path = checkout / "meintorch" / "tensor.py"
    path.write_text("def f(x)\n", encoding="utf-8")
    document = json.loads(grader("02.1", "--format", "exercism").stdout)
    assert document["status"] == "error"
    assert "meintorch/tensor.py, line 1" in document["message"]
    assert "A colon is missing" in document["message"]


def test_every_form_says_so_where_nothing_could_be_run(package):
    folder = package("reference")
    (folder / "tensor.py").write_text("def f(x)\n", encoding="utf-8")
    found = grade(course.find_chapter("02"), folder)
    assert formats.gradescope([found])["score"] == 0
    assert "A colon is missing" in formats.gradescope([found])["output"]
    suite = xml.fromstring(formats.junit([found]).partition("\n")[2])[0]
    assert int(suite.get("errors")) == len(suite) == found.max_score


def test_doctor_finds_a_healthy_machine_and_a_missing_file(grader, checkout):
    assert grader("doctor").returncode == 0
    (checkout / "meintorch" / "mlp.py").unlink()
    done = grader("doctor")
    assert done.returncode == 1
    assert "missing: mlp.py" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["99"], "There is no chapter 99. There are: 01, 02"),
        (["02.9"], "There is no task 02.9. Chapter 02 has: 02.1, 02.2"),
        (["hint", "02"], "hint needs a task, one of 02.1, 02.2"),
        (["hint", "02.2", "02.3"], "There is no hint 02.3"),
        (["hint", "02.2", "1", "2"], "hint needs one"),
        (["reset"], "reset needs one chapter or task"),
        (["juggle"], "There is no command 'juggle'."),
        (["check", "01"], "Did you mean: python grader.py 01"),
        (["hints", "01.1"], "Did you mean: python grader.py hint 01.1"),
        (["hint", "01.1", "5"], "There is no hint 5: 01.1 has 1 to 4"),
        (["02", "03"], "02 stands alone"),
        (["02", "--fast"], "--fast"),
        (["02", "--timeout", "soon"], "--timeout"),
        (["02", "--timeout", "-1"], "--timeout"),
        (["02", "--package", "nowhere"], "there is no such folder"),
        (["02", "--solution", "--package", "meintorch"], "exclude each other"),
        (["02", "--spoil"], "--spoil does not go with 02"),
        (["hint", "02.2", "--json"], "--json does not go with hint"),
    ],
)
def test_wrong_usage_is_said_in_words(grader, words, message):
    done = grader(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_names_the_commands_and_no_other(grader):
    done = grader("--help")
    assert done.returncode == 0
    named = set(re.findall(r"^python grader\.py ([a-z-]+)", done.stdout, re.MULTILINE))
    assert named == set(cli._commands()) - {"map", "check"}
    assert max(map(len, done.stdout.split("\n"))) <= 80


def test_without_numpy_the_way_to_install_it_is_named(grader, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = next(path for path in (tmp_path / "bare").glob("*/python*") if path.stem == "python")
    done = grader("01", python=str(python))
    assert done.returncode == 2
    assert "numpy and pytest cannot be imported" in done.stderr
    assert "python -m pip install -e ." in done.stderr


def test_an_old_python_is_told_so(checkout):
    """The front door has to parse on any Python 3; what an old one says is tried with the version turned back."""
    code = "import sys; sys.version_info = (3, 8, 18); sys.argv = ['grader.py']; exec(open('grader.py').read())"
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "The course needs Python 3.10 or newer. This is Python 3.8.\n"


def test_stubs_refuses_to_overwrite_work_and_finds_differences(grader, checkout):
    assert grader("stubs", "--check").returncode == 0
    assert "Nothing has changed" in grader("stubs").stdout
    put_answer(checkout / "meintorch", "02.2", "mine = 1\n")
    done = grader("stubs")
    assert done.returncode == 1
    assert "tensor.py: task 02.2 is no longer a stub" in done.stdout
    assert "mine = 1" in read_source(checkout / "meintorch" / "tensor.py")
    done = grader("stubs", "--check")
    assert done.returncode == 1
    assert "tensor.py differs" in done.stdout


def test_stubs_keeps_a_copy_of_what_it_overwrites(grader, checkout):
    path = checkout / "meintorch" / "data.py"
    path.write_text(read_source(path) + "\nMINE = 1\n", encoding="utf-8")
    done = grader("stubs")
    kept = re.search(r"kept in (\S+)\)", done.stdout).group(1)
    assert "MINE = 1" in Path(kept).read_text(encoding="utf-8")


def test_stubs_refuses_where_git_shows_uncommitted_edits(grader, checkout):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(checkout)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "start"], check=True)
    path = checkout / "meintorch" / "data.py"
    path.write_text(read_source(path) + "\nMINE = 1\n", encoding="utf-8")
    done = grader("stubs")
    assert done.returncode == 1
    assert "uncommitted edits" in done.stdout
    assert "MINE = 1" in read_source(path)


def test_nothing_is_left_behind_in_the_course_but_the_memory(fresh):
    assert len(fresh.before) > 100
    assert fresh.after == fresh.before


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "cp1252"}, {"LANG": "C", "PYTHONUTF8": "0"}])
def test_any_console_will_do(grader, checkout, environment):
    put_answer(checkout / "meintorch", "02.2", 'raise ValueError("\u00fcber \u2192 \u4e2d")\n')
    done = grader("02.2", env={**os.environ, **environment}, encoding="cp1252", errors="replace")
    assert done.returncode == 1
    assert "ValueError: " in done.stdout


def test_no_line_is_wider_than_80_columns(fresh):
    for command, done in fresh.shown.items():
        assert done.stdout, command
        for line in done.stdout.split("\n"):
            assert len(line) <= 80 or "python" in line.lower(), line


def test_the_course_works_from_a_folder_with_spaces_and_umlauts(checkout):
    moved = checkout.rename(checkout.parent / "\u00dcbung 02 (x)")
    command = [sys.executable, "grader.py", "02", "--solution"]
    done = subprocess.run(command, cwd=moved, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["json.py", "random.py", "argparse.py"])
def test_a_file_of_the_learners_beside_the_grader_does_not_disturb_it(grader, checkout, name):
    (checkout / name).write_text("raise RuntimeError('mine')\n", encoding="utf-8")
    assert grader("02", "--solution").returncode == 0


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (".", "the package is in meintorch: --package meintorch"),
        ("solutions", "the package is in solutions/meintorch: --package solutions/meintorch"),
        ("meintorch/tensor.py", "the package is in meintorch: --package meintorch"),
        ("handed-in", "the package is in handed-in/ada/meintorch: --package handed-in/ada/meintorch"),
        ("README.md", "that is a file, and a folder is wanted"),
        ("empty", "there is no Python file of the course in that folder"),
        ("chapters", "there is no Python file of the course in that folder"),
        ("grading", "there is no Python file of the course in that folder"),
    ],
)
def test_a_folder_without_a_package_is_wrong_usage_and_the_one_that_was_meant_is_named(checkout, folder, words):
    shutil.copytree(course.REFERENCE, checkout / "handed-in" / "ada" / "meintorch")
    (checkout / "README.md").write_text("", encoding="utf-8")
    (checkout / "empty").mkdir()
    done = run_the_grader(checkout, "02", "--package", folder)
    assert done.returncode == 2
    assert words in done.stderr.replace("\\", "/")
    assert done.stdout == ""


def test_ctrl_c_while_a_temporary_folder_is_removed_leaves_nothing_of_it(monkeypatch):
    removed, interrupted = os.rmdir, []

    def rmdir(*arguments, **options):
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        removed(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(KeyboardInterrupt), stage.temporary_folder() as folder:
        (folder / "tests").mkdir()
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_grader_that_is_interrupted_leaves_nothing_behind(checkout, tmp_path, sent):
    put_answer(checkout / "meintorch", "02.1", "import time\nopen('begun', 'w').close()\ntime.sleep(43.21)\n")
    stages = tmp_path / "stages"
    stages.mkdir()
    environment = {**os.environ, "TMPDIR": str(stages)}
    running = subprocess.Popen(
        [sys.executable, "grader.py", "02.1"], cwd=checkout, env=environment, start_new_session=True
    )
    limit = time.monotonic() + 20.0
    while not list(stages.glob("*/scratch/begun")):
        assert time.monotonic() < limit, "the check has not begun"
        time.sleep(0.05)
    running.send_signal(sent)
    assert running.wait(timeout=20) == 1
    assert list(stages.iterdir()) == []
    assert str(stages) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_files_that_have_no_effect_are_mentioned(grader, checkout):
    (checkout / "random.py").write_text("", encoding="utf-8")
    (checkout / "meintorch" / "conftest.py").write_text("", encoding="utf-8")
    assert json.loads(grader("01", "--json").stdout)["notes"] == [
        "random.py beside the package has no effect on the checks.",
        "conftest.py in the package has no effect on the checks.",
    ]


def test_edited_tests_are_mentioned(grader, checkout):
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=checkout, check=True)
    subprocess.run([*git, "add", "."], cwd=checkout, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "as it came"], cwd=checkout, check=True)
    assert "has been edited" not in grader("01").stdout
    path = checkout / "tests" / "test_01_value.py"
    path.write_text(read_source(path).replace("6.0", "3.0"), encoding="utf-8")
    assert "tests/test_01_value.py has been edited: this is not the course's own check." in " ".join(
        grader("01").stdout.split()
    )


def test_deleted_tests_are_no_pass_and_the_way_back_is_named(grader, checkout):
    (checkout / "tests" / "test_02_autograd.py").unlink()
    done = grader("02", "--solution")
    assert done.returncode == 3
    assert "git checkout tests/test_02_autograd.py" in done.stderr
    assert "Traceback" not in done.stderr
    assert grader("03", "--solution").returncode == 0


def test_where_the_course_is_read_only_the_memory_is_elsewhere(monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setattr(os, "access", lambda *_: False)
    memory.remember("hints", {"01.1": 2})
    assert memory.folder().parent == elsewhere
    assert memory.recall("hints") == {"01.1": 2}


def test_it_does_not_matter_from_where_it_is_called(checkout, tmp_path):
    command = [sys.executable, str(checkout / "grader.py"), "02", "--solution"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="the shell's way to close a stream")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_mistake(checkout, closed):
    command = f'"{sys.executable}" grader.py 02.1 --solution {closed}'
    done = subprocess.run(command, shell=True, cwd=checkout, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("place", ["nowhere/result.xml", "grading"])
def test_a_place_where_junit_xml_cannot_be_written_is_said_before_anything_runs(grader, place):
    done = grader("02", "--junitxml", place)
    assert done.returncode == 2
    assert f"--junitxml {place}" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_junit_xml_goes_into_a_pipe_too_and_does_not_replace_it(grader, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    try:
        grader("02.1", "--junitxml", pipe)
        assert pipe.is_fifo()
        checks = [check for check in course.find_chapter("02").checks if check.task == "02.1" and not check.goal]
        assert xml.fromstring(reader.communicate(timeout=20)[0])[0].get("tests") == str(len(checks))
    finally:
        reader.kill()
        reader.communicate()


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b2J", "\ud800", "\uffff", "\u202e", "]]>"])
@pytest.mark.parametrize("where", ["at import", "in a rule"])
def test_whatever_an_error_says_every_form_can_be_read_and_no_terminal_is_steered(package, capsys, where, text):
    folder = package("reference")
    if where == "at import":
        path = folder / "tensor.py"
        line = "raise ValueError('\\ud800')" if text == "\ud800" else f"x = '{text}"
        path.write_text(f"{line}\n{read_source(path)}", encoding="utf-8")
    else:
        put_answer(folder, "02.2", f"raise ValueError({text!a})\n")
    found = grade(course.find_chapter("02"), folder)
    document = formats.junit([found])
    assert xml.fromstring(document.partition("\n")[2].encode("utf-8"))[0].get("name") == "02 Autograd"
    jsonschema.validate(json.loads(json.dumps(found.as_json())), SCHEMA)
    screen.show_report(found)
    assert text == "]]>" or text not in capsys.readouterr().out


def test_diff_of_somebodys_package_does_not_steer_the_terminal(grader, package):
    folder = package("reference", {"02.1": "mine = '\x1b[2J'\nself.grad += upstream\n"})
    shown = grader("diff", "02.1", "--spoil", "--package", folder).stdout
    assert "mine = '?[2J'" in shown


def test_diff_of_an_answer_that_is_nested_too_deeply_to_compare(grader, package):
    folder = package("reference", {"02.1": f"long = {' + '.join(['1'] * 1500)}\n"})
    assert grader("diff", "02.1", "--spoil", "--package", folder).returncode == 1


def test_reset_of_a_file_that_is_nested_too_deeply_offers_the_whole_one(grader, checkout):
    path = checkout / "meintorch" / "tensor.py"
    path.write_text(f"{read_source(path)}\nX = {'+'.join(['1'] * 20_000)}\n", encoding="utf-8")
    done = grader("reset", "02.1")
    assert done.returncode == 1
    assert "nested too deeply" in " ".join(done.stdout.split())
    assert grader("reset", "02").returncode == 0


def test_a_package_that_is_gone_is_missing_and_comes_back(grader, checkout):
    shutil.rmtree(checkout / "meintorch")
    done = grader("01")
    assert done.returncode == 1
    assert "The file is missing" in done.stdout
    assert grader("reset", "all").returncode == 0
    assert grader("01").returncode == 1


def test_a_package_called_dot_has_what_is_in_it_and_beside_it(checkout):
    (checkout / "meintorch" / "random.py").write_text("", encoding="utf-8")
    command = [sys.executable, "../grader.py", "02.1", "--package", ".", "--json"]
    done = subprocess.run(command, cwd=checkout / "meintorch", capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["notes"] == []
