"""What is kept in the user's cache, and what happens where nothing can be."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wirelessfl.assembly.calibration import ChunkCache, user_cache

CHUNKS = (25, 13, 9)


def entry(folder: Path) -> Path:
    """The file of the key that these tests use."""
    return folder / "chunk-key.json"


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path / "made" / "when needed")
    assert cache.load("key", CHUNKS) is None
    assert cache.is_writable()
    assert cache.keep("key", 13, CHUNKS) == 13
    assert cache.load("key", CHUNKS) == 13
    assert cache.load("other", CHUNKS) is None
    assert [path.name for path in cache.folder.iterdir()] == ["chunk-key.json"]  # nothing half-written stays
    assert json.loads(entry(cache.folder).read_text()) == {"chunk": 13}


def test_the_first_entry_wins(tmp_path: Path) -> None:
    cache = ChunkCache(tmp_path)
    assert cache.keep("key", 13, CHUNKS) == 13
    assert cache.keep("key", 25, CHUNKS) == 13
    assert cache.load("key", CHUNKS) == 13
    assert len(list(tmp_path.iterdir())) == 1


def test_of_several_at_once_all_take_away_the_same(tmp_path: Path) -> None:
    chunks = range(1, 9)
    together = threading.Barrier(len(chunks))

    def keep(chunk: int) -> int | None:
        together.wait()
        return ChunkCache(tmp_path).keep("key", chunk, chunks)

    with ThreadPoolExecutor(len(chunks)) as pool:
        taken = set(pool.map(keep, chunks))
    assert taken == {ChunkCache(tmp_path).load("key", chunks)}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "25", '{"chunk": "25"}', '{"chunk": 0}', '{"chunk": 2}', '{"chunk": true}', "[" * 100_000],
)
def test_a_damaged_entry_counts_as_none_and_is_replaced(tmp_path: Path, content: str) -> None:
    cache = ChunkCache(tmp_path)
    entry(tmp_path).write_text(content)
    assert cache.load("key", CHUNKS) is None
    assert cache.keep("key", 9, CHUNKS) == 9
    assert cache.load("key", CHUNKS) == 9


def test_bytes_that_are_no_text_count_as_damage(tmp_path: Path) -> None:
    entry(tmp_path).write_bytes(b"\xff\xfe\x00")
    assert ChunkCache(tmp_path).load("key", CHUNKS) is None


def test_a_place_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = ChunkCache(tmp_path / "file" / "cache")
    assert not cache.is_writable()
    assert cache.load("key", CHUNKS) is None
    assert cache.keep("key", 9, CHUNKS) is None


def test_a_folder_in_the_place_of_an_entry_raises_nothing(tmp_path: Path) -> None:
    entry(tmp_path).mkdir()
    cache = ChunkCache(tmp_path)
    assert cache.load("key", CHUNKS) is None
    assert cache.keep("key", 9, CHUNKS) is None


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    cache = ChunkCache(tmp_path)
    assert cache.keep("key", 13, CHUNKS) == 13
    assert cache.keep("key", 25, CHUNKS) == 13
    assert cache.load("key", CHUNKS) == 13


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRELESSFL_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_cache() == ChunkCache(tmp_path / "own")
    monkeypatch.delenv("WIRELESSFL_CACHE")
    assert user_cache() == ChunkCache(tmp_path / "xdg" / "wirelessfl")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache() == ChunkCache(tmp_path / "home" / ".cache" / "wirelessfl")


def test_nobody_at_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("WIRELESSFL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert user_cache() is None
