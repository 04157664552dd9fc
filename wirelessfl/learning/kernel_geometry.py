"""Where kernels lie on images."""

from collections.abc import Sequence
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True)
class KernelGeometry:
    """A kernel (kh, kw) at P = rows · columns positions on images.

    Attributes:
        size: kh and kw.
        stride: Along rows and columns, as for ``torch.nn.Conv2d``; so are the others.
        padding: With zeros.
        dilation: Of the kernel.
    """

    size: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    def positions(self, image: Sequence[int]) -> Pair:
        """Rows and columns of positions on an image (H, W)."""
        return self.positions_inside([side + 2 * padding for side, padding in zip(image, self.padding, strict=True)])

    def positions_inside(self, image: Sequence[int]) -> Pair:
        """Rows and columns of positions on an image (H, W) that has its padding already."""
        rows, columns = (
            (side - dilation * (size - 1) - 1) // stride + 1
            for side, size, stride, dilation in zip(image, self.size, self.stride, self.dilation, strict=True)
        )
        return rows, columns
