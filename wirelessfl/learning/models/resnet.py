"""ResNet-18 without any layer that mixes samples."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from wirelessfl.errors import precondition


def _convolution(channels: int, filters: int, stride: int, kernel: int = 3) -> nn.Conv2d:
    return nn.Conv2d(channels, filters, kernel, stride=stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions with group norm and a skip connection (He et al. 2016, Fig. 5 left)."""

    def __init__(self, channels: int, filters: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = _convolution(channels, filters, stride)
        self.norm1 = nn.GroupNorm(groups, filters)
        self.conv2 = _convolution(filters, filters, 1)
        self.norm2 = nn.GroupNorm(groups, filters)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.skip = nn.Sequential(_convolution(channels, filters, stride, kernel=1), nn.GroupNorm(groups, filters))

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, channels, H, W) to (B, filters, H/stride, W/stride)."""
        hidden = functional.relu(self.norm1(self.conv1(inputs)))
        output: Tensor = functional.relu(self.norm2(self.conv2(hidden)) + self.skip(inputs))
        return output


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
    layers: list[nn.Module] = [_convolution(feature_shape[0], 64, 1), nn.GroupNorm(groups, 64), nn.ReLU()]
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [BasicBlock(channels, filters, stride, groups), BasicBlock(filters, filters, 1, groups)]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, num_classes))
