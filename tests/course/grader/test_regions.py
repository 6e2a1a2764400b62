"""The composer finds a task's answer in whatever a learner has made of the file."""

import ast
import textwrap

import pytest

from grading.course.chapters import REFERENCE, chapters
from grading.course.compose import fill, put
from grading.course.errors import CourseError
from grading.course.files import read_source
from grading.course.regions import body_source, find_regions, is_stub, locate, without_answers
from grading.course.stubs import stub_tree

REFERENCE_CODE = textwrap.dedent(
    '''
    """A module."""

    class Box:
        def __mul__(self, other):
            """Multiply."""
            other = wrap(other)
            out = Box(self.data * other.data)

            def _backward(upstream):
                # 07.2: product rule -
                # the partner is the local factor.
                self.grad += other.data * upstream
                other.grad += self.data * upstream

            out._backward = _backward
            return out


    def total(data, start=0):
        """Add up."""
        if not data:
            return start
        # 07.1: add them up.
        for one in data:
            start += one
        # a comment inside
        return start
    '''
).lstrip()

PRODUCT, TOTAL = find_regions(REFERENCE_CODE)


def test_a_region_knows_its_name_its_comment_and_its_statements():
    assert PRODUCT.qualname == "Box.__mul__._backward"
    assert PRODUCT.comment == "product rule -\nthe partner is the local factor."
    assert PRODUCT.body == "self.grad += other.data * upstream\nother.grad += self.data * upstream\n"
    assert TOTAL.qualname == "total"
    assert len(TOTAL.given) == 1


def test_a_stub_keeps_what_is_given_and_the_comment():
    stub = without_answers(REFERENCE_CODE)
    assert "# TODO 07.2: product rule -\n            # the partner is the local factor.\n" in stub
    assert stub.count("raise NotImplementedError") == 2
    assert "if not data:\n        return start\n    # TODO 07.1: add them up.\n    raise" in stub
    assert "a comment inside" not in stub


def test_an_answer_put_into_the_stub_gives_the_reference_back():
    source = without_answers(REFERENCE_CODE)
    for region in (PRODUCT, TOTAL):
        source = fill(source, region, region.answer())
    assert source == REFERENCE_CODE


def test_every_file_of_the_reference_survives_the_round_trip():
    for name, stub in stub_tree().items():
        reference = read_source(REFERENCE / name)
        for region in find_regions(reference):
            assert is_stub(locate(stub, region)), region.task
            stub = fill(stub, region, region.answer())
        assert ast.dump(ast.parse(stub)) == ast.dump(ast.parse(reference)), name


LEARNERS = {
    "the comment is deleted": lambda code: "\n".join(line for line in code.split("\n") if "# " not in line),
    "the docstring is deleted": lambda code: code.replace('        """Multiply."""\n', "").replace(
        '    """Add up."""\n', ""
    ),
    "the docstring is changed": lambda code: code.replace("Multiply.", "Mine.").replace("Add up.", "Mine, too."),
    "indented by two spaces": lambda code: "\n".join(
        " " * ((len(line) - len(line.lstrip())) // 2) + line.lstrip() for line in code.split("\n")
    ),
    "a helper is added": lambda code: code.replace("def total", "def helper():\n    pass\n\n\ndef total"),
    "a statement is spread over lines": lambda code: code.replace(
        "wrap(other)", "wrap(\n            other,\n        )"
    ),
    "the header is spread over lines": lambda code: code.replace(
        "total(data, start=0):", "total(\n    data,\n    start=0,\n):"
    ),
    "types are annotated": lambda code: code.replace("(upstream)", "(upstream: float) -> None"),
    "a decorator is added": lambda code: code.replace("def total", "@staticmethod\ndef total"),
    "the file ends without a newline": lambda code: code.rstrip("\n"),
    "the class is defined twice": lambda code: f"class Box:\n    pass\n\n\n{code}",
}


@pytest.mark.parametrize("change", LEARNERS.values(), ids=LEARNERS.keys())
@pytest.mark.parametrize("start", [REFERENCE_CODE, without_answers(REFERENCE_CODE)], ids=["solved", "stub"])
def test_a_task_is_found_in_a_file_that_a_learner_has_changed(start, change):
    source = change(start)
    assert source != start
    for region in (PRODUCT, TOTAL):
        place = locate(source, region)
        assert place is not None, region.task
        assert is_stub(place) == (start != REFERENCE_CODE)
        again = fill(source, region, region.answer())
        assert ast.unparse(ast.parse(body_source(again, locate(again, region)))) == ast.unparse(ast.parse(region.body))
        assert ast.dump(ast.parse(fill(again, region, region.stub()))) == ast.dump(
            ast.parse(fill(source, region, region.stub()))
        )


def test_an_answer_written_above_the_comment_is_found():
    source = without_answers(REFERENCE_CODE).replace(
        "            # TODO 07.2", "            self.grad += 1\n            # TODO 07.2"
    )
    assert ast.unparse(locate(source, PRODUCT).statements[0]) == "self.grad += 1"


def test_a_function_whose_parameter_has_another_name_is_exchanged_whole():
    source = REFERENCE_CODE.replace("_backward(upstream)", "_backward(g)").replace("* upstream", "* g")
    assert locate(source, PRODUCT) is None
    again = put(source, PRODUCT, PRODUCT.answer(), without_answers(REFERENCE_CODE))
    assert ast.dump(ast.parse(again)) == ast.dump(ast.parse(put(REFERENCE_CODE, TOTAL, TOTAL.answer(), "")))


@pytest.mark.parametrize(
    "source",
    [
        REFERENCE_CODE.replace("_backward", "_back"),
        REFERENCE_CODE.replace("__mul__", "__times__"),
        "class Box:\n    size = 3\n",
        "size = 3\n",
        "def total(data, start=0): return sum(data, start)\n",
    ],
)
def test_what_is_missing_comes_back(source):
    for region in (PRODUCT, TOTAL):
        source = put(source, region, region.answer(), without_answers(REFERENCE_CODE))
    for region in (PRODUCT, TOTAL):
        assert body_source(source, locate(source, region)).strip().endswith(region.body.strip().split("\n")[-1])


def test_a_file_indented_with_tabs_stays_one():
    source = "\n".join(
        "\t" * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in REFERENCE_CODE.split("\n")
    )
    for region in (PRODUCT, TOTAL):
        source = put(source, region, region.stub(), without_answers(REFERENCE_CODE))
    ast.parse(source)
    assert "\t\t\t# TODO 07.2" in source
    assert all(is_stub(locate(source, region)) for region in (PRODUCT, TOTAL))


def test_a_function_exchanged_inside_an_if_keeps_its_place():
    source = "if True:\n    def total(data): return sum(data)\nelse:\n    def total(data): return 0\n"
    again = put(source, TOTAL, TOTAL.answer(), without_answers(REFERENCE_CODE))
    assert body_source(again, locate(again, TOTAL)).endswith("return start\n")


def test_an_empty_file_gets_the_whole_skeleton():
    assert put("\n", TOTAL, TOTAL.stub(), without_answers(REFERENCE_CODE)) == without_answers(REFERENCE_CODE)


def test_a_task_comment_in_the_wrong_place_is_an_error():
    with pytest.raises(CourseError, match="does not stand directly"):
        find_regions("if True:\n    # 01.1: nowhere\n    pass\n")
    with pytest.raises(CourseError, match="Nothing follows"):
        find_regions("def f():\n    # 01.1: no statement\n    def g():\n        # 01.2: here\n        pass\n")


def test_every_task_has_a_stub_in_the_learners_package_tree():
    tree = stub_tree()
    for chapter in chapters():
        for task in chapter.tasks:
            for part in task.parts:
                name = task.revisits or task.id
                assert f"# TODO {name}: " in tree[part.file]
                assert f'raise NotImplementedError("TODO {name}")' in tree[part.file]
