"""The author's kit: what `new` writes, what `course-check` says, and that a course that misfits breaks no command."""

import os
import re
import shutil
import subprocess

import pytest

from grading.authoring import check_text, imports, new, readme_map
from grading.authoring.corpora import put_answer
from grading.authoring.templates import GAP
from grading.course import chapters as course
from grading.course.files import read_source
from grading.course.regions import without_answers
from tests.course.conftest import copy_the_course, run_the_grader

LAYERS = "chapters/05_layers.md"
WRITTEN_FOR_A_TASK = {
    "README.md",
    LAYERS,
    "solutions/meintorch/layers.py",
    "tests/test_05_layers.py",
    "tests/course/corpora/wrong/05_layers.md",
    "tests/course/corpora/right/05_layers.md",
}

NEXT, AFTER = (f"{len(course.chapters()) + more:02}" for more in (1, 2))  # chapters that are not there yet


def whole_course(target):
    """A copy with the corpora and the README, as a maintainer has it."""
    copy_the_course(target)
    shutil.copy(course.ROOT / "README.md", target / "README.md")
    for folder in ("wrong", "right"):
        name = f"tests/course/corpora/{folder}"
        shutil.copytree(course.ROOT / name, target / name)
    figures = "tests/course/proofs"
    (target / figures).mkdir()
    for name in ("mutants.md", "equivalent.md"):
        shutil.copy(course.ROOT / figures / name, target / figures / name)
    return target


@pytest.fixture
def whole(tmp_path):
    return whole_course(tmp_path / "whole")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """The same for all tests that ask and write nothing."""
    return whole_course(tmp_path_factory.mktemp("untouched") / "course")


def files_of(folder) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    paths = [path for path in paths if not {"__pycache__", ".grader", ".git"} & set(path.parts)]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def changed(before, after) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def edit(path, old: str, other: str) -> None:
    source = read_source(path)
    assert old in source
    path.write_text(source.replace(old, other, 1), encoding="utf-8")


def git(folder, *words) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder), *words]
    subprocess.run(command, check=True, capture_output=True)


def spoken(done: subprocess.CompletedProcess) -> str:
    """What a command has said. It was neither a traceback nor a mistake in the grader."""
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert "mistake in the grader" not in said
    return said


def test_a_new_task_is_to_do_everywhere_and_its_gaps_are_told(whole):
    before = files_of(whole)
    done = run_the_grader(whole, "new", "05.7", "Softplus")
    assert done.returncode == 0, done.stderr
    assert changed(before, files_of(whole)) == WRITTEN_FOR_A_TASK
    assert '"Six places" may be one more now' in done.stdout
    text = read_source(whole / LAYERS)
    assert text.index("### 05.6 ") < text.index("### 05.7 Softplus\n") < text.index("## Check it\n")
    assert "TODO 05.1 to TODO 05.7" in text
    assert run_the_grader(whole, "stubs").returncode == 0
    for package in ([], ["--solution"]):
        done = run_the_grader(whole, "05.7", "--goal", *package)
        assert done.returncode == 1
        assert "to do     05.7   Softplus" in spoken(done)
    for words in (["hint", "05.7"], ["diff", "05.7", "--spoil"], ["explain", "05.7"], ["reset", "05.7"], ["doctor"]):
        spoken(run_the_grader(whole, *words))
    done = run_the_grader(whole, "course-check", "05")
    assert done.returncode == 1
    told = re.findall(r"^(\S+), line (\d+): GAP:", spoken(done), re.MULTILINE)
    gaps = [
        (name, number)
        for name in WRITTEN_FOR_A_TASK
        for number, line in enumerate(read_source(whole / name).split("\n"), 1)
        if GAP in line
    ]
    assert {(name, int(number)) for name, number in told} == set(gaps)
    assert len(told) == len(done.stdout.strip().split("\n")) - 2  # nothing but the gaps is wrong


def test_a_new_chapter_is_to_do_and_goes_on_with_the_next_task(whole):
    assert run_the_grader(whole, "new", NEXT, "Sliding windows", "Slide").returncode == 0
    assert run_the_grader(whole, "new", f"{NEXT}.2", "Window mean").returncode == 0
    assert run_the_grader(whole, "stubs").returncode == 0
    text = read_source(whole / f"chapters/{NEXT}_sliding_windows.md")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(check_text.SECTIONS)
    assert (
        f"| [{NEXT} Sliding windows](chapters/{NEXT}_sliding_windows.md) | `meintorch/sliding_windows.py` | 2 |"
        in read_source(whole / "README.md")
    )
    shown = spoken(run_the_grader(whole, NEXT, "--goal"))
    assert f"to do     {NEXT}.1   Slide" in shown
    assert f"to do     {NEXT}.2   Window mean" in shown
    done = run_the_grader(whole, "course-check", NEXT)
    assert done.returncode == 1
    for words in ("The chapter has 2 tasks", "There are 2 mistakes. There should be 8", "Break it", GAP):
        assert words in done.stdout
    assert run_the_grader(whole, "stubs", "--check").returncode == 0
    ruff = shutil.which("ruff")
    if ruff:
        shutil.copy(course.ROOT / "pyproject.toml", whole / "pyproject.toml")
        for command in (["check"], ["format", "--check"]):
            files = [f"tests/test_{NEXT}_sliding_windows.py", "solutions/meintorch/sliding_windows.py"]
            done = subprocess.run([ruff, *command, "--no-cache", *files], cwd=whole, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [f"{NEXT}.1", "Window"],
            f"There is no chapter {NEXT}. The next chapter: python grader.py new {NEXT}",
        ),
        ([AFTER, "Window"], f"Chapter {AFTER} is not the next one."),
        (["05", "Window"], "Chapter 05 is there already: Layers."),
        (
            ["05.3", "Window"],
            "Task 05.3 is there already: Linear. The next task of chapter 05: python grader.py new 05.7",
        ),
        (["5.9", "Window"], "Task 05.9 is not the next one."),
        (["05.0", "Window"], "Task 05.0 is not the next one."),
        (["04.9", "Window"], "Chapter 04 has 8 tasks, the most that a chapter has."),
        (["05.7", "C++"], "makes no Python name"),
        (["05.7", "Ünfug"], "makes no Python name"),
        (["05.7", "2 windows"], "makes no Python name"),
        (["05.7", "a\n## b"], "makes no Python name"),
        (["05.7", "Lambda"], "is a word of Python's own"),
        (["05.7", "Sum"], "is a word of Python's own"),
        (["05.7", " "], "The title is empty."),
        (["05.7", ""], "The title is empty."),
        (["05.7", "Initial weight"], "solutions/meintorch/layers.py has the name initial_weight already."),
        (["05.7", "Which told"], "tests/test_05_layers.py has the name which_told already."),
        ([NEXT, "Data"], "solutions/meintorch/data.py is there already."),
        (["abc", "Window"], "abc is no number of a task or a chapter."),
        (["05.7.1", "Window"], "05.7.1 is no number of a task or a chapter."),
        (["05.7", "Window", "Another"], "A task has one title"),
        (["05.7"], "new needs a number and a title"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_nothing_is_written(untouched, words, said):
    before = files_of(untouched)
    done = run_the_grader(untouched, "new", *words)
    assert done.returncode == 2
    assert said in spoken(done)
    assert files_of(untouched) == before


def test_where_one_file_cannot_be_written_none_is(tmp_path, monkeypatch):
    there, fresh, last = (tmp_path / name for name in ("there.md", "fresh.py", "last.md"))
    there.write_bytes(b"as it was\r\n")

    def write(path, text):
        if path == last:
            raise OSError("no space left")
        path.write_text(text, encoding="utf-8")

    monkeypatch.setattr(new, "write_source", write)
    monkeypatch.setattr(new, "ROOT", tmp_path)
    with pytest.raises(course.GraderError, match=r"last\.md could not be written, so nothing was changed: no space"):
        new._write({there: "new", fresh: "new", last: "new"})
    assert files_of(tmp_path) == {"there.md": b"as it was\r\n"}


MISFITS = {
    "a heading lost": (LAYERS, "### 05.4 Sequential", "### Sequential", "Task 05.4 has no section in"),
    "a heading twice": (
        LAYERS,
        "### 05.4 Sequential",
        "### 05.3 Sequential",
        "Task 05.3 has a section already, above.",
    ),
    "no title": (LAYERS, "# 05 Layers", "# Layers", "The text has no heading with the chapter's number and title"),
    "a task without code": (LAYERS, "## Check it", "### 05.7 More\n\n## Check it", "The reference has no task 05.7"),
    "a stray comment": ("solutions/meintorch/layers.py", "        # 05.4:", "    # 05.4:", "does not stand directly"),
    "no Python": ("solutions/meintorch/layers.py", "class Flatten", "clas Flatten", "Python cannot read this"),
    "a check of no task": ("tests/test_05_layers.py", '("05.6")', '("05.9")', "belongs to task 05.9, which chapter 05"),
    "no check of a task": (
        "tests/test_05_layers.py",
        "",
        "",
        'Task 05.6 has no check: a test with @pytest.mark.task("05.6")',
    ),
    "tests that are no Python": (
        "tests/test_05_layers.py",
        "def xor_network",
        "df xor_network",
        "Python cannot read this",
    ),
}
COMMANDS = ["05", "hint 05.1", "explain 05", "stubs", "new 05.7 More"]


@pytest.mark.parametrize("name", MISFITS)
def test_a_course_that_does_not_fit_is_told_with_its_place_by_every_command(whole, name):
    file, old, other, said = MISFITS[name]
    path = whole / file
    if old:
        edit(path, old, other)
    else:
        path.write_text(re.sub(r"(?m)^(@pytest\.mark\.task\(\"05\.)6", r"\g<1>5", read_source(path)), encoding="utf-8")
    answered = 0
    for command in COMMANDS:
        done = run_the_grader(whole, *command.split())
        if done.returncode == 3:
            answered += 1
            assert said in spoken(done), command
            assert re.match(r"(chapters|solutions|tests)/\S+(, line \d+)?: ", done.stderr), command
            assert done.stderr.rstrip().endswith("python grader.py course-check"), command
        spoken(done)
    assert answered >= 3, "some commands have to notice"
    done = run_the_grader(whole, "course-check", "05")
    assert done.returncode == 1
    assert said in spoken(done)


BROKEN = {
    "sections": (LAYERS, "## Zero magic\n", "## No magic\n", 'The section "## Zero magic" is missing.'),
    "order": (LAYERS, "## The goal\n", "## The idea\n", 'The section "## The idea" is there twice.'),
    "rungs": (LAYERS, "Hint 2 - more concrete", "Hint 2", "05.1: Its <details> are Hint 1 - the direction, Hint 2,"),
    "hint": (LAYERS, "Two cases. Either", "word " * 160 + "Either", "Hint 1 - the direction has"),
    "write": (
        LAYERS,
        "**Write** the body of `collect",
        "Write the body of `collect",
        "05.1: It is not said what to write",
    ),
    "listing": (LAYERS, "```python .noeval\nscale = ...", "```python\nscale = ...", "would run in a notebook"),
    "goal mode": (LAYERS, "TODO 05.1 to TODO 05.6", "TODO 05.1 and all", "does not tell of the last task"),
    "solution": (
        LAYERS,
        "scale = np.sqrt(2.0 / n",
        "scale = np.sqrt(3.0 / n",
        "the text's solution of 05.2 does not pass",
    ),
    "break it": (LAYERS, "# 05.2\nreturn np.zeros", "return np.zeros", "The first line of broken code is the number"),
    "reference": (
        "solutions/meintorch/layers.py",
        "2.0 / n_inputs)\n",
        "3.0 / n_inputs)\n",
        "the reference of 05.2 does",
    ),
    "stub": (
        "meintorch/layers.py",
        "class Flatten",
        "MINE = 1\n\n\nclass Flatten",
        "meintorch/layers.py: The file differs.",
    ),
    "corpora": (
        "tests/course/corpora/wrong/05_layers.md",
        "## 05.1 Listed",
        "## 05.9 Listed",
        "Chapter 05 has no task 05.9",
    ),
    "map": ("README.md", "05 Layers", "05 Layer", "README.md: The map is not that of the course."),
    "marks": ("README.md", readme_map.END, "", "README.md: The map stands between two lines"),
    "figures": ("tests/course/proofs/mutants.md", "| 05 | ", "| 05 | 1", "The figures of chapter 05"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_chapter_is_said_in_a_sentence(whole, name):
    file, old, other, said = BROKEN[name]
    edit(whole / file, old, other)
    done = run_the_grader(whole, "course-check", "05")
    assert done.returncode == 1
    assert said in spoken(done)
    assert re.match(rf"{re.escape(file)}(, line \d+)?: ", done.stdout), done.stdout
    assert "Then again: python grader.py course-check 05" in done.stdout


def test_a_chapter_that_fits_is_said_to_fit(untouched):
    done = run_the_grader(untouched, "course-check", "05")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Chapter 05 fits.")
    done = run_the_grader(untouched, "course-check", "77")
    assert done.returncode == 2
    assert "There is no chapter 77. There are: 01, 02" in done.stderr


def test_what_belongs_to_no_chapter_is_told(whole):
    (whole / LAYERS).unlink()
    done = run_the_grader(whole, "course-check", "05")
    assert done.returncode == 1
    said = spoken(done)
    assert "tests/test_05_layers.py: This belongs to no chapter: chapters/05_layers.md is missing." in said
    assert "tests/course/corpora/right/05_layers.md: This belongs to no chapter" in said
    assert re.search(r"solutions/meintorch/layers.py, line \d+: Task 05.6 belongs to no chapter", said)


def test_stubs_may_be_run_again_and_again_while_the_reference_changes(whole):
    git(whole, "init", "-q")
    git(whole, "add", ".")
    git(whole, "commit", "-qm", "start")
    for number, name in ((NEXT, "Windows"), (AFTER, "Wheels")):
        assert run_the_grader(whole, "new", number, name).returncode == 0
        done = run_the_grader(whole, "stubs")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    for line in ("FIRST = 1", "SECOND = 2"):
        for name in ("layers", "windows"):  # one that git knows, and a new one
            path = whole / f"solutions/meintorch/{name}.py"
            path.write_text(f"{read_source(path)}\n\n{line}\n", encoding="utf-8")
        done = run_the_grader(whole, "stubs")
        assert done.returncode == 0, done.stdout
        assert line in read_source(whole / "meintorch/layers.py")
        assert line in read_source(whole / "meintorch/windows.py")
    assert "Nothing has changed." in run_the_grader(whole, "stubs").stdout
    put_answer(whole / "meintorch", "05.3", "mine = 1\n")
    done = run_the_grader(whole, "stubs")
    assert done.returncode == 1
    assert "layers.py: task 05.3 is no longer a stub" in done.stdout
    assert "mine = 1" in read_source(whole / "meintorch/layers.py")


def test_stubs_keeps_a_copy_of_a_new_file_that_it_did_not_write(whole):
    git(whole, "init", "-q")
    git(whole, "add", ".")
    git(whole, "commit", "-qm", "start")
    assert run_the_grader(whole, "new", NEXT, "Windows").returncode == 0
    path = whole / "meintorch/windows.py"
    path.write_text("MINE = 1\n", encoding="utf-8")
    git(whole, "add", ".")
    done = run_the_grader(whole, "stubs")
    kept = re.search(r"windows.py \(what was there is kept in (\S+)\)", done.stdout).group(1)
    assert read_source(whole / kept) == "MINE = 1\n"
    assert read_source(path) == without_answers(read_source(whole / "solutions/meintorch/windows.py"))


def test_tests_that_git_does_not_know_yet_are_new_and_not_edited(whole):
    git(whole, "init", "-q")
    git(whole, "add", ".")
    git(whole, "commit", "-qm", "start")
    assert run_the_grader(whole, "new", NEXT, "Windows").returncode == 0
    assert run_the_grader(whole, "stubs").returncode == 0
    assert "has been edited" not in run_the_grader(whole, NEXT).stdout
    git(whole, "add", ".")
    assert "has been edited" not in run_the_grader(whole, NEXT).stdout


def test_stubs_writes_the_map_of_the_readme(whole):
    readme = read_source(whole / "README.md")
    edit(whole / "README.md", "05 Layers", "05 Layer")
    assert run_the_grader(whole, "stubs", "--check").returncode == 1
    assert "written: the map in README.md" in run_the_grader(whole, "stubs").stdout
    assert read_source(whole / "README.md") == readme


def test_translated_headings_crash_neither_explain_nor_catch_up(whole):
    path = whole / "chapters/02_autograd.md"
    text = read_source(path).replace("<summary>Solution</summary>", "<summary>Lösung</summary>")
    path.write_text(text.replace("## What PyTorch does\n", "## Was PyTorch tut\n"), encoding="utf-8")
    done = run_the_grader(whole, "catch-up", "03")
    assert done.returncode == 0
    said = " ".join(spoken(done).split())
    assert "02.3 (in its final form: chapters/02_autograd.md has no Solution for it)" in said
    done = run_the_grader(whole, "explain", "02")
    assert done.returncode == 0
    assert 'Not shown: The text has no section "## What PyTorch does".' in " ".join(spoken(done).split())


@pytest.mark.parametrize(
    ("source", "module", "name", "wanted"),
    [
        ("from a import B, c\n", "a", "b", "from a import B, b, c\n"),
        ("from a import B, c\n", "a", "A", "from a import A, B, c\n"),
        ("from a import (\n    X,\n    y,\n)\n", "a", "Z", "from a import (\n    X,\n    Z,\n    y,\n)\n"),
        ("from a import b\n", "a", "b", "from a import b\n"),
        ("from a import b as c\n\nfrom tests._helpers import d\n", "a", "e", None),
        (f"from a import {'b' * 100}\n", "a", "c" * 9, f"from a import (\n    {'b' * 100},\n    {'c' * 9},\n)\n"),
    ],
)
def test_an_import_gets_one_more_name_in_its_place(source, module, name, wanted):
    wanted = wanted or "from a import b as c\n\nfrom a import e\nfrom tests._helpers import d\n"
    assert imports.with_import(source, module, name) == wanted


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="who may do everything can write everywhere")
def test_a_folder_that_cannot_be_written_is_said(whole):
    before = files_of(whole)
    (whole / "tests/course/corpora/right").chmod(0o500)
    done = run_the_grader(whole, "new", "05.7", "Softplus")
    (whole / "tests/course/corpora/right").chmod(0o700)
    assert done.returncode == 3
    assert "could not be written, so nothing was changed" in spoken(done)
    assert files_of(whole) == before
