"""The healthy files: a tiny run of each kind of network, a run that was stopped half-way, and a tiny study."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import yaml

from tests.fuzz.sandbox import command, forked

_DATA = {"dataset": {"name": "digits"}, "limit": 120, "partition": {"scheme": "iid"}}
_SMALL = {
    "seed": 7,
    "rounds": 2,
    "data": _DATA,
    "model": {"name": "mlp", "hidden": [4]},
    "clients": {"count": 4},
    "training": {
        "algorithm": {"name": "fedavg"},
        "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.5},
        "epochs": 1,
        "batch_size": 20,
    },
    "trace": {"models": "every 1"},
}
_AIR = {"kind": "over_the_air", "snr_db": 1, "clip": 1.0}
_POLICY = {"policy": "cross_layer", "server_gain": "auto", "epsilon": 6.52, "backoff": "bound"}

SCENARIOS: dict[str, dict[str, object]] = {
    "air": {
        "channel": {"fading": {"model": "rayleigh"}},
        "uplink": {**_AIR, "power_control": _POLICY, "jammer": {"epsilon": 2.0, "margin": 1}},
        "privacy": {"delta": 1e-5, "unit": "sample", "adversary": "server"},
    },
    "ideal": {
        "training": {
            "algorithm": {"name": "fedavg"},
            "epochs": 1,
            "batch_size": 20,
            "privacy": {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.05},
        },
        "uplink": {"kind": "ideal"},
    },
    "secagg": {
        "channel": {"fading": {"model": "rayleigh"}, "pathloss": {"model": "log_distance", "exponent": 3.8}},
        "uplink": {
            "kind": "secure_aggregation",
            "protocol": "secagg",
            "tx_power_dbm": 10,
            "clip": 2.0,
            "stage_timeout_s": 1.0,
        },
    },
    "asynchronous": {
        "rounds": 4,
        "aggregation": {"mode": "asynchronous", "buffer": 1, "mixing": 0.5},
        "channel": {"profile": "urban-micro", "csi": {"refresh": "piece"}},
        "uplink": {"kind": "digital", "tx_power_dbm": 23},
        "timing": {"cpu_hz": [0.25e9, 2.0e9], "cycles_per_sample": 1.0e7, "straggler_scale": 0.5},
    },
    "cells": {
        "clients": {"count": 7},
        "topology": {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 500},
        "channel": {"profile": "urban-macro"},
        "uplink": {"kind": "over_the_air", "tx_power_dbm": 23, "power_control": {"policy": "weakest_inversion"}},
        "faults": {"availability": {"model": "bernoulli", "p": 0.8}},
    },
}

STUDY = {"base": "base.yaml", "grid": {"uplink.snr_db": [0, 5]}, "seeds": 2}
STOPPED = "stopped"
STOPPED_ROUNDS = 2
WHOLE_ROUNDS = 4


@dataclass(frozen=True)
class Subjects:
    """The folder in which they lie.

    ``NAME/`` is a finished run, ``NAME.yaml`` its scenario; ``stopped/NAME/`` the same run stopped after some of its
    rounds, ``whole/NAME/`` the same undisturbed; ``study/`` a finished study of ``study.yaml``.
    """

    path: Path

    def run(self, name: str) -> Path:
        """The folder of a finished run."""
        return self.path / name

    def scenario(self, name: str) -> Path:
        """Its scenario."""
        return self.path / f"{name}.yaml"

    def stopped(self, name: str) -> Path:
        """The folder of a run that was stopped."""
        return self.path / STOPPED / name

    def whole(self, name: str) -> Path:
        """The folder of that run undisturbed."""
        return self.path / "whole" / name

    @property
    def study(self) -> Path:
        """The folder of a finished study, made when it is first asked for: few kinds of cases need it."""
        _make_once(self, ".study-made", _make_study)
        return self.path / "study"

    def archive(self, name: str) -> Path:
        """The archive of a finished run, made when one is first asked for."""
        _make_once(self, ".archives-made", _make_archives)
        return self.path / f"{name}.zip"


def make_subjects(path: Path) -> Subjects:
    """The subjects in a folder, made where they are not there; processes wait for each other.

    Raises:
        RuntimeError: a healthy run fails.
    """
    path.mkdir(parents=True, exist_ok=True)
    subjects = Subjects(path)
    _make_once(subjects, ".made", _make_runs)
    return subjects


def _make_once(subjects: Subjects, mark: str, make: Callable[[Subjects], None]) -> None:
    with (subjects.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (subjects.path / mark).exists():
            make(subjects)
            (subjects.path / mark).touch()


def _make_runs(subjects: Subjects) -> None:
    for name, keys in SCENARIOS.items():
        subjects.scenario(name).write_text(yaml.safe_dump({"name": name, **_SMALL, **keys}, sort_keys=False))
        _succeed(simulation(subjects, name, subjects.run(name)), subjects)
    for name in ("air", "secagg", "asynchronous"):
        stop_after(subjects, name)
    (subjects.path / "base.yaml").write_text(subjects.scenario("air").read_text())
    (subjects.path / "study.yaml").write_text(yaml.safe_dump({"name": "study", **STUDY}, sort_keys=False))


def _make_study(subjects: Subjects) -> None:
    study = subjects.path / "study"
    shutil.rmtree(study, ignore_errors=True)
    _succeed(command(["study", f"{study}.yaml", "--out", str(study), "--workers", "1", "--quiet"]), subjects)


def _make_archives(subjects: Subjects) -> None:
    for name in SCENARIOS:
        archive = str(subjects.path / f"{name}.zip")
        _succeed(command(["pack", str(subjects.run(name)), "--out", archive, "--quiet"]), subjects)


def simulation(
    subjects: Subjects, name: str, folder: Path, *changes: str, killed_after: int | None = None
) -> Callable[[], None]:
    """A run without pictures, as work for a child, which kills itself where that is asked for."""

    def work() -> None:
        from wirelessfl.api import simulate
        from wirelessfl.scenario import resolve_scenario
        from wirelessfl.simulation import FinishedRound

        def on_round(finished: FinishedRound) -> None:
            if finished.index == killed_after:
                os.kill(os.getpid(), signal.SIGKILL)

        scenario = resolve_scenario(str(subjects.scenario(name)), changes).scenario
        simulate(scenario, folder, pictures=False, on_round=on_round)

    return work


def stop_after(subjects: Subjects, name: str) -> None:
    """Run longer twice: once whole, once as a process that ends without a word after `STOPPED_ROUNDS`."""
    longer = f"rounds={WHOLE_ROUNDS}"
    _succeed(simulation(subjects, name, subjects.whole(name), longer), subjects)
    folder = subjects.stopped(name)
    ending = forked(simulation(subjects, name, folder, longer, killed_after=STOPPED_ROUNDS), subjects.path)
    unsettled = folder / ".checkpoint.bin.partial"
    if unsettled.exists():  # written, and the kill came before it took its place
        unsettled.replace(folder / "checkpoint.bin")
    if ending.signal is None or not (folder / "checkpoint.bin").exists():
        raise RuntimeError(f"the run {name} did not stop with a checkpoint: {ending}")


def _succeed(work: Callable[[], object], subjects: Subjects) -> None:
    ending = forked(work, subjects.path, limit_s=120)
    if ending.code != 0:
        raise RuntimeError(f"a healthy run ended with {ending.code}:\n{ending.out}")


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder."""
    shutil.copytree(source, target, symlinks=True)


def warm_up(subjects: Subjects) -> None:
    """Run every command once in this process, so that its children find all imports made and all caches full."""
    from wirelessfl.cli import main

    folder = subjects.path / "warm"
    trace, scenario = str(subjects.run("air") / "trace.h5"), str(subjects.scenario("air"))
    for args in (
        ["simulate", scenario, "--out", str(folder), "--overwrite"],
        ["simulate", scenario, "--out", str(folder), "--resume"],
        ["validate", scenario],
        ["replay", trace, "--verify"],
        ["replay", trace, "--delta", "1e-6", "--export", "chrome", "--out", str(folder / "replay")],
        ["report", trace, "--out", str(folder / "report.html")],
    ):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit):
            main(args, prog_name="wirelessfl")
