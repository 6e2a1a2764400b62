"""What a pull request has to pass is what the README tells a maintainer to run."""

import os
import re
import stat

from grading.course.chapters import ROOT
from grading.course.files import read_source

RUN = ROOT / ".ci" / "run"


def test_the_script_runs_the_tests_as_the_readme_says():
    said = re.search(r"^python (-m pytest tests/course .+)$", read_source(ROOT / "README.md"), re.MULTILINE)
    assert f'"$python" {said[1]} "$@"\n' in read_source(RUN)


def test_the_script_ends_with_the_tests_whose_last_line_says_how_many_have_passed():
    last = read_source(RUN).rstrip("\n").split("\n")[-1]
    assert last.startswith('"$python" -m pytest ')
    assert "-q" not in last.split()


def test_the_script_can_be_started():
    assert os.name != "posix" or RUN.stat().st_mode & stat.S_IXUSR
