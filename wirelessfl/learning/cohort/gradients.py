"""Per-sample gradients: their protocol, their forming in parts as memory allows, and accumulation."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

Pieces: TypeAlias = Sequence[tuple[Tensor, Tensor | None]]
Formed = TypeVar("Formed")

_ELSEWHERE = 2**30  # bytes, not measured: of a GPU's memory little, and its launches are few


class SampleGradients(Protocol):
    """The gradients ∇ℓ_b of every sample b in the batches of k clients, for one step.

    The gradients are of the plain loss, neither weighted nor divided. Samples that only pad a batch (``present``
    is False) have arbitrary norms; ``weighted_sum`` ignores them whatever their weight.

    Attributes:
        present: (k, B) bool, which samples are there.
        losses: (k, B) the loss of each sample.
    """

    present: Tensor
    losses: Tensor

    @property
    def sizes(self) -> Sequence[int]:
        """Elements of each of the L parameters, in flat order."""

    def squared_norms(self) -> Tensor:
        """(k, B, L) squared norms of the part of ∇ℓ_b in each of the L parameters, in flat order.

        Their sum over the last axis is ‖∇ℓ_b‖². No per-sample gradient is formed where the layer's norm has a
        closed form.
        """

    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        """(k, d) sums Σ_b weights_b ∇ℓ_b.

        Args:
            weights: (k, B), or (k, B, L) with one weight for each parameter.
            into: (k, d) set in place to decay · into + sums, and given back; None for new memory.
            decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.
        """

    def inner_products(self, vectors: Tensor) -> Tensor:
        """(k, B) inner products ⟨∇ℓ_b, v⟩ of a client's gradients with its vector v (k, d); arbitrary in padding.

        By default the gradients are formed, a few at a time.
        """
        total = self.losses.new_empty(self.present.shape, dtype=vectors.dtype)
        for part, formed in self.formed():
            total[:, part] = torch.bmm(formed, vectors[:, :, None])[:, :, 0]
        return total

    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        """The gradients themselves, (k, b, d) for a slice of samples at a time, in chunks that fit in memory.

        Each chunk may be overwritten by the caller.
        """

    def pieces(self) -> Iterator[Pieces]:
        """The gradients of some samples at a time, in chunks as ``formed``, but outer products are left as they are.

        For norms that have no closed form (a wavelet norm).

        Returns:
            For each chunk what stands side by side in the flat order: elements (k, b, m), or the pair (k, b, m),
            (k, b, n) of an outer product, element i · n + j of which is that of element i of the first and j of the
            second. By default the formed gradients, in one piece.
        """
        return ([(formed, None)] for _, formed in self.formed())


def formed_in_parts(
    form: Callable[[slice], Formed], samples: int, bytes_each: int, device: torch.device, on_cpu: int
) -> Iterator[tuple[slice, Formed]]:
    """Gradients (k, b, d), or pieces of them, of some samples at a time, at least of one.

    Without values, on the ``meta`` device, all parts are alike but for the length of the last. So the second stands for
    those between, whose memory is as much, and planning does not take as long as they are many.

    Args:
        form: From a slice of the samples to their gradients.
        samples: Samples in the batch of a client.
        bytes_each: Of the gradients of one sample of every client; 0 where none are formed.
        device: Where they are formed.
        on_cpu: Bytes to be held on a CPU, whose caches they fit.
    """
    at_once = max(1, (on_cpu if device.type == "cpu" else _ELSEWHERE) // max(1, bytes_each))
    alike: Formed | None = None
    for first in range(0, samples, at_once):
        part = slice(first, min(first + at_once, samples))
        formed = form(part) if alike is None or part.stop == samples else alike
        if first and device.type == "meta":
            alike = formed
        yield part, formed
        del formed


def add_to(into: Tensor | None, value: Tensor, decay: float) -> Tensor:
    """Sets into ← decay · into + value, and gives it back; ``value`` itself where there is no ``into``.

    What ``into`` held does not matter, not even NaN, where ``decay`` is 0.
    """
    if into is None:
        return value
    if decay == 1:
        return into.add_(value)
    return into.mul_(decay).add_(value) if decay else into.copy_(value)
