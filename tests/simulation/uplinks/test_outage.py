"""Adaptive rates on channels that are known imperfectly: how much is lost, what it costs, and who is told what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import wirelessfl as wfl
from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.cells import Play, play
from tests.statistics import assert_probability
from wirelessfl.errors import ScenarioError
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import EventKind, Status

CLARKE = {"model": "clarke", "doppler_hz": 10.0}
CLIENTS, ROUNDS = 200, 20
STRONG = {"snr_db": 20.0, "access": "tdma"}
"""Mean SNR 17 dB of a client in the whole band: SNR_i/2."""


def uploads(rate: dict[str, Any], error_std: float = 0.1, **keys: Any) -> Play:
    uplink = {"kind": "digital", **STRONG, "rate": {"min_rate_bps": 1e-3, **rate}}
    csi = {"error_std": error_std, **keys.pop("csi", {})}
    base = {"rounds": ROUNDS, "clients__count": CLIENTS, "data__limit": CLIENTS, "evaluate__every": 100}
    return play(small(uplink=uplink, channel__csi=csi, **base, **keys))


def lost(played: Play) -> int:
    assert all(set(this.status.tolist()) <= {Status.PARTICIPATED, Status.OUTAGE} for this in played.rounds)
    return sum(len(this.round.with_status(Status.OUTAGE)) for this in played.rounds)


def column(rounds: list[FinishedRound], name: str) -> np.ndarray:
    return np.concatenate([this.slots[name] for this in rounds])


@pytest.mark.parametrize("outage", [0.01, 0.1])
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"csi": {"estimator": "mmse"}},
        {"channel__fading": {"model": "rician", "k_db": 9.0}},
        pytest.param(
            {"channel__fading": {"model": "rician", "k_db": 9.0}, "channel__correlation": CLARKE},
            marks=pytest.mark.slow,
        ),
        {"channel__pathloss": {"model": "tr38901"}, "csi": {"estimator": "mmse"}},
    ],
    ids=["rayleigh", "mmse", "rician", "rician in time", "line of sight or not"],
)
@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
def test_the_stated_share_of_uploads_is_lost(keys: dict[str, Any], outage: float) -> None:
    played = uploads({"outage": outage}, 0.3, **keys)
    assert_probability(lost(played), ROUNDS * CLIENTS, outage)


def test_short_packets_keep_the_stated_share() -> None:
    """Of those who send: in a deep fade the normal approximation leaves no rate at all."""
    rounds = uploads({"outage": 0.1, "packets": {"blocklength": 200}}).rounds
    status = np.concatenate([this.status for this in rounds])
    sent = int(np.count_nonzero(status != Status.DEEP_FADE))
    assert sent > 0.9 * ROUNDS * CLIENTS
    assert_probability(int(np.count_nonzero(status == Status.OUTAGE)), sent, 0.1)


@pytest.mark.parametrize("error_std", [0.01, 0.1])
def test_without_a_margin_half_of_the_uploads_are_lost(error_std: float) -> None:
    assert abs(lost(uploads({"outage": None}, error_std)) / (ROUNDS * CLIENTS) - 0.5) < 0.04


@pytest.mark.parametrize(("snr_db", "share"), [(3.0103, 0.77), (20.0, 0.86), (33.0103, 0.90)])
def test_the_rate_is_that_of_the_quantile_and_nothing_else_of_the_channel(snr_db: float, share: float) -> None:
    """From the estimate in the trace alone, by another implementation of the noncentral chi-square law."""
    uplink = {"kind": "digital", "snr_db": snr_db, "access": "tdma", "rate": {"min_rate_bps": 1e-3}}
    base = {"rounds": 20, "clients__count": CLIENTS, "data__limit": CLIENTS, "evaluate__every": 100}
    played = play(small(uplink=uplink, channel__csi={"error_std": 0.1}, **base))
    estimate = column(played.rounds, "csi_re") + 1j * column(played.rounds, "csi_im")
    channel = column(played.rounds, "channel_re") + 1j * column(played.rounds, "channel_im")
    variance, expected = 0.01 / 1.01, estimate / 1.01
    counted_on = variance / 2 * stats.ncx2.ppf(0.01, 2, 2 * np.abs(expected) ** 2 / variance)
    mean_snr = 10 ** (snr_db / 10) / 2
    rate = 1e6 * np.log2(1 + mean_snr * counted_on)
    np.testing.assert_allclose(column(played.rounds, "tx_time"), 320 / rate, rtol=1e-6)
    carried = 1e6 * np.log2(1 + mean_snr * np.abs(channel) ** 2)
    assert rate.sum() / carried.sum() == pytest.approx(share, abs=0.02)


def test_a_known_channel_needs_no_margin() -> None:
    with_margin, without = (uploads({"outage": outage}, 0.0) for outage in (0.01, None))
    for name in ("tx_time", "channel_re", "csi_re"):
        np.testing.assert_array_equal(column(with_margin.rounds, name), column(without.rounds, name))
    assert lost(with_margin) == lost(without) == 0


def test_a_static_channel_is_known_whatever_the_estimate_says() -> None:
    played = uploads({}, 0.3, channel__fading={"model": "static"})
    assert lost(played) == 0
    np.testing.assert_allclose(column(played.rounds, "tx_time"), 320 / (1e6 * np.log2(1 + 50)), rtol=1e-9)


def test_an_outage_is_an_event_of_its_own_and_no_deep_fade() -> None:
    played = uploads({"outage": 0.3})
    for number, this in enumerate(played.rounds, start=1):
        ended = [node for _, node in played.times(EventKind.OUTAGE, number)]
        assert sorted(ended) == this.round.with_status(Status.OUTAGE).tolist()
        assert not played.times(EventKind.DEEP_FADE, number)
        assert np.all(this.slots["tx_time"][this.round.with_status(Status.OUTAGE)] > 0)
        assert this.round.releases[0].clients.tolist() == this.clients.tolist(), "what was sent is released"


def test_asynchronous_uploads_keep_the_share_too() -> None:
    """52 of the first 142 uploads of the shipped scenario were lost before, to deep fades as it was said."""
    played = play(wfl.load_scenario("async-stragglers", {"rounds": 90, "evaluate.every": 90}), dimension=2410)
    ends = np.concatenate([this.status for this in played.rounds])
    assert np.count_nonzero(ends == Status.PARTICIPATED) >= 90
    assert np.count_nonzero((ends == Status.OUTAGE) | (ends == Status.DEEP_FADE)) <= 4


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
def test_secure_aggregation_hears_with_a_small_error_whom_it_hears_without(protocol: str) -> None:
    heard = {}
    for error_std in (0.0, 0.01, 0.1):
        uplink = {"kind": "secure_aggregation", "snr_db": 20.0, "protocol": protocol}
        scenario = small(uplink=uplink, channel__csi={"error_std": error_std}, clients__count=15, rounds=2)
        _, rounds, _ = run(scenario)
        heard[error_std] = [this.values["participants"] for this in rounds]
    assert heard[0.0] == [15, 15]
    assert min(heard[0.01] + heard[0.1]) >= 14


@pytest.mark.parametrize("fading", [{"model": "nakagami", "m": 2.0}, {"model": "my_fading:TwoRay"}])
def test_a_law_without_a_quantile_is_refused_unless_nothing_is_uncertain(fading: dict[str, Any]) -> None:
    def scenario(outage: float | None, error_std: float, kind: str = "digital") -> Any:
        uplink = {"kind": kind, "rate": {"outage": outage}}
        return small(uplink=uplink, channel__fading=fading, channel__csi={"error_std": error_std})

    for kind in ("digital", "secure_aggregation"):
        with pytest.raises(
            ScenarioError, match=r"uplink\.rate\.outage: found 0.01 with .* channel\.csi\.error_std: 0\.1"
        ):
            scenario(0.01, 0.1, kind)
    scenario(None, 0.1)
    scenario(0.01, 0.0)
