"""The model, its local training, and how the server uses what it receives."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.algorithm import Algorithm, FedNova, Scaffold, Upcycled
from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    Decay,
    External,
    Family,
    Positive,
    PositiveSingle,
    Reference,
    Rule,
    Section,
    Steps,
    StepsOf,
    key,
)
from wirelessfl.scenario.mechanism import Mechanism, NoMechanism
from wirelessfl.scenario.robust import MeanRule, RobustRule
from wirelessfl.scenario.server_optimizer import ServerOptimizer, ServerSgd


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


Width = Annotated[int, Field(ge=1, le=65536)]

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


class CnnFemnist(CoreVariant, core="wirelessfl.learning.models:cnn_femnist"):
    """LEAF's network for FEMNIST."""

    name: Literal["cnn_femnist"] = key("cnn_femnist", "LEAF's convolutional network for FEMNIST, for images.")
    activation: Activation = key(Relu(), "Non-linearity after each convolution and hidden layer.")


class ResNet(CoreVariant, core="wirelessfl.learning.models:resnet_gn"):
    """ResNet for small images with group normalisation."""

    name: Literal["resnet_gn"] = key("resnet_gn", "ResNet for small images with group normalisation.")
    depth: Literal[8, 14, 20, 32, 44, 56] = key(20, "Layers, 6n + 2.")


class MobileNet(CoreVariant, core="wirelessfl.learning.models:mobilenet_gn"):
    """Depthwise separable convolutions with group normalisation."""

    name: Literal["mobilenet_gn"] = key("mobilenet_gn", "Depthwise separable convolutions for small images.")
    width: Annotated[float, Field(gt=0, le=8)] = key(1.0, "Factor on all numbers of filters.")


class SequenceModel(CoreVariant):
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

    name: Reference = key(..., "Importable function that builds the module, as package.module:function.")


Model = Annotated[
    Mlp
    | Logistic
    | CnnMnist
    | CnnFemnist
    | CnnCifar10
    | ResNet
    | ResNet18
    | MobileNet
    | Lstm
    | Transformer
    | ExternalModel,
    Family("name", default="mlp"),
]


class LocalOptimizer(CoreVariant, core_names={"lr": None}):
    """Base of the local optimizers: the learning rate is no argument of their class."""


class Sgd(LocalOptimizer, core="wirelessfl.learning.optimizers:SGD"):
    """Stochastic gradient descent with momentum; the momentum starts at zero in every round."""

    name: Literal["sgd"] = key("sgd", "Stochastic gradient descent with momentum.")
    lr: PositiveSingle = key(0.05, "Learning rate.")
    momentum: Decay = key(0.5, "Momentum; starts from zero in every round.")


class Adam(LocalOptimizer, core="wirelessfl.learning.optimizers:Adam"):
    """Adam (Kingma and Ba 2015)."""

    name: Literal["adam"] = key("adam", "Adam (Kingma and Ba 2015).")
    lr: PositiveSingle = key(0.001, "Learning rate.")
    beta1: Decay = key(0.9, "Decay of the mean of the gradients.")
    beta2: Decay = key(0.999, "Decay of the mean of their squares.")
    eps: PositiveSingle = key(1e-8, "Added to the denominator.")


class AdaGrad(LocalOptimizer, core="wirelessfl.learning.optimizers:AdaGrad"):
    """AdaGrad (Duchi et al. 2011)."""

    name: Literal["adagrad"] = key("adagrad", "AdaGrad (Duchi et al. 2011).")
    lr: PositiveSingle = key(0.01, "Learning rate.")
    eps: PositiveSingle = key(1e-10, "Added to the denominator.")


class ExternalOptimizer(
    External,
    family="optimizer",
    protocol="wirelessfl.learning.optimizers:Optimizer",
    check="wirelessfl.learning.local_conformance:check_optimizer",
):
    """An optimizer of the user's own."""

    name: Reference = key(
        ...,
        "Importable optimizer, as package.module:Class; no noise of the uplink is then counted, as updates may follow "
        "more than their own client's data.",
    )
    lr: PositiveSingle = key(0.05, "Learning rate.")


Optimizer = Annotated[Sgd | Adam | AdaGrad | ExternalOptimizer, Family("name", default="sgd")]


class Training(Section, exclusive=(("epochs", "steps"),), otherwise={"epochs": 5}):
    """Local training between broadcast and upload, and the server's step."""

    algorithm: Algorithm = key(Upcycled(), "Local objective, what clients keep and send, and the server's step.")
    server_optimizer: ServerOptimizer = key(
        ServerSgd(), "What the server does with the aggregated update before the algorithm's step; costs no privacy."
    )
    robust: RobustRule = key(
        MeanRule(),
        "How the server combines the single updates of a round; with too few for the rule the round is given up.",
    )
    optimizer: Optimizer = key(Sgd(), "Local optimizer.")
    lr_schedule: Annotated[Steps, StepsOf(PositiveSingle)] | None = key(
        None, "Factor on optimizer.lr as {first round: factor, ...} counted from round 1. null: 1 throughout."
    )
    epochs: Count | None = key(None, "Passes over the client's own data in a round; 5 where steps is not given.")
    steps: Count | None = key(None, "Mini-batch steps in a round, instead of epochs.")
    batch_size: Count = key(20, "Samples in a mini-batch.")
    privacy: Mechanism = key(NoMechanism(), "Noise in local training.")

    def rules(self) -> list[Rule]:
        """What the algorithms ask of the local steps."""
        algorithm = self.algorithm
        return [
            (
                isinstance(algorithm, Scaffold) and algorithm.payload == 1 and self.steps is None,
                "algorithm.payload",
                "1 with training.epochs, by which clients take as many steps as they have batches",
                "2, or training.steps in place of training.epochs",
            ),
            (
                isinstance(algorithm, FedNova) and not isinstance(self.optimizer, Sgd),
                "algorithm.name",
                f"fednova with training.optimizer.name: {self.optimizer.name}",
                "the optimizer sgd, whose weights of gradients are known",
            ),
        ]
