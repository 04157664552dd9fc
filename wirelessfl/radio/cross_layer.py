"""Cross-layer power control.

Mao, Yin, Yener, Liu: "Providing Differential Privacy for Federated Learning Over Wireless: A Cross-layer Framework".
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import AirInterface, Transmission, TransmitPlan, clamped_inversion


@dataclass(frozen=True)
class CrossLayer:
    """Every client inverts its channel towards a fixed α_u and backs off by s_i where its budget is too small.

    Attributes:
        server_gain: α_u, the same in every round.
        backoff: "bound" uses the clip τ and is public; "actual" uses the realised norm, which is private data.
        rescale: "clip_norm" undoes the 1/τ at the server; "none" is the published form.
    """

    server_gain: float
    backoff: Literal["bound", "actual"] = "bound"
    rescale: Literal["clip_norm", "none"] = "clip_norm"

    def __post_init__(self) -> None:
        if not 0 < self.server_gain < np.inf:
            raise ValueError(f"server_gain must be positive and finite, not {self.server_gain}")
        if self.backoff not in ("bound", "actual"):
            raise ValueError(f"backoff must be 'bound' or 'actual', not {self.backoff!r}")
        if self.rescale not in ("clip_norm", "none"):
            raise ValueError(f"rescale must be 'clip_norm' or 'none', not {self.rescale!r}")

    non_expansive: ClassVar[bool] = True
    """Backing off by the realised norm projects α_u p_i Δ_i/(ĥ_i τ) onto the ball of radius √P_i."""

    @property
    def needs_norms(self) -> bool:
        """True for ``backoff="actual"``."""
        return self.backoff == "actual"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u as configured; only a client whose estimate is exactly zero is silent."""
        receive_scale = self.server_gain / air.clip if self.rescale == "clip_norm" else self.server_gain
        return TransmitPlan(self.server_gain, receive_scale, air.clip, silent=links.estimate == 0)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Clamped inversion with the bound or with the realised norms (required for "actual")."""
        if not self.needs_norms:
            return clamped_inversion(plan, links)
        if norms is None:
            raise ValueError("backoff 'actual' needs the realised norms of the updates")
        return clamped_inversion(plan, links, norms)
