"""`python grader.py new`: what a task or a chapter needs, in every file that it needs, each gap with a mark.

Everything is made in memory first and then written; where something cannot be written, nothing is changed.
"""

import ast
import builtins
import keyword
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from grading.authoring import imports, readme_map
from grading.authoring import templates as t
from grading.authoring.check_text import CORPORA, TASKS
from grading.course import texts
from grading.course.chapters import CHAPTERS, PACKAGE, REFERENCE, ROOT, TESTS, Chapter, Part, Task, chapters
from grading.course.errors import CourseError, GraderError, reading
from grading.course.files import read_source, write_source
from grading.course.regions import find_regions, last_line

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven")


class Refused(Exception):
    """Nothing was written. The text says why, and what to ask for instead."""


def main(number: str, title: str, first: str | None = None) -> int:
    """Write task "05.7" or chapter "14". Returns the command's exit status.

    first  of a chapter: the title of its first task, which is called as the chapter without one
    Raises Refused, GraderError where a file cannot be written, and CourseError where the course does not fit now.
    """
    if not re.fullmatch(r"\d{1,2}(\.\d{1,2})?", number):
        raise Refused(f"{number} is no number of a task or a chapter. {_what_is_next()}")
    chapter, _, task = number.partition(".")
    if task:
        if first is not None:
            raise Refused(f'A task has one title: python grader.py new {number} "{title}"')
        files, look_at = _task(chapter.zfill(2), int(task), title)
    else:
        files, look_at = _chapter(chapter.zfill(2), title, title if first is None else first), []
    _write(files)
    for path, text in files.items():
        gap = next((line for line, content in enumerate(text.split("\n"), 1) if t.GAP in content), None)
        print(f"written: {_name(path)}" + (f"   the first gap: line {gap}" if gap else ""))
    for place in look_at:
        print(f"look at: {place}")
    print(
        f"\nWhat waits for you has the mark {t.GAP} in each file. Next: python grader.py stubs"
        f"\nThen, again and again until nothing is left: python grader.py course-check {chapter.zfill(2)}"
    )
    return 0


def name_of(title: str) -> str:
    """The name in the code that a title makes: "Global pool" -> global_pool. Raises Refused if it makes none."""
    title = title.strip()
    if not title:
        raise Refused('The title is empty. For example: python grader.py new 05.7 "Softplus"')
    name = re.sub(r"[ _-]+", "_", title.lower())
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise Refused(
            f"{title!r} makes no Python name, and the function gets its name from it: begin with a letter and use "
            "letters of English, digits, spaces and hyphens. The heading may be changed in the text afterwards."
        )
    if keyword.iskeyword(name) or hasattr(builtins, name):
        raise Refused(f"{name} is a word of Python's own, which would be hidden. Take another title for now.")
    return name


def _task(number: str, place: int, title: str) -> tuple[dict[Path, str], list[str]]:
    """The files with a new task in them, and the places of the text that its author should look at as well."""
    chapter = next((chapter for chapter in chapters() if chapter.number == number), None)
    if chapter is None:
        raise Refused(f"There is no chapter {number}. {_what_is_next()}")
    task, name = f"{number}.{place}", name_of(title)
    taken = {int(one.id.partition(".")[2]): one for one in chapter.tasks}
    if place in taken:
        raise Refused(f"Task {task} is there already: {taken[place].title}. {_next_task(chapter)}")
    if place != max(taken, default=0) + 1:
        raise Refused(f"Task {task} is not the next one. {_next_task(chapter)}")
    if len(taken) >= TASKS[1]:
        raise Refused(
            f"Chapter {number} has {len(taken)} tasks, the most that a chapter has. Make one of two of them, or begin "
            f'a chapter: python grader.py new {_next_chapter()} "Its title"'
        )
    file = chapter.files[-1] if chapter.files else f"{chapter.slug[3:]}.py"
    corpora = [CORPORA / kind / f"{chapter.slug}.md" for kind in ("wrong", "right")]
    sources = {path: _read(path) for path in (chapter.text, REFERENCE / file, chapter.tests, *corpora)}
    for path in (REFERENCE / file, chapter.tests):
        with reading(_name(path)):
            names = imports.names_in(sources[path])
        if name in names:
            raise Refused(f"{_name(path)} has the name {name} already. Take another title for now.")
    words = {"task": task, "number": number, "title": title.strip(), "name": name}
    files = {
        chapter.text: _with_section(sources[chapter.text], chapter, t.fill(t.task_section(chapter), **words), task),
        REFERENCE / file: _with_function(sources[REFERENCE / file], chapter, file, t.fill(t.FUNCTION, **words)),
        chapter.tests: _with_checks(sources[chapter.tests], chapter, file, words),
    }
    for path, entry in zip(corpora, (t.WRONG, t.RIGHT)):
        files[path] = f"{sources[path].rstrip()}\n\n{t.fill(entry, **words)}"
    grown = replace(chapter, tasks=(*chapter.tasks, _as_task(task, title, file, files[REFERENCE / file])))
    files.update(_readme([grown if one is chapter else one for one in chapters()]))
    return files, _look_at(files[chapter.text], chapter)


def _chapter(number: str, title: str, first: str) -> dict[Path, str]:
    """The files of a new chapter with its first task."""
    there = next((chapter for chapter in chapters() if chapter.number == number), None)
    if there is not None:
        raise Refused(f"Chapter {number} is there already: {there.title}. {_next_task(there)}\n{_what_is_next()}")
    if number != _next_chapter():
        raise Refused(f"Chapter {number} is not the next one.\n{_what_is_next()}")
    module, name = name_of(title), name_of(first)
    slug, task = f"{number}_{module}", f"{number}.1"
    words = {"task": task, "number": number, "name": name, "module": module}
    section = t.fill(t.task_section(None), **words, title=first.strip())
    tests = t.fill(t.TESTS + "\n\n" + t.CHECK + "\n\n" + t.GOAL_CHECK, **words)
    files = {
        CHAPTERS / f"{slug}.md": t.fill(t.CHAPTER, section=section, **words, title=title.strip()),
        REFERENCE / f"{module}.py": t.fill(t.MODULE + t.FUNCTION, **words),
        TESTS / f"test_{slug}.py": tests,
    }
    for kind, entry in (("wrong", t.WRONG), ("right", t.RIGHT)):
        files[CORPORA / kind / f"{slug}.md"] = t.fill(f"{t.CORPUS_TITLES[kind]}\n{entry}", **words)
    for path in [*files, PACKAGE / f"{module}.py"]:
        if path.exists():
            raise Refused(f"{_name(path)} is there already. Take another title, or move that file away.")
        if not path.parent.is_dir():
            raise Refused(f"There is no folder {_name(path.parent)}: this is not the whole course. Clone it anew.")
    init = REFERENCE / "__init__.py"
    files[init] = f"{_read(init).rstrip()}\nfrom meintorch import {module}\n"
    tasks = (_as_task(task, first, f"{module}.py", files[REFERENCE / f"{module}.py"]),)
    files.update(_readme([*chapters(), Chapter(number, slug, title.strip(), tasks)]))
    return files


def _as_task(task: str, title: str, file: str, source: str) -> Task:
    parts = tuple(Part(file, region) for region in find_regions(source) if region.task == task)
    return Task(task, title.strip(), parts)


def _readme(grown: list[Chapter]) -> dict[Path, str]:
    readme = readme_map.written(grown)
    return {} if readme is None else {readme_map.README: readme}


def _with_section(text: str, chapter: Chapter, section: str, task: str) -> str:
    """The text with a task's section behind the last one, and with its number where a coding agent is told how many."""
    lines, fenced = text.split("\n"), False
    start = max((heading.line for heading in texts.outline(text)[1]), default=0)
    for place, line in enumerate(lines[start:], start):
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("## ") and (start or line == "## Check it"):
            lines[place:place] = section.rstrip("\n").split("\n") + [""]
            break
    else:
        message = "There is no section after the tasks, so a new one has no place: ## Check it."
        raise CourseError(message, f"chapters/{chapter.slug}.md", start or None)
    text, own = "\n".join(lines), [one.id for one in chapter.tasks if not one.revisits]
    return re.sub(rf"(to\s+TODO ){re.escape(own[-1])}\b", rf"\g<1>{task}", text) if own else text


def _with_function(source: str, chapter: Chapter, file: str, function: str) -> str:
    """The reference with a function behind the definition that holds the last of the chapter's tasks in this file."""
    last = max(part.region.line for task in chapter.tasks for part in task.parts if part.file == file)
    node = next(node for node in ast.parse(source).body if node.lineno <= last <= last_line(node))
    return _after_line(source, last_line(node), function)


def _with_checks(source: str, chapter: Chapter, file: str, words: Mapping[str, str]) -> str:
    """The test file with a check behind the last one, a check behind the last with --goal, and what both import."""
    ends = {node.name: last_line(node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    plain = max(ends[check.name] for check in chapter.checks if not check.goal)
    goal = max((ends[check.name] for check in chapter.checks if check.goal), default=plain)
    for line, template in sorted([(plain, t.CHECK), (goal, t.GOAL_CHECK)], key=lambda one: -one[0]):
        source = _after_line(source, line, "\n\n" + t.fill(template, **words))
    source = imports.with_import(source, "tests._helpers", "CheckFailed")
    module = file.removesuffix(".py").replace("/", ".")
    return imports.with_import(source, f"meintorch.{module}", words["name"])


def _after_line(source: str, line: int, text: str) -> str:
    lines = source.split("\n")
    return "\n".join(lines[:line] + text.rstrip("\n").split("\n") + lines[line:])


def _look_at(text: str, chapter: Chapter) -> list[str]:
    """Where the text says how many tasks there are, in words."""
    before = sum(not one.revisits for one in chapter.tasks)
    word = WORDS[before] if before < len(WORDS) else str(before)
    places = []
    for number, line in enumerate(text.split("\n"), 1):
        counted = re.search(rf"\b{word} (places|tasks|gaps|functions|methods)\b", line, re.IGNORECASE)
        if counted:
            places.append(f'chapters/{chapter.slug}.md, line {number}: "{counted.group()}" may be one more now')
    return places


def _write(files: Mapping[Path, str]) -> None:
    """Write all of these or none. Raises GraderError where one cannot be written."""
    before = {path: path.read_bytes() if path.is_file() else None for path in files}
    done: list[Path] = []
    try:
        for path, text in files.items():
            done.append(path)
            write_source(path, text)
    except BaseException as error:
        for path in done:
            old = before[path]
            if old is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != old:
                path.write_bytes(old)
        if isinstance(error, OSError):
            raise GraderError(f"{_name(done[-1])} could not be written, so nothing was changed: {error}") from None
        raise


def _read(path: Path) -> str:
    if not path.is_file():
        raise Refused(f"{_name(path)} is missing, which a new task needs: this is not the whole course. Clone it anew.")
    with reading(_name(path)):
        return read_source(path)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _next_chapter() -> str:
    return f"{max(int(chapter.number) for chapter in chapters()) + 1:02}"


def _what_is_next() -> str:
    return f'The next chapter: python grader.py new {_next_chapter()} "Its title"'


def _next_task(chapter: Chapter) -> str:
    place = max((int(task.id.partition(".")[2]) for task in chapter.tasks), default=0) + 1
    if place > TASKS[1]:
        return f"Chapter {chapter.number} has {len(chapter.tasks)} tasks, the most that a chapter has."
    return f'The next task of chapter {chapter.number}: python grader.py new {chapter.number}.{place} "Its title"'
