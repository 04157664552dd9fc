"""Models: plain functions ``(feature_shape, num_classes, **options) -> nn.Module``.

A user's own model is a function of the same form; ``check_module`` says whether it can be trained
client by client and sample by sample.
"""

from wirelessfl.learning.flat import check_module
from wirelessfl.learning.models.convolutional import cnn_cifar10, cnn_mnist, resnet18_gn
from wirelessfl.learning.models.dense import TemperedSigmoid, logistic, mlp
from wirelessfl.learning.models.images import cnn_femnist, lenet, mobilenet_gn, resnet_gn
from wirelessfl.learning.models.sequence import lstm, transformer

__all__ = [
    "TemperedSigmoid",
    "check_module",
    "cnn_cifar10",
    "cnn_femnist",
    "cnn_mnist",
    "lenet",
    "logistic",
    "lstm",
    "mlp",
    "mobilenet_gn",
    "resnet18_gn",
    "resnet_gn",
    "transformer",
]
