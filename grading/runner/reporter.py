"""Tells the grader, over a private line, what happens to the tests. Runs in the child process, beside child.py."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import sys
import time
import traceback
import types

TYPE_CHECKING = False  # mypy takes it for True. Nothing is imported for its sake: every run waits for this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pytest

    from grading.runner import guard

OUTPUT_LIMIT = 2_000  # characters of a test's own output that are kept
CANARIES = "_canaries.py"
FROM_CODE = (type, types.FunctionType)


class Channel:
    """The private line to the grader."""

    def __init__(self, token: str):
        descriptor = os.dup(1)
        os.dup2(2, 1)  # from here on, printing goes to standard error

        def write(line: str) -> None:
            os.write(descriptor, f"{token} {line}\n".encode("utf-8", "replace"))

        self.write = write

    def send(self, event: str, **fields: Any) -> None:
        self.write(json.dumps({"event": event, **fields}))


class Output:
    """What a test prints, as far as it is worth showing."""

    encoding, errors = "utf-8", "replace"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += str(text)[: OUTPUT_LIMIT - len(self.text)]
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 2


class Clock:
    """Ends this process where something takes too long, or crashes, and says where that was on standard error."""

    EVERY = 0.5  # seconds, fewer than launch.GRACE: setting it takes a thread, and tests are many and short

    def __init__(self, limit: float):
        self.limit, self.descriptor = limit, os.dup(2)
        self.set: float | None = None
        faulthandler.enable(file=self.descriptor)

    def start(self) -> None:
        """From now on there are `limit` seconds, and at most `EVERY` more."""
        now = time.monotonic()
        if self.set is None or now - self.set > self.EVERY:
            self.set = now
            faulthandler.dump_traceback_later(self.limit + self.EVERY, exit=True, file=self.descriptor)


class Reporter:
    """A pytest plugin that sends one event when a test starts and one when it ends."""

    def __init__(
        self,
        channel: Channel,
        clock: Clock,
        package: str,
        wanted: frozenset[str],
        seal: guard.Seal,
        report: Callable[..., pytest.TestReport],
    ):
        self.channel, self.clock, self.package = channel, clock, package
        self.wanted, self.seal, self.report = wanted, seal, report

    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
        if collector.path.name != CANARIES and name not in self.wanted:
            return []  # or it would be looked at closely first
        return None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        canaries = [item for item in items if item.path.name == CANARIES]
        items[:] = [item for item in items if item.path.name != CANARIES and item.name in self.wanted]
        for canary in canaries:  # at places that nobody can foresee
            items.insert(random.SystemRandom().randint(0, len(items)), canary)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.clock.start()
        self.started = time.perf_counter()
        self.sent = False
        self.channel.send("start", test=nodeid.rpartition("::")[2])
        self.output: Any = Output()
        sys.stdout = sys.stderr = self.output

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        outcome: Any = "passed"
        details: dict[str, Any] = {}
        if call.excinfo is not None:
            error = call.excinfo.value
            outcome = "skipped" if type(error).__name__ == "Skipped" else "failed"
            details = describe(error, self.package)
        if not self.sent and (call.when == "call" or outcome != "passed"):
            self.sent = True
            duration = time.perf_counter() - self.started
            output = self.output.text
            self.channel.send("end", test=item.name, outcome=outcome, output=output, duration=duration, **details)
        # pytest's own report would hold the whole traceback with its source lines, which takes long and nobody reads.
        return self.report(item.nodeid, item.location, {}, outcome, None, call.when)

    def pytest_runtest_logfinish(self) -> None:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        look(self.seal, self.channel)


def look(seal: guard.Seal, channel: Channel) -> None:
    broken = seal.broken()
    if broken:
        channel.send("tampered", message=f"{broken} is not what it was: the package has changed it.")


def describe(error: BaseException, package: str) -> dict[str, Any]:
    """What there is to say of an exception: its type and text, and where in the learner's package it came from."""
    try:
        message = str(error)
    except Exception as inner:
        message = f"(its text cannot be shown: {type(inner).__name__})"
    diagnosis = getattr(error, "diagnosis", None)
    return {
        "kind": type(error).__name__,
        "check": getattr(type(error), "is_check", False) is True,
        "message": in_the_learners_words(error, message)[:4_000].replace(package, "meintorch"),
        "diagnosis": diagnosis if isinstance(diagnosis, str) else "",
        "general": getattr(error, "general", False) is True,
        "frames": places_of(error, package),
    }


def in_the_learners_words(error: BaseException, message: str) -> str:
    """The text of an error, without names from the tests: whoever reads it has typed none of them."""
    if getattr(type(error), "is_check", False) is True:
        return message
    # Of AttributeError, the object: it may be of a class inside of a test.
    names: dict[Any, Any] = {type(error.obj): None} if type(error) is AttributeError and hasattr(error, "obj") else {}
    for package in ("tests.", "meintorch."):  # what is lent to the second is known by its name there
        for key, module in list(sys.modules.items()):
            if str(key).startswith(package) and type(module) is types.ModuleType:
                names |= {value: name for name, value in vars(module).items() if type(value) in FROM_CODE}
    names = {value: name for value, name in names.items() if type(value) in FROM_CODE and is_of_tests(value)}
    for value, name in names.items():
        if isinstance(value, type):  # as what it stands in for
            base = next(base_class for base_class in value.__mro__ if not is_of_tests(base_class))
            known_as = "stand-in" if base is object else base.__name__
            message = re.sub(rf"\b{value.__name__}(?=\.\w+\(\))|(?<='){value.__name__}(?=' object)", known_as, message)
        else:  # as what it is called in the package, where it was lent to that
            known_as = "function" if name == value.__name__ else name
            message = re.sub(rf"\b{value.__name__}(\.<locals>\.(\w+|<\w+>))*(?=\(\))", known_as, message)
    return message


def is_of_tests(value: Any) -> bool:
    return isinstance(value.__module__, str) and value.__module__.startswith("tests.")


def places_of(error: BaseException, package: str) -> list[dict[str, Any]]:
    """The lines of the learner's package that an exception passed through, the innermost last."""
    if isinstance(error, SyntaxError) and str(error.filename or "").startswith(package):
        return [
            {"file": relative(str(error.filename), package), "line": error.lineno, "source": (error.text or "").strip()}
        ]
    frames = [
        {"file": relative(frame.filename, package), "line": frame.lineno, "source": frame.line}
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(package)
    ]
    given = all(frame["file"] == "meintorch/__init__.py" for frame in frames)
    if given and isinstance(error, ImportError) and str(error.path or "").startswith(package):
        return [{"file": relative(str(error.path), package), "line": None, "source": ""}]  # a name that is not in there
    return frames[-50:]


def relative(filename: str, package: str) -> str:
    return "meintorch/" + filename[len(package) + 1 :].replace("\\", "/")
