"""Power control over the air: gains of server and clients, and the theorem that states an ε for them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from wirelessfl.scenario.base import (
    CoreVariant,
    Epsilon,
    External,
    Gain,
    Norm,
    PositiveSingle,
    Reference,
    Says,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.shape import ByShape

Theorem = Literal["cross_layer", "privacy_for_free", "none"]


class Policy(CoreVariant):
    """Base of the power controls: facts for the ledger and the uplink before the object is made."""

    theorem: ClassVar[Theorem] = "none"
    """Whose theorem states its published ε."""

    silences: ClassVar[bool] = False
    """Whether it says itself who is in too deep a fade to send."""

    @override
    def named_files(self) -> dict[str, str]:
        return {name: text for name, text in super().named_files().items() if text != MEASURED}


class CrossLayer(Policy, core="wirelessfl.assembly.power_control:cross_layer", theorem="cross_layer"):
    """Cross-layer power control with back-off (DESIGN §3)."""

    policy: Literal["cross_layer"] = key("cross_layer", "Channel inversion with a back-off that keeps the budget.")
    server_gain: Annotated[Literal["auto"] | Gain, ByShape()] = key(
        "auto", "α_u; auto: the gain at which channel noise alone meets epsilon at privacy.delta, as published."
    )
    epsilon: Epsilon = key(6.52, "Published ε that server_gain: auto aims at; unused otherwise.")
    backoff: Literal["bound", "actual"] = key(
        "bound", "Back-off from the clip norm (bound: public) or from the update's own norm (actual: private data)."
    )
    rescale: Literal["clip_norm", "none"] = key(
        "clip_norm", "clip_norm: the server multiplies what it received by τ; none: as published, without that factor."
    )


class LowerGain(Policy, core="wirelessfl.assembly.power_control:lower_gain", theorem="cross_layer"):
    """The baseline of every jammer: lower α_u until the channel's own noise is private enough."""

    policy: Literal["lower_gain"] = key(
        "lower_gain", "As cross_layer, with α_u lowered until the channel noise is enough: privacy without a jammer."
    )
    epsilon: Epsilon = key(2.0, "ε that the channel noise alone has to meet at privacy.delta.")
    calibration: Literal["theorem", "exact"] = key(
        "theorem", "theorem: published sensitivity 1/|D|; exact: accounted sensitivity of each round's clients."
    )
    rescale: Literal["clip_norm", "none"] = key(
        "clip_norm", "clip_norm: the server multiplies what it received by τ; none: as published, without that factor."
    )


class PrivacyForFree(Policy, core="wirelessfl.assembly.power_control:privacy_for_free", theorem="privacy_for_free"):
    """Liu and Simeone, JSAC 2021."""

    policy: Literal["privacy_for_free"] = key(
        "privacy_for_free",
        "Liu and Simeone: α_u spends ε by the channel noise alone, as far as the weakest client's power allows.",
    )
    epsilon: Epsilon = key(6.52, "ε, by their theorem, of the whole run at privacy.delta.")
    schedule: Literal["static", "adaptive"] = key(
        "adaptive", "static: the same share in every round; adaptive: their convex program, solved anew each round."
    )
    contraction: Annotated[float, Field(gt=0, le=1)] = key(
        0.99, "adaptive: κ = 1 − μ/L, by which a round shrinks the distance to the optimum; later rounds weigh more."
    )


class FullPower(Policy, core="wirelessfl.radio:FullPower"):
    """Full power of every client."""

    policy: Literal["full_power"] = key("full_power", "Every client at full power; only the phase is corrected.")


class TruncatedInversion(Policy, core="wirelessfl.assembly.power_control:truncated_inversion", silences=True):
    """Zhu, Wang, Huang, TWC 2020."""

    policy: Literal["truncated_inversion"] = key(
        "truncated_inversion", "Channel inversion above faults.fade_threshold, silence below."
    )
    power_limit: Literal["peak", "average"] = key(
        "peak", "P_i limits every transmission, or its mean over the fading (Zhu et al.): 7.4 dB more at threshold 0.1."
    )


class WeakestInversion(Policy, core="wirelessfl.assembly.power_control:weakest_inversion", silences=True):
    """The scale of the weakest sender."""

    policy: Literal["weakest_inversion"] = key(
        "weakest_inversion", "The largest common scale that the weakest client above faults.fade_threshold can reach."
    )


MEASURED = "measured"
"""The word for norms of the round itself."""
Norms = Annotated[
    Annotated[tuple[Norm, ...], Field(min_length=1, strict=False)]
    | Annotated[str, Field(min_length=1), Says("measured, or the path of a file")],
    ByShape(),
]
"""Expected norms: a list, the word ``measured``, or a path."""
_NORMS = (
    "√(max_n E‖Δ_n‖²) by which a round's power is scaled, in the unit of clip: a list, one a round; a CSV file with "
    "round and norm; or measured: the largest norm of the round itself, which is private, so that no guarantee holds."
)


class Cotaf(Policy, core="wirelessfl.assembly.power_control:cotaf", silences=True, files=("expected_norms",)):
    """Sery, Shlezinger, Cohen, Eldar, TSP 2021."""

    policy: Literal["cotaf"] = key(
        "cotaf", "COTAF: x = √p_t (p_i/max p)(h_min/ĥ_i) Δ_i where |ĥ_i| ≥ h_min, else silent; P is kept on average."
    )
    expected_norms: Norms | None = key(None, f"{_NORMS} Required.")
    h_min: Gain | None = key(
        None, "Threshold on |ĥ|. null: √(faults.fade_threshold · least E|ĥ_i|² of the round's clients)."
    )


class Gbma(Policy, core="wirelessfl.assembly.power_control:gbma", files=("expected_norms",)):
    """Sery and Cohen, TSP 2020."""

    policy: Literal["gbma"] = key(
        "gbma", "x = √p_t (p_i/max p) e^{−j∠ĥ_i} Δ_i: the phase is corrected, the channel is not inverted."
    )
    expected_norms: Norms | None = key(None, f"{_NORMS} null: clip, which no update exceeds.")


class RisFl(Policy, core="wirelessfl.radio:RisFl"):
    """Liu, Yuan, Zhang, TWC 2021."""

    policy: Literal["ris_fl"] = key(
        "ris_fl",
        "RIS-FL: x = √η p_i (Δ_i − m_i)/ĥ_i at the largest common η that the variances allow; mean m_i and variance "
        "are told apart.",
    )
    variance_floor: PositiveSingle = key(
        1e-3, "Least variance over an update's coordinates, in the square of clip's unit; as in the released code."
    )


class NoCsi(Policy, core="wirelessfl.radio:NoCsi"):
    """Transmission without channel knowledge."""

    policy: Literal["no_csi"] = key(
        "no_csi", "Every client at full power, the channel left as it is: for schemes that work without its phase."
    )


class MinimumMse(Policy, core="wirelessfl.radio:MinimumMse"):
    """Cao, Zhu, Xu, Huang, TWC 2020."""

    policy: Literal["mmse"] = key(
        "mmse", "The scale with the least mean squared error; weak clients send at full power."
    )


class ExternalPowerControl(
    External,
    family="power_control",
    protocol="wirelessfl.radio:PowerControl",
    check="wirelessfl.radio.conformance:check_power_control",
    context="wirelessfl.assembly.power_control:PowerControlContext",
):
    """A policy of the user's own."""

    theorem: ClassVar[Theorem] = "none"
    silences: ClassVar[bool] = False

    policy: Reference = key(..., "Importable power-control policy, as package.module:Class.")


PowerControl = Annotated[
    CrossLayer
    | LowerGain
    | PrivacyForFree
    | FullPower
    | TruncatedInversion
    | WeakestInversion
    | Cotaf
    | Gbma
    | RisFl
    | MinimumMse
    | NoCsi
    | ExternalPowerControl,
    Family("policy", default="cross_layer"),
]
