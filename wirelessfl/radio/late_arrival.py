"""Late arrival over the air: what an offset in time does to a single carrier, and to the subcarriers of OFDM."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LateArrival:
    """How late n clients arrive in one slot.

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
