"""Traces, scenarios and folders from somebody else: none of their code runs without leave, and nothing is shadowed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
import yaml
from click.testing import CliRunner

import wirelessfl
from wirelessfl import plugins
from wirelessfl.cli import main
from wirelessfl.scenario.scenario import TRUSTED_MODULES
from wirelessfl.trace import scenario_digest

ROOT = Path(wirelessfl.__file__).parents[1]
NUMBERS = itertools.count()

SCENARIO = """
name: mine
rounds: 2
data: {{limit: 80}}
clients: {{count: 4}}
training: {{epochs: 1}}
channel: {{fading: {{model: "{module}:Law"}}}}
uplink: {{kind: over_the_air, snr_db: 10}}
"""

LAW = """
import pathlib
import numpy as np

pathlib.Path("ran").touch()

class Law:
    def draw(self, stream):
        return np.ones(len(stream.nodes), dtype=complex)
"""

Start = Callable[..., tuple[int, str]]


def write(folder: Path, module: str, law: str = LAW) -> None:
    """A scenario ``mine.yaml`` and the module with its fading model."""
    (folder / "mine.yaml").write_text(SCENARIO.format(module=module), encoding="utf-8")
    (folder / f"{module}.py").write_text(law, encoding="utf-8")


def start_process(*arguments: str, folder: Path, how: tuple[str, ...] = ("-m", "wirelessfl")) -> tuple[int, str]:
    """Exit code and stderr of a command in a folder, which must not end in a traceback."""
    done = subprocess.run(
        [sys.executable, *how, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Exit code and stderr of a command in a folder, in this process, as if it were a new one."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])

    def in_this_process(*arguments: str, folder: Path) -> tuple[int, str]:
        monkeypatch.setattr(plugins.places, "_searched", [])
        monkeypatch.chdir(folder)
        for name in [name for name in sys.modules if name.startswith("my_law_")]:
            del sys.modules[name]
        result = CliRunner().invoke(main, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stderr

    return in_this_process


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario of the user's, his fading model, and the run of both."""
    folder = tmp_path_factory.mktemp("own")
    write(folder, f"my_law_{next(NUMBERS)}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins.places, "_searched", [])
        patch.chdir(folder)
        wirelessfl.simulate(wirelessfl.load_scenario("mine.yaml"), "run", device="cpu", pictures=False)
    return folder


@pytest.fixture
def own_run(recorded: Path) -> Path:
    """The same, with no trace of the model's module having run."""
    (recorded / "ran").unlink(missing_ok=True)
    return recorded


@pytest.mark.parametrize(
    "command",
    [
        ("replay", "run/trace.h5", "--verify"),
        ("replay", "run/trace.h5", "--set", "uplink.snr_db=5"),
        ("simulate", "run/scenario.yaml", "--out", "other", "--quiet"),
        ("simulate", "run/scenario.yaml", "--out", "run", "--resume", "--quiet"),
        ("validate", "run/scenario.yaml"),
        ("audit", "run/scenario.yaml"),
        ("study", "study.yaml", "--quiet"),
    ],
    ids=" ".join,
)
def test_a_recorded_scenario_runs_no_code_without_leave(own_run: Path, start: Start, command: tuple[str, ...]) -> None:
    (own_run / "study.yaml").write_text("base: run/scenario.yaml\ngrid: {rounds: [1, 2]}\n", encoding="utf-8")
    code, words = start(*command, folder=own_run)
    assert code == 2
    assert "channel.fading.model: found my_law_" in words
    assert "--allow-plugins" in words
    assert not (own_run / "ran").exists()


@pytest.mark.parametrize("by", ["option", "environment"])
def test_with_leave_the_recorded_run_is_repeated(
    own_run: Path, start: Start, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = next(own_run.glob("my_law_*.py")).stem
    if by == "environment":
        monkeypatch.setenv(TRUSTED_MODULES, module)
    leave = ("--allow-plugins",) if by == "option" else ()
    assert start("replay", "run/trace.h5", "--verify", "--quiet", *leave, folder=own_run) == (0, "")
    assert (own_run / "ran").exists()


def test_a_policy_that_the_user_types_is_his_own(own_run: Path, start: Start, tmp_path: Path) -> None:
    trace = tmp_path / "trace.h5"
    shutil.copy(own_run / "run" / "trace.h5", trace)
    forge(trace, {"policy": "full_power"})
    code, words = start("replay", str(trace), "--set", "uplink.power_control.policy=none_such:Policy", folder=tmp_path)
    assert (code, "cannot import 'none_such'" in words) == (2, True), words


def test_looking_at_a_recorded_run_needs_no_leave(own_run: Path, start: Start) -> None:
    assert start("replay", "run/trace.h5", folder=own_run)[0] == 0
    assert start("simulate", "mine.yaml", "--out", "run", "--resume", "--quiet", folder=own_run)[0] == 0
    assert not (own_run / "ran").exists()


def test_a_recorded_scenario_names_no_file_as_its_profile(own_run: Path, start: Start, tmp_path: Path) -> None:
    """In the file beside a trace as in the trace; a profile that the user types is read."""
    (tmp_path / "profile.yaml").write_text("fading: {model: static}\n", encoding="utf-8")
    (tmp_path / "run").mkdir()
    shutil.copy(own_run / "run" / "trace.h5", tmp_path / "run")
    (tmp_path / "run" / "scenario.yaml").write_text(
        "name: mine\nchannel: {profile: ../profile.yaml}\n", encoding="utf-8"
    )
    (tmp_path / "study.yaml").write_text("base: run/scenario.yaml\ngrid: {rounds: [1]}\n", encoding="utf-8")
    for command in (("validate", "run/scenario.yaml"), ("study", "study.yaml", "--quiet")):
        code, words = start(*command, folder=tmp_path)
        assert (code, "channel.profile: found ../profile.yaml; allowed in a recorded scenario" in words) == (2, True)
    (tmp_path / "run" / "scenario.yaml").write_text("name: mine\n", encoding="utf-8")
    assert start("validate", "run/scenario.yaml", "--set", "channel.profile=profile.yaml", folder=tmp_path)[0] == 0


MODELS = {
    "def build(shape, classes):\n    pass\n": "returned a NoneType; allowed is a torch.nn.Module",
    "def build(shape, classes):\n    return lambda x: x\n": "returned a function",
    "def build(shape, classes):\n    yield\n": "returned a generator",
}


@pytest.mark.parametrize("text", MODELS)
def test_a_function_that_builds_no_model_is_told_so(start: Start, tmp_path: Path, text: str) -> None:
    module = f"my_law_{next(NUMBERS)}"
    (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    code, words = start("validate", "quickstart", "--set", f"model.name={module}:build", folder=tmp_path)
    assert (code, f"model.name: {module}:build {MODELS[text]}" in words) == (2, True), words


def forge(trace: Path, power_control: dict[str, object]) -> None:
    """Have a trace name another policy, and a fading model of the package, with the digest of that."""
    with h5py.File(trace, "r+") as file:
        tree = yaml.safe_load(str(file.attrs["scenario"]))
        tree["channel"]["fading"] = {"model": "rayleigh"}
        tree["uplink"]["power_control"] = power_control
        file.attrs["scenario"] = text = yaml.safe_dump(tree)
        file.attrs["scenario_digest"] = scenario_digest(text)


@pytest.mark.filterwarnings("always::wirelessfl.errors.SourceWarning")
@pytest.mark.parametrize("more", [("--verify",), ("--set", "training.epochs=2")])
def test_a_forged_trace_starts_no_process(own_run: Path, start: Start, tmp_path: Path, more: tuple[str, ...]) -> None:
    trace = tmp_path / "trace.h5"
    shutil.copy(own_run / "run" / "trace.h5", trace)
    forge(trace, {"policy": "subprocess:Popen", "options": {"args": ["touch", "hit"]}})
    code, words = start("replay", str(trace), *more, folder=tmp_path)
    assert (code, "found subprocess:Popen" in words) == (2, True), words
    code, words = start("replay", str(trace), *more, "--allow-plugins", folder=tmp_path)
    assert (code, "subprocess:Popen belongs to Python's own library" in words) == (2, True), words
    assert not (tmp_path / "hit").exists()


def test_a_scenario_of_the_users_calls_nothing_that_is_no_policy(start: Start, tmp_path: Path) -> None:
    policy = "{policy: 'subprocess:Popen', options: {args: [touch, hit]}}"
    (tmp_path / "mine.yaml").write_text(
        f"name: mine\nuplink: {{kind: over_the_air, snr_db: 1, power_control: {policy}}}\n", encoding="utf-8"
    )
    code, words = start("validate", "mine.yaml", folder=tmp_path)
    assert (code, "belongs to Python's own library" in words) == (2, True), words
    assert not (tmp_path / "hit").exists()


SHADOWS = ("pandas", "numpy", "torch", "h5py", "yaml", "click", "xarray", "matplotlib", "scipy", "simpy", "pydantic")


def shadow(folder: Path) -> None:
    """Modules with the names of installed packages, which leave a mark when they run."""
    for name in SHADOWS:
        text = f"open('shadowed-by-{name}', 'w')\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


SIMULATE = ("simulate", "mine.yaml", "--device", "cpu", "--out", "own", "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "command"),
    [
        (("-m", "wirelessfl"), ("validate", "mine.yaml")),
        pytest.param(("-m", "wirelessfl"), SIMULATE, marks=pytest.mark.slow),
        pytest.param(("-P", "-c", "from wirelessfl.cli import main; main()"), SIMULATE, marks=pytest.mark.slow),
    ],
)
def test_modules_in_the_current_folder_shadow_nothing_that_is_installed(
    tmp_path: Path, how: tuple[str, ...], command: tuple[str, ...]
) -> None:
    shadow(tmp_path)
    write(tmp_path, "my_law")
    assert start_process(*command, folder=tmp_path, how=how) == (0, "")
    assert (tmp_path / "ran").exists()
    assert not list(tmp_path.glob("shadowed-by-*"))


@pytest.mark.slow
def test_the_workers_of_a_study_find_the_users_module_and_nothing_shadows(tmp_path: Path) -> None:
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    for folder in (beside, elsewhere):
        folder.mkdir()
        shadow(folder)
    write(beside, "my_law")
    (elsewhere / "my_law.py").write_text("open('shadowed-by-my_law', 'w')\n", encoding="utf-8")
    (beside / "study.yaml").write_text("base: mine.yaml\ngrid: {rounds: [1]}\n", encoding="utf-8")
    command = ("study", str(beside / "study.yaml"), "--workers", "1", "--quiet", "--device", "cpu")
    assert start_process(*command, folder=elsewhere)[0] == 0
    assert (elsewhere / "ran").exists()
    assert not list(tmp_path.rglob("shadowed-by-*"))


BROKEN = {
    "class Law(:\n": ".py:1: SyntaxError",
    "raise OSError('of mine')\n": ".py:1: OSError: of mine",
    "class Law:\n    def draw(self, stream):\n        return 1 / 0\n": ".py:3 in Law.draw: ZeroDivisionError: division",
    "class Law:\n    def draw(self):\n        pass\n": "draw cannot be called as draw(self, stream)",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_plug_in_is_told_with_its_file_and_line(start: Start, tmp_path: Path, text: str) -> None:
    module = f"my_law_{next(NUMBERS)}"
    write(tmp_path, module, text)
    code, words = start("validate", "mine.yaml", folder=tmp_path)
    assert code == 2, words
    assert BROKEN[text] in words
    assert module in words


UNFIT = {
    "return stream.uniform(1)[1:, 0]": "needs (",
    "return stream.uniform(1)[:, 0] * float('nan')": "returned numbers that are not finite, needs finite ones",
    "return 'a gain'": "returned a str, needs (",
}


@pytest.mark.parametrize("line", UNFIT)
def test_what_a_plug_in_gives_and_does_not_fit_is_told_with_its_name(start: Start, tmp_path: Path, line: str) -> None:
    module = f"my_law_{next(NUMBERS)}"
    write(tmp_path, module, f"class Law:\n    def draw(self, stream):\n        {line}\n")
    code, words = start("validate", "mine.yaml", folder=tmp_path)
    assert code == 2, words
    assert UNFIT[line] in words
    assert f"channel.fading.model: {module}:Law.draw returned" in words
    assert f"({module}.py:2)" in words
    assert "Traceback" not in words
