"""Over the air in groups: in each of several slots some of the clients send, and a robust rule combines the sums."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy
from typing_extensions import override

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.learning.robust import CollectedRows, Combined, Mean, RobustRule
from wirelessfl.privacy import AirRelease
from wirelessfl.privacy.releases.air_slots import of_slots
from wirelessfl.radio import SlotPlan
from wirelessfl.radio.slot_groups import slot_groups
from wirelessfl.radio.slot_schedule import PilotCharge
from wirelessfl.simulation.radio_records import SlotRecord
from wirelessfl.simulation.records import Energy, Round
from wirelessfl.simulation.uplinks.air.plan import AirPlan, vouched
from wirelessfl.simulation.uplinks.air.uplink import OverTheAir
from wirelessfl.simulation.uplinks.base import AuditView, ChannelNoise
from wirelessfl.simulation.uplinks.slot import Reception, single_updates


@dataclass(frozen=True, kw_only=True)
class GroupedPlan(SlotPlan):
    """Slots one after the other, each for clients of its own.

    Attributes:
        slots: of the groups with clients that are ready; in a slot nobody may send.
        slot_of: (k,) the slot in which each of all senders sends.
        place: (k,) its place among the senders of that slot.
    """

    slots: tuple[AirPlan, ...]
    slot_of: NDArray[np.int64]
    place: NDArray[np.int64]

    @property
    @override
    def superpositions(self) -> tuple[SlotPlan, ...]:
        """The slots in which somebody sends."""
        return tuple(slot for slot in self.slots if len(slot.senders))

    @classmethod
    def of(cls, slots: tuple[AirPlan, ...]) -> "GroupedPlan":
        """The plan of slots that follow each other."""
        senders = np.concatenate([slot.senders for slot in slots])
        slot_of = np.repeat(np.arange(len(slots)), [len(slot.senders) for slot in slots])
        place = np.concatenate([np.arange(len(slot.senders)) for slot in slots])
        order = np.argsort(senders)
        return cls(
            senders=senders[order],
            silent=np.sort(np.concatenate([slot.silent for slot in slots])),
            airtime=math.fsum(occupied_s(slot) for slot in slots),
            jammer_gain=max(slot.jammer_gain for slot in slots),
            jammer_failed=any(slot.jammer_failed for slot in slots),
            pilots=_together([slot.pilots for slot in slots if slot.pilots is not None]),
            slots=slots,
            slot_of=slot_of[order],
            place=place[order],
        )


@dataclass
class GroupedOverTheAir(OverTheAir):
    """The uplink over the air to one receiver in which groups of clients send one after the other.

    Attributes:
        rule: how the server combines what it read of each group.
        groups: G, into which the selected clients of a round are divided at random.
    """

    rule: RobustRule = field(default_factory=Mean)
    groups: int = 2

    @override
    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Plan of the slots of all groups with clients that are ready."""
        member = self._members(this.clients, this.index)
        this.slot_group, this.slot_s = member.astype(np.float64), np.zeros(len(this.clients))
        if not len(ready):
            return super().plan(this, ready, jammer)
        slots, begun_s = list[AirPlan](), 0.0
        for group in range(self.groups):
            own = ready[member[ready] == group]
            if len(own):
                slot = self.plan_later(this, own, jammer, begun_s)
                slots.append(replace(slot, group=group))
                this.slot_s[own] = occupied_s(slot)
                begun_s += float(this.slot_s[own[0]])
        return GroupedPlan.of(tuple(slots))

    @override
    def sharing_a_slot(self, clients: NDArray[np.int64], round_index: int) -> list[NDArray[np.int64]]:
        group = self._members(clients, round_index)
        return [clients[group == number] for number in np.unique(group).tolist()]

    @override
    def block_sum(self, this: Round, plan: SlotPlan) -> None:
        """None: there are as many signals as groups."""

    @override
    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock | SummedBlock]) -> Reception:
        """Reception of all slots; the rule combines the means of the groups."""
        if not isinstance(plan, GroupedPlan):
            raise TypeError(f"slots over the air were planned by another uplink: {type(plan).__name__}")
        used = [at for at, slot in enumerate(plan.slots) if len(slot.senders)]
        arrivals = {at: (self.arrivals(this, plan.slots[at]), self.noise(this, plan.slots[at])) for at in used}
        for block in single_updates(blocks):
            for at, part in _by_slot(plan, block):
                arrivals[at][0].add(part)
        read = [self.reception(this, plan.slots[at], signal.finished(own)) for at, (signal, own) in arrivals.items()]
        weights = np.array([plan.slots[at].links.own.weight.sum() for at in used])
        rows = CollectedRows(self.rule, weights, self.dimension)
        for at, slot in enumerate(read):
            rows.add(slot.aggregate[None], np.array([at]))
        found = rows.combined()
        combined = Combined(np.zeros(self.dimension), np.zeros(len(used))) if found is None else found
        of_sender = np.searchsorted(used, plan.slot_of)
        clients = this.clients[plan.senders]
        records = [release for slot in read for release in slot.releases if isinstance(release, AirRelease)]
        release = of_slots(records, clients, self.network.registry.samples[clients])
        drain = np.zeros(len(clients))
        for at, slot in zip(used, read, strict=True):
            drain[plan.slot_of == at] = slot.battery_drain_j
        return Reception(
            aggregate=combined.value,
            releases=(vouched(release, (self.receiver, self.modulation), self.unvouched),),
            battery_drain_j=drain,
            training=tuple(record for slot in read for record in slot.training),
            transmissions=tuple(record for slot in read for record in slot.transmissions),
            slot=_record([slot.slot for slot in read if slot.slot is not None], weights, self.rule),
            energy=_energy([slot.energy for slot in read if slot.energy is not None]),
            kept=None if isinstance(self.rule, Mean) else combined.kept[of_sender],
            finite=None if isinstance(self.rule, Mean) else rows.finite[of_sender],
            steps=found is not None,
            unheard=_unheard([slot.unheard for slot in read]),
        )

    @override
    def audit_view(self) -> AuditView:
        """The view of one slot, that of the canary's group: the others carry nothing of it."""
        view = super().audit_view()
        if not isinstance(view, ChannelNoise):
            return view
        return replace(view, not_tested=(*view.not_tested, "slots of other groups, in which nothing of a canary is"))

    def _members(self, clients: NDArray[np.int64], round_index: int) -> NDArray[np.int64]:
        # (n,) the groups of the clients selected in a round
        return slot_groups(self.network.streams.nodes("group_of_slot", round_index, clients), self.groups)


def occupied_s(slot: AirPlan) -> float:
    """Seconds of a slot; where nobody sends, those of the pilots alone."""
    if len(slot.senders):
        return slot.airtime
    return 0.0 if slot.pilots is None else slot.pilots.seconds


def _by_slot(plan: GroupedPlan, block: CohortBlock) -> Iterator[tuple[int, CohortBlock]]:
    # The clients of a block by the slot in which they send
    slot_of = plan.slot_of[block.positions]
    for at in np.unique(slot_of).tolist():
        mine = np.flatnonzero(slot_of == at)
        yield at, _rows(block, mine, plan.place[block.positions[mine]])


def _rows(block: CohortBlock, mine: NDArray[np.int64], positions: NDArray[np.int64]) -> CohortBlock:
    # Some clients of a block, at other positions
    def of_tensor(rows: Tensor) -> Tensor:
        return rows[from_numpy(mine).to(rows.device)]

    alike = block.updates.stride(0) == 0  # one row for all, as in a rehearsal, stays one
    return CohortBlock(
        positions,
        block.updates[: len(mine)] if alike else of_tensor(block.updates),
        norm_raw=block.norm_raw[mine],
        norm=block.norm[mine],
        train_loss=block.train_loss[mine],
        transform_state={name: of_tensor(rows) for name, rows in block.transform_state.items()},
        statistics={name: values[mine] for name, values in block.statistics.items()},
    )


def _together(pilots: list[PilotCharge]) -> PilotCharge | None:
    if not pilots:
        return None
    jammer = math.fsum(each.jammer_joules for each in pilots)
    return PilotCharge(math.fsum(each.seconds for each in pilots), pilots[0].joules, jammer)


def _energy(slots: list[Energy]) -> Energy:
    return Energy(math.fsum(each.joules for each in slots), math.fsum(each.nominal for each in slots))


def _unheard(slots: list[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    # (d,) of which coordinates nobody sends anything in any of the slots
    parts = [each for each in slots if each is not None]
    if len(parts) < len(slots):
        return None
    nobody = np.logical_and.reduce(parts)
    return np.asarray(nobody) if nobody.any() else None


def _record(slots: list[SlotRecord], weights: NDArray[np.float64], rule: RobustRule) -> SlotRecord:
    # Gains of the loudest slot, the noise of the least noisy one, and of the mean over groups that of the aggregate
    noise: Any = np.array([slot.aggregate_noise_std for slot in slots])
    share = weights / weights.sum()
    return SlotRecord(
        server_gain=max(slot.server_gain for slot in slots),
        channel_noise_std=min(slot.channel_noise_std for slot in slots),
        effective_noise_std=min(slot.effective_noise_std for slot in slots),
        aggregate_noise_std=float(np.linalg.norm(share * noise)) if isinstance(rule, Mean) else math.nan,
        jammer_gain=max(slot.jammer_gain for slot in slots),
        jammer_energy=math.fsum(slot.jammer_energy for slot in slots),
        jammer=slots[0].jammer,
    )
