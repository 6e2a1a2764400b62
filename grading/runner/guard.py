"""What keeps the tested code from doing harm and from touching what tests it. Runs in the child process.

None of this stops code that was written to deceive this very grader: it shares a process with its tests, and whatever
watches it there can be found and changed. It stops accidents and the tricks that are easy to come by.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from operator import is_
from types import FunctionType

TYPE_CHECKING = False  # mypy takes it for True. Nothing is imported for its sake: every run waits for this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, ModuleType
    from typing import Any, NoReturn

MEMORY_LIMIT = 4 * 2**30  # bytes of address space
FILE_LIMIT = 16 * 2**20  # bytes of one file

# Audit events, and why what they announce is refused: https://docs.python.org/3/library/audit_events.html
PROCESS = "code under test may not start another process"
SIGNAL = "code under test may not send signals"
NETWORK = "code under test may not use the network"
LIMIT = "code under test may not change its limits"
REFUSED = {
    "subprocess.Popen": PROCESS,
    "os.system": PROCESS,
    "os.fork": PROCESS,
    "os.forkpty": PROCESS,
    "os.exec": PROCESS,
    "os.posix_spawn": PROCESS,
    "os.spawn": PROCESS,
    "os.startfile": PROCESS,
    "pty.spawn": PROCESS,
    "os.kill": SIGNAL,
    "os.killpg": SIGNAL,
    "signal.pthread_kill": SIGNAL,
    "socket.bind": NETWORK,
    "socket.connect": NETWORK,
    "socket.getaddrinfo": NETWORK,
    "socket.gethostbyname": NETWORK,
    "socket.sendto": NETWORK,
    "resource.prlimit": LIMIT,
    "resource.setrlimit": LIMIT,
}
PATHS_CHANGED: dict[
    str, list[tuple[int, int | None]]
] = {  # events, where a path stands among their arguments, and where the descriptor that it starts from
    "os.chmod": [(0, 2)],
    "os.chown": [(0, 3)],
    "os.link": [(0, 2), (1, 3)],
    "os.mkdir": [(0, 2)],
    "os.remove": [(0, 1)],
    "os.rename": [(0, 2), (1, 3)],
    "os.rmdir": [(0, 1)],
    "os.symlink": [(0, None), (1, 2)],
    "os.truncate": [(0, None)],
    "os.utime": [(0, 3)],
    "shutil.rmtree": [(0, 1)],  # what it removes it names by descriptors
    "sqlite3.connect": [(0, None)],
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def limit_resources() -> None:
    """Let this process have a few gigabytes and small files, where the system can be told so."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, limit in (("RLIMIT_AS", MEMORY_LIMIT), ("RLIMIT_FSIZE", FILE_LIMIT), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, name), (limit, limit))
        except (AttributeError, ValueError, OSError):  # not on this system, or a lower limit is there already
            continue


def refuse_effects(writable: str, hidden: Iterable[str]) -> None:
    """From now on, refuse to start processes, to open connections, to write outside `writable`, to read in `hidden`.

    writable  a folder
    hidden    folders
    """
    refuse_writing, place_of = writing_refused_outside(writable), places_in(writable)
    secret = tuple(os.path.join(os.path.realpath(folder), "") for folder in hidden)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING:
                refuse_writing(path)
            elif isinstance(path, str | bytes) and os.path.abspath(os.fsdecode(path)).startswith(secret):
                raise PermissionError(f"code under test may not read the course's own files: {os.fsdecode(path)}")
        elif event in PATHS_CHANGED:
            for at, start in PATHS_CHANGED[event]:
                descriptor = arguments[start] if start and start < len(arguments) else None
                path = arguments[at]
                refuse_writing(path if descriptor in (None, -1) else place_of(path, descriptor))
        elif event in REFUSED:
            raise PermissionError(REFUSED[event])
        elif event.startswith("ctypes."):
            raise PermissionError("code under test may not use ctypes")

    replace_what_no_event_tells_of(hook, place_of)
    sys.addaudithook(hook)


def writing_refused_outside(writable: str) -> Callable[[Any], None]:
    """A function that raises PermissionError for every path that does not lead into a folder."""
    inside = os.path.join(os.path.realpath(writable), "")

    def refuse_writing(path: Any) -> None:
        if isinstance(path, int):
            return
        place = os.path.realpath(os.fsdecode(path))
        if not os.path.join(place, "").startswith(inside) and place != os.devnull:
            words = "code under test may not write outside of its own folder (a name without a folder is inside)"
            raise PermissionError(f"{words}: {os.fsdecode(path)}")

    return refuse_writing


def places_in(writable: str) -> Callable[[Any, int], str]:
    """A function that says where a name leads in a folder that is given by its descriptor, one inside of `writable`."""

    def place_of(path: Any, descriptor: int) -> str:
        for folder, _, _ in os.walk(writable):
            if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
                return os.path.join(folder, os.fsdecode(path))
        raise PermissionError("code under test may not use the descriptors of folders outside of its own")

    return place_of


def replace_what_no_event_tells_of(
    hook: Callable[[str, tuple[Any, ...]], None], place_of: Callable[[Any, int], str]
) -> None:
    """`os.open` in a folder that is given by its descriptor, and how multiprocessing starts processes."""
    real_open = os.open

    def open_at(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            hook("open", (place_of(path, dir_fd), None, flags))
        return real_open(path, flags, mode, dir_fd=dir_fd)

    def no_process(*_: Any) -> NoReturn:
        raise PermissionError(PROCESS)

    modules: list[Any] = [os, sys.modules.get("posix")]  # Windows has no posix
    for module in modules:
        if module is not None:
            module.open = open_at
    with contextlib.suppress(ImportError):  # Windows has none
        import _posixsubprocess

        _posixsubprocess.fork_exec = no_process


class Seal:
    """Notices when the tools that the checks are made of are replaced.

    Every name of a sealed module, the methods of its classes and the code of its functions have to stay what they are.
    Names may be added.
    """

    def __init__(self, names: Iterable[str]):
        self.modules: list[tuple[str, ModuleType]] = []
        self.spaces: list[tuple[str, Any, list[Any]]] = []
        self.functions: list[tuple[FunctionType, CodeType]] = []
        for name in names:
            self.close(name)

    def close(self, name: str) -> None:
        """Import a module and seal it."""
        module = importlib.import_module(name)
        classes = {
            f"{name}.{key}": value
            for key, value in vars(module).items()
            if isinstance(value, type)
            and value.__module__ == name
            and name.partition(".")[0] not in ("builtins", "numpy")
        }
        self.modules.append((name, module))
        for label, holder in {name: module, **classes}.items():
            values = list(vars(holder).values())
            self.spaces.append((label, vars(holder), values))
            self.functions += [(value, value.__code__) for value in values if isinstance(value, FunctionType)]

    def broken(self) -> str | None:
        """The name of something that is not what it was, or None."""
        for name, module in self.modules:
            if sys.modules.get(name) is not module:
                return name
        for label, space, values in self.spaces:
            if len(space) < len(values) or not all(map(is_, space.values(), values)):
                changed = [key for (key, value), old in zip(space.items(), values) if value is not old]
                return f"{label}.{changed[0]}" if changed else label
        for function, code in self.functions:
            if function.__code__ is not code:
                return f"{function.__module__}.{function.__qualname__}"
        return None
