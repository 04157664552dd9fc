"""Hooks of the documentation as modules: MkDocs loads them from files, and ``docs`` is no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_hook(name: str) -> ModuleType:
    """A hook, loaded anew; those that it imports are found beside it."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        spec.loader.exec_module(module)
    return module
