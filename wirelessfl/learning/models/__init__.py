"""Models: plain functions ``(feature_shape, num_classes, **options) -> nn.Module``.

A user's own model is a function of the same form; ``check_module`` says whether it can be trained
client by client and sample by sample.
"""

from wirelessfl.learning.models.checks import check_module
from wirelessfl.learning.models.cnn import cnn_cifar10, cnn_mnist
from wirelessfl.learning.models.dense import TemperedSigmoid, logistic, mlp
from wirelessfl.learning.models.resnet import resnet18_gn

__all__ = ["TemperedSigmoid", "check_module", "cnn_cifar10", "cnn_mnist", "logistic", "mlp", "resnet18_gn"]
