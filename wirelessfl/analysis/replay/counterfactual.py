"""A recorded run under another policy: the same channels, availability and compute times, other decisions.

Channels, availability and compute times come from the recording. Where the changed policy needs what the recorded run
never needed (the channel of a client that was late then and is in time now), they are drawn by the laws of the scenario
with the same seed, and counted.
"""

import warnings
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from wirelessfl.analysis.replay.recorded_code import recorded_code
from wirelessfl.analysis.replay.recorded_conditions import (
    Coverage,
    RecordedAvailability,
    RecordedNetwork,
    RecordedSource,
    RecordedTiming,
    SlotTable,
)
from wirelessfl.analysis.replay.recording import OnRound, Recording, open_recording, run_rounds
from wirelessfl.assembly import build_simulation, other_data, recorded_plan
from wirelessfl.assembly.coverage import band_of_a_client
from wirelessfl.assembly.slot import build_pilots
from wirelessfl.errors import DataError, InfeasibleError, ScenarioError, SourceWarning, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts
from wirelessfl.radio import JammerLink, Network, linear_to_db
from wirelessfl.scenario import Resolved, Scenario, differing_keys, resolve_document
from wirelessfl.scenario.channel import GaussMarkovFading, IndependentFading
from wirelessfl.scenario.overrides import read_overrides
from wirelessfl.scenario.scenario import outside_code, refuse_outside_code
from wirelessfl.scenario.uplink import DigitalLink, OverTheAir, transmits_in_watts
from wirelessfl.scenario.yamltree import parse_yaml
from wirelessfl.simulation import Simulation
from wirelessfl.trace import JAMMER_AXIS, gain_shape, trace_errors

# Keys of what the recording holds; a counterfactual changes none of them.
_CONDITIONS = (
    "seed",
    "data",
    "clients.count",
    "topology",
    "channel",
    "faults.availability",
    "timing.cycles_per_sample",
    "timing.cpu_hz",
    "timing.straggler_scale",
    "compute",
)

# Keys on which depends how long a client works; where one changes, so do compute times, with the recorded draws.
_WORK = (
    "training.epochs",
    "training.steps",
    "training.batch_size",
    "training.algorithm",
    "training.privacy",
    "clients.roles",
)


def changed_scenario(recording: Recording, overrides: Sequence[str], *, allow_plugins: bool = False) -> Resolved:
    """The recorded scenario with another policy.

    Args:
        recording: what ran.
        overrides: what is to change, as ``key=value``.
        allow_plugins: whether code from outside the package that the recorded scenario names may run; what an override
            names always may.

    Raises:
        ScenarioError: it is not valid, changes nothing, changes a recorded condition, or names such code.
        InfeasibleError: the recorded run has several cells, or channels of which the trace holds the last ones only.
    """
    precondition(
        recording.scenario.topology.kind == "single_cell",
        f"{recording.path}: found topology.kind: {recording.scenario.topology.kind}; such a trace holds each client's "
        "channel to its own base station only; to run another policy, use simulate",
        InfeasibleError,
    )
    # In secure aggregation a client sends several messages a round, each on the channel of its own instant.
    channel, correlation = recording.scenario.channel, recording.scenario.channel.correlation
    moves = channel.placement.scheme == "random_waypoint" and channel.pathloss.model != "none"
    by_rounds = isinstance(correlation, GaussMarkovFading) and correlation.interval_s is not None
    fades = not isinstance(correlation, IndependentFading) and not by_rounds
    precondition(
        recording.scenario.uplink.kind != "secure_aggregation" or not (moves or fades),
        f"{recording.path}: found secure aggregation on channels that change within a round; such a trace holds the "
        "channel of each client's last message only; to run another policy, use simulate",
        InfeasibleError,
    )
    origin = str(recording.path)
    document = parse_yaml(recording.dataset.attrs["scenario"], lambda number: f"{origin}:{number}")
    typed = read_overrides(overrides)
    resolved = resolve_document(document, typed, None)
    resolved = replace(resolved, scenario=resolved.scenario.placed(recording.places))
    refuse_outside_code(resolved.scenario, origin, allow_plugins, [change.value for change in typed])
    changes = differing_keys(recording.scenario, resolved.scenario)
    precondition(
        changes, "--set: found nothing that differs from the recorded scenario; allowed: another policy", ScenarioError
    )
    if "rounds" in [change.partition(":")[0] for change in changes]:
        wanted, first, last = resolved.scenario.rounds, recording.first, recording.last
        precondition(
            first <= wanted <= last,
            f"--set: rounds: found {wanted}; allowed: {first} to {last}, the rounds that are recorded and looked at",
            ScenarioError,
        )
    refused = [change for change in changes if _is_below(change.partition(":")[0], _CONDITIONS)]
    if transmits_in_watts(recording.scenario.uplink) != transmits_in_watts(resolved.scenario.uplink):
        refused.append("uplink.tx_power_dbm: recorded path gains are relative to another reference")
    precondition(
        not refused,
        "--set: a replay with another policy keeps the conditions of the recorded run "
        f"({', '.join(_CONDITIONS)}); to change them, use simulate. Found:\n  " + "\n  ".join(refused),
        ScenarioError,
    )
    return resolved


def _is_below(key: str, places: Sequence[str]) -> bool:
    return any(key == place or key.startswith(f"{place}.") for place in places)


def run_counterfactual(
    recording: Recording,
    scenario: Scenario,
    out: Path,
    on_round: OnRound | None = None,
    *,
    allow_plugins: bool = False,
) -> Coverage:
    """Run of a changed scenario on the recorded conditions, for as many rounds as are looked at.

    Args:
        recording: what ran.
        scenario: what is to run now, from ``changed_scenario``.
        out: folder for its trace and scenario, held by `working_in` where other processes may come; a replay that lies
            there is replaced.
        on_round: called with each finished round.
        allow_plugins: whether sources that the trace holds may run, where code from outside is another one here.

    Raises:
        CheckFailed: it is, and they may not.
        OutputError: a run that is no replay lies in the folder, or it cannot be written.
        InfeasibleError: this machine cannot follow the recorded plan, or a privacy target cannot be met.
    """
    coverage = Coverage()
    plan = recorded_plan(recording.path)

    def build(interrupts: Interrupts) -> Simulation:
        simulation = build_simulation(scenario, plan, None, interrupts.check)
        other = other_data(recording.attributes, recording.scenario, simulation.deployment.learner.population)
        precondition(other is None, f"{recording.path}: {other}", DataError)
        # The scenario itself keeps its M, by which noise and schedules are set.
        simulation.stop = replace(simulation.stop, rounds=min(recording.last, scenario.rounds))
        return under_recorded_conditions(simulation, recording, scenario, coverage)

    own = set(outside_code(scenario).values()) - set(outside_code(recording.scenario).values())
    code = recorded_code(recording.path, recording.attributes, recording.scenario, allow_plugins=allow_plugins, own=own)
    with code as notes:
        for note in notes:
            warnings.warn(note, SourceWarning, stacklevel=2)
        with trace_errors(recording.path):  # what it holds enters the simulation
            run_rounds(build, scenario, RunFolder(out), on_round)
    return coverage


def under_recorded_conditions(
    simulation: Simulation, recording: Recording, scenario: Scenario, coverage: Coverage
) -> Simulation:
    """A simulation under the channels, availability and compute times of the recorded run.

    With asynchronous aggregation a trace does not tell in which round a client was asked, and a time of computing
    stands in the round in which it ended: both follow the scenario's laws, with the same draws.
    """
    _refuse_other_pilots(recording.scenario, scenario, simulation)
    trace, parts = open_recording(recording.path).dataset, simulation.deployment
    channels = SlotTable(trace, ("channel_re", "channel_im", "csi_re", "csi_im", "path_gain"))
    clients = RecordedSource(**_fields(parts.network.clients), table=channels, coverage=coverage)
    links = _jammer_links(recording.scenario, trace)
    network = RecordedNetwork(**{**_fields(parts.network), "clients": clients}, jammer_links=links)
    parts = replace(parts, network=network, uplink=_on_network(parts.uplink, parts.network, network))
    if recording.scenario.aggregation.mode != "asynchronous":
        table = SlotTable(trace, ("status", "role") if "role" in trace else ("status",))
        availability = RecordedAvailability(table, parts.faults.availability)
        parts = replace(parts, faults=replace(parts.faults, availability=availability))
        changes = [change.partition(":")[0] for change in differing_keys(recording.scenario, scenario)]
        if not any(_is_below(key, _WORK) for key in changes):
            timing = RecordedTiming(**_fields(parts.timing), table=SlotTable(trace, ("compute_time",)))
            parts = replace(parts, timing=timing)
    simulation.deployment = parts
    return simulation


def _refuse_other_pilots(recorded: Scenario, changed: Scenario, simulation: Simulation) -> None:
    # Estimates are recorded with the error of their pilots, which may take their power from the data, and have the
    # band of the data.
    uplink, pilots = recorded.uplink, simulation.deployment.network.clients.impairments.pilots
    if not isinstance(uplink, OverTheAir | DigitalLink):
        return
    before = build_pilots(recorded, uplink, simulation.state.parameters.size)
    if before is None or pilots is None:
        return
    bands = [band_of_a_client(one)[0] if isinstance(one.uplink, DigitalLink) else 1.0 for one in (recorded, changed)]
    change = pilots.symbol_snr * bands[0] / (before.symbol_snr * bands[1])
    if change != 1.0:
        change_db = linear_to_db(change)
        raise InfeasibleError(
            f"--set: a pilot symbol of the changed policy has {change_db:+.2f} dB of the recorded energy, and its "
            "estimates were not recorded; with a power in watts, channel.csi.pilot_power_dbm keeps the power of "
            "pilots; to change it, use simulate"
        )


def _jammer_links(scenario: Scenario, trace: xr.Dataset) -> dict[int, JammerLink]:
    # The links of an external jammer by round; a client that jams has its own, which is recorded as that.
    jammer = scenario.uplink.jammer if isinstance(scenario.uplink, OverTheAir) else None
    if jammer is None or jammer.role != "external":
        return {}
    shape = (trace.sizes["round"], *gain_shape(trace), trace.sizes.get(JAMMER_AXIS, 1))
    pieces = None if scenario.channel.csi.refresh == "piece" else 1
    channel, estimate = (
        (trace[f"jammer_{name}_re"].values + 1j * trace[f"jammer_{name}_im"].values).reshape(shape)
        for name in ("channel", "csi")
    )
    rows = zip(trace["round"].values.tolist(), channel, estimate, trace["jammer_path_gain"].values, strict=True)
    return {
        index: JammerLink(h, known[:pieces], float(path_gain))
        for index, h, known, path_gain in rows
        if np.isfinite(h.flat[0])
    }


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _on_network(part: Any, before: Network, after: Network) -> Any:
    # An uplink, whatever its kind, with another network wherever it or a part of it holds the one before.
    if part is before:
        return after
    if not is_dataclass(part) or isinstance(part, type):
        return part
    moved = {name: _on_network(one, before, after) for name, one in _fields(part).items()}
    changed = {name: one for name, one in moved.items() if one is not getattr(part, name)}
    return replace(part, **changed) if changed else part
