"""Uplinks over which every update arrives exactly: the noise-free reference, and a server that adds the noise."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.learning.private import CentralNoise
from wirelessfl.learning.robust import CollectedRows, Combined, Mean, NormClip, RobustRule, RowRule
from wirelessfl.learning.timing import BITS_PER_PARAMETER
from wirelessfl.privacy import BareRelease, Release, RobustRelease
from wirelessfl.privacy.mechanisms import server_weights
from wirelessfl.radio import Link, Registry, SlotPlan, SumParts, Superposition
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.radio_records import SlotRecord
from wirelessfl.simulation.records import Energy, Round, TrainingRecord
from wirelessfl.simulation.uplinks.base import AuditView, NoNoise, NotAuditable, Reading, ServerNoise, Vector
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink, single_updates
from wirelessfl.streams import Streams


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """Sum Σ w_i Δ_i of updates that arrive exactly: a `BlockSum`.

    Attributes:
        senders: (k,) their positions among the clients of the round.
        weight: (k,) w_i.
        dimension: d.
        central: clipping at the server; None where nothing is clipped there.
        round_index: from 1.
    """

    senders: NDArray[np.int64]
    weight: NDArray[np.float64]
    dimension: int
    central: CentralNoise | None
    round_index: int

    def begun(self) -> Superposition:
        """The sum without anybody."""
        return Superposition(self.dimension)

    def clipped(self, block: CohortBlock) -> CohortBlock:
        """A block as it enters the sum."""
        return block if self.central is None else self.central.clip_block(block, self.round_index)

    def add(self, block: CohortBlock, total: Superposition) -> TrainingRecord:
        """Addition of a block; the record of its training."""
        sent = self.clipped(block)
        total.add(sent.updates, self.weight[sent.positions].astype(np.complex128))
        return TrainingRecord.of(self.senders[sent.positions], sent)

    def part(self, block: CohortBlock) -> tuple[SumParts, TrainingRecord]:
        """The sum of a block, and the record of its training."""
        total = self.begun()
        record = self.add(block, total)
        return total.parts(), record


@dataclass(frozen=True)
class ExactUplink(SlotUplink):
    """Updates of those who reported arrive exactly and at once.

    Attributes:
        registry: the registered clients.
        dimension: d.
        rule: how the server combines what has arrived.
    """

    registry: Registry
    dimension: int
    rule: RobustRule
    rotating_jammer = False
    airtime = 0.0

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan in which all clients that reported are heard, at once."""
        return SlotPlan(senders=ready, silent=ready[:0], airtime=0.0)

    @override
    def block_sum(self, this: Round, plan: SlotPlan) -> WeightedSum | None:
        """The weighted sum; None for a robust rule, which looks at single updates."""
        return self.weighted_sum(this, plan) if isinstance(self.rule, Mean) else None

    @abstractmethod
    def weighted_sum(self, this: Round, plan: SlotPlan) -> WeightedSum:
        """The sum of the senders' updates."""

    def summed(
        self, total: WeightedSum, blocks: Iterable[CohortBlock | SummedBlock]
    ) -> tuple[Vector, tuple[TrainingRecord, ...]]:
        """(d,) the sum over the blocks in memory of its own, and the records of their training."""
        air, training = total.begun(), list[TrainingRecord]()
        for block in blocks:
            match block:
                case CohortBlock():
                    training.append(total.add(block, air))
                case SummedBlock():
                    signal, record = block.part
                    air.merge(signal)
                    training.append(record)
                case _:
                    assert_never(block)
        return np.asarray(air.received()), tuple(training)

    def combined(
        self, total: WeightedSum, blocks: Iterable[CohortBlock | SummedBlock]
    ) -> tuple[Combined | None, NDArray[np.bool_], tuple[TrainingRecord, ...]]:
        """What a robust rule makes of the updates of the blocks, which are finite, and records of their training."""
        rows, training = CollectedRows(self.rule, total.weight, self.dimension), []
        for block in single_updates(blocks):
            sent = total.clipped(block)
            if block.is_rehearsed:
                rows.rehearse(sent.positions)
            else:
                rows.add(sent.updates, sent.positions)
            training.append(TrainingRecord.of(total.senders[sent.positions], sent))
        return rows.combined(), rows.finite, tuple(training)


def _divided(total: Vector, divisor: float) -> Vector:
    # In place: quotients of double precision, each rounded once to that of the sum, in which the server steps
    with np.errstate(over="ignore", invalid="ignore"):
        return np.divide(total, divisor, out=total, dtype=np.float64, casting="same_kind")


@dataclass(frozen=True)
class IdealUplink(ExactUplink):
    """The noise-free reference: exact aggregation Σ p_i Δ_i / Σ p_i over those who reported, at no cost."""

    @override
    def weighted_sum(self, this: Round, plan: SlotPlan) -> WeightedSum:
        weight = self.registry.weight(this.clients[plan.senders])
        return WeightedSum(plan.senders, weight, self.dimension, None, this.index)

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """The weighted mean, or that of a robust rule; its release has no noise, so that no guarantee holds."""
        clients, of_senders = this.clients[plan.senders], self.weighted_sum(this, plan)
        kept, finite = None, None
        aggregate: Vector | None
        if isinstance(self.rule, Mean):
            total, training = self.summed(of_senders, blocks)
            aggregate = _divided(total, of_senders.weight.sum())
        else:
            found, finite, training = self.combined(of_senders, blocks)
            aggregate, kept = (None, np.zeros(len(clients))) if found is None else (found.value, found.kept)
        return Reception(
            aggregate=np.zeros(self.dimension) if aggregate is None else aggregate,
            releases=(BareRelease(this.index, clients),),
            battery_drain_j=np.zeros(len(clients)),
            training=training,
            energy=Energy(math.nan, math.nan),
            kept=kept,
            finite=finite,
            steps=aggregate is not None,
        )

    def audit_view(self) -> AuditView:
        """No noise."""
        return NoNoise()

    @property
    def payload_bits(self) -> int:
        """Size of an update."""
        return BITS_PER_PARAMETER * self.dimension

    def offer(self, this: Round, positions: NDArray[np.int64], share: float, begins: NDArray[np.float64]) -> list[Link]:
        """Links on which an upload takes no time, for clients that do not send together."""
        return [Link(0.0)] * len(positions)

    def decoded(self, cell: Cell, this: Round, positions: NDArray[np.int64], block: CohortBlock) -> Any:
        """(k, d) the updates of a block of clients, as they are."""
        return block.updates

    def note_energy(self, this: Round, air_time: AirTime) -> NDArray[np.float64]:
        """(n,) joules of the clients of a round: none."""
        this.energy = Energy(math.nan, math.nan)
        return np.zeros(len(this.clients))


@dataclass(frozen=True)
class TrustedServer(ExactUplink):
    """Updates arrive exactly, are clipped, summed with fixed public weights p_i/q, and noised.

    The sum is never divided by who arrived: that would make the weights depend on the others. Noise is added in every
    round, also where nobody was selected or all who were got lost: a model that stays as it is would tell that.

    Attributes:
        central: clipping and noise.
        streams: randomness of the run.
    """

    central: CentralNoise
    streams: Streams

    @property
    def steps_without_senders(self) -> bool:
        """Every round is released."""
        return True

    @property
    def hidden_share(self) -> float:
        """q, by which the sum is divided, whoever came."""
        return self.central.sample_rate

    @property
    def bounds_single_clients(self) -> bool:
        """Whether no client moves the sum by more than its share of the mean.

        Of rules from outside this is not known, also of those that scale single updates: their factors may follow the
        norms of the others, and ``least`` the number of them.
        """
        return type(self.rule) in (Mean, NormClip)

    @override
    def weighted_sum(self, this: Round, plan: SlotPlan) -> WeightedSum:
        weight = self.registry.weight(this.clients[plan.senders])
        weights = server_weights(weight, self.central.sample_rate)
        return WeightedSum(plan.senders, weights, self.dimension, self.central, this.index)

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """Σ (p_i/q) Δ_i + noise; the noise alone where nobody sends.

        A robust rule gives Δ in place of the sum, to which the same noise is added; of too few updates there is none.
        """
        clients, of_senders = this.clients[plan.senders], self.weighted_sum(this, plan)
        releases: tuple[Release, ...] = (self.central.release(this.index, clients, self.dimension),)
        kept, finite = None, None
        total: Vector = np.zeros(self.dimension)
        if isinstance(self.rule, Mean):
            total, training = self.summed(of_senders, blocks)
        else:
            found, finite, training = self.combined(of_senders, blocks)
            kept = np.zeros(len(clients)) if found is None else found.kept
            if found is not None:  # scaled rows keep the sum within the bound that the noise is made for
                total = found.value * of_senders.weight.sum() if isinstance(self.rule, RowRule) else found.value
            if not self.bounds_single_clients:
                releases = (RobustRelease(this.index, clients),)
        released = kept is None or isinstance(self.rule, RowRule) or bool(kept.any())
        noise = self.central.noise(self.dimension, this.index, self.streams.generator("server_noise", this.index))
        noise_std = self.central.noise_std(this.index)
        return Reception(
            aggregate=total + noise,
            releases=releases,
            battery_drain_j=np.zeros(len(clients)),
            training=training,
            energy=Energy(math.nan, math.nan),
            slot=SlotRecord(effective_noise_std=noise_std, aggregate_noise_std=noise_std),
            kept=kept,
            finite=finite,
            steps=released,
        )

    def audit_view(self) -> AuditView:
        """The noise of the server."""
        if not self.bounds_single_clients:
            rule = type(self.rule).__name__
            return NotAuditable(f"the rule {rule} is not known to give a sum of bounded updates, and games play sums")
        return ServerNoise(
            self._overheard, self.central, lambda this, ready: self.plan(this, ready, None), self.steps_without_senders
        )

    def _overheard(self, streams: Streams, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reading:
        # The step of the model, with the server's noise from other streams
        reception = replace(self, streams=streams).receive(this, plan, blocks)
        heard = np.asarray(reception.aggregate, dtype=np.float64)
        return Reading(heard[None], np.array([self.central.noise_std(this.index)]))
