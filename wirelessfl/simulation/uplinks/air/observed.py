"""The joint view of an observer: the receivers' readings, which the released models tell, and its own antennas."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Overheard, joint_amplitude
from wirelessfl.simulation.uplinks.air.plan import AirPlan
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters


def observed_std(transmitters: Transmitters, overheard: Overheard, jammed: bool = True) -> NDArray[np.float64]:
    """(k, T, F) the noise under which an observer hears each of k senders, beside what receivers read of it.

    Args:
        transmitters: of the slot; with a jammer of one receiver.
        overheard: channels of the senders to the observer.
        jammed: whether jamming hides anything; not from one who knows it.
    """
    plan = transmitters.plan
    read = plan.links.own.channel.squeeze(axis=3)
    stations = list(plan.transmit)
    by_station = plan.links.channel[:, stations].squeeze(axis=4)
    gain = transmitters.at_the_clip.tx_gain
    phase = np.divide(gain, np.abs(gain), out=np.ones_like(gain), where=gain != 0)
    signal = _readings(plan, by_station * phase[:, None], overheard.channel * phase[..., None], overheard.noise_std)
    jamming = None
    if jammed and plan.jammer_gain > 0 and plan.jammer_behind is not None and overheard.jammer is not None:
        behind = plan.jammer_gain * plan.jammer_behind.parts.squeeze(axis=2)  # (T, F, N)
        arriving = (plan.jammer_gain * overheard.jammer).transpose(3, 0, 1, 2)
        each = _readings(plan, np.moveaxis(behind, -1, 0)[:, None], arriving, overheard.noise_std)
        jamming = np.moveaxis(each, 0, -1)
    amplitude = joint_amplitude(signal, jamming, len(stations), transmitters.iq_packing)
    return np.asarray(np.abs(read) / amplitude / plan.loudest.server_gain)


def _readings(
    plan: AirPlan, behind: NDArray[np.complex128], heard: NDArray[np.complex128], noise_std: float
) -> NDArray[np.complex128]:
    # (n, T, F, S + A) what arrives behind the combiners of the S receivers with senders (n, S, T, F) and at the
    # observer (n, T, F, A), each over its noise
    noise = plan.noise_std[list(plan.transmit)]
    server_noise = np.repeat(noise, heard.shape[1] // noise.shape[1], axis=1)
    return np.concatenate([np.moveaxis(behind / server_noise, 1, -1), heard / noise_std], axis=-1)
