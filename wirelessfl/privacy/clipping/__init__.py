"""Clipping rules: how far the gradient of one sample may reach. Importing this needs torch."""

from wirelessfl.privacy.clipping.adaptive import (
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    moo_clip,
    moo_clipping,
)
from wirelessfl.privacy.clipping.base import (
    Clipped,
    ClippingRule,
    ClippingState,
    Constant,
    Geometric,
    Memoryless,
    Samples,
    Schedule,
    Step,
    shrink,
)
from wirelessfl.privacy.clipping.conformance import check_clipping_rule
from wirelessfl.privacy.clipping.flat import (
    DynamicClipping,
    FlatClipping,
    PerLayerClipping,
    dynamic_clipping,
    per_layer_clipping,
)

__all__ = [
    "Clipped",
    "ClippingRule",
    "ClippingState",
    "Constant",
    "DynamicClipping",
    "FlatClipping",
    "Geometric",
    "Memoryless",
    "PerLayerClipping",
    "PrivateMooClipping",
    "PublishedMooClipping",
    "QuantileClipping",
    "Samples",
    "Schedule",
    "Step",
    "check_clipping_rule",
    "dynamic_clipping",
    "moo_clip",
    "moo_clipping",
    "per_layer_clipping",
    "shrink",
]
