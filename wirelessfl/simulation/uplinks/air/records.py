"""The noise of a slot over the air, as theorems have it and as the ledger counts it, and the records of the slot."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy import AirRelease, AirTheorem
from wirelessfl.radio import (
    Jamming,
    LateArrival,
    Overheard,
    WorstPiece,
    accounted_noise_std,
    effective_noise_std,
    largest_csi_ratio,
    received_amplitude,
    whitened_amplitude,
    worst_over_pieces,
)
from wirelessfl.simulation.radio_records import SlotRecord, TransmissionRecord
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.air.arrivals import Received
from wirelessfl.simulation.uplinks.air.observed import observed_std
from wirelessfl.simulation.uplinks.air.plan import AirPlan, caveat
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters


@dataclass(frozen=True, eq=False)
class SlotNoise:
    """Noise that hides the signals of a slot of T blocks and F groups of subcarriers, in units of y at the largest α_u.

    Attributes:
        plan: of the slot.
        antenna_noise_std: σ_c at each antenna.
        jamming: how the jammer jams, or None.
        late: how late the senders arrive, or None.
        num_symbols: channel uses of the slot.
    """

    plan: AirPlan
    antenna_noise_std: float
    jamming: Jamming | None
    late: LateArrival | None
    num_symbols: int

    @cached_property
    def unjammed_std(self) -> float:
        """σ_c/α_u, the least over receivers, blocks and subcarriers."""
        return float(self.plan.noise_std.min()) / self.plan.loudest.server_gain

    @cached_property
    def published_std(self) -> float:
        """σ_m, the least over the slot."""
        jammer = None if self.plan.jammer_behind is None else self.plan.jammer_behind.equivalent
        weakest = 0j if jammer is None else complex(jammer.channel.flat[np.abs(jammer.channel).argmin()])
        noise_std = float(self.plan.noise_std.min())
        return effective_noise_std(self.plan.jammer_gain, weakest, self.plan.loudest.server_gain, noise_std)

    def counted_std(self, later: int = 0) -> NDArray[np.float64]:
        """(T, F) noise that the adversary cannot remove, against the client that it protects least.

        Args:
            later: how many blocks after its own the signal of each block is heard, in the last one at most.
        """
        plan, own = self.plan, self.plan.links.own
        if plan.jammer_behind is None or self.jamming is None:
            return np.full(own.channel.shape[1:3], self.unjammed_std)
        under = np.minimum(np.arange(own.pieces) + later, own.pieces - 1)
        jammer = plan.jammer_behind.equivalent
        by_client = accounted_noise_std(
            plan.jammer_gain,
            jammer.channel[under, ..., 0],
            plan.loudest.server_gain,
            float(plan.noise_std.min()),
            self.jamming.noise,
            jammer.phase_error[under, ..., 0] - self._phase_errors(),
        )
        return np.asarray(by_client.min(axis=(0, 3)))

    def hiding_std(self) -> NDArray[np.float64]:
        """(T, F) noise that hides the signal of each block and group of subcarriers.

        A late single carrier is heard in the next block as well, where the jammer may arrive with less.
        """
        own = self.counted_std()
        if self.late is None or self.late.subcarriers is not None:
            return own
        return np.minimum(own, self.counted_std(later=1))

    @cached_property
    def louder(self) -> NDArray[np.float64] | float:
        """(k, T, F) ‖h‖/|fᴴh|: by how much louder a client arrives at all antennas than the server reads it; or 1."""
        if self.plan.heard.shape[4] == 1:
            return 1.0
        return np.asarray(np.linalg.norm(self._everywhere, axis=3) / self._read)

    def visible_std(self) -> NDArray[np.float64]:
        """(k, T, F) the noise under which an adversary's best combiner hears a client.

        The adversary has all antennas of all receivers: it knows what arrives at them with the signal-to-noise ratio
        behind a whitening filter. Beside the noise of several receivers with one antenna each stands what a client's
        own one reads, beside that of arrays what arrives at all antennas.
        """
        _, receivers, _, _, antennas = self.plan.heard.shape
        if receivers == antennas == 1:
            return np.broadcast_to(self.hiding_std(), self._read.shape)
        if antennas == 1:
            return np.asarray(self.hiding_std() * self._read / np.linalg.norm(self._everywhere, axis=3))
        amplitude = np.zeros(self._read.shape)
        for jamming in self._received_jamming():
            amplitude = np.maximum(amplitude, whitened_amplitude(self._everywhere, self.antenna_noise_std, jamming))
        return np.asarray(self._read * self.louder / amplitude / self.plan.loudest.server_gain)

    @cached_property
    def _read(self) -> NDArray[np.float64]:
        # (k, T, F) |fᴴh| of each client's own receiver
        return np.abs(self.plan.links.own.channel.squeeze(axis=3))

    @cached_property
    def _everywhere(self) -> NDArray[np.complex128]:
        # (k, T, F, C A) channels to all antennas of all receivers
        heard = self.plan.heard.transpose(0, 2, 3, 1, 4)
        return heard.reshape(*heard.shape[:3], -1)

    def _received_jamming(self) -> Iterator[NDArray[np.complex128] | None]:
        # (T, F, A, N) jamming under which each block is heard, and of late arrival on a single carrier that of the next
        if self.plan.jammer is None or self.jamming is None:
            yield None
            return
        received = self.plan.jammer_gain * self.plan.jammer.parts
        yield received
        if self.late is not None and self.late.subcarriers is None:
            yield np.concatenate([received[1:], received[-1:]])

    def _phase_errors(self) -> NDArray[np.float64]:
        # (k, T, F, S) radians off the real axis at which signals arrive, on the S subcarriers that timing turns
        own, late = self.plan.links.own, self.late
        mismatch = own.channel / own.estimate
        return np.angle(mismatch if late is None else mismatch * late.rotations(self.num_symbols)[:, None, None, :])


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
    received = received_amplitude(own, at_the_clip, plan.loudest, louder)
    backoff = counted.backoff if is_public else over_clients(transmissions, "backoff", len(this.clients))[plan.senders]
    if plan.overheard is None:
        worst = worst_over_pieces(received, noise.visible_std())
        unjammed = noise.antenna_noise_std / plan.loudest.server_gain if plan.heard.shape[4] > 1 else noise.unjammed_std
    else:
        worst, unjammed = _observed_worst(transmitters, received, plan.overheard, noise.jamming is not None)
    gain = np.array([plan.transmit[station].server_gain for station in plan.links.serving.tolist()])
    most = samples.max(initial=0) if gradient_step is None else gradient_step
    return AirRelease(
        round_index=this.index,
        clients=this.clients[plan.senders],
        weight=own.weight,
        backoff=backoff * (plan.loudest.server_gain / gain),
        received_bound=worst.received_bound,
        effective_noise_std=noise.published_std,
        accounted_noise_std=worst.noise_std,
        unjammed_noise_std=float(worst.noise_std.min()) if noise.jamming is None else unjammed,
        csi_ratio=largest_csi_ratio(own, counted, louder),
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
    received = received_amplitude(transmitters.plan.links.own, transmitters.at_the_clip, transmitters.plan.loudest, 1.0)
    worst, unjammed = _observed_worst(transmitters, received, overheard, jamming is not None)
    return replace(
        release,
        received_bound=worst.received_bound,
        accounted_noise_std=worst.noise_std,
        unjammed_noise_std=unjammed,
    )


def _observed_worst(
    transmitters: Transmitters, received: NDArray[np.float64], overheard: Overheard, jams: bool
) -> tuple[WorstPiece, float]:
    # The clients' worst pieces in a joint view, and the least noise of all against one who knows the jamming
    worst = alone = worst_over_pieces(received, observed_std(transmitters, overheard))
    if jams:
        alone = worst_over_pieces(received, observed_std(transmitters, overheard, jammed=False))
    return worst, float(alone.noise_std.min())


def over_clients(records: Sequence[Any], name: str, count: int) -> NDArray[np.float64]:
    """(n,) a column of records of some of n clients; 0 for the others."""
    column = np.zeros(count)
    for record in records:
        column[record.positions] = getattr(record, name)
    return column


def _root_sum_of_squares(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.sum(values**2)))
