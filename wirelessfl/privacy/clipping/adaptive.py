"""Clipping norms that follow the training: a quantile of the gradient norms, and MOO adaptive clipping.

MOO (DESIGN.md §4; moo-adaptive-clipping) descends the gradient of loss plus a penalty on C. The paper minimises
L_model + κC by C ← max(C − η_C (κ − S/C), 10⁻³), where S tells how much the loss falls per unit of C. After a gradient
step θ' = θ − η g̃(C) it is S = η ⟨∇L(θ'), ∂g̃/∂C⟩. The rules differ in what they take for ∇L(θ') and ∂g̃/∂C, and in how
often they update C: for every sample, as the paper's Algorithm 1, or once a step. S needs two successive steps of a
round: in the first, which starts from a model that no C of this round has moved, it is 0 for a sample, and a rule that
updates once a step leaves C as it is. C is a memory that each client keeps from round to round.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping.base import Clipped, ClippingRule, ClippingState, Samples, Step, shrink
from wirelessfl.privacy.clipping.flat import clip_to
from wirelessfl.privacy.costs import require_non_negative, require_positive
from wirelessfl.privacy.laws import ClippingLaw, MooClip, QuantileClip
from wirelessfl.quotients import in_parts, inner_products
from wirelessfl.transfers import sent


@dataclass(frozen=True)
class QuantileClipping(ClippingRule):
    """C ← C exp(−η_C (b̃ − γ)), with b̃ the noised share of samples whose gradient is within C.

    Source: Andrew, Thakkar, McMahan, Ramaswamy, "Differentially private learning with adaptive clipping", NeurIPS
    2021, Algorithm 1, here for the samples of one client instead of the clients of one round:
    b̃ = 1/2 + (Σ_b (1[‖g_b‖ ≤ C] − 1/2) + N(0, σ_b²))/L over a batch with the public divisor L. The centred count
    moves by 1/2 with one sample, so that together with noise of multiplier z on the gradients a step is one Gaussian
    of multiplier (z⁻² + (2σ_b)⁻²)^(−1/2). Each client follows its own quantile.

    Attributes:
        clip_norm: C in a client's first step; the paper takes 0.1.
        quantile: γ in [0, 1], the share that shall be within C.
        lr: η_C; the paper takes 0.2.
        count_noise_std: σ_b; the paper takes a twentieth of the expected batch.

    Raises:
        ValueError: If a value is out of range.
    """

    lasting: ClassVar[tuple[str, ...]] = ("clip_norm",)

    clip_norm: float
    quantile: float = 0.5
    lr: float = 0.2
    count_noise_std: float = 1.0

    def __post_init__(self) -> None:
        require_positive(clip_norm=self.clip_norm, lr=self.lr, count_noise_std=self.count_noise_std)
        precondition(0 <= self.quantile <= 1, f"quantile must lie in [0, 1], found {self.quantile}")

    @override
    def law(self) -> ClippingLaw:
        return QuantileClip(count_noise_std=self.count_noise_std)

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {"clip_norm": like.new_full((clients,), self.clip_norm)}

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        clip_norm = state["clip_norm"]
        within = (samples.norms() <= clip_norm[:, None]) & samples.present
        count = within.sum(1) - 0.5 * samples.present.sum(1)
        stream = step.streams.nodes(f"clip_count_noise/{step.step}", step.round_index, step.clients)
        noise = sent(stream.normal(1)[:, 0], clip_norm.device).to(clip_norm.dtype)
        share = 0.5 + (count + self.count_noise_std * noise) / step.divisor
        return clip_to(samples, clip_norm, {"clip_norm": clip_norm * torch.exp(-self.lr * (share - self.quantile))})

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        return state


SMALLEST_CLIP = 1e-3
"""Smallest norm, equation (12) of the paper."""


def moo_clip(clip_norm: Tensor, loss_sensitivity: Tensor, penalty: float, clip_learning_rate: float) -> Tensor:
    """C ← max(C − η_C (κ − S/C), 10⁻³), equations (10) to (12); C stays where S is not finite.

    Args:
        clip_norm: (k,) C.
        loss_sensitivity: (k,) S.
        penalty: κ.
        clip_learning_rate: η_C.
    """
    following = clip_norm - clip_learning_rate * (penalty - loss_sensitivity / clip_norm)
    return torch.where(following.isfinite(), following.clamp(min=SMALLEST_CLIP), clip_norm)


@dataclass(frozen=True)
class _Moo(ClippingRule):
    """MOO clipping with either kind of feedback.

    Attributes:
        clip_norm: C in a client's first step.
        kappa: κ, what a unit of C is worth in units of loss.
        lr: η_C.

    Raises:
        ValueError: If a value is out of range.
    """

    clip_norm: float
    kappa: float
    lr: float

    def __post_init__(self) -> None:
        require_positive(clip_norm=self.clip_norm, lr=self.lr)
        require_non_negative(kappa=self.kappa)

    lasting: ClassVar[tuple[str, ...]] = ("clip_norm",)

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {
            "clip_norm": like.new_full((clients,), self.clip_norm),
            "direction": like.new_zeros(len(like)).expand(clients, -1),  # one row in memory until it is learnt
        }

    def _followed(self, product: Tensor, state: ClippingState, step: Step) -> Tensor:
        # (k,) C after S = η · product, ⟨∇L, ∂g̃/∂C⟩; not for the first step of a round
        return moo_clip(state["clip_norm"], step.learning_rate * product, self.kappa, self.lr)


@dataclass(frozen=True)
class SampleMooClipping(_Moo):
    """Algorithm 1 as printed: C follows every sample, lines 13 to 17, by raw gradients, so that no guarantee holds.

    For the samples b = 1, 2, … of a batch in their order, S_b = η ⟨∇ℓ_b(θ'), ∂g̃/∂C⟩, then C_b is updated from
    C_{b−1}, and the gradient of sample b is clipped to C_b (line 21). The noise is scaled to the last C of the batch,
    C_B (line 23), though a sample that was clipped before may reach farther; C_B is what the next batch begins with.
    Every S_b is known before the recursion, since neither θ' nor ∂g̃/∂C changes within a batch: what runs sequentially
    are a few operations on the (k,) norms of all clients for each sample, in place of gradients.

    ∂g̃/∂C is the derivative at fixed noise of a common shift of all C_b: with directions u_b of clipped gradients
    g̃ = (U + Σ C_b u_b + C_B σξ)/L gives (Σ u_b + σξ)/L.
    """

    @override
    def law(self) -> ClippingLaw:
        return MooClip(feedback="published")

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        # Two sums of raw gradients a step, and their inner products with one vector
        if step.step == 0:
            falls = torch.zeros_like(samples.squared_norms[:, :, 0])
        else:
            falls = step.learning_rate * samples.inner(state["direction"])
        clips = moo_clips(state["clip_norm"], falls, samples.present, self.kappa, self.lr)
        last = clips[:, -1]
        weights = shrink(samples.norms(), clips)
        in_directions = (weights / clips).where(weights < 1, 0.0)
        rest = samples.weighted_sum(in_directions - weights / last[:, None])
        return Clipped(weights, last, {"clip_norm": last, "rest": rest})

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        last = state["clip_norm"]
        direction = torch.addcdiv(state["rest"], released, last[:, None]).div_(step.divisor[:, None])
        return {"clip_norm": last, "direction": direction}


def moo_clips(
    clip_norm: Tensor, loss_sensitivities: Tensor, present: Tensor, penalty: float, clip_learning_rate: float
) -> Tensor:
    """(k, B) C after each of the samples of a batch, in their order; a sample that is not there leaves it as it is.

    Args:
        clip_norm: (k,) C before the first.
        loss_sensitivities: (k, B) S of each sample.
        present: (k, B) bool.
        penalty: κ.
        clip_learning_rate: η_C.
    """
    falls = loss_sensitivities.where(present, torch.nan)
    if falls.device.type == "cpu":  # NumPy takes a fraction of the time of torch for a few numbers at a time
        return torch.from_numpy(_clips_on_host(clip_norm.numpy(), falls.numpy(), penalty, clip_learning_rate))
    clips = []
    for fall in falls.unbind(1):
        clip_norm = moo_clip(clip_norm, fall, penalty, clip_learning_rate)
        clips.append(clip_norm)
    return torch.stack(clips, dim=1)


def _clips_on_host(
    clip_norm: NDArray[np.floating], falls: NDArray[np.floating], penalty: float, clip_learning_rate: float
) -> NDArray[np.floating]:
    # The recursion of ``moo_clip`` in its order of operations, to the same bits
    clips = np.empty_like(falls.T, order="C")
    with np.errstate(all="ignore"):
        for fall, after in zip(falls.T, clips, strict=True):
            np.divide(fall, clip_norm, out=after)
            np.subtract(penalty, after, out=after)
            np.multiply(after, clip_learning_rate, out=after)
            np.subtract(clip_norm, after, out=after)
            known = np.isfinite(after)
            np.maximum(after, SMALLEST_CLIP, out=after)
            np.copyto(after, clip_norm, where=~known)
            clip_norm = after
    return clips.T


@dataclass(frozen=True)
class PublishedMooClipping(_Moo):
    """Feedback as published, once a step: S from raw gradients, so that C reveals private data and no guarantee holds.

    ∇L(θ') is the raw gradient of the next batch, and ∂g̃/∂C the exact derivative at fixed noise: with the sum over
    unclipped gradients U, g̃ = (U + C D)/L gives ∂g̃/∂C = D/L = (g̃ − U/L)/C. The new C holds at once, for all samples of
    the batch.
    """

    @override
    def law(self) -> ClippingLaw:
        return MooClip(feedback="published")

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        # Three sums of raw gradients a step instead of one.
        everyone = torch.ones_like(samples.squared_norms[:, :, 0])
        clip_norm = state["clip_norm"]
        if step.step > 0:
            gradient = samples.weighted_sum(everyone) / step.divisor[:, None]
            parts = in_parts(gradient, state["direction"])
            clip_norm = self._followed(torch.cat([(own * other).sum(1) for own, other in parts]), state, step)
        clipped = clip_to(samples, clip_norm, state)
        unclipped = samples.weighted_sum((clipped.weights == 1).to(everyone))
        return Clipped(clipped.weights, clip_norm, {"clip_norm": clip_norm, "unclipped": unclipped})

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        clip_norm = state["clip_norm"]
        direction = (released - state["unclipped"]).div_((step.divisor * clip_norm)[:, None])
        return {"clip_norm": clip_norm, "direction": direction}


@dataclass(frozen=True)
class PrivateMooClipping(_Moo):
    """Feedback from noised gradients only: S ≈ η ⟨g̃_{t+1}, g̃_t⟩/C, which is post-processing and costs nothing.

    Noised gradients stand in for ∇L(θ'), and g̃_t/C for ∂g̃/∂C, which is exact where every sample is clipped. The new
    C holds from the next step on.
    """

    @override
    def law(self) -> ClippingLaw:
        return MooClip(feedback="private")

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        # The last step's noised sum, divisor and C
        ones = like.new_ones(clients)
        return {
            "clip_norm": like.new_full((clients,), self.clip_norm),
            "sum": like.new_zeros(len(like)).expand(clients, -1),  # one row in memory until there is one
            "divisor": ones,
            "clipped_to": ones.clone(),
        }

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        return clip_to(samples, state["clip_norm"], state)

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        before = following = state["clip_norm"]
        if step.step > 0:
            last = state["sum"], state["divisor"], state["clipped_to"]
            following = self._followed(inner_products(released, step.divisor, *last), state, step)
        # Copies: a row of which only a part of the clients has a next step is changed in place
        kept = {"sum": released, "divisor": step.divisor.clone(), "clipped_to": before.clone()}
        return {"clip_norm": following, **kept}


def moo_clipping(
    clip_norm: float,
    feedback: Literal["published", "private"],
    update: Literal["sample", "step"],
    kappa: float,
    lr: float,
) -> ClippingRule:
    """MOO clipping rule with the feedback as published, for every sample or once a step, or from noised gradients.

    Raises:
        ValueError: Noised gradients say nothing of single samples.
    """
    match feedback, update:
        case "published", "sample":
            return SampleMooClipping(clip_norm, kappa, lr)
        case "published", "step":
            return PublishedMooClipping(clip_norm, kappa, lr)
        case "private", "step":
            return PrivateMooClipping(clip_norm, kappa, lr)
        case _:
            raise ValueError(f"update: found {update} with feedback {feedback}; allowed there: step")
