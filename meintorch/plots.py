"""Pictures for what is better looked at than read. Given: there is nothing to fill in here.

Each function takes plain numbers and arrays and returns a `Picture`: a notebook shows it, elsewhere `.save(path)`
writes it to a file. They need Matplotlib, and where that is missing they say so instead of failing.
"""

import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from meintorch.arguments import shown, whole

MISSING = 'To see this picture: python -m pip install -e ".[plots]" in the course\'s folder.'
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#57606a"  # the first two after Okabe and Ito: for colour-blind eyes as well
STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",  # of its own, or a dark page would swallow the letters
    "svg.fonttype": "path",
    "svg.hashsalt": "meintorch",  # with it the same picture has the same bytes
}


class Picture:
    """A Matplotlib figure, or None where Matplotlib is missing."""

    def __init__(self, figure: Any):
        self.figure = figure

    def __repr__(self) -> str:
        if self.figure is None:
            return MISSING
        return 'A picture. A notebook shows it; here, write it to a file: .save("picture.svg")'

    def save(self, path: str | Path) -> None:
        """Write an SVG or a PNG file, as the name says. Raises ImportError without Matplotlib."""
        kind = Path(path).suffix.removeprefix(".").lower()
        if kind not in ("svg", "png"):
            raise ValueError(f"a picture is saved as .svg or .png, not as {Path(path).name}")
        Path(path).write_bytes(self._drawn(kind))

    def _drawn(self, kind: str) -> bytes:
        if self.figure is None:
            raise ImportError(MISSING)
        from matplotlib import rc_context

        file = io.BytesIO()
        with rc_context(STYLE):
            unwanted = {"Date": None} if kind == "svg" else {"Software": None}
            self.figure.savefig(file, format=kind, dpi=144, metadata=unwanted)
        return file.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.figure is None:
            return {"text/plain": repr(self)}
        return {"text/plain": "A picture.", "image/svg+xml": self._drawn("svg").decode()}


def _picture(function: Callable) -> Callable[..., Picture]:
    """Make a function that returns a figure return a Picture."""

    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Picture:
        if importlib.util.find_spec("matplotlib") is None:
            return Picture(None)
        from matplotlib import rc_context

        with rc_context(STYLE):
            return Picture(function(*args, **options))

    return wrapped


def _panels(columns: int, width: float, height: float, rows: int = 1) -> tuple[Any, np.ndarray]:
    """A figure and its axes, an array of shape (rows, columns). The sizes are those of one panel, in inches."""
    from matplotlib.figure import Figure  # not pyplot, which would open windows and show pictures twice

    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _numbers(x: Any, name: str) -> np.ndarray:
    try:
        return np.array(x, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: an array of numbers is needed, not {shown(x)}") from None


def _points(x: Any, name: str) -> np.ndarray:
    points = _numbers(x, name)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0 or not np.isfinite(points).all():
        raise ValueError(f"{name}: an array of shape (n, 2), n at least 1, of finite numbers is needed, not {shown(x)}")
    return points


def _named(panels: Any, name: str) -> None:
    if not isinstance(panels, Mapping) or not panels:
        raise TypeError(f"{name}: a dict from a title to what its panel shows, one at least, not {shown(panels)}")


def grid(points: Any, side: int = 40) -> np.ndarray:
    """The points at which `boundary` wants scores: side * side of them over the area around `points` of shape (n, 2).

    Returns an array of shape (side * side, 2), row by row. Raises ValueError for points of another shape, and if there
    are none.
    """
    points, side = _points(points, "points"), whole(side, "the side of the grid", least=2)
    low, high = points.min(axis=0) - 0.4, points.max(axis=0) + 0.4
    x, y = np.meshgrid(np.linspace(low[0], high[0], side), np.linspace(low[1], high[1], side))
    return np.column_stack([x.ravel(), y.ravel()])


@_picture
def boundary(stages: Mapping[str, Any], points: Any, labels: Any) -> Picture:
    """A panel for each stage of a training: where the network says yes, where no, and the border between.

    stages  from a title to the scores at that time, one for each row of `grid(points)`
    points  of shape (n, 2); labels are 1 and -1
    Raises TypeError or ValueError for other shapes, and if there are no stages.
    """
    points, labels = _points(points, "points"), _numbers(labels, "the labels").reshape(-1)
    _named(stages, "stages")
    if len(labels) != len(points):
        raise ValueError(f"{len(points)} points and {len(labels)} labels: there must be one for each")
    figure, axes = _panels(len(stages), 2.6, 2.3)
    for panel, (title, scores) in zip(axes[0], stages.items()):
        scores = _numbers(scores, "the scores").reshape(-1)
        side = round(len(scores) ** 0.5)
        if side < 2 or side * side != len(scores):
            raise ValueError(f"{len(scores)} scores at {title!r}: there is one for each row of grid(points)")
        x, y = grid(points, side).T.reshape(2, side, side)
        z = scores.reshape(side, side)
        panel.contourf(x, y, z, levels=[-np.inf, 0.0, np.inf], colors=["#fbe0cf", "#cfe5f3"])
        if z.min() < 0.0 < z.max():
            panel.contour(x, y, z, levels=[0.0], colors="black", linewidths=1.5)
        for label, colour, marker in ((1, BLUE, "o"), (-1, ORANGE, "s")):
            panel.scatter(*points[labels == label].T, s=12, c=colour, marker=marker, edgecolors="white", linewidths=0.4)
        panel.set(title=title, xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
    return figure


@_picture
def curves(history: Sequence[Mapping[str, float]]) -> Picture:
    """The lines of `fit`, as curves: the losses over the epochs and, where there is one, the held-out accuracy.

    A history with "held_out_loss" shows its lowest point, where one had better stopped. Raises TypeError or ValueError
    for what is no history.
    """
    if not isinstance(history, Sequence) or not all(isinstance(line, Mapping) for line in history):
        raise TypeError(f"curves takes the list of dicts that fit returns, not {shown(history)}")
    if not history or not all({"epoch", "loss"} <= set(line) for line in history):
        raise ValueError("curves takes what fit returns: at least one epoch, each with its 'epoch' and 'loss'")
    epochs = [line["epoch"] for line in history]
    held_out = "held_out_loss" in history[0]
    figure, axes = _panels(1 + held_out, 3.4, 2.5)
    losses = axes[0, 0]
    losses.plot(epochs, [line["loss"] for line in history], color=BLUE, label="training")
    if held_out:
        values = [line["held_out_loss"] for line in history]
        best = int(np.argmin(values))
        losses.plot(epochs, values, color=ORANGE, label="held out")
        losses.plot(epochs[best], values[best], "o", color=ORANGE, label=f"lowest: epoch {epochs[best]}")
        shares = [line["held_out_accuracy"] for line in history]  # None for a regression
        axes[0, 1].plot(epochs, [np.nan if share is None else 100 * share for share in shares], color=ORANGE)
        axes[0, 1].set(title="held-out examples that are right", xlabel="epoch")
        axes[0, 1].yaxis.set_major_formatter("{x:g} %")
    losses.set(title="loss", xlabel="epoch", ylim=(0.0, None))
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


@_picture
def digits(images: np.ndarray, labels: Sequence[int], answers: Sequence[int], columns: int = 10) -> Picture:
    """Digits with a network's answers; the wrong ones are framed, and the right digit stands beside the answer.

    images  of shape (n, 64) or (n, 8, 8), from 0 (paper) to 1 (ink)
    labels  the right digits; answers are the network's
    Raises ValueError for other shapes, and if there is not one label and one answer for each image.
    """
    if not 0 < len(images) == len(labels) == len(answers):
        given = f"{len(images)} images, {len(labels)} labels and {len(answers)} answers"
        raise ValueError(f"digits takes images, a label and an answer for each, one at least, not {given}")
    if _numbers(images, "images").size != 64 * len(images):
        raise ValueError(f"images have shape (n, 64) or (n, 8, 8), not {np.shape(images)}")
    columns = whole(columns, "the number of columns")
    figure, axes = _panels(columns, 0.72, 0.88, rows=-(-len(images) // columns))
    for panel in axes.flat:
        panel.set_axis_off()
    for panel, image, label, answer in zip(axes.flat, images, labels, answers):
        wrong = label != answer
        panel.imshow(np.reshape(image, (8, 8)), cmap="Greys", vmin=0.0, vmax=1.0)
        panel.set_title(f"{answer}, not {label}" if wrong else f"{answer}", fontsize=9, color=ORANGE if wrong else GREY)
        if wrong:
            panel.set_axis_on()
            panel.set(xticks=[], yticks=[])
            for spine in panel.spines.values():
                spine.set(visible=True, color=ORANGE, linewidth=3.0)
    return figure


@_picture
def jacobian(table: np.ndarray) -> Picture:
    """A table of slopes, of shape (n, n), as an image: blue where a slope is positive, orange where it is negative.

    The colours are symmetric around 0, which is white. A small table shows its numbers as well. Raises TypeError or
    ValueError for another shape.
    """
    from matplotlib.colors import LinearSegmentedColormap

    table = _numbers(table, "the table")
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"a table of slopes has shape (n, n), not {table.shape}")
    largest = np.abs(table).max()
    figure, axes = _panels(1, 5.0, 4.0)
    panel = axes[0, 0]
    colours = LinearSegmentedColormap.from_list("slopes", [ORANGE, "white", BLUE])
    image = panel.imshow(table, cmap=colours, vmin=-largest, vmax=largest)
    panel.set(xlabel="the score that moves", ylabel="the share that answers")
    panel.spines[:].set_visible(False)
    if len(table) <= 8:
        panel.set(xticks=range(len(table)), yticks=range(len(table)))
        for (row, column), slope in np.ndenumerate(table):
            colour = "white" if abs(slope) > 0.6 * largest else "black"
            panel.text(column, row, f"{slope:.3f}", ha="center", va="center", color=colour, fontsize=9)
    figure.colorbar(image, label="slope", shrink=0.9)
    return figure


@_picture
def valley(paths: Mapping[str, Any], curvatures: Sequence[float]) -> Picture:
    """Optimizers' ways down the valley 0.5 * (c1 * x ** 2 + c2 * y ** 2), a panel for each; the curvatures are c1, c2.

    paths  from a title to the positions, an array of shape (steps + 1, 2) that begins at the start
    Raises TypeError or ValueError for other shapes, positions that are not finite, and if there are no paths.
    """
    _named(paths, "paths")
    paths = {title: _points(path, f"the positions of {title!r}") for title, path in paths.items()}
    if np.shape(curvatures) != (2,):
        raise ValueError(f"there are two curvatures, not {shown(curvatures)}")
    everything = np.concatenate([*paths.values(), [[0.0, 0.0]]])
    low, high = everything.min(axis=0) - 0.15, everything.max(axis=0) + 0.15
    x, y = np.meshgrid(np.linspace(low[0], high[0], 80), np.linspace(low[1], high[1], 80))
    height = 0.5 * (curvatures[0] * x**2 + curvatures[1] * y**2)
    figure, axes = _panels(len(paths), 2.7, 2.5)
    for panel, (title, path) in zip(axes[0], paths.items()):
        panel.contour(x, y, height, levels=np.geomspace(0.01, height.max(), 12), colors="#b8c0c8", linewidths=0.7)
        panel.plot(*path.T, color=BLUE, linewidth=1.0, marker=".", markersize=4.0)
        panel.plot(*path[0], "o", color=GREY, markersize=6.0)
        panel.plot(0.0, 0.0, "*", color=ORANGE, markersize=11.0)
        panel.set(title=title, xlabel="x", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes[0, 0].set(ylabel="y")
    return figure
