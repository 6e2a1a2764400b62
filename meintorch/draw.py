"""The graph of a computation, to look at. Given: there is nothing to fill in here.

`draw(loss)` is a picture in a notebook, a tree of text in a terminal, and with `.mermaid()` a block of text that GitHub
shows as a picture. The picture is laid out by Graphviz, which comes with the package pygraphviz; without it there is
the tree.
"""

import html
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from meintorch.arguments import shown, whole

MISSING = 'To see a picture here: python -m pip install -e ".[draw]" in the course\'s folder.'
FOLDED = "..."
FONT = "Helvetica,Arial,sans-serif"


def draw(result: Any, /, limit: int = 40, **names: Any) -> "Drawing":
    """Look at what `result`, a Value or a Tensor, was computed from.

    Each node shows its operation, its shape, its data and its gradient. Gradients appear after `backward()`; a Tensor
    lets go of its graph there, unless it is asked not to: `backward(keep_graph=True)`. `names` are shown beside their
    nodes: `draw(loss, x=x, w=w)`. Of a large graph only the `limit` nodes nearest to the result are shown.

    The drawing keeps what it shows: what happens to the graph later does not change it.
    Raises TypeError where `result` is not part of a graph, or the limit no whole number; ValueError for one below 1.
    """
    if not hasattr(result, "_children"):
        raise TypeError(f"draw takes a Value of chapter 01 or a Tensor of chapter 02, not {shown(result)}")
    if whole(limit, "the limit", least=-sys.maxsize) < 1:
        raise ValueError(f"the limit is 1 node or more, not {limit}")
    labels = {id(node): name for name, node in names.items()}
    found = _nearest_first(result)  # keeps the nodes alive, so that each id stands for one of them
    numbers = {id(node): number for number, node in enumerate(found[:limit])}
    nodes = [_describe(node, labels.get(id(node), ""), numbers) for node in found[:limit]]
    return Drawing(nodes, len(found))


@dataclass(frozen=True)
class Node:
    """What a drawing shows of a Value or a Tensor."""

    name: str  # "" where none was given
    kind: str  # its operation; "input" or "constant" where it was not computed
    shape: str  # "(3, 2)", "" for a Value
    data: str
    grad: str  # "" for a constant
    children: tuple[int, ...]  # their numbers
    folded: bool  # does it have children that are not shown?

    @property
    def title(self) -> str:
        if self.kind == "input" and self.name:
            return self.name
        return f"{self.name} = {self.kind}" if self.name else self.kind

    def lines(self) -> list[str]:
        """What is shown below the title."""
        shown = {"shape": self.shape, "data": self.data, "grad": self.grad}
        return [f"{key} {text}" for key, text in shown.items() if text]


class Drawing:
    """A graph as a picture or as text. `nodes` are the nodes shown, the result first; `total` counts all there are."""

    def __init__(self, nodes: list[Node], total: int):
        self.nodes, self.total = nodes, total

    def __str__(self) -> str:
        """A tree: under each node, a little further in, what it was computed from."""
        uses = Counter(child for node in self.nodes for child in node.children)
        rows: list[tuple[str, ...]] = [("", "shape", "data", "gradient")]
        stack: list[tuple[int | None, int]] = [(0, 0)]
        seen = set()
        while stack:
            number, depth = stack.pop()
            if number is None:
                rows.append(("  " * depth + FOLDED, "", "", ""))
                continue
            node = self.nodes[number]
            title = "  " * depth + node.title
            if uses[number] > 1 and not node.name:
                title += f" #{number}"  # so that it can be recognized
            if number in seen:
                rows.append((f"{title} (see above)", "", "", ""))
                continue
            seen.add(number)
            rows.append((title, node.shape, node.data, node.grad))
            stack += [(None, depth + 1)] * node.folded
            stack += [(child, depth + 1) for child in reversed(node.children)]
        if not any(node.shape for node in self.nodes):
            rows = [(title, data, grad) for title, _, data, grad in rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines + self._caption())

    __repr__ = __str__

    def mermaid(self) -> str:
        """The graph for a Markdown file on GitHub: a fenced block in Mermaid's language."""
        lines = ["```mermaid", "flowchart LR"]
        for number, node in enumerate(self.nodes):
            text = "<br/>".join([_for_mermaid(node.title), *map(_for_mermaid, node.lines())])
            lines.append(f'    n{number}["{text}"]')
        for child, number in self._edges():
            lines.append(f"    {child} --> n{number}" if child else f'    f{number}(["{FOLDED}"]) -.-> n{number}')
        return "\n".join([*lines, *(f"    %% {line}" for line in self._caption()), "```"])

    def svg(self) -> str:
        """The picture. Raises ImportError where pygraphviz is missing."""
        try:
            from pygraphviz import AGraph
        except ImportError:
            raise ImportError(MISSING) from None
        graph = AGraph(directed=True, strict=False, rankdir="LR", bgcolor="white", pad="0.1", nodesep="0.2")
        graph.node_attr.update(shape="plain", fontname=FONT, fontsize="12")
        graph.edge_attr.update(color="#57606a", arrowsize="0.7")
        graph.graph_attr.update(fontname=FONT, fontsize="12", label="\n".join(self._caption()))
        for number, node in enumerate(self.nodes):
            graph.add_node(f"n{number}", label=_table(node))
        for child, number in self._edges():
            if child is None:
                child = f"f{number}"
                graph.add_node(child, label=FOLDED, shape="plaintext")
            graph.add_edge(child, f"n{number}", style="dotted" if child.startswith("f") else "solid")
        with _quiet():
            return graph.draw(format="svg", prog="dot").decode()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows: the picture, or the tree and how to get the picture."""
        try:
            return {"text/plain": str(self), "image/svg+xml": self.svg()}
        except ImportError as error:
            return {"text/plain": f"{self}\n\n{error}"}

    def _edges(self) -> Iterator[tuple[str | None, int]]:
        """Pairs of a child's name and the number of what was made from it; None stands for what is folded."""
        for number, node in enumerate(self.nodes):
            yield from ((f"n{child}", number) for child in node.children)
            if node.folded:
                yield None, number

    def _caption(self) -> list[str]:
        shown = len(self.nodes)
        if shown == self.total:
            return []
        return [f"the {shown:,} nodes nearest to the result, of {self.total:,}: limit={2 * shown} shows more"]


def _nearest_first(result: Any) -> list[Any]:
    """The result and all it was computed from, ordered by the number of steps between."""
    found, seen = [result], {id(result)}
    for node in found:  # grows meanwhile
        for child in node._children:
            if id(child) not in seen:
                seen.add(id(child))
                found.append(child)
    return found


def _describe(node: Any, name: str, numbers: dict[int, int]) -> Node:
    constant = not getattr(node, "requires_grad", True)
    kind = node._op or ("constant" if constant else "input")
    if node._op and not node._children:
        kind += " (its graph was let go)"  # by backward() without keep_graph
    is_array = isinstance(node.data, np.ndarray)
    shape = f"{node.data.shape}" if is_array else ""
    if is_array and node.data.dtype != np.float64:
        shape += f" {node.data.dtype}"
    children = [numbers.get(id(child)) for child in node._children]
    return Node(
        name=name,
        kind=kind,
        shape=shape,
        data=_numbers(node.data),
        grad="" if constant else _numbers(node.grad),
        children=tuple(child for child in children if child is not None),
        folded=None in children,
    )


def _numbers(data: Any) -> str:
    """Up to four numbers; of more, the least and the greatest."""
    array = np.asarray(data)
    if array.size > 4:
        least, greatest = f"{array.min():.4g}", f"{array.max():.4g}"
        return f"all {least}" if least == greatest else f"{least} to {greatest}"
    text = np.array2string(array, separator=", ", formatter={"float_kind": lambda number: f"{number:.4g}"})
    return " ".join(text.split())


def _table(node: Node) -> str:
    """A node as Graphviz's table: the title on a colour, the rest below."""
    colour = "#ffe3b3" if node.children or node.folded else "#cfe8ff"
    rows = [f'<TR><TD BGCOLOR="{colour}"><B>{html.escape(node.title)}</B></TD></TR>']
    rows += [f'<TR><TD ALIGN="LEFT">{html.escape(line)}</TD></TR>' for line in node.lines()]
    return f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4">{"".join(rows)}</TABLE>>'


def _for_mermaid(text: str) -> str:
    """Text with Mermaid's own escapes in place of all that it or Markdown might take for a sign."""
    return "".join(one if one.isalnum() or one in " .,()[]=-" else f"#{ord(one)};" for one in text)


@contextmanager
def _quiet() -> Iterator[None]:
    """Graphviz's libraries complain about the system's fonts on the terminal's error channel: not for the reader."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
