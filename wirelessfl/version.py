"""Which version of the package runs."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def package_version() -> str:
    """The version of wirelessfl that runs here; in a checkout that is not installed, that of its ``pyproject.toml``."""
    try:
        return version("wirelessfl")
    except PackageNotFoundError:
        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
