"""Where a task's answer stands in a source file, and how to put another one in its place.

In the reference a comment `# 02.2: ...` heads the statements that answer task 02.2, to the end of the indented block or
to a nested `def` that holds a task of its own. That gives a region a qualified name (`Tensor.__mul__._backward`) and
the statements that are given before it. A learner's file is searched by that name, with or without the comment.
"""

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from grading.course.errors import CourseError

TASK_COMMENT = re.compile(r"#\s*(?:TODO\s+)?(\d\d\.\d+):\s*(.*)")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Region:
    """One place of one task in the reference."""

    task: str  # "02.2"
    qualname: str  # "Tensor.__mul__._backward"
    comment: str  # what follows "02.2: ", its lines joined by newlines
    body: str  # the answer's source, dedented, without the comment
    given: tuple[str, ...]  # ast.dump of the statements before it in the same block, the docstring left out
    ends_before: str | None  # the nested def that ends the region, if the end of the block does not
    arguments: str  # the function's parameter names: a body is written in terms of them
    line: int  # of the comment
    last: int  # line of the answer
    indent: int  # of its lines

    def stub(self) -> str:
        lines = self.comment.split("\n")
        comment = "\n".join([f"# TODO {self.task}: {lines[0]}"] + [f"# {line}" for line in lines[1:]])
        return f'{comment}\nraise NotImplementedError("TODO {self.task}")\n'

    def answer(self) -> str:
        lines = self.comment.split("\n")
        comment = "\n".join([f"# {self.task}: {lines[0]}"] + [f"# {line}" for line in lines[1:]])
        return f"{comment}\n{self.body}"


@dataclass(frozen=True)
class Place:
    """Lines first..last (1-based, inclusive) of a region in some file. Empty where last < first."""

    first: int
    last: int
    indent: str  # the white space before its statements
    statements: tuple[ast.stmt, ...]

    @property
    def line(self) -> int:
        """The line to name in a message."""
        return self.statements[0].lineno if self.statements else self.first


@lru_cache(maxsize=64)
def find_regions(source: str) -> tuple[Region, ...]:
    """Return the regions of a reference source, in the order of the file. Raises CourseError for a stray comment."""
    tree = parsed(source)
    lines = source.split("\n")
    comments = _task_comments(source)
    regions = []
    for line, column, task in comments:
        path, function = _innermost_function(tree, line)
        if function is None or function.body[0].col_offset != column:
            message = f"The comment of task {task} does not stand directly in a function's body."
            raise CourseError(message, line=line)
        body = function.body
        start = next((i for i, statement in enumerate(body) if _first_line(statement) > line), None)
        if start is None:
            raise CourseError(f"Nothing follows the comment of task {task} in its block.", line=line)
        stop = start
        while stop < len(body) and not (
            _is_definition(body[stop]) and any(_spans(body[stop], other) for other, _, _ in comments)
        ):
            stop += 1
        if stop == start:
            raise CourseError(f"Nothing follows the comment of task {task} in its block.", line=line)
        comment_end = line
        while lines[comment_end].strip().startswith("#"):  # the comment may go over several lines
            comment_end += 1
        comment = [TASK_COMMENT.match(lines[line - 1].strip()).group(2)]
        comment += [text.strip().lstrip("#").strip() for text in lines[line:comment_end]]
        answer = lines[comment_end : body[stop - 1].end_lineno]
        regions.append(
            Region(
                task=task,
                qualname=".".join(path),
                comment="\n".join(comment),
                body=textwrap.dedent("\n".join(answer)).strip("\n") + "\n",
                given=tuple(ast.dump(statement) for statement in body[_docstring_length(function) : start]),
                ends_before=body[stop].name if stop < len(body) else None,
                arguments=_arguments(function),
                line=line,
                last=body[stop - 1].end_lineno,
                indent=column,
            )
        )
    return tuple(regions)


def without_answers(source: str) -> str:
    """A reference source with every task's answer replaced by its TODO."""
    for region in reversed(find_regions(source)):
        indented = textwrap.indent(region.stub(), " " * region.indent)
        source = _splice(source, region.line, region.last, indented)
    return source


@lru_cache(maxsize=256)
def locate(source: str, region: Region) -> Place | None:
    """Find a region in a learner's source, whether or not its comment is still there.

    Returns None where it cannot be told apart from the rest: the function is missing, its parameters have other names,
    or the given statements before it were changed.
    """
    function = find_definition(parsed(source), region.qualname.split("."))
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or _arguments(function) != region.arguments:
        return None
    lines = source.split("\n")
    body = function.body
    start = _docstring_length(function)
    given = tuple(dump(statement) for statement in body[start : start + len(region.given)])
    start += len(given)
    if given != region.given:
        marked = [line for line, _, task in _task_comments(source) if task == region.task and _spans(function, line)]
        if not marked:
            return None
        start = sum(statement.end_lineno < marked[0] for statement in body)
    stop = len(body)
    if region.ends_before is not None:
        names = [statement.name if _is_definition(statement) else None for statement in body]
        if region.ends_before not in names[start:]:
            return None
        stop = names.index(region.ends_before, start)

    before = body[start - 1].end_lineno if start else _header_end(source, function)
    if start < len(body) and _first_line(body[start]) <= before:  # `def f(x): return x`, or `a = 1; b = 2`
        return None
    last = body[stop - 1].end_lineno if stop > start else before
    if stop == len(body):
        # Comments at the end of the block belong to it.
        while last < len(lines) and _is_comment_at(lines[last], function.body[0].col_offset):
            last += 1
    return Place(before + 1, last, _indent_of(source, function.body[0]), tuple(body[start:stop]))


def dump(node: ast.AST) -> str:
    """`ast.dump`, and a word for what is nested too deeply for it: that equals nothing of the reference's."""
    try:
        return ast.dump(node)
    except RecursionError:
        return "nested too deeply"


def find_definition(tree: ast.AST, path: list[str]) -> Definition | None:
    """Return the class or function of that qualified name; the last one, where there are several."""
    node = tree
    for name in path:
        node = next((child for child in reversed(list(_definitions(node))) if child.name == name), None)
        if node is None:
            return None
    return node


def definition_line(source: str, qualname: str) -> int | None:
    """The line of the named definition, or of the innermost one around it that exists."""
    tree = parsed(source)
    path = qualname.split(".")
    for length in range(len(path), 0, -1):
        found = find_definition(tree, path[:length])
        if found is not None:
            return found.lineno
    return None


def is_stub(place: Place) -> bool:
    """Is there nothing but `raise NotImplementedError`, `pass` and bare constants?"""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in place.statements
    ) and any(isinstance(statement, ast.Raise) for statement in place.statements)


def fill(source: str, region: Region, text: str) -> str:
    """Put `text` (dedented statements, comments included) in the place of a region whose place is known."""
    place = locate(source, region)
    if place is None:
        raise ValueError(f"task {region.task} is not found in {region.qualname}")
    return _splice(source, place.first, place.last, _indented(text, place.indent))


def put(source: str, region: Region, text: str, skeleton: str) -> str:
    """Like `fill`, but where the learner's function cannot be used it is replaced or added whole, from `skeleton`.

    `skeleton` is the stub of the same file: what is given around the region comes from there.
    Raises ValueError if Python could not read the result.
    """
    composed = _composed(source, region, text, skeleton)
    try:
        parsed(composed)
    except SyntaxError as error:
        raise ValueError(f"task {region.task} cannot be put in its place: {error}") from None
    return composed


def _composed(source: str, region: Region, text: str, skeleton: str) -> str:
    if not source.strip():
        return fill(skeleton, region, text)
    if locate(source, region) is not None:
        return fill(source, region, text)
    donor = fill(skeleton, region, text)
    tree, donor_tree = parsed(source), parsed(donor)
    path = region.qualname.split(".")
    depth = _depth_of_function(donor_tree, path)  # what gets exchanged
    wanted = _source_of(donor, find_definition(donor_tree, path[:depth]))
    found = find_definition(tree, path[:depth])
    if found is not None:
        return _splice(source, _first_line(found), found.end_lineno, _indented(wanted, _indent_of(source, found)))
    owner = find_definition(tree, path[: depth - 1]) if depth > 1 else None
    if isinstance(owner, ast.ClassDef):
        method = _indented(wanted, _indent_of(source, owner.body[0]))
        return _splice(source, owner.end_lineno + 1, owner.end_lineno, f"\n{method}")
    whole = _source_of(donor, find_definition(donor_tree, path[:1]))
    return f"{source.rstrip()}\n\n\n{whole}"


def _depth_of_function(tree: ast.AST, path: list[str]) -> int:
    """How many names of a path lead to the outermost function in it, a method or a function of the module."""
    return next(n for n in range(1, len(path) + 1) if not isinstance(find_definition(tree, path[:n]), ast.ClassDef))


def raising(source: str, region: Region) -> str:
    """A stub's source in which the outermost function around a region raises its TODO as soon as it is called."""
    path, tree = region.qualname.split("."), parsed(source)
    function = find_definition(tree, path[: _depth_of_function(tree, path)])
    body = function.body[_docstring_length(function) :]
    raised = _indented(f'raise NotImplementedError("TODO {region.task}")\n', _indent_of(source, body[0]))
    line = _first_line(body[0])
    return _splice(source, line, line - 1, raised)


def body_source(source: str, place: Place) -> str:
    """The text at a place, dedented, without the task's own comment."""
    lines = source.split("\n")[place.first - 1 : place.last]
    while lines and (not lines[0].strip() or TASK_COMMENT.match(lines[0].strip())):
        lines.pop(0)
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


@lru_cache(maxsize=64)
def parsed(source: str) -> ast.Module:
    """The syntax tree of a source. The same few files are looked at again and again, and their trees only read."""
    return ast.parse(source)


@lru_cache(maxsize=64)
def _task_comments(source: str) -> list[tuple[int, int, str]]:
    """(line, column, task) of every task comment that has a line to itself and does not stand inside a string."""
    found = []
    for number, line in enumerate(source.split("\n"), 1):
        match = TASK_COMMENT.match(line.strip())
        if match:
            found.append((number, len(line) - len(line.lstrip()), match.group(1)))
    if not found:
        return []
    texts = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant | ast.JoinedStr)]
    return [one for one in found if not any(text.lineno <= one[0] <= text.end_lineno for text in texts)]


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """The classes and functions defined directly in a node, inside its if, try and with blocks too."""
    for child in ast.iter_child_nodes(node):
        if _is_definition(child):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler):
            yield from _definitions(child)


def _innermost_function(tree: ast.AST, line: int) -> tuple[list[str], ast.FunctionDef | None]:
    path, node = [], tree
    while True:
        inner = next((child for child in _definitions(node) if _spans(child, line)), None)
        if inner is None:
            return path, node if isinstance(node, ast.FunctionDef) else None
        path.append(inner.name)
        node = inner


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno] + [decorator.lineno for decorator in getattr(node, "decorator_list", [])])


def _header_end(source: str, function: ast.FunctionDef) -> int:
    """The line on which `def f(...) -> T:` ends. What stands between it and the first statement are comments."""
    rest = "\n".join(source.split("\n")[function.lineno - 1 :])
    tokens = tokenize.generate_tokens(io.StringIO(rest).readline)
    return function.lineno - 1 + next(token.end[0] for token in tokens if token.type == tokenize.NEWLINE)


def _docstring_length(function: ast.FunctionDef) -> int:
    """1 if the body starts with a docstring, else 0."""
    return int(ast.get_docstring(function, clean=False) is not None)


def _spans(node: ast.stmt, line: int) -> bool:
    return _first_line(node) <= line <= node.end_lineno


def _arguments(function: ast.FunctionDef) -> str:
    return ", ".join(node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))


def _indent_of(source: str, statement: ast.stmt) -> str:
    return source.split("\n")[statement.lineno - 1][: statement.col_offset]


def _indented(text: str, indent: str) -> str:
    return textwrap.indent(textwrap.dedent(text), indent, lambda line: bool(line.strip()))


def _is_comment_at(line: str, column: int) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("#") and len(line) - len(stripped) >= column


def _source_of(source: str, node: Definition) -> str:
    return "\n".join(source.split("\n")[_first_line(node) - 1 : node.end_lineno]) + "\n"


def _splice(source: str, first: int, last: int, text: str) -> str:
    lines = source.split("\n")
    return "\n".join(lines[: first - 1] + text.rstrip("\n").split("\n") + lines[last:])
