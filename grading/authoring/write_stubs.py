"""Makes the stubs in meintorch/ from the reference in solutions/: `python grader.py stubs`."""

import shutil
import subprocess
from pathlib import Path

from grading.course.chapters import PACKAGE, REFERENCE, ROOT
from grading.course.files import read_source, write_source
from grading.course.regions import find_regions, is_stub, locate
from grading.course.stubs import stub_tree
from grading.tutor import memory


def differences(package: Path = PACKAGE) -> list[str]:
    """The files of `package` that are not the stubs of the reference, a line each."""
    wanted = stub_tree()
    found = {path.relative_to(package).as_posix(): read_source(path) for path in sorted(package.rglob("*.py"))}
    lines = [f"{name} is missing" for name in wanted if name not in found]
    lines += [f"{name} is not in the reference" for name in found if name not in wanted]
    lines += [f"{name} differs" for name in wanted if name in found and found[name] != wanted[name]]
    return lines


def edited(package: Path = PACKAGE) -> list[str]:
    """Why `package` must not be overwritten: tasks that somebody has answered, files with uncommitted edits."""
    reasons = []
    for name in stub_tree():
        path = package / name
        if not path.is_file():
            continue
        source = read_source(path)
        for region in find_regions(read_source(REFERENCE / name)):
            block = locate(source, region)
            if block is not None and not is_stub(block):
                reasons.append(f"{name}: task {region.task} is no longer a stub")
    git = ["git", "-C", str(ROOT), "status", "--porcelain", "--", str(package)]
    try:
        status = subprocess.run(git, capture_output=True, text=True, encoding="utf-8", check=False).stdout
    except OSError:
        status = ""  # without git the check above and the kept copies have to do
    reasons += [f"{line[3:]}: uncommitted edits" for line in status.splitlines()]
    return reasons


def write(package: Path = PACKAGE) -> list[str]:
    """Write the stubs to `package` and return the names of the files that changed, with the places of the old ones."""
    changed = []
    for name, source in stub_tree().items():
        path = package / name
        if not path.is_file() or read_source(path) != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = f" (what was there is kept in {memory.keep(path)})" if path.is_file() else ""
            write_source(path, source)
            changed.append(f"{name}{kept}")
    for data in sorted(REFERENCE.rglob("*.npz")):
        shutil.copyfile(data, package / data.relative_to(REFERENCE))
    return changed


def show_differences() -> bool:
    """Print which files are not the stubs of the reference. Returns whether there are none."""
    lines = differences()
    print("\n".join(lines) if lines else "meintorch/ equals the stubs of solutions/.")
    return not lines


def write_and_show() -> bool:
    """Write the stubs, unless somebody has worked on them. Returns whether they were written."""
    reasons = edited()
    if reasons:
        print("Nothing was written, because meintorch/ has been worked on:")
        print("\n".join(f"  {reason}" for reason in reasons))
        return False
    changed = write()
    print("\n".join(f"written: meintorch/{name}" for name in changed) or "Nothing has changed.")
    return True
