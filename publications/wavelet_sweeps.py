"""What is tuned for the comparisons of the paper on Haar wavelets."""

from __future__ import annotations

from typing import Any

from publications.studies import Size
from publications.sweep_keys import CLIP, GRADIENT_CLIP, LR, PRIVACY, WORDS
from publications.tuning import Sweep, TunedMethod

_NOISES: dict[str, dict[str, Any]] = {
    "plain": {"mechanism": "gaussian"},
    "dynamic": {
        "mechanism": "gaussian",
        "clipping": {"name": "dynamic", "clip_ratio": 0.5, "multiplier_ratio": 0.5},
    },
    "wavelet": {"mechanism": "wavelet"},
}
"""The methods of Figures 7 to 12, as published."""
_SIGMAS = (1.0, 1.5, 3.0)


def equal_epsilon(unit: str, size: Size) -> Sweep:
    """Plain and wavelet noise on MNIST at the accounted ε that the paper states for σ = 1."""
    rates = {"sample": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), "client": (0.05, 0.1, 0.2, 0.4)}[unit]
    start = {LR: {"sample": 0.5, "client": 0.1}[unit], CLIP: 1.0}
    clips = (1.0, 2.0, 4.0, 8.0)
    grid = {CLIP: clips, LR: rates}
    spent: dict[str, Any] = {"epsilon": 6.38, "target": "accounted"}
    spent |= {"sampling": "poisson"} if unit == "sample" else {"unit": "client"}
    clipped: dict[str, tuple[str, dict[str, Any]]] = {
        "sample": ("wavelet, coefficients clipped", {"mechanism": "wavelet", "clip_domain": "coefficients"}),
        "client": ("wavelet, gradients clipped", {"mechanism": "wavelet", "clip_domain": "gradient"}),
    }
    methods = tuple(
        TunedMethod(name, {PRIVACY: {**mechanism, **spent}}, grid, start)
        for name, mechanism in (
            ("plain noise", {"mechanism": "gaussian"}),
            clipped[unit],
            ("wavelet, weighted", {"mechanism": "wavelet", "clip_domain": "weighted"}),
        )
    )
    change = {"data.dataset.name": "mnist"}
    title = f"MNIST, noise for a {unit}, at equal accounted ε = 6.38"
    return Sweep(unit, title, size, unit, len(clips) * len(rates), methods, change, WORDS)


def _on_mnist(name: str, title: str, study: str, budget: int, methods: tuple[TunedMethod, ...]) -> Sweep:
    """A sweep of the medium size: MNIST, the first eight of twenty rounds, one seed.

    Its study takes what won, for Fashion-MNIST and CIFAR-10 too.
    """
    change = {"data.dataset.name": "mnist", "rounds": 8}
    return Sweep(name, f"MNIST, {title}", "medium", study, budget, methods, change, WORDS, seeds=(1001,), reported=0)


def sigma_rates() -> Sweep:
    """The learning rate of every method of Fig. 7 at each σ, for the medium size, whose 3,000 steps bear a smaller one.

    At 0.5, which the base has for the 60 steps of the small size, plain noise fails.
    """
    rates = (0.016, 0.032, 0.063, 0.125, 0.25, 0.5)
    # The first of four: less noise bears larger steps
    first = {
        "plain": {1.0: 1, 1.5: 0, 3.0: 0},
        "dynamic": {1.0: 2, 1.5: 1, 3.0: 0},
        "wavelet": dict.fromkeys(_SIGMAS, 2),
    }
    methods = tuple(
        TunedMethod(
            f"{name}, σ = {sigma:g}",
            {PRIVACY: {**noise, "sampling": "poisson", "clip": 1.0, "noise_multiplier": sigma}},
            {LR: rates[first[name][sigma] :][:4]},
            {LR: 0.125},
        )
        for sigma in _SIGMAS
        for name, noise in _NOISES.items()
    )
    return _on_mnist("rates", "noise for a sample, at equal σ", "sample", 4, methods)


def client_rates() -> Sweep:
    """Clip and learning rate of every method of Fig. 10 at each z, for the medium size.

    Where all updates are longer than C, C is the length of a step.
    """
    clips, rates = (0.5, 1.0, 2.0, 4.0), (0.025, 0.05, 0.1, 0.2)
    # The first of three norms, and the first of three rates: less noise bears longer steps
    first = {
        "plain": {1.0: (1, 1), 1.5: (0, 0), 3.0: (0, 0)},
        "dynamic": dict.fromkeys(_SIGMAS, (1, 0)),
        "wavelet": {1.0: (1, 1), 1.5: (1, 1), 3.0: (0, 0)},
    }
    methods = tuple(
        TunedMethod(
            f"{name}, z = {z:g}",
            {PRIVACY: {**noise, "unit": "client", "noise_multiplier": z}},
            {CLIP: clips[norm : norm + 3], LR: rates[rate : rate + 3]},
            {CLIP: 1.0, LR: 0.1},
        )
        for z in _SIGMAS
        for name, noise in _NOISES.items()
        for norm, rate in (first[name][z],)
    )
    return _on_mnist("client-rates", "noise for a client, at equal z", "client", 9, methods)


def gradient_rates() -> Sweep:
    """Clip and learning rate of Algorithm 2 with either noise at each z, for the medium size.

    Where all gradients are longer than C a step is C times the rate, and the noise grows with C alone: half of C with
    twice the rate is the same step with half the noise, and plain noise wants the least C. All have the same grid.
    """
    grid = {GRADIENT_CLIP: (0.5, 1.0, 2.0), LR: (0.8, 1.6, 3.2, 6.4)}
    private: dict[str, Any] = {"unit": "client", "clip": None, "sampling": "shuffle"}
    methods = tuple(
        TunedMethod(
            f"{name}, z = {z:g}",
            {PRIVACY: {**_NOISES[name], **private, "noise_multiplier": z}},
            grid,
            {GRADIENT_CLIP: 1.0, LR: 1.6},
        )
        for z in _SIGMAS
        for name in ("plain", "wavelet")
    )
    title = "gradients clipped and noise for a client, at equal z"
    return _on_mnist("gradient-rates", title, "client-gradients", 12, methods)


def median_rates() -> Sweep:
    """The learning rate of either noise at each σ with the median norm as C, for the medium size."""
    rates = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.063, 0.125, 0.25)
    # The first of four: less noise bears larger steps
    first = {"plain": {1.0: 2, 1.5: 1, 3.0: 0}, "wavelet": {1.0: 5, 1.5: 5, 3.0: 3}}
    private: dict[str, Any] = {"sampling": "poisson", "clip": 1.0, "clipping": {"name": "median"}}
    methods = tuple(
        TunedMethod(
            f"{name}, σ = {sigma:g}",
            {PRIVACY: {**_NOISES[name], **private, "noise_multiplier": sigma}},
            {LR: rates[first[name][sigma] :][:4]},
            {LR: rates[first[name][sigma] + 1]},
        )
        for sigma in _SIGMAS
        for name in ("plain", "wavelet")
    )
    return _on_mnist("median-rates", "median norm, at equal σ", "median", 4, methods)


def optimizer_rates() -> Sweep:
    """The learning rate of DP-Adam and DP-AdaGrad with either noise in the medium size, at σ = 1.5.

    Both divide by what they have seen of the gradients' size, noise included, so that one rate serves all σ.
    """
    noises = {"plain": "gaussian", "wavelet": "wavelet"}
    rates = {"adam": (0.001, 0.003, 0.01, 0.03), "adagrad": (0.003, 0.01, 0.03, 0.1)}
    private: dict[str, Any] = {"sampling": "poisson", "clip": 1.0, "noise_multiplier": 1.5}
    methods = tuple(
        TunedMethod(
            f"{words}, {noise}",
            {"training.optimizer": {"name": name}, PRIVACY: {"mechanism": mechanism, **private}},
            {LR: rates[name]},
            {LR: 0.03},
        )
        for name, words in (("adam", "Adam"), ("adagrad", "AdaGrad"))
        for noise, mechanism in noises.items()
    )
    return _on_mnist("optimizers", "DP-Adam and DP-AdaGrad at σ = 1.5", "optimizers", 4, methods)
