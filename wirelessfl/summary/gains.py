"""Channel gains of a run for pictures: magnitudes, or decibels where there is a path loss."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.trace import GAIN_AXES, JAMMER_AXIS, AnyRoot, at_slot_start


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of a run at the beginning of each slot, NaN where there is none.

    Attributes:
        clients: (m, n) by round and slot.
        jammer: (m,) by round.
    """

    clients: NDArray[np.float64]
    jammer: NDArray[np.float64]


def in_decibels(trace: AnyRoot) -> bool:
    """Whether gains are shown in decibels: with a path loss they lie decades apart, and far below 1."""
    beta = trace["path_gain"].values
    return bool(np.any(np.isfinite(beta) & (beta != 1.0)))


def magnitudes(trace: AnyRoot) -> Gains:
    """|h| of clients and jammer, or |h|² in decibels with a path loss, which the recorded gains include."""
    return Gains(
        _shown(trace, "channel", in_decibels(trace)),
        _shown(trace, "jammer_channel", in_decibels(trace)),
    )


def gain_label(decibels: bool) -> str:
    """Label of an axis of gains."""
    return "gain |h|² (dB)" if decibels else "channel gain |h|"


def _shown(trace: AnyRoot, name: str, decibels: bool) -> NDArray[np.float64]:
    each = [trace[f"{name}_{part}"] for part in ("re", "im")]
    if JAMMER_AXIS in each[0].dims:  # of one antenna that is heard as loudly
        starts = [
            np.asarray(part[tuple(0 if axis in GAIN_AXES else slice(None) for axis in part.dims)]) for part in each
        ]
        found = np.asarray(np.sqrt((starts[0] ** 2 + starts[1] ** 2).mean(axis=-1)))
    else:
        found = np.asarray(np.hypot(*(at_slot_start(part) for part in each)))
    if not decibels:
        return found
    return np.asarray(20 * np.log10(np.where(found > 0, found, np.nan)))
