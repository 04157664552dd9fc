"""Selection of the clients of a round, and their availability."""

from wirelessfl.learning.selection.rules import (
    SelectAll,
    Selection,
    SelectionContext,
    SelectionFacts,
    SelectPoisson,
    SelectRoundRobin,
    SelectUniform,
)

__all__ = [
    "SelectAll",
    "SelectPoisson",
    "SelectRoundRobin",
    "SelectUniform",
    "Selection",
    "SelectionContext",
    "SelectionFacts",
]
