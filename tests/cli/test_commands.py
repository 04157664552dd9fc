"""Every command and every exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import wirelessfl.cli
from wirelessfl.cli import COMMANDS, Application, main
from wirelessfl.errors import CheckFailed, InfeasibleError, InputError, RunInterrupted, WirelessFLError
from wirelessfl.scenario import list_shipped

TINY = ("--set", "rounds=2", "--set", "clients.count=4", "--set", "data.limit=80", "--set", "training.epochs=1")


def invoke(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, list(arguments))


def test_help_names_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", result.stdout, re.MULTILINE)
        assert invoke(name, "--help").exit_code == 0


def test_starting_up_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'numpy', 'h5py', 'pydantic', 'rich', 'matplotlib', 'xarray', 'scipy'}"
    code = (
        "import sys\nfrom wirelessfl.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        f"sys.exit(str({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_simulate_prints_a_table_and_writes_the_files(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = invoke("simulate", "quickstart", *TINY, "--out", str(out), "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    for words in ("test accuracy", "ε published", "ε accounted", "trace", "picture"):
        assert words in result.stdout
    assert (out / "trace.h5").exists()


def test_json_is_alone_on_stdout(tmp_path: Path) -> None:
    result = invoke("simulate", "quickstart", *TINY, "--seed", "3", "--out", str(tmp_path / "run"), "--json")
    summary = json.loads(result.stdout)
    assert summary["seed"] == 3
    assert summary["rounds"] == 2
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))


def test_what_a_run_prints_is_short_and_names_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    screen = CliRunner(env={"COLUMNS": "80"})
    printed = screen.invoke(wirelessfl.cli.main, ["simulate", "quickstart", *TINY, "--out", "a run"]).stdout
    reasons = json.loads((tmp_path / "a run" / "summary.json").read_text(encoding="utf-8"))["why_different"]
    assert "change it by up to 2τ" in reasons[0] and "up to 2τ" not in printed and len(printed.splitlines()) <= 23
    assert "`wirelessfl report 'a run'`" in " ".join(printed.split())
    replayed = screen.invoke(wirelessfl.cli.main, ["replay", "a run"]).stdout
    assert (
        "change it by up to 2τ" in " ".join(replayed.split())
        and "effective noise" in replayed
        and "(Mironov 2012)" in replayed
    )


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    result = invoke("simulate", "quickstart", *TINY, "--out", str(tmp_path / "run"), "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_dropped_siblings_are_named_on_stderr(tmp_path: Path) -> None:
    result = invoke("simulate", "quickstart", *TINY, "--set", "uplink.kind=ideal", "--out", str(tmp_path / "run"))
    assert result.exit_code == 0
    assert "jammer" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("simulate", "no-such-scenario"), 2, "no-such-scenario"),
        (("simulate", "quickstrat"), 2, "did you mean quickstart"),
        (("simulate", "quickstart", "--set", "round=3"), 2, "did you mean rounds"),
        (("simulate", "quickstart", "--set", "rounds=many"), 2, "many"),
        (("simulate", "quickstart", "--no-such-option"), 2, "no-such-option"),
        (("simulate",), 2, "SCENARIO"),
        (("no-such-command",), 2, "no-such-command"),
        (("validate", "quickstart", "--set", "uplink.jammer.power_db=0"), 3, "uplink.jammer.power_db"),
        (("simulate", "quickstart", "--set", "data.dataset={name: mnist, root: nowhere}"), 2, "nowhere"),
        (("scenarios", "show", "no-such-scenario"), 2, "no-such-scenario"),
    ],
)
def test_refusals_are_one_message_and_no_traceback(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # results/ of the checkout may hold runs
    result = invoke(*arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_typo_in_a_file_is_shown_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nuplink:\n  snr_bd: 3\n", encoding="utf-8")
    result = invoke("validate", str(file))
    assert result.exit_code == 2
    assert f"{file}:3" in result.stderr
    assert "uplink.snr_bd" in result.stderr and "did you mean snr_db" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WirelessFLError("x"), 1),
        (InputError("x"), 2),
        (InfeasibleError("x"), 3),
        (CheckFailed("x"), 4),
        (RunInterrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (click.UsageError("x"), 2),
        (click.FileError("x"), 2),
    ],
)
def test_every_error_has_its_exit_code(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    failing = click.Command("fail", callback=fail)
    monkeypatch.setattr(Application, "get_command", lambda *_: failing)
    assert CliRunner().invoke(wirelessfl.cli.main, ["fail"]).exit_code == code


def test_validate_prints_the_plan() -> None:
    result = invoke("validate", "quickstart")
    assert result.exit_code == 0, result.stderr
    for words in (
        "d = 2,410",
        "|D| = ",
        "airtime",
        "effective noise",
        "noise on the mean",
        "ε published",
        "ε accounted",
        "memory",
    ):
        assert words in result.stdout


def test_the_plan_agrees_with_the_run(tmp_path: Path) -> None:
    plan = json.loads(invoke("validate", "quickstart", *TINY, "--json").stdout)
    run = json.loads(invoke("simulate", "quickstart", *TINY, "--out", str(tmp_path / "run"), "--json").stdout)
    for name in ("d", "samples", "delta", "epsilon_published", "epsilon_accounted", "sim_time", "why_different"):
        assert plan[name] == run[name], name
    assert plan["airtime"] * run["rounds"] == pytest.approx(run["airtime"])


@pytest.mark.slow
def test_the_mean_airtime_of_a_round_is_printed_beside_the_largest(tmp_path: Path) -> None:
    shipped = ("secagg-dropouts", "--set", "rounds=4")
    plan = json.loads(invoke("validate", *shipped, "--json").stdout)
    run = json.loads(invoke("simulate", *shipped, "--out", str(tmp_path / "run"), "--json").stdout)
    assert 0 < plan["airtime_mean"] < plan["airtime"]
    assert plan["airtime_mean"] * run["rounds"] == pytest.approx(run["airtime"])
    assert re.search(r"airtime +\S+ m?s a round on average, \S+ m?s at most", invoke("validate", *shipped).stdout)


def test_the_chance_of_a_weak_jammer_is_printed() -> None:
    result = invoke("validate", "quickstart", "--set", "uplink.jammer.power_db=40", "--json")
    plan = json.loads(result.stdout)
    # RADIO.md: Pr(short) = 1 − exp(−E₁/P); E₁ is what the jammer sends at |h| = 1.
    needed = 2 * plan["d"] * ((plan["effective_noise_std"] * plan["server_gain"]) ** 2 - 1)
    budget = plan["d"] * 10**4
    import math

    assert plan["shortfall_probability"] == pytest.approx(-math.expm1(-needed / budget), rel=0.05)


def test_schema_is_json() -> None:
    schema = json.loads(invoke("schema").stdout)
    assert "uplink" in schema["properties"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["simulate", "quickstart", "--rounds", "3"], "To set a key, use --set rounds=3"),
        (["validate", "quickstart", "--uplink.snr_db=5"], "To set a key, use --set uplink.snr_db=5"),
        (["audit", "quickstart", "--seed"], "To set a key, use --set seed=VALUE"),
        (["replay", "trace.h5", "--rounds", "--quiet"], "To set a key, use --set rounds=VALUE"),
        (["simulate", "quickstart", "--quite"], "No such option '--quite'. (Did you mean one of: '--out', '--quiet'?)"),
    ],
)
def test_a_key_given_as_an_option_is_answered_with_the_override(arguments: list[str], hint: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2 and hint in " ".join(result.stderr.split())


def test_shipped_scenarios_are_described_in_whole_sentences() -> None:
    descriptions = [shipped.description for shelf in ("scenarios", "studies") for shipped in list_shipped(shelf)]
    assert len(descriptions) > 20 and all(text[0].isalpha() and text[-1] in ".:" for text in descriptions), descriptions


def test_scenarios(tmp_path: Path) -> None:
    assert "quickstart" in invoke("scenarios").stdout
    assert invoke("scenarios", "list").stdout == invoke("scenarios").stdout
    assert "name: quickstart" in invoke("scenarios", "show", "quickstart").stdout
    assert invoke("scenarios", "copy", "quickstart", str(tmp_path)).exit_code == 0
    assert invoke("validate", str(tmp_path / "quickstart.yaml")).exit_code == 0
    assert invoke("scenarios", "copy", "quickstart", str(tmp_path)).exit_code == 2


@pytest.mark.slow
def test_what_a_model_cannot_promise_is_one_line_on_stderr() -> None:
    late = ("--set", "channel.sync.max_offset=0.1", "--set", "timing.ofdm={}")
    command = [sys.executable, "-m", "wirelessfl", "validate", "quickstart", *TINY, *late]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: channel.sync.waveform: found single_carrier with timing.ofdm")


def test_validate_plots_the_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("validate", "quickstart", *TINY, "--plot")
    assert result.exit_code == 0, result.stderr
    assert "picture: quickstart-topology.png" in result.stderr
    assert "picture: quickstart-labels.png" in result.stderr
    for name in ("topology", "labels"):
        assert (tmp_path / f"quickstart-{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "keys",
    [
        ("quickstart", "uplink.kind=ideal"),
        ("quickstart", "uplink.kind=digital"),
        ("quickstart", "uplink.kind=secure_aggregation"),
        ("async-stragglers", "rounds=6"),
    ],
    ids=lambda keys: keys[-1].rpartition("=")[2],
)
def test_the_mean_airtime_is_that_of_the_run_over_every_uplink(keys: tuple[str, ...], tmp_path: Path) -> None:
    name, *settings = keys
    common = ("rounds=3", "clients.count=5", "data.limit=100", "training.epochs=1", *settings)
    sets = [word for setting in common for word in ("--set", setting)]
    plan = json.loads(invoke("validate", name, *sets, "--json").stdout)
    done = invoke("simulate", name, *sets, "--out", str(tmp_path / "run"), "--figures", "none", "--json")
    run = json.loads(done.stdout)
    assert plan["airtime_mean"] * run["rounds"] == pytest.approx(run["airtime"])
    assert (plan["airtime_mean"] > 0) == (settings != ["uplink.kind=ideal"])


def test_real_time_is_that_of_the_command_also_after_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.perf_counter", iter(range(10**9)).__next__)  # each look at the clock takes a second
    arguments = ("simulate", "quickstart", *TINY, "--figures", "none", "--out", str(tmp_path / "run"))
    for more in ((), ("--resume",)):
        told = re.search(
            r"real time +(\d+) s for this command, (\d+) s for the rounds of the run", invoke(*arguments, *more).stdout
        )
        assert told is not None
        rounds_s = json.loads((tmp_path / "run" / "summary.json").read_text())["wall_time"]
        assert int(told[2]) == rounds_s
        assert int(told[1]) > rounds_s if not more else int(told[1]) < rounds_s  # nothing is run again
    replayed = invoke("replay", str(tmp_path / "run")).stdout
    assert re.search(rf"real time +{rounds_s:.0f} s for the rounds of the run", replayed)
