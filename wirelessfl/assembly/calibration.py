"""The chunk that trains fastest on this machine: measured before the first run of a kind, then remembered."""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning import ExecutionPlan
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.cohort import ClientDemand, cpu_chunks, fastest_chunk
from wirelessfl.processor import processor_name
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.state import SimulationState
from wirelessfl.version import package_version

VARIABLE = "WIRELESSFL_CACHE"


@dataclass(frozen=True)
class ChunkCache:
    """Chunks by key; whatever is damaged or cannot be reached counts as not there, and nothing here raises.

    Attributes:
        folder: where the files lie; it need not exist.
    """

    folder: Path

    def load(self, key: str, chunks: Sequence[int]) -> int | None:
        """The one of ``chunks`` that is kept under ``key``, or None."""
        try:
            chunk = json.loads(self._file(key).read_text(encoding="utf-8"))["chunk"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return chunk if type(chunk) is int and chunk in chunks else None

    def is_writable(self) -> bool:
        """Whether something could be kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                return True
        except OSError:
            return False

    def keep(self, key: str, chunk: int, chunks: Sequence[int]) -> int | None:
        """Storage of the chunk of ``chunks`` that was chosen.

        Returns:
            The chunk that is kept from now on: another where another process was first; None where it cannot be.
        """
        with suppress(OSError):
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".new")
            new = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump({"chunk": chunk}, file)
                first = self._publish(new, key, chunks)
                return chunk if first is None else first
            finally:
                new.unlink(missing_ok=True)
        return None

    def _publish(self, new: Path, key: str, chunks: Sequence[int]) -> int | None:
        # Renaming of `new`; where a sound file has the name already, that stays and its chunk is returned.
        try:
            os.link(new, self._file(key))  # unlike a replacement it fails where there is a file: the first one wins
        except OSError:  # there is one, or the file system has no links
            first = self.load(key, chunks)
            if first is not None:
                return first
            new.replace(self._file(key))
        return None

    def _file(self, key: str) -> Path:
        return self.folder / f"chunk-{key}.json"


def user_cache() -> ChunkCache | None:
    """The cache of this user: ``WIRELESSFL_CACHE``, else ``wirelessfl`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    given = os.environ.get(VARIABLE)
    if given:
        return ChunkCache(Path(given))
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # as its specification says of anything else
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            return None
    return ChunkCache(caches / "wirelessfl")


# Bytes that all local steps of a run go through: with fewer, a run ends before a calibration would
_LEAST_WORK = 2**29


def calibrate(learner: Learner, clients: int) -> ExecutionPlan:
    """The plan of a learner on a CPU, with the chunk that is fastest here.

    Nothing is measured where there is one chunk to choose or the run is short, nor where the result could not be kept:
    equal scenarios on one machine get equal plans.

    Args:
        learner: With the plan as it is without measuring.
        clients: The clients of a round.
    """
    sizes, training = learner.population.sizes, learner.training
    private = learner.private is not None
    demand = ClientDemand.of(learner.model, training, learner.population, learner.algorithm, private=private)
    chunks = cpu_chunks(demand, clients, learner.plan.threads)
    steps = max(1, int(np.median(local_steps(sizes, training.batch_size, training.epochs, training.steps))))
    if len(chunks) == 1 or demand.nbytes * clients * steps * learner.rounds < _LEAST_WORK:
        return learner.plan
    kept = user_cache()
    chunk = None if kept is None else _remembered(learner, clients, steps, chunks, kept)
    return learner.plan if chunk is None else replace(learner.plan, chunk=chunk)


def _remembered(learner: Learner, clients: int, steps: int, chunks: Sequence[int], kept: ChunkCache) -> int | None:
    circumstances = json.dumps(_circumstances(learner, clients, steps, chunks), sort_keys=True)
    key = hashlib.sha256(circumstances.encode()).hexdigest()[:32]
    known = kept.load(key, chunks)
    if known is not None:
        return known
    if not kept.is_writable():
        return None
    state = learner.initial_state(0)
    state.proxy_clip = 1.0  # a norm as good as any for a stopwatch
    by_size = np.argsort(learner.population.sizes, kind="stable")
    measure = partial(seconds_of_blocks, learner, state, by_size)
    return kept.keep(key, fastest_chunk(chunks, clients, learner.plan.threads, steps, measure), chunks)


def seconds_of_blocks(
    learner: Learner, state: SimulationState, by_size: NDArray[np.int64], chunk: int, steps: int
) -> float:
    """Seconds in which every thread trains one block, of clients of middle size.

    Uses up no randomness of the run, whose streams are functions of round and client; ``state`` is the only thing
    that it writes to.
    """
    count = min(len(by_size), chunk * learner.plan.threads)
    first = (len(by_size) - count) // 2
    there = np.sort(by_size[first : first + count])
    training = replace(learner.training, epochs=None, steps=steps)
    measured = replace(learner, training=training, plan=replace(learner.plan, chunk=chunk))
    begun = time.perf_counter()
    for _ in measured.train(state.parameters, state, there, learner.rounds):
        pass
    return time.perf_counter() - begun


def _circumstances(learner: Learner, clients: int, steps: int, chunks: Sequence[int]) -> dict[str, Any]:
    # All that a calibration depends on; not the run's seed, learning rate or noise, so that a study measures once.
    model, training, private = learner.model, learner.training, learner.private
    return {
        "wirelessfl": package_version(),
        "torch": str(torch.__version__),
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": learner.plan.threads,
        "precision": learner.plan.precision,
        "model": str(model.module),
        "parameters": {name: list(shape) for name, shape in model.shapes.items()},
        "sample": [*model.feature_shape, model.num_classes],
        "optimizer": [type(training.optimizer).__name__, training.optimizer.decay > 0],
        "batch": [training.batch_size, training.sampling],
        **({} if training.augmentation is None else {"augmentation": asdict(training.augmentation)}),
        "proximal": training.prox_mu > 0,
        "private": private and [type(part).__name__ for part in (private.gradients.clipping, private.gradients.noise)],
        "clients": clients,
        "steps": steps.bit_length(),  # to a factor of two: sizes drawn by the seed change it a little
        "chunks": list(chunks),
    }
