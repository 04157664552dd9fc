"""Channels that Sionna RT itself has traced; skipped where that version is not installed.

To run it: ``pip install sionna-rt==2.2.0``, which needs LLVM 16 or later (``DRJIT_LIBLLVM_PATH``) or a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wirelessfl.channels.sources import ImportOptions, import_channels

VERSION = "2.2.0"
LIGHT, CARRIER_HZ = 299_792_458.0, 3.5e9
STATION, WALKERS = [0.0, 0.0, 20.0], [[10.0, 0.0, 1.5], [20.0, 3.0, 1.5], [30.0, 6.0, 1.5]]

pytestmark = pytest.mark.filterwarnings("default")
rt: Any = pytest.importorskip("sionna.rt", reason="Sionna RT is not installed")
if rt.__version__ != VERSION:
    pytest.skip(f"Sionna RT {rt.__version__} is not {VERSION}", allow_module_level=True)


@pytest.mark.parametrize("synthetic", [True, False])
def test_paths_and_responses_of_a_street_canyon(tmp_path: Path, synthetic: bool) -> None:
    """Both give the same gains, and the direct path alone has the amplitude and the phase of free space."""
    scene = rt.load_scene(rt.scene.simple_street_canyon)
    scene.frequency = CARRIER_HZ
    scene.tx_array = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
    scene.rx_array = rt.PlanarArray(num_rows=1, num_cols=2, pattern="iso", polarization="V")
    scene.add(rt.Receiver("station", position=STATION))
    for number, place in enumerate(WALKERS):
        scene.add(rt.Transmitter(f"walker{number}", position=place))
    frequencies = rt.subcarrier_frequencies(8, 1e6)
    found = {}
    for depth in (0, 2):
        paths = rt.PathSolver()(scene, max_depth=depth, synthetic_array=synthetic)
        a, tau = paths.cir(normalize_delays=False, out_type="numpy")
        cfr = paths.cfr(frequencies, normalize_delays=False, out_type="numpy")
        further: dict[str, Any] = {
            "frequencies": np.array(frequencies),
            "tx_positions": WALKERS,
            "rx_positions": [STATION],
        }
        np.savez(tmp_path / "paths.npz", a=a, tau=tau, **further)
        np.savez(tmp_path / "response.npz", cfr=cfr, **further)
        found[depth] = import_channels(tmp_path / "paths.npz", "sionna", ImportOptions())
        response = import_channels(tmp_path / "response.npz", "sionna")
        assert found[depth].gains.shape == (1, 3, 2, 8)
        size = np.abs(response.gains).max()
        np.testing.assert_allclose(found[depth].gains, response.gains, rtol=0, atol=1e-3 * size)
    way = np.linalg.norm(np.array(WALKERS) - STATION, axis=1)
    np.testing.assert_allclose(np.abs(found[0].gains[0, :, 0, 0]), LIGHT / CARRIER_HZ / (4 * np.pi * way), rtol=0.02)
    turned = found[0].gains[0, :, 0, 1:] / found[0].gains[0, :, 0, :-1]
    np.testing.assert_allclose(
        np.angle(turned), np.repeat(-2 * np.pi * 1e6 * way[:, None] / LIGHT, 7, axis=1), atol=1e-3
    )
    assert found[2].distance_m is not None
    np.testing.assert_allclose(found[2].distance_m[0], way, rtol=1e-6)
