"""Runs the tests of one chapter on a stage, in a process of its own, and reports what happens as it happens.

Started as `python -I -S -B -X utf8 child.py` by grading.launch, which writes a JSON object to its standard input and
reads the events, a JSON object a line, from what is its standard output at the start. Whatever learners' code prints
goes elsewhere. Started as `child.py --warm N PATH`, it waits at the socket N and forks for every run: see grading.warm.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import importlib.abc
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
    import socket
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    import pytest

    from grading.runner import guard
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import guard

    del sys.path[0]

OUTPUT_LIMIT = 2_000  # characters of a test's own output that are kept
CANARIES = "_canaries.py"
NOT_NEEDED = (  # plugins of pytest's own whose work nobody sees here
    "cacheprovider",
    "capture",
    "debugging",
    "doctest",
    "faulthandler",  # starts a thread for every test: see Clock
    "junitxml",
    "legacypath",
    "logging",
    "pastebin",
    "setuponly",
    "setupplan",
    "stepwise",
    "subtests",
    "terminal",
    "threadexception",
    "unittest",
    "unraisableexception",
)
FROM_CODE = (type, types.FunctionType)
TOOLS = (  # what the checks rely on, beside their own modules
    "__main__",
    "guard",
    "builtins",
    "numpy",
    "numpy.testing",
    "numpy.testing._private.utils",
    "numpy._core.numeric",
    "numpy._core.fromnumeric",
    "pytest",
    "_pytest.main",
    "_pytest.monkeypatch",
    "_pytest.outcomes",
    "_pytest.python",
    "_pytest.raises",
    "_pytest.runner",
    "pluggy._hooks",
)


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


class NoMagic(importlib.abc.MetaPathFinder):
    """Refuses the libraries that would do a learner's work."""

    def __init__(self, forbidden: Iterable[str]):
        self.forbidden = frozenset(forbidden)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.forbidden:
            raise ImportError(f"Zero magic: {name} is not allowed in the course, NumPy is")


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
            base = next(one for one in value.__mro__ if not is_of_tests(one))
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


def no_breakpoint(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("breakpoint() needs a terminal, and a check has none: print() instead, its output is shown")


def report_exits(channel: Channel, package: str) -> Callable[[int], NoReturn]:
    """Let `os._exit` say where it was called from before it ends this process. Returns the real one."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        frame: types.FrameType | None = sys._getframe()
        while frame is not None and not frame.f_code.co_filename.startswith(package):
            frame = frame.f_back
        place = frame and {"file": relative(frame.f_code.co_filename, package), "line": frame.f_lineno}
        channel.send("exit", frames=[place] if place else [])
        leave(status)

    os._exit = _exit
    return leave


def prepare(path: Sequence[str]) -> guard.Seal:
    """Import what every run needs, from where the grader can import it, and seal it."""
    sys.path[:] = [*sys.path, *[entry for entry in path if entry not in sys.path]]
    return guard.Seal(TOOLS)


def run(config: dict[str, Any], seal: guard.Seal) -> NoReturn:
    """Run the tests that `config` names and leave this process. `seal` is that of the tools they need."""
    import pytest

    channel, clock = Channel(config["token"]), Clock(config["timeout"])
    stage, package = config["stage"], os.path.join(config["stage"], "meintorch")
    scratch = os.path.join(stage, "scratch")  # the only folder that can be written to
    os.chdir(scratch)
    os.environ.update(TMPDIR=scratch, TEMP=scratch, TMP=scratch)
    sys.argv[:] = ["meintorch"]
    sys.path.insert(0, stage)
    sys.breakpointhook = no_breakpoint
    seal.close("tests._helpers")
    channel.send("ready")
    sys.meta_path.insert(0, NoMagic(config["forbidden"]))
    leave = report_exits(channel, package)
    guard.limit_resources()
    guard.refuse_effects(scratch, config["hidden"])
    clock.start()
    try:
        import meintorch

        if os.path.dirname(os.path.abspath(meintorch.__file__)) != package:
            raise ImportError(f"meintorch was imported from {meintorch.__file__} and not from the stage")
        for module in config["modules"]:
            importlib.import_module(f"meintorch.{module}")
        look(seal, channel)
        seal.close(f"tests.{config['file'].removesuffix('.py')}")  # are all the names there?
    except BaseException as error:  # SystemExit too: a package that ends Python cannot be graded
        channel.send("import failed", **describe(error, package))
        leave(1)
    channel.send("imported")
    options = ["--assert=plain", "-c", os.path.join(stage, "pytest.ini"), "--rootdir", stage]
    options += ["--basetemp", os.path.join(scratch, "pytest")]
    for plugin in NOT_NEEDED:
        options += ["-p", f"no:{plugin}"]
    files = [os.path.join(stage, "tests", name) for name in (config["file"], CANARIES)]
    gc.freeze()  # what is here already is garbage in no test
    reporter = Reporter(channel, clock, package, frozenset(config["tests"]), seal, pytest.TestReport)
    status = pytest.main([*options, *files], plugins=[reporter])
    channel.send("finished", status=int(status))
    leave(int(status))  # at once: a thread that was left running is not waited for


def serve(number: int, path: Sequence[str]) -> None:
    """Import what every run needs, wait at a socket and fork for every run: see grading.warm."""
    import select
    import signal
    import socket

    line = socket.socket(fileno=number)
    seal = prepare(path)
    plugins = set(sys.modules["_pytest.config"].default_plugins) - set(NOT_NEEDED)
    for name in ["numpy.random", *[f"_pytest.{name}" for name in plugins]]:
        importlib.import_module(name)
    gc.freeze()  # what is here already is garbage in no run
    while True:
        text, descriptors = receive(line)
        if not text:  # the grader has ended
            return
        ended, alive = os.pipe()  # only the run holds on to the second end: nobody else does as long as it lasts
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(ended)
            for descriptor, target in zip(descriptors, (1, 2)):
                os.dup2(descriptor, target)
                os.close(descriptor)
            line.close()
            sys.modules["numpy.random"].seed()  # or the numbers would be the same in every run
            run(json.loads(text), seal)
        for descriptor in [*descriptors, alive]:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # it has done so itself already
            os.setpgid(child, child)  # before the grader hears of it and may want to end its group
        line.sendall(b"%d\n" % child)
        either: list[Any] = [line, ended]
        select.select(either, [], [])
        os.close(ended)
        if select.select([line], [], [], 0)[0]:  # it says nothing during a run: the grader has ended
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)
            return
        line.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def receive(line: socket.socket) -> tuple[bytes, list[int]]:
    """A line of text from a socket, and the descriptors that came with it."""
    import socket

    text, descriptors, _, _ = socket.recv_fds(line, 65536, 2)
    while text and not text.endswith(b"\n"):
        more = line.recv(65536)
        text = text + more if more else b""
    return text, descriptors


def main() -> None:
    if sys.argv[1:2] == ["--warm"]:
        serve(int(sys.argv[2]), json.loads(sys.argv[3]))
    else:
        config = json.loads(sys.stdin.buffer.read())
        run(config, prepare(config["path"]))


if __name__ == "__main__":
    main()
