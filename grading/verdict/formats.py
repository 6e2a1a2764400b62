"""The report in the forms that other systems read: JUnit XML, Gradescope's and Exercism's results.json.

https://github.com/testmoapp/junitxml
https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
https://github.com/exercism/docs/blob/main/building/tooling/test-runners/interface.md
"""

import ast
from xml.etree import ElementTree as xml

from grading.course.chapters import Check
from grading.course.files import read_source
from grading.runner.outcomes import printable
from grading.verdict.results import Report, Result
from grading.verdict.sentences import sentence_of

EXERCISM_OUTPUT = 500  # characters of a test's own output that Exercism accepts


def junit(reports: list[Report]) -> str:
    """A test suite for every chapter. What is to do counts as failed: nobody shall read it as passed."""
    root = xml.Element("testsuites", name="meintorch")
    for report in reports:
        cases = _cases(report)
        suite = xml.SubElement(
            root,
            "testsuite",
            name=f"{report.chapter.number} {report.chapter.title}",
            tests=str(report.max_score),
            failures=str(sum(result.status not in ("passed", "error") for _, result in cases)),
            errors=str(sum(result.status == "error" for _, result in cases)),
            time=f"{sum(result.duration for _, result in cases):.3f}",
        )
        for check, result in cases:
            case = xml.SubElement(
                suite, "testcase", classname=check.task, name=sentence_of(check.name), time=f"{result.duration:.3f}"
            )
            if result.status != "passed":
                kind = "error" if result.status == "error" else "failure"
                message = printable(result.message)  # XML has no way to write a control character
                xml.SubElement(case, kind, message=message, type=result.status).text = printable(_words(result))
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def gradescope(reports: list[Report]) -> dict[str, object]:
    """A test with one point for every check."""
    tests = [
        {
            "name": f"{check.task} {sentence_of(check.name)}",
            "number": check.task,
            "score": int(result.status == "passed"),
            "max_score": 1,
            "status": "passed" if result.status == "passed" else "failed",
            "output": _words(result),
        }
        for report in reports
        for check, result in _cases(report)
    ]
    return {
        "score": sum(report.score for report in reports),
        "output": "\n".join(filter(None, map(_not_gradable, reports))),
        "tests": tests,
    }


def exercism(report: Report) -> dict[str, object]:
    """Version 3 of Exercism's results."""
    if report.not_gradable:
        return {"version": 3, "status": "error", "message": _not_gradable(report), "tests": []}
    code = _code_of_tests(report)
    tests = [
        {
            "name": f"{check.task} {sentence_of(check.name)}",
            "status": {"passed": "pass", "error": "error"}.get(result.status, "fail"),
            "message": None if result.status == "passed" else _words(result),
            "output": result.output[:EXERCISM_OUTPUT],
            "test_code": code[check.name],
            "task_id": int(check.task.partition(".")[2]),
        }
        for check, result in _cases(report)
    ]
    return {"version": 3, "status": "pass" if report.passed else "fail", "message": None, "tests": tests}


def _cases(report: Report) -> list[tuple[Check, Result]]:
    """Every check that was asked for with its result, in the order of the tests' file."""
    if report.not_gradable:
        return [(check, Result(check.name, "error", _not_gradable(report))) for check in report.checks]
    return [(check, report.results[check.name]) for check in report.checks]


def _words(result: Result) -> str:
    where = str(result.place) if result.place else ""
    return "" if result.status == "passed" else "\n".join(filter(None, [where, result.message, result.diagnosis]))


def _not_gradable(report: Report) -> str:
    problem = report.not_gradable
    if problem is None:
        return ""
    return "\n".join(filter(None, [str(problem.place), problem.place.source, problem.reason]))


def _code_of_tests(report: Report) -> dict[str, str]:
    source = read_source(report.chapter.tests)
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(source, node) or "" for node in functions}
