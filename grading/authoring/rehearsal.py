"""Runs a chapter's checks on the reference and on the solutions of its text, for `python grader.py course-check`."""

from pathlib import Path

from grading.course import texts
from grading.course.chapters import REFERENCE, Chapter
from grading.course.compose import put
from grading.course.errors import CourseError, GraderError
from grading.course.files import read_source, write_source
from grading.course.stubs import skeleton, stub_tree
from grading.runner.stage import temporary_folder
from grading.runner.warm import start_after_the_first
from grading.verdict.judge import grade
from grading.verdict.results import Report, TaskReport
from grading.verdict.sentences import sentence_of


def of_chapter(chapter: Chapter) -> list[CourseError]:
    """What does not pass, --goal too: the stubs must be to do, the reference and the text's solutions must pass.

    The chapters before it come from the reference, so that only this one is judged.
    """
    problems = []
    with temporary_folder() as folder:
        package = folder / "meintorch"
        for path in REFERENCE.rglob("*"):
            if path.is_file() and path.suffix in (".py", ".npz"):
                target = package / path.relative_to(REFERENCE)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        problems += _judge(chapter, REFERENCE, "the reference")
        problems += _put_solutions(chapter, package) or _judge(chapter, package, "the text's solution")
        for name in chapter.files:
            write_source(package / name, stub_tree()[name])
        problems += _stubs_are_to_do(chapter, package)
    return problems


def _put_solutions(chapter: Chapter, package: Path) -> list[CourseError]:
    """Exchange the reference's answers for those of the text. Returns those that cannot be put in their places."""
    text = read_source(chapter.text)
    problems = []
    for task in chapter.tasks:
        for part, body in zip(task.parts, texts.solution(text, task.id)):
            try:
                source = put(read_source(package / part.file), part.region, body, skeleton(part.file))
                write_source(package / part.file, source)
            except (SyntaxError, ValueError) as error:
                problems.append(_in_text(chapter, task.id, f"the solution of {task.id} is not Python: {error}"))
    return problems


def _judge(chapter: Chapter, package: Path, what: str) -> list[CourseError]:
    """What does not pass of a chapter in a package, one sentence a task."""
    report = _report(chapter, package)
    if isinstance(report, CourseError):
        return [report]
    problems = []
    for task in report.tasks:
        if task.status == "passed":
            continue
        message = f"{what} of {task.task.id} does not pass its checks: {_why(task)}"
        if package == REFERENCE:
            part = task.task.parts[0]
            problems.append(CourseError(message, f"solutions/meintorch/{part.file}", part.region.line))
        else:
            problems.append(_in_text(chapter, task.task.id, message))
    return problems


def _stubs_are_to_do(chapter: Chapter, package: Path) -> list[CourseError]:
    report = _report(chapter, package)
    if isinstance(report, CourseError):
        return [report]
    lines = {check.name: check.line for check in chapter.checks}
    return [
        CourseError(
            f'{result.name} should be "to do" while nothing is written. It is: {result.status}. {result.message}',
            f"tests/{chapter.tests.name}",
            lines[result.name],
        )
        for task in report.tasks
        if not task.task.revisits
        for result in task.results
        if result.status != "todo"
    ]


def _report(chapter: Chapter, package: Path) -> Report | CourseError:
    try:
        report = grade(chapter, package, goal=True, start=start_after_the_first)
    except GraderError as error:
        return CourseError(str(error), f"tests/{chapter.tests.name}")
    problem = report.not_gradable
    if problem is None:
        return report
    file = f"solutions/{problem.place.file}" if package == REFERENCE else problem.place.file
    return CourseError(f"No check can be run: {problem.reason}", file, problem.place.line)


def _why(task: TaskReport) -> str:
    result = next(result for result in task.results if result.status != "passed")
    return f"{sentence_of(result.name)}. {result.message} {result.diagnosis or ''}".strip()


def _in_text(chapter: Chapter, task: str, message: str) -> CourseError:
    lines = {heading.task: heading.line for heading in texts.outline(read_source(chapter.text))[1]}
    return CourseError(message, f"chapters/{chapter.slug}.md", lines[task])
