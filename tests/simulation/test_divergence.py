"""Updates and models that are not finite: what reaches the model, what is said, what ends the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from scipy import stats

from tests.simulation.scenarios import run, small
from tests.speed import rest_slow
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.api import make_plan, simulate
from wirelessfl.cli import main
from wirelessfl.learning.data import Dataset, Examples
from wirelessfl.trace import open_trace, read_attributes

CLIENTS = 6


def one_infinite_sample() -> Dataset:
    """One sample a client, the input of one of them infinite: its gradient and loss are not finite."""
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(CLIENTS, 4, generator=generator)
    test = torch.randn(20, 4, generator=generator)
    inputs[2, 1] = torch.inf
    labels = torch.arange(CLIENTS) % 2
    return Dataset("broken", Examples(inputs, labels), Examples(test, torch.arange(20) % 2), ("no", "yes"))


def broken(**overrides: Any) -> Any:
    return small(
        **{
            "data": {"dataset": {"name": f"{__name__}:one_infinite_sample"}, "partition": {"scheme": "iid"}},
            "model": {"name": "logistic"},
            **overrides,
        }
    )


def exploding(**overrides: Any) -> Any:
    return small(
        **{"training__optimizer": {"name": "sgd", "lr": 1e12}, "training__epochs": 3, "rounds": 4, **overrides}
    )


@pytest.mark.parametrize("kind", ["ideal", "digital"])
def test_without_a_clip_one_update_that_is_not_finite_reaches_the_model(kind: str) -> None:
    uplink: dict[str, Any] = {"kind": kind} if kind == "ideal" else {"kind": kind, "snr_db": 20}
    simulation, rounds, _ = run(broken(uplink=uplink))
    assert len(rounds) == 1 and simulation.state.diverged_in == 1
    assert rounds[0].values["updates_not_finite"] == 1
    assert np.isnan(rounds[0].values["test_loss"]) and rounds[0].values["test_accuracy"] == 0


@pytest.mark.parametrize(
    "uplink",
    [
        {"kind": "ideal", "clip": 1.0},
        {"kind": "over_the_air"},
        {"kind": "over_the_air", "iq_packing": True},
        {"kind": "digital", "snr_db": 20, "clip": 1.0},
        {"kind": "secure_aggregation", "snr_db": 20, "clip": 1.0},
    ],
)
def test_with_a_clip_it_counts_as_zeros(uplink: dict[str, Any]) -> None:
    simulation, rounds, _ = run(broken(uplink=uplink))
    assert len(rounds) == 3 and simulation.state.diverged_in == 0
    for this in rounds:
        assert this.values["updates_not_finite"] == 1 and this.values["participants"] == CLIENTS
        (who,) = np.flatnonzero(~np.isfinite(this.slots["update_norm_raw"]))
        assert this.slots["update_norm"][who] == 0 and np.isfinite(this.slots["update_norm"]).all()
        if uplink["kind"] == "over_the_air":
            assert this.slots["tx_energy"][who] == 0
    assert np.isfinite(simulation.state.parameters).all()


@pytest.mark.parametrize(
    "privacy",
    [
        {"mechanism": "gaussian", "unit": "client", "clip": 1.0, "noise_multiplier": 1.0},
        {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0},
        {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "sampling": "shuffle"},
        {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "clipping": {"name": "per_layer"}},
        {"mechanism": "wavelet", "clip": 1.0, "noise_multiplier": 1.0, "clip_domain": "weighted"},
        {"mechanism": "zcdp", "clip": 1.0, "noise_std": 0.1},
    ],
)
def test_noise_for_privacy_never_covers_what_is_not_finite(privacy: dict[str, Any]) -> None:
    """A sample or client whose contribution is not finite is clipped to nothing: the released model stays finite."""
    simulation, rounds, _ = run(broken(uplink={"kind": "ideal"}, training__privacy=privacy))
    assert len(rounds) == 3 and np.isfinite(simulation.state.parameters).all()
    assert rounds[-1].values["epsilon_accounted"] < np.inf or privacy.get("unit") == "client"


def test_what_ends_the_run_is_the_released_model_and_not_the_updates() -> None:
    """Clipped, every update of every round is lost and the model stays as it is: that is private, and nothing ends."""
    clipped, rounds, _ = run(exploding(uplink={"kind": "ideal", "clip": 1.0}))
    assert [this.values["updates_not_finite"] for this in rounds] == [CLIENTS] * 4
    assert not clipped.state.diverged_in
    loose, rounds, _ = run(exploding(uplink={"kind": "ideal"}))
    assert len(rounds) == loose.state.diverged_in == 1


def test_a_loss_that_overflows_on_a_finite_model_counts_where_it_is_evaluated() -> None:
    scenario = exploding(uplink={"kind": "ideal"}, training__optimizer={"name": "sgd", "lr": 1e12}, evaluate__every=4)
    simulation, rounds, _ = run(scenario)
    assert rounds[-1].values["test_accuracy"] == 0, "the round that ends it is evaluated between two evaluations"
    assert len(rounds) == simulation.state.diverged_in == 1


@pytest.mark.parametrize("uplink", [{"kind": "over_the_air"}, {"kind": "secure_aggregation", "snr_db": 20}])
def test_a_run_that_learns_nothing_behind_its_clip_goes_on_and_is_called_diverged(
    uplink: dict[str, Any], tmp_path: Path
) -> None:
    """That no update is finite is private: it ends nothing, and is said at the end."""
    result = simulate(exploding(uplink=uplink), tmp_path, pictures=False)
    summary = result.summary
    assert (summary["status"], summary["rounds"], summary["diverged_in"]) == ("diverged", 4, 1)
    assert np.isfinite(summary["test_loss"])
    assert any("every update has not been finite since round 1" in words for words in summary["warnings"])
    assert verify(open_recording(result.trace)).difference is None


def test_a_run_whose_rule_leaves_out_every_update_is_called_diverged(tmp_path: Path) -> None:
    scenario = exploding(
        uplink={"kind": "digital"},
        training__robust={"rule": "median"},
        training__optimizer={"name": "sgd", "lr": 3e38},
        training__epochs=5,
    )
    result = simulate(scenario, tmp_path, pictures=False)
    summary = result.summary
    assert (summary["status"], summary["rounds"], summary["diverged_in"]) == ("diverged", 4, 1)
    assert summary["updates_not_finite_first"] == {"round": 1, "count": CLIENTS, "heard": CLIENTS}
    assert summary["participants_mean"] == 0.0
    assert verify(open_recording(result.trace)).difference is None


def test_a_rule_that_leaves_out_one_update_learns_from_the_others(tmp_path: Path) -> None:
    scenario = broken(uplink={"kind": "ideal"}, training__robust={"rule": "median"})
    summary = simulate(scenario, tmp_path, pictures=False).summary
    assert (summary["status"], summary["diverged_in"], summary["updates_not_finite"]) == ("complete", None, 3)
    assert summary["participants_mean"] == CLIENTS - 1
    assert summary["updates_not_finite_first"] == {"round": 1, "count": 1, "heard": CLIENTS}


def test_one_finite_update_is_something_to_learn_from(tmp_path: Path) -> None:
    summary = simulate(broken(uplink={"kind": "over_the_air"}), tmp_path, pictures=False).summary
    assert (summary["status"], summary["diverged_in"], summary["updates_not_finite"]) == ("complete", None, 3)


def test_run_that_goes_on_all_the_same(tmp_path: Path) -> None:
    result = simulate(exploding(uplink={"kind": "ideal"}, stop__diverged=False), tmp_path, pictures=False)
    summary = result.summary
    assert (summary["status"], summary["rounds"], summary["diverged_in"]) == ("diverged", 4, 1)
    assert summary["updates_not_finite"] == 4 * CLIENTS
    assert summary["updates_not_finite_first"] == {"round": 1, "count": CLIENTS, "heard": CLIENTS}
    assert np.isnan(summary["test_loss"]), "the loss that goes with the accuracy, not one of an earlier round"
    with open_trace(result.trace) as trace:
        assert trace["updates_not_finite"].values.tolist() == [CLIENTS] * 4


def test_a_healthy_run_says_nothing(tmp_path: Path) -> None:
    summary = simulate(small(uplink={"kind": "ideal"}), tmp_path, pictures=False).summary
    assert (summary["status"], summary["diverged_in"], summary["updates_not_finite"]) == ("complete", None, 0)


@pytest.mark.parametrize("stop", rest_slow([{}, {"stop__accuracy": 0.01}, {"stop__diverged": False}]))
def test_a_run_that_its_outputs_ended_is_finished_and_verified(tmp_path: Path, stop: dict[str, Any]) -> None:
    scenario = exploding(uplink={"kind": "ideal"}, **stop)
    if "stop__accuracy" in stop:
        scenario = small(uplink={"kind": "ideal"}, **stop)
    first = simulate(scenario, tmp_path, threads=1, device="cpu")
    assert first.picture.exists() and first.timeline.exists()
    again = simulate(scenario, tmp_path, resume=True, pictures=False)
    assert again.summary["status"] == read_attributes(again.trace)["status"] == first.summary["status"]
    assert verify(open_recording(first.trace)).difference is None


@pytest.mark.slow
def test_command_warns_on_stderr_and_ends_in_0(tmp_path: Path) -> None:
    file = tmp_path / "boom.yaml"
    file.write_text(
        "name: boom\nrounds: 4\ndata: {limit: 120, partition: {scheme: iid}}\nmodel: {name: logistic}\n"
        "clients: {count: 6}\ntraining: {optimizer: {name: sgd, lr: 1.0e+20}}\nuplink: {kind: ideal}\n"
    )
    result = CliRunner().invoke(main, ["simulate", str(file), "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "diverged"
    assert "warning: the run diverged" in result.stderr and "updates were not finite" in result.stderr
    shown = CliRunner().invoke(main, ["simulate", str(file), "--out", str(tmp_path / "out"), "--resume"])
    assert "(diverged)" in shown.stdout and "warning: the run diverged" in shown.stderr
    report = CliRunner().invoke(main, ["report", str(tmp_path / "out"), "--out", str(tmp_path / "r.html")])
    assert report.exit_code == 0 and "the run diverged" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("key", ["training.optimizer.lr=1.0e+30", "uplink.power_control.server_gain=1.0e-100"])
def test_numbers_beyond_single_precision_are_said_in_words_and_have_a_report(
    key: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    out = str(tmp_path / "out")
    uplink = ["--set", "uplink={kind: ideal}"] if "lr" in key else []
    changes = [*uplink, "--set", key, "--set", "data.limit=60", "--set", "clients.count=4", "--figures", "none"]
    shown = CliRunner().invoke(main, ["simulate", "quickstart", "--out", out, *changes])
    assert shown.exit_code == 0 and "diverged" in shown.output
    assert "loss –" in shown.output and "nan" not in shown.output
    report = CliRunner().invoke(main, ["report", out])
    assert report.exit_code == 0, report.output
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


AIR = {
    "kind": "over_the_air",
    "snr_db": 5,
    "clip": 0.2,
    "power_control": {"policy": "cross_layer", "server_gain": 20.0},
}


@pytest.mark.parametrize("rescale", ["clip_norm", "none"])
def test_noise_on_the_weights_is_what_the_model_moves_by(rescale: str) -> None:
    """Clients that learn nothing: a step is noise alone; its sample variance, at a false-alarm rate of 1e-6."""
    control = {**AIR["power_control"], "rescale": rescale}  # type: ignore[dict-item]
    scenario = small(
        uplink={**AIR, "power_control": control},
        training__optimizer={"name": "sgd", "lr": 1e-12},
        faults__availability={"model": "bernoulli", "p": 0.6},
        rounds=1,
    )
    simulation, (this,), _ = run(scenario)
    heard = int(this.values["participants"])
    assert 0 < heard < CLIENTS, "weights are renormalised"
    sent = {"clip_norm": 0.2, "none": 1.0}[rescale] * this.values["effective_noise_std"] * CLIENTS / heard
    assert this.values["aggregate_noise_std"] == pytest.approx(sent, rel=1e-9)
    parts = simulation.deployment
    start = parts.learner.initial_state(0).parameters
    step = (simulation.state.parameters - start).astype(np.float64)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], len(step)) / len(step)
    assert low < np.mean(step**2) / this.values["aggregate_noise_std"] ** 2 < high


def test_validate_names_both_noises(tmp_path: Path) -> None:
    forecast = make_plan(small(uplink=AIR)).as_mapping()
    assert forecast["aggregate_noise_std"] == pytest.approx(0.2 * forecast["effective_noise_std"])
    lines = CliRunner().invoke(main, ["validate", "quickstart", "--set", "uplink.clip=0.2"]).stdout.splitlines()
    received, on_mean = (next(line for line in lines if line.startswith(name)) for name in ("effective", "noise on"))
    assert "before rescaling" in received and "times τ" in on_mean
    assert float(on_mean.split()[4]) == pytest.approx(0.2 * float(received.split()[4]), rel=1e-3)
