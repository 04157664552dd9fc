"""Roles of clients over the air: amplitudes, power, and what the receiver gets of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_roles import AIR, first_updates, of, step_of
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.trace import Role, open_trace

PIECES: dict[str, dict[str, Any]] = {
    "one piece": {},
    "array": {"uplink__receiver": {"antennas": 3}},
    "delay line": {"channel__fading": {"model": "tdl", "profile": "A", "delay_spread_s": 1e-6}},
}


@pytest.mark.parametrize("pieces", PIECES)
def test_amplitudes_are_those_of_honest_clients_times_the_factor(pieces: str) -> None:
    """With the noise of the honest run the sum differs by (f - 1) times what the cheater sends."""
    changes = {"rounds": 1, "uplink": AIR, **PIECES[pieces]}
    _, plain, step = step_of(small(**changes))
    simulation, this, cheated = step_of(small(clients__roles=[{"role": "power_cheat", "factor": 5.0}], **changes))
    (client,), others = of(simulation, Role.POWER_CHEAT), np.setdiff1d(np.arange(6), of(simulation, Role.POWER_CHEAT))
    for name, power in (("tx_gain_abs", 1), ("tx_energy", 2)):
        np.testing.assert_allclose(this.slots[name][client], 5.0**power * plain.slots[name][client], rtol=1e-9)
        np.testing.assert_array_equal(this.slots[name][others], plain.slots[name][others])
    # Channels are inverted exactly: a client arrives with its weight.
    honest, weight = first_updates(small(**changes)), simulation.deployment.network.registry.weight(np.arange(6))
    np.testing.assert_allclose(cheated - step, 4.0 * weight[client] * honest[client] / weight.sum(), atol=1e-6)


def test_who_scales_its_update_stays_within_its_power() -> None:
    changes = {"rounds": 2, "uplink": AIR | {"clip": 0.5}}
    budget = float(build_simulation(small(**changes), PLAN).deployment.network.registry.power_budget)
    _, plain, _ = run(small(**changes))
    for factor in (1.5, 1e4):
        simulation, rounds, _ = run(small(clients__roles=[{"role": "scaled", "factor": factor, "count": 3}], **changes))
        mine = of(simulation, Role.SCALED)
        energy, honest = rounds[0].slots["tx_energy"][mine], plain[0].slots["tx_energy"][mine]
        np.testing.assert_allclose(energy, np.minimum(factor**2 * honest, budget), rtol=1e-6)
    assert np.any(factor**2 * honest > budget)


def test_sign_flips_and_free_riders_over_the_air() -> None:
    changes = {"rounds": 1, "uplink": AIR}
    _, _, step = step_of(small(**changes))
    honest = first_updates(small(**changes))
    louder = {"role": "sign_flip", "factor": 1.5}
    for role, change, keys in (
        (Role.SIGN_FLIP, -2.0, {"role": "sign_flip"}),
        (Role.SIGN_FLIP, -2.5, louder),
        (Role.FREE_RIDER, -1.0, {"role": "free_rider"}),
    ):
        simulation, this, other = step_of(small(clients__roles=[keys], **changes))
        (client,), weight = of(simulation, role), simulation.deployment.network.registry.weight(np.arange(6))
        np.testing.assert_allclose(other - step, change * weight[client] * honest[client] / weight.sum(), atol=1e-6)
        assert (this.slots["tx_energy"][client] == 0.0) == (role == Role.FREE_RIDER)


BLIND = {
    "kind": "over_the_air",
    "clip": 10.0,
    "modulation": {"scheme": "blind"},
    "power_control": {"policy": "no_csi"},
    "receiver": {"antennas": 4},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("role", "factor"), [("scaled", 3.0), ("sign_flip", 2.0), ("power_cheat", 5.0)])
def test_blind_amplitudes_are_multiplied_as_linear_ones(role: str, factor: float, packed: bool) -> None:
    """Step of the sum of what antennas read, Re fᴴ Σ h_i a_i f_i Δ_i/Σ a_j, from the channels in the trace."""
    changes = {"rounds": 1, "uplink": BLIND | {"iq_packing": packed}}
    _, plain, step = step_of(small(**changes))
    simulation, this, other = step_of(small(clients__roles=[{"role": role, "factor": factor}], **changes))
    (client,), honest = of(simulation, Role[role.upper()]), first_updates(small(**changes))[:, : step.size]
    budget = float(simulation.deployment.network.registry.power_budget)
    assert this.slots["tx_energy"][client] == pytest.approx(factor**2 * plain.slots["tx_energy"][client])
    assert role == "power_cheat" or this.slots["tx_energy"][client] <= budget
    columns = this.slots
    channel = (columns["channel_re"] + 1j * columns["channel_im"]).reshape(6, 4)
    weight = channel.sum(axis=0).conj() @ channel[client] / (4 * 6)  # fᴴh over 6 equal amplitudes
    change = (-factor if role == "sign_flip" else factor) - 1.0
    sent = change * honest[client]
    if packed:
        pairs = np.append(sent, np.zeros(sent.size % 2))
        mixed = weight * (pairs[0::2] + 1j * pairs[1::2])
        expected = np.stack([mixed.real, mixed.imag], axis=1).ravel()[: sent.size]
    else:
        expected = weight.real * sent
    np.testing.assert_allclose(other - step, expected, atol=1e-6)


@pytest.mark.parametrize("scheme", ["obda", "fsk_vote", "a_dsgd"])
def test_factors_mean_nothing_to_symbols_of_other_sizes(scheme: str) -> None:
    policy = "no_csi" if scheme == "fsk_vote" else "truncated_inversion"
    changes = {"modulation": {"scheme": scheme}, "power_control": {"policy": policy}, "kind": "over_the_air"}
    with pytest.raises(ScenarioError, match=rf"scaled by 10 with the modulation {scheme}.*scheme: analog \| blind"):
        small(clients__roles=[{"role": "scaled"}], uplink=changes)


@pytest.mark.parametrize("groups", [1, 3])
def test_clients_without_a_guarantee_are_among_the_clients_of_the_trace(groups: int, tmp_path: Path) -> None:
    """Those that send beyond every bound have samples, weight and place there, and no epsilon."""
    roles = [{"role": "sign_flip", "factor": 3.0}, {"role": "power_cheat"}, {"role": "label_flip"}]
    air = {"kind": "over_the_air", "slot_groups": groups}
    scenario = small(uplink=air, clients__roles=roles)
    result = wfl.simulate(scenario, tmp_path / "run", pictures=False)
    with open_trace(result.trace) as trace:
        assert trace["client"].values.tolist() == list(range(6))
        role = trace["role"].values[0]
        beyond = np.isin(role, (Role.SIGN_FLIP, Role.POWER_CHEAT))
        assert np.count_nonzero(beyond) == 2 and trace["samples"].values.sum() == 120
        assert trace["weight"].values.sum() == pytest.approx(1.0)
        for name in ("client_epsilon_accounted", "client_epsilon_published"):
            assert np.isnan(trace[name].values)[beyond].all(), name
        assert (trace["client_epsilon_accounted"].values[~beyond] > 0).all()
        told = float(trace["epsilon_accounted"].values[-1])
    assert recorded_ledger(result.trace).epsilon_accounted() == pytest.approx(told)
    assert verify(open_recording(result.trace)).difference is None
    goes_on_to_the_same_bits(scenario, tmp_path)
