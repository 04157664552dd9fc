"""A run on the device that is killed in the middle, continued, and verified."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.gpu.prepare import ROOT
from benchmarks.gpu.setting import Measure, Measured, Setting

_RUN = """
import sys
import wirelessfl as wfl

_, name, rounds, folder, device = sys.argv
scenario = wfl.load_scenario(name, overrides={"rounds": int(rounds)})
wfl.simulate(scenario, folder, device=device, threads=1, pictures=False, on_round=lambda r: print(r.index, flush=True))
"""


def measure_resume(name: str, setting: Setting) -> Measured:
    """Kills a shipped scenario in the middle of its rounds, resumes it, and has every number of it verified."""
    rounds = 6 if setting.tiny else 60
    with tempfile.TemporaryDirectory(prefix="wirelessfl-gpu-") as place:
        folder = Path(place) / "run"
        started = time.perf_counter()
        reached = _kill_in_the_middle(name, rounds, folder, setting)
        scenario, device = str(folder / "scenario.yaml"), setting.device
        commands = (
            ["simulate", scenario, "--out", str(folder), "--resume", "--device", device, "--quiet"],
            ["replay", str(folder / "trace.h5"), "--verify", "--quiet"],
        )
        for command in commands:
            done = subprocess.run(
                [sys.executable, "-m", "wirelessfl", *command], cwd=ROOT, capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(done.stdout, done.stderr, file=sys.stderr)
                return Measured(failure=f"{command[0]} ended with exit code {done.returncode}")
        seconds = time.perf_counter() - started
    return Measured(seconds, detail=f"killed after round {reached} of {rounds}, resumed, verified bit for bit")


def _kill_in_the_middle(name: str, rounds: int, folder: Path, setting: Setting) -> int:
    """Starts the run and kills it while it goes on; gives the last round that it told of.

    Raises:
        RuntimeError: it ended by itself.
    """
    arguments = [sys.executable, "-c", _RUN, name, str(rounds), str(folder), setting.device]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = "0"
        for line in process.stdout:
            if int(line) >= rounds // 3:
                process.kill()
                break
        reached = max([int(line), *map(int, process.stdout)])
    if process.returncode != -signal.SIGKILL or reached >= rounds:
        raise RuntimeError(f"the run ended with exit code {process.returncode} before it was killed")
    return reached


WORKLOADS: dict[str, Measure] = {name: partial(measure_resume, name) for name in ("quickstart", "dp-sgd")}
