"""The names of a module, and one more name in its imports, in the order that ruff has them in."""

import ast
import builtins

WIDTH = 120


def names_in(source: str) -> set[str]:
    """The names that a module binds at its top level: definitions, imports and assignments."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            stored = [one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
            names.update(one.id for one in stored)
    return names - set(dir(builtins))


def with_import(source: str, module: str, name: str) -> str:
    """A test file's source in which `from module import name` stands too, beside what is imported from there already.

    Where nothing is, it is a line of its own before the import of the checks' helpers.
    """
    lines = source.split("\n")
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
    for node in statements:
        known = [alias.name for alias in node.names]
        if node.module == module and not any(alias.asname for alias in node.names):
            if name not in known:
                place = next((i for i, other in enumerate(known) if _order(other) > _order(name)), len(known))
                known.insert(place, name)
                several = last_line(node) > node.lineno
                lines[node.lineno - 1 : last_line(node)] = _statement(module, known, several)
            return "\n".join(lines)
    helpers = [node.lineno for node in statements if node.module == "tests._helpers"]
    end = max(map(last_line, statements), default=0)
    line = helpers[0] - 1 if helpers else end
    return "\n".join(lines[:line] + [f"from {module} import {name}"] + lines[line:])


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _statement(module: str, names: list[str], several: bool) -> list[str]:
    """The lines of an import, in one where they fit and did before."""
    line = f"from {module} import {', '.join(names)}"
    if several or len(line) > WIDTH:
        return [f"from {module} import (", *(f"    {name}," for name in names), ")"]
    return [line]


def _order(name: str) -> tuple[int, str]:
    """Constants first, then classes, then the rest."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name
