"""The copies and sums of ``kernel.c`` by torch, on any device and in any precision.

They lie in memory as those of the kernel do: the products that follow round by it.
"""

from itertools import product

from torch import Tensor

from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair


def copy_portably(geometry: KernelGeometry, images: Tensor) -> Tensor:
    """(k, B, P, kh · kw · C) patches of images (k, B, H, W, C), which have their padding already."""
    (down, right), (below, beside) = geometry.stride, geometry.dilation
    client, sample, row, column, channel = images.stride()
    windows = images.as_strided(
        (*images.shape[:2], *geometry.positions_inside(images.shape[2:4]), *geometry.size, images.shape[4]),
        (client, sample, row * down, column * right, row * below, column * beside, channel),
    )
    return windows.contiguous().flatten(4).flatten(2, 3)


def add_portably(geometry: KernelGeometry, values: Tensor, image: Pair) -> Tensor:
    """(k, B, H, W, C) sums of ``values`` (k, B, rows, columns, kh, kw, C), (B, H, W, k, C) in memory."""
    (above, left), (down, right), (below, beside) = geometry.padding, geometry.stride, geometry.dilation
    clients, samples, rows, columns = values.shape[:4]
    height, width = image
    padded = values.new_zeros(samples, height + 2 * above, width + 2 * left, clients, values.shape[-1])
    for row, column in product(*map(range, geometry.size)):
        under = padded[:, row * below :: down, column * beside :: right][:, :rows, :columns]
        under.add_(values[:, :, :, :, row, column].permute(1, 2, 3, 0, 4))
    return padded[:, above : above + height, left : left + width].contiguous().permute(3, 0, 1, 2, 4)
