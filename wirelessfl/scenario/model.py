"""The model that is trained, and which part of it."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from wirelessfl.scenario.base import (
    ONE_OF_NUMBERS,
    CoreVariant,
    Count,
    External,
    Positive,
    Reference,
    Rule,
    Says,
    Section,
    contradictions,
    key,
)
from wirelessfl.scenario.family import Family


def _compiled(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise contradictions([("", f"{pattern}: {error}", "a regular expression of Python")]) from error
    return pattern


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


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compiled), Says("a regular expression of Python")]

_TRAINABLE = (
    "Parameters that are trained [regular expression of their whole names]; the others keep their first values, are "
    "not sent and not counted in d."
)
_LORA = "Low-rank adapters, which are trained in place of the model's own parameters. null: none."

Width = Annotated[int, Field(ge=1, le=65536)]

Activation = Annotated[Relu | Tanh | TemperedSigmoid, Family("name", default="relu")]


class Lora(Section):
    """Low-rank adaptation (Hu et al. 2022): W + (alpha/rank) B A, of which A and B are trained and sent."""

    rank: Count = key(4, "Rank r of the product B A; at most the smaller side of each layer's matrix.")
    alpha: Positive | None = key(None, "α of the factor α/rank on the product. null: the rank, a factor of 1.")
    targets: Pattern = key(
        ".*",
        "Layers that are adapted [regular expression of their whole names]; linear layers and convolutions in one "
        "group can be.",
    )
    unfrozen: Pattern | None = key(
        None,
        "Parameters that are trained beside the adapters, such as a last layer [regular expression of their whole "
        "names]. null: none.",
    )


class TrainedModel(CoreVariant, core_names={"trainable": None, "lora": None}):
    """A model of which a part may be trained."""

    name: str = key("", "The model.")
    trainable: Pattern = key(".*", _TRAINABLE)
    lora: Lora | None = key(None, _LORA)


class Mlp(TrainedModel, core="wirelessfl.learning.models:mlp"):
    """A multi-layer perceptron."""

    name: Literal["mlp"] = key("mlp", "Multi-layer perceptron.")
    hidden: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = key(
        (32,), "Widths of the hidden layers [list of neurons]."
    )
    activation: Activation = key(Relu(), "Non-linearity after each hidden layer.")


class Logistic(TrainedModel, core="wirelessfl.learning.models:logistic"):
    """Multinomial logistic regression."""

    name: Literal["logistic"] = key("logistic", "Multinomial logistic regression: one linear layer.")


class CnnMnist(TrainedModel, core="wirelessfl.learning.models:cnn_mnist"):
    """The convolutional network of the papers for 28 by 28 grey images."""

    name: Literal["cnn_mnist"] = key("cnn_mnist", "Convolutional network for 28 by 28 grey images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution and hidden layer.")


class CnnCifar10(TrainedModel, core="wirelessfl.learning.models:cnn_cifar10"):
    """The convolutional network of the papers for 32 by 32 colour images."""

    name: Literal["cnn_cifar10"] = key("cnn_cifar10", "Convolutional network for 32 by 32 colour images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution.")


class ResNet18(TrainedModel, core="wirelessfl.learning.models:resnet18_gn"):
    """ResNet-18 with group instead of batch normalisation, so that samples stay independent."""

    name: Literal["resnet18_gn"] = key("resnet18_gn", "ResNet-18 with group normalisation, for images.")


class CnnFemnist(TrainedModel, core="wirelessfl.learning.models:cnn_femnist"):
    """LEAF's network for FEMNIST."""

    name: Literal["cnn_femnist"] = key("cnn_femnist", "LEAF's convolutional network for FEMNIST, for images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution and hidden layer.")


class LeNet(TrainedModel, core="wirelessfl.learning.models:lenet"):
    """LeNet-5 as NIID-Bench has it."""

    name: Literal["lenet"] = key("lenet", "LeNet-5 with max-pooling, for images of at least 16 by 16.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution and hidden layer.")


class ResNet(TrainedModel, core="wirelessfl.learning.models:resnet_gn"):
    """ResNet for small images with group normalisation."""

    name: Literal["resnet_gn"] = key("resnet_gn", "ResNet for small images with group normalisation.")
    depth: Annotated[Literal[8, 14, 20, 32, 44, 56], ONE_OF_NUMBERS] = key(20, "Layers, 6n + 2.")


class MobileNet(TrainedModel, core="wirelessfl.learning.models:mobilenet_gn"):
    """Depthwise separable convolutions with group normalisation."""

    name: Literal["mobilenet_gn"] = key("mobilenet_gn", "Depthwise separable convolutions for small images.")
    width: Annotated[float, Field(gt=0, le=8)] = key(1.0, "Factor on all numbers of filters.")


class Torchvision(TrainedModel, core="wirelessfl.learning.models.published:torchvision_model", files=("weights",)):
    """A network of torchvision, without dropout and stochastic depth."""

    qualified: ClassVar[str | None] = "architecture"

    name: Annotated[Literal["torchvision"], WithJsonSchema({"type": "string", "pattern": "^torchvision(:.*)?$"})] = key(
        "torchvision", "A network of torchvision for images; also as torchvision:ARCHITECTURE."
    )
    architecture: Literal[
        "alexnet",
        "convnext_tiny",
        "densenet121",
        "efficientnet_b0",
        "mobilenet_v2",
        "mobilenet_v3_large",
        "mobilenet_v3_small",
        "regnet_y_400mf",
        "resnet18",
        "resnet34",
        "resnet50",
        "resnext50_32x4d",
        "shufflenet_v2_x0_5",
        "squeezenet1_1",
        "vgg11",
    ] = key("resnet18", "Its name in torchvision.models.")
    weights: Annotated[str, Field(min_length=1)] | None = key(
        None,
        "File of a state dict as torch.save writes it, read as tensors alone. Relative to the scenario file, the "
        "current folder, or one of WIRELESSFL_DATA. null: weights drawn at random.",
    )
    norm: Literal["as_published", "group"] = key(
        "as_published",
        "group: group norm in the place of batch norm, with its factors and offsets; as_published refuses batch norm, "
        "which mixes samples.",
    )
    groups: Annotated[int, Field(ge=1, le=65536)] = key(
        32, "Most groups of a group norm: the largest number that divides both this and the channels counts."
    )
    head: Literal["kept", "new"] = key(
        "kept", "Last layer: kept: that of weights, for as many classes as the data have; new: drawn at random."
    )
    channels: Literal["kept", "summed"] = key(
        "kept",
        "First convolution: kept: for three colours; summed: its kernels summed over the colours, for grey images.",
    )

    @model_validator(mode="before")
    @classmethod
    def _split_name(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return value
        name, _, architecture = value["name"].partition(":")
        other = value.get("architecture", architecture)
        if architecture and other != architecture:
            raise contradictions([("architecture", f"{other} with the name {value['name']}", architecture)])
        return {**value, "name": name, "architecture": architecture} if architecture else value

    def rules(self) -> list[Rule]:
        """A head is kept of something."""
        return [(self.head == "new" and self.weights is None, "head", "new without weights", "kept")]


class SequenceModel(TrainedModel):
    """A model of words or letters, whose number the data tell."""


class Lstm(SequenceModel, core="wirelessfl.learning.models:lstm"):
    """Stacked LSTM, by default LEAF's of letters."""

    name: Literal["lstm"] = key("lstm", "Stacked LSTM of letters or words.")
    embedding: Width = key(8, "Width of the embedding.")
    hidden: Width = key(256, "Units of each layer.")
    layers: Annotated[int, Field(ge=1, le=16)] = key(2, "Layers.")


class Transformer(SequenceModel, core="wirelessfl.learning.models:transformer"):
    """A small transformer encoder."""

    name: Literal["transformer"] = key("transformer", "Transformer encoder of letters or words.")
    width: Width = key(64, "Width of a token; the heads divide it.")
    heads: Annotated[int, Field(ge=1, le=256)] = key(4, "Heads of the attention.")
    layers: Annotated[int, Field(ge=1, le=64)] = key(2, "Layers.")

    def rules(self) -> list[Rule]:
        """The heads divide the width."""
        return [(self.width % self.heads != 0, "heads", str(self.heads), f"a divisor of the width, {self.width}")]


_NOT_TORCHVISION = WithJsonSchema({"type": "string", "pattern": r"^(?!torchvision:)[A-Za-z_][\w.]*:[A-Za-z_]\w*$"})


class ExternalModel(
    External,
    family="model",
    protocol="torch.nn:Module",
    check="wirelessfl.learning.local_conformance:check_model",
    context="wirelessfl.assembly.learning:Tokens",
    returned=True,
    called_with=("feature_shape", "num_classes"),
):
    """A function of the user's that builds a torch module."""

    name: Annotated[Reference, _NOT_TORCHVISION] = key(
        ..., "Importable function that builds the module, as package.module:function."
    )
    trainable: Pattern = key(".*", _TRAINABLE)
    lora: Lora | None = key(None, _LORA)


Model = Annotated[
    Mlp
    | Logistic
    | CnnMnist
    | CnnFemnist
    | LeNet
    | CnnCifar10
    | ResNet
    | ResNet18
    | MobileNet
    | Torchvision
    | Lstm
    | Transformer
    | ExternalModel,
    Family("name", default="mlp"),
]
