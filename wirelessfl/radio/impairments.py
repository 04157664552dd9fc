"""Impairments of links beyond fading: estimation error, residual phase, timing and carrier offset."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.csi import Estimator, mean_estimate_power
from wirelessfl.radio.slot_schedule import Pilots
from wirelessfl.streams import NodeStream


def phase_errors(std_rad: float, stream: NodeStream) -> NDArray[np.complex128]:
    """Rotations e^{jφ} (n,), φ ~ N(0, std²): multiply the true channel by them, not the estimate.

    The real part then loses E cos φ = e^{−std²/2} of every update.
    """
    precondition(0 <= std_rad < np.inf, f"std_rad must be finite and at least 0, not {std_rad}")
    return np.asarray(np.exp(1j * std_rad * stream.normal()[:, 0]))


def timing_offsets(max_offset: float, stream: NodeStream) -> NDArray[np.float64]:
    """Late arrival (n,) of each client in symbols, uniform from 0 to ``max_offset`` (below 1 symbol)."""
    precondition(0 <= max_offset < 1, f"max_offset must lie in [0, 1) symbols, not {max_offset}")
    return np.asarray(max_offset * stream.uniform()[:, 0])


def carrier_offsets(std_hz: float, stream: NodeStream) -> NDArray[np.float64]:
    """Carrier frequency offsets f_i ~ N(0, std²) (n,) in hertz, each the same for the whole run."""
    return np.asarray(std_hz * stream.normal()[:, 0])


@dataclass(frozen=True, eq=False)
class LateArrival:
    """Late arrival of n clients in one slot.

    On a single carrier with rectangular pulses a part of each symbol falls into the next. With OFDM no symbol meets
    another while the offset lies within the cyclic prefix; it turns subcarrier k by e^{−j2πkΔfτ}, k from 0 at the
    subcarrier to which the phase of the estimate refers.

    Attributes:
        offset: (n,) τ in symbols, from 0 to below 1; with OFDM τΔf, in symbols without their prefix.
        subcarriers: of OFDM; None for a single carrier.
    """

    offset: NDArray[np.float64]
    subcarriers: int | None = None

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> LateArrival:
        """Delays of some of the clients."""
        return replace(self, offset=self.offset[rows])

    def rotations(self, symbols: int) -> NDArray[np.complex128]:
        """The phases (n, F) e^{−j2πkΔfτ} of the subcarriers that ``symbols`` symbols fill; (n, 1) ones without OFDM."""
        used = 1 if self.subcarriers is None else min(self.subcarriers, symbols)
        return np.asarray(np.exp(-2j * np.pi * self.offset[:, None] * np.arange(used)))


@dataclass(frozen=True)
class LinkImpairments:
    """Impairments of links beyond fading: estimation error, residual phase, timing and carrier offset.

    Attributes:
        csi_error_std: standard deviation of the estimation error relative to √β, without pilots.
        csi_estimator: "ls" or "mmse".
        pilots: what estimates are made from; None takes ``csi_error_std``.
        phase_std: radians by which a channel has turned since its estimate, standard deviation.
        max_offset: largest late arrival, as a part of a symbol; with OFDM of one without its prefix.
        subcarriers: of an OFDM waveform; None for a single carrier.
        cfo_hz: standard deviation of a node's carrier frequency offset.
    """

    csi_error_std: float = 0.0
    csi_estimator: Estimator = "ls"
    pilots: Pilots | None = None
    phase_std: float = 0.0
    max_offset: float = 0.0
    subcarriers: int | None = None
    cfo_hz: float = 0.0

    @property
    def are_none(self) -> bool:
        """Whether channels are known as they are when they are estimated, and all nodes in time."""
        errors = self.csi_error_std, self.phase_std, self.max_offset, self.cfo_hz
        return self.pilots is None and not any(errors)

    def error_std(self, path_gain: NDArray[np.float64], share: float = 1.0) -> NDArray[np.float64]:
        """(n,) the standard deviation of the estimation error relative to √β; √(N0/(E β)) of pilots of energy E.

        Args:
            path_gain: β (n,).
            share: B_i/B, the part of the band in which pilots are sent: the narrower, the longer and the more energy.
        """
        if self.pilots is None:
            return np.full(len(path_gain), self.csi_error_std)
        return np.asarray(1.0 / np.sqrt(self.pilots.symbols * (self.pilots.symbol_snr / share) * path_gain))

    def mean_estimate_power(
        self, path_gain: NDArray[np.float64], specular_power: NDArray[np.float64], share: float = 1.0
    ) -> NDArray[np.float64]:
        """(n,) E|ĥ|² of links with a path gain β and a known part of power |μ|², pilots in a part of the band."""
        return mean_estimate_power(path_gain, self.error_std(path_gain, share), self.csi_estimator, specular_power)
