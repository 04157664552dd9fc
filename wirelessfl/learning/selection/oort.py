"""Selection by statistical and system utility: Oort (Lai, Zhu, Madhyastha and Chowdhury, OSDI 2021)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

from wirelessfl.learning.selection.draws import weighted
from wirelessfl.learning.selection.protocol import (
    Chosen,
    LossReports,
    RoundFeedback,
    ScoredSelection,
    SelectionContext,
    SelectionFacts,
)
from wirelessfl.learning.selection.sparse import SparseVector
from wirelessfl.memory import OrderedMemory

# Of the authors' code in FedScale: first percentile of durations that is preferred, its step, and rounds between
_FIRST_PERCENTILE, _STEP, _WINDOW = 30.0, 5.0, 20
# Percentile of the known utilities beyond which none counts, against outliers
_CLIP = 95.0
_DECAY = 0.98


@dataclass
class SelectOort(ScoredSelection):
    """Algorithm 1 of Oort: exploitation of known utilities, and exploration of clients never heard.

    U_i = n_i √(mean ℓ²) of the samples' losses, as last reported, clipped to the 95th percentile of all that are known.
    A client's utility in round R, last heard in round L_i after t_i seconds, is
    (U_i + √(0.1 ln R/L_i)) (T/t_i)^{α·1{T < t_i}}. Clients with at least ``cutoff`` of the
    utility of the last one wanted are drawn in proportion to it; a share max(0.2, exploration·0.98^{R−1}) is drawn of
    the clients never heard, in proportion to their speed. The pacer prefers T, a percentile of the known durations:
    where the utility gathered in 20 rounds is less than in the 20 before, the percentile rises by 5.

    Attributes:
        alpha: α ≥ 0.
        exploration: share of exploration in the first round.
        cutoff: share of the utility of the last one wanted.
        loss_noise_std: standard deviation of the noise on each reported √(mean ℓ²); None for none.
        loss_clip: bound on a sample's loss, with noise.
    """

    alpha: float = 2.0
    exploration: float = 0.9
    cutoff: float = 0.95
    loss_noise_std: float | None = None
    loss_clip: float = 5.0
    known: OrderedMemory = field(
        default_factory=lambda: OrderedMemory(utility=0.0, duration=np.nan, heard_in=np.nan), init=False
    )
    percentile: float = field(default=_FIRST_PERCENTILE, init=False)
    gathered: list[float] = field(default_factory=list, init=False)

    @override
    def facts(self) -> SelectionFacts:
        reports = LossReports("after", "rms", self.loss_noise_std, self.loss_clip)
        return SelectionFacts(frozenset({"samples", "losses", "speed"}), reports)

    def utility(self, registered: int, round_index: int) -> SparseVector:
        """(K,) of the clients in a round; NaN of those who were never heard."""
        known, duration = self.known, self.known.column("duration")
        utility = known.column("utility")
        if len(utility):
            utility = np.minimum(utility, np.percentile(utility, _CLIP))
            utility += np.sqrt(0.1 * np.log(round_index) / known.column("heard_in"))
            preferred = float(np.percentile(duration, self.percentile))
            slow = duration > preferred
            utility[slow] *= (preferred / duration[slow]) ** self.alpha
        return SparseVector(registered, known.nodes, utility)

    def exploring(self, round_index: int) -> float:
        """Share of a round that is drawn of clients never heard."""
        return max(min(0.2, self.exploration), self.exploration * _DECAY ** (round_index - 1))

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        generator = context.streams.generator("selection", context.round_index)
        utility = self.utility(context.registered, context.round_index)
        heard, known = utility.clients, utility.values
        new = context.registered - len(heard)
        explored = min(new, max(round(self.exploring(context.round_index) * count), count - len(heard)))
        exploited = min(count - explored, len(heard))
        clients = weighted(context.speed, explored, generator, without=heard)
        if exploited:
            last_wanted = np.partition(known, len(known) - exploited)[len(known) - exploited]
            admitted = np.flatnonzero(known >= self.cutoff * last_wanted)
            # Utilities are 0 where all losses are; such clients are drawn last, and evenly
            drawn = weighted(np.maximum(known[admitted], 1e-12), exploited, generator)
            clients = np.concatenate([clients, heard[admitted[drawn]]])
        clients = np.sort(clients).astype(np.int64)
        return Chosen(clients, utility.at(clients))

    def learn(self, feedback: RoundFeedback) -> None:
        """Utilities, durations and the pacer after a round."""
        # Noise may make a report negative, which says as much as 0; NaN is that of a model that has diverged
        reported = np.nan_to_num(np.maximum(feedback.losses, 0.0), nan=0.0, posinf=0.0)
        utility = feedback.samples * reported
        self.known.write(
            feedback.clients,
            utility=utility,
            duration=feedback.duration_s,
            heard_in=np.full(len(utility), float(feedback.round_index)),
        )
        self.gathered.append(float(utility.sum()))
        before, now = self.gathered[-2 * _WINDOW : -_WINDOW], self.gathered[-_WINDOW:]
        if len(before) == _WINDOW and sum(before) > sum(now) and feedback.round_index % _WINDOW == 0:
            self.percentile = min(100.0, self.percentile + _STEP)
        self.gathered = self.gathered[-2 * _WINDOW :]

    def state(self) -> dict[str, Any]:
        """Utilities of clients that were heard, and the pacer."""
        return {**self.known.state(), "percentile": self.percentile, "gathered": np.array(self.gathered)}

    def restore(self, state: dict[str, Any]) -> None:
        """Utilities and pacer as a state has them."""
        self.percentile, self.gathered = float(state["percentile"]), np.asarray(state["gathered"]).tolist()
        self.known.restore({name: state[name] for name in ("nodes", "utility", "duration", "heard_in")})
