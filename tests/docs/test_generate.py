"""What the site makes by itself: complete reference pages, with the results of the papers."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import click
import pytest

from tests.docs.hooks import load_hook
from wirelessfl.cli import main
from wirelessfl.scenario import Scenario, all_keys, list_shipped
from wirelessfl.study.file import StudyFile
from wirelessfl.trace.schema import GROUPS


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return load_hook("generate")


def test_every_key_has_an_entry_with_its_meaning(site: ModuleType) -> None:
    for section, page in ((Scenario, site.scenario_page()), (StudyFile, site.study_page())):
        entries = page.split("\n`")
        for key in all_keys(section):
            with_path = [entry for entry in entries if entry.startswith((f"{key.path}`", f"{key.path}: "))]
            assert any(site._text(key.description) in entry for entry in with_path), key.path


def test_every_command_and_option_is_listed(site: ModuleType) -> None:
    page = site.commands_page()
    context = click.Context(main, info_name="wirelessfl")
    for name in main.list_commands(context):
        section = page.partition(f"## `wirelessfl {name}`")[2]
        assert section, name
        command = main.get_command(context, name)
        assert command is not None
        options = [option for option in command.params if isinstance(option, click.Option)]
        assert all(option.opts[0] in section for option in options if option.opts[0] != "--help")


def test_everything_shipped_and_recorded_is_shown(site: ModuleType) -> None:
    shipped = site.shipped_page()
    assert all(f"### {one.name}\n" in shipped for shelf in ("scenarios", "studies") for one in list_shipped(shelf))
    trace = site.trace_page()
    assert all(f"`{variable.name}`" in trace for group in GROUPS for variable in group.variables)


@pytest.mark.slow
def test_pages_of_papers_take_in_their_results(site: ModuleType) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="papers/index.md"))
    text = site.on_page_markdown("{{ overview }}", page)
    assert all(f"({name}.md)" in text for name in site.PAPERS)
    with pytest.raises(ValueError, match="unknown marker"):
        site.on_page_markdown("{{ claims }}", page)
    elsewhere = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    assert site.on_page_markdown("{{ claims }}", elsewhere) == "{{ claims }}"
