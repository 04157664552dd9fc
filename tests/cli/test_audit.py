"""``wirelessfl audit``: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from torch import Tensor

from wirelessfl.cli import main
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.scenario import list_shipped

QUICK = ("--set", "rounds=3", "--trials", "20")


def audit(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["audit", *arguments])


def test_the_finding_of_whole_update_clipping(tmp_path: Path) -> None:
    result = audit("quickstart", *QUICK, "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["epsilon_published"] < found["epsilon_empirical"] < found["epsilon_accounted"]
    assert found["refutes_published"] is True and found["contradicts_ledger"] is False
    assert found["confidence"] == 0.999 and found["trials"] == 20 and found["rounds"] == 3
    assert 0 < found["mu_published"] < found["mu_lower"] < found["mu_accounted"]
    assert Path(found["picture"]) == tmp_path / "audit.png"
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")


def test_words(tmp_path: Path) -> None:
    result = audit("ota-upcycled-jammer", *QUICK, "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    for words in ("canary", "adversary", "ε published", "ε empirical", "ε accounted", "0.999", "√(2ρ)", "audit.png"):
        assert words in result.stdout
    assert "published ε does not hold" in result.stdout


def test_an_infinite_accounted_epsilon_is_said(tmp_path: Path) -> None:
    arguments = ("fedavg-ideal", *QUICK, "--out", str(tmp_path))
    result = audit(*arguments)
    assert result.exit_code == 0 and "nothing is proven" in result.stdout
    found = json.loads(audit(*arguments, "--json").stdout)
    assert found["epsilon_accounted"] == found["epsilon_empirical"] == "inf"


def test_a_mechanism_that_lies_is_exit_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = GaussianMechanism.add

    def halved(self: GaussianMechanism, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        return right(self, total, sensitivity / 2, step)

    monkeypatch.setattr(GaussianMechanism, "add", halved)
    result = audit("dp-sgd", "--set", "rounds=5", "--trials", "40", "--out", str(tmp_path), "--json")
    assert result.exit_code == 4
    assert "does not hold" in result.stderr and "Traceback" not in result.stderr
    found = json.loads(result.stdout)
    assert found["contradicts_ledger"] is True
    assert (tmp_path / "audit.png").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-scenario",),
        ("quickstart", "--trials", "9"),
        ("quickstart", "--trials", "many"),
        ("quickstart", "--set", "uplink.clip=-1"),
        ("quickstart", "--out", "/dev/null/folder"),
    ],
)
def test_input_that_is_wrong_is_exit_2(arguments: tuple[str, ...]) -> None:
    result = audit(*arguments)
    assert result.exit_code == 2
    assert result.stderr and result.stdout == "" and "Traceback" not in result.stderr


def verdict(result: Result) -> tuple[int, bool]:
    """Exit code, and whether the audit told what it left out (a verdict) or what is missing (a refusal)."""
    assert "Traceback" not in result.stderr
    if result.exit_code == 3:
        return 3, "cannot be audited" in result.stderr
    found = json.loads(result.stdout)
    return result.exit_code, bool(found["not_tested"]) and not found["contradicts_ledger"]


@pytest.mark.slow
def test_a_scenario_on_files_is_audited_where_they_are(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    overrides = ("--set", "rounds=3", "--set", "data.limit=2000")
    result = audit("ota-sample-private", *overrides, "--trials", "20", "--out", str(tmp_path), "--json")
    assert verdict(result) == (0, True), result.stderr


OTHER_SYMBOLS = "uplink.modulation sends other symbols than a canary's update"
NO_GAME = {
    "a-dsgd": OTHER_SYMBOLS,
    "blind-aircomp": OTHER_SYMBOLS,
    "fsk-vote-mnist": OTHER_SYMBOLS,
    "obda": OTHER_SYMBOLS,
    "partial-work": "games take all local steps, which training.partial_work does not",
    "ris-fl": "a canary is a constant vector, of which nothing is sent beside the mean told apart",
}
"""Shipped scenarios that the audit refuses, and why."""


@pytest.mark.parametrize("name", NO_GAME)
def test_scenarios_without_a_game_are_refused(
    name: str, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    result = audit(name, "--out", str(tmp_path))
    assert result.exit_code == 3
    assert f"this scenario cannot be audited: {NO_GAME[name]}" in " ".join(result.stderr.split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("name", [shipped.name for shipped in list_shipped() if shipped.name not in NO_GAME])
def test_shipped_scenarios_keep_their_promise(
    name: str, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # False alarms: one in a thousand for each scenario whose ε is finite; with its own seed each either passes or not.
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    started = time.process_time()
    result = audit(name, "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.stderr
    assert time.process_time() - started < 60
    found = json.loads(result.stdout)
    assert found["contradicts_ledger"] is False
    assert found["epsilon_empirical"] == "inf" or found["epsilon_empirical"] > 0
