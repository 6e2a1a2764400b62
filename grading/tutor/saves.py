"""Notices that a file of a package was saved."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from grading.runner import stage

STEP = 5  # milliseconds without another change, after which a save counts as finished
LONGEST_SAVE = 200  # milliseconds
LOOK = 500  # milliseconds between two looks at what nobody tells of
POLLING = 200  # milliseconds between two looks, where the file system does not tell of changes


def told(package: Path, over: threading.Event) -> Iterator[None]:
    """Yield whenever the system tells of a change, until it is over."""
    import watchfiles

    while not over.is_set():
        folder = _identity(package)
        for changes in watchfiles.watch(
            package,
            watch_filter=_is_source,
            step=STEP,
            debounce=LONGEST_SAVE,
            rust_timeout=LOOK,
            yield_on_timeout=True,
            stop_event=over,
        ):
            if changes:
                yield
            if _identity(package) != folder:  # another folder has taken its place, or will
                break
        while _identity(package) is None and not over.is_set():
            over.wait(LOOK / 1000)
        yield


def polled(package: Path, over: threading.Event) -> Iterator[None]:
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
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_source(change: object, path: str) -> bool:
    return path.endswith(".py") and not os.path.basename(path).startswith(".")
