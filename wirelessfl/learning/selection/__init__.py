"""Selection of the clients of a round."""

from wirelessfl.learning.selection.age import SelectOldest
from wirelessfl.learning.selection.by_channel import SelectBestChannel, SelectChannelThreshold, SelectProportionalFair
from wirelessfl.learning.selection.protocol import (
    Chosen,
    Known,
    LearningSelection,
    RoundFeedback,
    ScoredSelection,
    Selection,
    SelectionContext,
    SelectionFacts,
)
from wirelessfl.learning.selection.rules import SelectAll, SelectPoisson, SelectRoundRobin, SelectUniform

__all__ = [
    "Chosen",
    "Known",
    "LearningSelection",
    "RoundFeedback",
    "ScoredSelection",
    "SelectAll",
    "SelectBestChannel",
    "SelectChannelThreshold",
    "SelectOldest",
    "SelectPoisson",
    "SelectProportionalFair",
    "SelectRoundRobin",
    "SelectUniform",
    "Selection",
    "SelectionContext",
    "SelectionFacts",
]
