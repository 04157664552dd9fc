"""Plan of a scenario before it runs: sizes, cost, and a picture of its topology."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.outputs import replacing
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.scenario import power_notes
from wirelessfl.scenario.uplink import OverTheAir

if TYPE_CHECKING:
    from wirelessfl.simulation import Forecast


@dataclass(frozen=True)
class Plan:
    """Plan of a scenario, as ``wirelessfl validate`` prints it.

    Attributes:
        name: the scenario.
        dimension: d.
        samples: |D|.
        clients: K.
        delta: δ of both ε.
        shortfall_probability: how often in a round the jammer lacks power.
        max_shortfall: how often it may.
        training_s: seconds after the broadcast by which a client must be ready for the slot; NaN without a deadline, or
            without a slot for all.
        pieces: of a slot over the air, or of a digital message on a link of median path gain; 1 where there is none.
        upload_s: seconds of that message; NaN without digital links.
        coherence_s: seconds in which the fastest channel keeps half of its correlation; infinite where none fades.
        forecast: what the run will cost.
        notes: what holds of the scenario and is easily overlooked.
    """

    name: str
    dimension: int
    samples: int
    clients: int
    delta: float
    shortfall_probability: float
    max_shortfall: float
    training_s: float
    pieces: int
    upload_s: float
    coherence_s: float
    forecast: Forecast
    notes: tuple[str, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """Flat mapping with the names of trace and summary."""
        return {
            "name": self.name,
            "d": self.dimension,
            "samples": self.samples,
            "clients": self.clients,
            "delta": self.delta,
            **asdict(self.forecast),
            "shortfall_probability": self.shortfall_probability,
            "training_s": self.training_s,
            "pieces": self.pieces,
            "upload_s": self.upload_s,
            "coherence_s": self.coherence_s,
            "notes": list(self.notes),
        }


def plot_topology(scenario: Scenario, path: str | Path) -> None:
    """Picture of clients, base stations and servers at the beginning of a scenario.

    Args:
        scenario: the scenario.
        path: the PNG.

    Raises:
        InputError: the data or a file of the channel cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.assembly import build_simulation, plan_to_look, topology_graph
    from wirelessfl.summary.topology import draw_topology

    graph = topology_graph(build_simulation(scenario, plan_to_look(scenario.compute)).deployment)
    with replacing(Path(path)) as new:
        draw_topology(graph, scenario.name, new)


def make_plan(scenario: Scenario) -> Plan:
    """Plan of a scenario, by a rehearsal of everything but the training.

    Raises:
        InputError: the data cannot be used.
        InfeasibleError: a privacy target that cannot be met.
    """
    from wirelessfl.assembly import (
        build_simulation,
        coherence_s,
        jammer_shortfall,
        plan_to_look,
        slot_pieces,
        training_time,
        upload_span,
    )
    from wirelessfl.simulation import rehearse

    simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    parts = simulation.deployment
    jammer = scenario.uplink.jammer if isinstance(scenario.uplink, OverTheAir) else None
    span = upload_span(scenario, parts.uplink)
    return Plan(
        name=scenario.name,
        dimension=parts.learner.dimension,
        samples=parts.network.registry.total_samples,
        clients=parts.network.registry.count,
        delta=scenario.privacy.delta,
        shortfall_probability=jammer_shortfall(parts.uplink, parts.selection)[0],
        max_shortfall=jammer.max_shortfall if jammer is not None else 0.0,
        training_s=training_time(parts.wait_for, parts.uplink),
        pieces=max(slot_pieces(parts.uplink), span.pieces),
        upload_s=span.seconds,
        coherence_s=coherence_s(scenario),
        forecast=rehearse(simulation),
        notes=power_notes(scenario),
    )
