"""The protocol of an uplink, one folder or file beside this one for each kind, and its view for an audit.

The audit plays distinguishing games on the uplink's own reception. An uplink that does not say what an adversary sees
of it cannot be audited, and is never taken for one of another kind.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.private import CentralNoise
from wirelessfl.privacy import Release, SecureSum
from wirelessfl.radio import Jamming, SlotPlan
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.records import Round
from wirelessfl.streams import Streams

Vector: TypeAlias = NDArray[np.floating[Any]]
"""In double precision, or where nothing follows but the server's step in its own, single precision."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The reception of one slot at S receivers.

    Attributes:
        values: (S, d) float64, sums of updates under noise, in any unit.
        noise_std: (S,) the standard deviation that the privacy record counts of the noise on an element, in that unit.
    """

    values: NDArray[np.float64]
    noise_std: NDArray[np.float64]


Listen: TypeAlias = Callable[[Streams, Round, SlotPlan, Iterable[CohortBlock]], Reading]
"""Hears a slot that was planned, with the noise of the streams given and everything else as it was."""


@dataclass(frozen=True)
class ChannelNoise:
    """The noise of receivers and jammer is on the sum of all updates.

    Attributes:
        listen: what the receivers read of a slot.
        gradient_step: as ``OverTheAir.gradient_step``.
        jamming: of the jammer, whose noise a colluding party may know; None where there is none.
        not_tested: what a game on it leaves out, in phrases.
        readings: how many numbers are read of each coordinate.
        joint: whether an observer reads antennas of its own beside the models.
    """

    listen: Listen
    gradient_step: int | None
    jamming: Jamming | None
    not_tested: tuple[str, ...] = ()
    readings: int = 1
    joint: bool = False


@dataclass(frozen=True)
class ServerNoise:
    """A trusted server adds noise to the sum of all updates before the model is released.

    Attributes:
        listen: the step of the released model.
        central: clipping and noise.
        plan: plans the slot of a round for the clients at some positions.
        always: whether a round in which nobody is heard is released too.
    """

    listen: Listen
    central: CentralNoise
    plan: Callable[[Round, NDArray[np.int64]], SlotPlan]
    always: bool


@dataclass(frozen=True)
class NoNoise:
    """Updates arrive as they were sent, or rounded: the uplink hides nothing from those who see them.

    Attributes:
        not_tested: what a look at the uploads leaves out, in phrases.
    """

    not_tested: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotAuditable:
    """No game can be played on this uplink.

    Attributes:
        reason: what is missing, in words that follow a colon.
    """

    reason: str


AuditView: TypeAlias = ChannelNoise | ServerNoise | NoNoise | NotAuditable


@dataclass(frozen=True)
class Collected:
    """The result of one round's uplink.

    Attributes:
        heard: (k,) positions of the clients whose updates are in the aggregate, ascending.
        transmitted: (m,) positions of those who sent anything of their update, heard or not, ascending.
        aggregate: (d,) the weighted mean update as received; None where the model stays as it is.
        releases: the records for the privacy ledger, one for each way in which the uplink protects the updates.
        secure_sum: the secure aggregation that hid the uploads, or None.
        airtime: seconds for which the channel was occupied.
        unheard: (d,) of which coordinates of the aggregate nobody sent anything; None where all were heard.
        hidden_share: the share of all samples that the aggregate counts as, where noise hides who came; else None.
        after_restart: whether a restart of the server in this round is over: what clients did meanwhile is part of it.
    """

    heard: NDArray[np.int64]
    transmitted: NDArray[np.int64]
    aggregate: Vector | None
    releases: tuple[Release, ...]
    airtime: float
    secure_sum: SecureSum | None = None
    unheard: NDArray[np.bool_] | None = None
    hidden_share: float | None = None
    after_restart: bool = False


class Uplink(Protocol):
    """A way to bring the updates of many clients to the server."""

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """From the broadcast of the model to the aggregate: start the clients, wait, receive.

        Writes the uplink's columns of the round and the statuses of those who did not make it.
        """

    def audit_view(self) -> AuditView:
        """The noise that hides the updates from an adversary, or why no audit can be played."""
