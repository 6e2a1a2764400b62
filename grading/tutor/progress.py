"""How far a learner is: every chapter's checks, run anew only where something has changed since the last time."""

import hashlib
import os
import sys
from typing import NamedTuple

from grading.course.chapters import PACKAGE, REFERENCE, ROOT, TESTS, Chapter, chapters
from grading.runner import stage
from grading.runner.launch import Start
from grading.tutor import memory
from grading.verdict.judge import grade


class Row(NamedTuple):
    """A line of the map."""

    chapter: Chapter
    score: int  # the checks that pass
    total: int
    problem: str  # the place that keeps the chapter from being checked, or ""


def rows(start: Start) -> list[Row]:
    """A row for every chapter."""
    remembered = memory.recall("map")
    lines = []
    for chapter in chapters():
        digest = digest_of(chapter)
        known = remembered.get(chapter.number, {}).get(digest)
        if known is None:
            report = grade(chapter, start=start)
            problem = str(report.not_gradable.place) if report.not_gradable else ""
            known = [report.score, report.max_score, problem]
            # A test that took too long may have met a busy machine: that is not worth remembering.
            if not any(result.status in ("timeout", "crash", "error") for result in report.results.values()):
                remembered[chapter.number] = {digest: known}
        lines.append(Row(chapter, *known))
    memory.remember("map", remembered)
    return lines


def here(rows: list[Row]) -> Chapter | None:
    """The first chapter that is not done."""
    return next((row.chapter for row in rows if row.score < row.total), None)


def digest_of(chapter: Chapter) -> str:
    """What a chapter's result depends on: the package, the tests, the grader and Python."""
    digest = hashlib.sha256(f"{sys.version} {chapter.checks}".encode())  # which says so where the tests are gone
    given = stage.given_files(chapter)  # later chapters' files among them: a change there changes nothing here
    paths = [path for name, path in stage.package_files(PACKAGE).items() if name not in given]
    for folder in (ROOT / "grading", REFERENCE):
        paths += stage.package_files(folder).values()
    for path in [*paths, chapter.text, chapter.tests, TESTS / "_helpers.py"]:
        digest.update(os.fsencode(path) + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
