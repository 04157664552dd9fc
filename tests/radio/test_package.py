"""The package's face: what it exports exists, and importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys

import wirelessfl.radio

FOREIGN = ("torch", "simpy", "click", "h5py", "yaml", "rich", "pydantic", "pandas", "wirelessfl.simulation")


def test_every_exported_name_exists_once() -> None:
    assert len(set(wirelessfl.radio.__all__)) == len(wirelessfl.radio.__all__)
    for name in wirelessfl.radio.__all__:
        assert hasattr(wirelessfl.radio, name)


def test_the_radio_brings_along_no_torch_no_clock_and_no_files() -> None:
    """Compared with the package's own face, which is imported first."""
    script = (
        "import sys, wirelessfl; before = set(sys.modules); import wirelessfl.radio;"
        f"print([name for name in {FOREIGN!r} if name in set(sys.modules) - before])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
