"""Whose fault is it? A task that passes once an earlier one is answered by the reference waits for that one."""

from collections.abc import Callable

from grading.course.chapters import Part, chapters, reference
from grading.course.package import Package
from grading.course.regions import Region
from grading.verdict.results import Report, TaskReport
from grading.verdict.trial import Trial

Passing = Callable[..., list[TaskReport]]


def find_culprits(report: Report, trial: Trial) -> None:
    """Give every task that failed for an earlier one's fault the status "blocked", and say what it needs."""
    if any(result.status in ("timeout", "crash", "tampered") for result in report.results.values()):
        return  # the task that hung was set aside already, and the others have shown whether they need it
    failed = [task for task in report.tasks if task.status == "failed"]
    if not failed:
        return
    for task, culprit in _blame_earlier_tasks(report, trial, failed):
        task.status, task.needs = "blocked", culprit
        failed.remove(task)
    package = report.package
    while len(failed) > 1:
        culprit_task = failed.pop(0).task
        package = package.with_answers(culprit_task.parts, Region.answer)
        for task in _passing(report, trial, package, failed):
            task.status, task.needs = "blocked", culprit_task.id
            failed.remove(task)


def _passing(
    report: Report, trial: Trial, package: Package, candidates: list[TaskReport], of: str = ""
) -> list[TaskReport]:
    """Those of the candidates whose failed tests pass with a package, or the one test `of`."""
    failed = {
        candidate.task.id: [
            result.name for result in candidate.results if result.status != "passed" and of in ("", result.name)
        ]
        for candidate in candidates
    }
    names = {name for failures in failed.values() for name in failures}
    outcomes = trial.run(package, [check for check in report.checks if check.name in names]).outcomes
    passed = {name for name, outcome in outcomes.items() if outcome.status == "passed"}
    return [candidate for candidate in candidates if passed.issuperset(failed[candidate.task.id])]


def _blame_earlier_tasks(report: Report, trial: Trial, failed: list[TaskReport]) -> list[tuple[TaskReport, str]]:
    """The failed tasks that pass with the reference in place of what the learner wrote before this report's tasks.

    Each comes with its culprit: a task, or a chapter where the mistake is in its given lines.
    """
    own, here = report.package, report.chapter
    earlier = [chapter for chapter in chapters() if chapter.number < here.number]
    before = [task for chapter in earlier for task in chapter.tasks]
    before += here.tasks[: here.tasks.index(report.tasks[0].task)]  # where one task alone was asked for
    answers = [(task.id, part) for task in before for part in task.parts]
    sources = reference()
    ideal_files = {name: sources[name] for chapter in earlier for name in chapter.files}
    ideal = own.with_sources(ideal_files).with_answers(
        [part for _, part in answers if part.file not in ideal_files], Region.answer
    )
    if all(ideal.sources[part.file] == own.sources[part.file] for _, part in answers):
        return []
    blamed = []
    for task in _passing(report, trial, ideal, failed):
        others = [(number, part) for number, part in answers if part not in task.task.parts]
        needed = _answers_needed(report, trial, task, others)
        if needed is None:
            continue
        if needed <= len(others):
            culprit, part = others[needed - 1]
            culprit = next((other.task.id for other in failed if part in other.task.parts), culprit)
            if task.first_failure:
                task.first_failure.place = own.place(part)
        else:
            changed = next((name for name in ideal_files if own.sources[name] != ideal_files[name]), None)
            culprit = next((chapter.number for chapter in earlier if changed in chapter.files), here.number)
        blamed.append((task, culprit))
    return blamed


def _answers_needed(report: Report, trial: Trial, task: TaskReport, others: list[tuple[str, Part]]) -> int | None:
    """How many of the other answers, the first, a task needs from the reference in order to pass.

    One more than there are where all are too few; None where it is to blame itself.
    """

    def passes(number: int, of: str = "") -> bool:
        package = report.package.with_answers([part for _, part in others[:number]], Region.answer)
        return bool(_passing(report, trial, package, [task], of))

    def fewest(low: int, of: str = "") -> int:
        high = len(others) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if passes(middle, of) else (middle, high)
        return high

    if task.task.revisits and not passes(len(others)):
        return None  # the place that it goes back to is its own
    # Its quickest failure says where to look: with one answer fewer not even that passes. Mostly all pass with it.
    failures = sorted(
        (result for result in task.results if result.status != "passed"), key=lambda result: result.duration
    )
    needed = fewest(0, failures[0].name)
    if needed <= len(others) and len(failures) > 1 and not passes(needed):
        needed = fewest(needed)
    return needed
