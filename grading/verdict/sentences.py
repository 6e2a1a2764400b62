"""A test's name as the sentence that it is."""

import re
from functools import lru_cache

from grading.course.chapters import chapters, reference


def sentence_of(name: str) -> str:
    """A test's name as a sentence: "test_no_grad_stops_the_recording" -> "no_grad stops the recording"."""
    text = f"_{name.removeprefix('test_').removeprefix('goal_')}_"
    for code in code_names():
        text = text.replace(f"_{code}_", f"_{code.replace('_', chr(0))}_")
    return text.strip("_").replace("_", " ").replace(chr(0), "_")


@lru_cache(maxsize=1)
def code_names() -> list[str]:
    """Names with an underscore that stand for a piece of code in a test's name, the longest first."""
    names = {"zero_grad", *re.findall(r"[a-z]\w*_\w+", reference()["__init__.py"])}
    regions = [part.region for chapter in chapters() for task in chapter.tasks for part in task.parts]
    names.update(name for region in regions for name in region.qualname.split(".") if "_" in name.strip("_"))
    return sorted(names, key=len, reverse=True)
