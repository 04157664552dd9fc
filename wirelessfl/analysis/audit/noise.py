"""Tests of the noise itself: its size on all coordinates, and its independence between events.

A game with a fixed canary does not see noise that is used twice: the mechanism is broken all the same, as a difference
of two outputs is then free of noise. Here noise is recorded without any canary and tested for all that the ledger takes
for granted: that it is as large as recorded in every event, on every coordinate and in all, in all events of one round,
step or client, and on stretches of coordinates; that no two events share it, nor neighbouring ones on average, nor two
coordinates; that it is normal where it should be. The false-alarm rate of every test is exact or smaller, at any number
of events and coordinates:

- Sums of products z_k z'_k of independent noise that is symmetric about 0 are, given all magnitudes, sums of
  independent signs: P(|Σ z_k z'_k| > x √Σ (z_k z'_k)²) <= 2 exp(−x²/2) (Hoeffding, JASA 1963), whatever the scales.
  The signs of products along a chain z_1 z_2, z_2 z_3, ... are independent too.
- Σ z² of n values with at least the variance recorded lies below a χ²(n) quantile no more often than that law says.
- The Kolmogorov-Smirnov distance of n values exceeds √(ln(2/α)/2n) with at most α (Massart 1990).

Many pairs and coordinates share their rate evenly (Bonferroni).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Values = NDArray[np.float64]

# Coordinates of which all pairs are compared; beyond, all distances between coordinates.
_PAIRED_COORDINATES = 512
# Size, events, neighbouring events, two of coordinates, law.
_TESTS = 6
# Above max |x φ(x)| = 0.242: by how much Φ(x/s) moves with ln s.
_SLOPE = 0.25


@dataclass(frozen=True, eq=False)
class NoiseRecord:
    """Noise of N events on d coordinates, without any canary.

    Attributes:
        source: whose noise it is, in words that fit after "the noise".
        values: (N, d) in units of the standard deviation that the privacy record counts.
        labels: name to (N,) int64: seed, round, step, client, base station of each event.
        gaussian: whether the law is to be the normal one with one standard deviation.
        left_out: which events are not recorded, in words that follow "noise"; empty where all are.
    """

    source: str
    values: Values
    labels: dict[str, NDArray[np.int64]]
    gaussian: bool
    left_out: str = ""


@dataclass(frozen=True)
class NoiseFault:
    """A test that noise fails.

    Attributes:
        words: what is wrong, a plain sentence.
        log_probability: natural logarithm of a bound on the probability that sound noise fails the test like this.
    """

    words: str
    log_probability: float

    def among(self, tests: int) -> "NoiseFault":
        """The same fault where so many tests share a rate of false alarms."""
        return replace(self, log_probability=self.log_probability + math.log(tests))


def noise_faults(record: NoiseRecord, false_alarm: float) -> list[NoiseFault]:
    """All tests that the noise of a record fails.

    Args:
        record: the noise.
        false_alarm: the probability that sound noise fails any.
    """
    if not len(record.values):
        return []
    sizes, tests = list(_sizes(record, record.values**2)), (_repeated, _repeated_by_neighbours, _repeated_across)
    found = [fault.among(len(sizes)) for fault in sizes]
    found += [fault for test in (*tests, _not_normal) for fault in test(record)]
    return [fault for fault in found if fault.log_probability < math.log(false_alarm / _TESTS)]


def _sizes(record: NoiseRecord, power: Values) -> Iterator[NoiseFault]:
    # The size in each event, on each coordinate, in all; and together where a rule for some of them would show.
    yield _smallest(record, power.sum(axis=1), power.shape[1], "events", lambda index: _event(record, index))
    yield _smallest(record, power.sum(axis=0), power.shape[0], "coordinates", lambda index: f"number {index}")
    yield _smallest(record, np.atleast_1d(power.sum()), power.size)
    for tried in (list(_smallest_labels(record, power)), list(_smallest_stretches(record, power))):
        if tried:
            yield min(tried, key=lambda fault: fault.log_probability).among(len(tried))


def _smallest_labels(record: NoiseRecord, power: Values) -> Iterator[NoiseFault]:
    # All events of one round, step, client, ..., which a rule of their own may rule.
    each = power.sum(axis=1)
    for name, label in record.labels.items():
        values, place = np.unique(label, return_inverse=True)
        names = [f"{name} {value}" for value in values]
        sums = np.bincount(place, weights=each).astype(np.float64)
        counts = np.bincount(place).astype(np.float64) * power.shape[1]
        yield _smallest(record, sums, counts, f"values of the {name}", names.__getitem__)


def _smallest_stretches(record: NoiseRecord, power: Values) -> Iterator[NoiseFault]:
    each, length = power.sum(axis=0), 2
    while 2 * length <= len(each):
        first = range(0, len(each) - length + 1, length)
        sums = np.add.reduceat(each[: len(first) * length], first)
        names = [f"that from number {start} on" for start in first]
        yield _smallest(record, sums, len(power) * length, f"stretches of {length} coordinates", names.__getitem__)
        length *= 2


def _smallest(
    record: NoiseRecord,
    sums: Values,
    counts: Values | int,
    what: str = "",
    name: Callable[[int], str] = lambda index: "",
) -> NoiseFault:
    each = stats.chi2.logcdf(sums, counts)
    worst = int(np.argmin(each))
    share = float((sums / counts)[worst])
    below = int(np.count_nonzero(each + math.log(len(sums)) < math.log(1e-3)))
    where = f" in {below} of {len(sums)} {what}, {name(worst)} being the worst" if what else ""
    words = f"The noise {record.source} is smaller than recorded{where}: {share:.3g} of its variance is there."
    return NoiseFault(words, float(each[worst]) + math.log(len(sums)))


def _event(record: NoiseRecord, index: int) -> str:
    return ", ".join(f"{name} {values[index]}" for name, values in record.labels.items())


def _repeated(record: NoiseRecord) -> Iterator[NoiseFault]:
    if len(record.values) < 2:
        return
    one, other, correlation, log_probability = _worst_pair(record.values, record.gaussian)
    apart = [name for name, label in record.labels.items() if label[one] != label[other]]
    yield NoiseFault(
        f"The noise {record.source} is used again: that of ({_event(record, one)}) and that of "
        f"({_event(record, other)}), which differ in the {' and '.join(apart)}, correlate by {correlation:.3f}.",
        log_probability,
    )


def _repeated_by_neighbours(record: NoiseRecord) -> Iterator[NoiseFault]:
    # All pairs of events that are neighbours in one label and equal in the others, together.
    for name in record.labels:
        others = [label for other, label in record.labels.items() if other != name]
        order = np.lexsort((record.labels[name], *others))
        pairs = [label[order][1:] == label[order][:-1] for label in others]
        same = np.logical_and.reduce([np.ones(len(order) - 1, dtype=np.bool_), *pairs])
        one, other = record.values[order[:-1][same]], record.values[order[1:][same]]
        products = one * other
        total, squares = float(products.sum()), float((products**2).sum())
        size = float(np.sqrt((one**2).sum() * (other**2).sum()))
        if len(one):
            yield NoiseFault(
                f"The noise {record.source} is not independent from one {name} to the next: over all of them its "
                f"correlation is {total / max(size, 1e-300):.3g}.",
                _sign_bound(total / math.sqrt(squares) if squares > 0 else 0.0) + math.log(len(record.labels)),
            )


def _repeated_across(record: NoiseRecord) -> Iterator[NoiseFault]:
    # Coordinates at every distance, and every pair of some of them, over all events.
    values = record.values
    if values.shape[1] < 2:
        return
    products, squares = _autocorrelation(values), _autocorrelation(values**2)
    # Rounding of the transform is far below this part of the largest.
    scores = np.where(squares > 1e-9 * squares.max(), products / np.sqrt(np.maximum(squares, 1e-300)), 0.0)
    lag = int(np.argmax(np.abs(scores))) + 1
    total = float((values**2).sum())
    yield NoiseFault(
        f"The noise {record.source} is the same on different coordinates: at a distance of {lag} coordinates the "
        f"correlation is {float(products[lag - 1]) / max(total, 1e-300):.3g}.",
        _sign_bound(float(scores[lag - 1])) + math.log(len(scores)),
    )
    chosen = np.random.default_rng(0).permutation(values.shape[1])[:_PAIRED_COORDINATES]
    one, other, correlation, log_probability = _worst_pair(np.ascontiguousarray(values[:, chosen].T), record.gaussian)
    yield NoiseFault(
        f"The noise {record.source} is the same on different coordinates: on {chosen[one]} and {chosen[other]} it has "
        f"the correlation {correlation:.3f}.",
        log_probability,
    )


def _not_normal(record: NoiseRecord) -> Iterator[NoiseFault]:
    # The distance from a normal law of the measured standard deviation.
    #
    # The measured one is off by some factor, which moves the law by less than a quarter of its logarithm.
    if not record.gaussian:
        return
    values = np.sort(record.values, axis=None)
    count = values.size
    deviation = math.sqrt(float(values @ values) / count)
    if deviation == 0:
        return
    law = stats.norm.cdf(values / deviation)
    grid = np.arange(count + 1) / count
    distance = float(max(np.max(grid[1:] - law), np.max(law - grid[:-1])))
    # At p the measured deviation is within √(2 x/n) + x/n of the true one, x = ln(4/p) (Laurent and Massart 2000).
    low, high = -1e4, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        allowed = math.log(4) - middle
        reach = math.sqrt(allowed / (2 * count)) + _SLOPE * (math.sqrt(2 * allowed / count) + 2 * allowed / count)
        low, high = (low, middle) if distance > reach else (middle, high)
    yield NoiseFault(
        f"The noise {record.source} is not normal: its distribution is {distance:.3g} away from that law.",
        high,
    )


def _worst_pair(rows: Values, gaussian: bool) -> tuple[int, int, float, float]:
    # The two rows that are most alike, their correlation, and the log probability that any two are.
    #
    # Normal rows of one size each have an exact law: (1 − r²) is Beta((n − 1)/2, 1/2).
    first, second = np.triu_indices(len(rows), 1)
    squares = (rows**2 @ (rows**2).T)[first, second]
    products = (rows @ rows.T)[first, second]
    size = np.linalg.norm(rows, axis=1)
    correlations = _ratio(products, size[first] * size[second])
    if gaussian and rows.shape[1] > 1:
        worst = int(np.argmax(np.abs(correlations)))
        left = np.clip(1 - correlations[worst] ** 2, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            alone = float(np.log(special.betainc((rows.shape[1] - 1) / 2, 0.5, left)))
    else:
        scores = _ratio(products, np.sqrt(squares))
        worst = int(np.argmax(np.abs(scores)))
        alone = _sign_bound(float(scores[worst]))
    return int(first[worst]), int(second[worst]), float(correlations[worst]), alone + math.log(len(first))


def _ratio(sums: Values, sizes: Values) -> Values:
    return np.where(sizes > 0, sums / np.maximum(sizes, 1e-300), 0.0)


def _sign_bound(score: float) -> float:
    return min(0.0, math.log(2) - score**2 / 2)


def _autocorrelation(values: Values) -> Values:
    # (d − 1,) Σ over events and coordinates of z_j z_{j+l}, for the distances l = 1 ... d − 1.
    dimension = values.shape[1]
    power = sum((np.abs(np.fft.rfft(row, 2 * dimension)) ** 2 for row in values), start=np.zeros(dimension + 1))
    return np.asarray(np.fft.irfft(power, 2 * dimension)[1:dimension])
