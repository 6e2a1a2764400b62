"""Runs the tests of one chapter on a stage, in a process of its own, and reports what happens as it happens.

Started as `python -I -S -B -X utf8 child.py CONFIG` by grading.launch, which reads the events, a JSON object a line,
from what is this process's standard output at the start. Whatever learners' code prints goes elsewhere.
"""

import faulthandler
import importlib.abc
import json
import os
import sys
import time
import traceback

OUTPUT_LIMIT = 2_000  # characters of a test's own output that are kept


class Channel:
    """The private line to the grader."""

    def __init__(self):
        self.descriptor = os.dup(1)
        os.dup2(2, 1)  # from here on, printing goes to standard error

    def send(self, event, **fields):
        os.write(self.descriptor, (json.dumps({"event": event, **fields}) + "\n").encode("utf-8", "replace"))


class NoMagic(importlib.abc.MetaPathFinder):
    """Refuses the libraries that would do a learner's work."""

    def __init__(self, forbidden):
        self.forbidden = frozenset(forbidden)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.forbidden:
            raise ImportError(f"Zero magic: {name} is not allowed in the course, NumPy is")


class Output:
    """What a test prints, as far as it is worth showing."""

    encoding, errors = "utf-8", "replace"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += str(text)[: OUTPUT_LIMIT - len(self.text)]
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False

    def fileno(self):
        return 2


class Reporter:
    """A pytest plugin that sends one event when a test starts and one when it ends."""

    def __init__(self, channel, package, wanted):
        self.channel, self.package, self.wanted = channel, package, wanted

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.name in self.wanted]

    def pytest_runtest_logstart(self, nodeid):
        self.started = time.perf_counter()
        self.sent = False
        self.channel.send("start", test=nodeid.rpartition("::")[2])
        sys.stdout = sys.stderr = self.output = Output()

    def pytest_runtest_makereport(self, item, call):
        outcome = "passed"
        details = {}
        if call.excinfo is not None:
            error = call.excinfo.value
            outcome = "skipped" if type(error).__name__ == "Skipped" else "failed"
            details = describe(error, self.package)
        if self.sent or (call.when != "call" and outcome == "passed"):
            return
        self.sent = True
        duration = time.perf_counter() - self.started
        output = self.output.text
        self.channel.send("end", test=item.name, outcome=outcome, output=output, duration=duration, **details)

    def pytest_runtest_logfinish(self):
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def describe(error, package):
    """What there is to say of an exception: its type and text, and where in the learner's package it came from."""
    try:
        message = str(error)
    except Exception as inner:
        message = f"(its text cannot be shown: {type(inner).__name__})"
    diagnosis = getattr(error, "diagnosis", None)
    return {
        "kind": type(error).__name__,
        "check": getattr(type(error), "is_check", False) is True,
        "message": message[:4_000],
        "diagnosis": diagnosis if isinstance(diagnosis, str) else "",
        "frames": places_of(error, package),
    }


def places_of(error, package):
    """The lines of the learner's package that an exception passed through, the innermost last."""
    if isinstance(error, SyntaxError) and str(error.filename or "").startswith(package):
        return [{"file": relative(error.filename, package), "line": error.lineno, "source": (error.text or "").strip()}]
    frames = [
        {"file": relative(frame.filename, package), "line": frame.lineno, "source": frame.line}
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(package)
    ]
    if not frames and isinstance(error, ImportError) and str(error.path or "").startswith(package):
        return [{"file": relative(error.path, package), "line": None, "source": ""}]  # a name that is not in there
    return frames[-50:]


def relative(filename, package):
    return "meintorch/" + filename[len(package) + 1 :].replace("\\", "/")


def no_breakpoint(*_, **__):
    raise RuntimeError("breakpoint() needs a terminal, and a check has none: print() instead, its output is shown")


def report_exits(channel, package):
    """Let `os._exit` say where it was called from before it ends this process. Returns the real one."""
    leave = os._exit

    def _exit(status):
        frame = sys._getframe()
        while frame is not None and not frame.f_code.co_filename.startswith(package):
            frame = frame.f_back
        place = frame and {"file": relative(frame.f_code.co_filename, package), "line": frame.f_lineno}
        channel.send("exit", frames=[place] if place else [])
        leave(status)

    os._exit = _exit
    return leave


def main():
    channel = Channel()
    config = json.loads(sys.argv[1])
    stage = config["stage"]
    package = os.path.join(stage, "meintorch")
    os.chdir(stage)
    sys.argv[:] = ["meintorch"]
    sys.path[:] = [stage, *sys.path, *[entry for entry in config["path"] if entry not in sys.path]]

    import numpy
    import pytest

    sys.breakpointhook = no_breakpoint
    channel.send("ready", numpy=numpy.__version__, pytest=pytest.__version__)
    sys.meta_path.insert(0, NoMagic(config["forbidden"]))
    leave = report_exits(channel, package)
    faulthandler.dump_traceback_later(config["timeout"], exit=True)
    try:
        import meintorch

        if os.path.dirname(os.path.abspath(meintorch.__file__)) != package:
            raise ImportError(f"meintorch was imported from {meintorch.__file__} and not from the stage")
        for module in config["modules"]:
            importlib.import_module(f"meintorch.{module}")
        importlib.import_module(f"tests.{config['file'].removesuffix('.py')}")  # are all the names there?
    except BaseException as error:  # SystemExit too: a package that ends Python cannot be graded
        channel.send("import failed", **describe(error, package))
        leave(1)
    faulthandler.cancel_dump_traceback_later()
    channel.send("imported")
    options = ["-s", "--assert=plain", "-c", os.path.join(stage, "pytest.ini"), "--rootdir", stage]
    options += ["-o", f"faulthandler_timeout={config['timeout']}"]
    for plugin in ("cacheprovider", "doctest", "junitxml", "logging", "pastebin", "stepwise", "terminal", "unittest"):
        options += ["-p", f"no:{plugin}"]
    reporter = Reporter(channel, package, frozenset(config["tests"]))
    status = pytest.main([*options, os.path.join("tests", config["file"])], plugins=[reporter])
    channel.send("finished", status=int(status))
    leave(int(status))  # at once: a thread that was left running is not waited for


if __name__ == "__main__":
    main()
