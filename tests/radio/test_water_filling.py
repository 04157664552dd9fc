"""Water-filling against its optimality conditions, and digital messages over groups of subcarriers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import optimize

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.water_filling import water_filling
from wirelessfl.simulation.uplinks import DigitalUplink

TDL = {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7}


def test_optimality_conditions() -> None:
    """Power is spent; where there is any, p + 1/γ is the water level, and elsewhere 1/γ is above it."""
    snr = np.random.default_rng(0).exponential(size=(200, 16)) * np.logspace(-3, 3, 200)[:, None]
    shares = water_filling(snr)
    np.testing.assert_allclose(shares.sum(axis=1), 16.0, rtol=1e-9)
    assert np.all(shares >= 0) and np.any(shares == 0)
    for gains, own in zip(snr, shares, strict=True):
        level = (own + 1 / gains)[own > 0]
        assert np.ptp(level) <= 1e-6 * level.max()
        assert np.all(1 / gains[own == 0] >= level.max() * (1 - 1e-9))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_no_other_division_carries_more(scale: float) -> None:
    snr = np.array([0.05, 0.4, 1.0, 3.0]) * scale
    found = optimize.minimize(
        lambda p: -np.log1p(p * snr).sum(),
        np.ones(4),
        bounds=[(0, 4)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 4},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(water_filling(snr), found.x, atol=2e-5)


def test_ends() -> None:
    np.testing.assert_array_equal(water_filling(np.array([2.0])), [1.0])
    np.testing.assert_allclose(water_filling(np.full(5, 0.3)), 1.0)
    np.testing.assert_array_equal(water_filling(np.zeros(3)), 1.0)
    np.testing.assert_allclose(water_filling(np.array([0.0, 1.0])), [0.0, 2.0])


def links(rate: dict[str, Any], **changes: Any) -> Any:
    section = {"kind": "digital", "rate": rate, "snr_db": 3.0}
    uplink = build_simulation(small(uplink=section, channel__fading=TDL, **changes), PLAN).deployment.uplink
    assert isinstance(uplink, DigitalUplink)
    return uplink.links


def test_a_message_takes_the_mean_rate_of_its_groups() -> None:
    """Shannon's rate of each group in an eighth of the band, by the gains alone."""
    clients, moment, share, rates = np.arange(6), Moment(1, 0.0), 0.25, {}
    for power in ("equal", "water_filling"):
        found = links({"model": "adaptive", "power": power})
        drawn, slot = found.draw(clients, moment, share)
        gains = np.abs(slot.channel[:, 0, :, 0]) ** 2
        assert gains.shape == (6, 8)
        snr = found.snr * gains / (2 * share)
        divided = snr if power == "equal" else snr * water_filling(snr)
        wanted = (share * found.bandwidth_hz / 8 * np.log2(1 + divided)).sum(axis=1)
        rates[power] = 1 / np.array([link.seconds_per_bit for link in drawn])
        np.testing.assert_allclose(rates[power], wanted, rtol=1e-12)
    assert np.all(rates["water_filling"] >= rates["equal"]) and np.any(rates["water_filling"] > 1.001 * rates["equal"])


@pytest.mark.parametrize("kind", ["digital", "secure_aggregation"])
@pytest.mark.parametrize("rate", [{"model": "adaptive", "power": "water_filling"}, {"model": "fixed", "rate_bps": 1e5}])
def test_runs_over_groups(kind: str, rate: dict[str, Any]) -> None:
    changes: dict[str, Any] = {"faults__fade_threshold": 0.2, "timing__deadline_s": 30.0, "rounds": 2}
    _, rounds, _ = run(small(uplink={"kind": kind, "rate": rate, "snr_db": 10.0}, channel__fading=TDL, **changes))
    assert all(this.values["participants"] > 0 for this in rounds)


def test_the_trace_has_the_gains_of_all_groups(tmp_path: Path) -> None:
    scenario = small(uplink={"kind": "digital", "rate": {"power": "water_filling"}}, channel__fading=TDL, rounds=2)
    wfl.simulate(scenario, tmp_path / "out", pictures=False, device="cpu")
    with wfl.open_trace(tmp_path / "out" / "trace.h5") as trace:
        assert trace["channel_re"].sizes["subcarrier"] == 8
    result = CliRunner().invoke(main, ["replay", str(tmp_path / "out"), "--verify", "--json"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uplink": {"kind": "digital", "rate": {"model": "mcs"}}}, r"rate\.model: found mcs with tdl"),
        ({"uplink": {"kind": "digital", "rate": {"packets": {}}}}, r"rate\.packets: found packets with tdl"),
        ({"uplink": {"kind": "digital", "harq": {}}}, r"harq: found retransmissions with tdl"),
        ({"uplink": {"kind": "digital"}, "channel__csi": {"error_std": 0.1}}, r"error_std: found 0\.1 with tdl"),
        (
            {"uplink": {"kind": "digital"}, "channel__correlation": {"model": "clarke", "doppler_hz": 5.0}},
            r"correlation\.model: found clarke with tdl",
        ),
        ({"uplink": {"kind": "digital", "rate": {"power": "best"}}}, r"rate\.power: found best"),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        small(channel__fading=TDL, **changes)
