"""Runs are known by what they compute."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.study.studies import BASE
from wirelessfl.scenario import dump_scenario, parse_scenario
from wirelessfl.scenario.yamltree import dump_yaml
from wirelessfl.study.content import content_id

TEXT = dump_yaml(BASE)


def of(overrides: dict[str, Any] | None = None, text: str = TEXT) -> str:
    return content_id(parse_scenario(text, "small", overrides or {}))


def test_it_is_the_hash_of_the_resolved_scenario() -> None:
    resolved = parse_scenario(TEXT).model_dump(mode="json", by_alias=True)
    assert resolved.pop("downlink") == {"model": "error_free"}
    for added_later in ("validation", "test", "augment"):  # at the value that means what was done before
        assert resolved["data"].pop(added_later) is None
    assert (resolved["model"].pop("trainable"), resolved["model"].pop("lora")) == (".*", None)
    assert resolved["privacy"].pop("observer") is None
    assert resolved["training"].pop("partial_work") is False
    assert resolved["timing"].pop("compute_deadline_s") is None
    assert resolved["clients"].pop("roles") == []
    assert resolved["evaluate"].pop("client_drift") is False
    assert resolved["training"].pop("robust") == {"rule": "mean"}
    assert resolved["uplink"].pop("slot_groups") == 1
    assert resolved["uplink"]["receiver"].pop("array") == {"geometry": "ula", "spacing": 0.5}
    assert resolved["uplink"]["receiver"].pop("correlation") == {"model": "none"}
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"))
    assert of() == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_digital_uplink_without_an_array_keeps_its_id() -> None:
    scenario = parse_scenario(TEXT, "small", {"uplink": {"kind": "digital"}})
    tree = scenario.model_dump(mode="json", by_alias=True)["uplink"]
    assert tree["receiver"] is None
    assert of({"uplink": {"kind": "digital", "receiver": None}}) == of({"uplink": {"kind": "digital"}})
    assert of({"uplink": {"kind": "digital", "receiver": {"antennas": 1}}}) != of({"uplink": {"kind": "digital"}})


def test_how_it_was_written_does_not_count() -> None:
    reversed_keys = dump_yaml(dict(reversed(BASE.items())))
    assert of(text=f"# a comment\n{reversed_keys}") == of()
    assert of({"uplink.snr_db": 1}) == of({"uplink.snr_db": 1.0}) == of()  # 1 is the default
    assert of(text=dump_scenario(parse_scenario(TEXT))) == of()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 12},
        {"rounds": 4},
        {"name": "other"},
        {"uplink.snr_db": 1.0000000000000002},
        {"uplink.jammer": {}},
        {"training.algorithm": {"name": "upcycled", "lambda": {1: 0.15, 2: 0.4}}},
        {"compute.threads": 1},
        {"timing.deadline_s": 3},
        {"model.trainable": "0.*"},
        {"model.lora": {}},
        {"data.augment": {}},
        {"data.validation": {}},
        {"data.test": {}},
    ],
    ids=str,
)
def test_every_key_counts(change: dict[str, Any]) -> None:
    assert of(change) != of()


def test_keys_added_later_leave_the_ids_of_stored_runs_alone() -> None:
    """Ids from before there were these keys, which names of folders and tables of finished studies hold."""
    adult = {"data.dataset.source": "synthetic"}
    assert content_id(wfl.load_scenario("quickstart")) == "0584764b852c52fb"
    assert content_id(wfl.load_scenario("zcdp-secagg-adult", overrides=adult)) == "d394de750a312b77"
    for change in ({"data.dataset.fnlwgt": True}, {"data.dataset.scaling": "none"}):
        assert content_id(wfl.load_scenario("zcdp-secagg-adult", overrides=adult | change)) != "d394de750a312b77"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("who.csv", {"faults.availability": {"model": "recorded", "file": "who.csv"}}),
        ("where.csv", {"channel.placement": {"scheme": "positions", "file": "where.csv"}}),
        ("h.npz", {"channel.fading": {"model": "recorded", "file": "h.npz"}}),
        ("data.csv", {"data.dataset": {"name": "table", "file": "data.csv", "label": "y"}}),
        ("test.csv", {"data.dataset": {"name": "table", "file": "x", "test_file": "test.csv", "label": "y"}}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_the_bytes_of_every_file_count(
    name: str, change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study that went on with another file mixed the runs of both."""
    monkeypatch.chdir(tmp_path)
    nowhere = of(change)
    (tmp_path / name).write_text("one")
    one = of(change)
    assert of(change) == one
    (tmp_path / name).write_text("other")
    assert len({nowhere, one, of(change)}) == 3
    (tmp_path / name).write_text("one")
    assert of(change) == one


@pytest.mark.slow
def test_it_is_the_same_in_every_process() -> None:
    code = (
        "import sys; from wirelessfl.scenario import parse_scenario; from wirelessfl.study.content import content_id\n"
        "print(content_id(parse_scenario(sys.stdin.read())))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], input=TEXT, capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout.strip() == of()
