"""Parts of a simulation that the games of an audit know; all others are refused by name."""

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.learning.selection import SelectAll, SelectPoisson, SelectUniform
from wirelessfl.privacy import (
    AirRelease,
    BareRelease,
    DpSgdRelease,
    Release,
    ServerNoiseRelease,
    UnvouchedRelease,
    ZcdpRelease,
)
from wirelessfl.privacy.clipping import (
    DynamicClipping,
    FlatClipping,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
)
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism

_KNOWN_SELECTIONS = (SelectAll, SelectPoisson, SelectUniform)
_KNOWN_CLIPPING = (
    *(FlatClipping, DynamicClipping, PerLayerClipping),
    *(PrivateMooClipping, PublishedMooClipping, QuantileClipping),
)
_KNOWN_NOISE = (GaussianMechanism, HaarMechanism, MeanGaussianMechanism)
_KNOWN_RELEASES = (AirRelease, BareRelease, DpSgdRelease, ServerNoiseRelease, ZcdpRelease)


def require_known_releases(releases: list[Release]) -> None:
    """Refusal of records that no game knows: they stand for mechanisms that would be played as others.

    Raises:
        InfeasibleError: one is of such a kind.
    """
    for release in releases:
        if isinstance(release, UnvouchedRelease):
            raise InfeasibleError(f"this scenario cannot be audited: {release.reason}, of which no game is known")
        if type(release) not in _KNOWN_RELEASES:
            name = type(release).__name__
            raise InfeasibleError(
                f"this scenario cannot be audited: no game knows what a record of kind {name} protects"
            )


def _require_known(what: str, part: object, known: tuple[type, ...]) -> None:
    if not isinstance(part, known):
        raise InfeasibleError(f"this scenario cannot be audited: no game knows the {what} {type(part).__name__}")


def require_known_selection(selection: object) -> None:
    """Refusal of a selection that no game knows.

    Raises:
        InfeasibleError: it is of such a kind.
    """
    _require_known("selection", selection, _KNOWN_SELECTIONS)


def require_known_gradients(gradients: PrivateGradients) -> None:
    """Refusal of a clipping rule or a noise mechanism that no game knows.

    Raises:
        InfeasibleError: one is of such a kind.
    """
    _require_known("clipping rule", gradients.clipping, _KNOWN_CLIPPING)
    _require_known("noise mechanism", gradients.noise, _KNOWN_NOISE)
