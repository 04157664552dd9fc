"""The clip beside the updates of a run, recomputed from the trace, and where a user is told of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.analysis.report.page import write_report
from wirelessfl.cli import main
from wirelessfl.scenario import dump_scenario


def simulated(folder: Path, **overrides: Any) -> tuple[dict[str, Any], np.ndarray]:
    """The summary of a run, and all norms of its updates."""
    result = wfl.simulate(small(rounds=2, **overrides), out=folder, pictures=False)
    norms = wfl.open_trace(folder / "trace.h5")["update_norm"].values
    return result.summary, norms[np.isfinite(norms)]


@pytest.mark.parametrize("clip", [1.0, 0.1])
def test_decibels_are_those_of_the_median_norm(tmp_path: Path, clip: float) -> None:
    summary, norms = simulated(tmp_path / "run", uplink__clip=clip)
    expected = 20 * math.log10(clip / np.median(norms))
    assert summary["clip_excess_db"] == pytest.approx(expected)
    assert expected > 10
    (words,) = summary["warnings"]
    assert f"uplink.clip is {expected:.1f} dB above the median norm" in words
    assert f"{np.median(norms):.3g} fits" in words and "private data" in words


@pytest.mark.slow
def test_the_clip_that_fits_ends_the_warning_and_gains_what_was_said(tmp_path: Path) -> None:
    """By the same α_u the noise on the model is τσ_m: it falls by the decibels that the clip was too large."""
    loose, _ = simulated(tmp_path / "loose")
    tight, norms = simulated(tmp_path / "tight", uplink__clip=loose["clip_fitting"])
    assert tight["warnings"] == [] and abs(tight["clip_excess_db"]) < 3
    assert norms.max() <= loose["clip_fitting"] * (1 + 1e-6)


def test_expected_norms_are_judged_in_place_of_the_clip(tmp_path: Path) -> None:
    summary, norms = simulated(
        tmp_path / "run", uplink__power_control={"policy": "gbma", "expected_norms": [0.5, 0.25]}
    )
    ratios = np.concatenate([norms[:6] / 0.5, norms[6:] / 0.25])
    assert summary["clip_excess_db"] == pytest.approx(-20 * math.log10(np.median(ratios)))
    assert "uplink.power_control.expected_norms is" in summary["warnings"][0]


def test_noise_of_a_trusted_server_is_set_for_a_clip_too(tmp_path: Path) -> None:
    training = {"mechanism": "gaussian", "unit": "client", "clip": 3.0}
    summary, norms = simulated(tmp_path / "run", uplink={"kind": "ideal"}, training__privacy=training)
    assert summary["clip_excess_db"] == pytest.approx(20 * math.log10(3.0 / np.median(norms)))
    assert "training.privacy.clip is" in summary["warnings"][0]


@pytest.mark.parametrize(
    "overrides",
    [
        {"uplink": {"kind": "ideal"}},
        {"uplink__power_control": {"policy": "gbma", "expected_norms": "measured"}},
        {"faults__fade_threshold": 1e9},
    ],
)
def test_where_no_clip_sets_the_scale_nothing_is_said(tmp_path: Path, overrides: dict[str, Any]) -> None:
    summary, _ = simulated(tmp_path / "run", **overrides)
    assert summary["warnings"] == [] and math.isnan(summary["clip_excess_db"])


@pytest.mark.slow
def test_a_run_warns_once_on_stderr_and_in_its_report(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(dump_scenario(small(rounds=2)))
    out = tmp_path / "run"
    ran = CliRunner().invoke(main, ["simulate", str(scenario), "--out", str(out), "--json"])
    assert ran.exit_code == 0
    assert ran.stderr.count("warning: uplink.clip is") == 1
    assert json.loads(ran.stdout)["warnings"] == json.loads((out / "summary.json").read_text())["warnings"] != []
    page = tmp_path / "report.html"
    write_report([out], page)
    assert "dB above the median norm of the updates" in page.read_text()
