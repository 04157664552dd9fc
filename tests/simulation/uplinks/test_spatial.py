"""Digital uploads that share a band, against a plain computation from the gains in the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.radio import Moment
from wirelessfl.radio.mcs import EFFICIENCIES
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import DigitalUplink
from wirelessfl.trace import Status

BAND = 1e6


def sdma(combiner: str = "zf", antennas: int = 4, clients: int = 6, **changes: Any) -> Any:
    """A scenario of clients that share a band at p/(N0 B) = 10."""
    receiver = {"combiner": combiner, "antennas": antennas, **changes.pop("receiver", {})}
    link = {"kind": "digital", "access": "tdma", "snr_db": 10 * np.log10(20.0), "receiver": receiver}
    return small(uplink={**link, **changes.pop("uplink", {})}, clients__count=clients, **changes)


def gains(this: FinishedRound, part: str = "channel") -> NDArray[np.complex128]:
    """(n, [F,] A) of a finished round."""
    slots = this.slots
    return np.asarray(slots[f"{part}_re"] + 1j * slots[f"{part}_im"])


def post_sinr(h: NDArray[np.complex128], combiner: str, snr: float = 10.0) -> NDArray[np.float64]:
    """By the inverses of the textbook, from (K, A)."""
    gram = h.conj() @ h.T
    if combiner == "zf":
        return np.asarray(snr / np.diag(np.linalg.inv(gram)).real)
    return np.asarray(1 / np.diag(np.linalg.inv(np.eye(len(h)) + snr * gram)).real - 1)


def in_groups(this: FinishedRound, streams: int) -> list[NDArray[np.int64]]:
    """Positions in the order in which training ended, cut into full groups."""
    order = np.argsort(this.slots["compute_time"], kind="stable")
    return [np.sort(order[at : at + streams]) for at in range(0, len(order), streams)]


def bits_of(scenario: Any) -> int:
    uplink = build_simulation(scenario, PLAN).deployment.uplink
    assert isinstance(uplink, DigitalUplink)
    return uplink.payload_bits


@pytest.mark.parametrize("access", ["tdma", "ofdma"])
@pytest.mark.parametrize(("combiner", "streams"), [("zf", 4), ("zf", 2), ("mmse", 3), ("mmse", 5)])
def test_rates_airtimes_and_energy(combiner: str, streams: int, access: str) -> None:
    """One group after the other, or beside each other in parts of the band; a group lasts as long as its slowest."""
    scenario = sdma(combiner, receiver={"streams": streams}, uplink={"access": access})
    _, rounds, _ = run(scenario)
    bits, clients = bits_of(scenario), 6
    for this in rounds:
        h, groups, tx_time = gains(this), in_groups(this, streams), this.slots["tx_time"]
        share = 1.0 if access == "tdma" else 1 / len(groups)
        wanted = np.empty(clients)
        for group in groups:
            wanted[group] = post_sinr(h[group], combiner, 10.0 / share)
        np.testing.assert_allclose(this.slots["sinr"], wanted, rtol=1e-7)
        seconds = bits / (share * BAND * np.log2(1 + wanted))
        np.testing.assert_allclose(tx_time, seconds, rtol=1e-6)
        np.testing.assert_allclose(this.slots["tx_energy"], 20.0 * BAND * seconds, rtol=1e-6)  # 2p/(N0 B) · B T
        trained, free = this.slots["compute_time"], 0.0
        for group in groups:
            begins = max(trained[group].max(), free if access == "tdma" else 0.0)
            free = begins + seconds[group].max()
        ends = free if access == "tdma" else max(trained[g].max() + seconds[g].max() for g in groups)
        lasted = np.diff([0.0, *[one.values["sim_time"] for one in rounds]])[this.index - 1]
        np.testing.assert_allclose(lasted, bits / scenario.timing.downlink_bps + ends, rtol=1e-6)
        assert this.values["participants"] == clients


def test_one_antenna_and_one_stream_is_plain_tdma() -> None:
    plain = run(small(uplink={"kind": "digital", "access": "tdma", "snr_db": 13.0}))[1]
    for combiner in ("zf", "mmse"):
        alone = run(sdma(combiner, antennas=1, uplink={"snr_db": 13.0}))[1]
        for one, other in zip(plain, alone, strict=True):
            assert one.values["test_loss"] == other.values["test_loss"]
            np.testing.assert_allclose(one.slots["tx_time"], other.slots["tx_time"], rtol=1e-9)
            np.testing.assert_allclose(one.values["sim_time"], other.values["sim_time"], rtol=1e-9)


def test_a_client_too_weak_makes_way_for_the_others() -> None:
    """The weakest is left out and the combiner made anew, by a plain loop over the textbook's inverses."""
    least = 3.4e6
    silent = 0
    for this in run(sdma("zf", rounds=12, uplink={"rate": {"model": "adaptive", "min_rate_bps": least}}))[1]:
        h = gains(this)
        for group in in_groups(this, 4):
            rows = list(group)
            while rows:
                rate = BAND * np.log2(1 + post_sinr(h[rows], "zf"))
                if rate.min() >= least:
                    break
                rows.pop(int(rate.argmin()))
            status = this.status[group]
            np.testing.assert_array_equal(group[status == Status.PARTICIPATED], rows)
            assert np.all(status[status != Status.PARTICIPATED] == Status.DEEP_FADE)
            if rows:
                np.testing.assert_allclose(this.slots["sinr"][rows], post_sinr(h[rows], "zf"), rtol=1e-7)
        out = this.status == Status.DEEP_FADE
        assert np.isnan(this.slots["sinr"][out]).all()
        silent += int(out.sum())
    assert 5 < silent < 60


def test_a_fixed_rate_is_lost_where_the_sinr_does_not_carry_it() -> None:
    _, rounds, _ = run(sdma("mmse", rounds=8, uplink={"rate": {"model": "fixed", "rate_bps": 3.5e6}}))
    lost = 0
    for this in rounds:
        carries = BAND * np.log2(1 + this.slots["sinr"]) >= 3.5e6
        np.testing.assert_array_equal(this.status == Status.PARTICIPATED, carries)
        assert np.all(this.status[~carries] == Status.OUTAGE)
        lost += int((~carries).sum())
    assert 3 < lost < 45


def test_schemes_of_nr() -> None:
    _, rounds, _ = run(sdma("zf", uplink={"rate": {"model": "mcs", "gap_db": 2.0}}))
    for this in rounds:
        sends = this.status == Status.PARTICIPATED
        carried = np.log2(1 + this.slots["sinr"][sends] / 10**0.2)
        best = np.array([EFFICIENCIES[one >= EFFICIENCIES].max() for one in carried])
        np.testing.assert_allclose(this.slots["tx_time"][sends] * BAND * best, bits_of(sdma()), rtol=1e-6)
        assert sends.any()


@pytest.mark.parametrize("power", ["equal", "water_filling"])
def test_groups_of_subcarriers_have_an_sinr_each(power: str) -> None:
    tdl = {"model": "tdl", "groups": 4, "delay_spread_s": 3e-7}
    _, rounds, _ = run(sdma("zf", channel__fading=tdl, uplink={"rate": {"model": "adaptive", "power": power}}))
    for this in rounds:
        h = gains(this)
        assert h.shape == (6, 4, 4)
        for group in in_groups(this, 4):
            each = np.stack([post_sinr(h[group, f], "zf") for f in range(4)], axis=1)
            rate = np.log2(1 + each).mean(axis=1)
            found = bits_of(sdma()) / (this.slots["tx_time"][group] * BAND)
            np.testing.assert_allclose(np.log2(1 + this.slots["sinr"][group]), found, rtol=1e-6)
            if power == "equal":
                np.testing.assert_allclose(found, rate, rtol=1e-6)
            else:
                assert np.all(found >= rate * (1 - 1e-9)) and np.any(found > rate * (1 + 1e-6))


@pytest.mark.parametrize("combiner", ["zf", "mmse"])
def test_wrong_estimates_leave_interference(combiner: str) -> None:
    """The combiner is made of ĥ, outage is of h: by explicit combiners and sums over the other streams."""
    rate = {"model": "adaptive", "outage": None}
    _, rounds, _ = run(sdma(combiner, rounds=6, channel__csi={"error_std": 0.1}, uplink={"rate": rate}))
    outcomes = []
    for this in rounds:
        h, known = gains(this), gains(this, "csi")
        assert not np.allclose(h, known)
        for group in in_groups(this, 4):
            estimate = known[group].T
            regular = np.linalg.pinv(estimate).conj().T
            if combiner == "mmse":
                regular = np.linalg.inv(10.0 * estimate @ estimate.conj().T + np.eye(4)) @ estimate
            for k, position in enumerate(group):
                power = 10.0 * np.abs(regular[:, k].conj() @ h[group].T) ** 2
                true = power[k] / (power.sum() - power[k] + np.linalg.norm(regular[:, k]) ** 2)
                believed = post_sinr(known[group], combiner)[k]
                np.testing.assert_allclose(this.slots["sinr"][position], true, rtol=1e-6)
                arrives = this.status[position] == Status.PARTICIPATED
                assert arrives == (true >= believed)
                outcomes.append(arrives)
    assert 0 < sum(outcomes) < len(outcomes)


@pytest.mark.parametrize("wait", [0.0, 0.05, None])
def test_how_long_a_group_waits(wait: float | None) -> None:
    """No group begins before its first client has waited, unless it is full; none later than it must."""
    scenario = sdma("zf", 4, 8, receiver={"group_wait_s": wait}, rounds=2, timing__cpu_hz=[2e8, 2e9])
    for this, batch in zip(*run(scenario)[1:], strict=True):
        begins: dict[float, int] = {}
        for time, kind in zip(np.asarray(batch.time).tolist(), np.asarray(batch.kind).tolist(), strict=True):
            if kind == wfl.trace.EventKind.TRANSMIT:
                begins[time] = begins.get(time, 0) + 1
        sizes = list(begins.values())
        assert sum(sizes) == 8 and max(sizes) <= 4
        if wait is None:
            assert sizes == [4, 4]
        if wait == 0.0:
            first = this.slots["compute_time"].min()
            assert sizes[0] == 1 and len(sizes) > 2
            assert min(begins) <= first + 0.2


@pytest.mark.parametrize(
    "changes",
    [
        {"timing__deadline_s": 0.06, "timing__straggler_scale": 0.05},
        {"timing__wait_for": {"fraction": 0.5}, "receiver": {"group_wait_s": 0.01}},
        {"faults__availability": {"model": "bernoulli", "p": 0.6}, "faults__crash_rate_per_s": 5.0},
        {"faults__fade_threshold": 0.5, "uplink": {"grant_delay_s": 0.01, "codec": {"name": "qsgd"}}},
        {
            "clients__selection": {"scheme": "uniform", "count": 3},
            "receiver": {"correlation": {"model": "exponential"}},
        },
        {"channel__fading": {"model": "rician", "k_db": 6}, "receiver": {"correlation": {"model": "one_ring"}}},
        {"channel__fading": {"model": "static"}},
        {"clients__selection": {"scheme": "poisson", "rate": 0.4}, "uplink": {"snr_db": -30.0}},
    ],
    ids=str,
)
def test_together_with_other_parts_and_resumed(changes: dict[str, Any], tmp_path: Path) -> None:
    """A run that goes on from a checkpoint ends with the same bits."""
    whole, _ = goes_on_to_the_same_bits(sdma("mmse", rounds=4, **changes), tmp_path)
    assert sum(this.values["participants"] for this in whole.rounds) > 0 or "uplink" in changes


def test_the_trace_and_replay(tmp_path: Path) -> None:
    wfl.simulate(sdma("zf"), tmp_path / "out", pictures=False, device="cpu")
    assert verify(open_recording(tmp_path / "out" / "trace.h5")).difference is None
    data = wfl.open_trace(tmp_path / "out" / "trace.h5")
    assert data["channel_re"].dims == ("round", "slot", "antenna") and data["channel_re"].shape == (3, 6, 4)
    assert np.all(data["sinr"].values > 0)


def test_the_order_of_clients_does_not_matter() -> None:
    uplink = build_simulation(sdma("mmse"), PLAN).deployment.uplink
    assert isinstance(uplink, DigitalUplink) and uplink.sharing is not None
    clients, moment = np.array([0, 2, 3, 5]), Moment(1, 0.0)
    first = uplink.sharing.draw(clients, moment, 1.0)
    second = uplink.sharing.draw(clients[::-1], moment, 1.0)
    np.testing.assert_allclose(first.sinr, second.sinr[::-1], rtol=1e-10)
