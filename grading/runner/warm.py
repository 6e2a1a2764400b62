"""A process that has imported NumPy and pytest already and forks for every run, so that a check starts at once.

Only where there is fork and descriptors can be sent to another process: Linux and macOS.
"""

import json
import os
import select
import signal
import socket
import subprocess
import threading
from typing import IO, Any

from grading.runner import launch
from grading.runner.launch import Process


def available() -> bool:
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


_of_thread = threading.local()


def start(config: dict[str, Any]) -> Process:
    """What `launch.start` does, in a fork of a process that this thread keeps for that. For many runs in a row."""
    if not available():
        return launch.start(config)
    try:
        warm: Warm = _of_thread.warm
        return warm.start(config)
    except (AttributeError, OSError, ValueError):  # there is none yet, or it is gone
        _of_thread.warm = warm = Warm()
        return warm.start(config)


def start_after_the_first(config: dict[str, Any]) -> Process:
    """What `start` does, from the second run of this thread on: most commands have one alone."""
    if not getattr(_of_thread, "begun", False):
        _of_thread.begun = True
        return launch.start(config)
    try:
        return start(config)
    except (OSError, ValueError):  # no process can wait here
        return launch.start(config)


def let_go() -> None:
    """End the process that this thread keeps, if there is one: a command goes on that has no more runs for it."""
    if hasattr(_of_thread, "warm"):
        _of_thread.warm.close()
        del _of_thread.warm


class Warm:
    """The waiting process. It ends when this one does: its end of the socket closes then."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*launch.PYTHON, "--warm", str(theirs.fileno()), json.dumps(launch.import_path())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=launch.environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.words = self.line.makefile("rb", buffering=0)  # so that nothing waits in a buffer that select does not see

    def start(self, config: dict[str, Any]) -> "Forked":
        """Fork, and run the tests there that `config` names. Raises OSError or ValueError if the process is gone."""
        return Forked(self, config)

    def close(self) -> None:
        self.process.kill()  # first, or it would complain that nobody reads its words
        self.process.wait()
        self.line.close()
        self.words.close()


class Forked:
    """A run in a forked process, with as much of subprocess.Popen as the grader needs."""

    def __init__(self, warm: Warm, config: dict[str, Any]):
        self.warm, self.lock = warm, threading.Lock()
        self.returncode: int | None = None
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        self.stdout: IO[bytes] | None = os.fdopen(out, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(err, "rb")
        try:
            socket.send_fds(warm.line, [json.dumps(config).encode() + b"\n"], [theirs_out, theirs_err])
        finally:
            os.close(theirs_out)
            os.close(theirs_err)
        self.pid = int(warm.words.readline())

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the run. Raises subprocess.TimeoutExpired."""
        with self.lock:  # whoever stops a run waits for it too, and there is one word of its end
            if self.returncode is None:
                if not select.select([self.warm.line], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("a run", timeout or 0.0)
                self.returncode = -signal.SIGKILL  # if Ctrl-C comes right now, nobody waits for the word again
                self.returncode = int(self.warm.words.readline() or -signal.SIGKILL)  # no word: who had it was killed
            return self.returncode
