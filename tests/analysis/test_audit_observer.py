"""Games against an observer with antennas of its own: right ledgers stand, wrong ones are caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.analysis.audit_examples import FALSE_ALARM, audited, built, with_uplink
from tests.simulation.uplinks.test_observer import CELLS, explicit
from wirelessfl.analysis.audit.choice import JOINT, choose_game
from wirelessfl.analysis.audit.games import SlotGame
from wirelessfl.analysis.audit.rehearsal import rehearse_for_audit
from wirelessfl.radio import Overheard
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air import records
from wirelessfl.simulation.uplinks.air.observed import observed_std
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.streams import Streams

AIR: dict[str, Any] = {"kind": "over_the_air", "snr_db": -10.0}
JAMMED = {**AIR, "jammer": {"epsilon": 2.0, "margin": 3, "position_m": [30.0, 0.0]}}


def of_streams(antennas: int, **jammer: Any) -> dict[str, Any]:
    """The same uplink with a jammer of several antennas."""
    return {**JAMMED, "jammer": {**JAMMED["jammer"], "antennas": antennas, **jammer}}


def overheard(place: Any = None, **changes: Any) -> Simulation:
    """Whole updates on a disc around the base station, and an observer."""
    privacy = {"observer": {"position_m": [60.0, 20.0], "noise_figure_db": 7.0} | (place or {})}
    setting: dict[str, Any] = {
        "rounds": 4,
        "training__privacy__mechanism": "none",
        "channel__pathloss": {"model": "log_distance", "exponent": 3.5},
        "channel__placement": {"scheme": "uniform_disc", "radius_m": 200},
        "uplink": AIR,
        "privacy": privacy | changes.pop("privacy", {}),
    }
    return built(**setting | changes)


RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "alone": ({}, {}),
    "jammed": ({}, {"uplink": JAMMED}),
    "jammed, two coordinates a symbol, imperfect CSI": (
        {"antennas": 2},
        {"uplink": {**JAMMED, "iq_packing": True}, "channel__csi": {"error_std": 0.2}},
    ),
    "two antennas jam": ({"antennas": 2}, {"uplink": of_streams(2)}),
    "three antennas jam, two coordinates a symbol, delay line": (
        {"antennas": 2},
        {
            "uplink": {**of_streams(3), "iq_packing": True},
            "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
            "channel__csi": {"error_std": 0.2},
        },
    ),
    "more antennas jam than are heard, arrays, fading in time": (
        {},
        {
            "uplink": {**of_streams(6), "receiver": {"antennas": 3, "combiner": "max_min"}},
            "channel__correlation": {"model": "clarke", "doppler_hz": 300.0},
            "faults": {"jammer_failure": 0.5},
        },
    ),
    "one who knows the jamming of two antennas": ({}, {"uplink": of_streams(2), "privacy": {"colluding": 1}}),
    "several cells": ({"antennas": 2}, {"topology": CELLS}),
    "edges, arrays, two coordinates a symbol, delay line, dropouts": (
        {},
        {
            "topology": {**CELLS, "kind": "hierarchical", "edge_rounds": 2},
            "uplink": {**AIR, "iq_packing": True, "receiver": {"antennas": 2, "combiner": "random"}},
            "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
            "faults": {"fade_threshold": 0.2, "availability": {"model": "bernoulli", "p": 0.8}},
        },
    ),
    "a client jams": ({}, {"uplink": {**AIR, "jammer": {"epsilon": 2.0, "role": "rotating"}}}),
    "one who knows the jamming": ({}, {"uplink": JAMMED, "privacy": {"colluding": 1}}),
    "a whole client": ({"antennas": 3}, {"uplink": JAMMED, "privacy": {"unit": "client"}}),
    "three antennas at the server, delay line": (
        {"antennas": 2},
        {
            "uplink": {**JAMMED, "receiver": {"antennas": 3, "combiner": "max_min"}},
            "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
        },
    ),
    "pieces of a slot": ({}, {"uplink": JAMMED, "channel__correlation": {"model": "clarke", "doppler_hz": 300.0}}),
    "some of them, dropouts and deep fades": (
        {"antennas": 2},
        {
            "uplink": JAMMED,
            "clients__selection": {"scheme": "uniform", "count": 4},
            "faults": {"fade_threshold": 0.2, "availability": {"model": "bernoulli", "p": 0.8}},
        },
    ),
    "walking": (
        {"antennas": 2},
        {
            "uplink": JAMMED,
            "channel__placement": {"scheme": "random_waypoint", "radius_m": 200, "min_speed": 1.0, "max_speed": 20.0},
        },
    ),
}
FAST = ("jammed",)


def cases() -> list[Any]:
    """The combinations; most of them take their time."""
    return [
        pytest.param(*case, id=name, marks=() if name in FAST else pytest.mark.slow) for name, case in RIGHT.items()
    ]


@pytest.mark.parametrize(("place", "changes"), cases())
def test_right_ledgers_stand(place: Any, changes: dict[str, Any]) -> None:
    audit = audited(overheard(place, **changes))
    assert audit.view == JOINT and math.isfinite(audit.epsilon_accounted)
    assert not audit.contradicts_ledger, audit.contradiction
    # Of colluders the least noise of all clients is counted for each; and over pieces an update in the worst alone,
    # where the canary lies in all of them
    loose = "privacy" in changes or any("fading" in key or "correlation" in key for key in changes)
    assert loose or audit.epsilon_empirical > 0.15 * audit.epsilon_accounted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packed", "streams"),
    [(False, 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((True, 1), (False, 2), (True, 3)))],
)
def test_the_game_is_as_strong_as_the_ledger_says(packed: bool, streams: int) -> None:
    """The signal is exact under the same noise: what varies is the measured deviation, s² = σ² χ²_ν/ν."""
    uplink = {**of_streams(streams), "iq_packing": packed}
    audit = audited(overheard({"antennas": 2}, uplink=uplink), trials=200)
    assert audit.evidence.gaussian is not None
    scaled = 199 * (audit.mu_accounted / audit.evidence.gaussian.estimate) ** 2
    low, high = stats.chi2.ppf(FALSE_ALARM / 2, 199), stats.chi2.isf(FALSE_ALARM / 2, 199)
    assert low <= scaled <= high


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("place", "streams"),
    [((60.0, 20.0), 1), ((-150.0, 90.0), 1), ((5.0, 0.0), 1), ((60.0, 20.0), 2), ((-150.0, 90.0), 4)],
    ids=str,
)
def test_readings_are_as_far_apart_as_their_likelihoods(place: tuple[float, float], streams: int, packed: bool) -> None:
    """Two readings under the same noise, against √(vᵀΣ⁻¹v) with Σ written out over the jammer's streams."""
    uplink = {**of_streams(streams), "iq_packing": packed}
    rehearsal = rehearse_for_audit(overheard({"position_m": list(place), "antennas": 2}, uplink=uplink))
    game, air = choose_game(rehearsal).game, rehearsal.parts.uplink
    assert isinstance(game, SlotGame) and isinstance(air, OverTheAir)
    slot = game.slots.with_canary(1)
    plan, at = slot.plan, slot.position
    assert isinstance(plan, AirPlan) and plan.overheard is not None and plan.overheard.jammer is not None
    assert plan.jammer_behind is not None and plan.jammer_gain > 0
    plus, nothing = (game.hear(Streams(3), slot, game.probe.of(1, sign, 1)) for sign in (1, 0))
    gain = air._transmitters(plan).at_the_clip.tx_gain[at, 0, 0]
    noise, there = plan.noise_std[0, 0, 0], plan.overheard.noise_std
    signal = np.concatenate([[plan.links.own.channel[at, 0, 0, 0] / noise], plan.overheard.channel[at, 0, 0] / there])
    jamming = np.concatenate(
        [plan.jammer_behind.channel[0, 0] / math.sqrt(streams) / noise, plan.overheard.jammer[0, 0] / there]
    ).astype(np.complex128)
    assert jamming.shape == (3, streams)
    wanted = air.air.clip * explicit(signal * gain, plan.jammer_gain * jamming, packed)
    assert np.linalg.norm(plus - nothing) == pytest.approx(wanted, rel=1e-5)


# --- what is wrong ------------------------------------------------------------------------------------------------


def jamming_apart(transmitters: Transmitters, heard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """The noise that would hide a client if the jamming at the server and at each antenna were independent."""
    plan = transmitters.plan
    if not jammed or heard.jammer is None or plan.jammer_behind is None:
        return observed_std(transmitters, heard, jammed)
    read = np.abs(plan.links.own.channel.squeeze(axis=3))
    noise = np.hypot(plan.noise_std[0], plan.jammer_gain * np.linalg.norm(plan.jammer_behind.parts[:, :, 0], axis=2))
    there = np.hypot(heard.noise_std, plan.jammer_gain * np.linalg.norm(heard.jammer, axis=3))
    own = (np.abs(heard.channel / there) ** 2).sum(axis=3)
    return np.asarray(read / np.sqrt((read / noise) ** 2 + own) / plan.loudest.server_gain)


def of_rank_one(transmitters: Transmitters, heard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """The same jamming in each reading, if it all came from one antenna: Σ = I + g gᴴ, g the roots of its diagonal."""
    plan = transmitters.plan
    if not jammed or heard.jammer is None or plan.jammer_behind is None:
        return observed_std(transmitters, heard, jammed)
    one = replace(plan, jammer_behind=plan.jammer_behind.equivalent)
    everywhere = np.linalg.norm(heard.jammer, axis=3, keepdims=True).astype(np.complex128)
    return observed_std(replace(transmitters, plan=one), replace(heard, jammer=everywhere))


def own_cell(transmitters: Transmitters, heard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """The noise if other base stations read nothing of a client."""
    plan, links = transmitters.plan, transmitters.plan.links
    own = (links.serving[:, None] == np.arange(links.channel.shape[1]))[..., None, None, None]
    alone = replace(plan, links=replace(links, channel=np.where(own, links.channel, 0.0)))
    return observed_std(replace(transmitters, plan=alone), heard, jammed)


def models_alone(transmitters: Transmitters, heard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """The noise on what the server reads, as if the observer had no antennas."""
    nothing = Overheard(np.zeros_like(heard.channel), heard.jammer, heard.noise_std)
    return observed_std(transmitters, nothing, jammed)


def fewer_antennas(transmitters: Transmitters, heard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """The noise without the last antenna."""
    jammer = None if heard.jammer is None else heard.jammer[..., :-1, :]
    return observed_std(transmitters, Overheard(heard.channel[..., :-1], jammer, heard.noise_std), jammed)


class HeardLikeOneJammer(OverTheAir):
    """Puts the clients where an observer hears them as it would a jammer's only antenna: in phase, and as loudly."""

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> AirPlan:
        plan = super().plan_later(this, ready, jammer, 0.0)
        heard, behind = plan.overheard, plan.jammer_behind
        assert heard is not None and heard.jammer is not None and behind is not None
        louder = np.linalg.norm(heard.jammer, axis=3) / np.linalg.norm(behind.parts, axis=3)
        return replace(plan, overheard=replace(heard, channel=plan.links.own.channel * louder))


@pytest.mark.parametrize(
    ("wrong", "place", "streams", "by_games"),
    [
        (jamming_apart, {"antennas": 2}, 1, True),
        (models_alone, {}, 1, False),
        (fewer_antennas, {"antennas": 2}, 1, True),
        pytest.param(jamming_apart, {"antennas": 3}, 2, True, marks=pytest.mark.slow),
        pytest.param(fewer_antennas, {"antennas": 2}, 2, True, marks=pytest.mark.slow),
    ],
    ids=[
        "jamming counted as independent",
        "models alone",
        "an antenna forgotten",
        "jamming of two antennas counted as independent at all that hear it",
        "an antenna forgotten that nulls the second of the jammer's",
    ],
)
def test_wrong_ledgers_are_caught(
    wrong: Callable[..., Any], place: Any, streams: int, by_games: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how far an update reaches; and by the games alone, where the ledger is far enough off."""
    monkeypatch.setattr(records, "observed_std", wrong)
    _caught(overheard(place, uplink=of_streams(streams)), by_games)


@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_ledgers_that_take_several_antennas_of_the_jammer_for_one_are_caught(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most clients are hidden better than by one antenna; not those that arrive in its direction."""

    def several() -> Simulation:
        uplink = {**of_streams(3), "iq_packing": packed}
        return with_uplink(overheard({"antennas": 2}, uplink=uplink), HeardLikeOneJammer)

    assert not audited(several(), trials=30).contradicts_ledger
    monkeypatch.setattr(records, "observed_std", of_rank_one)
    _caught(several(), by_games=True, trials=100)


@pytest.mark.slow
def test_ledgers_that_leave_out_other_base_stations_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a distance of 20 m between base stations all of them hear everybody nearly as loudly, the observer nobody."""
    monkeypatch.setattr(records, "observed_std", own_cell)
    near = {**CELLS, "inter_site_distance_m": 20.0}
    place, changes = {"position_m": [5000.0, 0.0]}, {"topology": near, "channel__fading": {"model": "static"}}
    _caught(overheard(place, **changes), by_games=True, trials=100)


def _caught(simulation: Simulation, by_games: bool, trials: int = 200) -> None:
    audit = audited(simulation, trials)
    assert math.isfinite(audit.epsilon_accounted) and audit.contradicts_ledger
    assert audit.epsilon_empirical > audit.epsilon_accounted or not by_games
    assert any("by more than recorded" in fault for fault in audit.noise_faults)


class HalfOfTheNoise(OverTheAir):
    """Halves the noise at the server, which the record does not say."""

    def _noise(self, round_index: int, plan: AirPlan, station: int) -> NDArray[np.float64]:
        return super()._noise(round_index, plan, station) / 2


class LouderThere(OverTheAir):
    """Plans slots with an observer that hears less than it does in the game."""

    def _observed(self, streams: Streams, this: Round, plan: Any, blocks: Any) -> Any:
        heard = plan.overheard
        louder = Overheard(2 * heard.channel, heard.jammer, heard.noise_std)
        return super()._observed(streams, this, replace(plan, overheard=louder), blocks)


@pytest.mark.parametrize("wrong", [HalfOfTheNoise, LouderThere])
def test_wrong_uplinks_are_caught(wrong: type[OverTheAir]) -> None:
    audit = audited(with_uplink(overheard(), wrong))
    assert math.isfinite(audit.epsilon_accounted) and audit.contradicts_ledger
