"""Modulation and coding schemes of NR: the table, the floor, and what a round records below it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl.assembly import build_simulation, plan_to_look
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.radio import DigitalLinks
from wirelessfl.radio.mcs import EFFICIENCIES, ModulationAndCoding
from wirelessfl.simulation.uplinks import DigitalUplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink
from wirelessfl.trace import Status

# The column "spectral efficiency" of TS 38.214 Table 5.1.3.1-1, as printed
PRINTED = (
    "0.2344 0.3066 0.3770 0.4902 0.6016 0.7402 0.8770 1.0273 1.1758 1.3262 1.3281 1.4766 1.6953 1.9141 2.1602 2.4063 "
    "2.5703 2.5664 2.7305 3.0293 3.3223 3.6094 3.9023 4.2129 4.5234 4.8164 5.1152 5.3320 5.5547"
)


def test_the_table_is_the_printed_one() -> None:
    np.testing.assert_allclose(EFFICIENCIES, [float(one) for one in PRINTED.split()], atol=5.1e-5)


@pytest.mark.parametrize("gap_db", [0.0, 3.0])
def test_schemes_begin_at_their_thresholds(gap_db: float) -> None:
    """η is sent from Γ (2^η − 1) on, and not below; nothing below the first, no more than the last."""
    coding = ModulationAndCoding(10 ** (gap_db / 10))
    schemes = sorted(float(one) for one in EFFICIENCIES)
    at = np.array([coding.gap * (2**one - 1) for one in schemes])
    np.testing.assert_allclose(coding.throughput(2e5, at), 2e5 * np.array(schemes), rtol=1e-12)
    below = coding.throughput(1.0, at * (1 - 1e-9))
    np.testing.assert_allclose(below, [0.0, *schemes[:-1]], rtol=1e-12)
    assert coding.throughput(1.0, np.array([1e9]))[0] == schemes[-1]
    assert coding.floor_snr == pytest.approx(at[0])


def test_a_gap_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="gap"):
        ModulationAndCoding(0.5)


UPLINKS = {
    "ofdma": {"kind": "digital"},
    "tdma": {"kind": "digital", "access": "tdma"},
    "secure": {"kind": "secure_aggregation", "protocol": "pairwise_prf"},
}


@pytest.mark.parametrize("name", UPLINKS)
def test_rounds_send_at_schemes(name: str) -> None:
    """Airtime is bits over B_i η of the recorded channel; below the floor nothing is sent, and that is a deep fade."""
    uplink = {**UPLINKS[name], "snr_db": 1.0 if name == "tdma" else -10.0, "rate": {"model": "mcs"}}
    simulation, rounds, _ = run(small(uplink=uplink, clients__count=12))
    way = simulation.deployment.uplink
    assert isinstance(way, DigitalUplink | SecureUplink)
    links = way.links
    assert isinstance(links, DigitalLinks)
    share = 1.0 if name == "tdma" else 1.0 / 12
    silent = sent = 0
    for this in rounds:
        gain = np.abs(np.asarray(this.slots["channel_re"]) + 1j * np.asarray(this.slots["channel_im"])) ** 2
        carried = np.log2(1 + links.snr * gain / (2 * share) / 10**0.3)
        fits = [max((eta for eta in EFFICIENCIES if eta <= one), default=0.0) for one in carried.ravel()]
        lost = np.array(fits) == 0
        np.testing.assert_array_equal(this.status == Status.DEEP_FADE, lost)
        silent, sent = silent + int(lost.sum()), sent + int((~lost).sum())
        if name != "secure":
            expected = way.payload_bits / (links.bandwidth_hz * share * np.array(fits)[~lost])
            np.testing.assert_allclose(this.slots["tx_time"][~lost], expected, rtol=1e-9)
    assert silent and sent


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
def test_an_asynchronous_client_waits_below_the_floor() -> None:
    uplink = {"kind": "digital", "snr_db": -5.0, "rate": {"model": "mcs"}}
    _, rounds, _ = run(small(uplink=uplink, aggregation={"mode": "asynchronous", "buffer": 2}, rounds=6))
    statuses = {int(one) for this in rounds for one in this.status}
    assert Status.DEEP_FADE in statuses and Status.PARTICIPATED in statuses


def test_clients_below_the_floor_are_counted() -> None:
    """Points at which the received power is 10 dB above and below the floor's."""
    near, far = (10.0, 0.0), (1e5, 0.0)
    keys = {
        "channel__pathloss": {"model": "log_distance", "exponent": 3.0},
        "channel__placement": {"scheme": "positions", "points_m": [near, near, near, far, far, far]},
    }
    uplink = {"kind": "digital", "tx_power_dbm": 10.0, "rate": {"model": "mcs"}}
    with pytest.warns(ModelWarning, match="3 of 6 clients are below the floor"):
        build_simulation(small(uplink=uplink, **keys), plan_to_look(small().compute))


def test_the_margin_needs_a_known_law() -> None:
    uplink = {"kind": "digital", "rate": {"model": "mcs"}}
    with pytest.raises(ScenarioError, match=r"uplink.rate.outage"):
        small(uplink=uplink, channel__fading={"model": "nakagami", "m": 2.0}, channel__csi={"error_std": 0.1})
