"""The commands of `python grader.py`."""

import argparse
import contextlib
import difflib
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

PASSED, NOT_YET, WRONG_USAGE, BROKEN = 0, 1, 2, 3

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


class UsageError(Exception):
    """What was asked for does not exist. The text says what does."""


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
        from grading.course.chapters import GraderError

        if not isinstance(error, GraderError):
            import traceback

            traceback.print_exc()
            print("\nThis is a mistake in the grader, not in your code.", file=sys.stderr)
        else:
            print(error, file=sys.stderr)
        return BROKEN


def _commands() -> dict[str, tuple[Callable, set[str], str]]:
    """What each command does, the options that go with it, and an example of what follows it, if something does."""
    return {
        "map": (_map, set(), ""),
        "all": (_check, CHECKING - {"watch", "poll"}, ""),
        "hint": (_hint, set(), "02.2"),
        "diff": (_diff, {"spoil", "package"}, "02"),
        "explain": (_explain, set(), "02"),
        "reset": (_reset, set(), "02.2"),
        "catch-up": (_catch_up, set(), "05"),
        "notebook": (_notebook, set(), "02"),
        "doctor": (_doctor, set(), ""),
        "stubs": (_stubs, {"check"}, ""),
        "new": (_new, set(), '05.7 "Softplus"'),
        "course-check": (_course_check, set(), "05"),
        "verify": (_verify, set(), ""),
    }


CHECKING = {"package", "goal", "solution", "json", "format", "junitxml", "watch", "poll"}
WATCHING = {"package", "goal", "solution", "watch", "poll"}
WITHOUT_LIBRARIES = ("hint", "reset", "doctor", "stubs", "new")
HOW_MANY = {"hint": (0, 2), "new": (2, 3), "course-check": (0, 1)}  # words that follow, where it is not one


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python grader.py", add_help=False, allow_abbrev=False)
    parser.error = _wrong
    parser.add_argument("words", nargs="*")
    parser.add_argument("--package", type=Path)
    parser.add_argument("--timeout", type=_seconds, default=15.0)
    parser.add_argument("--format", choices=["gradescope", "exercism"])
    parser.add_argument("--junitxml", type=Path)
    for flag in ("--goal", "--solution", "--json", "--spoil", "--check", "--watch", "--poll", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(arguments)
    if options.help or options.h or options.words[:1] == ["help"]:
        options.command = _help
        return options
    name, rest = (options.words or ["map"])[0], options.words[1:]
    commands = _commands()
    if name not in commands and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", name):
        close = difflib.get_close_matches(name, [*commands, "help"], n=1) if name != "check" else [""]
        guess = " ".join(["python grader.py", *close, *rest]).replace("  ", " ")
        _wrong(f"There is no command {name!r}." + (f" Did you mean: {guess}" if close else ""))
    options.command, allowed, example = commands.get(name, (_check, CHECKING, ""))
    least, most = HOW_MANY.get(name, (1, 1))
    if name == "new" and not least <= len(rest) <= most:
        _wrong(f"new needs a number and a title: python grader.py new {example}")
    if example and not least <= len(rest) <= most:
        _wrong(f"{name} needs one chapter{'' if name == 'notebook' else ' or task'}: python grader.py {name} {example}")
    if rest and not example:
        _wrong(f"{name} stands alone: python grader.py {name}")
    options.name = rest[0] if rest else name
    options.number = rest[1] if len(rest) == 2 else None
    if options.watch and options.command in (_map, _check):
        allowed = WATCHING if name != "all" else allowed
        options.command = _watch
    given = {key for key in CHECKING | {"spoil", "check"} if getattr(options, key)}
    if given - allowed:
        beside = "--watch" if options.watch and name != "all" else name if options.words else "the map"
        _wrong(f"--{min(given - allowed)} does not go with {beside}")
    for one, other in (("json", "format"), ("package", "solution")):
        if {one, other} <= given:
            _wrong(f"--{one} and --{other} exclude each other")
    if options.poll and not options.watch:
        _wrong("--poll goes with --watch")
    if options.format == "exercism" and name == "all":
        _wrong("Exercism's form holds one exercise: python grader.py 02 --format exercism")
    if options.package is not None and (problem := _problem_of_folder(options.package)):
        _wrong(f"--package {options.package}: {problem}")
    if options.junitxml is not None and (options.junitxml.is_dir() or not options.junitxml.absolute().parent.is_dir()):
        _wrong(f"--junitxml {options.junitxml}: give the name of a file in a folder that is there")
    if name not in WITHOUT_LIBRARIES:
        _prepare_runs()
    return options


def _wrong(message: str) -> None:
    raise UsageError(f"{message}\n\nFor the list of commands: python grader.py --help")


def _problem_of_folder(folder: Path) -> str:
    """Why there is no package to check in a folder, and where there is one; "" if it has any file of the course's."""
    from grading.course.chapters import chapters

    names = {name for chapter in chapters() for name in chapter.files}

    def is_package(place: Path) -> bool:
        return any(os.path.isfile(place / name) for name in names)

    if is_package(folder):
        return ""
    above = folder.parent if folder.is_file() else folder.absolute().parent
    near = [place for pattern in ("*", "*/*") for place in sorted(folder.glob(pattern)) if is_package(place)]
    near = sorted(near, key=lambda place: place.name != "meintorch") + [above] * is_package(above)
    if near:
        return f"the package is in {near[0]}: --package {near[0]}"
    if folder.is_file():
        return "that is a file, and a folder is wanted"
    if not folder.is_dir():
        return "there is no such folder"
    return "there is no Python file of the course in that folder, such as value.py"


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 100_000:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds between 0 and 100000")


def _prepare_runs() -> None:
    """Make sure that checks can be run, and that the third does not take as long to start as the first."""
    _need_libraries()
    from grading.runner import launch, warm

    launch.start_with(warm.start_after_the_first)


def _need_libraries() -> None:
    missing = [name for name in ("numpy", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} cannot be imported by {sys.executable}.\n"
            "Have you made an environment for the course, and is it not active? source .venv/bin/activate\n"
            "(Windows: .venv\\Scripts\\activate). Otherwise, in the course's folder: python -m pip install -e ."
        )


def _chapter(name: str):
    from grading.course.chapters import find_chapter

    try:
        return find_chapter(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def _task(name: str):
    from grading.course.chapters import find_task

    try:
        return find_task(name)
    except LookupError as error:
        raise UsageError(error.args[0]) from None


def _help(options: argparse.Namespace) -> int:
    print(USAGE, end="")
    return PASSED


def _check(options: argparse.Namespace) -> int:
    """`python grader.py 02`, `02.2` and `all`."""
    from grading.course import chapters as course
    from grading.tutor import screen
    from grading.verdict import formats
    from grading.verdict.judge import SCHEMA, first_to_do, grade

    package = options.package or (course.REFERENCE if options.solution else course.PACKAGE)
    if options.name == "all":
        wanted = [(chapter, None) for chapter in course.chapters()]
    else:
        wanted = [_task(options.name) if "." in options.name else (_chapter(options.name), None)]
    reports = []
    for chapter, task in wanted:
        report = grade(chapter, package, task, options.goal, options.timeout)
        reports.append(report)
        if not options.json and not options.format:
            screen.show_report(report, first_to_do(report, package))
    passed = all(report.passed for report in reports)
    if options.json:
        document = reports[0].as_json()
        if options.name == "all":
            document = {"schema": SCHEMA, "passed": passed, "chapters": [report.as_json() for report in reports]}
        print(json.dumps(document, indent=2))
    if options.format == "gradescope":
        print(json.dumps(formats.gradescope(reports), indent=2))
    elif options.format == "exercism":
        print(json.dumps(formats.exercism(reports[0]), indent=2))
    if options.junitxml:
        options.junitxml.write_text(formats.junit(reports), encoding="utf-8")  # a pipe or /dev/stdout will do too
    return PASSED if passed else NOT_YET


def _watch(options: argparse.Namespace) -> int:
    from grading.course import chapters as course
    from grading.runner import warm
    from grading.tutor import progress, watch

    package = options.package or (course.REFERENCE if options.solution else course.PACKAGE)
    if not options.words:
        print(" Looking where you are ...", flush=True)
        chapter, task = progress.here(progress.rows()) or course.chapters()[-1], None
        warm.let_go()
    else:
        chapter, task = _task(options.name) if "." in options.name else (_chapter(options.name), None)
    report = watch.watch(chapter, task, package, options.goal, options.timeout, options.poll)
    return PASSED if report and report.passed else NOT_YET


def _map(options: argparse.Namespace) -> int:
    from grading.tutor import progress, screen

    rows = progress.rows()
    here = progress.here(rows)
    screen.show_map(rows, here)
    return PASSED if here is None else NOT_YET


def _hint(options: argparse.Namespace) -> int:
    from grading.tutor import hint

    if options.name == "hint":
        options.name = _first_open_task()
    if "." not in options.name:
        chapter = _chapter(options.name)
        _wrong(f"hint needs a task, one of {', '.join(task.id for task in chapter.tasks)}")
    try:
        hint.show(*_task(options.name), options.number)
    except LookupError as error:
        _wrong(error.args[0])
    return PASSED


def _first_open_task() -> str:
    """The task that comes next in the chapter that the learner is at."""
    from grading.tutor import progress
    from grading.verdict.judge import grade

    _prepare_runs()
    chapter = progress.here(progress.rows())
    if chapter is None:
        _wrong("Everything is done. A hint for a task all the same: python grader.py hint 02.2")
    report = grade(chapter)
    left = [one.task.id for one in report.tasks if one.status in ("failed", "error", "todo")]
    return left[0] if left else chapter.tasks[0].id


def _diff(options: argparse.Namespace) -> int:
    from grading.course import chapters as course
    from grading.tutor import compare, screen
    from grading.verdict.judge import grade

    chapter, task = _task(options.name) if "." in options.name else (_chapter(options.name), None)
    package = options.package or course.PACKAGE
    report = grade(chapter, package, task, timeout=options.timeout)
    if report.not_gradable:
        screen.show_report(report, None)
        return NOT_YET
    compare.show(report, package, options.spoil)
    return PASSED if report.passed else NOT_YET


def _explain(options: argparse.Namespace) -> int:
    from grading.tutor import explain, screen
    from grading.verdict.judge import grade

    chapter, task = _task(options.name) if "." in options.name else (_chapter(options.name), None)
    report = grade(chapter, task=task, timeout=options.timeout)
    if report.passed:
        explain.show(report)
        return PASSED
    if report.not_gradable:
        screen.show_report(report, None)
        return NOT_YET
    left = ", ".join(one.task.id for one in report.tasks if one.status != "passed")
    screen.say()
    screen.paragraph(f"The explanation comes after your own answers have passed. Not yet: {left}", indent=1)
    screen.say(f" Next: {report.next}")
    screen.say()
    return NOT_YET


def _catch_up(options: argparse.Namespace) -> int:
    from grading.course import chapters as course
    from grading.tutor import catch_up, reset, screen

    chapter = _chapter(options.name)
    if chapter is course.chapters()[0]:
        _wrong(f"Nothing comes before chapter {chapter.number}")
    try:
        filled, kept = catch_up.catch_up(chapter)
    except reset.CannotReset as error:
        screen.say()
        screen.paragraph(str(error), indent=1)
        screen.say()
        return NOT_YET
    screen.say()
    if not filled:
        screen.say(f" Everything before chapter {chapter.number} passes already: nothing to do.")
    for name, tasks in filled.items():
        screen.paragraph(f"meintorch/{name}: from the reference: {', '.join(tasks)}", indent=1)
        if kept.get(name):
            screen.say(f" What was there is kept in {kept[name]}")
    screen.say()
    screen.say(f" Next: read chapters/{chapter.slug}.md, then: python grader.py {chapter.number}")
    screen.say()
    return PASSED


def _reset(options: argparse.Namespace) -> int:
    from grading.course import chapters as course
    from grading.tutor import memory, reset, screen

    if options.name == "all":
        tasks, put_back = [task for chapter in course.chapters() for task in chapter.tasks], reset.reset_all
    elif "." in options.name:
        _, task = _task(options.name)
        tasks, put_back = [task], lambda: reset.reset_task(task)
    else:
        chapter = _chapter(options.name)
        tasks, put_back = chapter.tasks, lambda: reset.reset_chapter(chapter)
    try:
        kept = put_back()
    except reset.CannotReset as error:
        screen.say()
        screen.paragraph(str(error), indent=1)
        screen.say()
        return NOT_YET
    shown = memory.recall("hints")
    memory.remember("hints", {key: value for key, value in shown.items() if key not in {one.id for one in tasks}})
    screen.say()
    if not kept:
        screen.say(f" {options.name}: stubs already, nothing to do.")
    subject = "the file" if options.name == "all" else (tasks[0].revisits if len(tasks) == 1 else None) or options.name
    for name, copy in kept.items():
        screen.say(f" meintorch/{name}: {subject} is a stub again.")
        screen.say(f" What was there is kept in {copy}" if copy else " There was no such file before.")
    if kept and subject not in (options.name, "the file"):
        screen.say(f" {options.name} goes back to {subject}: write that first, as its own chapter has it.")
    if any(kept.values()):
        screen.say(" To have it back, copy the kept file over the one in meintorch/.")
    screen.say()
    return PASSED


def _notebook(options: argparse.Namespace) -> int:
    # Where this is installed jsonschema imports it, for nbformat, and it makes a grammar of web addresses first. That
    # takes a second, and no notebook of ours is checked for addresses.
    sys.modules.setdefault("rfc3987_syntax", None)
    from grading.course import chapters as course
    from grading.tutor import screen

    chapters = course.chapters() if options.name == "all" else [_chapter(options.name)]
    try:
        from grading.notebook import notebook
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is missing. In the course's folder: python -m pip install -e .") from None
    screen.say()
    for chapter in chapters:
        place, kept = notebook.write(chapter)
        screen.say(f" written: {place}")
        if kept:
            screen.say(f" The notebook that was there is kept in {kept}")
    screen.say()
    screen.say(f" Open it in your editor, or: jupyter lab --notebook-dir=. {place}")
    screen.say()
    return PASSED


def _doctor(options: argparse.Namespace) -> int:
    from grading.tutor import doctor, screen

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
    from grading.authoring import write_stubs

    return write_stubs.main(options.check)


def _new(options: argparse.Namespace) -> int:
    from grading.authoring import new

    try:
        return new.main(*options.words[1:])
    except new.Refused as error:
        _wrong(f"{error}\nNothing was written.")


def _course_check(options: argparse.Namespace) -> int:
    from grading.authoring import check

    try:
        return check.main(None if options.name == "course-check" else options.name)
    except LookupError as error:
        _wrong(error.args[0])


def _verify(options: argparse.Namespace) -> int:
    from grading.authoring.verify import verify

    return PASSED if verify() else NOT_YET
