"""A copy to grade: the learner's package and the checkout's tests, and nothing else.

Nothing that a learner's code does to the stage reaches the repository, and nothing beside the learner's package
(a numpy.py, a conftest.py) reaches the stage.
"""

import os
import shutil
from pathlib import Path

from grading.course import PACKAGE, REFERENCE, TESTS, Chapter, chapters
from grading.files import read_source
from grading.gradable import NotGradable, problem_in
from grading.stubs import stub_of

INI = """[pytest]
markers =
    task(number, revisits=None): the task that a test belongs to, and the earlier one that it goes back to
    goal: part of the harder suite
faulthandler_exit_on_timeout = true
"""


def build(stage: Path, package: Path, chapter: Chapter) -> NotGradable | None:
    """Copy `package` and the tests of `chapter` to the folder `stage`. Return why it cannot be graded, or None.

    The files of later chapters come from the stubs, so that a slip there breaks nothing here.
    """
    target = stage / "meintorch"
    for name, path in {**package_files(package), **given_files()}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
    for other in chapters():
        for name in other.files:
            if other.number > chapter.number:
                if (target / name).is_dir():
                    shutil.rmtree(target / name)
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_text(stub_of(read_source(REFERENCE / name)), encoding="utf-8")
            elif not (target / name).is_file():
                task = next(task for task in other.tasks if any(part.file == name for part in task.parts))
                fix = f" To have its stub again: python grader.py reset {task.id}" if package == PACKAGE else ""
                what = "is missing."
                if (package / name).is_symlink():
                    what = "is a link, and only files are graded."
                elif (package / name).is_dir():
                    what, fix = "is a folder. Give that another name, and save your code in a file of this name.", ""
                return NotGradable(f"The file {what}{fix}", f"meintorch/{name}")
            elif problem := problem_in(target / name, f"meintorch/{name}"):
                return problem
    (stage / "tests").mkdir()
    (stage / "scratch").mkdir()  # what the tested code may write to
    for path in [TESTS / "__init__.py", TESTS / "_helpers.py", TESTS / "_canaries.py", chapter.tests]:
        shutil.copyfile(path, stage / "tests" / path.name)
    (stage / "pytest.ini").write_text(INI, encoding="utf-8")
    return None


def given_files() -> dict[str, Path]:
    """The reference's files without tasks, data included, by their path in the package."""
    with_tasks = {name for chapter in chapters() for name in chapter.files}
    files = {**package_files(REFERENCE), **{path.name: path for path in sorted(REFERENCE.glob("*.npz"))}}
    return {name: path for name, path in files.items() if name not in with_tasks}


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
