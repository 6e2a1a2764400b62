"""The stubs of the reference: its files with every answer replaced by its TODO."""

from collections.abc import Mapping
from functools import lru_cache

from grading.course.chapters import reference
from grading.course.regions import without_answers


@lru_cache(maxsize=1)
def stub_tree() -> Mapping[str, str]:
    """Every Python file of the reference by its path within the package ("tensor.py"), as a stub."""
    return {name: without_answers(source) for name, source in reference().items()}


def skeleton(name: str) -> str:
    """The stub of a file of the reference, by its path within the package ("tensor.py")."""
    return stub_tree()[name]
