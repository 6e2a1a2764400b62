"""A copy to grade: the learner's package and the checkout's tests, and nothing else.

Nothing that a learner's code does to the stage reaches the repository, and nothing beside the learner's package
(a numpy.py, a conftest.py) reaches the stage.
"""

import os
import shutil
from pathlib import Path

from grading.course import REFERENCE, TESTS, Chapter, chapters
from grading.files import read_source
from grading.gradable import NotGradable, problem_in
from grading.stubs import stub_of

INI = """[pytest]
markers =
    task(number): the task that a test belongs to
    goal: part of the harder suite
faulthandler_exit_on_timeout = true
"""


def build(stage: Path, package: Path, chapter: Chapter) -> NotGradable | None:
    """Copy `package` and the tests of `chapter` to the folder `stage`. Return why it cannot be graded, or None.

    The files of later chapters come from the stubs, so that a slip there breaks nothing here.
    """
    target = stage / "meintorch"
    for name, path in {**package_files(package), **data_files()}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
    for other in chapters():
        for name in other.files:
            if other.number > chapter.number:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_text(stub_of(read_source(REFERENCE / name)), encoding="utf-8")
            elif not (target / name).is_file():
                task = next(task for task in other.tasks if any(part.file == name for part in task.parts))
                fix = f"The file is missing. To have its stub again: python grader.py reset {task.id}"
                return NotGradable(fix, f"meintorch/{name}")
            elif problem := problem_in(target / name, f"meintorch/{name}"):
                return problem
    if not (target / "__init__.py").is_file():
        (target / "__init__.py").write_text(read_source(REFERENCE / "__init__.py"), encoding="utf-8")
    (stage / "tests").mkdir()
    for path in [TESTS / "__init__.py", TESTS / "_helpers.py", chapter.tests]:
        shutil.copyfile(path, stage / "tests" / path.name)
    (stage / "pytest.ini").write_text(INI, encoding="utf-8")
    return None


def data_files() -> dict[str, Path]:
    """The data that belongs to the package, by its path within it: the reference's own, whatever a learner has."""
    return {path.relative_to(REFERENCE).as_posix(): path for path in sorted(REFERENCE.rglob("*.npz"))}


def package_files(package: Path) -> dict[str, Path]:
    """The regular Python files of a package, by their path within it. Links are left out."""
    found = {}
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(files):
            path = Path(folder) / name
            if path.suffix == ".py" and not path.is_symlink():
                found[path.relative_to(package).as_posix()] = path
    return found
