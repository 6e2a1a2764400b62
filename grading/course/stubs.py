"""The stubs of the reference: its files with every answer replaced by its TODO."""

from functools import lru_cache

from grading.course.chapters import REFERENCE
from grading.course.errors import reading
from grading.course.files import read_source
from grading.course.regions import without_answers


@lru_cache(maxsize=64)
def stub_of(reference: str) -> str:
    """Return a reference source with every task's answer replaced by its TODO."""
    return without_answers(reference)


def stub_tree() -> dict[str, str]:
    """Every Python file of the reference by its path within the package ("tensor.py"), as a stub.

    Raises CourseError where one cannot be read.
    """
    stubs = {}
    for path in sorted(REFERENCE.rglob("*.py")):
        name = path.relative_to(REFERENCE).as_posix()
        with reading(f"solutions/meintorch/{name}"):
            stubs[name] = stub_of(read_source(path))
    return stubs
