"""Tests that must fail. One that passes shows that the checks have been disabled: see grading/runner/launch.py."""

import numpy as np
import pytest

from tests._helpers import check_close


def test_canary_of_assert() -> None:
    assert 1 > 2


def test_canary_of_the_checks() -> None:
    check_close(np.array([1.0]), np.array([2.0]), "the canary")


def test_canary_of_numpy() -> None:
    np.testing.assert_allclose(1.0, 2.0)


def test_canary_of_raises() -> None:
    with pytest.raises(ValueError):
        pass
