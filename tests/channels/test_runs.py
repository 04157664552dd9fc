"""A channel file beside a run: run ids, verification, packing, resumption, other policies, and the shipped file."""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.channels.made import made
from wirelessfl.cli import main
from wirelessfl.errors import RunInterrupted
from wirelessfl.scenario.library import shelf_folder
from wirelessfl.simulation import FinishedRound
from wirelessfl.study import content_id

ROOT = Path(__file__).parents[2]
SCENARIO = """
name: walk
rounds: 3
data: {limit: 60, partition: {scheme: iid}}
model: {name: mlp, hidden: [8]}
clients: {count: 6}
training: {algorithm: {name: fedavg}, epochs: 1}
channel: {fading: {model: imported, file: h.npz}}
uplink: {tx_power_dbm: 10}
faults: {fade_threshold: 0.01}
timing: {cycles_per_sample: 3.0e+8}
"""


def invoke(*words: str) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(main, words)
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(name="here")
def folder_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk.yaml").write_text(SCENARIO, encoding="utf-8")
    wfl.write_channels(made(), "h.npz")
    return tmp_path


def simulated(**keys: Any) -> None:
    """The run of the scenario, in its folder."""
    wfl.simulate(Path("walk.yaml"), out="run", figures="none", **keys)


def other_file() -> None:
    """Other channels in place of those that ran."""
    wfl.write_channels(made(gain_db=-90), "h.npz")


def test_the_bytes_of_the_file_are_in_the_run_id(here: Path) -> None:
    def name() -> str:
        return content_id(wfl.load_scenario(Path("walk.yaml")))

    before = name()
    assert name() == before and re.fullmatch("[0-9a-f]{16}", before)
    other_file()
    assert name() != before
    (here / "h.npz").unlink()
    assert name() != before, "a file that is not there is told by the run"


@pytest.mark.slow
def test_verify_tells_other_channels(here: Path) -> None:
    simulated()
    assert invoke("replay", "run", "--verify").exit_code == 0
    other_file()
    result = invoke("replay", "run", "--verify")
    assert result.exit_code == 4
    assert "channel.fading.file: the data here are not those that the run was recorded with" in result.stderr


@pytest.mark.slow
def test_an_archive_has_the_file_or_names_it(here: Path) -> None:
    simulated()
    named = invoke("pack", "run", "--out", "named.zip")
    assert named.exit_code == 0 and "channel.fading.file" in named.stdout + named.stderr
    assert invoke("pack", "run", "--with-data", "--out", "whole.zip").exit_code == 0
    with zipfile.ZipFile("whole.zip") as archive:
        (held,) = (name for name in archive.namelist() if name.endswith("h.npz"))
        assert archive.read(held) == (here / "h.npz").read_bytes()
    (here / "h.npz").unlink()
    result = invoke("replay", "whole.zip", "--verify")
    assert result.exit_code == 0, result.stderr


def test_a_run_goes_on_to_the_same_bits(here: Path) -> None:
    def stop(this: FinishedRound) -> None:
        if this.index == 2:
            raise RunInterrupted

    with suppress(RunInterrupted):
        simulated(on_round=stop)
    simulated(resume=True)
    wfl.simulate(Path("walk.yaml"), out="whole", figures="none")
    one, other = wfl.open_trace("run/trace.h5"), wfl.open_trace("whole/trace.h5")
    assert one.sizes["round"] == 3
    for name in ("channel_re", "path_gain", "test_loss", "epsilon_accounted"):
        np.testing.assert_array_equal(one[name].values, other[name].values)


@pytest.mark.slow
def test_another_policy_runs_on_the_recorded_channels(here: Path) -> None:
    simulated()
    other = invoke("replay", "run", "--set", "uplink.power_control.server_gain=3", "--figures", "none")
    assert other.exit_code == 0, other.stderr
    assert "were not recorded" not in other.stderr


def test_the_shipped_file_is_made_as_the_documentation_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "import-channels.md").read_text(encoding="utf-8")
    code = re.search(r'```python title="street\.py"\n(.*?)```', page, re.DOTALL)
    assert code is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(code[1], "street.py", "exec"), {"__name__": "street"})
    found, shipped = (wfl.read_channels(path) for path in ("street.npz", shelf_folder("channels") / "street.npz"))
    np.testing.assert_allclose(found.gains, shipped.gains, rtol=1e-4, atol=1e-9)
    for name in ("time_s", "frequency_hz", "position_m", "receiver_m"):
        np.testing.assert_allclose(getattr(found, name), getattr(shipped, name))


def test_the_shipped_scenario_runs_out_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no such file is
    result = invoke("validate", "imported-street", "--set", "rounds=60")
    assert result.exit_code == 2 and "street.npz ends 45 s after the simulation begins" in result.stderr
