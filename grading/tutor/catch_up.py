"""`python grader.py catch-up`: what is not done before a chapter comes from the reference, and a copy is kept."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from grading.course import texts
from grading.course.chapters import PACKAGE, REFERENCE, Chapter, Task, chapters
from grading.course.compose import put
from grading.course.errors import CourseError
from grading.course.files import read_source, write_source
from grading.course.stubs import skeleton
from grading.runner.gradable import problem_in
from grading.runner.launch import Start
from grading.runner.stage import package_files, temporary_folder
from grading.tutor import reset, screen
from grading.verdict.judge import grade

WHOLE = ["the whole file"]


@dataclass
class Filled:
    """A copy of the learner's package, and what of it comes from the reference by now."""

    package: Path
    files: dict[str, list[str]] = field(default_factory=dict)  # by file: the answered tasks, or WHOLE

    def take_whole(self, name: str) -> None:
        (self.package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REFERENCE / name, self.package / name)
        self.files[name] = WHOLE

    def answer(self, task: Task, answers: list[str], name: str) -> None:
        """Answer every part of a task; where that does not fit, take the whole file. `name` is said of it later."""
        for part, text in zip(task.parts, answers):
            if self.files.get(part.file) == WHOLE:
                continue
            path = self.package / part.file
            try:
                write_source(path, put(read_source(path), part.region, text, skeleton(part.file)))
                self.files[part.file] = list(dict.fromkeys([*self.files.get(part.file, []), name]))
            except ValueError:
                self.take_whole(part.file)


def catch_up_and_show(chapter: Chapter, start: Start) -> bool:
    """Answer what does not pass before a chapter, and print what was done. Returns whether that went well."""
    try:
        filled, kept = catch_up(chapter, start)
    except reset.CannotReset as error:
        screen.say()
        screen.paragraph(str(error), indent=1)
        screen.say()
        return False
    screen.say()
    if not filled:
        screen.say(f" Everything before chapter {chapter.number} passes already: nothing to do.")
    for name, tasks in filled.items():
        screen.paragraph(f"meintorch/{name}: from the reference: {', '.join(tasks)}", indent=1)
        if kept.get(name):
            screen.say(f" What was there is kept in {kept[name]}")
    screen.say()
    screen.say(f" Next: read chapters/{chapter.slug}.md, then: python grader.py {chapter.number}")
    screen.say()
    return True


def catch_up(chapter: Chapter, start: Start) -> tuple[dict[str, list[str]], dict[str, str | None]]:
    """Answer every task before `chapter` that does not pass. What passes stays as it is.

    Returns the answered tasks (or "the whole file") for every file, and where the old files are kept. Raises
    reset.CannotReset where nothing could be written.
    """
    with temporary_folder() as folder:
        filled = Filled(folder / "meintorch")
        for name, path in package_files(PACKAGE).items():
            (filled.package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, filled.package / name)
        for earlier in [other for other in chapters() if other.number < chapter.number]:
            _complete(earlier, filled, _improved_from(chapter), start)
        new = {name: read_source(filled.package / name) for name in filled.files}
        return filled.files, reset.exchange(new, "comes from the reference now")


def _improved_from(chapter: Chapter) -> set[str | None]:
    """The tasks that this chapter or a later one goes back to."""
    return {task.revisits for other in chapters() if other.number >= chapter.number for task in other.tasks}


def _complete(earlier: Chapter, filled: Filled, improved_later: set[str | None], start: Start) -> None:
    """Let a chapter pass."""
    for name in earlier.files:
        if not (filled.package / name).is_file() or problem_in(filled.package / name, name):
            filled.take_whole(name)
    report = grade(earlier, filled.package, start=start)
    for task in [task_report.task for task_report in report.tasks if task_report.status != "passed"]:
        filled.answer(task, *_answers(earlier, task, task.id in improved_later))
    if not report.passed and not grade(earlier, filled.package, start=start).passed:
        for name in earlier.files:  # the mistake is in the given lines
            filled.take_whole(name)


def _answers(chapter: Chapter, task: Task, improved_later: bool) -> tuple[list[str], str]:
    """The answers to a task, a text for each place, and the task's name for the report.

    One that a later chapter improves is for now as its own text has it. Where the text has no solution, as one with
    other headings, the final form is taken, and that is said.
    """
    final = [part.region.answer() for part in task.parts]
    if not improved_later:
        return final, task.id
    try:
        bodies = texts.solution(read_source(chapter.text), task.id)
    except CourseError:
        bodies = []
    if len(bodies) != len(final):
        return final, f"{task.id} (in its final form: chapters/{chapter.slug}.md has no Solution for it)"
    return bodies, task.id
