"""What `python grader.py new` writes. Every place that waits for its author has the mark GAP, which course-check finds.

<<task>> is "05.7", <<number>> "05", <<title>> "Softplus", <<name>> the name in the code, softplus.
"""

from grading.course.chapters import Chapter

GAP = "GAP:"

TASK_SECTION = """### <<task>> <<title>>

<<before>>GAP: what it is and why it is needed, in plain words. Nothing is used before it is taught. A question to
predict, a cell that answers it, and a number worked by hand.

**Write** the body of `<<name>>`. GAP: the parameters with their shapes, and what to return.

<details><summary>Hint 1 - the direction</summary>

GAP: in which direction to think, without code. At most 160 words, one approach, no new concept.

</details>

<details><summary>Hint 2 - more concrete</summary>

GAP: which steps, which names, still without the answer itself. At most 160 words.

</details>

<details><summary>Hint 3 - almost there</summary>

GAP: a sentence, and the answer as a listing with dots in place of its last thought.

</details>

<details><summary>Solution</summary>

```python .noeval
raise NotImplementedError("TODO <<task>>")  # GAP: the simplest right answer
```

</details>

"""

BEFORE = """First see <<task>> at work:

GAP: a short cell that uses the answer to <<task>>, its result in a comment.

"""

FUNCTION = '''

def <<name>>(x):
    """GAP: what it gives, with shapes and dtypes, and the errors that it raises. Above, types for the parameters."""
    # <<task>>: GAP: how the answer goes, in a line. `explain` shows it.
    raise NotImplementedError("TODO <<task>>")  # GAP: the answer, 1 to 15 lines
'''

CHECK = '''@pytest.mark.task("<<task>>")
def test_<<name>>_gives_what_was_worked_by_hand():
    """GAP: the claim in a sentence, which the name of the test says too, and the number worked by hand."""
    out = <<name>>(1.0)  # GAP: the arguments
    # GAP: check_close and the like, in place of the next line
    raise CheckFailed(f"it gives {out}, and this check is not written yet")
'''

GOAL_CHECK = '''@pytest.mark.goal
@pytest.mark.task("<<task>>")
def test_goal_<<name>>_holds_on_random_shapes_and_at_the_edges():
    """GAP: the harder claim: random shapes, edge values, every gradient against a central difference."""
    out = <<name>>(1.0)  # GAP: the arguments
    # GAP: check_gradient and the like, in place of the next line
    raise CheckFailed(f"it gives {out}, and this check is not written yet")
'''

WRONG = """## <<task>> GAP: the name of a mistake that learners make here

Named: GAP: words of the diagnosis that it must get

```python .noeval
raise NotImplementedError("TODO <<task>>")  # GAP: the body of the task with this mistake
```
"""

RIGHT = """## <<task>> GAP: the name of another right style

```python .noeval
raise NotImplementedError("TODO <<task>>")  # GAP: the body of the task in this style
```
"""

CORPUS_TITLES = {
    "wrong": "# Mistakes of chapter <<number>>\n",
    "right": "# Right answers to chapter <<number>> in other styles\n",
}

MODULE = '''"""Chapter <<number>>: GAP: what this module is, in a sentence."""
'''

TESTS = '''"""The checks of chapter <<number>>: python grader.py <<number>>"""

import pytest

from meintorch.<<module>> import <<name>>
from tests._helpers import CheckFailed

# GAP: the first check of a chapter is its milestone: something surprising that works now.
'''

CHAPTER = """---
jupyter:
  jupytext:
    text_representation: {extension: .md, format_name: markdown}
  kernelspec: {display_name: Python 3, language: python, name: python3}
---

# <<number>> <<title>>

## The idea

GAP: one picture in words, a question to predict before running, and a cell that shows it.

## The goal

GAP: what will work at the end that did not work before.

The milestone: GAP: in one sentence.

## Zero magic

GAP: what is forbidden here, and what NumPy may do.

## The exercise

Open `meintorch/<<module>>.py`. GAP: how many places are the learner's, and what is given.

<<section>>## Check it

`python grader.py <<number>>` checks the chapter. GAP: the milestone test explained.

## Break it

Break your finished code on purpose, predict, and run `python grader.py <<number>>`. Then undo it in your editor.

GAP: what to break, two or three times: a listing with the broken body, and one with words that the grader will say.

```python .noeval
# <<task>>
raise NotImplementedError("TODO <<task>>")  # GAP: a broken body
```

```text
GAP: words that the grader says
```

## In goal mode

Give this to a coding agent, instead of filling in the tasks yourself:

```text
GAP: an instruction to write the chapter alone, its own tests included. Fill in every place
marked TODO <<number>>.1 to TODO <<task>> in meintorch/<<module>>.py.
```

`python grader.py <<number>> --goal` adds the harder suite. GAP: what it asks.

## What PyTorch does

GAP: the same idea in the real thing, in two or three sentences, with the real names.

## Next

GAP: one line.
"""


def task_section(chapter: Chapter | None) -> str:
    """The section of the next task of a chapter, or of the first one of a new chapter."""
    before = fill(BEFORE, task=chapter.tasks[-1].id) if chapter and chapter.tasks else ""
    return fill(TASK_SECTION, before=before)


def fill(template: str, **words: str) -> str:
    """A template with its places filled: `<<name>>` by name=..."""
    for word, text in words.items():
        template = template.replace(f"<<{word}>>", text)
    return template
