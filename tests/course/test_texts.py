"""The chapters' texts keep their form, and everything in them is true: cells, results, solutions and broken code."""

import ast
import code
import html
import io
import re
import sys
import tokenize

import jupytext
import pytest

from grading import course, picture, texts
from grading.cli import main
from grading.files import read_source
from grading.report import grade
from grading.screen import sentence_of
from tests.course.conftest import answer

CHAPTERS = course.chapters()
EVERY_TASK = [task.id for chapter in CHAPTERS for task in chapter.tasks]
SECTIONS = [
    "The idea",
    "The goal",
    "Zero magic",
    "The exercise",
    "Check it",
    "Break it",
    "In goal mode",
    "What PyTorch does",
    "Next",
]
RUNGS = ["Hint 1 - the direction", "Hint 2 - more concrete", "Hint 3 - almost there", "Solution"]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")

by_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.number)
by_task = pytest.mark.parametrize("task", EVERY_TASK)


def text_of(task: str) -> str:
    return read_source(course.find_task(task)[0].text)


@by_chapter
def test_a_chapter_has_its_sections_in_order(chapter):
    prose = texts.LISTING.sub("", read_source(chapter.text))
    assert re.findall(r"^## (.+)$", prose, re.MULTILINE) == SECTIONS
    assert re.findall(r"^# (.+)$", prose, re.MULTILINE) == [f"{chapter.number} {chapter.title}"]


@by_task
def test_a_task_has_a_ladder_of_three_hints_and_a_solution(task):
    ladder = texts.ladder(text_of(task), task)
    assert [rung.title for rung in ladder] == RUNGS
    for rung in ladder[:3]:
        words = texts.LISTING.sub("", rung.text).split()
        assert 5 <= len(words) <= 160, (rung.title, len(words))
    assert "**Write**" in texts.task_section(text_of(task), task)
    assert len(texts.solution(text_of(task), task)) == len(course.find_task(task)[1].parts)


@by_chapter
def test_code_in_hints_and_solutions_does_not_run_in_a_notebook(chapter):
    text = read_source(chapter.text)
    for details in re.findall(r"<details>.*?</details>", text, re.DOTALL):
        assert not any(listing.runs for listing in texts.listings(details) if listing.language == "python")
    cells = [
        listing.code.rstrip("\n") for listing in texts.listings(text) if listing.language == "python" and listing.runs
    ]
    notebook = jupytext.reads(text, fmt="md")
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"] == cells


@by_chapter
def test_every_cell_runs_on_the_reference_and_every_result_is_right(chapter):
    namespace = {"__name__": "__main__"}
    checked = 0
    for listing in texts.listings(read_source(chapter.text)):
        if listing.language == "python" and listing.runs:
            checked += run_cell(listing, namespace)
    assert checked >= 10


@by_chapter
def test_cells_can_be_pasted_into_a_python_session(chapter, capsys):
    """There an indented block ends with an empty line, and only there."""
    console = code.InteractiveConsole({"__name__": "__main__"})
    for listing in texts.listings(read_source(chapter.text)):
        if listing.language == "python" and listing.runs:
            for line in [*listing.code.rstrip("\n").split("\n"), ""]:
                console.push(line)
            assert "Error" not in capsys.readouterr().err, f"line {listing.line}"


def run_cell(listing: texts.Listing, namespace: dict) -> int:
    """Run a cell and compare the results noted at the ends of its lines. Returns how many there were."""
    tree = ast.parse(listing.code)
    noted = {}
    for token in tokenize.generate_tokens(io.StringIO(listing.code).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            assert not alone, f"line {listing.line + token.start[0]}: a result on a line of its own is not compared"
            noted[token.start[0]] = token.string.lstrip("# ")
    found = {}

    def print_noted(*values, sep=" ", **others):
        found[sys._getframe(1).f_lineno] = sep.join(map(str, values))

    namespace["print"] = print_noted
    for statement in tree.body:
        code = compile(ast.Module([statement], []), f"<cell in line {listing.line}>", "exec")
        if isinstance(statement, ast.Expr) and statement.end_lineno in noted:
            value = eval(compile(ast.Expression(statement.value), f"<cell in line {listing.line}>", "eval"), namespace)
            if value is not None:
                found[statement.end_lineno] = str(value)
        else:
            exec(code, namespace)
    results = {line: note for line, note in noted.items() if is_result(tree, line)}
    for line, note in results.items():
        where = f"line {listing.line + line}: {note}"
        assert line in found, f"{where} - this line gave no result"
        assert agree(note, found[line]), f"{where} - it is {found[line]}"
    return len(results)


def is_result(tree: ast.AST, line: int) -> bool:
    """A comment at the end of an expression that stands for itself is its result; others are remarks."""
    return any(isinstance(node, ast.Expr) and node.end_lineno == line for node in ast.walk(tree))


def agree(note: str, found: str) -> bool:
    """The same text, and the same numbers at the digits that are noted."""
    if NUMBER.sub("#", note).split() != NUMBER.sub("#", found).split():
        return False
    for wanted, number in zip(NUMBER.findall(note), NUMBER.findall(found)):
        digits = len(wanted.partition(".")[2]) if "." in wanted and "e" not in wanted else None
        tolerance = 0.5 * 10.0**-digits * (1 + 1e-6) if digits else abs(float(wanted)) * 1e-9
        if abs(float(wanted) - float(number)) > tolerance:
            return False
    return True


def test_noted_results_are_compared_at_the_digits_shown():
    assert agree("0.2485", "0.24845673131658673")
    assert not agree("0.2485", "0.2475")
    assert agree("[ 5. 70.]", "[ 5. 70.]")
    assert agree("Value(-0.76)", "Value(-0.7615941559557649)")
    assert not agree("Value(0.76)", "Value(-0.7615941559557649)")
    assert not agree("26", "26.4")
    assert not agree("float64", "float32")


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


@by_chapter
def test_a_learner_who_follows_the_text_sees_one_line_after_the_other_turn(chapter, package):
    """From the stubs, each task filled with the text's own solution."""
    folder = package("stubs")
    for earlier in course.chapters():
        if earlier.number < chapter.number:
            for task in earlier.tasks:
                answer(folder, task.id, texts.solution(read_source(earlier.text), task.id))
    for i, task in enumerate(chapter.tasks):
        answer(folder, task.id, texts.solution(read_source(chapter.text), task.id))
        statuses = [one.status for one in grade(chapter, folder).tasks]
        assert statuses == ["passed"] * (i + 1) + ["todo"] * (len(chapter.tasks) - i - 1), task.id
    report = grade(chapter, folder, goal=True)
    assert report.passed, [r for one in report.tasks for r in one.results if r.status != "passed"]


@pytest.mark.parametrize(
    "path", [*sorted(course.CHAPTERS.glob("*.md")), course.ROOT / "README.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", read_source(path)):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@by_chapter
def test_the_names_of_the_checks_are_sentences(chapter):
    names = [check.name for check in chapter.checks]
    assert len(set(names)) == len(names)
    for name in names:
        assert 3 <= len(sentence_of(name).split()) <= 18, name


def test_the_map_in_the_readme_is_the_map_of_the_course():
    readme = read_source(course.ROOT / "README.md")
    rows = []
    for chapter in CHAPTERS:
        files = ", ".join(f"`meintorch/{name}`" for name in chapter.files)
        link = f"[{chapter.number} {chapter.title}](chapters/{chapter.slug}.md)"
        rows.append(f"| {link} | {files} | {len(chapter.tasks)} |")
    assert [line for line in readme.split("\n") if line.startswith("| [")] == rows


def test_the_picture_in_the_readme_shows_what_the_grader_prints():
    def words(svg: str) -> str:
        shown = re.findall(r"<text[^>]*>(.*?)</text>", svg)
        return "".join(html.unescape(" ".join(shown)).split())

    stale = "the picture is out of date: python -m grading.picture draws it anew"
    assert words(read_source(picture.PICTURE)) == words(picture.draw()), stale


def test_the_readme_names_only_commands_that_there_are(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for command in re.findall(r"python grader\.py ([a-z][a-z-]*)", read_source(course.ROOT / "README.md")):
        assert f"python grader.py {command}" in listed, command
