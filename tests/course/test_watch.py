"""`--watch`, as a learner has it: beside the editor, saved again and again."""

import os
import queue
import re
import subprocess
import sys
import threading
import time

import pytest

from grading import course
from grading.files import read_source
from tests.course.conftest import answer

PATIENCE = 60.0  # seconds, for a busy machine
RESULT = re.compile(r"(\d+) of \d+ checks")


class Watching:
    """A running `grader.py ... --watch` whose lines can be waited for."""

    def __init__(self, command: list[str], folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE):
        self.process = subprocess.Popen(command, cwd=folder, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT)
        self.text, self.lines = "", queue.Queue()

    def read(self, descriptor: int) -> None:
        def go():
            while True:
                try:
                    data = os.read(descriptor, 65536)
                except OSError:  # how a pseudo-terminal says that its other end is closed
                    data = b""
                self.lines.put(data.decode("utf-8", "replace"))
                if not data:
                    return

        threading.Thread(target=go, daemon=True).start()

    def until(self, pattern: str) -> str:
        """Wait for a pattern, return what came up to it, and go on from behind it."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.text, re.DOTALL)):
            data = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            assert data, f"ended, and waiting for {pattern}: {self.text}"
            self.text += data
        seen, self.text = self.text[: match.end()], self.text[match.end() :]
        return seen

    def score(self) -> int:
        return int(RESULT.search(self.until(RESULT.pattern)).group(1))


@pytest.fixture
def watching(checkout):
    """A function that starts `python grader.py ...` in a copy of the course, without a terminal."""
    running = []

    def start(*words: str, program: tuple[str, ...] = ("grader.py",)) -> Watching:
        one = Watching([sys.executable, *program, *words], checkout)
        one.read(one.process.stdout.fileno())
        running.append(one)
        return one

    yield start
    for one in running:
        one.process.kill()
        one.process.wait()
        one.process.stdout.close()


WITHOUT_FORK = ("-c", "import sys; from grading import cli, warm; warm.available = lambda: False; sys.exit(cli.main())")


@pytest.mark.parametrize("way", [(), ("--poll",), WITHOUT_FORK], ids=["as it is", "polling", "without fork"])
def test_every_save_is_checked(watching, checkout, way):
    one = watching("02", "--watch", program=way) if way is WITHOUT_FORK else watching("02", "--watch", *way)
    assert one.score() == 0
    answer(checkout / "meintorch", "02.1", "reference")
    assert one.score() == 5
    answer(checkout / "meintorch", "02.1", "stub")
    assert one.score() == 0


def test_a_chapter_that_turns_green_announces_the_next(watching, checkout):
    one = watching("02.1", "--watch")
    one.score()
    answer(checkout / "meintorch", "02.1", "reference")
    one.until("02.1 is done.")
    for task in course.find_chapter("02").tasks:
        answer(checkout / "meintorch", task.id, "reference")
    whole = watching("02", "--watch")
    assert "Next: chapter 03 Matmul, chapters/03_matmul.md" in whole.until(r"Next: chapter.*\n")


def test_alone_it_follows_the_chapter_you_are_at(watching):
    watching("--watch").until("01  Value")


def test_a_save_during_an_endless_loop_is_not_kept_waiting(watching, checkout):
    answer(checkout / "meintorch", "02.1", "while True: pass\n")
    one = watching("02", "--watch", "--timeout", "600")
    time.sleep(2.0)
    answer(checkout / "meintorch", "02.1", "reference")
    assert one.score() == 5


def test_a_file_that_cannot_be_read_for_a_while_does_not_end_it(watching, checkout):
    path = checkout / "meintorch" / "tensor.py"
    before = read_source(path)
    one = watching("02", "--watch")
    one.score()
    path.write_text("def f(x)\n", encoding="utf-8")
    assert "A colon is missing" in one.until("No check was run")
    path.write_text(before, encoding="utf-8")
    assert one.score() == 0


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
def test_keys_give_hint_diff_next_and_an_end(checkout):
    import pty

    answer(checkout / "meintorch", "01.1", "reference")
    ours, theirs = pty.openpty()
    one = Watching([sys.executable, "grader.py", "01", "--watch"], checkout, stdin=theirs, stdout=theirs)
    os.close(theirs)
    one.read(ours)
    one.until("q quit")
    os.write(ours, b"h")
    assert "01.2" in one.until("Hint 1")
    os.write(ours, b"h")
    one.until("Hint 2")
    os.write(ours, b"d")
    one.until("01.1 Add.*Not shown")
    os.write(ours, b"x")  # nothing
    os.write(ours, b"n")
    one.until("02  Autograd.*q quit")
    os.write(ours, b"q")
    assert one.process.wait(timeout=PATIENCE) == 1
    os.close(ours)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_nothing_is_left_running_once_it_ends(watching, checkout):
    one = watching("02", "--watch")
    one.score()
    warm = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    children = [int(line.split()[0]) for line in warm.splitlines()[1:] if line.split()[1] == str(one.process.pid)]
    assert children
    one.process.kill()  # not even where it could not say goodbye
    one.process.wait()
    deadline = time.monotonic() + PATIENCE
    while any(map(_alive, children)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return not status.strip().startswith("Z")
