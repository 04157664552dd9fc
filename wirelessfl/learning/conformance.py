"""Checks of an algorithm, server optimizer, codec, selection or availability of clients: what the simulator relies on.

Call them from a test: they return nothing where all is well and raise `wirelessfl.errors.CheckFailed` with the first
broken promise.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.conformance import check_array
from wirelessfl.errors import CheckFailed, ScenarioError, require
from wirelessfl.learning.algorithms import Algorithm, ClientRows, LocalOutcome, RoundFacts, ServerState
from wirelessfl.learning.compression import Codec
from wirelessfl.learning.faults import AvailabilityModel
from wirelessfl.learning.selection import Known, Selection, SelectionContext
from wirelessfl.learning.server_optimizers import ServerOptimizer
from wirelessfl.memory import resumed_copy
from wirelessfl.streams import Streams

_ROUNDING = 1e-5


def check_algorithm(algorithm: Algorithm, dimension: int = 7, rounds: int = 3, seed: int = 0) -> None:
    """Checks shapes and types, that arguments are left as they are, and that a client depends on itself alone.

    Args:
        algorithm: the algorithm to check.
        dimension: d.
        rounds: rounds of five clients each.
        seed: seed of the updates.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(
        isinstance(algorithm, Algorithm), "lacks facts, start, first_rows, client, finish, upload, received or step"
    )
    generator = torch.Generator().manual_seed(seed)
    initial = torch.randn(dimension, generator=generator)
    server, clients = algorithm.start(initial), np.array([0, 2, 3, 7, 11])
    require(server.parameters.shape == initial.shape, f"start gives a model of shape {tuple(server.parameters.shape)}")
    rows = algorithm.first_rows(server, clients)
    lengths = {name: len(values) for name, values in rows.values.items()}
    require(set(lengths.values()) <= {len(clients)}, f"first_rows gives rows {lengths} for {len(clients)} clients")
    require(not rows.values or algorithm.facts().client_side, "keeps rows, but facts().client_side is False")
    for round_index in range(1, rounds + 1):
        updates, steps = torch.randn(5, dimension, generator=generator), np.array([1, 2, 2, 3, 5])
        of_clients = {f"rows/{name}": values for name, values in rows.values.items()}
        given = {"updates": updates, "parameters": server.parameters, **server.memory, **of_clients}
        before = {name: value.clone() for name, value in given.items()}
        gradients = torch.randn(5, dimension, generator=generator) if algorithm.facts().reads_gradients else None
        rows, sent = _trained(algorithm, server, rows, LocalOutcome(updates, steps, 0.1, gradients))
        facts = RoundFacts(round_index, 10, clients, np.full(5, 0.1), steps, 0.1, 0.5)
        between, pseudo = algorithm.received(server, sent.mean(dim=0), facts)
        same = pseudo.shape == sent.shape[1:] and _kinds(between.memory) == _kinds(server.memory)
        require(same and between.parameters is server.parameters, "received gives other shapes, or another model")
        after = algorithm.step(between, pseudo, facts)
        shape, dtype = tuple(after.parameters.shape), after.parameters.dtype
        for holds, found in (
            (shape == initial.shape, f"step gives a model of {shape}"),
            (dtype == initial.dtype, f"step gives a model in {dtype}"),
            (_kinds(after.memory) == _kinds(server.memory), _changed(after.memory, server.memory)),
            (all(map(torch.equal, given.values(), before.values())), "changes its arguments in place"),
        ):
            require(holds, found)
        server = after


def _trained(
    algorithm: Algorithm, server: ServerState, rows: ClientRows, outcome: LocalOutcome
) -> tuple[ClientRows, Tensor]:
    # Rows and uploads of clients together, compared with those of each client alone
    after, sent = _client_side(algorithm, server, rows, outcome)
    wanted = (len(rows.clients), algorithm.facts().payload, outcome.updates.shape[1])
    found = f"upload gives shape {tuple(sent.shape)} in {sent.dtype}; facts() promise {wanted} in float32"
    require(sent.shape == wanted and sent.dtype == torch.float32, found)
    for place in range(len(rows.clients)):
        one = slice(place, place + 1)
        own = ClientRows(rows.clients[one], {name: values[one] for name, values in rows.values.items()})
        gradients = None if outcome.gradients is None else outcome.gradients[one]
        alone = LocalOutcome(outcome.updates[one], outcome.steps[one], outcome.learning_rate, gradients)
        _, upload = _client_side(algorithm, server, own, alone)
        same = torch.allclose(upload[0], sent[place], rtol=_ROUNDING, atol=_ROUNDING)
        require(same, "what a client sends depends on which other clients are trained with it")
    return after, sent


def _client_side(
    algorithm: Algorithm, server: ServerState, rows: ClientRows, outcome: LocalOutcome
) -> tuple[ClientRows, Tensor]:
    # Rows and uploads (k, P, d) after a local training whose updates are moved by the clients' own corrections
    objective = algorithm.client(server, rows)
    mu = objective.prox_mu
    require(isinstance(mu, int | float) and 0 <= mu < np.inf, f"client gives prox_mu {mu!r}, not 0 or more and finite")
    if objective.correction is not None:
        wanted = tuple(outcome.updates.shape)
        require(objective.correction.shape == wanted, f"client corrects by {tuple(objective.correction.shape)}")
        outcome = replace(outcome, updates=outcome.updates - outcome.learning_rate * objective.correction)
    if not algorithm.facts().client_side:
        return rows, outcome.updates[:, None]
    after = algorithm.finish(server, rows, outcome)
    found, kept = _kinds(after.values), _kinds(rows.values)
    require(found == kept, f"finish gives rows {found}; it was given {kept}")
    return after, algorithm.upload(server, rows, after, outcome)


def _kinds(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (values.shape, values.dtype) for name, values in tensors.items()}


def _changed(found: Mapping[str, Tensor], begun: Mapping[str, Tensor]) -> str:
    begins = f"{_kinds(found)}, begun as {_kinds(begun)}"
    return f"step gives a memory {begins if found.keys() == begun.keys() else 'of other names than start'}"


def check_server_optimizer(optimizer: ServerOptimizer, dimension: int = 7, rounds: int = 4, seed: int = 0) -> None:
    """Checks shapes and types, reproducibility, and that memory is passed in and given back.

    Args:
        optimizer: the server optimizer to check.
        dimension: d.
        rounds: rounds of the trial.
        seed: seed of the updates.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(optimizer, ServerOptimizer), "lacks start or step")
    generator = torch.Generator().manual_seed(seed)
    memory: Mapping[str, Tensor] = optimizer.start(torch.randn(dimension, generator=generator))
    for _ in range(rounds):
        update = torch.randn(dimension, generator=generator)
        given = {"update": update, **memory}
        before = {name: value.clone() for name, value in given.items()}
        change, after = optimizer.step(update, memory)
        left = all(map(torch.equal, given.values(), before.values()))
        again, _ = optimizer.step(before.pop("update"), before)
        for holds, found in (
            (change.shape == update.shape, f"step gives a change of shape {tuple(change.shape)}"),
            (change.dtype == update.dtype, f"step gives a change in {change.dtype}"),
            (_kinds(after) == _kinds(memory), _changed(after, memory)),
            (left, "changes its arguments in place"),
            (torch.equal(change, again), "the same arguments give another change: is there hidden state?"),
        ):
            require(holds, found)
        memory = after


def check_selection(rule: Selection, registered: int = 40, count: int = 7, rounds: int = 20, seed: int = 0) -> None:
    """Checks that at most ``count`` clients are selected, ascending and each once, again and again the same ones.

    Nothing is handed to the rule but what its ``facts`` name: clients never heard of have NaN there.

    Args:
        rule: the rule to check.
        registered: K.
        count: the most clients of a round.
        rounds: rounds of the trial.
        seed: seed of what is known of the clients.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(rule, Selection), "lacks facts or select")
    generator = np.random.default_rng(seed)
    for round_index in range(1, rounds + 1):
        heard = generator.random(registered) < (round_index - 1) / rounds
        columns: dict[Known, NDArray[np.float64]] = {
            "samples": np.floor(generator.uniform(1, 100, registered)),
            "gains": np.where(heard, generator.exponential(size=registered), np.nan),
            "relative_gains": np.where(heard, generator.exponential(size=registered), np.nan),
            "fresh_gains": generator.exponential(size=registered),
            "fresh_relative_gains": generator.exponential(size=registered),
            "speed": generator.uniform(0.1, 1.0, registered),
            "losses": np.where(heard, generator.gamma(2.0, size=registered), np.nan),
            "age": np.where(heard, np.floor(generator.uniform(1, round_index + 1, registered)), np.nan),
        }
        sources = {name: partial(np.copy, columns[name]) for name in rule.facts().reads}
        context = SelectionContext(registered, round_index, Streams(seed), sources)
        try:
            chosen = rule.select(context, count)
        except ScenarioError as error:
            raise CheckFailed(f"not conforming: {error}") from None
        require(isinstance(chosen, np.ndarray) and chosen.dtype == np.int64, "select gives no array of int64 numbers")
        inside = len(chosen) <= count and bool(np.all((chosen >= 0) & (chosen < registered)))
        again = np.array_equal(chosen, rule.select(context, count))
        for holds, found in (
            (inside, f"select gives {chosen}; allowed are at most {count} numbers from 0 to {registered - 1}"),
            (bool(np.all(np.diff(chosen) > 0)), f"select gives {chosen}, which does not ascend"),
            (again, "the same context gives other clients; all randomness must come from the context"),
        ):
            require(holds, found)


def check_codec(codec: Codec, dimension: int = 37, clients: int = 5, seed: int = 0) -> None:
    """Checks that payloads have the bits that were said, are decoded to vectors, and depend on their client alone.

    Args:
        codec: the codec to check.
        dimension: d.
        clients: k.
        seed: seed of the vectors.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(codec, Codec), "lacks bits, encode or decode")
    rows = np.random.default_rng(seed).standard_normal((clients, dimension)).astype(np.float32)
    rows[1] = 0.0

    def carried(some: NDArray[np.float32], first: int) -> NDArray[np.float32]:
        generators = [np.random.default_rng(first + row) for row in range(len(some))]
        given = some.copy()
        payload = codec.encode(given, generators)
        require(np.array_equal(given, some), "encode changes its arguments in place")
        said = codec.bits(dimension)
        require(payload.bits == said > 0, f"encode makes {payload.bits} bits; bits({dimension}) says {said}")
        decoded = codec.decode(payload)
        require(isinstance(decoded, np.ndarray), f"decode gives a {type(decoded).__name__}")
        require(decoded.dtype.kind == "f", f"decode gives {decoded.dtype}, not floating-point numbers")
        require(np.shape(decoded) == some.shape, f"decode gives shape {np.shape(decoded)} for {some.shape}")
        return decoded

    whole = carried(rows, 0)
    require(bool(np.all(np.isfinite(whole))), "decode gives numbers that are not finite")
    carried(-2 * rows, clients)  # as another round would; what it leaves behind must not show
    require(np.array_equal(whole, carried(rows, 0)), "the same generators give other numbers: is there hidden state?")
    for row in range(clients):
        same = np.allclose(carried(rows[row : row + 1], row)[0], whole[row], rtol=_ROUNDING, atol=_ROUNDING)
        require(same, "what is decoded for a client depends on which others are encoded with it")


def check_availability(model: AvailabilityModel, clients: int = 200, rounds: int = 5, seed: int = 0) -> None:
    """Checks shape and type, reproducibility, independence of who else is selected, and the state of a checkpoint.

    Args:
        model: the model to check, as before the first round; it is left as it is.
        clients: registered clients of the trial.
        rounds: rounds of the trial, from 1.
        seed: seed of the streams.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(model, AvailabilityModel), "has no method available(clients, round_index, streams)")
    everyone = np.arange(clients, dtype=np.int64)
    some, streams = everyone[1::3], Streams(seed)
    whole, again, part, resumed = (deepcopy(model) for _ in range(4))
    for round_index in range(1, rounds + 1):
        there = whole.available(everyone, round_index, streams)
        check_array("available", there, (clients,), np.bool_)
        for model_of, asked, expected, found in (
            (again, everyone, there, "the same streams give another answer; all randomness must come from the streams"),
            (part, some, there[some], "a client's presence depends on which other clients are selected"),
            (resumed, everyone, there, "a model that goes on from its state gives another answer"),
        ):
            require(np.array_equal(expected, model_of.available(asked, round_index, Streams(seed))), found)
        resumed = resumed_copy(resumed, model)
