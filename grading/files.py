"""Reading and writing source files without losing anything."""

import os
import tempfile
from pathlib import Path


def read_source(path: Path) -> str:
    """Return the text of a UTF-8 file (a byte order mark is dropped), every line ending as a newline.

    Raises UnicodeDecodeError where the file is not UTF-8.
    """
    return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


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
