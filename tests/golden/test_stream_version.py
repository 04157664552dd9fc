"""The same seed gives the same numbers for as long as the stream version stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import numbers
from wirelessfl.streams import STREAM_VERSION, Streams

ADVICE = (
    "the same seed gives other numbers: raise STREAM_VERSION in wirelessfl/streams.py, say so in CHANGELOG.md, and "
    "write the new ones down with `python -m tests.golden`"
)


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    path = numbers.path_of(STREAM_VERSION)
    assert path.exists(), f"{path}: no numbers of this version; write them down with `python -m tests.golden`"
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def test_the_streams_give_what_their_version_gives(written: dict[str, Any]) -> None:
    assert numbers.same(written["streams"], numbers.stream_words()), ADVICE


@pytest.mark.parametrize("name", numbers.SCENARIOS)
def test_runs_give_what_the_stream_version_gives(name: str, written: dict[str, Any], tmp_path: Path) -> None:
    found, expected = numbers.run_sums(numbers.SCENARIOS[name], tmp_path / name), written["runs"][name]
    others = {one: (value, found.get(one)) for one, value in expected.items() if not numbers.same({one: value}, found)}
    assert not others, f"{ADVICE}\n{others}"


def test_numbers_that_are_written_down_stay(
    written: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_digest(self: Streams, purpose: str, size: int) -> bytes:
        return digest(self, f"{purpose} anew", size)

    digest = Streams._digest
    monkeypatch.setattr(Streams, "_digest", other_digest)
    monkeypatch.setattr(numbers, "SCENARIOS", {"jammed": numbers.SCENARIOS["jammed"]})
    found = numbers.numbers(tmp_path)
    assert not numbers.same(written["streams"], found["streams"])
    assert not numbers.same(written["runs"]["jammed"], found["runs"]["jammed"])
    kept = numbers.path_of(STREAM_VERSION).read_bytes()
    with pytest.raises(FileExistsError, match="raise STREAM_VERSION"):
        numbers.write_down(tmp_path / "again")
    assert numbers.path_of(STREAM_VERSION).read_bytes() == kept
