"""The tables of verdicts: what makes an entry out of date and what does not, and that a wrong table is found."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from grading.authoring import corpora, corpora_tables
from grading.authoring.corpora import CORPORA, Verdict, answers, hostile
from grading.course import chapters as course
from grading.course.files import read_source

MISTAKE, RIGHT = (
    next(one for one in answers() if one.kind == kind and one.chapter == "02") for kind in ("wrong", "right")
)
PACKAGE = hostile()[0]
NAMED = Verdict("02.1 failed", "a.grad is 3.0, expected 6.0 It is half.")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder of tables with verdicts on three entries of chapter 02."""
    monkeypatch.setattr(corpora_tables, "TABLES", tmp_path)
    monkeypatch.setattr(course, "ROOT", tmp_path)
    corpora_tables._read.cache_clear()
    corpora_tables._write("02", {MISTAKE: NAMED, RIGHT: Verdict("passed"), PACKAGE: Verdict(PACKAGE.answer, "words")})
    yield tmp_path
    corpora_tables._read.cache_clear()


def up_to_date() -> list[str]:
    return [entry.kind for entry in (MISTAKE, RIGHT, PACKAGE) if corpora_tables.recorded(entry)]


@pytest.fixture
def changed_keys(monkeypatch):
    """A function that changes one of the keys, as if something had changed that it is made of."""

    def change(**changes):
        real = corpora_tables.keys("02")
        monkeypatch.setattr(corpora_tables, "keys", lambda chapter: {**real, **changes})

    return change


def test_what_was_written_is_read(tables):
    assert corpora_tables.recorded(MISTAKE) == NAMED
    assert corpora_tables.recorded(RIGHT) == Verdict("passed")
    assert up_to_date() == ["wrong", "right", "hostile"]


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("python", []),
        ("numpy", []),
        ("verdict", []),
        ("wording", ["right"]),  # which is shown no words
        ("system", ["wrong", "right"]),  # a hostile package may do other things there
    ],
)
def test_with_another_key_an_entry_is_out_of_date(tables, changed_keys, key, left):
    changed_keys(**{key: "another"})
    assert up_to_date() == left


def test_an_entry_with_another_text_is_out_of_date_and_one_with_other_words_to_find_is_not(tables):
    assert corpora_tables.recorded(replace(MISTAKE, bodies=("pass\n",))) is None
    assert corpora_tables.recorded(replace(MISTAKE, goal=True)) is None
    assert corpora_tables.recorded(replace(PACKAGE, code="pass\n")) is None
    assert corpora_tables.recorded(replace(MISTAKE, name="A new one")) is None
    assert corpora_tables.recorded(replace(MISTAKE, named="other words", seen="https://example.org")) == NAMED
    assert corpora_tables.recorded(replace(PACKAGE, says="other words"))


@pytest.mark.parametrize("text", ["", "{}\n", "[1]\n[2]\n", "no JSON\n", '{"python": "3.11"}\n{"name": "wrong"}\n'])
def test_what_cannot_be_read_counts_as_missing(tables, text):
    (tables / "02.jsonl").write_text(text, encoding="utf-8")
    corpora_tables._read.cache_clear()
    assert up_to_date() == []
    (tables / "02.jsonl").unlink()
    corpora_tables._read.cache_clear()
    assert up_to_date() == []


def test_lines_may_end_as_on_windows(tables):
    path = tables / "02.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    corpora_tables._read.cache_clear()
    assert up_to_date() == ["wrong", "right", "hostile"]


def copied(tmp_path, *changes: tuple[str, str, str]) -> dict:
    """The keys of chapter 02 in a copy of the course that lies elsewhere, has other dates, and some changes."""
    folder = tmp_path / f"copy_{len(list(tmp_path.iterdir()))}"
    shutil.copytree(
        course.ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "course"), copy_function=shutil.copyfile
    )
    shutil.copytree(course.ROOT / "grading" / "course", folder / "grading" / "course")
    for name, old, new in changes:
        text = read_source(folder / name)
        assert old in text, name
        (folder / name).write_bytes(text.replace(old, new).encode())
    code = "import json; from grading.authoring import corpora_tables as it; print(json.dumps(it.keys('02')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


EVERY_LINE = [("tests/test_02_autograd.py", "\n", "\r\n"), ("solutions/meintorch/tensor.py", "\n", "\r\n")]


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ([], []),
        (EVERY_LINE, []),
        ([("solutions/meintorch/control.py", "# 13.2: ", "# 13.2: surely ")], ["verdict"]),  # part of a stub
        ([("chapters/02_autograd.md", "### 02.1 ", "### 02.1 A ")], ["wording"]),
    ],
    ids=["nothing", "line endings", "a stub", "a title"],
)
def test_a_copy_elsewhere_has_the_same_keys_but_for_what_is_changed_there(tmp_path, changes, other):
    here, there = corpora_tables.keys("02"), copied(tmp_path, *changes)
    assert [word for word in here if here[word] != there[word]] == other


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("tests/test_02_autograd.py", ["verdict"]),
        ("tests/_helpers.py", ["verdict"]),
        ("tests/_canaries.py", ["verdict"]),
        ("meintorch/tensor.py", ["verdict"]),
        ("meintorch/digits.npz", ["verdict"]),
        ("course/regions.py", ["verdict"]),
        ("runner/launch.py", ["verdict"]),
        ("verdict/judge.py", ["verdict"]),
        ("authoring/corpora.py", ["verdict"]),
        ("verdict/phrasebook.py", ["wording"]),
        ("verdict/formats.py", []),
        ("tutor/screen.py", []),
        ("tests/test_13_control.py", []),
    ],
)
def test_the_keys_change_with_the_files_that_an_entry_reaches_and_with_no_others(name, other, monkeypatch):
    before, real = corpora_tables.keys("02"), corpora_tables._meaning
    monkeypatch.setattr(corpora_tables, "_meaning", lambda file, data: "another" if file == name else real(file, data))
    corpora_tables._of_the_grader.cache_clear()
    after = corpora_tables.keys.__wrapped__("02")
    corpora_tables._of_the_grader.cache_clear()
    assert [word for word in before if before[word] != after[word]] == other


def test_comments_count_where_they_say_where_a_task_is_and_nowhere_else():
    code, same, another = b"x = 1\n", b"x  =  1  # a comment\r\n", b"x = 2\n"
    for name in ("tests/_helpers.py", "runner/launch.py"):
        assert (
            corpora_tables._meaning(name, code)
            == corpora_tables._meaning(name, same)
            != corpora_tables._meaning(name, another)
        )
    assert corpora_tables._meaning("meintorch/tensor.py", code) != corpora_tables._meaning("meintorch/tensor.py", same)


def test_a_body_in_a_later_chapter_does_not_reach_an_earlier_one(tmp_path):
    body = course.find_task("13.2")[1].parts[0].region.body.rstrip("\n").split("\n")[-1]
    there = copied(tmp_path, ("solutions/meintorch/control.py", body, f"{body}  # as before"))
    assert there == corpora_tables.keys("02")


def test_modules_that_are_called_by_name_are_there():
    for name in (*corpora_tables.WORDING, *corpora_tables.WITHOUT_EFFECT):
        assert (corpora_tables.GRADING / name).is_file(), name
    for room in corpora_tables.ROOMS:
        assert list((corpora_tables.GRADING / room).glob("*.py")), room


def test_each_commit_has_another_twentieth(monkeypatch):
    everything = [*answers(), *hostile()]
    samples = []
    for commit in ("1f3a", "9c07"):
        monkeypatch.setattr(corpora_tables, "_commit", lambda commit=commit: commit)
        samples.append({str(entry) for entry in everything if corpora_tables.is_in_the_sample(entry)})
    assert samples[0] != samples[1]
    for sample in samples:
        assert 0.03 < len(sample) / len(everything) < 0.07


def test_without_git_the_day_chooses(monkeypatch):
    monkeypatch.setattr(corpora_tables.course, "ROOT", CORPORA / "nowhere")
    corpora_tables._commit.cache_clear()
    assert len(corpora_tables._commit().split("-")) == 3
    corpora_tables._commit.cache_clear()


def test_verdicts_differ_in_what_they_are_and_in_words_and_not_in_digits():
    assert not corpora_tables.differs(NAMED, replace(NAMED, shown="a.grad is 3.00001, expected -6.0 It is half."))
    assert corpora_tables.differs(NAMED, replace(NAMED, shown="a.grad is 3.0, expected 6.0 It is twice."))
    assert corpora_tables.differs(NAMED, replace(NAMED, outcome="passed"))


@pytest.fixture
def graded():
    """What is graded here is not what the entries get."""
    return {}


@pytest.fixture
def record_property():
    """Nor does it belong to the summary."""
    return lambda *_: None


@pytest.fixture
def asked(monkeypatch, request):
    """A function that asks the fixture `verdict_of`, where grading gives a certain verdict."""

    def ask(entry, graded, anew):
        monkeypatch.setattr(corpora, "grade_entry", lambda _: graded)
        monkeypatch.setattr(corpora_tables, "is_in_the_sample", lambda _: anew)
        try:
            return request.getfixturevalue("verdict_of")(entry), ""
        except pytest.fail.Exception as failure:
            return None, str(failure)

    return ask


def test_a_table_that_is_wrong_is_found_by_grading_anew(tables, asked):
    """The complaint names the file, the entry and the command."""
    graded = Verdict("02.1 failed", "another diagnosis")
    passed, complaint = asked(MISTAKE, graded, anew=False)
    assert (passed, complaint) == (NAMED, "")
    passed, complaint = asked(MISTAKE, graded, anew=True)
    assert passed is None
    for words in (
        "02.jsonl is wrong about wrong 02.1",
        NAMED.shown,
        graded.shown,
        f"{corpora_tables.COMMAND} 02 --all",
    ):
        assert words in complaint


def test_what_is_out_of_date_is_graded_and_not_believed(tables, changed_keys, asked):
    changed_keys(verdict="another")
    graded = Verdict("passed")
    assert asked(MISTAKE, graded, anew=False) == (graded, "")
