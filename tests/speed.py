"""Parameters of tests of which `make test` runs the first and `make test-all` the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_slow(values: Iterable[Any], fast: int = 1) -> list[Any]:
    """The same values for ``pytest.mark.parametrize``, all behind the first ``fast`` marked slow.

    Args:
        values: of one parameter, or a tuple of each of several.
        fast: how many are left to every run.
    """
    marked = []
    for place, value in enumerate(values):
        several = value if isinstance(value, tuple) else (value,)
        marked.append(value if place < fast else pytest.param(*several, marks=pytest.mark.slow))
    return marked
