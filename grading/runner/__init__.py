"""Runs tested code apart from the grader, on a copy, and says what happened. It judges nothing."""
