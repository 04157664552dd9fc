"""The page on what an ε means: its numbers are those of the accountant, of plans and of stored audits."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import wirelessfl as wfl
from tests.docs.hooks import load_hook
from wirelessfl.cli.meaning import HOLDING, ON_THE_PAGE, PAGE
from wirelessfl.scenario import list_shipped

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def epsilon() -> ModuleType:
    return load_hook("epsilon")


def test_the_page_is_where_the_terminal_says_it_is() -> None:
    assert (DOCS.parent / PAGE).is_file()
    assert {*HOLDING} <= {shipped.name for shipped in list_shipped()}


def test_every_place_of_the_page_is_filled(epsilon: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epsilon, "LEVERS", epsilon.LEVERS[:2])
    text = (DOCS.parent / PAGE).read_text(encoding="utf-8")
    filled = epsilon.on_page_markdown(text)
    assert "<!--" in text and "<!--" not in filled
    assert "| 2 | 367 | quickstart as it is<br>`wirelessfl validate quickstart` |" in filled
    assert re.search(r"with Gaussian noise \| 59\.9 % \| 79\.8 % \| 99\.96 % \| >?[\d.]+ % \|", filled)
    with pytest.raises(ValueError, match="no such place on the page: nowhere"):
        epsilon.fill("nowhere")


def test_what_lowers_epsilon_lowers_it(epsilon: ModuleType) -> None:
    rows = {lever.words: lever for lever in epsilon.LEVERS}
    accounted = {
        words: float(epsilon.lever_row(rows[words])[1])
        for words in ("quickstart as it is", "more noise from the jammer", "noise by what holds, not by the theorem")
    }
    assert accounted["quickstart as it is"] > accounted["more noise from the jammer"] > 10
    assert accounted["noise by what holds, not by the theorem"] == pytest.approx(2.0)


def test_the_stored_audits_are_those_of_today_s_scenarios(epsilon: ModuleType) -> None:
    audits = epsilon.stored_audits()
    assert len(audits) == len(ON_THE_PAGE) == len(epsilon.PLAYED)
    for audit, (expected, lever) in zip(audits, epsilon.PLAYED.items(), strict=True):
        forecast = wfl.make_plan(lever.scenario, lever.changes).forecast
        assert (
            audit["epsilon_accounted"] == pytest.approx(forecast.epsilon_accounted) == pytest.approx(expected, rel=0.01)
        )
        assert audit["epsilon_published"] == pytest.approx(forecast.epsilon_published)
        assert 0 < audit["epsilon_empirical"] < audit["epsilon_accounted"]
        assert len(audit["with_canary"]) == len(audit["without"]) == audit["trials"] >= 100
        apart = min(audit["with_canary"]) > max(audit["without"]) or max(audit["with_canary"]) < min(audit["without"])
        assert apart == (expected >= 50), "the page says at which ε not one game is in doubt"
        assert np.mean(audit["with_canary"]) != np.mean(audit["without"])


@pytest.mark.slow
def test_pictures_of_the_page_are_drawn(epsilon: ModuleType, tmp_path: Path) -> None:
    text = (DOCS.parent / PAGE).read_text(encoding="utf-8")
    assert set(re.findall(r"\((epsilon-[a-z-]+\.svg)\)", text)) == epsilon.PICTURES.keys()
    for name, draw in epsilon.PICTURES.items():
        draw(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<?xml")
