"""Checks for fading, path loss, placement or power control of your own: what the simulator relies on.

Call them from a test: they return nothing where all is well and raise `wirelessfl.errors.CheckFailed` with the first
broken promise. They are what the package's own models are tested with.
"""

from collections.abc import Iterator
from copy import deepcopy
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import ROUNDING, check_array
from wirelessfl.errors import require
from wirelessfl.memory import resumed_copy
from wirelessfl.radio.fading import FadingModel
from wirelessfl.radio.links import Links
from wirelessfl.radio.placement import PlacementLaw
from wirelessfl.radio.power_control import (
    AirInterface,
    PowerControl,
    TransmitPlan,
    follows_own_norms,
    is_peak_limited,
    received_bound,
)
from wirelessfl.radio.propagation import Fading, Moment
from wirelessfl.radio.propagation.path_loss import PathLossModel
from wirelessfl.streams import Streams


def check_fading_model(model: FadingModel, count: int = 100_000, false_alarm: float = 1e-6, seed: int = 0) -> None:
    """Checks shape and type, reproducibility, independence of who else is active, and mean power 1.

    Args:
        model: the law to check.
        count: samples for the mean power.
        false_alarm: probability with which a correct law of this ``seed`` would be refused.
        seed: seed of the draws.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(model, FadingModel), "has no method draw(stream)")
    streams = Streams(seed)
    nodes = np.arange(count)
    gains = model.draw(streams.nodes("conformance", 1, nodes))
    check_array("draw", gains, (count,), np.complex128)
    again = model.draw(streams.nodes("conformance", 1, nodes))
    require(np.array_equal(gains, again), "the same stream gives other gains the second time: is there hidden state?")
    some = nodes[::-7]
    alone = model.draw(streams.nodes("conformance", 1, some))
    require(np.allclose(alone, gains[some], rtol=ROUNDING), "a node's gain depends on which other nodes are active")
    _check_mean_power(gains, false_alarm)


def _check_mean_power(gains: NDArray[np.complex128], false_alarm: float) -> None:
    power = np.abs(gains) ** 2
    tolerance = NormalDist().inv_cdf(1 - false_alarm / 2) * power.std() / np.sqrt(len(power)) + ROUNDING
    require(bool(abs(power.mean() - 1) <= tolerance), f"mean power is {power.mean():.5f}, not 1 within {tolerance:.5f}")


def check_correlation(fading: Fading, count: int = 20_000, false_alarm: float = 1e-6, rounds: int = 3) -> None:
    """Checks shape and type, mean power 1, one answer a round, slots, and the state of a checkpoint.

    Args:
        fading: the object to check, as before the first round; it is left as it is.
        count: links for the mean power.
        false_alarm: probability with which a correct one would be refused.
        rounds: rounds of the trial, half a second apart.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(fading, Fading), "lacks a part of Fading")
    nodes, sight = np.arange(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
    offsets = np.array([0.0, 1e-3, 2e-3])
    whole, part, resumed = (deepcopy(fading) for _ in range(3))
    for round_index in range(1, rounds + 1):
        moment = Moment(round_index, 0.5 * round_index)
        gains = whole.gains(nodes, sight, moment)
        check_array("gains", gains, (count,), np.complex128)
        _check_mean_power(gains, false_alarm / rounds)
        require(np.array_equal(gains, whole.gains(nodes, sight, moment)), "two calls in one round give different gains")
        slot = whole.over(nodes, sight, moment, offsets)
        check_array("over", slot, (count, len(offsets)), np.complexfloating)
        require(
            np.allclose(slot[:, 0], gains, rtol=ROUNDING), "the first gains of a slot are not those at its beginning"
        )
        check_array("specular", whole.specular(nodes, sight, moment, offsets), slot.shape, np.complexfloating)
        require(bool(np.all(whole.shift_hz(nodes, moment) >= 0)), "shift_hz is negative")
        alone = part.gains(nodes[1::3], sight[1::3], moment)
        require(np.allclose(alone, gains[1::3], rtol=ROUNDING), "a link's gain depends on which others are asked for")
        require(
            np.array_equal(gains, resumed.gains(nodes, sight, moment)),
            "a model that goes on from its state gives other gains",
        )
        resumed = resumed_copy(resumed, fading)


def check_path_loss(model: PathLossModel) -> None:
    """Checks shapes, that probabilities are some, that losses are finite, and that a longer way costs no less.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(model, PathLossModel), "lacks a part of PathLossModel")
    distance = np.logspace(0, 4, 200)
    require(0 < model.wavelength < np.inf, f"wavelength is {model.wavelength}")
    require(model.sight_decorrelation > 0, f"sight_decorrelation is {model.sight_decorrelation}")
    require(model.rician_k is None or 0 <= model.rician_k < np.inf, f"rician_k is {model.rician_k}")
    probability = model.line_of_sight_probability(distance)
    check_array("line_of_sight_probability", probability, distance.shape)
    require(bool(np.all((probability >= 0) & (probability <= 1))), "line_of_sight_probability is not between 0 and 1")
    check_array("in_range", model.in_range(distance), distance.shape, np.bool_)
    require(bool(np.all(model.ray_length(distance) > 0)), "ray_length is not positive")
    for sight in (np.ones(200, dtype=np.bool_), np.zeros(200, dtype=np.bool_)):
        loss = model.loss_db(distance, sight)
        check_array("loss_db", loss, distance.shape)
        require(bool(np.all(np.diff(loss) >= -ROUNDING)), "loss_db falls with the distance")
        alone = model.loss_db(distance[::7], sight[::7])
        require(np.allclose(alone, loss[::7], rtol=ROUNDING), "a link's loss depends on the other links")
        require(bool(np.all(model.shadowing_std_db(sight) >= 0)), "shadowing_std_db is negative")
        require(bool(np.all(model.decorrelation_distance(sight) > 0)), "decorrelation_distance is not positive")


def check_placement(law: PlacementLaw, count: int = 1000, seed: int = 0) -> None:
    """Checks shape, reproducibility, and that a node's place does not depend on the others.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(law, PlacementLaw), "has no method place(stream)")
    streams, nodes = Streams(seed), np.arange(count)
    places = law.place(streams.nodes("conformance", 0, nodes))
    check_array("place", places, (count, 2))
    again = law.place(streams.nodes("conformance", 0, nodes))
    require(np.array_equal(places, again), "the same stream gives other positions: is there hidden state?")
    alone = law.place(streams.nodes("conformance", 0, nodes[::-7]))
    require(np.allclose(alone, places[::-7], rtol=ROUNDING), "a node's place depends on the other nodes")


def check_power_control(policy: PowerControl, seed: int = 0, trials: int = 20) -> None:
    """Checks plans and transmissions over rounds of 1 to 40 clients with channels from very weak to very strong.

    The power budget holds for every norm up to the clip, save where it limits the average (`AveragePowerControl`); a
    larger update is not sent with less energy; plan and gains depend neither on the order of clients nor on batching,
    nor on realised norms unless ``needs_norms`` admits it. Where it does, what is sent moves no further than under
    channel inversion when an update changes, unless the policy says ``non_expansive = False``; a policy that normalises
    updates has to say so.

    Args:
        policy: the policy to check; an adaptive one is asked for every round from the state it is in.
        seed: seed of the example rounds.
        trials: how many rounds.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(policy, PowerControl), "lacks needs_norms, plan or transmit")
    air = AirInterface(clip=0.7, channel_noise_std=1.3, dimension=50)
    for round_index, links in enumerate(_example_rounds(seed, trials), start=1):
        plan = policy.plan(links, round_index, air)
        _check_plan(policy, plan, links, round_index, air)
        heard = links.take(~plan.silent)
        if policy.needs_norms and len(heard):
            _check_own_norms(policy, plan, heard, links, round_index, air)
        for fill in (1e-3, 0.3, 1.0):
            _check_transmission(policy, plan, heard, np.full(len(heard), fill * air.clip))
        _check_monotone(policy, plan, heard)
        if not policy.needs_norms:
            _check_public(policy, plan, heard)
        elif getattr(policy, "non_expansive", True):
            _check_non_expansive(policy, plan, heard)
        bound = received_bound(policy, plan, heard)
        require(bool(np.all(np.isfinite(bound))), "the received bound is not finite")
        again = policy.plan(links, round_index, air)
        require(
            again.server_gain == plan.server_gain and np.array_equal(again.silent, plan.silent),
            "a plan depends on what was sent since the one before: is there hidden state?",
        )


def _check_plan(policy: PowerControl, plan: TransmitPlan, links: Links, round_index: int, air: AirInterface) -> None:
    require(0 < plan.server_gain < np.inf, f"server_gain is {plan.server_gain}")
    require(0 < plan.receive_scale < np.inf, f"receive_scale is {plan.receive_scale}")
    require(plan.clip == air.clip, f"clip is {plan.clip}, the air interface has {air.clip}")
    check_array("silent", plan.silent, (len(links),), np.bool_)
    again = policy.plan(links, round_index, air)
    require(plan.server_gain == again.server_gain, "planning twice gives two server gains: is there hidden state?")
    backwards = policy.plan(links.take(np.arange(len(links))[::-1]), round_index, air)
    require(np.array_equal(backwards.silent[::-1], plan.silent), "who is silent depends on the order of the clients")
    require(
        bool(np.isclose(backwards.server_gain, plan.server_gain, rtol=ROUNDING)),
        "server_gain depends on the order of the clients",
    )


def _check_own_norms(
    policy: PowerControl, plan: TransmitPlan, heard: Links, links: Links, round_index: int, air: AirInterface
) -> None:
    require(follows_own_norms(policy, plan, heard), "a client's gain depends on the norms of other clients")
    again = policy.plan(links, round_index, air)
    require(
        again.server_gain == plan.server_gain,
        "server_gain depends on norms of earlier calls: is there hidden state?",
    )


def _check_transmission(policy: PowerControl, plan: TransmitPlan, links: Links, norms: NDArray[np.float64]) -> None:
    sent = policy.transmit(plan, links, norms)
    check_array("tx_gain", sent.tx_gain, (len(links),), np.complexfloating)
    require(sent.backoff.shape == (len(links),), f"backoff has shape {sent.backoff.shape} for {len(links)} clients")
    require(bool(np.all(sent.backoff > 0)), "backoff is not positive")
    excess = (np.abs(sent.tx_gain) * norms) ** 2 / links.power_budget
    require(
        not is_peak_limited(policy) or bool(np.all(excess <= 1 + ROUNDING)),
        f"‖x‖² is {excess.max(initial=0):.6g} times the power budget",
    )
    halves = (np.arange(0, len(links), 2), np.arange(1, len(links), 2))
    for part in filter(len, halves):
        alone = policy.transmit(plan, links.take(part), norms[part]).tx_gain
        require(
            np.allclose(alone, sent.tx_gain[part], rtol=ROUNDING),
            "a client's gain depends on which others are in its block",
        )


def _check_monotone(policy: PowerControl, plan: TransmitPlan, links: Links) -> None:
    norms = plan.clip * np.linspace(0.05, 1.0, 20)[:, None] * np.ones(len(links))
    amplitude = np.stack([np.abs(policy.transmit(plan, links, row).tx_gain) * row for row in norms])
    falls = np.diff(amplitude, axis=0) < -ROUNDING * amplitude[1:]
    require(not np.any(falls), "a larger update is sent with less energy, so that the bound at the clip does not hold")


def _check_public(policy: PowerControl, plan: TransmitPlan, links: Links) -> None:
    small, large = (policy.transmit(plan, links, np.full(len(links), fill * plan.clip)) for fill in (0.1, 1.0))
    without = policy.transmit(plan, links, None)
    require(
        np.array_equal(small.tx_gain, large.tx_gain) and np.array_equal(small.tx_gain, without.tx_gain),
        "gains depend on the realised norms, although needs_norms is False",
    )


def _check_non_expansive(policy: PowerControl, plan: TransmitPlan, links: Links) -> None:
    # The Lipschitz constant L of x = f(r) Δ/r, r = ‖Δ‖: f(r) <= L r holds across Δ, f' <= L along Δ
    norms = plan.clip * np.union1d(np.logspace(-9, 0, 40), np.linspace(0.0, 1.0, 41)[1:])[:, None] * np.ones(len(links))
    amplitude = np.stack([np.abs(policy.transmit(plan, links, row).tx_gain) * row for row in norms])
    inversion = plan.server_gain * links.weight / (np.abs(links.estimate) * plan.clip)
    across = amplitude / (inversion * norms)
    rounding = ROUNDING * amplitude[1:] / (inversion * np.diff(norms, axis=0))
    along = np.diff(amplitude, axis=0) / (inversion * np.diff(norms, axis=0)) - rounding
    steepest = max(float(across.max(initial=0.0)), float(along.max(initial=0.0)))
    found = f"a change of an update changes what is sent up to {steepest:.6g} times as much as channel inversion would"
    require(steepest <= 1 + ROUNDING, f"{found}; if that is meant, say `non_expansive = False`")


def _example_rounds(seed: int, trials: int) -> Iterator[Links]:
    generator = np.random.default_rng(seed)
    for trial in range(trials):
        count = 1 + trial * 39 // max(trials - 1, 1)
        path_gain = 10.0 ** generator.uniform(-4, 1, count)
        drawn = generator.standard_normal((2, count, 2)) @ np.array([1.0, 1j]) / np.sqrt(2)
        channel = np.sqrt(path_gain) * drawn[0]
        samples = generator.integers(1, 1000, count)
        budget = 10.0 ** generator.uniform(-2, 4, count)
        estimate = channel + 0.2 * np.sqrt(path_gain) * drawn[1]
        yield Links(channel, estimate, samples / samples.sum(), budget, path_gain, 1.04 * path_gain)
