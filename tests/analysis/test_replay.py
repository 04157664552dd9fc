"""Verification and ledgers of a recorded run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.ledger import recompute_privacy
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.errors import CheckFailed, InfeasibleError, InputError, TraceError
from wirelessfl.summary import to_json
from wirelessfl.trace import TraceWriter

SCENARIO = small(uplink__jammer={"epsilon": 1.0}, rounds=4, trace__models="every 2", faults__availability={"p": 0.7})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of an undisturbed run."""
    return wfl.simulate(SCENARIO, tmp_path_factory.mktemp("runs") / "x", device="cpu", threads=1, pictures=False).trace


@pytest.fixture
def copy(recorded: Path, tmp_path: Path) -> Path:
    """A copy to be tampered with."""
    return Path(shutil.copy(recorded, tmp_path / "copy.h5"))


def test_an_honest_trace_is_verified(recorded: Path) -> None:
    comparison = verify(open_recording(recorded))
    assert comparison.difference is None
    with h5py.File(recorded) as file:
        counted: list[int] = []

        def visit(name: str, item: object) -> None:
            of_the_layout = ("wall_time", "event", "snapshot", "parameter")
            if isinstance(item, h5py.Dataset) and name.split("/")[-1] not in of_the_layout:
                counted.append(item.size)

        file.visititems(visit)
    assert comparison.numbers == sum(counted)


def test_a_run_that_was_stopped_is_verified_as_far_as_it_came(recorded: Path, copy: Path) -> None:
    TraceWriter.resume(copy, 3).close()
    assert verify(open_recording(copy)).difference is None


@pytest.mark.parametrize(
    ("dataset", "place", "words"),
    rest_slow(
        [
            ("test_accuracy", 2, "test_accuracy in round 3"),
            ("tx_energy", (1, 4), "tx_energy in round 2 of client 4"),
            ("status", (0, 1), "status in round 1 of client 1"),
            ("privacy/air_effective_noise_std", 3, "/privacy/air_effective_noise_std in round 4"),
            ("events/time", 1, "/events/time in round 1"),
            ("events/kind", -1, "/events/kind in round 4"),
            ("model/weights", (0, 7), "/model/weights in round 2, number 7"),
            ("samples", 2, "samples of client 2"),
            ("client_epsilon_accounted", 5, "client_epsilon_accounted of client 5"),
        ],
        fast=4,
    ),
)
def test_one_changed_number_is_named(copy: Path, dataset: str, place: int | tuple[int, ...], words: str) -> None:
    with h5py.File(copy, "r+") as file:
        before = file[dataset][()][place]
        values = file[dataset][()]
        whole = values.dtype.kind in "iu"
        values[place] = (before % 7 + 1 if before % 7 + 1 != before else before + 1) if whole else 0.125
        file[dataset][...] = values
        after = values[place].item()
    with pytest.raises(CheckFailed) as failed:
        verify(open_recording(copy))
    assert f"{words}: found {after!r} in the trace, expected {before.item()!r}" in str(failed.value)


def test_the_last_bit_counts_and_the_earliest_round_is_named(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["airtime"][3] = 1.0
        file["test_loss"][2] = np.nextafter(file["test_loss"][2], np.inf)
    with pytest.raises(CheckFailed, match="test_loss in round 3: found"):
        verify(open_recording(copy))
    verify(open_recording(copy, 1, 2))
    with pytest.raises(CheckFailed, match="airtime in round 4"):
        verify(open_recording(copy, 4, 4))


def test_wall_time_is_free(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["wall_time"][...] = 1e6
    assert verify(open_recording(copy)).difference is None


def test_another_text_in_the_ledger_is_found(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file.attrs.modify("why_different", '["because"]')
    with pytest.raises(CheckFailed, match="attribute why_different"):
        verify(open_recording(copy))


def test_a_shorter_run_is_a_difference(recorded: Path, copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["round"].resize((3,))
    difference = compare_traces(recorded, copy, 1, 4).difference
    assert difference is not None and str(difference).startswith("number of rounds: found 4")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("torch_version", "0.1", r"recorded with torch 0\.1, repeated with"),
        ("processor", "Z80", "recorded on Z80, repeated on"),
    ],
)
def test_what_rounds_differently_is_given_as_a_reason(copy: Path, name: str, value: str, words: str) -> None:
    with h5py.File(copy, "r+") as file:
        file["test_loss"][0] = 0.0
        file.attrs.modify(name, value)
    with pytest.raises(CheckFailed, match=words):
        verify(open_recording(copy))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda names: names[1:], "compiled kernels of the run repeated alone: {}$"),
        (lambda names: [*names, "of_before"], "compiled kernels of the run recorded alone: of_before$"),
    ],
)
def test_compiled_kernels_of_one_machine_alone_are_named(
    copy: Path, change: Callable[[list[str]], list[str]], words: str
) -> None:
    with h5py.File(copy, "r+") as file:
        names = json.loads(file.attrs["kernels"])
        file.attrs.modify("kernels", json.dumps(change(names)))
    if not names:
        pytest.skip("no kernel is compiled here")
    (note,) = verify(open_recording(copy)).notes
    assert re.search(words.format(names[0]), note)


@pytest.mark.parametrize(
    "plan",
    [
        '{"device": "cuda", "threads": 1, "chunk": 1, "precision": "fp32"}',
        '{"device": "cpu", "threads": 1, "chunk": 1, "precision": "fp32", "lanes": 2}',
        '{"device": "cpu", "threads": 0, "chunk": 1, "precision": "fp32"}',
        '{"device": "cpu", "threads": 1, "chunk": 1, "precision": "fp8"}',
        '{"device": "cpu", "threads": true, "chunk": 1, "precision": "fp32"}',
        '{"device": "meta", "threads": 1, "chunk": 1, "precision": "fp32"}',
        '{"device": "cpu"}',
    ],
)
def test_a_plan_that_this_machine_cannot_follow(copy: Path, plan: str) -> None:
    import torch

    from wirelessfl.assembly import recorded_plan

    if "cuda" in plan and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with h5py.File(copy, "r+") as file:
        file.attrs.modify("plan", plan)
    words = "cuda is where the run was computed" if "cuda" in plan else "cannot"
    with pytest.raises(InfeasibleError, match=words):
        recorded_plan(copy)


def test_the_recorded_run_is_not_overwritten(recorded: Path) -> None:
    before = recorded.read_bytes()
    with pytest.raises(InputError, match="an input of this command"):
        verify(open_recording(recorded), recorded.parent)
    assert recorded.read_bytes() == before


@pytest.mark.parametrize(
    ("first", "last", "words"), [(3, 2, "an empty range"), (0, 2, "beyond"), (1, 5, "beyond"), (6, None, "empty")]
)
def test_a_range_that_is_empty_or_outside(recorded: Path, first: int, last: int | None, words: str) -> None:
    with pytest.raises(InputError, match=f"{words}.*from 1 to 4"):
        open_recording(recorded, first, last)


def test_a_range_counts_its_own_rounds(recorded: Path) -> None:
    whole, part = open_recording(recorded), open_recording(recorded, 2, 3)
    assert whole.whole and not part.whole
    with wfl.open_trace(recorded) as trace:
        assert part.summary()["airtime"] == float(trace["airtime"].values[1:3].sum())
        assert part.summary()["test_accuracy"] == trace["test_accuracy"].values[2]
        assert part.summary()["participants_mean"] == trace["participants"].values[1:3].mean()
    on_disk = json.loads((recorded.parent / "summary.json").read_text(encoding="utf-8"))
    assert json.loads(to_json(whole.summary())) == on_disk


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _foreign(path: Path) -> None:
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = 1


def _other_version(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["version"] = 99


def _text(path: Path) -> None:
    path.write_text("round,accuracy\n")


def _no_rounds(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["round"].resize((0,))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_truncate, "cut short"),
        (_foreign, "not a wirelessfl trace"),
        (_other_version, "version 99"),
        (_text, "not an HDF5 file"),
        (_no_rounds, "no round yet"),
        (Path.unlink, "no such trace"),
    ],
)
def test_bad_files_are_refused_in_words(copy: Path, spoil: Callable[[Path], None], words: str) -> None:
    spoil(copy)
    with pytest.raises(TraceError, match=words):
        open_recording(copy)


def test_ledgers_at_other_deltas(recorded: Path) -> None:
    recording = open_recording(recorded)
    (same,) = recompute_privacy(recording, (), None)
    assert same.epsilon_accounted == recording.summary()["epsilon_accounted"]
    assert same.epsilon_published == recording.summary()["epsilon_published"]
    loose, strict = recompute_privacy(recording, (1e-3, 1e-7), "rdp")
    assert loose.accountant == "rdp"
    assert loose.epsilon_accounted < strict.epsilon_accounted
    # Theorems 1 and 3: ε = ρ + 2 √(ρ ln 1/δ) with one ρ for every δ.
    root = [
        np.sqrt(row.epsilon_published + np.log(1 / row.delta)) - np.sqrt(np.log(1 / row.delta))
        for row in (loose, strict, same)
    ]
    assert root == pytest.approx([root[0]] * 3, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_a_delta_out_of_range(recorded: Path, delta: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        recompute_privacy(open_recording(recorded), (delta,), None)


def test_the_ledger_is_that_of_the_whole_run(recorded: Path) -> None:
    with pytest.raises(InputError, match="need all rounds"):
        recompute_privacy(open_recording(recorded, 2, 3), (1e-6,), None)
