"""Privacy of losses that clients report for the selection, by hand and from the trace."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN
from tests.simulation.test_loss_selection import CHOICE, NOISY, OORT, played, scenario
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.privacy.gaussian import gaussian_epsilon


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


@pytest.mark.parametrize("selection", [{**CHOICE, **NOISY}, {**CHOICE, **NOISY, "loss": "last"}, {**OORT, **NOISY}])
def test_over_the_air_all_who_might_have_been_selected_are_charged(selection: dict[str, Any]) -> None:
    """μ² of each client: its reports, and whenever it might have been selected that of the dearest one."""
    chosen = scenario(selection, uplink={"kind": "over_the_air"}, privacy={"unit": "client", "delta": 1e-5})
    simulation, rounds, _ = played(chosen)
    total = np.zeros(6)
    for this in rounds:
        asked = this.round.before.asked
        might = np.arange(6) if asked is None else asked
        (release,) = this.round.uplink_releases
        spending = release.accounted(simulation.ledger.facts, simulation.ledger.statement).mu_squared
        cost = np.zeros(6)
        cost[might] = spending.max()
        if asked is not None:
            cost[release.clients] = spending
        cost[might] += (3.0 / 2.0) ** 2
        total += cost
        expected = gaussian_epsilon(math.sqrt(total.max()), 1e-5)
        assert this.values["epsilon_accounted"] == pytest.approx(float(expected), rel=1e-9)
    assert math.isfinite(rounds[-1].values["epsilon_accounted"])
    words = " ".join(simulation.ledger.why_different())
    assert "with noise of standard deviation 2" in words and "Who is selected follows these reports" in words


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


def test_rounds_in_which_only_those_without_a_guarantee_send_are_charged_for_their_reports() -> None:
    """Clients that send beyond the clip are in no record: where nobody else sends, what was asked for is all."""
    keys = {"uplink": {"kind": "over_the_air"}, "privacy": {"unit": "client", "delta": 1e-5}}
    roles = [{"role": "scaled", "factor": 3.0, "count": 6}]
    simulation, rounds, _ = played(scenario({**CHOICE, **NOISY}, **keys, clients__roles=roles, rounds=3))
    total = np.zeros(6)
    for this in rounds:
        assert this.round.before.asked is not None
        total[this.round.before.asked] += (3.0 / 2.0) ** 2
    expected = float(gaussian_epsilon(math.sqrt(total.max()), 1e-5))
    assert simulation.ledger.epsilon_accounted() == pytest.approx(expected, rel=1e-9)
    assert rounds[-1].values["selection_epsilon"] == pytest.approx(expected, rel=1e-9)


def test_local_noise_and_noisy_losses_add_up() -> None:
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    found = {}
    for std in (1e-1, 1e3, 1e6):
        chosen = scenario({**CHOICE, "loss_noise_std": std}, rounds=3, training__privacy=noise)
        found[std] = played(chosen)[1][-1].values["epsilon_accounted"]
    assert found[1e-1] > found[1e3] >= found[1e6] and math.isfinite(found[1e-1])
    assert found[1e3] == pytest.approx(found[1e6], rel=1e-2)


@pytest.mark.parametrize("selection", [{**CHOICE, **NOISY}, {**OORT, **NOISY}])
def test_the_ledger_follows_from_the_trace_and_the_run_is_verified(tmp_path: Path, selection: dict[str, Any]) -> None:
    chosen = scenario(selection, uplink={"kind": "over_the_air"}, privacy={"unit": "sample", "delta": 1e-5}, rounds=4)
    result = wfl.simulate(chosen, tmp_path / "run", pictures=False, device="cpu")
    again = recorded_ledger(tmp_path / "run" / "trace.h5")
    assert again.epsilon_accounted() == pytest.approx(result.summary["epsilon_accounted"], rel=1e-12)
    assert again.epsilon_published() == pytest.approx(result.summary["epsilon_published"], rel=1e-12)
    assert verify(open_recording(tmp_path / "run" / "trace.h5")).difference is None
