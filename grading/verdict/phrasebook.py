"""What lies behind errors that Python and NumPy say little about."""

import ast
import builtins
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from grading.course.chapters import Part, chapters, reference
from grading.course.regions import find_definition, parsed
from grading.verdict import later

OF_ARRAYS = (
    "all any argmax argmin argsort astype copy cumsum flat ndim nonzero ravel repeat round size squeeze std swapaxes "
    "tolist"
)
LIBRARIES = {"np": "import numpy as np", "numpy": "import numpy", "math": "import math"}
IN_NUMPY_TOO = "abs clip concatenate dot exp log matmul max mean min reshape sqrt stack sum tanh transpose var where"


@dataclass(frozen=True)
class Spot:
    """Where an error was raised, for a closer look."""

    chapter: str  # that is checked
    part: Part
    line: str  # of the learner's code
    answer: str  # all the lines that stand there

    @property
    def file(self) -> str:
        return self.part.file

    @property
    def makes_tensor(self) -> bool:
        """Does the function around the answer return a Tensor? Then the graph has to go on in it."""
        path = self.part.region.qualname.split(".")
        function = find_definition(parsed(reference()[self.file]), path)
        returns = function.returns if isinstance(function, ast.FunctionDef) else None
        return returns is not None and "Tensor" in ast.unparse(returns) and path[-1] != "backward"  # that of a node

    def modules(self, name: str) -> list[str]:
        """The modules of the package that have a public function or class of that name, in this chapter or before."""
        own = self.file == "nodes.py"
        return [
            file.removesuffix(".py")
            for (known, file), number in public_names().items()
            if known == name and number <= self.chapter and (file == "nodes.py") == own
        ]

    def is_own(self, name: str) -> bool:
        """Is a name in this file the package's own function, and not Python's?"""
        for node in parsed(reference()[self.file]).body:
            names = {node.name} if isinstance(node, ast.FunctionDef) else set()
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("meintorch"):
                names = {alias.name for alias in node.names}
            if name in names:
                return True
        return False

    def names(self) -> list[str]:
        """What can be used at the answer's place: the arguments of the functions around it, and what is set there."""
        tree, path, names = parsed(reference()[self.file]), self.part.region.qualname.split("."), []
        for length in range(1, len(path) + 1):
            around = find_definition(tree, path[:length])
            if isinstance(around, ast.FunctionDef):
                names += [node.arg for node in ast.walk(around.args) if isinstance(node, ast.arg)]
                given = around.body[: len(self.part.region.given) + 1] if length == len(path) else around.body
                given = [statement for statement in given if statement.lineno < self.part.region.line]
                stored = [
                    node for statement in given if isinstance(statement, ast.Assign) for node in ast.walk(statement)
                ]
                names += [node.id for node in stored if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        return list(dict.fromkeys(names))


@lru_cache(maxsize=1)
def public_names() -> dict[tuple[str, str], str]:
    """The functions and classes of the package, by name and file, with the chapters that they come in."""
    return {
        (node.name, file): chapter.number
        for chapter in chapters()
        for file in chapter.files
        for node in parsed(reference()[file]).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }


def cause_of_error(kind: str, message: str, spot: Spot | None = None) -> str | None:
    """What is wrong, where an error alone tells it, whatever the code would do without it."""
    missing = re.fullmatch(r"name '(\w+)' is not defined", message)
    if kind == "NameError" and missing:
        return _of_name(missing[1], spot)
    if kind == "UnboundLocalError":
        return (
            "An assignment, += and -= too, makes a name local to its whole function. Give the result a name of its own."
        )
    of_function = re.match(r"'(?:function|method)' object has no attribute '(\w+)'", message)
    if kind == "AttributeError" and of_function:
        return _of_function(of_function[1], spot)
    if kind == "TypeError" and message.startswith("unsupported operand type(s) for ^"):
        return "^ is no power in Python: a square is x * x."
    if kind == "TypeError" and re.match(r"unsupported operand type\(s\) for \*\* or pow\(\): 'Tensor'", message):
        return "These Tensors have no **. Which of their functions computes it, or which of NumPy's, on their arrays?"
    if message.startswith("array split does not result in an equal division"):
        return (
            "np.split(x, n) makes n pieces of one size: the cuts are at equal distances. Other cuts it takes as "
            "places: all but the last of np.cumsum(sizes)."
        )
    return None


def explain_error(kind: str, message: str, spot: Spot | None = None) -> str | None:
    """What lies behind some of Python's own errors that say little to somebody who meets them for the first time."""
    for kinds, pattern, words in PHRASES:
        match = re.search(pattern, message, re.DOTALL) if kind in kinds.split() or not kinds else None
        if match:
            text = words if isinstance(words, str) else words(match, spot)
            if text is not None:
                return text
    return None


def _of_name(name: str, spot: Spot | None) -> str:
    """A name that there is not."""
    if name in LIBRARIES:
        return f"This file does not know {name}: put `{LIBRARIES[name]}` at its top."
    if spot is None:
        return f"There is no `{name}` in this place."
    for module in spot.modules(name):
        files = [file for chapter in chapters() for file in chapter.files]
        behind = files.index(f"{module}.py") > files.index(spot.file)
        place = "inside of the function, since that file needs this one" if behind else "at the top of the file"
        return f"`{name}` has to be imported: `from meintorch.{module} import {name}`, {place}."
    for (known, _), number in public_names().items():
        if known == name and number > spot.chapter:
            tasks = {
                part.region.qualname: task.id for chapter in chapters() for task in chapter.tasks for part in task.parts
            }
            task = next((task for qualname, task in tasks.items() if qualname.partition(".")[0] == name), number)
            return later.coming(task, name, spot.chapter)
    there = spot.names()
    close = difflib.get_close_matches(
        name, [*there, *re.findall(r"\b[A-Za-z_]\w*(?= =[^=])", spot.answer), *dir(builtins)], 1, 0.75
    )
    guess = f" Is it `{close[0]}`?" if close and close[0] != name else ""
    return f"There is no `{name}` in this place.{guess} Given are: {', '.join(there)}."


def _of_function(attribute: str, spot: Spot | None) -> str:
    """Something that only the result of a function has."""
    called = re.search(rf"([\w.]+)\.{attribute}\b", spot.line if spot else "")
    name = called[1] if called else "this"
    result = re.search(rf"(\w+) = {re.escape(name)}\(", spot.answer if spot else "")
    there = f"what it gave is called `{result[1]}`" if result else "call it, and take what it gives"
    return f"`{name}` is the function itself: {there}."


def _own_on_arrays(spot: Spot | None) -> str | None:
    """A function of this file for Tensors, where plain arrays are computed with."""
    if spot is None or spot.makes_tensor:
        return None
    for name in re.findall(r"(?<![\w.])(\w+)\(", f"{spot.line}\n{spot.answer}"):
        if name in IN_NUMPY_TOO.split() and spot.is_own(name):
            return f"In this file {name}() is meintorch's own, and makes a Tensor. Of an array take np.{name}()."
    return None


def _of_numpy_on_a_tensor(spot: Spot | None) -> str:
    if spot and spot.makes_tensor:
        called = re.findall(r"\bnp\.(\w+)\(", spot.line)
        name = called[-1] if called else ""  # the innermost of them
        if modules := spot.modules(name):
            own = f"this file's own {name}()" if spot.is_own(name) else f"{name}() from meintorch.{modules[0]}"
            return f"np.{name} takes arrays. Of a Tensor take {own}, through which the graph goes on."
        return f"{f'np.{name} takes' if name else 'NumPy takes'} arrays, and this is a Tensor. {_through(spot)}"
    return _own_on_arrays(spot) or (
        "NumPy's functions take arrays, and so does += on a gradient. This is a Tensor: is a .data missing? (In "
        "chapter 10 it is .value.) Where the graph must go on, use operators and meintorch's own functions."
    )


def _through(spot: Spot) -> str:
    """What a graph goes on through."""
    functions = "transpose and sum" if spot.file == "nodes.py" else "reshape, transpose and sum"
    if spot.chapter >= "11" and spot.file != "nodes.py":
        functions = "reshape, transpose, stack and indexing"
    return f"The graph goes on through operators and meintorch's own functions: {functions}, for example."


def _of_arrays_alone(match: re.Match[str], spot: Spot | None) -> str | None:
    if match[1] not in OF_ARRAYS.split():
        return None
    if spot and spot.makes_tensor:
        return f"An array has {match[1]}, and a Tensor has not, and here the graph has to go on. {_through(spot)}"
    return f"An array has {match[1]}, and a Tensor has not: its array is in .data (in chapter 10: in .value)."


def _of_comparing(match: re.Match[str], spot: Spot | None) -> str:
    return _own_on_arrays(spot) or (
        "Where a Tensor stands beside it, == compares the two objects and gives a single True or False. Compare "
        "their arrays."
    )


def _of_split(match: re.Match[str], spot: Spot | None) -> str | None:
    if spot is None or "np.split(" not in spot.answer or "cumsum" in spot.answer:
        return None
    return "np.split takes no sizes, but the places where to cut: all but the last of np.cumsum(sizes)."


# Kinds of errors ("": any), what their text holds, and what is said then, unless that is None. The first counts.
Words = str | Callable[[re.Match[str], Spot | None], str | None]
PHRASES: list[tuple[str, str, Words]] = [
    (
        "TypeError",
        r"does not support ufuncs|unexpected keyword argument 'out'|takes arrays, and this is a Tensor"
        r"|^NumPy's functions take arrays, and this is a Tensor",  # the last: yesterday's given lines
        lambda match, spot: _of_numpy_on_a_tensor(spot),
    ),
    (
        "TypeError",
        r"got an unexpected keyword argument 'requires_grad'",
        "Tensor takes no requires_grad: as_tensor(...) makes a constant, Tensor(...) what needs a gradient.",
    ),
    (
        "TypeError",
        r"^a Tensor holds real numbers, not None of type NoneType$",
        "None stands where numbers belong: does a function lack its return? (And in chapter 10 a node adds to no "
        ".grad: it returns a list with what each of its inputs gets.)",
    ),
    (
        "",
        r"dtype\('O'\)|^unsupported operand.*'NoneType'",
        "Something is no number here, but None, perhaps: np.add.at, as a list's sort(), works in place and gives "
        "None, and so does a function without return. (In chapter 10 a .grad is None, and a node adds to none.)",
    ),
    (
        "TypeError",
        r"^Cannot interpret '",
        "A shape is one argument: np.zeros((2, 3)), with a pair of brackets of its own.",
    ),
    (
        "ValueError",
        r"^object too deep for desired array$",
        "A table stands where NumPy wants a line of numbers, as np.bincount does: one column at a time.",
    ),
    (
        "MemoryError _ArrayMemoryError",
        r"",
        "A check may use 4 GiB of memory. Does a list or a graph grow with every step?",
    ),
    ("RecursionError", r"", "A function calls itself, directly or by way of another, and never comes to an end."),
    ("AttributeError", r"^'Tensor' object has no attribute '(\w+)'", _of_arrays_alone),
    ("", r"^('bool' object has no attribute '(all|any|astype|mean|sum)'$|== asks whether two )", _of_comparing),
    (
        "AttributeError",
        r"^'numpy\.\w+' object has no attribute '(value|grad|requires_grad)'",
        "This is an array already. Where a Tensor is wanted, wrap it: Tensor(...).",
    ),
    ("AttributeError", r"'NoneType'", "Something is None here: does a function that was called lack its return?"),
    (
        "TypeError",
        r"^'Tensor' object is not iterable$",
        "Python's own sum, max and min go through a list. A Tensor has methods for that: x.sum().",
    ),
    (
        "TypeError",
        r"^'str' object is not callable$",
        "A string was called like a function. A loop over a dict gives its keys: .values() gives what they name.",
    ),
    (
        "IndexError",
        r"^tuple index out of range$",
        "A tuple is shorter than thought. Of an array with one axis the shape has one number, and no shape[1].",
    ),
    (
        "TypeError",
        r"^'NoneType' object is not iterable$",
        "What is gone through here is None. A list's reverse() and sort() change it in place and give None, and so "
        "does a function without return.",
    ),
    (
        "ValueError",
        r"inhomogeneous shape",
        "Rows of different lengths make no array. Flat ones, each ravel(), are put together by np.concatenate.",
    ),
    ("ValueError", r"^cannot reshape array of size", _of_split),
    (
        "ValueError",
        r"^The truth value of an array with more than one element is amb",
        "`if`, `and`, `or` and Python's own max and min want one True or False: .all() and .any() give one, and "
        "np.where and np.maximum go number by number.",
    ),
    (
        "TypeError",
        r"^only integer scalar arrays can be converted to a scalar index$",
        "An array stands where one whole number is wanted. (np.concatenate takes the arrays as one list.)",
    ),
]
