"""Errors of Python and NumPy in an answer: what the learner is told of them."""

import re

import pytest

from grading.course import chapters as course
from tests.course.conftest import grade

# The task, its answer (or the answers at its places), words of what is shown, words that are not.
ERRORS = {
    "np.sum of a Tensor": (
        "03.2",
        "return np.sum(x, axis) / count\n",
        "This module's own sum(x, axis, keepdims) has a way back",
        "",
    ),
    "a function of the file for Tensors, on an array": (
        "04.3",
        "slope = 1.0 - tanh(x.data) ** 2\nx.grad += slope * upstream\n",
        "`tanh` is the function of this file here, which makes a Tensor. Of an array take np.tanh.",
        "is a .data missing",
    ),
    "max of the file, which hides Python's": (
        "04.5",
        "winners = x.data == max(x.data, axis, keepdims=True)\n"
        "x.grad += winners / winners.sum(axis=axis, keepdims=True) * upstream\n",
        "`max` is the function of this file here, which makes a Tensor. Of an array take np.max.",
        "",
    ),
    "max of the file inside of a function of NumPy's": (
        "04.6",
        "powers = np.exp(z - max(z, axis=axis, keepdims=True))\nreturn powers / powers.sum(axis=axis, keepdims=True)\n",
        "Of an array take np.max.",
        "",
    ),
    "a name of the package that is not imported": (
        "12.1",
        "scores = query @ transpose(key, (*range(key.ndim - 2), -1, -2)) * query.shape[-1] ** -0.5\n"
        "if mask is not None:\n    scores = clip(scores, None, 1e9) + mask\nreturn softmax(scores, -1) @ value\n",
        "`from meintorch.activations import clip`, at the top of the file",
        "with a mask and not",
    ),
    "a name of a file that needs this one": (
        "03.2",
        "return matmul(x, x)\n",
        "`from meintorch.matmul import matmul`, inside of the function",
        "",
    ),
    "a name of a later chapter": (
        "06.3",
        "return reduce(-sum(concatenate([log_probabilities])), reduction)\n",
        "Putting Tensors together (concatenate, stack) comes in chapter 11; here: reshape",
        "import",
    ),
    "a name that is spelled in another way": (
        "02.2",
        "self.grad += unbroadcast(other.data * upsteram, self.shape)\n",
        "There is no `upsteram` in this place. Is it `upstream`? Given are: self, other, out, upstream.",
        "",
    ),
    "a module that is not imported": (
        "12.1",
        "return softmax(query @ transpose(key, (0, 2, 1)) / math.sqrt(2.0), -1) @ value\n",
        "put `import math` at its top",
        "",
    ),
    "np.split of a Tensor": (
        "12.3",
        "return np.stack(np.split(x, heads, axis=-1), axis=1)\n",
        "np.split takes arrays, and this is a Tensor. The graph goes on through operators",
        "",
    ),
    "a method of arrays, of a Tensor whose graph has to go on": (
        "06.1",
        "return reduce((prediction - target).ravel(), reduction)\n",
        "An array has ravel, and a Tensor has not, and here the graph has to go on.",
        "array is in .data",
    ),
    "** where there is none": (
        "10.8",
        ["reference", "x, y = as_tensor(x, like=y), as_tensor(y, like=x)\nreturn (x * x + y * y) ** 0.5\n"],
        "These Tensors have no **.",
        "as_tensor",
    ),
    "^ for a power": ("06.1", "return reduce((prediction - target) ^ 2, reduction)\n", "^ is no power in Python", ""),
    "the function in place of its result": (
        "08.2",
        "optimizer.zero_grad()\nvalue = loss(model(inputs), answers)\nloss.backward()\noptimizer.step()\n"
        "return value.item()\n",
        "`loss` is the function itself: what it gave is called `value`.",
        "plain number",
    ),
    "== between Tensors": (
        "08.3",
        "return float((Tensor(scores) == Tensor(labels)).mean())\n",
        "== compares the two objects",
        "",
    ),
    "np.split with one number": (
        "13.1",
        [
            "reference",
            "for parameter, piece in zip(parameters, np.split(change, len(parameters))):\n"
            "    parameter.data += piece.reshape(parameter.shape)\n",
        ],
        "np.split(x, n) makes n pieces of one size",
        "may be a table",
    ),
    "np.split with sizes": (
        "13.1",
        [
            "reference",
            "for parameter, piece in zip(parameters, np.split(change, [one.size for one in parameters])):\n"
            "    parameter.data += piece.reshape(parameter.shape)\n",
        ],
        "np.split takes the places where it cuts, and not lengths",
        "",
    ),
    "an array of arrays of different sizes": (
        "13.1",
        ["return np.array([parameter.data for parameter in parameters]).ravel()\n", "reference"],
        "put together by np.concatenate",
        "",
    ),
    "a function that a check has lent": (
        "02.1",
        "self.grad += unbroadcast(upstream)\n",
        "unbroadcast() missing 1 required positional argument: 'shape'",
        "summed_to",
    ),
    "a stand-in for an optimizer": (
        "08.2",
        "value = loss(model(inputs), answers)\noptimizer.reset()\nreturn value.item()\n",
        "'Optimizer' object has no attribute 'reset'",
        "Plain",
    ),
    "a stand-in for a model": (
        "08.4",
        "scores = model.predict(loader.inputs)\nreturn 0.0, 0.0\n",
        "'Module' object has no attribute 'predict'",
        "Scale",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_explained_by_what_was_typed(package, name):
    task_id, bodies, words, not_said = ERRORS[name]
    chapter, task = course.find_task(task_id)
    if isinstance(bodies, list):
        bodies = [part.region.answer() if body == "reference" else body for part, body in zip(task.parts, bodies)]
    report = grade(chapter, package("reference", {task_id: bodies}), task)
    assert report.tasks[0].status == "failed"
    shown = report.tasks[0].first_failure
    text = f"{shown.message} {shown.diagnosis}"
    assert words in text
    assert not not_said or not_said not in text


@pytest.mark.parametrize("name", ["a function that a check has lent", "a stand-in for an optimizer"])
def test_no_name_from_the_tests_is_in_any_message(package, name):
    task_id, body, *_ = ERRORS[name]
    chapter, task = course.find_task(task_id)
    report = grade(chapter, package("reference", {task_id: body}), task, goal=True)
    defined = re.findall(r"^ *(?:def|class) (\w+)", chapter.tests.read_text(encoding="utf-8"), re.MULTILINE)
    given = re.findall(r"\w+", " ".join(part.region.arguments + part.region.qualname for part in task.parts))
    for result in report.tasks[0].results:
        if not result.is_check:
            assert not set(re.findall(r"\w+(?=\()|(?<=')\w+(?=' object)", result.message)) & (set(defined) - set(given))
