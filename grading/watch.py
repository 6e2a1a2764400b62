"""`--watch`: at every save of a file of the package, the chapter that is being worked on is checked again."""

import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from grading import compare, course, hint, launch, screen, warm
from grading.course import Chapter, GraderError, Task
from grading.report import Report, first_to_do, grade

STEP = 10  # milliseconds without another change, after which a save counts as finished
LONGEST_SAVE = 200  # milliseconds
POLLING = 200  # milliseconds between two looks, where the file system does not tell of changes
KEYS = {"h": "hint", "d": "diff", "n": "next", "q": "quit"}


class Stopped(Exception):
    """The run was stopped because the files have changed in the meantime."""


class Runs:
    """Starts processes, and can end the one that is running."""

    def __init__(self):
        self.warm = warm.Warm() if warm.available() else None
        self.stopped, self.child, self.lock = False, None, threading.Lock()

    def start(self, config: dict):
        with self.lock:
            if self.stopped:
                raise Stopped
            try:
                self.child = self.warm.start(config) if self.warm else launch.start(config)
            except (OSError, ValueError):  # the warm process is gone
                self.warm = None
                self.child = launch.start(config)
            return self.child

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            if self.child is not None and self.child.returncode is None:
                launch.end(self.child)


def watch(chapter: Chapter, task: Task | None, package: Path, goal: bool, timeout: float, poll: bool) -> Report | None:
    """Check a chapter, or a task, at every save, until q is pressed or the input ends. Returns the last report."""
    happened: queue.Queue = queue.Queue()
    threads = [threading.Thread(target=_saves, args=(package, poll, happened), daemon=True)]
    keys = sys.stdin is not None and sys.stdin.isatty()
    if keys:
        threads.append(threading.Thread(target=_keys, args=(happened,), daemon=True))
    runs = Runs()
    launch.start_with(runs.start)
    for thread in threads:
        thread.start()
    happened.put(("saved", None))
    worker, report = None, None
    with _single_keys(keys):
        while True:
            what, value = happened.get()
            if what == "saved":
                if worker is not None:
                    runs.stop()
                    worker.join()
                runs.stopped, runs.child = False, None
                worker = threading.Thread(
                    target=_check, args=(chapter, task, package, goal, timeout, happened), daemon=True
                )
                worker.start()
            elif what == "report":
                report = value
                _show(report, package, keys)
            elif what == "trouble":
                raise value
            elif what == "key" and value == "q":
                runs.stop()
                return report
            elif what == "key" and report is not None:
                if value == "h":
                    _hint(report)
                elif value == "d" and not report.not_gradable:
                    compare.show(report, package)
                elif value == "n" and (following := _following(chapter, task)):
                    (chapter, task), report = following, None
                    happened.put(("saved", None))
                elif value == "n":
                    screen.say(" That was the last one.")


def _check(chapter, task, package, goal, timeout, happened: queue.Queue) -> None:
    try:
        happened.put(("report", grade(chapter, package, task, goal, timeout)))
    except Stopped:
        pass
    except (GraderError, OSError) as error:
        happened.put(("trouble", error))


def _saves(package: Path, poll: bool, happened: queue.Queue) -> None:
    from watchfiles import watch as changes

    options = {"force_polling": True, "poll_delay_ms": POLLING} if poll else {}
    try:
        for _ in changes(package, watch_filter=_is_source, step=STEP, debounce=LONGEST_SAVE, **options):
            happened.put(("saved", None))
    except Exception as error:  # the folder is gone, or the system watches no more files
        happened.put(("trouble", GraderError(f"{package} can no longer be watched: {error}\nTry: --watch --poll")))


def _is_source(change, path: str) -> bool:
    return path.endswith(".py") and not os.path.basename(path).startswith(".")


def _show(report: Report, package: Path, keys: bool) -> None:
    if keys:
        screen.clear()
    screen.show_report(report, first_to_do(report, package))
    if report.passed:
        following = _following(report.chapter, None)
        if following and len(report.tasks) == len(report.chapter.tasks):
            after = following[0]
            screen.say(f" Next: chapter {after.number} {after.title}, chapters/{after.slug}.md")
    if keys:
        screen.say(" " + "   ".join(f"{key} {name}" for key, name in KEYS.items()))
    sys.stdout.flush()


def _hint(report: Report) -> None:
    """The next hint for the first task that is not passed."""
    open_tasks = [one.task for one in report.tasks if one.status in ("failed", "error", "todo")]
    if open_tasks:
        hint.show(report.chapter, open_tasks[0])
    elif report.not_gradable:
        screen.say(" A hint comes once the file can be read.")
    else:
        screen.say(" Everything here has passed.")


def _following(chapter: Chapter, task: Task | None) -> tuple[Chapter, Task | None] | None:
    """The task after a task, or the chapter after a chapter."""
    if task is not None and task is not chapter.tasks[-1]:
        return chapter, chapter.tasks[chapter.tasks.index(task) + 1]
    chapters = course.chapters()
    after = chapters[chapters.index(chapter) + 1 :]
    if not after:
        return None
    return after[0], after[0].tasks[0] if task is not None else None


def _keys(happened: queue.Queue) -> None:
    read = _reader()
    while key := read():
        if key.lower() in KEYS:
            happened.put(("key", key.lower()))
    happened.put(("key", "q"))


def _reader() -> Callable[[], str]:
    if os.name == "nt":
        import msvcrt

        return msvcrt.getwch
    return lambda: os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")


class _single_keys:
    """While this lasts a key counts at once, without Enter."""

    def __init__(self, wanted: bool):
        self.wanted = wanted and os.name == "posix"

    def __enter__(self):
        if self.wanted:
            import termios
            import tty

            self.before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)

    def __exit__(self, *_):
        if self.wanted:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self.before)
