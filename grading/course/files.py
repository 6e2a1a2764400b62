"""Reading and writing source files without losing anything."""

import contextlib
import importlib.util
import marshal
import os
import sys
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path


def read_source(path: Path) -> str:
    """Return the text of a UTF-8 file (a byte order mark is dropped), every line ending as a newline.

    Raises UnicodeDecodeError where the file is not UTF-8.
    """
    return as_source(path.read_bytes())


def read_sources(folder: Path, pattern: str = "**/*.py") -> dict[str, str]:
    """The texts of a folder's files, by their path within it. Raises what `read_source` raises."""
    return {path.relative_to(folder).as_posix(): read_source(path) for path in sorted(folder.glob(pattern))}


def as_source(data: bytes) -> str:
    """The text of a source file's bytes, as `read_source` returns it."""
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def as_sources(files: dict[str, bytes]) -> dict[str, str]:
    return {name: as_source(data) for name, data in files.items()}


def write_source(path: Path, text: str) -> None:
    """Write text as UTF-8, keeping the file's line endings. Either the whole text arrives or the old file stays."""
    data = text.encode("utf-8")
    if path.is_file() and b"\r\n" in path.read_bytes():
        data = data.replace(b"\n", b"\r\n")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, path.stat().st_mode & 0o777 if path.is_file() else 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_with_bytecode(folder: Path, files: dict[str, bytes]) -> None:
    """Write files to folders that are there, and beside a Python file its bytecode, so that nobody compiles it."""
    for name, data in files.items():
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        if path.endswith(".py"):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # seen by who imports it
                kept = bytecode(data)
                place, module = os.path.split(path)
                with open(f"{place}/__pycache__/{module[:-3]}.{sys.implementation.cache_tag}.pyc", "wb") as file:
                    file.write(kept)


@lru_cache(maxsize=128)
def bytecode(source: bytes) -> bytes:
    """What Python keeps of a source in a .pyc file that is checked against the source itself, not its date (PEP 552).

    Raises what `compile` raises. The same few files are compiled again and again, so the last ones are kept.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, "<source>", "exec", dont_inherit=True, optimize=0)
    checked = (0b11).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + checked + importlib.util.source_hash(source) + marshal.dumps(code)
