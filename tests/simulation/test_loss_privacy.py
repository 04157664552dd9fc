"""Privacy of losses that clients report for the selection, by hand and from the trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, small
from tests.simulation.test_loss_selection import CHOICE, NOISY, OORT, played, scenario
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.learning.selection import SelectPowerOfChoice
from wirelessfl.privacy import (
    ENDED_AT_A_LIMIT,
    ENDED_BY_ITS_OUTPUTS,
    DpSgdRelease,
    LocalPlans,
    LossNoise,
    LossRelease,
    PrivacyFacts,
    Statement,
    recompute,
)
from wirelessfl.privacy.clipping import Constant
from wirelessfl.privacy.gaussian import gaussian_epsilon
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.privacy.releases.unselected import FOLLOWS_THE_SELECTION
from wirelessfl.radio import CrossLayer
from wirelessfl.trace import Status


@pytest.mark.parametrize(
    ("unit", "loss", "reach"), [("client", "fresh", 3.0), ("sample", "fresh", None), ("sample", "last", 3.0)]
)
def test_noisy_losses_are_composed_into_epsilon(unit: str, loss: str, reach: float | None) -> None:
    """By hand: Σ (X/σ)² over the reports of each client, X = C, or C/n for a sample of n."""
    chosen = scenario({**CHOICE, **NOISY, "loss": loss}, privacy={"unit": unit, "delta": 1e-5}, rounds=4)
    simulation, rounds, _ = played(chosen)
    samples, total = simulation.deployment.network.registry.samples, np.zeros(6)
    for this in rounds:
        asked = np.arange(6) if this.round.before.asked is None else this.round.before.asked
        total[asked] += ((samples[asked] * 0 + 3.0 if reach else 3.0 / samples[asked]) / 2.0) ** 2
        expected = float(gaussian_epsilon(math.sqrt(total.max()), 1e-5))
        assert this.values["selection_epsilon"] == pytest.approx(expected, rel=1e-9)
    assert math.isinf(rounds[-1].values["epsilon_accounted"])  # digital uploads carry no noise


FIXED_GAIN = {"kind": "over_the_air", "snr_db": 10, "power_control": {"policy": "cross_layer", "server_gain": 60.0}}
ASKED, AFTER = {**CHOICE, **NOISY}, [{**CHOICE, **NOISY, "loss": "last"}, {**OORT, **NOISY}]


@pytest.mark.parametrize("selection", [ASKED, *AFTER])
@pytest.mark.parametrize("clip", [1.0, 0.01])
def test_over_the_air_whoever_might_have_been_selected_is_charged(selection: dict[str, Any], clip: float) -> None:
    """μ² of each client: its reports, and whenever it might have been selected (p α_u/(s σ_c))².

    With s = 1 where it was not, and where rules ask nobody. Updates are scaled to the clip.
    """
    keys = {"uplink": {**FIXED_GAIN, "clip": clip}, "privacy": {"unit": "client", "delta": 1e-5}}
    simulation, rounds, _ = played(scenario(selection, **keys))
    weight, total = simulation.deployment.network.registry.weight(np.arange(6)), np.zeros(6)
    for this in rounds:
        asked, silent = this.round.before.asked, this.values["channel_noise_std"] / this.values["server_gain"]
        cost = (weight / silent) ** 2
        if asked is None:
            total += cost + (3.0 / 2.0) ** 2
        else:
            took_part = this.clients[this.round.with_status(Status.PARTICIPATED)]
            cost[took_part] /= this.slots["backoff"][this.round.with_status(Status.PARTICIPATED)] ** 2
            total[asked] += cost[asked] + (3.0 / 2.0) ** 2
        expected = gaussian_epsilon(math.sqrt(total.max()), 1e-5)
        assert this.values["epsilon_accounted"] == pytest.approx(float(expected), rel=1e-9)
    by_hand = gaussian_epsilon(np.sqrt(total), 1e-5)
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[1], by_hand, rtol=1e-9)
    words = " ".join(simulation.ledger.why_different())
    assert "with noise of standard deviation 2" in words and "Who is selected follows these reports" in words


JAMMED = {"kind": "over_the_air", "jammer": {"epsilon": 2.0}}
SCALED = {"kind": "over_the_air", "power_control": {"policy": "lower_gain"}}


@pytest.mark.parametrize(
    "changes",
    [
        {"uplink": JAMMED},
        {"uplink": SCALED},
        {"uplink": FIXED_GAIN, "channel": {"csi": {"error_std": 0.1}}},
        {"uplink": {**FIXED_GAIN, "receiver": {"antennas": 2}}},
        {"uplink": {**FIXED_GAIN, "slot_groups": 2}},
        {"uplink": FIXED_GAIN, "channel": {"sync": {"phase_std": 1e-9}}},
    ],
    ids=["jammer", "another policy", "estimates", "antennas", "slots of groups", "phases"],
)
@pytest.mark.parametrize("selection", [ASKED, AFTER[0]])
def test_nothing_is_proven_where_the_cost_of_others_is_not_known(
    selection: dict[str, Any], changes: dict[str, Any]
) -> None:
    everyone, _, _ = played(scenario({"scheme": "all"}, rounds=2, **changes))
    simulation, _, _ = played(scenario(selection, rounds=2, **changes))
    assert simulation.ledger.epsilon_accounted() == math.inf
    assert math.isinf(everyone.ledger.epsilon_accounted()) or FOLLOWS_THE_SELECTION in " ".join(
        simulation.ledger.why_different()
    )


NOISES: dict[str, dict[str, Any]] = {
    "poisson": {"mechanism": "gaussian", "noise_multiplier": 2.0, "clip": 1.0},
    "shuffled": {"mechanism": "gaussian", "noise_multiplier": 9.0, "clip": 1.0, "sampling": "shuffle"},
    "wavelet": {"mechanism": "wavelet", "noise_multiplier": 9.0, "clip": 1.0},
    "zcdp": {"mechanism": "zcdp", "noise_std": 9.0, "clip": 1.0},
}


@pytest.mark.parametrize("noise", NOISES)
def test_local_noise_is_charged_to_whoever_might_have_been_selected(noise: str) -> None:
    """As much as if it had taken part in every round: whom their draws selected does not show.

    Reports add at most 3 (3e-6)² = 2.7e-11 to a squared cost of 4e-4 or more, which is 7e-8 of it.
    """
    keys = {"training__privacy": NOISES[noise], "training__batch_size": 7, "rounds": 3, "uplink": {"kind": "ideal"}}
    quiet = {"loss_noise_std": 1e6, "loss_clip": 3.0}
    for seed in (11, 12):
        all_take_part, _, _ = played(scenario({"scheme": "all"}, **keys, seed=seed))
        expected = all_take_part.ledger.client_epsilons()[1]
        asked, rounds, _ = played(scenario({**CHOICE, "candidates": 6, **quiet}, **keys, seed=seed))
        assert all(len(this.clients) == 2 for this in rounds)
        np.testing.assert_allclose(asked.ledger.client_epsilons()[1], expected, rtol=1e-7)
        for rule in ({**CHOICE, **quiet, "loss": "last"}, {**OORT, **quiet}):
            found = played(scenario(rule, **keys, seed=seed))[0].ledger.client_epsilons()[1]
            np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_a_small_client_is_charged_also_where_large_ones_are_drawn(tmp_path: Path) -> None:
    """Two clients of 200 and 10 samples, one of whom takes part, whichever has the larger noisy loss."""
    rng, path = np.random.default_rng(0), tmp_path / "two.npz"
    inputs, targets = rng.normal(size=(210, 4)).astype(np.float32), rng.integers(0, 2, 210)
    owners = np.repeat([0, 1], [200, 10])
    np.savez(path, x_train=inputs, y_train=targets, owners_train=owners, x_test=inputs[:8], y_test=targets[:8])
    selection = {**CHOICE, "count": 1, "candidates": 2, "loss_noise_std": 5.0, "loss_clip": 1.0}
    keys = {
        "data": {"dataset": {"name": "arrays", "file": str(path)}, "partition": {"scheme": "natural"}},
        "model": {"name": "logistic"},
        "clients": {"count": 2, "selection": selection},
        "uplink": {"kind": "ideal"},
        "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 2.0, "clip": 1.0},
        "training__epochs": None,
        "training__steps": 5,
        "training__batch_size": 10,
    }
    drawn, found = set(), set()
    for seed in range(8):
        simulation, (this,), _ = played(small(**keys, rounds=1, seed=seed))
        drawn.add(int(this.clients[0]))
        found.add(round(simulation.ledger.epsilon_accounted(), 9))
    assert drawn == {0, 1} and len(found) == 1


def test_a_record_of_reports_from_earlier_versions_leaves_no_guarantee() -> None:
    """They do not say what the local training of the others would have been."""
    facts, statement = PrivacyFacts(np.array([20, 30]), np.array([0.4, 0.6]), 50), Statement(delta=1e-5)
    one = np.array([1])
    sgd = DpSgdRelease(1, one, 2.0, np.array([10]), np.array([3]))
    noise = LossNoise(1.0, 1.0)
    for everyone in (False, True):
        asked = one[:0] if everyone else np.array([0, 1])
        known = LossRelease(1, asked, noise, everyone, LocalPlans((20, 30), (10, 10), (3, 3)))
        assert math.isfinite(recompute([known, sgd], facts, statement).epsilon_accounted())
        ledger = recompute([LossRelease(1, asked, noise, everyone), sgd], facts, statement)
        assert ledger.epsilon_accounted() == math.inf
        assert FOLLOWS_THE_SELECTION in " ".join(ledger.why_different())


SILENT = {"clients__roles": [{"role": "silent", "count": 3}]}
CRASHES = {"faults__crash_rate_per_s": 3.0}
AWAY = {"faults__availability": {"p": 0.4}}


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        *(({"candidates": 6}, missing) for missing in (SILENT, CRASHES)),  # who is away is not asked
        *(({"loss": "last"}, missing) for missing in (SILENT, CRASHES, AWAY)),
    ],
    ids=["asked, silent", "asked, crashes", "silent", "crashes", "away"],
)
def test_rounds_in_which_nobody_sends_are_charged_to_whoever_might_have_been_selected(
    tmp_path: Path, changes: dict[str, Any], missing: dict[str, Any]
) -> None:
    """With local noise, in each round as much as if it had sent: whether anybody did does not show."""
    selection = {**CHOICE, "count": 1, "loss_noise_std": 1e6, "loss_clip": 3.0, **changes}
    keys = {"training__privacy": NOISES["poisson"], "uplink": {"kind": "ideal"}, "rounds": 4}
    everyone, _, _ = played(scenario(selection, **keys))
    chosen = scenario(selection, **keys, **missing)
    simulation, rounds, _ = played(chosen)
    assert any(not len(this.round.with_status(Status.PARTICIPATED)) for this in rounds)
    expected = everyone.ledger.epsilon_accounted()
    assert simulation.ledger.epsilon_accounted() == pytest.approx(expected, rel=1e-8)
    result = wfl.simulate(chosen, tmp_path / "run", pictures=False, device="cpu")
    again = recorded_ledger(tmp_path / "run" / "trace.h5")
    assert again.epsilon_accounted() == pytest.approx(result.summary["epsilon_accounted"], rel=1e-12)


def test_slots_in_which_all_fade_are_charged_to_whoever_was_asked(tmp_path: Path) -> None:
    keys = {"uplink": FIXED_GAIN, "privacy": {"unit": "client", "delta": 1e-5}, "faults__fade_threshold": 2.0}
    chosen = scenario({**ASKED, "count": 1, "candidates": 6}, **keys)
    simulation, rounds, _ = played(chosen)
    assert any(not len(this.round.with_status(Status.PARTICIPATED)) for this in rounds)
    least = (simulation.deployment.network.registry.weight(np.arange(6)).max() * 60.0) ** 2 * 4
    assert simulation.ledger.epsilon_accounted() > gaussian_epsilon(math.sqrt(least), 1e-5)
    result = wfl.simulate(chosen, tmp_path / "run", pictures=False, device="cpu")
    again = recorded_ledger(tmp_path / "run" / "trace.h5")
    assert again.epsilon_accounted() == pytest.approx(result.summary["epsilon_accounted"], rel=1e-12)


@dataclass(frozen=True)
class OtherGains(CrossLayer):
    """A power control from outside that goes on from a shipped one."""


class OtherRecords(GaussianMechanism):
    """A mechanism from outside that goes on from a shipped one."""

    def __init__(self, multiplier: float) -> None:
        super().__init__(Constant(multiplier))


class OtherChoice(SelectPowerOfChoice):
    """A selection from outside that goes on from a shipped one."""


def test_code_from_outside_is_not_taken_for_what_it_goes_on_from() -> None:
    gains = {"policy": f"{__name__}:OtherGains", "options": {"server_gain": 60.0}}
    records = {"mechanism": f"{__name__}:OtherRecords", "options": {"multiplier": 2.0}, "clip": 1.0}
    rule = {"scheme": f"{__name__}:OtherChoice", "count": 2, "options": {"candidates": 4, **NOISY}}
    for selection, changes in (
        (ASKED, {"uplink": {**FIXED_GAIN, "power_control": gains}}),
        (ASKED, {"training__privacy": records}),
        (rule, {"training__privacy": NOISES["poisson"]}),
    ):
        simulation, _, _ = played(scenario(selection, rounds=2, **changes))
        assert simulation.ledger.epsilon_accounted() == math.inf, changes


@pytest.mark.parametrize("stop", [{"epsilon": 1.0}, {"sim_time_s": 1e-9}])
def test_an_end_at_a_limit_on_what_the_selected_spend_follows_the_reports(stop: dict[str, float]) -> None:
    keys = {"training__privacy": NOISES["poisson"], "stop": stop}
    for selection, follows in ((ASKED, True), ({"scheme": "all"}, False)):
        simulation, rounds, _ = played(scenario(selection, **keys))
        assert len(rounds) < 5 and (ENDED_AT_A_LIMIT in simulation.ledger.why_different()) == follows
        assert ENDED_BY_ITS_OUTPUTS not in simulation.ledger.why_different()


@pytest.mark.parametrize("selection", [CHOICE, {**CHOICE, "loss": "minibatch"}, OORT])
def test_no_sample_moves_a_report_further_than_it_is_charged_for(selection: dict[str, Any]) -> None:
    """Also one so large that its loss is not a number: C/n of a mean, C/b of a batch, C/√n of a root mean square."""
    noisy = {**NOISY, "loss_clip": 1000.0}
    simulation = build_simulation(scenario({**selection, **noisy}, training={"batch_size": 4, "steps": 1}), PLAN)
    learner, client, told = simulation.deployment.learner, np.array([1]), []
    shards, reports = learner.population.shards(client), simulation.deployment.selection.reports
    samples, drawn = int(shards.sizes[0]), learner.streams.generator("selection_batch", 1, 1)
    place = int(drawn.choice(samples, size=4, replace=False)[0]) if reports.statistic == "batch_mean" else 0
    model = 100 * simulation.state.parameters
    for value in (0.0, 3e38):
        shards.inputs.zero_()[shards.index[0, place]] = value  # the samples themselves, which all shards share
        told.append(float(learner.reported(model, client, 1, reports)[0]))
    counted = {"mean": samples, "batch_mean": 4, "rms": math.sqrt(samples)}[reports.statistic]
    assert 0 < told[1] - told[0] <= 1000.0 / counted


@pytest.mark.parametrize("selection", [CHOICE, {**CHOICE, "loss": "last"}, OORT])
def test_losses_without_noise_leave_no_guarantee(selection: dict[str, Any]) -> None:
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    simulation, rounds, _ = played(scenario(selection, rounds=2, training__privacy=noise))
    assert math.isinf(rounds[-1].values["epsilon_accounted"]) and math.isinf(rounds[-1].values["selection_epsilon"])
    assert "clients report their losses without noise" in " ".join(simulation.ledger.why_different())


def test_rounds_in_which_only_those_without_a_guarantee_send_are_charged_to_whoever_was_asked() -> None:
    """Clients that send beyond the clip are in no record: where nobody else sends, others might have all the same."""
    keys = {"uplink": FIXED_GAIN, "privacy": {"unit": "client", "delta": 1e-5}}
    roles = [{"role": "scaled", "factor": 3.0, "count": 6}]
    simulation, rounds, _ = played(scenario(ASKED, **keys, clients__roles=roles, rounds=3))
    weight = simulation.deployment.network.registry.weight(np.arange(6))
    reports, uploads = np.zeros(6), np.zeros(6)
    for this in rounds:
        asked = this.round.before.asked
        assert asked is not None and not len(this.round.uplink_releases[0].clients)
        reports[asked] += (3.0 / 2.0) ** 2
        uploads[asked] += (weight[asked] * this.values["server_gain"] / this.values["channel_noise_std"]) ** 2
    for name, total in (("selection_epsilon", reports), ("epsilon_accounted", reports + uploads)):
        expected = float(gaussian_epsilon(math.sqrt(total.max()), 1e-5))
        assert rounds[-1].values[name] == pytest.approx(expected, rel=1e-9), name


def test_local_noise_and_noisy_losses_add_up() -> None:
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    found = {}
    for std in (1e-1, 1e3, 1e6):
        chosen = scenario({**CHOICE, "loss_noise_std": std}, rounds=3, training__privacy=noise)
        found[std] = played(chosen)[1][-1].values["epsilon_accounted"]
    assert found[1e-1] > found[1e3] >= found[1e6] and math.isfinite(found[1e-1])
    assert found[1e3] == pytest.approx(found[1e6], rel=1e-2)


@pytest.mark.parametrize("selection", [{**CHOICE, **NOISY}, {**OORT, **NOISY}])
@pytest.mark.parametrize(
    "keys", [{"uplink": FIXED_GAIN}, {"training__privacy": NOISES["poisson"]}], ids=["over the air", "local noise"]
)
def test_the_ledger_follows_from_the_trace_and_the_run_is_verified(
    tmp_path: Path, keys: dict[str, Any], selection: dict[str, Any]
) -> None:
    chosen = scenario(selection, privacy={"unit": "sample", "delta": 1e-5}, rounds=4, **keys)
    result = wfl.simulate(chosen, tmp_path / "run", pictures=False, device="cpu")
    again = recorded_ledger(tmp_path / "run" / "trace.h5")
    assert again.epsilon_accounted() == pytest.approx(result.summary["epsilon_accounted"], rel=1e-12)
    assert again.epsilon_published() == pytest.approx(result.summary["epsilon_published"], rel=1e-12)
    assert verify(open_recording(tmp_path / "run" / "trace.h5")).difference is None
