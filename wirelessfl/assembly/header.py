"""What a trace holds beside its rounds: the header, the words of its ledger, and the columns over clients."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.assembly.compiled import compiled_kernels
from wirelessfl.assembly.inputs import fingerprints, folders_of_data
from wirelessfl.processor import processor_name
from wirelessfl.scenario import Scenario, dump_scenario
from wirelessfl.scenario.scenario import outside_sources
from wirelessfl.scenario.uplink import DigitalLink, SecureAggregation
from wirelessfl.simulation.run import Deployment, Simulation
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import GAIN_AXES, JAMMER_AXIS, TraceHeader, scenario_digest, source_attributes
from wirelessfl.version import package_version


def trace_header(scenario: Scenario, simulation: Simulation, folder: Path) -> TraceHeader:
    """The header of a new trace in a folder."""
    data_folders = folders_of_data(scenario, folder)
    parts, statement = simulation.deployment, simulation.ledger.statement
    plan, model = parts.learner.plan, parts.learner.model
    text = dump_scenario(scenario)
    air = parts.uplink
    # Axes of gains that are longer than 1 are told; without a slot nobody jams
    of_slot = (*air.gain_shape, air.jammer_antennas) if isinstance(air, OverTheAir) else None
    gains = (*_gains_of_messages(scenario, parts), 1) if of_slot is None else of_slot
    return TraceHeader(
        attributes={
            "name": scenario.name,
            "scenario": text,
            "scenario_digest": scenario_digest(text),
            "seed": scenario.seed,
            "stream_version": STREAM_VERSION,
            "run_id": secrets.token_hex(16),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "package_version": package_version(),
            "torch_version": str(torch.__version__),
            "processor": processor_name(plan.device),
            "kernels": json.dumps(compiled_kernels()),
            "device": plan.device,
            "plan": json.dumps(asdict(plan)),
            **source_attributes(outside_sources(scenario)),
            "delta": statement.delta,
            "dimension": model.dimension,
            "total_samples": parts.network.registry.total_samples,
            "data_fingerprint": json.dumps(fingerprints(scenario, parts.learner.population)),
            **({"data_folders": json.dumps(data_folders)} if data_folders else {}),
        },
        privacy={
            "delta": statement.delta,
            "unit": statement.unit,
            "adjacency": statement.adjacency,
            "adversary": statement.adversary,
            "colluding": statement.colluding,
            "total_samples": parts.network.registry.total_samples,
            "largest_weight": simulation.ledger.facts.largest_weight,
        },
        model={
            "dimension": model.dimension,
            "parameters": json.dumps(model.shapes),
            **({"frozen": json.dumps(model.frozen)} if model.frozen else {}),
        },
        secagg=_secure_aggregation(scenario.uplink) if isinstance(scenario.uplink, SecureAggregation) else None,
        gain_axes={axis: size for axis, size in zip((*GAIN_AXES, JAMMER_AXIS), gains, strict=True) if size > 1},
        initial=None if scenario.trace.models == "none" else simulation.state.parameters.astype(np.float32),
    )


def _secure_aggregation(uplink: SecureAggregation) -> dict[str, str | int]:
    return {"protocol": uplink.protocol, "ring_bits": uplink.bits, "weights_hidden": int(uplink.hide_weights)}


def closing_attributes(simulation: Simulation) -> dict[str, str]:
    """Attributes known at the end alone: the ledger's words, the kinds of its releases, and what ended the run."""
    return {
        "why_different": json.dumps(simulation.ledger.why_different(), ensure_ascii=False),
        "release_settings": json.dumps(list(simulation.state.release_settings)),
        "ended_by": json.dumps([key for key in simulation.state.ended_by.split(",") if key]),
    }


def client_values(simulation: Simulation) -> Mapping[str, NDArray[Any]]:
    """The columns over clients, for those that were active: a trace grows with the active clients."""
    registry, ledger = simulation.deployment.network.registry, simulation.ledger
    known, unbounded = ledger.known_clients, simulation.state.unbounded
    clients = np.union1d(known, unbounded)
    published, accounted = ledger.client_epsilons()
    without = np.setdiff1d(unbounded, known)  # no guarantee is theirs, and the ledger has 0 for those it does not know
    published[without] = accounted[without] = np.nan
    return {
        "client": clients,
        "samples": registry.samples[clients],
        "weight": registry.weight(clients),
        "power_budget": np.full(len(clients), registry.power_budget),
        "distance": simulation.deployment.network.last_distances(clients),
        "client_epsilon_published": published[clients],
        "client_epsilon_accounted": accounted[clients],
    }


def _gains_of_messages(scenario: Scenario, parts: Deployment) -> tuple[int, int, int]:
    # Blocks, groups of subcarriers and antennas of the gains that messages leave in the trace; ideal uplinks have none
    clients = parts.network.clients
    return (1, clients.groups, len(clients.antennas)) if isinstance(scenario.uplink, DigitalLink) else (1, 1, 1)
