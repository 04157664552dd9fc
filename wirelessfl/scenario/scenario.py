"""The root of a scenario, and what follows from it: families of variants, code from outside, notes."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, PrivateAttr
from pydantic.json_schema import GenerateJsonSchema

from wirelessfl.errors import ScenarioError
from wirelessfl.inputs import Places
from wirelessfl.plugins import Sources, sources_of
from wirelessfl.scenario.base import CoreVariant, External, Rule, Section, Steps
from wirelessfl.scenario.consistency import scenario_rules
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.located import Written
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.shape import family_at, keys_of, section_at, type_of
from wirelessfl.scenario.uplink import OverTheAir


class Scenario(Sections):
    """One simulated system, complete: with the same seed it always gives the same trace."""

    _places: Places = PrivateAttr(default=Places())
    _written: Written = PrivateAttr(default=Written())

    def rules(self) -> list[Rule]:
        """Rules between all sections."""
        return scenario_rules(self)

    @property
    def places(self) -> Places:
        """Places in which the files that it names are looked up."""
        return self._places

    def placed(self, places: Places) -> Self:
        """The same scenario, its files looked up elsewhere."""
        copy = self.model_copy()
        copy._places = places
        return copy

    def written(self, places: Written) -> Self:
        """The same scenario, its keys written elsewhere."""
        copy = self.model_copy()
        copy._written = places
        return copy

    def located(self) -> AbstractContextManager[None]:
        """Context in which errors that begin with a key get the file and line of that key in front."""
        return self._written.located(type(self).model_fields)

    def named_files(self) -> dict[str, str]:
        """The files and folders of data that it names, by key path, as they are written."""
        return dict(_named(self, ()))

    def __repr__(self) -> str:
        clients = f"{self.clients.count:,} client{'s' if self.clients.count > 1 else ''}"
        return (
            f"<Scenario {self.name}: seed {self.seed}, {self.rounds} rounds, {clients}, {self.model.name} on "
            f"{self.data.dataset.name}, uplink {self.uplink.kind}>"
        )

    __str__ = __repr__


# Writer of the JSON Schema, with defaults of schedules as in the file.
class _SchemaWriter(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        return super().encode_default(dft.mapping() if isinstance(dft, Steps) else dft)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_SchemaWriter)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "wirelessfl scenario"}


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
    """Every family of a scenario by name, in the order of the keys.

    One that has the name of another before it is named after the key above as well: ``receiver_correlation``.
    """
    found: dict[str, FamilyInfo] = {}
    for one in _below(Scenario, ""):
        if one.name in found and found[one.name].members != one.members:
            one = replace(one, name="_".join(one.paths[0].split(".")[-2:]))
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


TRUSTED_MODULES = "WIRELESSFL_PLUGINS"
"""Environment variable: modules and packages, separated by commas, that any scenario may name."""


# A scenario file that the user names is his own. One that a run left behind, in a trace or beside it, may come from
# anybody: what it names is imported only where the user says so.


def outside_code(scenario: Scenario) -> dict[str, str]:
    """The keys that name code from outside the package, and what they name, as ``package.module:Name``."""
    return {
        key: name for key, name in _external(scenario, ()) if not name.startswith(f"{__package__.partition('.')[0]}.")
    }


def outside_sources(scenario: Scenario) -> Sources | None:
    """Texts of the code from outside the package that a scenario names; None where it names none.

    Raises:
        ScenarioError: a module was edited after it was imported, or they are too large.
    """
    sources = sources_of(outside_code(scenario).values())
    return sources if sources.files or sources.packages else None


def _external(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, External):
        yield ".".join((*path, value.tag)), value.reference
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _external(getattr(value, name), (*path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _external(item, (*path, str(index)))


def _named(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, CoreVariant):
        yield from ((".".join((*path, name)), text) for name, text in value.named_files().items())
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _named(getattr(value, name), (*path, name))


def is_left_by_a_run(path: Path) -> bool:
    """Whether a file lies beside a trace, or a study's beside its results: then a run wrote it, and not the user."""
    return any(
        (place.parent / "trace.h5").exists() or (place.name == "study.yaml" and place.with_suffix(".json").exists())
        for place in (path, path.resolve())
    )


def refuse_outside_code(scenario: Scenario, origin: str, allow_plugins: bool, typed: Iterable[Any] = ()) -> None:
    """Checks that a scenario which a run left behind names no code that the user has not agreed to run.

    Args:
        scenario: What is to run.
        origin: Where it comes from, for messages.
        allow_plugins: Whether the user agreed to all of it.
        typed: Values that the user gave himself; what is named there is his own.

    Raises:
        ScenarioError: It names other code.
    """
    if allow_plugins:
        return
    own = {text for value in typed for text in texts(value)}
    trusted = [name.strip() for name in os.environ.get(TRUSTED_MODULES, "").split(",") if name.strip()]
    foreign = [
        f"{key}: found {reference}"
        for key, reference in outside_code(scenario).items()
        if reference not in own
        and not any(f"{reference.partition(':')[0]}.".startswith(f"{name}.") for name in trusted)
    ]
    if foreign:
        raise ScenarioError(
            f"{origin}: {'; '.join(foreign)}; allowed: code of this package. Other code that a recorded scenario names "
            "runs only if you say so: read it, then add --allow-plugins, or list its module in "
            f"the environment variable {TRUSTED_MODULES}"
        )


def texts(value: Any) -> Iterator[str]:
    """Every text in nested mappings, lists and tuples."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def power_notes(scenario: Scenario) -> tuple[str, ...]:
    """Notes on what a scenario's keys mean for its watts."""
    uplink = scenario.uplink
    if isinstance(uplink, OverTheAir) and uplink.iq_packing and uplink.snr_db is not None:
        return (
            "uplink.iq_packing at a fixed snr_db: P_i stays and is spent in half the time, with twice the watts; at a "
            "fixed tx_power_dbm the watts stay and P_i halves",
        )
    return ()


def slot_notes(scenario: Scenario) -> tuple[str, ...]:
    """Notes on the slots of a round over the air, where there are several."""
    uplink, rule = scenario.uplink, scenario.training.robust.rule
    if not isinstance(uplink, OverTheAir) or uplink.slot_groups == 1:
        return ()
    weak = "" if rule != "mean" else ", which is not robust: one slot for all does the same with less noise and airtime"
    slots = f"uplink.slot_groups: {uplink.slot_groups} slots a round, one after the other"
    return (f"{slots}, whose sums training.robust combines by {rule}{weak}",)
