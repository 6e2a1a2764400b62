"""Starts grading.child on a stage and turns its events into one result for every expected test."""

import contextlib
import json
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from grading.course.chapters import CHAPTERS, REFERENCE, ROOT, TESTS, Chapter, Check, GraderError
from grading.runner.gradable import FORBIDDEN, HIDDEN

PYTHON = [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(Path(__file__).with_name("child.py"))]
START_LIMIT = 60.0  # seconds for numpy and pytest to be imported, on a slow machine with a cold disk
GRACE = 2.0  # seconds that the child's own time limit has to act before the grader ends it from outside
STDERR_LIMIT = 1_000_000  # characters
INCIDENTS = 3  # hangs and crashes after which the rest is not tried any more
KEPT_VARIABLES = re.compile(
    r"PATH|HOME|USERPROFILE|SYSTEMROOT|WINDIR|COMSPEC|TEMP|TMP|TMPDIR|LANG|LC_.*|LD_LIBRARY_PATH|DYLD_.*"
    r"|OMP_.*|OPENBLAS_.*|MKL_.*|BLIS_.*|VECLIB_.*|NVPL_.*",
    re.IGNORECASE,
)
UNPRINTABLE = re.compile(  # the marks that turn the direction of writing, half a character, control characters
    r"[^\n\t -~\u00a0-\u200d\u2010-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


# What an event of the child's may hold. A field that is missing is empty.
COMMON = {
    "message": str,
    "kind": str,
    "check": bool,
    "diagnosis": str,
    "general": bool,
    "output": str,
    "frames": list,
    "duration": float,
}
EVENTS = {
    "ready": {},
    "imported": {},
    "import failed": {},
    "start": {"test": str},
    "end": {"test": str, "outcome": str},
    "exit": {},
    "tampered": {},
    "finished": {"status": int},
}
CANARIES = {  # tests that must fail, and how: see tests/_canaries.py
    "test_canary_of_assert": "AssertionError",
    "test_canary_of_the_checks": "CheckFailed",
    "test_canary_of_numpy": "AssertionError",
    "test_canary_of_raises": "Failed",
}


UNTRUSTED = "What a check says means nothing once its own tools have been changed. Take that out of your package."


@dataclass
class Result:
    """What became of one test."""

    name: str
    status: str  # passed, failed, error, timeout, crash, tampered
    message: str = ""
    kind: str = ""  # the exception's type
    is_check: bool = False  # the message was written by a check of the course
    diagnosis: str | None = None
    general: bool = False  # the diagnosis only says how the numbers differ
    explained: bool = False  # the diagnosis only explains Python's own error, whatever its cause here
    location: dict | None = None  # {"file", "line", "source"} in the learner's package
    frames: list[dict] = field(default_factory=list)  # all the places that an exception passed through
    output: str = ""
    duration: float = 0.0


@dataclass
class Run:
    """What became of a run: a result for every test, or the reason why the package could not be imported."""

    results: dict[str, Result] = field(default_factory=dict)
    import_problem: Result | None = None


def run(
    stage: Path,
    chapter: Chapter,
    checks: list[Check],
    timeout: float,
    settle: Callable[[Result, dict[str, Result]], Iterable[Result]] = lambda incident, results: [incident],
) -> Run:
    """Run `checks` on a stage. Every one of them has a result in the end, and only a reported pass is a pass.

    A hang or a crash ends the whole run, and the rest is then run anew. `settle` is given the result of the test that
    was running, and those there are already, and returns the results that follow from it. It may change the stage.
    """
    finished = Run()
    wanted = [check.name for check in checks]
    for _ in range(INCIDENTS):
        left = [name for name in wanted if name not in finished.results]
        incident = _run_once(stage, chapter, left, timeout, finished) if left else None
        if incident is None:
            break
        for result in settle(incident, finished.results):
            finished.results.setdefault(result.name, result)
    for name in wanted:
        if name not in finished.results and finished.import_problem is None:
            message = "Not run: the run was stopped after an earlier test hung or ended Python."
            finished.results[name] = Result(name, "error", message)
    return finished


def _run_once(stage: Path, chapter: Chapter, names: list[str], timeout: float, finished: Run) -> Result | None:
    """Run the named tests and add their results. Return the incident that stopped the run, if one did."""
    events, stderr, status, over_time = _events(stage, chapter, names, timeout)
    kinds = [event["event"] for event in events]
    if "ready" not in kinds:
        noise = stderr[-2000:].strip()
        raise GraderError(f"Python could not start the tests.\n\n{noise}\n\nTry: python grader.py doctor")
    current, ended, found, canaries = None, None, {}, {}
    for event in events:
        if event["event"] == "import failed":
            finished.import_problem = _result("", "error", event)
        elif event["event"] == "start":
            current = event["test"]
        elif event["event"] == "end" and event["test"] in CANARIES:
            current = None
            canaries[event["test"]] = event["kind"]
        elif event["event"] == "end" and event["test"] in names:
            current = None
            outcome = event["outcome"] if event["outcome"] in ("passed", "failed") else "error"
            if event["test"] in found:
                outcome, event["message"] = "error", "This test was reported twice."
            found[event["test"]] = _result(event["test"], outcome, event)
        elif event["event"] == "exit":
            ended = event
    completed = any(event["event"] == "finished" and event["status"] == status for event in events)
    trick = next((event["message"] for event in events if event["event"] == "tampered"), None)
    odd = set(canaries.items()) - set(CANARIES.items())
    if trick is None and (odd or (completed and len(found) == len(names))):
        trick = _what_the_canaries_say(canaries, status)
    if trick:
        for name in names:
            finished.results[name] = Result(name, "tampered", trick, diagnosis=UNTRUSTED)
        return None
    finished.results.update(found)
    if finished.import_problem is not None:
        return None
    if completed:
        for name in names:
            if name not in finished.results:
                finished.results[name] = Result(name, "error", "This test was not run.")
        return None

    where = _dumped_place(stderr, stage)
    if ended is not None and ended["frames"]:
        where = ended["frames"][-1]
    hung = over_time or "Timeout (" in stderr
    if ended is not None:
        incident = Result("", "crash", "os._exit() ended Python here, and the run with it.", location=where)
    elif hung:
        message = f"Still running after {timeout:g} seconds: a loop that never ends, or one that is far too slow."
        incident = Result("", "timeout", message, location=where)
    else:
        incident = Result("", "crash", f"Python itself ended in the middle (exit status {status}).", location=where)
    if "imported" not in kinds:
        finished.import_problem = incident
        return None
    if current not in names:  # it happened between two tests: nothing to pin it on, so nothing that ran is trusted
        for name in names:
            finished.results[name] = Result(name, incident.status, incident.message, location=where)
        return None
    incident.name = current
    return incident


def _what_the_canaries_say(canaries: dict[str, str], status: int) -> str | None:
    """Of a run that came to its end: did the tests that must fail fail, each in its way, and did pytest count them?"""
    for name, kind in CANARIES.items():
        if canaries.get(name) != kind:
            return f"A test that has to fail, {name}, did not: checks have been disabled."
    if status != 1:  # pytest's status where tests failed
        return f"pytest ended with status {status}, though tests have failed: its counting was changed."
    return None


def _result(name: str, status: str, event: dict) -> Result:
    return Result(
        name,
        status,
        message=printable(event["message"]),
        kind=printable(event["kind"])[:80],
        is_check=event["check"],
        diagnosis=printable(event["diagnosis"]) or None,
        general=event["general"],
        location=event["frames"][-1] if event["frames"] else None,
        frames=event["frames"],
        output=printable(event["output"]),
        duration=event["duration"],
    )


def printable(text: str) -> str:
    """Text without characters that would steer a terminal or that a document cannot hold."""
    return UNPRINTABLE.sub("?", text)


def _events(stage: Path, chapter: Chapter, names: list[str], timeout: float) -> tuple[list[dict], str, int, bool]:
    """Start the child and collect its events. The last value says whether it had to be ended from outside."""
    token = secrets.token_hex(16)  # what does not begin with it was not written by the child
    config = {
        "token": token,
        "stage": str(stage),
        "modules": [name.removesuffix(".py").replace("/", ".") for name in chapter.files],
        "file": chapter.tests.name,
        "tests": names,
        "timeout": timeout,
        "forbidden": [*FORBIDDEN, *HIDDEN],
        "hidden": [str(folder) for folder in (REFERENCE.parent, TESTS, CHAPTERS, ROOT / "grading")],
    }
    child = _start(config)
    try:
        return _collect(child, token, timeout, START_LIMIT + (timeout + GRACE) * (len(names) + 1))
    finally:  # also where the grader is interrupted
        end(child)


def start(config: dict) -> subprocess.Popen:
    """Start a process for the run that `config` names."""
    if os.name == "posix":
        group = {"start_new_session": True}
    else:
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    child = subprocess.Popen(
        PYTHON,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        **group,
    )
    with contextlib.suppress(OSError):  # it has ended already: its events will show it
        child.stdin.write(json.dumps({"path": import_path(), **config}).encode())
        child.stdin.close()
    return child


_start = start


def start_with(function: Callable) -> None:
    """Start runs with `function` from now on: it takes what `start` takes, and returns a process as `start` does."""
    global _start
    _start = function


def environment() -> dict[str, str]:
    """The variables that a run gets."""
    kept = {key: value for key, value in os.environ.items() if KEPT_VARIABLES.fullmatch(key)}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for library in ("OMP", "OPENBLAS", "MKL"):  # small arrays: more threads only wait for each other on a busy machine
        kept.setdefault(f"{library}_NUM_THREADS", "1")
    return kept


def import_path() -> list[str]:
    """Where this process imports from, the repository left out."""
    return [entry for entry in sys.path if entry and Path(entry).resolve() != ROOT]


def _collect(child: subprocess.Popen, token: str, timeout: float, longest: float) -> tuple[list[dict], str, int, bool]:
    """Read a child's events until it ends, or until it is silent for too long, or at work for the longest time."""
    deadline = time.monotonic() + longest
    lines: queue.Queue[bytes | None] = queue.Queue()
    noise: list[str] = []
    readers = [
        threading.Thread(target=_read_lines, args=(child.stdout, lines), daemon=True),
        threading.Thread(target=_read_noise, args=(child.stderr, noise), daemon=True),
    ]
    for reader in readers:
        reader.start()
    events, over_time = [], False
    limit = START_LIMIT
    while True:
        try:
            line = lines.get(timeout=max(0.0, min(limit, deadline - time.monotonic())))
        except queue.Empty:
            over_time = True
            break
        if line is None:
            break
        if not line.startswith(token.encode() + b" "):
            if events and line.endswith(b"\n"):
                events.append(
                    _event(b'{"event": "tampered", "message": "The tested code wrote where only checks write."}')
                )
            continue
        event = _event(line.partition(b" ")[2])
        if event is not None:
            events.append(event)
            limit = timeout + GRACE
    try:
        child.wait(timeout=0 if over_time else GRACE)
    except subprocess.TimeoutExpired:
        over_time = True
    end(child)  # its pipes close, and the readers come to an end
    for reader in readers:
        reader.join(GRACE)
    return events, "".join(noise), child.returncode, over_time


def _event(line: bytes) -> dict | None:
    """An event of the child's, or None for anything else: whatever that was meant to be, it is not a pass."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("event") not in EVENTS:
        return None
    for key, kind in {**COMMON, **EVENTS[event["event"]]}.items():
        if not isinstance(event.setdefault(key, kind()), kind):
            return None
    places = [frame for frame in event["frames"] if isinstance(frame, dict) and isinstance(frame.get("file"), str)]
    event["frames"] = [frame for frame in places if isinstance(frame.get("line"), int | None)]
    return event


def _read_lines(pipe, lines: queue.Queue) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(None)


def _read_noise(pipe, noise: list[str]) -> None:
    """Keep the beginning and the end of what the child prints, and where it says that its time is over."""
    size = 0
    while chunk := pipe.read1(65536).decode("utf-8", "replace"):
        if noise and "Timeout (" in chunk and len(noise[0]) < STDERR_LIMIT:
            noise[0] += chunk  # which is never dropped
            continue
        noise.append(chunk)
        size += len(chunk)
        while size > STDERR_LIMIT and len(noise) > 2:
            size -= len(noise.pop(1))


def end(child: subprocess.Popen) -> None:
    """End the child and everything that it started."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended already
            os.killpg(child.pid, signal.SIGKILL)
    elif child.returncode is None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(child.pid)], capture_output=True, check=False)
    child.wait()


def _dumped_place(stderr: str, stage: Path) -> dict | None:
    """The innermost line of the package in a dump of faulthandler (most recent call first)."""
    package = str(stage / "meintorch")
    for name, line in re.findall(r'File "([^"]+)", line (\d+) in', stderr):
        if name.startswith(package):
            return {"file": "meintorch/" + name[len(package) + 1 :].replace("\\", "/"), "line": int(line)}
    return None
