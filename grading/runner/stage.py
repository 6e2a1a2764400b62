"""A copy to grade: the learner's package and the checkout's tests, and nothing else.

Nothing that a learner's code does to the stage reaches the repository, and nothing beside the learner's package
(a numpy.py, a conftest.py) reaches the stage.
"""

import contextlib
import os
import sys
from functools import lru_cache
from pathlib import Path

from grading.course.chapters import PACKAGE, REFERENCE, TESTS, Chapter, chapters
from grading.course.files import bytecode, read_source
from grading.course.stubs import stub_of
from grading.runner.gradable import NotGradable, problem_of

INI = """[pytest]
markers =
    task(number, revisits=None): the task that a test belongs to, and the earlier one that it goes back to
    goal: part of the harder suite
"""


def build(stage: Path, package: Path, chapter: Chapter) -> NotGradable | None:
    """Copy `package` and the tests of `chapter` to the folder `stage`. Return why it cannot be graded, or None.

    The files of later chapters come from the stubs, so that a slip there breaks nothing here.
    """
    given = given_files(chapter)
    files = {name: path.read_bytes() for name, path in package_files(package).items()}
    files = {name: data for name, data in files.items() if name.partition("/")[0] not in given}  # not a folder of it
    for other in chapters():
        for name in other.files:
            if name not in files and name not in given:
                task = next(task for task in other.tasks if any(part.file == name for part in task.parts))
                fix = f" To have its stub again: python grader.py reset {task.id}" if package == PACKAGE else ""
                what = "is missing."
                if (package / name).is_symlink():
                    what = "is a link, and only files are graded."
                elif (package / name).is_dir():
                    what, fix = "is a folder. Give that another name, and save your code in a file of this name.", ""
                return NotGradable(f"The file {what}{fix}", f"meintorch/{name}")
            if name in files and (problem := problem_of(files[name], f"meintorch/{name}")):
                return problem
    files = {f"meintorch/{name}": data for name, data in {**files, **given}.items()}
    for path in [TESTS / "__init__.py", TESTS / "_helpers.py", TESTS / "_canaries.py", chapter.tests]:
        files[f"tests/{path.name}"] = path.read_bytes()
    files["pytest.ini"] = INI.encode()
    for folder in {os.path.dirname(name) for name in files}:
        (stage / folder / "__pycache__").mkdir(parents=True, exist_ok=True)
    (stage / "scratch").mkdir()  # what the tested code may write to
    for name, data in files.items():
        _write(os.path.join(stage, name), data)
    return None


@lru_cache(maxsize=1)
def given_files(chapter: Chapter) -> dict[str, bytes]:
    """What is not the learner's in this chapter: the reference's files without tasks and the later chapters' stubs."""
    written_in = {name: one.number for one in chapters() for name in one.files}
    found = {path.name: path.read_bytes() for path in REFERENCE.glob("*.npz")}
    for name, path in package_files(REFERENCE).items():
        if name not in written_in:
            found[name] = path.read_bytes()
        elif written_in[name] > chapter.number:
            found[name] = stub_of(read_source(path)).encode()
    return found


def _write(path: str, data: bytes) -> None:
    """Write a file, and beside a Python file its bytecode: what an earlier stage had too is not compiled again."""
    with open(path, "wb") as file:
        file.write(data)
    if path.endswith(".py"):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # seen by whoever imports it
            kept = bytecode(data)
            folder, name = os.path.split(path)
            with open(f"{folder}/__pycache__/{name[:-3]}.{sys.implementation.cache_tag}.pyc", "wb") as file:
                file.write(kept)


def package_files(package: Path) -> dict[str, Path]:
    """The regular Python files of a package, by their path within it. Links are left out."""
    found = {}
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            path = Path(folder) / name
            if path.suffix == ".py" and path.is_file() and not path.is_symlink():
                found[path.relative_to(package).as_posix()] = path
    return found
