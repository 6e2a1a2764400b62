"""The map of the chapters in README.md, between two comments: `python grader.py stubs` writes it."""

from collections.abc import Sequence

from grading.course.chapters import ROOT, Chapter
from grading.course.errors import CourseError, reading
from grading.course.files import read_source, write_source

README = ROOT / "README.md"
BEGIN = "<!-- The map: python grader.py stubs writes it. -->"
END = "<!-- The end of the map. -->"


def map_of(chapters: Sequence[Chapter]) -> str:
    """The table: a row for each chapter, with its title, its files and the number of its tasks."""
    rows = ["| chapter | you write | tasks |", "|---|---|---|"]
    for chapter in chapters:
        files = ", ".join(f"`meintorch/{name}`" for name in chapter.files)
        link = f"[{chapter.number} {chapter.title}](chapters/{chapter.slug}.md)"
        rows.append(f"| {link} | {files} | {len(chapter.tasks)} |")
    return "\n".join(rows)


def with_map(readme: str, chapters: Sequence[Chapter]) -> str:
    """A README with the map of these chapters in it. Raises CourseError where the two comments are not there."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CourseError(f'The map stands between two lines, "{BEGIN}" and "{END}". Put both where it belongs.')
    return f"{before}{BEGIN}\n\n{map_of(chapters)}\n\n{END}{after}"


def written(chapters: Sequence[Chapter]) -> str | None:
    """The README with these chapters' map, None where there is no README. Raises CourseError, as `with_map` does."""
    if not README.is_file():  # a course handed out has one of its own, or none
        return None
    with reading("README.md"):
        return with_map(read_source(README), chapters)


def problem(chapters: Sequence[Chapter]) -> CourseError | None:
    """What is wrong with the map, if something is."""
    try:
        text = written(chapters)
    except CourseError as error:
        return error
    if text is None or text == read_source(README):
        return None
    return CourseError("The map is not that of the course. To write it anew: python grader.py stubs", "README.md")


def write(chapters: Sequence[Chapter]) -> bool:
    """Write the map into README.md. Returns whether anything has changed. Raises CourseError, as `with_map` does."""
    text = written(chapters)
    if text is None or text == read_source(README):
        return False
    write_source(README, text)
    return True
