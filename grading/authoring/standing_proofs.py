"""Which proofs about a chapter still stand, because nothing has changed that they depend on.

The tests marked `proof` in tests/course/proofs grade whole chapters, run the cells of their texts and break the
reference by machine: that takes half of the time of all tests. So a proof is not gone through again while its key is
the one in tests/course/proofs/standing.tsv. The key is made of what makes the verdicts on the chapter (see
corpora_tables.keys), of the same for chapters that go back to it, of the texts up to it and their pictures, of all of
the grader, and of the proofs themselves. As with verdicts, a twentieth is gone through in any case, and with --all
every one.
`python -m grading.authoring.corpora_tables --write` writes this table as well.
"""

from functools import lru_cache

from grading.authoring import corpora_tables
from grading.course import chapters as course

PROOFS = course.TESTS / "course" / "proofs"
TABLE = PROOFS / "standing.tsv"


def stands(test: str, number: str) -> bool:
    """Has a test been passed with all as it is now? `number` is its chapter's."""
    return _table().get(number) == key(number) and not corpora_tables.is_drawn(test)


@lru_cache(maxsize=16)
def key(number: str) -> str:
    chapter = course.find_chapter(number)
    later = [one for one in course.chapters() if any(task.revisits in _ids(chapter) for task in one.tasks)]
    versions_and_hashes = [f"{one.number} {corpora_tables.keys(one.number)}" for one in [chapter, *later]]
    before = [one.text for one in course.chapters() if one.number <= number]
    files = [
        *before,
        *sorted(path for path in (course.CHAPTERS / "pictures").rglob("*") if path.is_file()),
        *sorted((course.ROOT / "grading").rglob("*.py")),
        *sorted(path for path in PROOFS.iterdir() if path.suffix in (".py", ".md")),
        PROOFS.parent / "conftest.py",
    ]
    return corpora_tables.hash_of([*versions_and_hashes, *corpora_tables.meanings(files, course.ROOT)])


def _ids(chapter: course.Chapter) -> set[str]:
    return {task.id for task in chapter.tasks}


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    """The keys with which all proofs have been passed, by chapter. A line that cannot be read counts as missing."""
    try:
        lines = TABLE.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    return dict(line.split("\t") for line in lines if line.count("\t") == 1)


def write() -> None:
    """Write down that all proofs have been passed with all as it is now."""
    lines = [f"{chapter.number}\t{key(chapter.number)}\n" for chapter in course.chapters()]
    TABLE.write_bytes("".join(lines).encode())
    _table.cache_clear()
