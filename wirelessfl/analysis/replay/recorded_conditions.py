"""The recorded conditions of a run: channels, availability and compute times, beside the laws of its scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning.faults import AvailabilityModel
from wirelessfl.learning.timing import Timing
from wirelessfl.radio import AT_ONCE, Channels, ChannelSource, Instants, JammerLink, Moment, Network
from wirelessfl.streams import Streams
from wirelessfl.trace import Role, Status, gain_shape


@dataclass
class Coverage:
    """Numbers of channels that a counterfactual asked for, recorded or not.

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
        axes = zip(("pieces", "subcarriers", "antennas"), drawn.shape[1:], self._gain_shape, strict=True)
        others = [f"{asked} {axis} (recorded: {held})" for axis, asked, held in axes if asked != held]
        precondition(
            not others,
            f"--set: slots or messages have {', '.join(others)} under the changed policy, but the trace holds no "
            "others (of an upload, for its beginning only); use simulate",
            InfeasibleError,
        )
        return recorded.reshape(drawn.shape)

    def look_up(self, clients: NDArray[np.int64], round_index: int) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Which of (n,) clients were selected in a round, and their columns (n,); of the others anything."""
        row, unknown = self._row_of.get(round_index), np.zeros(len(clients), dtype=np.bool_)
        if row is None:
            return unknown, {name: np.zeros(len(clients), column.dtype) for name, column in self._columns.items()}
        selected = self._clients[row][self._clients[row] >= 0]
        slots = np.minimum(np.searchsorted(selected, clients), max(len(selected) - 1, 0))
        known = selected[slots] == clients if len(selected) else unknown
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

    def channels(
        self, nodes: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE, share: float = 1.0
    ) -> Channels:
        """The recorded channels; that of a client without one is drawn by the scenario's laws.

        Raises:
            InfeasibleError: the changed policy divides slots into another number of pieces.
        """
        drawn = super().channels(nodes, moment, instants, share)
        known, columns = self.table.look_up(nodes, moment.round_index)
        channel, estimate = (
            self.table.gains(columns[f"{name}_re"] + 1j * columns[f"{name}_im"], drawn.channel)
            for name in ("channel", "csi")
        )
        known = known & ~np.isnan(channel[:, 0, 0, 0])
        self.coverage.asked += len(nodes)
        self.coverage.drawn += int(np.count_nonzero(~known))
        path_gain = np.where(known, columns["path_gain"], drawn.path_gain)
        return Channels(
            channel=np.where(known[:, None, None, None], channel, drawn.channel),
            estimate=np.where(known[:, None, None, None], estimate[:, : drawn.estimate.shape[1]], drawn.estimate),
            path_gain=path_gain,
            mean_estimate_power=self.impairments.mean_estimate_power(path_gain, drawn.specular_power, share),
            specular_power=drawn.specular_power,
        )


@dataclass(frozen=True, kw_only=True)
class RecordedNetwork(Network):
    """The network whose external jammer has the recorded channel.

    Attributes:
        jammer_links: the link of the jammer by round.
    """

    jammer_links: Mapping[int, JammerLink]

    @override
    def jammer_link(self, moment: Moment, instants: Instants = AT_ONCE) -> JammerLink:
        # In a round without a recorded link, it is drawn by the scenario's laws.
        drawn = super().jammer_link(moment, instants)
        found = self.jammer_links.get(moment.round_index, drawn)
        precondition(
            found.channel.shape == drawn.channel.shape,
            f"--set: the jammer has {drawn.count} antennas under the changed policy, but the trace holds channels of "
            f"{found.count}, in slots of {found.channel.shape[0]} pieces; use simulate",
            InfeasibleError,
        )
        return found


@dataclass(frozen=True, kw_only=True)
class RecordedTiming(Timing):
    """Recorded times of computing.

    Attributes:
        table: compute time by round and client.
    """

    table: SlotTable

    @override
    def compute_time(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], round_index: int, streams: Streams
    ) -> NDArray[np.float64]:
        # A time that was not recorded is drawn by the scenario's law.
        drawn = super().compute_time(processed, clients, round_index, streams)
        known, columns = self.table.look_up(clients, round_index)
        return np.where(known & ~np.isnan(columns["compute_time"]), columns["compute_time"], drawn)


@dataclass(frozen=True)
class RecordedAvailability(AvailabilityModel):
    """Availability of clients, as recorded.

    Attributes:
        table: status by round and client, and roles where there are some.
        law: answers for clients that were not asked then, and for those whose role was to be silent.
    """

    table: SlotTable
    law: AvailabilityModel

    @override
    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        drawn = self.law.available(clients, round_index, streams)
        known, columns = self.table.look_up(clients, round_index)
        if "role" in columns:
            known = known & (columns["role"] != Role.SILENT)
        return np.where(known, columns["status"] != Status.UNAVAILABLE, drawn)
