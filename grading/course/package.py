"""A package: its sources, read once, and where the answers of the course's tasks stand in them."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from grading.course.chapters import Part
from grading.course.compose import put
from grading.course.place import Place
from grading.course.regions import Block, Region, definition_line, is_stub, locate
from grading.course.stubs import skeleton


class Package:
    """Never changed: whoever wants another answer in it gets another package."""

    def __init__(self, sources: Mapping[str, str]):
        self.sources = sources  # by the path within the package, "tensor.py"
        self._blocks: dict[Part, Block | None] = {}

    def block(self, part: Part) -> Block | None:
        """The lines that answer a part of a task. None: they cannot be told apart from the rest."""
        if part not in self._blocks:
            self._blocks[part] = locate(self.sources[part.file], part.region)
        return self._blocks[part]

    def place(self, part: Part) -> Place:
        """Where the answer stands or, if it cannot be found, the definition that it belongs to."""
        block, file = self.block(part), f"meintorch/{part.file}"
        source = self.sources[part.file]
        if block is None:
            return Place(file, definition_line(source, part.region.qualname))
        answer = "\n".join(source.split("\n")[block.first - 1 : block.last])
        return Place(file, block.line, block.first, block.last, answer)

    def is_unwritten(self, part: Part) -> bool:
        block = self.block(part)
        return block is not None and is_stub(block)

    def with_sources(self, sources: Mapping[str, str]) -> "Package":
        """This package with other files in it."""
        other = Package({**self.sources, **sources})
        other._blocks = {part: block for part, block in self._blocks.items() if part.file not in sources}
        return other

    def with_answer(self, part: Part, text: str) -> "Package":
        """This package with another answer to a part of a task. Raises ValueError if Python could not read that."""
        return self.with_sources({part.file: put(self.sources[part.file], part.region, text, skeleton(part.file))})

    def with_answers(self, parts: Iterable[Part], answer: Callable[[Region], str]) -> "Package":
        """This package with other answers, wherever they fit; where one does not, what is there stays.

        answer  Region.answer: that of the reference; Region.stub: none
        """
        package = self
        for part in parts:
            with suppress(ValueError):
                package = package.with_answer(part, answer(part.region))
        return package
