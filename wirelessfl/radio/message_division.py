"""Division of digital messages that outlast the coherence time into pieces."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.piecewise_upload import PiecewiseUpload, upload_over_pieces
from wirelessfl.radio.slot_schedule import Refresh

PieceRates = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Bit/s in pieces that begin (n, T) seconds after their messages: sent at, (n, T) or (n, 1), and carried (n, T)."""


@dataclass(frozen=True)
class MessageDivision:
    """Division of messages into pieces.

    Attributes:
        doppler_hz: the largest Doppler shift of any client; 0 where channels do not change within a message.
        max_pieces: pieces after which a message that is not through is given up.
        refresh: whether the rate follows the channel of the message's beginning, or of each piece, before which the
            server then also asks for what was lost.
    """

    doppler_hz: float = 0.0
    max_pieces: int = 256
    refresh: Refresh = "slot"

    def uploads(
        self,
        bits: float,
        seconds_per_bit: NDArray[np.float64],
        longest_s: NDArray[np.float64],
        rates: PieceRates,
        repeats: bool,
    ) -> PiecewiseUpload:
        """The uploads of n messages.

        Args:
            bits: of each message.
            seconds_per_bit: (n,) at the rate of its beginning.
            longest_s: (n,) seconds that a piece may last.
            rates: of the pieces.
            repeats: whether what is lost in a piece is sent again.
        """
        needed = np.ceil(bits * seconds_per_bit / longest_s * (1.0 - 1e-12))
        # At one rate and without repetition it is known beforehand how many pieces there are: they are of equal length.
        even = np.logical_and(not repeats, needed <= self.max_pieces)
        piece_s = np.where(even, bits * seconds_per_bit / needed, longest_s)
        pieces = int(min(needed.max(), self.max_pieces))
        while True:
            uploads = upload_over_pieces(bits, piece_s, *rates(piece_s[:, None] * np.arange(float(pieces))), repeats)
            if not repeats or uploads.ended.all() or pieces == self.max_pieces:
                return uploads
            pieces = min(2 * pieces, self.max_pieces)
