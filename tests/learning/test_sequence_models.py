"""Models of letters and words beside torch's own layers, and further models of images by their published sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl as wfl
from tests.learning.data.test_own_files import write_leaf
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import FlatModel
from wirelessfl.learning.models import cnn_femnist, lenet, lstm, mobilenet_gn, resnet_gn, transformer
from wirelessfl.learning.models.sequence import EncoderLayer, LstmLayer


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(3)


def test_the_lstm_layer_is_that_of_torch() -> None:
    ours, theirs = LstmLayer(5, 7), nn.LSTM(5, 7, batch_first=True)
    own = ours.input_weight, ours.hidden_weight, ours.bias, torch.zeros(28)
    with torch.no_grad():
        for one, other in zip(theirs.parameters(), own, strict=True):
            one.copy_(other)
    inputs = torch.randn(4, 11, 5)
    assert torch.allclose(ours(inputs), theirs(inputs)[0], atol=1e-6)


def test_the_encoder_layer_is_that_of_torch() -> None:
    ours = EncoderLayer(12, 3, 24)
    theirs = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, batch_first=True, norm_first=True)
    pairs = (
        (theirs.self_attn.in_proj_weight, ours.projection.weight),
        (theirs.self_attn.in_proj_bias, ours.projection.bias),
        (theirs.self_attn.out_proj.weight, ours.output.weight),
        (theirs.self_attn.out_proj.bias, ours.output.bias),
        (theirs.linear1.weight, ours.feed[0].weight),
        (theirs.linear1.bias, ours.feed[0].bias),
        (theirs.linear2.weight, ours.feed[2].weight),
        (theirs.linear2.bias, ours.feed[2].bias),
    )
    with torch.no_grad():
        for one, other in pairs:
            one.copy_(torch.as_tensor(other))
    inputs = torch.randn(4, 9, 12)
    assert torch.allclose(ours(inputs), theirs(inputs), atol=1e-5)


def separable(narrow: int, wide: int) -> int:
    """Parameters of a depthwise 3 × 3 and a pointwise convolution, each with a norm."""
    return 9 * narrow + 2 * narrow + narrow * wide + 2 * wide


LSTM = 80 * 8 + 4 * 256 * (8 + 256 + 1) + 4 * 256 * (256 + 256 + 1) + 257 * 80
ENCODER = 30 * 16 + 12 * 16 + (12 * 16**2 + 13 * 16) + 2 * 16 + 17 * 5
MOBILE = 27 * 32 + 64 + sum(map(separable, (32, 64, 128, 128, 256, 256), (64, 128, 128, 256, 256, 256))) + 257 * 10


@pytest.mark.parametrize(
    ("build", "shape", "classes", "dimension"),
    [
        (lambda s, c: lstm(s, c, 80), (80,), 80, LSTM),
        (cnn_femnist, (1, 28, 28), 62, 6_603_710),  # as LEAF's authors count
        (lenet, (1, 28, 28), 10, 44_426),
        (lenet, (3, 32, 32), 10, 62_006),  # as the tutorial of torch counts
        (resnet_gn, (3, 32, 32), 10, 272_474),
        (lambda s, c: resnet_gn(s, c, 8), (3, 32, 32), 10, 78_042),
        (mobilenet_gn, (3, 32, 32), 10, MOBILE),
        (lambda s, c: transformer(s, c, 30, 16, 2, 1), (12,), 5, ENCODER),
    ],
)
def test_sizes(build: Any, shape: tuple[int, ...], classes: int, dimension: int) -> None:
    assert FlatModel(lambda: build(shape, classes), shape, classes).dimension == dimension


def plays(root: Path) -> Path:
    letters = (
        "to be or not to be that is the question whether tis nobler in the mind to suffer the slings and arrows " * 4
    )
    samples = {}
    for user in range(4):
        starts = range(11 * user, 11 * user + 12)
        samples[f"P{user}"] = ([letters[at : at + 80] for at in starts], [letters[at + 80] for at in starts])
    return write_leaf(root, samples)


LETTERS_LSTM = {"name": "lstm", "hidden": 16, "layers": 1}
LETTERS_TRANSFORMER = {"name": "transformer", "width": 16, "layers": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "private"),
    [
        (LETTERS_LSTM, False),
        (LETTERS_TRANSFORMER, True),
        pytest.param(LETTERS_LSTM, True, marks=pytest.mark.slow),
        pytest.param(LETTERS_TRANSFORMER, False, marks=pytest.mark.slow),
    ],
)
def test_letters_are_learnt(tmp_path: Path, model: dict[str, Any], private: bool) -> None:
    gaussian = {"mechanism": "gaussian", "unit": "sample", "clip": 1.0, "noise_multiplier": 1.0}
    scenario: dict[str, Any] = {
        "name": "letters",
        "rounds": 2,
        "clients": {"count": 4, "selection": {"scheme": "all"}},
        "data": {
            "dataset": {"name": "leaf", "root": str(plays(tmp_path / "leaf")), "task": "shakespeare"},
            "partition": {"scheme": "natural"},
        },
        "model": model,
        "training": {
            "batch_size": 6,
            "optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.0},
            "algorithm": {"name": "fedavg"},
            **({"privacy": gaussian} if private else {}),
        },
        "uplink": {"kind": "ideal"},
    }
    trace = wfl.simulate(wfl.load_scenario(scenario), tmp_path / "run", pictures=False).dataset
    losses = trace["train_loss"].values
    assert np.isfinite(losses).all() and (private or losses[-1] < losses[0])


def test_text_needs_models_of_text(tmp_path: Path) -> None:
    leaf = {"name": "leaf", "root": str(plays(tmp_path / "leaf")), "task": "shakespeare"}
    text = {"dataset": leaf, "partition": {"scheme": "natural"}}
    everyone = {"count": 4, "selection": {"scheme": "all"}}
    for data, model, says in (
        (
            text,
            "mlp",
            "found mlp with the dataset leaf, whose inputs are words or letters; allowed: lstm | transformer",
        ),
        ({}, "lstm", "found lstm with the dataset digits, whose inputs are quantities; allowed: any model but lstm"),
    ):
        scenario = wfl.load_scenario({"name": "text", "clients": everyone, "data": data, "model": {"name": model}})
        with pytest.raises(ScenarioError, match=f"model.name: {re.escape(says)}"):
            wfl.simulate(scenario, tmp_path / "run", pictures=False)


def test_heads_divide_the_width() -> None:
    with pytest.raises(ScenarioError, match=r"model\.heads: found 3; allowed: a divisor of the width, 64"):
        wfl.load_scenario({"name": "text", "model": {"name": "transformer", "heads": 3}})
