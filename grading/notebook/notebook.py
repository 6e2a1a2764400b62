"""`python grader.py notebook`: a chapter's text as a notebook, beside it in chapters/."""

import os
from collections.abc import Sequence

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.course.chapters import ROOT, Chapter
from grading.course.files import read_source, write_source
from grading.tutor import memory, screen

FIRST = '''# Run this cell first. It finds your package, and notices when you change it.
import sys
from pathlib import Path

here = Path(globals().get("__vsc_ipynb_file__", "notebook")).resolve()
course = next((one for one in here.parents if (one / "grading/notebook/magics.py").is_file()), None)


class NotFound(Exception):
    def _render_traceback_(self):  # a notebook shows the message alone
        return [str(self)]


if course is None:
    raise NotFound(f"""There is no course here: neither {here.parent}
nor a folder above it has grader.py and meintorch/. Put this notebook into the
folder chapters/ of your copy of the course and open it there. Or go to your copy
with %cd, and run this cell again.""")

sys.path.insert(0, str(course))
from grading.notebook.magics import set_up

set_up()'''

GUIDE = """*This notebook is made from the chapter's text. Your code lives in the files in `meintorch/`. Change them in
an editor and save: the next cell that you run uses the new code. Or write your answer in a new cell that begins with
`%%task {example}` (where a task has two places, the place's name behind it). Running it puts your lines into their
place in the file, keeps a copy of what was there, and checks the task. `%grader` stands for `python grader.py`:
`%grader hint {example}` shows a hint.*"""


def build(chapter: Chapter) -> str:
    """The notebook as a file's text. The same chapter gives the same text."""
    text = read_source(chapter.text)
    made = jupytext.reads(text, fmt={"extension": ".md", "split_at_heading": True})
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("```python .noeval", "```python")
    first, guide = new_code_cell(FIRST), new_markdown_cell(GUIDE.format(example=chapter.tasks[0].id))
    last = new_code_cell(f"%grader {chapter.number}")
    cells = [first, made.cells[0], guide, *made.cells[1:], last]
    for number, cell in enumerate(cells):
        cell.id = f"{chapter.slug}-{number:03}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    # Nothing of jupytext's own goes into the metadata: it would pair the two files, and a saved notebook would
    # overwrite the chapter.
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    nbformat.validate(notebook)
    written: str = nbformat.writes(notebook)
    return written + "\n"


def write(chapter: Chapter) -> tuple[str, str | None]:
    """Write the notebook beside the text. Returns its place, and the place of a copy of the one that was there.

    An old notebook is kept whenever it differs: it may hold a learner's cells.
    """
    path = chapter.text.with_suffix(".ipynb")
    new = build(chapter)
    kept = None
    if path.is_file() and path.read_bytes() != new.encode():
        kept = os.path.relpath(memory.keep(path), ROOT)
    write_source(path, new)
    return path.relative_to(ROOT).as_posix(), kept


def write_and_show(chapters: Sequence[Chapter]) -> None:
    """Write the notebooks of chapters, and print where they are."""
    screen.say()
    for chapter in chapters:
        place, kept = write(chapter)
        screen.say(f" written: {place}")
        if kept:
            screen.say(f" The notebook that was there is kept in {kept}")
    screen.say()
    screen.say(f" Open it in your editor, or: jupyter lab --notebook-dir=. {place}")
    screen.say()
