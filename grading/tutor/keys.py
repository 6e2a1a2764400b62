"""Single keys from a terminal, and signals that become events like them."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator

END = "\x04"  # Ctrl-D


def pressed(known: str) -> Iterator[str]:
    """Yield every key that is among the known ones, as a small letter, until the input ends."""
    read = _reader()
    while (key := read()) not in ("", END):
        if key.lower() in known:
            yield key.lower()


def _reader() -> Callable[[], str]:
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.getwch

    def read() -> str:
        try:
            return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")
        except OSError:  # the terminal is gone
            return ""

    return read


@contextlib.contextmanager
def at_once(wanted: bool) -> Iterator[None]:
    """While this lasts a key counts at once, without Enter, if that is wanted and can be had."""
    if not wanted or sys.platform == "win32":  # there, getwch does it
        yield
        return
    import termios
    import tty

    def again(*_: object) -> None:
        with contextlib.suppress(termios.error):  # the terminal is gone: whose closing tells to go on, too
            tty.setcbreak(sys.stdin)

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    # A shell that has stopped the grader (Ctrl-Z) gives back its own kind of terminal (fg).
    signal.signal(signal.SIGCONT, again)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


@contextlib.contextmanager
def interruptions_told(tell: Callable[[], object]) -> Iterator[None]:
    """While this lasts, Ctrl-C and whatever else ends the grader from outside only calls `tell`.

    As exceptions they would come at any moment: while a thread starts, or, the second time, during the cleaning up.
    """
    named = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    numbers = [
        number for number in named if number is not None and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in numbers:
        signal.signal(number, lambda *_: tell())
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
