"""The home page: pictures in both themes, and the ways into the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from matplotlib.image import imread

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ("first-run", "timeline")


@pytest.mark.parametrize("name", [f"{name}{width}" for name in PICTURES for width in ("", "-phone")])
def test_pictures_are_clear_with_ink_that_is_read_in_their_theme(built_site: Path, name: str) -> None:
    light, dark = (imread(built_site / "pictures" / f"{name}-{theme}.png") for theme in ("light", "dark"))
    assert light.shape == dark.shape and light.shape[1] > (500 if name.endswith("phone") else 1000)
    assert light[0, 0, 3] == dark[0, 0, 3] == 0
    title = slice(0, light.shape[0] // 25)  # text alone
    ink = [picture[title][picture[title][..., 3] > 0.9][:, :3].mean() for picture in (light, dark)]
    assert ink[0] < 0.2 and ink[1] > 0.7


def test_the_site_ships_no_programs(built_site: Path) -> None:
    assert not [path.name for path in built_site.rglob("*.py")]


def test_the_page_leads_on_and_shows_every_picture(built_site: Path) -> None:
    page = (built_site / "index.html").read_text(encoding="utf-8")
    main = page[page.index("<article") : page.index("</article>")]
    for name in PICTURES:
        for theme in ("light", "dark"):
            assert f'class="on-wide" src="pictures/{name}-{theme}.png#only-{theme}"' in main
            assert f'class="on-phone" src="pictures/{name}-phone-{theme}.png#only-{theme}"' in main
    ways = ("first-run", "first-study", "own-policy", "researchers-day")
    wanted = {
        *(f"tutorials/{name}.html" for name in ways),
        "how-to/share.html",
        "explanation/epsilon.html",
        "cite.html",
    }
    assert wanted <= set(re.findall(r'href="([^"#]+)"', main))


def test_the_home_page_names_every_page() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([\w/-]+\.md)\)", text[text.index("## All pages") :])
    assert sorted(named) == sorted(set(_pages(nav)) - {"index.md"})


def _pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from _pages(part)


def test_the_three_uplinks_are_shown_in_both_themes(built_site: Path) -> None:
    """Whose pictures are drawn from a study by docs/study_pictures.py, not when the site is built."""
    name = "over-the-air-against-digital"
    page = (built_site / "tutorials" / f"{name}.html").read_text(encoding="utf-8")
    assert all(f'src="{name}-{theme}.png#only-{theme}"' in page for theme in ("light", "dark"))
    light, dark = (imread(built_site / "tutorials" / f"{name}-{theme}.png") for theme in ("light", "dark"))
    assert light.shape == dark.shape and light[0, 0, 3] == dark[0, 0, 3] == 0
