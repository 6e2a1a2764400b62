"""The plots, and the pictures in the chapters."""

import importlib.util
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from grading.authoring import picture
from grading.course import chapters as course
from grading.course.files import read_source
from meintorch import Value, make_moons, plots
from meintorch.draw import draw
from tests.course.proofs.cells import svg_of, words

MOONS = make_moons(20, seed=0)
EPOCHS = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]
HELD_OUT = [{**line, "held_out_loss": loss, "held_out_accuracy": 0.5} for line, loss in zip(EPOCHS, (1.5, 1.75))]
DIGITS = np.random.default_rng(0).random((12, 64))
DRAWN = {
    "boundary": lambda: plots.boundary({"before": plots.grid(MOONS[0]) @ [1.0, 2.0]}, *MOONS),
    "curves": lambda: plots.curves(EPOCHS),
    "curves with held-out examples": lambda: plots.curves(HELD_OUT),
    "digits": lambda: plots.digits(DIGITS, [*range(10), 0, 1], [*range(10), 5, 1]),
    "jacobian": lambda: plots.jacobian(np.array([[0.25, -0.25], [-0.25, 0.25]])),
    "valley": lambda: plots.valley({"SGD": [[1.0, 1.0], [0.5, -0.5]]}, [1.0, 100.0]),
}
WITH_PICTURES = [chapter for chapter in course.chapters() if picture.FOLLOWS.search(read_source(chapter.text))]

each = pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN.keys())


@each
def test_a_plot_is_drawn_and_is_not_empty(make, tmp_path):
    made = make()
    for kind in ("svg", "png"):
        made.save(tmp_path / f"a.{kind}")
        assert (tmp_path / f"a.{kind}").stat().st_size > 2_000
    root = ElementTree.fromstring(svg_of(made))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 5


@each
def test_the_same_plot_has_the_same_bytes(make):
    assert svg_of(make()) == svg_of(make())


@each
def test_a_plot_brings_its_own_white_background(make):
    background = re.search(r'<g id="patch_1">\s*<path d="([^"]*)"\s*style="fill: #ffffff', svg_of(make()))
    assert background, "on a dark page its letters would not be seen"


@each
def test_without_matplotlib_a_plot_says_what_to_install(make, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    made = make()
    assert 'pip install -e ".[plots]"' in repr(made)
    assert made._repr_mimebundle_() == {"text/plain": repr(made)}
    with pytest.raises(ImportError, match="plots"):
        made.save(tmp_path / "a.svg")


def test_a_session_learns_how_to_see_a_plot():
    assert repr(DRAWN["curves"]()) == 'A picture. A notebook shows it; here, write it to a file: .save("picture.svg")'


def test_only_two_kinds_of_file_are_written(tmp_path):
    with pytest.raises(ValueError, match=r"saved as \.svg or \.png, not as a\.jpg"):
        DRAWN["curves"]().save(tmp_path / "a.jpg")


def test_the_border_runs_where_the_scores_change_their_sign():
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    grid = plots.grid(points, side=3)
    assert grid.shape == (9, 2)
    assert np.allclose(grid[:3], [[-0.4, -0.4], [0.5, -0.4], [1.4, -0.4]])
    panel = plots.boundary({"": grid[:, 0] - 0.5}, points, [-1, 1]).figure.axes[0]
    lines = [path.vertices for one in panel.collections for path in one.get_paths() if len(path.vertices) == 3]
    assert any(np.allclose(line[:, 0], 0.5) for line in lines)


def test_the_lowest_held_out_loss_is_marked():
    assert "lowest: epoch 1" in words(svg_of(plots.curves(HELD_OUT)))
    assert "held out" not in words(svg_of(plots.curves(EPOCHS)))


def test_a_wrong_digit_is_framed_and_shows_both_answers():
    made = DRAWN["digits"]()
    assert [text for text in words(svg_of(made)) if "not" in text] == ["5, not 0"]
    framed = [panel.get_title() for panel in made.figure.axes if panel.axison]
    assert framed == ["5, not 0"]


def test_a_small_jacobian_shows_its_numbers_and_white_is_zero():
    made = DRAWN["jacobian"]()
    assert words(svg_of(made)).count("-0.250") == 2
    image = made.figure.axes[0].images[0]
    assert image.norm.vmin == -image.norm.vmax
    assert image.cmap(image.norm(0.0))[:3] == pytest.approx((1.0, 1.0, 1.0), abs=0.02)
    assert "0.010" not in words(svg_of(plots.jacobian(np.full((20, 20), 0.01))))


def test_a_path_through_the_valley_shows_every_step():
    panel = DRAWN["valley"]().figure.axes[0]
    assert panel.lines[0].get_xydata().tolist() == [[1.0, 1.0], [0.5, -0.5]]


# In the chapters


def test_there_are_chapters_with_pictures():
    assert [chapter.number for chapter in WITH_PICTURES] == ["01", "02", "04", "07", "08"]


def test_the_command_draws_what_stands_behind_a_cell(tmp_path, monkeypatch):
    """All the chapters' pictures are compared in test_texts.py, as their cells draw them."""
    monkeypatch.setattr(course, "CHAPTERS", tmp_path)
    (tmp_path / "pictures").mkdir()
    cell = "```python\nfrom meintorch import plots\n\nplots.curves([{'epoch': 1, 'loss': 2.0}])\n```\n"
    tree = "```python\nfrom meintorch.draw import draw\nfrom meintorch.value import Value\n\ndraw(Value(3.0))\n```\n"
    chapter = course.Chapter("99", "99_pictures", "Pictures", ())
    old = f"{cell}\n![A curve.](pictures/99.svg)\n\n{tree}\n```mermaid\nflowchart LR\n```\n"
    chapter.text.write_text(old, encoding="utf-8")
    assert picture.draw_chapter(chapter) == [tmp_path / "pictures" / "99.svg", chapter.text]
    assert "epoch" in words(read_source(tmp_path / "pictures" / "99.svg"))
    assert read_source(chapter.text) == old.replace("```mermaid\nflowchart LR\n```", draw(Value(3.0)).mermaid())
    assert picture.draw_chapter(chapter) == [tmp_path / "pictures" / "99.svg"]


def test_every_picture_is_small_has_a_white_background_and_is_shown_somewhere():
    pages = [read_source(path) for path in [*course.CHAPTERS.glob("*.md"), course.ROOT / "README.md"]]
    files = sorted((course.CHAPTERS / "pictures").iterdir())
    assert len(files) >= 7
    for path in files:
        assert 5_000 < path.stat().st_size < 200_000, path.name
        ElementTree.fromstring(path.read_bytes())
        assert any(f"pictures/{path.name})" in page for page in pages), path.name


def test_every_picture_says_in_words_what_it_shows():
    for chapter in WITH_PICTURES:
        for alternative in re.findall(r"!\[([^\]]*)\]", read_source(chapter.text)):
            assert len(alternative.split()) >= 12, alternative
