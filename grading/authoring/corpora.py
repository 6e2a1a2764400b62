"""The corpora in tests/course/corpora, read and graded: mistakes, right answers in other styles, hostile packages.

wrong/ and right/ have a Markdown file for each chapter: a heading with the task and a name, for a mistake a line with
words of the diagnosis that it must get, and the body of the task. "Only with --goal." stands where the milestone tests
let a mistake pass, and "Seen:" before the address of a public page where it was made. hostile/ has a heading, what is
changed in a package (the reference, or the stubs), the answer, and words that the learner must be shown.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

from grading.authoring import write_stubs
from grading.course import chapters as course
from grading.course import stubs, texts
from grading.course.compose import put
from grading.course.files import read_source
from grading.runner import warm
from grading.runner.stage import temporary_folder
from grading.verdict.judge import grade
from grading.verdict.results import Report

CORPORA = course.TESTS / "course" / "corpora"
TIMEOUT = 60.0  # seconds for a test of an answer, on a busy machine
HOSTILE_TIMEOUT = 1.5  # many of them hang, each until then
LONGEST = 60.0  # seconds for a hostile package, where every test hangs


@dataclass(frozen=True)
class Answer:
    """An answer to a task: a mistake, or a right one in another style."""

    kind: str  # wrong or right
    task: str
    name: str
    named: str  # of a mistake: words of its diagnosis; empty where none is known yet
    bodies: tuple[str, ...]
    goal: bool  # of a mistake: the milestone tests let it pass, --goal does not
    seen: str  # of a mistake: a public page where somebody made it; empty where it is an observation of our own

    def __str__(self) -> str:
        return f"{self.task} {self.name}"

    @property
    def chapter(self) -> str:
        return self.task[:2]


@dataclass(frozen=True)
class Hostile:
    """A package that ends Python, hangs, wants too much or wants to be believed."""

    name: str
    start: str  # reference or stubs
    change: str
    answer: str
    says: str
    code: str

    kind = "hostile"

    def __str__(self) -> str:
        return self.name

    @property
    def task(self) -> str:
        """The task that its answer speaks of, or "02.1"."""
        task = re.search(r" (\d\d\.\d+)$", self.answer)
        return task[1] if task else "02.1"

    @property
    def chapter(self) -> str:
        return self.task[:2]


@dataclass(frozen=True)
class Verdict:
    """What an entry has got.

    outcome  of an answer: each task that has not passed, "02.1 failed, 02.3 blocked 02.1", or "passed";
             of a hostile package: the answer, in the words of its corpus, and what was left behind, if anything was
    shown    the text that the learner sees, on one line
    """

    outcome: str
    shown: str = ""

    @property
    def statuses(self) -> dict[str, str]:
        """Of an answer: the tasks that have not passed."""
        return dict(part.split(" ", 1) for part in self.outcome.split(", ") if part != "passed")


class NotHere(Exception):
    """An entry that this system cannot make."""


@lru_cache(maxsize=1)
def answers() -> tuple[Answer, ...]:
    """The mistakes and the right answers, in the order of their files."""
    found = []
    for kind in ("wrong", "right"):
        for name, section in _sections(kind):
            task, _, name = name.partition(" ")
            named, seen = (re.search(rf"^{word}:(.*)$", section, re.MULTILINE) for word in ("Named", "Seen"))
            bodies = tuple(listing.code for listing in texts.listings(section))
            goal = re.search(r"^Only with --goal\.$", section, re.MULTILINE) is not None
            words, address = (line.group(1).strip() if line else "" for line in (named, seen))
            found.append(Answer(kind, task, name, words, bodies, goal, address))
    return tuple(found)


@lru_cache(maxsize=1)
def hostile() -> tuple[Hostile, ...]:
    found = []
    for name, section in _sections("hostile"):
        lines = dict(re.findall(r"^(Start|Change|Answer|Says): (.+)$", section, re.MULTILINE))
        code = "".join(listing.code for listing in texts.listings(section))
        change, start = lines.get("Change", "nothing"), lines.get("Start", "reference")
        found.append(Hostile(name, start, change, lines["Answer"], lines.get("Says", ""), code))
    return tuple(found)


def _sections(folder: str) -> Iterator[tuple[str, str]]:
    """The heading and the text of every section of a corpus."""
    for path in sorted((CORPORA / folder).glob("*.md")):
        for section in re.split(r"^## ", read_source(path), flags=re.MULTILINE)[1:]:
            name, _, text = section.partition("\n")
            yield name.strip(), text


def put_answer(package: Path, task: str, bodies: str | list[str]) -> None:
    """Put an answer to a task into a package: its body (or bodies, for several places), or "stub", or "reference"."""
    for i, part in enumerate(course.find_task(task)[1].parts):
        if isinstance(bodies, list):
            body = bodies[i]
        else:
            body = {"stub": part.region.stub(), "reference": part.region.answer()}.get(bodies, bodies)
        path = package / part.file
        path.write_text(answered(read_source(path), part, body), encoding="utf-8")


def answered(source: str, part: course.Part, body: str) -> str:
    """A file of a package with another answer in it."""
    return put(source, part.region, body, stubs.skeleton(part.file))


def new_package(folder: Path, start: str) -> Path:
    """Make a package in a folder: the "reference" or the "stubs"."""
    if start == "reference":
        shutil.copytree(course.REFERENCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        folder.mkdir(parents=True)
        write_stubs.write(folder)
    return folder


def grade_entry(entry: Answer | Hostile) -> Verdict:
    """Grade an entry of a corpus. Raises NotHere."""
    return grade_answer(entry) if isinstance(entry, Answer) else grade_hostile(entry)


def grade_answer(answer: Answer) -> Verdict:
    """Grade an answer in the reference's place.

    A right one is checked with its whole chapter and --goal, a mistake with its own task, and every eighth mistake with
    its whole chapter: does it fail nowhere else?
    """
    right = answer.kind == "right"
    whole = right or crc32(str(answer).encode()) % 8 == 0  # by name: a new one changes nothing for the others
    chapter, task = course.find_task(answer.task)
    with temporary_folder() as folder:
        package = new_package(folder / "meintorch", "reference")
        put_answer(package, answer.task, list(answer.bodies))
        asked, goal = None if whole else task, right or answer.goal
        report = grade(chapter, package, asked, goal, TIMEOUT, warm.start)
    if report.not_gradable:
        return Verdict(f"{answer.task} not gradable", _on_one_line(report.not_gradable.reason))
    open_tasks = [one for one in report.tasks if one.status != "passed"]
    outcome = ", ".join(" ".join(filter(None, [one.task.id, one.status, one.needs])) for one in open_tasks)
    told = next((one.first_failure for one in open_tasks if right or one.task.id == answer.task), None)
    return Verdict(outcome or "passed", _on_one_line(f"{told.message} {told.diagnosis or ''}") if told else "")


def grade_hostile(entry: Hostile) -> Verdict:
    """Grade a hostile package as a learner's is: in a process of its own. Raises NotHere."""
    left_behind, clock = course.ROOT / "left_behind.txt", time.monotonic()
    with temporary_folder() as folder, _started_processes() as started:
        package = new_package(folder / "package" / "meintorch", entry.start)
        temporary = folder / "temporary"
        temporary.mkdir()
        _change(package, entry)
        before = set(package.parent.rglob("*"))
        with mock.patch.object(tempfile, "tempdir", str(temporary)):
            report = grade(course.find_chapter(entry.chapter), package, timeout=HOSTILE_TIMEOUT)
        complaints = [f"changed {path.name}" for path in sorted(set(package.parent.rglob("*")) ^ before)]
        complaints += [f"left {path.name}" for path in [*temporary.iterdir(), left_behind] if path.exists()]
        complaints += ["left a process" for process in started if _is_alive(process)]
    if time.monotonic() - clock >= LONGEST:
        complaints.append(f"took more than {LONGEST:g} s")
    answer, shown = _answer_in(report, entry.task)
    return Verdict(", ".join([answer, *complaints]), _on_one_line(shown))


def _change(folder: Path, entry: Hostile) -> None:
    """Do to a package what an entry says."""
    code = entry.code.replace("{ROOT}", course.ROOT.as_posix())
    what, _, rest = entry.change.partition(" ")
    path = folder / "tensor.py"
    if what == "answer":
        put_answer(folder, rest, code)
    elif what in ("before", "after"):
        path, code = folder / rest, code.replace("# NUL", "\0")
        parts = [code, read_source(path)] if what == "before" else [read_source(path), code]
        path.write_text("\n".join(parts), encoding="utf-8")
    elif what == "file":
        name, _, encoding = rest.partition(" as ")
        (folder / name).write_bytes(code.encode(encoding))
    elif entry.change == "tensor.py with CRLF":
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    elif entry.change == "tensor.py as a link":
        path.unlink()
        try:
            path.symlink_to(course.REFERENCE / "tensor.py")
        except OSError:
            raise NotHere("this system makes no links for this user") from None
    elif entry.change != "nothing":
        raise ValueError(f"{entry.name}: there is no change called {entry.change!r}")


def _answer_in(report: Report, task: str) -> tuple[str, str]:
    """What a report says, in the words of the corpus, and all that is shown of it."""
    if report.not_gradable:
        return "not gradable", report.not_gradable.reason
    if report.passed:
        return "passed", ""
    if {one.status for one in report.tasks} == {"todo"}:
        return "to do", ""
    own = next(one for one in report.tasks if one.task.id == task)
    if own.status == "todo":
        return f"to do {task}", ""
    worst = own.first_failure
    return (f"{worst.status} {task}", f"{worst.message} {worst.diagnosis or ''}") if worst else (own.status, "")


@contextmanager
def _started_processes() -> Iterator[list[subprocess.Popen[Any]]]:
    """The processes that the grader starts meanwhile, each anew as where a learner calls it."""
    real = subprocess.Popen
    started: list[subprocess.Popen[Any]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
        started.append(real(*arguments, **options))
        return started[-1]

    with mock.patch.object(subprocess, "Popen", start):
        yield started


def _is_alive(process: subprocess.Popen[Any]) -> bool:
    """Whether a process, or anything of its group, has not ended."""
    if process.returncode is None:
        return True
    if os.name == "posix":
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    return False


def _on_one_line(text: str) -> str:
    """Without the folders that the course and the stage lie in, which are others elsewhere."""
    text = re.sub(r"\S*meintorch-\w{8}(?=[/\\])", "{STAGE}", text.replace(str(course.ROOT), "{ROOT}"))
    return " ".join(text.split())
