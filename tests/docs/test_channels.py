"""The page of the channel profiles: every profile with its keys, sources and pictures."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from wirelessfl.scenario.yamltree import inline_yaml

ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted((ROOT / "channels").glob("*.yaml"))


@pytest.fixture(scope="module")
def channels() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("channels", ROOT / "docs" / "channels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "docs"))
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "docs"))


def test_every_profile_has_its_purpose_keys_and_sources(channels: ModuleType) -> None:
    sections = channels.channels_page().split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == [path.stem for path in PROFILES]
    for path, section in zip(PROFILES, sections, strict=True):
        text = path.read_text(encoding="utf-8")
        first_words = text.removeprefix("# ").split()[:5]
        assert " ".join(first_words) in section
        for part, below in yaml.safe_load(text).items():
            for key, value in below.items() if isinstance(below, dict) else [("", below)]:
                wanted = f"| `channel.{part}.{key}".rstrip(".") + f"` | `{inline_yaml(value)}` | "
                row = next(line for line in section.splitlines() if wanted in line)
                assert len(row.partition(wanted)[2]) > 5, row
            if part in {"fading", "correlation", "pathloss"}:
                assert f"`{part}: {below['model']}` | {channels.SOURCES[part, below['model']]}" in section


def test_numbers_are_those_of_the_models(channels: ModuleType) -> None:
    _, _, section = channels.channels_page().partition("## urban-macro\n")
    assert "| 500 | 98.3 | 129.9 | 4% |" in section  # 129.9 dB is in the profile's own words too
    assert "Largest Doppler shift: 9.7 Hz." in section


def test_pictures_differ_by_theme_and_profile(channels: ModuleType) -> None:
    scenario = channels.profile("urban-macro")
    drawn = {part: channels.in_both_themes(draw, (3.4, 2.4)) for part, draw in channels.panels(scenario).items()}
    assert set(drawn) == {"loss", "fading"}
    assert all(b"#d5d8e0" in themes["dark"] and b"#d5d8e0" not in themes["light"] for themes in drawn.values())
    assert set(channels.panels(channels.profile("rayleigh-normalised"))) == {"fading"}
    assert channels.panels(channels.profile("ideal")) == {}
