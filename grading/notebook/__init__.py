"""A chapter as a notebook, and what a running notebook adds to IPython."""
