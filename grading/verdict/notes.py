"""What deserves a mention beside a result: files that have no effect, and tests that are not the course's own."""

import os
import subprocess
import sys
from pathlib import Path

from grading.course.chapters import ROOT, TESTS, Chapter

SETTINGS = {"conftest.py", "pytest.ini", "tox.ini", "sitecustomize.py", "usercustomize.py", "numpy.py", "pytest.py"}


def files_without_effect(package: Path) -> list[str]:
    """Files in or beside a package that would change what Python or pytest does, were it not graded as a copy."""
    package = package.absolute()
    modules = {f"{name}.py" for name in sys.stdlib_module_names}
    places = {"beside the package": (package.parent, SETTINGS | modules), "in the package": (package, SETTINGS)}
    return [
        f"{name} {where} has no effect on the checks."
        for where, (folder, names) in places.items()
        if folder.is_dir()
        for name in sorted(names & set(os.listdir(folder)))
    ]


class EditedTests:
    """Asks git, while other work goes on, which of a chapter's tests have been edited."""

    def __init__(self, chapter: Chapter):
        names = [str(path) for path in (chapter.tests, TESTS / "_helpers.py", TESTS / "_canaries.py")]
        # Without a lock: a check at the wrong moment must not make a learner's own git command fail.
        git = ["git", "--no-optional-locks", "-C", str(ROOT)]
        command = [*git, "status", "--porcelain", "-uno", "--", *names]  # what git does not know yet is new, not edited
        try:
            self.git = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:  # there is no git here
            self.git = None

    def notes(self) -> list[str]:
        if self.git is None:
            return []
        lines = self.git.communicate()[0].decode("utf-8", "replace").splitlines()
        names = [line[3:] for line in lines if not line.startswith("A")]  # new, and added already: not edited
        return [f"{name} has been edited: this is not the course's own check. See git diff {name}" for name in names]
