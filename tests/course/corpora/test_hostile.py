"""Packages that end Python, hang, want too much or want to be believed: each gets the answer that it must get.

They are in hostile/: a heading, what is changed in a package (the reference, or the stubs), the answer, and words that
the learner must be shown. The answers are printed as a table.
"""

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from grading.course import chapters as course
from grading.course import texts
from grading.course.files import read_source
from grading.runner import launch
from grading.verdict.results import Report
from tests.course.conftest import answer, grade

TIMEOUT = 1.5
LONGEST = 60.0  # seconds, where every test hangs on a busy machine


@dataclass(frozen=True)
class Hostile:
    name: str
    start: str  # reference or stubs
    change: str
    answer: str
    says: str
    code: str

    def __str__(self) -> str:
        return self.name


def entries() -> list[Hostile]:
    found = []
    for path in sorted((Path(__file__).parent / "hostile").glob("*.md")):
        for section in re.split(r"^## ", read_source(path), flags=re.MULTILINE)[1:]:
            name, _, rest = section.partition("\n")
            lines = dict(re.findall(r"^(Start|Change|Answer|Says): (.+)$", rest, re.MULTILINE))
            code = "".join(listing.code for listing in texts.listings(rest)).replace("{ROOT}", course.ROOT.as_posix())
            change, start = lines.get("Change", "nothing"), lines.get("Start", "reference")
            found.append(Hostile(name, start, change, lines["Answer"], lines.get("Says", ""), code))
    return found


def change(folder: Path, one: Hostile) -> None:
    """Do to a package what an entry says."""
    what, _, rest = one.change.partition(" ")
    if what == "answer":
        answer(folder, rest, one.code)
    elif what in ("before", "after"):
        path = folder / rest
        code = one.code.replace("# NUL", "\0")
        parts = [code, read_source(path)] if what == "before" else [read_source(path), code]
        path.write_text("\n".join(parts), encoding="utf-8")
    elif what == "file":
        name, _, encoding = rest.partition(" as ")
        (folder / name).write_bytes(one.code.encode(encoding))
    elif one.change == "tensor.py with CRLF":
        path = folder / "tensor.py"
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    elif one.change == "tensor.py as a link":
        (folder / "tensor.py").unlink()
        try:
            (folder / "tensor.py").symlink_to(course.REFERENCE / "tensor.py")
        except OSError:
            pytest.skip("this system makes no links for this user")
    else:
        assert one.change == "nothing"


def answer_in(report: Report, task: str) -> tuple[str, str]:
    """What a report says, in the words of the corpus, and all that is shown of it."""
    if report.not_gradable:
        return "not gradable", report.not_gradable.reason
    if report.passed:
        return "passed", ""
    if {one.status for one in report.tasks} == {"todo"}:
        return "to do", ""
    one = next(one for one in report.tasks if one.task.id == task)
    if one.status == "todo":
        return f"to do {task}", ""
    worst = one.first_failure
    return f"{worst.status} {task}", f"{worst.message} {worst.diagnosis or ''}" if worst else ""


@pytest.fixture
def started(monkeypatch):
    """The processes that the grader has started, as it does where a learner calls it: each anew."""
    real, found = subprocess.Popen, []

    def start(*arguments, **options):
        found.append(real(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    yield found


@pytest.mark.parametrize("one", entries(), ids=str)
def test_a_hostile_package_gets_its_answer(one, package, tmp_path_factory, monkeypatch, started, record_answer):
    folder, temporary = package(one.start), tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    change(folder, one)
    kind, _, task = one.answer.rpartition(" ")
    number = task[:2] if re.fullmatch(r"\d\d\.\d+", task) else "02"
    before, clock = set(folder.parent.rglob("*")), time.monotonic()
    report = grade(course.find_chapter(number), folder, timeout=TIMEOUT, start=launch.start)
    seconds = time.monotonic() - clock
    got, shown = answer_in(report, task)
    record_answer(one.name, one.answer, got, seconds)
    assert got in ([f"{word} {task}" for word in kind.split(" or ")] if " or " in kind else [one.answer]), shown
    assert one.says in shown
    assert seconds < LONGEST
    assert set(folder.parent.rglob("*")) == before
    assert not list(temporary.iterdir())
    assert not (course.ROOT / "left_behind.txt").exists()
    for process in started:
        assert process.returncode is not None
        if os.name == "posix":  # nor is anything left of its group
            with pytest.raises(ProcessLookupError):
                os.killpg(process.pid, 0)


def test_there_are_at_least_forty():
    assert len({one.name for one in entries()}) >= 40
