"""How far a learner is: every chapter's checks, run anew only where something has changed since the last time."""

import hashlib
import os
import sys

from grading.course import chapters as course
from grading.course.chapters import Chapter
from grading.runner import stage
from grading.tutor import memory
from grading.verdict.judge import grade

Row = tuple[Chapter, int, int, str]  # a chapter, the checks that pass, all there are, the place that stops them or ""


def rows() -> list[Row]:
    """A row for every chapter."""
    remembered = memory.recall("map")
    found = []
    for chapter in course.chapters():
        digest = digest_of(chapter)
        known = remembered.get(chapter.number, {}).get(digest)
        if known is None:
            report = grade(chapter)
            problem = report.not_gradable
            place = f"{problem.file}, line {problem.line}" if problem and problem.line else problem and problem.file
            known = [report.score, report.max_score, place or ""]
            # A test that took too long may have met a busy machine: that is not worth remembering.
            if not any(r.status in ("timeout", "crash", "error") for one in report.tasks for r in one.results):
                remembered[chapter.number] = {digest: known}
        found.append((chapter, *known))
    memory.remember("map", remembered)
    return found


def here(rows: list[Row]) -> Chapter | None:
    """The first chapter that is not done."""
    return next((chapter for chapter, score, total, _ in rows if score < total), None)


def digest_of(chapter: Chapter) -> str:
    """What a chapter's result depends on: the package, the tests, the grader and Python."""
    digest = hashlib.sha256(sys.version.encode())
    given = stage.given_files(chapter)  # later chapters' files among them: a change there changes nothing here
    paths = [path for name, path in stage.package_files(course.PACKAGE).items() if name not in given]
    for folder in (course.ROOT / "grading", course.REFERENCE):
        paths += stage.package_files(folder).values()
    for path in [*paths, chapter.text, chapter.tests, course.TESTS / "_helpers.py"]:
        digest.update(os.fsencode(path) + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
