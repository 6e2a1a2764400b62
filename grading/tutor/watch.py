"""`--watch`: at every save of a file of the package, the chapter that is being worked on is checked again."""

import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from grading.course.chapters import Chapter, Task, chapters
from grading.course.errors import GraderError
from grading.runner import launch, warm
from grading.runner.launch import Process
from grading.runner.stage import temporary_folder
from grading.tutor import compare, hint, keys, saves, screen
from grading.verdict.judge import grade_on
from grading.verdict.results import Report

KEYS = {"h": "hint", "d": "diff", "n": "next", "p": "previous", "q": "quit"}
Happened = tuple[str, Any]  # saved, report, unreadable, trouble, key or interrupted, and what comes with it


class Stopped(Exception):
    """The run was stopped because the files have changed in the meantime."""


class Runs:
    """Starts processes, and can end the one that is running."""

    def __init__(self) -> None:
        self.warm = warm.Warm() if warm.available() else None
        self.child: Process | None = None
        self.stopped, self.lock = False, threading.Lock()

    def start(self, config: dict[str, Any]) -> Process:
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

    def begin(self) -> None:
        """Runs may be started again."""
        self.stopped, self.child = False, None

    def close(self) -> None:
        self.stop()
        if self.warm is not None:
            self.warm.close()


def watch(chapter: Chapter, task: Task | None, package: Path, goal: bool, timeout: float, poll: bool) -> Report | None:
    """Check a chapter, or a task, at every save, until q is pressed or the input ends. Returns the last report."""
    happened: queue.SimpleQueue[Happened] = queue.SimpleQueue()  # takes an event at any moment, also one of a signal
    with keys.interruptions_told(lambda: happened.put(("interrupted", None))):
        return _Watch(chapter, task, package, goal, timeout, happened).until_it_ends(poll)


class _Watch:
    """What is watched, the check that is running, and the last report."""

    def __init__(
        self,
        chapter: Chapter,
        task: Task | None,
        package: Path,
        goal: bool,
        timeout: float,
        happened: "queue.SimpleQueue[Happened]",
    ):
        self.chapter, self.task, self.package = chapter, task, package
        self.goal, self.timeout, self.happened = goal, timeout, happened
        self.by_keys = sys.stdin is not None and sys.stdin.isatty()
        self.runs, self.over = Runs(), threading.Event()
        self.worker: threading.Thread | None = None
        self.report: Report | None = None
        self.skipped: Report | None = None  # n was pressed once though it has not passed

    def until_it_ends(self, poll: bool) -> Report | None:
        watcher = threading.Thread(target=self._tell_of_saves, args=(poll,), daemon=True)
        watcher.start()
        if self.by_keys:
            threading.Thread(target=self._tell_of_keys, daemon=True).start()
        self.happened.put(("saved", None))
        try:
            with keys.at_once(self.by_keys):
                return self._follow()
        finally:  # however it ends, neither a process nor a folder is left behind
            self.runs.stop()
            if self.worker is not None:
                self.worker.join()
            self.runs.close()
            self.over.set()
            watcher.join(2 * saves.LOOK / 1000)  # or Python would end while it is in the middle of a library

    def _follow(self) -> Report | None:
        while True:
            try:
                what, value = self.happened.get(timeout=saves.LOOK / 1000)
            except queue.Empty:  # a signal that another thread was woken by is seen to here
                continue
            if what == "interrupted":
                raise KeyboardInterrupt
            if what == "trouble":
                raise value
            if what == "saved":
                self._check_again()
            elif what == "report":
                self.report = value
                _show(value, self.by_keys)
            elif what == "unreadable":
                screen.say(f" {value}. At the next save it is tried again.")
                sys.stdout.flush()
            elif value == "q":
                return self.report
            elif self.report is not None:
                self._heed(value, self.report)

    def _heed(self, key: str, report: Report) -> None:
        """Do what a key stands for."""
        if key == "h":
            show_hint(report)
        elif key == "d" and not report.not_gradable:
            compare.show(report)
        elif key == "n" and not report.passed and self.skipped is not report:
            self.skipped = report
            screen.say(f" {report.asked} is not done yet. To go on all the same: n once more.")
        elif key in "np":
            beside = _beside(self.chapter, self.task, 1 if key == "n" else -1)
            if beside is None:
                screen.say(f" There is none {'after' if key == 'n' else 'before'} this one.")
                return
            (self.chapter, self.task), self.report = beside, None
            self.happened.put(("saved", None))

    def _check_again(self) -> None:
        if self.worker is not None:
            self.runs.stop()
            self.worker.join()
        self.runs.begin()
        self.worker = threading.Thread(target=self._check, args=(self.chapter, self.task), daemon=True)
        self.worker.start()

    def _check(self, chapter: Chapter, task: Task | None) -> None:
        def tell(what: str, value: object) -> None:
            if not self.runs.stopped:  # what a run says that was ended in the middle means nothing
                self.happened.put((what, value))

        try:
            with temporary_folder() as folder:  # removed after the report is told
                report = grade_on(folder, chapter, self.package, task, self.goal, self.timeout, self.runs.start)
                tell("report", report)
        except Stopped:
            return
        except OSError as error:  # a file that has just been listed is gone: some editors save like that
            tell("unreadable", error)
        except Exception as error:
            tell("trouble", error)

    def _tell_of_saves(self, poll: bool) -> None:
        changes = saves.polled(self.package, self.over) if poll else saves.told(self.package, self.over)
        try:
            for _ in changes:
                self.happened.put(("saved", None))
        except Exception as error:  # the system watches no more files
            message = f"{self.package} can no longer be watched: {error}\nTry: --watch --poll"
            self.happened.put(("trouble", GraderError(message)))

    def _tell_of_keys(self) -> None:
        for key in keys.pressed("".join(KEYS)):
            self.happened.put(("key", key))
        self.happened.put(("key", "q"))


def _show(report: Report, by_keys: bool) -> None:
    if by_keys:
        screen.clear()
    screen.show_report(report)
    if report.passed:
        following = _beside(report.chapter, None, 1)
        if following and len(report.tasks) == len(report.chapter.tasks):
            after = following[0]
            screen.say(f" Next: chapter {after.number} {after.title}, chapters/{after.slug}.md")
    if by_keys:
        words = "   ".join(f"{key} {name}" for key, name in KEYS.items())
        screen.say(f" {words}", time.strftime("%H:%M:%S").rjust(screen.WIDTH - len(words) - 1))
    sys.stdout.flush()


def show_hint(report: Report) -> None:
    """Print the next hint for the first task that is not passed."""
    if report.open_tasks:
        hint.show(report.chapter, report.open_tasks[0])
    elif report.not_gradable:
        screen.say(" A hint comes once the file can be read.")
    elif not report.passed:
        screen.say(f" A hint comes with what this waits for: {report.next}")
    else:
        screen.say(" Everything here has passed.")


def _beside(chapter: Chapter, task: Task | None, step: int) -> tuple[Chapter, Task | None] | None:
    """The task or the chapter that comes `step` after this one, if there is one."""
    every: list[tuple[Chapter, Task | None]] = [(other, None) for other in chapters()]
    if task is not None:
        every = [(other, its_task) for other in chapters() for its_task in other.tasks]
    place = every.index((chapter, task)) + step
    return every[place] if 0 <= place < len(every) else None
