"""The chapters' texts keep their form, and everything in them is true: cells, results, solutions and broken code."""

import ast
import code
import html
import re
import sys
from functools import lru_cache

import jupytext
import pytest

from grading.authoring import check, picture, readme_map
from grading.authoring.corpora import put_answer
from grading.cli import main
from grading.course import chapters as course
from grading.course import texts
from grading.course.files import read_source
from tests.course.conftest import follow_the_texts, grade
from tests.course.proofs.cells import agree, cells, run_as_a_learner, words

CHAPTERS = course.chapters()
WITH_PICTURES = [chapter for chapter in CHAPTERS if picture.FOLLOWS.search(read_source(chapter.text))]

by_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.number)


@by_chapter
def test_a_chapter_has_its_sections_in_order_and_no_gap(chapter):
    problems = [*check.sections(chapter), *check.broken_code(chapter), *check.gaps(chapter)]
    assert [problem.sentence for problem in problems] == []


@by_chapter
def test_a_task_has_a_ladder_of_three_hints_and_a_solution_that_do_not_run_in_a_notebook(chapter):
    assert [problem.sentence for problem in check.ladders(chapter)] == []


@by_chapter
def test_the_cells_of_the_notebook_are_the_listings_that_run(chapter):
    text = read_source(chapter.text)
    cells = [
        listing.code.rstrip("\n") for listing in texts.listings(text) if listing.language == "python" and listing.runs
    ]
    notebook = jupytext.reads(text, fmt="md")
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"] == cells


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A function that gives what has come of a chapter's cells. They run once: training takes its time."""
    return lru_cache(lambda chapter: run_as_a_learner(chapter, tmp_path_factory.mktemp("learner")))


@pytest.mark.proof
@by_chapter
def test_every_cell_runs_for_a_learner_who_has_come_to_it_and_every_result_is_right(chapter, ran):
    """What comes before it is answered, and nothing that comes after it."""
    assert ran(chapter).wrong == []
    assert ran(chapter).results >= 10


@pytest.mark.proof
@pytest.mark.parametrize("chapter", WITH_PICTURES, ids=lambda chapter: chapter.number)
def test_the_pictures_of_a_chapter_are_what_its_cells_draw(chapter, ran):
    """The words are compared, without their digits: the last digit of a training differs from machine to machine."""
    stale = "the picture is out of date: python -m grading.authoring.picture draws it anew"
    assert len(ran(chapter).pictures) == len(picture.FOLLOWS.findall(read_source(chapter.text)))
    for there, drawn in ran(chapter).pictures:
        if there.startswith("!"):
            committed = read_source(course.CHAPTERS / picture.IMAGE.search(there).group(1))
            assert {re.sub(r"[\d.]+", "#", text) for text in words(committed)} == {
                re.sub(r"[\d.]+", "#", text) for text in words(drawn)
            }, stale
        else:
            assert there == drawn, stale


@by_chapter
def test_cells_can_be_pasted_into_a_python_session(chapter):
    """There an indented block ends with an empty line, and only there: what is read are the statements of the cell."""
    for cell in cells(chapter):
        pasted = [statement for source in read_by_a_session(cell.code) for statement in ast.parse(source).body]
        assert list(map(ast.dump, pasted)) == list(map(ast.dump, ast.parse(cell.code).body)), f"line {cell.line}"


def read_by_a_session(text: str) -> list[str]:
    """What a Python session runs, one after the other, if these lines are pasted. It runs none of it here."""
    console, read = code.InteractiveConsole(), []
    console.runcode = lambda _: read.append("\n".join(console.buffer))
    console.showsyntaxerror = lambda *_, **__: pytest.fail(f"{sys.exc_info()[1]}")
    for line in [*text.rstrip("\n").split("\n"), ""]:
        waiting = console.push(line)
    assert not waiting, "it waits for more"
    return [source for source in read if source]


def test_what_a_session_reads_ends_with_an_empty_line():
    assert read_by_a_session("x = 1\nfor i in range(3):\n    x += i\n\nprint(x)") == [
        "x = 1",
        "for i in range(3):\n    x += i\n",
        "print(x)",
    ]
    with pytest.raises(pytest.fail.Exception, match="invalid syntax"):
        read_by_a_session("for i in range(3):\n    print(i)\nprint(3)")
    with pytest.raises(pytest.fail.Exception, match="unexpected indent"):
        read_by_a_session("for i in range(3):\n    print(i)\n\n    print(3)")


def test_noted_results_are_compared_at_the_digits_shown():
    assert agree("0.2485", "0.24845673131658673")
    assert not agree("0.2485", "0.2475")
    assert agree("[ 5. 70.]", "[ 5. 70.]")
    assert agree("Value(-0.76)", "Value(-0.7615941559557649)")
    assert not agree("Value(0.76)", "Value(-0.7615941559557649)")
    assert not agree("26", "26.4")
    assert not agree("float64", "float32")


@pytest.mark.proof
@by_chapter
def test_broken_code_in_the_text_fails_as_the_text_says(chapter, package, capsys):
    section = read_source(chapter.text).partition("\n## Break it\n")[2].partition("\n## ")[0]
    listings = texts.listings(section)
    breaks = [listing for listing in listings if listing.language == "python"]
    outputs = [listing for listing in listings if listing.language == "text"]
    assert 2 <= len(breaks) == len(outputs)
    for broken, output in zip(breaks, outputs):
        task = re.match(r"# (\d\d\.\d+)\n", broken.code).group(1)
        folder = package("reference", {task: broken.code.partition("\n")[2]})
        assert main([chapter.number, "--package", str(folder)]) == 1
        screen = " ".join(capsys.readouterr().out.split())
        for line in output.code.strip().split("\n"):
            assert " ".join(line.split()) in screen, (task, line, screen)


@pytest.mark.proof
@by_chapter
def test_a_learner_who_follows_the_text_sees_one_line_after_the_other_turn(chapter, package):
    """From the stubs, each task filled with the text's own solution."""
    folder = package("stubs")
    follow_the_texts(folder, chapter.number)
    for i, task in enumerate(chapter.tasks):
        put_answer(folder, task.id, texts.solution(read_source(chapter.text), task.id))
        left = len(chapter.tasks) - i - 1
        report = grade(chapter, folder, goal=not left)  # the last time the harder suite as well
        assert [one.status for one in report.tasks] == ["passed"] * (i + 1) + ["todo"] * left, task.id
    assert report.passed, [r for one in report.tasks for r in one.results if r.status != "passed"]
    assert {check.name for check in chapter.checks} == {r.name for one in report.tasks for r in one.results}


@pytest.mark.parametrize(
    "path", [*sorted(course.CHAPTERS.glob("*.md")), *sorted(course.ROOT.glob("*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", read_source(path)):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_map_in_the_readme_is_the_map_of_the_course():
    assert readme_map.problem(CHAPTERS) is None


def test_the_picture_in_the_readme_shows_what_the_grader_prints():
    def letters(svg: str) -> str:
        shown = re.findall(r"<text[^>]*>(.*?)</text>", svg)
        return "".join(html.unescape(" ".join(shown)).split())

    stale = "the picture is out of date: python -m grading.authoring.picture draws it anew"
    assert letters(read_source(picture.PICTURE)) == letters(picture.draw()), stale


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_readme_and_contributing_name_only_commands_that_there_are(name, capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for command in re.findall(r"python grader\.py ([a-z][a-z-]*)", read_source(course.ROOT / name)):
        assert f"python grader.py {command}" in listed, command
