"""The records of a slot over the air, for the trace and for the ledger."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy import AirRelease, AirTheorem
from wirelessfl.radio import (
    Jamming,
    Overheard,
    largest_csi_ratio,
    received_amplitude,
    worst_over_pieces,
)
from wirelessfl.simulation.radio_records import SlotRecord, TransmissionRecord
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.air.arrivals import Received
from wirelessfl.simulation.uplinks.air.observed import observed_std
from wirelessfl.simulation.uplinks.air.plan import caveat
from wirelessfl.simulation.uplinks.air.slot_noise import SlotNoise, View
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters


def slot_record(
    received: Received, noise: SlotNoise, jammer_energy: float, has_cells: bool, one_sum: bool
) -> SlotRecord:
    """Gains and noise of a slot; of several receivers, noises that add up and their interference.

    Args:
        received: the signals.
        noise: of the slot.
        jammer_energy: of the slot.
        has_cells: whether receivers are the base stations of cells.
        one_sum: whether the server's step is one sum with noise: neither steps of edges nor votes.
    """
    plan, reference = received.plan, received.plan.loudest.server_gain
    gains, scales = np.array([(each.server_gain, each.receive_scale) for each in plan.transmit.values()]).T
    noise_std = noise.published_std * (reference / gains)
    interference = [waveform / plan.transmit[c].server_gain for c, waveform in received.interference.items()]
    dimension = next(iter(received.signal.values())).shape[-1]
    waveform_std = float(np.linalg.norm(np.sum(interference, axis=0))) / math.sqrt(dimension)
    aggregate = _root_sum_of_squares(noise_std * gains / scales) / plan.links.own.weight.sum()
    return SlotRecord(
        server_gain=reference,
        channel_noise_std=float(plan.noise_std.min()),
        effective_noise_std=_root_sum_of_squares(noise_std),
        aggregate_noise_std=aggregate if one_sum else math.nan,
        interference_std=waveform_std if has_cells else math.nan,
        jammer_gain=math.nan if has_cells else plan.jammer_gain,
        jammer_energy=math.nan if has_cells else jammer_energy,
        jammer=plan.jammer,
    )


def air_release(
    this: Round,
    transmitters: Transmitters,
    noise: SlotNoise,
    transmissions: Sequence[TransmissionRecord],
    theorem: AirTheorem,
    gradient_step: int | None,
    samples: NDArray[np.int64],
) -> AirRelease:
    """The record for the ledger, in units of y/α_u at the largest α_u: what could arrive, under how much noise.

    A smaller α_u at a client's own receiver acts as a back-off.

    Args:
        this: the round.
        transmitters: of the slot.
        noise: of the slot.
        transmissions: as realised.
        theorem: of the power control.
        gradient_step: batch size where the update is one step of per-sample-clipped gradients, else None.
        samples: (k,) n_i.
    """
    plan, policies = transmitters.plan, transmitters.policies
    own, is_public = plan.links.own, not any(policy.needs_norms for policy in policies)
    at_the_clip = transmitters.at_the_clip
    counted = transmitters.credited(at_the_clip)
    louder = noise.louder if plan.overheard is None else 1.0
    backoff = counted.backoff if is_public else over_clients(transmissions, "backoff", len(this.clients))[plan.senders]
    csi_ratio = largest_csi_ratio(own, counted, louder)
    if plan.overheard is None:
        view = noise.seen_by_receivers(received_amplitude(own, at_the_clip, plan.loudest, louder), csi_ratio)
    else:
        jams = noise.jamming is not None
        view = _observed_view(transmitters, plan.overheard, jams, csi_ratio, noise.unjammed_std)
    gain = np.array([plan.transmit[station].server_gain for station in plan.links.serving.tolist()])
    most = samples.max(initial=0) if gradient_step is None else gradient_step
    return AirRelease(
        round_index=this.index,
        clients=this.clients[plan.senders],
        weight=own.weight,
        backoff=backoff * (plan.loudest.server_gain / gain),
        effective_noise_std=noise.published_std,
        **vars(view),
        backoff_is_public=is_public,
        caveat=next(filter(None, map(caveat, policies)), None),
        theorem=theorem,
        rule="whole_update" if gradient_step is None else "gradient_step",
        batch_size=np.minimum(samples, most) if np.any(samples > most) else None,
    )


def observed_release(
    transmitters: Transmitters, release: AirRelease, overheard: Overheard, jamming: Jamming | None
) -> AirRelease:
    """The record of the same slot for an observer that hears it otherwise.

    Args:
        transmitters: of the slot.
        release: its record with an observer.
        overheard: channels of the senders to the other one.
        jamming: how the jammer jams, or None.
    """
    counted = transmitters.credited(transmitters.at_the_clip)
    csi_ratio = largest_csi_ratio(transmitters.plan.links.own, counted)
    noise_std = release.unjammed_noise_std
    return replace(release, **vars(_observed_view(transmitters, overheard, jamming is not None, csi_ratio, noise_std)))


def _observed_view(
    transmitters: Transmitters, overheard: Overheard, jams: bool, csi_ratio: NDArray[np.float64], noise_std: float
) -> View:
    # What an observer has of the clients in a joint view, in units of the receivers' own noise σ_c/α_u
    plan = transmitters.plan
    received = received_amplitude(plan.links.own, transmitters.at_the_clip, plan.loudest)
    worst = alone = worst_over_pieces(received, observed_std(transmitters, overheard))
    if jams:
        alone = worst_over_pieces(received, observed_std(transmitters, overheard, jammed=False))
    return View.of(worst, csi_ratio, alone.noise_std, noise_std)


def over_clients(records: Sequence[Any], name: str, count: int) -> NDArray[np.float64]:
    """(n,) a column of records of some of n clients; 0 for the others."""
    column = np.zeros(count)
    for record in records:
        column[record.positions] = getattr(record, name)
    return column


def _root_sum_of_squares(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.sum(values**2)))
