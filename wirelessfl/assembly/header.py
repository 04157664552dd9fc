"""Header and closing attributes of a run's trace."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.scenario import Scenario, dump_scenario
from wirelessfl.scenario.uplink import SecureAggregation
from wirelessfl.simulation.run import Simulation
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import GAIN_AXES, TraceHeader, scenario_digest
from wirelessfl.version import package_version


def trace_header(scenario: Scenario, simulation: Simulation) -> TraceHeader:
    """The header of a new trace."""
    parts, statement = simulation.deployment, simulation.ledger.statement
    plan, model = parts.learner.plan, parts.learner.model
    text = dump_scenario(scenario)
    # Axes of gains that are longer than 1 are told; links that are not over the air have one of each.
    gains = parts.uplink.gain_shape if isinstance(parts.uplink, OverTheAir) else (1, 1, 1)
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
            "device": plan.device,
            "plan": json.dumps(asdict(plan)),
            "delta": statement.delta,
            "dimension": model.dimension,
            "total_samples": parts.network.registry.total_samples,
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
            "parameters": json.dumps({name: list(shape) for name, shape in model.shapes.items()}),
        },
        secagg=_secure_aggregation(scenario.uplink) if isinstance(scenario.uplink, SecureAggregation) else None,
        gain_axes={axis: size for axis, size in zip(GAIN_AXES, gains, strict=True) if size > 1},
    )


def _secure_aggregation(uplink: SecureAggregation) -> dict[str, str | int]:
    return {"protocol": uplink.protocol, "ring_bits": uplink.bits, "weights_hidden": int(uplink.hide_weights)}


def closing_attributes(simulation: Simulation) -> dict[str, str]:
    """What is only known at the end: the ledger's words, and the kinds of releases it was fed."""
    return {
        "why_different": json.dumps(simulation.ledger.why_different(), ensure_ascii=False),
        "release_settings": json.dumps(list(simulation.state.release_settings)),
    }


def client_values(simulation: Simulation) -> Mapping[str, NDArray[Any]]:
    """The columns over clients, for those whom the run has touched: a trace grows with the active clients."""
    registry, ledger = simulation.deployment.network.registry, simulation.ledger
    clients = np.sort(ledger.state()["clients"]).astype(np.int64)
    published, accounted = ledger.client_epsilons()
    return {
        "client": clients,
        "samples": registry.samples[clients],
        "weight": registry.weight(clients),
        "power_budget": np.full(len(clients), registry.power_budget),
        "distance": simulation.deployment.network.last_distances(clients),
        "client_epsilon_published": published[clients],
        "client_epsilon_accounted": accounted[clients],
    }
