"""A proof stands while nothing has changed that it depends on: what belongs to that, and what is kept of a run."""

import re
import subprocess
import sys

import pytest

from grading.authoring import corpora_tables, standing_proofs
from grading.course import chapters as course
from grading.course.files import read_source

TEST = "tests/course/proofs/test_milestones.py::test_a[02]"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(standing_proofs, "TABLE", tmp_path / "standing.tsv")
    monkeypatch.setattr(corpora_tables, "is_drawn", lambda name: False)
    standing_proofs._table.cache_clear()
    yield tmp_path / "standing.tsv"
    standing_proofs._table.cache_clear()


def test_a_proof_stands_with_the_key_that_it_was_passed_with(table, monkeypatch):
    assert not standing_proofs.stands(TEST, "02")
    standing_proofs.write()
    assert standing_proofs.stands(TEST, "02")
    assert len(read_source(table).splitlines()) == len(course.chapters())
    monkeypatch.setattr(corpora_tables, "is_drawn", lambda name: name == TEST)
    assert not standing_proofs.stands(TEST, "02")
    monkeypatch.setattr(corpora_tables, "is_drawn", lambda name: name != TEST)
    assert standing_proofs.stands(TEST, "02")
    monkeypatch.setattr(standing_proofs, "key", lambda number: "another")
    assert not standing_proofs.stands(TEST, "02")


@pytest.mark.parametrize(
    "words", [["tests/course/proofs", "-m", "proof"], ["tests/course"], ["tests/course", "-k", "a"]]
)
def test_a_part_of_the_proofs_is_not_kept(words):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--keep"], cwd=course.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "--keep belongs to all proofs" in done.stderr


@pytest.mark.parametrize("text", ["", "no table\n", "a\tb\tc\n", "\t\n"])
def test_what_cannot_be_read_counts_as_missing(table, text):
    table.write_text(text, encoding="utf-8")
    assert not standing_proofs.stands(TEST, "02")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("chapters/01_value.md", {"01", "02", "13"}),  # who follows the texts has its answers
        ("chapters/02_autograd.md", {"02", "13"}),
        ("chapters/13_control.md", {"13"}),
        ("chapters/pictures/01_moons.svg", {"01", "02", "13"}),
        ("grading/tutor/screen.py", {"01", "02", "13"}),
        ("tests/course/proofs/cells.py", {"01", "02", "13"}),
        ("tests/course/proofs/equivalent.md", {"01", "02", "13"}),
        ("tests/course/conftest.py", {"01", "02", "13"}),
        ("README.md", set()),
    ],
)
def test_the_key_changes_with_what_a_proof_depends_on(name, changed, monkeypatch):
    """What is on the stage belongs to it too: see test_verdicts.py."""
    before = {number: standing_proofs.key(number) for number in ("01", "02", "13")}
    real = corpora_tables.meanings

    def meanings(files, folder):
        return [*real(files, folder), *["another text" for path in files if path == course.ROOT / name]]

    monkeypatch.setattr(corpora_tables, "meanings", meanings)
    assert {number for number in before if standing_proofs.key.__wrapped__(number) != before[number]} == changed


def test_a_chapter_that_goes_back_to_another_belongs_to_what_is_proved_of_that(monkeypatch):
    before, real = {number: standing_proofs.key(number) for number in ("01", "02", "09", "13")}, corpora_tables.keys
    changed = {**real("09"), "verdict": "another"}
    monkeypatch.setattr(corpora_tables, "keys", lambda number: changed if number == "09" else real(number))
    assert {number for number in before if standing_proofs.key.__wrapped__(number) != before[number]} == {"02", "09"}


def test_proofs_stand_in_one_folder():
    marked = set()
    for path in (course.TESTS / "course").rglob("test_*.py"):
        for line in re.findall(r"^@pytest\.mark\.proof.*$", read_source(path), re.MULTILINE):
            marked.add((path.parent, line))
    assert {folder for folder, _ in marked} == {standing_proofs.PROOFS}
    assert {line for _, line in marked} == {"@pytest.mark.proof", '@pytest.mark.proof("09")'}
