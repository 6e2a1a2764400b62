"""`--watch`: at every save of a file of the package, the chapter that is being worked on is checked again."""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grading.course import chapters as course
from grading.course.chapters import Chapter, GraderError, Task
from grading.runner import launch, stage, warm
from grading.tutor import compare, hint, screen
from grading.verdict.judge import Report, first_to_do, grade_on, temporary_folder

STEP = 5  # milliseconds without another change, after which a save counts as finished
LONGEST_SAVE = 200  # milliseconds
LOOK = 500  # milliseconds between two looks at what nobody tells of
POLLING = 200  # milliseconds between two looks, where the file system does not tell of changes
UNREADABLE = (OSError, SyntaxError, ValueError)  # what a file that has changed since it was checked may give
END = "\x04"  # Ctrl-D
KEYS = {"h": "hint", "d": "diff", "n": "next", "p": "previous", "q": "quit"}


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

    def close(self) -> None:
        self.stop()
        if self.warm is not None:
            self.warm.close()


def watch(chapter: Chapter, task: Task | None, package: Path, goal: bool, timeout: float, poll: bool) -> Report | None:
    """Check a chapter, or a task, at every save, until q is pressed or the input ends. Returns the last report."""
    happened = queue.SimpleQueue()  # takes an event at any moment, also one of a signal
    with _interruptions_as_events(happened):
        return _watch(chapter, task, package, goal, timeout, poll, happened)


def _watch(chapter, task, package, goal, timeout, poll, happened: queue.SimpleQueue) -> Report | None:
    over = threading.Event()
    watcher = threading.Thread(target=_saves, args=(package, poll, happened, over), daemon=True)
    threads = [watcher]
    keys = sys.stdin is not None and sys.stdin.isatty()
    if keys:
        threads.append(threading.Thread(target=_keys, args=(happened,), daemon=True))
    runs = Runs()
    launch.start_with(runs.start)
    for thread in threads:
        thread.start()
    happened.put(("saved", None))
    worker, report, skipped = None, None, None
    try:
        with _single_keys(keys):
            while True:
                try:
                    what, value = happened.get(timeout=LOOK / 1000)
                except queue.Empty:  # a signal that another thread was woken by is seen to here
                    continue
                if what == "interrupted":
                    raise KeyboardInterrupt
                if what == "saved":
                    if worker is not None:
                        runs.stop()
                        worker.join()
                    runs.stopped, runs.child = False, None
                    worker = threading.Thread(
                        target=_check, args=(chapter, task, package, goal, timeout, runs, happened), daemon=True
                    )
                    worker.start()
                elif what == "report":
                    report = value
                    _show(report, package, keys)
                elif what == "unreadable":
                    screen.say(f" {value}. At the next save it is tried again.")
                    sys.stdout.flush()
                elif what == "trouble":
                    raise value
                elif what == "key" and value == "q":
                    return report
                elif what == "key" and report is not None:
                    if value == "h":
                        _hint(report)
                    elif value == "d" and not report.not_gradable:
                        _diff(report, package)
                    elif value == "n" and not report.passed and skipped is not report:
                        skipped = report
                        screen.say(f" {report.asked} is not done yet. To go on all the same: n once more.")
                    elif value in "np" and (beside := _beside(chapter, task, 1 if value == "n" else -1)):
                        (chapter, task), report = beside, None
                        happened.put(("saved", None))
                    elif value in "np":
                        screen.say(f" There is none {'after' if value == 'n' else 'before'} this one.")
    finally:  # however it ends, neither a process nor a folder is left behind
        runs.stop()
        if worker is not None:
            worker.join()
        runs.close()
        over.set()
        watcher.join(2 * LOOK / 1000)  # or Python would end while it is in the middle of a library


def _check(chapter, task, package, goal, timeout, runs: Runs, happened: queue.SimpleQueue) -> None:
    def tell(what: str, value: object) -> None:
        if not runs.stopped:  # what a run says that was ended in the middle means nothing
            happened.put((what, value))

    try:
        with temporary_folder() as folder:
            tell("report", grade_on(folder, chapter, package, task, goal, timeout))  # and remove the folder afterwards
    except Stopped:
        return
    except OSError as error:  # a file that has just been listed is gone: some editors save like that
        tell("unreadable", error)
    except Exception as error:
        tell("trouble", error)


def _saves(package: Path, poll: bool, happened: queue.SimpleQueue, over: threading.Event) -> None:
    """Put an event into the queue whenever something was saved, until it is over."""
    changes = _polled(package, over) if poll else _told(package, over)
    try:
        for _ in changes:
            happened.put(("saved", None))
    except Exception as error:  # the system watches no more files
        happened.put(("trouble", GraderError(f"{package} can no longer be watched: {error}\nTry: --watch --poll")))


def _told(package: Path, over: threading.Event) -> Iterator[None]:
    """Yield whenever the system tells of a change."""
    import watchfiles

    options = {"watch_filter": _is_source, "step": STEP, "debounce": LONGEST_SAVE, "rust_timeout": LOOK}
    options["stop_event"] = over
    while not over.is_set():
        folder = _identity(package)
        for found in watchfiles.watch(package, yield_on_timeout=True, **options):
            if found:
                yield
            if _identity(package) != folder:  # another folder has taken its place, or will
                break
        while _identity(package) is None and not over.is_set():
            over.wait(LOOK / 1000)
        yield


def _polled(package: Path, over: threading.Event) -> Iterator[None]:
    """Look again and again, and yield whenever something has changed. (watchfiles' own polling sees whole seconds.)"""
    before = None
    while not over.is_set():
        now = {}
        for name, path in stage.package_files(package).items():
            with contextlib.suppress(OSError):  # it has just gone
                status = path.stat()
                now[name] = status.st_mtime_ns, status.st_size, status.st_ino
        if before is not None and now != before:
            yield
        before = now
        over.wait(POLLING / 1000)


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_source(change, path: str) -> bool:
    return path.endswith(".py") and not os.path.basename(path).startswith(".")


def _show(report: Report, package: Path, keys: bool) -> None:
    if keys:
        screen.clear()
    try:
        place = first_to_do(report, package)
    except UNREADABLE:
        place = None
    screen.show_report(report, place)
    if report.passed:
        following = _beside(report.chapter, None, 1)
        if following and len(report.tasks) == len(report.chapter.tasks):
            after = following[0]
            screen.say(f" Next: chapter {after.number} {after.title}, chapters/{after.slug}.md")
    if keys:
        words = "   ".join(f"{key} {name}" for key, name in KEYS.items())
        screen.say(f" {words}", time.strftime("%H:%M:%S").rjust(screen.WIDTH - len(words) - 1))
    sys.stdout.flush()


def _hint(report: Report) -> None:
    """The next hint for the first task that is not passed."""
    open_tasks = [one.task for one in report.tasks if one.status in ("failed", "error", "todo")]
    if open_tasks:
        hint.show(report.chapter, open_tasks[0])
    elif report.not_gradable:
        screen.say(" A hint comes once the file can be read.")
    elif not report.passed:
        screen.say(f" A hint comes with what this waits for: {report.next}")
    else:
        screen.say(" Everything here has passed.")


def _diff(report: Report, package: Path) -> None:
    try:
        compare.show(report, package)
    except UNREADABLE:
        screen.say(" Your file cannot be read at the moment.")


def _beside(chapter: Chapter, task: Task | None, step: int) -> tuple[Chapter, Task | None] | None:
    """The task or the chapter that comes `step` after this one, if there is one."""
    if task is not None:
        every = [(one, other) for one in course.chapters() for other in one.tasks]
    else:
        every = [(one, None) for one in course.chapters()]
    place = every.index((chapter, task)) + step
    return every[place] if 0 <= place < len(every) else None


@contextlib.contextmanager
def _interruptions_as_events(happened: queue.SimpleQueue) -> Iterator[None]:
    """While this lasts, Ctrl-C and whatever else ends the grader from outside is an event, as a save is.

    As exceptions they would come at any moment: while a thread starts, or, the second time, during the cleaning up.
    """
    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    numbers = [one for one in numbers if one is not None and signal.getsignal(one) is signal.default_int_handler]
    for number in numbers:
        signal.signal(number, lambda *_: happened.put(("interrupted", None)))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)


def _keys(happened: queue.SimpleQueue) -> None:
    read = _reader()
    while (key := read()) not in ("", END):
        if key.lower() in KEYS:
            happened.put(("key", key.lower()))
    happened.put(("key", "q"))


def _reader() -> Callable[[], str]:
    if os.name == "nt":
        import msvcrt

        return msvcrt.getwch

    def read() -> str:
        try:
            return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")
        except OSError:  # the terminal is gone
            return ""

    return read


class _single_keys:
    """While this lasts a key counts at once, without Enter."""

    def __init__(self, wanted: bool):
        self.wanted = wanted and os.name == "posix"

    def __enter__(self):
        if self.wanted:
            import termios
            import tty

            def again(*_):
                with contextlib.suppress(termios.error):  # the terminal is gone: whose closing tells to go on, too
                    tty.setcbreak(sys.stdin)

            self.before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            # A shell that has stopped the grader (Ctrl-Z) gives back its own kind of terminal (fg).
            signal.signal(signal.SIGCONT, again)

    def __exit__(self, *_):
        if self.wanted:
            import termios

            signal.signal(signal.SIGCONT, signal.SIG_DFL)
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self.before)
