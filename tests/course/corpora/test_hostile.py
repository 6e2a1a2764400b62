"""Packages that end Python, hang, want too much or want to be believed: each gets the answer that it must get.

They are in hostile/: grading/authoring/corpora.py says how they are written, and looks at what each has left behind.
What they get is in verdicts/, and graded anew where that is out of date. The answers are printed as a table.
"""

import pytest

from grading.authoring.corpora import NotHere, hostile


@pytest.mark.parametrize("entry", hostile(), ids=str)
def test_a_hostile_package_gets_its_answer(entry, verdict_of, record_property):
    try:
        verdict = verdict_of(entry)
    except NotHere as reason:
        pytest.skip(str(reason))
    record_property("hostile", (entry.name, entry.answer, verdict.outcome))
    kind, _, task = entry.answer.rpartition(" ")
    wanted = [f"{word} {task}" for word in kind.split(" or ")] if " or " in kind else [entry.answer]
    place = f"tests/course/corpora/hostile, {entry}"
    assert verdict.outcome in wanted, f"{place}: {verdict.outcome}. {verdict.shown}"
    assert " ".join(entry.says.split()) in verdict.shown, f"{place}: other words are shown than those behind `Says:`."


def test_there_are_at_least_forty():
    assert len({entry.name for entry in hostile()}) >= 40
