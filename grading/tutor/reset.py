"""`python grader.py reset`: a stub again, with a copy kept of what was there."""

import os
from pathlib import Path

from grading.course.chapters import PACKAGE, ROOT, Chapter, Task, chapters, find
from grading.course.compose import put
from grading.course.files import read_source, write_source
from grading.course.stubs import skeleton
from grading.runner.gradable import problem_in
from grading.tutor import hint, memory, screen

STUB_AGAIN = "is a stub again"


class CannotReset(Exception):
    """Nothing was changed. The text says why, and what to do."""


def reset_and_show(name: str) -> bool:
    """Put back what "02.2", "02" or "all" speaks of, and print what was done. Returns whether that went well.

    Raises LookupError if there is nothing of that name.
    """
    chapter, task = (None, None) if name == "all" else find(name)
    try:
        if task:
            tasks, kept = [task], reset_task(task)
        elif chapter:
            tasks, kept = list(chapter.tasks), reset_chapter(chapter)
        else:
            tasks, kept = [task for chapter in chapters() for task in chapter.tasks], reset_all()
    except CannotReset as error:
        screen.say()
        screen.paragraph(str(error), indent=1)
        screen.say()
        return False
    hint.forget(tasks)
    _show(name, "the file" if name == "all" else (task and task.revisits) or name, kept)
    return True


def _show(name: str, subject: str, kept: dict[str, str | None]) -> None:
    screen.say()
    if not kept:
        screen.say(f" {name}: stubs already, nothing to do.")
    for file, copy in kept.items():
        screen.say(f" meintorch/{file}: {subject} is a stub again.")
        screen.say(f" What was there is kept in {copy}" if copy else " There was no such file before.")
    if kept and subject not in (name, "the file"):
        screen.say(f" {name} goes back to {subject}: write that first, as its own chapter has it.")
    if any(kept.values()):
        screen.say(" To have it back, copy the kept file over the one in meintorch/.")
    screen.say()


def reset_task(task: Task) -> dict[str, str | None]:
    """Put the stub of a task back. Returns the files that changed and where the old ones are kept."""
    new: dict[str, str] = {}
    for part in task.parts:
        path = PACKAGE / part.file
        if not path.is_file():
            new[part.file] = skeleton(part.file)
            continue
        problem = None if _parses(path) else problem_in(path, f"meintorch/{part.file}")
        if problem:
            raise CannotReset(
                f"{problem.place}: {problem.reason}\n"
                f"While Python cannot read the file, task {task.id} cannot be found in it. "
                f"Mend that line first, or have the whole file back as a stub: {_whole(task)}"
            )
        source = new.get(part.file, read_source(path))
        try:
            new[part.file] = put(source, part.region, part.region.stub(), skeleton(part.file))
        except ValueError as error:
            raise CannotReset(f"{error}\nTo have the whole file back as a stub: {_whole(task)}") from None
    return exchange(new, STUB_AGAIN)


def _whole(task: Task) -> str:
    return f"python grader.py reset {task.id[:2]}"


def reset_chapter(chapter: Chapter) -> dict[str, str | None]:
    """Put the whole files of a chapter back. Returns the files that changed and where the old ones are kept."""
    return exchange({name: skeleton(name) for name in chapter.files}, STUB_AGAIN)


def reset_all() -> dict[str, str | None]:
    """Put the files of all chapters back, as they came. Returns what `reset_chapter` does."""
    files = [name for chapter in chapters() for name in chapter.files]
    return exchange({name: skeleton(name) for name in files}, STUB_AGAIN)


def _parses(path: Path) -> bool:
    try:
        compile(read_source(path), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def exchange(new: dict[str, str], done_words: str) -> dict[str, str | None]:
    """Write files, all old ones being kept first. Returns those that changed and where their old text is.

    done_words  what is said of a file that was written where another could not be
    """
    changed = [name for name, source in new.items() if not _unchanged(PACKAGE / name, source)]
    kept: dict[str, str | None] = {}
    done: list[str] = []
    try:
        for name in changed:
            path = PACKAGE / name
            kept[name] = os.path.relpath(memory.keep(path), ROOT) if path.is_file() else None
        for name in changed:
            (PACKAGE / name).parent.mkdir(parents=True, exist_ok=True)
            write_source(PACKAGE / name, new[name])
            done.append(name)
    except OSError as error:
        lines = [f"meintorch/{name} {done_words}; what was there is kept in {kept[name]}" for name in done]
        lines += [f"meintorch/{name} was left as it is" for name in changed if name not in done]
        raise CannotReset("\n".join([f"Writing failed: {error}", *lines])) from None
    return kept


def _unchanged(path: Path, source: str) -> bool:
    try:
        return read_source(path) == source
    except (OSError, UnicodeDecodeError):
        return False
