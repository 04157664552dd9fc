"""A recorded run under another policy: the same channels, availability and compute times, other decisions.

What nature dealt comes from the recording. Where the changed policy asks for something that the recorded run never
needed (the channel of a client that was late then and is in time now), the laws of the scenario answer, with the same
seed; how often is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import NDArray

from wirelessfl.analysis.replay.recording import (
    OnRound,
    Recording,
    open_recording,
    run_rounds,
)
from wirelessfl.assembly import build_simulation, recorded_plan
from wirelessfl.assembly.slot import build_pilots
from wirelessfl.errors import InfeasibleError, ScenarioError
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts
from wirelessfl.learning.selection.availability import AvailabilityModel
from wirelessfl.learning.timing import Timing
from wirelessfl.radio.network import Channels, ChannelSource, JammerLink, Network
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants
from wirelessfl.radio.units import linear_to_db
from wirelessfl.scenario import Resolved, Scenario, config, differing_keys, resolve_document
from wirelessfl.scenario.channel import ExternalCorrelation
from wirelessfl.scenario.outside import refuse_outside_code
from wirelessfl.scenario.overrides import read_overrides
from wirelessfl.scenario.yamltree import parse_yaml
from wirelessfl.simulation import Simulation
from wirelessfl.streams import Streams
from wirelessfl.trace import Status, gain_shape
from wirelessfl.trace.failures import trace_errors

if TYPE_CHECKING:
    import xarray as xr

NATURE = (
    "seed",
    "data",
    "clients.count",
    "topology",
    "channel",
    "faults.availability",
    "timing.cycles_per_sample",
    "timing.cpu_hz",
    "timing.straggler_scale",
)
"""Keys of what the recording holds; a counterfactual changes none of them."""

# Keys on which depends how long a client works; where one changes, so do compute times, with the recorded luck.
_WORK = ("training.epochs", "training.steps", "training.batch_size", "training.privacy")


@dataclass
class Coverage:
    """How much of what a counterfactual asked for was recorded.

    Attributes:
        asked: channels asked for, one a client and round.
        drawn: those of them that were not recorded.
    """

    asked: int = 0
    drawn: int = 0


class SlotTable:
    """Columns of a trace over rounds and slots, looked up by round and client."""

    def __init__(self, trace: xr.Dataset, names: Sequence[str]) -> None:
        """Some columns of all rounds of a trace."""
        self._row_of = {int(label): row for row, label in enumerate(trace["round"].values)}
        self._clients: NDArray[np.int64] = trace["client_id"].values
        self._columns: dict[str, NDArray[Any]] = {name: trace[name].values for name in names}
        self._gain_shape = gain_shape(trace)

    def gains(self, recorded: NDArray[np.complex128], drawn: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Recorded gains of n clients over all four axes, (n, T, F, A).

        Raises:
            InfeasibleError: they are not those of the pieces that the changed policy asks for.
        """
        if drawn.shape[1:] != self._gain_shape:
            raise InfeasibleError(
                f"--set: slots or messages have {drawn.shape[1]} pieces under the changed policy, and the trace holds "
                f"the channels of {self._gain_shape[0]}: of an upload that of its beginning; use simulate"
            )
        return recorded.reshape(drawn.shape)

    def look_up(self, clients: NDArray[np.int64], round_index: int) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Which of (n,) clients were selected in a round, and their columns (n,); of the others anything."""
        row = self._row_of.get(round_index)
        if row is None:
            return np.zeros(len(clients), dtype=np.bool_), {
                name: np.zeros(len(clients), column.dtype) for name, column in self._columns.items()
            }
        selected = self._clients[row][self._clients[row] >= 0]
        slots = np.minimum(np.searchsorted(selected, clients), max(len(selected) - 1, 0))
        known = selected[slots] == clients if len(selected) else np.zeros(len(clients), dtype=np.bool_)
        return known, {name: column[row][slots] for name, column in self._columns.items()}


@dataclass(frozen=True, kw_only=True)
class RecordedSource(ChannelSource):
    """Channels of the clients as recorded.

    Attributes:
        table: channel, estimate and path gain by round and client.
        coverage: what was asked for so far.
    """

    table: SlotTable
    coverage: Coverage

    def channels(self, nodes: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE) -> Channels:
        """The recorded channels; a client without one has what the scenario's laws deal it.

        Raises:
            InfeasibleError: the changed policy divides slots into another number of pieces.
        """
        drawn = super().channels(nodes, moment, instants)
        known, columns = self.table.look_up(nodes, moment.round_index)
        channel, estimate, path_gain = (
            self.table.gains(columns["channel_re"] + 1j * columns["channel_im"], drawn.channel),
            self.table.gains(columns["csi_re"] + 1j * columns["csi_im"], drawn.channel)[:, : drawn.estimate.shape[1]],
            columns["path_gain"],
        )
        known = known & ~np.isnan(channel[:, 0, 0, 0])
        self.coverage.asked += len(nodes)
        self.coverage.drawn += int(np.count_nonzero(~known))
        path_gain = np.where(known, path_gain, drawn.path_gain)
        return Channels(
            channel=np.where(known[:, None, None, None], channel, drawn.channel),
            estimate=np.where(known[:, None, None, None], estimate, drawn.estimate),
            path_gain=path_gain,
            mean_estimate_power=self.receiver.mean_estimate_power(path_gain, drawn.specular_power),
            specular_power=drawn.specular_power,
        )


@dataclass(frozen=True, kw_only=True)
class RecordedNetwork(Network):
    """The network whose external jammer has the recorded channel.

    Attributes:
        jammer_links: the link of the jammer by round.
    """

    jammer_links: Mapping[int, JammerLink]

    def jammer_link(self, moment: Moment, instants: Instants = AT_ONCE) -> JammerLink:
        """The recorded link; in a round without one, what the scenario's laws deal."""
        drawn = super().jammer_link(moment, instants)
        return self.jammer_links.get(moment.round_index, drawn)


@dataclass(frozen=True, kw_only=True)
class RecordedTiming(Timing):
    """Compute times as recorded.

    Attributes:
        table: compute time by round and client.
    """

    table: SlotTable

    def compute_time(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], round_index: int, streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) seconds; a client without a recorded time has what the scenario's law deals it."""
        drawn = super().compute_time(processed, clients, round_index, streams)
        known, columns = self.table.look_up(clients, round_index)
        return np.where(known & ~np.isnan(columns["compute_time"]), columns["compute_time"], drawn)


@dataclass(frozen=True)
class RecordedAvailability:
    """Who could be reached, as recorded.

    Attributes:
        table: status by round and client.
        law: answers for clients that were not asked then.
    """

    table: SlotTable
    law: AvailabilityModel

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True where the client could be reached."""
        drawn = self.law.available(clients, round_index, streams)
        known, columns = self.table.look_up(clients, round_index)
        return np.where(known, columns["status"] != Status.UNAVAILABLE, drawn)


def changed_scenario(recording: Recording, overrides: Sequence[str], *, allow_plugins: bool = False) -> Resolved:
    """The recorded scenario with another policy.

    Args:
        recording: what ran.
        overrides: what is to change, as ``key=value``.
        allow_plugins: whether code from outside the package that the recorded scenario names may run; what an override
            names always may.

    Raises:
        ScenarioError: it is not valid, changes nothing, changes what nature dealt, or names such code.
        InfeasibleError: the recorded run has several cells, or channels of which the trace holds the last ones only.
    """
    if recording.scenario.topology.kind != "single_cell":
        raise InfeasibleError(
            f"{recording.path}: a run with topology.kind: {recording.scenario.topology.kind}, of which a trace holds "
            "each client's channel to its own base station only; for another policy use simulate"
        )
    _refuse_channels_of_messages(recording)
    origin = str(recording.path)
    document = parse_yaml(recording.dataset.attrs["scenario"], lambda number: f"{origin}:{number}")
    typed = read_overrides(overrides)
    resolved = resolve_document(document, typed, None)
    refuse_outside_code(resolved.scenario, origin, allow_plugins, [change.value for change in typed])
    changes = differing_keys(recording.scenario, resolved.scenario)
    if not changes:
        raise ScenarioError("--set: found nothing that differs from the recorded scenario; allowed: another policy")
    refused = [change for change in changes if _is_below(change.partition(":")[0], NATURE)]
    if _transmits_in_watts(recording.scenario) != _transmits_in_watts(resolved.scenario):
        refused.append("uplink.tx_power_dbm: recorded path gains are relative to another reference")
    if refused:
        raise ScenarioError(
            "--set: a counterfactual keeps what nature dealt in the recorded run "
            f"({', '.join(NATURE)}); for the rest use simulate. Found:\n  " + "\n  ".join(refused)
        )
    return resolved


def _refuse_channels_of_messages(recording: Recording) -> None:
    """In secure aggregation a client sends several messages a round, each on the channel of its own instant."""
    channel, uplink = recording.scenario.channel, recording.scenario.uplink
    moves = channel.placement.scheme == "random_waypoint" and channel.pathloss.model != "none"
    match channel.correlation:
        case config.IndependentFading():
            fades = False
        case config.GaussMarkovFading():
            fades = channel.correlation.interval_s is None
        case config.ClarkeFading() | ExternalCorrelation():
            fades = True
        case _:
            assert_never(channel.correlation)
    if uplink.kind == "secure_aggregation" and (moves or fades):
        raise InfeasibleError(
            f"{recording.path}: a run of secure aggregation on channels that change within a round, of which a trace "
            "holds the channel of each client's last message only; for another policy use simulate"
        )


def _is_below(key: str, places: Sequence[str]) -> bool:
    return any(key == place or key.startswith(f"{place}.") for place in places)


def _transmits_in_watts(scenario: Scenario) -> bool:
    match scenario.uplink:
        case config.OverTheAir() | config.Digital() | config.SecureAggregation():
            return scenario.uplink.tx_power_dbm is not None
        case config.Ideal():
            return False
        case _:
            assert_never(scenario.uplink)


def run_counterfactual(
    recording: Recording, scenario: Scenario, out: Path, on_round: OnRound | None = None
) -> Coverage:
    """Run a changed scenario on the recorded conditions, for as many rounds as are looked at.

    Args:
        recording: what ran.
        scenario: what is to run now, from ``changed_scenario``.
        out: folder for its trace and scenario, held by `working_in` where other processes may come; a replay that lies
            there is replaced.
        on_round: called with each finished round.

    Raises:
        OutputError: a run that is no replay lies in the folder, or it cannot be written.
        InfeasibleError: this machine cannot follow the recorded plan, or a privacy target cannot be met.
    """
    coverage = Coverage()
    plan = recorded_plan(recording.path)

    def build(interrupts: Interrupts) -> Simulation:
        simulation = build_simulation(scenario, plan, None, interrupts.check)
        # The scenario itself keeps its M, by which noise and schedules are set.
        simulation.stop = replace(simulation.stop, rounds=min(recording.last, scenario.rounds))
        return under_recorded_conditions(simulation, recording, scenario, coverage)

    with trace_errors(recording.path):  # what it holds enters the simulation
        run_rounds(build, scenario, RunFolder(out), on_round)
    return coverage


def under_recorded_conditions(
    simulation: Simulation, recording: Recording, scenario: Scenario, coverage: Coverage
) -> Simulation:
    """A simulation in which nature deals what it dealt in the recorded run."""
    _refuse_other_pilots(recording.scenario, simulation)
    trace = open_recording(recording.path).dataset
    channels = SlotTable(trace, ("channel_re", "channel_im", "csi_re", "csi_im", "path_gain"))
    parts = simulation.deployment
    network = RecordedNetwork(
        **{
            **_fields(parts.network),
            "clients": RecordedSource(**_fields(parts.network.clients), table=channels, coverage=coverage),
        },
        jammer_links=_jammer_links(recording.scenario, trace),
    )
    availability = RecordedAvailability(SlotTable(trace, ("status",)), parts.faults.availability)
    timing = parts.timing
    changes = [change.partition(":")[0] for change in differing_keys(recording.scenario, scenario)]
    if not any(_is_below(key, _WORK) for key in changes):
        timing = RecordedTiming(**_fields(timing), table=SlotTable(trace, ("compute_time",)))
    simulation.deployment = replace(
        parts,
        network=network,
        timing=timing,
        faults=replace(parts.faults, availability=availability),
        uplink=_on_network(parts.uplink, parts.network, network),
    )
    return simulation


def _refuse_other_pilots(recorded: Scenario, simulation: Simulation) -> None:
    """Estimates are recorded with the error of their pilots, which may take their power from the data.

    Raises:
        InfeasibleError: the changed policy sends its pilots with another energy.
    """
    uplink, pilots = recorded.uplink, simulation.deployment.network.clients.receiver.pilots
    if not isinstance(uplink, config.OverTheAir):
        return
    before = build_pilots(recorded, uplink, simulation.state.parameters.size)
    if before is not None and pilots is not None and before.symbol_snr != pilots.symbol_snr:
        change_db = linear_to_db(pilots.symbol_snr / before.symbol_snr)
        raise InfeasibleError(
            f"--set: a pilot symbol of the changed policy has {change_db:+.2f} dB of the recorded energy, and its "
            "estimates were not recorded; with watts channel.csi.pilot_power_dbm keeps the power of pilots, for "
            "another use simulate"
        )


def _jammer_links(scenario: Scenario, trace: xr.Dataset) -> dict[int, JammerLink]:
    """The links of an external jammer by round; a client that jams has its own, which is recorded as that."""
    jammer = scenario.uplink.jammer if isinstance(scenario.uplink, config.OverTheAir) else None
    if jammer is None or jammer.role != "external":
        return {}
    channel = trace["jammer_channel_re"].values + 1j * trace["jammer_channel_im"].values
    estimate = trace["jammer_csi_re"].values + 1j * trace["jammer_csi_im"].values
    refreshed = scenario.channel.csi.refresh == "piece"
    links = {}
    for row, index in enumerate(trace["round"].values.tolist()):
        h, known = channel[row].reshape(gain_shape(trace)), estimate[row].reshape(gain_shape(trace))
        if np.isfinite(h.flat[0]):
            path_gain = float(trace["jammer_path_gain"].values[row])
            links[index] = JammerLink(h, known if refreshed else known[:1], path_gain)
    return links


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, not copied."""
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _on_network(part: Any, before: Network, after: Network) -> Any:
    """An uplink, whatever its kind, with another network wherever it or a part of it knows the one before."""
    if part is before:
        return after
    if not is_dataclass(part) or isinstance(part, type):
        return part
    parts = _fields(part)
    moved = {name: _on_network(one, before, after) for name, one in parts.items()}
    changed = {name: one for name, one in moved.items() if one is not parts[name]}
    return replace(part, **changed) if changed else part
