"""Machine-made mistakes: the answers of the reference, each with one small thing changed.

Why no tool: cosmic-ray and mutmut mutate whole files or functions, here only the statements of a task count. Neither
knows the mistakes that matter most here (a lost `.T`, `=` for `+=`, a dropped line, `data` for `grad`, a result that is
cut to an integer, something that the first call leaves behind for the second), and the judge has to be this course's
grader on a stage, not pytest beside the sources. What is left of a tool then is less than what it takes to bend one.
The changes are made in the text, so that a mutant reads as a learner would have typed it.
"""

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grading.course.chapters import Part, Task, reference
from grading.course.regions import find_definition, parsed

OPERATORS = {
    ast.Add: ("+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: ("*", ["/", "+"]),
    ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["/"]),
    ast.Mod: ("%", ["*"]),
    ast.Pow: ("**", ["*"]),
    ast.MatMult: ("@", ["*"]),
    ast.And: ("and", ["or"]),
    ast.Or: ("or", ["and"]),
    ast.Lt: ("<", ["<=", ">"]),
    ast.LtE: ("<=", ["<", ">="]),
    ast.Gt: (">", [">=", "<"]),
    ast.GtE: (">=", [">", "<="]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.MatMult)  # a - b is not b - a
PARTNERS = [("self", "other"), ("a", "b"), ("left", "right"), ("data", "grad"), ("beta1", "beta2")]
PARTNER = {**dict(PARTNERS), **{two: one for one, two in PARTNERS}}
MODULES = ("np", "math")
NUMBERS_ONLY = ("value.py", "mlp.py")  # here there are no arrays
COUNTED = ("ndim", "shape", "size")  # whole numbers, of which none is nearly another

Node = ast.expr | ast.stmt | ast.keyword  # what has a place in the text
Edit = tuple[int, int, str]  # the first byte that goes, the one after the last, and what comes in their place


@dataclass(frozen=True)
class Mutant:
    """An answer of the reference with one thing changed. Its lines tell it from the others, wherever they stand."""

    task: str
    part: Part
    old: str  # the lines that were changed
    new: str  # the lines in their place
    body: str  # the whole answer

    def __str__(self) -> str:
        old, new = (" ".join(lines.split()) for lines in (self.old, self.new))
        return f"{self.task}  {old}  ->  {new}"


def mutants_of(task: Task) -> list[Mutant]:
    """Every mutant of a task, no two the same, in the order of its lines. None of a task that goes back to another."""
    mutants = []
    for part in () if task.revisits else task.parts:
        body = _without_comments(part.region.body)
        tree = ast.parse(body)
        known = {ast.dump(tree)}
        for first, last, text in sorted(_edits(_Source(body, part), tree)):
            raw = body.encode()
            mutated = (raw[:first] + text.encode() + raw[last:]).decode()
            try:
                dump = ast.dump(ast.parse(mutated))
            except SyntaxError:  # `pass` has no value, `not` cannot stand everywhere
                continue
            if dump not in known:
                known.add(dump)
                mutants.append(Mutant(task.id, part, *_difference(body, mutated), mutated))
    return mutants


class _Source:
    """A source by the nodes of its tree."""

    def __init__(self, body: str, part: Part):
        self.raw = body.encode()
        path = part.region.qualname.split(".")
        function = find_definition(parsed(reference()[part.file]), path)
        assert isinstance(function, ast.FunctionDef)  # a region stands in one
        self.returns = ast.unparse(function.returns) if function.returns else ""
        self.arguments = [argument.arg for argument in function.args.args]
        self.of_numbers = part.file in NUMBERS_ONLY
        self.starts = [0]  # of the lines, in bytes, as the columns of a node are
        for line in self.raw.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def span(self, node: Node) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None  # it was read from a text
        first = self.starts[node.lineno - 1] + node.col_offset
        return first, self.starts[node.end_lineno - 1] + node.end_col_offset

    def cut(self, first: int, last: int) -> str:
        return self.raw[first:last].decode()

    def text(self, node: Node) -> str:
        return self.cut(*self.span(node))

    def replaced(self, node: Node, text: str) -> Edit:
        return *self.span(node), text

    def exchanged(self, left: Node, right: Node) -> Edit:
        (first, end), (start, last) = self.span(left), self.span(right)
        return first, last, self.text(right) + self.cut(end, start) + self.text(left)

    def signs(self, left: Node, right: Node, operator: ast.AST) -> Iterator[Edit]:
        """The sign between two operands, exchanged for others."""
        sign, others = OPERATORS[type(operator)]
        first = self.span(left)[1]
        first += self.cut(first, self.span(right)[0]).index(sign)  # between them are only spaces and brackets
        for other in others:
            yield first, first + len(sign), other


def _edits(source: _Source, tree: ast.Module) -> Iterator[Edit]:
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if "state" in source.arguments:  # something else is kept in it, and that is no array
        yield 0, 0, 'state["calls"] = state.get("calls", 0) + 1\n'
    signed = {node.operand for node in nodes if isinstance(node, ast.UnaryOp)}  # of -1, the 1 is not changed by itself
    for node in nodes:
        if isinstance(node, ast.stmt):
            yield source.replaced(node, "pass")  # a missing line
        if isinstance(node, ast.Name) and PARTNER.get(node.id) in names:
            yield source.replaced(node, PARTNER[node.id])
        for kind, edits in EDITS.items():
            if isinstance(node, kind) and not (node in signed and kind is ast.Constant):
                yield from edits(source, node)


def _of_change(source: _Source, node: ast.AugAssign) -> Iterator[Edit]:
    sign, others = OPERATORS[type(node.op)]
    first, last = source.span(node.target)[1], source.span(node.value)[0]
    for new in ("=", f"{others[0]}="):
        yield first, last, source.cut(first, last).replace(f"{sign}=", new)
    if not isinstance(node.target, ast.Name) and not isinstance(node.value, ast.Constant):
        yield source.replaced(node.value, _whole(source, node.value))


def _of_assignment(source: _Source, node: ast.Assign) -> Iterator[Edit]:
    (target, *others), value = node.targets, node.value
    if others or isinstance(target, ast.Tuple):
        return
    name = source.text(target)
    if isinstance(target, ast.Name):
        if source.arguments[:1] == ["self"] and any(isinstance(part, ast.Call) for part in ast.walk(value)):
            yield source.replaced(
                value, f"vars(self).setdefault({name!r}, {source.text(value)})"
            )  # made once, and kept
        if isinstance(value, ast.Call) and source.text(value.func) == "np.expand_dims":  # one after the other
            array, axes = map(source.text, value.args)
            if array == name:
                yield source.replaced(
                    node, f"for one in {axes}:\n{' ' * node.col_offset}    {name} = np.expand_dims({array}, one)"
                )
        return
    if not isinstance(value, ast.Constant):
        yield source.replaced(value, _whole(source, value))
    first, last = source.span(target)[1], source.span(value)[0]
    yield first, last, " += "  # what an earlier call has left stays in it
    if isinstance(value, ast.Name | ast.Attribute) or getattr(value, "value", None) is True:
        yield source.replaced(value, f"not {name}")  # back again at the second call


def _of_return(source: _Source, node: ast.Return) -> Iterator[Edit]:
    """The result gets another type: a whole number or a bool, or an array of them."""
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
    for value in values:
        if source.returns == "float" or source.returns.startswith("tuple[float"):
            yield from (
                source.replaced(value, new) for new in (_number(source, value), f"bool({source.text(value)})", "0")
            )
        elif "np.ndarray" in source.returns:
            yield from (source.replaced(value, f"({source.text(value)}).astype({kind})") for kind in ("int", "bool"))


def _whole(source: _Source, node: ast.expr) -> str:
    """The same, cut to whole numbers."""
    return _number(source, node) if source.of_numbers else f"np.asarray({source.text(node)}).astype(int)"


def _number(source: _Source, node: ast.expr) -> str:
    return f"int({source.text(node)})"


def _of_operation(source: _Source, node: ast.BinOp) -> Iterator[Edit]:
    yield from source.signs(node.left, node.right, node.op)
    for operand in (node.left, node.right):  # the other one is forgotten
        yield source.replaced(node, source.text(operand))
    if isinstance(node.op, ORDERED):
        yield source.exchanged(node.left, node.right)


def _of_and_or(source: _Source, node: ast.BoolOp) -> Iterator[Edit]:
    for left, right in pairwise(node.values):
        yield from source.signs(left, right, node.op)


def _of_comparison(source: _Source, node: ast.Compare) -> Iterator[Edit]:
    for left, right, operator in zip([node.left, *node.comparators], node.comparators, node.ops):
        yield from source.signs(left, right, operator)
    (operator, *others), sides = node.ops, [node.left, node.comparators[0]]
    parts = [part for side in sides for part in ast.walk(side)]
    counted = any(isinstance(part, ast.Constant) or getattr(part, "attr", "") in COUNTED for part in parts)
    if isinstance(operator, ast.Eq) and not others and not counted:  # nearly as large as the largest is not the largest
        yield source.replaced(node, f"np.isclose({', '.join(map(source.text, sides))})")


def _of_sign(source: _Source, node: ast.UnaryOp) -> Iterator[Edit]:
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):  # mostly an axis, counted from the end
        yield source.replaced(node, "0")
        number: Any = node.operand.value
        yield source.replaced(node, f"-{number + 1}")
    yield source.replaced(node, source.text(node.operand))


def _of_constant(source: _Source, node: ast.Constant) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield source.replaced(node, repr(not value))
    elif isinstance(value, int | float):
        for other in (1 - value, 2) if value in (0, 1) else (value + 1, 0):
            yield source.replaced(node, repr(type(value)(other)))


def _of_attribute(source: _Source, node: ast.Attribute) -> Iterator[Edit]:
    if node.attr == "T":
        yield source.replaced(node, source.text(node.value))
    elif node.attr in PARTNER:
        yield source.replaced(node, f"{source.text(node.value)}.{PARTNER[node.attr]}")


def _of_slice(source: _Source, node: ast.Slice) -> Iterator[Edit]:
    for bound in filter(None, (node.lower, node.upper)):
        yield source.replaced(bound, "")


def _of_call(source: _Source, node: ast.Call) -> Iterator[Edit]:
    # The call is forgotten: exp(x) is x, and so is x.reshape(shape).
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    owner = None if isinstance(owner, ast.Name) and owner.id in MODULES else owner
    for inside in filter(None, [owner, *node.args[:1]]):
        yield source.replaced(node, source.text(inside))
    # Arguments change places, or one of them is forgotten.
    for left, right in pairwise(node.args):
        yield source.exchanged(left, right)
    arguments: list[Node] = [*node.args, *node.keywords]
    for before, argument in pairwise(arguments):
        first, last = source.span(before)[1], source.span(argument)[1]
        if source.cut(first, source.span(argument)[0]).strip() == ",":
            yield first, last, ""
    for keyword in node.keywords:
        if keyword.arg == "axis" and isinstance(keyword.value, ast.Name):
            yield source.replaced(keyword.value, "0")
            yield source.replaced(keyword.value, "-1")
        elif keyword.arg == "axis" and isinstance(keyword.value, ast.Tuple):
            for element in keyword.value.elts:
                others = [source.text(other) for other in keyword.value.elts if other is not element]
                yield source.replaced(keyword.value, f"({', '.join(others)},)")
    if source.text(node.func) in ("np.zeros", "np.zeros_like"):
        yield source.replaced(node, "0.0")  # a number where an array belongs


def _of_condition(source: _Source, node: ast.If | ast.While | ast.IfExp | ast.comprehension) -> Iterator[Edit]:
    for condition in node.ifs if isinstance(node, ast.comprehension) else [node.test]:
        yield source.replaced(condition, f"not ({source.text(condition)})")
        yield source.replaced(condition, "True")
        if isinstance(node, ast.IfExp | ast.comprehension):  # of a statement, that is the missing line
            yield source.replaced(condition, "False")


EDITS: dict[Any, Callable[..., Iterator[Edit]]] = {
    ast.AugAssign: _of_change,
    ast.Assign: _of_assignment,
    ast.Return: _of_return,
    ast.BinOp: _of_operation,
    ast.BoolOp: _of_and_or,
    ast.Compare: _of_comparison,
    ast.UnaryOp: _of_sign,
    ast.Constant: _of_constant,
    ast.Attribute: _of_attribute,
    ast.Slice: _of_slice,
    ast.Call: _of_call,
    ast.If | ast.While | ast.IfExp | ast.comprehension: _of_condition,
}


def _without_comments(body: str) -> str:
    lines = body.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(body).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or "#"
    return "\n".join(line for line in lines if line != "#")


def _difference(old: str, new: str) -> tuple[str, str]:
    """The lines in which two texts differ, without their common indentation."""
    before, after = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    stop = next((i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start)
    pieces = [lines[start : len(lines) - stop] for lines in (before, after)]
    indent = min(len(line) - len(line.lstrip()) for lines in pieces for line in lines)
    old, new = ("\n".join(line[indent:] for line in lines) for lines in pieces)
    return old, new
