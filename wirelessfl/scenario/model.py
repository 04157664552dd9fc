"""The model that is trained."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wirelessfl.scenario.base import CoreVariant, Count, External, Family, Positive, Reference, key


class Relu(CoreVariant, core="torch.nn:ReLU"):
    """max(0, x)."""

    name: Literal["relu"] = key("relu", "max(0, x).")


class Tanh(CoreVariant, core="torch.nn:Tanh"):
    """tanh(x)."""

    name: Literal["tanh"] = key("tanh", "tanh(x).")


class TemperedSigmoid(
    CoreVariant,
    core="wirelessfl.learning.models:TemperedSigmoid",
    core_names={"s": "scale", "T": "temperature", "o": "offset"},
):
    """s · sigmoid(T x) − o (Papernot et al. 2021); the defaults are tanh."""

    name: Literal["tempered_sigmoid"] = key("tempered_sigmoid", "s sigmoid(T x) - o (Papernot et al. 2021).")
    s: Positive = key(2.0, "Scale of the output.")
    T: Positive = key(2.0, "Inverse temperature: slope of the input.")
    o: float = key(1.0, "Offset of the output.")


Activation = Annotated[Relu | Tanh | TemperedSigmoid, Family("name", default="relu")]


class Mlp(CoreVariant, core="wirelessfl.learning.models:mlp"):
    """A multi-layer perceptron."""

    name: Literal["mlp"] = key("mlp", "Multi-layer perceptron.")
    hidden: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = key(
        (32,), "Widths of the hidden layers [list of neurons]."
    )
    activation: Activation = key(Relu(), "Non-linearity after each hidden layer.")


class Logistic(CoreVariant, core="wirelessfl.learning.models:logistic"):
    """Multinomial logistic regression."""

    name: Literal["logistic"] = key("logistic", "Multinomial logistic regression: one linear layer.")


class CnnMnist(CoreVariant, core="wirelessfl.learning.models:cnn_mnist"):
    """The convolutional network of the papers for 28 by 28 grey images."""

    name: Literal["cnn_mnist"] = key("cnn_mnist", "Convolutional network for 28 by 28 grey images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution and hidden layer.")


class CnnCifar10(CoreVariant, core="wirelessfl.learning.models:cnn_cifar10"):
    """The convolutional network of the papers for 32 by 32 colour images."""

    name: Literal["cnn_cifar10"] = key("cnn_cifar10", "Convolutional network for 32 by 32 colour images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution.")


class ResNet18(CoreVariant, core="wirelessfl.learning.models:resnet18_gn"):
    """ResNet-18 with group instead of batch normalisation, so that samples stay independent."""

    name: Literal["resnet18_gn"] = key("resnet18_gn", "ResNet-18 with group normalisation, for images.")


class ExternalModel(External):
    """A function of the user's that builds a torch module."""

    family: ClassVar[str] = "model"
    protocol: ClassVar[str] = "torch.nn:Module"
    check: ClassVar[str] = "wirelessfl.learning.local_conformance:check_model"
    returned: ClassVar[bool] = True
    called_with: ClassVar[tuple[str, ...]] = ("feature_shape", "num_classes")

    name: Reference = key(..., "Importable function that builds the module, as package.module:function.")


Model = Annotated[
    Mlp | Logistic | CnnMnist | CnnCifar10 | ResNet18 | ExternalModel,
    Family("name", default="mlp"),
]
