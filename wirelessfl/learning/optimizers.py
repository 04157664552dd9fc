"""Local optimizers: step functions over the stacked parameters of many clients.

Row by row they do what ``torch.optim`` does. All state is explicit and starts at zero: the accumulated gradient
a ← decay · a + g, which whoever computes gradients g keeps (so that a momentum costs no pass of its own), and a
dictionary of (k, d) matrices. Parameters and state are updated in place.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition

OptimizerState: TypeAlias = dict[str, Tensor]


@runtime_checkable
class Optimizer(Protocol):
    """Local optimizer: one step of all rows at once. A class that derives from it has to define ``step`` alone."""

    @property
    def decay(self) -> float:
        """Factor of the accumulated gradient before a new gradient is added; 0 forgets it."""
        return 0.0

    @property
    def linear(self) -> bool:
        """Whether a step is linear in parameters and gradient, and so the same in any linear coordinates."""
        return False

    def start(self, parameters: Tensor) -> OptimizerState:
        """The state before the first step, for ``parameters`` (k, d): rows (k, d) by name."""
        return {}

    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        """One step, which changes ``parameters`` (k, d) and ``state`` in place.

        Args:
            parameters: Parameters, a row a client.
            accumulated: (k, d) accumulated gradient; may be overwritten where ``decay`` is 0.
            state: What ``start`` gave, or the first k rows of it.
            learning_rate: η.
            step: Steps taken before this one, the same for all rows.
        """


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent with momentum: v ← momentum · v + g, w ← w − η v.

    Raises:
        ValueError: if the momentum lies outside [0, 1).
    """

    momentum: float = 0.0
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        precondition(0 <= self.momentum < 1, f"momentum must lie in [0, 1), not {self.momentum}")

    @override
    @property
    def decay(self) -> float:
        return self.momentum  # the velocity is the accumulated gradient

    @override
    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        parameters.add_(accumulated, alpha=-learning_rate)


@dataclass(frozen=True)
class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1.

    Raises:
        ValueError: if a beta lies outside [0, 1) or eps is negative.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        precondition(
            0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.eps >= 0,
            f"Adam needs betas in [0, 1) and eps ≥ 0, not {self}",
        )

    @override
    def start(self, parameters: Tensor) -> OptimizerState:
        return {"mean": torch.zeros_like(parameters), "square": torch.zeros_like(parameters)}

    @override
    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        torch._fused_adam_(  # one pass instead of seven
            [parameters],
            [accumulated],
            [state["mean"]],
            [state["square"]],
            [],
            [torch.full((), step + 1.0, device=parameters.device)],  # filled there: a tensor of a number is a copy
            lr=learning_rate,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 2011, diagonal form.

    Raises:
        ValueError: if eps is negative.
    """

    eps: float = 1e-10

    def __post_init__(self) -> None:
        precondition(self.eps >= 0, f"AdaGrad needs eps ≥ 0, not {self.eps}")

    @override
    def start(self, parameters: Tensor) -> OptimizerState:
        return {"square": torch.zeros_like(parameters)}

    @override
    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        if parameters.device.type != "cpu":  # where torch has no fused step for it
            square = state["square"].addcmul_(accumulated, accumulated)
            parameters.addcdiv_(accumulated, square.sqrt().add_(self.eps), value=-learning_rate)
            return
        torch._fused_adagrad_(
            [parameters],
            [accumulated],
            [state["square"]],
            [torch.tensor(step + 1.0)],
            lr=learning_rate,
            lr_decay=0.0,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )
