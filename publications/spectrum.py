"""When noise on Haar coefficients helps at equal accounted ε: by the levels on which gradients and errors lie.

Clipping ‖W∘H‖ to C and noising the coefficients with N(0, (σC/W)²) has the noise multiplier σ, as flat DP-SGD with
clip C has. In the orthonormal Haar basis a coordinate of level l weighs 2^(l/2) in that norm, the base coefficient
2^(L/2) = √m; its noise is σC divided by that weight. So a gradient with the share E_l of its squared norm on level l is
left with the squared norm C² / Σ 2^l E_l, while the share λ_l of the errors that count on level l shrinks by 2^l. At
equal ε and for equally large gradients, noise thus costs

    ratio = (Σ_l 2^l E_l) (Σ_l λ_l / 2^l)

times what it costs in flat DP-SGD. Where every error counts alike, λ_l is the share of the coordinates on level l, and
the second factor is 1/m² + Σ 4^−l, about a third. Where errors count as gradients do (λ = E: the curvature is the
Fisher information), the ratio is at least 1 by the inequality of Cauchy and Schwarz: then the transform never helps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from publications.figures import COLOURS, MARKERS
from publications.tables import Tables
from publications.texts import number_text
from wirelessfl.privacy import haar, haar_weights, inverse_haar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shares = NDArray[np.float64]
"""(L + 1,) shares of the base coefficient and of the levels 1 (finest) to L (coarsest); they add up to 1."""


def level_costs(levels: int) -> Shares:
    """(L + 1,) squared weights in the orthonormal basis: 2^L for the base coefficient, 2^l for level l."""
    return np.asarray(2.0 ** np.array([levels, *range(1, levels + 1)]), dtype=np.float64)


def level_shares(vectors: NDArray[np.floating[Any]]) -> Shares:
    """Shares of the squared norm on the levels, mean over vectors that all count alike.

    Args:
        vectors: (k, d); padded with zeros to m = 2^L elements, vectors of zeros left out.

    Raises:
        ValueError: no vector differs from zero.
    """
    count, dimension = vectors.shape
    length = 1 << max(dimension - 1, 0).bit_length()
    padded = np.zeros((count, length))
    padded[:, :dimension] = vectors
    lengths = haar_weights(length)  # also the number of elements that a coefficient spans
    energies = haar(padded) ** 2 * lengths
    total = energies.sum(axis=1)
    if not total.any():
        raise ValueError("all vectors are zero; a spectrum needs one that is not")
    shares = (energies[total > 0] / total[total > 0, None]).mean(axis=0)
    levels = length.bit_length() - 1
    finest_first = [shares[length >> level : 2 * (length >> level)].sum() for level in range(1, levels + 1)]
    return np.array([shares[0], *finest_first])


def white_shares(levels: int) -> Shares:
    """Shares of a gradient, or of errors, with the same part on every element: a half on level 1, and so on."""
    return np.array([2.0**-levels, *(2.0**-level for level in range(1, levels + 1))])


def on_level(level: int, levels: int) -> Shares:
    """All on one level; 0 is the base coefficient: every element the same."""
    shares: Shares = np.eye(levels + 1)[level]
    return shares


def prefix_sum_shares(levels: int) -> Shares:
    """Shares of white noise in the errors of all prefix sums: what range queries on a histogram suffer from."""
    length = 1 << levels
    basis = inverse_haar(np.eye(length))  # row j: the vector with coefficient 1 at j
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    energies = (np.cumsum(basis, axis=1) ** 2).sum(axis=1)
    per_level = [energies[length >> level : 2 * (length >> level)].sum() for level in range(1, levels + 1)]
    shares: Shares = np.array([energies[0], *per_level]) / energies.sum()
    return shares


def noise_ratio(gradients: Shares, errors: Shares | None = None) -> float:
    """What noise on Haar coefficients costs over flat noise at equal accounted ε; below 1 the transform helps.

    Args:
        gradients: Shares of the gradients of single samples, which are clipped.
        errors: Shares of the errors that count; None: every element counts alike.

    Raises:
        ValueError: of unequal length.
    """
    levels = len(gradients) - 1
    counted = white_shares(levels) if errors is None else errors
    if len(counted) != len(gradients):
        raise ValueError(f"{len(gradients)} shares of gradients, {len(counted)} of errors")
    costs = level_costs(levels)
    return float((costs @ gradients) * (counted / costs).sum())


def published_ratio(gradients: Shares, errors: Shares | None = None) -> float:
    """The same for clipping ‖H‖ instead of ‖W∘H‖, as published: at equal σ, and with no guarantee.

    Both factors shrink with the level then: (Σ 2^−l E_l) (Σ λ_l / 2^l), 1/9 for white gradients.
    """
    costs = level_costs(len(gradients) - 1)
    counted = white_shares(len(gradients) - 1) if errors is None else errors
    return float((gradients / costs).sum() * (counted / costs).sum())


def digits_gradients(steps: int, samples: int = 300) -> NDArray[np.float32]:
    """(samples, d) gradients of single samples: a perceptron with 32 neurons on the built-in digits.

    Args:
        steps: Gradient steps on all samples before, at learning rate 0.5.
        samples: How many, from the first on.
    """
    import torch
    from torch.func import grad, vmap

    from wirelessfl.learning import FlatModel, load_dataset, mlp

    examples = load_dataset("digits").train
    inputs, targets = examples.inputs[:samples], examples.targets[:samples]
    model = FlatModel(lambda: mlp((64,), 10, (32,)), (64,), 10)

    def loss(flat: torch.Tensor, one: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model.logits(flat, one[None]), target[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    parameters = model.initial(0)
    for _ in range(steps):
        parameters = parameters - 0.5 * gradients(parameters, inputs, targets).mean(0)
    return np.asarray(gradients(parameters, inputs, targets).detach().numpy())


def measured_spectra() -> dict[str, Shares]:
    """Spectra of real gradients: before training and after."""
    return {
        "digits, before training": level_shares(digits_gradients(0)),
        "digits, after 100 steps": level_shares(digits_gradients(100)),
    }


def spectrum_rows(tables: Tables) -> list[dict[str, Any]]:
    """``spectrum.csv``: gradient spectra, the errors that count, and what the transform makes of them."""
    levels = 12
    cases: list[tuple[str, str, Shares, Shares | None]] = [
        ("all on the finest level (neighbours opposite)", "every element", on_level(1, levels), None),
        ("all on level 2", "every element", on_level(2, levels), None),
        ("white", "every element", white_shares(levels), None),
        ("all elements alike", "every element", on_level(0, levels), None),
        ("white", "prefix sums", white_shares(levels), prefix_sum_shares(levels)),
        ("white", "as gradients (Fisher)", white_shares(levels), white_shares(levels)),
    ]
    for name, shares in measured_spectra().items():
        cases += [(name, "every element", shares, None), (name, "as gradients (Fisher)", shares, shares)]
    rows = []
    for gradient, errors, shares, counted in cases:
        ratio = noise_ratio(shares, counted)
        rows.append(
            {
                "gradients of samples": gradient,
                "errors that count": errors,
                "noise energy over flat": number_text(ratio, 3),
                "worth σ times": f"{np.sqrt(ratio):.3g}",
                "the transform": "helps" if ratio < 1 else "costs",
                "as published (no guarantee), worth σ times": f"{np.sqrt(published_ratio(shares, counted)):.3g}",
            }
        )
    return rows


def draw_spectra(shares_axes: Axes, ratio_axes: Axes) -> None:
    """Shares by level on the left, what they cost on the right."""
    levels = 12
    spectra = {
        "finest level only": on_level(1, levels),
        "white": white_shares(levels),
        **measured_spectra(),
    }
    for at, (label, shares) in enumerate(spectra.items()):
        places = np.arange(1, levels + 2)
        order = [*shares[1:], shares[0]]
        shares_axes.plot(places, order, label=label, color=COLOURS[at], marker=MARKERS[at], markersize=3, linewidth=1.0)
        ratio = noise_ratio(shares)
        ratio_axes.barh(-at, ratio - 1, left=1, color=COLOURS[at])
        ratio_axes.annotate(
            f"{ratio:.2g}",
            (ratio, -at),
            (3 if ratio > 1 else -3, 0),
            textcoords="offset points",
            ha="left" if ratio > 1 else "right",
            va="center",
            fontsize=7,
        )
    shares_axes.set_xticks([1, 4, 7, 10, 13], ["1", "4", "7", "10", "mean"])
    shares_axes.set_xlabel("level, finest first", fontsize=8)
    shares_axes.set_ylabel("share of the squared norm", fontsize=8)
    ratio_axes.set_xscale("log")
    ratio_axes.axvline(1.0, color="black", linewidth=0.8)
    ratio_axes.set_xlim(0.3, 100)
    ratio_axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    ratio_axes.set_yticks([])
    ratio_axes.set_xlabel("noise energy over flat noise", fontsize=8)
