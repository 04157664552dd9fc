"""Transmissions of clients over the pieces of a slot, and the worst of them for privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links, SlotLinks
from wirelessfl.radio.power_control import Transmission, TransmitPlan, credited_backoff


@dataclass(frozen=True, eq=False)
class SlotTransmission:
    """Transmissions of k clients: x_i = tx_gain_i Δ_i in the coordinates of each block and group of subcarriers.

    Attributes:
        tx_gain: α_i (k, R, F), complex; 0 where a client is silent.
        each_backoff: s_i (k, R, F), 0 where a client is silent.
    """

    tx_gain: NDArray[np.complex128]
    each_backoff: NDArray[np.float64]

    @property
    def backoff(self) -> NDArray[np.float64]:
        """(k,) the largest over the slot."""
        return np.asarray(self.each_backoff.max(axis=(1, 2)))


Transmit = Callable[[TransmitPlan, Links, NDArray[np.float64] | None], Transmission]
"""Scaling by the clients, as in `PowerControl.transmit`."""


def transmit_over_pieces(
    transmit: Transmit,
    plan: TransmitPlan,
    links: SlotLinks,
    sends: NDArray[np.bool_],
    norms: NDArray[np.float64],
) -> SlotTransmission:
    """The gains of a block of clients in all pieces.

    An update can lie in one piece alone, so that each piece has to stay inside the whole power budget. Where gains
    undo the channel, the largest back-off of a client holds in all its pieces: it then arrives equally loud in each.

    Args:
        transmit: gains of single links.
        plan: what the server announced for the rows of these links.
        links: of k clients.
        sends: (k, R, F) where each client sends; somewhere at least.
        norms: (k,) ‖Δ_i‖.
    """
    sent = transmit(plan, links.rows().take(sends.ravel()), np.repeat(norms, sends.sum(axis=(1, 2))))
    gain, backoff = np.zeros(sends.shape, dtype=np.complex128), np.zeros(sends.shape)
    gain[sends], backoff[sends] = sent.tx_gain, sent.backoff
    if plan.inverts:
        common = np.where(sends, backoff.max(axis=(1, 2), keepdims=True), 0.0)
        gain *= backoff / np.where(sends, common, 1.0)
        backoff = common
    return SlotTransmission(gain, backoff)


def credited_over_pieces(
    sent: SlotTransmission, plan: TransmitPlan, links: SlotLinks, sends: NDArray[np.bool_]
) -> SlotTransmission:
    """The same transmission with back-offs as the gains bear them out; see `credited_backoff`."""
    rows = links.rows().take(sends.ravel())
    backoff = np.zeros(sends.shape)
    backoff[sends] = credited_backoff(Transmission(sent.tx_gain[sends], sent.each_backoff[sends]), plan, rows)
    return SlotTransmission(sent.tx_gain, backoff)


def received_amplitude(
    links: SlotLinks, sent: SlotTransmission, plan: TransmitPlan, louder: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """(k, T, F) R_i: the largest norm with which an update can arrive if it lies in one block and group alone.

    In units of y/α_u, for the gains of updates at the clip; see `received_bound`.

    Args:
        links: of k clients behind the combiner.
        sent: their gains.
        plan: what the server announced.
        louder: (k, T, F) by which factor more arrives at all antennas than behind the combiner.
    """
    return np.abs(links.channel.squeeze(axis=3) * sent.tx_gain) * louder * plan.clip / plan.server_gain


@dataclass(frozen=True, eq=False)
class WorstPiece:
    """Knowledge of an adversary about k clients over the pieces of a slot.

    Attributes:
        received_bound: R_i (k,), the largest over the pieces.
        noise_std: (k,) noise under which R_i tells as much as the piece in which the client is protected least.
    """

    received_bound: NDArray[np.float64]
    noise_std: NDArray[np.float64]


def worst_over_pieces(received: NDArray[np.float64], noise_std: NDArray[np.float64]) -> WorstPiece:
    """The largest ratio of signal to noise over the pieces: an update can lie in one of them alone.

    Σ_t R_t² ‖Δ_t‖²/σ_t² is at most max_t R_t²/σ_t² for ‖Δ‖ = 1, and reaches it.

    Args:
        received: R (k, T, F).
        noise_std: σ (T, F) or (k, T, F); 0 where nothing hides it.
    """
    each = np.broadcast_to(noise_std, received.shape).reshape(len(received), -1)
    received = received.reshape(each.shape)
    largest = received.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nan_to_num(received / each, nan=0.0, posinf=np.inf).argmax(axis=1)
        # For one piece the quotient is exactly 1.
        scale = largest / np.take_along_axis(received, worst[:, None], axis=1)[:, 0]
    hides = np.take_along_axis(each, worst[:, None], axis=1)[:, 0]
    return WorstPiece(largest, hides * np.where(largest > 0, scale, 1.0))


def largest_csi_ratio(
    links: SlotLinks, sent: SlotTransmission, louder: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """(k,) |h_i/ĥ_i| in the piece in which a client arrives loudest, in proportion to its largest back-off.

    Args:
        links: of k clients behind the combiner.
        sent: their gains.
        louder: (k, T, F) by which factor more arrives at all antennas than behind the combiner.
    """
    ratio = (np.abs(links.channel) / np.abs(links.estimate)).squeeze(axis=3) * louder
    with np.errstate(divide="ignore"):
        louder = np.where(sent.each_backoff > 0, sent.backoff[:, None, None] / sent.each_backoff, 0.0)
    return np.asarray((ratio * louder).max(axis=(1, 2)))
