"""Turns what a child has said, or failed to say, into one outcome for every test that was expected of it."""

import re
from dataclasses import dataclass, field

from grading.course.errors import GraderError
from grading.course.place import Place
from grading.runner.events import Event

CANARIES = {  # tests that must fail, and how: see tests/_canaries.py
    "test_canary_of_assert": "AssertionError",
    "test_canary_of_the_checks": "CheckFailed",
    "test_canary_of_numpy": "AssertionError",
    "test_canary_of_raises": "Failed",
}
UNTRUSTED = "What a check says means nothing once its own tools have been changed. Take that out of your package."
UNPRINTABLE = re.compile(  # the marks that turn the direction of writing, half a character, control characters
    r"[^\n\t -~\u00a0-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


@dataclass
class Outcome:
    """What became of one test."""

    name: str
    status: str  # passed, failed, error, timeout, crash, tampered
    message: str = ""
    kind: str = ""  # the exception's type
    is_check: bool = False  # the message was written by a check of the course
    diagnosis: str | None = None
    general: bool = False  # the diagnosis only says how the numbers differ
    place: Place | None = None  # in the learner's package
    frames: tuple[Place, ...] = ()  # all the places that an exception passed through, the innermost last
    output: str = ""
    duration: float = 0.0


@dataclass
class Run:
    """What became of a run: outcomes by test and, where something stopped it, what did."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    incident: Outcome | None = None  # the test that hung or ended Python: those after it were not run
    import_problem: Outcome | None = None  # why the package could not be imported: no test was run


@dataclass(frozen=True)
class Record:
    """What a child left behind."""

    events: list[Event]
    stderr: str
    status: int  # of the process
    over_time: bool  # it had to be ended from outside
    package: str  # the folder that it has imported the package from

    def has(self, name: str) -> bool:
        return any(event.name == name for event in self.events)

    def first(self, name: str) -> Event | None:
        return next((event for event in self.events if event.name == name), None)


def outcomes_of(record: Record, expected: list[str], timeout: float) -> Run:
    """Judge nothing, and believe little: only what was reported once, in a run that nobody has meddled with, counts.

    Raises GraderError where Python did not come as far as to begin.
    """
    if not record.has("ready"):
        noise = record.stderr[-2000:].strip()
        raise GraderError(f"Python could not start the tests.\n\n{noise}\n\nTry: python grader.py doctor")
    reported = _reported(record, expected)
    completed = any(event.name == "finished" and event.status == record.status for event in record.events)
    trick = _trick(record, completed and len(reported) == len(expected))
    if trick:
        return Run({name: Outcome(name, "tampered", trick, diagnosis=UNTRUSTED) for name in expected})
    if failed := record.first("import failed"):
        return Run(reported, import_problem=_outcome("", "error", failed))
    if completed:
        missing = {name: Outcome(name, "error", "This test was not run.") for name in expected}
        return Run({**missing, **reported})
    incident = _incident(record, timeout)
    if not record.has("imported"):
        return Run(reported, import_problem=incident)
    incident.name = _running(record)
    if incident.name not in expected:  # it happened between two tests: nothing to pin it on, so nothing is trusted
        return Run({name: Outcome(name, incident.status, incident.message, place=incident.place) for name in expected})
    return Run(reported, incident)


def printable(text: str) -> str:
    """Text without characters that would steer a terminal or that a document cannot hold."""
    return UNPRINTABLE.sub("?", text)


def _reported(record: Record, expected: list[str]) -> dict[str, Outcome]:
    reported: dict[str, Outcome] = {}
    for event in record.events:
        if event.name == "end" and event.test in expected:
            outcome = _outcome(event.test, event.outcome if event.outcome in ("passed", "failed") else "error", event)
            if event.test in reported:
                outcome.status, outcome.message = "error", "This test was reported twice."
            reported[event.test] = outcome
    return reported


def _outcome(name: str, status: str, event: Event) -> Outcome:
    return Outcome(
        name,
        status,
        message=printable(event.message),
        kind=printable(event.kind)[:80],
        is_check=event.check,
        diagnosis=printable(event.diagnosis) or None,
        general=event.general,
        place=event.frames[-1] if event.frames else None,
        frames=event.frames,
        output=printable(event.output),
        duration=event.duration,
    )


def _trick(record: Record, came_to_its_end: bool) -> str | None:
    """What shows that the tools of the checks were changed, if anything does."""
    if tampered := record.first("tampered"):
        return tampered.message
    canaries = {event.test: event.kind for event in record.events if event.name == "end" and event.test in CANARIES}
    if not came_to_its_end and canaries.items() <= CANARIES.items():
        return None
    for name, kind in CANARIES.items():
        if canaries.get(name) != kind:
            return f"A test that has to fail, {name}, did not: checks have been disabled."
    if record.status != 1:  # pytest's status where tests failed
        return f"pytest ended with status {record.status}, though tests have failed: its counting was changed."
    return None


def _incident(record: Record, timeout: float) -> Outcome:
    """What ended the run in the middle, and where."""
    place = _dumped_place(record)
    if left := record.first("exit"):
        place = left.frames[-1] if left.frames else place
        return Outcome("", "crash", "os._exit() ended Python here, and the run with it.", place=place)
    if record.over_time or "Timeout (" in record.stderr:
        message = f"Still running after {timeout:g} seconds: a loop that never ends, or one that is far too slow."
        return Outcome("", "timeout", message, place=place)
    return Outcome("", "crash", f"Python itself ended in the middle (exit status {record.status}).", place=place)


def _running(record: Record) -> str:
    """The test that has begun and not ended, if there is one."""
    running = ""
    for event in record.events:
        if event.name == "start":
            running = event.test
        elif event.name == "end":
            running = ""
    return running


def _dumped_place(record: Record) -> Place | None:
    """The innermost line of the package in a dump of faulthandler (most recent call first)."""
    for name, line in re.findall(r'File "([^"]+)", line (\d+) in', record.stderr):
        if name.startswith(record.package):
            return Place("meintorch/" + name[len(record.package) + 1 :].replace("\\", "/"), int(line))
    return None
