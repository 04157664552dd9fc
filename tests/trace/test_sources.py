"""Sources of code from outside in a trace: kept with the run, read without running them, refused where damaged."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl import plugins
from wirelessfl.errors import TraceError
from wirelessfl.trace import read_attributes, recorded_sources

LAW = """import numpy as np
from sources_of_a_trace_scale import K
class Law:
    def draw(self, stream):
        return K * np.ones(len(stream.nodes), complex)
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The trace of a run with a class of the user's."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "sources_of_a_trace.py").write_text(LAW, encoding="utf-8")
    (folder / "sources_of_a_trace_scale.py").write_text("K = 1.0\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins.places, "_searched", [folder])
        patch.setattr(plugins.blame, "_loaded", {})
        scenario = small(rounds=1, channel__fading={"model": "sources_of_a_trace:Law"})
        wfl.simulate(scenario, folder / "run", device="cpu", threads=1, pictures=False)
        yield folder / "run" / "trace.h5"
    for name in [name for name in sys.modules if name.startswith("sources_of_a_trace")]:
        del sys.modules[name]


def test_the_sources_of_a_run_are_in_its_trace(trace: Path) -> None:
    sources = recorded_sources(trace)
    assert sources is not None
    assert sources.files == {"sources_of_a_trace.py": LAW, "sources_of_a_trace_scale.py": "K = 1.0\n"}
    attributes = read_attributes(trace)
    assert attributes["sources_digest"] == sources.digest
    assert wfl.open_trace(trace).attrs["sources"] == sources.text


def test_a_run_of_the_package_alone_has_none(tmp_path: Path) -> None:
    wfl.simulate(small(rounds=1), tmp_path / "run", device="cpu", threads=1, pictures=False)
    assert recorded_sources(tmp_path / "run" / "trace.h5") is None
    assert not {"sources", "sources_digest"} & set(read_attributes(tmp_path / "run" / "trace.h5"))


def altered(trace: Path, folder: Path, **attributes: str | int | None) -> Path:
    copy = folder / "trace.h5"
    shutil.copy(trace, copy)
    with h5py.File(copy, "r+") as file:
        for name, value in attributes.items():
            del file.attrs[name]
            if value is not None:
                file.attrs[name] = value
    return copy


@pytest.mark.parametrize(
    "sources",
    [
        json.dumps({"files": {"../../elsewhere.py": "open('ran', 'w')"}, "packages": {}}),
        json.dumps({"files": {"/tmp/elsewhere.py": "open('ran', 'w')"}, "packages": {}}),
        json.dumps({"files": {}, "packages": {}}),  # with blanks
        "[",
        7,
    ],
)
def test_hostile_sources_are_damage(sources: str | int, trace: Path, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"attribute sources: .* not a JSON mapping of sources"):
        recorded_sources(altered(trace, tmp_path, sources=sources))


@pytest.mark.parametrize("name", ["sources", "sources_digest"])
def test_sources_of_another_digest_are_refused(name: str, trace: Path, tmp_path: Path) -> None:
    other: dict[str, str | int | None] = {name: '{"files":{},"packages":{}}'}
    with pytest.raises(TraceError, match="the sources it holds are not those it was begun with"):
        recorded_sources(altered(trace, tmp_path, **other))
    with pytest.raises(TraceError, match="damaged"):
        recorded_sources(altered(trace, tmp_path, sources=None))
