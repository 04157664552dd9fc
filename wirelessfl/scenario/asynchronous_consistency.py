"""Contradictions of asynchronous aggregation, in which updates of one step come from several rounds."""

from wirelessfl.scenario.algorithm import FedAvg, FedProx
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.mechanism import DynamicClip, ExternalMechanism, GradientNoise, noised_by_server
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.selection import SelectAll, SelectUniform
from wirelessfl.scenario.timing import Asynchronous, Quorum
from wirelessfl.scenario.uplink import Digital, Ideal, OverTheAir

_MODE = "with aggregation.mode: asynchronous"


def asynchronous_rules(scenario: Sections) -> list[Rule]:
    """Rules of asynchronous aggregation; none of rounds."""
    aggregation = scenario.aggregation
    if not isinstance(aggregation, Asynchronous):
        return []
    return [*_updates_one_by_one(scenario), *_clients_at_work(scenario, aggregation), *_noise(scenario)]


def _updates_one_by_one(scenario: Sections) -> list[Rule]:
    uplink, algorithm = scenario.uplink, scenario.training.algorithm
    why = "a sum over the air" if isinstance(uplink, OverTheAir) else "a masked sum"
    return [
        (
            not isinstance(uplink, Digital | Ideal),
            "uplink.kind",
            f"{uplink.kind} {_MODE}",
            f"digital | ideal; {why} needs clients that send at the same time",
        ),
        (
            isinstance(uplink, Digital) and uplink.access == "tdma",
            "uplink.access",
            f"tdma {_MODE}",
            "ofdma: clients do not take turns",
        ),
        (
            not isinstance(algorithm, FedAvg | FedProx),
            "training.algorithm.name",
            f"{algorithm.name} {_MODE}",
            "fedavg | fedprox",
        ),
    ]


def _clients_at_work(scenario: Sections, aggregation: Asynchronous) -> list[Rule]:
    timing, selection, most = scenario.timing, scenario.clients.selection, scenario.clients.most
    known = isinstance(selection, SelectAll | SelectUniform)
    return [
        (
            timing.deadline_s is not None,
            "timing.deadline_s",
            f"{timing.deadline_s} {_MODE}",
            "null: no update is too late",
        ),
        (
            isinstance(timing.wait_for, Quorum),
            "timing.wait_for",
            f"a part of the clients {_MODE}",
            "all; aggregation.buffer is the number of updates of a step",
        ),
        (
            not known,
            "clients.selection.scheme",
            f"{selection.scheme} {_MODE}",
            "all | uniform, whose count is the number of clients at work",
        ),
        (
            known and aggregation.buffer > most,
            "aggregation.buffer",
            str(aggregation.buffer),
            f"at most {most}, the clients at work at a time",
        ),
    ]


def _noise(scenario: Sections) -> list[Rule]:
    mechanism = scenario.training.privacy
    return [
        (
            noised_by_server(mechanism),
            "training.privacy.unit",
            f"client {_MODE}",
            "sample: noise on a weighted sum of clients chosen at random is accounted for rounds only",
        ),
        (
            isinstance(mechanism, GradientNoise | ExternalMechanism) and isinstance(mechanism.clipping, DynamicClip),
            "training.privacy.clipping.name",
            f"dynamic {_MODE}",
            "another rule: its noise depends on the round, and the updates of a step come from several rounds",
        ),
    ]
