"""Runs the tests of one chapter on a stage, in a process of its own, and reports what happens as it happens.

Started as `python -I -S -B -X utf8 child.py` by launch.py, which writes a JSON object to its standard input and reads
the events, a JSON object a line, from what is its standard output at the start. Whatever learners' code prints goes
elsewhere. Started as `child.py --warm N PATH`, it waits at the socket N and forks for every run: see warm.py.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import json
import os
import sys

TYPE_CHECKING = False  # mypy takes it for True. Nothing is imported for its sake: every run waits for this module
if TYPE_CHECKING:
    import socket
    import types
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    from grading.runner import guard, reporter
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import guard
    import reporter

    del sys.path[0]

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
TOOLS = (  # what the checks rely on, beside their own modules
    "__main__",
    "guard",
    "reporter",
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


class NoMagic(importlib.abc.MetaPathFinder):
    """Refuses the libraries that would do a learner's work."""

    def __init__(self, forbidden: Iterable[str]):
        self.forbidden = frozenset(forbidden)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.forbidden:
            raise ImportError(f"Zero magic: {name} is not allowed in the course, NumPy is")


def no_breakpoint(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("breakpoint() needs a terminal, and a check has none: print() instead, its output is shown")


def report_exits(channel: reporter.Channel, package: str) -> Callable[[int], NoReturn]:
    """Let `os._exit` say where it was called from before it ends this process. Returns the real one."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        frame: types.FrameType | None = sys._getframe()
        while frame is not None and not frame.f_code.co_filename.startswith(package):
            frame = frame.f_back
        place = frame and {"file": reporter.relative(frame.f_code.co_filename, package), "line": frame.f_lineno}
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

    channel, clock = reporter.Channel(config["token"]), reporter.Clock(config["timeout"])
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
        import_package(config, package)
        reporter.look(seal, channel)
        seal.close(f"tests.{config['file'].removesuffix('.py')}")  # are all the names there?
    except BaseException as error:  # SystemExit too: a package that ends Python cannot be graded
        channel.send("import failed", **reporter.describe(error, package))
        leave(1)
    channel.send("imported")
    tests = frozenset(config["tests"])
    status = run_tests(config, reporter.Reporter(channel, clock, package, tests, seal, pytest.TestReport))
    channel.send("finished", status=status)
    leave(status)  # at once: a thread that was left running is not waited for


def import_package(config: dict[str, Any], package: str) -> None:
    import meintorch

    if os.path.dirname(os.path.abspath(meintorch.__file__)) != package:
        raise ImportError(f"meintorch was imported from {meintorch.__file__} and not from the stage")
    for module in config["modules"]:
        importlib.import_module(f"meintorch.{module}")


def run_tests(config: dict[str, Any], plugin: reporter.Reporter) -> int:
    """Let pytest run the tests of the chapter and the canaries. Returns its status."""
    import pytest

    stage = config["stage"]
    options = ["--assert=plain", "-c", os.path.join(stage, "pytest.ini"), "--rootdir", stage]
    options += ["--basetemp", os.path.join(stage, "scratch", "pytest")]
    for name in NOT_NEEDED:
        options += ["-p", f"no:{name}"]
    files = [os.path.join(stage, "tests", name) for name in (config["file"], reporter.CANARIES)]
    gc.freeze()  # what is here already is garbage in no test
    return int(pytest.main([*options, *files], plugins=[plugin]))


def serve(number: int, path: Sequence[str]) -> None:
    """Import what every run needs, wait at a socket and fork for every run: see grading.runner.warm."""
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
