"""`python grader.py catch-up`: what is not done before a chapter comes from the reference, and a copy is kept."""

import shutil

from grading.course import texts
from grading.course.chapters import PACKAGE, REFERENCE, Chapter, Task, chapters
from grading.course.errors import CourseError
from grading.course.files import read_source, write_source
from grading.course.regions import put
from grading.course.stubs import stub_of
from grading.runner.gradable import problem_in
from grading.runner.stage import package_files
from grading.tutor import reset
from grading.verdict.judge import grade, temporary_folder

WHOLE = ["the whole file"]


def catch_up(chapter: Chapter) -> tuple[dict[str, list[str]], dict[str, str | None]]:
    """Answer every task before `chapter` that does not pass. What passes stays as it is.

    Returns the answered tasks (or "the whole file") for every file, and where the old files are kept. Raises
    reset.CannotReset where nothing could be written.
    """
    filled: dict[str, list[str]] = {}
    revisited = {task.revisits for one in chapters() if one.number >= chapter.number for task in one.tasks}
    with temporary_folder() as folder:
        package = folder / "meintorch"
        for name, path in package_files(PACKAGE).items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, package / name)
        for earlier in [one for one in chapters() if one.number < chapter.number]:
            for name in earlier.files:
                if not (package / name).is_file() or problem_in(package / name, name):
                    _take_whole(package, name, filled)
            report = grade(earlier, package)
            for task in [one.task for one in report.tasks if one.status != "passed"]:
                answers, name = _answers(earlier, task, task.id in revisited)
                for part, text in zip(task.parts, answers):
                    if filled.get(part.file) == WHOLE:
                        continue
                    path = package / part.file
                    skeleton = stub_of(read_source(REFERENCE / part.file))
                    try:
                        write_source(path, put(read_source(path), part.region, text, skeleton))
                        filled[part.file] = list(dict.fromkeys([*filled.get(part.file, []), name]))
                    except ValueError:
                        _take_whole(package, part.file, filled)
            if not report.passed and not grade(earlier, package).passed:  # the mistake is in the given lines
                for name in earlier.files:
                    _take_whole(package, name, filled)
        kept = reset.exchange({name: read_source(package / name) for name in filled}, "comes from the reference now")
    return filled, kept


def _answers(chapter: Chapter, task: Task, revisited: bool) -> tuple[list[str], str]:
    """The answers to a task, a text for each place, and the task's name for the report.

    One that a later chapter improves is for now as its own text has it. Where the text has no solution, as one with
    other headings, the final form is taken, and that is said.
    """
    final = [part.region.answer() for part in task.parts]
    if not revisited:
        return final, task.id
    try:
        bodies = texts.solution(read_source(chapter.text), task.id)
    except CourseError:
        bodies = []
    if len(bodies) != len(final):
        return final, f"{task.id} (in its final form: chapters/{chapter.slug}.md has no Solution for it)"
    return bodies, task.id


def _take_whole(package, name: str, filled: dict[str, list[str]]) -> None:
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(REFERENCE / name, package / name)
    filled[name] = WHOLE
