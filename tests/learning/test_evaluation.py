"""Evaluation against the obvious computation."""

from __future__ import annotations

import math
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn

from wirelessfl.learning import evaluation
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.evaluation import evaluate
from wirelessfl.learning.flat import FlatModel, sample_losses
from wirelessfl.learning.layout import samples_at_once
from wirelessfl.learning.models import mlp


def test_accuracy_and_loss_over_several_chunks() -> None:
    model = FlatModel(lambda: mlp((6,), 4, hidden=(5,)), (6,), 4)
    parameters = 3 * model.initial(1)
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(2500, 6, generator=generator)
    targets = torch.randint(4, (2500,), generator=generator)
    found = evaluate(model, parameters, Examples(inputs, targets))
    logits = model.logits(parameters, inputs)
    assert found.accuracy == (logits.argmax(1) == targets).double().mean().item()
    assert found.loss == pytest.approx(nn.functional.cross_entropy(logits.double(), targets).item(), rel=1e-6)


@pytest.mark.parametrize("hidden", [16_385, 40_000, 140_845])
def test_wide_layers_see_fewer_samples_at_a_time(hidden: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hidden layer of 10⁷ parameters takes 0.6 MB a sample, and every thread would hold it of 1,024."""
    model, seen = FlatModel(lambda: mlp((2,), 3, hidden=(hidden,)), (2,), 3), []
    parameters = model.initial(1)

    def logits(own: FlatModel, at: Tensor, inputs: Tensor) -> Tensor:
        seen.append(len(inputs))
        return at.new_zeros(len(inputs), 3)

    monkeypatch.setattr(FlatModel, "logits", logits)
    evaluate(model, parameters, Examples(torch.zeros(1500, 2), torch.zeros(1500, dtype=torch.int64)))
    limit = 2**27
    assert sum(seen) == 1500 and 4 * hidden * max(seen) <= limit
    assert max(seen) == 1024 or 4 * hidden * 2 * max(seen) > limit


def test_parts_of_a_chunk_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    examples = Examples(torch.randn(1500, 6, generator=generator), torch.randint(4, (1500,), generator=generator))
    whole, parts = (FlatModel(lambda: mlp((6,), 4, hidden=(50,)), (6,), 4) for _ in range(2))
    parameters = whole.initial(1)
    expected = evaluate(whole, parameters, examples)
    monkeypatch.setattr("wirelessfl.learning.layout._WIDEST_BYTES", 4 * 50 * 100)
    found = evaluate(parts, parameters, examples)
    assert samples_at_once(parts, 1024) == 64
    assert found.accuracy == expected.accuracy and found.loss == pytest.approx(expected.loss, rel=1e-6)
    assert (found.correct == expected.correct).all()


class Recurrent(nn.Module):
    """A layer of torch that also gives its last state, as a user's module may have it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.LSTM(4, 3_000, batch_first=True), nn.Linear(3_000, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 2) logits of inputs (B, n, 4)."""
        states: Tensor = self.layer(inputs)[0]
        logits: Tensor = self.head(states[:, -1])
        return logits


@pytest.mark.parametrize(("length", "at_once"), [(10, 1024), (11, 512), (22, 256)])
def test_the_outputs_of_recurrent_layers_count_with_all_their_steps(length: int, at_once: int) -> None:
    assert samples_at_once(FlatModel(Recurrent, (length, 4), 2), 1024) == at_once


@pytest.mark.parametrize("threads", [2, 3, 9])
def test_threads_change_no_bit(threads: int) -> None:
    model = FlatModel(lambda: mlp((6,), 4, hidden=(5,)), (6,), 4)
    generator = torch.Generator().manual_seed(2)
    examples = Examples(torch.randn(4500, 6, generator=generator), torch.randint(4, (4500,), generator=generator))
    assert evaluate(model, model.initial(1), examples, threads) == evaluate(model, model.initial(1), examples)


def test_a_diverged_model_is_reported() -> None:
    model = FlatModel(lambda: mlp((6,), 4), (6,), 4)
    found = evaluate(
        model, torch.full((model.dimension,), math.nan), Examples(torch.ones(3, 6), torch.tensor([0, 0, 1]))
    )
    assert found.accuracy == 0.0
    assert math.isnan(found.loss)


def test_no_examples_are_refused() -> None:
    model = FlatModel(lambda: mlp((6,), 4), (6,), 4)
    with pytest.raises(ValueError, match="no examples"):
        evaluate(model, model.initial(0), Examples(torch.ones(0, 6), torch.ones(0, dtype=torch.int64)))


def test_sample_losses_are_cross_entropy_and_stand_large_logits() -> None:
    logits = torch.tensor([[[1.0, 2.0, 3.0], [1e4, -1e4, 0.0]]])
    targets = torch.tensor([[2, 0]])
    expected = nn.functional.cross_entropy(logits[0], targets[0], reduction="none")
    torch.testing.assert_close(sample_losses(logits, targets)[0], expected)


def test_on_a_gpu_convolutions_are_neither_rounded_to_tf32_nor_chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch does by default: the accuracy of a run in fp32 would be of TF32, and its repetition another one."""
    seen: list[tuple[bool, bool, bool, str]] = []

    def assess(*_: object) -> tuple[Tensor, Tensor]:
        flags = torch.backends.cudnn
        seen.append((flags.allow_tf32, flags.benchmark, flags.deterministic, torch.get_float32_matmul_precision()))
        return torch.zeros(2, dtype=torch.float64), torch.zeros(1, dtype=torch.bool)

    monkeypatch.setattr(evaluation, "_assess", assess)
    there = Mock(spec=Tensor, device=torch.device("cuda"))
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=True):
        evaluate(Mock(spec=FlatModel), there, Examples(torch.zeros(1, 6), torch.zeros(1, dtype=torch.int64)))
    assert seen == [(False, False, True, "highest")]
