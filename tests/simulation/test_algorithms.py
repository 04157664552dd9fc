"""An algorithm from outside in one class: corrected gradients, rows kept at clients, two vectors a round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scaffold import PlainLoop, Scaffold
from tests.simulation.scenarios import run, small
from wirelessfl.assembly.power_control import gradient_step
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning import ClientRows, LocalOutcome, RoundFacts, ServerState
from wirelessfl.learning.conformance import check_algorithm
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.recorder import FinishedRound
from wirelessfl.trace import EventKind, Status

SCAFFOLD = {"name": "tests.simulation.scaffold:Scaffold"}
LOUD = {"kind": "over_the_air", "snr_db": 250.0, "clip": 40.0, "power_control": {"server_gain": 1e9}}
UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"kind": "ideal"},
    "digital": {"kind": "digital"},
    "over the air": LOUD,
    "secure aggregation": {"kind": "secure_aggregation", "clip": 40.0, "bits": 48},
}


def controlled(**changes: Any) -> Scenario:
    """Half of the clients a round, several local steps, and control variates."""
    setting: dict[str, Any] = {
        "training__algorithm": SCAFFOLD,
        "training__epochs": 2,
        "training__batch_size": 6,
        "clients__selection": {"scheme": "uniform", "count": 3},
        "data__partition": {"scheme": "sizes", "exponent": 0.7},
        "rounds": 4,
    }
    return small(**setting | changes)


def plain(simulation: Simulation, rounds: list[FinishedRound], clip: float | None = None) -> PlainLoop:
    """The same by hand, with the clients that were heard."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    loop = PlainLoop.before(learner)
    for this in rounds:
        heard = np.flatnonzero(this.status == Status.PARTICIPATED)
        norms = loop.round(this.clients[heard].tolist(), this.index, clip)
        np.testing.assert_allclose(this.slots["update_norm_raw"][heard], norms, rtol=2e-4)
    return loop


@pytest.mark.parametrize("uplink", UPLINKS)
def test_control_variates_are_those_of_a_plain_loop(uplink: str) -> None:
    simulation, rounds, _ = run(controlled(uplink=UPLINKS[uplink]))
    loop = plain(simulation, rounds)
    state, moved = simulation.state, float((loop.model - PlainLoop.before(loop.learner).model).norm())
    tolerance = 1e-4 * moved
    np.testing.assert_allclose(state.parameters, loop.model, rtol=0, atol=tolerance)
    np.testing.assert_allclose(state.server_memory["control"], loop.control, rtol=0, atol=1e-3)
    assert float(loop.control.norm()) > 0.1  # else the corrections would have been nothing
    clients = state.client_rows["client"].tolist()
    assert sorted(clients) == sorted(loop.controls) and len(clients) == len(set(clients))
    for client, kept in zip(clients, state.client_rows["control"], strict=True):
        np.testing.assert_allclose(kept, loop.controls[client], rtol=0, atol=1e-3)


def test_rows_are_kept_of_those_who_took_part_alone() -> None:
    selection = {"scheme": "uniform", "count": 1}
    simulation, rounds, _ = run(controlled(uplink={"kind": "ideal"}, clients__selection=selection, rounds=2))
    took_part = {int(this.clients[0]) for this in rounds}
    assert set(simulation.state.client_rows["client"].tolist()) == took_part
    assert len(simulation.state.client_rows["control"]) == len(took_part)


@pytest.mark.parametrize("clip", [0.5, 1e6])
def test_a_clip_bounds_the_whole_upload(clip: float) -> None:
    simulation, rounds, _ = run(controlled(uplink={"kind": "ideal", "clip": clip}))
    loop = plain(simulation, rounds, clip)
    np.testing.assert_allclose(simulation.state.parameters, loop.model, rtol=0, atol=1e-4)
    heard = np.concatenate([this.slots["update_norm"] for this in rounds])
    assert np.nanmax(heard) <= clip * (1 + 1e-6)
    assert (np.nanmax(heard) > 0.99 * clip) == (clip == 0.5)


def test_two_vectors_take_twice_the_bits_and_the_airtime() -> None:
    changes: dict[str, Any] = {"rounds": 1, "clients__selection": {"scheme": "all"}}
    for uplink in UPLINKS.values():
        ours, theirs = (
            run(controlled(uplink=uplink, training__algorithm=algorithm, **changes))
            for algorithm in (SCAFFOLD, {"name": "fedavg"})
        )
        dimension = len(ours[0].state.parameters)
        sent = [
            np.asarray(events.bits)[np.asarray(events.kind) == EventKind.BROADCAST].tolist()
            for _, _, (events,) in (ours, theirs)
        ]
        assert sent == [[64 * dimension], [32 * dimension]]
        if uplink["kind"] == "secure_aggregation":
            found, wanted = (played[0].deployment.uplink.payload_bits for played in (ours, theirs))  # type: ignore[attr-defined]
            assert found - wanted == 48 * dimension
        elif uplink["kind"] == "digital":
            np.testing.assert_allclose(ours[1][0].slots["tx_time"], 2 * theirs[1][0].slots["tx_time"], rtol=1e-9)
        else:
            assert ours[1][0].values["airtime"] == 2 * theirs[1][0].values["airtime"]


def test_a_few_bits_are_rounded_vector_by_vector() -> None:
    coarse, rounds, _ = run(controlled(uplink={"kind": "digital", "bits": 16}, rounds=2))
    loop = plain(coarse, rounds)
    moved = float((loop.model - PlainLoop.before(loop.learner).model).norm())
    # Each coordinate of Δ is off by a step of max|Δ|/2¹⁵, whatever the second vector's scale is.
    assert float(np.linalg.norm(coarse.state.parameters - np.asarray(loop.model))) < 1e-3 * moved


@pytest.mark.parametrize("uplink", ["ideal", "over the air", "secure aggregation"])
def test_a_resumed_run_keeps_its_control_variates_to_the_bit(uplink: str, tmp_path: Any) -> None:
    whole, _ = goes_on_to_the_same_bits(controlled(uplink=UPLINKS[uplink]), tmp_path)
    assert "control" in whole.state.server_memory and "control" in whole.state.client_rows


def test_control_variates_conform() -> None:
    check_algorithm(Scaffold(momentum=0.5))


def test_local_noise_protects_what_is_kept_and_sent() -> None:
    """Rows and the second vector are functions of noised gradients: ε is that of the same noise with FedAvg."""
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    own, other = (
        run(controlled(uplink={"kind": "digital"}, training__privacy=noise, training__algorithm=algorithm))[1][-1]
        for algorithm in (SCAFFOLD, {"name": "fedavg"})
    )
    assert own.values["epsilon_accounted"] == other.values["epsilon_accounted"] < 100


def test_a_secure_sum_credits_nobody_with_the_noise_of_others() -> None:
    """An upload that depends on earlier rounds by rows is no noised gradient of this round alone."""
    noise = {"mechanism": "zcdp", "noise_std": 3.0, "clip": 1.0}
    one_step = {"training__steps": 1, "training__epochs": None, "clients__selection": {"scheme": "all"}}
    epsilon = []
    for algorithm in (SCAFFOLD, {"name": "fedavg"}):
        for uplink in (UPLINKS["secure aggregation"], UPLINKS["digital"]):
            this = run(controlled(uplink=uplink, training__privacy=noise, training__algorithm=algorithm, **one_step))[1]
            epsilon.append(this[-1].values["epsilon_accounted"])
    assert epsilon[0] == epsilon[1] == epsilon[3]


def test_central_noise_clips_the_whole_upload_and_vouches_for_no_code_from_outside() -> None:
    """Code that is given several clients at a time may put the data of one into the upload of another."""
    noise = {"mechanism": "gaussian", "unit": "client", "noise_multiplier": 1.0, "clip": 0.3}
    setting: dict[str, Any] = {
        "uplink": {"kind": "ideal"},
        "training__privacy": noise,
        "privacy__adversary": "observer",
    }
    own, other = (
        run(controlled(**setting, training__algorithm=algorithm)) for algorithm in (SCAFFOLD, {"name": "fedavg"})
    )
    assert other[1][-1].values["epsilon_accounted"] < np.inf == own[1][-1].values["epsilon_accounted"]
    assert any("Scaffold) is code from outside" in reason for reason in own[0].ledger.why_different())
    for this in own[1]:
        assert np.nanmax(this.slots["update_norm"]) <= 0.3 * (1 + 1e-6) < np.nanmax(this.slots["update_norm_raw"])


def test_over_the_air_one_sample_reaches_as_far_as_the_whole_upload() -> None:
    """The finer count of one clipped step is for updates alone: a row carries samples of earlier rounds."""
    step = {
        "training__steps": 1,
        "training__epochs": None,
        "training__optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.0},
        "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 0.0, "clip": 1.0},
        "uplink": {"kind": "over_the_air", "clip": 0.05},
    }
    own, other = (controlled(training__algorithm=algorithm, **step) for algorithm in (SCAFFOLD, {"name": "fedavg"}))
    assert gradient_step(own, 0.05, True) is None
    assert gradient_step(other, 0.05, True) == other.training.batch_size
    simulation, rounds, _ = run(own)
    assert rounds[-1].values["epsilon_accounted"] == math.inf
    assert any(f"({SCAFFOLD['name']}) is code from outside" in why for why in simulation.ledger.why_different())


@pytest.mark.parametrize(
    "change",
    [
        {"aggregation__mode": "asynchronous", "uplink": {"kind": "digital"}},
        {
            "topology": {"kind": "hierarchical"},
            "channel__pathloss": {"model": "log_distance"},
            "uplink": {"kind": "over_the_air"},
        },
    ],
)
def test_where_models_of_several_rounds_meet_it_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"training\.algorithm\.name.*allowed: fedavg \| fedprox"):
        controlled(**change)


@pytest.mark.parametrize("uplink", UPLINKS.values(), ids=UPLINKS)
def test_clients_keep_nothing_of_uploads_that_a_restarting_server_lost(uplink: dict[str, Any]) -> None:
    restarting, rounds, _ = run(controlled(uplink=uplink, faults__server_restart={"p": 1.0, "downtime_s": 1.0}))
    assert all(np.any(this.status == Status.LOST) for this in rounds)
    assert [len(values) for values in restarting.state.client_rows.values()] == [0, 0]


@pytest.mark.parametrize(
    "uplink",
    [
        {"kind": "digital", "codec": {"name": "top_k", "share": 0.2, "error_feedback": True}},
        {
            "kind": "over_the_air",
            "modulation": {"scheme": "a_dsgd"},
            "power_control": {"policy": "truncated_inversion"},
        },
        {
            "kind": "over_the_air",
            "modulation": {"scheme": "d_dsgd"},
            "power_control": {"policy": "full_power"},
        },
    ],
    ids=["top_k", "a_dsgd", "d_dsgd"],
)
def test_all_of_an_upload_that_a_restarting_server_lost_is_still_to_be_sent(uplink: dict[str, Any]) -> None:
    """A client keeps what it had left over before; without restarts something is left over of every upload."""
    keys: dict[str, Any] = {"uplink": uplink, "channel__fading": {"model": "static"}}
    if uplink.get("modulation") == {"scheme": "a_dsgd"}:
        keys["faults__fade_threshold"] = 0.01  # which its power control needs
    restarting, rounds, _ = run(small(**keys, faults__server_restart={"p": 1.0, "downtime_s": 1.0}))
    assert any(np.any(this.status == Status.LOST) for this in rounds)
    assert restarting.state.memories["error_feedback"] == {}
    assert run(small(**keys))[0].state.memories["error_feedback"]


class WrongRows(Scaffold):
    """Keeps other rows than it began with."""

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        return ClientRows(rows.clients)


class WrongUpload(Scaffold):
    """Sends one vector where two were promised."""

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return outcome.updates[:, None]


class WideUpload(Scaffold):
    """Sends vectors in double precision."""

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return super().upload(server, before, after, outcome).double()


class NoTensors(Scaffold):
    """Keeps arrays of NumPy."""

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        values: dict[str, Any] = {
            name: kept.numpy() for name, kept in super().finish(server, rows, outcome).values.items()
        }
        return ClientRows(rows.clients, values)


class NoRows(Scaffold):
    """Keeps None."""

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        nothing: Any = None
        return ClientRows(rows.clients, nothing)


class RowsWithGradients(Scaffold):
    """Keeps rows that ask for their gradient."""

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        kept = super().finish(server, rows, outcome).values
        return ClientRows(rows.clients, {name: values.clone().requires_grad_() for name, values in kept.items()})


class UploadWithGradients(Scaffold):
    """Sends vectors that ask for their gradient."""

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return super().upload(server, before, after, outcome).requires_grad_()


class SparseUpload(Scaffold):
    """Sends vectors of which zeros are not stored."""

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return super().upload(server, before, after, outcome).to_sparse()


class WrongStep(Scaffold):
    """Gives a model of another size."""

    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        return ServerState(server.parameters[1:], server.memory)


@pytest.mark.parametrize("wrong", [NoTensors, NoRows, RowsWithGradients, UploadWithGradients, SparseUpload])
def test_rows_and_uploads_that_are_no_plain_tensors_are_refused(wrong: type[Scaffold]) -> None:
    name = f"tests.simulation.test_algorithms:{wrong.__name__}"
    with pytest.raises(
        ScenarioError, match=rf"training\.algorithm\.name: {wrong.__name__} (keeps|uploads) .*allowed: a "
    ):
        run(controlled(uplink={"kind": "ideal"}, training__algorithm={"name": name}))


class EndsEarly(Scaffold):
    """Takes an item that is not there from an iterator."""

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        return next(iter(()))


@pytest.mark.parametrize("drift", [False, True])
def test_an_algorithm_that_looks_for_what_is_not_there_does_not_end_the_round(drift: bool) -> None:
    """Its ``StopIteration`` is not taken for the end of the blocks, after which nobody would have trained."""
    name = {"name": "tests.simulation.test_algorithms:EndsEarly"}
    with pytest.raises(RuntimeError, match="StopIteration"):
        run(controlled(uplink={"kind": "ideal"}, training__algorithm=name, evaluate__client_drift=drift))


@pytest.mark.parametrize("wrong", [WrongRows, WrongUpload, WideUpload, WrongStep])
def test_an_algorithm_that_breaks_its_word_is_refused(wrong: type[Scaffold]) -> None:
    with pytest.raises(CheckFailed, match="not conforming"):
        check_algorithm(wrong(momentum=0.5))
    name = f"tests.simulation.test_algorithms:{wrong.__name__}"
    with pytest.raises(ScenarioError, match=rf"training\.algorithm\.name: .*{wrong.__name__}"):
        run(controlled(uplink={"kind": "ideal"}, training__algorithm={"name": name}))
