"""Starts grading.runner.child on a stage, listens to it, and ends it."""

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
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

from grading.course.chapters import CHAPTERS, REFERENCE, ROOT, TESTS, Check
from grading.runner import events
from grading.runner.events import Event
from grading.runner.gradable import FORBIDDEN, HIDDEN
from grading.runner.outcomes import Record, Run, outcomes_of
from grading.runner.stage import Stage

PYTHON = [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(Path(__file__).with_name("child.py"))]
START_LIMIT = 60.0  # seconds for numpy and pytest to be imported, on a slow machine with a cold disk
GRACE = 2.0  # seconds that the child's own time limit has to act before the grader ends it from outside
STDERR_LIMIT = 1_000_000  # characters
KEPT_VARIABLES = re.compile(
    r"PATH|HOME|USERPROFILE|SYSTEMROOT|WINDIR|COMSPEC|TEMP|TMP|TMPDIR|LANG|LC_.*|LD_LIBRARY_PATH|DYLD_.*"
    r"|OMP_.*|OPENBLAS_.*|MKL_.*|BLIS_.*|VECLIB_.*|NVPL_.*",
    re.IGNORECASE,
)


class Process(Protocol):
    """As much of subprocess.Popen as a run needs."""

    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    returncode: int | None

    def wait(self, timeout: float | None = None) -> int: ...


Start = Callable[[dict[str, Any]], Process]  # starts the run that a dictionary describes: see `_config`


def run(stage: Stage, checks: list[Check], timeout: float, start: Start) -> Run:
    """Run `checks` on a stage, in one process. Only a pass that was reported is one.

    timeout  seconds that a test may take
    start    `start` of this module, or another that takes and gives the same: see grading.runner.warm
    """
    names = [check.name for check in checks]
    token = secrets.token_hex(16)  # what does not begin with it was not written by the child
    child = start(_config(stage, names, timeout, token))
    try:
        told, stderr, over_time = _collect(child, token, timeout, START_LIMIT + (timeout + GRACE) * (len(names) + 1))
    finally:  # also where the grader is interrupted
        end(child)
    status = child.returncode if child.returncode is not None else -1
    return outcomes_of(Record(told, stderr, status, over_time, str(stage.folder / "meintorch")), names, timeout)


def _config(stage: Stage, names: list[str], timeout: float, token: str) -> dict[str, Any]:
    return {
        "token": token,
        "stage": str(stage.folder),
        "modules": [name.removesuffix(".py").replace("/", ".") for name in stage.chapter.files],
        "file": stage.chapter.tests.name,
        "tests": names,
        "timeout": timeout,
        "forbidden": [*FORBIDDEN, *HIDDEN],
        "hidden": [str(folder) for folder in (REFERENCE.parent, TESTS, CHAPTERS, ROOT / "grading")],
    }


def start(config: dict[str, Any]) -> Process:
    """Start a process for the run that `config` describes."""
    child = subprocess.Popen(
        PYTHON,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=os.name == "posix",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # Windows alone knows it
    )
    with contextlib.suppress(OSError):  # it has ended already: its events will show it
        if child.stdin is not None:
            child.stdin.write(json.dumps({"path": import_path(), **config}).encode())
            child.stdin.close()
    return child


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


def _collect(child: Process, token: str, timeout: float, longest: float) -> tuple[list[Event], str, bool]:
    """Read a child's events until it ends, or until it is silent for too long, or at work for the longest time.

    Returns the events, what it has printed, and whether it had to be ended from outside.
    """
    deadline = time.monotonic() + longest
    lines: queue.Queue[bytes | None] = queue.Queue()
    noise: list[str] = []
    readers = [
        threading.Thread(target=_read_lines, args=(child.stdout, lines), daemon=True),
        threading.Thread(target=_read_noise, args=(child.stderr, noise), daemon=True),
    ]
    for reader in readers:
        reader.start()
    told: list[bytes] = []
    limit, over_time = START_LIMIT, False
    while True:
        try:
            line = lines.get(timeout=max(0.0, min(limit, deadline - time.monotonic())))
        except queue.Empty:
            over_time = True
            break
        if line is None:
            break
        if line.startswith(token.encode() + b" "):
            told.append(line.partition(b" ")[2])
            limit = timeout + GRACE
        elif told and line.endswith(b"\n"):
            told.append(events.FORGED)
    try:
        child.wait(timeout=0 if over_time else GRACE)
    except subprocess.TimeoutExpired:
        over_time = True
    end(child)  # its pipes close, and the readers come to an end
    for reader in readers:
        reader.join(GRACE)
    return events.read(told), "".join(noise), over_time


def _read_lines(pipe: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(None)


def _read_noise(pipe: IO[bytes], noise: list[str]) -> None:
    """Keep the beginning and the end of what the child prints, and where it says that its time is over."""
    size = 0
    while chunk := os.read(pipe.fileno(), 65536).decode("utf-8", "replace"):
        if noise and "Timeout (" in chunk and len(noise[0]) < STDERR_LIMIT:
            noise[0] += chunk  # which is never dropped
            continue
        noise.append(chunk)
        size += len(chunk)
        while size > STDERR_LIMIT and len(noise) > 2:
            size -= len(noise.pop(1))


def end(child: Process) -> None:
    """End the child and everything that it started."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended already
            os.killpg(child.pid, signal.SIGKILL)
    elif child.returncode is None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(child.pid)], capture_output=True, check=False)
    child.wait()
