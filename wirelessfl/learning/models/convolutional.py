"""Convolutional networks: those of the private-training papers, and ResNet-18 without any layer that mixes samples."""

from collections.abc import Callable, Sequence
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from wirelessfl.errors import precondition

_SMALLEST_MNIST_SIDE = 20  # 20 → 7 → 6 → 2 → 1


def image_shape(feature_shape: Sequence[int], smallest: int, name: str) -> tuple[int, int, int]:
    """Channels, height and width of images.

    Raises:
        ValueError: if samples are not images, or have a side below ``smallest``; ``name`` is the model's.
    """
    precondition(
        len(feature_shape) == 3 and min(feature_shape[1:]) >= smallest,
        f"{name} needs samples of shape (channels, height, width) with sides of at least {smallest}, "
        f"not {tuple(feature_shape)}",
    )
    channels, height, width = feature_shape
    return channels, height, width


def cnn_mnist(
    feature_shape: Sequence[int], num_classes: int, activation: Callable[[], nn.Module] = nn.ReLU
) -> nn.Sequential:
    """The MNIST and Fashion-MNIST network (Table I): d = 18,842 for 1 × 28 × 28 and ten classes.

    Convolutions of 16 filters 8 × 8 and 32 filters 4 × 4, both with stride 2, each followed by 2 × 2
    max-pooling, then a layer of 32 units. The table names no padding and no pooling stride; without padding
    the pooling stride must be 1, as a stride of 2 would leave nothing to pool the second time
    (28 → 11 → 5 → 1). So 28 → 11 → 10 → 4 → 3.

    Raises:
        ValueError: if the samples are not images, or too small.
    """
    channels, height, width = image_shape(feature_shape, _SMALLEST_MNIST_SIDE, "cnn_mnist")
    rows, columns = (((side - 8) // 2 - 4) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 16, kernel_size=8, stride=2),
        activation(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, kernel_size=4, stride=2),
        activation(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(32 * rows * columns, 32),
        activation(),
        nn.Linear(32, num_classes),
    )


def cnn_cifar10(
    feature_shape: Sequence[int], num_classes: int, activation: Callable[[], nn.Module] = nn.ReLU
) -> nn.Sequential:
    """The CIFAR-10 network (Table II): d = 131,466 for 3 × 32 × 32 and ten classes.

    Four 3 × 3 convolutions of 32, 64, 64 and 128 filters with stride 1 and padding 1, 2 × 2 average pooling
    between them, adaptive average pooling to one pixel, and the output layer.

    Raises:
        ValueError: if the samples are not images, or too small.
    """
    channels, _, _ = image_shape(feature_shape, 8, "cnn_cifar10")
    layers: list[nn.Module] = []
    for filters in (32, 64, 64):
        layers += [nn.Conv2d(channels, filters, kernel_size=3, padding=1), activation(), nn.AvgPool2d(2, stride=2)]
        channels = filters
    layers += [nn.Conv2d(channels, 128, kernel_size=3, padding=1), activation(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, num_classes))


def convolution(channels: int, filters: int, stride: int, kernel: int = 3) -> nn.Conv2d:
    """Convolution without bias that keeps the size but for its stride."""
    return nn.Conv2d(channels, filters, kernel, stride=stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with group norm and a skip connection (He et al. 2016, Fig. 5 left)."""

    def __init__(self, channels: int, filters: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = convolution(channels, filters, stride)
        self.norm1 = nn.GroupNorm(groups, filters)
        self.conv2 = convolution(filters, filters, 1)
        self.norm2 = nn.GroupNorm(groups, filters)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.skip = nn.Sequential(convolution(channels, filters, stride, kernel=1), nn.GroupNorm(groups, filters))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, channels, H, W) to (B, filters, H/stride, W/stride)."""
        hidden = functional.relu(self.norm1(self.conv1(inputs)))
        return functional.relu(cast(Tensor, self.norm2(self.conv2(hidden)) + self.skip(inputs)))


def resnet18_gn(feature_shape: Sequence[int], num_classes: int, groups: int = 32) -> nn.Sequential:
    """ResNet-18 with GroupNorm for batch norm and a stem for small images: d = 11,173,962 on CIFAR-10.

    The stem is one 3 × 3 convolution with stride 1 and no pooling (He et al. 2016, §4.2); group norm with 32
    groups as in Wu and He, "Group normalization", ECCV 2018. Batch norm mixes the samples of a batch, so that
    per-sample gradients do not exist.

    Args:
        feature_shape: (channels, height, width).
        num_classes: Number of logits.
        groups: Groups of each GroupNorm; divides 64.

    Raises:
        ValueError: if the samples are not images or ``groups`` does not divide 64.
    """
    precondition(
        len(feature_shape) == 3,
        f"resnet18_gn needs samples of shape (channels, height, width), not {tuple(feature_shape)}",
    )
    precondition(groups >= 1 and not 64 % groups, f"groups must divide 64, not {groups}")
    layers: list[nn.Module] = [convolution(feature_shape[0], 64, 1), nn.GroupNorm(groups, 64), nn.ReLU()]
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(channels, filters, stride, groups), BasicBlock(filters, filters, 1, groups)]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, num_classes))
