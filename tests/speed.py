"""Parameters of tests of which `make test` runs the first and `make test-all` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_PARAMETER_SET = type(pytest.param())


def rest_slow(values: Iterable[Any], fast: int = 1) -> list[Any]:
    """The same values for ``pytest.mark.parametrize``, all behind the first ``fast`` marked slow.

    Args:
        values: of one parameter, a tuple of each of several, or what ``pytest.param`` gives.
        fast: how many are left to every run.
    """
    return [value if place < fast else _slow(value) for place, value in enumerate(values)]


def _slow(value: Any) -> Any:
    if isinstance(value, _PARAMETER_SET):
        return pytest.param(*value.values, marks=(*value.marks, pytest.mark.slow), id=value.id)
    several = value if isinstance(value, tuple) else (value,)
    return pytest.param(*several, marks=pytest.mark.slow)
