"""An upload without any noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.spending import Caveat, Spending, no_guarantee
from wirelessfl.privacy.statement import PrivacyFacts, Statement


@dataclass(frozen=True, eq=False)
class BareRelease:
    """Updates handed over with no noise of the channel or the server: only local noise could protect them.

    Attributes:
        round_index: Communication round.
        clients: (n,) who uploaded.
    """

    route: ClassVar[str] = "an upload without noise"

    round_index: int
    clients: NDArray[np.int64]

    @property
    def relation(self) -> str:
        """Any."""
        return "any two runs"

    def published(self, facts: PrivacyFacts) -> Spending:
        """No paper claims privacy for it."""
        return no_guarantee(len(self.clients), Caveat.NOTHING_ADDS_NOISE.value)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Nothing holds."""
        return no_guarantee(len(self.clients), Caveat.NOTHING_ADDS_NOISE.value)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """None: both columns agree."""
        return iter(())
