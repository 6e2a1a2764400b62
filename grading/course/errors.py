"""What ends a command without being a learner's mistake. The texts are for people."""

from collections.abc import Iterator
from contextlib import contextmanager


class GraderError(Exception):
    """The grader itself could not do its work. The text says what to do about it."""


class CourseError(GraderError):
    """The files of the course do not fit each other, or one of them cannot be read.

    message  what is wrong and what belongs there, in a sentence or two
    file     as it is named from the course's folder, "chapters/05_layers.md"; "" while it is not known
    line     None where no line is to blame
    """

    def __init__(self, message: str, file: str = "", line: int | None = None):
        super().__init__(message, file, line)
        self.message, self.file, self.line = message, file, line

    @property
    def sentence(self) -> str:
        """The message behind its place."""
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: {self.message}" if place else self.message

    def __str__(self) -> str:
        return f"{self.sentence}\nAll that does not fit in the course, and what to do: python grader.py course-check"


MISREAD = (CourseError, SyntaxError, UnicodeDecodeError)  # what the reading of a file of the course may end in


def placed(error: Exception, file: str) -> CourseError:
    """One of MISREAD as a CourseError that names the file."""
    if isinstance(error, CourseError):
        return CourseError(error.message, error.file or file, error.line)
    if isinstance(error, SyntaxError):
        return CourseError(f"Python cannot read this: {error.msg}.", file, error.lineno)
    return CourseError("This file is not UTF-8. Save it as UTF-8 in your editor.", file)


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Around the reading of a file of the course: whatever is wrong with it becomes a CourseError that names it."""
    try:
        yield
    except MISREAD as error:
        raise placed(error, file) from None
