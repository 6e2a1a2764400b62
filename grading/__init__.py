"""The machinery behind `python grader.py`."""
