"""`python grader.py hint`: one rung of a task's ladder at a time."""

from grading.course import texts
from grading.course.chapters import Chapter, Task
from grading.course.files import read_source
from grading.tutor import memory, screen


def show(chapter: Chapter, task: Task, number: str | None = None) -> None:
    """Print the hint after the one that was shown last, or the one of that number.

    Raises LookupError if there is no such hint.
    """
    rungs = texts.ladder(read_source(chapter.text), task.id)
    if not rungs:
        raise LookupError(f"chapters/{chapter.slug}.md has no hints for {task.id}: each is a <details> in its section")
    shown = memory.recall("hints")
    if number is None:
        wanted = min(int(shown.get(task.id, 0)) + 1, len(rungs))
    elif number.isdecimal() and 1 <= int(number) <= len(rungs):
        wanted = int(number)
    else:
        raise LookupError(f"There is no hint {number}: {task.id} has 1 to {len(rungs)}, the last is the solution")
    memory.remember("hints", {**shown, task.id: wanted})
    rung = rungs[wanted - 1]
    screen.show_hint(task, rung.title, rung.text, wanted, len(rungs))


def forget(tasks: list[Task]) -> None:
    """Begin these tasks' ladders anew."""
    numbers = {task.id for task in tasks}
    shown = memory.recall("hints")
    memory.remember("hints", {number: rung for number, rung in shown.items() if number not in numbers})
