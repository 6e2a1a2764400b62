"""Code that runs into the TODO of a later chapter: its task has failed, and is told what to use in its place.

What a later chapter is about is no prerequisite of an earlier one, so such a task does not wait for it.
"""

from grading.course.chapters import Check, Task, chapters
from grading.course.compose import raising
from grading.course.package import Package
from grading.course.place import Place
from grading.verdict.results import Report, Result
from grading.verdict.trial import Trial

# By task: what comes with it, and what earlier chapters have in its place. The title has to do for a task without.
NOT_RECORDED = "p.data in a step, and for the rest nothing: a graph that nobody walks does no harm"
ARRAYS = "NumPy's own, on plain arrays"
INSTEAD = {
    "02.3": ("Tensor.backward()", "the backward() of Value"),
    "03.1": ("The sum of a Tensor", ARRAYS),
    "03.2": ("The mean of a Tensor", ARRAYS),
    "03.3": ("Reshaping a Tensor", ARRAYS),
    "03.4": ("Transposing a Tensor (.T)", ARRAYS),
    "03.5": ("@ of Tensors that are no matrices", "@ of two matrices"),
    "03.6": ("@ of Tensors that are vectors", "@ of two matrices"),
    "03.7": ("@ of Tensors that are no matrices", "@ of two matrices"),
    "04.1": ("exp of a Tensor", ARRAYS),
    "04.2": ("log of a Tensor", ARRAYS),
    "04.5": ("max of a Tensor", ARRAYS),
    "04.7": ("softmax of a Tensor", ARRAYS),
    "09.1": ("no_grad", NOT_RECORDED),
    "09.2": ("no_grad", NOT_RECORDED),
    "09.3": ("@no_grad()", NOT_RECORDED),
    "09.4": ("detach", "as_tensor(x.data), a constant around the same array"),
    "09.5": ("retain_grad", "backward(keep_graph=True), which keeps every gradient"),
    "11.1": ("Indexing a Tensor", "reshape, or a product with zeros and ones and a sum"),
    "11.2": ("Putting Tensors together (concatenate, stack)", "reshape and broadcasting, or matrix products and sums"),
    "11.3": ("scatter_add", "np.add.at on arrays"),
    "11.4": ("Embedding", "rows of zeros and ones, times the table"),
    "11.5": ("var", "the mean of the squared distances from the mean"),
    "11.8": ("gelu", "relu or tanh"),
}


def explain(report: Report, trial: Trial, results: dict[str, Result]) -> None:
    """Make a failure of every result that a later chapter's TODO has stopped.

    It says what comes later, what to use in its place and, where that can be found, the line of the learner's code.
    """
    chapter = report.chapter
    after = {task.id: (other, task) for other in chapters() if other.number > chapter.number for task in other.tasks}
    stopped = {
        name: result.message.removeprefix("TODO ")
        for name, result in results.items()
        if result.kind == "NotImplementedError" and result.message.removeprefix("TODO ") in after
    }
    if not stopped:
        return
    tasks = {after[number][1] for number in stopped.values()}
    frames = _frames_at_the_call(
        report.package, trial, [check for check in report.checks if check.name in stopped], tasks
    )
    for name, number in stopped.items():
        result, (its_chapter, task) = results[name], after[number]
        result.status, result.kind = "failed", ""
        result.message = f"This runs into the TODO of {number} {task.title}, a task of chapter {its_chapter.number}."
        result.diagnosis = coming(number, task.title, chapter.number)
        result.frames = frames.get(name, ())
        result.place = result.frames[-1] if result.frames else None


def coming(number: str, title: str, chapter: str) -> str:
    """What a task of a later chapter is about, and what there is in its place in this one."""
    what, here = INSTEAD.get(number, (title, f"what the chapters up to {chapter} have"))
    return f"{what} comes in chapter {number[:2]}; here: {here}."


def _frames_at_the_call(
    package: Package, trial: Trial, checks: list[Check], tasks: set[Task]
) -> dict[str, tuple[Place, ...]]:
    """Where the learner's code calls what later tasks are about, by check.

    Mostly their TODOs stand in backward rules, which run long after that: for once, the functions around them raise.
    """
    loud: dict[str, str] = {}
    for part in (part for task in tasks for part in task.parts):
        loud[part.file] = raising(loud.get(part.file, package.sources[part.file]), part.region)
    outcomes = trial.run(package.with_sources(loud), checks).outcomes
    given = {f"meintorch/{name}" for name in loud}
    return {
        name: tuple(frame for frame in outcome.frames if frame.file not in given)
        for name, outcome in outcomes.items()
        if outcome.kind == "NotImplementedError"
    }
