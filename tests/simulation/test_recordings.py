"""Gains, positions and presence from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import run, small
from wirelessfl.assembly.recordings import load_gains, load_norms, load_positions, load_presence
from wirelessfl.errors import DataError
from wirelessfl.simulation import FinishedRound
from wirelessfl.streams import Streams

STREAM = Streams(1).nodes("fading", 2, np.array([1, 0]))


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_gains_from_csv(tmp_path: Path) -> None:
    rows = "client,round,im,re\n0,1,0,1\n1,1,1,2\n0,2,2,3\n1,2,3,4\n-2,1,0.5,0\n-2,2,0,1\n"
    clients, jammer = load_gains(written(tmp_path / "g.csv", rows), 2, 2)
    assert clients.draw(STREAM).tolist() == [4 + 3j, 3 + 2j]
    assert jammer is not None
    assert jammer.draw(Streams(1).nodes("fading", 1, np.array([0]))).tolist() == [0.5j]
    with pytest.raises(ValueError, match="no gain"):
        clients.draw(Streams(1).nodes("fading", 0, np.array([0])))


def test_gains_from_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file["gain_re"], file["gain_im"] = np.arange(6.0).reshape(3, 2), np.zeros((3, 2))
    clients, jammer = load_gains(str(tmp_path / "g.h5"), 3, 2)
    assert clients.draw(STREAM).tolist() == [3.0, 2.0] and jammer is None


def test_the_channels_of_a_trace_come_back(tmp_path: Path) -> None:
    """Small-scale gains of a run on any path loss, under another seed: |h|² and the jammer's are those recorded."""
    urban = {"channel__pathloss": {"model": "log_distance"}, "uplink__jammer": {"epsilon": 1.0}}
    recorded = wfl.simulate(small(**urban), tmp_path / "run", device="cpu", threads=1, pictures=False)
    _, again, _ = run(small(**urban, seed=99, channel__fading={"model": "recorded", "file": str(recorded.trace)}))
    _, first, _ = run(small(**urban))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_allclose(small_scale(one), small_scale(other), rtol=1e-12)


def small_scale(this: FinishedRound) -> np.ndarray:
    """h/√β of a round."""
    channel = this.slots["channel_re"] + 1j * this.slots["channel_im"]
    return np.asarray(channel / np.sqrt(this.slots["path_gain"]))


def test_a_recorded_run_needs_the_jammer_in_its_recording(tmp_path: Path) -> None:
    rows = "round,client,re,im\n" + "".join(f"{m},{i},1,0\n" for m in range(1, 4) for i in range(6))
    fading = {"model": "recorded", "file": written(tmp_path / "g.csv", rows)}
    run(small(channel__fading=fading))
    run(small(channel__fading=fading, uplink__jammer={"epsilon": 1.0, "role": "rotating"}))
    with pytest.raises(DataError, match="no gains of the jammer"):
        run(small(channel__fading=fading, uplink__jammer={"epsilon": 1.0}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round,client,re,im\n1,0,1,0\n", "holds 1 rounds of 1 clients; allowed here: at least 3 rounds of 2 clients"),
        ("round,client,re\n1,0,1\n", r":1: found no column im; allowed: a first line with round, client, re, im"),
        ("round,client,re,im\n1,0,x,0\n", "cannot be read as numbers"),
        ("round,client,re,im\n1,0,1\n", "cannot be read as numbers"),
        ("round,client,re,im\n", "cannot be read as numbers"),
        ("round,client,re,im\n0,0,1,0\n", r":2: found round 0; allowed: whole numbers from 1"),
        (
            "round,client,re,im\n1,-1,1,0\n",
            r":2: found client -1; allowed: whole numbers from 0 to 2147483647, and -2 for the jammer",
        ),
        ("round,client,re,im\n1,0.5,1,0\n", r":2: found client 0\.5; allowed: whole numbers"),
        (
            "round,client,re,im\n1,0,1,0\n\n1,0,2,0\n",
            r":4: found round 1, client 0 again, as in line 2; allowed: one line",
        ),
        ("round,client,re,im\n1,-2,1,0\n1,0,2,0\n1,-2,3,0\n", r":4: found round 1, client -2 again, as in line 2"),
        ("round,client,re,im\n1,0,nan,0\n", "not finite"),
    ],
)
def test_files_of_gains_that_will_not_do(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"channel\.fading\.file: .*{message}"):
        load_gains(written(tmp_path / "g.csv", text), 3, 2)


def test_other_files_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"channel\.fading\.file: found no file nowhere\.csv"):
        load_gains("nowhere.csv", 1, 1)
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file["gain_re"] = np.ones((3, 2))
    with pytest.raises(DataError, match="cannot be read as a trace or a file of gains"):
        load_gains(str(tmp_path / "g.h5"), 1, 1)
    with h5py.File(tmp_path / "flat.h5", "w") as file:
        file["gain_re"] = file["gain_im"] = np.ones(3)
    with pytest.raises(DataError, match="must be"):
        load_gains(str(tmp_path / "flat.h5"), 1, 1)


def test_positions(tmp_path: Path) -> None:
    file = written(tmp_path / "p.csv", "name,x,y\n1,10,-20\n2,30,40.5\n")
    assert load_positions(file, 2) == ((10.0, -20.0), (30.0, 40.5))
    with pytest.raises(DataError, match=r"channel\.placement\.file: .* holds 2 positions; allowed here: at least 3"):
        load_positions(file, 3)


def test_presence(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", "round,client,available\n1,0,1\n1,1,0\n2,0,0\n2,7,0\n")
    assert load_presence(file, 2, 3)[1:].tolist() == [[True, False, True], [False, True, True]]
    with pytest.raises(DataError, match=r"faults\.availability\.file: .* holds 2 rounds; allowed here: at least 3"):
        load_presence(file, 3, 3)


@pytest.mark.parametrize("row", ["1e300,0,0", "3,1e300,0", "3,-2,0", "3,-1,0", "3,0,7", "3,0.5,0", "0,0,0"])
def test_presence_of_nobody(tmp_path: Path, row: str) -> None:
    """Numbers beyond any round or client once wrapped round, and the jammer was the last client but one."""
    file = written(tmp_path / "a.csv", f"round,client,available\n1,0,1\n2,0,0\n{row}\n")
    with pytest.raises(DataError, match=r":4: found (round|client|available) .*; allowed: whole numbers from"):
        load_presence(file, 2, 3)


def test_presence_of_a_client_twice_in_a_round(tmp_path: Path) -> None:
    """The last of two lines once won without a word."""
    file = written(tmp_path / "a.csv", "round,client,available\n1,0,1\n2,0,0\n1,1,1\n2,0,1\n")
    with pytest.raises(DataError, match=r"a\.csv:5: found round 2, client 0 again, as in line 3; allowed: one line"):
        load_presence(file, 2, 3)


def test_presence_after_the_last_round_takes_no_memory(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", "round,client,available\n1,0,0\n2147483647,0,0\n")
    assert load_presence(file, 2, 10**5).shape == (3, 10**5)


@pytest.mark.parametrize("row", ["1e300,0,1,0", "1,1e300,1,0"])
def test_gains_of_nobody(tmp_path: Path, row: str) -> None:
    file = written(tmp_path / "g.csv", f"round,client,re,im\n1,0,1,0\n{row}\n")
    with pytest.raises(DataError, match=r":3: found (round|client) .*; allowed: whole numbers"):
        load_gains(file, 1, 1)


def test_presence_from_a_trace(tmp_path: Path) -> None:
    absent = small(faults__availability={"p": 0.5})
    recorded = wfl.simulate(absent, tmp_path / "run", device="cpu", threads=1, pictures=False)
    _, rounds, _ = run(absent)
    presence = load_presence(str(recorded.trace), 3, 6)
    assert [row.tolist() for row in presence[1:]] == [(this.status != 2).tolist() for this in rounds]
    assert not presence[1:].all()


SECRET = "geheim4711"
USERS = f"root:x:0:0:{SECRET}:/root:/bin/sh\n{SECRET},1,2,3\n"


@pytest.mark.parametrize("header", ["", "round,client,re,im,available,x,y,norm\n"])
def test_nothing_of_another_file_gets_into_a_message(tmp_path: Path, header: str) -> None:
    other = tmp_path / "users"
    other.write_text(header + USERS, encoding="utf-8")
    reads: tuple[Callable[[], object], ...] = (
        lambda: load_gains(str(other), 2, 2),
        lambda: load_presence(str(other), 2, 2),
        lambda: load_positions(str(other), 2),
        lambda: load_norms(str(other), 2),
    )
    for read in reads:
        with pytest.raises(DataError) as caught:
            read()
        assert "users" in str(caught.value)
        assert not {SECRET, "root", "bin"} & set(re.findall(r"\w+", str(caught.value).replace(str(other), "")))


def test_bytes_of_another_file_are_not_shown_either(tmp_path: Path) -> None:
    other = tmp_path / "key"
    other.write_bytes(bytes(range(255, 0, -1)))
    with pytest.raises(DataError, match="is no text") as caught:
        load_gains(str(other), 2, 2)
    assert "0xff" not in str(caught.value)


@pytest.mark.parametrize("norm", ["0", "1e-320", "1e39"])
def test_expected_norms_of_a_file_have_the_range_of_those_in_a_list(tmp_path: Path, norm: str) -> None:
    file = tmp_path / "norms.csv"
    file.write_text(f"round,norm\n1,0.5\n2,{norm}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds a norm of .*; allowed: from 1e-30 to 3\.4e\+38"):
        load_norms(str(file), 2)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2,0.25", r"norms\.csv:4: found round 2 again, as in line 3; allowed: one line"),
        ("1.5,0.25", r"norms\.csv:4: found round 1\.5; allowed: whole numbers from 1"),
        ("0,0.25", r"norms\.csv:4: found round 0; allowed: whole numbers from 1"),
    ],
)
def test_expected_norms_of_a_round_twice_or_of_none(tmp_path: Path, row: str, message: str) -> None:
    file = written(tmp_path / "norms.csv", f"round,norm\n1,0.5\n2,0.5\n{row}\n")
    with pytest.raises(DataError, match=message):
        load_norms(file, 2)
