"""The rooms of grading/: imports go in one direction only, and nothing in them grows too long to be read."""

import ast
from pathlib import Path

import pytest

from grading.course.chapters import ROOT
from grading.course.files import read_source

GRADING = ROOT / "grading"
ROOMS = ["cli", "authoring", "notebook", "tutor", "verdict", "runner", "course"]  # each may import those behind it
LONGEST_FILE, LONGEST_FUNCTION = 350, 50  # lines
FILES = sorted(GRADING.rglob("*.py"))


def room_of(module: str) -> str:
    """grading.runner.launch -> runner; what stands in no room belongs to the front, the cli."""
    name = module.split(".")[1:2]
    return name[0] if name and name[0] in ROOMS else "cli"


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(read_source(path))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "grading":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] == "grading"]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(GRADING).as_posix())
def test_no_room_imports_one_in_front_of_it(path):
    own = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imports(path):
        assert ROOMS.index(own) <= ROOMS.index(room_of(name)), f"{own} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(GRADING).as_posix())
def test_no_file_and_no_function_is_too_long_to_be_read(path):
    source = read_source(path)
    assert source.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, node.name
