"""Groups of clients that send over the air one after the other: aggregate, noise, privacy, time, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.speed import rest_slow
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.counterfactual import run_counterfactual
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.robust import Median
from wirelessfl.privacy import AirRelease
from wirelessfl.privacy.releases.air_slots import of_slots
from wirelessfl.radio import coordinate_ranges
from wirelessfl.scenario import Scenario
from wirelessfl.trace import Role, Status, open_trace

LOUD: dict[str, Any] = {"uplink__power_control": {"policy": "cross_layer", "server_gain": 1e11}, "uplink__clip": 100.0}
NOISELESS: dict[str, Any] = {"channel__fading": {"model": "static"}, "uplink__snr_db": 290.0, **LOUD}
STILL: dict[str, Any] = {"training__optimizer": {"name": "sgd", "lr": 1e-12}}


def grouped(groups: int, rule: str = "median", **changes: Any) -> Scenario:
    """Eight clients over the air in groups."""
    given = {"clients": {"count": 8}, "uplink__kind": "over_the_air", "uplink__slot_groups": groups}
    return small(**{**given, "training__robust": {"rule": rule}, **changes})


def steps(scenario: Scenario) -> np.ndarray:
    """(d,) the step of the first round."""
    start = build_simulation(scenario, PLAN).state.parameters
    return np.asarray(run(scenario)[0].state.parameters.astype(np.float64) - start)


@pytest.mark.parametrize("rule", ["median", "geometric_median", "krum", "trimmed_mean"])
def test_a_slot_for_each_client_is_a_server_that_sees_updates(rule: str) -> None:
    """G = K without noise: the rule over the ideal uplink, up to single precision."""
    found = steps(grouped(8, rule, rounds=1, **NOISELESS))
    ideal = small(rounds=1, clients={"count": 8}, uplink={"kind": "ideal"}, training__robust={"rule": rule})
    np.testing.assert_allclose(found, steps(ideal), atol=2e-6)


@pytest.mark.parametrize("groups", [2, 3, 8])
def test_the_mean_over_groups_is_the_mean_over_clients(groups: int) -> None:
    found = steps(grouped(groups, "mean", rounds=1, **NOISELESS))
    np.testing.assert_allclose(found, steps(small(rounds=1, clients={"count": 8}, uplink={"kind": "ideal"})), atol=2e-6)


def test_the_rule_combines_weighted_means_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and weights of the rule are those of a loop over the clients of the recorded groups."""
    combined, seen = Median.combine, list[tuple[np.ndarray, np.ndarray]]()

    def combine(self: Median, rows: np.ndarray, weights: np.ndarray) -> Any:
        seen.append((rows.copy(), weights.copy()))
        return combined(self, rows, weights)

    monkeypatch.setattr(Median, "combine", combine)
    simulation, (this,), _ = run(grouped(3, rounds=1, **NOISELESS))
    _, (alone,), _ = run(grouped(8, rounds=1, **NOISELESS))
    of_group, of_client = seen
    member, own = this.slots["slot_group"].astype(int), alone.slots["slot_group"].astype(int)
    weight = simulation.deployment.network.registry.weight(np.arange(8))
    for group in range(3):
        mine = np.flatnonzero(member == group)
        np.testing.assert_allclose(of_group[1][group], weight[mine].sum(), rtol=1e-12)
        expected = np.average(of_client[0][own[mine]], axis=0, weights=weight[mine])
        np.testing.assert_allclose(of_group[0][group], expected, atol=2e-6)


def test_where_a_whole_group_is_silent_its_mean_is_zero(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One client in each group: its row is zero in the groups of subcarriers in which it is silent, and only there."""
    combined, seen = Median.combine, list[np.ndarray]()

    def combine(self: Median, rows: np.ndarray, weights: np.ndarray) -> Any:
        seen.append(rows.copy())
        return combined(self, rows, weights)

    monkeypatch.setattr(Median, "combine", combine)
    line = {"model": "tdl", "profile": "C", "delay_spread_s": 8e-7, "groups": 8}
    scenario = grouped(
        8,
        rounds=1,
        channel__fading=line,
        faults={"fade_threshold": 0.5},
        uplink__power_control={"policy": "truncated_inversion"},
    )
    ran = wfl.simulate(scenario, tmp_path / "run", device="cpu", threads=1, pictures=False)
    (rows,), trace = seen, open_trace(ran.trace)
    ranges = coordinate_ranges(rows.shape[1], 8)
    silent = np.array([[not row[first:end].any() for first, end in ranges] for row in rows])
    truncated = np.asarray(trace["truncated_share"]).ravel()
    truncated = truncated[np.argsort(np.asarray(trace["slot_group"]).ravel())]
    assert silent.any(axis=1).sum() >= 3 and not silent.all()
    np.testing.assert_array_equal(silent.mean(axis=1), truncated[truncated < 1])


@pytest.mark.parametrize("jammer", [None, {"epsilon": 5.0, "calibration": "exact"}])
def test_noise_of_the_mean_over_groups(jammer: dict[str, Any] | None) -> None:
    """With updates of zeros the step is noise alone; its deviation is the recorded one, within 3 %.

    Were the jamming the same in all slots, it would add up in phase. The bound is 3.6 deviations of the estimate from
    610 coordinates in 12 rounds, of which a right one exceeds it once in 3,000 times.
    """
    scenario = grouped(4, "mean", rounds=12, uplink__jammer=jammer, **STILL)
    simulation = build_simulation(scenario, PLAN)
    models, recorded = [simulation.state.parameters.astype(np.float64)], list[float]()

    def keep(this: Any, _: Any) -> None:
        models.append(simulation.state.parameters.astype(np.float64))
        recorded.append(this.values["aggregate_noise_std"])

    simulation.run(keep)
    ratios = [np.diff(models, axis=0)[m] / recorded[m] for m in range(12)]
    assert np.std(np.concatenate(ratios)) == pytest.approx(1.0, abs=0.03)


def test_noise_grows_with_the_root_of_the_groups() -> None:
    """One static channel and equal weights: a group's mean has G times the noise of one slot, their mean √G times."""
    still: dict[str, Any] = {"rounds": 1, "channel__fading": {"model": "static"}, "data__limit": 80}
    _, (one,), _ = run(small(clients={"count": 8}, uplink={"kind": "over_the_air"}, **still))
    for groups in (2, 4, 8):
        _, (this,), _ = run(grouped(groups, "mean", **still))
        assert this.values["aggregate_noise_std"] == pytest.approx(
            math.sqrt(groups) * one.values["aggregate_noise_std"]
        )
        _, (robust,), _ = run(grouped(groups, "median", **still))
        assert math.isnan(robust.values["aggregate_noise_std"])


def releases(scenario: Scenario) -> tuple[list[Any], list[AirRelease], Any]:
    """Rounds, and the record of the uplink in each."""
    simulation, rounds, _ = run(scenario)
    records = [release for this in rounds for release in this.round.uplink_releases if isinstance(release, AirRelease)]
    assert len(records) == len(rounds), "one record a round"
    return rounds, records, simulation.ledger


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_ledger_by_hand(adjacency: str) -> None:
    """One antenna and perfect channel knowledge: X_i = |h_i α_i| τ, or twice that, against σ_c in the client's slot."""
    scenario = grouped(3, rounds=3, privacy={"unit": "client", "adjacency": adjacency})
    rounds, records, ledger = releases(scenario)
    for this, record in zip(rounds, records, strict=True):
        sent = this.status == Status.PARTICIPATED
        gain = np.hypot(this.slots["channel_re"], this.slots["channel_im"])[sent]
        reach = gain * this.slots["tx_gain_abs"][sent] * scenario.uplink.clip
        expected = ((2.0 if adjacency == "replace" else 1.0) * reach / this.values["channel_noise_std"]) ** 2
        spent = record.accounted(ledger.facts, ledger.statement)
        np.testing.assert_allclose(spent.mu_squared, expected, rtol=1e-9)
        assert not np.isfinite(record.published(ledger.facts).mu_squared).any()
        assert record.theorem == "slot_groups"


def test_epsilon_does_not_follow_the_rule() -> None:
    found = {
        rule: run(grouped(4, rule))[1][-1].values["epsilon_accounted"] for rule in ("mean", "median", "trimmed_mean")
    }
    assert len(set(found.values())) == 1, found


def test_a_jammer_keeps_its_target_in_every_slot() -> None:
    scenario = grouped(3, uplink__jammer={"epsilon": 5.0, "calibration": "exact"}, privacy={"unit": "client"})
    _, rounds, _ = run(scenario)
    assert 0 < rounds[-1].values["epsilon_accounted"] <= 5.0 * (1 + 1e-9)
    without = run(grouped(3, privacy={"unit": "client"}))[1][-1].values["epsilon_accounted"]
    assert without > 5.0


def test_few_liars_spoil_few_groups() -> None:
    """Two of twelve clients send 10⁴ times their update: the median of six groups stays with the honest ones."""
    roles = [{"role": "scaled", "factor": 1e4, "count": 2}]
    clients = {"count": 12, "roles": roles}
    found = {}
    for rule in ("mean", "median"):
        scenario = grouped(6, rule, clients=clients, rounds=4, **NOISELESS)
        _, rounds, _ = run(scenario)
        found[rule] = rounds[-1].values["test_loss"]
        spoilt = {g for this in rounds for g in this.slots["slot_group"][this.slots["role"] == Role.SCALED]}
        assert len(spoilt) <= 2 * len(rounds)
    honest = run(grouped(6, "median", clients={"count": 12}, rounds=4, **NOISELESS))[1]
    assert found["median"] < 1.5 * honest[-1].values["test_loss"]
    assert not found["mean"] < 10 * found["median"]


def test_clients_of_a_group_that_is_left_out_were_not_kept() -> None:
    _, rounds, _ = run(grouped(5, "krum"))
    for this in rounds:
        member, kept = this.slots["slot_group"], this.slots["robust_kept"]
        for group in range(5):
            assert len(np.unique(kept[member == group])) <= 1
        assert set(np.unique(kept[~np.isnan(kept)])) <= {0.0, 1.0}
        assert np.nansum([kept[member == g].max(initial=0) for g in range(5)]) == 1


def test_rounds_with_too_few_groups_are_given_up() -> None:
    """Krum for one liar needs five sums; in deep fades fewer groups send, and such a round leaves the model."""
    scenario = grouped(5, "krum", clients={"count": 6}, faults={"fade_threshold": 0.7}, rounds=8)
    _, rounds, _ = run(scenario)
    aborted = [this for this in rounds if (this.status == Status.ABORTED).any()]
    assert aborted, "no round is given up, and the test says nothing"
    for this in aborted:
        assert this.values["server_step_norm"] == 0.0
        assert this.values["participants"] == 0


def test_airtime_is_that_of_the_slots_and_pilots_of_each_client_once() -> None:
    pilots: dict[str, Any] = {"channel__csi": {"pilot_symbols": 16}}
    one = run(small(rounds=1, clients={"count": 8}, uplink={"kind": "over_the_air"}, **pilots))[1][0].values["airtime"]
    bare = run(small(rounds=1, clients={"count": 8}, uplink={"kind": "over_the_air"}))[1][0].values["airtime"]
    for groups in (2, 5):
        found = run(grouped(groups, rounds=1, **pilots))[1][0].values["airtime"]
        assert found == pytest.approx(groups * bare + (one - bare))


@pytest.mark.parametrize(
    "changes",
    rest_slow(
        [
            {
                "channel__fading": {"model": "tdl", "groups": 4},
                "uplink__power_control": {"policy": "truncated_inversion"},
                "faults": {"fade_threshold": 0.2},
            },
            {"uplink__jammer": {"epsilon": 50.0, "calibration": "exact"}},
            {
                "faults": {"availability": {"model": "bernoulli", "p": 0.7}, "fade_threshold": 0.3},
                "uplink__iq_packing": True,
            },
            {"uplink__receiver": {"antennas": 3, "combiner": "max_min"}},
            {"channel__correlation": {"model": "clarke", "doppler_hz": 5.0}, "channel__csi": {"pilot_symbols": 4}},
        ]
    ),
)
def test_resumed_and_replayed_to_the_same_bits(changes: dict[str, Any], tmp_path: Path) -> None:
    scenario = grouped(3, rounds=4, **changes)
    goes_on_to_the_same_bits(scenario, tmp_path)
    ran = wfl.simulate(scenario, tmp_path / "run", device="cpu", threads=1, pictures=False)
    recording = open_recording(ran.trace)
    assert verify(recording, tmp_path / "verified").difference is None
    coverage = run_counterfactual(recording, recording.scenario, tmp_path / "again")
    assert coverage.asked > 0 and coverage.drawn == 0
    assert compare_traces(ran.trace, tmp_path / "again" / "trace.h5", 1, 4).difference is None


def test_the_trace_names_the_group(tmp_path: Path) -> None:
    wfl.simulate(grouped(3, rounds=2), tmp_path / "run", pictures=False)
    with open_trace(tmp_path / "run" / "trace.h5") as trace:
        member = trace["slot_group"].values
    assert set(np.unique(member)) == {0.0, 1.0, 2.0}
    _, rounds, _ = run(small(uplink={"kind": "over_the_air"}))
    assert "slot_group" not in rounds[0].slots


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uplink__slot_groups": 9}, "slot_groups: found 9 groups of the 8 clients"),
        ({"uplink__slot_groups": 0}, "slot_groups: found 0"),
        ({"uplink__slot_groups": True}, "slot_groups: found true"),
        ({"uplink__slot_groups": 1}, "allowed: mean, or uplink.kind: digital | ideal, or uplink.slot_groups above 1"),
        ({"training__robust": {"rule": "krum", "f": 2}}, "which needs 7 of the 4 sums of uplink.slot_groups"),
        (
            {"uplink__modulation": {"scheme": "obda"}, "uplink__power_control": {"policy": "truncated_inversion"}},
            "votes",
        ),
        ({"uplink__jammer": {"role": "rotating", "calibration": "exact"}}, "one of the clients"),
        ({"uplink__jammer": {"calibration": "theorem"}}, "one sum of all clients"),
        ({"uplink__kind": "digital"}, "slot_groups: found an unknown key"),
        ({"uplink__kind": "ideal"}, "slot_groups: found an unknown key"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        grouped(4, **changes)
    assert message in str(refused.value)


def test_scales_for_all_clients_are_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"uplink.slot_groups: found 4 groups with uplink.power_control.policy: ris_fl"
    ):
        build_simulation(grouped(4, uplink__power_control={"policy": "ris_fl"}), PLAN)


LOUDNESS: dict[str, Any] = {
    "uplink__power_control": {"policy": "weakest_inversion"},
    "channel__fading": {"model": "rayleigh"},
    "rounds": 2,
}


def test_an_audit_plays_in_the_slot_of_the_canary() -> None:
    """Slots of unlike gains: what each client reaches, and the noise it has, are those of its own slot on record."""
    found = audit_simulation(build_simulation(grouped(4, **LOUDNESS), PLAN), "groups", trials=30)
    assert not found.noise_faults and found.evidence.epsilon <= found.epsilon_accounted
    assert any("slots of other groups" in phrase for phrase in found.not_tested)


def test_an_audit_finds_the_bounds_of_other_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that mixes up the slots of clients says too little of some of them."""

    def mixed(releases: Any, clients: Any, samples: Any) -> AirRelease:
        record = of_slots(releases, clients, samples)
        return replace(record, received_bound=np.roll(record.received_bound, 1))

    monkeypatch.setattr("wirelessfl.simulation.uplinks.air.groups.of_slots", mixed)
    found = audit_simulation(build_simulation(grouped(4, **LOUDNESS), PLAN), "groups", trials=30)
    assert found.noise_faults
