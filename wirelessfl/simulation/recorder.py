"""From a finished round to a record of the trace."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.privacy import Release, ServerNoiseRelease, client_values, round_values, settings
from wirelessfl.simulation.records import Round
from wirelessfl.trace import PRIVACY, REASON_LENGTH, EventBatch, RoundRecord, SecAggOutcome

LOCAL_STATISTICS = ("clip_norm", "clipped_share", "noise_multiplier")
"""Statistics of private training that the trace keeps, as means over the steps."""
# Fields of ``ServerRecord`` that the trace names otherwise
_SERVER = {"airtime_s": "airtime", "sim_time_s": "sim_time"}
_PER_SLOT = {variable.name for variable in PRIVACY.of("round", "slot")}


def routed(this: Round) -> Iterator[tuple[str, Release]]:
    """Releases of a round by route, in the names of the trace: of each route a round has one at most."""
    yield from (("local", release) for release in this.local_releases)
    for release in this.uplink_releases:
        yield "server" if isinstance(release, ServerNoiseRelease) else "air", release


@dataclass(frozen=True, eq=False)
class FinishedRound:
    """A finished round under the trace's names.

    Attributes:
        round: its records.
    """

    round: Round

    @property
    def index(self) -> int:
        """The round, from 1."""
        return self.round.index

    @property
    def clients(self) -> NDArray[np.int64]:
        """(n,) ascending numbers of the clients selected."""
        return self.round.clients

    @property
    def status(self) -> NDArray[np.uint8]:
        """(n,) status of each client."""
        return self.round.status

    @cached_property
    def values(self) -> dict[str, float]:
        """Variables per round."""
        this = self.round
        values = {
            "energy": this.energy.joules,
            "updates_not_finite": float(this.not_finite),
            "wall_time": this.wall_time,
            **{_SERVER.get(name, name): value for name, value in vars(this.server).items()},
        }
        if (of_clients := this.accuracies) is not None:
            values |= {"accuracy_client_mean": of_clients.mean, "accuracy_worst10": of_clients.worst_tenth}
            values["fairness_index"] = of_clients.jain_index
        if (personal := this.personal_accuracies) is not None:
            values |= {"personal_accuracy_mean": personal.mean, "personal_accuracy_worst10": personal.worst_tenth}
            values["personal_fairness_index"] = personal.jain_index
        if this.slot is not None:
            values |= {name: value for name, value in vars(this.slot).items() if name != "jammer"}
            if this.slot.jammer is not None:
                values["jammer_path_gain"] = this.slot.jammer.path_gain
        return values | {name: float(column) for name, column in _jammer_columns(this).items() if not column.ndim}

    @cached_property
    def blocks(self) -> dict[str, NDArray[np.float64]]:
        """Variables per round over blocks, subcarriers and antennas of the slot, where there are several."""
        return {name: column for name, column in _jammer_columns(self.round).items() if column.ndim}

    @cached_property
    def slots(self) -> dict[str, NDArray[np.float64]]:
        """Variables per round and client, each (n,) or (n, T), NaN where a client has no value."""
        this = self.round
        columns, personal = {"compute_time": this.compute_time}, this.personal_accuracies
        if this.before.score is not None:
            columns["selection_score"] = this.before.score

        def put(record: Any, **values: Any) -> None:
            for name, column in values.items():
                if name not in columns:
                    columns[name] = np.full((len(this.clients), *np.shape(column)[1:]), np.nan)
                columns[name][record.positions] = column

        of_clients = {
            "compute_energy_j": this.compute_joules,
            "local_steps": _steps_of_trained(this),
            "staleness": this.staleness,
            "role": this.roles,
            "robust_kept": this.kept,
            "slot_group": this.slot_group,
            "local_accuracy": None if this.accuracies is None else this.accuracies.at(this.clients),
            "personal_accuracy": None if personal is None else personal.at(this.clients),
        }
        columns |= {name: np.asarray(column) for name, column in of_clients.items() if column is not None}
        for link in this.links:
            gains, clients = link.links, link.links.channel.shape[:1]
            put(link, path_gain=gains.path_gain, **_over_axes("", gains.channel, gains.estimate, clients))
            if link.station is not None:
                put(link, cell=link.station)
            if link.sinr is not None:
                put(link, sinr=link.sinr)
        for trained in this.training:
            known = {name: mean for name, mean in trained.statistics.items() if name in LOCAL_STATISTICS}
            put(trained, update_norm_raw=trained.norm_raw, update_norm=trained.norm, local_loss=trained.loss, **known)
        for sent in this.transmissions:
            put(sent, backoff=sent.backoff, tx_gain_abs=sent.gain, truncated_share=sent.truncated_share)
            put(sent, tx_energy=sent.energy, tx_energy_j=sent.joules)
        if this.uploads is not None:
            up = this.uploads
            put(up, tx_time=up.airtime_s, tx_energy=up.energy, tx_energy_j=up.joules)
            put(up, payload_bits=np.full(len(up.positions), float(up.payload_bits)))
        if this.pilots is not None:
            before = columns.get("tx_energy_j", np.zeros(len(this.clients)))
            put(this.pilots, tx_energy_j=np.nan_to_num(before)[this.pilots.positions] + this.pilots.joules)
        return columns


def _steps_of_trained(this: Round) -> NDArray[np.float64] | None:
    # (n,) local steps by the deadline, NaN of clients that do not train; None where all are taken
    return None if this.local_steps is None else np.where(np.isnan(this.compute_time), np.nan, this.local_steps)


def _jammer_columns(this: Round) -> dict[str, NDArray[np.float64]]:
    if this.slot is None or this.slot.jammer is None:
        return {}
    return _over_axes("jammer_", this.slot.jammer.channel, this.slot.jammer.estimate)


def _over_axes(
    prefix: str, channel: NDArray[np.complex128], estimate: NDArray[np.complex128], first: tuple[int, ...] = ()
) -> dict[str, NDArray[np.float64]]:
    # Real and imaginary parts of channel and estimate, over the axes after ``first`` that are longer than 1
    shape = first + tuple(size for size in channel.shape[len(first) :] if size > 1)
    found = {"channel": channel.reshape(shape), "csi": np.broadcast_to(estimate, channel.shape).reshape(shape)}
    return {
        f"{prefix}{name}_{part}": getattr(gains, attribute)
        for name, gains in found.items()
        for part, attribute in (("re", "real"), ("im", "imag"))
    }


def round_record(
    finished: FinishedRound,
    events: EventBatch | None,
    weights: NDArray[np.float32] | None,
    known_settings: dict[str, int],
) -> RoundRecord:
    """The record of a round.

    Args:
        finished: the round.
        events: what happened in it, or None when events are not kept.
        weights: (d,) the global model at its end, where it is to be kept.
        known_settings: the settings of releases so far, with their numbers; new ones are added.
    """
    this = finished.round
    privacy: dict[str, float] = {}
    privacy_slots: dict[str, NDArray[np.float64]] = {}

    def put(name: str, positions: NDArray[np.int64], values: NDArray[np.float64] | float) -> None:
        column = privacy_slots[name] = np.full(len(this.clients), np.nan)
        column[positions] = values

    for route, release in routed(this):
        text = settings(release)
        positions = np.searchsorted(this.clients, release.clients)
        privacy[f"{route}_settings"] = known_settings.setdefault(text, len(known_settings))
        put("released", positions, 1.0)
        for name, number in round_values(release).items():
            if f"{route}_{name}" in _PER_SLOT:
                put(f"{route}_{name}", positions, number)
            else:
                privacy[f"{route}_{name}"] = number
        for name, column in client_values(release).items():
            put(f"{route}_{name}", positions, column)
    if this.loss_release is not None:
        asked = {"asked": this.loss_release.clients.tolist(), **json.loads(settings(this.loss_release))}
        text = json.dumps(asked, sort_keys=True)
        privacy["loss_settings"] = known_settings.setdefault(text, len(known_settings))
    secagg, stages = _secure_aggregation(this)
    return RoundRecord(
        round_index=this.index,
        values={**finished.values, **finished.blocks},
        slots={"client_id": this.clients, "status": this.status, **finished.slots},
        privacy=privacy,
        privacy_slots=privacy_slots,
        secagg=secagg,
        secagg_stages=stages,
        events=events,
        weights=weights,
    )


def _secure_aggregation(this: Round) -> tuple[dict[str, ArrayLike], dict[str, ArrayLike]]:
    # Columns of secure aggregation per round, and per round and stage; empty with other uplinks
    record = this.secagg
    if record is None:
        return {}, {}
    reason = record.abort_reason.encode("ascii", "replace")[:REASON_LENGTH]
    per_round: dict[str, ArrayLike] = {
        "outcome": SecAggOutcome.ABORTED if reason else SecAggOutcome.SUMMED,
        "reason": np.bytes_(reason),
        "attempts": record.attempts,
        "threshold": record.threshold,
        "neighbours": record.neighbours,
    }
    return per_round, dict(record.costs)
