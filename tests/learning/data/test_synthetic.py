"""synthetic(α, β) against the laws it states."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from scipy import stats

from tests.statistics import assert_follows, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.learning.data import LogNormalSizes, SharedSource, SkewedSources, load_synthetic
from wirelessfl.learning.data.synthetic import FEATURES, NUM_CLASSES, SyntheticLaw, draw_examples
from wirelessfl.normals import noise_key, portable
from wirelessfl.streams import Streams

STREAMS = Streams(shifted(11))


def sources(law: SyntheticLaw, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W (count, 60, 10), b (count, 10), v (count, 60) of the first clients."""
    drawn = law.sources(STREAMS, np.arange(count))
    return drawn.weights, drawn.biases, drawn.means


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.5, 2.0)])
def test_the_hierarchy_of_models_and_means(alpha: float, beta: float) -> None:
    count = 300
    weights, biases, means = sources(SkewedSources(alpha, beta), count)
    weights = weights.reshape(count, -1)
    for elements, spread in ((weights, alpha), (biases, alpha), (means, beta)):
        size = elements.shape[1]
        # Within a client: n − 1 squared deviations of variance 1 behave like one Gaussian variance each.
        deviations = ((elements - elements.mean(1, keepdims=True)) ** 2).sum()
        freedom = count * (size - 1)
        low, high = stats.chi2.ppf(5e-7, freedom), stats.chi2.isf(5e-7, freedom)
        assert low <= deviations <= high
        # Between clients: the mean of a client's elements has variance spread² + 1/size.
        assert_variance_gaussian(elements.mean(1), spread**2 + 1 / size)
    # W_k and b_k share their u_k, and v_k has nothing to do with it.
    assert_variance_gaussian(weights.mean(1) - biases.mean(1), 1 / 600 + 1 / 10)
    assert_uncorrelated(weights.mean(1), means.mean(1))


def test_inputs_have_the_stated_mean_and_covariance() -> None:
    size = 4000
    examples = draw_examples(SkewedSources(), STREAMS, "train", np.array([5]), np.array([size]))
    mean = SkewedSources().sources(STREAMS, np.array([5])).means[0]
    whitened = (examples.inputs.double().numpy() - mean) * np.arange(1, FEATURES + 1) ** 0.6
    assert_follows(whitened, stats.norm.cdf)
    for j in (0, 30, 59):
        assert_variance_gaussian(whitened[:, j], 1.0)


@pytest.mark.parametrize("law", [SkewedSources(1.0, 1.0), SharedSource()])
def test_labels_are_the_largest_logit_of_the_clients_own_model(law: SyntheticLaw) -> None:
    clients, sizes = np.array([3, 8]), np.array([400, 300])
    examples = draw_examples(law, STREAMS, "train", clients, sizes)
    inputs = examples.inputs.double().numpy()
    for client, rows in ((3, slice(0, 400)), (8, slice(400, 700))):
        source = law.sources(STREAMS, np.array([client]))
        logits = np.einsum("nj,jc->nc", inputs[rows], source.weights[0]) + source.biases[0]
        np.testing.assert_array_equal(examples.targets.numpy()[rows], logits.argmax(1))


def test_iid_variant_shares_one_standard_normal_model_around_zero() -> None:
    weights, biases, means = sources(SharedSource(), 3)
    assert (weights == weights[0]).all()
    assert (biases == biases[0]).all()
    assert (means == 0).all()
    assert_follows(np.concatenate([weights[0].ravel(), biases[0]]), stats.norm.cdf)


def test_halves_are_different_draws_of_the_same_source() -> None:
    client, size = np.array([0]), np.array([10_000])
    halves = [draw_examples(SkewedSources(), STREAMS, half, client, size).inputs.double() for half in ("train", "test")]
    train, test = halves[0].numpy()[:, 0], halves[1].numpy()[:, 0]
    assert_uncorrelated(train, test)
    mean = SkewedSources().sources(STREAMS, np.array([0])).means[0, 0]
    assert_follows(np.concatenate([train, test]), stats.norm(mean, 1.0).cdf)


@pytest.mark.parametrize("law", [SkewedSources(0.3, 7.0), SharedSource()])
@pytest.mark.parametrize("sizes", [[1, 700, 20, 2300, 3, 20, 0, 1], [20] * 120, [0, 0], []])
def test_samples_are_those_that_each_client_draws_alone(law: SyntheticLaw, sizes: list[int]) -> None:
    """From ChaCha20 itself, number after number, in the order of the docstring; to the last bit."""
    clients = (np.arange(len(sizes)) * 2**35) % 1009
    examples, first = draw_examples(law, STREAMS, "train", clients, np.array(sizes, dtype=np.int64)), 0
    for client, size in zip(clients.tolist(), sizes, strict=True):
        if isinstance(law, SkewedSources):
            source = iter(normals("synthetic/source", client, 2 + 610 + FEATURES).astype(np.float64))
            u, v = 0.3 * next(source), 7.0 * next(source)
            weights = np.array([u + next(source) for _ in range(600)]).reshape(FEATURES, NUM_CLASSES)
            biases = np.array([u + next(source) for _ in range(NUM_CLASSES)])
            mean = np.array([v + next(source) for _ in range(FEATURES)])
        else:
            shared = STREAMS.generator("synthetic/source")
            weights, biases = shared.standard_normal((FEATURES, NUM_CLASSES)), shared.standard_normal(NUM_CLASSES)
            mean = np.zeros(FEATURES)
        drawn = normals("synthetic/train", client, size * FEATURES).reshape(size, FEATURES)
        samples = mean.astype(np.float32) + (np.arange(1.0, FEATURES + 1) ** -0.6).astype(np.float32) * drawn
        rows, first = slice(first, first + size), first + size
        np.testing.assert_array_equal(examples.inputs.numpy()[rows], samples)
        logits = samples.astype(np.float64) @ weights + biases
        np.testing.assert_array_equal(examples.targets.numpy()[rows], np.argmax(logits, axis=1))
    assert len(examples) == first


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_default_of_torch_does_not_matter(dtype: torch.dtype) -> None:
    asked = SkewedSources(), STREAMS, "train", np.arange(3), np.full(3, 4)
    expected = draw_examples(*asked)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("meta"):
            found = draw_examples(*asked)
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(found.inputs, expected.inputs)
    assert torch.equal(found.targets, expected.targets)


def normals(purpose: str, client: int, count: int) -> np.ndarray:
    """(count,) standard normal numbers of a client's stream, without the kernel."""
    key, nonce = noise_key(STREAMS, purpose, 0), np.array([client % 2**32, client >> 32, 0], dtype=np.uint32)
    return portable.standard_normals(key, nonce, count)


def test_sizes_follow_the_capped_lognormal_law() -> None:
    law = LogNormalSizes()
    sizes = law.draw(STREAMS, 50_000)
    for cut in (50, 51, 60, 104, 250, 499):  # P(size ≤ cut) = P(lognormal < cut − 49)
        probability = stats.lognorm.cdf(cut - 49, s=2.0, scale=np.exp(4.0))
        error = np.sqrt(probability * (1 - probability) / len(sizes))
        assert abs((sizes <= cut).mean() - probability) <= stats.norm.isf(5e-7) * error
    assert sizes.min() >= 50
    assert sizes.max() == 500
    # The docstring's "one client in seven" and "mean of 185".
    assert (sizes == 500).mean() == pytest.approx(stats.lognorm.sf(450, s=2.0, scale=np.exp(4.0)), abs=0.01)
    expected = 50 + sum(stats.lognorm.sf(k, s=2.0, scale=np.exp(4.0)) for k in range(1, 451))
    assert abs(sizes.mean() - expected) <= stats.norm.isf(5e-7) * sizes.std() / np.sqrt(len(sizes))
    assert round(expected) == 185


def test_a_clients_size_does_not_depend_on_how_many_there_are() -> None:
    law = LogNormalSizes()
    np.testing.assert_array_equal(law.draw(STREAMS, 1000)[:10], law.draw(STREAMS, 10))
    np.testing.assert_array_equal(law.draw(STREAMS, 70_000)[:1000], law.draw(STREAMS, 1000))


def test_pooled_dataset_holds_thirty_owners() -> None:
    dataset = load_synthetic(split_seed=2)
    sizes = LogNormalSizes().draw(Streams(2), 30)
    assert dataset.owners is not None
    np.testing.assert_array_equal(np.bincount(dataset.owners), sizes)
    assert len(dataset.test) == sum(-(-size // 10) for size in sizes.tolist())
    assert (dataset.feature_shape, dataset.num_classes) == ((FEATURES,), NUM_CLASSES)
    own = draw_examples(SkewedSources(), Streams(2), "train", np.array([4]), sizes[[4]])
    mine = dataset.train.inputs[torch.from_numpy(dataset.owners == 4)]
    assert sorted(mine.tolist()) == sorted(own.inputs.tolist())
    assert not torch.equal(load_synthetic(split_seed=3).test.inputs[:5], dataset.test.inputs[:5])


def test_sizes_of_many_clients_take_little_more_memory_than_themselves() -> None:
    count = 1_000_000
    tracemalloc.start()
    try:
        LogNormalSizes().draw(STREAMS, count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 8 * count  # drawn at once they took 14 times as much


@pytest.mark.parametrize(
    "arguments", [{"alpha": -1.0}, {"beta": -0.1}, {"alpha": float("nan")}, {"beta": float("inf")}]
)
def test_bad_spread_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        SkewedSources(**arguments)


@pytest.mark.parametrize(
    "law",
    [
        lambda: LogNormalSizes(minimum=0),
        lambda: LogNormalSizes(minimum=6, maximum=5),
        lambda: LogNormalSizes(sigma=-1.0),
        lambda: LogNormalSizes(mu=float("nan")),
    ],
)
def test_bad_sizes_are_refused(law: type[LogNormalSizes]) -> None:
    with pytest.raises(ValueError, match="found"):
        law()


def test_huge_lognormal_values_are_capped_and_not_wrapped() -> None:
    sizes = LogNormalSizes(mu=700.0, sigma=50.0, minimum=1, maximum=9).draw(STREAMS, 1000)
    assert (sizes == 9).all()
