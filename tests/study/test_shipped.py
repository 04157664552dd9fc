"""The studies that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.scenarios import PLAN
from wirelessfl.assembly import build_simulation
from wirelessfl.scenario import copy_shipped, list_shipped
from wirelessfl.study import load_study

STUDIES = {shipped.name: shipped for shipped in list_shipped("studies")}


def test_the_shelf() -> None:
    assert set(STUDIES) >= {
        "snr-clients",
        "privacy-accuracy",
        "eavesdropper-places",
        "deadline",
        "mechanisms",
        "ota-digital-secagg",
        "jammer-antennas",
        "jammer-arrays",
        "sdma-airtime",
        "codecs",
        "niid-bench",
        "robust-rules",
        "attacks-uplinks",
        "slot-groups",
        "selection-rules",
    }


def test_no_name_means_both_a_study_and_a_scenario() -> None:
    scenarios = {shipped.name for shipped in list_shipped()}
    assert not scenarios & set(STUDIES)
    assert not any("studies" in name for name in scenarios)


@pytest.mark.parametrize("name", STUDIES)
def test_they_are_what_they_say(name: str, tmp_path: Path) -> None:
    plan = load_study(name)
    assert plan.name == name
    assert len(plan.seeds) >= 5
    assert len(plan.factors) == (1 if name in ("ota-digital-secagg", "codecs", "selection-rules") else 2)
    text = STUDIES[name].path.read_text(encoding="utf-8")
    assert 20 <= len(STUDIES[name].description) <= 120
    assert "What to look at" in text
    assert load_study(copy_shipped(name, tmp_path, "studies")).runs == plan.runs
    (tmp_path / "alone.yaml").write_text(plan.text, encoding="utf-8")
    alone = load_study(tmp_path / "alone.yaml")
    assert (alone.runs, alone.name, alone.x, alone.metrics) == (plan.runs, plan.name, plan.x, plan.metrics)


def test_the_study_of_snr_and_clients() -> None:
    plan = load_study("snr-clients", ["base.rounds=10"])
    assert [factor.name for factor in plan.factors] == ["uplink.snr_db", "clients.count"]
    assert {run.scenario.rounds for run in plan.runs} == {10}


def test_every_mechanism_is_calibrated_to_the_same_accounted_epsilon() -> None:
    plan = load_study("mechanisms")
    for run in plan.runs:
        privacy: Any = run.scenario.training.privacy
        assert privacy.epsilon == plan.factors[0].levels[run.levels[0]][0]
        assert privacy.target == "accounted"
    labels = [plan.factors[1].label(level) for level in range(len(plan.factors[1].levels))]
    assert labels == [
        "gaussian",
        "gaussian, shuffle",
        "gaussian, per_layer",
        "gaussian, quantile",
        "gaussian, dynamic",
        "gaussian, moo",
        "zcdp",
        "wavelet, weighted",
        "wavelet, coefficients",
    ]


@pytest.mark.slow
def test_a_jammer_is_nulled_by_two_antennas() -> None:
    """Ten times the amplitude lowers ε at one antenna to less than a fifth; at two or more it does not."""
    epsilon = {}
    for one in load_study("jammer-antennas", {"base.evaluate.every": 20, "seeds": 1}).runs:
        simulation = build_simulation(one.scenario, PLAN)
        simulation.run(lambda *_: None)
        uplink: Any = one.scenario.uplink
        epsilon[uplink.receiver.antennas, uplink.jammer.margin] = simulation.ledger.epsilon_accounted()
    assert epsilon[1, 10] < epsilon[1, 1] / 5
    for antennas in (2, 4, 8):
        assert epsilon[antennas, 10] > max(0.5 * epsilon[antennas, 1], 1.5 * epsilon[1, 1])


@pytest.mark.slow
def test_a_jammer_is_nulled_by_more_antennas_than_it_has_itself() -> None:
    """At one antenna and as many as the server ε stays below half of what a nulled jammer leaves."""
    epsilon = {}
    for one in load_study("jammer-arrays", {"base.evaluate.every": 20, "seeds": 1}).runs:
        simulation = build_simulation(one.scenario, PLAN)
        simulation.run(lambda *_: None)
        uplink: Any = one.scenario.uplink
        epsilon[uplink.receiver.antennas, uplink.jammer.antennas] = simulation.ledger.epsilon_accounted()
    assert epsilon[1, 1] == pytest.approx(epsilon[1, 4], rel=0.1)
    for antennas in (2, 4):
        assert epsilon[antennas, antennas] < 0.5 * epsilon[antennas, 1]
    for jammers in (1, 2, 4):
        assert epsilon[8, jammers] > 0.5 * epsilon[8, 1]


def test_three_uplinks_have_the_same_band_power_deadline_and_epsilon() -> None:
    plan = load_study("ota-digital-secagg")
    assert plan.x == ("round", "sim_time", "energy", "epsilon")
    assert [plan.factors[0].label(level) for level in range(3)] == ["over_the_air", "digital", "secure_aggregation"]
    scenarios: list[Any] = [run.scenario for run in plan.runs]
    for common in ("data", "model", "clients", "channel", "timing", "privacy", "rounds"):
        assert len({str(getattr(scenario, common)) for scenario in scenarios}) == 1, common
    assert {(one.uplink.tx_power_dbm, one.uplink.clip) for one in scenarios} == {(10, 4.0)}
    assert {one.training.optimizer.lr * one.training.privacy.clip for one in scenarios} == {4.0}
    targets = [getattr(one.uplink, "power_control", one.training.privacy).epsilon for one in scenarios]
    assert set(targets) == {8}
