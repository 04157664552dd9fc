"""What does not go together with asynchronous aggregation."""

from collections.abc import Iterator

from wirelessfl.scenario.aggregation import Asynchronous
from wirelessfl.scenario.clients import SelectAll, SelectUniform
from wirelessfl.scenario.mechanism import DynamicClip, ExternalMechanism, GradientNoise
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Quorum
from wirelessfl.scenario.training import FedAvg, FedProx
from wirelessfl.scenario.uplink import Digital, Ideal, OverTheAir

Contradiction = tuple[str, str, str]
"""Key path, what was found, what is allowed."""


def find_asynchronous_contradictions(scenario: Sections) -> Iterator[Contradiction]:
    """What needs rounds, or a number that asynchronous aggregation does not have."""
    aggregation, timing, uplink = scenario.aggregation, scenario.timing, scenario.uplink
    if not isinstance(aggregation, Asynchronous):
        return
    mode = "with aggregation.mode: asynchronous"
    if not isinstance(uplink, Digital | Ideal):
        why = "a sum over the air" if isinstance(uplink, OverTheAir) else "a masked sum"
        yield "uplink.kind", f"{uplink.kind} {mode}", f"digital | ideal; {why} needs clients who send together"
    if isinstance(uplink, Digital) and uplink.access == "tdma":
        yield "uplink.access", f"tdma {mode}", "ofdma: nobody waits for another's turn"
    algorithm = scenario.training.algorithm
    if not isinstance(algorithm, FedAvg | FedProx):
        yield "training.algorithm.name", f"{algorithm.name} {mode}", "fedavg | fedprox"
    if timing.deadline_s is not None:
        yield "timing.deadline_s", f"{timing.deadline_s} {mode}", "null: nobody is late"
    if isinstance(timing.wait_for, Quorum):
        yield "timing.wait_for", f"a part of the clients {mode}", "all; aggregation.buffer says what a step waits for"
    yield from _asynchronous_clients(scenario, aggregation.buffer, mode)
    yield from _asynchronous_privacy(scenario, mode)


def _asynchronous_clients(scenario: Sections, buffer: int, mode: str) -> Iterator[Contradiction]:
    selection = scenario.clients.selection
    if not isinstance(selection, SelectAll | SelectUniform):
        yield (
            "clients.selection.scheme",
            f"{selection.scheme} {mode}",
            "all | uniform, whose count says how many are at work",
        )
        return
    active = scenario.clients.most
    if buffer > active:
        yield "aggregation.buffer", str(buffer), f"at most {active}, the clients at work at a time"


def _asynchronous_privacy(scenario: Sections, mode: str) -> Iterator[Contradiction]:
    mechanism = scenario.training.privacy
    if not isinstance(mechanism, GradientNoise | ExternalMechanism):
        return
    if mechanism.unit == "client":
        yield (
            "training.privacy.unit",
            f"client {mode}",
            "sample: noise on a weighted sum of clients chosen at random is accounted for rounds only",
        )
    if isinstance(mechanism.clipping, DynamicClip):
        yield (
            "training.privacy.clipping.name",
            f"dynamic {mode}",
            "another rule: its noise follows the round, of which the updates of a step have several",
        )
