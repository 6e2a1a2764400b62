"""Machine-made mistakes are caught, too. The whole audit takes minutes, a sample of it runs here.

The figures of the whole are in mutants.md, made by `python -m grading.authoring.audit --write`.
"""

import random
import re

import pytest

from grading.authoring.audit import EQUIVALENT, FIGURES, SURVIVED, audit, equivalents, key
from grading.authoring.mutants import mutants_of
from grading.course.chapters import chapters, find_task
from grading.course.files import read_source

SAMPLE = 8  # of each chapter
BY_CHAPTER = {chapter.number: [one for task in chapter.tasks for one in mutants_of(task)] for chapter in chapters()}
EVERY = [mutant for mutants in BY_CHAPTER.values() for mutant in mutants]


@pytest.mark.proof
@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.number)
def test_of_a_sample_every_mutant_is_caught_or_listed_as_equivalent(chapter):
    """Another sample whenever the chapter's tests have changed."""
    mutants = BY_CHAPTER[chapter.number]
    sample = random.Random(read_source(chapter.tests)).sample(mutants, min(SAMPLE, len(mutants)))
    survivors = [one.mutant for one in audit(chapter, sample) if one.caught_by == SURVIVED]
    assert not [str(mutant) for mutant in survivors if key(mutant) not in equivalents()]


def test_every_mutant_that_is_listed_as_equivalent_exists():
    assert equivalents() <= {key(mutant) for mutant in EVERY}


def test_at_most_a_tenth_are_called_equivalent_and_each_for_a_reason():
    assert len([one for one in EVERY if key(one) in equivalents()]) <= 0.1 * len(EVERY)
    for section in re.split(r"^## ", read_source(EQUIVALENT), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        assert len(heading.split()) > 2, heading
        assert text.count("```diff\n") >= 1, heading


def test_the_figures_are_those_of_the_mutants_that_there_are():
    rows = dict(re.findall(r"^\| (\w+) \| (\d+ \| \d+) \|", read_source(FIGURES), re.MULTILINE))
    listed = equivalents()
    for name, mutants in [*BY_CHAPTER.items(), ("all", EVERY)]:
        equivalent = sum(key(mutant) in listed for mutant in mutants)
        assert rows[name] == f"{len(mutants)} | {equivalent}", f"{name}: python -m grading.authoring.audit --write"


def test_the_bar_is_met():
    """Of those that are not equivalent the milestone tests catch 97 % in each chapter, and --goal all of them."""
    shares = re.findall(r"\| ([\d.]+) % \| ([\d.]+) % \|$", read_source(FIGURES), re.MULTILINE)
    assert len(shares) == len(BY_CHAPTER) + 1
    for plain, goal in shares:
        assert float(plain) >= 97.0
        assert float(goal) == 100.0


def test_a_mutant_differs_in_one_place():
    found = {(mutant.old, mutant.new) for mutant in mutants_of(find_task("02.4")[1])}
    line = "self.grad += upstream @ other.data.T"
    for new in (
        "pass",
        "self.grad = upstream @ other.data.T",
        "self.grad -= upstream @ other.data.T",
        "self.grad += upstream @ other.data",
        "self.grad += upstream * other.data.T",
        "self.grad += other.data.T @ upstream",
        "self.grad += upstream",
        "self.data += upstream @ other.data.T",
        "self.grad += upstream @ self.data.T",
    ):
        assert (line, new) in found
    assert ("if self.requires_grad:", "if not (self.requires_grad):") in found
    task = find_task("04.6")[1]
    assert any(mutant.old.replace("axis=axis", "axis=0", 1) == mutant.new for mutant in mutants_of(task))
    assert any("keepdims=False" in mutant.new for mutant in mutants_of(task))


def test_mutants_are_told_apart_by_their_lines_wherever_those_stand():
    assert all(mutant.old != mutant.new for mutant in EVERY)
    assert not any("\n" in mutant.old and mutant.old.startswith(" ") for mutant in EVERY)
