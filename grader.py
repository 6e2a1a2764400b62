"""The front door of the course. For what it can do: python grader.py --help"""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036 - an old Python must be told so in words, not with a syntax error
    sys.stderr.write("The course needs Python 3.10 or newer. This is Python %d.%d.\n" % sys.version_info[:2])  # noqa: UP031
    sys.exit(2)

# A json.py or random.py of the learner's beside this file must not come before Python's own.
root = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != root] + [root]

from grading.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
