"""Further networks for images: LEAF's for FEMNIST, LeNet-5, ResNets, and depthwise separable convolutions."""

from collections.abc import Callable, Sequence

from torch import nn

from wirelessfl.errors import precondition
from wirelessfl.learning.models.convolutional import BasicBlock, convolution, image_shape

_GROUPS = 8


def cnn_femnist(
    feature_shape: Sequence[int], num_classes: int, activation: Callable[[], nn.Module] = nn.ReLU
) -> nn.Sequential:
    """LEAF's network for FEMNIST (Caldas et al. 2018): d = 6,603,710 for 1 × 28 × 28 and 62 classes.

    Convolutions of 32 and 64 filters 5 × 5 that keep the size, each followed by 2 × 2 max-pooling, then 2,048 units.

    Raises:
        ValueError: if the samples are not images, or too small.
    """
    channels, height, width = image_shape(feature_shape, 4, "cnn_femnist")
    return nn.Sequential(
        nn.Conv2d(channels, 32, kernel_size=5, padding=2),
        activation(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, kernel_size=5, padding=2),
        activation(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 2048),
        activation(),
        nn.Linear(2048, num_classes),
    )


def lenet(
    feature_shape: Sequence[int], num_classes: int, activation: Callable[[], nn.Module] = nn.ReLU
) -> nn.Sequential:
    """LeNet-5 as NIID-Bench has it (Li et al., ICDE 2022, section V): d = 44,426 for 1 × 28 × 28 and ten classes.

    Convolutions of 6 and 16 filters 5 × 5 without padding, each followed by 2 × 2 max-pooling, then 120 and 84 units.

    Raises:
        ValueError: if the samples are not images, or too small.
    """
    channels, height, width = image_shape(feature_shape, 16, "lenet")
    rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 6, kernel_size=5),
        activation(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5),
        activation(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * rows * columns, 120),
        activation(),
        nn.Linear(120, 84),
        activation(),
        nn.Linear(84, num_classes),
    )


def resnet_gn(feature_shape: Sequence[int], num_classes: int, depth: int = 20) -> nn.Sequential:
    """ResNet-8 or -20 for small images (He et al. 2016, §4.2) with group norm of 8 groups for batch norm.

    Three stages of 16, 32 and 64 filters with (depth − 2)/6 blocks each. Skip connections that change the size are
    1 × 1 convolutions, where the paper fills with zeros: d = 272,474 on CIFAR-10 at depth 20 against its 0.27 million.

    Args:
        feature_shape: (channels, height, width).
        num_classes: Number of logits.
        depth: 6n + 2: 8, 14, 20, ...

    Raises:
        ValueError: if the samples are not images, or there are no such blocks.
    """
    channels, _, _ = image_shape(feature_shape, 4, "resnet_gn")
    blocks, left = divmod(depth - 2, 6)
    precondition(blocks >= 1 and left == 0, f"depth: found {depth}; allowed: 8, 14, 20 and so on, 6n + 2")
    layers: list[nn.Module] = [convolution(channels, 16, 1), nn.GroupNorm(_GROUPS, 16), nn.ReLU()]
    narrow = 16
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        for at in range(blocks):
            layers.append(BasicBlock(narrow, filters, stride if at == 0 else 1, _GROUPS))
            narrow = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, num_classes))


def mobilenet_gn(feature_shape: Sequence[int], num_classes: int, width: float = 1.0) -> nn.Sequential:
    """Depthwise separable convolutions (MobileNet, Howard et al. 2017) for small images, with group norm of 8 groups.

    The stem and the first six of MobileNet's blocks, 32 to 256 filters, with strides 1, 2, 1, 2, 1, 2.

    Args:
        feature_shape: (channels, height, width).
        num_classes: Number of logits.
        width: Factor on all numbers of filters, rounded to whole groups.

    Raises:
        ValueError: if the samples are not images.
    """
    channels, _, _ = image_shape(feature_shape, 8, "mobilenet_gn")

    def scaled(filters: int) -> int:
        return max(1, round(width * filters / _GROUPS)) * _GROUPS

    narrow = scaled(32)
    layers: list[nn.Module] = [convolution(channels, narrow, 1), nn.GroupNorm(_GROUPS, narrow), nn.ReLU()]
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (256, 2)):
        wide = scaled(filters)
        depthwise = nn.Conv2d(narrow, narrow, 3, stride=stride, padding=1, groups=narrow, bias=False)
        layers += [depthwise, nn.GroupNorm(_GROUPS, narrow), nn.ReLU()]
        layers += [convolution(narrow, wide, 1, kernel=1), nn.GroupNorm(_GROUPS, wide), nn.ReLU()]
        narrow = wide
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(narrow, num_classes))
