"""The margin behind a linear receiver: against loops, the closed form of one stream, and outages that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.simulation.scenarios import PLAN
from tests.simulation.uplinks.test_spatial import sdma
from tests.statistics import assert_probability, shifted, standard_errors
from wirelessfl.assembly import build_simulation
from wirelessfl.radio import LinearMmse, Moment, SpatialMultiplexing, ZeroForcing
from wirelessfl.radio.reception import sinr_margin
from wirelessfl.radio.reception.linear import StreamCombiner
from wirelessfl.radio.reception.sinr_margin import SinrMargin, margin_rank
from wirelessfl.simulation.uplinks import DigitalUplink


def normals(generator: np.random.Generator, *shape: int) -> np.ndarray[Any, np.dtype[np.complex128]]:
    return np.asarray((generator.standard_normal(shape) + 1j * generator.standard_normal(shape)) / np.sqrt(2))


@pytest.mark.parametrize("outage", [1e-4, 3e-4, 0.01, 0.0123, 0.3, 0.5, 0.999])
def test_the_rank_gives_the_probability(outage: float) -> None:
    count, rank = margin_rank(outage)
    assert 1 <= rank <= count <= 9999
    assert rank / (count + 1) == pytest.approx(outage, rel=1e-3)


@pytest.mark.parametrize("outage", [0.0, 1.0, -0.1, np.nan])
def test_a_probability_out_of_range_is_refused(outage: float) -> None:
    with pytest.raises(ValueError, match="outage must lie between 0 and 1"):
        margin_rank(outage)


def given(drawn: np.ndarray[Any, np.dtype[np.complex128]]) -> Any:
    """Draws (K, numbers) as a margin asks for them."""

    def draw(rows: np.ndarray[Any, Any], numbers: int) -> Any:
        return drawn.reshape(len(drawn), -1)[rows][:, :numbers]

    return draw


@pytest.mark.parametrize("block", [1 << 20, 50])
@pytest.mark.parametrize("combiner", [ZeroForcing(), LinearMmse()])
def test_against_loops(combiner: StreamCombiner, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinr_margin, "_BLOCK", block)
    generator = np.random.default_rng(shifted(3))
    registered, antennas, snr, rank, sending = 5, 4, 7.0, 2, np.array([4, 0, 2])
    mean, variance = normals(generator, registered, antennas), generator.uniform(0.02, 0.3, registered)
    drawn = normals(generator, registered, 20, 3)
    weights = combiner.weights(normals(generator, antennas, 3), snr)
    found = SinrMargin(mean, variance, given(drawn), 20, rank).outage_sinr(sending, weights, snr)
    for k, client in enumerate(sending.tolist()):
        w, each = weights[:, k], []
        for draw in range(20):
            power = [
                abs(np.vdot(w, mean[j]) + np.sqrt(variance[j]) * np.linalg.norm(w) * drawn[client, draw, place]) ** 2
                for place, j in enumerate(sending.tolist())
            ]
            each.append(snr * power[k] / (snr * (sum(power) - power[k]) + np.vdot(w, w).real))
        assert found[k] == pytest.approx(sorted(each)[rank - 1], rel=1e-12)


def test_of_one_stream_it_is_the_closed_form() -> None:
    """2|wᴴh|²/(v‖w‖²) is noncentral chi-square with 2 degrees of freedom."""
    generator = np.random.default_rng(shifted(5))
    mean, v, snr, count = normals(generator, 1, 4), 0.2, 3.0, 99_999
    weights = mean.T.copy()
    margin = SinrMargin(mean, np.array([v]), given(normals(generator, 1, count)), count, 1000)
    (found,) = margin.outage_sinr(np.array([0]), weights, snr)
    size = float(np.linalg.norm(weights) ** 2)
    at = 2 * found * size / snr / (v * size)
    below = stats.ncx2.cdf(at, 2, 2 * abs(np.vdot(weights, mean)) ** 2 / (v * size))
    assert abs(below - 0.01) < standard_errors() * np.sqrt(0.01 * 0.99 / count)


def lost_and_sent(rounds: int, **keys: Any) -> tuple[int, int]:
    """Uploads that are lost, and all that are sent, of groups of three in so many rounds."""
    uplink = build_simulation(sdma(clients=3, **keys), PLAN).deployment.uplink
    assert isinstance(uplink, DigitalUplink)
    sharing = uplink.sharing
    assert isinstance(sharing, SpatialMultiplexing)
    lost = sent = 0
    for index in range(1, rounds + 1):
        for link in sharing.draw(np.arange(3), Moment(index, 0.0), 1.0).links:
            lost += link.sends and not link.delivers
            sent += link.sends
    return lost, sent


SMALL_RATE = {"min_rate_bps": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("combiner", ["zf", "mmse"])
@pytest.mark.parametrize(
    "keys",
    [
        {"channel__csi": {"error_std": 0.1}},
        {"channel__csi": {"error_std": 0.5, "estimator": "mmse"}},
        {"channel__csi": {"pilot_symbols": 3}},
        {"channel__csi": {"error_std": 0.2}, "channel__fading": {"model": "rician", "k_db": 6.0}},
    ],
)
def test_so_many_uploads_are_lost(combiner: str, keys: dict[str, Any]) -> None:
    uplink = {"rate": {**SMALL_RATE, "outage": 0.05}}
    lost, sent = lost_and_sent(1500, combiner=combiner, uplink=uplink, **keys)
    assert_probability(lost, sent, 0.05)


def test_a_margin_of_one_in_ten_and_none() -> None:
    csi = {"error_std": 0.2}
    lost, sent = lost_and_sent(300, uplink={"rate": {**SMALL_RATE, "outage": 0.1}}, channel__csi=csi)
    assert sent == 900
    assert_probability(lost, sent, 0.1)
    without, sent = lost_and_sent(100, uplink={"rate": {**SMALL_RATE, "outage": None}}, channel__csi=csi)
    assert without > 0.7 * sent


def test_static_channels_are_known_exactly() -> None:
    """One stream: nothing is scattered, whatever the estimates say, and no upload is lost to its margin."""
    keys: dict[str, Any] = {"channel__fading": {"model": "static"}, "channel__csi": {"error_std": 0.3}}
    assert lost_and_sent(20, receiver={"streams": 1}, uplink={"rate": SMALL_RATE}, **keys)[0] == 0
