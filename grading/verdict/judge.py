"""Grades a chapter: runs its checks on a stage and says what became of every task."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from grading.course import regions
from grading.course.chapters import PACKAGE, REFERENCE, Chapter, Check, Part, Task, chapters, order
from grading.course.files import read_source
from grading.course.stubs import stub_of
from grading.runner import launch, stage
from grading.runner.gradable import NotGradable
from grading.runner.launch import Result
from grading.verdict import later, phrasebook
from grading.verdict.notes import EditedTests, files_without_effect

SCHEMA = "meintorch/report/v1"
TODO = re.compile(r"TODO (\d\d\.\d+)")
LEFTOVER = "Your lines are there, but so is the stub's own `raise` line, which stops them. Delete it."


@dataclass
class TaskReport:
    task: Task
    status: str  # passed, failed, todo, blocked, error
    results: list[Result]
    needs: str | None = None  # of a blocked task: the task that it waits for
    milestone: str = ""  # the chapter's first check, which may be one of this task's

    @property
    def passed(self) -> int:
        return sum(result.status == "passed" for result in self.results)

    @property
    def first_failure(self) -> Result | None:
        """The first test that failed and whose cause is known, or else the first that failed or could not be run.

        Where Python's own error is explained, its cause is only half known, and in what way numbers differ is none. The
        milestone comes behind its task's other tests: they say the same on numbers that can be checked by hand.
        """
        failures = [result for result in self.results if result.status not in ("passed", "todo")]
        failures.sort(
            key=lambda one: (
                one.status == "error",
                one.diagnosis is None or one.general,
                one.explained,
                one.name == self.milestone,
            )
        )
        return failures[0] if failures else None


@dataclass
class Report:
    chapter: Chapter
    tasks: list[TaskReport] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)  # that were asked for, in the order of the tests' file
    asked: str = ""  # what was asked for, as it is typed: "02" or "02.2"
    not_gradable: NotGradable | None = None
    next: str = ""
    notes: list[str] = field(default_factory=list)  # what else deserves a mention

    @property
    def score(self) -> int:
        return sum(task.passed for task in self.tasks)

    @property
    def max_score(self) -> int:
        return len(self.checks)

    @property
    def passed(self) -> bool:
        return self.not_gradable is None and all(task.status == "passed" for task in self.tasks)

    def as_json(self) -> dict:
        return {
            "schema": SCHEMA,
            "chapter": self.chapter.number,
            "title": self.chapter.title,
            "passed": self.passed,
            "score": self.score,
            "max_score": self.max_score,
            "not_gradable": self.not_gradable and self.not_gradable.as_json(),
            "tasks": [
                {
                    "id": report.task.id,
                    "title": report.task.title,
                    "status": report.status,
                    "needs": report.needs,
                    "tests": [
                        {
                            "name": result.name,
                            "status": result.status,
                            "message": result.message,
                            "diagnosis": result.diagnosis,
                            "location": result.location
                            and {"file": result.location["file"], "line": result.location["line"]},
                            "duration_s": round(result.duration, 4),
                        }
                        for result in report.results
                    ],
                }
                for report in self.tasks
            ],
            "next": self.next,
            "notes": self.notes,
        }


def grade(
    chapter: Chapter, package: Path = PACKAGE, task: Task | None = None, goal: bool = False, timeout: float = 15.0
) -> Report:
    """Check a chapter, or one task of it, on the package in a folder.

    goal     the harder suite as well
    timeout  seconds a test may take
    """
    with temporary_folder() as folder:
        return grade_on(folder, chapter, package, task, goal, timeout)


def grade_on(folder: Path, chapter: Chapter, package: Path, task: Task | None, goal: bool, timeout: float) -> Report:
    """What `grade` does, with an empty folder for the stage."""
    tasks = [task] if task else list(chapter.tasks)
    ids = {one.id for one in tasks}
    checks = [check for check in chapter.checks if check.task in ids and (goal or not check.goal)]
    report = Report(chapter, checks=checks, asked=task.id if task else chapter.number)
    edited_tests = EditedTests(chapter)
    report.not_gradable = stage.build(folder, package, chapter)
    if report.not_gradable is None:
        places = {part: place_of(folder / "meintorch", part) for task in chapter.tasks for part in task.parts}
        unwritten = {part for part in places if _is_unwritten(folder / "meintorch", part)}
        run = launch.run(folder, chapter, checks, timeout, lambda *found: _set_aside(folder, chapter, checks, *found))
        report.not_gradable = _import_problem(run, chapter, folder / "meintorch")
    if report.not_gradable is None:
        later.explain(folder, chapter, checks, run.results, timeout)
        report.tasks = _judge(tasks, checks, run.results, places, unwritten)
        for one in report.tasks:
            one.milestone = chapter.checks[0].name
        _find_culprits(folder, report, checks, timeout)
    report.next = _next(report, task)
    report.notes = [*edited_tests.notes(), *files_without_effect(package)]
    return report


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of one's own that is gone afterwards, even where something in it is locked for a moment."""
    folder = Path(tempfile.mkdtemp(prefix="meintorch-")).resolve()
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:  # also where Ctrl-C comes in the middle of that
            shutil.rmtree(folder, ignore_errors=True)


def place_of(package: Path, part: Part) -> dict:
    """Where the answer to a task stands in the learner's own file, as {"file", "line", "first", "last", "answer"}."""
    source = read_source(package / part.file)
    place, file = regions.locate(source, part.region), f"meintorch/{part.file}"
    if place is None:
        line = regions.definition_line(source, part.region.qualname)
        return {"file": file, "line": line, "first": 0, "last": -1, "answer": ""}
    answer = "\n".join(source.split("\n")[place.first - 1 : place.last])
    return {"file": file, "line": place.line, "first": place.first, "last": place.last, "answer": answer}


def first_to_do(report: Report, package: Path) -> dict | None:
    """Where the first task that is to do stands, and the task: {"file", "line", ..., "task"}."""
    for one in report.tasks:
        if one.status == "todo":
            place = next((result.location for result in one.results if result.status == "todo"), None)
            return {**(place or place_of(package, one.task.parts[0])), "task": one.task}
    return None


def _import_problem(run: launch.Run, chapter: Chapter, package: Path) -> NotGradable | None:
    problem = run.import_problem
    if problem is None:
        return None
    place = problem.location or {"file": "meintorch", "line": None}
    if problem.kind == "NameError" and problem.message.split("'")[1:2] in (["self"], ["other"], ["upstream"]):
        reason = f"{_sentence(problem)}. This line stands outside of every function: indent it as its TODO was."
    elif problem.kind == "SystemExit":
        reason = "A call ends Python while the package is imported: there is nothing left to check."
    elif problem.kind:
        why = _about_import(problem.message, chapter, package)
        reason = f"The package cannot be imported. {_sentence(problem)}{why}"
    else:
        reason = f"While the package was imported: {problem.message}"
    return NotGradable(reason, place["file"], place["line"], place.get("source") or "")


def _about_import(message: str, chapter: Chapter, package: Path) -> str:
    """What lies behind two errors of import that a learner cannot guess."""
    missing = re.fullmatch(r"No module named '(\w+)'", message)
    if missing and (package / f"{missing[1]}.py").is_file():
        return f". It is called meintorch.{missing[1]}: from meintorch.{missing[1]} import ..."
    source = re.match(r"cannot import name '.*' from '(meintorch[\w.]*)'", message)
    if source:
        name = source[1].partition(".")[2].replace(".", "/") or "__init__"
        own = [file for one in chapters() if one.number <= chapter.number for file in one.files]
        if f"{name}.py" not in own and (REFERENCE / f"{name}.py").is_file():
            return (
                f". For chapter {chapter.number} the course's own meintorch/{name}.py is used, not yours: put what you "
                "have added there into a file with a name of its own."
            )
    return ""


def _set_aside(
    folder: Path, chapter: Chapter, checks: list[Check], incident: Result, results: dict[str, Result]
) -> list[Result]:
    """After a hang or a crash, make a stub of the task that caused it, so that it does not take the others with it.

    That is the task in whose lines it happened, unless all its tests have a result already: then it is slow rather than
    wrong, and the task that it is too slow for shows it. Returns the results of the task's tests that are left; the
    incident goes to the one that was running or, if that one belongs to another task, to the first.
    """
    culprit = next(check.task for check in checks if check.name == incident.name)
    for task in chapter.tasks:
        for part in task.parts:
            place = regions.locate(read_source(folder / "meintorch" / part.file), part.region)
            where = incident.location or {}
            inside = (
                place and where.get("file") == f"meintorch/{part.file}" and place.first <= where["line"] <= place.last
            )
            if inside and any(check.task == task.id and check.name not in results for check in checks):
                culprit = task.id
    for part in next(task.parts for task in chapter.tasks if task.id == culprit):
        _put(folder, part, part.region.stub())
    names = [check.name for check in checks if check.task == culprit and check.name not in results]
    message = f"Not run: another test of {culprit} {'hung' if incident.status == 'timeout' else 'ended Python'}."
    incident.name = incident.name if incident.name in names else names[0]
    return [incident, *[Result(name, "error", message) for name in names]]


def _put(folder: Path, part: Part, text: str) -> None:
    """Replace a task's answer on the stage."""
    path = folder / "meintorch" / part.file
    skeleton = stub_of(read_source(REFERENCE / part.file))
    with suppress(ValueError):  # where it does not fit, the learner's own stays
        path.write_text(regions.put(read_source(path), part.region, text, skeleton), encoding="utf-8")


def _judge(
    tasks: list[Task], checks: list[Check], results: dict[str, Result], places: dict[Part, dict], unwritten: set[Part]
) -> list[TaskReport]:
    """Say what became of every task. `places` and `unwritten` describe the code as the learner wrote it."""
    reports = []
    for task in tasks:
        own = [results[check.name] for check in checks if check.task == task.id]
        to_write = [part for part in task.parts if part in unwritten]
        waits_for = set()
        for result in own:
            todo = _todo_of(result, places)
            if todo:
                result.status = "todo"
                waits_for.add(todo)
            if result.status != "passed" and (result.location is None or result.is_check):
                result.location = places[_part_for(task, result)]
            else:  # an error that a given line raised was caused by the answer that called it
                result.location = next(
                    (frame for frame in result.frames[::-1] if _is_in(places, frame)), result.location
                )
            if result.status in ("failed", "error") and result.kind and not result.is_check:
                _explain(result, task, places)
            if todo:
                result.message = f"stops at the TODO of {todo}"
                if todo == task.id and task.revisits:
                    result.message = f"the code of {task.revisits} still has its earlier form"
                elif todo == task.id and not to_write:
                    result.diagnosis = LEFTOVER
                elif order(todo) > order(task.id):
                    result.diagnosis = f"{todo} comes after {task.id}. Write it first, or do without it here."
        statuses = {result.status for result in own}
        if statuses == {"passed"}:
            report = TaskReport(task, "passed", own)
        elif "tampered" in statuses:
            report = TaskReport(task, "failed", own)
        elif len(to_write) == len(task.parts):
            report = TaskReport(task, "todo", own)
        elif statuses & {"failed", "timeout", "crash"}:
            report = TaskReport(task, "failed", own)
        elif to_write or task.id in waits_for:
            report = TaskReport(task, "todo", own)
        elif waits_for:
            report = TaskReport(task, "blocked", own, needs=min(waits_for, key=order))
        else:
            report = TaskReport(task, "error", own)
        reports.append(report)
    return reports


def _explain(result: Result, task: Task, places: dict[Part, dict]) -> None:
    """Put an error of Python's or NumPy's into words. What a probe has found comes first unless the error tells all."""
    where = result.location
    part = next((part for part, place in places.items() if _is_in({part: place}, where)), _part_for(task, result))
    spot = phrasebook.Spot(task.id[:2], part, where.get("source") or "", places[part]["answer"])
    cause = phrasebook.cause_of_error(result.kind, result.message, spot)
    if cause:
        result.diagnosis = cause
    elif not result.diagnosis:
        result.diagnosis, result.explained = phrasebook.explain_error(result.kind, result.message, spot), True
    result.message = _sentence(result)


def _todo_of(result: Result, places: dict[Part, dict]) -> str | None:
    """The task whose NotImplementedError stopped a test: by its text, or where that was changed by where it stands."""
    if result.kind != "NotImplementedError":
        return None
    match = TODO.fullmatch(result.message)
    if match and any(task.id == match.group(1) for chapter in chapters() for task in chapter.tasks):
        return match.group(1)
    for frame in result.frames[::-1]:
        for part, place in places.items():
            if frame["file"] == place["file"] and place["first"] <= (frame["line"] or 0) <= place["last"]:
                return part.region.task
    return None


def _is_in(places: dict[Part, dict], frame: dict) -> bool:
    """Does a line of the learner's code belong to an answer?"""
    return any(
        frame["file"] == place["file"] and place["first"] <= (frame["line"] or 0) <= place["last"]
        for place in places.values()
    )


def _is_unwritten(package: Path, part: Part) -> bool:
    place = regions.locate(read_source(package / part.file), part.region)
    return place is not None and regions.is_stub(place)


def _part_for(task: Task, result: Result) -> Part:
    """Of a task with several places, the one that the test's name speaks of."""
    name = f"_{result.name}_"
    named = [[len(one) for one in part.region.qualname.split(".") if f"_{one}_" in name] for part in task.parts]
    return task.parts[named.index(max(named))]  # of log_softmax and stable_log_softmax the longer one, if it is there


def _sentence(result: Result) -> str:
    """An exception in words: "NameError: name 'grad' is not defined"."""
    return f"{result.kind}: {result.message}" if result.message else result.kind


def _find_culprits(folder: Path, report: Report, checks: list[Check], timeout: float) -> None:
    """A task that passes once an earlier one is answered by the reference waits for that one, and is not to blame."""
    if any(result.status in ("timeout", "crash", "tampered") for one in report.tasks for result in one.results):
        return  # the task that hung was set aside already, and the others have shown whether they need it

    def passing(candidates: list[TaskReport], of: str = "") -> list[TaskReport]:
        """Those of the candidates whose failed tests pass with what is on the stage now, or the one test `of`."""
        failed = {
            one.task.id: [
                result.name for result in one.results if result.status != "passed" and of in ("", result.name)
            ]
            for one in candidates
        }
        names = {name for names in failed.values() for name in names}
        again = launch.run(folder, report.chapter, [check for check in checks if check.name in names], timeout)
        passed = {name for name, result in again.results.items() if result.status == "passed"}
        return [one for one in candidates if passed.issuperset(failed[one.task.id])]

    still_open = [one for one in report.tasks if one.status == "failed"]
    if still_open:
        for one, culprit in _blame_earlier_tasks(folder, report, still_open, passing):
            one.status, one.needs = "blocked", culprit
            still_open.remove(one)
    while len(still_open) > 1:
        culprit = still_open.pop(0)
        for part in culprit.task.parts:
            _put(folder, part, part.region.answer())
        for one in passing(still_open):
            one.status, one.needs = "blocked", culprit.task.id
            still_open.remove(one)


def _blame_earlier_tasks(
    folder: Path, report: Report, failed: list[TaskReport], passing: Callable[..., list[TaskReport]]
) -> list[tuple[TaskReport, str]]:
    """The failed tasks that pass with the reference in place of what the learner wrote before this report's tasks.

    Each comes with its culprit: a task, or a chapter where the mistake is in its given lines. Leaves the stage with the
    learner's own files.
    """
    here = report.chapter
    earlier = [one for one in chapters() if one.number < here.number]
    before = [task for one in earlier for task in one.tasks]
    before += here.tasks[: here.tasks.index(report.tasks[0].task)]  # where one task alone was asked for
    parts = [(task.id, part) for task in before for part in task.parts]
    own = {part.file: read_source(folder / "meintorch" / part.file) for _, part in parts}
    reference = {name: read_source(REFERENCE / name) for one in earlier for name in one.files}

    def lay_out(files: dict[str, str], answered: list[tuple[str, Part]]) -> None:
        for name, source in files.items():
            (folder / "meintorch" / name).write_text(source, encoding="utf-8")
        for _, part in answered:
            _put(folder, part, part.region.answer())

    def fewest(one: TaskReport, others: list[tuple[str, Part]], low: int, of: str = "") -> int:
        """How many of `others`, the first, it needs from the reference: one more than there are, if all are too few.

        With the first `low` it does not pass. `of` is a test, if it is that one alone that has to.
        """
        high = len(others) + 1
        while high - low > 1:
            middle = (low + high) // 2
            lay_out(own, others[:middle])
            low, high = (low, middle) if passing([one], of) else (middle, high)
        return high

    lay_out({**own, **reference}, [(task, part) for task, part in parts if part.file not in reference])
    if all(read_source(folder / "meintorch" / name) == source for name, source in own.items()):
        return []
    innocent = passing(failed)
    blamed = []
    for one in innocent:
        others = [(task, part) for task, part in parts if part not in one.task.parts]
        if one.task.revisits:
            lay_out(own, others)
            if not passing([one]):
                continue  # the place that it goes back to is its own: it is to blame itself
        # Its quickest failure says where to look: with one answer fewer not even that passes. Mostly all pass with it.
        failures = sorted((it for it in one.results if it.status != "passed"), key=lambda it: it.duration)
        high = fewest(one, others, 0, failures[0].name)
        lay_out(own, others[:high])
        if high <= len(others) and len(failures) > 1 and not passing([one]):
            high = fewest(one, others, high)
        lay_out(own, [])
        if high <= len(others):
            culprit, part = others[high - 1]
            culprit = next((other.task.id for other in failed if part in other.task.parts), culprit)
            one.first_failure.location = place_of(folder / "meintorch", part)
        else:
            changed = next((name for name in reference if own[name] != reference[name]), None)
            culprit = next((chapter.number for chapter in earlier if changed in chapter.files), here.number)
        blamed.append((one, culprit))
    lay_out(own, [])
    return blamed


def _next(report: Report, asked: Task | None) -> str:
    """The command that takes the learner further. `asked` is the task, if only one was asked for."""
    if report.not_gradable:
        return f"python grader.py {report.asked}"
    if asked and report.passed:
        after = report.chapter.tasks[report.chapter.tasks.index(asked) + 1 :]
        return f"python grader.py {after[0].id if after else report.chapter.number}"
    failed = next((one for one in report.tasks if one.status in ("failed", "error")), None)
    unfinished = failed or next((one for one in report.tasks if one.status == "todo"), None)
    if unfinished:
        return f"python grader.py hint {unfinished.task.id}"
    blocked = next((one for one in report.tasks if one.status == "blocked"), None)
    if blocked and order(blocked.needs) < order(blocked.task.id):
        return f"python grader.py {blocked.needs}"
    if blocked:
        return f"python grader.py hint {blocked.task.id}"
    return f"python grader.py diff {report.chapter.number}"
