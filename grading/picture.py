"""`python -m grading.picture` draws the session that the README shows, from the grader's real output."""

import io
import shutil
from pathlib import Path

from rich.console import Console

from grading import course, screen
from grading.files import read_source, write_source
from grading.regions import fill
from grading.report import grade, temporary_folder

PICTURE = course.CHAPTERS / "pictures" / "session.svg"
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
        screen.show_report(grade(course.find_chapter("02"), package), None)
    return console.export_svg(title="meintorch", unique_id="session")


def _break(package: Path) -> None:
    """Answer 02.2 with `=` in place of `+=`, and leave 02.4 and 02.5 open."""
    _, overwritten = course.find_task("02.2")
    answers = [(overwritten.parts[0], OVERWRITING)]
    answers += [(course.find_task(task)[1].parts[0], None) for task in ("02.4", "02.5")]
    for part, text in answers:
        path = package / part.file
        write_source(path, fill(read_source(path), part.region, text or part.region.stub()))


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    write_source(PICTURE, draw())
    print(f"written: {PICTURE.relative_to(course.ROOT)}")
