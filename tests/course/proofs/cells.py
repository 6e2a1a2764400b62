"""Runs the cells of a text as a learner does who follows it, and compares what they show with what is noted in them."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grading.authoring import picture, write_stubs
from grading.authoring.corpora import put_answer
from grading.course import chapters as course
from grading.course import texts
from grading.course.files import read_source
from grading.notebook.reload import Follower
from tests.course.conftest import follow_the_texts

NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


@dataclass
class Ran:
    """What has come of a chapter's cells."""

    results: int = 0  # that are noted in them
    wrong: list[str] = field(default_factory=list)  # of the results, a line for each
    pictures: list[tuple[str, str]] = field(default_factory=list)  # in the text, and what its cell draws


def cells(chapter: course.Chapter) -> list[texts.Listing]:
    return [one for one in texts.listings(read_source(chapter.text)) if one.language == "python" and one.runs]


def run_as_a_learner(chapter: course.Chapter, folder: Path) -> Ran:
    """Run a chapter's cells one after the other, in this process. `folder` is an empty one, for the package.

    All its tasks are to do at first. Each is answered as soon as its solution stands above the cell that is run.
    """
    package = folder / "meintorch"
    package.mkdir()
    write_stubs.write(package)
    follow_the_texts(package, chapter.number)
    text = read_source(chapter.text)
    to_come = solutions(text, chapter)
    namespace, ran = {"__name__": "__main__"}, Ran()
    with imported_from(package):
        follower = Follower(package)
        for cell in cells(chapter):
            for task in [task for task, line in to_come.items() if line < cell.line]:
                put_answer(package, task, texts.solution(text, task))
                del to_come[task]
            ran.wrong += follower.follow()
            value = run_cell(cell, namespace, ran)
            follower.note()
            there = picture.behind(text, cell)
            if there:
                ran.pictures.append((there, svg_of(value) if there.startswith("!") else value.mermaid()))
    return ran


def solutions(text: str, chapter: course.Chapter) -> dict[str, int]:
    """The line in which the solution of each task ends."""
    found = {}
    for task in chapter.tasks:
        section = texts.task_section(text, task.id)
        end = text.index(section) + section.rindex("</details>")
        found[task.id] = text.count("\n", 0, end) + 1
    return found


@contextmanager
def imported_from(package: Path) -> Iterator[None]:
    """In here `import meintorch` is the package in that folder, and outside what it was."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "meintorch"}
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(package.parent))
    try:
        yield
    finally:
        sys.path.remove(str(package.parent))
        for name in [name for name in sys.modules if name.partition(".")[0] == "meintorch"]:
            del sys.modules[name]
        sys.modules.update(before)


def run_cell(cell: texts.Listing, namespace: dict, ran: Ran) -> object:
    """Run a cell as Python's own session would, and note what is wrong. Returns what its last line shows."""
    tree = ast.parse(cell.code)
    noted, found, shown = notes(cell), {}, [None]
    ends = {node.lineno: node.end_lineno for node in ast.walk(tree) if isinstance(node, ast.Expr)}

    def print_noted(*values, sep=" ", **others):
        found[sys._getframe(1).f_lineno] = sep.join(map(str, values))

    def show(value):
        shown[0] = value
        if value is not None:
            repr(value)  # which a session would show: it must not fail
            found[ends[sys._getframe(1).f_lineno]] = str(value)

    namespace["print"] = print_noted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "displayhook", show)
        for statement in tree.body:
            exec(compile(ast.Interactive([statement]), f"<cell in line {cell.line}>", "single"), namespace)
    for line, note in noted.items():
        where = f"line {cell.line + line}: {note}"
        if line not in found:
            ran.wrong.append(f"{where} - this line gave no result")
        elif not agree(note, found[line]):
            ran.wrong.append(f"{where} - it is {found[line]}")
    ran.results += len(noted)
    return shown[0]


def notes(cell: texts.Listing) -> dict[int, str]:
    """The results that are noted in a cell: line by line, what stands at the end of an expression that is shown."""
    ends = {node.end_lineno for node in ast.walk(ast.parse(cell.code)) if isinstance(node, ast.Expr)}
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(cell.code).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            alone = not token.line[: token.start[1]].strip()
            assert not alone, f"line {cell.line + line}: a result on a line of its own is not compared"
            if line in ends:  # others are remarks
                found[line] = token.string.lstrip("# ")
    return found


def agree(note: str, found: str) -> bool:
    """The same text, and the same numbers at the digits that are noted."""
    if NUMBER.sub("#", note).split() != NUMBER.sub("#", found).split():
        return False
    for wanted, number in zip(NUMBER.findall(note), NUMBER.findall(found)):
        digits = len(wanted.partition(".")[2]) if "." in wanted and "e" not in wanted else None
        tolerance = 0.5 * 10.0**-digits * (1 + 1e-6) if digits else abs(float(wanted)) * 1e-9
        if abs(float(wanted) - float(number)) > tolerance:
            return False
    return True


def svg_of(made) -> str:
    return made._repr_mimebundle_()["image/svg+xml"]


def words(svg: str) -> list[str]:
    """What is written in a picture. Matplotlib draws letters as shapes and notes the text beside them."""
    return re.findall(r"<!-- (.*?) -->", svg)
