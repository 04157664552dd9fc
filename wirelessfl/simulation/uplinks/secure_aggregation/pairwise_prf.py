"""`pairwise_prf`: seeds agreed once in a run, one message a round, and everybody has to answer (Hu et al.)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import simpy

from wirelessfl.radio import Link, Moment
from wirelessfl.secagg import (
    RUN_BYTES,
    KeyAdvertisement,
    Message,
    NeighbourKeys,
    PrfClient,
    PrfEnrolment,
    PrfParameters,
    PrfRound,
    RingVector,
    RoundAborted,
    RoundStart,
    SeededBytes,
    Stage,
)
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.medium import ProtocolMessage, seconds, ticks
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.digital.round_links import energy_on_air
from wirelessfl.simulation.uplinks.secure_aggregation.protocol_run import Outcome, ProtocolRun
from wirelessfl.simulation.uplinks.secure_aggregation.transport import StageCosts
from wirelessfl.simulation.uplinks.secure_aggregation.uplink import SecureUplink
from wirelessfl.trace import EventKind, SecAggStage

NONCE = "pairwise_prf_nonce"
"""In the state: the last nonce used; absent until the seeds are agreed."""


@dataclass(frozen=True)
class Membership:
    """Enrolled clients with their seeds, and the messages of the set-up.

    Attributes:
        parameters: the run's public facts.
        link_keys: keys towards the server, agreed when a client is registered, before the run.
        clients: by number.
        advertisements: what the clients sent.
        answers: what the server sent back.
    """

    parameters: PrfParameters
    link_keys: dict[int, bytes]
    clients: dict[int, PrfClient]
    advertisements: list[KeyAdvertisement]
    answers: list[NeighbourKeys]


@dataclass(frozen=True, kw_only=True)
class PairwisePrf(SecureUplink):
    """Masks from seeds that every pair of registered clients agrees on before the first round.

    Attributes:
        seed: of the run.
        registered: clients in all.
    """

    seed: int
    registered: int

    @cached_property
    def membership(self) -> Membership:
        """The enrolment, a function of the run's seed: nothing that a checkpoint has to hold."""
        parameters = PrfParameters(self._random("run")(RUN_BYTES), self.encoding.length, self.encoding.ring)
        link_keys = {node: self._random("link", node)(32) for node in range(self.registered)}
        clients = {
            node: PrfClient(parameters, node, key, self._random("member", node)) for node, key in link_keys.items()
        }
        enrolment = PrfEnrolment(parameters, link_keys)
        advertisements = [client.advertise_keys() for client in clients.values()]
        for advertisement in advertisements:
            enrolment.receive(advertisement)
        answers = enrolment.close()
        for answer in answers:
            clients[answer.receiver].agree_seeds(answer)
        return Membership(parameters, link_keys, clients, advertisements, answers)

    def _random(self, *names: str | int) -> SeededBytes:
        return SeededBytes(self.seed, "secagg", *names)

    def set_up(self, cell: Cell, costs: StageCosts) -> Generator[simpy.Event, Any, float]:
        """All registered clients send their keys, behind grants, and get those of all others; the slowest counts."""
        if NONCE in cell.state.uplink_memory:
            return 0.0
        cell.state.uplink_memory[NONCE] = 0
        medium, everyone, air_time = cell.medium, np.arange(self.registered), AirTime()
        size = max(message.bits for message in self.membership.advertisements)  # the same for all
        if grant := ticks(self.links.grant_s):
            yield medium.env.timeout(grant)
        begin = medium.now
        links, _ = self.links.draw(everyone, Moment(0, seconds(begin)), 1.0 / self.registered, size)
        yield medium.env.all_of(
            [
                medium.env.process(self._advertise(cell, link, message, air_time))
                for link, message in zip(links, self.membership.advertisements, strict=True)
            ]
        )
        for message in self.membership.advertisements:
            costs.add(SecAggStage.SET_UP, messages_up=1.0, bits_up=message.bits)
        for answer in self.membership.answers:
            costs.add(SecAggStage.SET_UP, messages_down=1.0, bits_down=answer.bits)
            yield medium.occupy(answer.bits / cell.timing.downlink_bps)
            medium.note(EventKind.REQUEST, answer.receiver, answer.bits)
        joules = energy_on_air(self.links, air_time, self.registered)
        cell.drain(everyone, joules)
        costs.add(SecAggStage.SET_UP, seconds=seconds(medium.now - begin), energy=float(joules.sum()))
        return air_time.occupied()

    def _advertise(
        self, cell: Cell, link: Link, message: KeyAdvertisement, air_time: AirTime
    ) -> Generator[simpy.Event, Any, None]:
        cell.medium.note(EventKind.ADVERTISE_KEYS, message.sender, message.bits)
        link = replace(link, sends=True)  # it is assumed to succeed
        yield from air_time.send(cell.medium, message.sender, link, message.bits)
        cell.medium.note(EventKind.ARRIVE, message.sender, message.bits)

    def begin(self, cell: Cell, this: Round, costs: StageCosts) -> PrfRun:
        """A round under fresh nonces."""
        return PrfRun(self, cell, this, costs)

    def opened_by(self, selected: int) -> int:
        """All others: each knows one mask of a client."""
        return selected - 1


class PrfRun(ProtocolRun):
    """One round of `pairwise_prf`, in one or several attempts.

    The masked inputs of an attempt that fails are sent and never computed: nobody can unmask their sum.
    """

    first_stage: ClassVar[Stage] = Stage.MASKED_INPUT

    def __init__(self, uplink: PairwisePrf, cell: Cell, this: Round, costs: StageCosts) -> None:
        super().__init__(uplink, cell, this, costs)
        self._membership = uplink.membership
        self._attempt: PrfRound
        self._starts: dict[int, RoundStart] = {}

    def opening(self, position: int) -> None:
        """A report that takes no time: the client is ready."""

    def answer(self, position: int, request: Message) -> ProtocolMessage:
        """The masked input, under the nonce of the attempt."""
        if not isinstance(request, RoundStart):
            raise TypeError(f"a server does not send a {type(request).__name__}")
        self._starts[position] = request
        return self.masked_input(position, request.session)

    def accepts(self, message: ProtocolMessage) -> bool:
        """In time is what belongs to the attempt under way."""
        return message.session == self._attempt.session

    def protocol(self) -> Generator[simpy.Event, Any, Outcome]:
        """Attempt with all clients that are ready, and another one without those that were missing."""
        reason = ""
        while True:
            participants = np.array(sorted(self.window.ready), dtype=np.int64)
            if len(participants) < 2:
                return RoundAborted(Stage.MASKED_INPUT, f"{reason}{len(participants)} clients are left, 2 are needed")
            if self.attempts == len(self.uplink.vanish_probability):
                return RoundAborted(Stage.MASKED_INPUT, f"{reason}no attempt is left")
            yield self._begin_attempt(participants)
            self.close(Stage.MASKED_INPUT, len(participants))
            missing = np.setdiff1d(participants, sorted(self.window.ready))
            if not len(missing):
                self.compute_inputs(participants, self._take)
                return self._attempt.close()
            names = ", ".join(str(node) for node in self.this.clients[missing])
            reason = f"pairwise_prf needs every participant; missing: {names}; "

    def _begin_attempt(self, participants: np.ndarray[tuple[int], np.dtype[np.int64]]) -> simpy.Event:
        memory, membership = self.cell.state.uplink_memory, self._membership
        memory[NONCE] += 1
        self.attempts += 1
        self.neighbours = len(participants) - 1.0
        link_keys = {node: membership.link_keys[node] for node in self.this.clients[participants].tolist()}
        self._attempt = PrfRound(membership.parameters, memory[NONCE], link_keys)
        return self.ask(Stage.MASKED_INPUT, self._attempt.start())

    def _take(self, position: int, encoded: RingVector) -> None:
        member = self._membership.clients[int(self.this.clients[position])]
        self._attempt.receive(member.mask_input(self._starts[position], encoded))
