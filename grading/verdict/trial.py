"""Runs checks on a stage until each of them has an outcome, past whatever hangs or ends Python on the way."""

from dataclasses import dataclass

from grading.course.chapters import Check, Task
from grading.course.package import Package
from grading.course.regions import Region
from grading.runner import launch
from grading.runner.launch import Start
from grading.runner.outcomes import Outcome, Run
from grading.runner.stage import Stage

INCIDENTS = 3  # hangs and crashes after which the rest is not tried any more


@dataclass(frozen=True)
class Trial:
    """A stage, and how runs on it are made."""

    stage: Stage
    timeout: float  # seconds a test may take
    start: Start

    def run(self, package: Package, checks: list[Check], set_aside: bool = False) -> Run:
        """Run checks on a package.

        set_aside  where a task's tests hang or end Python, its answer becomes a stub, and takes no others with it
        """
        total = Run()
        for _ in range(INCIDENTS):
            left = [check for check in checks if check.name not in total.outcomes]
            if not left or total.import_problem:
                break
            self.stage.lay_out(package)
            run = launch.run(self.stage, left, self.timeout, self.start)
            total.outcomes.update(run.outcomes)
            total.import_problem = run.import_problem
            if run.incident is None:
                break
            follows = [run.incident]
            if set_aside:
                task = self._culprit(package, checks, run.incident, total.outcomes)
                package = package.with_answers(task.parts, Region.stub)
                follows = _what_follows(run.incident, task, checks, total.outcomes)
            for outcome in follows:
                total.outcomes.setdefault(outcome.name, outcome)
        for check in checks:
            if total.import_problem is None and check.name not in total.outcomes:
                message = "Not run: the run was stopped after an earlier test hung or ended Python."
                total.outcomes[check.name] = Outcome(check.name, "error", message)
        return total

    def _culprit(self, package: Package, checks: list[Check], incident: Outcome, known: dict[str, Outcome]) -> Task:
        """The task that hung or ended Python.

        That is the task in whose lines it happened, unless all its tests have a result already: then it is slow rather
        than wrong, and the task that it is too slow for shows it.
        """
        tasks = self.stage.chapter.tasks
        number = next(check.task for check in checks if check.name == incident.name)
        culprit = next(task for task in tasks if task.id == number)
        for task in tasks:
            inside = any(package.place(part).holds(incident.place) for part in task.parts)
            if inside and any(check.task == task.id and check.name not in known for check in checks):
                culprit = task
        return culprit


def _what_follows(incident: Outcome, culprit: Task, checks: list[Check], known: dict[str, Outcome]) -> list[Outcome]:
    """The outcomes of the culprit's tests that are left.

    The incident goes to the one that was running or, if that one belongs to another task, to the first.
    """
    names = [check.name for check in checks if check.task == culprit.id and check.name not in known]
    message = f"Not run: another test of {culprit.id} {'hung' if incident.status == 'timeout' else 'ended Python'}."
    incident.name = incident.name if incident.name in names else names[0]
    return [incident, *[Outcome(name, "error", message) for name in names]]
