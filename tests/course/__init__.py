"""Tests of the course itself, in rooms."""

import os

# Two workers share the cores: with more threads NumPy and PyTorch would only wait for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
