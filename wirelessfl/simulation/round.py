"""What one round was: filled in by the server as the round goes on, handed to the trace at its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import Release
from wirelessfl.radio import Links, SlotLinks
from wirelessfl.simulation.propagation import Moment
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.trace import Status

LOCAL_STATISTICS = ("clip_norm", "clipped_share", "noise_multiplier")
"""What private training says of each step that the trace keeps, as means over the steps."""


@dataclass
class SecAggRecord:
    """What secure aggregation did and cost in a round.

    Attributes:
        costs: columns per stage, each (stages,), see ``/secagg`` in the trace.
        threshold: share holders that recover a secret; NaN where there are no shares.
        neighbours: clients that each client exchanges masks with, as planned; NaN where nothing could be planned.
        attempts: attempts at the sum.
        abort_reason: why the round was given up; empty where it was not.
    """

    costs: dict[str, NDArray[np.float64]]
    threshold: float = math.nan
    neighbours: float = math.nan
    attempts: int = 0
    abort_reason: str = ""


@dataclass
class Round:
    """One communication round over the ``n`` clients selected in it.

    Attributes:
        index: the round, from 1.
        clients: (n,) ascending client numbers; position i of every array belongs to ``clients[i]``.
        status: (n,) what became of each client.
        worked: (n,) ticks for which each client has trained.
        slot_opens: simulated seconds at which the uplink begins; with digital uplinks, the round.
        train_loss: (n,) mean local training loss.
        slots: per-client columns of the trace, each (n,), NaN where there is no value.
        values: per-round values of the trace.
        blocks: per-round values of the trace over the pieces of the slot, each (T,), where there are several.
        nominal_energy_j: joules of the round in which every transmission counts with its public bound; see
            ``put_energy``.
        releases: the records for the privacy ledger; none where nothing was released.
        heard: the plan of the slot that the server received; None without one.
        secagg: what secure aggregation did and cost; None with other uplinks.
    """

    index: int
    clients: NDArray[np.int64]
    status: NDArray[np.uint8] = field(init=False)
    train_loss: NDArray[np.float64] = field(init=False)
    worked: NDArray[np.int64] = field(init=False)
    slot_opens: float = 0.0
    slots: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    blocks: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    nominal_energy_j: float = 0.0
    releases: tuple[Release, ...] = ()
    heard: SlotPlan | None = None
    secagg: SecAggRecord | None = None

    def __post_init__(self) -> None:
        self.status = np.full(len(self.clients), Status.PARTICIPATED, dtype=np.uint8)
        self.train_loss = np.full(len(self.clients), math.nan)
        self.worked = np.zeros(len(self.clients), dtype=np.int64)

    @property
    def moment(self) -> Moment:
        """When the uplink begins, for those who deal the channels."""
        return Moment(self.index, self.slot_opens)

    def put(self, name: str, positions: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Write a per-client column (n,) or (n, T) at some positions; the others stay as they are, NaN at first."""
        if name not in self.slots:
            self.slots[name] = np.full((len(self.clients), *np.shape(values)[1:]), math.nan)
        self.slots[name][positions] = values

    def put_energy(self, joules: float, nominal: float | None = None) -> None:
        """Write the energy of the round so far; NaN where watts are unknown.

        Args:
            joules: what was spent.
            nominal: what it would have been at most, from public values alone, where ``joules`` depends on private
                data. What stops a run must not follow private data, or the number of rounds tells of them.
        """
        self.values["energy"] = joules
        self.nominal_energy_j = joules if nominal is None else nominal

    def note_links(self, positions: NDArray[np.int64], links: Links | SlotLinks) -> None:
        """Write the channels of the clients at ``positions``, over the pieces of the slot where there are several."""
        estimate = np.broadcast_to(links.estimate, links.channel.shape)
        for name, values in (("channel", links.channel), ("csi", estimate)):
            shown = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
            self.put(f"{name}_re", positions, shown.real)
            self.put(f"{name}_im", positions, shown.imag)
        self.put("path_gain", positions, links.path_gain)

    def note_training(self, positions: NDArray[np.int64], block: CohortBlock) -> None:
        """Write what local training reports of the clients at ``positions``."""
        not_finite = np.count_nonzero(~np.isfinite(block.norm_raw))
        self.values["updates_not_finite"] = self.values.get("updates_not_finite", 0.0) + not_finite
        self.put("update_norm_raw", positions, block.norm_raw)
        self.put("update_norm", positions, block.norm)
        self.train_loss[positions] = block.train_loss
        for name, per_step in block.statistics.items():
            if name in LOCAL_STATISTICS:
                taken = np.isfinite(per_step)
                total = np.sum(per_step, axis=1, where=taken)
                self.put(name, positions, total / np.where(taken.any(axis=1), taken.sum(axis=1), np.nan))

    def with_status(self, status: Status) -> NDArray[np.int64]:
        """Positions of the clients in a status."""
        return np.flatnonzero(self.status == status)
