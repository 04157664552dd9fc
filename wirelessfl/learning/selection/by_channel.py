"""Selection by channel gains: the best, the best against their own average rates, or all above a threshold."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.selection.draws import largest_of
from wirelessfl.learning.selection.protocol import (
    Chosen,
    RoundFeedback,
    ScoredSelection,
    SelectionContext,
    SelectionFacts,
)
from wirelessfl.learning.selection.sparse import SparseVector
from wirelessfl.memory import OrderedMemory

Csi = Literal["pilots", "last"]
"""Gains that a rule knows: of pilots at the beginning of the round, or those of a client's last transmission."""

# Average rate of a client that was not served for long [bit/s/Hz]; its own would run out of floating-point numbers
_LEAST_RATE = 1e-6


def _facts(csi: Csi) -> SelectionFacts:
    return SelectionFacts(frozenset({"fresh_gains" if csi == "pilots" else "gains"}))


def _gains(csi: Csi, context: SelectionContext) -> SparseVector:
    # Those of whom nothing is known yet come first
    if csi == "pilots":
        return SparseVector.whole(context.fresh_gains)
    return replace(context.sparse("gains"), rest=np.inf)


@dataclass(frozen=True)
class SelectBestChannel(ScoredSelection):
    """``count`` clients with the largest |ĥ|², path gain included; clients without an estimate come first.

    Attributes:
        csi: the gains that are known.
    """

    csi: Csi = "pilots"

    @override
    def facts(self) -> SelectionFacts:
        return _facts(self.csi)

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        generator = context.streams.generator("selection", context.round_index)
        return largest_of(_gains(self.csi, context), count, generator)


@dataclass(frozen=True)
class SelectChannelThreshold(ScoredSelection):
    """All clients with |ĥ|²/E|ĥ|² of at least ``threshold``, and those without an estimate.

    Under Rayleigh fading and with pilots each client is selected with probability e^{−g}, g the threshold.

    Attributes:
        threshold: least |ĥ|² over its mean.
        csi: the gains that are known.
    """

    threshold: float
    csi: Csi = "pilots"

    @override
    def facts(self) -> SelectionFacts:
        return SelectionFacts(frozenset({"fresh_relative_gains" if self.csi == "pilots" else "relative_gains"}))

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        fresh = self.csi == "pilots"
        score = context.fresh_relative_gains if fresh else np.nan_to_num(context.relative_gains, nan=np.inf)
        clients = np.flatnonzero(score >= self.threshold).astype(np.int64)
        return Chosen(clients, score[clients])


@dataclass(frozen=True)
class SelectProportionalFair(ScoredSelection):
    """``count`` clients with the largest R_i/T_i, the rate of now over the client's average rate.

    R_i = log2(1 + SNR |ĥ_i|²/2) in bit/s/Hz, and T_i ← (1 − 1/t_c) T_i + R_i/t_c · 1{i was heard} (Viswanath, Tse and
    Laroia, IEEE Trans. Inf. Theory, 2002, section II). Averages begin at 0 and are not taken for less than 1e-6.

    Attributes:
        window: t_c ≥ 1 in rounds.
        snr: SNR_i of a gain 1, against the noise of one real dimension.
        csi: the gains that are known.
    """

    window: float
    snr: float
    csi: Csi = "pilots"
    averages: OrderedMemory = field(default_factory=lambda: OrderedMemory(rate=0.0, round=0.0), init=False)

    @override
    def facts(self) -> SelectionFacts:
        return SelectionFacts(_facts(self.csi).reads | {"gains"})

    def rate(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """R in bit/s/Hz, in the shape of the gains."""
        return np.log2(1.0 + 0.5 * self.snr * gains)

    def average(self, registered: int, round_index: int) -> SparseVector:
        """(K,) T_i before a round."""
        rounds = np.maximum(round_index - 1 - self.averages.column("round"), 0.0)
        with np.errstate(under="ignore"):
            average = self.averages.column("rate") * (1.0 - 1.0 / self.window) ** rounds
        return SparseVector(registered, self.averages.nodes, average, 0.0)

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        gains = _gains(self.csi, context)
        average = np.maximum(self.average(context.registered, context.round_index).at(gains.clients), _LEAST_RATE)
        generator = context.streams.generator("selection", context.round_index)
        return largest_of(replace(gains, values=self.rate(gains.values) / average), count, generator)

    def learn(self, feedback: RoundFeedback) -> None:
        """Average rates after a round; clients that were not heard had the rate 0."""
        heard, share = feedback.clients, 1.0 / self.window
        before = self.average(feedback.registered, feedback.round_index).at(heard)
        rate = (1.0 - share) * before + share * np.nan_to_num(self.rate(feedback.gains))
        self.averages.write(heard, rate=rate, round=np.full(len(heard), float(feedback.round_index)))

    def state(self) -> dict[str, Any]:
        """The averages of clients that were heard."""
        return self.averages.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Averages as a state has them."""
        self.averages.restore(state)
