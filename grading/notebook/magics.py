"""What a chapter's notebook adds to IPython: `%%task 02.2`, `%grader 02`, and an eye on the learner's files."""

import ast
import gc
import os
import re
import subprocess
import sys
import textwrap

from IPython import get_ipython

from grading.course.chapters import PACKAGE, ROOT, Part, Task, find_task
from grading.course.compose import put
from grading.course.files import read_source, write_source
from grading.course.place import Place
from grading.course.regions import TASK_COMMENT, locate
from grading.course.stubs import skeleton
from grading.notebook.reload import Follower
from grading.runner.gradable import problem_in
from grading.tutor import memory

_follower = Follower(PACKAGE)


class Stop(Exception):
    """Ends a cell with a message for the learner, and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def set_up() -> None:
    """Add the magics to the running IPython. A second time it changes nothing."""
    shell = get_ipython()
    shell.register_magic_function(task, "cell", "task")
    shell.register_magic_function(grader, "line", "grader")
    for event, hook in (("pre_run_cell", _before_cell), ("post_run_cell", _after_cell)):
        if hook not in shell.events.callbacks[event]:
            shell.events.register(event, hook)
    gc.freeze()  # it would look through the many objects of Jupyter itself again and again while Values are made


def _before_cell(info: object = None) -> None:
    for problem in _follower.follow():
        print(problem, file=sys.stderr)


def _after_cell(result: object = None) -> None:
    _follower.note()


def grader(line: str) -> None:
    """`%grader hint 02.2` runs `python grader.py hint 02.2`, and shows what it prints as it comes."""
    if "--watch" in line.split():
        raise Stop("--watch goes on and on, and no other cell could run: use it in a terminal.")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-X", "utf8", str(ROOT / "grader.py"), *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=environment,
    )
    try:
        for text in process.stdout or ():
            print(text, end="")
    except BaseException:  # the kernel was interrupted
        process.terminate()
        raise
    finally:
        process.wait()


def task(line: str, cell: str) -> None:
    """`%%task 02.2` puts the cell into the place of that task, keeps what was there, and checks the task."""
    name, part = _part(line.split())
    path = PACKAGE / part.file
    old, new = _composed(part, cell)
    block = locate(new, part.region)
    where = Place(f"meintorch/{part.file}", block.line if block else None)
    if old == new:
        print(f"{where}: this is there already.")
    else:
        try:
            kept = os.path.relpath(memory.keep(path), ROOT) if path.is_file() else None
            write_source(path, new)
        except OSError as error:
            raise Stop(f"Writing failed: {error}\nmeintorch/{part.file} is as it was.") from None
        print(f"Written to {where}." + (f" What was there is kept in {kept}" if kept else ""))
    grader(name)


def _part(words: list[str]) -> tuple[str, Part]:
    """The task and the place in the code that the words after %%task speak of."""
    if not words or not re.fullmatch(r"[0-9]+\.[0-9]+", words[0]):
        raise Stop("Which task is this? Write its number: %%task 02.2")
    try:
        _, wanted = find_task(words[0])
    except LookupError as error:
        raise Stop(error.args[0]) from None
    places = _places(wanted)
    if len(places) == 1 and len(words) == 1:
        return wanted.id, wanted.parts[0]
    if len(words) == 2 and words[1] in places:
        return wanted.id, places[words[1]]
    if len(places) == 1:
        raise Stop(f"Only the number of the task stands behind %%task: %%task {wanted.id}")
    choice = "\n".join(f"%%task {wanted.id} {place}" for place in places)
    raise Stop(f"Task {wanted.id} has {len(places)} places, each with a cell of its own:\n{choice}")


def _places(wanted: Task) -> dict[str, Part]:
    """A task's places by the name of their function: "exp", or "Adam.update" where "update" is not enough."""
    names = [[name for name in part.region.qualname.split(".") if name != "_backward"] for part in wanted.parts]
    lasts = [name[-1] for name in names]
    short = len(set(lasts)) == len(lasts)
    return {last if short else ".".join(name): part for last, name, part in zip(lasts, names, wanted.parts)}


def _composed(part: Part, cell: str) -> tuple[str, str]:
    """The file as it is, "" if there is none, and with the cell in the place of the task."""
    path, name = PACKAGE / part.file, f"meintorch/{part.file}"
    cell = textwrap.dedent(cell.replace("\r\n", "\n")).rstrip()
    another = re.search(r"^\s*%{1,2}(task|grader)\b.*", cell, re.MULTILINE)
    if another:
        raise Stop(f"A cell holds one answer alone: {another[0].strip()} needs another cell. Nothing was written.")
    if not any(line.strip() and not line.strip().startswith("#") for line in cell.split("\n")):
        raise Stop("There is no statement in this cell. Nothing was written.")
    function = part.region.qualname.split(".")[-1]
    if re.match(rf"\s*def +{function}\b", cell):
        raise Stop(f"Leave out the line with def: the cell holds what stands in {function}. Nothing was written.")
    _check(cell)
    cell = cell.strip("\n") + "\n"
    if not TASK_COMMENT.match(cell):  # the task's own comment stays
        cell = part.region.answer().removesuffix(part.region.body) + cell
    given = skeleton(part.file)
    if not path.is_file():
        return "", put(given, part.region, cell, given)
    problem = problem_in(path, name)
    if problem:
        raise Stop(f"{problem.place}: {problem.reason}\nMend that first. Nothing was written.")
    source = read_source(path)
    try:
        composed = put(source, part.region, cell, given)
        compile(composed, name, "exec", dont_inherit=True)  # finds more, such as a return where none may stand
    except (SyntaxError, ValueError) as error:
        raise Stop(f"{error}\nNothing was written.") from None
    return source, composed


def _check(cell: str) -> None:
    """Stop where Python cannot read the cell as the inside of a function. %%task itself counts as its first line."""
    try:
        ast.parse("def _():\n" + textwrap.indent(cell, " "))
    except SyntaxError as error:
        shown = cell.split("\n")
        number = min(max((error.lineno or 1) - 1, 1), len(shown))
        line = shown[number - 1].strip()
        raise Stop(
            f"Python cannot read line {number + 1} of this cell: {error.msg}\n\n    {line}\n\nNothing was written."
        ) from None
