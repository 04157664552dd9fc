"""Every variant of a family can be built, and what is built conforms to the family's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from wirelessfl.assembly.antennas import CorrelationContext
from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.errors import CheckFailed
from wirelessfl.learning.conformance import check_availability
from wirelessfl.learning.faults import AvailabilityModel, BernoulliAvailability, GilbertElliott
from wirelessfl.radio import RandomWaypoint, Rayleigh, TappedDelayLine, UniformDisc
from wirelessfl.radio.conformance import check_correlation, check_fading_model, check_path_loss, check_placement
from wirelessfl.radio.propagation import BlockFading, Draws, Standing
from wirelessfl.scenario.channel import (
    Channel,
    Correlation,
    ExternalFading,
    Fading,
    ImportedFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    TdlFading,
)
from wirelessfl.scenario.geography import NoPathLoss, PathLoss, Placement, Tr38901PathLoss
from wirelessfl.streams import Streams


def variants(family: Any) -> list[type[Any]]:
    """The variants of a union of the scenario, the user's own left out."""
    return [variant for variant in get_args(get_args(family)[0]) if not variant.__name__.startswith("External")]


RUN = RunFacts(rounds=3, clients=2000)


@pytest.mark.parametrize(
    "variant", [law for law in variants(Fading) if law not in (RecordedFading, ImportedFading, TdlFading)]
)
def test_every_fading_model_can_be_built_and_conforms(variant: type[Any]) -> None:
    check_fading_model(make_object("channel.fading.model", variant()))


def test_a_delay_line_is_built_and_has_no_law_of_one_gain() -> None:
    assert isinstance(make_object("channel.fading.model", TdlFading()), TappedDelayLine)


def test_the_rician_factor_becomes_linear() -> None:
    own = ExternalFading(model="wirelessfl.radio:Rician", options={"rician_k": 10.0})
    assert make_object("k", RicianFading(k_db=10.0)) == make_object("k", own)


@pytest.mark.parametrize("variant", [law for law in variants(PathLoss) if law is not NoPathLoss])
def test_every_path_loss_can_be_built_and_conforms(variant: type[Any]) -> None:
    check_path_loss(make_object("channel.pathloss.model", variant()))


@pytest.mark.parametrize("variant", variants(Placement))
def test_every_placement_can_be_built_and_conforms(variant: type[Any]) -> None:
    points = tuple((float(i), 0.0) for i in range(RUN.clients))
    keys = {"points_m": points} if "points_m" in variant.model_fields else {}
    law = make_object("channel.placement.scheme", variant(**keys), context=RUN)
    if not isinstance(law, RandomWaypoint):
        check_placement(law)


@pytest.mark.parametrize("fading", [RicianFading(), RayleighFading()])
@pytest.mark.parametrize("pathloss", [NoPathLoss(), Tr38901PathLoss()])
@pytest.mark.parametrize("variant", variants(Correlation))
def test_every_correlation_can_be_built_and_conforms(variant: type[Any], fading: Any, pathloss: Any) -> None:
    correlation = variant(**({"doppler_hz": 3.0} if "doppler_hz" in variant.model_fields else {}))
    channel = Channel(fading=fading, correlation=correlation, pathloss=pathloss)
    draws = Draws(Streams(5))
    place = Standing(UniformDisc(300.0, 10.0), draws)
    context = CorrelationContext(channel, make_object("k", fading), draws, place, (0.0, 0.0))
    check_correlation(make_object("channel.correlation.model", correlation, context=context), count=5000)


def test_a_correlation_whose_slot_begins_with_other_gains_is_found() -> None:
    class Ahead(BlockFading):
        def over(self, *args: Any) -> NDArray[np.complex128]:
            return -super().over(*args)

    with pytest.raises(CheckFailed, match="first gains of a slot are not those at its beginning"):
        check_correlation(Ahead(Rayleigh(), None, Draws(Streams(5))))


@pytest.mark.parametrize("model", [BernoulliAvailability(0.6), GilbertElliott(0.2, 0.4)])
def test_every_availability_model_conforms(model: AvailabilityModel) -> None:
    check_availability(model)


class Forgetful(GilbertElliott):
    """A chain whose checkpoint is empty."""

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


class Together:
    """Presence that depends on who else is selected."""

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(clients)) % 2 == 0)


@pytest.mark.parametrize(
    ("model", "words"), [(Forgetful(0.2, 0.4), "goes on from its state"), (Together(), "other clients are selected")]
)
def test_a_broken_promise_of_an_availability_model_is_found(model: AvailabilityModel, words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        check_availability(model)
