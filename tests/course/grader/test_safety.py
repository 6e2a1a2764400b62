"""Packages that hang, crash, cannot be read or cheat: a clear message with its place, and never a pass."""

import os
import sys
import time
from dataclasses import replace
from importlib.machinery import SourceFileLoader

import pytest

from grading.course import chapters as course
from grading.runner import events, launch, outcomes, stage
from grading.runner.events import Event
from tests.course.conftest import grade

AUTOGRAD = course.find_chapter("02")
TIMEOUT = 1.5


def tamper(folder, text: str, name: str = "tensor.py") -> None:
    """Write a line before the code of a module, so that it runs at import."""
    path = folder / name
    path.write_text(f"{text}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("def f(x)", "A colon is missing here."),
        ("x = (1, 2", "'(' was never closed"),
        ("if True:", "A comment alone is not a block"),
        ("self.grad += upstream", "outside of every function"),
        ("return 1", "Compare the spaces"),
        ("import torch", "Zero magic: torch"),
        ("from jax import numpy", "Zero magic: jax"),
        ("import autograd.numpy as np", "Zero magic: autograd"),
        ("from solutions.meintorch import tensor", "cannot import solutions"),
        ("x = 1\0", "NUL byte"),
        ("import sys; sys.exit(0)", "ends Python"),
        ("import os; os._exit(0)", "os._exit() ended Python here"),
        ("raise ValueError('oops')", "ValueError: oops"),
        ("x = unknown", "NameError: name 'unknown'"),
        ("from meintorch.value import Nothing", "ImportError: cannot import name 'Nothing'"),
        ("__import__('torch')", "Zero magic: torch"),
    ],
)
def test_a_module_that_cannot_be_imported_is_not_graded_and_the_line_is_named(package, line, reason):
    folder = package("reference")
    tamper(folder, line)
    report = grade(AUTOGRAD, folder, timeout=TIMEOUT)
    assert not report.passed
    assert reason in report.not_gradable.reason
    assert report.not_gradable.place.file == "meintorch/tensor.py"
    assert report.not_gradable.place.line in (1, 2)
    assert report.score == 0


def test_an_endless_loop_at_import_is_found_and_its_line_named(package):
    folder = package("reference")
    tamper(folder, "while True: pass")
    report = grade(AUTOGRAD, folder, timeout=TIMEOUT)
    assert "Still running after 1.5 seconds" in report.not_gradable.reason
    assert (report.not_gradable.place.file, report.not_gradable.place.line) == ("meintorch/tensor.py", 1)


LOOP = "while True:\n    upstream = upstream + 0.0\n"


def test_an_endless_loop_is_pinned_on_its_task_and_takes_no_other_with_it(package):
    report = grade(AUTOGRAD, package("reference", {"02.2": LOOP}), timeout=TIMEOUT)
    statuses = {one.task.id: (one.status, one.needs) for one in report.tasks}
    assert statuses["02.1"] == ("passed", None)
    assert statuses["02.2"] == ("failed", None)
    assert statuses["02.3"] == ("blocked", "02.2")
    assert statuses["02.4"] == ("passed", None)
    hung = report.tasks[1].first_failure
    assert hung.status == "timeout"
    assert hung.place.file == "meintorch/tensor.py"
    source = (course.REFERENCE / "tensor.py").read_text(encoding="utf-8").split("\n")
    assert (
        abs(hung.place.line - source.index("            # 02.2: product rule - the partner is the local factor.")) <= 2
    )


def test_an_endless_loop_in_a_given_line_ends_within_the_limit(package):
    folder = package("reference")
    path = folder / "tensor.py"
    given = '        out = Tensor(self.data + other.data, (self, other), "+")\n'
    path.write_text(
        path.read_text(encoding="utf-8").replace(given, f"        while True: pass\n{given}"), encoding="utf-8"
    )
    report = grade(AUTOGRAD, folder, timeout=TIMEOUT)
    assert not report.passed
    hung = report.tasks[0].first_failure
    assert hung.status == "timeout"
    assert "while True: pass" in path.read_text(encoding="utf-8").split("\n")[hung.place.line - 1]


def test_os_exit_is_named_with_its_line(package):
    report = grade(AUTOGRAD, package("reference", {"02.2": "import os\nos._exit(0)\n"}), timeout=TIMEOUT)
    crashed = report.tasks[1].first_failure
    assert "os._exit() ended Python here" in crashed.message
    assert crashed.place.file == "meintorch/tensor.py"
    assert report.tasks[0].status == "passed"


def test_a_helper_module_of_the_learners_own_is_welcome(package):
    folder = package(
        "reference",
        {"02.2": "from meintorch.extra.rules import product\n\nproduct(self, other, upstream, unbroadcast)\n"},
    )
    (folder / "extra").mkdir()
    (folder / "extra" / "__init__.py").write_text("", encoding="utf-8")
    rules = "def product(a, b, g, u):\n    a.grad += u(b.data * g, a.shape)\n    b.grad += u(a.data * g, b.shape)\n"
    (folder / "extra" / "rules.py").write_text(rules, encoding="utf-8")
    (folder / "scratch.py").write_text("half a thought (", encoding="utf-8")
    statuses = [one.status for one in grade(AUTOGRAD, folder).tasks]
    assert statuses[:4] == ["passed"] * 4


def test_an_error_in_a_given_line_is_placed_at_the_answer_that_caused_it(package):
    folder = package("reference", {"02.2": "self.grad += other * upstream\n"})
    failed = grade(AUTOGRAD, folder).tasks[1].first_failure
    line = (folder / "tensor.py").read_text(encoding="utf-8").split("\n")[failed.place.line - 1]
    assert line.strip() == "self.grad += other * upstream"


def test_a_breakpoint_is_explained(package):
    failed = grade(AUTOGRAD, package("reference", {"02.2": "breakpoint()\n"})).tasks[1].first_failure
    assert "print() instead" in failed.message


def test_what_the_learner_prints_is_shown_with_the_failure(package):
    body = "print('upstream is', upstream)\nself.grad += upstream\n"
    failed = grade(AUTOGRAD, package("reference", {"02.2": body})).tasks[1].first_failure
    assert failed.output.startswith("upstream is [ 10. 100.]")


SLOW_SEARCH = """order = []


def visit(value):
    time.sleep(0.02)
    if value not in order:
        for child in value._children:
            visit(child)
        order.append(value)


import time

visit(self)
self.grad += 1.0
for value in reversed(order):
    value._backward(value.grad)
"""


def test_a_right_answer_that_is_too_slow_is_told_so_where_it_matters(package):
    """Its own tests pass, so the test that it is too slow for has to show the timeout."""
    report = grade(course.find_chapter("01"), package("reference", {"01.6": SLOW_SEARCH}), timeout=TIMEOUT)
    statuses = {one.task.id: one.status for one in report.tasks}
    assert statuses["01.6"] == "passed"
    assert statuses["01.8"] == "failed"
    slow = report.tasks[7].first_failure
    assert slow.status == "timeout"
    assert slow.place.file == "meintorch/value.py"


def test_a_stub_with_its_words_deleted_is_still_to_do(package):
    report = grade(
        AUTOGRAD, package("reference", {"02.2": "raise NotImplementedError\n", "02.5": "raise NotImplementedError\n"})
    )
    statuses = {one.task.id: (one.status, one.needs) for one in report.tasks}
    assert statuses["02.2"] == statuses["02.5"] == ("todo", None)
    assert statuses["02.3"] == ("blocked", "02.2")


def test_a_name_that_the_tests_need_and_that_is_gone_is_named(package):
    folder = package("reference")
    path = folder / "mlp.py"
    path.write_text(path.read_text(encoding="utf-8").replace("def accuracy(", "def share("), encoding="utf-8")
    problem = grade(course.find_chapter("01"), folder).not_gradable
    assert "accuracy" in problem.reason
    assert problem.place.file == "meintorch/mlp.py"


def test_given_files_come_from_the_reference(package):
    folder = package("reference")
    (folder / "data.py").write_text("half a thought (", encoding="utf-8")
    (folder / "__init__.py").write_text("", encoding="utf-8")
    assert grade(AUTOGRAD, folder).passed


FORGED = """import os, time
while True:
    for fd in range(3, 12):
        try:
            os.write(fd, b'{line}' + bytes([10]))
        except OSError:
            pass
    time.sleep(0.1)
"""


@pytest.mark.parametrize("line", ['{"event": "imported"}', "[1]", "{}", '{"event": "exit", "frames": "x"}', "[" * 9999])
def test_words_on_the_private_channel_neither_stop_the_clock_nor_the_grader(package, line):
    chapter, task = course.find_task("02.4")
    body = FORGED.replace("{line}", line)
    started = time.monotonic()
    report = grade(chapter, package("reference", {"02.4": body}), task, timeout=TIMEOUT)
    assert not report.passed
    assert time.monotonic() - started < 60.0


def test_a_test_that_is_reported_twice_is_not_a_pass():
    """Even where the words come from the child itself."""
    end = events.parsed(b'{"event": "end", "test": "test_once", "outcome": "passed"}')
    canaries = [replace(end, test=name, kind=kind) for name, kind in outcomes.CANARIES.items()]
    told = [Event("ready"), Event("imported"), *canaries, end, end, Event("finished", status=1)]
    record = outcomes.Record(told, "", 1, over_time=False, package="")
    assert outcomes.outcomes_of(record, ["test_once"], TIMEOUT).outcomes["test_once"].status != "passed"


def test_control_characters_do_not_reach_the_terminal(package):
    failed = (
        grade(AUTOGRAD, package("reference", {"02.2": "raise ValueError(chr(27) + '[31m' + chr(0))\n"}))
        .tasks[1]
        .first_failure
    )
    assert failed.message == "ValueError: ?[31m?"


def test_a_folder_in_place_of_a_file_is_said_to_be_one_and_does_not_disturb_earlier_chapters(package):
    folder = package("reference")
    (folder / "layers.py").unlink()
    (folder / "layers.py").mkdir()
    (folder / "layers.py" / "mine.py").write_text("", encoding="utf-8")
    assert grade(AUTOGRAD, folder).passed
    assert "The file is a folder." in grade(course.find_chapter("05"), folder).not_gradable.reason


def test_nothing_on_a_stage_is_compiled_by_the_tested_process(package, tmp_path, monkeypatch):
    class Reader(SourceFileLoader):
        def source_to_code(self, data, path):
            raise AssertionError(f"{path} was compiled")

    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))  # where the grader's own bytecode goes
    stage.build(tmp_path / "stage", package("reference"), AUTOGRAD)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    paths = [str(path) for path in (tmp_path / "stage").rglob("*.py")]
    assert len(paths) > 20
    assert [Reader("module", path).get_code("module").co_filename for path in paths] == paths


def test_a_file_that_is_changed_on_the_stage_is_run_as_it_is_now(package, tmp_path):
    made = stage.build(tmp_path / "stage", package("reference"), AUTOGRAD)
    path = made.folder / "meintorch" / "tensor.py"
    before = path.stat()
    path.write_bytes(
        path.read_bytes().replace(b"unbroadcast(other.data * upstream", b"unbroadcast(other.data + upstream")
    )
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # neither its size nor its date tells
    assert path.stat().st_size == before.st_size
    product = [
        check for check in AUTOGRAD.checks if check.name == "test_each_factor_gets_its_partner_times_what_arrives"
    ]
    run = launch.run(made, product, TIMEOUT, launch.start)
    assert run.outcomes[product[0].name].status == "failed"


def test_a_run_draws_other_numbers_than_the_run_before(package):
    folder = package("reference", {"02.2": "import numpy\n\nraise ValueError(numpy.random.random())\n"})
    first, second = (grade(AUTOGRAD, folder).tasks[1].first_failure.message for _ in range(2))
    assert first.startswith("ValueError: 0.")
    assert first != second


def test_a_folder_with_the_name_of_a_given_file_does_not_disturb(package):
    folder = package("reference")
    (folder / "data.py").unlink()
    (folder / "data.py").mkdir()
    (folder / "data.py" / "mine.py").write_text("", encoding="utf-8")
    assert grade(AUTOGRAD, folder).passed


def test_a_file_that_was_emptied_is_named_and_not_the_one_that_needs_it(package):
    folder = package("reference")
    (folder / "tensor.py").write_text("", encoding="utf-8")
    problem = grade(AUTOGRAD, folder).not_gradable
    assert problem.place.file == "meintorch/tensor.py"
    assert problem.reason.endswith("cannot import name 'Tensor' from 'meintorch.tensor' (meintorch/tensor.py)")


def test_a_given_line_that_is_nested_too_deeply_to_compare_is_no_fault_of_the_grader(package):
    folder = package("reference")
    path = folder / "tensor.py"
    given = "    if gradient.shape == shape:"
    long = f"    long = {' + '.join(['1'] * 1500)}\n{given}"
    path.write_text(path.read_text(encoding="utf-8").replace(given, long), encoding="utf-8")
    assert grade(AUTOGRAD, folder).passed
