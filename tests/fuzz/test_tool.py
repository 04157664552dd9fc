"""The tool itself: children are contained, cases follow from their numbers, and a planted fault is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.fuzz import guided, hdf5_objects, scenarios
from tests.fuzz.case import Case, generator_of
from tests.fuzz.damage import BYTE_OPS, damage_bytes, draw_bytes, draw_cut, draw_zeros
from tests.fuzz.hdf5_steps import apply_hdf5
from tests.fuzz.sandbox import Ending, Kick, forked
from tests.fuzz.subjects import SCENARIOS, Subjects
from tests.fuzz.verdict import faults


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def fail() -> None:
    raise KeyError("nope")


def allocate() -> None:
    np.ones(1 << 33)


def leave() -> None:
    print("Error: no")
    raise SystemExit(2)


def fall_silent() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (crash, "ended by signal 11"),
        (fail, "exit code 1"),
        (allocate, "exit code 1"),
        (fall_silent, "silence"),
        (lambda: print("/x/y.py:3: RuntimeWarning: overflow"), "printed"),
    ],
)
def test_what_a_child_does_wrong_is_seen_and_harms_nobody(work: Any, words: str, tmp_path: Path) -> None:
    wrong = faults(forked(work, tmp_path))
    assert any(one.startswith(words) for one in wrong), wrong


def test_a_child_that_leaves_in_order_is_not_reported(tmp_path: Path) -> None:
    assert not faults(forked(leave, tmp_path))
    assert not faults(forked(lambda: None, tmp_path))


def test_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    ending = forked(lambda: time.sleep(60), tmp_path, limit_s=0.2)
    assert ending.hung
    assert ending.seconds < 30
    assert "hung" in faults(ending)[0]


def test_a_kick_comes_in_time(tmp_path: Path) -> None:
    ending = forked(lambda: time.sleep(60), tmp_path, kick=Kick(signal.SIGKILL, 0.05))
    assert ending.signal == signal.SIGKILL
    assert not ending.hung


def test_a_signal_that_can_be_answered_waits_for_who_answers_it(tmp_path: Path) -> None:
    def slow_to_listen() -> None:
        time.sleep(0.3)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
        time.sleep(60)

    assert forked(slow_to_listen, tmp_path, kick=Kick(signal.SIGTERM, 0.0)).code == 7


def test_a_traceback_is_told_by_its_place() -> None:
    out = 'Traceback (most recent call last):\n  File "/a/wirelessfl/cli/x.py", line 7, in f\n    g()\nKeyError: 3\n'
    assert faults(Ending(1, None, False, 0.1, 0.1, out)) == ["exit code 1", "traceback: cli/x.py:7 KeyError: 3"]


@pytest.mark.parametrize("stratum", scenarios.STRATA)
def test_a_case_follows_from_its_number_and_survives_json(stratum: str, tmp_path: Path) -> None:
    subjects = Subjects(tmp_path)
    for name in SCENARIOS:
        subjects.scenario(name).write_text(f"name: {name}\nseed: 1\n")
    one, again, other = (scenarios.draw(generator_of("scenarios", seed, 3), stratum, subjects) for seed in (1, 1, 2))
    assert one == again or one.to_json() == again.to_json()
    assert one.to_json() != other.to_json()
    assert Case.from_json(one.to_json()).to_json() == one.to_json()


@pytest.mark.parametrize("draw", [draw_bytes, draw_cut, draw_zeros])
def test_damage_to_bytes_stays_within_reason(draw: Any, tmp_path: Path) -> None:
    content = bytes(1000) + bytes(range(256)) + bytes(1000)
    changed = 0
    for index in range(50):
        step = draw(np.random.default_rng(index), content)
        assert step["op"] in BYTE_OPS
        path = tmp_path / "file"
        path.write_bytes(content)
        damage_bytes(path, step)
        changed += path.read_bytes() != content
    assert changed > 25


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        ({"op": "alter", "object": "/a", "at": 0, "value": "step"}, "/a"),
        ({"op": "alter", "object": "/", "attribute": "seed", "at": 0, "value": "step"}, "/@seed"),
        ({"op": "alter", "object": "/", "attribute": "name", "at": 1, "value": "0"}, "/@name"),
        ({"op": "delete", "object": "/a"}, "/a"),
        ({"op": "resize", "object": "/a", "how": "one less"}, "/a"),
        ({"op": "retype", "object": "/a", "as": "i1"}, "/a"),
        ({"op": "link", "object": "/a", "how": "soft"}, "/a"),
    ],
)
def test_the_walk_sees_every_damage(step: dict[str, Any], changed: str, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as file:
        file["a"] = np.array([0.5, np.nan, 2.0])
        file["b"] = np.arange(3)
        file.attrs["seed"] = np.int64(7)
        file.attrs["name"] = "run"
    before = hdf5_objects.content_of(path)
    assert hdf5_objects.differences(before, before) == []
    apply_hdf5(path, step)
    assert hdf5_objects.differences(before, hdf5_objects.content_of(path)) == [changed]


@pytest.mark.parametrize("target", sorted(guided.TARGETS))
def test_what_guided_fuzzing_starts_from_is_accepted_or_refused_in_words(target: str) -> None:
    for content in guided.seeds()[target]:
        guided.TARGETS[target](content)


def test_guided_fuzzing_runs_where_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    args = [sys.executable, "-m", "tests.fuzz.guided", "checkpoint", str(tmp_path / "inputs"), "-runs=200"]
    done = subprocess.run(args, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
