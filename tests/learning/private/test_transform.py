"""The transform inside the engine: statistics, memory, independence of blocks, and the bound on one step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.learning.test_cohort import SIZES, STREAMS, collect, make
from wirelessfl.learning.cohort import CohortBlock, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.optimizers import SGD, Optimizer
from wirelessfl.learning.private import PrivateGradients, layer_of_parameters, resumed_state
from wirelessfl.privacy.clipping import (
    ClippingRule,
    Constant,
    FlatClipping,
    Geometric,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    SampleMooClipping,
)
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    HaarMechanism,
    LocalSteps,
    MeanGaussianMechanism,
    NoiseMechanism,
)
from wirelessfl.privacy.releases import DpSgdRelease

GAUSSIAN = GaussianMechanism(Constant(0.4))
CLIENTS = np.array([4, 1, 3, 0, 5, 2])


def train(
    clipping: ClippingRule,
    noise: NoiseMechanism = GAUSSIAN,
    chunk: int = 4,
    training: LocalTraining | None = None,
    lasting: dict[str, torch.Tensor] | None = None,
    clients: np.ndarray = CLIENTS,
    round_index: int = 1,
    start: torch.Tensor | None = None,
    steps: np.ndarray | None = None,
) -> list[CohortBlock]:
    model, population = make("mlp")
    start = model.initial(2).double() if start is None else start
    transform = PrivateGradients(clipping, noise)
    state = None if lasting is None else resumed_state(transform, clients, lasting, start)
    training = training or LocalTraining(SGD(), 0.05, batch_size=8, epochs=2)
    plan = ExecutionPlan(chunk=chunk)
    given = (model, start, population, clients, training, STREAMS, round_index, plan, transform, state)
    return list(train_cohort(*given, steps=steps))


@pytest.mark.parametrize("kind", [PrivateMooClipping, PublishedMooClipping, SampleMooClipping])
def test_a_client_that_takes_no_step_leaves_the_others_their_memory(kind: Callable[..., ClippingRule]) -> None:
    """Where rows of a memory are one in memory until they are written."""
    rule = kind(0.7, 0.02, 0.5)
    some = np.array([3, 0, 2, 0, 3, 1])
    together, alone = (collect(train(rule, chunk=chunk, steps=some), 6)[0] for chunk in (6, 1))
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-11)
    assert not together[[1, 3]].any() and together[[0, 2, 4, 5]].any(1).all()


@pytest.mark.parametrize("noise", [GAUSSIAN, HaarMechanism(Constant(0.4), "weighted"), MeanGaussianMechanism(0.1)])
@pytest.mark.parametrize("clipping", [FlatClipping(0.7), QuantileClipping(0.5), PrivateMooClipping(0.7, 0.02, 0.5)])
def test_blocks_change_rounding_only(clipping: ClippingRule, noise: NoiseMechanism) -> None:
    results = [collect(train(clipping, noise, chunk), 6)[0] for chunk in (1, 4, 100)]
    for updates in results[1:]:
        torch.testing.assert_close(updates, results[0], rtol=1e-9, atol=1e-11)


def test_a_client_alone_gets_what_it_gets_among_others() -> None:
    together, _ = collect(train(QuantileClipping(0.5)), 6)
    alone, _ = collect(train(QuantileClipping(0.5), clients=np.array([3])), 1)
    torch.testing.assert_close(alone[0], together[2], rtol=1e-9, atol=1e-11)


def test_statistics_of_every_step() -> None:
    steps = 2 * -(-SIZES[CLIENTS] // 8)
    for block in train(FlatClipping(1e-6), GaussianMechanism(Geometric(0.4, 2.0, 2)), round_index=2):
        own = np.arange(steps.max()) < steps[block.positions][:, None]
        width = next(iter(block.statistics.values())).shape[1]
        own = own[:, :width]
        for name, value in [("clipped_share", 1.0), ("clip_norm", 1e-6), ("noise_multiplier", 0.4 * 2.0**0.5)]:
            np.testing.assert_allclose(block.statistics[name][own], value, rtol=1e-12)
            assert np.isnan(block.statistics[name][~own]).all()
    for block in train(FlatClipping(1e6)):
        assert np.nanmax(block.statistics["clipped_share"]) == 0.0


def test_the_share_clipped_by_layer_counts_samples() -> None:
    """The output layer binds everywhere, the other nowhere: every sample is clipped, not half of them."""
    layers = layer_of_parameters(make("mlp")[0])
    rule = PerLayerClipping((1e9, 1e-9), layers)
    shares = np.concatenate(
        [block.statistics["clipped_share"].ravel() for block in train(rule, GaussianMechanism(Constant(0.0)))]
    )
    assert set(shares[np.isfinite(shares)]) == {1.0}


def test_an_empty_poisson_batch_is_noised_and_has_no_share() -> None:
    training = LocalTraining(SGD(), 0.05, batch_size=1, steps=40, sampling="poisson")
    blocks = train(FlatClipping(0.5), training=training, clients=np.array([1]))
    shares, multipliers = (blocks[0].statistics[name][0] for name in ("clipped_share", "noise_multiplier"))
    assert np.isnan(shares).any()  # 30 samples at rate 1/30: a step is empty with probability 0.36
    assert (multipliers == 0.4).all()


@pytest.mark.parametrize("clipping", [QuantileClipping(0.5), PrivateMooClipping(0.7, 0.02, 0.5)])
def test_the_clip_lives_across_rounds(clipping: ClippingRule) -> None:
    """Two rounds with the memory handed over: the second starts from the first one's norms, client by client."""
    first = train(clipping)
    clips = torch.empty(6, dtype=torch.float64)
    for block in first:
        clips[torch.from_numpy(block.positions)] = block.transform_state["clip_norm"]
    assert len(set(clips.tolist())) == 6
    second = train(clipping, lasting={"clip_norm": clips}, round_index=2)
    for block in second:
        np.testing.assert_allclose(block.statistics["clip_norm"][:, 0], clips[block.positions].numpy(), rtol=1e-12)


def test_only_lasting_rows_are_kept_and_the_others_take_no_memory() -> None:
    transform = PrivateGradients(PublishedMooClipping(0.7, 0.02, 0.5), GAUSSIAN)
    assert transform.lasting == ("clip_norm",)
    start = torch.zeros(1000)
    clips = torch.linspace(0.1, 1.0, 500)
    state = resumed_state(transform, np.arange(500), {"clip_norm": clips}, start)
    assert torch.equal(state["clip_norm"], clips)
    assert state["direction"].shape == (500, 1000)
    assert state["direction"].untyped_storage().nbytes() == 1000 * 4
    fresh = resumed_state(transform, np.arange(3), {}, start)
    assert torch.equal(fresh["clip_norm"], transform.start(np.arange(3), start)["clip_norm"])


def test_one_full_batch_step_without_noise_is_within_the_learning_rate_times_the_clip() -> None:
    """What the over-the-air rule for a gradient step builds on: ‖Δ_i‖ ≤ η C, and one sample moves it by ≤ η C/n_i."""
    training = LocalTraining(SGD(), 0.3, batch_size=64, steps=1)
    updates, numbers = collect(train(FlatClipping(0.05), GaussianMechanism(Constant(0.0)), training=training), 6)
    assert float(updates.norm(dim=1).max()) <= 0.3 * 0.05 * (1 + 1e-12)
    assert numbers[:, 0].max() > 0.3 * 0.05 * 0.5  # the bound is not idle


@pytest.mark.parametrize("optimizer", [SGD(0.9)], ids=repr)
def test_single_precision_runs(optimizer: Optimizer) -> None:
    model, _ = make("mlp")
    training = LocalTraining(optimizer, 0.05, batch_size=8, epochs=1)
    for noise in (GAUSSIAN, HaarMechanism(Constant(0.4)), MeanGaussianMechanism(0.1)):
        for block in train(PublishedMooClipping(0.7, 0.02, 0.5), noise, training=training, start=model.initial(2)):
            assert block.updates.dtype == torch.float32
            assert bool(block.updates.isfinite().all())


def test_the_record_is_that_of_rule_and_mechanism() -> None:
    transform = PrivateGradients(QuantileClipping(0.5, count_noise_std=2.0), HaarMechanism(Constant(0.4), "weighted"))
    samples = SIZES[CLIENTS]
    steps = LocalSteps(3, CLIENTS, samples, 8, samples, "poisson", 30)
    release = transform.release(steps)
    assert isinstance(release, DpSgdRelease)
    assert release.clipping == transform.clipping.law()
    assert release.noise_multiplier == 0.4
