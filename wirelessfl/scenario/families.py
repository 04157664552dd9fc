"""The families of variants of a scenario, read off its unions: a new variant is here as soon as a union has it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from wirelessfl.scenario.base import External, Family, Section
from wirelessfl.scenario.scenario import Scenario
from wirelessfl.scenario.shape import family_at, keys_of, section_at, type_of


@dataclass(frozen=True)
class FamilyInfo:
    """One family of variants.

    Attributes:
        name: as its external variant calls it, else the last part of the key path.
        paths: key paths at which one of it stands.
        tag: the key that names the variant.
        default: the variant of a mapping without tag.
        members: the package's own variants by tag.
        external: the variant for code from outside; None where there is none.
    """

    name: str
    paths: tuple[str, ...]
    tag: str
    default: str
    members: dict[str, type[Section]]
    external: type[External] | None


@cache
def families() -> dict[str, FamilyInfo]:
    """Every family of a scenario by name, in the order of the keys."""
    found: dict[str, FamilyInfo] = {}
    for one in _below(Scenario, ""):
        known = found.get(one.name, one)
        paths = tuple(dict.fromkeys(known.paths + one.paths))
        found[one.name] = replace(known, paths=paths)
    return found


def _below(section: type[Section], path: str) -> Iterator[FamilyInfo]:
    for name, field in keys_of(section).items():
        here, tp = f"{path}.{name}".removeprefix("."), type_of(field)
        family = family_at(tp)
        if family is not None:
            yield _info(here, *family)
            for variant in family[0].variants(family[1]).values():
                yield from _below(variant, here)
        elif (below := section_at(tp, {})) is not None:
            yield from _below(below, here)


def _info(path: str, family: Family, union: Any) -> FamilyInfo:
    members = family.variants(union)
    external = members.pop("", None)
    own = external if external is not None and issubclass(external, External) else None
    name = path.rpartition(".")[2] if own is None else own.family
    return FamilyInfo(name, (path,), family.key, family.default, members, own)
