"""The changelog: what is not released on top, below it releases with their dates, the newest first."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from packaging.version import Version

from wirelessfl.version import VERSION

LINES = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
HEADS = [line for line in LINES if line.startswith("#")]
RELEASE = re.compile(r"## (?P<version>\d+\.\d+\.\d+) \((?P<date>\d{4}-\d{2}-\d{2})\)")


def releases() -> list[tuple[Version, date]]:
    found = [RELEASE.fullmatch(head) for head in HEADS[2:]]
    assert all(found), HEADS
    return [(Version(one["version"]), date.fromisoformat(one["date"])) for one in found if one is not None]


def test_what_is_not_released_stands_above_dated_releases_the_newest_first() -> None:
    assert HEADS[:2] == ["# Changelog", "## Unreleased"]
    assert releases() == sorted(releases(), reverse=True)


def test_the_version_is_the_newest_release_or_comes_after_it() -> None:
    newest, version = releases()[0][0], Version(VERSION)
    assert version > newest if version.is_devrelease else version == newest


def test_every_other_line_is_an_entry_or_its_continuation() -> None:
    assert all(line == "" or line.startswith(("# ", "## ", "- ", "  ")) for line in LINES)
