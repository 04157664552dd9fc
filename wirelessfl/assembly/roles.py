"""Roles of the clients of a scenario."""

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import Population
from wirelessfl.learning.population import PartitionedData, SyntheticPopulation
from wirelessfl.learning.roles import FlippedSynthetic, drawn_roles, with_flipped_labels
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import OverTheAir
from wirelessfl.simulation.roles import Roles
from wirelessfl.streams import Streams
from wirelessfl.trace import Role


def build_roles(scenario: Scenario, streams: Streams) -> Roles | None:
    """The clients with a role; None where all follow the protocol."""
    sections, registered = scenario.clients.roles, scenario.clients.count
    drawn = drawn_roles(streams, registered, [role.held_by(registered) for role in sections])
    clients = np.concatenate([*drawn, np.zeros(0, dtype=np.int64)])
    if not len(clients):
        return None
    codes = [np.full(len(own), Role[role.role.upper()]) for role, own in zip(sections, drawn, strict=True)]
    factors = [np.full(len(own), role.strength) for role, own in zip(sections, drawn, strict=True)]
    order = np.argsort(clients)
    return Roles(
        clients=clients[order],
        codes=np.concatenate(codes).astype(np.uint8)[order],
        factors=np.concatenate(factors)[order],
        over_the_air=isinstance(scenario.uplink, OverTheAir),
    )


def with_poisoned_labels(scenario: Scenario, population: Population, streams: Streams) -> Population:
    """The population in which clients of the role label_flip have other labels."""
    roles = build_roles(scenario, streams)
    clients = np.zeros(0, dtype=np.int64) if roles is None else roles.clients[roles.codes == Role.LABEL_FLIP]
    return _flipped(population, clients) if len(clients) else population


def _flipped(population: Population, clients: NDArray[np.int64]) -> Population:
    if isinstance(population, PartitionedData):
        return with_flipped_labels(population, clients)
    assert isinstance(population, SyntheticPopulation), "a population is divided among the clients, or made on demand"
    known = {one.name: getattr(population, one.name) for one in fields(SyntheticPopulation)}
    return FlippedSynthetic(**known, flippers=clients)
