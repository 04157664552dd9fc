"""The version is written in one place, which packaging and the command read."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import wirelessfl
from wirelessfl.version import VERSION, package_version

ROOT = Path(__file__).resolve().parents[1]


def test_the_project_file_takes_the_version_from_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    place = project["tool"]["hatch"]["version"]
    found = re.search(place["pattern"], (ROOT / place["path"]).read_text(encoding="utf-8"))
    assert found is not None and found["version"] == VERSION == package_version() == wirelessfl.__version__


def test_the_command_tells_its_version() -> None:
    command = [sys.executable, "-m", "wirelessfl", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"wirelessfl, version {package_version()}\n"
