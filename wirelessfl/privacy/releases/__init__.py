"""What a round released, one frozen record a mechanism: its published and its accounted cost are its methods.

To add a mechanism, write one record here that satisfies ``Release`` and list it in ``RELEASES``.
"""

from __future__ import annotations

from wirelessfl.privacy.releases.air import AirRelease
from wirelessfl.privacy.releases.bare import BareRelease
from wirelessfl.privacy.releases.base import Release

RELEASES: tuple[type[Release], ...] = (AirRelease, BareRelease)

__all__ = ["RELEASES", "AirRelease", "BareRelease", "Release"]
