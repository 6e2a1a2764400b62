"""Where a task's answer stands in a source file.

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
from typing import TypeGuard

from grading.course.errors import CourseError

TASK_COMMENT = re.compile(r"#\s*(?:TODO\s+)?(\d\d\.\d+):\s*(.*)")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


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
class Block:
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
    comments = _task_comments(source)
    headed = [line for line, _, _ in comments]
    return tuple(_region_below(source, line, column, task, headed) for line, column, task in comments)


def _region_below(source: str, line: int, column: int, task: str, headed: list[int]) -> Region:
    """The region below a task's comment. `headed` are the lines of all such comments."""
    lines = source.split("\n")
    path, function = _innermost_function(parsed(source), line)
    if function is None or function.body[0].col_offset != column:
        raise CourseError(f"The comment of task {task} does not stand directly in a function's body.", line=line)
    body = function.body
    start = next((i for i, statement in enumerate(body) if first_line(statement) > line), len(body))
    stop, ends_before = start, None
    for statement in body[start:]:
        if _is_definition(statement) and any(_spans(statement, other) for other in headed):
            ends_before = statement.name
            break
        stop += 1
    if stop == start:
        raise CourseError(f"Nothing follows the comment of task {task} in its block.", line=line)
    comment_end = line
    while lines[comment_end].strip().startswith("#"):  # the comment may go over several lines
        comment_end += 1
    comment = [text.strip().lstrip("#").strip() for text in lines[line - 1 : comment_end]]
    comment[0] = comment[0].partition(":")[2].strip()
    last = last_line(body[stop - 1])
    return Region(
        task=task,
        qualname=".".join(path),
        comment="\n".join(comment),
        body=textwrap.dedent("\n".join(lines[comment_end:last])).strip("\n") + "\n",
        given=tuple(ast.dump(statement) for statement in body[_docstring_length(function) : start]),
        ends_before=ends_before,
        arguments=_arguments(function),
        line=line,
        last=last,
        indent=column,
    )


def without_answers(source: str) -> str:
    """A reference source with every task's answer replaced by its TODO."""
    for region in reversed(find_regions(source)):
        indented = textwrap.indent(region.stub(), " " * region.indent)
        source = splice(source, region.line, region.last, indented)
    return source


@lru_cache(maxsize=256)
def locate(source: str, region: Region) -> Block | None:
    """Find a region in a learner's source, whether or not its comment is still there.

    Returns None where it cannot be told apart from the rest: the function is missing, its parameters have other names,
    or the given statements before it were changed.
    """
    function = find_definition(parsed(source), region.qualname.split("."))
    if not isinstance(function, Function) or _arguments(function) != region.arguments:
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
        start = sum(last_line(statement) < marked[0] for statement in body)
    stop = len(body)
    if region.ends_before is not None:
        names = [statement.name if _is_definition(statement) else None for statement in body]
        if region.ends_before not in names[start:]:
            return None
        stop = names.index(region.ends_before, start)

    before = last_line(body[start - 1]) if start else _header_end(source, function)
    if start < len(body) and first_line(body[start]) <= before:  # `def f(x): return x`, or `a = 1; b = 2`
        return None
    last = last_line(body[stop - 1]) if stop > start else before
    if stop == len(body):
        # Comments at the end of the block belong to it.
        while last < len(lines) and _is_comment_at(lines[last], function.body[0].col_offset):
            last += 1
    return Block(before + 1, last, indent_of(source, function.body[0]), tuple(body[start:stop]))


def dump(node: ast.AST) -> str:
    """`ast.dump`, and a word for what is nested too deeply for it: that equals nothing of the reference's."""
    try:
        return ast.dump(node)
    except RecursionError:
        return "nested too deeply"


def find_definition(tree: ast.AST, path: list[str]) -> Definition | None:
    """Return the class or function of that qualified name; the last one, where there are several."""
    node: Definition | None = None
    for name in path:
        inside = [child for child in _definitions(node or tree) if child.name == name]
        if not inside:
            return None
        node = inside[-1]
    return node


def definition(tree: ast.AST, path: list[str]) -> Definition:
    """What `find_definition` returns, where it is known to be there. Raises LookupError otherwise."""
    node = find_definition(tree, path)
    if node is None:
        raise LookupError(f"there is no {'.'.join(path)}")
    return node


def definition_line(source: str, qualname: str) -> int | None:
    """The line of the named definition, or of the innermost one around it that exists."""
    tree = parsed(source)
    path = qualname.split(".")
    for length in range(len(path), 0, -1):
        node = find_definition(tree, path[:length])
        if node is not None:
            return node.lineno
    return None


def is_stub(block: Block) -> bool:
    """Is there nothing but `raise NotImplementedError`, `pass` and bare constants?"""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in block.statements
    ) and any(isinstance(statement, ast.Raise) for statement in block.statements)


def body_source(source: str, block: Block) -> str:
    """The text of a block, dedented, without the task's own comment."""
    lines = source.split("\n")[block.first - 1 : block.last]
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
    comments = []
    for number, line in enumerate(source.split("\n"), 1):
        match = TASK_COMMENT.match(line.strip())
        if match:
            comments.append((number, len(line) - len(line.lstrip()), match.group(1)))
    if not comments:
        return []
    texts = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant | ast.JoinedStr)]
    return [comment for comment in comments if not any(text.lineno <= comment[0] <= last_line(text) for text in texts)]


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """The classes and functions defined directly in a node, inside its if, try and with blocks too."""
    for child in ast.iter_child_nodes(node):
        if _is_definition(child):
            yield child
        elif isinstance(child, ast.stmt | ast.excepthandler):
            yield from _definitions(child)


def _innermost_function(tree: ast.AST, line: int) -> tuple[list[str], Function | None]:
    path: list[str] = []
    node = tree
    while True:
        inner = next((child for child in _definitions(node) if _spans(child, line)), None)
        if inner is None:
            return path, node if isinstance(node, Function) else None
        path.append(inner.name)
        node = inner


def _is_definition(node: ast.AST) -> TypeGuard[Definition]:
    return isinstance(node, Definition)


def last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if _is_definition(node) else []
    return min([node.lineno] + [decorator.lineno for decorator in decorators])


def _header_end(source: str, function: Function) -> int:
    """The line on which `def f(...) -> T:` ends. What stands between it and the first statement are comments."""
    rest = "\n".join(source.split("\n")[function.lineno - 1 :])
    tokens = tokenize.generate_tokens(io.StringIO(rest).readline)
    return function.lineno - 1 + next(token.end[0] for token in tokens if token.type == tokenize.NEWLINE)


def _docstring_length(function: Function) -> int:
    """1 if the body starts with a docstring, else 0."""
    return int(is_docstring(function.body[0]))


def is_docstring(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _spans(node: ast.stmt, line: int) -> bool:
    return first_line(node) <= line <= last_line(node)


def _arguments(function: Function) -> str:
    return ", ".join(node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))


def indent_of(source: str, statement: ast.stmt) -> str:
    return source.split("\n")[statement.lineno - 1][: statement.col_offset]


def _is_comment_at(line: str, column: int) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("#") and len(line) - len(stripped) >= column


def splice(source: str, first: int, last: int, text: str) -> str:
    """A source with other text in place of the lines first..last."""
    lines = source.split("\n")
    return "\n".join(lines[: first - 1] + text.rstrip("\n").split("\n") + lines[last:])
