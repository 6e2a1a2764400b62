"""Puts another answer in the place of a task's: a solution, a stub, or what somebody has written."""

import ast
import textwrap

from grading.course.regions import (
    Definition,
    Region,
    definition,
    find_definition,
    first_line,
    indent_of,
    is_docstring,
    last_line,
    locate,
    parsed,
    splice,
)


def fill(source: str, region: Region, text: str) -> str:
    """Put `text` (dedented statements, comments included) in the place of a region whose place is known."""
    block = locate(source, region)
    if block is None:
        raise ValueError(f"task {region.task} is not found in {region.qualname}")
    return splice(source, block.first, block.last, _indented(text, block.indent))


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
    wanted = _source_of(donor, definition(donor_tree, path[:depth]))
    theirs = find_definition(tree, path[:depth])
    if theirs is not None:
        return splice(source, first_line(theirs), last_line(theirs), _indented(wanted, indent_of(source, theirs)))
    owner = find_definition(tree, path[: depth - 1]) if depth > 1 else None
    if isinstance(owner, ast.ClassDef):
        method = _indented(wanted, indent_of(source, owner.body[0]))
        return splice(source, last_line(owner) + 1, last_line(owner), f"\n{method}")
    whole = _source_of(donor, definition(donor_tree, path[:1]))
    return f"{source.rstrip()}\n\n\n{whole}"


def _depth_of_function(tree: ast.AST, path: list[str]) -> int:
    """How many names of a path lead to the outermost function in it, a method or a function of the module."""
    return next(n for n in range(1, len(path) + 1) if not isinstance(find_definition(tree, path[:n]), ast.ClassDef))


def raising(source: str, region: Region) -> str:
    """A stub's source in which the outermost function around a region raises its TODO as soon as it is called."""
    path, tree = region.qualname.split("."), parsed(source)
    function = definition(tree, path[: _depth_of_function(tree, path)])
    body = [statement for statement in function.body if not is_docstring(statement)]
    raised = _indented(f'raise NotImplementedError("TODO {region.task}")\n', indent_of(source, body[0]))
    line = first_line(body[0])
    return splice(source, line, line - 1, raised)


def _indented(text: str, indent: str) -> str:
    return textwrap.indent(textwrap.dedent(text), indent, lambda line: bool(line.strip()))


def _source_of(source: str, node: Definition) -> str:
    return "\n".join(source.split("\n")[first_line(node) - 1 : last_line(node)]) + "\n"
