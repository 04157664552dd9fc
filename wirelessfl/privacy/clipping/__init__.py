"""Clipping rules: bounds on the gradient of one sample. Importing this needs torch."""

from wirelessfl.privacy.clipping.adaptive import (
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    SampleMooClipping,
    moo_clip,
    moo_clipping,
    moo_clips,
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
    "SampleMooClipping",
    "Samples",
    "Schedule",
    "Step",
    "check_clipping_rule",
    "dynamic_clipping",
    "moo_clip",
    "moo_clipping",
    "moo_clips",
    "per_layer_clipping",
    "shrink",
]
