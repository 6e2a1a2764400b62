"""Makes the stubs in meintorch/ from the reference in solutions/: `python grader.py stubs`."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from grading.authoring import readme_map
from grading.course.chapters import PACKAGE, REFERENCE, ROOT, chapters, reference
from grading.course.files import read_source, write_source
from grading.course.regions import find_regions, is_stub, locate
from grading.course.stubs import stub_tree
from grading.tutor import memory

REMEMBERED = 20  # digests of a file: as many stubs of earlier references are known as such


def main(check: bool) -> int:
    """Write the stubs and the README's map, or only say whether they fit. Returns the command's exit status."""
    if check:
        lines = [f"meintorch/{line}" for line in differences()]
        stale = readme_map.problem(chapters())
        lines += [stale.sentence] if stale else []
        print("\n".join(lines) if lines else "meintorch/ equals the stubs of solutions/, README.md has their map.")
        return 1 if lines else 0
    reasons = edited()
    if reasons:
        print("Nothing was written, because meintorch/ has been worked on:")
        print("\n".join(f"  {reason}" for reason in reasons))
        print("To have stubs again all the same, with a copy kept: python grader.py reset all")
        return 1
    changed = [f"written: meintorch/{name}" for name in write()]
    if changed:
        print("\n".join(changed))
    left = [line.partition(" ")[0] for line in differences() if line.endswith("is not in the reference")]
    for name in left:
        print(f"meintorch/{name} is not in the reference. If nothing needs it any more, delete it.")
    if readme_map.write(chapters()):
        print("written: the map in README.md")
    elif not changed:
        print("Nothing has changed.")
    return 0


def differences(package: Path = PACKAGE) -> list[str]:
    """The files of `package` that are not the stubs of the reference, a line each."""
    wanted = stub_tree()
    found = {path.relative_to(package).as_posix(): _text(path) for path in sorted(package.rglob("*.py"))}
    lines = [f"{name} is missing" for name in wanted if name not in found]
    lines += [f"{name} is not in the reference" for name in found if name not in wanted]
    lines += [f"{name} differs" for name in wanted if name in found and found[name] != wanted[name]]
    return lines


def edited(package: Path = PACKAGE) -> list[str]:
    """Why `package` must not be overwritten: tasks that somebody has answered, files with uncommitted edits.

    A file that is what would be written, or what was written here from an earlier reference, is nobody's work.
    """
    reasons = []
    edits = _files_that_git_shows_as_edited(package)
    written = memory.recall("stubs")
    for name, wanted in stub_tree().items():
        path = package / name
        source = _text(path) if path.is_file() else wanted
        if source == wanted or _digest(source or "") in written.get(name, []):
            continue
        if source is None:
            reasons.append(f"{name}: this is not UTF-8, so nobody can say what is in it")
            continue
        reasons += _answered(name, source)
        if path.resolve() in edits:
            reasons.append(f"{name}: uncommitted edits. Commit them, or undo them: git checkout meintorch/{name}")
    return reasons


def write(package: Path = PACKAGE) -> list[str]:
    """Write the stubs to `package` and return the names of the files that changed, with the places of the old ones."""
    changed, written = [], memory.recall("stubs") if package == PACKAGE else {}
    for name, source in stub_tree().items():
        path = package / name
        if not path.is_file() or _text(path) != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            ours = path.is_file() and _digest(_text(path) or "") in written.get(name, [])
            kept = f" (what was there is kept in {memory.keep(path)})" if path.is_file() and not ours else ""
            write_source(path, source)
            changed.append(f"{name}{kept}")
            digests = [digest for digest in written.get(name, []) if digest != _digest(source)]
            written[name] = [*digests, _digest(source)][-REMEMBERED:]
    for data in sorted(REFERENCE.rglob("*.npz")):
        shutil.copyfile(data, package / data.relative_to(REFERENCE))
    if changed and package == PACKAGE:
        memory.remember("stubs", written)
    return changed


def _answered(name: str, source: str) -> list[str]:
    """The tasks of a file that are no longer stubs."""
    try:
        blocks = [(region, locate(source, region)) for region in find_regions(reference()[name])]
    except SyntaxError as error:
        return [f"{name}, line {error.lineno}: Python cannot read this, so nobody can say what is answered in it"]
    tasks = dict.fromkeys(region.task for region, block in blocks if block is not None and not is_stub(block))
    return [f"{name}: task {task} is no longer a stub" for task in tasks]


def _files_that_git_shows_as_edited(package: Path) -> set[Path]:
    """Those that git knows and that differ from its last commit. New files, which it does not know, are not among them.

    Without git, what is answered and the kept copies have to do.
    """
    git = ["git", "--no-optional-locks", "-C", str(ROOT)]
    try:
        top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, check=False).stdout
        command = [*git, "diff", "--name-only", "--diff-filter=MTU", "-z", "HEAD", "--", str(package)]
        names = subprocess.run(command, capture_output=True, check=False).stdout
    except OSError:
        return set()
    folder = Path(top.decode("utf-8", "replace").strip())
    return {(folder / name).resolve() for name in names.decode("utf-8", "replace").split("\0") if name}


def _text(path: Path) -> str | None:
    """A file's text, None where it is not UTF-8."""
    try:
        return read_source(path)
    except UnicodeDecodeError:
        return None


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
