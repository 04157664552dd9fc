"""Members from outside that fail in a run: their file, line and function, what they returned and what it must be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assembly.toys import TOYS
from tests.simulation.scenarios import run, small
from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, WirelessFLError
from wirelessfl.scenario.scenario import families

OPEN = {name: family for name, family in families().items() if family.external is not None}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    monkeypatch.setattr(plugins.blame, "_loaded", {})
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("unfit_")]:
        del sys.modules[name]


def words_of(name: str, method: str, body: str, folder: Path) -> str:
    """What a command would print of a run with a toy whose method ends in ``body``; ``was`` is what it returns."""
    toy, family, module = TOYS[name], OPEN[name], f"unfit_{name}"
    base = toy.base.partition(":")[2]
    head = f"import dataclasses\nfrom {toy.module} import {base}\n"
    if name == "partition":
        text = f"class Bad:\n    def divide(self, dataset, n, g):\n        was = {base}(len(dataset.train), n, g)\n"
    elif toy.method:
        text = f"class Bad({base}):\n    def {method}(self, *a, **k):\n        was = super().{method}(*a, **k)\n"
    else:
        text = f"def Bad(*a, **k):\n    if True:\n        was = {base}(*a, **k)\n"
    (folder / f"{module}.py").write_text(f"{head}{text}        {body}\n", encoding="utf-8")
    member = {family.tag: f"{module}:Bad", "options": dict(toy.options), **toy.beside}
    try:
        run(small(rounds=2, **{**toy.needs, family.paths[0]: member}))
    except WirelessFLError as error:
        assert isinstance(error, ScenarioError)
        return plugins.refusal(error)
    except plugins.RAISED as error:
        return str(plugins.failure(error))
    raise AssertionError("nothing was wrong")


@pytest.mark.parametrize("name", TOYS)
def test_an_exception_in_a_member_is_told_with_its_line_and_function(name: str, elsewhere: Path) -> None:
    toy = TOYS[name]
    method = "divide" if name == "partition" else toy.method
    said = words_of(name, method, "raise IndexError('of mine,\\n in two lines')", elsewhere)
    function = f"Bad.{method}" if method else "Bad"
    assert said.endswith(f"unfit_{name}.py:6 in {function}: IndexError: of mine, in two lines"), said


UNFIT = [
    ("algorithm", "step", "return None", ".step returned a NoneType, needs a ServerState"),
    ("algorithm", "received", "return None", ".received returned a NoneType, needs a tuple of 2"),
    ("algorithm", "received", "return was[0], 1", ".received returned an int, needs a Tensor"),
    ("algorithm", "client", "return 1", ".client returned an int, needs a LocalObjective"),
    ("algorithm", "facts", "return None", ".facts returned a NoneType, needs an AlgorithmFacts"),
    ("availability", "available", "return was[:1]", ".available returned (1,), needs (6,) truth values"),
    ("clipping", "clip", "return was.weights", ".clip returned a Tensor, needs a Clipped"),
    ("codec", "encode", "return None", ".encode returned a NoneType, needs a Payload"),
    ("codec", "bits", "return 0.5", ".bits returned a float, needs an int"),
    ("codec", "decode", "return was[:, :3]", "decodes shape (4, 3)"),
    ("correlation", "gains", "return was[:3]", ".gains returned (3,), needs (6,) complex"),
    ("dataset", "", "return dataclasses.replace(was, train=None)", "train is a NoneType, not Examples"),
    ("dataset", "", "return 1", "returned an int; allowed is a wirelessfl.learning.Dataset"),
    ("fading", "draw", "return was[:3]", ".draw returned (3,), needs (6,) complex"),
    ("fading", "draw", "return was[:, None]", ".draw returned (6, 1), needs (6,) complex"),
    ("fading", "draw", "return was * float('nan')", ".draw returned numbers that are not finite"),
    ("fading", "draw", "return was.astype(str)", ".draw returned (6,) <U64, needs (6,) complex"),
    ("mechanism", "add", "return was[:1]", ".add returned (1,), needs (4,)"),
    ("model", "", "import torch; return torch.nn.Flatten()", "does not fit inputs of shape (1, 8, 8)"),
    ("model", "", "return 1", "returned an int; allowed is a torch.nn.Module"),
    ("modulation", "decode", "return was[:3]", ".decode returned (3,), needs (610,)"),
    ("modulation", "encode", "return was[0]", ".encode returned a Tensor, needs a tuple of 2"),
    ("modulation", "encode", "return was[0][:, :3], was[1]", ".encode (symbols) returned (4, 3), needs (4, 610)"),
    ("optimizer", "step", "a[0].resize_(3)", ".step (parameters) returned (3,), needs (4, 160)"),
    ("partition", "divide", "return was.order", "divided into a ndarray; allowed: a learning.Partition"),
    ("path_loss", "loss_db", "return was[:, None]", ".loss_db returned (1, 1), needs (1,)"),
    ("placement", "place", "return was[:1]", ".place returned (1, 2), needs (6, 2)"),
    ("power_control", "plan", "return None", ".plan returned a NoneType, needs a TransmitPlan"),
    (
        *("power_control", "plan", "return dataclasses.replace(was, silent=was.silent[:1])"),
        ".plan (silent) returned (1,), needs (6,) truth values",
    ),
    ("receiver", "combine", "return was[0]", ".combine returned (1, 1), needs (1, 1, 1)"),
    ("robust", "combine", "return was.value", ".combine returned a ndarray, needs a Combined"),
    (
        *("robust", "combine", "return dataclasses.replace(was, kept=was.kept[:1])"),
        ".combine (kept) returned (1,), needs (6,)",
    ),
    ("robust", "least", "return 7", ".least returned 7, needs 1 to 6"),
    ("selection", "select", "return list(was)", "allowed: at most 4 ascending int64 numbers from 0 to 5"),
    ("server_optimizer", "step", "return was[0]", ".step returned a Tensor, needs a tuple of 2"),
    ("server_optimizer", "step", "return was[0][:3], was[1]", "gives {'model': ((3,), torch.float32)}; allowed: "),
]


@pytest.mark.parametrize(("name", "method", "body", "words"), UNFIT)
def test_what_does_not_fit_is_told_with_the_line_of_the_method(
    name: str, method: str, body: str, words: str, elsewhere: Path
) -> None:
    said = words_of(name, method, body, elsewhere)
    assert words in said
    assert f"unfit_{name}:Bad" in said or "Bad " in said
    assert f"(unfit_{name}.py:{3 if name in ('model', 'dataset') else 4})" in said, said


def test_every_family_has_a_member_that_does_not_fit() -> None:
    assert {name for name, *_ in UNFIT} == set(TOYS)
