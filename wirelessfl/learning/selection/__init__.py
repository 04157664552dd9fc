"""Selection of the clients of a round."""

from wirelessfl.learning.selection.age import SelectOldest
from wirelessfl.learning.selection.by_channel import SelectBestChannel, SelectChannelThreshold, SelectProportionalFair
from wirelessfl.learning.selection.oort import SelectOort
from wirelessfl.learning.selection.power_of_choice import SelectPowerOfChoice
from wirelessfl.learning.selection.protocol import (
    AskingSelection,
    Chosen,
    Known,
    LearningSelection,
    LossReports,
    RoundFeedback,
    ScoredSelection,
    Selection,
    SelectionContext,
    SelectionFacts,
)
from wirelessfl.learning.selection.rules import SelectAll, SelectPoisson, SelectRoundRobin, SelectUniform

__all__ = [
    "AskingSelection",
    "Chosen",
    "Known",
    "LearningSelection",
    "LossReports",
    "RoundFeedback",
    "ScoredSelection",
    "SelectAll",
    "SelectBestChannel",
    "SelectChannelThreshold",
    "SelectOldest",
    "SelectOort",
    "SelectPoisson",
    "SelectPowerOfChoice",
    "SelectProportionalFair",
    "SelectRoundRobin",
    "SelectUniform",
    "Selection",
    "SelectionContext",
    "SelectionFacts",
]
