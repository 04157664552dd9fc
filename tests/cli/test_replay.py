"""``wirelessfl replay``: what it prints and its exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.replay.paired import PairedRow
from wirelessfl.cli import main
from wirelessfl.cli.replay_tables import print_paired


def replay(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = small(uplink__jammer={"epsilon": 1.0})
    return wfl.simulate(scenario, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False).trace


def test_the_table_again(trace: Path) -> None:
    result = replay(trace)
    assert result.exit_code == 0, result.stderr
    for words in ("test accuracy", "ε published", "ε accounted", "small, seed 11"):
        assert words in result.stdout


def test_the_folder_of_a_run_stands_for_its_trace(trace: Path) -> None:
    assert replay(trace.parent, "--json").stdout == replay(trace, "--json").stdout
    empty = trace.parent.parent
    assert "a folder, not a trace" in replay(empty).stderr and replay(empty).exit_code == 2


def test_a_look_at_a_recording_loads_no_torch(trace: Path) -> None:
    code = (
        "import sys\nfrom wirelessfl.cli import main\n"
        f"try: main(['replay', {str(trace)!r}, '--delta', '1e-6', '--quiet'])\nexcept SystemExit: pass\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_json_is_the_summary(trace: Path) -> None:
    on_disk = json.loads((trace.parent / "summary.json").read_text(encoding="utf-8"))
    assert json.loads(replay(trace, "--json").stdout) == on_disk


def test_verified(trace: Path) -> None:
    result = replay(trace, "--verify")
    assert result.exit_code == 0, result.stderr
    assert "bit for bit" in result.stdout
    assert json.loads(replay(trace, "--verify", "--json", "--to", "2").stdout)["verified_numbers"] > 100


def test_a_changed_number_is_exit_4(trace: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(trace, tmp_path / "copy.h5"))
    with h5py.File(copy, "r+") as file:
        file["test_accuracy"][1] = 0.5
    result = replay(copy, "--verify")
    assert result.exit_code == 4
    assert "test_accuracy in round 2: found 0.5" in result.stderr


def test_a_plan_of_another_machine_is_exit_3(trace: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(trace, tmp_path / "copy.h5"))
    with h5py.File(copy, "r+") as file:
        file.attrs.modify("plan", '{"device": "cpu", "lanes": 2}')
    assert replay(copy, "--verify").exit_code == 3


def test_ledgers(trace: Path) -> None:
    result = replay(trace, "--delta", "1e-4", "--delta", "1e-6", "--accountant", "zcdp")
    assert result.exit_code == 0, result.stderr
    assert "0.0001" in result.stdout and "1e-06" in result.stdout and "zcdp" in result.stdout
    rows = json.loads(replay(trace, "--delta", "1e-4", "--json").stdout)["ledgers"]
    assert [row["delta"] for row in rows] == [1e-4]


def test_a_counterfactual(trace: Path, tmp_path: Path) -> None:
    result = replay(trace, "--set", "uplink.jammer=null", "--out", tmp_path / "cf", "--from", "2")
    assert result.exit_code == 0, result.stderr
    assert "changed − recorded" in result.stdout and "rounds 2 to 3" in result.stdout
    assert (tmp_path / "cf" / "paired.png").exists() and (tmp_path / "cf" / "trace.h5").exists()
    paired = json.loads(replay(trace, "--set", "uplink.jammer=null", "--out", tmp_path / "cf", "--json").stdout)[
        "paired"
    ]
    assert paired["channels_drawn"] == 0
    assert {row["name"] for row in paired["rows"]} >= {"test_accuracy", "epsilon_accounted"}


def test_a_table_of_two_runs_is_in_percent_and_says_zero_where_only_rounding_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        PairedRow("test_accuracy", "test accuracy", "", 0.8635, 0.8735, 0.01, 0.005),
        PairedRow("airtime", "airtime", "s", 0.0625, 0.0625, 8.674e-19, -8.674e-19),
    ]
    print_paired(rows, 1, 3, Path("paired.png"))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "test accuracy (%) 86.35 87.35 +1 +0.5" in lines
    assert "airtime (s) 0.0625 0.0625 0 0" in lines


@pytest.mark.slow
def test_exports(trace: Path, tmp_path: Path) -> None:
    for form, count in (("parquet", 4), ("csv", 4), ("netcdf", 1), ("chrome", 1)):
        files = json.loads(replay(trace, "--export", form, "--out", tmp_path, "--json").stdout)["files"]
        assert len(files) == count and all(Path(file).exists() for file in files)
    assert replay(trace, "--export", "csv", "--quiet").stdout == ""
    assert (trace.parent / "replay" / "rounds.csv").exists()


def test_a_changed_run_that_ended_before_the_rounds_asked_for_is_exit_3(trace: Path, tmp_path: Path) -> None:
    """It was compared over no round, with sums of 0."""
    result = replay(trace, "--set", "stop.accuracy=1e-9", "--out", tmp_path / "cf", "--from", "2")
    assert result.exit_code == 3 and "changed − recorded" not in result.stdout
    assert "--from 2: found a changed run that ended after round 1; allowed: up to that" in result.stderr
    assert not (tmp_path / "cf" / "paired.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "3", "--to", "2"), "empty range"),
        (("--to", "9"), "beyond the recording"),
        (("--delta", "2"), "between 0 and 1"),
        (("--delta", "1e-6", "--to", "2"), "need all rounds"),
        (("--accountant", "rdp", "--from", "2"), "need all rounds"),
        (("--set", "seed=3"), "keeps the conditions of the recorded run"),
        (("--set", "uplink.jammer=null", "--verify"), "use one of them"),
        (("--export", "pdf"), "pdf"),
    ],
)
def test_wrong_input_is_exit_2(trace: Path, arguments: tuple[str, ...], words: str) -> None:
    result = replay(trace, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr and "Traceback" not in result.stderr
    assert result.stdout == ""


def test_no_trace(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_text("nothing")
    for path in (tmp_path / "x.h5", tmp_path / "y.h5", tmp_path):
        result = replay(path)
        assert result.exit_code == 2 and result.stdout == ""
