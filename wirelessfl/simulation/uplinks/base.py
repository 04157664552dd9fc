"""The protocol of an uplink; one folder or file beside this one for each kind."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.privacy import Release
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.audit_view import AuditView


@dataclass(frozen=True)
class Collected:
    """The result of one round's uplink.

    Attributes:
        heard: (k,) positions of the clients whose updates are in the aggregate, ascending.
        transmitted: (m,) positions of those who sent anything of their update, heard or not, ascending.
        aggregate: (d,) float64, the weighted mean update as received; None where the model stays as it is.
        releases: the records for the privacy ledger, one for each way in which the uplink protects the updates.
        secure_sum: the secure aggregation that hid the uploads, or None.
        airtime: seconds for which the channel was occupied.
    """

    heard: NDArray[np.int64]
    transmitted: NDArray[np.int64]
    aggregate: NDArray[np.float64] | None
    releases: tuple[Release, ...]
    airtime: float
    secure_sum: SecureSum | None = None


class Uplink(Protocol):
    """A way to bring the updates of many clients to the server."""

    def collect(self, cell: Cell, this: Round) -> Generator[simpy.Event, Any, Collected]:
        """From the broadcast of the model to the aggregate: start the clients, wait, receive.

        Writes the uplink's columns of the round and the statuses of those who did not make it.
        """

    def audit_view(self) -> AuditView:
        """Where noise hides the updates from an adversary, or why no audit can be played."""
