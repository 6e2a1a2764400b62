"""Can a package be run at all? Syntax, encoding and forbidden imports are looked at before anything runs."""

import ast
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grading.course.chapters import chapters
from grading.course.files import as_source, bytecode
from grading.course.place import Place
from grading.course.regions import parsed

FORBIDDEN = ("torch", "jax", "jaxlib", "tinygrad", "tensorflow", "keras", "autograd")
HIDDEN = ("solutions", "grading", "grader")


@dataclass(frozen=True)
class NotGradable:
    reason: str
    place: Place  # its source: the line itself, and perhaps a caret under what is wrong in it

    def as_json(self) -> dict[str, object]:
        return {"reason": self.reason, "location": self.place.as_json()}


def problem_in(path: Path, name: str) -> NotGradable | None:
    """Return why the file at `path`, called `name` in messages, cannot be run, or None."""
    return problem_of(path.read_bytes(), name)


@lru_cache(maxsize=128)
def problem_of(data: bytes, name: str) -> NotGradable | None:
    """What `problem_in` returns, for what is in the file."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return NotGradable("The file is saved as UTF-16. Save it as UTF-8 in your editor.", Place(name))
    try:
        source = as_source(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return NotGradable("This line has a character that is not UTF-8. Save the file as UTF-8.", Place(name, line))
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        return NotGradable(
            "This line has a NUL byte in it, which Python does not accept. Delete it.", Place(name, line)
        )
    try:
        bytecode(data)  # finds more than the parser alone: a return outside of a function
        tree = parsed(source)
    except SyntaxError as error:
        return NotGradable(_explain(error, source), Place(name, error.lineno, source=_pointed(source, error)))
    except (RecursionError, MemoryError):
        return NotGradable("An expression in this file is nested too deeply for Python.", Place(name))
    for node in ast.walk(tree):
        for module in _imported(node):
            if module in FORBIDDEN:
                reason = f"Zero magic: {module} is not allowed in the course, NumPy is. You write the derivatives."
            elif module in HIDDEN:
                reason = f"Code of yours cannot import {module}: your package has to work on its own."
            else:
                continue
            line = getattr(node, "lineno", 1)
            return NotGradable(reason, Place(name, line, source=source.split("\n")[line - 1]))
    return None


def no_package_in(folder: Path) -> str:
    """Why there is no package to check in a folder, and where there is one; "" if it has any file of the course's."""
    names = {name for chapter in chapters() for name in chapter.files}

    def is_package(place: Path) -> bool:
        return any(os.path.isfile(place / name) for name in names)

    if is_package(folder):
        return ""
    above = folder.parent if folder.is_file() else folder.absolute().parent
    near = [place for pattern in ("*", "*/*") for place in sorted(folder.glob(pattern)) if is_package(place)]
    near = sorted(near, key=lambda place: place.name != "meintorch") + [above] * is_package(above)
    if near:
        return f"the package is in {near[0]}: --package {near[0]}"
    if folder.is_file():
        return "that is a file, and a folder is wanted"
    if not folder.is_dir():
        return "there is no such folder"
    return "there is no Python file of the course in that folder, such as value.py"


def _imported(node: ast.AST) -> list[str]:
    """The top-level modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [(node.module or "").partition(".")[0]]
    return []


def _explain(error: SyntaxError, source: str) -> str:
    message = error.msg
    if message == "expected ':'":
        return "A colon is missing here."
    opened = re.match(r"expected an indented block after .* on line (\d+)", message)
    if opened:
        line = source.split("\n")[int(opened.group(1)) - 1]
        spaces = len(line) - len(line.lstrip()) + 4
        return (
            f"The block that line {opened.group(1)} opens is empty, or its lines do not start with {spaces} spaces. "
            "A comment alone is not a block. If you have pasted your lines, indent all of them."
        )
    if isinstance(error, TabError):
        return "Tabs and spaces are mixed in the indentation. Use four spaces a level."
    if isinstance(error, IndentationError) or "outside function" in message:
        return f"Python says: {message}. Compare the spaces at the start of this line with the lines around it."
    return f"Python says: {message}."


def _pointed(source: str, error: SyntaxError) -> str:
    lines = source.split("\n")
    if not error.lineno or error.lineno > len(lines):
        return ""
    line = lines[error.lineno - 1]
    if isinstance(error, IndentationError):
        return line
    column = max((error.offset or 1) - 1, 0)
    return f"{line}\n{' ' * column}^"
