"""The convolutional networks of the private-training papers (moo-adaptive-clipping, Tables I and II)."""

from collections.abc import Callable, Sequence

from torch import nn

from wirelessfl.errors import precondition

_SMALLEST_MNIST_SIDE = 20  # 20 → 7 → 6 → 2 → 1


def _image_shape(feature_shape: Sequence[int], smallest: int, name: str) -> tuple[int, int, int]:
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
    channels, height, width = _image_shape(feature_shape, _SMALLEST_MNIST_SIDE, "cnn_mnist")
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
    channels, _, _ = _image_shape(feature_shape, 8, "cnn_cifar10")
    layers: list[nn.Module] = []
    for filters in (32, 64, 64):
        layers += [nn.Conv2d(channels, filters, kernel_size=3, padding=1), activation(), nn.AvgPool2d(2, stride=2)]
        channels = filters
    layers += [nn.Conv2d(channels, 128, kernel_size=3, padding=1), activation(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, num_classes))
