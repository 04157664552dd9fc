"""Code from outside the package is held against its protocol before anything of it is called."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import h5py
import pytest
from pydantic import BaseModel

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, TraceError
from wirelessfl.learning import Dataset
from wirelessfl.radio import FadingModel, PowerControl
from wirelessfl.scenario import Scenario, load_scenario, parse_scenario
from wirelessfl.scenario.base import External, Reference
from wirelessfl.scenario.scenario import TRUSTED_MODULES, outside_code, refuse_outside_code
from wirelessfl.trace import trace_errors

KEY = "channel.fading.model"
NUMBERS = itertools.count()


class Workshop:
    """A folder in which modules of new names are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str) -> str:
        name = f"plugin_under_test_{next(NUMBERS)}"
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")
        return name


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """The current folder, which is not on the search path of modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    monkeypatch.setattr(plugins.blame, "_loaded", {})
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    yield Workshop(tmp_path)


FADING = "import numpy as np\nclass Law:\n    def draw(self, stream):\n        return np.ones(len(stream), complex)\n"


def test_a_class_with_the_methods_is_loaded_and_made(workshop: Workshop) -> None:
    name = workshop.write(FADING)
    before = list(sys.path)
    law = plugins.make(KEY, f"{name}:Law", plugins.load_class(KEY, f"{name}:Law", FadingModel))
    assert isinstance(law, FadingModel)
    assert sys.path == before


@pytest.mark.parametrize(
    "reference", ["subprocess:Popen", "os:system", "builtins:exec", "shutil:rmtree", "pathlib:Path", "test.support:os"]
)
@pytest.mark.parametrize("protocol", [FadingModel, PowerControl])
def test_nothing_of_pythons_own_library_is_imported_or_called(reference: str, protocol: type) -> None:
    with pytest.raises(ScenarioError, match=rf"{KEY}: {reference} belongs to Python's own library"):
        plugins.load_class(KEY, reference, protocol)
    with pytest.raises(ScenarioError, match="belongs to Python's own library"):
        plugins.load_function(KEY, reference, Dataset)


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("from subprocess import Popen\n", "Popen", "which plugin_under_test_[0-9]+ only imports"),
        ("from numpy import save\n", "save", "only imports"),
        ("def make():\n    open('called', 'w')\n", "make", "is no FadingModel: found a function"),
        ("class Law:\n    def __init__(self):\n        open('called', 'w')\n", "Law", "found a class without draw"),
        ("class Law:\n    draw = 3\n", "Law", "found a class without draw"),
        (
            "class Law:\n    def draw(self):\n        pass\n",
            "Law",
            r"draw cannot be called as draw\(self, stream\).*:2\)",
        ),
        ("class Law:\n    def draw(self, a, b):\n        pass\n", "Law", r"missing a required argument: 'b'.*:2\)"),
        ("", "Law", r"plugin_under_test_[0-9]+\.py\) has no 'Law'"),
    ],
)
def test_what_is_no_such_class_is_refused_and_not_called(workshop: Workshop, text: str, name: str, words: str) -> None:
    reference = f"{workshop.write(text)}:{name}"
    with pytest.raises(ScenarioError, match=words) as refusal:
        plugins.load_class(KEY, reference, FadingModel)
    assert str(refusal.value).startswith(f"{KEY}: ")
    assert not (workshop.folder / "called").exists()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\nclass Law(:\n", 2, "SyntaxError: "),
        ("x = 1\n\nraise ValueError('of mine')\n", 3, "ValueError: of mine"),
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit(7)\n", 2, "SystemExit: 7"),
        ("def f():\n    return f()\nf()\n", 2, "RecursionError: "),
        ("def f():\n    return {}['a']\nf()\n", 2, "KeyError: 'a'"),
    ],
)
def test_errors_at_import_name_file_and_line(workshop: Workshop, text: str, line: int, words: str) -> None:
    name = workshop.write(text)
    with pytest.raises(ScenarioError) as refusal:
        plugins.load_class(KEY, f"{name}:Law", FadingModel)
    where = rf"{KEY}: {name}:Law: {name}\.py:{line}( in f)?: {words}"
    assert re.match(where, str(refusal.value)), str(refusal.value)


def test_lines_of_compiled_libraries_are_not_the_users(workshop: Workshop) -> None:
    # They are relative (h5py/_objects.pyx), and the user's modules lie in the current folder.
    name = workshop.write(FADING)
    plugins.load_class(KEY, f"{name}:Law", FadingModel)
    path = workshop.folder / "values.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1.0
    with pytest.raises(TraceError, match="damaged"), trace_errors(path), h5py.File(path) as file:
        file["y"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    def __init__(self, a):\n        pass\n", "refuses its options {}: missing a required argument: 'a'"),
        ("    def __init__(self):\n        raise TypeError('of mine')\n", ".py:4 in Law.__init__: TypeError: of mine"),
    ],
)
def test_errors_when_an_object_is_made_name_the_place(workshop: Workshop, body: str, words: str) -> None:
    name = workshop.write(
        FADING.replace("    def draw", "    x = 1\n" + body + "    def draw").replace("    x = 1\n", "")
    )
    law = plugins.load_class(KEY, f"{name}:Law", FadingModel)
    with pytest.raises(ScenarioError) as refusal:
        plugins.make(KEY, f"{name}:Law", law)
    assert words in str(refusal.value)


def test_an_error_of_a_method_is_known_as_the_plug_ins(workshop: Workshop) -> None:
    name = workshop.write("class Law:\n    def draw(self, stream):\n        return stream.no_such_thing\n")
    law = plugins.load_class(KEY, f"{name}:Law", FadingModel)()
    try:
        law.draw(None)
    except AttributeError as error:
        assert plugins.failure(error) == (
            f"{name}.py:3 in Law.draw: AttributeError: 'NoneType' object has no attribute 'no_such_thing'"
        )
    try:
        [1].index(3)
    except ValueError as error:
        assert plugins.failure(error) is None


SET = "from wirelessfl.learning import Dataset\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def load() -> int: return 1\n", "says that it returns int; allowed: Dataset"),
        ("class load: pass\n", "is the class load; allowed: a function that returns a Dataset"),
        ("load = 3\n", "is an int; allowed: a function"),
        ("from functools import partial\nload = partial(print)\n", "only imports|is a partial"),
    ],
)
def test_what_is_no_function_for_a_data_set_is_refused(workshop: Workshop, text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        plugins.load_function("data.dataset.name", f"{workshop.write(text)}:load", Dataset)


@pytest.mark.parametrize(
    "text",
    [
        "def load(): ...\n",
        "from functools import cache\n@cache\ndef load(): ...\n",
        SET + "def load() -> Dataset: ...\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import Y\ndef load() -> 'Y': ...\n",
    ],
)
def test_functions_of_the_users_are_taken(workshop: Workshop, text: str) -> None:
    assert callable(plugins.load_function("data.dataset.name", f"{workshop.write(text)}:load", Dataset))


@pytest.mark.parametrize(
    "reference", ["numpy:savetxt", "pandas:read_pickle", "torch.hub:load", "wirelessfl.scenario:copy_shipped"]
)
def test_functions_of_libraries_that_promise_nothing_are_not_called(reference: str) -> None:
    with pytest.raises(ScenarioError, match=r"data\.dataset\.name: "):
        plugins.load_function("data.dataset.name", reference, Dataset)


def test_installed_modules_come_before_those_of_the_folders(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("open('ran', 'w')\n", encoding="utf-8")
    loaded = sys.modules.pop("yaml")
    try:
        with pytest.raises(ScenarioError, match="has no 'Law'"):
            plugins.load_class(KEY, "yaml:Law", FadingModel)
    finally:
        sys.modules["yaml"] = loaded
    assert not (tmp_path / "ran").exists()


def test_the_folder_of_a_scenario_file_is_searched_from_anywhere(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = workshop.write(FADING)
    file = tmp_path / "mine.yaml"
    file.write_text(f"name: mine\nchannel: {{fading: {{model: '{name}:Law'}}}}\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ScenarioError, match=f"or lies in {tmp_path / 'elsewhere'}"):
        plugins.load_class(KEY, f"{name}:Law", FadingModel)
    load_scenario(file)
    assert plugins.load_class(KEY, f"{name}:Law", FadingModel).__name__ == "Law"


def test_a_module_beside_the_scenario_comes_before_one_in_the_current_folder(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = workshop.write(FADING)
    file = tmp_path / "mine.yaml"
    file.write_text(f"name: mine\nchannel: {{fading: {{model: '{name}:Law'}}}}\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"{name}.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    load_scenario(file)
    assert plugins.load_class(KEY, f"{name}:Law", FadingModel).__name__ == "Law"


def test_a_module_of_the_same_name_from_another_folder_is_not_taken_for_it(workshop: Workshop, tmp_path: Path) -> None:
    name = workshop.write(FADING)
    plugins.load_class(KEY, f"{name}:Law", FadingModel)
    (tmp_path / "other").mkdir()
    plugins.search(tmp_path / "other")
    assert plugins.load_class(KEY, f"{name}:Law", FadingModel).__name__ == "Law"
    other = tmp_path / "other" / f"{name}.py"
    other.write_text(FADING, encoding="utf-8")
    with pytest.raises(ScenarioError, match=f"is in {other}, and {tmp_path / name}.py is loaded already"):
        plugins.load_class(KEY, f"{name}:Law", FadingModel)


def references_of(section: type[BaseModel]) -> set[str]:
    """The keys of a section that take ``package.module:Name``."""
    says = get_args(Reference)[-1]
    return {name for name, field in section.model_fields.items() if says in field.metadata}


def subclasses(section: type[Any]) -> Iterator[type[Any]]:
    for one in section.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_key_that_names_code_is_one_that_is_looked_for() -> None:
    from wirelessfl.scenario.base import Section

    naming = {one for one in subclasses(Section) if references_of(one)}
    assert naming == set(External.__subclasses__())
    assert len(naming) >= 5
    for section in naming:
        assert set(section.model_fields) - {"options"} >= references_of(section)
        assert len(references_of(section)) == 1


ALL = """
name: all
data: {dataset: {name: "a:F"}, partition: {scheme: iid}}
model: {name: "b.c:G"}
channel: {fading: {model: "d:H"}}
uplink: {kind: over_the_air, power_control: {policy: "subprocess:Popen", options: {args: "touch x", shell: true}}}
faults: {availability: {model: "e:I"}}
"""


def test_outside_code_lists_every_key() -> None:
    assert outside_code(parse_scenario(ALL)) == {
        "data.dataset.name": "a:F",
        "model.name": "b.c:G",
        "channel.fading.model": "d:H",
        "uplink.power_control.policy": "subprocess:Popen",
        "faults.availability.model": "e:I",
    }
    assert outside_code(load_scenario("quickstart")) == {}
    assert outside_code(parse_scenario("name: x\nmodel: {name: 'wirelessfl.learning.models:mlp'}")) == {}
    assert outside_code(parse_scenario("name: x\nmodel: {name: 'wirelessfl_x:f'}")) == {"model.name": "wirelessfl_x:f"}


def test_recorded_scenarios_name_code_only_with_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(allow: bool = False, typed: tuple[Any, ...] = (), trusted: str = "") -> bool:
        monkeypatch.setenv(TRUSTED_MODULES, trusted)
        scenario: Scenario = parse_scenario("name: x\nmodel: {name: 'mine.models:build'}")
        try:
            refuse_outside_code(scenario, "trace.h5", allow, typed)
        except ScenarioError as refusal:
            text = str(refusal)
            assert "trace.h5: model.name: found mine.models:build" in text
            assert "allow_plugins=True" in text
            assert TRUSTED_MODULES in text
            return True
        return False

    assert refused()
    assert not refused(allow=True)
    assert not refused(typed=({"name": "mine.models:build"},))
    assert refused(typed=("mine.models:other",))
    assert not refused(trusted="other, mine")
    assert not refused(trusted="mine.models")
    assert refused(trusted="min,mine.mod,mine.models.more")
