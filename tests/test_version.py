"""The version is told by what is installed, and in a checkout that is not by its project file."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

from wirelessfl.version import package_version


def test_a_checkout_that_is_not_installed_has_the_version_of_its_project_file(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.metadata.version("wirelessfl")
    assert package_version() == installed

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("wirelessfl.version.version", absent)
    assert package_version() == installed


def test_the_command_tells_its_version() -> None:
    command = [sys.executable, "-m", "wirelessfl", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"wirelessfl, version {package_version()}\n"
