"""The front door of the course. For what it can do: python grader.py --help"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - an old Python must be told so in words, not with a syntax error
    sys.stderr.write("The course needs Python 3.10 or newer. This is Python %d.%d.\n" % sys.version_info[:2])  # noqa: UP031
    sys.exit(2)

from grading.cli import main

if __name__ == "__main__":
    sys.exit(main())
