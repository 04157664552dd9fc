"""Late single carriers in slots of several pieces: what reaches into the next piece is hidden by the noise there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, small
from tests.simulation.test_pieces import channels_of
from wirelessfl.assembly import build_simulation
from wirelessfl.privacy import Statement
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import OverTheAir

CLARKE = {"model": "clarke", "doppler_hz": 300.0}


def by_symbols(values: NDArray[Any]) -> NDArray[Any]:
    """Two symbols stand for each piece: what a late symbol does is the same within it, and different at its end."""
    return np.repeat(values, 2)


def mu_by_hand(this: FinishedRound, client: int, offset: float, real_jammer: bool) -> float:
    """The largest singular value of the whitened map from a real update in the unit ball to both quadratures."""
    h = channels_of(this)[0][client]
    gain = by_symbols(np.abs(h) * this.slots["tx_gain_abs"][client] * np.exp(1j * mismatch(this)[client]))
    symbols = len(gain)
    heard = np.diag((1 - offset) * gain) + np.diag(offset * gain[:-1], k=-1)
    h_cj = by_symbols(this.blocks["jammer_channel_re"] + 1j * this.blocks["jammer_channel_im"])
    known = by_symbols(this.blocks["jammer_csi_re"] + 1j * this.blocks["jammer_csi_im"])
    jammed = this.values["jammer_gain"] * (h_cj * np.abs(known) / known)
    covariance = np.eye(2 * symbols)
    for part in (jammed,) if real_jammer else (jammed, 1j * jammed):
        column = np.concatenate([np.diag(part.real), np.diag(part.imag)])
        covariance += column @ column.T
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), np.concatenate([heard.real, heard.imag]))
    return float(np.linalg.norm(whitened, 2))


def mismatch(this: FinishedRound) -> NDArray[np.float64]:
    """(k, T) angles of h/ĥ: gains turn the phase of the estimate back."""
    h, known = channels_of(this)
    return np.asarray(np.angle(h / known))


@pytest.mark.parametrize("noise", ["complex", "real"])
def test_no_update_tells_more_than_is_charged(noise: str) -> None:
    scenario = small(
        rounds=12,
        channel__correlation=CLARKE,
        channel__csi={"error_std": 0.2},
        channel__sync={"max_offset": 0.95},
        uplink__power_control={"policy": "weakest_inversion"},
        uplink__jammer={"epsilon": 1.0, "noise": noise},
    )
    simulation = build_simulation(scenario, PLAN)
    uplink, network = simulation.deployment.uplink, simulation.deployment.network
    assert isinstance(uplink, OverTheAir) and uplink.schedule.pieces > 1
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    statement, shares = Statement(1e-5, unit="client"), []
    for this in rounds:
        (release,) = this.round.releases
        late = network.late_arrival(this.clients, this.index)
        assert late is not None
        charged = np.sqrt(release.accounted(simulation.ledger.facts, statement).mu_squared)
        by_hand = [mu_by_hand(this, i, float(late.offset[i]), noise == "real") for i in range(len(this.clients))]
        shares += (np.array(by_hand) / charged).tolist()
    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.9, "the bound is close to what an update can do"
