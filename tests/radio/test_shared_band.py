"""Uploads that share a band, against closed forms and a bit-by-bit event loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from wirelessfl.radio.shared_band import RatesAtShare, shared_band_ends

BAND = 1e6


def rates_of(snr: list[float]) -> RatesAtShare:
    def rates(share: float) -> NDArray[np.float64]:
        return np.array([share * BAND * math.log2(1 + one / share) for one in snr])

    return rates


def event_loop(begins: list[float], bits: float, snr: list[float]) -> list[float]:
    """The same by single clients: at each event the next one is looked for anew, from what each has left."""
    left, ends, now = dict.fromkeys(range(len(begins)), bits), dict[int, float](), 0.0
    while left:
        sending = [client for client in left if begins[client] <= now]
        rate = {client: BAND / len(sending) * math.log2(1 + snr[client] * len(sending)) for client in sending}
        candidates = [begin for begin in begins if begin > now]
        candidates += [now + left[client] / rate[client] for client in sending]
        then = min(candidates)
        for client in sending:
            done = now + left[client] / rate[client]
            left[client] -= rate[client] * (then - now)
            if done <= then * (1 + 1e-15):
                ends[client] = then
                del left[client]
        now = then
    return [ends[client] for client in range(len(begins))]


def test_two_uploads_by_hand() -> None:
    slow, fast = 1.0, 15.0
    half = [BAND / 2 * math.log2(1 + 2 * snr) for snr in (slow, fast)]
    first = 1e6 / half[1]
    second = first + (1e6 - half[0] * first) / (BAND * math.log2(1 + slow))
    np.testing.assert_allclose(shared_band_ends(np.zeros(2), 1e6, rates_of([slow, fast])), [second, first], rtol=1e-14)
    # One after the other each has the whole band
    alone = 1e6 / (BAND * math.log2(1 + slow))
    assert shared_band_ends(np.array([0.0, 5.0]), 1e6, rates_of([slow, slow])).tolist() == [alone, 5.0 + alone]


@pytest.mark.parametrize("seed", range(20))
def test_many_uploads_end_as_in_an_event_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 25))
    begins = np.round(rng.exponential(rng.choice([0.01, 1.0, 10.0]), count), rng.integers(1, 4))
    snr = rng.exponential(10.0, count).tolist()
    ends = shared_band_ends(begins, 1e6, rates_of(snr))
    np.testing.assert_allclose(ends, event_loop(begins.tolist(), 1e6, snr), rtol=1e-9)
    fixed = begins + 1e6 / rates_of(snr)(1 / count)
    assert np.all(ends <= fixed * (1 + 1e-12)) and np.all(ends > begins)


def test_every_upload_gets_its_bits() -> None:
    begins, snr, bits = np.array([0.0, 0.3, 0.3, 2.0, 40.0]), [0.5, 30.0, 2.0, 8.0, 1.0], 7e5
    ends, step = shared_band_ends(begins, bits, rates_of(snr)), 1e-4
    received = np.zeros(5)
    for now in np.arange(0, ends.max() + step, step) + step / 2:
        sending = (begins <= now) & (now < ends)
        if sending.any():
            received += np.where(sending, rates_of(snr)(1 / sending.sum()), 0.0) * step
    np.testing.assert_allclose(received, bits, rtol=1e-3)


def test_nothing_is_sent_at_no_rate() -> None:
    with pytest.raises(ValueError, match="positive"):
        shared_band_ends(np.zeros(2), 1.0, lambda share: np.zeros(2))
    assert shared_band_ends(np.zeros(0), 1.0, lambda share: np.zeros(0)).tolist() == []
