"""The table of `python benchmarks/run.py`: which workloads it is asked for, and an engine that is not there."""

import importlib
import sys

import pytest

from grading.course import chapters as course


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(course.ROOT / "benchmarks")
    return importlib.import_module("run")


def test_a_word_that_begins_no_name_is_answered_with_the_names(run, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py", "T", "transformer"])
    with pytest.raises(SystemExit, match=r"'transformer'\. There are: .*B add"):
        run.main()


def test_where_the_first_engine_is_missing_the_next_is_what_the_others_are_compared_with(run, monkeypatch, capsys):
    Engine = importlib.import_module("timing").Engine
    engines = [
        Engine("torch", problem="No module named 'torch'"),
        Engine("meintorch", [2.0, 4.0]),
        Engine("autograd", [3.0, 6.0]),
    ]
    monkeypatch.setattr(run, "compare", lambda *_: engines)
    monkeypatch.setattr(sys, "argv", ["run.py", "D"])
    run.main()
    table = capsys.readouterr().out
    assert "| torch | cannot: No module named 'torch' | | |" in table
    assert "times meintorch" in table
    assert "| autograd | 4500.000 | 1.50 | 0.000000 |" in table


def test_where_no_engine_can_do_a_workload_each_says_why(run, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('there is no library')")
    one, other = importlib.import_module("timing").compare("D", ["torch", "meintorch"], 0.1, str(script))
    assert one.problem == other.problem == "there is no library"
