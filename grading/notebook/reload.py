"""A package that is imported already takes over what has changed in its files.

IPython's own autoreload gives a class a new identity in some versions: values made before are then no `Value` any more,
and classes with slots break. Here functions get new code and classes new methods, and everything keeps its identity, so
that old and new objects go on working together.
"""

import sys
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from grading.course.files import read_source

KINDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
OF_THE_CLASS = {"__module__", "__slots__", "__annotations__", "__annotate_func__", "__annotations_cache__"}


class Follower:
    """Knows which sources the modules of a package were made from."""

    def __init__(self, folder: Path):
        self.folder = folder  # of the package, "meintorch"
        self.sources: dict[str, str] = {}

    def note(self) -> None:
        """Remember the sources of modules that were imported since the last time."""
        for name, (_, path) in self._modules().items():
            if name not in self.sources:
                self.sources[name] = read_source(path)

    def follow(self) -> list[str]:
        """Bring the modules up to date with their files. Returns what could not be taken over, a text for each."""
        problems = []
        for name, (module, path) in self._modules().items():
            known = self.sources.get(name)
            try:
                source = read_source(path)
            except (OSError, UnicodeDecodeError):
                continue  # it is being written at this moment, or gone: what is imported goes on working
            if known is None or source == known:
                continue
            self.sources[name] = source  # a problem is told once
            place = path.relative_to(self.folder.parent).as_posix()
            try:
                changed = renew(module, source)
            except SyntaxError as error:
                problems.append(f"{place}, line {error.lineno}: {error.msg}. What was there before is still in use.")
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                problems.append(f"{place} cannot be imported. {reason}. What was there before is still in use.")
            else:
                if changed:
                    problems.append(f"{place}: {', '.join(changed)} cannot be exchanged. Restart the kernel.")
        return problems

    def _modules(self) -> dict[str, tuple[ModuleType, Path]]:
        """The package's modules and their files by name, in the order of their import; the package comes last."""
        package = self.folder.name
        modules = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name.partition(".")[0] == package and file and Path(file).is_relative_to(self.folder):
                modules[name] = module, Path(file)
        if package in modules:
            modules[package] = modules.pop(package)
        return modules


def renew(module: ModuleType, source: str) -> list[str]:
    """Run a newer source in a module; functions and classes keep their identity.

    Returns the names of classes that are too different, in their bases or slots, for that. If the source raises
    something the module stays as it was.
    """
    code = compile(source, str(module.__file__), "exec", dont_inherit=True)
    names = vars(module)
    old = dict(names)
    try:
        exec(code, names)
    except BaseException:
        names.clear()
        names.update(old)
        raise
    different = []
    for name, value in list(names.items()):
        before = old.get(name)
        if before is value or getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, type) and isinstance(before, type):
            if _layout(before) != _layout(value):
                different.append(f"the class {name}")
                continue
            _renew_class(before, value)
            names[name] = before
        elif _renew_function(before, value):
            names[name] = before
    return different


def _layout(cls: type) -> tuple[list[str], Any]:
    return [base.__qualname__ for base in cls.__bases__], vars(cls).get("__slots__")


def _renew_class(old: type, new: type) -> None:
    """Give a class the attributes of a newer one. What it has beyond them stays: other modules have put some there."""
    for name, value in vars(new).items():
        if isinstance(value, MemberDescriptorType | GetSetDescriptorType) or name in OF_THE_CLASS:
            continue
        before = vars(old).get(name)
        if not _renew_function(before, value):
            _belong_to(old, new, value)
            setattr(old, name, value)


def _renew_function(old: object, new: object) -> bool:
    """Give a function the code of a newer one, if both are of one kind and have the same names from outside."""
    if not isinstance(old, FunctionType) or not isinstance(new, FunctionType):
        return False
    if old.__code__.co_freevars != new.__code__.co_freevars:
        return False
    if (old.__code__.co_flags ^ new.__code__.co_flags) & KINDS:  # a stub has no yield: Python will not let that be
        return False
    old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
    old.__doc__ = new.__doc__
    return True


def _belong_to(old: type, new: type, value: object) -> None:
    """`super()` in a method asks for the class that it was defined in: let that be the old one."""
    for function in (value, *(getattr(value, part, None) for part in ("__func__", "fget", "fset"))):
        if isinstance(function, FunctionType) and "__class__" in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index("__class__")]
            if cell.cell_contents is new:
                cell.cell_contents = old
