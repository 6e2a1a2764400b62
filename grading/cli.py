"""The commands of `python grader.py`."""

import argparse
import difflib
import hashlib
import importlib.util
import json
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PASSED, NOT_YET, WRONG_USAGE, BROKEN = 0, 1, 2, 3

USAGE = """python grader.py              the map: every chapter, its progress, what is next
python grader.py 02           check a chapter
python grader.py 02.2         check one task
python grader.py all          check every chapter
   --goal                     the harder suite as well
   --solution                 the same tests on the reference
   --package DIR              on the package in DIR instead of meintorch/
   --timeout S                seconds a test may take (15)
   --json                     one JSON document on stdout, nothing else
python grader.py hint 02.2    the next hint for a task (again: the one after it;
                              with a number, hint 02.2 1: that one)
python grader.py diff 02      your code beside the reference, for what passes
   --spoil                    for the rest too
   --package DIR              for the package in DIR instead of meintorch/
python grader.py reset 02.2   the stub of a task again (02: of a whole chapter);
                              what was there is kept and its place is printed
python grader.py doctor       is this machine set up?
python grader.py stubs        for maintainers: meintorch/ anew from solutions/
   --check                    only say whether the two fit each other

Exit status: 0 all that was asked for passed, 1 not yet, 2 wrong usage,
3 the grader itself failed.
"""


class UsageError(Exception):
    """What was asked for does not exist. The text says what does."""


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a console that lacks a character shows a question mark
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended from outside: leave nothing behind either
    try:
        options = _parse(arguments)
        return options.command(options)
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
        from grading.course import GraderError

        if not isinstance(error, GraderError):
            import traceback

            traceback.print_exc()
            print("\nThis is a mistake in the grader, not in your code.", file=sys.stderr)
        else:
            print(error, file=sys.stderr)
        return BROKEN


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python grader.py", add_help=False, allow_abbrev=False)
    parser.error = _wrong
    parser.add_argument("words", nargs="*")
    parser.add_argument("--package", type=Path)
    parser.add_argument("--timeout", type=_seconds, default=15.0)
    for flag in ("--goal", "--solution", "--json", "--spoil", "--check", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(arguments)
    if options.help or options.h or options.words[:1] == ["help"]:
        options.command = _help
        return options
    name, rest = (options.words or ["map"])[0], options.words[1:]
    flags = {"map": set(), "hint": set(), "reset": set(), "doctor": set(), "stubs": {"check"}}
    flags["diff"] = {"spoil", "package"}
    allowed = flags.get(name, {"package", "timeout", "goal", "solution", "json"})
    given = {key for key in ("package", "goal", "solution", "json", "spoil", "check") if getattr(options, key)}
    if given - allowed:
        _wrong(f"--{min(given - allowed)} does not go with {name if options.words else 'the map'}")
    commands = {"map": _map, "hint": _hint, "diff": _diff, "reset": _reset, "doctor": _doctor, "stubs": _stubs}
    options.command = commands.get(name, _check)
    if options.command is _check and name != "all" and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", name):
        close = difflib.get_close_matches(name, [*commands, "all"], n=1) if name != "check" else [""]
        guess = " ".join(["python grader.py", *close, *rest]).replace("  ", " ")
        _wrong(f"There is no command {name!r}." + (f" Did you mean: {guess}" if close else ""))
    examples = {"hint": "hint 02.2", "diff": "diff 02", "reset": "reset 02.2"}
    if name in examples and not 1 <= len(rest) <= 1 + (name == "hint"):
        _wrong(f"{name} needs one chapter or task: python grader.py {examples[name]}")
    if name not in examples and rest:
        _wrong(f"{name} stands alone: python grader.py {name}")
    options.name = rest[0] if rest else name
    options.number = rest[1] if len(rest) == 2 else None
    if options.package is not None and not options.package.is_dir():
        _wrong(f"--package {options.package}: there is no such folder")
    if options.package is not None and not list(options.package.glob("*.py")):
        _wrong(f"--package {options.package}: there is no Python file in that folder, such as value.py")
    if options.package is not None and options.solution:
        _wrong("--package and --solution exclude each other")
    if options.command in (_map, _check, _diff):
        _need_libraries()
    return options


def _wrong(message: str) -> None:
    raise UsageError(f"{message}\n\nFor the list of commands: python grader.py --help")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 100_000:
        raise ValueError
    return value


def _need_libraries() -> None:
    missing = [name for name in ("numpy", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} cannot be imported by {sys.executable}.\n"
            "Have you made an environment for the course, and is it not active? source .venv/bin/activate\n"
            "(Windows: .venv\\Scripts\\activate). Otherwise, in the course's folder: python -m pip install -e ."
        )


def _chapter(name: str):
    from grading.course import find_chapter

    try:
        return find_chapter(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def _task(name: str):
    from grading.course import find_task

    try:
        return find_task(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def _help(options: argparse.Namespace) -> int:
    print(USAGE, end="")
    return PASSED


def _check(options: argparse.Namespace) -> int:
    """`python grader.py 02`, `02.2` and `all`."""
    from grading import course, screen
    from grading.report import SCHEMA, grade

    package = options.package or (course.REFERENCE if options.solution else course.PACKAGE)
    if options.name == "all":
        wanted = [(chapter, None) for chapter in course.chapters()]
    else:
        wanted = [_task(options.name) if "." in options.name else (_chapter(options.name), None)]
    reports = []
    for chapter, task in wanted:
        report = grade(chapter, package, task, options.goal, options.timeout)
        reports.append(report)
        if not options.json:
            screen.show_report(report, _first_to_do(report, package))
    passed = all(report.passed for report in reports)
    if options.json:
        document = reports[0].as_json()
        if options.name == "all":
            document = {"schema": SCHEMA, "passed": passed, "chapters": [report.as_json() for report in reports]}
        print(json.dumps(document, indent=2))
    return PASSED if passed else NOT_YET


def _first_to_do(report, package: Path) -> dict | None:
    from grading.report import place_of

    for one in report.tasks:
        if one.status == "todo":
            place = next((result.location for result in one.results if result.status == "todo"), None)
            return {**(place or place_of(package, one.task.parts[0])), "task": one.task}
    return None


def _map(options: argparse.Namespace) -> int:
    """Checks the chapters whose code has changed since the last time, and shows them all."""
    from grading import course, memory, screen
    from grading.report import grade

    remembered = memory.recall("map")
    rows = []
    for chapter in course.chapters():
        digest = _digest(chapter)
        known = remembered.get(chapter.number, {}).get(digest)
        if known is None:
            report = grade(chapter)
            problem = report.not_gradable
            place = f"{problem.file}, line {problem.line}" if problem and problem.line else problem and problem.file
            known = [report.score, report.max_score, place or ""]
            # A test that took too long may have met a busy machine: that is not worth remembering.
            if not any(r.status in ("timeout", "crash", "error") for one in report.tasks for r in one.results):
                remembered[chapter.number] = {digest: known}
        rows.append((chapter, *known))
    memory.remember("map", remembered)
    here = next((chapter for chapter, score, total, _ in rows if score < total), None)
    screen.show_map(rows, here)
    return PASSED if here is None else NOT_YET


def _digest(chapter) -> str:
    """What a chapter's result depends on: the package, the tests, the grader and Python."""
    from grading import course, stage

    digest = hashlib.sha256(sys.version.encode())
    folders = [course.PACKAGE, course.ROOT / "grading", course.REFERENCE]
    paths = [path for folder in folders for path in stage.package_files(folder).values()]
    for path in [*paths, chapter.text, chapter.tests, course.TESTS / "_helpers.py"]:
        digest.update(path.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _hint(options: argparse.Namespace) -> int:
    from grading import memory, screen, texts
    from grading.files import read_source

    if "." not in options.name:
        chapter = _chapter(options.name)
        _wrong(f"hint needs a task, one of {', '.join(task.id for task in chapter.tasks)}")
    chapter, task = _task(options.name)
    rungs = texts.ladder(read_source(chapter.text), task.id)
    shown = memory.recall("hints")
    if options.number is None:
        number = min(int(shown.get(task.id, 0)) + 1, len(rungs))
    elif options.number.isdecimal() and 1 <= int(options.number) <= len(rungs):
        number = int(options.number)
    else:
        _wrong(f"There is no hint {options.number}: {task.id} has 1 to {len(rungs)}, the last is the solution")
    memory.remember("hints", {**shown, task.id: number})
    rung = rungs[number - 1]
    screen.show_hint(task, rung.title, rung.text, number, len(rungs))
    return PASSED


def _diff(options: argparse.Namespace) -> int:
    from grading import compare, course, screen
    from grading.report import grade

    chapter, task = _task(options.name) if "." in options.name else (_chapter(options.name), None)
    package = options.package or course.PACKAGE
    report = grade(chapter, package, task, timeout=options.timeout)
    if report.not_gradable:
        screen.show_report(report, None)
        return NOT_YET
    hidden = []
    for one in report.tasks:
        if one.status == "passed" or options.spoil:
            compare.show(one.task, package)
        else:
            hidden.append(one.task.id)
    screen.say()
    if hidden:
        screen.say(f" Not shown, because not passed yet: {', '.join(hidden)}")
        screen.say(f" To see them all the same: python grader.py diff {options.name} --spoil")
        screen.say()
    return PASSED if report.passed else NOT_YET


def _reset(options: argparse.Namespace) -> int:
    from grading import memory, reset, screen

    chapter, task = _task(options.name) if "." in options.name else (_chapter(options.name), None)
    try:
        kept = reset.reset_task(task) if task else reset.reset_chapter(chapter)
    except reset.CannotReset as error:
        screen.say()
        screen.paragraph(str(error), indent=1)
        screen.say()
        return NOT_YET
    shown = memory.recall("hints")
    tasks = [task] if task else chapter.tasks
    memory.remember("hints", {key: value for key, value in shown.items() if key not in {one.id for one in tasks}})
    screen.say()
    if not kept:
        screen.say(f" {options.name} is the stub already: nothing to do.")
    for name, copy in kept.items():
        screen.say(f" meintorch/{name}: {options.name} is a stub again.")
        screen.say(f" What was there is kept in {copy}" if copy else " There was no such file before.")
    screen.say()
    return PASSED


def _doctor(options: argparse.Namespace) -> int:
    from grading import doctor, screen

    screen.say()
    healthy = True
    for name, problem, detail in doctor.examine():
        healthy = healthy and not problem
        screen.say("  ", ("problem" if problem else "good", "bold red" if problem else "green"), f"   {name}: {detail}")
        if problem:
            screen.paragraph(problem, indent=12)
    screen.say()
    return PASSED if healthy else NOT_YET


def _stubs(options: argparse.Namespace) -> int:
    from grading import stubs

    if options.check:
        lines = stubs.differences()
        print("\n".join(lines) if lines else "meintorch/ equals the stubs of solutions/.")
        return NOT_YET if lines else PASSED
    reasons = stubs.edited()
    if reasons:
        print("Nothing was written, because meintorch/ has been worked on:")
        print("\n".join(f"  {reason}" for reason in reasons))
        return NOT_YET
    changed = stubs.write()
    print("\n".join(f"written: meintorch/{name}" for name in changed) or "Nothing has changed.")
    return PASSED
