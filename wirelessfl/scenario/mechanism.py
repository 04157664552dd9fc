"""Differential privacy: the statement of ε, and the mechanisms of noise in local training or at the server."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field, model_validator

from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    Epsilon,
    External,
    NonNegativeSingle,
    PositiveSingle,
    Probability,
    Reference,
    Rule,
    Section,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.observer import Observer


class PrivacyStatement(Section):
    """Unit, adversary and δ of the run's ε."""

    delta: Annotated[float, Field(gt=0, lt=1)] = key(1.0e-5, "δ of (ε, δ)-differential privacy.")
    unit: Literal["sample", "client"] = key("sample", "What is protected: one sample or one client's whole data.")
    adjacency: Literal["add_remove", "replace"] = key(
        "add_remove", "Neighbours: one unit's contribution taken out (zero-out), or exchanged for another."
    )
    adversary: Literal["observer", "server", "individual"] = key(
        "server", "What the adversary sees: released models only, the received signal too, or every single upload."
    )
    colluding: Annotated[int, Field(ge=0, le=10**9)] = key(
        0, "Number of clients that reveal their own noise to the adversary."
    )
    observer: Observer | None = key(
        None, "An observer that also hears the clients, where it stands; the adversary is then observer. null: none."
    )

    @model_validator(mode="before")
    @classmethod
    def _observer_is_the_adversary(cls, given: Any) -> Any:
        # A place alone says against whom
        if isinstance(given, Mapping) and given.get("observer") is not None and "adversary" not in given:
            return {**given, "adversary": "observer"}
        return given

    def rules(self) -> list[Rule]:
        """A server sees more than any observer."""
        return [
            (
                self.observer is not None and self.adversary != "observer",
                "adversary",
                f"{self.adversary} with privacy.observer, who is another adversary",
                "observer, or observer: null",
            )
        ]


Ratio = Annotated[float, Field(gt=0, le=1e6)]


class FlatClip(CoreVariant, core="wirelessfl.privacy.clipping:FlatClipping"):
    """One public norm."""

    name: Literal["flat"] = key("flat", "Every gradient whose norm exceeds clip is scaled down to it.")


class PerLayerClip(CoreVariant, core="wirelessfl.privacy.clipping:per_layer_clipping"):
    """One norm for each layer."""

    name: Literal["per_layer"] = key(
        "per_layer", "The part of a gradient in each layer is scaled to a norm of its own."
    )
    norms: Annotated[tuple[PositiveSingle, ...], Field(strict=False, min_length=1)] | None = key(
        None, "Norms C_j of the layers in order [list]. null: clip/√(number of layers) for each."
    )


class MedianClip(
    CoreVariant,
    core="wirelessfl.privacy.clipping:FlatClipping",
    core_names={"proxy_samples": None, "calibration_rounds": None},
):
    """A norm calibrated on public data."""

    name: Literal["median"] = key(
        "median", "clip times the median gradient norm of public samples, in the first rounds."
    )
    proxy_samples: Count = key(100, "Public samples; they are taken from the training set and belong to no client.")
    calibration_rounds: Count = key(5, "Rounds in which the norm is calibrated again; afterwards it stays.")


class QuantileClip(CoreVariant, core="wirelessfl.privacy.clipping:QuantileClipping"):
    """A norm that follows a quantile (Andrew et al. 2021)."""

    name: Literal["quantile"] = key("quantile", "The norm follows a quantile of the gradient norms; clip is its start.")
    quantile: Probability = key(0.5, "Target share γ of the gradients within the norm.")
    lr: PositiveSingle = key(0.2, "Learning rate η_C of the norm's logarithm.")
    count_noise_std: PositiveSingle = key(1.0, "Noise σ_b on the centred count of gradients within the norm.")


class DynamicClip(
    CoreVariant, core="wirelessfl.privacy.clipping:dynamic_clipping", core_names={"multiplier_ratio": None}
):
    """Norm and noise multiplier on public schedules of their own (Du et al. 2021): both shrink, the noise with both."""

    name: Literal["dynamic"] = key("dynamic", "Norm and noise multiplier change from round to round by fixed factors.")
    clip_ratio: Ratio = key(0.5, "Norm after the last round over that in the first: 1/ρ_C of Du et al.")
    multiplier_ratio: Ratio = key(
        0.5,
        "Noise multiplier 1/μ after the last round over that in the first: 1/ρ_μ of Du et al., whose μ grows. Above 1 "
        "the last rounds cost least.",
    )


class MooClip(CoreVariant, core="wirelessfl.privacy.clipping:moo_clipping"):
    """A norm that balances loss and privacy (multi-objective adaptive clipping)."""

    name: Literal["moo"] = key(
        "moo", "Gradient descent of the norm C on L_model + κ C; it starts at clip and never falls below 1e-3."
    )
    feedback: Literal["published", "private"] = key(
        "private", "published: from raw gradients, no guarantee holds; private: from noised gradients only."
    )
    update: Literal["sample", "step"] = key(
        "step",
        "sample: C follows every sample of a batch as in Algorithm 1, the default with feedback: published; step: once "
        "a local step, never in the first of a round, and all that noised gradients allow.",
    )
    kappa: NonNegativeSingle = key(0.01, "Weight κ of the norm beside the model's loss.")
    lr: PositiveSingle = key(0.1, "Learning rate η_C of the norm.")

    @model_validator(mode="before")
    @classmethod
    def _update_as_published(cls, value: Any) -> Any:
        published = isinstance(value, dict) and value.get("feedback") == "published"
        return {"update": "sample", **value} if published else value

    def rules(self) -> list[Rule]:
        """Single samples are followed by raw gradients only."""
        wrong = self.feedback == "private" and self.update == "sample"
        return [(wrong, "update", "sample with feedback: private, which does not contain single samples", "step")]


class ExternalClipping(
    External,
    family="clipping",
    protocol="wirelessfl.privacy.clipping:ClippingRule",
    check="wirelessfl.privacy.clipping:check_clipping_rule",
    context="wirelessfl.assembly.mechanism:PrivacyContext",
):
    """A clipping rule of the user's own."""

    name: Reference = key(
        ...,
        "Importable clipping rule, as package.module:Class; no guarantee holds unless its law states what it reveals.",
    )


Clipping = Annotated[
    FlatClip | PerLayerClip | MedianClip | QuantileClip | DynamicClip | MooClip | ExternalClipping,
    Family("name", default="flat"),
]


class NoMechanism(Section):
    """No noise and no clipping of gradients."""

    mechanism: Literal["none"] = key("none", "No noise is added in training.")


class GradientNoise(CoreVariant, exclusive=(("noise_multiplier", "epsilon"),), otherwise={"noise_multiplier": 1.0}):
    """Base of the mechanisms with a noise multiplier."""

    mechanism: str = key("", "The mechanism.")
    unit: Literal["sample", "client"] = key(
        "sample", "sample: every client noises its gradients; client: the server noises the sum of clipped updates."
    )
    sampling: Literal["poisson", "shuffle"] = key(
        "poisson", "How mini-batches are drawn: each sample independently, or from a shuffled order."
    )
    clip: PositiveSingle | None = key(
        1.0,
        "Norm C to which a gradient (unit: client: an update) is clipped. null, with unit: client only: no clipping.",
    )
    gradient_clip: PositiveSingle | None = key(
        None,
        "With unit: client, norm to which the gradient of every sample is clipped in local training (Algorithm 2 of "
        "the wavelet paper); with clip: null the noise is scaled to it. null: gradients are not clipped there.",
    )
    noise_multiplier: NonNegativeSingle | None = key(
        None, "Standard deviation of the noise divided by clip; 0 only clips. Default 1 without epsilon."
    )
    epsilon: Epsilon | None = key(None, "ε at privacy.delta over the whole run that the multiplier is calibrated to.")
    target: Literal["accounted", "published"] = key("accounted", "Which ε the noise is calibrated to.")
    clipping: Clipping = key(FlatClip(), "How the clipping norm is chosen.")

    def arguments(self) -> dict[str, Any]:
        """None of these keys: the noise comes with the context."""
        return {}

    def rules(self) -> list[Rule]:
        """Gradients are clipped, and updates by rules that need no gradients."""
        unclipped, key, rule, central = self.clip is None, "clipping.name", self.clipping, self.unit == "client"
        wrong = central and not isinstance(rule, FlatClip | DynamicClip)
        why = "a norm, because noise without clipping gives no guarantee"
        of_samples = self.gradient_clip is not None and not central
        return [
            (
                of_samples,
                "gradient_clip",
                f"{self.gradient_clip} with unit: sample",
                "null: clip is the norm of a gradient",
            ),
            (unclipped and not central, "clip", "null with unit: sample", why),
            (unclipped and not isinstance(rule, FlatClip), key, f"{rule.name} with clip: null", "flat"),
            (wrong, key, f"{rule.name} with unit: client", "flat | dynamic"),
        ]


class GaussianNoise(GradientNoise, core="wirelessfl.privacy.mechanisms:GaussianMechanism"):
    """DP-SGD, DP-Adam, DP-AdaGrad; with unit: client DP-FedAvg."""

    mechanism: Literal["gaussian"] = key("gaussian", "Gaussian noise (DP-SGD; with unit: client DP-FedAvg).")


class WaveletNoise(GradientNoise, core="wirelessfl.privacy.mechanisms:HaarMechanism"):
    """The same with noise on Haar wavelet coefficients: DP-SGD-WAV, DP-FedAvg-WAV."""

    mechanism: Literal["wavelet"] = key("wavelet", "Gaussian noise on Haar coefficients (DP-SGD-WAV, DP-FedAvg-WAV).")
    clip_domain: Literal["coefficients", "weighted", "gradient"] = key(
        "coefficients",
        "The norm that is clipped: of the Haar coefficients, of the weighted ones, or of the gradient or update as it "
        "is. Not given, as published: coefficients (Algorithm 1), with unit: client gradient (Algorithm 2).",
    )
    reading: Literal["algorithm_1", "lemma_2"] = key("algorithm_1", "Which claim of the paper counts as published.")

    @model_validator(mode="before")
    @classmethod
    def _clip_as_published(cls, value: Any) -> Any:
        central = isinstance(value, dict) and value.get("unit") == "client"
        return {"clip_domain": "gradient", **value} if central else value

    def arguments(self) -> dict[str, Any]:
        """The norm that is clipped, and the claim."""
        return {"clip_domain": self.clip_domain, "reading": self.reading}

    def rules(self) -> list[Rule]:
        """Also, no rule looks at layers."""
        layers, found = isinstance(self.clipping, PerLayerClip), "per_layer with wavelets, which mix the layers"
        by_gradients = self.unit == "client" and self.clip is None and self.gradient_clip is not None
        other = by_gradients and self.clip_domain != "gradient"
        return [
            *super().rules(),
            (layers, "clipping.name", found, "another rule"),
            (other, "clip_domain", f"{self.clip_domain} with clip: null and a gradient_clip", "gradient, its norm"),
        ]


class Zcdp(
    CoreVariant,
    core="wirelessfl.privacy.mechanisms:MeanGaussianMechanism",
    exclusive=(("noise_std", "epsilon"),),
    otherwise={"noise_std": 0.1},
):
    """Noise on the mean of a mini-batch (zCDP with secure aggregation)."""

    mechanism: Literal["zcdp"] = key("zcdp", "Gaussian noise of absolute size on the mean of the clipped gradients.")
    clip: PositiveSingle = key(1.0, "Norm G to which a gradient is clipped.")
    noise_std: NonNegativeSingle | None = key(None, "Standard deviation σ; default 0.1 without epsilon.")
    epsilon: Epsilon | None = key(None, "ε at privacy.delta over the whole run that noise_std is calibrated to.")
    target: Literal["accounted", "published"] = key("accounted", "Which ε the noise is calibrated to.")

    def arguments(self) -> dict[str, Any]:
        """None of these keys: the noise comes with the context."""
        return {}


class ExternalMechanism(
    External,
    family="mechanism",
    protocol="wirelessfl.privacy.mechanisms:NoiseMechanism",
    check="wirelessfl.privacy.mechanisms:check_noise_mechanism",
    context="wirelessfl.assembly.mechanism:PrivacyContext",
):
    """A noise mechanism of the user's own, at the clients."""

    mechanism: Reference = key(
        ...,
        "Importable noise mechanism, as package.module:Class; no guarantee holds unless it provides a release.",
    )
    unit: Literal["sample"] = key("sample", "Noise from outside is added at the clients, to gradients of samples.")
    sampling: Literal["poisson", "shuffle"] = key(
        "poisson", "How mini-batches are drawn: each sample independently, or from a shuffled order."
    )
    clip: PositiveSingle = key(1.0, "Norm C to which a gradient is clipped.")
    clipping: Clipping = key(FlatClip(), "How the clipping norm is chosen.")

    def rules(self) -> list[Rule]:
        """Clipping has one norm, and no noise of its own."""
        rule, allowed = self.clipping, "flat | median | quantile | moo | package.module:Class"
        wrong, found = isinstance(rule, PerLayerClip | DynamicClip), f"{rule.name} with a mechanism from outside"
        return [(wrong, "clipping.name", found, allowed)]


Mechanism = Annotated[
    NoMechanism | GaussianNoise | WaveletNoise | Zcdp | ExternalMechanism, Family("mechanism", default="none")
]


def noises_locally(mechanism: Mechanism) -> bool:
    """Whether clients add noise in their local training."""
    return not (noised_by_server(mechanism) or isinstance(mechanism, NoMechanism))


def noised_by_server(mechanism: Mechanism) -> TypeGuard[GaussianNoise | WaveletNoise]:
    """Whether a trusted server adds the noise, to the sum of updates that it clips (``unit: client``)."""
    return isinstance(mechanism, GradientNoise) and mechanism.unit == "client"
