"""`--watch`, as a learner has it: beside the editor, saved again and again."""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from grading.authoring.corpora import put_answer
from grading.course import chapters as course
from grading.course.files import read_source
from grading.tutor import keys, watch
from tests.course.conftest import grade

PATIENCE = 60.0  # seconds, for a busy machine
RESULT = re.compile(r"(\d+) of \d+ checks")


class Watching:
    """A running `grader.py ... --watch` whose lines can be waited for."""

    def __init__(self, command: list[str], folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options):
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT, **options
        )
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
def stages(checkout, tmp_path, monkeypatch):
    """The folder in which the grader makes its stages, for a package whose run begins and never ends."""
    put_answer(checkout / "meintorch", "02.1", "open('begun', 'w').close()\nwhile True: pass\n")
    folder = tmp_path / "stages"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


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


CHECKS_OF_ADD = sum(check.task == "02.1" and not check.goal for check in course.find_chapter("02").checks)
WITHOUT_FORK = (
    "-c",
    "import sys; from grading import cli; from grading.runner import warm\n"
    "warm.available = lambda: False; sys.exit(cli.main())",
)


@pytest.mark.parametrize("way", [(), ("--poll",), WITHOUT_FORK], ids=["as it is", "polling", "without fork"])
def test_every_save_is_checked(watching, checkout, way):
    one = watching("02", "--watch", program=way) if way is WITHOUT_FORK else watching("02", "--watch", *way)
    assert one.score() == 0
    put_answer(checkout / "meintorch", "02.1", "reference")
    assert one.score() == CHECKS_OF_ADD
    put_answer(checkout / "meintorch", "02.1", "stub")
    assert one.score() == 0


def test_a_chapter_that_turns_green_announces_the_next(watching, checkout):
    one = watching("02.1", "--watch")
    one.score()
    put_answer(checkout / "meintorch", "02.1", "reference")
    one.until("02.1 is done.")
    for task in course.find_chapter("02").tasks:
        put_answer(checkout / "meintorch", task.id, "reference")
    whole = watching("02", "--watch")
    assert "Next: chapter 03 Matmul, chapters/03_matmul.md" in whole.until(r"Next: chapter.*\n")


def test_alone_it_follows_the_chapter_you_are_at(watching):
    watching("--watch").until("01  Value")


def test_a_save_during_an_endless_loop_is_not_kept_waiting(watching, checkout):
    put_answer(checkout / "meintorch", "02.1", "while True: pass\n")
    one = watching("02", "--watch", "--timeout", "600")
    time.sleep(2.0)
    put_answer(checkout / "meintorch", "02.1", "reference")
    assert one.score() == CHECKS_OF_ADD


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_waiting_process_that_is_killed_during_a_run_is_done_without(watching, checkout, stages):
    one = watching("02", "--watch", "--timeout", "600")
    _until(lambda: list(stages.glob("*/scratch/begun")))
    os.kill(_children(one.process.pid)[0], signal.SIGKILL)
    put_answer(checkout / "meintorch", "02.1", "reference")
    assert one.score() == CHECKS_OF_ADD


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

    put_answer(checkout / "meintorch", "01.1", "reference")
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
    one.until("01 is not done yet")
    os.write(ours, b"n")
    one.until("02  Autograd.*q quit")
    os.write(ours, b"p")
    one.until("01  Value.*q quit")
    os.write(ours, b"q")
    assert one.process.wait(timeout=PATIENCE) == 1
    os.close(ours)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_nothing_is_left_running_once_it_ends(watching, checkout):
    one = watching("02", "--watch")
    one.score()
    children = _children(one.process.pid)
    assert children
    one.process.kill()  # not even where it could not say goodbye
    one.process.wait()
    _until(lambda: not any(map(_alive, children)))


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a_grader_that_is_killed_in_the_middle_of_a_run_leaves_no_run_behind(watching, checkout, stages):
    one = watching("02", "--watch", "--timeout", "600")
    _until(lambda: list(stages.glob("*/scratch/begun")))
    children = _children(one.process.pid)
    assert len(children) >= 2
    one.process.kill()
    _until(lambda: not any(map(_alive, children)))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return not status.strip().startswith("Z")


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize("way", ["q", "Ctrl-D", "SIGINT", "SIGTERM", "SIGHUP", "closed"])
def test_an_end_in_the_middle_of_a_run_leaves_nothing_behind(checkout, stages, way):
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "grader.py", "02", "--watch", "--timeout", "600"]
    one = Watching(command, checkout, stdin=theirs, stdout=theirs, start_new_session=True)
    os.close(theirs)
    _until(lambda: list(stages.glob("*/scratch/begun")))
    children = _children(one.process.pid)
    if way in ("q", "Ctrl-D"):
        os.write(ours, b"q" if way == "q" else b"\x04")
    elif way == "closed":
        os.close(ours)
    else:
        one.process.send_signal(getattr(signal, way))
    assert one.process.wait(timeout=PATIENCE) == 1
    assert list(stages.iterdir()) == []
    _until(lambda: not any(map(_alive, children)))
    if way != "closed":
        os.close(ours)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.usefixtures("heeded_signals")
def test_who_asks_for_the_end_again_and_again_does_not_break_off_the_cleaning_up(watching, stages):
    one = watching("02", "--watch", "--timeout", "600")
    _until(lambda: list(stages.glob("*/scratch/begun")))
    children = _children(one.process.pid)
    while one.process.poll() is None and list(stages.iterdir()):
        one.process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    one.process.wait(timeout=PATIENCE)
    assert list(stages.iterdir()) == []
    _until(lambda: not any(map(_alive, children)))


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
def test_keys_count_again_once_a_stopped_grader_goes_on(checkout):
    import pty
    import termios

    ours, theirs = pty.openpty()
    ordinary = termios.tcgetattr(theirs)
    one = Watching([sys.executable, "grader.py", "01", "--watch"], checkout, stdin=theirs, stdout=theirs)
    one.read(ours)
    one.until("q quit")
    one.process.send_signal(signal.SIGSTOP)
    termios.tcsetattr(theirs, termios.TCSANOW, ordinary)  # as a shell does
    one.process.send_signal(signal.SIGCONT)
    _until(lambda: not termios.tcgetattr(theirs)[3] & termios.ICANON)
    os.write(ours, b"q")
    assert one.process.wait(timeout=PATIENCE) == 1
    os.close(theirs)
    os.close(ours)


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
def test_to_go_on_without_a_terminal_is_no_mistake(monkeypatch):
    """Closing the terminal sends SIGHUP and SIGCONT, and an exception could come while a run is being started."""
    import pty

    ours, theirs = pty.openpty()
    with open(theirs, "rb", buffering=0) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        with keys.at_once(True):
            os.close(ours)
            signal.raise_signal(signal.SIGCONT)


def test_a_hint_for_what_waits_for_another_task_says_which(package, capsys):
    chapter, task = course.find_task("03.7")
    watch.show_hint(grade(chapter, package("reference", {"03.3": "stub"}), task))
    assert "A hint comes with what this waits for: python grader.py 03.3" in capsys.readouterr().out


@pytest.mark.parametrize("way", [(), ("--poll",)], ids=["as it is", "polling"])
def test_a_folder_that_is_replaced_or_gone_for_a_while_is_still_watched(watching, checkout, way):
    package, other = checkout / "meintorch", checkout / "other"
    one = watching("02", "--watch", *way)
    assert one.score() == 0
    shutil.copytree(package, other)
    shutil.rmtree(package)
    time.sleep(1.0)
    other.rename(package)
    time.sleep(2.0)
    put_answer(package, "02.1", "reference")
    one.until(f"{CHECKS_OF_ADD} of")


@pytest.mark.parametrize("way", [(), ("--poll",)], ids=["as it is", "polling"])
def test_saves_that_follow_each_other_quickly_end_with_the_last(watching, checkout, way):
    path = checkout / "meintorch" / "tensor.py"
    stub = read_source(path)
    put_answer(checkout / "meintorch", "02.1", "reference")
    done = read_source(path)
    one = watching("02", "--watch", *way)
    assert one.score() == CHECKS_OF_ADD
    for number in range(30):
        if number % 3 == 0:
            path.unlink()
        path.write_text("def f(" if number % 3 == 1 else stub, encoding="utf-8")
        time.sleep(0.03 * (number % 5))
    path.write_text(done, encoding="utf-8")
    one.until(f"{CHECKS_OF_ADD} of")


def test_polling_sees_the_second_of_two_saves_within_a_second(watching, checkout):
    path = checkout / "meintorch" / "tensor.py"
    one = watching("02", "--watch", "--poll")
    assert one.score() == 0
    for _ in range(2):
        put_answer(checkout / "meintorch", "02.1", "reference")
        assert one.score() == CHECKS_OF_ADD
        time.sleep(1.0 - time.time() % 1.0)  # a second begins
        path.write_text(read_source(path) + "\n", encoding="utf-8")
        time.sleep(0.6)
        put_answer(checkout / "meintorch", "02.1", "stub")
        one.until("0 of")


def _children(pid: int) -> list[int]:
    """The processes that come from a process, near and far."""
    lines = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = [tuple(map(int, line.split())) for line in lines[1:]]
    own = [child for child, parent in pairs if parent == pid]
    return own + [further for child in own for further in _children(child)]


def _until(happens) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)
