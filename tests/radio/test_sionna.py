"""3GPP TR 38.901 against NVIDIA's Sionna (2.x), an independent implementation; skipped where it is not installed.

To run it: ``pip install sionna-no-rt``, which needs nothing but PyTorch and what this package needs anyway.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from wirelessfl.radio import tr38901_los_probability, tr38901_path_loss_db
from wirelessfl.radio.tr38901 import LARGE_SCALE, Scenario

pytestmark = pytest.mark.filterwarnings("default")
tr38901: Any = pytest.importorskip("sionna.phy.channel.tr38901", reason="Sionna is not installed")

H_BS: dict[Scenario, float] = {"uma": 25.0, "umi": 10.0, "inh": 3.0}
DISTANCES: dict[Scenario, NDArray[np.float64]] = {
    "uma": np.geomspace(10.0, 5000.0, 400),
    "umi": np.geomspace(10.0, 5000.0, 400),
    "inh": np.geomspace(1.0, 149.0, 400),
}
"""Metres; up to where each model holds. Breakpoints lie between two of them."""
SHADOWING, RICIAN_K = 3, 4
"""Places of SF and K among Sionna's large-scale parameters, whose logarithms it keeps (dB/10)."""


def sionna_links(scenario: Scenario, los: bool, carrier_hz: float, h_ut: float) -> Any:
    """Sionna's model of one base station in the origin and terminals in a row, in double precision."""
    panel = tr38901.PanelArray(
        num_rows_per_panel=1,
        num_cols_per_panel=1,
        polarization="single",
        polarization_type="V",
        antenna_pattern="omni",
        carrier_frequency=carrier_hz,
        precision="double",
        device="cpu",
    )
    arrays = {"ut_array": panel, "bs_array": panel, "direction": "uplink", "precision": "double", "device": "cpu"}
    match scenario:
        case "uma":
            model = tr38901.UMaScenario(carrier_hz, "low", **arrays)
        case "umi":
            model = tr38901.UMiScenario(carrier_hz, "low", **arrays)
        case "inh":
            model = tr38901.InHScenario(carrier_hz, "mixed", **arrays)
    distance = torch.from_numpy(DISTANCES[scenario])
    terminals = torch.stack([distance, torch.zeros_like(distance), torch.full_like(distance, h_ut)], dim=-1)[None]
    station = torch.tensor([[[0.0, 0.0, H_BS[scenario]]]], dtype=torch.float64)
    model.set_topology(
        ut_loc=terminals,
        bs_loc=station,
        ut_orientations=torch.zeros_like(terminals),
        bs_orientations=torch.zeros_like(station),
        ut_velocities=torch.zeros_like(terminals),
        in_state=torch.full((1, len(distance)), scenario == "inh"),
        los=los,
    )
    return model


def numbers(values: Any) -> NDArray[np.float64]:
    """(terminals,) of a tensor over batch, base stations and terminals."""
    return np.asarray(values.reshape(-1).cpu().numpy(), dtype=np.float64)


@pytest.mark.parametrize("scenario", ["uma", "umi", "inh"])
@pytest.mark.parametrize("los", [True, False])
@pytest.mark.parametrize(("carrier_hz", "h_ut"), [(3.5e9, 1.5), (28e9, 1.5), (2e9, 2.5)])
def test_path_loss(scenario: Scenario, los: bool, carrier_hz: float, h_ut: float) -> None:
    """Both in double precision: they differ by rounding alone."""
    distance = DISTANCES[scenario]
    theirs = numbers(sionna_links(scenario, los, carrier_hz, h_ut).basic_pathloss)
    ours = tr38901_path_loss_db(scenario, distance, np.full(len(distance), los), carrier_hz, H_BS[scenario], h_ut)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("scenario", "h_ut"), [("uma", 1.5), ("uma", 16.0), ("umi", 1.5), ("inh", 1.5)])
def test_line_of_sight_probability(scenario: Scenario, h_ut: float) -> None:
    """As the standard prints it; ours is a probability also where the printed product passes 1."""
    theirs = numbers(sionna_links(scenario, True, 3.5e9, h_ut).los_probability)
    ours = tr38901_los_probability(scenario, DISTANCES[scenario], h_ut)
    np.testing.assert_allclose(ours, np.minimum(theirs, 1.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scenario", ["uma", "umi", "inh"])
@pytest.mark.parametrize("los", [True, False])
def test_shadowing_and_rician_factor(scenario: Scenario, los: bool) -> None:
    model = sionna_links(scenario, los, 3.5e9, 1.5)
    std_db = 10.0 * numbers(model.lsp_log_std[..., SHADOWING])
    np.testing.assert_allclose(std_db, LARGE_SCALE[scenario].shadowing_std_db[0 if los else 1], rtol=0, atol=1e-9)
    if los:
        k_db = 10.0 * numbers(model.lsp_log_mean[..., RICIAN_K])
        np.testing.assert_allclose(k_db, LARGE_SCALE[scenario].rician_k_db, rtol=0, atol=1e-9)
