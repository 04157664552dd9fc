"""Augmentation of images in training: each sample of a mini-batch is turned, shifted and mirrored anew at random.

As ``RandomRotation``, ``RandomCrop`` with padding and ``RandomHorizontalFlip`` of torchvision do, in this order, but
with random numbers that belong to the sample and the local step, and for the samples of all clients at once.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from wirelessfl.errors import precondition
from wirelessfl.streams import NodeStream

_BLOCKS = 2  # of two uniform numbers for each sample and step: mirrored, shifts, angle


@dataclass(frozen=True)
class Augmentation:
    """Random changes of images that leave their classes alone.

    Attributes:
        flip: Probability that left and right are exchanged.
        crop: Largest shift p in pixels: rows and columns are shifted by −p … p, each as likely, and filled with 0.
        rotation: Largest angle in degrees; angles are uniform, values bilinear, and filled with 0.

    Raises:
        ValueError: if a number is out of range.
    """

    flip: float = 0.5
    crop: int = 0
    rotation: float = 0.0

    def __post_init__(self) -> None:
        for holds, message in (
            (0 <= self.flip <= 1, f"flip must be a probability, not {self.flip}"),
            (self.crop >= 0, f"crop must be at least 0, not {self.crop}"),
            (0 <= self.rotation <= 180, f"rotation must be between 0 and 180, not {self.rotation}"),
        ):
            precondition(holds, message)

    def drawn(self, stream: NodeStream, sizes: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.float32]:
        """Changes of the samples of k clients in S batches: whether mirrored, rows and columns of the shift, angle.

        Those of a sample in a step depend on the client, the step and the sample alone, not on its place in the batch.

        Args:
            stream: The stream of the purpose ``augmentation`` for the k clients.
            sizes: (k,) samples n_i.
            index: (S, k, B) samples of each batch.

        Returns:
            (S, k, B, 4).
        """
        steps, clients, _ = index.shape
        step, client = np.arange(steps)[:, None, None], np.arange(clients)[None, :, None]
        line = step * sizes[client] + index
        rows = np.broadcast_to(client, index.shape).reshape(-1)
        numbers = stream.at_block(rows, _BLOCKS * line.reshape(-1)).uniform(2 * _BLOCKS)
        changes = np.empty(numbers.shape, dtype=np.float32)
        changes[:, 0] = numbers[:, 0] < self.flip
        changes[:, 1:3] = np.floor(numbers[:, 1:3] * (2 * self.crop + 1)) - self.crop
        changes[:, 3] = (2 * numbers[:, 3] - 1) * math.radians(self.rotation)
        return changes.reshape(*index.shape, 2 * _BLOCKS)

    def __call__(self, images: Tensor, changes: Tensor) -> Tensor:
        """The images (a, b, channels, height, width) after the changes (a, b, 4)."""
        flat, each = images.flatten(0, 1), changes.flatten(0, 1)
        if self.rotation:
            flat = _rotated(flat, each[:, 3].to(flat.dtype))
        return _shifted(flat, each[:, :3].long()).view(images.shape)


def _shifted(images: Tensor, changes: Tensor) -> Tensor:
    # (N, channels, height, width) copies of pixels, mirrored after the shift
    height, width = images.shape[2:]
    mirrored, down, right = (changes[:, column, None] for column in range(3))
    rows = torch.arange(height, device=images.device) + down
    columns = torch.arange(width, device=images.device)
    columns = torch.where(mirrored > 0, width - 1 - columns, columns) + right
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    found = images.gather(2, rows[:, None, :, None].expand(-1, images.shape[1], -1, width))
    found = found.gather(3, columns[:, None, None, :].expand(-1, images.shape[1], height, -1))
    return found.where(inside[:, None], 0.0)


def _rotated(images: Tensor, angle: Tensor) -> Tensor:
    # (N, channels, height, width) turned counter-clockwise about the middle, by angles (N,) in radians
    height, width = images.shape[2:]
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # Where a pixel comes from, in coordinates from −1 to 1 in each direction
    source = torch.stack([cos, -sin * (height / width), zero, sin * (width / height), cos, zero], dim=-1).view(-1, 2, 3)
    grid = functional.affine_grid(source, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
