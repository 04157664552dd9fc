"""Runs under secure aggregation for the tests, and what their rounds say of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import small
from tests.simulation.uplinks.cells import Play
from wirelessfl.radio.digital_links import Link
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.records import Round, SecAggRecord
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink
from wirelessfl.streams import Streams
from wirelessfl.trace import Status

PROTOCOLS = ("pairwise_prf", "secagg", "secagg_plus")
FAST = Link(1e-9)
NEVER = 4


def secure(protocol: str = "secagg", **overrides: Any) -> Scenario:
    """The small scenario under secure aggregation; keys of the uplink without prefix."""
    others = {key: overrides.pop(key) for key in list(overrides) if "__" in key or key in ("rounds", "seed", "stop")}
    return small(uplink={"kind": "secure_aggregation", "protocol": protocol, **overrides}, **others)


def record_of(this: FinishedRound) -> SecAggRecord:
    """What the round says of secure aggregation."""
    assert this.round.secagg is not None
    return this.round.secagg


def clients_with(this: FinishedRound, status: Status) -> list[int]:
    """The clients in a status."""
    found: list[int] = this.clients[this.round.with_status(status)].tolist()
    return found


def vanish(monkeypatch: pytest.MonkeyPatch, stages: dict[int, int], messages: int = 4) -> None:
    """Let each client in ``stages`` vanish in the middle of its message of that number."""

    def vanishing(self: SecureUplink, this: Round, streams: Streams) -> NDArray[np.float64]:
        share = np.full((len(this.clients), messages), np.nan)
        for row, client in enumerate(this.clients.tolist()):
            if stages.get(client, NEVER) < messages:
                share[row, stages[client]] = 0.5
        return share

    monkeypatch.setattr(SecureUplink, "vanishing", vanishing)


def exact_mean(played: Play, this: FinishedRound, clients: list[int]) -> NDArray[np.float64]:
    """The mean decoded from the sum of the encoded inputs of ``clients``, which no mask has touched."""
    uplink = played.simulation.deployment.uplink
    assert isinstance(uplink, SecureUplink)
    encoding, total = uplink.encoding, uplink.encoding.ring.zeros(uplink.encoding.length)
    for client in clients:
        generator = Streams(11).generator("fixed_point", this.index, client)
        total += encoding.encode(played.learner.update_of(client), int(played.samples[client]), generator)
    encoding.ring.reduce(total)
    return encoding.decode(total, played.samples[clients])
