"""Links: what they refuse and how they are cut."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from tests.radio.strategies import example_links
from wirelessfl.radio import Links


@pytest.mark.parametrize("index", [np.array([3, 0]), np.arange(8) % 3 == 0])
def test_take_cuts_every_column(index: np.ndarray) -> None:
    links = example_links(8)
    cut = links.take(index)
    for field in fields(Links):
        np.testing.assert_array_equal(getattr(cut, field.name), getattr(links, field.name)[index])


def test_length_is_the_number_of_clients() -> None:
    assert len(example_links(5)) == 5
    assert len(example_links(5).take(np.array([], dtype=np.int64))) == 0


@pytest.mark.parametrize("name", ["estimate", "weight", "power_budget", "path_gain", "mean_estimate_power"])
def test_a_column_of_another_length_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has shape"):
        replace(example_links(4), **{name: np.ones(3)})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["weight", "power_budget", "path_gain", "mean_estimate_power"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_column_that_is_not_positive_is_refused(name: str, value: float) -> None:
    column = np.array([1.0, value, 1.0])
    with pytest.raises(ValueError, match=f"{name} must be positive"):
        replace(example_links(3), **{name: column})


@pytest.mark.parametrize("name", ["channel", "estimate"])
def test_a_channel_that_is_not_finite_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="finite"):
        replace(example_links(2), **{name: np.array([1.0, np.nan + 0j])})


def test_an_unlimited_power_budget_is_allowed() -> None:
    assert np.isinf(replace(example_links(2), power_budget=np.full(2, np.inf)).power_budget).all()
