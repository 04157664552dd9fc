"""Networks of torchvision, most of it with a small one in place of the large ones: importing those takes long."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from tests.simulation.scenarios import run, small
from wirelessfl.errors import DataError, ScenarioError
from wirelessfl.learning import FlatModel, check_module
from wirelessfl.learning.models import published
from wirelessfl.learning.models.published import torchvision_model
from wirelessfl.learning.vision import torchvision_module
from wirelessfl.scenario import parse_scenario
from wirelessfl.scenario.model import Torchvision
from wirelessfl.study.content import content_id

GREY, COLOUR = (1, 8, 8), (3, 8, 8)


class StochasticDepth(nn.Module):
    """As torchvision's: at p = 0 nothing happens, else whole samples are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.p = 0.2

    def forward(self, inputs: Tensor) -> Tensor:
        assert self.p == 0
        return inputs


def network(num_classes: int, normalised: bool = True) -> nn.Module:
    """Layers of torchvision's networks, under names like theirs."""
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", nn.Conv2d(3, 12, 3, stride=2, padding=1, bias=False)),
        ("bn1", nn.BatchNorm2d(12) if normalised else nn.Identity()),
        ("relu", nn.ReLU(inplace=True)),
        ("block", nn.Sequential(nn.Conv2d(12, 12, 3, padding=1), StochasticDepth())),
        ("pool", nn.AdaptiveAvgPool2d(1)),
        ("flatten", nn.Flatten()),
        ("drop", nn.Dropout(0.5)),
        ("fc", nn.Linear(12, num_classes)),
    ]
    return nn.Sequential(OrderedDict(layers))


@pytest.fixture(autouse=True)
def small_networks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "slow" not in request.keywords:
        models = SimpleNamespace(resnet18=network, vgg11=lambda num_classes: network(num_classes, normalised=False))
        monkeypatch.setattr(published, "torchvision_module", lambda _: models)


def saved(path: Path, module: nn.Module) -> str:
    torch.save(module.state_dict(), path)
    return str(path)


def trained_network(classes: int = 10) -> nn.Module:
    """With batch norms whose factors, offsets and statistics are not those of a new one."""
    module = network(classes)
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.normal_()
    return module


def test_batch_norm_is_refused_with_the_reason_or_replaced_where_asked(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"model\.norm: found as_published with resnet18, whose batch norm mixes"):
        torchvision_model(COLOUR, 10, "resnet18")
    source = trained_network()
    made = torchvision_model(COLOUR, 10, "resnet18", saved(tmp_path / "w.pt", source), norm="group", groups=8)
    check_module(made, COLOUR, 10)
    norm = made.get_submodule("bn1")
    assert isinstance(norm, nn.GroupNorm) and norm.num_groups == 4, "the largest divisor of 12 and 8"
    for name, value in source.named_parameters():
        assert torch.equal(made.get_parameter(name), value), name
    plain = torchvision_model(COLOUR, 10, "vgg11")
    check_module(plain, COLOUR, 10)
    assert not list(plain.buffers())


def test_grey_images_count_as_three_equal_colours(tmp_path: Path) -> None:
    file = saved(tmp_path / "w.pt", trained_network())
    with pytest.raises(ScenarioError, match=r"model\.channels: found kept with resnet18 and images of 1 channels"):
        torchvision_model(GREY, 10, "resnet18", file, norm="group")
    with pytest.raises(ScenarioError, match=r"images of 2 channels; allowed: images of 3 channels, or summed with"):
        torchvision_model((2, 8, 8), 10, "resnet18", file, norm="group", channels="summed")
    grey = torchvision_model(GREY, 10, "resnet18", file, norm="group", channels="summed")
    colour = torchvision_model(COLOUR, 10, "resnet18", file, norm="group", channels="summed")
    images = torch.rand(5, *GREY)
    torch.testing.assert_close(grey(images), colour(images.expand(-1, 3, -1, -1)))


def test_a_head_for_other_classes_is_drawn_anew_where_asked(tmp_path: Path) -> None:
    source = trained_network(classes=1000)
    file = saved(tmp_path / "w.pt", source)
    with pytest.raises(ScenarioError, match=r"model\.head: found kept with weights for 1000 classes in .* and 10 in"):
        torchvision_model(COLOUR, 10, "resnet18", file, norm="group")
    made = torchvision_model(COLOUR, 10, "resnet18", file, norm="group", head="new")
    assert made.get_parameter("fc.weight").shape == (10, 12)
    assert torch.equal(made.get_parameter("conv1.weight"), source.get_parameter("conv1.weight"))
    same = torchvision_model(COLOUR, 1000, "resnet18", file, norm="group", head="new")
    assert not torch.equal(same.get_parameter("fc.weight"), source.get_parameter("fc.weight"))


class Planted:
    """Runs code where a pickle of it is read without care."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (pytest.fail, ("the file was executed",))


def changed(**values: Tensor) -> dict[str, Tensor]:
    return {**network(10).state_dict(), **values}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text", "not a file of tensors alone"),
        (b"", "not a file of tensors alone"),
        (Planted(), "not a file of tensors alone"),
        ({"model": network(10)}, "not a file of tensors alone"),
        ([1, 2], "holds no state dict"),
        ({"epoch": 3}, "holds no state dict"),
        ({}, "lacks .*block.0.bias.* and has nothing beside"),
        (changed(**{"fc2.weight": torch.ones(1)}), "lacks nothing, and has fc2.weight beside"),
        (changed(**{"conv1.weight": torch.ones(1)}), "conv1.weight of another shape"),
        (changed(**{"fc.bias": torch.full((10,), torch.nan)}), "fc.bias has values that are not finite"),
    ],
    ids=range(10),
)
def test_files_that_do_not_fit_are_refused_and_never_run(tmp_path: Path, content: object, message: str) -> None:
    file = tmp_path / "w.pt"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        torch.save(content, file)
    with pytest.raises(DataError, match=re.compile(rf"model\.weights: .*w\.pt: .*{message}")):
        torchvision_model(COLOUR, 10, "resnet18", str(file), norm="group")


def test_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="resnet18 needs samples of shape"):
        torchvision_model((5,), 10, "resnet18", norm="group")


def test_a_run_begins_with_the_file_and_is_known_by_its_bytes(tmp_path: Path) -> None:
    source = trained_network()
    saved(tmp_path / "w.pt", source)
    model = {"name": "torchvision:resnet18", "norm": "group", "channels": "summed", "weights": str(tmp_path / "w.pt")}
    scenario = small(model={**model, "trainable": "fc.*"}, rounds=1, clients__count=2, data__limit=12)
    simulation, _, _ = run(scenario)
    learner = simulation.deployment.learner
    first = learner.model.unflatten(torch.from_numpy(learner.initial_state(0).parameters))
    assert first.keys() == {"fc.weight", "fc.bias"} and torch.equal(
        first["fc.weight"], source.get_parameter("fc.weight")
    )
    assert torch.equal(learner.model.module.get_parameter("bn1.weight"), source.get_parameter("bn1.weight"))
    before = content_id(scenario)
    saved(tmp_path / "w.pt", trained_network())
    assert content_id(scenario) != before


def test_the_name_may_hold_the_architecture() -> None:
    text = "{name: x, model: {name: 'torchvision:vgg11', lora: {rank: 1}}}"
    scenario = parse_scenario(text, "x")
    assert isinstance(scenario.model, Torchvision) and scenario.model.architecture == "vgg11"
    assert scenario == parse_scenario(
        "{name: x, model: {name: torchvision, architecture: vgg11, lora: {rank: 1}}}", "x"
    )
    changed = parse_scenario(text, "x", {"model.name": "torchvision:resnet18"}).model
    assert isinstance(changed, Torchvision) and (changed.architecture, changed.lora.rank) == ("resnet18", 1)  # type: ignore[union-attr]
    with pytest.raises(ScenarioError, match=r"model\.architecture: found vgg99; allowed: alexnet \| convnext_tiny"):
        parse_scenario("{name: x, model: {name: 'torchvision:vgg99'}}", "x")
    with pytest.raises(ScenarioError, match=r"found vgg11 with the name torchvision:resnet18; allowed: resnet18"):
        parse_scenario("{name: x, model: {name: 'torchvision:resnet18', architecture: vgg11}}", "x")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", get_args(Torchvision.model_fields["architecture"].annotation))
def test_every_network_is_torchvisions_and_can_be_trained_sample_by_sample(architecture: str, tmp_path: Path) -> None:
    shape = (3, 64, 64)
    theirs = getattr(torchvision_module("models"), architecture)(num_classes=7)
    file = saved(tmp_path / "w.pt", theirs)
    model = FlatModel(lambda: torchvision_model(shape, 7, architecture, file, norm="group"), shape, 7)
    assert list(model.shapes) == [name for name, _ in theirs.named_parameters()]
    assert torch.equal(model.initial(0), torch.cat([value.detach().flatten() for value in theirs.parameters()]))
    if not any(isinstance(layer, nn.BatchNorm2d) for layer in theirs.modules()):
        images = torch.rand(2, *shape)
        torch.testing.assert_close(model.logits(model.initial(0), images), theirs.eval()(images))
