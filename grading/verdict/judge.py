"""Grades a chapter: runs its checks on a stage and says what became of every task."""

import re
from pathlib import Path

from grading.course.chapters import PACKAGE, REFERENCE, Chapter, Part, Task, chapters, order
from grading.course.place import Place
from grading.runner import launch, stage
from grading.runner.gradable import NotGradable
from grading.runner.launch import Start
from grading.runner.outcomes import Outcome
from grading.verdict import blame, later, phrasebook
from grading.verdict.notes import EditedTests, files_without_effect
from grading.verdict.results import Report, Result, TaskReport
from grading.verdict.trial import Trial

TODO = re.compile(r"TODO (\d\d\.\d+)")
LEFTOVER = "Your lines are there, but so is the stub's own `raise` line, which stops them. Delete it."


def grade(
    chapter: Chapter,
    package: Path = PACKAGE,
    task: Task | None = None,
    goal: bool = False,
    timeout: float = 15.0,
    start: Start = launch.start,
) -> Report:
    """Check a chapter, or one task of it, on the package in a folder.

    goal     the harder suite as well
    timeout  seconds a test may take
    start    starts a run, see grading.runner.launch
    """
    with stage.temporary_folder() as folder:
        return grade_on(folder, chapter, package, task, goal, timeout, start)


def grade_on(
    folder: Path, chapter: Chapter, package: Path, task: Task | None, goal: bool, timeout: float, start: Start
) -> Report:
    """What `grade` does, with an empty folder for the stage."""
    asked = [task] if task else list(chapter.tasks)
    checks = [check for check in chapter.checks if check.task in {wanted_task.id for wanted_task in asked}]
    report = Report(chapter, task, checks=[check for check in checks if goal or not check.goal])
    edited_tests = EditedTests(chapter)
    staged = stage.build(folder, package, chapter)
    if isinstance(staged, NotGradable):
        report.not_gradable = staged
    else:
        report.package = staged.package
        _run_and_judge(report, asked, Trial(staged, timeout, start))
    report.next = _next(report)
    report.notes = [*edited_tests.notes(), *files_without_effect(package)]
    return report


def _run_and_judge(report: Report, asked: list[Task], trial: Trial) -> None:
    run = trial.run(report.package, report.checks, set_aside=True)
    if run.import_problem is not None:
        report.not_gradable = _not_importable(run.import_problem, report.chapter, trial.stage.folder / "meintorch")
        return
    results = {name: Result.of(outcome) for name, outcome in run.outcomes.items()}
    later.explain(report, trial, results)
    places = {part: report.package.place(part) for task in report.chapter.tasks for part in task.parts}
    for task in asked:
        own = [results[check.name] for check in report.checks if check.task == task.id]
        report.tasks.append(_judge(task, own, report, places))
    blame.find_culprits(report, trial)


def _judge(task: Task, own: list[Result], report: Report, places: dict[Part, Place]) -> TaskReport:
    """Say what became of a task. `places` are those of the chapter's answers, as the learner wrote them."""
    to_write = [part for part in task.parts if report.package.is_unwritten(part)]
    waits_for = set()
    for result in own:
        todo = _todo_of(result, places)
        if todo:
            result.status = "todo"
            waits_for.add(todo)
        result.place = _place_to_name(task, result, places)
        if todo:
            _explain_todo(task, result, todo, bool(to_write))
        elif result.status in ("failed", "error") and result.kind and not result.is_check:
            _explain_error(task, result, places)
    status = _status(task, {result.status for result in own}, len(to_write), waits_for)
    needs = min(waits_for, key=order) if status == "blocked" else None
    return TaskReport(task, status, own, needs, milestone=report.chapter.checks[0].name)


def _status(task: Task, statuses: set[str], to_write: int, waits_for: set[str]) -> str:
    if statuses == {"passed"}:
        return "passed"
    if "tampered" in statuses:
        return "failed"
    if to_write == len(task.parts):
        return "todo"
    if statuses & {"failed", "timeout", "crash"}:
        return "failed"
    if to_write or task.id in waits_for:
        return "todo"
    return "blocked" if waits_for else "error"


def _place_to_name(task: Task, result: Result, places: dict[Part, Place]) -> Place | None:
    """The line of the learner's that a result speaks of."""
    if result.status != "passed" and (result.place is None or result.is_check):
        return places[_part_for(task, result)]
    # An error that a given line raised was caused by the answer that called it.
    inside = (frame for frame in result.frames[::-1] if any(place.holds(frame) for place in places.values()))
    return next(inside, result.place)


def _explain_todo(task: Task, result: Result, todo: str, to_write: bool) -> None:
    result.message = f"stops at the TODO of {todo}"
    if todo == task.id and task.revisits:
        result.message = f"the code of {task.revisits} still has its earlier form"
    elif todo == task.id and not to_write:
        result.diagnosis = LEFTOVER
    elif todo != task.id and order(todo) > order(task.id):
        result.diagnosis = f"{todo} comes after {task.id}. Write it first, or do without it here."


def _explain_error(task: Task, result: Result, places: dict[Part, Place]) -> None:
    """Put an error of Python's or NumPy's into words. What a probe has found comes first unless the error tells all."""
    part = next((part for part, place in places.items() if place.holds(result.place)), _part_for(task, result))
    line = result.place.quote if result.place else ""
    spot = phrasebook.Spot(task.id[:2], part, line, places[part].source)
    cause = phrasebook.cause_of_error(result.kind, result.message, spot)
    if cause:
        result.diagnosis = cause
    elif not result.diagnosis:
        result.diagnosis, result.explained = phrasebook.explain_error(result.kind, result.message, spot), True
    result.message = result.sentence


def _todo_of(result: Result, places: dict[Part, Place]) -> str | None:
    """The task whose NotImplementedError stopped a test: by its text, or where that was changed by where it stands."""
    if result.kind != "NotImplementedError":
        return None
    match = TODO.fullmatch(result.message)
    if match and any(task.id == match[1] for chapter in chapters() for task in chapter.tasks):
        return match[1]
    for frame in result.frames[::-1]:
        for part, place in places.items():
            if place.holds(frame):
                return part.region.task
    return None


def _part_for(task: Task, result: Result) -> Part:
    """Of a task with several places, the one that the test's name speaks of."""
    words = f"_{result.name}_"
    named = [[len(name) for name in part.region.qualname.split(".") if f"_{name}_" in words] for part in task.parts]
    return task.parts[named.index(max(named))]  # of log_softmax and stable_log_softmax the longer one, if it is there


def _not_importable(problem: Outcome, chapter: Chapter, folder: Path) -> NotGradable:
    if problem.kind == "NameError" and problem.message.split("'")[1:2] in (["self"], ["other"], ["upstream"]):
        sentence = Result.of(problem).sentence
        reason = f"{sentence}. This line stands outside of every function: indent it as its TODO was."
    elif problem.kind == "SystemExit":
        reason = "A call ends Python while the package is imported: there is nothing left to check."
    elif problem.kind:
        why = _about_import(problem.message, chapter, folder)
        reason = f"The package cannot be imported. {Result.of(problem).sentence}{why}"
    else:
        reason = f"While the package was imported: {problem.message}"
    return NotGradable(reason, problem.place or Place("meintorch"))


def _about_import(message: str, chapter: Chapter, folder: Path) -> str:
    """What lies behind two errors of import that a learner cannot guess."""
    missing = re.fullmatch(r"No module named '(\w+)'", message)
    if missing and (folder / f"{missing[1]}.py").is_file():
        return f". It is called meintorch.{missing[1]}: from meintorch.{missing[1]} import ..."
    source = re.match(r"cannot import name '.*' from '(meintorch[\w.]*)'", message)
    if source:
        name = source[1].partition(".")[2].replace(".", "/") or "__init__"
        own = [file for other in chapters() if other.number <= chapter.number for file in other.files]
        if f"{name}.py" not in own and (REFERENCE / f"{name}.py").is_file():
            return (
                f". For chapter {chapter.number} the course's own meintorch/{name}.py is used, not yours: put what you "
                "have added there into a file with a name of its own."
            )
    return ""


def _next(report: Report) -> str:
    """The command that takes the learner further."""
    if report.not_gradable:
        return f"python grader.py {report.asked}"
    if report.task and report.passed:
        after = report.chapter.tasks[report.chapter.tasks.index(report.task) + 1 :]
        return f"python grader.py {after[0].id if after else report.chapter.number}"
    by_status = {task_report.status: task_report for task_report in reversed(report.tasks)}  # the first of each
    failed = next((task for task in report.tasks if task.status in ("failed", "error")), by_status.get("todo"))
    if failed:
        return f"python grader.py hint {failed.task.id}"
    blocked = by_status.get("blocked")
    if blocked and blocked.needs and order(blocked.needs) < order(blocked.task.id):
        return f"python grader.py {blocked.needs}"
    if blocked:
        return f"python grader.py hint {blocked.task.id}"
    return f"python grader.py diff {report.chapter.number}"
