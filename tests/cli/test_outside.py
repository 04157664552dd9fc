"""Members from outside meet the other commands: resume, replay, audit, study."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.simulation.outside import HERE
from tests.simulation.scenarios import SMALL, small
from tests.study.studies import write_study
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.cli import main
from wirelessfl.errors import RunInterrupted, TraceError
from wirelessfl.scenario import parse_scenario
from wirelessfl.simulation import FinishedRound

MEMBERS: dict[str, Any] = {
    "data": {"dataset": {"name": f"{HERE}:owned"}, "partition": {"scheme": "natural"}},
    "clients": {"count": 4},
    "model": {"name": f"{HERE}:Linear"},
    "uplink": {"kind": "ideal"},
    "training": {
        "algorithm": {"name": "fedavg"},
        "epochs": 1,
        "optimizer": {"name": f"{HERE}:Signs", "lr": 0.01},
        "privacy": {
            "mechanism": f"{HERE}:OwnRelease",
            "options": {"multiplier": 2.0},
            "clipping": {"name": f"{HERE}:Stated"},
        },
    },
}


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside") / "run"
    wfl.simulate(small(**MEMBERS), folder, device="cpu", threads=1, pictures=False)
    return folder


def test_a_run_with_members_from_outside_is_resumed_to_the_same_bits(whole: Path, tmp_path: Path) -> None:
    def stop(this: FinishedRound) -> None:
        if this.index == 1:
            raise RunInterrupted

    with suppress(RunInterrupted):
        wfl.simulate(small(**MEMBERS), tmp_path / "run", device="cpu", threads=1, pictures=False, on_round=stop)
    wfl.simulate(small(**MEMBERS), tmp_path / "run", device="cpu", threads=1, pictures=False, resume=True)
    assert compare_traces(whole / "trace.h5", tmp_path / "run" / "trace.h5", 1, 3).numbers > 0


def test_replay_runs_them_with_leave_only(whole: Path) -> None:
    trace = str(whole / "trace.h5")
    refused = invoke("replay", trace, "--verify", "--quiet")
    assert refused.exit_code == 2 and "--allow-plugins" in refused.stderr
    verified = invoke("replay", trace, "--verify", "--quiet", "--allow-plugins")
    assert verified.exit_code == 0, verified.stderr


def test_the_ledger_of_a_release_from_outside_is_recomputed_with_leave_only(whole: Path) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    refused = invoke("replay", str(whole / "trace.h5"), "--delta", "1e-5")
    assert refused.exit_code == 2 and f"{HERE}:OwnRecord" in refused.stderr
    with pytest.raises(TraceError, match="read with allow_plugins=True only"):
        recorded_ledger(whole / "trace.h5")
    ledger = recorded_ledger(whole / "trace.h5", allow_plugins=True)
    assert ledger.epsilon_accounted() == summary["epsilon_accounted"]
    assert ledger.why_different() == summary["why_different"]
    shown = invoke("replay", str(whole / "trace.h5"), "--delta", "1e-6", "--allow-plugins", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert json.loads(shown.stdout)["ledgers"][0]["epsilon_accounted"] > summary["epsilon_accounted"]


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        ({"mechanism": f"{HERE}:Silent", "options": {"multiplier": 1.0}}, "is code from outside"),
        ({"mechanism": f"{HERE}:OwnRelease", "options": {"multiplier": 1.0}}, "for the release OwnRecord"),
        ({"mechanism": f"{HERE}:Recorded", "options": {"multiplier": 1.0}}, "for the noise mechanism Recorded"),
        ({"mechanism": "gaussian", "clipping": {"name": f"{HERE}:Stated"}}, "no game for the clipping rule Stated"),
    ],
)
@pytest.mark.parametrize("uplink", ["{kind: ideal}", "{kind: over_the_air, snr_db: 10}"])
def test_an_audit_is_refused_where_no_game_is_known(
    privacy: dict[str, Any], words: str, uplink: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"{SMALL}uplink: {uplink}\n", encoding="utf-8")
    keys = [f"--set=training.privacy={json.dumps(privacy)}", "--set=training.batch_size=20", "--trials=20"]
    result = invoke("audit", str(file), *keys, "--out", str(tmp_path), "--json")
    assert result.exit_code == 3 and words in result.stderr, result.stderr


def test_an_audit_of_an_optimizer_from_outside_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SMALL, encoding="utf-8")
    result = invoke("audit", str(file), f"--set=training.optimizer.name={HERE}:Signs", "--out", str(tmp_path))
    assert result.exit_code == 3 and f"training.optimizer.name ({HERE}:Signs)" in result.stderr


@pytest.mark.slow
def test_a_study_over_members_from_outside(tmp_path: Path) -> None:
    signs = {"name": f"{HERE}:Signs", "lr": 0.01}
    path = write_study(tmp_path, grid={"training.optimizer": [{"name": "sgd"}, signs]}, seeds=1)
    result = invoke("study", str(path), "--out", str(tmp_path / "out"), "--workers", "1")
    assert result.exit_code == 0, result.stderr


def test_an_override_drops_what_the_member_lacks() -> None:
    scenario = parse_scenario(SMALL, "small", {"training.optimizer.name": f"{HERE}:Signs"})
    assert scenario.training.optimizer.lr == 0.05


@pytest.mark.parametrize(
    ("fault", "words"),
    [("exit", "SystemExit: 0"), ("close", "GeneratorExit: closed"), ("stop", "generator raised StopIteration")],
)
def test_code_from_outside_that_ends_the_process_is_no_success(fault: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SMALL, encoding="utf-8")
    own = json.dumps({"name": "tests.simulation.test_misfits:Forgetful", "options": {"fault": fault}})
    result = invoke("simulate", str(file), f"--set=training.algorithm={own}", "--out", str(tmp_path / "out"), "--quiet")
    assert result.exit_code == 2, result.output
    assert re.search(rf"Error: \S*test_misfits.py:\d+ in Forgetful.step: .*{words}", result.stderr), result.stderr


@pytest.mark.slow
def test_a_study_records_runs_that_end_their_process_or_read_its_input(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import sys\nfrom wirelessfl.learning import FedAvg\nclass Exits(FedAvg):\n"
        "    def step(self, server, aggregate, facts):\n        sys.exit(0)\n"
        "class Asks(FedAvg):\n    def step(self, server, aggregate, facts):\n        input()\n"
    )
    grid = {"training.algorithm": [{"name": "fedavg"}, {"name": "mine:Exits"}, {"name": "mine:Asks"}]}
    path = write_study(tmp_path, grid=grid, seeds=1)
    result = invoke("study", str(path), "--out", str(tmp_path / "out"), "--workers", "1")
    ends = json.loads((tmp_path / "out" / "study.json").read_text())["runs"]
    assert result.exit_code == 3, result.stderr
    assert [end["status"] for end in ends] == ["complete", "failed", "failed"]
    assert "mine.py:5 in Exits.step: SystemExit: 0" in ends[1]["error"]
    assert "mine.py:8 in Asks.step: EOFError" in ends[2]["error"]
