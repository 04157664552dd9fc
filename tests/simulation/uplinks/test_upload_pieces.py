"""Digital messages that outlast their channels: pieces at their own time, what is lost, and what is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special

from tests.simulation.scenarios import PLAN, small
from tests.simulation.uplinks.cells import Play, play
from tests.statistics import assert_mean, assert_probability
from wirelessfl.api import make_plan
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.radio import clarke_gains
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, Status

DOPPLER = 20.0
CLARKE = {"model": "clarke", "doppler_hz": DOPPLER}
MARKOV = {"model": "gauss_markov", "doppler_hz": DOPPLER}
PIECE = (
    optimize.brentq(
        lambda turns: integrate.quad(lambda u: 2 - 2 * special.j0(2 * np.pi * turns * u), 0, 1)[0] - 10**-2.5, 0.01, 0.1
    )
    / DOPPLER
)
"""Seconds after which the mean distortion since the beginning reaches −25 dB."""
BITS = 320
COUNT = 150
RATE = {"min_rate_bps": 1e-3}
ageing = pytest.mark.filterwarnings("ignore:at the median path gain:wirelessfl.errors.ModelWarning")


def uploads(rate: dict[str, Any] = RATE, band: float = 1e4, **keys: Any) -> Any:
    """Clients of 10 dB in bands of ``band``/150 by OFDMA, whose update is 320 bits long."""
    uplink = {"kind": "digital", "snr_db": keys.pop("snr_db", 0.0), "rate": rate, **keys.pop("uplink", {})}
    base: dict[str, Any] = {"clients__count": COUNT, "data__limit": COUNT, "rounds": 4, "evaluate__every": 100}
    base |= {"channel__correlation": CLARKE, "timing__bandwidth_hz": band * COUNT}
    return small(**{**base, "uplink": uplink, **keys})


def capacity(gains: np.ndarray, band: float = 1e4, snr_db: float = 0.0) -> np.ndarray:
    """By hand: B_i log2(1 + SNR K |h|²/2) in the K-th part B_i of the band."""
    return np.asarray(band * np.log2(1 + 10 ** (snr_db / 10) * COUNT / 2 * np.abs(gains) ** 2))


def path(node: int, times: np.ndarray, seed: int = 11) -> np.ndarray:
    stream = Streams(seed).nodes("fading", 0, np.array([node]))
    return np.asarray(clarke_gains(DOPPLER * times[None, :], stream)[0])


def begun(played: Play, number: int) -> dict[int, float]:
    return {node: time for time, node in played.times(EventKind.TRANSMIT, number)}


def lost(played: Play) -> int:
    return sum(len(this.round.with_status(Status.OUTAGE)) for this in played.rounds)


@pytest.mark.slow
@ageing
def test_a_rate_of_the_beginning_is_lost_with_the_first_piece_that_does_not_carry_it() -> None:
    """Client by client against Clarke's closed form at the pieces' times."""
    played, seen = play(uploads(band=2e3, channel__max_pieces=10**6)), set[int]()
    for number, this in enumerate(played.rounds, start=1):
        for node, time in begun(played, number).items():
            rate = capacity(path(node, np.array([time])), 2e3)[0]
            pieces = int(np.ceil(BITS / rate / PIECE))
            carried = capacity(path(node, time + np.arange(pieces) * BITS / rate / pieces), 2e3)
            fails = bool((carried < rate * (1 - 1e-12)).any())
            assert (this.status[node] == Status.OUTAGE) == fails
            assert this.slots["tx_time"][node] == pytest.approx(BITS / rate, rel=1e-9)
            assert this.slots["channel_re"][node] == pytest.approx(path(node, np.array([time]))[0].real, abs=1e-12)
            seen.add(pieces)
    assert len(seen) > 4 and 0.5 * 4 * COUNT < lost(played) < 4 * COUNT


def share_lost(duration: float, threshold: float) -> float:
    """P(some |h|² < g) over the pieces of a Rayleigh link, from 100,000 paths with the covariance J0(2π f_D τ)."""
    pieces = int(np.ceil(duration / PIECE))
    lags = np.arange(pieces) * duration / pieces
    covariance = special.j0(2 * np.pi * DOPPLER * (lags[:, None] - lags[None, :]))
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(pieces))
    rng = np.random.default_rng(5)
    normal = (rng.normal(size=(pieces, 100_000)) + 1j * rng.normal(size=(pieces, 100_000))) / np.sqrt(2)
    return float((np.abs(root @ normal) ** 2 < threshold).any(axis=0).mean())


@pytest.mark.parametrize("correlation", [CLARKE, MARKOV], ids=lambda value: value["model"])
def test_a_fixed_rate_is_lost_as_often_as_gains_with_that_correlation_say(correlation: dict[str, Any]) -> None:
    """Thirty pieces, 0.65 Doppler periods: 2.4 times the losses of a channel that stays as it is."""
    duration = 29.9 * PIECE
    rate = BITS / duration
    threshold = (2 ** (rate / 1e4) - 1) / (10**-0.5 * COUNT / 2)
    snr_db = -5.0 + 10 * np.log10(threshold / 0.1)  # so that one gain fails with probability 1 − e^(−0.1)
    keys: dict[str, Any] = {
        "channel__correlation": correlation,
        "snr_db": float(snr_db),
        "rounds": 12,
        "channel__max_pieces": 10**5,
    }
    played = play(uploads({"model": "fixed", "rate_bps": rate}, **keys))
    outage = np.array([this.status == Status.OUTAGE for this in played.rounds])
    # The rounds of one client are correlated, the clients are not.
    assert_mean(outage.mean(axis=0), share_lost(duration, 0.1), std=float(outage.mean(axis=0).std()))
    assert outage.mean() > 2 * -np.expm1(-0.1)


@pytest.mark.slow
@ageing
def test_a_rate_of_each_piece_carries_what_the_channel_carries() -> None:
    """The upload is over when ∫ B log2(1 + γ(t)) dt, piece by piece, has reached its length."""
    played = play(uploads(band=1e3, channel__csi={"refresh": "piece"}, channel__max_pieces=4000, rounds=1))
    assert lost(played) == 0
    for node, time in begun(played, 1).items():
        carried = np.cumsum(capacity(path(node, time + np.arange(4000) * PIECE), 1e3) * PIECE)
        last = int(np.searchsorted(carried, BITS))
        before = carried[last - 1] if last else 0.0
        expected = (last + (BITS - before) / (carried[last] - before)) * PIECE
        assert played.rounds[0].slots["tx_time"][node] == pytest.approx(expected, rel=2e-3)


def test_pauses_take_time_and_no_energy() -> None:
    """At one fixed rate above a threshold: time on the air is that of the bits, the clock also counts the fades."""
    rate = {"model": "fixed", "rate_bps": BITS / (40 * PIECE)}
    keys: dict[str, Any] = {
        "channel__csi": {"refresh": "piece"},
        "faults__fade_threshold": 0.3,
        "snr_db": 20.0,
        "rounds": 1,
    }
    played = play(uploads(rate, channel__max_pieces=10**5, **keys))
    (this,) = played.rounds
    times, ends = begun(played, 1), {node: time for time, node in played.times(EventKind.ARRIVE)}
    assert set(times) == set(ends) and len(times) > 50
    paused = []
    for node, time in times.items():
        assert this.slots["tx_time"][node] == pytest.approx(40 * PIECE, rel=1e-6)
        power = np.abs(path(node, time + np.arange(300) * PIECE)) ** 2
        sending = np.flatnonzero(power >= 0.3)[:40]
        assert ends[node] - time == pytest.approx((sending[-1] + 1) * PIECE, rel=1e-2)
        paused.append(ends[node] - time > 41 * PIECE)
    assert 0.1 < np.mean(paused) < 0.9


@pytest.mark.slow
@ageing
@pytest.mark.parametrize(
    "rate",
    [pytest.param({**RATE}, marks=pytest.mark.slow), {**RATE, "packets": {"blocklength": 300}}],
    ids=["shannon", "packets"],
)
def test_what_is_lost_in_a_piece_is_sent_again_where_somebody_asks_for_it(rate: dict[str, Any]) -> None:
    """A tenth of the pieces is lost to estimation errors, which costs a tenth of the time and no upload."""
    keys: dict[str, Any] = {"band": 4e3, "channel__max_pieces": 20_000, "rounds": 1, "snr_db": 5.0}
    slow = {"model": "clarke", "doppler_hz": DOPPLER}
    spent = {}
    for outage in (0.01, 0.2):
        csi = {"refresh": "piece", "error_std": 0.05}
        played = play(uploads({**rate, "outage": outage}, channel__csi=csi, channel__correlation=slow, **keys))
        assert lost(played) == 0
        spent[outage] = float(np.nanmean(played.rounds[0].slots["tx_time"]))
    assert spent[0.2] > 1.05 * spent[0.01]


@pytest.mark.slow
@ageing
def test_short_packets_repeat_at_the_rate_of_the_beginning() -> None:
    played = play(uploads({**RATE, "packets": {"blocklength": 300}}, channel__max_pieces=20_000, band=2e3))
    without = play(uploads(band=2e3))
    assert lost(played) < 0.1 * lost(without)


@ageing
def test_what_is_not_through_after_the_allowed_pieces_is_given_up() -> None:
    played = play(uploads(band=2e3, channel__csi={"refresh": "piece"}, channel__max_pieces=20, rounds=1))
    (this,) = played.rounds
    given_up = this.round.with_status(Status.OUTAGE)
    assert 0 < len(given_up) < COUNT
    np.testing.assert_allclose(this.slots["tx_time"][given_up], 20 * PIECE, rtol=1e-3)
    heard = this.round.with_status(Status.PARTICIPATED)
    assert this.slots["tx_time"][heard].max() <= 20 * PIECE * (1 + 1e-3)


@ageing
def test_the_stated_share_of_pieces_is_lost_and_ageing_adds_to_it() -> None:
    """With an error of the estimate alone 1 %; on a channel that changes nine of ten, which no margin covers."""
    keys: dict[str, Any] = {"channel__csi": {"error_std": 0.1}, "band": 1e3}
    still = play(uploads(channel__correlation={"model": "independent"}, **keys))
    assert_probability(lost(still), 4 * COUNT, 0.01)
    assert lost(play(uploads(**keys))) > 0.5 * 4 * COUNT


@ageing
def test_asynchronous_uploads_are_lost_by_the_piece_too() -> None:
    """Each client's first upload, which begins as that of a synchronous round does."""
    keys: dict[str, Any] = {"band": 2e3, "rounds": 1, "training__algorithm": {"name": "fedavg"}}
    together = play(uploads(**keys)).rounds[0]
    alone = play(uploads(aggregation={"mode": "asynchronous", "buffer": COUNT}, **keys)).rounds[0]
    assert len(together.round.with_status(Status.OUTAGE)) > 50
    np.testing.assert_array_equal(alone.status, together.status)
    np.testing.assert_allclose(alone.slots["tx_time"], together.slots["tx_time"], rtol=1e-9)


@pytest.mark.slow
@ageing
@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
def test_messages_of_secure_aggregation_are_lost_by_the_piece(protocol: str) -> None:
    """Masked inputs are the long messages: on a fast channel nearly none arrives, with fresh rates all do."""
    uplink = {"kind": "secure_aggregation", "protocol": protocol, "snr_db": 20.0, "rate": {"min_rate_bps": 1e3}}
    heard = {}
    for refresh in ("slot", "piece"):
        csi, correlation = {"refresh": refresh}, {"model": "clarke", "doppler_hz": 2000.0}
        keys: dict[str, Any] = {"clients__count": 10, "rounds": 2, "channel__max_pieces": 100_000}
        played = play(small(uplink=uplink, channel__csi=csi, channel__correlation=correlation, **keys), dimension=2000)
        heard[refresh] = [int((this.status == Status.OUTAGE).sum()) for this in played.rounds]
    assert min(heard["slot"]) >= 5 and max(heard["piece"]) == 0


def test_a_message_whose_length_is_known_is_refused_and_others_are_warned_of() -> None:
    rate = {"model": "fixed", "rate_bps": 1000.0}
    with pytest.raises(ScenarioError, match=r"channel\.max_pieces: found 256, but a message of .* 7\.\d+ s|max_pieces"):
        build_simulation(small(uplink={"kind": "digital", "rate": rate}, channel__correlation=CLARKE), PLAN)
    uplink = {"kind": "digital", "snr_db": 0.0, "rate": {"min_rate_bps": 1.0}}
    scenario = small(uplink=uplink, channel__correlation=CLARKE, timing__bandwidth_hz=1e5)
    with pytest.warns(ModelWarning, match=r"lasts .* s, .* coherence times of 0\.0212 s, in \d+ pieces"):
        plan = make_plan(scenario)
    expected = 32 * plan.dimension / (1e5 / 6 * np.log2(1 + 3))
    assert plan.upload_s == pytest.approx(expected, rel=1e-9)
    assert plan.pieces == int(np.ceil(expected / PIECE))


def test_independent_fading_is_one_piece_however_long_the_message() -> None:
    played = play(uploads(band=10.0, channel__correlation={"model": "independent"}))
    assert lost(played) == 0
