"""What every entry of the corpora gets, kept in tables: `python -m grading.authoring.corpora_tables --write`.

There are more than two thousand, and grading them all takes minutes. So the tests grade anew what has changed since the
tables in tests/course/corpora/verdicts were written, and of the rest a twentieth. An entry has changed if one of these
has: its own text; what is on the stage in its chapter (the reference up to it, the stubs of later chapters, its tests
and their helpers); the rooms of the grader that a verdict comes from; the version of Python or of NumPy. Where nothing
but the words have changed that an error is put into, right answers, which are shown no words, are not graded anew. What
a hostile package can do depends on the system, too: elsewhere than where the table was written they are graded anew.

Where no chapter is named, the proofs that do not stand any more are gone through as well: see standing_proofs.py.
Without --write it says how much is out of date, with exit status 1 if anything is.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np

from grading.authoring.corpora import CORPORA, Answer, Hostile, NotHere, Verdict, answers, grade_entry, hostile
from grading.course import chapters as course
from grading.course.files import as_source
from grading.runner import stage
from grading.runner.stage import temporary_folder

TABLES = CORPORA / "verdicts"
COMMAND = "python -m grading.authoring.corpora_tables --write"
PROOFS_AGAIN = ["tests/course", "-m", "proof", "--keep", "-n", "2", "--dist", "worksteal", "-q"]
SAMPLE = 20  # one of so many is graded anew, whatever the table says

GRADING = course.ROOT / "grading"
WORDING = ("verdict/phrasebook.py",)  # what errors are put into words with
WITHOUT_EFFECT = ("verdict/formats.py", "verdict/notes.py")  # told beside a verdict, or after it
ROOMS = ("course", "runner", "verdict")

Entry = Answer | Hostile


def entries(chapter: str) -> list[Entry]:
    """The entries of all corpora that are graded in a chapter."""
    every: list[Entry] = [*answers(), *hostile()]
    return [entry for entry in every if entry.chapter == chapter]


def table_of(chapter: str) -> Path:
    return TABLES / f"{chapter}.jsonl"


def recorded(entry: Entry) -> Verdict | None:
    """The verdict in the table, or None if there is none or if it is out of date."""
    header, lines = _read(entry.chapter)
    line = lines.get(_name(entry))
    if line is None or line["entry"] != entry_key(entry):
        return None
    now = keys(entry.chapter)
    if any(header.get(word) != now[word] for word in ("python", "numpy", "verdict")):
        return None
    if header.get("wording") != now["wording"] and entry.kind != "right":
        return None
    if header.get("system") != now["system"] and entry.kind == "hostile":  # what they can do is a matter of the system
        return None
    return Verdict(line["outcome"], line["shown"])


def is_in_the_sample(entry: Entry) -> bool:
    """Is it graded anew in any case? Another twentieth for every commit."""
    return is_drawn(_name(entry))


def is_drawn(name: str) -> bool:
    return crc32(f"{_commit()} {name}".encode()) % SAMPLE == 0


def differs(recorded: Verdict, graded: Verdict) -> bool:
    """Whether two verdicts differ, but for the numbers shown: the last digits are others on another machine."""
    return recorded.outcome != graded.outcome or _wording_of(recorded.shown) != _wording_of(graded.shown)


def complaint(entry: Entry, recorded: Verdict, graded: Verdict) -> str:
    """What is said where an entry of the table was graded anew and has got something else."""
    place = table_of(entry.chapter).relative_to(course.ROOT).as_posix()
    return (
        f"{place} is wrong about {entry.kind} {entry}, though nothing that it depends on has changed.\n"
        f"in the table: {recorded.outcome}: {recorded.shown}\n"
        f"graded anew:  {graded.outcome}: {graded.shown}\n"
        f"If it is not always the same, mend that. Otherwise: {COMMAND} {entry.chapter} --all"
    )


# The keys. They do not depend on line endings, dates of files or where the course lies.


def entry_key(entry: Entry) -> str:
    """The hash of all in an entry that can change what it gets. What it should get is not part of it."""
    if isinstance(entry, Hostile):
        return hash_of([entry.start, entry.change, entry.task, entry.code])
    return hash_of([entry.task, *entry.bodies, str(entry.goal)])


@lru_cache(maxsize=16)
def keys(chapter: str) -> dict[str, str]:
    """What all the verdicts of a chapter depend on: the versions, and a hash each for verdicts and for their words."""
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": ".".join(np.__version__.split(".")[:2]),
        "system": sys.platform,
        "verdict": hash_of([*_of_the_stage(chapter), *_of_the_grader()]),
        "wording": hash_of([*meanings(GRADING / name for name in WORDING), *_titles()]),
    }


def _of_the_stage(number: str) -> list[str]:
    """What is on the stage where the reference is checked, and which tasks the chapter has."""
    chapter = course.find_chapter(number)
    tasks = [f"{task.id} {task.revisits} {[part.region.qualname for part in task.parts]}" for task in chapter.tasks]
    with temporary_folder() as folder:
        stage.build(folder, course.REFERENCE, chapter)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
        return [*tasks, *meanings(files, folder)]


@lru_cache(maxsize=1)
def _of_the_grader() -> list[str]:
    left_out = {GRADING / name for name in (*WORDING, *WITHOUT_EFFECT)}
    files = {path for room in ROOMS for path in (GRADING / room).rglob("*.py")}
    return meanings([*sorted(files - left_out), GRADING / "authoring" / "corpora.py"])


def _titles() -> list[str]:
    """The words of the chapters that a message may hold."""
    return [f"{task.id} {task.title}" for chapter in course.chapters() for task in chapter.tasks]


def meanings(files: Iterable[Path], folder: Path = GRADING) -> list[str]:
    """The names of files, as seen from a folder, and what is in them.

    Of tests and of the grader without comments, on which nothing depends there.
    """
    named = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in files]
    return [text for name, data in named for text in (name, _meaning(name, data))]


@lru_cache(maxsize=256)
def _meaning(name: str, data: bytes) -> str:
    if not name.endswith(".py"):
        return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
    if name.startswith("meintorch/"):  # comments say where a task is
        return as_source(data)
    return hash_of([ast.dump(ast.parse(as_source(data)))])


def hash_of(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _commit() -> str:
    """The hash of the commit that is checked out, or where there is none the date."""
    command = ["git", "-C", str(course.ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return date.today().isoformat()


def _wording_of(shown: str) -> str:
    return re.sub(r"0x[0-9a-fA-F]+|-?\d+(\.\d*)?(e[+-]?\d+)?", "#", shown)


# The tables: a line with the keys, then a line for every entry, in the order of their names.


def _name(entry: Entry) -> str:
    return f"{entry.kind} {entry}"


@lru_cache(maxsize=16)
def _read(chapter: str) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The keys and the lines of a table, by the names of the entries. A line that cannot be read counts as missing."""
    try:
        header, *lines = table_of(chapter).read_text(encoding="utf-8").rstrip("\n").split("\n")
        rows = [json.loads(line) for line in lines]
        fields = {"name", "entry", "outcome", "shown"}
        return json.loads(header), {row["name"]: row for row in rows if row.keys() == fields}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}, {}


def _write(chapter: str, verdicts: dict[Entry, Verdict]) -> None:
    TABLES.mkdir(exist_ok=True)
    lines = [{**keys(chapter), "written by": COMMAND}]
    for entry, verdict in sorted(verdicts.items(), key=lambda item: _name(item[0])):
        line = {"name": _name(entry), "entry": entry_key(entry), "outcome": verdict.outcome, "shown": verdict.shown}
        lines.append(line)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    table_of(chapter).write_bytes(text.encode("utf-8", "replace"))
    _read.cache_clear()


def write(chapter: str, pool: ProcessPoolExecutor, everything: bool) -> None:
    """Grade what is out of date in a chapter, or everything, and write its table. Says how far it has come."""
    there = {entry: None if everything else recorded(entry) for entry in entries(chapter)}
    changed = [entry for entry, verdict in there.items() if verdict is None]
    clock, verdicts = time.monotonic(), {entry: verdict for entry, verdict in there.items() if verdict}
    for i, (entry, verdict) in enumerate(zip(changed, pool.map(_grade, changed)), start=1):
        if verdict is not None:
            verdicts[entry] = verdict
        if i % 50 == 0:
            print(f"{chapter}: {i} of {len(changed)} ...", flush=True)
    _write(chapter, verdicts)
    seconds = f" in {time.monotonic() - clock:.0f} s" if changed else ""
    print(f"{chapter}: {len(changed)} of {len(there)} entries graded{seconds}, written", flush=True)


def _grade(entry: Entry) -> Verdict | None:
    try:
        return grade_entry(entry)
    except NotHere:
        return None


def _write_proofs() -> int:
    """Go through the proofs that do not stand any more, and keep those that are passed: see standing_proofs.py."""
    command = [sys.executable, "-m", "pytest", *PROOFS_AGAIN]
    return subprocess.run(command, cwd=course.ROOT, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading.authoring.corpora_tables", description=__doc__)
    parser.add_argument("chapter", nargs="*", help="02, or several; without, every chapter")
    parser.add_argument("--write", action="store_true", help="grade what is out of date, and write the tables")
    parser.add_argument("--all", action="store_true", help="with --write: grade everything anew")
    options = parser.parse_args(arguments)
    try:
        wanted = [course.find_chapter(name).number for name in options.chapter]
    except LookupError as error:
        parser.error(error.args[0])
    wanted = wanted or [chapter.number for chapter in course.chapters()]
    if options.write:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for chapter in wanted:
                write(chapter, pool, options.all)
        return 0 if options.chapter else _write_proofs()
    stale = {chapter: sum(recorded(entry) is None for entry in entries(chapter)) for chapter in wanted}
    for chapter, count in stale.items():
        print(f"{chapter}: {count} of {len(entries(chapter))} are out of date" if count else f"{chapter}: up to date")
    if any(stale.values()):
        print(f"\nTo grade them and write the tables: {COMMAND}")
    return int(any(stale.values()))


if __name__ == "__main__":
    sys.exit(main())
