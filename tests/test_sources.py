"""Texts of code from outside: which files count, that what is loaded is what they say, and imports from a recording."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, TraceError
from wirelessfl.plugins import Sources, importing_from, sources_of
from wirelessfl.plugins.sources import _REQUIRED, LARGEST
from wirelessfl.radio import FadingModel

KEY = "channel.fading.model"
LAW = "import numpy as np\nclass Law:\n    def draw(self, stream):\n        return np.ones(len(stream), complex)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    monkeypatch.setattr(plugins.blame, "_loaded", {})
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder / f"{name.replace('__in__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_sources_are_the_module_and_those_of_the_users_that_it_imports(folder: Path) -> None:
    write(
        folder,
        sources_mine="import json\nimport numpy\nimport sources_by_name, wirelessfl\nfrom sources_pack.inner import f\n"
        "import importlib\nimportlib.import_module('sources_by_constant')\n",
        sources_by_name="def late():\n    from sources_late import x\n",
        sources_late="x = 1\n",
        sources_by_constant="",
        sources_pack__in____init__="",
        sources_pack__in__inner="from . import beside\nfrom .beside import *\n",
        sources_pack__in__beside="import sources_mine  # a circle\n",
        sources_pack__in__unused="",
        sources_unused="",
    )
    before = set(sys.modules)
    found = sources_of(["sources_mine:Law"])
    assert set(found.files) == {
        *("sources_mine.py", "sources_by_name.py", "sources_late.py", "sources_by_constant.py"),
        *("sources_pack/__init__.py", "sources_pack/inner.py", "sources_pack/beside.py"),
    }
    assert found.files["sources_late.py"] == "x = 1\n"
    assert not found.packages
    assert not [name for name in set(sys.modules) - before if name.startswith("sources_")], "something was imported"
    assert found.text == sources_of(["sources_mine:Other"]).text
    assert Sources.of_text(found.text) == found


def test_installed_packages_count_by_name_and_version(folder: Path) -> None:
    write(folder, sources_tests="import pytest\n")
    found = sources_of(["sources_tests:Law", "torch.hub:load", "json:loads", "wirelessfl.learning:FedAvg"])
    assert found == Sources({"sources_tests.py": "import pytest\n"}, {"pytest": pytest.__version__})
    assert sources_of(["_pytest.python:Function"]).packages == {"pytest": pytest.__version__}


def test_what_is_not_counted_is_what_the_package_requires() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]}  # type: ignore[index]
    modules = {{"pyyaml": "yaml", "scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in names}
    assert modules <= _REQUIRED


def test_line_ends_and_encodings_do_not_count(folder: Path) -> None:
    write(folder, sources_unix="x = 'é'\n")
    (folder / "sources_other.py").write_bytes(b"# -*- coding: latin-1 -*-\r\nx = '\xe9'\r\n")
    assert sources_of(["sources_other:x"]).files["sources_other.py"] == "# -*- coding: latin-1 -*-\nx = 'é'\n"
    with importing_from(sources_of(["sources_other:x", "sources_unix:x"]), "trace.h5"):
        for name in ("sources_other", "sources_unix"):
            assert importlib.import_module(name).x == "é"


def test_differences_name_the_files(folder: Path) -> None:
    mine = Sources({"a.py": "1", "b.py": "1", "c.py": None, "d.py": "1", "f.py": "1"}, {"one": "1", "two": "1"})
    other = Sources({"a.py": "2", "c.py": None, "d.py": "1", "e.py": "1", "f.py": None}, {"one": "2", "two": "1"})
    assert [re.sub("[0-9a-f]{12}", "…", words) for words in mine.differences(other)] == [
        "a.py (SHA-256 … -> …)",
        "b.py (not found here)",
        "c.py (its text is not known)",
        "e.py (new)",
        "f.py (not found here)",
        "one 1 -> 2",
    ]
    assert mine.differences(mine) == ["c.py (its text is not known)"]
    assert Sources({"a.py": "1", "b.py": "1"}, {}).differences(Sources({"a.py": "1"}, {})) == ["b.py (no longer used)"]


def test_a_missing_package_is_no_new_module() -> None:
    recorded = Sources({"pk/__init__.py": "1", "pk/inner.py": "2"}, {})
    words = recorded.differences(Sources({"pk.py": None}, {}))
    assert words == ["pk/__init__.py (not found here)", "pk/inner.py (not found here)"]


def test_too_large_sources_are_refused(folder: Path) -> None:
    write(folder, sources_large=f"x = '{'a' * LARGEST}'\n")
    with pytest.raises(ScenarioError, match=r"sources_large:Law: imports 1 files of yours with 8,388,6.. letters"):
        sources_of(["sources_large:Law"])


@pytest.mark.parametrize("edit", ["complex) * 2", "float)"])
def test_a_file_that_was_edited_after_its_import_is_refused(edit: str, folder: Path) -> None:
    write(folder, sources_edited=LAW)
    plugins.load_class(KEY, "sources_edited:Law", FadingModel)
    write(folder, sources_edited=LAW.replace("complex)", edit))
    for again in (
        lambda: sources_of(["sources_edited:Law"]),
        lambda: plugins.load_class(KEY, "sources_edited:Law", FadingModel),
    ):
        with pytest.raises(ScenarioError, match=r"sources_edited.py: was edited after it was imported"):
            again()
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # a pyc of the same second
    importlib.reload(sys.modules["sources_edited"])
    assert edit in str(sources_of(["sources_edited:Law"]).files["sources_edited.py"])


def test_a_constant_or_a_sibling_that_was_edited_is_refused(folder: Path) -> None:
    write(folder, sources_uses="from sources_used import K\n" + LAW, sources_used="K = 1\n")
    plugins.load_class(KEY, "sources_uses:Law", FadingModel)
    write(folder, sources_used="K = 2\n")
    with pytest.raises(ScenarioError, match=r"sources_used.py: was edited after it was imported"):
        plugins.load_class(KEY, "sources_uses:Law", FadingModel)


def test_a_module_that_the_user_imported_first_is_compared_by_its_functions(folder: Path) -> None:
    write(folder, sources_first=LAW + "    @property\n    def p(self):\n        return lambda: [1, 2]\n")
    sys.path.insert(0, str(folder))
    importlib.import_module("sources_first")
    write(folder, sources_first=LAW + "    @property\n    def p(self):\n        return lambda: [1, 3]\n")
    with pytest.raises(ScenarioError, match="was edited after it was imported"):
        sources_of(["sources_first:Law"])


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes compiled files, beside the texts."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def constant(folder: Path, value: str, second: int = 1_700_000_000) -> None:
    write(folder, sources_constant=f"K = {value}\n{LAW}")
    os.utime(folder / "sources_constant.py", (second, second))


@pytest.mark.usefixtures("compiling")
def test_a_compiled_file_of_another_text_with_its_size_and_second_is_not_taken(folder: Path) -> None:
    for value in ("1.5", "2.5"):
        constant(folder, value)
        law = plugins.load_class(KEY, "sources_constant:Law", FadingModel)
        assert f"K = {value}" in str(sources_of(["sources_constant:Law"]).files["sources_constant.py"])
        assert float(value) == sys.modules[law.__module__].K
        del sys.modules["sources_constant"]


@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("second", [1_700_000_000, 1_700_000_009])
def test_a_constant_of_a_module_that_the_user_imported_first_is_compared(second: int, folder: Path) -> None:
    constant(folder, "1.5")
    sys.path.insert(0, str(folder))
    module = importlib.import_module("sources_constant")
    assert sources_of(["sources_constant:Law"]).files
    constant(folder, "2.5", second)
    plugins.loaded._known.clear()
    with pytest.raises(ScenarioError, match="was edited after it was imported"):
        sources_of(["sources_constant:Law"])
    del sys.modules["sources_constant"]
    assert sources_of(["sources_constant:Law"]).files
    assert importlib.import_module("sources_constant").K == 2.5 and module.K == 1.5


def test_a_module_beside_it_may_be_imported_while_it_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins.places, "_known", set())
    late = "    def late(self):\n        from sources_late import K\n        return K\n"
    write(folder, sources_lazy=LAW + late, sources_late="K = 3\n", sources_unnamed="")
    law = plugins.load_class(KEY, "sources_lazy:Law", FadingModel)
    assert law().late() == 3
    for other in ("sources_unnamed", "sources_absent"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(other)


def test_recorded_sources_take_the_place_of_those_here(folder: Path) -> None:
    write(folder, sources_place="from sources_beside import K\n", sources_beside="K = 1\n")
    recorded = sources_of(["sources_place:K"])
    write(folder, sources_beside="K = 2\n")
    sys.path.insert(0, str(folder))
    here = importlib.import_module("sources_place")
    with importing_from(recorded, "trace.h5"):
        module = importlib.import_module("sources_place")
        assert module.K == 1
        assert sources_of(["sources_place:K"]) == recorded
    assert importlib.import_module("sources_place") is here and here.K == 2
    assert not Path(str(module.__file__)).exists()


@pytest.mark.parametrize("path", ["json.py", "click/__init__.py", "wirelessfl/privacy.py", "pytest.py"])
def test_recorded_sources_do_not_take_the_place_of_libraries(path: str) -> None:
    with (
        pytest.raises(TraceError, match=r"trace\.h5: holds a source of \w+, which is the name of a library here"),
        importing_from(Sources({path: "open('ran', 'w')"}, {}), "trace.h5"),
    ):
        pass


def test_what_stood_in_a_script_is_not_imported() -> None:
    with (
        pytest.raises(
            TraceError, match=r"trace\.h5: its code from outside was defined in a script or notebook .*move it"
        ),
        importing_from(Sources({"__main__.py": LAW}, {}), "trace.h5"),
    ):
        pass


def test_what_is_not_known_is_not_imported() -> None:
    with (
        pytest.raises(TraceError, match=r"the text of a\.py is not recorded"),
        importing_from(Sources({"a.py": None}, {}), "trace.h5"),
    ):
        pass


def test_a_class_that_was_typed_is_not_known_and_one_of_a_cell_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import linecache

    main = sys.modules["__main__"]
    monkeypatch.delattr(main, "__file__", raising=False)
    for name, shown in (("<typed>", False), ("<cell>", True)):
        scope: dict[str, object] = {"__name__": "__main__"}
        exec(compile(LAW, name, "exec"), scope)
        monkeypatch.setattr(main, "Law", scope["Law"], raising=False)
        if shown:
            linecache.cache[name] = (len(LAW), None, LAW.splitlines(keepends=True), name)
        text = sources_of(["__main__:Law"]).files["__main__.py"]
        assert (text is not None and "np.ones" in text) if shown else text is None
    linecache.cache.pop("<cell>")


HOSTILE = [
    *(
        "../a.py",
        "/a.py",
        "a/../b.py",
        "a//b.py",
        "./a.py",
        "a\\b.py",
        "a.py\0",
        "a.txt",
        "",
        ".py",
        "a b.py",
        "C:a.py",
    ),
    "x" * 500 + ".py",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_paths_that_leave_their_folder_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="the path"):
        Sources.of_text(json.dumps({"files": {path: ""}, "packages": {}}))


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"files": {}}', '{"files": [], "packages": {}}', '{"files": {"a.py": 1}, "packages": {}}'),
        *('{"files": {}, "packages": {"a": 1}}', '{"files": {"a.py": "\\ud800"}, "packages": {}}', "[" * 9000),
        '{"files": {"a.py": "\\u0000"}, "packages": {}}',
        json.dumps({"files": {f"a{n}.py": "" for n in range(5000)}, "packages": {}}),
        json.dumps({"files": {"a.py": "x" * (LARGEST + 1)}, "packages": {}}),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        Sources.of_text(text)
