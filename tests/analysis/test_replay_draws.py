"""Where all that happens follows from seed, round and client, a changed policy on recorded conditions is that policy.

So on channels that fade independently the replay has the bits of a run of the changed scenario.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.counterfactual import changed_scenario, run_counterfactual
from wirelessfl.analysis.replay.recording import open_recording

DIGITAL: dict[str, Any] = {
    "uplink": {"kind": "digital", "snr_db": 10.0},
    "training__batch_size": 10,
    "compute__chunk": 3,
}
ABSENT = {"faults__availability": {"model": "bernoulli", "p": 0.4}, "timing__straggler_scale": 2.0, "rounds": 6}
AT_WORK = {**DIGITAL, "aggregation": {"mode": "asynchronous", "buffer": 1}, "timing__straggler_scale": 2.0, "rounds": 6}

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one more pass over the data": (DIGITAL, ["training.algorithm={name: scaffold, option: 1}"]),
    "a free rider works": ({**DIGITAL, "clients__roles": [{"role": "free_rider", "count": 1}]}, ["clients.roles=[]"]),
    "a silent client sends": ({**DIGITAL, "clients__roles": [{"role": "silent", "count": 1}]}, ["clients.roles=[]"]),
    "clients at work were not asked": ({**AT_WORK, **ABSENT}, ["aggregation={mode: synchronous}"]),
    "work that began earlier": (AT_WORK, ["aggregation.buffer=2"]),
    "some of those at work": (AT_WORK, ["clients.selection={scheme: uniform, count: 3}"]),
    "a client rides free": (DIGITAL, ["clients.roles=[{role: free_rider, count: 1}]"]),
    "a client falls silent": ({**DIGITAL, **ABSENT}, ["clients.roles=[{role: silent, count: 2}]"]),
    "two passes": (DIGITAL, ["training.epochs=2"]),
    "a deadline": ({**DIGITAL, **ABSENT}, ["timing.deadline_s=0.05"]),
    "asynchronous": ({**DIGITAL, **ABSENT}, ["aggregation={mode: asynchronous, buffer: 2}"]),
}


@pytest.mark.parametrize("name", rest_slow(CASES, fast=6))
def test_a_replay_with_a_change_is_the_run_with_that_change(name: str, tmp_path: Path) -> None:
    keys, changes = CASES[name]
    before = wfl.simulate(small(**keys), tmp_path / "before", device="cpu", threads=1, pictures=False)
    recording = open_recording(before.trace)
    resolved = changed_scenario(recording, changes)
    run_counterfactual(recording, resolved.scenario, tmp_path / "replayed")
    plain = wfl.simulate(resolved.scenario, tmp_path / "plain", device="cpu", threads=1, pictures=False)
    rounds = resolved.scenario.rounds
    assert compare_traces(plain.trace, tmp_path / "replayed" / "trace.h5", 1, rounds).difference is None
