"""Reading and writing source files without losing anything."""

import importlib.util
import marshal
import os
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path


def read_source(path: Path) -> str:
    """Return the text of a UTF-8 file (a byte order mark is dropped), every line ending as a newline.

    Raises UnicodeDecodeError where the file is not UTF-8.
    """
    return as_source(path.read_bytes())


def as_source(data: bytes) -> str:
    """The text of a source file's bytes, as `read_source` returns it."""
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


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
