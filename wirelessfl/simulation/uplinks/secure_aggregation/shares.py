"""`secagg` and `secagg_plus`: four messages a client, and a sum that survives dropouts at every stage."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import simpy

from wirelessfl.secagg import (
    LateMessage,
    Message,
    NeighbourKeys,
    RingVector,
    RoundAborted,
    RoundParameters,
    RoundResult,
    SecAggClient,
    SecAggServer,
    SeededBytes,
    ShareDelivery,
    SharingGraph,
    Stage,
    UnmaskRequest,
)
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.medium import ProtocolMessage
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.secure_aggregation.protocol_run import Outcome, ProtocolRun
from wirelessfl.simulation.uplinks.secure_aggregation.transport import StageCosts
from wirelessfl.simulation.uplinks.secure_aggregation.uplink import SecureUplink


@dataclass(frozen=True, kw_only=True)
class SecretSharing(SecureUplink):
    """Masks from pairwise agreements, recovered from secret shares where a client drops out.

    Attributes:
        graph: who shares with whom.
    """

    graph: SharingGraph

    def begin(self, cell: Cell, this: Round, costs: StageCosts) -> SecretSharingRun:
        """A round with fresh keys.

        Raises:
            ValueError: no graph suits so few clients.
        """
        seed = cell.network.streams.seed
        parameters = RoundParameters(
            session=SeededBytes(seed, "secagg/session", this.index)(16),
            dimension=self.encoding.length,
            ring=self.encoding.ring,
            neighbourhood=self.graph.neighbourhood(len(this.clients)),
        )
        return SecretSharingRun(self, cell, this, costs, parameters)

    def opened_by(self, selected: int) -> int:
        """The number of colluding clients, of so many selected, that reveal single inputs."""
        return self.graph.opened_by(selected)


class SecretSharingRun(ProtocolRun):
    """One round of `secagg` or `secagg_plus`; every message but the masked inputs is made when it is sent."""

    first_stage: ClassVar[Stage] = Stage.ADVERTISE_KEYS

    def __init__(
        self, uplink: SecretSharing, cell: Cell, this: Round, costs: StageCosts, parameters: RoundParameters
    ) -> None:
        super().__init__(uplink, cell, this, costs)
        self.threshold = float(parameters.neighbourhood.threshold)
        self.neighbours = float(parameters.neighbourhood.num_neighbours)
        self.attempts = 1
        self._parameters = parameters
        # Keys towards the server are agreed when a client is registered, before the run.
        self._link_keys = {node: self._random("link", node)(32) for node in this.clients.tolist()}
        self._server = SecAggServer(parameters, self._link_keys, self._random("server", this.index))
        self._members: dict[int, SecAggClient] = {}
        self._deliveries: dict[int, ShareDelivery] = {}

    def _random(self, *names: str | int) -> SeededBytes:
        return SeededBytes(self.cell.network.streams.seed, "secagg", *names)

    def opening(self, position: int) -> ProtocolMessage:
        """The client's public keys."""
        node = int(self.this.clients[position])
        random_bytes = self._random("client", self.this.index, node)
        member = SecAggClient(self._parameters, node, self._link_keys[node], random_bytes)
        self._members[position] = member
        return self._message(position, Stage.ADVERTISE_KEYS, member.advertise_keys())

    def answer(self, position: int, request: Message) -> ProtocolMessage:
        """Shares for the neighbours, the masked input, or shares of the neighbours' secrets."""
        member = self._members[position]
        match request:
            case NeighbourKeys():
                return self._message(position, Stage.SHARE_KEYS, member.share_keys(request))
            case ShareDelivery():
                self._deliveries[position] = request
                return self.masked_input(position, request.session)
            case UnmaskRequest():
                return self._message(position, Stage.UNMASK, member.unmask(request))
            case _:
                raise TypeError(f"a server does not send a {type(request).__name__}")

    def _message(self, position: int, stage: Stage, message: Message) -> ProtocolMessage:
        return ProtocolMessage(position, message.session, stage, message.bits, message)

    def accepts(self, message: ProtocolMessage) -> bool:
        """In time is what belongs to the stage under way, from a client that is still in the round."""
        if message.content is None:
            return message.stage == self._server.stage
        try:
            self._server.receive(message.content)
        except LateMessage:
            return False
        return True

    def protocol(self) -> Generator[simpy.Event, Any, Outcome]:
        """End of each stage with the clients heard in it, and requests to them for the next."""
        expected = len(self.this.clients)
        while True:
            stage, heard = self._server.stage, sorted(self.window.ready)
            if stage == Stage.MASKED_INPUT:
                self.compute_inputs(np.array(heard, dtype=np.int64), self._take)
            self.close(stage, expected)
            outcome = self._server.close_stage()
            if isinstance(outcome, RoundResult | RoundAborted):
                return outcome
            expected = len(heard)
            yield self.ask(Stage(stage + 1), outcome)

    def _take(self, position: int, encoded: RingVector) -> None:
        self._server.receive(self._members[position].mask_input(self._deliveries.pop(position), encoded))
