"""`python grader.py verify` reads what the course's own tests have shown. What is tested here is the reading."""

import ast

import pytest

from grading.authoring import verify
from grading.authoring.verify import CLAIMS, Proof
from grading.course.chapters import TESTS
from grading.course.files import read_source


def names_in(file: str) -> list[str]:
    tree = ast.parse(read_source(TESTS / "course" / file))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


@pytest.mark.parametrize("file", CLAIMS)
def test_every_claim_stands_on_tests_that_there_are(file):
    outcomes = [Proof(name, "passed") for name in names_in(file)]
    for claim, found in verify._by_claim(CLAIMS[file], outcomes):
        assert found, claim


def test_a_claim_fails_with_one_of_its_tests_or_without_any(capsys):
    passed, failed = Proof("test_a[1]", "passed"), Proof("test_a[2]", "failed")
    for outcomes, label, count in (
        ([passed, passed], "passed", "2 of 2"),
        ([passed, failed], "failed", "1 of 2"),
        ([], "failed", "0 of 0"),
        ([passed, Proof("test_a[3]", "skipped")], "passed", "1 of 1, 1 skipped"),
    ):
        verify.show("everything is right", outcomes, len(outcomes))
        line = capsys.readouterr().out
        assert line.split()[0] == label
        assert line.rstrip().endswith(count)
        assert len(line) <= 79


def test_a_mistake_that_is_not_named_yet_counts_as_not_named():
    outcomes = [Proof(f"test_a_mistake_fails_at_its_own_task[{i}]", "passed") for i in range(4)]
    outcomes += [Proof(f"test_a_mistake_is_named[{i}]", "passed") for i in range(3)]
    rows = {claim: (found, outcomes) for claim, found in verify._by_claim(CLAIMS["corpora/test_answers.py"], outcomes)}
    found, _ = rows["known mistakes named"]
    assert (len(found), verify._total("known mistakes named", outcomes, found)) == (3, 4)


def test_what_pytest_reports_is_read(tmp_path):
    test = tmp_path / "test_three.py"
    test.write_text(
        "import pytest\ndef test_one(): pass\ndef test_two(): assert False\ndef test_three(): pytest.skip('no')\n"
    )
    found = {one.name: one.status for one in verify._run([test])}
    assert found == {"test_one": "passed", "test_two": "failed", "test_three": "skipped"}
