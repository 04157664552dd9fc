"""The server of `secagg` and `secagg_plus`: messages in, messages out, no clock.

The shell hands over what arrives (`receive`) and says when a stage is over (`close_stage`); clients that have not been
heard by then are out of the round.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

import numpy as np

from wirelessfl.errors import instance_of, precondition
from wirelessfl.secagg.client import MASK, SecAggClient
from wirelessfl.secagg.encoding import RingVector
from wirelessfl.secagg.graph import harary_graph
from wirelessfl.secagg.keys import SeededBytes
from wirelessfl.secagg.messages import (
    SERVER,
    EncryptedShares,
    KeyAdvertisement,
    MaskedInput,
    Message,
    Names,
    NeighbourKeys,
    ShareDelivery,
    UnmaskRequest,
    UnmaskShares,
    authenticate,
    check_octets,
    names,
)
from wirelessfl.secagg.protocol import (
    ForeignMessage,
    LateMessage,
    MalformedMessage,
    RandomBytes,
    ReplayedMessage,
    RoundAborted,
    RoundParameters,
    RoundResult,
    Stage,
)
from wirelessfl.secagg.sharing import SEALED_BYTES, check_shares, remove_masks

ClientMessage: TypeAlias = KeyAdvertisement | EncryptedShares | MaskedInput | UnmaskShares
"""What clients send to the server, each in a stage of its own."""

_STAGE_OF: dict[type[Message], Stage] = {
    KeyAdvertisement: Stage.ADVERTISE_KEYS,
    EncryptedShares: Stage.SHARE_KEYS,
    MaskedInput: Stage.MASKED_INPUT,
    UnmaskShares: Stage.UNMASK,
}


class SecAggServer:
    """The server's side of one round. Masked inputs are added up as they come and not kept.

    Args:
        parameters: the round's public facts.
        link_keys: for each invited client the key it shares with the server.
        random_bytes: source of the random graph.

    Attributes:
        stage: what the server is waiting for.
        heard: for each stage so far, the clients whose messages were accepted.
    """

    def __init__(self, parameters: RoundParameters, link_keys: Mapping[int, bytes], random_bytes: RandomBytes) -> None:
        import networkx as nx

        self.parameters = parameters
        self.stage = Stage.ADVERTISE_KEYS
        self.heard: dict[Stage, set[int]] = {Stage.ADVERTISE_KEYS: set()}
        self._link_keys = dict(link_keys)
        self._random_bytes = random_bytes
        self._expected: frozenset[int] = frozenset(link_keys)
        self._graph = nx.Graph()
        self._advertised: dict[int, KeyAdvertisement] = {}
        self._encrypted: dict[int, EncryptedShares] = {}
        self._total = parameters.ring.zeros(parameters.dimension)
        self._unmasking: dict[int, UnmaskShares] = {}

    @property
    def awaited(self) -> frozenset[int]:
        """The clients whose message of this stage has not come yet; none left means the stage can be closed."""
        return self._expected - self.heard.get(self.stage, frozenset())

    def receive(self, message: Message) -> None:
        """Receipt of one client's message of the present stage.

        Raises:
            MessageRefused: see `protocol`; the server's state is unchanged.
        """
        sender, stage = message.sender, _STAGE_OF.get(type(message))
        if stage is None or not isinstance(message, ClientMessage):
            raise ForeignMessage(f"{instance_of(type(message))} is not for a server")
        authenticate(message, self.parameters.session, SERVER, self._link_keys)
        precondition(
            sender not in self.heard.get(stage, ()),
            f"client {sender} has already sent its {type(message).__name__}",
            ReplayedMessage,
        )
        precondition(
            sender in self._expected,
            f"client {sender} dropped out of this round, which is at {self.stage.name}",
            LateMessage,
        )
        precondition(stage <= self.stage, f"client {sender} answers {stage.name} before being asked", MalformedMessage)
        match message:
            case KeyAdvertisement():
                message.check(2)
                self._advertised[sender] = message
            case EncryptedShares():
                precondition(
                    np.array_equal(message.peers, names(sorted(self._graph.adj[sender]))),
                    f"client {sender} did not share with exactly its neighbours",
                    MalformedMessage,
                )
                check_octets(message.ciphertexts, (len(message.peers), SEALED_BYTES))
                self._encrypted[sender] = message
            case MaskedInput():
                message.check(self.parameters.ring, self.parameters.dimension)
                self._total += message.values
            case UnmaskShares():
                check_shares(message, *self._owners_known_to(sender))
                self._unmasking[sender] = message
            case _:
                assert_never(message)
        self.heard[stage].add(sender)

    def close_stage(self) -> Sequence[Message] | RoundAborted | RoundResult:
        """End of the present stage with the clients heard so far.

        Returns:
            What the server sends next, or why the round ends without a sum, or the sum.

        Raises:
            ValueError: the round is over.
        """
        closed, survivors = self.stage, self.heard.get(self.stage, set())
        precondition(closed != Stage.FINISHED, "the round is over: there is no stage to close")
        self._expected = frozenset(survivors)
        if closed == Stage.ADVERTISE_KEYS and len(survivors) > 1:
            self._graph = harary_graph(
                sorted(survivors), self.parameters.neighbourhood.num_neighbours, self._random_bytes
            )
        reason = self._shortfall(survivors)
        if reason is not None:
            self.stage, self._expected = Stage.FINISHED, frozenset()
            return RoundAborted(closed, reason)
        self.stage = Stage(closed + 1)
        self.heard[self.stage] = set()
        match closed:
            case Stage.ADVERTISE_KEYS:
                return self._sealed(self._neighbour_keys(client) for client in sorted(survivors))
            case Stage.SHARE_KEYS:
                return self._sealed(self._share_deliveries())
            case Stage.MASKED_INPUT:
                return self._sealed(self._unmask_request(client) for client in sorted(survivors))
            case Stage.UNMASK | Stage.FINISHED:
                self._expected = frozenset()
                return self._unmasked()

    def _shortfall(self, survivors: set[int]) -> str | None:
        # Why the round cannot go on with these survivors of the stage, or None if it can
        import networkx as nx

        threshold = self.parameters.neighbourhood.threshold
        if len(survivors) < threshold:
            return f"{len(survivors)} clients are left, the threshold is {threshold}"
        if self.stage == Stage.MASKED_INPUT and not nx.is_connected(self._graph.subgraph(survivors)):
            return "the survivors are in several groups without a mask in common, whose sums would be seen separately"
        for owner in sorted(self._owners()):
            holders = len(survivors.intersection(self._graph.adj[owner])) + (owner in survivors)
            if holders < threshold:
                return f"client {owner} has {holders} share holders left, the threshold is {threshold}"
        return None

    def _owners(self) -> set[int]:
        # The clients one of whose secrets will be needed, as far as is known at this stage
        if self.stage <= Stage.SHARE_KEYS:
            return self.heard[self.stage]
        return self.heard[Stage.MASKED_INPUT] | self._dropped()

    def _dropped(self) -> set[int]:
        # The clients without masked input whose masks are in somebody else's
        alive = self.heard[Stage.MASKED_INPUT]
        silent = self.heard[Stage.SHARE_KEYS] - alive
        return {client for client in silent if not alive.isdisjoint(self._graph.adj[client])}

    def _neighbour_keys(self, client: int) -> NeighbourKeys:
        peers = sorted(self._graph.adj[client])
        return NeighbourKeys(
            session=self.parameters.session,
            sender=SERVER,
            receiver=client,
            peers=names(peers),
            keys=np.stack([self._advertised[peer].keys for peer in peers]),
        )

    def _share_deliveries(self) -> Iterable[ShareDelivery]:
        # Ciphertexts by receiver, and by sender within
        sent = [self._encrypted[sender] for sender in sorted(self._encrypted)]
        receivers = np.concatenate([message.peers for message in sent])
        senders = np.repeat(names(message.sender for message in sent), [len(message.peers) for message in sent])
        ciphertexts = np.concatenate([message.ciphertexts for message in sent])
        self._encrypted.clear()
        order = np.argsort(receivers, kind="stable")
        for client in sorted(self._expected):
            first, last = np.searchsorted(receivers, [client, client + 1], sorter=order)
            chosen = order[first:last]
            yield ShareDelivery(
                session=self.parameters.session,
                sender=SERVER,
                receiver=client,
                peers=senders[chosen],
                ciphertexts=ciphertexts[chosen],
            )

    def _owners_known_to(self, client: int) -> tuple[Names, Names]:
        # The neighbours of a client, itself included, that are alive, and those that dropped after sharing keys
        known = {client, *self._graph.adj[client]} & self.heard[Stage.SHARE_KEYS]
        alive = self.heard[Stage.MASKED_INPUT]
        return names(sorted(known & alive)), names(sorted(known - alive))

    def _unmask_request(self, client: int) -> UnmaskRequest:
        alive, dropped = self._owners_known_to(client)
        return UnmaskRequest(
            session=self.parameters.session, sender=SERVER, receiver=client, alive=alive, dropped=dropped
        )

    def _unmasked(self) -> RoundResult | RoundAborted:
        public = {client: message.keys[MASK].tobytes() for client, message in self._advertised.items()}
        alive = self.heard[Stage.MASKED_INPUT]
        peers_of = {client: sorted(alive.intersection(self._graph.adj[client])) for client in sorted(self._dropped())}
        try:
            remove_masks(self._total, self.parameters, sorted(alive), peers_of, public, self._unmasking)
        except ValueError as error:
            return RoundAborted(Stage.UNMASK, str(error))
        return RoundResult(self._total, tuple(sorted(alive)))

    def _sealed(self, messages: Iterable[Message]) -> list[Message]:
        return [message.sealed(self._link_keys[message.receiver]) for message in messages]


def rehearse(
    parameters: RoundParameters,
    inputs: Mapping[int, RingVector],
    silent_from: Mapping[int, Stage],
    seed: int,
) -> RoundResult | RoundAborted:
    """One round of `secagg` or `secagg_plus` from end to end without clock or radio: for tests and benchmarks.

    It is among the clients in ``inputs``; a client in ``silent_from`` sends nothing from that stage on. Link keys and
    all secrets come from `SeededBytes`.
    """
    link_keys = {name: SeededBytes(seed, "link", name)(32) for name in inputs}
    server = SecAggServer(parameters, link_keys, SeededBytes(seed, "server"))
    clients = {
        name: SecAggClient(parameters, name, link_keys[name], SeededBytes(seed, "client", name)) for name in inputs
    }
    for name, client in clients.items():
        if silent_from.get(name, Stage.FINISHED) > Stage.ADVERTISE_KEYS:
            server.receive(client.advertise_keys())
    while True:
        outcome = server.close_stage()
        if isinstance(outcome, RoundResult | RoundAborted):
            return outcome
        for message in outcome:
            if silent_from.get(message.receiver, Stage.FINISHED) > server.stage:
                server.receive(clients[message.receiver].answer(message, inputs[message.receiver]))
