"""The keys of a scenario that are tuned, and short words for them."""

from __future__ import annotations

from collections.abc import Mapping

LR, BATCH, PRIVACY = "training.optimizer.lr", "training.batch_size", "training.privacy"
CLIP, STEPS, ALGORITHM = "training.privacy.clip", "training.steps", "training.algorithm"
CLIPPING, GRADIENT_CLIP = "training.privacy.clipping", "training.privacy.gradient_clip"
KAPPA, NORM_RATE = f"{CLIPPING}.kappa", f"{CLIPPING}.lr"
ACTIVATION, SLOPE = "model.activation", "model.activation.T"
MU, TAU = "training.algorithm.mu", "uplink.clip"

WORDS: Mapping[str, str] = {
    LR: "learning rate",
    BATCH: "batch",
    CLIP: "C",
    GRADIENT_CLIP: "C",
    KAPPA: "κ",
    NORM_RATE: "η_C",
    f"{CLIPPING}.clip_ratio": "ratio of C",
    f"{CLIPPING}.multiplier_ratio": "ratio of z",
    SLOPE: "T",
    MU: "μ",
    TAU: "τ",
}
