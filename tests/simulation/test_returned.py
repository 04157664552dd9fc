"""Arrays of a wrong shape or range from code outside the package: key, class and line, what was found and is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import override

from tests.simulation.scenarios import run, small
from wirelessfl.conformance import KEYS, check_array
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.radio import AirInterface, LogDistance, SlotLinks
from wirelessfl.radio.conformance import check_path_loss
from wirelessfl.radio.reception import SumReceiver
from wirelessfl.streams import NodeStream, Streams

HERE = "tests.simulation.test_returned"
CARRIER: dict[str, Any] = {"carrier_hz": 1e9, "exponent": 2.0, "reference_distance": 1.0}


class OneForAll:
    """Availability as a single answer."""

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        return np.ones(1, dtype=np.bool_)


class Flat:
    """Places with one coordinate."""

    def place(self, stream: NodeStream) -> NDArray[np.float64]:
        return np.ones(len(stream.nodes))


class Listed:
    """Places as a list."""

    def place(self, stream: NodeStream) -> Any:
        return [(1.0, 2.0)] * len(stream.nodes)


@dataclass(frozen=True)
class Certain(LogDistance):
    """A line of sight that is more than certain."""

    @override
    def line_of_sight_probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(len(distance), 1.5)


@dataclass(frozen=True)
class Column(LogDistance):
    """Losses as a column."""

    @override
    def loss_db(self, distance: NDArray[np.float64], line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        return super().loss_db(distance, line_of_sight)[:, None]


class OneAntenna(SumReceiver):
    """A combiner without its axes."""

    @override
    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        return np.ones(1, dtype=np.complex128)


class Noisy(SumReceiver):
    """One noise for the whole slot."""

    @override
    def noise_std(self, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
        return np.ones(())


CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "OneForAll",
        {"faults__availability": {"model": f"{HERE}:OneForAll"}},
        "available returned (1,), needs (6,) truth",
    ),
    ("Flat", {"channel__placement": {"scheme": f"{HERE}:Flat"}}, "place returned (6,), needs (6, 2) ("),
    ("Listed", {"channel__placement": {"scheme": f"{HERE}:Listed"}}, "place returned a list, needs (6, 2) ("),
    (
        "Certain",
        {"channel__pathloss": {"model": f"{HERE}:Certain", "options": CARRIER}},
        "line_of_sight_probability returned numbers from 1.5 to 1.5, needs numbers from 0 to 1 (",
    ),
    (
        "Column",
        {"channel__pathloss": {"model": f"{HERE}:Column", "options": CARRIER}},
        "loss_db returned (1, 1), needs (1,) (",
    ),
    (
        "OneAntenna",
        {"uplink__receiver": {"combiner": f"{HERE}:OneAntenna"}},
        "combine returned (1,), needs (1, 1, 1)",
    ),
    ("Noisy", {"uplink__receiver": {"combiner": f"{HERE}:Noisy"}}, "noise_std returned (), needs (1, 1) ("),
]


@pytest.mark.parametrize(("name", "overrides", "words"), CASES, ids=[name for name, _, _ in CASES])
def test_a_wrong_shape_or_range_is_refused_with_key_class_and_line(
    name: str, overrides: dict[str, Any], words: str
) -> None:
    located = {} if name in ("OneForAll", "OneAntenna", "Noisy") else {"channel__pathloss": {"model": "free_space"}}
    with pytest.raises(ScenarioError) as refusal:
        run(small(**{**located, **overrides}))
    message = str(refusal.value)
    assert f": {HERE}:{name}.{words}" in message
    assert message.partition(": ")[0] in KEYS.values()
    assert re.search(r"\(tests/simulation/test_returned\.py:\d+\)$", message), message


def test_the_conformance_check_refuses_a_probability_above_one() -> None:
    with pytest.raises(CheckFailed, match="is not between 0 and 1"):
        check_path_loss(Certain(**CARRIER))
    with pytest.raises(CheckFailed, match=r"loss_db has shape \(200, 1\), not \(200,\)"):
        check_path_loss(Column(**CARRIER))


def test_an_array_is_checked_for_shape_type_and_finite_numbers() -> None:
    check_array("it", np.ones(3), (3,))
    for values, words in (
        ([1.0], r"it has shape None, not \(1,\)"),
        (np.ones(1, dtype=np.int64), "it holds int64, not floating"),
        (np.array([np.nan]), "it is not finite"),
    ):
        with pytest.raises(CheckFailed, match=words):
            check_array("it", values, (1,))
