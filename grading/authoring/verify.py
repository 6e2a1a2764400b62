"""Proves the course, for its maintainers: runs its own tests and prints what they have shown, a line for each claim."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from grading.course.chapters import ROOT, TESTS
from grading.course.errors import GraderError
from grading.tutor import screen

COURSE = TESTS / "course"

# In this order: a file of tests/course, and what its tests show. The name of a test begins with the second word.
CLAIMS = {
    "proofs/test_milestones.py": {
        "test_the_reference": "the reference passes every check, --goal too",
        "test_stubs_fail": 'stubs fail every check for the reason "to do"',
        "test_a_chapter_solved_but_for": "solved but for one task: that one is to do",
        "": "chapters keep to their measure",
    },
    "proofs/test_texts.py": {"": "solutions, cells and numbers in the texts fit"},
    "corpora/test_answers.py": {
        "test_a_mistake_fails": "known mistakes caught, each at its own task",
        "test_a_mistake_is_named": "known mistakes named",
        "test_a_right_answer": "right answers in other styles pass",
        "": "there are enough of both",
    },
    "proofs/test_mutants.py": {
        "test_of_a_sample": "a sample of machine-made mistakes is caught",
        "": "the figures of all of them are up to date",
    },
}
REST = "grader, engine and everything else"
WORKERS = ["-p", "xdist.plugin", "-n", "2", "--dist", "worksteal"]


@dataclass(frozen=True)
class Proof:
    name: str
    status: str  # passed, failed, skipped


def verify() -> bool:
    """Run all of tests/course, a file after the other. Returns whether everything has passed."""
    failed: list[str] = []
    screen.say()
    others = sorted(path.relative_to(COURSE).as_posix() for path in COURSE.rglob("test_*.py"))
    others = [name for name in others if name not in CLAIMS]
    for files, claims in [*(([name], claims) for name, claims in CLAIMS.items()), (others, {"": REST})]:
        proofs = _run([COURSE / name for name in files], "--all")  # whatever the tables of verdicts say
        for claim, own in _by_claim(claims, proofs):
            show(claim, own, total=_total(claim, proofs, own))
            failed += [proof.name for proof in own if proof.status == "failed"]
    screen.say()
    for name in failed:
        screen.say("  ", ("failed", "bold red"), f"  {name}")
    return not failed


def show(claim: str, proofs: list[Proof], total: int) -> None:
    """A line of the table: how many of how many, and whether that is all of them."""
    passed = sum(proof.status == "passed" for proof in proofs)
    broken = not proofs or any(proof.status == "failed" for proof in proofs)
    skipped = sum(proof.status == "skipped" for proof in proofs)
    label = ("failed    ", "bold red") if broken else ("passed    ", "green")
    note = f", {skipped} skipped" if skipped else ""
    screen.say("  ", label, claim.ljust(48), f"{passed} of {total - skipped}{note}")


def _by_claim(claims: dict[str, str], proofs: list[Proof]) -> Iterator[tuple[str, list[Proof]]]:
    """The proofs that belong to each claim: to the first whose words a test's name begins with."""
    left = proofs
    for words, claim in claims.items():
        yield claim, [proof for proof in left if proof.name.startswith(words)]
        left = [proof for proof in left if not proof.name.startswith(words)]


def _total(claim: str, proofs: list[Proof], own: list[Proof]) -> int:
    """Of how many? A mistake whose diagnosis names nothing yet has no test of its name, and counts all the same."""
    if claim == "known mistakes named":
        return sum(proof.name.startswith("test_a_mistake_fails") for proof in proofs)
    return len(own)


def _run(files: list[Path], *options: str) -> list[Proof]:
    """Run test files in a process of their own with two workers, without other plugins."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *WORKERS,
            *options,
            f"--junitxml={report}",
            *map(str, files),
        ]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if not report.is_file():
            raise GraderError(f"pytest could not run {files[0].name}:\n\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return [_proof(case) for case in ElementTree.parse(report).iter("testcase")]


def _proof(case: ElementTree.Element) -> Proof:
    kinds = {child.tag for child in case}
    status = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return Proof(case.get("name", ""), status)
