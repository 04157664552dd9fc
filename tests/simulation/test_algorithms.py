"""An algorithm from outside in one class: corrected gradients, rows kept at clients, two vectors a round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scaffold import PlainLoop
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.folder import RunIdentity
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Round, Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import EventKind, Status

SCAFFOLD = {"name": "tests.simulation.scaffold:Scaffold"}
LOUD = {"kind": "over_the_air", "snr_db": 250.0, "clip": 40.0}
UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"kind": "ideal"},
    "digital": {"kind": "digital"},
    "over the air": LOUD,
    "secure aggregation": {"kind": "secure_aggregation", "clip": 40.0, "bits": 48},
}


def controlled(**changes: Any) -> Scenario:
    """Half of the clients a round, several local steps, and control variates."""
    setting: dict[str, Any] = {
        "training__algorithm": SCAFFOLD,
        "training__epochs": 2,
        "training__batch_size": 6,
        "clients__selection": {"scheme": "uniform", "count": 3},
        "data__partition": {"scheme": "sizes", "exponent": 0.7},
        "rounds": 4,
    }
    return small(**setting | changes)


def plain(simulation: Simulation, rounds: list[Round], clip: float | None = None) -> PlainLoop:
    """The same by hand, with the clients that were heard."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    loop = PlainLoop.before(learner)
    for this in rounds:
        heard = this.with_status(Status.PARTICIPATED)
        norms = loop.round(this.clients[heard].tolist(), this.index, clip)
        np.testing.assert_allclose(this.slots["update_norm_raw"][heard], norms, rtol=2e-4)
    return loop


@pytest.mark.parametrize("uplink", UPLINKS)
def test_control_variates_are_those_of_a_plain_loop(uplink: str) -> None:
    simulation, rounds, _ = run(controlled(uplink=UPLINKS[uplink]))
    loop = plain(simulation, rounds)
    state, moved = simulation.state, float((loop.model - PlainLoop.before(loop.learner).model).norm())
    tolerance = 1e-4 * moved
    np.testing.assert_allclose(state.parameters, loop.model, rtol=0, atol=tolerance)
    np.testing.assert_allclose(state.server_memory["control"], loop.control, rtol=0, atol=1e-3)
    assert float(loop.control.norm()) > 0.1  # else the corrections would have been nothing
    clients = state.client_rows["client"].tolist()
    assert sorted(clients) == sorted(loop.controls) and len(clients) == len(set(clients))
    for client, kept in zip(clients, state.client_rows["control"], strict=True):
        np.testing.assert_allclose(kept, loop.controls[client], rtol=0, atol=1e-3)


def test_rows_are_kept_of_those_who_took_part_alone() -> None:
    selection = {"scheme": "uniform", "count": 1}
    simulation, rounds, _ = run(controlled(uplink={"kind": "ideal"}, clients__selection=selection, rounds=2))
    took_part = {int(this.clients[0]) for this in rounds}
    assert set(simulation.state.client_rows["client"].tolist()) == took_part
    assert len(simulation.state.client_rows["control"]) == len(took_part)


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_a_clip_bounds_the_whole_upload(clip: float) -> None:
    simulation, rounds, _ = run(controlled(uplink={"kind": "ideal", "clip": clip}))
    loop = plain(simulation, rounds, clip)
    np.testing.assert_allclose(simulation.state.parameters, loop.model, rtol=0, atol=1e-4)
    heard = np.concatenate([this.slots["update_norm"] for this in rounds])
    assert np.nanmax(heard) <= clip * (1 + 1e-6)
    assert (np.nanmax(heard) > 0.99 * clip) == (clip == 0.5)


def test_two_vectors_take_twice_the_bits_and_the_airtime() -> None:
    changes: dict[str, Any] = {"rounds": 1, "clients__selection": {"scheme": "all"}}
    for uplink in UPLINKS.values():
        ours, theirs = (
            run(controlled(uplink=uplink, training__algorithm=algorithm, **changes))
            for algorithm in (SCAFFOLD, {"name": "fedavg"})
        )
        dimension = len(ours[0].state.parameters)
        sent = [
            [bits for kind, bits in zip(played[2][0].kind, played[2][0].bits, strict=True) if kind == EventKind.BROADCAST]
            for played in (ours, theirs)
        ]
        assert sent == [[64 * dimension], [32 * dimension]]
        if uplink["kind"] == "secure_aggregation":
            found, wanted = (played[0].deployment.uplink.payload_bits for played in (ours, theirs))  # type: ignore[attr-defined]
            assert found - wanted == 48 * dimension
        elif uplink["kind"] == "digital":
            np.testing.assert_allclose(ours[1][0].slots["tx_time"], 2 * theirs[1][0].slots["tx_time"], rtol=1e-9)
        else:
            assert ours[1][0].values["airtime"] == 2 * theirs[1][0].values["airtime"]


def test_a_few_bits_are_rounded_vector_by_vector() -> None:
    coarse, rounds, _ = run(controlled(uplink={"kind": "digital", "bits": 16}, rounds=2))
    loop = plain(coarse, rounds)
    moved = float((loop.model - PlainLoop.before(loop.learner).model).norm())
    # Each coordinate of Δ is off by a step of max|Δ|/2¹⁵, whatever the second vector's scale is.
    assert float(np.linalg.norm(coarse.state.parameters - np.asarray(loop.model))) < 1e-3 * moved


@pytest.mark.parametrize("uplink", ["ideal", "over the air", "secure aggregation"])
def test_a_resumed_run_keeps_its_control_variates_to_the_bit(uplink: str, tmp_path: Any) -> None:
    from wirelessfl.trace import load_checkpoint, save_checkpoint

    scenario = controlled(uplink=UPLINKS[uplink])
    whole, _, _ = run(scenario)
    first = build_simulation(scenario, PLAN)
    identity = RunIdentity("0" * 32, "digest", 1)

    class Enough(Exception):
        pass

    def stop(this: Round, _: Any) -> None:
        if this.index == 2:
            save_checkpoint(tmp_path / "checkpoint.bin", first.state.as_mapping(), identity)
            raise Enough

    with pytest.raises(Enough):
        first.run(stop)
    restored = SimulationState.from_mapping(load_checkpoint(tmp_path / "checkpoint.bin", identity))
    rest = build_simulation(scenario, PLAN, restored)
    rest.run(lambda this, batch: None)
    assert rest.state.parameters.tobytes() == whole.state.parameters.tobytes()
    assert rest.state.server_memory["control"].tobytes() == whole.state.server_memory["control"].tobytes()
    assert rest.state.client_rows.keys() == whole.state.client_rows.keys()
    for name, rows in whole.state.client_rows.items():
        assert rows.tobytes() == rest.state.client_rows[name].tobytes()
