"""What became of a chapter: a result for every check, a status for every task, and the document that tells of both."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grading.course.chapters import Chapter, Check, Task
from grading.course.package import Package
from grading.course.place import Place
from grading.runner.gradable import NotGradable
from grading.runner.outcomes import Outcome

SCHEMA = "meintorch/report/v1"


@dataclass
class Result(Outcome):
    """What became of one check, in words for the learner."""

    explained: bool = False  # the diagnosis only explains Python's own error, whatever its cause here

    @classmethod
    def of(cls, outcome: Outcome) -> "Result":
        """The outcome of a run, before anybody has looked at it. `status` may become todo."""
        return cls(**vars(outcome))

    @property
    def sentence(self) -> str:
        """An exception in words: "NameError: name 'grad' is not defined"."""
        return f"{self.kind}: {self.message}" if self.message else self.kind

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "status": self.status,
            "message": self.message,
            "diagnosis": self.diagnosis,
            "location": self.place and self.place.as_json(),
            "duration_s": round(self.duration, 4),
        }


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
        """The first check that failed and whose cause is known, or else the first that failed or could not be run.

        Where Python's own error is explained, its cause is only half known, and in what way numbers differ is none. The
        milestone comes behind its task's other checks: they say the same on numbers that can be checked by hand.
        """
        failures = [result for result in self.results if result.status not in ("passed", "todo")]
        failures.sort(
            key=lambda result: (
                result.status == "error",
                result.diagnosis is None or result.general,
                result.explained,
                result.name == self.milestone,
            )
        )
        return failures[0] if failures else None

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.task.id,
            "title": self.task.title,
            "status": self.status,
            "needs": self.needs,
            "tests": [result.as_json() for result in self.results],
        }


@dataclass
class Report:
    chapter: Chapter
    task: Task | None = None  # if only one was asked for
    tasks: list[TaskReport] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)  # that were asked for, in the order of the tests' file
    package: Package = field(default_factory=lambda: Package({}))  # as the learner wrote it; empty if not gradable
    not_gradable: NotGradable | None = None
    next: str = ""
    notes: list[str] = field(default_factory=list)  # what else deserves a mention

    @property
    def asked(self) -> str:
        """What was asked for, as it is typed: "02" or "02.2"."""
        return self.task.id if self.task else self.chapter.number

    @property
    def score(self) -> int:
        return sum(task.passed for task in self.tasks)

    @property
    def max_score(self) -> int:
        return len(self.checks)

    @property
    def passed(self) -> bool:
        return self.not_gradable is None and all(task.status == "passed" for task in self.tasks)

    @property
    def open_tasks(self) -> list[Task]:
        """Those that the learner can do something about now."""
        return [report.task for report in self.tasks if report.status in ("failed", "error", "todo")]

    @property
    def results(self) -> Mapping[str, Result]:
        return {result.name: result for task in self.tasks for result in task.results}

    def first_to_do(self) -> tuple[Task, Place] | None:
        """The first task that is to do, and where its answer belongs."""
        for report in self.tasks:
            if report.status == "todo":
                place = next((result.place for result in report.results if result.status == "todo"), None)
                return report.task, place or self.package.place(report.task.parts[0])
        return None

    def as_json(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "chapter": self.chapter.number,
            "title": self.chapter.title,
            "passed": self.passed,
            "score": self.score,
            "max_score": self.max_score,
            "not_gradable": self.not_gradable and self.not_gradable.as_json(),
            "tasks": [report.as_json() for report in self.tasks],
            "next": self.next,
            "notes": self.notes,
        }
