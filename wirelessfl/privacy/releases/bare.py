"""Releases without any noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

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
    relation: ClassVar[str] = "any two runs"

    round_index: int
    clients: NDArray[np.int64]

    @property
    def reason(self) -> str:
        """Why nothing is proven."""
        return Caveat.NOTHING_ADDS_NOISE.value

    def published(self, facts: PrivacyFacts) -> Spending:
        """No paper claims privacy for it."""
        return no_guarantee(len(self.clients), self.reason)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Nothing holds."""
        return no_guarantee(len(self.clients), self.reason)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """None: both columns agree."""
        return iter(())


@dataclass(frozen=True, eq=False)
class LossReport(BareRelease):
    """Local losses that clients report beside their uploads, for the selection of the clients of later rounds."""

    route: ClassVar[str] = "a loss without noise"

    @property
    @override
    def reason(self) -> str:
        return "clients report their losses without noise, for the selection of later rounds"


@dataclass(frozen=True, eq=False)
class UnvouchedRelease(BareRelease):
    """Upload by code from outside that sees private data and leaves no record of what it costs.

    Attributes:
        round_index: Communication round.
        clients: (n,) who uploaded.
        code: The code, in words that go on with "is code from outside".
    """

    route: ClassVar[str] = "what code from outside adds"

    code: str

    @property
    @override
    def reason(self) -> str:
        return f"{self.code} is code from outside that sees private data and leaves no release of its own"
