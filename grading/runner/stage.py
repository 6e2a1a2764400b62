"""A copy to grade: the learner's package and the checkout's tests, and nothing else.

Nothing that a learner's code does to the stage reaches the repository, and nothing beside the learner's package
(a numpy.py, a conftest.py) reaches the stage.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grading.course.chapters import PACKAGE, REFERENCE, TESTS, Chapter, chapters
from grading.course.files import as_sources, write_with_bytecode
from grading.course.package import Package
from grading.course.place import Place
from grading.course.stubs import stub_tree
from grading.runner.gradable import NotGradable, problem_of

INI = """[pytest]
markers =
    task(number, revisits=None): the task that a test belongs to, and the earlier one that it goes back to
    goal: part of the harder suite
"""


@dataclass
class Stage:
    """A folder with a chapter's tests and a package. Which one that is may change from run to run."""

    folder: Path
    chapter: Chapter
    package: Package

    def lay_out(self, package: Package) -> None:
        """Let the following runs have another package."""
        there = self.package.sources
        changed = {name: source.encode() for name, source in package.sources.items() if source != there.get(name)}
        write_with_bytecode(self.folder / "meintorch", changed)
        self.package = package


def build(folder: Path, package: Path, chapter: Chapter) -> Stage | NotGradable:
    """Make a stage of an empty folder: copy `package` and the tests of `chapter`. Or return why it cannot be graded.

    The files of later chapters come from the stubs, so that a slip there breaks nothing here.
    """
    given = given_files(chapter)
    files = {name: path.read_bytes() for name, path in package_files(package).items()}
    files = {name: data for name, data in files.items() if name.partition("/")[0] not in given}  # not a folder of it
    for other in chapters():
        for name in other.files:
            problem = None
            if name in files:
                problem = problem_of(files[name], f"meintorch/{name}")
            elif name not in given:
                problem = _missing(package, name, next(task.id for task in other.tasks if name in task.files))
            if problem:
                return problem
    files.update(given)
    _write_all(folder, files, chapter)
    answered_in = {name for other in chapters() for name in other.files}
    sources = as_sources({name: data for name, data in files.items() if name in answered_in})
    return Stage(folder, chapter, Package(sources))


def _missing(package: Path, name: str, task: str) -> NotGradable:
    """Why a file of the package is not there. `task` is one that is answered in it."""
    fix = f" To have its stub again: python grader.py reset {task}" if package == PACKAGE else ""
    what = "is missing."
    if (package / name).is_symlink():
        what = "is a link, and only files are graded."
    elif (package / name).is_dir():
        what, fix = "is a folder. Give that another name, and save your code in a file of this name.", ""
    return NotGradable(f"The file {what}{fix}", Place(f"meintorch/{name}"))


@lru_cache(maxsize=1)
def given_files(chapter: Chapter) -> dict[str, bytes]:
    """What is not the learner's in this chapter: the reference's files without tasks and the later chapters' stubs."""
    written_in = {name: other.number for other in chapters() for name in other.files}
    given = {path.name: path.read_bytes() for path in REFERENCE.glob("*.npz")}
    for name, stub in stub_tree().items():
        if written_in.get(name, "99") > chapter.number:  # of a file without tasks the stub is the file itself
            given[name] = stub.encode()
    return given


def package_files(package: Path) -> dict[str, Path]:
    """The regular Python files of a package, by their path within it. Links are left out."""
    paths = {}
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            path = Path(folder) / name
            if path.suffix == ".py" and path.is_file() and not path.is_symlink():
                paths[path.relative_to(package).as_posix()] = path
    return paths


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of one's own that is gone afterwards, even where something in it is locked for a moment."""
    folder = Path(tempfile.mkdtemp(prefix="meintorch-")).resolve()
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:  # also where Ctrl-C comes in the middle of that
            shutil.rmtree(folder, ignore_errors=True)


def _write_all(folder: Path, package: dict[str, bytes], chapter: Chapter) -> None:
    files = {f"meintorch/{name}": data for name, data in package.items()}
    for path in [TESTS / "__init__.py", TESTS / "_helpers.py", TESTS / "_canaries.py", chapter.tests]:
        files[f"tests/{path.name}"] = path.read_bytes()
    files["pytest.ini"] = INI.encode()
    for name in {os.path.dirname(name) for name in files}:
        (folder / name / "__pycache__").mkdir(parents=True, exist_ok=True)
    (folder / "scratch").mkdir()  # what the tested code may write to
    write_with_bytecode(folder, files)
