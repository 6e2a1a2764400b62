"""`python grader.py course-check`: what is missing in a chapter or does not fit, in sentences with their places.

Each rule is a function that gives what is wrong, and stands here once: the course's own tests call it too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from grading.authoring import audit, readme_map, rehearsal, write_stubs
from grading.authoring.check_text import CORPORA, TASKS, Problems, broken_code, in_text, ladders, sections
from grading.authoring.mutants import mutants_of
from grading.authoring.templates import GAP
from grading.course import texts
from grading.course.chapters import CHAPTERS, REFERENCE, ROOT, TESTS, Chapter, Check, read_checks, survey
from grading.course.errors import CourseError, reading
from grading.course.files import read_source
from grading.course.regions import find_regions
from grading.verdict.sentences import sentence_of

LINES = 15  # of a task
LINES_OF_ALL = 60  # of a chapter's tasks
LONGER = {"02.3": 18}  # three tasks write it, and that is what it has in the end
NAME = (3, 18)  # words of a check's name
LEAST = {"wrong": 8, "right": 3}  # entries of a chapter in the corpora


def main(number: str | None = None) -> int:
    """Print what is wrong with a chapter, or with the course. Returns the command's exit status.

    Raises LookupError with the list of the chapters if there is no such chapter.
    """
    chapters, misfits = survey()
    numbers = sorted({chapter.number for chapter in chapters} | set(_numbers_of_files()))
    wanted = None if number is None else number.zfill(2)
    if wanted is not None and wanted not in numbers:
        raise LookupError(f"There is no chapter {number}. There are: {', '.join(numbers)}.")
    problems = [error for error in misfits if wanted is None or _is_about(error, wanted)]
    problems += [error for error in strays(chapters) if wanted is None or _is_about(error, wanted)]
    for chapter in chapters:
        if wanted in (None, chapter.number):
            problems += of_chapter(chapter, run=not misfits)
    files = {name for chapter in chapters if chapter.number == wanted for name in chapter.files}
    problems += [error for error in stubs() if wanted is None or error.file.removeprefix("meintorch/") in files]
    if not misfits and (stale := readme_map.problem(chapters)):
        problems.append(stale)
    sentences = list(dict.fromkeys(error.sentence for error in problems))  # what stops every chapter is said once
    print("\n".join(sentences), end="\n" * bool(sentences))
    what = "The course" if wanted is None else f"Chapter {wanted}"
    again = "python grader.py course-check" + (f" {wanted}" if wanted else "")
    if problems:
        print(f"\n{len(sentences)} to mend. Then again: {again}")
        return 1
    only = f" -k {wanted}" if wanted else ""
    print(f"{what} fits. Printed results, broken code and the corpora are gone through by the tests:")
    print(f"python -m pytest tests/course/proofs/test_texts.py tests/course/corpora -n 2{only}")
    return 0


def of_chapter(chapter: Chapter, run: bool = True) -> Problems:
    """What is wrong with one chapter. Its code is run where solutions and checks are there, never with run=False."""
    problems: Problems = []
    runnable = run
    for rule in (sections, ladders, broken_code, measure, tests, corpora):
        try:
            wrong = rule(chapter)
        except CourseError as error:  # the file cannot be read at all
            wrong = [error]
        problems += wrong
        runnable = runnable and not (wrong and rule in (ladders, tests))
    left = gaps(chapter)
    if runnable and not left:
        problems += rehearsal.of_chapter(chapter) or figures(chapter)
    return problems + left


def measure(chapter: Chapter) -> Problems:
    """4 to 8 tasks, 1 to 15 lines each, about 60 lines in all."""
    problems = []
    if not TASKS[0] <= len(chapter.tasks) <= TASKS[1]:
        message = f"The chapter has {len(chapter.tasks)} tasks. It should have {TASKS[0]} to {TASKS[1]}."
        problems.append(in_text(chapter, message))
    total = 0
    for task in chapter.tasks:
        lines = [line.strip() for part in task.parts for line in part.region.body.split("\n")]
        count = sum(bool(line) and not line.startswith("#") for line in lines)
        most = LONGER.get(task.revisits or task.id, LINES)
        total += count
        if not 1 <= count <= most:
            place = task.parts[0]
            message = f"The answer to {task.id} has {count} lines. It should have 1 to {most}."
            problems.append(CourseError(message, f"solutions/meintorch/{place.file}", place.region.line))
    if total > LINES_OF_ALL:
        message = f"The answers of the chapter have {total} lines together. It should be {LINES_OF_ALL} at most."
        problems.append(in_text(chapter, message))
    return problems


def tests(chapter: Chapter) -> Problems:
    """Each task has checks, with --goal too; the first is the milestone; their names are sentences, no two the same."""
    file = f"tests/{chapter.tests.name}"
    if not chapter.tests.is_file():
        return [CourseError(f"The file is missing. To have it again, if git knows it: git checkout {file}", file)]
    checks, problems = read_checks(chapter)
    if checks and checks[0].goal:
        message = "The first check of a chapter is its milestone, and no check of --goal."
        problems.append(CourseError(message, file, checks[0].line))
    for task in chapter.tasks:
        if not any(check.task == task.id and check.goal for check in checks):
            message = f"Task {task.id} has no check with @pytest.mark.goal, so --goal asks no more of it."
            problems.append(CourseError(message, file))
    return problems + names(checks, file)


def names(checks: tuple[Check, ...], file: str) -> Problems:
    problems = []
    for place, check in enumerate(checks):
        if check.name in [other.name for other in checks[:place]]:
            message = f"There are two tests of the name {check.name}: Python forgets the first."
            problems.append(CourseError(message, file, check.line))
        words = len(sentence_of(check.name).split())
        if not NAME[0] <= words <= NAME[1]:
            message = f"The name of {check.name} has {words} words. A sentence of {NAME[0]} to {NAME[1]} is shown."
            problems.append(CourseError(message, file, check.line))
    return problems


def figures(chapter: Chapter) -> Problems:
    """The table of the machine-made mistakes counts those of the chapter as it is now."""
    row = audit.read_figures().get(chapter.number)
    mutants = [mutant for task in chapter.tasks for mutant in mutants_of(task)]
    equivalent = sum(audit.key(mutant) in audit.equivalents() for mutant in mutants)
    if row and row[:2] == (len(mutants), equivalent):
        return []
    message = (
        f"The figures of chapter {chapter.number} are not those of its reference. Once everything else fits, and with "
        f"minutes to wait: python -m grading.authoring.audit {chapter.number} --write"
    )
    return [CourseError(message, "tests/course/proofs/mutants.md")]


def corpora(chapter: Chapter) -> Problems:
    """Eight mistakes, one a task at least, and three right answers, each with a body for each place of its task."""
    problems = []
    tasks = {task.id: task for task in chapter.tasks}
    for kind, least in LEAST.items():
        path = CORPORA / kind / f"{chapter.slug}.md"
        file = f"tests/course/corpora/{kind}/{path.name}"
        entries = list(_entries(path)) if path.is_file() else []
        counted = [task for _, task, _ in entries if task in tasks]
        if len(counted) < least:
            what = "mistakes" if kind == "wrong" else "right answers in other styles"
            problems.append(CourseError(f"There are {len(counted)} {what}. There should be {least} at least.", file))
        for line, task, bodies in entries:
            if task not in tasks:
                message = (
                    f'Chapter {chapter.number} has no task {task}. An entry is headed "## {chapter.number}.1 Its name".'
                )
                problems.append(CourseError(message, file, line))
            elif bodies != len(tasks[task].parts):
                message = f"There are {bodies} listings for {len(tasks[task].parts)} places of {task}: one for each."
                problems.append(CourseError(message, file, line))
        if kind == "wrong":
            problems += [
                CourseError(f"There is no mistake of {task} yet.", file) for task in tasks if task not in counted
            ]
    return problems


def _entries(path: Path) -> Iterator[tuple[int, str, int]]:
    """The entries of a file of the corpora: line, task and number of listings."""
    with reading(path.relative_to(ROOT).as_posix()):
        text = read_source(path)
    starts = [match.start() for match in re.finditer(r"^## ", text, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(text)]):
        heading = text[start:end].partition("\n")[0].split()
        line = text.count("\n", 0, start) + 1
        yield line, heading[1] if len(heading) > 1 else "", len(texts.listings(text[start:end]))


def gaps(chapter: Chapter) -> Problems:
    """The marks that `new` has left in the chapter's files."""
    paths = [chapter.text, chapter.tests, *(REFERENCE / name for name in chapter.files)]
    paths += [CORPORA / kind / f"{chapter.slug}.md" for kind in LEAST]
    problems = []
    for path in paths:
        source = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for line, text in enumerate(source.split("\n"), 1):
            if GAP in text:
                what = text.partition(GAP)[2].strip().removesuffix('"""')
                problems.append(CourseError(f"{GAP} {what}", path.relative_to(ROOT).as_posix(), line))
    return problems


def stubs() -> Problems:
    """meintorch/ holds the stubs of the reference, and nothing else."""
    try:
        lines = write_stubs.differences()
    except CourseError:  # said already: the reference cannot be read
        return []
    problems = []
    for name, _, what in (line.partition(" ") for line in lines):
        how = "To have the reference's stub: python grader.py stubs"
        if what == "is not in the reference":
            how = "If nothing needs it, delete it."
        problems.append(CourseError(f"The file {what}. {how}", f"meintorch/{name}"))
    return problems


def strays(chapters: tuple[Chapter, ...]) -> Problems:
    """Tests, corpora and tasks of the reference that belong to no chapter, and two texts with the same number."""
    numbers = [chapter.number for chapter in chapters]
    problems = []
    for chapter in chapters:
        if numbers.count(chapter.number) > 1:
            problems.append(in_text(chapter, f"There are two texts with the number {chapter.number}."))
    for path in sorted([*TESTS.glob("test_[0-9][0-9]_*.py"), *CORPORA.glob("*/[0-9][0-9]_*.md")]):
        slug = path.stem.removeprefix("test_")
        if not (CHAPTERS / f"{slug}.md").is_file():
            message = f"This belongs to no chapter: chapters/{slug}.md is missing."
            problems.append(CourseError(message, path.relative_to(ROOT).as_posix()))
    for path in sorted(REFERENCE.rglob("*.py")):
        try:
            found = find_regions(read_source(path))
        except (CourseError, SyntaxError, UnicodeDecodeError):  # the survey has said so
            continue
        for region in found:
            if region.task[:2] not in numbers:
                file = f"solutions/meintorch/{path.relative_to(REFERENCE).as_posix()}"
                message = f"Task {region.task} belongs to no chapter: chapters/{region.task[:2]}_....md is missing."
                problems.append(CourseError(message, file, region.line))
    return problems


def _numbers_of_files() -> Iterator[str]:
    """The chapters that have a text, tests or a task in the reference, whether or not they fit."""
    for path in [*(ROOT / "chapters").glob("[0-9][0-9]_*.md"), *TESTS.glob("test_[0-9][0-9]_*.py")]:
        yield path.stem.removeprefix("test_")[:2]


def _is_about(error: CourseError, number: str) -> bool:
    """Is it in a file of this chapter, or does it speak of one of its tasks? What speaks of none concerns all."""
    numbers = set(re.findall(r"\b(\d\d)[._]", f"{Path(error.file).name} {error.message}"))
    return not numbers or number in numbers
