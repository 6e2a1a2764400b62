"""`python -m grading.authoring.picture` draws the pictures of the README and the chapters.

The README's session is the grader's real output. A chapter's pictures are what its own cells show on the reference: the
image, or the block in Mermaid's language, that follows a cell is drawn by that cell.
"""

import ast
import contextlib
import io
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from grading.course import chapters as course
from grading.course import texts
from grading.course.compose import fill
from grading.course.files import read_source, write_source
from grading.runner.stage import temporary_folder
from grading.tutor import screen
from grading.verdict.judge import grade

PICTURE = course.CHAPTERS / "pictures" / "session.svg"
IMAGE = re.compile(r"!\[[^\]]*\]\((pictures/[\w.]+)\)")
FOLLOWS = re.compile(rf"\s*({IMAGE.pattern}|```mermaid\n.*?^```$)", re.DOTALL | re.MULTILINE)
OVERWRITING = "self.grad = unbroadcast(other.data * upstream, self.shape)\nother.grad = self.data * upstream\n"


def draw() -> str:
    """The screen of a learner whose product rule overwrites gradients, as an SVG."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True, highlight=False)
    screen.draw_on(console)
    console.print("[bold]$ python grader.py 02[/bold]")
    with temporary_folder() as folder:
        package = folder / "meintorch"
        shutil.copytree(course.REFERENCE, package)
        _break(package)
        screen.show_report(grade(course.find_chapter("02"), package))
    screen.draw_on(None)
    return console.export_svg(title="meintorch", unique_id="session")


def _break(package: Path) -> None:
    """Answer 02.2 with `=` in place of `+=`, and leave 02.4 and 02.5 open."""
    _, overwritten = course.find_task("02.2")
    answers: list[tuple[course.Part, str | None]] = [(overwritten.parts[0], OVERWRITING)]
    answers += [(course.find_task(task)[1].parts[0], None) for task in ("02.4", "02.5")]
    for part, text in answers:
        path = package / part.file
        write_source(path, fill(read_source(path), part.region, text or part.region.stub()))


def of_chapter(chapter: course.Chapter) -> Iterator[tuple[str, Any]]:
    """What the cells of a chapter draw: each image's or Mermaid block's text in the chapter, and what belongs there.

    `meintorch` has to be the reference.
    """
    text = read_source(chapter.text)
    blocks = [listing for listing in texts.listings(text) if listing.language == "python" and listing.runs]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        *before, last = ast.parse(block.code).body
        place = behind(text, block)
        with contextlib.redirect_stdout(None):
            if not place:
                exec(block.code, namespace)
                continue
            if not isinstance(last, ast.Expr):
                raise ValueError(f"{chapter.text.name}, line {block.line}: the last line of this cell shows no picture")
            exec(compile(ast.Module(before, []), chapter.text.name, "exec"), namespace)
            value = eval(compile(ast.Expression(last.value), chapter.text.name, "eval"), namespace)
        yield place, value


def behind(text: str, block: texts.Listing) -> str | None:
    """The image, or the block in Mermaid's language, that follows a cell of a chapter."""
    rest = text.split("\n")[block.line + block.code.count("\n") + 1 :]
    match = FOLLOWS.match("\n".join(rest))
    return match and match.group(1)


def draw_chapter(chapter: course.Chapter) -> list[Path]:
    """Draw a chapter's pictures anew. Returns the files written."""
    written = []
    text = read_source(chapter.text)
    for there, value in of_chapter(chapter):
        if image := IMAGE.match(there):
            path = course.CHAPTERS / image[1]
            value.save(path)
            written.append(path)
        elif there != value.mermaid():
            text = text.replace(there, value.mermaid(), 1)
            write_source(chapter.text, text)
            written.append(chapter.text)
    return written


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    write_source(PICTURE, draw())
    print(f"written: {PICTURE.relative_to(course.ROOT)}")
    sys.path.insert(0, str(course.REFERENCE.parent))
    for chapter in course.chapters():
        if FOLLOWS.search(read_source(chapter.text)):
            for path in draw_chapter(chapter):
                print(f"written: {path.relative_to(course.ROOT)}")


if __name__ == "__main__":
    main()
