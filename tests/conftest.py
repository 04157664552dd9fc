"""Fixtures and settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    from hypothesis import settings
except ModuleNotFoundError:  # a machine that is there for its GPU may have no more than the tests marked cuda need
    pass
else:
    # The same generated examples in every run, and no clock in a verdict: this machine may be busy.
    settings.register_profile("wirelessfl", derandomize=True, deadline=None)
    settings.load_profile("wirelessfl")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what is marked ``cuda`` where torch sees no GPU."""
    if item.get_closest_marker("cuda") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets beside the repository; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no ../shared/data beside the repository")
    return SHARED_DATA


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of runs in this process are a few bytes: drawing takes longer than small runs and has its own tests."""
    for name in ("picture.draw_summary", "timeline.draw_timeline"):
        monkeypatch.setattr(f"wirelessfl.summary.{name}", lambda *arguments: arguments[-2].write_bytes(b"drawn"))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a machine learns about itself in a test, in processes of its own too, never reaches the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRELESSFL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def drawn_here() -> Iterator[None]:
    """Pictures of runs in this process are drawn by it, as where matplotlib is loaded: starting one takes longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirelessfl.summary.figure_process._LOADED_BY_THEM", "sys")
        yield
