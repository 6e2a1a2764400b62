"""The front of `python grader.py`: what may be typed, and what becomes of it. What it does stands in commands.py."""

import argparse
import contextlib
import difflib
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from grading import commands
from grading.commands import BROKEN, NOT_YET, PASSED, WRONG_USAGE, UsageError, wrong

USAGE = """python grader.py              the map: every chapter, its progress, what is next
python grader.py 02           check a chapter
python grader.py 02.2         check one task
python grader.py all          check every chapter
   --watch                    again at every save (with no number: where you
                              are); --poll as well, on a network folder
   --goal                     the harder suite as well
   --solution                 the same tests on the reference
   --package DIR              on the package in DIR instead of meintorch/
   --timeout S                seconds a test may take (15)
   --json                     one JSON document on stdout, nothing else
   --format NAME              the same in the form of gradescope or exercism
   --junitxml FILE            writes JUnit XML as well
python grader.py hint 02.2    the next hint for a task (again: the one after it;
                              hint 02.2 1: that one; without a task: for the
                              one that you are at)
python grader.py diff 02      your code beside the reference, for what passes
   --spoil                    for the rest too
   --package DIR              for the package in DIR instead of meintorch/
python grader.py explain 02   after it has passed: the reference and why
python grader.py reset 02.2   the stub of a task again (02: of a whole chapter,
                              all: of all); what was there is kept and its place
                              is printed
python grader.py catch-up 05  takes what is not done before chapter 05 from the
                              reference; what was there is kept
python grader.py notebook 02  the chapter as a notebook (all: every chapter)
python grader.py doctor       is this machine set up?
python grader.py stubs        for maintainers: meintorch/ anew from solutions/
   --check                    only say whether the two fit each other
python grader.py new 05.7 "Softplus"
                              for maintainers: what a new task needs, its gaps
                              marked (new 14 "Convolution": a new chapter;
                              a second title is its first task's)
python grader.py course-check 05
                              for maintainers: what is missing in a chapter or
                              does not fit (without a number: in any)
python grader.py verify       for maintainers: all that proves the course

Exit status: 0 all that was asked for passed, 1 not yet, 2 wrong usage,
3 the grader itself failed.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before Python began
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="replace")  # a console that lacks a character shows a question mark
    for name in ("SIGTERM", "SIGHUP"):  # ended from outside, or the terminal is closed: leave nothing behind either
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        options = _parse(sys.argv[1:] if arguments is None else arguments)
        status: int = options.run(options)
        return status
    except UsageError as error:
        print(error, file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return NOT_YET
    except BrokenPipeError:
        sys.stdout = None  # the reader of the output has gone: there is nobody to tell
        return NOT_YET
    except OSError as error:
        print(f"The grader was stopped by the system: {error}", file=sys.stderr)
        return BROKEN
    except Exception as error:
        from grading.course.errors import GraderError

        if not isinstance(error, GraderError):
            import traceback

            traceback.print_exc()
            print("\nThis is a mistake in the grader, not in your code.", file=sys.stderr)
        else:
            print(error, file=sys.stderr)
        return BROKEN


@dataclass(frozen=True)
class Command:
    run: Callable[[argparse.Namespace], int]
    options: tuple[str, ...] = ()
    example: str = ""  # of what follows it, if something does
    most: int = 1  # words that may follow it
    least: int = 1
    checks: bool = True  # it starts runs, and needs the libraries for that


WATCHING = ("package", "goal", "solution", "watch", "poll")
CHECKING = (*WATCHING, "json", "format", "junitxml")
OPTIONS: dict[str, dict[str, Any]] = {
    "package": {"type": Path},
    "format": {"choices": ["gradescope", "exercism"]},
    "junitxml": {"type": Path},
    **{flag: {"action": "store_true"} for flag in ("goal", "solution", "json", "spoil", "check", "watch", "poll")},
}
WITH_VALUES = ("--package", "--timeout", "--format", "--junitxml")


def _commands() -> dict[str, Command]:
    return {
        "map": Command(commands.map, WATCHING),
        "check": Command(commands.check, CHECKING),  # it is not typed: a number stands for it
        "all": Command(commands.check, tuple(option for option in CHECKING if option not in ("watch", "poll"))),
        "hint": Command(commands.hint, (), "02.2", most=2, least=0, checks=False),
        "diff": Command(commands.diff, ("spoil", "package"), "02"),
        "explain": Command(commands.explain, (), "02"),
        "reset": Command(commands.reset, (), "02.2", checks=False),
        "catch-up": Command(commands.catch_up, (), "05"),
        "notebook": Command(commands.notebook, (), "02"),
        "doctor": Command(commands.doctor, checks=False),
        "stubs": Command(commands.stubs, ("check",), checks=False),
        "new": Command(commands.new, (), '05.7 "Softplus"', most=3, least=2, checks=False),
        "course-check": Command(commands.course_check, (), "05", least=0),
        "verify": Command(commands.verify),
    }


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        wrong(message)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """What was typed, with the function that does it as `run`. Raises UsageError."""
    if {"--help", "-h"} & set(arguments) or arguments[:1] == ["help"]:
        return argparse.Namespace(run=_help)
    known = _commands()
    typed, *rest = _command_first(arguments)
    number = re.fullmatch(r"[0-9]+(\.[0-9]+)?", typed)
    if not number and (typed not in known or typed == "check"):
        _unknown(typed, rest, [*known, "help"])
    parser = _Parser(prog="python grader.py", add_help=False, allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="command")
    for name, command in known.items():
        subparser = subparsers.add_parser(name, add_help=False, allow_abbrev=False)
        subparser.add_argument("words", nargs="*")
        subparser.add_argument("--timeout", type=_seconds, default=15.0)
        for option in command.options:
            subparser.add_argument(f"--{option}", **OPTIONS[option])
        subparser.set_defaults(**{option: None for option in OPTIONS if option not in command.options})
    options, others = parser.parse_known_args(["check", *rest] if number else [typed, *rest])
    command = known[options.command]
    options.run = command.run
    _refuse_others(others, typed, bool(arguments) and typed != "map")
    options.words += [word for word in others if not word.startswith("-")]
    if command.example and not command.least <= len(options.words) <= command.most:
        what = {"notebook": "one chapter", "new": "a number and a title"}.get(typed, "one chapter or task")
        wrong(f"{typed} needs {what}: python grader.py {typed} {command.example}")
    if options.words and not command.example:
        wrong(f"{typed} stands alone: python grader.py {typed}")
    options.name = options.words[0] if options.words else typed
    _refuse_what_does_not_fit(options, typed)
    if command.checks:
        commands.need_libraries()
    return options


def _command_first(arguments: Sequence[str]) -> list[str]:
    """What was typed, the command in front of the options; "map" where there is none."""
    before = ""
    for place, word in enumerate(arguments):
        if not word.startswith("-") and before not in WITH_VALUES:
            return [word, *arguments[:place], *arguments[place + 1 :]]
        before = word
    return ["map", *arguments]


def _unknown(typed: str, rest: list[str], known: list[str]) -> NoReturn:
    close = difflib.get_close_matches(typed, known, n=1) if typed != "check" else [""]
    guess = " ".join(["python grader.py", *close, *rest]).replace("  ", " ")
    wrong(f"There is no command {typed!r}." + (f" Did you mean: {guess}" if close else ""))


def _refuse_others(others: list[str], typed: str, named: bool) -> None:
    """Options that this command does not have."""
    names = [word.removeprefix("--").partition("=")[0] for word in others if word.startswith("-")]
    if any(name not in OPTIONS for name in names):
        wrong(f"unrecognized arguments: {' '.join(others)}")
    if names:
        wrong(f"--{min(names)} does not go with {typed if named else 'the map'}")


def _refuse_what_does_not_fit(options: argparse.Namespace, typed: str) -> None:
    given = {option for option in OPTIONS if getattr(options, option)}
    if "watch" in given:
        options.run = commands.watch
        if given - set(WATCHING):
            wrong(f"--{min(given - set(WATCHING))} does not go with --watch")
    elif typed == "map" and given:
        wrong("--poll goes with --watch" if given == {"poll"} else f"--{min(given)} does not go with the map")
    for one, other in (("json", "format"), ("package", "solution")):
        if {one, other} <= given:
            wrong(f"--{one} and --{other} exclude each other")
    if "poll" in given and "watch" not in given:
        wrong("--poll goes with --watch")
    if options.format == "exercism" and typed == "all":
        wrong("Exercism's form holds one exercise: python grader.py 02 --format exercism")
    if options.package is not None:
        from grading.runner.gradable import no_package_in

        if problem := no_package_in(options.package):
            wrong(f"--package {options.package}: {problem}")
    file = options.junitxml
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        wrong(f"--junitxml {file}: give the name of a file in a folder that is there")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 100_000:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds between 0 and 100000")


def _help(options: argparse.Namespace) -> int:
    print(USAGE, end="")
    return PASSED
