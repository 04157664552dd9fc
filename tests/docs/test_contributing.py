"""The table of families in CONTRIBUTING.md says where their members are."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pytest

from wirelessfl.scenario.base import CoreVariant
from wirelessfl.scenario.scenario import families

ROOT = Path(__file__).parents[2]


def table() -> dict[str, list[str]]:
    """The rows by family: class, variant and check."""
    _, _, below = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| family | class | variant |")
    lines = below.partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


OPEN = {name: family for name, family in families().items() if family.external is not None}


def test_every_family_has_a_row() -> None:
    assert list(table()) == list(OPEN)


@pytest.mark.parametrize("name", OPEN)
def test_the_row_of_a_family_is_true(name: str) -> None:
    external = OPEN[name].external
    assert external is not None
    where, variant, check = table()[name]
    assert external.__module__ == f"wirelessfl.{variant.removesuffix('.py').replace('/', '.')}"
    assert check == external.check
    assert callable(resolve_name(check))
    members = [one for one in OPEN[name].members.values() if issubclass(one, CoreVariant)]
    homes = {resolve_name(one.core).__module__ for one in members}
    room = f"wirelessfl.{where.removesuffix('.py').rstrip('/').replace('/', '.')}"
    assert (ROOT / "wirelessfl" / where).exists()
    assert any(f"{home}.".startswith(f"{room}.") for home in homes), f"{homes} are not in {where}"
