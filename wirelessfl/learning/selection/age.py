"""Selection by age of information."""

from dataclasses import dataclass, replace

from typing_extensions import override

from wirelessfl.learning.selection.draws import largest_of
from wirelessfl.learning.selection.protocol import Chosen, ScoredSelection, SelectionContext, SelectionFacts


@dataclass(frozen=True)
class SelectOldest(ScoredSelection):
    """``count`` clients with the most rounds since the server last heard them, equal ones at random.

    A client that was selected and not heard keeps its age; one that was never heard has that of the round, m (Yang,
    Arafa, Quek and Poor, ICASSP 2020).
    """

    @override
    def facts(self) -> SelectionFacts:
        return SelectionFacts(frozenset({"age"}))

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        age = replace(context.sparse("age"), rest=float(context.round_index))
        return largest_of(age, count, context.streams.generator("selection", context.round_index))
