"""Tools for the tests of the course itself. They work on copies, so a half-finished checkout does not disturb them."""

import gc
import importlib
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from grading.authoring import corpora, corpora_tables, standing_proofs, write_stubs
from grading.authoring.corpora import answered, put_answer
from grading.course import chapters as course
from grading.course import stubs, texts
from grading.course.files import read_source
from grading.runner import warm
from grading.verdict import judge

# In these tests `import meintorch` is the reference, whatever pytest puts on the path later.
sys.path.insert(0, str(course.REFERENCE.parent))
importlib.import_module("meintorch")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="grade and prove everything anew, whatever the tables say")
    parser.addoption("--keep", action="store_true", help="write down which proofs have been passed")


def pytest_configure(config):
    option = config.option
    if option.keep and (config.args, option.markexpr, option.keyword) != (["tests/course"], "proof", ""):
        raise pytest.UsageError(f"--keep belongs to all proofs: {corpora_tables.COMMAND}")
    config.addinivalue_line("markers", "proof(chapter): it stands while nothing has changed that it depends on")


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    if any(here not in item.path.parents for item in items):
        raise pytest.UsageError(
            "tests/course tests the reference, the other tests your own package: run them one at a time"
        )
    # Tests that share something one after the other: the worker that has made it for one has it for the next.
    places: dict = {}
    items.sort(key=lambda item: places.setdefault(_shared_by(item) or item.nodeid, len(places)))


def _shared_by(item):
    """The entry of a corpus that an item grades, or the chapter whose cells it runs."""
    if "verdict_of" in item.fixturenames and hasattr(item, "callspec"):
        return item.callspec.params["entry"]
    for name in {"ran", "executed"} & set(item.fixturenames):
        return name, item.callspec.params["chapter"].number
    return None


@pytest.fixture(autouse=True, scope="module")
def look_for_garbage_among_new_objects_alone():
    """What stays to the end anyway, torch and syntax trees among it, would be gone through again and again."""
    gc.collect()
    gc.freeze()


def grade(*arguments, **options):
    """What the grader's own `grade` does; its runs are forks of processes that have imported NumPy already."""
    return judge.grade(*arguments, **{"start": warm.start, **options})


@pytest.fixture
def heeded_signals():
    """No signal is ignored: processes started under nohup, or in a shell's background, would inherit that."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ignored = [one for one in map(signal.Signals.__getitem__, names) if signal.getsignal(one) == signal.SIG_IGN]
    for one in ignored:
        signal.signal(one, signal.SIG_DFL)
    yield
    for one in ignored:
        signal.signal(one, signal.SIG_IGN)


@pytest.fixture
def package(tmp_path):
    """A function that makes a package: the reference or the stubs, with the answers to some tasks exchanged."""

    def make(start: str, answers: dict[str, str | list[str]] | None = None) -> Path:
        """`answers` maps a task to its new body (or bodies, a task may have several places), or to "stub"."""
        target = corpora.new_package(tmp_path / f"package_{len(list(tmp_path.iterdir()))}", start)
        for task, bodies in (answers or {}).items():
            put_answer(target, task, bodies)
        return target

    return make


def follow_the_texts(package: Path, number: str) -> None:
    """Make of stubs the package of a learner who has come to a chapter, and has taken every answer from the texts."""
    for name, source in sources_before(number).items():
        (package / name).write_text(source, encoding="utf-8")


@lru_cache(maxsize=len(course.chapters()))
def sources_before(number: str) -> Mapping[str, str]:
    earlier = [chapter for chapter in course.chapters() if chapter.number < number]
    if not earlier:
        return stubs.stub_tree()
    sources = dict(sources_before(earlier[-1].number))
    for task in earlier[-1].tasks:
        for part, body in zip(task.parts, texts.solution(read_source(earlier[-1].text), task.id)):
            sources[part.file] = answered(sources[part.file], part, body)
    return sources


@pytest.fixture
def checkout(tmp_path):
    """A copy of the course as a learner gets it, every task a stub."""
    return copy_the_course(tmp_path / "course")


def copy_the_course(target: Path) -> Path:
    copy_the_folders(target)
    for name in ("grader.py", "pyproject.toml"):
        shutil.copy(course.ROOT / name, target / name)
    (target / "meintorch").mkdir()
    write_stubs.write(target / "meintorch")
    return target


def copy_the_folders(target: Path) -> None:
    """The folders of the course, this one left out."""

    def ignored(folder, names):
        return [name for name in names if name == "__pycache__" or Path(folder, name) == course.TESTS / "course"]

    for name in ("chapters", "grading", "solutions", "tests"):
        shutil.copytree(course.ROOT / name, target / name, ignore=ignored)


@pytest.fixture
def grader(checkout):
    """A function that runs `python grader.py ...` in the copy and returns the finished process."""
    return lambda *words, **options: run_the_grader(checkout, *words, **options)


def run_the_grader(folder: Path, *words, python: str = sys.executable, **options) -> subprocess.CompletedProcess:
    command = [python, "grader.py", *map(str, words)]
    options.setdefault("encoding", "utf-8")
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False, **options)


# What need not be done again


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A proof that still stands is passed. See grading/authoring/standing_proofs.py."""
    mark = pyfuncitem.get_closest_marker("proof")
    if mark is None:
        return None
    number = mark.args[0] if mark.args else _chapter_of(pyfuncitem.callspec.params)
    stands = not pyfuncitem.config.getoption("--all") and standing_proofs.stands(pyfuncitem.nodeid, number)
    pyfuncitem.user_properties.append(("proof", "that still stand" if stands else "gone through"))
    return stands or None


def _chapter_of(params: dict) -> str:
    return params["chapter"].number if "chapter" in params else params["task"][:2]


def pytest_sessionfinish(session, exitstatus):
    """With --keep: where every proof was passed, that is written down."""
    config = session.config
    if not config.getoption("--keep") or hasattr(config, "workerinput"):
        return
    if exitstatus == 0 and not config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped"):
        standing_proofs.write()


@pytest.fixture(scope="session")
def graded():
    """The verdicts on entries that were graded in this process, by entry."""
    return {}


@pytest.fixture
def verdict_of(request, graded, record_property):
    """A function that returns an entry's verdict: the table's, or a new one where that is out of date.

    One in twenty is graded in any case, and with --all every one. That must be the same as in the table.
    """

    def verdict(entry) -> corpora.Verdict:
        recorded, clock = corpora_tables.recorded(entry), time.monotonic()
        anew = request.config.getoption("--all") or corpora_tables.is_in_the_sample(entry)
        if recorded and not anew:
            record_property("verdict", "from the tables")
            return recorded
        if entry not in graded:
            graded[entry] = corpora.grade_entry(entry)
            record_property("verdict", "graded anew" if recorded else "graded, because something has changed")
            record_property("seconds", round(time.monotonic() - clock, 1))
        if recorded and corpora_tables.differs(recorded, graded[entry]):
            pytest.fail(corpora_tables.complaint(entry, recorded, graded[entry]), pytrace=False)
        return graded[entry]

    return verdict


def pytest_terminal_summary(terminalreporter):
    """What the tests of the corpora have shown, from their reports: a worker's come over to this process."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, [])]
    _show_hostile(terminalreporter, [dict(one.user_properties) for one in reports])
    _show_rates(terminalreporter)
    properties = [item for one in reports for item in one.user_properties]
    counts = Counter(f"{key}s {value}" for key, value in properties if key in ("verdict", "proof"))
    for kind, count in counts.items():
        terminalreporter.write_line(f"{kind}: {count}")
    if any("changed" in kind for kind in counts):
        terminalreporter.write_line(f"To have them in the tables: {corpora_tables.COMMAND}")


def _show_hostile(terminalreporter, properties: list[dict]):
    rows = [row for row in properties if "hostile" in row]
    if rows:
        terminalreporter.section("hostile packages: the answer each must get, the one it got, seconds if graded anew")
    for row in rows:
        name, wanted, got = row["hostile"]
        terminalreporter.write_line(f"{name[:60]:<61}{wanted:<25}{got:<20}{row.get('seconds', ''):>5}".rstrip())


def _show_rates(terminalreporter):
    """The two rates of the corpora, where test_answers.py was run."""
    passed, failed = (
        [one.nodeid.partition("::")[2].partition("[")[0] for one in terminalreporter.stats.get(kind, [])]
        for kind in ("passed", "failed")
    )
    caught, named, right = "test_a_mistake_fails_at_its_own_task", "test_a_mistake_is_named", "test_a_right_answer"
    mistakes = (passed + failed).count(caught)
    if mistakes:
        caught_rate, named_rate = (f"{100 * passed.count(name) / mistakes:.1f} %" for name in (caught, named))
        terminalreporter.write_line(f"known mistakes: {mistakes}, caught {caught_rate}, named {named_rate}")
    answers = sum(name.startswith(right) for name in passed + failed)
    if answers:
        passing = sum(name.startswith(right) for name in passed)
        terminalreporter.write_line(
            f"right answers in other styles: {answers}, passing {100 * passing / answers:.1f} %"
        )
