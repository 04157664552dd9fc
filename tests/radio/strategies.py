"""Hypothesis strategies for rounds of clients with very unequal channels, weights and budgets."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from wirelessfl.radio import Links

CLIP = 0.7

complex_gains = st.builds(
    lambda magnitude, phase: magnitude * np.exp(1j * phase), st.floats(1e-3, 10.0), st.floats(-np.pi, np.pi)
)


@st.composite
def rounds(draw: st.DrawFn, max_clients: int = 6) -> Links:
    """Links of 1 to ``max_clients`` clients with imperfect estimates; others, who are absent, hold part of the data."""
    count = draw(st.integers(1, max_clients))
    column = st.lists(complex_gains, min_size=count, max_size=count).map(np.array)
    samples = np.array(draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count)))
    budgets = np.array(draw(st.lists(st.floats(1e-4, 1e4), min_size=count, max_size=count)))
    path_gain = np.array(draw(st.lists(st.floats(1e-3, 10.0), min_size=count, max_size=count)))
    weight = samples / (samples.sum() + draw(st.integers(0, 1000)))
    return Links(draw(column), draw(column), weight, budgets, path_gain, 1.2 * path_gain)


def example_links(count: int = 8, seed: int = 0, error: float = 0.1) -> Links:
    """A round of Rayleigh channels with imperfect estimates."""
    generator = np.random.default_rng(seed)
    gains = generator.standard_normal((4, count)) / np.sqrt(2)
    channel = gains[0] + 1j * gains[1]
    estimate = channel + error * (gains[2] + 1j * gains[3])
    samples = generator.integers(10, 200, count)
    budget = generator.uniform(0.5, 2.0, count)
    ones = np.ones(count)
    return Links(channel, estimate, samples / samples.sum(), budget, ones, ones * (1 + error**2))
