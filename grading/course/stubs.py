"""The stubs of the reference: its files with every answer replaced by its TODO."""

from collections.abc import Mapping
from functools import lru_cache

from grading.course.chapters import reference
from grading.course.errors import MISREAD, placed
from grading.course.regions import without_answers


@lru_cache(maxsize=1)
def stub_tree() -> Mapping[str, str]:
    """Every Python file of the reference by its path within the package ("tensor.py"), as a stub.

    Raises CourseError where one cannot be read.
    """
    stubs = {}
    for name, source in reference().items():
        try:
            stubs[name] = without_answers(source)
        except MISREAD as error:
            raise placed(error, f"solutions/meintorch/{name}") from None
    return stubs


def skeleton(name: str) -> str:
    """The stub of a file of the reference, by its path within the package ("tensor.py")."""
    return stub_tree()[name]
