"""One function makes what a variant stands for: of the core, and of the user's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from wirelessfl import plugins
from wirelessfl.assembly.objects import make_object
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.base import CoreVariant, External, Options, Reference, key
from wirelessfl.scenario.channel import ExternalFading, NakagamiFading
from wirelessfl.scenario.data import ExternalDataset


@dataclass(frozen=True)
class Room:
    """A context, one of whose values may not be asked for."""

    m: float = 4.0
    nakagami_m: float = 3.0

    @cached_property
    def dear(self) -> float:
        raise AssertionError("nobody asked for it")


class Bare(CoreVariant):
    """A law whose shape is no key of its own."""

    core: ClassVar[str] = "wirelessfl.radio.fading:Nakagami"

    model: Literal["bare"] = key("bare", "Nakagami.")


class ExternalLaw(External):
    """A fading law that gets a context."""

    family: ClassVar[str] = "law"
    protocol: ClassVar[str] = "wirelessfl.radio:FadingModel"
    check: ClassVar[str] = "wirelessfl.radio.conformance:check_fading_model"

    model: Reference = key(..., "A law.")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """From a text to the name of a module in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    names: list[str] = []

    def write(text: str) -> str:
        names.append(f"object_under_test_{len(names)}_{tmp_path.name.replace('-', '_')}")
        (tmp_path / f"{names[-1]}.py").write_text(text, encoding="utf-8")
        return names[-1]

    yield write
    for name in names:
        sys.modules.pop(name, None)


LAW = (
    "class Law:\n    def __init__(self, {}):\n        self.got = ({})\n    def draw(self, stream):\n        return 1\n"
)


def test_what_the_keys_leave_out_comes_from_the_context() -> None:
    assert make_object("k", Bare(), context=Room()).nakagami_m == 3.0
    assert make_object("k", NakagamiFading(m=7.0), context=Room()).nakagami_m == 7.0
    with pytest.raises(ScenarioError, match=r"k: wirelessfl\.radio\.fading:Nakagami refuses \{\}: .*nakagami_m"):
        make_object("k", Bare())


@pytest.mark.parametrize(
    ("parameters", "options", "got"),
    [
        ("m, nakagami_m", {}, (4.0, 3.0)),
        ("m, nakagami_m", {"m": 1}, (1, 3.0)),
        ("m, nakagami_m=8", {}, (4.0, 8)),
        ("m, *, nakagami_m", {}, (4.0, 3.0)),
    ],
)
def test_a_class_of_the_users_gets_what_it_cannot_do_without(
    module: Callable[[str], str], parameters: str, options: Options, got: tuple[float, float]
) -> None:
    law = ExternalLaw(model=f"{module(LAW.format(parameters, 'm, nakagami_m'))}:Law", options=options)
    assert make_object("k", law, context=Room()).got == got


def test_what_is_neither_an_option_nor_in_the_context_is_told(module: Callable[[str], str]) -> None:
    law = ExternalLaw(model=f"{module(LAW.format('other', 'other'))}:Law")
    with pytest.raises(ScenarioError, match=r"refuses its options \{\}: missing a required argument: 'other'"):
        make_object("k", law, context=Room())


def test_the_protocol_is_checked_before_the_class_is_called(module: Callable[[str], str]) -> None:
    name = module("class Law:\n    def __init__(self):\n        open('called', 'w')\n")
    with pytest.raises(ScenarioError, match="is no FadingModel: found a class without draw"):
        make_object("channel.fading.model", ExternalFading(model=f"{name}:Law"))
    assert not Path("called").exists()


def test_what_a_function_returns_is_checked(module: Callable[[str], str]) -> None:
    name = module("def load(number):\n    return number\n")
    with pytest.raises(ScenarioError, match=r"returned an int; allowed is a wirelessfl\.learning\.Dataset"):
        make_object("data.dataset.name", ExternalDataset(name=f"{name}:load", options={"number": 3}))


def test_the_tag_is_written_before_the_options() -> None:
    law = ExternalFading(model="a:B", options={"c": 1})
    assert list(law.model_dump()) == ["model", "options"]
    assert law.arguments() == {"c": 1}
