"""Number of clients trained together: as memory allows, and the fastest of that where it was measured.

Large blocks spend less on dispatch, small ones stay in a cache; where the two meet differs from machine to machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from wirelessfl.learning.algorithms.base import Algorithm
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.client_side import Footprint
from wirelessfl.learning.cohort.looped import trains_client_by_client
from wirelessfl.learning.cohort.stacked import ActivationSpace, compile_program
from wirelessfl.learning.cohort.training import LocalTraining
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.population import Population

_ALL_BLOCKS = 128 * 2**20  # bytes of all threads; measured: a block of 100 MiB gains nothing over one of 50
_CEILING = 32 * 2**20  # of a block, where there are so many threads that less would be left
_SHARED_BLOCKS = 512 * 2**20  # of all threads, where clients have large weights in common
_SHARED_ROWS = 100  # of a product with such weights: a row takes half the time that it takes with twenty
_ALIKE = 2  # times as many samples as most clients have, at most: the largest of a block decides what all take
_SMALLEST_BLOCK = 4 * 2**20  # one that the caches of a core hold: smaller ones only cost dispatch
_CUDA_RESERVED = 2 * 2**30  # bytes of a GPU for its libraries, their workspaces and pieces of noise; not measured
_CUDA_SHARE = 0.9  # of what is left: an allocator cannot fill every gap; not measured
_FINER = (1, 2, 3, 4, 6, 8)
# Of a block in a local step. W1 then has four, which take 6 to 13 % more processor time than one; thirteen took 1.9
# times as much. Of a GPU not measured.
_STEP_OPERATIONS = {"cpu": 250_000_000, "cuda": 25_000_000_000}
_FEWEST_SEPARATE, _MOST_SEPARATE = 4, 16

_ORDER_BYTES = 80  # of a sample: keys, permutation, batches and rows are 8 bytes each
_MADE_BYTES = 12  # of a number of a sample: kept in float32, and labelled in float64

_PASS_SECONDS = 0.5
_REPEATS = 3
_HOPELESS = 1.3  # times the fastest: not measured again
_SECONDS = 1.0  # once so many are spent, what is known must do
_CLEARLY = 0.9  # of the seconds of the first candidate: less than this is not the noise of a clock

# From chunk and local steps to the seconds in which every thread trains one block of so many clients
Measure = Callable[[int, int], float]


@dataclass(frozen=True)
class ClientDemand:
    """What a client asks of the block that it is trained in.

    Attributes:
        nbytes: About how much memory it takes there.
        together: Clients of a block, this one included, that are enough for products with large weights that all of
            them have in common: those of layers in activation space. Without any, or where some clients have many more
            samples than others, 1.
    """

    nbytes: int
    together: int = 1

    @classmethod
    def of(
        cls,
        model: FlatModel,
        training: LocalTraining,
        population: Population,
        algorithm: Algorithm,
        *,
        private: bool = False,
    ) -> "ClientDemand":
        """The demand of a client with as many samples as the larger ones have.

        Its memory is that of parameters, accumulated gradient, gradient or update, the optimizer's state, what the
        layers make of one batch and the correction of the algorithm, or after the training its rows and uploads,
        whichever is more; the order of the client's samples, and the samples themselves where they are made for the
        block. ``private`` says whether gradients are clipped sample by sample.
        """
        own = Footprint.of(algorithm, model.dimension)
        correction = own.objective.correction
        samples = _samples(population)
        batch, steps, space = _activation_space(model, training, samples)
        if private or correction is not None:
            space = None
        state = sum(rows.numel() for rows in training.optimizer.start(torch.zeros(1, 1)).values())
        floats = state * model.dimension + training.batch_size * _floats_per_sample(model)
        floats += 3 * model.dimension if space is None else space.numbers(model.dimension, batch, steps)
        sending = 4 * model.dimension + own.finishing
        made = 0 if population.lasting_bytes else _MADE_BYTES * math.prod(model.feature_shape)
        held = max(4 * floats + (0 if correction is None else correction.nbytes), sending)
        alone = space is None or population.sizes.max() > _ALIKE * samples
        together = 1 if alone else -(-_SHARED_ROWS // max(1, batch))
        return cls(held + samples * (made + _ORDER_BYTES), together)


def cpu_chunks(demand: ClientDemand, clients: int, threads: int) -> tuple[int, ...]:
    """Values of ``ExecutionPlan.chunk`` to choose from on a CPU, the largest first, which is a good one unmeasured.

    All threads compute equally many blocks of equal sizes, as the round ends with the last of them: one, or as many
    as memory asks for, and twice, three times... as many while blocks do not get too small to gain anything.

    Args:
        demand: Of a client; a block of clients that are better trained together may be larger than others.
        clients: The clients of a round.
        threads: Worker threads.
    """
    of_any = max(_CEILING, _ALL_BLOCKS // threads) // demand.nbytes
    of_shared = min(demand.together, _SHARED_BLOCKS // threads // demand.nbytes)
    largest = max(1, of_any, of_shared)
    turns = max(1, -(-clients // (largest * threads)))
    chunks = [max(1, -(-clients // (finer * turns * threads))) for finer in _FINER]
    return tuple(
        dict.fromkeys(chunks[:1] + [chunk for chunk in chunks[1:] if chunk * demand.nbytes >= _SMALLEST_BLOCK])
    )


def separate_blocks(model: FlatModel, batch: int, clients: int, device: str) -> int:
    """Blocks of a round that other processes train, however many there are, so that their bits are the same.

    Sixteen keep some ten workers busy. Of a small model they would take several times as long as a few large blocks:
    the dispatch of a local step costs the same whatever the block holds.

    Args:
        model: The model.
        batch: Samples of a client in a local step.
        clients: The clients of a round.
        device: "cpu" or "cuda", of each process.
    """
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.replica(torch.device("cpu")).module(torch.zeros(1, *model.feature_shape))
    # Forward and both derivatives; recurrent kernels are not counted, but use every weight
    operations = 3 * batch * max(counter.get_total_flops(), 2 * model.dimension)
    return int(np.clip(clients * operations // _STEP_OPERATIONS[device], _FEWEST_SEPARATE, _MOST_SEPARATE))


def cuda_chunk(peak: Callable[[int], int], clients: int, memory: int, resident: int) -> int:
    """A good ``ExecutionPlan.chunk`` on a GPU: the whole cohort, or equal parts of it that fit.

    Args:
        peak: From the clients of a block to the most bytes that its training takes, see ``BlockMemory``.
        clients: The clients of a round.
        memory: Bytes that the GPU has.
        resident: Bytes of it that are taken from round to round.

    Returns:
        The clients of a block; 1 also where not even that fits.
    """
    room = max(1, int(_CUDA_SHARE * (memory - _CUDA_RESERVED - resident)))
    blocks, chunk = 1, max(1, clients)
    while chunk > 1 and (taken := peak(chunk)) > room:
        # At least as many as would do if clients took equal shares, which those that are there anyway do not.
        blocks = min(clients, max(blocks + 1, blocks * taken // room))
        chunk = -(-clients // blocks)
    return chunk


def fastest_chunk(chunks: Sequence[int], clients: int, threads: int, steps: int, measure: Measure) -> int:
    """Chunk that trains a round in the least time; the first one unless another is clearly faster.

    Measures for a second or so, whatever a local step takes, in passes through the candidates so that a neighbour on
    the machine disturbs all of them alike, and counts the least time of each.

    Args:
        chunks: From ``cpu_chunks``.
        clients: The clients of a round.
        threads: Worker threads.
        steps: Local steps of a client in a round; fewer are measured where these take long.
        measure: A stopwatch.
    """
    steps = _affordable_steps(chunks, steps, measure)
    if steps == 0:
        return chunks[0]
    turns = {chunk: -(-clients // (chunk * threads)) for chunk in chunks}
    seconds = dict.fromkeys(chunks, math.inf)
    hopeful, spent = list(chunks), 0.0
    for _ in range(_REPEATS):
        for chunk in hopeful:
            taken = measure(chunk, steps)
            seconds[chunk] = min(seconds[chunk], turns[chunk] * taken)
            spent += taken
        limit = _HOPELESS * min(seconds.values())
        hopeful = [chunk for chunk in chunks if chunk == chunks[0] or seconds[chunk] <= limit]
        if len(hopeful) == 1 or spent > _SECONDS:
            break
    best = min(chunks, key=lambda chunk: seconds[chunk])
    return best if seconds[best] < _CLEARLY * seconds[chunks[0]] else chunks[0]


def _affordable_steps(chunks: Sequence[int], steps: int, measure: Measure) -> int:
    # As many of ``steps`` as let one pass through all chunks end in time, by the least chunk; 0 if one is too much
    if len(chunks) == 1:
        return 0
    probe = min(chunks)
    measure(probe, 1)  # whatever is done once: threads, caches, imports
    allowed = _PASS_SECONDS * probe / sum(chunks)
    affordable, asked = 0, 1
    while affordable < steps and measure(probe, asked) <= allowed:
        affordable, asked = asked, min(2 * asked, steps)
    return affordable


def _samples(population: Population) -> int:
    # Of a client that counts: a block holds clients that are alike, so that one of the blocks holds the large ones
    return int(np.quantile(population.sizes, 0.9))


def _activation_space(
    model: FlatModel, training: LocalTraining, samples: int
) -> tuple[int, int, ActivationSpace | None]:
    # Batch and local steps of a client with so many samples, and the layers whose weights it has in common with others
    steps = int(local_steps(np.array([samples]), training.batch_size, training.epochs, training.steps)[0])
    batch, program = min(training.batch_size, samples), compile_program(model)
    found = None if program is None or not training.optimizer.linear else ActivationSpace.of(program, batch, steps)
    return batch, steps, found


def _floats_per_sample(model: FlatModel) -> int:
    # Numbers that one sample leaves in memory on its way through the model, the sample included. Client by client, the
    # kernels of convolutions see the images themselves, which are still counted for every client of a block.
    one_by_one = compile_program(model) is None and trains_client_by_client(model)
    sample = torch.zeros(1, *model.feature_shape)
    total = sample.numel()

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal total
        if output.data_ptr() != inputs[0].data_ptr():  # not a view, as of a Flatten
            total += output.numel()
        if isinstance(module, nn.Conv2d) and not one_by_one:  # the patches under its kernel
            total += output[0, 0].numel() * module.weight[0].numel()

    module = model.replica(torch.device("cpu")).module
    for part in module.modules():
        if not list(part.children()):
            part.register_forward_hook(count)
    with torch.no_grad():
        module(sample)
    return total
