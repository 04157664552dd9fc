"""One round of `secagg` or `secagg_plus` from end to end without clock or radio: for tests, benchmarks and studies."""

from collections.abc import Mapping

from wirelessfl.secagg.client import SecAggClient
from wirelessfl.secagg.keys import SeededBytes
from wirelessfl.secagg.masks import RingVector
from wirelessfl.secagg.messages import Message, NeighbourKeys, ShareDelivery, UnmaskRequest
from wirelessfl.secagg.parameters import RoundAborted, RoundParameters, RoundResult, Stage
from wirelessfl.secagg.server import SecAggServer


def rehearse(
    parameters: RoundParameters,
    inputs: Mapping[int, RingVector],
    silent_from: Mapping[int, Stage],
    seed: int,
) -> RoundResult | RoundAborted:
    """Round among the clients in ``inputs``; a client in ``silent_from`` sends nothing from that stage on.

    Link keys and all secrets come from `SeededBytes`.
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
                server.receive(answer(clients[message.receiver], message, inputs[message.receiver]))


def answer(client: SecAggClient, message: Message, encoded: RingVector) -> Message:
    """The client's answer to any message of the server."""
    match message:
        case NeighbourKeys():
            return client.share_keys(message)
        case ShareDelivery():
            return client.mask_input(message, encoded)
        case UnmaskRequest():
            return client.unmask(message)
        case _:
            raise ValueError(f"a server does not send a {type(message).__name__}")
