"""Recorded links: uploads by the lines of a log, what a log must hold, and runs over one."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import run, small
from wirelessfl.assembly.link_log import recorded_rates
from wirelessfl.channels import pdcp_statistics
from wirelessfl.cli import main
from wirelessfl.errors import DataError, InputError, RunInterrupted, ScenarioError
from wirelessfl.radio.recorded_links import client_log
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import RecordedRate
from wirelessfl.simulation import FinishedRound
from wirelessfl.study.content import content_id
from wirelessfl.trace import EventKind, Status

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_LOG = ROOT / "channels" / "campus-uplink.csv"
HEADER = "time_s,client,rate_bps,delay_s,loss\n"


def written(folder: Path, lines: list[tuple[float, ...]], name: str = "links.csv") -> str:
    path = folder / name
    path.write_text(HEADER + "".join(",".join(f"{one:g}" for one in line) + "\n" for line in lines))
    return str(path)


def steady(clients: int = 6, end: float = 1e4) -> list[tuple[float, ...]]:
    """Client c at (c + 1) · 100 kbit/s with a delay of (c + 1) · 10 ms."""
    return [(time, c, 1e5 * (c + 1), 0.01 * (c + 1), 0.0) for c in range(clients) for time in (0.0, end)]


def over(file: str, **keys: Any) -> Scenario:
    uplink = {
        "kind": "digital",
        "tx_power_dbm": 10.0,
        "rate": {"model": "recorded", "file": file},
        **keys.pop("up", {}),
    }
    return small(uplink=uplink, **keys)


LINES = np.array([[0.0, 10.0, 0.5, 0.0], [2.0, 0.0, 0.7, 0.0], [3.0, 20.0, 0.9, 0.5], [9.0, 1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("begin", "bits", "expected"),
    [
        (0.0, 15.0, (1.5, 1.5, 0.5)),  # within the first line
        (1.0, 10.0, (1.0, 1.0, 0.5)),  # up to its end
        (1.0, 30.0, (4.0, 3.0, 0.9)),  # 10 bits, a pause of 1 s, 2 s at 20 bit/s of which half is lost
        (2.5, 10.0, (1.5, 1.0, 0.9)),  # begins in the pause
        (3.0, 60.0, (6.0, 6.0, 0.9)),  # to the very end
        (3.0, 61.0, None),
        (9.5, 1.0, None),
    ],
)
def test_uploads_by_hand(begin: float, bits: float, expected: tuple[float, float, float] | None) -> None:
    found = client_log(LINES).upload(begin, bits)
    if expected is None or found is None:
        assert found is None and expected is None
        return
    parts, delay = found
    on_air = sum(seconds for what, seconds in parts if what == "data")
    assert (sum(seconds for _, seconds in parts), on_air, delay) == pytest.approx(expected)


@pytest.mark.parametrize("access", ["ofdma", "tdma"])
def test_a_run_sends_at_the_recorded_rates(tmp_path: Path, access: str) -> None:
    """Bits over rate on the air, p times that in joules, and the delay until it arrives."""
    simulation, rounds, events = run(over(written(tmp_path, steady()), up={"access": access}))
    bits = simulation.deployment.uplink.payload_bits  # type: ignore[attr-defined]
    rate = 1e5 * np.arange(1, 7)
    for this, batch in zip(rounds, events, strict=True):
        assert np.all(this.status == Status.PARTICIPATED)
        on_air, joules = np.asarray(this.slots["tx_time"]), np.asarray(this.slots["tx_energy_j"])
        np.testing.assert_allclose(on_air, bits / rate, rtol=1e-9)
        np.testing.assert_allclose(joules, 0.01 * on_air, rtol=1e-9)
        assert this.round.energy.joules == pytest.approx(joules.sum())
        at, node, kind = np.asarray(batch.time), np.asarray(batch.node), np.asarray(batch.kind)
        for client in range(6):
            (begin,) = at[(kind == EventKind.TRANSMIT) & (node == client)]
            (end,) = at[(kind == EventKind.ARRIVE) & (node == client)]
            assert end - begin == pytest.approx(bits / rate[client] + 0.01 * (client + 1))


@pytest.mark.parametrize(
    "keys",
    [
        {"aggregation": {"mode": "asynchronous", "buffer": 2}},
        {"up": {"kind": "secure_aggregation", "protocol": "secagg"}},
        {"timing__deadline_s": 0.15},
        {"up": {"grant_delay_s": 0.1}},
        {"faults": {"crash_rate_per_s": 1.0}},
    ],
    ids=["asynchronous", "secure", "deadline", "grant", "crashes"],
)
def test_it_goes_with(keys: dict[str, Any], tmp_path: Path) -> None:
    _, rounds, _ = run(over(written(tmp_path, steady()), **keys))
    statuses = {int(one) for this in rounds for one in this.status}
    assert Status.PARTICIPATED in statuses
    if "timing__deadline_s" in keys:
        assert Status.LATE in statuses
    for this in rounds:
        joules = np.asarray(this.slots["tx_energy_j"])
        assert this.round.energy.joules == pytest.approx(np.nansum(joules))


def sent_between(begin: float, end: float) -> float:
    """Seconds of ``gaps`` in which something is sent: in each second the first 0.3 s are silent."""
    edges = np.unique(
        [begin, end, *np.arange(np.floor(begin), end + 1, 1.0), *np.arange(np.floor(begin), end, 1.0) + 0.3]
    )
    parts = [(first, last) for first, last in itertools.pairwise(edges) if begin <= first and last <= end]
    return float(sum(last - first for first, last in parts if (first + last) / 2 % 1.0 > 0.3))


def gaps(clients: int = 6) -> list[tuple[float, ...]]:
    """Each second 0.3 s without coverage, and 0.4 s from the last symbol to the arrival."""
    lines = [
        (second + part, c, rate)
        for second in range(60)
        for part, rate in ((0.0, 0.0), (0.3, 3e4))
        for c in range(clients)
    ]
    return [(time, c, rate * (1 + c), 0.4, 0.0) for time, c, rate in lines]


@pytest.mark.parametrize("deadline", [0.5, 0.9, 1.1])
def test_an_upload_that_is_cut_off_has_sent_until_then(tmp_path: Path, deadline: float) -> None:
    """Neither in gaps of the log, nor while what was sent is under way."""
    file = written(tmp_path, gaps())
    simulation, rounds, events = run(over(file, timing__deadline_s=deadline, rounds=2))
    bits, late = simulation.deployment.uplink.payload_bits, 0  # type: ignore[attr-defined]
    for this, batch in zip(rounds, events, strict=True):
        at, node, kind = np.asarray(batch.time), np.asarray(batch.node), np.asarray(batch.kind)
        for client in np.flatnonzero(this.status == Status.LATE).tolist():
            begins = at[(kind == EventKind.TRANSMIT) & (node == client)]
            ends = at[(kind == EventKind.LATE) & (node == client)]
            if len(begins):
                whole = bits / (3e4 * (1 + client))
                expected = min(sent_between(begins[0], ends[0]), whole)
                assert np.nan_to_num(this.slots["tx_time"])[client] == pytest.approx(expected, abs=1e-9)
                assert np.nan_to_num(this.slots["tx_energy_j"])[client] == pytest.approx(0.01 * expected, abs=1e-11)
                late += 1
    assert late


def test_time_on_the_air_is_that_of_each_asynchronous_round(tmp_path: Path) -> None:
    keys = {"aggregation": {"mode": "asynchronous", "buffer": 2}, "rounds": 6}
    simulation, rounds, events = run(over(written(tmp_path, gaps()), **keys))
    bits = simulation.deployment.uplink.uploads.payload_bits  # type: ignore[attr-defined]
    begins: dict[int, list[float]] = {}
    last = 0.0
    for this, batch in zip(rounds, events, strict=True):
        now, spent = float(this.values["sim_time"]), np.zeros(6)
        at, node, kind = (np.asarray(one) for one in (batch.time, batch.node, batch.kind))
        for time, client in zip(at[kind == EventKind.TRANSMIT], node[kind == EventKind.TRANSMIT], strict=True):
            begins.setdefault(int(client), []).append(float(time))
        for client, starts in begins.items():
            for start in starts:
                until = [min(sent_between(start, max(start, end)), bits / (3e4 * (1 + client))) for end in (last, now)]
                spent[client] += until[1] - until[0]
        np.testing.assert_allclose(np.nan_to_num(this.slots["tx_time"]), spent, atol=1e-9)
        last = now
    assert sum(map(len, begins.values())) > 6


def test_keys_are_agreed_on_over_the_log(tmp_path: Path) -> None:
    """The only messages before round 1: 0.3 s without coverage, their bits over the rate, and the delay."""
    scenario = over(written(tmp_path, gaps()), up={"kind": "secure_aggregation", "protocol": "pairwise_prf"}, rounds=1)
    _, _, (batch, *_) = run(scenario)
    at, node, kind, size = (np.asarray(one) for one in (batch.time, batch.node, batch.kind, batch.bits))
    for client in range(6):
        mine = node == client
        (begin,), (bits,) = (one[mine & (kind == EventKind.ADVERTISE_KEYS)] for one in (at, size))
        end = at[mine & (kind == EventKind.ARRIVE)][0]
        assert end - begin == pytest.approx(0.3 + bits / (3e4 * (1 + client)) + 0.4)


def test_past_the_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found lines of client \d up to 0.2 s, and a message .* allowed: a log"):
        run(over(written(tmp_path, steady(end=0.2))))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (steady(5), "none of client 5"),
        ([*steady(5), (0.0, 5, 1e5, 0.0, 0.0)], "found 1 line"),
        ([*steady(5), (1.0, 5, 1e5, 0.0, 0.0), (9.0, 5, 1e5, 0.0, 0.0)], "found time_s from 1 on"),
        ([*steady(), (0.0, 5, 2e5, 0.0, 0.0)], "time_s 0 twice"),
        ([*steady(), (5.0, 5, -1.0, 0.0, 0.0)], "found rate_bps -1"),
        ([*steady(), (5.0, 5, 1.0, -2.0, 0.0)], "found delay_s -2"),
        ([*steady(), (5.0, 5, 1.0, 0.0, 1.5)], "found loss 1.5; allowed: 0 to 1"),
        ([*steady(), (5.0, 5, float("nan"), 0.0, 0.0)], "not finite"),
    ],
)
def test_bad_logs_are_refused(lines: list[tuple[float, ...]], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"uplink.rate.file.*{message}"):
        run(over(written(tmp_path, lines)))


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"up": {"rate": {"model": "recorded"}}}, "uplink.rate.file"),
        ({"up": {"harq": {}}}, "uplink.harq"),
        ({"faults__fade_threshold": 0.1}, "faults.fade_threshold"),
        ({"channel__csi": {"error_std": 0.1}}, "channel.csi.error_std"),
        ({"channel__correlation": {"model": "clarke", "doppler_hz": 5.0}}, "channel.correlation.model"),
    ],
)
def test_what_asks_for_a_channel_is_refused(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(ScenarioError, match=named):
        over("links.csv", **keys)


def verified(run: Path) -> Any:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(run), "--verify"])
    return ended.value.code


@pytest.mark.slow
def test_another_log_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log is one of the data files of a run, whose fingerprint is recorded."""
    wfl.simulate(over(written(tmp_path, steady())), tmp_path / "run", threads=1, pictures=False)
    assert verified(tmp_path / "run") == 0
    written(tmp_path, [(time, client, rate * 2, *rest) for time, client, rate, *rest in steady()])
    assert verified(tmp_path / "run") != 0
    assert "uplink.rate.file" in "".join(capsys.readouterr())


@pytest.mark.parametrize("uplink", ["recorded", "harq"])
def test_a_resumed_run_is_the_uninterrupted_one(uplink: str, tmp_path: Path) -> None:
    """Log and retransmissions follow simulated time and the round, not what the process has drawn before."""
    harq = {"kind": "digital", "rate": {"model": "fixed", "rate_bps": 3e5}, "harq": {"channel": "independent"}}
    scenario = over(written(tmp_path, steady())) if uplink == "recorded" else small(uplink=harq)
    runs = [tmp_path / "whole", tmp_path / "begun"]

    def stop_after_two(this: FinishedRound) -> None:
        if this.round.index == 2:
            raise KeyboardInterrupt

    wfl.simulate(scenario, runs[0], threads=1, pictures=False)
    with pytest.raises(RunInterrupted):
        wfl.simulate(scenario, runs[1], threads=1, on_round=stop_after_two, pictures=False)
    wfl.simulate(scenario, runs[1], threads=1, resume=True, pictures=False)
    one, other = (wfl.open_trace(run / "trace.h5") for run in runs)
    for name in ("tx_time", "status", "sim_time"):
        np.testing.assert_array_equal(one[name].values, other[name].values)


def test_a_resumed_run_notices_another_log(tmp_path: Path) -> None:
    scenario = over(written(tmp_path, steady()))

    def stop_after_two(this: FinishedRound) -> None:
        if this.round.index == 2:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted):
        wfl.simulate(scenario, tmp_path / "run", threads=1, on_round=stop_after_two, pictures=False)
    written(tmp_path, [(time, client, rate + 1, *rest) for time, client, rate, *rest in steady()])
    with pytest.raises(InputError, match=r"uplink\.rate\.file: the data here are not those"):
        wfl.simulate(scenario, tmp_path / "run", threads=1, resume=True, pictures=False)


def test_the_id_of_a_run_changes_with_the_bytes_of_its_log(tmp_path: Path) -> None:
    scenario = over(written(tmp_path, steady()))
    one, elsewhere = content_id(scenario), content_id(over(written(tmp_path, steady(), "other.csv")))
    assert one == content_id(scenario) != elsewhere  # the name counts, as any key
    written(tmp_path, steady(end=2e4))
    assert content_id(scenario) != one
    (tmp_path / "links.csv").unlink()
    assert content_id(scenario) not in (one, elsewhere)  # the run says that the file is not there


@pytest.mark.slow
def test_the_shipped_log_is_what_the_converter_makes(tmp_path: Path) -> None:
    """Of statistics drawn anew, number by number: other versions of NumPy may round the last digit otherwise."""
    subprocess.run([sys.executable, "docs/link_log.py", str(tmp_path / "log.csv")], cwd=ROOT, check=True)
    made, shipped = (np.loadtxt(path, delimiter=",", skiprows=1) for path in (tmp_path / "log.csv", SHIPPED_LOG))
    np.testing.assert_allclose(made, shipped, rtol=1e-6, atol=1e-9)


def test_a_shipped_log_is_found_by_its_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = RecordedRate(file="campus-uplink.csv")
    found = wfl.load_scenario("recorded-links").places.find("uplink.rate.file", str(log.file))
    assert found.resolve() == SHIPPED_LOG
    with pytest.raises(DataError, match=r"uplink\.rate\.file: found no file elsewhere/campus-uplink.csv"):
        run(over("elsewhere/campus-uplink.csv"))


PDCP_SENT = """time(s)\tcellId\trnti\tlcid\tpacketSize
0.01\t1\t7\t1\t40
0.02\t1\t7\t4\t1000
0.12\t1\t7\t4\t1000
0.13\t1\t7\t4\t2000
0.05\t1\t9\t4\t500
"""
PDCP_RECEIVED = """time(s)\tcellId\trnti\tlcid\tpacketSize\tdelay(s)
0.015\t1\t7\t1\t40\t0.005
0.03\t1\t7\t4\t1000\t0.01
0.15\t1\t7\t4\t1000\t0.03
0.06\t1\t9\t4\t500\t0.02
"""


def test_a_log_from_ns3(tmp_path: Path) -> None:
    """Two terminals at intervals of 100 ms; of the first one's 4000 bytes 2000 are lost."""
    sent, received, log = (tmp_path / name for name in ("NrUlPdcpTxStats.txt", "NrUlPdcpRxStats.txt", "links.csv"))
    sent.write_text(PDCP_SENT)
    received.write_text(PDCP_RECEIVED)
    pdcp_statistics.main([str(sent), str(received), "--interval", "0.1", "--out", str(log)])
    first, second = recorded_rates(str(log), 2).clients
    np.testing.assert_allclose(first.time_s, [0.0, 0.1, 0.2])
    np.testing.assert_allclose(first.rate_bps, [160e3, 160e3, 0.0])
    np.testing.assert_allclose(first.loss, 0.5)
    np.testing.assert_allclose(first.delay_s, [0.01, 0.03, 0.03])
    np.testing.assert_allclose(second.rate_bps, [40e3, 0.0, 0.0])
    np.testing.assert_allclose(second.loss, 0.0)
    found = first.upload(0.0, 8 * 2000)
    assert found is not None and found[1] == pytest.approx(0.03)
    assert sum(seconds for _, seconds in found[0]) == pytest.approx(0.2)


def test_other_tables_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.txt"
    table.write_text("time\tsize\n1\t2\n")
    with pytest.raises(SystemExit) as ended:
        pdcp_statistics.main([str(table), str(table), "--out", str(tmp_path / "links.csv")])
    assert ended.value.code == 2 and "found no column" in capsys.readouterr().err


def test_a_packet_at_the_end_of_an_interval_counts(tmp_path: Path) -> None:
    """1000 bytes at 0.25 s and 3000 at 0.5 s, in intervals of 0.5 s: two intervals."""
    header = "time(s)\tcellId\trnti\tlcid\tpacketSize\tdelay(s)\n"
    for name in ("sent", "received"):
        (tmp_path / name).write_text(header + "0.25\t1\t1\t4\t1000\t0.01\n0.5\t1\t1\t4\t3000\t0.01\n")
    lines = pdcp_statistics.link_log(tmp_path / "sent", tmp_path / "received", 0.5)
    assert [line[0] for line in lines] == [0.0, 0.5, 1.0]
    assert [line[2] * 0.5 / 8 for line in lines] == pytest.approx([1000, 3000, 0])


def test_a_log_with_decimal_commas_is_refused(tmp_path: Path) -> None:
    """Read by its columns, 0,5 s would be 0 s, and all else one column further to the right."""
    (path := tmp_path / "links.csv").write_text(HEADER + "0,0,1e5,0,01,0\n9,0,1e5,0,01,0\n")
    with pytest.raises(DataError, match=r"links\.csv:2: found 6 cells below 5 columns; allowed: one in each"):
        recorded_rates(str(path), 1)
    path.write_text("loss," + HEADER + "0,0,0,1e5,0,0\n0,9,0,1e5,0,0\n")
    with pytest.raises(DataError, match=r"links\.csv:1: found several columns loss; allowed: one"):
        recorded_rates(str(path), 1)
    path.write_text("\ufeff" + HEADER + "0,0,1e5,0,0,\n9,0,1e5,0,0\n", encoding="utf-8")
    assert recorded_rates(str(path), 1).clients[0].rate_bps.tolist() == [1e5, 1e5]


@pytest.mark.parametrize("client", ["0.5", "-1", "3e9"])
def test_lines_of_nobody_are_refused(tmp_path: Path, client: str) -> None:
    """They were left out without a word."""
    file = Path(written(tmp_path, steady(2)))
    file.write_text(f"{file.read_text()}1,{client},1e5,0,0\n")
    with pytest.raises(DataError, match=r"links\.csv:6: found client .*; allowed: whole numbers from 0 to 2147483647"):
        recorded_rates(str(file), 2)
