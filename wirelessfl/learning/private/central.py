"""Client-level privacy at a trusted server: DP-FedAvg, DP-FedAvg-WAV, Dyn-DP-FedAvg."""

from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning.cohort import CohortBlock
from wirelessfl.privacy import ClipDomain, HaarNoise, NoAmplification, ServerNoiseRelease, WhiteNoise, padded_length
from wirelessfl.privacy.clipping import Schedule, shrink
from wirelessfl.privacy.mechanisms import (
    clip_by_haar_norm,
    haar_server_noise,
    server_noise_std,
    white_server_noise,
)
from wirelessfl.transfers import download


@dataclass(frozen=True)
class CentralNoise:
    """Every client's update is clipped to C, and the server adds noise of σ = zC/(qK) to Σ (p_i/q) Δ_i.

    In Algorithm 2 of the wavelet paper C is the norm of a sample's gradient, clipped in local training, and no update
    is clipped.

    Attributes:
        noise_multiplier: z in each round.
        clip: C of updates in each round; None clips none.
        sample_rate: q, the public probability of a client to be selected.
        selection: how clients are selected.
        count: K, the number of registered clients.
        wavelet: the domain in which updates are clipped where the noise is on Haar coefficients; None for white noise.
        reading: which claim of the wavelet paper counts as published.
        unamplified: why the sampling of clients amplifies nothing; None where it does.
        gradient_clip: C of gradients, which scales the noise where updates are not clipped; None clips none.
        descent: bound on the norm of an update by its clipped gradients; None where they give none. Without it and
            without ``clip`` nothing is proven.
    """

    noise_multiplier: Schedule
    clip: Schedule | None
    sample_rate: float
    selection: Literal["all", "poisson", "uniform"]
    count: int
    wavelet: ClipDomain | None = None
    reading: Literal["algorithm_1", "lemma_2"] = "algorithm_1"
    unamplified: NoAmplification | None = None
    gradient_clip: float | None = None
    descent: Schedule | None = None

    @property
    def bound(self) -> Schedule | None:
        """Bound on the norm of every client's update in each round; None where there is none."""
        return self.descent if self.clip is None else self.clip

    def clip_block(self, block: CohortBlock, round_index: int) -> CohortBlock:
        """A block of updates, each clipped to C of the round."""
        if self.clip is None:
            return block
        clip = self.clip.at(round_index)
        match self.wavelet:
            case "coefficients" | "weighted":
                updates, _ = clip_by_haar_norm(block.updates, clip, self.wavelet)
            case "gradient" | None:
                norms = torch.linalg.vector_norm(block.updates, dim=1)
                weights = shrink(norms, norms.new_full((), clip))[:, None]
                updates = (block.updates * weights).where(weights > 0, 0.0)
            case _:
                assert_never(self.wavelet)
        norm = download({"norm": torch.linalg.vector_norm(updates, dim=1)})["norm"].astype(np.float64)
        return replace(block, updates=updates, norm=norm)

    def noise_std(self, round_index: int) -> float:
        """σ on the aggregate in a round; where nothing is clipped C is taken as 1."""
        of_gradients = 1.0 if self.gradient_clip is None else self.gradient_clip
        clip = of_gradients if self.clip is None else self.clip.at(round_index)
        return server_noise_std(self.noise_multiplier.at(round_index), clip, self.sample_rate, self.count)

    def noise(self, dimension: int, round_index: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """(d,) noise for the aggregate of a round."""
        draw = white_server_noise if self.wavelet is None else haar_server_noise
        return draw(dimension, self.noise_std(round_index), generator)

    def release(self, round_index: int, clients: NDArray[np.int64], dimension: int) -> ServerNoiseRelease:
        """The record of a round for the ledger, also of one in which nobody takes part."""
        law = WhiteNoise() if self.wavelet is None else HaarNoise(padded_length(dimension), self.wavelet, self.reading)
        return ServerNoiseRelease(
            round_index,
            clients,
            published_multiplier=self.noise_multiplier.at(round_index),
            noise_std=self.noise_std(round_index),
            clip=None if self.bound is None else self.bound.at(round_index),
            clipped="gradients" if self.clip is None and self.gradient_clip is not None else "updates",
            sample_rate=self.sample_rate,
            selection=self.selection,
            noise=law,
            unamplified=self.unamplified,
        )
