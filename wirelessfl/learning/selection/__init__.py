"""Selection of the clients of a round, and their availability."""

from wirelessfl.learning.selection.base import Selection, SelectionContext, SelectionFacts
from wirelessfl.learning.selection.schemes import SelectAll, SelectPoisson, SelectUniform

__all__ = ["SelectAll", "SelectPoisson", "SelectUniform", "Selection", "SelectionContext", "SelectionFacts"]
