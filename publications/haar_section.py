"""Section 4.3 of the wavelet paper: its worked example, its weights, and what clipping by levels would guarantee.

With two elements all of it can be worked out by hand. A gradient (a, b) has H_0 = (a + b)/2 and H_1 = (a − b)/2, both
of weight 2, so ‖H‖ = ‖(a, b)‖/√2: clipping the coefficients to C clips the gradient to √2 C. The noise n_0 ± n_1 of the
elements has the variance 2 (σC/2)² = σ²C²/2, and is uncorrelated: plain noise of standard deviation σC/√2. So the
multiplier is (σC/√2)/(√2 C) = σ/2, and the guarantee that of DP-SGD with half the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import wirelessfl as wfl
from publications.claims import Claim, Verdict, verdict
from publications.effects import ratio
from publications.paper import PaperTable
from publications.tables import Tables
from publications.texts import number_text
from wirelessfl.privacy import gaussian_epsilon, haar, haar_weights, inverse_haar

Array = NDArray[np.float64]

EXAMPLE = (4, 8, 1, 9, 8, 4, 5, 3)
TABLE_2 = (5.25, 0.25, 0.5, 1.0, -2.0, -4.0, 2.0, 1.0)
"""A and its coefficients in the paper: the base, then levels 3, 2 and 1."""

PRINTED_WEIGHTS = (8, 2, 2, 2, 4, 4, 8)
PRINTED_PADDING = (1, 2, 3, 4, 5, 0, 0)
"""W of [H_0 … H_7], and what [1, 2, 3, 4, 5] becomes."""

DELTA = 1e-5
LENGTHS = (2, 8, 8192)


def element(place: int, coefficients: Array) -> float:
    """Eq. (6): H_0 and the chain of details above an element, + where it lies on the left, − on the right."""
    length, value = len(coefficients), float(coefficients[0])
    detail, width = 1, length
    while width > 1:
        left = place % width < width // 2
        value += float(coefficients[detail]) * (1 if left else -1)
        detail, width = 2 * detail + (0 if left else 1), width // 2
    return value


def sensitivities(length: int) -> dict[str, float]:
    """How far one gradient moves the coefficients in units of their noise σC/W, by rule of clipping; over 1/σ.

    Each is the most that the rule allows: all of C on the base coefficient; C on every level, for details on one of
    them each; C/W on every level.
    """
    weights = haar_weights(length)
    levels = np.array([length, *(2.0**level for level in range(1, length.bit_length()))])
    return {
        "‖H‖ ≤ C (Algorithm 1)": float(weights.max()),
        "C on every level (section 4.3)": float(np.sqrt((levels**2).sum())),
        "C/W on every level": float(np.sqrt(len(levels))),
        "‖W∘H‖ ≤ C": 1.0,
    }


def clipping_rows() -> list[dict[str, Any]]:
    """``clipping-rules.csv``: the true multiplier by rule, and ε of one release at σ = 1."""
    return [
        {
            "m": length,
            "clipped": rule,
            "true multiplier": "σ" if moved == 1 else f"σ/{number_text(moved, 4)}",
            "ε of one release, σ = 1": wfl.epsilon_text(float(gaussian_epsilon(moved, DELTA))),
            "that of DP-SGD": wfl.epsilon_text(float(gaussian_epsilon(1.0, DELTA))),
        }
        for length in LENGTHS
        for rule, moved in sensitivities(length).items()
    ]


def _worked_example(tables: Tables) -> Verdict:
    found = np.asarray(haar(np.array(EXAMPLE, dtype=np.float64)))
    back = [element(place, found) for place in range(len(EXAMPLE))]
    return verdict(
        bool(np.allclose(found, TABLE_2)) and bool(np.allclose(back, EXAMPLE)),
        f"coefficients {', '.join(f'{one:g}' for one in found)}; by eq. (6) back to "
        f"{', '.join(f'{one:g}' for one in back)}",
        "the chain of the third element is H_2, H_5, H_7 as stated: 5.25 + 0.25 − 0.5 − 4 = 1",
    )


def _lists(tables: Tables) -> Verdict:
    weights, length = sorted(haar_weights(len(EXAMPLE))), 1 << (5 - 1).bit_length()
    return verdict(
        sorted(PRINTED_WEIGHTS) == weights and len(PRINTED_PADDING) == length,
        f"{len(PRINTED_WEIGHTS)} weights for {len(EXAMPLE)} coefficients, three for the four of level 1; "
        f"[1, 2, 3, 4, 5] is padded to {len(PRINTED_PADDING)} elements, a power of two is {length}",
        "misprints: one weight and one zero are missing; the library has [8, 8, 4, 4, 2, 2, 2, 2] from coarse to fine",
    )


def _guarantee(tables: Tables) -> Verdict:
    told, holds = [], []
    for rule in list(sensitivities(2))[:3]:
        moved = {length: sensitivities(length)[rule] for length in LENGTHS}
        holds.append(max(moved.values()) <= 1)
        told.append(f"{rule}: " + ", ".join(f"σ/{number_text(value, 4)}" for value in moved.values()))
    return verdict(
        all(holds),
        f"true multiplier for m = {', '.join(map(str, LENGTHS))}: {'; '.join(told)}",
        "a gradient that is the same everywhere has only a base coefficient, whose noise is σC/m; ‖W∘H‖ ≤ C "
        "would keep σ",
        ratio(
            sensitivities(LENGTHS[-1])["‖H‖ ≤ C (Algorithm 1)"],
            f"σ over the true multiplier at once, m = {LENGTHS[-1]}",
        ),
    )


def _two_elements(tables: Tables) -> Verdict:
    basis = np.asarray(inverse_haar(np.eye(2)))
    noise = basis.T @ np.diag((1 / haar_weights(2)) ** 2) @ basis  # σ = C = 1
    grid = np.stack([np.cos(angles := np.linspace(0, 2 * np.pi, 73)), np.sin(angles)], axis=1)
    shrunk = np.linalg.norm(np.asarray(haar(grid)), axis=1)
    plain = bool(np.allclose(noise, noise[0, 0] * np.eye(2))) and bool(np.allclose(shrunk, shrunk[0]))
    multiplier = float(np.sqrt(noise[0, 0]) * shrunk[0])
    return verdict(
        plain and abs(multiplier - 0.5) < 1e-12,
        f"noise {np.sqrt(noise[0, 0]):.4g} σC an element, uncorrelated, on gradients clipped to {1 / shrunk[0]:.4g} C: "
        f"multiplier {multiplier:.3g} σ",
        "‖H‖ = ‖g‖/√2, and n_0 ± n_1 has the variance σ²C²/2",
        ratio(multiplier / 0.5, "exact over claimed multiplier"),
    )


SECTION_CLAIMS = (
    Claim(
        "The worked example of the transform, and eq. (6) that undoes it.",
        "4.3, Table 2, eq. (6)",
        _worked_example,
        everywhere=True,
    ),
    Claim("Its lists of weights and of padded elements.", "4.3", _lists, everywhere=True),
    Claim(
        "Noise σC/W on coefficients clipped to C, at once or level by level, keeps the guarantee.",
        "4.3",
        _guarantee,
        everywhere=True,
    ),
    Claim(
        "For two elements DP-SGD-WAV is plain noise of half the multiplier on gradients clipped to √2 C.",
        "ours, publications.haar_section",
        _two_elements,
        everywhere=True,
    ),
)
SECTION_TABLE = PaperTable("clipping-rules", "What clipping coefficients guarantees", lambda tables: clipping_rows())
