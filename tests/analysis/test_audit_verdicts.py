"""Right mechanisms stand, wrong ones are caught: exit code 4 rests on this.

At the false-alarm rate of 1e-6 a failure of a right mechanism is a defect. That a wrong one is caught is no matter of
luck either: what it promises is far below what it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scipy import stats

from tests.analysis import audit_examples as examples
from tests.analysis import audit_wrong_clients as wrong_clients
from tests.analysis import audit_wrong_uplinks as wrong_uplinks
from tests.analysis.audit_examples import (
    FALSE_ALARM,
    audited,
    built,
    descending,
    gradient_step,
    local,
    trusted,
    with_gradients,
    with_private,
    with_server,
    with_training,
    with_uplink,
)
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner

RIGHT = {
    "over the air": examples.whole_update,
    "over the air, jammed": examples.jammed,
    "over the air, a client": examples.client_zeroed,
    "over the air, a client exchanged": lambda: examples.built(privacy={"unit": "client", "adjacency": "replace"}),
    "over the air, two coordinates a symbol, imperfect CSI": lambda: examples.built(
        uplink__iq_packing=True, channel__csi={"error_std": 0.3}
    ),
    "over the air, one gradient step": gradient_step,
    "over the air, one gradient step, exchanged": lambda: gradient_step(privacy__adjacency="replace"),
    "over the air, one gradient step on a mini-batch": lambda: gradient_step(training__batch_size=5),
    "DP-SGD": local,
    "DP-SGD, exchanged": lambda: local(privacy__adjacency="replace"),
    "DP-SGD, shuffled": lambda: local(privacy={"sampling": "shuffle"}),
    "DP-SGD by layer": lambda: local(privacy={"clipping": {"name": "per_layer"}}),
    "DP-SGD, quantile": lambda: local(privacy={"clipping": {"name": "quantile"}}),
    "DP-SGD, dynamic": lambda: local(
        privacy={"clipping": {"name": "dynamic", "clip_ratio": 0.5, "multiplier_ratio": 2.0}}
    ),
    "DP-SGD, MOO": lambda: local(privacy={"clipping": {"name": "moo", "feedback": "private"}}),
    "DP-Adam": lambda: local(training__optimizer={"name": "adam", "lr": 0.01}),
    "wavelet": lambda: local("wavelet"),
    "zCDP": lambda: local("zcdp"),
    "DP-FedAvg": trusted,
    "DP-FedAvg, wavelet": lambda: trusted(
        training__privacy__mechanism="wavelet", training__privacy__clip_domain="weighted"
    ),
    "DP-FedAvg, Poisson": lambda: trusted(clients__selection={"scheme": "poisson", "rate": 0.3}),
    "DP-FedAvg, uniform": lambda: trusted(clients__selection={"scheme": "uniform", "count": 2}),
    "DP-FedAvg, gradients clipped": descending,
    "DP-FedAvg, gradients clipped, exchanged": lambda: descending(privacy__adjacency="replace"),
    "DP-FedAvg, gradients clipped, Poisson batches": lambda: descending(training__privacy__sampling="poisson"),
    "DP-FedAvg, gradients clipped, Poisson": lambda: descending(clients__selection={"scheme": "poisson", "rate": 0.3}),
    "DP-FedAvg, gradients clipped, wavelet": lambda: descending(
        training__privacy__mechanism="wavelet", training__privacy__noise_multiplier=30.0
    ),
    "DP-FedAvg, gradients clipped, scheduled rate": lambda: descending(training__lr_schedule={1: 1.0, 2: 0.5}),
}


def cases(table: dict[str, Callable[[], Simulation]]) -> list[object]:
    """One a name; the adjacency by exchange is the slow twin of another."""
    slow = pytest.mark.slow
    return [
        pytest.param(build, id=name, marks=slow if name.endswith("exchanged") else ()) for name, build in table.items()
    ]


@pytest.mark.parametrize("build", cases(RIGHT))
def test_right_mechanisms_stand(build: Callable[[], Simulation]) -> None:
    audit = audited(build())
    assert math.isfinite(audit.epsilon_accounted)
    assert not audit.contradicts_ledger
    # The canary is a worst case: most of what the ledger counts is really there.
    assert audit.epsilon_empirical > 0.15 * audit.epsilon_accounted


def mislabelled() -> Simulation:
    simulation = local(rounds=10)
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner) and learner.private is not None
    return with_private(simulation, examples.as_other(learner.private, wrong_clients.RarerThanItSays))


WRONG = {
    "over the air, noise forgotten": lambda: with_uplink(examples.whole_update(), wrong_uplinks.Noiseless),
    "over the air, noise halved": lambda: with_uplink(examples.whole_update(), wrong_uplinks.HalfTheNoise),
    "over the air, clip forgotten": lambda: with_training(examples.whole_update(), clip=None),
    "over the air, clip doubled": lambda: with_training(examples.whole_update(), clip=2.0),
    "over the air, jammer forgotten": lambda: with_uplink(examples.jammed(), wrong_uplinks.JammerAsleep),
    "over the air, a client, noise halved": lambda: with_uplink(examples.client_zeroed(), wrong_uplinks.HalfTheNoise),
    "over the air, one gradient step, clip forgotten": lambda: with_gradients(
        gradient_step(), wrong_clients.ForgottenClip
    ),
    "over the air, one gradient step, noise halved": lambda: with_uplink(gradient_step(), wrong_uplinks.HalfTheNoise),
    "DP-SGD, noise forgotten": lambda: with_gradients(local(), noise=wrong_clients.ForgottenNoise),
    "DP-SGD, clip forgotten": lambda: with_gradients(local(), wrong_clients.ForgottenClip),
    "DP-SGD, multiplier halved": lambda: with_gradients(local(), noise=wrong_clients.HalvedNoise),
    "DP-SGD, twice as many samples as recorded": mislabelled,
    "wavelet, multiplier halved": lambda: with_gradients(local("wavelet"), noise=wrong_clients.HalvedHaarNoise),
    "wavelet, the wrong norm": lambda: with_gradients(local("wavelet"), noise=wrong_clients.UnweightedHaarNorm),
    "zCDP, noise on the sum": lambda: with_gradients(local("zcdp"), noise=wrong_clients.NoiseOnTheSum),
    "zCDP, clip forgotten": lambda: with_gradients(local("zcdp"), wrong_clients.ForgottenClip),
    "DP-FedAvg, noise forgotten": lambda: with_server(trusted(), wrong_uplinks.SilentServer),
    "DP-FedAvg, noise halved": lambda: with_server(trusted(), wrong_uplinks.QuietServer),
    "DP-FedAvg, clip forgotten": lambda: with_server(trusted(), wrong_uplinks.UnclippingServer),
    "DP-FedAvg, gradients clipped, noise halved": lambda: with_server(descending(), wrong_uplinks.QuietServer),
    "DP-FedAvg, gradients clipped, clip forgotten": lambda: with_gradients(descending(), wrong_clients.ForgottenClip),
}


@pytest.mark.parametrize("build", WRONG.values(), ids=WRONG.keys())
def test_wrong_mechanisms_are_caught(build: Callable[[], Simulation]) -> None:
    audit = audited(build())
    assert math.isfinite(audit.epsilon_accounted)
    assert audit.contradicts_ledger


def full_batches() -> Simulation:
    """Two steps a round on all samples of a client: nothing is secret but the noise."""
    return local(training__batch_size=1000, training__steps=2, training__epochs=None)


def quantile() -> Simulation:
    return local(privacy={"clipping": {"name": "quantile"}})


AGAIN, SMALL, ACROSS = "used again", "smaller than recorded", "same on different coordinates"

BROKEN_NOISE: dict[str, tuple[Callable[[], Simulation], str, bool]] = {
    # what is wrong, what the audit says of it, and whether the games show it too
    "one noise for all clients": (lambda: with_gradients(local(), noise=wrong_clients.OneNoiseForAll), AGAIN, False),
    "one noise for all steps": (lambda: with_gradients(local(), noise=wrong_clients.OneNoiseForAllSteps), AGAIN, True),
    "one noise for all steps, full batches": (
        lambda: with_gradients(full_batches(), noise=wrong_clients.OneNoiseForAllSteps),
        AGAIN,
        True,
    ),
    "one noise for all rounds": (
        lambda: with_gradients(local(), noise=wrong_clients.OneNoiseForAllRounds),
        AGAIN,
        True,
    ),
    "one noise for all rounds, exchanged": (
        lambda: with_gradients(local(privacy__adjacency="replace"), noise=wrong_clients.OneNoiseForAllRounds),
        AGAIN,
        True,
    ),
    "one noise for all seeds": (lambda: with_gradients(local(), noise=wrong_clients.OneNoiseForAllSeeds), AGAIN, False),
    "every second coordinate, full batches": (
        lambda: with_gradients(full_batches(), noise=wrong_clients.NoiseOnEverySecondCoordinate),
        SMALL,
        False,
    ),
    "uniform noise": (lambda: with_gradients(local(), noise=wrong_clients.UniformNoise), "not normal", False),
    "a count without noise": (lambda: with_gradients(quantile(), wrong_clients.BareCount), SMALL, True),
    "a count with half its noise": (lambda: with_gradients(quantile(), wrong_clients.HalvedCountNoise), SMALL, False),
    "a count with one noise": (lambda: with_gradients(quantile(), wrong_clients.RepeatedCountNoise), AGAIN, False),
    "over the air, one noise for all rounds": (
        lambda: with_uplink(examples.whole_update(), wrong_uplinks.SameNoiseInAllRounds),
        AGAIN,
        True,
    ),
    "over the air, opposite noise": (
        lambda: with_uplink(examples.whole_update(), wrong_uplinks.AlternatingNoise),
        AGAIN,
        True,
    ),
    "over the air, every second coordinate": (
        lambda: with_uplink(gradient_step(), wrong_uplinks.NoiseInHalfOfTheCoordinates),
        SMALL,
        False,
    ),
    "DP-FedAvg, one noise": (lambda: with_server(trusted(), wrong_uplinks.OneNoiseForTheServer), AGAIN, True),
}


@pytest.mark.parametrize(("build", "words", "by_games"), BROKEN_NOISE.values(), ids=BROKEN_NOISE.keys())
def test_broken_noise_is_caught(build: Callable[[], Simulation], words: str, by_games: bool) -> None:
    audit = audited(build())
    assert math.isfinite(audit.epsilon_accounted)
    assert audit.contradicts_ledger and any(words in fault for fault in audit.noise_faults)
    assert words in audit.contradiction
    if by_games:
        assert audit.epsilon_empirical > audit.epsilon_accounted


def test_the_count_is_attacked_in_a_game_of_its_own() -> None:
    right, bare = audited(quantile()), audited(with_gradients(quantile(), wrong_clients.BareCount))
    assert right.evidence.epsilon_count is not None and bare.evidence.epsilon_count == math.inf
    # z = 1.5 on the gradients and σ_b = 1 on the count: the count alone shows less than both.
    assert 0 < right.evidence.epsilon_count < right.epsilon_accounted
    exchanged = audited(local(privacy={"clipping": {"name": "quantile"}}, privacy__adjacency="replace"))
    assert exchanged.evidence.epsilon_count is not None
    assert right.evidence.epsilon_count < exchanged.evidence.epsilon_count < exchanged.epsilon_accounted


PLAIN = {
    name: RIGHT[name]
    for name in (
        "over the air",
        "over the air, jammed",
        "over the air, a client",
        "over the air, a client exchanged",
        "over the air, one gradient step",
        "over the air, one gradient step, exchanged",
        "DP-SGD, shuffled",
        "zCDP",
        "DP-FedAvg",
    )
}


@pytest.mark.parametrize("build", cases(PLAIN))
def test_canaries_are_worst_cases(build: Callable[[], Simulation]) -> None:
    # Of worst cases whose place in the batches is as bad as the ledger assumes. The signal is exact under the same
    # noise, and so is the accounted μ: what varies is the measured deviation, s² = σ² χ²_ν/ν.
    audit = audited(build(), trials=200)
    assert audit.evidence.gaussian is not None
    scaled = 199 * (audit.mu_accounted / audit.evidence.gaussian.estimate) ** 2
    low, high = stats.chi2.ppf(FALSE_ALARM / 2, 199), stats.chi2.isf(FALSE_ALARM / 2, 199)
    assert low <= scaled <= high


def test_single_uploads_say_nothing_of_a_theorem_on_their_secure_sum() -> None:
    """The ledger gives no credit for integers under masks; what is told apart there, that adversary never sees."""
    one_step: dict[str, object] = {
        "training__steps": 1,
        "training__epochs": None,
        "training__privacy": {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.002},
        "privacy__adjacency": "replace",
    }
    masked = audited(built(uplink={"kind": "secure_aggregation"}, **one_step), trials=400)
    assert masked.epsilon_empirical > masked.epsilon_published
    assert not masked.relation and not masked.refutes_published and not masked.contradicts_ledger
    assert any("another unit, adjacency or adversary" in finding for finding in masked.findings())
    plain = audited(built(uplink={"kind": "ideal"}, **one_step), trials=40)
    assert plain.relation and not plain.refutes_published
