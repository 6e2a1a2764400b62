"""Where something stands in a package, as messages and documents name it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A line of a file, or the lines first..last (1-based, inclusive) of an answer with the one of them to name."""

    file: str  # "meintorch/tensor.py"
    line: int | None = None  # None: the file as a whole
    first: int = 0
    last: int = -1
    source: str = ""  # what stands there: the line, or the lines of the answer

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}" if self.line else self.file

    @property
    def quote(self) -> str:
        """The line to show; an answer as a whole is not shown."""
        return "" if self.first else self.source

    def holds(self, other: "Place | None") -> bool:
        """Is the other one among the lines of this answer?"""
        return other is not None and other.file == self.file and self.first <= (other.line or 0) <= self.last

    def as_json(self) -> dict[str, str | int | None]:
        return {"file": self.file, "line": self.line}
