"""The noise of a scenario's own mechanisms, recorded without any canary for the tests of ``audit_noise``."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.analysis.audit.canaries import Heard, Listener
from wirelessfl.analysis.audit.clients import SMALLEST_SINGLE, CanaryClient
from wirelessfl.analysis.audit.games import SlotGame
from wirelessfl.analysis.audit.noise import NoiseRecord, Values
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import TransformState
from wirelessfl.privacy import DpSgdRelease, Release, ZcdpRelease, haar, haar_weights, padded_length
from wirelessfl.streams import Streams

# Numbers in a record.
_ELEMENTS = 2**23
# Fewest and most events in a record.
_EVENTS = (48, 768)
# Stretches of coordinates that are kept of a long vector; an odd number, so that tiles of a vector overlap them.
_RUNS = 17
LONGEST = 2**17
"""Coordinates of an event that are kept."""
# Seeds, clients, and rounds (as far as there are so many) in which local noise is recorded, at least.
_SEEDS, _CLIENTS, _ROUNDS = 2, 3, 8
# Seeds under which the noise of slots is recorded; the fewest where there are many rounds.
_SLOT_SEEDS = (4, 40)


def local_noise(client: CanaryClient, releases: Mapping[int, Release]) -> NoiseRecord:
    """The noise on the sums of clipped gradients of several clients, steps, rounds and seeds.

    Args:
        client: the audited client; others train like it.
        releases: the record of its local noise in each round.
    """
    kept = kept_coordinates(client.dimension)
    most = _event_count(len(kept))
    in_a_round, at_once = client.num_steps // len(client.rounds), _SEEDS * _CLIENTS
    steps = max(1, min(in_a_round, most // (at_once * min(len(client.rounds), _ROUNDS))))
    rounds, rows = spread(client.rounds, max(2, most // (at_once * steps))), np.arange(_CLIENTS, dtype=np.int64)
    found, events, beyond = list[Values](), list[tuple[int, ...]](), 0
    for seed in range(_SEEDS):
        seeded = replace(client, streams=Streams(client.streams.torch_seed("noise", 0, seed)))
        memory: TransformState = {}
        for round_index in rounds:
            listener = Listener(client.transforms[round_index], lambda total: total)
            seeded.train(round_index, rows, seeded.batches(round_index, rows).beginning(steps), 0, memory, listener)
            for step, heard in enumerate(listener.steps, 1):
                std, values = _recorded_std(releases[round_index], heard), heard.reading
                held = (std > SMALLEST_SINGLE * heard.divisor) & np.isfinite(values).all(axis=1)
                white = haar_whitened(values[held]) if client.haar_noise else values[held]
                found.append(white[:, kept[kept < white.shape[1]]] / std[held, None])
                events += [(seed, round_index, step, row) for row in rows[held].tolist()]
                beyond += int(np.count_nonzero(~held))
    left_out = _left_out(len(rounds), len(client.rounds), steps, in_a_round, beyond)
    labels = _labels(("seed", "round", "step", "client"), events)
    return NoiseRecord("of the clients' local steps", np.concatenate(found), labels, gaussian=True, left_out=left_out)


def _labels(names: tuple[str, ...], events: list[tuple[int, ...]]) -> dict[str, NDArray[np.int64]]:
    return dict(zip(names, np.array(events, dtype=np.int64).reshape(-1, len(names)).T, strict=True))


def _recorded_std(release: Release, heard: Heard) -> Values:
    # (k,) the standard deviation on the sum that the ledger's record stands for.
    match release:
        case DpSgdRelease():
            return release.noise_multiplier * heard.clip_norm
        case ZcdpRelease():
            return release.noise_std * heard.divisor
        case _:
            raise InfeasibleError(
                f"this scenario cannot be audited: the audit cannot read local noise from a {type(release).__name__}"
            )


def slot_noise(game: SlotGame, haar_noise: bool, exact: bool) -> NoiseRecord:
    """The noise of several slots and seeds, of the receivers or of the server.

    Args:
        game: the game on these slots.
        haar_noise: whether the noise is on Haar coefficients.
        exact: whether the record names the exact size of the noise, and no bound on it.
    """
    rounds = game.slots.rounds
    alike = _silent_slot(game, rounds[0], 0, haar_noise)[1]
    kept = kept_coordinates(alike.shape[1])
    most = max(2, _event_count(len(kept)) // len(alike))
    seeds = int(np.clip(most // len(rounds), *_SLOT_SEEDS))
    chosen = spread(rounds, max(2, most // seeds))
    # Of many antennas a part of the coordinates, so that the record stays as small as that of one
    kept = kept_coordinates(alike.shape[1], min(LONGEST, _ELEMENTS // (seeds * len(chosen) * len(alike))))
    found, events = list[Values](), list[tuple[int, ...]]()
    for seed in range(seeds):
        for round_index in chosen:
            senders, readings = _silent_slot(game, round_index, seed, haar_noise)
            found.append(readings[:, kept])
            events += [(seed, round_index, senders, receiver) for receiver in range(len(readings))]
    source, names = "of the server" if exact else "of the channel", ("seed", "round", "senders", "receiver")
    left_out = _left_out(len(chosen), len(rounds))
    return NoiseRecord(source, np.concatenate(found), _labels(names, events), gaussian=exact, left_out=left_out)


def _left_out(recorded: int, rounds: int, steps: int = 1, in_a_round: int = 1, beyond: int = 0) -> str:
    # What of so many rounds, and steps in each, is not recorded, and events whose noise no number of 32 bits holds.
    parts = [f"{recorded} of {rounds} rounds"] if recorded < rounds else []
    parts += [f"{steps} of the {in_a_round} steps of a round"] if steps < in_a_round else []
    words = [f"in every event: {' and '.join(parts)} are recorded"] if parts else []
    words += [f"in {beyond} events, where it is beyond the range of numbers of 32 bits"] if beyond else []
    return "; ".join(words)


def _silent_slot(game: SlotGame, round_index: int, seed: int, haar_noise: bool) -> tuple[int, Values]:
    # How many clients attend a slot in which all send zeros, and what receivers (S, c) read of it, whitened.
    #
    # Where several slots may take place in a round, seeds take them in turn.
    streams = Streams(game.streams.torch_seed("noise", 0, seed))
    attended = game.slots.attended(round_index, streams)
    slot = attended[seed % len(attended)]
    readings = game.hear(streams, slot, None)
    return len(slot.plan.senders), haar_whitened(readings) if haar_noise else readings


def _event_count(dimension: int) -> int:
    # Events that are recorded of so many coordinates each.
    return int(np.clip(_ELEMENTS // max(dimension, 1), *_EVENTS))


def kept_coordinates(dimension: int, most: int = LONGEST) -> NDArray[np.int64]:
    """Which of d coordinates are recorded: all, or stretches from all over the vector, at most so many together."""
    if dimension <= most:
        return np.arange(dimension, dtype=np.int64)
    length = max(1, most // _RUNS)
    first = np.linspace(0, dimension - length, _RUNS).astype(np.int64)
    return np.unique(first[:, None] + np.arange(length))


def spread(rounds: list[int], most: int) -> list[int]:
    """At most so many of the rounds: the first ones in a row, and the last ones."""
    if len(rounds) <= most:
        return rounds
    last = most // 2
    return rounds[: most - last] + rounds[len(rounds) - last :]


def haar_whitened(values: Values) -> Values:
    """(k, c) W times those Haar coefficients that vectors (k, d), cut from m >= d elements, still show.

    Noise of N(0, (σ/W)²) on the coefficients of all m elements becomes white, of standard deviation σ.
    """
    dimension = values.shape[1]
    length = padded_length(dimension)
    weights = haar_weights(length)
    padded = np.zeros((len(values), length))
    padded[:, :dimension] = values
    place = np.arange(length)
    span = np.where(place > 0, weights, length)
    # Number i of the details that span 2^l elements each covers those from i 2^l on.
    first = np.where(place > 0, (place - length / span) * span, 0)
    return np.asarray((haar(padded) * weights)[:, (first + span <= dimension)])
