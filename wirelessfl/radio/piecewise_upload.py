"""Digital uploads over pieces of time: a rate, and whether the channel carries it, in each of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The part of a message up to which sums of bits over pieces may be off
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PiecewiseUpload:
    """What came of n uploads.

    Attributes:
        duration: (n,) seconds from the first symbol to the last.
        airtime: (n,) seconds of them in which something was sent.
        ended: (n,) whether the whole message was sent, however much of it was lost; else the pieces were too few.
        delivered: (n,) whether all of the message got through.
    """

    duration: NDArray[np.float64]
    airtime: NDArray[np.float64]
    ended: NDArray[np.bool_]
    delivered: NDArray[np.bool_]


def upload_over_pieces(
    bits: float,
    piece_s: NDArray[np.float64],
    rate: NDArray[np.float64],
    carried: NDArray[np.float64],
    repeats: bool,
) -> PiecewiseUpload:
    """Uploads of a message that is coded piece by piece.

    A piece whose rate exceeds what its channel carries is lost. Without repetition the message is lost with it, and
    nobody knows before its end; with repetition, what was lost is sent again in the pieces that follow.

    Args:
        bits: of each message.
        piece_s: (n,) seconds of a piece; the last one that is needed may end earlier.
        rate: (n, T) or (n, 1) bit/s at which a client sends, 0 where it is silent.
        carried: (n, T) bit/s that channels carry.
        repeats: whether lost pieces are repeated.
    """
    lost = rate > carried
    through = np.broadcast_to(rate, carried.shape) * piece_s[:, None]
    if repeats:
        through = np.where(lost, 0.0, through)
    before = np.cumsum(through, axis=1) - through
    part = np.where(through > 0, np.minimum((bits - before) / np.where(through > 0, through, 1.0), 1.0), 1.0)
    used = np.where(before < bits * (1.0 - _ROUNDING), part, 0.0)
    spent = used * piece_s[:, None]
    ended = before[:, -1] + through[:, -1] >= bits * (1.0 - _ROUNDING)
    failed = np.zeros(len(piece_s), dtype=np.bool_) if repeats else (lost & (used > 0)).any(axis=1)
    airtime = np.where(rate > 0, spent, 0.0).sum(axis=1)
    return PiecewiseUpload(spent.sum(axis=1), airtime, np.asarray(ended), np.asarray(ended & ~failed))
