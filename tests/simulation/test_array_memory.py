"""Memory of slots that are read at all antennas, and readings that do not depend on how they are divided."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.simulation.scenarios import PLAN, small
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.analysis.audit.noise_records import LONGEST, kept_coordinates
from wirelessfl.assembly import build_simulation
from wirelessfl.simulation.uplinks.air import antennas, every_antenna

SCENARIO = """
name: many-antennas
seed: 1
rounds: 1
data: {{limit: 400}}
model: {{name: mlp, hidden: [1330]}}
clients: {{count: 8}}
compute: {{threads: 1, chunk: 4}}
uplink: {{kind: over_the_air, receiver: {{antennas: 64{rest}}}}}
"""
RUNS = {
    "fsk_vote": "}, modulation: {scheme: fsk_vote, step: 0.001}, power_control: {policy: no_csi",
    "blind": "}, modulation: {scheme: blind}, power_control: {policy: no_csi",
    "audit": ", combiner: random",
}
LARGEST_MIB = 1024
PROGRAM = """
import sys
import wirelessfl as wfl
from benchmarks.measurement import peak_memory_mib
from wirelessfl.analysis.audit.audit import audit_scenario
if sys.argv[2] == "audit":
    audit_scenario(sys.argv[1], trials=10)
else:
    wfl.simulate(sys.argv[1], sys.argv[1] + ".run", pictures=False)
print(int(peak_memory_mib()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_64_antennas_and_100_000_coordinates_take_less_than_a_gibibyte(name: str, tmp_path: Path) -> None:
    """The largest resident memory of the whole process, libraries and training included; d = 99,760."""
    scenario = tmp_path / "many-antennas.yaml"
    scenario.write_text(SCENARIO.format(rest=RUNS[name]), encoding="utf-8")
    given = [sys.executable, "-c", PROGRAM, str(scenario), name]
    ended = subprocess.run(given, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.splitlines()[-1]) < LARGEST_MIB


@pytest.mark.parametrize("iq_packing", [False, True])
def test_readings_do_not_depend_on_the_tiles(iq_packing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a whitening filter against a jammer, symbols of all antennas by the thousands or seven at a time."""
    scenario = small(
        rounds=1,
        uplink__receiver={"antennas": 3, "combiner": "random"},
        uplink__jammer={"epsilon": 2.0, "calibration": "theorem"},
        uplink__power_control={"policy": "cross_layer", "server_gain": 60.0},
        uplink__iq_packing=iq_packing,
        channel__fading={"model": "tdl", "groups": 4},
    )
    found: list[dict[str, Any]] = []
    for tile in (1 << 12, 7):
        monkeypatch.setattr(antennas, "_TILE", tile)
        found.append(audit_simulation(build_simulation(scenario, PLAN), "tiles", trials=10).as_mapping())
    for key, value in found[0].items():
        assert found[1][key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)


@pytest.mark.parametrize("iq_packing", [False, True])
@pytest.mark.parametrize("dimension", [8, 9])
def test_signals_at_every_antenna_are_the_complex_sums(iq_packing: bool, dimension: int) -> None:
    """Σ h α x, added to what is there, with pairs of coordinates as symbols or coordinates alone."""
    generator, shape = np.random.default_rng(5), (3, 4, 1, 1)
    gains = generator.standard_normal((*shape, 2)).view(np.complex128)[..., 0]
    updates = generator.standard_normal((4, dimension))
    air = every_antenna.EveryAntenna(3, dimension, iq_packing, 1)
    air.add(torch.from_numpy(updates[:1]), gains[:, :1], None)
    air.add(torch.from_numpy(updates[1:]), gains[:, 1:], None)
    symbols = updates.astype(np.complex128)
    if iq_packing:
        even = np.pad(updates, ((0, 0), (0, dimension % 2)))
        symbols = even[:, 0::2] + 1j * even[:, 1::2]
    there = generator.standard_normal((3, symbols.shape[1], 2)).view(np.complex128)[..., 0]
    found = there.copy()
    air.add_to(found.real, found.imag, scale=2.0)
    expected = there + 2.0 * gains[:, :, 0, 0] @ symbols
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_noise_of_many_readings_is_recorded_in_stretches() -> None:
    """All of a short vector; of a long one stretches from its first to its last coordinate, as many as are allowed."""
    np.testing.assert_array_equal(kept_coordinates(1000), np.arange(1000))
    for most in (500, LONGEST):
        kept = kept_coordinates(200_000, most)
        assert kept[0] == 0 and kept[-1] == 199_999
        assert 0.9 * most < len(kept) <= most
        assert np.count_nonzero(np.diff(kept) > 1) == 16
