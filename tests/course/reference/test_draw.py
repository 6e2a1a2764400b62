"""The graph of a Value or a Tensor as a tree, as a picture and for GitHub."""

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from grading.authoring.corpora import put_answer
from grading.course import chapters as course
from grading.course import texts
from grading.course.files import read_source
from meintorch import MLP, Tensor, Value, softmax
from meintorch.draw import MISSING, draw

SVG = "{http://www.w3.org/2000/svg}"


def example():
    a, b, c = Value(2.0), Value(-3.0), Value(5.0)
    loss = (a * b + c).tanh()
    loss.backward()
    return draw(loss, a=a, b=b, c=c, loss=loss)


def words(svg: str) -> list[str]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg: str) -> tuple[int, int]:
    """How many nodes and how many arrows there are."""
    kinds = [group.get("class") for group in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return kinds.count("node"), kinds.count("edge")


def test_the_tree_shows_every_value_under_what_was_made_from_it():
    assert str(example()).split("\n") == [
        "              data      gradient",
        "loss = tanh   -0.7616   1",
        "  +           -1        0.42",
        "    *         -6        0.42",
        "      a       2         -1.26",
        "      b       -3        0.8399",
        "    c         5         0.42",
    ]
    assert repr(example()) == str(example()), "so that a Python session shows it"


def test_tensors_show_their_shapes_and_constants_have_no_gradient():
    x = Tensor([[1.0, 2.0, 3.0]])
    y = (x * np.float32(2.0)).sum()
    y.backward(keep_graph=True)
    assert str(draw(y, x=x)).split("\n") == [
        "               shape    data          gradient",
        "sum            ()       12            1",
        "  *            (1, 3)   [[2, 4, 6]]   [[1, 1, 1]]",
        "    x          (1, 3)   [[1, 2, 3]]   [[2, 2, 2]]",
        "    constant   ()       2",
    ]


def test_of_many_numbers_the_least_and_the_greatest_are_shown():
    x = Tensor(np.float32([-1.0, 0.0, 1.0, 2.0, 3.25]))
    assert str(draw(x)).split("\n")[1].split("  ") == ["input", " (5,) float32", " -1 to 3.25", " all 0"]


def test_what_is_used_twice_is_shown_once_and_named_again():
    x = Tensor(3.0)
    twice = x * 2.0
    titles = [line[:20].rstrip() for line in str(draw(twice * twice, x=x)).split("\n")]
    assert titles == ["", "*", "  * #1", "    x", "    constant", "  * #1 (see above)"]


def test_gradients_are_there_after_backward_that_keeps_the_graph():
    x = Tensor(3.0)
    y = x * x + x
    assert str(draw(y, x=x)).split("\n")[3].split()[-1] == "0"
    y.backward(keep_graph=True)
    assert str(draw(y, x=x)).split("\n")[3].split()[-1] == "7"


def test_a_graph_that_backward_has_let_go_of_is_said_to_be_gone():
    x = Tensor(3.0)
    y = x * x
    y.backward()
    assert "* (its graph was let go)" in str(draw(y))
    assert "let go" not in str(draw(x))


def test_a_drawing_keeps_what_it_shows():
    x = Value(1.0)
    drawing = draw(x, x=x)
    x.data = 2.0
    assert str(drawing).split("\n")[1].split() == ["x", "1", "0"]


def test_a_picture_has_a_box_for_every_value_and_an_arrow_for_every_use(capfd):
    x = Value(3.0)
    svg = draw(x * x + x, x=x).svg()
    assert boxes(svg) == (3, 4)
    assert words(svg).count("data 3") == 1
    assert {"x", "*", "+", "data 12", "grad 0"} <= set(words(svg))
    background = next(ElementTree.fromstring(svg).iter(f"{SVG}polygon"))
    assert background.get("fill") == "white", "on a dark page its lines would not be seen"
    assert capfd.readouterr().err == "", "Graphviz's libraries have nothing to tell a learner"


def test_a_large_graph_shows_what_is_nearest_and_says_so():
    loss = sum((MLP(2, [16, 16, 1], seed=3)([1.0, 2.0]), Value(1.0)))
    drawing = draw(loss, limit=10)
    assert len(drawing.nodes) == 10 < 500 < drawing.total
    assert f"the 10 nodes nearest to the result, of {drawing.total:,}: limit=20 shows more" in str(drawing)
    folded = sum(node.folded for node in drawing.nodes)
    assert 0 < folded == words(drawing.svg()).count("...") == drawing.mermaid().count("-.->")
    assert str(drawing).count("...") == folded
    assert f"{drawing.total:,}" in "".join(words(drawing.svg()))
    assert f"%% the 10 nodes nearest to the result, of {drawing.total:,}" in drawing.mermaid()


def test_a_very_deep_graph_is_no_harder_than_a_wide_one():
    x = Value(1.0)
    for _ in range(5_000):
        x = x + 1.0
    drawing = draw(x)
    assert drawing.total == 10_001
    assert len(str(drawing).split("\n")) < 60
    assert len(str(draw(x, limit=5_000)).split("\n")) > 5_000


def test_names_and_operations_cannot_break_a_picture():
    x = Value(1.0, (Value(2.0),), '<b>&"|\n#')
    drawing = draw(x, **{"<script>": x})
    assert '<script> = <b>&"|' in "".join(words(drawing.svg()))
    label = drawing.mermaid().split("\n")[2]
    assert label.count('"') == 2 and "script>" not in label and "#60;b#62;" in label


def test_what_is_no_part_of_a_graph_is_refused_in_words():
    with pytest.raises(TypeError, match=r"a Tensor of chapter 02, not 3\.0 of type float"):
        draw(3.0)
    with pytest.raises(ValueError, match="the limit is 1 node or more, not 0"):
        draw(Value(1.0), limit=0)


def test_a_notebook_gets_the_picture_and_the_tree():
    bundle = example()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml"}
    assert boxes(bundle["image/svg+xml"]) == (6, 5)


def test_without_the_library_a_notebook_gets_the_tree_and_a_word_on_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    bundle = example()._repr_mimebundle_()
    assert bundle == {"text/plain": f"{example()}\n\n{MISSING}"}
    with pytest.raises(ImportError, match=r"pip install -e \"\.\[draw\]\""):
        example().svg()


def test_it_works_for_chapter_01_while_all_later_chapters_are_stubs(package):
    folder = package("stubs")
    for task in course.chapters()[0].tasks:
        put_answer(folder, task.id, texts.solution(read_source(course.chapters()[0].text), task.id))
    target = folder.parent / "elsewhere" / "meintorch"
    target.parent.mkdir()
    folder.rename(target)
    script = (
        "from meintorch.draw import draw\nfrom meintorch.value import Value\nx = Value(3.0)\ny = x * x + x\n"
        "y.backward()\nprint(draw(y, x=x))\nprint(draw(y).svg()[-7:])"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=target.parent, capture_output=True, text=True, check=False)
    assert run.stdout.split("\n")[3].split() == ["x", "3", "7"], run.stderr
    assert run.stdout.strip().endswith("</svg>")


def test_importing_the_package_costs_nothing_for_pictures():
    script = "import sys, meintorch; print(sorted({'matplotlib', 'pygraphviz', 'meintorch.draw'} & set(sys.modules)))"
    place = course.REFERENCE.parent
    run = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[]", run.stderr
    script = (
        "import sys, meintorch.draw, meintorch.plots; print(sorted({'matplotlib', 'pygraphviz'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[]", run.stderr


def test_softmax_of_a_tensor_is_one_node():
    assert [node.title for node in draw(softmax(Tensor([1.0, 2.0]), -1)).nodes] == ["softmax", "input"]
