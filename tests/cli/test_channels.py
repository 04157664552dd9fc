"""``wirelessfl channels``: import and inspect, their messages and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.channels.made import made
from wirelessfl.cli import main

ALL = ("--ofdm-subcarriers", "1")


def invoke(*words: str) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(main, ["channels", *words])
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(name="here", autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("out", ["h.h5", "h.npz"])
def test_import_writes_a_channel_file(out: str) -> None:
    channel = made(antennas=2, subcarriers=4).gains[0][:, None]
    np.savez("in.npz", channel=channel)
    result = invoke(
        "import",
        "in.npz",
        "--from",
        "deepmimo",
        "--out",
        out,
        "--ofdm-subcarriers",
        "4",
        "--clients",
        "5,0-2",
        "--bandwidth-hz",
        "1e6",
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{out}: 1 snapshot, 4 clients, 2 antennas, 4 subcarriers\n"
    np.testing.assert_allclose(wfl.read_channels(out).gains[0], 2 * channel[[5, 0, 1, 2], 0], rtol=1e-6)


def test_import_warns_of_gains_that_are_no_linear_ones() -> None:
    np.savez("in.npz", channel=made(gain_db=3).gains[0][:, None])
    result = invoke("import", "in.npz", "--from", "deepmimo", "--out", "h.h5", "--ofdm-subcarriers", "1")
    assert result.exit_code == 0 and "above 0 dB" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("in.npz", "--from", "deepmimo", "--out", "h.mat", *ALL), "h.mat: found '.mat'; allowed: .h5, .hdf5 or .npz"),
        (("in.npz", "--from", "deepmimo", "--out", "in.npz"), "in.npz"),
        (("no.npz", "--from", "sionna", "--out", "h.h5"), "no.npz: found no file"),
        (("in.npz", "--from", "sionna", "--out", "h.h5"), "in.npz: found no a (found: channel)"),
        (("in.npz", "--from", "matlab", "--out", "h.h5"), "'matlab' is not one of"),
        (("in.npz", "--from", "deepmimo"), "Missing option '--out'"),
        (("in.npz", "--from", "deepmimo", "--out", "no/h.h5", *ALL), "no/h.h5"),
        (
            ("in.npz", "--from", "deepmimo", "--out", "h.h5", "--clients", "0,x"),
            "found 'x'; allowed: numbers and ranges",
        ),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5", "--clients", "3-1"), "found '3-1'; allowed: a range"),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5", "--clients", "1,1"), "allowed: every client once"),
        (
            ("in.npz", "--from", "deepmimo", "--out", "h.h5", "--clients", "9", *ALL),
            "clients: found 9; allowed: 0 to 5",
        ),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5", "--bandwidth-hz", "nan"), "found nan; allowed: above 0"),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5", "--name", "gains"), "found 'gains'; allowed: OURS=THEIRS"),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5"), "found no --ofdm-subcarriers"),
        (("in.npz", "--from", "deepmimo", "--out", "h.h5", "--clients-are", "rx"), "--clients-are: found with --from"),
    ],
)
def test_wrong_input_is_exit_2(words: tuple[str, ...], message: str) -> None:
    np.savez("in.npz", channel=made().gains[0][:, None])
    result = invoke("import", *words)
    assert result.exit_code == 2 and message in result.stderr, result.stderr
    assert not Path("h.h5").exists()


def test_inspect_prints_and_draws(here: Path) -> None:
    places = np.random.default_rng(1).normal(size=(40, 6, 3))
    wfl.write_channels(made(subcarriers=8, position_m=places, receiver_m=np.zeros(3)), "h.h5")
    result = invoke("inspect", "h.h5", "--json")
    assert result.exit_code == 0 and (here / "h-channels.png").stat().st_size > 10_000
    found = json.loads(result.stdout)
    assert found["clients"] == 6 and found["subcarriers"] == 8 and found["interval_s"] == 5.0
    assert found["mean_gain_db"] == pytest.approx(-100, abs=0.5)
    text = invoke("inspect", "h.h5", "--figures", "none")
    assert "mean gain" in text.stdout and "picture" not in text.stderr


@pytest.mark.parametrize("form", ["pdf", "svg"])
@pytest.mark.parametrize("snapshots", [1, 3])
def test_a_channel_at_rest_is_drawn(here: Path, form: str, snapshots: int) -> None:
    wfl.write_channels(made(snapshots=snapshots), "h.npz")
    assert invoke("inspect", "h.npz", "--figures", form, "--width", "column").exit_code == 0
    assert (here / f"h-channels.{form}").stat().st_size > 5_000


def test_inspect_refuses_what_is_no_channel_file() -> None:
    Path("h.h5").write_text("nothing", encoding="utf-8")
    result = invoke("inspect", "h.h5")
    assert result.exit_code == 2 and "h.h5: found another format; allowed: HDF5 or NPZ" in result.stderr
